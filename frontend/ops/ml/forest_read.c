/* forest_read.c - reads trees from the attributes of the operators of ai.onnx.ml (forest.h). */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/ops/ml/forest.h"

static status check_count(const char *name, int64_t count, const char *of, int64_t wanted) {
  CHECK_THAT(count == wanted, STATUS_INVALID_MODEL, "%s has %" PRId64 " elements; %s has %" PRId64, name, count, of,
             wanted);
  return NULL;
}

/* Reads a list of integers that must have as many elements as the list `of`. */
static status read_ints(const onnx_node *n, const char *name, const char *of, int64_t wanted, const int64_t **values) {
  size_t count;
  TRY(onnx_attr_ints(n->proto, name, values, &count));
  return check_count(name, (int64_t)count, of, wanted);
}

/* Sets the features of the nodes from nodes_featureids, and where NaN goes; both attributes have `count` elements, the
 * second one may be absent. */
static status read_features(const onnx_node *n, ml_tree_node *nodes, const char *of, int64_t count) {
  const char *const tracks = "nodes_missing_value_tracks_true";
  const int64_t *features, *missing = NULL;
  TRY(read_ints(n, "nodes_featureids", of, count, &features));
  if (onnx_attr_has(n->proto, tracks)) {
    size_t given;
    TRY(onnx_attr_ints(n->proto, tracks, &missing, &given));
    TRY(given ? check_count(tracks, (int64_t)given, of, count) : NULL);
    missing = given ? missing : NULL;
  }
  for (int64_t k = 0; k < count; k++) {
    CHECK_THAT(!missing || missing[k] == 0 || missing[k] == 1, STATUS_INVALID_MODEL,
               "%s has %" PRId64 "; 0 or 1 is needed", tracks, missing[k]);
    if (nodes[k].mode != ML_LEAF) {
      CHECK_THAT(features[k] >= 0 && features[k] < INT32_MAX, STATUS_INVALID_MODEL, "nodes_featureids has %" PRId64,
                 features[k]);
      nodes[k].feature = features[k];
      nodes[k].missing_true = missing && missing[k];
    }
  }
  return NULL;
}

/* --- TreeEnsembleRegressor and TreeEnsembleClassifier: nodes have the numbers of their trees, and numbers in them ---
 */

typedef struct place {
  int64_t tree, id, at;
} place;

static int by_id(const void *a, const void *b) {
  const place *x = a, *y = b;
  int order = (x->tree > y->tree) - (x->tree < y->tree);
  return order ? order : (x->id > y->id) - (x->id < y->id);
}

