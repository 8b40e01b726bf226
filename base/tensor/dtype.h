/* dtype.h - element types and the conversions between them.  The table is dtypes.def. */
#ifndef BASE_TENSOR_DTYPE_H
#define BASE_TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum dtype {
  DTYPE_INVALID = 0,
#define DTYPE(id, text, bytes, bits, onnx, kind) DTYPE_##id,
#include "base/tensor/dtypes.def"
#undef DTYPE
  DTYPE_COUNT
} dtype;

typedef enum dtype_class {
  DTYPE_CLASS_NONE,
  DTYPE_CLASS_BOOL,
  DTYPE_CLASS_SIGNED,
  DTYPE_CLASS_UNSIGNED,
  DTYPE_CLASS_FLOAT,
  DTYPE_CLASS_COMPLEX,
  DTYPE_CLASS_STRING
} dtype_class;

typedef struct dtype_info {
  const char *name;
  uint8_t bytes; /* one element in memory */
  uint8_t bits;  /* one element packed */
  uint8_t onnx;  /* TensorProto.DataType */
  dtype_class kind;
} dtype_info;

/* DTYPE_INVALID gives {"invalid", 0, 0, 0, NONE}. */
const dtype_info *dtype_get_info(dtype t);
static inline size_t dtype_bytes(dtype t) { return dtype_get_info(t)->bytes; }
static inline const char *dtype_name(dtype t) { return dtype_get_info(t)->name; }
/* DTYPE_INVALID when there is none. */
dtype dtype_from_name(const char *name, size_t length);
dtype dtype_from_onnx(int32_t number);

static inline bool dtype_is_float(dtype t) { return dtype_get_info(t)->kind == DTYPE_CLASS_FLOAT; }
static inline bool dtype_is_complex(dtype t) { return dtype_get_info(t)->kind == DTYPE_CLASS_COMPLEX; }
static inline bool dtype_is_signed(dtype t) { return dtype_get_info(t)->kind == DTYPE_CLASS_SIGNED; }
static inline bool dtype_is_unsigned(dtype t) { return dtype_get_info(t)->kind == DTYPE_CLASS_UNSIGNED; }
/* Signed or unsigned, not pred. */
static inline bool dtype_is_int(dtype t) { return dtype_is_signed(t) || dtype_is_unsigned(t); }
/* Whether the same bits as the other type (of as many) are the same bytes in memory: not where one of them extends the
 * sign of less than 8 bits and the other does not. */
static inline bool dtype_same_memory(dtype a, dtype b) {
  return dtype_get_info(a)->bits >= 8 || dtype_is_signed(a) == dtype_is_signed(b);
}
/* The type arithmetic is done in: f32 for the smaller floats, the type itself otherwise. */
dtype dtype_compute_type(dtype t);

/* The bits of a float narrower than f32: sign, exponent, fraction.  All but the sign is a magnitude; those up to `max`
 * are finite and grow with the value, and exponent 0 means no leading one. */
typedef struct dtype_format {
  uint8_t width;      /* of all, in bits */
  uint8_t fraction;   /* in bits */
  uint8_t bias;       /* of the exponent */
  bool negative_zero; /* there is one; otherwise its bits are the only NaN */
  uint16_t max;       /* the largest finite value */
  uint16_t inf;       /* what a positive overflow gives: the infinity, else the NaN, else max */
  uint16_t nan;       /* what a positive NaN gives; a negative one flips the sign bit, where there is a -0 */
} dtype_format;

/* NULL for f32, f64, f8e8m0fnu (2^(bits-127), 255 is NaN) and what is no float. */
const dtype_format *dtype_get_format(dtype t);

/* How a number that does not fit is converted.  Rounding to a float type is to nearest even except where
 * stated; float to integer truncates. */
typedef enum dtype_round { DTYPE_ROUND_NEAREST, DTYPE_ROUND_UP, DTYPE_ROUND_DOWN } dtype_round;

/* One element as a number.  Integers wider than 53 bits want the integer pair.  Of a complex element:
 * the real part.  Strings: never. */
double dtype_load_f64(dtype t, const void *element);
/* Stores the nearest value.  To an integer: truncated towards zero and clamped to the type's range (NaN: 0).
 * To a float of 4, 6 or 8 bits: `saturate` clamps to the largest finite value, otherwise overflow is the type's
 * infinity or NaN; types that have neither always clamp.  A NaN loses its payload.  `round` is for f8e8m0fnu only:
 * to a power of two, the sign ignored; 0 is the smallest value with `saturate`, else NaN.  To a float4 or float6, NaN
 * is 0. */
void dtype_store_f64(dtype t, void *element, double value, bool saturate, dtype_round round);

/* The integer and pred types, and a string's id; u64 travels as its bits.  Storing wraps modulo 2^bits (pred: value !=
 * 0). */
int64_t dtype_load_i64(dtype t, const void *element);
void dtype_store_i64(dtype t, void *element, int64_t value);

/* Element conversion as HLO's `convert` defines it, n elements; src and dst do not overlap.
 * int -> int wraps; int -> float rounds to nearest even; float -> int truncates and clamps (NaN 0);
 * anything -> pred is != 0; complex -> real takes the real part.  Strings convert to strings only. */
void dtype_convert(dtype from, const void *src, dtype to, void *dst, size_t n, bool saturate, dtype_round round);

/* The 16-bit floats, by integer arithmetic, round to nearest even. */
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);
static inline float bf16_to_f32(uint16_t bits) {
  union {
    uint32_t u;
    float f;
  } x = {(uint32_t)bits << 16};
  return x.f;
}
uint16_t f32_to_bf16(float value);

/* Limits of a type as f64 (floats: largest finite; ints as rounded to f64). */
double dtype_max_f64(dtype t);
double dtype_lowest_f64(dtype t);

#endif
