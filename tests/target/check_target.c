/* check_target: the same HLO on the reference evaluator and on the cpu target, at vector widths 1, 4, 8 and 16 and for plain
 * x86-64.  Operations that are the same bits everywhere (ops.def: EXACT) must be; others within the tolerance of their case. */
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "hlo/text.h"
#include "tests/target/two_targets.h"

/* --- one comparison --- */

typedef struct trial {
  const char *text;
  double tolerance; /* relative to the largest magnitude of the result; 0: the same bits */
  double low, high; /* of float inputs */
  variant v;
  char message[600]; /* what is wrong; "" nothing */
} trial;

static uint64_t random_state;

static double random_unit(void) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (double)(random_state >> 11) * 0x1p-53;
}

static literal random_literal(arena *a, const shape *s, const trial *t) {
  void *data;
  literal l = literal_new(a, *s, &data);
  int64_t n = shape_elements(s);
  size_t size = dtype_bytes((dtype)s->type);
  dtype real = s->type == DTYPE_C64 ? DTYPE_F32 : s->type == DTYPE_C128 ? DTYPE_F64 : (dtype)s->type;
  for (int64_t k = 0; k < n * (real == s->type ? 1 : 2); k++) {
    void *at = (char *)data + (size_t)k * (real == s->type ? size : size / 2);
    if (dtype_is_float(real)) {
      dtype_store_f64(real, at, t->low + (t->high - t->low) * random_unit(), true, DTYPE_ROUND_NEAREST);
    } else if (real == DTYPE_PRED) {
      *(uint8_t *)at = random_unit() < 0.5;
    } else {
      double high = t->high > 20 ? t->high : 20;
      dtype_store_i64(real, at, (int64_t)((dtype_is_signed(real) ? 2 * random_unit() - 1 : random_unit()) * high));
    }
  }
  return l;
}

static double part_of(const literal *l, int64_t k, double *imaginary) {
  *imaginary = 0;
  if (l->shape.type == DTYPE_C64) {
    const float *p = (const float *)l->data + 2 * k;
    *imaginary = (double)p[1];
    return (double)p[0];
  }
  if (l->shape.type == DTYPE_C128) {
    const double *p = (const double *)l->data + 2 * k;
    *imaginary = p[1];
    return p[0];
  }
  return dtype_is_float((dtype)l->shape.type) ? literal_f64(l, k) : (double)literal_i64(l, k);
}

static bool near(double x, double y, double allowed) {
  return (isnan(x) && isnan(y)) || x == y || fabs(x - y) <= allowed;
}

static void compare(trial *t, int result, const literal *want, const literal *got) {
  int64_t n = shape_elements(&want->shape);
  size_t size = dtype_bytes((dtype)want->shape.type);
  double most = 0, im, im2;
  for (int64_t k = 0; k < n; k++) {
    double v = fabs(part_of(want, k, &im));
    most = isfinite(v) && v > most ? v : most;
  }
  for (int64_t k = 0; k < n; k++) {
    double x = part_of(want, k, &im), y = part_of(got, k, &im2);
    bool same = memcmp((const char *)want->data + (size_t)k * size, (const char *)got->data + (size_t)k * size, size) == 0;
    bool nan = isnan(x) && isnan(y);
    if (!same && !nan && (t->tolerance == 0 || !near(x, y, t->tolerance * most) || !near(im, im2, t->tolerance * most))) {
      snprintf(t->message, sizeof t->message, "%s: result %d, element %" PRId64 " is %.9g, not %.9g\n%.300s", t->v.name,
               result, k, y, x, t->text);
      return;
    }
  }
}

static status try_it(void *data) {
  trial *t = data;
  arena *a = arena_create(NULL);
  hlo_module *m;
  status s = hlo_parse(a, t->text, strlen(t->text), NULL, &m);
  if (s) {
    arena_destroy(a);
    return s;
  }
  uint32_t n_in = m->entry->n_params, n_out = m->entry->n_roots;
  literal *in = ARENA_NEW_N(a, literal, n_in + 1), *want = ARENA_NEW_N(a, literal, n_out), *got = ARENA_NEW_N(a, literal, n_out);
  for (uint32_t k = 0; k < n_in; k++) {
    in[k] = random_literal(a, hlo_shape(hlo_result(m->entry->params[k], 0)), t);
  }
  s = ref_eval_computation(m->entry, in, a, want);
  s = s ? s : run_on_cpu(a, m, &t->v, in, got);
  for (uint32_t k = 0; k < n_out && !s && !*t->message; k++) {
    compare(t, (int)k, &want[k], &got[k]);
  }
  arena_destroy(a);
  return s;
}

static void check_text(const char *text, double tolerance, double low, double high) {
  for (size_t k = 0; k < N_VARIANTS; k++) {
    trial t = {.text = text, .tolerance = tolerance, .low = low, .high = high, .v = variants[k]};
    random_state = 42;
    status s = guard_run(try_it, &t);
    ck_assert_msg(!s, "%s: %s\n%s", t.v.name, status_message(s), text);
    ck_assert_msg(!*t.message, "%s", t.message);
  }
}

/* body: lines of instructions; root: what is returned. */
static void check_body(const char *params, const char *body, const char *root, double tolerance, double low, double high) {
  char text[4000];
  int n = snprintf(text, sizeof text, "onnx-xla hlo 1\nmodule \"t\" {\nentry main(%s) {\n%s\nreturn %s\n}\n}\n", params, body, root);
  ck_assert_int_lt(n, (int)sizeof text);
  check_text(text, tolerance, low, high);
}

/* --- elementwise --- */

/* All that the types of a group have in common, several instructions in one module: results %10, %11... */
static void check_each(const char *const *ops, const char *const *types, int arity, double tolerance, double low, double high) {
  for (; *types; types++) {
    char params[200] = "", body[4000], root[1000] = "";
    int n = 0, r = 0;
    for (int k = 0; k < arity; k++) {
      snprintf(params + strlen(params), sizeof params - strlen(params), "%s%%%d: %s[3,37] \"p%d\"", k ? ", " : "", k, *types, k);
    }
    for (int k = 0; ops[k]; k++) {
      n += snprintf(body + n, sizeof body - (size_t)n, "%%%d = %s(%s) : %s[3,37]\n", arity + k, ops[k],
                    arity == 1 ? "%0" : arity == 2 ? "%0, %1" : "%0, %1, %2", *types);
      r += snprintf(root + r, sizeof root - (size_t)r, "%s%%%d \"r%d\"", k ? ", " : "", arity + k, k);
    }
    check_body(params, body, root, tolerance, low, high);
  }
}

static const char *const floats[] = {"f32", "f64", "f16", "bf16", NULL};
static const char *const all_ints[] = {"s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", NULL};

START_TEST(exact_unary_floats) {
  static const char *const ops[] = {"abs", "negate", "sign", "ceil", "floor", "round-nearest-even", NULL};
  static const char *const roots[] = {"sqrt", NULL};
  check_each(ops, floats, 1, 0, -9, 9);
  check_each(roots, floats, 1, 0, 0, 100);
}
END_TEST

START_TEST(transcendental_functions) {
  static const char *const wide[] = {"exponential", "exponential-minus-one", "sine", "cosine", "atan", "tanh", "erf",
                                     "logistic", "sinh", "cosh", "asinh", NULL};
  static const char *const positive[] = {"log", "log-plus-one", "rsqrt", NULL};
  static const char *const unit[] = {"asin", "acos", "atanh", "tan", NULL};
  static const char *const f32[] = {"f32", NULL}, *const f64[] = {"f64", NULL}, *const half[] = {"f16", NULL},
                           *const bf16[] = {"bf16", NULL}, *const grow[] = {"acosh", NULL};
  check_each(wide, f32, 1, 1e-6, -8, 8);
  check_each(wide, f64, 1, 1e-6, -8, 8);
  check_each(wide, half, 1, 2e-3, -8, 8);
  check_each(wide, bf16, 1, 1e-2, -8, 8);
  check_each(positive, f32, 1, 1e-6, 0.001, 50);
  check_each(positive, f64, 1, 1e-6, 0.001, 50);
  check_each(unit, f32, 1, 1e-6, -0.99, 0.99);
  check_each(unit, f64, 1, 1e-6, -0.99, 0.99);
  check_each(grow, f32, 1, 1e-6, 1, 50);
}
END_TEST

START_TEST(binary_floats) {
  static const char *const ops[] = {"add", "subtract", "multiply", "divide", "maximum", "minimum", "remainder", NULL};
  static const char *const loose[] = {"power", "atan2", NULL};
  static const char *const f32[] = {"f32", NULL};
  check_each(ops, floats, 2, 0, -9, 9);
  check_each(loose, f32, 2, 2e-6, 0.1, 4);
}
END_TEST

