/* sample.c - the importer of GridSample, which interpolates an array at computed positions, and functions that RoiAlign
 * and DeformConv use as well. */
#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/nn/sample.h"

hlo_value onnx_clamped_index(hlo_builder *b, hlo_value x, dim extent) {
  hlo_value low = hlo_scalar(b, hlo_type(x), 0), high = onnx_of_dim(b, hlo_type(x), extent, 1, -1);
  return hlo_convert(b, hlo_clamp(b, low, x, high), DTYPE_S64);
}

hlo_value onnx_in_range(hlo_builder *b, hlo_value x, hlo_value low, hlo_value high) {
  const shape *s = hlo_shape(x);
  return hlo_binary(b, HLO_AND, hlo_compare(b, HLO_GE, x, hlo_broadcast_to(b, low, s)),
                    hlo_compare(b, HLO_LE, x, hlo_broadcast_to(b, high, s)));
}

hlo_value onnx_stacked(hlo_builder *b, uint32_t n, const hlo_value *index) {
  hlo_value parts[1 + ONNX_MAX_SPATIAL];
  int rank = hlo_rank(index[0]);
  for (uint32_t k = 0; k < n; k++) {
    parts[k] = onnx_insert_dim(b, index[k], rank);
  }
  return hlo_concatenate(b, n, parts, rank);
}

/* --- GridSample --- */

typedef enum padding { ZEROS, BORDER, REFLECTION } padding;
typedef enum sampling { NEAREST, LINEAR, CUBIC } sampling;

typedef struct grid_sample {
  sampling mode;
  padding padding;
  bool align;
  int spatial;
} grid_sample;

static status read_grid_sample(const onnx_node *n, grid_sample *g) {
  static const char *const old_modes[] = {"nearest", "bilinear", "bicubic"}, *const modes[] = {"nearest", "linear",
                                                                                               "cubic"};
  static const char *const paddings[] = {"zeros", "border", "reflection"};
  const shape *x = onnx_in_shape(n, 0), *grid = onnx_in_shape(n, 1);
  int choice;
  bool old = n->since < 20;
  TRY(onnx_choose(n, "mode", old ? "bilinear" : "linear", old ? old_modes : modes, 3, &choice));
  g->mode = (sampling)choice;
  TRY(onnx_choose(n, "padding_mode", "zeros", paddings, 3, &choice));
  g->padding = (padding)choice;
  TRY(onnx_attr_bool(n->proto, "align_corners", false, &g->align));
  TRY(onnx_need_rank(n, 0, "X", old ? 4 : 3, old ? 4 : 2 + ONNX_MAX_SPATIAL));
  TRY(onnx_need_rank(n, 1, "grid", x->rank, x->rank));
  g->spatial = x->rank - 2;
  dim_table *t = onnx_dims(n);
  CHECK_THAT(dim_equal(t, grid->dims[0], x->dims[0]) && dim_equal(t, grid->dims[grid->rank - 1], g->spatial),
             STATUS_INVALID_MODEL, "X is %s but grid is %s; it must have the same batch and end in %d",
             SHAPE_STR(onnx_dims(n), x), SHAPE_STR(onnx_dims(n), grid), g->spatial);
  for (int k = 0; k < g->spatial; k++) {
    CHECK_THAT(dim_at_most(t, 1, x->dims[2 + k]), STATUS_INVALID_MODEL, "X is %s; there is nothing to sample",
               SHAPE_STR(onnx_dims(n), x));
  }
  return NULL;
}

/* Reflects x at the ends of an image until it is between them; as a function of x this is a triangle wave.  The ends
 * are the first and the last element or, unless `align`, half an element beyond them. */
static hlo_value reflected(hlo_builder *b, bool align, hlo_value x, dim extent) {
  double low = align ? 0 : -0.5;
  if (align && !dim_at_most(b->computation->module->dims, 2, extent)) {
    return hlo_like(b, x, low);
  }
  hlo_value away = hlo_unary(b, HLO_ABS, onnx_plus(b, x, -low));
  hlo_value twice = hlo_broadcast_to(b, onnx_of_dim(b, hlo_type(x), extent, 2, align ? -2 : 0), hlo_shape(x));
  away = hlo_binary(b, HLO_REM, away, twice);
  return onnx_plus(b, hlo_binary(b, HLO_MIN, away, hlo_binary(b, HLO_SUB, twice, away)), low);
}

