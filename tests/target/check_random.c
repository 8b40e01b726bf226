/* check_random.c - random operators, from ONNX nodes to the numbers that are drawn, on both targets: distributions,
 * seeds, streams, loops.
 *
 * Seeds are fixed, so nothing here depends on luck.  Each bound is 5 standard deviations of the estimate from N draws,
 * which a sound generator exceeds for one seed in 1.7 million. */
#include "backend_cpu/compile/target.h"
#include "backend_cpu/runtime/target.h"
#include "backend_ref/target.h"
#include "runtime/exec/executable.h"
#include "tests/suite.h"
#include "tests/unit/frontend/node_case.h"

enum { N = 200000, CPU = 0, REF = 1 };

static arena *a;

static void setup(void) { a = arena_create(NULL); }
static void teardown(void) { arena_destroy(a); }

static void no_error(status s) { ck_assert_msg(!s, "%s", status_message(s)); }

/* --- models --- */

static Onnx__ModelProto *model_for(const char *outputs) {
  Onnx__ModelProto *m = new_model(a, "", outputs);
  m->opset_import[0]->version = 22;
  return m;
}

static Onnx__NodeProto *node(Onnx__GraphProto *g, const char *op, const char *attributes, const char *inputs,
                             const char *outputs) {
  Onnx__NodeProto *n = graph_node(a, g, op, inputs, outputs);
  case_attributes(a, n, attributes);
  return n;
}

static void constant(Onnx__GraphProto *g, const char *name, const char *text) {
  literal l = case_literal(a, &text);
  PB_ADD(a, g->initializer, g->n_initializer, case_tensor(a, name, &l));
}

/* Adds a constant with n elements, all equal to `value`. */
static void repeated(Onnx__GraphProto *g, const char *name, dtype t, int64_t n, double value) {
  void *data;
  literal l = literal_new(a, shape_make(t, 1, &n), &data);
  for (int64_t k = 0; k < n; k++) {
    dtype_store_f64(t, (char *)data + (size_t)k * dtype_bytes(t), value, true, DTYPE_ROUND_NEAREST);
  }
  PB_ADD(a, g->initializer, g->n_initializer, case_tensor(a, name, &l));
}

/* --- runs --- */

static status compile(int target, const Onnx__ModelProto *proto, rt_program **out) {
  onnx_model *m;
  hlo_module *h;
  size_t size;
  uint8_t *bytes = pack(a, proto, &size);
  TRY(onnx_model_from_memory(a, bytes, size, NULL, NULL, &m));
  bool complete;
  TRY(onnx_import(a, m, &(onnx_import_options){.eval = ref_fold}, &h, &complete));
  rt_compile_options options = {.threads = 1, .eval = ref_fold};
  const rt_compiler *compiler = target == CPU ? &cpu_compiler : &ref_compiler;
  return compiler->compile((struct hlo_module *)h, &options, a, out, NULL);
}

/* Runs a program once, and returns its n_results results. */
static literal *run(const rt_program *p, uint64_t seed, const void *const *inputs) {
  rt_executable *e;
  literal *out = ARENA_NEW_N(a, literal, p->n_results);
  void **results = ARENA_NEW_N(a, void *, p->n_results);
  no_error(rt_executable_create(p, strcmp(p->target, "cpu") == 0 ? &cpu_target : &ref_target, NULL, &e));
  for (uint32_t k = 0; k < p->n_results; k++) {
    out[k] = literal_new(a, p->results[k].shape, &results[k]);
  }
  no_error(rt_execute(rt_executable_binding(e), &(rt_run_options){.seed = seed}, inputs, results));
  rt_executable_destroy(e);
  return out;
}

static literal *draw(int target, const Onnx__ModelProto *m, uint64_t seed) {
  rt_program *p;
  no_error(compile(target, m, &p));
  return run(p, seed, NULL);
}

