/* forest_check.c - what the readers of trees share (forest.h): numbers from attributes, the check that walks from the
 * roots end, and the search of members. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/ops/ml/forest.h"

/* --- numbers --- */

status ml_read_numbers(const onnx_node *n, const char *floats, const char *tensor, const double **values,
                       int64_t *count, bool *wide) {
  const float *given;
  size_t n_given;
  TRY(onnx_attr_floats(n->proto, floats, &given, &n_given));
  const Onnx__TensorProto *t;
  TRY(onnx_attr_tensor(n->proto, tensor, &t));
  CHECK_THAT(!t || !n_given, STATUS_INVALID_MODEL, "%s and %s are both given", floats, tensor);
  literal l = literal_make(shape_make(DTYPE_F32, 1, (dim[]){(dim)n_given}), given);
  if (t) {
    TRY(onnx_node_tensor(n, t, &l));
    dtype type = (dtype)l.shape.type;
    CHECK_THAT((type == DTYPE_F32 || type == DTYPE_F64) && l.shape.rank == 1, STATUS_INVALID_MODEL,
               "%s is %s; one dimension of f32 or f64 is needed", tensor, SHAPE_STR(onnx_dims(n), &l.shape));
    *wide = *wide || type == DTYPE_F64;
  }
  *count = shape_elements(&l.shape);
  double *out = ARENA_NEW_N(n->arena, double, (size_t)*count + 1);
  for (int64_t k = 0; k < *count; k++) {
    out[k] = literal_f64(&l, k);
  }
  *values = out;
  return NULL;
}

/* --- trees --- */

/* A walk takes as many steps as the deepest tree, and some lists have an element for each target. */
enum { DEPTH_MAX = 1024, NODES_MAX = 1 << 28, TARGETS_MAX = 1 << 20 };

typedef struct check {
  const onnx_node *n;
  ml_forest *f;
  bool lone_leaves;
  int64_t *parents; /* for each node: from how many nodes and roots a walk comes to it */
  int64_t *order;   /* the nodes to which walks come, each after its parents */
  int64_t *depth;   /* for each node: the largest number of steps from a root to it */
  bool *merged;     /* for each node: whether it has become a member of a node before it */
  int64_t n_found;
} check;

/* Calls `next` for each child of a node. */
static void for_children(check *c, int64_t node, void next(check *, int64_t)) {
  const ml_tree_node *x = &c->f->nodes[node];
  if (x->mode != ML_LEAF) {
    next(c, x->on_true);
    next(c, x->on_false);
  }
}

static void find(check *c, int64_t node) {
  if (c->parents[node]++ == 0) {
    c->order[c->n_found++] = node;
  }
}

/* Puts a node into the order when it is met for the last time. */
static void put_in_order(check *c, int64_t node) {
  if (--c->parents[node] == 0) {
    c->order[c->n_found++] = node;
  }
}

/* Finds the nodes from the roots on.  A node may have several parents: the nodes that compare a feature with several
 * numbers one after the other often lead to the same child.  A node that is not found is a second root of a tree or in
 * a cycle. */
static status find_nodes(check *c) {
  ml_forest *f = c->f;
  for (int64_t k = 0; k < f->n_trees; k++) {
    find(c, f->roots[k]);
  }
  for (int64_t k = 0; k < c->n_found; k++) {
    for_children(c, c->order[k], find);
  }
  for (int64_t k = 0; k < f->n_nodes; k++) {
    CHECK_THAT(c->parents[k] || (c->lone_leaves && f->nodes[k].mode == ML_LEAF), STATUS_INVALID_MODEL,
               "no walk from a root leads to node %" PRId64, k);
  }
  return NULL;
}

/* Sorts the nodes so that each comes after its parents, which is impossible only if some are in a cycle. */
static status sort_nodes(check *c) {
  int64_t n_all = c->n_found, *parents = ARENA_NEW_N(c->n->arena, int64_t, (size_t)c->f->n_nodes);
  memcpy(parents, c->parents, (size_t)c->f->n_nodes * sizeof *parents);
  c->n_found = 0;
  for (int64_t k = 0; k < c->f->n_trees; k++) {
    put_in_order(c, c->f->roots[k]);
  }
  for (int64_t k = 0; k < c->n_found; k++) {
    for_children(c, c->order[k], put_in_order);
  }
  for (int64_t k = 0; k < c->f->n_nodes && c->n_found < n_all; k++) {
    CHECK_THAT(!c->parents[k], STATUS_INVALID_MODEL, "node %" PRId64 " is in a cycle, or follows one", k);
  }
  c->parents = parents;
  return NULL;
}