/* Applies the padding mode to a position.  For BORDER the position is only made finite, since set_tap clamps the index
 * of each tap to the array. */
static hlo_value padded_position(hlo_builder *b, const grid_sample *g, hlo_value x, dim extent) {
  enum { TAPS = 4 };
  dtype type = hlo_type(x);
  hlo_value low = hlo_scalar(b, type, g->align ? 0 : -0.5),
            high = onnx_of_dim(b, type, extent, 1, g->align ? -1 : -0.5);
  switch (g->padding) {
    case REFLECTION: return hlo_select(b, onnx_in_range(b, x, low, high), x, reflected(b, g->align, x, extent));
    case BORDER: return hlo_clamp(b, hlo_scalar(b, type, -TAPS), x, onnx_of_dim(b, type, extent, 1, TAPS));
    default: return x;
  }
}

/* Returns the weight of a tap at distance t by Keys' cubic convolution with a = -0.75.  `near` selects the formula for
 * |t| <= 1, which the two inner taps use. */
static hlo_value cubic_weight(hlo_builder *b, hlo_value t, bool near) {
  const double a = -0.75;
  t = hlo_unary(b, HLO_ABS, t);
  hlo_value y = onnx_plus(b, onnx_times(b, t, near ? a + 2 : a), near ? -(a + 3) : -5 * a);
  if (near) {
    return onnx_plus(b, hlo_binary(b, HLO_MUL, hlo_binary(b, HLO_MUL, y, t), t), 1);
  }
  y = onnx_plus(b, hlo_binary(b, HLO_MUL, y, t), 8 * a);
  return onnx_plus(b, hlo_binary(b, HLO_MUL, y, t), -4 * a);
}

/* Returns true where the tap is outside of the image.  A tap at NaN counts as inside, so that its weight, which is also
 * NaN, makes the result NaN.  For nearest sampling, where the weight is 1, it counts as outside. */
static hlo_value is_outside(hlo_builder *b, const grid_sample *g, hlo_value at, dim extent) {
  hlo_value first = hlo_scalar(b, hlo_type(at), 0), last = onnx_of_dim(b, hlo_type(at), extent, 1, -1);
  const shape *s = hlo_shape(at);
  return g->mode == NEAREST ? hlo_unary(b, HLO_NOT, onnx_in_range(b, at, first, last))
                            : hlo_binary(b, HLO_OR, hlo_compare(b, HLO_LT, at, hlo_broadcast_to(b, first, s)),
                                         hlo_compare(b, HLO_GT, at, hlo_broadcast_to(b, last, s)));
}

/* Sets tap k to the element at the integer position `at`, with the weight. */
static void set_tap(hlo_builder *b, const grid_sample *g, onnx_taps *t, int k, hlo_value at, hlo_value weight,
                    dim extent) {
  t->outside[k] = g->padding == ZEROS ? is_outside(b, g, at, extent) : (hlo_value){0};
  t->index[k] = onnx_clamped_index(b, padded_position(b, g, at, extent), extent);
  t->weight[k] = weight;
}

/* Computes the taps of positions x, where 0 is the first element. */
static void position_taps(hlo_builder *b, const grid_sample *g, hlo_value x, dim extent, onnx_taps *t) {
  if (g->mode == NEAREST) {
    t->n = 1;
    x = padded_position(b, g, hlo_unary(b, HLO_ROUND, x), extent);
    set_tap(b, g, t, 0, x, hlo_like(b, x, 1), extent);
    return;
  }
  x = padded_position(b, g, x, extent);
  hlo_value floor = hlo_unary(b, HLO_FLOOR, x), part = hlo_binary(b, HLO_SUB, x, floor);
  t->n = g->mode == LINEAR ? 2 : 4;
  int first = g->mode == LINEAR ? 0 : -1;
  for (int k = 0; k < t->n; k++) {
    hlo_value distance = onnx_plus(b, part, -(double)(first + k));
    hlo_value weight = g->mode == CUBIC ? cubic_weight(b, distance, k == 1 || k == 2)
                                        : hlo_binary(b, HLO_SUB, hlo_like(b, part, 1), hlo_unary(b, HLO_ABS, distance));
    set_tap(b, g, t, k, onnx_plus(b, floor, first + k), weight, extent);
  }
}

