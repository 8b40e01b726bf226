/* interpreter_internal.h - declarations that interpreter.c, sequences.c and host/ share: a host-interpreted node while
 * it runs, and its bodies. */
#ifndef PLUGIN_COMPILER_INTERPRETER_INTERNAL_H
#define PLUGIN_COMPILER_INTERPRETER_INTERNAL_H

#include "plugin/compiler/interpreter.h"

typedef struct interpreted_node {
  interpreter_run *run;
  interpreter_site *site;
  onnx_frame *outer;
  size_t number;               /* the node's index in `outer` */
  const Onnx__NodeProto *node; /* references to attributes of the function around it are replaced (onnx_node_bind) */
} interpreted_node;

/* Returns true if the node has an input k with a value. */
bool interpreter_has_input(const interpreted_node *n, size_t k);
/* Returns input k with a reference for the caller; fails if the node has no such input. */
STATUS_MUST_USE status interpreter_input(const interpreted_node *n, size_t k, host_array **out);
/* Returns the only element of an array of integers or booleans; `what` names the array in messages. */
STATUS_MUST_USE status interpreter_scalar(const host_array *a, const char *what, int64_t *out);
/* Defines the node's outputs in its frame and takes over the references to the values.  Values of outputs that the node
 * does not name are dropped.  Fails if the node has more outputs than `count`. */
STATUS_MUST_USE status interpreter_define_outputs(const interpreted_node *n, size_t count, host_array *const *values);

/* A subgraph of a node, such as the body of a Loop. */
typedef struct interpreter_body {
  const interpreted_node *n;
  interpreter_site *site;
  int which;
  const Onnx__GraphProto *graph;
} interpreter_body;

/* Finds the subgraph in the node's attribute `attribute`.  `which` is the number of the subgraph among the node's
 * bodies (interpreter_site). */
STATUS_MUST_USE status interpreter_find_body(const interpreted_node *n, const char *attribute, int which,
                                             interpreter_body *out);
/* Runs the body once.  `step` is the number of the loop's iteration, or -1 if the node is not a loop.  Takes
 * over the references to inputs.  `outputs`, with graph->n_output entries, gets references for the caller. */
STATUS_MUST_USE status interpreter_run_body(const interpreter_body *b, size_t n_inputs, host_array *const *inputs,
                                            int64_t step, host_array **outputs);
/* Returns the shape of an output of a body that never ran: the declared shape with 0 for symbolic dimensions; its kind
 * is SHAPE_UNRANKED if no rank is declared. */
STATUS_MUST_USE status interpreter_declared_shape(const interpreter_body *b, size_t output, shape *out);

/* Declares a function for each operator that can be host-interpreted according to onnx_ops.def. */
typedef status interpret_fn(const interpreted_node *n);
#define declare_no(importer)
#define declare_for_body(importer) interpret_fn interpret_##importer;
#define declare_for_sequences(importer) interpret_fn interpret_##importer;
#define declare_asked(importer) interpret_fn interpret_##importer;
#define ONNX(domain, name, since, min_in, max_in, min_out, max_out, sizes, symbols, work, host, importer) \
  declare_##host(importer)
#include "frontend/operators/onnx_ops.def"
#undef declare_no
#undef declare_for_body
#undef declare_for_sequences
#undef declare_asked

#endif
