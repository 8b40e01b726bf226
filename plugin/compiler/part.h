/* part.h - writes the ONNX nodes in which `onnx-xla verify` found a difference as a model of their own. */
#ifndef PLUGIN_COMPILER_PART_H
#define PLUGIN_COMPILER_PART_H

#include "plugin/compiler/compiler.h"

/* For each finding of the report, writes a new model of the finding's nodes to o->folder, and verifies it.  Its inputs
 * are values that the reference evaluator computes from the inputs of the whole model; they are written to files beside
 * the new model.  The finding's model_note says whether the new model shows the difference, or why none was written.
 * Does nothing if o->folder is NULL or the model is HLO text.  Must be called inside guard_run. */
void compiler_write_parts(const compiler_model *s, const compile_request *request, const compiler_verify_options *o,
                          arena *a, verify_report *report);

#endif
