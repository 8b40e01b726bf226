/* shape.c - operators that return or change shapes, such as Shape, Reshape, Transpose, Expand and Tile. */
#include <inttypes.h>
#include <string.h>

#include "frontend/import/import_common.h"
#include "base/dim/guard.h"
#include "frontend/import/sizes.h"
#include "frontend/import/symbolic.h"
#include "hlo/ir/fold_sizes.h"

#define INVALID STATUS_INVALID_MODEL

/* --- shapes as values --- */

/* Resolves a position that counts from the end if it is negative, and clamps it to [0, rank]. */
static int64_t clamp_position(int64_t p, int64_t rank) {
  p = p < 0 ? p + rank : p;
  return p < 0 ? 0 : p > rank ? rank : p;
}

status onnx_import_shape(onnx_node *n) {
  const shape *s = hlo_shape(n->in[0]);
  int64_t start, end;
  TRY(onnx_attr_int(n->proto, "start", 0, &start));
  TRY(onnx_attr_int(n->proto, "end", s->rank, &end));
  start = clamp_position(start, s->rank);
  end = clamp_position(end, s->rank);
  n->out[0] = hlo_sizes(n->b, DTYPE_S64, end > start ? (int)(end - start) : 0, s->dims + start);
  for (int64_t d = start; d < end; d++) {
    hlo_value size = onnx_dynamic_dim_get(n->scope->importer, n->in[0], (int)d);
    if (size.def) {
      hlo_value at = hlo_s64s(n->b, (int64_t[]){d - start}, 1);
      n->out[0] = hlo_dynamic_update_slice(n->b, n->out[0], hlo_reshape(n->b, size, 1, (dim[]){1}), at);
    }
  }
  return NULL;
}

status onnx_import_size(onnx_node *n) {
  const shape *s = hlo_shape(n->in[0]);
  n->out[0] = hlo_scalar_int(n->b, DTYPE_S64, 1);
  for (int d = 0; d < s->rank; d++) {
    hlo_value size = onnx_dynamic_dim_get(n->scope->importer, n->in[0], d);
    size = size.def ? size : hlo_sizes(n->b, DTYPE_S64, -1, &s->dims[d]);
    n->out[0] = hlo_binary(n->b, HLO_MUL, n->out[0], size);
  }
  return NULL;
}

/* --- reshapes --- */

/* Resolves the requested shape: a 0 copies the input's dimension unless `allowzero` is set, and one -1 stands for the
 * extent that gives the input's number of elements. */
static status reshape_dims(const onnx_node *n, const dim *want, int64_t rank, bool allowzero, dim *dims) {
  const shape *s = hlo_shape(n->in[0]);
  dim_table *t = onnx_dims(n);
  dim product = 1, elements = shape_dim_product(t, s, 0, s->rank);
  int64_t open = -1, value;
  for (int64_t k = 0; k < rank; k++) {
    dims[k] = want[k];
    if (!allowzero && (k >= s->rank || want[k] != s->dims[k]) && dim_equal(t, want[k], 0)) {
      CHECK_THAT(k < s->rank, INVALID, "shape[%" PRId64 "] is 0 but data is %s and has no such dimension", k,
                 SHAPE_STR(t, s));
      dims[k] = s->dims[k];
    }
    if (dim_at_most(t, 0, dims[k])) {
      product = dim_mul(t, product, dims[k]);
      CHECK_THAT(product != DIM_OVERFLOW, INVALID, "the product of shape overflows");
      continue;
    }
    bool known = dim_signed_value(t, dims[k], &value);
    CHECK_THAT(known && value == -1, INVALID, "shape[%" PRId64 "] is %s; only -1 may be negative", k,
               dim_print(n->arena, t, dims[k]));
    CHECK_THAT(open < 0, INVALID, "shape has -1 twice, at %" PRId64 " and %" PRId64, open, k);
    open = k;
  }
  if (open >= 0) {
    bool positive = dim_at_most(t, 1, product);
    dims[open] = positive ? dim_floordiv(t, elements, product) : 0;
    CHECK_THAT(positive && dim_equal(t, dim_mul(t, dims[open], product), elements), INVALID,
               "data is %s, which does not divide by the %s elements that shape gives without -1", SHAPE_STR(t, s),
               dim_print(n->arena, t, product));
    return NULL;
  }
  CHECK_THAT(dim_equal(t, product, elements), INVALID, "data is %s but shape has %s elements", SHAPE_STR(t, s),
             dim_print(n->arena, t, product));
  return NULL;
}

