/* activation.c - activation functions.  Most are computed in f32 or f64, and the result is rounded to the input's type;
 * Relu, PRelu and Clip are computed in the input's type. */
#include "frontend/ops/math/activation.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/import/import_common.h"

/* Computes an activation function of x, an array of floats; relu also takes integers.  p[] has the values of the
 * attributes that the operator's row in `activations` lists. */
typedef hlo_value activation_fn(hlo_builder *b, hlo_value x, const double *p);

/* Returns x where it is positive or NaN, elsewhere `otherwise`. */
static hlo_value above_zero_or(hlo_builder *b, hlo_value x, hlo_value otherwise) {
  return hlo_select(b, onnx_compare_scalar(b, HLO_LE, x, 0), otherwise, x);
}

static hlo_value elu(hlo_builder *b, hlo_value x, const double *p) {
  return above_zero_or(b, x, onnx_binary_scalar(b, HLO_MUL, hlo_unary(b, HLO_EXPM1, x), p[0]));
}

static hlo_value selu(hlo_builder *b, hlo_value x, const double *p) {
  return onnx_binary_scalar(b, HLO_MUL, elu(b, x, p), p[1]);
}

static hlo_value celu(hlo_builder *b, hlo_value x, const double *p) {
  hlo_value inner = hlo_unary(b, HLO_EXPM1, onnx_binary_scalar(b, HLO_DIV, x, p[0]));
  hlo_value low = onnx_binary_scalar(b, HLO_MIN, onnx_binary_scalar(b, HLO_MUL, inner, p[0]), 0);
  return hlo_binary(b, HLO_ADD, onnx_binary_scalar(b, HLO_MAX, x, 0), low);
}

static hlo_value relu(hlo_builder *b, hlo_value x, const double *p) {
  (void)p;
  return onnx_binary_scalar(b, HLO_MAX, x, 0);
}

static hlo_value leaky_relu(hlo_builder *b, hlo_value x, const double *p) {
  return hlo_select(b, onnx_compare_scalar(b, HLO_LT, x, 0), onnx_binary_scalar(b, HLO_MUL, x, p[0]), x);
}

static hlo_value thresholded_relu(hlo_builder *b, hlo_value x, const double *p) {
  return hlo_select(b, onnx_compare_scalar(b, HLO_GT, x, p[0]), x, hlo_like(b, x, 0));
}

static hlo_value hard_sigmoid(hlo_builder *b, hlo_value x, const double *p) {
  hlo_value line = onnx_binary_scalar(b, HLO_ADD, onnx_binary_scalar(b, HLO_MUL, x, p[0]), p[1]);
  dtype t = hlo_type(x);
  return hlo_clamp(b, hlo_scalar(b, t, 0), line, hlo_scalar(b, t, 1));
}

static hlo_value hard_swish(hlo_builder *b, hlo_value x, const double *p) {
  (void)p;
  return hlo_binary(b, HLO_MUL, x, hard_sigmoid(b, x, (double[]){1.0 / 6, 0.5}));
}

static hlo_value shrink(hlo_builder *b, hlo_value x, const double *p) {
  hlo_value zero = hlo_like(b, x, 0);
  hlo_value low =
      hlo_select(b, onnx_compare_scalar(b, HLO_LT, x, -p[0]), onnx_binary_scalar(b, HLO_ADD, x, p[1]), zero);
  return hlo_select(b, onnx_compare_scalar(b, HLO_GT, x, p[0]), onnx_binary_scalar(b, HLO_SUB, x, p[1]), low);
}

/* Computes log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|)), which does not overflow. */
static hlo_value softplus(hlo_builder *b, hlo_value x, const double *p) {
  (void)p;
  hlo_value tail = hlo_unary(b, HLO_EXP, hlo_unary(b, HLO_NEG, hlo_unary(b, HLO_ABS, x)));
  return hlo_binary(b, HLO_ADD, onnx_binary_scalar(b, HLO_MAX, x, 0), hlo_unary(b, HLO_LOG1P, tail));
}

