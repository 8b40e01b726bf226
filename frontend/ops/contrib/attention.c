/* attention.c - the importers of MultiHeadAttention and DecoderMaskedMultiHeadAttention, and of Attention and
 * QAttention, which also compute the projections. */
#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/contrib/attention_parts.h"
#include "frontend/ops/nn/attention.h"

typedef struct dense {
  contrib_attention a;
  dim past; /* the number of keys before the new ones */
  bool causal;
  float filter; /* what is added to the scores of keys that the mask excludes */
} dense;

/* --- what all three operators share --- */

static status read_dense(const onnx_node *n, dense *d) {
  TRY(contrib_read_heads(n, false, &d->a));
  TRY(onnx_attr_bool(n->proto, "unidirectional", false, &d->causal));
  return onnx_attr_float(n->proto, "mask_filter_value", -10000, &d->filter);
}

/* Adds the filter value to the scores for which `keep` is false.  `keep` is pred, of a shape that broadcasts to that of
 * the scores. */
static hlo_value filtered(hlo_builder *b, const dense *d, hlo_value scores, hlo_value keep) {
  hlo_value zero = hlo_broadcast_to(b, hlo_scalar(b, DTYPE_F32, 0), hlo_shape(keep));
  hlo_value filter = hlo_select(b, keep, zero, hlo_like(b, zero, d->filter));
  return onnx_op_stretched(b, HLO_ADD, scores, filter);
}

/* Compares the position of each key with x, s32[B], which has a number for each element of the batch.  Returns pred[B,
 * 1, 1, keys]. */
static hlo_value compare_keys(hlo_builder *b, const dense *d, hlo_comparison c, hlo_value x) {
  int64_t batch = 0;
  shape s = shape_make(DTYPE_S32, 4, (dim[]){d->a.batch, 1, 1, d->a.keys});
  return hlo_compare(b, c, hlo_iota(b, s, 3), hlo_broadcast(b, x, s, &batch));
}

/* Applies the mask in input k, if it is given, to the scores.  The mask has one of three forms: flags, [B, keys] or
 * [B, S, keys], which are above 0 for keys that are seen; s32[B], for each element of the batch the position at which
 * its keys end; or, if `with_starts` is set, s32[2 B], these positions and then those at which the keys start. */
static status apply_mask(const onnx_node *n, const dense *d, uint32_t k, const char *what, bool with_starts,
                         hlo_value *scores) {
  if (!onnx_has_in(n, k)) {
    return NULL;
  }
  hlo_builder *b = n->b;
  dim_table *t = onnx_dims(n);
  const contrib_attention *a = &d->a;
  const shape *s = onnx_in_shape(n, k);
  hlo_value mask = n->in[k], keep;
  CHECK_THAT(s->rank >= 1 && s->rank <= 3, STATUS_UNSUPPORTED | STATUS_ABOUT_SHAPE,
             "%s is %s; a mask of this rank is not supported", what, SHAPE_STR(onnx_dims(n), s));
  if (s->rank == 1 && dim_equal(t, s->dims[0], a->batch)) {
    keep = compare_keys(b, d, HLO_LT, mask);
  } else if (s->rank == 1) {
    CHECK_THAT(with_starts && dim_equal(t, s->dims[0], dim_mul(t, 2, a->batch)),
               STATUS_UNSUPPORTED | STATUS_ABOUT_SHAPE,
               "%s is %s for a batch of %s; this form of the mask is not supported", what, SHAPE_STR(onnx_dims(n), s),
               dim_print(n->arena, t, a->batch));
    hlo_value ends = hlo_slice_dim(b, mask, 0, 0, a->batch);
    hlo_value starts = hlo_slice_dim(b, mask, 0, a->batch, s->dims[0]);
    keep = hlo_binary(b, HLO_AND, compare_keys(b, d, HLO_LT, ends), compare_keys(b, d, HLO_GE, starts));
  } else {
    dim want[] = {a->batch, s->rank == 3 ? a->steps : a->keys, a->keys};
    TRY(onnx_need_dims(n, k, what, s->rank, want));
    keep = onnx_insert_dim(b, onnx_compare_scalar(b, HLO_GT, mask, 0), 1);
    keep = s->rank == 2 ? onnx_insert_dim(b, keep, 1) : keep;
  }
  *scores = filtered(b, d, *scores, keep);
  return NULL;
}

