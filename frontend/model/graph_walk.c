/* graph_walk.c - visits nodes and the subgraphs in their attributes (model_internal.h). */
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

static void push_subgraphs(arena *scratch, const Onnx__NodeProto *node, work *w) {
  for (size_t i = 0; i < node->n_attribute; i++) {
    const Onnx__GraphProto *g;
    for (size_t k = 0; (g = onnx_attribute_graph(node->attribute[i], k)); k++) {
      *ARENA_PUSH(scratch, w->lists, w->n, w->cap) = (node_list){g->node, g->n_node};
    }
  }
}

status onnx_walk_nodes(arena *scratch, Onnx__NodeProto *const *nodes, size_t n,
                       status (*visit)(void *data, Onnx__NodeProto *node), void *data) {
  work w = {0};
  *ARENA_PUSH(scratch, w.lists, w.n, w.cap) = (node_list){nodes, n};
  while (w.n) {
    node_list list = w.lists[--w.n];
    for (size_t i = 0; i < list.n; i++) {
      TRY(visit(data, list.nodes[i]));
      push_subgraphs(scratch, list.nodes[i], &w);
    }
  }
  return NULL;
}
