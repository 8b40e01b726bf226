/* index.c - rules of dynamic-slice and dynamic-update-slice at constant positions, and of iota. */
#include "hlo/passes/simplify/simplify.h"

static const shape *from_shape(const hlo_instr *i) { return hlo_shape(i->operands[0]); }

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

/* Sets *index to entry k of a vector of constants, which may be a splat.  Returns false if v is not constant. */
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
    starts[k] = hlo_clamped_start(starts[k], x->dims[k], sizes[k]);
    limits[k] = starts[k] + sizes[k];
  }
  return hlo_becomes(i, hlo_slice(b, i->operands[0], starts, limits, NULL));
}

static bool update_everything(hlo_builder *b, hlo_instr *i) {
  return shape_same_dims(hlo_shape(i->operands[1]), &i->shapes[0]) && hlo_becomes(i, i->operands[1]);
}

/* Returns true if the updates i and j write the same elements. */
static bool updates_same(const hlo_instr *i, const hlo_instr *j) {
  const literal *l = hlo_literal(i->operands[2]), *m = hlo_literal(j->operands[2]);
  return shape_same_dims(hlo_shape(i->operands[1]), hlo_shape(j->operands[1])) &&
         (hlo_value_equal(i->operands[2], j->operands[2]) || (l && m && literal_equal(l, m)));
}

/* Drops an update whose elements are all updated again. */
static bool update_again(hlo_builder *b, hlo_instr *i) {
  const hlo_instr *x = i->operands[0].def;
  return x->op == HLO_DYNAMIC_UPDATE_SLICE && updates_same(x, i) &&
         hlo_becomes(i, hlo_dynamic_update_slice(b, x->operands[0], i->operands[1], i->operands[2]));
}

/* Returns true if v is the part of i's array that i updates. */
static bool is_updated_part(const hlo_instr *i, hlo_value v) {
  const literal *starts = hlo_literal(i->operands[2]);
  const shape *x = from_shape(i), *part = hlo_shape(v);
  if (v.def->op != HLO_SLICE || !starts || !hlo_value_equal(v.def->operands[0], i->operands[0]) ||
      !shape_is_static(x) || !shape_is_static(part)) {
    return false;
  }
  for (int d = 0; d < x->rank; d++) {
    if (hlo_ints(v.def, HLO_ATTR_STARTS)[d] != hlo_clamped_start(literal_i64(starts, d), x->dims[d], part->dims[d]) ||
        hlo_ints(v.def, HLO_ATTR_STRIDES)[d] != 1) {
      return false;
    }
  }
  return true;
}

/* Sets *neutral to the second operand of `op` that changes no number: x - 0 and x + -0 are x, but x + 0 is not x if x
 * is -0.  Returns false if there is none. */
static bool neutral_of(hlo_op op, dtype t, double *neutral) {
  bool is_float = dtype_is_float(t);
  *neutral = op == HLO_MUL || op == HLO_DIV ? 1 : op == HLO_ADD && is_float ? -0.0 : 0;
  return (op == HLO_ADD || op == HLO_SUB || op == HLO_MUL || op == HLO_DIV) &&
         (dtype_is_int(t) || (is_float && dtype_bytes(t) > 1)); /* some floats of 8 bits have no zero, or no -0 */
}

/* If x[part] is updated by x[part] op y, computes x op y' for the whole array, where y' is y surrounded by neutral
 * elements.  This is elementwise, so it can be fused with the operations before and after.  If the part is less than
 * half of the array, nothing is done, since a small part may be updated in place. */
static bool update_by_operation(hlo_builder *b, hlo_instr *i) {
  hlo_instr *v = i->operands[1].def;
  const literal *starts = hlo_literal(i->operands[2]);
  const shape *x = from_shape(i), *part = hlo_shape(i->operands[1]);
  double neutral;
  if (!neutral_of(v->op, (dtype)x->type, &neutral) || !hlo_used_once(i->operands[1])) {
    return false;
  }
  uint32_t other = !is_updated_part(i, v->operands[0]) && hlo_info(v)->flags & HLO_COMM ? 0 : 1;
  if (!is_updated_part(i, v->operands[1 - other]) || 2 * shape_elements(part) < shape_elements(x)) {
    return false;
  }
  int64_t low[SHAPE_MAX_RANK], high[SHAPE_MAX_RANK];
  for (int d = 0; d < x->rank; d++) {
    low[d] = hlo_clamped_start(literal_i64(starts, d), x->dims[d], part->dims[d]);
    high[d] = x->dims[d] - part->dims[d] - low[d];
  }
  hlo_value y = hlo_pad(b, v->operands[other], hlo_scalar(b, (dtype)x->type, neutral), low, high, NULL);
  return hlo_becomes(i, hlo_binary(b, v->op, i->operands[0], y));
}

/* --- iota --- */

static bool iota_one(hlo_builder *b, hlo_instr *i) {
  return i->shapes[0].dims[hlo_int(i, HLO_ATTR_DIMENSION)] == 1 && hlo_becomes(i, hlo_splat(b, i->shapes[0], 0));
}

const hlo_rule_row hlo_index_rules[] = {{HLO_DYNAMIC_SLICE, takes_everything},
                                        {HLO_DYNAMIC_SLICE, slice_at_constant},
                                        {HLO_DYNAMIC_UPDATE_SLICE, update_everything},
                                        {HLO_DYNAMIC_UPDATE_SLICE, update_again},
                                        {HLO_DYNAMIC_UPDATE_SLICE, update_by_operation},
                                        {HLO_IOTA, iota_one},
                                        {HLO_OP_COUNT, NULL}};
