/* conv.c - the importers of Conv, ConvTranspose, ConvInteger, QLinearConv and CausalConvWithState. */
#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/import_helpers.h"
#include "frontend/import/symbolic.h"

typedef struct conv_attrs {
  onnx_window window;
  int64_t groups;
} conv_attrs;

/* Reads the attributes of a convolution and checks input xk [N, C, spatial...] against the weights, input wk.  The
 * weights are [M, C / groups, spatial...] or, for a transposed convolution, [C, M / groups, spatial...], where C is the
 * number of input channels and M that of output channels. */
static status read_conv(const onnx_node *n, uint32_t xk, uint32_t wk, bool transposed, conv_attrs *c) {
  const shape *x = onnx_in_shape(n, xk), *w = onnx_in_shape(n, wk);
  TRY(onnx_need_rank(n, xk, "X", 3, SHAPE_MAX_RANK));
  TRY(onnx_need_rank(n, wk, "W", x->rank, x->rank));
  TRY(onnx_need_constant_dims(n, wk, "W"));
  TRY(onnx_attr_int_in(n->proto, "group", 1, 1, ONNX_WINDOW_MAX, &c->groups));
  int64_t channels = transposed ? w->dims[0] : w->dims[1] * c->groups;
  CHECK_THAT(dim_equal(onnx_dims(n), x->dims[1], channels), STATUS_INVALID_MODEL,
             "X is %s but W is %s with group %" PRId64 "; channels %" PRId64 " != %" PRId64, SHAPE_STR(onnx_dims(n), x),
             SHAPE_STR(onnx_dims(n), w), c->groups, x->dims[1], channels);
  CHECK_THAT(w->dims[0] % c->groups == 0, STATUS_INVALID_MODEL,
             "W is %s; its first dimension is no multiple of group %" PRId64, SHAPE_STR(onnx_dims(n), w), c->groups);
  return onnx_read_window(n, x->rank - 2, w->dims + 2, &c->window);
}

static hlo_value convolve(hlo_builder *b, hlo_value x, hlo_value w, const conv_attrs *c) {
  hlo_conv_dims d = {.strides = c->window.strides,
                     .low = c->window.low,
                     .high = c->window.high,
                     .rhs_dilation = c->window.dilations,
                     .groups = c->groups,
                     .layout = HLO_CHANNELS_FIRST};
  return hlo_convolution(b, x, w, &d);
}

/* Returns input zk, a zero point of one element, as a scalar; 0 if it is missing. */
static hlo_value scalar_zero(const onnx_node *n, uint32_t zk) {
  return onnx_has_in(n, zk) ? hlo_reshape(n->b, n->in[zk], 0, NULL) : hlo_scalar(n->b, hlo_type(n->in[0]), 0);
}

/* Resolves auto_pad, which may pad *x by its zero point, input zk, or by 0 if there is none.  Checks that the kernel
 * fits into the padded input. */
static status finish_window(const onnx_node *n, conv_attrs *c, uint32_t zk, hlo_value *x) {
  hlo_value fill = {0};
  if (onnx_window_is_same(&c->window)) {
    fill = scalar_zero(n, zk);
  }
  *x = onnx_pad_same(n, &c->window, *x, fill);
  return n->b->error ? NULL : onnx_window_fits(n, &c->window, hlo_shape(*x)->dims + 2);
}

/* Adds input k, a bias [channels], to y [N, channels, spatial...] if it is present. */
static status add_bias(onnx_node *n, uint32_t k, hlo_value *y) {
  if (n->b->error || !onnx_has_in(n, k)) {
    return NULL;
  }
  dim channels = hlo_shape(*y)->dims[1];
  TRY(onnx_need_dims(n, k, "B", 1, &channels));
  *y = hlo_binary(n->b, HLO_ADD, *y, onnx_along(n->b, n->in[k], hlo_shape(*y), 1));
  return NULL;
}

status onnx_import_conv(onnx_node *n) {
  const uint32_t no_zero_point = UINT32_MAX;
  conv_attrs c;
  TRY(read_conv(n, 0, 1, false, &c));
  hlo_value x = n->in[0];
  TRY(finish_window(n, &c, no_zero_point, &x));
  n->out[0] = convolve(n->b, x, n->in[1], &c);
  return add_bias(n, 2, &n->out[0]);
}

/* --- ConvTranspose --- */

/* Converts the weights [C, M/g, spatial...] to the kernel of the equivalent convolution, [M, C/g, reversed spatial...],
 * where g is the number of groups. */
