/* op_types.h - the names and element types of the inputs and outputs of each operator version, as the standard or ONNX
 * Runtime defines them. */
#ifndef FRONTEND_OPERATORS_OP_TYPES_H
#define FRONTEND_OPERATORS_OP_TYPES_H

#include "frontend/operators/op_table.h"
#include "hlo/ir/ir.h"

/* A row of onnx_types.def, where the format of the texts is explained. */
typedef struct onnx_op_types {
  const char *domain, *name;
  int since;
  const char *inputs, *outputs, *types;
} onnx_op_types;

/* Returns the types of an operator version, or NULL if onnx_types.def does not have it, for example for experimental
 * operators that ONNX has withdrawn. */
const onnx_op_types *onnx_op_types_of(const onnx_op_row *row);
const onnx_op_types *onnx_op_types_rows(uint32_t *n);

/* Returns an error unless the n inputs of a node, of which absent ones have no def, have types that this operator
 * version allows, and equal types where the standard requires that.  For operators without a row in onnx_types.def it
 * only checks that no input is a sequence. */
STATUS_MUST_USE status onnx_check_types(arena *a, const onnx_op_row *row, uint32_t n, const hlo_value *in,
                                        const dim_table *dims);

/* Returns a page in Markdown that lists all operator versions with their types and whether they are supported. */
const char *onnx_op_page(arena *a);

#endif
