/* attention.c - attention becomes a fusion that one kernel computes: scores, softmax and the product with v, tile by
 * tile, with only the result written to memory.  The arrays q, k and v are read in place, and factors of q or k become
 * a factor of the scores.
 *
 * Order: after simplify and transpose_sinking, before dot_canonicalization, which would copy the operands that the
 * kernel of an attention reads in place, and before all other fusion passes.  Keeps: results up to rounding (rows are
 * divided by the sum of their exponentials after the product with v and not before it; several factors become one).
 * Breaks: the assumption that every instruction is outside of a fusion.  A fusion has kind attention, and its body is
 * one that hlo_find_attention recognises, whose last instruction is the only root. */
#include <stdlib.h>
#include <string.h>

#include "hlo/analysis/attention.h"
#include "hlo/analysis/pattern.h"
#include "hlo/passes/fusion/fuse.h"

static int by_place(const void *a, const void *b) {
  uint32_t x = (*(hlo_instr *const *)a)->id, y = (*(hlo_instr *const *)b)->id;
  return x < y ? -1 : x > y;
}

/* Finds the attention that ends in the dot pv.  Views (hlo_attention_views) of its operands and its result become part
 * of it if the target supports that. */
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

/* If v is x times a number and has one user: replaces it by x, multiplies *scale by the number, and returns true. */
static bool take_scale(hlo_value v, double *scale) {
  hlo_value x;
  literal number;
  if (!hlo_match(v, P_ONCE(P_COMMUTE(HLO_MUL, P_SPLAT(&number), P_ANY(&x))))) {
    return false;
  }
  *scale *= literal_f64(&number, 0);
  hlo_replace(v, x);
  hlo_remove(v.def);
  return true;
}

/* Removes factors of q and k and multiplies the scores by them instead, which the kernel does in registers. */
static void scale_scores(pass_context *context, const hlo_attention *a, bool *changed) {
  double scale = 1;
  bool q = take_scale(a->q, &scale), k = take_scale(a->k, &scale);
  hlo_value qk = hlo_result(a->qk, 0);
  if (!q && !k) {
    return;
  }
  uint32_t n = a->qk->n_uses;
  hlo_use *uses = ARENA_NEW_N(context->scratch, hlo_use, n + 1);
  memcpy(uses, a->qk->uses, n * sizeof *uses);
  hlo_builder b = hlo_pass_builder(context, a->qk->parent, a->qk->next);
  literal number = literal_scalar_f64(hlo_arena(&b), hlo_type(qk), scale);
  hlo_value scaled = hlo_binary(&b, HLO_MUL, qk, hlo_splat_literal(&b, a->qk->shapes[0], number));
  for (uint32_t j = 0; j < n; j++) {
    hlo_set_operand(uses[j].user, uses[j].operand, scaled);
  }
  *changed = true;
}

static status fuse_attention(hlo_computation *c, pass_context *context, bool *changed) {
  hlo_attention a;
  hlo_instr **dots = NULL;
  uint32_t n = 0, cap = 0;
  HLO_FOR_EACH(i, c) {
    if (i->op == HLO_DOT && find(context->target, i, &a)) {
      *ARENA_PUSH(context->scratch, dots, n, cap) = i;
      scale_scores(context, &a, changed);
    }
  }
  hlo_fuser f = hlo_fuser_make(c, context->scratch);
  for (uint32_t k = 0; k < n; k++) {
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
