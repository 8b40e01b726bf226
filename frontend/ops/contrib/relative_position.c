/* relative_position.c - the importers of RelativePositionBias (T5) and GatedRelativePositionBias (WavLM), which compute
 * what is added to the scores of attention. */
#include <inttypes.h>
#include <math.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/contrib/attention_parts.h"
#include "frontend/ops/nn/attention.h"

/* --- RelativePositionBias --- */

/* Which bucket of the table a distance belongs to.  Small distances have a bucket each; after these, the buckets get
 * wider such that their bounds grow by a constant factor, and the last one has all distances from max_distance on. */
typedef struct buckets {
  int64_t count, max_distance;
  bool both; /* whether the second half of the table is for keys after the query; otherwise such keys have distance 0 */
} buckets;

/* Returns the least distance in bucket k.  The bound is exact if it is an integer, for which sums of rounded logarithms
 * are not. */
static int64_t bucket_start(int64_t exact, int64_t count, int64_t max_distance, int64_t k) {
  double part = (double)(k - exact) / (double)(count - exact);
  double bound = (double)exact * pow((double)max_distance / (double)exact, part), whole = nearbyint(bound);
  return (int64_t)(fabs(bound - whole) < 1e-9 * bound ? whole : ceil(bound));
}

/* Returns the buckets of the positions of keys relative to a query, s64[.]. */
static hlo_value bucket_of(const onnx_node *n, const buckets *u, hlo_value position) {
  hlo_builder *b = n->b;
  int64_t count = u->both ? u->count / 2 : u->count, exact = count / 2, last = 1, rows = 0;
  hlo_value zero = hlo_like(b, position, 0), distance = hlo_unary(b, HLO_NEG, position);
  distance = hlo_binary(b, HLO_MAX, distance, u->both ? position : zero);
  hlo_value bucket = onnx_binary_scalar(b, HLO_MIN, distance, (double)exact);
  if (count > exact + 1 && !b->error) { /* adds 1 for each wider bucket whose start has been reached */
    dim wider = count - exact - 1;
    int64_t *starts = ARENA_NEW_N(n->arena, int64_t, (size_t)wider);
    for (int64_t k = 0; k < wider; k++) {
      starts[k] = bucket_start(exact, count, u->max_distance, exact + 1 + k);
    }
    shape all = shape_make(DTYPE_S64, 2, (dim[]){hlo_shape(position)->dims[0], wider});
    hlo_value reached = hlo_compare(b, HLO_GE, hlo_broadcast(b, distance, all, &rows),
                                    hlo_broadcast(b, onnx_s64_array(n, starts, 1, &wider), all, &last));
    reached = hlo_reduce(b, hlo_convert(b, reached, DTYPE_S64), HLO_REDUCE_ADD, 1, &last);
    bucket = hlo_binary(b, HLO_ADD, bucket, reached);
  }
  if (u->both) {
    hlo_value after = hlo_convert(b, hlo_compare(b, HLO_GT, position, zero), DTYPE_S64);
    bucket = hlo_binary(b, HLO_ADD, bucket, onnx_times(b, after, (double)count));
  }
  return bucket;
}

static status read_length(const onnx_node *n, uint32_t k, const char *what, dim *out) {
  const dim *values;
  int64_t count;
  TRY(onnx_const_dims(n, k, what, &values, &count));
  CHECK_THAT(count == 1 && dim_at_most(onnx_dims(n), 1, *values), STATUS_INVALID_MODEL,
             "%s must be one number of at least 1", what);
  *out = *values;
  return NULL;
}

/* The table's dimensions are [buckets, heads], but its elements are in the order of its transpose. */
status onnx_import_contrib_relative_position_bias(onnx_node *n) {
  hlo_builder *b = n->b;
  dim_table *t = onnx_dims(n);
  buckets u;
  dim queries, keys;
  TRY(CONTRIB_ATTRIBUTES(n, "is_bidirectional", "max_distance"));
  TRY(onnx_attr_required(n->proto, "max_distance"));
  TRY(onnx_attr_bool(n->proto, "is_bidirectional", false, &u.both));
  TRY(onnx_need_rank(n, 0, "bias_table", 2, 2));
  const shape *s = onnx_in_shape(n, 0);
  TRY(onnx_const_dim(n, s->dims[0], "the number of buckets", &u.count));
  CHECK_THAT(u.count >= (u.both ? 4 : 2) && u.count <= INT32_MAX && u.count % (u.both ? 2 : 1) == 0,
             STATUS_UNSUPPORTED | STATUS_ABOUT_SHAPE, "bias_table is %s; so many buckets are not supported",
             SHAPE_STR(onnx_dims(n), s));
  int64_t exact = u.count / (u.both ? 4 : 2);
  TRY(onnx_attr_int_in(n->proto, "max_distance", 0, exact + 1, INT32_MAX, &u.max_distance));
  TRY(read_length(n, 1, "query_length", &queries));
  TRY(read_length(n, 2, "key_length", &keys));
  /* the positions of all keys relative to all queries, from that of the first key for the last query on */
  dim positions = dim_add_const(t, dim_add(t, queries, keys), -1), before = dim_add_const(t, queries, -1);
  hlo_value position = hlo_iota(b, shape_make(DTYPE_S64, 1, &positions), 0);
  position = onnx_binary_dim(b, HLO_SUB, position, before);
  hlo_value table = hlo_reshape(b, n->in[0], 2, (dim[]){s->dims[1], s->dims[0]});
  hlo_value bias = hlo_take(b, table, bucket_of(n, &u, position), 1);
  shape pairs = shape_make(DTYPE_S64, 2, (dim[]){queries, keys});
  hlo_value index = hlo_binary(b, HLO_SUB, hlo_iota(b, pairs, 1), hlo_iota(b, pairs, 0));
  bias = hlo_take(b, bias, onnx_binary_dim(b, HLO_ADD, index, before), 1);
  n->out[0] = onnx_insert_dim(b, bias, 0);
  return NULL;
}

