/* layout.c - changes convolutions to channels-last, and moves the necessary transposes to where they cancel.
 *
 * Requires: a target that sets channels_last; better after fold and simplify.  Keeps: results, bit for bit.  Breaks:
 * nothing; leaves dead instructions for dce and transposes of dimensions of 1 for simplify.
 *
 * A value v of the computation may be represented by a value t and an order p: dimension i of v is dimension p[i] of t.
 * A convolution makes such a pair of t and p, a transpose only changes p, and operations for which the order of
 * dimensions does not matter (elementwise, pooling, reductions, concatenation, padding, slices, reshapes that keep
 * groups of dimensions separate) are rebuilt on t.  If an operation needs v itself, one transpose of t computes it.  So
 * transposes sink until they meet their inverse, or a place where the array is small. */
#include "hlo/passes/rewrite.h"

#include <string.h>

#include "base/dim/guard.h"

typedef struct order {
  int64_t p[SHAPE_MAX_RANK];
} order;

/* How a value v is represented. */
typedef struct held {
  hlo_value t; /* v with its dimensions in the order p; def is NULL if only v itself exists */
  order p;
  hlo_value plain; /* v itself, computed from t; set when something needs it */
} held;

typedef struct layout {
  pass_context *context;
  hlo_computation *c;
  uint32_t n_ids;
  held *held; /* for each instruction id: how the instruction's first result is represented */
  hlo_instr *at;
  hlo_builder b; /* inserts before `at` */
  bool changed;
} layout;

/* --- orders of dimensions --- */

static bool is_identity(const order *o, int rank) {
  for (int i = 0; i < rank; i++) {
    if (o->p[i] != i) {
      return false;
    }
  }
  return true;
}

static bool same_order(const order *x, const order *y, int rank) {
  return memcmp(x->p, y->p, (size_t)rank * sizeof *x->p) == 0;
}

static order identity(void) {
  order o;
  for (int i = 0; i < SHAPE_MAX_RANK; i++) {
    o.p[i] = i;
  }
  return o;
}

/* Returns the order in which [N, C, spatial...] is represented by [N, spatial..., C]. */
static order channels_last(int rank) {
  order o = identity();
  o.p[1] = rank - 1;
  for (int i = 2; i < rank; i++) {
    o.p[i] = i - 1;
  }
  return o;
}

static int64_t *int_list(layout *l, int n) { return ARENA_NEW_N(l->c->module->arena, int64_t, (size_t)n); }

/* Rearranges `list`, which has an entry for each dimension of a value, for that value with its dimensions in the order
 * p: entry i of `list` becomes entry p[i]. */
static const int64_t *moved(layout *l, const int64_t *list, const order *p, int rank) {
  int64_t *out = int_list(l, rank);
  for (int i = 0; i < rank; i++) {
    out[p->p[i]] = list[i];
  }
  return out;
}

static shape moved_shape(const shape *s, const order *p) {
  shape out = *s;
  for (int i = 0; i < s->rank; i++) {
    out.dims[p->p[i]] = s->dims[i];
  }
  return out;
}

/* --- representations of values --- */

static held *held_of(layout *l, hlo_value v) {
  bool known = v.index == 0 && v.def->id < l->n_ids && l->held[v.def->id].t.def;
  return known ? &l->held[v.def->id] : NULL;
}

static void hold(layout *l, const hlo_instr *i, hlo_value t, const order *p) {
  if (t.def) {
    l->held[i->id] = (held){.t = t, .p = *p};
    l->changed = true;
  }
}

/* Returns v with its dimensions in the original order.  Transposes the value that represents v, if necessary. */
static hlo_value plain(layout *l, hlo_value v) {
  held *h = held_of(l, v);
  if (!h) {
    return v;
  }
  if (!h->plain.def) {
    h->plain = is_identity(&h->p, hlo_rank(v)) ? h->t : hlo_transpose(&l->b, h->t, h->p.p);
  }
  return h->plain;
}

