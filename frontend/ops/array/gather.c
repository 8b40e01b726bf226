/* gather.c - the operators that read or write elements at indices: Gather, Scatter and their variants, ReverseSequence,
 * TensorScatter.  Negative indices count from the end.  Constant indices are checked during the import, others when the
 * model runs.  With the option `unchecked`, an index out of range is clamped by a gather and skipped by a scatter. */
#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/import_common.h"
#include "frontend/import/scope.h"
#include "frontend/import/sizes.h"
#include "frontend/import/symbolic.h"
#include "hlo/ir/fold_sizes.h"

#define INVALID STATUS_INVALID_MODEL

/* The numbers 0, 1, 2 and so on.  A part of this array serves as a list of consecutive dimensions. */
static const int64_t counting[SHAPE_MAX_RANK + 1] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

/* Sets the result, which has the dimensions dims[rank], to zeros and returns true in two cases.  One is that the result
 * is empty at all sizes of symbols.  The other is that one of gathered[n_gathered], the dimensions of data into which
 * the indices point, is empty at the hints: HLO's gather cannot take a slice of one element from an empty dimension.
 * Then the result is empty too, or the check of the indices ends a run that comes here; a loop without an iteration
 * never does.  If the number of indices is dynamic, there may be no check, so the result must be empty at the hints.
 * Otherwise returns false, and the caller makes a gather, whose result may be empty at some sizes.  May add guards. */
static bool give_zeros(onnx_node *n, int n_gathered, const dim *gathered, int rank, const dim *dims) {
  shape s = shape_make(hlo_type(n->in[0]), rank, dims);
  dim_table *t = onnx_dims(n);
  bool filled = true, checked = !onnx_has_dynamic_dims(n->scope->importer, n->in[1]);
  for (int k = 0; k < n_gathered && filled; k++) {
    filled = dim_at_most(t, 1, gathered[k]);
  }
  if (!shape_is_empty(&s) && (filled || !(checked || dim_equal(t, shape_dim_product(t, &s, 0, rank), 0)))) {
    return false;
  }
  n->out[0] = hlo_splat(n->b, s, 0);
  return true;
}

/* --- Gather --- */

/* Returns the shape of Gather's result: the dimensions of data, with those of indices in place of `axis`. */
static status taken_dims(const dim_table *t, const shape *s, const shape *si, int64_t axis, shape *out) {
  CHECK_THAT(s->rank - 1 + si->rank <= SHAPE_MAX_RANK, STATUS_UNSUPPORTED,
             "data is %s and indices is %s; ranks above %d are not supported", SHAPE_STR(t, s), SHAPE_STR(t, si),
             SHAPE_MAX_RANK);
  *out = shape_scalar((dtype)s->type);
  for (int k = 0; k < s->rank; k++) {
    for (int j = 0; k == axis && j < si->rank; j++) {
      out->dims[out->rank++] = si->dims[j];
    }
    if (k != axis) {
      out->dims[out->rank++] = s->dims[k];
    }
  }
  return shape_check(out, "the result");
}

/* A single index that is a constant or computed from sizes becomes a slice, which is cheaper than a gather. */
status onnx_import_gather(onnx_node *n) {
  const shape *s = hlo_shape(n->in[0]);
  int64_t axis;
  hlo_value indices;
  shape to;
  TRY(onnx_axis_attr(n, 0, s->rank, &axis));
  TRY(onnx_indices(n, 1, "indices", s->dims[axis], &indices));
  TRY(taken_dims(onnx_dims(n), s, hlo_shape(n->in[1]), axis, &to));
  if (give_zeros(n, 1, &s->dims[axis], to.rank, to.dims)) {
    return NULL;
  }
  dim index[HLO_MAX_SIZES];
  if (hlo_sizes_of(indices, index) == 1) {
    dim next = dim_add_const(onnx_dims(n), *index, 1);
    n->out[0] = hlo_reshape(n->b, hlo_slice_dim(n->b, n->in[0], axis, *index, next), to.rank, to.dims);
  } else {
    n->out[0] = hlo_take(n->b, n->in[0], indices, axis);
  }
  return NULL;
}

