/* check_operations.c - every HLO operation, by itself, on the reference evaluator and on the cpu target, at vector
 * widths 1, 4, 8 and 16 and for plain x86-64.  Operations that ops.def calls EXACT must give the same bits, others must
 * be within the tolerance of their case. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/target/text_case.h"

/* --- elementwise --- */

/* Checks all these operations on each of these types, in one module for each type, whose results are %10, %11, ... */
static void check_each(const char *const *ops, const char *const *types, int arity, double tolerance, double low,
                       double high) {
  for (; *types; types++) {
    char params[200] = "", body[4000], root[1000] = "";
    int n = 0, r = 0;
    for (int k = 0; k < arity; k++) {
      snprintf(params + strlen(params), sizeof params - strlen(params), "%s%%%d: %s[3,37] \"p%d\"", k ? ", " : "", k,
               *types, k);
    }
    for (int k = 0; ops[k]; k++) {
      n += snprintf(body + n, sizeof body - (size_t)n, "%%%d = %s(%s) : %s[3,37]\n", arity + k, ops[k],
                    arity == 1   ? "%0"
                    : arity == 2 ? "%0, %1"
                                 : "%0, %1, %2",
                    *types);
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
  static const char *const wide[] = {"exponential", "exponential-minus-one",
                                     "sine",        "cosine",
                                     "atan",        "tanh",
                                     "erf",         "logistic",
                                     "sinh",        "cosh",
                                     "asinh",       NULL};
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
  static const char *const binary[] = {"add", "subtract", "multiply", "divide",     "remainder",   "maximum", "minimum",
                                       "and", "or",       "xor",      "shift-left", "shift-right", "power",   NULL};
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
               "%%4 = clamp(%%1, %%0, %%1) : %s[5,33]\n",
               lower, types[t], types[t]);
      check_body(params, body, "%2 \"a\", %3 \"b\", %4 \"c\"", 0, -5, 5);
    }
  }
}
END_TEST

START_TEST(conversions) {
  static const char *const types[] = {"f32", "f64", "f16", "bf16", "s8",  "s16", "s32",
                                      "s64", "u8",  "u16", "u32",  "u64", "pred"};
  for (size_t f = 0; f < sizeof types / sizeof *types; f++) {
    char params[100], body[2000], root[500] = "";
    int n = 0, r = 0;
    snprintf(params, sizeof params, "%%0: %s[2,41] \"x\"", types[f]);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
      n += snprintf(body + n, sizeof body - (size_t)n,
                    "%%%zu = convert(%%0) {saturate=true, rounding=nearest} : %s[2,41]\n", t + 1, types[t]);
      r += snprintf(root + r, sizeof root - (size_t)r, "%s%%%zu \"r%zu\"", t ? ", " : "", t + 1, t);
    }
    check_body(params, body, root, 0, -100, 300);
  }
}
END_TEST

/* --- random numbers --- */

START_TEST(random_bits) {
  check_body("%0: u64[3] \"s\"",
             "%1 = rng-bit-generator(%0) {algorithm=philox} : u32[37,64]\n"
             "%2 = rng-bit-generator(%0) {algorithm=philox} : "
             "u64[2,1001]\n%3 = convert(%2) {saturate=true, rounding=nearest} : f32[2,1001]\n"
             "%4 = rng-bit-generator(%0) {algorithm=philox} : u32[100003]",
             "%1 \"a\", %3 \"b\", %4 \"c\"", 0, 0, 1e9);
  check_body("%0: u64[1] \"s\"",
             "%1 = rng-bit-generator(%0) {algorithm=mt19937} : u32[3,700]\n"
             "%2 = rng-bit-generator(%0) {algorithm=mt19937} : "
             "u64[1001]\n%3 = not(%2) : u64[1001]\n%4 = rng-bit-generator(%0) {algorithm=mt19937} : u64[0]",
             "%1 \"a\", %3 \"b\", %4 \"c\"", 0, 0, 1e9);
}
END_TEST

