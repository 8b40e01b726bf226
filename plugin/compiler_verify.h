/* compiler_verify.h - the compiler half's side of onnx-xla verify. */
#ifndef PLUGIN_COMPILER_VERIFY_H
#define PLUGIN_COMPILER_VERIFY_H

#include "plugin/compiler.h"

STATUS_MUST_USE status plug_verify(const plug_source *s, const plug_request *request,
                                   const plug_verify_options *o, arena *a, verify_report *out);

#endif
