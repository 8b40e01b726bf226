/* bounds.h - checks integers that come from data: an index must lie within an array, and a divisor must not be 0. */
#ifndef BASE_TENSOR_BOUNDS_H
#define BASE_TENSOR_BOUNDS_H

#include "base/tensor/dtype.h"
#include "base/status.h"

/* The bounds of the integers of an array: element k must be less than limits[k % n], and at least 0 or, with from_end,
 * -limits[k % n].  If n is 0, no element may be 0. */
typedef struct bounds {
  const char *what; /* the name of the array, for messages */
  uint32_t n;
  const int64_t *limits; /* not negative */
  bool from_end;         /* negative integers count from the end of a dimension */
} bounds;

/* Returns true if elements [begin, end) of the array lie within the bounds.  Unless n is 0, `begin` must be a multiple
 * of n. */
bool bounds_hold(const bounds *b, dtype type, const void *data, int64_t begin, int64_t end);
/* Returns INVALID_ARGUMENT (STATUS_ABOUT_VALUE) if one of `count` elements is out of bounds; the message names the
 * first one. */
STATUS_MUST_USE status bounds_check(const bounds *b, dtype type, const void *data, int64_t count);

#endif
