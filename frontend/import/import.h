/* import.h - from an ONNX model to an HLO module.
 *
 * Importing specialises: every dimension of the module is a constant.  Symbols of the model (batch, seq) take the
 * values that the caller gives, so that shape arithmetic in the model (Shape -> Gather -> Concat -> Reshape) folds
 * to constants on the way.  A model is imported again for other sizes; that takes milliseconds, since weights stay
 * where they are. */
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
  /* What the input holds, where that decides sizes (the shape of a Reshape, the axes of a reduction): the import takes
   * it for a constant.  The parameter stays.  NULL means any value. */
  const literal *value;
} onnx_input_shape;

typedef struct onnx_import_options {
  const onnx_dim_binding *dims; /* symbols of the model */
  uint32_t n_dims;
  const onnx_input_shape *inputs; /* whole shapes of inputs, where they are known; bind their symbols too */
  uint32_t n_inputs;
  bool *wanted; /* n_inputs flags or NULL: when the import fails with ABOUT_VALUE since what inputs hold decides sizes,
                 * theirs are set; import again with their values */
  int64_t open_dim; /* what a dimension without any value is; 0 means that is an error */
  bool unchecked;   /* what the standard forbids of indices and divisors gives some number, instead of a failure of the
                       run */
  onnx_findings *findings; /* not NULL: what is wrong with the nodes is listed here, on the import's arena, and does not
                            * make it fail; inputs that are not given count as missing, and so does what reads them */
  hlo_eval_fn *eval; /* folds constants on the way; NULL means that nothing folds, and many models cannot be imported */
} onnx_import_options;

/* The graph's inputs without initializer become parameters, its outputs roots, both by name.  The module lives on `a`;
 * its large constants are borrowed from the model, which must live as long.  *complete false: sizes depend on what the
 * model computes, and this module is only the first piece of it (frame.h). */
STATUS_MUST_USE status onnx_import(arena *a, const onnx_model *m, const onnx_import_options *options, hlo_module **out,
                                   bool *complete);

/* The frame of the main graph, with the inputs as the options have them; their data is there where it is known. */
STATUS_MUST_USE status onnx_frame_main(arena *a, const onnx_model *m, const onnx_import_options *options,
                                       onnx_frame **out);

/* The declared type of a graph input or output; dims without a value become symbols of `dims`: a fresh name
 * where the model has none.  SHAPE_UNRANKED where it says nothing about its rank. */
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
  uint32_t min_inputs, max_inputs, min_outputs, max_outputs; /* UINT32_MAX: no limit */
  onnx_sizes_fn *sizes;                                      /* frontend/import/sizes.h */
  onnx_host host;
  onnx_import_fn *importer;
} onnx_op_row;
/* The row in force at an operator set version; NULL when there is none. */
const onnx_op_row *onnx_op_find(const char *domain, const char *name, int64_t opset);
/* All rows, for coverage pages. */
const onnx_op_row *onnx_op_rows(uint32_t *n);
bool onnx_op_is_supported(const onnx_op_row *row);

/* Every operator that the model uses, functions and subgraphs included, once each with its row (NULL: unknown) and
 * how many nodes use it; sorted by domain and name. */
typedef struct onnx_op_usage {
  const char *domain, *name;
  int64_t opset; /* version of the domain in force */
  const onnx_op_row *row;
  uint64_t count;
} onnx_op_usage;
STATUS_MUST_USE status onnx_list_ops(arena *a, const onnx_model *m, onnx_op_usage **out, uint32_t *n);

#endif
