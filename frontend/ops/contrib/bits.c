/* bits.c - reads weights of few bits (bits.h). */
#include "frontend/ops/contrib/bits.h"

#include <inttypes.h>
#include <string.h>

/* Unpacks `count` numbers of `bits` bits, the first one in the lowest bits of a byte.  Whole bytes are unpacked by
 * loops that compilers turn into vector instructions, since models have billions of such numbers. */
static void unpack_list(int64_t bits, int64_t count, const uint8_t *from, uint8_t *to) {
  int64_t per_byte = 8 / bits, whole = count / per_byte;
  if (bits == 8) {
    memcpy(to, from, (size_t)count);
  } else if (bits == 4) {
    for (int64_t i = 0; i < whole; i++) {
      to[2 * i] = from[i] & 15;
      to[2 * i + 1] = from[i] >> 4;
    }
  } else {
    for (int64_t i = 0; i < whole; i++) {
      for (int k = 0; k < 4; k++) {
        to[4 * i + k] = from[i] >> (2 * k) & 3;
      }
    }
  }
  for (int64_t i = whole * per_byte; i < count; i++) {
    to[i] = (uint8_t)(from[whole] >> (i % per_byte * bits) & ((1 << bits) - 1));
  }
}

status contrib_unpack(const onnx_node *n, int64_t bits, const literal *packed, const char *what, int64_t rows,
                      int64_t count, hlo_value *out) {
  int64_t per_byte = 8 / bits, bytes = (count + per_byte - 1) / per_byte;
  int64_t have = shape_elements(&packed->shape);
  CHECK_THAT(rows ? have / rows == bytes && have % rows == 0 : have == 0, STATUS_INVALID_MODEL,
             "%s is %s; %" PRId64 " lists of %" PRId64 " numbers of %" PRId64 " bits are needed", what,
             SHAPE_STR(onnx_dims(n), &packed->shape), rows, count, bits);
  dtype type = bits == 2 ? DTYPE_U2 : bits == 4 ? DTYPE_U4 : DTYPE_U8;
  shape s = shape_make(type, 2, (dim[]){rows, count});
  TRY(shape_check(&s, what));
  void *data;
  literal l = literal_new(n->arena, s, &data);
  const uint8_t *from = packed->data;
  uint8_t *to = data;
  for (int64_t r = 0; r < rows; r++) {
    unpack_list(bits, count, from + r * bytes, to + r * count);
  }
  *out = hlo_constant(n->b, l);
  return NULL;
}

hlo_value contrib_middle(hlo_builder *b, int64_t bits) { return hlo_scalar(b, DTYPE_S32, (double)(1 << (bits - 1))); }

/* Converts q, a constant, without constant folding, so that the integers stay in the module and a target can multiply
 * by them. */
static hlo_value convert_kept(hlo_builder *b, hlo_value q, dtype to) {
  hlo_eval_fn *eval = b->eval;
  b->eval = NULL;
  q = hlo_convert(b, q, to);
  b->eval = eval;
  return q;
}

status contrib_dequantize(const onnx_node *n, const contrib_bits *w, const literal *packed, hlo_value scale,
                          hlo_value zero, hlo_value *out) {
  static const int64_t at[] = {0, 1};
  hlo_builder *b = n->b;
  hlo_value q;
  dim split[] = {w->columns, w->n_blocks, w->block};
  TRY(contrib_unpack(n, w->bits, packed, "B", w->columns * w->n_blocks, w->block, &q));
  if (b->error) {
    return NULL;
  }
  shape s = shape_make(hlo_type(zero), 3, split);
  hlo_value x = convert_kept(b, hlo_reshape(b, q, 3, split), hlo_type(zero));
  x = hlo_binary(b, HLO_SUB, x, hlo_broadcast(b, zero, s, hlo_rank(zero) ? at : NULL));
  s.type = DTYPE_F32;
  x = hlo_binary(b, HLO_MUL, hlo_convert(b, x, DTYPE_F32), hlo_broadcast(b, hlo_convert(b, scale, DTYPE_F32), s, at));
  *out = hlo_reshape(b, x, 2, (dim[]){w->columns, w->n_blocks * w->block});
  return NULL;
}
