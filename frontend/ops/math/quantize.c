/* quantize.c - the importers of QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear. */
#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/import_helpers.h"
#include "frontend/import/symbolic.h"

typedef struct quantization {
  int64_t axis;
  int64_t block; /* the number of elements along the axis that share a scale, or 0 without blocks */
} quantization;

static bool has_one(const onnx_node *n, const shape *s) {
  return dim_known_equal(onnx_dims(n), shape_dim_product(onnx_dims(n), s, 0, s->rank), 1);
}

/* Checks the shape of the scales: there is one, or one for each index of the axis, or, since version 21, one for each
 * block along the axis. */
static status check_scale(const onnx_node *n, const char *what, quantization *q) {
  dim_table *t = onnx_dims(n);
  const shape *x = onnx_in_shape(n, 0), *s = onnx_in_shape(n, 1);
  if (s->rank == 0 || (s->rank == 1 && dim_known_equal(t, s->dims[0], 1))) {
    return NULL;
  }
  CHECK_THAT(n->since >= 13, STATUS_INVALID_MODEL, "%s is %s; it must be a scalar", what, SHAPE_STR(onnx_dims(n), s));
  TRY(onnx_axis_attr(n, 1, x->rank, &q->axis));
  if (q->block == 0) {
    CHECK_THAT(s->rank == 1 && dim_equal(t, s->dims[0], x->dims[q->axis]), STATUS_INVALID_MODEL,
               "%s is %s but x is %s; one element for each slice along axis %" PRId64 " is needed", what,
               SHAPE_STR(onnx_dims(n), s), SHAPE_STR(onnx_dims(n), x), q->axis);
    return NULL;
  }
  shape want = *x;
  want.dims[q->axis] = dim_ceildiv(t, x->dims[q->axis], q->block);
  CHECK_THAT(onnx_has_dims(n, s, want.rank, want.dims), STATUS_INVALID_MODEL,
             "%s is %s but x is %s; in blocks of %" PRId64 " along axis %" PRId64 ", extent %s is needed there", what,
             SHAPE_STR(onnx_dims(n), s), SHAPE_STR(onnx_dims(n), x), q->block, q->axis,
             dim_print(n->arena, t, want.dims[q->axis]));
  return NULL;
}

static status read_quantization(const onnx_node *n, const char *what, quantization *q) {
  *q = (quantization){0};
  if (n->since >= 21) {
    TRY(onnx_attr_int_in(n->proto, "block_size", 0, 0, DIM_MAX, &q->block));
  }
  TRY(check_scale(n, what, q));
  if (onnx_has_in(n, 2)) {
    const shape *z = onnx_in_shape(n, 2), *s = onnx_in_shape(n, 1);
    bool both_one = has_one(n, z) && has_one(n, s);
    CHECK_THAT(both_one || onnx_has_dims(n, z, s->rank, s->dims), STATUS_INVALID_MODEL,
               "the zero point is %s but the scale is %s", SHAPE_STR(onnx_dims(n), z), SHAPE_STR(onnx_dims(n), s));
  }
  return NULL;
}

/* Returns a constant of n elements, all equal to v's only element.  With a constant instead of a broadcast, the
 * dequantisation of a constant bias can be folded. */
static hlo_value repeated_constant(hlo_builder *b, const literal *v, dim n) {
  size_t size = dtype_bytes((dtype)v->shape.type);
  void *data;
  literal l = literal_new(hlo_arena(b), shape_make((dtype)v->shape.type, 1, &n), &data);
  for (dim k = 0; k < n; k++) {
    memcpy((char *)data + (size_t)k * size, v->data, size);
  }
  return hlo_constant(b, l);
}

