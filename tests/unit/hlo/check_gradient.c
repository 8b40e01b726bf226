/* check_gradient.c - compares every rule of differentiation with central differences, which do not depend on the
 * rules.
 *
 * A row is a computation of f64.  Its results are multiplied by random weights and summed; the derivative of this sum
 * f by every element of every f64 parameter is compared with (f(x + h) - f(x - h)) / 2h, where the reference evaluator
 * computes f.  With h = 1e-5 that quotient differs from the derivative by h^2/6 times the third derivative, and by the
 * rounding of f divided by h: 1e-11 times numbers of one or two digits each.  The tolerance of 1e-8 (relative for
 * numbers above 1) leaves a factor of 100.  Second derivatives are tested in the same way, from the derivative
 * multiplied by random weights. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "hlo/gradient/gradient.h"
#include "hlo/text/text.h"
#include "hlo/text/verify.h"
#include "tests/suite.h"

static const double STEP = 1e-5, TOLERANCE = 1e-8;

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

typedef struct row {
  const char *name, *params, *body; /* as in HLO text */
  double low, high;                 /* of the parameters; both 0: -2 to 2 */
  const char *callees;
} row;

#define ONE(op) \
  { .name = op, "%x: f64[2,3]", "%y = " op "(%x) : f64[2,3] return %y" }
#define ONE_IN(op, low, high) \
  { .name = op, "%x: f64[2,3]", "%y = " op "(%x) : f64[2,3] return %y", low, high }
#define TWO(op) \
  { .name = op, "%a: f64[2,3], %b: f64[2,3]", "%y = " op "(%a, %b) : f64[2,3] return %y" }
#define TWO_IN(op, low, high) \
  { .name = op, "%a: f64[2,3], %b: f64[2,3]", "%y = " op "(%a, %b) : f64[2,3] return %y", low, high }
#define GATHER_DIMS \
  "offset_dims=[1], collapsed_dims=[0], operand_batch=[], indices_batch=[], index_map=[0], index_vector_dim=1"
#define SCATTER(reducer)                                                                   \
  {                                                                                        \
    .name = "scatter " reducer, "%x: f64[4,2], %u: f64[5,2]",                              \
    "%i = constant() {value=s64[5] {1, 3, 1, 7, -1}} : s64[5] "                            \
    "%y = scatter(%x, %i, %u) {" GATHER_DIMS ", reducer=" reducer "} : f64[4,2] return %y" \
  }
#define REDUCE(reducer)                                                          \
  {                                                                              \
    .name = "reduce " reducer, "%x: f64[2,3,2]",                                 \
    "%y = reduce(%x) {dimensions=[0,2], reducer=" reducer "} : f64[3] return %y" \
  }
#define WINDOW(reducer)                                                                                          \
  {                                                                                                              \
    .name = "reduce-window " reducer, "%x: f64[1,5,6]",                                                          \
    "%y = reduce-window(%x) {window=[1,2,3], strides=[1,2,1], low=[0,1,1], high=[0,0,2], rhs_dilation=[1,2,1], " \
    "reducer=" reducer "} : f64[1,2,7] return %y"                                                                \
  }
#define CUMULATIVE(reducer, exclusive, backward)                                                         \
  {                                                                                                      \
    .name = "cumulative " reducer " " exclusive " " backward, "%x: f64[2,4,2]",                          \
    "%y = cumulative(%x) {dimension=1, reducer=" reducer ", exclusive=" exclusive ", backward=" backward \
    "} : f64[2,4,2] return %y"                                                                           \
  }
#define CONV(title, x, kernel, attrs, y) \
  { .name = "convolution " title, "%x: " x ", %k: " kernel, "%y = convolution(%x, %k) {" attrs "} : " y " return %y" }

#define COUNT(name, more, bound)                                                    \
  "computation " name "(%i: s64[], " more ") { %n = constant() {value=s64[] " bound \
  "} : s64[] "                                                                      \
  "%p = compare(%i, %n) {comparison=lt} : pred[] return %p }\n"
#define NEXT "%one = constant() {value=s64[] 1} : s64[] %j = add(%i, %one) : s64[]"

