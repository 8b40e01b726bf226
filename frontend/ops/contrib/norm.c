/* norm.c - the importers of layer and RMS normalisation with a sum or with embeddings before it. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/contrib/contrib.h"
#include "frontend/ops/math/activation.h"
#include "frontend/ops/math/norm.h"

/* A normalisation over the dimensions from `axis` on. */
typedef struct row_norm {
  hlo_value x; /* the array to normalise, in the type in which the normalisation is computed */
  int axis;
  bool centered; /* whether the mean is subtracted */
  float epsilon;
  hlo_value mean, inverse; /* results, with extent 1 in the normalised dimensions; mean only if `centered` */
} row_norm;

/* Returns the normalised rows, multiplied by gamma and with beta added if it has a def, in r->x's type. */
static hlo_value normalize(hlo_builder *b, row_norm *r, hlo_value gamma, hlo_value beta) {
  int64_t over[SHAPE_MAX_RANK];
  uint32_t n_over = 0;
  for (int d = r->axis; d < hlo_rank(r->x); d++) {
    over[n_over++] = d;
  }
  hlo_value x = r->x, square;
  if (r->centered) {
    onnx_moments m = onnx_moments_over(b, x, n_over, over);
    r->mean = m.mean;
    x = m.centered;
    square = m.variance;
  } else {
    square = onnx_mean_square(b, x, n_over, over);
  }
  r->inverse = onnx_inverse_deviation(b, square, r->epsilon);
  dtype type = hlo_type(r->x);
  hlo_value y = onnx_op_stretched(b, HLO_MUL, x, r->inverse);
  y = onnx_op_stretched(b, HLO_MUL, y, hlo_convert(b, gamma, type));
  return beta.def ? onnx_op_stretched(b, HLO_ADD, y, hlo_convert(b, beta, type)) : y;
}

/* Returns input k, or no value if it is absent. */
static hlo_value optional(const onnx_node *n, uint32_t k) { return onnx_has_in(n, k) ? n->in[k] : (hlo_value){0}; }

/* Imports LayerNormalization (centered) or SimplifiedLayerNormalization, which ONNX Runtime's optimiser writes in the
 * standard's domain.  The standard does not have SimplifiedLayerNormalization; it has LayerNormalization since version
 * 17, but the optimiser writes LayerNormalization into older models, too.  The result has the type of the scale. */
static status layer_norm(onnx_node *n, bool centered) {
  int64_t axis, stash;
  row_norm r = {.centered = centered};
  TRY(CONTRIB_ATTRIBUTES(n, "axis", "epsilon", "stash_type"));
  TRY(onnx_need_rank(n, 0, "X", 1, SHAPE_MAX_RANK));
  const shape *x = onnx_in_shape(n, 0);
  TRY(onnx_axis_attr(n, -1, x->rank, &axis));
  TRY(onnx_attr_float(n->proto, "epsilon", 1e-5f, &r.epsilon));
  TRY(onnx_attr_int_in(n->proto, "stash_type", 1, 1, 1, &stash));
  TRY(onnx_need_dims(n, 1, "scale", x->rank - (int)axis, x->dims + axis));
  TRY(centered ? onnx_need_dims(n, 2, "B", x->rank - (int)axis, x->dims + axis) : NULL);
  r.axis = (int)axis;
  r.x = onnx_widen(n->b, n->in[0]);
  n->out[0] = hlo_convert(n->b, normalize(n->b, &r, n->in[1], optional(n, 2)), hlo_type(n->in[1]));
  n->out[1] = hlo_convert(n->b, centered ? r.mean : r.inverse, DTYPE_F32);
  if (centered) {
    n->out[2] = hlo_convert(n->b, r.inverse, DTYPE_F32);
  }
  return NULL;
}

status onnx_import_contrib_layer_normalization(onnx_node *n) { return layer_norm(n, true); }
status onnx_import_contrib_simplified_layer_normalization(onnx_node *n) { return layer_norm(n, false); }

/* --- GatedRMSNorm --- */

