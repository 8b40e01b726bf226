/* check_bind.c - a module with symbols becomes a module of constants for given sizes. */
#include "backend_ref/eval.h"
#include "base/dim/guard.h"
#include "hlo/ir/bind.h"
#include "hlo/text/verify.h"
#include "tests/unit/hlo/hlo_case.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

/* Concatenates x and y, doubles the number of rows, and returns that number, too. */
static const char text[] =
    "(%x: f32[n,4], %y: f32[m,4]) {\n"
    "  %s = sizes() {elements=[2*m+2*n,-1]} : s64[2]\n"
    "  %c = concatenate(%x, %y) {dimension=0} : f32[n+m,4]\n"
    "  %b = broadcast(%c) {dimensions=[1,2]} : f32[2,n+m,4]\n"
    "  %r = reshape(%b) : f32[2*m+2*n,4]\n"
    "  %h = slice(%r) {starts=[n,0], limits=[n+m,4], strides=[1,1]} : f32[m,4]\n"
    "  return %r, %s, %h\n}";

static shape rows(int64_t n) { return shape_make(DTYPE_F32, 2, (dim[]){n, 4}); }

START_TEST(sizes_are_filled_in) {
  hlo_computation *c = parse_entry(memory, text);
  hlo_module *bound;
  ck_assert(!hlo_is_static(c->module));
  ASSERT_OK(hlo_bind(memory, c->module, (shape[]){rows(3), rows(0)}, &bound));
  ASSERT_OK(hlo_verify(bound));
  ck_assert(hlo_is_static(bound));
  ck_assert_str_eq(SHAPE_STR(NULL, hlo_shape(bound->entry->roots[0])), "f32[6,4]");
  ck_assert_str_eq(SHAPE_STR(NULL, hlo_shape(bound->entry->roots[2])), "f32[0,4]");
  const literal *l = hlo_literal(bound->entry->roots[1]);
  ck_assert_ptr_nonnull(l);
  ck_assert_int_eq(literal_i64(l, 0), 6);
  ck_assert_int_eq(literal_i64(l, 1), -1);
  ck_assert(!hlo_is_static(c->module)); /* the module with symbols is unchanged */
}
END_TEST

static void expect_refusal(const char *module, const shape *inputs, const char *words) {
  hlo_module *bound;
  status s = hlo_bind(memory, parse_entry(memory, module)->module, inputs, &bound);
  ck_assert_msg(s && strstr(status_message(s), words), "%s", status_message(s));
  status_free(s);
}

START_TEST(sizes_that_do_not_fit) {
  static const char same[] = "(%x: f32[n,4], %y: f32[n,4], %z: f32[n-2,4]) {\n  return %x\n}";
  expect_refusal(same, (shape[]){rows(3), rows(2), rows(1)}, "input 1 is f32[2,4]; dimension 0 of f32[n,4] must be 3");
  expect_refusal(same, (shape[]){rows(3), rows(3), rows(2)},
                 "input 2 is f32[2,4]; dimension 0 of f32[n-2,4] must be 1");
  expect_refusal(same, (shape[]){rows(3), shape_scalar(DTYPE_F32), rows(1)}, "input 1 is f32[] instead of f32[n,4]");
  expect_refusal("(%x: f32[n+m,4]) {\n  return %x\n}", (shape[]){rows(3)}, "no input tells the size");
  expect_refusal("(%x: f32[n,4]) {\n  %e = empty() : f32[n-2,4]\n  return %x\n}", (shape[]){rows(1)}, "empty");
}
END_TEST

START_TEST(guards_are_checked) {
  hlo_module *m = parse_entry(memory, "(%x: f32[n,4]) {\n  return %x\n}")->module, *bound;
  dim n = dim_symbol(m->dims, "n");
  dim_set_hint(m->dims, n, 7);
  dim_set_source(m->dims, "a: Slice");
  ck_assert(dim_at_most(m->dims, n, 9));
  ASSERT_OK(hlo_bind(memory, m, (shape[]){rows(9)}, &bound));
  status s = hlo_bind(memory, m, (shape[]){rows(10)}, &bound);
  ck_assert_msg(s && strstr(status_message(s), "a: Slice: the program is for sizes with n <= 9"), "%s",
                status_message(s));
  status_free(s);
}
END_TEST

/* A dimension of n elements has n - 1 gaps between them for every n except 0. */
START_TEST(holes_between_elements) {
  for (int64_t hint = 0; hint < 2; hint++) {
    hlo_module *m = parse_entry(memory, "(%x: f32[n,4], %v: f32[]) {\n  return %x, %v\n}")->module, *bound;
    dim_set_hint(m->dims, dim_symbol(m->dims, "n"), hint);
    hlo_value x = hlo_result(m->entry->params[0], 0), v = hlo_result(m->entry->params[1], 0);
    hlo_builder b = hlo_builder_make(m->entry);
    hlo_value y = hlo_pad(&b, x, v, (int64_t[]){1, 0}, (int64_t[]){1, 0}, (int64_t[]){2, 0});
    hlo_set_roots(m->entry, 1, &y);
    ASSERT_OK(hlo_builder_take_error(&b));
    ck_assert_str_eq(SHAPE_STR(m->dims, hlo_shape(y)), hint ? "f32[3*n,4]" : "f32[n+2,4]");
    for (int64_t n = 0; n < 2; n++) {
      status s = hlo_bind(memory, m, (shape[]){rows(n), shape_scalar(DTYPE_F32)}, &bound);
      ck_assert_msg((s == NULL) == (n == hint), "%s", s ? status_message(s) : "not refused");
      status_free(s);
    }
  }
}
END_TEST

/* If two numbers of rows are equal only by a guard, a*b == c*d, which defines no symbol, both arrays are
 * concatenated, not only the first one. */
START_TEST(rows_that_a_guard_equates) {
  hlo_module *m = parse_entry(memory, "(%x: f32[a*b,4], %y: f32[c*d,5]) {\n  return %x, %y\n}")->module;
  for (int k = 0; k < 4; k++) {
    dim_set_hint(m->dims, dim_symbol(m->dims, (const char *[]){"a", "b", "c", "d"}[k]), (int64_t[]){2, 6, 3, 4}[k]);
  }
  hlo_value both[] = {hlo_result(m->entry->params[0], 0), hlo_result(m->entry->params[1], 0)};
  hlo_builder b = hlo_builder_make(m->entry);
  hlo_value y = hlo_concatenate(&b, 2, both, 1);
  ASSERT_OK(hlo_builder_take_error(&b));
  ck_assert_str_eq(SHAPE_STR(m->dims, hlo_shape(y)), "f32[a*b,9]");
}
END_TEST

int main(void) {
  TCase *all = tcase_create("all");
  tcase_add_checked_fixture(all, setup, teardown);
  tcase_add_test(all, sizes_are_filled_in);
  tcase_add_test(all, sizes_that_do_not_fit);
  tcase_add_test(all, guards_are_checked);
  tcase_add_test(all, holes_between_elements);
  tcase_add_test(all, rows_that_a_guard_equates);
  return run_suite("bind", all);
}
