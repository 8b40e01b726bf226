/* execution.h - how the grid of a kernel is divided among the calls or threads that compute it: one implementation for
 * each value of emit_execution.
 *
 * The body of a kernel is the same in all implementations.  They differ in how the function is called, how it gets its
 * buffers, and which elements of the grid a call computes.  To add one, add a value of emit_execution
 * (emit/llvm/target.h), a file like ranges.c, and a row to the table in kernel.c. */
#ifndef EMIT_KERNEL_EXECUTION_H
#define EMIT_KERNEL_EXECUTION_H

#include "emit/kernel/writer.h"

typedef struct emit_execution_ops {
  /* Whether one thread can compute all elements of a kernel in order, as scatters and cumulative operations need. */
  bool serial;
  /* Returns the type of a function with n buffers. */
  LLVMTypeRef (*type)(const emit_ir *ir, uint32_t n);
  /* Adds attributes to the parameters of ir->function. */
  void (*add_attributes)(const emit_ir *ir, uint32_t n);
  /* Sets the addresses of inputs and results, and the other members of `w` that come from the function's parameters. */
  void (*bind)(emit_writer *w, emit_input *inputs);
  /* Implements emit_nest (writer.h). */
  void (*nest)(emit_writer *w, int rank, const dim *extents, int lanes, bool serial, emit_body_fn *body,
               const void *data);
  /* Completes a function whose last instruction is written; NULL if there is nothing to do. */
  void (*end)(const emit_ir *ir);
} emit_execution_ops;

extern const emit_execution_ops emit_ranges, emit_blocks;

#endif
