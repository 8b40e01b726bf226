/* move.c - rules of data movement: the gradient of an element goes back to where the element came from, and the
 * gradients of an element with several copies are added. */
#include <string.h>

#include "hlo/gradient/rules.h"

void hlo_gradient_copy(hlo_tape *t, hlo_instr *i, hlo_value dy) { hlo_tape_add(t, i, 0, dy); }

void hlo_gradient_reshape(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  const shape *x = hlo_shape(i->operands[0]);
  hlo_tape_add(t, i, 0, hlo_reshape(t->b, dy, x->rank, x->dims));
}

/* The gradient of the operand is the sum of dy over the dimensions that the operand lacks or in which its extent is
 * 1. */
void hlo_gradient_broadcast(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  const shape *x = hlo_shape(i->operands[0]), *y = &i->shapes[0];
  const int64_t *to = hlo_ints(i, HLO_ATTR_DIMENSIONS);
  bool kept[SHAPE_MAX_RANK] = {false};
  int64_t summed[SHAPE_MAX_RANK];
  uint32_t n = 0;
  for (int k = 0; k < x->rank; k++) {
    kept[to[k]] = x->dims[k] == y->dims[to[k]];
  }
  for (int k = 0; k < y->rank; k++) {
    if (!kept[k]) {
      summed[n++] = k;
    }
  }
  hlo_value sum = hlo_reduce(t->b, dy, HLO_REDUCE_ADD, n, summed);
  hlo_tape_add(t, i, 0, hlo_reshape(t->b, sum, x->rank, x->dims));
}

void hlo_gradient_transpose(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  const int64_t *from = hlo_ints(i, HLO_ATTR_PERMUTATION);
  int64_t back[SHAPE_MAX_RANK];
  for (int k = 0; k < i->shapes[0].rank; k++) {
    back[from[k]] = k;
  }
  hlo_tape_add(t, i, 0, hlo_transpose(t->b, dy, back));
}

void hlo_gradient_reverse(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  hlo_tape_add(t, i, 0, hlo_reverse(t->b, dy, hlo_n_ints(i, HLO_ATTR_DIMENSIONS), hlo_ints(i, HLO_ATTR_DIMENSIONS)));
}

static hlo_value zero_of(hlo_builder *b, hlo_value x) { return hlo_scalar(b, hlo_type(x), 0); }

/* The gradient of the operand is dy with zeros for the elements that the slice leaves out, between and around dy's. */
void hlo_gradient_slice(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  const shape *x = hlo_shape(i->operands[0]);
  const int64_t *starts = hlo_ints(i, HLO_ATTR_STARTS), *strides = hlo_ints(i, HLO_ATTR_STRIDES);
  int64_t high[SHAPE_MAX_RANK], interior[SHAPE_MAX_RANK];
  for (int k = 0; k < x->rank; k++) {
    int64_t n = i->shapes[0].dims[k], extent = n ? (n - 1) * strides[k] + 1 : 0;
    interior[k] = n > 1 ? strides[k] - 1 : 0;
    high[k] = x->dims[k] - starts[k] - extent;
  }
  hlo_tape_add(t, i, 0, hlo_pad(t->b, dy, zero_of(t->b, dy), starts, high, interior));
}

/* Returns the elements of dy that come from the operand and not from padding.  Zeros stand for elements of the operand
 * that negative padding cropped.  An empty dimension has no interior padding, whatever the attribute says. */
static hlo_value unpad(hlo_builder *b, const hlo_instr *i, hlo_value dy) {
  const shape *x = hlo_shape(i->operands[0]);
  int64_t low[SHAPE_MAX_RANK], high[SHAPE_MAX_RANK], starts[SHAPE_MAX_RANK] = {0}, limits[SHAPE_MAX_RANK],
                                                     strides[SHAPE_MAX_RANK];
  for (int k = 0; k < x->rank; k++) {
    int64_t n = x->dims[k], step = hlo_ints(i, HLO_ATTR_INTERIOR)[k] + 1;
    low[k] = -hlo_ints(i, HLO_ATTR_LOW)[k];
    high[k] = -hlo_ints(i, HLO_ATTR_HIGH)[k];
    limits[k] = n ? (n - 1) * step + 1 : 0;
    strides[k] = step;
  }
  return hlo_slice(b, hlo_pad(b, dy, zero_of(b, dy), low, high, NULL), starts, limits, strides);
}

