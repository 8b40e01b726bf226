/* resize.c - the importers of Resize and Upsample.  Along each axis, every output element is a weighted sum of a few
 * input elements, called taps, whose indices and weights are constants.  For axes of symbolic extent, resize_symbolic.c
 * computes them when the model runs. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/nn/resize.h"
#include "hlo/ir/element.h"

/* For each output element along an axis, the indices of `taps` input elements and their weights. */
typedef struct tap_table {
  int64_t taps;
  int64_t *index; /* [out][taps], like weight */
  double *weight;
  bool *outside; /* [out]: whether the output element is outside of the input, so that it is the extrapolation value */
  bool any_outside;
} tap_table;

/* --- attributes --- */

static status read_enum(const onnx_node *n, const char *name, const char *const *texts, int count, int64_t *out) {
  int choice;
  TRY(onnx_choose(n, name, texts[*out], texts, count, &choice));
  *out = choice;
  return NULL;
}

static status read_modes(const onnx_node *n, resize *r) {
  static const char *const modes[] = {"nearest", "linear", "cubic"};
  static const char *const old_modes[] = {"nearest", "linear", "bilinear"};
  static const char *const coords[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                       "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
  static const char *const nearests[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};
  if (n->since < 11) { /* Upsample, and version 10 of Resize, which is an Upsample that may shrink */
    TRY(read_enum(n, "mode", old_modes, 3, &r->mode));
    r->mode = r->mode == NEAREST ? NEAREST : LINEAR;
    r->coordinates = ASYMMETRIC;
    r->nearest = BY_SCALE;
    return NULL;
  }
  TRY(read_enum(n, "mode", modes, 3, &r->mode));
  TRY(read_enum(n, "coordinate_transformation_mode", coords, 7, &r->coordinates));
  TRY(read_enum(n, "nearest_mode", nearests, 4, &r->nearest));
  TRY(read_enum(n, "keep_aspect_ratio_policy", policies, 3, &r->policy));
  TRY(onnx_attr_bool(n->proto, "antialias", false, &r->antialias));
  TRY(onnx_attr_bool(n->proto, "exclude_outside", false, &r->exclude_outside));
  TRY(onnx_attr_float(n->proto, "cubic_coeff_a", -0.75f, &r->cubic_a));
  TRY(onnx_attr_float(n->proto, "extrapolation_value", 0, &r->extrapolation));
  r->antialias = r->antialias && r->mode != NEAREST;
  return NULL;
}

/* Reads the axes to which the entries of scales, sizes and roi belong. */
static status read_axes(const onnx_node *n, resize *r) {
  const int64_t *axes;
  size_t count;
  int rank = onnx_in_shape(n, 0)->rank;
  int64_t sorted[SHAPE_MAX_RANK];
  TRY(onnx_attr_ints(n->proto, "axes", &axes, &count));
  if (n->since < 18 || !onnx_attr_has(n->proto, "axes")) {
    r->n_axes = rank;
    for (int k = 0; k < rank; k++) {
      r->axes[k] = k;
    }
    return NULL;
  }
  TRY(onnx_axes(axes, count, rank, sorted)); /* refuses duplicates */
  r->n_axes = (int)count;
  for (size_t k = 0; k < count; k++) {
    TRY(onnx_axis(axes[k], rank, &r->axes[k]));
  }
  return NULL;
}

static status check_count(const char *what, int64_t count, int64_t want) {
  CHECK_THAT(count == want, STATUS_INVALID_MODEL, "%s has %" PRId64 " entries instead of %" PRId64, what, count, want);
  return NULL;
}

/* Takes a region that the model computes apart into the starts and ends of axes.  TensorFlow's exporter joins it from
 * constants for the axes that are not cut, and a box. */
static void use_computed_roi(const onnx_node *n, uint32_t k, resize *r) {
  hlo_builder *b = n->b;
  for (int i = 0; i < r->n_axes; i++) {
    axis_plan *p = &r->plan[r->axes[i]];
    int64_t start = i, end = r->n_axes + i, low, high;
    dim from = hlo_element_of(n->in[k], start).value, to = hlo_element_of(n->in[k], end).value;
    if (dim_signed_value(onnx_dims(n), from, &low) && dim_signed_value(onnx_dims(n), to, &high)) {
      p->start = (double)low;
      p->end = (double)high;
      continue;
    }
    for (int side = 0; side < 2; side++) {
      hlo_value one = hlo_slice_dim(b, n->in[k], 0, side ? end : start, (side ? end : start) + 1);
      p->region[side] = hlo_convert(b, hlo_reshape(b, one, 0, NULL), DTYPE_F64);
    }
  }
}

static status read_roi(const onnx_node *n, uint32_t k, resize *r) {
  const double *roi;
  int64_t count;
  if (r->coordinates != TF_CROP_AND_RESIZE) {
    return NULL;
  }
  const shape *s = onnx_has_in(n, k) ? onnx_in_shape(n, k) : NULL;
  bool sizes = onnx_has_in(n, 3) && !shape_is_empty(onnx_in_shape(n, 3)); /* scales would make sizes of the region */
  if (s && sizes && !r->antialias && !hlo_literal(n->in[k]) && s->rank == 1 && s->dims[0] == 2 * r->n_axes) {
    use_computed_roi(n, k, r);
    return NULL;
  }
  TRY(onnx_const_floats(n, k, "roi", &roi, &count));
  TRY(check_count("roi", count, 2 * r->n_axes));
  for (int i = 0; i < r->n_axes; i++) {
    CHECK_THAT(isfinite(roi[i]) && isfinite(roi[r->n_axes + i]), STATUS_INVALID_MODEL, "roi holds %g", roi[i]);
    r->plan[r->axes[i]].start = roi[i];
    r->plan[r->axes[i]].end = roi[r->n_axes + i];
  }
  return NULL;
}

/* Rounds to single precision.  Positions are computed in single precision, as in ONNX's test cases and other runtimes;
 * otherwise a scale like 0.6, which is not exact in binary, could give a position just below an integer and select
 * another element. */
static double single(double x) { return (float)x; }

static status use_scales(const onnx_node *n, resize *r, const double *scales, int64_t count) {
  TRY(check_count("scales", count, r->n_axes));
  for (int i = 0; i < r->n_axes; i++) {
    axis_plan *p = &r->plan[r->axes[i]];
    CHECK_THAT(isfinite(scales[i]) && scales[i] > 0, STATUS_INVALID_MODEL, "scales[%d] is %g; it must be positive", i,
               scales[i]);
    p->scale = scales[i];
    if (!dim_is_const(p->in)) {
      TRY(onnx_resize_extent(n, p));
      continue;
    }
    double crop = r->coordinates == TF_CROP_AND_RESIZE ? p->end - p->start : 1;
    double out = floor(single((double)p->in * crop * scales[i]));
    CHECK_THAT(out >= 0 && out <= (double)DIM_MAX, STATUS_INVALID_MODEL,
               "scales[%d] is %g, which makes %" PRId64 " into %g", i, scales[i], p->in, out);
    p->out = (dim)out;
  }
  return NULL;
}

static status use_sizes(const onnx_node *n, resize *r, const dim *sizes, int64_t count) {
  dim_table *t = onnx_dims(n);
  TRY(check_count("sizes", count, r->n_axes));
  double common = 0;
  bool open = false;
  for (int i = 0; i < r->n_axes; i++) {
    axis_plan *p = &r->plan[r->axes[i]];
    CHECK_THAT(dim_at_most(t, 0, sizes[i]) && sizes[i] < DIM_MAX, STATUS_INVALID_MODEL, "sizes[%d] is %s", i,
               dim_print(n->arena, t, sizes[i]));
    CHECK_THAT(dim_equal(t, sizes[i], 0) || dim_at_most(t, 1, p->in), STATUS_INVALID_MODEL,
               "an empty dimension cannot be resized to %s elements", dim_print(n->arena, t, sizes[i]));
    p->out = sizes[i];
    p->by_sizes = true;
    if (!dim_is_const(p->in) || !dim_is_const(p->out)) {
      open = true;
      continue;
    }
    p->scale = p->in ? single((double)sizes[i] / (double)p->in) : 1;
    bool first = i == 0;
    common = first || (r->policy == NOT_LARGER ? p->scale < common : p->scale > common) ? p->scale : common;
  }
  for (int i = 0; i < r->n_axes && open && r->policy != STRETCH; i++) {
    TRY(onnx_resize_constant(n, &r->plan[r->axes[i]]));
  }
  for (int i = 0; i < r->n_axes && r->policy != STRETCH; i++) {
    axis_plan *p = &r->plan[r->axes[i]];
    p->scale = common;
    p->out = (dim)(common * (double)p->in + 0.5);
  }
  return NULL;
}

/* Reads the scales of Upsample before version 9: the attribute `scales`, or in version 1 height_scale and width_scale.
 */
static status use_attributes(const onnx_node *n, resize *r) {
  const float *list;
  float height, width;
  size_t count;
  if (n->since == 1) {
    TRY(onnx_need_rank(n, 0, "X", 4, 4));
    TRY(onnx_attr_required(n->proto, "height_scale"));
    TRY(onnx_attr_required(n->proto, "width_scale"));
    TRY(onnx_attr_float(n->proto, "height_scale", 1, &height));
    TRY(onnx_attr_float(n->proto, "width_scale", 1, &width));
    return use_scales(n, r, (double[]){1, 1, height, width}, 4);
  }
  TRY(onnx_attr_required(n->proto, "scales"));
  TRY(onnx_attr_floats(n->proto, "scales", &list, &count));
  double *wide = ARENA_NEW_N(n->arena, double, count);
  for (size_t k = 0; k < count; k++) {
    wide[k] = list[k];
  }
  return use_scales(n, r, wide, (int64_t)count);
}

/* Fills r->plan; axes that are not resized keep their extent. */
static status read_sizes(const onnx_node *n, resize *r) {
  const shape *x = onnx_in_shape(n, 0);
  for (int k = 0; k < x->rank; k++) {
    r->plan[k] = (axis_plan){.in = x->dims[k], .out = x->dims[k], .scale = 1, .end = 1};
  }
  const double *scales = NULL;
  const dim *sizes = NULL;
  int64_t n_scales = 0, n_sizes = 0;
  if (strcmp(n->proto->op_type, "Upsample") == 0 && n->since < 9) {
    return use_attributes(n, r);
  }
  if (n->since < 11) {
    TRY(onnx_const_floats(n, 1, "scales", &scales, &n_scales));
    return use_scales(n, r, scales, n_scales);
  }
  TRY(read_roi(n, 1, r));
  if (onnx_has_in(n, 2) && !shape_is_empty(onnx_in_shape(n, 2))) {
    TRY(onnx_const_floats(n, 2, "scales", &scales, &n_scales));
  }
  if (onnx_has_in(n, 3) && !shape_is_empty(onnx_in_shape(n, 3))) {
    TRY(onnx_const_dims(n, 3, "sizes", &sizes, &n_sizes));
  }
  CHECK_THAT(r->n_axes == 0 || !scales != !sizes, STATUS_INVALID_MODEL, "%s scales and sizes %s given",
             scales ? "both" : "neither", scales ? "are" : "is");
  return r->n_axes == 0 ? NULL : scales ? use_scales(n, r, scales, n_scales) : use_sizes(n, r, sizes, n_sizes);
}

/* --- the taps of one axis --- */

/* Returns the position of output element x in a region of the input, rounded as ONNX Runtime does. */
static double source_in_region(const axis_plan *p, double x) {
  double last = (double)(p->in - 1);
  if (p->out <= 1) {
    return single(0.5 * single(p->start + p->end) * last);
  }
  double part = single(single(x * single(p->end - p->start)) * last);
  return single(single(p->start * last) + single(part / (double)(p->out - 1)));
}

/* Returns the position of output element i in the coordinates of the input. */
static double source(const resize *r, const axis_plan *p, int64_t i) {
  double in = (double)p->in, out = single(p->scale * in), x = (double)i; /* here `out` need not be an integer */
  switch ((coordinates)r->coordinates) {
    case HALF_PIXEL: return single(single((x + 0.5) / p->scale) - 0.5);
    case HALF_PIXEL_SYMMETRIC: {
      double rest = single(in / 2 * single(1 - single((double)p->out / out)));
      return single(single(rest + single((x + 0.5) / p->scale)) - 0.5);
    }
    case PYTORCH_HALF_PIXEL: return p->out > 1 ? single(single((x + 0.5) / p->scale) - 0.5) : 0;
    case ALIGN_CORNERS: return out == 1 ? 0 : single(x * (in - 1) / (out - 1));
    case ASYMMETRIC: return single(x / p->scale);
    case TF_HALF_PIXEL_FOR_NN: return single((x + 0.5) / p->scale);
    case TF_CROP_AND_RESIZE: return source_in_region(p, x);
  }
  return 0;
}

static double nearest_index(const resize *r, const axis_plan *p, double x) {
  double low = floor(x), part = x - low;
  switch ((nearest)r->nearest) {
    case PREFER_FLOOR: return part <= 0.5 ? low : low + 1;
    case PREFER_CEIL: return part < 0.5 ? low : low + 1;
    case FLOOR: return low;
    case CEIL: return ceil(x);
    case BY_SCALE: /* version 10 does not define the rounding; ONNX's test cases expect this one */
      return p->scale < 1 ? ceil(x) : low;
  }
  return low;
}

/* Returns the value of the linear or cubic filter at distance t from its centre. */
static double filter(const resize *r, double t) {
  double a = r->cubic_a;
  t = fabs(t);
  if (r->mode == LINEAR) {
    return t < 1 ? 1 - t : 0;
  }
  if (t <= 1) {
    return ((a + 2) * t - (a + 3)) * t * t + 1;
  }
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

static int64_t clamp_index(double x, int64_t n) { return x <= 0 ? 0 : x >= (double)(n - 1) ? n - 1 : (int64_t)x; }

double onnx_resize_shrink(const resize *r, const axis_plan *p) { return r->antialias && p->scale < 1 ? p->scale : 1; }

double onnx_resize_taps(const resize *r, const axis_plan *p) {
  double radius = r->mode == LINEAR ? 1 : 2;
  return r->mode == NEAREST ? 1 : 2 * ceil(radius / onnx_resize_shrink(r, p));
}

/* Computes the taps of output element i.  For antialiasing, if the axis shrinks, the filter is widened by 1 / scale.
 * Then, and with exclude_outside, the weights are normalised to the sum 1. */
static void fill_taps(const resize *r, const axis_plan *p, tap_table *t, int64_t i) {
  double x = source(r, p, i), sum = 0;
  int64_t *index = t->index + i * t->taps;
  double *weight = t->weight + i * t->taps;
  t->outside[i] = r->coordinates == TF_CROP_AND_RESIZE && (x < 0 || x > (double)(p->in - 1));
  t->any_outside |= t->outside[i];
  if (r->mode == NEAREST) {
    index[0] = clamp_index(nearest_index(r, p, x), p->in);
    weight[0] = 1;
    return;
  }
  double shrink = onnx_resize_shrink(r, p), first = floor(x) - (double)(t->taps / 2 - 1);
  for (int64_t k = 0; k < t->taps; k++) {
    double at = first + (double)k;
    bool counts = !r->exclude_outside || (at >= 0 && at < (double)p->in);
    weight[k] = counts ? filter(r, (at - x) * shrink) : 0;
    sum += weight[k];
    index[k] = clamp_index(at, p->in);
  }
  bool normalise = (r->exclude_outside || shrink < 1) && sum != 0;
  for (int64_t k = 0; normalise && k < t->taps; k++) {
    weight[k] /= sum;
  }
}

static status make_taps(const onnx_node *n, const resize *r, const axis_plan *p, tap_table *t) {
  double taps = onnx_resize_taps(r, p);
  CHECK_THAT(taps * (double)p->out <= 0x1p28, STATUS_RESOURCE,
             "%" PRId64 " elements would each be computed from %g others; that is too many", p->out, taps);
  t->taps = (int64_t)taps;
  t->index = ARENA_NEW_N(n->arena, int64_t, (size_t)(p->out * t->taps));
  t->weight = ARENA_NEW_N(n->arena, double, (size_t)(p->out * t->taps));
  t->outside = ARENA_NEW_N(n->arena, bool, (size_t)p->out);
  t->any_outside = false;
  for (int64_t i = 0; i < p->out; i++) {
    fill_taps(r, p, t, i);
  }
  return NULL;
}

/* Returns true if every output element is the input element with the same index, or if there are none of both. */
static bool is_identity(const resize *r, const axis_plan *p) {
  if (p->in == 0 && p->out == 0) {
    return true;
  }
  bool same = p->in == p->out && (p->by_sizes || p->scale == 1);
  return same && (r->coordinates != TF_CROP_AND_RESIZE || (!p->region[0].def && p->start == 0 && p->end == 1));
}

/* Gathers along the axis the input element of tap k for each output element. */
static hlo_value take_tap(const onnx_node *n, hlo_value x, int64_t axis, const tap_table *t, int64_t k, dim out) {
  int64_t *index = ARENA_NEW_N(n->arena, int64_t, (size_t)out);
  for (int64_t i = 0; i < out; i++) {
    index[i] = t->index[i * t->taps + k];
  }
  return hlo_take(n->b, x, onnx_s64_array(n, index, 1, &out), axis);
}

/* Returns the weights as a constant of x's type. */
static hlo_value weights_like(const onnx_node *n, hlo_value x, const double *weight, int rank, const dim *dims) {
  void *data;
  literal l = literal_new(n->arena, shape_make(DTYPE_F64, rank, dims), &data);
  memcpy(data, weight, (size_t)shape_bytes(&l.shape));
  return hlo_convert(n->b, hlo_constant(n->b, l), hlo_type(x));
}

static hlo_value tap_weight(const onnx_node *n, hlo_value y, int64_t axis, const tap_table *t, int64_t k, dim out) {
  double *weight = ARENA_NEW_N(n->arena, double, (size_t)out);
  for (int64_t i = 0; i < out; i++) {
    weight[i] = t->weight[i * t->taps + k];
  }
  return hlo_broadcast(n->b, weights_like(n, y, weight, 1, &out), *hlo_shape(y), &axis);
}

/* Computes the weighted sums for many taps at once: gathers all taps into a dimension of their own, multiplies them by
 * the weights and sums over that dimension. */
static hlo_value sum_many(const onnx_node *n, hlo_value x, int64_t axis, const tap_table *t, dim out) {
  hlo_builder *b = n->b;
  shape s = *hlo_shape(x);
  dim_table *dims = onnx_dims(n);
  dim all = out * t->taps, before = shape_dim_product(dims, &s, 0, (int)axis),
      behind = shape_dim_product(dims, &s, (int)axis + 1, s.rank);
  hlo_value y = hlo_reshape(b, x, 3, (dim[]){before, s.dims[axis], behind});
  y = hlo_reshape(b, hlo_take(b, y, onnx_s64_array(n, t->index, 1, &all), 1), 4, (dim[]){before, out, t->taps, behind});
  hlo_value w = weights_like(n, y, t->weight, 2, (dim[]){out, t->taps});
  y = hlo_binary(b, HLO_MUL, y, hlo_broadcast(b, w, *hlo_shape(y), (int64_t[]){1, 2}));
  s.dims[axis] = out;
  return hlo_reshape(b, hlo_reduce(b, y, HLO_REDUCE_ADD, 1, (int64_t[]){2}), s.rank, s.dims);
}

/* Replaces elements whose position along this axis is outside of the input by the extrapolation value. */
static hlo_value extrapolate(const onnx_node *n, const resize *r, hlo_value y, int64_t axis, const tap_table *t,
                             dim out) {
  int64_t *flags = ARENA_NEW_N(n->arena, int64_t, (size_t)out);
  for (int64_t i = 0; i < out; i++) {
    flags[i] = t->outside[i];
  }
  hlo_value outside = hlo_convert(n->b, onnx_s64_array(n, flags, 1, &out), DTYPE_PRED);
  return hlo_select(n->b, hlo_broadcast(n->b, outside, *hlo_shape(y), &axis), hlo_like(n->b, y, r->extrapolation), y);
}

static status resize_axis(const onnx_node *n, const resize *r, int64_t axis, hlo_value *x) {
  const axis_plan *p = &r->plan[axis];
  hlo_builder *b = n->b;
  tap_table t;
  if (is_identity(r, p)) {
    return NULL;
  }
  bool constant = dim_is_const(p->in) && dim_is_const(p->out);
  CHECK_THAT(!constant || p->in > 0 || p->out == 0, STATUS_INVALID_MODEL,
             "an empty dimension cannot be resized to %" PRId64 " elements", p->out);
  if (!constant || p->region[0].def) {
    return onnx_resize_symbolic(n, r, axis, x);
  }
  TRY(make_taps(n, r, p, &t));
  hlo_value sum = {0};
  for (int64_t k = 0; t.taps <= ONNX_RESIZE_FEW_TAPS && k < t.taps && !b->error; k++) {
    hlo_value y = take_tap(n, *x, axis, &t, k, p->out);
    if (r->mode != NEAREST) {
      y = hlo_binary(b, HLO_MUL, y, tap_weight(n, y, axis, &t, k, p->out));
    }
    sum = k == 0 ? y : hlo_binary(b, HLO_ADD, sum, y);
  }
  sum = t.taps > ONNX_RESIZE_FEW_TAPS && !b->error ? sum_many(n, *x, axis, &t, p->out) : sum;
  *x = t.any_outside ? extrapolate(n, r, sum, axis, &t, p->out) : sum;
  return NULL;
}

status onnx_import_resize(onnx_node *n) {
  resize r = {0};
  const shape *x = onnx_in_shape(n, 0);
  TRY(onnx_need_rank(n, 0, "X", 0, SHAPE_MAX_RANK));
  TRY(read_modes(n, &r));
  TRY(read_axes(n, &r));
  TRY(read_sizes(n, &r));
  shape out = *x;
  for (int k = 0; k < x->rank; k++) {
    out.dims[k] = r.plan[k].out;
  }
  TRY(shape_check(&out, "the output"));
  /* An infinite element makes results NaN for which its weight is 0, as in ONNX Runtime and the reference. */
  hlo_value y = r.mode == NEAREST ? n->in[0] : onnx_widen(n->b, n->in[0]);
  for (int k = 0; k < x->rank; k++) { /* the order of sums must not depend on sizes, which may be symbolic */
    TRY(resize_axis(n, &r, k, &y));
  }
  /* The standard's text does not say how integers are rounded.  Its reference implementation takes the nearest ones,
   * halves to even; ONNX Runtime truncates. */
  if (dtype_is_int((dtype)x->type) && dtype_is_float(hlo_type(y))) {
    y = hlo_unary(n->b, HLO_ROUND, y);
  }
  n->out[0] = hlo_convert(n->b, y, (dtype)x->type);
  return NULL;
}
