/* move.c - rules of operations that only move elements: reshape, broadcast, slice, pad, concatenate, reverse and
 * copy, and of dynamic-slice and gather whose operand is one repeated element. */
#include <string.h>

#include "hlo/passes/simplify/simplify.h"

static hlo_instr *operand(const hlo_instr *i, uint32_t k) { return i->operands[k].def; }
static const shape *from_shape(const hlo_instr *i) { return hlo_shape(i->operands[0]); }

int hlo_real_dims(const shape *s, int64_t *kept) {
  int n = 0;
  for (int k = 0; k < s->rank; k++) {
    if (s->dims[k] != 1) {
      kept[n++] = k;
    }
  }
  return n;
}

/* Returns true if the shapes differ only in dimensions of 1. */
static bool same_real_dims(const shape *x, const shape *y) {
  int64_t in_x[SHAPE_MAX_RANK], in_y[SHAPE_MAX_RANK];
  int n = hlo_real_dims(x, in_x);
  if (n != hlo_real_dims(y, in_y)) {
    return false;
  }
  for (int k = 0; k < n; k++) {
    if (x->dims[in_x[k]] != y->dims[in_y[k]]) {
      return false;
    }
  }
  return true;
}

/* --- movement of splats, and copies --- */

/* A splat stays a splat under any movement. */
static bool move_splat(hlo_builder *b, hlo_instr *i) {
  hlo_value x = i->operands[0];
  while (x.def->op == HLO_BROADCAST) {
    x = x.def->operands[0];
  }
  if (operand(i, 0)->op != HLO_BROADCAST || hlo_rank(x) != 0) {
    return false; /* constants are left for fold */
  }
  return hlo_becomes(i, i->shapes[0].rank ? hlo_broadcast(b, x, i->shapes[0], NULL) : x);
}

static bool copy_nothing(hlo_builder *b, hlo_instr *i) { return hlo_becomes(i, i->operands[0]); }

/* --- reshape --- */

static bool reshape_same(hlo_builder *b, hlo_instr *i) {
  return shape_same_dims(from_shape(i), &i->shapes[0]) && hlo_becomes(i, i->operands[0]);
}

static bool reshape_twice(hlo_builder *b, hlo_instr *i) {
  hlo_instr *x = operand(i, 0);
  return x->op == HLO_RESHAPE && hlo_becomes(i, hlo_reshape_to(b, x->operands[0], &i->shapes[0]));
}

/* If the reshape only adds or removes dimensions of 1, the broadcast can do that itself.  The broadcast's operand has
 * no dimensions of 1, since broadcast_ones has removed them. */
static bool reshape_broadcast(hlo_builder *b, hlo_instr *i) {
  hlo_instr *x = operand(i, 0);
  if (x->op != HLO_BROADCAST || !same_real_dims(from_shape(i), &i->shapes[0])) {
    return false;
  }
  int64_t from[SHAPE_MAX_RANK], to[SHAPE_MAX_RANK], dims[SHAPE_MAX_RANK], place[SHAPE_MAX_RANK];
  int n = hlo_real_dims(from_shape(i), from);
  hlo_real_dims(&i->shapes[0], to);
  for (int k = 0; k < SHAPE_MAX_RANK; k++) {
    place[k] = -1;
  }
  for (int k = 0; k < n; k++) {
    place[from[k]] = to[k];
  }
  for (int k = 0; k < from_shape(x)->rank; k++) {
    dims[k] = place[hlo_ints(x, HLO_ATTR_DIMENSIONS)[k]];
    if (dims[k] < 0) {
      return false;
    }
  }
  return hlo_becomes(i, hlo_broadcast(b, x->operands[0], i->shapes[0], dims));
}

/* If a reshape of a transpose only adds or removes dimensions of 1, that can be done before the transpose, which can
 * then meet another one.  The added dimensions come first there. */