START_TEST(integers) {
  static const char *const unary[] = {"negate", "not", NULL};
  static const char *const binary[] = {"add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and",
                                       "or", "xor", "shift-left", "shift-right", "power", NULL};
  check_each(unary, all_ints, 1, 0, 0, 20);
  check_each(binary, all_ints, 2, 0, 0, 20);
}
END_TEST

START_TEST(comparisons_and_selections) {
  static const char *const types[] = {"f32", "f64", "f16", "bf16", "s8", "s32", "s64", "u8", "u32", "u64"};
  static const char *const how[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    for (size_t h = 0; h < sizeof how / sizeof *how; h++) {
      char params[300], body[600], lower[3] = {(char)(how[h][0] + 32), (char)(how[h][1] + 32)};
      snprintf(params, sizeof params, "%%0: %s[5,33] \"x\", %%1: %s[5,33] \"y\"", types[t], types[t]);
      snprintf(body, sizeof body,
               "%%2 = compare(%%0, %%1) {comparison=%s} : pred[5,33]\n%%3 = select(%%2, %%0, %%1) : %s[5,33]\n"
               "%%4 = clamp(%%1, %%0, %%1) : %s[5,33]\n", lower, types[t], types[t]);
      check_body(params, body, "%2 \"a\", %3 \"b\", %4 \"c\"", 0, -5, 5);
    }
  }
}
END_TEST

START_TEST(conversions) {
  static const char *const types[] = {"f32", "f64", "f16", "bf16", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "pred"};
  for (size_t f = 0; f < sizeof types / sizeof *types; f++) {
    char params[100], body[2000], root[500] = "";
    int n = 0, r = 0;
    snprintf(params, sizeof params, "%%0: %s[2,41] \"x\"", types[f]);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
      n += snprintf(body + n, sizeof body - (size_t)n, "%%%zu = convert(%%0) {saturate=true, rounding=nearest} : %s[2,41]\n", t + 1, types[t]);
      r += snprintf(root + r, sizeof root - (size_t)r, "%s%%%zu \"r%zu\"", t ? ", " : "", t + 1, t);
    }
    check_body(params, body, root, 0, -100, 300);
  }
}
END_TEST

/* --- random numbers --- */

START_TEST(random_bits) {
  check_body("%0: u64[3] \"s\"",
             "%1 = rng-bit-generator(%0) {algorithm=philox} : u32[37,64]\n%2 = rng-bit-generator(%0) {algorithm=philox} : "
             "u64[2,1001]\n%3 = convert(%2) {saturate=true, rounding=nearest} : f32[2,1001]\n"
             "%4 = rng-bit-generator(%0) {algorithm=philox} : u32[100003]", "%1 \"a\", %3 \"b\", %4 \"c\"", 0, 0, 1e9);
  check_body("%0: u64[1] \"s\"",
             "%1 = rng-bit-generator(%0) {algorithm=mt19937} : u32[3,700]\n%2 = rng-bit-generator(%0) {algorithm=mt19937} : "
             "u64[1001]\n%3 = not(%2) : u64[1001]\n%4 = rng-bit-generator(%0) {algorithm=mt19937} : u64[0]",
             "%1 \"a\", %3 \"b\", %4 \"c\"", 0, 0, 1e9);
}
END_TEST

/* ref evaluates outside of any run, and the runs here have no seed either: 0. */
START_TEST(run_seeds) {
  check_body("%0: s64[] \"x\"",
             "%1 = run-seed() : u64[]\n%2 = reshape(%1) : u64[1]\n%3 = concatenate(%2, %2, %2) {dimension=0} : u64[3]\n"
             "%4 = rng-bit-generator(%3) {algorithm=philox} : u32[40]", "%1 \"a\", %4 \"b\"", 0, 0, 1);
}
END_TEST

/* --- movement --- */

START_TEST(movement) {
  static const char *const types[] = {"f32", "s64", "u8", "f16"};
  static const char *const lines[] = {
      "%1 = transpose(%0) {permutation=[2,0,1]} : %T[7,4,6]", "%1 = reverse(%0) {dimensions=[0,2]} : %T[4,6,7]",
      "%1 = slice(%0) {starts=[1,0,2], limits=[4,6,7], strides=[1,2,2]} : %T[3,3,3]", "%1 = reshape(%0) : %T[24,7]",
      "%1 = broadcast(%0) {dimensions=[0,2,3]} : %T[4,3,6,7]", "%1 = concatenate(%0, %0) {dimension=1} : %T[4,12,7]",
      "%1 = copy(%0) : %T[4,6,7]", "%1 = iota() {dimension=1} : %T[4,6,7]"};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
      char params[100], body[300], *to = body;
      snprintf(params, sizeof params, "%%0: %s[4,6,7] \"x\"", types[t]);
      for (const char *c = lines[k]; *c; c++) {
        if (c[0] == '%' && c[1] == 'T') {
          to = stpcpy(to, types[t]);
          c++;
        } else {
          *to++ = *c;
        }
      }
      *to = '\0';
      check_body(params, body, "%1 \"y\"", 0, -9, 9);
    }
  }
}
END_TEST

START_TEST(padding) {
  check_body("%0: f32[4,6] \"x\", %1: f32[] \"v\"",
             "%2 = pad(%0, %1) {low=[1,-1], high=[0,2], interior=[1,0]} : f32[8,7]\n"
             "%3 = pad(%0, %1) {low=[0,3], high=[2,3], interior=[0,0]} : f32[6,12]", "%2 \"a\", %3 \"b\"", 0, -1, 1);
}
END_TEST

START_TEST(dynamic_slices) {
  check_body("%0: f32[9,17] \"x\", %1: s64[2] \"at\", %2: f32[3,5] \"u\"",
             "%3 = dynamic-slice(%0, %1) {sizes=[3,5]} : f32[3,5]\n"
             "%4 = dynamic-update-slice(%0, %2, %1) : f32[9,17]\n%5 = add(%0, %0) : f32[9,17]\n"
             "%6 = dynamic-update-slice(%5, %2, %1) : f32[9,17]", "%3 \"a\", %4 \"b\", %6 \"c\"", 0, -1, 1);
}
END_TEST

START_TEST(gather_and_scatter) {
  check_body("%0: f32[9,17] \"x\", %1: s64[5] \"i\", %2: f32[5,17] \"u\"",
             "%3 = gather(%0, %1) {offset_dims=[1], collapsed_dims=[0], operand_batch=[], indices_batch=[], index_map=[0], "
             "index_vector_dim=1, sizes=[1,17]} : f32[5,17]\n"
             "%4 = scatter(%0, %1, %2) {offset_dims=[1], collapsed_dims=[0], operand_batch=[], indices_batch=[], "
             "index_map=[0], index_vector_dim=1, reducer=add} : f32[9,17]", "%3 \"a\", %4 \"b\"", 1e-6, -1, 1);
}
END_TEST

/* --- loops of their own --- */

START_TEST(reductions) {
  static const char *const reducers[] = {"add", "multiply", "maximum", "minimum"};
  static const char *const types[] = {"f32", "f64", "f16", "s32", "s64", "u8"};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    for (size_t r = 0; r < sizeof reducers / sizeof *reducers; r++) {
      char params[100], body[900];
      const char *y = types[t], *f = reducers[r];
      snprintf(params, sizeof params, "%%0: %s[5,6,35] \"x\"", y);
      snprintf(body, sizeof body,
               "%%1 = reduce(%%0) {dimensions=[2], reducer=%s} : %s[5,6]\n%%2 = reduce(%%0) {dimensions=[0], reducer=%s} : %s[6,35]\n"
               "%%3 = reduce(%%0) {dimensions=[0,1,2], reducer=%s} : %s[]\n%%4 = reduce(%%0) {dimensions=[0,2], reducer=%s} : %s[6]\n"
               "%%5 = cumulative(%%0) {dimension=2, reducer=%s, exclusive=false, backward=false} : %s[5,6,35]\n"
               "%%6 = cumulative(%%0) {dimension=1, reducer=%s, exclusive=true, backward=true} : %s[5,6,35]\n",
               f, y, f, y, f, y, f, y, f, y, f, y);
      check_body(params, body, "%1 \"a\", %2 \"b\", %3 \"c\", %4 \"d\", %5 \"e\", %6 \"f\"",
                 strcmp(y, "f16") == 0 ? 5e-3 : y[0] == 'f' ? 2e-6 : 0, 0.8, 1.2);
    }
  }
}
END_TEST

