/* bounds.h - integers that must lie within bounds: what an index may be, and that a divisor is not 0. */
#ifndef BASE_TENSOR_BOUNDS_H
#define BASE_TENSOR_BOUNDS_H

#include "base/tensor/dtype.h"
#include "base/status.h"

/* What the integers of an array may be: element k at least low[k % n] and less than high[k % n].  n 0: anything but 0.
 */
typedef struct bounds {
  const char *what; /* the array, for messages */
  uint32_t n;
  const int64_t *low, *high;
} bounds;

/* Do elements [begin, end) of the array keep to them?  begin is a multiple of n. */
bool bounds_hold(const bounds *b, dtype type, const void *data, int64_t begin, int64_t end);
/* INVALID_ARGUMENT about a value that names the first of `count` elements that does not. */
STATUS_MUST_USE status bounds_check(const bounds *b, dtype type, const void *data, int64_t count);

#endif
