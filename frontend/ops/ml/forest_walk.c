/* forest_walk.c - see forest_walk.h.
 *
 * All rows and trees walk together: the array of places [N][trees] is replaced by that of the next places until all are
 * leaves.  The children of a node are neighbours, so that one table and a comparison give the next place:
 *
 *   place = next[place] + (x[row][feature[place]] <= value[place])
 *
 * A leaf is its own next place, and its value is NaN, to which no number compares, so that a walk stays there.  Nodes
 * of other modes are brought to this form: `>=` is `<` with the children exchanged.
 *
 * Trees that grow leaf by leaf have very different depths, so the trees are sorted by theirs, and those that have ended
 * are left out of further steps. */
#include "frontend/ops/ml/forest_walk.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "frontend/import/symbolic.h"

/* --- the layout --- */

/* The comparisons of the table, after children were exchanged. */
enum { LEQ, LT, EQ, N_KINDS, NAN_PASSES = 4 /* NaN moves on to the second child */ };

/* Returns which comparison decides at the node.  *exchanged is set to whether the walk moves on to the false child
 * where it holds.  A value of NaN needs no exchange: only `not equal` holds for it. */
static int kind_of(const ml_tree_node *x, bool *exchanged) {
  *exchanged = x->mode == ML_NEQ || ((x->mode == ML_GTE || x->mode == ML_GT) && !isnan(x->value));
  switch (x->mode) {
    case ML_LEQ:
    case ML_GT: return LEQ;
    case ML_LT:
    case ML_GTE: return LT;
    default: return EQ;
  }
}

/* Returns the kind of the node, and NAN_PASSES if that is so. */
static int code_of(const ml_tree_node *x) {
  bool exchanged;
  int kind = kind_of(x, &exchanged);
  bool to_true = x->missing_true || x->mode == ML_NEQ;
  return x->mode == ML_LEAF ? EQ : to_true != exchanged ? kind | NAN_PASSES : kind;
}

const ml_tree_node *ml_node_at(const ml_layout *l, int64_t place) {
  static const ml_tree_node empty = {.mode = ML_LEAF};
  return l->node[place] < 0 ? &empty : &l->forest->nodes[l->node[place]];
}

status ml_lay_out(const onnx_node *n, const ml_forest *f, int64_t n_roots, const int64_t *roots, ml_layout *out) {
  int64_t most = n_roots, count = n_roots, *first = ARENA_NEW_N(n->arena, int64_t, (size_t)f->n_nodes);
  for (int64_t k = 0; k < f->n_nodes; k++) {
    most += f->nodes[k].mode == ML_LEAF ? 0 : 2;
  }
  CHECK_THAT(most <= INT32_MAX, STATUS_UNSUPPORTED, "the trees have %" PRId64 " nodes, which is not supported", most);
  *out = (ml_layout){.forest = f,
                     .node = ARENA_NEW_N(n->arena, int64_t, (size_t)most),
                     .next = ARENA_NEW_N(n->arena, int32_t, (size_t)most)};
  for (int64_t k = 0; k < n_roots; k++) {
    out->node[k] = roots[k];
  }
  for (int64_t k = 0; k < count; k++) { /* nodes near the roots, which are read most, come to be near each other */
    int64_t at = out->node[k];
    const ml_tree_node *x = ml_node_at(out, k);
    bool exchanged;
    kind_of(x, &exchanged);
    if (x->mode != ML_LEAF && first[at] == 0) {
      first[at] = count;
      out->node[count++] = exchanged ? x->on_true : x->on_false;
      out->node[count++] = exchanged ? x->on_false : x->on_true;
    }
    out->next[k] = (int32_t)(x->mode == ML_LEAF ? k : first[at]);
  }
  out->size = count;
  return NULL;
}

/* --- the tables --- */

