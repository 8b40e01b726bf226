/* math_f64_pow.c - x^y of f64; see math.h.
 *
 * The product of log2|x| and y needs eleven bits more than f64 has, since its integer part becomes the exponent of the
 * result.  So the logarithm is a double-double number (T. J. Dekker, "A floating-point technique for extending the
 * available precision", 1971).  The errors of products are computed by fused multiply-adds, which every target without
 * a C library has.  The coefficients were fitted as math_f64.c says. */
#include "emit/math/math_primitives.h"

/* The sum of two f64, of which `low` is at most half of the last place of `high`. */
typedef struct double_double {
  V high, low;
} double_double;

/* Returns x + y exactly.  x is 0, or its exponent is not less than that of y. */
static double_double fast_two_sum(W w, V x, V y) {
  V high = add(w, x, y);
  return (double_double){high, sub(w, y, sub(w, high, x))};
}

/* Returns x y without the product of both low parts. */
static double_double dd_product(W w, double_double x, double_double y) {
  V high = mul(w, x.high, y.high), low = emit_fma(w, x.high, y.high, neg(w, high));
  return fast_two_sum(w, high, emit_fma(w, x.low, y.high, emit_fma(w, x.high, y.low, low)));
}

/* Returns x + y under the condition of fast_two_sum. */
static double_double dd_sum(W w, double_double x, double_double y) {
  double_double s = fast_two_sum(w, x.high, y.high);
  return fast_two_sum(w, s.high, add(w, s.low, add(w, x.low, y.low)));
}

/* Returns s = (m - 1) / (m + 1) for m in [sqrt(1/2), sqrt(2)). */
static double_double ratio(W w, V m) {
  V f = add_c(w, m, -1);
  double_double d = fast_two_sum(w, emit_f(m, 1), m);
  V inverse = quo(w, emit_f(m, 1), d.high), high = mul(w, f, inverse);
  V rest = emit_fma(w, neg(w, high), d.high, f); /* f - high d.high, exactly */
  return fast_two_sum(w, high, mul(w, inverse, emit_fma(w, neg(w, high), d.low, rest)));
}

/* Returns log2(a) for a > 0, with a relative error of 2^-67: with a = 2^e m it is e + 2/ln2 (s + s^3 / 3 + ...). */
static double_double log2_of(W w, V a) {
  static const double high[] = {0x1.71547652b82fep+1, 0x1.ec709dc3a03fdp-1, 0x1.2776c50ef9bf4p-1},
                      low[] = {0x1.777cb6763226ap-55, 0x1.dbba64445c6a7p-55, 0x1.8c60c878685f8p-55};
  V e, m = emit_split_f64(w, a, &e);
  double_double s = ratio(w, m), z = dd_product(w, s, s);
  V tail = POLY(w, z.high, 0x1.a61762a7b010bp-2, 0x1.484b13d5e978cp-2, 0x1.0c9a85819fd6ap-2, 0x1.c68ecb15f8a26p-3,
                0x1.8a0d873450d94p-3, 0x1.58ba3e6988fbfp-3, 0x1.63d7910bedce6p-3);
  double_double p = {tail, emit_f(a, 0)};
  for (int k = 2; k >= 0; k--) {
    p = dd_sum(w, (double_double){emit_f(a, high[k]), emit_f(a, low[k])}, dd_product(w, p, z));
  }
  p = dd_product(w, p, s);
  double_double whole = {LLVMBuildSIToFP(w->builder, e, LLVMTypeOf(a), ""), emit_f(a, 0)};
  return dd_sum(w, whole, p);
}

/* Returns 2^t for t in [-1100, 1100].  With t = n + f and |f| <= 1/2, 2^f = 1 + f ln2 + f^2 (...), whose two leading
 * terms are summed exactly. */
static V exp2_of(W w, double_double t) {
  V n = emit_round_even(w, t.high);
  double_double f = fast_two_sum(w, sub(w, t.high, n), t.low);
  V p = POLY(w, f.high, 0x1.ebfbdff82c58fp-3, 0x1.c6b08d704a0c8p-5, 0x1.3b2ab6fba4d6bp-7, 0x1.5d87fe78a36b2p-10,
             0x1.430912f8b28efp-13, 0x1.ffcbfc70ded63p-17, 0x1.62c02135a348ap-20, 0x1.b524e48608938p-24,
             0x1.e4d2bcdf03fcfp-28, 0x1.e9f799d658a1ep-32, 0x1.bfd073ec8d2ddp-36);
  double_double ln2 = {emit_f(n, 0x1.62e42fefa39efp-1), emit_f(n, 0x1.abc9e3b39803fp-56)};
  double_double linear = dd_product(w, f, ln2), s = fast_two_sum(w, emit_f(n, 1), linear.high);
  V rest = add(w, s.low, emit_fma(w, mul(w, f.high, f.high), p, linear.low));
  return emit_times_two_to_f64(w, add(w, s.high, rest), n);
}

/* Returns y times the logarithm l, clamped to where its power of two is 0 or infinite.  For 0 * infinity the result is
 * 0.  It is also 0 for NaN, since pow_edges selects the result of the power for NaN. */
static double_double exponent(W w, double_double l, V y) {
  const double most = 1100;
  V high = mul(w, l.high, y), low = emit_fma(w, l.low, y, emit_fma(w, l.high, y, neg(w, high)));
  V fits = lt(w, absolute(w, high), most), clamped = at_least(w, at_most(w, high, most), -most);
  clamped = pick(w, emit_fcmp(w, LLVMRealORD, high, high), clamped, emit_f(y, 0));
  return (double_double){clamped, pick(w, fits, low, emit_f(y, 0))};
}

V emit_pow_f64(W w, V x, V y) {
  double infinity = (double)INFINITY;
  V a = absolute(w, x);
  double_double l = log2_of(w, a);
  l.high = pick(w, eq(w, a, infinity), a, pick(w, eq(w, a, 0), emit_f(a, -infinity), l.high));
  return pow_edges(w, x, y, exp2_of(w, exponent(w, l, y)));
}
