/* shape_movement.c - shape rules of data movement, random numbers and updates. */
#include <inttypes.h>

#include "hlo/ir/shape_rules.h"

#define INVALID STATUS_INVALID_MODEL

status hlo_shape_copy(const hlo_instr *i, dim_table *dims, shape *results) {
  (void)dims;
  results[0] = *shape_of(i, 0);
  return NULL;
}

status hlo_shape_iota(const hlo_instr *i, dim_table *dims, shape *results) {
  CHECK_THAT(results[0].kind == SHAPE_ARRAY && (shape_types((dtype)results[0].type) & TYPES_NUMBER), INVALID,
             "the result is %s; an array of numbers is needed", SHAPE_STR(dims, &results[0]));
  TRY(shape_need_dimension(i, HLO_ATTR_DIMENSION, results[0].rank));
  return shape_finish(i, &results[0]);
}

status hlo_shape_run_seed(const hlo_instr *i, dim_table *dims, shape *results) {
  (void)i;
  (void)dims;
  results[0] = shape_scalar(DTYPE_U64);
  return NULL;
}

status hlo_shape_rng(const hlo_instr *i, dim_table *dims, shape *results) {
  int64_t algorithm = hlo_int(i, HLO_ATTR_ALGORITHM);
  const shape *state = shape_of(i, 0), *bits = &results[0];
  CHECK_THAT(hlo_enum_name(HLO_KIND_ALGORITHM, algorithm), INVALID, "the algorithm is unknown");
  shape want = shape_make(DTYPE_U64, 1, (dim[]){algorithm == HLO_PHILOX ? 3 : 1});
  CHECK_THAT(shape_equal(state, &want), INVALID, "the state is %s; %s takes %s", SHAPE_STR(dims, state),
             hlo_enum_name(HLO_KIND_ALGORITHM, algorithm), SHAPE_STR(dims, &want));
  CHECK_THAT(bits->kind == SHAPE_ARRAY && (bits->type == DTYPE_U32 || bits->type == DTYPE_U64), INVALID,
             "the result is %s; an array of u32 or u64 is needed", SHAPE_STR(dims, bits));
  return shape_finish(i, bits);
}

status hlo_shape_broadcast(const hlo_instr *i, dim_table *dims, shape *results) {
  const shape *x = shape_of(i, 0), *to = &results[0];
  TRY(shape_need_types(i, dims, 0, TYPES_ALL));
  CHECK_THAT(to->type == x->type && to->kind == SHAPE_ARRAY, INVALID, "cannot broadcast %s to %s; the types differ",
             SHAPE_STR(dims, x), SHAPE_STR(dims, to));
  TRY(shape_need_count(i, HLO_ATTR_DIMENSIONS, x->rank));
  uint32_t seen = 0;
  TRY(shape_need_dims(i, HLO_ATTR_DIMENSIONS, to->rank, true, &seen));
  for (int k = 0; k < x->rank; k++) {
    dim wanted = to->dims[hlo_ints(i, HLO_ATTR_DIMENSIONS)[k]];
    if (x->dims[k] != 1 && !dim_equal(dims, x->dims[k], wanted) && !dim_equal(dims, x->dims[k], 1)) {
      TRY(status_prefix(shape_need_equal(dims, "dimension", k, x->dims[k], wanted), "%s to %s", SHAPE_STR(dims, x),
                        SHAPE_STR(dims, to)));
    }
  }
  return shape_finish(i, to);
}

static dim elements(dim_table *dims, const shape *s) {
  dim n = 1;
  for (int k = 0; k < s->rank; k++) {
    n = dim_mul(dims, n, s->dims[k]);
  }
  return n;
}

/* The numbers of elements are compared only if both are constants: for example, (n*6/4)*4 equals n*6 only if
 * 4 divides n*6, which cannot be decided before n is known. */
status hlo_shape_reshape(const hlo_instr *i, dim_table *dims, shape *results) {
  const shape *x = shape_of(i, 0), *to = &results[0];
  TRY(shape_need_types(i, dims, 0, TYPES_ALL));
  CHECK_THAT(to->type == x->type && to->kind == SHAPE_ARRAY, INVALID, "cannot reshape %s to %s; the types differ",
             SHAPE_STR(dims, x), SHAPE_STR(dims, to));
  TRY(shape_finish(i, to));
  dim have = elements(dims, x), want = elements(dims, to);
  CHECK_THAT(have == want || !dim_is_const(have) || !dim_is_const(want), INVALID,
             "cannot reshape %s to %s: %" PRId64 " elements are not %" PRId64, SHAPE_STR(dims, x), SHAPE_STR(dims, to),
             have, want);
  return NULL;
}

