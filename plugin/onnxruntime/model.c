/* model.c - reads graphs of ONNX Runtime and writes them as ONNX models. */
#include <stdlib.h>
#include <string.h>

#include "plugin/onnxruntime/internal.h"

/* Field numbers of onnx.proto. */
enum {
  MODEL_IR_VERSION = 1,
  MODEL_PRODUCER = 2,
  MODEL_GRAPH = 7,
  MODEL_OPSET = 8,
  OPSET_DOMAIN = 1,
  OPSET_VERSION = 2
};
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTRIBUTE = 5, NODE_DOMAIN = 7 };
enum {
  ATTR_NAME = 1,
  ATTR_F = 2,
  ATTR_I = 3,
  ATTR_S = 4,
  ATTR_T = 5,
  ATTR_G = 6,
  ATTR_FLOATS = 7,
  ATTR_INTS = 8,
  ATTR_STRINGS = 9,
  ATTR_TYPE = 20
};
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_STRINGS = 6, TENSOR_NAME = 8, TENSOR_RAW = 9 };
enum {
  VALUE_NAME = 1,
  VALUE_TYPE = 2,
  TYPE_TENSOR = 1,
  TENSOR_ELEMENT = 1,
  TENSOR_SHAPE = 2,
  SHAPE_DIM = 1,
  DIM_VALUE = 1
};
/* bytes; larger constants are passed beside the model, so that they are copied only once */
enum { SMALL_CONSTANT = 4096 };

/* --- reading --- */

/* Allocates n zeroed elements and one more, so that the result is not NULL for n = 0. */
static void *list(size_t n, size_t size) { return calloc(n + 1, size); }

OrtStatus *ort_node_read(const ort_provider *p, const OrtNode *node, ort_node *out) {
  const OrtApi *api = p->api;
  out->node = node;
  ORT_TRY(api->Node_GetName(node, &out->name));
  ORT_TRY(api->Node_GetOperatorType(node, &out->op));
  ORT_TRY(api->Node_GetDomain(node, &out->domain));
  ORT_TRY(api->Node_GetNumInputs(node, &out->n_in));
  ORT_TRY(api->Node_GetNumOutputs(node, &out->n_out));
  ORT_TRY(api->Node_GetNumImplicitInputs(node, &out->n_implicit));
  out->in = list(out->n_in, sizeof *out->in);
  out->out = list(out->n_out, sizeof *out->out);
  out->implicit = list(out->n_implicit, sizeof *out->implicit);
  if (!out->in || !out->out || !out->implicit) {
    return ort_no_memory(p);
  }
  ORT_TRY(api->Node_GetInputs(node, out->in, out->n_in));
  ORT_TRY(api->Node_GetOutputs(node, out->out, out->n_out));
  return api->Node_GetImplicitInputs(node, out->implicit, out->n_implicit);
}

OrtStatus *ort_graph_read(const ort_provider *p, const OrtGraph *graph, ort_graph *g) {
  const OrtApi *api = p->api;
  *g = (ort_graph){.graph = graph};
  size_t n_nodes;
  ORT_TRY(api->Graph_GetNumNodes(graph, &n_nodes));
  ORT_TRY(api->Graph_GetNumInputs(graph, &g->n_inputs));
  ORT_TRY(api->Graph_GetNumOutputs(graph, &g->n_outputs));
  ORT_TRY(api->Graph_GetNumInitializers(graph, &g->n_initializers));
  g->inputs = list(g->n_inputs, sizeof *g->inputs);
  g->outputs = list(g->n_outputs, sizeof *g->outputs);
  g->initializers = list(g->n_initializers, sizeof *g->initializers);
  g->nodes = list(n_nodes, sizeof *g->nodes);
  const OrtNode **nodes = list(n_nodes, sizeof *nodes);
  if (!g->inputs || !g->outputs || !g->initializers || !g->nodes || !nodes) {
    free(nodes);
    return ort_no_memory(p);
  }
  OrtStatus *failed = api->Graph_GetNodes(graph, nodes, n_nodes);
  for (size_t k = 0; !failed && k < n_nodes; k++) {
    g->n_nodes = k + 1; /* so that a node that could not be read completely is freed */
    failed = ort_node_read(p, nodes[k], &g->nodes[k]);
  }
  free(nodes);
  ORT_TRY(failed);
  ORT_TRY(api->Graph_GetInputs(graph, g->inputs, g->n_inputs));
  ORT_TRY(api->Graph_GetOutputs(graph, g->outputs, g->n_outputs));
  return api->Graph_GetInitializers(graph, g->initializers, g->n_initializers);
}

