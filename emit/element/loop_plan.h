/* loop_plan.h - which dimensions loops must keep apart.
 *
 * The elements of a value have a linear order.  Elementwise operations and reshapes keep it, so that one loop
 * could run over all of it; other movement needs the position along some dimensions.  A cut is a boundary
 * between dimensions, as the number of elements to its right (the product of the inner dimensions). */
#ifndef EMIT_ELEMENT_LOOP_PLAN_H
#define EMIT_ELEMENT_LOOP_PLAN_H

#include "emit/element/element.h"

enum { EMIT_MAX_DIM_BOUNDARIES = 64 };

typedef struct emit_dim_boundaries {
  int n;
  int64_t at[EMIT_MAX_DIM_BOUNDARIES]; /* in no order; too many: some are left out, which costs speed only */
} emit_dim_boundaries;

void emit_dim_boundaries_of(const emit_element *e, hlo_value v, emit_dim_boundaries *c);
bool emit_is_dim_boundary(const emit_dim_boundaries *c, int64_t elements_right_of_it);

/* Extents of a loop nest over `total` elements, outermost first, that respects the cuts as far as they divide
 * one another; gives their number. */
int emit_loop_extents(const emit_dim_boundaries *c, int64_t total, int64_t extents[SHAPE_MAX_RANK]);

/* Where a loop over the innermost dimension, of `inner` elements, is better cut into pieces: where the elements of the
 * roots begin to come from another operand of a concatenation, from padding, or by another step of a constant list.  In
 * order; NULL and 0: nowhere, or too often for what is written for each piece. */
const int64_t *emit_split_points_of(const emit_element *e, uint32_t n_roots, const hlo_value *roots, int64_t inner,
                                    int *n);

/* The vector width, at most `lanes`, that runs over n elements in the fewest steps; at least 4, or 1. */
int emit_choose_lanes(int64_t n, int lanes);

/* Lanes for sums of columns, of which `rows` times n stand side by side: several vectors, so that what is read at once
 * is longer than a line of the cache, if that still leaves work for threads. */
int emit_column_lanes(int64_t rows, int64_t n, int lanes);
bool emit_sums_columns(const emit_element *e, hlo_value v); /* is v, or what v is at the same place, such a sum? */

/* Does evaluating v one element at a time want a loop along the innermost dimension of an operand, which can
 * use vectors itself (a reduction of rows)? */
bool emit_prefers_row_loop(const emit_element *e, hlo_value v);
bool emit_reduces_rows(const hlo_instr *i);

#endif
