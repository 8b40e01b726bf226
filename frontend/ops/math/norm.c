/* norm.c - batch, instance, group, layer, RMS and local response normalisation.  For f16 and bf16, statistics are
 * computed in f32, unless stash_type states another type. */
#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/import_helpers.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/math/norm.h"

typedef struct dim_list {
  uint32_t n;
  int64_t dims[SHAPE_MAX_RANK];
} dim_list;

/* Lists the dimensions from `from` to rank - 1, without `except`, which may be -1. */
static dim_list dims_from(int from, int rank, int except) {
  dim_list l = {0};
  for (int k = from; k < rank; k++) {
    if (k != except) {
      l.dims[l.n++] = k;
    }
  }
  return l;
}

hlo_value onnx_mean_square(hlo_builder *b, hlo_value x, uint32_t n, const int64_t *over) {
  return onnx_mean_keep(b, hlo_binary(b, HLO_MUL, x, x), n, over);
}

onnx_moments onnx_moments_over(hlo_builder *b, hlo_value x, uint32_t n, const int64_t *over) {
  onnx_moments m;
  m.mean = onnx_mean_keep(b, x, n, over);
  m.centered = onnx_op_stretched(b, HLO_SUB, x, m.mean);
  m.variance = onnx_mean_square(b, m.centered, n, over);
  return m;
}

hlo_value onnx_inverse_deviation(hlo_builder *b, hlo_value variance, float epsilon) {
  return hlo_unary(b, HLO_RSQRT, onnx_plus(b, variance, epsilon));
}

/* Returns (x - mean) / sqrt(variance + epsilon), with the statistics over the listed dimensions, in x's type. */
static hlo_value normalized(hlo_builder *b, hlo_value x, const dim_list *over, float epsilon) {
  onnx_moments m = onnx_moments_over(b, x, over->n, over->dims);
  return onnx_op_stretched(b, HLO_MUL, m.centered, onnx_inverse_deviation(b, m.variance, epsilon));
}

static status read_epsilon(const onnx_node *n, float *epsilon) {
  return onnx_attr_float(n->proto, "epsilon", 1e-5f, epsilon);
}

/* Reads stash_type, the type in which the standard's first stage (the normalisation before scale and bias) is computed.
 */
static status read_stash(const onnx_node *n, dtype *stash) {
  TRY(onnx_dtype_attr(n, "stash_type", DTYPE_F32, stash));
  CHECK_THAT(dtype_is_float(*stash) && dtype_bytes(*stash) > 1, STATUS_INVALID_MODEL,
             "stash_type is %s; it must be a floating-point type", dtype_name(*stash));
  return NULL;
}

/* Returns y * scale + bias in y's type, where scale is input k and bias is input k + 1; both vary along dimension 1. */
static hlo_value scale_channels(const onnx_node *n, hlo_value y, uint32_t k) {
  hlo_builder *b = n->b;
  const shape *s = hlo_shape(y);
  hlo_value scale = onnx_along(b, hlo_convert(b, n->in[k], hlo_type(y)), s, 1);
  hlo_value bias = onnx_along(b, hlo_convert(b, n->in[k + 1], hlo_type(y)), s, 1);
  return hlo_binary(b, HLO_ADD, hlo_binary(b, HLO_MUL, y, scale), bias);
}

/* --- batch normalisation --- */

typedef struct batch_norm {
  float epsilon, momentum;
  bool training;
  shape x;                    /* X's shape, with the type in which to compute */
  int n_feature;              /* the rank of the parameters */
  int64_t at[SHAPE_MAX_RANK]; /* for each dimension of the parameters: the dimension of X to which it corresponds */
  dim_list over;              /* the dimensions of X over which mean and variance are computed */
} batch_norm;

/* Finds out whether the node is in training mode.  Since version 14 the attribute training_mode states it.  In older
 * versions a node is in training mode if it has one of the outputs that exist in training only.  Before version 7 it
 * also is if the attribute is_test is 0, which is the default. */
