/* activation.h - activation functions for importers of operators that compute one as their last step. */
#ifndef FRONTEND_OPS_MATH_ACTIVATION_H
#define FRONTEND_OPS_MATH_ACTIVATION_H

#include "frontend/import/importer.h"

/* Returns Gelu of x, a float array, in x's type: 0.5 x (1 + erf(x / sqrt 2)), or the approximation with tanh. */
hlo_value onnx_gelu(hlo_builder *b, hlo_value x, bool by_tanh);
/* Returns x * logistic(alpha * x), in x's type, which is a float. */
hlo_value onnx_swish(hlo_builder *b, hlo_value x, double alpha);
/* Sets *y to the activation function with the standard's name (Relu, Tanh, Sigmoid, LeakyRelu, HardSigmoid, HardSwish,
 * Elu, Softplus and others) of x, a float array, in x's type.  p[] has the values of the operator's attributes, in the
 * order of its row in activation.c.  Returns false if there is no such function. */
bool onnx_activation(hlo_builder *b, const char *name, hlo_value x, const double p[2], hlo_value *y);

#endif