/* Sets *out to the attention of the queries q, [B, heads, S, head], to the keys k and values v, as [B, S, hidden] in
 * f32.  `bias` is the number of the input that is added to the scores, and `mask` that of the input that excludes keys.
 * If `scores` is not NULL, sets *scores to what softmax is computed of before causal attention hides keys. */
static status attend(const onnx_node *n, const dense *d, hlo_value q, hlo_value k, hlo_value v, uint32_t bias,
                     uint32_t mask, const char *mask_name, bool with_starts, hlo_value *scores, hlo_value *out) {
  hlo_builder *b = n->b;
  hlo_value x = contrib_scores(b, &d->a, q, k);
  TRY(contrib_add_bias(n, &d->a, bias, &x));
  TRY(apply_mask(n, d, mask, mask_name, with_starts, &x));
  if (b->error) {
    return NULL;
  }
  if (scores) {
    *scores = x;
  }
  if (d->causal) {
    shape full = shape_with_type(*hlo_shape(x), DTYPE_S64);
    hlo_value last = onnx_binary_dim(b, HLO_ADD, hlo_iota(b, full, 2), d->past);
    x = contrib_hide(b, x, hlo_compare(b, HLO_LE, hlo_iota(b, full, 3), last));
  }
  *out = contrib_join_heads(b, contrib_weigh(b, &d->a, x, v));
  return NULL;
}

/* --- MultiHeadAttention --- */

enum { QUERY, KEY, VALUE, BIAS, PADDING_MASK, ATTENTION_BIAS, PAST_KEY, PAST_VALUE, PAST_LENGTH, CACHE_INDIRECTION };

typedef struct multi_head {
  dense d;
  bool projected; /* whether the inputs key and value are [B, heads, keys, head] already, and get no bias */
  bool room;      /* whether past_key and past_value have room for the new rows, and become the present by an update */
  dim kv_steps;   /* how many new keys each element of the batch has */
  int64_t v_head; /* the number of elements of a head of V */
} multi_head;

static status check_multi_head_inputs(const onnx_node *n) {
  TRY(onnx_need_rank(n, QUERY, "query", 3, 5));
  CHECK_THAT(hlo_rank(n->in[QUERY]) == 3 && onnx_has_in(n, KEY) && onnx_has_in(n, VALUE),
             STATUS_UNSUPPORTED | STATUS_ABOUT_SHAPE,
             "query is %s, key and value %s; queries with packed keys and values are not supported",
             SHAPE_STR(onnx_dims(n), onnx_in_shape(n, QUERY)), onnx_has_in(n, KEY) ? "one array" : "missing");
  CHECK_THAT(onnx_has_in(n, PAST_KEY) == onnx_has_in(n, PAST_VALUE), STATUS_INVALID_MODEL,
             "past_key and past_value must be given together");
  CHECK_THAT(onnx_has_in(n, PAST_KEY) || !onnx_has_in(n, PAST_LENGTH), STATUS_INVALID_MODEL,
             "past_sequence_length is given, but past_key is missing");
  CHECK_THAT(onnx_has_in(n, PAST_LENGTH) || !onnx_has_in(n, CACHE_INDIRECTION), STATUS_UNSUPPORTED,
             "cache_indirection without past_sequence_length is not supported");
  return NULL;
}

/* Sets *out to the number of elements of a head in input k: its last dimension, which must be a constant, divided by
 * `heads`. */
static status read_head(const onnx_node *n, uint32_t k, const char *what, int64_t heads, int64_t *out) {
  const shape *s = onnx_in_shape(n, k);
  TRY(onnx_const_dim(n, s->dims[s->rank - 1], what, out));
  CHECK_THAT(*out % heads == 0 && *out > 0, STATUS_INVALID_MODEL,
             "%s is %s; its last dimension is no multiple of %" PRId64 " heads", what, SHAPE_STR(onnx_dims(n), s),
             heads);
  *out /= heads;
  return NULL;
}

