/* geometry.c - the importers of AffineGrid and Col2Im. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/import_helpers.h"
#include "frontend/import/symbolic.h"
#include "hlo/ir/fold_sizes.h"

#define INVALID STATUS_INVALID_MODEL

/* --- AffineGrid --- */

/* Returns the distance between neighbours of `count` evenly spaced points, f64[].  If align_corners is set,
 * the first and the last point are at -1 and 1, otherwise half a distance inside of these. */
static hlo_value grid_step(hlo_builder *b, dim count, bool align_corners) {
  hlo_value steps = onnx_of_dim(b, DTYPE_F64, count, 1, align_corners ? -1 : 0);
  steps = align_corners ? hlo_binary(b, HLO_MAX, steps, hlo_like(b, steps, 1)) : steps;
  return hlo_binary(b, HLO_DIV, hlo_like(b, steps, 2), steps);
}

/* Returns the homogeneous coordinates x, y, (z,) 1 of each point of the grid, as [spatial..., rank + 1].  They are
 * between -1 and 1, and x belongs to the last spatial dimension. */
static hlo_value base_grid(hlo_builder *b, int rank, const dim *spatial, bool align_corners, dtype t) {
  shape s = shape_make(t, rank, spatial);
  s.dims[s.rank++] = 1;
  hlo_value columns[4];
  for (int k = 0; k < rank; k++) {
    int dimension = rank - 1 - k;
    hlo_value step = grid_step(b, spatial[dimension], align_corners);
    hlo_value first = align_corners ? hlo_like(b, step, -1) : onnx_plus(b, onnx_times(b, step, 0.5), -1);
    hlo_value p = hlo_binary_broadcast(b, HLO_MUL, hlo_iota(b, s, dimension), hlo_convert(b, step, t));
    columns[k] = hlo_binary_broadcast(b, HLO_ADD, p, hlo_convert(b, first, t));
  }
  columns[rank] = hlo_splat(b, s, 1);
  return hlo_concatenate(b, (uint32_t)rank + 1, columns, rank);
}

status onnx_import_affine_grid(onnx_node *n) {
  hlo_builder *b = n->b;
  const dim *size;
  int64_t count;
  bool align_corners;
  TRY(onnx_attr_bool(n->proto, "align_corners", false, &align_corners));
  TRY(onnx_const_dims(n, 1, "size", &size, &count));
  int rank = (int)count - 2;
  CHECK_THAT(count == 4 || count == 5, INVALID, "size has %" PRId64 " entries; 4 or 5 are required", count);
  for (int k = 0; k < count; k++) {
    CHECK_THAT(dim_at_most(onnx_dims(n), 1, size[k]) && size[k] < DIM_MAX, INVALID, "size[%d] is %s", k,
               dim_print(n->arena, onnx_dims(n), size[k]));
  }
  TRY(onnx_need_dims(n, 0, "theta", 3, (dim[]){size[0], rank, rank + 1}));
  hlo_value theta = onnx_widen(b, n->in[0]);
  hlo_value grid = base_grid(b, rank, size + 2, align_corners, hlo_type(theta));
  hlo_dot_dims d = {.n_contract = 1, .lhs_contract = (int64_t[]){2}, .rhs_contract = (int64_t[]){rank}};
  hlo_value y = hlo_dot(b, theta, grid, &d); /* [N, rank, spatial...] */
  n->out[0] = hlo_convert(b, hlo_transpose(b, y, rank == 2 ? (int64_t[]){0, 2, 3, 1} : (int64_t[]){0, 2, 3, 4, 1}),
                          hlo_type(n->in[0]));
  return NULL;
}

/* --- Col2Im --- */

/* The most dimensions of an image: positions are computed in an array that has two dimensions for each dimension of the
 * image. */
enum { MAX_SPATIAL = SHAPE_MAX_RANK / 2 };

/* The blocks that slide over an image of `rank` dimensions; the lists have one entry for each dimension. */
typedef struct blocks {
  int64_t rank;
  int64_t block[SHAPE_MAX_RANK], strides[SHAPE_MAX_RANK], dilations[SHAPE_MAX_RANK];
  int64_t low[SHAPE_MAX_RANK]; /* the padding before the image */
  dim image[SHAPE_MAX_RANK];
  dim count[SHAPE_MAX_RANK]; /* the number of block positions */
} blocks;

