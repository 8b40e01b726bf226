/* elementwise.h - emitters of operations that use one element of each operand. */
#ifndef EMIT_ELEMENT_ELEMENTWISE_H
#define EMIT_ELEMENT_ELEMENTWISE_H

#include "emit/llvm/number.h"
#include "hlo/ir/ir.h"

/* Returns true if there is an emitter for this operation on these types. */
bool emit_elementwise_supported(hlo_op op, dtype operand, dtype result);

/* Returns the value of the result of `i`. args are the values of its operands, as number.h keeps them in registers, all
 * with the same number of lanes. */
emit_pair emit_elementwise(const emit_ir *w, const hlo_instr *i, const emit_pair *args);

/* --- operations on accumulated values; `t` is the element type of the array that is reduced --- */

/* Returns the reducer's identity in the accumulating type (emit_compute_type). */
emit_pair emit_reduce_identity(const emit_ir *w, hlo_reducer r, dtype t);
/* Combines two values, which have the accumulating type, with the reducer's operation. */
emit_pair emit_reduce_combine(const emit_ir *w, hlo_reducer r, dtype t, emit_pair x, emit_pair y);
bool emit_reduce_supported(hlo_reducer r, dtype t);
/* Returns x * y + z in the accumulating type. */
emit_pair emit_multiply_add(const emit_ir *w, dtype t, emit_pair x, emit_pair y, emit_pair z);
/* Returns an i1 that says whether x < y.  x and y have the accumulating type of t. */
LLVMValueRef emit_less(const emit_ir *w, dtype t, LLVMValueRef x, LLVMValueRef y);

#endif
