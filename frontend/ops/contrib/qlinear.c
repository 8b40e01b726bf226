/* qlinear.c - the importers of operators on quantised arrays, as ONNX Runtime's quantiser writes them: the inputs are
 * dequantised, the operator is computed in f32, and its result is quantised.  QDQ fusion then computes in integers
 * where that is possible. */
#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/contrib/contrib.h"
#include "frontend/ops/math/activation.h"
#include "frontend/ops/math/matmul.h"

/* --- quantised values --- */

/* Returns input k, which must have one element, broadcast to s in its own type. */
static status repeated(const onnx_node *n, uint32_t k, const char *what, const shape *s, hlo_value *out) {
  TRY(onnx_need_one_element(n, k, what));
  *out = hlo_broadcast_to(n->b, hlo_reshape(n->b, n->in[k], 0, NULL), s);
  return NULL;
}

/* Returns input k in f32: (x - zero point) * scale.  The scale is input k + 1 and the zero point input k + 2, which may
 * be absent. */
static status dequantized(const onnx_node *n, uint32_t k, const char *what, hlo_value *out) {
  hlo_builder *b = n->b;
  hlo_value scale, zero;
  TRY(contrib_need_input(n, k, what));
  TRY(contrib_need_input(n, k + 1, "of the scale"));
  CHECK_THAT(hlo_type(n->in[k]) == DTYPE_U8 || hlo_type(n->in[k]) == DTYPE_S8, STATUS_INVALID_MODEL,
             "%s is %s; u8 or s8 is needed", what, SHAPE_STR(onnx_dims(n), onnx_in_shape(n, k)));
  CHECK_THAT(hlo_type(n->in[k + 1]) == DTYPE_F32, STATUS_INVALID_MODEL, "the scale of %s is %s instead of f32", what,
             SHAPE_STR(onnx_dims(n), onnx_in_shape(n, k + 1)));
  *out = hlo_convert(b, n->in[k], DTYPE_S32);
  if (onnx_has_in(n, k + 2)) {
    CHECK_THAT(hlo_type(n->in[k + 2]) == hlo_type(n->in[k]), STATUS_INVALID_MODEL, "%s is %s but its zero point %s",
               what, SHAPE_STR(onnx_dims(n), onnx_in_shape(n, k)), SHAPE_STR(onnx_dims(n), onnx_in_shape(n, k + 2)));
    TRY(repeated(n, k + 2, "the zero point", onnx_in_shape(n, k), &zero));
    *out = hlo_binary(b, HLO_SUB, *out, hlo_convert(b, zero, DTYPE_S32));
  }
  TRY(repeated(n, k + 1, "the scale", onnx_in_shape(n, k), &scale));
  *out = hlo_binary(b, HLO_MUL, hlo_convert(b, *out, DTYPE_F32), scale);
  return NULL;
}

/* Sets output 0 to y, quantised to the type: the scale is input k and the zero point input k + 1, which may be absent.
 */
static status quantize(onnx_node *n, hlo_value y, uint32_t k, dtype to) {
  hlo_value scale, zero = {0};
  if (n->b->error) {
    return NULL;
  }
  const shape *s = hlo_shape(y);
  TRY(contrib_need_input(n, k, "of the result's scale"));
  TRY(repeated(n, k, "the scale of the result", s, &scale));
  if (onnx_has_in(n, k + 1)) {
    TRY(repeated(n, k + 1, "the zero point of the result", s, &zero));
  }
  n->out[0] = onnx_saturate(n->b, hlo_binary(n->b, HLO_DIV, y, scale), zero, to);
  return NULL;
}

/* --- elementwise operators --- */

static status qlinear_binary(onnx_node *n, hlo_op op) {
  hlo_value x, y;
  TRY(CONTRIB_ATTRIBUTES(n, NULL));
  TRY(dequantized(n, 0, "A", &x));
  TRY(dequantized(n, 3, "B", &y));
  return quantize(n, hlo_binary_broadcast(n->b, op, x, y), 6, hlo_type(n->in[0]));
}