/* --- one index for each element --- */

/* A gather or scatter with one index for each element.  Models often expand one index for each row to all elements of
 * the row: along the dimensions in which indices repeat in this way, the gather or scatter has windows.  All other
 * dimensions but `axis` are batch dimensions of data and indices. */
typedef struct element_access {
  bool repeats[SHAPE_MAX_RANK];
  hlo_value indices; /* without the dimensions along which they repeat */
  int64_t axis, offset[SHAPE_MAX_RANK], batch[SHAPE_MAX_RANK], indices_batch[SHAPE_MAX_RANK];
  dim sizes[SHAPE_MAX_RANK]; /* of a window */
  hlo_gather_dims d;
} element_access;

/* Finds the dimensions along which indices repeat, which are a broadcast's.  If such a dimension were empty, no index
 * would be used, so that none could be out of range; therefore it must be known not to be. */
static void find_repeats(const onnx_node *n, int64_t axis, bool *repeats) {
  const hlo_instr *i = n->in[1].def;
  const shape *s = hlo_shape(n->in[1]);
  for (int k = 0; k < s->rank; k++) {
    repeats[k] = i->op == HLO_BROADCAST && k != axis && dim_is_const(s->dims[k]) && s->dims[k] > 0;
  }
  for (uint32_t k = 0; i->op == HLO_BROADCAST && k < hlo_n_ints(i, HLO_ATTR_DIMENSIONS); k++) {
    int64_t d = hlo_ints(i, HLO_ATTR_DIMENSIONS)[k];
    repeats[d] = repeats[d] && hlo_shape(i->operands[0])->dims[k] == 1;
  }
}

/* Returns the indices without the dimensions along which they repeat. */
static hlo_value distinct_indices(onnx_node *n, const bool *repeats) {
  const hlo_instr *i = n->in[1].def;
  const shape *s = hlo_shape(n->in[1]);
  shape kept = shape_scalar((dtype)s->type);
  int64_t number[SHAPE_MAX_RANK], along[SHAPE_MAX_RANK]; /* number: of a dimension of s in `kept` */
  for (int k = 0; k < s->rank; k++) {
    number[k] = kept.rank;
    if (!repeats[k]) {
      kept.dims[kept.rank++] = s->dims[k];
    }
  }
  if (kept.rank == s->rank) {
    return n->in[1];
  }
  dim from[SHAPE_MAX_RANK];
  int rank = 0;
  for (uint32_t k = 0; k < hlo_n_ints(i, HLO_ATTR_DIMENSIONS); k++) {
    int64_t d = hlo_ints(i, HLO_ATTR_DIMENSIONS)[k];
    if (!repeats[d]) {
      from[rank] = hlo_shape(i->operands[0])->dims[k];
      along[rank++] = number[d];
    }
  }
  return hlo_broadcast(n->b, hlo_reshape(n->b, i->operands[0], rank, from), kept, along);
}

/* Sets the members of *e after `repeats` and `indices`; dims[rank] are the extents of what is read or written. */
static void set_dims(int rank, const dim *dims, int64_t axis, element_access *e) {
  e->axis = axis;
  e->d = (hlo_gather_dims){.offset = e->offset,
                           .n_collapsed = 1,
                           .collapsed = &e->axis,
                           .operand_batch = e->batch,
                           .indices_batch = e->indices_batch,
                           .n_map = 1,
                           .map = &e->axis};
  for (int k = 0; k < rank; k++) {
    e->sizes[k] = e->repeats[k] ? dims[k] : 1;
    if (e->repeats[k]) {
      e->offset[e->d.n_offset++] = k;
      continue;
    }
    if (k != axis) {
      e->indices_batch[e->d.n_batch] = e->d.index_vector_dim;
      e->batch[e->d.n_batch++] = k;
    }
    e->d.index_vector_dim++;
  }
}