START_TEST(arg_reductions) {
  check_body("%0: f32[5,6,35] \"x\"",
             "%1 = arg-reduce(%0) {dimension=2, largest=true, last=false} : s64[5,6]\n"
             "%2 = arg-reduce(%0) {dimension=0, largest=false, last=true} : s64[6,35]", "%1 \"a\", %2 \"b\"", 0, -1, 1);
  check_body("%0: s32[5,6,35] \"x\"",
             "%1 = arg-reduce(%0) {dimension=2, largest=true, last=true} : s64[5,6]\n"
             "%2 = arg-reduce(%0) {dimension=1, largest=false, last=false} : s64[5,35]", "%1 \"a\", %2 \"b\"", 0, -1, 1);
}
END_TEST

START_TEST(windows) {
  check_body("%0: f32[1,3,11,13] \"x\"",
             "%1 = reduce-window(%0) {window=[1,1,3,3], strides=[1,1,2,2], low=[0,0,1,1], high=[0,0,1,1], "
             "rhs_dilation=[1,1,1,1], reducer=maximum} : f32[1,3,6,7]\n"
             "%2 = reduce-window(%0) {window=[1,1,2,3], strides=[1,1,1,1], low=[0,0,0,1], high=[0,0,1,1], "
             "rhs_dilation=[1,1,2,1], reducer=add} : f32[1,3,10,13]\n"
             "%3 = arg-reduce-window(%0) {window=[1,1,3,3], strides=[1,1,2,2], low=[0,0,0,0], high=[0,0,0,0], "
             "rhs_dilation=[1,1,1,1]} : s64[1,3,5,6]", "%1 \"a\", %2 \"b\", %3 \"c\"", 1e-6, -1, 1);
}
END_TEST

/* Windows that slide along rows (emit/pool.c), dims and geometry of the last three dimensions; 1 more outside. */
typedef struct sliding {
  int64_t n[3], window[3], stride[3], low[3], high[3], hole[3];
} sliding;

static const sliding slidings[] = {
    {{3, 11, 28}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, {1, 1, 1}},
    {{3, 11, 37}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, {0, 0, 1}, {1, 1, 1}},
    {{3, 9, 20}, {1, 5, 5}, {1, 1, 1}, {0, 2, 2}, {0, 2, 2}, {1, 1, 1}},
    {{2, 13, 20}, {1, 13, 13}, {1, 1, 1}, {0, 6, 6}, {0, 6, 6}, {1, 1, 1}},
    {{4, 7, 24}, {2, 2, 2}, {2, 2, 2}, {0, 0, 0}, {0, 1, 0}, {1, 1, 1}},
    {{3, 8, 31}, {3, 1, 2}, {1, 1, 3}, {1, 0, 0}, {1, 0, 0}, {1, 1, 1}},
    {{2, 12, 40}, {1, 2, 3}, {1, 1, 1}, {0, 2, 5}, {0, 3, 7}, {1, 2, 4}}, /* padding that whole windows lie in */
    {{1, 3, 9}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, {1, 1, 1}},
    {{1, 2, 5003}, {1, 1, 4}, {1, 1, 2}, {0, 0, 3}, {0, 0, 2}, {1, 1, 3}}, /* rows that come in pieces */
    {{1, 1, 3001}, {1, 1, 7}, {1, 1, 1}, {0, 0, 0}, {0, 0, 6}, {1, 1, 1}},
};

static void three(char *out, const int64_t *v, int64_t first) {
  sprintf(out, "[%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "]", first, v[0], v[1], v[2]);
}

/* reduce-window of the value `of`, an array of 2 x g->n elements, and the shape that results. */
static void sliding_text(char *out, char *dims, const sliding *g, const char *of, const char *reducer, const char *type) {
  char window[100], strides[100], low[100], high[100], holes[100];
  int64_t n[3];
  for (int k = 0; k < 3; k++) {
    n[k] = (g->n[k] + g->low[k] + g->high[k] - (g->window[k] - 1) * g->hole[k] - 1) / g->stride[k] + 1;
  }
  three(dims, n, 2);
  three(window, g->window, 1);
  three(strides, g->stride, 1);
  three(low, g->low, 0);
  three(high, g->high, 0);
  three(holes, g->hole, 1);
  sprintf(out, "reduce-window(%s) {window=%s, strides=%s, low=%s, high=%s, rhs_dilation=%s, reducer=%s} : %s%s", of, window, strides,
          low, high, holes, reducer, type, dims);
}

START_TEST(sliding_windows) {
  const sliding *g = &slidings[_i];
  static const char *const types[] = {"f32", "f64", "f16", "s32", "u8"};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    static const char *const reducers[] = {"minimum", "maximum", "add"};
    char n[100], params[200], dims[100], window[500], body[1800] = "";
    three(n, g->n, 2);
    snprintf(params, sizeof params, "%%0: %s%s \"x\"", types[t], n);
    for (int k = 0; k < 3; k++) {
      sliding_text(window, dims, g, "%0", reducers[k], types[t]);
      sprintf(body + strlen(body), "%%%d = %s\n", k + 1, window);
    }
    check_body(params, body, "%1 \"a\", %2 \"b\"", 0, -1, 1);
    check_body(params, body, "%3 \"a\"", t == 2 ? 2e-3 : 1e-6, -1, 1);
  }
}
END_TEST

/* Quotients of -1, -0, 0 and 1: NaN, infinities and zeros of both signs.  The product may lie over an operand. */
START_TEST(sliding_windows_of_special_values) {
  const sliding *g = &slidings[_i];
  static const char *const types[] = {"f32", "f64", "f16", "bf16"};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    char n[100], params[400], dims[100], low[500], high[500], body[3000];
    three(n, g->n, 2);
    sliding_text(low, dims, g, "%4", "minimum", types[t]);
    sliding_text(high, dims, g, "%4", "maximum", types[t]);
    snprintf(params, sizeof params, "%%0: %s%s \"x\", %%1: %s%s \"y\", %%9: %s%s \"z\"", types[t], n, types[t], n, types[t], dims);
    snprintf(body, sizeof body,
             "%%2 = round-nearest-even(%%0) : %s%s\n%%3 = round-nearest-even(%%1) : %s%s\n%%4 = divide(%%2, %%3) : %s%s\n%%5 = %s\n%%6 = %s\n"
             "%%7 = multiply(%%6, %%9) : %s%s", types[t], n, types[t], n, types[t], n, low, high, types[t], dims);
    check_body(params, body, "%5 \"a\", %6 \"b\", %7 \"c\"", 0, -1.4, 1.4);
  }
}
END_TEST

START_TEST(sorting) {
  static const char *const types[] = {"f32", "f64", "f16", "bf16", "s8", "s32", "s64", "u8", "u64"};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    char params[200], body[600];
    snprintf(params, sizeof params, "%%0: %s[3,50,2] \"x\", %%1: s32[3,50,2] \"y\"", types[t]);
    snprintf(body, sizeof body,
             "%%2, %%3 = sort(%%0, %%1) {dimension=1, descending=false} : %s[3,50,2], s32[3,50,2]\n"
             "%%4, %%5 = sort(%%0, %%1) {dimension=0, descending=true} : %s[3,50,2], s32[3,50,2]", types[t], types[t]);
    check_body(params, body, "%2 \"a\", %3 \"b\", %4 \"c\", %5 \"d\"", 0, -5, 5);
  }
}
END_TEST

/* Many equal scores; boxes that are inside out overlap nothing. */
START_TEST(suppression) {
  check_body("%0: f32[2,300,2] \"low\", %1: f32[2,300,2] \"size\", %2: f32[2,40,300] \"scores\", %3: s64[] \"most\"",
             "%4 = add(%0, %1) : f32[2,300,2]\n%5 = concatenate(%0, %4) {dimension=2} : f32[2,300,4]\n"
             "%6 = round-nearest-even(%2) : f32[2,40,300]\n%7 = constant() {value=f32[] 0.3} : f32[]\n"
             "%8, %9 = non-max-suppression(%5, %6, %3, %7, %7) {limit=9} : s64[720,3], s64[]\n"
             "%10 = abs(%3) : s64[]\n"
             "%11, %12 = non-max-suppression(%5, %2, %10, %7) {limit=400} : s64[24000,3], s64[]\n"
             "%13 = constant() {value=s64[] 1000} : s64[]\n"
             "%14, %15 = non-max-suppression(%5, %2, %13, %7) {limit=400} : s64[24000,3], s64[]\n"
             "%16 = slice(%2) {starts=[0,0,0], limits=[2,0,300], strides=[1,1,1]} : f32[2,0,300]\n"
             "%17, %18 = non-max-suppression(%5, %16, %13, %7) {limit=400} : s64[0,3], s64[]",
             "%8 \"a\", %9 \"b\", %11 \"c\", %12 \"d\", %14 \"e\", %15 \"f\", %17 \"g\", %18 \"h\"", 0, -4, 9);
}
END_TEST

/* --- contractions --- */

