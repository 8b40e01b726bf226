/* flash_attention.h - attention (hlo/analysis/attention.h) for any number of batches, queries and keys, which the
 * kernel takes as arguments.
 *
 * As in FlashAttention, a step of the grid computes some rows of q of one batch (a tile) for one block of keys after
 * the other.  For each row it keeps the largest score so far, the sum of the exponentials, and the sum of the rows of
 * v, each times its exponential.  If a block has a larger score, both sums are multiplied by a factor.  So a step needs
 * the same memory for every number of keys.  At the end the second sum is divided by the first.
 *
 * A tile of many rows copies a block of k as panels (product.h) and multiplies by register blocks (gemm.h).  A tile of
 * few rows, as in a step of a decoder, reads k in place, since it would wait for the copy.  The result's bits do not
 * depend on the number of threads. */
#ifndef EMIT_CONTRACTION_FLASH_ATTENTION_H
#define EMIT_CONTRACTION_FLASH_ATTENTION_H

#include "emit/kernel/compile.h"
#include "hlo/analysis/attention.h"

/* Where an operand or the result lies in its array, as a matrix for each batch.  Distances are counted in elements. */
typedef struct emit_flash_matrix {
  dim offset;  /* where the first matrix begins */
  int n_batch; /* the number of dimensions of the batches; their extents and the distances along them follow */
  dim batch[SHAPE_MAX_RANK], batch_step[SHAPE_MAX_RANK];
  dim rows, columns;
  dim row_step, column_step;
} emit_flash_matrix;

typedef struct emit_flash_attention {
  emit_flash_matrix q, k, v, out; /* a row of q and of out is a query, a row of k and of v is a key */
  dim batches, queries, keys;
  int64_t sums, width; /* the columns of q and k, and those of v */
  /* The vector widths of scores, of products with v, and of reading k in place for tiles of few rows.  k_lanes is 0 if
   * k is never read in place, because its rows are not contiguous or do not divide into wide vectors. */
  int64_t lanes, v_lanes, k_lanes;
  int64_t block_rows, block_vectors, v_vectors; /* the sizes of register blocks: rows, and vectors of keys and of v */
  int64_t tile_rows, tile_keys;                 /* the largest number of rows of a tile, and of keys of a block */
} emit_flash_attention;

/* Sets *out to the description of the kernel for an attention.  Returns false if there is none: it needs batches,
 * queries or keys whose number is not a constant (attention.h is for constants), f32, heads whose sizes are constants
 * and not too large, a target whose stack is large enough (EMIT_ATTENTION_STACK), rows of q, v and the result that are
 * contiguous, and a total that does not depend on the maximum (hlo_attention.total_sees_max). */
bool emit_flash_attention_of(const hlo_attention *a, const emit_target *t, emit_flash_attention *out);
/* Writes the kernel for a fusion of kind attention.  It is an emit_write_fn (emit/kernel/compile.h) without a config.
 */
STATUS_MUST_USE status emit_flash_attention_write(emit_module *m, const char *name, const hlo_instr *i,
                                                  const emit_options *options, const void *config, uint32_t phase,
                                                  emit_kernel_info *info);

#endif
