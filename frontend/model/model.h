/* model.h - loads an ONNX model: opens the file, scans its bytes (wire_scan.h), unpacks and checks the message.  The
 * import as an HLO module comes after that (frontend/import/import.h).
 *
 * Importers may rely on these properties of a loaded model and need not check them again:
 * - every field of type string is valid UTF-8 without NUL and never a NULL pointer, except that doc_string may have any
 *   bytes (so may the string values of attributes, which are fields of type bytes); protobuf messages nest at most 100
 *   deep;
 * - the domain "ai.onnx" is spelled "" in nodes, functions and opset imports; the IR version, and the opset version of
 *   that domain, are not newer than those that this program knows;
 * - every domain that a node uses is imported by its model or function, unless the node calls a function;
 * - in every graph and function, names are defined once (an input may have an initializer, and a subgraph may shadow an
 *   outer name), every node input that is not "" is defined, and node[] is in dependency order (loading sorts it if it
 *   is not);
 * - no function calls itself, directly or indirectly, and inlining all calls gives at most `max_nodes` nodes, where a
 *   body that is an attribute of a call or the default of a function's attribute counts once.
 *
 * Operators, their attributes and their types are checked by the importers, tensor contents by tensor.h. */
#ifndef FRONTEND_MODEL_MODEL_H
#define FRONTEND_MODEL_MODEL_H

#include "base/hash.h"
#include "frontend/onnx.pb-c.h"
#include "frontend/model/source.h"

enum { ONNX_IR_VERSION_MAX = 14, ONNX_OPSET_MAX = 28 };

/* The operator set versions that a model or function imports. */
typedef struct onnx_opsets {
  str_map versions; /* from a domain to the version, stored in the pointer itself; read it with onnx_opset_version */
} onnx_opsets;

/* Returns the imported version of a domain, or 0 if it is not imported.  "" and "ai.onnx" are the same domain. */
int64_t onnx_opset_version(const onnx_opsets *o, const char *domain);
/* Returns "" for "ai.onnx", and every other domain unchanged. */
const char *onnx_domain(const char *domain);

/* A model-local function. */
typedef struct onnx_function {
  const Onnx__FunctionProto *proto;
  onnx_opsets opsets;      /* its own imports, or the model's if it has none */
  uint64_t expanded_nodes; /* the number of nodes of its body, with those of subgraphs and of called functions */
} onnx_function;

/* A loaded model.  It and everything that it points to lives as long as the arena on which it was loaded, but the bytes
 * of a model in memory belong to the caller.  Callers must not change a model. */
typedef struct onnx_model {
  arena *arena;
  onnx_source source;
  Onnx__ModelProto *proto;
  Onnx__GraphProto *graph; /* proto->graph, which is not NULL */
  int64_t ir_version;
  onnx_opsets opsets;
  str_map functions;    /* see onnx_model_function */
  str_map initializers; /* from a name to an Onnx__TensorProto or Onnx__SparseTensorProto of the main graph */
  uint64_t expanded_nodes;
} onnx_model;

typedef struct onnx_load_options {
  uint64_t max_nodes; /* the largest number of nodes after all functions are inlined; 0 means 10 million */
} onnx_load_options;

/* The next two functions load a model onto `a`, whose budget bounds the memory; call them inside guard_run
 * (base/arena.h), since running out of memory is not returned as a status.  Only the arena needs to be freed.
 * options may be NULL.  Errors: IO (the file cannot be opened), INVALID_FILE (it is not an ONNX file, or
 * damaged), INVALID_MODEL, UNSUPPORTED (a newer standard), RESOURCE. */
STATUS_MUST_USE status onnx_model_open(arena *a, const char *path, const onnx_load_options *options, onnx_model **out);
/* The bytes must stay valid until the arena is destroyed.  `path` is the path of the file that they come from, for
 * messages and to find external data in its folder.  If it is NULL, external data is refused. */
STATUS_MUST_USE status onnx_model_from_memory(arena *a, const void *bytes, size_t size, const char *path,
                                              const onnx_load_options *options, onnx_model **out);

/* Returns the function that a node of this domain, type and overload calls, or NULL if the node is an operator. */
const onnx_function *onnx_model_function(const onnx_model *m, const char *domain, const char *name,
                                         const char *overload);
/* Returns the function that this node calls, or NULL. */
const onnx_function *onnx_model_callee(const onnx_model *m, const Onnx__NodeProto *node);

/* Returns true if the main graph has an initializer (dense or sparse) of that name. */
bool onnx_model_has_initializer(const onnx_model *m, const char *name);
/* Returns true if callers must give this input of the main graph, because it has no initializer.  Since IR version 4 an
 * input with an initializer may be given, and the initializer is its default; before, it is a constant. */
bool onnx_model_input_is_required(const onnx_model *m, const Onnx__ValueInfoProto *input);
bool onnx_model_input_is_overridable(const onnx_model *m, const Onnx__ValueInfoProto *input);

#endif
