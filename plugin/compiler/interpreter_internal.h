/* interpreter_internal.h - declarations that interpreter.c and sequences.c share: a host-interpreted node while it
 * runs, and its bodies. */
#ifndef PLUGIN_COMPILER_INTERPRETER_INTERNAL_H
#define PLUGIN_COMPILER_INTERPRETER_INTERNAL_H

#include "plugin/compiler/interpreter.h"

typedef struct interpreted_node {
  interpreter_run *run;
  interpreter_site *site;
  onnx_frame *outer;
  size_t number;
  const Onnx__NodeProto *node; /* bound */
} interpreted_node;

/* Returns true if there is an input k with a value. */
bool interpreter_has_input(const interpreted_node *n, size_t k);
/* Input k, which must be there: a reference for the caller. */
STATUS_MUST_USE status interpreter_input(const interpreted_node *n, size_t k, host_array **out);
/* One number of an array of one element. */
STATUS_MUST_USE status interpreter_scalar(const host_array *a, const char *what, int64_t *out);
/* Hands the node's outputs over: those that it does not name are dropped. */
STATUS_MUST_USE status interpreter_define_outputs(const interpreted_node *n, size_t count, host_array *const *values);

typedef struct interpreter_body {
  const interpreted_node *n;
  interpreter_site *site;
  int which;
  const Onnx__GraphProto *graph;
} interpreter_body;

STATUS_MUST_USE status interpreter_find_body(const interpreted_node *n, const char *attribute, int which,
                                             interpreter_body *out);
/* Runs it once; step -1: it is no loop's.  The references to inputs are taken over, outputs[n_output of the graph] are
 * the caller's. */
STATUS_MUST_USE status interpreter_run_body(const interpreter_body *b, size_t n_inputs, host_array *const *inputs,
                                            int64_t step, host_array **outputs);
/* Of a body's output where the body never ran: as declared, open dimensions 0.  SHAPE_UNRANKED where no rank is. */
STATUS_MUST_USE status interpreter_declared_shape(const interpreter_body *b, size_t output, shape *out);

/* The operators that onnx_ops.def says can be host-interpreted. */
typedef status interpret_fn(const interpreted_node *n);
#define declare_no(importer)
#define declare_for_body(importer) interpret_fn interpret_##importer;
#define declare_for_sequences(importer) interpret_fn interpret_##importer;
#define ONNX(domain, name, since, min_in, max_in, min_out, max_out, sizes, work, host, importer) \
  declare_##host(importer)
#include "frontend/import/onnx_ops.def"
#undef declare_no
#undef declare_for_body
#undef declare_for_sequences

#endif