status onnx_import_reshape(onnx_node *n) {
  const dim *want;
  int64_t rank;
  bool allowzero;
  dim dims[SHAPE_MAX_RANK];
  TRY(onnx_dims_attr_or_input(n, "shape", 1, &want, &rank));
  TRY(onnx_attr_bool(n->proto, "allowzero", false, &allowzero));
  CHECK_THAT(rank <= SHAPE_MAX_RANK, STATUS_UNSUPPORTED, "shape has %" PRId64 " entries; at most %d are supported",
             rank, SHAPE_MAX_RANK);
  TRY(reshape_dims(n, want, rank, allowzero, dims));
  n->out[0] = hlo_reshape(n->b, n->in[0], (int)rank, dims);
  return NULL;
}

status onnx_import_squeeze(onnx_node *n) {
  const shape *s = hlo_shape(n->in[0]);
  const int64_t *axes;
  int64_t count, sorted[SHAPE_MAX_RANK];
  TRY(onnx_ints_attr_or_input(n, "axes", 1, &axes, &count));
  bool all = !axes && !onnx_has_in(n, 1) && !onnx_attr_has(n->proto, "axes");
  TRY(onnx_axes(axes, (size_t)count, s->rank, sorted));
  dim dims[SHAPE_MAX_RANK];
  int rank = 0;
  for (int k = 0, next = 0; k < s->rank; k++) {
    bool named = next < count && sorted[next] == k;
    next += named;
    bool is_one = (named || all) && dim_equal(onnx_dims(n), s->dims[k], 1);
    CHECK_THAT(!named || is_one, INVALID, "axis %d of %s is not 1", k, SHAPE_STR(onnx_dims(n), s));
    if (!is_one) {
      dims[rank++] = s->dims[k];
    }
    hlo_value size = onnx_dynamic_dim_get(n->scope->importer, n->in[0], k);
    if (is_one && size.def) { /* it has room for one element, and may have none */
      hlo_value last = hlo_binary(n->b, HLO_SUB, size, hlo_scalar(n->b, DTYPE_S64, 1));
      TRY(onnx_check(n, last, "the last position in an axis that is removed", 1, (dim[]){1}, false));
    }
  }
  n->out[0] = hlo_reshape(n->b, n->in[0], rank, dims);
  return NULL;
}

status onnx_import_unsqueeze(onnx_node *n) {
  const shape *s = hlo_shape(n->in[0]);
  const int64_t *axes;
  int64_t count, sorted[SHAPE_MAX_RANK];
  TRY(onnx_ints_attr_or_input(n, "axes", 1, &axes, &count));
  CHECK_THAT(axes || onnx_has_in(n, 1) || onnx_attr_has(n->proto, "axes"), INVALID, "axes are missing");
  CHECK_THAT(count <= SHAPE_MAX_RANK - s->rank, STATUS_UNSUPPORTED,
             "data is %s and axes has %" PRId64 " entries; ranks above %d are not supported",
             SHAPE_STR(onnx_dims(n), s), count, SHAPE_MAX_RANK);
  int64_t rank = s->rank + count;
  TRY(onnx_axes(axes, (size_t)count, rank, sorted));
  dim dims[SHAPE_MAX_RANK];
  for (int64_t k = 0, next = 0, from = 0; k < rank; k++) {
    bool named = next < count && sorted[next] == k;
    dims[k] = named ? 1 : s->dims[from];
    next += named;
    from += !named;
  }
  n->out[0] = hlo_reshape(n->b, n->in[0], (int)rank, dims);
  return NULL;
}

/* The axis may equal the rank; it may be negative since version 11. */
status onnx_import_flatten(onnx_node *n) {
  const shape *s = hlo_shape(n->in[0]);
  int64_t axis;
  TRY(onnx_attr_int_in(n->proto, "axis", 1, n->since >= 11 ? -(int64_t)s->rank : 0, s->rank, &axis));
  axis = axis < 0 ? axis + s->rank : axis;
  dim dims[] = {shape_dim_product(onnx_dims(n), s, 0, (int)axis),
                shape_dim_product(onnx_dims(n), s, (int)axis, s->rank)};
  n->out[0] = hlo_reshape(n->b, n->in[0], 2, dims);
  return NULL;
}

/* --- permutations --- */

