/* import_sort.c - operators that order or look for elements: TopK, Unique, NonZero. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/import_common.h"

#define INVALID STATUS_INVALID_MODEL

/* Stable sorts in both directions put the lower of equal elements' indices first. */
status onnx_import_top_k(onnx_node *n) {
  hlo_value x = n->in[0], out[2];
  const shape *s = hlo_shape(x);
  int64_t axis, k;
  bool largest, sorted;
  TRY(onnx_axis_attr(n, -1, s->rank, &axis));
  TRY(onnx_attr_bool(n->proto, "largest", true, &largest));
  TRY(onnx_attr_bool(n->proto, "sorted", true, &sorted));
  if (n->since >= 10) {
    TRY(onnx_const_int(n, 1, "K", &k));
  } else {
    TRY(onnx_attr_required(n->proto, "k"));
    TRY(onnx_attr_int(n->proto, "k", 0, &k));
  }
  CHECK_THAT(k >= 0 && k <= s->dims[axis], INVALID,
             "K is %" PRId64 " but X is %s; axis %" PRId64 " has %" PRId64 " elements", k, SHAPE_STR(NULL, s),
             axis, s->dims[axis]);
  hlo_value both[] = {x, hlo_iota(n->b, shape_with_type(*s, DTYPE_S64), axis)};
  hlo_sort(n->b, 2, both, axis, largest, out);
  for (uint32_t j = 0; j < 2; j++) {
    n->out[j] = hlo_slice_dim(n->b, out[j], axis, 0, k);
  }
  return NULL;
}

/* Element k as real and imaginary part, where it is a float or complex. */
static bool number_parts(const literal *l, int64_t k, double *parts) {
  dtype type = (dtype)l->shape.type, part = type == DTYPE_C64 ? DTYPE_F32 : type == DTYPE_C128 ? DTYPE_F64 : type;
  const char *at = (const char *)l->data + (size_t)k * dtype_bytes(type);
  if (!dtype_is_float(part)) {
    return false;
  }
  parts[0] = dtype_load_f64(part, at);
  parts[1] = part == type ? 0 : dtype_load_f64(part, at + dtype_bytes(part));
  return true;
}

/* --- NonZero --- */

static bool is_zero(const literal *l, int64_t k) {
  size_t size = dtype_bytes(l->shape.type);
  const char *e = (const char *)l->data + (size_t)k * size;
  double parts[2];
  if (number_parts(l, k, parts)) {
    return parts[0] == 0 && parts[1] == 0;
  }
  return e[0] == 0 && memcmp(e, e + 1, size - 1) == 0;
}

/* [rank, count]: column j holds the position of the j-th element that is not 0. */
status onnx_import_non_zero(onnx_node *n) {
  const literal *l;
  TRY(onnx_const_literal(n, 0, "X", &l));
  const shape *s = &l->shape;
  CHECK_THAT(s->type != DTYPE_STR, STATUS_UNSUPPORTED, "X is %s", SHAPE_STR(NULL, s));
  int64_t total = shape_elements(s), count = 0, strides[SHAPE_MAX_RANK];
  int64_t *found = ARENA_NEW_N(n->arena, int64_t, (size_t)total);
  for (int64_t k = 0; k < total; k++) {
    if (!is_zero(l, k)) {
      found[count++] = k;
    }
  }
  shape_strides(s, strides);
  void *data;
  literal y = literal_new(n->arena, shape_make(DTYPE_S64, 2, (dim[]){s->rank, count}), &data);
  for (int d = 0; d < s->rank; d++) {
    for (int64_t j = 0; j < count; j++) {
      ((int64_t *)data)[d * count + j] = found[j] / strides[d] % s->dims[d];
    }
  }
  n->out[0] = hlo_constant(n->b, y);
  return NULL;
}

/* --- Unique --- */

/* The slices that are compared: a matrix of `count` rows of `length` elements, and where each came first. */
typedef struct unique_rows {
  const literal *rows;
  int64_t count, length;
} unique_rows;

/* NaN comes last. */
static int compare_numbers(double x, double y) {
  return x != x || y != y ? (x != x) - (y != y) : (x > y) - (x < y);
}

