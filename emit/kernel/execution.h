/* execution.h - how the grid of a kernel is divided among the calls or threads that compute it: one implementation for
 * each value of emit_execution.
 *
 * The body of a kernel is the same in all implementations: it computes the steps [w->begin, w->end) of the grid.  They
 * differ in what a call or a thread computes, and in the loops over the elements of results.  To add one, add a value
 * of emit_execution (emit/llvm/target.h), a file like ranges.c, and a row to the table in kernel.c. */
#ifndef EMIT_KERNEL_EXECUTION_H
#define EMIT_KERNEL_EXECUTION_H

#include "emit/kernel/writer.h"

/* The parameters of each kernel's function, by number: a table of the addresses of its buffers, a table of integer
 * arguments, and then the parameters that the execution adds. */
enum { EMIT_BUFFERS, EMIT_ARGS, EMIT_OWN_PARAMETERS };

typedef struct emit_execution_ops {
  /* Returns the type of a kernel's function. */
  LLVMTypeRef (*type)(const emit_ir *ir);
  /* Sets w->begin and w->end, and the module's `watch`. */
  void (*bind)(emit_writer *w);
  /* Implements emit_nest (writer.h). */
  void (*nest)(emit_writer *w, int rank, const dim *extents, int lanes, bool serial, emit_body_fn *body,
               const void *data);
  /* Completes a function whose last instruction, a return, is written and whose info is set.  The member is NULL if
   * there is nothing to do. */
  void (*end)(const emit_writer *w);
  /* Returns UNSUPPORTED if the function cannot be called after all.  The member is NULL if there is nothing to check.
   */
  status (*check)(const emit_writer *w);
} emit_execution_ops;

extern const emit_execution_ops emit_ranges, emit_blocks;

/* For blocks: returns how many neighbouring elements of the results each step of a loop over them should have: 16 bytes
 * of the largest type, or 1 if they are not computed from neighbouring elements.  Rows of the innermost dimension begin
 * at multiples of this number. */
int emit_block_lanes(const emit_writer *w, int rank, const dim *extents);

/* Adds attributes of LLVM, such as readonly, to the tables EMIT_BUFFERS and EMIT_ARGS of a function that was just added
 * (parameters.c). */
void emit_mark_parameters(const emit_ir *ir);
/* Loads the addresses of inputs and results, and sets the table of arguments from which sizes are loaded. */
void emit_bind_parameters(emit_writer *w, emit_input *inputs);

#endif
