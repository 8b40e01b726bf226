/* functions.h - model-local functions: their table, and what inlining a call needs. */
#ifndef FRONTEND_MODEL_FUNCTIONS_H
#define FRONTEND_MODEL_FUNCTIONS_H

#include "frontend/model/model.h"

/* Fills m->functions and m->expanded_nodes; refuses duplicates, recursion (direct, mutual, or through
 * subgraphs) and models that would grow beyond max_nodes.  Part of loading. */
STATUS_MUST_USE status onnx_functions_load(onnx_model *m, uint64_t max_nodes);

/* The node of a function's body as one call of the function means it: attributes that are references take the call's
 * value, or the function's default, or go away.  `call` must itself be bound.  Returns `node` itself when it has no
 * references, otherwise a copy on the arena that shares all else.  Nodes inside its subgraphs are not touched: bind
 * each when you come to it. */
STATUS_MUST_USE status onnx_node_bind(arena *a, const onnx_function *f, const Onnx__NodeProto *call,
                                      const Onnx__NodeProto *node, const Onnx__NodeProto **out);

#endif
