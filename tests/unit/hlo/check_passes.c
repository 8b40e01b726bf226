/* check_passes.c - tests that random modules have the same results before and after every pass and the usual
 * pipelines. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "hlo/schedule/hlo_report.h"
#include "hlo/passes/pass.h"
#include "hlo/text/text.h"
#include "hlo/text/verify.h"
#include "tests/suite.h"

static arena *memory;

/* --- random numbers --- */

static uint64_t state;

static uint32_t below(uint32_t n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33) % n;
}

/* --- random modules --- */

#ifndef SEEDS
#define SEEDS 120
#endif

enum { MAX_VALUES = 128, MAX_ROOTS = 4, N_PARAMS = 4, N_OPS = 40 };

typedef struct maker {
  hlo_builder b;
  hlo_value values[MAX_VALUES];
  uint32_t n;
} maker;

static void put(maker *m, hlo_value v) {
  ck_assert_msg(!m->b.error, "%s", status_message(m->b.error));
  if (v.def && m->n < MAX_VALUES && shape_elements(hlo_shape(v)) <= 4096) {
    m->values[m->n++] = v;
  }
}

/* Picks one of the values, preferably a late one, so that chains form. */
static hlo_value pick(maker *m) { return m->values[below(2) ? m->n - 1 - below(m->n < 6 ? m->n : 6) : below(m->n)]; }

static bool is_f32(hlo_value v) { return hlo_type(v) == DTYPE_F32; }

/* Returns a value of x's type and shape: an existing one, a splat, or a broadcast along one dimension. */
static hlo_value partner(maker *m, hlo_value x) {
  const shape *s = hlo_shape(x);
  for (int tries = 0; tries < 8; tries++) {
    hlo_value y = pick(m);
    if (shape_equal(hlo_shape(y), s)) {
      return y;
    }
  }
  static const double numbers[] = {0, 1, 2, -1, 0.5, 4, 3};
  if (s->rank == 0 || below(2)) {
    return hlo_like(&m->b, x, numbers[below(7)]);
  }
  int64_t d = below(s->rank);
  void *data;
  literal l = literal_new(memory, shape_make(hlo_type(x), 1, &s->dims[d]), &data);
  for (int64_t k = 0; k < s->dims[d]; k++) {
    dtype_store_f64(hlo_type(x), (char *)data + k * (int64_t)dtype_bytes(hlo_type(x)), (double)below(7) - 3, true,
                    DTYPE_ROUND_NEAREST);
  }
  return hlo_broadcast(&m->b, hlo_constant(&m->b, l), *s, &d);
}

static void make_unary(maker *m) {
  static const hlo_op ops[] = {HLO_NEG, HLO_ABS, HLO_NEG, HLO_ABS, HLO_SIGN, HLO_TANH, HLO_LOGISTIC};
  hlo_value x = pick(m);
  uint32_t n = is_f32(x) ? 7 : 4;
  put(m, hlo_unary(&m->b, ops[below(n)], x));
}

static void make_binary(maker *m) {
  static const hlo_op ops[] = {HLO_ADD, HLO_SUB, HLO_MUL, HLO_MAX, HLO_MIN, HLO_ADD, HLO_DIV};
  hlo_value x = pick(m), y = partner(m, x);
  bool swap = below(3) == 0;
  put(m, hlo_binary(&m->b, ops[below(is_f32(x) ? 7 : 6)], swap ? y : x, swap ? x : y));
}

/* Adds a select that depends on a comparison of parameters, not of computed numbers: a pass may change these by a
 * rounding, and a comparison would then choose otherwise. */
static void make_select(maker *m) {
  hlo_value p = m->values[below(N_PARAMS)], x = pick(m);
  if (shape_same_dims(hlo_shape(p), hlo_shape(x))) {
    hlo_value c = hlo_compare(&m->b, (hlo_comparison)below(6), p, partner(m, p));
    put(m, hlo_select(&m->b, below(2) ? hlo_unary(&m->b, HLO_NOT, c) : c, x, partner(m, x)));
  }
}

static void make_transpose(maker *m) {
  hlo_value x = pick(m);
  int64_t p[SHAPE_MAX_RANK];
  int rank = hlo_rank(x);
  for (int k = 0; k < rank; k++) {
    int at = (int)below((uint32_t)k + 1);
    p[k] = p[at];
    p[at] = k;
  }
  put(m, hlo_transpose(&m->b, x, p));
}

