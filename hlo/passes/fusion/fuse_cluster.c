/* fuse_cluster.c - chooses the instructions that become one kernel; such a group is a cluster.
 *
 * It walks a computation backwards and lets each instruction join the cluster of its users, so that its result is not
 * stored and loaded again.  A cluster runs at the position of its last member.
 *
 * No cycles: an instruction joins only the cluster of its earliest user, so that all other users come later.  Two
 * clusters that read the same array may be merged; all their instructions then run at the position of the later
 * cluster.  So they are merged only if no instruction before that position, other than members of the two clusters,
 * uses a result of the earlier one.  Therefore the operands of a cluster always come from earlier positions.
 *
 * Nothing is computed twice: if an instruction has several users in the cluster, all of them must need the same element
 * at the same time.  Therefore each member has a space, which stands for the index at which it is computed: space 0 is
 * the index of the cluster's results.  Operands of elementwise operations and reshapes have the space of their user,
 * and each operand of other movement and of reductions has a new space.
 *
 * Three kinds of instructions join although their users need them in different spaces; the operands of such an
 * instruction then do not join.  They are a cheap instruction with two users, unless it saves storing several operands;
 * a dynamic slice whose users are slices that together read no element of it twice; and an array of which a gather
 * reads elements several times, if that array is a slice or a gather at constant indices, which computes nothing but an
 * index.
 *
 * A broadcast is a boundary: its operand is computed once, before the cluster; the broadcast itself is free and is
 * copied into each cluster that reads it. */
#include <stdlib.h>

#include "base/dim/guard.h"
#include "hlo/passes/fusion/fuse.h"

typedef struct cluster {
  uint32_t last; /* the id of the last member; the cluster's kernel will run at the position of that member */
  uint32_t n, n_operands, n_outputs;
  uint32_t first; /* the id of the member at the head of the list that clustering.next links */
  dim elements;   /* the number of elements of each result */
  bool has_reduce;
} cluster;

enum { NONE = UINT32_MAX, MANY_SPACES = UINT32_MAX, MAX_OUTPUTS = 8 };

typedef struct clustering {
  hlo_computation *c;
  pass_context *context;
  hlo_fusion_kind kind;
  hlo_instr **instrs; /* for each id: the instruction */
  uint32_t *roots;
  uint32_t *of; /* for each id: the instruction's cluster, or NONE */
  /* For each id of a member: its space (see the top of this file), and the id of the next member of its cluster. */
  uint32_t *space, *next;
  cluster *clusters;
  uint32_t n_clusters;
} clustering;

/* --- properties of instructions --- */

static bool is_plain_array(const shape *s) { return s->kind == SHAPE_ARRAY && s->type != DTYPE_STR; }

static bool is_fusable(const clustering *k, const hlo_instr *i) {
  const hlo_target *t = k->context->target;
  if (i->n_results != 1 || i->n_operands > FUSE_MAX_OPERANDS || hlo_is_free(i) || i->op == HLO_CONSTANT ||
      i->op == HLO_PARAMETER || (i->op == HLO_REDUCE && k->kind != HLO_FUSION_INPUT) ||
      !is_plain_array(&i->shapes[0])) {
    return false;
  }
  for (uint32_t j = 0; j < i->n_operands; j++) {
    if (!is_plain_array(hlo_shape(i->operands[j]))) {
      return false;
    }
  }
  return t->takes_fused && t->takes_fused(t->data, k->kind, i);
}

static dim_table *dims_of(const hlo_instr *i) { return i->parent->module->dims; }

static dim elements_of(const hlo_instr *i) {
  return shape_dim_product(dims_of(i), &i->shapes[0], 0, i->shapes[0].rank);
}

static bool keeps_order(const hlo_instr *i) {
  return hlo_info(i)->kind == HLO_ELEMENTWISE || i->op == HLO_RESHAPE || i->op == HLO_COPY;
}

/* Returns the space in which u needs its operand j.  A space stands for an index (see the top of this file). */
static uint32_t demand(const clustering *k, const hlo_instr *u, uint32_t j) {
  return keeps_order(u) ? k->space[u->id] : 1 + u->id * FUSE_MAX_OPERANDS + j % FUSE_MAX_OPERANDS;
}

