/* compiler_text.h - the compiler half's printing functions; see plug_compiler for their contracts. */
#ifndef PLUGIN_COMPILER_TEXT_H
#define PLUGIN_COMPILER_TEXT_H

#include "hlo/ir.h"
#include "plugin/compiler.h"

/* A fresh module of the source, specialised as the request says; values[n_inputs] (may be NULL) gets what it takes for
 * granted of its inputs' contents.  *complete false: it is the first piece only.  In compiler.c. */
STATUS_MUST_USE status plug_import(const plug_source *s, const plug_request *r, arena *a, hlo_module **out,
                                   const void **values, bool *complete);

/* The same model with other outputs (frontend/part.h), to be imported only; its model file, NULL where it is HLO.  In compiler.c. */
plug_source *plug_with_outputs(const plug_source *s, arena *a, uint32_t n, const char *const *names);
const struct onnx_model *plug_onnx_model(const plug_source *s);

/* The label that the operations of a node have, which goes by its name or an output.  In compiler.c. */
STATUS_MUST_USE status plug_find_node(const plug_source *s, const char *node, arena *a, const char **label);

STATUS_MUST_USE status plug_print(const plug_source *s, const plug_request *request, const char *after, bool no_constants,
                                  arena *a, const char **text);
STATUS_MUST_USE status plug_print_ptx(const plug_source *s, const plug_request *request, arena *a, const char **text);
STATUS_MUST_USE status plug_explain(const plug_source *s, const plug_request *request, const char *node, arena *a,
                                    const char **text);
STATUS_MUST_USE status plug_opt(arena *a, const char *name, const char *text, size_t size, const char *passes,
                                const char **out);
const char *plug_pass_list(arena *a);
const char *plug_versions(void);

#endif
