/* value.h - converts sequences, maps and optionals in .pb files (SequenceProto, MapProto, OptionalProto) to literals
 * (literal_list.h) and back. */
#ifndef FRONTEND_MODEL_VALUE_H
#define FRONTEND_MODEL_VALUE_H

#include "base/tensor/literal_list.h"
#include "base/tensor/string_table.h"

/* Reads a .pb file.  The kind of `declared` says which message it has: a TensorProto, SequenceProto, MapProto or
 * OptionalProto. Its type is the one of a sequence without elements, and of an optional without one.  *name is the
 * value's name, which may be "".  Strings are added to the table, which is NULL if they are to be refused.  Errors are
 * those of onnx_tensor_read_pb. */
STATUS_MUST_USE status onnx_value_read_pb(arena *a, const char *path, const shape *declared, string_table *strings,
                                          const char **name, literal *out);
/* Does the same with bytes in memory, which must live as long as the literal.  Messages start with `what`. */
STATUS_MUST_USE status onnx_value_parse_pb(arena *a, const char *what, const void *bytes, size_t size,
                                           const shape *declared, string_table *strings, const char **name,
                                           literal *out);
/* Returns the serialized message of a literal, on the arena; `declared` is the kind that the value is declared to have,
 * since an optional with an element is a literal of another kind.  `strings` is as for onnx_tensor_from_literal. */
STATUS_MUST_USE status onnx_value_to_pb(arena *a, const char *name, shape_kind declared, const literal *l,
                                        const string_table *strings, uint8_t **bytes, size_t *size);

#endif
