/* math.c - transcendental functions of f32; see math.h.
 *
 * The coefficients were fitted for this file by weighted least squares on Chebyshev nodes, reweighted towards the
 * minimal maximum of the relative error, with 40 digits.  They were rounded to f32 one by one from the lowest power
 * up. */
#include "emit/math/math.h"

#include <assert.h>

#include "emit/math/math_primitives.h"

static V to_int(W w, V x) { return LLVMBuildFPToSI(w->builder, x, emit_type_like(x, w->i32), ""); }
static V to_float(W w, V i) { return LLVMBuildSIToFP(w->builder, i, emit_type_like(i, w->f32), ""); }
/* Returns 2^(n - 127), which must be a normal number, for an integer whose low bits are n. */
static V two_to(W w, V n) { return emit_float_of(w, LLVMBuildShl(w->builder, n, emit_i(n, 23), "")); }

/* --- exponentials --- */

#define LN2_HIGH 0.693359375 /* 10 bits, so that its product with an exponent is exact */
#define LN2_LOW -2.12194440054690583e-4
#define LN2 0.693147180559945309
#define LOG2_E 1.44269504088896341
#define LOGISTIC_IS_0 -103.972077084 /* 150 ln2: half of the least denormal number, which is rounded to 0 */
#define EXP_POLY 4.999999702e-01, 1.666654050e-01, 4.166744277e-02, 8.367014118e-03, 1.387089258e-03

/* Returns the integer n nearest to x c, which must be less than 2^21, and sets *bits to an integer whose low 9 bits are
 * those of n + bias.  A number around 1.5 2^23 has no bits below 1, so adding that rounds x c to an integer, which its
 * low bits are.  For NaN, n is NaN and *bits any integer. */
static V nearest(W w, V x, double c, int bias, V *bits) {
  double around = 0x1.8p23 + bias;
  V t = fma_c(w, x, c, emit_f(x, around));
  *bits = emit_bits_of(w, t);
  return add_c(w, t, -around);
}

/* Sets n and returns e^r - 1, where x = n ln2 + r and |r| <= ln2 / 2.  *bits is as in nearest. */
static V reduce_exp(W w, V x, int bias, V *n, V *bits) {
  *n = nearest(w, x, LOG2_E, bias, bits);
  V r = fma_c(w, *n, -LN2_LOW, fma_c(w, *n, -LN2_HIGH, x)), z = mul(w, r, r);
  return emit_fma(w, z, POLY_OF_PAIRS(w, r, z, EXP_POLY), r);
}

/* Returns (1 + e) 2^k, where scale is 2^k.  The product with a power of two is exact, so that only the sum rounds. */
static V one_more(W w, V e, V scale) { return emit_fma(w, e, scale, scale); }

/* Returns e^x 2^extra for x clamped to [-106, most].  Without scalef, the power of two is multiplied in two steps,
 * since it may be out of range where the result is not. */
static V exp_up_to(W w, V x, double most, int extra) {
  V n, bits;
  x = at_least(w, at_most(w, x, most), -106);
  V e = reduce_exp(w, x, 2 * 127 + extra, &n, &bits);
  if (w->target->scalef) {
    return emit_scale(w, add_c(w, e, 1), extra ? add_c(w, n, extra) : n);
  }
  V half = LLVMBuildLShr(w->builder, bits, emit_i(bits, 1), "");
  return mul(w, one_more(w, e, two_to(w, half)), two_to(w, LLVMBuildSub(w->builder, bits, half, "")));
}

static V exp_scaled(W w, V x, int extra) { return exp_up_to(w, x, 90, extra); }

static V exp_f32(W w, V x) { return exp_scaled(w, x, 0); }

/* Returns the same bits as exp_f32, but only for x <= 0 or NaN.  The power of two is then in range if the result is
 * taken 2^32 times as large first. */
static V exp_at_most_1(W w, V x) {
  V n, bits, e = reduce_exp(w, at_least(w, x, -106), 127 + 32, &n, &bits);
  return w->target->scalef ? emit_scale(w, add_c(w, e, 1), n) : mul_c(w, one_more(w, e, two_to(w, bits)), 0x1p-32);
}

