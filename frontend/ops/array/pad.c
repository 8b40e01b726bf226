/* pad.c - operators that pad arrays: Pad, CenterCropPad. */
#include <inttypes.h>
#include <string.h>

#include "base/arith.h"
#include "base/dim/guard.h"
#include "frontend/import/import_helpers.h"
#include "frontend/import/symbolic.h"
#include "hlo/ir/fold_sizes.h"

#define INVALID STATUS_INVALID_MODEL

/* --- Pad --- */

typedef enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP } pad_mode;

/* The standard has the mode wrap from version 19 on.  PyTorch's exporter writes it into models of version 18 as well,
 * and ONNX Runtime runs these. */
static status pad_mode_attr(const onnx_node *n, pad_mode *out) {
  static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
  const char *mode;
  TRY(onnx_attr_string(n->arena, n->proto, "mode", "constant", &mode));
  for (int k = 0; k < (n->since >= 18 ? 4 : 3); k++) {
    if (strcmp(mode, names[k]) == 0) {
      *out = (pad_mode)k;
      return NULL;
    }
  }
  return status_error(INVALID, "mode is '%s', which version %d does not have", mode, n->since);
}

/* Reads the axes to which the 2 * n_axes entries of pads belong: all of them, or those that the input `axes` names. */
static status pad_axes(const onnx_node *n, const char *name, int64_t count, int rank, int64_t *axis, int64_t *n_axes) {
  const int64_t *axes = NULL;
  int64_t sorted[SHAPE_MAX_RANK];
  *n_axes = rank;
  if (onnx_has_in(n, 3)) {
    TRY(onnx_const_ints(n, 3, "axes", &axes, n_axes));
    TRY(onnx_axes(axes, (size_t)*n_axes, rank, sorted));
  }
  CHECK_THAT(count == 2 * *n_axes, INVALID, "%s has %" PRId64 " entries; %" PRId64 " are required", name, count,
             2 * *n_axes);
  for (int64_t k = 0; k < *n_axes; k++) {
    axis[k] = !axes ? k : axes[k] < 0 ? axes[k] + rank : axes[k];
  }
  return NULL;
}

/* Reads the padding before (low) and after (high) each dimension; the padding is 0 for dimensions that the input `axes`
 * does not name. */
static status pad_widths(const onnx_node *n, const shape *s, int64_t *low, int64_t *high) {
  const int64_t *pads;
  int64_t count, n_axes, axes[SHAPE_MAX_RANK];
  const char *name = n->since == 1 ? "paddings" : "pads";
  if (n->since < 11) {
    TRY(onnx_attr_required(n->proto, name));
  }
  TRY(onnx_ints_attr_or_input(n, name, 1, &pads, &count));
  TRY(pad_axes(n, name, count, s->rank, axes, &n_axes));
  memset(low, 0, SHAPE_MAX_RANK * sizeof *low);
  memset(high, 0, SHAPE_MAX_RANK * sizeof *high);
  for (int64_t k = 0; k < n_axes; k++) {
    int64_t axis = axes[k];
    dim extent = s->dims[axis];
    low[axis] = pads[k];
    high[axis] = pads[k + n_axes];
    CHECK_THAT(low[axis] >= -DIM_MAX && low[axis] <= DIM_MAX && high[axis] >= -DIM_MAX && high[axis] <= DIM_MAX,
               INVALID, "%s of axis %" PRId64 " are %" PRId64 " and %" PRId64, name, axis, low[axis], high[axis]);
    dim_table *t = onnx_dims(n);
    dim padded = dim_signed_add(t, extent, dim_signed_const(t, low[axis] + high[axis]));
    CHECK_THAT(dim_at_most(t, 0, padded), INVALID,
               "%s of axis %" PRId64 " are %" PRId64 " and %" PRId64 ", which takes more than its %s elements", name,
               axis, low[axis], high[axis], dim_print(n->arena, t, extent));
  }
  return NULL;
}