void onnx_linear_taps(hlo_builder *b, hlo_value position, dim extent, onnx_taps *t) {
  grid_sample g = {.mode = LINEAR, .padding = ZEROS};
  position_taps(b, &g, position, extent, t);
}

/* Computes the taps of normalised coordinates x, where -1 and 1 are the ends of the image. */
static void grid_taps(hlo_builder *b, const grid_sample *g, hlo_value x, dim extent, onnx_taps *t) {
  hlo_value scale = onnx_of_dim(b, hlo_type(x), extent, 0.5, g->align ? -0.5 : 0);
  x = onnx_op_stretched(b, HLO_MUL, onnx_plus(b, x, 1), scale);
  x = onnx_plus(b, x, g->align ? 0 : -0.5);
  position_taps(b, g, x, extent, t);
}

bool onnx_channels_go_last(const onnx_node *n, const shape *x) {
  enum { ENOUGH = 8 };
  int64_t likely;
  return dim_hint(onnx_dims(n), x->dims[1], &likely) && likely >= ENOUGH;
}

hlo_value onnx_channels_last(hlo_builder *b, hlo_value x) {
  int64_t order[SHAPE_MAX_RANK] = {0};
  int rank = hlo_rank(x);
  for (int k = 1; k < rank; k++) {
    order[k] = k == rank - 1 ? 1 : k + 1;
  }
  return hlo_transpose(b, x, order);
}

hlo_value onnx_channels_first(hlo_builder *b, hlo_value x) {
  int64_t order[SHAPE_MAX_RANK] = {0};
  int rank = hlo_rank(x);
  for (int k = 1; k < rank; k++) {
    order[k] = k == 1 ? rank - 1 : k - 1;
  }
  return hlo_transpose(b, x, order);
}

/* Returns true if x is empty.  Its spatial dimensions begin at `first`; if they are symbolic, this may add guards. */
static bool is_empty_image(hlo_builder *b, const shape *x, int spatial, int first) {
  bool empty = shape_is_empty(x);
  for (int k = 0; k < spatial && !empty; k++) {
    empty = !dim_at_most(b->computation->module->dims, 1, x->dims[first + k]);
  }
  return empty;
}

/* Reads x [N, C, spatial...] at the indices [N, out..., number of spatial dimensions] and returns [N, C, out...].  With
 * `last`, C is the last dimension of both x and the result. */
static hlo_value read_pixels(hlo_builder *b, hlo_value x, hlo_value index, int spatial, bool last) {
  static const int64_t zero = 0;
  int64_t dims[ONNX_MAX_SPATIAL], offset = last ? hlo_rank(index) - 1 : 1;
  dim sizes[2 + ONNX_MAX_SPATIAL] = {1}, channels = hlo_shape(x)->dims[last ? 1 + spatial : 1];
  for (int k = 0; k < spatial; k++) {
    dims[k] = last ? 1 + k : 2 + k;
    sizes[dims[k]] = 1;
  }
  sizes[last ? 1 + spatial : 1] = channels;
  if (x.def && index.def && is_empty_image(b, hlo_shape(x), spatial, last ? 1 : 2)) { /* all positions are outside */
    shape s = *hlo_shape(index);
    memmove(s.dims + offset + 1, s.dims + offset, (size_t)(s.rank - 1 - offset) * sizeof *s.dims);
    s.dims[offset] = channels;
    return hlo_splat(b, shape_make(hlo_type(x), s.rank, s.dims), 0);
  }
  hlo_gather_dims d = {.n_offset = 1,
                       .offset = &offset,
                       .n_collapsed = (uint32_t)spatial,
                       .collapsed = dims,
                       .n_batch = 1,
                       .operand_batch = &zero,
                       .indices_batch = &zero,
                       .n_map = (uint32_t)spatial,
                       .map = dims,
                       .index_vector_dim = hlo_rank(index) - 1};
  return hlo_gather(b, x, index, &d, sizes);
}

/* Broadcasts v, [N, out...], along the channels of an array of shape s. */
static hlo_value along_channels(hlo_builder *b, hlo_value v, const shape *s, bool last) {
  int64_t at[2 + ONNX_MAX_SPATIAL] = {0};
  for (int k = 1; k < 2 + ONNX_MAX_SPATIAL; k++) {
    at[k] = last ? k : k + 1;
  }
  return hlo_broadcast(b, v, shape_with_type(*s, hlo_type(v)), at);
}

