/* shape_loops.c - shape rules of reductions, windows, sorting and contractions. */
#include <inttypes.h>

#include "hlo/ir/shape_rules.h"

#define INVALID STATUS_INVALID_MODEL

/* --- reductions, scans, sorting --- */

/* Returns the shape of x without the dimensions in the bit set. */
static shape without_dims(const shape *x, uint32_t set) {
  shape s = shape_scalar((dtype)x->type);
  for (int k = 0; k < x->rank; k++) {
    if (!(set >> k & 1)) {
      s.dims[s.rank++] = x->dims[k];
    }
  }
  return s;
}

status hlo_shape_reduce(const hlo_instr *i, dim_table *dims, shape *results) {
  uint32_t set = 0;
  TRY(shape_need_reducer(i, dims, 0));
  TRY(shape_need_dims(i, HLO_ATTR_DIMENSIONS, shape_of(i, 0)->rank, true, &set));
  results[0] = without_dims(shape_of(i, 0), set);
  return NULL;
}

status hlo_shape_arg_reduce(const hlo_instr *i, dim_table *dims, shape *results) {
  const shape *x = shape_of(i, 0);
  int64_t d = hlo_int(i, HLO_ATTR_DIMENSION);
  TRY(shape_need_types(i, dims, 0, TYPES_ORDERED));
  TRY(shape_need_dimension(i, HLO_ATTR_DIMENSION, x->rank));
  CHECK_THAT(x->dims[d] != 0, INVALID, "dimension %" PRId64 " of %s has no elements to choose from", d,
             SHAPE_STR(dims, x));
  results[0] = without_dims(x, (uint32_t)1 << d);
  results[0].type = DTYPE_S64;
  return shape_finish(i, &results[0]);
}

status hlo_shape_cumulative(const hlo_instr *i, dim_table *dims, shape *results) {
  int64_t r = hlo_int(i, HLO_ATTR_REDUCER);
  CHECK_THAT(r >= HLO_REDUCE_ADD && r <= HLO_REDUCE_MIN, INVALID,
             "the reducer must be add, multiply, maximum or minimum");
  TRY(shape_need_types(i, dims, 0, r <= HLO_REDUCE_MUL ? TYPES_NUMBER : TYPES_REAL));
  TRY(shape_need_dimension(i, HLO_ATTR_DIMENSION, shape_of(i, 0)->rank));
  results[0] = *shape_of(i, 0);
  return NULL;
}

status hlo_shape_sort(const hlo_instr *i, dim_table *dims, shape *results) {
  CHECK_THAT(i->n_results == i->n_operands, INVALID, "%u results for %u operands", i->n_results, i->n_operands);
  TRY(shape_need_types(i, dims, 0, TYPES_ORDERED));
  TRY(shape_need_dimension(i, HLO_ATTR_DIMENSION, shape_of(i, 0)->rank));
  for (uint32_t k = 0; k < i->n_operands; k++) {
    TRY(shape_need_types(i, dims, k, TYPES_ALL));
    TRY(shape_need_same_dims(dims, "operand 0", shape_of(i, 0), "another", shape_of(i, k)));
    results[k] = *shape_of(i, k);
  }
  return NULL;
}

dim hlo_nms_room(const hlo_instr *i) {
  dim boxes = shape_of(i, 1)->dims[2], limit = hlo_int(i, HLO_ATTR_LIMIT);
  return limit == UINT32_MAX ? boxes : dim_min(i->parent->module->dims, boxes, limit);
}

