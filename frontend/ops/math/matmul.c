/* matmul.c - matrix products: Gemm, MatMul and their integer and quantised forms. */
#include "frontend/ops/math/matmul.h"

#include <inttypes.h>
#include <math.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"

/* --- Gemm --- */

/* Checks that C can be broadcast to the product A * B, whose shape is y.  Before version 7 it must have that shape
 * unless the attribute `broadcast` is set. */
static status check_c(const onnx_node *n, const shape *y) {
  const shape *c = onnx_in_shape(n, 2);
  bool broadcast = n->since >= 7;
  if (!broadcast) {
    TRY(onnx_attr_bool(n->proto, "broadcast", false, &broadcast));
  }
  CHECK_THAT(c->rank <= 2 && (broadcast || onnx_has_dims(n, c, y->rank, y->dims)), STATUS_INVALID_MODEL,
             "C is %s but A * B is %s", SHAPE_STR(onnx_dims(n), c), SHAPE_STR(onnx_dims(n), y));
  for (int k = 0; k < c->rank; k++) {
    dim have = c->dims[c->rank - 1 - k];
    CHECK_THAT(have == 1 || dim_equal(onnx_dims(n), have, y->dims[1 - k]), STATUS_INVALID_MODEL,
               "C is %s, which does not broadcast to A * B, %s", SHAPE_STR(onnx_dims(n), c),
               SHAPE_STR(onnx_dims(n), y));
  }
  return NULL;
}

/* Sets the dimensions of A and of B over which their product sums. */
static status gemm_dims(const onnx_node *n, const onnx_gemm *g, int64_t *ka, int64_t *kb) {
  TRY(onnx_need_rank(n, g->a, "A", 2, 2));
  TRY(onnx_need_rank(n, g->b, "B", 2, 2));
  const shape *a = onnx_in_shape(n, g->a), *b = onnx_in_shape(n, g->b);
  *ka = g->trans_a ? 0 : 1;
  *kb = g->trans_b ? 1 : 0;
  CHECK_THAT(dim_equal(onnx_dims(n), a->dims[*ka], b->dims[*kb]), STATUS_INVALID_MODEL,
             "A is %s%s but B is %s%s; K %" PRId64 " != %" PRId64, SHAPE_STR(onnx_dims(n), a),
             g->trans_a ? " transposed" : "", SHAPE_STR(onnx_dims(n), b), g->trans_b ? " transposed" : "", a->dims[*ka],
             b->dims[*kb]);
  return NULL;
}

status onnx_import_gemm(onnx_node *n) {
  hlo_builder *b = n->b;
  float alpha, beta;
  onnx_gemm g = {.a = 0, .b = 1};
  int64_t ka, kb;
  TRY(onnx_attr_float(n->proto, "alpha", 1, &alpha));
  TRY(onnx_attr_float(n->proto, "beta", 1, &beta));
  TRY(onnx_attr_bool(n->proto, "transA", false, &g.trans_a));
  TRY(onnx_attr_bool(n->proto, "transB", false, &g.trans_b));
  TRY(gemm_dims(n, &g, &ka, &kb));
  hlo_dot_dims d = {.n_contract = 1, .lhs_contract = &ka, .rhs_contract = &kb};
  hlo_value y = hlo_dot(b, n->in[0], n->in[1], &d), c = n->in[2];
  dtype type = hlo_type(n->in[0]);
  if (!dtype_is_float(type) && (alpha != truncf(alpha) || beta != truncf(beta))) {
    y = hlo_convert(b, y, DTYPE_F64); /* so that integer results are truncated only once, at the end */
    c = onnx_has_in(n, 2) ? hlo_convert(b, c, DTYPE_F64) : c;
  }
  y = onnx_times(b, y, alpha);
  if (onnx_has_in(n, 2) && !b->error) {
    TRY(check_c(n, hlo_shape(y)));
    y = onnx_op_stretched(b, HLO_ADD, y, onnx_times(b, c, beta));
  }
  n->out[0] = hlo_convert(b, y, type);
  return NULL;
}

/* --- MatMul --- */

static status check_k(const onnx_node *n, uint32_t ak, uint32_t bk) {
  const shape *a = onnx_in_shape(n, ak), *c = onnx_in_shape(n, bk);
  TRY(onnx_need_rank(n, ak, "A", 1, SHAPE_MAX_RANK));
  TRY(onnx_need_rank(n, bk, "B", 1, SHAPE_MAX_RANK));
  dim ka = a->dims[a->rank - 1], kb = c->dims[c->rank == 1 ? 0 : c->rank - 2];
  CHECK_THAT(dim_equal(onnx_dims(n), ka, kb), STATUS_INVALID_MODEL, "A is %s but B is %s; K %" PRId64 " != %" PRId64,
             SHAPE_STR(onnx_dims(n), a), SHAPE_STR(onnx_dims(n), c), ka, kb);
  return NULL;
}

status onnx_import_matmul(onnx_node *n) {
  TRY(check_k(n, 0, 1));
  n->out[0] = hlo_matmul(n->b, n->in[0], n->in[1]);
  return NULL;
}

