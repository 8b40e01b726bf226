/* check_attention.c - attention in the forms in which models write it, on the reference evaluator and on the cpu target
 * at all widths.  It must be fused where a test says so, its results may differ only as sums in another order do, and
 * they must have the same bits for any number of threads.  Operands that are repeated are tested in every spelling, for
 * several batches and numbers of rows. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "hlo/text/text.h"
#include "tests/suite.h"
#include "tests/target/two_targets.h"

/* The largest error, relative to the largest result.  Results are sums of up to 1000 weighted values.  The weights have
 * the error of exp, 1.1 ULP, and that of the rounded scores: what a score of up to 10 is off by is the relative error
 * of its exponential. */
static const double tolerance = 1e-5;

typedef struct row {
  const char *name;
  bool fused;
  const char *params, *body, *result;
} row;

/* The softmax %p of %x, whose shape is `full`, along dimension `last`.  `kept` is the shape of a number for each row,
 * and `dims` lists the dimensions other than `last`. */
#define SOFTMAX(full, kept, last, dims)                                                           \
  "%m = reduce(%x) {dimensions=[" last "], reducer=maximum} : " kept                              \
  "\n"                                                                                            \
  "%mb = broadcast(%m) {dimensions=" dims "} : " full "\n%d = subtract(%x, %mb) : " full          \
  "\n"                                                                                            \
  "%e = exponential(%d) : " full "\n%s = reduce(%e) {dimensions=[" last "], reducer=add} : " kept \
  "\n%sb = broadcast(%s) {dimensions=" dims "} : " full "\n%p = divide(%e, %sb) : " full "\n"

#define HALF "%h = constant() {value=f32[] 0.25} : f32[]\n"