/* Runs the model on both targets, expects the same bits, and returns the results. */
static literal *draw_both(const Onnx__ModelProto *m, uint64_t seed) {
  rt_program *p;
  no_error(compile(CPU, m, &p));
  literal *cpu = run(p, seed, NULL), *ref = draw(REF, m, seed);
  for (uint32_t k = 0; k < p->n_results; k++) {
    ck_assert_msg(literal_equal(&cpu[k], &ref[k]), "result %u: ref and cpu differ", k);
  }
  return cpu;
}

/* Returns a model of one node without inputs. */
static Onnx__ModelProto *generator(const char *op, const char *attributes) {
  Onnx__ModelProto *m = model_for("y");
  node(m->graph, op, attributes, "", "y");
  return m;
}

/* --- statistics --- */

static const double *doubles(const literal *l) {
  int64_t n = shape_elements(&l->shape);
  double *x = ARENA_NEW_N(a, double, (size_t)n);
  for (int64_t k = 0; k < n; k++) {
    x[k] = dtype_is_float((dtype)l->shape.type) ? literal_f64(l, k) : (double)literal_i64(l, k);
  }
  return x;
}

static double mean_of(const double *x, int64_t n) {
  double sum = 0;
  for (int64_t k = 0; k < n; k++) {
    sum += x[k];
  }
  return sum / (double)n;
}

static double mean_square_of(const double *x, int64_t n, double around) {
  double sum = 0;
  for (int64_t k = 0; k < n; k++) {
    sum += (x[k] - around) * (x[k] - around);
  }
  return sum / (double)n;
}

/* Expects that `got` is within 5 deviations of `want`, plus `rounding` for the rounding of small types. */
static void within(const char *what, double got, double want, double deviation, double rounding) {
  ck_assert_msg(fabs(got - want) <= 5 * deviation + rounding, "%s is %.9g: %.1f deviations from %.9g", what, got,
                fabs(got - want) / deviation, want);
}

/* Expects that `hits` of n draws are about as many as the probability p says. */
static void is_frequency(const char *what, int64_t hits, int64_t n, double p) {
  within(what, (double)hits / (double)n, p, sqrt(p * (1 - p) / (double)n), 0);
}

static void check_moments(const double *x, int64_t n, double mean, double variance, double fourth, double rounding) {
  within("the mean", mean_of(x, n), mean, sqrt(variance / (double)n), rounding);
  within("the variance", mean_square_of(x, n, mean), variance, sqrt((fourth - variance * variance) / (double)n),
         rounding);
}

/* Expects that neighbours are independent: that the correlation of numbers that are 1 to 4 places apart is about 0. */
static void check_lags(const double *x, int64_t n, double mean, double variance) {
  for (int64_t lag = 1; lag <= 4; lag++) {
    double sum = 0;
    for (int64_t k = 0; k + lag < n; k++) {
      sum += (x[k] - mean) * (x[k + lag] - mean) / variance;
    }
    within("a correlation", sum / (double)(n - lag), 0, 1 / sqrt((double)(n - lag)), 0);
  }
}

/* A chi-square test that numbers in [0, 1) are distributed evenly over 256 equal parts. */
static void check_even(const double *x, int64_t n) {
  enum { BINS = 256 };
  int64_t counts[BINS] = {0};
  double sum = 0, each = (double)n / BINS;
  for (int64_t k = 0; k < n; k++) {
    ck_assert_msg(x[k] >= 0 && x[k] < 1, "%.17g", x[k]);
    counts[(int)(x[k] * BINS)]++;
  }
  for (int k = 0; k < BINS; k++) {
    sum += ((double)counts[k] - each) * ((double)counts[k] - each) / each;
  }
  within("chi-square", sum, BINS - 1, sqrt(2.0 * (BINS - 1)), 0);
}

static int by_value(const void *x, const void *y) {
  double p = *(const double *)x, q = *(const double *)y;
  return (p > q) - (p < q);
}

/* The Kolmogorov-Smirnov test for the normal distribution: sqrt(n) D exceeds 2.75 for one seed in two million. */
static void check_normal(const double *x, int64_t n) {
  double *sorted = arena_memdup(a, x, (size_t)n * sizeof *x), most = 0;
  qsort(sorted, (size_t)n, sizeof *sorted, by_value);
  for (int64_t k = 0; k < n; k++) {
    double p = erfc(-sorted[k] / sqrt(2)) / 2;
    most = fmax(most, fmax(fabs(p - (double)k / (double)n), fabs((double)(k + 1) / (double)n - p)));
  }
  ck_assert_msg(most * sqrt((double)n) < 2.75, "D is %g", most);
}

