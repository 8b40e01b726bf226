/* placement.h - assigns offsets in one arena to slices of memory with lifetimes. */
#ifndef BASE_PLACEMENT_H
#define BASE_PLACEMENT_H

#include "base/arena.h"
#include "base/status.h"

/* A slice that is live from time `first` to time `last`, both included. */
typedef struct live_slice {
  uint64_t bytes, offset;
  uint32_t first, last;
} live_slice;

/* Sets the offsets of n slices so that slices that are live at the same time do not overlap.  The offsets are multiples
 * of 64.  No slice is live after time end + 1.  *bytes becomes the size of the arena.  *lower_bound becomes the largest
 * sum of the sizes, each rounded up to a multiple of 64, of the slices that are live at one time; no arena can be
 * smaller.  lower_bound may be NULL.  Temporary memory comes from `a`.  Fails only if the budget of `a` is cancelled or
 * its deadline has passed. */
STATUS_MUST_USE status place_slices(arena *a, uint32_t n, live_slice *slices, uint32_t end, uint64_t *bytes,
                                    uint64_t *lower_bound);

#endif
