/* math_f64.c - transcendental functions of f64: vectorised polynomials, since libm would have to be called for each
 * lane.
 *
 * The coefficients were fitted for this file by the Remez exchange algorithm for the minimal maximum of the relative
 * error, with 60 digits.  The algorithms are those of f32, so the comments in math.c apply here as well. */
#include "emit/math/math_primitives.h"

/* These convert whole numbers to i32; the second returns 0 for NaN.  Exponents and quadrants are i32, since few targets
 * have instructions to convert vectors between i64 and f64. */
static V to_int(W w, V x) { return LLVMBuildFPToSI(w->builder, x, emit_type_like(x, w->i32), ""); }
static V whole(W w, V x) { return to_int(w, pick(w, emit_fcmp(w, LLVMRealORD, x, x), x, emit_f(x, 0))); }
/* Returns 2^n, which must be a normal number. */
static V two_to(W w, V n) {
  V biased = LLVMBuildSExt(w->builder, LLVMBuildAdd(w->builder, n, emit_i(n, 1023), ""), emit_type_like(n, w->i64), "");
  return emit_float_of(w, LLVMBuildShl(w->builder, biased, emit_i(biased, 52), ""));
}

/* --- exponentials --- */

V emit_times_two_to_f64(W w, V x, V n) {
  if (w->target->scalef) {
    return emit_scale(w, x, n);
  }
  V i = whole(w, n), half = LLVMBuildAShr(w->builder, i, emit_i(i, 1), "");
  return mul(w, mul(w, x, two_to(w, half)), two_to(w, LLVMBuildSub(w->builder, i, half, "")));
}

#define LN2_HIGH 0x1.62e42feep-1 /* 32 bits, so that its product with an exponent is exact */
#define LN2_LOW 0x1.a39ef35793c76p-33
#define LOG2_E 0x1.71547652b82fep+0

/* Sets n and returns r with x = n ln2 + r and |r| <= ln2 / 2.  *p is (e^r - 1 - r) / r^2, with an error of 2^-60. */
static V reduce_exp(W w, V x, V *n, V *p) {
  *n = emit_round_even(w, mul_c(w, x, LOG2_E));
  V r = fma_c(w, *n, -LN2_LOW, fma_c(w, *n, -LN2_HIGH, x));
  *p = POLY(w, r, 0x1p-1, 0x1.555555555555cp-3, 0x1.555555555555ep-5, 0x1.111111110ebb3p-7, 0x1.6c16c16c1355cp-10,
            0x1.a01a01b3badfbp-13, 0x1.a01a01b460873p-16, 0x1.71ddef946244cp-19, 0x1.27e4bf1ddcc63p-22,
            0x1.af6ccbe9ac0d0p-26, 0x1.1f9e0662631afp-29);
  return r;
}

/* Returns e^x 2^extra for x clamped to [-746, most]. */
static V exp_up_to(W w, V x, double most, int extra) {
  V n, p;
  x = at_least(w, at_most(w, x, most), -746);
  V r = reduce_exp(w, x, &n, &p);
  V e = add_c(w, emit_fma(w, mul(w, r, r), p, r), 1);
  return emit_times_two_to_f64(w, e, extra ? add_c(w, n, extra) : n);
}

V emit_exp_f64(W w, V x) { return exp_up_to(w, x, 710, 0); }

V emit_expm1_f64(W w, V x) {
  V n, p, c = at_least(w, at_most(w, x, 710), -38); /* so that n is at most 1024 */
  V r = reduce_exp(w, c, &n, &p);
  V e = emit_fma(w, mul(w, r, r), p, r);
  V i = whole(w, n);
  V half = two_to(w, LLVMBuildSub(w->builder, i, emit_i(i, 1), ""));
  V y = emit_fma(w, half, e, add_c(w, half, -0.5));
  return pick(w, eq(w, x, 0), x, add(w, y, y));
}

V emit_logistic_f64(W w, V x) {
  V e = exp_up_to(w, x, 709, 0); /* clamped so that e stays finite; the quotient is 1 for much smaller x already */
  return quo(w, e, add_c(w, e, 1));
}

V emit_tanh_f64(W w, V x) {
  V n, p, a = absolute(w, x);
  V r = reduce_exp(w, at_most(w, add(w, a, a), 44), &n, &p);
  V e = emit_fma(w, mul(w, r, r), p, r), scale = two_to(w, whole(w, n));
  V m = emit_fma(w, scale, e, add_c(w, scale, -1));
  return with_sign(w, quo(w, m, add_c(w, m, 2)), x);
}

V emit_sinh_f64(W w, V x) {
  V a = absolute(w, x), z = mul(w, x, x);
  V p = POLY(w, z, 0x1.5555555555555p-3, 0x1.1111111111111p-7, 0x1.a01a01a019fbdp-13, 0x1.71de3a557431dp-19,
             0x1.ae645673dbaadp-26, 0x1.61246b20b3a3ep-33, 0x1.ae7556885211ep-41, 0x1.9a7f573ee7562p-49);
  V e = exp_up_to(w, a, 711, -1);
  V large = sub(w, e, quo(w, emit_f(x, 0.25), e));
  return with_sign(w, pick(w, lt(w, a, 1), emit_fma(w, mul(w, x, z), p, x), large), x);
}

