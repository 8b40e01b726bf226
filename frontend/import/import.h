/* import.h - imports an ONNX model as an HLO module.
 *
 * Importing specialises: every dimension of the module is a constant.  Symbols of the model (batch, seq) take the
 * values that the caller gives, so that shape arithmetic in the model (Shape -> Gather -> Concat -> Reshape) folds to
 * constants during the import.  A model is imported again for other sizes, which takes milliseconds, since weights are
 * not copied. */
#ifndef FRONTEND_IMPORT_IMPORT_H
#define FRONTEND_IMPORT_IMPORT_H

#include "frontend/model/model.h"
#include "frontend/import/frame.h"

typedef struct onnx_dim_binding {
  const char *name;
  int64_t value;
} onnx_dim_binding;

typedef struct onnx_input_shape {
  const char *name;
  shape shape;
  /* The content of the input, if sizes depend on it (the shape of a Reshape, the axes of a reduction).  The import uses
   * it as a constant; the parameter remains.  NULL means that any content is possible. */
  const literal *value;
} onnx_input_shape;

typedef struct onnx_import_options {
  const onnx_dim_binding *dims; /* symbols of the model */
  uint32_t n_dims;
  /* Whole shapes of inputs, if they are known; they also give values to their symbols. */
  const onnx_input_shape *inputs;
  uint32_t n_inputs;
  /* N_inputs flags, or NULL.  If the import fails with ABOUT_VALUE because sizes depend on the content of inputs, their
   * flags are set; import again with their values. */
  bool *wanted;
  int64_t open_dim; /* the value of a dimension that has no other; 0 means that such a dimension is an error */
  /* Whether an index out of range or a division by 0 gives an arbitrary number instead of a failure of the run. */
  bool unchecked;
  /* If not NULL, nodes that are wrong or unsupported are listed here, on the import's arena, and the import does not
   * fail; inputs without a shape count as missing, and so do nodes that read them. */
  onnx_findings *findings;
  hlo_eval_fn *eval; /* folds constants; if it is NULL, nothing is folded, and many models cannot be imported */
} onnx_import_options;

/* Inputs of the graph without initializer become parameters and its outputs become roots, both with their names.  The
 * module is on `a`; its large constants are borrowed from the model, which must live as long.  If *complete is false,
 * sizes depend on what the model computes, and this module is only its first segment (frame.h). */
STATUS_MUST_USE status onnx_import(arena *a, const onnx_model *m, const onnx_import_options *options, hlo_module **out,
                                   bool *complete);

/* Returns the frame of the main graph, with the inputs of the options and their data where it is known. */
STATUS_MUST_USE status onnx_frame_main(arena *a, const onnx_model *m, const onnx_import_options *options,
                                       onnx_frame **out);

/* Returns the declared type of an input or output of the graph.  Dimensions without a value become symbols of `dims`,
 * with a new name if the model gives none.  The kind is SHAPE_UNRANKED if the model does not declare a rank. */
STATUS_MUST_USE status onnx_value_shape(dim_table *dims, const Onnx__ValueInfoProto *v, shape *out);

/* One operator version of the table. */
typedef struct onnx_node onnx_node;
typedef status onnx_import_fn(onnx_node *n);
typedef struct onnx_sizes onnx_sizes;
typedef bool onnx_sizes_fn(const onnx_node *n, onnx_sizes *out);
/* When a node is host-interpreted (onnx_ops.def). */
typedef enum onnx_host { onnx_host_no, onnx_host_for_body, onnx_host_for_sequences } onnx_host;
typedef struct onnx_op_row {
  const char *domain, *name;
  int since;
  uint32_t min_inputs, max_inputs, min_outputs, max_outputs; /* UINT32_MAX means no limit */
  onnx_sizes_fn *sizes;                                      /* frontend/import/sizes.h */
  onnx_host host;
  onnx_import_fn *importer;
} onnx_op_row;
/* Returns the row that is in force at an operator set version, or NULL if there is none. */
const onnx_op_row *onnx_op_find(const char *domain, const char *name, int64_t opset);
/* Returns all rows, for pages about coverage. */
const onnx_op_row *onnx_op_rows(uint32_t *n);
bool onnx_op_is_supported(const onnx_op_row *row);

/* Every operator that the model uses, including functions and subgraphs, once each, with its row (NULL if it is
 * unknown) and the number of nodes that use it; sorted by domain and name. */
typedef struct onnx_op_usage {
  const char *domain, *name;
  int64_t opset; /* the version of the domain that is in force */
  const onnx_op_row *row;
  uint64_t count;
} onnx_op_usage;
STATUS_MUST_USE status onnx_list_ops(arena *a, const onnx_model *m, onnx_op_usage **out, uint32_t *n);

#endif
