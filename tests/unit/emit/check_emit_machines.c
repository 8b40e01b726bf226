/* check_emit_machines.c - compiles kernels for machines other than this one: for GPUs the PTX text is tested, for
 * other processors that LLVM can select all instructions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit/kernel/special.h"
#include "tests/unit/emit/kernel_case.h"
#include "tests/unit/emit/kernel_texts.h"

/* --- GPU: as text only --- */

static status ptx_of_all(void *data) {
  kernel_cases *c = data;
  for (uint32_t k = 0; k < c->n; k++) {
    const char *text = NULL;
    status s = emit_ptx(kernel_arena, TEXT("kernel_%u", k), kernel_parse(&c->items[k]), &text);
    TRY(status_prefix(s, "%s", c->items[k].text));
    ck_assert_msg(strstr(text, TEXT(".visible .entry kernel_%u(", k)) != NULL, "%s", text);
    ck_assert_msg(strstr(text, ".target sm_80") != NULL, "%s", text);
    ck_assert_msg(strstr(text, ".extern .func") == NULL, "a call in\n%s\nof\n%s", text, c->items[k].text);
    const char *folder = getenv("ONNX_XLA_PTX_DIR"); /* for ptxas */
    FILE *f = folder ? fopen(TEXT("%s/k%u.ptx", folder, k), "w") : NULL;
    if (f) {
      fputs(text, f);
      fclose(f);
    }
  }
  return NULL;
}

/* Adds all functions for which the C library may be called elsewhere; a GPU has none. */
static void add_functions(kernel_cases *c) {
  static const char *const one[] = {"exponential", "exponential-minus-one",
                                    "log",         "log-plus-one",
                                    "logistic",    "erf",
                                    "sine",        "cosine",
                                    "tan",         "asin",
                                    "acos",        "atan",
                                    "sinh",        "cosh",
                                    "tanh",        "asinh",
                                    "acosh",       "atanh"};
  static const char *const two[] = {"power", "atan2", "remainder"};
  static const char *const types[] = {"f32", "f64"};
  for (int j = 0; j < 2; j++) {
    for (size_t k = 0; k < sizeof one / sizeof *one; k++) {
      kernel_unary(c, 0, one[k], types[j], types[j], "");
    }
    for (size_t k = 0; k < sizeof two / sizeof *two; k++) {
      kernel_binary(c, 0, two[k], types[j], types[j], "");
    }
  }
}

START_TEST(ptx) {
  kernel_cases c = {0};
  add_functions(&c);
  for (size_t k = 0; k < N_MOVEMENT; k++) {
    kernel_add(&c, 0, movement_texts[k]);
  }
  for (size_t k = 0; k < N_FUSED; k++) {
    kernel_add(&c, 0, fused_reductions[k]);
  }
  static const char *const one[] = {"exponential",        "log",   "sine", "tanh",    "erf",
                                    "round-nearest-even", "floor", "sqrt", "logistic"};
  static const char *const two[] = {"add", "divide", "maximum", "power", "atan2"};
  static const char *const types[] = {"f32", "f16", "bf16", "f8e4m3fn"};
  for (int j = 0; j < 4; j++) {
    for (size_t k = 0; k < sizeof one / sizeof *one; k++) {
      kernel_unary(&c, 0, one[k], types[j], types[j], "");
    }
    for (size_t k = 0; k < sizeof two / sizeof *two; k++) {
      kernel_binary(&c, 0, two[k], types[j], types[j], "");
    }
  }
  kernel_binary(&c, 0, "divide", "s32", "s32", "");
  kernel_binary(&c, 0, "maximum", "f64", "f64", "");
  kernel_binary(&c, 0, "power", "s64", "s64", "");
  status s = guard_run(ptx_of_all, &c);
  ck_assert_msg(!s, "%s", status_message(s));
}
END_TEST

/* --- other processors: whether LLVM can select it all --- */

static const char *const triples[][2] = {{"aarch64-unknown-linux-gnu", "generic"},
                                         {"riscv64-unknown-linux-gnu", "generic-rv64"},
                                         {"x86_64-pc-linux-gnu", "x86-64-v2"},
                                         {"x86_64-pc-linux-gnu", "x86-64-v3"},
                                         {"x86_64-pc-linux-gnu", "x86-64-v4"}};

/* Returns the only instruction of a text, by itself. */
static const hlo_instr *alone(const char *text) {
  kernel_cases c = {0};
  return hlo_callee(kernel_parse(kernel_add(&c, 0, text)), 0)->roots[0].def;
}

