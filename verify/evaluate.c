/* evaluate.c - evaluates the instructions of a computation one after the other; see evaluate.h. */
#include "verify/evaluate.h"

#include "backend_ref/eval.h"

static status evaluate(arena *a, const hlo_instr *i, const literal *args, literal *const *values, literal *results) {
  literal *operands = ARENA_NEW_N(a, literal, i->n_operands + 1);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    operands[k] = values[i->operands[k].def->id][i->operands[k].index];
  }
  switch (i->op) {
    case HLO_PARAMETER: *results = args[hlo_int(i, HLO_ATTR_INDEX)]; return NULL;
    case HLO_CONSTANT: *results = *hlo_literal(hlo_result((hlo_instr *)i, 0)); return NULL;
    default: return ref_eval(i, operands, a, results);
  }
}

status verify_values(arena *a, const hlo_computation *c, const literal *args, const verify_change *change,
                     literal ***out) {
  hlo_number((hlo_computation *)c);
  literal **values = *out = ARENA_NEW_N(a, literal *, c->n_ids);
  for (const hlo_instr *i = c->first; i; i = i->next) {
    values[i->id] = ARENA_NEW_N(a, literal, i->n_results + 1);
    TRY(evaluate(a, i, args, values, values[i->id]));
    if (change && i->op != HLO_PARAMETER) {
      change->apply(change->data, i, a, values[i->id]);
    }
  }
  return NULL;
}
