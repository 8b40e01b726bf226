/* number.h - HLO's element types as LLVM values, and conversions between them.
 *
 * In registers: pred is i1; integers have their width in memory (2- and 4-bit ones are kept as i8, extended);
 * f32 and f64 are themselves; the smaller floats are their bits (i16, i8), so that moving them changes
 * nothing, and are widened to f32 where they are computed with; complex numbers are pairs of f32 or f64;
 * strings are i64. */
#ifndef EMIT_LLVM_NUMBER_H
#define EMIT_LLVM_NUMBER_H

#include "base/tensor/dtype.h"
#include "emit/llvm/index.h"
#include "emit/llvm/ir.h"

/* Of one part for complex types. */
LLVMTypeRef emit_register_type(const emit_ir *w, dtype t);
LLVMTypeRef emit_memory_type(const emit_ir *w, dtype t);
static inline bool emit_is_small_float(dtype t) { return dtype_is_float(t) && t != DTYPE_F32 && t != DTYPE_F64; }
/* The type that sums and comparisons of t are kept in: small floats as f32. */
static inline dtype emit_compute_type(dtype t) { return emit_is_small_float(t) ? DTYPE_F32 : t; }

/* Register values <-> what memory holds (pred: i8). */
LLVMValueRef emit_from_memory(const emit_ir *w, dtype t, LLVMValueRef v);
LLVMValueRef emit_to_memory(const emit_ir *w, dtype t, LLVMValueRef v);

/* Small floats to f32 (exact) and back (nearest even); other types pass. */
LLVMValueRef emit_widen(const emit_ir *w, dtype t, LLVMValueRef v);
LLVMValueRef emit_narrow(const emit_ir *w, dtype t, LLVMValueRef v);
/* Brings an integer of 2 or 4 bits back into its range after arithmetic; others pass. */
LLVMValueRef emit_wrap(const emit_ir *w, dtype t, LLVMValueRef v);

/* HLO's convert.  round: dtype_round. */
emit_pair emit_convert(const emit_ir *w, dtype from, dtype to, emit_pair v, bool saturate, int round);

/* A constant of type t in registers; value as f64 (integers of 64 bits: use emit_number_i). */
LLVMValueRef emit_number_f(const emit_ir *w, dtype t, double value);
LLVMValueRef emit_number_i(const emit_ir *w, dtype t, int64_t value);
/* An element of a constant. */
emit_pair emit_number_at(const emit_ir *w, dtype t, const void *element);

#endif
