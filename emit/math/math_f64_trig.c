/* math_f64_trig.c - sine, cosine and tangent of f64; see math.h and math_f64.c. */
#include "emit/math/math_primitives.h"

/* The functions.  The numbers SINE and COSINE are how many quadrants must be added to an argument so that the sine of
 * the sum is the function's value. */
typedef enum trig { SINE, COSINE, TANGENT } trig;

/* --- reduction by multiples of pi/2 --- */

/* A number as n pi/2 + r + low, where |r| is at most pi/4 and `low` is the rounding error of r. */
typedef struct reduced {
  V n, r, low;
} reduced;

/* Reduces x for |x| < 2^20.  n pi/2 is subtracted in parts of 33 bits of pi/2, whose products with n are exact. */
static reduced reduce_near(W w, V x) {
  static const double parts[] = {0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2ep-69, 0x1.b839a252049c1p-104};
  V n = emit_round_even(w, mul_c(w, x, 0x1.45f306dc9c883p-1)), r = fma_c(w, n, -parts[0], x), low = emit_f(x, 0);
  for (int k = 1; k < 4; k++) {
    V next = fma_c(w, n, -parts[k], r);
    low = add(w, low, fma_c(w, n, -parts[k], sub(w, r, next)));
    r = next;
  }
  return (reduced){LLVMBuildFPToSI(w->builder, n, emit_type_like(n, w->i32), ""), r, low};
}

/* The binary digits of 2/pi, after 64 zeros; as many as the largest exponent needs. */
static const uint64_t two_over_pi[] = {0,
                                       0xa2f9836e4e441529,
                                       0xfc2757d1f534ddc0,
                                       0xdb6295993c439041,
                                       0xfe5163abdebbc561,
                                       0xb7246e3a424dd2e0,
                                       0x06492eea09d1921c,
                                       0xfe1deb1cb129a73e,
                                       0xe88235f52ebb4484,
                                       0xe99c7026b45f7e41,
                                       0x3991d639835339f4,
                                       0x9c845f8bbdf9283b,
                                       0x1ff897ffde05980f,
                                       0xef2f118b5a0a6d1f,
                                       0x6d367ecf27cb09b7,
                                       0x4f463f669e5fea2d,
                                       0x7527bac7ebe5f17b,
                                       0x3d0739f78a5292ea,
                                       0x6bfb5fb11f8d5d08,
                                       0x56033046fc7b6bab};

static V pi_table(W w) {
  static const char name[] = "emit.two_over_pi_f64";
  V table = LLVMGetNamedGlobal(w->module, name);
  if (!table) {
    enum { N = sizeof two_over_pi / sizeof *two_over_pi };
    V words[N];
    for (int k = 0; k < N; k++) {
      words[k] = LLVMConstInt(w->i64, two_over_pi[k], false);
    }
    table = LLVMAddGlobal(w->module, LLVMArrayType2(w->i64, N), name);
    LLVMSetInitializer(table, LLVMConstArray2(w->i64, words, N));
    LLVMSetGlobalConstant(table, true);
    LLVMSetLinkage(table, LLVMInternalLinkage);
    LLVMSetAlignment(table, 16);
  }
  return table;
}

/* Loads 64 times n bits of the table from bit `at` on. */
static void table_bits(W w, V at, int n, V *out) {
  LLVMBuilderRef b = w->builder;
  V table = pi_table(w), first = LLVMBuildLShr(b, at, emit_i64(w, 6), ""),
    shift = LLVMBuildAnd(b, at, emit_i64(w, 63), "");
  V before = NULL;
  for (int k = 0; k <= n; k++) {
    V index = LLVMBuildAdd(b, first, emit_i64(w, k), "");
    V word = LLVMBuildLoad2(b, w->i64, LLVMBuildInBoundsGEP2(b, w->i64, table, &index, 1, ""), "");
    if (k) {
      out[k - 1] = emit_intrinsic(w, "llvm.fshl", 3, (V[]){before, word, shift});
    }
    before = word;
  }
}

/* The fixed-point numbers below have 128 bits, of which the last FRACTION are after the binary point. */
enum { FRACTION = 126 };