status onnx_import_transpose(onnx_node *n) {
  int rank = hlo_rank(n->in[0]);
  const int64_t *given;
  size_t count;
  int64_t perm[SHAPE_MAX_RANK], sorted[SHAPE_MAX_RANK];
  TRY(onnx_attr_ints(n->proto, "perm", &given, &count));
  if (!onnx_attr_has(n->proto, "perm")) {
    for (int k = 0; k < rank; k++) {
      perm[k] = rank - 1 - k;
    }
  } else {
    CHECK_THAT(count == (size_t)rank, INVALID, "perm has %zu entries but data is %s", count,
               SHAPE_STR(onnx_dims(n), hlo_shape(n->in[0])));
    TRY(status_prefix(onnx_axes(given, count, rank, sorted), "perm"));
    for (int k = 0; k < rank; k++) {
      perm[k] = given[k] < 0 ? given[k] + rank : given[k];
    }
  }
  n->out[0] = hlo_transpose(n->b, n->in[0], perm);
  return NULL;
}

/* Reads the attribute `blocksize` of DepthToSpace and SpaceToDepth, and checks that the input is [N, C, H, W]. */
static status block_of(const onnx_node *n, int64_t *block) {
  const shape *s = hlo_shape(n->in[0]);
  TRY(onnx_attr_required(n->proto, "blocksize"));
  TRY(onnx_attr_int_in(n->proto, "blocksize", 0, 1, INT32_MAX, block));
  CHECK_THAT(s->rank == 4, INVALID, "input is %s; rank 4 is required", SHAPE_STR(onnx_dims(n), s));
  return NULL;
}

static hlo_value regroup(hlo_builder *b, hlo_value x, const dim *from, const int64_t *perm, const dim *to) {
  return hlo_reshape(b, hlo_transpose(b, hlo_reshape(b, x, 6, from), perm), 4, to);
}

/* Reads the attribute `mode`.  Sets *inner to whether the position within the block is the inner part of the channel
 * number (CRD) and not the outer part (DCR). */
static status block_is_inner(const onnx_node *n, bool *inner) {
  const char *mode;
  TRY(onnx_attr_string(n->arena, n->proto, "mode", "DCR", &mode));
  *inner = strcmp(mode, "CRD") == 0;
  CHECK_THAT(*inner || strcmp(mode, "DCR") == 0, INVALID, "mode is '%s', not DCR or CRD", mode);
  return NULL;
}

status onnx_import_depth_to_space(onnx_node *n) {
  int64_t k;
  bool inner;
  TRY(block_of(n, &k));
  TRY(block_is_inner(n, &inner));
  const dim *d = hlo_shape(n->in[0])->dims;
  dim c = dim_floordiv(onnx_dims(n), d[1], k * k);
  CHECK_THAT(dim_equal(onnx_dims(n), dim_mul(onnx_dims(n), c, k * k), d[1]), INVALID,
             "input is %s; its channels do not divide by blocksize %" PRId64 " squared",
             SHAPE_STR(onnx_dims(n), hlo_shape(n->in[0])), k);
  dim to[] = {d[0], c, dim_mul(onnx_dims(n), d[2], k), dim_mul(onnx_dims(n), d[3], k)};
  n->out[0] = inner ? regroup(n->b, n->in[0], (dim[]){d[0], c, k, k, d[2], d[3]}, (int64_t[]){0, 1, 4, 2, 5, 3}, to)
                    : regroup(n->b, n->in[0], (dim[]){d[0], k, k, c, d[2], d[3]}, (int64_t[]){0, 3, 4, 1, 5, 2}, to);
  return NULL;
}

status onnx_import_space_to_depth(onnx_node *n) {
  static const int64_t by_block[] = {0, 3, 5, 1, 2, 4}, by_channel[] = {0, 1, 3, 5, 2, 4};
  int64_t k;
  bool inner = false;
  TRY(block_of(n, &k));
  if (n->since >= 28) {
    TRY(block_is_inner(n, &inner));
  }
  const dim *d = hlo_shape(n->in[0])->dims;
  dim_table *t = onnx_dims(n);
  dim rows = dim_floordiv(t, d[2], k), columns = dim_floordiv(t, d[3], k);
  bool divides = dim_equal(t, dim_mul(t, rows, k), d[2]) & dim_equal(t, dim_mul(t, columns, k), d[3]);
  CHECK_THAT(divides, INVALID, "input is %s; its last dims do not divide by blocksize %" PRId64,
             SHAPE_STR(onnx_dims(n), hlo_shape(n->in[0])), k);
  dim from[] = {d[0], d[1], rows, k, columns, k}, to[] = {d[0], dim_mul(t, d[1], k * k), rows, columns};
  n->out[0] = regroup(n->b, n->in[0], from, inner ? by_channel : by_block, to);
  return NULL;
}

