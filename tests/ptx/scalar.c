/* scalar.c - operations whose result depends on their operands alone, as the PTX ISA defines them. */
#include <math.h>
#include <string.h>

#include "tests/ptx/ptx_internal.h"

/* --- bits and numbers --- */

static uint64_t mask_of(int bits) { return bits >= 64 ? UINT64_MAX : (1ull << bits) - 1; }

int64_t ptx_to_signed(int bits, uint64_t value) {
  int shift = 64 - bits;
  return (int64_t)(value << shift) >> shift;
}

float ptx_to_float(uint64_t bits) {
  uint32_t low = (uint32_t)bits;
  float x;
  memcpy(&x, &low, sizeof x);
  return x;
}

uint64_t ptx_of_float(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static double of_half(uint64_t bits) {
  uint16_t low = (uint16_t)bits;
  _Float16 h;
  memcpy(&h, &low, sizeof h);
  return (double)h;
}

static uint64_t to_half(double x) {
  _Float16 h = (_Float16)x;
  uint16_t bits;
  memcpy(&bits, &h, sizeof bits);
  return isnan(x) ? 0x7fff : bits;
}

/* Rounds to the nearest bf16, ties to even.  If x is not an f32, that one of the two f32 around it is taken whose last
 * bit is odd: it is no tie in bf16, and rounds to the same bf16 as x. */
static uint64_t to_bfloat(double x) {
  float near = (float)x;
  uint32_t bits = (uint32_t)ptx_of_float(near);
  if (near != x && !isnan(x)) {
    bits = (fabs((double)near) > fabs(x) ? bits - 1 : bits) | 1;
  }
  return isnan(x) ? 0x7fff : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

double ptx_to_double(ptx_type t, uint64_t bits) {
  double x;
  if (t.kind == PTX_BFLOAT) {
    return ptx_to_float(bits << 16);
  }
  if (t.bits == 16) {
    return of_half(bits);
  }
  if (t.bits == 32) {
    return ptx_to_float(bits);
  }
  memcpy(&x, &bits, sizeof x);
  return x;
}

static uint64_t of_double(ptx_type t, double x) {
  uint64_t bits;
  if (t.kind == PTX_BFLOAT) {
    return to_bfloat(x);
  }
  if (t.bits == 16) {
    return to_half(x);
  }
  if (t.bits == 32) {
    return isnan(x) ? 0x7fffffff : ptx_of_float((float)x);
  }
  memcpy(&bits, &x, sizeof bits);
  return isnan(x) ? 0x7fffffffffffffff : bits;
}

static bool is_float(ptx_type t) { return t.kind == PTX_FLOAT || t.kind == PTX_BFLOAT; }

/* Fails unless each modifier of the instruction is in the list of words, which spaces separate. */
static status allow(const ptx_instr *i, const char *list) {
  for (int k = 0; k < i->n_modifiers; k++) {
    const char *at = strstr(list, i->modifiers[k]);
    size_t n = strlen(i->modifiers[k]);
    while (at && !((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n]))) {
      at = strstr(at + 1, i->modifiers[k]);
    }
    if (!at) {
      return ptx_unknown(i);
    }
  }
  return NULL;
}

/* --- floating point --- */

/* Returns the smaller or the larger of both, as the instruction (min or max) says; -0 is smaller than 0.  If one is a
 * NaN, returns the other one, unless the instruction's name has .NaN. */
static double extreme(const ptx_instr *i, double x, double y) {
  bool min = i->op == PTX_min;
  if (isnan(x) || isnan(y)) {
    return ptx_has(i, "NaN") ? NAN : isnan(x) ? y : x;
  }
  if (x == y) {
    return (signbit(x) != 0) == min ? x : y;
  }
  return (x < y) == min ? x : y;
}

/* Computes in f64; the caller rounds to the instruction's type.  For f32, sums, products, quotients and square roots
 * are then the same as if they had been computed in f32.  A fused multiply-add would be rounded twice, so it is
 * computed by fmaf. */
static double float_result(const ptx_instr *i, const double *x) {
  bool single = ptx_type_of(i).bits == 32;
  switch (i->op) {
    case PTX_add: return x[0] + x[1];
    case PTX_sub: return x[0] - x[1];
    case PTX_mul: return x[0] * x[1];
    case PTX_div: return x[0] / x[1];
    case PTX_rcp: return 1 / x[0];
    case PTX_sqrt: return sqrt(x[0]);
    case PTX_fma:
    case PTX_mad: return single ? (double)fmaf((float)x[0], (float)x[1], (float)x[2]) : fma(x[0], x[1], x[2]);
    default: return extreme(i, x[0], x[1]);
  }
}

static status float_op(const ptx_instr *i, const uint64_t *s, uint64_t *d) {
  ptx_type t = ptx_type_of(i);
  uint64_t sign = 1ull << (t.bits - 1);
  double x[3] = {0};
  TRY(allow(i, i->op == PTX_min || i->op == PTX_max ? "NaN" : "rn"));
  if (i->op == PTX_abs || i->op == PTX_neg) {
    *d = i->op == PTX_abs ? s[0] & ~sign : s[0] ^ sign;
    return NULL;
  }
  if (i->op == PTX_copysign) { /* the sign of the first, the rest of the second */
    *d = (s[0] & sign) | (s[1] & ~sign & mask_of(t.bits));
    return NULL;
  }
  bool fused = i->op == PTX_fma || i->op == PTX_mad, other = i->op == PTX_min || i->op == PTX_max;
  bool exact = other || ptx_has(i, "rn");
  if (!exact || i->op == PTX_rem || (fused && t.bits == 16)) {
    return ptx_unknown(i);
  }
  for (int k = 0; k < i->n - 1 && k < 3; k++) {
    x[k] = ptx_to_double(t, s[k]);
  }
  *d = of_double(t, float_result(i, x));
  return NULL;
}

/* --- integers --- */

static __int128 wide(ptx_type t, uint64_t bits) {
  return t.kind == PTX_SIGNED ? (__int128)ptx_to_signed(t.bits, bits) : (__int128)(bits & mask_of(t.bits));
}

static uint64_t product(const ptx_instr *i, ptx_type t, uint64_t x, uint64_t y) {
  __int128 p = t.kind == PTX_SIGNED ? wide(t, x) * wide(t, y)
                                    : (__int128)((unsigned __int128)(x & mask_of(t.bits)) * (y & mask_of(t.bits)));
  return ptx_has(i, "hi") ? (uint64_t)((unsigned __int128)p >> t.bits) & mask_of(t.bits)
                          : (uint64_t)p & mask_of(ptx_has(i, "wide") ? 2 * t.bits : t.bits);
}

/* Division by 0 has an arbitrary result. */
static uint64_t quotient(const ptx_instr *i, ptx_type t, uint64_t x, uint64_t y) {
  __int128 a = wide(t, x), b = wide(t, y);
  return b == 0 ? mask_of(t.bits) : (uint64_t)(i->op == PTX_div ? a / b : a % b);
}

static uint64_t shifted(const ptx_instr *i, ptx_type t, uint64_t x, uint32_t by) {
  by = by < (uint32_t)t.bits ? by : (uint32_t)t.bits;
  if (i->op == PTX_shl) {
    return by >= 64 ? 0 : x << by;
  }
  return (uint64_t)(wide(t, x) >> by);
}

/* Returns 32 bits of the 64 whose lower half is `low`, shifted by n bits. */
static uint64_t funnel_shifted(const ptx_instr *i, uint64_t low, uint64_t high, uint32_t n) {
  n = ptx_has(i, "wrap") ? n & 31 : n < 32 ? n : 32;
  uint64_t both = high << 32 | (low & UINT32_MAX);
  return (ptx_has(i, "r") ? both >> n : both << n >> 32) & UINT32_MAX;
}

/* Returns bits `at` to at + n - 1 of x.  For a signed type, the bits above are copies of the highest bit of that field,
 * or of x if the field reaches beyond x. */
static uint64_t field(ptx_type t, uint64_t x, uint32_t at, uint32_t n) {
  at &= 0xff, n &= 0xff;
  uint32_t last = at + n - 1 < (uint32_t)t.bits - 1 ? at + n - 1 : (uint32_t)t.bits - 1;
  bool fill = t.kind == PTX_SIGNED && n && (x >> last & 1);
  uint64_t bits = at >= 64 ? 0 : (x & mask_of(t.bits)) >> at;
  uint32_t have = n < (uint32_t)t.bits - (at < (uint32_t)t.bits ? at : (uint32_t)t.bits)
                      ? n
                      : (uint32_t)t.bits - (at < (uint32_t)t.bits ? at : (uint32_t)t.bits);
  return (bits & mask_of((int)have)) | (fill ? ~mask_of((int)have) : 0);
}

static uint64_t inserted(ptx_type t, uint64_t x, uint64_t into, uint32_t at, uint32_t n) {
  at &= 0xff, n &= 0xff;
  uint64_t mask = at >= (uint32_t)t.bits ? 0 : mask_of(n < 64 ? (int)n : 64) << at;
  return (into & ~mask) | (at >= 64 ? 0 : (x << at) & mask);
}

/* Byte k of the result is chosen by bits 4k to 4k+3 of `which`: the lower three say which of the eight bytes of x and
 * y; if the fourth is set, all bits are copies of that byte's highest bit. */
static uint64_t permuted(uint64_t x, uint64_t y, uint64_t which) {
  uint64_t all = (x & UINT32_MAX) | y << 32, r = 0;
  for (int k = 0; k < 4; k++) {
    uint64_t n = which >> (4 * k) & 15, byte = all >> (8 * (n & 7)) & 0xff;
    r |= (n & 8 ? (byte & 0x80 ? 0xffull : 0) : byte) << (8 * k);
  }
  return r;
}

static uint64_t reversed(uint64_t x, int bits) {
  uint64_t r = 0;
  for (int k = 0; k < bits; k++) {
    r |= (x >> k & 1) << (bits - 1 - k);
  }
  return r;
}

static status int_op(const ptx_instr *i, const uint64_t *s, uint64_t *d) {
  ptx_type t = ptx_type_of(i);
  TRY(allow(i, i->op == PTX_mul || i->op == PTX_mad ? "lo hi wide" : i->op == PTX_shf ? "l r clamp wrap" : ""));
  __int128 x = wide(t, s[0]), y = wide(t, s[1]);
  switch (i->op) {
    case PTX_add: *d = s[0] + s[1]; break;
    case PTX_sub: *d = s[0] - s[1]; break;
    case PTX_mul: *d = product(i, t, s[0], s[1]); break;
    case PTX_mad: *d = product(i, t, s[0], s[1]) + s[2]; break;
    case PTX_div:
    case PTX_rem: *d = quotient(i, t, s[0], s[1]); break;
    case PTX_min: *d = x < y ? s[0] : s[1]; break;
    case PTX_max: *d = x > y ? s[0] : s[1]; break;
    case PTX_abs: *d = (uint64_t)(x < 0 ? -x : x); break;
    case PTX_neg: *d = -s[0]; break;
    case PTX_and: *d = s[0] & s[1]; break;
    case PTX_or: *d = s[0] | s[1]; break;
    case PTX_xor: *d = s[0] ^ s[1]; break;
    case PTX_not: *d = ~s[0]; break;
    case PTX_shl:
    case PTX_shr: *d = shifted(i, t, s[0], (uint32_t)s[1]); break;
    case PTX_shf: *d = funnel_shifted(i, s[0], s[1], (uint32_t)s[2]); break;
    case PTX_bfe: *d = field(t, s[0], (uint32_t)s[1], (uint32_t)s[2]); break;
    case PTX_bfi: *d = inserted(t, s[0], s[1], (uint32_t)s[2], (uint32_t)s[3]); break;
    case PTX_popc: *d = (uint64_t)__builtin_popcountll(s[0] & mask_of(t.bits)); break;
    case PTX_clz: {
      uint64_t bits = s[0] & mask_of(t.bits);
      *d = (uint64_t)(bits ? __builtin_clzll(bits) - (64 - t.bits) : t.bits);
      break;
    }
    case PTX_brev: *d = reversed(s[0], t.bits); break;
    case PTX_prmt: *d = permuted(s[0], s[1], s[2]); break;
    default: return ptx_unknown(i);
  }
  return NULL;
}

/* --- comparisons --- */

static status compare_floats(const ptx_instr *i, const char *how, double x, double y, bool *out) {
  static const struct {
    const char *name;
    bool less, equal, greater, unordered;
  } rows[] = {{"eq", 0, 1, 0, 0},  {"ne", 1, 0, 1, 0},  {"lt", 1, 0, 0, 0},  {"le", 1, 1, 0, 0},  {"gt", 0, 0, 1, 0},
              {"ge", 0, 1, 1, 0},  {"equ", 0, 1, 0, 1}, {"neu", 1, 0, 1, 1}, {"ltu", 1, 0, 0, 1}, {"leu", 1, 1, 0, 1},
              {"gtu", 0, 0, 1, 1}, {"geu", 0, 1, 1, 1}, {"num", 1, 1, 1, 0}, {"nan", 0, 0, 0, 1}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    if (strcmp(rows[k].name, how) == 0) {
      *out = isnan(x) || isnan(y) ? rows[k].unordered : x < y ? rows[k].less : x > y ? rows[k].greater : rows[k].equal;
      return NULL;
    }
  }
  return ptx_unknown(i);
}

static status compare_ints(const ptx_instr *i, const char *how, __int128 x, __int128 y, bool *out) {
  static const struct {
    const char *name;
    bool less, equal, greater;
  } rows[] = {{"eq", 0, 1, 0}, {"ne", 1, 0, 1}, {"lt", 1, 0, 0}, {"le", 1, 1, 0}, {"gt", 0, 0, 1},
              {"ge", 0, 1, 1}, {"lo", 1, 0, 0}, {"ls", 1, 1, 0}, {"hi", 0, 0, 1}, {"hs", 0, 1, 1}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    if (strcmp(rows[k].name, how) == 0) {
      *out = x < y ? rows[k].less : x > y ? rows[k].greater : rows[k].equal;
      return NULL;
    }
  }
  return ptx_unknown(i);
}

static status compare(const ptx_instr *i, const uint64_t *s, uint64_t *d) {
  ptx_type t = ptx_type_of(i);
  bool r;
  if (i->n_modifiers != 1) { /* a modifier such as .and, which combines the result with a third predicate */
    return ptx_unknown(i);
  }
  TRY(is_float(t) ? compare_floats(i, i->modifiers[0], ptx_to_double(t, s[0]), ptx_to_double(t, s[1]), &r)
                  : compare_ints(i, i->modifiers[0], wide(t, s[0]), wide(t, s[1]), &r));
  *d = r;
  return NULL;
}

static status test_property(const ptx_instr *i, const uint64_t *s, uint64_t *d) {
  double x = ptx_to_double(ptx_type_of(i), s[0]);
  if (ptx_has(i, "finite")) {
    *d = isfinite(x);
  } else if (ptx_has(i, "infinite")) {
    *d = isinf(x) != 0;
  } else if (ptx_has(i, "notanumber")) {
    *d = isnan(x);
  } else if (ptx_has(i, "number")) {
    *d = !isnan(x);
  } else {
    return ptx_unknown(i);
  }
  return NULL;
}

/* --- conversions --- */

static double rounded(const ptx_instr *i, double x) {
  return ptx_has(i, "rni")   ? nearbyint(x)
         : ptx_has(i, "rzi") ? trunc(x)
         : ptx_has(i, "rmi") ? floor(x)
         : ptx_has(i, "rpi") ? ceil(x)
                             : x;
}

/* Returns x, without its fraction, as an integer of the type.  Numbers out of range become its least or largest number,
 * and NaN becomes 0. */
static uint64_t saturated(ptx_type t, double x) {
  bool is_signed = t.kind == PTX_SIGNED;
  double least = is_signed ? -ldexp(1, t.bits - 1) : 0, end = ldexp(1, is_signed ? t.bits - 1 : t.bits);
  if (isnan(x)) {
    return 0;
  }
  if (x >= end) {
    return is_signed ? mask_of(t.bits - 1) : mask_of(t.bits);
  }
  return x <= least ? (is_signed ? (uint64_t)ptx_to_signed(t.bits, 1ull << (t.bits - 1)) : 0)
                    : (x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x);
}

static uint64_t of_integer(ptx_type to, __int128 x) {
  if (to.bits == 32 && to.kind == PTX_FLOAT) {
    return ptx_of_float((float)x);
  }
  /* The conversion to f64 is exact for the types of 16 bits, since x has at most 32 bits there (convert). */
  return of_double(to, (double)x);
}

/* Rounds to the 10 bits of mantissa of tf32, ties away from 0. */
static uint64_t to_tf32(uint64_t bits) {
  return isfinite(ptx_to_float(bits)) ? (bits + 0x1000) & 0xffffe000u : bits & UINT32_MAX;
}

static status convert(const ptx_instr *i, const uint64_t *s, uint64_t *d) {
  ptx_type to = i->types[0], from = i->types[1];
  TRY(allow(i, to.kind == PTX_TF32 ? "rna" : "rn rni rzi rmi rpi sat"));
  bool saturates = ptx_has(i, "sat");
  if (i->n_types != 2 || (saturates && is_float(to))) {
    return ptx_unknown(i);
  }
  if (to.kind == PTX_TF32) {
    *d = to_tf32(s[0]);
  } else if (is_float(from)) {
    double x = rounded(i, ptx_to_double(from, s[0]));
    *d = is_float(to) ? of_double(to, x) : saturated(to, x);
  } else if (is_float(to)) {
    if (to.bits < 32 && from.bits > 32) {
      return ptx_unknown(i);
    }
    *d = of_integer(to, wide(from, s[0]));
  } else {
    *d = saturates ? saturated(to, (double)wide(from, s[0])) : (uint64_t)wide(from, s[0]);
    *d = to.kind == PTX_SIGNED ? (uint64_t)ptx_to_signed(to.bits, *d) : *d;
  }
  return saturates && from.bits > 32 ? ptx_unknown(i) : NULL;
}

status ptx_scalar(const ptx_instr *i, const uint64_t *s, uint64_t *d) {
  ptx_type t = ptx_type_of(i);
  switch (i->op) {
    case PTX_cvt: TRY(convert(i, s, d)); break;
    case PTX_setp: TRY(compare(i, s, d)); return NULL;
    case PTX_testp: TRY(test_property(i, s, d)); return NULL;
    case PTX_selp: *d = s[2] & 1 ? s[0] : s[1]; break;
    default: TRY(is_float(t) ? float_op(i, s, d) : int_op(i, s, d));
  }
  /* A signed result is extended by its sign to the width of the register. */
  int bits = ptx_has(i, "wide") ? 2 * t.bits : t.bits;
  *d = t.kind == PTX_SIGNED ? (uint64_t)ptx_to_signed(bits, *d) : *d & mask_of(bits);
  return NULL;
}