/* --- distributions --- */

/* The number of an element type in ONNX, and half the distance of its values near 1. */
static const struct {
  int number;
  double rounding;
} types[] = {{1, 0}, {11, 0}, {10, 0x1p-12}, {16, 0x1p-9}};
enum { N_TYPES = sizeof types / sizeof *types };

START_TEST(uniform) {
  const char *attributes = arena_printf(a, "shape=[40,5000] dtype=%d", types[_i].number);
  literal *y = draw_both(generator("RandomUniform", attributes), 1);
  const double *x = doubles(y);
  check_moments(x, N, 0.5, 1.0 / 12, 1.0 / 80, types[_i].rounding);
  check_lags(x, N, 0.5, 1.0 / 12);
  if (types[_i].number != 16) { /* bf16 has hardly more values than check_even has parts */
    check_even(x, N);
  }
}
END_TEST

/* Numbers in [-3, -1): in small types, the largest ones must not be rounded to -1. */
START_TEST(uniform_bounds) {
  const char *attributes = arena_printf(a, "shape=[200000] low=-3.0 high=-1.0 dtype=%d", types[_i].number);
  const double *x = doubles(draw_both(generator("RandomUniform", attributes), 1));
  for (int64_t k = 0; k < N; k++) {
    ck_assert(x[k] >= -3 && x[k] < -1);
  }
  check_moments(x, N, -2, 1.0 / 3, 1.0 / 5, 2 * types[_i].rounding);
}
END_TEST

START_TEST(normal) {
  for (int target = CPU; target <= REF; target++) {
    const char *attributes = arena_printf(a, "shape=[200000] dtype=%d", types[_i].number);
    const double *x = doubles(draw(target, generator("RandomNormal", attributes), 1));
    check_moments(x, N, 0, 1, 3, types[_i].rounding);
    check_lags(x, N, 0, 1);
    if (types[_i].rounding == 0) {
      check_normal(x, N);
    }
    attributes = arena_printf(a, "shape=[200000] dtype=%d mean=3.0 scale=0.5", types[_i].number);
    x = doubles(draw(target, generator("RandomNormal", attributes), 1));
    check_moments(x, N, 3, 0.25, 3.0 / 16, 4 * types[_i].rounding);
  }
}
END_TEST

/* Both targets compute normal numbers from the same bits by log and cos, which are not exact.  In f32 they differ by
 * the errors of these functions that emit/math/math.h states, times the largest radius, 6.7. */
START_TEST(normals_agree) {
  Onnx__ModelProto *m = generator("RandomNormal", "shape=[200000]");
  const double *x = doubles(draw(CPU, m, 1)), *y = doubles(draw(REF, m, 1));
  for (int64_t k = 0; k < N; k++) {
    ck_assert_msg(fabs(x[k] - y[k]) <= 4e-6, "%lld: %.9g and %.9g", (long long)k, x[k], y[k]);
  }
}
END_TEST

START_TEST(like) {
  Onnx__ModelProto *m = model_for("y,z");
  repeated(m->graph, "x", DTYPE_F16, N, 7);
  node(m->graph, "RandomUniformLike", "", "x", "y");
  node(m->graph, "RandomNormalLike", "dtype=11 mean=-1.0", "x", "z");
  literal *out = draw(CPU, m, 1);
  ck_assert(out[0].shape.type == DTYPE_F16 && out[1].shape.type == DTYPE_F64);
  check_moments(doubles(&out[0]), N, 0.5, 1.0 / 12, 1.0 / 80, 0x1p-12);
  check_moments(doubles(&out[1]), N, -1, 1, 3, 0);
}
END_TEST

