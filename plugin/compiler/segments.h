/* segments.h - runs a model whose sizes depend on what it computes, segment by segment (frontend/import/frame.h).
 *
 * A segment is imported for the current shapes (and the contents on which sizes depend), compiled and kept; the same
 * shapes find it again.  Loop, If, Scan and calls whose bodies need it are run here, each body with a frame of its own.
 */
#ifndef PLUGIN_COMPILER_SEGMENTS_H
#define PLUGIN_COMPILER_SEGMENTS_H

#include "plugin/compiler/compiler.h"

#include "frontend/model/model.h"

/* request: strings and lists in it are borrowed, inputs and values not used. */
STATUS_MUST_USE status segmented_model_create(const compiler_model *s, const onnx_model *m,
                                              const compile_request *request, mem_budget *budget,
                                              segmented_model **out);
void segmented_model_destroy(segmented_model *p);
STATUS_MUST_USE status segmented_model_run(segmented_model *p, const segments_run_options *run,
                                           compiler_array *outputs);

#endif