void ort_node_free(ort_node *n) {
  free(n->in);
  free(n->out);
  free(n->implicit);
  *n = (ort_node){0};
}

void ort_graph_free(ort_graph *g) {
  for (size_t k = 0; k < g->n_nodes; k++) {
    ort_node_free(&g->nodes[k]);
  }
  free(g->nodes);
  free(g->inputs);
  free(g->outputs);
  free(g->initializers);
  *g = (ort_graph){0};
}

OrtStatus *ort_value_name(const ort_provider *p, const OrtValueInfo *value, const char **out) {
  *out = "";
  return value ? p->api->GetValueInfoName(value, out) : NULL;
}

/* Gets the array type of a value; *out is NULL if it is not known or not an array. */
static OrtStatus *array_type(const ort_provider *p, const OrtValueInfo *value, const OrtTensorTypeAndShapeInfo **out) {
  const OrtTypeInfo *info = NULL;
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  *out = NULL;
  ORT_TRY(p->api->GetValueInfoTypeInfo(value, &info));
  if (info) {
    ORT_TRY(p->api->GetOnnxTypeFromTypeInfo(info, &kind));
  }
  return kind == ONNX_TYPE_TENSOR ? p->api->CastTypeInfoToTensorInfo(info, out) : NULL;
}

OrtStatus *ort_value_type(const ort_provider *p, const OrtValueInfo *value, int *type) {
  const OrtTensorTypeAndShapeInfo *info;
  *type = 0;
  ORT_TRY(array_type(p, value, &info));
  return info ? p->api->GetTensorElementType(info, type) : NULL;
}

static OrtStatus *read_type(const ort_provider *p, const OrtTensorTypeAndShapeInfo *info, ort_array *out) {
  ORT_TRY(p->api->GetTensorElementType(info, &out->type));
  ORT_TRY(p->api->GetDimensionsCount(info, &out->rank));
  out->ranked =
      p->tells_ranks ? p->api->TensorTypeAndShape_HasShape(info) : out->rank > 0; /* rank 0 may be an unknown rank */
  if (out->rank > OXLA_MAX_RANK) {
    return ort_fail(p, "onnx-xla: an array has rank %zu; the most is %d", out->rank, OXLA_MAX_RANK);
  }
  return p->api->GetDimensions(info, out->dims, out->rank);
}

OrtStatus *ort_value_shape(const ort_provider *p, const OrtValueInfo *value, ort_array *out, bool *known) {
  const OrtTensorTypeAndShapeInfo *info;
  ORT_TRY(array_type(p, value, &info));
  *out = (ort_array){0};
  *known = info != NULL;
  return info ? read_type(p, info, out) : NULL;
}

void ort_weights_free(ort_weights *w) {
  for (size_t k = 0; k < w->n; k++) {
    free((void *)(uintptr_t)w->items[k].dims);
  }
  free(w->items);
  free(w->infos);
  *w = (ort_weights){0};
}

/* --- values --- */

/* Writes the type of an array.  Symbolic dimensions are written without names: ONNX Runtime's names for them are not
 * reliable, since two dimensions with one name may have different sizes. */
static void put_type(pb_writer *w, const ort_array *x) {
  pb_writer tensor = {0}, shape = {0}, all = {0};
  for (size_t k = 0; k < x->rank; k++) {
    pb_writer one = {0};
    if (x->dims[k] >= 0) {
      pb_put_int(&one, DIM_VALUE, x->dims[k]);
    }
    pb_put_message(&shape, SHAPE_DIM, &one);
  }
  pb_put_int(&tensor, TENSOR_ELEMENT, x->type);
  if (x->ranked) {
    pb_put_message(&tensor, TENSOR_SHAPE, &shape);
  }
  pb_put_message(&all, TYPE_TENSOR, &tensor);
  pb_put_message(w, VALUE_TYPE, &all);
}

