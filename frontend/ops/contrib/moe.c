/* moe.c - the importers of MoE and QMoE, mixtures of experts: for each token, k of several networks of two layers are
 * computed, and their results are added up with weights.
 *
 * Each expert is a branch that runs only if some token needs it.  The branch computes all tokens; those that do not
 * need the expert have the weight 0. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/contrib/bits.h"
#include "frontend/ops/math/activation.h"

enum { INPUT, ROUTER_PROBS };

/* The numbers of a layer's inputs; scales and zero_points are 0 if the weights are floats. */
typedef struct layer {
  uint32_t weights, scales, zero_points, bias;
  const char *name;
  int64_t outputs, inputs; /* the rows and columns of an expert's matrix */
  contrib_bits bits;
} layer;

typedef enum moe_activation { RELU, GELU, SILU, SWIGLU, IDENTITY } moe_activation;

typedef struct moe {
  dim tokens;
  int64_t experts, chosen, hidden, inner;
  int activation;
  float alpha, beta, limit; /* of swiglu */
  bool normalize;
  float least;      /* smaller weights count as 0 */
  hlo_value mixing; /* f32[tokens, experts]: what weighs the results of the chosen experts; def is NULL if that is the
                       softmax of the chosen router_probs */
  layer first, second;
} moe;

/* --- checks --- */

/* Reads the attributes that both operators have. */
static status read_attributes(const onnx_node *n, moe *m) {
  static const char *const activations[] = {"relu", "gelu", "silu", "swiglu", "identity"};
  int64_t fusion;
  bool sparse;
  TRY(onnx_attr_int_in(n->proto, "k", 1, 1, INT32_MAX, &m->chosen));
  TRY(onnx_choose(n, "activation_type", "relu", activations, 5, &m->activation));
  TRY(onnx_attr_float(n->proto, "activation_alpha", 1, &m->alpha));
  TRY(onnx_attr_float(n->proto, "activation_beta", 0, &m->beta));
  TRY(onnx_attr_float(n->proto, "swiglu_limit", INFINITY, &m->limit));
  TRY(onnx_attr_bool(n->proto, "normalize_routing_weights", false, &m->normalize));
  TRY(onnx_attr_bool(n->proto, "use_sparse_mixer", false, &sparse));
  TRY(onnx_attr_int(n->proto, "swiglu_fusion", 0, &fusion));
  CHECK_THAT(!sparse, STATUS_UNSUPPORTED, "use_sparse_mixer is not supported");
  CHECK_THAT(m->activation != SWIGLU || fusion == 1, STATUS_UNSUPPORTED,
             "swiglu_fusion %" PRId64 " is not supported; it must be 1", fusion);
  return NULL;
}

/* Reads the sizes.  `per_byte` is how many weights an element of the input of weights holds. */
static status read_sizes(const onnx_node *n, moe *m, int64_t per_byte) {
  TRY(contrib_need_input(n, m->second.weights, m->second.name));
  const shape *x = onnx_in_shape(n, INPUT), *w = onnx_in_shape(n, m->second.weights);
  dim_table *t = onnx_dims(n);
  TRY(onnx_need_rank(n, INPUT, "input", 2, 3));
  TRY(onnx_need_rank(n, ROUTER_PROBS, "router_probs", 2, 2));
  TRY(onnx_need_rank(n, m->second.weights, m->second.name, 3, 3));
  m->tokens = x->rank == 2 ? x->dims[0] : dim_mul(t, x->dims[0], x->dims[1]);
  TRY(onnx_const_dim(n, x->dims[x->rank - 1], "the last dimension of input", &m->hidden));
  TRY(onnx_const_dim(n, onnx_in_shape(n, ROUTER_PROBS)->dims[1], "the number of experts", &m->experts));
  TRY(onnx_const_dim(n, w->dims[2], "the last dimension of fc2_experts_weights", &m->inner));
  m->inner *= per_byte;
  TRY(onnx_need_dims(n, ROUTER_PROBS, "router_probs", 2, (dim[]){m->tokens, m->experts}));
  CHECK_THAT(m->chosen <= m->experts, STATUS_INVALID_MODEL, "k is %" PRId64 ", but there are %" PRId64 " experts",
             m->chosen, m->experts);
  m->first.inputs = m->second.outputs = m->hidden;
  m->first.outputs = m->activation == SWIGLU ? 2 * m->inner : m->inner;
  m->second.inputs = m->inner;
  for (int k = 0; k < 2; k++) {
    const layer *l = k == 0 ? &m->first : &m->second;
    CHECK_THAT(l->inputs % per_byte == 0, STATUS_INVALID_MODEL, "%" PRId64 " weights are no whole bytes", l->inputs);
    TRY(onnx_need_dims(n, l->weights, l->name, 3, (dim[]){m->experts, l->outputs, l->inputs / per_byte}));
    TRY(onnx_need_dims(n, l->bias, "an experts_bias", 2, (dim[]){m->experts, l->outputs}));
  }
  return NULL;
}