/* Both targets use the seed 0: the reference evaluator computes outside of any run, and the runs of this test have no
 * seed. */
START_TEST(run_seeds) {
  check_body("%0: s64[] \"x\"",
             "%1 = run-seed() : u64[]\n%2 = reshape(%1) : u64[1]\n%3 = concatenate(%2, %2, %2) {dimension=0} : u64[3]\n"
             "%4 = rng-bit-generator(%3) {algorithm=philox} : u32[40]",
             "%1 \"a\", %4 \"b\"", 0, 0, 1);
}
END_TEST

/* --- movement --- */

START_TEST(movement) {
  static const char *const types[] = {"f32", "s64", "u8", "f16"};
  static const char *const lines[] = {"%1 = transpose(%0) {permutation=[2,0,1]} : %T[7,4,6]",
                                      "%1 = reverse(%0) {dimensions=[0,2]} : %T[4,6,7]",
                                      "%1 = slice(%0) {starts=[1,0,2], limits=[4,6,7], strides=[1,2,2]} : %T[3,3,3]",
                                      "%1 = reshape(%0) : %T[24,7]",
                                      "%1 = broadcast(%0) {dimensions=[0,2,3]} : %T[4,3,6,7]",
                                      "%1 = concatenate(%0, %0) {dimension=1} : %T[4,12,7]",
                                      "%1 = copy(%0) : %T[4,6,7]",
                                      "%1 = iota() {dimension=1} : %T[4,6,7]"};
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
             "%3 = pad(%0, %1) {low=[0,3], high=[2,3], interior=[0,0]} : f32[6,12]",
             "%2 \"a\", %3 \"b\"", 0, -1, 1);
}
END_TEST

/* Updates at constant positions: only the update is written, and the rest of the array is copied or stays where it
 * is. */
START_TEST(updates_at_constant_places) {
  check_body("%0: f32[9,17] \"x\", %1: f32[9,5] \"u\", %2: f32[2,17] \"v\"",
             "%3 = constant() {value=s64[2] {0, 7}} : s64[2]\n%4 = constant() {value=s64[2] {4, 0}} : s64[2]\n"
             "%5 = dynamic-update-slice(%0, %1, %3) : f32[9,17]\n%6 = dynamic-update-slice(%5, %2, %4) : f32[9,17]\n"
             "%7 = add(%0, %0) : f32[9,17]\n%8 = dynamic-update-slice(%7, %1, %3) : f32[9,17]\n"
             "%9 = multiply(%8, %8) : f32[9,17]\n%10 = constant() {value=s64[2] {0, 90}} : s64[2]\n"
             "%11 = dynamic-update-slice(%9, %1, %10) : f32[9,17]",
             "%6 \"a\", %9 \"b\", %11 \"c\"", 0, -1, 1);
}
END_TEST

/* An array begins with undefined contents and is written in parts. */
START_TEST(empty_arrays) {
  check_body("%0: f32[9,17] \"x\", %1: f32[9,5] \"u\"",
             "%2 = empty() : f32[9,22]\n%3 = constant() {value=s64[2] {0, 0}} : s64[2]\n"
             "%4 = constant() {value=s64[2] {0, 17}} : s64[2]\n%5 = dynamic-update-slice(%2, %0, %3) : f32[9,22]\n"
             "%6 = dynamic-update-slice(%5, %1, %4) : f32[9,22]",
             "%6 \"a\"", 0, -1, 1);
}
END_TEST

START_TEST(dynamic_slices) {
  check_body("%0: f32[9,17] \"x\", %1: s64[2] \"at\", %2: f32[3,5] \"u\"",
             "%3 = dynamic-slice(%0, %1) {sizes=[3,5]} : f32[3,5]\n"
             "%4 = dynamic-update-slice(%0, %2, %1) : f32[9,17]\n%5 = add(%0, %0) : f32[9,17]\n"
             "%6 = dynamic-update-slice(%5, %2, %1) : f32[9,17]",
             "%3 \"a\", %4 \"b\", %6 \"c\"", 0, -1, 1);
}
END_TEST

