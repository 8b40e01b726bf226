/* product_internal.h - functions that the files of product.h share, and that kernels of attention use as well. */
#ifndef EMIT_PRODUCT_PRODUCT_INTERNAL_H
#define EMIT_PRODUCT_PRODUCT_INTERNAL_H

#include "base/arith.h"
#include "emit/llvm/function.h"
#include "emit/product/gemm.h"
#include "emit/product/product.h"
#include "emit/kernel/writer.h"

/* Returns the offset in A, or in B if in_b, of iteration number `index` of the loop nest `levels`: an i64, in elements.
 */
LLVMValueRef emit_level_offset(const emit_indexer *x, int64_t n, const emit_level *levels, bool in_b,
                               LLVMValueRef index);

/* Writes the body of a kernel that copies A, which begins at `a`, with zeros around it to `copy`.  Sets its grid and
 * cost. */
void emit_product_padding(emit_writer *w, const emit_product *p, LLVMValueRef a, LLVMValueRef copy);

/* Writes the body of a kernel that packs B, whose batch 0 begins at `b`, as panels at `packed`.  Sets its grid and
 * cost. */
void emit_product_panels(emit_writer *w, const emit_product *p, LLVMValueRef b, LLVMValueRef packed);

/* What the code of pad_line depends on: the type of the elements, and the lanes of the vectors that it copies. */
typedef struct emit_line {
  dtype type;
  int lanes;
} emit_line;
/* Returns the shared function
 *
 *     void pad_line(to, from, low, length, high)
 *
 * which writes `low` zeros, a copy of `length` elements and `high` zeros to `to`.  *line is borrowed. */
emit_shared emit_pad_line(const emit_ir *w, const emit_line *line);

/* The arguments of a kernel for any number of rows (emit_product_dynamic_m): the number of row blocks, and how many of
 * them are large; the number of row blocks and of column blocks in a step of the grid; the number of steps along rows
 * or columns, whichever consecutive steps go along (emit_product.rows_first). */
enum {
  EMIT_PRODUCT_BLOCKS,
  EMIT_PRODUCT_LARGE,
  EMIT_PRODUCT_ROW_BLOCKS,
  EMIT_PRODUCT_COLUMN_BLOCKS,
  EMIT_PRODUCT_FIRST
};

/* Returns a / b, rounded up.  The table may be NULL if both sizes are constants. */
dim emit_dim_ceil_over(dim_table *t, dim a, dim b);

/* Returns the number of elements of the copy of A, rounded up to whole cache lines; the panels of B follow it. */
dim emit_product_copied(dim_table *t, const emit_product *p);

/* Returns the number of panels into which B is packed for one group of one batch. */
dim emit_product_panels_of(dim_table *t, const emit_product *p);

/* The bytes of a dot group, and the number of integers in one of p. */
enum { EMIT_DOT_BYTES = 4 };
int64_t emit_product_dot_group(const emit_product *p);

/* Returns the estimated time of the whole product, in nanoseconds. */
double emit_product_cost(dim_table *t, const emit_product *p);
/* Returns the number of groups in all batches together. */
dim emit_product_outside(dim_table *t, const emit_product *p);

/* The steps of the grid: their number along the rows and along the columns of one group of one batch, and the number of
 * blocks of rows (emit_row_cut) in a step. */
typedef struct emit_product_grid {
  dim row_steps, column_steps, row_blocks;
} emit_product_grid;
emit_product_grid emit_product_grid_of(dim_table *t, const emit_product *p);

/* The blocks into which the columns of a group are divided: first n_large blocks of `large` vectors, then blocks of
 * `small` vectors; n blocks in all.  A size of 0 means that there are no such blocks. */
typedef struct emit_product_columns {
  int64_t large, small;
  dim n_large, n;
} emit_product_columns;
/* Divides the columns into blocks of at most `vectors` vectors.  If their number is not a constant, each vector that is
 * left after the whole blocks is a block of its own; otherwise the table may be NULL. */
emit_product_columns emit_product_columns_of(dim_table *t, const emit_product *p, int64_t vectors);

#endif
