/* import_common.c - functions that importers of many kinds share: scalar inputs, reductions, broadcasting, indices. */
#include "frontend/import/import_common.h"

#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "base/tensor/bounds.h"
#include "frontend/import/scope.h"
#include "frontend/import/sizes.h"
#include "frontend/import/symbolic.h"
#include "hlo/ir/fold_sizes.h"

#define INVALID STATUS_INVALID_MODEL

hlo_value onnx_widen(hlo_builder *b, hlo_value x) {
  dtype t = hlo_type(x);
  if (dtype_is_int(t)) {
    return hlo_convert(b, x, dtype_bytes(t) < 4 ? DTYPE_F32 : DTYPE_F64);
  }
  return hlo_convert(b, x, t == DTYPE_PRED ? DTYPE_F32 : dtype_compute_type(t));
}

/* --- scalars --- */

hlo_value onnx_scalar_input(onnx_node *n, uint32_t k, const char *what) {
  const shape *s = hlo_shape(n->in[k]);
  if (!dim_equal(onnx_dims(n), shape_dim_product(onnx_dims(n), s, 0, s->rank), 1)) {
    hlo_fail(n->b, status_error(INVALID, "input %s is %s; a scalar is required", what, SHAPE_STR(onnx_dims(n), s)));
    return (hlo_value){0};
  }
  return hlo_reshape(n->b, n->in[k], 0, NULL);
}

static status const_scalar(const onnx_node *n, uint32_t k, const char *what, const literal **l) {
  TRY(onnx_const_literal(n, k, what, l));
  CHECK_THAT(shape_elements(&(*l)->shape) == 1, INVALID, "input %s is %s; a scalar is required", what,
             SHAPE_STR(onnx_dims(n), &(*l)->shape));
  return NULL;
}

status onnx_const_int(const onnx_node *n, uint32_t k, const char *what, int64_t *out) {
  const literal *l;
  TRY(const_scalar(n, k, what, &l));
  CHECK_THAT(dtype_is_int(l->shape.type), INVALID, "input %s is %s; an integer is required", what,
             SHAPE_STR(onnx_dims(n), &l->shape));
  *out = literal_i64(l, 0);
  return NULL;
}

status onnx_const_float(const onnx_node *n, uint32_t k, const char *what, double *out) {
  const literal *l;
  TRY(const_scalar(n, k, what, &l));
  CHECK_THAT(dtype_is_int(l->shape.type) || dtype_is_float(l->shape.type), INVALID,
             "input %s is %s; a number is required", what, SHAPE_STR(onnx_dims(n), &l->shape));
  *out = literal_f64(l, 0);
  return NULL;
}

/* --- attributes --- */

status onnx_axis_attr(const onnx_node *n, int64_t def, int64_t rank, int64_t *out) {
  int64_t axis;
  TRY(onnx_attr_int(n->proto, "axis", def, &axis));
  return onnx_axis(axis, rank, out);
}

status onnx_dtype_attr(const onnx_node *n, const char *name, dtype def, dtype *out) {
  int64_t number;
  *out = def;
  if (!onnx_attr_has(n->proto, name)) {
    return NULL;
  }
  TRY(onnx_attr_int(n->proto, name, 0, &number));
  *out = number >= 0 && number <= INT32_MAX ? dtype_from_onnx((int32_t)number) : DTYPE_INVALID;
  CHECK_THAT(*out != DTYPE_INVALID, INVALID, "attribute %s: %" PRId64 " is no element type", name, number);
  CHECK_THAT(*out != DTYPE_STR, STATUS_UNSUPPORTED, "attribute %s: strings are not supported yet", name);
  return NULL;
}

/* --- reductions --- */

hlo_value onnx_reduce_keep(hlo_builder *b, hlo_value x, hlo_reducer r, uint32_t n, const int64_t *axes) {
  shape s = *hlo_shape(x);
  for (uint32_t k = 0; k < n; k++) {
    s.dims[axes[k]] = 1;
  }
  return hlo_reshape(b, hlo_reduce(b, x, r, n, axes), s.rank, s.dims);
}