static int by_position(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* The nodes, sorted by their trees and numbers. */
typedef struct places {
  place *all;
  int64_t n;
} places;

static status find(const places *p, const char *name, int64_t tree, int64_t id, int64_t *at) {
  const place wanted = {.tree = tree, .id = id}, *found = bsearch(&wanted, p->all, (size_t)p->n, sizeof wanted, by_id);
  CHECK_THAT(found, STATUS_INVALID_MODEL, "%s has %" PRId64 "; tree %" PRId64 " has no such node", name, id, tree);
  *at = found->at;
  return NULL;
}

static status read_places(const onnx_node *n, const int64_t *trees, int64_t count, places *p) {
  const int64_t *ids;
  TRY(read_ints(n, "nodes_nodeids", "nodes_treeids", count, &ids));
  *p = (places){ARENA_NEW_N(n->arena, place, (size_t)count + 1), count};
  for (int64_t k = 0; k < count; k++) {
    p->all[k] = (place){trees[k], ids[k], k};
  }
  qsort(p->all, (size_t)count, sizeof *p->all, by_id);
  for (int64_t k = 1; k < count; k++) {
    CHECK_THAT(by_id(&p->all[k - 1], &p->all[k]) != 0, STATUS_INVALID_MODEL, "tree %" PRId64 " has two nodes %" PRId64,
               p->all[k].tree, p->all[k].id);
  }
  return NULL;
}

/* The root of a tree is the first of its nodes that is listed.  The roots are in the order of the list. */
static void find_roots(const onnx_node *n, const places *p, ml_forest *f) {
  f->roots = ARENA_NEW_N(n->arena, int64_t, (size_t)p->n + 1);
  for (int64_t k = 0; k < p->n; k++) {
    if (k == 0 || p->all[k].tree != p->all[k - 1].tree) {
      f->roots[f->n_trees++] = p->all[k].at;
    } else if (p->all[k].at < f->roots[f->n_trees - 1]) {
      f->roots[f->n_trees - 1] = p->all[k].at;
    }
  }
  qsort(f->roots, (size_t)f->n_trees, sizeof *f->roots, by_position);
}

static status read_modes(const onnx_node *n, ml_forest *f) {
  static const char *const texts[] = {
      [ML_LEQ] = "BRANCH_LEQ", [ML_LT] = "BRANCH_LT",   [ML_GTE] = "BRANCH_GTE", [ML_GT] = "BRANCH_GT",
      [ML_EQ] = "BRANCH_EQ",   [ML_NEQ] = "BRANCH_NEQ", [ML_MEMBER] = "",        [ML_LEAF] = "LEAF"};
  const char *const *modes;
  size_t count;
  TRY(onnx_attr_strings(n->arena, n->proto, "nodes_modes", &modes, &count));
  TRY(check_count("nodes_modes", (int64_t)count, "nodes_treeids", f->n_nodes));
  for (int64_t k = 0; k < f->n_nodes; k++) {
    int mode = 0;
    while (mode <= ML_LEAF && (mode == ML_MEMBER || strcmp(modes[k], texts[mode]) != 0)) {
      mode++;
    }
    CHECK_THAT(mode <= ML_LEAF, STATUS_INVALID_MODEL, "nodes_modes has \"%s\", which is unknown", modes[k]);
    f->nodes[k].mode = (ml_mode)mode;
  }
  return NULL;
}

static status read_branches(const onnx_node *n, const int64_t *trees, const places *p, ml_forest *f) {
  const double *values;
  const int64_t *on_true, *on_false;
  int64_t count;
  TRY(ml_read_numbers(n, "nodes_values", "nodes_values_as_tensor", &values, &count, &f->wide));
  TRY(check_count("nodes_values", count, "nodes_treeids", f->n_nodes));
  TRY(read_ints(n, "nodes_truenodeids", "nodes_treeids", f->n_nodes, &on_true));
  TRY(read_ints(n, "nodes_falsenodeids", "nodes_treeids", f->n_nodes, &on_false));
  for (int64_t k = 0; k < f->n_nodes; k++) {
    ml_tree_node *x = &f->nodes[k];
    if (x->mode != ML_LEAF) {
      x->value = values[k];
      TRY(find(p, "nodes_truenodeids", trees[k], on_true[k], &x->on_true));
      TRY(find(p, "nodes_falsenodeids", trees[k], on_false[k], &x->on_false));
    }
  }
  return NULL;
}

static status read_votes(const onnx_node *n, const ml_vote_names *names, const places *p, ml_forest *f) {
  const double *weights;
  const int64_t *trees, *nodes, *targets;
  TRY(ml_read_numbers(n, names->weights, names->weights_tensor, &weights, &f->n_votes, &f->wide));
  TRY(read_ints(n, names->trees, names->weights, f->n_votes, &trees));
  TRY(read_ints(n, names->nodes, names->weights, f->n_votes, &nodes));
  TRY(read_ints(n, names->targets, names->weights, f->n_votes, &targets));
  f->votes = ARENA_NEW_N(n->arena, ml_vote, (size_t)f->n_votes + 1);
  for (int64_t k = 0; k < f->n_votes; k++) {
    f->votes[k] = (ml_vote){.target = targets[k], .weight = weights[k]};
    TRY(find(p, names->nodes, trees[k], nodes[k], &f->votes[k].node));
  }
  return NULL;
}

status ml_read_forest(const onnx_node *n, const ml_vote_names *names, int64_t n_targets, ml_aggregate how,
                      ml_forest *out) {
  const int64_t *trees;
  size_t count;
  places p;
  TRY(onnx_attr_ints(n->proto, "nodes_treeids", &trees, &count));
  *out = (ml_forest){.n_nodes = (int64_t)count,
                     .n_targets = n_targets,
                     .how = how,
                     .nodes = ARENA_NEW_N(n->arena, ml_tree_node, count + 1)};
  TRY(read_places(n, trees, out->n_nodes, &p));
  find_roots(n, &p, out);
  TRY(read_modes(n, out));
  TRY(read_features(n, out->nodes, "nodes_treeids", out->n_nodes));
  TRY(read_branches(n, trees, &p, out));
  TRY(read_votes(n, names, &p, out));
  return ml_finish_forest(n, out, false);
}

/* --- TreeEnsemble: the leaves are apart from the other nodes --- */

/* Reads an attribute that is a tensor of one dimension. */
static status read_tensor(const onnx_node *n, const char *name, dtype type, literal *out) {
  const Onnx__TensorProto *t;
  TRY(onnx_attr_required(n->proto, name));
  TRY(onnx_attr_tensor(n->proto, name, &t));
  TRY(onnx_node_tensor(n, t, out));
  CHECK_THAT((dtype)out->shape.type == type && out->shape.rank == 1, STATUS_INVALID_MODEL,
             "%s is %s; one dimension of %s is needed", name, SHAPE_STR(onnx_dims(n), &out->shape), dtype_name(type));
  return NULL;
}

/* Reads the nodes that are no leaves: their modes, features and values. */
static status read_splits(const onnx_node *n, dtype type, ml_forest *f, int64_t *n_splits) {
  literal modes, values;
  TRY(read_tensor(n, "nodes_modes", DTYPE_U8, &modes));
  TRY(read_tensor(n, "nodes_splits", type, &values));
  *n_splits = shape_elements(&modes.shape);
  TRY(check_count("nodes_splits", shape_elements(&values.shape), "nodes_modes", *n_splits));
  f->nodes = ARENA_NEW_N(n->arena, ml_tree_node, (size_t)(*n_splits + f->n_votes) + 1);
  for (int64_t k = 0; k < *n_splits; k++) {
    int64_t mode = literal_i64(&modes, k);
    CHECK_THAT(mode <= ML_MEMBER, STATUS_INVALID_MODEL, "nodes_modes has %" PRId64 ", which is unknown", mode);
    f->nodes[k] = (ml_tree_node){.mode = (ml_mode)mode, .value = literal_f64(&values, k)};
  }
  return read_features(n, f->nodes, "nodes_modes", *n_splits);
}

/* Sets the members of the nodes of mode ML_MEMBER: the numbers up to the next NaN, in the order of the nodes. */
static status read_members(const onnx_node *n, dtype type, ml_forest *f, int64_t n_splits) {
  const char *const name = "membership_values";
  literal all = {0};
  int64_t count = 0, sets = 0, wanted = 0, at = 0;
  if (onnx_attr_has(n->proto, name)) {
    TRY(read_tensor(n, name, type, &all));
    count = shape_elements(&all.shape);
  }
  double *numbers = ARENA_NEW_N(n->arena, double, (size_t)count + 1);
  for (int64_t k = 0; k < count; k++) {
    numbers[k] = literal_f64(&all, k);
    sets += isnan(numbers[k]) || k + 1 == count;
  }
  for (int64_t k = 0; k < n_splits; k++) {
    wanted += f->nodes[k].mode == ML_MEMBER;
  }
  CHECK_THAT(sets == wanted, STATUS_INVALID_MODEL, "%s has %" PRId64 " sets; %" PRId64 " nodes need one", name, sets,
             wanted);
  for (int64_t k = 0; k < n_splits; k++) {
    if (f->nodes[k].mode == ML_MEMBER) {
      f->nodes[k].members = numbers + at;
      for (; at < count && !isnan(numbers[at]); at++) {
        f->nodes[k].n_members++;
      }
      at++;
    }
  }
  return NULL;
}

/* Sets the children on one side: `name` has the numbers of splits, or of leaves where the attribute `leafs` is 1. */
static status read_side(const onnx_node *n, const char *name, const char *leafs, ml_forest *f, int64_t n_splits,
                        bool on_true) {
  const int64_t *children, *are_leaves;
  TRY(read_ints(n, name, "nodes_modes", n_splits, &children));
  TRY(read_ints(n, leafs, "nodes_modes", n_splits, &are_leaves));
  for (int64_t k = 0; k < n_splits; k++) {
    CHECK_THAT(are_leaves[k] == 0 || are_leaves[k] == 1, STATUS_INVALID_MODEL, "%s has %" PRId64 "; 0 or 1 is needed",
               leafs, are_leaves[k]);
    int64_t limit = are_leaves[k] ? f->n_votes : n_splits;
    CHECK_THAT(children[k] >= 0 && children[k] < limit, STATUS_INVALID_MODEL,
               "%s has %" PRId64 "; there are %" PRId64 " %s", name, children[k], limit,
               are_leaves[k] ? "leaves" : "nodes");
    *(on_true ? &f->nodes[k].on_true : &f->nodes[k].on_false) = children[k] + (are_leaves[k] ? n_splits : 0);
  }
  return NULL;
}

/* Makes the leaves the nodes after the splits. */
static void add_leaves(const onnx_node *n, ml_forest *f, int64_t n_splits, const int64_t *targets,
                       const literal *weights) {
  f->n_nodes = n_splits + f->n_votes;
  f->votes = ARENA_NEW_N(n->arena, ml_vote, (size_t)f->n_votes + 1);
  for (int64_t k = 0; k < f->n_votes; k++) {
    f->nodes[n_splits + k].mode = ML_LEAF;
    f->votes[k] = (ml_vote){.node = n_splits + k, .target = targets[k], .weight = literal_f64(weights, k)};
  }
}

status ml_read_compact_forest(const onnx_node *n, dtype type, int64_t n_targets, ml_forest *out) {
  literal weights;
  const int64_t *targets, *roots;
  size_t n_trees;
  int64_t n_splits;
  TRY(read_tensor(n, "leaf_weights", type, &weights));
  *out = (ml_forest){.n_votes = shape_elements(&weights.shape), .n_targets = n_targets};
  TRY(read_ints(n, "leaf_targetids", "leaf_weights", out->n_votes, &targets));
  TRY(read_splits(n, type, out, &n_splits));
  TRY(read_members(n, type, out, n_splits));
  TRY(read_side(n, "nodes_truenodeids", "nodes_trueleafs", out, n_splits, true));
  TRY(read_side(n, "nodes_falsenodeids", "nodes_falseleafs", out, n_splits, false));
  add_leaves(n, out, n_splits, targets, &weights);
  TRY(onnx_attr_ints(n->proto, "tree_roots", &roots, &n_trees));
  out->n_trees = (int64_t)n_trees;
  out->roots = ARENA_NEW_N(n->arena, int64_t, n_trees + 1);
  for (size_t k = 0; k < n_trees; k++) {
    CHECK_THAT(roots[k] >= 0 && roots[k] < n_splits, STATUS_INVALID_MODEL,
               "tree_roots has %" PRId64 "; there are %" PRId64 " nodes", roots[k], n_splits);
    out->roots[k] = roots[k];
  }
  return ml_finish_forest(n, out, true);
}