/* The tables of the places as literals; a walk in a loop has them as constants of the loop's body. */
typedef struct tables {
  literal next, feature, value, code;
  bool has_nan; /* whether NaN passes at some nodes */
  int kind;     /* the comparison of all nodes, or N_KINDS if they differ */
  int64_t n_features;
} tables;

static tables make_tables(const onnx_node *n, const ml_layout *l, dtype type) {
  int64_t count = l->size;
  int32_t *next, *feature;
  uint8_t *code;
  void *value;
  tables t = {.kind = -1};
  t.next = literal_new(n->arena, shape_make(DTYPE_S32, 1, &count), (void **)&next);
  t.feature = literal_new(n->arena, shape_make(DTYPE_S32, 1, &count), (void **)&feature);
  t.value = literal_new(n->arena, shape_make(type, 1, &count), &value);
  t.code = literal_new(n->arena, shape_make(DTYPE_U8, 1, &count), (void **)&code);
  for (int64_t k = 0; k < count; k++) {
    const ml_tree_node *x = ml_node_at(l, k);
    double number = x->mode == ML_LEAF ? NAN : x->value;
    next[k] = l->next[k];
    feature[k] = (int32_t)x->feature;
    code[k] = (uint8_t)code_of(x);
    if (type == DTYPE_F64) {
      ((double *)value)[k] = number;
    } else {
      ((float *)value)[k] = (float)number;
    }
    if (x->mode != ML_LEAF) {
      int kind = code[k] & ~NAN_PASSES;
      t.kind = t.kind < 0 || t.kind == kind ? kind : N_KINDS;
      t.has_nan = t.has_nan || (code[k] & NAN_PASSES);
      t.n_features = x->feature >= t.n_features ? x->feature + 1 : t.n_features;
    }
  }
  return t;
}

/* --- the walk --- */

/* Returns x[n][feature[n][t]] for each row n and tree t. */
static hlo_value features_of(hlo_builder *b, hlo_value x, hlo_value feature) {
  static const int64_t row = 0, column = 1;
  static const hlo_gather_dims d = {.n_collapsed = 1,
                                    .collapsed = &column,
                                    .n_batch = 1,
                                    .operand_batch = &row,
                                    .indices_batch = &row,
                                    .n_map = 1,
                                    .map = &column,
                                    .index_vector_dim = 2};
  return hlo_gather(b, x, feature, &d, (dim[]){1, 1});
}

/* Returns whether the walks move on to the second child: x compared with the values. */
static hlo_value moves_on(hlo_builder *b, const tables *t, hlo_value place, hlo_value x) {
  static const hlo_comparison comparisons[] = {[LEQ] = HLO_LE, [LT] = HLO_LT, [EQ] = HLO_EQ};
  hlo_value value = hlo_take(b, hlo_constant(b, t->value), place, 0), code, passes;
  if (t->kind < N_KINDS && !t->has_nan) {
    return hlo_compare(b, comparisons[t->kind], x, value);
  }
  code = hlo_take(b, hlo_constant(b, t->code), place, 0);
  if (t->kind < N_KINDS) {
    passes = hlo_compare(b, comparisons[t->kind], x, value);
  } else {
    hlo_value kind = hlo_binary(b, HLO_AND, code, hlo_like(b, code, NAN_PASSES - 1));
    passes = hlo_compare(b, HLO_EQ, x, value);
    for (int k = LEQ; k <= LT; k++) {
      hlo_value here = onnx_compare_scalar(b, HLO_EQ, kind, k);
      passes = hlo_select(b, here, hlo_compare(b, comparisons[k], x, value), passes);
    }
  }
  if (t->has_nan) {
    hlo_value nan = hlo_compare(b, HLO_NE, x, x), flag = onnx_compare_scalar(b, HLO_GE, code, NAN_PASSES);
    passes = hlo_binary(b, HLO_OR, passes, hlo_binary(b, HLO_AND, nan, flag));
  }
  return passes;
}

