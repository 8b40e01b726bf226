/* roi_align.c - the importer of RoiAlign, where each bin of a region is the mean or the maximum of interpolated
 * samples.
 *
 * With a sampling_ratio all samples are read at once.  Without one, the number of samples of each region
 * depends on data: an HLO `while` reads one sample of every bin in each iteration, for as many iterations as
 * the region with the most samples needs. */
#include <math.h>
#include <string.h>

#include "frontend/ops/nn/sample.h"

/* The largest number of samples along one side of a bin.  Larger bins are sampled more coarsely than one sample for
 * each pixel, so that regions of any size take bounded time. */
enum { MAX_SAMPLES = 1 << 10 };

typedef struct roi_align {
  bool max, half_pixel, last;     /* last: channels are the last dimension of the image and of arrays of its pixels */
  int64_t height, width, samples; /* samples: their number along each side of a bin; 0 means one for each pixel */
  float scale;
} roi_align;

static status read_roi_align(const onnx_node *n, roi_align *r) {
  static const char *const modes[] = {"avg", "max"}, *const coords[] = {"output_half_pixel", "half_pixel"};
  const shape *rois = onnx_in_shape(n, 1);
  int choice;
  TRY(onnx_choose(n, "mode", "avg", modes, 2, &choice));
  r->max = choice == 1;
  TRY(onnx_choose(n, "coordinate_transformation_mode", n->since >= 16 ? "half_pixel" : "output_half_pixel", coords, 2,
                  &choice));
  r->half_pixel = choice == 1;
  TRY(onnx_attr_int_in(n->proto, "output_height", 1, 1, 1 << 20, &r->height));
  TRY(onnx_attr_int_in(n->proto, "output_width", 1, 1, 1 << 20, &r->width));
  TRY(onnx_attr_int_in(n->proto, "sampling_ratio", 0, 0, MAX_SAMPLES, &r->samples));
  TRY(onnx_attr_float(n->proto, "spatial_scale", 1, &r->scale));
  TRY(onnx_need_rank(n, 0, "X", 4, 4));
  TRY(onnx_need_rank(n, 1, "rois", 2, 2));
  TRY(onnx_need_dims(n, 1, "rois", 2, (dim[]){rois->dims[0], 4}));
  TRY(onnx_need_dims(n, 2, "batch_indices", 1, &rois->dims[0]));
  TRY(onnx_check_below(n, n->in[2], "batch_indices", hlo_shape(n->in[0])->dims[0]));
  return NULL;
}

/* --- one side (the height or the width) of the regions --- */

typedef struct side {
  dim extent;            /* the extent of the image in this dimension */
  int64_t bins;          /* the number of bins along the side */
  hlo_value start, size; /* for each of the R regions, [R], in pixels */
} side;

/* Returns where the regions start and how large they are along one spatial dimension of the image.  Column `column` of
 * the input rois has the starts, and column `column` + 2 the ends. */
static side make_side(const onnx_node *n, const roi_align *r, int column, int64_t bins, dim extent) {
  hlo_builder *b = n->b;
  double offset = r->half_pixel ? -0.5 : 0;
  hlo_value rois = onnx_widen(b, n->in[1]);
  side s = {.extent = extent, .bins = bins};
  s.start = onnx_plus(b, onnx_times(b, onnx_pick(b, rois, 1, column), r->scale), offset);
  hlo_value end = onnx_plus(b, onnx_times(b, onnx_pick(b, rois, 1, column + 2), r->scale), offset);
  s.size = hlo_binary(b, HLO_SUB, end, s.start);
  s.size = r->half_pixel ? s.size : hlo_binary(b, HLO_MAX, s.size, hlo_like(b, s.size, 1));
  return s;
}

/* Computes the two neighbours of positions x [R, n] and their weights.  A sample more than one pixel outside of the
 * image has weight 0. */