/* Each group of as many elements as scale has is normalised, and the result is multiplied by a function of the gate. */
status onnx_import_contrib_gated_rms_norm(onnx_node *n) {
  enum { X, SCALE, GATE };
  static const char *const activations[] = {"silu", "swish", "sigmoid"};
  hlo_builder *b = n->b;
  row_norm r = {0};
  int activation;
  int64_t last, group;
  TRY(CONTRIB_ATTRIBUTES(n, "activation", "epsilon"));
  TRY(onnx_choose(n, "activation", "silu", activations, 3, &activation));
  TRY(onnx_attr_float(n->proto, "epsilon", 1e-5f, &r.epsilon));
  TRY(onnx_need_rank(n, X, "X", 1, SHAPE_MAX_RANK - 1));
  TRY(onnx_need_rank(n, SCALE, "scale", 1, 1));
  shape s = *onnx_in_shape(n, X), groups = s;
  TRY(onnx_need_dims(n, GATE, "gate", s.rank, s.dims));
  TRY(onnx_const_dim(n, s.dims[s.rank - 1], "the last dimension of X", &last));
  TRY(onnx_const_dim(n, onnx_in_shape(n, SCALE)->dims[0], "the length of scale", &group));
  CHECK_THAT(group > 0 && last % group == 0, STATUS_INVALID_MODEL,
             "X is %s, whose last dimension is no multiple of %" PRId64, SHAPE_STR(onnx_dims(n), &s), group);
  r.axis = s.rank;
  groups.rank++;
  groups.dims[s.rank - 1] = last / group;
  groups.dims[s.rank] = group;
  r.x = hlo_reshape(b, onnx_widen(b, n->in[X]), groups.rank, groups.dims);
  if (b->error) {
    return NULL;
  }
  hlo_value y = hlo_reshape(b, normalize(b, &r, n->in[SCALE], (hlo_value){0}), s.rank, s.dims);
  hlo_value gate = onnx_widen(b, n->in[GATE]);
  gate = activation == 2 ? hlo_unary(b, HLO_LOGISTIC, gate) : onnx_swish(b, gate, 1);
  n->out[0] = hlo_convert(b, hlo_binary(b, HLO_MUL, y, gate), (dtype)s.type);
  return NULL;
}

/* --- EngramGate --- */

/* Returns the gates, [B,S,G,1] in f32: sigmoid of the signed square root of the product of normalised keys and queries,
 * x and y, which have `hidden` elements. */
static hlo_value engram_gates(hlo_builder *b, hlo_value x, hlo_value y, int64_t hidden) {
  static const int64_t last = 3;
  hlo_value dot = onnx_reduce_keep(b, hlo_binary(b, HLO_MUL, x, y), HLO_REDUCE_ADD, 1, &last);
  dot = onnx_times(b, dot, 1 / sqrt((double)hidden));
  hlo_value size = onnx_binary_scalar(b, HLO_MAX, hlo_unary(b, HLO_ABS, dot), 1e-6);
  size = hlo_binary(b, HLO_MUL, hlo_unary(b, HLO_SIGN, dot), hlo_unary(b, HLO_SQRT, size));
  return hlo_unary(b, HLO_LOGISTIC, size);
}

/* Multiplies the value, [B,S,H], by the gate of each of the G streams of keys and queries, [B,S,G,H]. */
status onnx_import_contrib_engram_gate(onnx_node *n) {
  enum { KEY, QUERY, VALUE, KEY_SCALE, QUERY_SCALE, CONV_SCALE };
  static const char *const scales[] = {"key_norm_scale", "query_norm_scale", "conv_norm_scale"};
  hlo_builder *b = n->b;
  row_norm r = {.axis = 3};
  int64_t hidden;
  TRY(CONTRIB_ATTRIBUTES(n, "epsilon"));
  TRY(onnx_attr_float(n->proto, "epsilon", 1e-5f, &r.epsilon));
  TRY(onnx_need_rank(n, KEY, "key", 4, 4));
  const shape s = *onnx_in_shape(n, KEY);
  TRY(onnx_const_dim(n, s.dims[3], "the last dimension of key", &hidden));
  TRY(onnx_need_dims(n, QUERY, "query", 4, s.dims));
  TRY(onnx_need_dims(n, VALUE, "value", 3, (dim[]){s.dims[0], s.dims[1], s.dims[3]}));
  for (uint32_t k = KEY_SCALE; k <= CONV_SCALE; k++) {
    TRY(onnx_need_dims(n, k, scales[k - KEY_SCALE], 2, s.dims + 2));
  }
  r.x = onnx_widen(b, n->in[KEY]);
  hlo_value key = normalize(b, &r, n->in[KEY_SCALE], (hlo_value){0});
  r.x = onnx_widen(b, n->in[QUERY]);
  hlo_value query = normalize(b, &r, n->in[QUERY_SCALE], (hlo_value){0});
  hlo_value gates = hlo_broadcast_to(b, engram_gates(b, key, query, hidden), &s);
  r.x = onnx_op_stretched(b, HLO_MUL, gates, onnx_insert_dim(b, onnx_widen(b, n->in[VALUE]), 2));
  n->out[0] = hlo_convert(b, r.x, (dtype)s.type);
  if (onnx_has_out(n, 1)) {
    TRY(contrib_need_input(n, CONV_SCALE, scales[2]));
    n->out[1] = hlo_convert(b, normalize(b, &r, n->in[CONV_SCALE], (hlo_value){0}), (dtype)s.type);
  }
  return NULL;
}