START_TEST(bernoulli) {
  static const dtype of[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16};
  static const int wanted[] = {6, 9, 7, 1}; /* int32, bool, int64, float */
  Onnx__ModelProto *m = model_for("y,never,always");
  repeated(m->graph, "p", of[_i], N, 0.375);
  repeated(m->graph, "none", of[_i], N, 0);
  repeated(m->graph, "all", of[_i], N, 1);
  node(m->graph, "Bernoulli", arena_printf(a, "dtype=%d", wanted[_i]), "p", "y");
  node(m->graph, "Bernoulli", "", "none", "never");
  node(m->graph, "Bernoulli", "", "all", "always");
  literal *out = draw_both(m, 1);
  ck_assert_int_eq(dtype_get_info((dtype)out[0].shape.type)->onnx, wanted[_i]);
  is_frequency("successes", (int64_t)(mean_of(doubles(&out[0]), N) * N + 0.5), N, 0.375);
  ck_assert(mean_of(doubles(&out[1]), N) == 0 && mean_of(doubles(&out[2]), N) == 1);
}
END_TEST

/* Logarithms of weights in the proportions of `weights`, whose sum is not 1. */
START_TEST(multinomial) {
  static const double weights[2][4] = {{1, 2, 0, 5}, {0, 0, 4, 4}};
  Onnx__ModelProto *m = model_for("y");
  constant(m->graph, "x",
           _i ? "f64[2,4]:1,1.6931471805599453,-inf,2.6094379124341003,-inf,-inf,300,300"
              : "f32[2,4]:1,1.6931472,-inf,2.609438,-inf,-inf,300,300");
  node(m->graph, "Multinomial", arena_printf(a, "sample_size=50000 dtype=%d", _i ? 7 : 6), "x", "y");
  literal *out = draw_both(m, 1);
  ck_assert_int_eq(dtype_get_info((dtype)out->shape.type)->onnx, _i ? 7 : 6);
  ck_assert(out->shape.rank == 2 && out->shape.dims[0] == 2 && out->shape.dims[1] == 50000);
  for (int row = 0; row < 2; row++) {
    int64_t counts[4] = {0};
    for (int64_t k = 0; k < 50000; k++) {
      int64_t c = literal_i64(out, row * 50000 + k);
      ck_assert(c >= 0 && c < 4);
      counts[c]++;
    }
    for (int c = 0; c < 4; c++) {
      is_frequency("a class", counts[c], 50000, weights[row][c] / 8);
    }
  }
}
END_TEST

/* --- Dropout --- */

static void check_dropped(const literal *out, double ratio) {
  const double *y = doubles(&out[0]), *kept = doubles(&out[1]);
  int64_t n = 0;
  for (int64_t k = 0; k < N; k++) {
    n += kept[k] != 0;
    ck_assert_msg(kept[k] == 0 ? y[k] == 0 : fabs(y[k] - 3 / (1 - ratio)) <= 0x1p-7 * y[k], "%g", y[k]);
  }
  is_frequency("what is kept", n, N, 1 - ratio);
}

START_TEST(dropout) {
  static const dtype of[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16};
  Onnx__ModelProto *m = model_for("y,mask");
  repeated(m->graph, "x", of[_i], N, 3);
  constant(m->graph, "ratio", "f32[]:0.25");
  constant(m->graph, "yes", "pred[]:1");
  node(m->graph, "Dropout", "", "x,ratio,yes", "y,mask");
  literal *out = draw_both(m, 1);
  ck_assert(out[0].shape.type == of[_i] && out[1].shape.type == DTYPE_PRED);
  check_dropped(out, 0.25);
}
END_TEST