static void make_reshape(maker *m) {
  hlo_value x = pick(m);
  const shape *s = hlo_shape(x);
  dim dims[SHAPE_MAX_RANK];
  int n = 0;
  for (int k = 0; k < s->rank && n < 6; k++) { /* splits and merges dimensions, and adds dimensions of 1 */
    if (below(4) == 0) {
      dims[n++] = 1;
    }
    if (n && below(3) == 0) {
      dims[n - 1] *= s->dims[k];
    } else if (s->dims[k] % 2 == 0 && below(3) == 0) {
      dims[n++] = 2;
      dims[n++] = s->dims[k] / 2;
    } else {
      dims[n++] = s->dims[k];
    }
  }
  shape t = shape_make(hlo_type(x), n, dims);
  if (shape_elements(&t) == shape_elements(s)) {
    put(m, hlo_reshape(&m->b, x, n, dims));
  }
}

static void make_slice(maker *m) {
  hlo_value x = pick(m);
  const shape *s = hlo_shape(x);
  dim starts[SHAPE_MAX_RANK] = {0}, limits[SHAPE_MAX_RANK];
  int64_t strides[SHAPE_MAX_RANK];
  for (int k = 0; k < s->rank; k++) {
    starts[k] = s->dims[k] > 1 && below(2) ? below(2) : 0;
    limits[k] = s->dims[k] - (s->dims[k] > starts[k] + 1 && below(3) == 0);
    strides[k] = 1 + (below(4) == 0);
  }
  put(m, hlo_slice(&m->b, x, starts, limits, strides));
}

static void make_pad(maker *m) {
  hlo_value x = pick(m);
  int64_t low[SHAPE_MAX_RANK], high[SHAPE_MAX_RANK], interior[SHAPE_MAX_RANK];
  for (int k = 0; k < hlo_rank(x); k++) {
    low[k] = below(2);
    high[k] = below(2);
    interior[k] = below(8) == 0;
  }
  put(m, hlo_pad(&m->b, x, hlo_scalar(&m->b, hlo_type(x), below(2)), low, high, interior));
}

static void make_concat(maker *m) {
  hlo_value x = pick(m);
  if (hlo_rank(x)) {
    hlo_value parts[] = {x, partner(m, x), partner(m, x)};
    put(m, hlo_concatenate(&m->b, 1 + below(3), parts, below((uint32_t)hlo_rank(x))));
  }
}

static void make_reduce(maker *m) {
  static const hlo_reducer reducers[] = {HLO_REDUCE_ADD, HLO_REDUCE_MAX, HLO_REDUCE_MIN};
  hlo_value x = pick(m);
  if (hlo_rank(x)) {
    int64_t d = below((uint32_t)hlo_rank(x));
    hlo_value r = hlo_reduce(&m->b, x, reducers[below(3)], 1, &d);
    put(m, r);
    if (below(2)) { /* and broadcasts the result back, as normalisations do */
      int64_t dims[SHAPE_MAX_RANK];
      for (int k = 0, n = 0; k < hlo_rank(x); k++) {
        if (k != d) {
          dims[n++] = k;
        }
      }
      put(m, hlo_binary(&m->b, HLO_SUB, x, hlo_broadcast(&m->b, r, *hlo_shape(x), dims)));
    }
  }
}

static void make_dot(maker *m) {
  hlo_value x = pick(m);
  if (hlo_rank(x) == 0 || hlo_rank(x) > 3 || !is_f32(x)) {
    return;
  }
  int64_t d = below((uint32_t)hlo_rank(x)), zero = 0, dims[] = {hlo_shape(x)->dims[d], 3};
  void *data;
  literal l = literal_new(memory, shape_make(DTYPE_F32, 2, dims), &data);
  for (int64_t k = 0; k < dims[0] * 3; k++) {
    ((float *)data)[k] = (float)below(5) - 2;
  }
  hlo_dot_dims dd = {.n_contract = 1, .lhs_contract = &d, .rhs_contract = &zero};
  hlo_value r = hlo_dot(&m->b, x, hlo_constant(&m->b, l), &dd);
  put(m, r);
  put(m, hlo_binary(&m->b, below(2) ? HLO_MUL : HLO_ADD, r, partner(m, r)));
}

static void make_take(maker *m) {
  hlo_value x = pick(m);
  if (hlo_rank(x)) {
    int64_t d = below((uint32_t)hlo_rank(x)), n = hlo_shape(x)->dims[d], indices[3];
    for (int k = 0; k < 3; k++) {
      indices[k] = below(2) ? k % n : below((uint32_t)n);
    }
    put(m, hlo_take(&m->b, x, hlo_s64s(&m->b, indices, 1 + below(3)), d));
  }
}

