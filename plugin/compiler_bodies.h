/* compiler_bodies.h - what compiler_apart.c and compiler_sequences.c share: a node that stands apart, while it runs, and
 * its bodies. */
#ifndef PLUGIN_COMPILER_BODIES_H
#define PLUGIN_COMPILER_BODIES_H

#include "plugin/compiler_apart.h"

typedef struct apart {
  pieces_run *run;
  pieces_site *site;
  onnx_frame *outer;
  size_t number;
  const Onnx__NodeProto *node; /* bound */
} apart;

/* Is there an input k, with a value? */
bool apart_has_input(const apart *n, size_t k);
/* Input k, which must be there: a reference for the caller. */
STATUS_MUST_USE status apart_input(const apart *n, size_t k, pieces_array **out);
/* One number of an array of one element. */
STATUS_MUST_USE status apart_scalar(const pieces_array *a, const char *what, int64_t *out);
/* Hands the node's outputs over: those that it does not name are dropped. */
STATUS_MUST_USE status apart_define_outputs(const apart *n, size_t count, pieces_array *const *values);

typedef struct apart_body {
  const apart *n;
  pieces_site *site;
  int which;
  const Onnx__GraphProto *graph;
} apart_body;

STATUS_MUST_USE status apart_find_body(const apart *n, const char *attribute, int which, apart_body *out);
/* Runs it once; step -1: it is no loop's.  The references to inputs are taken over, outputs[n_output of the graph] are the
 * caller's. */
STATUS_MUST_USE status apart_run_body(const apart_body *b, size_t n_inputs, pieces_array *const *inputs, int64_t step,
                                      pieces_array **outputs);
/* Of a body's output where the body never ran: as declared, open dimensions 0.  SHAPE_UNRANKED where no rank is. */
STATUS_MUST_USE status apart_declared_shape(const apart_body *b, size_t output, shape *out);

/* The operators of onnx_apart.def. */
typedef status apart_run_fn(const apart *n);
#define ONNX_APART(name, sequences, run) apart_run_fn apart_run_##run;
#include "frontend/onnx_apart.def"
#undef ONNX_APART

#endif
