/* extreme.c - see extreme.h. */
#include "base/dim/extreme.h"

#include "base/dim/dim_nodes.h"

void dim_decide_extremes(dim_table *t) { t->decides_extremes = true; }

/* Returns true if an expression must take the place of the question which size is smaller. */
static bool is_open(dim_table *t, dim a, dim b) {
  bool open = !t->decides_extremes && !dim_known_at_most(t, a, b) && !dim_known_at_most(t, b, a);
  t->has_extremes |= open;
  return open;
}

dim dim_smaller(dim_table *t, dim a, dim b) {
  return is_open(t, a, b) ? dim_min(t, a, b) : a == b || dim_at_most(t, a, b) ? a : b;
}

dim dim_larger(dim_table *t, dim a, dim b) {
  return is_open(t, a, b) ? dim_max(t, a, b) : a == b || dim_at_most(t, a, b) ? b : a;
}

bool dim_contains_extreme(const dim_table *t, dim d) {
  if (dim_is_const(d) || d == DIM_OVERFLOW) {
    return false;
  }
  dim_kind kind = dim_get_kind(t, d);
  return kind == DIM_MIN_OF || kind == DIM_MAX_OF || dim_contains_extreme(t, dim_lhs(t, d)) ||
         dim_contains_extreme(t, dim_rhs(t, d));
}

bool dim_must_decide_extremes(const dim_table *t, bool failed) {
  bool must = t->pinned_extreme || failed;
  for (uint32_t k = 0; k < t->n_guards && !must; k++) {
    const dim_guard *g = &t->guards[k];
    must = g->relation == DIM_EQUAL && (dim_contains_extreme(t, g->a) || dim_contains_extreme(t, g->b));
  }
  return must && t->has_extremes && !t->decides_extremes;
}
