/* import.h - imports an ONNX model as an HLO module.
 *
 * Importing specialises, unless the option `symbols` is set: every dimension of the module is a constant.  Symbols of
 * the model (batch, seq) take the values that the caller gives, so that shape arithmetic in the model (Shape -> Gather
 * -> Concat -> Reshape) folds to constants during the import.  A model is imported again for other sizes, which takes
 * milliseconds, since weights are not copied. */
#ifndef FRONTEND_IMPORT_IMPORT_H
#define FRONTEND_IMPORT_IMPORT_H

#include "base/dim/guard.h"
#include "frontend/model/model.h"
#include "frontend/import/frame.h"
#include "frontend/operators/op_table.h"

typedef struct onnx_dim_binding {
  const char *name;
  int64_t value;
} onnx_dim_binding;

typedef struct onnx_dim_bindings {
  uint32_t n, cap;
  onnx_dim_binding *items;
} onnx_dim_bindings;

/* How the import uses the content of an input.  Sizes may depend on that content, for example if the input is the shape
 * of a Reshape or the axes of a reduction. */
typedef enum onnx_content {
  ONNX_CONTENT_UNUSED,
  ONNX_CONTENT_CONSTANT,
  ONNX_CONTENT_SYMBOLS /* each element is a symbol; onnx_holds_sizes of the shape must be true, and no element may be
                          negative or larger than DIM_MAX */
} onnx_content;

typedef struct onnx_input_shape {
  const char *name;
  shape shape;
  const literal *value; /* the content of the input, if the caller knows it; otherwise NULL */
  /* If the content is used, the module still has a parameter for the input, which nothing reads.  If the elements are
   * symbols, it also has a parameter for each element, which tells the element's value (onnx_told_shape).  These
   * parameters come after those of all inputs. */
  onnx_content use;
} onnx_input_shape;

typedef struct onnx_import_options {
  const onnx_dim_binding *dims; /* values for symbolic dimensions of the model */
  uint32_t n_dims;
  /* The sizes that symbolic dimensions may have.  A dimension to which neither `dims` nor `inputs` gives a size gets
   * the largest size of its range. */
  const dim_range *ranges;
  uint32_t n_ranges;
  /* The shapes of inputs, as far as the caller knows them; symbolic dimensions get their values from them as well. */
  const onnx_input_shape *inputs;
  uint32_t n_inputs;
  /* NULL, or a list of n_inputs flags.  If sizes depend on the contents of inputs whose `use` is ONNX_CONTENT_UNUSED,
   * the import fails with STATUS_ABOUT_VALUE, and the flags of these inputs are true.  The caller can then set `value`
   * and another `use` for them and import again.  All other flags are false after an import. */
  bool *wanted;
  int64_t open_dim; /* the size of symbolic dimensions to which neither `dims`, `inputs` nor `ranges` gives one; if it
                       is 0, such dimensions are an error */
  /* If not NULL, a list of assumed sizes, which dimensions get in place of open_dim.  A dimension that the list does
   * not have yet is appended. */
  onnx_dim_bindings *assumed;
  /* If true, an index out of range or an integer division by 0 has an arbitrary result at run time; otherwise it makes
   * the run fail. */
  bool unchecked;
  /* If not NULL, nodes that are wrong or unsupported are listed here, on the import's arena, and do not make the import
   * fail.  An input whose shape is not given then counts as missing, and nodes that read it are deferred. */
  onnx_findings *findings;
  /* If not NULL, dimensions that the model leaves open stay symbols, or become the expressions to which this list
   * defines them to be equal (symbolic.h).  The sizes that the other options give are then hints. */
  const onnx_definitions *symbols;
  /* With `symbols`: whether the module is to serve as many sizes as possible.  Otherwise it may be made for a special
   * case to which the hints belong, such as an image that is enlarged by an integer, and have a guard. */
  bool alone;
  /* If not NULL, set to why the first node that is deferred or host-interpreted is not a part of the module; NULL if
   * there is none. */
  const char **deferred;
  hlo_eval_fn *eval; /* folds constants; if it is NULL, nothing is folded, and many models cannot be imported */
} onnx_import_options;

/* Imports the main graph as a module on `a`.  Inputs without an initializer become parameters and outputs become roots,
 * both with their names.  Large constants are borrowed from the model, which must live as long as the module.  If
 * *complete is false, some nodes are deferred or host-interpreted, for example since sizes depend on what the model
 * computes; the module is then only the first segment (frame.h). */
STATUS_MUST_USE status onnx_import(arena *a, const onnx_model *m, const onnx_import_options *options, hlo_module **out,
                                   bool *complete);

/* Does what onnx_import does, with a frame of the main graph that onnx_frame_main has made with the same options. */
STATUS_MUST_USE status onnx_import_frame(arena *a, const onnx_frame *f, const onnx_import_options *options,
                                         hlo_module **out, bool *complete);

/* Returns the frame of the main graph.  Its arrays are the inputs, with the shapes and contents that the options give.
 * Clears the flags options->wanted. */
STATUS_MUST_USE status onnx_frame_main(arena *a, const onnx_model *m, const onnx_import_options *options,
                                       onnx_frame **out);

/* Returns the declared element type and dimensions of an input or output of the graph.  Dimensions without a value
 * become symbolic dimensions in `dims`, with a new name if the model does not name them.  The shape's kind is
 * SHAPE_UNRANKED if the model declares no rank.  For a sequence, an optional or a map, it is SHAPE_SEQUENCE,
 * SHAPE_OPTIONAL or SHAPE_MAP, with the element type of the tensors in it and no dimensions. */
STATUS_MUST_USE status onnx_value_shape(dim_table *dims, const Onnx__ValueInfoProto *v, shape *out);
/* Does the same for a type; `name` is what messages call the value. */
STATUS_MUST_USE status onnx_type_shape(dim_table *dims, const char *name, const Onnx__TypeProto *type, shape *out);
/* Returns true if values of the type are sequences, maps or optionals. */
bool onnx_is_list_type(const Onnx__TypeProto *type);
/* Returns the kind of the elements of a sequence or an optional, or of the values of a map; otherwise SHAPE_ARRAY. */
shape_kind onnx_element_kind(const Onnx__TypeProto *type);
/* Returns the type of the keys of a map, or of the maps in a sequence; otherwise DTYPE_INVALID. */
dtype onnx_key_type(const Onnx__TypeProto *type);

#endif
