/* loop_internal.h - what Loop and Scan have in common: a body that is imported once and becomes a `while`. */
#ifndef FRONTEND_OPS_CONTROL_LOOP_INTERNAL_H
#define FRONTEND_OPS_CONTROL_LOOP_INTERNAL_H

#include "frontend/import/import_helpers.h"

enum {
  ONNX_LOOP_MAX_UNROLLED = 256 /* Loops of a known length whose states change their shapes are written out up to so many
                                  steps; Scan 8 up to so many batches. */
};

/* The axis along which a scan input is read or a scan output written, and the direction. */
typedef struct onnx_loop_axis {
  int64_t axis;
  bool backward;
} onnx_loop_axis;

typedef struct onnx_loop {
  onnx_node *n;
  bool is_scan;          /* If false, the body takes the iteration and the condition, and gives a condition. */
  hlo_computation *body; /* NULL until it is imported. */
  onnx_captures captures;
  uint32_t n_states;
  uint32_t n_in;  /* The number of scan inputs; Scan's last one is added by the importer and numbers the steps. */
  uint32_t n_out; /* The number of scan outputs. */
  hlo_value *states;
  hlo_value *scans; /* The scan inputs, whole. */
  onnx_loop_axis *in;
  onnx_loop_axis *out; /* out[k].axis is normalised once the rank is known. */
  int64_t trip;        /* The number of steps; -1 if trip_value has it; INT64_MAX if there is no limit. */
  hlo_value trip_value;
  hlo_value length;  /* Scan 8: how many of the `trip` steps are made; without a value, all are. */
  hlo_value cond;    /* Without a value it is true. */
  bool may_end;      /* The condition may end the loop before the trip count is reached. */
  bool ignores_cond; /* A Loop without a condition: the condition that the body gives does not matter. */
} onnx_loop;

/* Copies n values; `to` and `from` may be NULL if n is 0. */
void onnx_copy_values(hlo_value *to, const hlo_value *from, uint32_t n);

/* Checks the numbers of the body's inputs and outputs against l->n_states and l->n_in, and sets l->n_out. */
STATUS_MUST_USE status onnx_loop_check_arity(onnx_loop *l);

/* Imports the body with parameters of the shapes of l->states and of one element of each of l->scans.  The condition is
 * known to be true inside, or the step would not run.  `iteration` is the content of the body's first input if it is
 * the same for all steps, otherwise NULL. */
STATUS_MUST_USE status onnx_loop_import_body(onnx_loop *l, const literal *iteration);

/* Returns an error if `c` is not the shape of a condition, one bool. */
STATUS_MUST_USE status onnx_loop_check_condition(const shape *c);

/* Returns an error if state k has another element type after a step than before it.  Its dimensions may differ. */
STATUS_MUST_USE status onnx_loop_check_state_type(uint32_t k, const shape *before, const shape *after);

/* Builds the `while` of an imported loop; results receives the states, then the scan outputs. */
STATUS_MUST_USE status onnx_loop_build_while(onnx_loop *l, hlo_value *results);

#endif
