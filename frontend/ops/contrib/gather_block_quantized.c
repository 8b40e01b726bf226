/* gather_block_quantized.c - the importer of GatherBlockQuantized: slices of an array of small numbers with scales,
 * each of which belongs to a block of numbers along one axis. */
#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/contrib/contrib.h"

enum { DATA, INDICES, SCALES, ZERO_POINTS };

typedef struct table {
  int64_t gather, quantize; /* the axis along which slices are taken, and that of the blocks */
  /* The numbers of bits of an element, of elements of a block, and of elements and blocks along `quantize`. */
  int64_t bits, block, columns, blocks;
  bool packed; /* whether bytes hold several elements, the first one in the lowest bits */
  dim rows;    /* the number of slices */
} table;

static status read_axes(const onnx_node *n, table *t) {
  const shape *s = onnx_in_shape(n, DATA);
  bool bytes = hlo_type(n->in[DATA]) == DTYPE_U8;
  TRY(onnx_attr_int(n->proto, "gather_axis", 0, &t->gather));
  TRY(onnx_attr_int(n->proto, "quantize_axis", 1, &t->quantize));
  TRY(onnx_axis(t->gather, s->rank, &t->gather));
  TRY(onnx_axis(t->quantize, s->rank, &t->quantize));
  CHECK_THAT(!bytes || (t->gather == 0 && t->quantize == s->rank - 1 && s->rank > 1), STATUS_INVALID_MODEL,
             "gather_axis is %" PRId64 " and quantize_axis %" PRId64
             "; for data of u8 they must be the first and the last axis of several",
             t->gather, t->quantize);
  return NULL;
}

/* Elements that are floats themselves have no zero points.  A block of size 0 is the whole axis. */
static status read_block(const onnx_node *n, table *t) {
  dtype type = hlo_type(n->in[DATA]);
  bool floats = dtype_is_float(type);
  t->bits = 8;
  if (!floats) {
    TRY(onnx_attr_int(n->proto, "bits", 4, &t->bits));
    CHECK_THAT(type == DTYPE_U8 ? t->bits == 2 || t->bits == 4 || t->bits == 8 : t->bits == 4, STATUS_UNSUPPORTED,
               "%" PRId64 " bits are not supported", t->bits);
  }
  TRY(onnx_attr_int_in(n->proto, "block_size", 128, 0, INT32_MAX, &t->block));
  CHECK_THAT((t->block & (t->block - 1)) == 0 && (t->block >= 16 || (floats && t->block == 0)), STATUS_INVALID_MODEL,
             "block_size is %" PRId64 ", which is no power of two from 16 on", t->block);
  CHECK_THAT(!floats || !onnx_has_in(n, ZERO_POINTS), STATUS_INVALID_MODEL, "zero_points are given for data of %s",
             dtype_name(type));
  return NULL;
}

static status read_table(const onnx_node *n, table *t) {
  const shape *s = onnx_in_shape(n, DATA);
  dtype type = hlo_type(n->in[DATA]);
  int64_t stored;
  TRY(CONTRIB_ATTRIBUTES(n, "bits", "block_size", "gather_axis", "quantize_axis"));
  TRY(onnx_need_rank(n, DATA, "data", 1, SHAPE_MAX_RANK));
  TRY(read_axes(n, t));
  TRY(read_block(n, t));
  TRY(onnx_const_dim(n, s->dims[t->quantize], "the dimension of data along quantize_axis", &stored));
  t->packed = type == DTYPE_U8 && t->bits < 8;
  t->columns = t->packed ? stored * (8 / t->bits) : stored;
  /* An axis that is shorter than a block has one scale, which over_blocks then repeats for this axis's elements only.
   */
  t->block = t->block > 0 && t->block < t->columns ? t->block : t->columns;
  t->blocks = t->block ? (t->columns + t->block - 1) / t->block : 0;
  t->rows = s->dims[t->gather];
  TRY(onnx_need_rank(n, SCALES, "scales", s->rank, s->rank));
  shape want = *s;
  for (int d = 0; d < s->rank && dtype_is_float(type); d++) { /* such scales may be repeated along an axis */
    want.dims[d] = dim_known_equal(onnx_dims(n), onnx_in_shape(n, SCALES)->dims[d], 1) ? 1 : want.dims[d];
  }
  want.dims[t->quantize] = t->blocks;
  TRY(onnx_need_dims(n, SCALES, "scales", s->rank, want.dims));
  want.dims[t->quantize] = t->packed ? (t->blocks * t->bits + 7) / 8 : t->blocks;
  return onnx_need_dims(n, ZERO_POINTS, "zero_points", s->rank, want.dims);
}

