/* check_math_f64.c - measures the errors that emit/llvm/math.h states for f64, in comparison with libm in long double
 * where long double has more digits than f64. */
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

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

static long double logistic(long double x) { return 1 / (1 + expl(-x)); }

typedef struct function {
  hlo_op op;
  long double (*one)(long double), (*two)(long double, long double);
  double ulps; /* as stated */
} function;

static const function functions[] = {
    {HLO_EXP, expl, NULL, 1.0},          {HLO_EXPM1, expm1l, NULL, 2.1}, {HLO_LOG, logl, NULL, 0.9},
    {HLO_LOG1P, log1pl, NULL, 1.4},      {HLO_SIN, sinl, NULL, 2.6},     {HLO_COS, cosl, NULL, 2.6},
    {HLO_SINH, sinhl, NULL, 1.7},        {HLO_COSH, coshl, NULL, 1.6},   {HLO_TANH, tanhl, NULL, 2.5},
    {HLO_LOGISTIC, logistic, NULL, 2.4}, {HLO_REM, NULL, fmodl, 0},
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions, N = 1 << 14 };

/* --- samples --- */

static uint64_t seed = 88172645463325252u;
static uint64_t next_random(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed;
}

/* Any bits; or small numbers; or numbers near 1, 0 and multiples of pi/2, and those at which something begins or ends.
 */
static double sample(int round, int k) {
  static const double special[] = {0,
                                   -0.0,
                                   (double)INFINITY,
                                   -(double)INFINITY,
                                   (double)NAN,
                                   1,
                                   -1,
                                   5e-324,
                                   -5e-324,
                                   0x1p-1022,
                                   DBL_MAX,
                                   -DBL_MAX,
                                   0.5,
                                   -0.5,
                                   2,
                                   709.782,
                                   709.79,
                                   -708.3,
                                   -745.1,
                                   -745.2,
                                   710.4,
                                   0x1p20,
                                   1048575,
                                   0x1p60,
                                   1e300,
                                   -37.4,
                                   22,
                                   0x1p-53,
                                   0x1p-54,
                                   0.70711,
                                   1.41422,
                                   -0x1p-30};
  enum { N_SPECIAL = sizeof special / sizeof *special };
  if (k < N_SPECIAL * N_SPECIAL) {
    return special[round & 64 ? k / N_SPECIAL : k % N_SPECIAL];
  }
  uint64_t r = next_random(), bits = next_random();
  double any, unit = (double)(r >> 11) * 0x1p-53, sign = r & 1 ? 1 : -1;
  memcpy(&any, &bits, sizeof any);
  switch ((round & 63) % 5) {
    case 0: return any;
    case 1: return sign * unit * 10;
    case 2: return sign * unit * 750;
    case 3: return sign * (1 + (unit - 0.5) * 0.01);
    default: return (double)((int64_t)(r >> 33) % 600000) * 1.57079632679489662 * sign;
  }
}

/* In units of the last place of the exact result; 0 for equal, any NaN for any NaN. */
static double ulps(double got, long double want) {
  double near = (double)want;
  if (isnan(near) || isnan(got)) {
    return isnan(near) && isnan(got) ? 0 : 1e9;
  }
  if (got == near && (isinf(got) || got == 0)) {
    return !signbit(got) == !signbit(near) ? 0 : 1e9;
  }
  if (isinf(near) || isinf(got)) { /* the largest number, or overflow rounded down */
    return fabsl(want) > 0.999999L * DBL_MAX && fabsl(want) < 1.000001L * DBL_MAX ? 1 : 1e9;
  }
  long double step = fabsl(want) < 0x1p-1022L ? 0x1p-1074L : ldexpl(1, ilogbl(want) - 52);
  return (double)(fabsl((long double)got - want) / step);
}

/* --- one kernel a function --- */

static void *resolve(const char *name) {
  static const struct {
    const char *name;
    void *f;
  } known[] = {{"fmod", (void *)(intptr_t)(double (*)(double, double))fmod},
               {"sin", (void *)(intptr_t)(double (*)(double))sin},
               {"cos", (void *)(intptr_t)(double (*)(double))cos}};
  for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
    if (strcmp(known[k].name, name) == 0) {
      return known[k].f;
    }
  }
  return NULL;
}

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
} machine;
static const machine machines[] = {{"native", 0}, {"x86-64-v3", 1}, {"x86-64", 0}};

typedef struct job {
  const function *f;
  const machine *on;
  double worst, at[3];
} job;

static status measure(void *data) {
  job *j = data;
  emit_target t;
  emit_module *m = NULL;
  emit_kernel_info info;
  const void *object;
  size_t size;
  rt_code *code;
  TRY(emit_target_init(memory, NULL, j->on->cpu, j->on->lanes, &t));
  TRY(emit_module_create(memory, &t, "math", &m));
  TRY(emit_kernel(m, "f", build_function(j->f), NULL, &info));
  TRY(emit_module_object(m, &object, &size));
  TRY(rt_code_load(memory, (rt_span){object, size}, resolve, &code));
  rt_kernel_fn *kernel = (rt_kernel_fn *)(intptr_t)rt_code_find(code, "f");
  double *v[3];
  for (int k = 0; k < 3; k++) {
    v[k] = arena_alloc_aligned(memory, N * sizeof *v[k], 64);
  }
  for (int round = 0; round < (getenv("ONNX_XLA_FULL") ? 500 : 20); round++) {
    for (int k = 0; k < N; k++) {
      v[0][k] = sample(round, k);
      v[1][k] = sample((round / 5) | 64, k);
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
      printf("%-22s %-10s %.3f at %a (%g), %a: %a\n", name, j.on->cpu, j.worst, j.at[0], j.at[0], j.at[1], j.at[2]);
    }
    ck_assert_msg(j.worst <= f->ulps, "%s on %s: %.3f ULP at %a, %a (gives %a), stated are %.2f", name, j.on->cpu,
                  j.worst, j.at[0], j.at[1], j.at[2], f->ulps);
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("math-f64");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_loop_test(t, stated_errors, 0, N_FUNCTIONS);
  tcase_set_timeout(t, 300);
  return run_suite("math-f64", t);
}
