/* rewrite.h - sweeps of rewrite rules over a module. */
#ifndef HLO_PASSES_REWRITE_H
#define HLO_PASSES_REWRITE_H

#include "hlo/analysis/queries.h"
#include "hlo/passes/pass.h"

/* A rewrite rule: looks at `i`, whose op is the row's, and either does nothing, or replaces uses of i (hlo_becomes) or
 * changes or removes i itself, and answers true.  What it makes stands before i (the builder's place) and is looked at
 * next.  A failure of the builder is the sweep's.  b->pass has the target, scratch memory and what hlo_pass_note adds
 * to. */
typedef bool hlo_rule(hlo_builder *b, hlo_instr *i);
typedef struct hlo_rule_row {
  int op; /* an hlo_op; HLO_OP_COUNT ends a table */
  hlo_rule *rule;
} hlo_rule_row;

/* Replaces the first result of i; false if v is no value or i itself. */
bool hlo_becomes(hlo_instr *i, hlo_value v);
/* The same, and the pass reports one `what` more. */
bool hlo_becomes_noted(hlo_builder *b, hlo_instr *i, hlo_value v, const char *what);

/* Walks a computation once from first to last and tries the rules of each instruction, again where one
 * applied.  Every rule must make progress; a sweep gives up (not an error) after 16 rewrites an instruction,
 * all in all.  The budget is asked after each that applied. */
STATUS_MUST_USE status hlo_sweep(hlo_computation *c, pass_context *context, const hlo_rule_row *rules, bool *changed);
/* hlo_sweep over all that hlo_walked gives. */
STATUS_MUST_USE status hlo_sweep_module(hlo_module *m, pass_context *context, const hlo_rule_row *rules, bool *changed);

#endif
