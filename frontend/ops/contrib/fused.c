/* fused.c - the importers of operators into which ONNX Runtime's optimiser merges an activation, a bias, a transpose or
 * a factor: FusedMatMul, FusedGemm, forms of convolutions and of Gelu, softmax and dropout of sums. */
#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/contrib/contrib.h"
#include "frontend/ops/math/activation.h"

/* --- forms of Gelu --- */

/* Gelu, and BiasGelu with a second input. */
status onnx_import_contrib_gelu(onnx_node *n) {
  hlo_value x;
  TRY(CONTRIB_ATTRIBUTES(n, NULL));
  TRY(contrib_biased(n, "B", &x));
  n->out[0] = hlo_convert(n->b, onnx_gelu(n->b, x, false), hlo_type(n->in[0]));
  return NULL;
}

status onnx_import_contrib_fast_gelu(onnx_node *n) {
  hlo_value x;
  TRY(CONTRIB_ATTRIBUTES(n, NULL));
  TRY(contrib_biased(n, "bias", &x));
  n->out[0] = hlo_convert(n->b, onnx_gelu(n->b, x, true), hlo_type(n->in[0]));
  return NULL;
}

/* FastGelu of a product and a bias. */
status onnx_import_contrib_gemm_fast_gelu(onnx_node *n) {
  onnx_node product = contrib_as(n, 13, 2, n->in);
  TRY(onnx_import_matmul(&product));
  if (n->b->error) {
    return NULL;
  }
  hlo_value in[] = {n->out[0], n->in[2]};
  onnx_node gelu = contrib_as(n, 1, 2, in);
  return onnx_import_contrib_fast_gelu(&gelu);
}

status onnx_import_contrib_quick_gelu(onnx_node *n) {
  float alpha;
  TRY(CONTRIB_ATTRIBUTES(n, "alpha"));
  TRY(onnx_attr_float(n->proto, "alpha", 1.702f, &alpha));
  hlo_value y = onnx_swish(n->b, onnx_widen(n->b, n->in[0]), alpha);
  n->out[0] = hlo_convert(n->b, y, hlo_type(n->in[0]));
  return NULL;
}

/* --- ScaledSiLU --- */

/* Z * sigmoid(Z), where Z is X times one number: input 1, or the attribute.  Z, the sigmoid and the product are each
 * rounded to the type of X. */
status onnx_import_contrib_scaled_silu(onnx_node *n) {
  hlo_builder *b = n->b;
  dtype type = hlo_type(n->in[0]);
  float alpha;
  TRY(CONTRIB_ATTRIBUTES(n, "alpha"));
  TRY(onnx_attr_float(n->proto, "alpha", 1, &alpha));
  TRY(onnx_need_dims(n, 1, "scale", 0, NULL));
  hlo_value scale = onnx_has_in(n, 1) ? hlo_convert(b, n->in[1], DTYPE_F32) : hlo_scalar(b, DTYPE_F32, alpha);
  hlo_value z = onnx_op_stretched(b, HLO_MUL, hlo_convert(b, n->in[0], DTYPE_F32), scale);
  z = hlo_convert(b, z, type);
  hlo_value gate = hlo_convert(b, hlo_unary(b, HLO_LOGISTIC, hlo_convert(b, z, DTYPE_F32)), type);
  n->out[0] = hlo_binary(b, HLO_MUL, z, gate);
  return NULL;
}

/* --- GatedAdd --- */

/* X + Y * gate, where gate has one number for each row of Y.  As with Mul and Add, the product is rounded to the type
 * before it is added. */
status onnx_import_contrib_gated_add(onnx_node *n) {
  hlo_builder *b = n->b;
  const shape s = *onnx_in_shape(n, 0);
  shape rows = s;
  TRY(CONTRIB_ATTRIBUTES(n, NULL));
  TRY(onnx_need_rank(n, 0, "X", 1, SHAPE_MAX_RANK));
  rows.dims[s.rank - 1] = 1;
  TRY(onnx_need_dims(n, 1, "Y", s.rank, s.dims));
  TRY(onnx_need_dims(n, 2, "gate", s.rank, rows.dims));
  n->out[0] = hlo_binary(b, HLO_ADD, n->in[0], hlo_binary(b, HLO_MUL, n->in[1], hlo_broadcast_to(b, n->in[2], &s)));
  return NULL;
}

/* --- FusedMatMul --- */

