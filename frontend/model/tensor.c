/* tensor.c - converts a TensorProto to a literal and back. */
#include "frontend/model/tensor.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "frontend/model/external_data.h"
#include "frontend/model/wire_scan.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensor data in a model is little-endian and is read in place, so the machine must be little-endian"
#endif

/* The field numbers of those fields of TensorProto that hold elements. */
typedef enum field {
  FIELD_NONE = 0,
  FIELD_FLOAT = 4,
  FIELD_INT32 = 5,
  FIELD_STRING = 6,
  FIELD_INT64 = 7,
  FIELD_RAW = 9,
  FIELD_DOUBLE = 10,
  FIELD_UINT64 = 11,
  FIELD_EXTERNAL = 13
} field;

static const char *field_name(field f) {
  static const char *const names[] = {
      [FIELD_FLOAT] = "float_data",   [FIELD_INT32] = "int32_data",      [FIELD_STRING] = "string_data",
      [FIELD_INT64] = "int64_data",   [FIELD_RAW] = "raw_data",          [FIELD_DOUBLE] = "double_data",
      [FIELD_UINT64] = "uint64_data", [FIELD_EXTERNAL] = "external_data"};
  return f < sizeof names / sizeof *names && names[f] ? names[f] : "no data";
}

/* Returns the field in which the standard stores elements of this type if they are not in raw_data. */
static field field_of_type(dtype type) {
  switch (type) {
    case DTYPE_F32:
    case DTYPE_C64: return FIELD_FLOAT;
    case DTYPE_F64:
    case DTYPE_C128: return FIELD_DOUBLE;
    case DTYPE_S64: return FIELD_INT64;
    case DTYPE_U32:
    case DTYPE_U64: return FIELD_UINT64;
    case DTYPE_STR: return FIELD_STRING;
    default: return FIELD_INT32;
  }
}

/* --- element type and dimensions --- */

static status make_shape(int32_t data_type, const int64_t *dims, size_t n_dims, shape *out) {
  dtype type = dtype_from_onnx(data_type);
  CHECK_THAT(data_type != ONNX__TENSOR_PROTO__DATA_TYPE__UNDEFINED, STATUS_INVALID_MODEL, "has no element type");
  CHECK_THAT(type != DTYPE_INVALID, STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE, "has the unknown element type %" PRId32,
             data_type);
  CHECK_THAT(n_dims <= SHAPE_MAX_RANK, STATUS_UNSUPPORTED | STATUS_ABOUT_SHAPE, "has %zu dimensions, more than %d",
             n_dims, SHAPE_MAX_RANK);
  dim sizes[SHAPE_MAX_RANK];
  for (size_t i = 0; i < n_dims; i++) {
    CHECK_THAT(dims[i] >= 0, STATUS_INVALID_MODEL, "dimension %zu is %" PRId64, i, dims[i]);
    sizes[i] = dims[i] <= DIM_MAX ? dims[i] : DIM_OVERFLOW;
  }
  *out = shape_make(type, (int)n_dims, sizes);
  return shape_check(out, "its shape");
}

static status named(const Onnx__TensorProto *t, status s) {
  return status_prefix(s, *t->name ? "tensor \"%.200s\"" : "tensor%s", t->name);
}

static status tensor_shape(const Onnx__TensorProto *t, shape *out) {
  return make_shape(t->data_type, t->dims, t->n_dims, out);
}

status onnx_tensor_shape(const Onnx__TensorProto *t, shape *out) { return named(t, tensor_shape(t, out)); }

/* --- where the elements are --- */

/* Finds the field that has the elements, or FIELD_NONE.  It is an error if more than one field has elements. */
static status find_field(const Onnx__TensorProto *t, field *out) {
  const struct {
    field field;
    bool set;
  } fields[] = {
      {FIELD_EXTERNAL, t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL},
      {FIELD_RAW, t->raw_data.len || t->span_field == FIELD_RAW},
      {FIELD_FLOAT, t->n_float_data || t->span_field == FIELD_FLOAT},
      {FIELD_DOUBLE, t->n_double_data || t->span_field == FIELD_DOUBLE},
      {FIELD_INT32, t->n_int32_data > 0},
      {FIELD_INT64, t->n_int64_data > 0},
      {FIELD_UINT64, t->n_uint64_data > 0},
      {FIELD_STRING, t->n_string_data > 0},
  };
  *out = FIELD_NONE;
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    if (fields[i].set) {
      CHECK_THAT(*out == FIELD_NONE, STATUS_INVALID_MODEL, "has both %s and %s", field_name(*out),
                 field_name(fields[i].field));
      *out = fields[i].field;
    }
  }
  return NULL;
}

