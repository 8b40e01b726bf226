/* dim_interval.c - bounds of expressions from the ranges of symbols, by interval arithmetic. */
#include "base/arith.h"
#include "base/dim/dim_nodes.h"

/* All numbers from `least` to `most`.  Both are clamped to [-FARTHEST, FARTHEST], which loses nothing: no value of an
 * expression or of a part of it is beyond DIM_MAX (dim_evaluate). */
typedef struct interval {
  int64_t least, most;
} interval;

#define FARTHEST (2 * DIM_MAX)

static const interval anything = {-FARTHEST, FARTHEST}, not_negative = {0, FARTHEST};

static int64_t clamp(int64_t x) { return x < -FARTHEST ? -FARTHEST : x > FARTHEST ? FARTHEST : x; }

static int64_t multiply(int64_t a, int64_t b) {
  int64_t out;
  bool negative = (a < 0) != (b < 0);
  return !__builtin_mul_overflow(a, b, &out) ? clamp(out) : negative ? -FARTHEST : FARTHEST;
}

static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most_of(int64_t a, int64_t b) { return a > b ? a : b; }

static interval multiply_intervals(interval a, interval b) {
  int64_t p = multiply(a.least, b.least), q = multiply(a.least, b.most), r = multiply(a.most, b.least),
          s = multiply(a.most, b.most);
  return (interval){least_of(least_of(p, q), least_of(r, s)), most_of(most_of(p, q), most_of(r, s))};
}

/* A quotient grows with its dividend and is monotonic in its divisor, so its extremes are at the bounds of both. */
static interval divide_intervals(interval a, interval b, bool ceiling) {
  if (b.least <= 0) {
    return anything;
  }
  int64_t up = ceiling ? 1 : 0;
  return (interval){
      least_of(floor_div(a.least, b.least), floor_div(a.least, b.most)),
      clamp(most_of(floor_div(a.most, b.least), floor_div(a.most, b.most)) + up),
  };
}

static interval interval_of(const dim_table *t, dim d);

static interval combine(dim_kind kind, interval a, interval b) {
  switch (kind) {
    case DIM_ADD: return (interval){clamp(a.least + b.least), clamp(a.most + b.most)};
    case DIM_MUL: return multiply_intervals(a, b);
    case DIM_FLOORDIV: return divide_intervals(a, b, false);
    case DIM_CEILDIV: return divide_intervals(a, b, true);
    case DIM_MOD: return b.least > 0 ? (interval){0, b.most - 1} : not_negative;
    case DIM_MAX_OF: return (interval){most_of(a.least, b.least), most_of(a.most, b.most)};
    case DIM_MIN_OF: return (interval){least_of(a.least, b.least), least_of(a.most, b.most)};
    default: return anything;
  }
}

static interval interval_of(const dim_table *t, dim d) {
  if (dim_is_const(d)) {
    return (interval){d, d};
  }
  const dim_node *n = dim_at(t, d);
  switch (n->kind) {
    case DIM_SYMBOL: return n->has_range ? (interval){n->least, n->most} : not_negative;
    case DIM_BOUNDED: return (interval){0, n->lhs};
    case DIM_NEG: {
      interval a = interval_of(t, n->lhs);
      return (interval){-a.most, -a.least};
    }
    default: return combine(n->kind, interval_of(t, n->lhs), interval_of(t, n->rhs));
  }
}

bool dim_in_range_never_negative(const dim_table *t, dim d) {
  return d != DIM_OVERFLOW && interval_of(t, d).least >= 0;
}