/* Reads the blocks of a layer whose weights are small integers, and checks its scales and zero points. */
static status read_blocks(const onnx_node *n, const moe *m, int64_t bits, int64_t block, layer *l) {
  bool blocks = block > 0;
  int64_t size = blocks ? block : l->inputs, count = size ? l->inputs / size : 0, each = 8 / bits;
  CHECK_THAT(count * size == l->inputs, STATUS_INVALID_MODEL, "block_size %" PRId64 " does not divide %" PRId64, size,
             l->inputs);
  l->bits = (contrib_bits){.columns = l->outputs, .sums = l->inputs, .bits = bits, .block = size, .n_blocks = count};
  dim rows = blocks ? l->outputs : (l->outputs + each - 1) / each;
  TRY(contrib_need_input(n, l->scales, "scales"));
  TRY(onnx_need_dims(n, l->scales, "the scales", blocks ? 3 : 2, (dim[]){m->experts, l->outputs, count}));
  return onnx_need_dims(n, l->zero_points, "the zero points", blocks ? 3 : 2,
                        (dim[]){m->experts, rows, (count + each - 1) / each});
}

/* --- experts --- */

/* Returns what input k, a constant whose first dimension is that of the experts, has for expert e. */
static status of_expert(const onnx_node *n, uint32_t k, const char *what, int64_t e, literal *out) {
  const literal *all;
  TRY(onnx_const_literal(n, k, what, &all));
  shape s = all->shape;
  memmove(s.dims, s.dims + 1, (size_t)(s.rank - 1) * sizeof *s.dims);
  s.rank--;
  *out = literal_make(s, (const char *)all->data + e * shape_bytes(&s));
  return NULL;
}

static status zero_points(const onnx_node *n, const layer *l, int64_t e, hlo_value *out) {
  const contrib_bits *w = &l->bits;
  literal packed;
  if (!onnx_has_in(n, l->zero_points)) {
    *out = contrib_middle(n->b, w->bits);
    return NULL;
  }
  TRY(of_expert(n, l->zero_points, "the zero points", e, &packed));
  bool blocks = packed.shape.rank == 2;
  TRY(contrib_unpack(n, w->bits, &packed, "the zero points", blocks ? w->columns : 1, blocks ? w->n_blocks : w->columns,
                     out));
  *out = hlo_reshape(n->b, hlo_convert(n->b, *out, DTYPE_S32), 2, (dim[]){w->columns, w->n_blocks});
  return NULL;
}

/* Returns the weights of expert e, f32[outputs, inputs]. */
static status weights(const onnx_node *n, const layer *l, int64_t e, hlo_value *out) {
  literal w, s;
  hlo_value zero;
  TRY(of_expert(n, l->weights, l->name, e, &w));
  if (!l->scales) {
    *out = hlo_convert(n->b, hlo_constant(n->b, w), DTYPE_F32);
    return NULL;
  }
  TRY(of_expert(n, l->scales, "the scales", e, &s));
  TRY(zero_points(n, l, e, &zero));
  hlo_value scale = hlo_reshape(n->b, hlo_constant(n->b, s), 2, (dim[]){l->bits.columns, l->bits.n_blocks});
  return contrib_dequantize(n, &l->bits, &w, scale, zero, out);
}

