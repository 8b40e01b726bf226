/* linear_attention.c - the importer of LinearAttention.  Each head has a matrix as its state, which an HLO `while`
 * updates step by step:
 *
 *   state = state * exp(decay) + key (x) value,   output = scale * query . state
 *
 * where (x) is the outer product.  The update rules with "delta" in their name replace `value` by
 * beta * (value - key . state), where `state` is already multiplied by exp(decay). */
#include "frontend/ops/nn/linear_attention.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"

enum { QUERY, KEY, VALUE, PAST, DECAY, BETA, N_INPUTS };

typedef struct linear_attention {
  bool gated, delta;
  bool shared;                    /* whether heads of the value may share heads of the query and the key */
  int64_t query_heads, key_heads; /* the numbers of heads in these inputs */
  int64_t q_heads, kv_heads;      /* the same after shared heads are repeated, and the number of states */
  float scale;
  dim batch, steps;
  int64_t key, value; /* the numbers of elements of one head */
} linear_attention;

/* The values that the loop carries.  T is the number of time steps, B the batch. */
typedef struct carry {
  hlo_value step, state, out;
  hlo_value in[N_INPUTS]; /* [T, B, heads, .]; def is NULL for an absent input */
} carry;

static status read_rule(const onnx_node *n, linear_attention *l) {
  static const char *const rules[] = {"linear", "gated", "delta", "gated_delta"};
  int rule;
  TRY(onnx_choose(n, "update_rule", "gated_delta", rules, 4, &rule));
  l->gated = rule & 1;
  l->delta = rule & 2;
  CHECK_THAT(l->gated == onnx_has_in(n, DECAY) && l->delta == onnx_has_in(n, BETA), STATUS_INVALID_MODEL,
             "update_rule %s goes with%s decay and with%s beta", rules[rule], l->gated ? "" : "out",
             l->delta ? "" : "out");
  return NULL;
}

static status read_heads(const onnx_node *n, linear_attention *l) {
  TRY(onnx_attr_required(n->proto, "q_num_heads"));
  TRY(onnx_attr_required(n->proto, "kv_num_heads"));
  TRY(onnx_attr_int_in(n->proto, "q_num_heads", 0, 1, 1 << 30, &l->query_heads));
  TRY(onnx_attr_int_in(n->proto, "kv_num_heads", 0, 1, 1 << 30, &l->kv_heads));
  l->q_heads = l->shared && l->kv_heads % l->query_heads == 0 ? l->kv_heads : l->query_heads;
  CHECK_THAT(l->q_heads % l->kv_heads == 0, STATUS_INVALID_MODEL,
             "q_num_heads %" PRId64 " does not go with kv_num_heads %" PRId64, l->query_heads, l->kv_heads);
  return NULL;
}

/* Sets the number of key heads, which have as many elements as those of the query. */
static status read_key_heads(const onnx_node *n, linear_attention *l) {
  int64_t keys;
  l->key_heads = l->kv_heads;
  if (!l->shared || l->key == 0) {
    return NULL;
  }
  TRY(onnx_const_dim(n, onnx_in_shape(n, KEY)->dims[2], "the last dimension of key", &keys));
  l->key_heads = keys / l->key;
  CHECK_THAT(l->key_heads > 0 && l->kv_heads % l->key_heads == 0, STATUS_INVALID_MODEL,
             "key is %s, whose heads of %" PRId64 " do not go with kv_num_heads %" PRId64,
             SHAPE_STR(onnx_dims(n), onnx_in_shape(n, KEY)), l->key, l->kv_heads);
  return NULL;
}

static status read_sizes(const onnx_node *n, linear_attention *l) {
  static const char *const names[] = {"query", "key", "value"};
  const shape *q = onnx_in_shape(n, QUERY), *v = onnx_in_shape(n, VALUE);
  for (uint32_t k = QUERY; k <= VALUE; k++) {
    TRY(onnx_need_rank(n, k, names[k], 3, 3));
  }
  l->batch = q->dims[0];
  l->steps = q->dims[1];
  int64_t queries, values;
  TRY(onnx_const_dim(n, q->dims[2], "the last dimension of query", &queries));
  TRY(onnx_const_dim(n, v->dims[2], "the last dimension of value", &values));
  l->key = queries / l->query_heads;
  l->value = values / l->kv_heads;
  TRY(read_key_heads(n, l));
  TRY(onnx_need_dims(n, QUERY, "query", 3, (dim[]){l->batch, l->steps, l->query_heads * l->key}));
  TRY(onnx_need_dims(n, KEY, "key", 3, (dim[]){l->batch, l->steps, l->key_heads * l->key}));
  TRY(onnx_need_dims(n, VALUE, "value", 3, (dim[]){l->batch, l->steps, l->kv_heads * l->value}));
  TRY(onnx_need_dims(n, PAST, "past_state", 4, (dim[]){l->batch, l->kv_heads, l->key, l->value}));
  TRY(onnx_attr_float(n->proto, "scale", 0, &l->scale));
  l->scale = l->scale == 0 ? 1 / sqrtf((float)l->key) : l->scale;
  return NULL;
}

