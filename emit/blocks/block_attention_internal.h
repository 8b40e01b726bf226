/* block_attention_internal.h - what the files block_attention*.c share while they write the kernel of
 * block_attention.h: the state of the writing, and the functions that write parts of the kernel. */
#ifndef EMIT_BLOCKS_BLOCK_ATTENTION_INTERNAL_H
#define EMIT_BLOCKS_BLOCK_ATTENTION_INTERNAL_H

#include "emit/blocks/block_attention.h"
#include "emit/kernel/block.h"

enum {
  EMIT_ATTENTION_THREADS = EMIT_ATTENTION_GROUPS * EMIT_ATTENTION_LANES,
  EMIT_ATTENTION_ROWS = 4,    /* the most rows of a group */
  EMIT_ATTENTION_KEYS = 4,    /* the most keys of a thread, unless tensor cores multiply */
  EMIT_ATTENTION_SCORES = 32, /* the most scores of a thread */
  EMIT_ATTENTION_SUMS = 4,    /* sums, or keys, that are loaded from shared memory as one vector */
  EMIT_ATTENTION_VALUES = 32  /* the most values that a thread adds up, or pairs of values if tensor cores multiply */
};

/* What follows from the attention and its config.  Sizes and distances are counted in elements. */
typedef struct emit_attention_tile {
  emit_block_attention c;
  dtype type;            /* the type in which the kernel computes */
  int64_t sums, width;   /* the sizes of a head: those of q and k, and that of v */
  int64_t threads;       /* the threads of a block */
  int64_t lanes;         /* the number of neighbouring threads that have the same rows */
  int64_t rows, keys;    /* the rows and keys of a block's tile */
  int64_t row_step;      /* the distance between a thread's rows */
  int64_t chunk, padded; /* how many of the `sums` columns of k are in shared memory at a time; `sums`, rounded up to a
                            multiple of chunk */
  int64_t vector;        /* the number of neighbouring columns of v that a thread has as a vector */
  int64_t strip, strips; /* the columns of v of all lanes together, one vector of each; how many strips v has */
  dtype factors;         /* if tensor cores multiply: the type of q, k, v and of the rounded exponentials */
  int64_t staged;        /* the elements of shared memory for a part of k or v, or for what groups leave there */
  int64_t left;          /* the elements of scratch memory for what all blocks of a tile leave there */
} emit_attention_tile;

/* Returns false if the config does not fit (emit_block_attention_fits). */
bool emit_attention_tile_of(const hlo_attention *a, const emit_block_attention *c, emit_attention_tile *out);
/* Returns the product of the dimensions over which the dot sums. */
dim emit_attention_sums(const hlo_instr *dot);

/* If n groups (or n blocks) share the keys of the tile's rows, each of them leaves its sums for each row in memory
 * (block_attention_results.c).  Returns how many elements of memory that takes. */
int64_t emit_attention_left_elements(const emit_attention_tile *t, int64_t n);

typedef struct emit_attention_block {
  emit_writer w;
  const emit_ir *ir;
  hlo_attention a;
  emit_attention_tile t;
  LLVMTypeRef element; /* the register type of t.type */
  /* The step: the number of the tile of rows, counted over all batches (`tile`); of the block among those that share
   * the keys of these rows (`split`); of the batch; of the tile's first row in the batch; and of the first key of the
   * tile of keys that is being added.  The thread: its number in the block (`thread`) and in its group (`lane`).  Its
   * group: which rows it has (`row_group`: emit_attention_row_in_tile), which part of the keys, and its number in the
   * block. */
  LLVMValueRef tile, split, batch, first_row, first_key, thread, lane, row_group, part, group;
  LLVMValueRef own_key; /* the number of the thread's first key in the tile */
  /* Shared memory: q[rows][padded]; weights[group][rows of a group][keys of a group], the exponentials; `staged`, a
   * part of k or v.  For tensor cores see block_attention_mma.c. */
  LLVMValueRef q, weights, staged;
  LLVMValueRef q_words[EMIT_ATTENTION_SCORES]; /* for tensor cores: the lane's words of the warp's rows of q */
} emit_attention_block;

/* What a thread keeps of its rows: the largest score, the number that is subtracted from the scores (hlo_attention's
 * shift), the sum of the exponentials, and the sums of the values.  The first two are the same in all lanes that have
 * the row; `total` is only the sum for the thread's keys. */
