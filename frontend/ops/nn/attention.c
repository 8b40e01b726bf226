/* attention.c - the importers of Attention, FlexAttention and RotaryEmbedding. */
#include "frontend/ops/nn/attention.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/import_helpers.h"
#include "frontend/import/symbolic.h"

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, NONPAD }; /* the numbers of Attention's inputs */

typedef struct attention {
  bool packed; /* whether the inputs have rank 3, with the heads and their elements in one dimension */
  /* Each of the `batch` elements has q_steps queries, kv_steps new keys, `past` keys in past_key, and `total` keys
   * altogether.  v_head is the number of elements of a head of V. */
  dim batch, q_steps, kv_steps, past, total, v_head;
  int64_t q_heads, kv_heads, head; /* must be constants: the heads of Q are divided among those of K, and the scale
                                      follows from the size of a head */
  float scale, softcap;
  bool causal;
  int64_t left, right; /* the numbers of keys before and after a query's position that it attends to; -1 means all */
  int64_t output_mode; /* qk_matmul_output_mode */
  dtype type, softmax_type;
} attention;

/* --- checks --- */

static status read_heads(const onnx_node *n, const shape *s, const char *what, const char *attribute, attention *a,
                         int64_t *heads, dim *steps, dim *head) {
  if (!a->packed) {
    TRY(onnx_const_dim(n, s->dims[1], "the number of heads", heads));
    *steps = s->dims[2];
    *head = s->dims[3];
    return NULL;
  }
  TRY(onnx_attr_required(n->proto, attribute));
  TRY(onnx_attr_int(n->proto, attribute, 0, heads));
  dim_table *t = onnx_dims(n);
  CHECK_THAT(*heads >= 1 && dim_equal(t, dim_mod(t, s->dims[2], *heads), 0), STATUS_INVALID_MODEL,
             "%s is %s and %s is %" PRId64 "; it must divide the last dimension", what, SHAPE_STR(onnx_dims(n), s),
             attribute, *heads);
  *steps = s->dims[1];
  *head = dim_floordiv(t, s->dims[2], *heads);
  return NULL;
}

static status read_shapes(const onnx_node *n, attention *a) {
  static const char *const names[] = {"Q", "K", "V"};
  const shape *q = onnx_in_shape(n, Q);
  dim_table *t = onnx_dims(n);
  dim head, k_head, v_steps;
  int64_t v_heads;
  TRY(onnx_need_rank(n, Q, "Q", 3, 4));
  for (uint32_t k = Q; k <= V; k++) {
    TRY(onnx_need_rank(n, k, names[k], q->rank, q->rank));
    CHECK_THAT(dim_equal(t, onnx_in_shape(n, k)->dims[0], q->dims[0]), STATUS_INVALID_MODEL,
               "Q is %s but %s is %s; the batches differ", SHAPE_STR(onnx_dims(n), q), names[k],
               SHAPE_STR(onnx_dims(n), onnx_in_shape(n, k)));
  }
  a->packed = q->rank == 3;
  a->batch = q->dims[0];
  TRY(read_heads(n, q, "Q", "q_num_heads", a, &a->q_heads, &a->q_steps, &head));
  TRY(read_heads(n, onnx_in_shape(n, K), "K", "kv_num_heads", a, &a->kv_heads, &a->kv_steps, &k_head));
  TRY(read_heads(n, onnx_in_shape(n, V), "V", "kv_num_heads", a, &v_heads, &v_steps, &a->v_head));
  CHECK_THAT(dim_equal(t, k_head, head) && v_heads == a->kv_heads && dim_equal(t, v_steps, a->kv_steps),
             STATUS_INVALID_MODEL, "Q is %s, K %s and V %s; heads, their sizes or the sequences of K and V disagree",
             SHAPE_STR(onnx_dims(n), q), SHAPE_STR(onnx_dims(n), onnx_in_shape(n, K)),
             SHAPE_STR(onnx_dims(n), onnx_in_shape(n, V)));
  CHECK_THAT(a->kv_heads >= 1 && a->q_heads % a->kv_heads == 0, STATUS_INVALID_MODEL,
             "%" PRId64 " heads of Q are no multiple of %" PRId64 " of K", a->q_heads, a->kv_heads);
  return onnx_const_dim(n, head, "the size of a head", &a->head);
}