static hlo_value transposed_kernel(hlo_builder *b, hlo_value w, int64_t groups) {
  shape s = *hlo_shape(w);
  dim split[] = {groups, s.dims[0] / groups, s.dims[1], shape_product(&s, 2, s.rank)};
  int64_t reversed[SHAPE_MAX_RANK];
  dim merged[SHAPE_MAX_RANK] = {groups * s.dims[1], s.dims[0] / groups};
  for (int k = 2; k < s.rank; k++) {
    merged[k] = s.dims[k];
    reversed[k - 2] = k;
  }
  w = hlo_transpose(b, hlo_reshape(b, w, 4, split), (int64_t[]){0, 2, 1, 3});
  return hlo_reverse(b, hlo_reshape(b, w, s.rank, merged), (uint32_t)s.rank - 2, reversed);
}

/* Sets the padding such that `total` elements are cut off from the full result of a transposed convolution.  Half of
 * them are cut at each end; if `total` is odd, SAME_UPPER cuts one more at the end, other modes at the start.  If
 * `total` is negative, zeros are added at the end instead.  (In versions 1 and 11 of the standard the equations
 * contradict the description of auto_pad; the code follows the description, as version 22 does.) */
static void split_total_padding(onnx_window *w, int k, int64_t total) {
  int64_t half = total > 0 ? total / 2 : 0, rest = total > 0 ? total - half : 0;
  w->low[k] = w->auto_pad == ONNX_PAD_SAME_UPPER ? half : rest;
  w->high[k] = total - w->low[k];
}

/* Sets the padding if the node has the attribute output_shape, or auto_pad is SAME_UPPER or SAME_LOWER.  `full` has the
 * result's extents without padding.  The padding must be a constant.  With SAME it is a constant, since full - in *
 * stride does not depend on `in`. */
static status read_output_shape(const onnx_node *n, onnx_window *w, const dim *full, const dim *in) {
  const int64_t *wanted;
  size_t count;
  TRY(onnx_attr_ints(n->proto, "output_shape", &wanted, &count));
  if (count == 0 && !onnx_window_is_same(w)) {
    return NULL;
  }
  if (count == (size_t)w->n + 2) { /* some exporters list batch and channels as well */
    wanted += 2;
    count -= 2;
  }
  CHECK_THAT(count == 0 || count == (size_t)w->n, STATUS_INVALID_MODEL, "output_shape has %zu entries instead of %d",
             count, w->n);
  for (int k = 0; k < w->n; k++) {
    dim_table *t = onnx_dims(n);
    dim extent = count ? wanted[k] : dim_mul(t, in[k], w->strides[k]);
    CHECK_THAT(!count || (wanted[k] >= 1 && wanted[k] <= DIM_MAX), STATUS_INVALID_MODEL,
               "output_shape[%d] is %" PRId64 "; it must be positive", k, wanted[k]);
    int64_t total;
    if (!dim_signed_value(t, dim_signed_sub(t, full[k], extent), &total)) {
      return onnx_need_constant_dims(n, 0, "X");
    }
    split_total_padding(w, k, total);
  }
  return NULL;
}

static status read_output_padding(const onnx_node *n, const onnx_window *w, int64_t *out) {
  const int64_t *values;
  size_t count;
  TRY(onnx_attr_ints(n->proto, "output_padding", &values, &count));
  CHECK_THAT(count == 0 || count == (size_t)w->n, STATUS_INVALID_MODEL, "output_padding has %zu entries instead of %d",
             count, w->n);
  for (int k = 0; k < w->n; k++) {
    out[k] = count ? values[k] : 0;
    int64_t limit = w->strides[k] > w->dilations[k] ? w->strides[k] : w->dilations[k];
    CHECK_THAT(out[k] >= 0 && out[k] < limit, STATUS_INVALID_MODEL,
               "output_padding[%d] is %" PRId64 "; it must be within 0..%" PRId64 ", below stride or dilation", k,
               out[k], limit - 1);
  }
  return NULL;
}

/* ConvTranspose is a convolution: zeros are inserted between the elements of the input (lhs_dilation), which is then
 * convolved with the reversed kernel. */
