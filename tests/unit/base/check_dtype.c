/* check_dtype.c - element types: every bit pattern of every float type, all pairs of conversions.
 *
 * What is expected comes from three places: the definition of the formats, written out with ldexp below; the
 * tables of ONNX's Cast operator; and hashes of what numpy and ml_dtypes give (an implementation that shares
 * no code with this library), computed once. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "base/tensor/dtype.h"
#include "tests/suite.h"

/* {type, number of bits, number of bits of the fraction, bias, then as bits: the largest finite magnitude,
 * infinity (or 0), NaN (or 0)} */
static const struct format {
  dtype type;
  int width, fraction, bias;
  unsigned max, inf, nan;
} formats[] = {
    {DTYPE_F4E2M1FN, 4, 1, 1, 7, 0, 0},
    {DTYPE_F6E2M3FN, 6, 3, 1, 0x1f, 0, 0},
    {DTYPE_F6E3M2FN, 6, 2, 3, 0x1f, 0, 0},
    {DTYPE_F8E4M3FN, 8, 3, 7, 0x7e, 0, 0x7f},
    {DTYPE_F8E4M3FNUZ, 8, 3, 8, 0x7f, 0, 0x80},
    {DTYPE_F8E5M2, 8, 2, 15, 0x7b, 0x7c, 0x7e},
    {DTYPE_F8E5M2FNUZ, 8, 2, 16, 0x7f, 0, 0x80},
    {DTYPE_F16, 16, 10, 15, 0x7bff, 0x7c00, 0x7e00},
    {DTYPE_BF16, 16, 7, 127, 0x7f7f, 0x7f80, 0x7fc0},
};
enum { FORMATS = sizeof formats / sizeof *formats };

static double load(dtype t, unsigned bits) {
  uint32_t element = bits;
  return dtype_load_f64(t, &element);
}

static unsigned store_mode(dtype t, double value, bool saturate, dtype_round round) {
  uint32_t element = 0;
  dtype_store_f64(t, &element, value, saturate, round);
  return element;
}

static unsigned store(dtype t, double value, bool saturate) {
  return store_mode(t, value, saturate, DTYPE_ROUND_NEAREST);
}

/* Returns the value of a finite magnitude by the definition of the format. */
static double value_of(const struct format *f, unsigned magnitude) {
  unsigned exponent = magnitude >> f->fraction, fraction = magnitude & ((1u << f->fraction) - 1);
  double significand = fraction + (exponent ? ldexp(1, f->fraction) : 0);
  return ldexp(significand, (int)(exponent ? exponent : 1) - f->bias - f->fraction);
}

static bool is_fnuz(const struct format *f) { return f->nan == 1u << (f->width - 1); }

START_TEST(decode_all) {
  const struct format *f = &formats[_i];
  unsigned sign = 1u << (f->width - 1);
  for (unsigned bits = 0; bits < 2 * sign; bits++) {
    unsigned magnitude = bits & (sign - 1);
    double x = load(f->type, bits);
    if (is_fnuz(f) && bits == sign) {
      ck_assert(isnan(x));
    } else if (magnitude <= f->max) {
      double expected = bits & sign ? -value_of(f, magnitude) : value_of(f, magnitude);
      ck_assert_msg(x == expected && !signbit(x) == !(bits & sign), "%s %#x: %g", dtype_name(f->type), bits, x);
    } else if (f->inf && magnitude == f->inf) {
      ck_assert(isinf(x) && !signbit(x) == !(bits & sign));
    } else {
      ck_assert_msg(isnan(x), "%s %#x: %g", dtype_name(f->type), bits, x);
    }
  }
}
END_TEST

/* Returns the bits of the negative number with this magnitude; the fnuz types have no negative zero. */
static unsigned negated(const struct format *f, unsigned magnitude) {
  return magnitude == 0 && is_fnuz(f) ? 0 : magnitude | 1u << (f->width - 1);
}

static void expect(const struct format *f, double value, unsigned magnitude) {
  for (int saturate = 0; saturate < 2; saturate++) {
    unsigned plus = store(f->type, value, saturate), minus = store(f->type, -value, saturate);
    if (plus != magnitude || minus != negated(f, magnitude)) {
      ck_abort_msg("%s: %a gives %#x and %#x, not %#x", dtype_name(f->type), value, plus, minus, magnitude);
    }
  }
}

