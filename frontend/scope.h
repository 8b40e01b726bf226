/* scope.h - where names are looked up while a graph is imported; private to import.c and importer.c. */
#ifndef FRONTEND_SCOPE_H
#define FRONTEND_SCOPE_H

#include "frontend/importer.h"

typedef struct onnx_importer {
  arena *arena; /* the module's */
  const onnx_model *model;
  hlo_module *module;
  const onnx_import_options *options;
} onnx_importer;

/* One graph or function body being imported.  A body with a computation of its own (captures not NULL) turns
 * outer values into parameters; one that is imported in place sees them as they are. */
struct onnx_scope {
  onnx_scope *outer; /* NULL: the main graph, or a function, which sees nothing around it */
  onnx_scope *around; /* where the node stands whose body this is, of functions too; NULL: the main graph */
  uint64_t place;     /* of the nodes around it, a number that tells bodies apart */
  hlo_value step;     /* in the body of a loop: s64[], the number of the step; else no value */
  hlo_value run_seed, path; /* import_random.c's, once they are asked for */
  onnx_importer *importer;
  hlo_builder *b;
  str_map values; /* name -> hlo_value * */
  onnx_captures *captures;
  uint32_t n_inputs; /* parameters before the captures */
  const onnx_function *function; /* whose body this belongs to, with the node that called it; or NULL */
  const Onnx__NodeProto *call;
  const onnx_opsets *opsets;
  int depth;
};

/* For the body that attribute `name` (of a function: "") of a node is. */
onnx_scope onnx_scope_make(onnx_scope *around, const Onnx__NodeProto *node, const char *name, hlo_builder *b,
                           onnx_captures *captures);
/* A number for a node among those of its graph. */
uint64_t onnx_node_hash(const Onnx__NodeProto *node);
/* A value of the scope around s, as s sees it. */
hlo_value onnx_scope_capture(onnx_scope *s, hlo_value outer);
void onnx_scope_define(onnx_scope *s, const char *name, hlo_value v);
bool onnx_scope_lookup(onnx_scope *s, const char *name, hlo_value *out);
/* The graph's initializers and nodes; roots[] get its outputs.  Inputs must be defined already. */
STATUS_MUST_USE status onnx_import_graph(onnx_scope *s, const Onnx__GraphProto *g, hlo_value *roots);
/* Makes parameters until the computation has one for each of the first n captures. */
void onnx_add_capture_params(const onnx_captures *captures, uint32_t n, uint32_t n_inputs, hlo_computation *c);

#endif
