/* op_types.h - the names and element types of each operator version's inputs and outputs, as the standard states them.
 */
#ifndef FRONTEND_IMPORT_OP_TYPES_H
#define FRONTEND_IMPORT_OP_TYPES_H

#include "frontend/import/import.h"

/* A row of onnx_types.def, which explains the texts. */
typedef struct onnx_op_types {
  const char *domain, *name;
  int since;
  const char *inputs, *outputs, *types;
} onnx_op_types;

/* Returns NULL for operators that are not in the standard: old experiments, and operators of others. */
const onnx_op_types *onnx_op_types_of(const onnx_op_row *row);
const onnx_op_types *onnx_op_types_rows(uint32_t *n);

/* Returns an error unless the node's inputs have types that this version takes, and the same type where the standard
 * requires that.  Of operators that are not in the standard it only checks that inputs are not sequences. */
STATUS_MUST_USE status onnx_check_types(const onnx_node *n, const onnx_op_row *row);

/* Returns a page in Markdown of all operators with the versions, types and states of their rows. */
const char *onnx_op_page(arena *a);

#endif
