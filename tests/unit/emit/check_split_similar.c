/* check_split_similar.c - functions that differ only in constants share their code (emit/llvm/split_similar.h).  That
 * the numbers stay right is tested on the machine of kernel_test.h that has functions. */
#include <string.h>

#include "tests/unit/emit/kernel_case.h"

static uint32_t count(const char *text, const char *what) {
  uint32_t n = 0;
  for (const char *at = strstr(text, what); at; at = strstr(at + 1, what)) {
    n++;
  }
  return n;
}

/* Kernels that multiply a slice of their input by a constant: the first three differ in sizes and in the constant, and
 * the last one subtracts it. */
static const char *const texts[] = {
    "f32[9,4](%x: f32[9,12]) { %c = constant() {value=f32[] 1.5} : f32[] %b = broadcast(%c) {dimensions=[]} : f32[9,4] "
    "%s = slice(%x) {starts=[0,3], limits=[9,7], strides=[1,1]} : f32[9,4] %y = multiply(%s, %b) : f32[9,4] return %y "
    "}",
    "f32[7,4](%x: f32[7,20]) { %c = constant() {value=f32[] 2.5} : f32[] %b = broadcast(%c) {dimensions=[]} : f32[7,4] "
    "%s = slice(%x) {starts=[0,5], limits=[7,9], strides=[1,1]} : f32[7,4] %y = multiply(%s, %b) : f32[7,4] return %y "
    "}",
    "f32[8,4](%x: f32[8,36]) { %c = constant() {value=f32[] 3.5} : f32[] %b = broadcast(%c) {dimensions=[]} : f32[8,4] "
    "%s = slice(%x) {starts=[0,9], limits=[8,13], strides=[1,1]} : f32[8,4] %y = multiply(%s, %b) : f32[8,4] return %y "
    "}",
    "f32[9,4](%x: f32[9,12]) { %c = constant() {value=f32[] 1.5} : f32[] %b = broadcast(%c) {dimensions=[]} : f32[9,4] "
    "%s = slice(%x) {starts=[0,3], limits=[9,7], strides=[1,1]} : f32[9,4] %y = subtract(%s, %b) : f32[9,4] return %y "
    "}"};

/* Returns the IR of kernels of the n texts from number `first` on. */
static status ir_of(bool has_functions, uint32_t first, uint32_t n, const char **out) {
  const emit_machine machine = {"native", 4, EMIT_RANGES, has_functions};
  emit_target t = emit_machine_target(kernel_arena, &machine);
  emit_module *m = NULL;
  size_t size;
  TRY(emit_module_create(kernel_arena, &t, "similar", &m));
  for (uint32_t k = first; k < first + n; k++) {
    kernel_cases c = {0};
    emit_kernel_info info;
    TRY(emit_kernel(m, TEXT("kernel_%u", k), kernel_parse(kernel_add(&c, 0, texts[k])), NULL, &info));
  }
  return emit_module_ir(m, out, &size);
}

static status check_all(void *data) {
  const char *text;
  (void)data;
  TRY(ir_of(true, 0, 3, &text)); /* three similar kernels jump to one function, or call it where no jumps are written */
  ck_assert_uint_eq(count(text, "define internal void @similar"), 1);
  uint32_t jumps = count(text, "module asm \"jmp \\22similar");
  ck_assert(jumps == 0 || count(text, "define void @kernel") == 0);
  ck_assert_uint_eq(jumps + count(text, "call void @similar"), 3);
  ck_assert_uint_eq(count(text, "fmul"), 1);
  TRY(ir_of(true, 2, 2, &text)); /* other operations */
  ck_assert_uint_eq(count(text, "@similar"), 0);
  TRY(ir_of(true, 0, 1, &text)); /* nothing to share */
  ck_assert_uint_eq(count(text, "@similar"), 0);
  TRY(ir_of(false, 0, 3, &text)); /* the code's speed counts */
  ck_assert_uint_eq(count(text, "@similar"), 0);
  ck_assert_uint_eq(count(text, "fmul"), 3);
  return NULL;
}

START_TEST(similar) {
  status s = guard_run(check_all, NULL);
  ck_assert_msg(!s, "%s", status_message(s));
}
END_TEST

int main(void) {
  TCase *c = tcase_create("similar");
  tcase_add_checked_fixture(c, kernel_setup, kernel_teardown);
  tcase_add_test(c, similar);
  return run_suite("split_similar", c);
}