/* Returns input k, transposed as the multiplication needs it.  `batch` moves the first dimension before the last one,
 * and `last` then exchanges the last two; neither does anything to a vector. */
static status oriented(const onnx_node *n, uint32_t k, const char *what, bool batch, bool last, hlo_value *out) {
  int rank = onnx_in_shape(n, k)->rank;
  int64_t order[SHAPE_MAX_RANK];
  *out = n->in[k];
  TRY(onnx_need_rank(n, k, what, 1, SHAPE_MAX_RANK));
  if (rank < 2) {
    return NULL;
  }
  for (int d = 0; d < rank; d++) {
    order[d] = d;
  }
  for (int d = 0; batch && d < rank - 1; d++) {
    order[d] = d < rank - 2 ? d + 1 : 0;
  }
  if (last) {
    int64_t first = order[rank - 2];
    order[rank - 2] = order[rank - 1];
    order[rank - 1] = first;
  }
  *out = batch || last ? hlo_transpose(n->b, *out, order) : *out;
  return NULL;
}

/* If B is a vector and A a matrix to be transposed, ONNX Runtime does not transpose A, but reads its memory as if it
 * were transposed already.  This case is refused. */
status onnx_import_contrib_fused_matmul(onnx_node *n) {
  float alpha;
  bool trans_a, trans_b, batch_a, batch_b;
  hlo_value in[2];
  TRY(CONTRIB_ATTRIBUTES(n, "alpha", "transA", "transB", "transBatchA", "transBatchB"));
  TRY(onnx_attr_float(n->proto, "alpha", 1, &alpha));
  TRY(onnx_attr_bool(n->proto, "transA", false, &trans_a));
  TRY(onnx_attr_bool(n->proto, "transB", false, &trans_b));
  TRY(onnx_attr_bool(n->proto, "transBatchA", false, &batch_a));
  TRY(onnx_attr_bool(n->proto, "transBatchB", false, &batch_b));
  CHECK_THAT(hlo_rank(n->in[1]) != 1 || !(trans_a || batch_a) || hlo_rank(n->in[0]) == 1,
             STATUS_UNSUPPORTED | STATUS_ABOUT_SHAPE, "B is %s and A is transposed; this is not supported",
             SHAPE_STR(onnx_dims(n), onnx_in_shape(n, 1)));
  TRY(oriented(n, 0, "A", batch_a, trans_a, &in[0]));
  TRY(oriented(n, 1, "B", batch_b, trans_b, &in[1]));
  if (n->b->error) {
    return NULL;
  }
  onnx_node product = contrib_as(n, 13, 2, in);
  TRY(onnx_import_matmul(&product));
  n->out[0] = onnx_times(n->b, n->out[0], alpha);
  return NULL;
}

/* --- FusedGemm, FusedConv --- */

/* An activation that may be fused, and how many parameters it has. */
typedef struct fused_activation {
  const char *name;
  size_t n_parameters;
} fused_activation;

/* Applies the activation to output 0.  ONNX Runtime has no defaults for the parameters. */
static status activate(onnx_node *n, const fused_activation *known, size_t n_known, const char *name, size_t n_given,
                       const double *p) {
  hlo_builder *b = n->b;
  dtype type = hlo_type(n->in[0]);
  const fused_activation *a = NULL;
  for (size_t k = 0; k < n_known; k++) {
    a = strcmp(known[k].name, name) == 0 ? &known[k] : a;
  }
  CHECK_THAT(a, STATUS_UNSUPPORTED, "activation '%s' is not supported", name);
  CHECK_THAT(n_given == a->n_parameters, STATUS_INVALID_MODEL, "activation '%s' has %zu parameters, but %zu are given",
             name, a->n_parameters, n_given);
  CHECK_THAT(dtype_is_float(type), STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE, "activation '%s' of %s is not supported",
             name, dtype_name(type));
  hlo_value x = onnx_widen(b, n->out[0]), y;
  if (strcmp(name, "Clip") == 0) {
    y = hlo_clamp(b, hlo_scalar(b, hlo_type(x), p[0]), x, hlo_scalar(b, hlo_type(x), p[1]));
  } else {
    CHECK_THAT(onnx_activation(b, name, x, p, &y), STATUS_INTERNAL, "there is no activation '%s'", name);
  }
  n->out[0] = hlo_convert(b, y, type);
  return NULL;
}

/* The parameters of the activation are its attributes in the standard, with the prefix activation_; alpha and beta are
 * those of Gemm. */
