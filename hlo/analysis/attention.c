/* attention.c - see attention.h. */
#include <math.h>

#include "hlo/analysis/attention.h"

#include "hlo/analysis/pattern.h"
#include "hlo/analysis/queries.h"
#include "hlo/analysis/row_space.h"

static dim_table *dims_of(const hlo_instr *i) { return i->parent->module->dims; }

static dim elements_of(const hlo_instr *i, const shape *s) { return shape_dim_product(dims_of(i), s, 0, s->rank); }

/* --- members --- */

static bool is_member(const hlo_attention *a, const hlo_instr *i) {
  for (uint32_t k = 0; k < a->n; k++) {
    if (a->members[k] == i) {
      return true;
    }
  }
  return false;
}

/* Makes `i` a member of the attention (hlo_attention.members).  Returns false if there are too many members. */
static bool add(hlo_attention *a, hlo_instr *i) {
  if (is_member(a, i)) {
    return true;
  }
  if (a->n == HLO_ATTENTION_MEMBERS) {
    return false;
  }
  a->members[a->n++] = i;
  return true;
}

/* Returns true if v matches p, and adds the matched instructions to a->members.  Free instructions (hlo_is_free) among
 * them are not added, since a fusion copies them anyway. */
static bool match(hlo_attention *a, hlo_value v, const hlo_pattern *p) {
  hlo_matched m;
  bool fits = hlo_match_listed(v, p, &m);
  for (uint32_t k = 0; fits && k < m.n; k++) {
    fits = hlo_is_free(m.list[k]) || add(a, m.list[k]);
  }
  return fits;
}

static bool is_view(const hlo_instr *i) {
  return i->op == HLO_RESHAPE || i->op == HLO_SLICE || i->op == HLO_TRANSPOSE || i->op == HLO_BROADCAST;
}

/* Returns the array of which v is a view, and adds the views to a->members as long as each is used only once.  The
 * returned value becomes an operand of the fusion.  Therefore it is v itself or the result of an instruction that is
 * not free (hlo_is_free), since a fusion copies its free operands. */
static hlo_value behind_views(hlo_attention *a, hlo_value v, unsigned views) {
  hlo_value shown = v;
  uint32_t n = a->n;
  while (views & HLO_OPERAND_VIEWS && is_view(v.def) && hlo_used_once(v) && add(a, v.def)) {
    v = v.def->operands[0];
    if (!hlo_is_free(v.def)) {
      shown = v;
      n = a->n;
    }
  }
  a->n = n; /* removes views of a free instruction from a->members again */
  return shown;
}

/* Returns true if i is a root, or if an instruction that is not in a->members uses i.  A free user (hlo_is_free), such
 * as a broadcast, is copied into its own users, so that those count instead. */
static bool escapes(const hlo_attention *a, const hlo_instr *i) {
  for (uint32_t k = 0; k < i->n_uses; k++) {
    const hlo_instr *u = i->uses[k].user;
    if (hlo_is_free(u) ? escapes(a, u) : !is_member(a, u)) {
      return true;
    }
  }
  return hlo_is_root(hlo_result((hlo_instr *)i, 0));
}

/* --- chains of elementwise operations --- */

enum { MOST_SEEN = 64 };

/* A search for the instructions that compute a value from `source` by position-wise operations (hlo_is_position_wise).
 * seen[] are the n instructions visited so far, and depends[k] says whether seen[k] depends on `source`.  `fits`
 * becomes false if there are too many instructions. */
typedef struct chain {
  hlo_attention *a;
  const hlo_instr *source;
  dim elements; /* the number of elements of `source` and of each array computed from it */
  uint32_t n;
  const hlo_instr *seen[MOST_SEEN];
  bool depends[MOST_SEEN];
  bool fits;
} chain;

/* Adds the instructions between c->source and v to c->a->members.  Returns false if v does not depend on c->source. */
static bool follow(chain *c, hlo_value v) {
  hlo_instr *i = v.def;
  if (i == c->source) {
    return true;
  }
  if (!hlo_is_position_wise(i) || i->n_results != 1 || elements_of(i, &i->shapes[0]) != c->elements) {
    return false;
  }
  for (uint32_t k = 0; k < c->n; k++) {
    if (c->seen[k] == i) {
      return c->depends[k];
    }
  }
  if (c->n == MOST_SEEN) {
    c->fits = false;
    return false;
  }
  uint32_t at = c->n++;
  c->seen[at] = i;
  c->depends[at] = false;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    c->depends[at] |= follow(c, i->operands[k]);
  }
  if (c->depends[at]) {
    c->fits = add(c->a, i) && c->fits;
  }
  return c->depends[at];
}

