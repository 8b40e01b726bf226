/* select.c - NonZero, Compress and Unique (select.h), the sizes of whose results depend on data (sizes.h). */
#include "frontend/ops/math/select.h"

#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/import_helpers.h"
#include "frontend/import/sizes.h"
#include "frontend/import/symbolic.h"
#include "hlo/analysis/queries.h"
#include "hlo/ir/fold_sizes.h"

#define INVALID STATUS_INVALID_MODEL

/* --- lists --- */

static hlo_value s64(hlo_builder *b, int64_t value) { return hlo_scalar_int(b, DTYPE_S64, value); }

static shape list_of(dtype type, dim n) { return shape_make(type, 1, &n); }

static dim length(hlo_value list) { return hlo_shape(list)->dims[0]; }

/* Returns a copy of the array `to` in which, for each k, the reducer has combined the element at position at[k] with
 * values[k].  Positions outside of the array are skipped. */
static hlo_value scatter_list(hlo_builder *b, hlo_value to, hlo_value at, hlo_value values, hlo_reducer r) {
  static const int64_t zero = 0;
  const hlo_gather_dims d = {.n_collapsed = 1, .collapsed = &zero, .n_map = 1, .map = &zero, .index_vector_dim = 1};
  at = hlo_reshape(b, at, 2, (dim[]){length(at), 1});
  return hlo_scatter(b, to, at, values, &d, r);
}

/* Gathers x's elements at the positions in the list along the axis.  An empty list gives an empty result, even if x is
 * empty too. */
static hlo_value take(hlo_builder *b, hlo_value x, hlo_value list, int64_t axis) {
  return length(list) == 0 ? hlo_slice_dim(b, x, axis, 0, 0) : hlo_take(b, x, list, axis);
}

/* The positions of a mask's true elements, in ascending order, and their number. */
typedef struct positions {
  hlo_value list;  /* s64[length of the mask]; the elements after the first `count` are 0 */
  hlo_value count; /* s64[] */
} positions;

static bool is_true(hlo_value mask) { return mask.def && hlo_is_splat(hlo_before_reshapes(mask), 1); }

/* Returns which elements of x are not 0.  Exporters write positions as NonZero of ones, so that case is seen here. */
static hlo_value find_non_zero(hlo_builder *b, hlo_value x) {
  shape s = *hlo_shape(x);
  if (x.def && hlo_is_splat(x, 1)) {
    s.type = DTYPE_PRED;
    return hlo_splat(b, s, 1);
  }
  return s.type == DTYPE_PRED ? x : hlo_compare(b, HLO_NE, x, hlo_like(b, x, 0));
}

static positions find_positions(hlo_builder *b, hlo_value mask) {
  static const int64_t zero = 0;
  dim n = length(mask);
  if (is_true(mask)) {
    return (positions){hlo_iota(b, list_of(DTYPE_S64, n), 0), hlo_sizes(b, DTYPE_S64, -1, &n)};
  }
  hlo_value one = hlo_convert(b, mask, DTYPE_S64), nowhere = onnx_dim_like(b, one, n);
  hlo_value before = hlo_cumulative(b, one, HLO_REDUCE_ADD, 0, true, false);
  hlo_value to = hlo_select(b, mask, before, nowhere);
  hlo_value from = hlo_iota(b, list_of(DTYPE_S64, n), 0);
  return (positions){scatter_list(b, hlo_splat(b, list_of(DTYPE_S64, n), 0), to, from, HLO_REDUCE_REPLACE),
                     hlo_reduce(b, one, HLO_REDUCE_ADD, 1, &zero)};
}

/* Returns the first `size` elements of v along the axis: a slice of v if `size` is a constant or computed from sizes,
 * otherwise v itself with a dynamic dimension (sizes.h). */
static hlo_value dynamic_result(onnx_node *n, hlo_value v, int axis, hlo_value size) {
  dim known[HLO_MAX_SIZES];
  if (!n->b->error && hlo_sizes_of(size, known) == 1) {
    return hlo_slice_dim(n->b, v, axis, 0, known[0]);
  }
  onnx_dynamic_dim_set(n->scope->importer, v, axis, size);
  return v;
}

