/* import_deform_conv.c - DeformConv: every kernel element reads at a position of its own; the columns so read
 * are convolved with a kernel of as many rows. */
#include <inttypes.h>

#include "frontend/import_sample.h"

typedef struct deform {
  onnx_window w;
  int64_t groups, offset_groups, cells; /* cells: elements of a kernel */
  dim batch, channels, height, width, out_height, out_width;
} deform;

static status read_deform(const onnx_node *n, deform *d) {
  const shape *x = onnx_in_shape(n, 0), *w = onnx_in_shape(n, 1), *offset = onnx_in_shape(n, 2);
  TRY(onnx_need_rank(n, 0, "X", 3, SHAPE_MAX_RANK));
  CHECK_THAT(x->rank == 4, STATUS_UNSUPPORTED, "X is %s; only 2 spatial dimensions are supported",
             SHAPE_STR(NULL, x));
  TRY(onnx_need_rank(n, 1, "W", 4, 4));
  TRY(onnx_need_float(n, 0, "X"));
  TRY(onnx_attr_int_in(n->proto, "group", 1, 1, ONNX_WINDOW_MAX, &d->groups));
  TRY(onnx_attr_int_in(n->proto, "offset_group", 1, 1, ONNX_WINDOW_MAX, &d->offset_groups));
  TRY(onnx_read_window(n, 2, w->dims + 2, &d->w));
  TRY(onnx_window_fits(&d->w, x->dims + 2));
  d->batch = x->dims[0];
  d->channels = x->dims[1];
  d->height = x->dims[2];
  d->width = x->dims[3];
  CHECK_THAT(d->channels == w->dims[1] * d->groups && w->dims[0] % d->groups == 0 &&
                 d->channels % d->offset_groups == 0,
             STATUS_INVALID_MODEL,
             "X is %s and W is %s; they do not fit group %" PRId64 " and offset_group %" PRId64,
             SHAPE_STR(NULL, x), SHAPE_STR(NULL, w), d->groups, d->offset_groups);
  d->cells = d->w.kernel[0] * d->w.kernel[1];
  d->out_height =
      (d->height + d->w.low[0] + d->w.high[0] - onnx_window_extent(&d->w, 0)) / d->w.strides[0] + 1;
  d->out_width = (d->width + d->w.low[1] + d->w.high[1] - onnx_window_extent(&d->w, 1)) / d->w.strides[1] + 1;
  dim want[] = {d->batch, d->offset_groups * d->cells * 2, d->out_height, d->out_width};
  CHECK_THAT(offset->rank == 4, STATUS_INVALID_MODEL, "offset is %s; its rank must be 4",
             SHAPE_STR(NULL, offset));
  TRY(onnx_need_dims(n, 2, "offset", 4, want));
  TRY(onnx_need_dims(n, 3, "B", 1, &w->dims[0]));
  want[1] = d->offset_groups * d->cells;
  return onnx_need_dims(n, 4, "mask", 4, want);
}

/* Where each cell reads along spatial dimension k, [N * offset groups, cells, out...]: the window's place
 * plus offset. */
static hlo_value positions(const onnx_node *n, const deform *d, hlo_value offset, int k) {
  hlo_builder *b = n->b;
  shape s = *hlo_shape(offset);
  hlo_value at = onnx_times(b, hlo_iota(b, s, 2 + k), (double)d->w.strides[k]);
  hlo_value cell = hlo_iota(b, shape_with_type(s, DTYPE_S64), 1),
            columns = hlo_like(b, cell, (double)d->w.kernel[1]);
  cell = hlo_convert(b, hlo_binary(b, k == 0 ? HLO_DIV : HLO_REM, cell, columns), hlo_type(offset));
  at = hlo_binary(b, HLO_ADD, at, onnx_times(b, cell, (double)d->w.dilations[k]));
  return hlo_binary(b, HLO_ADD, onnx_plus(b, at, -(double)d->w.low[k]), offset);
}

/* The columns, [N * offset groups, C / offset groups, cells, out...]. */
static hlo_value read_columns(const onnx_node *n, const deform *d, hlo_value x) {
  hlo_builder *b = n->b;
  hlo_value offset = onnx_widen(b, n->in[2]), sum = {0};
  onnx_taps taps[2];
  dim rows = d->batch * d->offset_groups;
  offset = hlo_reshape(b, offset, 5, (dim[]){rows, d->cells, 2, d->out_height, d->out_width});
  for (int k = 0; k < 2; k++) {
    hlo_value at = positions(n, d, onnx_pick(b, offset, 2, k), k);
    onnx_linear_taps(b, at, k == 0 ? d->height : d->width, &taps[k]);
  }
  x = hlo_reshape(b, x, 4, (dim[]){rows, d->channels / d->offset_groups, d->height, d->width});
  for (int k = 0; k < 4; k++) {
    hlo_value index[] = {taps[0].index[k / 2], taps[1].index[k % 2]};
    hlo_value weight = hlo_binary(b, HLO_MUL, taps[0].weight[k / 2], taps[1].weight[k % 2]);
    hlo_value y = onnx_read_pixels(b, x, onnx_stacked(b, 2, index), 2);
    /* the output has three dimensions here: cells come first */
    y = hlo_binary(b, HLO_MUL, y, onnx_over_channels(b, weight, y));
    sum = k == 0 ? y : hlo_binary(b, HLO_ADD, sum, y);
  }
  if (onnx_has_in(n, 4)) {
    hlo_value mask =
        hlo_reshape(b, onnx_widen(b, n->in[4]), 4, (dim[]){rows, d->cells, d->out_height, d->out_width});
    sum = hlo_binary(b, HLO_MUL, sum, onnx_over_channels(b, mask, sum));
  }
  return sum;
}

status onnx_import_deform_conv(onnx_node *n) {
  hlo_builder *b = n->b;
  deform d = {0};
  TRY(read_deform(n, &d));
  const shape *w = onnx_in_shape(n, 1);
  hlo_value columns = read_columns(n, &d, onnx_widen(b, n->in[0])), kernel = onnx_widen(b, n->in[1]);
  columns = hlo_reshape(b, columns, 4, (dim[]){d.batch, d.channels, d.cells, d.out_height * d.out_width});
  kernel = hlo_reshape(b, kernel, 4, (dim[]){w->dims[0], w->dims[1], d.cells, 1});
  hlo_conv_dims dims = {.groups = d.groups, .layout = HLO_CHANNELS_FIRST};
  hlo_value y = hlo_convolution(b, columns, kernel, &dims);
  y = hlo_reshape(b, y, 4, (dim[]){d.batch, w->dims[0], d.out_height, d.out_width});
  if (onnx_has_in(n, 3)) {
    y = hlo_binary(b, HLO_ADD, y, onnx_along(b, onnx_widen(b, n->in[3]), hlo_shape(y), 1));
  }
  n->out[0] = hlo_convert(b, y, hlo_type(n->in[0]));
  return NULL;
}