static const row forms_of_it[] = {
    {"heads of a projection, scaled and masked, turned back", true,
     "%q: f32[2,24,3,16] \"q\", %k: f32[2,24,3,16] \"k\", %v: f32[2,24,3,16] \"v\", %mask: f32[24] \"mask\"",
     "%qk = dot(%q, %k) {lhs_batch=[0,2], rhs_batch=[0,2], lhs_contract=[3], rhs_contract=[3]} : f32[2,3,24,24]\n" HALF
     "%hb = broadcast(%h) {dimensions=[]} : f32[2,3,24,24]\n%scaled = multiply(%qk, %hb) : f32[2,3,24,24]\n"
     "%maskb = broadcast(%mask) {dimensions=[3]} : f32[2,3,24,24]\n%x = add(%scaled, %maskb) : "
     "f32[2,3,24,24]\n" SOFTMAX("f32[2,3,24,24]", "f32[2,3,24]", "3",
                                "[0,1,2]") "%pv = dot(%p, %v) {lhs_batch=[0,1], rhs_batch=[0,2], lhs_contract=[3], "
                                           "rhs_contract=[1]} : f32[2,3,24,16]\n"
                                           "%y = transpose(%pv) {permutation=[0,2,1,3]} : f32[2,24,3,16]\n",
     "%y"},
    {"slices of one projection, a bias a head, a mask a window", true,
     "%qkv: f32[4,49,288] \"qkv\", %bias: f32[3,49,49] \"bias\", %mask: f32[4,49,49] \"mask\"",
     "%all = reshape(%qkv) : f32[4,49,3,3,32]\n"
     "%q1 = slice(%all) {starts=[0,0,0,0,0], limits=[4,49,1,3,32], strides=[1,1,1,1,1]} : f32[4,49,1,3,32]\n"
     "%k1 = slice(%all) {starts=[0,0,1,0,0], limits=[4,49,2,3,32], strides=[1,1,1,1,1]} : f32[4,49,1,3,32]\n"
     "%v1 = slice(%all) {starts=[0,0,2,0,0], limits=[4,49,3,3,32], strides=[1,1,1,1,1]} : f32[4,49,1,3,32]\n"
     "%q = reshape(%q1) : f32[4,49,3,32]\n%k = reshape(%k1) : f32[4,49,3,32]\n%v = reshape(%v1) : f32[4,49,3,32]\n"
     "%qk = dot(%q, %k) {lhs_batch=[0,2], rhs_batch=[0,2], lhs_contract=[3], rhs_contract=[3]} : f32[4,3,49,49]\n"
     "%bb = broadcast(%bias) {dimensions=[1,2,3]} : f32[4,3,49,49]\n%y = add(%qk, %bb) : f32[4,3,49,49]\n"
     "%y5 = reshape(%y) : f32[1,4,3,49,49]\n%mb5 = broadcast(%mask) {dimensions=[1,3,4]} : f32[1,4,3,49,49]\n"
     "%z = add(%y5, %mb5) : f32[1,4,3,49,49]\n%x = reshape(%z) : f32[4,3,49,49]\n" SOFTMAX(
         "f32[4,3,49,49]", "f32[4,3,49]", "3", "[0,1,2]") "%pv = dot(%p, %v) {lhs_batch=[0,1], rhs_batch=[0,2], "
                                                          "lhs_contract=[3], rhs_contract=[1]} : f32[4,3,49,32]\n",
     "%pv"},
    {"causal, keys side by side, values of twenty elements", true,
     "%q: f32[3,37,20] \"q\", %k: f32[3,20,37] \"k\", %v: f32[3,37,20] \"v\"",
     "%qk = dot(%q, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]} : f32[3,37,37]\n"
     "%i = iota() {dimension=1} : s32[3,37,37]\n%j = iota() {dimension=2} : s32[3,37,37]\n"
     "%seen = compare(%i, %j) {comparison=ge} : pred[3,37,37]\n%low = constant() {value=f32[] -inf} : f32[]\n"
     "%lowb = broadcast(%low) {dimensions=[]} : f32[3,37,37]\n%x = select(%seen, %qk, %lowb) : f32[3,37,37]\n" SOFTMAX(
         "f32[3,37,37]", "f32[3,37]", "2", "[0,1]") "%pv = dot(%p, %v) {lhs_batch=[0], rhs_batch=[0], "
                                                    "lhs_contract=[2], rhs_contract=[1]} : f32[3,37,20]\n",
     "%pv"},
    {"few keys, no batch", true, "%q: f32[8,24] \"q\", %k: f32[9,24] \"k\", %v: f32[9,64] \"v\"",
     "%x = dot(%q, %k) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]} : f32[8,9]\n" SOFTMAX(
         "f32[8,9]", "f32[8]", "1",
         "[0]") "%pv = dot(%p, %v) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[8,64]\n",
     "%pv"},
    {"q and k scaled, as the operator does it", true,
     "%q0: f32[2,16,24] \"q\", %k0: f32[2,30,24] \"k\", %v: f32[2,30,16] \"v\"",
     HALF
     "%hq = broadcast(%h) {dimensions=[]} : f32[2,16,24]\n%q = multiply(%q0, %hq) : f32[2,16,24]\n"
     "%hk = broadcast(%h) {dimensions=[]} : f32[2,30,24]\n%k = multiply(%hk, %k0) : f32[2,30,24]\n"
     "%x = dot(%q, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]} : f32[2,16,30]\n" SOFTMAX(
         "f32[2,16,30]", "f32[2,16]", "2", "[0,1]") "%pv = dot(%p, %v) {lhs_batch=[0], rhs_batch=[0], "
                                                    "lhs_contract=[2], rhs_contract=[1]} : f32[2,16,16]\n",
     "%pv"},
    {"many keys", true, "%q: f32[2,19,16] \"q\", %k: f32[2,1000,16] \"k\", %v: f32[2,1000,48] \"v\"",
     "%x = dot(%q, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]} : f32[2,19,1000]\n" SOFTMAX(
         "f32[2,19,1000]", "f32[2,19]", "2", "[0,1]") "%pv = dot(%p, %v) {lhs_batch=[0], rhs_batch=[0], "
                                                      "lhs_contract=[2], rhs_contract=[1]} : f32[2,19,48]\n",
     "%pv"},
    {"rows without any key: a maximum and a total that are looked at, scores that are bent", true,
     "%q: f32[2,11,16] \"q\", %k: f32[2,13,16] \"k\", %v: f32[2,13,16] \"v\", %on: pred[2,11,1] \"on\"",
     "%qk = dot(%q, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]} : f32[2,11,13]\n"
     "%t = tanh(%qk) : f32[2,11,13]\n%on2 = reshape(%on) : pred[2,11]\n%onb = broadcast(%on2) {dimensions=[0,1]} : "
     "pred[2,11,13]\n"
     "%low = constant() {value=f32[] -inf} : f32[]\n%lowb = broadcast(%low) {dimensions=[]} : f32[2,11,13]\n"
     "%x = select(%onb, %t, %lowb) : f32[2,11,13]\n"
     "%m0 = reduce(%x) {dimensions=[2], reducer=maximum} : f32[2,11]\n%lowk = broadcast(%low) {dimensions=[]} : "
     "f32[2,11]\n"
     "%none = compare(%m0, %lowk) {comparison=eq} : pred[2,11]\n%c0 = constant() {value=f32[] 0} : f32[]\n"
     "%zero = broadcast(%c0) {dimensions=[]} : f32[2,11]\n%m = select(%none, %zero, %m0) : f32[2,11]\n"
     "%mb = broadcast(%m) {dimensions=[0,1]} : f32[2,11,13]\n%d = subtract(%x, %mb) : f32[2,11,13]\n"
     "%e = exponential(%d) : f32[2,11,13]\n%s0 = reduce(%e) {dimensions=[2], reducer=add} : f32[2,11]\n"
     "%c1 = constant() {value=f32[] 1} : f32[]\n%one = broadcast(%c1) {dimensions=[]} : f32[2,11]\n"
     "%empty = compare(%s0, %zero) {comparison=eq} : pred[2,11]\n%s = select(%empty, %one, %s0) : f32[2,11]\n"
     "%sb = broadcast(%s) {dimensions=[0,1]} : f32[2,11,13]\n%p = divide(%e, %sb) : f32[2,11,13]\n"
     "%pv = dot(%p, %v) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]} : f32[2,11,16]\n",
     "%pv"},
    {"rows without any key: not a number", true,
     "%q: f32[9,16] \"q\", %k: f32[17,16] \"k\", %v: f32[17,16] \"v\", %on: pred[9] \"on\"",
     "%qk = dot(%q, %k) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]} : f32[9,17]\n"
     "%onb = broadcast(%on) {dimensions=[0]} : pred[9,17]\n%low = constant() {value=f32[] -inf} : f32[]\n"
     "%lowb = broadcast(%low) {dimensions=[]} : f32[9,17]\n%x = select(%onb, %qk, %lowb) : f32[9,17]\n" SOFTMAX(
         "f32[9,17]", "f32[9]", "1",
         "[0]") "%pv = dot(%p, %v) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[9,16]\n",
     "%pv"},
    {"rows without any key: 0 in place of NaN", true,
     "%q: f32[9,16] \"q\", %k: f32[17,16] \"k\", %v: f32[17,16] \"v\", %on: pred[9] \"on\"",
     "%qk = dot(%q, %k) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]} : f32[9,17]\n"
     "%onb = broadcast(%on) {dimensions=[0]} : pred[9,17]\n%low = constant() {value=f32[] -inf} : f32[]\n"
     "%lowb = broadcast(%low) {dimensions=[]} : f32[9,17]\n%x = select(%onb, %qk, %lowb) : f32[9,17]\n" SOFTMAX(
         "f32[9,17]", "f32[9]", "1",
         "[0]") "%isnan = compare(%p, %p) {comparison=ne} : pred[9,17]\n%c0 = "
                "constant() {value=f32[] 0} : f32[]\n%zero = broadcast(%c0) {dimensions=[]} : f32[9,17]\n"
                "%weights = select(%isnan, %zero, %p) : f32[9,17]\n"
                "%pv = dot(%weights, %v) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : "
                "f32[9,16]\n",
     "%pv"},
    {"four rows", false, "%q: f32[2,4,16] \"q\", %k: f32[2,32,16] \"k\", %v: f32[2,32,16] \"v\"",
     "%x = dot(%q, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]} : f32[2,4,32]\n" SOFTMAX(
         "f32[2,4,32]", "f32[2,4]", "2", "[0,1]") "%pv = dot(%p, %v) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], "
                                                  "rhs_contract=[1]} : f32[2,4,16]\n",
     "%pv"},
    {"f64", false, "%q: f64[16,16] \"q\", %k: f64[16,16] \"k\", %v: f64[16,16] \"v\"",
     "%x = dot(%q, %k) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]} : f64[16,16]\n" SOFTMAX(
         "f64[16,16]", "f64[16]", "1",
         "[0]") "%pv = dot(%p, %v) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f64[16,16]\n",
     "%pv"},
    {"weights that are a result too", false, "%q: f32[16,16] \"q\", %k: f32[16,16] \"k\", %v: f32[16,16] \"v\"",
     "%x = dot(%q, %k) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]} : f32[16,16]\n" SOFTMAX(
         "f32[16,16]", "f32[16]", "1",
         "[0]") "%pv = dot(%p, %v) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[16,16]\n",
     "%pv \"pv\", %p"},
    {"softmax over the queries", false, "%q: f32[16,16] \"q\", %k: f32[16,16] \"k\", %v: f32[16,16] \"v\"",
     "%x = dot(%q, %k) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]} : f32[16,16]\n" SOFTMAX(
         "f32[16,16]", "f32[16]", "0",
         "[1]") "%pv = dot(%p, %v) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[16,16]\n",
     "%pv"},
};

