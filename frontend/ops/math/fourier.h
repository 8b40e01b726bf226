/* fourier.h - the discrete Fourier transform of any length. */
#ifndef FRONTEND_OPS_MATH_FOURIER_H
#define FRONTEND_OPS_MATH_FOURIER_H

#include "frontend/import/import_common.h"

/* The largest number of points.  The constants of a transform grow with it; here they take about a gigabyte. */
enum { ONNX_FOURIER_MAX = 1 << 26 };

typedef struct onnx_fourier {
  int64_t n; /* the number of points, at most ONNX_FOURIER_MAX */
  bool inverse;
  bool one_sided; /* a forward transform returns, and an inverse one reads, only the first n / 2 + 1 bins; the result of
                     the inverse is real */
} onnx_fourier;

/* Transforms x along `axis`.  The last dimension of x holds the parts of each number and has the extent 1 (real) or 2
 * (complex).  Elements along the axis that the transform does not read are cut off, and missing ones are 0.  The result
 * has x's type. */
hlo_value onnx_fourier_transform(const onnx_node *n, const onnx_fourier *f, hlo_value x, int64_t axis);

#endif