static void make_reverse(maker *m) {
  hlo_value x = pick(m);
  if (hlo_rank(x)) {
    int64_t d = below((uint32_t)hlo_rank(x));
    put(m, hlo_reverse(&m->b, x, 1, &d));
  }
}

static hlo_module *random_module(uint64_t seed) {
  static void (*const makers[])(maker *) = {make_unary,     make_binary,  make_binary, make_binary, make_select,
                                            make_transpose, make_reshape, make_slice,  make_pad,    make_concat,
                                            make_reduce,    make_dot,     make_take,   make_reverse};
  state = seed * 2654435761u + 12345;
  hlo_module *m = hlo_module_create(memory, "random");
  m->entry = hlo_computation_create(m, "main");
  maker k = {.b = hlo_builder_make(m->entry)};
  dim dims[] = {2 + below(3), 1 + below(4), 4};
  for (int p = 0; p < N_PARAMS; p++) {
    put(&k, hlo_result(hlo_parameter(m->entry, shape_make(p == 3 ? DTYPE_S32 : DTYPE_F32, p == 2 ? 2 : 3,
                                                          p == 2 ? dims + 1 : dims)),
                       0));
  }
  for (int n = 0; n < N_OPS; n++) {
    makers[below(sizeof makers / sizeof *makers)](&k);
  }
  hlo_value roots[MAX_ROOTS];
  for (int n = 0; n < MAX_ROOTS; n++) {
    roots[n] = k.values[n < 2 ? k.n - 1 - (uint32_t)n : below(k.n)];
  }
  hlo_set_roots(m->entry, MAX_ROOTS, roots);
  return m;
}

/* --- comparing --- */

static literal random_argument(const shape *s) {
  void *data;
  literal l = literal_new(memory, *s, &data);
  for (int64_t k = 0; k < shape_elements(s); k++) {
    dtype_store_f64((dtype)s->type, (char *)data + k * (int64_t)dtype_bytes((dtype)s->type), (double)below(9) - 4, true,
                    DTYPE_ROUND_NEAREST);
  }
  return l;
}

static bool close_to(double x, double y, double scale, double tolerance) {
  return x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= tolerance * scale;
}

static bool same_literal(const literal *x, const literal *y, double tolerance) {
  double scale = 0;
  if (!shape_equal(&x->shape, &y->shape)) {
    return false;
  }
  for (int64_t k = 0; k < shape_elements(&x->shape); k++) {
    double v = fabs(literal_f64(x, k));
    scale = isfinite(v) && v > scale ? v : scale;
  }
  for (int64_t k = 0; k < shape_elements(&x->shape); k++) {
    if (!close_to(literal_f64(x, k), literal_f64(y, k), scale, tolerance)) {
      return false;
    }
  }
  return true;
}

static bool takes_epilogue(void *data, const hlo_instr *contraction, const hlo_instr *consumer, uint32_t operand) {
  return hlo_info(consumer)->kind == HLO_ELEMENTWISE;
}

static bool takes_fused(void *data, hlo_fusion_kind kind, const hlo_instr *i) {
  hlo_kind k = hlo_info(i)->kind;
  return k == HLO_ELEMENTWISE || k == HLO_MOVEMENT || (kind == HLO_FUSION_INPUT && i->op == HLO_REDUCE);
}

typedef struct trial {
  const char *passes;
  double tolerance; /* relative to the largest element; 0: the same numbers */
  uint64_t seed;
} trial;

static void stop_if(status s, const trial *t, const hlo_module *m) {
  if (s) {
    const char *text = "";
    status_free(hlo_print(memory, m, NULL, &text, NULL));
    ck_abort_msg("seed %llu, %s: %s\n%.3000s", (unsigned long long)t->seed, t->passes, status_message(s), text);
  }
}

static bool takes_in_place_update(void *data, const hlo_instr *i) { return i->n_operands > 0; }

static status try_passes(void *data) {
  static const hlo_target target = {.name = "test",
                                    .takes_epilogue = takes_epilogue,
                                    .takes_fused = takes_fused,
                                    .takes_in_place_update = takes_in_place_update,
                                    .channels_last = true};
  const trial *t = data;
  hlo_module *m = random_module(t->seed), *original = hlo_module_clone(memory, m);
  literal args[N_PARAMS], before[MAX_ROOTS], after[MAX_ROOTS];
  for (int k = 0; k < N_PARAMS; k++) {
    args[k] = random_argument(&m->entry->params[k]->shapes[0]);
  }
  stop_if(hlo_verify(m), t, m);
  stop_if(ref_eval_computation(m->entry, args, memory, before), t, m);
  const hlo_pass *steps = NULL;
  uint32_t n = 0;
  pass_context c = {
      .arena = memory, .eval = ref_fold, .target = &target, .any_order = true, .verify = true, .check_changed = true};
  stop_if(hlo_pass_parse_list(memory, t->passes, &steps, &n), t, m);
  stop_if(hlo_run_passes(m, steps, n, &c), t, original);
  stop_if(ref_eval_computation(m->entry, args, memory, after), t, m);
  for (int k = 0; k < MAX_ROOTS; k++) {
    if (!same_literal(&before[k], &after[k], t->tolerance)) {
      stop_if(status_error(STATUS_INTERNAL, "result %d differs", k), t, original);
    }
  }
  return NULL;
}