static status read_multi_head(const onnx_node *n, multi_head *m) {
  contrib_attention *a = &m->d.a;
  TRY(read_dense(n, &m->d));
  const shape *q = onnx_in_shape(n, QUERY), *k = onnx_in_shape(n, KEY);
  a->batch = q->dims[0];
  a->steps = q->dims[1];
  TRY(read_head(n, QUERY, "query", a->heads, &a->head));
  TRY(onnx_need_rank(n, KEY, "key", 3, 4));
  m->projected = k->rank == 4;
  m->kv_steps = k->dims[m->projected ? 2 : 1];
  if (m->projected) {
    dim rows[] = {a->batch, a->heads, m->kv_steps, a->head};
    CHECK_THAT(!onnx_has_in(n, PAST_KEY), STATUS_UNSUPPORTED | STATUS_ABOUT_SHAPE,
               "key is %s and past_key is given; this is not supported", SHAPE_STR(onnx_dims(n), k));
    TRY(onnx_need_dims(n, KEY, "key", 4, rows));
    TRY(onnx_need_dims(n, VALUE, "value", 4, rows));
    m->v_head = a->head;
  } else {
    dim rows[] = {a->batch, m->kv_steps, q->dims[2]};
    TRY(onnx_need_dims(n, KEY, "key", 3, rows));
    TRY(onnx_need_rank(n, VALUE, "value", 3, 3));
    TRY(read_head(n, VALUE, "value", a->heads, &m->v_head));
    rows[2] = m->v_head * a->heads;
    TRY(onnx_need_dims(n, VALUE, "value", 3, rows));
  }
  return contrib_read_scale(n, a);
}

/* If past_sequence_length is given, only so many of the rows of past_key are the past, and the others are room. */
static status read_room(const onnx_node *n, multi_head *m) {
  dim_table *t = onnx_dims(n);
  dim rows = m->d.past;
  const dim *length;
  int64_t count;
  m->room = onnx_has_in(n, PAST_LENGTH);
  if (!m->room) {
    return NULL;
  }
  TRY(onnx_const_dims(n, PAST_LENGTH, "past_sequence_length", &length, &count));
  CHECK_THAT(count == 1, STATUS_INVALID_MODEL, "past_sequence_length has %" PRId64 " elements", count);
  m->d.past = *length;
  CHECK_THAT(dim_at_most(t, 0, *length) && dim_at_most(t, dim_add(t, *length, m->kv_steps), rows), STATUS_INVALID_MODEL,
             "past_sequence_length is %s; past_key has %s rows, which have no room for %s more",
             dim_print(n->arena, t, *length), dim_print(n->arena, t, rows), dim_print(n->arena, t, m->kv_steps));
  return NULL;
}

static status read_multi_head_past(const onnx_node *n, multi_head *m) {
  contrib_attention *a = &m->d.a;
  dim_table *t = onnx_dims(n);
  if (onnx_has_in(n, PAST_KEY)) {
    TRY(onnx_need_rank(n, PAST_KEY, "past_key", 4, 4));
    m->d.past = onnx_in_shape(n, PAST_KEY)->dims[2];
    TRY(onnx_need_dims(n, PAST_KEY, "past_key", 4, (dim[]){a->batch, a->heads, m->d.past, a->head}));
    TRY(onnx_need_dims(n, PAST_VALUE, "past_value", 4, (dim[]){a->batch, a->heads, m->d.past, m->v_head}));
    TRY(read_room(n, m));
  }
  a->keys = dim_add(t, m->d.past, m->kv_steps);
  CHECK_THAT(!m->d.causal || dim_equal(t, m->kv_steps, a->steps), STATUS_UNSUPPORTED | STATUS_ABOUT_SHAPE,
             "unidirectional attention of %s queries to %s new keys is not supported", dim_print(n->arena, t, a->steps),
             dim_print(n->arena, t, m->kv_steps));
  dim all = a->heads * (2 * a->head + m->v_head);
  return onnx_need_dims(n, BIAS, "bias", 1, &all);
}

/* Returns input k [B, S, heads * each] as [B, heads, S, each], after adding its part of the bias, which begins at
 * `from`. */
static hlo_value project(const onnx_node *n, const multi_head *m, uint32_t k, int64_t from, int64_t each) {
  hlo_builder *b = n->b;
  hlo_value x = n->in[k];
  if (onnx_has_in(n, BIAS)) {
    x = onnx_op_stretched(b, HLO_ADD, x, hlo_slice_dim(b, n->in[BIAS], 0, from, from + each * m->d.a.heads));
  }
  return onnx_split_heads(b, x, m->d.a.heads);
}