START_TEST(gather_and_scatter) {
  check_body(
      "%0: f32[9,17] \"x\", %1: s64[5] \"i\", %2: f32[5,17] \"u\"",
      "%3 = gather(%0, %1) {offset_dims=[1], collapsed_dims=[0], operand_batch=[], indices_batch=[], index_map=[0], "
      "index_vector_dim=1, sizes=[1,17]} : f32[5,17]\n"
      "%4 = scatter(%0, %1, %2) {offset_dims=[1], collapsed_dims=[0], operand_batch=[], indices_batch=[], "
      "index_map=[0], index_vector_dim=1, reducer=add} : f32[9,17]",
      "%3 \"a\", %4 \"b\"", 1e-6, -1, 1);
}
END_TEST

/* --- operations with loops of their own --- */

START_TEST(reductions) {
  static const char *const reducers[] = {"add", "multiply", "maximum", "minimum"};
  static const char *const types[] = {"f32", "f64", "f16", "s32", "s64", "u8"};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    for (size_t r = 0; r < sizeof reducers / sizeof *reducers; r++) {
      char params[100], body[900];
      const char *y = types[t], *f = reducers[r];
      snprintf(params, sizeof params, "%%0: %s[5,6,35] \"x\"", y);
      snprintf(body, sizeof body,
               "%%1 = reduce(%%0) {dimensions=[2], reducer=%s} : %s[5,6]\n"
               "%%2 = reduce(%%0) {dimensions=[0], reducer=%s} : %s[6,35]\n"
               "%%3 = reduce(%%0) {dimensions=[0,1,2], reducer=%s} : %s[]\n"
               "%%4 = reduce(%%0) {dimensions=[0,2], reducer=%s} : %s[6]\n"
               "%%5 = cumulative(%%0) {dimension=2, reducer=%s, exclusive=false, backward=false} : %s[5,6,35]\n"
               "%%6 = cumulative(%%0) {dimension=1, reducer=%s, exclusive=true, backward=true} : %s[5,6,35]\n",
               f, y, f, y, f, y, f, y, f, y, f, y);
      check_body(params, body, "%1 \"a\", %2 \"b\", %3 \"c\", %4 \"d\", %5 \"e\", %6 \"f\"",
                 strcmp(y, "f16") == 0 ? 5e-3
                 : y[0] == 'f'         ? 2e-6
                                       : 0,
                 0.8, 1.2);
    }
  }
}
END_TEST

START_TEST(arg_reductions) {
  check_body("%0: f32[5,6,35] \"x\"",
             "%1 = arg-reduce(%0) {dimension=2, largest=true, last=false} : s64[5,6]\n"
             "%2 = arg-reduce(%0) {dimension=0, largest=false, last=true} : s64[6,35]",
             "%1 \"a\", %2 \"b\"", 0, -1, 1);
  check_body("%0: s32[5,6,35] \"x\"",
             "%1 = arg-reduce(%0) {dimension=2, largest=true, last=true} : s64[5,6]\n"
             "%2 = arg-reduce(%0) {dimension=1, largest=false, last=false} : s64[5,35]",
             "%1 \"a\", %2 \"b\"", 0, -1, 1);
}
END_TEST

/* Rows and columns with infinities and NaN, whose first one is wanted, and of nothing but the least or the largest
 * value. */
