/* check_placement.c - tests the placement of random slices: slices that are live at the same time do not overlap, and
 * the size and its lower bound are right. */
#include <check.h>
#include <stdlib.h>

#include "base/placement.h"
#include "tests/suite.h"

enum { SEEDS = 300, MOST_SLICES = 200, ALIGN = 64 };

static uint64_t state;

static uint32_t below(uint32_t n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33) % n;
}

static uint64_t padded(uint64_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

static bool live_together(const live_slice *x, const live_slice *y) {
  return x->first <= y->last && y->first <= x->last;
}

/* Returns the most bytes that are live at one time, by adding up the live slices of each time. */
static uint64_t most_live(uint32_t n, const live_slice *slices, uint32_t end) {
  uint64_t most = 0;
  for (uint32_t t = 0; t <= end + 1; t++) {
    uint64_t live = 0;
    for (uint32_t k = 0; k < n; k++) {
      live += slices[k].first <= t && t <= slices[k].last ? padded(slices[k].bytes) : 0;
    }
    most = live > most ? live : most;
  }
  return most;
}

static void check_offsets(uint32_t n, const live_slice *slices, uint64_t bytes) {
  uint64_t highest = 0;
  for (uint32_t k = 0; k < n; k++) {
    const live_slice *x = &slices[k];
    ck_assert_uint_eq(x->offset % ALIGN, 0);
    highest = x->offset + padded(x->bytes) > highest ? x->offset + padded(x->bytes) : highest;
    for (uint32_t j = 0; j < k; j++) {
      const live_slice *y = &slices[j];
      ck_assert(!live_together(x, y) || x->offset + x->bytes <= y->offset || y->offset + y->bytes <= x->offset);
    }
  }
  ck_assert_uint_eq(bytes, highest);
}

/* Times lie close together in some rounds, so that all are live at once, and far apart in others, so that slices live
 * in one slot of time, in several, or in too many to be listed by slot. */
START_TEST(random_slices) {
  state = (uint64_t)_i * 2654435761u + 1;
  static const uint32_t ends[] = {1, 10, 300, 20000, 100000};
  uint32_t end = ends[_i % 5], n = below(MOST_SLICES) + 1;
  live_slice slices[MOST_SLICES];
  for (uint32_t k = 0; k < n; k++) {
    uint32_t first = below(end + 1), length = below(_i % 2 ? end + 1 : end / 50 + 1);
    uint32_t last = first + length > end + 1 ? end + 1 : first + length;
    slices[k] = (live_slice){.bytes = below(3) ? below(5000) + 1 : below(8) + 1, .first = first, .last = last};
  }
  arena *a = arena_create(NULL);
  uint64_t bytes, lower_bound;
  ASSERT_OK(place_slices(a, n, slices, end, &bytes, &lower_bound));
  check_offsets(n, slices, bytes);
  ck_assert_uint_eq(lower_bound, most_live(n, slices, end));
  ck_assert(bytes >= lower_bound);
  arena_destroy(a);
}
END_TEST

START_TEST(nothing_to_place) {
  arena *a = arena_create(NULL);
  uint64_t bytes = 1, lower_bound = 1;
  ASSERT_OK(place_slices(a, 0, NULL, 5, &bytes, &lower_bound));
  ck_assert(bytes == 0 && lower_bound == 0);
  arena_destroy(a);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("placement");
  tcase_add_loop_test(c, random_slices, 0, SEEDS);
  tcase_add_test(c, nothing_to_place);
  return run_suite("placement", c);
}