static hlo_value take_step(hlo_builder *b, const tables *t, hlo_value place, hlo_value rows) {
  hlo_value feature = hlo_take(b, hlo_constant(b, t->feature), place, 0);
  hlo_value on = moves_on(b, t, place, features_of(b, rows, feature));
  return hlo_binary(b, HLO_ADD, hlo_take(b, hlo_constant(b, t->next), place, 0), hlo_convert(b, on, DTYPE_S32));
}

/* Up to MOST_STEPS steps are written one after the other, and more are a loop, with STEPS_OF_LOOP in each iteration. */
enum { MOST_STEPS = 32, STEPS_OF_LOOP = 4 };

/* What the loop carries: the places, the rows, and whether any place has changed in the last step. */
enum { PLACES, ROWS, GOING, CARRIED };

/* Walks until no place changes, since most leaves are much nearer to the roots than the deepest ones. */
static status walk_in_loop(const onnx_node *n, const tables *t, hlo_value place, hlo_value rows, hlo_value *out) {
  static const int64_t both[] = {0, 1};
  hlo_builder *b = n->b;
  hlo_value carried[CARRIED] = {place, rows, hlo_scalar_int(b, DTYPE_PRED, 1)}, in[CARRIED], last = place;
  hlo_builder condition = hlo_builder_inner(b, "not_at_leaves"), body = hlo_builder_inner(b, "walk_trees");
  hlo_parameters_like(condition.computation, CARRIED, carried, in);
  hlo_set_roots(condition.computation, 1, &in[GOING]);
  hlo_parameters_like(body.computation, CARRIED, carried, in);
  for (int k = 0; k < STEPS_OF_LOOP; k++) {
    last = in[PLACES];
    in[PLACES] = take_step(&body, t, last, in[ROWS]);
  }
  in[GOING] = hlo_reduce(&body, hlo_compare(&body, HLO_NE, in[PLACES], last), HLO_REDUCE_OR, 2, both);
  TRY(hlo_builder_take_error(&condition));
  TRY(hlo_builder_take_error(&body));
  hlo_set_roots(body.computation, CARRIED, in);
  hlo_while(b, condition.computation, body.computation, CARRIED, carried, carried);
  *out = carried[PLACES];
  return NULL;
}

/* --- trees of different depths --- */

/* A root and the steps from it to the deepest leaf. */
typedef struct tree {
  int64_t root, height;
} tree;

static int by_height(const void *a, const void *b) {
  const tree *x = a, *y = b;
  int order = (x->height < y->height) - (x->height > y->height);
  return order ? order : (x->root > y->root) - (x->root < y->root);
}

/* Returns the steps from a place to the deepest leaf.  `known` has them, and 1 more, for places that were asked for. */
static int64_t height_of(const ml_layout *l, int64_t place, int64_t *known) {
  if (ml_node_at(l, place)->mode == ML_LEAF) {
    return 0;
  }
  int64_t next = l->next[place];
  if (!known[next]) { /* the depth of trees is limited, and so is that of the recursion */
    int64_t x = height_of(l, next, known), y = height_of(l, next + 1, known);
    known[next] = 2 + (x > y ? x : y);
  }
  return known[next] - 1;
}

/* The trees, the highest ones first, and of which the first ones are still walked. */
typedef struct walk {
  const onnx_node *n;
  const tables *t;
  tree *trees;
  int64_t count, done; /* how many trees there are; how many steps are done */
  hlo_value rows;
} walk;

static int64_t higher_than(const walk *w, int64_t steps) {
  int64_t count = 0;
  while (count < w->count && w->trees[count].height > steps) {
    count++;
  }
  return count;
}

/* Takes steps with the trees `place` until the number of those that go on is a quarter less, or to the end. */
static status walk_on(walk *w, hlo_value *place) {
  int64_t going = higher_than(w, w->done);
  if (w->done >= MOST_STEPS) {
    w->done = w->trees[0].height;
    return walk_in_loop(w->n, w->t, *place, w->rows, place);
  }
  do {
    *place = take_step(w->n->b, w->t, *place, w->rows);
    w->done++;
  } while (w->done < MOST_STEPS && 4 * higher_than(w, w->done) > 3 * going);
  return NULL;
}

