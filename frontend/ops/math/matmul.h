/* matmul.h - what operators that contain a Gemm of integers share with the matrix products. */
#ifndef FRONTEND_OPS_MATH_MATMUL_H
#define FRONTEND_OPS_MATH_MATMUL_H

#include "frontend/import/import_helpers.h"

/* Which inputs of a node are the operands of a Gemm and their zero points, which may be missing, and which operands are
 * transposed. */
typedef struct onnx_gemm {
  uint32_t a, a_zero, b, b_zero;
  bool trans_a, trans_b;
} onnx_gemm;

/* Sets *out to the product in s32 of A and B, matrices of integers, each less its zero point.  The zero point of B is
 * one number, or one for each column of the product. */
STATUS_MUST_USE status onnx_integer_gemm(const onnx_node *n, const onnx_gemm *g, hlo_value *out);

#endif