START_TEST(dots) {
  static const char *const forms[][4] = {
      {"f32[7,19]", "f32[19,23]", "{lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]}", "f32[7,23]"},
      {"f32[65,70]", "f32[130,70]", "{lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]}", "f32[65,130]"},
      {"f32[70,65]", "f32[70,130]", "{lhs_batch=[], rhs_batch=[], lhs_contract=[0], rhs_contract=[0]}", "f32[65,130]"},
      {"f32[3,65,70]", "f32[3,70,33]", "{lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]}", "f32[3,65,33]"},
      {"f32[65,3,70]", "f32[33,3,70]", "{lhs_batch=[1], rhs_batch=[1], lhs_contract=[2], rhs_contract=[2]}", "f32[3,65,33]"},
      {"f32[1,300]", "f32[300,90]", "{lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]}", "f32[1,90]"},
      {"f32[300]", "f32[300,90]", "{lhs_batch=[], rhs_batch=[], lhs_contract=[0], rhs_contract=[0]}", "f32[90]"},
      {"f32[4,50,70]", "f32[70,33]", "{lhs_batch=[], rhs_batch=[], lhs_contract=[2], rhs_contract=[0]}", "f32[4,50,33]"},
      {"f64[7,19]", "f64[19,23]", "{lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]}", "f64[7,23]"},
      {"s32[7,19]", "s32[19,23]", "{lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]}", "s32[7,23]"},
      {"f16[33,19]", "f16[19,23]", "{lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]}", "f16[33,23]"},
      {"u8[33,70]", "s8[70,23]", "{lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]}", "s32[33,23]"},
      {"s8[33,70]", "s8[70,64]", "{lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]}", "s32[33,64]"},
      {"s8[33,70]", "u8[70,64]", "{lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]}", "s32[33,64]"}};
  for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
    char params[200], body[400];
    snprintf(params, sizeof params, "%%0: %s \"x\", %%1: %s \"y\"", forms[k][0], forms[k][1]);
    snprintf(body, sizeof body, "%%2 = dot(%%0, %%1) %s : %s", forms[k][2], forms[k][3]);
    check_body(params, body, "%2 \"z\"", forms[k][0][1] == '1' ? 2e-3 : forms[k][0][0] == 'f' ? 2e-6 : 0, -1, 1);
  }
}
END_TEST

START_TEST(convolutions) {
  static const char *const forms[][4] = {
      {"f32[1,3,20,21]", "f32[16,3,3,3]", "strides=[2,2], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=1, layout=channels-first", "f32[1,16,10,11]"},
      {"f32[1,20,21,3]", "f32[16,3,3,3]", "strides=[2,2], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=1, layout=channels-last", "f32[1,10,11,16]"},
      {"f32[2,20,21,24]", "f32[24,1,3,3]", "strides=[1,1], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=24, layout=channels-last", "f32[2,20,21,24]"},
      {"f32[1,16,9,9]", "f32[40,8,1,1]", "strides=[1,1], low=[0,0], high=[0,0], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=2, layout=channels-first", "f32[1,40,9,9]"},
      {"f32[1,8,50]", "f32[24,8,5]", "strides=[1], low=[2], high=[2], lhs_dilation=[1], rhs_dilation=[2], groups=1, layout=channels-first", "f32[1,24,46]"},
      {"f32[1,6,7,8,9]", "f32[10,6,2,3,2]", "strides=[1,2,1], low=[0,1,0], high=[1,0,1], lhs_dilation=[1,1,1], rhs_dilation=[1,1,1], groups=1, layout=channels-first", "f32[1,10,7,4,9]"},
      {"f32[1,8,9,9]", "f32[12,8,4,4]", "strides=[1,1], low=[2,2], high=[2,2], lhs_dilation=[2,2], rhs_dilation=[1,1], groups=1, layout=channels-first", "f32[1,12,18,18]"},
      {"f64[1,4,9,9]", "f64[6,4,3,3]", "strides=[1,1], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=1, layout=channels-first", "f64[1,6,9,9]"},
      {"u8[1,9,9,24]", "s8[40,24,3,3]", "strides=[1,1], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=1, layout=channels-last", "s32[1,9,9,40]"},
      {"s8[1,9,9,24]", "s8[24,1,3,3]", "strides=[2,2], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=24, layout=channels-last", "s32[1,5,5,24]"}};
  for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
    char params[200], body[600];
    snprintf(params, sizeof params, "%%0: %s \"x\", %%1: %s \"w\"", forms[k][0], forms[k][1]);
    snprintf(body, sizeof body, "%%2 = convolution(%%0, %%1) {%s} : %s", forms[k][2], forms[k][3]);
    check_body(params, body, "%2 \"y\"", 2e-6, -1, 1);
  }
}
END_TEST

/* Operands with zeros between their elements: kernels shorter, as long and longer than the distance, pads of either sign, results
 * that end in the middle of a step, several dimensions and distances, weights that are no constants. */
START_TEST(spread_convolutions) {
  static const char *const forms[][4] = {
      {"f32[1,9,11,8]", "f32[6,8,2,2]", "low=[1,1], high=[1,1], lhs_dilation=[2,2], rhs_dilation=[1,1]", "f32[1,18,22,6]"},
      {"f32[2,7,9,5]", "f32[7,5,3,3]", "low=[1,1], high=[2,2], lhs_dilation=[2,2], rhs_dilation=[1,1]", "f32[2,14,18,7]"},
      {"f32[1,7,9,5]", "f32[7,5,4,4]", "low=[2,2], high=[2,2], lhs_dilation=[2,2], rhs_dilation=[1,1]", "f32[1,14,18,7]"},
      {"f32[1,6,5,4]", "f32[3,4,5,3]", "low=[3,1], high=[4,0], lhs_dilation=[3,2], rhs_dilation=[1,1]", "f32[1,19,8,3]"},
      {"f32[1,6,5,4]", "f32[3,4,2,1]", "low=[1,0], high=[3,2], lhs_dilation=[3,3], rhs_dilation=[1,1]", "f32[1,19,15,3]"},
      {"f32[1,8,8,4]", "f32[3,4,3,3]", "low=[-1,-2], high=[-2,1], lhs_dilation=[2,2], rhs_dilation=[1,1]", "f32[1,10,12,3]"},
      {"f32[1,8,6,4]", "f32[3,4,3,2]", "low=[1,0], high=[1,1], lhs_dilation=[1,2], rhs_dilation=[1,1]", "f32[1,8,11,3]"},
      {"f32[1,8,6,4]", "f32[3,4,3,2]", "low=[1,0], high=[1,1], lhs_dilation=[2,2], rhs_dilation=[2,1]", "f32[1,13,11,3]"},
      {"f32[1,30,4]", "f32[3,4,16]", "low=[11], high=[11], lhs_dilation=[8], rhs_dilation=[1]", "f32[1,240,3]"},
      {"f32[1,3,4,5,4]", "f32[3,4,2,2,2]", "low=[1,1,1], high=[1,1,1], lhs_dilation=[2,2,2], rhs_dilation=[1,1,1]", "f32[1,6,8,10,3]"}};
  for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
    char params[200], body[600];
    static const char *const ones[] = {"[1]", "[1,1]", "[1,1,1]"};
    int commas = 0;
    for (const char *c = forms[k][0]; *c; c++) {
      commas += *c == ',';
    }
    snprintf(params, sizeof params, "%%0: %s \"x\", %%1: %s \"w\"", forms[k][0], forms[k][1]);
    snprintf(body, sizeof body, "%%2 = convolution(%%0, %%1) {strides=%s, %s, groups=1, layout=channels-last} : %s",
             ones[commas - 2], forms[k][2], forms[k][3]);
    check_body(params, body, "%2 \"y\"", 2e-6, -1, 1);
  }
}
END_TEST

/* --- control --- */

START_TEST(control) {
  check_text("onnx-xla hlo 1\nmodule \"t\" {\n"
             "computation more(%0: s64[], %1: f32[4,9]) {\n%2 = constant() {value=s64[] 5} : s64[]\n"
             "%3 = compare(%0, %2) {comparison=lt} : pred[]\nreturn %3\n}\n"
             "computation step(%0: s64[], %1: f32[4,9]) {\n%2 = constant() {value=s64[] 1} : s64[]\n"
             "%3 = add(%0, %2) : s64[]\n%4 = add(%1, %1) : f32[4,9]\nreturn %3, %4\n}\n"
             "computation yes(%0: f32[4,9]) {\n%1 = negate(%0) : f32[4,9]\nreturn %1\n}\n"
             "computation no(%0: f32[4,9]) {\nreturn %0\n}\n"
             "entry main(%0: s64[] \"n\", %1: f32[4,9] \"x\", %2: pred[] \"p\") {\n"
             "%3, %4 = while(%0, %1) {computations=[more, step]} : s64[], f32[4,9]\n"
             "%5 = conditional(%2, %4) {computations=[yes, no]} : f32[4,9]\nreturn %3 \"i\", %5 \"y\"\n}\n}\n",
             0, -1, 1);
}
END_TEST

