/* guard.c - answers questions about sizes by proofs or hints, and adds guards; see guard.h. */
#include "base/dim/guard.h"

#include "base/arith.h"
#include "base/dim/dim_nodes.h"
#include "base/dim/extreme.h"

/* --- hints --- */

void dim_set_hint(dim_table *t, dim symbol, int64_t hint) {
  assert(dim_get_kind(t, symbol) == DIM_SYMBOL && hint >= 0);
  dim_node *n = &t->nodes[-(symbol + 1)];
  n->has_hint = true;
  n->hint = hint;
}

typedef struct hints {
  const dim_table *table;
  bool missing;
} hints;

static int64_t hint_of(void *data, dim symbol) {
  hints *h = data;
  const dim_node *n = dim_at(h->table, symbol);
  h->missing |= !n->has_hint;
  return n->hint;
}

bool dim_hint(const dim_table *t, dim d, int64_t *out) {
  hints h = {.table = t};
  return dim_evaluate(t, d, hint_of, &h, out) && !h.missing;
}

/* --- guards --- */

void dim_set_source(dim_table *t, const char *source) { t->source = source ? source : ""; }

static void add_guard(dim_table *t, dim_relation relation, dim a, dim b) {
  for (uint32_t k = 0; k < t->n_guards; k++) {
    const dim_guard *g = &t->guards[k];
    if (g->relation == relation && g->a == a && g->b == b) {
      return;
    }
  }
  *ARENA_PUSH(t->arena, t->guards, t->n_guards, t->cap_guards) = (dim_guard){relation, a, b, t->source};
}

void dim_forget_guards(dim_table *t, uint32_t n, bool keep_equations) {
  uint32_t kept = n;
  for (uint32_t k = n; k < t->n_guards; k++) {
    if (keep_equations && t->guards[k].relation == DIM_EQUAL) {
      t->guards[kept++] = t->guards[k];
    }
  }
  t->n_guards = kept;
}

const dim_guard *dim_guards(const dim_table *t, uint32_t *n) {
  *n = t->n_guards;
  return t->guards;
}

/* --- ranges --- */

static int64_t most_of(int64_t a, int64_t b) { return a > b ? a : b; }

/* If d is a multiple of a symbol plus a constant, the range of d bounds the symbol, too. */
static void bound_symbol(dim_table *t, dim d, int64_t least, int64_t most) {
  dim symbol;
  int64_t factor, rest;
  if (!dim_linear(t, d, &symbol, &factor, &rest)) {
    return;
  }
  dim_node *n = &t->nodes[-(symbol + 1)];
  int64_t low = most_of(0, floor_div(least - rest + factor - 1, factor)), high = floor_div(most - rest, factor);
  n->least = n->has_range ? most_of(n->least, low) : low;
  n->most = n->has_range && n->most < high ? n->most : high;
  n->has_range = true;
}

bool dim_set_range(dim_table *t, dim d, int64_t least, int64_t most) {
  assert(least >= 0 && least <= most && most <= DIM_MAX);
  if (dim_is_const(d)) {
    return d >= least && d <= most;
  }
  if (least > 0) {
    add_guard(t, DIM_AT_MOST, least, d);
  }
  add_guard(t, DIM_AT_MOST, d, most);
  bound_symbol(t, d, least, most);
  return true;
}

/* --- questions --- */

static dim pin_symbol(void *data, dim symbol) {
  dim_table *t = data;
  const dim_node *n = dim_at(t, symbol);
  if (n->has_hint) {
    add_guard(t, DIM_EQUAL, symbol, n->hint);
  }
  return symbol;
}

static dim find_symbol_without_hint(void *data, dim symbol) {
  hints *h = data;
  h->missing |= !dim_at(h->table, symbol)->has_hint;
  return symbol;
}

static bool has_hints(dim_table *t, dim d) {
  hints h = {.table = t};
  (void)dim_substitute(t, d, find_symbol_without_hint, &h);
  return !h.missing;
}

const char *dim_unanswered(const dim_table *t) { return t->unanswered; }

static void note_unanswered(dim_table *t) {
  t->unanswered = t->unanswered ? t->unanswered : t->source ? t->source : "";
}

const char *dim_unhinted(const dim_table *t) { return t->unhinted; }

