/* dtype.h - element types and the conversions between them.  dtypes.def is the table of the types. */
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
  uint8_t bytes; /* bytes of one element in memory */
  uint8_t bits;  /* bits of one element if elements are packed in a file */
  uint8_t onnx;  /* the number of the type in TensorProto.DataType */
  dtype_class kind;
} dtype_info;

/* For DTYPE_INVALID this returns {"invalid", 0, 0, 0, NONE}. */
const dtype_info *dtype_get_info(dtype t);
static inline size_t dtype_bytes(dtype t) { return dtype_get_info(t)->bytes; }
static inline const char *dtype_name(dtype t) { return dtype_get_info(t)->name; }
/* Returns DTYPE_INVALID if there is no such type. */
dtype dtype_from_name(const char *name, size_t length);
dtype dtype_from_onnx(int32_t number);

static inline bool dtype_is_float(dtype t) { return dtype_get_info(t)->kind == DTYPE_CLASS_FLOAT; }
static inline bool dtype_is_complex(dtype t) { return dtype_get_info(t)->kind == DTYPE_CLASS_COMPLEX; }
static inline bool dtype_is_signed(dtype t) { return dtype_get_info(t)->kind == DTYPE_CLASS_SIGNED; }
static inline bool dtype_is_unsigned(dtype t) { return dtype_get_info(t)->kind == DTYPE_CLASS_UNSIGNED; }
/* Returns the alignment of an element in bytes.  A complex number has that of its parts. */
static inline size_t dtype_align(dtype t) { return dtype_bytes(t) / (dtype_is_complex(t) ? 2 : 1); }
/* Returns true for signed and unsigned integers, but not for pred. */
static inline bool dtype_is_int(dtype t) { return dtype_is_signed(t) || dtype_is_unsigned(t); }
/* Returns true if two types with the same number of bits store equal bits as equal bytes in memory.  They do not if a
 * type has fewer than 8 bits and only one of the two is sign-extended to a byte. */
static inline bool dtype_same_memory(dtype a, dtype b) {
  return dtype_get_info(a)->bits >= 8 || dtype_is_signed(a) == dtype_is_signed(b);
}
/* Returns the type in which arithmetic is done: f32 for the smaller floats, otherwise the type itself. */
dtype dtype_compute_type(dtype t);

/* The bits of a float that is narrower than f32: sign, exponent, fraction.  All bits except the sign form the
 * magnitude.  Magnitudes up to `max` are finite; a larger magnitude is a larger value.  An exponent field of 0 means
 * that the significand has no leading one. */
typedef struct dtype_format {
  uint8_t width;      /* number of bits in all */
  uint8_t fraction;   /* number of bits of the fraction */
  uint8_t bias;       /* bias of the exponent */
  bool negative_zero; /* whether there is a -0; if not, the bits of -0 are the only NaN */
  uint16_t max;       /* the bits of the largest finite value */
  uint16_t inf; /* the result of a positive overflow: infinity, or NaN if the type has no infinity, or `max` if it has
                   neither */
  uint16_t nan; /* the bits of a positive NaN; a negative NaN also has the sign bit if the type has a -0; the bits of -0
                   for types of 4 and 6 bits, which have no NaN */
} dtype_format;

/* Returns NULL for f32, f64, f8e8m0fnu (whose value is 2^(bits-127), with NaN at 255) and types that are not floats. */
const dtype_format *dtype_get_format(dtype t);

/* The rounding to the power-of-two type f8e8m0fnu.  Other conversions to a float type round to nearest even;
 * conversions of floats to integers truncate. */
typedef enum dtype_round { DTYPE_ROUND_NEAREST, DTYPE_ROUND_UP, DTYPE_ROUND_DOWN } dtype_round;

/* Returns an element as a double: for a complex type the real part.  Integers of more than 53 bits are rounded;
 * dtype_load_i64 gives them exactly.  Must not be called for strings. */
double dtype_load_f64(dtype t, const void *element);
/* Stores the nearest value of the type; for a complex type as the real part, with an imaginary part of 0.  For an
 * integer type, the value is truncated towards zero and clamped to the range of the type; NaN becomes 0.  A pred
 * becomes value != 0.  For a float of 4, 6 or 8 bits, `saturate` means that an overflow becomes the largest finite
 * value; otherwise it becomes the type's infinity or NaN; types that have neither always clamp.  Floats of 4 and 6 bits
 * have no NaN: it becomes a zero of the opposite sign.  The payload of a NaN is lost in types of 16 bits and fewer.
 *
 * `round` is used for f8e8m0fnu only: the value is rounded to a power of two, its sign is ignored, and 0 becomes the
 * smallest value if `saturate`, otherwise NaN. */
void dtype_store_f64(dtype t, void *element, double value, bool saturate, dtype_round round);

/* Load and store an integer, a pred, or the number that stands for a string.  A u64 is passed as its bits.  Storing
 * wraps modulo 2^bits; a pred becomes value != 0. */
int64_t dtype_load_i64(dtype t, const void *element);
void dtype_store_i64(dtype t, void *element, int64_t value);

/* Converts n elements as HLO's `convert` does.  src and dst must not overlap.  Integers to integers wrap; integers to
 * floats round to nearest even; floats to integers truncate and clamp, and NaN becomes 0; all types become pred by !=
 * 0; complex to real takes the real part.  Strings can be converted to strings only. */
void dtype_convert(dtype from, const void *src, dtype to, void *dst, size_t n, bool saturate, dtype_round round);

/* Conversions of the 16-bit floats.  Those from f32 round to nearest even. */
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

/* The limits of a type as f64: the largest finite float, or the integer limit rounded to f64. */
double dtype_max_f64(dtype t);
double dtype_lowest_f64(dtype t);

#endif
