/* gather.c - rules of gather and scatter at indices that step evenly (hlo/analysis/affine.h), and of checks of such
 * indices.
 *
 * The moved data are the result of a gather or the updates of a scatter.  If the accessed positions along each
 * dimension of the array step evenly along one dimension of the moved data, and no two dimensions of the array do so
 * along the same dimension of the moved data, a gather is a slice, and a scatter is an update of a slice.  Exporters
 * write x[:, 1:, ::2] += y in this way.  Indices that may be out of bounds, and those of a scatter that writes an
 * element twice, are left as they are.  But a gather's window that is always at the same position is clamped here. */
#include "hlo/analysis/affine.h"
#include "hlo/passes/simplify/simplify.h"

/* The positions along one dimension of the array that are accessed: start + step * i for 0 <= i < count.  i is the
 * position along dimension `along` of the moved data, which are the result of a gather or the updates of a scatter.  If
 * they have no such dimension, along is -1 and count is 1. */
typedef struct walk {
  int64_t start, step, count;
  int along;
} walk;

/* How a gather or scatter accesses its array; `x` is the array's shape, `moved` that of the moved data. */
typedef struct access {
  const hlo_instr *i;
  const shape *x, *moved;
  bool is_offset[SHAPE_MAX_RANK]; /* whether a dimension of `moved` is an offset in a window; otherwise it is
                                     a dimension of the indices */
  int along[SHAPE_MAX_RANK];      /* for each dimension of the indices, the same dimension of `moved` */
  walk dims[SHAPE_MAX_RANK];
} access;

/* --- which elements are accessed --- */

static void find_along(access *a) {
  const shape *indices = hlo_shape(a->i->operands[1]);
  for (int k = 0, d = 0; k < indices->rank; k++) {
    if (k == hlo_int(a->i, HLO_ATTR_INDEX_VECTOR_DIM)) {
      continue;
    }
    while (a->is_offset[d]) {
      d++;
    }
    a->along[k] = d++;
  }
}

/* Sets a->dims[] to the positions that are accessed along each dimension of the array if all indices are 0.  walk_index
 * then takes the indices into account. */
static void walk_windows(access *a) {
  const hlo_instr *i = a->i;
  for (int d = 0, k = 0; d < a->x->rank; d++) {
    a->dims[d] = (walk){.step = 1, .count = 1, .along = -1};
    if (hlo_is_window_dim(i, d)) {
      int to = (int)hlo_ints(i, HLO_ATTR_OFFSET_DIMS)[k++];
      a->dims[d] = (walk){.step = 1, .count = a->moved->dims[to], .along = to};
    }
  }
  for (uint32_t k = 0; k < hlo_n_ints(i, HLO_ATTR_OPERAND_BATCH); k++) {
    int64_t d = hlo_ints(i, HLO_ATTR_OPERAND_BATCH)[k], from = hlo_ints(i, HLO_ATTR_INDICES_BATCH)[k];
    a->dims[d] = (walk){.step = 1, .count = a->x->dims[d], .along = a->along[from]};
  }
}

/* Component k of each index vector is a position along one dimension of the array.  Adds these positions to a->dims[]
 * of that dimension.  Returns false if they do not step evenly, if they change along several dimensions of the indices,
 * or if they move a window of several elements. */
static bool walk_index(access *a, uint32_t k) {
  const shape *indices = hlo_shape(a->i->operands[1]);
  int64_t vector = hlo_int(a->i, HLO_ATTR_INDEX_VECTOR_DIM), d = hlo_ints(a->i, HLO_ATTR_INDEX_MAP)[k];
  hlo_region r = hlo_whole_region(indices);
  hlo_affine form;
  walk *w = &a->dims[d];
  if (vector < indices->rank) {
    r.first[vector] = k;
    r.count[vector] = 1;
  }
  if (!hlo_affine_of(a->i->operands[1], &r, &form)) {
    return false;
  }
  w->start = form.start;
  for (int j = 0, found = 0; j < indices->rank; j++) {
    if (form.step[j]) {
      if (found++ || w->count != 1) {
        return false;
      }
      *w = (walk){form.start, form.step[j], indices->dims[j], a->along[j]};
    }
  }
  return true;
}