/* --- operands that are repeated --- */

enum { KEYS = 11, WIDTH = 16, GROUP = 3, ANY_FUSION = -1 };

/* How an operand gets its heads. */
typedef enum source {
  PLAIN,    /* the parameter has all heads */
  GROUPED,  /* the parameter has one head for GROUP heads; it is unsqueezed, expanded and reshaped */
  ONE_HEAD, /* the parameter has one head, which is expanded */
  MADE,     /* no parameter: an iota */
  SPLAT     /* no parameter: one number in all elements */
} source;

typedef struct spelling {
  const char *name;
  source q, k, v;
  bool same;    /* whether k is also v */
  bool windows; /* whether q is repeated for GROUP windows, which are part of the batch */
  bool mask;    /* whether there is a mask for each batch, expanded to all heads */
} spelling;

static const spelling spellings[] = {
    {.name = "keys and values of grouped heads", .k = GROUPED, .v = GROUPED},
    {.name = "keys alone of grouped heads", .k = GROUPED},
    {.name = "values alone of grouped heads", .v = GROUPED},
    {.name = "keys and values of one head", .k = ONE_HEAD, .v = ONE_HEAD},
    {.name = "values of one head", .v = ONE_HEAD},
    {.name = "queries of one head", .q = ONE_HEAD},
    {.name = "queries of grouped heads", .q = GROUPED},
    {.name = "all of grouped heads, masked", .q = GROUPED, .k = GROUPED, .v = GROUPED, .mask = true},
    {.name = "keys that are the values, of grouped heads", .k = GROUPED, .v = GROUPED, .same = true},
    {.name = "queries of windows", .windows = true},
    {.name = "queries of windows, keys and values of grouped heads", .windows = true, .k = GROUPED, .v = GROUPED},
    {.name = "queries of windows, masked", .windows = true, .mask = true},
    {.name = "a mask", .mask = true},
    {.name = "keys that are counted", .k = MADE},
    {.name = "values that are counted", .v = MADE},
    {.name = "queries that are a number", .q = SPLAT},
    {.name = "keys that are a number", .k = SPLAT},
    {.name = "values that are a number", .v = SPLAT},
};