static status read_training(const onnx_node *n, bool *out) {
  bool test = true;
  *out = false;
  if (n->since >= 14) {
    TRY(onnx_attr_bool(n->proto, "training_mode", false, out));
  } else if (n->since < 7) {
    TRY(onnx_attr_bool(n->proto, "is_test", false, &test));
  }
  for (uint32_t k = 1; k < n->n_out; k++) {
    CHECK_THAT(n->since < 14 || *out || !onnx_has_out(n, k), STATUS_INVALID_MODEL,
               "output %" PRIu32 " exists in training mode only", k);
    test &= !onnx_has_out(n, k);
  }
  *out = n->since >= 14 ? *out : !test;
  return NULL;
}

static status read_batch_norm(const onnx_node *n, batch_norm *p) {
  static const char *const names[] = {"X", "scale", "B", "mean", "var"};
  bool spatial = true;
  const shape *x = onnx_in_shape(n, 0);
  TRY(onnx_need_rank(n, 0, "X", 1, SHAPE_MAX_RANK));
  TRY(read_epsilon(n, &p->epsilon));
  TRY(onnx_attr_float(n->proto, "momentum", 0.9f, &p->momentum));
  TRY(read_training(n, &p->training));
  if (n->since < 9) {
    TRY(onnx_attr_bool(n->proto, "spatial", true, &spatial));
  }
  p->x = shape_with_type(*x, dtype_compute_type((dtype)x->type));
  p->n_feature = x->rank == 1 ? 0 : spatial ? 1 : x->rank - 1;
  dim want[SHAPE_MAX_RANK] = {1};
  for (int k = 0; k < p->n_feature; k++) {
    p->at[k] = 1 + k;
    want[k] = x->dims[1 + k];
  }
  p->over = spatial ? dims_from(0, x->rank, 1) : dims_from(0, 1, -1);
  for (uint32_t k = 1; k < 5; k++) {
    TRY(onnx_need_dims(n, k, names[k], x->rank == 1 ? 1 : p->n_feature, want));
  }
  return NULL;
}

/* Returns input k, a parameter, converted to the type in which the normalisation is computed. */
static hlo_value bn_parameter(const onnx_node *n, const batch_norm *p, uint32_t k) {
  hlo_value v = hlo_convert(n->b, n->in[k], (dtype)p->x.type);
  return p->n_feature ? v : hlo_reshape(n->b, v, 0, NULL);
}

/* Broadcasts a parameter to X's shape. */
static hlo_value bn_stretch(const onnx_node *n, const batch_norm *p, hlo_value v) {
  return hlo_broadcast(n->b, v, p->x, p->at);
}

/* Returns the new running mean or variance: input k * momentum + current * (1 - momentum). */
static hlo_value bn_running(const onnx_node *n, const batch_norm *p, uint32_t k, hlo_value current) {
  hlo_builder *b = n->b;
  hlo_value old = hlo_convert(b, n->in[k], (dtype)p->x.type);
  current = hlo_reshape(b, current, hlo_rank(old), hlo_shape(old)->dims);
  hlo_value y =
      hlo_binary(b, HLO_ADD, onnx_times(b, old, p->momentum), onnx_times(b, current, 1.0 - (double)p->momentum));
  return hlo_convert(b, y, hlo_type(n->in[k]));
}

/* Sets the outputs that exist in training mode only: the running mean and variance and, before version 14, the mean and
 * variance of the batch. */
static void bn_train_outputs(onnx_node *n, const batch_norm *p, hlo_value mean, hlo_value variance) {
  for (uint32_t k = 1; k < 5; k++) {
    hlo_value current = k % 2 == 1 ? mean : variance, like = n->in[k % 2 == 1 ? 3 : 4];
    if (k < n->n_out && onnx_has_out(n, k)) {
      n->out[k] =
          k < 3 ? bn_running(n, p, k + 2, current)
                : hlo_convert(n->b, hlo_reshape(n->b, current, hlo_rank(like), hlo_shape(like)->dims), hlo_type(like));
    }
  }
}

/* Computes Y = X * a + (B - mean * a) with a = scale / sqrt(var + epsilon), so that a and B - mean * a fold to
 * constants if the parameters are constants. */
