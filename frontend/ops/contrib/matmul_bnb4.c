/* matmul_bnb4.c - the importer of MatMulBnb4: weights of 4 bits in the formats FP4 and NF4 of the library bitsandbytes,
 * as ONNX Runtime's quantiser writes them. */
#include <inttypes.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/contrib/contrib.h"

enum { A, B, ABSMAX, CODES = 16 };

/* What the codes of FP4 and of NF4 stand for. */
static const float values[2][CODES] = {
    {0, 5.208333333e-03f, 0.66666667f, 1, 0.33333333f, 0.5f, 0.16666667f, 0.25f, 0, -5.208333333e-03f, -0.66666667f, -1,
     -0.33333333f, -0.5f, -0.16666667f, -0.25f},
    {-1, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f,
     -0.18477343022823334f, -0.09105003625154495f, 0, 0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f,
     0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1},
};

typedef struct weights {
  int64_t n, k, block, type; /* B is a matrix [n, k], whose numbers have one scale for each `block` in their order */
  bool transposed;
} weights;

static status read_weights(const onnx_node *n, weights *w) {
  int64_t training;
  TRY(CONTRIB_ATTRIBUTES(n, "K", "N", "block_size", "quant_type", "transB", "training_mode"));
  TRY(onnx_attr_required(n->proto, "K"));
  TRY(onnx_attr_required(n->proto, "N"));
  TRY(onnx_attr_required(n->proto, "block_size"));
  TRY(onnx_attr_required(n->proto, "quant_type"));
  TRY(onnx_attr_int_in(n->proto, "K", 0, 1, INT32_MAX, &w->k));
  TRY(onnx_attr_int_in(n->proto, "N", 0, 1, INT32_MAX, &w->n));
  TRY(onnx_attr_int_in(n->proto, "block_size", 0, 16, INT32_MAX, &w->block));
  TRY(onnx_attr_int_in(n->proto, "quant_type", 0, 0, 1, &w->type));
  TRY(onnx_attr_bool(n->proto, "transB", true, &w->transposed));
  return onnx_attr_int(n->proto, "training_mode", 0, &training); /* does not change the product */
}

/* Returns the first w->n * w->k elements of x, whose last dimension has `row` elements for each element of the first.
 */
static hlo_value flat(hlo_builder *b, const weights *w, hlo_value x, int64_t row) {
  if (b->error) {
    return x;
  }
  dim count = hlo_shape(x)->dims[0] * row;
  return hlo_slice_dim(b, hlo_reshape(b, x, 1, &count), 0, 0, w->n * w->k);
}

/* Returns the weights, f32[n, k].  The first number of a byte has its upper bits. */
static status dequantized(const onnx_node *n, const weights *w, hlo_value *out) {
  static const int64_t first = 0;
  hlo_builder *b = n->b;
  int64_t bytes = (w->n * w->k + 1) / 2, blocks = (w->n * w->k + w->block - 1) / w->block;
  CHECK_THAT(onnx_has_dims(n, onnx_in_shape(n, B), 1, (dim[]){bytes}) ||
                 onnx_has_dims(n, onnx_in_shape(n, B), 2, (dim[]){bytes, 1}),
             STATUS_INVALID_MODEL, "B is %s; %" PRId64 " bytes are needed",
             SHAPE_STR(onnx_dims(n), onnx_in_shape(n, B)), bytes);
  TRY(onnx_need_dims(n, ABSMAX, "absmax", 1, &blocks));
  hlo_value packed = hlo_reshape(b, n->in[B], 2, (dim[]){bytes, 1});
  hlo_value halves[] = {onnx_binary_scalar(b, HLO_SHR, packed, 4), onnx_binary_scalar(b, HLO_AND, packed, CODES - 1)};
  hlo_value codes = flat(b, w, hlo_concatenate(b, 2, halves, 1), 2);
  hlo_value table = onnx_f32_array(n, values[w->type], 1, (dim[]){CODES});
  hlo_value x = hlo_take(b, table, hlo_convert(b, codes, DTYPE_S32), 0);
  shape scaled = shape_make(DTYPE_F32, 2, (dim[]){blocks, w->block});
  TRY(shape_check(&scaled, "the blocks of B"));
  hlo_value scale = hlo_broadcast(b, hlo_convert(b, n->in[ABSMAX], DTYPE_F32), scaled, &first);
  x = hlo_binary(b, HLO_MUL, x, flat(b, w, scale, w->block));
  *out = hlo_reshape(b, x, 2, (dim[]){w->n, w->k});
  return NULL;
}

status onnx_import_contrib_matmul_bnb4(onnx_node *n) {
  hlo_builder *b = n->b;
  weights w;
  hlo_value matrix = {0};
  TRY(read_weights(n, &w));
  TRY(onnx_need_rank(n, A, "A", 1, SHAPE_MAX_RANK));
  const shape *s = onnx_in_shape(n, A);
  int64_t last = s->rank - 1, summed = w.transposed ? 1 : 0, want = w.transposed ? w.k : w.n;
  CHECK_THAT(dim_equal(onnx_dims(n), s->dims[last], want), STATUS_INVALID_MODEL,
             "A is %s; its last dimension must be %" PRId64, SHAPE_STR(onnx_dims(n), s), want);
  TRY(dequantized(n, &w, &matrix));
  hlo_dot_dims d = {.n_contract = 1, .lhs_contract = &last, .rhs_contract = &summed};
  hlo_value y = hlo_dot(b, hlo_convert(b, n->in[A], DTYPE_F32), matrix, &d);
  n->out[0] = hlo_convert(b, y, (dtype)s->type);
  return NULL;
}