status hlo_shape_nms(const hlo_instr *i, dim_table *dims, shape *results) {
  static const dtype types[] = {DTYPE_F32, DTYPE_F32, DTYPE_S64, DTYPE_F32, DTYPE_F32};
  const shape *corners = shape_of(i, 0), *scores = shape_of(i, 1);
  for (uint32_t k = 2; k < i->n_operands; k++) {
    TRY(shape_need_scalar(i, dims, k, types[k]));
  }
  CHECK_THAT(corners->kind == SHAPE_ARRAY && scores->kind == SHAPE_ARRAY && corners->type == DTYPE_F32 &&
                 scores->type == DTYPE_F32 && corners->rank == 3 && scores->rank == 3,
             INVALID, "corners are %s and scores %s; both must be f32 of rank 3", SHAPE_STR(dims, corners),
             SHAPE_STR(dims, scores));
  TRY(shape_need_equal(dims, "corners of a box", -1, corners->dims[2], 4));
  TRY(shape_need_equal(dims, "batches", -1, corners->dims[0], scores->dims[0]));
  TRY(shape_need_equal(dims, "boxes", -1, corners->dims[1], scores->dims[2]));
  CHECK_THAT(!dim_is_const(corners->dims[1]) || corners->dims[1] <= UINT32_MAX, INVALID, "%s boxes are too many",
             SHAPE_STR(dims, corners));
  int64_t limit = hlo_int(i, HLO_ATTR_LIMIT);
  CHECK_THAT(limit >= 0 && limit <= UINT32_MAX, INVALID, "limit is %" PRId64, limit);
  dim lines = dim_mul(dims, scores->dims[0], scores->dims[1]);
  results[0] = shape_make(DTYPE_S64, 2, (dim[]){dim_mul(dims, lines, hlo_nms_room(i)), 3});
  results[1] = shape_scalar(DTYPE_S64);
  return shape_finish(i, &results[0]);
}

/* --- windows --- */

/* Returns the number of positions of a dilated window along an extent d; size and dilation are at least 1. */
static dim window_dim(dim_table *dims, dim d, int64_t size, int64_t dilation, int64_t stride) {
  int64_t extent = 0, span = 0;
  if (d == DIM_OVERFLOW || __builtin_mul_overflow(size - 1, dilation, &extent) || extent >= DIM_MAX) {
    return DIM_OVERFLOW;
  }
  extent++;
  if (!dim_is_const(d)) {
    return dim_floordiv(dims, dim_add_const(dims, d, stride - extent), stride);
  }
  span = d - extent;
  return span < 0 ? 0 : span / stride + 1;
}

/* Returns window_dim for a padded extent.  Negative padding may remove more elements than there are; then no position
 * is left, and the result is 0. */
static dim padded_window_dim(dim_table *dims, dim d, int64_t low, int64_t high, int64_t size, int64_t dilation,
                             int64_t stride) {
  if (dim_is_const(d) && d + low + high < 0) {
    return 0;
  }
  return window_dim(dims, shape_pad_dim(dims, d, low, high, 0), size, dilation, stride);
}

static status check_padding(const hlo_instr *i, uint32_t n) {
  TRY(shape_need_range(i, HLO_ATTR_LOW, n, -DIM_MAX, DIM_MAX));
  return shape_need_range(i, HLO_ATTR_HIGH, n, -DIM_MAX, DIM_MAX);
}

status hlo_shape_reduce_window(const hlo_instr *i, dim_table *dims, shape *results) {
  const shape *x = shape_of(i, 0);
  bool arg = i->op == HLO_ARG_REDUCE_WINDOW;
  TRY(arg ? shape_need_types(i, dims, 0, TYPES_ORDERED) : shape_need_reducer(i, dims, 0));
  TRY(shape_need_range(i, HLO_ATTR_WINDOW, x->rank, 1, DIM_MAX));
  TRY(shape_need_range(i, HLO_ATTR_STRIDES, x->rank, 1, DIM_MAX));
  TRY(shape_need_range(i, HLO_ATTR_RHS_DILATION, x->rank, 1, DIM_MAX));
  TRY(check_padding(i, x->rank));
  results[0] = shape_with_type(*x, arg ? DTYPE_S64 : (dtype)x->type);
  for (int k = 0; k < x->rank; k++) {
    int64_t low = hlo_ints(i, HLO_ATTR_LOW)[k], high = hlo_ints(i, HLO_ATTR_HIGH)[k],
            size = hlo_ints(i, HLO_ATTR_WINDOW)[k];
    CHECK_THAT(size == 1 || (low >= 0 && high >= 0), INVALID,
               "dimension %d: padding %" PRId64 ", %" PRId64 " crops, which only a window of 1 may", k, low, high);
    results[0].dims[k] = padded_window_dim(dims, x->dims[k], low, high, size, hlo_ints(i, HLO_ATTR_RHS_DILATION)[k],
                                           hlo_ints(i, HLO_ATTR_STRIDES)[k]);
  }
  return shape_finish(i, &results[0]);
}

