/* execution.h - how the work of a kernel is divided, with one implementation for each value of emit_execution.
 *
 * A kernel's body (element emitter, reductions, row-wise fusions) is the same in all of them.  They differ in how the
 * function is called, where its buffers come from, and which elements of the grid a call computes.  A new one takes a
 * value of emit_execution (emit/llvm/target.h), a file like ranges.c, and a row in kernel.c. */
#ifndef EMIT_KERNEL_EXECUTION_H
#define EMIT_KERNEL_EXECUTION_H

#include "emit/kernel/writer.h"

typedef struct emit_execution_ops {
  /* Whether a kernel may compute its elements in order, in one thread, as scatter and cumulative operations do. */
  bool serial;
  /* Returns the type of a function with n buffers. */
  LLVMTypeRef (*type)(const emit_ir *ir, uint32_t n);
  /* Adds attributes to the parameters of ir->function. */
  void (*add_attributes)(const emit_ir *ir, uint32_t n);
  /* Sets the addresses of inputs and results, and the other values that the writer takes from the function's
   * parameters. */
  void (*bind)(emit_writer *w, emit_input *inputs);
  /* See emit_nest. */
  void (*nest)(emit_writer *w, int rank, const int64_t *extents, int lanes, bool serial, emit_body_fn *body,
               const void *data);
  /* Completes a function whose last instruction is written; NULL if there is nothing to do. */
  void (*end)(const emit_ir *ir);
} emit_execution_ops;

extern const emit_execution_ops emit_ranges, emit_blocks;

#endif
