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

/* Returns an array for a parameter in round number `round`: ordinary numbers in the first two rounds, then more and
 * more rarely the ends of types, infinities and NaNs. */
literal same_values_input(const shape *s, uint32_t round, uint64_t *state, arena *a);
/* Fails if result number `result` differs. */
STATUS_MUST_USE status same_values_result(const literal *want, const literal *got, same_floats how, uint32_t round,
                                          uint32_t result);

#endif
