/* row_space.h - row-wise computations: reductions over the same dimensions of arrays of one size, with elementwise
 * operations before, between and after them.
 *
 * Each reduction gives one value a row, and no row depends on another one.  So one kernel can do everything for a row
 * while it is in the cache.  Pass row_fusion makes such fusions and emit/ writes their kernels; both use this file to
 * decide what a row-wise fusion is. */
#ifndef HLO_ANALYSIS_ROW_SPACE_H
#define HLO_ANALYSIS_ROW_SPACE_H

#include "hlo/ir/ir.h"

enum { HLO_ROW_DIMS = 6 };

/* The dimensions of a full array, which has all elements of all rows, from the outermost to the innermost.
 * Neighbouring dimensions are merged if both are kept or both are reduced; dimensions of 1 are left out.  So a reshape
 * does not change the row space.  Two sizes count as equal only if they are so for all values of symbols. */
typedef struct hlo_row_space {
  dim_table *table;
  int rank;
  dim dims[HLO_ROW_DIMS];
  bool gone[HLO_ROW_DIMS]; /* whether reductions run along the dimension */
  /* `rows` is the number of rows, and so also the number of elements of a reduction's result.  `length` is the number
   * of elements in a row, and `elements` the number of elements in all rows.  If they are symbolic, each of them may be
   * 0 or 1. */
  dim rows, length, elements;
} hlo_row_space;

/* Sets *s to the row space of a reduction.  Returns false if the operand is known to have no elements or rows of one
 * element, if it has strings or dynamic dimensions, or if kept and reduced dimensions alternate too often. */
bool hlo_row_space_of(const hlo_instr *reduce, hlo_row_space *s);
bool hlo_row_space_equal(const hlo_row_space *a, const hlo_row_space *b);

/* hlo_is_full returns true if x is a full array, hlo_is_kept if x has one element for each row. */
bool hlo_is_full(const hlo_row_space *s, const shape *x);
bool hlo_is_kept(const hlo_row_space *s, const shape *x);

/* Returns true if the reduction's operand is a full array, and its result has one value for each row. */
bool hlo_reduces_rows(const hlo_row_space *s, const hlo_instr *reduce);
/* Returns true if the broadcast copies the value of each row to all elements of the row. */
bool hlo_broadcasts_rows(const hlo_row_space *s, const hlo_instr *broadcast);
/* Returns true for elementwise operations, reshapes and copies: each element of the result depends on the operands'
 * elements at the same linear position only. */
bool hlo_is_position_wise(const hlo_instr *i);

/* Returns true if `body` is the body of a row-wise fusion and is worth a row-wise kernel, and sets *s.  It is such a
 * body if all results are full arrays or have one value for each row, and all reductions have the row space *s and are
 * used only for their own rows.  It is worth a kernel if a full array depends on a reduction, or if there are results
 * of both sizes. */
bool hlo_is_row_wise(const hlo_computation *body, hlo_row_space *s);

#endif