status onnx_import_conv_transpose(onnx_node *n) {
  conv_attrs c;
  TRY(read_conv(n, 0, 1, true, &c));
  onnx_window *w = &c.window;
  const dim *in = onnx_in_shape(n, 0)->dims + 2;
  dim_table *t = onnx_dims(n);
  int64_t extra[SHAPE_MAX_RANK];
  dim full[SHAPE_MAX_RANK];
  TRY(read_output_padding(n, w, extra));
  for (int k = 0; k < w->n; k++) {
    full[k] = dim_mul(t, dim_signed_sub(t, in[k], 1), w->strides[k]);
    full[k] = dim_add_const(t, full[k], extra[k] + onnx_window_extent(w, k));
    CHECK_THAT(dim_at_most(t, 1, in[k]) && full[k] != DIM_OVERFLOW, STATUS_INVALID_MODEL,
               "spatial dimension %d of X is %s; it must be positive and, times the stride, not overflow", k,
               dim_print(n->arena, t, in[k]));
  }
  TRY(read_output_shape(n, w, full, in));
  hlo_conv_dims d = {.lhs_dilation = w->strides,
                     .rhs_dilation = w->dilations,
                     .low = w->low,
                     .high = w->high,
                     .groups = c.groups,
                     .layout = HLO_CHANNELS_FIRST};
  for (int k = 0; k < w->n; k++) {
    CHECK_THAT(dim_at_most(t, dim_signed_const(t, w->low[k] + w->high[k]), full[k]), STATUS_INVALID_MODEL,
               "pads %" PRId64 " and %" PRId64 " cut off more than the %s elements of spatial dimension %d", w->low[k],
               w->high[k], dim_print(n->arena, t, full[k]), k);
    int64_t around = onnx_window_extent(w, k) - 1;
    w->low[k] = around - w->low[k];
    w->high[k] = around - w->high[k] + extra[k];
  }
  n->out[0] = hlo_convolution(n->b, n->in[0], transposed_kernel(n->b, n->in[1], c.groups), &d);
  return add_bias(n, 2, &n->out[0]);
}

/* --- ConvInteger and QLinearConv --- */

/* Returns x as s32, minus its zero point, which is input zk; a zero point of rank 1 varies along dimension 0. */
static hlo_value centered(const onnx_node *n, hlo_value x, uint32_t zk) {
  x = hlo_convert(n->b, x, DTYPE_S32);
  if (!onnx_has_in(n, zk)) {
    return x;
  }
  hlo_value zero = hlo_convert(n->b, n->in[zk], DTYPE_S32);
  return hlo_binary(n->b, HLO_SUB, x, onnx_along(n->b, zero, hlo_shape(x), 0));
}

/* Checks a zero point or scale: it has one element or, if `channels` is not 0, one for each channel. */
static status need_parameter(const onnx_node *n, uint32_t k, const char *what, dim channels) {
  if (!onnx_has_in(n, k)) {
    return NULL;
  }
  const shape *s = onnx_in_shape(n, k);
  dim_table *t = onnx_dims(n);
  bool one = s->rank == 0 || (s->rank == 1 && dim_known_equal(t, s->dims[0], 1));
  CHECK_THAT(one || (s->rank == 1 && dim_equal(t, s->dims[0], channels ? channels : 1)), STATUS_INVALID_MODEL,
             "%s is %s; it must be a scalar%s", what, SHAPE_STR(onnx_dims(n), s),
             channels ? " or have one element a channel" : "");
  return NULL;
}

/* Checks that input k, a zero point, has the same type as input `of`, the array from which it is subtracted. */
static status need_type(const onnx_node *n, uint32_t k, const char *what, uint32_t of, const char *whose) {
  if (!onnx_has_in(n, k)) {
    return NULL;
  }
  dtype t = hlo_type(n->in[k]), want = hlo_type(n->in[of]);
  CHECK_THAT(t == want, STATUS_INVALID_MODEL, "%s is %s but %s is %s", what, dtype_name(t), whose, dtype_name(want));
  return NULL;
}

status onnx_import_conv_integer(onnx_node *n) {
  conv_attrs c;
  hlo_value x = n->in[0];
  TRY(read_conv(n, 0, 1, false, &c));
  TRY(need_type(n, 2, "x_zero_point", 0, "x"));
  TRY(need_type(n, 3, "w_zero_point", 1, "w"));
  TRY(need_parameter(n, 2, "x_zero_point", 0));
  TRY(need_parameter(n, 3, "w_zero_point", onnx_in_shape(n, 1)->dims[0]));
  TRY(finish_window(n, &c, 2, &x));
  n->out[0] = convolve(n->b, centered(n, x, 2), centered(n, n->in[1], 3), &c);
  return NULL;
}

