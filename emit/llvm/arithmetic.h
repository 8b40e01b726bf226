/* arithmetic.h - i64 arithmetic of counts and offsets, as the code of kernels computes it. */
#ifndef EMIT_LLVM_ARITHMETIC_H
#define EMIT_LLVM_ARITHMETIC_H

#include "emit/llvm/index.h"

/* Returns x + y, which does not overflow. */
static inline LLVMValueRef emit_add(const emit_ir *w, LLVMValueRef x, LLVMValueRef y) {
  return LLVMBuildNSWAdd(w->builder, x, y, "");
}

/* Returns x - y, which does not overflow. */
static inline LLVMValueRef emit_sub(const emit_ir *w, LLVMValueRef x, LLVMValueRef y) {
  return LLVMBuildNSWSub(w->builder, x, y, "");
}

/* Returns x * y, which does not overflow. */
static inline LLVMValueRef emit_mul(const emit_ir *w, LLVMValueRef x, LLVMValueRef y) {
  return LLVMBuildNSWMul(w->builder, x, y, "");
}

/* Return x / y, rounded down, and its remainder. x is not negative.  The divisions are not hidden from LLVM's loop
 * passes. */
static inline LLVMValueRef emit_div(const emit_ir *w, LLVMValueRef x, LLVMValueRef y) {
  return LLVMBuildUDiv(w->builder, x, y, "");
}
static inline LLVMValueRef emit_rem(const emit_ir *w, LLVMValueRef x, LLVMValueRef y) {
  return LLVMBuildURem(w->builder, x, y, "");
}

/* Returns x * n, which does not overflow. */
static inline LLVMValueRef emit_times(const emit_ir *w, LLVMValueRef x, int64_t n) {
  return n == 1 ? x : LLVMBuildNSWMul(w->builder, x, emit_i64(w, n), "");
}

/* Returns x / n, rounded down. x is not negative.  The division is hidden from LLVM's loop passes (emit_opaque), which
 * would otherwise spend much time on it. */
static inline LLVMValueRef emit_over(const emit_ir *w, LLVMValueRef x, int64_t n) {
  return n == 1 ? x : emit_opaque(w, LLVMBuildUDiv(w->builder, x, emit_i64(w, n), ""));
}

/* Returns the remainder of x / n. x is not negative.  The division is hidden from LLVM's loop passes (emit_opaque),
 * which would otherwise spend much time on it. */
static inline LLVMValueRef emit_modulo(const emit_ir *w, LLVMValueRef x, int64_t n) {
  return n == 1 ? emit_i64(w, 0) : emit_opaque(w, LLVMBuildURem(w->builder, x, emit_i64(w, n), ""));
}

/* These three do what emit_times, emit_over and emit_modulo do, for a size n that need not be a constant. */
static inline LLVMValueRef emit_times_size(const emit_indexer *x, LLVMValueRef v, dim n) {
  return dim_is_const(n) ? emit_times(x->w, v, n) : LLVMBuildNSWMul(x->w->builder, v, emit_size(x, n), "");
}
static inline LLVMValueRef emit_over_size(const emit_indexer *x, LLVMValueRef v, dim n) {
  return dim_is_const(n) ? emit_over(x->w, v, n)
                         : emit_opaque(x->w, LLVMBuildUDiv(x->w->builder, v, emit_size(x, n), ""));
}
static inline LLVMValueRef emit_modulo_size(const emit_indexer *x, LLVMValueRef v, dim n) {
  return dim_is_const(n) ? emit_modulo(x->w, v, n)
                         : emit_opaque(x->w, LLVMBuildURem(x->w->builder, v, emit_size(x, n), ""));
}

/* Returns the lesser of x and y. */
static inline LLVMValueRef emit_lesser(const emit_ir *w, LLVMValueRef x, LLVMValueRef y) {
  if (LLVMIsAConstantInt(x) && LLVMIsAConstantInt(y)) {
    return LLVMConstIntGetSExtValue(x) < LLVMConstIntGetSExtValue(y) ? x : y;
  }
  return emit_intrinsic2(w, "llvm.smin", x, y);
}

/* Returns the greater of x and y. */
static inline LLVMValueRef emit_greater(const emit_ir *w, LLVMValueRef x, LLVMValueRef y) {
  return emit_intrinsic2(w, "llvm.smax", x, y);
}

#endif