/* Sets *present to input `past` with the new rows x, [B, heads, steps, .], behind the rows of the past. */
static status with_past(const onnx_node *n, const multi_head *m, uint32_t past, hlo_value x, hlo_value *present) {
  hlo_builder *b = n->b;
  if (m->room) {
    hlo_value zero = hlo_splat(b, shape_make(DTYPE_S64, 1, &m->d.a.batch), 0);
    return contrib_write_rows(n, n->in[past], x, onnx_binary_dim(b, HLO_ADD, zero, m->d.past), present);
  }
  *present = onnx_has_in(n, past) ? hlo_concatenate(b, 2, (hlo_value[]){n->in[past], x}, 2) : x;
  return NULL;
}

/* Reads cache_indirection, [B / beams, beams, .]: for each past token of each element of the batch, which is a beam,
 * the beam of the same sequence that computed the token's key and value.  Sets *rows to the elements of the batch that
 * did, s64[B, past, 1]. */
static status read_beams(const onnx_node *n, const multi_head *m, hlo_value *rows) {
  hlo_builder *b = n->b;
  dim_table *t = onnx_dims(n);
  TRY(onnx_need_rank(n, CACHE_INDIRECTION, "cache_indirection", 3, 3));
  const shape *s = onnx_in_shape(n, CACHE_INDIRECTION);
  dim beams = s->dims[1], past[] = {m->d.a.batch, m->d.past, 1};
  CHECK_THAT(dim_equal(t, dim_mul(t, s->dims[0], beams), m->d.a.batch) && dim_at_most(t, m->d.past, s->dims[2]),
             STATUS_INVALID_MODEL, "cache_indirection is %s for a batch of %s and %s past tokens",
             SHAPE_STR(onnx_dims(n), s), dim_print(n->arena, t, m->d.a.batch), dim_print(n->arena, t, m->d.past));
  hlo_value beam = hlo_slice_dim(b, n->in[CACHE_INDIRECTION], 2, 0, m->d.past);
  TRY(onnx_check_below(n, beam, "cache_indirection", beams));
  beam = hlo_reshape(b, hlo_convert(b, beam, DTYPE_S64), 3, past);
  hlo_value own = hlo_iota(b, shape_make(DTYPE_S64, 3, past), 0);
  own = hlo_binary(b, HLO_SUB, own, onnx_binary_dim(b, HLO_REM, own, beams));
  *rows = hlo_binary(b, HLO_ADD, own, beam);
  return NULL;
}

/* Returns the rows of the past of input `past`, [B, heads, room, .], each taken from the element of the batch that
 * `rows` tells, and behind them x, the new ones. */
static hlo_value take_beams(const onnx_node *n, const multi_head *m, uint32_t past, hlo_value rows, hlo_value x) {
  static const int64_t batch = 0, step = 1, position = 2, kept[] = {1, 3};
  hlo_builder *b = n->b;
  const shape *s = onnx_in_shape(n, past);
  hlo_gather_dims d = {.n_offset = 2,
                       .offset = kept,
                       .n_collapsed = 1,
                       .collapsed = &batch,
                       .n_batch = 1,
                       .operand_batch = &position,
                       .indices_batch = &step,
                       .n_map = 1,
                       .map = &batch,
                       .index_vector_dim = 2};
  hlo_value old = hlo_slice_dim(b, n->in[past], 2, 0, m->d.past);
  old = hlo_gather(b, old, rows, &d, (dim[]){1, s->dims[1], 1, s->dims[3]});
  return hlo_concatenate(b, 2, (hlo_value[]){old, x}, 2);
}

/* Sets *k and *v, which are the new rows, to all rows of keys and values to which the queries attend. */
static status attended_rows(const onnx_node *n, const multi_head *m, hlo_value *k, hlo_value *v) {
  hlo_builder *b = n->b;
  hlo_value rows;
  if (onnx_has_in(n, CACHE_INDIRECTION)) {
    TRY(read_beams(n, m, &rows));
    *k = take_beams(n, m, PAST_KEY, rows, *k);
    *v = take_beams(n, m, PAST_VALUE, rows, *v);
  } else {
    *k = m->room ? hlo_slice_dim(b, n->out[1], 2, 0, m->d.a.keys) : n->out[1];
    *v = m->room ? hlo_slice_dim(b, n->out[2], 2, 0, m->d.a.keys) : n->out[2];
  }
  return NULL;
}

