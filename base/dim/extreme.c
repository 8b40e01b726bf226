/* extreme.c - the arithmetic of minimum and maximum, and extreme.h. */
#include "base/dim/extreme.h"

#include <string.h>

#include "base/dim/dim_nodes.h"

bool dim_never_negative(const dim_table *t, dim d) {
  if (d == DIM_OVERFLOW) {
    return false;
  }
  switch (dim_get_kind(t, d)) {
    case DIM_CONST:
    case DIM_SYMBOL:
    case DIM_BOUNDED:
    case DIM_MOD: return true;
    case DIM_ADD:
    case DIM_MUL: return dim_never_negative(t, dim_at(t, d)->lhs) && dim_never_negative(t, dim_at(t, d)->rhs);
    case DIM_FLOORDIV:
    case DIM_CEILDIV: return dim_never_negative(t, dim_at(t, d)->lhs);
    case DIM_MAX_OF: return dim_never_negative(t, dim_at(t, d)->lhs) || dim_never_negative(t, dim_at(t, d)->rhs);
    case DIM_MIN_OF: return dim_never_negative(t, dim_at(t, d)->lhs) && dim_never_negative(t, dim_at(t, d)->rhs);
    case DIM_NEG: break;
  }
  return false;
}

static bool at_least(dim_table *t, dim a, dim b) { return dim_never_negative(t, dim_signed_sub(t, a, b)); }

/* The most operands of a maximum or minimum of more than two numbers; one with more becomes DIM_OVERFLOW. */
enum { OPERANDS_MAX = 64 };

typedef struct extremes {
  int n;
  bool overflow;
  /* sorted; an item that is known to be at most another one (for a minimum: at least another one) is left out */
  dim items[OPERANDS_MAX];
} extremes;

static void extremes_add(dim_table *t, dim_kind kind, extremes *list, dim d) {
  int kept = 0, at = 0;
  for (int i = 0; i < list->n; i++) {
    dim other = list->items[i];
    if (kind == DIM_MAX_OF ? at_least(t, other, d) : at_least(t, d, other)) {
      return; /* the list is unchanged: no item was dropped yet */
    }
  }
  for (int i = 0; i < list->n; i++) {
    dim other = list->items[i];
    if (!(kind == DIM_MAX_OF ? at_least(t, d, other) : at_least(t, other, d))) {
      list->items[kept++] = other;
    }
  }
  if (kept == OPERANDS_MAX) {
    list->overflow = true;
    return;
  }
  while (at < kept && dim_compare(t, list->items[at], d) < 0) {
    at++;
  }
  memmove(&list->items[at + 1], &list->items[at], (size_t)(kept - at) * sizeof d);
  list->items[at] = d;
  list->n = kept + 1;
}

dim dim_extreme(dim_table *t, dim_kind kind, dim a, dim b) {
  if (a == DIM_OVERFLOW || b == DIM_OVERFLOW) {
    return DIM_OVERFLOW;
  }
  extremes list = {0};
  for (int side = 0; side < 2; side++) {
    dim d = side ? b : a;
    for (; dim_get_kind(t, d) == kind; d = dim_at(t, d)->lhs) {
      extremes_add(t, kind, &list, dim_at(t, d)->rhs);
    }
    extremes_add(t, kind, &list, d);
  }
  dim all = list.overflow ? DIM_OVERFLOW : list.items[0];
  for (int i = 1; i < list.n; i++) {
    all = dim_intern(t, kind, all, list.items[i]);
  }
  return all;
}

dim dim_max(dim_table *t, dim a, dim b) { return dim_whole(t, dim_extreme(t, DIM_MAX_OF, a, b)); }

dim dim_min(dim_table *t, dim a, dim b) { return dim_whole(t, dim_extreme(t, DIM_MIN_OF, a, b)); }

void dim_decide_extremes(dim_table *t) { t->decides_extremes = true; }

/* Returns true if an expression must take the place of the question which size is smaller. */
static bool is_open(dim_table *t, dim a, dim b) {
  bool open = !t->decides_extremes && !dim_known_at_most(t, a, b) && !dim_known_at_most(t, b, a);
  t->has_extremes |= open;
  return open;
}

dim dim_smaller(dim_table *t, dim a, dim b) {
  return is_open(t, a, b) ? dim_min(t, a, b) : dim_happens_greater(t, a, b) ? b : a;
}

dim dim_larger(dim_table *t, dim a, dim b) {
  return is_open(t, a, b) ? dim_max(t, a, b) : dim_happens_greater(t, a, b) ? a : b;
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
