/* elimination.h - Gaussian elimination of matrices. */
#ifndef FRONTEND_OPS_MATH_ELIMINATION_H
#define FRONTEND_OPS_MATH_ELIMINATION_H

#include "frontend/import/importer.h"

/* Sets *out to the inverses of input 0, named X, an array of floats whose last two dimensions are equal.  The inverse
 * of a matrix that has none has elements that are infinite or NaN. */
STATUS_MUST_USE status onnx_inverse(const onnx_node *n, hlo_value *out);

#endif