static bool reshape_transpose(hlo_builder *b, hlo_instr *i) {
  hlo_instr *x = operand(i, 0);
  if (x->op != HLO_TRANSPOSE || x->n_uses > 1 || !same_real_dims(from_shape(i), &i->shapes[0])) {
    return false;
  }
  const shape *y = from_shape(x), *to = &i->shapes[0];
  int64_t kept[SHAPE_MAX_RANK], turned[SHAPE_MAX_RANK], place[SHAPE_MAX_RANK] = {0}, p[SHAPE_MAX_RANK];
  dim extents[SHAPE_MAX_RANK];
  int n = hlo_real_dims(y, kept), ones = to->rank - n, next_one = 0, next = 0;
  for (int k = 0; k < ones; k++) {
    extents[k] = 1;
  }
  for (int k = 0; k < n; k++) {
    extents[ones + k] = y->dims[kept[k]];
    place[kept[k]] = ones + k;
  }
  hlo_real_dims(from_shape(i), turned);
  for (int k = 0; k < to->rank; k++) {
    p[k] = to->dims[k] == 1 ? next_one++ : place[hlo_ints(x, HLO_ATTR_PERMUTATION)[turned[next++]]];
  }
  return hlo_becomes(i, hlo_transpose(b, hlo_reshape(b, x->operands[0], to->rank, extents), p));
}

/* --- broadcast --- */

static bool broadcast_same(hlo_builder *b, hlo_instr *i) {
  return shape_same_dims(from_shape(i), &i->shapes[0]) && hlo_becomes(i, i->operands[0]);
}

/* A broadcast that only adds dimensions of 1 is a reshape. */
static bool broadcast_reshapes(hlo_builder *b, hlo_instr *i) {
  const shape *x = from_shape(i);
  return shape_is_static(x) && x->rank && same_real_dims(x, &i->shapes[0]) &&
         hlo_becomes(i, hlo_reshape_to(b, i->operands[0], &i->shapes[0]));
}

static bool broadcast_twice(hlo_builder *b, hlo_instr *i) {
  hlo_instr *x = operand(i, 0);
  if (x->op != HLO_BROADCAST) {
    return false;
  }
  int64_t dims[SHAPE_MAX_RANK] = {0};
  for (int k = 0; k < from_shape(x)->rank; k++) {
    dims[k] = hlo_ints(i, HLO_ATTR_DIMENSIONS)[hlo_ints(x, HLO_ATTR_DIMENSIONS)[k]];
  }
  return hlo_becomes(i, hlo_broadcast(b, x->operands[0], i->shapes[0], dims));
}

/* Removes the operand's dimensions of 1 from a broadcast, which can add them itself. */
static bool broadcast_ones(hlo_builder *b, hlo_instr *i) {
  const shape *x = from_shape(i);
  int64_t kept[SHAPE_MAX_RANK], dims[SHAPE_MAX_RANK];
  dim extents[SHAPE_MAX_RANK];
  int n = hlo_real_dims(x, kept);
  if (n == x->rank) {
    return false;
  }
  for (int k = 0; k < n; k++) {
    extents[k] = x->dims[kept[k]];
    dims[k] = hlo_ints(i, HLO_ATTR_DIMENSIONS)[kept[k]];
  }
  return hlo_becomes(i, hlo_broadcast(b, hlo_reshape(b, i->operands[0], n, extents), i->shapes[0], dims));
}

/* --- reverse --- */

static bool reverse_twice(hlo_builder *b, hlo_instr *i) {
  hlo_instr *x = operand(i, 0);
  return x->op == HLO_REVERSE && hlo_same_operation(x, i) && hlo_becomes(i, x->operands[0]);
}

static bool reverse_ones(hlo_builder *b, hlo_instr *i) {
  int64_t dims[SHAPE_MAX_RANK];
  uint32_t n = 0, all = hlo_n_ints(i, HLO_ATTR_DIMENSIONS);
  for (uint32_t k = 0; k < all; k++) {
    int64_t d = hlo_ints(i, HLO_ATTR_DIMENSIONS)[k];
    if (i->shapes[0].dims[d] != 1) {
      dims[n++] = d;
    }
  }
  if (n == all && n) {
    return false;
  }
  return hlo_becomes(i, n ? hlo_reverse(b, i->operands[0], n, dims) : i->operands[0]);
}

/* --- slice --- */

typedef struct window {
  const int64_t *starts, *limits, *strides;
} window;

static window window_of(const hlo_instr *i) {
  return (window){hlo_ints(i, HLO_ATTR_STARTS), hlo_ints(i, HLO_ATTR_LIMITS), hlo_ints(i, HLO_ATTR_STRIDES)};
}

static bool takes_all(const window *w, const shape *x, int k) {
  return w->starts[k] == 0 && w->limits[k] == x->dims[k] && w->strides[k] == 1;
}

