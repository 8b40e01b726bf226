/* slice.c - operators that cut and join arrays: Slice, Split, Concat. */
#include <inttypes.h>
#include <string.h>

#include "base/dim/extreme.h"
#include "base/dim/guard.h"
#include "frontend/import/import_helpers.h"
#include "frontend/import/sizes.h"
#include "frontend/import/symbolic.h"
#include "hlo/ir/element.h"
#include "hlo/ir/fold_sizes.h"

#define INVALID STATUS_INVALID_MODEL

/* --- Slice --- */

static int64_t smaller_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t clamp(int64_t v, int64_t low, int64_t high) { return v < low ? low : v > high ? high : v; }

/* The selected elements of one dimension: a slice with a positive stride, which is reversed afterwards if `reversed`.
 */
typedef struct slice_dim {
  dim start, limit;
  int64_t stride;
  bool reversed;
} slice_dim;

/* Resolves a position that counts from the end if it is negative, and clamps it to [0, extent]. */
static dim resolve_position(dim_table *t, dim v, dim extent) {
  v = dim_at_most(t, 0, v) ? v : dim_larger(t, 0, dim_signed_add(t, v, extent));
  return dim_smaller(t, v, extent);
}

/* Like resolve_position, for a negative step: clamps to [low, high]. */
static dim resolve_backward(dim_table *t, dim v, dim low, dim high, dim extent) {
  v = dim_at_most(t, 0, v) ? v : dim_signed_add(t, v, extent);
  return !dim_at_most(t, low, v) ? low : v == high || dim_at_most(t, v, high) ? v : high;
}

/* Resolves x[start:end:step].  Unlike in numpy, a start before the first element means the first element even if the
 * step is negative.  The step may be any int64: it is clamped, since steps beyond the extent select the same elements.
 * Exporters write a very large end for "to the end of the dimension"; `end` is then DIM_MAX (onnx_const_dims). */
static slice_dim resolve_slice(dim_table *t, dim start, dim end, int64_t step, dim extent) {
  enum { ROOM = 1 << 8 }; /* so that a number of elements plus the stride is not too large */
  bool back = step < 0;
  int64_t most = dim_is_const(extent) ? extent + 1 : DIM_MAX / ROOM, stride = clamp(step, -most, most);
  dim highest = back ? dim_signed_sub(t, extent, 1) : extent;
  stride = back ? -stride : stride;
  start = back ? resolve_backward(t, start, 0, highest, extent) : resolve_position(t, start, extent);
  end = end == DIM_MAX ? highest
        : back         ? resolve_backward(t, end, dim_signed_const(t, -1), highest, extent)
                       : resolve_position(t, end, extent);
  dim span = back ? dim_signed_sub(t, start, end) : dim_signed_sub(t, end, start);
  bool empty = !dim_at_most(t, dim_is_const(span) || back ? 1 : 0, span);
  if (empty || (back && dim_at_most(t, extent, 0))) { /* an empty dimension has no first element */
    return (slice_dim){0, 0, 1, false};
  }
  if (!back) { /* a step that is longer than any dimension takes one element, or none; TensorFlow's exporter writes x[i]
                  so */
    enum { LONG = 1 << 24 };
    bool one = stride >= LONG && !dim_is_const(span) && dim_at_most(t, span, stride);
    return one ? (slice_dim){start, dim_add(t, start, dim_smaller(t, span, 1)), 1, false}
               : (slice_dim){start, end, stride, false};
  }
  /* the distance between the first and the last selected element */
  dim last = dim_mul(t, dim_floordiv(t, dim_sub(t, span, 1), stride), stride);
  return (slice_dim){dim_sub(t, start, last), dim_add_const(t, start, 1), stride, true};
}

/* The arguments of Slice; each list has n entries.  If axes is NULL, the first n axes are meant; if steps is NULL, all
 * steps are 1. */
typedef struct slice_args {
  const dim *starts, *ends;
  const int64_t *axes, *steps;
  int64_t n;
} slice_args;

static status same_count(const char *what, int64_t count, int64_t n) {
  CHECK_THAT(count == n, INVALID, "%s has %" PRId64 " entries but starts has %" PRId64, what, count, n);
  return NULL;
}