static status add_sorts(emit_module *m, const char *const *types, int n) {
  static const int64_t front[] = {INT64_MAX, 3};
  for (int k = 0; k < 2 * n; k++) {
    const char *t = types[k / 2];
    const hlo_instr *i = alone(
        TEXT("%s[4,99](%%x: %s[4,99]) {\n%%y = sort(%%x) {dimension=%d, descending=true} : %s[4,99]\nreturn %%y\n}", t,
             t, k % 2, t));
    emit_sort config = {.parts = 2, .front = front[k % 2], .iota = -1};
    emit_kernel_info info;
    TRY(emit_sort_kernel(m, TEXT("sort_%s_%d", t, k), i, NULL, &config, 0, &info));
  }
  return NULL;
}

/* Adds the kernels that emit_kernel does not write. */
static status add_special(emit_module *m) {
  emit_kernel_info info;
  TRY(add_sorts(m, kernel_floats, KERNEL_FLOATS));
  TRY(add_sorts(m, kernel_ints, KERNEL_INTS));
  const hlo_instr *i = alone(
      "s64[18,3](%b: f32[2,50,4], %s: f32[2,3,50], %m: s64[], %o: f32[]) {\n"
      "%y, %n = non-max-suppression(%b, %s, %m, %o, %o) {limit=3} : s64[18,3], s64[]\nreturn %y\n}");
  for (uint32_t phase = 0; phase < EMIT_NMS_PHASES; phase++) {
    TRY(emit_nms_kernel(m, TEXT("nms_%u", phase), i, NULL, &(emit_nms){.parts = 2}, phase, &info));
  }
  i = alone("u64[700](%s: u64[1]) {\n%y = rng-bit-generator(%s) {algorithm=mt19937} : u64[700]\nreturn %y\n}");
  return emit_twister_kernel(m, "twister", i, NULL, NULL, 0, &info);
}

static status objects_of_all(void *data) {
  kernel_cases *c = data;
  for (size_t j = 0; j < sizeof triples / sizeof *triples; j++) {
    emit_target t;
    emit_module *m = NULL;
    const void *object;
    size_t size;
    TRY(emit_target_init(kernel_arena, triples[j][0], triples[j][1], 0, &t));
    TRY(emit_module_create(kernel_arena, &t, "test", &m));
    for (uint32_t k = 0; k < c->n; k++) {
      TRY(emit_kernel(m, TEXT("kernel_%u", k), kernel_parse(&c->items[k]), NULL, &c->items[k].info));
    }
    TRY(add_special(m));
    TRY(status_prefix(emit_module_object(m, &object, &size), "%s", triples[j][0]));
    ck_assert(size > 64 && memcmp(object, "\177ELF", 4) == 0);
    const char *folder = getenv("ONNX_XLA_PTX_DIR");
    FILE *f = folder ? fopen(TEXT("%s/%zu.o", folder, j), "w") : NULL;
    if (f) {
      fwrite(object, 1, size, f);
      fclose(f);
    }
  }
  return NULL;
}

START_TEST(other_machines) {
  kernel_cases c = {0};
  static const char *const one[] = {"exponential",        "log",   "sine", "tanh", "erf",
                                    "round-nearest-even", "floor", "ceil", "sqrt", "sign"};
  static const char *const two[] = {"add", "divide", "maximum", "power", "atan2", "remainder"};
  for (size_t k = 0; k < N_MOVEMENT; k++) {
    kernel_add(&c, 0, movement_texts[k]);
  }
  for (int j = 0; j < KERNEL_FLOATS; j++) {
    for (size_t k = 0; k < sizeof one / sizeof *one; k++) {
      kernel_unary(&c, 0, one[k], kernel_floats[j], kernel_floats[j], "");
    }
    for (size_t k = 0; k < sizeof two / sizeof *two; k++) {
      kernel_binary(&c, 0, two[k], kernel_floats[j], kernel_floats[j], "");
    }
    for (int k = 0; k < KERNEL_INTS; k++) {
      kernel_unary(&c, 0, "convert", kernel_floats[j], kernel_ints[k], " {saturate=true, rounding=nearest}");
      kernel_unary(&c, 0, "convert", kernel_ints[k], kernel_floats[j], " {saturate=true, rounding=nearest}");
    }
    kernel_reduce(&c, kernel_floats[j], "add", 0);
  }
  for (int j = 0; j < KERNEL_INTS; j++) {
    kernel_binary(&c, 0, "divide", kernel_ints[j], kernel_ints[j], "");
    kernel_binary(&c, 0, "power", kernel_ints[j], kernel_ints[j], "");
  }
  status s = guard_run(objects_of_all, &c);
  ck_assert_msg(!s, "%s", status_message(s));
}
END_TEST

int main(void) {
  TCase *t = tcase_create("emit-machines");
  tcase_add_checked_fixture(t, kernel_setup, kernel_teardown);
  tcase_set_timeout(t, 300);
  tcase_add_test(t, ptx);
  tcase_add_test(t, other_machines);
  return run_suite("emit-machines", t);
}
