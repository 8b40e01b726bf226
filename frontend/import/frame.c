/* frame.c - the nodes, names and arrays of a graph that runs segment by segment (frame.h). */
#include "frontend/import/frame.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/model/functions.h"
#include "frontend/model/model_internal.h"
#include "frontend/model/tensor.h"

onnx_frame *onnx_frame_create(arena *a, const onnx_model *m, const onnx_frame *outer, const Onnx__GraphProto *graph,
                              const onnx_function *function, const Onnx__NodeProto *call) {
  onnx_frame *f = ARENA_NEW(a, onnx_frame);
  *f = (onnx_frame){.model = m, .outer = outer, .graph = graph, .function = function, .call = call, .arena = a};
  f->n_nodes = graph ? graph->n_node : function->proto->n_node;
  f->nodes = graph ? graph->node : function->proto->node;
  f->n_outputs = graph ? graph->n_output : call->n_output; /* a call may name fewer outputs than the function has */
  f->states = ARENA_NEW_N(a, uint8_t, f->n_nodes);
  str_map_init(&f->arrays, a);
  return f;
}

const char *onnx_frame_output(const onnx_frame *f, size_t k) {
  return f->graph ? f->graph->output[k]->name : f->function->proto->output[k];
}

const onnx_opsets *onnx_frame_opsets(const onnx_frame *f) {
  return f->function ? &f->function->opsets : &f->model->opsets;
}

status onnx_frame_node(const onnx_frame *f, arena *a, size_t k, const Onnx__NodeProto **out) {
  *out = f->nodes[k];
  return f->function ? onnx_node_bind(a, f->function, f->call, f->nodes[k], out) : NULL;
}

/* --- values --- */

/* Reads the initializer of that name, dense or sparse; *out is unchanged if the frame's graph has none. */
static status find_initializer(const onnx_frame *f, arena *a, const char *name, literal **out) {
  const Onnx__GraphProto *g = f->graph;
  const onnx_source *source = &f->model->source;
  for (size_t k = 0; g && k < g->n_initializer; k++) {
    if (strcmp(g->initializer[k]->name, name) == 0) {
      *out = ARENA_NEW(a, literal);
      return onnx_tensor_weights(a, source, g->initializer[k], *out);
    }
  }
  for (size_t k = 0; g && k < g->n_sparse_initializer; k++) {
    if (strcmp(g->sparse_initializer[k]->values->name, name) == 0) {
      *out = ARENA_NEW(a, literal);
      return onnx_sparse_tensor_literal(a, source, g->sparse_initializer[k], *out);
    }
  }
  return NULL;
}

enum { NO_TEXT = '\xff' }; /* a byte that does not occur in UTF-8 */

const char *onnx_element_name(arena *a, const char *sequence, uint32_t k) {
  return arena_printf(a, "%s%c%" PRIu32, sequence, NO_TEXT, k);
}

static onnx_array *find_element(const onnx_frame *f, arena *a, const char *name, const char *at) {
  onnx_array *sequence;
  literal *none;
  unsigned long k = strtoul(at + 1, NULL, 10);
  status failed = onnx_frame_find(f, a, arena_strndup(a, name, (size_t)(at - name)), &sequence, &none);
  bool found = !failed && sequence && k < sequence->n;
  status_free(failed);
  return found ? sequence->elements[k] : NULL;
}

status onnx_frame_find(const onnx_frame *f, arena *a, const char *name, onnx_array **array, literal **initializer) {
  const char *element = strchr(name, NO_TEXT);
  *array = element ? find_element(f, a, name, element) : NULL;
  *initializer = NULL;
  for (; f && !element && !*array && !*initializer; f = f->outer) {
    *array = str_map_get(&f->arrays, name);
    if (!*array) {
      TRY(find_initializer(f, a, name, initializer));
    }
  }
  return NULL;
}

bool onnx_frame_leaves_out(const onnx_frame *f, const char *name) {
  for (; f && !str_map_get(&f->arrays, name); f = f->outer) {
    for (size_t k = 0; !f->graph && k < f->function->proto->n_input; k++) {
      if (strcmp(f->function->proto->input[k], name) == 0) {
        return true;
      }
    }
  }
  return false;
}

/* --- what a node reads --- */

/* The names that the enclosing subgraphs define; a chain from the innermost subgraph outwards. */
typedef struct defined {
  const struct defined *outer;
  str_map names;
} defined;

typedef struct reading {
  arena *a;
  onnx_reads_fn *visit;
  void *data;
  bool stopped; /* whether `visit` has returned true */
} reading;

static void read_name(reading *r, const defined *d, const char *name) {
  for (; d; d = d->outer) {
    if (str_map_get(&d->names, name)) {
      return;
    }
  }
  r->stopped = r->stopped || (*name && r->visit(r->data, name));
}

static void read_node(reading *r, const defined *d, const Onnx__NodeProto *node);

static void define(defined *d, const char *name) { *str_map_put(&d->names, name) = d; }

/* The depth of the recursion is bounded, since the wire scan bounds how deep graphs nest (ONNX_WIRE_MAX_DEPTH). */
static void read_graph(reading *r, const defined *outer, const Onnx__GraphProto *g) {
  defined inner = {.outer = outer};
  str_map_init(&inner.names, r->a);
  for (size_t k = 0; k < g->n_input; k++) {
    define(&inner, g->input[k]->name);
  }
  for (size_t k = 0; k < g->n_initializer; k++) {
    define(&inner, g->initializer[k]->name);
  }
  for (size_t k = 0; k < g->n_sparse_initializer; k++) {
    define(&inner, g->sparse_initializer[k]->values->name);
  }
  for (size_t k = 0; k < g->n_node; k++) {
    read_node(r, &inner, g->node[k]);
    for (size_t o = 0; o < g->node[k]->n_output; o++) {
      define(&inner, g->node[k]->output[o]);
    }
  }
  for (size_t k = 0; k < g->n_output; k++) {
    read_name(r, &inner, g->output[k]->name);
  }
}

static void read_node(reading *r, const defined *d, const Onnx__NodeProto *node) {
  for (size_t k = 0; k < node->n_input; k++) {
    read_name(r, d, node->input[k]);
  }
  for (size_t k = 0; k < node->n_attribute; k++) {
    const Onnx__GraphProto *g;
    for (size_t i = 0; (g = onnx_attribute_graph(node->attribute[k], i)); i++) {
      read_graph(r, d, g);
    }
  }
}

bool onnx_visit_reads(arena *a, const Onnx__NodeProto *node, onnx_reads_fn *visit, void *data) {
  reading r = {.a = a, .visit = visit, .data = data};
  read_node(&r, NULL, node);
  return r.stopped;
}

static bool add_read(void *names, const char *name) {
  *str_map_put(names, name) = names;
  return false;
}

void onnx_add_reads(str_map *names, const Onnx__NodeProto *node) {
  (void)onnx_visit_reads(names->arena, node, add_read, names);
}

typedef struct listing {
  str_map seen;
  onnx_names *out;
} listing;

static bool list_read(void *data, const char *name) {
  listing *l = data;
  void **seen = str_map_put(&l->seen, name);
  if (!*seen) {
    *seen = l;
    *ARENA_PUSH(l->seen.arena, l->out->items, l->out->n, l->out->cap) = name;
  }
  return false;
}

void onnx_node_reads(arena *a, const Onnx__NodeProto *node, onnx_names *out) {
  listing l = {.out = out};
  str_map_init(&l.seen, a);
  (void)onnx_visit_reads(a, node, list_read, &l);
}
