/* attributes.h - typed access to the attributes of a node, and the node's name for messages.
 *
 * Every accessor returns the default if the attribute is absent and fails with STATUS_INVALID_MODEL if it has another
 * type.  An attribute that states no type and has no value is accepted as 0, or as an empty string or list; where a
 * tensor, a type or a graph is wanted, it is an error.  Messages name the attribute, and the caller adds the node's
 * name (onnx_node_label).  Arrays and messages are borrowed from the model. */
#ifndef FRONTEND_MODEL_ATTRIBUTES_H
#define FRONTEND_MODEL_ATTRIBUTES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "frontend/onnx.pb-c.h"

/* Returns the attribute of that name, or NULL if it is absent.  In a function's body it may be a reference to an
 * attribute of the function (ref_attr_name is set); onnx_node_bind in functions.h replaces such references. */
const Onnx__AttributeProto *onnx_attr_find(const Onnx__NodeProto *node, const char *name);
bool onnx_attr_has(const Onnx__NodeProto *node, const char *name);
/* Returns the declared type or, if none is declared, the type that the set fields imply. */
Onnx__AttributeProto__AttributeType onnx_attr_type(const Onnx__AttributeProto *attribute);

STATUS_MUST_USE status onnx_attr_int(const Onnx__NodeProto *node, const char *name, int64_t def, int64_t *out);
/* Returns an integer attribute; the error is INVALID_MODEL if the value is outside of [low, high]. */
STATUS_MUST_USE status onnx_attr_int_in(const Onnx__NodeProto *node, const char *name, int64_t def, int64_t low,
                                        int64_t high, int64_t *out);
/* Sets *out to whether an integer attribute is not 0. */
STATUS_MUST_USE status onnx_attr_bool(const Onnx__NodeProto *node, const char *name, bool def, bool *out);
STATUS_MUST_USE status onnx_attr_float(const Onnx__NodeProto *node, const char *name, float def, float *out);
/* Returns a NUL-terminated copy on the arena, or `def`, which may be NULL, if the attribute is absent.  A string that
 * contains a NUL is refused. */
STATUS_MUST_USE status onnx_attr_string(arena *a, const Onnx__NodeProto *node, const char *name, const char *def,
                                        const char **out);

/* Set *values and *n to a list: *values is NULL and *n is 0 if the attribute is absent; use onnx_attr_has to tell
 * absent from empty. */
STATUS_MUST_USE status onnx_attr_ints(const Onnx__NodeProto *node, const char *name, const int64_t **values, size_t *n);
STATUS_MUST_USE status onnx_attr_floats(const Onnx__NodeProto *node, const char *name, const float **values, size_t *n);
/* Returns the strings as they are in the message, with any bytes. */
STATUS_MUST_USE status onnx_attr_byte_strings(const Onnx__NodeProto *node, const char *name,
                                              const ProtobufCBinaryData **values, size_t *n);
/* Returns NUL-terminated copies on the arena. */
STATUS_MUST_USE status onnx_attr_strings(arena *a, const Onnx__NodeProto *node, const char *name,
                                         const char *const **values, size_t *n);

/* Set *out to NULL if the attribute is absent. */
STATUS_MUST_USE status onnx_attr_tensor(const Onnx__NodeProto *node, const char *name, const Onnx__TensorProto **out);
STATUS_MUST_USE status onnx_attr_sparse_tensor(const Onnx__NodeProto *node, const char *name,
                                               const Onnx__SparseTensorProto **out);
STATUS_MUST_USE status onnx_attr_type_proto(const Onnx__NodeProto *node, const char *name, const Onnx__TypeProto **out);
/* Sets *out to a graph; unlike the functions above, it fails if the attribute is absent. */
STATUS_MUST_USE status onnx_attr_graph(const Onnx__NodeProto *node, const char *name, const Onnx__GraphProto **out);

/* Returns an error if the attribute is absent. */
STATUS_MUST_USE status onnx_attr_required(const Onnx__NodeProto *node, const char *name);

/* Returns the label of a node for messages, on the arena: `fc1: Gemm` if the node has a name, otherwise `Gemm that
 * makes "y"` with its first output that has a name, or `Gemm` if there is none.  A domain other than the standard's is
 * put before the operator: `fc1: com.microsoft.FusedGemm`. */
const char *onnx_node_label(arena *a, const Onnx__NodeProto *node);
/* Returns the name by which HLO instructions refer to the node that they come from (hlo_instr.source), on the arena:
 * "fc1: Gemm" or, if the node has no name, "y: Gemm" with its first output.  The name does not contain the operator's
 * domain. */
const char *onnx_node_source(arena *a, const Onnx__NodeProto *node);

#endif