static const row rows[] = {
    ONE("abs"),
    ONE("negate"),
    ONE("sign"),
    ONE("ceil"),
    ONE("floor"),
    ONE("round-nearest-even"),
    ONE_IN("sqrt", 0.5, 3),
    ONE_IN("rsqrt", 0.5, 3),
    ONE("exponential"),
    ONE("exponential-minus-one"),
    ONE_IN("log", 0.5, 3),
    ONE_IN("log-plus-one", -0.5, 3),
    ONE("sine"),
    ONE("cosine"),
    ONE_IN("tan", -1, 1),
    ONE_IN("asin", -0.8, 0.8),
    ONE_IN("acos", -0.8, 0.8),
    ONE("atan"),
    ONE("sinh"),
    ONE("cosh"),
    ONE("tanh"),
    ONE("asinh"),
    ONE_IN("acosh", 1.5, 4),
    ONE_IN("atanh", -0.8, 0.8),
    ONE("erf"),
    ONE("logistic"),
    TWO("add"),
    TWO("subtract"),
    TWO("multiply"),
    TWO_IN("divide", 0.5, 3),
    TWO_IN("remainder", 0.7, 3),
    TWO_IN("power", 0.5, 2),
    TWO("atan2"),
    TWO("maximum"),
    TWO("minimum"),
    {.name = "squares", "%x: f64[2,3]", "%y = multiply(%x, %x) : f64[2,3] return %y"},
    {.name = "power 2",
     "%x: f64[3]",
     "%c = constant() {value=f64[3] {2, 2, 2}} : f64[3] %y = power(%x, %c) : f64[3] return %y"},
    {.name = "power 3",
     "%x: f64[3]",
     "%c = constant() {value=f64[3] {3, 3, 3}} : f64[3] %y = power(%x, %c) : f64[3] return %y"},
    {.name = "power 0.5",
     "%x: f64[3]",
     "%c = constant() {value=f64[3] {0.5, 0.5, 0.5}} : f64[3] %y = power(%x, %c) : f64[3] return %y",
     0.5,
     3},
    {.name = "power mixed",
     "%x: f64[3]",
     "%c = constant() {value=f64[3] {0, 1, 2}} : f64[3] %y = power(%x, %c) : f64[3] return %y"},
    {.name = "convert",
     "%x: f64[2,3]",
     "%h = convert(%x) {saturate=true, rounding=nearest} : s64[2,3] "
     "%g = convert(%h) {saturate=true, rounding=nearest} : f64[2,3] %y = multiply(%x, %g) : f64[2,3] return %y"},
    {.name = "select",
     "%a: f64[2,3], %b: f64[2,3]",
     "%p = compare(%a, %b) {comparison=lt} : pred[2,3] %c = multiply(%a, %b) : f64[2,3] "
     "%y = select(%p, %c, %b) : f64[2,3] return %y"},
    {.name = "clamp", "%a: f64[], %x: f64[4,3], %b: f64[]", "%y = clamp(%a, %x, %b) : f64[4,3] return %y"},
    {.name = "clamp arrays", "%a: f64[4,3], %x: f64[4,3], %b: f64[4,3]", "%y = clamp(%a, %x, %b) : f64[4,3] return %y"},

    {.name = "copy", "%x: f64[2,3]", "%y = copy(%x) : f64[2,3] return %y"},
    {.name = "broadcast", "%x: f64[2,1,3]", "%y = broadcast(%x) {dimensions=[0,2,3]} : f64[2,4,5,3] return %y"},
    {.name = "broadcast of 1", "%x: f64[1,2]", "%y = broadcast(%x) {dimensions=[0,1]} : f64[1,2] return %y"},
    {.name = "reshape", "%x: f64[2,3]", "%y = reshape(%x) : f64[3,2] return %y"},
    {.name = "transpose", "%x: f64[2,3,4]", "%y = transpose(%x) {permutation=[2,0,1]} : f64[4,2,3] return %y"},
    {.name = "reverse", "%x: f64[2,3]", "%y = reverse(%x) {dimensions=[1]} : f64[2,3] return %y"},
    {.name = "slice",
     "%x: f64[5,7]",
     "%y = slice(%x) {starts=[1,0], limits=[4,6], strides=[1,4]} : f64[3,2] return %y"},
    {.name = "pad",
     "%x: f64[3,4], %v: f64[]",
     "%y = pad(%x, %v) {low=[1,-1], high=[-1,2], interior=[1,0]} : f64[5,5] return %y"},
    {.name = "concatenate",
     "%a: f64[2,3], %b: f64[2,1]",
     "%y = concatenate(%a, %b, %a) {dimension=1} : f64[2,7] return %y"},
    {.name = "dynamic-slice",
     "%x: f64[4,5]",
     "%s = constant() {value=s64[2] {1, 4}} : s64[2] "
     "%y = dynamic-slice(%x, %s) {sizes=[2,3]} : f64[2,3] return %y"},
    {.name = "two slices",
     "%x: f64[4,5]",
     "%s = constant() {value=s64[2] {1, 4}} : s64[2] %t = constant() {value=s64[2] {2, 0}} : s64[2] "
     "%a = dynamic-slice(%x, %s) {sizes=[2,3]} : f64[2,3] %b = dynamic-slice(%x, %t) {sizes=[2,3]} : f64[2,3] "
     "%y = multiply(%a, %b) : f64[2,3] return %x, %y"},
    {.name = "dynamic-update-slice",
     "%x: f64[4,5], %u: f64[2,3]",
     "%s = constant() {value=s64[2] {1, 4}} : s64[2] "
     "%y = dynamic-update-slice(%x, %u, %s) : f64[4,5] return %y"},
    {.name = "gather",
     "%x: f64[4,3]",
     "%i = constant() {value=s64[5] {1, 3, 1, 9, -2}} : s64[5] "
     "%y = gather(%x, %i) {" GATHER_DIMS ", sizes=[1,3]} : f64[5,3] return %y"},
    {.name = "two gathers",
     "%x: f64[4,3]",
     "%i = constant() {value=s64[3] {1, 3, 1}} : s64[3] "
     "%a = gather(%x, %i) {" GATHER_DIMS ", sizes=[1,3]} : f64[3,3] %b = gather(%x, %i) {" GATHER_DIMS
     ", sizes=[1,3]} : f64[3,3] "
     "%y = multiply(%a, %b) : f64[3,3] return %y, %x"},
    {.name = "gather of windows",
     "%x: f64[4,5,3]",
     "%i = constant() {value=s32[2,2] {1, 3, 2, 9}} : s32[2,2] "
     "%y = gather(%x, %i) {offset_dims=[0,2], collapsed_dims=[0], operand_batch=[], indices_batch=[], index_map=[2,0], "
     "index_vector_dim=0, sizes=[1,4,2]} : f64[4,2,2] return %y"},
    {.name = "gather of a batch",
     "%x: f64[2,4,3]",
     "%i = constant() {value=s64[2,2] {1, 3, 0, 0}} : s64[2,2] "
     "%y = gather(%x, %i) {offset_dims=[2], collapsed_dims=[1], operand_batch=[0], indices_batch=[0], index_map=[1], "
     "index_vector_dim=2, sizes=[1,1,3]} : f64[2,2,3] return %y"},
    SCATTER("add"),
    SCATTER("maximum"),
    SCATTER("minimum"),
    SCATTER("replace"),
    {.name = "scatter multiply",
     "%x: f64[4,2]",
     "%i = constant() {value=s64[3] {1, 3, 1}} : s64[3] "
     "%u = constant() {value=f64[3,2] {2, 3, 4, 5, 6, 0}} : f64[3,2] "
     "%y = scatter(%x, %i, %u) {" GATHER_DIMS ", reducer=multiply} : f64[4,2] return %y"},
    {.name = "sort",
     "%x: f64[3,5], %z: f64[3,5]",
     "%y, %w = sort(%x, %z) {dimension=1, descending=true} : f64[3,5], f64[3,5] return %y, %w"},
    {.name = "sort of one", "%x: f64[5,2]", "%y = sort(%x) {dimension=0, descending=false} : f64[5,2] return %y"},

    REDUCE("add"),
    REDUCE("multiply"),
    REDUCE("maximum"),
    REDUCE("minimum"),
    WINDOW("add"),
    WINDOW("maximum"),
    WINDOW("minimum"),
    CUMULATIVE("add", "false", "false"),
    CUMULATIVE("add", "true", "true"),
    CUMULATIVE("multiply", "false", "false"),
    CUMULATIVE("multiply", "true", "false"),
    CUMULATIVE("multiply", "false", "true"),
    CUMULATIVE("multiply", "true", "true"),
    {.name = "dot",
     "%a: f64[3,4], %b: f64[4,2]",
     "%y = dot(%a, %b) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} "
     ": f64[3,2] return %y"},
    {.name = "dot of a batch",
     "%a: f64[3,2,4,5,2], %b: f64[2,5,3,4,2]",
     "%y = dot(%a, %b) {lhs_batch=[4,1], rhs_batch=[4,0], lhs_contract=[3,2], rhs_contract=[1,3]} : f64[2,2,3,3] "
     "return %y"},
    {.name = "dot of all",
     "%a: f64[3,4]",
     "%y = dot(%a, %a) {lhs_batch=[], rhs_batch=[], lhs_contract=[0,1], rhs_contract=[0,1]} "
     ": f64[] return %y"},
    CONV(
        "plain", "f64[2,3,5,4]", "f64[4,3,3,2]",
        "strides=[1,1], low=[1,0], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=1, layout=channels-first",
        "f64[2,4,5,4]"),
    CONV("of everything", "f64[2,4,5,6]", "f64[6,2,3,2]",
         "strides=[2,3], low=[2,-1], high=[1,3], lhs_dilation=[2,1], rhs_dilation=[1,3], groups=2, "
         "layout=channels-first",
         "f64[2,6,5,2]"),
    CONV("depthwise, channels last", "f64[2,6,3]", "f64[6,1,2]",
         "strides=[2], low=[0], high=[1], lhs_dilation=[1], rhs_dilation=[2], groups=3, layout=channels-last",
         "f64[2,3,6]"),
    CONV("channels last", "f64[1,4,5,2]", "f64[3,2,2,3]",
         "strides=[1,2], low=[1,1], high=[0,1], lhs_dilation=[1,1], rhs_dilation=[1,1], groups=1, layout=channels-last",
         "f64[1,4,3,3]"),
    CONV("of points", "f64[2,3]", "f64[4,3]",
         "strides=[], low=[], high=[], lhs_dilation=[], rhs_dilation=[], groups=1, layout=channels-first", "f64[2,4]"),

    {.name = "conditional",
     "%a: f64[3], %b: f64[3]",
     "%n = constant() {value=s32[] 1} : s32[] %y, %z = conditional(%n, %a, %b) {computations=[first, second]} : "
     "f64[3], f64[] "
     "return %y, %z",
     .callees = "computation first(%a: f64[3], %b: f64[3]) { %s = reduce(%b) {dimensions=[0], reducer=add} : f64[] "
                "return %a, %s }\n"
                "computation second(%a: f64[3], %b: f64[3]) { %y = multiply(%a, %b) : f64[3] "
                "%s = reduce(%a) {dimensions=[0], reducer=multiply} : f64[] return %y, %s }\n"},
    {.name = "while",
     "%x: f64[3], %w: f64[3]",
     "%i = constant() {value=s64[] 2} : s64[] %j, %y, %v = while(%i, %x, %w) {computations=[below_6, sines]} : s64[], "
     "f64[3], f64[3] "
     "return %y, %v",
     .callees = COUNT("below_6", "%x: f64[3], %w: f64[3]",
                      "6") "computation sines(%i: s64[], %x: f64[3], %w: f64[3]) { %s = sine(%x) : f64[3] %y = "
                           "multiply(%s, %w) : f64[3] " NEXT " return %j, %y, %w }\n"},
    {.name = "while over rows",
     "%x: f64[5,2], %h: f64[2]",
     "%i = constant() {value=s64[] 0} : s64[] %o = constant() {value=f64[5,2] splat 0} : f64[5,2] "
     "%j, %v, %y, %z = while(%i, %x, %h, %o) {computations=[below_5, step]} : s64[], f64[5,2], f64[2], f64[5,2] return "
     "%y, %z",
     .callees =
         COUNT("below_5", "%x: f64[5,2], %h: f64[2], %o: f64[5,2]",
               "5") "computation step(%i: s64[], %x: f64[5,2], %h: f64[2], %o: f64[5,2]) { %k = reshape(%i) : s64[1] "
                    "%n = constant() {value=s64[1] {0}} : s64[1] %s = concatenate(%k, %n) {dimension=0} : s64[2] "
                    "%r = dynamic-slice(%x, %s) {sizes=[1,2]} : f64[1,2] %q = reshape(%r) : f64[2] %m = multiply(%q, "
                    "%h) : f64[2] "
                    "%g = tanh(%m) : f64[2] %t = add(%g, %q) : f64[2] %u = reshape(%t) : f64[1,2] "
                    "%p = dynamic-update-slice(%o, %u, %s) : f64[5,2] " NEXT " return %j, %x, %t, %p }\n"},
    {.name = "shared",
     "%x: f64[3]",
     "%e = exponential(%x) : f64[3] %s = multiply(%e, %x) : f64[3] %t = add(%s, %e) : f64[3] "
     "%u = tanh(%t) : f64[3] return %u, %s, %x"},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

/* --- random numbers --- */

static uint64_t state;

static double between(double low, double high) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return low + (high - low) * (double)(state >> 11) / 9007199254740992.0;
}

