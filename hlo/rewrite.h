/* rewrite.h - what passes share: which computations to walk, questions about values, and sweeps of rewrite
 * rules. */
#ifndef HLO_REWRITE_H
#define HLO_REWRITE_H

#include "hlo/pass.h"

/* The computations that run as they stand, callees first: the entry and what while and conditional call from
 * there; with `fusions` also the bodies of fusions.  Never decompositions of composites: they are not to be
 * changed. */
hlo_computation **hlo_walked(const hlo_module *m, arena *scratch, bool fusions, uint32_t *n);

/* Numbers the computation; result[id] counts how often an instruction's results are roots. */
uint32_t *hlo_count_roots(hlo_computation *c, arena *scratch);

/* Must it stay though nobody uses it?  True of operations with effects, and of those that call such. */
bool hlo_has_effect(const hlo_instr *i);

/* Is v used exactly once, and not as a root? */
bool hlo_used_once(hlo_value v);
/* Its only user; NULL if there are none or more, or it is a root. */
hlo_instr *hlo_only_user(hlo_value v);

/* Does the gather pick rows of one dimension, as hlo_take makes it, with the indices' dims in its place? */
bool hlo_is_take(const hlo_instr *i, int64_t *dimension);

/* Does it look up bytes: take(u8[256] or s8[256], convert(q)) with q u8?  They are the operand of its second
 * operand. */
bool hlo_is_lookup(const hlo_instr *gather);

/* Is v an array of equal, known elements?  *scalar is the element as a literal of rank 0. */
bool hlo_splat_of(hlo_value v, literal *scalar);
/* The same, and that element is exactly `number` (-0 is not 0).  Real element types only. */
bool hlo_is_splat(hlo_value v, double number);
/* A splat of literal `scalar` with this shape. */
hlo_value hlo_splat_literal(hlo_builder *b, shape s, literal scalar);

/* One list attribute more: hlo_build's attrs. */
static inline hlo_attr hlo_attr_list(uint32_t n, const int64_t *ints) {
  return (hlo_attr){.n = n, .ints = ints};
}
static inline hlo_attr hlo_attr_int(int64_t i) { return (hlo_attr){.i = i}; }

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
STATUS_MUST_USE status hlo_sweep(hlo_computation *c, pass_context *context, const hlo_rule_row *rules,
                                 bool *changed);
/* hlo_sweep over all that hlo_walked gives. */
STATUS_MUST_USE status hlo_sweep_module(hlo_module *m, pass_context *context, const hlo_rule_row *rules,
                                        bool *changed);

#endif
