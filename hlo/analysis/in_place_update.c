/* in_place_update.c - recognises updates at constant positions; see in_place_update.h. */
#include "hlo/analysis/in_place_update.h"

/* Returns the only dimension along which `part` is smaller than `whole`, -1 if there is none, or -2 if there are
 * several. */
static int smaller_along(const shape *part, const shape *whole) {
  int found = -1;
  for (int d = 0; d < whole->rank; d++) {
    if (part->dims[d] != whole->dims[d]) {
      found = found == -1 ? d : -2;
    }
  }
  return found;
}

static bool is_const_from(const shape *s, int first) {
  bool constant = true;
  for (int d = first; d < s->rank; d++) {
    constant = constant && dim_is_const(s->dims[d]);
  }
  return constant;
}

static bool locate(const hlo_instr *update, hlo_in_place_update *p) {
  const shape *whole = &update->shapes[0], *part = hlo_shape(update->operands[1]);
  const literal *starts = hlo_literal(update->operands[2]);
  int along = smaller_along(part, whole), from = along < 0 ? 0 : along;
  if (!starts || along == -2 || !is_const_from(whole, from) || !is_const_from(part, from) || shape_is_empty(part)) {
    return false;
  }
  int64_t inner = shape_product(whole, along + 1, whole->rank), start = along < 0 ? 0 : literal_i64(starts, along);
  p->value = update->operands[1];
  p->rows = along < 0 ? 1 : shape_dim_product(update->parent->module->dims, whole, 0, along);
  p->run = along < 0 ? inner : part->dims[along] * inner;
  p->pitch = along < 0 ? inner : whole->dims[along] * inner;
  p->first = start * inner;
  return start >= 0 && p->rows != DIM_OVERFLOW && (along < 0 || start <= whole->dims[along] - part->dims[along]);
}

bool hlo_in_place_update_of(const hlo_instr *i, hlo_in_place_update *out) {
  const hlo_instr *root = i;
  if (i->op == HLO_FUSION) {
    const hlo_computation *body = hlo_callee(i, 0);
    root = body->n_roots == 1 ? body->roots[0].def : i;
  }
  if (root->op != HLO_DYNAMIC_UPDATE_SLICE) {
    return false;
  }
  hlo_value base = root->operands[0];
  bool inside = root != i,
       once = !hlo_value_equal(base, root->operands[1]) && !hlo_value_equal(base, root->operands[2]);
  if (inside && (base.def->op != HLO_PARAMETER || base.def->n_uses != 1)) {
    return false;
  }
  out->base = inside ? (uint32_t)hlo_int(base.def, HLO_ATTR_INDEX) : 0;
  for (uint32_t k = 0; k < i->n_operands; k++) { /* the base, the array that is updated, may not be another operand
                                                    as well */
    once = once && (k == out->base || !hlo_value_equal(i->operands[k], i->operands[out->base]));
  }
  return once && locate(root, out);
}
