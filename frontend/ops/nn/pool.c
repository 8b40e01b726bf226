/* pool.c - the importers of AveragePool, MaxPool, LpPool, their global forms, and MaxUnpool. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/import_helpers.h"
#include "frontend/import/symbolic.h"

/* A pooling operator.  The members from `window` on are the attributes of HLO's reduce-window; their first two entries
 * are those for batch and channels. */
typedef struct pool {
  onnx_window w; /* the attributes of the node */
  int rank;
  bool ceil_mode; /* false for auto_pad SAME, which says how many positions there are */
  /* spatial extents, of which in[k] differs from given[k] if auto_pad has padded the input itself (onnx_pad_same) */
  dim given[SHAPE_MAX_RANK], in[SHAPE_MAX_RANK], out[SHAPE_MAX_RANK];
  int64_t beyond[SHAPE_MAX_RANK]; /* the padding after the input; with ceil_mode it reaches at least to the end of the
                                     last window */
  int64_t window[SHAPE_MAX_RANK], strides[SHAPE_MAX_RANK], low[SHAPE_MAX_RANK], high[SHAPE_MAX_RANK],
      dilation[SHAPE_MAX_RANK];
} pool;

/* Returns by how much the padded input is larger than the dilated window in dimension k. */
static dim room_of(dim_table *t, const onnx_window *w, int k, dim in) {
  return dim_signed_add(t, in, dim_signed_const(t, w->low[k] + w->high[k] - onnx_window_extent(w, k)));
}

/* Returns the number of positions of the window in dimension k, whose padding after the input is `high`. */
static dim positions(dim_table *t, const onnx_window *w, int k, dim in, int64_t high) {
  dim room = dim_signed_add(t, room_of(t, w, k, in), high - w->high[k]);
  return dim_add_const(t, dim_floordiv(t, room, w->strides[k]), 1);
}

/* Returns the padding after the input in dimension k with ceil_mode.  The window at the last position may extend beyond
 * the padding, by less than a stride, but it must start within the input or the padding before it. */
static int64_t ceil_padding(const onnx_window *w, int k) {
  int64_t beyond = w->high[k] + w->strides[k] - 1, of_last = onnx_window_extent(w, k) - 1;
  return beyond < of_last ? beyond : of_last;
}

/* Returns an error if the window has no position.  With ceil_mode the kernel may exceed the padded input by less than a
 * stride, if the window starts within the input or the padding before it. */
static status window_fits(const onnx_node *n, const onnx_window *w, const dim *in, bool ceil_mode) {
  dim_table *t = onnx_dims(n);
  dim enough[SHAPE_MAX_RANK];
  for (int k = 0; k < w->n; k++) {
    int64_t more = w->strides[k] - 1;
    bool starts = ceil_mode && dim_at_most(t, 1, dim_add_const(t, in[k], w->low[k])) &&
                  dim_at_most(t, 0, dim_signed_add(t, room_of(t, w, k, in[k]), more));
    enough[k] = starts ? dim_add_const(t, in[k], more) : in[k];
  }
  return onnx_window_fits(n, w, enough);
}

/* If the extent of the input is constant and the window has only one position in dimension k, removes from the window
 * those elements that lie after the input, since they contribute nothing. */
static void leave_out_cells(pool *p, int k) {
  if (!dim_is_const(p->in[k])) {
    return;
  }
  int64_t d = p->dilation[2 + k], cells = (p->in[k] + p->low[2 + k] + d - 1) / d;
  if (p->out[k] == 1 && cells > 0 && cells < p->window[2 + k]) {
    int64_t reach = (cells - 1) * d + 1 - p->in[k] - p->low[2 + k];
    p->window[2 + k] = cells;
    p->strides[2 + k] = p->in[k] + p->low[2 + k];
    p->high[2 + k] = reach > 0 ? reach : 0;
  }
}

/* If the extent of the input is constant, reduces the padding after the input to what the window at the last
 * position reaches. */