static hlo_value softsign(hlo_builder *b, hlo_value x, const double *p) {
  (void)p;
  return hlo_binary(b, HLO_DIV, x, onnx_binary_scalar(b, HLO_ADD, hlo_unary(b, HLO_ABS, x), 1));
}

static hlo_value mish(hlo_builder *b, hlo_value x, const double *p) {
  return hlo_binary(b, HLO_MUL, x, hlo_unary(b, HLO_TANH, softplus(b, x, p)));
}

static hlo_value swish(hlo_builder *b, hlo_value x, const double *p) {
  hlo_value scaled = p[0] == 1 ? x : onnx_binary_scalar(b, HLO_MUL, x, p[0]);
  return hlo_binary(b, HLO_MUL, x, hlo_unary(b, HLO_LOGISTIC, scaled));
}

hlo_value onnx_swish(hlo_builder *b, hlo_value x, double alpha) { return swish(b, x, &alpha); }

/* The next three functions compute operators that ONNX has withdrawn. */
static hlo_value affine(hlo_builder *b, hlo_value x, const double *p) {
  x = onnx_binary_scalar(b, HLO_MUL, x, p[0]);
  return p[1] == 0 ? x : onnx_binary_scalar(b, HLO_ADD, x, p[1]);
}

static hlo_value parametric_softplus(hlo_builder *b, hlo_value x, const double *p) {
  return onnx_binary_scalar(b, HLO_MUL, softplus(b, onnx_binary_scalar(b, HLO_MUL, x, p[1]), p), p[0]);
}

static hlo_value scaled_tanh(hlo_builder *b, hlo_value x, const double *p) {
  return onnx_binary_scalar(b, HLO_MUL, hlo_unary(b, HLO_TANH, onnx_binary_scalar(b, HLO_MUL, x, p[1])), p[0]);
}

typedef struct activation {
  const char *name;
  int since; /* the first version of the operator that has these defaults */
  activation_fn *fn;
  struct {
    const char *name;
    float def;
  } attrs[2];
} activation;

/* If an operator has several rows, the last one whose version is not newer than the node's applies. */
static const activation activations[] = {
    {"Affine", 1, affine, {{"alpha", 1}, {"beta", 0}}},
    {"Celu", 1, celu, {{"alpha", 1}}},
    {"Elu", 1, elu, {{"alpha", 1}}},
    {"HardSigmoid", 1, hard_sigmoid, {{"alpha", 0.2f}, {"beta", 0.5f}}},
    {"HardSwish", 1, hard_swish, {{NULL, 0}}},
    {"LeakyRelu", 1, leaky_relu, {{"alpha", 0.01f}}},
    {"Mish", 1, mish, {{NULL, 0}}},
    {"ParametricSoftplus", 1, parametric_softplus, {{"alpha", 1}, {"beta", 1}}},
    {"Relu", 1, relu, {{NULL, 0}}},
    {"Scale", 1, affine, {{"scale", 1}}},
    {"ScaledTanh", 1, scaled_tanh, {{"alpha", 1}, {"beta", 1}}},
    {"Selu", 1, selu, {{"alpha", 1.6732f}, {"gamma", 1.0507f}}},
    {"Selu", 6, selu, {{"alpha", 1.67326319217681884765625f}, {"gamma", 1.05070102214813232421875f}}},
    {"Shrink", 1, shrink, {{"lambd", 0.5f}, {"bias", 0}}},
    {"Softplus", 1, softplus, {{NULL, 0}}},
    {"Softsign", 1, softsign, {{NULL, 0}}},
    {"Swish", 1, swish, {{"alpha", 1}}},
    {"ThresholdedRelu", 1, thresholded_relu, {{"alpha", 1}}},
};