hlo_value onnx_mean_keep(hlo_builder *b, hlo_value x, uint32_t n, const int64_t *axes) {
  dim count = 1;
  for (uint32_t k = 0; k < n && x.def; k++) {
    count = dim_mul(b->computation->module->dims, count, hlo_shape(x)->dims[axes[k]]);
  }
  return onnx_binary_dim(b, HLO_DIV, onnx_reduce_keep(b, x, HLO_REDUCE_ADD, n, axes), count);
}

hlo_reducer onnx_reducer_for(dtype t, hlo_reducer r) {
  if (t != DTYPE_PRED) {
    return r;
  }
  return r == HLO_REDUCE_MAX || r == HLO_REDUCE_ADD   ? HLO_REDUCE_OR
         : r == HLO_REDUCE_MIN || r == HLO_REDUCE_MUL ? HLO_REDUCE_AND
                                                      : r;
}

/* --- numbers that are sizes --- */

hlo_value onnx_of_dim(hlo_builder *b, dtype type, dim d, double factor, double term) {
  if (dim_is_const(d)) {
    return hlo_scalar(b, type, factor * (double)d + term);
  }
  if (factor == 1 && term == 0) {
    bool exact = type == DTYPE_S64 || type == DTYPE_F64 || type == DTYPE_F32;
    return hlo_convert(b, hlo_sizes(b, exact ? type : DTYPE_S64, -1, &d), type);
  }
  hlo_value v = hlo_sizes(b, DTYPE_F64, -1, &d);
  v = factor == 1 ? v : hlo_binary(b, HLO_MUL, v, hlo_scalar(b, DTYPE_F64, factor));
  return hlo_convert(b, term == 0 ? v : hlo_binary(b, HLO_ADD, v, hlo_scalar(b, DTYPE_F64, term)), type);
}

hlo_value onnx_dim_like(hlo_builder *b, hlo_value x, dim d) {
  return x.def ? hlo_broadcast_to(b, onnx_of_dim(b, hlo_type(x), d, 1, 0), hlo_shape(x)) : x;
}

hlo_value onnx_binary_dim(hlo_builder *b, hlo_op op, hlo_value x, dim d) {
  return hlo_binary(b, op, x, onnx_dim_like(b, x, d));
}

/* --- broadcasting --- */

hlo_value onnx_binary_scalar(hlo_builder *b, hlo_op op, hlo_value x, double scalar) {
  return hlo_binary(b, op, x, hlo_like(b, x, scalar));
}

hlo_value onnx_compare_scalar(hlo_builder *b, hlo_comparison c, hlo_value x, double scalar) {
  return hlo_compare(b, c, x, hlo_like(b, x, scalar));
}

/* Appends dimensions of extent 1 to y, so that numpy's broadcasting matches y's first dimension with x's dimension
 * `axis`. */
static status align_at_axis(onnx_node *n, hlo_value x, hlo_value *y) {
  const shape *sx = hlo_shape(x), *sy = hlo_shape(*y);
  int64_t axis;
  if (dim_equal(onnx_dims(n), shape_dim_product(onnx_dims(n), sy, 0, sy->rank), 1)) {
    *y = hlo_reshape(n->b, *y, 0, NULL);
    return NULL;
  }
  TRY(onnx_attr_int(n->proto, "axis", sx->rank - sy->rank, &axis));
  CHECK_THAT(sy->rank <= sx->rank && axis >= 0 && axis <= sx->rank - sy->rank, INVALID,
             "B is %s and axis %" PRId64 "; it must fit into A, which is %s", SHAPE_STR(onnx_dims(n), sy), axis,
             SHAPE_STR(onnx_dims(n), sx));
  dim dims[SHAPE_MAX_RANK];
  int rank = sx->rank - (int)axis;
  for (int k = 0; k < rank; k++) {
    dims[k] = k < sy->rank ? sy->dims[k] : 1;
  }
  *y = hlo_reshape(n->b, *y, rank, dims);
  return NULL;
}

