/* internal.h - declarations that the files share which implement compiler_api: the data of an opened model, and the
 * functions of the table compiler_api, which compiler.h documents. */
#ifndef PLUGIN_COMPILER_INTERNAL_H
#define PLUGIN_COMPILER_INTERNAL_H

#include "frontend/import/import.h"
#include "frontend/model/model.h"
#include "hlo/ir/ir.h"
#include "plugin/compiler/compiler.h"
#include "runtime/program/weight_pool.h"

/* The compiler's data of an opened model, to which compiler_model.model points.  Either `onnx` or `hlo` is NULL. */
typedef struct opened_model {
  const onnx_model *onnx;
  uint32_t n_constants; /* constants that were given when the model was opened, in addition to those in its file */
  const compiler_constant *constants;
  arena *arena; /* the arena on which the model's files are mapped */
  const hlo_module *hlo;
  /* for each input of an ONNX model: whether a program for all sizes needed its contents, so that the next one will */
  _Atomic bool *needs_contents;
} opened_model;

/* Says for which inputs an imported module is valid. */
typedef struct compiler_validity {
  const void **values; /* for each input: its contents if the module is valid for these only, otherwise NULL */
  /* for each input: how many of its elements, from the first on, have a further parameter that tells their value
   * (rt_io.told).  These parameters come after those of the inputs, in the order of the inputs and of their elements.
   */
  uint32_t *told;
  rt_definition *definitions; /* the expressions to which symbols must be equal */
  uint32_t n_definitions;
  const char *deferred; /* if the module is only the first segment: which node is not a part of it, and why */
} compiler_validity;

/* Returns the options of the import that follow from a request: all but the inputs.  In import.c. */
onnx_import_options compiler_import_options(arena *a, const compile_request *r);
/* Imports the model, or copies the HLO, as a new module for the shapes and values of the request.  Sets *validity, also
 * after a failure; what it points to is allocated on the arena.  validity may be NULL.  Sets *complete to whether the
 * module is the whole model and not only its first segment.  In import.c. */
STATUS_MUST_USE status compiler_import(const compiler_model *s, const compile_request *r, arena *a, hlo_module **out,
                                       compiler_validity *validity, bool *complete);

/* Imports the whole model as compiler_import does, with its outputs carried.  *out is NULL if it runs segment by
 * segment.  In compile.c. */
STATUS_MUST_USE status compiler_import_whole(const compiler_model *s, const compile_request *r, arena *a,
                                             hlo_module **out, compiler_validity *validity);
/* Replaces large products of constants, and what is computed from these and other constants, by constants on the arena.
 * Does nothing for the reference backend, whose results must not depend on another one.  Must be called inside
 * guard_run.  In precompute.c. */
STATUS_MUST_USE status compiler_precompute(hlo_module *m, const rt_backend *b, const rt_compile_options *options,
                                           arena *a);

/* Returns what programs of the model share: constants in the model's files and those with which it was opened are used
 * where they are.  In compile.c. */
rt_sharing compiler_sharing(const compiler_model *s, rt_weight_pool *pool);
/* Gives memory back to the system after compiling programs with so many bytes of constants: the pages of the model's
 * file and of LLVM's code that were read, and the memory that malloc would keep.  In compile.c. */
void compiler_give_memory_back(const compiler_model *s, uint64_t constant_bytes);

/* Sets in the program for which contents of inputs it is valid, and which parameters tell elements of inputs
 * (rt_io.told).  In compile.c. */
void compiler_set_validity(rt_program *p, uint32_t n_inputs, const compiler_validity *v);

/* Returns the same model with other outputs (frontend/import/part.h).  The result may only be imported.  In
 * import.c. */
compiler_model *compiler_with_outputs(const compiler_model *s, arena *a, uint32_t n, const char *const *names);
/* Returns the ONNX model, or NULL if the model is HLO text.  In import.c. */
const onnx_model *compiler_onnx_model(const compiler_model *s);

/* Finds a node by its name, its label ("fc1: Gemm") or the name of an output, and returns its label, with which the
 * instructions that come from the node are marked (hlo_instr.source).  In check.c. */
STATUS_MUST_USE status compiler_find_node(const compiler_model *s, const char *node, arena *a, const char **label);

/* --- the functions of the table --- */

STATUS_MUST_USE status compiler_open(arena *a, const char *path, const void *bytes, size_t size, uint32_t n_constants,
                                     const compiler_constant *constants, compiler_model **out);
STATUS_MUST_USE status compiler_open_hlo(arena *a, const char *name, const char *text, size_t size,
                                         compiler_model **out);
STATUS_MUST_USE status compiler_compile(const compiler_model *s, const compile_request *request, arena *a,
                                        rt_program **out, rt_report *report);
STATUS_MUST_USE status compiler_assume_sizes(const compiler_model *s, const compile_request *request, arena *a,
                                             shape *out, bool *beyond);
STATUS_MUST_USE status compiler_write_object(const compiler_model *s, const compile_request *request,
                                             const compiler_object_options *o, arena *a, compiler_object *out,
                                             rt_report *report);
STATUS_MUST_USE status compiler_segments_create(const compiler_model *s, const compile_request *request,
                                                mem_budget *budget, segmented_model **out);
STATUS_MUST_USE status compiler_model_bytes(const compiler_model *s, rt_span *out);
uint64_t compiler_model_hash(const compiler_model *s);
STATUS_MUST_USE status compiler_list_ops(const compiler_model *s, arena *a, operator_use **out, uint32_t *n);
STATUS_MUST_USE status compiler_check(const compiler_model *s, const compile_request *request, mem_budget *budget);

STATUS_MUST_USE status compiler_print(const compiler_model *s, const compile_request *request, const char *after,
                                      bool no_constants, arena *a, const char **text);
STATUS_MUST_USE status compiler_explain(const compiler_model *s, const compile_request *request, const char *node,
                                        arena *a, const char **text);
STATUS_MUST_USE status compiler_opt(arena *a, const char *name, const char *text, size_t size, const char *passes,
                                    const char **out);
const char *compiler_pass_list(arena *a);
const char *compiler_versions(void);

#endif