static hlo_value reorder_broadcast(layout *l, const hlo_instr *i, const order *p) {
  hlo_value x = plain(l, i->operands[0]);
  int rank = hlo_rank(x);
  const int64_t *to = hlo_ints(i, HLO_ATTR_DIMENSIONS);
  int64_t *dims = int_list(l, rank), *from = int_list(l, rank);
  for (int d = 0; d < rank; d++) { /* sorts the operand's dimensions by their new positions */
    int64_t place = p->p[to[d]];
    int k = d;
    for (; k > 0 && dims[k - 1] > place; k--) {
      dims[k] = dims[k - 1];
      from[k] = from[k - 1];
    }
    dims[k] = place;
    from[k] = d;
  }
  order o = identity();
  memcpy(o.p, from, (size_t)rank * sizeof *from);
  x = is_identity(&o, rank) ? x : hlo_transpose(&l->b, x, from);
  return hlo_broadcast(&l->b, x, moved_shape(&i->shapes[0], p), dims);
}

/* Returns v with its dimensions in the order p: the value that represents v, a new broadcast or iota, or a
 * transpose. */
static hlo_value in_order(layout *l, hlo_value v, const order *p) {
  int rank = hlo_rank(v);
  const held *h = held_of(l, v);
  literal scalar;
  if (h && same_order(&h->p, p, rank)) {
    return h->t;
  }
  if (!h && hlo_splat_of(v, &scalar)) {
    return hlo_splat_literal(&l->b, moved_shape(hlo_shape(v), p), scalar);
  }
  if (!h && v.def->op == HLO_BROADCAST) {
    return reorder_broadcast(l, v.def, p);
  }
  if (!h && v.def->op == HLO_IOTA) {
    return hlo_iota(&l->b, moved_shape(hlo_shape(v), p), p->p[hlo_int(v.def, HLO_ATTR_DIMENSION)]);
  }
  order q = identity(); /* dimension p[i] of the result is dimension i of v */
  for (int i = 0; i < rank; i++) {
    q.p[p->p[i]] = h ? h->p.p[i] : i;
  }
  hlo_value t = h ? h->t : v;
  return is_identity(&q, rank) ? t : hlo_transpose(&l->b, t, q.p);
}

static hlo_value clone_with(layout *l, const hlo_instr *i, const hlo_value *operands, shape result) {
  for (uint32_t k = 0; k < i->n_operands; k++) {
    if (!operands[k].def) {
      return (hlo_value){0};
    }
  }
  hlo_instr *copy = hlo_instr_clone(l->c, l->at, i, operands);
  copy->shapes[0] = result;
  return hlo_result(copy, 0);
}

/* --- rebuilding operations --- */

static void convolution(layout *l, const hlo_instr *i) {
  int rank = hlo_rank(i->operands[0]);
  if (hlo_int(i, HLO_ATTR_LAYOUT) != HLO_CHANNELS_FIRST || rank < 3) {
    return;
  }
  order p = channels_last(rank);
  hlo_value t = clone_with(l, i, (hlo_value[]){in_order(l, i->operands[0], &p), plain(l, i->operands[1])},
                           moved_shape(&i->shapes[0], &p));
  if (t.def) {
    hlo_attr_of(t.def, HLO_ATTR_LAYOUT)->i = HLO_CHANNELS_LAST;
    hold(l, i, t, &p);
  }
}

static void transpose(layout *l, const hlo_instr *i) {
  const held *h = held_of(l, i->operands[0]);
  const int64_t *q = hlo_ints(i, HLO_ATTR_PERMUTATION);
  order p = identity();
  for (int d = 0; d < i->shapes[0].rank; d++) {
    p.p[d] = h ? h->p.p[q[d]] : q[d];
  }
  hold(l, i, h ? h->t : i->operands[0], &p);
}

/* Returns true if v can be rebuilt in any order at no cost. */
static bool is_free(layout *l, hlo_value v) {
  literal scalar;
  return !held_of(l, v) && (v.def->op == HLO_BROADCAST || v.def->op == HLO_IOTA || hlo_splat_of(v, &scalar));
}

/* Chooses the order of dimensions in which i is rebuilt.  Returns false if i should stay as it is, because fewer of its
 * operands must then be transposed.  If rebuilding it and leaving it need equally many transposes, i is rebuilt only if
 * the order is channels-last, since more convolutions are likely to follow. */
static bool best_order(layout *l, const hlo_instr *i, int rank, order *p) {
  const held *best = NULL;
  int with = 0, without = 0;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    const held *h = held_of(l, i->operands[k]);
    if (hlo_rank(i->operands[k]) == rank && !is_free(l, i->operands[k])) {
      bool other = h && !is_identity(&h->p, rank);
      best = other && !best ? h : best;
      with += other;
      without += !other;
    }
  }
  if (!best) {
    return false;
  }
  *p = best->p;
  order last = channels_last(rank < 3 ? 3 : rank);
  return with > without || (with == without && rank > 2 && same_order(p, &last, rank));
}

