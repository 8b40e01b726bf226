/* check_attention: attention in the forms in which models spell it, on the reference evaluator and on the cpu target at all
 * widths: fused where it should be, the same within what sums in another order differ by, the same bits for any threads. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "hlo/text.h"
#include "tests/suite.h"
#include "tests/target/two_targets.h"

/* Relative to the largest result: sums of up to 1000 weighted values, weights off by exp's 1.1 places and by the scores' own
 * rounding, which e^x multiplies by scores of up to some 10. */
static const double tolerance = 1e-5;

typedef struct row {
  const char *name;
  bool fused;
  const char *params, *body, *result;
} row;

/* softmax of %x, whose shape is `full`, with rows of shape `kept`, along `last`; %m and %s may be changed by `shift`, `total`. */
#define SOFTMAX(full, kept, last, dims)                                                             \
  "%m = reduce(%x) {dimensions=[" last "], reducer=maximum} : " kept "\n"                           \
  "%mb = broadcast(%m) {dimensions=" dims "} : " full "\n%d = subtract(%x, %mb) : " full "\n"       \
  "%e = exponential(%d) : " full "\n%s = reduce(%e) {dimensions=[" last "], reducer=add} : " kept   \
  "\n%sb = broadcast(%s) {dimensions=" dims "} : " full "\n%p = divide(%e, %sb) : " full "\n"

#define HALF "%h = constant() {value=f32[] 0.25} : f32[]\n"