/* Checks decay, which has a number for each head or for each element of the key, and beta, which has one for each head
 * or one for all heads. */
static status check_gates(const onnx_node *n, const linear_attention *l) {
  dim by_head[] = {l->batch, l->steps, l->kv_heads};
  int64_t last = 0;
  TRY(onnx_has_in(n, DECAY) ? onnx_const_dim(n, onnx_in_shape(n, DECAY)->dims[2], "decay's last dimension", &last)
                            : NULL);
  by_head[2] = last == l->kv_heads * l->key ? last : l->kv_heads;
  TRY(onnx_need_dims(n, DECAY, "decay", 3, by_head));
  last = 0;
  TRY(onnx_has_in(n, BETA) ? onnx_const_dim(n, onnx_in_shape(n, BETA)->dims[2], "beta's last dimension", &last) : NULL);
  by_head[2] = last == 1 ? 1 : l->kv_heads;
  return onnx_need_dims(n, BETA, "beta", 3, by_head);
}

/* Returns input k, [B, T, heads * d], as [T, B, heads, d] in the type of onnx_widen, or no value (def is NULL) if it is
 * absent.  An input with one number for all heads becomes [T, B, 1, 1]. */
static hlo_value by_step(const onnx_node *n, const linear_attention *l, uint32_t k, int64_t heads) {
  static const int64_t steps_first[] = {1, 0, 2, 3};
  if (!onnx_has_in(n, k)) {
    return (hlo_value){0};
  }
  dim last = onnx_in_shape(n, k)->dims[2];
  heads = last < heads ? 1 : heads;
  hlo_value x = hlo_reshape(n->b, onnx_widen(n->b, n->in[k]), 4, (dim[]){l->batch, l->steps, heads, last / heads});
  return hlo_transpose(n->b, x, steps_first);
}

/* Repeats each head of x [T, B, heads, d] equally often, so that there are `count` heads. */
static hlo_value repeat_heads(hlo_builder *b, hlo_value x, int64_t count) {
  if (b->error || hlo_shape(x)->dims[2] == count) {
    return x;
  }
  shape s = *hlo_shape(x), each = s;
  each.rank = 5;
  each.dims[3] = count / s.dims[2];
  each.dims[4] = s.dims[3];
  s.dims[2] = count;
  return hlo_reshape(b, hlo_broadcast_to(b, onnx_insert_dim(b, x, 3), &each), 4, s.dims);
}

/* --- the loop --- */

static uint32_t pack(const carry *c, hlo_value *out) {
  uint32_t n = 0;
  out[n++] = c->step;
  out[n++] = c->state;
  out[n++] = c->out;
  for (int k = 0; k < N_INPUTS; k++) {
    if (c->in[k].def) {
      out[n++] = c->in[k];
    }
  }
  return n;
}

static hlo_value parameter_like(hlo_builder *b, hlo_value outside) {
  return outside.def ? hlo_result(hlo_parameter(b->computation, *hlo_shape(outside)), 0) : outside;
}

static carry parameters(hlo_builder *b, const carry *outside) {
  carry in;
  in.step = parameter_like(b, outside->step);
  in.state = parameter_like(b, outside->state);
  in.out = parameter_like(b, outside->out);
  for (int k = 0; k < N_INPUTS; k++) {
    in.in[k] = parameter_like(b, outside->in[k]);
  }
  return in;
}

static hlo_value starts_at(hlo_builder *b, hlo_value step) {
  hlo_value zeros = hlo_s64s(b, (int64_t[]){0, 0, 0}, 3);
  return hlo_concatenate(b, 2, (hlo_value[]){hlo_reshape(b, step, 1, (dim[]){1}), zeros}, 0);
}

/* Returns the slice [B, heads, d] of x that belongs to the current time step. */
static hlo_value now(hlo_builder *b, hlo_value x, hlo_value starts) {
  shape s = *hlo_shape(x);
  s.dims[0] = 1;
  return hlo_reshape(b, hlo_dynamic_slice(b, x, starts, s.dims), 3, s.dims + 1);
}

/* Broadcasts v [B, H, d] to the shape of the state [B, H, key, value]; `last` is the dimension of the state to which
 * v's last dimension corresponds. */
static hlo_value over_state(hlo_builder *b, hlo_value v, hlo_value state, int64_t last) {
  return hlo_broadcast(b, v, *hlo_shape(state), (int64_t[]){0, 1, last});
}

