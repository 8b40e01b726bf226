/* answer.c - see answer.h. */
#include "base/dim/answer.h"

typedef struct changed {
  const dim_table *table;
  const dim_change *change;
} changed;

static int64_t changed_value(void *data, dim symbol) {
  const changed *x = data;
  int64_t hint = 0;
  (void)dim_hint(x->table, symbol, &hint);
  return !x->change->symbol || x->change->symbol == symbol ? x->change->value : hint;
}

bool dim_changed_hint(const dim_table *t, dim d, const dim_change *c, int64_t *out) {
  return dim_evaluate(t, d, changed_value, &(changed){t, c}, out);
}

bool dim_breaks_guard(const dim_table *t, const dim_guard *g, const dim_change *c) {
  int64_t a, b;
  return dim_changed_hint(t, g->a, c, &a) && dim_changed_hint(t, g->b, c, &b) && !dim_relation_holds(g->relation, a, b);
}

/* Sets c->value to the value nearest to `hint` at which the guard does not hold. */
static bool find_value(const dim_table *t, const dim_guard *g, int64_t hint, dim_change *c) {
  enum { FARTHEST = 1 << 13 };
  for (int64_t far = 1; far <= FARTHEST; far++) {
    for (int sign = 1; sign >= -1; sign -= 2) {
      c->value = hint + sign * far;
      if (c->value > 0 && dim_breaks_guard(t, g, c)) {
        return true;
      }
    }
  }
  return false;
}

uint32_t dim_changes_of_answer(dim_table *t, const dim_guard *g, dim_change changes[DIM_CHANGES]) {
  dim_symbols all = {0};
  uint32_t n = 0;
  int64_t hint;
  dim_add_symbols(t, g->a, &all);
  dim_add_symbols(t, g->b, &all);
  for (uint32_t k = 0; k <= all.n; k++) {
    bool every = k == all.n;
    changes[n].symbol = every ? 0 : all.items[k];
    bool possible = every ? all.n > 1 && dim_hint(t, all.items[0], &hint) : dim_hint(t, all.items[k], &hint);
    n += possible && find_value(t, g, hint, &changes[n]);
  }
  return n;
}
