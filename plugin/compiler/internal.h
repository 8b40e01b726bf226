/* internal.h - what the files behind compiler_api share: the model that was opened, and the functions of the table
 * whose contracts compiler.h states. */
#ifndef PLUGIN_COMPILER_INTERNAL_H
#define PLUGIN_COMPILER_INTERNAL_H

#include "frontend/model/model.h"
#include "hlo/ir/ir.h"
#include "plugin/compiler/compiler.h"

/* What stands behind compiler_model.model. */
typedef struct opened_model {
  const onnx_model *onnx; /* or: */
  uint32_t n_constants;   /* beside what its file holds */
  const compiler_constant *constants;
  arena *arena; /* on which its files are mapped */
  const hlo_module *hlo;
} opened_model;

/* Imports the model, or copies the HLO, as a new module for the shapes and values of the request.  values[n_inputs]
 * (may be NULL) gets what the module takes for granted of the contents of its inputs.  *complete is false if the module
 * is the first segment only.  In import.c. */
STATUS_MUST_USE status compiler_import(const compiler_model *s, const compile_request *r, arena *a, hlo_module **out,
                                       const void **values, bool *complete);

/* Returns the same model with other outputs (frontend/import/part.h), which may be imported and no more.  In import.c.
 */
compiler_model *compiler_with_outputs(const compiler_model *s, arena *a, uint32_t n, const char *const *names);
/* Returns the model's file, or NULL where it is HLO.  In import.c. */
const onnx_model *compiler_onnx_model(const compiler_model *s);

/* Finds a node by its name, its label or an output, and gives the label that its operations have.  In check.c. */
STATUS_MUST_USE status compiler_find_node(const compiler_model *s, const char *node, arena *a, const char **label);

/* --- the functions of the table --- */

STATUS_MUST_USE status compiler_open(arena *a, const char *path, const void *bytes, size_t size, uint32_t n_constants,
                                     const compiler_constant *constants, compiler_model **out);
STATUS_MUST_USE status compiler_open_hlo(arena *a, const char *name, const char *text, size_t size,
                                         compiler_model **out);
STATUS_MUST_USE status compiler_compile(const compiler_model *s, const compile_request *request, arena *a,
                                        rt_program **out, rt_report *report);
STATUS_MUST_USE status compiler_segments_create(const compiler_model *s, const compile_request *request,
                                                mem_budget *budget, segmented_model **out);
STATUS_MUST_USE status compiler_model_bytes(const compiler_model *s, rt_span *out);
STATUS_MUST_USE status compiler_list_ops(const compiler_model *s, arena *a, operator_use **out, uint32_t *n);
STATUS_MUST_USE status compiler_check(const compiler_model *s, const compile_request *request, mem_budget *budget);

#endif
