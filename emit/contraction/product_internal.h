/* product_internal.h - functions that the files of product.h share, and that kernels of attention use as well. */
#ifndef EMIT_CONTRACTION_PRODUCT_INTERNAL_H
#define EMIT_CONTRACTION_PRODUCT_INTERNAL_H

#include "base/arith.h"
#include "emit/contraction/product.h"
#include "emit/kernel/writer.h"

/* Returns the offset in A, or in B if in_b, of iteration number `index` of the loop nest `levels`: an i64, in elements.
 */
LLVMValueRef emit_level_offset(const emit_ir *w, int64_t n, const emit_level *levels, bool in_b, LLVMValueRef index);

/* Writes the body of a kernel that copies A, which begins at `a`, with zeros around it to `copy`.  Sets its grid and
 * cost. */
void emit_product_padding(emit_writer *w, const emit_product *p, LLVMValueRef a, LLVMValueRef copy);

/* Writes the body of a kernel that packs B, whose batch 0 begins at `b`, as panels at `packed`.  Sets its grid and
 * cost. */
void emit_product_panels(emit_writer *w, const emit_product *p, LLVMValueRef b, LLVMValueRef packed);

/* The arguments of a kernel for any number of rows (emit_product_dynamic_m): the number of row blocks, and how many of
 * them are large; the number of row blocks and of column blocks in a step of the grid; the number of steps along the
 * dimension along which consecutive steps go (rows_first). */
enum {
  EMIT_PRODUCT_BLOCKS,
  EMIT_PRODUCT_LARGE,
  EMIT_PRODUCT_ROW_BLOCKS,
  EMIT_PRODUCT_COLUMN_BLOCKS,
  EMIT_PRODUCT_FIRST
};

/* Returns the number of panels into which B is packed for one group of one batch. */
static inline int64_t emit_product_panels_of(const emit_product *p) { return ceil_div(p->columns, p->lanes); }

/* Returns the estimated time of the whole product, in nanoseconds. */
double emit_product_cost(const emit_product *p);
/* These return the number of grid steps along the rows and along the columns of one group of one batch, and the number
 * of groups in all batches together. */
int64_t emit_product_row_steps(const emit_product *p);
int64_t emit_product_column_steps(const emit_product *p);
int64_t emit_product_outside(const emit_product *p);

#endif