/* The elements of a tensor as bytes in the format of raw_data. */
typedef struct byte_span {
  const uint8_t *bytes;
  uint64_t size;
} byte_span;

/* Finds the bytes of a payload that the wire scan left out of the message, at the place that the fields span_offset and
 * span_length state (wire_scan.h). */
static status cut_span(const onnx_source *src, const Onnx__TensorProto *t, byte_span *out) {
  CHECK_THAT(src && t->span_length <= src->size && t->span_offset <= src->size - t->span_length, STATUS_INTERNAL,
             "its data was cut out, but lies outside the file");
  *out = (byte_span){src->bytes + t->span_offset, t->span_length};
  return NULL;
}

static status find_bytes(const onnx_source *src, const Onnx__TensorProto *t, field f, uint64_t size, byte_span *out) {
  if (f == FIELD_EXTERNAL) {
    out->size = size;
    return onnx_external_data(src ? src->folder : NULL, t, size, &out->bytes);
  }
  if (t->span_field) {
    return cut_span(src, t, out);
  }
  if (f == FIELD_RAW) {
    *out = (byte_span){t->raw_data.data, t->raw_data.len};
  } else if (f == FIELD_FLOAT) {
    *out = (byte_span){(const uint8_t *)t->float_data, t->n_float_data * sizeof(float)};
  } else {
    *out = (byte_span){(const uint8_t *)t->double_data, t->n_double_data * sizeof(double)};
  }
  return NULL;
}

static bool is_packed(dtype type) {
  const dtype_info *info = dtype_get_info(type);
  return info->bits < 8 && info->kind != DTYPE_CLASS_BOOL;
}

/* Returns the number of bytes that n elements take in a file, where types smaller than a byte are packed. */
static uint64_t packed_bytes(dtype type, int64_t n) {
  const dtype_info *info = dtype_get_info(type);
  uint64_t count = (uint64_t)n;
  return is_packed(type) ? count / 8 * info->bits + (count % 8 * info->bits + 7) / 8 : count * info->bytes;
}

/* --- decoding --- */

/* Unpacks n elements smaller than a byte to one byte each.  The first element is in the lowest bits; signed elements
 * are sign-extended.  An element of 6 bits may extend over two bytes. */
static void unpack(dtype type, const uint8_t *from, size_t n, uint8_t *to) {
  unsigned bits = dtype_get_info(type)->bits, mask = (1u << bits) - 1;
  unsigned sign = dtype_is_signed(type) ? 1u << (bits - 1) : 0;
  for (size_t i = 0; i < n; i++) {
    size_t byte = i / 8 * bits + i % 8 * bits / 8;
    unsigned shift = (unsigned)(i % 8) * bits % 8, value = (unsigned)from[byte] >> shift;
    value |= shift + bits > 8 ? (unsigned)from[byte + 1] << (8 - shift) : 0;
    to[i] = (uint8_t)(((value & mask) ^ sign) - sign);
  }
}

/* Does the reverse of unpack.  The caller must have set the bytes of `to` to 0. */
static void pack(dtype type, const uint8_t *from, size_t n, uint8_t *to) {
  unsigned bits = dtype_get_info(type)->bits, mask = (1u << bits) - 1;
  for (size_t i = 0; i < n; i++) {
    size_t byte = i / 8 * bits + i % 8 * bits / 8;
    unsigned shift = (unsigned)(i % 8) * bits % 8, value = (from[i] & mask) << shift;
    to[byte] |= (uint8_t)value;
    if (value > 255) {
      to[byte + 1] |= (uint8_t)(value >> 8);
    }
  }
}

static bool is_normal_bool(const uint8_t *bytes, uint64_t n) {
  unsigned all = 0;
  for (uint64_t i = 0; i < n; i++) {
    all |= bytes[i];
  }
  return all <= 1;
}

/* Returns n elements in the form that literals have, from bytes in the format of raw_data.  The result is `bytes`
 * itself if the elements need no conversion and are aligned.  If `anywhere` is true, the elements of a large f32 array
 * need not be aligned. */
