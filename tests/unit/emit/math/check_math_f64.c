/* check_math_f64.c - measures the errors that emit/math/math.h states for f64, in comparison with libm in long double
 * where long double has more digits than f64. */
#include <assert.h>
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit/kernel/compile.h"
#include "hlo/ir/builder.h"
#include "runtime/host/code_loader.h"
#include "runtime/kernel_abi.h"
#include "tests/suite.h"
#include "tests/unit/emit/kernel_test.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

static long double logistic(long double x) { return 1 / (1 + expl(-x)); }

typedef struct function {
  hlo_op op;
  long double (*one)(long double), (*two)(long double, long double);
  double ulps; /* the error in ULP, as emit/math/math.h states it */
} function;

static const function functions[] = {
    {HLO_EXP, expl, NULL, 1.0},          {HLO_EXPM1, expm1l, NULL, 2.1}, {HLO_LOG, logl, NULL, 0.9},
    {HLO_LOG1P, log1pl, NULL, 1.4},      {HLO_SIN, sinl, NULL, 2.6},     {HLO_COS, cosl, NULL, 2.6},
    {HLO_SINH, sinhl, NULL, 1.7},        {HLO_COSH, coshl, NULL, 1.6},   {HLO_TANH, tanhl, NULL, 2.7},
    {HLO_LOGISTIC, logistic, NULL, 2.4}, {HLO_TAN, tanl, NULL, 2.7},     {HLO_ASIN, asinl, NULL, 2.3},
    {HLO_ACOS, acosl, NULL, 1.3},        {HLO_ATAN, atanl, NULL, 1.8},   {HLO_ASINH, asinhl, NULL, 2.0},
    {HLO_ACOSH, acoshl, NULL, 2.4},      {HLO_ATANH, atanhl, NULL, 2.2}, {HLO_ERF, erfl, NULL, 1.3},
    {HLO_POW, NULL, powl, 0.8},          {HLO_ATAN2, NULL, atan2l, 1.7}, {HLO_REM, NULL, fmodl, 0},
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions, N = 1 << 14 };

/* --- samples --- */

/* Kinds of samples: any bits; small numbers; numbers near 1, near 0 and near multiples of pi/2; and special
 * ones, at which a range begins or ends, or for which C defines the result. */
enum { KINDS = 6 };
static double sample(int round, int k) {
  static const double special[] = {
      0,           -0.0,        HUGE_VAL, -HUGE_VAL, (double)NAN, 1,       -1,      5e-324,  -5e-324,
      0x1p-1022,   DBL_MAX,     -DBL_MAX, 0.5,       -0.5,        2,       -2,      3,       -3,
      1.5,         -2.5,        709.782,  709.79,    -708.3,      -745.1,  -745.2,  710.4,   1023,
      1024,        -1074,       -1075,    0x1p20,    1048575,     -0x1p20, 0x1p28,  0x1p53,  0x1p52 + 1,
      -0x1p52 - 1, 0x1p60,      1e300,    -37.4,     22,          0x1p-27, 0x1p-53, 0x1p-54, 1 - 0x1p-53,
      1 + 0x1p-52, 0x1p-53 - 1, 0.70711,  1.41422,   0.95,        -6,      5.9,     -0x1p-30};
  enum { N_SPECIAL = sizeof special / sizeof *special };
  static_assert(N_SPECIAL * N_SPECIAL < N, "all pairs of them are samples");
  if (k < N_SPECIAL * N_SPECIAL) {
    return special[round & 64 ? k / N_SPECIAL : k % N_SPECIAL];
  }
  uint64_t r = next_random(), bits = next_random();
  double any, unit = (double)(r >> 11) * 0x1p-53, sign = r & 1 ? 1 : -1;
  memcpy(&any, &bits, sizeof any);
  switch ((round & 63) % KINDS) {
    case 0: return any;
    case 1: return sign * unit * 10;
    case 2: return sign * unit * 750;
    case 3: return sign * (1 + (unit - 0.5) * 0.01);
    case 4: return sign * unit;
    default: return (double)((int64_t)(r >> 33) % 600000) * 1.57079632679489662 * sign;
  }
}

/* Returns the error in units of the last place of the exact result: 0 if both are equal or both are NaN, 1e9
 * if the result is wrong. */
