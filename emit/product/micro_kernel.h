/* micro_kernel.h - register blocks (gemm.h) as functions that many kernels of a module call.
 *
 *     void f(buffers, args, loops, a, b, tile, column)
 *
 * The function adds up a block whose first row of A is at `a` and whose first column of B is at `b`, and writes the
 * sums to `tile` (emit_gemm_store).  `loops` is a table of i64: the distance between rows of A, then for each loop over
 * the products of a sum, the outermost first, its number of iterations and its distances in A and in B, in elements
 * (emit_gemm_loop).  The other parameters are read only by functions that belong to one kernel, such as those for
 * quantised weights: `buffers` and `args` are the kernel's tables of buffers and arguments, `column` is the number of
 * the block's first column. */
#ifndef EMIT_PRODUCT_MICRO_KERNEL_H
#define EMIT_PRODUCT_MICRO_KERNEL_H

#include "emit/product/gemm.h"

/* The parameters of the function, and the entries of its table `loops`. */
enum {
  EMIT_MICRO_BUFFERS,
  EMIT_MICRO_ARGS,
  EMIT_MICRO_LOOPS,
  EMIT_MICRO_A,
  EMIT_MICRO_B,
  EMIT_MICRO_TILE,
  EMIT_MICRO_COLUMN,
  EMIT_MICRO_PARAMETERS
};
#define EMIT_MICRO_TYPES "ppppppi" /* emit_shared.parameters */
enum { EMIT_MICRO_ROW, EMIT_MICRO_FIRST_LOOP, EMIT_MICRO_LOOP_ENTRIES = 3, EMIT_MICRO_MOST_LOOPS = 6 };
enum { EMIT_MICRO_TABLE = EMIT_MICRO_FIRST_LOOP + EMIT_MICRO_MOST_LOOPS * EMIT_MICRO_LOOP_ENTRIES };

/* What the code of a function depends on. */
typedef struct emit_micro_kernel {
  emit_gemm_tile tile;
  dtype type, dot; /* as in emit_gemm */
  bool dot_flips;
  /* `panels`: whether B lies in panels, from which the distances in B follow; otherwise the vectors of a row of B are
   * contiguous.  `head`: whether a panel begins with the initial values of its sums. */
  bool panels, head;
  bool contiguous; /* whether the innermost distance in A is 1 */
  int n_loops;
} emit_micro_kernel;

/* Returns the function of the module for m; the first call in a module writes it. */
LLVMValueRef emit_micro_kernel_of(const emit_ir *w, const emit_micro_kernel *m);

#endif