/* Encodes every value, and numbers around every midpoint of two neighbours: they are rounded once, to
 * nearest, ties to even. */
START_TEST(encode_all) {
  const struct format *f = &formats[_i];
  for (unsigned m = 0; m <= f->max; m++) {
    double x = value_of(f, m);
    expect(f, x, m);
    if (m < f->max) {
      double middle = (x + value_of(f, m + 1)) / 2;
      expect(f, middle, m + (m & 1));
      expect(f, nextafter(middle, INFINITY), m + 1);
      expect(f, nextafter(middle, 0), m);
    }
  }
}
END_TEST

START_TEST(encode_overflow) {
  const struct format *f = &formats[_i];
  bool narrow = f->width <= 8;
  double max = value_of(f, f->max), step = max - value_of(f, f->max - 1);
  unsigned over = f->inf ? f->inf : f->nan ? f->nan : f->max;
  expect(f, nextafter(max + step / 2, 0), f->max);
  double beyond[] = {nextafter(max + step / 2, INFINITY), max + step, 2 * max, 1e300, INFINITY};
  for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
    ck_assert_uint_eq(store(f->type, beyond[i], false), over);
    ck_assert_uint_eq(store(f->type, -beyond[i], false), negated(f, over));
    ck_assert_uint_eq(store(f->type, beyond[i], true), narrow ? f->max : f->inf);
    ck_assert_uint_eq(store(f->type, -beyond[i], true), negated(f, narrow ? f->max : f->inf));
  }
  /* A tie between the largest value and what would be the next one is rounded away from a largest value whose
   * last bit is 1. */
  ck_assert_uint_eq(store(f->type, max + step / 2, false), f->max & 1 ? over : f->max);
  double tiny[] = {4.9e-324, 2.2e-308, 1e-100};
  for (size_t i = 0; i < sizeof tiny / sizeof *tiny; i++) {
    expect(f, tiny[i], 0);
  }
  if (f->nan) {
    ck_assert_uint_eq(store(f->type, (double)NAN, true), f->nan);
    ck_assert_uint_eq(store(f->type, -(double)NAN, false), negated(f, f->nan));
  }
  ck_assert(dtype_max_f64(f->type) == max && dtype_lowest_f64(f->type) == -max);
}
END_TEST

/* As in ONNX's reference, a type without NaN gets a zero of the opposite sign for a NaN. */
START_TEST(tiny_nan) {
  ck_assert_uint_eq(store(DTYPE_F4E2M1FN, (double)NAN, true), 8);
  ck_assert_uint_eq(store(DTYPE_F4E2M1FN, -(double)NAN, true), 0);
  ck_assert_uint_eq(store(DTYPE_F4E2M1FN, 100, false), 7);
  ck_assert_uint_eq(store(DTYPE_F6E2M3FN, (double)NAN, true), 32);
  ck_assert_uint_eq(store(DTYPE_F6E3M2FN, -(double)NAN, true), 0);
}
END_TEST

/* Returns the FNV-1a hash of the bytes, continued from the hash h. */
static uint64_t fnv(uint64_t h, const void *data, size_t size) {
  for (size_t i = 0; i < size; i++) {
    h = (h ^ ((const unsigned char *)data)[i]) * 1099511628211u;
  }
  return h;
}

/* Hashes of numpy's and ml_dtypes' results: of the f32 with bits 65521*i + 12345 (i < 65536) cast to the
 * type, and of all bit patterns cast to f32.  Before hashing, their NaNs were replaced by those that this
 * library writes to f16 and bf16, and by 0x7fc00000 in f32. */
static const struct {
  dtype type;
  uint64_t encoded, decoded;
} hashes[] = {
    {DTYPE_F4E2M1FN, 0x45a3d42da668e655u, 0xf763b321dcc84703u},
    {DTYPE_F6E2M3FN, 0x685540789066c26eu, 0x97f31effec72e503u},
    {DTYPE_F6E3M2FN, 0x5a6422b710c20e9bu, 0x54ecf6665bf09363u},
    {DTYPE_F8E4M3FN, 0xe443a7528b0ce55du, 0xb75c0afc7cb84b03u},
    {DTYPE_F8E4M3FNUZ, 0x6de50490d8480b65u, 0xcde521cac4ba96fau},
    {DTYPE_F8E5M2, 0x7ebe00ca984f84acu, 0xdba16bcbb162d7e3u},
    {DTYPE_F8E5M2FNUZ, 0x5f2441acb284648eu, 0x171e278b3201363au},
    {DTYPE_F16, 0x1ef2c1c183b4c849u, 0xf260868b5ff4c523u},
    {DTYPE_BF16, 0xd9068218240e5c30u, 0x1981eb542d8da203u},
};