/* Reads the arguments of Slice, which are attributes in version 1 and inputs in later versions, and those of the
 * experimental operator DynamicSlice, which are inputs without steps. */
static status slice_arguments(const onnx_node *n, slice_args *a) {
  int64_t count;
  bool attrs = n->n_in == 1;
  for (int k = 0; attrs && k < 2; k++) {
    TRY(onnx_attr_required(n->proto, k ? "ends" : "starts"));
  }
  *a = (slice_args){0};
  TRY(onnx_dims_attr_or_input(n, "starts", 1, &a->starts, &a->n));
  TRY(onnx_dims_attr_or_input(n, "ends", 2, &a->ends, &count));
  TRY(same_count("ends", count, a->n));
  TRY(onnx_ints_attr_or_input(n, "axes", 3, &a->axes, &count));
  if (a->axes) {
    TRY(same_count("axes", count, a->n));
  }
  if (!attrs && onnx_has_in(n, 4)) {
    TRY(onnx_const_ints(n, 4, "steps", &a->steps, &count));
    TRY(same_count("steps", count, a->n));
  }
  return NULL;
}

/* --- Slice at a computed position --- */

/* A Slice whose step is at least the dimension, and whose end is not before its end, takes one element, that at
 * `start`, or none. TensorFlow's exporter writes x[i] so: the step and the end are 10^9 or more, and a Squeeze follows.
 */
typedef struct single {
  hlo_value x;                      /* what is sliced */
  hlo_value starts[SHAPE_MAX_RANK]; /* where the single element is, s64[]; def is NULL for other dimensions */
  hlo_value sizes[SHAPE_MAX_RANK];  /* 1 or 0, s64[]; def is NULL for other dimensions */
} single;

/* Returns what is known of entry k of input number `input`; all of it if the input is absent, which means 1. */
static hlo_element entry(const onnx_node *n, uint32_t input, int64_t k) {
  return onnx_has_in(n, input) ? hlo_element_of(n->in[input], k) : (hlo_element){1, 1};
}

static bool reaches(dim_table *t, const hlo_element *e, dim extent) {
  return e->least > 0 && dim_at_most(t, extent, smaller_of(e->least, DIM_MAX));
}

/* Takes the elements of one dimension that entry k of the arguments selects.  Returns false if their number depends on
 * more than whether there is one. */
static bool take_entry(const onnx_node *n, int64_t k, int64_t axis, single *out) {
  hlo_builder *b = n->b;
  dim_table *t = onnx_dims(n);
  dim extent = hlo_shape(out->x)->dims[axis];
  hlo_element start = entry(n, 1, k), end = entry(n, 2, k), step = entry(n, 4, k);
  if (start.value != DIM_OVERFLOW && end.value != DIM_OVERFLOW && step.value == 1) {
    slice_dim d = resolve_slice(t, start.value, end.value, 1, extent);
    out->x = hlo_slice_dim(b, out->x, axis, d.start, d.limit);
    return true;
  }
  if (!reaches(t, &step, extent) || !reaches(t, &end, extent) || !dim_at_most(t, 1, extent)) {
    return false;
  }
  hlo_value at = hlo_convert(b, hlo_reshape(b, hlo_slice_dim(b, n->in[1], 0, k, k + 1), 0, NULL), DTYPE_S64);
  hlo_value size = hlo_sizes(b, DTYPE_S64, -1, &extent), zero = hlo_scalar(b, DTYPE_S64, 0);
  hlo_value from_end = hlo_binary(b, HLO_MAX, hlo_binary(b, HLO_ADD, at, size), zero);
  out->starts[axis] = hlo_select(b, hlo_compare(b, HLO_LT, at, zero), from_end, at);
  out->sizes[axis] = hlo_convert(b, hlo_compare(b, HLO_LT, out->starts[axis], size), DTYPE_S64);
  return true;
}

/* Imports a Slice of which a start is computed from data, and each dimension of whose result has a known size or is one
 * element or none, which is then a dynamic dimension.  Sets *done to false if it is not such a Slice. */
