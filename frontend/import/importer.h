/* importer.h - the interface of operator importers: the node that an importer gets and the functions that it calls.  A
 * row in onnx_ops.def names the importer, and a file below frontend/ops/ defines it, for example:
 *
 *   status onnx_import_relu(onnx_node *n) {
 *     n->out[0] = hlo_binary(n->b, HLO_MAX, n->in[0], hlo_like(n->b, n->in[0], 0));
 *     return NULL;
 *   }
 *
 * The caller, import.c, has checked the number of inputs and outputs and the element types (onnx_types.def).  After the
 * importer returns, the caller checks n->b->error and puts the node's label before the message.  Dimensions are
 * constants, unless the operator's row says `open` (symbolic.h).  Values of up to 64 KiB that are computed from
 * constants alone have been folded to constants; importers read these by the functions onnx_const_*.  Messages name
 * inputs as the standard does. */
#ifndef FRONTEND_IMPORT_IMPORTER_H
#define FRONTEND_IMPORT_IMPORTER_H

#include "frontend/model/attributes.h"
#include "frontend/import/import.h"

typedef struct onnx_scope onnx_scope;

struct onnx_node {
  const Onnx__NodeProto *proto;
  int since; /* the version of the operator: the newest one up to the operator set version that the model imports */
  hlo_builder *b;
  arena *arena; /* the arena of the module that is built */
  onnx_scope *scope;
  uint32_t n_in, n_out; /* the numbers of inputs and outputs that the node lists */
  const hlo_value *in;  /* has an entry for each input up to max_inputs of the operator's row; def is NULL for an absent
                           input */
  hlo_value *out;       /* to be set by the importer, except that outputs which the node does not have may be unset */
};

/* Return true if an optional input or output is present. */
static inline bool onnx_has_in(const onnx_node *n, uint32_t k) { return k < n->n_in && n->in[k].def; }
bool onnx_has_out(const onnx_node *n, uint32_t k);
/* Returns the table of the symbols and expressions in the dimensions of the node's module. */
static inline dim_table *onnx_dims(const onnx_node *n) { return n->b->computation->module->dims; }

/* Returns the value of input k, which must be a constant, because a size depends on it.  If it is not a constant, the
 * error is UNSUPPORTED and the requirement is noted (onnx_require_constant).  If the input is absent, the error is
 * INVALID_MODEL.  `what` is the standard's name of the input, for messages. */
STATUS_MUST_USE status onnx_const_literal(const onnx_node *n, uint32_t k, const char *what, const literal **out);
/* Notes that input k must be a constant, or pins the symbols of which it is computed (symbolic.h).  The node is
 * imported again when the content is known.  The functions onnx_const_* call this.  An importer that uses none of them
 * must call onnx_require_constant before it returns the error that the input is not a constant. */
void onnx_require_constant(const onnx_node *n, uint32_t k);
/* If input k is an array of the frame (an input of the model or a result of an earlier segment), or is computed from a
 * few elements of such arrays, notes that their contents are needed and returns true.  Once they are known, the import
 * can compute input k as a constant.  Otherwise it notes nothing and returns false. */
bool onnx_require_inputs(const onnx_node *n, uint32_t k);
/* Does what onnx_require_inputs does, but only if the content of each of these arrays would become symbols
 * (onnx_input_shape.use), so that the module still serves other contents. */
bool onnx_require_told_inputs(const onnx_node *n, uint32_t k);
/* Notes that the node must be host-interpreted: it does not become a part of a module.  Instead the host runs the
 * node's control flow, and each of its bodies segment by segment (frame.h). */
void onnx_require_interpreter(const onnx_node *n);
/* Does that, and returns the error with which the importer ends then. */
STATUS_MUST_USE status onnx_leave_to_interpreter(const onnx_node *n, const char *why);
/* Returns the content of input k, a constant integer array of rank 0 or 1, as s64 values on the arena; errors are those
 * of onnx_const_literal, and INVALID_MODEL if the constant is no such array. */
STATUS_MUST_USE status onnx_const_ints(const onnx_node *n, uint32_t k, const char *what, const int64_t **values,
                                       int64_t *count);
