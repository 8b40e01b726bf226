/* op_table.h - the table of operators (onnx_ops.def), and the operators that a model uses. */
#ifndef FRONTEND_OPERATORS_OP_TABLE_H
#define FRONTEND_OPERATORS_OP_TABLE_H

#include "frontend/model/model.h"

typedef struct onnx_node onnx_node;
typedef status onnx_import_fn(onnx_node *n);
typedef struct onnx_sizes onnx_sizes;
typedef bool onnx_sizes_fn(const onnx_node *n, onnx_sizes *out);
/* The reasons for which a node may be host-interpreted; onnx_ops.def explains them. */
typedef enum onnx_host { onnx_host_no, onnx_host_for_body, onnx_host_for_sequences, onnx_host_asked } onnx_host;
/* Says whether an importer takes inputs with symbolic dimensions (`open`) or needs constant ones (symbolic.h). */
typedef enum onnx_symbols { onnx_symbols_fixed, onnx_symbols_open } onnx_symbols;
/* One row of onnx_ops.def: an operator from one version of its operator set on. */
typedef struct onnx_op_row {
  const char *domain, *name;
  int since;
  uint32_t min_inputs, max_inputs, min_outputs, max_outputs; /* UINT32_MAX means no limit */
  onnx_sizes_fn *sizes;                                      /* the rule for dynamic dimensions (sizes.h) */
  onnx_symbols symbols;
  onnx_host host;
  onnx_import_fn *importer;
} onnx_op_row;
/* Returns the row that is valid at an operator set version, or NULL if there is none. */
const onnx_op_row *onnx_op_find(const char *domain, const char *name, int64_t opset);
/* Returns all rows in the order of onnx_ops.def. */
const onnx_op_row *onnx_op_rows(uint32_t *n);
bool onnx_op_is_supported(const onnx_op_row *row);

/* An operator version that a model uses. */
typedef struct onnx_op_usage {
  const char *domain, *name;
  int64_t opset;          /* the version of the domain that the model or function imports */
  const onnx_op_row *row; /* NULL if the operator is unknown */
  uint64_t count;         /* the number of nodes that use it */
} onnx_op_usage;
/* Lists every operator version that nodes of the model, its functions and subgraphs use, once each; calls of functions
 * are not listed.  The list is on the arena, sorted by domain and name. */
STATUS_MUST_USE status onnx_list_ops(arena *a, const onnx_model *m, onnx_op_usage **out, uint32_t *n);

#endif
