/* tiled_product.h - dots and convolutions by blocks of threads.
 *
 * A block computes a tile of the result.  Its threads bring the factors of the tile's rows and columns, those of
 * some positions along the contracted dimensions at a time, into memory that they share; then each thread adds up
 * products for a few rows and columns.  Every factor is read as the element emitter reads it, so operands may have any
 * layout, and a convolution needs no padded or rearranged copy (implicit GEMM).  Where the factors of both operands are
 * of 4 bytes and lie next to each other, GPUs from sm_80 on copy them to shared memory while others are multiplied.
 * Each sum is computed in order, by fused multiply-adds, so the result depends neither on the tile nor on how factors
 * get to shared memory, unless sums are divided into parts.
 *
 * The columns are the dimensions that one of the operands (the left or the right one) contributes to the result, namely
 * the one to which the result's innermost dimension belongs.  So neighbouring threads store neighbouring elements.  For
 * a convolution of channels-first images the columns are the pixels. */
#ifndef EMIT_BLOCKS_TILED_PRODUCT_H
#define EMIT_BLOCKS_TILED_PRODUCT_H

#include "emit/kernel/compile.h"

/* The threads of a block are EMIT_TILE_SIDE rows of EMIT_TILE_SIDE threads. */
enum { EMIT_TILE_SIDE = 16, EMIT_TILE_MOST = 8 /* the most rows, and the most columns, of a thread */ };

/* The config.  `rows` and `columns` are those of a thread; a block's tile has EMIT_TILE_SIDE times as many of each.
 * All threads bring equally many factors of each side, so rows * sums and columns * sums must be at least 16. */
typedef struct emit_tile {
  int64_t rows, columns; /* 1, 2, 4 or 8 */
  int64_t sums;          /* how many products of each sum are computed between two barriers: 8 or 16 */
  int64_t parts;         /* into how many parts each sum is divided (sum_parts.h): 1 to 32; 1 means that it is whole */
} emit_tile;

/* Returns the config for these numbers of rows and columns, with whole sums. */
emit_tile emit_tile_of(int64_t rows, int64_t columns);

/* Returns true if the contraction of `i` (emit_contraction_of) can be computed in tiles. */
bool emit_takes_tiles(const hlo_instr *i);
/* Sets *out to the tile that should be used for likely sizes, and returns true.  `divides` says whether sums may be
 * divided.  Returns false if the plain loops of emit_kernel, with a thread for each element, are better: the result has
 * few elements, or the sums are short. */
bool emit_choose_tile(const hlo_instr *i, bool divides, emit_tile *out);

/* Returns the number of the result's tiles, each of which has a counter if sums are divided. */
dim emit_count_tiles_of(const hlo_instr *i, const emit_tile *tile);

/* Writes the kernel, which has further buffers if sums are divided (sum_parts.h).  The config is an emit_tile. */
emit_write_fn emit_tiled_product_kernel;

#endif
