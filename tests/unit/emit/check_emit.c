/* check_emit.c - compares elementwise kernels and conversions with the reference evaluator: every operation and
 * element type, for several vector widths and processors.  Also tests what is refused, and which results may overwrite
 * operands. */
#include <string.h>

#include "tests/unit/emit/kernel_case.h"

START_TEST(elementwise_floats) {
  static const char *const exact1[] = {"abs", "negate", "sign", "ceil", "floor", "round-nearest-even", "sqrt", "rsqrt"};
  static const char *const math1[] = {"exponential", "exponential-minus-one",
                                      "log",         "log-plus-one",
                                      "sine",        "cosine",
                                      "tan",         "asin",
                                      "acos",        "atan",
                                      "sinh",        "cosh",
                                      "tanh",        "asinh",
                                      "acosh",       "atanh",
                                      "erf",         "logistic"};
  static const char *const exact2[] = {"add", "subtract", "multiply", "divide", "maximum", "minimum", "remainder"};
  static const char *const math2[] = {"power", "atan2"};
  const char *t = kernel_floats[_i];
  kernel_cases c = {0};
  for (size_t k = 0; k < sizeof exact1 / sizeof *exact1; k++) {
    kernel_unary(&c, 0, exact1[k], t, t, "");
  }
  kernel_unary(&c, 0, "is-finite", t, "pred", "");
  for (size_t k = 0; k < sizeof math1 / sizeof *math1; k++) {
    kernel_unary(&c, kernel_tolerance(t), math1[k], t, t, "");
  }
  for (size_t k = 0; k < sizeof exact2 / sizeof *exact2; k++) {
    kernel_binary(&c, 0, exact2[k], t, t, "");
  }
  for (size_t k = 0; k < sizeof math2 / sizeof *math2; k++) {
    kernel_binary(&c, kernel_tolerance(t), math2[k], t, t, "");
  }
  static const char *const comparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  for (size_t k = 0; k < 6; k++) {
    kernel_binary(&c, 0, "compare", t, "pred", TEXT(" {comparison=%s}", comparisons[k]));
  }
  kernel_add(&c, 0,
             TEXT("%s[37](%%p: pred[37], %%x: %s[37], %%y: %s[37]) {\n%%z = select(%%p, %%x, %%y) : %s[37]\nreturn "
                  "%%z\n}",
                  t, t, t, t));
  kernel_add(&c, 0,
             TEXT("%s[37](%%l: %s[], %%x: %s[37], %%h: %s[37]) {\n%%z = clamp(%%l, %%x, %%h) : %s[37]\nreturn %%z\n}",
                  t, t, t, t, t));
  kernel_check_all(&c);
}
END_TEST

START_TEST(elementwise_ints) {
  static const char *const one[] = {"abs", "negate", "not", "sign"};
  static const char *const two[] = {"add",     "subtract", "multiply", "divide", "remainder",  "power",      "maximum",
                                    "minimum", "and",      "or",       "xor",    "shift-left", "shift-right"};
  static const char *const comparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  const char *t = kernel_ints[_i];
  kernel_cases c = {0};
  for (size_t k = 0; k < sizeof one / sizeof *one; k++) {
    kernel_unary(&c, 0, one[k], t, t, "");
  }
  for (size_t k = 0; k < sizeof two / sizeof *two; k++) {
    kernel_binary(&c, 0, two[k], t, t, "");
  }
  for (size_t k = 0; k < 6; k++) {
    kernel_binary(&c, 0, "compare", t, "pred", TEXT(" {comparison=%s}", comparisons[k]));
  }
  kernel_check_all(&c);
}
END_TEST

START_TEST(elementwise_others) {
  kernel_cases c = {0};
  static const char *const two[] = {"and", "or", "xor"};
  for (int k = 0; k < 3; k++) {
    kernel_binary(&c, 0, two[k], "pred", "pred", "");
  }
  kernel_unary(&c, 0, "not", "pred", "pred", "");
  kernel_binary(&c, 0, "compare", "pred", "pred", " {comparison=lt}");
  for (int k = 0; k < 2; k++) {
    const char *t = k ? "c128" : "c64", *part = k ? "f64" : "f32";
    double tolerance = k ? 1e-12 : 1e-5;
    static const char *const ops[] = {"add", "subtract", "multiply", "divide"};
    for (int j = 0; j < 4; j++) {
      kernel_binary(&c, tolerance, ops[j], t, t, "");
    }
    kernel_unary(&c, tolerance, "abs", t, part, "");
    kernel_unary(&c, 0, "negate", t, t, "");
    kernel_unary(&c, 0, "real", t, part, "");
    kernel_unary(&c, 0, "imag", t, part, "");
    kernel_binary(&c, 0, "complex", part, t, "");
    kernel_binary(&c, 0, "compare", t, "pred", " {comparison=ne}");
    kernel_unary(&c, 0, "convert", t, "f32", " {saturate=false, rounding=nearest}");
    kernel_unary(&c, 0, "convert", "s32", t, " {saturate=false, rounding=nearest}");
  }
  kernel_unary(&c, 0, "bitcast-convert", "f32", "u32", "");
  kernel_unary(&c, 0, "bitcast-convert", "s64", "f64", "");
  kernel_unary(&c, 0, "bitcast-convert", "bf16", "s16", "");
  kernel_unary(&c, 0, "bitcast-convert", "u8", "s8", "");
  kernel_unary(&c, 0, "bitcast-convert", "u4", "s4", "");
  kernel_unary(&c, 0, "bitcast-convert", "s4", "u4", "");
  kernel_unary(&c, 0, "bitcast-convert", "s4", "f4e2m1fn", "");
  kernel_unary(&c, 0, "bitcast-convert", "f4e2m1fn", "s4", "");
  kernel_check_all(&c);
}
END_TEST