/* Broadcasts input k, a zero point or scale of the matrix x, to x's dimensions.  Input k is a scalar, or has one
 * element for each index of dimension `along` (unless `along` is negative), or has x's rank with extents of 1 where it
 * broadcasts. */
static status parameter_like(const onnx_node *n, uint32_t k, const char *what, const shape *x, int64_t along,
                             hlo_value *out) {
  const shape *s = onnx_in_shape(n, k);
  dim_table *t = onnx_dims(n);
  bool one = s->rank == 0 || (s->rank == 1 && dim_known_equal(t, s->dims[0], 1));
  if (one || (s->rank == 1 && along >= 0 && dim_equal(t, s->dims[0], x->dims[along]))) {
    *out = onnx_along(n->b, n->in[k], x, along >= 0 ? along : 0);
    return NULL;
  }
  CHECK_THAT(s->rank == x->rank, STATUS_INVALID_MODEL, "%s is %s, which fits neither a row, a column nor all of %s",
             what, SHAPE_STR(onnx_dims(n), s), SHAPE_STR(onnx_dims(n), x));
  *out = hlo_broadcast_to(n->b, n->in[k], x);
  return NULL;
}

/* Returns input k as s32, minus its zero point, which is input zk. */
static status centered(const onnx_node *n, uint32_t k, uint32_t zk, const char *what, int64_t along, hlo_value *out) {
  hlo_value zero;
  *out = hlo_convert(n->b, n->in[k], DTYPE_S32);
  if (onnx_has_in(n, zk)) {
    TRY(parameter_like(n, zk, what, onnx_in_shape(n, k), along, &zero));
    *out = hlo_binary(n->b, HLO_SUB, *out, hlo_convert(n->b, zero, DTYPE_S32));
  }
  return NULL;
}

status onnx_integer_gemm(const onnx_node *n, const onnx_gemm *g, hlo_value *out) {
  int64_t ka, kb;
  hlo_value x, y;
  TRY(gemm_dims(n, g, &ka, &kb));
  TRY(centered(n, g->a, g->a_zero, "a_zero_point", -1, &x));
  TRY(centered(n, g->b, g->b_zero, "b_zero_point", 1 - kb, &y));
  hlo_dot_dims d = {.n_contract = 1, .lhs_contract = &ka, .rhs_contract = &kb};
  *out = hlo_dot(n->b, x, y, &d);
  return NULL;
}

static int64_t row_dim(const shape *a) { return a->rank >= 2 ? a->rank - 2 : -1; }
static int64_t column_dim(const shape *b) { return b->rank >= 2 ? b->rank - 1 : -1; }

status onnx_import_matmul_integer(onnx_node *n) {
  hlo_value x, y;
  TRY(check_k(n, 0, 1));
  TRY(centered(n, 0, 2, "a_zero_point", row_dim(onnx_in_shape(n, 0)), &x));
  TRY(centered(n, 1, 3, "b_zero_point", column_dim(onnx_in_shape(n, 1)), &y));
  n->out[0] = hlo_matmul(n->b, x, y);
  return NULL;
}

/* Converts input k, a scale, to f32 and broadcasts it to y, the shape of the result.  A scale of rank 1 has one element
 * for each index of the result's dimension `along`. */
static status result_scale(const onnx_node *n, uint32_t k, const char *what, const shape *y, int64_t along,
                           hlo_value *out) {
  TRY(parameter_like(n, k, what, y, along, out));
  *out = hlo_convert(n->b, *out, DTYPE_F32);
  return NULL;
}

/* The inputs are a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point.  8-bit floats, whose zero
 * points are always 0, are multiplied as f32. */
status onnx_import_qlinear_matmul(onnx_node *n) {
  hlo_builder *b = n->b;
  hlo_value x, w, sx, sw, sy, zero;
  TRY(check_k(n, 0, 3));
  dtype to = hlo_type(n->in[7]);
  if (dtype_is_float(hlo_type(n->in[0]))) {
    x = hlo_convert(b, n->in[0], DTYPE_F32);
    w = hlo_convert(b, n->in[3], DTYPE_F32);
  } else {
    TRY(centered(n, 0, 2, "a_zero_point", row_dim(onnx_in_shape(n, 0)), &x));
    TRY(centered(n, 3, 5, "b_zero_point", column_dim(onnx_in_shape(n, 3)), &w));
  }
  hlo_value y = hlo_convert(b, hlo_matmul(b, x, w), DTYPE_F32);
  if (b->error) {
    return NULL;
  }
  const shape *s = hlo_shape(y);
  TRY(result_scale(n, 1, "a_scale", s, row_dim(s), &sx));
  TRY(result_scale(n, 4, "b_scale", s, column_dim(s), &sw));
  TRY(result_scale(n, 6, "y_scale", s, row_dim(s), &sy));
  y = hlo_binary(b, HLO_MUL, y, hlo_binary(b, HLO_DIV, hlo_binary(b, HLO_MUL, sx, sw), sy));
  if (dtype_is_float(to)) {
    n->out[0] = hlo_convert(b, y, to);
    return NULL;
  }
  TRY(parameter_like(n, 7, "y_zero_point", s, row_dim(s), &zero));
  n->out[0] = onnx_saturate(b, y, zero, to);
  return NULL;
}