/* Returns the same bits as exp_f32, but only for x in [-80, 80], where nothing needs clamping and the power of two is a
 * normal number. */
static V exp_within(W w, V x) {
  V n, bits, e = reduce_exp(w, x, 127, &n, &bits);
  return w->target->scalef ? emit_scale(w, add_c(w, e, 1), n) : one_more(w, e, two_to(w, bits));
}

static V expm1_f32(W w, V x) {
  V n, bits, c = at_least(w, at_most(w, x, 89), -20); /* so that n is at most 128 */
  V e = reduce_exp(w, c, 127 - 1, &n, &bits);
  V half = two_to(w, bits); /* 2^(n-1), since 2^128 is not an f32 */
  V y = emit_fma(w, half, e, add_c(w, half, -0.5));
  return pick(w, eq(w, x, 0), x, add(w, y, y));
}

static V logistic_f32(W w, V x) {
  V e = exp_up_to(w, x, 88, 0); /* clamped so that e stays finite; the quotient is 1 for much smaller x already */
  return quo(w, e, add_c(w, e, 1));
}

/* Returns x / (1 + e^-y).  The polynomial has degree 5.  With fused multiply-adds ln2 is one constant in place of a
 * high and a low part; the error that this causes grows to two ULP for very negative y.  For y > 87, e^-87 takes the
 * place of e^-y, so that it is not denormal, which changes nothing, since 1 is added.  For y < -80, where e^-y may be
 * too large for an f32 although the quotient is not too small, 2^-32 e^-y is computed, and the quotient is multiplied
 * by 2^-32, or by slightly less to make up for the mean error of that one constant.  Where logistic(y) rounds to 0, it
 * is multiplied by 0, so that an infinite x gives NaN. */
static V times_logistic_f32(W w, V x, V y) {
  bool fma = w->target->fma;
  V c = at_least(w, at_most(w, y, 87), -104), tiny = lt(w, y, -80), none = lt(w, y, LOGISTIC_IS_0);
  V bits, n = nearest(w, c, -LOG2_E, 127, &bits), minus = neg(w, c);
  V r = fma ? fma_c(w, n, -LN2, minus) : fma_c(w, n, -LN2_LOW, fma_c(w, n, -LN2_HIGH, minus));
  V p = POLY(w, r, 1, 9.999997020e-01, 4.999914765e-01, 1.666765213e-01, 4.189817607e-02, 8.289360441e-03);
  V small = emit_f(x, 0x1p-32 * (fma ? 1 - 2.4e-7 : 1)), less = LLVMBuildSub(w->builder, bits, emit_i(bits, 32), "");
  V e = w->target->scalef ? emit_scale(w, p, pick(w, tiny, add_c(w, n, -32), n))
                          : mul(w, p, two_to(w, pick(w, tiny, less, bits)));
  V factor = pick(w, none, emit_f(x, 0), pick(w, tiny, small, emit_f(x, 1)));
  return mul(w, quo(w, x, add_c(w, e, 1)), factor);
}

/* Returns (e^2a - 1) / (e^2a + 1), where a = |x|, with the sign of x.  With 2a = n ln2 + r and e = e^r - 1, e^2a - 1 is
 * computed as 2^n e + (2^n - 1).  For small a, where n is 0, that is e itself, without a further rounding error. */
static V tanh_f32(W w, V x) {
  V n, bits, a = absolute(w, x);
  V e = reduce_exp(w, at_most(w, add(w, a, a), 30), 127, &n, &bits);
  V scale = two_to(w, bits);
  V m = emit_fma(w, scale, e, add_c(w, scale, -1));
  return with_sign(w, quo(w, m, add_c(w, m, 2)), x);
}

static V sinh_f32(W w, V x) {
  V a = absolute(w, x), z = mul(w, x, x);
  V p = POLY(w, z, 1.666666716e-01, 8.333310485e-03, 1.984289556e-04, 2.782213187e-06);
  V e = exp_scaled(w, a, -1);
  V large = sub(w, e, quo(w, emit_f(x, 0.25), e));
  return with_sign(w, pick(w, lt(w, a, 1), emit_fma(w, mul(w, x, z), p, x), large), x);
}