status hlo_shape_transpose(const hlo_instr *i, dim_table *dims, shape *results) {
  const shape *x = shape_of(i, 0);
  TRY(shape_need_types(i, dims, 0, TYPES_ALL));
  TRY(shape_need_count(i, HLO_ATTR_PERMUTATION, x->rank));
  uint32_t seen = 0;
  TRY(shape_need_dims(i, HLO_ATTR_PERMUTATION, x->rank, false, &seen));
  results[0] = *x;
  for (int k = 0; k < x->rank; k++) {
    results[0].dims[k] = x->dims[hlo_ints(i, HLO_ATTR_PERMUTATION)[k]];
  }
  return NULL;
}

status hlo_shape_reverse(const hlo_instr *i, dim_table *dims, shape *results) {
  uint32_t seen = 0;
  TRY(shape_need_types(i, dims, 0, TYPES_ALL));
  TRY(shape_need_dims(i, HLO_ATTR_DIMENSIONS, shape_of(i, 0)->rank, true, &seen));
  results[0] = *shape_of(i, 0);
  return NULL;
}

status hlo_shape_slice(const hlo_instr *i, dim_table *dims, shape *results) {
  const shape *x = shape_of(i, 0);
  TRY(shape_need_types(i, dims, 0, TYPES_ALL));
  TRY(shape_need_count(i, HLO_ATTR_STARTS, x->rank));
  TRY(shape_need_count(i, HLO_ATTR_LIMITS, x->rank));
  TRY(shape_need_range(i, HLO_ATTR_STRIDES, x->rank, 1, DIM_MAX));
  results[0] = *x;
  for (int k = 0; k < x->rank; k++) {
    dim start = hlo_ints(i, HLO_ATTR_STARTS)[k], limit = hlo_ints(i, HLO_ATTR_LIMITS)[k];
    TRY(shape_need_fits(dims, "limit of dimension", k, limit, x->dims[k]));
    TRY(shape_need_fits(dims, "start of dimension", k, start, limit));
    results[0].dims[k] = dim_ceildiv(dims, dim_sub(dims, limit, start), hlo_ints(i, HLO_ATTR_STRIDES)[k]);
  }
  return shape_finish(i, &results[0]);
}

status hlo_shape_pad(const hlo_instr *i, dim_table *dims, shape *results) {
  const shape *x = shape_of(i, 0);
  TRY(shape_need_types(i, dims, 0, TYPES_ALL));
  TRY(shape_need_scalar(i, dims, 1, (dtype)x->type));
  TRY(shape_need_range(i, HLO_ATTR_LOW, x->rank, -DIM_MAX, DIM_MAX));
  TRY(shape_need_range(i, HLO_ATTR_HIGH, x->rank, -DIM_MAX, DIM_MAX));
  TRY(shape_need_range(i, HLO_ATTR_INTERIOR, x->rank, 0, DIM_MAX));
  results[0] = *x;
  for (int k = 0; k < x->rank; k++) {
    results[0].dims[k] = shape_pad_dim(dims, x->dims[k], hlo_ints(i, HLO_ATTR_LOW)[k], hlo_ints(i, HLO_ATTR_HIGH)[k],
                                       hlo_ints(i, HLO_ATTR_INTERIOR)[k]);
  }
  return shape_finish(i, &results[0]);
}

status hlo_shape_concatenate(const hlo_instr *i, dim_table *dims, shape *results) {
  const shape *x = shape_of(i, 0);
  int64_t d = hlo_int(i, HLO_ATTR_DIMENSION);
  TRY(shape_need_types(i, dims, 0, TYPES_ALL));
  TRY(shape_need_dimension(i, HLO_ATTR_DIMENSION, x->rank));
  results[0] = *x;
  for (uint32_t k = 1; k < i->n_operands; k++) {
    const shape *y = shape_of(i, k);
    TRY(shape_need_same_type(i, dims, 0, k));
    CHECK_THAT(y->rank == x->rank, INVALID, "operand 0 is %s but operand %u is %s; the ranks differ",
               SHAPE_STR(dims, x), k, SHAPE_STR(dims, y));
    shape rest = *y;
    rest.dims[d] = x->dims[d];
    TRY(status_prefix(shape_need_same_dims(dims, "operand 0", x, "the operand without that dimension", &rest),
                      "dimension %" PRId64 ", operand %u", d, k));
    results[0].dims[d] = dim_add(dims, results[0].dims[d], y->dims[d]);
  }
  return shape_finish(i, &results[0]);
}

/* Checks operand k, the start of a window in operand 0. */
static status check_starts(const hlo_instr *i, dim_table *dims, uint32_t k) {
  const shape *s = shape_of(i, k);
  int rank = shape_of(i, 0)->rank;
  CHECK_THAT(s->kind == SHAPE_ARRAY && s->type == DTYPE_S64 && s->rank == 1 && s->dims[0] == rank, INVALID,
             "the starts are %s instead of s64[%d]", SHAPE_STR(dims, s), rank);
  return NULL;
}

