/* attention_internal.h - what the kernels of attention.h and of flash_attention.h share: f32 vectors in memory, and the
 * elementwise operations of the softmax. */
#ifndef EMIT_CONTRACTION_ATTENTION_INTERNAL_H
#define EMIT_CONTRACTION_ATTENTION_INTERNAL_H

#include "emit/kernel/writer.h"

/* The address of an f32, `offset` (an i64) elements after `base`; loads and stores of `lanes` of them. */
LLVMValueRef emit_f32_at(const emit_ir *w, LLVMValueRef base, LLVMValueRef offset);
LLVMValueRef emit_f32_load(const emit_ir *w, LLVMValueRef p, int lanes);
void emit_f32_store(const emit_ir *w, LLVMValueRef v, LLVMValueRef p);

typedef LLVMValueRef emit_join(const emit_ir *w, LLVMValueRef x, LLVMValueRef y);
/* Return the larger one and the sum. */
emit_join emit_larger, emit_sum;
/* Reduces all lanes of x to one number. */
LLVMValueRef emit_join_lanes(const emit_ir *w, LLVMValueRef x, int lanes, emit_join *join);

/* The place of one score, or of a vector of them: row number `row` of all batches, and column `column` of it, which is
 * a multiple of `multiple`.  If column is NULL, it is the place of a value that a row has once. */
const emit_index *emit_score_place(emit_element *e, dim rows, dim keys, LLVMValueRef row, LLVMValueRef column,
                                   int64_t multiple);

/* Writes the elementwise operations that lead from the value `from` to the value `made`.  Returns the element (or
 * vector) of `made` at index `place`, where x is the one of `from`. */
LLVMValueRef emit_value_from(emit_element *e, hlo_value made, hlo_value from, const emit_index *place, LLVMValueRef x);

#endif
