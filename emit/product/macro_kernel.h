/* macro_kernel.h - the steps of a product whose rows are divided like a ladder (shared_kernel.h).  For each step of
 * the grid they call a function with the loops around the register blocks.  The names micro-kernel and macro-kernel
 * are those of BLIS.
 *
 *     void f(record, a, b, first_row, first_column, row_from, row_to, column_step)
 *
 * The function computes a step of the product's grid: the blocks of rows [row_from, row_to) (emit_row_cut.blocks) in
 * column step number column_step.  a and b are the addresses of A and B for the step's batch and group; first_row and
 * first_column are the row and the column of C at which that batch and group begin.
 *
 * The rows are divided like a ladder (emit_row_cut.ladder).  A rung is the rows that blocks of one height compute;
 * there is a loop over the rungs, in it one over the columns, and in that one over the rows, so that the panels of B
 * stay in the cache for all rows of a rung.  For each block, a micro-kernel (micro_kernel.h) writes the sums to a tile,
 * and an epilogue that belongs to the kernel computes the results from them:
 *
 *     void epilogue(buffers, args, tile, row, rows, column, width)
 *
 * for `rows` rows from `row` on and `width` columns from `column` on. */
#ifndef EMIT_PRODUCT_MACRO_KERNEL_H
#define EMIT_PRODUCT_MACRO_KERNEL_H

#include "emit/llvm/function.h"
#include "emit/product/micro_kernel.h"
#include "emit/product/product.h"
#include "emit/product/shared_kernel.h"

/* The entries of a rung in the record: the rows of its blocks; the vectors of its wide blocks and of its narrow ones;
 * in a row of blocks, the number of wide blocks, which come first, and the number of all blocks; the micro-kernels of
 * wide and of narrow blocks. */
enum { EMIT_RUNG_ROWS, EMIT_RUNG_WIDTHS, EMIT_RUNG_N_WIDE = 3, EMIT_RUNG_N, EMIT_RUNG_MICRO, EMIT_RUNG_ENTRIES = 7 };
enum { EMIT_MOST_RUNGS = 3, EMIT_MOST_OUTSIDE = 5 };

/* The entries of the record (shared_kernel.h), whose room is the tile.  Distances are in bytes. */
enum {
  EMIT_LADDER_EPILOGUE = EMIT_RECORD_HEAD,
  EMIT_LADDER_INNER,        /* emit_row_cut.inner */
  EMIT_LADDER_INSIDE,       /* the number of row blocks in one iteration of the loops around the blocks */
  EMIT_LADDER_ROW_BYTES,    /* the distance between rows of A */
  EMIT_LADDER_COLUMN_STEPS, /* the number of steps of the grid along the columns */
  EMIT_LADDER_COLUMNS,      /* the number of columns of a group */
  EMIT_LADDER_LANES,        /* the number of columns in a vector */
  EMIT_LADDER_VECTOR_BYTES, /* the distance between vectors of columns in B */
  EMIT_LADDER_N_RUNGS,
  EMIT_LADDER_RUNGS,
  EMIT_LADDER_LOOPS = EMIT_LADDER_RUNGS + EMIT_MOST_RUNGS * EMIT_RUNG_ENTRIES, /* the table of the micro-kernels */
  /* The loops around the blocks, the innermost first: their number; for each its number of iterations and its distance
   * in A. */
  EMIT_LADDER_N_OUTSIDE = EMIT_LADDER_LOOPS + EMIT_MICRO_TABLE,
  EMIT_LADDER_OUTSIDE,
  /* The grid: the addresses of A and B; the number of steps along its first and along its second dimension, and whether
   * the first one goes along the rows (1) or along the columns (0); the number of row blocks in a step, and of all row
   * blocks. */
  EMIT_LADDER_A = EMIT_LADDER_OUTSIDE + EMIT_MOST_OUTSIDE * 2,
  EMIT_LADDER_B,
  EMIT_LADDER_B_START, /* the distance from the address of B to its first element */
  EMIT_LADDER_FIRST,
  EMIT_LADDER_SECOND,
  EMIT_LADDER_ROWS_FIRST,
  EMIT_LADDER_ROW_BLOCKS,
  EMIT_LADDER_BLOCKS,
  /* The third dimension of the grid is the groups of all batches: the number of groups of a batch, their distances in A
   * and in B, the number of rows of a batch.  EMIT_LADDER_PANELS is the distance in B between groups that follow each
   * other, whether they are of one batch or not. */
  EMIT_LADDER_GROUPS,
  EMIT_LADDER_GROUP_A,
  EMIT_LADDER_GROUP_B,
  EMIT_LADDER_PANELS,
  EMIT_LADDER_BATCH_ROWS,
  /* The loops over the batches, the innermost first: their number; for each its number of iterations, its distance in A
   * and that in B. */
  EMIT_LADDER_N_BATCH,
  EMIT_LADDER_BATCH,
  EMIT_LADDER_ENTRIES = EMIT_LADDER_BATCH + EMIT_PRODUCT_LEVELS * 3
};

/* The steps (shared_kernel.h) of such a product. */
extern const emit_shared emit_macro_steps;
/* The parameters of an epilogue. */
enum {
  EMIT_EPILOGUE_BUFFERS,
  EMIT_EPILOGUE_ARGS,
  EMIT_EPILOGUE_TILE,
  EMIT_EPILOGUE_ROW,
  EMIT_EPILOGUE_ROWS,
  EMIT_EPILOGUE_COLUMN,
  EMIT_EPILOGUE_WIDTH,
  EMIT_EPILOGUE_PARAMETERS
};
#define EMIT_EPILOGUE_TYPES "pppiiii" /* emit_shared.parameters */

#endif
