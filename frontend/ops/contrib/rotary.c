/* rotary.c - reads the angles of rotary embeddings and rotates heads (rotary.h); the importers of RotaryEmbedding,
 * whose positions may be given as one offset, and MRotaryEmbedding, whose tokens have three positions. */
#include "frontend/ops/contrib/rotary.h"

#include <inttypes.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/nn/attention.h"

/* Checks inputs k and k + 1, cos_cache and sin_cache, for heads of `head` elements, and that they have a row for each
 * position.  Sets *half to the length of a row. */
static status check_caches(const onnx_node *n, uint32_t k, hlo_value positions, int64_t head, int64_t *half) {
  TRY(contrib_need_input(n, k, "cos_cache"));
  TRY(contrib_need_input(n, k + 1, "sin_cache"));
  TRY(onnx_need_rank(n, k, "cos_cache", 2, 2));
  const shape *s = onnx_in_shape(n, k);
  TRY(onnx_need_dims(n, k + 1, "sin_cache", 2, s->dims));
  TRY(onnx_const_dim(n, s->dims[1], "the last dimension of cos_cache", half));
  CHECK_THAT(*half >= 1 && *half <= head / 2, STATUS_INVALID_MODEL,
             "cos_cache is %s; its last dimension exceeds half of a head of %" PRId64, SHAPE_STR(onnx_dims(n), s),
             head);
  return onnx_check_below(n, positions, "positions", s->dims[0]);
}

status contrib_read_angles(const onnx_node *n, uint32_t k, hlo_value positions, int64_t head, contrib_angles *out) {
  hlo_value *tables[] = {&out->cosine, &out->sine};
  int64_t half;
  TRY(check_caches(n, k, positions, head, &half));
  for (uint32_t i = 0; i < 2; i++) {
    hlo_value rows = hlo_convert(n->b, hlo_take(n->b, n->in[k + i], positions, 0), DTYPE_F32);
    *tables[i] = onnx_insert_dim(n->b, rows, 2);
  }
  out->width = 2 * half;
  return NULL;
}

hlo_value contrib_rotate(hlo_builder *b, const contrib_angles *angles, hlo_value x) {
  hlo_value y = onnx_rotate_heads(b, hlo_convert(b, x, DTYPE_F32), angles->cosine, angles->sine, angles->width,
                                  angles->interleaved);
  return x.def ? hlo_convert(b, y, hlo_type(x)) : y;
}

/* --- RotaryEmbedding --- */

enum { INPUT, POSITIONS, COS_CACHE, SIN_CACHE };

typedef struct heads {
  bool packed; /* whether the input has rank 3, with the heads and their elements in one dimension */
  dim batch, steps, count;
  int64_t size;
} heads;

/* Without num_heads, the caches tell the size of a head. */
static status read_heads(const onnx_node *n, heads *h) {
  const shape *x = onnx_in_shape(n, INPUT);
  int64_t hidden, count, half, width;
  TRY(onnx_need_rank(n, INPUT, "input", 3, 4));
  TRY(onnx_need_rank(n, COS_CACHE, "cos_cache", 2, 2));
  TRY(onnx_attr_int_in(n->proto, "num_heads", 0, 0, INT32_MAX, &count));
  TRY(onnx_attr_int_in(n->proto, "rotary_embedding_dim", 0, 0, INT32_MAX, &width));
  TRY(onnx_const_dim(n, onnx_in_shape(n, COS_CACHE)->dims[1], "the last dimension of cos_cache", &half));
  TRY(onnx_const_dim(n, x->dims[x->rank - 1], "the last dimension of input", &hidden));
  *h = (heads){.packed = x->rank == 3, .batch = x->dims[0], .steps = x->dims[x->rank == 3 ? 1 : 2]};
  if (!h->packed) {
    h->count = x->dims[1];
    h->size = hidden;
  } else {
    CHECK_THAT(!width || count, STATUS_INVALID_MODEL, "rotary_embedding_dim is given without num_heads");
    h->size = count ? hidden / count : 2 * half;
    h->count = h->size ? hidden / h->size : 0;
    CHECK_THAT(h->size && h->count * h->size == hidden, STATUS_INVALID_MODEL,
               "input is %s, whose last dimension is no multiple of %" PRId64, SHAPE_STR(onnx_dims(n), x),
               count ? count : h->size);
  }
  CHECK_THAT(2 * half == (width ? width : h->size), STATUS_INVALID_MODEL,
             "cos_cache is %s, but %" PRId64 " elements of each head are rotated",
             SHAPE_STR(onnx_dims(n), onnx_in_shape(n, COS_CACHE)), width ? width : h->size);
  return NULL;
}