/* Sets *e; the indices are checked, and negative ones become positive. */
static status find_element_access(onnx_node *n, int64_t axis, element_access *e) {
  const shape *s = hlo_shape(n->in[0]), *si = hlo_shape(n->in[1]);
  find_repeats(n, axis, e->repeats);
  onnx_node with_distinct = *n;
  hlo_value in[] = {n->in[0], distinct_indices(n, e->repeats)};
  with_distinct.in = in;
  TRY(onnx_indices(&with_distinct, 1, "indices", s->dims[axis], &e->indices));
  set_dims(s->rank, si->dims, axis, e);
  return NULL;
}

/* Returns the part of data that the indices can address.  ONNX allows indices to be smaller than data in dimensions
 * other than `axis`; there the part has the extents of indices. */
static status reachable(onnx_node *n, int64_t axis, hlo_value *part) {
  const shape *s = hlo_shape(n->in[0]), *si = hlo_shape(n->in[1]);
  CHECK_THAT(s->rank == si->rank, INVALID, "data is %s but indices is %s; the ranks differ", SHAPE_STR(onnx_dims(n), s),
             SHAPE_STR(onnx_dims(n), si));
  dim starts[SHAPE_MAX_RANK] = {0}, limits[SHAPE_MAX_RANK];
  for (int k = 0; k < s->rank; k++) {
    limits[k] = k == axis ? s->dims[k] : si->dims[k];
    CHECK_THAT(dim_at_most(onnx_dims(n), limits[k], s->dims[k]), INVALID,
               "data is %s but indices is %s, larger in dimension %d", SHAPE_STR(onnx_dims(n), s),
               SHAPE_STR(onnx_dims(n), si), k);
  }
  shape reached = shape_make((dtype)s->type, s->rank, limits);
  *part = shape_same_dims(s, &reached) ? n->in[0] : hlo_slice(n->b, n->in[0], starts, limits, NULL);
  return NULL;
}

status onnx_import_gather_elements(onnx_node *n) {
  const shape *s = hlo_shape(n->in[0]);
  int64_t axis;
  hlo_value part;
  element_access e;
  TRY(onnx_axis_attr(n, 0, s->rank, &axis));
  TRY(reachable(n, axis, &part));
  TRY(find_element_access(n, axis, &e));
  if (!give_zeros(n, 1, &s->dims[axis], s->rank, hlo_shape(n->in[1])->dims)) {
    n->out[0] = hlo_gather(n->b, part, e.indices, &e.d, e.sizes);
  }
  return NULL;
}

/* The standard has the reductions max and min from version 18 on.  PyTorch's exporter writes them into models of
 * version 16 as well, and ONNX Runtime runs these. */
static status reduction_attr(const onnx_node *n, hlo_reducer *out) {
  static const struct {
    const char *name;
    int since;
    hlo_reducer reducer;
  } names[] = {
      {"none", 1, HLO_REDUCE_REPLACE}, {"add", 16, HLO_REDUCE_ADD}, {"mul", 16, HLO_REDUCE_MUL},
      {"max", 16, HLO_REDUCE_MAX},     {"min", 16, HLO_REDUCE_MIN},
  };
  const char *reduction;
  TRY(onnx_attr_string(n->arena, n->proto, "reduction", "none", &reduction));
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    if (strcmp(names[k].name, reduction) == 0 && n->since >= names[k].since) {
      *out = onnx_reducer_for(hlo_type(n->in[0]), names[k].reducer);
      return NULL;
    }
  }
  return status_error(INVALID, "reduction is '%s', which version %d does not have", reduction, n->since);
}