/* --- GatedRelativePositionBias --- */

enum { QUERY, QUERY_BIAS, POSITIONS, WEIGHT, BIAS, FACTOR, TOKEN_OFFSET };

/* Returns the two gates of each head and query, sigmoids of sums over the two halves of the columns of q times the
 * weight, as f32[B, heads, S, 2]. */
static hlo_value gates(const onnx_node *n, hlo_value q, int64_t columns) {
  static const int64_t last = 4;
  hlo_builder *b = n->b;
  hlo_value x = hlo_matmul(b, q, hlo_convert(b, n->in[WEIGHT], DTYPE_F32));
  x = onnx_op_stretched(b, HLO_ADD, x, hlo_convert(b, n->in[BIAS], DTYPE_F32));
  if (b->error) {
    return x;
  }
  const dim *d = hlo_shape(x)->dims;
  x = hlo_reshape(b, x, 5, (dim[]){d[0], d[1], d[2], 2, columns / 2});
  return hlo_unary(b, HLO_LOGISTIC, hlo_reduce(b, x, HLO_REDUCE_ADD, 1, &last));
}

/* The gate of a query, which multiplies its row of rel_pos, is u * (r * eco_a - 1) + 2, where u and r are gates. */
status onnx_import_contrib_gated_relative_position_bias(onnx_node *n) {
  hlo_builder *b = n->b;
  contrib_attention a = {0};
  int64_t hidden, columns;
  TRY(CONTRIB_ATTRIBUTES(n, "num_heads"));
  TRY(contrib_read_heads(n, false, &a));
  TRY(contrib_no_input(n, TOKEN_OFFSET, "token_offset", "queries without padding are not supported"));
  TRY(onnx_need_rank(n, QUERY, "query_layer", 3, 3));
  TRY(onnx_need_rank(n, WEIGHT, "weight", 2, 2));
  const shape *q = onnx_in_shape(n, QUERY);
  TRY(onnx_const_dim(n, q->dims[2], "the last dimension of query_layer", &hidden));
  TRY(onnx_const_dim(n, onnx_in_shape(n, WEIGHT)->dims[1], "the columns of weight", &columns));
  CHECK_THAT(hidden % a.heads == 0 && columns % 2 == 0, STATUS_INVALID_MODEL,
             "query_layer is %s and weight %s for %" PRId64 " heads", SHAPE_STR(onnx_dims(n), q),
             SHAPE_STR(onnx_dims(n), onnx_in_shape(n, WEIGHT)), a.heads);
  TRY(onnx_need_dims(n, QUERY_BIAS, "query_bias", 1, &q->dims[2]));
  TRY(onnx_need_dims(n, POSITIONS, "rel_pos", 4, (dim[]){1, a.heads, q->dims[1], q->dims[1]}));
  TRY(onnx_need_dims(n, WEIGHT, "weight", 2, (dim[]){hidden / a.heads, columns}));
  TRY(onnx_need_dims(n, BIAS, "bias", 1, (dim[]){columns}));
  TRY(onnx_need_dims(n, FACTOR, "eco_a", 4, (dim[]){1, a.heads, 1, 1}));
  hlo_value x = onnx_op_stretched(b, HLO_ADD, hlo_convert(b, n->in[QUERY], DTYPE_F32),
                                  hlo_convert(b, n->in[QUERY_BIAS], DTYPE_F32));
  x = gates(n, onnx_split_heads(b, x, a.heads), columns);
  hlo_value u = hlo_slice_dim(b, x, 3, 0, 1), r = hlo_slice_dim(b, x, 3, 1, 2);
  r = onnx_plus(b, onnx_op_stretched(b, HLO_MUL, r, hlo_convert(b, n->in[FACTOR], DTYPE_F32)), -1);
  u = onnx_plus(b, hlo_binary(b, HLO_MUL, u, r), 2);
  u = hlo_binary_broadcast(b, HLO_MUL, u, hlo_convert(b, n->in[POSITIONS], DTYPE_F32));
  n->out[0] = hlo_convert(b, u, hlo_type(n->in[QUERY]));
  return NULL;
}