/* Writes an input or output, with its type if the type is known and `typed` is set.  A typed output is an output of a
 * body.  Versions of ONNX Runtime without tells_ranks say rank 0 both for a scalar and for an unknown rank; such an
 * output is written as a scalar.  A loop without iterations then collects an empty list, as in ONNX Runtime. */
static OrtStatus *put_value(const ort_provider *p, pb_writer *w, uint32_t field, const OrtValueInfo *value,
                            bool typed) {
  const OrtTensorTypeAndShapeInfo *info;
  const char *name;
  pb_writer v = {0};
  ORT_TRY(ort_value_name(p, value, &name));
  ORT_TRY(array_type(p, value, &info));
  pb_put_text(&v, VALUE_NAME, name);
  if (info && typed) {
    ort_array x;
    OrtStatus *failed = read_type(p, info, &x);
    if (failed) {
      pb_free(&v);
      return failed;
    }
    x.ranked |= field == GRAPH_OUTPUT && !p->tells_ranks;
    put_type(&v, &x);
  }
  pb_put_message(w, field, &v);
  return NULL;
}

/* --- arrays --- */

OrtStatus *ort_array_read(const ort_provider *p, const OrtValue *value, ort_array *out) {
  OrtTensorTypeAndShapeInfo *info;
  *out = (ort_array){0};
  ORT_TRY(p->api->GetTensorTypeAndShape(value, &info));
  OrtStatus *failed = read_type(p, info, out);
  p->api->ReleaseTensorTypeAndShapeInfo(info);
  ORT_TRY(failed);
  return p->api->GetTensorMutableData((OrtValue *)(uintptr_t)value, &out->data);
}

static OrtStatus *read_constant(const ort_provider *p, const OrtValue *value, ort_array *out, size_t *bytes) {
  ORT_TRY(ort_array_read(p, value, out));
  if (out->type == OXLA_STRING) {
    return ort_fail(p, "an array of strings");
  }
  return p->api->GetTensorSizeInBytes(value, bytes);
}

static void put_array(pb_writer *w, uint32_t field, const char *name, const ort_array *x, size_t bytes) {
  pb_writer t = {0};
  for (size_t k = 0; k < x->rank; k++) {
    pb_put_int(&t, TENSOR_DIMS, x->dims[k]);
  }
  pb_put_int(&t, TENSOR_TYPE, x->type);
  pb_put_text(&t, TENSOR_NAME, name);
  pb_put_bytes(&t, TENSOR_RAW, x->data, bytes);
  pb_put_message(w, field, &t);
}

static OrtStatus *add_weight(const ort_provider *p, ort_weights *w, const OrtValueInfo *info, const char *name,
                             const ort_array *x) {
  if (w->n == w->capacity) {
    size_t capacity = 2 * w->capacity + 16;
    oxla_constant *more = realloc(w->items, capacity * sizeof *more);
    w->items = more ? more : w->items;
    const OrtValueInfo **more_infos = more ? realloc(w->infos, capacity * sizeof *more_infos) : NULL;
    if (!more_infos) {
      return ort_no_memory(p);
    }
    w->infos = more_infos;
    w->capacity = capacity;
  }
  int64_t *sizes = list(x->rank, sizeof *sizes);
  if (!sizes) {
    return ort_no_memory(p);
  }
  memcpy(sizes, x->dims, x->rank * sizeof *sizes);
  w->infos[w->n] = info;
  w->items[w->n++] =
      (oxla_constant){.name = name, .type = (oxla_type)x->type, .rank = (int)x->rank, .dims = sizes, .data = x->data};
  return NULL;
}

/* Returns true if several elements may be packed in a byte in ONNX Runtime's arrays and in models: for the types with
 * less than 8 bits, and for all types that are newer than int4.  Constants of these types are written into the model
 * whatever their size, since in the arrays of oxla_constant elements are never packed. */
static bool is_packed(int type) { return type == OXLA_UINT4 || type == OXLA_INT4 || type > OXLA_INT4; }

