/* conditional.c - the rule of differentiation for conditionals. */
#include "hlo/gradient/rules.h"

/* Returns a copy of branch k of the conditional i that computes the gradients of the arguments for which `wanted` is
 * true; these are its roots.  It has one more parameter for each result of i for which `given` is true: the gradient of
 * that result. */
static hlo_computation *back_through(hlo_tape *t, const hlo_instr *i, uint32_t k, const bool *wanted,
                                     const bool *given) {
  hlo_builder *b = t->b;
  arena *a = hlo_arena(b);
  hlo_computation *c = hlo_computation_clone(b->computation->module, hlo_callee(i, k));
  hlo_builder inner = hlo_builder_make(c);
  inner.source = b->source;
  inner.eval = b->eval;
  inner.fold_bytes = b->fold_bytes;
  uint32_t n_args = c->n_params, n_xs = 0;
  hlo_value *dys = ARENA_NEW_N(a, hlo_value, i->n_results), *xs = ARENA_NEW_N(a, hlo_value, n_args + 1),
            *dxs = ARENA_NEW_N(a, hlo_value, n_args + 1);
  for (uint32_t r = 0; r < i->n_results; r++) {
    if (given[r]) {
      dys[r] = hlo_result(hlo_parameter(c, i->shapes[r]), 0);
    }
  }
  for (uint32_t p = 0; p < n_args; p++) {
    if (wanted[p]) {
      xs[n_xs++] = hlo_result(c->params[p], 0);
    }
  }
  hlo_gradients(&inner, c->n_roots, c->roots, dys, n_xs, xs, dxs);
  for (uint32_t x = 0; x < n_xs; x++) {
    dxs[x] = dxs[x].def ? dxs[x] : hlo_like(&inner, xs[x], 0);
  }
  hlo_fail(b, hlo_builder_take_error(&inner));
  if (!b->error) {
    hlo_set_roots(c, n_xs, dxs);
  }
  return c;
}

/* Builds a conditional on the same index as i's, whose branches compute the gradients of i's arguments.  An argument
 * that a branch does not use gets the gradient 0 from it. */
void hlo_gradient_conditional(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  hlo_builder *b = t->b;
  arena *a = hlo_arena(b);
  uint32_t n_branches = hlo_n_callees(i), n_args = i->n_operands - 1, n = 0, n_xs = 0;
  bool *wanted = ARENA_NEW_N(a, bool, n_args + 1), *given = ARENA_NEW_N(a, bool, i->n_results + 1);
  hlo_value *args = ARENA_NEW_N(a, hlo_value, n_args + i->n_results + 1), *dxs = ARENA_NEW_N(a, hlo_value, n_args + 1);
  for (uint32_t k = 0; k < n_args; k++) {
    args[n++] = i->operands[k + 1];
    wanted[k] = hlo_tape_needs(t, i, k + 1);
    n_xs += wanted[k];
  }
  for (uint32_t r = 0; r < i->n_results; r++) {
    hlo_value g = hlo_tape_get(t, i, r);
    given[r] = g.def;
    if (given[r]) {
      args[n++] = g;
    }
  }
  hlo_computation **branches = ARENA_NEW_N(a, hlo_computation *, n_branches);
  for (uint32_t k = 0; k < n_branches && !b->error; k++) {
    branches[k] = back_through(t, i, k, wanted, given);
  }
  if (b->error || !n_xs) {
    return;
  }
  hlo_conditional(b, i->operands[0], n_branches, branches, n, args, dxs);
  for (uint32_t k = 0, x = 0; k < n_args; k++) {
    if (wanted[k]) {
      hlo_tape_add(t, i, k + 1, dxs[x++]);
    }
  }
}