/* Returns the position of each step, s64[B or 1, S]. */
static status read_positions(const onnx_node *n, const heads *h, hlo_value *out) {
  const shape *s = onnx_in_shape(n, POSITIONS);
  TRY(onnx_need_rank(n, POSITIONS, "position_ids", 1, 2));
  *out = n->in[POSITIONS];
  if (s->rank == 2) {
    return onnx_need_dims(n, POSITIONS, "position_ids", 2, (dim[]){h->batch, h->steps});
  }
  TRY(onnx_need_one_element(n, POSITIONS, "position_ids"));
  hlo_value step = hlo_iota(n->b, shape_make(DTYPE_S64, 2, (dim[]){1, h->steps}), 1);
  *out = onnx_op_stretched(n->b, HLO_ADD, step, hlo_reshape(n->b, *out, 0, NULL));
  return NULL;
}

/* Returns angles [B, S, 1, half] as [B, 1, S, half]. */
static hlo_value steps_behind_heads(hlo_builder *b, hlo_value angles) {
  if (b->error) {
    return angles;
  }
  const dim *dims = hlo_shape(angles)->dims;
  return hlo_reshape(b, angles, 4, (dim[]){dims[0], 1, dims[1], dims[3]});
}

/* Returns the rotated input. */
static hlo_value rotate_input(const onnx_node *n, const heads *h, const contrib_angles *angles) {
  hlo_builder *b = n->b;
  dim dims[] = {h->batch, h->steps, h->count, h->size};
  hlo_value x = n->in[INPUT];
  if (h->packed) {
    return hlo_reshape(b, contrib_rotate(b, angles, hlo_reshape(b, x, 4, dims)), 3, onnx_in_shape(n, INPUT)->dims);
  }
  contrib_angles turned = *angles;
  turned.cosine = steps_behind_heads(b, angles->cosine);
  turned.sine = steps_behind_heads(b, angles->sine);
  return contrib_rotate(b, &turned, x);
}

/* With is_packed_batching, ONNX Runtime accepts more steps than the caches have rows.  Here that needs no permission,
 * since each position is checked. */
status onnx_import_contrib_rotary_embedding(onnx_node *n) {
  heads h;
  float scale;
  contrib_angles angles;
  hlo_value positions;
  TRY(CONTRIB_ATTRIBUTES(n, "num_heads", "rotary_embedding_dim", "interleaved", "is_packed_batching", "scale"));
  TRY(onnx_attr_bool(n->proto, "interleaved", false, &angles.interleaved));
  TRY(onnx_attr_float(n->proto, "scale", 1, &scale));
  CHECK_THAT(scale == 1, STATUS_UNSUPPORTED, "a scale other than 1 is not supported");
  TRY(read_heads(n, &h));
  TRY(read_positions(n, &h, &positions));
  TRY(contrib_read_angles(n, COS_CACHE, positions, h.size, &angles));
  n->out[0] = rotate_input(n, &h, &angles);
  return NULL;
}

/* --- MRotaryEmbedding: a token has the positions T, H and W, and each pair of elements is rotated by one of them ---
 */

/* Reads which of the three positions rotates each of the `half` pairs.  The first section of pairs has T, the second H
 * and the third W; if the layout is interleaved, H and W have every third pair as long as their sections last, and T
 * has all others. */
