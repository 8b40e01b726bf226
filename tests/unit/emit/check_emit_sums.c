/* check_emit_sums.c - compares kernels that compute an element from many with the reference evaluator: reductions,
 * windows, cumulative operations, contractions. */
#include "tests/unit/emit/kernel_case.h"
#include "tests/unit/emit/kernel_texts.h"

START_TEST(reductions) {
  static const char *const all[] = {"f32", "f64", "f16", "bf16", "s8", "s32", "s64", "u8", "u64", "s4"};
  static const char *const reducers[] = {"add", "multiply", "maximum", "minimum"};
  const char *t = all[_i];
  kernel_cases c = {0};
  for (int k = 0; k < 4; k++) {
    kernel_reduce(&c, t, reducers[k], _i >= 4 ? 0 : k >= 2 ? 0 : k == 1 ? 0.05 : kernel_tolerance(t) * 64);
  }
  if (_i >= 4) {
    kernel_reduce(&c, t, "and", 0);
    kernel_reduce(&c, t, "xor", 0);
  }
  if (_i == 0) {
    kernel_reduce(&c, "pred", "or", 0);
    kernel_reduce(&c, "pred", "and", 0);
    kernel_reduce(&c, "c64", "add", 1e-4);
  }
  kernel_check_all(&c);
}
END_TEST

START_TEST(reductions_fused) {
  kernel_cases c = {0};
  for (size_t k = 0; k < N_FUSED; k++) {
    kernel_add(&c, 1e-4, fused_reductions[k]);
  }
  kernel_check_all(&c);
}
END_TEST

START_TEST(arg_reductions) {
  static const char *const types[] = {"f32", "f64", "bf16", "s8", "s32", "u16"};
  static const struct {
    const char *dims, *result;
    int d;
  } rows[] = {{"4,77", "4", 1}, {"77,20", "20", 0}, {"3,9,21", "3,21", 1}, {"100", "", 0}};
  kernel_cases c = {0};
  for (size_t j = 0; j < sizeof types / sizeof *types; j++) {
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
      for (int flags = 0; flags < 4; flags++) {
        kernel_case *one =
            kernel_add(&c, 0,
                       TEXT("s64[%s](%%x: %s[%s]) {\n%%y = arg-reduce(%%x) {dimension=%d, largest=%s, last=%s} : "
                            "s64[%s]\nreturn %%y\n}",
                            rows[k].result, types[j], rows[k].dims, rows[k].d, flags & 1 ? "true" : "false",
                            flags & 2 ? "true" : "false", rows[k].result));
        one->low = 0;
        one->high = 9;
      }
    }
  }
  kernel_check_all(&c);
}
END_TEST

START_TEST(windows) {
  static const struct {
    const char *dims, *window, *strides, *low, *high, *holes, *result;
  } rows[] = {
      {"1,3,20,40", "1, 1, 3, 3", "1, 1, 1, 1", "0, 0, 1, 1", "0, 0, 1, 1", "1, 1, 1, 1", "1,3,20,40"},
      {"2,3,21,21", "1, 1, 3, 3", "1, 1, 2, 2", "0, 0, 1, 1", "0, 0, 1, 1", "1, 1, 1, 1", "2,3,11,11"},
      {"1,2,16,64", "1, 1, 2, 2", "1, 1, 2, 2", "0, 0, 0, 0", "0, 0, 0, 0", "1, 1, 1, 1", "1,2,8,32"},
      {"1,9,9,20", "1, 3, 3, 1", "1, 2, 2, 1", "0, 1, 1, 0", "0, 1, 1, 0", "1, 1, 1, 1", "1,5,5,20"},
      {"1,50", "1, 7", "1, 1", "0, 5", "0, 4", "1, 2", "1,47"},
  };
  static const char *const types[] = {"f32", "f64", "s8", "bf16", "u8"};
  static const char *const reducers[] = {"maximum", "add", "minimum"};
  kernel_cases c = {0};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    for (size_t j = 0; j < sizeof types / sizeof *types; j++) {
      for (int r = 0; r < 3; r++) {
        bool exact = r != 1 || j == 2 || j == 4;
        kernel_add(&c, exact ? 0 : kernel_tolerance(types[j]) * 32,
                   TEXT("%s[%s](%%x: %s[%s]) {\n%%y = reduce-window(%%x) {window=[%s], strides=[%s], low=[%s], "
                        "high=[%s], rhs_dilation=[%s], "
                        "reducer=%s} : %s[%s]\nreturn %%y\n}",
                        types[j], rows[k].result, types[j], rows[k].dims, rows[k].window, rows[k].strides, rows[k].low,
                        rows[k].high, rows[k].holes, reducers[r], types[j], rows[k].result));
      }
      kernel_add(&c, 0,
                 TEXT("s64[%s](%%x: %s[%s]) {\n%%y = arg-reduce-window(%%x) {window=[%s], strides=[%s], low=[%s], "
                      "high=[%s], "
                      "rhs_dilation=[%s]} : s64[%s]\nreturn %%y\n}",
                      rows[k].result, types[j], rows[k].dims, rows[k].window, rows[k].strides, rows[k].low,
                      rows[k].high, rows[k].holes, rows[k].result));
    }
  }
  kernel_check_all(&c);
}
END_TEST