static double ulps(double got, long double want) {
  double near = (double)want;
  if (isnan(near) || isnan(got)) {
    return isnan(near) && isnan(got) ? 0 : 1e9;
  }
  if (got == near && (isinf(got) || got == 0)) {
    return !signbit(got) == !signbit(near) ? 0 : 1e9;
  }
  if (isinf(near) || isinf(got)) { /* near the largest number, a finite result and infinity count as 1 ULP
                                      apart */
    return fabsl(want) > 0.999999L * DBL_MAX && fabsl(want) < 1.000001L * DBL_MAX ? 1 : 1e9;
  }
  long double step = fabsl(want) < 0x1p-1022L ? 0x1p-1074L : ldexpl(1, ilogbl(want) - 52);
  return (double)(fabsl((long double)got - want) / step);
}

/* --- large arguments --- */

/* The numbers are those f64 that are nearest to a multiple of pi/2 (the first two), the largest, and some just beyond
 * the limit of reduce_near (emit/math/math_f64_trig.c).  The results were computed with 2500 bits; they are written
 * here since those of C libraries are not exact for some of these numbers. */
static const struct {
  double x;
  long double result[3]; /* sine, cosine, tangent */
} large[] = {
    {0x1.6ac5b262ca1ffp+849, {0x8000000000000000p-63L, -0x8a5739735d1177a3p-124L, -0xecdd4d3cbab1ad1dp-3L}},
    {-0x1.6ac5b262ca1ffp+849, {-0x8000000000000000p-63L, -0x8a5739735d1177a3p-124L, 0xecdd4d3cbab1ad1dp-3L}},
    {0x1.fffffffffffffp+1023, {0xa297e4c59a74b5b1p-71L, -0xffff31767d5ba9e0p-64L, -0xa29867f394a41dc7p-71L}},
    {-0x1p+1023, {-0x90292465edbaff2dp-64L, -0xd38cf9361195f50bp-64L, 0xae735a6068151a9ep-64L}},
    {0x1p+20, {0xa9366597e432ad9ep-65L, 0xf19d6d497f156f5fp-64L, 0xb34972bbc9037ba6p-65L}},
    {-0x1.0000000000001p+20, {-0xa9366599c76d8830p-65L, 0xf19d6d492a7a3c93p-64L, -0xb34972be07cb6169p-65L}},
    {0x1.921fb54442d18p+20, {-0x8d313198a2e03707p-97L, 0x8000000000000000p-63L, -0x8d313198a2e03707p-97L}},
    {0x1.921fb54442d18p+33, {-0x8d313198a2d90e8bp-84L, 0xffffffffffd91063p-64L, -0x8d313198a2ee8800p-84L}},
    {0x1.52d02c7e14af6p+76, {-0xa5ea65d0a22973bcp-65L, 0xf22f960cd3e40773p-64L, -0xaf611bb4be724728p-65L}},
    {0x1p+120, {0xc171a32af37e5b6cp-65L, -0xed06685b36c66c4dp-64L, -0xd0ee13e55840afdbp-65L}},
    {-0x1.b951f1572eba5p+23, {0x8000000000000000p-63L, -0xfaa7a913d2741fe0p-123L, -0x82bac26214d9d375p-4L}},
};
enum { N_LARGE = sizeof large / sizeof *large };

/* --- one kernel for each function --- */

static hlo_instr *build_function(const function *f) {
  hlo_module *m = hlo_module_create(memory, "test");
  hlo_computation *c = hlo_computation_create(m, "main");
  dim n = N;
  shape s = shape_make(DTYPE_F64, 1, &n);
  hlo_value x = hlo_result(hlo_parameter(c, s), 0), y = f->two ? hlo_result(hlo_parameter(c, s), 0) : x;
  hlo_builder b = hlo_builder_make(c);
  hlo_value r = f->two ? hlo_binary(&b, f->op, x, y) : hlo_unary(&b, f->op, x);
  ck_assert(r.def);
  return r.def;
}

typedef struct machine {
  const char *cpu;
  int lanes;
  bool alone; /* without the C library, as on a GPU */
} machine;
static const machine machines[] = {{"native", 0, false}, {"x86-64-v3", 1, false}, {"x86-64", 0, false},
                                   {"native", 0, true},  {"x86-64-v3", 0, true},  {"x86-64-v3", 1, true}};

typedef struct job {
  const function *f;
  const machine *on;
  double worst, at[3];
} job;

