/* norm.h - the statistics by which importers normalise arrays. */
#ifndef FRONTEND_OPS_MATH_NORM_H
#define FRONTEND_OPS_MATH_NORM_H

#include "frontend/import/importer.h"

/* The mean and the (population) variance have extent 1 in the reduced dimensions; `centered` is the array without its
 * mean. */
typedef struct onnx_moments {
  hlo_value mean, centered, variance;
} onnx_moments;

/* Returns the moments of x over the n dimensions `over`, in x's type. */
onnx_moments onnx_moments_over(hlo_builder *b, hlo_value x, uint32_t n, const int64_t *over);
/* Returns the mean of the squares of x over the n dimensions `over`, which stay in the result with extent 1. */
hlo_value onnx_mean_square(hlo_builder *b, hlo_value x, uint32_t n, const int64_t *over);
/* Returns 1 / sqrt(variance + epsilon). */
hlo_value onnx_inverse_deviation(hlo_builder *b, hlo_value variance, float epsilon);

#endif
