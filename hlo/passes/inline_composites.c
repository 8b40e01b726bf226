/* inline_composites.c - puts the decomposition in place of each composite that the target has no kernel
 * for.
 *
 * Requires: nothing.  Keeps: results; composites that target->takes_composite wants, with their
 * decompositions as they are. Breaks: nothing; decompositions that nobody calls any more go with
 * hlo_module_clean. */
#include "hlo/passes/rewrite.h"

static bool target_takes(const pass_context *c, const hlo_instr *i) {
  return c->target->takes_composite && c->target->takes_composite(c->target->data, i);
}

/* What a decomposition leaves nameless is said to come from the node that the composite came from. */
static void name_sources(hlo_instr *from, hlo_instr *to) {
  for (hlo_instr *i = from; i != to; i = i->next) {
    if (!i->source[0]) {
      i->source = to->source;
    }
  }
}

static void inline_one(hlo_instr *i, arena *scratch) {
  hlo_instr *before = i->prev;
  hlo_value *roots = ARENA_NEW_N(scratch, hlo_value, i->n_results + 1);
  hlo_inline(i, hlo_callee(i, 0), i->operands, roots);
  name_sources(before ? before->next : i->parent->first, i);
  for (uint32_t k = 0; k < i->n_results; k++) {
    hlo_replace(hlo_result(i, k), roots[k]);
  }
  hlo_remove(i);
}

/* Walks all computations that exist when it starts and those that inlining brings along: bodies of loops in a
 * decomposition are shared with it, so they are only changed once the decomposition itself is not called any
 * more. */
status pass_inline_composites(hlo_module *m, pass_context *c, bool *changed) {
  bool again = true;
  while (again) { /* as often as composites nest inside loops of other composites, at most */
    again = false;
    uint32_t n;
    hlo_computation **walked = hlo_walked(m, c->scratch, false, &n);
    for (uint32_t k = 0; k < n; k++) {
      for (hlo_instr *i = walked[k]->first; i;) {
        hlo_instr *before = i->prev;
        if (i->op != HLO_COMPOSITE || target_takes(c, i)) {
          i = i->next;
          continue;
        }
        TRY(budget_check(arena_budget(c->scratch)));
        inline_one(i, c->scratch);
        i = before ? before->next : walked[k]->first; /* composites of composites */
        *changed = again = true;
      }
    }
    hlo_module_clean(m);
  }
  return NULL;
}
