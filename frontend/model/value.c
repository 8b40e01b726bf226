/* value.c - see value.h. */
#include "frontend/model/value.h"

#include <inttypes.h>
#include <string.h>

#include "frontend/model/tensor.h"
#include "frontend/model/wire_scan.h"
#include "frontend/onnx.pb-c.h"

/* --- reading --- */

/* Reads a tensor of one element as element k of an array, which is made for the first one. */
static status read_map_value(arena *a, const onnx_source *src, const Onnx__SequenceProto *s, uint32_t k, literal *all) {
  literal one;
  TRY(status_prefix(onnx_tensor_literal(a, src, s->tensor_values[k], &one), "value %" PRIu32, k));
  CHECK_THAT(shape_elements(&one.shape) == 1, STATUS_UNSUPPORTED, "value %" PRIu32 " is %s; one element is supported",
             k, SHAPE_STR(NULL, &one.shape));
  if (k == 0) {
    void *data;
    int64_t n = (int64_t)s->n_tensor_values;
    *all = literal_new(a, shape_make((dtype)one.shape.type, 1, &n), &data);
  }
  CHECK_THAT(one.shape.type == all->shape.type, STATUS_INVALID_MODEL | STATUS_ABOUT_TYPE,
             "value %" PRIu32 " is %s, but value 0 is %s", k, dtype_name((dtype)one.shape.type),
             dtype_name((dtype)all->shape.type));
  size_t width = dtype_bytes((dtype)one.shape.type);
  memcpy((char *)(uintptr_t)all->data + k * width, one.data, width);
  return NULL;
}

static status read_keys(arena *a, const onnx_source *src, const Onnx__MapProto *m, literal *out) {
  dtype type = dtype_from_onnx(m->key_type);
  int64_t n = (int64_t)(type == DTYPE_STR ? m->n_string_keys : m->n_keys);
  void *data;
  CHECK_THAT(type == DTYPE_S64 || type == DTYPE_STR, STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE,
             "a map with keys of the type %" PRId32 "; int64 and strings are supported", m->key_type);
  CHECK_THAT(type == DTYPE_S64 || src->strings, STATUS_UNSUPPORTED, "strings are not supported here");
  *out = literal_new(a, shape_make(type, 1, &n), &data);
  for (int64_t k = 0; k < n; k++) {
    const ProtobufCBinaryData *text = type == DTYPE_STR ? &m->string_keys[k] : NULL;
    ((int64_t *)data)[k] =
        text ? (int64_t)string_table_add(src->strings, text->len ? (const char *)text->data : "", text->len)
             : m->keys[k];
  }
  return NULL;
}

static status read_map(arena *a, const onnx_source *src, const Onnx__MapProto *m, dtype type, literal *out) {
  literal *parts = ARENA_NEW_N(a, literal, 2);
  literal_list *list = ARENA_NEW(a, literal_list);
  uint32_t n = m->values ? (uint32_t)m->values->n_tensor_values : 0;
  TRY(read_keys(a, src, m, &parts[0]));
  CHECK_THAT(parts[0].shape.dims[0] == n, STATUS_INVALID_MODEL, "a map of %" PRId64 " keys and %" PRIu32 " values",
             parts[0].shape.dims[0], n);
  parts[1] = literal_make(shape_make(type, 1, (dim[]){0}), "");
  for (uint32_t k = 0; k < n; k++) {
    TRY(read_map_value(a, src, m->values, k, &parts[1]));
  }
  *list = (literal_list){2, parts};
  *out = literal_map(list);
  return NULL;
}

/* Fails unless the elements of a sequence have one type. */
static status check_alike(const literal_list *list) {
  for (uint32_t k = 1; k < list->n; k++) {
    CHECK_THAT(list->items[k].shape.type == list->items[0].shape.type, STATUS_INVALID_MODEL | STATUS_ABOUT_TYPE,
               "element %" PRIu32 " of the sequence is %s, but element 0 is %s", k,
               SHAPE_STR(NULL, &list->items[k].shape), SHAPE_STR(NULL, &list->items[0].shape));
  }
  return NULL;
}

