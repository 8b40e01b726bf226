/* check_math.c - measures the errors that emit/math/math.h states for f32, in comparison with libm in f64. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit/kernel/compile.h"
#include "hlo/ir/builder.h"
#include "hlo/analysis/queries.h"
#include "runtime/host/code_loader.h"
#include "tests/suite.h"
#include "tests/unit/emit/kernel_test.h"
#include "hlo/passes/fusion/fuse.h"
#include "runtime/kernel_abi.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

static double logistic(double x) { return 1 / (1 + exp(-x)); }
/* Returns y * logistic(x), where a logistic(x) of at most half of the least denormal number is rounded to 0. */
static double gated(double x, double y) {
  const double none = -103.972077084;
  return x < none ? y * 0 : y / (1 + exp(-x));
}

typedef struct function {
  hlo_op op;
  double (*one)(double);
  double (*two)(double, double);
  double fused, plain; /* errors in ULP, as emit/math/math.h states them */
} function;

static const function functions[] = {
    {HLO_EXP, exp, NULL, 1.1, 1.1},     {HLO_EXPM1, expm1, NULL, 1.7, 1.7}, {HLO_LOG, log, NULL, 0.9, 0.9},
    {HLO_LOG1P, log1p, NULL, 1.4, 1.4}, {HLO_SIN, sin, NULL, 1.5, 1.5},     {HLO_COS, cos, NULL, 1.6, 1.6},
    {HLO_TAN, tan, NULL, 2.6, 2.6},     {HLO_ASIN, asin, NULL, 2.3, 2.3},   {HLO_ACOS, acos, NULL, 1.1, 1.1},
    {HLO_ATAN, atan, NULL, 1.5, 1.6},   {HLO_SINH, sinh, NULL, 1.7, 1.7},   {HLO_COSH, cosh, NULL, 1.6, 1.6},
    {HLO_TANH, tanh, NULL, 2.5, 2.5},   {HLO_ASINH, asinh, NULL, 1.9, 1.9}, {HLO_ACOSH, acosh, NULL, 2.1, 2.1},
    {HLO_ATANH, atanh, NULL, 2.2, 2.2}, {HLO_ERF, erf, NULL, 1.1, 1.3},     {HLO_LOGISTIC, logistic, NULL, 2.5, 2.5},
    {HLO_POW, NULL, pow, 0.51, 0.51},   {HLO_ATAN2, NULL, atan2, 1.6, 1.6}, {HLO_REM, NULL, fmod, 0, 0},
    {HLO_MUL, NULL, gated, 7.0, 3.8}, /* y times logistic(x) */
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions, N = 1 << 16 };

/* --- samples --- */

/* Returns sample k of a round: any bits, small numbers, angles, or numbers near 1 and near multiples of pi/2. */
static float sample(int round, int k) {
  static const float special[] = {
      0,       -0.0f,    INFINITY,       -INFINITY,  NAN,   1,        -1,        1e-45f,    -1e-45f, 1e-38f,
      3.4e38f, -3.4e38f, 0.5f,           -0.5f,      2,     -2,       88.7228f,  88.73f,    -87.33f, -103.97f,
      -104.1f, 8192,     8191.9995f,     3.1415927f, 1e22f, 16777216, 0.999999f, 1.000001f, 0.95f,   -0.550001f,
      3,       -3,       -0x1.a2684cp53f /* an angle with an uncommonly inexact tangent */};
  enum { N_SPECIAL = sizeof special / sizeof *special };
  if (k < N_SPECIAL * N_SPECIAL) {
    return special[round & 64 ? k / N_SPECIAL : k % N_SPECIAL];
  }
  uint64_t r = next_random();
  uint32_t bits = (uint32_t)(r >> 20);
  float any, unit = (float)(r >> 40) * 0x1p-24f, sign = r & 1 ? 1.0f : -1.0f;
  memcpy(&any, &bits, sizeof any);
  switch ((round & 63) % 6) {
    case 0: return any;
    case 1: return sign * unit * 10;
    case 2: return sign * unit * 110;
    case 3: return sign * unit * 8192; /* up to where angles are reduced differently */
    case 4: return sign * (1 + (unit - 0.5f) * 0.01f);
    default: return (float)((double)((int64_t)(r >> 33) % 20000) * 1.57079632679489662 * (r & 2 ? 1 : 1e5)) * sign;
  }
}

/* Returns the error in units of the last place of the exact result: 0 if both are equal or both are NaN, 1e9
 * if the result is wrong. */
static double ulps(float got, double want) {
  if ((isnan(want) && isnan(got)) || (double)got == want) {
    return (double)got == want && got == 0 && !isnan(want) && !signbit(got) != !signbit(want) ? 1e9 : 0;
  }
  float near = (float)want;
  if (near == got && isinf(got)) {
    return 0;
  }
  if (isinf(near) && isfinite(got)) { /* if the exact result is just above the largest number, a finite result
                                         is 1 ULP off */
    return fabs(want) > 3.5e38 ? 1e9 : 1;
  }
  if (isnan(want) || isnan(got) || isinf(got)) {
    return isinf(got) && fabs(want) > 3.4028e38 ? 1 : 1e9;
  }
  double step = fabs(want) < 0x1p-126 ? 0x1p-149 : ldexp(1, ilogb(want) - 23);
  return fabs((double)got - want) / step;
}

