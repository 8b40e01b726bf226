/* dce.c - dead code elimination.
 *
 * Requires: nothing.  Keeps: everything on which a root depends, and operations with effects, also if computations
 * that while and conditional call contain them.  Breaks: nothing; the computations of while and conditional may lose
 * parameters and results.
 *
 * Besides instructions, this removes those carried values of a while that neither the condition, nor an effect, nor a
 * used result, nor another needed carried value depends on; the unused results of a conditional; and those arguments of
 * a conditional that no branch uses. */
#include "hlo/passes/rewrite.h"

/* Removes the instructions, other than parameters, that have no user and no effect and are no roots.  Returns true if
 * there were any.  Walks backwards, so that every user is visited before its operands; this takes linear time. */
static bool remove_dead(hlo_computation *c, arena *scratch) {
  uint32_t *roots = hlo_count_roots(c, scratch);
  bool changed = false;
  for (hlo_instr *i = c->last, *prev; i; i = prev) {
    prev = i->prev;
    if (!i->n_uses && !roots[i->id] && i->op != HLO_PARAMETER && !hlo_has_effect(i)) {
      hlo_remove(i);
      changed = true;
    }
  }
  return changed;
}

/* Sets used[k] to whether result k of i has a user or is a root.  Returns the number of the other results. */
static uint32_t find_unused(const hlo_instr *i, bool *used) {
  uint32_t n = i->n_results;
  for (uint32_t k = 0; k < i->n_uses; k++) {
    uint32_t r = i->uses[k].user->operands[i->uses[k].operand].index;
    n -= !used[r];
    used[r] = true;
  }
  for (uint32_t k = 0; k < i->parent->n_roots; k++) {
    hlo_value v = i->parent->roots[k];
    if (v.def == i && !used[v.index]) {
      n--;
      used[v.index] = true;
    }
  }
  return n;
}

/* --- while --- */

/* The instructions of a while's body that are needed: those on which an effect or the next value of a needed carried
 * value depends. */
typedef struct liveness {
  hlo_computation *body;
  bool *used;   /* for each carried value: whether it is needed */
  bool *marked; /* for each instruction id: whether the instruction is needed */
  hlo_instr **stack;
  uint32_t n_stack;
} liveness;

static void mark(liveness *l, hlo_instr *i) {
  if (!l->marked[i->id]) {
    l->marked[i->id] = true;
    l->stack[l->n_stack++] = i;
  }
}

/* Completes used[]: a carried value is also needed if an effect, or the next value of a needed carried value, depends
 * on it. */
static void close_carried(liveness *l) {
  for (uint32_t k = 0; k < l->body->n_roots; k++) {
    if (l->used[k]) {
      mark(l, l->body->roots[k].def);
    }
  }
  for (hlo_instr *i = l->body->first; i; i = i->next) {
    if (hlo_has_effect(i)) {
      mark(l, i);
    }
  }
  while (l->n_stack) {
    hlo_instr *i = l->stack[--l->n_stack];
    for (uint32_t k = 0; k < i->n_operands; k++) {
      mark(l, i->operands[k].def);
    }
    if (i->op == HLO_PARAMETER) {
      int64_t k = hlo_int(i, HLO_ATTR_INDEX);
      l->used[k] = true;
      mark(l, l->body->roots[k].def);
    }
  }
}

/* Returns a copy of `c` without the parameters that are not in `keep` and the roots that are not in
 * `keep_roots`.  If one of these lists is NULL, all parameters or all roots are kept. */
static hlo_computation *narrowed(const hlo_computation *c, const bool *keep, const bool *keep_roots, arena *scratch) {
  hlo_computation *copy = hlo_computation_clone(c->module, c);
  uint32_t n = 0;
  for (uint32_t k = 0; keep_roots && k < copy->n_roots; k++) {
    if (keep_roots[k]) {
      copy->roots[n++] = copy->roots[k];
    }
  }
  copy->n_roots = keep_roots ? n : copy->n_roots;
  remove_dead(copy, scratch);
  for (uint32_t k = copy->n_params; keep && k-- > 0;) {
    if (!keep[k]) {
      hlo_remove_parameter(copy, k);
    }
  }
  return copy;
}

/* Replaces the used results of i, in order, by `results`, and removes i. */
static void replace_used(hlo_instr *i, const bool *used, const hlo_value *results) {
  for (uint32_t k = 0; k < i->n_results; k++) {
    if (used[k]) {
      hlo_replace(hlo_result(i, k), *results++);
    }
  }
  hlo_remove(i);
}

