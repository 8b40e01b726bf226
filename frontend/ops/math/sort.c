/* sort.c - the importer of TopK. */
#include <inttypes.h>

#include "base/dim/guard.h"
#include "frontend/import/import_common.h"
#include "frontend/import/sizes.h"
#include "frontend/import/symbolic.h"

#define INVALID STATUS_INVALID_MODEL

static status k_as_int(onnx_node *n, int64_t *k) {
  if (n->since < 10) {
    TRY(onnx_attr_required(n->proto, "k"));
    return onnx_attr_int(n->proto, "k", 0, k);
  }
  return onnx_const_int(n, 1, "K", k);
}

/* Reads K, the number of elements to return.  If K is a constant or follows from sizes, *k is K and size->def is NULL.
 * If the model computes K from other data, *k is its bound, the extent of the axis, and *size is K, s64[].  A check in
 * the module ends runs whose K is not in [0, extent]; *size is clamped for modules without checks (--unchecked). */
static status read_k(onnx_node *n, dim extent, dim *k, hlo_value *size) {
  *size = (hlo_value){0};
  if (n->since >= 10 && n->in[1].def->op == HLO_SIZES && shape_elements(hlo_shape(n->in[1])) == 1) {
    const dim *values;
    int64_t count;
    TRY(onnx_const_dims(n, 1, "K", &values, &count));
    *k = values[0];
    return NULL;
  }
  if (n->since < 10 || hlo_literal(n->in[1]) || onnx_require_inputs(n, 1)) {
    int64_t number = 0;
    TRY(k_as_int(n, &number));
    number = number > DIM_MAX ? DIM_MAX : number < -DIM_MAX ? -DIM_MAX : number;
    *k = dim_signed_const(onnx_dims(n), number);
    return NULL;
  }
  *k = extent;
  *size = hlo_convert(n->b, onnx_scalar_input(n, 1, "K"), DTYPE_S64);
  TRY(onnx_check_below(n, *size, "K", dim_add_const(onnx_dims(n), extent, 1)));
  *size = hlo_clamp(n->b, hlo_like(n->b, *size, 0), *size, onnx_of_dim(n->b, DTYPE_S64, extent, 1, 0));
  return NULL;
}

/* The ascending and the descending sort are both stable, so that equal elements come in the order of their indices, as
 * the standard requires. */
status onnx_import_top_k(onnx_node *n) {
  hlo_value x = n->in[0], out[2];
  const shape *s = hlo_shape(x);
  int64_t axis;
  dim k;
  hlo_value size;
  bool largest, sorted;
  TRY(onnx_axis_attr(n, -1, s->rank, &axis));
  TRY(onnx_attr_bool(n->proto, "largest", true, &largest));
  TRY(onnx_attr_bool(n->proto, "sorted", true, &sorted));
  TRY(read_k(n, s->dims[axis], &k, &size));
  dim_table *t = onnx_dims(n);
  CHECK_THAT(dim_at_most(t, 0, k) && dim_at_most(t, k, s->dims[axis]), INVALID,
             "K is %s but X is %s; axis %" PRId64 " has %s elements", dim_print(n->arena, t, k), SHAPE_STR(t, s), axis,
             dim_print(n->arena, t, s->dims[axis]));
  hlo_value both[] = {x, hlo_iota(n->b, shape_with_type(*s, DTYPE_S64), axis)};
  hlo_sort(n->b, 2, both, axis, largest, out);
  for (uint32_t j = 0; j < 2; j++) {
    n->out[j] = hlo_slice_dim(n->b, out[j], axis, 0, k);
    onnx_dynamic_dim_set(n->scope->importer, n->out[j], (int)axis, size);
  }
  return NULL;
}