static V cosh_f32(W w, V x) {
  V e = exp_scaled(w, absolute(w, x), -1);
  return add(w, e, quo(w, emit_f(x, 0.25), e));
}

static V erf_f32(W w, V x) {
  V a = absolute(w, x), z = mul(w, x, x), c = at_most(w, a, 4);
  V p = POLY_OF_PAIRS(w, z, mul(w, z, z), 1.283791661e-01, -3.761262894e-01, 1.128363162e-01, -2.685649320e-02,
                      5.195784848e-03, -8.117376128e-04, 8.621031157e-05, -2.163581712e-06);
  V small = emit_fma(w, x, p, x);
  /* the terms that count most are added one by one, which has smaller errors */
  V q = POLY_OF_PAIRS(w, c, mul(w, c, c), -1.078589857e-01, 2.477540821e-02, -3.994716331e-03, 3.790981427e-04,
                      -1.136576338e-05, -7.324817375e-07);
  q = emit_fma(w, q, c, emit_f(c, -6.336629391e-01));
  q = emit_fma(w, emit_fma(w, q, c, emit_f(c, -1.129381895e+00)), c, emit_f(c, 1.506182743e-04));
  V large = sub(w, emit_f(x, 1), exp_within(w, q)); /* q is in [-18, 0.001] */
  return with_sign(w, pick(w, lt(w, a, 0.95), small, large), x);
}

/* --- logarithms --- */

/* Splits a normal x > 0 into 2^e m with m in [sqrt(1/2), sqrt(2)). */
static V split(W w, V x, V *e) {
  V bits = emit_bits_of(w, x);
  V shifted = LLVMBuildSub(w->builder, bits, emit_i(bits, 0x3f3504f3), "");
  *e = LLVMBuildAShr(w->builder, shifted, emit_i(bits, 23), "");
  return emit_float_of(w, LLVMBuildSub(w->builder, bits, LLVMBuildShl(w->builder, *e, emit_i(bits, 23), ""), ""));
}

/* Does what split does, also for a denormal x. */
static V split_any(W w, V x, V *e) {
  V tiny = lt(w, x, 0x1p-126);
  V m = split(w, pick(w, tiny, mul_c(w, x, 0x1p24), x), e);
  *e = LLVMBuildSub(w->builder, *e, pick(w, tiny, emit_i(*e, 24), emit_i(*e, 0)), "");
  return m;
}

/* Returns e ln2 + log(1 + f). */
static V log_of_parts(W w, V f, V e) {
  V z = mul(w, f, f);
  V p = POLY(w, f, 3.333331347e-01, -2.500000894e-01, 2.000207305e-01, -1.666799635e-01, 1.422032714e-01,
             -1.240603179e-01, 1.188356802e-01, -1.167144924e-01, 6.750956178e-02);
  V r = fma_c(w, z, -0.5, mul(w, mul(w, f, z), p));
  r = fma_c(w, e, LN2_LOW, r);
  return fma_c(w, e, LN2_HIGH, add(w, f, r));
}

V emit_log_f32(W w, V x) {
  V e, m = split_any(w, x, &e);
  return log_edges(w, x, log_of_parts(w, add_c(w, m, -1), to_float(w, e)));
}

V emit_log1p_f32(W w, V x) {
  V e, u = add_c(w, x, 1);
  /* The part of the sum that rounding lost; it is added to the mantissa. */
  V lost = pick(w, lt(w, x, 1), sub(w, x, add_c(w, u, -1)), sub(w, emit_f(x, 1), sub(w, u, x)));
  V m = split(w, u, &e);
  /* For e = 128 this is not 2^-e, but then x is infinite or is handled by `huge`. */
  V scale = two_to(w, LLVMBuildSub(w->builder, emit_i(e, 127), e, ""));
  V f = emit_fma(w, lost, scale, add_c(w, m, -1));
  V y = log_edges(w, u, log_of_parts(w, f, to_float(w, e)));
  V huge = ge(w, x, 0x1p60);
  y = pick(w, huge, emit_log_f32(w, x), y);
  return pick(w, lt(w, absolute(w, x), 0x1p-24), x, y);
}

/* --- trigonometry --- */

/* The binary digits of 2/pi, after a word of zeros. */
static const unsigned two_over_pi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                       0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561, 0xb7246e3a};