static status read_past(const onnx_node *n, attention *a) {
  CHECK_THAT(onnx_has_in(n, PAST_KEY) == onnx_has_in(n, PAST_VALUE), STATUS_INVALID_MODEL,
             "past_key and past_value must be given together");
  if (onnx_has_in(n, PAST_KEY)) {
    TRY(onnx_need_rank(n, PAST_KEY, "past_key", 4, 4));
    a->past = onnx_in_shape(n, PAST_KEY)->dims[2];
    TRY(onnx_need_dims(n, PAST_KEY, "past_key", 4, (dim[]){a->batch, a->kv_heads, a->past, a->head}));
    TRY(onnx_need_dims(n, PAST_VALUE, "past_value", 4, (dim[]){a->batch, a->kv_heads, a->past, a->v_head}));
  }
  a->total = dim_add(onnx_dims(n), a->past, a->kv_steps);
  return onnx_need_dims(n, NONPAD, "nonpad_kv_seqlen", 1, &a->batch);
}

static status read_attention(const onnx_node *n, attention *a) {
  TRY(read_shapes(n, a));
  TRY(read_past(n, a));
  TRY(onnx_attr_float(n->proto, "scale", 1 / sqrtf((float)a->head), &a->scale));
  TRY(onnx_attr_float(n->proto, "softcap", 0, &a->softcap));
  TRY(onnx_attr_bool(n->proto, "is_causal", false, &a->causal));
  TRY(onnx_attr_int_in(n->proto, "qk_matmul_output_mode", 0, 0, 3, &a->output_mode));
  a->type = dtype_compute_type(hlo_type(n->in[Q]));
  TRY(onnx_dtype_attr(n, "softmax_precision", a->type, &a->softmax_type));
  CHECK_THAT(dtype_is_float(a->softmax_type) && dtype_bytes(a->softmax_type) > 1, STATUS_INVALID_MODEL,
             "softmax_precision is %s; it must be a floating-point type", dtype_name(a->softmax_type));
  a->softmax_type = dtype_compute_type(a->softmax_type);
  TRY(onnx_attr_int_in(n->proto, "left_window_size", -1, -1, DIM_MAX, &a->left));
  return onnx_attr_int_in(n->proto, "right_window_size", -1, -1, DIM_MAX, &a->right);
}

/* --- building --- */

hlo_value onnx_split_heads(hlo_builder *b, hlo_value x, int64_t heads) {
  if (b->error) {
    return x;
  }
  const shape *s = hlo_shape(x);
  dim each = dim_floordiv(b->computation->module->dims, s->dims[2], heads);
  x = hlo_reshape(b, x, 4, (dim[]){s->dims[0], s->dims[1], heads, each});
  return hlo_transpose(b, x, (int64_t[]){0, 2, 1, 3});
}

/* Converts packed inputs [B, S, H*D] to [B, H, S, D]. */
static hlo_value split_heads(hlo_builder *b, const attention *a, hlo_value x, int64_t heads) {
  return a->packed ? onnx_split_heads(b, x, heads) : x;
}

static hlo_value with_past(const onnx_node *n, hlo_value x, uint32_t past) {
  return onnx_has_in(n, past) ? hlo_concatenate(n->b, 2, (hlo_value[]){n->in[past], x}, 2) : x;
}

hlo_value onnx_head_product(hlo_builder *b, hlo_value x, hlo_value y, int64_t y_contract, int64_t heads,
                            int64_t kv_heads) {
  static const int64_t batch[] = {0, 1};
  if (b->error) {
    return (hlo_value){0};
  }
  const shape *s = hlo_shape(x);
  int64_t x_contract = 3;
  dim result[] = {s->dims[0], heads, s->dims[2], hlo_shape(y)->dims[5 - y_contract]};
  dim rows = dim_mul(b->computation->module->dims, s->dims[2], heads / kv_heads);
  x = hlo_reshape(b, x, 4, (dim[]){s->dims[0], kv_heads, rows, s->dims[3]});
  hlo_dot_dims d = {.n_batch = 2,
                    .lhs_batch = batch,
                    .rhs_batch = batch,
                    .n_contract = 1,
                    .lhs_contract = &x_contract,
                    .rhs_contract = &y_contract};
  return hlo_reshape(b, hlo_dot(b, x, y, &d), 4, result);
}