#define CLEAN "fold,simplify,cse,dce,fold,simplify,dce"

static const trial trials[] = {
    {"dce", 0, 0},
    {"cse", 0, 0},
    {"fold", 0, 0},
    {"simplify", 1e-5, 0},
    {"transpose_sinking,dce", 1e-5, 0},
    {"gather_to_broadcast,dce", 1e-5, 0},
    {"gather_to_slice,dce", 0, 0},
    {"qdq_fusion,dce", 1e-5, 0},
    {"integer_sums,dce", 0, 0},
    {"batch_norm,dce", 1e-5, 0},
    {"layout,dce", 1e-5, 0},
    {"epilogue", 0, 0},
    {"concat_in_place", 0, 0},
    {"epilogue,concat_in_place,dce", 0, 0},
    {"row_fusion", 1e-5, 0},
    {"reduce_fusion", 0, 0},
    {"loop_fusion", 0, 0},
    {"epilogue,row_fusion,reduce_fusion,loop_fusion,dce", 1e-5, 0},
    {CLEAN, 1e-5, 0},
    {CLEAN "," CLEAN ",reduce_fusion,loop_fusion,dce,cse", 1e-5, 0},
    {CLEAN ",transpose_sinking," CLEAN ",batch_norm,dce," CLEAN ",epilogue,row_fusion,reduce_fusion,loop_fusion,dce",
     1e-5, 0},
};

START_TEST(random_modules) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    memory = arena_create(NULL);
    trial t = trials[_i];
    t.seed = seed;
    stop_if(guard_run(try_passes, &t), &t, NULL);
    arena_destroy(memory);
  }
}
END_TEST

/* Compares the report's counts with those by hand for a dot with its bias, a fusion of two elementwise
 * operations, and a single one. */
START_TEST(report) {
  static const char text[] =
      "onnx-xla hlo 1\n module \"m\" {\n"
      "computation loop(%0: f32[4,4]) { %1 = tanh(%0) : f32[4,4]\n %2 = negate(%1) : f32[4,4]\n return %2 }\n"
      "computation out(%0: f32[4,4], %1: f32[4,4], %2: f32[4,4]) {\n"
      "%3 = dot(%0, %1) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[4,4]\n"
      "%4 = add(%3, %2) : f32[4,4]\n return %4 }\n"
      "entry main(%0: f32[4,4]) {\n"
      "%1 = fusion(%0) {kind=loop, computations=[loop]} : f32[4,4]\n"
      "%2 = fusion(%0, %1, %0) {kind=output, computations=[out]} : f32[4,4]\n"
      "%3 = abs(%2) : f32[4,4]\n return %3 }\n}\n";
  memory = arena_create(NULL);
  hlo_module *m = NULL;
  status s = hlo_parse(memory, text, strlen(text), NULL, &m);
  ck_assert_msg(!s, "%s", status_message(s));
  hlo_report r = hlo_report_of(m);
  ck_assert_uint_eq(r.operations, 3);
  ck_assert_uint_eq(r.fusions, 2);
  ck_assert_uint_eq(r.fused, 4);
  ck_assert_uint_eq(r.fused_dots, 1);
  ck_assert_uint_eq(r.dots, 0);
  ck_assert_uint_eq(r.lone_elementwise, 1);
  ck_assert_int_eq(r.bytes_moved, (2 + 4 + 2) * 64);
  arena_destroy(memory);
}
END_TEST

static status run_skipping(const char *skip, uint32_t *ran) {
  static const char text[] = "onnx-xla hlo 1\n module \"m\" {\nentry main(%0: f32[4]) { return %0 }\n}\n";
  static const hlo_pass inner[] = {HLO_STEP(fold), HLO_STEP(cse)};
  static const hlo_pass steps[] = {HLO_NEEDED_STEP(dce), HLO_GROUP("clean", inner), HLO_STEP(loop_fusion)};
  hlo_module *m = NULL;
  pass_context c = {.arena = memory, .any_order = true, .skip = skip};
  TRY(hlo_parse(memory, text, strlen(text), NULL, &m));
  TRY(hlo_run_passes(m, steps, sizeof steps / sizeof *steps, &c));
  *ran = c.n_records;
  return NULL;
}

