/* row_space.h - work that goes row by row: reductions over the same dimensions of arrays of one size, with elementwise
 * work before, between and behind them.
 *
 * Each row gives one value a reduction, and nothing of one row is wanted by another; so one kernel can do all of a row
 * while it lies in the cache.  Pass row_fusion makes such fusions, emit/ writes them: both ask here what one is. */
#ifndef HLO_ANALYSIS_ROW_SPACE_H
#define HLO_ANALYSIS_ROW_SPACE_H

#include "hlo/ir/ir.h"

enum { HLO_ROW_DIMS = 6 };

/* The dimensions of a full array in their linear order.  Neighbours that are both kept, or both gone, are one; those of
 * one element are left out.  Reshapes do not change it. */
typedef struct hlo_row_space {
  int rank;
  int64_t dims[HLO_ROW_DIMS];
  bool gone[HLO_ROW_DIMS]; /* reductions run along it */
  int64_t rows, length;    /* elements of a reduction's result; elements that go into each */
} hlo_row_space;

/* The space of a reduction.  Returns false if its rows are of one element, there are none, or too many dimensions
 * alternate. */
bool hlo_row_space_of(const hlo_instr *reduce, hlo_row_space *s);
bool hlo_row_space_equal(const hlo_row_space *a, const hlo_row_space *b);

/* An array of all elements, or of one a row. */
static inline bool hlo_is_full(const hlo_row_space *s, const shape *x) {
  return shape_elements(x) == s->rows * s->length;
}
static inline bool hlo_is_kept(const hlo_row_space *s, const shape *x) { return shape_elements(x) == s->rows; }

/* Does the reduction take a full array to one value a row? */
bool hlo_reduces_rows(const hlo_row_space *s, const hlo_instr *reduce);
/* Does the broadcast give each element of a row the row's value? */
bool hlo_broadcasts_rows(const hlo_row_space *s, const hlo_instr *broadcast);
/* Elementwise operations and reshapes: the element of each operand is that of the result. */
bool hlo_is_position_wise(const hlo_instr *i);

/* Is it the body of a fusion whose kernel goes row by row: all results are full or kept, and where one depends on a
 * reduction, it is one of the space's, of its own row?  And is that of use: a full array depends on a reduction, or
 * results are of both sizes? */
bool hlo_is_row_wise(const hlo_computation *body, hlo_row_space *s);

#endif
