/* dtype.c - conversions between element types. */
#include "base/tensor/dtype.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* --- the table --- */

static const dtype_info infos[DTYPE_COUNT] = {
    [DTYPE_INVALID] = {"invalid", 0, 0, 0, DTYPE_CLASS_NONE},
#define DTYPE(id, text, bytes, bits, onnx, kind) [DTYPE_##id] = {text, bytes, bits, onnx, DTYPE_CLASS_##kind},
#include "base/tensor/dtypes.def"
#undef DTYPE
};

const dtype_info *dtype_get_info(dtype t) { return &infos[(unsigned)t < DTYPE_COUNT ? t : DTYPE_INVALID]; }

dtype dtype_from_name(const char *name, size_t length) {
  for (int t = DTYPE_INVALID + 1; t < DTYPE_COUNT; t++) {
    if (strlen(infos[t].name) == length && memcmp(infos[t].name, name, length) == 0) {
      return (dtype)t;
    }
  }
  return DTYPE_INVALID;
}

dtype dtype_from_onnx(int32_t number) {
  for (int t = DTYPE_INVALID + 1; t < DTYPE_COUNT; t++) {
    if (infos[t].onnx == number) {
      return (dtype)t;
    }
  }
  return DTYPE_INVALID;
}

dtype dtype_compute_type(dtype t) { return dtype_is_float(t) && t != DTYPE_F64 ? DTYPE_F32 : t; }

/* --- floats of 4 to 16 bits --- */

/* The floats of 4 and 6 bits have no NaN; as in ONNX's reference, a NaN becomes a zero of the opposite sign. */
static const dtype_format formats[DTYPE_COUNT] = {
    [DTYPE_F4E2M1FN] = {4, 1, 1, true, 0x7, 0x7, 0x8},         [DTYPE_F6E2M3FN] = {6, 3, 1, true, 0x1f, 0x1f, 0x20},
    [DTYPE_F6E3M2FN] = {6, 2, 3, true, 0x1f, 0x1f, 0x20},      [DTYPE_F8E4M3FN] = {8, 3, 7, true, 0x7e, 0x7f, 0x7f},
    [DTYPE_F8E4M3FNUZ] = {8, 3, 8, false, 0x7f, 0x80, 0x80},   [DTYPE_F8E5M2] = {8, 2, 15, true, 0x7b, 0x7c, 0x7e},
    [DTYPE_F8E5M2FNUZ] = {8, 2, 16, false, 0x7f, 0x80, 0x80},  [DTYPE_F16] = {16, 10, 15, true, 0x7bff, 0x7c00, 0x7e00},
    [DTYPE_BF16] = {16, 7, 127, true, 0x7f7f, 0x7f80, 0x7fc0},
};

const dtype_format *dtype_get_format(dtype t) {
  return (unsigned)t < DTYPE_COUNT && formats[t].width ? &formats[t] : NULL;
}

