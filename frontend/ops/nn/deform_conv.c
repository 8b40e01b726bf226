/* deform_conv.c - the importer of DeformConv, in which every kernel element (cell) reads the input at a computed
 * position.  The values that all cells read are collected in an array of columns, which is then convolved with the
 * kernel. */
#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/nn/sample.h"

typedef struct deform {
  onnx_window w;
  int64_t groups, offset_groups, cells; /* cells: the number of spatial positions in the kernel */
  dim batch, channels, in[ONNX_MAX_SPATIAL], out[ONNX_MAX_SPATIAL];
} deform;

/* Appends the spatial dimensions of the result to n leading dimensions; returns the rank. */
static int over_places(const deform *d, int n, dim *dims) {
  memcpy(dims + n, d->out, (size_t)d->w.n * sizeof *dims);
  return n + d->w.n;
}

static status check_offsets(const onnx_node *n, const deform *d) {
  dim want[2 + ONNX_MAX_SPATIAL] = {d->batch, d->offset_groups * d->cells * d->w.n};
  int rank = over_places(d, 2, want);
  TRY(onnx_need_dims(n, 2, "offset", rank, want));
  TRY(onnx_need_dims(n, 3, "B", 1, &onnx_in_shape(n, 1)->dims[0]));
  want[1] = d->offset_groups * d->cells;
  return onnx_need_dims(n, 4, "mask", rank, want);
}

static status read_deform(const onnx_node *n, deform *d) {
  const shape *x = onnx_in_shape(n, 0), *w = onnx_in_shape(n, 1);
  TRY(onnx_need_rank(n, 0, "X", 3, 2 + ONNX_MAX_SPATIAL));
  TRY(onnx_need_rank(n, 1, "W", x->rank, x->rank));
  TRY(onnx_attr_int_in(n->proto, "group", 1, 1, ONNX_WINDOW_MAX, &d->groups));
  TRY(onnx_attr_int_in(n->proto, "offset_group", 1, 1, ONNX_WINDOW_MAX, &d->offset_groups));
  for (int k = 2; k < w->rank; k++) {
    int64_t cells;
    TRY(onnx_const_dim(n, w->dims[k], "the extent of a kernel", &cells));
  }
  TRY(onnx_read_window(n, x->rank - 2, w->dims + 2, &d->w));
  TRY(onnx_window_fits(n, &d->w, x->dims + 2));
  d->batch = x->dims[0];
  d->channels = x->dims[1];
  dim_table *t = onnx_dims(n);
  CHECK_THAT(dim_equal(t, d->channels, dim_mul(t, w->dims[1], d->groups)) &&
                 dim_equal(t, dim_mod(t, w->dims[0], d->groups), 0) &&
                 dim_equal(t, dim_mod(t, d->channels, d->offset_groups), 0),
             STATUS_INVALID_MODEL, "X is %s and W is %s; they do not fit group %" PRId64 " and offset_group %" PRId64,
             SHAPE_STR(onnx_dims(n), x), SHAPE_STR(onnx_dims(n), w), d->groups, d->offset_groups);
  d->cells = shape_product(w, 2, w->rank);
  for (int k = 0; k < d->w.n; k++) {
    d->in[k] = x->dims[2 + k];
    dim beyond = dim_signed_const(t, d->w.low[k] + d->w.high[k] - onnx_window_extent(&d->w, k) + d->w.strides[k]);
    d->out[k] = dim_floordiv(t, dim_signed_add(t, d->in[k], beyond), d->w.strides[k]);
  }
  return check_offsets(n, d);
}

/* Returns the position that each cell reads along spatial dimension k, [N * offset groups, cells, out...]: its position
 * in the undeformed window plus the offset. */
static hlo_value positions(const onnx_node *n, const deform *d, hlo_value offset, int k) {
  hlo_builder *b = n->b;
  shape s = *hlo_shape(offset);
  int64_t behind = 1; /* the number of cells with the same index in dimensions 0 to k: the product of later extents */
  for (int j = k + 1; j < d->w.n; j++) {
    behind *= d->w.kernel[j];
  }
  hlo_value at = onnx_times(b, hlo_iota(b, s, 2 + k), (double)d->w.strides[k]);
  hlo_value cell = hlo_iota(b, shape_with_type(s, DTYPE_S64), 1);
  cell = onnx_binary_scalar(b, HLO_DIV, cell, (double)behind);
  cell = onnx_binary_scalar(b, HLO_REM, cell, (double)d->w.kernel[k]);
  cell = hlo_convert(b, cell, hlo_type(offset));
  at = hlo_binary(b, HLO_ADD, at, onnx_times(b, cell, (double)d->w.dilations[k]));
  return hlo_binary(b, HLO_ADD, onnx_plus(b, at, -(double)d->w.low[k]), offset);
}

/* Returns the array of columns that the comment at the top describes: [N * offset groups, C / offset groups, cells,
 * out...]. */
static hlo_value read_columns(const onnx_node *n, const deform *d, hlo_value x) {
  hlo_builder *b = n->b;
  onnx_taps taps[ONNX_MAX_SPATIAL];
  dim_table *t = onnx_dims(n);
  dim rows = dim_mul(t, d->batch, d->offset_groups), dims[3 + ONNX_MAX_SPATIAL] = {rows, d->cells, d->w.n};
  hlo_value offset = hlo_reshape(b, onnx_widen(b, n->in[2]), over_places(d, 3, dims), dims);
  for (int k = 0; k < d->w.n; k++) {
    onnx_linear_taps(b, positions(n, d, onnx_pick(b, offset, 2, k), k), d->in[k], &taps[k]);
  }
  dim split[2 + ONNX_MAX_SPATIAL] = {rows, dim_floordiv(t, d->channels, d->offset_groups)};
  memcpy(split + 2, d->in, (size_t)d->w.n * sizeof *split);
  hlo_value sum = onnx_interpolate(n, hlo_reshape(b, x, 2 + d->w.n, split), d->w.n, taps);
  if (onnx_has_in(n, 4)) {
    hlo_value mask = hlo_reshape(b, onnx_widen(b, n->in[4]), over_places(d, 2, dims), dims);
    sum = hlo_binary(b, HLO_MUL, sum, onnx_over_channels(b, mask, sum, false));
  }
  return sum;
}

status onnx_import_deform_conv(onnx_node *n) {
  hlo_builder *b = n->b;
  deform d = {0};
  TRY(read_deform(n, &d));
  const shape *w = onnx_in_shape(n, 1);
  hlo_value columns = read_columns(n, &d, onnx_widen(b, n->in[0])), kernel = onnx_widen(b, n->in[1]);
  dim places = 1, result[2 + ONNX_MAX_SPATIAL] = {d.batch, w->dims[0]};
  for (int k = 0; k < d.w.n; k++) {
    places = dim_mul(onnx_dims(n), places, d.out[k]);
  }
  columns = hlo_reshape(b, columns, 4, (dim[]){d.batch, d.channels, d.cells, places});
  kernel = hlo_reshape(b, kernel, 4, (dim[]){w->dims[0], w->dims[1], d.cells, 1});
  hlo_conv_dims dims = {.groups = d.groups, .layout = HLO_CHANNELS_FIRST};
  hlo_value y = hlo_convolution(b, columns, kernel, &dims);
  y = hlo_reshape(b, y, over_places(&d, 2, result), result);
  if (onnx_has_in(n, 3)) {
    y = hlo_binary(b, HLO_ADD, y, onnx_along(b, onnx_widen(b, n->in[3]), hlo_shape(y), 1));
  }
  n->out[0] = hlo_convert(b, y, hlo_type(n->in[0]));
  return NULL;
}