/* Returns |x| 2/pi modulo 4 as a fixed-point number, for one number of at least 2^20.  With |x| = m 2^e, that is the
 * product of m and those 192 digits of 2/pi that matter: earlier ones give multiples of 4, later ones change the last
 * bit (M. Payne and R. Hanek, "Radian reduction for trigonometric functions", 1983). */
static V times_two_over_pi(W w, V x) {
  LLVMBuilderRef b = w->builder;
  LLVMTypeRef i128 = LLVMIntTypeInContext(w->context, 128);
  V bits = emit_bits_of(w, absolute(w, x)), exponent = LLVMBuildLShr(b, bits, emit_i64(w, 52), "");
  V m =
      LLVMBuildOr(b, LLVMBuildAnd(b, bits, emit_i64(w, ((int64_t)1 << 52) - 1), ""), emit_i64(w, (int64_t)1 << 52), "");
  /* e is the biased exponent minus 1075.  Digit e - 1 of 2/pi is the first that matters, where digit 1 is the first.
   * Other lanes of a vector, whose results are not used, may be less than 2^20. */
  V at = emit_intrinsic2(w, "llvm.smax", LLVMBuildSub(b, exponent, emit_i64(w, 1075 - 62), ""), emit_i64(w, 0));
  V digits[3], product[3];
  table_bits(w, at, 3, digits);
  m = LLVMBuildZExt(b, m, i128, "");
  for (int k = 0; k < 3; k++) {
    product[k] = LLVMBuildMul(b, m, LLVMBuildZExt(b, digits[k], i128, ""), "");
  }
  V word = emit_i(m, 64), high = LLVMBuildShl(b, product[0], word, ""), low = LLVMBuildLShr(b, product[2], word, "");
  return LLVMBuildAdd(b, high, LLVMBuildAdd(b, product[1], low, ""), "");
}

/* Returns bits [from, from + n) of an integer of 128 bits as an f64; n is at most 53. */
static V digits_of(W w, V x, int from, int n) {
  LLVMBuilderRef b = w->builder;
  V part = LLVMBuildTrunc(b, LLVMBuildLShr(b, x, emit_i(x, from), ""), w->i64, "");
  return LLVMBuildSIToFP(b, LLVMBuildAnd(b, part, emit_i64(w, ((int64_t)1 << n) - 1), ""), w->f64, "");
}

/* Sets r and low of *out to pi/2 times the fixed-point number x.  x is at most 1/2, and is first converted to a sum of
 * two f64. */
static void times_half_pi(W w, V x, reduced *out) {
  V end = fma_c(w, digits_of(w, x, 28, 50), 0x1p28, digits_of(w, x, 0, 28)), high = digits_of(w, x, 78, 48);
  V sum = fma_c(w, high, 0x1p78, end), lost = add(w, fma_c(w, high, 0x1p78, neg(w, sum)), end);
  /* The factor 2^-126 converts from the fixed-point number. */
  V half_pi = emit_f(sum, 0x1.921fb54442d18p-126), product = mul(w, sum, half_pi);
  V rest = emit_fma(w, sum, half_pi, neg(w, product));
  rest = emit_fma(w, lost, half_pi, fma_c(w, sum, 0x1.1a62633145c07p-180, rest));
  out->r = add(w, product, rest);
  out->low = sub(w, rest, sub(w, out->r, product));
}

/* Reduces one number of at least 2^20.  For infinities and NaN, r is NaN. */
static reduced reduce_large(W w, V x) {
  LLVMBuilderRef b = w->builder;
  V quadrants = times_two_over_pi(w, x), one = LLVMBuildShl(b, emit_i(quadrants, 1), emit_i(quadrants, FRACTION), "");
  V half = LLVMBuildLShr(b, one, emit_i(quadrants, 1), "");
  V n = LLVMBuildLShr(b, LLVMBuildAdd(b, quadrants, half, ""), emit_i(quadrants, FRACTION), "");
  V rest = LLVMBuildSub(b, quadrants, LLVMBuildMul(b, n, one, ""), "");
  /* The rest is in [-1/2, 1/2); it and x may be negative. */
  V below = emit_icmp(w, LLVMIntSLT, rest, emit_i(rest, 0)), negative = lt(w, x, 0);
  reduced out = {.n = LLVMBuildTrunc(b, n, w->i32, "")};
  times_half_pi(w, pick(w, below, LLVMBuildNeg(b, rest, ""), rest), &out);
  V minus = LLVMBuildXor(b, below, negative, "");
  out.n = pick(w, negative, LLVMBuildNeg(b, out.n, ""), out.n);
  out.r = pick(w, minus, neg(w, out.r), out.r);
  out.low = pick(w, minus, neg(w, out.low), out.low);
  out.r = pick(w, lt(w, absolute(w, x), (double)INFINITY), out.r, emit_f(x, (double)NAN));
  return out;
}

