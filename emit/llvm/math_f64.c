/* math_f64.c - transcendental functions of f64: vectorised polynomials, since libm would have to be called for each
 * lane.
 *
 * The coefficients were fitted for this file by the Remez exchange algorithm for the minimal maximum of the relative
 * error, with 60 digits.  The algorithms are those of f32, so the comments in math.c apply here as well. */
#include "emit/llvm/math_primitives.h"

/* Exponents and quadrants are i32, since few targets have instructions to convert vectors between i64 and f64. */
static V to_int(W w, V x) { return LLVMBuildFPToSI(w->builder, x, emit_type_like(x, w->i32), ""); }
static V whole(W w, V x) { return to_int(w, pick(w, emit_fcmp(w, LLVMRealORD, x, x), x, emit_f(x, 0))); }
/* Returns 2^n, which must be a normal number. */
static V two_to(W w, V n) {
  V biased = LLVMBuildSExt(w->builder, LLVMBuildAdd(w->builder, n, emit_i(n, 1023), ""), emit_type_like(n, w->i64), "");
  return emit_float_of(w, LLVMBuildShl(w->builder, biased, emit_i(biased, 52), ""));
}

/* --- exponentials --- */

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

/* Returns e^x 2^extra for x clamped to `most`. */
static V exp_up_to(W w, V x, double most, int extra) {
  V n, p;
  x = at_least(w, at_most(w, x, most), -746);
  V r = reduce_exp(w, x, &n, &p);
  V e = add_c(w, emit_fma(w, mul(w, r, r), p, r), 1);
  if (w->target->scalef) {
    return emit_scale(w, e, extra ? add_c(w, n, extra) : n);
  }
  V i = whole(w, n);
  i = LLVMBuildAdd(w->builder, i, emit_i(i, extra), "");
  V half = LLVMBuildAShr(w->builder, i, emit_i(i, 1), "");
  return mul(w, mul(w, e, two_to(w, half)), two_to(w, LLVMBuildSub(w->builder, i, half, "")));
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
  V e = exp_up_to(w, x, 709, 0); /* e stays finite; the quotient is 1 for much smaller x already */
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

V emit_log_f64(W w, V x) {
  V e, tiny = lt(w, x, 0x1p-1022), m = split(w, pick(w, tiny, mul_c(w, x, 0x1p54), x), &e);
  e = LLVMBuildSub(w->builder, e, pick(w, tiny, emit_i(e, 54), emit_i(e, 0)), "");
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

/* --- trigonometry --- */

/* Sets n and returns r with x = n pi/2 + r and |r| <= pi/4, for |x| < 2^20.  n pi/2 is subtracted in parts of 33 bits
 * of pi/2, whose products with n are exact. */
static V reduce_pi(W w, V x, V *n) {
  V k = emit_round_even(w, mul_c(w, x, 0x1.45f306dc9c883p-1));
  V r = fma_c(w, k, -0x1.921fb544p+0, x);
  r = fma_c(w, k, -0x1.0b4611a6p-34, r);
  r = fma_c(w, k, -0x1.3198a2ep-69, r);
  r = fma_c(w, k, -0x1.b839a252049c1p-104, r);
  *n = to_int(w, k);
  return r;
}

static V bit(W w, V n, int k) {
  return emit_icmp(w, LLVMIntNE, LLVMBuildAnd(w->builder, n, emit_i(n, 1 << k), ""), emit_i(n, 0));
}

/* Returns sin(x + shift pi/2) for |x| < 2^20. */
static V sin_near(W w, V x, int shift) {
  V n, r = reduce_pi(w, x, &n), z = mul(w, r, r), half = mul_c(w, z, 0.5), head = sub(w, emit_f(z, 1), half);
  V p = POLY(w, z, -0x1.5555555555549p-3, 0x1.111111110f862p-7, -0x1.a01a019c0e525p-13, 0x1.71de3574bd2d0p-19,
             -0x1.ae5e63cebb4cep-26, 0x1.5d92470158981p-33);
  V q = POLY(w, z, 0x1.555555555554cp-5, -0x1.6c16c16c15163p-10, 0x1.a01a019caefd1p-16, -0x1.27e4f807db924p-22,
             0x1.1ee9ea6faab9fp-29, -0x1.8fadd1a200cf0p-37);
  V lost = sub(w, sub(w, emit_f(x, 1), head), half); /* the rounding error of head */
  V sine = emit_fma(w, mul(w, r, z), p, r), cosine = add(w, head, emit_fma(w, mul(w, z, z), q, lost));
  n = LLVMBuildAdd(w->builder, n, emit_i(n, shift), "");
  V y = pick(w, bit(w, n, 0), cosine, sine);
  y = pick(w, bit(w, n, 1), neg(w, y), y);
  return shift ? y : pick(w, eq(w, x, 0), x, y);
}

/* Returns sin(x + shift pi/2).  Lanes that are too large for sin_near, infinite or NaN call libm. */
static V sin_shifted(W w, V x, int shift) {
  V fits = lt(w, absolute(w, x), 0x1p20), y = sin_near(w, pick(w, fits, x, emit_f(x, 0)), shift);
  return emit_call_hard_lanes(w, LLVMBuildNot(w->builder, fits, ""), y, shift ? "cos" : "sin", 1, &x);
}

V emit_sin_f64(W w, V x) { return sin_shifted(w, x, 0); }
V emit_cos_f64(W w, V x) { return sin_shifted(w, x, 1); }