/* These return the last, the lowest and the highest position of a walk, and the distance between neighbours. */
static int64_t last_of(const walk *w) { return w->start + w->step * (w->count - 1); }
static int64_t lowest(const walk *w) { return w->step < 0 ? last_of(w) : w->start; }
static int64_t highest(const walk *w) { return w->step < 0 ? w->start : last_of(w); }
static int64_t stride(const walk *w) { return w->step < 0 ? -w->step : w->step; }

/* Returns true if all positions that are accessed are within the array.  If the first position of a walk is inside,
 * last_of() does not overflow: the last is an element of the indices, or the first plus an offset in the window. */
static bool is_inside(const access *a) {
  bool inside = true;
  for (int d = 0; d < a->x->rank && inside; d++) {
    const walk *w = &a->dims[d];
    inside = w->start >= 0 && w->start < a->x->dims[d] && lowest(w) >= 0 && highest(w) < a->x->dims[d];
  }
  return inside;
}

/* Returns the number of those dimensions of the array along which the accessed position changes with the position along
 * dimension d of the moved data. */
static int count_walks(const access *a, int d) {
  int n = 0;
  for (int k = 0; k < a->x->rank; k++) {
    n += a->dims[k].along == d && a->dims[k].count > 1;
  }
  return n;
}

/* Sets *a to the positions that i accesses along each dimension of the array.  Returns false if they do not step
 * evenly, or if the positions along two dimensions of the array change with the same dimension of the moved data.  The
 * positions may be out of bounds. */
static bool find_access(const hlo_instr *i, const shape *moved, access *a) {
  *a = (access){.i = i, .x = hlo_shape(i->operands[0]), .moved = moved};
  if (!shape_is_static(a->x) || !shape_is_static(moved) || shape_elements(moved) == 0 || shape_elements(a->x) == 0) {
    return false;
  }
  for (uint32_t k = 0; k < hlo_n_ints(i, HLO_ATTR_OFFSET_DIMS); k++) {
    a->is_offset[hlo_ints(i, HLO_ATTR_OFFSET_DIMS)[k]] = true;
  }
  find_along(a);
  walk_windows(a);
  for (uint32_t k = 0; k < hlo_n_ints(i, HLO_ATTR_INDEX_MAP); k++) {
    if (!walk_index(a, k)) {
      return false;
    }
  }
  for (int d = 0; d < moved->rank; d++) {
    if (count_walks(a, d) > 1) {
      return false; /* two dimensions of the array step together, so that the positions form a diagonal */
    }
  }
  return true;
}

/* --- the slice that is accessed --- */

static hlo_value slice_of(hlo_builder *b, const access *a) {
  int64_t starts[SHAPE_MAX_RANK], limits[SHAPE_MAX_RANK], strides[SHAPE_MAX_RANK];
  for (int d = 0; d < a->x->rank; d++) {
    starts[d] = lowest(&a->dims[d]);
    limits[d] = highest(&a->dims[d]) + 1;
    strides[d] = stride(&a->dims[d]);
  }
  return hlo_slice(b, a->i->operands[0], starts, limits, strides);
}

/* Reverses the dimensions of v along which the positions in the array decrease. */
static hlo_value turn(hlo_builder *b, const access *a, hlo_value v) {
  int64_t backwards[SHAPE_MAX_RANK];
  uint32_t n = 0;
  for (int d = 0; d < a->x->rank; d++) {
    if (a->dims[d].step < 0) {
      backwards[n++] = d;
    }
  }
  return n ? hlo_reverse(b, v, n, backwards) : v;
}

static hlo_value transpose(hlo_builder *b, hlo_value v, const int64_t *order) {
  bool moves = false;
  for (int k = 0; v.def && k < hlo_rank(v); k++) {
    moves |= order[k] != k;
  }
  return moves ? hlo_transpose(b, v, order) : v;
}