void hlo_gradient_pad(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  hlo_builder *b = t->b;
  hlo_value x = i->operands[0];
  if (hlo_tape_needs(t, i, 0)) {
    hlo_tape_add(t, i, 0, unpad(b, i, dy));
  }
  /* The gradient of the padding value is the sum of dy over the padding.  It is computed with a mask, since the
   * difference of two sums would lose digits. */
  if (hlo_tape_needs(t, i, 1)) {
    hlo_value mask = hlo_pad(b, hlo_like(b, x, 0), hlo_scalar(b, hlo_type(x), 1), hlo_ints(i, HLO_ATTR_LOW),
                             hlo_ints(i, HLO_ATTR_HIGH), hlo_ints(i, HLO_ATTR_INTERIOR));
    hlo_tape_add(t, i, 1, hlo_sum_all(b, hlo_binary(b, HLO_MUL, dy, mask)));
  }
}

void hlo_gradient_concatenate(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  int64_t d = hlo_int(i, HLO_ATTR_DIMENSION), start = 0;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    int64_t limit = start + hlo_shape(i->operands[k])->dims[d];
    if (hlo_tape_needs(t, i, k)) {
      hlo_tape_add(t, i, k, hlo_slice_dim(t->b, dy, d, start, limit));
    }
    start = limit;
  }
}

void hlo_gradient_dynamic_slice(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  hlo_value sum = hlo_tape_take(t, i, 0), starts = i->operands[1];
  if (sum.def) {
    dy = hlo_binary(t->b, HLO_ADD, hlo_dynamic_slice(t->b, sum, starts, hlo_ints(i, HLO_ATTR_SIZES)), dy);
  } else {
    sum = hlo_like(t->b, i->operands[0], 0);
  }
  hlo_tape_add(t, i, 0, hlo_dynamic_update_slice(t->b, sum, dy, starts));
}

void hlo_gradient_dynamic_update_slice(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  hlo_value update = i->operands[1], starts = i->operands[2];
  if (hlo_tape_needs(t, i, 0)) {
    hlo_tape_add(t, i, 0, hlo_dynamic_update_slice(t->b, dy, hlo_like(t->b, update, 0), starts));
  }
  if (hlo_tape_needs(t, i, 1)) {
    hlo_tape_add(t, i, 1, hlo_dynamic_slice(t->b, dy, starts, hlo_shape(update)->dims));
  }
}

/* --- gather and scatter --- */

static hlo_gather_dims dims_of(const hlo_instr *i) {
  return (hlo_gather_dims){.n_offset = hlo_n_ints(i, HLO_ATTR_OFFSET_DIMS),
                           .offset = hlo_ints(i, HLO_ATTR_OFFSET_DIMS),
                           .n_collapsed = hlo_n_ints(i, HLO_ATTR_COLLAPSED_DIMS),
                           .collapsed = hlo_ints(i, HLO_ATTR_COLLAPSED_DIMS),
                           .n_batch = hlo_n_ints(i, HLO_ATTR_OPERAND_BATCH),
                           .operand_batch = hlo_ints(i, HLO_ATTR_OPERAND_BATCH),
                           .indices_batch = hlo_ints(i, HLO_ATTR_INDICES_BATCH),
                           .n_map = hlo_n_ints(i, HLO_ATTR_INDEX_MAP),
                           .map = hlo_ints(i, HLO_ATTR_INDEX_MAP),
                           .index_vector_dim = hlo_int(i, HLO_ATTR_INDEX_VECTOR_DIM)};
}

/* Returns an array in the shape of the indices: for each component of an index, the largest value at which a window
 * with the extents `sizes` still lies inside of x. */
static hlo_value last_starts(hlo_builder *b, hlo_value indices, const hlo_gather_dims *d, const shape *x,
                             const dim *sizes) {
  const shape *s = hlo_shape(indices);
  int64_t last[SHAPE_MAX_RANK];
  for (uint32_t k = 0; k < d->n_map; k++) {
    last[k] = x->dims[d->map[k]] - sizes[d->map[k]];
  }
  if (d->index_vector_dim == s->rank) {
    return hlo_broadcast_to(b, hlo_scalar_int(b, hlo_type(indices), last[0]), s);
  }
  hlo_value list = hlo_convert(b, hlo_s64s(b, last, d->n_map), hlo_type(indices));
  return hlo_broadcast(b, list, *s, &d->index_vector_dim);
}

