/* internal.h - what the files behind compiler_api share: the model that was opened, and the functions of the table
 * whose contracts compiler.h states. */
#ifndef PLUGIN_COMPILER_INTERNAL_H
#define PLUGIN_COMPILER_INTERNAL_H

#include "frontend/model/model.h"
#include "hlo/ir/ir.h"
#include "plugin/compiler/compiler.h"
#include "plugin/compiler/text.h"

/* What stands behind compiler_model.model. */
typedef struct loaded {
  const onnx_model *onnx; /* or: */
  uint32_t n_constants;   /* beside what its file holds */
  const compiler_constant *constants;
  arena *arena; /* on which its files are mapped */
  const hlo_module *hlo;
} loaded;

STATUS_MUST_USE status compiler_open(arena *a, const char *path, const void *bytes, size_t size, uint32_t n_constants,
                                     const compiler_constant *constants, compiler_model **out);
STATUS_MUST_USE status compiler_open_hlo(arena *a, const char *name, const char *text, size_t size,
                                         compiler_model **out);
STATUS_MUST_USE status compiler_compile(const compiler_model *s, const compile_request *request, arena *a,
                                        rt_program **out, rt_report *report);
STATUS_MUST_USE status segmented_model_of(const compiler_model *s, const compile_request *request, mem_budget *budget,
                                          segmented_model **out);
STATUS_MUST_USE status model_bytes(const compiler_model *s, rt_span *out);
STATUS_MUST_USE status compiler_list_ops(const compiler_model *s, arena *a, operator_use **out, uint32_t *n);
STATUS_MUST_USE status compiler_check(const compiler_model *s, const compile_request *request, mem_budget *budget);

#endif