static status compile(const job *j, rt_kernel_fn **out, emit_kernel_info *info) {
  emit_target t;
  emit_module *m = NULL;
  rt_code *code;
  TRY(emit_target_init(memory, NULL, j->on->cpu, j->on->lanes, &t));
  t.libm = !j->on->alone;
  TRY(emit_module_create(memory, &t, "math", &m));
  TRY(emit_kernel(m, "f", build_function(j->f), NULL, info));
  TRY(kernel_load(memory, m, j->on->alone ? kernel_resolve_nothing : kernel_resolve, &code));
  *out = (rt_kernel_fn *)(intptr_t)rt_code_find(code, "f");
  return NULL;
}

static status measure(void *data) {
  job *j = data;
  rt_kernel_fn *kernel;
  emit_kernel_info info;
  TRY(compile(j, &kernel, &info));
  double *v[3];
  for (int k = 0; k < 3; k++) {
    v[k] = arena_alloc_aligned(memory, N * sizeof *v[k], 64);
  }
  for (int round = 0; round < (getenv("ONNX_XLA_FULL") ? 500 : 5 * KINDS); round++) {
    for (int k = 0; k < N; k++) {
      v[0][k] = sample(round, k);
      v[1][k] = sample((round / KINDS) | 64, k);
    }
    const void *buffers[] = {v[0], j->f->two ? v[1] : v[2], v[2], NULL};
    kernel(buffers, NULL, 0, info.grid);
    for (int k = 0; k < N; k++) {
      double e = ulps(v[2][k], j->f->two ? j->f->two(v[0][k], v[1][k]) : j->f->one(v[0][k]));
      if (e > j->worst) {
        *j = (job){j->f, j->on, e, {v[0][k], v[1][k], v[2][k]}};
      }
    }
  }
  return NULL;
}

START_TEST(stated_errors) {
  for (size_t k = 0; k < sizeof machines / sizeof *machines; k++) {
    const function *f = &functions[_i];
    job j = {.f = f, .on = &machines[k]};
    status s = guard_run(measure, &j);
    ck_assert_msg(!s, "%s", status_message(s));
    const char *name = hlo_op_get_info(f->op)->name;
    if (getenv("MATH_VERBOSE")) {
      printf("%-22s %-10s%s %.3f at %a (%g), %a: %a\n", name, j.on->cpu, j.on->alone ? " alone" : "", j.worst, j.at[0],
             j.at[0], j.at[1], j.at[2]);
    }
    ck_assert_msg(j.worst <= f->ulps, "%s on %s: %.3f ULP at %a, %a (gives %a), stated are %.2f", name, j.on->cpu,
                  j.worst, j.at[0], j.at[1], j.at[2], f->ulps);
  }
}
END_TEST

static status measure_large(void *data) {
  static const hlo_op ops[] = {HLO_SIN, HLO_COS, HLO_TAN};
  double *x = arena_alloc_aligned(memory, N * sizeof *x, 64), *y = arena_alloc_aligned(memory, N * sizeof *y, 64);
  const machine *on = data;
  for (int k = 0; k < N; k++) {
    x[k] = large[k % N_LARGE].x;
  }
  for (int op = 0; op < 3; op++) {
    rt_kernel_fn *kernel;
    emit_kernel_info info;
    TRY(compile(&(job){.f = &(function){.op = ops[op]}, .on = on}, &kernel, &info));
    kernel((const void *[]){x, y, NULL}, NULL, 0, info.grid);
    for (int k = 0; k < N; k++) {
      double e = ulps(y[k], large[k % N_LARGE].result[op]);
      ck_assert_msg(e <= 2, "%s of %a on %s is %a: %g ULP", hlo_op_get_info(ops[op])->name, x[k], on->cpu, y[k], e);
    }
  }
  return NULL;
}

START_TEST(large_arguments) {
  for (size_t k = 0; k < sizeof machines / sizeof *machines; k++) {
    status s = machines[k].alone ? guard_run(measure_large, (void *)&machines[k]) : NULL;
    ck_assert_msg(!s, "%s", status_message(s));
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("math-f64");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_loop_test(t, stated_errors, 0, N_FUNCTIONS);
  tcase_add_test(t, large_arguments);
  tcase_set_timeout(t, 300);
  return run_suite("math-f64", t);
}