/* --- clusters: the shapes of real networks in small --- */

START_TEST(clusters) {
  check_body("%0: f32[1,32,14,14] \"x\", %1: f32[48] \"b\"",
             "%2 = iota() {dimension=0} : f32[48,32,3,3]\n%3 = cosine(%2) : f32[48,32,3,3]\n"
             "%4 = convolution(%0, %3) {strides=[1,1], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=1, "
             "layout=channels-first} : f32[1,48,14,14]\n"
             "%5 = broadcast(%1) {dimensions=[1]} : f32[1,48,14,14]\n%6 = add(%4, %5) : f32[1,48,14,14]\n"
             "%7 = constant() {value=f32[] 0} : f32[]\n%8 = broadcast(%7) {dimensions=[]} : f32[1,48,14,14]\n"
             "%9 = maximum(%6, %8) : f32[1,48,14,14]\n"
             "%10 = iota() {dimension=1} : f32[48,48,1,1]\n%11 = sine(%10) : f32[48,48,1,1]\n"
             "%12 = convolution(%9, %11) {strides=[1,1], low=[0,0], high=[0,0], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=1, "
             "layout=channels-first} : f32[1,48,14,14]\n"
             "%13 = add(%12, %9) : f32[1,48,14,14]\n%14 = maximum(%13, %8) : f32[1,48,14,14]\n"
             "%15 = reduce-window(%14) {window=[1,1,3,3], strides=[1,1,2,2], low=[0,0,1,1], high=[0,0,1,1], "
             "rhs_dilation=[1,1,1,1], reducer=maximum} : f32[1,48,7,7]\n"
             "%16 = logistic(%15) : f32[1,48,7,7]\n%17 = multiply(%15, %16) : f32[1,48,7,7]\n"
             "%18 = reduce(%17) {dimensions=[2,3], reducer=add} : f32[1,48]\n"
             "%19 = iota() {dimension=0} : f32[48,500]\n%20 = cosine(%19) : f32[48,500]\n"
             "%21 = dot(%18, %20) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[1,500]\n"
             "%22 = iota() {dimension=0} : f32[500]\n%23 = broadcast(%22) {dimensions=[1]} : f32[1,500]\n"
             "%24 = add(%21, %23) : f32[1,500]", "%24 \"y\", %14 \"z\"", 1e-5, -1, 1);
}
END_TEST

/* Large enough to be divided among threads, in each of the ways: rows, batches, columns; with all that may follow. */
START_TEST(parts) {
  static const char *const forms[][4] = {
      {"f32[1,29,31,32]", "f32[48,32,3,3]", "strides=[2,2], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=1, layout=channels-last", "f32[1,15,16,48]"},
      {"f32[1,29,31,64]", "f32[48,64,1,1]", "strides=[1,1], low=[0,0], high=[0,0], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=1, layout=channels-last", "f32[1,29,31,48]"},
      {"f32[3,15,16,32]", "f32[48,32,3,3]", "strides=[1,1], low=[0,2], high=[3,0], lhs_dilation=[1,1], rhs_dilation=[2,1], groups=1, layout=channels-last", "f32[3,14,16,48]"},
      {"f32[1,300,1,64]", "f32[48,64,5,1]", "strides=[1,1], low=[1,0], high=[2,0], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=1, layout=channels-last", "f32[1,299,1,48]"},
      {"f32[2,300,1,64]", "f32[48,64,5,1]", "strides=[2,1], low=[0,0], high=[0,0], lhs_dilation=[1,1], rhs_dilation=[3,1], groups=1, layout=channels-last", "f32[2,144,1,48]"},
      {"f32[1,40,41,96]", "f32[96,1,5,5]", "strides=[1,1], low=[2,2], high=[2,2], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=96, layout=channels-last", "f32[1,40,41,96]"}};
  for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
    char params[300], body[1500];
    const char *y = forms[k][3], *c = strrchr(y, ',') + 1;
    snprintf(params, sizeof params, "%%0: %s \"x\", %%1: %s \"w\", %%2: f32[%s \"b\", %%3: %s \"r\", %%4: f32[%s \"s\", %%5: %s \"t\"",
             forms[k][0], forms[k][1], c, y, c, y);
    snprintf(body, sizeof body,
             "%%6 = convolution(%%0, %%1) {%s} : %s\n%%7 = broadcast(%%2) {dimensions=[3]} : %s\n%%8 = add(%%6, %%7) : %s\n"
             "%%9 = add(%%8, %%3) : %s\n%%10 = broadcast(%%4) {dimensions=[3]} : %s\n%%11 = multiply(%%9, %%10) : %s\n"
             "%%12 = maximum(%%11, %%5) : %s\n%%13 = logistic(%%12) : %s\n%%14 = multiply(%%12, %%13) : %s",
             forms[k][2], y, y, y, y, y, y, y, y, y);
    check_body(params, body, "%14 \"y\"", 5e-6, -1, 1);
  }
  static const char *const products[][4] = {
      {"f32[130,200]", "f32[200,300]", "{lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]}", "f32[130,300]"},
      {"f32[5,70,90]", "f32[5,90,110]", "{lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]}", "f32[5,70,110]"},
      {"f32[1,1500]", "f32[1500,2000]", "{lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]}", "f32[1,2000]"},
      {"f32[1,1500]", "f32[2000,1500]", "{lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]}", "f32[1,2000]"}};
  for (size_t k = 0; k < sizeof products / sizeof *products; k++) {
    char params[300], body[900];
    const char *y = products[k][3], *n = strrchr(y, ',') + 1;
    snprintf(params, sizeof params, "%%0: %s \"x\", %%1: %s \"w\", %%2: f32[%s \"b\", %%3: %s \"r\"", products[k][0],
             products[k][1], n, y);
    snprintf(body, sizeof body,
             "%%4 = dot(%%0, %%1) %s : %s\n%%5 = broadcast(%%2) {dimensions=[%d]} : %s\n%%6 = add(%%4, %%5) : %s\n"
             "%%7 = multiply(%%6, %%3) : %s\n%%8 = tanh(%%7) : %s",
             products[k][2], y, k == 1 ? 2 : 1, y, y, y, y);
    check_body(params, body, "%8 \"y\"", 5e-6, -0.3, 0.3);
  }
  check_body("%0: f32[1,1500] \"x\"",
             "%1 = iota() {dimension=0} : f32[1500,2000]\n%2 = iota() {dimension=1} : f32[1500,2000]\n"
             "%3 = add(%1, %2) : f32[1500,2000]\n%4 = cosine(%3) : f32[1500,2000]\n"
             "%5 = dot(%0, %4) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[1,2000]", "%5 \"y\"", 5e-5,
             -1, 1);
}
END_TEST

/* Softmax, and a normalisation written in small operators, over rows of n elements: shape x, rows' shape k, the dimension that
 * goes and those that stay. */
static void check_rows(const char *type, const char *x, const char *k, const char *gone, const char *kept, double tolerance) {
  char params[200], body[3000];
  snprintf(params, sizeof params, "%%0: %s[%s] \"x\", %%1: %s[%s] \"y\"", type, x, type, x);
  snprintf(body, sizeof body,
           "%%2 = reduce(%%0) {dimensions=[%1$s], reducer=maximum} : %2$s[%4$s]\n"
           "%%3 = broadcast(%%2) {dimensions=[%5$s]} : %2$s[%3$s]\n%%4 = subtract(%%0, %%3) : %2$s[%3$s]\n"
           "%%5 = exponential(%%4) : %2$s[%3$s]\n%%6 = reduce(%%5) {dimensions=[%1$s], reducer=add} : %2$s[%4$s]\n"
           "%%7 = broadcast(%%6) {dimensions=[%5$s]} : %2$s[%3$s]\n%%8 = divide(%%5, %%7) : %2$s[%3$s]\n"
           "%%9 = add(%%0, %%1) : %2$s[%3$s]\n%%10 = reduce(%%9) {dimensions=[%1$s], reducer=add} : %2$s[%4$s]\n"
           "%%11 = multiply(%%10, %%10) : %2$s[%4$s]\n%%12 = broadcast(%%10) {dimensions=[%5$s]} : %2$s[%3$s]\n"
           "%%13 = subtract(%%9, %%12) : %2$s[%3$s]\n%%14 = multiply(%%13, %%13) : %2$s[%3$s]\n"
           "%%15 = reduce(%%14) {dimensions=[%1$s], reducer=add} : %2$s[%4$s]\n%%16 = sqrt(%%15) : %2$s[%4$s]\n"
           "%%17 = broadcast(%%16) {dimensions=[%5$s]} : %2$s[%3$s]\n%%18 = divide(%%13, %%17) : %2$s[%3$s]\n"
           "%%19 = tanh(%%18) : %2$s[%3$s]\n", gone, type, x, k, kept);
  check_body(params, body, "%8 \"softmax\", %5 \"e\", %9 \"sum\", %11 \"square\", %19 \"normal\"", tolerance, -2, 2);
}