/* Returns true if the starts, limits and extents of the slice are constants. */
static bool is_fixed(const hlo_instr *i) {
  window w = window_of(i);
  for (int k = 0; k < i->shapes[0].rank; k++) {
    if (!dim_is_const(w.starts[k]) || !dim_is_const(w.limits[k]) || !dim_is_const(i->shapes[0].dims[k])) {
      return false;
    }
  }
  return true;
}

static bool slice_all(hlo_builder *b, hlo_instr *i) {
  window w = window_of(i);
  for (int k = 0; k < i->shapes[0].rank; k++) {
    if (!takes_all(&w, from_shape(i), k)) {
      return false;
    }
  }
  return hlo_becomes(i, i->operands[0]);
}

static bool slice_twice(hlo_builder *b, hlo_instr *i) {
  hlo_instr *x = operand(i, 0);
  if (x->op != HLO_SLICE || !is_fixed(i) || !is_fixed(x)) {
    return false;
  }
  window in = window_of(x), out = window_of(i);
  int64_t starts[SHAPE_MAX_RANK], limits[SHAPE_MAX_RANK], strides[SHAPE_MAX_RANK];
  for (int k = 0; k < i->shapes[0].rank; k++) {
    dim n = i->shapes[0].dims[k];
    if (__builtin_mul_overflow(in.strides[k], out.strides[k], &strides[k]) || strides[k] > DIM_MAX) {
      return false;
    }
    starts[k] = in.starts[k] + (n ? out.starts[k] * in.strides[k] : 0);
    limits[k] = n ? starts[k] + (n - 1) * strides[k] + 1 : starts[k];
  }
  return hlo_becomes(i, hlo_slice(b, x->operands[0], starts, limits, strides));
}

/* A slice of a concatenation that lies within one operand becomes a slice of that operand. */
static bool slice_of_concat(hlo_builder *b, hlo_instr *i) {
  hlo_instr *x = operand(i, 0);
  if (x->op != HLO_CONCAT || !is_fixed(i) || !shape_is_static(from_shape(i))) {
    return false;
  }
  int64_t d = hlo_int(x, HLO_ATTR_DIMENSION), begin = 0;
  window w = window_of(i);
  for (uint32_t k = 0; k < x->n_operands; k++) {
    int64_t end = begin + hlo_shape(x->operands[k])->dims[d];
    if (w.starts[d] >= begin && w.limits[d] <= end && w.starts[d] < end) {
      int64_t starts[SHAPE_MAX_RANK], limits[SHAPE_MAX_RANK];
      memcpy(starts, w.starts, i->shapes[0].rank * sizeof *starts);
      memcpy(limits, w.limits, i->shapes[0].rank * sizeof *limits);
      starts[d] -= begin;
      limits[d] -= begin;
      return hlo_becomes(i, hlo_slice(b, x->operands[k], starts, limits, w.strides));
    }
    begin = end;
  }
  return false;
}

/* If the slice contains no padding, takes it from the operand of the pad instead.  Does nothing if the pad inserts
 * elements between those of its operand. */
static bool slice_of_pad(hlo_builder *b, hlo_instr *i) {
  hlo_instr *x = operand(i, 0);
  if (x->op != HLO_PAD || !is_fixed(i) || !shape_is_static(from_shape(x))) {
    return false;
  }
  window w = window_of(i);
  int64_t starts[SHAPE_MAX_RANK], limits[SHAPE_MAX_RANK];
  for (int k = 0; k < i->shapes[0].rank; k++) {
    int64_t low = hlo_ints(x, HLO_ATTR_LOW)[k], n = from_shape(x)->dims[k];
    if (hlo_ints(x, HLO_ATTR_INTERIOR)[k] || w.starts[k] < low || w.limits[k] - low > n) {
      return false;
    }
    starts[k] = w.starts[k] - low;
    limits[k] = w.limits[k] - low;
  }
  return hlo_becomes(i, hlo_slice(b, x->operands[0], starts, limits, w.strides));
}

/* If the slice cuts only dimensions that the broadcast adds, broadcasts to fewer elements instead. */
static bool slice_of_broadcast(hlo_builder *b, hlo_instr *i) {
  hlo_instr *x = operand(i, 0);
  if (x->op != HLO_BROADCAST) {
    return false;
  }
  window w = window_of(i);
  for (uint32_t k = 0; k < hlo_n_ints(x, HLO_ATTR_DIMENSIONS); k++) {
    int64_t d = hlo_ints(x, HLO_ATTR_DIMENSIONS)[k];
    if (!takes_all(&w, from_shape(i), (int)d)) {
      return false;
    }
  }
  return hlo_becomes(i, hlo_broadcast(b, x->operands[0], i->shapes[0], hlo_ints(x, HLO_ATTR_DIMENSIONS)));
}

