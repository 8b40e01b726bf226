/* mma_product.h - dots and convolutions by tensor cores: products of matrices by warps (emit_mma).
 *
 * As in tiled_product.h, a block computes a tile of the result, and brings the factors of the tile's rows and columns
 * into shared memory stage by stage; a stage has the factors for a few products of each sum.  While the warps multiply
 * one stage, the next stages are on their way: factors that are neither computed nor rounded, and of which 16 bytes lie
 * next to each other, are copied (emit_copy_begin); the threads load and store all others.  At the end the sums go
 * through shared memory, so that neighbouring threads store neighbouring elements.
 *
 * Products of f16 and bf16 are exact and their sums f32, as in all other kernels; products and sums of bytes are exact;
 * those of f64 are f64.  The order of the sums is the device's (block.h).  Factors of f32 are rounded to a smaller
 * type, which the config must ask for (emit_mma_tile.rounded), or split.
 *
 * A factor x that is split is b + s, where b is x rounded to tf32 and s is x - b rounded to tf32.  tf32 has 11
 * significant bits, so |s| <= 2^-11 |x|, and |x - b - s| <= 2^-23 |x|.  A product of two factors is computed as the sum
 * of b b', b s' and s b'.  What is left out is at most (2^-22 + 2 * 2^-23) |x x'| and terms of less than 2^-32 |x x'|,
 * so the error of a sum of n products is at most that of adding them up plus 2^-21 (1 + 2^-10) times the sum of their
 * magnitudes; adding n products up in f32 may itself cause an error of n 2^-24 times that sum. */
#ifndef EMIT_BLOCKS_MMA_PRODUCT_H
#define EMIT_BLOCKS_MMA_PRODUCT_H

#include "emit/kernel/compile.h"

/* The config.  A warp computes 16 * warp_rows rows of 16 * warp_columns columns.  A block has `down` times `across`
 * warps. */
typedef struct emit_mma_tile {
  int64_t warp_rows, warp_columns; /* warp_rows is 1, 2 or 4; warp_columns is 1 or 2 */
  int64_t down, across;            /* each at most 4 times the other, and at most 8 warps in all */
  /* The dtype to which factors of f32 are rounded: F16, BF16, or F32 for tf32.  With DTYPE_INVALID, factors have the
   * type of the operands. */
  int64_t rounded;
  int64_t parts; /* into how many parts each sum is divided (sum_parts.h): 1 to 32; 1 means that it is whole */
  int64_t split; /* if `rounded` is F32: whether each factor is split into two numbers of tf32 (see above) */
} emit_mma_tile;

/* The tiles that are worth trying, the largest first. */
enum { EMIT_MMA_TILES = 5 };
extern const emit_mma_tile emit_mma_tiles[EMIT_MMA_TILES];

/* Returns true if tensor cores can compute the contraction of `i` (emit_contraction_of).  `rounded` is as in a tile. */
bool emit_takes_mma(const emit_target *t, const hlo_instr *i, dtype rounded);
/* Sets *out to the tile that should be used for likely sizes, and returns true.  Returns false if other kernels are
 * better: the result has few elements, or the sums are short.  `divides` says whether sums may be divided into parts.
 */
bool emit_choose_mma_tile(const hlo_instr *i, bool divides, emit_mma_tile *out);

/* Returns the number of the result's tiles, each of which has a counter if sums are divided. */
dim emit_count_mma_tiles(const hlo_instr *i, const emit_mma_tile *tile);

/* Writes the kernel, which has further buffers if sums are divided (sum_parts.h).  The config is an emit_mma_tile. */
emit_write_fn emit_mma_product_kernel;

#endif
