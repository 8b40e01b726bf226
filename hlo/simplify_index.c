/* simplify_index.c - rules of gather, dynamic-slice, dynamic-update-slice and iota at known places. */
#include "hlo/simplify.h"

static const shape *from_shape(const hlo_instr *i) { return hlo_shape(i->operands[0]); }

static int64_t clamped(int64_t start, dim extent, dim size) {
  return start < 0 ? 0 : start > extent - size ? extent - size : start;
}

static bool all_fixed(const shape *s, const int64_t *sizes) {
  for (int k = 0; k < s->rank; k++) {
    if (!dim_is_const(s->dims[k]) || !dim_is_const(sizes[k])) {
      return false;
    }
  }
  return true;
}

/* --- dynamic-slice and its update --- */

static bool takes_everything(hlo_builder *b, hlo_instr *i) {
  return shape_same_dims(from_shape(i), &i->shapes[0]) && hlo_becomes(i, i->operands[0]);
}

/* Index k of a vector of constants, splat or not. */
static bool known_index(hlo_value v, int64_t k, int64_t *index) {
  literal splat;
  const literal *l = hlo_literal(v);
  if (l) {
    *index = literal_i64(l, k);
    return true;
  }
  if (hlo_splat_of(v, &splat)) {
    *index = literal_i64(&splat, 0);
    return true;
  }
  return false;
}

static bool slice_at_constant(hlo_builder *b, hlo_instr *i) {
  const shape *x = from_shape(i);
  const int64_t *sizes = hlo_ints(i, HLO_ATTR_SIZES);
  int64_t starts[SHAPE_MAX_RANK], limits[SHAPE_MAX_RANK];
  if (!all_fixed(x, sizes)) {
    return false;
  }
  for (int k = 0; k < x->rank; k++) {
    if (!known_index(i->operands[1], k, &starts[k])) {
      return false;
    }
    starts[k] = clamped(starts[k], x->dims[k], sizes[k]);
    limits[k] = starts[k] + sizes[k];
  }
  return hlo_becomes(i, hlo_slice(b, i->operands[0], starts, limits, NULL));
}

static bool update_everything(hlo_builder *b, hlo_instr *i) {
  return shape_same_dims(hlo_shape(i->operands[1]), &i->shapes[0]) && hlo_becomes(i, i->operands[1]);
}

/* --- gather --- */

/* One index vector: its place is a slice. */
static bool gather_one(hlo_builder *b, hlo_instr *i) {
  const shape *x = from_shape(i), *s = hlo_shape(i->operands[1]);
  const int64_t *sizes = hlo_ints(i, HLO_ATTR_SIZES);
  if (hlo_n_ints(i, HLO_ATTR_OPERAND_BATCH) || !shape_is_static(s) || !all_fixed(x, sizes) ||
      shape_elements(s) != hlo_n_ints(i, HLO_ATTR_INDEX_MAP)) {
    return false;
  }
  int64_t starts[SHAPE_MAX_RANK] = {0}, limits[SHAPE_MAX_RANK];
  for (uint32_t k = 0; k < hlo_n_ints(i, HLO_ATTR_INDEX_MAP); k++) {
    int64_t d = hlo_ints(i, HLO_ATTR_INDEX_MAP)[k], index;
    if (!known_index(i->operands[1], k, &index)) {
      return false;
    }
    starts[d] = clamped(index, x->dims[d], sizes[d]);
  }
  for (int k = 0; k < x->rank; k++) {
    limits[k] = starts[k] + sizes[k];
  }
  hlo_value part = hlo_slice(b, i->operands[0], starts, limits, NULL);
  return hlo_becomes(i, hlo_reshape(b, part, i->shapes[0].rank, i->shapes[0].dims));
}

/* Evenly spaced rows, upwards. */
static bool gather_range(hlo_builder *b, hlo_instr *i) {
  enum { MOST = 4096 };
  const literal *l = hlo_literal(i->operands[1]);
  const shape *x = from_shape(i);
  int64_t d;
  if (!l || !shape_is_static(x) || !shape_is_static(&l->shape) || !hlo_is_take(i, &d)) {
    return false;
  }
  int64_t n = shape_elements(&l->shape);
  if (n < 2 || n > MOST) {
    return false;
  }
  int64_t first = literal_i64(l, 0), step = literal_i64(l, 1) - first;
  for (int64_t k = 0; k < n; k++) {
    int64_t at = literal_i64(l, k);
    if (step < 1 || at < 0 || at >= x->dims[d] || at != first + k * step) {
      return false;
    }
  }
  dim starts[SHAPE_MAX_RANK] = {0}, limits[SHAPE_MAX_RANK];
  int64_t strides[SHAPE_MAX_RANK];
  for (int k = 0; k < x->rank; k++) {
    starts[k] = k == d ? first : 0;
    limits[k] = k == d ? first + (n - 1) * step + 1 : x->dims[k];
    strides[k] = k == d ? step : 1;
  }
  hlo_value rows = hlo_slice(b, i->operands[0], starts, limits, strides);
  return hlo_becomes(i, hlo_reshape(b, rows, i->shapes[0].rank, i->shapes[0].dims));
}

static bool iota_one(hlo_builder *b, hlo_instr *i) {
  return i->shapes[0].dims[hlo_int(i, HLO_ATTR_DIMENSION)] == 1 &&
         hlo_becomes(i, hlo_splat(b, i->shapes[0], 0));
}

const hlo_rule_row hlo_index_rules[] = {{HLO_DYNAMIC_SLICE, takes_everything},
                                        {HLO_DYNAMIC_SLICE, slice_at_constant},
                                        {HLO_DYNAMIC_UPDATE_SLICE, update_everything},
                                        {HLO_GATHER, gather_one},
                                        {HLO_GATHER, gather_range},
                                        {HLO_IOTA, iota_one},
                                        {HLO_OP_COUNT, NULL}};