/* The outputs are the result, the present keys and values, and the scores before softmax. */
static status import_multi_head(onnx_node *n) {
  multi_head m = {0};
  TRY(check_multi_head_inputs(n));
  TRY(read_multi_head(n, &m));
  TRY(read_multi_head_past(n, &m));
  int64_t hidden = m.d.a.heads * m.d.a.head;
  hlo_value q = project(n, &m, QUERY, 0, m.d.a.head), k = n->in[KEY], v = n->in[VALUE], y = {0}, scores = {0};
  if (!m.projected) {
    k = project(n, &m, KEY, hidden, m.d.a.head);
    v = project(n, &m, VALUE, 2 * hidden, m.v_head);
  }
  TRY(with_past(n, &m, PAST_KEY, k, &n->out[1]));
  TRY(with_past(n, &m, PAST_VALUE, v, &n->out[2]));
  TRY(attended_rows(n, &m, &k, &v));
  CHECK_THAT(!m.d.causal || !onnx_has_out(n, 3), STATUS_UNSUPPORTED, "qk of unidirectional attention is not supported");
  TRY(attend(n, &m.d, q, k, v, ATTENTION_BIAS, PADDING_MASK, "key_padding_mask", false, &scores, &y));
  n->out[0] = hlo_convert(n->b, y, hlo_type(n->in[QUERY]));
  n->out[3] = hlo_convert(n->b, scores, hlo_type(n->in[QUERY]));
  return NULL;
}

status onnx_import_contrib_multi_head_attention(onnx_node *n) {
  TRY(CONTRIB_ATTRIBUTES(n, "num_heads", "scale", "mask_filter_value", "unidirectional"));
  return import_multi_head(n);
}

/* --- DecoderMaskedMultiHeadAttention: MultiHeadAttention of one query, with its inputs in another order --- */

/* Sets in[QUERY], in[KEY] and in[VALUE].  Without the inputs key and value, query has all three. */
static status read_decoder_queries(const onnx_node *n, hlo_value *in) {
  TRY(onnx_need_rank(n, QUERY, "query", 3, 3));
  const shape *s = onnx_in_shape(n, QUERY);
  int64_t columns;
  CHECK_THAT(dim_equal(onnx_dims(n), s->dims[1], 1), STATUS_INVALID_MODEL, "query is %s; there must be one step",
             SHAPE_STR(onnx_dims(n), s));
  memcpy(in, n->in, 3 * sizeof *in);
  if (onnx_has_in(n, KEY) || onnx_has_in(n, VALUE)) {
    return NULL;
  }
  TRY(onnx_const_dim(n, s->dims[2], "the last dimension of query", &columns));
  CHECK_THAT(columns % 3 == 0, STATUS_UNSUPPORTED, "query is %s, which are no three equal parts",
             SHAPE_STR(onnx_dims(n), s));
  for (int64_t k = 0, each = columns / 3; k < 3; k++) {
    in[k] = hlo_slice_dim(n->b, n->in[QUERY], 2, k * each, (k + 1) * each);
  }
  return NULL;
}

/* The number of beams in input k is that of cache_indirection, or 1 without it. */
static status check_beam_width(const onnx_node *n, uint32_t k, hlo_value indirection) {
  dim beams = 1;
  if (indirection.def) {
    CHECK_THAT(hlo_rank(indirection) == 3, STATUS_INVALID_MODEL, "cache_indirection is %s; its rank must be 3",
               SHAPE_STR(onnx_dims(n), hlo_shape(indirection)));
    beams = hlo_shape(indirection)->dims[1];
  }
  if (!onnx_has_in(n, k)) {
    CHECK_THAT(dim_equal(onnx_dims(n), beams, 1), STATUS_INVALID_MODEL, "cache_indirection is %s without beam_width",
               SHAPE_STR(onnx_dims(n), hlo_shape(indirection)));
    return NULL;
  }
  hlo_value more = onnx_binary_dim(n->b, HLO_SUB, hlo_convert(n->b, n->in[k], DTYPE_S64), beams);
  return onnx_check_below(n, more, "beam_width - the beams of cache_indirection", 1);
}

/* Keys and values of rank 4 are those of cross attention, which has no past: then the inputs for the past, which models
 * may give all the same, have no meaning. */
