/* softmax.h - what is known of the steps of a softmax in a row-wise computation (row_space.h):
 *
 *     y = e^(x - m) / s, where m is the maximum of x's row and s the sum of the exponentials of a row,
 *
 * and of its logarithm, (x - m) - log s.  Kernels compute such steps with fewer instructions than the operations take
 * in general, and get the same bits.  Reshapes may stand between the steps. */
#ifndef HLO_ANALYSIS_SOFTMAX_H
#define HLO_ANALYSIS_SOFTMAX_H

#include "hlo/analysis/row_space.h"

/* If i is x - m, where m is the maximum of x's row, returns the reduction that computes m; otherwise NULL.  Each
 * element of i is at most 0, or NaN. */
const hlo_instr *hlo_maximum_subtracted(const hlo_row_space *s, const hlo_instr *i);

/* Returns true if i is e^(x - m), whose elements are at most 1, or NaN. */
bool hlo_is_softmax_exponential(const hlo_row_space *s, const hlo_instr *i);

/* Returns true if i is e^(x - m) / s.  If the row has no NaN, its numerators are in [0, 1], and s is at least 1. */
bool hlo_is_softmax_quotient(const hlo_row_space *s, const hlo_instr *i);

/* Returns true if the reduction `max` computes an m that is used for softmaxes and their logarithms only.  Then all
 * results of a row that has a NaN are NaN, also if m is the maximum of the other elements.  It does not matter either
 * which zero m is. */
bool hlo_maximum_may_ignore_nan(const hlo_row_space *s, const hlo_instr *max);

#endif
