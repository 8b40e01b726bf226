/* batch_norm.c - constant factors and shifts of the channels after a convolution or dot are merged into its weights and
 * one addition.
 *
 * Requires: fold and simplify, so that normalisation is a chain of add, subtract, multiply, divide and negate with
 * broadcast constants.  Keeps: results, except for rounding (the chain is computed in f64 and rounded once into weights
 * and bias) and for the sign of zeros.  Breaks: nothing; the old weights are left to dce.  It applies only to constant
 * weights, and to chains in which each value has one user.  A dot's weights are its second operand, with one free
 * dimension. */
#include <math.h>
#include <string.h>

#include "hlo/analysis/pattern.h"
#include "hlo/passes/pass.h"

/* A contraction and the chain of operations after it: in channel c, the chain computes scale[c] times the contraction's
 * result plus shift[c]. */
typedef struct channels {
  hlo_instr *contraction;
  int dimension; /* the dimension of the result that runs over channels */
  int weights_dimension;
  int64_t n;
  double *scale, *shift;
  double *u; /* the constants of the chain's current operation, by channel */
  uint32_t n_steps, n_scalings;
} channels;

static bool find_channels(hlo_instr *i, channels *c) {
  const literal *w = i->n_operands == 2 ? hlo_literal(i->operands[1]) : NULL;
  const shape *s = &i->shapes[0];
  if (!w || !dtype_is_float(hlo_type(i->operands[1])) || s->rank == 0) {
    return false;
  }
  *c = (channels){.contraction = i};
  if (i->op == HLO_CONVOLUTION) {
    c->dimension = hlo_int(i, HLO_ATTR_LAYOUT) == HLO_CHANNELS_LAST ? s->rank - 1 : 1;
    c->n = s->dims[c->dimension];
    return dim_is_const(c->n);
  }
  int n_free = 0;
  for (int d = 0; d < w->shape.rank; d++) {
    if (!hlo_has_int(i, HLO_ATTR_RHS_CONTRACT, d)) {
      c->weights_dimension = d;
      n_free++;
    }
  }
  c->dimension = s->rank - 1;
  c->n = s->dims[c->dimension];
  return n_free == 1 && hlo_n_ints(i, HLO_ATTR_RHS_BATCH) == 0 && dim_is_const(c->n);
}

/* If v has one constant for all channels or one for each channel, writes them to c->u and returns true. */
static bool read_constants(hlo_value v, void *data) {
  const channels *c = (const channels *)data;
  literal splat;
  bool same = hlo_splat_of(v, &splat);
  const literal *l = same ? &splat : hlo_literal(v);
  int dimension = c->dimension;
  if (!same && v.def->op == HLO_BROADCAST) {
    l = hlo_literal(v.def->operands[0]);
    dimension = l && l->shape.rank == 1 && hlo_ints(v.def, HLO_ATTR_DIMENSIONS)[0] == dimension ? 0 : -1;
  }
  if (!l || dimension < 0 || (!same && (shape_elements(&l->shape) != c->n || l->shape.dims[dimension] != c->n))) {
    return false;
  }
  for (int64_t k = 0; k < c->n; k++) {
    c->u[k] = literal_f64(l, same ? 0 : k);
  }
  return true;
}

static double load_f32(const char *from) {
  float x;
  memcpy(&x, from, sizeof x);
  return x;
}

typedef enum step { NO_STEP, PLUS, MINUS, TIMES, DIVIDED_BY, SUBTRACTED_FROM, NEGATED } step;

/* Returns the operation that computes y from x and from constants, one for each channel, and reads the constants into
 * c->u.  Returns NO_STEP if y is not computed in this way. */
static step step_of(channels *c, hlo_value y, hlo_value x) {
  const hlo_pattern *from = P_SAME(&x), *u = P_IF(read_constants, c);
  return hlo_match(y, P_COMMUTE(HLO_ADD, from, u))   ? PLUS
         : hlo_match(y, P_OP(HLO_SUB, from, u))      ? MINUS
         : hlo_match(y, P_COMMUTE(HLO_MUL, from, u)) ? TIMES
         : hlo_match(y, P_OP(HLO_DIV, from, u))      ? DIVIDED_BY
         : hlo_match(y, P_OP(HLO_SUB, u, from))      ? SUBTRACTED_FROM
         : hlo_match(y, P_OP(HLO_NEG, from))         ? NEGATED
                                                     : NO_STEP;
}