/* Returns the row of a version of an operator, or NULL. */
static const activation *find_activation(const char *name, int since) {
  const activation *found = NULL;
  for (size_t k = 0; k < sizeof activations / sizeof *activations; k++) {
    if (strcmp(activations[k].name, name) == 0 && activations[k].since <= since) {
      found = &activations[k];
    }
  }
  return found;
}

bool onnx_activation(hlo_builder *b, const char *name, hlo_value x, const double p[2], hlo_value *y) {
  const activation *a = find_activation(name, INT_MAX);
  if (strcmp(name, "Tanh") == 0 || strcmp(name, "Sigmoid") == 0) {
    *y = hlo_unary(b, *name == 'T' ? HLO_TANH : HLO_LOGISTIC, x);
    return true;
  }
  if (a) {
    *y = a->fn(b, x, p);
  }
  return a;
}

status onnx_import_activation(onnx_node *n) {
  const activation *a = find_activation(n->proto->op_type, n->since);
  CHECK_THAT(a, STATUS_INTERNAL, "%s has no row in activations", n->proto->op_type);
  double p[2] = {0};
  for (int k = 0; k < 2 && a->attrs[k].name; k++) {
    float v;
    TRY(onnx_attr_float(n->proto, a->attrs[k].name, a->attrs[k].def, &v));
    p[k] = v;
  }
  CHECK_THAT(a->fn != celu || p[0] != 0, STATUS_INVALID_MODEL, "alpha is 0; Celu divides by it");
  hlo_value x = a->fn == relu ? n->in[0] : onnx_widen(n->b, n->in[0]); /* Relu is exact in every type */
  n->out[0] = hlo_convert(n->b, a->fn(n->b, x, p), hlo_type(n->in[0]));
  return NULL;
}

/* Computes swish(A) * B, where A and B have the same shape. */
status onnx_import_swiglu(onnx_node *n) {
  float alpha;
  TRY(onnx_attr_float(n->proto, "alpha", 1, &alpha));
  hlo_value x = n->in[0], y = n->in[1];
  CHECK_THAT(onnx_shapes_equal(n, hlo_shape(x), hlo_shape(y)), STATUS_INVALID_MODEL,
             "A is %s but B is %s; they must be alike", SHAPE_STR(onnx_dims(n), hlo_shape(x)),
             SHAPE_STR(onnx_dims(n), hlo_shape(y)));
  hlo_value gate = swish(n->b, onnx_widen(n->b, x), (double[]){alpha});
  n->out[0] = hlo_convert(n->b, hlo_binary(n->b, HLO_MUL, gate, onnx_widen(n->b, y)), hlo_type(x));
  return NULL;
}

hlo_value onnx_gelu(hlo_builder *b, hlo_value x, bool by_tanh) {
  hlo_value inner;
  if (by_tanh) {
    hlo_value cube = hlo_binary(b, HLO_MUL, hlo_binary(b, HLO_MUL, x, x), x);
    inner = hlo_binary(b, HLO_ADD, x, onnx_binary_scalar(b, HLO_MUL, cube, 0.044715));
    inner = hlo_unary(b, HLO_TANH, onnx_binary_scalar(b, HLO_MUL, inner, M_2_SQRTPI * M_SQRT1_2));
  } else {
    inner = hlo_unary(b, HLO_ERF, onnx_binary_scalar(b, HLO_MUL, x, M_SQRT1_2));
  }
  hlo_value half = onnx_binary_scalar(b, HLO_MUL, x, 0.5);
  return hlo_binary(b, HLO_MUL, half, onnx_binary_scalar(b, HLO_ADD, inner, 1));
}

