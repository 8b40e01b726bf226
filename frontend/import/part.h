/* part.h - some nodes of a model as a model of its own, to be shown and run alone. */
#ifndef FRONTEND_IMPORT_PART_H
#define FRONTEND_IMPORT_PART_H

#include "frontend/import/frame.h"

/* Nodes of the main graph, closed over what stands between them. */
typedef struct onnx_part {
  bool *chosen;       /* by node of the main graph */
  onnx_names inputs;  /* what they read that is neither theirs nor an initializer */
  onnx_names results; /* what they give to others, or all that they give */
} onnx_part;

/* The nodes with these sources (onnx_node_source).  In place of one that stands in a body or a function it is
 * the node of the main graph around it.  UNSUPPORTED where there is none, or more than one: instructions do
 * not say which it was. */
STATUS_MUST_USE status onnx_part_find(arena *a, const onnx_model *m, uint32_t n, const char *const *sources,
                                      onnx_part *out);

/* The same model with other outputs, any values of its main graph, and without the nodes that these do not
 * need. */
onnx_model *onnx_model_with_outputs(arena *a, const onnx_model *m, uint32_t n, const char *const *names);

/* A value at the border of the part. */
typedef struct onnx_part_value {
  const char *name;
  literal value;
  bool is_constant; /* of an input: it becomes an initializer */
} onnx_part_value;

/* The part as the bytes of a model file, with all that it needs.  Values in the order of part->inputs,
 * part->results. UNSUPPORTED where that is more than 64 MiB. */
STATUS_MUST_USE status onnx_part_pack(arena *a, const onnx_model *m, const onnx_part *part,
                                      const onnx_part_value *inputs, const onnx_part_value *results, uint8_t **bytes,
                                      size_t *size);

#endif
