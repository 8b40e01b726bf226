/* trees.c - the importers TreeEnsembleRegressor, TreeEnsembleClassifier and TreeEnsemble. */
#include <inttypes.h>
#include <math.h>

#include "frontend/import/symbolic.h"
#include "frontend/ops/ml/forest.h"
#include "frontend/ops/ml/linear.h"

/* Returns the type in which the scores are computed: f64 if X, or an attribute, gives numbers of that type. */
static dtype score_type(const onnx_node *n, bool wide) {
  return wide || hlo_type(n->in[0]) == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
}

/* Adds the base values, one for each of the scores[N][E], if there are any. */
static hlo_value plus_base(const onnx_node *n, hlo_value scores, const double *base, int64_t count) {
  hlo_builder *b = n->b;
  if (!count || b->error) {
    return scores;
  }
  double *copy;
  literal l = literal_new(n->arena, shape_make(DTYPE_F64, 1, &count), (void **)&copy);
  for (int64_t k = 0; k < count; k++) {
    copy[k] = base[k];
  }
  hlo_value terms = hlo_convert(b, hlo_constant(b, l), hlo_type(scores));
  return hlo_binary(b, HLO_ADD, scores, onnx_along(b, terms, hlo_shape(scores), 1));
}

/* --- TreeEnsembleRegressor --- */

status onnx_import_ml_tree_ensemble_regressor(onnx_node *n) {
  static const ml_vote_names names = {"target_treeids", "target_nodeids", "target_ids", "target_weights",
                                      "target_weights_as_tensor"};
  static const char *const aggregates[] = {
      [ML_AVERAGE] = "AVERAGE", [ML_SUM] = "SUM", [ML_MIN] = "MIN", [ML_MAX] = "MAX"};
  ml_forest f;
  ml_transform transform;
  int64_t targets, n_base;
  const double *base;
  int how;
  hlo_value rows, scores, voted, y;
  TRY(onnx_attr_required(n->proto, "n_targets"));
  TRY(onnx_attr_int_in(n->proto, "n_targets", 1, 1, INT32_MAX, &targets));
  TRY(onnx_choose(n, "aggregate_function", "SUM", aggregates, ML_AGGREGATES, &how));
  TRY(ml_read_transform(n, &transform));
  TRY(ml_read_forest(n, &names, targets, (ml_aggregate)how, &f));
  TRY(ml_read_numbers(n, "base_values", "base_values_as_tensor", &base, &n_base, &f.wide));
  CHECK_THAT(n_base == 0 || n_base == targets, STATUS_INVALID_MODEL,
             "base_values has %" PRId64 " numbers; there are %" PRId64 " targets", n_base, targets);
  TRY(ml_rows(n, score_type(n, f.wide), &rows));
  TRY(ml_aggregated(n, &f, rows, (ml_aggregate)how, &scores, &voted));
  TRY(ml_final_scores(n, plus_base(n, scores, base, n_base), targets, transform, ML_ALONE, &y));
  n->out[0] = hlo_convert(n->b, y, DTYPE_F32);
  return NULL;
}

/* --- TreeEnsemble --- */

/* Returns the number of a choice that the standard numbers from 0 on. */
static status read_choice(const onnx_node *n, const char *name, int64_t def, int64_t count, int *out) {
  int64_t value;
  TRY(onnx_attr_int_in(n->proto, name, def, 0, count - 1, &value));
  *out = (int)value;
  return NULL;
}

status onnx_import_ml_tree_ensemble(onnx_node *n) {
  dtype type = hlo_type(n->in[0]);
  ml_forest f;
  int64_t targets;
  int how, transform;
  hlo_value rows, scores, voted, y;
  TRY(onnx_attr_required(n->proto, "n_targets"));
  TRY(onnx_attr_int_in(n->proto, "n_targets", 1, 1, INT32_MAX, &targets));
  TRY(read_choice(n, "aggregate_function", ML_SUM, ML_AGGREGATES, &how));
  TRY(read_choice(n, "post_transform", ML_NONE, ML_PROBIT + 1, &transform));
  TRY(ml_read_compact_forest(n, type, targets, &f));
  TRY(ml_rows(n, score_type(n, false), &rows));
  TRY(ml_aggregated(n, &f, rows, (ml_aggregate)how, &scores, &voted));
  TRY(ml_final_scores(n, scores, targets, (ml_transform)transform, ML_ALONE, &y));
  n->out[0] = hlo_convert(n->b, y, type);
  return NULL;
}

/* --- TreeEnsembleClassifier --- */

typedef struct classifier {
  const int64_t *labels;
  int64_t n_labels, n_base;
  const double *base;
  ml_forest forest;
  ml_transform transform;
} classifier;

