/* kernel.h - which instructions become a kernel, and how a kernel is called.
 *
 * A kernel is made from one instruction: a fusion (its body is inlined) or any other that emit_supports.
 * On a CPU it is an rt_kernel_fn (runtime/kernel_abi.h says how it is called); its grid is emit_kernel_info.grid.  On a
 * GPU it is an entry whose parameters are the buffers. */
#ifndef EMIT_KERNEL_KERNEL_H
#define EMIT_KERNEL_KERNEL_H

#include "hlo/ir/ir.h"

/* Constants inside of a fusion, in bytes (splats of any size are fine): larger ones must be operands. */
enum { EMIT_MAX_CONSTANT = 16384 };

typedef struct emit_options {
  /* One entry a result: the operand whose buffer it shares (in place), -1 for none.  NULL means no result shares. A
   * result may share only where emit_can_alias says so.  Buffers not named here never overlap results.  A result that
   * is the operand but for one part at a fixed place (hlo/analysis/in_place_update.h) is written there alone; of an
   * output fusion it must share. */
  const int32_t *alias;
  /* Not 0: the results and some operands have rows of their own, their first dimension, of which there are so many
   * here: a number that stands for any.  Row r of a result depends on row r of these operands and on all of the others.
   * The code is for any number of rows; the grid is that many times as large (or the writer has a function that says
   * how large). */
  int64_t rows;
} emit_options;

typedef struct emit_kernel_info {
  int64_t grid;       /* extent of the parallel dimension; 0 means nothing to do */
  double item_cost;   /* of one step of the grid, about in nanoseconds: to choose how many threads pay */
  uint32_t n_buffers; /* operands, then results */
} emit_kernel_info;

/* Can it be a kernel?  Otherwise *why (may be NULL) says in a few words why not; static text. */
bool emit_supports(const hlo_instr *i, const char **why);

/* May result `result` of `i` be written over the buffer of operand `operand`?  True where every element of
 * the operand is read, if at all, for the same element of the result (elementwise chains), and for the
 * operand that dynamic-update-slice and scatter update (which then copy nothing).  Shape and type sizes are
 * equal then. */
bool emit_can_alias(const hlo_instr *i, uint32_t operand, uint32_t result);

/* The dot or convolution that `i` is, or the only one in the fusion `i`, if its operands are read as they lie in memory
 * (or are weights of small integers that do: hlo/analysis/quantized.h) and its result only for the same element of the
 * fusion's results; else NULL. */
const hlo_instr *emit_contraction_of(const hlo_instr *i);
bool emit_has_quantized_weights(const hlo_instr *i);

#endif