static void elementwise(layout *l, const hlo_instr *i) {
  int rank = i->shapes[0].rank;
  order p;
  if (i->n_results != 1 || !best_order(l, i, rank, &p)) {
    return;
  }
  hlo_value *operands = ARENA_NEW_N(l->context->scratch, hlo_value, i->n_operands);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    hlo_value v = i->operands[k];
    operands[k] = hlo_rank(v) == rank ? in_order(l, v, &p) : plain(l, v); /* the bounds of clamp are scalars */
  }
  hold(l, i, clone_with(l, i, operands, moved_shape(&i->shapes[0], &p)), &p);
}

static void concatenate(layout *l, const hlo_instr *i) {
  order p;
  if (!best_order(l, i, i->shapes[0].rank, &p)) {
    return;
  }
  hlo_value *operands = ARENA_NEW_N(l->context->scratch, hlo_value, i->n_operands);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    operands[k] = in_order(l, i->operands[k], &p);
  }
  hold(l, i, hlo_concatenate(&l->b, i->n_operands, operands, p.p[hlo_int(i, HLO_ATTR_DIMENSION)]), &p);
}

/* Rebuilds operations whose attributes are lists with one entry for each dimension: windows, padding, slices. */
static void listed(layout *l, const hlo_instr *i) {
  const held *h = held_of(l, i->operands[0]);
  if (!h || is_identity(&h->p, hlo_rank(i->operands[0]))) {
    return;
  }
  order p = h->p;
  hlo_value *operands = ARENA_NEW_N(l->context->scratch, hlo_value, i->n_operands);
  operands[0] = h->t;
  for (uint32_t k = 1; k < i->n_operands; k++) {
    operands[k] = plain(l, i->operands[k]);
  }
  hlo_value t = clone_with(l, i, operands, moved_shape(&i->shapes[0], &p));
  const hlo_op_info *info = hlo_info(i);
  for (uint32_t k = 0; t.def && k < info->n_attrs; k++) {
    hlo_attr_kind kind = hlo_attr_get_info(info->attrs[k])->kind;
    if (kind == HLO_KIND_INTS || kind == HLO_KIND_DIMS || kind == HLO_KIND_SIGNED_DIMS) {
      t.def->attrs[k].ints = moved(l, i->attrs[k].ints, &p, i->shapes[0].rank);
    }
  }
  hold(l, i, t, &p);
}

/* Returns the order of the remaining dimensions if those in the bit set `gone` are removed. */
static order order_of_rest(const order *p, int rank, uint32_t gone) {
  order out = identity();
  int n = 0;
  for (int i = 0; i < rank; i++) {
    if (gone >> i & 1) {
      continue;
    }
    int64_t place = 0;
    for (int k = 0; k < rank; k++) {
      place += !(gone >> k & 1) && p->p[k] < p->p[i];
    }
    out.p[n++] = place;
  }
  return out;
}

static void reduce(layout *l, const hlo_instr *i) {
  const held *h = held_of(l, i->operands[0]);
  int rank = hlo_rank(i->operands[0]);
  if (!h || is_identity(&h->p, rank)) {
    return;
  }
  bool single = i->op == HLO_ARG_REDUCE;
  uint32_t n = single ? 1 : hlo_n_ints(i, HLO_ATTR_DIMENSIONS), gone = 0, places = 0;
  int64_t one = single ? hlo_int(i, HLO_ATTR_DIMENSION) : 0;
  const int64_t *dims = single ? &one : hlo_ints(i, HLO_ATTR_DIMENSIONS);
  for (uint32_t k = 0; k < n; k++) {
    gone |= 1u << dims[k];
    places |= 1u << h->p.p[dims[k]];
  }
  order p = order_of_rest(&h->p, rank, gone);
  int64_t sorted[SHAPE_MAX_RANK];
  uint32_t at = 0;
  for (int d = 0; d < rank; d++) {
    if (places >> d & 1) {
      sorted[at++] = d;
    }
  }
  hlo_value t = single ? hlo_arg_reduce(&l->b, h->t, sorted[0], hlo_int(i, HLO_ATTR_LARGEST), hlo_int(i, HLO_ATTR_LAST))
                       : hlo_reduce(&l->b, h->t, (hlo_reducer)hlo_int(i, HLO_ATTR_REDUCER), n, sorted);
  hold(l, i, t, &p);
}

