/* group_query_attention.c - the importer of GroupQueryAttention, the attention of decoders with a cache of keys and
 * values. */
#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/contrib/attention_parts.h"
#include "frontend/ops/contrib/rotary.h"
#include "frontend/ops/math/norm.h"

enum {
  QUERY,
  KEY,
  VALUE,
  PAST_KEY,
  PAST_VALUE,
  SEQLENS_K,
  TOTAL_LENGTH,
  COS_CACHE,
  SIN_CACHE,
  POSITION_IDS,
  ATTENTION_BIAS,
  HEAD_SINK,
  K_SCALE,
  V_SCALE,
  Q_NORM,
  K_NORM
};

/* How the rows of new keys get into the cache.  CACHE_NEW: there is no past, so the new rows are the cache.  A dynamic
 * cache has the rows of the past and grows by the new ones.  A static cache has room for more rows than the past, and
 * the new ones are written into it. */
typedef enum cache_kind { CACHE_NEW, CACHE_DYNAMIC, CACHE_STATIC } cache_kind;

typedef struct grouped {
  contrib_attention a;
  bool packed; /* whether query has the keys and values, too */
  cache_kind cache;
  /* Whether the batch is 1 and the cache dynamic.  Then the new rows must come right after the rows of the past (a
   * check makes sure of it when the model runs), so that the present is a concatenation and can be carried in place. */
  bool appended;
  dim past;         /* the number of rows of past_key, including the room of a static cache; 0 without a past */
  hlo_value length; /* s64[B]: the number of keys of each element of the batch that are no padding */
  hlo_value start;  /* s64[B]: the position of the first query and of the first new key */
  bool rotary, causal;
  int64_t window;
} grouped;

/* --- checks --- */

static status read_attributes(const onnx_node *n, grouped *g) {
  static const char *const kinds[] = {"k_quant_type", "v_quant_type"};
  int64_t bits, sliding, output;
  TRY(CONTRIB_ATTRIBUTES(n, "num_heads", "kv_num_heads", "scale", "softcap", "do_rotary", "rotary_interleaved",
                         "local_window_size", "smooth_softmax", "causal", "k_quant_type", "v_quant_type",
                         "kv_cache_bit_width", "sliding_window_cache", "qk_output", "qk_norm_epsilon"));
  for (int k = 0; k < 2; k++) {
    const char *kind;
    TRY(onnx_attr_string(n->arena, n->proto, kinds[k], "NONE", &kind));
    CHECK_THAT(strcmp(kind, "NONE") == 0, STATUS_UNSUPPORTED, "%s '%s' is not supported", kinds[k], kind);
  }
  TRY(onnx_attr_int(n->proto, "kv_cache_bit_width", 0, &bits));
  TRY(onnx_attr_int(n->proto, "sliding_window_cache", 0, &sliding));
  TRY(onnx_attr_int(n->proto, "qk_output", 0, &output));
  CHECK_THAT(!bits && !sliding && !output, STATUS_UNSUPPORTED, "attribute %s is not supported",
             bits      ? "kv_cache_bit_width"
             : sliding ? "sliding_window_cache"
                       : "qk_output");
  TRY(contrib_no_input(n, K_SCALE, "k_scale", "a quantised cache is not supported"));
  TRY(contrib_no_input(n, V_SCALE, "v_scale", "a quantised cache is not supported"));
  CHECK_THAT(onnx_has_in(n, Q_NORM) == onnx_has_in(n, K_NORM), STATUS_INVALID_MODEL,
             "q_norm_weight and k_norm_weight must be given together");
  TRY(contrib_read_heads(n, true, &g->a));
  TRY(onnx_attr_float(n->proto, "softcap", 0, &g->a.softcap));
  TRY(onnx_attr_bool(n->proto, "do_rotary", false, &g->rotary));
  TRY(onnx_attr_bool(n->proto, "causal", true, &g->causal));
  TRY(onnx_attr_int_in(n->proto, "local_window_size", -1, -1, DIM_MAX, &g->window));
  CHECK_THAT(g->window != 0 && (g->causal || g->window < 0), STATUS_INVALID_MODEL,
             "local_window_size is %" PRId64 " and causal %d", g->window, g->causal);
  return NULL;
}