typedef struct sizes {
  int batch, rows, heads;
} sizes;

static const sizes grid[] = {{1, 1, 2}, {1, 7, 2}, {1, 8, 2}, {1, 9, 1}, {1, 33, 2}, {2, 1, 1},
                             {2, 8, 2}, {2, 9, 2}, {3, 7, 2}, {3, 8, 1}, {3, 33, 2}};

typedef struct written {
  const char *params, *body;
} written;

/* Adds the operand %name: f32[batch, heads, rows, WIDTH].  The values from which it is computed are %name0, %name1 and
 * so on. */
static void add_operand(arena *a, written *t, const char *name, source from, int batch, int heads, int rows) {
  const char *n = name, *comma = *t->params ? ", " : "";
  int few = from == ONE_HEAD ? 1 : heads / GROUP;
  switch (from) {
    case PLAIN:
      t->params = arena_printf(a, "%s%s%%%s: f32[%d,%d,%d,16] \"%s\"", t->params, comma, n, batch, heads, rows, n);
      break;
    case GROUPED:
      t->params = arena_printf(a, "%s%s%%%s0: f32[%d,%d,%d,16] \"%s\"", t->params, comma, n, batch, few, rows, n);
      t->body = arena_printf(a,
                             "%s%%%s1 = reshape(%%%s0) : f32[%d,%d,1,%d,16]\n"
                             "%%%s2 = broadcast(%%%s1) {dimensions=[0,1,2,3,4]} : f32[%d,%d,3,%d,16]\n"
                             "%%%s = reshape(%%%s2) : f32[%d,%d,%d,16]\n",
                             t->body, n, n, batch, few, rows, n, n, batch, few, rows, n, n, batch, heads, rows);
      break;
    case ONE_HEAD:
      t->params = arena_printf(a, "%s%s%%%s0: f32[%d,1,%d,16] \"%s\"", t->params, comma, n, batch, rows, n);
      t->body = arena_printf(a, "%s%%%s = broadcast(%%%s0) {dimensions=[0,1,2,3]} : f32[%d,%d,%d,16]\n", t->body, n, n,
                             batch, heads, rows);
      break;
    case MADE:
      t->body = arena_printf(a,
                             "%s%%%s0 = iota() {dimension=0} : f32[16,%d,%d,%d]\n%%%s = transpose(%%%s0) "
                             "{permutation=[2,3,1,0]} : f32[%d,%d,%d,16]\n",
                             t->body, n, rows, batch, heads, n, n, batch, heads, rows);
      break;
    case SPLAT:
      t->body =
          arena_printf(a,
                       "%s%%%s0 = constant() {value=f32[] 0.5} : f32[]\n%%%s1 = broadcast(%%%s0) {dimensions=[]} : "
                       "f32[%d,%d,%d]\n%%%s = reshape(%%%s1) : f32[%d,%d,%d,16]\n",
                       t->body, n, n, n, batch, heads, rows * 16, n, n, batch, heads, rows);
      break;
  }
}