V emit_cosh_f64(W w, V x) {
  V e = exp_up_to(w, absolute(w, x), 711, -1);
  return add(w, e, quo(w, emit_f(x, 0.25), e));
}

/* For |x| < 0.95, erf is a polynomial; for larger |x| it is 1 - e^q, where the polynomial q approximates
 * log(erfc(|x|)).  The error of q matters less where erfc is smaller; for |x| >= 6, erf is 1. */
V emit_erf_f64(W w, V x) {
  V a = absolute(w, x), z = mul(w, x, x);
  V p = POLY(w, z, 0x1.06eba8214db68p-3, -0x1.812746b0379c3p-2, 0x1.ce2f21a0416e5p-4, -0x1.b82ce3122ef43p-6,
             0x1.565bcd0128a36p-8, -0x1.c02db19a48047p-11, 0x1.f9a2dedc14ff2p-14, -0x1.f4ccafd37012bp-17,
             0x1.b99970ba2c54cp-20, -0x1.5cb1034ccd431p-23, 0x1.dc0eee817f6dbp-27, -0x1.bb98128bd6f8cp-31);
  V q = POLY(w, at_most(w, a, 6), -0x1.e3c5dcf04bd0cp-24, -0x1.20dd61463768dp+0, -0x1.45f3c54e450f2p-1,
             -0x1.a4e361dc6971bp-4, 0x1.38db506ba03dbp-6, 0x1.0c07ca132e576p-12, -0x1.c87ebf8289020p-10,
             0x1.439fcb0101fe5p-11, -0x1.dd52195ce8870p-16, -0x1.4c993d949ab4bp-14, 0x1.9a6ef72a8ee77p-15,
             -0x1.2bb39d83ee522p-16, 0x1.3b3a4d36f644cp-18, -0x1.f32b0ba69f8e7p-21, 0x1.29b3835a38665p-23,
             -0x1.04c4a8bedf1e4p-26, 0x1.3d7453d746042p-30, -0x1.e060755471049p-35, 0x1.54541f02d6f24p-40);
  V large = sub(w, emit_f(x, 1), emit_exp_f64(w, q));
  return with_sign(w, pick(w, lt(w, a, 0.95), emit_fma(w, x, p, x), large), x);
}

/* --- logarithms --- */

/* Splits a normal x > 0 into 2^e m with m in [sqrt(1/2), sqrt(2)). */
static V split(W w, V x, V *e) {
  LLVMBuilderRef b = w->builder;
  V bits = emit_bits_of(w, x), shifted = LLVMBuildSub(b, bits, emit_i(bits, 0x3fe6a09e667f3bcd), "");
  V high = LLVMBuildTrunc(b, LLVMBuildLShr(b, shifted, emit_i(bits, 32), ""), emit_type_like(x, w->i32), "");
  *e = LLVMBuildAShr(b, high, emit_i(high, 20), "");
  V exponent = LLVMBuildAnd(b, shifted, emit_i(bits, (int64_t)0xfff0000000000000), "");
  return emit_float_of(w, LLVMBuildSub(b, bits, exponent, ""));
}

/* Returns e ln2 + log(1 + f).  With s = f / (2 + f), log(1 + f) = f - f^2 / 2 + s (f^2 / 2 + R(s^2)); the error of R
 * is 2^-59. */
static V log_of_parts(W w, V f, V e) {
  V s = quo(w, f, add_c(w, f, 2)), z = mul(w, s, s), half = mul(w, mul_c(w, f, 0.5), f);
  V p = POLY(w, z, 0x1.5555555555593p-1, 0x1.999999997fb56p-2, 0x1.2492494215defp-2, 0x1.c71c51e93b736p-3,
             0x1.746645f12916dp-3, 0x1.39a0fa64869f4p-3, 0x1.2f0d5d843d441p-3);
  e = LLVMBuildSIToFP(w->builder, e, LLVMTypeOf(f), "");
  V t = fma_c(w, e, LN2_LOW, mul(w, s, emit_fma(w, z, p, half)));
  return fma_c(w, e, LN2_HIGH, sub(w, f, sub(w, half, t)));
}

V emit_split_f64(W w, V x, V *e) {
  V tiny = lt(w, x, 0x1p-1022), m = split(w, pick(w, tiny, mul_c(w, x, 0x1p54), x), e);
  *e = LLVMBuildSub(w->builder, *e, pick(w, tiny, emit_i(*e, 54), emit_i(*e, 0)), "");
  return m;
}

V emit_log_f64(W w, V x) {
  V e, m = emit_split_f64(w, x, &e);
  return log_edges(w, x, log_of_parts(w, add_c(w, m, -1), e));
}

V emit_log1p_f64(W w, V x) {
  V e, u = add_c(w, x, 1);
  V lost = pick(w, lt(w, x, 1), sub(w, x, add_c(w, u, -1)), sub(w, emit_f(x, 1), sub(w, u, x)));
  V m = split(w, u, &e);
  V f = emit_fma(w, lost, two_to(w, LLVMBuildNeg(w->builder, e, "")), add_c(w, m, -1));
  V y = log_edges(w, u, log_of_parts(w, f, e));
  /* For x >= 2^60, 2^-e may not be a normal number, and log(1 + x) equals log(x). */
  y = pick(w, ge(w, x, 0x1p60), emit_log_f64(w, x), y);
  return pick(w, lt(w, absolute(w, x), 0x1p-53), x, y);
}
