/* general.c - the importers of operators for any kind of model: windows of an array, distances, hashes. */
#include <inttypes.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/contrib/contrib.h"

/* --- UnfoldTensor --- */

/* Returns all windows of `size` elements along the dimension `dim`, whose starts are `step` apart.  The elements of a
 * window are the last dimension of the result. */
status onnx_import_contrib_unfold_tensor(onnx_node *n) {
  hlo_builder *b = n->b;
  dim_table *t = onnx_dims(n);
  const shape *s = onnx_in_shape(n, 0);
  int64_t axis, size, step, order[SHAPE_MAX_RANK];
  TRY(CONTRIB_ATTRIBUTES(n, "dim", "size", "step"));
  TRY(onnx_attr_required(n->proto, "size"));
  TRY(onnx_attr_int(n->proto, "dim", -1, &axis));
  TRY(onnx_attr_int_in(n->proto, "size", 0, 1, INT32_MAX, &size));
  TRY(onnx_attr_int_in(n->proto, "step", 1, 1, INT32_MAX, &step));
  TRY(onnx_axis(axis, s->rank, &axis));
  CHECK_THAT(s->rank < SHAPE_MAX_RANK, STATUS_UNSUPPORTED, "input is %s; the rank is too large",
             SHAPE_STR(onnx_dims(n), s));
  CHECK_THAT(dim_at_most(t, size, s->dims[axis]), STATUS_INVALID_MODEL,
             "input is %s; dimension %" PRId64 " is smaller than size, %" PRId64, SHAPE_STR(onnx_dims(n), s), axis,
             size);
  dim count = dim_add_const(t, dim_floordiv(t, dim_add_const(t, s->dims[axis], -size), step), 1);
  shape windows = shape_make(DTYPE_S64, 2, (dim[]){count, size});
  TRY(shape_check(&windows, "the windows"));
  hlo_value start = onnx_times(b, hlo_iota(b, windows, 0), (double)step);
  hlo_value y = hlo_take(b, n->in[0], hlo_binary(b, HLO_ADD, start, hlo_iota(b, windows, 1)), axis);
  for (int k = 0; k <= s->rank; k++) {
    order[k] = k == s->rank ? axis + 1 : k + (k > axis);
  }
  n->out[0] = hlo_transpose(b, y, order);
  return NULL;
}

/* --- CDist --- */

/* The distances are sums of squared differences.  ONNX Runtime computes them from products, by which the distance of
 * vectors that are near each other loses digits. */
status onnx_import_contrib_cdist(onnx_node *n) {
  static const char *const metrics[] = {"sqeuclidean", "euclidean"};
  static const int64_t columns = 2;
  hlo_builder *b = n->b;
  int metric;
  TRY(CONTRIB_ATTRIBUTES(n, "metric"));
  TRY(onnx_choose(n, "metric", "sqeuclidean", metrics, 2, &metric));
  TRY(onnx_need_rank(n, 0, "A", 2, 2));
  TRY(onnx_need_rank(n, 1, "B", 2, 2));
  const shape *s = onnx_in_shape(n, 0), *other = onnx_in_shape(n, 1);
  TRY(onnx_need_dims(n, 1, "B", 2, (dim[]){other->dims[0], s->dims[1]}));
  shape pairs = shape_make((dtype)s->type, 3, (dim[]){s->dims[0], other->dims[0], s->dims[1]});
  TRY(shape_check(&pairs, "the differences"));
  hlo_value x = hlo_broadcast(b, n->in[0], pairs, (int64_t[]){0, 2});
  x = hlo_binary(b, HLO_SUB, x, hlo_broadcast(b, n->in[1], pairs, (int64_t[]){1, 2}));
  x = hlo_reduce(b, hlo_binary(b, HLO_MUL, x, x), HLO_REDUCE_ADD, 1, &columns);
  n->out[0] = metric == 0 ? x : hlo_unary(b, HLO_SQRT, x);
  return NULL;
}

/* --- MurmurHash3 --- */

static hlo_value with_constant(hlo_builder *b, hlo_op op, hlo_value x, uint32_t c) {
  return onnx_binary_scalar(b, op, x, c);
}

static hlo_value rotated_left(hlo_builder *b, hlo_value x, uint32_t bits) {
  return hlo_binary(b, HLO_OR, with_constant(b, HLO_SHL, x, bits), with_constant(b, HLO_SHR, x, 32 - bits));
}

/* Returns x ^ (x >> bits). */
static hlo_value folded(hlo_builder *b, hlo_value x, uint32_t bits) {
  return hlo_binary(b, HLO_XOR, x, with_constant(b, HLO_SHR, x, bits));
}

/* Mixes one word of a key, u32, into its hash. */
static hlo_value mixed(hlo_builder *b, hlo_value hash, hlo_value word) {
  word = rotated_left(b, with_constant(b, HLO_MUL, word, 0xcc9e2d51), 15);
  hash = hlo_binary(b, HLO_XOR, hash, with_constant(b, HLO_MUL, word, 0x1b873593));
  hash = with_constant(b, HLO_MUL, rotated_left(b, hash, 13), 5);
  return with_constant(b, HLO_ADD, hash, 0xe6546b64);
}

/* MurmurHash3_x86_32 of the bytes of each element, of which there are 4 or 8. */
status onnx_import_contrib_murmur_hash3(onnx_node *n) {
  hlo_builder *b = n->b;
  hlo_value x = n->in[0];
  int64_t seed, bytes = dtype_bytes(hlo_type(x));
  bool positive;
  TRY(CONTRIB_ATTRIBUTES(n, "positive", "seed"));
  TRY(onnx_attr_bool(n->proto, "positive", true, &positive));
  TRY(onnx_attr_int(n->proto, "seed", 0, &seed));
  CHECK_THAT(hlo_type(x) != DTYPE_STR, STATUS_UNSUPPORTED, "X is %s", SHAPE_STR(onnx_dims(n), hlo_shape(x)));
  x = hlo_bitcast(b, x, bytes == 4 ? DTYPE_U32 : DTYPE_U64);
  hlo_value low = bytes == 4 ? x : hlo_convert(b, onnx_binary_scalar(b, HLO_AND, x, UINT32_MAX), DTYPE_U32);
  hlo_value hash = mixed(b, hlo_like(b, low, (uint32_t)seed), low);
  if (bytes == 8) {
    hash = mixed(b, hash, hlo_convert(b, onnx_binary_scalar(b, HLO_SHR, x, 32), DTYPE_U32));
  }
  hash = folded(b, with_constant(b, HLO_XOR, hash, (uint32_t)bytes), 16);
  hash = folded(b, with_constant(b, HLO_MUL, hash, 0x85ebca6b), 13);
  hash = folded(b, with_constant(b, HLO_MUL, hash, 0xc2b2ae35), 16);
  n->out[0] = positive ? hash : hlo_bitcast(b, hash, DTYPE_S32);
  return NULL;
}