/* Adds %q: f32[batch * GROUP, heads, rows, WIDTH], which repeats %q0 for each window. */
static void add_windows(arena *a, written *t, int batch, int heads, int rows) {
  t->params = arena_printf(a, "%%q0: f32[%d,%d,%d,16] \"q\"", batch, heads, rows);
  t->body = arena_printf(a,
                         "%%q1 = broadcast(%%q0) {dimensions=[0,2,3,4]} : f32[%d,3,%d,%d,16]\n"
                         "%%q = reshape(%%q1) : f32[%d,%d,%d,16]\n",
                         batch, heads, rows, batch * GROUP, heads, rows);
}

static const char *repeated(arena *a, const spelling *s, const sizes *z) {
  written t = {"", ""};
  int batch = s->windows ? z->batch * GROUP : z->batch, heads = z->heads * GROUP;
  if (s->windows) {
    add_windows(a, &t, z->batch, heads, z->rows);
  } else {
    add_operand(a, &t, "q", s->q, batch, heads, z->rows);
  }
  add_operand(a, &t, "k", s->k, batch, heads, KEYS);
  if (!s->same) {
    add_operand(a, &t, "v", s->v, batch, heads, KEYS);
  }
  const char *full = arena_printf(a, "f32[%d,%d,%d,%d]", batch, heads, z->rows, KEYS);
  const char *kept = arena_printf(a, "f32[%d,%d,%d]", batch, heads, z->rows);
  if (s->mask) {
    t.params = arena_printf(a, "%s, %%mask: f32[%d,1,%d,%d] \"mask\"", t.params, batch, z->rows, KEYS);
    t.body = arena_printf(a, "%s%%maskb = broadcast(%%mask) {dimensions=[0,1,2,3]} : %s\n", t.body, full);
  }
  const char *how = "lhs_batch=[0,1], rhs_batch=[0,1], lhs_contract=[3], rhs_contract=";
  t.body = arena_printf(a, "%s%%qk = dot(%%q, %%k) {%s[3]} : %s\n%%x = add(%%qk, %%%s) : %s\n", t.body, how, full,
                        s->mask ? "maskb" : "qk", full);
  t.body = arena_printf(a,
                        "%s%%m = reduce(%%x) {dimensions=[3], reducer=maximum} : %s\n"
                        "%%mb = broadcast(%%m) {dimensions=[0,1,2]} : %s\n%%d = subtract(%%x, %%mb) : %s\n"
                        "%%e = exponential(%%d) : %s\n%%s = reduce(%%e) {dimensions=[3], reducer=add} : %s\n"
                        "%%sb = broadcast(%%s) {dimensions=[0,1,2]} : %s\n%%p = divide(%%e, %%sb) : %s\n",
                        t.body, kept, full, full, full, kept, full, full);
  return arena_printf(a,
                      "onnx-xla hlo 1\nmodule \"t\" {\nentry main(%s) {\n%s%%y = dot(%%p, %%%s) {%s[2]} : "
                      "f32[%d,%d,%d,16]\nreturn %%y \"y\"\n}\n}\n",
                      t.params, t.body, s->same ? "k" : "v", how, batch, heads, z->rows);
}

