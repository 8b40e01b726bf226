/* fold_sizes.h - folds the arithmetic by which a model computes sizes from the shapes of its inputs.
 *
 * The instruction `sizes` is a list of integers that are expressions of symbols.  ONNX's operator Shape, for
 * an input with symbolic dimensions, is imported as such an instruction.  The functions of this file fold
 * small integer instructions whose operands are constants and `sizes`.  The result is `sizes` again, or a
 * constant if no symbol is left.  (Instructions whose operands are all constants are folded by the reference
 * evaluator.) */
#ifndef HLO_IR_FOLD_SIZES_H
#define HLO_IR_FOLD_SIZES_H

#include "hlo/ir/builder.h"

/* The most elements of a list that is folded. */
enum { HLO_MAX_SIZES = 64 };

/* If v is a constant list of integers or preds, or the result of an instruction `sizes` of any type, of at most
 * HLO_MAX_SIZES elements and rank at most 1, sets elements[] and returns their number; otherwise returns -1. */
int hlo_sizes_of(hlo_value v, dim elements[HLO_MAX_SIZES]);

/* Computes the elements of the result of i, whose rank must be at most 1, if each operand has known elements and at
 * least one is an instruction `sizes`, or if i makes a list of a table of sizes whose elements were only moved. Returns
 * their number, or -1 if they cannot be computed. */
int hlo_fold_sizes(const hlo_instr *i, dim elements[HLO_MAX_SIZES]);

/* Returns the size that all elements of v are, s64 or s32 of any shape, if v is computed from single sizes and
 * constants by a few sums, products and broadcasts; otherwise DIM_OVERFLOW. */
dim hlo_uniform_size(hlo_value v);

/* Returns true, and sets values[n], if all elements are constants. */
bool hlo_constant_sizes(const dim_table *t, int n, const dim *elements, int64_t *values);

/* Returns a literal of that shape with the integers in values[]. */
literal hlo_sizes_literal(arena *a, shape s, const int64_t *values);

/* Returns a constant if all elements are constants and there are at most HLO_MAX_SIZES of them, otherwise an
 * instruction `sizes`.  The result has element type `type` and n elements, or is a scalar if n is -1. */
hlo_value hlo_sizes(hlo_builder *b, dtype type, int n, const dim *elements);

#endif