/* --- gather --- */

/* Clamps, as a gather does, the position of a window along each dimension where it is the same for all indices. */
static void clamp_windows(access *a) {
  for (int d = 0; d < a->x->rank; d++) {
    walk *w = &a->dims[d];
    if (w->step == 1 && (w->count == 1 || a->is_offset[w->along])) {
      w->start = hlo_clamped_start(w->start, a->x->dims[d], w->count);
    }
  }
}

static bool gather_slice(hlo_builder *b, hlo_instr *i) {
  access a;
  int64_t order[SHAPE_MAX_RANK], along[SHAPE_MAX_RANK];
  dim extents[SHAPE_MAX_RANK];
  int n = 0, rest = 0, rank = hlo_rank(i->operands[0]);
  if (!find_access(i, &i->shapes[0], &a)) {
    return false;
  }
  clamp_windows(&a);
  if (!is_inside(&a)) {
    return false;
  }
  for (int to = 0; to < a.moved->rank; to++) {
    for (int d = 0; d < rank; d++) {
      if (a.dims[d].along == to && a.dims[d].count > 1) {
        order[n] = d;
        along[n] = to;
        extents[n++] = a.dims[d].count;
      }
    }
  }
  for (int d = 0; d < rank; d++) {
    if (a.dims[d].count == 1) {
      order[n + rest++] = d;
    }
  }
  hlo_value v = transpose(b, turn(b, &a, slice_of(b, &a)), order);
  return hlo_becomes(i, hlo_broadcast(b, hlo_reshape(b, v, n, extents), *a.moved, along));
}

/* --- scatter --- */

/* Returns the updates with their dimensions reordered like the array's, so that they are the elements of a strided
 * slice of it. */
static hlo_value updates_of(hlo_builder *b, const access *a) {
  int64_t order[SHAPE_MAX_RANK];
  dim extents[SHAPE_MAX_RANK];
  int n = 0;
  for (int d = 0; d < a->x->rank; d++) {
    extents[d] = a->dims[d].count;
    if (extents[d] > 1) {
      order[n++] = a->dims[d].along;
    }
  }
  for (int d = 0; d < a->moved->rank; d++) {
    if (count_walks(a, d) == 0) {
      order[n++] = d;
    }
  }
  hlo_value v = transpose(b, a->i->operands[2], order);
  return turn(b, a, hlo_reshape(b, v, a->x->rank, extents));
}

/* Returns as pred[extent] which positions along dimension d are accessed. */
static hlo_value mask_of(hlo_builder *b, const access *a, int d) {
  void *data;
  walk w = a->dims[d];
  literal mask = literal_new(hlo_arena(b), shape_make(DTYPE_PRED, 1, &a->x->dims[d]), &data);
  for (int64_t k = 0; k < w.count; k++) {
    ((uint8_t *)data)[w.start + k * w.step] = 1;
  }
  return hlo_constant(b, mask);
}

/* Returns x with v in place of the accessed elements, which need not be neighbours. */
static hlo_value update_strided(hlo_builder *b, const access *a, hlo_value v) {
  int64_t low[SHAPE_MAX_RANK], high[SHAPE_MAX_RANK], interior[SHAPE_MAX_RANK];
  for (int d = 0; d < a->x->rank; d++) {
    low[d] = lowest(&a->dims[d]);
    high[d] = a->x->dims[d] - 1 - highest(&a->dims[d]);
    interior[d] = stride(&a->dims[d]) - 1;
  }
  v = hlo_pad(b, v, hlo_scalar(b, (dtype)a->x->type, 0), low, high, interior);
  for (int64_t d = 0; d < a->x->rank; d++) {
    if (a->dims[d].count < a->x->dims[d]) {
      hlo_value mask = hlo_broadcast(b, mask_of(b, a, (int)d), shape_with_type(*a->x, DTYPE_PRED), &d);
      v = hlo_select(b, mask, v, a->i->operands[0]);
    }
  }
  return v;
}

