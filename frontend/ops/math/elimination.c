/* elimination.c - Gauss-Jordan elimination with partial pivoting: the importer of Det, and the inverses of matrices
 * (elimination.h). */
#include "frontend/ops/math/elimination.h"

#include "base/dim/guard.h"
#include "frontend/import/import_helpers.h"
#include "frontend/import/symbolic.h"
#include "hlo/ir/fold_sizes.h"

/* The values that the elimination loop carries: the number of the iteration, the matrices [B, rows, columns], and the
 * product of the pivots [B], negated for each swap of two rows. */
enum { STEP, MATRICES, PRODUCT, CARRIED };

/* Returns start indices, s64[3]: `step` for dimension d, otherwise 0. */
static hlo_value starts_at(hlo_builder *b, hlo_value step, int d) {
  hlo_value zero = hlo_s64s(b, (int64_t[]){0}, 1), parts[] = {zero, zero, zero};
  parts[d] = hlo_reshape(b, step, 1, (dim[]){1});
  return hlo_concatenate(b, 3, parts, 0);
}

/* Returns for each matrix the number of the row whose element in `column`, its column `step`, has the largest magnitude
 * among the rows from `step` on. */
static hlo_value pivot_place(hlo_builder *b, hlo_value column, hlo_value step) {
  shape s = *hlo_shape(column), index = shape_with_type(s, DTYPE_S64);
  hlo_value open = hlo_compare(b, HLO_GE, hlo_iota(b, index, 1), hlo_broadcast(b, step, index, NULL));
  hlo_value size = hlo_select(b, open, hlo_unary(b, HLO_ABS, column), hlo_like(b, column, -1));
  return hlo_reshape(b, hlo_arg_reduce(b, size, 1, true, false), 1, s.dims);
}

/* Returns x / y for arrays that broadcast to x's shape, and 0 where y is 0. */
static hlo_value quotient(hlo_builder *b, hlo_value x, hlo_value y) {
  hlo_value divisor = hlo_broadcast_to(b, y, hlo_shape(x)), zero = hlo_like(b, x, 0);
  return hlo_select(b, hlo_compare(b, HLO_EQ, divisor, zero), zero, hlo_binary(b, HLO_DIV, x, divisor));
}

/* Builds one iteration: exchanges the pivot's row with row `step`, subtracts multiples of it from all other rows, so
 * that their column `step` becomes 0, and divides it by the pivot. */
static void eliminate(hlo_builder *b, const hlo_value *in, hlo_value *next) {
  hlo_value a = in[MATRICES], step = in[STEP];
  shape s = *hlo_shape(a), index = shape_with_type(s, DTYPE_S64);
  dim batch = s.dims[0], one_column[] = {batch, s.dims[1], 1}, one_row[] = {batch, 1, s.dims[2]};
  hlo_value p = pivot_place(b, hlo_dynamic_slice(b, a, starts_at(b, step, 2), one_column), step);
  hlo_value row = hlo_iota(b, index, 1), at = hlo_compare(b, HLO_EQ, row, hlo_broadcast(b, p, index, (int64_t[]){0}));
  hlo_value pivot_row = onnx_reduce_keep(b, hlo_select(b, at, a, hlo_like(b, a, 0)), HLO_REDUCE_ADD, 1, (int64_t[]){1});
  hlo_value top = hlo_dynamic_slice(b, a, starts_at(b, step, 1), one_row);
  a = hlo_select(b, at, hlo_broadcast_to(b, top, &s), a);
  hlo_value pivot = hlo_dynamic_slice(b, pivot_row, starts_at(b, step, 2), (dim[]){batch, 1, 1});
  hlo_value factors = quotient(b, hlo_dynamic_slice(b, a, starts_at(b, step, 2), one_column), pivot);
  a = onnx_op_stretched(b, HLO_SUB, a, hlo_binary_broadcast(b, HLO_MUL, factors, pivot_row));
  hlo_value is_pivot = hlo_compare(b, HLO_EQ, row, hlo_broadcast(b, step, index, NULL));
  hlo_value scaled = hlo_binary_broadcast(b, HLO_DIV, pivot_row, pivot);
  next[MATRICES] = hlo_select(b, is_pivot, hlo_broadcast_to(b, scaled, &s), a);
  pivot = hlo_reshape(b, pivot, 1, &batch);
  hlo_value in_place = hlo_compare(b, HLO_EQ, p, hlo_broadcast(b, step, *hlo_shape(p), NULL));
  pivot = hlo_select(b, in_place, pivot, hlo_unary(b, HLO_NEG, pivot));
  next[PRODUCT] = hlo_binary(b, HLO_MUL, in[PRODUCT], pivot);
  next[STEP] = onnx_binary_scalar(b, HLO_ADD, step, 1);
}

