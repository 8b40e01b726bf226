/* loop_trips.c - counts the iterations of a Loop whose condition compares counters with sizes.
 *
 * Exporters write a loop over the elements of an array (TensorFlow's map_fn, PyTorch's `while i < n`) as a Loop without
 * a limit, whose body returns the condition i + 1 < n, often as floats, and the conjunction of several of them.  Only
 * if the number of iterations is known do the scan outputs have a shape before the loop runs. */
#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/control/loop_internal.h"
#include "hlo/ir/fold_sizes.h"

/* A number of one element that is `first` in the first iteration and grows by `step`, a constant that may be negative,
 * from each iteration to the next.  Up to `most`, the types of the numbers from which it is computed have all integers
 * and all sums of two; the fastest of these numbers grows by `fastest` in each iteration. */
typedef struct progression {
  dim first;
  int64_t step, fastest, most;
} progression;

enum { DEEPEST = 16 };

/* Returns the limit of a type (progression.most), or 0 for types in which no progression is counted. */
static int64_t most_of(dtype type) {
  switch (type) {
    case DTYPE_S32: return ((int64_t)1 << 30) - 1;
    case DTYPE_S64: return DIM_MAX;
    case DTYPE_F32: return (int64_t)1 << 23;
    case DTYPE_F64: return (int64_t)1 << 52;
    default: return 0;
  }
}

static bool is_number(const hlo_value v) {
  const shape *s = hlo_shape(v);
  return s->kind == SHAPE_ARRAY && shape_is_static(s) && shape_elements(s) == 1;
}

static bool literal_number(const literal *l, int64_t *out) {
  dtype type = (dtype)l->shape.type;
  int64_t most = most_of(type);
  double x = literal_f64(l, 0);
  if (!dtype_is_int(type) && !(x >= -(double)most && x <= (double)most && x == (double)(int64_t)x)) {
    return false;
  }
  *out = dtype_is_int(type) ? literal_i64(l, 0) : (int64_t)x;
  return *out >= -most && *out <= most;
}

