/* attention_internal.h - what the kernels of attention.h and of flash_attention.h share: f32 vectors in memory, and the
 * elementwise operations of the softmax. */
#ifndef EMIT_CONTRACTION_ATTENTION_INTERNAL_H
#define EMIT_CONTRACTION_ATTENTION_INTERNAL_H

#include "emit/kernel/writer.h"
#include "hlo/analysis/attention.h"

/* The first returns the address of the f32 that is `offset` (an i64) elements after `base`.  The others load `lanes`
 * f32 numbers from p, and store v, a number or a vector, at p. */
LLVMValueRef emit_f32_at(const emit_ir *w, LLVMValueRef base, LLVMValueRef offset);
LLVMValueRef emit_f32_load(const emit_ir *w, LLVMValueRef p, int lanes);
void emit_f32_store(const emit_ir *w, LLVMValueRef v, LLVMValueRef p);

typedef LLVMValueRef emit_join(const emit_ir *w, LLVMValueRef x, LLVMValueRef y);
emit_join emit_sum; /* x + y, lane by lane */

/* Returns e^(score - shift), for a shift of the score's row, which is the row's maximum if `by_maximum` is set
 * (hlo_shifts_by_maximum). */
LLVMValueRef emit_score_exponential(const emit_ir *w, bool by_maximum, LLVMValueRef score, LLVMValueRef shift);
/* Returns the one number to which `join` reduces all lanes of x. */
LLVMValueRef emit_join_lanes(const emit_ir *w, LLVMValueRef x, int lanes, emit_join *join);

/* Returns the index of the score (or of the vector of scores) in row `row`, counted over all batches, and at column
 * `column`, which is a multiple of `multiple`.  If `column` is NULL, returns the index of a value that a row has only
 * once, such as its maximum. */
const emit_index *emit_score_place(emit_element *e, dim rows, dim keys, LLVMValueRef row, LLVMValueRef column,
                                   int64_t multiple);

/* Writes the elementwise operations that lead from the value `from` to the value `made`.  Returns the element (or
 * vector) of `made` at index `place`; x is the element (or vector) of `from` at that index. */
LLVMValueRef emit_value_from(emit_element *e, hlo_value made, hlo_value from, const emit_index *place, LLVMValueRef x);

#endif