/* Versions 1 and 6 of the operator drop elements unless is_test is set; versions 7 and 10 never drop any. */
START_TEST(old_dropout) {
  static const struct {
    int opset;
    const char *attributes;
    bool drops;
  } rows[] = {{1, "ratio=0.25", true},
              {6, "ratio=0.25", true},
              {6, "ratio=0.25 is_test=1", false},
              {7, "ratio=0.25", false},
              {10, "ratio=0.25", false}};
  Onnx__ModelProto *m = model_for("y,mask");
  m->opset_import[0]->version = rows[_i].opset;
  PB_ADD(a, m->graph->input, m->graph->n_input,
         case_input(a, "x", &(literal){.shape = shape_make(DTYPE_F32, 1, (dim[]){N})}, false));
  repeated(m->graph, "x", DTYPE_F32, N, 3);
  node(m->graph, "Dropout", rows[_i].attributes, "x", "y,mask");
  literal *out = draw_both(m, 1);
  ck_assert_int_eq(out[1].shape.type, rows[_i].opset < 10 ? DTYPE_F32 : DTYPE_PRED);
  if (rows[_i].drops) {
    check_dropped(out, 0.25);
  } else {
    ck_assert(mean_of(doubles(&out[0]), N) == 3 && mean_of(doubles(&out[1]), N) == 1);
  }
}
END_TEST

/* ratio and training_mode are inputs of the model. */
START_TEST(dropout_by_inputs) {
  static const struct {
    float ratio;
    uint8_t training;
  } rows[] = {{0.5f, 1}, {0.75f, 1}, {0, 1}, {0.5f, 0}};
  Onnx__ModelProto *m = model_for("y,mask");
  const char *number = "f32[]:0", *flag = "pred[]:0";
  literal ratio = case_literal(a, &number), training = case_literal(a, &flag);
  PB_ADD(a, m->graph->input, m->graph->n_input, case_input(a, "ratio", &ratio, false));
  PB_ADD(a, m->graph->input, m->graph->n_input, case_input(a, "training", &training, false));
  repeated(m->graph, "x", DTYPE_F32, N, 3);
  node(m->graph, "Dropout", _i ? "seed=5" : "", "x,ratio,training", "y,mask");
  for (int target = CPU; target <= REF; target++) {
    rt_program *p;
    no_error(compile(target, m, &p));
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
      literal *out = run(p, 1, (const void *[]){&rows[k].ratio, &rows[k].training});
      check_dropped(out, rows[k].training ? (double)rows[k].ratio : 0);
    }
  }
}
END_TEST

/* The mask of numpy: RandomState(5489).uniform(0, 1, 8) >= 0.5 (0.81 0.91 0.13 0.91 0.63 0.10 0.28 0.55). */
START_TEST(seeded_dropout) {
  static const bool want[] = {true, true, false, true, true, false, false, true};
  Onnx__ModelProto *m = model_for("y,mask");
  repeated(m->graph, "x", DTYPE_F32, 8, 3);
  constant(m->graph, "yes", "pred[]:1");
  node(m->graph, "Dropout", "seed=5489", "x,,yes", "y,mask");
  for (uint64_t seed = 0; seed < 3; seed++) { /* the run's seed must not matter */
    literal *out = draw_both(m, seed);
    for (int64_t k = 0; k < 8; k++) {
      ck_assert_int_eq(literal_i64(&out[1], k), want[k]);
    }
  }
}
END_TEST

/* --- seeds and streams --- */

/* Returns in how many places two arrays have equal elements. */
static int64_t equal_elements(const literal *x, const literal *y) {
  int64_t n = 0;
  for (int64_t k = 0; k < shape_elements(&x->shape); k++) {
    n += literal_f64(x, k) == literal_f64(y, k);
  }
  return n;
}

START_TEST(seeds) {
  Onnx__ModelProto *m = model_for("a,b,c,d,e");
  /* a and b have the run's seed, c and d have the same seed attribute, and e has another one. */
  for (const char *c = "abcde"; *c; c++) {
    node(m->graph, "RandomUniform",
         arena_printf(a, "shape=[1000]%s",
                      *c < 'c'   ? ""
                      : *c < 'e' ? " seed=2.5"
                                 : " seed=3.0"),
         "", (char[]){*c, '\0'});
  }
  literal *one = draw_both(m, 1), *again = draw_both(m, 1), *two = draw_both(m, 2);
  for (int k = 0; k < 5; k++) {
    ck_assert(literal_equal(&one[k], &again[k]));
    ck_assert(literal_equal(&one[k], &two[k]) == (k >= 2));
  }
  ck_assert(equal_elements(&one[0], &one[1]) == 0 && equal_elements(&one[0], &two[0]) == 0);
  ck_assert(literal_equal(&one[2], &one[3]) && equal_elements(&one[2], &one[4]) == 0);
}
END_TEST

