/* control.c - rules of while and conditional. */
#include "hlo/passes/simplify/simplify.h"

/* Returns true if v can be copied at no cost: a constant or a splat. */
static bool is_constant(hlo_value v) {
  literal l;
  return hlo_literal(v) || hlo_splat_of(v, &l);
}

static hlo_value clone_constant(hlo_builder *b, hlo_value v) {
  literal l;
  return hlo_literal(v)        ? hlo_constant(b, *hlo_literal(v))
         : hlo_splat_of(v, &l) ? hlo_splat_literal(b, *hlo_shape(v), l)
                               : v;
}

/* Replaces all uses of parameter k of c as an operand by a copy of the constant v (is_constant). */
static status put_constant(hlo_builder *outer, hlo_computation *c, uint32_t k, hlo_value v) {
  hlo_builder b = hlo_builder_make(c);
  hlo_instr *last = c->params[c->n_params - 1];
  b.before = last->next;
  b.source = outer->source;
  hlo_value copy = clone_constant(&b, v);
  TRY(hlo_builder_take_error(&b));
  hlo_instr *p = c->params[k];
  while (p->n_uses) {
    hlo_set_operand(p->uses[p->n_uses - 1].user, p->uses[p->n_uses - 1].operand, copy);
  }
  return NULL;
}

static bool is_parameter(hlo_value v, uint32_t k) {
  return v.def->op == HLO_PARAMETER && hlo_int(v.def, HLO_ATTR_INDEX) == k;
}

/* --- while --- */

static bool never_runs(hlo_builder *b, hlo_instr *i) {
  if (!hlo_is_splat(hlo_callee(i, 0)->roots[0], 0) || hlo_has_effect(i)) {
    return false;
  }
  for (uint32_t k = 0; k < i->n_results; k++) {
    hlo_replace(hlo_result(i, k), i->operands[k]);
  }
  return i->n_results > 0;
}

/* Returns true if carried value k is the same constant in every iteration and is used inside of the loop. */
static bool is_invariant_constant(const hlo_instr *i, uint32_t k) {
  const hlo_computation *condition = hlo_callee(i, 0), *body = hlo_callee(i, 1);
  return is_parameter(body->roots[k], k) && is_constant(i->operands[k]) &&
         (body->params[k]->n_uses || condition->params[k]->n_uses);
}

/* Puts constants that a while carries without change into its condition and body.  Both computations are copied first,
 * since other instructions may call them.  dce then removes the carried values. */
static bool sink_constants(hlo_builder *b, hlo_instr *i) {
  hlo_computation **copies = NULL;
  for (uint32_t k = 0; k < i->n_operands && !b->error; k++) {
    if (!is_invariant_constant(i, k)) {
      continue;
    }
    if (!copies) {
      copies = ARENA_NEW_N(hlo_arena(b), hlo_computation *, 2);
      copies[0] = hlo_computation_clone(i->parent->module, hlo_callee(i, 0));
      copies[1] = hlo_computation_clone(i->parent->module, hlo_callee(i, 1));
      hlo_attr_of(i, HLO_ATTR_COMPUTATIONS)->comps = copies;
    }
    for (int j = 0; j < 2 && !b->error; j++) {
      b->error = put_constant(b, copies[j], k, i->operands[k]);
    }
  }
  return copies != NULL;
}

/* Replaces results that no iteration changes by the initial values. */
static bool forward_invariants(hlo_builder *b, hlo_instr *i) {
  bool changed = false;
  const hlo_computation *body = hlo_callee(i, 1);
  for (uint32_t k = 0; k < i->n_results; k++) {
    if (is_parameter(body->roots[k], k) && hlo_value_uses(hlo_result(i, k))) {
      hlo_replace(hlo_result(i, k), i->operands[k]);
      changed = true;
    }
  }
  return changed;
}

/* --- conditional --- */

/* Returns the number of the branch that is always taken, or -1. */
static int64_t known_branch(const hlo_instr *i) {
  literal l;
  int64_t n = hlo_n_callees(i);
  if (n == 1) {
    return 0;
  }
  if (!hlo_splat_of(i->operands[0], &l)) {
    return -1;
  }
  int64_t index = literal_i64(&l, 0);
  if (l.shape.type == DTYPE_PRED) {
    return index ? 0 : 1;
  }
  return index < 0 || index >= n ? n - 1 : index;
}

static bool inline_branch(hlo_builder *b, hlo_instr *i) {
  int64_t k = known_branch(i);
  if (k < 0) {
    return false;
  }
  hlo_value *roots = ARENA_NEW_N(hlo_arena(b), hlo_value, i->n_results + 1);
  hlo_inline(i, hlo_callee(i, (uint32_t)k), i->operands + 1, roots);
  for (uint32_t r = 0; r < i->n_results; r++) {
    hlo_replace(hlo_result(i, r), roots[r]);
  }
  hlo_remove(i);
  return true;
}

static bool branch_looks_at(const hlo_instr *i, uint32_t k) {
  for (uint32_t j = 0; j < hlo_n_callees(i); j++) {
    if (hlo_callee(i, j)->params[k]->n_uses) {
      return true;
    }
  }
  return false;
}

static bool sink_arguments(hlo_builder *b, hlo_instr *i) {
  hlo_computation **copies = NULL;
  uint32_t n = hlo_n_callees(i);
  for (uint32_t k = 1; k < i->n_operands; k++) {
    if (!is_constant(i->operands[k]) || !branch_looks_at(i, k - 1)) {
      continue;
    }
    if (!copies) {
      copies = ARENA_NEW_N(hlo_arena(b), hlo_computation *, n);
      for (uint32_t j = 0; j < n; j++) {
        copies[j] = hlo_computation_clone(i->parent->module, hlo_callee(i, j));
      }
      hlo_attr_of(i, HLO_ATTR_COMPUTATIONS)->comps = copies;
    }
    for (uint32_t j = 0; j < n && !b->error; j++) {
      b->error = put_constant(b, copies[j], k - 1, i->operands[k]);
    }
  }
  return copies != NULL;
}

const hlo_rule_row hlo_control_rules[] = {{HLO_WHILE, never_runs},           {HLO_WHILE, forward_invariants},
                                          {HLO_WHILE, sink_constants},       {HLO_CONDITIONAL, inline_branch},
                                          {HLO_CONDITIONAL, sink_arguments}, {HLO_OP_COUNT, NULL}};
