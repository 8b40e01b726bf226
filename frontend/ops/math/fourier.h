/* fourier.h - the discrete Fourier transform of any length. */
#ifndef FRONTEND_OPS_MATH_FOURIER_H
#define FRONTEND_OPS_MATH_FOURIER_H

#include "frontend/import/import_common.h"

enum {
  /* The largest number of points of a transform.  The constants that a transform needs grow with the number of points;
   * at this limit they take up to some gigabytes. */
  ONNX_FOURIER_MAX = 1 << 26,
  /* The largest symbolic number of points.  Each run then computes the matrix of the transform, which takes 0.3 ms at
   * this limit, and 20 ms, as compiling a program for that number does, for 1024 points. */
  ONNX_FOURIER_OPEN_MAX = 256
};

typedef struct onnx_fourier {
  dim n; /* the number of points: a constant of at most ONNX_FOURIER_MAX, or symbolic and at most
            ONNX_FOURIER_OPEN_MAX */
  bool inverse;
  bool one_sided; /* whether a forward transform returns, and an inverse one reads, only the first n / 2 + 1 bins; the
                     result of such an inverse transform is real */
} onnx_fourier;

/* Transforms x along `axis`.  All dimensions of x but the last one may be symbolic.  The last dimension of x holds the
 * real and imaginary part of each number (extent 2), or has extent 1 if the numbers are real.  If x has more elements
 * along the axis than the transform reads, the rest are ignored; if it has fewer, the missing ones are 0.  The result
 * has x's type. */
hlo_value onnx_fourier_transform(const onnx_node *n, const onnx_fourier *f, hlo_value x, int64_t axis);

#endif