/* Reads an attribute that lists `want` integers, each at least `least`; if it is absent, each is `least`. */
static status spatial_list(const onnx_node *n, const char *name, int64_t want, int64_t least, int64_t *out) {
  const int64_t *values;
  size_t count;
  TRY(onnx_attr_ints(n->proto, name, &values, &count));
  CHECK_THAT(!onnx_attr_has(n->proto, name) || count == (size_t)want, INVALID,
             "%s has %zu entries; %" PRId64 " are required", name, count, want);
  for (int64_t k = 0; k < want; k++) {
    out[k] = values ? values[k] : least;
    CHECK_THAT(out[k] >= least && out[k] <= INT32_MAX, INVALID, "%s[%" PRId64 "] is %" PRId64, name, k, out[k]);
  }
  return NULL;
}

static status spatial_input(const onnx_node *n, uint32_t k, const char *name, int64_t *count, dim *out) {
  const dim *values;
  dim_table *t = onnx_dims(n);
  TRY(onnx_const_dims(n, k, name, &values, count));
  CHECK_THAT(*count >= 1 && *count <= MAX_SPATIAL, INVALID, "%s has %" PRId64 " entries", name, *count);
  for (int64_t j = 0; j < *count; j++) {
    CHECK_THAT(dim_at_most(t, 1, values[j]) && values[j] <= INT32_MAX, INVALID, "%s[%" PRId64 "] is %s", name, j,
               dim_print(n->arena, t, values[j]));
    out[j] = values[j];
  }
  return NULL;
}

static status read_blocks(const onnx_node *n, blocks *g) {
  dim_table *t = onnx_dims(n);
  dim block[SHAPE_MAX_RANK];
  int64_t rank, pads[2 * SHAPE_MAX_RANK];
  TRY(spatial_input(n, 1, "image_shape", &g->rank, g->image));
  TRY(spatial_input(n, 2, "block_shape", &rank, block));
  CHECK_THAT(rank == g->rank, INVALID, "block_shape has %" PRId64 " entries but image_shape %" PRId64, rank, g->rank);
  TRY(spatial_list(n, "strides", rank, 1, g->strides));
  TRY(spatial_list(n, "dilations", rank, 1, g->dilations));
  TRY(spatial_list(n, "pads", 2 * rank, 0, pads));
  for (int64_t k = 0; k < rank; k++) {
    TRY(onnx_const_dim(n, block[k], "block_shape", &g->block[k]));
    int64_t covered = (g->block[k] - 1) * g->dilations[k] + 1, padding = pads[k] + pads[rank + k];
    dim room = dim_signed_add(t, g->image[k], dim_signed_const(t, padding - covered));
    g->low[k] = pads[k];
    g->count[k] = dim_at_most(t, 0, room) ? dim_add_const(t, dim_floordiv(t, room, g->strides[k]), 1) : 0;
  }
  return NULL;
}

/* --- sums of padded blocks --- */

enum { MOST_PADS = 64 };

/* Sets *high to how much padding follows the last position of dimension k that `elements` elements cover which begin
 * at `low` and have distances of `step`.  Returns false unless it is a constant. */
static bool padding_behind(const onnx_node *n, const blocks *g, int64_t k, int64_t low, int64_t step, dim elements,
                           int64_t *high) {
  dim_table *t = onnx_dims(n);
  dim last = dim_signed_add(t, dim_mul(t, dim_add_const(t, elements, -1), step), dim_signed_const(t, low + 1));
  return dim_signed_value(t, dim_signed_sub(t, g->image[k], last), high) && llabs(*high) <= INT32_MAX &&
         llabs(low) <= INT32_MAX;
}

/* Returns true if the blocks of dimension k lie side by side. */
static bool is_tiled(const blocks *g, int64_t k) { return g->strides[k] == g->block[k] && g->dilations[k] == 1; }