static OrtStatus *put_initializer(const ort_provider *p, pb_writer *w, const OrtValueInfo *info,
                                  bool large_constants_are_inputs, ort_weights *weights) {
  const OrtValue *value = NULL;
  const char *name;
  ort_array x;
  size_t bytes;
  bool constant = false;
  int type;
  ORT_TRY(ort_value_name(p, info, &name));
  ORT_TRY(p->api->ValueInfo_IsConstantInitializer(info, &constant));
  ORT_TRY(ort_value_type(p, info, &type));
  if (constant) {
    ORT_TRY(p->api->ValueInfo_GetInitializerValue(info, &value));
  }
  if (!value || type == OXLA_STRING) { /* the nodes that are taken do not read strings */
    return NULL;
  }
  ORT_TRY(read_constant(p, value, &x, &bytes));
  if (!large_constants_are_inputs || bytes <= SMALL_CONSTANT || is_packed(x.type)) {
    put_array(w, GRAPH_INITIALIZER, name, &x, bytes);
    return NULL;
  }
  pb_writer v = {0};
  pb_put_text(&v, VALUE_NAME, name);
  put_type(&v, &x);
  pb_put_message(w, GRAPH_INPUT, &v);
  return weights ? add_weight(p, weights, info, name, &x) : NULL;
}

/* --- attributes --- */

OrtStatus *ort_attribute_read(const ort_provider *p, const OrtOpAttr *a, OrtOpAttrType type, void **out, size_t *n) {
  char none[8];
  *n = 0;
  OrtStatus *failed = p->api->ReadOpAttr(a, type, none, 0, n); /* the call fails and returns the size */
  if (failed) {
    p->api->ReleaseStatus(failed);
  }
  *out = list(*n, 1);
  if (!*out) {
    return ort_no_memory(p);
  }
  failed = *n ? p->api->ReadOpAttr(a, type, *out, *n, n) : NULL;
  if (failed) {
    free(*out);
    *out = NULL;
  }
  return failed;
}

static void put_plain(pb_writer *w, OrtOpAttrType type, const char *bytes, size_t n) {
  switch (type) {
    case ORT_OP_ATTR_INT:
    case ORT_OP_ATTR_INTS:
      for (size_t k = 0; k + sizeof(int64_t) <= n; k += sizeof(int64_t)) {
        int64_t v;
        memcpy(&v, bytes + k, sizeof v);
        pb_put_int(w, type == ORT_OP_ATTR_INT ? ATTR_I : ATTR_INTS, v);
      }
      break;
    case ORT_OP_ATTR_FLOAT:
    case ORT_OP_ATTR_FLOATS:
      for (size_t k = 0; k + sizeof(float) <= n; k += sizeof(float)) {
        float v;
        memcpy(&v, bytes + k, sizeof v);
        pb_put_float(w, type == ORT_OP_ATTR_FLOAT ? ATTR_F : ATTR_FLOATS, v);
      }
      break;
    case ORT_OP_ATTR_STRING: /* may end with a zero that does not belong to it */
      pb_put_bytes(w, ATTR_S, bytes, n && bytes[n - 1] == '\0' ? n - 1 : n);
      break;
    default: /* strings, each with a terminating zero */
      for (size_t k = 0; k < n; k += strlen(bytes + k) + 1) {
        pb_put_text(w, ATTR_STRINGS, bytes + k);
      }
  }
}

/* Returns the number of an attribute type in AttributeProto. */
static int attribute_type(OrtOpAttrType t) {
  static const int types[] = {
      [ORT_OP_ATTR_INT] = 2,    [ORT_OP_ATTR_INTS] = 7,    [ORT_OP_ATTR_FLOAT] = 1, [ORT_OP_ATTR_FLOATS] = 6,
      [ORT_OP_ATTR_STRING] = 3, [ORT_OP_ATTR_STRINGS] = 8, [ORT_OP_ATTR_GRAPH] = 5, [ORT_OP_ATTR_TENSOR] = 4};
  return types[t];
}