/* Returns 32 bits of the table from bit `at` on. */
static V table_bits(W w, V table, V at) {
  LLVMBuilderRef b = w->builder;
  V word = LLVMBuildLShr(b, at, emit_i64(w, 5), ""), shift = LLVMBuildAnd(b, at, emit_i64(w, 31), "");
  V both[2];
  for (int k = 0; k < 2; k++) {
    V index = LLVMBuildAdd(b, word, emit_i64(w, k), "");
    V p = LLVMBuildInBoundsGEP2(b, w->i32, table, &index, 1, "");
    V v = LLVMBuildLoad2(b, w->i32, p, "");
    LLVMSetAlignment(v, 4);
    both[k] = LLVMBuildZExt(b, v, w->i64, "");
  }
  V pair = LLVMBuildOr(b, LLVMBuildShl(b, both[0], emit_i64(w, 32), ""), both[1], "");
  return LLVMBuildAnd(b, LLVMBuildLShr(b, LLVMBuildShl(b, pair, shift, ""), emit_i64(w, 32), ""),
                      emit_i64(w, 0xffffffff), "");
}

/* Reduces one large finite number x = m 2^e, and sets r and n as reduce_pi does: multiplies m by the 96 digits of 2/pi
 * that matter, which gives x * 2/pi modulo 4 as a 64-bit fixed-point number with 62 fraction bits. */
static void reduce_large(W w, V table, V x, V *r, V *n) {
  LLVMBuilderRef b = w->builder;
  V bits = emit_bits_of(w, x),
    exponent = LLVMBuildAnd(b, LLVMBuildLShr(b, bits, emit_i(bits, 23), ""), emit_i(bits, 255), "");
  V m = LLVMBuildOr(b, LLVMBuildAnd(b, bits, emit_i(bits, 0x7fffff), ""), emit_i(bits, 0x800000), "");
  m = LLVMBuildZExt(b, m, w->i64, "");
  /* The position in the table of digit e - 1 of 2/pi, where digit 1 is the first; the table begins with 32 zeros. */
  V at = LLVMBuildSub(b, LLVMBuildZExt(b, exponent, w->i64, ""), emit_i64(w, 150 - 30), "");
  at = emit_intrinsic2(w, "llvm.smin", emit_intrinsic2(w, "llvm.smax", at, emit_i64(w, 0)), emit_i64(w, 134));
  V high = table_bits(w, table, at);
  V mid = table_bits(w, table, LLVMBuildAdd(b, at, emit_i64(w, 32), ""));
  V low = table_bits(w, table, LLVMBuildAdd(b, at, emit_i64(w, 64), ""));
  V sum = LLVMBuildShl(b, LLVMBuildMul(b, m, high, ""), emit_i64(w, 32), "");
  sum = LLVMBuildAdd(b, sum, LLVMBuildMul(b, m, mid, ""), "");
  sum = LLVMBuildAdd(b, sum, LLVMBuildLShr(b, LLVMBuildMul(b, m, low, ""), emit_i64(w, 32), ""), "");
  V q = LLVMBuildLShr(b, LLVMBuildAdd(b, sum, emit_i64(w, (int64_t)1 << 61), ""), emit_i64(w, 62), "");
  V rest = LLVMBuildSub(b, sum, LLVMBuildShl(b, q, emit_i64(w, 62), ""), "");
  V f = LLVMBuildSIToFP(b, rest, w->f64, "");
  f = LLVMBuildFMul(b, f, LLVMConstReal(w->f64, 1.57079632679489662 * 0x1p-62), "");
  f = LLVMBuildFPTrunc(b, f, w->f32, "");
  V negative = emit_icmp(w, LLVMIntSLT, bits, emit_i(bits, 0));
  V i = LLVMBuildTrunc(b, q, w->i32, "");
  *r = pick(w, negative, neg(w, f), f);
  *n = pick(w, negative, LLVMBuildNeg(b, i, ""), i);
}