STATUS_MUST_USE status onnx_const_floats(const onnx_node *n, uint32_t k, const char *what, const double **values,
                                         int64_t *count);

/* Converts an axis in [-rank, rank) to [0, rank). */
STATUS_MUST_USE status onnx_axis(int64_t axis, int64_t rank, int64_t *out);
/* Converts n axes in [-rank, rank) to [0, rank) and sorts them; duplicates are an error.  `out` has room for
 * SHAPE_MAX_RANK entries. */
STATUS_MUST_USE status onnx_axes(const int64_t *axes, size_t n, int64_t rank, int64_t *out);
/* Returns the integer list that an operator has as an attribute in old versions and as input k in new ones.  *values is
 * NULL if the list is absent. */
STATUS_MUST_USE status onnx_ints_attr_or_input(const onnx_node *n, const char *name, uint32_t k, const int64_t **values,
                                               int64_t *count);

/* Returns the elements of a tensor in an attribute of the node, such as `value` of Constant. */
STATUS_MUST_USE status onnx_node_tensor(const onnx_node *n, const Onnx__TensorProto *t, literal *out);
STATUS_MUST_USE status onnx_node_sparse_tensor(const onnx_node *n, const Onnx__SparseTensorProto *t, literal *out);

/* Return the numbers (base/tensor/string_table.h) of the strings in an attribute of the node, or of one string: the
 * elements of an array of DTYPE_STR.  `def` is the default, which must be one that onnx_model_collect_strings knows. */
STATUS_MUST_USE status onnx_node_strings(const onnx_node *n, const char *name, const int64_t **numbers, size_t *count);
STATUS_MUST_USE status onnx_node_string(const onnx_node *n, const char *name, const char *def, int64_t *number);

/* --- subgraphs (If, Loop, Scan) --- */

/* The captures of a node: the values from outside that the bodies of the node read.  All bodies of the node share one
 * list.  The parameters of a body's computation are the body's own inputs, then one for each capture, in the order of
 * the list. */
typedef struct onnx_captures {
  uint32_t n, cap;
  hlo_value *outer;
} onnx_captures;

/* Imports the graph in the attribute as a computation of its own, with n_inputs parameters of the given shapes and the
 * graph's outputs as roots.  Outer constants are copied into it; other outer values are added to `captures`.  If
 * `known` and known[k] are not NULL, the graph uses that constant as input k, and the parameter is unused.  `step` is
 * the index of the parameter with the number of the loop's iteration, s64[], or -1 if the body is not that of a loop.
 * If `step` equals the number of the graph's inputs, it is an additional parameter, which is no input of the graph but
 * is counted by n_inputs. */
STATUS_MUST_USE status onnx_import_body(onnx_node *n, const char *attribute, uint32_t n_inputs, const shape *shapes,
                                        const literal *const *known, int64_t step, onnx_captures *captures,
                                        hlo_computation **out);
/* Adds the parameters for captures that were found only while other bodies of the node were imported.  Call it for each
 * body after all of them are imported. */
void onnx_finish_body(const onnx_captures *captures, uint32_t n_inputs, hlo_computation *body);
/* Imports the graph in the attribute into the current computation, with `inputs` as its inputs.  Its outputs
 * are stored in out[], which has n_outputs entries.  `step` is the number of the loop's iteration, s64[], or
 * has no def if the graph is not the body of a loop. */
STATUS_MUST_USE status onnx_import_inline(onnx_node *n, const char *attribute, uint32_t n_inputs,
                                          const hlo_value *inputs, hlo_value step, uint32_t n_outputs, hlo_value *out);

/* The importer of operator versions that are not supported; there are none at present, until the standard adds some. */
onnx_import_fn onnx_import_unsupported;
/* Declares all importers that onnx_ops.def names. */
#define ONNX(domain, name, since, min_in, max_in, min_out, max_out, sizes, symbols, work, host, importer) \
  onnx_import_fn onnx_import_##importer;
#include "frontend/operators/onnx_ops.def"

#endif
