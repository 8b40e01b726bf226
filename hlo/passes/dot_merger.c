/* dot_merger.c - dots of one operand and several constant weights become one dot of the concatenated weights, and
 * slices of its result replace their results.  Examples are the projections of a transformer to queries, keys and
 * values.  The biases that are added to the dots become one bias.  So one kernel is started instead of several, and
 * reads the common operand once.
 *
 * Order: after batch_norm, which merges factors into weights and biases, and before attention, whose kernel reads the
 * slices in place.  Requires: no dead instructions, which would count as users.  Keeps: results, except that a target
 * may add in another order for a wider dot.  Breaks: nothing; the old weights are left to dce, and the new weights are
 * as large as the old ones together.  A dot is merged only if the users of its result can read a slice, so that no
 * kernel has to copy it out of the common result, and only if nothing but the bias could run in the dot's own kernel
 * (epilogue.c). */
#include <stdlib.h>

#include "hlo/analysis/attention.h"
#include "hlo/analysis/pattern.h"
#include "hlo/passes/pass.h"

/* The results of merged dots stay in memory until the last one has been used.  So at most four dots are merged: the
 * three projections of an attention and one other, such as a gate. */
enum { MOST_MERGED = 4, MOST_STEPS = 8 };

/* A dot and the bias after it. */
typedef struct projection {
  hlo_instr *dot;
  hlo_value result; /* what the slice replaces: the dot, or the addition of its bias */
  hlo_value bias;   /* the other operand of the addition; def is NULL if there is none */
} projection;

typedef struct search {
  pass_context *context;
  const bool *attends; /* by id: whether a dot belongs to an attention that becomes one kernel */
} search;

static bool *find_attentions(hlo_computation *c, const pass_context *context) {
  const hlo_target *t = context->target;
  hlo_attention a;
  hlo_number(c);
  bool *attends = ARENA_NEW_N(context->scratch, bool, c->n_ids + 1);
  HLO_FOR_EACH(i, c) {
    if (t->takes_attention && i->op == HLO_DOT && hlo_find_attention(i, HLO_OPERAND_VIEWS, &a) &&
        t->takes_attention(t->data, &a)) {
      attends[a.qk->id] = attends[a.pv->id] = true;
    }
  }
  return attends;
}

/* Returns true if `user` only moves the elements of v, or multiplies all by one number.  Then the users of
 * its result decide whether v may be a slice. */
static bool passes_on(const hlo_instr *user, hlo_value v) {
  literal number;
  return user->op == HLO_RESHAPE || user->op == HLO_BROADCAST ||
         hlo_match(hlo_result((hlo_instr *)user, 0), P_COMMUTE(HLO_MUL, P_SPLAT(&number), P_SAME(&v)));
}

/* Returns true if kernels that exist anyway can read v as a slice of a larger array: those of attention, and those that
 * move data.  Returns false if there are only elementwise users, since these may run in the kernel of the dot itself.
 * Looks through at most `steps` instructions that pass v on. */
static bool reads_slice(const search *s, hlo_value v, int steps) {
  const hlo_target *t = s->context->target;
  bool moved = false, fits = steps > 0 && !hlo_is_root(v);
  for (uint32_t k = 0; k < v.def->n_uses && fits; k++) {
    hlo_instr *user = v.def->uses[k].user;
    if (passes_on(user, v)) {
      moved = fits = reads_slice(s, hlo_result(user, 0), steps - 1);
    } else if (user->op == HLO_DOT) {
      moved = fits = s->attends[user->id];
    } else if (hlo_info(user)->kind != HLO_ELEMENTWISE) {
      moved = fits = t->takes_fused && t->takes_fused(t->data, HLO_FUSION_LOOP, user);
    }
  }
  return moved && fits;
}

static bool is_list(const hlo_instr *i, hlo_attr_id id, const int64_t *ints, uint32_t n) {
  bool equal = hlo_n_ints(i, id) == n;
  for (uint32_t k = 0; k < n && equal; k++) {
    equal = hlo_ints(i, id)[k] == ints[k];
  }
  return equal;
}