static V pi_table(W w) {
  V table = LLVMGetNamedGlobal(w->module, "emit.two_over_pi");
  if (!table) {
    enum { N = sizeof two_over_pi / sizeof *two_over_pi };
    V words[N];
    for (int k = 0; k < N; k++) {
      words[k] = LLVMConstInt(w->i32, two_over_pi[k], false);
    }
    table = LLVMAddGlobal(w->module, LLVMArrayType2(w->i32, N), "emit.two_over_pi");
    LLVMSetInitializer(table, LLVMConstArray2(w->i32, words, N));
    LLVMSetGlobalConstant(table, true);
    LLVMSetLinkage(table, LLVMInternalLinkage);
    LLVMSetAlignment(table, 16);
  }
  return table;
}

/* Reduces the arguments of lanes that are `large` (reduce_large) and replaces their results in *r and *n.  The lanes
 * are computed one by one, in a branch that is taken only if at least one lane is large. */
static void reduce_lanes(W w, V x, V large, V *r, V *n) {
  LLVMBasicBlockRef before = emit_here(w), slow = emit_block(w, "large"), join = emit_block(w, "reduced");
  LLVMBuildCondBr(w->builder, emit_any(w, large), slow, join);
  LLVMPositionBuilderAtEnd(w->builder, slow);
  V table = pi_table(w), slow_r, slow_n;
  int lanes = (int)emit_lanes(x);
  if (lanes) {
    emit_loop l;
    emit_loop_begin(w, &l, emit_i64(w, 0), emit_i64(w, lanes), 1, true, 2, (V[]){*r, *n});
    V one_r, one_n;
    reduce_large(w, table, LLVMBuildExtractElement(w->builder, x, l.iv, ""), &one_r, &one_n);
    emit_loop_end(w, &l,
                  (V[]){LLVMBuildInsertElement(w->builder, l.carried[0], one_r, l.iv, ""),
                        LLVMBuildInsertElement(w->builder, l.carried[1], one_n, l.iv, "")});
    slow_r = l.carried[0];
    slow_n = l.carried[1];
  } else {
    reduce_large(w, table, x, &slow_r, &slow_n);
  }
  slow_r = pick(w, large, slow_r, *r);
  slow_n = pick(w, large, slow_n, *n);
  LLVMBasicBlockRef after = emit_here(w), from[2] = {before, after};
  LLVMBuildBr(w->builder, join);
  LLVMPositionBuilderAtEnd(w->builder, join);
  V phi_r = LLVMBuildPhi(w->builder, LLVMTypeOf(x), ""), phi_n = LLVMBuildPhi(w->builder, LLVMTypeOf(*n), "");
  LLVMAddIncoming(phi_r, (V[]){*r, slow_r}, from, 2);
  LLVMAddIncoming(phi_n, (V[]){*n, slow_n}, from, 2);
  *r = phi_r;
  *n = phi_n;
}

/* Returns r less k times the last bits of pi/2.  With a fused multiply-add, two parts of 24 bits are enough, and only
 * one of them changes the rounding.  Otherwise the parts are short, so that the first product is exact, and what
 * subtracting it loses is added again: where r is just above a power of two and the function's value just below it, an
 * error of one unit of r is two units of the value. */
static V subtract_last_bits(W w, V r, V k) {
  if (w->target->fma) {
    return fma_c(w, k, 0x1.ee59dap-50, fma_c(w, k, -0x1.4442d2p-24, r));
  }
  V c = mul_c(w, k, 0x1.444p-24), rest = sub(w, r, c), lost = sub(w, sub(w, r, rest), c);
  return add(w, rest, sub(w, lost, mul_c(w, k, 0x1.68c234p-39)));
}

/* Sets n and returns r with x = n pi/2 + r and |r| <= pi/4.  For |x| < 8192, n pi/2 is subtracted in parts of 11 bits
 * of pi/2, whose products with n are exact. */
static V reduce_pi(W w, V x, V *n) {
  double infinity = (double)INFINITY, nan = (double)NAN;
  V a = absolute(w, x), large = ge(w, a, 8192);
  V near = pick(w, lt(w, a, 8192), x, emit_f(x, 0));
  V k = emit_round_even(w, mul_c(w, near, 0.636619772367581343));
  V r = fma_c(w, k, -0x1.fb4p-12, fma_c(w, k, -0x1.92p+0, near)); /* exact */
  r = subtract_last_bits(w, r, k);
  *n = to_int(w, k);
  reduce_lanes(w, x, large, &r, n);
  return pick(w, lt(w, a, infinity), r, emit_f(x, nan));
}

