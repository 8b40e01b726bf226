/* flash_attention_internal.h - the state of flash_attention.h's kernel while its code is written. */
#ifndef EMIT_CONTRACTION_FLASH_ATTENTION_INTERNAL_H
#define EMIT_CONTRACTION_FLASH_ATTENTION_INTERNAL_H

#include "emit/contraction/flash_attention.h"
#include "emit/kernel/writer.h"

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

/* Returns the address of the score of a row of the tile and a key of the block. */
LLVMValueRef emit_flash_score_at(const emit_flash *f, LLVMValueRef row, LLVMValueRef key);
/* Returns the address of the element of q at a row of the tile and a column. */
LLVMValueRef emit_flash_row_at(const emit_flash *f, LLVMValueRef row, LLVMValueRef column);
/* Writes the product of the block of k with the tile's rows of q, and stores it in f->scores. */
void emit_flash_scores(const emit_flash *f);

/* Writes the code of `many`, and if the kernel reads k in place for tiles of few rows, that of `few` and a branch
 * between the two. */
typedef void emit_flash_part(const emit_flash *f);
void emit_flash_branch(const emit_flash *f, emit_flash_part *many, emit_flash_part *few);

#endif
