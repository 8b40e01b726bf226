/* kernel.h - which instructions can become a kernel, and how a kernel is called.
 *
 * A kernel is made from one instruction: a fusion, whose body is inlined, or any other for which emit_supports returns
 * true.  On a CPU it is an rt_kernel_fn (see runtime/kernel_abi.h); its grid is emit_kernel_info.grid.  On a GPU it is
 * an entry whose parameters are the buffers. */
#ifndef EMIT_KERNEL_KERNEL_H
#define EMIT_KERNEL_KERNEL_H

#include "hlo/ir/ir.h"

/* The largest constant inside of a fusion, in bytes.  Larger ones must be operands, except splats. */
enum { EMIT_MAX_CONSTANT = 16384 };

typedef struct emit_options {
  /* One entry for each result: the operand whose buffer it shares, or -1.  NULL means that no result shares one.  A
   * result may share a buffer only if emit_can_alias allows it; buffers that are not named here never overlap results.
   * A result that equals the operand except for one part at a fixed position (hlo/analysis/in_place_update.h) writes
   * that part only; an output fusion of this kind must share. */
  const int32_t *alias;
  /* If it is not 0, M is dynamic: `rows` is a placeholder for the first dimension of the results and of some operands.
   * Row r of a result depends on row r of these operands and on all of the others.  The code works for any number of
   * rows, by a grid that is that many times as large (or the writer has a function that computes the grid). */
  int64_t rows;
} emit_options;

typedef struct emit_kernel_info {
  int64_t grid;       /* the extent of the parallel dimension; 0 means that there is nothing to do */
  double item_cost;   /* about the time of one step of the grid in nanoseconds; the number of threads follows from it */
  uint32_t n_buffers; /* the number of operands and results */
} emit_kernel_info;

/* Returns true if the instruction can be a kernel.  Otherwise *why is set to a short static text with the reason; why
 * may be NULL. */
bool emit_supports(const hlo_instr *i, const char **why);

/* Returns true if result `result` of `i` may be written over the buffer of operand `operand`.  That is so if every
 * element of the operand is read only for the same element of the result (elementwise chains), and for the operand that
 * dynamic-update-slice and scatter update, which then copy nothing.  Shapes and sizes of element types are then equal.
 */
bool emit_can_alias(const hlo_instr *i, uint32_t operand, uint32_t result);

/* Returns the dot or convolution that `i` is, or the only one in the fusion `i`, provided that its operands are read as
 * they are in memory (or are weight-only quantised: hlo/analysis/quantized.h) and that its result is read only for the
 * same element of the fusion's results.  Otherwise returns NULL. */
const hlo_instr *emit_contraction_of(const hlo_instr *i);
bool emit_has_quantized_weights(const hlo_instr *i);

#endif
