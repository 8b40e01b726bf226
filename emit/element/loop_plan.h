/* loop_plan.h - decides which dimensions may be merged into one loop, and the widths of vectors.
 *
 * The elements of a value have a linear order.  Elementwise operations and reshapes keep it, so that one loop can run
 * over all elements.  Other operations that move elements, such as transposes, need the position along some dimensions,
 * so loops must not merge these with their neighbours.  The boundary between two dimensions is given as the product of
 * the extents to the right of it. */
#ifndef EMIT_ELEMENT_LOOP_PLAN_H
#define EMIT_ELEMENT_LOOP_PLAN_H

#include "emit/element/element.h"

enum { EMIT_MAX_DIM_BOUNDARIES = 64 };

typedef struct emit_dim_boundaries {
  int n;
  /* The boundaries are in no order.  If there are too many, some are left out, which only makes code slower. */
  dim at[EMIT_MAX_DIM_BOUNDARIES];
} emit_dim_boundaries;

/* Adds to *c the boundaries across which a loop over the elements of v must not merge dimensions. */
void emit_dim_boundaries_of(const emit_element *e, hlo_value v, emit_dim_boundaries *c);
bool emit_is_dim_boundary(const emit_dim_boundaries *c, dim elements_right_of_it);

/* Sets the extents of a loop nest over `total` elements, outermost first.  There is one loop for each part between two
 * boundaries.  A boundary is left out if it is not a multiple of the next smaller one, or does not divide `total`.
 * Returns the number of loops. */
int emit_loop_extents(const emit_indexer *x, const emit_dim_boundaries *c, dim total, dim extents[SHAPE_MAX_RANK]);

/* Returns, in ascending order, the positions at which a loop over the innermost dimension (of `inner` elements) should
 * be split.  At these positions, the elements of the roots begin to come from another operand of a concatenation or
 * from padding, or the distance between constant indices of a gather changes. *n is the number of positions; if there
 * are none or too many, or if `inner` is not a constant, it is 0 and NULL is returned. */
const int64_t *emit_split_points_of(const emit_element *e, uint32_t n_roots, const hlo_value *roots, dim inner, int *n);

/* Chooses a vector width among `lanes`, lanes / 2 and so on down to 4, and 1.  With width w, a loop over n elements has
 * n / w iterations over vectors and then n % w over single elements; the width with the fewest iterations is returned.
 * Of several such widths up to n, it is the widest; a width above n is never returned.  If n is not a constant, it is
 * `lanes`. */
int emit_choose_lanes(dim n, int lanes);

/* Returns how many elements next to each other a kernel should compute at once: those of up to `vectors` vectors, a
 * power of two.  They are as many as n is a multiple of, unless n is not a constant, and as leave enough work for all
 * threads if there are `rows` times n elements.  If there are no two such vectors, this is what emit_choose_lanes
 * returns for n and e->wide. */
int emit_lanes_of_vectors(const emit_element *e, dim rows, dim n, int vectors);

/* Sums of columns, side by side, read more than a cache line of each row.  Functions are long chains of instructions
 * with many constants, which vectors share; there are registers for two. */
enum { EMIT_COLUMN_VECTORS = 4, EMIT_MATH_VECTORS = 2 };
/* If v, or a value that v reads at the same position, is a reduction in which each lane has its own sum, returns how
 * many vectors of sums should be computed side by side.  Otherwise returns 0. */
int emit_column_vectors(const emit_element *e, hlo_value v);

/* Returns true if v should be computed one element at a time, because each element needs a loop that can itself use
 * vectors, such as a reduction along the innermost dimension of an operand. */
bool emit_prefers_row_loop(const emit_element *e, hlo_value v);
/* Returns true if an element of v is computed by a function that takes tens of instructions, such as an exponential. */
bool emit_takes_math(const emit_element *e, hlo_value v);
/* Returns true if i is a reduce or arg-reduce along the innermost dimension of its operand, or a dot whose last
 * contracted dimension is the innermost one of both operands.  Dimensions of extent 1 do not count as innermost. */
bool emit_reduces_rows(const hlo_instr *i);

#endif