static V sin_poly(W w, V r, V z) {
  V p = POLY(w, z, -1.666666716e-01, 8.333378471e-03, -1.985257113e-04, 2.826513764e-06);
  return emit_fma(w, mul(w, r, z), p, r);
}
static V cos_poly(W w, V z) {
  V p = POLY(w, z, 4.166666791e-02, -1.388897770e-03, 2.482097443e-05, -2.876806775e-07);
  V half = mul_c(w, z, 0.5), head = sub(w, emit_f(z, 1), half);
  V lost = sub(w, sub(w, emit_f(z, 1), head), half); /* the rounding error of head */
  return add(w, head, emit_fma(w, mul(w, z, z), p, lost));
}

static V bit(W w, V n, int k) {
  V masked = LLVMBuildAnd(w->builder, n, emit_i(n, 1 << k), "");
  return emit_icmp(w, LLVMIntNE, masked, emit_i(n, 0));
}

/* Returns sin(x + shift pi/2). */
static V sin_shifted(W w, V x, int shift) {
  V n, r = reduce_pi(w, x, &n), z = mul(w, r, r);
  n = LLVMBuildAdd(w->builder, n, emit_i(n, shift), "");
  V y = pick(w, bit(w, n, 0), cos_poly(w, z), sin_poly(w, r, z));
  y = pick(w, bit(w, n, 1), neg(w, y), y);
  return shift ? y : pick(w, eq(w, x, 0), x, y);
}

static V tan_f32(W w, V x) {
  V n, r = reduce_pi(w, x, &n), z = mul(w, r, r);
  V p = POLY(w, z, 3.333335221e-01, 1.333257109e-01, 5.407097563e-02, 2.122264169e-02, 1.099543180e-02,
             -1.185915680e-04, 4.481462762e-03);
  V t = emit_fma(w, mul(w, r, z), p, r);
  V y = pick(w, bit(w, n, 0), quo(w, emit_f(x, -1), t), t);
  return pick(w, eq(w, x, 0), x, y);
}

/* --- pow, in f64, since log2|x| y needs more digits than f32 has --- */

static V log2_f64(W w, V a) {
  V e, m = split_any(w, a, &e);
  LLVMTypeRef f64 = emit_type_like(a, w->f64);
  m = LLVMBuildFPExt(w->builder, m, f64, "");
  V s = quo(w, add_c(w, m, -1), add_c(w, m, 1)), z = mul(w, s, s);
  V p = POLY(w, z, 2.88539008177792722e+00, 9.61796693923824941e-01, 5.77078017472819838e-01, 4.12198372060315898e-01,
             3.20618128919435086e-01, 2.61397559000015378e-01, 2.43390392891837393e-01);
  return emit_fma(w, s, p, LLVMBuildSIToFP(w->builder, e, f64, ""));
}

/* Returns 2^t for t in [-1000, 1000]. */
static V exp2_f64(W w, V t) {
  V n = emit_round_even(w, t), f = sub(w, t, n);
  V p = POLY(w, f, 9.99999999999752198e-01, 6.93147180546083708e-01, 2.40226506989777211e-01, 5.55041094108754129e-02,
             9.61812852884685876e-03, 1.33334503714314240e-03, 1.54038572012862862e-04, 1.53101905944951974e-05,
             1.31754717089217419e-06);
  V i = LLVMBuildZExt(w->builder, LLVMBuildAdd(w->builder, to_int(w, n), emit_i(to_int(w, n), 1023), ""),
                      emit_type_like(t, w->i64), "");
  return mul(w, p, emit_float_of(w, LLVMBuildShl(w->builder, i, emit_i(i, 52), "")));
}

