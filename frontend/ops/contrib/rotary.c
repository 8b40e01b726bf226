/* rotary.c - reads the angles of rotary embeddings and rotates heads (rotary.h); the importer of RotaryEmbedding, whose
 * positions may be given as one offset. */
#include "frontend/ops/contrib/rotary.h"

#include <inttypes.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/nn/attention.h"

status contrib_read_angles(const onnx_node *n, uint32_t k, hlo_value positions, int64_t head, contrib_angles *out) {
  static const char *const names[] = {"cos_cache", "sin_cache"};
  hlo_value *tables[] = {&out->cosine, &out->sine};
  int64_t half;
  TRY(contrib_need_input(n, k, names[0]));
  TRY(contrib_need_input(n, k + 1, names[1]));
  TRY(onnx_need_rank(n, k, names[0], 2, 2));
  const shape *s = onnx_in_shape(n, k);
  TRY(onnx_need_dims(n, k + 1, names[1], 2, s->dims));
  TRY(onnx_const_dim(n, s->dims[1], "the last dimension of cos_cache", &half));
  CHECK_THAT(half >= 1 && half <= head / 2, STATUS_INVALID_MODEL,
             "cos_cache is %s; its last dimension exceeds half of a head of %" PRId64, SHAPE_STR(NULL, s), head);
  TRY(onnx_check_below(n, positions, "positions", s->dims[0]));
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
               "input is %s, whose last dimension is no multiple of %" PRId64, SHAPE_STR(NULL, x),
               count ? count : h->size);
  }
  CHECK_THAT(2 * half == (width ? width : h->size), STATUS_INVALID_MODEL,
             "cos_cache is %s, but %" PRId64 " elements of each head are rotated",
             SHAPE_STR(NULL, onnx_in_shape(n, COS_CACHE)), width ? width : h->size);
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

status onnx_import_contrib_rotary_embedding(onnx_node *n) {
  static const int64_t swap[] = {0, 2, 1, 3};
  hlo_builder *b = n->b;
  heads h;
  float scale;
  int64_t ragged;
  contrib_angles angles;
  hlo_value positions, x = n->in[INPUT];
  TRY(CONTRIB_ATTRIBUTES(n, "num_heads", "rotary_embedding_dim", "interleaved", "is_packed_batching", "scale"));
  TRY(onnx_attr_bool(n->proto, "interleaved", false, &angles.interleaved));
  TRY(onnx_attr_float(n->proto, "scale", 1, &scale));
  TRY(onnx_attr_int(n->proto, "is_packed_batching", 0, &ragged));
  CHECK_THAT(scale == 1 && !ragged, STATUS_UNSUPPORTED, "%s is not supported",
             ragged ? "is_packed_batching" : "a scale other than 1");
  TRY(read_heads(n, &h));
  TRY(read_positions(n, &h, &positions));
  TRY(contrib_read_angles(n, COS_CACHE, positions, h.size, &angles));
  dim dims[] = {h.batch, h.steps, h.count, h.size};
  x = contrib_rotate(b, &angles, h.packed ? hlo_reshape(b, x, 4, dims) : hlo_transpose(b, x, swap));
  n->out[0] = h.packed ? hlo_reshape(b, x, 3, onnx_in_shape(n, INPUT)->dims) : hlo_transpose(b, x, swap);
  return NULL;
}