/* Returns true if the gather u reads each index several times, and another one for each element of its innermost
 * dimension, so that computing an index would take longer than the gather. */
static bool repeats_indices(const hlo_instr *u) {
  int64_t last = u->shapes[0].rank - 1;
  return !hlo_has_int(u, HLO_ATTR_OFFSET_DIMS, last) &&
         !dim_known_at_most(dims_of(u), elements_of(u), elements_of(u->operands[1].def));
}

/* Returns true if a gather reads each element at most once, so that computing them for it repeats nothing. */
static bool reads_once(const hlo_instr *u) {
  return dim_known_at_most(dims_of(u), elements_of(u), elements_of(u->operands[0].def));
}

/* Returns true if v is computed, element by element, from rows that a gather copies: lanes along its innermost
 * dimension are next to each other in memory, unless the array is transposed in the same kernel.  At most *budget
 * instructions are looked at. */
static bool gathers_rows(hlo_value v, int *budget) {
  const hlo_instr *i = v.def, *x = i->n_operands ? i->operands[0].def : NULL;
  bool found = i->op == HLO_GATHER && hlo_has_int(i, HLO_ATTR_OFFSET_DIMS, i->shapes[0].rank - 1) &&
               (x->op != HLO_TRANSPOSE || x->n_uses > 1 || !reads_once(i));
  for (uint32_t j = 0; hlo_info(i)->kind == HLO_ELEMENTWISE && j < i->n_operands && !found && --*budget > 0; j++) {
    found = gathers_rows(i->operands[j], budget);
  }
  return found;
}

/* Returns true if the transpose u would have such rows read element by element, as GridSample's last one would.  Then
 * transposing their sums afterwards takes less time. */
static bool scatters_rows(const hlo_instr *u) {
  int last = u->shapes[0].rank - 1, budget = 64;
  return last >= 0 && hlo_ints(u, HLO_ATTR_PERMUTATION)[last] != last && gathers_rows(u->operands[0], &budget);
}

/* Returns true if operand j of u should be computed by another kernel, before the cluster's kernel, since u reads it
 * more often than it has elements, reads it only conditionally, or in an order that takes longer than two kernels. */
static bool wants_computed(const hlo_instr *u, uint32_t j) {
  const hlo_instr *x = u->operands[j].def;
  if (keeps_order(u)) {
    return elements_of(x) != elements_of(u); /* true for the bounds of clamp, which are scalars */
  }
  switch (u->op) {
    case HLO_GATHER: return j ? !hlo_is_cheap(x) || repeats_indices(u) : !reads_once(u);
    case HLO_TRANSPOSE: return scatters_rows(u);
    case HLO_RNG: /* every element needs the same state */ return true;
    case HLO_PAD:
    case HLO_DYNAMIC_SLICE:
    case HLO_DYNAMIC_UPDATE_SLICE: return j > 0;
    default: return false;
  }
}

/* Returns true if u is a gather and operand j is the array from which it reads, if this array is itself only a slice of
 * another array or a gather at constant indices. */
static bool is_picked(const hlo_instr *u, uint32_t j) {
  const hlo_instr *x = u->operands[j].def;
  return j == 0 && u->op == HLO_GATHER && (x->op == HLO_SLICE || (x->op == HLO_GATHER && hlo_literal(x->operands[1])));
}

/* --- joining a cluster --- */

static uint32_t position(const clustering *k, const hlo_instr *i) {
  uint32_t c = k->of[i->id];
  return c == NONE ? i->id : k->clusters[c].last;
}

/* Returns the cluster of the earliest user, or NONE if that user is in none.  *all is set to whether all users are in
 * that cluster and i is not a root. */
static uint32_t earliest_cluster(const clustering *k, const hlo_instr *i, bool *all) {
  uint32_t best = NONE, at = NONE;
  for (uint32_t j = 0; j < i->n_uses; j++) {
    uint32_t p = position(k, i->uses[j].user);
    if (p < at) {
      at = p;
      best = k->of[i->uses[j].user->id];
    }
  }
  *all = k->roots[i->id] == 0;
  for (uint32_t j = 0; j < i->n_uses; j++) {
    *all &= k->of[i->uses[j].user->id] == best;
  }
  return best;
}