typedef struct emit_attention_rows {
  LLVMValueRef most[EMIT_ATTENTION_ROWS], shift[EMIT_ATTENTION_ROWS], total[EMIT_ATTENTION_ROWS];
  LLVMValueRef values[EMIT_ATTENTION_VALUES]; /* [row][strip], vectors of columns */
} emit_attention_rows;

/* --- block_attention_results.c --- */

/* Writes what follows the last key: joins the sums of the groups and blocks that share keys, and stores the results. */
void emit_attention_finish(emit_attention_block *k, const emit_attention_rows *rows);

/* --- block_attention_products.c --- */

/* Returns the address of the element of shared memory `at` elements after `base`. */
LLVMValueRef emit_attention_at(const emit_attention_block *k, LLVMValueRef base, LLVMValueRef at);
/* Return the number in the tile, and in the batch, of row number r of the thread's group. */
LLVMValueRef emit_attention_row_in_tile(const emit_attention_block *k, int64_t r);
LLVMValueRef emit_attention_row(const emit_attention_block *k, int64_t r);
/* Brings the tile's rows of q into shared memory. */
void emit_attention_load_rows(emit_attention_block *k);
/* Returns a factor of a dot: that of a row (operand 0), or of a key or column (operand 1), at position `sum` in the
 * sum. */
LLVMValueRef emit_attention_operand(emit_attention_block *k, const hlo_instr *dot, uint32_t operand, emit_pos position,
                                    emit_pos sum);
/* Returns true if neighbouring elements of the operand in memory belong to neighbouring positions in the sum. */
bool emit_attention_has_sums_innermost(const hlo_instr *dot, uint32_t operand);
/* Sets scores[] to the products of the thread's rows of q and its keys, [row][key]. */
void emit_attention_scores(emit_attention_block *k, LLVMValueRef *scores);
/* Adds to values[] the rows of v for the tile's keys, each times its weight.  weights[] has those of the thread,
 * [row][key]. */
void emit_attention_values(emit_attention_block *k, const LLVMValueRef *weights, LLVMValueRef *values);

/* --- block_attention_mma.c --- */

/* Sets which rows and keys the thread has, and allocates shared memory. */
void emit_attention_mma_begin(emit_attention_block *k);
void emit_attention_mma_load_rows(emit_attention_block *k);
/* Updates *rows for a tile of keys. */
void emit_attention_mma_add_keys(emit_attention_block *k, emit_attention_rows *rows);

/* --- block_attention_softmax.c --- */

/* Returns p, or n - 1 if p is not less than n. */
LLVMValueRef emit_attention_within(emit_attention_block *k, LLVMValueRef p, dim n);
/* Returns the shift, or 0 if it is -infinity, as it is while all scores so far are masked.  With 0 as the shift, masked
 * scores stay -infinity, and their exponentials are 0, as if the keys were not there. */
LLVMValueRef emit_attention_usable(const emit_attention_block *k, LLVMValueRef shift);
/* Returns the factor by which sums with the shift `before` become sums with the shift `now`.  `most` is the largest
 * score of the former sums.  If it is -infinity, they are 0, and the factor is 1, so that they stay 0. */
LLVMValueRef emit_attention_factor(const emit_attention_block *k, LLVMValueRef most, LLVMValueRef before,
                                   LLVMValueRef now);
/* Returns the shift of a row whose largest score is `most`. */
LLVMValueRef emit_attention_shift(emit_attention_block *k, LLVMValueRef row, LLVMValueRef most);
/* Returns the number by which the values of a row are multiplied at the end. */
LLVMValueRef emit_attention_inverse(emit_attention_block *k, LLVMValueRef row, LLVMValueRef most, LLVMValueRef shift,
                                    LLVMValueRef total);
/* Replaces the thread's scores [row][key] by their exponentials (the weights), and updates the rows for them. */
void emit_attention_softmax(emit_attention_block *k, LLVMValueRef *scores, emit_attention_rows *rows);
/* Returns the values that x has in all lanes with the same rows, combined by `join`. */
typedef LLVMValueRef emit_attention_join(const emit_ir *ir, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef emit_attention_join_lanes(emit_attention_block *k, LLVMValueRef x, emit_attention_join *join);

#endif
