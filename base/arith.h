/* arith.h - arithmetic on sizes that <stdint.h> and <math.h> do not have. */
#ifndef BASE_ARITH_H
#define BASE_ARITH_H

#include <stdint.h>

static inline int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max_i64(int64_t a, int64_t b) { return a > b ? a : b; }

/* ceil_div returns n / step, rounded up.  round_up returns the smallest multiple of step that is at least n.  The
 * parameter n is not negative, step is positive, and n + step must not overflow. */
static inline int64_t ceil_div(int64_t n, int64_t step) { return (n + step - 1) / step; }
static inline int64_t round_up(int64_t n, int64_t step) { return ceil_div(n, step) * step; }
/* Returns a / b, rounded down; b is positive. */
static inline int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }
static inline uint64_t round_up_u64(uint64_t n, uint64_t step) { return (n + step - 1) / step * step; }

/* Return the sum and the product of a and b, which are not negative, or INT64_MAX if it is larger. */
static inline int64_t add_saturated(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}
static inline int64_t mul_saturated(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* Returns the greatest common divisor of a and b.  It is not negative: |b| if a is 0, and |a| if b is 0. */
static inline int64_t gcd_i64(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

#endif
