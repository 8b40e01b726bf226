/* model_internal.h - the steps of loading a model, for the files of this folder and the few others that need a single
 * step.  All other files include model.h. */
#ifndef FRONTEND_MODEL_MODEL_INTERNAL_H
#define FRONTEND_MODEL_MODEL_INTERNAL_H

#include "frontend/model/functions.h"
#include "frontend/model/model.h"

/* opsets.c: reads and checks a list of opset imports.  The table is on `a`.  The domain com.microsoft need not be
 * imported; its version is then 1. */
STATUS_MUST_USE status onnx_opsets_load(arena *a, Onnx__OperatorSetIdProto *const *imports, size_t n, onnx_opsets *out);

/* strings.c: sets m->source.strings to a table of all strings of the model that may become elements of arrays.  Equal
 * models have equal tables. */
STATUS_MUST_USE status onnx_model_collect_strings(onnx_model *m, arena *scratch);

/* graph_check.c: check names, domains and the order of nodes in the main graph, or in a function's body, with all
 * subgraphs.  They sort lists of nodes that are not in dependency order and replace the domain "ai.onnx" by "".
 * Temporary memory is on `scratch`.  m->functions must be loaded. */
STATUS_MUST_USE status onnx_graph_check(const onnx_model *m, arena *scratch);
STATUS_MUST_USE status onnx_function_check(const onnx_model *m, const onnx_function *f, arena *scratch);

/* graph_walk.c: calls `visit` for each node of the list and of all subgraphs in these nodes, in no particular order and
 * without recursion, until a call returns an error. */
STATUS_MUST_USE status onnx_walk_nodes(arena *scratch, Onnx__NodeProto *const *nodes, size_t n,
                                       status (*visit)(void *data, Onnx__NodeProto *node), void *data);
/* graph_walk.c: does the same for the nodes of a function's body and of the graphs that are defaults of its attributes.
 */
STATUS_MUST_USE status onnx_walk_function(arena *scratch, const Onnx__FunctionProto *f,
                                          status (*visit)(void *data, Onnx__NodeProto *node), void *data);
/* Returns the nth graph of an attribute, and NULL after the last one. */
Onnx__GraphProto *onnx_attribute_graph(const Onnx__AttributeProto *attribute, size_t nth);
/* graph_walk.c: calls `visit` for each tensor of the model, until a call returns an error: initializers and attributes,
 * also those of subgraphs and functions, the defaults of functions' attributes, and both parts of sparse tensors. */
STATUS_MUST_USE status onnx_walk_tensors(arena *scratch, const Onnx__ModelProto *m,
                                         status (*visit)(void *data, Onnx__TensorProto *tensor), void *data);

#endif
