/* gather_block_quantized.c - the importer of GatherBlockQuantized: rows of a table of small integers with scales. */
#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/contrib/contrib.h"

enum { DATA, INDICES, SCALES, ZERO_POINTS };

typedef struct table {
  /* The numbers of bits of an element, of elements of a block, and of elements and blocks of a row. */
  int64_t bits, block, columns, blocks;
  bool packed; /* whether bytes hold several elements, the first one in the lowest bits */
  dim rows;
} table;

static status read_table(const onnx_node *n, table *t) {
  int64_t gather, quantize, stored;
  const shape *s = onnx_in_shape(n, DATA);
  dtype type = hlo_type(n->in[DATA]);
  TRY(CONTRIB_ATTRIBUTES(n, "bits", "block_size", "gather_axis", "quantize_axis"));
  CHECK_THAT(s->rank == 2, STATUS_UNSUPPORTED | STATUS_ABOUT_SHAPE, "data is %s; only a matrix is supported",
             SHAPE_STR(NULL, s));
  CHECK_THAT(dtype_is_int(type), STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE, "data of %s is not supported",
             dtype_name(type));
  TRY(onnx_attr_int(n->proto, "gather_axis", 0, &gather));
  TRY(onnx_attr_int(n->proto, "quantize_axis", 1, &quantize));
  CHECK_THAT((gather == 0 || gather == -2) && (quantize == 1 || quantize == -1), STATUS_UNSUPPORTED,
             "gather_axis %" PRId64 " and quantize_axis %" PRId64 " are not supported", gather, quantize);
  TRY(onnx_attr_int(n->proto, "bits", 4, &t->bits));
  CHECK_THAT(t->bits == 4 || t->bits == 8 || (t->bits == 2 && type == DTYPE_U8), STATUS_UNSUPPORTED,
             "%" PRId64 " bits are not supported", t->bits);
  TRY(onnx_attr_int_in(n->proto, "block_size", 128, 16, INT32_MAX, &t->block));
  TRY(onnx_const_dim(n, s->dims[1], "the last dimension of data", &stored));
  t->packed = type == DTYPE_U8 && t->bits < 8;
  t->columns = t->packed ? stored * (8 / t->bits) : stored;
  CHECK_THAT((t->block & (t->block - 1)) == 0, STATUS_INVALID_MODEL, "block_size is %" PRId64 ", no power of two",
             t->block);
  /* A row that is shorter than a block has one scale, which over_blocks then repeats for this row's elements only. */
  t->block = t->block < t->columns ? t->block : t->columns;
  t->blocks = t->block ? (t->columns + t->block - 1) / t->block : 0;
  t->rows = s->dims[0];
  TRY(onnx_need_dims(n, SCALES, "scales", 2, (dim[]){t->rows, t->blocks}));
  int64_t points = t->packed ? (t->blocks * t->bits + 7) / 8 : t->blocks;
  return onnx_need_dims(n, ZERO_POINTS, "zero_points", 2, (dim[]){t->rows, points});
}

/* Returns x, [..., bytes] of u8, as [..., count] of s32: the elements that the bytes hold.  If the table is not packed,
 * x has the elements already and is only converted. */
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

/* Repeats each element of x, [..., blocks], for the columns of its block. */
static hlo_value over_blocks(hlo_builder *b, const table *t, hlo_value x) {
  if (b->error) {
    return x;
  }
  int rank = hlo_rank(x);
  shape s = *hlo_shape(x), split = s;
  split.rank = rank + 1;
  split.dims[rank] = t->block;
  s.dims[rank - 1] = t->blocks * t->block;
  x = hlo_reshape(b, hlo_broadcast_to(b, onnx_insert_dim(b, x, rank), &split), rank, s.dims);
  return s.dims[rank - 1] == t->columns ? x : hlo_slice_dim(b, x, rank - 1, 0, t->columns);
}

/* Negative indices count from the end.  A row whose index is out of range is 0. */
status onnx_import_contrib_gather_block_quantized(onnx_node *n) {
  hlo_builder *b = n->b;
  table t;
  TRY(read_table(n, &t));
  CHECK_THAT(hlo_rank(n->in[INDICES]) + 2 < SHAPE_MAX_RANK, STATUS_UNSUPPORTED | STATUS_ABOUT_SHAPE,
             "indices are %s; this rank is not supported", SHAPE_STR(NULL, onnx_in_shape(n, INDICES)));
  hlo_value index = hlo_convert(b, n->in[INDICES], DTYPE_S64), rows = onnx_dim_like(b, index, t.rows);
  hlo_value zero = hlo_like(b, index, 0), last = onnx_plus(b, rows, -1);
  index = hlo_select(b, hlo_compare(b, HLO_LT, index, zero), hlo_binary(b, HLO_ADD, index, rows), index);
  hlo_value known = hlo_binary(b, HLO_AND, hlo_compare(b, HLO_GE, index, zero), hlo_compare(b, HLO_LT, index, rows));
  index = hlo_binary(b, HLO_MAX, hlo_binary(b, HLO_MIN, index, last), zero);
  hlo_value x = unpack(b, &t, hlo_take(b, n->in[DATA], index, 0), t.columns), point;
  if (onnx_has_in(n, ZERO_POINTS)) {
    point = over_blocks(b, &t, unpack(b, &t, hlo_take(b, n->in[ZERO_POINTS], index, 0), t.blocks));
  } else {
    point = hlo_like(b, x, hlo_type(n->in[DATA]) == DTYPE_U8 ? 1 << (t.bits - 1) : 0);
  }
  x = hlo_convert(b, hlo_binary(b, HLO_SUB, x, point), DTYPE_F32);
  hlo_value scale = over_blocks(b, &t, hlo_convert(b, hlo_take(b, n->in[SCALES], index, 0), DTYPE_F32));
  x = hlo_binary(b, HLO_MUL, x, scale);
  if (b->error) {
    return NULL;
  }
  known = hlo_broadcast_to(b, onnx_insert_dim(b, known, hlo_rank(known)), hlo_shape(x));
  n->out[0] = hlo_convert(b, hlo_select(b, known, x, hlo_like(b, x, 0)), hlo_type(n->in[SCALES]));
  return NULL;
}