/* --- the functions of reduced numbers --- */

static V bit(W w, V n, int k) {
  return emit_icmp(w, LLVMIntNE, LLVMBuildAnd(w->builder, n, emit_i(n, 1 << k), ""), emit_i(n, 0));
}

static V sine(W w, V r, V z) {
  V p = POLY(w, z, -0x1.5555555555549p-3, 0x1.111111110f862p-7, -0x1.a01a019c0e525p-13, 0x1.71de3574bd2d0p-19,
             -0x1.ae5e63cebb4cep-26, 0x1.5d92470158981p-33);
  return emit_fma(w, mul(w, r, z), p, r);
}

static V cosine(W w, V z) {
  V half = mul_c(w, z, 0.5), head = sub(w, emit_f(z, 1), half);
  V q = POLY(w, z, 0x1.555555555554cp-5, -0x1.6c16c16c15163p-10, 0x1.a01a019caefd1p-16, -0x1.27e4f807db924p-22,
             0x1.1ee9ea6faab9fp-29, -0x1.8fadd1a200cf0p-37);
  V lost = sub(w, sub(w, emit_f(z, 1), head), half); /* the rounding error of head */
  return add(w, head, emit_fma(w, mul(w, z, z), q, lost));
}

/* Returns the sine, cosine or tangent, as f says, of the number that was reduced to x. */
static V of_reduced(W w, trig f, reduced x) {
  V z = mul(w, x.r, x.r), s = sine(w, x.r, z), c = cosine(w, z);
  if (f == TANGENT) {
    V odd = bit(w, x.n, 0), t = quo(w, pick(w, odd, neg(w, c), s), pick(w, odd, s, c));
    return emit_fma(w, x.low, emit_fma(w, t, t, emit_f(t, 1)), t); /* the derivative is 1 + t^2 */
  }
  V n = LLVMBuildAdd(w->builder, x.n, emit_i(x.n, f), ""), y = pick(w, bit(w, n, 0), c, s);
  return pick(w, bit(w, n, 1), neg(w, y), y);
}

/* --- any argument --- */

static V of_large(W w, trig f, V x) { return of_reduced(w, f, reduce_large(w, x)); }
static V sin_large(W w, const V *x) { return of_large(w, SINE, *x); }
static V cos_large(W w, const V *x) { return of_large(w, COSINE, *x); }
static V tan_large(W w, const V *x) { return of_large(w, TANGENT, *x); }

/* Returns the name of the function for large arguments. */
static const char *function_for(W w, trig f, V x) {
  static const struct {
    const char *libm, *own;
    emit_function_fn *body;
  } names[] = {[SINE] = {"sin", "onnx_xla_sin", sin_large},
               [COSINE] = {"cos", "onnx_xla_cos", cos_large},
               [TANGENT] = {"tan", "onnx_xla_tan", tan_large}};
  return w->target->libm ? names[f].libm : emit_own_function(w, names[f].own, 1, x, names[f].body);
}

/* Returns f of any x.  Lanes that are too large for reduce_near, infinite or NaN call a function. */
static V of_any(W w, trig f, V x) {
  V fits = lt(w, absolute(w, x), 0x1p20), y = of_reduced(w, f, reduce_near(w, pick(w, fits, x, emit_f(x, 0))));
  y = f == COSINE ? y : pick(w, eq(w, x, 0), x, y);
  return emit_call_hard_lanes(w, LLVMBuildNot(w->builder, fits, ""), y, function_for(w, f, x), 1, &x);
}

V emit_sin_f64(W w, V x) { return of_any(w, SINE, x); }
V emit_cos_f64(W w, V x) { return of_any(w, COSINE, x); }
V emit_tan_f64(W w, V x) { return of_any(w, TANGENT, x); }