/* --- contractions --- */

/* Puts the shapes of a contraction's operands, named A and B, in front of the message of an error. */
static status mismatch(dim_table *dims, const hlo_instr *i, status s) {
  if (!s) {
    return NULL;
  }
  status both = status_error(status_get_code(s), "A is %s but B is %s; %s", SHAPE_STR(dims, shape_of(i, 0)),
                             SHAPE_STR(dims, shape_of(i, 1)), status_message(s));
  status_free(s);
  return both;
}

/* Checks the types of the operands: both are bytes, signed or not, or both have the same type. */
static status check_factors(const hlo_instr *i, dim_table *dims) {
  TRY(shape_need_types(i, dims, 0, TYPES_NUMBER));
  TRY(shape_need_types(i, dims, 1, TYPES_NUMBER));
  return hlo_sums_bytes(i) ? NULL : shape_need_same_type(i, dims, 0, 1);
}

static dtype sum_type(const hlo_instr *i) { return hlo_widens_sums(i) ? DTYPE_S32 : (dtype)shape_of(i, 0)->type; }

static status check_dot_lists(const hlo_instr *i, dim_table *dims, uint32_t *x_set, uint32_t *y_set) {
  const shape *x = shape_of(i, 0), *y = shape_of(i, 1);
  TRY(check_factors(i, dims));
  TRY(shape_need_dims(i, HLO_ATTR_LHS_BATCH, x->rank, false, x_set));
  TRY(shape_need_dims(i, HLO_ATTR_LHS_CONTRACT, x->rank, false, x_set));
  TRY(shape_need_dims(i, HLO_ATTR_RHS_BATCH, y->rank, false, y_set));
  TRY(shape_need_dims(i, HLO_ATTR_RHS_CONTRACT, y->rank, false, y_set));
  TRY(shape_need_count(i, HLO_ATTR_RHS_BATCH, hlo_n_ints(i, HLO_ATTR_LHS_BATCH)));
  return shape_need_count(i, HLO_ATTR_RHS_CONTRACT, hlo_n_ints(i, HLO_ATTR_LHS_CONTRACT));
}

/* Checks that dimension x_list[k] of the first operand has the same extent as dimension y_list[k] of the second, for
 * each k. */
static status check_opposite(const hlo_instr *i, dim_table *dims, const char *what, hlo_attr_id x_list,
                             hlo_attr_id y_list) {
  uint32_t n = hlo_n_ints(i, x_list);
  for (uint32_t k = 0; k < n; k++) {
    TRY(mismatch(dims, i,
                 shape_need_equal(dims, what, n > 1 ? (int)k : -1, shape_of(i, 0)->dims[hlo_ints(i, x_list)[k]],
                                  shape_of(i, 1)->dims[hlo_ints(i, y_list)[k]])));
  }
  return NULL;
}

status hlo_shape_dot(const hlo_instr *i, dim_table *dims, shape *results) {
  const shape *x = shape_of(i, 0), *y = shape_of(i, 1);
  uint32_t x_set = 0, y_set = 0, n_batch = hlo_n_ints(i, HLO_ATTR_LHS_BATCH);
  TRY(check_dot_lists(i, dims, &x_set, &y_set));
  TRY(check_opposite(i, dims, "batch", HLO_ATTR_LHS_BATCH, HLO_ATTR_RHS_BATCH));
  TRY(check_opposite(i, dims, "K", HLO_ATTR_LHS_CONTRACT, HLO_ATTR_RHS_CONTRACT));
  shape x_free = without_dims(x, x_set), y_free = without_dims(y, y_set);
  int rank = (int)n_batch + x_free.rank + y_free.rank;
  CHECK_THAT(rank <= SHAPE_MAX_RANK, STATUS_UNSUPPORTED, "the result has rank %d; more than %d are not supported", rank,
             SHAPE_MAX_RANK);
  shape s = shape_scalar(sum_type(i));
  for (uint32_t k = 0; k < n_batch; k++) {
    s.dims[s.rank++] = x->dims[hlo_ints(i, HLO_ATTR_LHS_BATCH)[k]];
  }
  for (int k = 0; k < x_free.rank; k++) {
    s.dims[s.rank++] = x_free.dims[k];
  }
  for (int k = 0; k < y_free.rank; k++) {
    s.dims[s.rank++] = y_free.dims[k];
  }
  results[0] = s;
  return shape_finish(i, &results[0]);
}