status onnx_import_contrib_qlinear_add(onnx_node *n) { return qlinear_binary(n, HLO_ADD); }
status onnx_import_contrib_qlinear_mul(onnx_node *n) { return qlinear_binary(n, HLO_MUL); }

status onnx_import_contrib_qlinear_sigmoid(onnx_node *n) {
  hlo_value x;
  TRY(CONTRIB_ATTRIBUTES(n, NULL));
  TRY(dequantized(n, 0, "X", &x));
  return quantize(n, hlo_unary(n->b, HLO_LOGISTIC, x), 3, hlo_type(n->in[0]));
}

status onnx_import_contrib_qlinear_leaky_relu(onnx_node *n) {
  float alpha;
  hlo_value x, y = {0};
  TRY(CONTRIB_ATTRIBUTES(n, "alpha"));
  TRY(onnx_attr_float(n->proto, "alpha", 0.01f, &alpha));
  TRY(dequantized(n, 0, "X", &x));
  (void)onnx_activation(n->b, "LeakyRelu", x, (double[2]){alpha}, &y);
  return quantize(n, y, 3, hlo_type(n->in[0]));
}

/* The inputs are the condition, X, Y, each of these two followed by its scale and zero point, and the scale and zero
 * point of the result. */
status onnx_import_contrib_qlinear_where(onnx_node *n) {
  hlo_builder *b = n->b;
  hlo_value x, y, condition = n->in[0];
  TRY(CONTRIB_ATTRIBUTES(n, NULL));
  TRY(dequantized(n, 1, "X", &x));
  TRY(dequantized(n, 4, "Y", &y));
  hlo_broadcast_both(b, &x, &y);
  if (b->error) {
    return NULL;
  }
  shape s;
  TRY(hlo_broadcast_shape(onnx_dims(n), hlo_shape(x), hlo_shape(condition), &s));
  x = hlo_select(b, hlo_broadcast_to(b, condition, &s), hlo_broadcast_to(b, x, &s), hlo_broadcast_to(b, y, &s));
  return quantize(n, x, 7, hlo_type(n->in[1]));
}

/* --- operators that reduce or move elements --- */

status onnx_import_contrib_qlinear_softmax(onnx_node *n) {
  int64_t opset, axis;
  hlo_value x;
  const shape *s = onnx_in_shape(n, 0);
  TRY(CONTRIB_ATTRIBUTES(n, "axis", "opset"));
  TRY(onnx_attr_required(n->proto, "opset"));
  TRY(onnx_attr_int(n->proto, "opset", 0, &opset));
  TRY(onnx_axis_attr(n, -1, s->rank, &axis));
  TRY(dequantized(n, 0, "X", &x));
  x = opset < 13 ? contrib_softmax_from(n, x, axis) : onnx_softmax(n->b, x, axis);
  return quantize(n, x, 3, hlo_type(n->in[0]));
}

status onnx_import_contrib_qlinear_reduce_mean(onnx_node *n) {
  const shape *s = onnx_in_shape(n, 0);
  const int64_t *given;
  size_t count;
  int64_t axes[SHAPE_MAX_RANK];
  bool keep;
  hlo_value x;
  TRY(CONTRIB_ATTRIBUTES(n, "axes", "keepdims"));
  TRY(onnx_attr_bool(n->proto, "keepdims", true, &keep));
  TRY(onnx_attr_ints(n->proto, "axes", &given, &count));
  for (int k = 0; k < s->rank; k++) {
    axes[k] = k;
  }
  TRY(count ? onnx_axes(given, count, s->rank, axes) : NULL);
  count = count ? count : (size_t)s->rank;
  TRY(dequantized(n, 0, "data", &x));
  x = onnx_mean_keep(n->b, x, (uint32_t)count, axes);
  for (size_t k = count; k-- > 0 && !keep;) {
    x = onnx_pick(n->b, x, axes[k], 0);
  }
  return quantize(n, x, 3, hlo_type(n->in[0]));
}