static hlo_value by_kv_head(hlo_builder *b, const attention *a, hlo_value x, hlo_value y, int64_t y_contract) {
  return onnx_head_product(b, x, y, y_contract, a->q_heads, a->kv_heads);
}

static hlo_value minus_infinity_unless(hlo_builder *b, hlo_value keep, hlo_value x) {
  return hlo_select(b, hlo_broadcast_to(b, keep, hlo_shape(x)), x, hlo_like(b, x, -INFINITY));
}

/* Applies attn_mask to the scores x.  The mask's last dimension may be shorter than the number of keys; the remaining
 * keys are masked out.  An extent of 1 is broadcast instead. */
static status apply_mask(const onnx_node *n, const attention *a, hlo_value *x) {
  hlo_builder *b = n->b;
  TRY(onnx_need_rank(n, MASK, "attn_mask", 1, 4));
  hlo_value mask = n->in[MASK];
  const shape *s = hlo_shape(mask);
  bool is_bool = s->type == DTYPE_PRED;
  dim_table *t = onnx_dims(n);
  dim keys = s->dims[s->rank - 1];
  bool all = dim_equal(t, keys, a->total);
  CHECK_THAT(all || dim_at_most(t, keys, a->total), STATUS_INVALID_MODEL,
             "attn_mask is %s; its last dimension exceeds the %s keys", SHAPE_STR(onnx_dims(n), s),
             dim_print(n->arena, t, a->total));
  mask = is_bool ? mask : hlo_convert(b, mask, hlo_type(*x));
  if (!all && !dim_equal(t, keys, 1)) {
    shape rest = shape_with_type(*s, hlo_type(mask));
    rest.dims[s->rank - 1] = dim_sub(t, a->total, keys);
    hlo_value parts[] = {mask, hlo_splat(b, rest, is_bool ? 0 : -INFINITY)};
    mask = hlo_concatenate(b, 2, parts, s->rank - 1);
  }
  /* A mask of -inf excludes the key whatever its score is; adding it to a score of inf would give NaN. */
  hlo_value keep = is_bool ? mask : onnx_compare_scalar(b, HLO_NE, mask, -INFINITY);
  *x = minus_infinity_unless(b, keep, is_bool ? *x : onnx_op_stretched(b, HLO_ADD, *x, mask));
  return NULL;
}

/* Returns the position of each query in the sequence of keys, in the shape `full` with a last dimension of 1.
 * The first query is at the position after the keys of past_key.  With nonpad_kv_seqlen, which counts the
 * keys that are not padding, the last query is instead at the position of the last such key. */
static hlo_value query_places(const onnx_node *n, const attention *a, const shape *full) {
  hlo_builder *b = n->b;
  shape s = shape_with_type(*full, DTYPE_S64);
  s.dims[3] = 1;
  hlo_value query = hlo_iota(b, s, 2);
  if (!onnx_has_in(n, NONPAD)) {
    return onnx_binary_dim(b, HLO_ADD, query, a->past);
  }
  hlo_value length = hlo_broadcast(b, hlo_convert(b, n->in[NONPAD], DTYPE_S64), s, (int64_t[]){0});
  return hlo_binary(b, HLO_ADD, query, onnx_binary_dim(b, HLO_SUB, length, a->q_steps));
}

/* Sets the scores x of keys that a query must not attend to because of their position to -inf: keys after the query if
 * attention is causal, keys outside of the window, and keys beyond nonpad_kv_seqlen. */
static hlo_value apply_positions(const onnx_node *n, const attention *a, hlo_value x) {
  hlo_builder *b = n->b;
  shape full = shape_with_type(*hlo_shape(x), DTYPE_S64);
  hlo_value key = hlo_iota(b, full, 3), query = query_places(n, a, &full);
  int64_t right = a->causal ? 0 : a->right;
  if (right >= 0) {
    hlo_value last = hlo_broadcast_to(b, onnx_plus(b, query, (double)right), &full);
    x = hlo_select(b, hlo_compare(b, HLO_LE, key, last), x, hlo_like(b, x, -INFINITY));
  }
  if (a->left >= 0) {
    hlo_value first = hlo_broadcast_to(b, onnx_plus(b, query, -(double)a->left), &full);
    x = hlo_select(b, hlo_compare(b, HLO_GE, key, first), x, hlo_like(b, x, -INFINITY));
  }
  if (onnx_has_in(n, NONPAD)) {
    hlo_value length = hlo_broadcast(b, hlo_convert(b, n->in[NONPAD], DTYPE_S64), full, (int64_t[]){0});
    x = hlo_select(b, hlo_compare(b, HLO_LT, key, length), x, hlo_like(b, x, -INFINITY));
  }
  return x;
}