status onnx_broadcast_inputs(onnx_node *n, hlo_value *x, hlo_value *y) {
  if (n->since >= 7) {
    hlo_broadcast_both(n->b, x, y);
    return NULL;
  }
  bool broadcast;
  TRY(onnx_attr_bool(n->proto, "broadcast", false, &broadcast));
  if (broadcast) {
    TRY(align_at_axis(n, *x, y));
    *y = hlo_broadcast_to(n->b, *y, hlo_shape(*x));
  }
  CHECK_THAT(n->b->error || shape_same_dims(hlo_shape(*x), hlo_shape(*y)), INVALID,
             "A is %s but B is %s; version %d broadcasts only with broadcast=1", SHAPE_STR(onnx_dims(n), hlo_shape(*x)),
             SHAPE_STR(onnx_dims(n), hlo_shape(*y)), n->since);
  return NULL;
}

/* --- indices --- */

/* The elements of x beyond the sizes of its dynamic dimensions are undefined.  Replaces these elements by `inside`, a
 * number within the bounds that are to be checked, so that a check of all elements does not fail because of them. */
static hlo_value inside_sizes(const onnx_node *n, hlo_value x, int64_t inside) {
  hlo_builder *b = n->b;
  const shape *s = hlo_shape(x);
  hlo_value all = x;
  for (int d = 0; d < s->rank; d++) {
    hlo_value size = onnx_dynamic_dim_get(n->scope->importer, all, d);
    if (size.def) {
      hlo_value place = hlo_iota(b, shape_with_type(*s, DTYPE_S64), d);
      hlo_value there = hlo_compare(b, HLO_LT, place, hlo_broadcast_to(b, size, hlo_shape(place)));
      x = hlo_select(b, there, x, hlo_like(b, x, (double)inside));
    }
  }
  return x;
}

/* Checks the integers of a constant against limits, some of which are symbolic.  Where that is not proven for all
 * sizes, guards state that the smallest and the largest integer are within the limits. */
static status check_known(const onnx_node *n, const literal *l, const char *what, uint32_t count, const dim *limits,
                          bool from_end) {
  dim_table *t = onnx_dims(n);
  int64_t low[SHAPE_MAX_RANK] = {0}, high[SHAPE_MAX_RANK] = {0};
  for (int64_t k = 0, size = shape_elements(&l->shape); k < size; k++) {
    int64_t v = literal_i64(l, k), at = k % count;
    low[at] = v < low[at] ? v : low[at];
    high[at] = v > high[at] ? v : high[at];
  }
  for (uint32_t k = 0; k < count; k++) {
    dim least = dim_signed_const(t, low[k]), most = dim_signed_const(t, high[k]), one = dim_signed_const(t, 1);
    dim lowest = from_end ? dim_signed_sub(t, 0, limits[k]) : 0;
    CHECK_THAT(dim_at_most(t, lowest, least) && dim_at_most(t, dim_signed_add(t, most, one), limits[k]), INVALID,
               "%s holds numbers from %" PRId64 " to %" PRId64 ", outside of a dimension of %s", what, low[k], high[k],
               dim_print(n->arena, t, limits[k]));
  }
  return NULL;
}

static bool are_constants(uint32_t n, const dim *dims) {
  uint32_t k = 0;
  while (k < n && dim_is_const(dims[k])) {
    k++;
  }
  return k == n;
}

/* Returns true if 0 is less than all limits.  Before a check, inside_sizes replaces elements beyond the sizes of
 * dynamic dimensions by 0, which would fail the check of a limit of 0; onnx_check then makes no check. */
static bool zero_fits(const onnx_node *n, uint32_t count, const dim *limits) {
  bool fits = true;
  for (uint32_t k = 0; k < count && fits; k++) {
    fits = dim_at_most(onnx_dims(n), 1, limits[k]);
  }
  return fits;
}