/* Returns x, whose last dimension are bytes, as s32 with `count` elements, which the bytes hold, in that dimension. */
static hlo_value unpack(hlo_builder *b, const table *t, hlo_value x, int64_t count) {
  x = hlo_convert(b, x, DTYPE_S32);
  if (!t->packed || b->error) {
    return x;
  }
  int rank = hlo_rank(x);
  int64_t each = 8 / t->bits;
  shape s = *hlo_shape(x), split = s;
  split.rank = rank + 1;
  split.dims[rank] = each;
  s.dims[rank - 1] *= each; /* this extent, the columns of a table, is a constant */
  hlo_value shift = onnx_times(b, hlo_iota(b, split, rank), (double)t->bits);
  x = hlo_broadcast_to(b, onnx_insert_dim(b, x, rank), &split);
  x = onnx_binary_scalar(b, HLO_AND, hlo_binary(b, HLO_SHR, x, shift), (double)((1 << t->bits) - 1));
  x = hlo_reshape(b, x, rank, s.dims);
  return s.dims[rank - 1] == count ? x : hlo_slice_dim(b, x, rank - 1, 0, count);
}

/* Repeats each element of x for the elements of its block.  `axis` is that of the blocks in x. */
static hlo_value over_blocks(hlo_builder *b, const table *t, hlo_value x, int64_t axis) {
  if (b->error) {
    return x;
  }
  shape s = *hlo_shape(x), split = s;
  split.rank++;
  for (int64_t d = s.rank; d > axis + 1; d--) {
    split.dims[d] = s.dims[d - 1];
  }
  split.dims[axis + 1] = t->block;
  s.dims[axis] = t->blocks * t->block;
  x = hlo_reshape(b, hlo_broadcast_to(b, onnx_insert_dim(b, x, axis + 1), &split), s.rank, s.dims);
  return s.dims[axis] == t->columns ? x : hlo_slice_dim(b, x, axis, 0, t->columns);
}

/* Returns the numbers of input k, scales or zero points, for the elements of y, the slices at the indices.  Input k
 * has been converted to x. */
static hlo_value of_elements(const onnx_node *n, const table *t, hlo_value x, hlo_value index, hlo_value y) {
  hlo_builder *b = n->b;
  if (b->error) {
    return y;
  }
  int64_t axis = t->quantize + (t->quantize > t->gather ? hlo_rank(index) - 1 : 0);
  bool one = dim_known_equal(onnx_dims(n), hlo_shape(x)->dims[t->gather], 1);
  if (one) {
    index = hlo_like(b, index, 0);
  } else if (t->gather == t->quantize) {
    index = onnx_binary_scalar(b, HLO_DIV, index, (double)t->block);
  }
  x = hlo_take(b, x, index, t->gather);
  x = t->gather == t->quantize ? x : over_blocks(b, t, x, axis);
  return hlo_broadcast_to(b, x, hlo_shape(y));
}

/* Returns an array of y's shape that is 0 where `known`, which has the shape of the indices, is false, and y elsewhere.
 */
static hlo_value zero_unknown(hlo_builder *b, const table *t, hlo_value known, hlo_value y) {
  int64_t at[SHAPE_MAX_RANK];
  if (b->error) {
    return y;
  }
  for (int d = 0; d < hlo_rank(known); d++) {
    at[d] = t->gather + d;
  }
  return hlo_select(b, hlo_broadcast(b, known, shape_with_type(*hlo_shape(y), DTYPE_PRED), at), y, hlo_like(b, y, 0));
}

/* Negative indices count from the end.  A slice whose index is out of range is 0. */
status onnx_import_contrib_gather_block_quantized(onnx_node *n) {
  hlo_builder *b = n->b;
  table t;
  TRY(read_table(n, &t));
  CHECK_THAT(hlo_rank(n->in[INDICES]) + hlo_rank(n->in[DATA]) <= SHAPE_MAX_RANK,
             STATUS_UNSUPPORTED | STATUS_ABOUT_SHAPE, "indices are %s; this rank is not supported",
             SHAPE_STR(onnx_dims(n), onnx_in_shape(n, INDICES)));
  hlo_value index = hlo_convert(b, n->in[INDICES], DTYPE_S64), rows = onnx_dim_like(b, index, t.rows);
  hlo_value zero = hlo_like(b, index, 0), last = onnx_plus(b, rows, -1);
  index = hlo_select(b, hlo_compare(b, HLO_LT, index, zero), hlo_binary(b, HLO_ADD, index, rows), index);
  hlo_value known = hlo_binary(b, HLO_AND, hlo_compare(b, HLO_GE, index, zero), hlo_compare(b, HLO_LT, index, rows));
  index = hlo_binary(b, HLO_MAX, hlo_binary(b, HLO_MIN, index, last), zero);
  hlo_value x = hlo_take(b, n->in[DATA], index, t.gather);
  if (!dtype_is_float(hlo_type(n->in[DATA]))) {
    x = unpack(b, &t, x, t.columns);
    hlo_value point = hlo_like(b, x, hlo_type(n->in[DATA]) == DTYPE_U8 ? 1 << (t.bits - 1) : 0);
    if (onnx_has_in(n, ZERO_POINTS)) {
      point = of_elements(n, &t, unpack(b, &t, n->in[ZERO_POINTS], t.blocks), index, x);
    }
    x = hlo_binary(b, HLO_SUB, x, point);
  }
  x = hlo_convert(b, x, DTYPE_F32);
  x = hlo_binary(b, HLO_MUL, x, of_elements(n, &t, hlo_convert(b, n->in[SCALES], DTYPE_F32), index, x));
  n->out[0] = hlo_convert(b, zero_unknown(b, &t, known, x), hlo_type(n->in[SCALES]));
  return NULL;
}
