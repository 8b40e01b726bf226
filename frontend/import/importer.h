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
  int since; /* the version of the row: which meaning is in force */
  hlo_builder *b;
  arena *arena; /* the module's */
  onnx_scope *scope;
  uint32_t n_in, n_out; /* as listed by the node */
  const hlo_value *in;  /* max(n_in, row's limit) entries: no value where an optional input is absent */
  hlo_value *out;       /* to be filled; entries that the node does not name may stay empty */
};

/* An optional input or output that is there. */
static inline bool onnx_has_in(const onnx_node *n, uint32_t k) { return k < n->n_in && n->in[k].def; }
bool onnx_has_out(const onnx_node *n, uint32_t k);

/* The constant that input k is.  UNSUPPORTED where it is not: its value decides a size. `what` is the standard's name.
 */
STATUS_MUST_USE status onnx_const_literal(const onnx_node *n, uint32_t k, const char *what, const literal **out);
/* For importers that fail for want of a constant without asking for it by onnx_const_*: notes that input k would have
 * to be one.  The node is then imported again once its content is known. */
void onnx_require_constant(const onnx_node *n, uint32_t k);
/* The same if input k is one of the model's inputs or computed from a few numbers of theirs; otherwise false. */
bool onnx_require_inputs(const onnx_node *n, uint32_t k);
/* Notes that the node's bodies must be run one by one, outside of a module. */
void onnx_require_interpreter(const onnx_node *n);
/* The same as integers, of an s64, s32 or other integer array of rank 0 or 1. */
STATUS_MUST_USE status onnx_const_ints(const onnx_node *n, uint32_t k, const char *what, const int64_t **values,
                                       int64_t *count);
STATUS_MUST_USE status onnx_const_floats(const onnx_node *n, uint32_t k, const char *what, const double **values,
                                         int64_t *count);

/* axis in [-rank, rank) to [0, rank). */
STATUS_MUST_USE status onnx_axis(int64_t axis, int64_t rank, int64_t *out);
/* The same for a list without duplicates; sorts it ascending.  out has room for SHAPE_MAX_RANK. */
STATUS_MUST_USE status onnx_axes(const int64_t *axes, size_t n, int64_t rank, int64_t *out);
/* The integer list that an operator takes as attribute in old versions and as input k in new ones: *values NULL when
 * absent. */
STATUS_MUST_USE status onnx_ints_attr_or_input(const onnx_node *n, const char *name, uint32_t k, const int64_t **values,
                                               int64_t *count);

/* A literal of a TensorProto of this model (attribute `value` and the like). */
STATUS_MUST_USE status onnx_node_tensor(const onnx_node *n, const Onnx__TensorProto *t, literal *out);
STATUS_MUST_USE status onnx_node_sparse_tensor(const onnx_node *n, const Onnx__SparseTensorProto *t, literal *out);

/* --- subgraphs (If, Loop, Scan) --- */

/* What bodies take from around them, shared by all bodies of one node: each body has its own inputs as its first
 * parameters, then one parameter a capture in this order. */
typedef struct onnx_captures {
  uint32_t n, cap;
  hlo_value *outer;
} onnx_captures;

/* The graph attribute as a computation of its own, with n_inputs parameters of the given shapes and the graph's outputs
 * as roots.  Constants from outside are copied in, other outer values captured.  known[k] not NULL: input k is that
 * constant inside (its parameter stays, unused).  step: the parameter that is the number of the step of a loop, s64[],
 * which may stand behind the graph's own inputs; -1 means none. */
STATUS_MUST_USE status onnx_import_body(onnx_node *n, const char *attribute, uint32_t n_inputs, const shape *shapes,
                                        const literal *const *known, int64_t step, onnx_captures *captures,
                                        hlo_computation **out);
/* Gives a body parameters for the captures that only its siblings met. */
void onnx_finish_body(const onnx_captures *captures, uint32_t n_inputs, hlo_computation *body);
/* The graph attribute right here: its inputs are `inputs`, its outputs go to out (n_outputs must be its count).  step:
 * as a value; no value: it is no loop's body. */
STATUS_MUST_USE status onnx_import_inline(onnx_node *n, const char *attribute, uint32_t n_inputs,
                                          const hlo_value *inputs, hlo_value step, uint32_t n_outputs, hlo_value *out);

/* Every importer of the table. */
#define ONNX(domain, name, since, min_in, max_in, min_out, max_out, sizes, work, host, importer) \
  onnx_import_fn onnx_import_##importer;
#include "frontend/import/onnx_ops.def"

#endif
