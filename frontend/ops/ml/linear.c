/* linear.c - see linear.h; and the importers LinearRegressor and LinearClassifier. */
#include "frontend/ops/ml/linear.h"

#include <inttypes.h>
#include <math.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"

status ml_need_floats(const onnx_node *n, const char *name, const float **values, int64_t *count) {
  size_t given;
  TRY(onnx_attr_floats(n->proto, name, values, &given));
  CHECK_THAT(given, STATUS_INVALID_MODEL, "%s has no numbers", name);
  *count = (int64_t)given;
  return NULL;
}

status ml_check_vectors(const onnx_node *n, const char *name, int64_t count, int64_t n_vectors, hlo_value rows) {
  CHECK_THAT(
      n_vectors >= 1 && count % n_vectors == 0 && dim_equal(onnx_dims(n), count / n_vectors, hlo_shape(rows)->dims[1]),
      STATUS_INVALID_MODEL, "%s has %" PRId64 " numbers for %" PRId64 " vectors; X is %s", name, count, n_vectors,
      SHAPE_STR(onnx_dims(n), onnx_in_shape(n, 0)));
  return NULL;
}

hlo_value ml_products(hlo_builder *b, hlo_value x, hlo_value vectors) {
  static const int64_t features = 1;
  static const hlo_dot_dims d = {.n_contract = 1, .lhs_contract = &features, .rhs_contract = &features};
  return hlo_dot(b, x, vectors, &d);
}

hlo_value ml_first_largest(hlo_builder *b, hlo_value scores) {
  if (b->error) {
    return scores;
  }
  hlo_value at = hlo_iota(b, shape_with_type(*hlo_shape(scores), DTYPE_S64), 1);
  hlo_value in_place = hlo_select(b, onnx_compare_scalar(b, HLO_EQ, at, 0), hlo_like(b, scores, INFINITY),
                                  hlo_like(b, scores, -INFINITY));
  scores = hlo_select(b, hlo_compare(b, HLO_EQ, scores, scores), scores, in_place);
  return hlo_arg_reduce(b, scores, 1, true, false);
}

status ml_final_scores(const onnx_node *n, hlo_value scores, int64_t count, ml_transform transform, ml_other other,
                       hlo_value *out) {
  hlo_builder *b = n->b;
  if (count > 1 || other == ML_ALONE) {
    *out = count > 1 || transform == ML_PROBIT ? ml_transformed(b, scores, transform) : scores;
    return NULL;
  }
  CHECK_THAT(transform != ML_PROBIT, STATUS_UNSUPPORTED,
             "post_transform PROBIT of one score for two classes is not supported");
  hlo_value negative = hlo_unary(b, HLO_NEG, scores), before;
  if (transform == ML_LOGISTIC) {
    before = hlo_unary(b, HLO_LOGISTIC, negative);
    scores = hlo_unary(b, HLO_LOGISTIC, scores);
  } else {
    before = other == ML_COMPLEMENT ? onnx_plus(b, negative, 1) : negative;
  }
  *out = hlo_concatenate(b, 2, (hlo_value[]){before, scores}, 1);
  return NULL;
}

/* Returns the scores of rows[N][F]: products with the coefficients, plus the intercepts, if there are any. */
static status linear_scores(const onnx_node *n, hlo_value rows, int64_t n_scores, hlo_value *out) {
  hlo_builder *b = n->b;
  const float *coefficients, *intercepts;
  int64_t count;
  size_t n_intercepts;
  TRY(ml_need_floats(n, "coefficients", &coefficients, &count));
  TRY(onnx_attr_floats(n->proto, "intercepts", &intercepts, &n_intercepts));
  TRY(ml_check_vectors(n, "coefficients", count, n_scores, rows));
  CHECK_THAT(n_intercepts == 0 || (int64_t)n_intercepts == n_scores, STATUS_INVALID_MODEL,
             "intercepts has %zu numbers; there are %" PRId64 " scores", n_intercepts, n_scores);
  hlo_value weights = onnx_f32_array(n, coefficients, 2, (dim[]){n_scores, count / n_scores});
  hlo_value scores = ml_products(b, rows, weights);
  if (n_intercepts && !b->error) {
    hlo_value terms = onnx_along(b, onnx_f32_array(n, intercepts, 1, &n_scores), hlo_shape(scores), 1);
    scores = hlo_binary(b, HLO_ADD, scores, terms);
  }
  *out = scores;
  return NULL;
}

status onnx_import_ml_linear_regressor(onnx_node *n) {
  int64_t targets;
  ml_transform transform;
  hlo_value rows, scores;
  TRY(onnx_attr_int_in(n->proto, "targets", 1, 1, INT32_MAX, &targets));
  TRY(ml_read_transform(n, &transform));
  TRY(ml_rows(n, DTYPE_F32, &rows));
  TRY(linear_scores(n, rows, targets, &scores));
  return ml_final_scores(n, scores, targets, transform, ML_ALONE, &n->out[0]);
}

/* There are as many scores as intercepts or, if none are given, as labels.  One score decides between two labels. */
status onnx_import_ml_linear_classifier(onnx_node *n) {
  hlo_builder *b = n->b;
  const int64_t *labels;
  const float *intercepts;
  int64_t n_labels;
  size_t n_intercepts;
  ml_transform transform;
  hlo_value rows, scores;
  TRY(ml_read_transform(n, &transform));
  TRY(ml_read_labels(n, "classlabels_ints", "classlabels_strings", &labels, &n_labels));
  TRY(onnx_attr_floats(n->proto, "intercepts", &intercepts, &n_intercepts));
  int64_t n_scores = n_intercepts ? (int64_t)n_intercepts : n_labels;
  CHECK_THAT(n_labels == (n_scores == 1 ? 2 : n_scores), STATUS_INVALID_MODEL,
             "classlabels_ints has %" PRId64 " labels; there are %" PRId64 " scores", n_labels, n_scores);
  TRY(ml_rows(n, DTYPE_F32, &rows));
  TRY(linear_scores(n, rows, n_scores, &scores));
  if (b->error) {
    return NULL;
  }
  if (n_scores == 1) {
    hlo_value above = onnx_compare_scalar(b, HLO_GT, hlo_reshape(b, scores, 1, hlo_shape(scores)->dims), 0);
    n->out[0] = ml_either_label(n, above, labels[1], labels[0]);
  } else {
    n->out[0] = ml_labels_of(n, labels, n_labels, ml_first_largest(b, scores));
  }
  return ml_final_scores(n, scores, n_scores, transform, n_scores == 1 ? ML_COMPLEMENT : ML_ALONE, &n->out[1]);
}
