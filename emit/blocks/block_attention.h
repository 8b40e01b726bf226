/* block_attention.h - attention (hlo/analysis/attention.h) by blocks of threads, for any sizes.
 *
 * As in FlashAttention, a block computes some rows of q of one batch (a tile) for one tile of keys after the other. For
 * each row it keeps the largest score so far, the sum of the exponentials, and the sum of the rows of v, each times its
 * exponential.  If a tile has a larger score, both sums are multiplied by a factor.  Where there are few rows, as in a
 * step of a decoder, groups of threads share the keys of a tile, and their sums are joined at the end.  Where tiles are
 * so few that they would leave most of a GPU's processors without work, several blocks share the keys of the same rows,
 * as in Flash-Decoding: each leaves its sums in scratch memory, and the last one of them joins all in the order of the
 * keys.
 *
 * Tensor cores may compute both products if all their factors are f16 or all are bf16.  The exponentials are rounded to
 * this type before they are multiplied by values, as the operations of the module round them; sums, exponentials and
 * their sum are f32.  A warp has 16 rows of a tile of 64.  For each 8 keys, and for each 8 columns of the result, a
 * lane has four sums (emit_mma).  The scores of a lane are its factors of the second product, so that they stay in
 * registers (FlashAttention-2).
 *
 * q, k and v are read as the element emitter reads them, so they may be views of any layout.  The operations between
 * the dots are computed for each score, from its row and its key.  Products are added up by fused multiply-adds; the
 * order of each sum depends on sizes only, unless tensor cores multiply (emit_mma). */
#ifndef EMIT_BLOCKS_BLOCK_ATTENTION_H
#define EMIT_BLOCKS_BLOCK_ATTENTION_H

#include "emit/kernel/compile.h"
#include "hlo/analysis/attention.h"

/* A block has EMIT_ATTENTION_GROUPS groups of EMIT_ATTENTION_LANES threads.  A group computes some rows of a tile for
 * some keys of the tile: `parts` groups share the keys of the same rows. */
enum { EMIT_ATTENTION_GROUPS = 16, EMIT_ATTENTION_LANES = 16 };

enum {
  EMIT_ATTENTION_MMA_LANES = 4, /* if tensor cores multiply: the lanes that have the same rows */
  EMIT_ATTENTION_MMA_ROWS = 2,  /* the rows of a lane */
  EMIT_ATTENTION_MMA_KEYS = 16  /* the most keys of a lane in a tile; it has half as many if heads are wide */
};

/* The config. */
typedef struct emit_block_attention {
  int64_t rows;   /* the number of rows of a group: 1, 2 or 4; 1 if there are several parts */
  int64_t keys;   /* the number of keys of a thread in a tile: 1, 2 or 4 */
  int64_t parts;  /* a power of 2, at most EMIT_ATTENTION_GROUPS */
  int64_t splits; /* how many blocks share the keys of the same rows: a power of 2, at most EMIT_MOST_PARTS */
  int64_t mma;    /* whether tensor cores compute both products; `rows` is then EMIT_ATTENTION_MMA_ROWS, `keys` is
                     EMIT_ATTENTION_MMA_KEYS or half of it, and `parts` is 1 */
} emit_block_attention;

/* Returns true if the config can be used for the attention: its numbers are floats of one computing type
 * (emit_compute_type), the sizes of its heads are constants, and a block has enough shared memory and registers. */
bool emit_block_attention_fits(const hlo_attention *a, const emit_block_attention *c);
/* Sets *out to the config that should be used for likely sizes.  `divides` says whether the keys of the same rows may
 * be divided among several blocks (`splits` above 1), which changes the order in which sums are added.  Returns false
 * if there is no config. */
bool emit_choose_block_attention(const hlo_attention *a, bool divides, emit_block_attention *out);
/* Does the same for tensor cores.  Also returns false if there are so few rows that other kernels are better. */
bool emit_choose_mma_attention(const emit_target *t, const hlo_attention *a, bool divides, emit_block_attention *out);
/* Returns true if tensor cores of the target multiply factors of the attention's types and, for f16, no exponential can
 * be more than 1, since the scores are shifted by their maximum. */
bool emit_takes_mma_attention(const emit_target *t, const hlo_attention *a);

/* Return the bytes of scratch memory, and the number of counters, s32, that the kernel needs.  Both are 0 unless the
 * keys of the same rows are divided among several blocks. */
dim emit_block_attention_scratch(const hlo_attention *a, const emit_block_attention *c);
dim emit_block_attention_counters(const hlo_attention *a, const emit_block_attention *c);

/* Writes the kernel for a fusion of kind attention; the config is an emit_block_attention.  If blocks share keys,
 * scratch memory and counters are buffers after the result (EMIT_PARTS_BUFFERS). */
emit_write_fn emit_block_attention_kernel;

#endif
