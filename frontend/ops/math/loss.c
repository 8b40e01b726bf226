/* loss.c - the importers of NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. */
#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/import_helpers.h"
#include "frontend/import/symbolic.h"

typedef enum reduction { REDUCE_NONE, REDUCE_SUM, REDUCE_MEAN } reduction;

typedef struct loss {
  reduction reduction;
  bool ignores;    /* whether ignore_index is given */
  int64_t ignored; /* the value of ignore_index */
} loss;

/* Reads the attributes and checks the shapes: input [N, C, d...], target [N, d...], weight [C]. */
static status read_loss(const onnx_node *n, const char *target_name, loss *l) {
  static const char *const names[] = {"none", "sum", "mean"};
  const shape *x = onnx_in_shape(n, 0);
  const char *text;
  TRY(onnx_need_rank(n, 0, "the input", 2, SHAPE_MAX_RANK));
  shape want = *x;
  memmove(want.dims + 1, want.dims + 2, (size_t)(x->rank - 2) * sizeof *want.dims);
  TRY(onnx_need_dims(n, 1, target_name, x->rank - 1, want.dims));
  TRY(onnx_need_dims(n, 2, "weight", 1, &x->dims[1]));
  TRY(onnx_attr_string(n->arena, n->proto, "reduction", "mean", &text));
  for (int k = 0; k < 3; k++) {
    if (strcmp(text, names[k]) == 0) {
      l->reduction = (reduction)k;
      l->ignores = onnx_attr_has(n->proto, "ignore_index");
      return onnx_attr_int(n->proto, "ignore_index", 0, &l->ignored);
    }
  }
  return status_error(STATUS_INVALID_MODEL, "reduction is \"%.40s\"; it must be none, sum or mean", text);
}

/* Returns for each sample the element of `values` at the target's class: the elements of all other classes are replaced
 * by 0, and the sum over the classes is taken. */
static hlo_value at_target(hlo_builder *b, hlo_value values, hlo_value is_target) {
  int64_t classes = 1;
  return hlo_reduce(b, hlo_select(b, is_target, values, hlo_like(b, values, 0)), HLO_REDUCE_ADD, 1, &classes);
}

/* Returns a pred array of x's dimensions that is true where the index along the class dimension is the target's class.
 */
static hlo_value target_mask(hlo_builder *b, hlo_value target, const shape *x) {
  int64_t at[SHAPE_MAX_RANK] = {0};
  shape s = shape_with_type(*x, DTYPE_S64);
  for (int k = 1; k < s.rank - 1; k++) {
    at[k] = k + 1;
  }
  return hlo_compare(b, HLO_EQ, hlo_iota(b, s, 1), hlo_broadcast(b, target, s, at));
}

static hlo_value sum_all(hlo_builder *b, hlo_value x) {
  int64_t all[SHAPE_MAX_RANK];
  int rank = hlo_rank(x);
  for (int k = 0; k < rank; k++) {
    all[k] = k;
  }
  return hlo_reduce(b, x, HLO_REDUCE_ADD, (uint32_t)rank, all);
}

/* Returns a pred array that is true where the target is the ignored class. */
static hlo_value ignored_mask(hlo_builder *b, const loss *l, hlo_value target) {
  hlo_value ignored = hlo_convert(b, hlo_scalar_int(b, DTYPE_S64, l->ignored), hlo_type(target));
  return hlo_compare(b, HLO_EQ, target, hlo_broadcast_to(b, ignored, hlo_shape(target)));
}

static status check_target(const onnx_node *n, const loss *l, const char *what) {
  hlo_value target = n->in[1];
  if (l->ignores) {
    target = hlo_select(n->b, ignored_mask(n->b, l, target), hlo_like(n->b, target, 0), target);
  }
  return onnx_check_below(n, target, what, hlo_shape(n->in[0])->dims[1]);
}

/* Computes -x[target] * weight[target] for each sample, and reduces that as the attribute `reduction` states.  A sample
 * whose target is the ignored class has weight 0. */
static hlo_value negative_log_likelihood(const onnx_node *n, const loss *l, hlo_value x) {
  hlo_builder *b = n->b;
  hlo_value target = hlo_convert(b, n->in[1], DTYPE_S64), mask = target_mask(b, target, hlo_shape(x));
  hlo_value y = hlo_unary(b, HLO_NEG, at_target(b, x, mask)), weight = {0};
  if (onnx_has_in(n, 2)) {
    weight = hlo_convert(b, n->in[2], hlo_type(x));
    weight = at_target(b, hlo_broadcast(b, weight, *hlo_shape(x), (int64_t[]){1}), mask);
  } else if (l->ignores) {
    weight = hlo_like(b, y, 1);
  }
  if (l->ignores) {
    hlo_value ignored = ignored_mask(b, l, target);
    weight = hlo_select(b, ignored, hlo_like(b, weight, 0), weight);
    y = hlo_select(b, ignored, hlo_like(b, y, 0), y);
  }
  y = weight.def ? hlo_binary(b, HLO_MUL, y, weight) : y;
  if (l->reduction == REDUCE_NONE) {
    return y;
  }
  hlo_value total = sum_all(b, y);
  if (l->reduction == REDUCE_SUM) {
    return total;
  }
  const shape *s = onnx_in_shape(n, 1);
  dim count = shape_dim_product(onnx_dims(n), s, 0, s->rank);
  return hlo_binary(b, HLO_DIV, total, weight.def ? sum_all(b, weight) : onnx_dim_like(b, total, count));
}

status onnx_import_negative_log_likelihood_loss(onnx_node *n) {
  loss l = {0};
  TRY(read_loss(n, "target", &l));
  TRY(check_target(n, &l, "target"));
  n->out[0] = hlo_convert(n->b, negative_log_likelihood(n, &l, onnx_widen(n->b, n->in[0])), hlo_type(n->in[0]));
  return NULL;
}

status onnx_import_softmax_cross_entropy_loss(onnx_node *n) {
  loss l = {0};
  TRY(read_loss(n, "labels", &l));
  TRY(check_target(n, &l, "labels"));
  hlo_value log_prob = onnx_log_softmax(n->b, onnx_widen(n->b, n->in[0]), 1);
  n->out[0] = hlo_convert(n->b, negative_log_likelihood(n, &l, log_prob), hlo_type(n->in[0]));
  if (onnx_has_out(n, 1)) {
    n->out[1] = hlo_convert(n->b, log_prob, hlo_type(n->in[0]));
  }
  return NULL;
}