/* Replaces x, f32[tokens, inputs], by the outputs of layer l of expert e. */
static status apply(const onnx_node *n, const layer *l, int64_t e, hlo_value *x) {
  static const int64_t last = 1;
  hlo_builder *b = n->b;
  hlo_dot_dims d = {.n_contract = 1, .lhs_contract = &last, .rhs_contract = &last};
  hlo_value w;
  literal bias;
  TRY(weights(n, l, e, &w));
  *x = hlo_dot(b, *x, w, &d);
  if (onnx_has_in(n, l->bias)) {
    TRY(of_expert(n, l->bias, "the bias", e, &bias));
    *x = onnx_op_stretched(b, HLO_ADD, *x, hlo_convert(b, hlo_constant(b, bias), DTYPE_F32));
  }
  return NULL;
}

/* Returns swiglu of x [tokens, 2 * inner], in which gates and linear parts alternate. */
static hlo_value swiglu(hlo_builder *b, const moe *m, hlo_value x) {
  x = hlo_reshape(b, x, 3, (dim[]){m->tokens, m->inner, 2});
  hlo_value gate = onnx_pick(b, x, 2, 0), linear = onnx_pick(b, x, 2, 1);
  if (m->limit < INFINITY) {
    gate = onnx_binary_scalar(b, HLO_MIN, gate, m->limit);
    linear = onnx_binary_scalar(b, HLO_MIN, onnx_binary_scalar(b, HLO_MAX, linear, -m->limit), m->limit);
  }
  return hlo_binary(b, HLO_MUL, onnx_swish(b, gate, m->alpha), onnx_plus(b, linear, m->beta));
}

static hlo_value activate(hlo_builder *b, const moe *m, hlo_value x) {
  switch ((moe_activation)m->activation) {
    case RELU: return onnx_binary_scalar(b, HLO_MAX, x, 0);
    case GELU: return onnx_gelu(b, x, true);
    case SILU: return onnx_swish(b, x, 1);
    case SWIGLU: return swiglu(b, m, x);
    case IDENTITY: break;
  }
  return x;
}

/* Adds expert e's results for x, with the weights in `share`, f32[tokens, 1], to *sum. */
static status add_expert(const onnx_node *n, const moe *m, int64_t e, hlo_value x, hlo_value share, hlo_value *sum) {
  static const int64_t both[] = {0, 1};
  hlo_value args[] = {*sum, x, share}, in[2][3];
  hlo_computation *branches[2];
  if (n->b->error) {
    return NULL;
  }
  for (int k = 0; k < 2; k++) { /* the first branch computes the expert, the second one returns the sum as it is */
    hlo_builder b = hlo_builder_inner(n->b, k == 0 ? "expert" : "no_expert");
    onnx_node inner = *n;
    inner.b = &b;
    branches[k] = b.computation;
    hlo_parameters_like(b.computation, 3, args, in[k]);
    hlo_value y = in[k][1];
    if (k == 0) {
      TRY(apply(&inner, &m->first, e, &y));
      y = activate(&b, m, y);
      TRY(apply(&inner, &m->second, e, &y));
      y = hlo_binary(&b, HLO_ADD, in[k][0], onnx_op_stretched(&b, HLO_MUL, y, in[k][2]));
    }
    TRY(hlo_builder_take_error(&b));
    hlo_set_roots(b.computation, 1, k == 0 ? &y : &in[k][0]);
  }
  hlo_value used = hlo_reduce(n->b, onnx_compare_scalar(n->b, HLO_NE, share, 0), HLO_REDUCE_OR, 2, both);
  hlo_conditional(n->b, used, 2, branches, 3, args, sum);
  return NULL;
}

/* --- routing --- */

/* Returns pred[tokens, experts]: whether an expert is among the k with the greatest router_probs of its token.  Of
 * equal ones, ONNX Runtime takes the last. */
