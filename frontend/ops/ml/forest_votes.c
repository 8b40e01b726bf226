/* forest_votes.c - what the leaves that rows reach vote for (forest.h).
 *
 * If each tree votes for one target only, as those of gradient boosting do, the places have one weight each, the trees
 * of a target are neighbours, and the sum over these is the target's score.  Otherwise each leaf has a row of weights
 * for all targets. */
#include <inttypes.h>
#include <math.h>

#include "frontend/ops/ml/forest_walk.h"

/* The weights of all leaves for all targets may be 2^27 numbers, or 512 MiB. */
enum { WEIGHTS_MAX = 1 << 27 };

typedef struct voting {
  const onnx_node *n;
  const ml_forest *f;
  ml_layout layout;
  int64_t *first_vote; /* for each node: its first vote; one element more for the end */
  int64_t *target;     /* for each tree: the target of its votes, or one of the numbers below */
  bool all_voted;      /* whether any row gives each target a vote */
  bool is_grouped;     /* whether the trees are in groups of `each` for each target */
  int64_t each, n_roots, *roots;
} voting;

enum { NOBODY = -1, SEVERAL = -2 };

static void find_votes(voting *v) {
  v->first_vote = ARENA_NEW_N(v->n->arena, int64_t, (size_t)v->f->n_nodes + 1);
  for (int64_t k = 0; k < v->f->n_votes; k++) {
    v->first_vote[v->f->votes[k].node + 1]++;
  }
  for (int64_t k = 0; k < v->f->n_nodes; k++) {
    v->first_vote[k + 1] += v->first_vote[k];
  }
}

/* --- the targets of trees --- */

/* A visit of all trees, one after the other.  Counts belong to the tree that is visited. */
typedef struct visit {
  int64_t *open;             /* nodes that are still to be visited */
  int64_t *seen_by;          /* for each node: the last tree that has visited it, counted from 1 */
  int64_t *found_by, *count; /* for each target: the last tree that votes for it, counted from 1; how many leaves do */
  int64_t *targets, n_targets, n_leaves; /* the targets of the tree; the number of its leaves */
} visit;

static void visit_leaf(const voting *v, visit *w, int64_t leaf, int64_t tree) {
  w->n_leaves++;
  for (int64_t k = v->first_vote[leaf]; k < v->first_vote[leaf + 1]; k++) {
    int64_t of = v->f->votes[k].target;
    if (w->found_by[of] != tree + 1) {
      w->found_by[of] = tree + 1;
      w->count[of] = 0;
      w->targets[w->n_targets++] = of;
    }
    w->count[of]++;
  }
}

static void visit_tree(const voting *v, visit *w, int64_t tree) {
  int64_t n_open = 0;
  w->n_leaves = w->n_targets = 0;
  w->open[n_open++] = v->f->roots[tree];
  w->seen_by[v->f->roots[tree]] = tree + 1;
  while (n_open) {
    int64_t at = w->open[--n_open];
    const ml_tree_node *x = &v->f->nodes[at];
    if (x->mode == ML_LEAF) {
      visit_leaf(v, w, at, tree);
      continue;
    }
    const int64_t next[] = {x->on_true, x->on_false};
    for (int k = 0; k < 2; k++) { /* a node may have several parents */
      if (w->seen_by[next[k]] != tree + 1) {
        w->seen_by[next[k]] = tree + 1;
        w->open[n_open++] = next[k];
      }
    }
  }
}

