/* same_values.h - tells whether two modules of the same signature compute the same, as the expected output of a pass
 * must. */
#ifndef TESTS_HLO_SAME_VALUES_H
#define TESTS_HLO_SAME_VALUES_H

#include "hlo/ir/ir.h"

/* How close floats must be.  Everything else, infinities, NaNs and the signs of zeros included, must be the same. */
typedef enum same_floats {
  SAME_BITS,    /* all NaNs count as equal */
  SAME_ROUNDED, /* for sums in another order: floats may differ by 2^-16 of the result's largest element; only ordinary
                   numbers are tried */
} same_floats;

/* Evaluates both with the reference evaluator, on ordinary numbers and on the ends of each type: the smallest and the
 * largest integers, -0, infinities, NaN, subnormal numbers.  If they differ, fails and names the round, the result and
 * the element.  The codes UNSUPPORTED and RESOURCE mean that the modules cannot be evaluated. */
STATUS_MUST_USE status same_values(const hlo_module *before, const hlo_module *after, same_floats how, arena *a);

/* Returns an array for a parameter in round number `round`: only ordinary numbers in the first two rounds; after these
 * also the ends of types, infinities and NaNs, fewer with each round. */
literal same_values_input(const shape *s, uint32_t round, uint64_t *state, arena *a);
/* Fails if result number `result` differs. */
STATUS_MUST_USE status same_values_result(const literal *want, const literal *got, same_floats how, uint32_t round,
                                          uint32_t result);

#endif