/* Rows that are whole vectors, that end in the middle of one, that are shorter; that lie side by side; that are too long for
 * what is kept on the stack; of numbers that are computed in f32, or by a library. */
START_TEST(rows) {
  check_rows("f32", "3,4,64", "3,4", "2", "0,1", 1e-5);
  check_rows("f32", "3,37", "3", "1", "0", 1e-5);
  check_rows("f32", "9,5", "9", "1", "0", 1e-5);
  check_rows("f32", "2,21,35", "2,35", "1", "0,2", 1e-5);
  check_rows("f32", "3,5,4,6", "3,4", "1,3", "0,2", 1e-5);
  check_rows("f32", "9,5003", "9", "1", "0", 1e-4);
  check_rows("f32", "7", "", "0", "", 1e-5);
  check_rows("f64", "3,37", "3", "1", "0", 1e-12);
  check_rows("f16", "3,37", "3", "1", "0", 2e-2);
  check_rows("bf16", "2,5,19", "2,19", "1", "0,2", 1e-1);
}
END_TEST

/* Squares that divide both sides, that lie over one another, that are smaller; two turned arrays, types of all widths, and
 * elementwise work on both sides. */
START_TEST(turned) {
  static const char *const types[] = {"f32", "f64", "f16", "s8", "s64", "pred", NULL};
  for (int k = 0; types[k]; k++) {
    char params[100], body[1000];
    snprintf(params, sizeof params, "%%0: %1$s[3,32,48] \"x\", %%1: %1$s[2,37,19] \"y\", %%2: %1$s[1,5,7,2] \"z\"", types[k]);
    snprintf(body, sizeof body,
             "%%3 = transpose(%%0) {permutation=[2,0,1]} : %1$s[48,3,32]\n%%4 = transpose(%%0) {permutation=[0,2,1]} : %1$s[3,48,32]\n"
             "%%5 = transpose(%%1) {permutation=[0,2,1]} : %1$s[2,19,37]\n%%6 = transpose(%%1) {permutation=[2,1,0]} : %1$s[19,37,2]\n"
             "%%7 = transpose(%%2) {permutation=[3,0,1,2]} : %1$s[2,1,5,7]\n", types[k]);
    check_body(params, body, "%3 \"a\", %4 \"b\", %5 \"c\", %6 \"d\", %7 \"e\"", 0, -9, 9);
  }
  check_body("%0: f32[2,37,19] \"x\", %1: f32[2,37,19] \"y\", %2: f32[19] \"b\", %3: f32[2,19,37] \"z\"",
             "%4 = multiply(%0, %1) : f32[2,37,19]\n%5 = transpose(%4) {permutation=[0,2,1]} : f32[2,19,37]\n"
             "%6 = transpose(%1) {permutation=[0,2,1]} : f32[2,19,37]\n%7 = broadcast(%2) {dimensions=[1]} : f32[2,19,37]\n"
             "%8 = add(%5, %7) : f32[2,19,37]\n%9 = maximum(%8, %6) : f32[2,19,37]\n%10 = negate(%3) : f32[2,19,37]\n"
             "%11 = subtract(%10, %9) : f32[2,19,37]\n%12 = reshape(%11) : f32[38,37]\n%13 = abs(%12) : f32[38,37]",
             "%13 \"r\", %8 \"s\"", 0, -2, 2);
}
END_TEST

/* What pass layout carries transposes through: each branch ends in a plain result. */
START_TEST(layouts) {
  static const char conv[] = "strides=[1,1], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=1, layout=channels-first";
  char body[3000];
  snprintf(body, sizeof body,
           "%%3 = convolution(%%0, %%1) {%s} : f32[2,6,7,8]\n"
           "%%4 = transpose(%%3) {permutation=[0,2,3,1]} : f32[2,7,8,6]\n"
           "%%5 = transpose(%%3) {permutation=[0,1,3,2]} : f32[2,6,8,7]\n"
           "%%6 = reduce(%%3) {dimensions=[2], reducer=add} : f32[2,6,8]\n"
           "%%7 = reduce(%%3) {dimensions=[1], reducer=maximum} : f32[2,7,8]\n"
           "%%8 = arg-reduce(%%3) {dimension=1, largest=true, last=false} : s64[2,7,8]\n"
           "%%9 = slice(%%3) {starts=[0,1,2,0], limits=[2,5,7,8], strides=[1,2,1,3]} : f32[2,2,5,3]\n"
           "%%10 = reverse(%%3) {dimensions=[1,3]} : f32[2,6,7,8]\n"
           "%%11 = concatenate(%%3, %%2) {dimension=2} : f32[2,6,14,8]\n"
           "%%12 = reshape(%%3) : f32[2,2,3,7,8]\n%%13 = transpose(%%12) {permutation=[0,2,1,3,4]} : f32[2,3,2,7,8]\n"
           "%%14 = reshape(%%13) : f32[2,6,56]\n"
           "%%15 = iota() {dimension=2} : f32[2,6,7,8]\n%%16 = add(%%3, %%15) : f32[2,6,7,8]\n"
           "%%17 = iota() {dimension=0} : f32[6,8]\n%%18 = broadcast(%%17) {dimensions=[1,3]} : f32[2,6,7,8]\n"
           "%%19 = multiply(%%16, %%18) : f32[2,6,7,8]\n%%20 = reshape(%%3) : f32[2,336]\n"
           "%%21 = convert(%%3) {saturate=true, rounding=nearest} : s32[2,6,7,8]\n"
           "%%22 = clamp(%%2, %%3, %%2) : f32[2,6,7,8]\n"
           "%%23 = constant() {value=f32[] 2} : f32[]\n"
           "%%24 = pad(%%3, %%23) {low=[0,1,0,2], high=[0,0,3,-1], interior=[0,0,1,0]} : f32[2,7,16,9]", conv);
  check_body("%0: f32[2,5,7,8] \"x\", %1: f32[6,5,3,3] \"w\", %2: f32[2,6,7,8] \"y\"", body,
             "%4 \"a\", %5 \"b\", %6 \"c\", %7 \"d\", %8 \"e\", %9 \"f\", %10 \"g\", %11 \"h\", %14 \"i\", %19 \"j\", "
             "%20 \"k\", %22 \"l\", %24 \"m\"", 2e-6, -1, 1);
}
END_TEST

/* Operands that live on after an operation that could be done in place, and operands that are read twice. */
START_TEST(sharing) {
  check_body("%0: f32[1,9,9,64] \"x\", %1: f32[64,64,1,1] \"w\"",
             "%2 = tanh(%0) : f32[1,9,9,64]\n"
             "%3 = convolution(%2, %1) {strides=[1,1], low=[0,0], high=[0,0], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=1, "
             "layout=channels-last} : f32[1,9,9,64]\n"
             "%4 = add(%3, %2) : f32[1,9,9,64]\n"
             "%5 = convolution(%4, %1) {strides=[1,1], low=[0,0], high=[0,0], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=1, "
             "layout=channels-last} : f32[1,9,9,64]\n"
             "%6 = tanh(%4) : f32[1,9,9,64]\n%7 = add(%5, %6) : f32[1,9,9,64]\n"
             "%8 = reverse(%7) {dimensions=[1]} : f32[1,9,9,64]\n%9 = add(%7, %8) : f32[1,9,9,64]\n"
             "%10 = logistic(%9) : f32[1,9,9,64]\n%11 = multiply(%9, %10) : f32[1,9,9,64]",
             "%11 \"y\"", 2e-5, -0.2, 0.2);
}
END_TEST

/* Several steps of one kind with other numbers, side by side and apart: a library may take one's numbers for all.  The
 * tolerance is that of 144 products, some of them cancelling, summed in another order. */
