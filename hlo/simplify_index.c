/* simplify_index.c - rules of dynamic-slice, dynamic-update-slice and iota at known places. */
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

/* Returns true if both update the same elements. */
static bool updates_same(const hlo_instr *i, const hlo_instr *j) {
  const literal *l = hlo_literal(i->operands[2]), *m = hlo_literal(j->operands[2]);
  return shape_same_dims(hlo_shape(i->operands[1]), hlo_shape(j->operands[1])) &&
         (hlo_value_equal(i->operands[2], j->operands[2]) || (l && m && literal_equal(l, m)));
}

/* Elements that are updated again: the first update is not seen. */
static bool update_again(hlo_builder *b, hlo_instr *i) {
  const hlo_instr *x = i->operands[0].def;
  return x->op == HLO_DYNAMIC_UPDATE_SLICE && updates_same(x, i) &&
         hlo_becomes(i, hlo_dynamic_update_slice(b, x->operands[0], i->operands[1], i->operands[2]));
}

/* --- iota --- */

static bool iota_one(hlo_builder *b, hlo_instr *i) {
  return i->shapes[0].dims[hlo_int(i, HLO_ATTR_DIMENSION)] == 1 &&
         hlo_becomes(i, hlo_splat(b, i->shapes[0], 0));
}

const hlo_rule_row hlo_index_rules[] = {{HLO_DYNAMIC_SLICE, takes_everything},
                                        {HLO_DYNAMIC_SLICE, slice_at_constant},
                                        {HLO_DYNAMIC_UPDATE_SLICE, update_everything},
                                        {HLO_DYNAMIC_UPDATE_SLICE, update_again},
                                        {HLO_IOTA, iota_one},
                                        {HLO_OP_COUNT, NULL}};