static void reverse(layout *l, const hlo_instr *i) {
  const held *h = held_of(l, i->operands[0]);
  int rank = hlo_rank(i->operands[0]);
  if (!h || is_identity(&h->p, rank)) {
    return;
  }
  uint32_t places = 0, n = 0;
  int64_t sorted[SHAPE_MAX_RANK];
  for (uint32_t k = 0; k < hlo_n_ints(i, HLO_ATTR_DIMENSIONS); k++) {
    places |= 1u << h->p.p[hlo_ints(i, HLO_ATTR_DIMENSIONS)[k]];
  }
  for (int d = 0; d < rank; d++) {
    if (places >> d & 1) {
      sorted[n++] = d;
    }
  }
  order p = h->p;
  hold(l, i, hlo_reverse(&l->b, h->t, n, sorted), &p);
}

/* Rebuilds a gather along one dimension by a list of indices, which keeps the rank. */
static void take(layout *l, const hlo_instr *i) {
  const held *h = held_of(l, i->operands[0]);
  int rank = hlo_rank(i->operands[0]);
  int64_t dimension;
  if (!h || is_identity(&h->p, rank) || i->shapes[0].rank != rank || hlo_rank(i->operands[1]) == 0 ||
      !hlo_is_take(i, &dimension)) {
    return;
  }
  order p = h->p;
  hlo_value t = h->t, indices = plain(l, i->operands[1]);
  dim n = i->shapes[0].dims[dimension];
  indices = hlo_rank(indices) == 1 ? indices : hlo_reshape(&l->b, indices, 1, &n);
  hold(l, i, hlo_take(&l->b, t, indices, p.p[dimension]), &p);
}

/* --- reshapes that keep groups of dimensions separate --- */

typedef struct group {
  int from, from_end, to, to_end; /* a reshape turns dimensions [from, from_end) of its operand into [to, to_end) of
                                     its result */
  int64_t place;                  /* the lowest position, in held.t, of the operand's dimensions in this group */
} group;

/* a and b are different products of extents, which further factors are to make equal.  Returns true if a is the smaller
 * one, which needs the next factor.  For symbolic products the hints decide; without hints the result is false. */
static bool is_less(const dim_table *t, dim a, dim b) {
  int64_t x = 0, y = 0;
  return dim_hint(t, a, &x) && dim_hint(t, b, &y) && x < y;
}

static int find_groups(dim_table *t, const shape *x, const shape *y, group *out) {
  int n = 0, i = 0, j = 0;
  while (i < x->rank && j < y->rank) {
    group g = {.from = i, .to = j};
    dim a = x->dims[i++], b = y->dims[j++];
    while (a != b) {
      bool less = is_less(t, a, b);
      if ((less ? i == x->rank : j == y->rank) || a == DIM_OVERFLOW || b == DIM_OVERFLOW) {
        return 0;
      }
      if (less) {
        a = dim_mul(t, a, x->dims[i++]);
      } else {
        b = dim_mul(t, b, y->dims[j++]);
      }
    }
    g.from_end = i;
    g.to_end = j;
    out[n++] = g;
  }
  if (n) { /* the dimensions after the last group have one element, so they join it */
    out[n - 1].from_end = x->rank;
    out[n - 1].to_end = y->rank;
  }
  return n;
}

static void sort_groups(int n, group *g) {
  for (int k = 1; k < n; k++) {
    group x = g[k];
    int at = k;
    for (; at > 0 && g[at - 1].place > x.place; at--) {
      g[at] = g[at - 1];
    }
    g[at] = x;
  }
}

/* Sorts the groups by where their dimensions are in held.t, the value that represents the operand x.  Sets *grouped to
 * the order of x's dimensions in which the groups follow each other in this way and the dimensions of each group are
 * adjacent. */
static void place_groups(const shape *x, const order *p, int n, group *g, order *grouped) {
  for (int k = 0; k < n; k++) {
    g[k].place = SHAPE_MAX_RANK;
    for (int d = g[k].from; d < g[k].from_end; d++) {
      bool counts = x->dims[d] != 1 || g[k].place == SHAPE_MAX_RANK;
      g[k].place = counts && p->p[d] < g[k].place ? p->p[d] : g[k].place;
    }
  }
  sort_groups(n, g);
  int64_t place = 0;
  for (int k = 0; k < n; k++) {
    for (int d = g[k].from; d < g[k].from_end; d++) {
      grouped->p[d] = place++;
    }
  }
}