/* Scatters into the part of data that the indices can address, and then writes that part back into data. */
status onnx_import_scatter_elements(onnx_node *n) {
  const shape *s = hlo_shape(n->in[0]), *si = hlo_shape(n->in[1]), *su = hlo_shape(n->in[2]);
  int64_t axis;
  hlo_value part;
  hlo_reducer reducer;
  element_access e;
  TRY(onnx_axis_attr(n, 0, s->rank, &axis));
  TRY(reduction_attr(n, &reducer));
  CHECK_THAT(onnx_has_dims(n, su, si->rank, si->dims), INVALID, "indices is %s but updates is %s; the dims differ",
             SHAPE_STR(onnx_dims(n), si), SHAPE_STR(onnx_dims(n), su));
  TRY(reachable(n, axis, &part));
  TRY(find_element_access(n, axis, &e));
  hlo_value y = hlo_scatter(n->b, part, e.indices, n->in[2], &e.d, reducer);
  if (!hlo_value_equal(part, n->in[0])) {
    static const int64_t corner[SHAPE_MAX_RANK];
    y = hlo_dynamic_update_slice(n->b, n->in[0], y, hlo_s64s(n->b, corner, s->rank));
  }
  n->out[0] = y;
  return NULL;
}

/* --- one tuple of indices for each slice --- */

/* Returns the number k of indices in a tuple, which is the extent of the last dimension of indices.  A tuple selects
 * one index in each of the k dimensions of data from dimension `batch` on. */
static status tuple_length(onnx_node *n, int64_t batch, int64_t *k) {
  const shape *s = hlo_shape(n->in[0]), *si = hlo_shape(n->in[1]);
  CHECK_THAT(si->rank >= 1 && batch < si->rank && batch < s->rank + (batch == 0), INVALID,
             "indices is %s and data is %s; both ranks must be above batch_dims %" PRId64, SHAPE_STR(onnx_dims(n), si),
             SHAPE_STR(onnx_dims(n), s), batch);
  TRY(onnx_const_dim(n, si->dims[si->rank - 1], "the last dimension of indices", k));
  CHECK_THAT(*k <= s->rank - batch, INVALID,
             "indices is %s; its last dim must be at most %" PRId64 ", since data is %s", SHAPE_STR(onnx_dims(n), si),
             s->rank - batch, SHAPE_STR(onnx_dims(n), s));
  return NULL;
}

status onnx_import_gather_nd(onnx_node *n) {
  const shape *s = hlo_shape(n->in[0]), *si = hlo_shape(n->in[1]);
  int64_t batch, k, offset[SHAPE_MAX_RANK];
  hlo_value indices;
  TRY(onnx_attr_int_in(n->proto, "batch_dims", 0, 0, SHAPE_MAX_RANK, &batch));
  TRY(tuple_length(n, batch, &k));
  TRY(onnx_index_tuples(n, 1, "indices", (uint32_t)k, s->dims + batch, &indices));
  uint32_t n_offset = (uint32_t)(s->rank - batch - k);
  CHECK_THAT(si->rank - 1 + n_offset <= SHAPE_MAX_RANK, STATUS_UNSUPPORTED, "the result's rank is above %d",
             SHAPE_MAX_RANK);
  for (uint32_t j = 0; j < n_offset; j++) {
    offset[j] = si->rank - 1 + j;
  }
  dim sizes[SHAPE_MAX_RANK];
  for (int j = 0; j < s->rank; j++) {
    sizes[j] = j < batch + k ? 1 : s->dims[j];
  }
  hlo_gather_dims d = {.n_offset = n_offset,
                       .offset = offset,
                       .n_collapsed = (uint32_t)k,
                       .collapsed = counting + batch,
                       .n_batch = (uint32_t)batch,
                       .operand_batch = counting,
                       .indices_batch = counting,
                       .n_map = (uint32_t)k,
                       .map = counting + batch,
                       .index_vector_dim = si->rank - 1};
  dim dims[SHAPE_MAX_RANK]; /* the dimensions of the result */
  memcpy(dims, si->dims, sizeof dims);
  memcpy(dims + si->rank - 1, s->dims + batch + k, n_offset * sizeof *dims);
  if (!give_zeros(n, (int)k, s->dims + batch, si->rank - 1 + (int)n_offset, dims)) {
    n->out[0] = hlo_gather(n->b, n->in[0], indices, &d, sizes);
  }
  return NULL;
}