status onnx_import_contrib_decoder_masked_multi_head_attention(onnx_node *n) {
  static const uint32_t from[] = {[BIAS] = 10,      [PADDING_MASK] = 3, [ATTENTION_BIAS] = 4,   [PAST_KEY] = 5,
                                  [PAST_VALUE] = 6, [PAST_LENGTH] = 7,  [CACHE_INDIRECTION] = 9};
  hlo_value in[CACHE_INDIRECTION + 1];
  bool shared;
  TRY(CONTRIB_ATTRIBUTES(n, "num_heads", "scale", "mask_filter_value", "past_present_share_buffer", "output_qk"));
  TRY(read_decoder_queries(n, in));
  bool cross = onnx_has_in(n, KEY) && hlo_rank(n->in[KEY]) == 4;
  for (uint32_t k = BIAS; k <= CACHE_INDIRECTION; k++) {
    in[k] = (cross && k >= PAST_LENGTH) || !onnx_has_in(n, from[k]) ? (hlo_value){0} : n->in[from[k]];
  }
  if (!cross) {
    TRY(onnx_attr_bool(n->proto, "past_present_share_buffer", false, &shared));
    TRY(contrib_need_input(n, from[PAST_KEY], "past_key"));
    CHECK_THAT(shared && onnx_has_in(n, from[PAST_LENGTH]), STATUS_UNSUPPORTED,
               "a past without past_present_share_buffer and past_sequence_length is not supported");
    TRY(check_beam_width(n, 8, in[CACHE_INDIRECTION]));
  }
  onnx_node node = contrib_as(n, 1, CACHE_INDIRECTION + 1, in);
  return import_multi_head(&node);
}

/* --- Attention, QAttention --- */

enum { INPUT, WEIGHTS, PROJECTION_BIAS, NO_INPUT = UINT32_MAX };

typedef struct packed {
  dense d;
  int64_t sizes[3];            /* the numbers of columns of Q, K and V in the weights */
  uint32_t mask, past, scores; /* the numbers of the inputs for the mask, the past and the bias of the scores; NO_INPUT
                                  if the operator has no such input */
} packed;

static status read_packed_attributes(const onnx_node *n, packed *p) {
  bool shared, rotary;
  const int64_t *sizes;
  size_t count;
  TRY(onnx_attr_bool(n->proto, "past_present_share_buffer", false, &shared));
  TRY(onnx_attr_bool(n->proto, "do_rotary", false, &rotary));
  CHECK_THAT(!shared && !rotary, STATUS_UNSUPPORTED, "attribute %s is not supported",
             shared ? "past_present_share_buffer" : "do_rotary");
  TRY(read_dense(n, &p->d));
  TRY(onnx_need_rank(n, WEIGHTS, "weights", 2, 2));
  int64_t columns, heads = p->d.a.heads;
  TRY(onnx_const_dim(n, onnx_in_shape(n, WEIGHTS)->dims[1], "the last dimension of weights", &columns));
  TRY(onnx_attr_ints(n->proto, "qkv_hidden_sizes", &sizes, &count));
  CHECK_THAT(count == 0 || count == 3, STATUS_INVALID_MODEL, "qkv_hidden_sizes has %zu entries instead of 3", count);
  int64_t rest = columns;
  for (int k = 0; k < 3; k++) {
    p->sizes[k] = count ? sizes[k] : columns / 3;
    CHECK_THAT(p->sizes[k] >= 1 && p->sizes[k] <= rest && p->sizes[k] % heads == 0, STATUS_INVALID_MODEL,
               "weights are %s; %" PRId64 " of their columns are no multiple of %" PRId64 " heads",
               SHAPE_STR(onnx_dims(n), onnx_in_shape(n, WEIGHTS)), p->sizes[k], heads);
    rest -= p->sizes[k];
  }
  CHECK_THAT(rest == 0 && p->sizes[0] == p->sizes[1], STATUS_INVALID_MODEL,
             "weights are %s; Q, K and V have %" PRId64 ", %" PRId64 " and %" PRId64 " columns",
             SHAPE_STR(onnx_dims(n), onnx_in_shape(n, WEIGHTS)), p->sizes[0], p->sizes[1], p->sizes[2]);
  p->d.a.head = p->sizes[0] / heads;
  return contrib_read_scale(n, &p->d.a);
}