/* --- pad --- */

static bool pad_nothing(hlo_builder *b, hlo_instr *i) {
  for (int k = 0; k < i->shapes[0].rank; k++) {
    if (hlo_ints(i, HLO_ATTR_LOW)[k] || hlo_ints(i, HLO_ATTR_HIGH)[k] || hlo_ints(i, HLO_ATTR_INTERIOR)[k]) {
      return false;
    }
  }
  return hlo_becomes(i, i->operands[0]);
}

static bool pad_crops(hlo_builder *b, hlo_instr *i) {
  const shape *x = from_shape(i);
  int64_t starts[SHAPE_MAX_RANK], limits[SHAPE_MAX_RANK];
  if (!shape_is_static(x)) {
    return false;
  }
  for (int k = 0; k < x->rank; k++) {
    int64_t low = hlo_ints(i, HLO_ATTR_LOW)[k], high = hlo_ints(i, HLO_ATTR_HIGH)[k];
    if (low > 0 || high > 0 || hlo_ints(i, HLO_ATTR_INTERIOR)[k] || x->dims[k] + low + high < 0 || -low > x->dims[k]) {
      return false;
    }
    starts[k] = -low;
    limits[k] = x->dims[k] + high;
  }
  return hlo_becomes(i, hlo_slice(b, i->operands[0], starts, limits, NULL));
}

static bool same_element(hlo_value x, hlo_value y) {
  literal l, m;
  return hlo_value_equal(x, y) || (hlo_splat_of(x, &l) && hlo_splat_of(y, &m) && literal_equal(&l, &m));
}

static bool pad_twice(hlo_builder *b, hlo_instr *i) {
  hlo_instr *x = operand(i, 0);
  if (x->op != HLO_PAD || !same_element(i->operands[1], x->operands[1])) {
    return false;
  }
  int64_t low[SHAPE_MAX_RANK], high[SHAPE_MAX_RANK];
  for (int k = 0; k < i->shapes[0].rank; k++) {
    int64_t l[2] = {hlo_ints(x, HLO_ATTR_LOW)[k], hlo_ints(i, HLO_ATTR_LOW)[k]};
    int64_t h[2] = {hlo_ints(x, HLO_ATTR_HIGH)[k], hlo_ints(i, HLO_ATTR_HIGH)[k]};
    if (l[0] < 0 || l[1] < 0 || h[0] < 0 || h[1] < 0 || hlo_ints(i, HLO_ATTR_INTERIOR)[k]) {
      return false;
    }
    low[k] = l[0] + l[1];
    high[k] = h[0] + h[1];
  }
  return hlo_becomes(i, hlo_pad(b, x->operands[0], i->operands[1], low, high, hlo_ints(x, HLO_ATTR_INTERIOR)));
}

static bool pad_splat(hlo_builder *b, hlo_instr *i) {
  literal l;
  return hlo_splat_of(i->operands[0], &l) && same_element(i->operands[0], i->operands[1]) &&
         hlo_becomes(i, hlo_splat_literal(b, i->shapes[0], l));
}

/* --- concatenate --- */

static bool concat_one(hlo_builder *b, hlo_instr *i) { return i->n_operands == 1 && hlo_becomes(i, i->operands[0]); }

/* Removes operands without elements, and replaces operands that are concatenations along the same dimension by their
 * operands. */
static bool concat_flatten(hlo_builder *b, hlo_instr *i) {
  enum { MOST = 256 };
  int64_t d = hlo_int(i, HLO_ATTR_DIMENSION);
  hlo_value parts[MOST];
  uint32_t n = 0;
  bool useful = false;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    hlo_instr *x = operand(i, k);
    bool nested = x->op == HLO_CONCAT && hlo_int(x, HLO_ATTR_DIMENSION) == d && hlo_used_once(i->operands[k]);
    if (n + (nested ? x->n_operands : 1) > MOST) {
      return false;
    }
    if (nested) {
      memcpy(parts + n, x->operands, x->n_operands * sizeof *parts);
      n += x->n_operands;
    } else if (hlo_shape(i->operands[k])->dims[d] != 0) {
      parts[n++] = i->operands[k];
    }
    useful |= nested || hlo_shape(i->operands[k])->dims[d] == 0;
  }
  return useful && n && hlo_becomes(i, hlo_concatenate(b, n, parts, d));
}