static literal random_like(const shape *s, double low, double high) {
  void *data;
  literal l = literal_new(memory, *s, &data);
  for (int64_t k = 0; k < shape_elements(s); k++) {
    ((double *)data)[k] = between(low, high);
  }
  return l;
}

/* --- functions of one number: the results' weighted sum --- */

static hlo_computation *parse(const row *r) {
  const char *text = arena_printf(memory, "onnx-xla hlo 1\nmodule \"m\" {\n%sentry main(%s) {\n%s\n}\n}\n",
                                  r->callees ? r->callees : "", r->params, r->body);
  hlo_module *m = NULL;
  status s = hlo_parse(memory, text, strlen(text), NULL, &m);
  ck_assert_msg(!s, "%s: %s", r->name, status_message(s));
  return m->entry;
}

static double weighted(const hlo_computation *c, const literal *args, const literal *weights) {
  literal *out = ARENA_NEW_N(memory, literal, c->n_roots);
  double sum = 0;
  status s = ref_eval_computation(c, args, memory, out);
  ck_assert_msg(!s, "%s", status_message(s));
  for (uint32_t k = 0; k < c->n_roots; k++) {
    for (int64_t e = 0; e < shape_elements(&out[k].shape); e++) {
      sum += literal_f64(&out[k], e) * literal_f64(&weights[k], e);
    }
  }
  return sum;
}

