/* max_roi_pool.c - the importer of MaxRoiPool, which returns the largest element of each bin of each region; the bounds
 * of bins are rounded to whole elements. */
#include <math.h>

#include "base/dim/guard.h"
#include "frontend/import/import_helpers.h"
#include "frontend/import/symbolic.h"

typedef struct roi_pool {
  dim rois, channels, height, width;
  int64_t out_height, out_width;
  bool images; /* whether there are images; without them there are no regions either */
  float scale;
} roi_pool;

static status read_roi_pool(const onnx_node *n, roi_pool *p) {
  const shape *x = onnx_in_shape(n, 0);
  const int64_t *pooled;
  size_t count;
  TRY(onnx_need_rank(n, 0, "X", 4, 4));
  TRY(onnx_need_rank(n, 1, "rois", 2, 2));
  p->rois = onnx_in_shape(n, 1)->dims[0];
  TRY(onnx_need_dims(n, 1, "rois", 2, (dim[]){p->rois, 5}));
  TRY(onnx_attr_required(n->proto, "pooled_shape"));
  TRY(onnx_attr_ints(n->proto, "pooled_shape", &pooled, &count));
  CHECK_THAT(
      count == 2 && pooled[0] >= 1 && pooled[1] >= 1 && pooled[0] <= ONNX_WINDOW_MAX && pooled[1] <= ONNX_WINDOW_MAX,
      STATUS_INVALID_MODEL, "pooled_shape must be two positive numbers");
  TRY(onnx_attr_float(n->proto, "spatial_scale", 1, &p->scale));
  p->channels = x->dims[1];
  p->height = x->dims[2];
  p->width = x->dims[3];
  p->out_height = pooled[0];
  p->out_width = pooled[1];
  p->images = dim_at_most(onnx_dims(n), 1, x->dims[0]);
  CHECK_THAT(p->images || dim_equal(onnx_dims(n), p->rois, 0), STATUS_INVALID_MODEL,
             "X is %s; there is nothing to pool", SHAPE_STR(onnx_dims(n), x));
  return NULL;
}

/* Rounds x to the nearest integer, with halves away from 0. */
static hlo_value rounded(hlo_builder *b, hlo_value x) {
  hlo_value magnitude = hlo_unary(b, HLO_FLOOR, onnx_plus(b, hlo_unary(b, HLO_ABS, x), 0.5));
  return hlo_binary(b, HLO_MUL, hlo_unary(b, HLO_SIGN, x), magnitude);
}

/* Returns for one spatial dimension which elements belong to which bin of each region, as pred [R, bins, extent].
 * `first` is the column of the input rois that has the start of the region in this dimension. */
static hlo_value members(const onnx_node *n, const roi_pool *p, int first, int64_t bins, dim extent) {
  hlo_builder *b = n->b;
  hlo_value rois = onnx_widen(b, n->in[1]);
  shape s = shape_make(hlo_type(rois), 3, (dim[]){p->rois, bins, extent});
  hlo_value start = rounded(b, onnx_times(b, onnx_pick(b, rois, 1, first), p->scale));
  hlo_value end = rounded(b, onnx_times(b, onnx_pick(b, rois, 1, first + 2), p->scale));
  hlo_value size = onnx_plus(b, hlo_binary(b, HLO_SUB, end, start), 1);
  size = hlo_binary(b, HLO_MAX, size, hlo_like(b, size, 1));
  size = hlo_binary(b, HLO_DIV, size, hlo_like(b, size, (double)bins));
  size = hlo_broadcast(b, size, s, (int64_t[]){0});
  start = hlo_broadcast(b, start, s, (int64_t[]){0});
  hlo_value bin = hlo_iota(b, s, 1), at = hlo_iota(b, s, 2);
  hlo_value low = hlo_unary(b, HLO_FLOOR, hlo_binary(b, HLO_MUL, bin, size));
  hlo_value high = hlo_unary(b, HLO_CEIL, hlo_binary(b, HLO_MUL, onnx_plus(b, bin, 1), size));
  low = hlo_compare(b, HLO_GE, at, hlo_binary(b, HLO_ADD, low, start));
  high = hlo_compare(b, HLO_LT, at, hlo_binary(b, HLO_ADD, high, start));
  return hlo_binary(b, HLO_AND, low, high);
}

/* Replaces dimension d of x [R, C, H, W] by the bins: each element of the result is the largest member of its bin. */
static hlo_value largest(hlo_builder *b, hlo_value x, hlo_value member, int64_t d) {
  const shape *s = hlo_shape(x), *m = hlo_shape(member);
  int64_t behind = d + 1, kept[4];
  dim dims[5];
  for (int64_t k = 0; k < 4; k++) { /* the dimension of bins comes before dimension d */
    kept[k] = k < d ? k : k + 1;
    dims[kept[k]] = s->dims[k];
  }
  dims[d] = m->dims[1];
  shape all = shape_make((dtype)s->type, 5, dims);
  x = hlo_broadcast(b, x, all, kept);
  member = hlo_broadcast(b, member, shape_with_type(all, DTYPE_PRED), (int64_t[]){0, d, behind});
  return hlo_reduce(b, hlo_select(b, member, x, hlo_like(b, x, (double)-INFINITY)), HLO_REDUCE_MAX, 1, &behind);
}

/* Returns pred [R, bins], which is true for bins without members. */
static hlo_value is_empty(hlo_builder *b, hlo_value member) {
  return hlo_unary(b, HLO_NOT, hlo_reduce(b, member, HLO_REDUCE_OR, 1, (int64_t[]){2}));
}

status onnx_import_max_roi_pool(onnx_node *n) {
  hlo_builder *b = n->b;
  roi_pool p;
  TRY(read_roi_pool(n, &p));
  hlo_value batch = hlo_convert(b, onnx_pick(b, n->in[1], 1, 0), DTYPE_S64);
  TRY(p.images ? onnx_check_below(n, batch, "the batch index of rois", hlo_shape(n->in[0])->dims[0]) : NULL);
  hlo_value rows = members(n, &p, 2, p.out_height, p.height), columns = members(n, &p, 1, p.out_width, p.width);
  shape s = shape_make(hlo_type(n->in[0]), 4, (dim[]){p.rois, p.channels, p.out_height, p.out_width});
  if (!p.images) {
    n->out[0] = hlo_splat(b, s, 0);
    return NULL;
  }
  hlo_value y = largest(b, largest(b, hlo_take(b, n->in[0], batch, 0), columns, 3), rows, 2);
  shape flags = shape_with_type(s, DTYPE_PRED);
  hlo_value empty = hlo_binary(b, HLO_OR, hlo_broadcast(b, is_empty(b, rows), flags, (int64_t[]){0, 2}),
                               hlo_broadcast(b, is_empty(b, columns), flags, (int64_t[]){0, 3}));
  n->out[0] = hlo_select(b, empty, hlo_like(b, y, 0), y);
  return NULL;
}
