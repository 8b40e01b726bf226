/* check_qdq_fusion.c - tests that pass qdq_fusion computes a product of dequantised bytes in s32 only if no sum can
 * leave s32: the original is a sum in f32, which does not wrap. */
#include <stdio.h>

#include "backend_ref/eval.h"
#include "hlo/passes/pass.h"
#include "tests/hlo/test_target.h"
#include "tests/unit/hlo/hlo_case.h"

/* A dot of n bytes with n weights, all of them `weight`.  The bytes' scale is 0.5, that of the weights is 0.25. */
static hlo_computation *long_dot(arena *a, int n, int weight) {
  size_t digits = (size_t)snprintf(NULL, 0, "%d, ", weight), used = 0;
  char *list = arena_alloc(a, digits * (size_t)n + 1);
  for (int k = 0; k < n; k++) {
    used += (size_t)snprintf(list + used, digits + 1, k ? ", %d" : "%d", weight);
  }
  return parse_entry(
      a, arena_printf(
             a,
             "(%%x: u8[1,%d]) {\n%%w = constant() {value=s8[%d,1] {%s}} : s8[%d,1]\n"
             "%%half = constant() {value=f32[] 0.5} : f32[]\n%%sx = broadcast(%%half) {dimensions=[]} : f32[1,%d]\n"
             "%%quarter = constant() {value=f32[] 0.25} : f32[]\n"
             "%%sw = broadcast(%%quarter) {dimensions=[]} : f32[%d,1]\n"
             "%%xf = convert(%%x) {saturate=true, rounding=nearest} : f32[1,%d]\n"
             "%%wf = convert(%%w) {saturate=true, rounding=nearest} : f32[%d,1]\n"
             "%%xs = multiply(%%xf, %%sx) : f32[1,%d]\n%%ws = multiply(%%wf, %%sw) : f32[%d,1]\n"
             "%%y = dot(%%xs, %%ws) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[1,1]\n"
             "return %%y\n}",
             n, n, list, n, n, n, n, n, n, n));
}

static bool sums_integers(const hlo_computation *c) {
  bool found = false;
  for (const hlo_instr *i = c->first; i; i = i->next) {
    found = found || (i->op == HLO_DOT && i->shapes[0].type == DTYPE_S32);
  }
  return found;
}

/* The numbers of products, the weight, and whether 255 times the sum of the weights is less than 2^31. */
static const struct {
  int n, weight;
  bool fits;
} rows[] = {{60000, 127, true}, {66312, 127, false}, {70000, 127, false}, {70000, -127, false}, {70000, 1, true}};

START_TEST(long_sums) {
  static const hlo_pass steps[] = {HLO_STEP(qdq_fusion), HLO_STEP(dce)};
  arena *a = arena_create(NULL);
  int n = rows[_i].n;
  hlo_computation *c = long_dot(a, n, rows[_i].weight);
  pass_context context = {.arena = a, .target = &test_target, .verify = true, .check_changed = true};
  ASSERT_OK(hlo_run_passes(c->module, steps, 2, &context));
  ck_assert_int_eq(sums_integers(c), rows[_i].fits);
  void *bytes;
  literal x = literal_new(a, shape_make(DTYPE_U8, 2, (dim[]){1, n}), &bytes), y;
  memset(bytes, 255, (size_t)n);
  ASSERT_OK(ref_eval_computation(c, &x, a, &y));
  double want = 255 * 0.5 * rows[_i].weight * 0.25 * n;
  ck_assert_double_eq_tol(literal_f64(&y, 0), want, 1e-6 * want * (want < 0 ? -1 : 1));
  arena_destroy(a);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("qdq_fusion");
  tcase_add_loop_test(c, long_sums, 0, sizeof rows / sizeof *rows);
  return run_suite("qdq_fusion", c);
}
