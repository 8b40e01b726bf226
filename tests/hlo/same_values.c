#include "tests/hlo/same_values.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "backend_ref/eval.h"

/* The number of rounds whose inputs are ordinary numbers only, and of all rounds. */
enum { ORDINARY_ROUNDS = 2, ROUNDS = 8 };

static uint64_t below(uint64_t *state, uint64_t n) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (*state >> 33) % n;
}

/* --- inputs --- */

/* These return numbers at the ends of a type, or other special ones: infinities, NaN and -0 among floats, and the
 * smallest and largest integers. */
static double edge_float(dtype type, uint64_t *state) {
  const double edges[] = {
      0.0, -0.0, 1, -1, 0.5, 2, INFINITY, -INFINITY, NAN, 0x1p-149, dtype_max_f64(type), dtype_lowest_f64(type)};
  return edges[below(state, sizeof edges / sizeof *edges)];
}

static int64_t edge_int(dtype type, uint64_t *state) {
  uint64_t high = UINT64_C(1) << (dtype_get_info(type)->bits - 1); /* the sign bit, or the highest unsigned bit */
  const uint64_t edges[] = {0, 1, 2, 3, 7, high - 1, high, high + 1, (high - 1) + high, (high - 1) + high - 1};
  return (int64_t)edges[below(state, sizeof edges / sizeof *edges)];
}

static void put_element(dtype type, void *at, bool ordinary, uint64_t *state) {
  if (type == DTYPE_PRED) {
    *(uint8_t *)at = (uint8_t)below(state, 2);
  } else if (dtype_is_int(type)) {
    int64_t low = dtype_is_signed(type) ? -4 : 0;
    dtype_store_i64(type, at, ordinary ? low + (int64_t)below(state, 8 + (uint64_t)low) : edge_int(type, state));
  } else {
    double x = ordinary ? ((double)below(state, 1 << 16) - 32768) / 16384 : edge_float(type, state);
    dtype_store_f64(type, at, x, false, DTYPE_ROUND_NEAREST);
  }
}

literal same_values_input(const shape *s, uint32_t round, uint64_t *state, arena *a) {
  dtype type = (dtype)s->type;
  dtype part = type == DTYPE_C64 ? DTYPE_F32 : type == DTYPE_C128 ? DTYPE_F64 : type;
  int64_t n = shape_elements(s) * (part == type ? 1 : 2);
  void *data;
  literal l = literal_new(a, *s, &data);
  for (int64_t k = 0; k < n; k++) {
    /* After the ordinary rounds, some elements are edges: many in the first of these rounds, fewer in later ones. */
    bool ordinary = round < ORDINARY_ROUNDS || below(state, round) > 1;
    put_element(part, (char *)data + (size_t)k * dtype_bytes(part), ordinary, state);
  }
  return l;
}

/* --- results --- */

static double largest_finite(const literal *l, int64_t n, dtype part) {
  double largest = 0;
  for (int64_t k = 0; k < n; k++) {
    double x = fabs(dtype_load_f64(part, (const char *)l->data + (size_t)k * dtype_bytes(part)));
    largest = isfinite(x) && x > largest ? x : largest;
  }
  return largest;
}

static bool same_float(double x, double y, double tolerance) {
  if (isnan(x) || isnan(y)) {
    return isnan(x) && isnan(y);
  }
  return (x == y && signbit(x) == signbit(y)) || fabs(x - y) <= tolerance;
}

status same_values_result(const literal *x, const literal *y, same_floats how, uint32_t round, uint32_t result) {
  dtype type = (dtype)x->shape.type;
  dtype part = type == DTYPE_C64 ? DTYPE_F32 : type == DTYPE_C128 ? DTYPE_F64 : type;
  int64_t n = shape_elements(&x->shape) * (part == type ? 1 : 2);
  bool floats = dtype_is_float(part);
  CHECK_THAT(shape_equal(&x->shape, &y->shape), STATUS_INTERNAL, "result %" PRIu32 ": the shapes differ", result);
  double tolerance = how == SAME_ROUNDED && floats ? 0x1p-16 * largest_finite(x, n, part) : 0;
  for (int64_t k = 0; k < n; k++) {
    const char *p = (const char *)x->data + (size_t)k * dtype_bytes(part),
               *q = (const char *)y->data + (p - (const char *)x->data);
    if (floats) {
      double want = dtype_load_f64(part, p), got = dtype_load_f64(part, q);
      CHECK_THAT(same_float(want, got, tolerance), STATUS_INTERNAL,
                 "round %" PRIu32 ": element %" PRId64 " of result %" PRIu32 " is %.17g before and %.17g after", round,
                 k, result, want, got);
    } else {
      CHECK_THAT(memcmp(p, q, dtype_bytes(part)) == 0, STATUS_INTERNAL,
                 "round %" PRIu32 ": element %" PRId64 " of result %" PRIu32 " is %" PRId64 " before and %" PRId64
                 " after",
                 round, k, result, dtype_load_i64(part, p), dtype_load_i64(part, q));
    }
  }
  return NULL;
}

static status same_round(const hlo_module *before, const hlo_module *after, same_floats how, uint32_t round, arena *a) {
  const hlo_computation *x = before->entry, *y = after->entry;
  literal *inputs = ARENA_NEW_N(a, literal, x->n_params);
  literal *want = ARENA_NEW_N(a, literal, x->n_roots), *got = ARENA_NEW_N(a, literal, x->n_roots);
  uint64_t state = round + 1;
  for (uint32_t k = 0; k < x->n_params; k++) {
    inputs[k] = same_values_input(&x->params[k]->shapes[0], round, &state, a);
  }
  TRY(ref_eval_computation(x, inputs, a, want));
  TRY(ref_eval_computation(y, inputs, a, got));
  for (uint32_t k = 0; k < x->n_roots; k++) {
    TRY(same_values_result(&want[k], &got[k], how, round, k));
  }
  return NULL;
}

static bool is_static(const hlo_computation *c) {
  bool all = true;
  for (uint32_t k = 0; k < c->n_params; k++) {
    all &= shape_is_static(&c->params[k]->shapes[0]);
  }
  return all;
}

status same_values(const hlo_module *before, const hlo_module *after, same_floats how, arena *a) {
  const hlo_computation *x = before->entry, *y = after->entry;
  CHECK_THAT(x->n_params == y->n_params && x->n_roots == y->n_roots, STATUS_INTERNAL, "the signatures differ");
  CHECK_THAT(is_static(x) && is_static(y), STATUS_UNSUPPORTED, "some size is open");
  for (uint32_t round = 0; round < (how == SAME_ROUNDED ? ORDINARY_ROUNDS : ROUNDS); round++) {
    TRY(same_round(before, after, how, round, a));
  }
  return NULL;
}
