/* kernel.h - which instructions can become a kernel, and how a kernel is called.
 *
 * A kernel is made from one instruction for which emit_supports returns true.  If it is a fusion, its body is inlined.
 * On a CPU it is an rt_kernel_fn (runtime/kernel_abi.h).  For blocks of threads it is an entry of PTX or, emulated, an
 * rt_block_fn (runtime/block_abi.h).  Its grid is emit_kernel_info.grid.  Operands are aligned to their elements, or
 * not at all if emit_target.unaligned is set and they share no buffer with a result. */
#ifndef EMIT_KERNEL_KERNEL_H
#define EMIT_KERNEL_KERNEL_H

#include <assert.h>

#include "hlo/ir/ir.h"

/* The largest constant inside of a fusion, in bytes.  Larger ones must be operands, except splats. */
enum { EMIT_MAX_CONSTANT = 16384 };

typedef struct emit_options {
  /* One entry for each result: the operand whose buffer it shares, or -1.  NULL means that no result shares one.  A
   * result may share a buffer only if emit_can_alias allows it; all other operands never overlap a result.  If the only
   * result is in the buffer of an operand and equals that operand except for one part at a fixed position (an in-place
   * update, hlo/analysis/in_place_update.h), only that part is written.  The result of an output fusion that is an
   * in-place update must be in the operand's buffer. */
  const int32_t *alias;
  /* 0 means that the kernel is for the given shapes only.  Otherwise it is for any number of rows (dynamic M).  The
   * first dimension of all results, and of some operands, then counts rows: row r of a result depends on row r of these
   * operands and on all of the other operands.  `rows` is the extent that this dimension has in `i`, which stands in
   * for the actual number of rows. emit_kernel_info.grid is the grid for `rows` rows.  For n rows the kernel is called
   * with a grid of grid / rows * n, except that emit_product_dynamic_m computes the grid for kernels of
   * emit/product/product.h. */
  int64_t rows;
} emit_options;

typedef struct emit_kernel_info {
  /* The number of steps, which may run in parallel (runtime/kernel_abi.h); 0 means that there is nothing to do.  It is
   * a constant if all shapes are static. */
  dim grid;
  double item_cost;   /* the estimated time of one step of the grid in nanoseconds, for likely sizes; callers choose the
                         number of threads by it */
  uint32_t n_buffers; /* the number of buffers: operands, results, and further ones such as scratch memory */
  /* The sizes that the kernel gets as arguments: args[k] is sizes[k], an expression of the module's table.  The caller
   * evaluates them.  The array `sizes` is on the arena of the LLVM module (emit/kernel/compile.h). */
  uint32_t n_sizes;
  const dim *sizes;
  /* For blocks of threads (runtime/block_abi.h): how many threads a block must have, 0 if any number is right, or any
   * multiple of EMIT_WARP where a warp computes a step; how many threads compute a step, 1, a warp or the whole block;
   * and the bytes of shared memory that a block needs.  For ranges all are 0. */
  uint32_t threads, step_threads, shared_bytes;
  uint32_t n_args; /* the number of integer arguments that the kernel reads: n_sizes, or more if it reads others by
                      emit_writer_arg */
} emit_kernel_info;

/* The limits of runtime/block_abi.h, which emit/ may not include; lower/kernels/kernels.c asserts that they agree. */
enum {
  EMIT_PARAMETER_BYTES = 4096,
  EMIT_MOST_THREADS = 1024,
  EMIT_WARP = 32,
  EMIT_MOST_SHARED = 227 * 1024,
  EMIT_SHARED_ALIGN = 128
};

/* Returns the grid of a kernel whose shapes are static. */
static inline int64_t emit_static_grid(const emit_kernel_info *info) {
  assert(dim_is_const(info->grid) && info->n_sizes == 0);
  return info->grid;
}

/* Returns true if the kernel of the instruction takes sizes as arguments, because a shape of the instruction, or of
 * what is fused into it, is not static, or because it needs other sizes that are not constants. */
bool emit_takes_sizes(const hlo_instr *i);

/* Returns true if the instruction can be a kernel.  Otherwise *why is set to a short static text with the reason; why
 * may be NULL. */
bool emit_supports(const hlo_instr *i, const char **why);
/* Returns true if the instruction can be a part of a fusion of this kind. */
bool emit_supports_fused(hlo_fusion_kind kind, const hlo_instr *i);

/* Returns true if result `result` of `i` may be written into the buffer of operand `operand`.  Both must have equally
 * many elements of the same size, and the operand must not be passed as another operand as well.  This is allowed if
 * every element of the operand is read only to compute the same element of the result, as in chains of elementwise
 * operations, or, in a row-wise fusion, to compute elements of the same row.  A row-wise fusion that has to store rows
 * in the memory of a result before its last loop may not overwrite an operand.  The operand that a dynamic-update-slice
 * or scatter updates may also be overwritten; it is then not copied. */
bool emit_can_alias(const hlo_instr *i, uint32_t operand, uint32_t result);

/* If `i` is a dot or convolution, returns `i`.  If `i` is a fusion with only one of these, returns that one, provided
 * that its operands are read as they are in memory (or are weight-only quantised: hlo/analysis/quantized.h) and that
 * its result is read only for the same element of the fusion's results.  Otherwise returns NULL. */
const hlo_instr *emit_contraction_of(const hlo_instr *i);
/* Returns true if `i` is a fusion whose contraction (emit_contraction_of) has weight-only quantised weights. */
bool emit_has_quantized_weights(const hlo_instr *i);

#endif
