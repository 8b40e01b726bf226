/* simplify.h - the rule tables of simplify.c; rewrite.h says what a rule is. */
#ifndef HLO_PASSES_SIMPLIFY_SIMPLIFY_H
#define HLO_PASSES_SIMPLIFY_SIMPLIFY_H

#include "hlo/passes/rewrite.h"

/* Ended by a row with HLO_OP_COUNT. */
extern const hlo_rule_row hlo_arithmetic_rules[]; /* arith.c */
extern const hlo_rule_row hlo_movement_rules[];   /* move.c */
extern const hlo_rule_row hlo_index_rules[];      /* index.c */
extern const hlo_rule_row hlo_gather_rules[];     /* gather.c */
extern const hlo_rule_row hlo_loop_rules[];       /* loops.c */
extern const hlo_rule_row hlo_control_rules[];    /* control.c */

/* Can no element of v be below 0, nor -0?  NaN it may be.  A cheap answer: false where it is not obvious. */
bool hlo_is_nonnegative(hlo_value v);

/* The dims that are not 1, in order, into kept[]; gives how many. */
int hlo_real_dims(const shape *s, int64_t *kept);

#endif