/* Returns true if all users of i are slices that together read no element twice. */
static bool is_cut_up(const hlo_instr *i) {
  dim read = 0;
  for (uint32_t j = 0; j < i->n_uses; j++) {
    const hlo_instr *u = i->uses[j].user;
    if (u->op != HLO_SLICE) {
      return false;
    }
    read = dim_add(dims_of(i), read, elements_of(u));
  }
  return i->op == HLO_DYNAMIC_SLICE && dim_known_at_most(dims_of(i), read, elements_of(i));
}

/* Returns true if several operands of i are computed for i only, in the same kernel if i does not join a cluster whose
 * members need it at different indices.  If it did, each of them would be stored, in place of i alone. */
static bool saves_operands(const clustering *k, const hlo_instr *i) {
  uint32_t n = 0;
  for (uint32_t j = 0; j < i->n_operands; j++) {
    const hlo_instr *x = i->operands[j].def;
    n += is_fusable(k, x) && x->n_uses == 1 && elements_of(x) == elements_of(i);
  }
  return n > 1;
}

/* Sets *space to the space of i in cluster c, or to MANY_SPACES if its users in c need i at different indices.  Returns
 * false if i must not join the cluster. */
static bool find_space(const clustering *k, const hlo_instr *i, uint32_t c, uint32_t *space) {
  bool first = true;
  uint32_t n = 0;
  *space = 0;
  for (uint32_t j = 0; j < i->n_uses; j++) {
    const hlo_instr *u = i->uses[j].user;
    if (k->of[u->id] != c) {
      continue;
    }
    uint32_t wanted = demand(k, u, i->uses[j].operand);
    if (k->space[u->id] == MANY_SPACES) {
      return false;
    }
    if (wants_computed(u, i->uses[j].operand)) {
      *space = MANY_SPACES;
      return i->n_uses == 1 && is_picked(u, i->uses[j].operand);
    }
    *space = first || *space == wanted ? wanted : MANY_SPACES;
    first = false;
    n++;
  }
  return *space != MANY_SPACES || (n == 2 && hlo_is_cheap(i) && !saves_operands(k, i)) || is_cut_up(i);
}

static bool can_join(const clustering *k, const hlo_instr *i, uint32_t c, bool all, uint32_t *space) {
  const cluster *to = &k->clusters[c];
  if (to->n == FUSE_MAX_MEMBERS || to->n_operands + i->n_operands > FUSE_MAX_OPERANDS || !find_space(k, i, c, space)) {
    return false;
  }
  if (!all && (*space != 0 || elements_of(i) != to->elements || i->op == HLO_RESHAPE || to->n_outputs == MAX_OUTPUTS)) {
    return false;
  }
  return i->op != HLO_REDUCE || (*space == 0 && elements_of(i) == to->elements);
}

static void put(clustering *k, const hlo_instr *i, uint32_t c, uint32_t space) {
  cluster *to = &k->clusters[c];
  k->of[i->id] = c;
  k->space[i->id] = space;
  k->next[i->id] = to->first;
  to->first = i->id;
  to->n++;
  to->n_operands += i->n_operands;
  to->has_reduce |= i->op == HLO_REDUCE;
}

static void assign(clustering *k, const hlo_instr *i) {
  bool all;
  uint32_t space, c = earliest_cluster(k, i, &all);
  if (c != NONE && can_join(k, i, c, all, &space)) {
    put(k, i, c, space);
    k->clusters[c].n_outputs += !all;
  } else if (i->op != HLO_RESHAPE) { /* a reshape alone is a view, which needs no kernel */
    c = k->n_clusters++;
    k->clusters[c] = (cluster){.last = i->id, .first = NONE, .elements = elements_of(i), .n_outputs = 1};
    put(k, i, c, 0);
  }
}

/* --- merging sibling clusters --- */

