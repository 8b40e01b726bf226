/* tensor.h - converts ONNX tensors to literals and back. */
#ifndef FRONTEND_MODEL_TENSOR_H
#define FRONTEND_MODEL_TENSOR_H

#include "base/tensor/string_table.h"
#include "base/tensor/literal.h"
#include "frontend/onnx.pb-c.h"
#include "frontend/model/source.h"

/* Returns the elements of a tensor.  Those that are aligned, need no conversion and are not in int32_data are not
 * copied: they stay in the message `t`, or in the bytes of the model or of a file of external data.  All others are
 * copied to `a`.  So the literal is valid as long as these bytes, `t` and `a` are.  Elements smaller than a byte are
 * unpacked to one byte each, and bools become 0 or 1.  `src` has the bytes of payloads that the wire scan left out of
 * the message (wire_scan.h), and the folder of external data; `src` may be NULL if the tensor has neither.  Errors name
 * the tensor: INVALID_MODEL (dims and data disagree, or the data is in a wrong field), UNSUPPORTED (strings if
 * src->strings is NULL, unknown element types, TensorProto.segment, a rank above SHAPE_MAX_RANK), and those of
 * external_data.h. */
STATUS_MUST_USE status onnx_tensor_literal(arena *a, const onnx_source *src, const Onnx__TensorProto *t, literal *out);
/* Like onnx_tensor_literal, but large f32 arrays are not copied even if they are not aligned (see literal_aligned in
 * literal.h).  Kernels read packed copies of the weights, so an additional aligned copy would double their memory. */
STATUS_MUST_USE status onnx_tensor_weights(arena *a, const onnx_source *src, const Onnx__TensorProto *t, literal *out);

/* Returns a sparse tensor as a dense array.  Indices that are out of range or do not ascend are refused. */
STATUS_MUST_USE status onnx_sparse_tensor_literal(arena *a, const onnx_source *src, const Onnx__SparseTensorProto *t,
                                                  literal *out);

/* Returns the element type and the dimensions without reading the elements. */
STATUS_MUST_USE status onnx_tensor_shape(const Onnx__TensorProto *t, shape *out);

/* Reads a .pb file, which holds one TensorProto.  *name is the tensor's name, which may be "".  Strings are added to
 * the table, which is NULL if they are to be refused. */
STATUS_MUST_USE status onnx_tensor_read_pb(arena *a, const char *path, string_table *strings, const char **name,
                                           literal *out);
/* Like onnx_tensor_read_pb, but with bytes in memory, which must live as long as the literal.  Messages start with
 * `what`. */
STATUS_MUST_USE status onnx_tensor_parse_pb(arena *a, const char *what, const void *bytes, size_t size,
                                            string_table *strings, const char **name, literal *out);

/* Sets *out to the bytes of the strings of an array, which stay in the table; NULL means that strings are refused.
 * Errors begin with `name`. */
STATUS_MUST_USE status onnx_strings_to_bytes(arena *a, const char *name, const literal *l, const string_table *strings,
                                             ProtobufCBinaryData **out, size_t *n);
/* Writes a literal into *out as a TensorProto with raw_data.  raw_data points to the literal's own elements, except for
 * types smaller than a byte, whose elements are packed onto `a`, and strings, whose bytes stay in the table; NULL means
 * that they are refused. */
STATUS_MUST_USE status onnx_tensor_from_literal(arena *a, const char *name, const literal *l,
                                                const string_table *strings, Onnx__TensorProto *out);
/* Returns the serialized TensorProto of a literal, on the arena. */
STATUS_MUST_USE status onnx_tensor_to_pb(arena *a, const char *name, const literal *l, const string_table *strings,
                                         uint8_t **bytes, size_t *size);

#endif
