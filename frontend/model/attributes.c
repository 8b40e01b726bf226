/* attributes.c - reads the attributes of a node with checks of their types. */
#include "frontend/model/attributes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/locale.h"

#define TYPE(name) ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__##name

typedef Onnx__AttributeProto__AttributeType attr_type;

const Onnx__AttributeProto *onnx_attr_find(const Onnx__NodeProto *node, const char *name) {
  for (size_t i = 0; i < node->n_attribute; i++) {
    if (!strcmp(node->attribute[i]->name, name)) {
      return node->attribute[i];
    }
  }
  return NULL;
}

bool onnx_attr_has(const Onnx__NodeProto *node, const char *name) { return onnx_attr_find(node, name) != NULL; }

/* The type is derived from the fields that are set if the file does not state it, as with IR version 1. */
attr_type onnx_attr_type(const Onnx__AttributeProto *t) {
  return t->has_type && t->type ? t->type
         : t->has_f             ? TYPE(FLOAT)
         : t->has_i             ? TYPE(INT)
         : t->has_s             ? TYPE(STRING)
         : t->t                 ? TYPE(TENSOR)
         : t->g                 ? TYPE(GRAPH)
         : t->sparse_tensor     ? TYPE(SPARSE_TENSOR)
         : t->tp                ? TYPE(TYPE_PROTO)
         : t->n_floats          ? TYPE(FLOATS)
         : t->n_ints            ? TYPE(INTS)
         : t->n_strings         ? TYPE(STRINGS)
         : t->n_tensors         ? TYPE(TENSORS)
         : t->n_graphs          ? TYPE(GRAPHS)
         : t->n_sparse_tensors  ? TYPE(SPARSE_TENSORS)
         : t->n_type_protos     ? TYPE(TYPE_PROTOS)
                                : TYPE(UNDEFINED);
}

static const char *type_name(attr_type type) {
  static const char *const names[] = {
      "undefined", "float",   "int",    "string",        "tensor",         "graph",      "floats",     "ints",
      "strings",   "tensors", "graphs", "sparse tensor", "sparse tensors", "type proto", "type protos"};
  return (unsigned)type < sizeof names / sizeof *names ? names[type] : "of an unknown type";
}

/* Returns an INVALID_MODEL error whose message starts like "attribute transB". */
static STATUS_PRINTF(2, 3) status bad(const char *name, const char *format, ...) {
  char rule[300];
  va_list args;
  va_start(args, format);
  c_vsnprintf(rule, sizeof rule, format, args);
  va_end(args);
  return status_error(STATUS_INVALID_MODEL, "attribute %s %s", name, rule);
}

/* Finds an attribute and checks its type.  *out is NULL if it is absent.  An attribute that states no type and has no
 * value is accepted as one of any type: as 0, or as an empty string or list. */
static status find_typed(const Onnx__NodeProto *node, const char *name, attr_type type,
                         const Onnx__AttributeProto **out) {
  *out = onnx_attr_find(node, name);
  if (!*out) {
    return NULL;
  }
  attr_type found = onnx_attr_type(*out);
  if (*(*out)->ref_attr_name) {
    return bad(name, "refers to the attribute %.100s of a function that is not being called", (*out)->ref_attr_name);
  }
  if (found != type && found != TYPE(UNDEFINED)) {
    return bad(name, "is %s, not %s", type_name(found), type_name(type));
  }
  return NULL;
}

status onnx_attr_required(const Onnx__NodeProto *node, const char *name) {
  return onnx_attr_has(node, name) ? NULL : bad(name, "is missing");
}

status onnx_attr_int(const Onnx__NodeProto *node, const char *name, int64_t def, int64_t *out) {
  const Onnx__AttributeProto *t;
  TRY(find_typed(node, name, TYPE(INT), &t));
  *out = t ? t->i : def;
  return NULL;
}

status onnx_attr_int_in(const Onnx__NodeProto *node, const char *name, int64_t def, int64_t low, int64_t high,
                        int64_t *out) {
  TRY(onnx_attr_int(node, name, def, out));
  if (*out < low || *out > high) {
    return bad(name, "is %" PRId64 ", outside [%" PRId64 ", %" PRId64 "]", *out, low, high);
  }
  return NULL;
}

status onnx_attr_bool(const Onnx__NodeProto *node, const char *name, bool def, bool *out) {
  int64_t value;
  TRY(onnx_attr_int(node, name, def, &value));
  *out = value != 0;
  return NULL;
}

status onnx_attr_float(const Onnx__NodeProto *node, const char *name, float def, float *out) {
  const Onnx__AttributeProto *t;
  TRY(find_typed(node, name, TYPE(FLOAT), &t));
  *out = t ? t->f : def;
  return NULL;
}

