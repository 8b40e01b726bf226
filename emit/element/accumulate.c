/* accumulate.c - conversions between elements and accumulated values; see accumulate.h. */
#include "emit/element/accumulate.h"

static bool by_key(hlo_reducer r, dtype t) {
  bool own = t == DTYPE_F32 || t == DTYPE_F64 || t == DTYPE_F16 || t == DTYPE_BF16;
  return own && (r == HLO_REDUCE_MAX || r == HLO_REDUCE_MIN);
}

dtype emit_acc_type(hlo_reducer r, dtype t) {
  if (!by_key(r, t)) {
    return emit_compute_type(t);
  }
  return dtype_bytes(t) == 8 ? DTYPE_S64 : dtype_bytes(t) == 4 ? DTYPE_S32 : DTYPE_S16;
}

static int64_t magnitude_bits(dtype t) { return INT64_MAX >> (64 - 8 * (int)dtype_bytes(t)); }

/* Returns the number of NaNs of each sign, which is the largest value of the fraction's bits. */
static int64_t nan_bits(dtype t) {
  int fraction = t == DTYPE_F64 ? 52 : t == DTYPE_F32 ? 23 : t == DTYPE_F16 ? 10 : 7;
  return ((int64_t)1 << fraction) - 1;
}

/* Maps the bits of floats to keys: integers of the same order as the numbers.  Positive numbers keep their bits, and
 * the order of negative ones is reversed.  NaNs with a sign bit are then below -infinity, and other NaNs above
 * infinity.  `turn` is added to every key; the addition wraps, so that the NaNs from one end come to the other end.
 * With turn = 0, this function is its own inverse. */
static LLVMValueRef upside_down(const emit_ir *w, dtype t, LLVMValueRef x, int64_t turn) {
  LLVMBuilderRef b = w->builder;
  LLVMValueRef negative = emit_icmp(w, LLVMIntSLT, x, emit_i(x, 0));
  int64_t top = (int64_t)((uint64_t)magnitude_bits(t) + (uint64_t)turn); /* this sum wraps, as do those below */
  LLVMValueRef down = LLVMBuildSub(b, emit_i(x, top), x, "");
  return emit_select(w, negative, down, LLVMBuildAdd(b, x, emit_i(x, turn), ""));
}

static int64_t turn_of(hlo_reducer r, dtype t) { return r == HLO_REDUCE_MAX ? -nan_bits(t) : nan_bits(t); }

emit_pair emit_acc_hold(const emit_ir *w, hlo_reducer r, dtype t, emit_pair v) {
  if (!by_key(r, t)) {
    return (emit_pair){emit_widen(w, t, v.v), v.im};
  }
  LLVMValueRef bits = emit_bits_of(w, v.v);
  return (emit_pair){upside_down(w, t, bits, turn_of(r, t)), NULL};
}

emit_pair emit_acc_value(const emit_ir *w, hlo_reducer r, dtype t, emit_pair held) {
  if (!by_key(r, t)) {
    return (emit_pair){emit_narrow(w, t, held.v), held.im};
  }
  LLVMValueRef key = LLVMBuildSub(w->builder, held.v, emit_i(held.v, turn_of(r, t)), "");
  LLVMValueRef bits = upside_down(w, t, key, 0);
  return (emit_pair){LLVMBuildBitCast(w->builder, bits, emit_type_like(bits, emit_register_type(w, t)), ""), NULL};
}

emit_pair emit_acc_identity(const emit_ir *w, hlo_reducer r, dtype t) {
  if (!by_key(r, t)) {
    return emit_reduce_identity(w, r, t);
  }
  int64_t most = magnitude_bits(t); /* keys are in [-most - 1, most] */
  LLVMTypeRef type = emit_register_type(w, emit_acc_type(r, t));
  return (emit_pair){emit_i_of(type, r == HLO_REDUCE_MAX ? -most - 1 : most), NULL};
}

emit_pair emit_acc_combine(const emit_ir *w, hlo_reducer r, dtype t, emit_pair x, emit_pair y) {
  if (!by_key(r, t)) {
    return emit_reduce_combine(w, r, t, x, y);
  }
  return (emit_pair){emit_intrinsic2(w, r == HLO_REDUCE_MAX ? "llvm.smax" : "llvm.smin", x.v, y.v), NULL};
}
