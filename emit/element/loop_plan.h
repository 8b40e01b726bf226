/* loop_plan.h - decides which dimensions loops must keep apart.
 *
 * The elements of a value have a linear order.  Elementwise operations and reshapes keep it, so that one loop can run
 * over all elements.  Other movement needs the position along some dimensions.  A boundary between dimensions is given
 * as the product of the dimensions inside of it. */
#ifndef EMIT_ELEMENT_LOOP_PLAN_H
#define EMIT_ELEMENT_LOOP_PLAN_H

#include "emit/element/element.h"

enum { EMIT_MAX_DIM_BOUNDARIES = 64 };

typedef struct emit_dim_boundaries {
  int n;
  /* The boundaries are in no order.  If there are too many, some are left out, which only makes code slower. */
  int64_t at[EMIT_MAX_DIM_BOUNDARIES];
} emit_dim_boundaries;

void emit_dim_boundaries_of(const emit_element *e, hlo_value v, emit_dim_boundaries *c);
bool emit_is_dim_boundary(const emit_dim_boundaries *c, int64_t elements_right_of_it);

/* Sets the extents of a loop nest over `total` elements, outermost first, which respects the boundaries as far as they
 * divide one another.  Returns their number. */
int emit_loop_extents(const emit_dim_boundaries *c, int64_t total, int64_t extents[SHAPE_MAX_RANK]);

/* Returns the positions, in order, at which a loop over the innermost dimension (of `inner` elements) should be split:
 * where the elements of the roots begin to come from another operand of a concatenation, from padding, or with another
 * step of a constant list.  Returns NULL, and the number 0, if there are none or too many. */
const int64_t *emit_split_points_of(const emit_element *e, uint32_t n_roots, const hlo_value *roots, int64_t inner,
                                    int *n);

/* Returns the vector width, at most `lanes`, which needs the fewest steps for n elements: at least 4, or 1. */
int emit_choose_lanes(int64_t n, int lanes);

/* Returns the lanes for sums of columns.  Each of `rows` rows has n columns.  It is several vectors if that leaves
 * enough work for the threads, so that more than a cache line is read at once. */
int emit_column_lanes(int64_t rows, int64_t n, int lanes);
/* Returns true if v, or a value that v reads at the same position, is such a sum. */
bool emit_sums_columns(const emit_element *e, hlo_value v);

/* Returns true if v should be evaluated one element at a time, because that needs a loop along the innermost dimension
 * of an operand which can use vectors itself (a reduction of rows). */
bool emit_prefers_row_loop(const emit_element *e, hlo_value v);
bool emit_reduces_rows(const hlo_instr *i);

#endif