static hlo_value chosen_experts(hlo_builder *b, const moe *m, hlo_value probs) {
  static const int64_t rival = 2, own_dims[] = {0, 1}, rival_dims[] = {0, 2};
  shape s = shape_make(DTYPE_F32, 3, (dim[]){m->tokens, m->experts, m->experts});
  shape index = shape_with_type(s, DTYPE_S32);
  hlo_value own = hlo_broadcast(b, probs, s, own_dims), other = hlo_broadcast(b, probs, s, rival_dims);
  hlo_value later = hlo_compare(b, HLO_GT, hlo_iota(b, index, 2), hlo_iota(b, index, 1));
  hlo_value before = hlo_binary(b, HLO_AND, hlo_compare(b, HLO_EQ, other, own), later);
  before = hlo_binary(b, HLO_OR, hlo_compare(b, HLO_GT, other, own), before);
  hlo_value rank = hlo_reduce(b, hlo_convert(b, before, DTYPE_S32), HLO_REDUCE_ADD, 1, &rival);
  return onnx_compare_scalar(b, HLO_LT, rank, (double)m->chosen);
}

/* Returns the weights of the experts, f32[tokens, experts], which are 0 for those that are not chosen. */
static hlo_value shares(const onnx_node *n, const moe *m) {
  static const int64_t last = 1;
  hlo_builder *b = n->b;
  hlo_value probs = hlo_convert(b, n->in[ROUTER_PROBS], DTYPE_F32), chosen = chosen_experts(b, m, probs), share;
  if (m->mixing.def) {
    share = hlo_select(b, chosen, m->mixing, hlo_like(b, m->mixing, 0));
  } else {
    share = onnx_softmax(b, hlo_select(b, chosen, probs, hlo_like(b, probs, -INFINITY)), 1);
  }
  if (m->mixing.def && m->normalize) {
    hlo_value sum = onnx_reduce_keep(b, share, HLO_REDUCE_ADD, 1, &last);
    sum = hlo_select(b, onnx_compare_scalar(b, HLO_EQ, sum, 0), hlo_like(b, sum, INFINITY), sum);
    share = onnx_op_stretched(b, HLO_DIV, share, sum);
  }
  return hlo_select(b, onnx_compare_scalar(b, HLO_GT, share, m->least), share, hlo_like(b, share, 0));
}

static status mix(onnx_node *n, const moe *m) {
  hlo_builder *b = n->b;
  dim rows[] = {m->tokens, m->hidden};
  hlo_value x = hlo_convert(b, hlo_reshape(b, n->in[INPUT], 2, rows), DTYPE_F32), share = shares(n, m);
  hlo_value sum = hlo_splat(b, shape_make(DTYPE_F32, 2, rows), 0);
  for (int64_t e = 0; e < m->experts; e++) {
    TRY(add_expert(n, m, e, x, hlo_slice_dim(b, share, 1, e, e + 1), &sum));
  }
  const shape *s = onnx_in_shape(n, INPUT);
  n->out[0] = hlo_convert(b, hlo_reshape(b, sum, s->rank, s->dims), (dtype)s->type);
  return NULL;
}

/* Without normalisation, the weights are the chosen elements of the softmax over all experts. */
status onnx_import_contrib_moe(onnx_node *n) {
  moe m = {.first = {.weights = 2, .bias = 3, .name = "fc1_experts_weights"},
           .second = {.weights = 4, .bias = 5, .name = "fc2_experts_weights"}};
  TRY(CONTRIB_ATTRIBUTES(n, "k", "activation_type", "activation_alpha", "activation_beta", "swiglu_limit",
                         "swiglu_fusion", "normalize_routing_weights", "use_sparse_mixer"));
  TRY(contrib_no_input(n, 6, "fc3_experts_weights", "a third layer is not supported"));
  TRY(contrib_no_input(n, 7, "fc3_experts_bias", "a third layer is not supported"));
  TRY(read_attributes(n, &m));
  TRY(read_sizes(n, &m, 1));
  if (!m.normalize) {
    m.mixing = onnx_softmax(n->b, hlo_convert(n->b, n->in[ROUTER_PROBS], DTYPE_F32), 1);
  }
  return mix(n, &m);
}

