/* number.h - HLO's element types as LLVM values, and conversions between them.
 *
 * In registers, pred is i1.  Integers have the same width as in memory; those of 2 and 4 bits are i8, sign- or
 * zero-extended. f32 and f64 are LLVM's float and double.  Smaller floats are kept as their bits (i16, i8), so that
 * moving them does not change a NaN; they are widened to f32 for arithmetic.  Complex numbers are pairs of f32 or f64,
 * strings are i64. */
#ifndef EMIT_LLVM_NUMBER_H
#define EMIT_LLVM_NUMBER_H

#include "base/tensor/dtype.h"
#include "emit/llvm/index.h"
#include "emit/llvm/ir.h"

/* Returns the type of values in registers; for complex types it is that of one part. */
LLVMTypeRef emit_register_type(const emit_ir *w, dtype t);
LLVMTypeRef emit_memory_type(const emit_ir *w, dtype t);
static inline bool emit_is_small_float(dtype t) { return dtype_is_float(t) && t != DTYPE_F32 && t != DTYPE_F64; }
/* Returns the type in which sums and comparisons of t are computed: f32 for small floats. */
static inline dtype emit_compute_type(dtype t) { return emit_is_small_float(t) ? DTYPE_F32 : t; }

/* Convert between values in registers and in memory, where pred is i8. */
LLVMValueRef emit_from_memory(const emit_ir *w, dtype t, LLVMValueRef v);
LLVMValueRef emit_to_memory(const emit_ir *w, dtype t, LLVMValueRef v);

/* The first converts a small float to f32, exactly; the second converts back, to the nearest value, half to even.
 * Other types are not changed. */
LLVMValueRef emit_widen(const emit_ir *w, dtype t, LLVMValueRef v);
LLVMValueRef emit_narrow(const emit_ir *w, dtype t, LLVMValueRef v);
/* Wraps an integer of 2 or 4 bits into its range after arithmetic.  Other types are not changed. */
LLVMValueRef emit_wrap(const emit_ir *w, dtype t, LLVMValueRef v);

/* Writes HLO's convert; round is a dtype_round. */
emit_pair emit_convert(const emit_ir *w, dtype from, dtype to, emit_pair v, bool saturate, int round);

/* Returns a constant of type t in registers. emit_number_f cannot give all integers of 64 bits; emit_number_i can. */
LLVMValueRef emit_number_f(const emit_ir *w, dtype t, double value);
LLVMValueRef emit_number_i(const emit_ir *w, dtype t, int64_t value);
/* Returns an element, given by its bytes in memory, as a constant in registers. */
emit_pair emit_number_at(const emit_ir *w, dtype t, const void *element);

#endif
