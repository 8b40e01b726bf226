/* part.h - takes some nodes of a model as a model of its own, which can be shown and run alone. */
#ifndef FRONTEND_IMPORT_PART_H
#define FRONTEND_IMPORT_PART_H

#include "frontend/import/frame.h"

/* Nodes of the main graph, including those between them. */
typedef struct onnx_part {
  bool *chosen;       /* by node of the main graph */
  onnx_names inputs;  /* values that they read and that neither they nor an initializer define */
  onnx_names results; /* values that other nodes read, or all that they define */
} onnx_part;

/* Finds the nodes with these sources (onnx_node_source).  For a node in a body or a function it takes the node of the
 * main graph around it.  The result is UNSUPPORTED if there is none or more than one, since instructions do not say
 * which it was. */
STATUS_MUST_USE status onnx_part_find(arena *a, const onnx_model *m, uint32_t n, const char *const *sources,
                                      onnx_part *out);

/* Returns the same model with other outputs, which may be any values of its main graph, and without nodes that they do
 * not need. */
onnx_model *onnx_model_with_outputs(arena *a, const onnx_model *m, uint32_t n, const char *const *names);

/* A value at the border of the part. */
typedef struct onnx_part_value {
  const char *name;
  literal value;
  bool is_constant; /* whether an input becomes an initializer */
} onnx_part_value;

/* Returns the part as the bytes of a model file with everything that it needs.  Values are in the order of part->inputs
 * and part->results.  More than 64 MiB are UNSUPPORTED. */
STATUS_MUST_USE status onnx_part_pack(arena *a, const onnx_model *m, const onnx_part *part,
                                      const onnx_part_value *inputs, const onnx_part_value *results, uint8_t **bytes,
                                      size_t *size);

#endif