static const row rows[] = {
    {"heads of a projection, scaled and masked, turned back", true,
     "%q: f32[2,24,3,16] \"q\", %k: f32[2,24,3,16] \"k\", %v: f32[2,24,3,16] \"v\", %mask: f32[24] \"mask\"",
     "%qk = dot(%q, %k) {lhs_batch=[0,2], rhs_batch=[0,2], lhs_contract=[3], rhs_contract=[3]} : f32[2,3,24,24]\n" HALF
     "%hb = broadcast(%h) {dimensions=[]} : f32[2,3,24,24]\n%scaled = multiply(%qk, %hb) : f32[2,3,24,24]\n"
     "%maskb = broadcast(%mask) {dimensions=[3]} : f32[2,3,24,24]\n%x = add(%scaled, %maskb) : f32[2,3,24,24]\n"
     SOFTMAX("f32[2,3,24,24]", "f32[2,3,24]", "3", "[0,1,2]")
     "%pv = dot(%p, %v) {lhs_batch=[0,1], rhs_batch=[0,2], lhs_contract=[3], rhs_contract=[1]} : f32[2,3,24,16]\n"
     "%y = transpose(%pv) {permutation=[0,2,1,3]} : f32[2,24,3,16]\n", "%y"},
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
     "%z = add(%y5, %mb5) : f32[1,4,3,49,49]\n%x = reshape(%z) : f32[4,3,49,49]\n"
     SOFTMAX("f32[4,3,49,49]", "f32[4,3,49]", "3", "[0,1,2]")
     "%pv = dot(%p, %v) {lhs_batch=[0,1], rhs_batch=[0,2], lhs_contract=[3], rhs_contract=[1]} : f32[4,3,49,32]\n", "%pv"},
    {"causal, keys side by side, values of twenty elements", true,
     "%q: f32[3,37,20] \"q\", %k: f32[3,20,37] \"k\", %v: f32[3,37,20] \"v\"",
     "%qk = dot(%q, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]} : f32[3,37,37]\n"
     "%i = iota() {dimension=1} : s32[3,37,37]\n%j = iota() {dimension=2} : s32[3,37,37]\n"
     "%seen = compare(%i, %j) {comparison=ge} : pred[3,37,37]\n%low = constant() {value=f32[] -inf} : f32[]\n"
     "%lowb = broadcast(%low) {dimensions=[]} : f32[3,37,37]\n%x = select(%seen, %qk, %lowb) : f32[3,37,37]\n"
     SOFTMAX("f32[3,37,37]", "f32[3,37]", "2", "[0,1]")
     "%pv = dot(%p, %v) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]} : f32[3,37,20]\n", "%pv"},
    {"few keys, no batch", true, "%q: f32[8,24] \"q\", %k: f32[9,24] \"k\", %v: f32[9,64] \"v\"",
     "%x = dot(%q, %k) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]} : f32[8,9]\n"
     SOFTMAX("f32[8,9]", "f32[8]", "1", "[0]")
     "%pv = dot(%p, %v) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[8,64]\n", "%pv"},
    {"q and k scaled, as the operator does it", true,
     "%q0: f32[2,16,24] \"q\", %k0: f32[2,30,24] \"k\", %v: f32[2,30,16] \"v\"",
     HALF "%hq = broadcast(%h) {dimensions=[]} : f32[2,16,24]\n%q = multiply(%q0, %hq) : f32[2,16,24]\n"
     "%hk = broadcast(%h) {dimensions=[]} : f32[2,30,24]\n%k = multiply(%hk, %k0) : f32[2,30,24]\n"
     "%x = dot(%q, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]} : f32[2,16,30]\n"
     SOFTMAX("f32[2,16,30]", "f32[2,16]", "2", "[0,1]")
     "%pv = dot(%p, %v) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]} : f32[2,16,16]\n", "%pv"},
    {"many keys", true, "%q: f32[2,19,16] \"q\", %k: f32[2,1000,16] \"k\", %v: f32[2,1000,48] \"v\"",
     "%x = dot(%q, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]} : f32[2,19,1000]\n"
     SOFTMAX("f32[2,19,1000]", "f32[2,19]", "2", "[0,1]")
     "%pv = dot(%p, %v) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]} : f32[2,19,48]\n", "%pv"},
    {"rows without any key: a maximum and a total that are looked at, scores that are bent", true,
     "%q: f32[2,11,16] \"q\", %k: f32[2,13,16] \"k\", %v: f32[2,13,16] \"v\", %on: pred[2,11,1] \"on\"",
     "%qk = dot(%q, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]} : f32[2,11,13]\n"
     "%t = tanh(%qk) : f32[2,11,13]\n%on2 = reshape(%on) : pred[2,11]\n%onb = broadcast(%on2) {dimensions=[0,1]} : pred[2,11,13]\n"
     "%low = constant() {value=f32[] -inf} : f32[]\n%lowb = broadcast(%low) {dimensions=[]} : f32[2,11,13]\n"
     "%x = select(%onb, %t, %lowb) : f32[2,11,13]\n"
     "%m0 = reduce(%x) {dimensions=[2], reducer=maximum} : f32[2,11]\n%lowk = broadcast(%low) {dimensions=[]} : f32[2,11]\n"
     "%none = compare(%m0, %lowk) {comparison=eq} : pred[2,11]\n%c0 = constant() {value=f32[] 0} : f32[]\n"
     "%zero = broadcast(%c0) {dimensions=[]} : f32[2,11]\n%m = select(%none, %zero, %m0) : f32[2,11]\n"
     "%mb = broadcast(%m) {dimensions=[0,1]} : f32[2,11,13]\n%d = subtract(%x, %mb) : f32[2,11,13]\n"
     "%e = exponential(%d) : f32[2,11,13]\n%s0 = reduce(%e) {dimensions=[2], reducer=add} : f32[2,11]\n"
     "%c1 = constant() {value=f32[] 1} : f32[]\n%one = broadcast(%c1) {dimensions=[]} : f32[2,11]\n"
     "%empty = compare(%s0, %zero) {comparison=eq} : pred[2,11]\n%s = select(%empty, %one, %s0) : f32[2,11]\n"
     "%sb = broadcast(%s) {dimensions=[0,1]} : f32[2,11,13]\n%p = divide(%e, %sb) : f32[2,11,13]\n"
     "%pv = dot(%p, %v) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]} : f32[2,11,16]\n", "%pv"},
    {"rows without any key: not a number", true,
     "%q: f32[9,16] \"q\", %k: f32[17,16] \"k\", %v: f32[17,16] \"v\", %on: pred[9] \"on\"",
     "%qk = dot(%q, %k) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]} : f32[9,17]\n"
     "%onb = broadcast(%on) {dimensions=[0]} : pred[9,17]\n%low = constant() {value=f32[] -inf} : f32[]\n"
     "%lowb = broadcast(%low) {dimensions=[]} : f32[9,17]\n%x = select(%onb, %qk, %lowb) : f32[9,17]\n"
     SOFTMAX("f32[9,17]", "f32[9]", "1", "[0]")
     "%pv = dot(%p, %v) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[9,16]\n", "%pv"},
    {"four rows", false, "%q: f32[2,4,16] \"q\", %k: f32[2,32,16] \"k\", %v: f32[2,32,16] \"v\"",
     "%x = dot(%q, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]} : f32[2,4,32]\n"
     SOFTMAX("f32[2,4,32]", "f32[2,4]", "2", "[0,1]")
     "%pv = dot(%p, %v) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]} : f32[2,4,16]\n", "%pv"},
    {"f64", false, "%q: f64[16,16] \"q\", %k: f64[16,16] \"k\", %v: f64[16,16] \"v\"",
     "%x = dot(%q, %k) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]} : f64[16,16]\n"
     SOFTMAX("f64[16,16]", "f64[16]", "1", "[0]")
     "%pv = dot(%p, %v) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f64[16,16]\n", "%pv"},
    {"weights that are a result too", false, "%q: f32[16,16] \"q\", %k: f32[16,16] \"k\", %v: f32[16,16] \"v\"",
     "%x = dot(%q, %k) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]} : f32[16,16]\n"
     SOFTMAX("f32[16,16]", "f32[16]", "1", "[0]")
     "%pv = dot(%p, %v) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[16,16]\n", "%pv \"pv\", %p"},
    {"softmax over the queries", false, "%q: f32[16,16] \"q\", %k: f32[16,16] \"k\", %v: f32[16,16] \"v\"",
     "%x = dot(%q, %k) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]} : f32[16,16]\n"
     SOFTMAX("f32[16,16]", "f32[16]", "0", "[1]")
     "%pv = dot(%p, %v) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[16,16]\n", "%pv"},
};