static void leave_out_padding(pool *p, int k) {
  if (dim_is_const(p->in[k])) {
    int64_t reach = (p->out[k] - 1) * p->w.strides[k] + onnx_window_extent(&p->w, k) - p->in[k] - p->w.low[k];
    p->high[2 + k] = reach > 0 ? reach : 0;
  }
}

/* Reads a pooling of *x, which auto_pad may pad by `fill` (onnx_pad_same). */
static status read_pool(const onnx_node *n, hlo_value fill, hlo_value *x, pool *p) {
  dim_table *t = onnx_dims(n);
  TRY(onnx_need_rank(n, 0, "X", 3, SHAPE_MAX_RANK));
  p->rank = hlo_rank(*x);
  TRY(onnx_read_window(n, p->rank - 2, NULL, &p->w));
  TRY(onnx_attr_bool(n->proto, "ceil_mode", false, &p->ceil_mode));
  p->ceil_mode &= !onnx_window_is_same(&p->w);
  memcpy(p->given, hlo_shape(*x)->dims + 2, (size_t)p->w.n * sizeof *p->in);
  *x = onnx_pad_same(n, &p->w, *x, fill);
  memcpy(p->in, hlo_shape(*x)->dims + 2, (size_t)p->w.n * sizeof *p->in);
  TRY(window_fits(n, &p->w, p->in, p->ceil_mode));
  for (int k = 0; k < 2; k++) {
    p->window[k] = p->strides[k] = p->dilation[k] = 1;
    p->low[k] = p->high[k] = 0;
  }
  for (int k = 0; k < p->w.n; k++) {
    p->high[2 + k] = p->ceil_mode ? ceil_padding(&p->w, k) : p->w.high[k];
    p->out[k] = positions(t, &p->w, k, p->in[k], p->high[2 + k]);
    p->window[2 + k] = p->w.kernel[k];
    p->strides[2 + k] = p->w.strides[k];
    p->dilation[2 + k] = p->w.dilations[k];
    p->low[2 + k] = p->w.low[k];
    if (p->ceil_mode) {
      leave_out_padding(p, k);
    }
    p->beyond[k] = p->high[2 + k];
    leave_out_cells(p, k);
  }
  return NULL;
}

/* Returns true if the pooling is global: ceil_mode allows a kernel that is larger than the input, and there is one
 * window, which begins with the input.  Some networks say so with a kernel as large as their number of channels.  For
 * open extents, guards state it, so it must not depend on a chance: the kernel must be much larger. */
static bool is_global(const onnx_node *n, const pool *p) {
  enum { MUCH = 8 };
  dim_table *t = onnx_dims(n);
  bool global = p->ceil_mode;
  for (int k = 0; k < p->w.n && global; k++) {
    int64_t extent;
    global = p->w.low[k] == 0 && p->w.high[k] == 0 && p->w.dilations[k] == 1 && dim_hint(t, p->in[k], &extent) &&
             extent <= p->w.kernel[k] / MUCH;
  }
  for (int k = 0; k < p->w.n && global; k++) {
    global = dim_at_most(t, 1, p->in[k]) && dim_at_most(t, p->in[k], p->w.kernel[k]);
  }
  return global;
}

static hlo_window window_of(const pool *p) {
  return (hlo_window){
      .window = p->window, .strides = p->strides, .low = p->low, .high = p->high, .dilation = p->dilation};
}

/* --- average --- */

/* Returns for each window position in dimension k the number of elements that count for the average, as an array of the
 * type.  Elements in the padding count if include_pad is set; elements that ceil_mode adds after the padding never
 * count. */
