/* part.h - the ONNX nodes that a finding of onnx-xla verify is about, as a model in a file. */
#ifndef PLUGIN_COMPILER_PART_H
#define PLUGIN_COMPILER_PART_H

#include "plugin/compiler/compiler.h"

/* Writes the model of each finding to o->folder, its inputs beside it, which are what the reference evaluator
 * computes there, and verifies it.  model_note says how that went, or why there is none; neither is a
 * failure.  Call it inside guard_run. */
void compiler_write_parts(const compiler_model *s, const compile_request *request, const compiler_verify_options *o,
                          arena *a, verify_report *report);

#endif
