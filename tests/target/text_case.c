/* text_case.c - see text_case.h. */
#include "tests/target/text_case.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "hlo/text/text.h"

typedef struct trial {
  const char *text;
  double tolerance; /* relative to the largest magnitude of the result; 0: the same bits */
  double low, high; /* of float inputs */
  variant v;
  char message[600]; /* what is wrong; "": nothing */
} trial;

static uint64_t random_state;

static double random_unit(void) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (double)(random_state >> 11) * 0x1p-53;
}

static literal random_literal(arena *a, const shape *s, double low, double high) {
  void *data;
  literal l = literal_new(a, *s, &data);
  int64_t n = shape_elements(s);
  size_t size = dtype_bytes((dtype)s->type);
  dtype real = s->type == DTYPE_C64 ? DTYPE_F32 : s->type == DTYPE_C128 ? DTYPE_F64 : (dtype)s->type;
  for (int64_t k = 0; k < n * (real == s->type ? 1 : 2); k++) {
    void *at = (char *)data + (size_t)k * (real == s->type ? size : size / 2);
    if (dtype_is_float(real)) {
      dtype_store_f64(real, at, low + (high - low) * random_unit(), true, DTYPE_ROUND_NEAREST);
    } else if (real == DTYPE_PRED) {
      *(uint8_t *)at = random_unit() < 0.5;
    } else {
      double most = high > 20 ? high : 20;
      dtype_store_i64(real, at, (int64_t)((dtype_is_signed(real) ? 2 * random_unit() - 1 : random_unit()) * most));
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

const char *case_difference(arena *a, const literal *want, const literal *got, double tolerance) {
  int64_t n = shape_elements(&want->shape);
  size_t size = dtype_bytes((dtype)want->shape.type);
  double most = 0, im, im2;
  for (int64_t k = 0; k < n; k++) {
    double v = fabs(part_of(want, k, &im));
    most = isfinite(v) && v > most ? v : most;
  }
  for (int64_t k = 0; k < n; k++) {
    double x = part_of(want, k, &im), y = part_of(got, k, &im2);
    bool same =
        memcmp((const char *)want->data + (size_t)k * size, (const char *)got->data + (size_t)k * size, size) == 0;
    bool nan = isnan(x) && isnan(y);
    if (!same && !nan && (tolerance == 0 || !near(x, y, tolerance * most) || !near(im, im2, tolerance * most))) {
      return arena_printf(a, "element %" PRId64 " is %.9g, not %.9g", k, y, x);
    }
  }
  return NULL;
}

void case_inputs(arena *a, const hlo_module *m, double low, double high, literal *in) {
  random_state = 42;
  for (uint32_t k = 0; k < m->entry->n_params; k++) {
    in[k] = random_literal(a, hlo_shape(hlo_result(m->entry->params[k], 0)), low, high);
  }
}

static void compare(arena *a, trial *t, int result, const literal *want, const literal *got) {
  const char *difference = case_difference(a, want, got, t->tolerance);
  if (difference) {
    snprintf(t->message, sizeof t->message, "%s: result %d, %s\n%.300s", t->v.name, result, difference, t->text);
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
  literal *in = ARENA_NEW_N(a, literal, n_in + 1), *want = ARENA_NEW_N(a, literal, n_out),
          *got = ARENA_NEW_N(a, literal, n_out);
  case_inputs(a, m, t->low, t->high, in);
  s = ref_eval_computation(m->entry, in, a, want);
  s = s ? s : run_on_cpu(a, m, &t->v, in, got);
  for (uint32_t k = 0; k < n_out && !s && !*t->message; k++) {
    compare(a, t, (int)k, &want[k], &got[k]);
  }
  arena_destroy(a);
  return s;
}

void check_text(const char *text, double tolerance, double low, double high) {
  for (size_t k = 0; k < N_VARIANTS; k++) {
    trial t = {.text = text, .tolerance = tolerance, .low = low, .high = high, .v = variants[k]};
    status s = guard_run(try_it, &t);
    ck_assert_msg(!s, "%s: %s\n%s", t.v.name, status_message(s), text);
    ck_assert_msg(!*t.message, "%s", t.message);
  }
}

void check_body(const char *params, const char *body, const char *root, double tolerance, double low, double high) {
  char text[4000];
  int n = snprintf(text, sizeof text, "onnx-xla hlo 1\nmodule \"t\" {\nentry main(%s) {\n%s\nreturn %s\n}\n}\n", params,
                   body, root);
  ck_assert_int_lt(n, (int)sizeof text);
  check_text(text, tolerance, low, high);
}