static bool take_chain(hlo_attention *a, hlo_value v, const hlo_instr *source) {
  chain c = {.a = a, .source = source, .elements = elements_of(source, &source->shapes[0]), .fits = true};
  return follow(&c, v) && c.fits;
}

/* What is searched for: an instruction of operation `op`, with the reducer `how` if it is a reduction. */
typedef struct wanted {
  hlo_op op;
  hlo_reducer how;
} wanted;

/* Searches back from v for the instruction that *w describes, through at most *steps position-wise
 * operations.  Returns the first that it finds, or NULL. */
static hlo_instr *find_source(hlo_value v, const wanted *w, int *steps) {
  hlo_instr *i = v.def;
  if (i->op == w->op && (i->op != HLO_REDUCE || hlo_int(i, HLO_ATTR_REDUCER) == w->how)) {
    return i;
  }
  hlo_instr *found = NULL;
  bool goes_on = hlo_is_position_wise(i) && (*steps)-- > 0;
  for (uint32_t k = 0; goes_on && k < i->n_operands && !found; k++) {
    if (elements_of(i, hlo_shape(i->operands[k])) == elements_of(i, &i->shapes[0])) {
      found = find_source(i->operands[k], w, steps);
    }
  }
  return found;
}

static hlo_instr *source_of(hlo_value v, wanted w) {
  int steps = MOST_SEEN;
  return find_source(v, &w, &steps);
}

/* --- softmax --- */

#define P_RESHAPED(pattern) P_BEHIND(HLO_RESHAPE, HLO_ATTENTION_MEMBERS, pattern)

/* Returns true if v is a broadcast, perhaps reshaped, of one value for each row; sets *kept to the operand of the
 * broadcast. */
static bool find_spread(const hlo_row_space *s, hlo_attention *a, hlo_value v, hlo_value *kept) {
  hlo_value spread;
  return match(a, v, P_RESHAPED(P_AS(&spread, P_OP(HLO_BROADCAST, P_ANY(kept))))) && hlo_broadcasts_rows(s, spread.def);
}

/* Returns true if the elements of each row are contiguous and the rows follow each other. */
static bool is_last(const hlo_row_space *s) { return s->rank == 2 && !s->gone[0] && s->gone[1]; }

/* Follows reshapes and broadcasts back from v, and returns the value before them. */
static hlo_value below_broadcast(hlo_value v) {
  while (v.def->op == HLO_RESHAPE || v.def->op == HLO_BROADCAST) {
    v = v.def->operands[0];
  }
  return v;
}

/* Returns the reduction of `full` by the reducer `how` from which v is computed, or NULL if there is none. */
static hlo_instr *find_reduction(hlo_attention *a, hlo_value v, hlo_reducer how, hlo_value full) {
  hlo_instr *i = source_of(below_broadcast(v), (wanted){HLO_REDUCE, how});
  bool found = i && match(a, hlo_result(i, 0), P_OP(HLO_REDUCE, P_RESHAPED(P_SAME(&full))));
  return found ? i : NULL;
}

/* If p is rounded from a wider float type, in which softmax is then computed, returns the value before rounding;
 * otherwise returns p. */
static hlo_value before_rounding(hlo_attention *a, hlo_value p) {
  hlo_value wide, rounded;
  bool rounds = hlo_match(p, P_RESHAPED(P_AS(&rounded, P_OP(HLO_CONVERT, P_ANY(&wide))))) &&
                dtype_is_float(hlo_type(wide)) && dtype_is_float(hlo_type(rounded)) &&
                dtype_bytes(hlo_type(rounded)) < dtype_bytes(hlo_type(wide));
  return rounds && match(a, p, P_RESHAPED(P_OP(HLO_CONVERT, P_ANY(&wide)))) ? wide : p;
}

/* If p is 0 where another value is NaN, and that value elsewhere, sets a->zero_where_nan and returns the other value;
 * otherwise returns p. */