START_TEST(repeated_steps) {
  static const char convolution[] =
      "%2 = convolution(%0, %1) {strides=[1,1], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=1, "
      "layout=channels-last} : f32[1,9,9,16]\n"
      "%3 = constant() {value=f32[] 1.375} : f32[]\n%4 = broadcast(%3) {dimensions=[]} : f32[1,9,9,16]\n"
      "%5 = constant() {value=f32[] 0.625} : f32[]\n%6 = broadcast(%5) {dimensions=[]} : f32[1,9,9,16]\n"
      "%7 = multiply(%2, %4) : f32[1,9,9,16]\n%8 = add(%7, %6) : f32[1,9,9,16]\n";
  static const char *const ends[][2] = {
      {"", "%8 \"y\""},
      {"%9 = tanh(%8) : f32[1,9,9,16]\n%10 = multiply(%9, %6) : f32[1,9,9,16]\n%11 = subtract(%10, %4) : f32[1,9,9,16]",
       "%11 \"y\""},
      {"%9 = clamp(%5, %8, %3) : f32[1,9,9,16]\n%10 = multiply(%9, %9) : f32[1,9,9,16]\n"
       "%11 = add(%9, %4) : f32[1,9,9,16]\n%12 = minimum(%11, %6) : f32[1,9,9,16]",
       "%12 \"y\", %10 \"z\""},
      {"%9 = maximum(%8, %6) : f32[1,9,9,16]\n%10 = logistic(%9) : f32[1,9,9,16]\n%11 = maximum(%10, %6) : f32[1,9,9,16]\n"
       "%12 = minimum(%11, %4) : f32[1,9,9,16]\n%13 = divide(%12, %4) : f32[1,9,9,16]",
       "%13 \"y\""}};
  for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
    char body[2000];
    snprintf(body, sizeof body, "%s%s", convolution, ends[k][0]);
    check_body("%0: f32[1,9,9,16] \"x\", %1: f32[16,16,3,3] \"w\"", body, ends[k][1], 1e-5, -1, 1);
  }
}
END_TEST

/* Arrays behind a convolution that are stretched along any of its dimensions, of one image and of several. */
START_TEST(stretched_steps) {
  static const int dims[] = {9, 9, 9, 16};
  for (int set = 0; set < 32; set++) {
    int batch = set < 16 ? 1 : 3, mask = set % 16;
    char array[40] = "", to[20] = "", params[200], body[900];
    for (int d = 0; d < 4; d++) {
      if (mask >> d & 1) {
        sprintf(array + strlen(array), "%s%d", *array ? "," : "", d ? dims[d] : batch);
        sprintf(to + strlen(to), "%s%d", *to ? "," : "", d);
      }
    }
    snprintf(params, sizeof params, "%%0: f32[%d,9,9,16] \"x\", %%1: f32[%s] \"a\"", batch, array);
    snprintf(body, sizeof body,
             "%%2 = iota() {dimension=1} : f32[16,16,3,3]\n%%3 = cosine(%%2) : f32[16,16,3,3]\n"
             "%%4 = convolution(%%0, %%3) {strides=[1,1], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=1, "
             "layout=channels-last} : f32[%d,9,9,16]\n"
             "%%5 = broadcast(%%1) {dimensions=[%s]} : f32[%d,9,9,16]\n%%6 = multiply(%%4, %%5) : f32[%d,9,9,16]",
             batch, to, batch, batch);
    check_body(params, body, "%6 \"y\"", 1e-5, -1, 1);
  }
}
END_TEST

/* Sums of bytes, with what brings them to bytes again: the library's rounding is exact.  %%w and %%f are constants, folded. */
START_TEST(bytes) {
  static const char *const kinds[][3] = {/* of x, of y, the last steps */
      {"u8", "u8", "%20 = round-nearest-even(%19) : f32[1,9,9,40]\n%21 = add(%20, %13) : f32[1,9,9,40]\n"
                   "%22 = clamp(%4, %21, %5) : f32[1,9,9,40]\n%23 = convert(%22) {saturate=true, rounding=nearest} : u8[1,9,9,40]"},
      {"s8", "u8", "%20 = maximum(%19, %13) : f32[1,9,9,40]\n%21 = round-nearest-even(%20) : f32[1,9,9,40]\n"
                   "%22 = clamp(%4, %21, %5) : f32[1,9,9,40]\n%23 = convert(%22) {saturate=true, rounding=nearest} : u8[1,9,9,40]"},
      {"s8", "f32", "%23 = add(%19, %13) : f32[1,9,9,40]"}};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    char params[100], body[4000];
    snprintf(params, sizeof params, "%%0: %s[1,9,9,24] \"x\"", kinds[k][0]);
    snprintf(body, sizeof body,
             "%%4 = constant() {value=f32[] 0} : f32[]\n%%5 = constant() {value=f32[] 255} : f32[]\n"
             "%%6 = iota() {dimension=0} : s32[8640]\n%%7 = multiply(%%6, %%6) : s32[8640]\n"
             "%%8 = convert(%%7) {saturate=false, rounding=nearest} : s8[8640]\n%%9 = reshape(%%8) : s8[40,24,3,3]\n"
             "%%10 = iota() {dimension=0} : s32[40]\n%%11 = convert(%%10) {saturate=false, rounding=nearest} : f32[40]\n"
             "%%12 = constant() {value=f32[] 3} : f32[]\n%%13 = broadcast(%%12) {dimensions=[]} : f32[1,9,9,40]\n"
             "%%14 = convolution(%%0, %%9) {strides=[1,1], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=1, "
             "layout=channels-last} : s32[1,9,9,40]\n%%15 = broadcast(%%10) {dimensions=[3]} : s32[1,9,9,40]\n"
             "%%16 = add(%%14, %%15) : s32[1,9,9,40]\n"
             "%%17 = convert(%%16) {saturate=true, rounding=nearest} : f32[1,9,9,40]\n"
             "%%2 = constant() {value=f32[] 0x1p-14} : f32[]\n%%3 = broadcast(%%2) {dimensions=[]} : f32[40]\n"
             "%%24 = multiply(%%11, %%3) : f32[40]\n%%18 = broadcast(%%24) {dimensions=[3]} : f32[1,9,9,40]\n"
             "%%19 = multiply(%%17, %%18) : f32[1,9,9,40]\n%s",
             kinds[k][2]);
    check_body(params, body, "%23 \"y\"", 0, -1, 1);
  }
  check_body("%0: u8[33,70] \"x\"",
             "%1 = iota() {dimension=0} : s32[4480]\n%2 = multiply(%1, %1) : s32[4480]\n"
             "%3 = convert(%2) {saturate=false, rounding=nearest} : s8[4480]\n%4 = reshape(%3) : s8[70,64]\n"
             "%5 = dot(%0, %4) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : s32[33,64]",
             "%5 \"y\"", 0, -1, 1);
}
END_TEST

/* Weights of small integers, made into f32 by blocks or columns, with and without a zero point and a transpose, a tail behind the
 * dot.  A block's sum is scaled instead of each weight: some more roundings, of 1600 products at most. */
START_TEST(small_weights) {
  static const struct {
    const char *type, *x, *y, *q, *matrix, *scales, *along, *contract;
    bool zero, turned;
  } kinds[] = {
      {"u4", "1,512", "1,512", "16,32,512", "512,512", "16,512", "0,2", "0", true, false},
      {"s4", "5,512", "5,528", "16,32,528", "512,528", "16,528", "0,2", "0", false, false},
      {"s4", "16,576", "16,512", "512,9,64", "512,576", "512,9", "0,1", "1", true, false},
      {"u2", "2,512", "2,512", "512,4,128", "512,512", "512,4", "0,1", "0", true, true},
      {"s8", "3,1600", "3,176", "1600,176", "1600,176", "176", "1", "0", false, false},
      {"u8", "7,513", "7,512", "512,513", "512,513", "512", "0", "1", true, false},
      {"s4", "1,513", "1,512", "513,512", "513,512", "512", "1", "0", false, false},
  };
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    const char *q = kinds[k].q, *along = kinds[k].along, *scales = kinds[k].scales, *y = kinds[k].y;
    char params[100], body[4000], zero[900], turn[200];
    snprintf(params, sizeof params, "%%0: f32[%s] \"x\"", kinds[k].x);
    snprintf(zero, sizeof zero,
             "%%20 = iota() {dimension=0} : s32[%s]\n%%21 = broadcast(%%20) {dimensions=[%s]} : s32[%s]\n"
             "%%22 = convert(%%13) {saturate=true, rounding=nearest} : s32[%s]\n%%23 = subtract(%%22, %%21) : s32[%s]\n",
             scales, along, q, q, q);
    snprintf(turn, sizeof turn, "%%29 = transpose(%%28) {permutation=[1,0]} : f32[%s]\n", kinds[k].matrix);
    snprintf(body, sizeof body,
             "%%9 = iota() {dimension=0} : s32[%s]\n%%10 = iota() {dimension=1} : s32[%s]\n"
             "%%11 = multiply(%%9, %%9) : s32[%s]\n%%12 = add(%%11, %%10) : s32[%s]\n"
             "%%13 = convert(%%12) {saturate=false, rounding=nearest} : %s[%s]\n%s"
             "%%24 = convert(%%%d) {saturate=true, rounding=nearest} : f32[%s]\n"
             "%%25 = iota() {dimension=0} : f32[%s]\n%%26 = cosine(%%25) : f32[%s]\n%%7 = broadcast(%%26) {dimensions=[%s]} : f32[%s]\n"
             "%%27 = multiply(%%24, %%7) : f32[%s]\n%%28 = reshape(%%27) : f32[%s]\n%s"
             "%%30 = dot(%%0, %%%d) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[%s]} : f32[%s]\n"
             "%%31 = constant() {value=f32[] 3} : f32[]\n%%32 = broadcast(%%31) {dimensions=[]} : f32[%s]\n"
             "%%33 = maximum(%%30, %%32) : f32[%s]",
             q, q, q, q, kinds[k].type, q, kinds[k].zero ? zero : "", kinds[k].zero ? 23 : 13, q, scales, scales, along, q, q,
             kinds[k].matrix, kinds[k].turned ? turn : "", kinds[k].turned ? 29 : 28, kinds[k].contract, y, y, y);
    check_body(params, body, "%33 \"y\"", 2e-5, -1, 1);
  }
}
END_TEST