status onnx_check(const onnx_node *n, hlo_value x, const char *what, uint32_t count, const dim *limits, bool from_end) {
  const literal *known = hlo_literal(x);
  if (n->b->error || shape_is_empty(hlo_shape(x))) {
    return NULL;
  }
  if (known && !are_constants(count, limits)) {
    return check_known(n, known, what, count, limits, from_end);
  }
  if (known) { /* a constant is checked now, since constant folding skips large constants */
    const bounds b = {what, count, limits, from_end};
    status failed = bounds_check(&b, hlo_type(x), literal_aligned(known, n->arena), shape_elements(&known->shape));
    status invalid = failed ? status_error(INVALID, "%s", status_message(failed)) : NULL;
    status_free(failed);
    return invalid;
  }
  if (!n->scope->importer->frame->unchecked &&
      (!onnx_has_dynamic_dims(n->scope->importer, x) || zero_fits(n, count, limits))) {
    hlo_check(n->b, inside_sizes(n, x, count == 0), what, count, limits, from_end);
  }
  return NULL;
}

status onnx_check_below(const onnx_node *n, hlo_value x, const char *what, dim size) {
  return onnx_check(n, x, what, 1, &size, false);
}

static bool has_negative(const literal *l) {
  bool negative = false;
  for (int64_t k = 0, n = shape_elements(&l->shape); k < n && !negative; k++) {
    negative = literal_i64(l, k) < 0;
  }
  return negative;
}

/* Does the work of onnx_index_tuples for indices x whose elements are known during the import, as constants or
 * expressions of symbols; elements[] has these n_known elements. */
static status known_indices(const onnx_node *n, hlo_value x, const char *what, uint32_t count, const dim *sizes,
                            int n_known, dim *elements, hlo_value *out) {
  dim_table *t = onnx_dims(n);
  for (int k = 0; k < n_known; k++) {
    dim size = sizes[(uint32_t)k % count];
    elements[k] = dim_at_most(t, 0, elements[k]) ? elements[k] : dim_signed_add(t, elements[k], size);
    CHECK_THAT(dim_at_most(t, 0, elements[k]) && dim_at_most(t, dim_signed_add(t, elements[k], 1), size), INVALID,
               "%s[%d] is outside of its dimension", what, k);
  }
  *out = hlo_sizes(n->b, hlo_type(x), hlo_rank(x) ? n_known : -1, elements);
  return NULL;
}

status onnx_index_tuples(onnx_node *n, uint32_t k, const char *what, uint32_t count, const dim *sizes, hlo_value *out) {
  hlo_value x = n->in[k];
  dim elements[HLO_MAX_SIZES];
  *out = x;
  if (count == 0) {
    return NULL;
  }
  int n_known = hlo_sizes_of(x, elements);
  if (n_known >= 0 && (!hlo_literal(x) || !are_constants(count, sizes))) {
    return known_indices(n, x, what, count, sizes, n_known, elements, out);
  }
  TRY(onnx_check(n, x, what, count, sizes, true));
  if (hlo_literal(x) && !has_negative(hlo_literal(x))) {
    return NULL;
  }
  hlo_value size = hlo_convert(n->b, hlo_sizes(n->b, DTYPE_S64, (int)count, sizes), hlo_type(x));
  if (count == 1) {
    size = hlo_reshape(n->b, size, 0, NULL);
  }
  size = hlo_broadcast_to(n->b, size, hlo_shape(x));
  hlo_value below = onnx_compare_scalar(n->b, HLO_LT, x, 0);
  *out = hlo_select(n->b, below, hlo_binary(n->b, HLO_ADD, x, size), x);
  return NULL;
}

status onnx_indices(onnx_node *n, uint32_t k, const char *what, dim size, hlo_value *out) {
  return onnx_index_tuples(n, k, what, 1, &size, out);
}

hlo_value onnx_take_known(hlo_builder *b, hlo_value x, int64_t axis, const int64_t *indices, int64_t count) {
  if (count == 0) {
    return hlo_slice_dim(b, x, axis, 0, 0);
  }
  return hlo_take(b, x, hlo_s64s(b, indices, count), axis);
}