static status read_sections(const onnx_node *n, int64_t half, int64_t **out) {
  const int64_t *section;
  size_t count;
  int64_t interleaved, left = half;
  TRY(onnx_attr_int_in(n->proto, "mrope_layout", 0, 0, 1, &interleaved));
  TRY(onnx_attr_required(n->proto, "mrope_section"));
  TRY(onnx_attr_ints(n->proto, "mrope_section", &section, &count));
  CHECK_THAT(count == 3, STATUS_INVALID_MODEL, "mrope_section has %zu numbers; there must be 3", count);
  for (int k = 0; k < 3; k++) {
    CHECK_THAT(section[k] >= 0 && section[k] <= left, STATUS_INVALID_MODEL,
               "mrope_section has the number %" PRId64 "; its numbers must be at least 0 and have the sum %" PRId64,
               section[k], half);
    left -= section[k];
  }
  CHECK_THAT(left == 0, STATUS_INVALID_MODEL,
             "the sum of mrope_section is %" PRId64 "; it must be %" PRId64 ", half of the elements that are rotated",
             half - left, half);
  *out = ARENA_NEW_N(n->arena, int64_t, half);
  for (int64_t k = 0; k < half; k++) {
    int64_t third = k % 3;
    (*out)[k] = interleaved ? (k < 3 * section[third] ? third : 0) : (k >= section[0]) + (k >= section[0] + section[1]);
  }
  return NULL;
}

/* Returns the cosine or sine of each pair, f32[B,S,1,half]: element (positions[b,s,k], k) of input `table`, multiplied
 * by the scale. */
static hlo_value take_pairs(const onnx_node *n, uint32_t table, hlo_value positions, float scale) {
  hlo_builder *b = n->b;
  const shape *s = onnx_in_shape(n, table);
  dim size = dim_mul(onnx_dims(n), s->dims[0], s->dims[1]);
  hlo_value index = onnx_binary_dim(b, HLO_MUL, positions, s->dims[1]);
  index = hlo_binary(b, HLO_ADD, index, hlo_iota(b, *hlo_shape(positions), 2));
  hlo_value x = hlo_take(b, hlo_reshape(b, n->in[table], 1, &size), index, 0);
  if (scale != 1) { /* the scaled number is rounded to the type of the table */
    x = hlo_convert(b, onnx_times(b, hlo_convert(b, x, DTYPE_F32), scale), (dtype)s->type);
  }
  return onnx_insert_dim(b, hlo_convert(b, x, DTYPE_F32), 2);
}

status onnx_import_contrib_mrotary_embedding(onnx_node *n) {
  static const int64_t pairs_last[] = {1, 2, 0};
  heads h;
  float scale;
  int64_t half, *section;
  contrib_angles angles;
  TRY(CONTRIB_ATTRIBUTES(n, "mrope_section", "mrope_layout", "num_heads", "rotary_embedding_dim", "interleaved",
                         "is_packed_batching", "scale"));
  TRY(onnx_attr_bool(n->proto, "interleaved", false, &angles.interleaved));
  TRY(onnx_attr_float(n->proto, "scale", 1, &scale));
  TRY(read_heads(n, &h));
  TRY(onnx_need_dims(n, POSITIONS, "position_ids", 3, (dim[]){3, h.batch, h.steps}));
  TRY(check_caches(n, COS_CACHE, n->in[POSITIONS], h.size, &half));
  TRY(read_sections(n, half, &section));
  hlo_value positions = onnx_take_known(n->b, n->in[POSITIONS], 0, section, half);
  positions = hlo_transpose(n->b, positions, pairs_last);
  if (n->b->error) {
    return NULL;
  }
  angles.cosine = take_pairs(n, COS_CACHE, positions, scale);
  angles.sine = take_pairs(n, SIN_CACHE, positions, scale);
  angles.width = 2 * half;
  n->out[0] = rotate_input(n, &h, &angles);
  return NULL;
}