/* Broadcasts v, a scale or zero point, to x's dimensions. */
static hlo_value stretch(const onnx_node *n, const quantization *q, hlo_value v) {
  hlo_builder *b = n->b;
  const shape *x = onnx_in_shape(n, 0), *s = hlo_shape(v);
  if (v.def && hlo_literal(n->in[0]) && x->rank == 1 && hlo_literal(v) && has_one(n, s)) {
    return repeated_constant(b, hlo_literal(v), x->dims[0]);
  }
  if (v.def && x->rank == 1 && shape_same_dims(s, x)) {
    return v;
  }
  if (s->rank <= 1 && (q->block == 0 || x->rank != 1 || has_one(n, s))) {
    return onnx_along(b, v, x, q->axis);
  }
  shape repeated = *x;
  dim split[SHAPE_MAX_RANK + 1];
  int64_t at[SHAPE_MAX_RANK];
  if (x->rank == SHAPE_MAX_RANK) { /* a broadcast would need one dimension more than the maximum */
    hlo_value element = hlo_iota(b, shape_make(DTYPE_S64, 1, &x->dims[q->axis]), 0);
    return hlo_take(b, v, onnx_binary_scalar(b, HLO_DIV, element, (double)q->block), q->axis);
  }
  /* Repeats each scale `block` times along the axis, and cuts off what is beyond x's extent. */
  for (int k = 0; k < x->rank; k++) {
    at[k] = k <= q->axis ? k : k + 1;
    split[at[k]] = s->dims[k];
  }
  split[q->axis + 1] = q->block;
  v = hlo_broadcast(b, v, shape_make(hlo_type(v), x->rank + 1, split), at);
  repeated.dims[q->axis] = dim_mul(onnx_dims(n), s->dims[q->axis], q->block);
  v = hlo_reshape(b, v, x->rank, repeated.dims);
  return repeated.dims[q->axis] == x->dims[q->axis] ? v : hlo_slice_dim(b, v, q->axis, 0, x->dims[q->axis]);
}

/* Reads an attribute that states an element type, for which the standard defines 0 to mean that it is absent. */
static status optional_dtype(const onnx_node *n, const char *name, dtype def, dtype *out) {
  int64_t number;
  *out = def;
  TRY(onnx_attr_int(n->proto, name, 0, &number));
  return number ? onnx_dtype_attr(n, name, def, out) : NULL;
}

/* Converts x without constant folding if it has at least two dimensions and integers of at most 8 bits.  Such weights
 * stay integers in the module, so that a target can multiply integers. */
static hlo_value convert_kept(hlo_builder *b, hlo_value x, dtype to) {
  hlo_eval_fn *eval = b->eval;
  bool weights = hlo_rank(x) >= 2 && dtype_is_int(hlo_type(x)) && dtype_get_info(hlo_type(x))->bits <= 8;
  b->eval = weights ? NULL : eval;
  x = hlo_convert(b, x, to);
  b->eval = eval;
  return x;
}

/* If the extent of the axis is a multiple of the block size, returns true and sets *split to x's shape with the axis
 * split into two dimensions: the blocks, and the elements of a block.  A scale is then broadcast along the second of
 * them. */
static bool split_blocks(const onnx_node *n, const quantization *q, shape *split) {
  const shape *x = onnx_in_shape(n, 0);
  dim_table *t = onnx_dims(n);
  if (q->block == 0 || x->rank == SHAPE_MAX_RANK || !dim_known_equal(t, dim_mod(t, x->dims[q->axis], q->block), 0)) {
    return false;
  }
  *split = *x;
  split->rank = x->rank + 1;
  for (int d = 0; d < x->rank; d++) {
    split->dims[d <= q->axis ? d : d + 1] = x->dims[d];
  }
  split->dims[q->axis] = dim_floordiv(t, x->dims[q->axis], q->block);
  split->dims[q->axis + 1] = q->block;
  return true;
}

/* Broadcasts v, which has an element for each block, to the shape that split_blocks returned. */
static hlo_value stretch_over_blocks(hlo_builder *b, const quantization *q, hlo_value v, const shape *split) {
  int64_t at[SHAPE_MAX_RANK];
  shape s = *split;
  s.type = hlo_type(v);
  for (int d = 0; d < hlo_rank(v); d++) {
    at[d] = d <= q->axis ? d : d + 1;
  }
  return hlo_broadcast(b, v, s, at);
}

/* Computes y = (x - zero point) * scale in f32.  For integers the subtraction is exact, in s32. */
status onnx_import_dequantize_linear(onnx_node *n) {
  hlo_builder *b = n->b;
  quantization q;
  shape split;
  dtype to, from = hlo_type(n->in[0]);
  TRY(read_quantization(n, "x_scale", &q));
  TRY(optional_dtype(n, "output_dtype", hlo_type(n->in[1]), &to));
  dtype exact = dtype_is_int(from) && onnx_has_in(n, 2) ? DTYPE_S32 : DTYPE_F32;
  bool in_blocks = split_blocks(n, &q, &split);
  hlo_value x = convert_kept(b, in_blocks ? hlo_reshape(b, n->in[0], split.rank, split.dims) : n->in[0], exact);
  if (onnx_has_in(n, 2)) {
    hlo_value zero = hlo_convert(b, n->in[2], exact);
    x = hlo_binary(b, HLO_SUB, x, in_blocks ? stretch_over_blocks(b, &q, zero, &split) : stretch(n, &q, zero));
  }
  hlo_value scale = hlo_convert(b, n->in[1], DTYPE_F32);
  scale = in_blocks ? stretch_over_blocks(b, &q, scale, &split) : stretch(n, &q, scale);
  hlo_value y = hlo_binary(b, HLO_MUL, hlo_convert(b, x, DTYPE_F32), scale);
  y = in_blocks ? hlo_reshape(b, y, onnx_in_shape(n, 0)->rank, onnx_in_shape(n, 0)->dims) : y;
  n->out[0] = hlo_convert(b, y, to);
  return NULL;
}

