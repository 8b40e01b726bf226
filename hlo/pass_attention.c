/* pass_attention.c - attention becomes one kernel: scores, softmax and the sum of the values by tiles of rows, of which nothing
 * goes to memory but the result; q, k, v are read where they lie.
 *
 * Requires: nothing; after simplify and motion, before matrices, which would copy what this reads in place, and before all
 * other fusion passes.  Keeps: results, but for roundings (rows are divided by their total after the sum, not before).  Breaks:
 * the assumption that an instruction stands at top level.  A fusion has kind attention and a body that hlo_find_attention
 * knows, whose last instruction is its only root. */
#include <stdlib.h>

#include "hlo/attention.h"
#include "hlo/fuse.h"

static int by_place(const void *a, const void *b) {
  uint32_t x = (*(hlo_instr *const *)a)->id, y = (*(hlo_instr *const *)b)->id;
  return x < y ? -1 : x > y;
}

/* With as many views as the target can read. */
static bool find(const hlo_target *t, hlo_instr *pv, hlo_attention *a) {
  for (unsigned views = HLO_OPERAND_VIEWS | HLO_RESULT_VIEW;; views--) {
    if (hlo_find_attention(pv, views, a) && t->takes_attention(t->data, a)) {
      return true;
    }
    if (!views) {
      return false;
    }
  }
}

static status fuse_attention(hlo_computation *c, pass_context *context, bool *changed) {
  hlo_fuser f = hlo_fuser_make(c, context->scratch);
  hlo_instr **dots = ARENA_NEW_N(context->scratch, hlo_instr *, f.n_ids + 1);
  uint32_t n = 0;
  HLO_FOR_EACH(i, c) {
    if (i->op == HLO_DOT) {
      dots[n++] = i;
    }
  }
  for (uint32_t k = 0; k < n; k++) {
    hlo_attention a;
    TRY(budget_check(arena_budget(context->scratch)));
    if (dots[k]->parent && find(context->target, dots[k], &a)) {
      qsort(a.members, a.n, sizeof *a.members, by_place);
      hlo_fuse(&f, HLO_FUSION_ATTENTION, a.n, a.members);
      hlo_pass_note(context, "fusions", 1);
      *changed = true;
    }
  }
  return NULL;
}

status pass_attention(hlo_module *m, pass_context *c, bool *changed) {
  uint32_t n;
  hlo_computation **walked = hlo_walked(m, c->scratch, false, &n);
  for (uint32_t k = 0; k < n && c->target && c->target->takes_attention; k++) {
    TRY(fuse_attention(walked[k], c, changed));
  }
  return NULL;
}