status onnx_import_scatter_nd(onnx_node *n) {
  const shape *s = hlo_shape(n->in[0]), *si = hlo_shape(n->in[1]), *su = hlo_shape(n->in[2]);
  int64_t k, window[SHAPE_MAX_RANK];
  hlo_value indices;
  hlo_reducer reducer;
  TRY(reduction_attr(n, &reducer));
  TRY(tuple_length(n, 0, &k));
  TRY(onnx_index_tuples(n, 1, "indices", (uint32_t)k, s->dims, &indices));
  uint32_t n_window = (uint32_t)(s->rank - k);
  CHECK_THAT(su->rank == si->rank - 1 + (int)n_window, INVALID, "updates is %s; rank %d is required",
             SHAPE_STR(onnx_dims(n), su), si->rank - 1 + (int)n_window);
  for (uint32_t j = 0; j < n_window; j++) {
    window[j] = si->rank - 1 + j;
    CHECK_THAT(dim_equal(onnx_dims(n), su->dims[window[j]], s->dims[k + j]), INVALID,
               "updates is %s but data is %s; the last %" PRIu32 " dims must be equal", SHAPE_STR(onnx_dims(n), su),
               SHAPE_STR(onnx_dims(n), s), n_window);
  }
  hlo_gather_dims d = {.n_offset = n_window,
                       .offset = window,
                       .n_collapsed = (uint32_t)k,
                       .collapsed = counting,
                       .n_map = (uint32_t)k,
                       .map = counting,
                       .index_vector_dim = si->rank - 1};
  n->out[0] = hlo_scatter(n->b, n->in[0], indices, n->in[2], &d, reducer);
  return NULL;
}

/* --- ReverseSequence and TensorScatter --- */

/* Returns an s64 array of these dimensions whose elements are their own positions along `dimension`. */
static hlo_value positions(hlo_builder *b, int rank, const dim *dims, int64_t dimension) {
  return hlo_iota(b, shape_make(DTYPE_S64, rank, dims), dimension);
}

/* Broadcasts x, which has one number for each batch element, to s64 of the given dimensions. */
static hlo_value spread_batch(hlo_builder *b, hlo_value x, int rank, const dim *dims, int64_t batch_axis) {
  return hlo_broadcast(b, hlo_convert(b, x, DTYPE_S64), shape_make(DTYPE_S64, rank, dims), &batch_axis);
}

static status check_batch_list(const onnx_node *n, uint32_t k, const char *what, dim batch) {
  const shape *s = hlo_shape(n->in[k]);
  dim_table *t = onnx_dims(n);
  CHECK_THAT(onnx_has_dims(n, s, 1, &batch), INVALID, "%s is %s; a list of %s is required", what, SHAPE_STR(t, s),
             dim_print(n->arena, t, batch));
  return NULL;
}

/* Gathers along the time axis: element t of the result is element length - 1 - t of the input if t < length, the entry
 * of sequence_lens for the batch element, otherwise element t.  The indices have the two leading dimensions of the
 * input, which are batch and time in either order. */