/* --- fusions of kind attention that the text already has, whose keys are computed in the fusion --- */

static const char *const inner_keys[] = {
    "%k0 = iota() {dimension=1} : f32[1,11,16]\n%k = broadcast(%k0) {dimensions=[0,1,2]} : f32[2,11,16]\n",
    "%k0 = iota() {dimension=1} : f32[2,1,11,16]\n%k = reshape(%k0) : f32[2,11,16]\n",
    "%n = negate(%p1) : f32[2,11,16]\n%k = reshape(%n) : f32[2,11,16]\n",
};

static const char *fusion_with(arena *a, const char *keys) {
  return arena_printf(
      a,
      "onnx-xla hlo 1\nmodule \"t\" {\ncomputation fused(%%p0: f32[2,9,16], %%p1: f32[2,11,16]) {\n%s"
      "%%x = dot(%%p0, %%k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]} : f32[2,9,11]\n"
      "%s%%y = dot(%%p, %%p1) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]} : f32[2,9,16]\n"
      "return %%y\n}\nentry main(%%q: f32[2,9,16] \"q\", %%v: f32[2,11,16] \"v\") {\n"
      "%%y = fusion(%%q, %%v) {kind=attention, computations=[fused]} : f32[2,9,16]\nreturn %%y \"y\"\n}\n}\n",
      keys, SOFTMAX("f32[2,9,11]", "f32[2,9]", "2", "[0,1]"));
}

/* --- running them --- */

typedef struct trial {
  const char *name;
  const char *(*write)(arena *a, const struct trial *t);
  const row *row;
  const spelling *spelling;
  const sizes *sizes;
  const char *keys;
  int fused;     /* true, false or ANY_FUSION */
  bool is_fused; /* whether the last program had an attention fusion */
  variant v;
  char message[400];
} trial;

static const char *text_of_row(arena *a, const trial *t) {
  const row *r = t->row;
  return arena_printf(a, "onnx-xla hlo 1\nmodule \"t\" {\nentry main(%s) {\n%sreturn %s \"y\"\n}\n}\n", r->params,
                      r->body, r->result);
}

static const char *text_of_fusion(arena *a, const trial *t) { return fusion_with(a, t->keys); }
static const char *text_of_spelling(arena *a, const trial *t) { return repeated(a, t->spelling, t->sizes); }

static literal seeded(arena *a, const shape *s, uint64_t *state) {
  void *data;
  literal l = literal_new(a, *s, &data);
  for (int64_t k = 0; k < shape_elements(s); k++) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    double unit = (double)(*state >> 11) * 0x1p-53;
    void *at = (char *)data + (size_t)k * dtype_bytes((dtype)s->type);
    if (s->type == DTYPE_PRED) {
      *(uint8_t *)at = unit < 0.6;
    } else {
      dtype_store_f64((dtype)s->type, at, 4 * unit - 2, true, DTYPE_ROUND_NEAREST);
    }
  }
  return l;
}

static void compare(trial *t, const literal *want, const literal *got) {
  double most = 0;
  int64_t n = shape_elements(&want->shape);
  for (int64_t k = 0; k < n; k++) {
    double x = fabs(literal_f64(want, k));
    most = isfinite(x) && x > most ? x : most;
  }
  for (int64_t k = 0; k < n && !*t->message; k++) {
    double x = literal_f64(want, k), y = literal_f64(got, k);
    if (!(isnan(x) && isnan(y)) && !(fabs(x - y) <= tolerance * most)) {
      snprintf(t->message, sizeof t->message, "%s, %s: element %lld is %.9g, not %.9g", t->name, t->v.name,
               (long long)k, y, x);
    }
  }
}

static bool has_attention(const hlo_module *m) {
  for (const hlo_instr *i = m->entry->first; i; i = i->next) {
    if (i->op == HLO_FUSION && hlo_int(i, HLO_ATTR_FUSION) == HLO_FUSION_ATTENTION) {
      return true;
    }
  }
  return false;
}