static void bilinear_taps(hlo_builder *b, hlo_value x, dim extent, onnx_taps *t) {
  dtype type = hlo_type(x);
  hlo_value inside = onnx_in_range(b, x, hlo_scalar(b, type, -1), onnx_of_dim(b, type, extent, 1, 0));
  x = hlo_clamp(b, hlo_scalar(b, type, 0), x, onnx_of_dim(b, type, extent, 1, -1));
  hlo_value floor = hlo_unary(b, HLO_FLOOR, x), part = hlo_binary(b, HLO_SUB, x, floor), zero = hlo_like(b, x, 0);
  t->n = 2;
  t->index[0] = onnx_clamped_index(b, floor, extent);
  t->index[1] = onnx_clamped_index(b, onnx_plus(b, floor, 1), extent);
  t->weight[0] = hlo_select(b, inside, hlo_binary(b, HLO_SUB, hlo_like(b, part, 1), part), zero);
  t->weight[1] = hlo_select(b, inside, part, zero);
}

/* Broadcasts x [R] to [R, n]. */
static hlo_value repeated(hlo_builder *b, hlo_value x, int64_t n) {
  shape s = shape_make(hlo_type(x), 2, (dim[]){hlo_shape(x)->dims[0], n});
  return hlo_broadcast(b, x, s, (int64_t[]){0});
}

/* Computes the taps (neighbours and their weights) of n positions in each of the R regions.  The positions are start +
 * size * part; `part`, [R, n], is a fraction of the region. */
static void taps_at(hlo_builder *b, const side *s, hlo_value part, onnx_taps *t) {
  int64_t n = hlo_shape(part)->dims[1];
  hlo_value x = hlo_binary(b, HLO_MUL, part, repeated(b, s->size, n));
  bilinear_taps(b, hlo_binary(b, HLO_ADD, x, repeated(b, s->start, n)), s->extent, t);
}

/* --- reading --- */

/* Returns the sum of the weighted values of the four neighbours of each sample or, in mode max, the largest of them. */
static hlo_value read_samples(hlo_builder *b, const roi_align *r, hlo_value image, hlo_value batch, const onnx_taps *ty,
                              const onnx_taps *tx) {
  hlo_value all = {0};
  for (int k = 0; k < 4 && !b->error; k++) {
    hlo_value y = onnx_read_pixels(b, r->last, image, batch, ty->index[k / 2], tx->index[k % 2]);
    hlo_value wy = hlo_broadcast(b, ty->weight[k / 2], *hlo_shape(y), (int64_t[]){0, r->last ? 1 : 2});
    hlo_value wx = hlo_broadcast(b, tx->weight[k % 2], *hlo_shape(y), (int64_t[]){0, r->last ? 2 : 3});
    y = hlo_binary(b, HLO_MUL, y, hlo_binary(b, HLO_MUL, wy, wx));
    all = k == 0 ? y : hlo_binary(b, r->max ? HLO_MAX : HLO_ADD, all, y);
  }
  return all;
}

/* --- a fixed number of samples --- */

/* Returns the positions of the samples of all bins within a region, from 0 to 1, as [R, bins * samples]. */
static hlo_value fixed_parts(hlo_builder *b, const side *s, int64_t samples) {
  int64_t n = s->bins * samples;
  shape parts = shape_make(hlo_type(s->start), 2, (dim[]){hlo_shape(s->start)->dims[0], n});
  return onnx_times(b, onnx_plus(b, hlo_iota(b, parts, 1), 0.5), 1.0 / (double)n);
}