static hlo_value flat(hlo_builder *b, hlo_value x) {
  const shape *s = hlo_shape(x);
  return x.def ? hlo_reshape(b, x, 1, (dim[]){shape_dim_product(b->computation->module->dims, s, 0, s->rank)}) : x;
}

/* --- NonZero --- */

/* Divides positions by an extent, or takes their remainders.  If the extent is 0, there are no positions, and
 * any divisor will do. */
static hlo_value divided(hlo_builder *b, hlo_op op, hlo_value list, dim extent) {
  return onnx_binary_dim(b, op, list, extent == 0 ? 1 : extent);
}

/* The result is [rank, count]; column j has the index of the j-th element that is not 0. */
status onnx_import_non_zero(onnx_node *n) {
  hlo_builder *b = n->b;
  hlo_value x = n->in[0], rows[SHAPE_MAX_RANK];
  const shape *s = hlo_shape(x);
  CHECK_THAT(s->type != DTYPE_STR, STATUS_UNSUPPORTED, "X is %s", SHAPE_STR(onnx_dims(n), s));
  positions p = find_positions(b, flat(b, find_non_zero(b, x)));
  dim total = shape_dim_product(onnx_dims(n), s, 0, s->rank);
  for (int d = 0; d < s->rank; d++) {
    hlo_value row = divided(b, HLO_DIV, p.list, shape_dim_product(onnx_dims(n), s, d + 1, s->rank));
    row = d == 0 ? row : divided(b, HLO_REM, row, s->dims[d]);
    rows[d] = hlo_reshape(b, row, 2, (dim[]){1, total});
  }
  hlo_value all = s->rank ? hlo_concatenate(b, (uint32_t)s->rank, rows, 0)
                          : hlo_splat(b, shape_make(DTYPE_S64, 2, (dim[]){0, total}), 0);
  n->out[0] = dynamic_result(n, all, 1, p.count);
  return NULL;
}

/* --- Compress --- */

status onnx_import_compress(onnx_node *n) {
  hlo_builder *b = n->b;
  hlo_value x = n->in[0], condition = n->in[1];
  int64_t axis = 0;
  if (onnx_attr_has(n->proto, "axis")) {
    TRY(onnx_axis_attr(n, 0, hlo_rank(x), &axis));
  } else { /* Paddle's exporter writes conditions with the input's shape; ONNX Runtime flattens them, too */
    x = flat(b, x);
    condition = flat(b, condition);
  }
  const shape *s = hlo_shape(condition);
  CHECK_THAT(s->type == DTYPE_PRED && s->rank == 1, INVALID, "condition is %s; a list of pred is required",
             SHAPE_STR(onnx_dims(n), s));
  dim_table *t = onnx_dims(n);
  dim extent = hlo_shape(x)->dims[axis];
  if (!dim_at_most(t, s->dims[0], extent)) { /* the rest of a longer condition is ignored, as ONNX Runtime does */
    condition = hlo_slice_dim(b, condition, 0, 0, extent);
  }
  positions p = find_positions(b, condition);
  n->out[0] = dynamic_result(n, take(b, x, p.list, axis), (int)axis, p.count);
  return NULL;
}

/* --- Unique --- */

/* Transposes a matrix of rows to [columns, rows], in a type that HLO's sort accepts.  A column of complex numbers
 * becomes two, the real parts first. */
static hlo_value sort_keys(hlo_builder *b, hlo_value rows) {
  dim count = hlo_shape(rows)->dims[0], width = hlo_shape(rows)->dims[1];
  if (dtype_is_complex(hlo_type(rows))) {
    hlo_value parts[] = {hlo_unary(b, HLO_REAL, rows), hlo_unary(b, HLO_IMAG, rows)};
    for (int k = 0; k < 2; k++) {
      parts[k] = hlo_reshape(b, parts[k], 3, (dim[]){count, width, 1});
    }
    dim both = dim_mul(b->computation->module->dims, width, 2);
    rows = hlo_reshape(b, hlo_concatenate(b, 2, parts, 2), 2, (dim[]){count, both});
  }
  rows = hlo_type(rows) == DTYPE_PRED ? hlo_convert(b, rows, DTYPE_U8) : rows;
  return hlo_transpose(b, rows, (int64_t[]){1, 0});
}

