/* bounds.c - checks that integers lie within bounds. */
#include "base/tensor/bounds.h"

#include <inttypes.h>

/* These loops have no branches: a single unsigned comparison finds out whether a number is out of bounds, and the
 * results of the comparisons are combined by `or`. */
#define DEFINE_OUTSIDE(type, wide)                                                                                 \
  static bool type##_outside(const type *x, int64_t begin, int64_t end, int64_t step, int64_t low, int64_t high) { \
    uint64_t first = (uint64_t)low, extent = (uint64_t)high - first;                                               \
    unsigned bad = 0;                                                                                              \
    if (step == 1) {                                                                                               \
      for (int64_t k = begin; k < end; k++) {                                                                      \
        bad |= (uint64_t)(wide)x[k] - first >= extent;                                                             \
      }                                                                                                            \
    } else {                                                                                                       \
      for (int64_t k = begin; k < end; k += step) {                                                                \
        bad |= (uint64_t)(wide)x[k] - first >= extent;                                                             \
      }                                                                                                            \
    }                                                                                                              \
    return bad;                                                                                                    \
  }
DEFINE_OUTSIDE(int8_t, int64_t)
DEFINE_OUTSIDE(int16_t, int64_t)
DEFINE_OUTSIDE(int32_t, int64_t)
DEFINE_OUTSIDE(int64_t, int64_t)
DEFINE_OUTSIDE(uint8_t, uint64_t)
DEFINE_OUTSIDE(uint16_t, uint64_t)
DEFINE_OUTSIDE(uint32_t, uint64_t)
DEFINE_OUTSIDE(uint64_t, uint64_t)

/* A register of numbers of 64 bits, at any address of such a number.  All processors for which compilers write vectors
 * have registers of 16 bytes.  Larger vectors would be kept in memory where registers have no more. */
typedef uint64_t pair __attribute__((vector_size(16), aligned(8), may_alias));
enum { PAIR = 2, PAIRS = 4 };
#define BIG ((int64_t)1 << 62)

/* Returns true if one of the elements [begin, end) is outside of [low, high), where -2^62 <= low <= 0 <= high <=
 * 2^62.  Nearly all indices have 64 bits, which processors without AVX-512 cannot compare as unsigned numbers.  But x
 * is out of bounds if and only if x - low or high - 1 - x is negative: what is too small makes the first negative, what
 * is too large the second, and neither wraps around then. */
static bool i64_outside(const void *data, int64_t begin, int64_t end, int64_t low, int64_t high) {
  const uint64_t *x = data, first = (uint64_t)low, last = (uint64_t)high - 1;
  pair a = {0}, b = {0};
  int64_t k = begin;
  for (; end - k >= PAIR * PAIRS; k += PAIR * PAIRS) {
    const pair *v = (const pair *)(x + k);
    a |= (v[0] - first) | (last - v[0]);
    b |= (v[1] - first) | (last - v[1]);
    a |= (v[2] - first) | (last - v[2]);
    b |= (v[3] - first) | (last - v[3]);
  }
  a |= b;
  uint64_t sign = a[0] | a[1];
  for (; k < end; k++) {
    sign |= (x[k] - first) | (last - x[k]);
  }
  return sign >> 63;
}

/* Returns true if one of the elements begin, begin + step, ... below `end` is out of bounds.  Types of less than 8 bits
 * have one byte per element. */
static bool is_outside(dtype type, const void *data, int64_t begin, int64_t end, int64_t step, int64_t low,
                       int64_t high) {
  bool is_signed = dtype_is_signed(type);
  switch (dtype_bytes(type)) {
    case 1:
      return is_signed ? int8_t_outside(data, begin, end, step, low, high)
                       : uint8_t_outside(data, begin, end, step, low, high);
    case 2:
      return is_signed ? int16_t_outside(data, begin, end, step, low, high)
                       : uint16_t_outside(data, begin, end, step, low, high);
    case 4:
      return is_signed ? int32_t_outside(data, begin, end, step, low, high)
                       : uint32_t_outside(data, begin, end, step, low, high);
    default:
      if (step == 1 && low >= -BIG && low <= 0 && high >= 0 && high <= BIG) {
        return i64_outside(data, begin, end, low, high);
      }
      return is_signed ? int64_t_outside(data, begin, end, step, low, high)
                       : uint64_t_outside(data, begin, end, step, low, high);
  }
}

/* Returns true if an element is 0.  As unsigned numbers, the interval [1, 0) wraps around and contains everything but
 * 0. */
static bool has_zeros(dtype type, const void *data, int64_t begin, int64_t end) {
  return is_outside(type, data, begin, end, 1, 1, 0);
}

static int64_t lowest(const bounds *b, uint32_t k) { return b->from_end ? -b->limits[k] : 0; }

bool bounds_hold(const bounds *b, dtype type, const void *data, int64_t begin, int64_t end) {
  bool bad = b->n == 0 && has_zeros(type, data, begin, end);
  for (uint32_t k = 0; k < b->n && !bad; k++) {
    bad = is_outside(type, data, begin + k, end, b->n, lowest(b, k), b->limits[k]);
  }
  return !bad;
}

status bounds_check(const bounds *b, dtype type, const void *data, int64_t count) {
  int64_t at = 0;
  if (bounds_hold(b, type, data, 0, count)) {
    return NULL;
  }
  while (b->n ? !is_outside(type, data, at, at + 1, 1, lowest(b, (uint32_t)(at % b->n)), b->limits[at % b->n])
              : !has_zeros(type, data, at, at + 1)) {
    at++;
  }
  CHECK_THAT(b->n, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_VALUE,
             "%s holds 0, by which integers cannot be divided (element %" PRId64 ")", b->what, at);
  int64_t value = dtype_load_i64(type, (const char *)data + (size_t)at * dtype_bytes(type));
  return status_error(STATUS_INVALID_ARGUMENT | STATUS_ABOUT_VALUE,
                      "%s holds %" PRId64 ", outside of [%" PRId64 ", %" PRId64 ") (element %" PRId64 ")", b->what,
                      value, lowest(b, (uint32_t)(at % b->n)), b->limits[at % b->n], at);
}