/* gather clamps an index so that its window fits, but scatter skips an update whose window does not fit.  So the
 * indices are clamped before the scatter. */
void hlo_gradient_gather(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  hlo_builder *b = t->b;
  hlo_value x = i->operands[0], indices = i->operands[1];
  hlo_gather_dims d = dims_of(i);
  if (d.n_map) {
    hlo_value last = last_starts(b, indices, &d, hlo_shape(x), hlo_ints(i, HLO_ATTR_SIZES));
    indices = hlo_clamp(b, hlo_like(b, indices, 0), indices, last);
  }
  hlo_value sum = hlo_tape_take(t, i, 0);
  sum = sum.def ? sum : hlo_like(b, x, 0);
  hlo_tape_add(t, i, 0, hlo_scatter(b, sum, indices, dy, &d, HLO_REDUCE_ADD));
}

/* Computes the extents of the window, in the dimensions of the operand, that one update of a scatter writes. */
static void window_of(const hlo_instr *i, const hlo_gather_dims *d, dim *sizes) {
  const shape *x = hlo_shape(i->operands[0]), *updates = hlo_shape(i->operands[2]);
  bool single[SHAPE_MAX_RANK] = {false};
  uint32_t at = 0;
  for (uint32_t k = 0; k < d->n_collapsed; k++) {
    single[d->collapsed[k]] = true;
  }
  for (uint32_t k = 0; k < d->n_batch; k++) {
    single[d->operand_batch[k]] = true;
  }
  for (int k = 0; k < x->rank; k++) {
    sizes[k] = single[k] ? 1 : updates->dims[d->offset[at++]];
  }
}

/* Returns the elements of v, which has the shape of the scatter's result, at the positions that the updates write.  The
 * result has the shape of the updates. */
static hlo_value read_back(hlo_builder *b, const hlo_instr *i, hlo_value v) {
  hlo_gather_dims d = dims_of(i);
  dim sizes[SHAPE_MAX_RANK];
  window_of(i, &d, sizes);
  return hlo_gather(b, v, i->operands[1], &d, sizes);
}

/* Returns for each update whether it is the last one that writes to its position.  To find out, each update writes its
 * number, and the numbers are read back; updates that are out of bounds write nothing. */
static hlo_value last_writers(hlo_builder *b, const hlo_instr *i) {
  hlo_value updates = i->operands[2];
  const shape *u = hlo_shape(updates);
  dim count = shape_elements(u);
  hlo_gather_dims d = dims_of(i);
  hlo_value number = hlo_reshape(b, hlo_iota(b, shape_make(DTYPE_S64, 1, &count), 0), u->rank, u->dims);
  hlo_value nobody = hlo_splat(b, shape_with_type(i->shapes[0], DTYPE_S64), -1);
  hlo_value written = hlo_scatter(b, nobody, i->operands[1], number, &d, HLO_REDUCE_REPLACE);
  return hlo_compare(b, HLO_EQ, read_back(b, i, written), number);
}

/* Returns for each update whether its window is within bounds.  Updates that are out of bounds have no effect. */
static hlo_value fitting(hlo_builder *b, const hlo_instr *i) {
  hlo_gather_dims d = dims_of(i);
  hlo_value indices = i->operands[1];
  const shape *updates = hlo_shape(i->operands[2]);
  shape preds = shape_with_type(*updates, DTYPE_PRED);
  dim sizes[SHAPE_MAX_RANK];
  if (!d.n_map) {
    return hlo_splat(b, preds, 1);
  }
  window_of(i, &d, sizes);
  hlo_value low = hlo_compare(b, HLO_GE, indices, hlo_like(b, indices, 0));
  hlo_value high = hlo_compare(b, HLO_LE, indices, last_starts(b, indices, &d, hlo_shape(i->operands[0]), sizes));
  hlo_value fits = hlo_binary(b, HLO_AND, low, high);
  if (d.index_vector_dim < hlo_rank(indices)) {
    fits = hlo_reduce(b, fits, HLO_REDUCE_AND, 1, &d.index_vector_dim);
  }
  int64_t to[SHAPE_MAX_RANK];
  uint32_t n = 0, offset = 0;
  for (int k = 0; k < updates->rank; k++) {
    if (offset < d.n_offset && d.offset[offset] == k) {
      offset++;
    } else {
      to[n++] = k;
    }
  }
  return hlo_broadcast(b, fits, preds, to);
}

