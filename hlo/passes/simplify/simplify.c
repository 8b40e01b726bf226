/* simplify.c - rewrites instructions into cheaper ones of the same meaning: the rules of this folder.
 *
 * Requires: nothing; finds more after fold (splats as broadcast(scalar)), leaves dead instructions to dce.
 * Keeps: results, bit for bit, but for what hlo/ir/OPS.md leaves open: the order of float sums, the sign and
 * payload of NaN, the last bits of `power`, and the sign of a zero that a contraction gives.  Never computes
 * in a narrower type. Breaks: nothing.  Leaves these forms: constants as the second operand of commutative
 * operations; clamp rather than minimum(maximum); broadcasts without dims of 1 in their operand; slices
 * rather than gathers and dynamic-slices of known places; reshapes rather than transposes that move dims of 1
 * only. */
#include "hlo/passes/simplify/simplify.h"

static uint32_t count(const hlo_rule_row *rules) {
  uint32_t n = 0;
  for (; rules[n].op != HLO_OP_COUNT; n++) {
  }
  return n;
}

status pass_simplify(hlo_module *m, pass_context *c, bool *changed) {
  const hlo_rule_row *const tables[] = {hlo_arithmetic_rules, hlo_movement_rules, hlo_index_rules,
                                        hlo_gather_rules,     hlo_loop_rules,     hlo_control_rules};
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
