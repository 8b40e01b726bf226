/* functions.h - the table of model-local functions, and the binding of a function's attributes for one call. */
#ifndef FRONTEND_MODEL_FUNCTIONS_H
#define FRONTEND_MODEL_FUNCTIONS_H

#include "frontend/model/model.h"

/* Fills m->functions and m->expanded_nodes while a model is loaded.  Refuses duplicate functions, recursion (direct,
 * mutual, or through subgraphs) and models with more than max_nodes nodes after all calls are inlined. */
STATUS_MUST_USE status onnx_functions_load(onnx_model *m, uint64_t max_nodes);

/* Returns a node of a function's body for one call of the function.  An attribute that is a reference (ref_attr_name)
 * is replaced by the attribute of `call`, or by the function's default if `call` does not have it, or is removed if
 * there is neither.  The references in `call` must have been replaced already.  Returns `node` itself if it has no
 * references, otherwise a copy on the arena that shares everything else.  Nodes inside of its subgraphs are not
 * changed; call this function for each of them when it is imported. */
STATUS_MUST_USE status onnx_node_bind(arena *a, const onnx_function *f, const Onnx__NodeProto *call,
                                      const Onnx__NodeProto *node, const Onnx__NodeProto **out);

#endif