static status narrow_while(hlo_instr *i, pass_context *c, bool *changed) {
  arena *scratch = c->scratch;
  uint32_t n = i->n_results, n_kept = 0;
  hlo_computation *condition = hlo_callee(i, 0), *body = hlo_callee(i, 1);
  bool *used = ARENA_NEW_N(scratch, bool, n + 1);
  if (find_unused(i, used) == 0) {
    return NULL;
  }
  for (uint32_t k = 0; k < n; k++) {
    used[k] = used[k] || condition->params[k]->n_uses || hlo_is_root(hlo_result(condition->params[k], 0));
  }
  hlo_number(body);
  liveness l = {body, used, ARENA_NEW_N(scratch, bool, body->n_ids + 1),
                ARENA_NEW_N(scratch, hlo_instr *, body->n_ids + 1), 0};
  close_carried(&l);
  hlo_value *init = ARENA_NEW_N(scratch, hlo_value, n), *results = ARENA_NEW_N(scratch, hlo_value, n);
  for (uint32_t k = 0; k < n; k++) {
    if (used[k]) {
      init[n_kept++] = i->operands[k];
    }
  }
  if (n_kept == n) {
    return NULL;
  }
  hlo_builder b = hlo_pass_builder(c, i->parent, i);
  condition = narrowed(condition, used, NULL, scratch);
  body = narrowed(body, used, used, scratch);
  hlo_while(&b, condition, body, n_kept, init, results);
  TRY(hlo_builder_take_error(&b));
  replace_used(i, used, results);
  *changed = true;
  return NULL;
}

/* --- conditional --- */

static bool any_branch_uses(const hlo_instr *i, uint32_t k) {
  for (uint32_t j = 0; j < hlo_n_callees(i); j++) {
    hlo_instr *p = hlo_callee(i, j)->params[k];
    if (p->n_uses || hlo_is_root(hlo_result(p, 0))) {
      return true;
    }
  }
  return false;
}

static status narrow_conditional(hlo_instr *i, pass_context *c, bool *changed) {
  arena *scratch = c->scratch;
  uint32_t n = i->n_results, n_args = i->n_operands - 1, n_kept = 0, n_branches = hlo_n_callees(i);
  bool *used = ARENA_NEW_N(scratch, bool, n + 1), *needed = ARENA_NEW_N(scratch, bool, n_args + 1);
  hlo_value *args = ARENA_NEW_N(scratch, hlo_value, n_args + 1), *results = ARENA_NEW_N(scratch, hlo_value, n + 1);
  uint32_t n_unused = find_unused(i, used);
  for (uint32_t k = 0; k < n_args; k++) {
    needed[k] = any_branch_uses(i, k);
    if (needed[k]) {
      args[n_kept++] = i->operands[k + 1];
    }
  }
  if (n_unused == 0 && n_kept == n_args) {
    return NULL;
  }
  hlo_computation **branches = ARENA_NEW_N(scratch, hlo_computation *, n_branches);
  for (uint32_t j = 0; j < n_branches; j++) {
    branches[j] = narrowed(hlo_callee(i, j), needed, used, scratch);
  }
  hlo_builder b = hlo_pass_builder(c, i->parent, i);
  hlo_conditional(&b, i->operands[0], n_branches, branches, n_kept, args, results);
  TRY(hlo_builder_take_error(&b));
  replace_used(i, used, results);
  *changed = true;
  return NULL;
}

/* --- the whole pass --- */

static status narrow_calls(hlo_computation *c, pass_context *context, bool *changed) {
  for (hlo_instr *i = c->last, *prev; i; i = prev) {
    prev = i->prev;
    if (i->op == HLO_WHILE) {
      TRY(narrow_while(i, context, changed));
    } else if (i->op == HLO_CONDITIONAL) {
      TRY(narrow_conditional(i, context, changed));
    }
  }
  return NULL;
}

status pass_dce(hlo_module *m, pass_context *c, bool *changed) {
  uint32_t n;
  hlo_computation **walked = hlo_walked(m, c->scratch, true, &n);
  for (uint32_t k = 0; k < n; k++) {
    bool narrower = false;
    TRY(budget_check(arena_budget(c->scratch)));
    *changed |= remove_dead(walked[k], c->scratch);
    TRY(narrow_calls(walked[k], c, &narrower));
    if (narrower) {
      remove_dead(walked[k], c->scratch);
      *changed = true;
    }
  }
  return NULL;
}
