/* matmul_quantized.c - the importers of products of floats with small integers in blocks, and of quantised products
 * with floating-point results. */
#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/contrib/bits.h"

/* Adds input k, a bias along the last dimension, to y if it is given. */
static status add_bias(const onnx_node *n, uint32_t k, hlo_value *y) {
  if (n->b->error || !onnx_has_in(n, k)) {
    return NULL;
  }
  const shape *s = hlo_shape(*y);
  TRY(onnx_need_dims(n, k, "bias", 1, &s->dims[s->rank - 1]));
  *y = onnx_op_stretched(n->b, HLO_ADD, *y, hlo_convert(n->b, n->in[k], hlo_type(*y)));
  return NULL;
}

/* --- MatMulNBits --- */

enum { A, B, SCALES, ZERO_POINTS, G_IDX, BIAS };

static status read_bit_weights(const onnx_node *n, contrib_bits *w) {
  int64_t prepacked, accuracy;
  TRY(CONTRIB_ATTRIBUTES(n, "K", "N", "bits", "block_size", "accuracy_level", "weight_prepacked"));
  TRY(onnx_attr_required(n->proto, "K"));
  TRY(onnx_attr_required(n->proto, "N"));
  TRY(onnx_attr_required(n->proto, "block_size"));
  TRY(onnx_attr_int_in(n->proto, "K", 0, 1, INT32_MAX, &w->sums));
  TRY(onnx_attr_int_in(n->proto, "N", 0, 1, INT32_MAX, &w->columns));
  TRY(onnx_attr_int(n->proto, "bits", 4, &w->bits));
  TRY(onnx_attr_int_in(n->proto, "block_size", 0, 16, INT32_MAX, &w->block));
  CHECK_THAT((w->block & (w->block - 1)) == 0, STATUS_INVALID_MODEL, "block_size is %" PRId64 ", no power of two",
             w->block);
  CHECK_THAT(w->bits == 2 || w->bits == 4 || w->bits == 8, STATUS_UNSUPPORTED,
             "weights of %" PRId64 " bits are not supported", w->bits);
  /* accuracy_level allows A to be rounded to fewer bits; here A is never rounded. */
  TRY(onnx_attr_int(n->proto, "accuracy_level", 0, &accuracy));
  TRY(onnx_attr_int(n->proto, "weight_prepacked", 0, &prepacked));
  CHECK_THAT(!prepacked, STATUS_UNSUPPORTED, "weight_prepacked is not supported");
  w->n_blocks = (w->sums + w->block - 1) / w->block;
  return contrib_no_input(n, G_IDX, "g_idx", "permuted blocks are not supported");
}

/* Checks that input k has an element for each block, and returns it as [columns, blocks]. */
static status of_blocks(const onnx_node *n, const contrib_bits *w, uint32_t k, const char *what, hlo_value *out) {
  const shape *s = onnx_in_shape(n, k);
  dim want[] = {w->columns, w->n_blocks};
  bool flat = s->rank == 1;
  TRY(onnx_need_dims(n, k, what, flat ? 1 : 2, flat ? (dim[]){w->columns * w->n_blocks} : want));
  *out = hlo_reshape(n->b, n->in[k], 2, want);
  return NULL;
}

/* Returns the zero points, [columns, blocks] in s32, or in f32 if the model has them as floats.  Without zero points in
 * the model, returns their default as a scalar. */
static status read_zero_points(const onnx_node *n, const contrib_bits *w, hlo_value *out) {
  if (!onnx_has_in(n, ZERO_POINTS)) {
    *out = contrib_middle(n->b, w->bits);
    return NULL;
  }
  if (dtype_is_float(hlo_type(n->in[ZERO_POINTS]))) {
    TRY(of_blocks(n, w, ZERO_POINTS, "zero_points", out));
    *out = hlo_convert(n->b, *out, DTYPE_F32);
    return NULL;
  }
  const literal *packed;
  TRY(onnx_const_literal(n, ZERO_POINTS, "zero_points", &packed));
  TRY(contrib_unpack(n, w->bits, packed, "zero_points", w->columns, w->n_blocks, out));
  *out = hlo_convert(n->b, *out, DTYPE_S32);
  return NULL;
}

/* Returns the weights, f32[columns, blocks * block]. */
static status dequantized(const onnx_node *n, const contrib_bits *w, hlo_value *out) {
  const literal *packed;
  hlo_value scale, zero;
  TRY(onnx_const_literal(n, B, "B", &packed));
  TRY(of_blocks(n, w, SCALES, "scales", &scale));
  TRY(read_zero_points(n, w, &zero));
  return contrib_dequantize(n, w, packed, scale, zero, out);
}