static status run(trial *t, arena *a, const char *text, const literal *in, uint32_t threads, literal *out) {
  hlo_module *m;
  variant v = t->v;
  v.threads = threads;
  TRY(hlo_parse(a, text, strlen(text), NULL, &m)); /* parsed for each run, since compiling changes a module */
  TRY(run_on_cpu(a, m, &v, in, out));
  t->is_fused = has_attention(m);
  if (t->fused != ANY_FUSION && t->is_fused != t->fused) {
    snprintf(t->message, sizeof t->message, "%s, %s: %sfused", t->name, t->v.name, t->fused ? "not " : "");
  }
  return NULL;
}

static status try_it(void *data) {
  trial *t = data;
  arena *a = arena_create(NULL);
  const char *text = t->write(a, t);
  hlo_module *m;
  status s = hlo_parse(a, text, strlen(text), NULL, &m);
  literal in[4], want[2], one[2], three[2];
  uint64_t state = 7;
  for (uint32_t k = 0; !s && k < m->entry->n_params; k++) {
    in[k] = seeded(a, hlo_shape(hlo_result(m->entry->params[k], 0)), &state);
  }
  s = s ? s : ref_eval_computation(m->entry, in, a, want);
  s = s ? s : run(t, a, text, in, 1, one);
  s = s ? s : run(t, a, text, in, 3, three);
  for (uint32_t k = 0; !s && k < m->entry->n_roots; k++) {
    compare(t, &want[k], &one[k]);
    compare(t, &want[k], &three[k]);
  }
  /* Products without the fusion may get another algorithm where there are more threads, unless the program is
   * deterministic. */
  bool again = t->v.deterministic = !t->is_fused;
  s = s || !again ? s : run(t, a, text, in, 1, one);
  s = s || !again ? s : run(t, a, text, in, 3, three);
  for (uint32_t k = 0; !s && k < m->entry->n_roots; k++) {
    if (!literal_equal(&one[k], &three[k])) {
      snprintf(t->message, sizeof t->message, "%s, %s: other bits with three threads", t->name, t->v.name);
    }
  }
  arena_destroy(a);
  return s;
}

static void run_trial(trial *t) {
  status s = guard_run(try_it, t);
  ck_assert_msg(!s, "%s, %s: %s", t->name, t->v.name, status_message(s));
  ck_assert_msg(!*t->message, "%s", t->message);
}

START_TEST(forms) {
  trial t = {
      .name = forms_of_it[_i].name, .write = text_of_row, .row = &forms_of_it[_i], .fused = forms_of_it[_i].fused};
  for (size_t v = 0; v < N_VARIANTS; v++) {
    t.v = variants[v];
    run_trial(&t);
  }
}
END_TEST

/* Returns true or false if this attention must or must not be fused, or ANY_FUSION if both are right.  Heads that share
 * keys and values become rows of one head, and the kernel needs at least eight rows. */
static int is_fused(const spelling *s, const sizes *z) {
  bool shares = s->q == PLAIN && s->k == GROUPED && s->v == GROUPED && !s->same && !s->windows;
  return shares ? z->rows * GROUP >= 8 : ANY_FUSION;
}

/* Runs each case on one variant of the processor; the variants take turns. */
START_TEST(repeated_operands) {
  for (size_t k = 0; k < sizeof grid / sizeof *grid; k++) {
    char name[160];
    snprintf(name, sizeof name, "%s, batch %d, %d rows, %d groups", spellings[_i].name, grid[k].batch, grid[k].rows,
             grid[k].heads);
    trial t = {.name = name,
               .write = text_of_spelling,
               .spelling = &spellings[_i],
               .sizes = &grid[k],
               .fused = is_fused(&spellings[_i], &grid[k]),
               .v = variants[(k + (size_t)_i) % N_VARIANTS]};
    run_trial(&t);
  }
}
END_TEST

START_TEST(given_fusions) {
  trial t = {
      .name = "a fusion", .write = text_of_fusion, .keys = inner_keys[_i], .fused = ANY_FUSION, .v = variants[0]};
  run_trial(&t);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("forms");
  tcase_set_timeout(c, 120);
  tcase_add_loop_test(c, forms, 0, sizeof forms_of_it / sizeof *forms_of_it);
  tcase_add_loop_test(c, repeated_operands, 0, sizeof spellings / sizeof *spellings);
  tcase_add_loop_test(c, given_fusions, 0, sizeof inner_keys / sizeof *inner_keys);
  return run_suite("attention", c);
}