static hlo_value align_fixed(hlo_builder *b, const roi_align *r, hlo_value image, hlo_value batch, const side *y,
                             const side *x) {
  const int64_t sample_dims[] = {r->last ? 2 : 3, r->last ? 4 : 5};
  onnx_taps ty, tx;
  taps_at(b, y, fixed_parts(b, y, r->samples), &ty);
  taps_at(b, x, fixed_parts(b, x, r->samples), &tx);
  hlo_value all = read_samples(b, r, image, batch, &ty, &tx);
  dim dims[6] = {hlo_shape(batch)->dims[0]}, *bins = dims + (r->last ? 1 : 2);
  dims[r->last ? 5 : 1] = hlo_shape(image)->dims[r->last ? 3 : 1];
  memcpy(bins, (dim[]){r->height, r->samples, r->width, r->samples}, 4 * sizeof *bins);
  all = hlo_reduce(b, hlo_reshape(b, all, 6, dims), r->max ? HLO_REDUCE_MAX : HLO_REDUCE_ADD, 2, sample_dims);
  return r->max ? all : onnx_times(b, all, 1.0 / (double)(r->samples * r->samples));
}

/* --- a number of samples that depends on the region --- */

/* The values that the loop carries; all but the first two do not change. */
typedef enum carried {
  STEP,
  RESULT,
  STEPS,
  IMAGE,
  BATCH,
  START_Y,
  SIZE_Y,
  COUNT_Y,
  START_X,
  SIZE_X,
  COUNT_X,
  CARRIED
} carried;

/* Returns the number of samples along one side of a bin, s64[R]: the number of pixels that it covers, rounded up, and
 * at most MAX_SAMPLES. */
static hlo_value samples_of(hlo_builder *b, const side *s) {
  hlo_value pixels = hlo_unary(b, HLO_CEIL, onnx_binary_scalar(b, HLO_DIV, s->size, (double)s->bins));
  hlo_value low = hlo_scalar(b, hlo_type(pixels), 0), high = hlo_scalar(b, hlo_type(pixels), MAX_SAMPLES);
  return hlo_convert(b, hlo_clamp(b, low, pixels, high), DTYPE_S64);
}

/* Returns the position within the region of one sample of each bin, (bin + (sample + 0.5) / count) / bins, as [R,
 * bins].
 */
static hlo_value parts_of_step(hlo_builder *b, dtype t, hlo_value sample, hlo_value count, int64_t bins) {
  hlo_value within = hlo_binary(b, HLO_DIV, onnx_plus(b, hlo_convert(b, sample, t), 0.5), hlo_convert(b, count, t));
  shape s = shape_make(t, 2, (dim[]){hlo_shape(sample)->dims[0], bins});
  return onnx_times(b, hlo_binary(b, HLO_ADD, hlo_iota(b, s, 1), repeated(b, within, bins)), 1.0 / (double)bins);
}

/* Adds one sample to each bin: iteration s adds sample s of the bin, counted row by row.  Regions whose bins
 * have no sample s keep their result. */
static void build_step(hlo_builder *b, const roi_align *r, const side *y, const side *x, hlo_value *v) {
  side sy = {y->extent, y->bins, v[START_Y], v[SIZE_Y]}, sx = {x->extent, x->bins, v[START_X], v[SIZE_X]};
  dtype t = hlo_type(v[START_Y]);
  onnx_taps ty, tx;
  hlo_value one = hlo_like(b, v[COUNT_X], 1), step = hlo_broadcast_to(b, v[STEP], hlo_shape(v[COUNT_X]));
  hlo_value columns = hlo_binary(b, HLO_MAX, v[COUNT_X], one), rows = hlo_binary(b, HLO_MAX, v[COUNT_Y], one);
  taps_at(b, &sy, parts_of_step(b, t, hlo_binary(b, HLO_DIV, step, columns), rows, y->bins), &ty);
  taps_at(b, &sx, parts_of_step(b, t, hlo_binary(b, HLO_REM, step, columns), columns, x->bins), &tx);
  hlo_value all = read_samples(b, r, v[IMAGE], v[BATCH], &ty, &tx);
  all = hlo_binary(b, r->max ? HLO_MAX : HLO_ADD, v[RESULT], all);
  hlo_value runs = hlo_compare(b, HLO_LT, step, hlo_binary(b, HLO_MUL, v[COUNT_Y], v[COUNT_X]));
  runs = hlo_broadcast(b, runs, shape_with_type(*hlo_shape(all), DTYPE_PRED), (int64_t[]){0});
  v[RESULT] = hlo_select(b, runs, all, v[RESULT]);
  v[STEP] = onnx_plus(b, v[STEP], 1);
}