static literal *weights_of(const hlo_computation *c) {
  literal *w = ARENA_NEW_N(memory, literal, c->n_roots);
  for (uint32_t k = 0; k < c->n_roots; k++) {
    w[k] = random_like(hlo_shape(c->roots[k]), 0.5, 2);
  }
  return w;
}

/* Replaces the results of c by the derivatives of their weighted sum by all parameters. */
static void differentiate(const char *name, hlo_computation *c, const literal *weights) {
  hlo_builder b = hlo_builder_make(c);
  hlo_value *dys = ARENA_NEW_N(memory, hlo_value, c->n_roots), *xs = ARENA_NEW_N(memory, hlo_value, c->n_params),
            *dxs = ARENA_NEW_N(memory, hlo_value, c->n_params);
  for (uint32_t k = 0; k < c->n_roots; k++) {
    dys[k] = hlo_constant(&b, weights[k]);
  }
  for (uint32_t k = 0; k < c->n_params; k++) {
    xs[k] = hlo_result(c->params[k], 0);
  }
  hlo_gradients(&b, c->n_roots, c->roots, dys, c->n_params, xs, dxs);
  for (uint32_t k = 0; k < c->n_params; k++) {
    dxs[k] = dxs[k].def ? dxs[k] : hlo_like(&b, xs[k], 0);
  }
  ck_assert_msg(!b.error, "%s: %s", name, status_message(b.error));
  hlo_set_roots(c, c->n_params, dxs);
  hlo_module_clean(c->module);
  c->module->param_names = ARENA_NEW_N(memory, const char *, c->n_params);
  c->module->result_names = ARENA_NEW_N(memory, const char *, c->n_params);
  for (uint32_t k = 0; k < c->n_params; k++) {
    c->module->param_names[k] = c->module->result_names[k] = arena_printf(memory, "v%u", k);
  }
  status s = hlo_verify(c->module);
  ck_assert_msg(!s, "%s: %s", name, status_message(s));
}

