/* training.c - the optimizers of ai.onnx.preview.training.  A node updates any number of tensors once.  Its
 * inputs are the learning rate R, the number T of previous updates, then groups of equal length: the tensors, their
 * gradients, and one group for each kind of optimizer state.  The outputs are the new tensors and states. */
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/import_helpers.h"
#include "frontend/import/symbolic.h"

/* A node's inputs in groups of `count` arrays: group 0 has the tensors to be trained, group 1 their gradients, the
 * others have states. */
typedef struct step {
  onnx_node *n;
  hlo_builder *b;
  uint32_t count, groups;
  float norm; /* norm_coefficient, the factor of the L2 regularisation that is added to the gradients */
} step;

/* Divides the node's inputs into groups and checks their shapes.  The node must have one output for each input except
 * R, T and the gradients. */
static status begin(onnx_node *n, uint32_t groups, step *s) {
  *s = (step){.n = n, .b = n->b, .groups = groups, .count = (n->n_in - 2) / groups};
  CHECK_THAT(s->count > 0 && n->n_in == 2 + s->count * groups, STATUS_INVALID_MODEL,
             "%u inputs follow R and T, which is not a multiple of %u", (unsigned)n->n_in - 2, (unsigned)groups);
  CHECK_THAT(n->n_out == s->count * (groups - 1), STATUS_INVALID_MODEL, "%u outputs instead of %u", (unsigned)n->n_out,
             (unsigned)(s->count * (groups - 1)));
  for (uint32_t k = 0; k < 2; k++) {
    TRY(onnx_need_rank(n, k, k ? "T" : "R", 0, 1));
    TRY(onnx_need_one_element(n, k, k ? "T" : "R"));
  }
  for (uint32_t k = 2; k < n->n_in; k++) {
    uint32_t first = 2 + (k - 2) % s->count;
    bool alike = onnx_has_in(n, k) && onnx_shapes_equal(n, onnx_in_shape(n, k), onnx_in_shape(n, first));
    CHECK_THAT(alike, STATUS_INVALID_MODEL, "input %u does not have the shape of input %u, to which it belongs",
               (unsigned)k, (unsigned)first);
  }
  return onnx_attr_float(n->proto, "norm_coefficient", 0, &s->norm);
}

static hlo_value tensor(const step *s, uint32_t group, uint32_t k) { return s->n->in[2 + group * s->count + k]; }

static void set(const step *s, uint32_t group, uint32_t k, hlo_value v) { s->n->out[group * s->count + k] = v; }

/* Returns input k (0: R, the learning rate; 1: T, the number of updates) as a scalar of x's element type. */
static hlo_value number(const step *s, uint32_t k, hlo_value x) {
  return hlo_convert(s->b, hlo_reshape(s->b, s->n->in[k], 0, NULL), hlo_type(x));
}

/* Broadcasts a scalar to x's dimensions. */
static hlo_value spread(const step *s, hlo_value scalar, hlo_value x) {
  return hlo_broadcast_to(s->b, scalar, hlo_shape(x));
}

static hlo_value add(const step *s, hlo_value x, hlo_value y) { return hlo_binary(s->b, HLO_ADD, x, y); }
static hlo_value sub(const step *s, hlo_value x, hlo_value y) { return hlo_binary(s->b, HLO_SUB, x, y); }
static hlo_value mul(const step *s, hlo_value x, hlo_value y) { return hlo_binary(s->b, HLO_MUL, x, y); }
static hlo_value divide(const step *s, hlo_value x, hlo_value y) { return hlo_binary(s->b, HLO_DIV, x, y); }

static hlo_value gradient(const step *s, uint32_t k) {
  return add(s, onnx_times(s->b, tensor(s, 0, k), s->norm), tensor(s, 1, k));
}

/* Returns the scalar x if T > 0, that is, if there were previous updates, otherwise the scalar y. */
static hlo_value if_updated(const step *s, hlo_value x, hlo_value y) {
  hlo_value t = hlo_reshape(s->b, s->n->in[1], 0, NULL);
  return hlo_select(s->b, hlo_compare(s->b, HLO_GT, t, hlo_like(s->b, t, 0)), x, y);
}

