/* rewrite.h - applies tables of rewrite rules to a module. */
#ifndef HLO_PASSES_REWRITE_H
#define HLO_PASSES_REWRITE_H

#include "hlo/analysis/queries.h"
#include "hlo/passes/pass.h"

/* A rewrite rule looks at `i`, whose operation is `op` of the rule's row.  It returns false if it did nothing.
 * Otherwise it replaces the uses of i (hlo_becomes), or changes or removes i itself, and returns true.  The builder
 * places new instructions before i; the sweep looks at them next, and fails if the builder fails.  b->pass gives access
 * to the target, scratch memory and hlo_pass_note. */
typedef bool hlo_rule(hlo_builder *b, hlo_instr *i);
typedef struct hlo_rule_row {
  int op; /* an hlo_op; HLO_OP_COUNT ends the table */
  hlo_rule *rule;
} hlo_rule_row;

/* Replaces all uses of the first result of i by v.  Returns false, and replaces nothing, if v is no value (def is NULL)
 * or a result of i. */
bool hlo_becomes(hlo_instr *i, hlo_value v);
/* Does what hlo_becomes does, and adds one to the note `what` of the pass (hlo_pass_note). */
bool hlo_becomes_noted(hlo_builder *b, hlo_instr *i, hlo_value v, const char *what);

/* Walks each computation that hlo_walked returns once from first to last and tries the rules of each instruction; after
 * a rewrite it tries them again.  Every rule must make progress.  The sweep of a computation of n instructions stops,
 * without an error, after 16 * (n + 64) rewrites.  The budget is checked after each rewrite and at intervals where
 * nothing is rewritten. */
STATUS_MUST_USE status hlo_sweep_module(hlo_module *m, pass_context *context, const hlo_rule_row *rules, bool *changed);

#endif
