/* value_range.h - bounds of the elements of arrays, from the operations that compute them. */
#ifndef HLO_ANALYSIS_VALUE_RANGE_H
#define HLO_ANALYSIS_VALUE_RANGE_H

#include "hlo/ir/ir.h"

typedef struct hlo_value_range {
  double low, high; /* no element is smaller or larger, and none is NaN; both are finite */
  bool whole;       /* whether all elements are integers */
  bool known;       /* whether the members above are valid; true for all arrays of integers */
} hlo_value_range;

/* The ranges of a computation's values, as they were when hlo_value_ranges_make was called. */
typedef struct hlo_value_ranges {
  const hlo_value_range *items; /* by hlo_instr.id */
  const hlo_instr *const *instrs;
  uint32_t n;
} hlo_value_ranges;

/* Numbers the instructions of c (hlo_number) and finds the ranges of their results. */
hlo_value_ranges hlo_value_ranges_make(hlo_computation *c, arena *scratch);
/* Returns the range of v.  If v was made later, its type is all that is known. */
hlo_value_range hlo_value_range_of(const hlo_value_ranges *ranges, hlo_value v);
/* Returns the largest absolute value that an element of v can have, or infinity if that is not known. */
double hlo_largest_magnitude(const hlo_value_ranges *ranges, hlo_value v);

#endif
