/* placement.h - offsets in one arena for slices of memory that live for a while. */
#ifndef HLO_SCHEDULE_PLACEMENT_H
#define HLO_SCHEDULE_PLACEMENT_H

#include "base/arena.h"
#include "base/status.h"

/* A slice that is live from time `first` to time `last`, both included. */
typedef struct hlo_live_slice {
  uint64_t bytes, offset;
  uint32_t first, last;
} hlo_live_slice;

/* Sets the offsets of n slices, which are multiples of 64, so that no two overlap that are live at the same time.  No
 * slice is live after time end + 1.  *bytes is the size of the arena that they need; *lower_bound is the size below
 * which no arena can be: what is live at the same time at most.  Fails only if the arena's budget is used up. */
STATUS_MUST_USE status hlo_place_slices(arena *a, uint32_t n, hlo_live_slice *slices, uint32_t end, uint64_t *bytes,
                                        uint64_t *lower_bound);

#endif