typedef struct trial {
  const row *row;
  variant v;
  char message[400];
} trial;

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
      snprintf(t->message, sizeof t->message, "%s, %s: element %lld is %.9g, not %.9g", t->row->name, t->v.name, (long long)k, y, x);
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
  TRY(hlo_parse(a, text, strlen(text), NULL, &m)); /* compiling changes a module */
  TRY(run_on_cpu(a, m, &v, in, out));
  if (has_attention(m) != t->row->fused) {
    snprintf(t->message, sizeof t->message, "%s, %s: %sfused", t->row->name, t->v.name, t->row->fused ? "not " : "");
  }
  return NULL;
}

static status try_it(void *data) {
  trial *t = data;
  arena *a = arena_create(NULL);
  const row *r = t->row;
  const char *text = arena_printf(a, "onnx-xla hlo 1\nmodule \"t\" {\nentry main(%s) {\n%sreturn %s \"y\"\n}\n}\n", r->params,
                                  r->body, r->result);
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
    if (!literal_equal(&one[k], &three[k])) {
      snprintf(t->message, sizeof t->message, "%s, %s: other bits with three threads", r->name, t->v.name);
    }
  }
  arena_destroy(a);
  return s;
}

START_TEST(forms) {
  for (size_t v = 0; v < N_VARIANTS; v++) {
    trial t = {.row = &rows[_i], .v = variants[v]};
    status s = guard_run(try_it, &t);
    ck_assert_msg(!s, "%s, %s: %s", t.row->name, t.v.name, status_message(s));
    ck_assert_msg(!*t.message, "%s", t.message);
  }
}
END_TEST

int main(void) {
  TCase *c = tcase_create("forms");
  tcase_set_timeout(c, 120);
  tcase_add_loop_test(c, forms, 0, sizeof rows / sizeof *rows);
  return run_suite("attention", c);
}
