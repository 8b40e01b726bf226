/* unary.c - operators of one operand that are one HLO operation; also Erf, Identity, Reciprocal,
 * IsNaN and IsInf. */
#include <string.h>

#include "frontend/import/import_common.h"

static const struct unary {
  const char *name;
  hlo_op op;
} unary_ops[] = {
    {"Abs", HLO_ABS},   {"Acos", HLO_ACOS},   {"Acosh", HLO_ACOSH},      {"Asin", HLO_ASIN}, {"Asinh", HLO_ASINH},
    {"Atan", HLO_ATAN}, {"Atanh", HLO_ATANH}, {"BitwiseNot", HLO_NOT},   {"Ceil", HLO_CEIL}, {"Cos", HLO_COS},
    {"Cosh", HLO_COSH}, {"Exp", HLO_EXP},     {"Floor", HLO_FLOOR},      {"Log", HLO_LOG},   {"Neg", HLO_NEG},
    {"Not", HLO_NOT},   {"Round", HLO_ROUND}, {"Sigmoid", HLO_LOGISTIC}, {"Sign", HLO_SIGN}, {"Sin", HLO_SIN},
    {"Sinh", HLO_SINH}, {"Sqrt", HLO_SQRT},   {"Tan", HLO_TAN},          {"Tanh", HLO_TANH},
};

status onnx_import_unary(onnx_node *n) {
  for (size_t k = 0; k < sizeof unary_ops / sizeof *unary_ops; k++) {
    if (strcmp(unary_ops[k].name, n->proto->op_type) == 0) {
      n->out[0] = hlo_unary(n->b, unary_ops[k].op, n->in[0]);
      return NULL;
    }
  }
  return status_error(STATUS_INTERNAL, "%s has no row in unary_ops", n->proto->op_type);
}

/* For integers, Erf is computed in f32 and truncated, as the evaluator in the onnx package does. */
status onnx_import_erf(onnx_node *n) {
  dtype type = (dtype)hlo_shape(n->in[0])->type;
  hlo_value x = dtype_is_float(type) ? n->in[0] : hlo_convert(n->b, n->in[0], DTYPE_F32);
  n->out[0] = hlo_convert(n->b, hlo_unary(n->b, HLO_ERF, x), type);
  return NULL;
}

status onnx_import_identity(onnx_node *n) {
  n->out[0] = n->in[0];
  return NULL;
}

status onnx_import_reciprocal(onnx_node *n) {
  n->out[0] = hlo_binary(n->b, HLO_DIV, hlo_like(n->b, n->in[0], 1), n->in[0]);
  return NULL;
}

status onnx_import_is_nan(onnx_node *n) {
  n->out[0] = hlo_compare(n->b, HLO_NE, n->in[0], n->in[0]);
  return NULL;
}

/* IsInf is computed by HLO's is-finite instead of a comparison with infinity, since some 8-bit floats have no infinity.
 */
status onnx_import_is_inf(onnx_node *n) {
  bool negative, positive;
  TRY(onnx_attr_bool(n->proto, "detect_negative", true, &negative));
  TRY(onnx_attr_bool(n->proto, "detect_positive", true, &positive));
  hlo_builder *b = n->b;
  hlo_value x = n->in[0];
  hlo_value infinite = hlo_unary(b, HLO_NOT, hlo_unary(b, HLO_IS_FINITE, x));
  if (negative && positive) {
    n->out[0] = hlo_binary(b, HLO_AND, infinite, hlo_compare(b, HLO_EQ, x, x));
  } else if (negative || positive) {
    n->out[0] = hlo_binary(b, HLO_AND, infinite, onnx_compare_scalar(b, positive ? HLO_GT : HLO_LT, x, 0));
  } else {
    n->out[0] = hlo_like(b, infinite, 0);
  }
  return NULL;
}