/* Eliminates the first `size` columns of the matrices in `carried`, which have as many rows.  These columns become the
 * identity.  There is no loop for empty matrices, since each iteration reads a row. */
static status run_elimination(const onnx_node *n, dim size, hlo_value *carried) {
  hlo_builder *b = n->b;
  if (!dim_at_most(onnx_dims(n), 1, size) || b->error) {
    return NULL;
  }
  hlo_builder condition = hlo_builder_inner(b, "pivots_left"), body = hlo_builder_inner(b, "eliminate");
  hlo_value in[CARRIED], next[CARRIED];
  hlo_parameters_like(condition.computation, CARRIED, carried, in);
  hlo_value left = hlo_compare(&condition, HLO_LT, in[STEP], hlo_sizes(&condition, DTYPE_S64, -1, &size));
  hlo_set_roots(condition.computation, 1, &left);
  hlo_parameters_like(body.computation, CARRIED, carried, in);
  eliminate(&body, in, next);
  TRY(hlo_builder_take_error(&condition));
  TRY(hlo_builder_take_error(&body));
  hlo_set_roots(body.computation, CARRIED, next);
  hlo_while(b, condition.computation, body.computation, CARRIED, carried, carried);
  return NULL;
}

/* Reads input 0 as square matrices [B, size, size], in the type in which they are computed, and sets what the loop
 * carries at its start. */
static status read_matrices(const onnx_node *n, dim *size, hlo_value *carried) {
  hlo_builder *b = n->b;
  dim_table *t = onnx_dims(n);
  const shape *s = hlo_shape(n->in[0]);
  CHECK_THAT(s->rank >= 2 && dim_equal(t, s->dims[s->rank - 1], s->dims[s->rank - 2]), STATUS_INVALID_MODEL,
             "X is %s; the last two dims must be equal", SHAPE_STR(onnx_dims(n), s));
  *size = s->dims[s->rank - 1];
  dim batch = shape_dim_product(t, s, 0, s->rank - 2);
  carried[STEP] = hlo_scalar_int(b, DTYPE_S64, 0);
  carried[MATRICES] = onnx_widen(b, hlo_reshape(b, n->in[0], 3, (dim[]){batch, *size, *size}));
  carried[PRODUCT] = hlo_splat(b, shape_make(hlo_type(carried[MATRICES]), 1, &batch), 1);
  return NULL;
}

/* The determinant is the product of the pivots. */
status onnx_import_det(onnx_node *n) {
  const shape *s = hlo_shape(n->in[0]);
  dim size;
  hlo_value carried[CARRIED];
  TRY(read_matrices(n, &size, carried));
  TRY(run_elimination(n, size, carried));
  n->out[0] = hlo_convert(n->b, hlo_reshape(n->b, carried[PRODUCT], s->rank - 2, s->dims), (dtype)s->type);
  return NULL;
}

/* Behind each matrix stands the identity, which the elimination makes the inverse. */
status onnx_inverse(const onnx_node *n, hlo_value *out) {
  hlo_builder *b = n->b;
  const shape *s = hlo_shape(n->in[0]);
  dim size;
  hlo_value carried[CARRIED];
  TRY(read_matrices(n, &size, carried));
  if (b->error) {
    return NULL;
  }
  shape index = shape_with_type(*hlo_shape(carried[MATRICES]), DTYPE_S64);
  hlo_value diagonal = hlo_compare(b, HLO_EQ, hlo_iota(b, index, 1), hlo_iota(b, index, 2));
  hlo_value parts[] = {carried[MATRICES], hlo_convert(b, diagonal, hlo_type(carried[MATRICES]))};
  carried[MATRICES] = hlo_concatenate(b, 2, parts, 2);
  TRY(run_elimination(n, size, carried));
  hlo_value inverse = hlo_slice_dim(b, carried[MATRICES], 2, size, dim_mul(onnx_dims(n), size, 2));
  *out = hlo_convert(b, hlo_reshape(b, inverse, s->rank, s->dims), (dtype)s->type);
  return NULL;
}
