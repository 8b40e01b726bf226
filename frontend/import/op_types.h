/* op_types.h - what the standard says of each operator version's inputs and outputs: their names and element types. */
#ifndef FRONTEND_IMPORT_OP_TYPES_H
#define FRONTEND_IMPORT_OP_TYPES_H

#include "frontend/import/import.h"

/* A row of onnx_types.def, which tells what the texts mean. */
typedef struct onnx_op_types {
  const char *domain, *name;
  int since;
  const char *inputs, *outputs, *types;
} onnx_op_types;

/* NULL for what the standard has not: experiments of old, and others' operators. */
const onnx_op_types *onnx_op_types_of(const onnx_op_row *row);
const onnx_op_types *onnx_op_types_rows(uint32_t *n);

/* Whether the node's inputs have types that this version takes, and one type where the standard wants one.  Of what the
 * standard has not, nothing is checked but that they are no sequences. */
STATUS_MUST_USE status onnx_check_types(const onnx_node *n, const onnx_op_row *row);

/* All operators with the versions, types and states of their rows: a page in Markdown. */
const char *onnx_op_page(arena *a);

#endif
