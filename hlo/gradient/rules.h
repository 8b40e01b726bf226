/* rules.h - functions that the rules of differentiation share; for the files of hlo/gradient/ only. */
#ifndef HLO_GRADIENT_RULES_H
#define HLO_GRADIENT_RULES_H

#include "hlo/gradient/gradient.h"

/* The instructions of a computation from the first x on, where an x is an independent variable of hlo_gradients; they
 * are visited from last to first.  The lists are indexed by instruction id.  Instructions before the first x have ids
 * of an older numbering, and new instructions have the id 0.  So an instruction is on the tape only if order[id] is
 * that instruction. */
typedef struct hlo_tape {
  hlo_builder *b;
  uint32_t n;
  hlo_instr **order;
  bool *active;          /* whether the instruction depends on an x */
  hlo_value **gradients; /* gradients[id][r]: the sum of the gradients so far of result r of the instruction with
                            that id; NULL if there are none */
} hlo_tape;

/* A rule adds to the gradients of the operands.  dy is the gradient of the first result; its def is NULL if only other
 * results have a gradient. */
typedef void hlo_gradient_rule(hlo_tape *t, hlo_instr *i, hlo_value dy);

/* Returns true if the gradient of operand k of instruction i is needed. */
bool hlo_tape_needs(const hlo_tape *t, const hlo_instr *i, uint32_t k);
void hlo_tape_add(hlo_tape *t, const hlo_instr *i, uint32_t k, hlo_value gradient);
/* Removes and returns the gradient of operand k so far (def is NULL if there is none).  The caller adds to it and puts
 * it back with hlo_tape_add.  So a rule that changes few elements of a large array need not add a whole array. */
hlo_value hlo_tape_take(hlo_tape *t, const hlo_instr *i, uint32_t k);
/* Returns true if v has elements that can change by small amounts: floats or complex numbers. */
bool hlo_may_vary(hlo_value v);
/* Returns the gradient of result k; its def is NULL if there is none. */
hlo_value hlo_tape_get(const hlo_tape *t, const hlo_instr *i, uint32_t k);
/* Makes the differentiation fail with STATUS_UNSUPPORTED, since the operation, or this form of it, has no rule.  `why`
 * is a part of the message. */
void hlo_tape_refuse(hlo_tape *t, const hlo_instr *i, const char *why);

/* Returns the sum of all elements of x, a scalar. */
hlo_value hlo_sum_all(hlo_builder *b, hlo_value x);
/* Returns x where the condition holds, and 0 elsewhere. */
hlo_value hlo_select_or_zero(hlo_builder *b, hlo_value condition, hlo_value x);

/* hlo_gradient_unary is the rule for all operations for which hlo_has_derivative returns true; they have one operand
 * (unary_rows of math.c).  The rules after it are those for the other elementwise operations. */
bool hlo_has_derivative(hlo_op op);
hlo_gradient_rule hlo_gradient_unary;
hlo_gradient_rule hlo_gradient_negate, hlo_gradient_add, hlo_gradient_subtract, hlo_gradient_multiply,
    hlo_gradient_divide, hlo_gradient_remainder, hlo_gradient_power, hlo_gradient_atan2, hlo_gradient_extreme,
    hlo_gradient_select, hlo_gradient_clamp, hlo_gradient_convert, hlo_gradient_nothing;

/* Rules for operations that move data or update parts of arrays. */
hlo_gradient_rule hlo_gradient_copy, hlo_gradient_broadcast, hlo_gradient_reshape, hlo_gradient_transpose,
    hlo_gradient_reverse, hlo_gradient_slice, hlo_gradient_pad, hlo_gradient_concatenate, hlo_gradient_dynamic_slice,
    hlo_gradient_dynamic_update_slice, hlo_gradient_gather, hlo_gradient_scatter, hlo_gradient_sort;

/* Rules for reductions, windows and contractions. */
hlo_gradient_rule hlo_gradient_reduce, hlo_gradient_reduce_window, hlo_gradient_cumulative, hlo_gradient_dot,
    hlo_gradient_convolution;

/* Rules for operations that call computations. */
hlo_gradient_rule hlo_gradient_conditional, hlo_gradient_while;

#endif
