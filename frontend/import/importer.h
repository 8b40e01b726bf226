/* importer.h - what the importer of an operator sees and calls.  To add one: a row in onnx_ops.def names it, a
 * function  status onnx_import_<name>(onnx_node *n)  in a file below frontend/ops/ writes it:
 *
 *   status onnx_import_relu(onnx_node *n) {
 *     n->out[0] = hlo_binary(n->b, HLO_MAX, n->in[0], hlo_like(n->b, n->in[0], 0));
 *     return NULL;
 *   }
 *
 * The driver has checked the arity and the element types (onnx_types.def); it looks at n->b->error afterwards and puts
 * the node's label before every message.  Every dimension of every value is a constant; values computed from constants
 * alone are constants already (onnx_const_*).  Messages name inputs as the standard does. */
#ifndef FRONTEND_IMPORT_IMPORTER_H
#define FRONTEND_IMPORT_IMPORTER_H

#include "frontend/model/attributes.h"
#include "frontend/import/import.h"

typedef struct onnx_scope onnx_scope;

struct onnx_node {
  const Onnx__NodeProto *proto;
  int since; /* the version of the row, which says which meaning of the operator is in force */
  hlo_builder *b;
  arena *arena; /* the module's arena */
  onnx_scope *scope;
  uint32_t n_in, n_out; /* the numbers of inputs and outputs that the node lists */
  const hlo_value *in;  /* max(n_in, the row's limit) entries; an absent optional input is no value */
  hlo_value *out;       /* to be set by the importer; entries that the node does not name may be left unset */
};

/* Return true if an optional input or output is present. */
static inline bool onnx_has_in(const onnx_node *n, uint32_t k) { return k < n->n_in && n->in[k].def; }
bool onnx_has_out(const onnx_node *n, uint32_t k);

/* Returns the constant that input k is.  If it is not one, the result is UNSUPPORTED, since a size depends on its
 * value.  `what` is the standard's name. */
STATUS_MUST_USE status onnx_const_literal(const onnx_node *n, uint32_t k, const char *what, const literal **out);
/* Notes that input k would have to be a constant.  For importers that fail for that reason without using onnx_const_*.
 * The node is imported again when the content is known. */
void onnx_require_constant(const onnx_node *n, uint32_t k);
/* Does the same and returns true if input k is an input of the model or computed from a few numbers of such inputs;
 * otherwise it returns false. */
bool onnx_require_inputs(const onnx_node *n, uint32_t k);
/* Notes that the host must run the node's bodies one by one, outside of a module. */
void onnx_require_interpreter(const onnx_node *n);
/* Returns the content as integers.  The input is an s64, s32 or other integer array of rank 0 or 1. */
STATUS_MUST_USE status onnx_const_ints(const onnx_node *n, uint32_t k, const char *what, const int64_t **values,
                                       int64_t *count);
STATUS_MUST_USE status onnx_const_floats(const onnx_node *n, uint32_t k, const char *what, const double **values,
                                         int64_t *count);

/* Converts an axis in [-rank, rank) to [0, rank). */
STATUS_MUST_USE status onnx_axis(int64_t axis, int64_t rank, int64_t *out);
/* Does the same for a list without duplicates and sorts it.  `out` has room for SHAPE_MAX_RANK entries. */
STATUS_MUST_USE status onnx_axes(const int64_t *axes, size_t n, int64_t rank, int64_t *out);
/* Returns the integer list that an operator has as an attribute in old versions and as input k in new ones.  *values is
 * NULL if it is absent. */
STATUS_MUST_USE status onnx_ints_attr_or_input(const onnx_node *n, const char *name, uint32_t k, const int64_t **values,
                                               int64_t *count);

/* Returns a literal of a TensorProto of this model, such as the attribute `value`. */
STATUS_MUST_USE status onnx_node_tensor(const onnx_node *n, const Onnx__TensorProto *t, literal *out);
STATUS_MUST_USE status onnx_node_sparse_tensor(const onnx_node *n, const Onnx__SparseTensorProto *t, literal *out);

/* --- subgraphs (If, Loop, Scan) --- */

/* Values from outside that bodies use; all bodies of one node share the list.  Each body has its own inputs as its
 * first parameters, then one parameter for each capture, in this order. */
typedef struct onnx_captures {
  uint32_t n, cap;
  hlo_value *outer;
} onnx_captures;

/* Imports the graph in the attribute as a computation of its own, with n_inputs parameters of the given shapes and the
 * graph's outputs as roots.  Constants from outside are copied in, other outer values are captured.  If known[k] is not
 * NULL, input k is that constant inside; its parameter remains, unused.  `step` is the parameter that has the number of
 * a loop's step, s64[], which may come after the graph's own inputs; -1 means that there is none. */
STATUS_MUST_USE status onnx_import_body(onnx_node *n, const char *attribute, uint32_t n_inputs, const shape *shapes,
                                        const literal *const *known, int64_t step, onnx_captures *captures,
                                        hlo_computation **out);
/* Gives a body parameters for the captures that only its siblings met. */
void onnx_finish_body(const onnx_captures *captures, uint32_t n_inputs, hlo_computation *body);
/* Imports the graph in the attribute in place: its inputs are `inputs`, its outputs are written to out, which has
 * n_outputs entries.  `step` is the number of the loop's step, or no value if it is not the body of a loop. */
STATUS_MUST_USE status onnx_import_inline(onnx_node *n, const char *attribute, uint32_t n_inputs,
                                          const hlo_value *inputs, hlo_value step, uint32_t n_outputs, hlo_value *out);

/* Declares every importer of the table. */
#define ONNX(domain, name, since, min_in, max_in, min_out, max_out, sizes, work, host, importer) \
  onnx_import_fn onnx_import_##importer;
#include "frontend/import/onnx_ops.def"

#endif
