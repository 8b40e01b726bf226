/* reduce.c - reductions (ReduceSum and the like), ArgMax and ArgMin, CumSum and CumProd. */
#include <math.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/import_common.h"
#include "frontend/import/symbolic.h"

/* The axes that a node reduces, in ascending order. */
typedef struct axis_list {
  uint32_t n;
  int64_t axes[SHAPE_MAX_RANK];
} axis_list;

/* Reduces x over the axes, which stay in the result with extent 1. */
typedef hlo_value reduction_fn(hlo_builder *b, hlo_value x, const axis_list *l);

static hlo_value keep(hlo_builder *b, hlo_value x, hlo_reducer r, const axis_list *l) {
  return onnx_reduce_keep(b, x, r, l->n, l->axes);
}

static hlo_value reduce_sum(hlo_builder *b, hlo_value x, const axis_list *l) { return keep(b, x, HLO_REDUCE_ADD, l); }
static hlo_value reduce_prod(hlo_builder *b, hlo_value x, const axis_list *l) { return keep(b, x, HLO_REDUCE_MUL, l); }

static hlo_value reduce_max(hlo_builder *b, hlo_value x, const axis_list *l) {
  return keep(b, x, onnx_reducer_for(hlo_type(x), HLO_REDUCE_MAX), l);
}

static hlo_value reduce_min(hlo_builder *b, hlo_value x, const axis_list *l) {
  return keep(b, x, onnx_reducer_for(hlo_type(x), HLO_REDUCE_MIN), l);
}

static hlo_value reduce_mean(hlo_builder *b, hlo_value x, const axis_list *l) {
  return onnx_mean_keep(b, x, l->n, l->axes);
}

static hlo_value reduce_l1(hlo_builder *b, hlo_value x, const axis_list *l) {
  return reduce_sum(b, hlo_unary(b, HLO_ABS, x), l);
}

static hlo_value reduce_sum_square(hlo_builder *b, hlo_value x, const axis_list *l) {
  return reduce_sum(b, hlo_binary(b, HLO_MUL, x, x), l);
}

static hlo_value reduce_l2(hlo_builder *b, hlo_value x, const axis_list *l) {
  return hlo_unary(b, HLO_SQRT, reduce_sum_square(b, x, l));
}

static hlo_value reduce_log_sum(hlo_builder *b, hlo_value x, const axis_list *l) {
  return hlo_unary(b, HLO_LOG, reduce_sum(b, x, l));
}

/* Computes log(sum(exp(x - m))) + m, where m is the largest x, or 0 if that is not finite. */
static hlo_value reduce_log_sum_exp(hlo_builder *b, hlo_value x, const axis_list *l) {
  hlo_value m = reduce_max(b, x, l);
  m = hlo_select(b, hlo_unary(b, HLO_IS_FINITE, m), m, hlo_like(b, m, 0));
  hlo_value shifted = hlo_binary(b, HLO_SUB, x, hlo_broadcast_to(b, m, hlo_shape(x)));
  return hlo_binary(b, HLO_ADD, reduce_log_sum(b, hlo_unary(b, HLO_EXP, shifted), l), m);
}

static const struct reduction {
  const char *name;
  reduction_fn *fn;
  bool in_float; /* whether integers are converted to floats; otherwise they are computed exactly */
  bool steps;    /* whether the formula rounds more than once, so that f16 and bf16 are computed in f32 */
} reductions[] = {
    {"ReduceL1", reduce_l1, false, true},         {"ReduceL2", reduce_l2, true, true},
    {"ReduceLogSum", reduce_log_sum, true, true}, {"ReduceLogSumExp", reduce_log_sum_exp, true, true},
    {"ReduceMax", reduce_max, false, false},      {"ReduceMean", reduce_mean, false, true},
    {"ReduceMin", reduce_min, false, false},      {"ReduceProd", reduce_prod, false, false},
    {"ReduceSum", reduce_sum, false, false},      {"ReduceSumSquare", reduce_sum_square, false, true},
};

static const struct reduction *find_reduction(const char *name) {
  for (size_t k = 0; k < sizeof reductions / sizeof *reductions; k++) {
    if (strcmp(reductions[k].name, name) == 0) {
      return &reductions[k];
    }
  }
  return NULL;
}