static status pad_value(onnx_node *n, hlo_value *value) {
  dtype t = hlo_type(n->in[0]);
  float v = 0;
  if (n->since >= 11 && onnx_has_in(n, 2)) {
    *value = onnx_scalar_input(n, 2, "constant_value");
    return NULL;
  }
  if (n->since < 11) {
    TRY(onnx_attr_float(n->proto, "value", 0, &v));
  }
  *value = hlo_scalar(n->b, t, v);
  return NULL;
}

/* Returns the index, in [0, extent), of the element that is at position p of the padded dimension.  Position 0 is the
 * first element that is not padding, so p is negative in the padding before it. */
static int64_t padded_index(pad_mode mode, int64_t p, int64_t extent) {
  int64_t period = mode == PAD_REFLECT ? 2 * (extent - 1) : extent;
  if (mode == PAD_EDGE || period == 0) {
    return max_i64(0, min_i64(p, extent - 1));
  }
  p = p % period + (p % period < 0 ? period : 0);
  return p < extent ? p : period - p;
}

/* Pads one axis of symbolic extent, or by symbolic widths: concatenates the padding before *x, *x itself, and the
 * padding after it.  The padding consists of copies of the first or last element (edge), or is a slice of *x, reversed
 * (reflect) or as it is (wrap).  The slice must fit into the extent; if the extent may be too small, or a width may be
 * negative, the dimensions of the data and the widths are pinned, and an error is returned. */
static status pad_open_axis(onnx_node *n, pad_mode mode, int64_t axis, dim low, dim high, hlo_value *x) {
  dim_table *t = onnx_dims(n);
  hlo_builder *b = n->b;
  dim extent = hlo_shape(*x)->dims[axis];
  hlo_value parts[3];
  uint32_t count = 0;
  for (int side = 0; side < 3; side++) { /* before, the array, after */
    dim width = side == 0 ? low : side == 2 ? high : 1, skip = mode == PAD_REFLECT;
    if (width == 0) {
      continue;
    }
    if (side == 1) {
      parts[count++] = *x;
      continue;
    }
    dim run = mode == PAD_EDGE ? 1 : dim_signed_add(t, width, skip);
    if (!dim_at_most(t, 0, width) || !dim_at_most(t, run, extent)) {
      const int64_t *pads;
      int64_t n_pads;
      TRY(onnx_need_constant_dims(n, 0, "data"));
      return onnx_const_ints(n, 1, "pads", &pads, &n_pads);
    }
    bool at_start = (side == 0) != (mode == PAD_WRAP);
    dim from = at_start ? (mode == PAD_EDGE ? 0 : skip) : dim_signed_sub(t, extent, run);
    hlo_value part = hlo_slice_dim(b, *x, axis, from, dim_signed_add(t, from, mode == PAD_EDGE ? 1 : width));
    if (mode == PAD_EDGE) {
      shape to = *hlo_shape(part);
      to.dims[axis] = width;
      part = hlo_broadcast_to(b, part, &to);
    }
    parts[count++] = mode == PAD_REFLECT ? hlo_reverse(b, part, 1, &axis) : part;
  }
  *x = hlo_concatenate(b, count, parts, axis);
  return NULL;
}

/* Pads one axis of constant extent of *x: gathers elements at a constant list of indices. */
static status pad_axis(onnx_node *n, pad_mode mode, int64_t axis, int64_t low, int64_t high, hlo_value *x) {
  int64_t extent = hlo_shape(*x)->dims[axis], count = extent + low + high;
  shape to = *hlo_shape(*x);
  to.dims[axis] = count;
  TRY(shape_check(&to, "the result"));
  CHECK_THAT(extent > 0 || count == 0, INVALID, "axis %" PRId64 " has no elements to pad from", axis);
  int64_t *indices = ARENA_NEW_N(n->arena, int64_t, (size_t)count);
  for (int64_t k = 0; k < count; k++) {
    indices[k] = padded_index(mode, k - low, extent);
  }
  *x = onnx_take_known(n->b, *x, axis, indices, count);
  return NULL;
}

/* Pads one axis of *x with copies of its elements.  Elements that a negative `low` or `high` removes are removed first,
 * so that they are not copied. */