static bool has_constant_weights(const hlo_instr *i) {
  return i->op == HLO_DOT && hlo_literal(i->operands[1]) && hlo_used_once(i->operands[1]) &&
         !hlo_literal(i->operands[0]) && dtype_is_float(hlo_type(hlo_result((hlo_instr *)i, 0))) &&
         hlo_n_ints(i, HLO_ATTR_RHS_BATCH) == 0 &&
         hlo_n_ints(i, HLO_ATTR_RHS_CONTRACT) + 1 == (uint32_t)hlo_rank(i->operands[1]);
}

static int64_t columns_of(const projection *p) { return hlo_shape(p->result)->dims[hlo_rank(p->result) - 1]; }

/* Returns true if v has a constant for each of the n positions along its last dimension, or the same constant for all.
 */
static bool is_bias(hlo_value v, int64_t n) {
  literal splat;
  const literal *l = hlo_literal(v.def->op == HLO_BROADCAST ? v.def->operands[0] : v);
  bool last = v.def->op != HLO_BROADCAST || (hlo_n_ints(v.def, HLO_ATTR_DIMENSIONS) == 1 &&
                                             hlo_ints(v.def, HLO_ATTR_DIMENSIONS)[0] == hlo_rank(v) - 1);
  return hlo_splat_of(v, &splat) || (l && last && shape_elements(&l->shape) == n);
}

/* Returns true, and sets *p, if `i` is a dot whose result, with its bias, can be a slice of a wider dot's result. */
static bool find_projection(const search *s, hlo_instr *i, projection *p) {
  if (!has_constant_weights(i)) {
    return false;
  }
  *p = (projection){.dot = i, .result = hlo_result(i, 0)};
  hlo_value bias;
  hlo_instr *user = hlo_only_user(p->result);
  if (user && hlo_match(hlo_result(user, 0), P_COMMUTE(HLO_ADD, P_SAME(&p->result), P_ANY(&bias))) &&
      is_bias(bias, columns_of(p))) {
    p->result = hlo_result(user, 0);
    p->bias = bias;
  }
  return reads_slice(s, p->result, MOST_STEPS);
}

static bool can_join(const projection *a, const projection *b) {
  const hlo_attr *lhs = hlo_attr_of(a->dot, HLO_ATTR_LHS_CONTRACT), *rhs = hlo_attr_of(a->dot, HLO_ATTR_RHS_CONTRACT);
  return hlo_value_equal(a->dot->operands[0], b->dot->operands[0]) &&
         hlo_type(a->dot->operands[1]) == hlo_type(b->dot->operands[1]) &&
         a->dot->shapes[0].type == b->dot->shapes[0].type &&
         is_list(b->dot, HLO_ATTR_LHS_CONTRACT, lhs->ints, lhs->n) &&
         is_list(b->dot, HLO_ATTR_RHS_CONTRACT, rhs->ints, rhs->n);
}

/* Orders projections by the first operands of their dots, and those with the same first operand as they are in the
 * computation. */
static int by_operand(const void *a, const void *b) {
  const hlo_instr *x = ((const projection *)a)->dot, *y = ((const projection *)b)->dot;
  const uint32_t xs[] = {x->operands[0].def->id, x->operands[0].index, x->id};
  const uint32_t ys[] = {y->operands[0].def->id, y->operands[0].index, y->id};
  int order = 0;
  for (size_t k = 0; k < sizeof xs / sizeof *xs && !order; k++) {
    order = xs[k] < ys[k] ? -1 : xs[k] > ys[k];
  }
  return order;
}

/* --- merging --- */

/* Returns the concatenated weights of the n projections, along the dimension that the dots do not
 * contract. */
static hlo_value join_weights(hlo_builder *b, const projection *p, uint32_t n) {
  hlo_value weights[MOST_MERGED];
  int64_t free = 0;
  while (hlo_has_int(p->dot, HLO_ATTR_RHS_CONTRACT, free)) {
    free++;
  }
  for (uint32_t k = 0; k < n; k++) {
    weights[k] = p[k].dot->operands[1];
  }
  return hlo_concatenate(b, n, weights, free);
}

/* Returns the biases of the n projections, one after the other, as an array of one dimension.  A dot without a bias
 * gets -0, which changes no number. */