status onnx_import_batch_normalization(onnx_node *n) {
  hlo_builder *b = n->b;
  batch_norm p;
  TRY(read_batch_norm(n, &p));
  hlo_value x = onnx_widen(b, n->in[0]), mean, variance;
  if (p.training) {
    onnx_moments m = onnx_moments_over(b, x, p.over.n, p.over.dims);
    mean = hlo_reshape(b, m.mean, p.n_feature, p.x.dims + 1);
    variance = hlo_reshape(b, m.variance, p.n_feature, p.x.dims + 1);
    bn_train_outputs(n, &p, mean, variance);
  } else {
    mean = bn_parameter(n, &p, 3);
    variance = bn_parameter(n, &p, 4);
  }
  hlo_value deviation = hlo_unary(b, HLO_SQRT, onnx_plus(b, variance, p.epsilon));
  hlo_value factor = hlo_binary(b, HLO_DIV, bn_parameter(n, &p, 1), deviation);
  hlo_value term = hlo_binary(b, HLO_SUB, bn_parameter(n, &p, 2), hlo_binary(b, HLO_MUL, mean, factor));
  hlo_value y = hlo_binary(b, HLO_MUL, x, bn_stretch(n, &p, factor));
  y = hlo_binary(b, HLO_ADD, y, bn_stretch(n, &p, term));
  n->out[0] = hlo_convert(b, y, hlo_type(n->in[0]));
  return NULL;
}

/* --- instance and group normalisation --- */

status onnx_import_instance_normalization(onnx_node *n) {
  hlo_builder *b = n->b;
  const shape *x = onnx_in_shape(n, 0);
  float epsilon;
  TRY(onnx_need_rank(n, 0, "input", 3, SHAPE_MAX_RANK));
  TRY(onnx_need_dims(n, 1, "scale", 1, &x->dims[1]));
  TRY(onnx_need_dims(n, 2, "B", 1, &x->dims[1]));
  TRY(read_epsilon(n, &epsilon));
  dim_list over = dims_from(2, x->rank, -1);
  hlo_value y = normalized(b, onnx_widen(b, n->in[0]), &over, epsilon);
  n->out[0] = hlo_convert(b, scale_channels(n, y, 1), hlo_type(n->in[0]));
  return NULL;
}

/* Scale and bias have one element for each group before version 21, since then one for each channel. */
status onnx_import_group_normalization(onnx_node *n) {
  hlo_builder *b = n->b;
  const shape *x = onnx_in_shape(n, 0);
  float epsilon;
  int64_t groups;
  dtype stash = dtype_compute_type(hlo_type(n->in[0]));
  TRY(onnx_need_rank(n, 0, "X", 2, SHAPE_MAX_RANK));
  TRY(read_epsilon(n, &epsilon));
  TRY(onnx_attr_required(n->proto, "num_groups"));
  TRY(onnx_attr_int(n->proto, "num_groups", 0, &groups));
  if (n->since >= 21) {
    TRY(read_stash(n, &stash));
  }
  CHECK_THAT(groups >= 1 && dim_pin(onnx_dims(n), x->dims[1]) % groups == 0, STATUS_INVALID_MODEL,
             "num_groups is %" PRId64 "; it must divide the %" PRId64 " channels of X", groups, x->dims[1]);
  bool by_group = n->since < 21;
  dim each = by_group ? groups : x->dims[1];
  TRY(onnx_need_dims(n, 1, "scale", 1, &each));
  TRY(onnx_need_dims(n, 2, "bias", 1, &each));
  shape grouped = shape_make(stash, 3, (dim[]){x->dims[0], groups, 0});
  dim inner = dim_mul(onnx_dims(n), x->dims[1] / groups, shape_dim_product(onnx_dims(n), x, 2, x->rank));
  grouped.dims[2] = inner;
  dim_list over = {.n = 1, .dims = {2}};
  hlo_value y = hlo_reshape(b, hlo_convert(b, n->in[0], stash), 3, grouped.dims);
  y = normalized(b, y, &over, epsilon);
  if (by_group) {
    y = scale_channels(n, y, 1);
  }
  y = hlo_reshape(b, y, x->rank, x->dims);
  n->out[0] = hlo_convert(b, by_group ? y : scale_channels(n, y, 1), hlo_type(n->in[0]));
  return NULL;
}

