/* math_inverse.c - inverse trigonometric and hyperbolic functions.  f32 and f64 have the same algorithms with different
 * coefficients, which were fitted as math.c and math_f64.c say; see math.h. */
#include "emit/math/math_primitives.h"

/* Returns `f32` if x is f32, and `f64` if x is f64. */
static double constant(V x, double f32, double f64) { return emit_bits(x) == 32 ? f32 : f64; }

/* --- hyperbolic functions --- */

static V log_of(W w, V x) { return emit_bits(x) == 32 ? emit_log_f32(w, x) : emit_log_f64(w, x); }
static V log1p_of(W w, V x) { return emit_bits(x) == 32 ? emit_log1p_f32(w, x) : emit_log1p_f64(w, x); }

/* Returns an i1 that is true if `a` is so small that asinh(a) and atanh(a) are `a`. */
static V is_tiny(W w, V a) { return lt(w, a, constant(a, 0x1p-13, 0x1p-27)); }

/* Returns asinh(x) or acosh(x): log(2x) for x so large that both equal it, and `below` for smaller x. */
static V or_log_2x(W w, V x, V below) {
  V large = add_c(w, log_of(w, x), 0.693147180559945309);
  return pick(w, lt(w, x, constant(x, 0x1p14, 0x1p28)), below, large);
}

V emit_asinh(W w, V x) {
  V a = absolute(w, x), z = mul(w, a, a);
  V t = add(w, a, quo(w, z, add_c(w, root(w, add_c(w, z, 1)), 1)));
  V y = or_log_2x(w, a, log1p_of(w, t));
  return with_sign(w, pick(w, is_tiny(w, a), a, y), x);
}

V emit_acosh(W w, V x) {
  V t = add_c(w, x, -1);
  V s = add(w, t, root(w, emit_fma(w, t, t, add(w, t, t))));
  V y = or_log_2x(w, x, log1p_of(w, s));
  return pick(w, ge(w, x, 1), y, emit_f(x, (double)NAN));
}

V emit_atanh(W w, V x) {
  V a = absolute(w, x);
  V t = quo(w, add(w, a, a), sub(w, emit_f(x, 1), a));
  V y = mul_c(w, log1p_of(w, t), 0.5);
  return with_sign(w, pick(w, is_tiny(w, a), a, y), x);
}

/* --- trigonometric functions --- */

#define HALF_PI 1.57079632679489662

/* Returns the rounding error of pi/2 in the type of x: pi/2 minus the nearest number of that type. */
static double half_pi_low(V x) { return constant(x, -4.37113900018624283e-8, 0x1.1a62633145c07p-54); }

/* Returns n pi/2 - x. */
static V half_pi_minus(W w, int n, V x) { return sub(w, emit_f(x, n * HALF_PI), add_c(w, x, -n * half_pi_low(x))); }

/* Returns asin(x) for x in [0, 1/2]; z is x^2. */
static V asin_poly(W w, V x, V z) {
  V p = emit_bits(x) == 32
            ? POLY(w, z, 1.666665971e-01, 7.500519603e-02, 4.451410472e-02, 3.183102608e-02, 1.435147971e-02,
                   3.763806820e-02)
            : POLY(w, z, 0x1.5555555555577p-3, 0x1.333333332e230p-4, 0x1.6db6db7200155p-5, 0x1.f1c71a9d4cf0cp-6,
                   0x1.6e8bddd984120p-6, 0x1.1c4a041bb6d60p-6, 0x1.ca1d9e3623681p-7, 0x1.7595dab03be88p-7,
                   0x1.60df2d16e01c4p-7, 0x1.eb8c6cf23f881p-9, 0x1.61e51b2bc6ae1p-6, -0x1.558bf22e32b54p-6,
                   0x1.0a827172d81e8p-5);
  return emit_fma(w, mul(w, x, z), p, x);
}

