/* crop_and_resize.c - the importer of CropAndResize: regions of images, resized to one size, as in TensorFlow. */
#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/contrib/contrib.h"
#include "frontend/ops/nn/sample.h"

enum { X, ROIS, BATCH_INDICES, CROP_SIZE };

/* One side (the height or the width) of the crops.  Each array is [R, size]; `nearest` needs only `first`. */
typedef struct side {
  hlo_value inside;        /* pred: whether the position is within the image */
  hlo_value first, second; /* the pixels before and behind the position, s64 */
  hlo_value part;          /* how far the position is from the first to the second pixel */
} side;

/* Returns positions, [R, size], in pixels: evenly from the start to the end of each region or, if size is 1, its
 * middle.  Columns `column` and `column` + 2 of rois hold start and end, as parts of the image of `extent` pixels. */
static hlo_value positions(const onnx_node *n, hlo_value rois, int64_t column, dim size, dim extent) {
  hlo_builder *b = n->b;
  dtype type = hlo_type(rois);
  shape s = shape_make(type, 2, (dim[]){hlo_shape(rois)->dims[0], size});
  hlo_value last = onnx_of_dim(b, type, extent, 1, -1), steps = onnx_of_dim(b, type, size, 1, -1);
  hlo_value from = hlo_broadcast(b, onnx_pick(b, rois, 1, column), s, (int64_t[]){0});
  hlo_value to = hlo_broadcast(b, onnx_pick(b, rois, 1, column + 2), s, (int64_t[]){0});
  if (dim_equal(onnx_dims(n), size, 1)) {
    return onnx_op_stretched(b, HLO_MUL, onnx_times(b, hlo_binary(b, HLO_ADD, from, to), 0.5), last);
  }
  hlo_value step = onnx_op_stretched(b, HLO_MUL, hlo_binary(b, HLO_SUB, to, from), last);
  hlo_value number = hlo_iota(b, s, 1), start = onnx_op_stretched(b, HLO_MUL, from, last);
  step = hlo_binary(b, HLO_MUL, number, onnx_op_stretched(b, HLO_DIV, step, steps));
  hlo_value at_end = hlo_compare(b, HLO_EQ, number, hlo_broadcast_to(b, steps, &s));
  /* The last position is not a sum, whose rounding could move it out of the image. */
  return hlo_select(b, at_end, onnx_op_stretched(b, HLO_MUL, to, last), hlo_binary(b, HLO_ADD, start, step));
}

static side make_side(hlo_builder *b, hlo_value position, dim extent, bool nearest) {
  side s;
  dtype type = hlo_type(position);
  s.inside = onnx_in_range(b, position, hlo_scalar(b, type, 0), onnx_of_dim(b, type, extent, 1, -1));
  hlo_value floor = hlo_unary(b, HLO_FLOOR, position);
  s.part = hlo_binary(b, HLO_SUB, position, floor);
  s.first = onnx_clamped_index(b, floor, extent);
  s.second = onnx_clamped_index(b, hlo_unary(b, HLO_CEIL, position), extent);
  if (nearest) {
    s.first = hlo_select(b, onnx_compare_scalar(b, HLO_GE, s.part, 0.5), s.second, s.first);
  }
  return s;
}

/* Returns x + (y - x) * part.  Dimension `dimension` of the pixels is the position of the part. */
static hlo_value between(hlo_builder *b, hlo_value x, hlo_value y, hlo_value part, int64_t dimension) {
  if (b->error) {
    return x;
  }
  part = hlo_broadcast(b, part, *hlo_shape(x), (int64_t[]){0, dimension});
  return hlo_binary(b, HLO_ADD, x, hlo_binary(b, HLO_MUL, hlo_binary(b, HLO_SUB, y, x), part));
}

/* Reads the pixels of row `y` of all crops, interpolated along the rows. */
static hlo_value read_row(hlo_builder *b, hlo_value image, hlo_value batch, hlo_value y, const side *x, bool nearest) {
  hlo_value first = onnx_read_pixels(b, false, image, batch, y, x->first);
  return nearest ? first : between(b, first, onnx_read_pixels(b, false, image, batch, y, x->second), x->part, 3);
}

/* Reads the size of the crops, which must be positive. */
static status read_size(const onnx_node *n, const dim **size) {
  int64_t count;
  TRY(onnx_const_dims(n, CROP_SIZE, "crop_size", size, &count));
  CHECK_THAT(count == 2 && dim_at_most(onnx_dims(n), 1, (*size)[0]) && dim_at_most(onnx_dims(n), 1, (*size)[1]),
             STATUS_INVALID_MODEL, "crop_size must have two positive numbers");
  return NULL;
}

status onnx_import_contrib_crop_and_resize(onnx_node *n) {
  static const char *const modes[] = {"bilinear", "nearest"};
  hlo_builder *b = n->b;
  const shape *s = onnx_in_shape(n, X), *rois = onnx_in_shape(n, ROIS);
  const dim *size;
  int nearest;
  float outside;
  TRY(CONTRIB_ATTRIBUTES(n, "extrapolation_value", "mode"));
  TRY(onnx_choose(n, "mode", "bilinear", modes, 2, &nearest));
  TRY(onnx_attr_float(n->proto, "extrapolation_value", 0, &outside));
  TRY(onnx_need_rank(n, X, "X", 4, 4));
  TRY(onnx_need_rank(n, ROIS, "rois", 2, 2));
  TRY(onnx_need_dims(n, ROIS, "rois", 2, (dim[]){rois->dims[0], 4}));
  TRY(onnx_need_dims(n, BATCH_INDICES, "batch_indices", 1, &rois->dims[0]));
  TRY(onnx_check_below(n, n->in[BATCH_INDICES], "batch_indices", s->dims[0]));
  TRY(read_size(n, &size));
  CHECK_THAT(dim_at_most(onnx_dims(n), 1, s->dims[2]) && dim_at_most(onnx_dims(n), 1, s->dims[3]), STATUS_INVALID_MODEL,
             "X is %s; there is nothing to sample", SHAPE_STR(onnx_dims(n), s));
  hlo_value image = onnx_widen(b, n->in[X]), batch = hlo_convert(b, n->in[BATCH_INDICES], DTYPE_S64);
  hlo_value regions = onnx_widen(b, n->in[ROIS]);
  side y = make_side(b, positions(n, regions, 0, size[0], s->dims[2]), s->dims[2], nearest);
  side x = make_side(b, positions(n, regions, 1, size[1], s->dims[3]), s->dims[3], nearest);
  hlo_value pixels = read_row(b, image, batch, y.first, &x, nearest);
  pixels = nearest ? pixels : between(b, pixels, read_row(b, image, batch, y.second, &x, nearest), y.part, 2);
  if (b->error) {
    return NULL;
  }
  shape mask = shape_with_type(*hlo_shape(pixels), DTYPE_PRED);
  hlo_value inside = hlo_binary(b, HLO_AND, hlo_broadcast(b, y.inside, mask, (int64_t[]){0, 2}),
                                hlo_broadcast(b, x.inside, mask, (int64_t[]){0, 3}));
  pixels = hlo_select(b, inside, pixels, hlo_like(b, pixels, outside));
  n->out[0] = hlo_convert(b, pixels, (dtype)s->type);
  return NULL;
}