static status read_query(const onnx_node *n, grouped *g) {
  contrib_attention *a = &g->a;
  dim_table *t = onnx_dims(n);
  TRY(onnx_need_rank(n, QUERY, "query", 3, 3));
  const shape *q = onnx_in_shape(n, QUERY);
  g->packed = !onnx_has_in(n, KEY);
  CHECK_THAT(g->packed == !onnx_has_in(n, VALUE), STATUS_INVALID_MODEL, "key and value must be given together");
  a->batch = q->dims[0];
  a->steps = q->dims[1];
  int64_t hidden, parts = a->heads + (g->packed ? 2 * a->kv_heads : 0);
  TRY(onnx_const_dim(n, q->dims[2], "the last dimension of query", &hidden));
  CHECK_THAT(hidden % parts == 0 && hidden > 0, STATUS_INVALID_MODEL, "query is %s, which are no %" PRId64 " heads",
             SHAPE_STR(onnx_dims(n), q), parts);
  a->head = hidden / parts;
  dim each[] = {a->batch, a->steps, dim_mul(t, a->head, a->kv_heads)};
  TRY(onnx_need_dims(n, KEY, "key", 3, each));
  TRY(onnx_need_dims(n, VALUE, "value", 3, each));
  return contrib_read_scale(n, a);
}

static status read_past(const onnx_node *n, grouped *g) {
  CHECK_THAT(onnx_has_in(n, PAST_KEY) == onnx_has_in(n, PAST_VALUE), STATUS_INVALID_MODEL,
             "past_key and past_value must be given together");
  if (!onnx_has_in(n, PAST_KEY)) {
    return NULL;
  }
  CHECK_THAT(onnx_has_out(n, 1) && onnx_has_out(n, 2), STATUS_UNSUPPORTED,
             "a past without present_key and present_value is not supported");
  TRY(onnx_need_rank(n, PAST_KEY, "past_key", 4, 4));
  g->past = onnx_in_shape(n, PAST_KEY)->dims[2];
  dim rows[] = {g->a.batch, g->a.kv_heads, g->past, g->a.head};
  TRY(onnx_need_dims(n, PAST_KEY, "past_key", 4, rows));
  TRY(onnx_need_dims(n, PAST_VALUE, "past_value", 4, rows));
  for (uint32_t k = PAST_KEY; k <= PAST_VALUE; k++) {
    CHECK_THAT(hlo_type(n->in[k]) == hlo_type(n->in[QUERY]), STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE,
               "query is %s but the past is %s; a cache of another type is not supported",
               SHAPE_STR(onnx_dims(n), onnx_in_shape(n, QUERY)), SHAPE_STR(onnx_dims(n), onnx_in_shape(n, k)));
  }
  return NULL;
}

/* Reads total_sequence_length, which decides whether the cache is dynamic or static. */
static status read_total(const onnx_node *n, grouped *g) {
  contrib_attention *a = &g->a;
  dim_table *t = onnx_dims(n);
  const dim *total;
  int64_t count;
  TRY(contrib_need_input(n, SEQLENS_K, "seqlens_k"));
  TRY(contrib_need_input(n, TOTAL_LENGTH, "total_sequence_length"));
  TRY(onnx_need_dims(n, SEQLENS_K, "seqlens_k", hlo_rank(n->in[SEQLENS_K]) == 2 ? 2 : 1, (dim[]){a->batch, 1}));
  TRY(onnx_const_dims(n, TOTAL_LENGTH, "total_sequence_length", &total, &count));
  CHECK_THAT(count == 1, STATUS_INVALID_MODEL, "total_sequence_length has %" PRId64 " elements", count);
  a->keys = *total;
  if (dim_equal(t, a->keys, dim_add(t, g->past, a->steps))) {
    g->cache = onnx_has_in(n, PAST_KEY) ? CACHE_DYNAMIC : CACHE_NEW;
    g->appended = g->cache == CACHE_DYNAMIC && dim_known_equal(t, a->batch, 1);
    return NULL;
  }
  g->cache = CACHE_STATIC;
  CHECK_THAT(onnx_has_in(n, PAST_KEY) && dim_at_most(t, a->keys, g->past), STATUS_INVALID_MODEL,
             "total_sequence_length is %s; it must be the past and new rows, %s, or at most the past, %s",
             dim_print(n->arena, t, a->keys), dim_print(n->arena, t, dim_add(t, g->past, a->steps)),
             dim_print(n->arena, t, g->past));
  return NULL;
}

/* --- positions --- */

/* Computes g->length and g->start.  In the first run, which has no past, the rows of a batch element may be padded at
 * the end.  Then there are more steps than `length`, and the start is 0, since length - steps would be negative. */
static status read_lengths(const onnx_node *n, grouped *g) {
  hlo_builder *b = n->b;
  hlo_value last = hlo_reshape(b, hlo_convert(b, n->in[SEQLENS_K], DTYPE_S64), 1, &g->a.batch); /* it may be [B, 1] */
  TRY(onnx_check_below(n, n->in[SEQLENS_K], "seqlens_k", g->a.keys));
  if (g->appended) {
    hlo_value missing = onnx_binary_dim(b, HLO_ADD, hlo_unary(b, HLO_NEG, last), g->a.keys);
    TRY(onnx_check_below(n, onnx_plus(b, missing, -1), "total_sequence_length - 1 - seqlens_k", 1));
    g->length = onnx_dim_like(b, last, g->a.keys);
    g->start = onnx_dim_like(b, last, g->past);
    return NULL;
  }
  g->length = onnx_plus(b, last, 1);
  g->start = onnx_binary_dim(b, HLO_SUB, g->length, g->a.steps);
  g->start = onnx_binary_scalar(b, HLO_MAX, g->start, 0);
  return NULL;
}