/* --- one kernel for each function --- */

static hlo_instr *build_function(const function *f) {
  hlo_module *m = hlo_module_create(memory, "test");
  hlo_computation *c = hlo_computation_create(m, "main");
  dim n = N;
  shape s = shape_make(DTYPE_F32, 1, &n);
  hlo_value x = hlo_result(hlo_parameter(c, s), 0), y = f->two ? hlo_result(hlo_parameter(c, s), 0) : x;
  hlo_builder b = hlo_builder_make(c);
  hlo_value gate = f->op == HLO_MUL ? hlo_unary(&b, HLO_LOGISTIC, x) : x;
  hlo_value r = f->two ? hlo_binary(&b, f->op, gate, y) : hlo_unary(&b, f->op, x);
  ck_assert(r.def);
  if (gate.def == x.def) {
    return r.def;
  }
  hlo_set_roots(c, 1, &r);
  hlo_fuser fuser = hlo_fuser_make(c, memory);
  return hlo_fuse(&fuser, HLO_FUSION_LOOP, 2, (hlo_instr *[]){gate.def, r.def});
}

typedef struct machine {
  const char *cpu;
  int lanes;
  bool fused;
  bool alone; /* without the C library, as on a GPU */
} machine;
static const machine machines[] = {{"native", 0, true, false},   {"x86-64-v3", 1, true, false},
                                   {"x86-64", 0, false, false},  {"native", 0, true, true},
                                   {"x86-64-v3", 1, true, true}, {"x86-64", 0, false, true}};

static status compile(const function *f, const machine *on, rt_kernel_fn **out, emit_kernel_info *info) {
  emit_target t;
  emit_module *m = NULL;
  rt_code *code;
  TRY(emit_target_init(memory, NULL, on->cpu, on->lanes, &t));
  t.libm = !on->alone;
  TRY(emit_module_create(memory, &t, "math", &m));
  TRY(emit_kernel(m, "f", build_function(f), NULL, info));
  TRY(kernel_load(memory, m, on->alone ? kernel_resolve_nothing : kernel_resolve, &code));
  *out = (rt_kernel_fn *)(intptr_t)rt_code_find(code, "f");
  return NULL;
}

static status measure(const function *f, const machine *on, int rounds, double *worst, float *at) {
  rt_kernel_fn *kernel;
  emit_kernel_info info;
  TRY(compile(f, on, &kernel, &info));
  float *x = arena_alloc_aligned(memory, N * sizeof *x, 64), *y = arena_alloc_aligned(memory, N * sizeof *y, 64);
  float *r = arena_alloc_aligned(memory, N * sizeof *r, 64);
  for (int round = 0; round < rounds; round++) {
    for (int k = 0; k < N; k++) {
      x[k] = sample(round, k);
      y[k] = sample((round / 6) | 64, k);
    }
    if (f->two) {
      kernel((const void *[]){x, y, r}, NULL, 0, info.grid);
    } else {
      kernel((const void *[]){x, r}, NULL, 0, info.grid);
    }
    for (int k = 0; k < N; k++) {
      double e = ulps(r[k], f->two ? f->two((double)x[k], (double)y[k]) : f->one((double)x[k]));
      if (e > *worst) {
        *worst = e;
        at[0] = x[k];
        at[1] = y[k];
        at[2] = r[k];
      }
    }
  }
  return NULL;
}

typedef struct job {
  const function *f;
  double limit;
  const machine *on;
  double worst;
  float at[3];
} job;

static status run_job(void *data) {
  job *j = data;
  return measure(j->f, j->on, getenv("ONNX_XLA_FULL") ? 500 : 36, &j->worst, j->at);
}

START_TEST(stated_errors) {
  for (size_t k = 0; k < sizeof machines / sizeof *machines; k++) {
    const function *f = &functions[_i];
    job j = {.f = f, .on = &machines[k], .limit = machines[k].fused ? f->fused : f->plain};
    status s = guard_run(run_job, &j);
    ck_assert_msg(!s, "%s", status_message(s));
    const char *name = hlo_op_get_info(f->op)->name;
    if (getenv("MATH_VERBOSE")) {
      printf("%-22s %-10s %.3f at %a (%g), %a: %a\n", name, j.on->cpu, j.worst, (double)j.at[0], (double)j.at[0],
             (double)j.at[1], (double)j.at[2]);
    }
    ck_assert_msg(j.worst <= j.limit, "%s on %s: %.3f ULP at %a, %a (gives %a), stated are %.2f", name, j.on->cpu,
                  j.worst, (double)j.at[0], (double)j.at[1], (double)j.at[2], j.limit);
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("math");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_loop_test(t, stated_errors, 0, N_FUNCTIONS);
  tcase_set_timeout(t, 300);
  return run_suite("math", t);
}