START_TEST(as_numpy) {
  dtype type = hashes[_i].type;
  size_t bytes = dtype_bytes(type);
  uint64_t h = 1469598103934665603u;
  for (uint64_t i = 0; i < 65536; i++) {
    uint32_t bits = (uint32_t)(i * 65521 + 12345), out = 0;
    dtype_convert(DTYPE_F32, &bits, type, &out, 1, false, DTYPE_ROUND_NEAREST);
    h = fnv(h, &out, bytes);
  }
  ck_assert_uint_eq(h, hashes[_i].encoded);
  h = 1469598103934665603u;
  for (uint32_t bits = 0; bits < 1u << dtype_get_info(type)->bits; bits++) {
    uint32_t out;
    dtype_convert(type, &bits, DTYPE_F32, &out, 1, false, DTYPE_ROUND_NEAREST);
    out = (out & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : out;
    h = fnv(h, &out, 4);
  }
  ck_assert_uint_eq(h, hashes[_i].decoded);
}
END_TEST

/* Compares the fast functions with the general ones. */
START_TEST(fast_16_bit) {
  for (uint64_t i = 0; i < UINT32_MAX; i += 4099) {
    uint32_t bits = (uint32_t)i;
    float x;
    memcpy(&x, &bits, 4);
    if (f32_to_f16(x) != store(DTYPE_F16, (double)x, false) || f32_to_bf16(x) != store(DTYPE_BF16, (double)x, false)) {
      ck_abort_msg("%a: %#x, %#x", (double)x, f32_to_f16(x), f32_to_bf16(x));
    }
  }
  for (unsigned bits = 0; bits < 65536; bits++) {
    double wide = load(DTYPE_F16, bits), f16 = (double)f16_to_f32((uint16_t)bits);
    ck_assert(isnan(wide) ? isnan(f16) : wide == f16 && !signbit(wide) == !signbit(f16));
    wide = load(DTYPE_BF16, bits);
    double bf16 = (double)bf16_to_f32((uint16_t)bits);
    ck_assert(isnan(wide) ? isnan(bf16) : wide == bf16 && !signbit(wide) == !signbit(bf16));
  }
  /* Every midpoint of two neighbouring f16, which f32 holds exactly, and its neighbours in f32. */
  for (unsigned bits = 0; bits < 0x7bff; bits++) {
    float middle = (f16_to_f32((uint16_t)bits) + f16_to_f32((uint16_t)(bits + 1))) / 2;
    ck_assert_uint_eq(f32_to_f16(middle), bits + (bits & 1));
    ck_assert_uint_eq(f32_to_f16(nextafterf(middle, INFINITY)), bits + 1);
    ck_assert_uint_eq(f32_to_f16(nextafterf(middle, 0)), bits);
  }
}
END_TEST

/* The table of ONNX's Cast, and the attribute round_mode; a value is 2^(bits - 127). */
START_TEST(float8_e8m0) {
  static const struct {
    double value;
    unsigned up, down, nearest, loose; /* saturating; loose: nearest without saturation */
  } cases[] = {
      {1, 127, 127, 127, 127},         {1.25, 128, 127, 127, 127},
      {1.5, 128, 127, 128, 128},       {1.75, 128, 127, 128, 128},
      {3, 129, 128, 129, 129},         {-2, 128, 128, 128, 128},
      {0x1p-127, 0, 0, 0, 0},          {0x1p127, 254, 254, 254, 254},
      {0x1.2p127, 254, 254, 254, 254}, {0x1.8p127, 254, 254, 254, 255},
      {0x1p128, 254, 254, 254, 255},   {1e300, 254, 254, 254, 255},
      {0x1p-128, 0, 0, 0, 255},        {0x1.cp-128, 0, 0, 0, 0},
      {4.9e-324, 0, 0, 0, 255},        {0, 0, 0, 0, 255},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    double x = cases[i].value;
    ck_assert_msg(store_mode(DTYPE_F8E8M0FNU, x, true, DTYPE_ROUND_UP) == cases[i].up, "%a up", x);
    ck_assert_msg(store_mode(DTYPE_F8E8M0FNU, x, true, DTYPE_ROUND_DOWN) == cases[i].down, "%a down", x);
    ck_assert_msg(store_mode(DTYPE_F8E8M0FNU, x, true, DTYPE_ROUND_NEAREST) == cases[i].nearest, "%a nearest", x);
    ck_assert_msg(store_mode(DTYPE_F8E8M0FNU, x, false, DTYPE_ROUND_NEAREST) == cases[i].loose, "%a loose", x);
  }
  for (unsigned bits = 0; bits < 255; bits++) {
    ck_assert(load(DTYPE_F8E8M0FNU, bits) == ldexp(1, (int)bits - 127));
    ck_assert_uint_eq(store(DTYPE_F8E8M0FNU, ldexp(1, (int)bits - 127), false), bits);
  }
  ck_assert(isnan(load(DTYPE_F8E8M0FNU, 255)));
  ck_assert_uint_eq(store_mode(DTYPE_F8E8M0FNU, (double)NAN, true, DTYPE_ROUND_UP), 255);
  ck_assert_uint_eq(store_mode(DTYPE_F8E8M0FNU, INFINITY, true, DTYPE_ROUND_UP), 254);
  ck_assert_uint_eq(store_mode(DTYPE_F8E8M0FNU, INFINITY, false, DTYPE_ROUND_NEAREST), 255);
  ck_assert(dtype_max_f64(DTYPE_F8E8M0FNU) == 0x1p127 && dtype_lowest_f64(DTYPE_F8E8M0FNU) == 0x1p-127);
}
END_TEST

START_TEST(table) {
  for (int t = 1; t < DTYPE_COUNT; t++) {
    const dtype_info *info = dtype_get_info((dtype)t);
    ck_assert_int_eq(dtype_from_name(info->name, strlen(info->name)), t);
    ck_assert_int_ne((int)dtype_from_name(info->name, strlen(info->name) - 1), t);
    ck_assert_int_eq(dtype_from_onnx(info->onnx), t);
    ck_assert(info->bits <= 8 * info->bytes && info->bits);
  }
  ck_assert_str_eq(dtype_name(DTYPE_INVALID), "invalid");
  ck_assert_str_eq(dtype_name((dtype)255), "invalid");
  ck_assert_int_eq(dtype_from_name("", 0), DTYPE_INVALID);
  ck_assert_int_eq(dtype_from_name("invalid", 7), DTYPE_INVALID);
  ck_assert_int_eq(dtype_from_onnx(0), DTYPE_INVALID);
  ck_assert_int_eq(dtype_from_onnx(-1), DTYPE_INVALID);
  ck_assert_int_eq(dtype_from_onnx(99), DTYPE_INVALID);
  ck_assert_int_eq(dtype_compute_type(DTYPE_BF16), DTYPE_F32);
  ck_assert_int_eq(dtype_compute_type(DTYPE_F4E2M1FN), DTYPE_F32);
  ck_assert_int_eq(dtype_compute_type(DTYPE_F64), DTYPE_F64);
  ck_assert_int_eq(dtype_compute_type(DTYPE_S4), DTYPE_S4);
}
END_TEST

static const dtype ints[] = {DTYPE_S2, DTYPE_S4, DTYPE_S8, DTYPE_S16, DTYPE_S32, DTYPE_S64,
                             DTYPE_U2, DTYPE_U4, DTYPE_U8, DTYPE_U16, DTYPE_U32, DTYPE_U64};
enum { INTS = sizeof ints / sizeof *ints };

static int64_t as_int(dtype t, double value) {
  uint64_t element = 0;
  dtype_store_f64(t, &element, value, true, DTYPE_ROUND_NEAREST);
  return dtype_load_i64(t, &element);
}

START_TEST(float_to_int) {
  dtype t = ints[_i];
  int bits = dtype_get_info(t)->bits;
  bool is_signed = dtype_is_signed(t);
  int64_t low = is_signed ? INT64_MIN >> (64 - bits) : 0;
  int64_t high = is_signed ? INT64_MAX >> (64 - bits) : (int64_t)(UINT64_MAX >> (64 - bits));
  double above = ldexp(1, is_signed ? bits - 1 : bits), below = is_signed ? -above : 0;
  ck_assert_int_eq(as_int(t, (double)NAN), 0);
  ck_assert_int_eq(as_int(t, INFINITY), high);
  ck_assert_int_eq(as_int(t, -INFINITY), low);
  ck_assert_int_eq(as_int(t, above), high);
  ck_assert_int_eq(as_int(t, below), low);
  ck_assert_int_eq(as_int(t, 1e300), high);
  ck_assert_int_eq(as_int(t, below - 0.5), low);
  int64_t unseen = is_signed ? 0x3ff : 0x7ff; /* bits of a 64-bit integer that an f64 of that size does not have */
  ck_assert_int_eq(as_int(t, nextafter(above, 0)), bits == 64 ? high & ~unseen : high);
  ck_assert_int_eq(as_int(t, 1.99), 1);
  ck_assert_int_eq(as_int(t, -1.99), is_signed ? -1 : 0);
  ck_assert_int_eq(as_int(t, -0.99), 0);
  ck_assert(dtype_lowest_f64(t) == below);
  ck_assert(dtype_max_f64(t) == (bits == 64 ? above : above - 1));
}
END_TEST

/* Returns the value modulo 2^bits in the range of the type, by shifts. */
static int64_t wrapped(dtype t, int64_t value) {
  int drop = 64 - dtype_get_info(t)->bits;
  uint64_t high = (uint64_t)value << drop;
  return dtype_is_signed(t) ? (int64_t)high >> drop : (int64_t)(high >> drop);
}

static const int64_t numbers[] = {
    0,         1,   2,     3,     7,     8,     15,        16,        127,        128,
    255,       256, 32767, 32768, 65535, 65536, INT32_MAX, INT32_MIN, UINT32_MAX, INT64_MAX,
    INT64_MIN, -1,  -2,    -3,    -8,    -9,    -128,      -129,      0x12345678, 0x5a5a5a5a5a5a5a5a};

START_TEST(int_to_int) {
  for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
    uint64_t from = 0, to = 0;
    dtype_store_i64(ints[_i], &from, numbers[k]);
    int64_t value = wrapped(ints[_i], numbers[k]);
    ck_assert_int_eq(dtype_load_i64(ints[_i], &from), value);
    for (int j = 0; j < INTS; j++) {
      dtype_convert(ints[_i], &from, ints[j], &to, 1, true, DTYPE_ROUND_NEAREST);
      ck_assert_int_eq(dtype_load_i64(ints[j], &to), wrapped(ints[j], value));
    }
    uint8_t truth = 9;
    dtype_convert(ints[_i], &from, DTYPE_PRED, &truth, 1, true, DTYPE_ROUND_NEAREST);
    ck_assert_uint_eq(truth, value != 0);
    double as_double;
    dtype_convert(ints[_i], &from, DTYPE_F64, &as_double, 1, true, DTYPE_ROUND_NEAREST);
    ck_assert(as_double == (ints[_i] == DTYPE_U64 ? (double)(uint64_t)value : (double)value));
  }
}
END_TEST