/* Returns true if images can be computed by sum_blocks, and in few operations. */
static bool can_sum_blocks(const onnx_node *n, const blocks *g) {
  int64_t pads = 0, high;
  bool can = hlo_type(n->in[0]) != DTYPE_PRED && 2 * g->rank < SHAPE_MAX_RANK;
  for (int64_t k = 0; k < g->rank && can; k++) {
    can = dim_at_most(onnx_dims(n), 1, g->count[k]) &&
          padding_behind(n, g, k, -g->low[k], g->strides[k], g->count[k], &high);
    pads += is_tiled(g, k) ? 1 : g->block[k];
    can = can && pads <= MOST_PADS;
  }
  return can;
}

/* Pads dimension `axis` of x, whose elements belong at positions low, low + step, ... of dimension k of the image. */
static hlo_value place_in_image(const onnx_node *n, const blocks *g, int64_t k, hlo_value x, int64_t axis, int64_t low,
                                int64_t step) {
  int64_t before[SHAPE_MAX_RANK] = {0}, after[SHAPE_MAX_RANK] = {0}, between[SHAPE_MAX_RANK] = {0};
  if (n->b->error) {
    return x;
  }
  (void)padding_behind(n, g, k, low, step, hlo_shape(x)->dims[axis], &after[axis]);
  before[axis] = low;
  between[axis] = step - 1;
  return hlo_pad(n->b, x, hlo_scalar(n->b, hlo_type(x), 0), before, after, between);
}

/* Returns x [rows, block..., count...] with its first k + 1 blocks and counts, and the image's further dimensions, in
 * which each element of a block has been moved to its position in dimension k of the image: one block and count less,
 * and one dimension of the image more. */
static hlo_value sum_dimension(const onnx_node *n, const blocks *g, int64_t k, hlo_value x) {
  hlo_builder *b = n->b;
  if (b->error) {
    return x;
  }
  int64_t of_block = 1 + k, of_count = 1 + 2 * k + 1;
  if (is_tiled(g, k)) {
    int64_t order[SHAPE_MAX_RANK];
    shape s = *hlo_shape(x);
    for (int j = 0; j < s.rank; j++) {
      order[j] = j < of_block || j > of_count ? j : j == of_count ? of_block : j + 1;
    }
    x = hlo_transpose(b, x, order); /* the block's elements follow its number */
    memmove(s.dims + of_block, s.dims + of_block + 1, (size_t)(s.rank - of_block - 1) * sizeof *s.dims);
    s.dims[of_count - 1] = dim_mul(onnx_dims(n), g->count[k], g->block[k]);
    return place_in_image(n, g, k, hlo_reshape(b, x, s.rank - 1, s.dims), of_count - 1, -g->low[k], 1);
  }
  hlo_value sum = {0};
  for (int64_t tap = 0; tap < g->block[k]; tap++) {
    hlo_value y = place_in_image(n, g, k, onnx_pick(b, x, of_block, tap), of_count - 1,
                                 tap * g->dilations[k] - g->low[k], g->strides[k]);
    sum = tap ? hlo_binary(b, HLO_ADD, sum, y) : y;
  }
  return sum;
}

/* Returns the images, [rows, image...]: one dimension after the other is summed, so that for a block of 3 by 3 there
 * are 6 sums in place of 9. */
static hlo_value sum_blocks(const onnx_node *n, const blocks *g, dim rows) {
  dim dims[SHAPE_MAX_RANK] = {rows};
  dtype t = hlo_type(n->in[0]);
  memcpy(dims + 1, g->block, (size_t)g->rank * sizeof *dims);
  memcpy(dims + 1 + g->rank, g->count, (size_t)g->rank * sizeof *dims);
  hlo_value x = hlo_reshape(n->b, n->in[0], 1 + 2 * (int)g->rank, dims);
  x = hlo_convert(n->b, x, t == DTYPE_F16 || t == DTYPE_BF16 ? DTYPE_F32 : t);
  for (int64_t k = g->rank - 1; k >= 0; k--) {
    x = sum_dimension(n, g, k, x);
  }
  return hlo_convert(n->b, x, t);
}

/* --- blocks that are scattered --- */

/* Returns for each element of each block its row-major position in the image, or -1 if it is in the padding, as
 * s64[block..., count...]. */