/* --- members --- */

static int by_number(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Sorts the numbers, which have no NaN, and removes repetitions.  Returns how many are left. */
static int64_t distinct(double *numbers, int64_t count) {
  int64_t kept = 0;
  qsort(numbers, (size_t)count, sizeof *numbers, by_number);
  for (int64_t k = 0; k < count; k++) {
    if (kept == 0 || numbers[kept - 1] != numbers[k]) {
      numbers[kept++] = numbers[k];
    }
  }
  return kept;
}

/* Makes node `at` a search for the feature among the numbers, by halves: nodes that compare by ML_LEQ, and at the end
 * one of ML_EQ.  NaN passes to the last number, whose node sends it where the member's node would.  Returns the number
 * of steps. */
static int64_t search(ml_forest *f, int64_t at, const ml_tree_node *member, const double *numbers, int64_t count) {
  ml_tree_node *x = &f->nodes[at];
  *x = *member;
  if (count <= 1) {
    x->mode = ML_EQ;
    x->value = count ? numbers[0] : NAN; /* to which nothing is equal */
    return 1;
  }
  int64_t half = count / 2;
  *x = (ml_tree_node){.mode = ML_LEQ,
                      .feature = member->feature,
                      .value = numbers[half - 1],
                      .on_true = f->n_nodes,
                      .on_false = f->n_nodes + 1};
  f->n_nodes += 2;
  int64_t low = search(f, x->on_true, member, numbers, half);
  int64_t high = search(f, x->on_false, member, numbers + half, count - half);
  return 1 + (low > high ? low : high);
}

/* Returns whether the false child of a node continues its test: whether the feature is one of several numbers. */
static bool continues(const check *c, const ml_tree_node *x, const ml_tree_node *head) {
  const ml_tree_node *y = &c->f->nodes[x->on_false];
  return y->mode == ML_EQ && !isnan(y->value) && y->feature == head->feature && y->on_true == head->on_true &&
         c->parents[x->on_false] == 1;
}

/* Makes one node of mode ML_MEMBER of nodes of mode ML_EQ that follow one another and have the same true child: so
 * converters write a set of categories for the operators that know no such mode. */
static void merge_chain(check *c, int64_t at) {
  ml_tree_node *head = &c->f->nodes[at];
  int64_t count = 1;
  for (const ml_tree_node *x = head; continues(c, x, head); x = &c->f->nodes[x->on_false]) {
    count++;
  }
  if (count == 1) {
    return;
  }
  double *members = ARENA_NEW_N(c->n->arena, double, (size_t)count);
  members[0] = head->value;
  for (int64_t k = 1; k < count; k++) {
    const ml_tree_node *x = &c->f->nodes[head->on_false];
    c->merged[head->on_false] = true;
    members[k] = x->value;
    head->missing_true = head->missing_true || x->missing_true;
    head->on_false = x->on_false;
  }
  head->mode = ML_MEMBER;
  head->members = members;
  head->n_members = count;
}

static void merge_chains(check *c) {
  for (int64_t k = 0; k < c->n_found; k++) {
    const ml_tree_node *x = &c->f->nodes[c->order[k]];
    if (x->mode == ML_EQ && !isnan(x->value) && !c->merged[c->order[k]]) {
      merge_chain(c, c->order[k]);
    }
  }
}

/* Makes room for the nodes of all searches. */
static status grow(const onnx_node *n, ml_forest *f) {
  int64_t most = f->n_nodes;
  for (int64_t k = 0; k < f->n_nodes; k++) {
    most += f->nodes[k].mode == ML_MEMBER ? 2 * f->nodes[k].n_members : 0;
  }
  CHECK_THAT(most <= NODES_MAX, STATUS_UNSUPPORTED, "there are %" PRId64 " nodes and members; at most %d are supported",
             most, NODES_MAX);
  if (most > f->n_nodes) {
    ml_tree_node *nodes = ARENA_NEW_N(n->arena, ml_tree_node, (size_t)most);
    memcpy(nodes, f->nodes, (size_t)f->n_nodes * sizeof *nodes);
    f->nodes = nodes;
  }
  return NULL;
}

/* Replaces a node of mode ML_MEMBER; returns the number of steps that it takes then. */
static int64_t replace_member(const onnx_node *n, ml_forest *f, int64_t at) {
  ml_tree_node member = f->nodes[at];
  double *numbers = ARENA_NEW_N(n->arena, double, (size_t)member.n_members + 1);
  for (int64_t k = 0; k < member.n_members; k++) {
    numbers[k] = member.members[k];
  }
  return search(f, at, &member, numbers, distinct(numbers, member.n_members));
}

/* Replaces nodes of mode ML_MEMBER, and computes the depth.  A node has as many steps before it as its deepest parent
 * needs. */
static status measure(check *c) {
  ml_forest *f = c->f;
  TRY(grow(c->n, f));
  for (int64_t k = 0; k < c->n_found; k++) {
    int64_t at = c->order[k], depth = c->depth[at];
    ml_tree_node x = f->nodes[at];
    if (c->merged[at]) {
      continue;
    }
    f->depth = depth > f->depth ? depth : f->depth;
    if (x.mode != ML_LEAF) {
      depth += x.mode == ML_MEMBER ? replace_member(c->n, f, at) : 1;
      const int64_t next[] = {x.on_true, x.on_false};
      for (int j = 0; j < 2; j++) {
        c->depth[next[j]] = depth > c->depth[next[j]] ? depth : c->depth[next[j]];
      }
    }
    CHECK_THAT(f->depth <= DEPTH_MAX, STATUS_UNSUPPORTED, "a tree is more than %d nodes deep, which is not supported",
               DEPTH_MAX);
  }
  return NULL;
}

/* --- votes --- */

static int by_leaf(const void *a, const void *b) {
  const ml_vote *x = a, *y = b;
  int order = (x->node > y->node) - (x->node < y->node);
  return order ? order : (x->target > y->target) - (x->target < y->target);
}

static int by_leaf_and_position(const void *a, const void *b) {
  const ml_vote *x = a, *y = b;
  int order = by_leaf(a, b);
  return order ? order : (x->position > y->position) - (x->position < y->position);
}

/* Returns what two weights of a leaf for one target count.  As in ONNX Runtime, the first one counts if there is only
 * one target. */
static double both_weights(const ml_forest *f, double x, double y) {
  bool is_first = isnan(x) || (f->how == ML_MIN ? x <= y : x >= y);
  return f->n_targets == 1 ? x : f->how == ML_SUM || f->how == ML_AVERAGE ? x + y : is_first ? x : y;
}

/* Makes one vote of those of a leaf for one target. */
static void merge_votes(ml_forest *f) {
  int64_t kept = 0;
  for (int64_t k = 0; k < f->n_votes; k++) {
    if (kept == 0 || by_leaf(&f->votes[kept - 1], &f->votes[k]) != 0) {
      f->votes[kept++] = f->votes[k];
    } else {
      f->votes[kept - 1].weight = both_weights(f, f->votes[kept - 1].weight, f->votes[k].weight);
      f->repeated = true;
    }
  }
  f->n_votes = kept;
}

/* Notes what all weights have in common, drops those of nodes that are no leaves, which count for nothing, and sorts
 * the rest. */
static status sort_votes(ml_forest *f) {
  int64_t kept = 0;
  for (int64_t k = 0; k < f->n_votes; k++) {
    ml_vote v = f->votes[k];
    CHECK_THAT(v.target >= 0 && v.target < f->n_targets, STATUS_INVALID_MODEL,
               "a weight is for target %" PRId64 "; there are %" PRId64, v.target, f->n_targets);
    f->used[v.target] = true;
    f->all_positive = f->all_positive && v.weight >= 0;
    v.position = k;
    if (f->nodes[v.node].mode == ML_LEAF) {
      f->votes[kept++] = v;
    }
  }
  f->n_votes = kept;
  qsort(f->votes, (size_t)kept, sizeof *f->votes, by_leaf_and_position);
  merge_votes(f);
  return NULL;
}

status ml_finish_forest(const onnx_node *n, ml_forest *f, bool lone_leaves) {
  CHECK_THAT(f->n_trees, STATUS_INVALID_MODEL, "there are no trees");
  CHECK_THAT(f->n_targets <= TARGETS_MAX, STATUS_UNSUPPORTED, "%" PRId64 " targets are not supported; there may be %d",
             f->n_targets, TARGETS_MAX);
  size_t count = (size_t)f->n_nodes;
  check c = {.n = n,
             .f = f,
             .lone_leaves = lone_leaves,
             .parents = ARENA_NEW_N(n->arena, int64_t, count),
             .order = ARENA_NEW_N(n->arena, int64_t, count),
             .depth = ARENA_NEW_N(n->arena, int64_t, count),
             .merged = ARENA_NEW_N(n->arena, bool, count)};
  f->used = ARENA_NEW_N(n->arena, bool, (size_t)f->n_targets);
  f->all_positive = true;
  TRY(sort_votes(f));
  TRY(find_nodes(&c));
  TRY(sort_nodes(&c));
  merge_chains(&c);
  return measure(&c);
}
