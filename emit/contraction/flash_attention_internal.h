/* flash_attention_internal.h - the state of flash_attention.h's kernel while its code is written. */
#ifndef EMIT_CONTRACTION_FLASH_ATTENTION_INTERNAL_H
#define EMIT_CONTRACTION_FLASH_ATTENTION_INTERNAL_H

#include "emit/contraction/flash_attention.h"
#include "emit/kernel/writer.h"
#include "emit/llvm/function.h"
#include "emit/product/gemm.h"

typedef struct emit_flash {
  emit_writer w;
  emit_flash_attention c;
  hlo_attention a;
  /* Memory of a step. `rows` holds the tile's rows of q. `scores` holds the scores of the tile's rows and a block's
   * keys, and later their exponentials. `panels` holds the block of k. `values` holds for each row of the tile the sum
   * of the rows of v, each times its exponential.  The last four have one number for each row of the tile: the largest
   * score, the number that is subtracted from the scores before the exponential (hlo_attention's shift), the sum of the
   * exponentials, and the factor by which the sums of the earlier blocks are multiplied. */
  LLVMValueRef rows, scores, panels, values;
  LLVMValueRef maxima, shifts, totals, factors;
  /* The tile: the addresses of its first row in q and in out, and of the first key of the batch in k and in v; the
   * number of its first row, counted over all batches; how many rows it has; and an i1 that is true if these are
   * few. */
  LLVMValueRef q, k, v, out, row, n_rows, few;
  LLVMValueRef key, n_keys; /* the first key of the block and the number of its keys */
} emit_flash;

/* Writes the product of the block of k with the tile's rows of q, and stores it in f->scores. */
void emit_flash_scores(const emit_flash *f);

/* Writes the code of `many`, and if the kernel reads k in place for tiles of few rows, that of `few` and a branch
 * between the two. */
typedef void emit_flash_part(const emit_flash *f);
void emit_flash_branch(const emit_flash *f, emit_flash_part *many, emit_flash_part *few);

/* The vectors of a row of a register block, at most, and the rows of one. */
enum { EMIT_FLASH_VECTORS = 2 };
int64_t emit_flash_rows(const emit_target *t);

/* --- functions (flash_attention_functions.c) --- */

/* All arrays are of f32, and distances are counted in elements.  Numbers of rows, keys, columns and sums are at least
 * 1, but where a range may be empty.  What is written may be padded: rows to whole blocks, keys to whole vectors. */

/* Copies keys [0, keys), whole panels, in squares of `rows` by `rows` elements, which divide the sums:
 *     void f(panels, k, row_step, keys, sums) */
emit_shared emit_flash_squares(const emit_ir *w, const emit_gemm_tile *square);
/* Copies keys [from, to), `rows` contiguous ones at a time:
 *     void f(panels, k, row_step, column_step, from, to, sums) */
emit_shared emit_flash_columns(const emit_ir *w, const emit_gemm_tile *keys);
/* Multiplies n rows of q by `vectors` vectors of keys in panels.  Scores of a row are `step` after those of the row
 * before:
 *     void f(scores, rows, panels, n, vectors, sums, step) */
emit_shared emit_flash_scores_of_many(const emit_ir *w, const emit_gemm_tile *tile);
/* Multiplies n rows of q by keys in place, in vectors of tile->lanes, which divide the sums:
 *     void f(scores, rows, k, row_step, n, keys, sums, step) */
emit_shared emit_flash_scores_of_few(const emit_ir *w, const emit_gemm_tile *tile);

typedef struct emit_flash_raise {
  int lanes;
  bool by_maximum; /* see emit_score_exponential */
} emit_flash_raise;
/* Replaces the scores of n rows by their exponentials, and adds their sums to the totals, which are multiplied by the
 * factors before; `keys` is a multiple of the lanes:
 *     void f(scores, shifts, factors, totals, n, keys, step) */
emit_shared emit_flash_exponentials(const emit_ir *w, const emit_flash_raise *raise);
/* Multiplies n rows of scores by `columns` columns of v, and adds the products to the values, whose rows of `width`
 * elements are multiplied by the factors before:
 *     void f(values, scores, factors, v, v_row_step, n, keys, columns, width, step) */
emit_shared emit_flash_values(const emit_ir *w, const emit_gemm_tile *tile);

/* Returns the shift, or 0 if it is -infinity, as it is while all scores so far are masked (-infinity).  With 0 as the
 * shift, masked scores stay -infinity and their exponentials are 0, as if the keys were not there. */
LLVMValueRef emit_flash_usable(const emit_ir *w, LLVMValueRef shift);

#endif