status onnx_import_reverse_sequence(onnx_node *n) {
  hlo_builder *b = n->b;
  const shape *s = hlo_shape(n->in[0]);
  int64_t batch_axis, time_axis;
  TRY(onnx_attr_int_in(n->proto, "batch_axis", 1, 0, 1, &batch_axis));
  TRY(onnx_attr_int_in(n->proto, "time_axis", 0, 0, 1, &time_axis));
  CHECK_THAT(batch_axis != time_axis, INVALID, "batch_axis and time_axis are both %" PRId64, batch_axis);
  CHECK_THAT(s->rank >= 2, INVALID, "input is %s; rank 2 or more is required", SHAPE_STR(onnx_dims(n), s));
  TRY(check_batch_list(n, 1, "sequence_lens", s->dims[batch_axis]));
  TRY(onnx_check_below(n, n->in[1], "sequence_lens", dim_add_const(onnx_dims(n), s->dims[time_axis], 1)));
  hlo_value t = positions(b, 2, s->dims, time_axis);
  hlo_value length = spread_batch(b, n->in[1], 2, s->dims, batch_axis);
  hlo_value turned = onnx_binary_scalar(b, HLO_SUB, hlo_binary(b, HLO_SUB, length, t), 1);
  hlo_value index = hlo_select(b, hlo_compare(b, HLO_LT, t, length), turned, t);
  dim sizes[SHAPE_MAX_RANK];
  for (int k = 0; k < s->rank; k++) {
    sizes[k] = k < 2 ? 1 : s->dims[k];
  }
  hlo_gather_dims d = {.n_offset = (uint32_t)s->rank - 2,
                       .offset = counting + 2,
                       .n_collapsed = 1,
                       .collapsed = &time_axis,
                       .n_batch = 1,
                       .operand_batch = &batch_axis,
                       .indices_batch = &batch_axis,
                       .n_map = 1,
                       .map = &time_axis,
                       .index_vector_dim = 2};
  if (!give_zeros(n, 1, &s->dims[time_axis], s->rank, s->dims)) {
    n->out[0] = hlo_gather(b, n->in[0], index, &d, sizes);
  }
  return NULL;
}

static status check_update(const onnx_node *n, int64_t axis) {
  const shape *s = hlo_shape(n->in[0]), *su = hlo_shape(n->in[1]);
  shape rest = *su;
  CHECK_THAT(su->rank == s->rank, INVALID, "update is %s but past_cache is %s; the ranks differ",
             SHAPE_STR(onnx_dims(n), su), SHAPE_STR(onnx_dims(n), s));
  rest.dims[axis] = s->dims[axis];
  CHECK_THAT(onnx_has_dims(n, s, rest.rank, rest.dims) && dim_at_most(onnx_dims(n), su->dims[axis], s->dims[axis]),
             INVALID, "update is %s but past_cache is %s; only dimension %" PRId64 " may be smaller",
             SHAPE_STR(onnx_dims(n), su), SHAPE_STR(onnx_dims(n), s), axis);
  return NULL;
}

/* Element i of the update along the axis is written at position write_indices[batch] + i, modulo the axis's extent if
 * `mode` is circular. */
status onnx_import_tensor_scatter(onnx_node *n) {
  hlo_builder *b = n->b;
  const shape *s = hlo_shape(n->in[0]), *su = hlo_shape(n->in[1]);
  int64_t axis;
  const char *mode;
  element_access e;
  TRY(onnx_axis_attr(n, -2, s->rank, &axis));
  CHECK_THAT(axis != 0, INVALID, "axis is 0, the batch");
  TRY(onnx_attr_string(n->arena, n->proto, "mode", "linear", &mode));
  bool circular = strcmp(mode, "circular") == 0;
  CHECK_THAT(circular || strcmp(mode, "linear") == 0, INVALID, "mode is '%s', not linear or circular", mode);
  TRY(check_update(n, axis));
  dim listed[] = {su->dims[0], su->dims[axis]}; /* an index for each of these has windows in the other dimensions */
  hlo_value index = positions(b, 2, listed, 1);
  if (onnx_has_in(n, 2)) {
    TRY(check_batch_list(n, 2, "write_indices", s->dims[0]));
    dim_table *t = onnx_dims(n);
    dim places = dim_add_const(t, dim_sub(t, s->dims[axis], su->dims[axis]), 1);
    TRY(onnx_check_below(n, n->in[2], "write_indices", circular ? DIM_MAX : places));
    index = hlo_binary(b, HLO_ADD, index, spread_batch(b, n->in[2], 2, listed, 0));
  }
  if (circular) {
    index = onnx_binary_dim(b, HLO_REM, index, s->dims[axis]);
  }
  for (int k = 0; k < s->rank; k++) {
    e.repeats[k] = k != 0 && k != axis;
  }
  set_dims(s->rank, su->dims, axis, &e);
  n->out[0] = hlo_scatter(b, n->in[0], index, n->in[1], &e.d, HLO_REDUCE_REPLACE);
  return NULL;
}