static int64_t size_of_step(int64_t step) { return step < 0 ? -step : step; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static bool progression_of(const onnx_loop *l, hlo_value v, int depth, progression *out);

/* Finds the constant that an iteration adds to a state: 0 if its result is the state itself. */
static bool added_to(hlo_value result, const hlo_instr *state, int64_t *out) {
  const hlo_instr *i = result.def;
  while (i->op == HLO_RESHAPE) {
    i = i->operands[0].def;
  }
  if (i == state) {
    *out = 0;
    return true;
  }
  if (i->op != HLO_ADD && i->op != HLO_SUB) {
    return false;
  }
  int at = i->operands[0].def == state ? 0 : 1;
  const literal *l = hlo_literal(i->operands[1 - at]);
  if (i->operands[at].def != state || !l || !is_number(i->operands[1 - at]) || (i->op == HLO_SUB && at == 1) ||
      !literal_number(l, out)) {
    return false;
  }
  *out = i->op == HLO_SUB ? -*out : *out;
  return true;
}

/* Describes parameter number k of the body: the number of the iteration, a state or a capture. */
static bool parameter_progression(const onnx_loop *l, uint32_t k, int depth, progression *out) {
  enum { FIRST_STATE = 2 };
  uint32_t captures = FIRST_STATE + l->n_states;
  if (k == 0) {
    *out = (progression){0, 1, 1, most_of(DTYPE_S64)};
    return true;
  }
  if (k >= captures) {
    return progression_of(l, l->captures.outer[k - captures], depth, out);
  }
  bool found = k >= FIRST_STATE && progression_of(l, l->states[k - FIRST_STATE], depth, out) && out->step == 0 &&
               added_to(l->body->roots[1 + k - FIRST_STATE], l->body->params[k], &out->step);
  out->fastest = found ? size_of_step(out->step) : 0;
  return found;
}

/* Returns true if the first number is within the limit.  May add guards. */
static bool begins_within_limit(dim_table *t, const progression *p) {
  return dim_is_exact(t, p->first) && dim_at_most(t, p->first, p->most) &&
         dim_at_most(t, dim_signed_const(t, -p->most), p->first);
}

static bool sum_of(const onnx_loop *l, const hlo_instr *i, int depth, progression *out) {
  dim_table *t = onnx_dims(l->n);
  progression y;
  if (!progression_of(l, i->operands[0], depth, out) || !progression_of(l, i->operands[1], depth, &y) ||
      !begins_within_limit(t, out) || !begins_within_limit(t, &y)) {
    return false;
  }
  out->first = i->op == HLO_ADD ? dim_signed_add(t, out->first, y.first) : dim_signed_sub(t, out->first, y.first);
  out->most = y.most < out->most ? y.most : out->most;
  if (i->op == HLO_ADD ? __builtin_add_overflow(out->step, y.step, &out->step)
                       : __builtin_sub_overflow(out->step, y.step, &out->step)) {
    return false;
  }
  out->fastest = larger(larger(out->fastest, y.fastest), size_of_step(out->step));
  return true;
}

/* Describes a value of the body or, in the same words, one outside of the loop, whose step is 0. */
static bool progression_of(const onnx_loop *l, hlo_value v, int depth, progression *out) {
  dim elements[HLO_MAX_SIZES];
  const hlo_instr *i = v.def;
  int64_t number, most = is_number(v) ? most_of((dtype)hlo_shape(v)->type) : 0;
  bool found = false;
  if (!most || depth == DEEPEST) {
    return false;
  }
  if (hlo_sizes_of(v, elements) == 1) {
    *out = (progression){elements[0], 0, 0, most};
    return true;
  }
  if (hlo_literal(v)) {
    found = literal_number(hlo_literal(v), &number);
    *out = (progression){found ? dim_signed_const(onnx_dims(l->n), number) : 0, 0, 0, most};
    return found;
  }
  if (i->op == HLO_PARAMETER && i->parent == l->body) {
    for (uint32_t k = 0; k < l->body->n_params; k++) {
      found = found || (l->body->params[k] == i && parameter_progression(l, k, depth + 1, out));
    }
  } else if (i->op == HLO_RESHAPE || i->op == HLO_CONVERT) {
    found = progression_of(l, i->operands[0], depth + 1, out);
  } else if (i->op == HLO_ADD || i->op == HLO_SUB) {
    found = sum_of(l, i, depth + 1, out);
  }
  out->most = found && most < out->most ? most : out->most;
  return found;
}

/* Returns true if the numbers of all iterations are within the limit of the types that they have.  May add guards. */
static bool is_within_limit(dim_table *t, const progression *p, dim trips) {
  return begins_within_limit(t, p) && dim_at_most(t, dim_mul(t, trips, p->fastest), p->most);
}

/* Counts the iterations up to the first one in which the comparison x < y, or x <= y if `equal`, is false. */
static bool count_less(const onnx_loop *l, hlo_value left, hlo_value right, bool equal, dim *trips) {
  dim_table *t = onnx_dims(l->n);
  progression x, y;
  int64_t step;
  if (!progression_of(l, left, 0, &x) || !progression_of(l, right, 0, &y) ||
      __builtin_sub_overflow(x.step, y.step, &step) || step < 0 || step > DIM_MAX) {
    return false;
  }
  dim distance =
      dim_signed_add(t, dim_signed_sub(t, y.first, x.first), equal); /* the comparison is true if it is > 0 */
  dim reach = dim_signed_add(t, distance, step);
  if (!dim_is_exact(t, reach)) {
    return false;
  }
  bool first_is_last = dim_at_most(t, reach, 0);
  *trips = first_is_last ? 1 : step ? dim_ceildiv(t, reach, step) : INT64_MAX;
  return !step || (dim_is_exact(t, *trips) && is_within_limit(t, &x, *trips) && is_within_limit(t, &y, *trips));
}

/* Returns the smaller one of two numbers of iterations, of which INT64_MAX is none.  May add a guard. */
static dim least(dim_table *t, dim a, dim b) {
  return b != INT64_MAX && (a == INT64_MAX || dim_at_most(t, b, a)) ? b : a;
}

/* Counts the iterations up to the first one in which the condition is false; INT64_MAX if it is never false.  Returns
 * false if that is not known.  May add guards. */
static bool count_trips(const onnx_loop *l, hlo_value v, int depth, dim *trips) {
  const hlo_instr *i = v.def;
  const literal *known = hlo_literal(v);
  dim right;
  if (depth == DEEPEST || !is_number(v)) {
    return false;
  }
  if (known) {
    *trips = literal_i64(known, 0) ? INT64_MAX : 1;
    return true;
  }
  if (i->op == HLO_RESHAPE) {
    return count_trips(l, i->operands[0], depth + 1, trips);
  }
  if (i->op == HLO_AND) {
    if (!count_trips(l, i->operands[0], depth + 1, trips) || !count_trips(l, i->operands[1], depth + 1, &right)) {
      return false;
    }
    *trips = least(onnx_dims(l->n), *trips, right);
    return true;
  }
  hlo_comparison c = i->op == HLO_COMPARE ? (hlo_comparison)hlo_int(i, HLO_ATTR_COMPARISON) : HLO_EQ;
  bool swapped = c == HLO_GT || c == HLO_GE;
  return c != HLO_EQ && c != HLO_NE &&
         count_less(l, i->operands[swapped], i->operands[!swapped], c == HLO_LE || c == HLO_GE, trips);
}

void onnx_loop_count_trips(onnx_loop *l) {
  dim first = INT64_MAX, trips; /* first: 1 if the condition is false before the first iteration */
  if (l->is_scan || l->ignores_cond || l->trip_value.def || l->trip == 0 || hlo_literal(l->body->roots[0]) ||
      (l->cond.def && !count_trips(l, l->cond, 0, &first)) || !count_trips(l, l->body->roots[0], 0, &trips)) {
    return;
  }
  trips = first == 1 ? 0 : trips;
  l->trip = least(onnx_dims(l->n), l->trip, trips);
  l->ignores_cond = true;
  l->cond = (hlo_value){0};
}