/* Finds the targets of each tree.  A target gets a vote from any row if all leaves of some tree vote for it. */
static void find_targets(voting *v) {
  arena *a = v->n->arena;
  size_t n_nodes = (size_t)v->f->n_nodes, n_targets = (size_t)v->f->n_targets;
  int64_t n_voted = 0;
  bool *voted = ARENA_NEW_N(a, bool, n_targets);
  visit w = {.open = ARENA_NEW_N(a, int64_t, n_nodes + 1),
             .seen_by = ARENA_NEW_N(a, int64_t, n_nodes),
             .found_by = ARENA_NEW_N(a, int64_t, n_targets),
             .count = ARENA_NEW_N(a, int64_t, n_targets),
             .targets = ARENA_NEW_N(a, int64_t, n_targets)};
  v->target = ARENA_NEW_N(a, int64_t, (size_t)v->f->n_trees);
  for (int64_t k = 0; k < v->f->n_trees; k++) {
    visit_tree(v, &w, k);
    v->target[k] = w.n_targets == 0 ? NOBODY : w.n_targets == 1 ? w.targets[0] : SEVERAL;
    for (int64_t j = 0; j < w.n_targets; j++) {
      int64_t of = w.targets[j];
      n_voted += !voted[of] && w.count[of] == w.n_leaves;
      voted[of] = voted[of] || w.count[of] == w.n_leaves;
    }
  }
  v->all_voted = n_voted == v->f->n_targets;
}

/* --- the order of trees --- */

/* Decides whether trees are grouped: if none votes for several targets, and if groups of one size do not need many
 * trees that vote for nothing.  Sets `each` to that size. */
static void choose_groups(voting *v) {
  const ml_forest *f = v->f;
  int64_t *size = ARENA_NEW_N(v->n->arena, int64_t, (size_t)f->n_targets);
  v->is_grouped = true;
  v->each = 1;
  for (int64_t k = 0; k < f->n_trees; k++) {
    int64_t of = v->target[k];
    v->is_grouped = v->is_grouped && of != SEVERAL;
    if (of >= 0) {
      size[of]++;
      v->each = size[of] > v->each ? size[of] : v->each;
    }
  }
  v->is_grouped = v->is_grouped && (f->n_targets == 1 || v->each <= 2 * f->n_trees / f->n_targets);
}

static void order_trees(voting *v) {
  const ml_forest *f = v->f;
  v->roots = f->roots;
  v->n_roots = f->n_trees;
  if (!v->is_grouped) {
    return;
  }
  v->n_roots = f->n_targets * v->each;
  v->roots = ARENA_NEW_N(v->n->arena, int64_t, (size_t)v->n_roots);
  int64_t *size = ARENA_NEW_N(v->n->arena, int64_t, (size_t)f->n_targets);
  for (int64_t k = 0; k < v->n_roots; k++) {
    v->roots[k] = -1;
  }
  for (int64_t k = 0; k < f->n_trees; k++) {
    int64_t of = v->target[k];
    if (of >= 0) {
      v->roots[of * v->each + size[of]++] = f->roots[k];
    }
  }
}

/* --- the tables of weights --- */

/* What a table holds: weights in the type, with `neutral` where there is no vote, or, for pred, whether there is one.
 */
typedef struct filling {
  dtype type;
  double neutral;
} filling;

static void put(const filling *fill, void *data, int64_t at, double weight) {
  if (fill->type == DTYPE_PRED) {
    ((uint8_t *)data)[at] = 1;
  } else if (fill->type == DTYPE_F64) {
    ((double *)data)[at] = weight;
  } else {
    ((float *)data)[at] = (float)weight;
  }
}

static literal new_table(const voting *v, const filling *fill, int rank, const dim *dims, void **data) {
  literal l = literal_new(v->n->arena, shape_make(fill->type, rank, dims), data);
  for (int64_t k = 0; k < shape_elements(&l.shape) && fill->type != DTYPE_PRED; k++) {
    put(fill, *data, k, fill->neutral);
  }
  return l;
}

/* Returns for each group and each of its trees what the leaf at the place has: [N][n_targets][each]. */
static hlo_value taken_by_groups(const voting *v, const filling *fill, hlo_value places) {
  hlo_builder *b = v->n->b;
  void *data;
  literal table = new_table(v, fill, 1, &v->layout.size, &data);
  for (int64_t k = 0; k < v->layout.size; k++) {
    int64_t at = v->layout.node[k];
    if (at >= 0 && v->first_vote[at] < v->first_vote[at + 1]) {
      put(fill, data, k, v->f->votes[v->first_vote[at]].weight);
    }
  }
  hlo_value x = hlo_take(b, hlo_constant(b, table), places, 0);
  return b->error ? x : hlo_reshape(b, x, 3, (dim[]){hlo_shape(x)->dims[0], v->f->n_targets, v->each});
}

