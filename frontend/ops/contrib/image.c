/* image.c - the importers of operators of diffusion models, whose arrays usually have the channels last. */
#include <inttypes.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/contrib/contrib.h"
#include "frontend/ops/math/activation.h"
#include "frontend/ops/math/norm.h"

/* --- GroupNorm, SkipGroupNorm --- */

enum { X, GAMMA, BETA, SKIP, BIAS };

typedef struct group_norm {
  int64_t groups, channels;
  float epsilon;
  bool last, silu;
} group_norm;

static status read_group_norm(const onnx_node *n, group_norm *g) {
  int64_t activation;
  TRY(CONTRIB_ATTRIBUTES(n, "activation", "channels_last", "epsilon", "groups"));
  TRY(onnx_attr_required(n->proto, "activation"));
  TRY(onnx_attr_required(n->proto, "groups"));
  TRY(onnx_attr_int_in(n->proto, "activation", 0, 0, 1, &activation));
  TRY(onnx_attr_int_in(n->proto, "groups", 0, 1, INT32_MAX, &g->groups));
  TRY(onnx_attr_bool(n->proto, "channels_last", true, &g->last));
  TRY(onnx_attr_float(n->proto, "epsilon", 1e-5f, &g->epsilon));
  g->silu = activation;
  TRY(onnx_need_rank(n, X, "X", 4, 4));
  TRY(onnx_const_dim(n, onnx_in_shape(n, X)->dims[g->last ? 3 : 1], "the number of channels", &g->channels));
  CHECK_THAT(g->channels % g->groups == 0, STATUS_INVALID_MODEL,
             "groups is %" PRId64 "; it must divide the %" PRId64 " channels of X", g->groups, g->channels);
  dim channels = g->channels;
  TRY(onnx_need_dims(n, GAMMA, "gamma", 1, &channels));
  return onnx_need_dims(n, BETA, "beta", 1, &channels);
}

/* Returns x [N, H, W, C], normalised over each group of channels, with gamma, beta and the activation. */
static hlo_value normalize_groups(const onnx_node *n, const group_norm *g, hlo_value x) {
  static const int64_t over[] = {1, 3};
  hlo_builder *b = n->b;
  if (b->error) {
    return x;
  }
  const shape *s = hlo_shape(x);
  dim grouped[] = {s->dims[0], dim_mul(onnx_dims(n), s->dims[1], s->dims[2]), g->groups, g->channels / g->groups};
  onnx_moments m = onnx_moments_over(b, hlo_reshape(b, x, 4, grouped), 2, over);
  hlo_value y = onnx_op_stretched(b, HLO_MUL, m.centered, onnx_inverse_deviation(b, m.variance, g->epsilon));
  y = hlo_reshape(b, y, 4, s->dims);
  y = onnx_op_stretched(b, HLO_MUL, y, hlo_convert(b, n->in[GAMMA], DTYPE_F32));
  y = onnx_op_stretched(b, HLO_ADD, y, hlo_convert(b, n->in[BETA], DTYPE_F32));
  return g->silu ? onnx_swish(b, y, 1) : y;
}

static hlo_value finished(const onnx_node *n, const group_norm *g, hlo_value y) {
  y = g->last ? y : contrib_move_channels(n->b, y, false);
  return hlo_convert(n->b, y, hlo_type(n->in[X]));
}

status onnx_import_contrib_group_norm(onnx_node *n) {
  group_norm g;
  TRY(read_group_norm(n, &g));
  hlo_value x = hlo_convert(n->b, n->in[X], DTYPE_F32);
  x = g.last ? x : contrib_move_channels(n->b, x, true);
  n->out[0] = finished(n, &g, normalize_groups(n, &g, x));
  return NULL;
}

/* skip is [N, C], or has X's dimensions, of which both spatial ones may be replaced by 1. */
status onnx_import_contrib_skip_group_norm(onnx_node *n) {
  hlo_builder *b = n->b;
  group_norm g;
  TRY(read_group_norm(n, &g));
  hlo_value x = hlo_convert(b, n->in[X], DTYPE_F32), skip = hlo_convert(b, n->in[SKIP], DTYPE_F32);
  x = g.last ? x : contrib_move_channels(b, x, true);
  TRY(onnx_need_rank(n, SKIP, "skip", 2, 4));
  if (b->error) {
    return NULL;
  }
  const dim *dims = hlo_shape(x)->dims;
  if (hlo_rank(skip) == 2) {
    TRY(onnx_need_dims(n, SKIP, "skip", 2, (dim[]){dims[0], dims[3]}));
    skip = hlo_reshape(b, skip, 4, (dim[]){dims[0], 1, 1, dims[3]});
  } else {
    skip = g.last ? skip : contrib_move_channels(b, skip, true);
    const dim *given = hlo_shape(skip)->dims;
    bool once = dim_known_equal(onnx_dims(n), given[1], 1) && dim_known_equal(onnx_dims(n), given[2], 1);
    CHECK_THAT(onnx_has_dims(n, hlo_shape(skip), 4, (dim[]){dims[0], once ? 1 : dims[1], once ? 1 : dims[2], dims[3]}),
               STATUS_INVALID_MODEL, "skip is %s, which does not fit X, %s",
               SHAPE_STR(onnx_dims(n), onnx_in_shape(n, SKIP)), SHAPE_STR(onnx_dims(n), onnx_in_shape(n, X)));
  }
  x = onnx_op_stretched(b, HLO_ADD, x, skip);
  if (onnx_has_in(n, BIAS)) {
    TRY(onnx_need_dims(n, BIAS, "bias", 1, &dims[3]));
    x = onnx_op_stretched(b, HLO_ADD, x, hlo_convert(b, n->in[BIAS], DTYPE_F32));
  }
  n->out[0] = finished(n, &g, normalize_groups(n, &g, x));
  n->out[1] = finished(n, &g, x);
  return NULL;
}

/* --- sums --- */

status onnx_import_contrib_bias_add(onnx_node *n) {
  hlo_value x;
  TRY(CONTRIB_ATTRIBUTES(n, NULL));
  TRY(onnx_need_rank(n, 0, "X", 3, 3));
  TRY(contrib_biased(n, "bias", &x));
  TRY(onnx_need_dims(n, 2, "skip", 3, onnx_in_shape(n, 0)->dims));
  x = hlo_binary(n->b, HLO_ADD, x, onnx_widen(n->b, n->in[2]));
  n->out[0] = hlo_convert(n->b, x, hlo_type(n->in[0]));
  return NULL;
}

/* The first half of each row is multiplied by Gelu of the second one. */
status onnx_import_contrib_bias_split_gelu(onnx_node *n) {
  hlo_builder *b = n->b;
  hlo_value x;
  int64_t columns;
  TRY(CONTRIB_ATTRIBUTES(n, NULL));
  TRY(onnx_need_rank(n, 0, "X", 3, 3));
  TRY(contrib_biased(n, "bias", &x));
  TRY(onnx_const_dim(n, onnx_in_shape(n, 0)->dims[2], "the last dimension of X", &columns));
  CHECK_THAT(columns % 2 == 0, STATUS_INVALID_MODEL, "X is %s; its last dimension must be even",
             SHAPE_STR(onnx_dims(n), onnx_in_shape(n, 0)));
  hlo_value first = hlo_slice_dim(b, x, 2, 0, columns / 2), second = hlo_slice_dim(b, x, 2, columns / 2, columns);
  n->out[0] = hlo_convert(b, hlo_binary(b, HLO_MUL, first, onnx_gelu(b, second, false)), hlo_type(n->in[0]));
  return NULL;
}