/* --- SkipLayerNormalization, SkipSimplifiedLayerNormalization --- */

enum { INPUT, SKIP, GAMMA, BETA, BIAS }; /* without a beta, the bias is input 3 */

/* Checks that skip has the input's dimensions.  If the input has rank 3, the first dimension of skip may also have
 * extent 1 or be left out. */
static status check_skip(const onnx_node *n) {
  const shape *x = onnx_in_shape(n, INPUT), *s = onnx_in_shape(n, SKIP);
  dim_table *t = onnx_dims(n);
  TRY(onnx_need_rank(n, SKIP, "skip", x->rank == 3 ? 2 : x->rank, x->rank));
  int more = x->rank - s->rank;
  bool fits = true;
  for (int d = 0; d < s->rank; d++) {
    bool once = x->rank == 3 && more == 0 && d == 0 && dim_known_equal(t, s->dims[0], 1);
    fits = fits && (once || dim_equal(t, s->dims[d], x->dims[d + more]));
  }
  CHECK_THAT(fits, STATUS_INVALID_MODEL, "skip is %s, which does not fit input, %s", SHAPE_STR(onnx_dims(n), s),
             SHAPE_STR(onnx_dims(n), x));
  return NULL;
}

static status skip_norm(onnx_node *n, bool centered) {
  hlo_builder *b = n->b;
  row_norm r = {.centered = centered};
  uint32_t bias = centered ? BIAS : BETA;
  TRY(CONTRIB_ATTRIBUTES(n, "epsilon"));
  TRY(onnx_attr_float(n->proto, "epsilon", 1e-12f, &r.epsilon));
  TRY(onnx_need_rank(n, INPUT, "input", 2, 3));
  TRY(check_skip(n));
  const shape *x = onnx_in_shape(n, INPUT);
  const dim *hidden = &x->dims[x->rank - 1];
  TRY(onnx_need_dims(n, GAMMA, "gamma", 1, hidden));
  TRY(centered ? onnx_need_dims(n, BETA, "beta", 1, hidden) : NULL);
  TRY(onnx_need_dims(n, bias, "bias", 1, hidden));
  dtype type = hlo_type(n->in[INPUT]);
  r.axis = x->rank - 1;
  r.x = onnx_op_stretched(b, HLO_ADD, onnx_widen(b, n->in[INPUT]), onnx_widen(b, n->in[SKIP]));
  r.x = onnx_has_in(n, bias) ? onnx_op_stretched(b, HLO_ADD, r.x, onnx_widen(b, n->in[bias])) : r.x;
  n->out[0] = hlo_convert(b, normalize(b, &r, n->in[GAMMA], centered ? optional(n, BETA) : (hlo_value){0}), type);
  n->out[1] = r.mean; /* has no def if not centered; import.c then refuses a node that lists this output */
  n->out[2] = r.inverse;
  n->out[3] = hlo_convert(b, r.x, type);
  return NULL;
}

status onnx_import_contrib_skip_layer_normalization(onnx_node *n) { return skip_norm(n, true); }
status onnx_import_contrib_skip_simplified_layer_normalization(onnx_node *n) { return skip_norm(n, false); }

