/* graph_walk.c - visits nodes, the subgraphs in their attributes, and tensors (model_internal.h). */
#include "frontend/model/model_internal.h"

Onnx__GraphProto *onnx_attribute_graph(const Onnx__AttributeProto *attribute, size_t nth) {
  if (attribute->g) {
    if (nth == 0) {
      return attribute->g;
    }
    nth--;
  }
  return nth < attribute->n_graphs ? attribute->graphs[nth] : NULL;
}

typedef struct node_list {
  Onnx__NodeProto *const *nodes;
  size_t n;
} node_list;

typedef struct work {
  node_list *lists;
  uint32_t n, cap;
} work;

static void push_subgraphs(arena *scratch, Onnx__AttributeProto *const *attributes, size_t n, work *w) {
  for (size_t i = 0; i < n; i++) {
    const Onnx__GraphProto *g;
    for (size_t k = 0; (g = onnx_attribute_graph(attributes[i], k)); k++) {
      *ARENA_PUSH(scratch, w->lists, w->n, w->cap) = (node_list){g->node, g->n_node};
    }
  }
}

static status walk(arena *scratch, work *w, status (*visit)(void *data, Onnx__NodeProto *node), void *data) {
  while (w->n) {
    node_list list = w->lists[--w->n];
    for (size_t i = 0; i < list.n; i++) {
      TRY(visit(data, list.nodes[i]));
      push_subgraphs(scratch, list.nodes[i]->attribute, list.nodes[i]->n_attribute, w);
    }
  }
  return NULL;
}

status onnx_walk_nodes(arena *scratch, Onnx__NodeProto *const *nodes, size_t n,
                       status (*visit)(void *data, Onnx__NodeProto *node), void *data) {
  work w = {0};
  *ARENA_PUSH(scratch, w.lists, w.n, w.cap) = (node_list){nodes, n};
  return walk(scratch, &w, visit, data);
}

status onnx_walk_function(arena *scratch, const Onnx__FunctionProto *f,
                          status (*visit)(void *data, Onnx__NodeProto *node), void *data) {
  work w = {0};
  *ARENA_PUSH(scratch, w.lists, w.n, w.cap) = (node_list){f->node, f->n_node};
  push_subgraphs(scratch, f->attribute_proto, f->n_attribute_proto, &w);
  return walk(scratch, &w, visit, data);
}

/* --- tensors --- */

typedef struct tensor_walk {
  status (*visit)(void *data, Onnx__TensorProto *tensor);
  void *data;
} tensor_walk;

static status visit_tensor(const tensor_walk *w, Onnx__TensorProto *t) { return t ? w->visit(w->data, t) : NULL; }

static status visit_sparse(const tensor_walk *w, const Onnx__SparseTensorProto *t) {
  TRY(t ? visit_tensor(w, t->values) : NULL);
  return t ? visit_tensor(w, t->indices) : NULL;
}

static status visit_initializers(const tensor_walk *w, const Onnx__GraphProto *g) {
  for (size_t k = 0; k < g->n_initializer; k++) {
    TRY(visit_tensor(w, g->initializer[k]));
  }
  for (size_t k = 0; k < g->n_sparse_initializer; k++) {
    TRY(visit_sparse(w, g->sparse_initializer[k]));
  }
  return NULL;
}

/* Visits the tensors of an attribute, and of its graphs the initializers; the walk over nodes visits their nodes. */
static status visit_attribute(const tensor_walk *w, const Onnx__AttributeProto *x) {
  const Onnx__GraphProto *g;
  TRY(visit_tensor(w, x->t));
  TRY(visit_sparse(w, x->sparse_tensor));
  for (size_t k = 0; k < x->n_tensors; k++) {
    TRY(visit_tensor(w, x->tensors[k]));
  }
  for (size_t k = 0; k < x->n_sparse_tensors; k++) {
    TRY(visit_sparse(w, x->sparse_tensors[k]));
  }
  for (size_t k = 0; (g = onnx_attribute_graph(x, k)); k++) {
    TRY(visit_initializers(w, g));
  }
  return NULL;
}

static status visit_attributes(const tensor_walk *w, Onnx__AttributeProto *const *attributes, size_t n) {
  for (size_t k = 0; k < n; k++) {
    TRY(visit_attribute(w, attributes[k]));
  }
  return NULL;
}

static status visit_node(void *data, Onnx__NodeProto *node) {
  return visit_attributes(data, node->attribute, node->n_attribute);
}

status onnx_walk_tensors(arena *scratch, const Onnx__ModelProto *m,
                         status (*visit)(void *data, Onnx__TensorProto *tensor), void *data) {
  tensor_walk w = {visit, data};
  TRY(visit_initializers(&w, m->graph));
  TRY(onnx_walk_nodes(scratch, m->graph->node, m->graph->n_node, visit_node, &w));
  for (size_t k = 0; k < m->n_functions; k++) {
    const Onnx__FunctionProto *f = m->functions[k];
    TRY(visit_attributes(&w, f->attribute_proto, f->n_attribute_proto));
    TRY(onnx_walk_function(scratch, f, visit_node, &w));
  }
  return NULL;
}
