/* remainder.c - the remainder of floats, exactly as C's fmod returns it; see math.h. */
#include "emit/math/math.h"
#include "emit/math/math_primitives.h"

/* Sets the integer m and returns the exponent e, at least 1, for which the positive finite number x is m 2^(e - 1075).
 */
static V decompose(W w, V x, V *m) {
  LLVMBuilderRef b = w->builder;
  V bits = emit_bits_of(w, x), e = LLVMBuildLShr(b, bits, emit_i64(w, 52), "");
  V fraction = LLVMBuildAnd(b, bits, emit_i64(w, ((int64_t)1 << 52) - 1), "");
  V normal = emit_icmp(w, LLVMIntNE, e, emit_i64(w, 0));
  *m = pick(w, normal, LLVMBuildOr(b, fraction, emit_i64(w, (int64_t)1 << 52), ""), fraction);
  return pick(w, normal, e, emit_i64(w, 1));
}

/* Returns m 2^steps modulo `by`, where both integers have at most 53 bits.  So the product of a rest and 2^11 fits into
 * 64 bits, and each iteration takes eleven steps. */
static V shifted_modulo(W w, V m, V steps, V by) {
  enum { AT_ONCE = 11 };
  LLVMBuilderRef b = w->builder;
  emit_while l;
  emit_while_begin(w, &l, 2, (V[]){LLVMBuildURem(b, m, by, ""), steps});
  emit_while_test(w, &l, emit_icmp(w, LLVMIntSGT, l.carried[1], emit_i64(w, 0)));
  V now = emit_intrinsic2(w, "llvm.smin", l.carried[1], emit_i64(w, AT_ONCE));
  V rest = LLVMBuildURem(b, LLVMBuildShl(b, l.carried[0], now, ""), by, "");
  emit_while_end(w, &l, (V[]){rest, LLVMBuildSub(b, l.carried[1], now, "")});
  return l.carried[0];
}

/* Returns the remainder of two finite numbers a >= b > 0: with a = m 2^e and b = n 2^f, it is m 2^(e - f) modulo n,
 * times 2^f. */
static V long_division(W w, V a, V b) {
  V m, n, e = decompose(w, a, &m), f = decompose(w, b, &n);
  V rest = shifted_modulo(w, m, LLVMBuildSub(w->builder, e, f, ""), n);
  V r = LLVMBuildSIToFP(w->builder, rest, w->f64, "");
  V scale = emit_float_of(w, LLVMBuildShl(w->builder, f, emit_i64(w, 52), "")); /* 2^(f - 1023), a normal number */
  return mul(w, mul_c(w, r, 0x1p-52), scale);
}

/* Writes fmod for two scalars in f64. */
static V fmod_f64(W w, const V *args) {
  V a = absolute(w, args[0]), b = absolute(w, args[1]), infinity = emit_f(a, (double)INFINITY);
  V defined = LLVMBuildAnd(w->builder, emit_fcmp(w, LLVMRealOLT, a, infinity), gt(w, b, 0), "");
  V divides = LLVMBuildAnd(w->builder, defined, emit_fcmp(w, LLVMRealOGE, a, b), "");
  V smaller = LLVMBuildAnd(w->builder, defined, emit_fcmp(w, LLVMRealOLT, a, b), "");
  /* The NaN has the sign of the NaNs that x86 makes, since a later conversion to a type without NaN keeps the sign. */
  V easy = pick(w, smaller, args[0], emit_f(a, -(double)NAN));
  LLVMBasicBlockRef from[2] = {emit_here(w)}, after = emit_if_begin(w, divides);
  V r = with_sign(w, long_division(w, a, b), args[0]);
  from[1] = emit_here(w);
  emit_if_end(w, after);
  V either = LLVMBuildPhi(w->builder, w->f64, "");
  LLVMAddIncoming(either, (V[]){easy, r}, from, 2);
  return either;
}

/* Writes fmod for two scalars in f32.  Their remainder in f64 is also an f32, since it is a multiple of the last place
 * of one operand and not larger than the other. */
static V fmod_f32(W w, const V *args) {
  V wide[2];
  for (int k = 0; k < 2; k++) {
    wide[k] = LLVMBuildFPExt(w->builder, args[k], w->f64, "");
  }
  return LLVMBuildFPTrunc(w->builder, fmod_f64(w, wide), w->f32, "");
}

/* Returns the name of the function that computes a remainder of any size. */
static const char *function_for(W w, V x) {
  bool f32 = emit_bits(x) == 32;
  if (w->target->libm) {
    return f32 ? "fmodf" : "fmod";
  }
  return emit_own_function(w, f32 ? "onnx_xla_fmodf" : "onnx_xla_fmod", 2, x, f32 ? fmod_f32 : fmod_f64);
}

/* The rounded quotient, truncated, equals the exact quotient, truncated, or is larger by one.  So the remainder that is
 * computed with it is exact; if it is negative, |y| is added.  Lanes with a quotient so large that it has no fraction,
 * and those with infinities, NaN or y = 0, call a function. */
V emit_remainder(W w, V x, V y) {
  const char *function = function_for(w, x);
  if (!emit_has_fma(w, x) || !emit_has_rounding(w, x)) {
    return emit_call_lanes(w, function, 2, (V[]){x, y});
  }
  V a = absolute(w, x), by = absolute(w, y), q = quo(w, a, by);
  V hard = LLVMBuildOr(w->builder, emit_fcmp(w, LLVMRealUGE, q, emit_f(q, emit_bits(x) == 32 ? 0x1p23 : 0x1p52)),
                       emit_fcmp(w, LLVMRealUEQ, by, emit_f(by, (double)INFINITY)), "");
  V r = emit_fma(w, neg(w, emit_intrinsic1(w, "llvm.trunc", q)), by, a);
  r = with_sign(w, pick(w, lt(w, r, 0), add(w, r, by), r), x);
  return emit_call_hard_lanes(w, hard, r, function, 2, (V[]){x, y});
}