static void note_unhinted(dim_table *t) { t->unhinted = t->unhinted ? t->unhinted : t->source ? t->source : ""; }

/* Evaluates a and b at the hints.  Returns false if a hint is missing, or if dim_evaluate fails, since a number is too
 * large or a divisor is not positive.  Notes the question as one without hints, or as unanswered; in the second case
 * pins its symbols. */
static bool both_hints(dim_table *t, dim a, dim b, int64_t *x, int64_t *y) {
  if (dim_hint(t, a, x) && dim_hint(t, b, y)) {
    return true;
  }
  if (has_hints(t, a) && has_hints(t, b)) {
    note_unanswered(t);
    (void)dim_substitute(t, a, pin_symbol, t);
    (void)dim_substitute(t, b, pin_symbol, t);
  } else {
    note_unhinted(t);
  }
  return false;
}

static bool is_overflow(dim_table *t, dim a, dim b) {
  bool overflow = a == DIM_OVERFLOW || b == DIM_OVERFLOW;
  if (overflow) {
    note_unanswered(t);
  }
  return overflow;
}

static bool never_negative(const dim_table *t, dim d) {
  return dim_never_negative(t, d) || dim_in_range_never_negative(t, d);
}

/* Returns true, and sets *out, if a - b is a constant; it may be negative. */
static bool known_difference(dim_table *t, dim a, dim b, int64_t *out) {
  return dim_signed_value(t, dim_signed_sub(t, a, b), out);
}

bool dim_known_equal(dim_table *t, dim a, dim b) {
  int64_t difference;
  return a != DIM_OVERFLOW && b != DIM_OVERFLOW && (a == b || (known_difference(t, a, b, &difference) && !difference));
}

static bool known_less(dim_table *t, dim a, dim b) {
  return never_negative(t, dim_signed_sub(t, dim_signed_sub(t, b, a), 1));
}

bool dim_equal(dim_table *t, dim a, dim b) {
  int64_t difference, x, y;
  if (is_overflow(t, a, b)) {
    return false;
  }
  if (a == b || (dim_is_const(a) && dim_is_const(b))) {
    return a == b;
  }
  if (known_difference(t, a, b, &difference)) {
    return difference == 0;
  }
  if (known_less(t, a, b) || known_less(t, b, a) || !both_hints(t, a, b, &x, &y)) {
    return false;
  }
  add_guard(t, x == y ? DIM_EQUAL : DIM_NOT_EQUAL, a, b);
  return x == y;
}

bool dim_happens_equal(dim_table *t, dim a, dim b) {
  int64_t x, y;
  return dim_known_equal(t, a, b) ||
         (!t->forgoes_special_cases && dim_hint(t, a, &x) && dim_hint(t, b, &y) && x == y && dim_equal(t, a, b));
}

void dim_forgo_special_cases(dim_table *t) { t->forgoes_special_cases = true; }

bool dim_known_at_most(dim_table *t, dim a, dim b) {
  int64_t difference;
  if (a == DIM_OVERFLOW || b == DIM_OVERFLOW) {
    return false;
  }
  if (dim_is_const(a) && dim_is_const(b)) {
    return a <= b;
  }
  if (known_difference(t, a, b, &difference)) {
    return difference <= 0;
  }
  return never_negative(t, dim_signed_sub(t, b, a));
}

bool dim_at_most(dim_table *t, dim a, dim b) {
  int64_t x, y;
  if (dim_known_at_most(t, a, b)) {
    return true;
  }
  if (is_overflow(t, a, b) || known_less(t, b, a) || !both_hints(t, a, b, &x, &y)) {
    return false;
  }
  if (x <= y) {
    add_guard(t, DIM_AT_MOST, a, b);
  } else {
    add_guard(t, DIM_LESS, b, a);
  }
  return x <= y;
}

bool dim_happens_greater(dim_table *t, dim a, dim b) {
  int64_t x, y;
  bool greater = dim_hint(t, a, &x) && dim_hint(t, b, &y) && x > y;
  return greater ? dim_at_most(t, b, a) : a != b && !dim_at_most(t, a, b);
}

