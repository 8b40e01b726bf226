/* support.h - see compiler_api.check_support. */
#ifndef PLUGIN_COMPILER_SUPPORT_H
#define PLUGIN_COMPILER_SUPPORT_H

#include "plugin/compiler/compiler.h"

STATUS_MUST_USE status compiler_check_support(arena *a, const char *path, rt_span bytes, const compile_request *request,
                                              support_report *out);
/* Converts the result of onnx_list_ops, an array of n onnx_op_usage, to operator_use of compiler_api. */
operator_use *operator_uses(arena *a, const void *onnx_usage, uint32_t n);

#endif
