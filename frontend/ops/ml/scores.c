/* scores.c - see scores.h. */
#include "frontend/ops/ml/scores.h"

status ml_rows(const onnx_node *n, dtype type, hlo_value *out) {
  TRY(onnx_need_rank(n, 0, "X", 1, 2));
  hlo_value x = hlo_convert(n->b, n->in[0], type);
  *out = hlo_rank(n->in[0]) == 1 ? onnx_insert_dim(n->b, x, 0) : x;
  return NULL;
}

/* --- the transform of scores --- */

status ml_read_transform(const onnx_node *n, ml_transform *out) {
  static const char *const names[] = {
      [ML_NONE] = "NONE",     [ML_SOFTMAX] = "SOFTMAX", [ML_LOGISTIC] = "LOGISTIC", [ML_SOFTMAX_ZERO] = "SOFTMAX_ZERO",
      [ML_PROBIT] = "PROBIT",
  };
  int transform;
  TRY(onnx_choose(n, "post_transform", "NONE", names, ML_PROBIT + 1, &transform));
  *out = (ml_transform)transform;
  return NULL;
}

/* Returns the softmax of each row in which zeros are no scores: they add nothing to the sum, and stay 0. */
static hlo_value softmax_zero(hlo_builder *b, hlo_value x) {
  const double zero = 1e-7; /* what ONNX Runtime takes as 0 */
  const int64_t axis = 1;
  hlo_value top = hlo_broadcast_to(b, onnx_reduce_keep(b, x, HLO_REDUCE_MAX, 1, &axis), hlo_shape(x));
  hlo_value is_score = onnx_compare_scalar(b, HLO_GT, hlo_unary(b, HLO_ABS, x), zero);
  hlo_value e = hlo_unary(b, HLO_EXP, hlo_binary(b, HLO_SUB, x, top));
  hlo_value scores = hlo_select(b, is_score, e, hlo_like(b, x, 0));
  hlo_value sum = hlo_broadcast_to(b, onnx_reduce_keep(b, scores, HLO_REDUCE_ADD, 1, &axis), hlo_shape(x));
  hlo_value rest = hlo_binary(b, HLO_MUL, x, hlo_unary(b, HLO_EXP, hlo_unary(b, HLO_NEG, top)));
  return hlo_binary(b, HLO_DIV, hlo_select(b, is_score, e, rest), sum);
}

/* Returns sqrt(2) times the inverse error function of 2x-1, by Winitzki's approximation, which ONNX Runtime takes. */
static hlo_value probit(hlo_builder *b, hlo_value x) {
  const double a = 0.147, pi = 3.14159;
  hlo_value y = onnx_plus(b, onnx_times(b, x, 2), -1), one = hlo_like(b, x, 1);
  hlo_value log =
      hlo_unary(b, HLO_LOG, hlo_binary(b, HLO_MUL, hlo_binary(b, HLO_SUB, one, y), hlo_binary(b, HLO_ADD, one, y)));
  hlo_value v = onnx_plus(b, onnx_times(b, log, 0.5), 2 / (pi * a));
  hlo_value root =
      hlo_unary(b, HLO_SQRT, hlo_binary(b, HLO_SUB, hlo_binary(b, HLO_MUL, v, v), onnx_times(b, log, 1 / a)));
  hlo_value size = hlo_unary(b, HLO_SQRT, hlo_binary(b, HLO_SUB, root, v));
  hlo_value sign = hlo_select(b, onnx_compare_scalar(b, HLO_LT, y, 0), hlo_like(b, x, -1), one);
  return onnx_times(b, hlo_binary(b, HLO_MUL, sign, size), 1.41421356);
}

hlo_value ml_transformed(hlo_builder *b, hlo_value scores, ml_transform t) {
  switch (t) {
    case ML_SOFTMAX: return onnx_softmax(b, scores, 1);
    case ML_LOGISTIC: return hlo_unary(b, HLO_LOGISTIC, scores);
    case ML_SOFTMAX_ZERO: return softmax_zero(b, scores);
    case ML_PROBIT: return probit(b, scores);
    default: return scores;
  }
}

/* --- labels --- */

status ml_read_labels(const onnx_node *n, const char *ints, const char *strings, const int64_t **labels,
                      int64_t *count) {
  size_t n_labels, n_strings;
  const int64_t *numbers;
  TRY(onnx_attr_ints(n->proto, ints, labels, &n_labels));
  TRY(onnx_node_strings(n, strings, &numbers, &n_strings));
  CHECK_THAT(!n_labels || !n_strings, STATUS_INVALID_MODEL, "%s and %s both have labels", ints, strings);
  CHECK_THAT(n_labels || n_strings, STATUS_INVALID_MODEL, "neither %s nor %s has labels", ints, strings);
  *labels = n_strings ? numbers : *labels;
  *count = (int64_t)(n_labels + n_strings);
  return NULL;
}

/* Makes strings of labels that are numbers of strings. */
static hlo_value as_labels(const onnx_node *n, hlo_value labels) {
  const ProtobufCBinaryData *strings;
  size_t count;
  status failed = onnx_attr_byte_strings(n->proto, "classlabels_strings", &strings, &count);
  bool is_string = !failed && count;
  status_free(failed); /* ml_read_labels has returned it already */
  return is_string ? hlo_bitcast(n->b, labels, DTYPE_STR) : labels;
}

hlo_value ml_labels_of(const onnx_node *n, const int64_t *labels, int64_t count, hlo_value chosen) {
  return as_labels(n, hlo_take(n->b, hlo_s64s(n->b, labels, count), chosen, 0));
}

hlo_value ml_either_label(const onnx_node *n, hlo_value condition, int64_t positive, int64_t negative) {
  shape s = shape_with_type(*hlo_shape(condition), DTYPE_S64);
  hlo_value yes = hlo_broadcast(n->b, hlo_scalar_int(n->b, DTYPE_S64, positive), s, NULL);
  hlo_value no = hlo_broadcast(n->b, hlo_scalar_int(n->b, DTYPE_S64, negative), s, NULL);
  return as_labels(n, hlo_select(n->b, condition, yes, no));
}