/* 2^62 + 2^54 is a tie in bf16. 2^62 + 2^54 + 1 is not, but would become one if it were rounded to f64
 * first. */
START_TEST(wide_int_rounds_once) {
  int64_t tie = ((int64_t)1 << 62) + ((int64_t)1 << 54), above = tie + 1, minus = -above;
  uint64_t top = UINT64_MAX;
  uint16_t bits;
  dtype_convert(DTYPE_S64, &tie, DTYPE_BF16, &bits, 1, true, DTYPE_ROUND_NEAREST);
  ck_assert_uint_eq(bits, 0x5e80);
  dtype_convert(DTYPE_S64, &above, DTYPE_BF16, &bits, 1, true, DTYPE_ROUND_NEAREST);
  ck_assert_uint_eq(bits, 0x5e81);
  dtype_convert(DTYPE_S64, &minus, DTYPE_BF16, &bits, 1, true, DTYPE_ROUND_NEAREST);
  ck_assert_uint_eq(bits, 0xde81);
  dtype_convert(DTYPE_U64, &top, DTYPE_BF16, &bits, 1, true, DTYPE_ROUND_NEAREST);
  ck_assert_uint_eq(bits, 0x5f80);
  float single;
  int64_t odd = ((int64_t)1 << 62) + ((int64_t)1 << 38) + 1;
  dtype_convert(DTYPE_S64, &odd, DTYPE_F32, &single, 1, true, DTYPE_ROUND_NEAREST);
  ck_assert(single == 0x1.000002p62f);
  dtype_convert(DTYPE_U64, &odd, DTYPE_F32, &single, 1, true, DTYPE_ROUND_NEAREST);
  ck_assert(single == 0x1.000002p62f);
}
END_TEST

