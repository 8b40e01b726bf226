/* rules.h - what the rules of differentiation share; for the files of hlo/gradient/ only. */
#ifndef HLO_GRADIENT_RULES_H
#define HLO_GRADIENT_RULES_H

#include "hlo/gradient/gradient.h"

/* A computation from the first x on, on the way back.  Lists are by the ids of these instructions; what stands before
 * them has ids of earlier times, and what is made now has none. */
typedef struct hlo_tape {
  hlo_builder *b;
  uint32_t n;
  hlo_instr **order;
  bool *active;          /* depends on an x */
  hlo_value **gradients; /* then by result: what has arrived; NULL if there is nothing */
} hlo_tape;

/* Adds to the operands' gradients; dy is that of the first result (no value: only others have one). */
typedef void hlo_gradient_rule(hlo_tape *t, hlo_instr *i, hlo_value dy);

/* Is the gradient of operand k of interest? */
bool hlo_tape_needs(const hlo_tape *t, const hlo_instr *i, uint32_t k);
void hlo_tape_add(hlo_tape *t, const hlo_instr *i, uint32_t k, hlo_value gradient);
/* What has arrived for operand k so far (no value: nothing), to be put back with more in it: what changes few elements
 * of a large array need not go over all of them. */
hlo_value hlo_tape_take(hlo_tape *t, const hlo_instr *i, uint32_t k);
/* What has arrived for result k; no value: nothing. */
hlo_value hlo_tape_get(const hlo_tape *t, const hlo_instr *i, uint32_t k);
/* Fails: the operation, or this form of it, has no rule. */
void hlo_tape_refuse(hlo_tape *t, const hlo_instr *i, const char *why);

/* The sum of all elements, a scalar. */
hlo_value hlo_sum_all(hlo_builder *b, hlo_value x);
/* x where the condition holds, else 0. */
hlo_value hlo_select_or_zero(hlo_builder *b, hlo_value condition, hlo_value x);

/* Elementwise operations of one operand, and the others. */
hlo_gradient_rule hlo_gradient_unary;
hlo_gradient_rule hlo_gradient_negate, hlo_gradient_add, hlo_gradient_subtract, hlo_gradient_multiply,
    hlo_gradient_divide, hlo_gradient_remainder, hlo_gradient_power, hlo_gradient_atan2, hlo_gradient_extreme,
    hlo_gradient_select, hlo_gradient_clamp, hlo_gradient_convert, hlo_gradient_nothing;

/* Movement and updates. */
hlo_gradient_rule hlo_gradient_copy, hlo_gradient_broadcast, hlo_gradient_reshape, hlo_gradient_transpose,
    hlo_gradient_reverse, hlo_gradient_slice, hlo_gradient_pad, hlo_gradient_concatenate, hlo_gradient_dynamic_slice,
    hlo_gradient_dynamic_update_slice, hlo_gradient_gather, hlo_gradient_scatter, hlo_gradient_sort;

/* Reductions, windows, contractions. */
hlo_gradient_rule hlo_gradient_reduce, hlo_gradient_reduce_window, hlo_gradient_cumulative, hlo_gradient_dot,
    hlo_gradient_convolution;

/* What calls computations. */
hlo_gradient_rule hlo_gradient_conditional, hlo_gradient_while;

#endif