static hlo_value cell_counts(const onnx_node *n, const pool *p, int k, bool include_pad, dtype type) {
  const onnx_window *w = &p->w;
  int64_t more = include_pad ? w->low[k] + w->high[k] : 0;
  dim counted = dim_add_const(onnx_dims(n), include_pad ? p->in[k] : p->given[k], more);
  int64_t low = include_pad ? 0 : w->low[k], high = p->beyond[k] - (include_pad ? w->high[k] : 0);
  hlo_window window = {
      .window = &w->kernel[k], .strides = &w->strides[k], .low = &low, .high = &high, .dilation = &w->dilations[k]};
  hlo_value ones = hlo_splat(n->b, shape_make(type, 1, &counted), 1);
  if (p->in[k] != p->given[k] && !include_pad) {
    ones = onnx_pad_open_same(n, w, k, ones, 0, hlo_scalar(n->b, type, 0));
  }
  if (high < 0) { /* the last window ends before the padding does */
    ones = hlo_slice_dim(n->b, ones, 0, 0, dim_add_const(onnx_dims(n), counted, high));
    high = 0;
  }
  return hlo_reduce_window(n->b, ones, HLO_REDUCE_ADD, &window);
}

status onnx_import_average_pool(onnx_node *n) {
  hlo_builder *b = n->b;
  pool p;
  hlo_value x = n->in[0];
  bool include_pad = false;
  TRY(read_pool(n, hlo_scalar(b, hlo_type(x), 0), &x, &p));
  if (is_global(n, &p)) {
    return onnx_import_global_average_pool(n);
  }
  TRY(onnx_attr_bool(n->proto, "count_include_pad", false, &include_pad));
  hlo_window w = window_of(&p);
  hlo_value sum = hlo_reduce_window(b, onnx_widen(b, x), HLO_REDUCE_ADD, &w);
  if (n->b->error) {
    return NULL;
  }
  double whole = 1;
  bool uniform = true;
  for (int k = 0; k < p.w.n; k++) {
    whole *= (double)p.w.kernel[k];
    bool inside = p.low[2 + k] == 0 && p.beyond[k] == 0 && p.in[k] == p.given[k];
    uniform &= p.beyond[k] <= p.w.high[k] && (include_pad || inside);
  }
  hlo_value count = hlo_like(b, sum, uniform ? whole : 1);
  for (int k = 0; k < p.w.n && !uniform; k++) {
    hlo_value c = cell_counts(n, &p, k, include_pad, hlo_type(sum));
    count = hlo_binary(b, HLO_MUL, count, hlo_broadcast(b, c, *hlo_shape(sum), (int64_t[]){2 + k}));
  }
  n->out[0] = hlo_convert(b, hlo_binary(b, HLO_DIV, sum, count), hlo_type(n->in[0]));
  return NULL;
}

/* --- maximum --- */

/* Converts row-major indices into [N, C, spatial...] to indices whose spatial part is column-major, that is, the first
 * spatial dimension varies fastest. */
static hlo_value column_major(const onnx_node *n, const pool *p, hlo_value index) {
  hlo_builder *b = n->b;
  int64_t plane = 1, factor = 1;
  for (int k = 0; k < p->w.n; k++) {
    plane *= p->in[k];
  }
  hlo_value rest = hlo_binary(b, HLO_REM, index, hlo_like(b, index, (double)plane));
  hlo_value result = hlo_binary(b, HLO_SUB, index, rest);
  for (int k = 0; k < p->w.n; k++) {
    plane /= p->in[k];
    hlo_value unit = hlo_like(b, index, (double)plane);
    hlo_value coordinate = hlo_binary(b, HLO_DIV, rest, unit);
    rest = hlo_binary(b, HLO_REM, rest, unit);
    result = hlo_binary(b, HLO_ADD, result, onnx_times(b, coordinate, (double)factor));
    factor *= p->in[k];
  }
  return result;
}