static void reshape(layout *l, const hlo_instr *i) {
  const held *h = held_of(l, i->operands[0]);
  const shape *x = hlo_shape(i->operands[0]), *y = &i->shapes[0];
  group g[SHAPE_MAX_RANK];
  if (!h || is_identity(&h->p, x->rank) || (shape_is_static(x) && shape_elements(x) == 0)) {
    return;
  }
  int n = find_groups(i->parent->module->dims, x, y, g);
  if (n == 0) {
    return;
  }
  order grouped = identity(), p = identity();
  place_groups(x, &h->p, n, g, &grouped);
  shape s = *y;
  int64_t place = 0;
  for (int k = 0; k < n; k++) {
    for (int d = g[k].to; d < g[k].to_end; d++) {
      s.dims[place] = y->dims[d];
      p.p[d] = place++;
    }
  }
  if (is_identity(&grouped, x->rank)) {
    return; /* then i stays as it is, and reads the operand with its dimensions in their original order */
  }
  hold(l, i, hlo_reshape(&l->b, in_order(l, i->operands[0], &grouped), s.rank, s.dims), &p);
}

/* --- the walk over a computation --- */

static void visit(layout *l, const hlo_instr *i) {
  switch (i->op) {
    case HLO_CONVOLUTION: convolution(l, i); return;
    case HLO_TRANSPOSE: transpose(l, i); return;
    case HLO_CONCAT: concatenate(l, i); return;
    case HLO_PAD:
    case HLO_SLICE:
    case HLO_REDUCE_WINDOW: listed(l, i); return;
    case HLO_REDUCE:
    case HLO_ARG_REDUCE: reduce(l, i); return;
    case HLO_REVERSE: reverse(l, i); return;
    case HLO_RESHAPE: reshape(l, i); return;
    case HLO_GATHER: take(l, i); return;
    default: break;
  }
  if (hlo_info(i)->kind == HLO_ELEMENTWISE || i->op == HLO_COPY) {
    elementwise(l, i);
  }
}

/* Replaces the operands of i, an instruction that is not rebuilt, by the same values with their dimensions in the
 * original order. */
static void keep(layout *l, hlo_instr *i) {
  for (uint32_t k = 0; k < i->n_operands; k++) {
    hlo_value v = plain(l, i->operands[k]);
    if (v.def && !hlo_value_equal(v, i->operands[k])) {
      hlo_set_operand(i, k, v);
    }
  }
}

static status change(hlo_computation *c, pass_context *context, bool *changed) {
  hlo_number(c);
  layout l = {.context = context, .c = c, .n_ids = c->n_ids};
  l.held = ARENA_NEW_N(context->scratch, held, c->n_ids);
  hlo_instr *last = c->last;
  for (hlo_instr *i = c->first, *next; i; i = next) {
    next = i == last ? NULL : i->next;
    l.at = i;
    l.b = hlo_pass_builder(context, c, i);
    l.b.source = i->source;
    visit(&l, i);
    if (!(i->id < l.n_ids && l.held[i->id].t.def)) {
      keep(&l, i);
    }
    TRY(hlo_builder_take_error(&l.b));
    TRY(budget_check(arena_budget(context->scratch)));
  }
  l.b = hlo_pass_builder(context, c, NULL);
  l.at = NULL;
  for (uint32_t k = 0; k < c->n_roots; k++) {
    hlo_value v = plain(&l, c->roots[k]);
    c->roots[k] = v.def ? v : c->roots[k];
  }
  *changed = *changed || l.changed;
  return hlo_builder_take_error(&l.b);
}

static bool wants_change(const hlo_computation *c) {
  for (const hlo_instr *i = c->first; i; i = i->next) {
    if (i->op == HLO_CONVOLUTION && hlo_int(i, HLO_ATTR_LAYOUT) == HLO_CHANNELS_FIRST && hlo_rank(i->operands[0]) > 2) {
      return true;
    }
  }
  return false;
}

status pass_layout(hlo_module *m, pass_context *c, bool *changed) {
  uint32_t n;
  if (!c->target || !c->target->channels_last) {
    return NULL;
  }
  hlo_computation **walked = hlo_walked(m, c->scratch, false, &n);
  for (uint32_t k = 0; k < n; k++) {
    if (wants_change(walked[k])) {
      TRY(change(walked[k], c, changed));
    }
  }
  return NULL;
}
