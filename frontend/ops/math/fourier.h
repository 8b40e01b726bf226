/* fourier.h - the discrete Fourier transform of any length. */
#ifndef FRONTEND_OPS_MATH_FOURIER_H
#define FRONTEND_OPS_MATH_FOURIER_H

#include "frontend/import/import_common.h"

/* Tables grow with the points: these are a gigabyte. */
enum { ONNX_FOURIER_MAX = 1 << 26 };

typedef struct onnx_fourier {
  int64_t n; /* points: at most ONNX_FOURIER_MAX */
  bool inverse;
  bool one_sided; /* n / 2 + 1 bins: given by a forward transform, taken by an inverse one, which gives real numbers */
} onnx_fourier;

/* Along `axis` of x, whose last dimension holds the parts of each number (1: real, 2: complex); elements beyond those
 * that the transform takes are cut off, missing ones are 0.  The result has x's type. */
hlo_value onnx_fourier_transform(const onnx_node *n, const onnx_fourier *f, hlo_value x, int64_t axis);

#endif