status onnx_import_gelu(onnx_node *n) {
  const char *form;
  TRY(onnx_attr_string(n->arena, n->proto, "approximate", "none", &form));
  bool by_tanh = strcmp(form, "tanh") == 0;
  CHECK_THAT(by_tanh || strcmp(form, "none") == 0, STATUS_INVALID_MODEL, "approximate is '%s', not none or tanh", form);
  n->out[0] = hlo_convert(n->b, onnx_gelu(n->b, onnx_widen(n->b, n->in[0]), by_tanh), hlo_type(n->in[0]));
  return NULL;
}

/* Returns the slope in a shape that numpy's rule broadcasts to X.  Before version 7 the slope is a single element, or a
 * list of one element for each channel, or has X's shape. */
static hlo_value prelu_slope(onnx_node *n) {
  const shape *x = hlo_shape(n->in[0]), *slope = hlo_shape(n->in[1]);
  dim count = shape_dim_product(onnx_dims(n), slope, 0, slope->rank);
  if (n->since >= 7 || (slope->rank <= 1 && dim_equal(onnx_dims(n), count, 1)) ||
      onnx_has_dims(n, slope, x->rank, x->dims)) {
    return n->in[1];
  }
  dim dims[SHAPE_MAX_RANK];
  for (int k = 0; k < SHAPE_MAX_RANK; k++) {
    dims[k] = 1;
  }
  dims[0] = count;
  return hlo_reshape(n->b, n->in[1], x->rank > 1 ? x->rank - 1 : 1, dims);
}

/* Returns X.  If the slope has a higher rank than X and its additional leading dimensions have extent 1, X gets such
 * dimensions too.  The standard does not define this case; ONNX Runtime and the evaluator in the onnx package do the
 * same. */
static hlo_value prelu_operand(const onnx_node *n, hlo_value slope) {
  const shape *x = hlo_shape(n->in[0]), *s = hlo_shape(slope);
  int more = s->rank - x->rank;
  if (more <= 0 || !dim_equal(onnx_dims(n), shape_dim_product(onnx_dims(n), s, 0, more), 1)) {
    return n->in[0];
  }
  dim dims[SHAPE_MAX_RANK];
  for (int k = 0; k < s->rank; k++) {
    dims[k] = k < more ? 1 : x->dims[k - more];
  }
  return hlo_reshape(n->b, n->in[0], s->rank, dims);
}

status onnx_import_prelu(onnx_node *n) {
  hlo_builder *b = n->b;
  hlo_value slope = prelu_slope(n), x = prelu_operand(n, slope);
  slope = hlo_broadcast_to(b, slope, hlo_shape(x));
  hlo_value below = onnx_compare_scalar(b, HLO_LT, x, 0);
  n->out[0] = hlo_select(b, below, hlo_binary(b, HLO_MUL, x, slope), x);
  return NULL;
}

/* Returns a bound of Clip, or no value (def is NULL) if it is absent.  A bound is an attribute before version 11, and
 * since then an optional scalar input. */
static status clip_bound(onnx_node *n, const char *name, uint32_t k, hlo_value *bound) {
  dtype t = hlo_type(n->in[0]);
  *bound = (hlo_value){0};
  if (n->since >= 11) {
    if (onnx_has_in(n, k)) {
      *bound = onnx_scalar_input(n, k, name);
    }
    return NULL;
  }
  if (onnx_attr_has(n->proto, name)) {
    float v;
    TRY(onnx_attr_float(n->proto, name, 0, &v));
    *bound = hlo_scalar(n->b, t, v);
  }
  return NULL;
}

/* Computes min(max(x, low), high), which is high if low > high. */
status onnx_import_clip(onnx_node *n) {
  hlo_value low, high, x = n->in[0];
  TRY(clip_bound(n, "min", 1, &low));
  TRY(clip_bound(n, "max", 2, &high));
  if (low.def && high.def) {
    x = hlo_clamp(n->b, low, x, high);
  } else if (low.def || high.def) {
    x = hlo_binary_broadcast(n->b, low.def ? HLO_MAX : HLO_MIN, x, low.def ? low : high);
  }
  n->out[0] = x;
  return NULL;
}
