/* same_values.h - do two modules of the same signature compute the same?  What a golden file's writer must know first.
 */
#ifndef TESTS_HLO_SAME_VALUES_H
#define TESTS_HLO_SAME_VALUES_H

#include "hlo/ir/ir.h"

/* How close floats must be.  Everything else, infinities, NaNs and the signs of zeros included, must be the same. */
typedef enum same_floats {
  SAME_BITS,    /* any NaN is any other */
  SAME_ROUNDED, /* sums in another order: within 2^-16 of the result's largest element, on ordinary numbers alone */
} same_floats;

/* Evaluates both with the reference evaluator, on ordinary numbers and on the ends of each type: the smallest and the
 * largest integers, -0, infinities, NaN, subnormal numbers.  Fails and names round, result and element where they
 * differ. UNSUPPORTED or RESOURCE: they cannot be evaluated. */
STATUS_MUST_USE status same_values(const hlo_module *before, const hlo_module *after, same_floats how, arena *a);

#endif