status onnx_import_contrib_fused_gemm(onnx_node *n) {
  static const fused_activation known[] = {{"Relu", 0},
                                           {"Tanh", 0},
                                           {"Sigmoid", 0},
                                           {"LeakyRelu", 1},
                                           {"HardSigmoid", 2},
                                           {"Softplus", 0},
                                           {"Elu", 1},
                                           {"Selu", 2},
                                           {"Softsign", 0},
                                           {"Celu", 1},
                                           {"ScaledTanh", 2},
                                           {"ThresholdedRelu", 1},
                                           {"ParametricSoftplus", 2}};
  const char *name;
  double p[2] = {0};
  size_t n_given = 0;
  TRY(CONTRIB_ATTRIBUTES(n, "alpha", "beta", "transA", "transB", "activation", "activation_alpha", "activation_beta",
                         "activation_gamma"));
  TRY(onnx_attr_required(n->proto, "activation"));
  TRY(onnx_attr_string(n->arena, n->proto, "activation", "", &name));
  bool selu = strcmp(name, "Selu") == 0; /* has alpha and gamma */
  const char *names[] = {"activation_alpha", selu ? "activation_gamma" : "activation_beta"};
  const char *other = selu ? "activation_beta" : "activation_gamma";
  CHECK_THAT(!onnx_attr_has(n->proto, other), STATUS_INVALID_MODEL, "activation '%s' has no parameter %s", name, other);
  for (size_t k = 0; k < 2; k++) {
    float v;
    TRY(onnx_attr_float(n->proto, names[k], 0, &v));
    p[k] = v;
    n_given += onnx_attr_has(n->proto, names[k]);
  }
  CHECK_THAT(n_given != 1 || onnx_attr_has(n->proto, names[0]), STATUS_INVALID_MODEL, "%s is given without %s",
             names[1], names[0]);
  onnx_node gemm = contrib_as(n, 13, n->n_in, n->in);
  TRY(onnx_import_gemm(&gemm));
  return n->b->error ? NULL : activate(n, known, sizeof known / sizeof *known, name, n_given, p);
}

static status conv_with_activation(onnx_node *n) {
  static const fused_activation known[] = {{"Relu", 0}, {"Tanh", 0},        {"Sigmoid", 0},  {"LeakyRelu", 1},
                                           {"Clip", 2}, {"HardSigmoid", 2}, {"HardSwish", 0}};
  const char *name;
  const float *values;
  double p[2] = {0};
  size_t n_given;
  TRY(CONTRIB_ATTRIBUTES(n, "auto_pad", "dilations", "group", "kernel_shape", "pads", "strides", "activation",
                         "activation_params"));
  TRY(onnx_attr_string(n->arena, n->proto, "activation", "", &name));
  TRY(onnx_attr_floats(n->proto, "activation_params", &values, &n_given));
  for (size_t k = 0; k < 2 && k < n_given; k++) {
    p[k] = values[k];
  }
  onnx_node conv = contrib_as(n, 11, n->n_in < 3 ? n->n_in : 3, n->in);
  TRY(onnx_import_conv(&conv));
  if (n->b->error) {
    return NULL;
  }
  const shape *y = hlo_shape(n->out[0]);
  TRY(onnx_need_dims(n, 3, "Z", y->rank, y->dims));
  n->out[0] = onnx_has_in(n, 3) ? hlo_binary(n->b, HLO_ADD, n->out[0], n->in[3]) : n->out[0];
  return *name && !n->b->error ? activate(n, known, sizeof known / sizeof *known, name, n_given, p) : NULL;
}

/* Z, which has Y's shape, is added before the activation. */
status onnx_import_contrib_fused_conv(onnx_node *n) { return conv_with_activation(n); }

/* NhwcConv, and NhwcFusedConv with Z and an activation: X, Y and Z have the channels last. */
status onnx_import_contrib_nhwc_conv(onnx_node *n) {
  hlo_value in[4] = {{0}};
  TRY(onnx_need_rank(n, 0, "X", 3, SHAPE_MAX_RANK));
  memcpy(in, n->in, n->n_in * sizeof *in);
  in[0] = contrib_move_channels(n->b, in[0], false);
  in[3] = contrib_move_channels(n->b, in[3], false);
  if (n->b->error) {
    return NULL;
  }
  onnx_node conv = contrib_as(n, 1, n->n_in, in);
  TRY(conv_with_activation(&conv));
  n->out[0] = contrib_move_channels(n->b, n->out[0], true);
  return NULL;
}