/* Compares the derivatives that `gradient` computes with central differences of the weighted sum of c's
 * results. */
static void compare(const char *name, const hlo_computation *c, const literal *weights, const hlo_computation *gradient,
                    literal *args) {
  literal *out = ARENA_NEW_N(memory, literal, gradient->n_roots);
  status s = ref_eval_computation(gradient, args, memory, out);
  ck_assert_msg(!s, "%s: %s", name, status_message(s));
  for (uint32_t p = 0; p < c->n_params; p++) {
    double *x = (double *)args[p].data;
    for (int64_t e = 0; e < shape_elements(&args[p].shape); e++) {
      double at = x[e], is = literal_f64(&out[p], e);
      x[e] = at + STEP;
      double above = weighted(c, args, weights);
      x[e] = at - STEP;
      double expected = (above - weighted(c, args, weights)) / (2 * STEP);
      x[e] = at;
      ck_assert_msg(fabs(is - expected) <= TOLERANCE * fmax(1, fabs(expected)),
                    "%s: by element %d of parameter %u: %.12g, not %.12g", name, (int)e, p, is, expected);
    }
  }
}

START_TEST(derivatives) {
  const row *r = &rows[_i];
  state = (uint64_t)_i + 1;
  double low = r->low == r->high ? -2 : r->low, high = r->low == r->high ? 2 : r->high;
  hlo_computation *plain = parse(r), *first = parse(r), *second = parse(r);
  literal *args = ARENA_NEW_N(memory, literal, plain->n_params), *weights = weights_of(plain);
  for (uint32_t p = 0; p < plain->n_params; p++) {
    args[p] = random_like(hlo_shape(hlo_result(plain->params[p], 0)), low, high);
  }
  differentiate(r->name, first, weights);
  compare(r->name, plain, weights, first, args);
  differentiate(r->name, second, weights);
  literal *more = weights_of(second);
  differentiate(r->name, second, more);
  compare(arena_printf(memory, "%s, twice", r->name), first, more, second, args);
}
END_TEST