hlo_value onnx_over_channels(hlo_builder *b, hlo_value weight, hlo_value y, bool last) {
  return along_channels(b, hlo_convert(b, weight, hlo_type(y)), hlo_shape(y), last);
}

/* Returns the product of the elements at combination c of the taps and their weights; elements that are outside count
 * as 0, also if the element that is read in their place is infinite or NaN. */
static hlo_value combination(hlo_builder *b, hlo_value x, int spatial, const onnx_taps *t, int c, bool last) {
  hlo_value index[ONNX_MAX_SPATIAL], weight = {0}, outside = {0};
  for (int k = spatial - 1; k >= 0; k--) {
    int tap = c % t[k].n;
    hlo_value w = t[k].weight[tap], out = t[k].outside[tap];
    index[k] = t[k].index[tap];
    weight = weight.def ? hlo_binary(b, HLO_MUL, w, weight) : w;
    outside = out.def && outside.def ? hlo_binary(b, HLO_OR, out, outside) : out.def ? out : outside;
    c /= t[k].n;
  }
  hlo_value y = read_pixels(b, x, onnx_stacked(b, (uint32_t)spatial, index), spatial, last);
  y = hlo_binary(b, HLO_MUL, y, onnx_over_channels(b, weight, y, last));
  if (outside.def && !b->error) {
    y = hlo_select(b, along_channels(b, outside, hlo_shape(y), last), hlo_like(b, y, 0), y);
  }
  return y;
}

hlo_value onnx_interpolate(const onnx_node *n, hlo_value x, int spatial, const onnx_taps *t) {
  hlo_builder *b = n->b;
  hlo_value sum = {0};
  int combinations = 1;
  bool last = onnx_channels_go_last(n, hlo_shape(x));
  for (int k = 0; k < spatial; k++) {
    combinations *= t[k].n;
  }
  x = last ? onnx_channels_last(b, x) : x;
  for (int c = 0; c < combinations && !b->error; c++) {
    hlo_value y = combination(b, x, spatial, t, c, last);
    sum = sum.def ? hlo_binary(b, HLO_ADD, sum, y) : y;
  }
  return last ? onnx_channels_first(b, sum) : sum;
}

hlo_value onnx_read_pixels(hlo_builder *b, bool last, hlo_value image, hlo_value batch, hlo_value y, hlo_value x) {
  const int64_t map[] = {0, last ? 1 : 2, last ? 2 : 3}, channel = last ? 3 : 1;
  const shape *sy = hlo_shape(y), *sx = hlo_shape(x);
  shape s = shape_make(DTYPE_S64, 3, (dim[]){sy->dims[0], sy->dims[1], sx->dims[1]});
  hlo_value index[] = {hlo_broadcast(b, batch, s, (int64_t[]){0}), hlo_broadcast(b, y, s, (int64_t[]){0, 1}),
                       hlo_broadcast(b, x, s, (int64_t[]){0, 2})};
  dim sizes[] = {1, 1, 1, 1};
  sizes[channel] = hlo_shape(image)->dims[channel];
  hlo_gather_dims d = {.n_offset = 1,
                       .offset = &channel,
                       .n_collapsed = 3,
                       .collapsed = map,
                       .n_map = 3,
                       .map = map,
                       .index_vector_dim = 3};
  return hlo_gather(b, image, onnx_stacked(b, 3, index), &d, sizes);
}

status onnx_import_grid_sample(onnx_node *n) {
  hlo_builder *b = n->b;
  grid_sample g = {0};
  onnx_taps t[ONNX_MAX_SPATIAL];
  TRY(read_grid_sample(n, &g));
  hlo_value x = onnx_widen(b, n->in[0]), grid = onnx_widen(b, n->in[1]);
  for (int k = 0; k < g.spatial; k++) { /* the grid lists the last dimension first */
    grid_taps(b, &g, onnx_pick(b, grid, g.spatial + 1, g.spatial - 1 - k), hlo_shape(x)->dims[2 + k], &t[k]);
  }
  n->out[0] = hlo_convert(b, onnx_interpolate(n, x, g.spatial, t), hlo_type(n->in[0]));
  return NULL;
}