/* Other nodes of the model do not change what a node draws: the stream belongs to the node. */
START_TEST(streams_belong_to_nodes) {
  Onnx__ModelProto *alone = generator("RandomUniform", "shape=[1000]"), *m = model_for("y");
  node(m->graph, "RandomNormal", "shape=[7]", "", "before");
  node(m->graph, "RandomUniform", "shape=[1000]", "", "y");
  ck_assert(literal_equal(draw_both(alone, 9), draw_both(m, 9)));
}
END_TEST

/* Expects that no two elements are equal. */
static void all_different(const literal *l) {
  int64_t n = shape_elements(&l->shape);
  double *x = arena_memdup(a, doubles(l), (size_t)n * sizeof *x);
  qsort(x, (size_t)n, sizeof *x, by_value);
  for (int64_t k = 1; k < n; k++) {
    ck_assert_msg(x[k - 1] != x[k], "%.17g stands twice", x[k]);
  }
}

/* Returns the body of a Loop that draws r and returns it as a scan output or, if `append`, appends it to the state
 * s. */
static Onnx__GraphProto *drawing_body(const char *attributes, bool append) {
  Onnx__GraphProto *g = new_graph(a, "", append ? "go,s2" : "go,r");
  g->name = "body";
  const char *step = "s64[]:0", *flag = "pred[]:0", *none = "f64[0]:";
  literal i = case_literal(a, &step), c = case_literal(a, &flag), s = case_literal(a, &none);
  PB_ADD(a, g->input, g->n_input, case_input(a, "i", &i, false));
  PB_ADD(a, g->input, g->n_input, case_input(a, "c", &c, false));
  if (append) {
    Onnx__ValueInfoProto *v = case_input(a, "s", &s, false);
    v->type->tensor_type->shape = NULL;
    PB_ADD(a, g->input, g->n_input, v);
  }
  node(g, "RandomUniform", attributes, "", "r");
  node(g, "Identity", "", "c", "go");
  if (append) {
    node(g, "Concat", "axis=0", "s,r", "s2");
  }
  return g;
}

/* Every iteration draws other numbers, with and without a seed.  A Loop that is unrolled draws the same numbers as one
 * that is not. */
START_TEST(loops) {
  const char *attributes = _i ? "shape=[50] dtype=11 seed=1.0" : "shape=[50] dtype=11";
  Onnx__ModelProto *loop = model_for("y"), *unrolled = model_for("y");
  constant(loop->graph, "m", "s64[]:40");
  constant(unrolled->graph, "m", "s64[]:40");
  constant(unrolled->graph, "none", "f64[0]:");
  set_graph(a, node(loop->graph, "Loop", "", "m,", "y"), "body", drawing_body(attributes, false));
  set_graph(a, node(unrolled->graph, "Loop", "", "m,,none", "y"), "body", drawing_body(attributes, true));
  literal *x = draw_both(loop, 3), *y = draw_both(unrolled, 3);
  all_different(x);
  ck_assert_int_eq(shape_elements(&x->shape), 2000);
  ck_assert_int_eq(equal_elements(x, y), 2000);
}
END_TEST

START_TEST(loops_in_loops) {
  Onnx__ModelProto *m = model_for("y");
  constant(m->graph, "m", "s64[]:12");
  Onnx__GraphProto *outer = drawing_body("shape=[1] dtype=11", false);
  outer->output[1]->name = arena_strdup(a, "all");
  set_graph(a, node(outer, "Loop", "", "m,", "all"), "body", drawing_body("shape=[5] dtype=11", false));
  set_graph(a, node(m->graph, "Loop", "", "m,", "y"), "body", outer);
  literal *out = draw_both(m, 3);
  ck_assert_int_eq(shape_elements(&out->shape), 12 * 12 * 5);
  all_different(out);
}
END_TEST