/* Every operation that can be differentiated occurs in a row, so that every rule is tested. */
START_TEST(every_rule) {
  bool seen[HLO_OP_COUNT] = {[HLO_COMPOSITE] = true};
  for (int k = 0; k < N_ROWS; k++) {
    const hlo_module *m = parse(&rows[k])->module;
    for (const hlo_instr *i = m->entry->first; i; i = i->next) {
      seen[i->op] = true;
    }
  }
  for (int op = 0; op < HLO_OP_COUNT; op++) {
    ck_assert_msg(seen[op] || !hlo_has_gradient((hlo_op)op), "no row has %s", hlo_op_get_info((hlo_op)op)->name);
  }
}
END_TEST

/* --- where the derivative jumps, or is infinite: by hand, as gradient.h says --- */

typedef struct point {
  const char *name, *body; /* of %a: f64[4], %b: f64[4] */
  double a[4], b[4], da[4], db[4];
} point;

#define INF HUGE_VAL
static const point points[] = {
    {.name = "a tie of two",
     "%y = maximum(%a, %b) : f64[4] return %y",
     {1, 2, 3, 4},
     {1, 3, 3, 3},
     {0.5, 0, 0.5, 1},
     {0.5, 1, 0.5, 0}},
    {.name = "relu",
     "%z = constant() {value=f64[4] {0, 0, 0, 0}} : f64[4] %y = maximum(%a, %z) : f64[4] return %y",
     {-1, 0, 1, 2},
     {0},
     {0, 0, 1, 1},
     {0}},
    {.name = "a tie of three",
     "%s = reduce(%a) {dimensions=[0], reducer=maximum} : f64[] return %s",
     {5, 1, 5, 5},
     {0},
     {1 / 3.0, 0, 1 / 3.0, 1 / 3.0},
     {0}},
    {.name = "a window's tie",
     "%s = reduce-window(%a) {window=[4], strides=[1], low=[0], high=[0], rhs_dilation=[1], reducer=maximum} "
     ": f64[1] return %s",
     {1, 5, 5, 2},
     {0},
     {0, 1, 0, 0},
     {0}},
    {.name = "clamp at its ends",
     "%l = constant() {value=f64[] 0} : f64[] %h = constant() {value=f64[] 6} : f64[] "
     "%y = clamp(%l, %a, %h) : f64[4] return %y",
     {0, 1, 6, 7},
     {0},
     {0, 1, 0, 0},
     {0}},
    {.name = "abs at 0", "%y = abs(%a) : f64[4] return %y", {-1, 0, 2, 0}, {0}, {-1, 0, 1, 0}, {0}},
    {.name = "a zero in a product",
     "%s = reduce(%a) {dimensions=[0], reducer=multiply} : f64[] return %s",
     {2, 0, 3, 4},
     {0},
     {0, 24, 0, 0},
     {0}},
    {.name = "power at 0",
     "%y = power(%a, %b) : f64[4] return %y",
     {0, 0, 0, 2},
     {0, 1, 2, 0},
     {0, 1, 0, 0},
     {0, 0, 0, 0.69314718055994530942}},
    {.name = "hidden by a select: exp",
     "%e = exponential-minus-one(%a) : f64[4] %p = compare(%a, %b) {comparison=lt} : pred[4] "
     "%y = select(%p, %e, %a) : f64[4] return %y",
     {1000, 2, 3, 1e300},
     {0},
     {1, 1, 1, 1},
     {0}},
    {.name = "hidden by a select: sqrt, log, divide",
     "%s = sqrt(%a) : f64[4] %l = log(%s) : f64[4] %d = divide(%b, %l) : f64[4] "
     "%p = compare(%a, %a) {comparison=ne} : pred[4] %y = select(%p, %d, %a) : f64[4] return %y",
     {0, 0, 1, 1},
     {0},
     {1, 1, 1, 1},
     {0}},
};

