/* simplify.h - the rule tables of simplify.c; rewrite.h says what a rule is. */
#ifndef HLO_PASSES_SIMPLIFY_SIMPLIFY_H
#define HLO_PASSES_SIMPLIFY_SIMPLIFY_H

#include "hlo/passes/rewrite.h"

/* Tables of rules; the last row has HLO_OP_COUNT as its operation. */
extern const hlo_rule_row hlo_arithmetic_rules[]; /* arith.c */
extern const hlo_rule_row hlo_movement_rules[];   /* move.c */
extern const hlo_rule_row hlo_transpose_rules[];  /* transpose.c */
extern const hlo_rule_row hlo_index_rules[];      /* index.c */
extern const hlo_rule_row hlo_gather_rules[];     /* gather.c */
extern const hlo_rule_row hlo_scatter_rules[];    /* scatter.c */
extern const hlo_rule_row hlo_loop_rules[];       /* loops.c */
extern const hlo_rule_row hlo_control_rules[];    /* control.c */

/* Returns true if no element of v can be negative or -0; an element may be NaN.  It is a cheap test that returns false
 * if the answer is not obvious. */
bool hlo_is_nonnegative(hlo_value v);

/* Writes the dimensions whose extent is not 1, in order, to kept[] and returns how many there are. */
int hlo_real_dims(const shape *s, int64_t *kept);

/* Returns x with the dimensions of *s. */
static inline hlo_value hlo_reshape_to(hlo_builder *b, hlo_value x, const shape *s) {
  return hlo_reshape(b, x, s->rank, s->dims);
}

/* Returns the start of a window of `size` elements within `extent` elements, both constants, that is as near to `start`
 * as possible.  dynamic-slice, dynamic-update-slice and gather move windows in this way. */
static inline int64_t hlo_clamped_start(int64_t start, dim extent, dim size) {
  return start < 0 ? 0 : start > extent - size ? extent - size : start;
}

#endif