/* Reads the axes.  If none are given, all axes are reduced, or none if noop_with_empty_axes is set. */
static status reduction_axes(const onnx_node *n, int rank, axis_list *l) {
  const int64_t *axes;
  int64_t count;
  bool noop;
  TRY(onnx_ints_attr_or_input(n, "axes", 1, &axes, &count));
  TRY(onnx_attr_bool(n->proto, "noop_with_empty_axes", false, &noop));
  l->n = 0;
  if (count > 0) {
    TRY(onnx_axes(axes, (size_t)count, rank, l->axes));
    l->n = (uint32_t)count;
  } else if (!noop) {
    for (; l->n < (uint32_t)rank; l->n++) {
      l->axes[l->n] = l->n;
    }
  }
  return NULL;
}

/* Removes the reduced dimensions, which have extent 1, from x. */
static hlo_value drop_axes(hlo_builder *b, hlo_value x, const axis_list *l) {
  const shape *s = hlo_shape(x);
  dim dims[SHAPE_MAX_RANK];
  int rank = 0;
  for (uint32_t k = 0, next = 0; k < s->rank; k++) {
    if (next < l->n && l->axes[next] == k) {
      next++;
    } else {
      dims[rank++] = s->dims[k];
    }
  }
  return hlo_reshape(b, x, rank, dims);
}

status onnx_import_reduce(onnx_node *n) {
  const struct reduction *r = find_reduction(n->proto->op_type);
  CHECK_THAT(r, STATUS_INTERNAL, "%s has no row in reductions", n->proto->op_type);
  axis_list l;
  bool keepdims;
  dtype type = hlo_type(n->in[0]);
  TRY(reduction_axes(n, hlo_rank(n->in[0]), &l));
  TRY(onnx_attr_bool(n->proto, "keepdims", true, &keepdims));
  bool widen = r->in_float || (r->steps && dtype_is_float(type));
  hlo_value x = widen ? onnx_widen(n->b, n->in[0]) : n->in[0];
  hlo_value y = hlo_convert(n->b, r->fn(n->b, x, &l), type);
  n->out[0] = keepdims ? y : drop_axes(n->b, y, &l);
  return NULL;
}

/* --- ArgMax and ArgMin --- */

status onnx_import_arg_reduce(onnx_node *n) {
  hlo_value x = n->in[0];
  axis_list l = {.n = 1};
  bool keepdims, last;
  TRY(onnx_axis_attr(n, 0, hlo_rank(x), &l.axes[0]));
  TRY(onnx_attr_bool(n->proto, "keepdims", true, &keepdims));
  TRY(onnx_attr_bool(n->proto, "select_last_index", false, &last));
  shape s = *hlo_shape(x);
  CHECK_THAT(dim_at_most(onnx_dims(n), 1, s.dims[l.axes[0]]), STATUS_INVALID_MODEL,
             "data is %s; the axis has no elements", SHAPE_STR(onnx_dims(n), &s));
  s.dims[l.axes[0]] = 1;
  hlo_value y = hlo_arg_reduce(n->b, x, l.axes[0], strcmp(n->proto->op_type, "ArgMax") == 0, last);
  n->out[0] = keepdims ? hlo_reshape(n->b, y, s.rank, s.dims) : y;
  return NULL;
}

/* --- CumSum and CumProd --- */

status onnx_import_cumulative(onnx_node *n) {
  int64_t axis;
  bool exclusive, reverse;
  TRY(onnx_const_int(n, 1, "axis", &axis));
  TRY(onnx_axis(axis, hlo_rank(n->in[0]), &axis));
  TRY(onnx_attr_bool(n->proto, "exclusive", false, &exclusive));
  TRY(onnx_attr_bool(n->proto, "reverse", false, &reverse));
  hlo_reducer r = strcmp(n->proto->op_type, "CumProd") == 0 ? HLO_REDUCE_MUL : HLO_REDUCE_ADD;
  n->out[0] = hlo_cumulative(n->b, n->in[0], r, axis, exclusive, reverse);
  return NULL;
}