/* --- EmbedLayerNormalization, QEmbedLayerNormalization --- */

enum { IDS, SEGMENTS, WORD_TABLE, POSITION_TABLE, SEGMENT_TABLE, EMBED_GAMMA, EMBED_BETA, MASK, POSITIONS };

/* QEmbedLayerNormalization has no position_ids; its tables, gamma and beta are bytes.  The scale of input WORD_TABLE +
 * k is input Q_SCALES + k, and its zero point is input Q_ZERO_POINTS + k. */
enum { Q_SCALES = 8, Q_ZERO_POINTS = 13 };
static bool is_quantized(const onnx_node *n) { return dtype_is_int(hlo_type(n->in[WORD_TABLE])); }

/* Returns x, which is input k or rows of it, in f32. */
static status dequantized(const onnx_node *n, uint32_t k, hlo_value x, hlo_value *out) {
  hlo_builder *b = n->b;
  if (!is_quantized(n)) {
    *out = hlo_convert(b, x, DTYPE_F32);
    return NULL;
  }
  uint32_t scale = Q_SCALES + k - WORD_TABLE, zero = Q_ZERO_POINTS + k - WORD_TABLE;
  TRY(contrib_need_input(n, scale, "of a scale"));
  TRY(contrib_need_input(n, zero, "of a zero point"));
  TRY(onnx_need_one_element(n, scale, "a scale"));
  TRY(onnx_need_one_element(n, zero, "a zero point"));
  hlo_value point = hlo_convert(b, hlo_reshape(b, n->in[zero], 0, NULL), DTYPE_S32);
  x = onnx_op_stretched(b, HLO_SUB, hlo_convert(b, x, DTYPE_S32), point);
  *out = onnx_op_stretched(b, HLO_MUL, hlo_convert(b, x, DTYPE_F32), hlo_reshape(b, n->in[scale], 0, NULL));
  return NULL;
}

/* Returns the rows of input `table` that the numbers in input `ids` pick, in f32. */
static status embed(const onnx_node *n, uint32_t ids, const char *what, uint32_t table, hlo_value *out) {
  TRY(onnx_check_below(n, n->in[ids], what, onnx_in_shape(n, table)->dims[0]));
  hlo_value rows = hlo_take(n->b, n->in[table], hlo_convert(n->b, n->in[ids], DTYPE_S64), 0);
  return dequantized(n, table, rows, out);
}

static status check_embeddings(const onnx_node *n) {
  static const char *const tables[] = {"word_embedding", "position_embedding", "segment_embedding"};
  dim_table *t = onnx_dims(n);
  TRY(onnx_need_rank(n, IDS, "input_ids", 2, 2));
  for (uint32_t k = WORD_TABLE; k <= EMBED_BETA; k++) {
    TRY(k == SEGMENT_TABLE ? NULL
                           : contrib_need_input(n, k, k < SEGMENT_TABLE ? tables[k - WORD_TABLE] : "gamma or beta"));
  }
  CHECK_THAT(onnx_has_in(n, SEGMENTS) == onnx_has_in(n, SEGMENT_TABLE), STATUS_INVALID_MODEL,
             "segment_ids and segment_embedding must be given together");
  for (uint32_t k = WORD_TABLE; k <= SEGMENT_TABLE; k++) {
    TRY(onnx_has_in(n, k) ? onnx_need_rank(n, k, tables[k - WORD_TABLE], 2, 2) : NULL);
  }
  dim hidden = onnx_in_shape(n, WORD_TABLE)->dims[1];
  for (uint32_t k = POSITION_TABLE; k <= SEGMENT_TABLE; k++) {
    CHECK_THAT(!onnx_has_in(n, k) || dim_equal(t, onnx_in_shape(n, k)->dims[1], hidden), STATUS_INVALID_MODEL,
               "word_embedding is %s but %s is %s; the last dimensions differ",
               SHAPE_STR(onnx_dims(n), onnx_in_shape(n, WORD_TABLE)), tables[k - WORD_TABLE],
               SHAPE_STR(onnx_dims(n), onnx_in_shape(n, k)));
  }
  TRY(onnx_need_dims(n, EMBED_GAMMA, "gamma", 1, &hidden));
  TRY(onnx_need_dims(n, EMBED_BETA, "beta", 1, &hidden));
  const dim *ids = onnx_in_shape(n, IDS)->dims;
  TRY(onnx_need_dims(n, SEGMENTS, "segment_ids", 2, ids));
  TRY(onnx_need_dims(n, MASK, "mask", 2, ids));
  if (!is_quantized(n) && onnx_has_in(n, POSITIONS)) {
    TRY(onnx_need_rank(n, POSITIONS, "position_ids", 2, 2));
    bool once = dim_known_equal(t, onnx_in_shape(n, POSITIONS)->dims[0], 1);
    TRY(onnx_need_dims(n, POSITIONS, "position_ids", 2, (dim[]){once ? 1 : ids[0], ids[1]}));
  }
  return NULL;
}