START_TEST(conversions) {
  static const char *const more[] = {"pred", "f8e8m0fnu"};
  kernel_cases c = {0};
  const char *from = _i < KERNEL_FLOATS                 ? kernel_floats[_i]
                     : _i < KERNEL_FLOATS + KERNEL_INTS ? kernel_ints[_i - KERNEL_FLOATS]
                                                        : more[_i - KERNEL_FLOATS - KERNEL_INTS];
  for (int k = 0; k < KERNEL_FLOATS + KERNEL_INTS + 2; k++) {
    const char *to = k < KERNEL_FLOATS                 ? kernel_floats[k]
                     : k < KERNEL_FLOATS + KERNEL_INTS ? kernel_ints[k - KERNEL_FLOATS]
                                                       : more[k - KERNEL_FLOATS - KERNEL_INTS];
    kernel_unary(&c, 0, "convert", from, to,
                 k % 2 ? " {saturate=true, rounding=nearest}" : " {saturate=false, rounding=nearest}");
    if (k == KERNEL_FLOATS + KERNEL_INTS + 1) {
      kernel_unary(&c, 0, "convert", from, to, " {saturate=false, rounding=up}");
      kernel_unary(&c, 0, "convert", from, to, " {saturate=true, rounding=down}");
    }
  }
  kernel_check_all(&c);
}
END_TEST

START_TEST(refusals) {
  kernel_cases c = {0};
  const char *why = NULL;
  emit_target t;
  hlo_instr *sorted = kernel_parse(
      kernel_add(&c, 0, "f32[4](%x: f32[4]) {\n%y = sort(%x) {dimension=0, descending=false} : f32[4]\nreturn %y\n}"));
  ck_assert(!emit_supports(sorted, &why));
  ck_assert_ptr_nonnull(why);
  status s = emit_target_init(kernel_arena, NULL, "pentium-pro", 0, &t);
  ck_assert_int_eq(status_get_code(s), STATUS_INVALID_ARGUMENT);
  status_free(s);
  s = emit_target_init(kernel_arena, NULL, "native", 5, &t);
  ck_assert_int_eq(status_get_code(s), STATUS_INVALID_ARGUMENT);
  status_free(s);
}
END_TEST

/* Chains of elementwise operations may run in place; operations that move elements may not. */
START_TEST(in_place) {
  kernel_cases c = {0};
  hlo_instr *i =
      kernel_parse(kernel_add(&c, 0,
                              "f32[4,4](%x: f32[4,4], %y: f32[4,4]) {\n%a = negate(%x) : f32[4,4]\n%t = transpose(%y) "
                              "{permutation=[1, 0]} : f32[4,4]\n%z = add(%a, %t) : f32[4,4]\nreturn %z\n}"));
  ck_assert(emit_can_alias(i, 0, 0));
  ck_assert(!emit_can_alias(i, 1, 0));
  i = kernel_parse(
      kernel_add(&c, 0,
                 "f32[4](%x: f32[4]) {\n%m = reduce(%x) {dimensions=[0], reducer=add} : f32[]\n%b = broadcast(%m) "
                 "{dimensions=[]} : f32[4]\n%z = subtract(%x, %b) : f32[4]\nreturn %z\n}"));
  ck_assert(emit_can_alias(i, 0, 0)); /* a row is read before it is written */
  i = kernel_parse(
      kernel_add(&c, 0,
                 "f32[4,4](%x: f32[4,4]) {\n%m = reduce(%x) {dimensions=[1], reducer=add} : f32[4]\n%b = broadcast(%m) "
                 "{dimensions=[1]} : f32[4,4]\n%z = subtract(%x, %b) : f32[4,4]\nreturn %z\n}"));
  ck_assert(!emit_can_alias(i, 0, 0)); /* column j needs the sum of row j, which would be overwritten
                                          before */
}
END_TEST

int main(void) {
  TCase *t = tcase_create("emit");
  tcase_add_checked_fixture(t, kernel_setup, kernel_teardown);
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, elementwise_floats, 0, KERNEL_FLOATS);
  tcase_add_loop_test(t, elementwise_ints, 0, KERNEL_INTS);
  tcase_add_test(t, elementwise_others);
  tcase_add_loop_test(t, conversions, 0, KERNEL_FLOATS + KERNEL_INTS + 2);
  tcase_add_test(t, refusals);
  tcase_add_test(t, in_place);
  return run_suite("emit", t);
}
