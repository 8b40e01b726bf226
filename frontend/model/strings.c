/* strings.c - collects the strings that may become elements of arrays (model_internal.h). */
#include <string.h>

#include "base/tensor/string_table.h"
#include "frontend/model/model_internal.h"

static void add(string_table *t, const ProtobufCBinaryData *s) { (void)string_table_add(t, s->data, s->len); }

static status add_tensor(void *data, Onnx__TensorProto *tensor) {
  for (size_t k = 0; k < tensor->n_string_data; k++) {
    add(data, &tensor->string_data[k]);
  }
  return NULL;
}

/* Lists of strings, value_string of Constant and default_string of ai.onnx.ml; other strings choose what an operator
 * does. */
static void add_attributes(string_table *t, Onnx__AttributeProto *const *attributes, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const Onnx__AttributeProto *x = attributes[i];
    for (size_t k = 0; k < x->n_strings; k++) {
      add(t, &x->strings[k]);
    }
    if (strcmp(x->name, "value_string") == 0 || strcmp(x->name, "default_string") == 0) {
      add(t, &x->s);
    }
  }
}

static status add_node(void *data, Onnx__NodeProto *node) {
  static char unused[] = "_Unused"; /* the default of default_string */
  if (strcmp(node->domain, "ai.onnx.ml") == 0) {
    (void)string_table_add(data, unused, sizeof unused - 1);
  }
  add_attributes(data, node->attribute, node->n_attribute);
  return NULL;
}

status onnx_model_collect_strings(onnx_model *m, arena *scratch) {
  const Onnx__ModelProto *p = m->proto;
  string_table *t = m->source.strings = string_table_create(m->arena, NULL);
  TRY(onnx_walk_tensors(scratch, p, add_tensor, t));
  TRY(onnx_walk_nodes(scratch, m->graph->node, m->graph->n_node, add_node, t));
  for (size_t k = 0; k < p->n_functions; k++) {
    const Onnx__FunctionProto *f = p->functions[k];
    add_attributes(t, f->attribute_proto, f->n_attribute_proto);
    TRY(onnx_walk_function(scratch, f, add_node, t));
  }
  return NULL;
}
