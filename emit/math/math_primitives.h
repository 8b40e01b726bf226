/* math_primitives.h - short functions that write instructions, for the files of transcendental functions (math*.c). */
#ifndef EMIT_MATH_MATH_PRIMITIVES_H
#define EMIT_MATH_MATH_PRIMITIVES_H

#include <math.h>

#include "emit/llvm/ir.h"

typedef const emit_ir *W;
typedef LLVMValueRef V;

static inline V add(W w, V x, V y) { return LLVMBuildFAdd(w->builder, x, y, ""); }
static inline V sub(W w, V x, V y) { return LLVMBuildFSub(w->builder, x, y, ""); }
static inline V mul(W w, V x, V y) { return LLVMBuildFMul(w->builder, x, y, ""); }
static inline V quo(W w, V x, V y) { return LLVMBuildFDiv(w->builder, x, y, ""); }
static inline V neg(W w, V x) { return LLVMBuildFNeg(w->builder, x, ""); }
static inline V mul_c(W w, V x, double c) { return mul(w, x, emit_f(x, c)); }
static inline V add_c(W w, V x, double c) { return add(w, x, emit_f(x, c)); }
static inline V fma_c(W w, V x, double c, V z) { return emit_fma(w, x, emit_f(x, c), z); }
static inline V absolute(W w, V x) { return emit_intrinsic1(w, "llvm.fabs", x); }
static inline V with_sign(W w, V x, V sign) { return emit_intrinsic2(w, "llvm.copysign", x, sign); }
static inline V root(W w, V x) { return emit_intrinsic1(w, "llvm.sqrt", x); }
static inline V pick(W w, V c, V x, V y) { return emit_select(w, c, x, y); }
/* Comparisons with constants, which are false for NaN. */
static inline V lt(W w, V x, double c) { return emit_fcmp(w, LLVMRealOLT, x, emit_f(x, c)); }
static inline V gt(W w, V x, double c) { return emit_fcmp(w, LLVMRealOGT, x, emit_f(x, c)); }
static inline V ge(W w, V x, double c) { return emit_fcmp(w, LLVMRealOGE, x, emit_f(x, c)); }
static inline V eq(W w, V x, double c) { return emit_fcmp(w, LLVMRealOEQ, x, emit_f(x, c)); }
/* Return x limited to at most `high` and to at least `low`; NaN stays NaN. */
static inline V at_most(W w, V x, double high) { return pick(w, gt(w, x, high), emit_f(x, high), x); }
static inline V at_least(W w, V x, double low) { return pick(w, lt(w, x, low), emit_f(x, low), x); }

/* Returns the polynomial c[0] + c[1] x + c[2] x^2 + ... with n coefficients. */
static inline V poly(W w, V x, const double *c, int n) {
  V r = emit_f(x, c[n - 1]);
  for (int k = n - 2; k >= 0; k--) {
    r = emit_fma(w, r, x, emit_f(x, c[k]));
  }
  return r;
}
#define POLY(w, x, ...) \
  poly((w), (x), (const double[]){__VA_ARGS__}, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)))

/* Returns the same polynomial of x, given also z = x^2, as a polynomial in z whose coefficients are c[0] + c[1] x,
 * c[2] + c[3] x, ...: these do not wait for each other, so that the result is ready in half of the time. */
static inline V poly_of_pairs(W w, V x, V z, const double *c, int n) {
  V r = NULL;
  for (int k = (n - 1) / 2 * 2; k >= 0; k -= 2) {
    V pair = k + 1 < n ? fma_c(w, x, c[k + 1], emit_f(x, c[k])) : emit_f(x, c[k]);
    r = r ? emit_fma(w, r, z, pair) : pair;
  }
  return r;
}
#define POLY_OF_PAIRS(w, x, z, ...) \
  poly_of_pairs((w), (x), (z), (const double[]){__VA_ARGS__}, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)))

/* Returns the logarithm y of x, corrected if x is 0, infinite, NaN or negative. */
static inline V log_edges(W w, V x, V y) {
  double infinity = (double)INFINITY, nan = (double)NAN;
  y = pick(w, eq(w, x, infinity), x, y);
  y = pick(w, eq(w, x, 0), emit_f(x, -infinity), y);
  return pick(w, ge(w, x, 0), y, emit_f(x, nan));
}

/* Returns the power r of |x| and y, corrected if x is negative or 1, y is 0, or one is NaN. */
static inline V pow_edges(W w, V x, V y, V r) {
  double infinity = (double)INFINITY, nan = (double)NAN;
  LLVMBuilderRef b = w->builder;
  /* The result for negative x: it is negative if y is an odd integer, and NaN if y is not an integer. */
  V half = mul_c(w, y, 0.5);
  V integer = emit_fcmp(w, LLVMRealOEQ, emit_floor(w, y), y);
  V odd = LLVMBuildAnd(b, integer, emit_fcmp(w, LLVMRealUNE, emit_floor(w, half), half), "");
  V bits = emit_bits_of(w, x);
  V negative = emit_icmp(w, LLVMIntSLT, bits, emit_i(bits, 0));
  r = pick(w, LLVMBuildAnd(b, negative, odd, ""), neg(w, r), r);
  V none = LLVMBuildAnd(b, LLVMBuildAnd(b, lt(w, x, 0), gt(w, x, -infinity), ""), LLVMBuildNot(b, integer, ""), "");
  r = pick(w, LLVMBuildOr(b, none, emit_fcmp(w, LLVMRealUNO, x, y), ""), emit_f(x, nan), r);
  V one = LLVMBuildOr(b, eq(w, x, 1), eq(w, y, 0), "");
  return pick(w, one, emit_f(x, 1), r);
}

/* --- functions of other files --- */

/* math.c */
LLVMValueRef emit_log_f32(W w, V x);
LLVMValueRef emit_log1p_f32(W w, V x);

/* math_f64.c */
LLVMValueRef emit_exp_f64(W w, V x);
LLVMValueRef emit_expm1_f64(W w, V x);
LLVMValueRef emit_logistic_f64(W w, V x);
LLVMValueRef emit_tanh_f64(W w, V x);
LLVMValueRef emit_sinh_f64(W w, V x);
LLVMValueRef emit_cosh_f64(W w, V x);
LLVMValueRef emit_erf_f64(W w, V x);
LLVMValueRef emit_log_f64(W w, V x);
LLVMValueRef emit_log1p_f64(W w, V x);
/* Returns m in [sqrt(1/2), sqrt(2)), and sets the i32 e, with x = 2^e m.  x is positive and may be denormal. */
LLVMValueRef emit_split_f64(W w, V x, V *e);
/* Returns x 2^n for an integer n in f64, with |n| at most 1200, and x near 1.  A denormal result is rounded once
 * more. */
LLVMValueRef emit_times_two_to_f64(W w, V x, V n);

/* math_f64_trig.c */
LLVMValueRef emit_sin_f64(W w, V x);
LLVMValueRef emit_cos_f64(W w, V x);
LLVMValueRef emit_tan_f64(W w, V x);

/* math_f64_pow.c */
LLVMValueRef emit_pow_f64(W w, V x, V y);

/* math_inverse.c, for f32 and f64 */
LLVMValueRef emit_asin(W w, V x);
LLVMValueRef emit_acos(W w, V x);
LLVMValueRef emit_atan(W w, V x);
LLVMValueRef emit_atan2(W w, V y, V x);
LLVMValueRef emit_asinh(W w, V x);
LLVMValueRef emit_acosh(W w, V x);
LLVMValueRef emit_atanh(W w, V x);

#endif