/* Returns the type of the output: that of the zero point, or output_dtype, or u8. */
static status quantized_type(const onnx_node *n, dtype *to) {
  dtype stated;
  TRY(optional_dtype(n, "output_dtype", DTYPE_INVALID, &stated));
  *to = onnx_has_in(n, 2) ? hlo_type(n->in[2]) : stated != DTYPE_INVALID ? stated : DTYPE_U8;
  CHECK_THAT(stated == DTYPE_INVALID || stated == *to, STATUS_INVALID_MODEL,
             "output_dtype is %s but y_zero_point is %s", dtype_name(stated), dtype_name(*to));
  bool narrow = dtype_get_info(*to)->bits <= (dtype_is_float(*to) ? 8 : 16);
  CHECK_THAT((dtype_is_int(*to) || dtype_is_float(*to)) && narrow, STATUS_INVALID_MODEL, "cannot quantize to %s",
             dtype_name(*to));
  return NULL;
}

/* Computes y = saturate(round(x / scale) + zero point).  For a floating-point y the conversion does the rounding. */
status onnx_import_quantize_linear(onnx_node *n) {
  hlo_builder *b = n->b;
  quantization q;
  dtype to, precision;
  bool saturate;
  TRY(read_quantization(n, "y_scale", &q));
  TRY(quantized_type(n, &to));
  TRY(optional_dtype(n, "precision", hlo_type(n->in[1]), &precision));
  TRY(onnx_attr_bool(n->proto, "saturate", true, &saturate));
  if (!dtype_is_float(precision) || dtype_bytes(precision) < 2) {
    precision = DTYPE_F32;
  }
  hlo_value x = hlo_convert(b, n->in[0], precision), scale = stretch(n, &q, hlo_convert(b, n->in[1], precision));
  hlo_value y = onnx_widen(b, hlo_binary(b, HLO_DIV, x, scale));
  hlo_value zero = onnx_has_in(n, 2) ? stretch(n, &q, n->in[2]) : (hlo_value){0};
  if (dtype_is_float(to)) {
    y = zero.def ? hlo_binary(b, HLO_ADD, y, hlo_convert(b, zero, hlo_type(y))) : y;
    n->out[0] = hlo_convert_as(b, y, to, saturate, DTYPE_ROUND_NEAREST);
    return NULL;
  }
  n->out[0] = onnx_saturate(b, y, zero, to);
  return NULL;
}

/* Quantises x to u8, with the scale and zero point that cover the range of x and 0. */
status onnx_import_dynamic_quantize_linear(onnx_node *n) {
  hlo_builder *b = n->b;
  const shape *s = onnx_in_shape(n, 0);
  hlo_value x = n->in[0], zero = hlo_scalar(b, hlo_type(x), 0);
  int64_t all[SHAPE_MAX_RANK];
  for (int k = 0; k < s->rank; k++) {
    all[k] = k;
  }
  hlo_value high = hlo_binary(b, HLO_MAX, hlo_reduce(b, x, HLO_REDUCE_MAX, s->rank, all), zero);
  hlo_value low = hlo_binary(b, HLO_MIN, hlo_reduce(b, x, HLO_REDUCE_MIN, s->rank, all), zero);
  hlo_value range = hlo_binary(b, HLO_SUB, high, low);
  hlo_value scale = hlo_binary(b, HLO_DIV, range, hlo_like(b, range, 255));
  /* If all elements are 0, so is the scale; any divisor but 0 then gives the right result. */
  hlo_value divisor = hlo_select(b, hlo_compare(b, HLO_EQ, scale, zero), hlo_like(b, scale, 1), scale);
  hlo_value point = hlo_unary(b, HLO_NEG, hlo_binary(b, HLO_DIV, low, divisor));
  point = onnx_saturate(b, point, (hlo_value){0}, DTYPE_U8);
  n->out[0] = onnx_saturate(b, onnx_op_stretched(b, HLO_DIV, x, divisor), hlo_broadcast_to(b, point, s), DTYPE_U8);
  n->out[1] = scale;
  n->out[2] = point;
  return NULL;
}