/* Merges the operation that computes y from x into c->scale and c->shift.  Returns false if it is not an operation that
 * the chain may contain. */
static bool apply_step(channels *c, hlo_value y, hlo_value x) {
  step s = step_of(c, y, x);
  for (int64_t k = 0; s != NO_STEP && k < c->n; k++) {
    double u = c->u[k];
    double scale = s == TIMES ? u : s == DIVIDED_BY ? 1 / u : s == SUBTRACTED_FROM || s == NEGATED ? -1 : 1;
    double shift = s == PLUS || s == SUBTRACTED_FROM ? u : s == MINUS ? -u : 0;
    c->scale[k] *= scale;
    c->shift[k] = c->shift[k] * scale + shift;
  }
  c->n_steps += s != NO_STEP;
  c->n_scalings += s > MINUS;
  return s != NO_STEP;
}

/* Follows the chain of operations after the contraction, merges each of them into c->scale and c->shift, and returns
 * the chain's last value.  The first operation that cannot be merged ends the chain. */
static hlo_value follow(channels *c, arena *scratch) {
  hlo_value v = hlo_result(c->contraction, 0);
  c->u = ARENA_NEW_N(scratch, double, c->n);
  c->scale = ARENA_NEW_N(scratch, double, c->n);
  c->shift = ARENA_NEW_N(scratch, double, c->n);
  for (int64_t k = 0; k < c->n; k++) {
    c->scale[k] = 1;
  }
  for (hlo_instr *user = hlo_only_user(v); user; user = hlo_only_user(v)) {
    hlo_value y = hlo_result(user, 0);
    if (!shape_equal(&user->shapes[0], hlo_shape(v)) || !apply_step(c, y, v)) {
      break;
    }
    v = y;
  }
  return v;
}

static bool is_useful(const channels *c) { return c->n_scalings > 0 || c->n_steps > 1; }

/* Returns true if the chain's result is rounded to integers after sums that are exact (hlo/passes/integer_sums.c).
 * Elementwise operations, such as an activation and the division by a scale, may stand before the rounding. */
static bool is_requantized(const channels *c, hlo_value last) {
  hlo_instr *user = hlo_only_user(last);
  while (user && hlo_info(user)->kind == HLO_ELEMENTWISE && user->op != HLO_ROUND) {
    user = hlo_only_user(hlo_result(user, 0));
  }
  return user && user->op == HLO_ROUND && literal_is_whole(hlo_literal(c->contraction->operands[1]));
}

/* Returns the largest magnitude of n elements; `from` may be unaligned. */
static double largest_of(dtype t, const char *from, int64_t n) {
  double largest = 0;
  for (int64_t k = 0; k < n; k++) {
    const char *at = from + (size_t)k * dtype_bytes(t);
    double x = fabs(t == DTYPE_F32 ? load_f32(at) : dtype_load_f64(t, at));
    largest = x > largest ? x : largest;
  }
  return largest;
}

/* Sets largest[k] to the largest magnitude of the weights at position k of `dimension`. */
static void find_largest(const literal *w, int dimension, double *largest) {
  int64_t rows = w->shape.dims[dimension], inner = shape_product(&w->shape, dimension + 1, w->shape.rank);
  int64_t n = inner ? shape_elements(&w->shape) / inner : 0;
  size_t row = (size_t)inner * dtype_bytes((dtype)w->shape.type);
  for (int64_t k = 0; k < n; k++) {
    double x = largest_of((dtype)w->shape.type, (const char *)w->data + (size_t)k * row, inner);
    largest[k % rows] = x > largest[k % rows] ? x : largest[k % rows];
  }
}

/* Returns true if the scaled weights and the shifts are numbers that the type can hold as exactly as the old ones,
 * which often is not so for f16.  No scaled weight may overflow, and the largest one of a channel must not be less than
 * the smallest normal number, unless it is so small that the channel is dead.  A sum of products that is scaled but not
 * yet shifted must not overflow if the result does not; so a shift must be small in comparison with the largest number.
 */
static bool fits_type(const channels *c, arena *scratch) {
  const double dead = 0x1p-100, most = dtype_max_f64((dtype)c->contraction->shapes[0].type), least_normal = 4 / most;
  double *largest = ARENA_NEW_N(scratch, double, c->n);
  if (c->n_scalings) {
    find_largest(hlo_literal(c->contraction->operands[1]), c->weights_dimension, largest);
  }
  for (int64_t k = 0; k < c->n; k++) {
    double x = largest[k] * fabs(c->scale[k]);
    if (!isfinite(c->scale[k]) || !(fabs(c->shift[k]) <= most / 64) || x > most || (x > dead && x < least_normal)) {
      return false;
    }
  }
  return true;
}