/* Returns x with v in place of the accessed elements. */
static hlo_value update(hlo_builder *b, const access *a, hlo_value v) {
  int64_t starts[SHAPE_MAX_RANK];
  for (int d = 0; d < a->x->rank; d++) {
    if (stride(&a->dims[d]) > 1) {
      return update_strided(b, a, v);
    }
    starts[d] = lowest(&a->dims[d]);
  }
  return hlo_dynamic_update_slice(b, a->i->operands[0], v, hlo_s64s(b, starts, a->x->rank));
}

/* Returns true if all elements of the updates go to different elements of the array. */
static bool places_each_once(const access *a) {
  for (int d = 0; d < a->moved->rank; d++) {
    if (a->moved->dims[d] > 1 && count_walks(a, d) == 0) {
      return false;
    }
  }
  return true;
}

static bool scatter_slice(hlo_builder *b, hlo_instr *i) {
  access a;
  hlo_reducer r = (hlo_reducer)hlo_int(i, HLO_ATTR_REDUCER);
  dtype t = hlo_type(i->operands[0]);
  bool ordered = r == HLO_REDUCE_MAX || r == HLO_REDUCE_MIN;
  if (t == DTYPE_STR || (t == DTYPE_PRED && ordered)) {
    return false; /* pad takes no strings, and maximum and minimum take no pred */
  }
  if (!find_access(i, hlo_shape(i->operands[2]), &a) || !is_inside(&a) || !places_each_once(&a)) {
    return false;
  }
  hlo_value v = updates_of(b, &a);
  if (r != HLO_REDUCE_REPLACE) {
    v = hlo_binary(b, hlo_reducer_op(r), slice_of(b, &a), v);
  }
  return hlo_becomes(i, update(b, &a, v));
}

static bool scatter_nothing(hlo_builder *b, hlo_instr *i) {
  const shape *u = hlo_shape(i->operands[2]);
  (void)b;
  return shape_is_static(u) && shape_elements(u) == 0 && hlo_becomes(i, i->operands[0]);
}

/* --- checks --- */

/* The operand of check i holds indices of n components each.  Returns true if component k of all of them is known to be
 * within the check's limit number k. */
static bool keeps_to(const hlo_instr *i, uint32_t k, uint32_t n) {
  const shape *s = hlo_shape(i->operands[0]);
  hlo_region r = hlo_whole_region(s);
  hlo_affine form;
  if (n > 1) {
    r.first[s->rank - 1] = k;
    r.count[s->rank - 1] = 1;
  }
  dim limit = hlo_ints(i, HLO_ATTR_LIMITS)[k];
  return dim_is_const(limit) && hlo_affine_of(i->operands[0], &r, &form) &&
         form.low >= (hlo_int(i, HLO_ATTR_FROM_END) ? -limit : 0) && form.high < limit;
}

/* Removes a check if all its integers are known to be within the bounds. */
static bool check_holds(hlo_builder *b, hlo_instr *i) {
  const shape *s = hlo_shape(i->operands[0]);
  uint32_t n = hlo_n_ints(i, HLO_ATTR_LIMITS);
  (void)b;
  bool divides = n == 1 || (n > 1 && s->rank > 0 && s->dims[s->rank - 1] == n);
  if (!shape_is_static(s) || shape_elements(s) == 0 || !divides) {
    return false;
  }
  for (uint32_t k = 0; k < n; k++) {
    if (!keeps_to(i, k, n)) {
      return false;
    }
  }
  hlo_remove(i);
  return true;
}

const hlo_rule_row hlo_gather_rules[] = {{HLO_GATHER, gather_slice},
                                         {HLO_SCATTER, scatter_nothing},
                                         {HLO_SCATTER, scatter_slice},
                                         {HLO_CHECK, check_holds},
                                         {HLO_OP_COUNT, NULL}};