static status pad_by_copies(onnx_node *n, pad_mode mode, int64_t axis, int64_t low, int64_t high, hlo_value *x) {
  dim_table *t = onnx_dims(n);
  dim extent = hlo_shape(*x)->dims[axis];
  int64_t start = low < 0 ? -low : 0, cut = high < 0 ? -high : 0;
  if (start || cut) {
    CHECK_THAT(dim_at_most(t, start + cut, extent), INVALID,
               "axis %" PRId64 " has %s elements, fewer than pads removes", axis, dim_print(n->arena, t, extent));
    *x = hlo_slice_dim(n->b, *x, axis, start, dim_add_const(t, extent, -cut));
  }
  if (low <= 0 && high <= 0) {
    return NULL;
  }
  return dim_is_const(extent) ? pad_axis(n, mode, axis, low + start, high + cut, x)
                              : pad_open_axis(n, mode, axis, low + start, high + cut, x);
}

/* Pads the axis of x with `low` elements before and `high` elements after it, which are all `value`.  A
 * negative `low` or `high` removes that many elements instead. */
static hlo_value pad_by_dims(const onnx_node *n, hlo_value x, hlo_value value, int64_t axis, dim low, dim high) {
  dim_table *t = onnx_dims(n);
  hlo_builder *b = n->b;
  dim extent = hlo_shape(x)->dims[axis];
  bool grows[] = {dim_at_most(t, 0, low), dim_at_most(t, 0, high)};
  dim start = grows[0] ? 0 : dim_signed_sub(t, 0, low), limit = grows[1] ? extent : dim_signed_add(t, extent, high);
  hlo_value parts[3];
  uint32_t count = 0;
  for (int side = 0; side < 3; side++) {
    shape to = *hlo_shape(x);
    to.dims[axis] = side == 0 ? low : high;
    if (side == 1) {
      parts[count++] = grows[0] && grows[1] ? x : hlo_slice_dim(b, x, axis, start, limit);
    } else if (grows[side / 2] && to.dims[axis] != 0) {
      parts[count++] = hlo_broadcast(b, value, to, NULL);
    }
  }
  return hlo_concatenate(b, count, parts, axis);
}

/* Pads one axis of *x by `low` and `high`, of which at least one is symbolic or not 0. */
static status pad_axis_by_dims(onnx_node *n, pad_mode mode, hlo_value value, int64_t axis, dim low, dim high,
                               hlo_value *x) {
  int64_t before, after;
  if (mode == PAD_CONSTANT) {
    *x = pad_by_dims(n, *x, value, axis, low, high);
    return NULL;
  }
  return dim_signed_value(onnx_dims(n), low, &before) && dim_signed_value(onnx_dims(n), high, &after)
             ? pad_by_copies(n, mode, axis, before, after, x)
             : pad_open_axis(n, mode, axis, low, high, x);
}

/* Imports a Pad whose widths the model computes from symbolic sizes.  `value` is that of the mode `constant`. */
static status pad_by_sizes(onnx_node *n, pad_mode mode, hlo_value value) {
  const dim *pads;
  int64_t count, n_axes, axes[SHAPE_MAX_RANK];
  TRY(onnx_const_dims(n, 1, "pads", &pads, &count));
  TRY(pad_axes(n, "pads", count, hlo_rank(n->in[0]), axes, &n_axes));
  hlo_value x = n->in[0];
  for (int64_t k = 0; k < n_axes && !n->b->error; k++) {
    if (pads[k] != 0 || pads[k + n_axes] != 0) {
      TRY(pad_axis_by_dims(n, mode, value, axes[k], pads[k], pads[k + n_axes], &x));
    }
  }
  n->out[0] = x;
  return NULL;
}

/* Pads x by n's attributes and inputs, of which `pads` is a vector. */
static status pad(onnx_node *n) {
  hlo_value x = n->in[0], value = {0};
  int64_t low[SHAPE_MAX_RANK], high[SHAPE_MAX_RANK];
  pad_mode mode;
  TRY(pad_mode_attr(n, &mode));
  if (mode == PAD_CONSTANT) {
    TRY(pad_value(n, &value));
  }
  if (onnx_has_in(n, 1) && n->in[1].def->op == HLO_SIZES) {
    return pad_by_sizes(n, mode, value);
  }
  TRY(pad_widths(n, hlo_shape(x), low, high));
  if (mode == PAD_CONSTANT) {
    n->out[0] = hlo_pad(n->b, x, value, low, high, NULL);
    return NULL;
  }
  for (int k = 0; k < hlo_rank(n->in[0]); k++) {
    TRY(pad_by_copies(n, mode, k, low[k], high[k], &x));
  }
  n->out[0] = x;
  return NULL;
}