static status read_sequence(arena *a, const onnx_source *src, const Onnx__SequenceProto *s, dtype type, literal *out) {
  bool maps = s->elem_type == ONNX__SEQUENCE_PROTO__DATA_TYPE__MAP;
  size_t n = maps ? s->n_map_values : s->n_tensor_values;
  CHECK_THAT(maps || s->elem_type == ONNX__SEQUENCE_PROTO__DATA_TYPE__TENSOR ||
                 (n == 0 && s->elem_type == ONNX__SEQUENCE_PROTO__DATA_TYPE__UNDEFINED),
             STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE,
             "a sequence of the element type %" PRId32 "; tensors and maps are supported", s->elem_type);
  literal *items = ARENA_NEW_N(a, literal, n);
  literal_list *list = ARENA_NEW(a, literal_list);
  *list = (literal_list){(uint32_t)n, items};
  for (uint32_t k = 0; k < list->n; k++) {
    status failed = maps ? read_map(a, src, s->map_values[k], type, &items[k])
                         : onnx_tensor_literal(a, src, s->tensor_values[k], &items[k]);
    TRY(status_prefix(failed, "element %" PRIu32, k));
  }
  TRY(check_alike(list));
  *out = literal_sequence(n ? (dtype)items[0].shape.type : type, list);
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
  const ProtobufCMessageDescriptor *messages[] = {[SHAPE_SEQUENCE] = &onnx__sequence_proto__descriptor,
                                                  [SHAPE_OPTIONAL] = &onnx__optional_proto__descriptor,
                                                  [SHAPE_MAP] = &onnx__map_proto__descriptor};
  ProtobufCMessage *message;
  dtype type = (dtype)declared->type;
  TRY(onnx_wire_parse(a, messages[declared->kind], src->bytes, src->size, &message));
  switch (declared->kind) {
    case SHAPE_SEQUENCE:
      *name = ((const Onnx__SequenceProto *)message)->name;
      return read_sequence(a, src, (const Onnx__SequenceProto *)message, type, out);
    case SHAPE_OPTIONAL:
      *name = ((const Onnx__OptionalProto *)message)->name;
      return read_optional(a, src, (const Onnx__OptionalProto *)message, type, out);
    default:
      *name = ((const Onnx__MapProto *)message)->name;
      return read_map(a, src, (const Onnx__MapProto *)message, type, out);
  }
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

static status make_keys(arena *a, const char *name, const literal *keys, const string_table *strings,
                        Onnx__MapProto *out) {
  if (keys->shape.type == DTYPE_STR) {
    return onnx_strings_to_bytes(a, name, keys, strings, &out->string_keys, &out->n_string_keys);
  }
  out->n_keys = (size_t)shape_elements(&keys->shape);
  out->keys = arena_memdup(a, keys->data, out->n_keys * sizeof *out->keys);
  return NULL;
}

static status make_map(arena *a, const char *name, const literal *l, const string_table *strings, Onnx__MapProto *out) {
  const literal *keys = &literal_elements(l)->items[0], *values = &literal_elements(l)->items[1];
  dtype type = (dtype)values->shape.type;
  onnx__map_proto__init(out);
  out->name = arena_strdup(a, name);
  out->has_key_type = 1;
  out->key_type = dtype_get_info((dtype)keys->shape.type)->onnx;
  TRY(make_keys(a, name, keys, strings, out));
  Onnx__SequenceProto *all = out->values = ARENA_NEW(a, Onnx__SequenceProto);
  onnx__sequence_proto__init(all);
  all->has_elem_type = 1;
  all->elem_type = ONNX__SEQUENCE_PROTO__DATA_TYPE__TENSOR;
  all->n_tensor_values = (size_t)shape_elements(&values->shape);
  all->tensor_values = ARENA_NEW_N(a, Onnx__TensorProto *, all->n_tensor_values);
  for (size_t k = 0; k < all->n_tensor_values; k++) {
    literal one = literal_make(shape_scalar(type), (const char *)values->data + k * dtype_bytes(type));
    all->tensor_values[k] = ARENA_NEW(a, Onnx__TensorProto);
    TRY(onnx_tensor_from_literal(a, "", &one, strings, all->tensor_values[k]));
  }
  return NULL;
}

static status make_sequence(arena *a, const char *name, const literal *l, const string_table *strings,
                            Onnx__SequenceProto *out) {
  const literal_list *list = literal_elements(l);
  bool maps = list->n && list->items[0].shape.kind == SHAPE_MAP;
  onnx__sequence_proto__init(out);
  out->name = arena_strdup(a, name);
  out->has_elem_type = 1;
  out->elem_type = maps ? ONNX__SEQUENCE_PROTO__DATA_TYPE__MAP : ONNX__SEQUENCE_PROTO__DATA_TYPE__TENSOR;
  out->tensor_values = ARENA_NEW_N(a, Onnx__TensorProto *, maps ? 0 : list->n);
  out->map_values = ARENA_NEW_N(a, Onnx__MapProto *, maps ? list->n : 0);
  for (uint32_t k = 0; k < list->n; k++) {
    if (maps) {
      Onnx__MapProto *m = out->map_values[out->n_map_values++] = ARENA_NEW(a, Onnx__MapProto);
      TRY(make_map(a, "", &list->items[k], strings, m));
    } else {
      Onnx__TensorProto *t = out->tensor_values[out->n_tensor_values++] = ARENA_NEW(a, Onnx__TensorProto);
      TRY(onnx_tensor_from_literal(a, "", &list->items[k], strings, t));
    }
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
  Onnx__MapProto map;
  const ProtobufCMessage *message = &sequence.base;
  if (declared == SHAPE_OPTIONAL) {
    TRY(make_optional(a, name, l, strings, &optional));
    message = &optional.base;
  } else if (l->shape.kind == SHAPE_SEQUENCE) {
    TRY(make_sequence(a, name, l, strings, &sequence));
  } else if (l->shape.kind == SHAPE_MAP) {
    TRY(make_map(a, name, l, strings, &map));
    message = &map.base;
  } else {
    return onnx_tensor_to_pb(a, name, l, strings, bytes, size);
  }
  *size = protobuf_c_message_get_packed_size(message);
  *bytes = arena_alloc(a, *size);
  protobuf_c_message_pack(message, *bytes);
  return NULL;
}
