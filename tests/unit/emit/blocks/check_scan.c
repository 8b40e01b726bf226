/* check_scan.c - cumulative operations by blocks of threads: for lines of many lengths, in both directions, inclusive
 * and exclusive, results are near those of the reference evaluator, and have the same bits in all orders of threads. */
#include "tests/unit/emit/blocks/block_case.h"

static const int64_t lengths[] = {1, 2, 31, 32, 33, 64, 65, 128, 129, 257, 1000, 1024, 1025, 5000, 100000};
enum { N_LENGTHS = sizeof lengths / sizeof *lengths };
static const char *const types[] = {"f32", "f64", "s32", "s64", "u8", "f16", "c64"};
enum { N_TYPES = sizeof types / sizeof *types, N_REAL = N_TYPES - 1 };

static kernel_case *add(kernel_cases *c, const char *type, const char *extents, int dimension, const char *reducer,
                        int way, double tolerance) {
  return kernel_add(c, tolerance,
                    TEXT("%s[%s](%%x: %s[%s]) {\n%%y = cumulative(%%x) {dimension=%d, reducer=%s, exclusive=%s, "
                         "backward=%s} : %s[%s]\nreturn %%y\n}",
                         type, extents, type, extents, dimension, reducer, way % 2 ? "true" : "false",
                         way / 2 % 2 ? "true" : "false", type, extents));
}

static void add_lengths(kernel_cases *c, const char *type, const char *reducer, double tolerance) {
  for (int k = 0; k < N_LENGTHS; k++) {
    long long n = lengths[k];
    add(c, type, TEXT("%lld", n), 0, reducer, k, tolerance);
    if (n <= 5000) {
      add(c, type, TEXT("3,%lld", n), 1, reducer, k + 1, tolerance);
      add(c, type, TEXT("2,%lld,3", n), 1, reducer, k + 2, tolerance);
    }
  }
}

/* Integers wrap around, and sums of these floats are exact in every order. */
START_TEST(sums) {
  kernel_cases c = {0};
  add_lengths(&c, types[_i], "add", 0);
  block_check_all(&c, BLOCK_EXACT, NULL);
}
END_TEST

START_TEST(maxima) {
  kernel_cases c = {0};
  add_lengths(&c, types[_i], "maximum", 0);
  add_lengths(&c, types[_i], "minimum", 0);
  block_check_all(&c, BLOCK_SPECIAL, NULL);
}
END_TEST

/* A sum has an error of at most 2^-24 of each partial sum, of which there are as many as elements. */
START_TEST(rounded) {
  kernel_cases c = {0};
  for (int k = 0; k < N_LENGTHS - 1; k++) {
    add(&c, "f32", TEXT("%lld", (long long)lengths[k]), 0, "add", k, 0x1p-24 * (double)(lengths[k] + 16));
  }
  add(&c, "f32", "100", 0, "multiply", 0, 1e-5);
  block_check_all(&c, BLOCK_ROUGH, NULL);
}
END_TEST

/* If there are few long lines, a block computes each; if there are many, or they are short, a thread computes each. */
START_TEST(choices) {
  static const struct {
    const char *extents;
    int dimension;
    uint32_t step_threads;
  } rows[] = {{"64", 0, 64},     {"63", 0, 1},        {"3,200", 1, 256}, {"2,5000", 1, 1024},
              {"4096,64", 1, 1}, {"500,200", 1, 256}, {"200,512", 0, 1}};
  enum { N = sizeof rows / sizeof *rows };
  kernel_cases c = {0};
  emit_target t;
  for (int k = 0; k < N; k++) {
    add(&c, "f32", rows[k].extents, rows[k].dimension, "add", 0, 0);
  }
  ASSERT_OK(emit_target_nvptx(kernel_arena, "sm_80", &t));
  (void)block_write(&c, &t, NULL);
  for (int k = 0; k < N; k++) {
    ck_assert_msg(c.items[k].info.step_threads == rows[k].step_threads, "%u threads for [%s]",
                  c.items[k].info.step_threads, rows[k].extents);
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("scan");
  tcase_add_checked_fixture(t, kernel_setup, kernel_teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, sums, 0, N_TYPES);
  tcase_add_loop_test(t, maxima, 0, N_REAL);
  tcase_add_test(t, rounded);
  tcase_add_test(t, choices);
  return run_suite("scan", t);
}