static OrtStatus *put_attribute_value(const ort_provider *p, pb_writer *w, const OrtOpAttr *a, OrtOpAttrType type) {
  if (type == ORT_OP_ATTR_TENSOR) {
    OrtValue *value;
    ort_array x;
    size_t size;
    ORT_TRY(p->api->OpAttr_GetTensorAttributeAsOrtValue(a, &value));
    OrtStatus *failed = read_constant(p, value, &x, &size);
    if (!failed) {
      put_array(w, ATTR_T, "", &x, size);
    }
    p->api->ReleaseValue(value);
    return failed;
  }
  void *bytes;
  size_t n;
  ORT_TRY(ort_attribute_read(p, a, type, &bytes, &n));
  put_plain(w, type, bytes, n);
  free(bytes);
  return NULL;
}

static OrtStatus *put_attribute(const ort_provider *p, pb_writer *w, const OrtOpAttr *a) {
  OrtOpAttrType type;
  const char *name;
  pb_writer inner = {0};
  ORT_TRY(p->api->OpAttr_GetType(a, &type));
  ORT_TRY(p->api->OpAttr_GetName(a, &name));
  if (type == ORT_OP_ATTR_GRAPH) {
    return NULL; /* put_bodies writes the attributes that are graphs */
  }
  if (type <= ORT_OP_ATTR_UNDEFINED || type > ORT_OP_ATTR_TENSOR) {
    return ort_fail(p, "attribute '%s' is of a kind that ONNX Runtime does not show", name);
  }
  pb_put_text(&inner, ATTR_NAME, name);
  pb_put_int(&inner, ATTR_TYPE, attribute_type(type));
  OrtStatus *failed = put_attribute_value(p, &inner, a, type);
  if (failed) {
    pb_free(&inner);
    return failed;
  }
  pb_put_message(w, NODE_ATTRIBUTE, &inner);
  return NULL;
}

/* --- nodes and graphs --- */

static OrtStatus *put_graph(const ort_provider *p, pb_writer *w, const ort_graph *g, const ort_model_parts *parts);

/* Writes a body with all its nodes and constants. */
static OrtStatus *put_body(const ort_provider *p, pb_writer *w, const char *name, const OrtGraph *body) {
  pb_writer attribute = {0}, graph = {0};
  ort_graph g;
  OrtStatus *failed = ort_graph_read(p, body, &g);
  if (!failed) {
    ort_model_parts parts = {.n_inputs = g.n_inputs,
                             .inputs = g.inputs,
                             .n_outputs = g.n_outputs,
                             .outputs = g.outputs,
                             .n_constants = g.n_initializers,
                             .constants = g.initializers,
                             .is_body = true};
    failed = put_graph(p, &graph, &g, &parts);
  }
  ort_graph_free(&g);
  if (failed) {
    pb_free(&graph);
    return failed;
  }
  pb_put_text(&attribute, ATTR_NAME, name);
  pb_put_int(&attribute, ATTR_TYPE, attribute_type(ORT_OP_ATTR_GRAPH));
  pb_put_message(&attribute, ATTR_G, &graph);
  pb_put_message(w, NODE_ATTRIBUTE, &attribute);
  return NULL;
}

static OrtStatus *put_bodies(const ort_provider *p, pb_writer *w, const OrtNode *node) {
  size_t n;
  ORT_TRY(p->api->Node_GetNumSubgraphs(node, &n));
  const OrtGraph **bodies = list(n, sizeof *bodies);
  const char **names = list(n, sizeof *names);
  OrtStatus *failed = bodies && names ? NULL : ort_no_memory(p);
  if (!failed && n) {
    failed = p->api->Node_GetSubgraphs(node, bodies, n, names);
  }
  for (size_t k = 0; !failed && k < n; k++) {
    failed = put_body(p, w, names[k], bodies[k]);
  }
  free(bodies);
  free(names);
  return failed;
}

static OrtStatus *put_attributes(const ort_provider *p, pb_writer *w, const OrtNode *node) {
  size_t n;
  ORT_TRY(p->api->Node_GetNumAttributes(node, &n));
  const OrtOpAttr **attributes = list(n, sizeof *attributes);
  OrtStatus *failed = attributes ? p->api->Node_GetAttributes(node, attributes, n) : ort_no_memory(p);
  for (size_t k = 0; !failed && k < n; k++) {
    failed = attributes[k] ? put_attribute(p, w, attributes[k]) : NULL;
  }
  free(attributes);
  return failed ? failed : put_bodies(p, w, node);
}