static hlo_value cap(hlo_builder *b, const attention *a, hlo_value x) {
  if (a->softcap == 0) {
    return x;
  }
  return onnx_times(b, hlo_unary(b, HLO_TANH, hlo_binary(b, HLO_DIV, x, hlo_like(b, x, a->softcap))), a->softcap);
}

/* Returns true if all keys may be masked out for some query. */
static bool may_be_blind(const onnx_node *n, const attention *a) {
  return onnx_has_in(n, MASK) || onnx_has_in(n, NONPAD) || a->left >= 0;
}

/* Returns the softmax of the scores; it is 0 for a query whose keys are all masked out. */
static hlo_value probabilities(const onnx_node *n, const attention *a, hlo_value x) {
  hlo_builder *b = n->b;
  int64_t axis = 3;
  if (!may_be_blind(n, a)) {
    return onnx_softmax(b, x, axis);
  }
  hlo_value most = onnx_reduce_keep(b, x, HLO_REDUCE_MAX, 1, &axis);
  hlo_value blind = onnx_compare_scalar(b, HLO_EQ, most, -INFINITY);
  most = hlo_select(b, blind, hlo_like(b, most, 0), most);
  hlo_value e = hlo_unary(b, HLO_EXP, onnx_op_stretched(b, HLO_SUB, x, most));
  hlo_value sum = onnx_reduce_keep(b, e, HLO_REDUCE_ADD, 1, &axis);
  return onnx_op_stretched(b, HLO_DIV, e, hlo_select(b, blind, hlo_like(b, sum, 1), sum));
}

/* Computes the probabilities from the scores x.  stages[k] receives the value that qk_matmul_output returns in mode k;
 * stages[3] has the probabilities. */
static status weigh(const onnx_node *n, const attention *a, hlo_value x, hlo_value *stages) {
  stages[0] = x;
  x = stages[1] = cap(n->b, a, x);
  if (onnx_has_in(n, MASK)) {
    TRY(apply_mask(n, a, &x));
  }
  x = stages[2] = apply_positions(n, a, x);
  stages[3] = probabilities(n, a, hlo_convert(n->b, x, a->softmax_type));
  return NULL;
}

status onnx_import_attention(onnx_node *n) {
  hlo_builder *b = n->b;
  attention a = {0};
  hlo_value stages[4];
  TRY(read_attention(n, &a));
  dtype type = hlo_type(n->in[Q]);
  hlo_value key = with_past(n, split_heads(b, &a, n->in[K], a.kv_heads), PAST_KEY);
  hlo_value value = with_past(n, split_heads(b, &a, n->in[V], a.kv_heads), PAST_VALUE);
  /* Both operands of the product are multiplied by the square root of the scale; multiplying the product by the scale
   * could be too late, since the product may overflow. */
  double root = sqrt(fabs((double)a.scale));
  hlo_value q = onnx_times(b, onnx_widen(b, split_heads(b, &a, n->in[Q], a.q_heads)), a.scale < 0 ? -root : root);
  hlo_value k = onnx_times(b, onnx_widen(b, key), root);
  TRY(weigh(n, &a, by_kv_head(b, &a, q, k, 3), stages));
  hlo_value p = hlo_convert(b, stages[3], a.type);
  hlo_value y = by_kv_head(b, &a, p, hlo_convert(b, value, a.type), 2);
  if (a.packed) {
    y = hlo_transpose(b, y, (int64_t[]){0, 2, 1, 3});
    y = hlo_reshape(b, y, 3, (dim[]){a.batch, a.q_steps, dim_mul(onnx_dims(n), a.v_head, a.q_heads)});
  }
  n->out[0] = hlo_convert(b, y, type);
  n->out[1] = key;
  n->out[2] = value;
  if (onnx_has_out(n, 3)) {
    n->out[3] = hlo_convert(b, stages[a.output_mode], type);
  }
  return NULL;
}