/* Returns for each tree the row of the leaf at the place: [N][trees][n_targets].  Row 0 is that of leaves without
 * votes. */
static hlo_value taken_by_rows(const voting *v, const filling *fill, hlo_value places) {
  hlo_builder *b = v->n->b;
  const ml_forest *f = v->f;
  int64_t n_rows = 1, *row_of = ARENA_NEW_N(v->n->arena, int64_t, (size_t)f->n_nodes);
  for (int64_t k = 0; k < f->n_nodes; k++) {
    row_of[k] = v->first_vote[k] < v->first_vote[k + 1] ? n_rows++ : 0;
  }
  if (n_rows > WEIGHTS_MAX / f->n_targets) {
    hlo_fail(b,
             status_error(STATUS_UNSUPPORTED, "weights of %" PRId64 " leaves for %" PRId64 " targets are not supported",
                          n_rows - 1, f->n_targets));
    return places;
  }
  void *data;
  int32_t *rows;
  literal row = literal_new(v->n->arena, shape_make(DTYPE_S32, 1, &v->layout.size), (void **)&rows);
  literal table = new_table(v, fill, 2, (dim[]){n_rows, f->n_targets}, &data);
  for (int64_t k = 0; k < v->layout.size; k++) {
    rows[k] = v->layout.node[k] < 0 ? 0 : (int32_t)row_of[v->layout.node[k]];
  }
  for (int64_t k = 0; k < f->n_votes; k++) {
    put(fill, data, row_of[f->votes[k].node] * f->n_targets + f->votes[k].target, f->votes[k].weight);
  }
  return hlo_take(b, hlo_constant(b, table), hlo_take(b, hlo_constant(b, row), places, 0), 0);
}

static hlo_value reduced(const voting *v, const filling *fill, hlo_reducer r, hlo_value places) {
  int64_t trees = v->is_grouped ? 2 : 1;
  hlo_value x = v->is_grouped ? taken_by_groups(v, fill, places) : taken_by_rows(v, fill, places);
  return hlo_reduce(v->n->b, x, r, 1, &trees);
}

static status check_weights(const ml_forest *f) {
  for (int64_t k = 0; k < f->n_votes; k++) {
    CHECK_THAT(!isnan(f->votes[k].weight), STATUS_UNSUPPORTED,
               "a weight is NaN, whose minimum or maximum is not supported");
  }
  return NULL;
}

status ml_aggregated(const onnx_node *n, const ml_forest *f, hlo_value rows, ml_aggregate how, hlo_value *scores,
                     hlo_value *voted) {
  static const filling flags = {.type = DTYPE_PRED};
  hlo_builder *b = n->b;
  bool is_sum = how == ML_SUM || how == ML_AVERAGE;
  hlo_reducer reducer = is_sum ? HLO_REDUCE_ADD : how == ML_MIN ? HLO_REDUCE_MIN : HLO_REDUCE_MAX;
  voting v = {.n = n, .f = f};
  hlo_value places;
  TRY(is_sum ? NULL : check_weights(f));
  find_votes(&v);
  find_targets(&v);
  choose_groups(&v);
  order_trees(&v);
  TRY(ml_lay_out(n, f, v.n_roots, v.roots, &v.layout));
  TRY(ml_walk(n, &v.layout, v.n_roots, rows, &places));
  *voted = (hlo_value){0};
  *scores = rows;
  if (b->error) {
    return NULL;
  }
  filling weights = {.type = hlo_type(rows), .neutral = is_sum ? 0 : how == ML_MIN ? INFINITY : -INFINITY};
  *scores = reduced(&v, &weights, reducer, places);
  if (how == ML_AVERAGE) {
    *scores = hlo_binary(b, HLO_DIV, *scores, hlo_like(b, *scores, (double)f->n_trees));
  }
  if (!v.all_voted) {
    *voted = reduced(&v, &flags, HLO_REDUCE_OR, places);
    *scores = hlo_select(b, *voted, *scores, hlo_like(b, *scores, 0));
  }
  return NULL;
}
