/* loop_trips.c - see loop_trips.h. */
#include "hlo/analysis/loop_trips.h"

#include "hlo/analysis/queries.h"
#include "hlo/ir/fold_sizes.h"

static bool is_parameter(hlo_value v, uint32_t k) {
  return v.def->op == HLO_PARAMETER && hlo_int(v.def, HLO_ATTR_INDEX) == k;
}

/* Returns true if v has one element that is a constant or a size, and sets *out to it. */
static bool is_known(hlo_value v, dim *out) {
  dim elements[HLO_MAX_SIZES];
  v = hlo_before_reshapes(v);
  if (hlo_sizes_of(v, elements) != 1 || !dtype_is_int(hlo_type(v))) {
    return false;
  }
  *out = elements[0];
  return true;
}

/* Like is_known, for a value v inside of the condition or the body: if v is a carried value that no iteration changes,
 * *out is the element of its initial value. */
static bool is_known_inside(const hlo_instr *loop, hlo_value v, dim *out) {
  if (v.def->op == HLO_PARAMETER) {
    uint32_t k = (uint32_t)hlo_int(v.def, HLO_ATTR_INDEX);
    return is_parameter(hlo_callee(loop, 1)->roots[k], k) && is_known(loop->operands[k], out);
  }
  return is_known(v, out);
}

/* Returns true if each iteration adds 1 to carried value k. */
static bool counts(const hlo_instr *loop, uint32_t k) {
  const hlo_instr *next = hlo_callee(loop, 1)->roots[k].def;
  dim step;
  for (uint32_t side = 0; next->op == HLO_ADD && side < 2; side++) {
    if (is_parameter(next->operands[side], k) && is_known_inside(loop, next->operands[1 - side], &step) && step == 1) {
      return true;
    }
  }
  return false;
}

static bool has_effect(const hlo_computation *c) {
  bool found = false;
  for (const hlo_instr *i = c->first; i; i = i->next) {
    found = found || hlo_has_effect(i);
  }
  return found;
}

bool hlo_loop_trips(const hlo_instr *loop, dim *trips) {
  const hlo_computation *condition = hlo_callee(loop, 0);
  const hlo_instr *go = condition->roots[0].def;
  dim_table *dims = loop->parent->module->dims;
  dim start, bound;
  if (go->op != HLO_COMPARE || hlo_int(go, HLO_ATTR_COMPARISON) != HLO_LT || go->operands[0].def->op != HLO_PARAMETER ||
      has_effect(condition)) {
    return false;
  }
  uint32_t k = (uint32_t)hlo_int(go->operands[0].def, HLO_ATTR_INDEX);
  if (!counts(loop, k) || !is_known(loop->operands[k], &start) || !is_known_inside(loop, go->operands[1], &bound)) {
    return false;
  }
  *trips = dim_max(dims, dim_signed_sub(dims, bound, start), 0);
  return *trips != DIM_OVERFLOW;
}