/* The inputs are x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, B. */
status onnx_import_qlinear_conv(onnx_node *n) {
  hlo_builder *b = n->b;
  conv_attrs c;
  hlo_value x = n->in[0];
  TRY(read_conv(n, 0, 3, false, &c));
  dim channels = onnx_in_shape(n, 3)->dims[0];
  static const char *const names[] = {"x_scale", "x_zero_point", "", "w_scale", "w_zero_point",
                                      "y_scale", "y_zero_point"};
  for (uint32_t k = 1; k < 8; k++) {
    if (k != 3) {
      TRY(need_parameter(n, k, names[k - 1], k == 4 || k == 5 ? channels : 0));
    }
  }
  TRY(finish_window(n, &c, 2, &x));
  hlo_value y = convolve(b, centered(n, x, 2), centered(n, n->in[3], 5), &c);
  TRY(add_bias(n, 8, &y));
  const shape *s = hlo_shape(y);
  hlo_value scale = onnx_along(b, n->in[1], s, 1);
  scale = hlo_binary(b, HLO_MUL, scale, onnx_along(b, n->in[4], s, 1));
  scale = hlo_binary(b, HLO_DIV, scale, onnx_along(b, n->in[6], s, 1));
  y = hlo_binary(b, HLO_MUL, hlo_convert(b, y, hlo_type(scale)), scale);
  n->out[0] = onnx_saturate(b, y, onnx_along(b, n->in[7], s, 1), hlo_type(n->in[7]));
  return NULL;
}

/* --- CausalConvWithState, whose second output is the state for the next call --- */

/* The inputs are input [B, C, L], weight [C, 1, k], bias [C] and past_state [B, C, (k - 1) * dilation].  Only ONNX
 * Runtime's operator has the attribute dilation. */
status onnx_import_causal_conv_with_state(onnx_node *n) {
  hlo_builder *b = n->b;
  const shape *x = onnx_in_shape(n, 0), *w = onnx_in_shape(n, 1);
  const char *activation;
  TRY(onnx_need_rank(n, 0, "input", 3, 3));
  TRY(onnx_need_rank(n, 1, "weight", 3, 3));
  int64_t k, channels, dilation;
  TRY(onnx_const_dim(n, w->dims[2], "the length of the kernel", &k));
  TRY(onnx_const_dim(n, x->dims[1], "the number of channels", &channels));
  TRY(onnx_need_dims(n, 1, "weight", 3, (dim[]){channels, 1, k}));
  CHECK_THAT(k >= 1 && k <= ONNX_WINDOW_MAX, STATUS_INVALID_MODEL,
             "weight is %s; the length of the kernel must be within 1..%d", SHAPE_STR(onnx_dims(n), w),
             ONNX_WINDOW_MAX);
  TRY(onnx_attr_int_in(n->proto, "dilation", 1, 1, ONNX_WINDOW_MAX, &dilation));
  int64_t past_steps = (k - 1) * dilation;
  dim state_dims[] = {x->dims[0], x->dims[1], past_steps};
  TRY(onnx_need_dims(n, 3, "past_state", 3, state_dims));
  TRY(onnx_attr_string(n->arena, n->proto, "activation", "none", &activation));
  bool silu = strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
  CHECK_THAT(silu || strcmp(activation, "none") == 0, STATUS_INVALID_MODEL,
             "activation is \"%.40s\"; it must be none, silu or swish", activation);
  hlo_value past = onnx_has_in(n, 3) ? n->in[3] : hlo_splat(b, shape_make((dtype)x->type, 3, state_dims), 0);
  hlo_value all = hlo_concatenate(b, 2, (hlo_value[]){past, n->in[0]}, 2);
  hlo_conv_dims d = {.rhs_dilation = &dilation, .groups = channels, .layout = HLO_CHANNELS_FIRST};
  hlo_value y = hlo_convolution(b, all, n->in[1], &d);
  TRY(add_bias(n, 2, &y));
  if (silu) {
    hlo_value wide = onnx_widen(b, y);
    y = hlo_convert(b, hlo_binary(b, HLO_MUL, wide, hlo_unary(b, HLO_LOGISTIC, wide)), hlo_type(y));
  }
  n->out[0] = y;
  n->out[1] = hlo_slice_dim(b, all, 2, x->dims[2], dim_add_const(onnx_dims(n), x->dims[2], past_steps));
  return NULL;
}
