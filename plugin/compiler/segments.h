/* segments.h - runs a model whose sizes depend on what it computes, segment by segment (frontend/import/frame.h).
 *
 * A segment is imported for the current shapes, and for the contents of arrays on which sizes depend.  It is compiled,
 * for all sizes if that is possible, and kept, and used again when it fits the arrays of a run.  A Loop, If, Scan or
 * call whose body must run segment by segment itself is run by interpreter.c, in a frame of its own for each body. */
#ifndef PLUGIN_COMPILER_SEGMENTS_H
#define PLUGIN_COMPILER_SEGMENTS_H

#include "plugin/compiler/compiler.h"

#include "frontend/model/model.h"

/* See compiler_api.segments_create. `m` is the ONNX model of `s`. */
STATUS_MUST_USE status segmented_model_create(const compiler_model *s, const onnx_model *m,
                                              const compile_request *request, mem_budget *budget,
                                              segmented_model **out);
void segmented_model_destroy(segmented_model *p);
STATUS_MUST_USE status segmented_model_run(segmented_model *p, const segments_run_options *run,
                                           compiler_array *outputs);

#endif