static const void *decode_bytes(arena *a, dtype type, const uint8_t *bytes, int64_t n, bool anywhere) {
  enum { LARGE = 1 << 14 /* the number of elements from which an array counts as large */ };
  if (is_packed(type)) {
    uint8_t *data = arena_alloc(a, (size_t)n);
    unpack(type, bytes, (size_t)n, data);
    return data;
  }
  if (type == DTYPE_PRED && !is_normal_bool(bytes, (uint64_t)n)) {
    uint8_t *data = arena_alloc(a, (size_t)n);
    for (int64_t i = 0; i < n; i++) {
      data[i] = bytes[i] != 0;
    }
    return data;
  }
  size_t width = dtype_bytes(type);
  bool stays = (uintptr_t)bytes % width == 0 || (anywhere && type == DTYPE_F32 && n >= LARGE);
  return !stays ? arena_memdup(a, bytes, (size_t)n * width) : bytes;
}

/* Returns true if one element of int32_data holds one byte of packed elements.  Types of 6 bits have one element of
 * int32_data for each element instead, because 8 is not a multiple of 6. */
static bool is_packed_in_int32(dtype type) { return is_packed(type) && 8 % dtype_get_info(type)->bits == 0; }

/* Returns true if the value of one element of int32_data is valid for the type: a byte of packed elements, an integer
 * in the type's range, or the bits of a float, which some exporters sign-extend. */
static bool fits(dtype type, int64_t value) {
  unsigned bits = dtype_get_info(type)->bits;
  if (is_packed_in_int32(type)) {
    bits = 8;
  } else if (type == DTYPE_PRED) {
    return true;
  } else if (dtype_is_signed(type)) {
    return value >= -((int64_t)1 << (bits - 1)) && value < (int64_t)1 << (bits - 1);
  }
  bool sign_extended = bits >= 8 && (dtype_is_float(type) || is_packed(type));
  return value < (int64_t)1 << bits && value >= (sign_extended ? -((int64_t)1 << (bits - 1)) : 0);
}

static status decode_int32(arena *a, const Onnx__TensorProto *t, dtype type, int64_t n, const void **out) {
  bool packed = is_packed_in_int32(type);
  uint64_t count = packed ? packed_bytes(type, n) : (uint64_t)n;
  CHECK_THAT(t->n_int32_data == count, STATUS_INVALID_MODEL, "int32_data has %zu elements instead of %" PRIu64,
             t->n_int32_data, count);
  size_t width = packed ? 1 : dtype_bytes(type);
  uint8_t *data = arena_calloc(a, (size_t)count, width);
  for (size_t i = 0; i < count; i++) {
    int32_t value = t->int32_data[i];
    CHECK_THAT(fits(type, value), STATUS_INVALID_MODEL,
               "element %zu of int32_data is %" PRId32 ", outside of the range of %s", i, value, dtype_name(type));
    value = type == DTYPE_PRED ? value != 0 : value;
    memcpy(data + i * width, &value, width);
  }
  *out = packed ? decode_bytes(a, type, data, n, false) : data;
  return NULL;
}

static status decode_uint64(arena *a, const Onnx__TensorProto *t, dtype type, int64_t n, const void **out) {
  CHECK_THAT(t->n_uint64_data == (uint64_t)n, STATUS_INVALID_MODEL, "uint64_data has %zu elements instead of %" PRId64,
             t->n_uint64_data, n);
  if (type == DTYPE_U64) {
    *out = t->uint64_data;
    return NULL;
  }
  uint32_t *data = ARENA_NEW_N(a, uint32_t, (size_t)n);
  for (int64_t i = 0; i < n; i++) {
    CHECK_THAT(t->uint64_data[i] <= UINT32_MAX, STATUS_INVALID_MODEL,
               "element %" PRId64 " of uint64_data is %" PRIu64 ", outside of the range of u32", i, t->uint64_data[i]);
    data[i] = (uint32_t)t->uint64_data[i];
  }
  *out = data;
  return NULL;
}

/* Returns the numbers of the strings. */
static status decode_strings(arena *a, const onnx_source *src, const Onnx__TensorProto *t, int64_t n,
                             const void **out) {
  CHECK_THAT(t->n_string_data == (uint64_t)n, STATUS_INVALID_MODEL, "string_data has %zu elements instead of %" PRId64,
             t->n_string_data, n);
  uint64_t *numbers = ARENA_NEW_N(a, uint64_t, t->n_string_data);
  for (size_t k = 0; k < t->n_string_data; k++) {
    numbers[k] = string_table_add(src->strings, t->string_data[k].data, t->string_data[k].len);
  }
  *out = numbers;
  return NULL;
}