/* --- layer and RMS normalisation --- */

typedef struct row_norm {
  hlo_value x; /* X, converted to stash_type */
  dim_list over;
  float epsilon;
} row_norm;

static status read_row_norm(onnx_node *n, row_norm *out) {
  int64_t axis;
  dtype stash;
  TRY(onnx_need_rank(n, 0, "X", 1, SHAPE_MAX_RANK));
  TRY(onnx_axis_attr(n, -1, onnx_in_shape(n, 0)->rank, &axis));
  TRY(read_epsilon(n, &out->epsilon));
  TRY(read_stash(n, &stash));
  out->over = dims_from((int)axis, hlo_rank(n->in[0]), -1);
  out->x = hlo_convert(n->b, n->in[0], stash);
  return NULL;
}

status onnx_import_layer_normalization(onnx_node *n) {
  hlo_builder *b = n->b;
  row_norm r;
  TRY(read_row_norm(n, &r));
  dtype type = hlo_type(n->in[0]);
  onnx_moments m = onnx_moments_over(b, r.x, r.over.n, r.over.dims);
  hlo_value inverse = onnx_inverse_deviation(b, m.variance, r.epsilon);
  hlo_value y = hlo_convert(b, onnx_op_stretched(b, HLO_MUL, m.centered, inverse), type);
  y = onnx_op_stretched(b, HLO_MUL, y, n->in[1]);
  n->out[0] = onnx_has_in(n, 2) ? onnx_op_stretched(b, HLO_ADD, y, n->in[2]) : y;
  n->out[1] = m.mean;
  n->out[2] = inverse;
  return NULL;
}

status onnx_import_rms_normalization(onnx_node *n) {
  hlo_builder *b = n->b;
  row_norm r;
  TRY(read_row_norm(n, &r));
  hlo_value mean = onnx_mean_square(b, r.x, r.over.n, r.over.dims);
  hlo_value y = onnx_op_stretched(b, HLO_MUL, r.x, onnx_inverse_deviation(b, mean, r.epsilon));
  hlo_value scale = n->in[1]; /* its type, which is that of the result, may differ from X's */
  n->out[0] = onnx_op_stretched(b, HLO_MUL, hlo_convert(b, y, hlo_type(scale)), scale);
  return NULL;
}

/* --- local response normalisation --- */

/* Computes Y = X / (bias + alpha / size * s)^beta, where s is the sum of the squares of the `size` nearest channels. */
status onnx_import_lrn(onnx_node *n) {
  hlo_builder *b = n->b;
  float alpha, beta, bias;
  int64_t size;
  int rank = onnx_in_shape(n, 0)->rank;
  TRY(onnx_need_rank(n, 0, "X", 2, SHAPE_MAX_RANK));
  TRY(onnx_attr_float(n->proto, "alpha", 1e-4f, &alpha));
  TRY(onnx_attr_float(n->proto, "beta", 0.75f, &beta));
  TRY(onnx_attr_float(n->proto, "bias", 1, &bias));
  TRY(onnx_attr_required(n->proto, "size"));
  TRY(onnx_attr_int_in(n->proto, "size", 0, 1, ONNX_WINDOW_MAX, &size));
  int64_t window[SHAPE_MAX_RANK], low[SHAPE_MAX_RANK] = {0}, high[SHAPE_MAX_RANK] = {0};
  for (int k = 0; k < rank; k++) {
    window[k] = 1;
  }
  window[1] = size;
  low[1] = (size - 1) / 2;
  high[1] = size - 1 - low[1];
  hlo_window w = {.window = window, .low = low, .high = high};
  hlo_value x = onnx_widen(b, n->in[0]);
  hlo_value sum = hlo_reduce_window(b, hlo_binary(b, HLO_MUL, x, x), HLO_REDUCE_ADD, &w);
  hlo_value base = onnx_plus(b, onnx_times(b, sum, (double)alpha / (double)size), bias);
  hlo_value y = hlo_binary(b, HLO_DIV, x, hlo_binary(b, HLO_POW, base, hlo_like(b, base, beta)));
  n->out[0] = hlo_convert(b, y, hlo_type(n->in[0]));
  return NULL;
}