/* Returns true if all instructions of cluster a may run at the position of the later cluster b. */
static bool can_move_down(const clustering *k, uint32_t a, uint32_t b) {
  for (uint32_t id = k->clusters[a].first; id != NONE; id = k->next[id]) {
    const hlo_instr *i = k->instrs[id];
    for (uint32_t j = 0; j < i->n_uses; j++) {
      const hlo_instr *u = i->uses[j].user;
      uint32_t c = k->of[u->id];
      if (c == b ? k->space[id] != 0 || !keeps_order(u) || k->space[u->id] != 0 || wants_computed(u, i->uses[j].operand)
                 : c != a && position(k, u) <= k->clusters[b].last) {
        return false;
      }
    }
  }
  return true;
}

static dim reduced_elements(const clustering *k, const cluster *c) {
  for (uint32_t id = c->first; id != NONE; id = k->next[id]) {
    if (k->instrs[id]->op == HLO_REDUCE) {
      const shape *s = hlo_shape(k->instrs[id]->operands[0]);
      return shape_dim_product(k->c->module->dims, s, 0, s->rank);
    }
  }
  return 0;
}

static void merge(clustering *k, uint32_t a, uint32_t b) {
  cluster *x = &k->clusters[a], *y = &k->clusters[b];
  if (x->elements != y->elements || x->n + y->n > FUSE_MAX_MEMBERS ||
      x->n_operands + y->n_operands > FUSE_MAX_OPERANDS || x->n_outputs + y->n_outputs > MAX_OUTPUTS ||
      reduced_elements(k, x) != reduced_elements(k, y) || !can_move_down(k, a, b)) {
    return;
  }
  uint32_t id = x->first, last = id;
  for (; id != NONE; id = k->next[id]) {
    k->of[id] = b;
    last = id;
  }
  k->next[last] = y->first;
  y->first = x->first;
  y->n += x->n;
  y->n_operands += x->n_operands;
  y->n_outputs += x->n_outputs;
  x->n = 0;
  x->first = NONE;
}

/* Returns true if cluster c only moves data, and the target wants that done by few kernels.  An update does not count
 * as such a move, since it may be done in place. */
static bool only_moves(const clustering *k, const cluster *c) {
  bool moves = k->context->target->merges_moves;
  for (uint32_t id = c->first; id != NONE && moves; id = k->next[id]) {
    moves = hlo_info(k->instrs[id])->kind == HLO_MOVEMENT;
  }
  return moves;
}

/* Returns true if cluster c, which reads array i, should be merged with other clusters that read i: if its results have
 * no more elements than i, or if it only moves data. */
static bool merges(const clustering *k, uint32_t c, const hlo_instr *i) {
  return dim_known_at_most(dims_of(i), k->clusters[c].elements, elements_of(i)) || only_moves(k, k->clusters + c);
}

/* Of the clusters that read array i and for which `merges` returns true, merges each into the next one where the limits
 * and the order of the instructions allow it (merge). */
static void merge_users(clustering *k, const hlo_instr *i) {
  enum { MOST = 64 };
  if (i->n_uses < 2 || i->n_uses > MOST || i->n_results != 1 || i->op == HLO_CONSTANT || hlo_is_free(i) ||
      !is_plain_array(&i->shapes[0])) {
    return;
  }
  uint32_t users[MOST], n = 0;
  for (uint32_t j = 0; j < i->n_uses; j++) {
    uint32_t c = k->of[i->uses[j].user->id], at = n;
    bool known = c == NONE || c == k->of[i->id] || !merges(k, c, i);
    for (uint32_t m = 0; m < n && !known; m++) {
      known = users[m] == c;
    }
    if (known) {
      continue;
    }
    /* Inserts c so that users[] stays sorted by `last`. */
    for (; at > 0 && k->clusters[users[at - 1]].last > k->clusters[c].last; at--) {
      users[at] = users[at - 1];
    }
    users[at] = c;
    n++;
  }
  for (uint32_t m = 1; m < n; m++) {
    merge(k, users[m - 1], users[m]);
  }
}

/* --- making the fusions --- */

/* Returns true if the cluster is of the kind that is being made (INPUT if and only if it has a reduction), and a fusion
 * of it saves anything.  A fusion of one instruction does so only if the instruction reads a broadcast or iota. */