static void scatter_replace(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  hlo_builder *b = t->b;
  hlo_gather_dims d = dims_of(i);
  if (hlo_tape_needs(t, i, 0)) {
    hlo_value zeros = hlo_like(b, i->operands[2], 0);
    hlo_tape_add(t, i, 0, hlo_scatter(b, dy, i->operands[1], zeros, &d, HLO_REDUCE_REPLACE));
  }
  if (hlo_tape_needs(t, i, 2)) {
    hlo_tape_add(t, i, 2, hlo_select_or_zero(b, last_writers(b, i), read_back(b, i, dy)));
  }
}

/* The rule of a scatter that keeps the maximum or minimum: all elements of the operand and of the updates that equal an
 * element of the result share its gradient. */
static void scatter_extreme(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  hlo_builder *b = t->b;
  hlo_value y = hlo_result(i, 0), x = i->operands[0], updates = i->operands[2];
  hlo_gather_dims d = dims_of(i);
  hlo_value old_wins = hlo_compare(b, HLO_EQ, x, y);
  hlo_value new_wins = hlo_binary(b, HLO_AND, fitting(b, i), hlo_compare(b, HLO_EQ, updates, read_back(b, i, y)));
  hlo_value winners = hlo_scatter(b, hlo_convert(b, old_wins, hlo_type(x)), i->operands[1],
                                  hlo_convert(b, new_wins, hlo_type(x)), &d, HLO_REDUCE_ADD);
  hlo_value share = hlo_binary(b, HLO_DIV, dy, winners);
  hlo_tape_add(t, i, 0, hlo_select_or_zero(b, old_wins, share));
  hlo_tape_add(t, i, 2, hlo_select_or_zero(b, new_wins, read_back(b, i, share)));
}

void hlo_gradient_scatter(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  hlo_builder *b = t->b;
  hlo_gather_dims d = dims_of(i);
  switch ((hlo_reducer)hlo_int(i, HLO_ATTR_REDUCER)) {
    case HLO_REDUCE_REPLACE: scatter_replace(t, i, dy); break;
    case HLO_REDUCE_ADD:
      hlo_tape_add(t, i, 0, dy);
      if (hlo_tape_needs(t, i, 2)) {
        hlo_tape_add(t, i, 2, hlo_select_or_zero(b, fitting(b, i), read_back(b, i, dy)));
      }
      break;
    case HLO_REDUCE_MUL:
      if (hlo_tape_needs(t, i, 2)) {
        hlo_tape_refuse(t, i, "the factors of products");
      } else {
        hlo_value factors = hlo_scatter(b, hlo_like(b, dy, 1), i->operands[1], i->operands[2], &d, HLO_REDUCE_MUL);
        hlo_tape_add(t, i, 0, hlo_binary(b, HLO_MUL, dy, factors));
      }
      break;
    default: scatter_extreme(t, i, dy);
  }
}

/* --- sorting --- */

/* Sorting the positions along with the operands tells where each result comes from; sorting the gradients by these
 * positions moves them back. */
void hlo_gradient_sort(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  hlo_builder *b = t->b;
  arena *a = hlo_arena(b);
  int64_t d = hlo_int(i, HLO_ATTR_DIMENSION);
  hlo_value place[2] = {i->operands[0], hlo_iota(b, shape_with_type(i->shapes[0], DTYPE_S64), d)};
  hlo_value *moved = ARENA_NEW_N(a, hlo_value, i->n_operands + 1);
  uint32_t *which = ARENA_NEW_N(a, uint32_t, i->n_operands + 1), n = 1;
  hlo_sort(b, 2, place, d, hlo_int(i, HLO_ATTR_DESCENDING), place);
  moved[0] = place[1];
  for (uint32_t k = 0; k < i->n_operands; k++) {
    hlo_value g = hlo_tape_get(t, i, k);
    if (g.def && hlo_tape_needs(t, i, k)) {
      which[n] = k;
      moved[n++] = g;
    }
  }
  hlo_value *back = ARENA_NEW_N(a, hlo_value, n);
  hlo_sort(b, n, moved, d, false, back);
  for (uint32_t k = 1; k < n; k++) {
    hlo_tape_add(t, i, which[k], back[k]);
  }
}
