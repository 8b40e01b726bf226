/* loop_internal.h - the common part of Loop and Scan: a body that is imported once and becomes an HLO `while`. */
#ifndef FRONTEND_OPS_CONTROL_LOOP_INTERNAL_H
#define FRONTEND_OPS_CONTROL_LOOP_INTERNAL_H

#include "frontend/import/import_helpers.h"

enum {
  ONNX_LOOP_MAX_UNROLLED = 256 /* the largest number of iterations of a Loop that is unrolled because it cannot become a
                                  `while`, and the largest batch of a Scan of version 8 */
};

/* The axis along which a scan input is read or a scan output written, and the direction. */
typedef struct onnx_loop_axis {
  int64_t axis;
  bool backward;
} onnx_loop_axis;

typedef struct onnx_loop {
  onnx_node *n;
  bool is_scan; /* if false (Loop), the body has the iteration number and the condition as its first inputs, and a
                   condition as its first output */
  hlo_computation *body; /* NULL until the body is imported */
  onnx_captures captures;
  uint32_t n_states;
  uint32_t n_in;        /* the number of scan inputs, with the one that Scan's importer adds (set_step_input) */
  uint32_t n_out;       /* the number of scan outputs */
  hlo_value *states;    /* the initial states */
  hlo_value *scans;     /* the whole scan inputs, of which each iteration reads one element */
  onnx_loop_axis *in;   /* one for each scan input */
  onnx_loop_axis *out;  /* one for each scan output; a negative axis is converted once the rank is known */
  dim trip;             /* the largest number of iterations, which may be symbolic; INT64_MAX if it is unlimited or
                           depends on data (trip_value) */
  hlo_value trip_value; /* the largest number of iterations if it depends on data, otherwise def is NULL */
  hlo_value length;     /* for Scan of version 8: how many of the `trip` iterations run; all if def is NULL */
  hlo_value cond;       /* the initial condition; it is true if def is NULL */
  bool may_end;         /* whether the condition may end the loop before the trip count is reached */
  bool ignores_cond;    /* whether the condition that the body returns is ignored, because the Loop has no input cond or
                           because it is counted (onnx_loop_count_trips) */
} onnx_loop;

/* Copies n values.  `to` and `from` may be NULL if n is 0. */
void onnx_copy_values(hlo_value *to, const hlo_value *from, uint32_t n);

/* Checks the numbers of the body's inputs and outputs against l->n_states and l->n_in, and sets l->n_out. */
STATUS_MUST_USE status onnx_loop_check_arity(onnx_loop *l);

/* Imports the body of l into l->body.  Its parameters have the shapes of l->states and of one element of each of
 * l->scans.  The condition that a Loop's body gets as input is the constant true, since the body runs only if it is
 * true. */
STATUS_MUST_USE status onnx_loop_import_body(onnx_loop *l);

/* If the condition of a Loop whose body is imported depends only on sizes and on counters, which grow by a constant in
 * each iteration, counts the iterations: then l->trip is their number, and the condition need not be computed.  May add
 * guards. */
void onnx_loop_count_trips(onnx_loop *l);

/* Returns an error unless c is the shape of a condition: one element of type pred. */
STATUS_MUST_USE status onnx_loop_check_condition(const onnx_node *n, const shape *c);

/* Returns an error if state k has another element type after an iteration than before it.  Its dimensions may
 * differ. */
STATUS_MUST_USE status onnx_loop_check_state_type(const onnx_node *n, uint32_t k, const shape *before,
                                                  const shape *after);

/* Builds the HLO `while` of a loop whose body is imported.  results[] receives the final states, then the scan outputs.
 */
STATUS_MUST_USE status onnx_loop_build_while(onnx_loop *l, hlo_value *results);

#endif
