/* verify.c - the option `verify`: compares results with those of the reference backend. */
#include <math.h>
#include <string.h>

#include "plugin/onnxruntime/internal.h"

/* The least tolerance for differences, relative to the largest number of an output.  Differences are normal, since the
 * reference backend adds in f64 and others in f32. */
static const double least_tolerance = 1e-3;

/* A floating-point type: the bytes of a number, and the distance from 1 to the next larger number. */
typedef struct reading {
  oxla_type type;
  size_t bytes;
  double last_bit;
} reading;

static const reading readings[] = {
    {OXLA_FLOAT, 4, 0x1p-23}, {OXLA_DOUBLE, 8, 0x1p-52}, {OXLA_FLOAT16, 2, 0x1p-10}, {OXLA_BFLOAT16, 2, 0x1p-7}};

static double half(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                : exponent     ? ldexp(1024 + fraction, exponent - 25)
                               : ldexp(fraction, -24);
  return bits >> 15 ? -size : size;
}

static double number(const reading *r, const void *data, size_t k) {
  const char *at = (const char *)data + k * r->bytes;
  uint16_t bits;
  uint32_t wide;
  float f;
  double d;
  switch (r->type) {
    case OXLA_FLOAT: memcpy(&f, at, sizeof f); return (double)f;
    case OXLA_DOUBLE: memcpy(&d, at, sizeof d); return d;
    case OXLA_FLOAT16: memcpy(&bits, at, sizeof bits); return half(bits);
    default: /* bf16 is the upper half of a float */
      memcpy(&bits, at, sizeof bits);
      wide = (uint32_t)bits << 16;
      memcpy(&f, &wide, sizeof f);
      return (double)f;
  }
}

/* Sets *worst to the largest difference of corresponding numbers, and *most to the largest absolute value in `want`.
 * The difference is infinite if one number is NaN or infinite and the other is not the same. */
static void measure(const reading *r, const oxla_tensor *got, const oxla_tensor *want, double *worst, double *most) {
  *worst = *most = 0;
  for (size_t k = 0; k < got->bytes / r->bytes; k++) {
    double x = number(r, got->data, k), y = number(r, want->data, k);
    if (isfinite(x) && isfinite(y)) {
      *worst = fmax(*worst, fabs(x - y));
      *most = fmax(*most, fabs(y));
    } else if (x != y && !(isnan(x) && isnan(y))) {
      *worst = INFINITY;
    }
  }
}

OrtStatus *ort_compare(const ort_provider *p, const char *name, const oxla_tensor *got, const oxla_tensor *want) {
  if (got->bytes != want->bytes || got->type != want->type) {
    return ort_fail(p, "onnx-xla: verify: '%s' has %zu bytes; the reference has %zu", name, got->bytes, want->bytes);
  }
  for (size_t k = 0; k < sizeof readings / sizeof *readings; k++) {
    const reading *r = &readings[k];
    double worst, most;
    if (r->type == got->type) {
      measure(r, got, want, &worst, &most);
      return worst <= fmax(least_tolerance, 8 * r->last_bit) * most
                 ? NULL
                 : ort_fail(p, "onnx-xla: verify: '%s' is off by %g where the largest is %g", name, worst, most);
    }
  }
  return got->bytes == 0 || memcmp(got->data, want->data, got->bytes) == 0
             ? NULL
             : ort_fail(p, "onnx-xla: verify: '%s' is not what the reference has", name);
}