static hlo_value before_zeros(hlo_attention *a, hlo_value p) {
  hlo_value test, x, zero;
  const hlo_pattern *is_nan = P_AS(&test, P_OP(HLO_COMPARE, P_ANY(&x), P_SAME(&x)));
  const hlo_pattern *selected = P_RESHAPED(P_OP(HLO_SELECT, is_nan, P_ANY(&zero), P_SAME(&x)));
  if (!hlo_match(p, selected) || hlo_int(test.def, HLO_ATTR_COMPARISON) != HLO_NE || !hlo_is_splat(zero, 0) ||
      !match(a, p, selected)) {
    return p;
  }
  a->zero_where_nan = true;
  return x;
}

/* Returns the quotient from which the weights p of the sum over v come. */
static hlo_value quotient_of(hlo_attention *a, hlo_value p) {
  return before_zeros(a, before_rounding(a, before_zeros(a, p)));
}

static bool is_plain(const hlo_attention *a) {
  return hlo_before_reshapes(a->shift).def == a->max && hlo_before_reshapes(a->total).def == a->sum;
}

/* Returns true if p is exp(scores - shift) / total, perhaps rounded, and perhaps 0 where that is NaN; shift comes from
 * the maximum of the scores, and total from the sum of exp.  Sets scores, exp, shift, total, max, sum and keys of *a,
 * and a->rows to the number of rows in all batches. */
static bool find_softmax(hlo_attention *a, hlo_value p) {
  hlo_row_space s;
  hlo_value exp, shifts, totals;
  const hlo_pattern *exponent = P_OP(HLO_SUB, P_RESHAPED(P_ANY(&a->scores)), P_ANY(&shifts));
  const hlo_pattern *weight = P_AS(&exp, P_OP(HLO_EXP, P_RESHAPED(exponent)));
  if (!match(a, quotient_of(a, p), P_RESHAPED(P_OP(HLO_DIV, P_RESHAPED(weight), P_ANY(&totals))))) {
    return false;
  }
  a->exp = exp.def;
  a->max = find_reduction(a, shifts, HLO_REDUCE_MAX, a->scores);
  a->sum = find_reduction(a, totals, HLO_REDUCE_ADD, exp);
  if (!a->max || !a->sum || !hlo_row_space_of(a->max, &s) || !is_last(&s) || !hlo_reduces_rows(&s, a->sum)) {
    return false;
  }
  a->keys = s.length;
  a->rows = s.rows;
  bool found = find_spread(&s, a, shifts, &a->shift) && take_chain(a, a->shift, a->max) &&
               find_spread(&s, a, totals, &a->total) && take_chain(a, a->total, a->sum);
  a->total_sees_max = found && take_chain(a, a->total, a->max);
  return found && (!a->zero_where_nan || is_plain(a));
}

/* --- the dots --- */

static bool is_listed(const hlo_attr *list, int d) {
  for (uint32_t k = 0; k < list->n; k++) {
    if (list->ints[k] == d) {
      return true;
    }
  }
  return false;
}

/* Returns the product of the dimensions of v that are listed in `some`. */
static dim product_of(hlo_value v, const hlo_attr *some) {
  dim n = 1;
  for (uint32_t k = 0; k < some->n; k++) {
    n = dim_mul(dims_of(v.def), n, hlo_shape(v)->dims[some->ints[k]]);
  }
  return n;
}

/* Returns the product of the dimensions of v that are in neither list. */
static dim product_of_rest(hlo_value v, const hlo_attr *some, const hlo_attr *others) {
  dim n = 1;
  for (int d = 0; d < hlo_rank(v); d++) {
    n = is_listed(some, d) || is_listed(others, d) ? n : dim_mul(dims_of(v.def), n, hlo_shape(v)->dims[d]);
  }
  return n;
}

/* Returns true if the dimensions of pv's first operand are batch, rows and keys, in this order. */
static bool reads_rows(const hlo_attention *a) {
  const hlo_attr *batch = hlo_attr_of(a->pv, HLO_ATTR_LHS_BATCH), *contract = hlo_attr_of(a->pv, HLO_ATTR_LHS_CONTRACT);
  hlo_value p = a->pv->operands[0];
  bool fits = true;
  for (uint32_t k = 0; k < batch->n; k++) {
    fits = fits && batch->ints[k] == k;
  }
  for (uint32_t k = 0; k < contract->n; k++) {
    fits = fits && contract->ints[k] == hlo_rank(p) - (int)contract->n + (int)k;
  }
  return fits && product_of(p, contract) == a->keys && product_of(p, batch) == a->batches;
}

/* Finds the dot of q and k from which the scores come.  Before the call, a->rows is the number of rows in all
 * batches; afterwards it is the number of rows in one batch. */