static uint64_t f64_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* Returns 2^exponent, which must be a normal number. */
static double power_of_two(int exponent) {
  uint64_t bits = (uint64_t)(exponent + 1023) << 52;
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static double small_decode(const dtype_format *f, unsigned bits) {
  unsigned sign = 1u << (f->width - 1), magnitude = bits & (sign - 1);
  bool negative = bits & sign;
  if (!f->negative_zero && negative && !magnitude) {
    return (double)NAN;
  }
  double value;
  if (magnitude > f->max) {
    value = magnitude == f->inf && f->inf != f->nan ? (double)INFINITY : (double)NAN;
  } else {
    int exponent = (int)(magnitude >> f->fraction), one = 1 << f->fraction;
    int significand = (int)(magnitude & (unsigned)(one - 1)) + (exponent ? one : 0);
    /* An exponent field of 0 means the same exponent as 1, but a significand without the leading one. */
    value = significand * power_of_two((exponent ? exponent : 1) - f->bias - f->fraction);
  }
  return negative ? -value : value;
}

/* Rounds the absolute value of a double, which is given by its bits, to nearest even.  Returns the magnitude bits of
 * the result (dtype_format), which are above f->max if it does not fit. */
static uint64_t small_round(const dtype_format *f, uint64_t bits) {
  int exponent = (int)(bits >> 52 & 0x7ff) - 1023, least = 1 - f->bias;
  if (exponent < least - f->fraction - 1) {
    return 0; /* less than half of the smallest value, as are all f64 denormals */
  }
  uint64_t significand = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
  int drop = 52 - f->fraction + (exponent < least ? least - exponent : 0);
  uint64_t kept = significand >> drop, rest = significand & (((uint64_t)1 << drop) - 1);
  uint64_t half = (uint64_t)1 << (drop - 1);
  kept += rest > half || (rest == half && (kept & 1));
  /* The leading one of a normal number, or a carry of the rounding, increments the exponent field. */
  return kept + ((uint64_t)(exponent > least ? exponent - least : 0) << f->fraction);
}

static uint16_t small_encode(const dtype_format *f, double value, bool saturate) {
  uint64_t bits = f64_bits(value);
  unsigned sign = bits >> 63 ? 1u << (f->width - 1) : 0;
  unsigned magnitude;
  if (isnan(value)) {
    return (uint16_t)(f->negative_zero ? f->nan ^ sign : f->nan);
  }
  uint64_t rounded = isinf(value) ? UINT64_MAX : small_round(f, bits);
  if (rounded > f->max) {
    /* Floats of 16 bits never saturate. */
    magnitude = saturate && f->width <= 8 ? f->max : f->inf;
  } else {
    magnitude = (unsigned)rounded;
  }
  if (!f->negative_zero && !(magnitude & 0x7f)) {
    return (uint16_t)magnitude; /* the zero and the only NaN of such a type have no sign */
  }
  return (uint16_t)(magnitude | sign);
}

/* Encodes f8e8m0fnu, whose value is 2^(bits-127); 0xff is NaN.  The sign is ignored.  The value is rounded to a power
 * of two; "nearest" means the power of two with the smaller distance to the value; a tie is rounded up.  A result
 * outside of the range is clamped if `saturate`, otherwise it is NaN.  DTYPE_ROUND_UP rounds small numbers other than 0
 * up to the smallest power of two of the type; 0 is outside of the range. */
static uint8_t e8m0_encode(double value, bool saturate, dtype_round round) {
  if (isnan(value)) {
    return 0xff;
  }
  uint64_t bits = f64_bits(value), fraction = bits & (((uint64_t)1 << 52) - 1);
  int field = (int)(bits >> 52 & 0x7ff) - 1023 + 127;
  bool zero = !(bits << 1);
  if (isfinite(value) && !zero) {
    bool up = round == DTYPE_ROUND_UP ? fraction != 0 : round == DTYPE_ROUND_NEAREST && fraction >> 51;
    field += up;
    if (field < 0 && round == DTYPE_ROUND_UP) {
      field = 0; /* the smallest power of two of the type */
    }
  }
  if (field < 0 || field > 254) {
    return saturate ? (field < 0 ? 0 : 254) : 0xff;
  }
  return (uint8_t)field;
}

static double e8m0_decode(uint8_t bits) { return bits == 0xff ? (double)NAN : power_of_two(bits - 127); }

/* --- conversions between f16 or bf16 and f32, which are the most frequent --- */

static uint32_t f32_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float f32_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

float f16_to_f32(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16, magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) {
    /* An infinity, or a NaN: it keeps its payload and is made quiet, as the hardware instruction does. */
    return f32_of(sign | 0x7f800000 | magnitude << 13 | (magnitude > 0x7c00 ? 0x400000 : 0));
  }
  if (magnitude >= 0x400) {
    return f32_of(sign | ((magnitude << 13) + ((127u - 15u) << 23)));
  }
  float value = (float)magnitude * 0x1p-24f; /* exact */
  return sign ? -value : value;
}