status onnx_import_max_pool(onnx_node *n) {
  pool p;
  hlo_value x = n->in[0], none = {0};
  bool columns;
  dtype type = hlo_type(x);
  double lowest = dtype_is_float(type) ? -INFINITY : dtype_lowest_f64(type);
  /* indices count in X without padding */
  TRY(read_pool(n, onnx_has_out(n, 1) ? none : hlo_scalar(n->b, type, lowest), &x, &p));
  if (!onnx_has_out(n, 1) && is_global(n, &p)) {
    return onnx_import_global_max_pool(n);
  }
  TRY(onnx_attr_bool(n->proto, "storage_order", false, &columns));
  hlo_window w = window_of(&p);
  n->out[0] = hlo_reduce_window(n->b, x, HLO_REDUCE_MAX, &w);
  if (onnx_has_out(n, 1)) {
    hlo_value index = hlo_arg_reduce_window(n->b, n->in[0], &w);
    if (columns) {
      TRY(onnx_need_constant_dims(n, 0, "X"));
    }
    n->out[1] = columns && !shape_is_empty(onnx_in_shape(n, 0)) ? column_major(n, &p, index) : index;
  }
  return NULL;
}

/* Scatters the elements of X to the output; the input I has for each of them the row-major index in the output. */
status onnx_import_max_unpool(onnx_node *n) {
  hlo_builder *b = n->b;
  const shape *x = onnx_in_shape(n, 0);
  TRY(onnx_need_rank(n, 0, "X", 3, SHAPE_MAX_RANK));
  TRY(onnx_need_dims(n, 1, "I", x->rank, x->dims));
  onnx_window w;
  TRY(onnx_read_window(n, x->rank - 2, NULL, &w));
  dim_table *t = onnx_dims(n);
  shape s = *x;
  for (int k = 0; k < w.n; k++) {
    CHECK_THAT(x->dims[2 + k] <= DIM_MAX / w.strides[k], STATUS_INVALID_MODEL,
               "X is %s; times stride %" PRId64 " it overflows", SHAPE_STR(onnx_dims(n), x), w.strides[k]);
    int64_t more = w.kernel[k] - w.strides[k] - w.low[k] - w.high[k];
    s.dims[2 + k] = dim_signed_add(t, dim_mul(t, x->dims[2 + k], w.strides[k]), dim_signed_const(t, more));
    CHECK_THAT(dim_at_most(t, 0, s.dims[2 + k]), STATUS_INVALID_MODEL, "spatial dimension %d of the output is %s", k,
               dim_print(n->arena, t, s.dims[2 + k]));
  }
  TRY(shape_check(&s, "the output"));
  dim total = shape_dim_product(t, &s, 0, s.rank), count = shape_dim_product(t, x, 0, x->rank);
  shape flat = shape_make((dtype)s.type, 1, &total);
  TRY(onnx_check_below(n, n->in[1], "I", total));
  hlo_value index = hlo_reshape(b, hlo_convert(b, n->in[1], DTYPE_S64), 2, (dim[]){count, 1});
  hlo_gather_dims d = {
      .n_collapsed = 1, .collapsed = (int64_t[]){0}, .n_map = 1, .map = (int64_t[]){0}, .index_vector_dim = 1};
  hlo_value y =
      hlo_scatter(b, hlo_splat(b, flat, 0), index, hlo_reshape(b, n->in[0], 1, &count), &d, HLO_REDUCE_REPLACE);
  y = hlo_reshape(b, y, s.rank, s.dims);
  if (onnx_has_in(n, 2)) {
    const int64_t *wanted;
    int64_t entries, high[SHAPE_MAX_RANK], low[SHAPE_MAX_RANK] = {0};
    TRY(onnx_need_constant_dims(n, 0, "X"));
    TRY(onnx_const_ints(n, 2, "output_shape", &wanted, &entries));
    CHECK_THAT(entries == s.rank, STATUS_INVALID_MODEL, "output_shape has %" PRId64 " entries instead of %d", entries,
               s.rank);
    for (int k = 0; k < s.rank; k++) {
      CHECK_THAT(wanted[k] >= s.dims[k] && wanted[k] <= DIM_MAX, STATUS_INVALID_MODEL,
                 "output_shape[%d] is %" PRId64 ", less than the %" PRId64 " that the pooling gives", k, wanted[k],
                 s.dims[k]);
      high[k] = wanted[k] - s.dims[k];
    }
    y = hlo_pad(b, y, hlo_scalar(b, hlo_type(y), 0), low, high, NULL);
  }
  n->out[0] = y;
  return NULL;
}