/* How many passes run if some are skipped: a group is skipped with all its passes, and a needed pass cannot
 * be skipped. */
START_TEST(skipping) {
  static const struct {
    const char *skip;
    uint32_t ran;
  } rows[] = {{NULL, 4}, {"", 4}, {"cse", 3}, {"loop-fusion,cse", 2}, {"loop_fusion", 3}, {"clean", 2}, {"loop", 4}};
  memory = arena_create(NULL);
  for (uint32_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    uint32_t ran = 0;
    status s = run_skipping(rows[k].skip, &ran);
    ck_assert_msg(!s, "%s", status_message(s));
    ck_assert_uint_eq(ran, rows[k].ran);
  }
  uint32_t ran;
  status s = run_skipping("cse,dce", &ran);
  ck_assert(s && strstr(status_message(s), "needs pass dce"));
  status_free(s);
  arena_destroy(memory);
}
END_TEST

/* Arithmetic of large arrays that depends on no parameter, with a view of one of them, an array of equal
 * elements, and two roots. */
static const char *index_arithmetic(arena *a) {
  enum { STEPS = 100 };
  const char *text =
      "%i = iota() {dimension=0} : f32[256,256]\n%j = iota() {dimension=1} : f32[256,256]\n"
      "%0 = subtract(%i, %j) : f32[256,256]\n%zero = multiply(%0, %0) : f32[256,256]\n";
  for (int k = 1; k < STEPS; k++) {
    text = k % 10
               ? arena_printf(a, "%s%%%d = %s(%%%d, %%i) : f32[256,256]\n", text, k, k % 2 ? "add" : "subtract", k - 1)
               : arena_printf(a, "%s%%%dv = reshape(%%%d) : f32[65536]\n%%%d = reshape(%%%dv) : f32[256,256]\n", text,
                              k, k - 1, k, k);
  }
  return arena_printf(
      a,
      "onnx-xla hlo 1\n module \"m\" {\nentry main(%%x: f32[2]) {\n%s%%e = subtract(%%%d, %%%d) : f32[256,256]\n"
      "%%r = reduce(%%zero) {dimensions=[0,1], reducer=add} : f32[]\nreturn %%%d, %%50, %%e, %%r\n}\n}\n",
      text, STEPS - 1, STEPS - 1, STEPS - 1);
}

static status fold_in_little_memory(void *data) {
  arena *a = arena_create(data), *far = arena_create(NULL);
  const char *text = index_arithmetic(far);
  hlo_module *m, *whole;
  literal want[4], got[4], x = literal_new(far, shape_make(DTYPE_F32, 1, (dim[]){2}), &(void *){NULL});
  TRY(hlo_parse(far, text, strlen(text), NULL, &whole));
  TRY(ref_eval_computation(whole->entry, &x, far, want));
  TRY(hlo_parse(a, text, strlen(text), NULL, &m));
  static const hlo_pass steps[] = {HLO_STEP(fold), HLO_STEP(dce)};
  pass_context c = {.arena = a, .eval = ref_fold, .fold_bytes = 1 << 20, .verify = true, .check_changed = true};
  TRY(hlo_run_passes(m, steps, 2, &c));
  TRY(ref_eval_computation(m->entry, &x, far, got));
  for (int k = 0; k < 4; k++) {
    CHECK_THAT(same_literal(&want[k], &got[k], 0), STATUS_INTERNAL, "result %d differs", k);
    CHECK_THAT(hlo_literal(m->entry->roots[k]), STATUS_INTERNAL, "result %d is not known", k);
  }
  arena_destroy(a);
  arena_destroy(far);
  return NULL;
}

/* Folds a hundred results of 256 KiB each within 4 MiB: the memory of a result must be freed after its last
 * use. */
START_TEST(folding_lets_go) {
  mem_budget budget = {.limit = 4 << 20};
  status s = guard_run(fold_in_little_memory, &budget);
  ck_assert_msg(!s, "%s", status_message(s));
  ck_assert_uint_eq(budget.used, 0);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("random");
  tcase_set_timeout(c, 120);
  tcase_add_loop_test(c, random_modules, 0, sizeof trials / sizeof *trials);
  tcase_add_test(c, report);
  tcase_add_test(c, skipping);
  tcase_add_test(c, folding_lets_go);
  return run_suite("passes", c);
}