START_TEST(complex_numbers) {
  double z[2] = {1.5, -2.5}, back[2];
  float narrow[2] = {9, 9}, real = 0;
  uint8_t truth;
  dtype_convert(DTYPE_C128, z, DTYPE_C64, narrow, 1, true, DTYPE_ROUND_NEAREST);
  ck_assert(narrow[0] == 1.5f && narrow[1] == -2.5f);
  dtype_convert(DTYPE_C64, narrow, DTYPE_C128, back, 1, true, DTYPE_ROUND_NEAREST);
  ck_assert(back[0] == 1.5 && back[1] == -2.5);
  dtype_convert(DTYPE_C128, z, DTYPE_F32, &real, 1, true, DTYPE_ROUND_NEAREST);
  ck_assert(real == 1.5f);
  int32_t whole = 7;
  dtype_convert(DTYPE_S32, &whole, DTYPE_C64, narrow, 1, true, DTYPE_ROUND_NEAREST);
  ck_assert(narrow[0] == 7 && narrow[1] == 0);
  double imaginary[2] = {0, 1}, zero[2] = {0, -0.0};
  dtype_convert(DTYPE_C128, imaginary, DTYPE_PRED, &truth, 1, true, DTYPE_ROUND_NEAREST);
  ck_assert_uint_eq(truth, 1);
  dtype_convert(DTYPE_C128, zero, DTYPE_PRED, &truth, 1, true, DTYPE_ROUND_NEAREST);
  ck_assert_uint_eq(truth, 0);
}
END_TEST