/* An epilogue in a branch, with the branch's own parameters. */
/* --- dots whose operands are no matrices as they come --- */

START_TEST(heads) {
  check_body("%0: f32[4,20,3,3,32] \"qkv\", %1: f32[96,64] \"w\"",
             "%2 = slice(%0) {starts=[0,0,0,0,0], limits=[4,20,1,3,32], strides=[1,1,1,1,1]} : f32[4,20,1,3,32]\n"
             "%3 = slice(%0) {starts=[0,0,1,0,0], limits=[4,20,2,3,32], strides=[1,1,1,1,1]} : f32[4,20,1,3,32]\n"
             "%4 = slice(%0) {starts=[0,0,2,0,0], limits=[4,20,3,3,32], strides=[1,1,1,1,1]} : f32[4,20,1,3,32]\n"
             "%5 = reshape(%2) : f32[4,20,3,32]\n%6 = reshape(%3) : f32[4,20,3,32]\n%7 = reshape(%4) : f32[4,20,3,32]\n"
             "%8 = dot(%5, %6) {lhs_batch=[0,2], rhs_batch=[0,2], lhs_contract=[3], rhs_contract=[3]} : f32[4,3,20,20]\n"
             "%9 = logistic(%8) : f32[4,3,20,20]\n"
             "%10 = dot(%9, %7) {lhs_batch=[0,1], rhs_batch=[0,2], lhs_contract=[3], rhs_contract=[1]} : f32[4,3,20,32]\n"
             "%11 = transpose(%10) {permutation=[0,2,1,3]} : f32[4,20,3,32]\n%12 = reshape(%11) : f32[4,20,96]\n"
             "%13 = dot(%12, %1) {lhs_batch=[], rhs_batch=[], lhs_contract=[2], rhs_contract=[0]} : f32[4,20,64]",
             "%13 \"y\"", 1e-5, -1, 1);
}
END_TEST

/* --- activations that are spelled out behind products --- */

/* From %4 to %y; %h is 0.5, %o 1, %r sqrt 2, %s sqrt(2/pi), %c 0.044715, %a 1.702. */
static const char *const activations[] = {
    "%5 = divide(%4, %r) : f32[24,200]\n%6 = erf(%5) : f32[24,200]\n%7 = add(%6, %o) : f32[24,200]\n"
     "%8 = multiply(%4, %7) : f32[24,200]\n%y = multiply(%8, %h) : f32[24,200]\n",
    "%5 = multiply(%4, %h) : f32[24,200]\n%6 = multiply(%4, %4) : f32[24,200]\n%7 = multiply(%6, %4) : f32[24,200]\n"
     "%8 = multiply(%7, %c) : f32[24,200]\n%9 = add(%4, %8) : f32[24,200]\n%10 = multiply(%9, %s) : f32[24,200]\n"
     "%11 = tanh(%10) : f32[24,200]\n%12 = add(%11, %o) : f32[24,200]\n%y = multiply(%5, %12) : f32[24,200]\n",
    "%5 = multiply(%4, %a) : f32[24,200]\n%6 = logistic(%5) : f32[24,200]\n%y = multiply(%4, %6) : f32[24,200]\n",
};

/* Products of 64 numbers from [-1, 1] stand around 0 with a deviation of 2.7, so that all parts of the functions are met.  1e-5
 * of the largest result, some 10, is far above what products and the library's erf and tanh (1e-6) differ by. */
START_TEST(spelled_out) {
  static const char *const numbers[][2] = {{"h", "0.5"}, {"o", "1"}, {"r", "1.4142135"}, {"s", "0.7978846"},
                                           {"c", "0.044715"}, {"a", "1.702"}};
  char body[4000];
  int n = 0;
  for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
    n += snprintf(body + n, sizeof body - (size_t)n,
                  "%%n%s = constant() {value=f32[] %s} : f32[]\n%%%s = broadcast(%%n%s) {dimensions=[]} : f32[24,200]\n",
                  numbers[k][0], numbers[k][1], numbers[k][0], numbers[k][0]);
  }
  snprintf(body + n, sizeof body - (size_t)n,
           "%%2 = dot(%%0, %%1) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[24,200]\n"
           "%%3 = broadcast(%%b) {dimensions=[1]} : f32[24,200]\n%%4 = add(%%2, %%3) : f32[24,200]\n%s",
           activations[_i]);
  check_body("%0: f32[24,64] \"x\", %1: f32[64,200] \"w\", %b: f32[200] \"b\"", body, "%y \"y\"", 1e-5, -1, 1);
}
END_TEST

START_TEST(clusters_in_branches) {
  check_text("onnx-xla hlo 1\nmodule \"t\" {\n"
             "computation one(%0: f32[1,9,9,16], %1: f32[16,16,3,3], %2: f32[]) {\n"
             "%3 = convolution(%0, %1) {strides=[1,1], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[1,1], "
             "groups=1, layout=channels-last} : f32[1,9,9,16]\n"
             "%4 = broadcast(%2) {dimensions=[]} : f32[1,9,9,16]\n%5 = add(%3, %4) : f32[1,9,9,16]\nreturn %5\n}\n"
             "computation other(%0: f32[1,9,9,16], %1: f32[16,16,3,3], %2: f32[]) {\nreturn %0\n}\n"
             "entry main(%0: pred[] \"p\", %1: f32[1,9,9,16] \"x\", %2: f32[16,16,3,3] \"w\", %3: f32[] \"b\") {\n"
             "%4 = conditional(%0, %1, %2, %3) {computations=[one, other]} : f32[1,9,9,16]\n"
             "%5 = not(%0) : pred[]\n"
             "%6 = conditional(%5, %1, %2, %3) {computations=[one, other]} : f32[1,9,9,16]\n"
             "return %4 \"y\", %6 \"z\"\n}\n}\n",
             2e-6, -1, 1);
}
END_TEST

int main(void) {
  Suite *s = suite_create("target");
  TCase *t = tcase_create("target");
  tcase_set_timeout(t, 60); /* the machine may be busy */
  tcase_add_test(t, exact_unary_floats);
  tcase_add_test(t, transcendental_functions);
  tcase_add_test(t, binary_floats);
  tcase_add_test(t, integers);
  tcase_add_test(t, small_weights);
  tcase_add_test(t, comparisons_and_selections);
  tcase_add_test(t, conversions);
  tcase_add_test(t, random_bits);
  tcase_add_test(t, run_seeds);
  tcase_add_test(t, movement);
  tcase_add_test(t, padding);
  tcase_add_test(t, dynamic_slices);
  tcase_add_test(t, gather_and_scatter);
  tcase_add_test(t, reductions);
  tcase_add_test(t, arg_reductions);
  tcase_add_test(t, windows);
  tcase_add_loop_test(t, sliding_windows, 0, sizeof slidings / sizeof *slidings);
  tcase_add_loop_test(t, sliding_windows_of_special_values, 0, sizeof slidings / sizeof *slidings);
  tcase_add_test(t, sorting);
  tcase_add_test(t, suppression);
  tcase_add_test(t, dots);
  tcase_add_test(t, convolutions);
  tcase_add_test(t, spread_convolutions);
  tcase_add_test(t, bytes);
  tcase_add_test(t, control);
  tcase_add_test(t, clusters);
  tcase_add_test(t, heads);
  tcase_add_loop_test(t, spelled_out, 0, sizeof activations / sizeof *activations);
  tcase_add_test(t, parts);
  tcase_add_test(t, rows);
  tcase_add_test(t, turned);
  tcase_add_test(t, layouts);
  tcase_add_test(t, sharing);
  tcase_add_test(t, repeated_steps);
  tcase_add_test(t, stretched_steps);
  tcase_add_test(t, clusters_in_branches);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_NORMAL);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