START_TEST(arg_reductions_of_special_values) {
  static const char *const types[] = {"f32", "f64", "f16", "s8", "u8"};
  for (size_t k = 0; k < 4 * sizeof types / sizeof *types; k++) {
    const char *t = types[k / 4], *largest = k % 2 ? "true" : "false", *last = k / 2 % 2 ? "true" : "false";
    char body[1600], lines[900] = "";
    for (int j = 0; j < 3; j++) {
      size_t n = strlen(lines);
      snprintf(lines + n, sizeof lines - n,
               "%%%d = convert(%%%d) {saturate=true, rounding=nearest} : %s[9,67]\n"
               "%%%d = arg-reduce(%%%d) {dimension=1, largest=%s, last=%s} : s64[9]\n"
               "%%%d = arg-reduce(%%%d) {dimension=0, largest=%s, last=%s} : s64[67]\n",
               10 + 3 * j, 4 + 2 * j, t, 11 + 3 * j, 10 + 3 * j, largest, last, 12 + 3 * j, 10 + 3 * j, largest, last);
    }
    snprintf(body, sizeof body,
             "%%2 = round-nearest-even(%%0) : f32[9,67]\n%%3 = round-nearest-even(%%1) : f32[9,67]\n"
             "%%4 = divide(%%2, %%3) : f32[9,67]\n%%5 = constant() {value=f32[] inf} : f32[]\n"
             "%%6 = broadcast(%%5) {dimensions=[]} : f32[9,67]\n%%7 = negate(%%2) : f32[9,67]\n"
             "%%8 = negate(%%6) : f32[9,67]\n%s",
             lines);
    check_body("%0: f32[9,67] \"x\", %1: f32[9,67] \"y\"", body,
               "%11 \"a\", %12 \"b\", %14 \"c\", %15 \"d\", %17 \"e\", %18 \"f\"", 0, -4, 4);
  }
}
END_TEST

START_TEST(windows) {
  check_body("%0: f32[1,3,11,13] \"x\"",
             "%1 = reduce-window(%0) {window=[1,1,3,3], strides=[1,1,2,2], low=[0,0,1,1], high=[0,0,1,1], "
             "rhs_dilation=[1,1,1,1], reducer=maximum} : f32[1,3,6,7]\n"
             "%2 = reduce-window(%0) {window=[1,1,2,3], strides=[1,1,1,1], low=[0,0,0,1], high=[0,0,1,1], "
             "rhs_dilation=[1,1,2,1], reducer=add} : f32[1,3,10,13]\n"
             "%3 = arg-reduce-window(%0) {window=[1,1,3,3], strides=[1,1,2,2], low=[0,0,0,0], high=[0,0,0,0], "
             "rhs_dilation=[1,1,1,1]} : s64[1,3,5,6]",
             "%1 \"a\", %2 \"b\", %3 \"c\"", 1e-6, -1, 1);
}
END_TEST

/* Windows that slide along rows (emit/kernel/pooling.c), by the sizes and the geometry of the last three dimensions.
 * There is one more dimension outside of them. */
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
    {{1, 2, 5003}, {1, 1, 4}, {1, 1, 2}, {0, 0, 3}, {0, 0, 2}, {1, 1, 3}}, /* rows that are divided into blocks */
    {{1, 1, 3001}, {1, 1, 7}, {1, 1, 1}, {0, 0, 0}, {0, 0, 6}, {1, 1, 1}},
};

static void three(char *out, const int64_t *v, int64_t first) {
  sprintf(out, "[%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "]", first, v[0], v[1], v[2]);
}

/* Writes the text of a reduce-window of the value `of`, an array of 2 x g->n elements, to `out`, and the shape of its
 * result to `dims`. */
