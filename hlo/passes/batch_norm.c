/* batch_norm.c - constant factors and shifts of the channels after a convolution or dot are merged into its weights and
 * one addition.  The weights of a large dot stay as they are, and one multiplication takes the factors: it costs
 * nothing beside reading the weights, while a copy of them takes memory and time before the first result.
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
  bool keeps_weights; /* whether a multiplication takes the factors, and not the weights */
  double *scale, *shift;
  double *u; /* the constants of the chain's current operation, by channel */
  uint32_t n_steps, n_scalings;
} channels;

static bool find_channels(hlo_instr *i, channels *c) {
  enum { LARGE = 1 << 16 }; /* elements of a dot's weights: 256 KiB of f32, the time of a kernel or two */
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
  c->keeps_weights = shape_elements(&w->shape) > LARGE;
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

static bool any_shift(const channels *c) {
  for (int64_t k = 0; k < c->n; k++) {
    if (c->shift[k] != 0) {
      return true;
    }
  }
  return false;
}

/* Returns the number of operations after the contraction that stand for the chain. */
static uint32_t n_left(const channels *c) { return (c->keeps_weights && c->n_scalings) + any_shift(c); }

/* Returns true if the chain's result is rounded to integers after sums that are exact (hlo/passes/integer_sums.c).
 * Elementwise operations, such as an activation and the division by a scale, may stand before the rounding. */
static bool is_requantized(const channels *c, hlo_value last) {
  hlo_instr *user = hlo_only_user(last);
  while (user && hlo_info(user)->kind == HLO_ELEMENTWISE && user->op != HLO_ROUND) {
    user = hlo_only_user(hlo_result(user, 0));
  }
  return user && user->op == HLO_ROUND && literal_is_whole(hlo_literal(c->contraction->operands[1]));
}

/* How the elements of the weights belong to channels: there are n rows of `length` elements.  Those of row k belong to
 * channel k % c->n, or, if the channels are the last dimension, element j of any row belongs to channel j. */
typedef struct rows {
  int64_t n, length;
  bool across; /* whether the channels are the last dimension */
  size_t bytes;
} rows;

static rows rows_of(const channels *c) {
  const shape *s = &hlo_literal(c->contraction->operands[1])->shape;
  int64_t inner = shape_product(s, c->weights_dimension + 1, s->rank), n = shape_elements(s);
  rows r = {.across = inner == 1, .length = inner == 1 ? c->n : inner};
  r.n = r.length ? n / r.length : 0;
  r.bytes = (size_t)r.length * dtype_bytes((dtype)s->type);
  return r;
}

/* Raises largest[0], or largest[k] for each k if `across`, to the magnitudes of a row's elements; `from` may be
 * unaligned. */
static void raise_largest(dtype t, const char *from, const rows *r, double *largest) {
  for (int64_t k = 0; k < r->length; k++) {
    const char *at = from + (size_t)k * dtype_bytes(t);
    double x = fabs(t == DTYPE_F32 ? load_f32(at) : dtype_load_f64(t, at)), *most = &largest[r->across ? k : 0];
    *most = x > *most ? x : *most;
  }
}

/* Sets largest[k] to the largest magnitude of the weights of channel k. */
static void find_largest(const channels *c, double *largest) {
  const literal *w = hlo_literal(c->contraction->operands[1]);
  rows r = rows_of(c);
  for (int64_t k = 0; k < r.n; k++) {
    const char *from = (const char *)w->data + (size_t)k * r.bytes;
    raise_largest((dtype)w->shape.type, from, &r, &largest[r.across ? 0 : k % c->n]);
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
  if (c->keeps_weights) {
    for (int64_t k = 0; k < c->n; k++) {
      largest[k] = 1; /* the factors themselves become constants */
    }
  } else if (c->n_scalings) {
    find_largest(c, largest);
  }
  for (int64_t k = 0; k < c->n; k++) {
    double x = largest[k] * fabs(c->scale[k]);
    if (!isfinite(c->scale[k]) || !(fabs(c->shift[k]) <= most / 64) || x > most || (x > dead && x < least_normal)) {
      return false;
    }
  }
  return true;
}

/* Multiplies the elements of a row by scale[0], or by scale[k] for each k if `across`; `from` may be unaligned. */
static void scale_any(dtype t, const char *from, const rows *r, const double *scale, char *to) {
  size_t size = dtype_bytes(t);
  for (int64_t k = 0; k < r->length; k++) {
    double x = dtype_load_f64(t, from + (size_t)k * size);
    dtype_store_f64(t, to + (size_t)k * size, x * scale[r->across ? k : 0], false, DTYPE_ROUND_NEAREST);
  }
}

/* Does what scale_any does for f32, with the same results.  Most weights have this type and millions of elements, for
 * which the general conversions of scale_any would be slow. */
static void scale_f32(const char *from, const rows *r, const double *scale, char *to) {
  for (int64_t k = 0; k < r->length; k++) {
    float x = (float)(load_f32(from + (size_t)k * sizeof x) * scale[r->across ? k : 0]);
    memcpy(to + (size_t)k * sizeof x, &x, sizeof x);
  }
}

/* Returns the weights with the elements of channel k multiplied by c->scale[k]. */
static literal scaled(const channels *c, arena *a) {
  const literal *w = hlo_literal(c->contraction->operands[1]);
  void *data;
  literal l = literal_new(a, w->shape, &data);
  dtype t = (dtype)w->shape.type;
  rows r = rows_of(c);
  for (int64_t k = 0; k < r.n; k++) {
    const char *from = (const char *)w->data + (size_t)k * r.bytes;
    char *to = (char *)data + (size_t)k * r.bytes;
    const double *scale = &c->scale[r.across ? 0 : k % c->n];
    if (t == DTYPE_F32) {
      scale_f32(from, &r, scale, to);
    } else {
      scale_any(t, from, &r, scale, to);
    }
  }
  return l;
}

/* Returns the constant with the numbers `x`, one for each channel, broadcast to the contraction's result. */
static hlo_value by_channel(hlo_builder *b, const channels *c, const double *x) {
  const shape *s = &c->contraction->shapes[0];
  dtype t = (dtype)s->type;
  void *data;
  literal l = literal_new(c->contraction->parent->module->arena, shape_make(t, 1, &c->n), &data);
  for (int64_t k = 0; k < c->n; k++) {
    dtype_store_f64(t, (char *)data + (size_t)k * dtype_bytes(t), x[k], false, DTYPE_ROUND_NEAREST);
  }
  int64_t dimension = c->dimension;
  return hlo_broadcast(b, hlo_constant(b, l), *s, &dimension);
}

static status fold_chain(channels *c, hlo_value last, pass_context *context) {
  hlo_instr *i = c->contraction;
  hlo_builder b = hlo_pass_builder(context, i->parent, i);
  b.eval = NULL; /* otherwise a small broadcast would become an array, and not be recognised as a bias */
  if (c->n_scalings && !c->keeps_weights) {
    hlo_set_operand(i, 1, hlo_constant(&b, scaled(c, i->parent->module->arena)));
  }
  b.before = last.def;
  hlo_value v = hlo_result(i, 0);
  if (c->n_scalings && c->keeps_weights) {
    v = hlo_binary(&b, HLO_MUL, v, by_channel(&b, c, c->scale));
  }
  if (any_shift(c)) {
    v = hlo_binary(&b, HLO_ADD, v, by_channel(&b, c, c->shift));
  }
  TRY(hlo_builder_take_error(&b));
  hlo_replace(last, v);
  hlo_remove(last.def);
  hlo_pass_note(context, "contractions", 1);
  hlo_pass_note(context, "operations folded", c->n_steps - n_left(c));
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
      if (n_left(&x) < x.n_steps && fits_type(&x, c->scratch) && !is_requantized(&x, last)) {
        TRY(fold_chain(&x, last, c));
        *changed = true;
      }
    }
  }
  return NULL;
}