/* Returns the position of each step, s64[B, S]. */
static hlo_value step_positions(hlo_builder *b, const grouped *g) {
  shape s = shape_make(DTYPE_S64, 2, (dim[]){g->a.batch, g->a.steps});
  int64_t batch = 0;
  return hlo_binary(b, HLO_ADD, hlo_iota(b, s, 1), hlo_broadcast(b, g->start, s, &batch));
}

/* Returns the positions by which queries and keys are rotated.  If there is no past, only the first element of
 * position_ids is used, and the positions of all batch elements count up from it. */
static status rotary_positions(const onnx_node *n, const grouped *g, hlo_value *out) {
  hlo_builder *b = n->b;
  if (!onnx_has_in(n, POSITION_IDS)) {
    *out = step_positions(b, g);
    return NULL;
  }
  dim dims[] = {g->a.batch, g->a.steps};
  TRY(onnx_need_dims(n, POSITION_IDS, "position_ids", 2, dims));
  hlo_value ids = n->in[POSITION_IDS];
  shape s = shape_make(DTYPE_S64, 2, dims);
  if (shape_is_empty(&s)) {
    *out = ids;
    return NULL;
  }
  hlo_value first = hlo_slice(b, ids, (dim[]){0, 0}, (dim[]){1, 1}, NULL);
  hlo_value counted = onnx_op_stretched(b, HLO_ADD, hlo_iota(b, s, 1), first);
  hlo_value before = onnx_of_dim(b, DTYPE_S64, dim_sub(onnx_dims(n), g->a.keys, g->a.steps), 1, 0);
  hlo_value none = onnx_compare_scalar(b, HLO_EQ, before, 0);
  *out = hlo_select(b, hlo_broadcast_to(b, none, &s), counted, ids);
  return NULL;
}

/* --- building --- */

/* Returns the query, the key or the value of the new steps, [B, S, heads, head]: input k or, if the query is packed,
 * its heads from number `first` on. */
static hlo_value new_heads(const onnx_node *n, const grouped *g, uint32_t k, int64_t first, int64_t heads) {
  const contrib_attention *a = &g->a;
  hlo_value x = n->in[g->packed ? QUERY : k];
  if (g->packed) {
    x = hlo_slice_dim(n->b, x, 2, first * a->head, (first + heads) * a->head);
  }
  return hlo_reshape(n->b, x, 4, (dim[]){a->batch, a->steps, heads, a->head});
}

/* If input k is given, replaces x [B, S, heads, head] by the RMS normalisation of each head, scaled by input k. */
static status normalize_heads(const onnx_node *n, const grouped *g, uint32_t k, const char *what, hlo_value *x) {
  hlo_builder *b = n->b;
  int64_t over = 3;
  float epsilon;
  dim head = g->a.head;
  if (!onnx_has_in(n, k)) {
    return NULL;
  }
  TRY(onnx_attr_float(n->proto, "qk_norm_epsilon", 1e-6f, &epsilon));
  TRY(onnx_need_dims(n, k, what, 1, &head));
  hlo_value y = hlo_convert(b, *x, DTYPE_F32);
  y = onnx_op_stretched(b, HLO_MUL, y, onnx_inverse_deviation(b, onnx_mean_square(b, y, 1, &over), epsilon));
  y = onnx_op_stretched(b, HLO_MUL, y, hlo_convert(b, n->in[k], DTYPE_F32));
  *x = hlo_convert(b, y, hlo_type(n->in[QUERY]));
  return NULL;
}

/* Returns the cache in input `past` with the new rows x [B, kv_heads, S, head]. */
static status add_rows(const onnx_node *n, const grouped *g, uint32_t past, hlo_value x, hlo_value *out) {
  hlo_builder *b = n->b;
  *out = x;
  if (g->cache == CACHE_NEW) {
    return NULL;
  }
  if (g->appended) {
    *out = hlo_concatenate(b, 2, (hlo_value[]){n->in[past], x}, 2);
    return NULL;
  }
  hlo_value room = n->in[past];
  if (g->cache == CACHE_DYNAMIC) {
    hlo_value parts[] = {room, hlo_like(b, x, 0)};
    room = hlo_concatenate(b, 2, parts, 2);
  }
  return contrib_write_rows(n, room, x, g->start, out);
}