/* Returns the position embeddings, [batch or 1, steps, hidden]; without position_ids they are the first rows of the
 * table. */
static status embed_positions(const onnx_node *n, hlo_value *out) {
  dim steps = onnx_in_shape(n, IDS)->dims[1];
  const shape *table = onnx_in_shape(n, POSITION_TABLE);
  if (!is_quantized(n) && onnx_has_in(n, POSITIONS)) {
    return embed(n, POSITIONS, "position_ids", POSITION_TABLE, out);
  }
  CHECK_THAT(dim_at_most(onnx_dims(n), steps, table->dims[0]), STATUS_INVALID_MODEL,
             "position_embedding is %s, which has too few rows for input_ids, %s", SHAPE_STR(onnx_dims(n), table),
             SHAPE_STR(onnx_dims(n), onnx_in_shape(n, IDS)));
  TRY(dequantized(n, POSITION_TABLE, hlo_slice_dim(n->b, n->in[POSITION_TABLE], 0, 0, steps), out));
  *out = onnx_insert_dim(n->b, *out, 0);
  return NULL;
}

/* Returns the number of ones in each row of the mask; zeros without a mask. */
static hlo_value count_masked(const onnx_node *n) {
  hlo_builder *b = n->b;
  int64_t steps = 1;
  if (!onnx_has_in(n, MASK)) {
    return hlo_splat(b, shape_make(DTYPE_S32, 1, onnx_in_shape(n, IDS)->dims), 0);
  }
  hlo_value ones = hlo_convert(b, onnx_compare_scalar(b, HLO_EQ, n->in[MASK], 1), DTYPE_S32);
  return hlo_reduce(b, ones, HLO_REDUCE_ADD, 1, &steps);
}

status onnx_import_contrib_embed_layer_normalization(onnx_node *n) {
  hlo_builder *b = n->b;
  hlo_value word, position, segment, gamma, beta;
  int64_t kind;
  row_norm r = {.axis = 2, .centered = true};
  TRY(CONTRIB_ATTRIBUTES(n, "epsilon", "mask_index_type"));
  TRY(onnx_attr_float(n->proto, "epsilon", 1e-12f, &r.epsilon));
  /* mask_index_type only tells whether output 1 exists. */
  TRY(onnx_attr_int_in(n->proto, "mask_index_type", 0, 0, 1, &kind));
  TRY(check_embeddings(n));
  TRY(embed(n, IDS, "input_ids", WORD_TABLE, &word));
  TRY(embed_positions(n, &position));
  r.x = onnx_op_stretched(b, HLO_ADD, word, position);
  if (onnx_has_in(n, SEGMENTS)) {
    TRY(embed(n, SEGMENTS, "segment_ids", SEGMENT_TABLE, &segment));
    r.x = hlo_binary(b, HLO_ADD, r.x, segment);
  }
  TRY(dequantized(n, EMBED_GAMMA, n->in[EMBED_GAMMA], &gamma));
  TRY(dequantized(n, EMBED_BETA, n->in[EMBED_BETA], &beta));
  dtype type = is_quantized(n) ? DTYPE_F32 : hlo_type(n->in[WORD_TABLE]);
  n->out[0] = hlo_convert(b, normalize(b, &r, gamma, beta), type);
  n->out[1] = count_masked(n);
  if (!is_quantized(n)) {
    n->out[2] = hlo_convert(b, r.x, type);
  }
  return NULL;
}