static status read_packed_inputs(const onnx_node *n, packed *p) {
  contrib_attention *a = &p->d.a;
  dim_table *t = onnx_dims(n);
  TRY(onnx_need_rank(n, INPUT, "input", 3, 3));
  const shape *x = onnx_in_shape(n, INPUT), *w = onnx_in_shape(n, WEIGHTS);
  a->batch = x->dims[0];
  a->steps = x->dims[1];
  CHECK_THAT(dim_equal(t, x->dims[2], w->dims[0]), STATUS_INVALID_MODEL, "input is %s but weights are %s",
             SHAPE_STR(onnx_dims(n), x), SHAPE_STR(onnx_dims(n), w));
  TRY(onnx_need_dims(n, PROJECTION_BIAS, "bias", 1, &w->dims[1]));
  if (onnx_has_in(n, p->past)) {
    CHECK_THAT(p->sizes[2] == p->sizes[1], STATUS_INVALID_MODEL, "past is given, but K and V have different sizes");
    TRY(onnx_need_rank(n, p->past, "past", 5, 5));
    p->d.past = onnx_in_shape(n, p->past)->dims[3];
    TRY(onnx_need_dims(n, p->past, "past", 5, (dim[]){2, a->batch, a->heads, p->d.past, a->head}));
  }
  a->keys = dim_add(t, p->d.past, a->steps);
  return NULL;
}

/* Sets output 0, and output 1 (the present keys and values) if the node lists it or has a past, and K and V have
 * equally many columns.  `products` are the products of the input and the weights, [B, S, columns], in the type of the
 * outputs. */
static status attend_packed(onnx_node *n, const packed *p, hlo_value products) {
  hlo_builder *b = n->b;
  hlo_value parts[3], y = {0};
  if (b->error) {
    return NULL;
  }
  dtype type = hlo_type(products);
  hlo_value bias = n->in[PROJECTION_BIAS];
  products = onnx_has_in(n, PROJECTION_BIAS) ? onnx_op_stretched(b, HLO_ADD, products, bias) : products;
  for (int64_t k = 0, from = 0; k < 3; from += p->sizes[k++]) {
    parts[k] = onnx_split_heads(b, hlo_slice_dim(b, products, 2, from, from + p->sizes[k]), p->d.a.heads);
  }
  hlo_value k = parts[1], v = parts[2];
  if (p->sizes[1] == p->sizes[2] && (onnx_has_in(n, p->past) || onnx_has_out(n, 1))) {
    hlo_value rows[] = {onnx_insert_dim(b, k, 0), onnx_insert_dim(b, v, 0)};
    n->out[1] = hlo_concatenate(b, 2, rows, 0);
    if (onnx_has_in(n, p->past)) {
      n->out[1] = hlo_concatenate(b, 2, (hlo_value[]){n->in[p->past], n->out[1]}, 3);
      k = onnx_pick(b, n->out[1], 0, 0);
      v = onnx_pick(b, n->out[1], 0, 1);
    }
  }
  TRY(attend(n, &p->d, parts[0], k, v, p->scores, p->mask, "mask_index", true, NULL, &y));
  n->out[0] = hlo_convert(b, y, type);
  return NULL;
}

status onnx_import_contrib_attention(onnx_node *n) {
  packed p = {.mask = 3, .past = 4, .scores = 5};
  TRY(CONTRIB_ATTRIBUTES(n, "num_heads", "scale", "mask_filter_value", "unidirectional", "qkv_hidden_sizes",
                         "do_rotary", "rotary_embedding_dim", "past_present_share_buffer"));
  TRY(contrib_no_input(n, 6, "past_sequence_length", "a cache with room is not supported"));
  TRY(read_packed_attributes(n, &p));
  TRY(read_packed_inputs(n, &p));
  return attend_packed(n, &p, hlo_matmul(n->b, n->in[INPUT], n->in[WEIGHTS]));
}

/* Inputs 3 and 4 are the scales of the input and of the weights, and inputs 6 and 7 their zero points. */
status onnx_import_contrib_qattention(onnx_node *n) {
  packed p = {.mask = 5, .past = 8, .scores = NO_INPUT};
  hlo_value in[] = {n->in[INPUT], n->in[WEIGHTS], n->in[6], n->in[7]}, products = {0};
  TRY(CONTRIB_ATTRIBUTES(n, "num_heads", "scale", "mask_filter_value", "unidirectional", "do_rotary",
                         "past_present_share_buffer"));
  TRY(read_packed_attributes(n, &p));
  TRY(read_packed_inputs(n, &p));
  TRY(onnx_has_in(n, 6) ? onnx_need_one_element(n, 6, "input_zero_point") : NULL);
  TRY(contrib_scaled_product(n, in, onnx_scalar_input(n, 3, "input_scale"), 4, "weight_scale", &products));
  return attend_packed(n, &p, hlo_convert(n->b, products, hlo_type(n->in[3])));
}