status onnx_import_contrib_qlinear_global_average_pool(onnx_node *n) {
  bool last;
  hlo_value x;
  int64_t over[SHAPE_MAX_RANK];
  TRY(CONTRIB_ATTRIBUTES(n, "channels_last"));
  TRY(onnx_attr_bool(n->proto, "channels_last", false, &last));
  TRY(onnx_need_rank(n, 0, "X", 3, SHAPE_MAX_RANK));
  uint32_t spatial = (uint32_t)onnx_in_shape(n, 0)->rank - 2;
  for (uint32_t k = 0; k < spatial; k++) {
    over[k] = k + (last ? 1 : 2);
  }
  TRY(dequantized(n, 0, "X", &x));
  return quantize(n, onnx_mean_keep(n->b, x, spatial, over), 3, hlo_type(n->in[0]));
}

status onnx_import_contrib_qlinear_average_pool(onnx_node *n) {
  bool last;
  hlo_value x;
  TRY(CONTRIB_ATTRIBUTES(n, "auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides",
                         "channels_last"));
  TRY(onnx_attr_bool(n->proto, "channels_last", false, &last));
  TRY(onnx_need_rank(n, 0, "X", 3, SHAPE_MAX_RANK));
  TRY(dequantized(n, 0, "X", &x));
  x = last ? contrib_move_channels(n->b, x, false) : x;
  if (n->b->error) {
    return NULL;
  }
  onnx_node pool = contrib_as(n, 11, 1, &x);
  TRY(onnx_import_average_pool(&pool));
  x = last ? contrib_move_channels(n->b, n->out[0], true) : n->out[0];
  return quantize(n, x, 3, hlo_type(n->in[0]));
}

/* The inputs are the result's scale and zero point, then three for each operand. */
status onnx_import_contrib_qlinear_concat(onnx_node *n) {
  int64_t axis;
  TRY(CONTRIB_ATTRIBUTES(n, "axis"));
  TRY(onnx_attr_required(n->proto, "axis"));
  CHECK_THAT(n->n_in >= 5 && n->n_in % 3 == 2, STATUS_INVALID_MODEL,
             "there are %" PRIu32 " inputs; two, and three for each operand, are needed", n->n_in);
  uint32_t count = n->n_in / 3;
  hlo_value *parts = ARENA_NEW_N(n->arena, hlo_value, count);
  for (uint32_t k = 0; k < n->n_in; k++) {
    TRY(contrib_need_input(n, k, "of QLinearConcat"));
  }
  TRY(onnx_need_rank(n, 2, "the first operand", 1, SHAPE_MAX_RANK));
  TRY(onnx_axis_attr(n, 0, onnx_in_shape(n, 2)->rank, &axis));
  for (uint32_t k = 0; k < count; k++) {
    TRY(dequantized(n, 2 + 3 * k, "an operand", &parts[k]));
  }
  return quantize(n, hlo_concatenate(n->b, count, parts, axis), 0, hlo_type(n->in[1]));
}

/* --- products --- */

/* Returns the factor by which the sums of integer products are multiplied, alpha * a_scale * b_scale: f32 with the
 * dimensions of y. */
static status gemm_scale(const onnx_node *n, const shape *y, float alpha, hlo_value *out) {
  hlo_value sx, sy;
  TRY(repeated(n, 1, "a_scale", y, &sx));
  TRY(contrib_column_scale(n, 4, "b_scale", y, &sy));
  *out = hlo_binary(n->b, HLO_MUL, onnx_times(n->b, sx, alpha), sy);
  return NULL;
}

