/* inline_composites.c - replaces each composite for which the target has no kernel by its decomposition.
 *
 * Requires: nothing.  Keeps: results, and composites that target->takes_composite accepts, with their decompositions.
 * Breaks: nothing; hlo_module_clean removes decompositions that have no callers any more. */
#include "hlo/passes/rewrite.h"

static bool target_takes(const pass_context *c, const hlo_instr *i) {
  return c->target->takes_composite && c->target->takes_composite(c->target->data, i);
}

/* Gives those instructions of a composite's decomposition that have no source (hlo_instr.source) the source of the
 * composite. */
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

/* Walks the computations that run, and repeats this with those that inlining has added, which are bodies of loops and
 * branches in decompositions.  Such a body is shared by the decomposition and its inlined copy.  When the body is
 * changed, the decomposition has no callers any more. */
status pass_inline_composites(hlo_module *m, pass_context *c, bool *changed) {
  bool again = true;
  /* The number of repetitions is at most the depth to which composites nest in loops of other composites. */
  while (again) {
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
        /* Continues with the inlined instructions, which may be composites. */
        i = before ? before->next : walked[k]->first;
        *changed = again = true;
      }
    }
    hlo_module_clean(m);
  }
  return NULL;
}