/* Returns the columns [from, to) of the places. */
static hlo_value columns(hlo_builder *b, hlo_value places, int64_t from, int64_t to) {
  return hlo_slice_dim(b, places, 1, from, to);
}

/* Walks trees of different depths: those that are at leaves are left out of further steps. */
static status walk_by_height(walk *w, hlo_value place, hlo_value *out) {
  hlo_builder *b = w->n->b;
  int64_t n_parts = 0, here = w->count;
  hlo_value *parts = ARENA_NEW_N(w->n->arena, hlo_value, (size_t)w->count + 1);
  for (int64_t going = higher_than(w, 0);; going = higher_than(w, w->done)) {
    if (going < here) {
      parts[n_parts++] = columns(b, place, going, here);
      place = columns(b, place, 0, going);
    }
    if (going == 0) {
      break;
    }
    here = going;
    TRY(walk_on(w, &place));
  }
  for (int64_t k = 0; k < n_parts / 2; k++) {
    hlo_value last = parts[n_parts - 1 - k];
    parts[n_parts - 1 - k] = parts[k];
    parts[k] = last;
  }
  *out = n_parts == 1 ? parts[0] : hlo_concatenate(b, (uint32_t)n_parts, parts, 1);
  return NULL;
}

/* Returns column index[k] of x as column k; x has another order of columns only if the index says so. */
static hlo_value reordered(const walk *w, hlo_value x, const int32_t *index) {
  int64_t k = 0;
  while (k < w->count && index[k] == k) {
    k++;
  }
  literal l = literal_make(shape_make(DTYPE_S32, 1, &w->count), index);
  return k == w->count ? x : hlo_take(w->n->b, x, hlo_constant(w->n->b, l), 1);
}

status ml_walk(const onnx_node *n, const ml_layout *l, int64_t n_roots, hlo_value rows, hlo_value *out) {
  hlo_builder *b = n->b;
  *out = rows;
  if (b->error) {
    return NULL;
  }
  const shape *given = hlo_shape(rows);
  tables t = make_tables(n, l, (dtype)given->type);
  CHECK_THAT(dim_at_most(onnx_dims(n), t.n_features, given->dims[1]), STATUS_INVALID_MODEL,
             "nodes_featureids has %" PRId64 "; X is %s", t.n_features - 1,
             SHAPE_STR(onnx_dims(n), onnx_in_shape(n, 0)));
  shape s = shape_make(DTYPE_S32, 2, (dim[]){given->dims[0], n_roots});
  TRY(shape_check(&s, "the places of the rows in the trees"));
  walk w = {.n = n, .t = &t, .count = n_roots, .trees = ARENA_NEW_N(n->arena, tree, (size_t)n_roots), .rows = rows};
  int64_t *known = ARENA_NEW_N(n->arena, int64_t, (size_t)l->size);
  for (int64_t k = 0; k < n_roots; k++) {
    w.trees[k] = (tree){k, height_of(l, k, known)};
  }
  qsort(w.trees, (size_t)n_roots, sizeof *w.trees, by_height);
  int32_t *root = ARENA_NEW_N(n->arena, int32_t, (size_t)n_roots);
  int32_t *position = ARENA_NEW_N(n->arena, int32_t, (size_t)n_roots);
  for (int64_t k = 0; k < n_roots; k++) {
    root[k] = (int32_t)w.trees[k].root;
    position[root[k]] = (int32_t)k;
  }
  hlo_value place = reordered(&w, hlo_iota(b, s, 1), root);
  TRY(walk_by_height(&w, place, out));
  *out = reordered(&w, *out, position);
  return NULL;
}