static status copy_string(arena *a, const Onnx__NodeProto *node, const char *name, const ProtobufCBinaryData *s,
                          const char **out) {
  if (s->len && memchr(s->data, 0, s->len)) {
    return bad(name, "contains NUL");
  }
  *out = arena_strndup(a, (const char *)s->data, s->len);
  return NULL;
}

status onnx_attr_string(arena *a, const Onnx__NodeProto *node, const char *name, const char *def, const char **out) {
  const Onnx__AttributeProto *t;
  TRY(find_typed(node, name, TYPE(STRING), &t));
  *out = def;
  return t ? copy_string(a, node, name, &t->s, out) : NULL;
}

status onnx_attr_ints(const Onnx__NodeProto *node, const char *name, const int64_t **values, size_t *n) {
  const Onnx__AttributeProto *t;
  TRY(find_typed(node, name, TYPE(INTS), &t));
  *values = t ? t->ints : NULL;
  *n = t ? t->n_ints : 0;
  return NULL;
}

status onnx_attr_floats(const Onnx__NodeProto *node, const char *name, const float **values, size_t *n) {
  const Onnx__AttributeProto *t;
  TRY(find_typed(node, name, TYPE(FLOATS), &t));
  *values = t ? t->floats : NULL;
  *n = t ? t->n_floats : 0;
  return NULL;
}

status onnx_attr_byte_strings(const Onnx__NodeProto *node, const char *name, const ProtobufCBinaryData **values,
                              size_t *n) {
  const Onnx__AttributeProto *t;
  TRY(find_typed(node, name, TYPE(STRINGS), &t));
  *values = t ? t->strings : NULL;
  *n = t ? t->n_strings : 0;
  return NULL;
}

status onnx_attr_strings(arena *a, const Onnx__NodeProto *node, const char *name, const char *const **values,
                         size_t *n) {
  const ProtobufCBinaryData *strings;
  TRY(onnx_attr_byte_strings(node, name, &strings, n));
  *values = NULL;
  if (*n) {
    const char **copies = ARENA_NEW_N(a, const char *, *n);
    for (size_t i = 0; i < *n; i++) {
      TRY(copy_string(a, node, name, &strings[i], &copies[i]));
    }
    *values = copies;
  }
  return NULL;
}

/* --- attributes that are protobuf messages --- */

status onnx_attr_tensor(const Onnx__NodeProto *node, const char *name, const Onnx__TensorProto **out) {
  const Onnx__AttributeProto *t;
  TRY(find_typed(node, name, TYPE(TENSOR), &t));
  *out = t ? t->t : NULL;
  return t && !t->t ? bad(name, "has no tensor") : NULL;
}

status onnx_attr_sparse_tensor(const Onnx__NodeProto *node, const char *name, const Onnx__SparseTensorProto **out) {
  const Onnx__AttributeProto *t;
  TRY(find_typed(node, name, TYPE(SPARSE_TENSOR), &t));
  *out = t ? t->sparse_tensor : NULL;
  return t && !t->sparse_tensor ? bad(name, "has no tensor") : NULL;
}

status onnx_attr_type_proto(const Onnx__NodeProto *node, const char *name, const Onnx__TypeProto **out) {
  const Onnx__AttributeProto *t;
  TRY(find_typed(node, name, TYPE(TYPE_PROTO), &t));
  *out = t ? t->tp : NULL;
  return t && !t->tp ? bad(name, "has no type") : NULL;
}

status onnx_attr_graph(const Onnx__NodeProto *node, const char *name, const Onnx__GraphProto **out) {
  const Onnx__AttributeProto *t;
  TRY(onnx_attr_required(node, name));
  TRY(find_typed(node, name, TYPE(GRAPH), &t));
  *out = t->g;
  return t->g ? NULL : bad(name, "has no graph");
}

const char *onnx_node_source(arena *a, const Onnx__NodeProto *node) {
  const char *name = *node->name ? node->name : node->n_output ? node->output[0] : "";
  return arena_printf(a, "%.200s: %.100s", name, node->op_type);
}

const char *onnx_node_label(arena *a, const Onnx__NodeProto *node) {
  const char *domain = node->domain, *dot = *domain ? "." : "";
  if (*node->name) {
    return arena_printf(a, "%.200s: %.100s%s%.100s", node->name, domain, dot, node->op_type);
  }
  for (size_t i = 0; i < node->n_output; i++) {
    if (*node->output[i]) {
      return arena_printf(a, "%.100s%s%.100s that makes \"%.200s\"", domain, dot, node->op_type, node->output[i]);
    }
  }
  return arena_printf(a, "%.100s%s%.100s", domain, dot, node->op_type);
}