/* Multiplies n elements by `factor`; `from` may be unaligned. */
static void scale_any(dtype t, const char *from, int64_t n, double factor, char *to) {
  size_t size = dtype_bytes(t);
  for (int64_t k = 0; k < n; k++) {
    double x = dtype_load_f64(t, from + (size_t)k * size);
    dtype_store_f64(t, to + (size_t)k * size, x * factor, false, DTYPE_ROUND_NEAREST);
  }
}

/* Does what scale_any does for f32, with the same results.  Most weights have this type and millions of elements, for
 * which the general conversions of scale_any would be slow. */
static void scale_f32(const char *from, int64_t n, double factor, char *to) {
  for (int64_t k = 0; k < n; k++) {
    float x = (float)(load_f32(from + (size_t)k * sizeof x) * factor);
    memcpy(to + (size_t)k * sizeof x, &x, sizeof x);
  }
}

/* Returns the weights with the elements at position k of `dimension` multiplied by scale[k]. */
static literal scaled(const literal *w, int dimension, const double *scale, arena *a) {
  void *data;
  literal l = literal_new(a, w->shape, &data);
  dtype t = (dtype)w->shape.type;
  int64_t rows = w->shape.dims[dimension], inner = shape_product(&w->shape, dimension + 1, w->shape.rank);
  int64_t n = inner ? shape_elements(&w->shape) / inner : 0;
  size_t row = (size_t)inner * dtype_bytes(t);
  for (int64_t k = 0; k < n; k++) {
    const char *from = (const char *)w->data + (size_t)k * row;
    char *to = (char *)data + (size_t)k * row;
    if (t == DTYPE_F32) {
      scale_f32(from, inner, scale[k % rows], to);
    } else {
      scale_any(t, from, inner, scale[k % rows], to);
    }
  }
  return l;
}

static bool any_shift(const channels *c) {
  for (int64_t k = 0; k < c->n; k++) {
    if (c->shift[k] != 0) {
      return true;
    }
  }
  return false;
}

static status fold_chain(channels *c, hlo_value last, pass_context *context) {
  hlo_instr *i = c->contraction;
  arena *a = i->parent->module->arena;
  hlo_builder b = hlo_pass_builder(context, i->parent, i);
  b.eval = NULL; /* otherwise a small broadcast would become an array, and not be recognised as a bias */
  if (c->n_scalings) {
    hlo_set_operand(i, 1, hlo_constant(&b, scaled(hlo_literal(i->operands[1]), c->weights_dimension, c->scale, a)));
  }
  hlo_value v = hlo_result(i, 0);
  if (any_shift(c)) {
    void *data;
    literal l = literal_new(a, shape_make(hlo_type(v), 1, &c->n), &data);
    size_t size = dtype_bytes(hlo_type(v));
    for (int64_t k = 0; k < c->n; k++) {
      dtype_store_f64(hlo_type(v), (char *)data + (size_t)k * size, c->shift[k], false, DTYPE_ROUND_NEAREST);
    }
    int64_t dimension = c->dimension;
    b.before = last.def;
    v = hlo_binary(&b, HLO_ADD, v, hlo_broadcast(&b, hlo_constant(&b, l), i->shapes[0], &dimension));
  }
  TRY(hlo_builder_take_error(&b));
  hlo_replace(last, v);
  hlo_remove(last.def);
  hlo_pass_note(context, "contractions", 1);
  hlo_pass_note(context, "operations folded", c->n_steps - any_shift(c));
  return NULL;
}

status pass_batch_norm(hlo_module *m, pass_context *c, bool *changed) {
  uint32_t n;
  hlo_computation **walked = hlo_walked(m, c->scratch, false, &n);
  for (uint32_t k = 0; k < n; k++) {
    for (hlo_instr *i = walked[k]->first; i; i = i->next) {
      channels x;
      if (hlo_info(i)->kind != HLO_CONTRACTION || !find_channels(i, &x)) {
        continue;
      }
      TRY(budget_check(arena_budget(c->scratch)));
      hlo_value last = follow(&x, c->scratch);
      if (last.def != i && is_useful(&x) && fits_type(&x, c->scratch) && !is_requantized(&x, last)) {
        TRY(fold_chain(&x, last, c));
        *changed = true;
      }
    }
  }
  return NULL;
}
