/* sizes.h - the expressions of sizes of a program for many sizes: checked when it is loaded, evaluated when it is
 * bound. */
#ifndef RUNTIME_PROGRAM_SIZES_H
#define RUNTIME_PROGRAM_SIZES_H

#include "runtime/program/program.h"

/* Returns true if all sizes are numbers, so that the program serves one set of sizes. */
static inline bool rt_program_is_static(const rt_program *p) { return p->n_sizes == 0; }

/* Returns true if s is a number or a node of the program. */
static inline bool rt_size_exists(const rt_program *p, rt_size s) { return s >= -(int64_t)p->n_sizes; }

/* Returns the shape with -1 for each size that is not a number. */
static inline shape rt_any_sizes(shape s) {
  for (int d = 0; d < s.rank; d++) {
    s.dims[d] = s.dims[d] < 0 ? -1 : s.dims[d];
  }
  return s;
}

/* Checks the nodes, guards, slots, parameters and results of a program, which may come from a damaged file.  Thunks are
 * not looked at. */
STATUS_MUST_USE status rt_sizes_check(const rt_program *p);

/* Computes all nodes for inputs of these shapes, one for each parameter, into values[].  A node that cannot be computed
 * (a division by 0, a number that is too large) gets RT_NO_SIZE.  The error is INVALID_ARGUMENT with STATUS_ABOUT_SHAPE
 * if inputs do not fit the parameters or a guard does not hold. */
#define RT_NO_SIZE INT64_MIN
STATUS_MUST_USE status rt_sizes_evaluate(const rt_program *p, const shape *inputs, int64_t *values);

/* Returns the largest length among the results that have room (rt_io.has_room); 0 if no result has room.  Guards are
 * not checked, and the length does not depend on the room that the inputs' shapes state.  values[] must have an element
 * for each node; it is overwritten. */
int64_t rt_sizes_room(const rt_program *p, const shape *inputs, int64_t *values);

/* Returns the value of a size; RT_NO_SIZE if it cannot be computed.  It may be negative. */
static inline int64_t rt_size_value(const int64_t *values, rt_size s) { return s < 0 ? values[-(s + 1)] : s; }

#endif