status hlo_shape_dynamic_slice(const hlo_instr *i, dim_table *dims, shape *results) {
  const shape *x = shape_of(i, 0);
  TRY(shape_need_types(i, dims, 0, TYPES_ALL));
  TRY(check_starts(i, dims, 1));
  TRY(shape_need_count(i, HLO_ATTR_SIZES, x->rank));
  results[0] = *x;
  for (int k = 0; k < x->rank; k++) {
    results[0].dims[k] = hlo_ints(i, HLO_ATTR_SIZES)[k];
    TRY(shape_need_window(dims, "size of dimension", k, results[0].dims[k], x->dims[k]));
  }
  return shape_finish(i, &results[0]);
}

status hlo_shape_dynamic_update_slice(const hlo_instr *i, dim_table *dims, shape *results) {
  const shape *x = shape_of(i, 0), *update = shape_of(i, 1);
  TRY(shape_need_types(i, dims, 0, TYPES_ALL));
  TRY(shape_need_same_type(i, dims, 0, 1));
  TRY(check_starts(i, dims, 2));
  CHECK_THAT(x->rank == update->rank, INVALID, "the operand is %s but the update is %s; the ranks differ",
             SHAPE_STR(dims, x), SHAPE_STR(dims, update));
  for (int k = 0; k < x->rank; k++) {
    TRY(shape_need_window(dims, "update dimension", k, update->dims[k], x->dims[k]));
  }
  results[0] = *x;
  return NULL;
}

/* --- gather and scatter --- */

/* The dimensions of a gather or scatter by their roles.  Sets of dimensions are bit sets. */
typedef struct gather_parts {
  uint32_t offset;    /* the dimensions of the result (or of the updates) that are offsets in a window */
  uint32_t batch;     /* the batch dimensions of the operand */
  uint32_t collapsed; /* the dimensions of the operand that the result lacks: collapsed and batch dimensions */
  int batch_rank;     /* the number of the indices' dimensions other than that of the index vector */
  int rank;           /* the rank of the result (or of the updates) */
} gather_parts;

static status check_index_vector(const hlo_instr *i, dim_table *dims) {
  const shape *indices = shape_of(i, 1);
  int64_t d = hlo_int(i, HLO_ATTR_INDEX_VECTOR_DIM);
  CHECK_THAT(indices->kind == SHAPE_ARRAY && (indices->type == DTYPE_S32 || indices->type == DTYPE_S64), INVALID,
             "the indices are %s; their type must be s32 or s64", SHAPE_STR(dims, indices));
  TRY(shape_need_dimension(i, HLO_ATTR_INDEX_VECTOR_DIM, indices->rank + 1));
  dim n = d == indices->rank ? 1 : indices->dims[d];
  CHECK_THAT(dim_is_const(n), STATUS_UNSUPPORTED, "the indices are %s; the length of an index must be a constant",
             SHAPE_STR(dims, indices));
  CHECK_THAT(n == hlo_n_ints(i, HLO_ATTR_INDEX_MAP), INVALID, "the indices are %s but index_map has %u entries",
             SHAPE_STR(dims, indices), hlo_n_ints(i, HLO_ATTR_INDEX_MAP));
  return NULL;
}

static status check_batch_dims(const hlo_instr *i, dim_table *dims) {
  const shape *x = shape_of(i, 0), *indices = shape_of(i, 1);
  int64_t vector = hlo_int(i, HLO_ATTR_INDEX_VECTOR_DIM);
  uint32_t n = hlo_n_ints(i, HLO_ATTR_OPERAND_BATCH), seen = vector < indices->rank ? (uint32_t)1 << vector : 0;
  TRY(shape_need_count(i, HLO_ATTR_INDICES_BATCH, n));
  TRY(shape_need_dims(i, HLO_ATTR_INDICES_BATCH, indices->rank, false, &seen));
  for (uint32_t k = 0; k < n; k++) {
    TRY(shape_need_equal(dims, "extents of batch dimension", (int)k, x->dims[hlo_ints(i, HLO_ATTR_OPERAND_BATCH)[k]],
                         indices->dims[hlo_ints(i, HLO_ATTR_INDICES_BATCH)[k]]));
  }
  return NULL;
}

