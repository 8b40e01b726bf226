/* softmax.c - normalisations without parameters: Softmax, LogSoftmax, Hardmax, LpNormalization,
 * MeanVarianceNormalization.  They are computed in f32 or f64, and the result is rounded to the input's type. */
#include <math.h>
#include <string.h>

#include "frontend/import/import_helpers.h"
#include "frontend/import/symbolic.h"

/* Returns x op kept, where `kept` is a result of a reduction of x and has extent 1 in the reduced dimensions. */
static hlo_value op_kept(hlo_builder *b, hlo_op op, hlo_value x, hlo_value kept) {
  return hlo_binary(b, op, x, hlo_broadcast_to(b, kept, hlo_shape(x)));
}

/* Returns 1 at the first of the largest elements along the axis, 0 elsewhere. */
static hlo_value hardmax(hlo_builder *b, hlo_value x, int64_t axis) {
  shape s = *hlo_shape(x);
  if (s.dims[axis] == 0) {
    return x;
  }
  dtype narrow = dim_is_const(s.dims[axis]) && s.dims[axis] <= INT32_MAX ? DTYPE_S32 : DTYPE_S64;
  hlo_value position = hlo_iota(b, shape_with_type(s, narrow), axis);
  hlo_value first = hlo_convert(b, hlo_arg_reduce(b, x, axis, true, false), narrow);
  s.dims[axis] = 1;
  first = hlo_broadcast_to(b, hlo_reshape(b, first, s.rank, s.dims), hlo_shape(x));
  return hlo_convert(b, hlo_compare(b, HLO_EQ, position, first), hlo_type(x));
}

/* Before version 13 the input is reshaped to a matrix, each row of which is normalised: the dimensions before `axis`
 * become its rows, and `axis` and the dimensions after it become its columns. */
status onnx_import_softmax(onnx_node *n) {
  hlo_builder *b = n->b;
  hlo_value x = n->in[0];
  shape s = *hlo_shape(x);
  int64_t axis;
  TRY(onnx_axis_attr(n, n->since >= 13 ? -1 : 1, s.rank, &axis));
  if (n->since < 13) {
    dim rows_columns[] = {shape_dim_product(onnx_dims(n), &s, 0, (int)axis),
                          shape_dim_product(onnx_dims(n), &s, (int)axis, s.rank)};
    x = hlo_reshape(b, x, 2, rows_columns);
    axis = 1;
  }
  x = onnx_widen(b, x);
  switch (*n->proto->op_type) {
    case 'S': x = onnx_softmax(b, x, axis); break;
    case 'L': x = onnx_log_softmax(b, x, axis); break;
    default: x = hardmax(b, x, axis); break;
  }
  n->out[0] = hlo_reshape(b, hlo_convert(b, x, hlo_type(n->in[0])), s.rank, s.dims);
  return NULL;
}

/* Where the norm is 0, the result is 0. */
status onnx_import_lp_normalization(onnx_node *n) {
  hlo_builder *b = n->b;
  hlo_value x = onnx_widen(b, n->in[0]);
  int64_t axis, p;
  TRY(onnx_axis_attr(n, -1, hlo_rank(x), &axis));
  TRY(onnx_attr_int_in(n->proto, "p", 2, 1, 2, &p));
  hlo_value powers = p == 1 ? hlo_unary(b, HLO_ABS, x) : hlo_binary(b, HLO_MUL, x, x);
  hlo_value norm = onnx_reduce_keep(b, powers, HLO_REDUCE_ADD, 1, &axis);
  norm = hlo_broadcast_to(b, p == 1 ? norm : hlo_unary(b, HLO_SQRT, norm), hlo_shape(x));
  hlo_value zero = onnx_compare_scalar(b, HLO_EQ, norm, 0);
  hlo_value y = hlo_select(b, zero, hlo_like(b, x, 0), hlo_binary(b, HLO_DIV, x, norm));
  n->out[0] = hlo_convert(b, y, hlo_type(n->in[0]));
  return NULL;
}

/* Returns the axes over which mean and variance are taken.  In version 1 the attribute across_channels says whether the
 * channels are among them. */
static status moment_axes(const onnx_node *n, int rank, uint32_t *count, int64_t *axes) {
  static const int64_t default_axes[] = {0, 2, 3};
  const int64_t *given;
  size_t n_given;
  bool across = false;
  TRY(onnx_attr_ints(n->proto, "axes", &given, &n_given));
  if (!given && n->since == 1) {
    TRY(onnx_attr_bool(n->proto, "across_channels", false, &across));
    *count = 0;
    for (int k = 0; k < rank; k++) {
      if (across || k != 1) {
        axes[(*count)++] = k;
      }
    }
    return NULL;
  }
  *count = given ? (uint32_t)n_given : 3;
  return onnx_axes(given ? given : default_axes, *count, rank, axes);
}

/* Computes (x - mean) / (standard deviation + 1e-9) or, in version 1 with normalize_variance 0, x - mean. */
status onnx_import_mean_variance_normalization(onnx_node *n) {
  hlo_builder *b = n->b;
  hlo_value x = onnx_widen(b, n->in[0]);
  uint32_t count;
  int64_t axes[SHAPE_MAX_RANK];
  bool divide = true;
  TRY(moment_axes(n, hlo_rank(x), &count, axes));
  if (n->since == 1) {
    TRY(onnx_attr_bool(n->proto, "normalize_variance", true, &divide));
  }
  hlo_value centred = op_kept(b, HLO_SUB, x, onnx_mean_keep(b, x, count, axes));
  hlo_value variance = onnx_mean_keep(b, hlo_binary(b, HLO_MUL, centred, centred), count, axes);
  hlo_value deviation = onnx_binary_scalar(b, HLO_ADD, hlo_unary(b, HLO_SQRT, variance), 1e-9);
  n->out[0] = hlo_convert(b, divide ? op_kept(b, HLO_DIV, centred, deviation) : centred, hlo_type(n->in[0]));
  return NULL;
}
