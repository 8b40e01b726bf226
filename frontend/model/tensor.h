/* tensor.h - ONNX tensors to literals and back. */
#ifndef FRONTEND_MODEL_TENSOR_H
#define FRONTEND_MODEL_TENSOR_H

#include "base/tensor/literal.h"
#include "frontend/onnx.pb-c.h"
#include "frontend/model/source.h"

/* The elements of a tensor.  Large raw data stays a span of the mapped file where its alignment allows; all else is
 * made on `a`: the literal lives as long as both.  Sub-byte types are unpacked to a byte each, bools become 0 or 1.
 * src says where spans and external data lie; NULL means the tensor has neither. Errors name the tensor: INVALID_MODEL
 * (dims and data disagree, wrong field, ...), UNSUPPORTED (strings, segments, rank above SHAPE_MAX_RANK), and those of
 * external_data.h. */
STATUS_MUST_USE status onnx_tensor_literal(arena *a, const onnx_source *src, const Onnx__TensorProto *t, literal *out);
/* The same, but large f32 arrays stay where they are even if that is no place for floats (see literal.h): weights are
 * packed from there, and a copy of all of them would be half of what a model takes. */
STATUS_MUST_USE status onnx_tensor_weights(arena *a, const onnx_source *src, const Onnx__TensorProto *t, literal *out);

/* The same array, dense.  Indices out of range or not ascending are refused. */
STATUS_MUST_USE status onnx_sparse_tensor_literal(arena *a, const onnx_source *src, const Onnx__SparseTensorProto *t,
                                                  literal *out);

/* Type and dims alone; no data is read. */
STATUS_MUST_USE status onnx_tensor_shape(const Onnx__TensorProto *t, shape *out);

/* A .pb file: one TensorProto.  *name may be "". */
STATUS_MUST_USE status onnx_tensor_read_pb(arena *a, const char *path, const char **name, literal *out);
/* The same from memory that is borrowed; `what` starts messages. */
STATUS_MUST_USE status onnx_tensor_parse_pb(arena *a, const char *what, const void *bytes, size_t size,
                                            const char **name, literal *out);

/* A TensorProto with raw_data; the elements are borrowed where they can stay as they are. */
STATUS_MUST_USE status onnx_tensor_from_literal(arena *a, const char *name, const literal *l, Onnx__TensorProto *out);
/* Its bytes, on the arena. */
STATUS_MUST_USE status onnx_tensor_to_pb(arena *a, const char *name, const literal *l, uint8_t **bytes, size_t *size);

#endif