/* `pads` may also be [1, 2 * rank], which ONNX Runtime takes in all versions that have it as an input. */
status onnx_import_pad(onnx_node *n) {
  hlo_value in[4] = {{0}};
  onnx_node flat = *n;
  if (onnx_has_in(n, 1) && hlo_rank(n->in[1]) == 2) {
    const dim *dims = onnx_in_shape(n, 1)->dims;
    TRY(onnx_need_dims(n, 1, "pads", 2, (dim[]){1, dims[1]}));
    memcpy(in, n->in, n->n_in * sizeof *in);
    in[1] = hlo_reshape(n->b, in[1], 1, &dims[1]);
    flat.in = in;
  }
  return pad(&flat);
}

/* Crops or pads one axis of x around its centre.  The extent of the axis or the new extent is symbolic. */
static hlo_value centre(const onnx_node *n, hlo_value x, hlo_value zero, int64_t axis, dim want) {
  dim_table *t = onnx_dims(n);
  hlo_builder *b = n->b;
  shape s = *hlo_shape(x), before = s, behind = s;
  dim extent = s.dims[axis];
  if (!dim_at_most(t, extent, want)) {
    dim start = dim_floordiv(t, dim_sub(t, extent, want), 2);
    return hlo_slice_dim(b, x, axis, start, dim_add(t, start, want));
  }
  before.dims[axis] = dim_floordiv(t, dim_sub(t, want, extent), 2);
  behind.dims[axis] = dim_sub(t, dim_sub(t, want, extent), before.dims[axis]);
  hlo_value parts[] = {hlo_broadcast(b, zero, before, NULL), x, hlo_broadcast(b, zero, behind, NULL)};
  return hlo_concatenate(b, 3, parts, axis);
}

/* If the number of elements to add or remove is odd, one more is added or removed at the end than at the start. */
status onnx_import_center_crop_pad(onnx_node *n) {
  const shape *s = hlo_shape(n->in[0]);
  dim_table *t = onnx_dims(n);
  const dim *want;
  const int64_t *axes;
  int64_t count, sorted[SHAPE_MAX_RANK], low[SHAPE_MAX_RANK] = {0}, high[SHAPE_MAX_RANK] = {0};
  size_t n_axes;
  TRY(onnx_const_dims(n, 1, "shape", &want, &count));
  TRY(onnx_attr_ints(n->proto, "axes", &axes, &n_axes));
  n_axes = onnx_attr_has(n->proto, "axes") ? n_axes : s->rank;
  CHECK_THAT(count == (int64_t)n_axes, INVALID, "shape has %" PRId64 " entries; %zu are required", count, n_axes);
  if (axes) {
    TRY(onnx_axes(axes, n_axes, s->rank, sorted));
  }
  hlo_value x = n->in[0], zero = hlo_scalar(n->b, (dtype)s->type, 0);
  for (int64_t k = 0; k < count; k++) {
    int64_t axis = !axes ? k : axes[k] < 0 ? axes[k] + s->rank : axes[k];
    CHECK_THAT(dim_at_most(t, 0, want[k]), INVALID, "shape[%" PRId64 "] is %s", k, dim_print(n->arena, t, want[k]));
    if (!dim_is_const(want[k]) || !dim_is_const(s->dims[axis])) {
      x = want[k] == s->dims[axis] || n->b->error ? x : centre(n, x, zero, axis, want[k]);
      continue;
    }
    int64_t more = want[k] - s->dims[axis];
    low[axis] = more / 2; /* rounds towards zero */
    high[axis] = more - low[axis];
  }
  n->out[0] = hlo_pad(n->b, x, zero, low, high, NULL);
  return NULL;
}
