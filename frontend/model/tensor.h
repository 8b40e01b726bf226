/* tensor.h - converts ONNX tensors to literals and back. */
#ifndef FRONTEND_MODEL_TENSOR_H
#define FRONTEND_MODEL_TENSOR_H

#include "base/tensor/literal.h"
#include "frontend/onnx.pb-c.h"
#include "frontend/model/source.h"

/* Returns the elements of a tensor.  Large raw data stays in the mapped file if it is aligned; everything else is on
 * `a`.  So the literal lives as long as both.  Types below a byte are unpacked to one byte each, bools become 0 or 1.
 * src says where cut-out data and external data are; it is NULL if the tensor has neither.  Errors name the tensor:
 * INVALID_MODEL (dims and data disagree, wrong field, ...), UNSUPPORTED (strings, segments, rank above SHAPE_MAX_RANK),
 * and those of external_data.h. */
STATUS_MUST_USE status onnx_tensor_literal(arena *a, const onnx_source *src, const Onnx__TensorProto *t, literal *out);
/* Does the same, but large f32 arrays stay in the file even if they are not aligned (see literal.h).  Weights are
 * packed from there, and a copy of all of them would be half of the memory that a model takes. */
STATUS_MUST_USE status onnx_tensor_weights(arena *a, const onnx_source *src, const Onnx__TensorProto *t, literal *out);

/* Returns a sparse tensor as a dense array.  Indices that are out of range or do not ascend are refused. */
STATUS_MUST_USE status onnx_sparse_tensor_literal(arena *a, const onnx_source *src, const Onnx__SparseTensorProto *t,
                                                  literal *out);

/* Returns type and dimensions only; reads no data. */
STATUS_MUST_USE status onnx_tensor_shape(const Onnx__TensorProto *t, shape *out);

/* Reads a .pb file, which is one TensorProto.  *name may be "". */
STATUS_MUST_USE status onnx_tensor_read_pb(arena *a, const char *path, const char **name, literal *out);
/* Does the same with bytes in memory, which are borrowed.  Messages start with `what`. */
STATUS_MUST_USE status onnx_tensor_parse_pb(arena *a, const char *what, const void *bytes, size_t size,
                                            const char **name, literal *out);

/* Returns a TensorProto with raw_data.  The elements are borrowed if they can stay as they are. */
STATUS_MUST_USE status onnx_tensor_from_literal(arena *a, const char *name, const literal *l, Onnx__TensorProto *out);
/* Returns its bytes, on the arena. */
STATUS_MUST_USE status onnx_tensor_to_pb(arena *a, const char *name, const literal *l, uint8_t **bytes, size_t *size);

#endif
