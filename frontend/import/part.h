/* part.h - extracts some nodes of a model as a model of its own, which can be shown and run alone. */
#ifndef FRONTEND_IMPORT_PART_H
#define FRONTEND_IMPORT_PART_H

#include "frontend/import/frame.h"

/* Some nodes of the main graph, and all nodes on the paths between them. */
typedef struct onnx_part {
  bool *chosen;       /* for each node of the main graph: whether it belongs to the part */
  onnx_names inputs;  /* values that the part reads, and that neither the part nor an initializer defines */
  onnx_names results; /* values of the part that other nodes read or that are outputs of the graph; all its values if
                         there are no such values */
} onnx_part;

/* Finds the nodes with these sources, which are names as in hlo_instr.source (onnx_node_source).  If such a node is in
 * a body or a function, the node of the main graph that contains the body or calls the function is chosen.  The error
 * is UNSUPPORTED if n is 0, or if no node or more than one node of the main graph matches a source. */
STATUS_MUST_USE status onnx_part_find(arena *a, const onnx_model *m, uint32_t n, const char *const *sources,
                                      onnx_part *out);

/* Returns a copy of the model whose outputs are the named values of its main graph, without the nodes on which these do
 * not depend.  The copy shares everything else with the model. */
onnx_model *onnx_model_with_outputs(arena *a, const onnx_model *m, uint32_t n, const char *const *names);

/* The contents of an input or a result of a part. */
typedef struct onnx_part_value {
  const char *name;
  literal value;
  bool is_constant; /* for inputs: whether the input becomes an initializer of the new model */
} onnx_part_value;

/* Returns the part as the bytes of a self-contained model file, on the arena.  `inputs` and `results` are in the order
 * of part->inputs and part->results.  A file of more than 64 MiB is UNSUPPORTED, and so is a model of an IR version
 * before 3. */
STATUS_MUST_USE status onnx_part_pack(arena *a, const onnx_model *m, const onnx_part *part,
                                      const onnx_part_value *inputs, const onnx_part_value *results, uint8_t **bytes,
                                      size_t *size);

#endif
