/* check_team.c - reductions, dots and row-wise fusions of many lengths and types on emulated blocks of threads: they
 * compute what the reference evaluator does, and the same bits in all orders of the threads; their PTX can be
 * assembled. */
#include <string.h>

#include "tests/unit/emit/blocks/block_case.h"

/* The last length is tested with single rows only, to save time. */
static const int64_t lengths[] = {1, 2, 15, 31, 32, 33, 255, 256, 257, 1024, 1025, 5000, 16385};
enum { N_LENGTHS = sizeof lengths / sizeof *lengths - 1 };
static const char *const types[] = {"f32", "f16", "bf16", "f64", "s32", "u8"};
enum { N_TYPES = sizeof types / sizeof *types };

static void check_all(kernel_cases *c, block_numbers how) { block_check_all(c, how, NULL); }

/* --- reductions --- */

/* Shapes whose dimension n is reduced, and how many threads compute a step if n is 256. */
static const struct {
  const char *before, *after, *over, *result;
  uint32_t threads;
} shapes[] = {{"3,", "", "1", "3", 32},
              {"", "", "0", "", 32},
              {"", ",37", "0", "37", 256},
              {"2,", ",40", "1", "2,40", 256},
              {"", ",3", "0", "3", 32},
              {"", ",2,7", "0, 2", "2", 256},
              {"2,", ",16,5", "1", "2,16,5", 256},
              {"5,2,", "", "0, 2", "2", 256}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static kernel_case *add_reduction(kernel_cases *c, int s, int64_t n, const char *type, const char *reducer) {
  return kernel_add(
      c, 0,
      TEXT("%s[%s](%%x: %s[%s%lld%s]) {\n%%y = reduce(%%x) {dimensions=[%s], reducer=%s} : %s[%s]\nreturn "
           "%%y\n}",
           type, shapes[s].result, type, shapes[s].before, (long long)n, shapes[s].after, shapes[s].over, reducer, type,
           shapes[s].result));
}

START_TEST(sums) {
  kernel_cases c = {0};
  for (int s = 0; s < N_SHAPES; s++) {
    for (int k = 0; k < N_LENGTHS + (s == 1); k++) {
      add_reduction(&c, s, lengths[k], types[_i], "add")->tolerance = _i == 2 ? 0x1p-7 : _i == 1 ? 0x1p-10 : 0;
    }
  }
  check_all(&c, BLOCK_EXACT);
}
END_TEST

/* NaN, infinities and zeros of both signs. */
START_TEST(maxima) {
  kernel_cases c = {0};
  for (int s = 0; s < N_SHAPES; s += 2) {
    for (int k = 0; k < N_LENGTHS; k++) {
      add_reduction(&c, s, lengths[k], types[_i], (s / 2 + k) % 2 ? "maximum" : "minimum");
    }
  }
  check_all(&c, BLOCK_SPECIAL);
}
END_TEST

/* A sum in a tree has a smaller error than one in order, which may be 2^-24 of each partial sum. */
START_TEST(sums_are_accurate) {
  kernel_cases c = {0};
  for (int s = 0; s < N_SHAPES; s++) {
    for (int k = 0; k < N_LENGTHS; k++) {
      add_reduction(&c, s, lengths[k], "f32", "add")->tolerance = 0x1p-19;
    }
  }
  check_all(&c, BLOCK_ROUGH);
}
END_TEST

/* --- dots of few rows --- */

/* Shapes of the operands around the n products of each sum, the contracted dimensions, and the result. */
static const struct {
  const char *x, *y, *lhs, *rhs, *result;
  uint32_t threads; /* how many compute a step if n is 256 */
} dots[] = {{"1,%lld", "%lld,50", "1", "0", "1,50", 256}, {"3,%lld", "%lld,37", "1", "0", "3,37", 256},
            {"2,%lld", "9,%lld", "1", "1", "2,9", 32},    {"%lld,2", "9,%lld", "0", "1", "2,9", 32},
            {"5,%lld", "%lld", "1", "0", "5", 32},        {"1,%lld,2", "%lld,2,40", "1,2", "0,1", "1,40", 256}};
enum { N_DOTS = sizeof dots / sizeof *dots };

static const char *sized(const char *extents, int64_t n) {
  const char *at = strstr(extents, "%lld");
  return TEXT("%.*s%lld%s", (int)(at - extents), extents, (long long)n, at + 4);
}

static kernel_case *add_dot(kernel_cases *c, int k, int64_t n, const char *type) {
  return kernel_add(c, 0,
                    TEXT("%s[%s](%%x: %s[%s], %%y: %s[%s]) {\n%%z = dot(%%x, %%y) {lhs_contract=[%s], "
                         "rhs_contract=[%s], lhs_batch=[], rhs_batch=[]} : %s[%s]\nreturn %%z\n}",
                         type, dots[k].result, type, sized(dots[k].x, n), type, sized(dots[k].y, n), dots[k].lhs,
                         dots[k].rhs, type, dots[k].result));
}

START_TEST(products) {
  static const char *const of[] = {"f32", "f16", "bf16", "f64", "s32"};
  kernel_cases c = {0};
  for (int k = 0; k < N_DOTS; k++) {
    for (int j = 0; j < N_LENGTHS; j++) {
      add_dot(&c, k, lengths[j], of[_i])->tolerance = _i == 2 ? 0x1p-7 : _i == 1 ? 0x1p-10 : 0;
    }
  }
  block_check_all(&c, BLOCK_EXACT, NULL);
}
END_TEST

/* Integers that are scaled by blocks of the sums and columns, a bias and an activation. */
START_TEST(dequantised_products) {
  kernel_cases c = {0};
  for (int rows = 1; rows <= 5; rows += 4) {
    for (int turned = 0; turned < 2; turned++) {
      const char *y = turned ? "40,128" : "128,40";
      kernel_add(&c, 0x1p-18,
                 TEXT("f32[%d,40](%%x: f32[%d,128], %%q: s8[%s], %%s: f32[40], %%b: f32[40]) {\n"
                      "%%w = convert(%%q) {saturate=false, rounding=nearest} : f32[%s]\n%%sb = broadcast(%%s) "
                      "{dimensions=[%d]} : f32[%s]\n%%y = multiply(%%w, %%sb) : f32[%s]\n%%z = dot(%%x, %%y) "
                      "{lhs_contract=[1], rhs_contract=[%d], lhs_batch=[], rhs_batch=[]} : f32[%d,40]\n"
                      "%%bb = broadcast(%%b) {dimensions=[1]} : f32[%d,40]\n%%a = add(%%z, %%bb) : f32[%d,40]\n"
                      "%%r = maximum(%%a, %%bb) : f32[%d,40]\nreturn %%r\n}",
                      rows, rows, y, y, !turned, y, y, turned, rows, rows, rows, rows));
    }
  }
  block_check_all(&c, BLOCK_EXACT, NULL);
}
END_TEST

START_TEST(teams_are_used) {
  kernel_cases c = {0};
  emit_target t;
  for (int s = 0; s < N_SHAPES; s++) {
    add_reduction(&c, s, 256, "f32", "add");
  }
  add_reduction(&c, 0, 1024, "f32", "add");
  add_reduction(&c, 0, 1025, "f32", "add");
  add_reduction(&c, 0, 15, "f32", "add");
  uint32_t first_dot = c.n;
  for (int k = 0; k < N_DOTS; k++) {
    add_dot(&c, k, dots[k].threads == 256 && strchr(dots[k].lhs, ',') ? 128 : 256, "f32");
  }
  ASSERT_OK(emit_target_blocks_host(kernel_arena, &t));
  (void)block_write(&c, &t, NULL);
  for (int k = 0; k < N_DOTS; k++) {
    const kernel_case *d = &c.items[first_dot + k];
    ck_assert((d->info.shared_bytes > 0) == (dots[k].threads > 32)); /* several warps share the sums */
    ck_assert_msg(d->info.step_threads == dots[k].threads, "%u threads for\n%s", d->info.step_threads, d->text);
  }
  for (int s = 0; s < N_SHAPES; s++) {
    ck_assert_msg(c.items[s].info.step_threads == shapes[s].threads, "%u threads for\n%s", c.items[s].info.step_threads,
                  c.items[s].text);
  }
  ck_assert_uint_eq(c.items[N_SHAPES].info.step_threads, 32);
  ck_assert_uint_eq(c.items[N_SHAPES + 1].info.step_threads, 256);
  ck_assert_uint_eq(c.items[N_SHAPES + 2].info.step_threads, 1);
}
END_TEST

/* Positions of the largest or smallest values: of equal values the first or the last counts, and a NaN counts more than
 * any number. */
START_TEST(positions) {
  static const struct {
    const char *before, *after, *result;
    int d;
  } all[] = {{"3,", "", "3", 1}, {"2,", ",20", "2,20", 1}, {"", "", "", 0}};
  kernel_cases c = {0};
  for (int s = 0; s < 3; s++) {
    for (int k = s; k < 2 * N_LENGTHS; k += 3) {
      kernel_add(&c, 0,
                 TEXT("s64[%s](%%x: %s[%s%lld%s]) {\n%%y = arg-reduce(%%x) {dimension=%d, largest=%s, last=%s} : "
                      "s64[%s]\nreturn %%y\n}",
                      all[s].result, types[_i], all[s].before, (long long)lengths[k / 2], all[s].after, all[s].d,
                      k % 2 ? "true" : "false", k / 2 % 4 > 1 ? "true" : "false", all[s].result));
    }
  }
  check_all(&c, BLOCK_TIES);
}
END_TEST

/* Two sums in one loop, with operations before and behind them. */
START_TEST(fused) {
  kernel_cases c = {0};
  for (int k = 0; k < N_LENGTHS; k++) {
    long long n = lengths[k];
    kernel_add(
        &c, 0x1p-18,
        TEXT("f32[3](%%x: f32[3,%lld], %%b: f32[3]) {\n%%s = reduce(%%x) {dimensions=[1], reducer=add} : f32[3]\n"
             "%%q = multiply(%%x, %%x) : f32[3,%lld]\n%%t = reduce(%%q) {dimensions=[1], reducer=add} : f32[3]\n"
             "%%u = subtract(%%t, %%s) : f32[3]\n%%v = add(%%u, %%b) : f32[3]\nreturn %%v\n}",
             n, n));
    kernel_add(&c, 0x1p-18,
               TEXT("f32[50](%%x: f32[%lld,50], %%b: f32[50]) {\n%%q = multiply(%%x, %%x) : f32[%lld,50]\n%%t = "
                    "reduce(%%q) {dimensions=[0], reducer=add} : f32[50]\n%%v = add(%%t, %%b) : f32[50]\nreturn %%v\n}",
                    n, n));
  }
  check_all(&c, BLOCK_EXACT);
}
END_TEST

/* A sum and the position of a maximum in one loop: first the threads' partial sums are joined, then their maxima. */
START_TEST(two_joins) {
  kernel_cases c = {0};
  for (int d = 0; d < 2; d++) {
    for (int k = 3; k < N_LENGTHS; k++) {
      const char *x = d ? TEXT("f32[40,%lld]", (long long)lengths[k]) : TEXT("f32[%lld,40]", (long long)lengths[k]);
      kernel_add(&c, 0,
                 TEXT("f32[40](%%x: %s) {\n%%s = reduce(%%x) {dimensions=[%d], reducer=add} : f32[40]\n"
                      "%%p = arg-reduce(%%x) {dimension=%d, largest=true, last=false} : s64[40]\n"
                      "%%q = convert(%%p) {saturate=true, rounding=nearest} : f32[40]\n%%y = add(%%s, %%q) : "
                      "f32[40]\nreturn %%y\n}",
                      x, d, d));
    }
  }
  check_all(&c, BLOCK_EXACT);
}
END_TEST

/* --- row-wise fusions --- */

#define ROWS_TEXT(how, to, from)                                                                      \
  "%" to " = reduce(%" from ") {dimensions=[1], reducer=" how "} : T[3]\n%" to to " = broadcast(%" to \
  ") {dimensions=[0]} : T[3,N]\n"

static const char *const row_texts[] = {
    "T[3,N](%x: T[3,N]) {\n" ROWS_TEXT("maximum", "a", "x") "%c = subtract(%x, %aa) : T[3,N]\n%d = exponential(%c) : "
    "T[3,N]\n" ROWS_TEXT("add", "s", "d") "%y = divide(%d, %ss) : T[3,N]\nreturn %y\n}",
    /* RMS norm without the root of the mean */
    "T[3,N](%x: T[3,N], %w: T[N]) {\n%q = multiply(%x, %x) : T[3,N]\n" ROWS_TEXT("add", "s", "q")
    "%r = rsqrt(%ss) : T[3,N]\n%y = multiply(%x, %r) : T[3,N]\n%v = broadcast(%w) {dimensions=[1]} : T[3,N]\n%z = "
    "multiply(%y, %v) : T[3,N]\nreturn %z\n}",
    /* two passes, as for the mean and the variance */
    "T[3,N](%x: T[3,N]) {\n" ROWS_TEXT("add", "a", "x") "%c = subtract(%x, %aa) : T[3,N]\n%q = multiply(%c, %c) : "
    "T[3,N]\n" ROWS_TEXT("maximum", "s", "q") "%y = divide(%c, %ss) : T[3,N]\nreturn %y\n}"};

/* Returns the text with a type in place of each T and a number in place of each N. */
static const char *instance(const char *text, const char *type, int64_t n) {
  const char *out = "";
  for (const char *p = text; *p; p++) {
    bool letter = p > text && (p[-1] == '%' || (p[-1] >= 'a' && p[-1] <= 'z'));
    out = *p == 'T' && !letter   ? TEXT("%s%s", out, type)
          : *p == 'N' && !letter ? TEXT("%s%lld", out, (long long)n)
                                 : TEXT("%s%c", out, *p);
  }
  return out;
}

START_TEST(rows) {
  kernel_cases c = {0};
  for (size_t j = 0; j < sizeof row_texts / sizeof *row_texts; j++) {
    for (int k = 1; k < N_LENGTHS; k++) {
      kernel_add(&c, _i ? 0x1p-6 : 0x1p-18, instance(row_texts[j], types[_i], lengths[k]));
    }
  }
  check_all(&c, BLOCK_ROUGH);
}
END_TEST

/* One lane of a warp, or one thread of a block, stores an element in the buffer from which all of them read. */
START_TEST(in_place) {
  kernel_cases c = {0};
  static const int lengths_of_sums[] = {31, 3000};
  for (int k = 0; k < 2; k++) {
    int n = lengths_of_sums[k];
    const char *text =
        "T[4,1](%a: T[4,1], %x: T[N,4], %y: T[1,N]) {\n%p = dot(%x, %y) {lhs_batch=[], rhs_batch=[], "
        "lhs_contract=[0], rhs_contract=[1]} : T[4,1]\n%z = add(%p, %a) : T[4,1]\nreturn %z\n}";
    kernel_add(&c, 0, instance(text, "s32", n));
    c.items[k].alias = 0;
  }
  check_all(&c, BLOCK_EXACT);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("team");
  tcase_add_checked_fixture(t, kernel_setup, kernel_teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, sums, 0, N_TYPES);
  tcase_add_loop_test(t, maxima, 0, N_TYPES);
  tcase_add_test(t, sums_are_accurate);
  tcase_add_loop_test(t, products, 0, 5);
  tcase_add_test(t, dequantised_products);
  tcase_add_test(t, teams_are_used);
  tcase_add_loop_test(t, positions, 0, N_TYPES);
  tcase_add_test(t, fused);
  tcase_add_test(t, two_joins);
  tcase_add_loop_test(t, rows, 0, 2);
  tcase_add_test(t, in_place);
  return run_suite("emit-team", t);
}