static status decode(arena *a, const onnx_source *src, const Onnx__TensorProto *t, field f, dtype type, int64_t n,
                     bool anywhere, const void **out) {
  uint64_t size = packed_bytes(type, n);
  byte_span span;
  switch (f) {
    case FIELD_INT32: return decode_int32(a, t, type, n, out);
    case FIELD_UINT64: return decode_uint64(a, t, type, n, out);
    case FIELD_INT64:
      CHECK_THAT(t->n_int64_data == (uint64_t)n, STATUS_INVALID_MODEL,
                 "int64_data has %zu elements instead of %" PRId64, t->n_int64_data, n);
      *out = t->int64_data;
      return NULL;
    case FIELD_STRING: return decode_strings(a, src, t, n, out);
    default:
      TRY(find_bytes(src, t, f, size, &span));
      CHECK_THAT(span.size == size, STATUS_INVALID_MODEL, "%s has %" PRIu64 " bytes instead of %" PRIu64, field_name(f),
                 span.size, size);
      *out = decode_bytes(a, type, span.bytes, n, anywhere);
      return NULL;
  }
}

static status tensor_literal(arena *a, const onnx_source *src, const Onnx__TensorProto *t, bool anywhere,
                             literal *out) {
  shape s;
  field f;
  TRY(tensor_shape(t, &s));
  dtype type = s.type;
  CHECK_THAT(type != DTYPE_STR || src->strings, STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE, "its elements are strings");
  CHECK_THAT(!t->segment, STATUS_UNSUPPORTED, "is a segment of a larger tensor");
  TRY(find_field(t, &f));
  int64_t n = shape_elements(&s);
  *out = literal_make(s, NULL);
  if (f == FIELD_NONE) {
    CHECK_THAT(n == 0, STATUS_INVALID_MODEL, "has no data for its %" PRId64 " elements", n);
    return NULL;
  }
  bool any_field = type != DTYPE_STR && (f == FIELD_RAW || f == FIELD_EXTERNAL);
  CHECK_THAT(any_field || f == field_of_type(type), STATUS_INVALID_MODEL,
             "its elements are %s, but they are in %s instead of %s", dtype_name(type), field_name(f),
             field_name(field_of_type(type)));
  return decode(a, src, t, f, type, n, anywhere, &out->data);
}

status onnx_tensor_literal(arena *a, const onnx_source *src, const Onnx__TensorProto *t, literal *out) {
  return named(t, tensor_literal(a, src, t, false, out));
}

status onnx_tensor_weights(arena *a, const onnx_source *src, const Onnx__TensorProto *t, literal *out) {
  return named(t, tensor_literal(a, src, t, true, out));
}

/* --- sparse tensors --- */

/* Returns the row-major position of the i-th stored element in the dense array. */
static status sparse_position(const literal *indices, const shape *dense, int64_t i, int64_t *out) {
  const int64_t *at = indices->data;
  if (indices->shape.rank == 1) {
    *out = at[i];
    CHECK_THAT(*out >= 0 && *out < shape_elements(dense), STATUS_INVALID_MODEL,
               "index %" PRId64 " is %" PRId64 ", outside the dense shape", i, *out);
    return NULL;
  }
  *out = 0;
  for (int d = 0; d < dense->rank; d++) {
    int64_t index = at[i * dense->rank + d];
    CHECK_THAT(index >= 0 && index < dense->dims[d], STATUS_INVALID_MODEL,
               "index %" PRId64 " is %" PRId64 " in dimension %d, which has %" PRId64, i, index, d, dense->dims[d]);
    *out = *out * dense->dims[d] + index;
  }
  return NULL;
}

static status check_sparse(const literal *values, const literal *indices, const shape *dense) {
  const shape *v = &values->shape, *x = &indices->shape;
  CHECK_THAT(v->rank == 1, STATUS_INVALID_MODEL, "the values have rank %d, not 1", v->rank);
  CHECK_THAT(x->type == DTYPE_S64, STATUS_INVALID_MODEL, "the indices are %s, not s64", dtype_name(x->type));
  bool fits_values = (x->rank == 1 || (x->rank == 2 && x->dims[1] == dense->rank)) && x->dims[0] == v->dims[0];
  CHECK_THAT(fits_values, STATUS_INVALID_MODEL, "the indices are %s for %s values of a dense %s", SHAPE_STR(NULL, x),
             SHAPE_STR(NULL, v), SHAPE_STR(NULL, dense));
  return NULL;
}

