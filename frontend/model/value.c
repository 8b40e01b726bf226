/* value.c - see value.h. */
#include "frontend/model/value.h"

#include <inttypes.h>

#include "frontend/model/tensor.h"
#include "frontend/model/wire_scan.h"
#include "frontend/onnx.pb-c.h"

/* --- reading --- */

static status read_sequence(arena *a, const onnx_source *src, const Onnx__SequenceProto *s, dtype type, literal *out) {
  bool tensors = s->elem_type == ONNX__SEQUENCE_PROTO__DATA_TYPE__TENSOR;
  CHECK_THAT(tensors || (s->n_tensor_values == 0 && s->elem_type == ONNX__SEQUENCE_PROTO__DATA_TYPE__UNDEFINED),
             STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE,
             "a sequence of the element type %" PRId32 "; it must be %d, TENSOR", s->elem_type,
             ONNX__SEQUENCE_PROTO__DATA_TYPE__TENSOR);
  literal *items = ARENA_NEW_N(a, literal, s->n_tensor_values);
  literal_list *list = ARENA_NEW(a, literal_list);
  *list = (literal_list){(uint32_t)s->n_tensor_values, items};
  for (uint32_t k = 0; k < list->n; k++) {
    TRY(status_prefix(onnx_tensor_literal(a, src, s->tensor_values[k], &items[k]), "tensor %" PRIu32, k));
    type = k ? type : (dtype)items[0].shape.type;
    CHECK_THAT(items[k].shape.type == type, STATUS_INVALID_MODEL | STATUS_ABOUT_TYPE,
               "tensor %" PRIu32 " of the sequence is %s, but tensor 0 is %s", k, SHAPE_STR(NULL, &items[k].shape),
               SHAPE_STR(NULL, &items[0].shape));
  }
  *out = literal_sequence(type, list);
  return NULL;
}

static status read_optional(arena *a, const onnx_source *src, const Onnx__OptionalProto *o, dtype type, literal *out) {
  switch (o->elem_type) {
    case ONNX__OPTIONAL_PROTO__DATA_TYPE__UNDEFINED: *out = literal_absent(type); return NULL;
    case ONNX__OPTIONAL_PROTO__DATA_TYPE__TENSOR:
      CHECK_THAT(o->tensor_value, STATUS_INVALID_MODEL, "an optional tensor that has no tensor_value");
      return onnx_tensor_literal(a, src, o->tensor_value, out);
    case ONNX__OPTIONAL_PROTO__DATA_TYPE__SEQUENCE:
      CHECK_THAT(o->sequence_value, STATUS_INVALID_MODEL, "an optional sequence that has no sequence_value");
      return read_sequence(a, src, o->sequence_value, type, out);
    default:
      return status_error(STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE,
                          "an optional of the element type %" PRId32 "; tensors and sequences are supported",
                          o->elem_type);
  }
}

static status parse_list(arena *a, const onnx_source *src, const shape *declared, const char **name, literal *out) {
  ProtobufCMessage *message;
  bool optional = declared->kind == SHAPE_OPTIONAL;
  TRY(onnx_wire_parse(a, optional ? &onnx__optional_proto__descriptor : &onnx__sequence_proto__descriptor, src->bytes,
                      src->size, &message));
  if (optional) {
    const Onnx__OptionalProto *o = (const Onnx__OptionalProto *)message;
    *name = o->name;
    return read_optional(a, src, o, (dtype)declared->type, out);
  }
  const Onnx__SequenceProto *s = (const Onnx__SequenceProto *)message;
  *name = s->name;
  return read_sequence(a, src, s, (dtype)declared->type, out);
}

status onnx_value_parse_pb(arena *a, const char *what, const void *bytes, size_t size, const shape *declared,
                           string_table *strings, const char **name, literal *out) {
  if (shape_is_array(declared)) {
    return onnx_tensor_parse_pb(a, what, bytes, size, strings, name, out);
  }
  onnx_source src = {.name = what, .bytes = bytes, .size = size, .strings = strings};
  return status_prefix(parse_list(a, &src, declared, name, out), "%s", what);
}

status onnx_value_read_pb(arena *a, const char *path, const shape *declared, string_table *strings, const char **name,
                          literal *out) {
  onnx_source src;
  TRY(onnx_source_open(a, path, &src));
  return onnx_value_parse_pb(a, src.name, src.bytes, src.size, declared, strings, name, out);
}

/* --- writing --- */

static status make_sequence(arena *a, const char *name, const literal *l, const string_table *strings,
                            Onnx__SequenceProto *out) {
  const literal_list *list = literal_elements(l);
  onnx__sequence_proto__init(out);
  out->name = arena_strdup(a, name);
  out->has_elem_type = 1;
  out->elem_type = ONNX__SEQUENCE_PROTO__DATA_TYPE__TENSOR;
  out->n_tensor_values = list->n;
  out->tensor_values = ARENA_NEW_N(a, Onnx__TensorProto *, list->n);
  for (uint32_t k = 0; k < list->n; k++) {
    out->tensor_values[k] = ARENA_NEW(a, Onnx__TensorProto);
    TRY(onnx_tensor_from_literal(a, "", &list->items[k], strings, out->tensor_values[k]));
  }
  return NULL;
}

static status make_optional(arena *a, const char *name, const literal *l, const string_table *strings,
                            Onnx__OptionalProto *out) {
  onnx__optional_proto__init(out);
  out->name = arena_strdup(a, name);
  out->has_elem_type = 1;
  switch (l->shape.kind) {
    case SHAPE_OPTIONAL: out->elem_type = ONNX__OPTIONAL_PROTO__DATA_TYPE__UNDEFINED; return NULL;
    case SHAPE_SEQUENCE:
      out->elem_type = ONNX__OPTIONAL_PROTO__DATA_TYPE__SEQUENCE;
      out->sequence_value = ARENA_NEW(a, Onnx__SequenceProto);
      return make_sequence(a, "", l, strings, out->sequence_value);
    default:
      out->elem_type = ONNX__OPTIONAL_PROTO__DATA_TYPE__TENSOR;
      out->tensor_value = ARENA_NEW(a, Onnx__TensorProto);
      return onnx_tensor_from_literal(a, "", l, strings, out->tensor_value);
  }
}

status onnx_value_to_pb(arena *a, const char *name, shape_kind declared, const literal *l, const string_table *strings,
                        uint8_t **bytes, size_t *size) {
  Onnx__SequenceProto sequence;
  Onnx__OptionalProto optional;
  const ProtobufCMessage *message = &sequence.base;
  if (declared == SHAPE_OPTIONAL) {
    TRY(make_optional(a, name, l, strings, &optional));
    message = &optional.base;
  } else if (l->shape.kind == SHAPE_SEQUENCE) {
    TRY(make_sequence(a, name, l, strings, &sequence));
  } else {
    return onnx_tensor_to_pb(a, name, l, strings, bytes, size);
  }
  *size = protobuf_c_message_get_packed_size(message);
  *bytes = arena_alloc(a, *size);
  protobuf_c_message_pack(message, *bytes);
  return NULL;
}