static hlo_value block_positions(hlo_builder *b, const blocks *g) {
  shape s = shape_make(DTYPE_S64, (int)g->rank, g->block);
  memcpy(s.dims + g->rank, g->count, (size_t)g->rank * sizeof *s.dims);
  s.rank *= 2;
  hlo_value position = hlo_splat(b, s, 0), outside = hlo_splat(b, shape_with_type(s, DTYPE_PRED), 0);
  for (int64_t k = 0; k < g->rank; k++) {
    hlo_value element = onnx_times(b, hlo_iota(b, s, k), (double)g->dilations[k]);
    hlo_value block = onnx_times(b, hlo_iota(b, s, g->rank + k), (double)g->strides[k]);
    hlo_value at = onnx_plus(b, hlo_binary(b, HLO_ADD, block, element), -(double)g->low[k]);
    hlo_value beyond = hlo_binary(b, HLO_OR, onnx_compare_scalar(b, HLO_LT, at, 0),
                                  hlo_compare(b, HLO_GE, at, onnx_dim_like(b, at, g->image[k])));
    outside = hlo_binary(b, HLO_OR, outside, beyond);
    position = hlo_binary(b, HLO_ADD, onnx_binary_dim(b, HLO_MUL, position, g->image[k]), at);
  }
  return hlo_select(b, outside, hlo_like(b, position, -1), position);
}

/* Scatters every element of the columns to its position in the image, where it is added, and returns the images,
 * [rows, pixels].  The scatter skips elements in the padding, whose position is -1. */
static hlo_value scatter_blocks(const onnx_node *n, const blocks *g, dim rows, dim in_block, dim pixels) {
  hlo_builder *b = n->b;
  dtype t = hlo_type(n->in[0]);
  hlo_value where = hlo_reshape(b, block_positions(b, g), 1, &in_block);
  hlo_value columns = hlo_reshape(b, n->in[0], 2, (dim[]){rows, in_block});
  hlo_value empty = hlo_splat(b, shape_make(t, 2, (dim[]){rows, pixels}), 0);
  hlo_gather_dims d = {.n_offset = 1,
                       .offset = (int64_t[]){0},
                       .n_collapsed = 1,
                       .collapsed = (int64_t[]){1},
                       .n_map = 1,
                       .map = (int64_t[]){1},
                       .index_vector_dim = 1};
  return hlo_scatter(b, empty, where, columns, &d, onnx_reducer_for(t, HLO_REDUCE_ADD));
}

/* The input has a column for each block of the image. */
status onnx_import_col2im(onnx_node *n) {
  dim_table *t = onnx_dims(n);
  const shape *s = hlo_shape(n->in[0]);
  blocks g;
  int64_t rows_of_columns;
  TRY(read_blocks(n, &g));
  TRY(onnx_need_rank(n, 0, "input", 3, 3));
  TRY(onnx_const_dim(n, s->dims[1], "the number of rows of input", &rows_of_columns));
  shape block = shape_make(DTYPE_S64, (int)g.rank, g.block), all = shape_make(DTYPE_S64, (int)g.rank, g.count);
  shape image = shape_make((dtype)s->type, (int)g.rank, g.image);
  TRY(shape_check(&block, "block_shape"));
  TRY(shape_check(&all, "the blocks"));
  TRY(shape_check(&image, "image_shape"));
  int64_t elements = shape_elements(&block);
  dim count = shape_dim_product(t, &all, 0, all.rank), pixels = shape_dim_product(t, &image, 0, image.rank);
  CHECK_THAT(rows_of_columns % elements == 0 && dim_equal(t, s->dims[2], count), INVALID,
             "input is %s; its dims must be N, a multiple of %" PRId64 " and %s", SHAPE_STR(onnx_dims(n), s), elements,
             dim_print(n->arena, t, count));
  dim channels = rows_of_columns / elements, rows = dim_mul(t, s->dims[0], channels);
  hlo_value y = can_sum_blocks(n, &g) ? sum_blocks(n, &g, rows)
                                      : scatter_blocks(n, &g, rows, dim_mul(t, count, elements), pixels);
  dim dims[SHAPE_MAX_RANK] = {s->dims[0], channels};
  memcpy(dims + 2, g.image, (size_t)g.rank * sizeof *dims);
  n->out[0] = hlo_reshape(n->b, y, (int)g.rank + 2, dims);
  return NULL;
}