static status check_gather_dims(const hlo_instr *i, dim_table *dims, gather_parts *p) {
  const shape *x = shape_of(i, 0), *indices = shape_of(i, 1);
  uint32_t n_offset = hlo_n_ints(i, HLO_ATTR_OFFSET_DIMS), mapped = 0;
  TRY(shape_need_types(i, dims, 0, TYPES_ALL));
  TRY(check_index_vector(i, dims));
  CHECK_THAT(n_offset <= SHAPE_MAX_RANK, INVALID, "offset_dims has %u entries", n_offset);
  p->batch_rank = indices->rank - (hlo_int(i, HLO_ATTR_INDEX_VECTOR_DIM) < indices->rank);
  p->rank = p->batch_rank + (int)n_offset;
  CHECK_THAT(p->rank <= SHAPE_MAX_RANK, STATUS_UNSUPPORTED, "the rank %d is greater than %d", p->rank, SHAPE_MAX_RANK);
  TRY(shape_need_dims(i, HLO_ATTR_OFFSET_DIMS, p->rank, true, &p->offset));
  TRY(shape_need_dims(i, HLO_ATTR_OPERAND_BATCH, x->rank, true, &mapped));
  p->batch = p->collapsed = mapped;
  TRY(shape_need_dims(i, HLO_ATTR_INDEX_MAP, x->rank, false, &mapped));
  TRY(shape_need_dims(i, HLO_ATTR_COLLAPSED_DIMS, x->rank, true, &p->collapsed));
  uint32_t n_window = (uint32_t)x->rank - (uint32_t)__builtin_popcount(p->collapsed);
  CHECK_THAT(n_offset == n_window, INVALID,
             "offset_dims has %u entries but %u dimensions of %s are neither collapsed nor batch", n_offset, n_window,
             SHAPE_STR(dims, x));
  return check_batch_dims(i, dims);
}

/* Writes the extents of the indices' dimensions other than that of the index vector, in order. */
static void batch_dims(const hlo_instr *i, dim *out) {
  const shape *indices = shape_of(i, 1);
  for (int k = 0, n = 0; k < indices->rank; k++) {
    if (k != hlo_int(i, HLO_ATTR_INDEX_VECTOR_DIM)) {
      out[n++] = indices->dims[k];
    }
  }
}

/* Checks the sizes of a gather's slices.  Slices must have size 1 along collapsed and batch dimensions.  The sizes
 * along all other dimensions are extents of the result, and are written to window[].  A collapsed dimension must not be
 * empty, since a slice takes one element along it.  A batch dimension may be empty, since then there are no slices. */
static status check_slice_sizes(const hlo_instr *i, dim_table *dims, const gather_parts *p, dim *window) {
  const shape *x = shape_of(i, 0);
  TRY(shape_need_count(i, HLO_ATTR_SIZES, x->rank));
  for (int k = 0, n = 0; k < x->rank; k++) {
    dim size = hlo_ints(i, HLO_ATTR_SIZES)[k];
    if (!(p->batch >> k & 1)) {
      TRY(shape_need_window(dims, "slice size of dimension", k, size, x->dims[k]));
    }
    if (p->collapsed >> k & 1) {
      TRY(shape_need_equal(dims, "slice size of collapsed dimension", k, size, 1));
    } else {
      window[n++] = size;
    }
  }
  return NULL;
}

status hlo_shape_gather(const hlo_instr *i, dim_table *dims, shape *results) {
  gather_parts p = {0};
  dim window[SHAPE_MAX_RANK] = {0}, batch[SHAPE_MAX_RANK] = {0};
  TRY(check_gather_dims(i, dims, &p));
  TRY(check_slice_sizes(i, dims, &p, window));
  batch_dims(i, batch);
  dim all[SHAPE_MAX_RANK];
  for (int k = 0, n_window = 0, n_batch = 0; k < p.rank; k++) {
    all[k] = p.offset >> k & 1 ? window[n_window++] : batch[n_batch++];
  }
  results[0] = shape_make(hlo_type(i->operands[0]), p.rank, all);
  return shape_finish(i, &results[0]);
}

status hlo_shape_scatter(const hlo_instr *i, dim_table *dims, shape *results) {
  const shape *x = shape_of(i, 0), *updates = shape_of(i, 2);
  gather_parts p = {0};
  dim batch[SHAPE_MAX_RANK] = {0};
  TRY(check_gather_dims(i, dims, &p));
  TRY(shape_need_reducer(i, dims, 0));
  TRY(shape_need_same_type(i, dims, 0, 2));
  CHECK_THAT(updates->rank == p.rank, INVALID, "the updates are %s; their rank must be %d", SHAPE_STR(dims, updates),
             p.rank);
  batch_dims(i, batch);
  for (int k = 0, d = 0, n_batch = 0; k < p.rank; k++) {
    if (!(p.offset >> k & 1)) {
      TRY(shape_need_equal(dims, "updates dimension", k, updates->dims[k], batch[n_batch++]));
      continue;
    }
    while (p.collapsed >> d & 1) {
      d++;
    }
    TRY(shape_need_fits(dims, "updates dimension", k, updates->dims[k], x->dims[d++]));
  }
  results[0] = *x;
  return NULL;
}
