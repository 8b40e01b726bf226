/* build_model.h - functions that build small ONNX models and raw bytes of protobuf's wire format. */
#ifndef TESTS_UNIT_FRONTEND_BUILD_MODEL_H
#define TESTS_UNIT_FRONTEND_BUILD_MODEL_H

#include <string.h>

#include "base/arena.h"
#include "base/protobuf_wire.h"
#include "frontend/onnx.pb-c.h"

/* Splits "a,b,,c" into a list of strings; "" gives an empty list. */
static inline char **names(arena *a, const char *text, size_t *n) {
  *n = *text ? 1 : 0;
  for (const char *c = text; *c; c++) {
    *n += *c == ',';
  }
  char **list = ARENA_NEW_N(a, char *, *n);
  for (size_t i = 0; i < *n; i++) {
    size_t length = strcspn(text, ",");
    list[i] = arena_strndup(a, text, length);
    text += length + (text[length] == ',');
  }
  return list;
}

#define PB_NEW(arena, type, init) ((type *)memcpy(arena_alloc((arena), sizeof(type)), &(type)init, sizeof(type)))

/* Appends to a list of pointers of protobuf-c. */
#define PB_ADD(arena, list, n, item) \
  ((list) = arena_grow((arena), (list), (n) * sizeof *(list), ((n) + 1) * sizeof *(list)), (list)[(n)++] = (item))

static inline Onnx__NodeProto *add_node(arena *a, Onnx__NodeProto ***list, size_t *n, const char *type,
                                        const char *inputs, const char *outputs) {
  Onnx__NodeProto *node = PB_NEW(a, Onnx__NodeProto, ONNX__NODE_PROTO__INIT);
  node->op_type = arena_strdup(a, type);
  node->input = names(a, inputs, &node->n_input);
  node->output = names(a, outputs, &node->n_output);
  PB_ADD(a, *list, *n, node);
  return node;
}

static inline Onnx__NodeProto *graph_node(arena *a, Onnx__GraphProto *g, const char *type, const char *inputs,
                                          const char *outputs) {
  return add_node(a, &g->node, &g->n_node, type, inputs, outputs);
}

static inline Onnx__ValueInfoProto *new_value(arena *a, const char *name) {
  Onnx__ValueInfoProto *v = PB_NEW(a, Onnx__ValueInfoProto, ONNX__VALUE_INFO_PROTO__INIT);
  v->name = arena_strdup(a, name);
  return v;
}

static inline Onnx__GraphProto *new_graph(arena *a, const char *inputs, const char *outputs) {
  Onnx__GraphProto *g = PB_NEW(a, Onnx__GraphProto, ONNX__GRAPH_PROTO__INIT);
  size_t n;
  char **list = names(a, inputs, &n);
  for (size_t i = 0; i < n; i++) {
    PB_ADD(a, g->input, g->n_input, new_value(a, list[i]));
  }
  list = names(a, outputs, &n);
  for (size_t i = 0; i < n; i++) {
    PB_ADD(a, g->output, g->n_output, new_value(a, list[i]));
  }
  return g;
}

static inline void add_opset(arena *a, Onnx__ModelProto *m, const char *domain, int64_t version) {
  Onnx__OperatorSetIdProto *o = PB_NEW(a, Onnx__OperatorSetIdProto, ONNX__OPERATOR_SET_ID_PROTO__INIT);
  o->domain = arena_strdup(a, domain);
  o->has_version = 1;
  o->version = version;
  PB_ADD(a, m->opset_import, m->n_opset_import, o);
}

/* Returns a model of IR version 10 and opset 21 with a graph that has these inputs and outputs and no nodes. */
static inline Onnx__ModelProto *new_model(arena *a, const char *inputs, const char *outputs) {
  Onnx__ModelProto *m = PB_NEW(a, Onnx__ModelProto, ONNX__MODEL_PROTO__INIT);
  m->has_ir_version = 1;
  m->ir_version = 10;
  m->graph = new_graph(a, inputs, outputs);
  add_opset(a, m, "", 21);
  return m;
}

/* Adds a node of an operator of `domain` and imports that version of the domain; "" is ONNX's own domain. */
static inline Onnx__NodeProto *domain_node(arena *a, Onnx__ModelProto *m, const char *domain, int64_t version,
                                           const char *type, const char *outputs) {
  Onnx__NodeProto *node = graph_node(a, m->graph, type, "", outputs);
  if (*domain) {
    node->domain = arena_strdup(a, domain);
    add_opset(a, m, domain, version);
  } else {
    m->opset_import[0]->version = version;
  }
  return node;
}

static inline Onnx__AttributeProto *add_attribute(arena *a, Onnx__NodeProto *node, const char *name) {
  Onnx__AttributeProto *t = PB_NEW(a, Onnx__AttributeProto, ONNX__ATTRIBUTE_PROTO__INIT);
  t->name = arena_strdup(a, name);
  PB_ADD(a, node->attribute, node->n_attribute, t);
  return t;
}

static inline void set_int(arena *a, Onnx__NodeProto *node, const char *name, int64_t value) {
  Onnx__AttributeProto *t = add_attribute(a, node, name);
  t->has_type = t->has_i = 1;
  t->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
  t->i = value;
}

static inline void set_graph(arena *a, Onnx__NodeProto *node, const char *name, Onnx__GraphProto *g) {
  Onnx__AttributeProto *t = add_attribute(a, node, name);
  t->has_type = 1;
  t->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
  t->g = g;
}

static inline Onnx__TensorProto *new_tensor(arena *a, const char *name, int type, size_t rank, const int64_t *dims) {
  Onnx__TensorProto *t = PB_NEW(a, Onnx__TensorProto, ONNX__TENSOR_PROTO__INIT);
  t->name = arena_strdup(a, name);
  t->has_data_type = 1;
  t->data_type = type;
  t->n_dims = rank;
  t->dims = arena_memdup(a, dims, rank * sizeof *dims);
  return t;
}

static inline void set_raw(arena *a, Onnx__TensorProto *t, const void *bytes, size_t size) {
  t->has_raw_data = 1;
  t->raw_data.len = size;
  t->raw_data.data = arena_memdup(a, bytes, size);
}

static inline uint8_t *pack(arena *a, const void *message, size_t *size) {
  *size = protobuf_c_message_get_packed_size(message);
  uint8_t *bytes = arena_alloc(a, *size);
  protobuf_c_message_pack(message, bytes);
  return bytes;
}

/* --- raw wire bytes, also ones that are no message --- */

typedef struct wire {
  uint8_t bytes[4096];
  size_t n;
} wire;

static inline void wire_varint(wire *w, uint64_t value) { w->n += pb_encode_varint(w->bytes + w->n, value, 0); }

static inline void wire_tag(wire *w, unsigned id, unsigned type) { wire_varint(w, (uint64_t)id << 3 | type); }

static inline void wire_bytes(wire *w, unsigned id, const void *bytes, size_t n) {
  wire_tag(w, id, 2);
  wire_varint(w, n);
  memcpy(w->bytes + w->n, bytes, n);
  w->n += n;
}

#endif
