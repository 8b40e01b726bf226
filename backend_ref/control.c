/* control.c - instructions that call computations, constants, and checks. */
#include <string.h>

#include "base/tensor/bounds.h"

#include "backend_ref/ref.h"

status ref_constant(ref_call *c) {
  const literal *l = hlo_literal(hlo_result((hlo_instr *)c->i, 0));
  c->out[0] = literal_make(l->shape, literal_aligned(l, c->a));
  return NULL;
}

status ref_check(ref_call *c) {
  const hlo_instr *i = c->i;
  bounds b = {hlo_attr_of(i, HLO_ATTR_NAME)->s, hlo_n_ints(i, HLO_ATTR_LIMITS), hlo_ints(i, HLO_ATTR_LIMITS),
              hlo_int(i, HLO_ATTR_FROM_END)};
  return bounds_check(&b, (dtype)c->in[0].shape.type, c->in[0].data, shape_elements(&c->in[0].shape));
}

/* Runs a fusion or a composite by running the computation that it calls. */
status ref_called(ref_call *c) {
  return ref_run(c->pool, hlo_callee(c->i, 0), c->in, c->in_slots, c->out, c->out_slots);
}

/* Runs a loop.  Between iterations the carried values are in out[] and out_slots[]. */
status ref_while(ref_call *c) {
  uint32_t n = c->i->n_operands;
  literal *next = ARENA_NEW_N(c->a, literal, n), condition;
  ref_slot **next_slots = ARENA_NEW_N(c->a, ref_slot *, n), *condition_slot;
  for (uint32_t k = 0; k < n; k++) {
    c->out[k] = c->in[k];
    c->out_slots[k] = ref_slot_retain(c->in_slots[k]);
  }
  for (;;) {
    TRY(ref_check_budget(c));
    TRY(ref_run(c->pool, hlo_callee(c->i, 0), c->out, c->out_slots, &condition, &condition_slot));
    bool go_on = *(const uint8_t *)condition.data;
    ref_slot_release(c->pool, condition_slot);
    if (!go_on) {
      return NULL;
    }
    TRY(ref_run(c->pool, hlo_callee(c->i, 1), c->out, c->out_slots, next, next_slots));
    for (uint32_t k = 0; k < n; k++) {
      ref_slot_release(c->pool, c->out_slots[k]);
      c->out[k] = next[k];
      c->out_slots[k] = next_slots[k];
    }
  }
}

status ref_conditional(ref_call *c) {
  int64_t last = (int64_t)hlo_n_callees(c->i) - 1, branch = literal_i64(&c->in[0], 0);
  if (c->in[0].shape.type == DTYPE_PRED) {
    branch = !branch;
  }
  branch = branch < 0 || branch > last ? last : branch;
  return ref_run(c->pool, hlo_callee(c->i, (uint32_t)branch), c->in + 1, c->in_slots + 1, c->out, c->out_slots);
}