/* A loop that may end before its last iteration can be differentiated only once: the loop that computes the derivatives
 * makes as many iterations as the loop itself has made. */
static const row ending = {.name = "a loop that ends",
                           "%x: f64[]",
                           "%i = constant() {value=s64[] 0} : s64[] %j, %y = while(%i, %x) {computations=[small, "
                           "square]} : s64[], f64[] return %y",
                           1.5,
                           1.6,
                           "computation small(%i: s64[], %x: f64[]) { %n = constant() {value=s64[] 50} : s64[] %b = "
                           "constant() {value=f64[] 100} : f64[] "
                           "%p = compare(%i, %n) {comparison=lt} : pred[] %q = compare(%x, %b) {comparison=lt} : "
                           "pred[] %r = and(%p, %q) : pred[] return %r }\n"
                           "computation square(%i: s64[], %x: f64[]) { %y = multiply(%x, %x) : f64[] " NEXT
                           " return %j, %y }\n"};

/* The first of the squares 1.5^2, 1.5^4, ... above 100 is 1.5^16, so the derivative is 16 x^15. */
START_TEST(ending_loop) {
  hlo_computation *c = parse(&ending);
  double x = 1.5;
  literal arg = literal_make(shape_scalar(DTYPE_F64), &x), one = literal_scalar_f64(memory, DTYPE_F64, 1), out;
  differentiate(ending.name, c, &one);
  status s = ref_eval_computation(c, &arg, memory, &out);
  ck_assert_msg(!s, "%s", status_message(s));
  ck_assert_double_eq_tol(literal_f64(&out, 0), 16 * pow(1.5, 15), 1e-9);
}
END_TEST