/* Returns true if the slice y continues slice x of the same array along d. */
static bool follows(const hlo_instr *x, const hlo_instr *y, int64_t d) {
  if (x->op != HLO_SLICE || y->op != HLO_SLICE || !hlo_value_equal(x->operands[0], y->operands[0])) {
    return false;
  }
  window u = window_of(x), v = window_of(y);
  for (int k = 0; k < x->shapes[0].rank; k++) {
    bool along = k == d;
    if (u.strides[k] != v.strides[k] || (along && (u.strides[k] != 1 || u.limits[k] != v.starts[k])) ||
        (!along && (u.starts[k] != v.starts[k] || u.limits[k] != v.limits[k]))) {
      return false;
    }
  }
  return true;
}

/* Concatenated adjacent slices become one slice. */
static bool concat_slices(hlo_builder *b, hlo_instr *i) {
  int64_t d = hlo_int(i, HLO_ATTR_DIMENSION);
  for (uint32_t k = 1; k < i->n_operands; k++) {
    if (!follows(operand(i, k - 1), operand(i, k), d)) {
      return false;
    }
  }
  hlo_instr *first = operand(i, 0), *last = operand(i, i->n_operands - 1);
  if (first->op != HLO_SLICE) {
    return false;
  }
  dim limits[SHAPE_MAX_RANK];
  window w = window_of(first);
  memcpy(limits, w.limits, i->shapes[0].rank * sizeof *limits);
  limits[d] = window_of(last).limits[d];
  return hlo_becomes(i, hlo_slice(b, first->operands[0], w.starts, limits, w.strides));
}

/* A concatenation of equal elements is a splat, and one of an array of extent 1 with itself is a broadcast. */
static bool concat_equal(hlo_builder *b, hlo_instr *i) {
  literal l;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    if (!same_element(i->operands[0], i->operands[k])) {
      return false;
    }
  }
  if (hlo_splat_of(i->operands[0], &l)) {
    return hlo_becomes(i, hlo_splat_literal(b, i->shapes[0], l));
  }
  const shape *x = from_shape(i);
  int64_t dims[SHAPE_MAX_RANK];
  for (int k = 0; k < x->rank; k++) {
    dims[k] = k;
  }
  return x->dims[hlo_int(i, HLO_ATTR_DIMENSION)] == 1 &&
         hlo_becomes(i, hlo_broadcast(b, i->operands[0], i->shapes[0], dims));
}

const hlo_rule_row hlo_movement_rules[] = {{HLO_COPY, copy_nothing},
                                           {HLO_RESHAPE, reshape_same},
                                           {HLO_RESHAPE, reshape_twice},
                                           {HLO_RESHAPE, move_splat},
                                           {HLO_RESHAPE, reshape_broadcast},
                                           {HLO_RESHAPE, reshape_transpose},
                                           {HLO_BROADCAST, broadcast_same},
                                           {HLO_BROADCAST, broadcast_reshapes},
                                           {HLO_BROADCAST, broadcast_twice},
                                           {HLO_BROADCAST, broadcast_ones},
                                           {HLO_TRANSPOSE, move_splat},
                                           {HLO_REVERSE, move_splat},
                                           {HLO_REVERSE, reverse_ones},
                                           {HLO_REVERSE, reverse_twice},
                                           {HLO_SLICE, slice_all},
                                           {HLO_SLICE, move_splat},
                                           {HLO_SLICE, slice_twice},
                                           {HLO_SLICE, slice_of_concat},
                                           {HLO_SLICE, slice_of_pad},
                                           {HLO_SLICE, slice_of_broadcast},
                                           {HLO_PAD, pad_nothing},
                                           {HLO_PAD, pad_crops},
                                           {HLO_PAD, pad_twice},
                                           {HLO_PAD, pad_splat},
                                           {HLO_CONCAT, concat_one},
                                           {HLO_CONCAT, concat_flatten},
                                           {HLO_CONCAT, concat_slices},
                                           {HLO_CONCAT, concat_equal},
                                           {HLO_DYNAMIC_SLICE, move_splat},
                                           {HLO_GATHER, move_splat},
                                           {HLO_OP_COUNT, NULL}};