static V pow_f32(W w, V x, V y) {
  double infinity = (double)INFINITY;
  if (emit_is_f(y, 1)) {
    return x;
  }
  if (emit_is_f(y, 2)) {
    return mul(w, x, x);
  }
  LLVMBuilderRef b = w->builder;
  V a = absolute(w, x), l = log2_f64(w, a);
  l = pick(w, eq(w, a, infinity), emit_f(l, infinity), pick(w, eq(w, a, 0), emit_f(l, -infinity), l));
  V t = mul(w, l, LLVMBuildFPExt(b, y, LLVMTypeOf(l), ""));
  V plain = pick(w, emit_fcmp(w, LLVMRealUNO, x, y), emit_f(l, 0), t); /* the result for NaN is selected at the end */
  /* For 0 * infinity the result is 1. */
  plain = pick(w, emit_fcmp(w, LLVMRealORD, plain, plain), plain, emit_f(l, 0));
  plain = at_least(w, at_most(w, plain, 1000), -1000);
  V r = LLVMBuildFPTrunc(b, exp2_f64(w, plain), LLVMTypeOf(x), "");
  return pow_edges(w, x, y, r);
}

/* --- the table of operations --- */

static V sin_f32(W w, V x) { return sin_shifted(w, x, 0); }
static V cos_f32(W w, V x) { return sin_shifted(w, x, 1); }

/* The functions of one operation. */
typedef struct row {
  V (*f32)(W, V), (*f64)(W, V);               /* with one operand */
  V (*two_f32)(W, V, V), (*two_f64)(W, V, V); /* with two operands */
  /* The function of the C library that is called for each lane in f64 where that is possible, since its errors are
   * smaller; NULL for the functions that models use often. */
  const char *libm;
} row;

static const row rows[HLO_OP_COUNT] = {
    [HLO_EXP] = {exp_f32, emit_exp_f64},
    [HLO_EXPM1] = {expm1_f32, emit_expm1_f64},
    [HLO_LOG] = {emit_log_f32, emit_log_f64},
    [HLO_LOG1P] = {emit_log1p_f32, emit_log1p_f64},
    [HLO_SIN] = {sin_f32, emit_sin_f64},
    [HLO_COS] = {cos_f32, emit_cos_f64},
    [HLO_TAN] = {tan_f32, emit_tan_f64, .libm = "tan"},
    [HLO_ASIN] = {emit_asin, emit_asin, .libm = "asin"},
    [HLO_ACOS] = {emit_acos, emit_acos, .libm = "acos"},
    [HLO_ATAN] = {emit_atan, emit_atan, .libm = "atan"},
    [HLO_SINH] = {sinh_f32, emit_sinh_f64},
    [HLO_COSH] = {cosh_f32, emit_cosh_f64},
    [HLO_TANH] = {tanh_f32, emit_tanh_f64},
    [HLO_ASINH] = {emit_asinh, emit_asinh, .libm = "asinh"},
    [HLO_ACOSH] = {emit_acosh, emit_acosh, .libm = "acosh"},
    [HLO_ATANH] = {emit_atanh, emit_atanh, .libm = "atanh"},
    [HLO_ERF] = {erf_f32, emit_erf_f64, .libm = "erf"},
    [HLO_LOGISTIC] = {logistic_f32, emit_logistic_f64},
    [HLO_POW] = {.two_f32 = pow_f32, .two_f64 = emit_pow_f64, .libm = "pow"},
    [HLO_ATAN2] = {.two_f32 = emit_atan2, .two_f64 = emit_atan2, .libm = "atan2"},
};

bool emit_is_math(hlo_op op) { return rows[op].f32 || rows[op].two_f32; }

V emit_times_logistic(W w, V x, V y) {
  return emit_bits(x) == 32 ? times_logistic_f32(w, x, y) : mul(w, x, emit_math(w, HLO_LOGISTIC, y, NULL));
}

V emit_exp_at_most_1(W w, V x) { return emit_bits(x) == 32 ? exp_at_most_1(w, x) : emit_math(w, HLO_EXP, x, NULL); }

V emit_math(W w, hlo_op op, V x, V y) {
  const row *r = &rows[op];
  assert(emit_is_math(op)); /* every operation without a case in elementwise.c has a row */
  bool f32 = emit_bits(x) == 32;
  if (!f32 && r->libm && w->target->libm) {
    return emit_call_lanes(w, r->libm, y ? 2 : 1, (V[]){x, y});
  }
  if (y) {
    return f32 ? r->two_f32(w, x, y) : r->two_f64(w, x, y);
  }
  return f32 ? r->f32(w, x) : r->f64(w, x);
}