START_TEST(jumps) {
  const point *p = &points[_i];
  const row r = {.name = p->name, .params = "%a: f64[4], %b: f64[4]", .body = p->body};
  hlo_computation *c = parse(&r);
  literal args[2], out[2], *ones = ARENA_NEW_N(memory, literal, c->n_roots);
  const double *from[] = {p->a, p->b}, *expected[] = {p->da, p->db};
  for (uint32_t k = 0; k < c->n_roots; k++) {
    ones[k] = random_like(hlo_shape(c->roots[k]), 1, 1);
  }
  for (int k = 0; k < 2; k++) {
    args[k] = literal_make(*hlo_shape(hlo_result(c->params[k], 0)), from[k]);
  }
  differentiate(p->name, c, ones);
  status s = ref_eval_computation(c, args, memory, out);
  ck_assert_msg(!s, "%s: %s", p->name, status_message(s));
  for (int k = 0; k < 2; k++) {
    for (int e = 0; e < 4; e++) {
      double is = literal_f64(&out[k], e);
      ck_assert_msg(fabs(is - expected[k][e]) <= 1e-15, "%s: parameter %d, element %d: %g, not %g", p->name, k, e, is,
                    expected[k][e]);
    }
  }
}
END_TEST

/* --- what is refused --- */

static const row refused[] = {
    {.name = "\"\" cannot be differentiated: reduce-window: products of windows",
     "%x: f64[4]",
     "%y = reduce-window(%x) {window=[2], strides=[1], low=[0], high=[0], rhs_dilation=[1], reducer=multiply} : f64[3] "
     "return %y"},
    {.name = "\"\" cannot be differentiated: cumulative: a running maximum or minimum",
     "%x: f64[4]",
     "%y = cumulative(%x) {dimension=0, reducer=maximum, exclusive=false, backward=false} : f64[4] return %y"},
    {.name = "\"\" cannot be differentiated: real: complex numbers",
     "%x: f64[4]",
     "%z = complex(%x, %x) : c128[4] %y = real(%z) : f64[4] return %y"},
    /* The result depends on x only through a complex number that the loop carries. */
    {"\"\" cannot be differentiated: while: complex numbers", "%x: f64[3]",
     "%i = constant() {value=s64[] 0} : s64[] %o = constant() {value=f64[3] splat 0} : f64[3] %z = complex(%o, %o) : "
     "c128[3] "
     "%j, %y, %c, %r = while(%i, %x, %z, %o) {computations=[below_6, sums]} : s64[], f64[3], c128[3], f64[3] return %r",
     .callees =
         COUNT("below_6", "%x: f64[3], %z: c128[3], %o: f64[3]",
               "6") "computation sums(%i: s64[], %x: f64[3], %z: c128[3], %o: f64[3]) { %a = complex(%x, %x) : "
                    "c128[3] %s = add(%z, %a) : c128[3] %r = abs(%z) : f64[3] " NEXT " return %j, %x, %s, %r }\n"},
    {"\"\" cannot be differentiated: while: a loop is differentiated only if it counts its steps from a constant up to "
     "a constant",
     "%x: f64[]", "%y = while(%x) {computations=[small, square]} : f64[] return %y",
     .callees = "computation small(%x: f64[]) { %b = constant() {value=f64[] 100} : f64[] "
                "%p = compare(%x, %b) {comparison=lt} : pred[] return %p }\n"
                "computation square(%x: f64[]) { %y = multiply(%x, %x) : f64[] return %y }\n"},
};

START_TEST(refusals) {
  hlo_computation *c = parse(&refused[_i]);
  hlo_builder b = hlo_builder_make(c);
  hlo_value dy = hlo_like(&b, c->roots[0], 1), x = hlo_result(c->params[0], 0), dx;
  hlo_gradients(&b, 1, c->roots, &dy, 1, &x, &dx);
  ck_assert_ptr_nonnull(b.error);
  ck_assert_str_eq(status_message(b.error), refused[_i].name);
  status_free(hlo_builder_take_error(&b));
}
END_TEST

int main(void) {
  TCase *tc = tcase_create("gradient");
  tcase_add_checked_fixture(tc, setup, teardown);
  tcase_add_loop_test(tc, derivatives, 0, N_ROWS);
  tcase_add_test(tc, every_rule);
  tcase_add_test(tc, ending_loop);
  tcase_add_loop_test(tc, jumps, 0, (int)(sizeof points / sizeof *points));
  tcase_add_loop_test(tc, refusals, 0, (int)(sizeof refused / sizeof *refused));
  return run_suite("gradient", tc);
}
