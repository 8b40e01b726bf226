/* check_compare.c - how much a product of f32 may differ if a factor was rounded to a denormal number. */
#include <check.h>
#include <math.h>

#include "tests/suite.h"
#include "tests/unit/backend_ref/eval_case.h"
#include "verify/compare.h"

/* x * y, where y is a number that the reference rounded to an f32, and what a target has computed.  The numbers of f32
 * below 2^-126 are multiples of 2^-149, and rounding changes a number by up to half of that. */
typedef struct row {
  float x, y, got;
  bool differs;
} row;

static const row rows[] = {
    /* a target that does not round y: 2.5 * 2^-149 is rounded to 2 * 2^-149, and 1.5 * 2^-149 as well */
    {0x1p100f, 0x2p-149f, 0x2.8p-49f, false},
    {0x1p100f, 0x2p-149f, 0x1.8p-49f, false},
    {0x1p100f, 0x1p-149f, 0x0.8p-49f, false},
    {0x1p100f, 0x1001p-149f, 0x1000.8p-49f, false},
    /* no rounding makes 0 of these, or another number of normal ones */
    {0x1p100f, 0x1p-140f, 0, true},
    {0x1p100f, 0x1p-130f, 0x1.1p-30f, true},
    {0x1p100f, 0x1p-120f, 0x1.001p-20f, true},
    {INFINITY, 0x1p-149f, NAN, true},
    {INFINITY, 0x1p-130f, NAN, true},
    {INFINITY, 0x1p-149f, INFINITY, false},
    /* zeros are exact */
    {INFINITY, 0, INFINITY, true},
    {0x1p100f, 0, 0x1p-40f, true},
    {-INFINITY, 2, -INFINITY, false},
    {-INFINITY, 2, NAN, true},
};

START_TEST(denormal_factors) {
  const row *r = &rows[_i];
  hlo_module *m = eval_parse(
      "onnx-xla hlo 1\nmodule \"m\" {\nentry main(%x: f32[1], %y: f32[1]) {\n"
      "%z = multiply(%x, %y) : f32[1]\nreturn %z\n}\n}\n");
  const hlo_instr *i = m->entry->roots[0].def;
  float want = r->x * r->y;
  shape s = i->shapes[0];
  literal operands[] = {{.shape = s, .data = &r->x}, {.shape = s, .data = &r->y}};
  literal wanted = {.shape = s, .data = &want}, got = {.shape = s, .data = &r->got};
  /* As if the multiplication were fused with the operation that computes y, which is not exact: of f32's u, 2^-24, 16
   * and 2 for each of the 2 operations, as verify_tolerance_of allows. */
  verify_tolerance t = {.unit = 0x1p-24, .of_element = 20 * 0x1p-24};
  verify_evaluation e = {i, operands};
  verify_difference d;
  bool differ;
  ASSERT_OK(verify_compare(eval_memory, &t, 1, &wanted, &got, NULL, NULL, verify_move_instr, &e, &differ, &d));
  ck_assert_msg(differ == r->differs, "%a * %a = %a is %s", r->x, r->y, r->got, differ ? "refused" : "accepted");
}
END_TEST

int main(void) {
  TCase *c = tcase_create("compare");
  tcase_add_checked_fixture(c, eval_setup, eval_teardown);
  tcase_add_loop_test(c, denormal_factors, 0, sizeof rows / sizeof *rows);
  return run_suite("compare", c);
}