static status run_steps(hlo_builder *b, const roi_align *r, const side *y, const side *x, const hlo_value *init,
                        hlo_value *out) {
  hlo_builder condition = hlo_builder_inner(b, "more_samples"), body = hlo_builder_inner(b, "sample");
  hlo_value v[CARRIED];
  hlo_parameters_like(condition.computation, CARRIED, init, v);
  hlo_value go = hlo_compare(&condition, HLO_LT, v[STEP], v[STEPS]);
  hlo_set_roots(condition.computation, 1, &go);
  hlo_parameters_like(body.computation, CARRIED, init, v);
  build_step(&body, r, y, x, v);
  TRY(hlo_builder_take_error(&condition));
  TRY(hlo_builder_take_error(&body));
  hlo_set_roots(body.computation, CARRIED, v);
  hlo_while(b, condition.computation, body.computation, CARRIED, init, out);
  return NULL;
}

/* Computes the bins with a `while`.  The result of a region without samples is 0. */
static status align_adaptive(hlo_builder *b, const roi_align *r, hlo_value image, hlo_value batch, const side *y,
                             const side *x, hlo_value *result) {
  dtype t = hlo_type(image);
  dim dims[4] = {hlo_shape(batch)->dims[0]}, *bins = dims + (r->last ? 1 : 2);
  dims[r->last ? 3 : 1] = hlo_shape(image)->dims[r->last ? 3 : 1];
  memcpy(bins, (dim[]){r->height, r->width}, 2 * sizeof *bins);
  hlo_value rows = samples_of(b, y), columns = samples_of(b, x), count = hlo_binary(b, HLO_MUL, rows, columns);
  hlo_value most = hlo_reduce(b, count, HLO_REDUCE_MAX, 1, (int64_t[]){0});
  hlo_value first = hlo_splat(b, shape_make(t, 4, dims), r->max ? -INFINITY : 0), out[CARRIED];
  hlo_value init[CARRIED] = {
      hlo_scalar_int(b, DTYPE_S64, 0), first, most, image, batch, y->start, y->size, rows, x->start, x->size, columns};
  if (b->error) {
    return NULL;
  }
  TRY(run_steps(b, r, y, x, init, out));
  hlo_value each = hlo_broadcast(b, hlo_convert(b, count, t), shape_make(t, 4, dims), (int64_t[]){0});
  hlo_value all = r->max ? out[RESULT] : hlo_binary(b, HLO_DIV, out[RESULT], each);
  *result = hlo_select(b, onnx_compare_scalar(b, HLO_GT, each, 0), all, hlo_like(b, all, 0));
  return NULL;
}

status onnx_import_roi_align(onnx_node *n) {
  hlo_builder *b = n->b;
  roi_align r = {0};
  TRY(read_roi_align(n, &r));
  const shape *image = onnx_in_shape(n, 0);
  hlo_value x = onnx_widen(b, n->in[0]), batch = hlo_convert(b, n->in[2], DTYPE_S64), all = {0};
  side vertical = make_side(n, &r, 1, r.height, image->dims[2]),
       horizontal = make_side(n, &r, 0, r.width, image->dims[3]);
  r.last = onnx_channels_go_last(n, image);
  x = r.last ? onnx_channels_last(b, x) : x;
  if (r.samples) {
    all = align_fixed(b, &r, x, batch, &vertical, &horizontal);
  } else {
    TRY(align_adaptive(b, &r, x, batch, &vertical, &horizontal, &all));
  }
  n->out[0] = hlo_convert(b, r.last ? onnx_channels_first(b, all) : all, hlo_type(n->in[0]));
  return NULL;
}