/* Every iteration of a Scan draws other numbers, too. */
START_TEST(scans) {
  Onnx__ModelProto *m = model_for("y");
  repeated(m->graph, "x", DTYPE_F32, 30, 0);
  Onnx__GraphProto *g = new_graph(a, "", "r");
  g->name = "body";
  const char *number = "f32[]:0";
  literal e = case_literal(a, &number);
  PB_ADD(a, g->input, g->n_input, case_input(a, "e", &e, false));
  node(g, "RandomUniform", "shape=[20] dtype=11", "", "r");
  Onnx__NodeProto *scan = node(m->graph, "Scan", "num_scan_inputs=1", "x", "y");
  set_graph(a, scan, "body", g);
  literal *out = draw_both(m, 3);
  ck_assert_int_eq(shape_elements(&out->shape), 600);
  all_different(out);
}
END_TEST

/* The values of both branches of an If have the same name, but the branches draw different numbers. */
START_TEST(branches) {
  Onnx__ModelProto *m = model_for("y");
  const char *flag = "pred[]:0";
  literal c = case_literal(a, &flag);
  PB_ADD(a, m->graph->input, m->graph->n_input, case_input(a, "c", &c, false));
  Onnx__NodeProto *n = node(m->graph, "If", "", "c", "y");
  for (int k = 0; k < 2; k++) {
    Onnx__GraphProto *g = new_graph(a, "", "r");
    g->name = "branch";
    node(g, "RandomUniform", "shape=[100]", "", "r");
    set_graph(a, n, k ? "else_branch" : "then_branch", g);
  }
  for (int target = CPU; target <= REF; target++) {
    rt_program *p;
    no_error(compile(target, m, &p));
    literal *then = run(p, 5, (const void *[]){&(uint8_t){1}}), *otherwise = run(p, 5, (const void *[]){&(uint8_t){0}});
    ck_assert_int_eq(equal_elements(then, otherwise), 0);
  }
}
END_TEST

/* --- refusals --- */

START_TEST(refusals) {
  static const node_case rows[] = {
      {"RandomUniform", 22, "", "", "!attribute shape"},
      {"RandomUniform", 22, "shape=[-1]", "", "!shape[0] is -1"},
      {"RandomNormal", 22, "shape=[2] dtype=7", "", "!s64"},
      {"RandomNormal", 22, "shape=[1000000000000,1000000000000]", "", "#the result"},
      {"RandomNormalLike", 22, "", "s32[2]:1,2", "!s32"},
      {"Bernoulli", 22, "", "s32[2]:1,2", "#input"},
      {"Multinomial", 22, "", "f32[3]:1,2,3", "!rank"},
      {"Multinomial", 22, "dtype=1", "f32[1,3]:1,2,3", "!dtype is f32"},
      {"Multinomial", 22, "", "f32[1,0]:", "!no class"},
      {"Dropout", 22, "", "f32[2]:1,2 f32[2]:1,2 pred[]:1", "!ratio"},
      {"Dropout", 22, "", "f32[2]:1,2 f32[]:0.5 pred[2]:1,1", "!training_mode"},
  };
  run_node_case(&rows[_i]);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("random");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_loop_test(t, uniform, 0, N_TYPES);
  tcase_add_loop_test(t, uniform_bounds, 0, N_TYPES);
  tcase_add_loop_test(t, normal, 0, N_TYPES);
  tcase_add_test(t, normals_agree);
  tcase_add_test(t, like);
  tcase_add_loop_test(t, bernoulli, 0, 4);
  tcase_add_loop_test(t, multinomial, 0, 2);
  tcase_add_loop_test(t, dropout, 0, 4);
  tcase_add_loop_test(t, old_dropout, 0, 5);
  tcase_add_loop_test(t, dropout_by_inputs, 0, 2);
  tcase_add_test(t, seeded_dropout);
  tcase_add_test(t, seeds);
  tcase_add_test(t, streams_belong_to_nodes);
  tcase_add_loop_test(t, loops, 0, 2);
  tcase_add_test(t, loops_in_loops);
  tcase_add_test(t, scans);
  tcase_add_test(t, branches);
  tcase_add_loop_test(t, refusals, 0, 11);
  return run_suite("random", t);
}