static status slice_single(onnx_node *n, bool *done) {
  const int64_t *axes = NULL;
  int64_t count = 0, n_axes = 0;
  dim elements[HLO_MAX_SIZES], dims[SHAPE_MAX_RANK];
  single one = {.x = n->in[0]};
  int rank = hlo_rank(n->in[0]);
  *done = n->n_in > 2 && hlo_rank(n->in[1]) == 1 && shape_is_static(hlo_shape(n->in[1])) &&
          hlo_sizes_of(n->in[1], elements) < 0 && (!onnx_has_in(n, 3) || hlo_literal(n->in[3]));
  if (!*done) {
    return NULL;
  }
  count = hlo_shape(n->in[1])->dims[0];
  if (onnx_has_in(n, 3)) {
    int64_t sorted[SHAPE_MAX_RANK];
    TRY(onnx_const_ints(n, 3, "axes", &axes, &n_axes));
    TRY(onnx_axes(axes, (size_t)n_axes, rank, sorted));
  }
  for (uint32_t k = 2; k < n->n_in; k++) {
    *done = *done && (!onnx_has_in(n, k) || (hlo_rank(n->in[k]) == 1 && hlo_shape(n->in[k])->dims[0] == count));
  }
  for (int64_t k = 0; *done && k < count; k++) {
    *done = take_entry(n, k, !axes ? k : axes[k] < 0 ? axes[k] + rank : axes[k], &one);
  }
  if (!*done) {
    return NULL;
  }
  hlo_value list[SHAPE_MAX_RANK];
  for (int d = 0; d < rank; d++) {
    dims[d] = one.sizes[d].def ? 1 : hlo_shape(one.x)->dims[d];
    list[d] = one.sizes[d].def ? one.starts[d] : hlo_scalar(n->b, DTYPE_S64, 0);
    list[d] = hlo_reshape(n->b, list[d], 1, (dim[]){1});
  }
  n->out[0] = hlo_dynamic_slice(n->b, one.x, hlo_concatenate(n->b, (uint32_t)rank, list, 0), dims);
  for (int d = 0; d < rank; d++) {
    onnx_dynamic_dim_set(n->scope->importer, n->out[0], d, one.sizes[d]);
  }
  return NULL;
}

status onnx_import_slice(onnx_node *n) {
  const shape *s = hlo_shape(n->in[0]);
  slice_args a;
  bool done;
  TRY(slice_single(n, &done));
  if (done) {
    return NULL;
  }
  int64_t sorted[SHAPE_MAX_RANK], reversed[SHAPE_MAX_RANK];
  TRY(slice_arguments(n, &a));
  CHECK_THAT(a.axes || a.n <= s->rank, INVALID, "starts has %" PRId64 " entries but data is %s", a.n,
             SHAPE_STR(onnx_dims(n), s));
  if (a.axes) {
    TRY(onnx_axes(a.axes, (size_t)a.n, s->rank, sorted));
  }
  dim starts[SHAPE_MAX_RANK] = {0}, limits[SHAPE_MAX_RANK];
  int64_t strides[SHAPE_MAX_RANK];
  bool turn[SHAPE_MAX_RANK] = {false};
  for (int k = 0; k < s->rank; k++) {
    limits[k] = s->dims[k];
    strides[k] = 1;
  }
  for (int64_t k = 0; k < a.n; k++) {
    int64_t axis = !a.axes ? k : a.axes[k] < 0 ? a.axes[k] + s->rank : a.axes[k], step = a.steps ? a.steps[k] : 1;
    CHECK_THAT(step != 0, INVALID, "steps[%" PRId64 "] is 0", k);
    slice_dim d = resolve_slice(onnx_dims(n), a.starts[k], a.ends[k], step, s->dims[axis]);
    starts[axis] = d.start;
    limits[axis] = d.limit;
    strides[axis] = d.stride;
    turn[axis] = d.reversed;
  }
  uint32_t n_reversed = 0;
  for (int k = 0; k < s->rank; k++) {
    if (turn[k]) {
      reversed[n_reversed++] = k;
    }
  }
  hlo_value y = hlo_slice(n->b, n->in[0], starts, limits, strides);
  n->out[0] = n_reversed ? hlo_reverse(n->b, y, n_reversed, reversed) : y;
  return NULL;
}

/* --- Split --- */