/* Complex numbers by their real parts first, as numpy orders them. */
static int compare_elements(const literal *l, int64_t i, int64_t j) {
  double p[2], q[2];
  if (number_parts(l, i, p) && number_parts(l, j, q)) {
    int c = compare_numbers(p[0], q[0]);
    return c ? c : compare_numbers(p[1], q[1]);
  }
  int64_t x = literal_i64(l, i), y = literal_i64(l, j);
  if (dtype_is_unsigned(l->shape.type)) {
    return ((uint64_t)x > (uint64_t)y) - ((uint64_t)x < (uint64_t)y);
  }
  return (x > y) - (x < y);
}

static int compare_rows(const unique_rows *u, int64_t i, int64_t j) {
  for (int64_t k = 0; k < u->length; k++) {
    int c = compare_elements(u->rows, i * u->length + k, j * u->length + k);
    if (c) {
      return c;
    }
  }
  return 0;
}

static int by_row(const void *a, const void *b, void *context) {
  int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
  int c = compare_rows(context, i, j);
  return c ? c : (i > j) - (i < j);
}

static int by_number(const void *a, const void *b, void *context) {
  (void)context;
  int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
  return (i > j) - (i < j);
}

/* What Unique says of its rows: all lists but `inverse` have n entries, one a unique row. */
typedef struct unique_groups {
  int64_t n;
  int64_t *first, *counts, *inverse;
} unique_groups;

/* Rows in order, equal ones grouped; groups in the order of their values, or of their first rows. */
static unique_groups group_rows(arena *a, unique_rows *u, bool sorted) {
  size_t count = (size_t)u->count;
  int64_t *order = ARENA_NEW_N(a, int64_t, count), *group_first = ARENA_NEW_N(a, int64_t, count);
  unique_groups g = {.first = ARENA_NEW_N(a, int64_t, count),
                     .counts = ARENA_NEW_N(a, int64_t, count),
                     .inverse = ARENA_NEW_N(a, int64_t, count)};
  for (int64_t k = 0; k < u->count; k++) {
    order[k] = k;
  }
  qsort_r(order, count, sizeof *order, by_row, u);
  for (int64_t k = 0; k < u->count; k++) { /* the first row of each row's group */
    bool same = k > 0 && compare_rows(u, order[k - 1], order[k]) == 0;
    group_first[order[k]] = same ? group_first[order[k - 1]] : order[k];
    if (!same) {
      g.first[g.n++] = order[k];
    }
  }
  if (!sorted) {
    qsort_r(g.first, (size_t)g.n, sizeof *g.first, by_number, NULL);
  }
  int64_t *number = order; /* of the group that starts at a row; its order is no longer needed */
  for (int64_t k = 0; k < g.n; k++) {
    number[g.first[k]] = k;
  }
  for (int64_t k = 0; k < u->count; k++) {
    g.inverse[k] = number[group_first[k]];
    g.counts[g.inverse[k]]++;
  }
  return g;
}

status onnx_import_unique(onnx_node *n) {
  hlo_builder *b = n->b;
  hlo_value x = n->in[0];
  int64_t axis = 0;
  bool sorted;
  const literal *rows;
  TRY(onnx_const_literal(n, 0, "X", &rows));
  TRY(onnx_attr_bool(n->proto, "sorted", true, &sorted));
  if (onnx_attr_has(n->proto, "axis")) {
    TRY(onnx_axis_attr(n, 0, hlo_rank(x), &axis));
  } else {
    x = hlo_reshape(b, x, 1, (dim[]){shape_elements(hlo_shape(x))});
  }
  CHECK_THAT(hlo_type(x) != DTYPE_STR, STATUS_UNSUPPORTED, "X is %s",
             SHAPE_STR(NULL, hlo_shape(x)));
  int64_t front[SHAPE_MAX_RANK] = {axis};
  for (int k = 0, next = 1; k < hlo_rank(x); k++) {
    if (k != axis) {
      front[next++] = k;
    }
  }
  rows = hlo_literal(hlo_transpose(b, x, front));
  CHECK_THAT(b->error || rows, STATUS_UNSUPPORTED, "X is %s; so large a constant is not supported",
             SHAPE_STR(NULL, hlo_shape(x)));
  if (!rows) {
    return NULL;
  }
  int64_t count = rows->shape.dims[0];
  unique_rows u = {rows, count, count ? shape_elements(&rows->shape) / count : 0};
  unique_groups g = group_rows(n->arena, &u, sorted);
  n->out[0] = onnx_take_known(b, x, axis, g.first, g.n);
  n->out[1] = hlo_s64s(b, g.first, g.n);
  n->out[2] = hlo_s64s(b, g.inverse, count);
  n->out[3] = hlo_s64s(b, g.counts, g.n);
  return NULL;
}
