/* check_bounds.c - integers within bounds: the ends of every type, several bounds that hold for elements in
 * turn, and which element the message names. */
#include <check.h>
#include <string.h>

#include "base/tensor/bounds.h"
#include "tests/suite.h"

static const dtype types[] = {DTYPE_S8,  DTYPE_S16, DTYPE_S32, DTYPE_S64, DTYPE_U8,
                              DTYPE_U16, DTYPE_U32, DTYPE_U64, DTYPE_S4,  DTYPE_U4};
enum { N_TYPES = sizeof types / sizeof *types, N = 100 };

static uint8_t memory[N * 8];

static void put(dtype t, int64_t at, int64_t value) { dtype_store_i64(t, memory + (size_t)at * dtype_bytes(t), value); }

static bool holds(const bounds *b, dtype t) { return bounds_hold(b, t, memory, 0, N); }

/* A single element out of bounds is found wherever it is. */
START_TEST(indices) {
  dtype t = types[_i];
  int64_t low = dtype_is_signed(t) ? -5 : 0, high = 5;
  bounds b = {"x", 1, &high, dtype_is_signed(t)};
  for (int64_t at = 0; at < N; at++) {
    for (int64_t k = 0; k < N; k++) {
      put(t, k, k % 5);
    }
    ck_assert(holds(&b, t));
    put(t, at, low);
    ck_assert(holds(&b, t));
    put(t, at, high - 1);
    ck_assert(holds(&b, t));
    put(t, at, high);
    ck_assert(!holds(&b, t));
    put(t, at, dtype_is_signed(t) ? low - 1 : -1); /* -1 is the largest number of an unsigned type */
    ck_assert(!holds(&b, t));
    put(t, at, INT64_MIN >> (64 - dtype_get_info(t)->bits)); /* only the highest bit is set */
    ck_assert(!holds(&b, t));
  }
}
END_TEST

START_TEST(zeros) {
  dtype t = types[_i];
  bounds b = {.what = "x"};
  memset(memory, 0xff, sizeof memory); /* -1, or the largest number of an unsigned type */
  for (int64_t k = 0; k < N; k++) {
    put(t, k, k % 2 ? -1 : 7);
  }
  ck_assert(holds(&b, t));
  put(t, N - 1, 0);
  ck_assert(!holds(&b, t));
  ck_assert(bounds_hold(&b, t, memory, 0, N - 1));
}
END_TEST

static void expect(const bounds *b, dtype t, const char *message) {
  status s = bounds_check(b, t, memory, N);
  ck_assert_msg(s && strcmp(status_message(s), message) == 0, "%s", status_message(s));
  ck_assert_int_eq(status_get_code(s), STATUS_INVALID_ARGUMENT);
  ck_assert_int_eq(status_get_subject(s), STATUS_ABOUT_VALUE);
  status_free(s);
}

/* Pairs of indices, into 3 rows and 10 columns. */
START_TEST(in_turn) {
  const int64_t limits[] = {3, 10};
  bounds b = {"indices", 2, limits, true}, divisor = {.what = "B"};
  memset(memory, 0, sizeof memory);
  put(DTYPE_S64, 41, -10);
  ck_assert(holds(&b, DTYPE_S64));
  put(DTYPE_S64, 40, 3);
  put(DTYPE_S64, 61, 10);
  expect(&b, DTYPE_S64, "indices holds 3, outside of [-3, 3) (element 40)");
  put(DTYPE_S64, 40, 2);
  expect(&b, DTYPE_S64, "indices holds 10, outside of [-10, 10) (element 61)");
  put(DTYPE_S64, 61, INT64_MIN);
  expect(&b, DTYPE_S64, "indices holds -9223372036854775808, outside of [-10, 10) (element 61)");
  memset(memory, 1, sizeof memory);
  put(DTYPE_S32, 7, 0);
  expect(&divisor, DTYPE_S32, "B holds 0, by which integers cannot be divided (element 7)");
}
END_TEST

/* An empty list is always within bounds; with the widest bounds nearly any integer is; with a limit of 0 none
 * is. */
START_TEST(ends) {
  int64_t zero = 0, high = INT64_MAX;
  bounds natural = {"x", 1, &high, false}, none = {"x", 1, &zero, true}, any = {"x", 1, &high, true};
  memset(memory, 0, sizeof memory);
  ck_assert(bounds_hold(&none, DTYPE_S64, memory, 0, 0));
  ck_assert(!bounds_hold(&none, DTYPE_S64, memory, 0, 1));
  ck_assert(holds(&natural, DTYPE_S64) && holds(&any, DTYPE_S64));
  put(DTYPE_S64, 3, -1);
  ck_assert(!holds(&natural, DTYPE_S64) && holds(&any, DTYPE_S64));
  put(DTYPE_S64, 3, -INT64_MAX);
  ck_assert(holds(&any, DTYPE_S64));
  put(DTYPE_S64, 3, INT64_MIN);
  ck_assert(!holds(&any, DTYPE_S64));
  put(DTYPE_S64, 3, INT64_MAX);
  ck_assert(!holds(&any, DTYPE_S64));
}
END_TEST

int main(void) {
  TCase *c = tcase_create("bounds");
  tcase_add_loop_test(c, indices, 0, N_TYPES);
  tcase_add_loop_test(c, zeros, 0, N_TYPES);
  tcase_add_test(c, in_turn);
  tcase_add_test(c, ends);
  return run_suite("bounds", c);
}