static OrtStatus *put_names(const ort_provider *p, pb_writer *w, uint32_t field, size_t n,
                            const OrtValueInfo *const *values) {
  for (size_t k = 0; k < n; k++) {
    const char *name;
    ORT_TRY(ort_value_name(p, values[k], &name));
    pb_put_text(w, field, name);
  }
  return NULL;
}

OrtStatus *ort_node_write(const ort_provider *p, const ort_node *n, pb_writer *out) {
  pb_put_text(out, NODE_NAME, n->name);
  pb_put_text(out, NODE_OP, n->op);
  pb_put_text(out, NODE_DOMAIN, n->domain);
  ORT_TRY(put_names(p, out, NODE_INPUT, n->n_in, n->in));
  ORT_TRY(put_names(p, out, NODE_OUTPUT, n->n_out, n->out));
  return put_attributes(p, out, n->node);
}

static OrtStatus *put_node(const ort_provider *p, pb_writer *w, const ort_node *n) {
  pb_writer inner = {0};
  OrtStatus *failed = ort_node_write(p, n, &inner);
  if (failed) {
    pb_free(&inner);
    return failed;
  }
  pb_put_message(w, GRAPH_NODE, &inner);
  return NULL;
}

static OrtStatus *put_graph(const ort_provider *p, pb_writer *w, const ort_graph *g, const ort_model_parts *parts) {
  const char *name;
  ORT_TRY(p->api->Graph_GetName(g->graph, &name));
  pb_put_text(w, GRAPH_NAME, name && *name ? name : "graph");
  for (size_t k = 0; k < g->n_nodes; k++) {
    if (!parts->chosen || parts->chosen[k]) {
      ORT_TRY(put_node(p, w, &g->nodes[k]));
    }
  }
  for (size_t k = 0; k < parts->n_constants; k++) {
    ORT_TRY(put_initializer(p, w, parts->constants[k], parts->large_constants_are_inputs, parts->weights));
  }
  for (size_t k = 0; k < parts->n_inputs; k++) {
    ORT_TRY(put_value(p, w, GRAPH_INPUT, parts->inputs[k], true));
  }
  for (size_t k = 0; k < parts->n_outputs; k++) {
    ORT_TRY(parts->outputs[k] ? put_value(p, w, GRAPH_OUTPUT, parts->outputs[k], parts->is_body) : NULL);
  }
  return NULL;
}

static OrtStatus *put_opsets(const ort_provider *p, pb_writer *w, const OrtGraph *graph) {
  size_t n;
  ORT_TRY(p->api->Graph_GetNumOperatorSets(graph, &n));
  const char **domains = list(n, sizeof *domains);
  int64_t *versions = list(n, sizeof *versions);
  OrtStatus *failed =
      domains && versions ? p->api->Graph_GetOperatorSets(graph, domains, versions, n) : ort_no_memory(p);
  for (size_t k = 0; !failed && k < n; k++) {
    pb_writer opset = {0};
    pb_put_text(&opset, OPSET_DOMAIN, domains[k]);
    pb_put_int(&opset, OPSET_VERSION, versions[k]);
    pb_put_message(w, MODEL_OPSET, &opset);
  }
  free(domains);
  free(versions);
  return failed;
}

OrtStatus *ort_model_write(const ort_provider *p, const ort_graph *g, const ort_model_parts *parts, pb_writer *out) {
  int64_t ir_version;
  pb_writer graph = {0};
  ORT_TRY(p->api->Graph_GetOnnxIRVersion(g->graph, &ir_version));
  pb_put_int(out, MODEL_IR_VERSION, ir_version);
  pb_put_text(out, MODEL_PRODUCER, "onnxruntime");
  ORT_TRY(put_opsets(p, out, g->graph));
  OrtStatus *failed = put_graph(p, &graph, g, parts);
  if (failed) {
    pb_free(&graph);
    return failed;
  }
  pb_put_message(out, MODEL_GRAPH, &graph);
  return out->failed ? ort_no_memory(p) : NULL;
}