static literal join_biases(arena *a, const projection *p, uint32_t n, int64_t columns) {
  void *data;
  dtype t = hlo_type(p->result);
  literal all = literal_new(a, shape_make(t, 1, &columns), &data);
  char *to = data;
  for (uint32_t k = 0; k < n; k++) {
    hlo_value v = p[k].bias;
    literal splat = literal_scalar_f64(a, t, -0.0);
    bool same = !v.def || hlo_splat_of(v, &splat);
    const literal *l = same ? &splat : hlo_literal(v.def->op == HLO_BROADCAST ? v.def->operands[0] : v);
    for (int64_t j = 0; j < columns_of(p + k); j++, to += dtype_bytes(t)) {
      dtype_store_f64(t, to, literal_f64(l, same ? 0 : j), false, DTYPE_ROUND_NEAREST);
    }
  }
  return all;
}

static hlo_value build_wide_dot(hlo_builder *b, const projection *p, hlo_value weights) {
  const hlo_attr *lhs = hlo_attr_of(p->dot, HLO_ATTR_LHS_CONTRACT), *rhs = hlo_attr_of(p->dot, HLO_ATTR_RHS_CONTRACT);
  const hlo_dot_dims d = {.n_contract = lhs->n, .lhs_contract = lhs->ints, .rhs_contract = rhs->ints};
  return hlo_dot(b, p->dot->operands[0], weights, &d);
}

/* Replaces the result of each projection by its slice of `wide`, the result of the wide dot. */
static void put_slices(hlo_builder *b, const projection *p, uint32_t n, hlo_value wide) {
  int64_t at = 0, last = hlo_rank(wide) - 1;
  for (uint32_t k = 0; k < n && !b->error; at += columns_of(p + k), k++) {
    b->source = p[k].dot->source;
    hlo_value part = hlo_slice_dim(b, wide, last, at, at + columns_of(p + k));
    if (part.def) {
      hlo_replace(p[k].result, part);
    }
  }
}

static status merge(pass_context *context, const projection *p, uint32_t n, bool *changed) {
  hlo_builder b = hlo_pass_builder(context, p->dot->parent, p[n - 1].dot); /* all weights come before the last dot */
  b.source = p->dot->source;
  hlo_value weights = join_weights(&b, p, n);
  bool any_bias = false;
  for (uint32_t k = 0; k < n; k++) {
    any_bias = any_bias || p[k].bias.def;
  }
  TRY(hlo_builder_take_error(&b));
  if (!hlo_literal(weights)) { /* too large to be folded */
    hlo_remove(weights.def);
    return NULL;
  }
  *changed = true;
  hlo_move_before(weights.def, p->dot);
  b.before = p->dot;
  b.eval = NULL; /* otherwise a small broadcast would become an array, and not be recognised as a bias */
  hlo_value wide = build_wide_dot(&b, p, weights);
  b.source = p->result.def->source;
  if (any_bias && !b.error) {
    int64_t last = hlo_rank(wide) - 1;
    hlo_value bias = hlo_constant(&b, join_biases(hlo_arena(&b), p, n, hlo_shape(wide)->dims[last]));
    wide = hlo_binary(&b, HLO_ADD, wide, hlo_broadcast(&b, bias, *hlo_shape(wide), &last));
  }
  put_slices(&b, p, n, wide);
  hlo_pass_note(context, "dots", n);
  return hlo_builder_take_error(&b);
}

static status merge_all(hlo_computation *c, pass_context *context, bool *changed) {
  search s = {context, find_attentions(c, context)};
  projection *found = NULL, p;
  uint32_t n = 0, cap = 0;
  HLO_FOR_EACH(i, c) {
    TRY(budget_check(arena_budget(context->scratch)));
    if (find_projection(&s, i, &p)) {
      *ARENA_PUSH(context->scratch, found, n, cap) = p;
    }
  }
  if (n) {
    qsort(found, n, sizeof *found, by_operand);
  }
  for (uint32_t first = 0, end; first < n; first = end) {
    TRY(budget_check(arena_budget(context->scratch)));
    for (end = first + 1; end < n && end - first < MOST_MERGED && can_join(found + first, found + end);) {
      end++;
    }
    if (end - first > 1) {
      TRY(merge(context, found + first, end - first, changed));
    }
  }
  return NULL;
}

status pass_dot_merger(hlo_module *m, pass_context *c, bool *changed) {
  uint32_t n;
  hlo_computation **walked = hlo_walked(m, c->scratch, false, &n);
  for (uint32_t k = 0; k < n && c->target && c->target->merges_dots; k++) {
    TRY(merge_all(walked[k], c, changed));
  }
  return NULL;
}
