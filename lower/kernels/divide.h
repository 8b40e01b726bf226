/* divide.h - divides kernels among the LLVM modules (batches) in which threads compile them. */
#ifndef LOWER_KERNELS_DIVIDE_H
#define LOWER_KERNELS_DIVIDE_H

#include "hlo/ir/ir.h"

/* A kernel: the estimated nanoseconds to compile it (cost), and to compile the functions that kernels with the same
 * `sharing` have in common in a module (shared; 0 if there are none, and then `sharing` does not matter). */
typedef struct lower_part {
  double cost, shared;
  const char *sharing;
  uint32_t batch; /* set by lower_divide */
} lower_part;

/* Estimates the nanoseconds that it takes to compile the loops that emit_kernel writes for `i`. */
double lower_loops_cost(const hlo_instr *i);

/* Returns a text that is the same for kernels of the same operations, types and ranks with the same writer
 * (lower_kernel_writer.name, or NULL) and phase, whose code probably differs only in constants. */
const char *lower_likeness(arena *a, const hlo_instr *i, const char *writer, uint32_t phase);

/* Divides n kernels among n_batches batches, of which there is at least one, so that `threads` threads that take the
 * most expensive batch first end at about the same time, and few batches have the same shared functions.  Sets
 * costs[n_batches].  The same kernels are always divided in the same way. */
void lower_divide(arena *a, uint32_t n, lower_part *parts, uint32_t n_batches, uint32_t threads, double *costs);

#endif