status onnx_import_adagrad(onnx_node *n) {
  step s;
  float decay, epsilon;
  TRY(begin(n, 3, &s));
  TRY(onnx_attr_float(n->proto, "decay_factor", 0, &decay));
  TRY(onnx_attr_float(n->proto, "epsilon", 1e-6f, &epsilon));
  for (uint32_t k = 0; k < s.count; k++) {
    hlo_value x = tensor(&s, 0, k), g = gradient(&s, k);
    hlo_value rate = divide(&s, number(&s, 0, x), onnx_plus(s.b, onnx_times(s.b, number(&s, 1, x), decay), 1));
    hlo_value squares = add(&s, tensor(&s, 2, k), mul(&s, g, g));
    hlo_value root = onnx_plus(s.b, hlo_unary(s.b, HLO_SQRT, squares), epsilon);
    set(&s, 0, k, sub(&s, x, divide(&s, mul(&s, spread(&s, rate, x), g), root)));
    set(&s, 1, k, squares);
  }
  return NULL;
}

/* Returns the learning rate times sqrt(1 - beta^T) / (1 - alpha^T), which corrects the bias of moving averages that
 * started at 0. */
static hlo_value adam_rate(const step *s, hlo_value x, float alpha, float beta) {
  hlo_builder *b = s->b;
  hlo_value rate = number(s, 0, x), t = number(s, 1, x), one = hlo_like(b, t, 1);
  hlo_value second = sub(s, one, hlo_binary(b, HLO_POW, hlo_like(b, t, beta), t));
  hlo_value first = sub(s, one, hlo_binary(b, HLO_POW, hlo_like(b, t, alpha), t));
  return if_updated(s, divide(s, mul(s, rate, hlo_unary(b, HLO_SQRT, second)), first), rate);
}

/* Returns factor * x + (1 - factor) * y. */
static hlo_value average(const step *s, float factor, hlo_value x, hlo_value y) {
  return add(s, onnx_times(s->b, x, factor), onnx_times(s->b, y, 1 - (double)factor));
}

status onnx_import_adam(onnx_node *n) {
  step s;
  float alpha, beta, epsilon, after;
  TRY(begin(n, 4, &s));
  TRY(onnx_attr_float(n->proto, "alpha", 0.9f, &alpha));
  TRY(onnx_attr_float(n->proto, "beta", 0.999f, &beta));
  TRY(onnx_attr_float(n->proto, "epsilon", 1e-6f, &epsilon));
  TRY(onnx_attr_float(n->proto, "norm_coefficient_post", 0, &after));
  for (uint32_t k = 0; k < s.count; k++) {
    hlo_value x = tensor(&s, 0, k), g = gradient(&s, k);
    hlo_value first = average(&s, alpha, tensor(&s, 2, k), g),
              second = average(&s, beta, tensor(&s, 3, k), mul(&s, g, g));
    hlo_value root = onnx_plus(s.b, hlo_unary(s.b, HLO_SQRT, second), epsilon);
    hlo_value rate = spread(&s, adam_rate(&s, x, alpha, beta), x);
    set(&s, 0, k, onnx_times(s.b, sub(&s, x, divide(&s, mul(&s, rate, first), root)), 1 - (double)after));
    set(&s, 1, k, first);
    set(&s, 2, k, second);
  }
  return NULL;
}

status onnx_import_momentum(onnx_node *n) {
  step s;
  float alpha, beta;
  const char *mode;
  TRY(begin(n, 3, &s));
  TRY(onnx_attr_required(n->proto, "alpha"));
  TRY(onnx_attr_required(n->proto, "beta"));
  TRY(onnx_attr_float(n->proto, "alpha", 0, &alpha));
  TRY(onnx_attr_float(n->proto, "beta", 0, &beta));
  TRY(onnx_attr_string(n->arena, n->proto, "mode", NULL, &mode));
  bool nesterov = mode && strcmp(mode, "nesterov") == 0;
  CHECK_THAT(nesterov || (mode && strcmp(mode, "standard") == 0), STATUS_INVALID_MODEL,
             "mode is '%s' instead of nesterov or standard", mode ? mode : "");
  for (uint32_t k = 0; k < s.count; k++) {
    hlo_value x = tensor(&s, 0, k), g = gradient(&s, k), rate = number(&s, 0, x);
    hlo_value fresh = if_updated(&s, hlo_like(s.b, rate, beta), hlo_like(s.b, rate, 1));
    hlo_value v = add(&s, onnx_times(s.b, tensor(&s, 2, k), alpha), mul(&s, spread(&s, fresh, x), g));
    hlo_value direction = nesterov ? add(&s, g, onnx_times(s.b, v, alpha)) : v;
    set(&s, 0, k, sub(&s, x, mul(&s, spread(&s, rate, x), direction)));
    set(&s, 1, k, v);
  }
  return NULL;
}
