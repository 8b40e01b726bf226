/* extreme.h - the smaller and the larger one of two sizes, without a question about sizes if possible. */
#ifndef BASE_DIM_EXTREME_H
#define BASE_DIM_EXTREME_H

#include "base/dim/guard.h"

/* Return the smaller or the larger one of two sizes: the one that is known to be, otherwise an expression for all sizes
 * (dim_min, dim_max), or, after dim_decide_extremes, the one that is so at the hints, with a guard (base/dim/guard.h).
 */
dim dim_smaller(dim_table *t, dim a, dim b);
dim dim_larger(dim_table *t, dim a, dim b);
void dim_decide_extremes(dim_table *t);
/* Returns true if such an expression is a part of an equation among the guards, or of a size that was pinned.  Such an
 * equation can rarely be solved; if the hints decide, an inequality takes its place.  Also returns true if `failed` is
 * set and there is such an expression, since it may be the cause. */
bool dim_must_decide_extremes(const dim_table *t, bool failed);
/* Returns true if a part of d is a minimum or a maximum. */
bool dim_contains_extreme(const dim_table *t, dim d);

#endif
