/* element.h - what is known of one element of a small array: where it comes from, and its value or a bound of it.
 *
 * A model that TensorFlow exports computes the arguments of a Slice as lists of which some elements depend on data, and
 * others are constants or have a bound. */
#ifndef HLO_IR_ELEMENT_H
#define HLO_IR_ELEMENT_H

#include "hlo/ir/builder.h"

/* Returns the value from which the instruction i takes element *k of its result, in row-major order, and sets *k to the
 * element's number there, if i moves or converts elements (reshape, convert, transpose, slice, reverse, concatenate,
 * pad) and all shapes are static.  Otherwise the def of the result is NULL. */
hlo_value hlo_element_source(const hlo_instr *i, int64_t *k);

typedef struct hlo_element {
  dim value;     /* the value, a constant or an expression of symbols; DIM_OVERFLOW if it is not known */
  int64_t least; /* the value is not smaller; INT64_MIN if no bound is known */
} hlo_element;

/* Returns what is known of element k of v, an array of integers, floats or preds, from the operations that compute it.
 * Adds no guards. */
hlo_element hlo_element_of(hlo_value v, int64_t k);

#endif