/* Computes the sizes of equal parts, for a Split without `split`.  Since version 18 the last part may be smaller. */
static status equal_parts(const onnx_node *n, dim extent, dim *sizes) {
  int64_t parts;
  dim_table *t = onnx_dims(n);
  TRY(onnx_attr_int(n->proto, "num_outputs", n->n_out, &parts));
  CHECK_THAT(parts == n->n_out, INVALID, "num_outputs is %" PRId64 " but the node has %" PRIu32 " outputs", parts,
             n->n_out);
  CHECK_THAT(n->since >= 18 || dim_equal(t, dim_mod(t, extent, parts), 0), INVALID,
             "dimension %s does not divide into %" PRId64 " parts", dim_print(n->arena, t, extent), parts);
  dim part = dim_ceildiv(t, extent, parts), left = extent;
  for (int64_t k = 0; k < parts; k++) { /* the first part always fits, and the last one is what is left */
    bool fits = k == 0 || (k < parts - 1 && dim_at_most(t, part, left));
    sizes[k] = fits ? part : left;
    left = dim_sub(t, left, sizes[k]);
  }
  return NULL;
}

/* Reads the sizes of the parts.  In version 1 they may be an input of the same, possibly floating-point, type as the
 * data. */
static status given_sizes(const onnx_node *n, const dim **given, int64_t *count) {
  if (n->since > 1 || !onnx_has_in(n, 1)) {
    return onnx_dims_attr_or_input(n, "split", 1, given, count);
  }
  const double *numbers;
  TRY(onnx_const_floats(n, 1, "split", &numbers, count));
  dim *list = ARENA_NEW_N(n->arena, dim, (size_t)*count);
  for (int64_t k = 0; k < *count; k++) {
    CHECK_THAT(numbers[k] >= 0 && numbers[k] <= DIM_MAX, INVALID, "split[%" PRId64 "] is %g", k, numbers[k]);
    list[k] = (int64_t)numbers[k];
  }
  *given = list;
  return NULL;
}

static status split_sizes(const onnx_node *n, dim extent, dim *sizes) {
  const dim *given;
  int64_t count;
  dim_table *t = onnx_dims(n);
  dim left = extent;
  TRY(given_sizes(n, &given, &count));
  if (!given) {
    return equal_parts(n, extent, sizes);
  }
  CHECK_THAT(!onnx_attr_has(n->proto, "num_outputs"), INVALID, "split and num_outputs are both given");
  CHECK_THAT(count == n->n_out, INVALID, "split has %" PRId64 " entries but the node has %" PRIu32 " outputs", count,
             n->n_out);
  for (int64_t k = 0; k < count; k++) {
    CHECK_THAT(dim_at_most(t, 0, given[k]) && dim_at_most(t, given[k], left), INVALID,
               "split[%" PRId64 "] is %s; %s of %s elements are left", k, dim_print(n->arena, t, given[k]),
               dim_print(n->arena, t, left), dim_print(n->arena, t, extent));
    sizes[k] = given[k];
    left = dim_sub(t, left, given[k]);
  }
  CHECK_THAT(dim_equal(t, left, 0), INVALID, "split sums to %s, not to the dimension %s",
             dim_print(n->arena, t, dim_sub(t, extent, left)), dim_print(n->arena, t, extent));
  return NULL;
}

status onnx_import_split(onnx_node *n) {
  const shape *s = hlo_shape(n->in[0]);
  int64_t axis;
  dim *sizes = ARENA_NEW_N(n->arena, dim, n->n_out), start = 0;
  TRY(onnx_axis_attr(n, 0, s->rank, &axis));
  TRY(split_sizes(n, s->dims[axis], sizes));
  for (uint32_t k = 0; k < n->n_out; k++) {
    dim limit = dim_add(onnx_dims(n), start, sizes[k]);
    n->out[k] = hlo_slice_dim(n->b, n->in[0], axis, start, limit);
    start = limit;
  }
  return NULL;
}

/* --- Concat --- */

status onnx_import_concat(onnx_node *n) {
  int64_t axis;
  if (n->since >= 4) {
    TRY(onnx_attr_required(n->proto, "axis"));
  }
  for (uint32_t k = 0; k < n->n_in; k++) {
    CHECK_THAT(n->in[k].def, INVALID, "input %" PRIu32 " is missing", k);
  }
  TRY(onnx_axis_attr(n, 1, hlo_rank(n->in[0]), &axis));
  n->out[0] = hlo_concatenate(n->b, n->n_in, n->in, axis);
  return NULL;
}