/* Makes one step of sort_rows: sorts the row numbers in `order` by one column of the keys; the sort is stable. */
static hlo_value sort_by(hlo_builder *b, hlo_value keys, hlo_value column, hlo_value order) {
  hlo_value out[2], starts[] = {hlo_reshape(b, column, 1, (dim[]){1}), hlo_s64s(b, (int64_t[]){0}, 1)};
  dim count = length(order);
  hlo_value key = hlo_dynamic_slice(b, keys, hlo_concatenate(b, 2, starts, 0), (dim[]){1, count});
  key = take(b, hlo_reshape(b, key, 1, &count), order, 0);
  hlo_sort(b, 2, (hlo_value[]){key, order}, 0, false, out);
  return out[1];
}

/* Returns the row numbers of a matrix in lexicographic order of its rows, of which there is at least one; `keys` is the
 * transposed matrix (sort_keys).  A `while` over the columns makes a stable sort by each column, from the last to the
 * first. */
static hlo_value sort_rows(hlo_builder *b, hlo_value keys) {
  dim columns = hlo_shape(keys)->dims[0], count = hlo_shape(keys)->dims[1];
  hlo_value order = hlo_iota(b, list_of(DTYPE_S64, count), 0);
  if (columns == 0 || b->error) {
    return order;
  }
  if (dim_equal(b->computation->module->dims, columns, 1)) {
    return sort_by(b, keys, s64(b, 0), order);
  }
  hlo_value init[] = {onnx_of_dim(b, DTYPE_S64, columns, 1, -1), order, keys}, out[3], in[3], go;
  hlo_builder condition = hlo_builder_inner(b, "unique_condition"), body = hlo_builder_inner(b, "unique_column");
  for (int k = 0; k < 3; k++) {
    hlo_value c = hlo_result(hlo_parameter(condition.computation, *hlo_shape(init[k])), 0);
    in[k] = hlo_result(hlo_parameter(body.computation, *hlo_shape(init[k])), 0);
    go = k == 0 ? c : go;
  }
  go = hlo_compare(&condition, HLO_GE, go, s64(&condition, 0));
  hlo_set_roots(condition.computation, 1, &go);
  hlo_value next[] = {hlo_binary(&body, HLO_SUB, in[0], s64(&body, 1)), sort_by(&body, in[2], in[0], in[1]), in[2]};
  hlo_set_roots(body.computation, 3, next);
  hlo_fail(b, hlo_builder_take_error(&condition));
  hlo_fail(b, hlo_builder_take_error(&body));
  hlo_while(b, condition.computation, body.computation, 3, init, out);
  return b->error ? order : out[1];
}

/* Returns for each row, in sorted order, whether it differs from the row before. */
static hlo_value group_starts(hlo_builder *b, hlo_value keys, hlo_value order, bool nan_once) {
  static const int64_t zero = 0;
  dim columns = hlo_shape(keys)->dims[0], count = hlo_shape(keys)->dims[1];
  dim others = dim_add_const(b->computation->module->dims, count, -1);
  hlo_value sorted = take(b, keys, order, 1);
  hlo_value x = hlo_slice_dim(b, sorted, 1, 0, others), y = hlo_slice_dim(b, sorted, 1, 1, count);
  hlo_value differ = hlo_compare(b, HLO_NE, x, y);
  if (nan_once && dtype_is_float(hlo_type(x))) {
    hlo_value nan = hlo_binary(b, HLO_AND, hlo_compare(b, HLO_NE, x, x), hlo_compare(b, HLO_NE, y, y));
    differ = hlo_binary(b, HLO_AND, differ, hlo_unary(b, HLO_NOT, nan));
  }
  differ = columns ? hlo_reduce(b, differ, HLO_REDUCE_OR, 1, &zero) : hlo_splat(b, list_of(DTYPE_PRED, others), 0);
  hlo_value parts[] = {hlo_splat(b, list_of(DTYPE_PRED, 1), 1), differ};
  return hlo_concatenate(b, 2, parts, 0);
}

