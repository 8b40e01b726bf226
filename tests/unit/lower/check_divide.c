/* check_divide.c - kernels are divided among batches (lower/kernels/divide.h). */
#include <check.h>

#include "lower/kernels/divide.h"
#include "tests/suite.h"

enum { MOST = 64 };

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

/* Returns what batch b costs, counted kernel by kernel; the shared functions of each kind of kernels count once. */
static double cost_of(uint32_t n, const lower_part *parts, uint32_t b) {
  double cost = 0;
  for (uint32_t k = 0; k < n; k++) {
    bool first = true;
    for (uint32_t j = 0; j < k; j++) {
      first &= parts[j].batch != b || parts[j].shared <= 0 || parts[j].sharing != parts[k].sharing;
    }
    cost += parts[k].batch == b ? parts[k].cost + (first ? parts[k].shared : 0) : 0;
  }
  return cost;
}

/* Kernels without shared functions: every batch gets as much. */
START_TEST(plain) {
  lower_part parts[MOST];
  double costs[4];
  for (uint32_t k = 0; k < MOST; k++) {
    parts[k] = (lower_part){.cost = 1 + k % 7};
  }
  lower_divide(memory, MOST, parts, 4, 2, costs);
  for (uint32_t b = 0; b < 4; b++) {
    ck_assert_double_eq_tol(costs[b], cost_of(MOST, parts, b), 1e-9);
    ck_assert_double_le(costs[b] - costs[0], 1);
    ck_assert_double_le(costs[0] - costs[b], 1);
  }
}
END_TEST

/* Two kinds of kernels with shared functions beside others: each kind is in one batch, as it is less than the part of a
 * thread. */
START_TEST(kinds) {
  static const char a[] = "a", b[] = "b";
  lower_part parts[MOST];
  double costs[4];
  for (uint32_t k = 0; k < MOST; k++) {
    parts[k] = k % 4 == 0   ? (lower_part){2, 30, a, 0}
               : k % 4 == 1 ? (lower_part){3, 20, b, 0}
                            : (lower_part){.cost = 2 + k % 3};
  }
  lower_divide(memory, MOST, parts, 4, 2, costs);
  for (uint32_t k = 0; k < MOST; k++) {
    ck_assert_uint_lt(parts[k].batch, 4);
    ck_assert(k % 4 > 1 || parts[k].batch == parts[k % 4].batch);
  }
  ck_assert_uint_ne(parts[0].batch, parts[1].batch);
  for (uint32_t k = 0; k < 4; k++) {
    ck_assert_double_eq_tol(costs[k], cost_of(MOST, parts, k), 1e-9);
  }
}
END_TEST

/* One kind that is the whole program: both threads get some of it, and it is not in more batches than there are
 * threads.
 */
START_TEST(one_kind) {
  lower_part parts[MOST];
  double costs[2], more = 2 * 10 + 4;
  for (uint32_t k = 0; k < MOST; k++) {
    parts[k] = (lower_part){4, 10, "a", 0};
  }
  lower_divide(memory, MOST, parts, 2, 2, costs);
  ck_assert_double_eq_tol(costs[0] + costs[1], MOST * 4 + 2 * 10, 1e-9);
  ck_assert_double_le(costs[0] - costs[1], more);
  ck_assert_double_le(costs[1] - costs[0], more);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("divide");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_add_test(c, plain);
  tcase_add_test(c, kinds);
  tcase_add_test(c, one_kind);
  return run_suite("divide", c);
}