/* Returns pred with the dimensions of the scores x, which is true where the query sees the key. */
static hlo_value seen_keys(hlo_builder *b, const grouped *g, hlo_value x) {
  static const int64_t at[] = {0, 2};
  int64_t batch = 0;
  shape full = shape_with_type(*hlo_shape(x), DTYPE_S64), row = full;
  row.dims[1] = row.dims[3] = 1;
  hlo_value key = hlo_iota(b, full, 3), query = hlo_broadcast(b, step_positions(b, g), row, at);
  hlo_value last = onnx_plus(b, hlo_broadcast(b, g->length, row, &batch), -1);
  if (g->causal) {
    last = g->appended ? query : hlo_binary(b, HLO_MIN, query, last);
  }
  hlo_value seen = hlo_compare(b, HLO_LE, key, hlo_broadcast_to(b, last, &full));
  if (g->window > 0) {
    hlo_value first = onnx_plus(b, query, -(double)g->window);
    seen = hlo_binary(b, HLO_AND, seen, hlo_compare(b, HLO_GT, key, hlo_broadcast_to(b, first, &full)));
  }
  return seen;
}

/* Reads head_sink, or smooth_softmax, which is a sink of 0. */
static status read_sink(const onnx_node *n, grouped *g) {
  int64_t smooth;
  dim heads = g->a.heads;
  TRY(onnx_attr_int_in(n->proto, "smooth_softmax", -1, -1, 1, &smooth));
  TRY(onnx_need_dims(n, HEAD_SINK, "head_sink", 1, &heads));
  CHECK_THAT(!onnx_has_in(n, HEAD_SINK) || smooth <= 0, STATUS_UNSUPPORTED,
             "head_sink and smooth_softmax together are not supported");
  if (onnx_has_in(n, HEAD_SINK)) {
    g->a.sink = hlo_convert(n->b, n->in[HEAD_SINK], DTYPE_F32);
  } else if (smooth == 1) {
    g->a.sink = hlo_splat(n->b, shape_make(DTYPE_F32, 1, &heads), 0);
  }
  return NULL;
}

static status rotate_both(const onnx_node *n, const grouped *g, hlo_value *q, hlo_value *k) {
  contrib_angles angles;
  hlo_value positions;
  TRY(onnx_attr_bool(n->proto, "rotary_interleaved", false, &angles.interleaved));
  TRY(rotary_positions(n, g, &positions));
  TRY(contrib_read_angles(n, COS_CACHE, positions, g->a.head, &angles));
  *q = contrib_rotate(n->b, &angles, *q);
  *k = contrib_rotate(n->b, &angles, *k);
  return NULL;
}

status onnx_import_contrib_group_query_attention(onnx_node *n) {
  static const int64_t swap[] = {0, 2, 1, 3};
  hlo_builder *b = n->b;
  grouped g = {0};
  hlo_value present_key, present_value;
  TRY(read_attributes(n, &g));
  TRY(read_query(n, &g));
  TRY(read_past(n, &g));
  TRY(read_total(n, &g));
  TRY(read_lengths(n, &g));
  TRY(read_sink(n, &g));
  const contrib_attention *a = &g.a;
  hlo_value q = new_heads(n, &g, QUERY, 0, a->heads), k = new_heads(n, &g, KEY, a->heads, a->kv_heads);
  hlo_value v = new_heads(n, &g, VALUE, a->heads + a->kv_heads, a->kv_heads);
  TRY(normalize_heads(n, &g, Q_NORM, "q_norm_weight", &q));
  TRY(normalize_heads(n, &g, K_NORM, "k_norm_weight", &k));
  TRY(g.rotary ? rotate_both(n, &g, &q, &k) : NULL);
  TRY(add_rows(n, &g, PAST_KEY, hlo_transpose(b, k, swap), &present_key));
  TRY(add_rows(n, &g, PAST_VALUE, hlo_transpose(b, v, swap), &present_value));
  if (b->error) {
    return NULL;
  }
  hlo_value keys = present_key, values = present_value;
  if (g.cache == CACHE_STATIC) {
    keys = hlo_slice_dim(b, keys, 2, 0, a->keys);
    values = hlo_slice_dim(b, values, 2, 0, a->keys);
  }
  hlo_value x = contrib_scores(b, a, hlo_transpose(b, q, swap), keys);
  TRY(contrib_add_bias(n, a, ATTENTION_BIAS, &x));
  if (b->error) {
    return NULL;
  }
  /* Only a query that is padding can be so far from all keys that the window has none of them. */
  g.a.may_be_blind = g.window > 0 && !g.appended && !dim_known_equal(onnx_dims(n), a->steps, 1);
  x = contrib_weigh(b, a, contrib_hide(b, x, seen_keys(b, &g, x)), values);
  n->out[0] = hlo_convert(b, contrib_join_heads(b, x), hlo_type(n->in[QUERY]));
  n->out[1] = present_key;
  n->out[2] = present_value;
  n->out[3] = (hlo_value){0};
  return NULL;
}