START_TEST(scans) {
  static const char *const types[] = {"f32", "f64", "f16", "s32", "u8"};
  static const char *const reducers[] = {"add", "multiply", "maximum", "minimum"};
  static const struct {
    const char *dims;
    int d;
  } rows[] = {{"4,30", 1}, {"12,37", 0}, {"3,7,18", 1}};
  kernel_cases c = {0};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    for (size_t j = 0; j < sizeof types / sizeof *types; j++) {
      for (int r = 0; r < 4; r++) {
        bool exact = r >= 2 || j >= 3;
        kernel_add(&c,
                   exact    ? 0
                   : r == 1 ? 0.05
                            : kernel_tolerance(types[j]) * 64,
                   TEXT("%s[%s](%%x: %s[%s]) {\n%%y = cumulative(%%x) {dimension=%d, reducer=%s, exclusive=%s, "
                        "backward=%s} : %s[%s]\nreturn "
                        "%%y\n}",
                        types[j], rows[k].dims, types[j], rows[k].dims, rows[k].d, reducers[r],
                        r % 2 ? "true" : "false", (r / 2 + k) % 2 ? "true" : "false", types[j], rows[k].dims));
      }
    }
  }
  kernel_check_all(&c);
}
END_TEST

START_TEST(contractions) {
  static const char *const types[][3] = {{"f32", "f32", "f32"},    {"f64", "f64", "f64"}, {"f16", "f16", "f16"},
                                         {"bf16", "bf16", "bf16"}, {"s16", "s16", "s32"}, {"s32", "s32", "s32"},
                                         {"u64", "u64", "u64"},    {"c64", "c64", "c64"}, {"s8", "s8", "s32"},
                                         {"u8", "s8", "s32"},      {"s8", "u8", "s32"},   {"u8", "u8", "s32"}};
  static const struct {
    const char *x, *y, *attrs, *result;
  } dots[] = {
      {"5,7", "7,20", "lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]", "5,20"},
      {"5,70", "9,70", "lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]", "5,9"},
      {"3,4,6", "3,6,18", "lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]", "3,4,18"},
      {"6,3,4,5", "4,5,3,6", "lhs_batch=[1], rhs_batch=[2], lhs_contract=[2, 3], rhs_contract=[0, 1]", "3,6,6"},
      {"40", "40", "lhs_batch=[], rhs_batch=[], lhs_contract=[0], rhs_contract=[0]", ""},
      {"3,0", "0,5", "lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]", "3,5"},
  };
  static const struct {
    const char *x, *kernel, *attrs, *result;
  } convolutions[] = {
      {"1,3,9,20", "4,3,3,3",
       "strides=[1, 1], low=[1, 1], high=[1, 1], lhs_dilation=[1, 1], rhs_dilation=[1, 1], groups=1, "
       "layout=channels-first",
       "1,4,9,20"},
      {"2,4,11,11", "6,2,3,2",
       "strides=[2, 2], low=[0, 1], high=[1, -1], lhs_dilation=[1, 1], rhs_dilation=[2, 1], groups=2, "
       "layout=channels-first",
       "2,6,4,5"},
      {"1,5,6,3", "8,3,3,3",
       "strides=[1, 2], low=[2, 2], high=[2, 2], lhs_dilation=[2, 3], rhs_dilation=[1, 1], groups=1, "
       "layout=channels-last",
       "1,11,9,8"},
      {"1,8,17", "8,1,3",
       "strides=[1], low=[1], high=[1], lhs_dilation=[1], rhs_dilation=[1], groups=8, layout=channels-first", "1,8,17"},
      {"3,5", "7,5", "strides=[], low=[], high=[], lhs_dilation=[], rhs_dilation=[], groups=1, layout=channels-first",
       "3,7"},
  };
  const char *x = types[_i][0], *y = types[_i][1], *t = types[_i][2];
  kernel_cases c = {0};
  double tolerance = _i == 7 ? 1e-4 : _i >= 4 ? 0 : kernel_tolerance(t) * 64;
  for (size_t k = 0; k < sizeof dots / sizeof *dots; k++) {
    kernel_add(&c, tolerance,
               TEXT("%s[%s](%%x: %s[%s], %%y: %s[%s]) {\n%%z = dot(%%x, %%y) {%s} : %s[%s]\nreturn %%z\n}", t,
                    dots[k].result, x, dots[k].x, y, dots[k].y, dots[k].attrs, t, dots[k].result));
  }
  for (size_t k = 0; k < sizeof convolutions / sizeof *convolutions; k++) {
    kernel_add(&c, tolerance,
               TEXT("%s[%s](%%x: %s[%s], %%y: %s[%s]) {\n%%z = convolution(%%x, %%y) {%s} : %s[%s]\nreturn %%z\n}", t,
                    convolutions[k].result, x, convolutions[k].x, y, convolutions[k].kernel, convolutions[k].attrs, t,
                    convolutions[k].result));
  }
  kernel_check_all(&c);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("emit-sums");
  tcase_add_checked_fixture(t, kernel_setup, kernel_teardown);
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, reductions, 0, 10);
  tcase_add_test(t, reductions_fused);
  tcase_add_test(t, arg_reductions);
  tcase_add_test(t, windows);
  tcase_add_test(t, scans);
  tcase_add_loop_test(t, contractions, 0, 12);
  return run_suite("emit-sums", t);
}