uint16_t f32_to_f16(float value) {
  uint32_t bits = f32_bits(value), magnitude = bits & 0x7fffffff;
  uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
  if (magnitude > 0x7f800000) {
    return sign | 0x7e00;
  }
  if (magnitude >= 0x477ff000) { /* 65520 is the smallest number that rounds to infinity */
    return sign | 0x7c00;
  }
  if (magnitude >= 0x38800000) { /* from 2^-14 on the result is normal: change the bias, then round to nearest even */
    uint32_t rebiased = magnitude - ((127u - 15u) << 23);
    return sign | (uint16_t)((rebiased + 0xfff + (rebiased >> 13 & 1)) >> 13);
  }
  if (magnitude <= 0x33000000) { /* up to 2^-25, half of the smallest value, the result is zero */
    return sign;
  }
  uint32_t drop = 126 - (magnitude >> 23), significand = (magnitude & 0x7fffff) | 0x800000;
  uint32_t kept = significand >> drop;
  return sign | (uint16_t)((significand + (1u << (drop - 1)) - 1 + (kept & 1)) >> drop);
}

uint16_t f32_to_bf16(float value) {
  uint32_t bits = f32_bits(value);
  if ((bits & 0x7fffffff) > 0x7f800000) {
    return (uint16_t)((bits >> 16 & 0x8000) | 0x7fc0);
  }
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* --- one element --- */

/* Elements in mapped files may be unaligned. */
#define DEFINE_LOAD(type, name)                   \
  static inline type load_##name(const void *p) { \
    type x;                                       \
    memcpy(&x, p, sizeof x);                      \
    return x;                                     \
  }
DEFINE_LOAD(int16_t, s16)
DEFINE_LOAD(int32_t, s32)
DEFINE_LOAD(int64_t, s64)
DEFINE_LOAD(uint16_t, u16)
DEFINE_LOAD(uint32_t, u32)
DEFINE_LOAD(float, f32)
DEFINE_LOAD(double, f64)

int64_t dtype_load_i64(dtype t, const void *element) {
  switch (t) {
    case DTYPE_PRED: return *(const uint8_t *)element != 0;
    case DTYPE_S2:
    case DTYPE_S4:
    case DTYPE_S8: return *(const int8_t *)element;
    case DTYPE_U2:
    case DTYPE_U4:
    case DTYPE_U8: return *(const uint8_t *)element;
    case DTYPE_S16: return load_s16(element);
    case DTYPE_U16: return load_u16(element);
    case DTYPE_S32: return load_s32(element);
    case DTYPE_U32: return load_u32(element);
    case DTYPE_S64:
    case DTYPE_U64:
    case DTYPE_STR: return load_s64(element);
    default: assert(!"an integer type"); return 0;
  }
}

void dtype_store_i64(dtype t, void *element, int64_t value) {
  const dtype_info *info = dtype_get_info(t);
  uint64_t bits = (uint64_t)value;
  switch (info->kind) {
    case DTYPE_CLASS_BOOL: bits = value != 0; break;
    case DTYPE_CLASS_SIGNED:
    case DTYPE_CLASS_UNSIGNED:
      if (info->bits < 8) {
        uint64_t sign = (uint64_t)1 << (info->bits - 1), mask = 2 * sign - 1;
        bits = info->kind == DTYPE_CLASS_SIGNED ? ((bits & mask) ^ sign) - sign : bits & mask;
      }
      break;
    case DTYPE_CLASS_STRING: break;
    default: assert(!"an integer type"); return;
  }
  memcpy(element, &bits, info->bytes); /* little-endian, like all stored data */
}

double dtype_load_f64(dtype t, const void *element) {
  switch (t) {
    case DTYPE_F32:
    case DTYPE_C64: return (double)load_f32(element);
    case DTYPE_F64:
    case DTYPE_C128: return load_f64(element);
    case DTYPE_F16:
    case DTYPE_BF16: return small_decode(&formats[t], load_u16(element));
    case DTYPE_U64: return (double)(uint64_t)load_s64(element);
    case DTYPE_F8E8M0FNU: return e8m0_decode(*(const uint8_t *)element);
    case DTYPE_STR:
    case DTYPE_INVALID:
    case DTYPE_COUNT: assert(!"a number"); return 0;
    default:
      return formats[t].width ? small_decode(&formats[t], *(const uint8_t *)element)
                              : (double)dtype_load_i64(t, element);
  }
}