static status check_conv_lists(const hlo_instr *i, dim_table *dims) {
  const shape *x = shape_of(i, 0), *kernel = shape_of(i, 1);
  TRY(check_factors(i, dims));
  CHECK_THAT(x->rank >= 2 && kernel->rank == x->rank, INVALID, "A is %s but B is %s; equal ranks from 2 on are needed",
             SHAPE_STR(dims, x), SHAPE_STR(dims, kernel));
  uint32_t n = (uint32_t)x->rank - 2;
  TRY(shape_need_range(i, HLO_ATTR_STRIDES, n, 1, DIM_MAX));
  TRY(shape_need_range(i, HLO_ATTR_LHS_DILATION, n, 1, DIM_MAX));
  TRY(shape_need_range(i, HLO_ATTR_RHS_DILATION, n, 1, DIM_MAX));
  CHECK_THAT(hlo_enum_name(HLO_KIND_LAYOUT, hlo_int(i, HLO_ATTR_LAYOUT)), INVALID, "the layout is unknown");
  return check_padding(i, n);
}

static status check_channels(const hlo_instr *i, dim_table *dims, dim channels) {
  const shape *kernel = shape_of(i, 1);
  int64_t groups = hlo_int(i, HLO_ATTR_GROUPS);
  CHECK_THAT(groups >= 1 && groups <= DIM_MAX, INVALID, "groups is %" PRId64, groups);
  TRY(mismatch(dims, i,
               shape_need_equal(dims, "input channels", -1, channels, dim_mul(dims, kernel->dims[1], groups))));
  CHECK_THAT(dim_is_const(kernel->dims[0]) || groups == 1, STATUS_UNSUPPORTED,
             "B is %s; with groups the number of output channels must be a constant", SHAPE_STR(dims, kernel));
  CHECK_THAT(groups == 1 || kernel->dims[0] % groups == 0, INVALID,
             "B is %s; %" PRId64 " groups do not divide its outputs", SHAPE_STR(dims, kernel), groups);
  return NULL;
}

/* Computes the result's extent along spatial dimension k; x is the operand's extent along it. */
static status conv_extent(const hlo_instr *i, dim_table *dims, int k, dim x, dim *out) {
  const shape *kernel = shape_of(i, 1);
  dim size = kernel->dims[2 + k];
  CHECK_THAT(dim_is_const(size), STATUS_UNSUPPORTED, "B is %s; the extents of a kernel must be constants",
             SHAPE_STR(dims, kernel));
  CHECK_THAT(size >= 1, INVALID, "B is %s; a kernel must not be empty", SHAPE_STR(dims, kernel));
  dim holes = shape_pad_dim(dims, x, 0, 0, hlo_ints(i, HLO_ATTR_LHS_DILATION)[k] - 1);
  CHECK_THAT(holes != DIM_OVERFLOW, INVALID, "lhs_dilation[%d] is too large", k);
  *out = padded_window_dim(dims, holes, hlo_ints(i, HLO_ATTR_LOW)[k], hlo_ints(i, HLO_ATTR_HIGH)[k], size,
                           hlo_ints(i, HLO_ATTR_RHS_DILATION)[k], hlo_ints(i, HLO_ATTR_STRIDES)[k]);
  return NULL;
}

status hlo_shape_convolution(const hlo_instr *i, dim_table *dims, shape *results) {
  const shape *x = shape_of(i, 0), *kernel = shape_of(i, 1);
  TRY(check_conv_lists(i, dims));
  bool first = hlo_int(i, HLO_ATTR_LAYOUT) == HLO_CHANNELS_FIRST;
  int channel = first ? 1 : x->rank - 1, spatial = first ? 2 : 1;
  TRY(check_channels(i, dims, x->dims[channel]));
  results[0] = shape_with_type(*x, sum_type(i));
  results[0].dims[channel] = kernel->dims[0];
  for (int k = 0; k < x->rank - 2; k++) {
    TRY(conv_extent(i, dims, k, x->dims[spatial + k], &results[0].dims[spatial + k]));
  }
  return shape_finish(i, &results[0]);
}