/* Reads the number of bits of the weights, which is the same in both layers. */
static status read_bits(const onnx_node *n, const moe *m, int64_t *bits, int64_t *block) {
  static const char *const overrides[] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits"};
  const char *kind;
  int64_t prepacked, accuracy;
  TRY(onnx_attr_string(n->arena, n->proto, "quant_type", "int", &kind));
  CHECK_THAT(strcmp(kind, "int") == 0, STATUS_UNSUPPORTED, "quant_type '%s' is not supported", kind);
  TRY(onnx_attr_int(n->proto, "expert_weight_bits", 4, bits));
  for (int k = 0; k < 2; k++) {
    int64_t own;
    dtype type = hlo_type(n->in[k == 0 ? m->first.weights : m->second.weights]);
    CHECK_THAT(type == DTYPE_U8, STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE, "weights of %s are not supported",
               dtype_name(type));
    TRY(onnx_attr_int(n->proto, overrides[k], *bits, &own));
    CHECK_THAT(own == *bits, STATUS_UNSUPPORTED, "%s differs from expert_weight_bits", overrides[k]);
  }
  CHECK_THAT(*bits == 2 || *bits == 4 || *bits == 8, STATUS_UNSUPPORTED,
             "weights of %" PRId64 " bits are not supported", *bits);
  TRY(onnx_attr_int_in(n->proto, "block_size", 0, -1, INT32_MAX, block));
  TRY(onnx_attr_int(n->proto, "accuracy_level", 0, &accuracy)); /* allows rounding; here nothing is rounded */
  TRY(onnx_attr_int(n->proto, "weights_prepacked", -1, &prepacked));
  CHECK_THAT(prepacked != 1, STATUS_UNSUPPORTED, "weights_prepacked is not supported");
  return NULL;
}

/* The weights of the experts are the softmax over the chosen ones, or come from router_weights. */
status onnx_import_contrib_qmoe(onnx_node *n) {
  enum { ROUTER_WEIGHTS = 14, LAST = 20 };
  int64_t bits, block;
  moe m = {.first = {.weights = 2, .scales = 3, .bias = 4, .zero_points = 11, .name = "fc1_experts_weights"},
           .second = {.weights = 5, .scales = 6, .bias = 7, .zero_points = 12, .name = "fc2_experts_weights"},
           .least = 1e-8f};
  TRY(CONTRIB_ATTRIBUTES(n, "k", "activation_type", "activation_alpha", "activation_beta", "swiglu_limit",
                         "swiglu_fusion", "normalize_routing_weights", "use_sparse_mixer", "expert_weight_bits",
                         "fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits", "block_size",
                         "quant_type", "accuracy_level", "weights_prepacked"));
  for (uint32_t k = 8; k <= LAST; k++) {
    bool allowed = k == ROUTER_WEIGHTS || k == m.first.zero_points || k == m.second.zero_points;
    CHECK_THAT(allowed || !onnx_has_in(n, k), STATUS_UNSUPPORTED, "input %" PRIu32 " is given; %s", k,
               k <= 13 ? "a third layer is not supported" : "scales of other kinds are not supported");
  }
  TRY(read_attributes(n, &m));
  TRY(read_bits(n, &m, &bits, &block));
  TRY(read_sizes(n, &m, 8 / bits));
  TRY(read_blocks(n, &m, bits, block, &m.first));
  TRY(read_blocks(n, &m, bits, block, &m.second));
  TRY(onnx_need_dims(n, ROUTER_WEIGHTS, "router_weights", 2, (dim[]){m.tokens, m.experts}));
  if (onnx_has_in(n, ROUTER_WEIGHTS)) {
    m.mixing = hlo_convert(n->b, n->in[ROUTER_WEIGHTS], DTYPE_F32);
  }
  return mix(n, &m);
}