/* Truncates and clamps a number.  The limits are powers of two (or one less), so that the comparisons are exact. */
static int64_t f64_to_int(const dtype_info *info, double value) {
  if (isnan(value)) {
    return 0;
  }
  if (info->kind == DTYPE_CLASS_UNSIGNED) {
    if (value >= power_of_two(info->bits)) {
      return (int64_t)(UINT64_MAX >> (64 - info->bits));
    }
    return value <= 0 ? 0 : (int64_t)(uint64_t)value;
  }
  double limit = power_of_two(info->bits - 1);
  int64_t least = INT64_MIN >> (64 - info->bits);
  return value >= limit ? -(least + 1) : value <= -limit ? least : (int64_t)value;
}

void dtype_store_f64(dtype t, void *element, double value, bool saturate, dtype_round round) {
  const dtype_info *info = dtype_get_info(t);
  if (info->kind == DTYPE_CLASS_BOOL) {
    *(uint8_t *)element = value != 0;
  } else if (dtype_is_int(t)) {
    dtype_store_i64(t, element, f64_to_int(info, value));
  } else if (t == DTYPE_F64 || t == DTYPE_C128) {
    memset(element, 0, info->bytes);
    memcpy(element, &value, sizeof value);
  } else if (t == DTYPE_F32 || t == DTYPE_C64) {
    float narrow = (float)value;
    memset(element, 0, info->bytes);
    memcpy(element, &narrow, sizeof narrow);
  } else if (t == DTYPE_F8E8M0FNU) {
    *(uint8_t *)element = e8m0_encode(value, saturate, round);
  } else {
    assert(info->kind == DTYPE_CLASS_FLOAT);
    uint16_t bits = small_encode(&formats[t], value, saturate);
    memcpy(element, &bits, info->bytes);
  }
}

double dtype_max_f64(dtype t) {
  const dtype_info *info = dtype_get_info(t);
  switch (info->kind) {
    case DTYPE_CLASS_BOOL: return 1;
    case DTYPE_CLASS_UNSIGNED: return (double)(UINT64_MAX >> (64 - info->bits));
    case DTYPE_CLASS_SIGNED: return (double)(INT64_MAX >> (64 - info->bits));
    case DTYPE_CLASS_FLOAT:
    case DTYPE_CLASS_COMPLEX:
      if (formats[t].width) {
        return small_decode(&formats[t], formats[t].max);
      }
      return t == DTYPE_F8E8M0FNU               ? 0x1p127
             : t == DTYPE_F32 || t == DTYPE_C64 ? 0x1.fffffep127
                                                : 0x1.fffffffffffffp1023;
    default: return 0;
  }
}

double dtype_lowest_f64(dtype t) {
  const dtype_info *info = dtype_get_info(t);
  switch (info->kind) {
    case DTYPE_CLASS_SIGNED: return -power_of_two(info->bits - 1);
    case DTYPE_CLASS_FLOAT:
    case DTYPE_CLASS_COMPLEX: return t == DTYPE_F8E8M0FNU ? 0x1p-127 : -dtype_max_f64(t);
    default: return 0;
  }
}

/* --- arrays --- */

/* Converts an integer to a double.  Rounding that double to a type narrower than f64 gives the same result as rounding
 * the integer itself.  An integer of more than 53 bits may not fit into a double, so its low 11 bits are cleared; if
 * one of them was set, the bit above them is set (rounding to odd). */
static double int_for_rounding(uint64_t magnitude, bool negative) {
  if (magnitude >> 53) {
    magnitude = (magnitude & ~(uint64_t)0x7ff) | (magnitude & 0x7ff ? 0x800 : 0);
  }
  double value = (double)magnitude;
  return negative ? -value : value;
}

static double load_for_rounding(dtype from, dtype to, const void *element) {
  if ((from != DTYPE_S64 && from != DTYPE_U64) || to == DTYPE_F64 || to == DTYPE_C128) {
    return dtype_load_f64(from, element);
  }
  int64_t value = load_s64(element);
  bool negative = from == DTYPE_S64 && value < 0;
  return int_for_rounding(negative ? -(uint64_t)value : (uint64_t)value, negative);
}

static void convert_complex(dtype from, const void *src, dtype to, void *dst) {
  size_t from_part = dtype_bytes(from) / 2, to_part = dtype_bytes(to) / 2;
  double imaginary = dtype_load_f64(from, (const char *)src + from_part);
  if (to == DTYPE_PRED) {
    *(uint8_t *)dst = dtype_load_f64(from, src) != 0 || imaginary != 0;
    return;
  }
  dtype_store_f64(to, dst, dtype_load_f64(from, src), true, DTYPE_ROUND_NEAREST);
  dtype_store_f64(to == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64, (char *)dst + to_part, imaginary, true, DTYPE_ROUND_NEAREST);
}