/* --- FlexAttention, which has subgraphs that modify scores and probabilities --- */

/* Applies the graph in the attribute, if there is one, to x.  The graph's result must have x's shape and type. */
static status modify(onnx_node *n, const char *attribute, hlo_value *x) {
  if (n->b->error || !onnx_attr_has(n->proto, attribute)) {
    return NULL;
  }
  shape before = *hlo_shape(*x);
  TRY(status_prefix(onnx_import_inline(n, attribute, 1, x, (hlo_value){0}, 1, x), "%s", attribute));
  const shape *after = hlo_shape(*x);
  CHECK_THAT(n->b->error || onnx_shapes_equal(n, after, &before), STATUS_INVALID_MODEL,
             "%s returns %s for %s; the types must be equal", attribute, SHAPE_STR(onnx_dims(n), after),
             SHAPE_STR(onnx_dims(n), &before));
  return NULL;
}

status onnx_import_flex_attention(onnx_node *n) {
  hlo_builder *b = n->b;
  attention a = {0};
  TRY(onnx_need_rank(n, Q, "Q", 4, 4));
  TRY(read_shapes(n, &a));
  TRY(onnx_attr_float(n->proto, "scale", 1 / sqrtf((float)a.head), &a.scale));
  dtype type = hlo_type(n->in[Q]);
  TRY(onnx_dtype_attr(n, "softmax_precision", dtype_compute_type(type), &a.softmax_type));
  CHECK_THAT(dtype_is_float(a.softmax_type) && dtype_bytes(a.softmax_type) > 1, STATUS_INVALID_MODEL,
             "softmax_precision is %s; it must be a floating-point type", dtype_name(a.softmax_type));
  hlo_value q = hlo_convert(b, n->in[Q], a.softmax_type), k = hlo_convert(b, n->in[K], a.softmax_type);
  hlo_value x = onnx_times(b, by_kv_head(b, &a, q, k, 3), a.scale);
  TRY(modify(n, "score_mod", &x));
  x = onnx_softmax(b, x, 3);
  TRY(modify(n, "prob_mod", &x));
  hlo_value y = by_kv_head(b, &a, x, hlo_convert(b, n->in[V], a.softmax_type), 2);
  n->out[0] = hlo_convert(b, y, type);
  return NULL;
}

/* --- RotaryEmbedding --- */

typedef struct rotary {
  dim batch, steps, heads;
  int64_t head, rotated;
  bool packed, interleaved;
} rotary;

static status read_rotary(const onnx_node *n, rotary *r) {
  const shape *x = onnx_in_shape(n, 0);
  TRY(onnx_need_rank(n, 0, "X", 3, 4));
  r->packed = x->rank == 3;
  r->batch = x->dims[0];
  r->steps = x->dims[r->packed ? 1 : 2];
  r->heads = x->dims[1];
  TRY(onnx_const_dim(n, x->dims[x->rank - 1], "the last dimension of X", &r->head));
  if (r->packed) {
    TRY(onnx_attr_int(n->proto, "num_heads", 0, &r->heads));
    CHECK_THAT(r->heads >= 1 && r->head % r->heads == 0, STATUS_INVALID_MODEL,
               "X is %s and num_heads is %" PRId64 "; it must divide the last dimension", SHAPE_STR(onnx_dims(n), x),
               r->heads);
    r->head /= r->heads;
  }
  TRY(onnx_attr_bool(n->proto, "interleaved", false, &r->interleaved));
  TRY(onnx_attr_int(n->proto, "rotary_embedding_dim", 0, &r->rotated));
  r->rotated = r->rotated ? r->rotated : r->head;
  CHECK_THAT(r->rotated >= 0 && r->rotated <= r->head && r->rotated % 2 == 0, STATUS_INVALID_MODEL,
             "rotary_embedding_dim is %" PRId64 "; it must be even and at most the head's %" PRId64, r->rotated,
             r->head);
  return NULL;
}

/* Returns input k, cos_cache or sin_cache, as [B, S, 1, rotated / 2] for a packed X, otherwise as
 * [B, 1, S, rotated / 2], where B may be 1.  With position_ids,
 * the input's rows are gathered at these positions; otherwise the input has one row for each time step
 * (S). */
