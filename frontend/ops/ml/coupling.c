/* coupling.c - see coupling.h.  The iteration is that of libsvm, which ONNX Runtime makes too: it improves one
 * probability after the other, until the largest error of a row is small, but at most 100 times. */
#include "frontend/ops/ml/coupling.h"

#include <inttypes.h>

enum { ITERATIONS_MAX = 100, COUPLED_CLASSES_MAX = 64 };

/* What the loop carries: the number of the iteration, the matrix Q[N][C][C], the probabilities [N][C], and whether any
 * row is not finished. */
enum { STEP, MATRIX, PROBABILITIES, GOING, CARRIED };

/* Returns the probabilities of each class against each other, f32[N][C][C], with 0 in the diagonal. */
static hlo_value against_others(const onnx_node *n, hlo_value pairs, int64_t count) {
  hlo_builder *b = n->b;
  int64_t n_pairs = count * (count - 1) / 2, *from = ARENA_NEW_N(n->arena, int64_t, (size_t)(count * count));
  hlo_value one = hlo_like(b, pairs, 1);
  hlo_value least = hlo_like(b, pairs, 1e-7), most = hlo_binary(b, HLO_SUB, one, least);
  hlo_value first = hlo_binary(b, HLO_MIN, hlo_binary(b, HLO_MAX, pairs, least), most);
  hlo_value second = hlo_binary(b, HLO_SUB, one, first);
  if (b->error) {
    return pairs;
  }
  dim rows = hlo_shape(pairs)->dims[0];
  hlo_value zero = hlo_splat(b, shape_make(DTYPE_F32, 2, (dim[]){rows, 1}), 0);
  hlo_value all = hlo_concatenate(b, 3, (hlo_value[]){first, second, zero}, 1);
  for (int64_t i = 0, pair = 0; i < count; i++) {
    from[i * count + i] = 2 * n_pairs;
    for (int64_t j = i + 1; j < count; j++, pair++) {
      from[i * count + j] = pair;
      from[j * count + i] = n_pairs + pair;
    }
  }
  return hlo_reshape(b, onnx_take_known(b, all, 1, from, count * count), 3, (dim[]){rows, count, count});
}

/* Returns Q: the sums over j of r[j][i]^2 in the diagonal, and -r[j][i] r[i][j] elsewhere. */
static hlo_value make_matrix(hlo_builder *b, hlo_value r) {
  static const int64_t swapped[] = {0, 2, 1}, other = 1;
  if (b->error) {
    return r;
  }
  const shape *s = hlo_shape(r);
  shape index = shape_with_type(*s, DTYPE_S64);
  hlo_value sums = hlo_reduce(b, hlo_binary(b, HLO_MUL, r, r), HLO_REDUCE_ADD, 1, &other);
  hlo_value rest = hlo_unary(b, HLO_NEG, hlo_binary(b, HLO_MUL, r, hlo_transpose(b, r, swapped)));
  hlo_value diagonal = hlo_compare(b, HLO_EQ, hlo_iota(b, index, 1), hlo_iota(b, index, 2));
  return hlo_select(b, diagonal, hlo_broadcast(b, sums, *s, (int64_t[]){0, 1}), rest);
}

/* Returns column k of a matrix [N][C]. */
static hlo_value column(hlo_builder *b, hlo_value x, int64_t k) { return onnx_pick(b, x, 1, k); }

static hlo_value stretched(hlo_builder *b, hlo_value column, hlo_value like) {
  static const int64_t row = 0;
  return b->error ? column : hlo_broadcast(b, column, *hlo_shape(like), &row);
}