static void convert_one(dtype from, const void *src, dtype to, void *dst, bool saturate, dtype_round round) {
  bool from_int = dtype_is_int(from) || from == DTYPE_PRED;
  if (dtype_is_complex(from) && (dtype_is_complex(to) || to == DTYPE_PRED)) {
    convert_complex(from, src, to, dst);
  } else if (from_int && (dtype_is_int(to) || to == DTYPE_PRED)) {
    dtype_store_i64(to, dst, dtype_load_i64(from, src));
  } else {
    dtype_store_f64(to, dst, load_for_rounding(from, to, src), saturate, round);
  }
}

/* The conversions that models use most: FAST(type, its C type, new type, its C type, the new value of x). */
#define FAST_PAIRS(FAST)                                 \
  FAST(F32, float, F16, uint16_t, f32_to_f16(x))         \
  FAST(F16, uint16_t, F32, float, f16_to_f32(x))         \
  FAST(F32, float, BF16, uint16_t, f32_to_bf16(x))       \
  FAST(BF16, uint16_t, F32, float, bf16_to_f32(x))       \
  FAST(F32, float, F64, double, (double)x)               \
  FAST(F64, double, F32, float, (float)x)                \
  FAST(S64, int64_t, S32, int32_t, (int32_t)(uint32_t)x) \
  FAST(S32, int32_t, S64, int64_t, x)                    \
  FAST(S64, int64_t, F32, float, (float)x)               \
  FAST(S32, int32_t, F32, float, (float)x)               \
  FAST(U8, uint8_t, F32, float, (float)x)                \
  FAST(S8, int8_t, F32, float, (float)x)                 \
  FAST(U8, uint8_t, S32, int32_t, x)                     \
  FAST(S8, int8_t, S32, int32_t, x)                      \
  FAST(PRED, uint8_t, F32, float, x ? 1.0f : 0.0f)       \
  FAST(PRED, uint8_t, S32, int32_t, x != 0)              \
  FAST(PRED, uint8_t, S64, int64_t, x != 0)              \
  FAST(F32, float, PRED, uint8_t, x != 0)                \
  FAST(S32, int32_t, PRED, uint8_t, x != 0)              \
  FAST(S64, int64_t, PRED, uint8_t, x != 0)

/* Uses memcpy, which costs nothing, since elements in a mapped file may be unaligned. */
#define FAST_LOOP(from, from_c, to, to_c, value)                            \
  static void convert_##from##_##to(const char *src, char *dst, size_t n) { \
    for (size_t i = 0; i < n; i++) {                                        \
      from_c x;                                                             \
      memcpy(&x, src + i * sizeof x, sizeof x);                             \
      to_c y = (to_c)(value);                                               \
      memcpy(dst + i * sizeof y, &y, sizeof y);                             \
    }                                                                       \
  }
FAST_PAIRS(FAST_LOOP)

typedef void convert_loop(const char *src, char *dst, size_t n);

static convert_loop *fast_loop(dtype from, dtype to) {
#define FAST_ROW(f, from_c, t, to_c, value) [DTYPE_##f][DTYPE_##t] = convert_##f##_##t,
  static convert_loop *const loops[DTYPE_COUNT][DTYPE_COUNT] = {FAST_PAIRS(FAST_ROW)};
  return loops[from][to];
}

void dtype_convert(dtype from, const void *src, dtype to, void *dst, size_t n, bool saturate, dtype_round round) {
  size_t from_bytes = dtype_bytes(from), to_bytes = dtype_bytes(to);
  if (n == 0) {
    return;
  }
  if (from == to) {
    memcpy(dst, src, n * from_bytes);
    return;
  }
  convert_loop *loop = fast_loop(from, to);
  if (loop) {
    loop(src, dst, n);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    convert_one(from, (const char *)src + i * from_bytes, to, (char *)dst + i * to_bytes, saturate, round);
  }
}