static status read_cache(const onnx_node *n, const rotary *r, uint32_t k, const char *what, hlo_value *out) {
  dim half = r->rotated / 2, dims[] = {r->batch, r->steps, half};
  dim_table *t = onnx_dims(n);
  bool picked = onnx_has_in(n, 3);
  TRY(onnx_need_rank(n, k, what, picked ? 2 : 3, picked ? 2 : 3));
  const shape *s = onnx_in_shape(n, k);
  *out = n->in[k];
  if (picked) {
    TRY(onnx_need_dims(n, 3, "position_ids", 2, dims));
    CHECK_THAT(dim_equal(t, s->dims[1], half), STATUS_INVALID_MODEL, "%s is %s; its last dimension must be %" PRId64,
               what, SHAPE_STR(onnx_dims(n), s), half);
    TRY(onnx_check_below(n, n->in[3], "position_ids", s->dims[0]));
    *out = hlo_take(n->b, *out, hlo_convert(n->b, n->in[3], DTYPE_S64), 0);
  } else {
    dims[0] = !dim_equal(t, s->dims[0], r->batch) && dim_equal(t, s->dims[0], 1) ? 1 : r->batch;
    TRY(onnx_need_dims(n, k, what, 3, dims));
  }
  *out = onnx_insert_dim(n->b, *out, r->packed ? 2 : 1);
  return NULL;
}

/* Returns element `which`, 0 or 1, of each pair of elements that is rotated; x has rank 4. */
static hlo_value half_of(hlo_builder *b, hlo_value x, int64_t width, bool interleaved, int which) {
  dim half = width / 2;
  if (!interleaved) {
    return hlo_slice_dim(b, x, 3, which * half, (which + 1) * half);
  }
  const dim *dims = hlo_shape(x)->dims;
  dim pairs[] = {dims[0], dims[1], dims[2], half, 2};
  return onnx_pick(b, hlo_reshape(b, hlo_slice_dim(b, x, 3, 0, width), 5, pairs), 4, which);
}

hlo_value onnx_rotate_heads(hlo_builder *b, hlo_value x, hlo_value cosine, hlo_value sine, int64_t width,
                            bool interleaved) {
  if (b->error) {
    return x;
  }
  hlo_value x1 = half_of(b, x, width, interleaved, 0), x2 = half_of(b, x, width, interleaved, 1), parts[3];
  parts[0] = hlo_binary(b, HLO_SUB, onnx_op_stretched(b, HLO_MUL, x1, cosine), onnx_op_stretched(b, HLO_MUL, x2, sine));
  parts[1] = hlo_binary(b, HLO_ADD, onnx_op_stretched(b, HLO_MUL, x1, sine), onnx_op_stretched(b, HLO_MUL, x2, cosine));
  const dim *dims = hlo_shape(x)->dims;
  if (interleaved) {
    hlo_value pairs[] = {onnx_insert_dim(b, parts[0], 4), onnx_insert_dim(b, parts[1], 4)};
    parts[0] = hlo_reshape(b, hlo_concatenate(b, 2, pairs, 4), 4, (dim[]){dims[0], dims[1], dims[2], width});
  }
  uint32_t n = interleaved ? 1 : 2;
  if (dims[3] != width) {
    parts[n++] = hlo_slice_dim(b, x, 3, width, dims[3]);
  }
  return hlo_concatenate(b, n, parts, 3);
}

status onnx_import_rotary_embedding(onnx_node *n) {
  hlo_builder *b = n->b;
  rotary r = {0};
  hlo_value cosine, sine, x = n->in[0];
  TRY(read_rotary(n, &r));
  TRY(read_cache(n, &r, 1, "cos_cache", &cosine));
  TRY(read_cache(n, &r, 2, "sin_cache", &sine));
  dim dims[] = {r.batch, r.steps, r.heads, r.head};
  x = r.packed ? hlo_reshape(b, x, 4, dims) : x;
  hlo_value y =
      onnx_rotate_heads(b, onnx_widen(b, x), onnx_widen(b, cosine), onnx_widen(b, sine), r.rotated, r.interleaved);
  y = hlo_convert(b, y, hlo_type(n->in[0]));
  n->out[0] = r.packed ? hlo_reshape(b, y, 3, onnx_in_shape(n, 0)->dims) : y;
  return NULL;
}