static void sliding_text(char *out, char *dims, const sliding *g, const char *of, const char *reducer,
                         const char *type) {
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
  sprintf(out, "reduce-window(%s) {window=%s, strides=%s, low=%s, high=%s, rhs_dilation=%s, reducer=%s} : %s%s", of,
          window, strides, low, high, holes, reducer, type, dims);
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

/* The windows slide over quotients of -1, -0, 0 and 1: NaN, infinities and zeros of both signs.  The product %7 may be
 * written over one of its operands. */
START_TEST(sliding_windows_of_special_values) {
  const sliding *g = &slidings[_i];
  static const char *const types[] = {"f32", "f64", "f16", "bf16"};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    char n[100], params[400], dims[100], low[500], high[500], body[3000];
    three(n, g->n, 2);
    sliding_text(low, dims, g, "%4", "minimum", types[t]);
    sliding_text(high, dims, g, "%4", "maximum", types[t]);
    snprintf(params, sizeof params, "%%0: %s%s \"x\", %%1: %s%s \"y\", %%9: %s%s \"z\"", types[t], n, types[t], n,
             types[t], dims);
    snprintf(body, sizeof body,
             "%%2 = round-nearest-even(%%0) : %s%s\n%%3 = round-nearest-even(%%1) : %s%s\n"
             "%%4 = divide(%%2, %%3) : %s%s\n%%5 = %s\n%%6 = %s\n"
             "%%7 = multiply(%%6, %%9) : %s%s",
             types[t], n, types[t], n, types[t], n, low, high, types[t], dims);
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
             "%%4, %%5 = sort(%%0, %%1) {dimension=0, descending=true} : %s[3,50,2], s32[3,50,2]",
             types[t], types[t]);
    check_body(params, body, "%2 \"a\", %3 \"b\", %4 \"c\", %5 \"d\"", 0, -5, 5);
  }
}
END_TEST

/* Sorts of which only the first few elements are read, with their positions: of lines with many equal elements and with
 * few, and with NaN. */
START_TEST(first_few) {
  static const char *const types[] = {"f32", "f64", "f16", "s32", "s64", "u8"};
  static const int wanted[] = {1, 5, 16, 40, 200, 1500, 4900};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
      char params[200], body[1500], cut[200];
      const char *type = types[t];
      int n = wanted[k], down = k % 2;
      snprintf(params, sizeof params, "%%0: %s[2,5000] \"x\", %%9: %s[5000,2] \"y\"", type, type);
      snprintf(cut, sizeof cut, "starts=[0,0], limits=[2,%d], strides=[1,1]} : ", n);
      snprintf(body, sizeof body,
               "%%1 = %s(%%0) : %s[2,5000]\n%%2 = iota() {dimension=1} : s64[2,5000]\n"
               "%%3, %%4 = sort(%%1, %%2) {dimension=1, descending=%s} : %s[2,5000], s64[2,5000]\n"
               "%%5 = slice(%%3) {%s%s[2,%d]\n%%6 = slice(%%4) {%ss64[2,%d]\n"
               "%%7 = sort(%%9) {dimension=0, descending=%s} : %s[5000,2]\n"
               "%%8 = slice(%%7) {starts=[0,0], limits=[%d,2], strides=[1,1]} : %s[%d,2]",
               t < 3 ? "sqrt" : "abs", type, down ? "true" : "false", type, cut, type, n, cut, n,
               down ? "false" : "true", type, n, type, n);
      check_body(params, body, "%5 \"a\", %6 \"b\", %8 \"c\"", 0, k < 3 ? -0.01 : -3, 3000);
    }
  }
}
END_TEST

/* Many scores are equal.  Boxes whose upper ends are below their lower ends overlap nothing. */
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

/* `form` has the types of both operands, the attributes, and the type of the result.  Sums of integers must be
 * exact. */
static void check_contraction(const char *op, const char *const *form) {
  double tolerance = strncmp(form[0], "f16", 3) == 0 ? 2e-3 : form[0][0] == 'f' ? 2e-6 : 0;
  char params[200], body[600];
  snprintf(params, sizeof params, "%%0: %s \"x\", %%1: %s \"y\"", form[0], form[1]);
  snprintf(body, sizeof body, "%%2 = %s(%%0, %%1) %s : %s", op, form[2], form[3]);
  check_body(params, body, "%2 \"z\"", tolerance, -1, 1);
}

