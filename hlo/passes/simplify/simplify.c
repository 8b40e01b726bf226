/* simplify.c - rewrites instructions to cheaper ones with the same meaning, by the rules of this folder.
 *
 * Requires: nothing; finds more after fold, which writes splats as broadcast(scalar).  Leaves dead instructions for
 * dce.  Keeps: results, bit for bit, except for what hlo/ir/OPS.md leaves open: the order of float sums, the sign and
 * payload of NaN, the last bits of `power`, and the sign of a zero that a contraction computes.  Never computes in a
 * narrower type.  Breaks: nothing.  Afterwards, constants are the second operand of commutative operations; there is
 * clamp in place of minimum(maximum); operands of broadcasts have no dimensions of 1; there are slices in place of
 * gathers and dynamic-slices at constant positions, and reshapes in place of transposes that only move dimensions of 1.
 */
#include "hlo/passes/simplify/simplify.h"

static uint32_t count(const hlo_rule_row *rules) {
  uint32_t n = 0;
  for (; rules[n].op != HLO_OP_COUNT; n++) {
  }
  return n;
}

status pass_simplify(hlo_module *m, pass_context *c, bool *changed) {
  const hlo_rule_row *const tables[] = {hlo_arithmetic_rules, hlo_movement_rules, hlo_transpose_rules,
                                        hlo_index_rules,      hlo_gather_rules,   hlo_scatter_rules,
                                        hlo_loop_rules,       hlo_control_rules};
  enum { N_TABLES = sizeof tables / sizeof *tables };
  uint32_t n = 1;
  for (int k = 0; k < N_TABLES; k++) {
    n += count(tables[k]);
  }
  hlo_rule_row *rules = ARENA_NEW_N(c->scratch, hlo_rule_row, n), *at = rules;
  for (int k = 0; k < N_TABLES; k++) {
    for (const hlo_rule_row *r = tables[k]; r->op != HLO_OP_COUNT; r++) {
      *at++ = *r;
    }
  }
  at->op = HLO_OP_COUNT;
  return hlo_sweep_module(m, c, rules, changed);
}
