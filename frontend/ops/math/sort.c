/* sort.c - the importer of TopK. */
#include <inttypes.h>

#include "frontend/import/import_common.h"
#include "frontend/import/sizes.h"

#define INVALID STATUS_INVALID_MODEL

/* Reads K, the number of elements to return.  If K is a constant, *k is K and size->def is NULL.  If the model computes
 * K, *k is its bound, the extent of the axis, and *size is K, s64[]. */
static status read_k(onnx_node *n, int64_t extent, int64_t *k, hlo_value *size) {
  *size = (hlo_value){0};
  if (n->since < 10) {
    TRY(onnx_attr_required(n->proto, "k"));
    return onnx_attr_int(n->proto, "k", 0, k);
  }
  if (hlo_literal(n->in[1]) || onnx_require_inputs(n, 1)) {
    return onnx_const_int(n, 1, "K", k);
  }
  *k = extent;
  *size = hlo_convert(n->b, onnx_scalar_input(n, 1, "K"), DTYPE_S64);
  *size = hlo_clamp(n->b, hlo_like(n->b, *size, 0), *size, hlo_like(n->b, *size, (double)extent));
  return NULL;
}

/* The ascending and the descending sort are both stable, so that equal elements come in the order of their indices, as
 * the standard requires. */
status onnx_import_top_k(onnx_node *n) {
  hlo_value x = n->in[0], out[2];
  const shape *s = hlo_shape(x);
  int64_t axis, k;
  hlo_value size;
  bool largest, sorted;
  TRY(onnx_axis_attr(n, -1, s->rank, &axis));
  TRY(onnx_attr_bool(n->proto, "largest", true, &largest));
  TRY(onnx_attr_bool(n->proto, "sorted", true, &sorted));
  TRY(read_k(n, s->dims[axis], &k, &size));
  CHECK_THAT(k >= 0 && k <= s->dims[axis], INVALID,
             "K is %" PRId64 " but X is %s; axis %" PRId64 " has %" PRId64 " elements", k, SHAPE_STR(NULL, s), axis,
             s->dims[axis]);
  hlo_value both[] = {x, hlo_iota(n->b, shape_with_type(*s, DTYPE_S64), axis)};
  hlo_sort(n->b, 2, both, axis, largest, out);
  for (uint32_t j = 0; j < 2; j++) {
    n->out[j] = hlo_slice_dim(n->b, out[j], axis, 0, k);
    onnx_dynamic_dim_set(n->scope->importer, n->out[j], (int)axis, size);
  }
  return NULL;
}