START_TEST(dots) {
  static const char *const forms[][4] = {{"f32[7,19]", "f32[19,23]", MATMUL, "f32[7,23]"},
                                         {"f32[65,70]", "f32[130,70]", DOT_OF("", "", "1", "1"), "f32[65,130]"},
                                         {"f32[70,65]", "f32[70,130]", DOT_OF("", "", "0", "0"), "f32[65,130]"},
                                         {"f32[3,65,70]", "f32[3,70,33]", DOT_OF("0", "0", "2", "1"), "f32[3,65,33]"},
                                         {"f32[65,3,70]", "f32[33,3,70]", DOT_OF("1", "1", "2", "2"), "f32[3,65,33]"},
                                         {"f32[1,300]", "f32[300,90]", MATMUL, "f32[1,90]"},
                                         {"f32[300]", "f32[300,90]", DOT_OF("", "", "0", "0"), "f32[90]"},
                                         {"f32[4,50,70]", "f32[70,33]", DOT_OF("", "", "2", "0"), "f32[4,50,33]"},
                                         {"f64[7,19]", "f64[19,23]", MATMUL, "f64[7,23]"},
                                         {"s32[7,19]", "s32[19,23]", MATMUL, "s32[7,23]"},
                                         {"f16[33,19]", "f16[19,23]", MATMUL, "f16[33,23]"},
                                         {"u8[33,70]", "s8[70,23]", MATMUL, "s32[33,23]"},
                                         {"s8[33,70]", "s8[70,64]", MATMUL, "s32[33,64]"},
                                         {"s8[33,70]", "u8[70,64]", MATMUL, "s32[33,64]"}};
  for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
    check_contraction("dot", forms[k]);
  }
}
END_TEST

START_TEST(convolutions) {
  static const char *const forms[][4] = {
      {"f32[1,3,20,21]", "f32[16,3,3,3]", CONV_FIRST("2,2", "1,1", "1,1", "1,1", "1,1", "1"), "f32[1,16,10,11]"},
      {"f32[1,20,21,3]", "f32[16,3,3,3]", CONV_LAST("2,2", "1,1", "1,1", "1,1", "1,1", "1"), "f32[1,10,11,16]"},
      {"f32[2,20,21,24]", "f32[24,1,3,3]", CONV_LAST("1,1", "1,1", "1,1", "1,1", "1,1", "24"), "f32[2,20,21,24]"},
      {"f32[1,16,9,9]", "f32[40,8,1,1]", CONV_FIRST("1,1", "0,0", "0,0", "1,1", "1,1", "2"), "f32[1,40,9,9]"},
      {"f32[1,8,50]", "f32[24,8,5]", CONV_FIRST("1", "2", "2", "1", "2", "1"), "f32[1,24,46]"},
      {"f32[1,6,7,8,9]", "f32[10,6,2,3,2]", CONV_FIRST("1,2,1", "0,1,0", "1,0,1", "1,1,1", "1,1,1", "1"),
       "f32[1,10,7,4,9]"},
      {"f32[1,8,9,9]", "f32[12,8,4,4]", CONV_FIRST("1,1", "2,2", "2,2", "2,2", "1,1", "1"), "f32[1,12,18,18]"},
      {"f64[1,4,9,9]", "f64[6,4,3,3]", CONV_FIRST("1,1", "1,1", "1,1", "1,1", "1,1", "1"), "f64[1,6,9,9]"},
      {"u8[1,9,9,24]", "s8[40,24,3,3]", CONV_LAST("1,1", "1,1", "1,1", "1,1", "1,1", "1"), "s32[1,9,9,40]"},
      {"s8[1,9,9,24]", "s8[24,1,3,3]", CONV_LAST("2,2", "1,1", "1,1", "1,1", "1,1", "24"), "s32[1,5,5,24]"}};
  for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
    check_contraction("convolution", forms[k]);
  }
}
END_TEST

/* Convolutions with zeros between the operand's elements (lhs_dilation): kernels that are shorter than the distance of
 * elements, as long or longer, pads of either sign, results whose length is not a multiple of the distance, several
 * dimensions and distances, and weights that are no constants. */