/* C is s32 in units of alpha * a_scale * b_scale.  Without y_scale the result is f32. */
status onnx_import_contrib_qgemm(onnx_node *n) {
  hlo_builder *b = n->b;
  float alpha;
  onnx_gemm g = {.a = 0, .a_zero = 2, .b = 3, .b_zero = 5};
  hlo_value y, scale;
  TRY(CONTRIB_ATTRIBUTES(n, "alpha", "transA", "transB"));
  TRY(onnx_attr_float(n->proto, "alpha", 1, &alpha));
  TRY(onnx_attr_bool(n->proto, "transA", false, &g.trans_a));
  TRY(onnx_attr_bool(n->proto, "transB", false, &g.trans_b));
  TRY(onnx_need_one_element(n, 2, "a_zero_point"));
  TRY(onnx_integer_gemm(n, &g, &y));
  if (b->error) {
    return NULL;
  }
  shape s = shape_with_type(*hlo_shape(y), DTYPE_F32);
  if (onnx_has_in(n, 6)) {
    CHECK_THAT(hlo_rank(n->in[6]) <= 2, STATUS_INVALID_MODEL, "C is %s", SHAPE_STR(onnx_dims(n), onnx_in_shape(n, 6)));
    y = onnx_op_stretched(b, HLO_ADD, y, n->in[6]);
  }
  TRY(gemm_scale(n, &s, alpha, &scale));
  y = hlo_binary(b, HLO_MUL, hlo_convert(b, y, DTYPE_F32), scale);
  CHECK_THAT(onnx_has_in(n, 7) == onnx_has_in(n, 8), STATUS_INVALID_MODEL,
             "y_scale and y_zero_point must be given together");
  n->out[0] = y;
  return onnx_has_in(n, 7) ? quantize(n, y, 7, hlo_type(n->in[8])) : NULL;
}

/* --- operators of the standard with other types or layouts --- */

/* Returns an error if there are scales along an axis but no attribute `axis`, or if the node has other attributes. */
static status check_axis(const onnx_node *n) {
  CHECK_THAT(contrib_is_single(n, 1) || onnx_attr_has(n->proto, "axis"), STATUS_INVALID_MODEL,
             "the scale is %s, but there is no axis", SHAPE_STR(onnx_dims(n), onnx_in_shape(n, 1)));
  return CONTRIB_ATTRIBUTES(n, "axis");
}

status onnx_import_contrib_quantize_linear(onnx_node *n) {
  TRY(check_axis(n));
  onnx_node standard = contrib_as(n, 13, n->n_in, n->in);
  return onnx_import_quantize_linear(&standard);
}

status onnx_import_contrib_dequantize_linear(onnx_node *n) {
  TRY(check_axis(n));
  onnx_node standard = contrib_as(n, 13, n->n_in, n->in);
  return onnx_import_dequantize_linear(&standard);
}

status onnx_import_contrib_qlinear_conv(onnx_node *n) {
  bool last;
  hlo_value in[9];
  TRY(CONTRIB_ATTRIBUTES(n, "auto_pad", "dilations", "group", "kernel_shape", "pads", "strides", "channels_last"));
  TRY(onnx_attr_bool(n->proto, "channels_last", false, &last));
  TRY(onnx_need_rank(n, 0, "x", 3, SHAPE_MAX_RANK));
  memcpy(in, n->in, sizeof in);
  in[0] = last ? contrib_move_channels(n->b, in[0], false) : in[0];
  if (n->b->error) {
    return NULL;
  }
  onnx_node conv = contrib_as(n, 10, n->n_in, in);
  TRY(onnx_import_qlinear_conv(&conv));
  n->out[0] = last ? contrib_move_channels(n->b, n->out[0], true) : n->out[0];
  return NULL;
}

status onnx_import_contrib_nhwc_max_pool(onnx_node *n) {
  TRY(CONTRIB_ATTRIBUTES(n, "auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"));
  TRY(onnx_need_rank(n, 0, "x", 3, SHAPE_MAX_RANK));
  hlo_value x = contrib_move_channels(n->b, n->in[0], false);
  if (n->b->error) {
    return NULL;
  }
  onnx_node pool = contrib_as(n, 12, 1, &x);
  TRY(onnx_import_max_pool(&pool));
  n->out[0] = contrib_move_channels(n->b, n->out[0], true);
  return NULL;
}