status onnx_import_contrib_matmul_nbits(onnx_node *n) {
  hlo_builder *b = n->b;
  contrib_bits w;
  hlo_value weights;
  TRY(read_bit_weights(n, &w));
  TRY(onnx_need_rank(n, A, "A", 1, SHAPE_MAX_RANK));
  const shape *s = onnx_in_shape(n, A);
  int64_t last = s->rank - 1, first = 1, padding[SHAPE_MAX_RANK] = {0}, none[SHAPE_MAX_RANK] = {0};
  CHECK_THAT(dim_equal(onnx_dims(n), s->dims[last], w.sums), STATUS_INVALID_MODEL, "A is %s, but K is %" PRId64,
             SHAPE_STR(onnx_dims(n), s), w.sums);
  TRY(dequantized(n, &w, &weights));
  hlo_value x = hlo_convert(b, n->in[A], DTYPE_F32);
  padding[last] = w.n_blocks * w.block - w.sums;
  if (padding[last]) { /* K is no multiple of the block size, so that A is shorter than the blocks of a column */
    x = hlo_pad(b, x, hlo_scalar(b, DTYPE_F32, 0), none, padding, NULL);
  }
  hlo_dot_dims d = {.n_contract = 1, .lhs_contract = &last, .rhs_contract = &first};
  hlo_value y = hlo_dot(b, x, weights, &d);
  TRY(add_bias(n, BIAS, &y));
  n->out[0] = hlo_convert(b, y, hlo_type(n->in[A]));
  return NULL;
}

/* --- products of bytes with floating-point results --- */

status contrib_column_scale(const onnx_node *n, uint32_t k, const char *what, const shape *y, hlo_value *out) {
  TRY(contrib_is_single(n, k) ? NULL : onnx_need_dims(n, k, what, 1, &y->dims[y->rank - 1]));
  *out = onnx_along(n->b, hlo_convert(n->b, n->in[k], DTYPE_F32), y, y->rank ? y->rank - 1 : 0);
  return NULL;
}

status contrib_scaled_product(const onnx_node *n, const hlo_value in[4], hlo_value a_scale, uint32_t k,
                              const char *what, hlo_value *out) {
  hlo_builder *b = n->b;
  hlo_value result[2], scale;
  if (b->error) {
    return NULL;
  }
  onnx_node product = contrib_as(n, 10, 4, in);
  product.out = result;
  TRY(onnx_import_matmul_integer(&product));
  if (b->error) {
    return NULL;
  }
  shape s = shape_with_type(*hlo_shape(result[0]), DTYPE_F32);
  TRY(contrib_column_scale(n, k, what, &s, &scale));
  scale = hlo_binary(b, HLO_MUL, hlo_broadcast_to(b, hlo_convert(b, a_scale, DTYPE_F32), &s), scale);
  *out = hlo_binary(b, HLO_MUL, hlo_convert(b, result[0], DTYPE_F32), scale);
  return NULL;
}

/* A has one scale and one zero point; B has one of each, or one for each column. */
status onnx_import_contrib_matmul_integer_to_float(onnx_node *n) {
  hlo_value in[] = {n->in[0], n->in[1], n->in[4], n->in[5]}, y = {0};
  TRY(CONTRIB_ATTRIBUTES(n, NULL));
  TRY(onnx_has_in(n, 4) ? onnx_need_one_element(n, 4, "a_zero_point") : NULL);
  TRY(contrib_scaled_product(n, in, onnx_scalar_input(n, 2, "a_scale"), 3, "b_scale", &y));
  TRY(add_bias(n, 6, &y));
  n->out[0] = hlo_convert(n->b, y, hlo_type(n->in[2]));
  return NULL;
}

/* A is quantised to u8 by the range of its elements. */
status onnx_import_contrib_dynamic_quantize_matmul(onnx_node *n) {
  hlo_value quantized[3] = {{0}};
  TRY(CONTRIB_ATTRIBUTES(n, NULL));
  onnx_node quantize = contrib_as(n, 11, 1, n->in);
  quantize.out = quantized;
  TRY(onnx_import_dynamic_quantize_linear(&quantize));
  hlo_value in[] = {quantized[0], n->in[1], quantized[2], n->in[3]};
  TRY(contrib_scaled_product(n, in, quantized[1], 2, "b_scale", &n->out[0]));
  return add_bias(n, 4, &n->out[0]);
}
