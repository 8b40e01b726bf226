/* text.h - the compiler half's printing functions; see compiler_api for their contracts. */
#ifndef PLUGIN_COMPILER_TEXT_H
#define PLUGIN_COMPILER_TEXT_H

#include "hlo/ir/ir.h"
#include "plugin/compiler/compiler.h"

/* A fresh module of the source, specialised as the request says; values[n_inputs] (may be NULL) gets what it takes for
 * granted of its inputs' contents.  *complete false: it is the first segment only.  In import.c. */
STATUS_MUST_USE status compiler_import(const compiler_model *s, const compile_request *r, arena *a, hlo_module **out,
                                       const void **values, bool *complete);

/* The same model with other outputs (frontend/import/part.h), to be imported only; its model file, NULL where it is
 * HLO.  In import.c. */
compiler_model *compiler_with_outputs(const compiler_model *s, arena *a, uint32_t n, const char *const *names);
const struct onnx_model *compiler_onnx_model(const compiler_model *s);

/* The label that the operations of a node have, which goes by its name or an output.  In check.c. */
STATUS_MUST_USE status compiler_find_node(const compiler_model *s, const char *node, arena *a, const char **label);

STATUS_MUST_USE status compiler_print(const compiler_model *s, const compile_request *request, const char *after,
                                      bool no_constants, arena *a, const char **text);
STATUS_MUST_USE status compiler_print_ptx(const compiler_model *s, const compile_request *request, arena *a,
                                          const char **text);
STATUS_MUST_USE status compiler_explain(const compiler_model *s, const compile_request *request, const char *node,
                                        arena *a, const char **text);
STATUS_MUST_USE status compiler_opt(arena *a, const char *name, const char *text, size_t size, const char *passes,
                                    const char **out);
const char *compiler_pass_list(arena *a);
const char *compiler_versions(void);

#endif