/* Multiplies x, [B, H, ., key] or [B, H, key], by the state, [B, H, key, value]. */
static hlo_value read_state(hlo_builder *b, hlo_value x, hlo_value state) {
  static const int64_t batch[] = {0, 1}, key = 2;
  int64_t last = hlo_rank(x) - 1;
  hlo_dot_dims d = {.n_batch = 2,
                    .lhs_batch = batch,
                    .rhs_batch = batch,
                    .n_contract = 1,
                    .lhs_contract = &last,
                    .rhs_contract = &key};
  return hlo_dot(b, x, state, &d);
}

static void build_step(hlo_builder *b, const linear_attention *l, const carry *outside) {
  carry in = parameters(b, outside), next = in;
  hlo_value starts = starts_at(b, in.step), state = in.state;
  hlo_value key = now(b, in.in[KEY], starts), value = now(b, in.in[VALUE], starts);
  if (l->gated) {
    hlo_value decay = hlo_unary(b, HLO_EXP, now(b, in.in[DECAY], starts));
    state = hlo_binary(b, HLO_MUL, state, over_state(b, decay, state, 2));
  }
  if (l->delta) {
    value = hlo_binary(b, HLO_SUB, value, read_state(b, key, state));
    value = onnx_op_stretched(b, HLO_MUL, value, now(b, in.in[BETA], starts));
  }
  next.state = hlo_binary(b, HLO_ADD, state,
                          hlo_binary(b, HLO_MUL, over_state(b, key, state, 2), over_state(b, value, state, 3)));
  dim group = l->q_heads / l->kv_heads;
  hlo_value query = hlo_reshape(b, now(b, in.in[QUERY], starts), 4, (dim[]){l->batch, l->kv_heads, group, l->key});
  hlo_value y = onnx_times(b, read_state(b, query, next.state), l->scale);
  y = hlo_reshape(b, y, 4, (dim[]){1, l->batch, l->q_heads, l->value});
  next.out = hlo_dynamic_update_slice(b, in.out, y, starts);
  next.step = hlo_binary(b, HLO_ADD, in.step, hlo_scalar_int(b, DTYPE_S64, 1));
  hlo_value roots[3 + N_INPUTS];
  uint32_t n = pack(&next, roots);
  hlo_set_roots(b->computation, n, roots);
}

static status run_loop(hlo_builder *b, const linear_attention *l, carry *c) {
  hlo_builder condition = hlo_builder_inner(b, "steps_left"), body = hlo_builder_inner(b, "step");
  carry in = parameters(&condition, c);
  hlo_value left = hlo_compare(&condition, HLO_LT, in.step, onnx_of_dim(&condition, DTYPE_S64, l->steps, 1, 0));
  hlo_set_roots(condition.computation, 1, &left);
  build_step(&body, l, c);
  TRY(hlo_builder_take_error(&condition));
  TRY(hlo_builder_take_error(&body));
  hlo_value init[3 + N_INPUTS], out[3 + N_INPUTS];
  uint32_t n = pack(c, init);
  hlo_while(b, condition.computation, body.computation, n, init, out);
  c->state = out[1];
  c->out = out[2];
  return NULL;
}

status onnx_linear_attention(onnx_node *n, bool shared) {
  hlo_builder *b = n->b;
  linear_attention l = {.shared = shared};
  TRY(read_rule(n, &l));
  TRY(read_heads(n, &l));
  TRY(read_sizes(n, &l));
  TRY(check_gates(n, &l));
  dtype type = hlo_type(n->in[QUERY]), wide = dtype_compute_type(type);
  carry c = {.step = hlo_scalar_int(b, DTYPE_S64, 0)};
  bool past = onnx_has_in(n, PAST);
  c.state = past ? hlo_convert(b, n->in[PAST], wide)
                 : hlo_splat(b, shape_make(wide, 4, (dim[]){l.batch, l.kv_heads, l.key, l.value}), 0);
  c.out = hlo_splat(b, shape_make(wide, 4, (dim[]){l.steps, l.batch, l.q_heads, l.value}), 0);
  c.in[QUERY] = repeat_heads(b, by_step(n, &l, QUERY, l.query_heads), l.q_heads);
  c.in[KEY] = repeat_heads(b, by_step(n, &l, KEY, l.key_heads), l.kv_heads);
  c.in[VALUE] = by_step(n, &l, VALUE, l.kv_heads);
  c.in[DECAY] = by_step(n, &l, DECAY, l.kv_heads);
  c.in[BETA] = by_step(n, &l, BETA, l.kv_heads);
  if (dim_at_most(onnx_dims(n), 1, l.steps) && !b->error) {
    TRY(run_loop(b, &l, &c));
  }
  hlo_value y = hlo_transpose(b, c.out, (int64_t[]){1, 0, 2, 3});
  n->out[0] = hlo_convert(b, hlo_reshape(b, y, 3, (dim[]){l.batch, l.steps, l.q_heads * l.value}), type);
  n->out[1] = hlo_convert(b, c.state, past ? hlo_type(n->in[PAST]) : type);
  return NULL;
}

status onnx_import_linear_attention(onnx_node *n) { return onnx_linear_attention(n, false); }