static status sparse_literal(arena *a, const onnx_source *src, const Onnx__SparseTensorProto *t, literal *out) {
  shape dense;
  literal values, indices;
  TRY(make_shape(t->values->data_type, t->dims, t->n_dims, &dense));
  TRY(tensor_literal(a, src, t->values, false, &values));
  TRY(status_prefix(tensor_literal(a, src, t->indices, false, &indices), "indices"));
  TRY(check_sparse(&values, &indices, &dense));
  void *data;
  *out = literal_new(a, dense, &data);
  size_t width = dtype_bytes(dense.type);
  int64_t position, previous = -1;
  for (int64_t i = 0; i < values.shape.dims[0]; i++) {
    TRY(sparse_position(&indices, &dense, i, &position));
    CHECK_THAT(position > previous, STATUS_INVALID_MODEL, "index %" PRId64 " is not greater than the one before it", i);
    memcpy((char *)data + (size_t)position * width, (const char *)values.data + (size_t)i * width, width);
    previous = position;
  }
  return NULL;
}

status onnx_sparse_tensor_literal(arena *a, const onnx_source *src, const Onnx__SparseTensorProto *t, literal *out) {
  CHECK_THAT(t->values, STATUS_INVALID_MODEL, "a sparse tensor has no values");
  if (!t->indices) {
    return named(t->values, status_error(STATUS_INVALID_MODEL, "sparse, but has no indices"));
  }
  return named(t->values, sparse_literal(a, src, t, out));
}

/* --- .pb files --- */

static status parse_pb(arena *a, const onnx_source *src, const char **name, literal *out) {
  ProtobufCMessage *message;
  TRY(onnx_wire_parse(a, &onnx__tensor_proto__descriptor, src->bytes, src->size, &message));
  const Onnx__TensorProto *t = (const Onnx__TensorProto *)message;
  *name = t->name;
  return tensor_literal(a, src, t, false, out);
}

status onnx_tensor_parse_pb(arena *a, const char *what, const void *bytes, size_t size, string_table *strings,
                            const char **name, literal *out) {
  onnx_source src = {.name = what, .bytes = bytes, .size = size, .strings = strings};
  return status_prefix(parse_pb(a, &src, name, out), "%s", what);
}

status onnx_tensor_read_pb(arena *a, const char *path, string_table *strings, const char **name, literal *out) {
  onnx_source src;
  TRY(onnx_source_open(a, path, &src));
  return onnx_tensor_parse_pb(a, src.name, src.bytes, src.size, strings, name, out);
}

status onnx_strings_to_bytes(arena *a, const char *name, const literal *l, const string_table *strings,
                             ProtobufCBinaryData **out, size_t *n) {
  const uint64_t *numbers = l->data;
  CHECK_THAT(strings, STATUS_UNSUPPORTED, "%s: strings cannot be written here", name);
  *n = (size_t)shape_elements(&l->shape);
  *out = ARENA_NEW_N(a, ProtobufCBinaryData, *n);
  for (size_t k = 0; k < *n; k++) {
    const char *text = string_table_text(strings, numbers[k], &(*out)[k].len);
    CHECK_THAT(text, STATUS_INVALID_ARGUMENT, "%s: there is no string %" PRIu64, name, numbers[k]);
    (*out)[k].data = (uint8_t *)(uintptr_t)text;
  }
  return NULL;
}

status onnx_tensor_from_literal(arena *a, const char *name, const literal *l, const string_table *strings,
                                Onnx__TensorProto *out) {
  dtype type = l->shape.type;
  int64_t n = shape_elements(&l->shape);
  onnx__tensor_proto__init(out);
  out->name = arena_strdup(a, name);
  out->has_data_type = 1;
  out->data_type = dtype_get_info(type)->onnx;
  out->n_dims = l->shape.rank;
  out->dims = arena_memdup(a, l->shape.dims, l->shape.rank * sizeof(int64_t));
  if (type == DTYPE_STR) {
    return onnx_strings_to_bytes(a, name, l, strings, &out->string_data, &out->n_string_data);
  }
  out->has_raw_data = 1;
  out->raw_data.len = packed_bytes(type, n);
  out->raw_data.data = (uint8_t *)l->data;
  if (is_packed(type)) {
    out->raw_data.data = arena_alloc(a, out->raw_data.len);
    pack(type, l->data, (size_t)n, out->raw_data.data);
  }
  return NULL;
}

status onnx_tensor_to_pb(arena *a, const char *name, const literal *l, const string_table *strings, uint8_t **bytes,
                         size_t *size) {
  Onnx__TensorProto t;
  TRY(onnx_tensor_from_literal(a, name, l, strings, &t));
  *size = onnx__tensor_proto__get_packed_size(&t);
  *bytes = arena_alloc(a, *size);
  onnx__tensor_proto__pack(&t, *bytes);
  return NULL;
}