static bool find_dots(hlo_attention *a) {
  a->qk = source_of(a->scores, (wanted){.op = HLO_DOT});
  if (!a->qk || !take_chain(a, a->scores, a->qk) || !add(a, a->qk)) {
    return false;
  }
  hlo_value q = a->qk->operands[0], k = a->qk->operands[1];
  const hlo_attr *batch = hlo_attr_of(a->qk, HLO_ATTR_RHS_BATCH), *contract = hlo_attr_of(a->qk, HLO_ATTR_RHS_CONTRACT);
  dim all_rows = a->rows;
  a->batches = product_of(k, batch);
  a->rows = product_of_rest(q, hlo_attr_of(a->qk, HLO_ATTR_LHS_BATCH), hlo_attr_of(a->qk, HLO_ATTR_LHS_CONTRACT));
  return dim_mul(dims_of(a->qk), a->batches, a->rows) == all_rows && product_of_rest(k, batch, contract) == a->keys &&
         reads_rows(a);
}

static hlo_instr *find_root(hlo_instr *pv, unsigned views) {
  hlo_instr *user = views & HLO_RESULT_VIEW ? hlo_only_user(hlo_result(pv, 0)) : NULL;
  return user && user->op == HLO_TRANSPOSE ? user : pv;
}

static bool has_elements(const hlo_instr *pv) {
  const shape *s = &pv->shapes[0];
  return s->kind == SHAPE_ARRAY && shape_is_exact(dims_of(pv), s) && !shape_is_empty(s);
}

bool hlo_find_attention(hlo_instr *pv, unsigned views, hlo_attention *a) {
  *a = (hlo_attention){.pv = pv};
  if (pv->op != HLO_DOT || !has_elements(pv) || !find_softmax(a, pv->operands[0]) || !find_dots(a)) {
    return false;
  }
  a->q = behind_views(a, a->qk->operands[0], views);
  a->k = behind_views(a, a->qk->operands[1], views);
  a->v = behind_views(a, pv->operands[1], views);
  a->root = find_root(pv, views);
  if (!add(a, pv) || !add(a, a->root)) {
    return false;
  }
  for (uint32_t k = 0; k < a->n; k++) {
    if (a->members[k] != a->root && escapes(a, a->members[k])) {
      return false;
    }
  }
  return true;
}

bool hlo_attention_of_fusion(const hlo_instr *i, hlo_attention *a) {
  if (i->op != HLO_FUSION || hlo_int(i, HLO_ATTR_FUSION) != HLO_FUSION_ATTENTION || i->n_results != 1) {
    return false;
  }
  hlo_instr *root = hlo_callee(i, 0)->roots[0].def;
  return hlo_find_attention(root->op == HLO_TRANSPOSE ? root->operands[0].def : root,
                            HLO_OPERAND_VIEWS | HLO_RESULT_VIEW, a) &&
         a->q.def->op == HLO_PARAMETER && a->k.def->op == HLO_PARAMETER && a->v.def->op == HLO_PARAMETER;
}

/* --- the shift --- */

static bool is_infinite(hlo_value v) { return hlo_is_splat(v, INFINITY) || hlo_is_splat(v, -INFINITY); }

/* Returns the number of the operand of `select` that is chosen where `max` is finite.  Returns 0 unless the condition
 * tests whether `max` is finite, or compares it with an infinity. */
static uint32_t chosen_if_finite(const hlo_instr *select, const hlo_instr *max) {
  const hlo_instr *c = select->operands[0].def;
  uint32_t chosen = 1;
  for (; c->op == HLO_NOT; c = c->operands[0].def) {
    chosen = 3 - chosen;
  }
  if (c->op == HLO_IS_FINITE) {
    return c->operands[0].def == max ? chosen : 0;
  }
  bool asks = c->op == HLO_COMPARE && ((c->operands[0].def == max && is_infinite(c->operands[1])) ||
                                       (c->operands[1].def == max && is_infinite(c->operands[0])));
  switch (asks ? hlo_int(c, HLO_ATTR_COMPARISON) : HLO_LT) {
    case HLO_EQ: return 3 - chosen;
    case HLO_NE: return chosen;
    default: return 0;
  }
}

bool hlo_shifts_by_maximum(const hlo_attention *a) {
  const hlo_instr *i = a->shift.def;
  uint32_t chosen = i->op == HLO_SELECT ? chosen_if_finite(i, a->max) : 0;
  return i == a->max || (chosen && i->operands[chosen].def == a->max);
}