/* For |x| > 1/2, asin(|x|) is pi/2 - 2 asin(sqrt((1 - |x|) / 2)). */
V emit_asin(W w, V x) {
  V a = absolute(w, x), large = gt(w, a, 0.5);
  V z = pick(w, large, fma_c(w, a, -0.5, emit_f(x, 0.5)), mul(w, a, a));
  V y = asin_poly(w, pick(w, large, root(w, z), a), z);
  return with_sign(w, pick(w, large, half_pi_minus(w, 1, add(w, y, y)), y), x);
}

V emit_acos(W w, V x) {
  V a = absolute(w, x), large = gt(w, a, 0.5);
  V z = pick(w, large, fma_c(w, a, -0.5, emit_f(x, 0.5)), mul(w, a, a));
  V y = asin_poly(w, pick(w, large, root(w, z), x), z), twice = add(w, y, y);
  V far = pick(w, lt(w, x, 0), half_pi_minus(w, 2, twice), twice);
  return pick(w, large, far, half_pi_minus(w, 1, y));
}

/* Returns atan(t) for t in [0, 1]. */
static V atan_poly(W w, V t) {
  V z = mul(w, t, t);
  V p = emit_bits(t) == 32
            ? POLY(w, z, -3.333329856e-01, 1.999853402e-01, -1.426410228e-01, 1.095150635e-01, -8.401581645e-02,
                   5.792722851e-02, -3.114893660e-02, 1.089969650e-02, -1.790405833e-03)
            : POLY(w, z, -0x1.5555555555554p-2, 0x1.999999999971bp-3, -0x1.2492492485ba8p-3, 0x1.c71c71c322166p-4,
                   -0x1.745d16e4f2077p-4, 0x1.3b13ab1df44dep-4, -0x1.1110cb39b1618p-4, 0x1.e1dd470e0c32dp-5,
                   -0x1.af0ac95309562p-5, 0x1.8583727ddcbcdp-5, -0x1.61d931b41bd6ep-5, 0x1.402d7fa65c600p-5,
                   -0x1.1ba25fd6afc7ep-5, 0x1.dedfb79289981p-6, -0x1.73fa797d64515p-6, 0x1.ff4ce7528ed3ap-7,
                   -0x1.2a6e070357410p-7, 0x1.1b36597f47f43p-8, -0x1.9f0b517888afdp-10, 0x1.b540bc413c43cp-12,
                   -0x1.25266184ad6f3p-14, 0x1.7666dda628ec5p-18);
  return emit_fma(w, mul(w, t, z), p, t);
}

V emit_atan(W w, V x) {
  V a = absolute(w, x), large = gt(w, a, 1);
  V y = atan_poly(w, pick(w, large, quo(w, emit_f(x, 1), a), a));
  return with_sign(w, pick(w, large, half_pi_minus(w, 1, y), y), x);
}

V emit_atan2(W w, V y, V x) {
  double infinity = (double)INFINITY;
  V a = absolute(w, y), b = absolute(w, x);
  V steep = emit_fcmp(w, LLVMRealOGT, a, b), top = pick(w, steep, b, a), bottom = pick(w, steep, a, b);
  V t = quo(w, top, bottom);
  /* 0 / 0 and infinity / infinity are NaN; atan2 is defined there as if the quotients were 0 and 1. */
  V same = emit_fcmp(w, LLVMRealOEQ, a, b);
  V both_zero = eq(w, bottom, 0), both_infinite = eq(w, top, infinity);
  t = pick(w, both_zero, emit_f(x, 0), pick(w, LLVMBuildAnd(w->builder, same, both_infinite, ""), emit_f(x, 1), t));
  V r = atan_poly(w, t);
  r = pick(w, steep, half_pi_minus(w, 1, r), r);
  V sign = emit_bits_of(w, x);
  V negative = emit_icmp(w, LLVMIntSLT, sign, emit_i(sign, 0));
  r = with_sign(w, pick(w, negative, half_pi_minus(w, 2, r), r), y);
  V nan = emit_fcmp(w, LLVMRealUNO, x, y);
  return pick(w, nan, add(w, x, y), r);
}