/* --- BiasSoftmax, BiasDropout --- */

/* Checks the bias of BiasSoftmax: before the axis it is repeated along the last of these dimensions or, unless `inner`,
 * along the first of them, and it has all other dimensions of the data. */
static status check_softmax_bias(const onnx_node *n, int64_t axis, bool inner) {
  const shape *x = onnx_in_shape(n, 0), *bias = onnx_in_shape(n, 1);
  dim_table *t = onnx_dims(n);
  bool repeats = !inner;
  TRY(onnx_need_rank(n, 1, "bias", 0, x->rank));
  shape want = *bias;
  for (int k = 0; k < x->rank; k++) {
    int at = k - (x->rank - bias->rank);
    bool one = at < 0 || dim_known_equal(t, bias->dims[at], 1);
    if (k < axis && one && !dim_known_equal(t, x->dims[k], 1)) {
      CHECK_THAT(inner || repeats, STATUS_UNSUPPORTED | STATUS_ABOUT_SHAPE,
                 "data is %s and bias %s, which does not go with is_inner_broadcast 0", SHAPE_STR(onnx_dims(n), x),
                 SHAPE_STR(onnx_dims(n), bias));
      repeats = true;
    } else if (!one) {
      CHECK_THAT(!inner || !repeats || k >= axis, STATUS_UNSUPPORTED | STATUS_ABOUT_SHAPE,
                 "data is %s and bias %s, which does not go with is_inner_broadcast 1", SHAPE_STR(onnx_dims(n), x),
                 SHAPE_STR(onnx_dims(n), bias));
      repeats = inner && repeats;
    }
    if (at >= 0 && !(k < axis && one)) {
      want.dims[at] = x->dims[k];
    }
  }
  CHECK_THAT(bias->rank >= x->rank - axis, STATUS_INVALID_MODEL, "data is %s and bias %s", SHAPE_STR(onnx_dims(n), x),
             SHAPE_STR(onnx_dims(n), bias));
  return onnx_need_dims(n, 1, "bias", want.rank, want.dims);
}

/* Softmax runs over all dimensions from the axis on together. */
status onnx_import_contrib_bias_softmax(onnx_node *n) {
  hlo_builder *b = n->b;
  const shape *s = onnx_in_shape(n, 0);
  int64_t axis;
  bool inner;
  TRY(CONTRIB_ATTRIBUTES(n, "axis", "is_inner_broadcast"));
  TRY(onnx_attr_required(n->proto, "is_inner_broadcast"));
  TRY(onnx_attr_bool(n->proto, "is_inner_broadcast", false, &inner));
  TRY(onnx_axis_attr(n, 1, s->rank, &axis));
  TRY(check_softmax_bias(n, axis, inner));
  hlo_value x = onnx_op_stretched(b, HLO_ADD, onnx_widen(b, n->in[0]), onnx_widen(b, n->in[1]));
  n->out[0] = hlo_convert(b, contrib_softmax_from(n, x, axis), hlo_type(n->in[0]));
  return NULL;
}

/* Dropout of data + bias, to which the residual is added. */
status onnx_import_contrib_bias_dropout(onnx_node *n) {
  hlo_builder *b = n->b;
  const shape *s = onnx_in_shape(n, 0);
  TRY(CONTRIB_ATTRIBUTES(n, "seed"));
  TRY(onnx_need_rank(n, 0, "data", 1, SHAPE_MAX_RANK));
  bool row = hlo_rank(n->in[1]) == 1;
  TRY(onnx_need_dims(n, 1, "bias", row ? 1 : s->rank, row ? &s->dims[s->rank - 1] : s->dims));
  TRY(onnx_need_dims(n, 2, "residual", s->rank, s->dims));
  hlo_value x = onnx_op_stretched(b, HLO_ADD, onnx_widen(b, n->in[0]), onnx_widen(b, n->in[1]));
  hlo_value in[] = {x, n->in[3], n->in[4]};
  if (b->error) {
    return NULL;
  }
  onnx_node dropout = contrib_as(n, 13, n->n_in > 4 ? 3 : n->n_in > 3 ? 2 : 1, in);
  TRY(onnx_import_dropout(&dropout));
  hlo_value y = n->out[0];
  y = onnx_has_in(n, 2) ? hlo_binary(b, HLO_ADD, y, onnx_widen(b, n->in[2])) : y;
  n->out[0] = hlo_convert(b, y, hlo_type(n->in[0]));
  return NULL;
}
