/* rewrite.c - applies tables of rewrite rules; see rewrite.h. */
#include "hlo/passes/rewrite.h"

#include <string.h>

/* --- sweeps --- */
bool hlo_becomes(hlo_instr *i, hlo_value v) {
  if (!v.def || v.def == i) {
    return false;
  }
  hlo_replace(hlo_result(i, 0), v);
  return true;
}

bool hlo_becomes_noted(hlo_builder *b, hlo_instr *i, hlo_value v, const char *what) {
  if (!hlo_becomes(i, v)) {
    return false;
  }
  hlo_pass_note(b->pass, what, 1);
  return true;
}

/* Tries the rules of i's operation.  Returns true if one applied. */
static bool apply(hlo_builder *b, hlo_instr *i, hlo_rule *const *first, hlo_rule *const *last) {
  b->before = i;
  b->source = i->source;
  for (hlo_rule *const *r = first; r < last; r++) {
    if ((*r)(b, i)) {
      return true;
    }
  }
  return false;
}

/* The rules ordered by operation: those of op are entries [begin[op], begin[op + 1]) of the list. */
typedef struct rule_index {
  uint32_t begin[HLO_OP_COUNT + 1];
  hlo_rule **list;
} rule_index;

static void index_rules(rule_index *x, const hlo_rule_row *rules, arena *scratch) {
  uint32_t n = 0, next[HLO_OP_COUNT];
  memset(x->begin, 0, sizeof x->begin);
  for (const hlo_rule_row *r = rules; r->op != HLO_OP_COUNT; r++, n++) {
    x->begin[r->op + 1]++;
  }
  for (int op = 0; op < HLO_OP_COUNT; op++) {
    next[op] = x->begin[op];
    x->begin[op + 1] += x->begin[op];
  }
  x->list = ARENA_NEW_N(scratch, hlo_rule *, n + 1);
  for (const hlo_rule_row *r = rules; r->op != HLO_OP_COUNT; r++) {
    x->list[next[r->op]++] = r->rule;
  }
}

static status sweep(hlo_computation *c, pass_context *context, const rule_index *x, bool *changed) {
  enum { PER_INSTRUCTION = 16, CHECK_EVERY = 1024 };
  hlo_number(c);
  uint64_t left = (uint64_t)PER_INSTRUCTION * (c->n_ids + 64), looked = 0;
  hlo_builder b = hlo_pass_builder(context, c, NULL);
  for (hlo_instr *i = c->first; i && left;) {
    hlo_instr *before = i->prev;
    if (++looked % CHECK_EVERY == 0) {
      TRY(budget_check(arena_budget(context->scratch)));
    }
    bool applied = i->op != HLO_PARAMETER && apply(&b, i, x->list + x->begin[i->op], x->list + x->begin[i->op + 1]);
    if (b.error) {
      return hlo_builder_take_error(&b);
    }
    if (!applied) {
      i = i->next;
      continue;
    }
    TRY(budget_check(arena_budget(context->scratch)));
    *changed = true;
    left--;
    if (i->parent && hlo_is_unused(i) && !hlo_has_effect(i)) {
      hlo_remove(i);
    }
    i = before ? before->next : c->first;
  }
  return NULL;
}

status hlo_sweep_module(hlo_module *m, pass_context *context, const hlo_rule_row *rules, bool *changed) {
  uint32_t n;
  rule_index x;
  index_rules(&x, rules, context->scratch);
  hlo_computation **walked = hlo_walked(m, context->scratch, false, &n);
  for (uint32_t k = 0; k < n; k++) {
    TRY(sweep(walked[k], context, &x, changed));
  }
  return NULL;
}