/* Improves the probabilities p[N][C] one after the other; qp is Q p, and pqp its product with p. */
static hlo_value improved(hlo_builder *b, hlo_value q, hlo_value p, hlo_value qp, hlo_value pqp, int64_t count) {
  for (int64_t k = 0; k < count && !b->error; k++) {
    hlo_value of_k = onnx_pick(b, q, 1, k), own = column(b, of_k, k), now = column(b, qp, k);
    hlo_value step = hlo_binary(b, HLO_DIV, hlo_binary(b, HLO_SUB, pqp, now), own);
    hlo_value scale = onnx_plus(b, step, 1);
    hlo_value more = hlo_binary(b, HLO_ADD, hlo_binary(b, HLO_MUL, step, own), onnx_times(b, now, 2));
    pqp = hlo_binary(b, HLO_ADD, pqp, hlo_binary(b, HLO_MUL, step, more));
    pqp = hlo_binary(b, HLO_DIV, hlo_binary(b, HLO_DIV, pqp, scale), scale);
    hlo_value wide_step = stretched(b, step, p), wide_scale = stretched(b, scale, p);
    hlo_value at = hlo_iota(b, shape_with_type(*hlo_shape(p), DTYPE_S64), 1);
    hlo_value here = onnx_compare_scalar(b, HLO_EQ, at, (double)k);
    p = hlo_select(b, here, hlo_binary(b, HLO_ADD, p, wide_step), p);
    p = hlo_binary(b, HLO_DIV, p, wide_scale);
    qp = hlo_binary(b, HLO_DIV, hlo_binary(b, HLO_ADD, qp, hlo_binary(b, HLO_MUL, wide_step, of_k)), wide_scale);
  }
  return p;
}

/* Builds one iteration.  A row whose error is small keeps its probabilities.  An error that is NaN is none, so that
 * such a row ends where it began. */
static void iterate(hlo_builder *b, const hlo_value *in, hlo_value *next, int64_t count) {
  static const int64_t last = 2, classes = 1, row = 0;
  hlo_value q = in[MATRIX], p = in[PROBABILITIES];
  hlo_value wide = hlo_broadcast(b, p, *hlo_shape(q), (int64_t[]){0, 2});
  hlo_value qp = hlo_reduce(b, hlo_binary(b, HLO_MUL, q, wide), HLO_REDUCE_ADD, 1, &last);
  hlo_value pqp = hlo_reduce(b, hlo_binary(b, HLO_MUL, p, qp), HLO_REDUCE_ADD, 1, &classes);
  hlo_value error = hlo_unary(b, HLO_ABS, hlo_binary(b, HLO_SUB, qp, stretched(b, pqp, p)));
  hlo_value large = onnx_compare_scalar(b, HLO_GE, error, (double)(0.005F / (float)count));
  hlo_value going = hlo_reduce(b, large, HLO_REDUCE_OR, 1, &classes);
  next[STEP] = onnx_plus(b, in[STEP], 1);
  next[MATRIX] = q;
  next[PROBABILITIES] = hlo_select(b, stretched(b, going, p), improved(b, q, p, qp, pqp, count), p);
  next[GOING] = hlo_reduce(b, going, HLO_REDUCE_OR, 1, &row);
}

status ml_coupled(const onnx_node *n, hlo_value pairs, int64_t count, hlo_value *out) {
  hlo_builder *b = n->b;
  CHECK_THAT(count <= COUPLED_CLASSES_MAX, STATUS_UNSUPPORTED,
             "probabilities (prob_a) of %" PRId64 " classes are not supported; at most %d", count, COUPLED_CLASSES_MAX);
  hlo_value matrix = make_matrix(b, against_others(n, pairs, count));
  if (b->error) {
    *out = pairs;
    return NULL;
  }
  shape s = shape_make(DTYPE_F32, 2, (dim[]){hlo_shape(pairs)->dims[0], count});
  hlo_value carried[CARRIED] = {[STEP] = hlo_scalar_int(b, DTYPE_S64, 0),
                                [MATRIX] = matrix,
                                [PROBABILITIES] = hlo_splat(b, s, (double)(1.0F / (float)count)),
                                [GOING] = hlo_scalar_int(b, DTYPE_PRED, 1)};
  hlo_builder condition = hlo_builder_inner(b, "not_coupled"), body = hlo_builder_inner(b, "couple");
  hlo_value in[CARRIED], next[CARRIED];
  hlo_parameters_like(condition.computation, CARRIED, carried, in);
  hlo_value left = onnx_compare_scalar(&condition, HLO_LT, in[STEP], ITERATIONS_MAX);
  left = hlo_binary(&condition, HLO_AND, left, in[GOING]);
  hlo_set_roots(condition.computation, 1, &left);
  hlo_parameters_like(body.computation, CARRIED, carried, in);
  iterate(&body, in, next, count);
  TRY(hlo_builder_take_error(&condition));
  TRY(hlo_builder_take_error(&body));
  hlo_set_roots(body.computation, CARRIED, next);
  hlo_while(b, condition.computation, body.computation, CARRIED, carried, carried);
  *out = carried[PROBABILITIES];
  return NULL;
}