static status read_classifier(const onnx_node *n, classifier *c) {
  static const ml_vote_names names = {"class_treeids", "class_nodeids", "class_ids", "class_weights",
                                      "class_weights_as_tensor"};
  TRY(ml_read_transform(n, &c->transform));
  TRY(ml_read_labels(n, "classlabels_int64s", "classlabels_strings", &c->labels, &c->n_labels));
  CHECK_THAT(c->n_labels >= 2, STATUS_UNSUPPORTED, "a classifier of one class is not supported");
  CHECK_THAT(c->n_labels <= INT32_MAX, STATUS_UNSUPPORTED, "%" PRId64 " classes are not supported", c->n_labels);
  TRY(ml_read_forest(n, &names, c->n_labels, ML_SUM, &c->forest));
  return ml_read_numbers(n, "base_values", "base_values_as_tensor", &c->base, &c->n_base, &c->forest.wide);
}

/* Sets the label and the scores of two classes if all weights are for one of them: their sum decides.  ONNX Runtime
 * takes sums of weights that are not negative as probabilities.
 *
 * If the weights are for the first class, converters mean the second one: its score is the sum, and the base value is
 * one number.  If they are for the second class, the score of the first one is 0. */
static status classify_by_sum(onnx_node *n, classifier *c, hlo_value rows) {
  hlo_builder *b = n->b;
  ml_forest *f = &c->forest;
  bool first = f->used[0];
  hlo_value sum, voted;
  CHECK_THAT(c->n_base == 0 || (first && c->n_base == 1), STATUS_UNSUPPORTED,
             "base_values has %" PRId64 " numbers, which is not supported where all class_ids are %d", c->n_base,
             first ? 0 : 1);
  CHECK_THAT(!f->repeated, STATUS_UNSUPPORTED,
             "a leaf has several weights for class %d, which is not supported where all class_ids are %d",
             first ? 0 : 1, first ? 0 : 1);
  f->n_targets = 1;
  for (int64_t k = 0; k < f->n_votes; k++) {
    f->votes[k].target = 0;
  }
  TRY(ml_aggregated(n, f, rows, ML_SUM, &sum, &voted));
  sum = plus_base(n, sum, c->base, c->n_base);
  if (b->error) {
    return NULL;
  }
  hlo_value decides = hlo_reshape(b, sum, 1, hlo_shape(sum)->dims);
  hlo_value above = onnx_compare_scalar(b, HLO_GT, decides, f->all_positive ? 0.5 : 0);
  n->out[0] = ml_either_label(n, above, c->labels[1], c->labels[0]);
  if (first) {
    return ml_final_scores(n, sum, 1, c->transform, f->all_positive ? ML_COMPLEMENT : ML_OPPOSITE, &n->out[1]);
  }
  hlo_value both = hlo_concatenate(b, 2, (hlo_value[]){hlo_like(b, sum, 0), sum}, 1);
  return ml_final_scores(n, both, 2, c->transform, ML_ALONE, &n->out[1]);
}

/* The label is that of the class with the largest score, among classes that got a vote. */
static status classify_by_scores(onnx_node *n, const classifier *c, hlo_value rows) {
  hlo_builder *b = n->b;
  hlo_value scores, voted;
  CHECK_THAT(c->n_base == 0 || c->n_base == c->n_labels, STATUS_INVALID_MODEL,
             "base_values has %" PRId64 " numbers; there are %" PRId64 " labels", c->n_base, c->n_labels);
  TRY(ml_aggregated(n, &c->forest, rows, ML_SUM, &scores, &voted));
  scores = plus_base(n, scores, c->base, c->n_base);
  hlo_value counts = voted.def ? hlo_select(b, voted, scores, hlo_like(b, scores, -INFINITY)) : scores;
  n->out[0] = ml_labels_of(n, c->labels, c->n_labels, ml_first_largest(b, counts));
  return ml_final_scores(n, scores, c->n_labels, c->transform, ML_ALONE, &n->out[1]);
}

status onnx_import_ml_tree_ensemble_classifier(onnx_node *n) {
  classifier c;
  hlo_value rows;
  TRY(read_classifier(n, &c));
  TRY(ml_rows(n, score_type(n, c.forest.wide), &rows));
  bool one_class = c.n_labels == 2 && c.forest.used[0] != c.forest.used[1];
  TRY(one_class ? classify_by_sum(n, &c, rows) : classify_by_scores(n, &c, rows));
  n->out[1] = hlo_convert(n->b, n->out[1], DTYPE_F32);
  return NULL;
}