int64_t dim_pin(dim_table *t, dim d) {
  int64_t hint, unused;
  if (!both_hints(t, d, 0, &hint, &unused)) {
    return 0;
  }
  t->pinned_extreme |= dim_contains_extreme(t, d);
  (void)dim_substitute(t, d, pin_symbol, t);
  return hint;
}

/* --- checking and solving --- */

bool dim_relation_holds(dim_relation relation, int64_t a, int64_t b) {
  switch (relation) {
    case DIM_EQUAL: return a == b;
    case DIM_NOT_EQUAL: return a != b;
    case DIM_AT_MOST: return a <= b;
    case DIM_LESS: return a < b;
    default: return false;
  }
}

bool dim_guard_holds(const dim_table *t, const dim_guard *g, dim_value_fn *value, void *data) {
  int64_t a, b;
  return dim_evaluate(t, g->a, value, data, &a) && dim_evaluate(t, g->b, value, data, &b) &&
         dim_relation_holds(g->relation, a, b);
}

const char *dim_guard_print(arena *a, const dim_table *t, const dim_guard *g) {
  static const char *const signs[] = {
      [DIM_EQUAL] = "==", [DIM_NOT_EQUAL] = "!=", [DIM_AT_MOST] = "<=", [DIM_LESS] = "<"};
  return arena_printf(a, "%s %s %s", dim_print(a, t, g->a), signs[g->relation], dim_print(a, t, g->b));
}

typedef struct search {
  dim symbol;
  bool found;
} search;

static dim find_symbol(void *data, dim symbol) {
  search *s = data;
  s->found |= symbol == s->symbol;
  return symbol;
}

static bool contains(dim_table *t, dim d, dim symbol) {
  search s = {symbol, false};
  (void)dim_substitute(t, d, find_symbol, &s);
  return s.found;
}

/* Solves sum = 0 for the symbol in `term`, a term of the sum.  Returns false unless the term is a symbol with the
 * factor 1 or -1 that is nowhere else in the sum. */
static bool solve_term(dim_table *t, dim sum, dim term, dim *symbol, dim *equals) {
  bool negative = dim_get_kind(t, term) == DIM_NEG;
  dim x = negative ? dim_lhs(t, term) : term;
  if (dim_get_kind(t, x) != DIM_SYMBOL) {
    return false;
  }
  dim rest = negative ? dim_signed_add(t, sum, x) : dim_signed_sub(t, sum, x);
  if (rest == DIM_OVERFLOW || contains(t, rest, x)) {
    return false;
  }
  *symbol = x;
  *equals = negative ? rest : dim_signed_sub(t, 0, rest);
  return *equals != DIM_OVERFLOW;
}

static bool solve_sum(dim_table *t, dim sum, dim *symbol, dim *equals) {
  for (dim d = sum; d != DIM_OVERFLOW; d = dim_lhs(t, d)) {
    bool last = dim_get_kind(t, d) != DIM_ADD;
    if (solve_term(t, sum, last ? d : dim_rhs(t, d), symbol, equals)) {
      return true;
    }
    if (last) {
      break;
    }
  }
  return false;
}

/* If no side of the guard is a symbol alone, the terms of a - b are tried from the last one on: x+y = 8 gives y = 8-x.
 * Then factors are cancelled: a*n = b*n gives a = b, unless this is false at the hints, where n is 0. */
bool dim_guard_solve(dim_table *t, const dim_guard *g, dim *symbol, dim *equals) {
  if (g->relation != DIM_EQUAL) {
    return false;
  }
  /* A side that is a symbol alone is preferred: total = past+seq gives total, and not past or seq. */
  for (int side = 0; side < 2; side++) {
    dim x = side ? g->a : g->b, other = side ? g->b : g->a;
    if (dim_get_kind(t, x) == DIM_SYMBOL && !contains(t, other, x)) {
      *symbol = x;
      *equals = other;
      return true;
    }
  }
  dim sum = dim_signed_sub(t, g->a, g->b);
  int64_t x, y;
  if (sum == DIM_OVERFLOW || solve_sum(t, sum, symbol, equals)) {
    return sum != DIM_OVERFLOW;
  }
  return solve_sum(t, dim_cancel(t, sum), symbol, equals) && dim_hint(t, *symbol, &x) && dim_hint(t, *equals, &y) &&
         x == y;
}