/* The groups of equal rows.  Of `first` and `counts` only the first n elements are valid. */
typedef struct groups {
  hlo_value n;       /* the number of groups, s64[] */
  hlo_value first;   /* for each group: the number of its first row */
  hlo_value counts;  /* for each group: the number of its rows */
  hlo_value inverse; /* for each row: the number of its group */
} groups;

static groups group_rows(hlo_builder *b, hlo_value keys, bool nan_once) {
  dim count = hlo_shape(keys)->dims[1];
  hlo_value order = sort_rows(b, keys), starts = group_starts(b, keys, order, nan_once);
  hlo_value zeros = hlo_splat(b, list_of(DTYPE_S64, count), 0);
  hlo_value number = hlo_cumulative(b, hlo_convert(b, starts, DTYPE_S64), HLO_REDUCE_ADD, 0, false, false);
  number = onnx_binary_scalar(b, HLO_SUB, number, 1);
  positions p = find_positions(b, starts);
  return (groups){p.count, take(b, order, p.list, 0),
                  scatter_list(b, zeros, number, hlo_like(b, zeros, 1), HLO_REDUCE_ADD),
                  scatter_list(b, zeros, order, number, HLO_REDUCE_REPLACE)};
}

/* Reorders the groups by the numbers of their first rows. */
static groups by_first(hlo_builder *b, groups g) {
  dim count = length(g.first);
  hlo_value out[2], index = hlo_iota(b, list_of(DTYPE_S64, count), 0);
  hlo_value n = hlo_broadcast(b, g.n, list_of(DTYPE_S64, count), NULL);
  hlo_value key = hlo_select(b, hlo_compare(b, HLO_LT, index, n), g.first, onnx_dim_like(b, index, count));
  hlo_sort(b, 2, (hlo_value[]){key, index}, 0, false, out);
  hlo_value number = scatter_list(b, hlo_like(b, index, 0), out[1], index, HLO_REDUCE_REPLACE);
  return (groups){g.n, out[0], take(b, g.counts, out[1], 0), take(b, number, g.inverse, 0)};
}

/* Returns x as a matrix with one row for each index of the axis. */
static hlo_value rows_of(hlo_builder *b, hlo_value x, int64_t axis) {
  const shape *s = hlo_shape(x);
  dim_table *t = b->computation->module->dims;
  int64_t front[SHAPE_MAX_RANK] = {axis};
  dim width = 1;
  for (int k = 0, next = 1; k < s->rank; k++) {
    if (k != axis) {
      front[next++] = k;
      width = dim_mul(t, width, s->dims[k]);
    }
  }
  return hlo_reshape(b, hlo_transpose(b, x, front), 2, (dim[]){s->dims[axis], width});
}

status onnx_unique(onnx_node *n, hlo_value x, int64_t axis, onnx_unique_options o, hlo_value out[4]) {
  hlo_builder *b = n->b;
  CHECK_THAT(hlo_type(x) != DTYPE_STR, STATUS_UNSUPPORTED, "X is %s", SHAPE_STR(onnx_dims(n), hlo_shape(x)));
  if (!dim_at_most(onnx_dims(n), 1, hlo_shape(x)->dims[axis])) {
    out[0] = x;
    for (int k = 1; k < 4; k++) {
      out[k] = hlo_splat(b, list_of(DTYPE_S64, 0), 0);
    }
    return NULL;
  }
  groups g = group_rows(b, sort_keys(b, rows_of(b, x, axis)), o.nan_once);
  g = o.sorted ? g : by_first(b, g);
  out[0] = dynamic_result(n, take(b, x, g.first, axis), (int)axis, g.n);
  out[1] = dynamic_result(n, g.first, 0, g.n);
  out[2] = g.inverse;
  out[3] = dynamic_result(n, g.counts, 0, g.n);
  return NULL;
}

status onnx_import_unique(onnx_node *n) {
  hlo_value x = n->in[0];
  int64_t axis = 0;
  onnx_unique_options o = {.nan_once = true};
  TRY(onnx_attr_bool(n->proto, "sorted", true, &o.sorted));
  if (onnx_attr_has(n->proto, "axis")) {
    TRY(onnx_axis_attr(n, 0, hlo_rank(x), &axis));
  } else {
    x = flat(n->b, x);
  }
  return onnx_unique(n, x, axis, o, n->out);
}
