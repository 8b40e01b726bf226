/* compiler_pieces.h - running a model whose sizes depend on what it computes, piece by piece (frontend/frame.h).
 *
 * A piece is imported for the shapes at hand (and the contents that decide sizes), compiled and kept: the same shapes find it
 * again.  Loop, If, Scan and calls whose bodies need it are run here, each body as a frame of its own. */
#ifndef PLUGIN_COMPILER_PIECES_H
#define PLUGIN_COMPILER_PIECES_H

#include "plugin/compiler.h"

#include "frontend/model.h"

/* request: strings and lists in it are borrowed, inputs and values not used. */
STATUS_MUST_USE status plug_pieces_create(const plug_source *s, const onnx_model *m, const plug_request *request,
                                          mem_budget *budget, plug_pieces **out);
void plug_pieces_destroy(plug_pieces *p);
STATUS_MUST_USE status plug_pieces_run(plug_pieces *p, const plug_piece_run *run, plug_array *outputs);

#endif