START_TEST(spread_convolutions) {
  static const char *const forms[][4] = {
      {"f32[1,9,11,8]", "f32[6,8,2,2]", CONV_LAST("1,1", "1,1", "1,1", "2,2", "1,1", "1"), "f32[1,18,22,6]"},
      {"f32[2,7,9,5]", "f32[7,5,3,3]", CONV_LAST("1,1", "1,1", "2,2", "2,2", "1,1", "1"), "f32[2,14,18,7]"},
      {"f32[1,7,9,5]", "f32[7,5,4,4]", CONV_LAST("1,1", "2,2", "2,2", "2,2", "1,1", "1"), "f32[1,14,18,7]"},
      {"f32[1,6,5,4]", "f32[3,4,5,3]", CONV_LAST("1,1", "3,1", "4,0", "3,2", "1,1", "1"), "f32[1,19,8,3]"},
      {"f32[1,6,5,4]", "f32[3,4,2,1]", CONV_LAST("1,1", "1,0", "3,2", "3,3", "1,1", "1"), "f32[1,19,15,3]"},
      {"f32[1,8,8,4]", "f32[3,4,3,3]", CONV_LAST("1,1", "-1,-2", "-2,1", "2,2", "1,1", "1"), "f32[1,10,12,3]"},
      {"f32[1,8,6,4]", "f32[3,4,3,2]", CONV_LAST("1,1", "1,0", "1,1", "1,2", "1,1", "1"), "f32[1,8,11,3]"},
      {"f32[1,8,6,4]", "f32[3,4,3,2]", CONV_LAST("1,1", "1,0", "1,1", "2,2", "2,1", "1"), "f32[1,13,11,3]"},
      {"f32[1,30,4]", "f32[3,4,16]", CONV_LAST("1", "11", "11", "8", "1", "1"), "f32[1,240,3]"},
      {"f32[1,3,4,5,4]", "f32[3,4,2,2,2]", CONV_LAST("1,1,1", "1,1,1", "1,1,1", "2,2,2", "1,1,1", "1"),
       "f32[1,6,8,10,3]"}};
  for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
    check_contraction("convolution", forms[k]);
  }
}
END_TEST

/* --- control --- */

START_TEST(control) {
  check_text(
      "onnx-xla hlo 1\nmodule \"t\" {\n"
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

int main(void) {
  TCase *t = tcase_create("operations");
  tcase_set_timeout(t, 60); /* the machine may be busy */
  tcase_add_test(t, exact_unary_floats);
  tcase_add_test(t, transcendental_functions);
  tcase_add_test(t, binary_floats);
  tcase_add_test(t, integers);
  tcase_add_test(t, comparisons_and_selections);
  tcase_add_test(t, conversions);
  tcase_add_test(t, random_bits);
  tcase_add_test(t, run_seeds);
  tcase_add_test(t, movement);
  tcase_add_test(t, padding);
  tcase_add_test(t, updates_at_constant_places);
  tcase_add_test(t, empty_arrays);
  tcase_add_test(t, dynamic_slices);
  tcase_add_test(t, gather_and_scatter);
  tcase_add_test(t, reductions);
  tcase_add_test(t, arg_reductions);
  tcase_add_test(t, arg_reductions_of_special_values);
  tcase_add_test(t, windows);
  tcase_add_loop_test(t, sliding_windows, 0, sizeof slidings / sizeof *slidings);
  tcase_add_loop_test(t, sliding_windows_of_special_values, 0, sizeof slidings / sizeof *slidings);
  tcase_add_test(t, sorting);
  tcase_add_test(t, first_few);
  tcase_add_test(t, suppression);
  tcase_add_test(t, dots);
  tcase_add_test(t, convolutions);
  tcase_add_test(t, spread_convolutions);
  tcase_add_test(t, control);
  return run_suite("operations", t);
}
