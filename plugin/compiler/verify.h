/* verify.h - verifies a model for the command `onnx-xla verify`; see compiler_api.verify. */
#ifndef PLUGIN_COMPILER_VERIFY_H
#define PLUGIN_COMPILER_VERIFY_H

#include "plugin/compiler/compiler.h"

STATUS_MUST_USE status compiler_verify(const compiler_model *s, const compile_request *request,
                                       const compiler_verify_options *o, arena *a, verify_report *out);

#endif