static bool is_worth_it(const clustering *k, const cluster *c) {
  if (c->n == 0 || (c->has_reduce != (k->kind == HLO_FUSION_INPUT))) {
    return false;
  }
  const hlo_instr *i = k->instrs[c->first];
  bool reads_free = false;
  for (uint32_t j = 0; j < i->n_operands; j++) {
    const hlo_instr *x = i->operands[j].def;
    reads_free |= hlo_is_free(x) && x->op != HLO_CONSTANT;
  }
  return c->n > 1 || reads_free;
}

static int by_number(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static uint32_t list_members(const clustering *k, const cluster *c, hlo_instr **members) {
  uint32_t ids[FUSE_MAX_MEMBERS], n = 0;
  for (uint32_t id = c->first; id != NONE; id = k->next[id]) {
    ids[n++] = id;
  }
  qsort(ids, n, sizeof *ids, by_number);
  for (uint32_t m = 0; m < n; m++) {
    members[m] = k->instrs[ids[m]];
  }
  return n;
}

/* Makes the cluster's fusion.  If a fusion is not worth it, moves the members to the position of the last one, since
 * that is where the decisions for other clusters assume them to be. */
static void place(clustering *k, hlo_fuser *f, const cluster *c, uint32_t *n_fused) {
  hlo_instr *members[FUSE_MAX_MEMBERS];
  uint32_t n = list_members(k, c, members);
  if (is_worth_it(k, c)) {
    hlo_fuse(f, k->kind, n, members);
    *n_fused += n;
    return;
  }
  for (uint32_t m = 0; m + 1 < n; m++) {
    hlo_move_before(members[m], members[n - 1]);
  }
}

static void make_fusions(clustering *k, hlo_fuser *f, bool *changed) {
  uint32_t n_ids = f->n_ids, n_worth = 0, n_fused = 0;
  /* By position: the number, plus one, of the cluster whose last member is there; 0 if there is none. */
  uint32_t *at = ARENA_NEW_N(k->context->scratch, uint32_t, n_ids + 1);
  for (uint32_t c = 0; c < k->n_clusters; c++) {
    n_worth += is_worth_it(k, &k->clusters[c]);
    if (k->clusters[c].n) {
      at[k->clusters[c].last] = c + 1;
    }
  }
  if (n_worth == 0) {
    return;
  }
  for (uint32_t id = 0; id < n_ids; id++) {
    if (at[id]) {
      place(k, f, &k->clusters[at[id] - 1], &n_fused);
    }
  }
  hlo_pass_note(k->context, "fusions", n_worth);
  hlo_pass_note(k->context, "instructions in them", n_fused);
  *changed = true;
}

status hlo_fuse_groups(hlo_computation *c, pass_context *context, hlo_fusion_kind kind, bool *changed) {
  enum { CHECK_EVERY = 1024 };
  arena *scratch = context->scratch;
  *changed |= hlo_sink_free(c);
  hlo_fuser f = hlo_fuser_make(c, scratch);
  uint32_t n = f.n_ids;
  clustering k = {.c = c, .context = context, .kind = kind, .roots = f.roots};
  k.instrs = ARENA_NEW_N(scratch, hlo_instr *, n + 1);
  k.of = ARENA_NEW_N(scratch, uint32_t, n + 1);
  k.space = ARENA_NEW_N(scratch, uint32_t, n + 1);
  k.next = ARENA_NEW_N(scratch, uint32_t, n + 1);
  k.clusters = ARENA_NEW_N(scratch, cluster, n + 1);
  for (hlo_instr *i = c->first; i; i = i->next) {
    k.instrs[i->id] = i;
    k.of[i->id] = k.next[i->id] = NONE;
  }
  for (uint32_t id = n; id-- > 0;) {
    if (id % CHECK_EVERY == 0) {
      TRY(budget_check(arena_budget(scratch)));
    }
    if (is_fusable(&k, k.instrs[id])) {
      assign(&k, k.instrs[id]);
    }
  }
  for (uint32_t id = 0; id < n; id++) {
    merge_users(&k, k.instrs[id]);
  }
  make_fusions(&k, &f, changed);
  return NULL;
}