/* --- Lp --- */

/* Reads the attribute p, which is a float in version 1 and an integer in later versions. */
static status read_p(const onnx_node *n, double *p) {
  if (n->since == 1) {
    float value;
    TRY(onnx_attr_float(n->proto, "p", 2, &value));
    *p = value;
  } else {
    int64_t value;
    TRY(onnx_attr_int(n->proto, "p", 2, &value));
    *p = (double)value;
  }
  CHECK_THAT(isfinite(*p) && *p > 0, STATUS_INVALID_MODEL, "p is %g; it must be positive", *p);
  return NULL;
}

static hlo_value raised(hlo_builder *b, hlo_value x, double p) {
  if (p == 2) {
    return hlo_binary(b, HLO_MUL, x, x);
  }
  x = hlo_unary(b, HLO_ABS, x);
  return p == 1 ? x : hlo_binary(b, HLO_POW, x, hlo_like(b, x, p));
}

static hlo_value root(hlo_builder *b, hlo_value x, double p) {
  return p == 1 ? x : p == 2 ? hlo_unary(b, HLO_SQRT, x) : hlo_binary(b, HLO_POW, x, hlo_like(b, x, 1 / p));
}

status onnx_import_lp_pool(onnx_node *n) {
  hlo_builder *b = n->b;
  pool q;
  double p;
  hlo_value x = n->in[0];
  TRY(read_pool(n, hlo_scalar(b, hlo_type(x), 0), &x, &q));
  if (is_global(n, &q)) {
    return onnx_import_global_lp_pool(n);
  }
  TRY(read_p(n, &p));
  hlo_window w = window_of(&q);
  hlo_value sum = hlo_reduce_window(b, raised(b, onnx_widen(b, x), p), HLO_REDUCE_ADD, &w);
  n->out[0] = hlo_convert(b, root(b, sum, p), hlo_type(n->in[0]));
  return NULL;
}

/* --- global: over all spatial dimensions, which stay with extent 1 --- */

static status spatial_dims(const onnx_node *n, uint32_t *count, int64_t *dims) {
  TRY(onnx_need_rank(n, 0, "X", 2, SHAPE_MAX_RANK));
  *count = 0;
  for (int k = 2; k < onnx_in_shape(n, 0)->rank; k++) {
    dims[(*count)++] = k;
  }
  return NULL;
}

status onnx_import_global_average_pool(onnx_node *n) {
  uint32_t count;
  int64_t dims[SHAPE_MAX_RANK];
  TRY(spatial_dims(n, &count, dims));
  hlo_value mean = onnx_mean_keep(n->b, onnx_widen(n->b, n->in[0]), count, dims);
  n->out[0] = hlo_convert(n->b, mean, hlo_type(n->in[0]));
  return NULL;
}

status onnx_import_global_max_pool(onnx_node *n) {
  uint32_t count;
  int64_t dims[SHAPE_MAX_RANK];
  TRY(spatial_dims(n, &count, dims));
  n->out[0] = onnx_reduce_keep(n->b, n->in[0], HLO_REDUCE_MAX, count, dims);
  return NULL;
}

status onnx_import_global_lp_pool(onnx_node *n) {
  hlo_builder *b = n->b;
  uint32_t count;
  int64_t dims[SHAPE_MAX_RANK];
  double p;
  TRY(spatial_dims(n, &count, dims));
  TRY(read_p(n, &p));
  hlo_value sum = onnx_reduce_keep(b, raised(b, onnx_widen(b, n->in[0]), p), HLO_REDUCE_ADD, count, dims);
  n->out[0] = hlo_convert(b, root(b, sum, p), hlo_type(n->in[0]));
  return NULL;
}