/* Converts between every pair of types, at odd addresses: converting an array gives what converting its
 * elements one by one gives, whichever loop does it. */
START_TEST(all_pairs) {
  enum { N = 9 };
  static const double values[N] = {0, 1, -1, 2.5, -3.75, 100, 1e6, 0.1, -200};
  for (int to = 1; to < DTYPE_STR; to++) {
    dtype from = (dtype)_i, target = (dtype)to;
    size_t a = dtype_bytes(from), b = dtype_bytes(target);
    char src[16 * N + 1], dst[16 * N + 2], one[16];
    for (int i = 0; i < N; i++) {
      dtype_store_f64(from, src + 1 + (size_t)i * a, values[i], true, DTYPE_ROUND_NEAREST);
    }
    dst[1 + N * b] = 77;
    dtype_convert(from, src + 1, target, dst + 1, N, true, DTYPE_ROUND_NEAREST);
    ck_assert_int_eq(dst[1 + N * b], 77);
    for (int i = 0; i < N; i++) {
      double x = dtype_load_f64(from, src + 1 + (size_t)i * a);
      bool both_int = dtype_is_int(from) && dtype_is_int(target);
      if (both_int) {
        dtype_store_i64(target, one, dtype_load_i64(from, src + 1 + (size_t)i * a));
      } else {
        dtype_store_f64(target, one, x, true, DTYPE_ROUND_NEAREST);
      }
      ck_assert_msg(memcmp(one, dst + 1 + (size_t)i * b, b) == 0, "%s to %s: %g", dtype_name(from), dtype_name(target),
                    x);
    }
  }
  dtype_convert((dtype)_i, NULL, DTYPE_F32, NULL, 0, true, DTYPE_ROUND_NEAREST);
}
END_TEST

int main(void) {
  TCase *all = tcase_create("all");
  tcase_set_timeout(all, 120);
  tcase_add_test(all, table);
  tcase_add_loop_test(all, decode_all, 0, FORMATS);
  tcase_add_loop_test(all, encode_all, 0, FORMATS);
  tcase_add_loop_test(all, encode_overflow, 0, FORMATS);
  tcase_add_loop_test(all, as_numpy, 0, sizeof hashes / sizeof *hashes);
  tcase_add_test(all, tiny_nan);
  tcase_add_test(all, fast_16_bit);
  tcase_add_test(all, float8_e8m0);
  tcase_add_loop_test(all, float_to_int, 0, INTS);
  tcase_add_loop_test(all, int_to_int, 0, INTS);
  tcase_add_test(all, wide_int_rounds_once);
  tcase_add_test(all, complex_numbers);
  tcase_add_loop_test(all, all_pairs, 1, DTYPE_STR);
  return run_suite("dtype", all);
}