/* --- copies --- */

/* Expand broadcasts in both directions: where the input `shape` has 1, the extent of the array is kept. */
status onnx_import_expand(onnx_node *n) {
  const dim *want;
  int64_t rank;
  TRY(onnx_const_dims(n, 1, "shape", &want, &rank));
  CHECK_THAT(rank <= SHAPE_MAX_RANK, STATUS_UNSUPPORTED, "shape has %" PRId64 " entries; at most %d are supported",
             rank, SHAPE_MAX_RANK);
  for (int64_t k = 0; k < rank; k++) {
    CHECK_THAT(dim_at_most(onnx_dims(n), 0, want[k]), INVALID, "shape[%" PRId64 "] is %s; it must not be negative", k,
               dim_print(n->arena, onnx_dims(n), want[k]));
  }
  const shape *s = hlo_shape(n->in[0]);
  shape target = shape_make(hlo_type(n->in[0]), (int)rank, want), to;
  TRY(hlo_broadcast_shape(onnx_dims(n), s, &target, &to));
  TRY(shape_check(&to, "the result"));
  n->out[0] = hlo_broadcast_to(n->b, n->in[0], &to);
  return NULL;
}

/* Returns how often each dimension is repeated.  Version 1 has inputs `tiles` and `axis` and repeats along one axis. */
static status repeats(const onnx_node *n, const shape *s, dim *out) {
  const dim *list;
  int64_t count, axis, tiles;
  for (int k = 0; k < s->rank; k++) {
    out[k] = 1;
  }
  if (n->since == 1) {
    double tiles_value, axis_value;
    TRY(onnx_const_float(n, 1, "tiles", &tiles_value));
    TRY(onnx_const_float(n, 2, "axis", &axis_value));
    CHECK_THAT(tiles_value >= 0 && tiles_value <= DIM_MAX, INVALID, "tiles is %g", tiles_value);
    CHECK_THAT(axis_value >= 0 && axis_value < s->rank, INVALID, "axis is %g; data is %s", axis_value,
               SHAPE_STR(onnx_dims(n), s));
    tiles = (int64_t)tiles_value;
    axis = (int64_t)axis_value;
    out[axis] = tiles;
    return NULL;
  }
  TRY(onnx_const_dims(n, 1, "repeats", &list, &count));
  CHECK_THAT(count == s->rank, INVALID, "repeats has %" PRId64 " entries but input is %s", count,
             SHAPE_STR(onnx_dims(n), s));
  for (int k = 0; k < s->rank; k++) {
    CHECK_THAT(dim_at_most(onnx_dims(n), 0, list[k]), INVALID, "repeats[%d] is %s", k,
               dim_print(n->arena, onnx_dims(n), list[k]));
    out[k] = list[k];
  }
  return NULL;
}

/* Tile repeats an array [a, b] ra times along its first and rb times along its second dimension by a broadcast to
 * [ra, a, rb, b] and a reshape to [ra * a, rb * b].  A dimension that is not repeated gets no additional dimension. */
status onnx_import_tile(onnx_node *n) {
  shape s = *hlo_shape(n->in[0]);
  dim times[SHAPE_MAX_RANK];
  int64_t where[SHAPE_MAX_RANK];
  TRY(repeats(n, &s, times));
  shape spread = shape_scalar((dtype)s.type), flat = s;
  int rank = 0;
  for (int k = 0; k < s.rank; k++) {
    flat.dims[k] = dim_mul(onnx_dims(n), s.dims[k], times[k]);
    rank += 1 + (times[k] != 1);
  }
  TRY(shape_check(&flat, "the result"));
  CHECK_THAT(rank <= SHAPE_MAX_RANK, STATUS_UNSUPPORTED, "input is %s and %d of its dims are repeated",
             SHAPE_STR(onnx_dims(n), &s), rank - s.rank);
  for (int k = 0; k < s.rank; k++) {
    if (times[k] != 1) {
      spread.dims[spread.rank++] = times[k];
    }
    where[k] = spread.rank;
    spread.dims[spread.rank++] = s.dims[k];
  }
  n->out[0] = hlo_reshape(n->b, hlo_broadcast(n->b, n->in[0], spread, where), flat.rank, flat.dims);
  return NULL;
}
