/* part.c - extracts some nodes of a model as a model of its own. */
#include "frontend/import/part.h"

#include <inttypes.h>
#include <string.h>

#include "frontend/model/attributes.h"
#include "frontend/model/model_internal.h"
#include "frontend/model/tensor.h"
#include "frontend/model/wire_scan.h"

/* --- finding nodes --- */

/* A search for the nodes that have given sources (onnx_node_source). */
typedef struct finder {
  arena *a;
  const onnx_model *m;
  str_map sources;   /* from a requested source to its index plus 1 */
  uint32_t *holders; /* for each source: the number of main-graph nodes that have it, or contain a node that has it */
  uint32_t *last;    /* for each source: the index plus 1 of the last main-graph node that `holders` counts */
  uint32_t at;       /* the index plus 1 of the main-graph node that is being searched */
} finder;

static status look_at(void *data, Onnx__NodeProto *node) {
  finder *f = data;
  uintptr_t source = (uintptr_t)str_map_get(&f->sources, onnx_node_source(f->a, node));
  if (source && f->last[source - 1] != f->at) {
    f->last[source - 1] = f->at;
    f->holders[source - 1]++;
  }
  const onnx_function *callee = onnx_model_callee(f->m, node);
  return callee ? onnx_walk_function(f->a, callee->proto, look_at, f) : NULL;
}

/* Sets after[k] for the chosen nodes and all nodes that depend on them, and before[k] for the chosen nodes and all
 * nodes that they depend on. */
static void follow(arena *a, const Onnx__GraphProto *g, const bool *chosen, bool *after, bool *before) {
  str_map given, needed;
  onnx_names *reads = ARENA_NEW_N(a, onnx_names, g->n_node);
  str_map_init(&given, a);
  str_map_init(&needed, a);
  for (size_t k = 0; k < g->n_node; k++) { /* nodes are in dependency order */
    onnx_node_reads(a, g->node[k], &reads[k]);
    after[k] = chosen[k];
    for (uint32_t r = 0; r < reads[k].n; r++) {
      after[k] |= str_map_get(&given, reads[k].items[r]) != NULL;
    }
    for (size_t o = 0; after[k] && o < g->node[k]->n_output; o++) {
      *str_map_put(&given, g->node[k]->output[o]) = after;
    }
  }
  for (size_t k = g->n_node; k-- > 0;) {
    before[k] = chosen[k];
    for (size_t o = 0; o < g->node[k]->n_output; o++) {
      before[k] |= *g->node[k]->output[o] && str_map_get(&needed, g->node[k]->output[o]);
    }
    for (uint32_t r = 0; before[k] && r < reads[k].n; r++) {
      *str_map_put(&needed, reads[k].items[r]) = before;
    }
  }
}

static void find_inputs(arena *a, const onnx_model *m, onnx_part *part) {
  str_map known; /* values that the part defines, and inputs that are listed already */
  str_map_init(&known, a);
  for (size_t k = 0; k < m->graph->n_node; k++) {
    const Onnx__NodeProto *node = m->graph->node[k];
    onnx_names reads = {0};
    onnx_node_reads(a, node, &reads);
    for (uint32_t r = 0; part->chosen[k] && r < reads.n; r++) {
      void **slot = str_map_put(&known, reads.items[r]);
      if (!*slot && !onnx_model_has_initializer(m, reads.items[r])) {
        *ARENA_PUSH(a, part->inputs.items, part->inputs.n, part->inputs.cap) = reads.items[r];
      }
      *slot = part;
    }
    for (size_t o = 0; part->chosen[k] && o < node->n_output; o++) {
      *str_map_put(&known, node->output[o]) = part;
    }
  }
}

/* Adds to the part's results the outputs of its nodes whose names are in `wanted`, or all outputs if that is NULL. */
static void add_results(arena *a, const onnx_model *m, const str_map *wanted, onnx_part *part) {
  for (size_t k = 0; k < m->graph->n_node; k++) {
    const Onnx__NodeProto *node = m->graph->node[k];
    for (size_t o = 0; part->chosen[k] && o < node->n_output; o++) {
      if (*node->output[o] && (!wanted || str_map_get(wanted, node->output[o]))) {
        *ARENA_PUSH(a, part->results.items, part->results.n, part->results.cap) = node->output[o];
      }
    }
  }
}

static void find_results(arena *a, const onnx_model *m, onnx_part *part) {
  const Onnx__GraphProto *g = m->graph;
  str_map wanted;
  str_map_init(&wanted, a);
  for (size_t k = 0; k < g->n_output; k++) {
    *str_map_put(&wanted, g->output[k]->name) = part;
  }
  for (size_t k = 0; k < g->n_node; k++) {
    onnx_names reads = {0};
    onnx_node_reads(a, g->node[k], &reads);
    for (uint32_t r = 0; !part->chosen[k] && r < reads.n; r++) {
      *str_map_put(&wanted, reads.items[r]) = part;
    }
  }
  add_results(a, m, &wanted, part);
  if (part->results.n == 0) {
    add_results(a, m, NULL, part);
  }
}

/* Sets chosen[k] for each node k of the main graph that has one of the sources or contains a node that has one.  The
 * body of a function is searched once for each call; the time is bounded, since loading bounds the number of nodes
 * after inlining (max_nodes). */
static status choose(finder *f, uint32_t n, const char *const *sources, bool *chosen) {
  const Onnx__GraphProto *g = f->m->graph;
  for (uint32_t k = 0; k < n; k++) {
    *str_map_put(&f->sources, sources[k]) = (void *)(uintptr_t)(k + 1);
  }
  for (f->at = 1; f->at <= g->n_node; f->at++) {
    TRY(onnx_walk_nodes(f->a, &g->node[f->at - 1], 1, look_at, f));
  }
  for (uint32_t k = 0; k < n; k++) {
    uint32_t holders = f->holders[(uintptr_t)str_map_get(&f->sources, sources[k]) - 1];
    CHECK_THAT(holders, STATUS_UNSUPPORTED, "'%s' is no node of the model", sources[k]);
    CHECK_THAT(holders == 1, STATUS_UNSUPPORTED, "%" PRIu32 " nodes of the model are or contain '%s'", holders,
               sources[k]);
    chosen[f->last[(uintptr_t)str_map_get(&f->sources, sources[k]) - 1] - 1] = true;
  }
  return NULL;
}

status onnx_part_find(arena *a, const onnx_model *m, uint32_t n, const char *const *sources, onnx_part *out) {
  size_t n_nodes = m->graph->n_node;
  *out = (onnx_part){.chosen = ARENA_NEW_N(a, bool, n_nodes + 1)};
  finder f = {.a = a, .m = m, .holders = ARENA_NEW_N(a, uint32_t, n + 1), .last = ARENA_NEW_N(a, uint32_t, n + 1)};
  str_map_init(&f.sources, a);
  CHECK_THAT(n, STATUS_UNSUPPORTED, "the nodes that it was imported from are not known");
  TRY(choose(&f, n, sources, out->chosen));
  bool *after = ARENA_NEW_N(a, bool, n_nodes), *before = ARENA_NEW_N(a, bool, n_nodes);
  follow(a, m->graph, out->chosen, after, before);
  for (size_t k = 0; k < n_nodes; k++) {
    out->chosen[k] = after[k] && before[k];
  }
  find_inputs(a, m, out);
  find_results(a, m, out);
  return NULL;
}

/* --- other outputs --- */

static Onnx__ValueInfoProto *value_info(arena *a, const char *name) {
  Onnx__ValueInfoProto *v = ARENA_NEW(a, Onnx__ValueInfoProto);
  onnx__value_info_proto__init(v);
  v->name = (char *)(uintptr_t)name;
  return v;
}

static Onnx__NodeProto **copy_nodes(arena *a, const Onnx__GraphProto *g, const bool *which, size_t *n) {
  Onnx__NodeProto **nodes = ARENA_NEW_N(a, Onnx__NodeProto *, g->n_node);
  *n = 0;
  for (size_t k = 0; k < g->n_node; k++) {
    if (which[k]) {
      nodes[(*n)++] = g->node[k];
    }
  }
  return nodes;
}

onnx_model *onnx_model_with_outputs(arena *a, const onnx_model *m, uint32_t n, const char *const *names) {
  onnx_model *copy = arena_memdup(a, m, sizeof *m);
  Onnx__GraphProto *g = copy->graph = arena_memdup(a, m->graph, sizeof *m->graph);
  str_map wanted;
  str_map_init(&wanted, a);
  g->n_output = n;
  g->output = ARENA_NEW_N(a, Onnx__ValueInfoProto *, n);
  for (uint32_t k = 0; k < n; k++) {
    g->output[k] = value_info(a, names[k]);
    *str_map_put(&wanted, names[k]) = copy;
  }
  bool *chosen = ARENA_NEW_N(a, bool, m->graph->n_node), *after = ARENA_NEW_N(a, bool, m->graph->n_node);
  bool *before = ARENA_NEW_N(a, bool, m->graph->n_node);
  for (size_t k = 0; k < m->graph->n_node; k++) {
    for (size_t o = 0; o < m->graph->node[k]->n_output; o++) {
      chosen[k] |= *m->graph->node[k]->output[o] && str_map_get(&wanted, m->graph->node[k]->output[o]);
    }
  }
  follow(a, m->graph, chosen, after, before);
  g->node = copy_nodes(a, m->graph, before, &g->n_node);
  return copy;
}

/* --- the file --- */

static void set_type(arena *a, Onnx__ValueInfoProto *v, const shape *s) {
  v->type = ARENA_NEW(a, Onnx__TypeProto);
  onnx__type_proto__init(v->type);
  v->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  Onnx__TypeProto__Tensor *t = v->type->tensor_type = ARENA_NEW(a, Onnx__TypeProto__Tensor);
  onnx__type_proto__tensor__init(t);
  t->has_elem_type = 1;
  t->elem_type = dtype_get_info((dtype)s->type)->onnx;
  t->shape = ARENA_NEW(a, Onnx__TensorShapeProto);
  onnx__tensor_shape_proto__init(t->shape);
  t->shape->n_dim = s->rank;
  t->shape->dim = ARENA_NEW_N(a, Onnx__TensorShapeProto__Dimension *, s->rank);
  for (int k = 0; k < s->rank; k++) {
    Onnx__TensorShapeProto__Dimension *d = t->shape->dim[k] = ARENA_NEW(a, Onnx__TensorShapeProto__Dimension);
    onnx__tensor_shape_proto__dimension__init(d);
    d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    d->dim_value = s->dims[k];
  }
}

static Onnx__ValueInfoProto *declare(arena *a, const onnx_part_value *v) {
  Onnx__ValueInfoProto *info = value_info(a, v->name);
  set_type(a, info, &v->value.shape);
  return info;
}

static status add_inputs(arena *a, const onnx_part *part, const onnx_part_value *inputs, Onnx__GraphProto *g) {
  for (uint32_t k = 0; k < part->inputs.n; k++) {
    if (inputs[k].is_constant) {
      Onnx__TensorProto *t = g->initializer[g->n_initializer++] = ARENA_NEW(a, Onnx__TensorProto);
      TRY(onnx_tensor_from_literal(a, inputs[k].name, &inputs[k].value, NULL, t));
    } else {
      g->input[g->n_input++] = declare(a, &inputs[k]);
    }
  }
  return NULL;
}

/* Adds the initializers of the model that the nodes of g read. */
static void add_initializers(arena *a, const Onnx__GraphProto *from, Onnx__GraphProto *g) {
  str_map read;
  str_map_init(&read, a);
  for (size_t k = 0; k < g->n_node; k++) {
    onnx_names reads = {0};
    onnx_node_reads(a, g->node[k], &reads);
    for (uint32_t r = 0; r < reads.n; r++) {
      *str_map_put(&read, reads.items[r]) = g;
    }
  }
  for (size_t k = 0; k < from->n_initializer; k++) {
    if (str_map_get(&read, from->initializer[k]->name)) {
      g->initializer[g->n_initializer++] = from->initializer[k];
    }
  }
  g->sparse_initializer = ARENA_NEW_N(a, Onnx__SparseTensorProto *, from->n_sparse_initializer);
  for (size_t k = 0; k < from->n_sparse_initializer; k++) {
    if (str_map_get(&read, from->sparse_initializer[k]->values->name)) {
      g->sparse_initializer[g->n_sparse_initializer++] = from->sparse_initializer[k];
    }
  }
}

typedef struct callees {
  arena *a;
  const onnx_model *m;
  Onnx__ModelProto *to;
} callees;

static status add_callee(void *data, Onnx__NodeProto *node) {
  callees *c = data;
  const onnx_function *f = onnx_model_callee(c->m, node);
  for (size_t k = 0; f && k < c->to->n_functions; k++) {
    f = c->to->functions[k] == f->proto ? NULL : f;
  }
  if (f) {
    c->to->functions[c->to->n_functions++] = (Onnx__FunctionProto *)(uintptr_t)f->proto;
    return onnx_walk_function(c->a, f->proto, add_callee, c);
  }
  return NULL;
}

/* --- constants --- */

/* Copies tensor data back into the messages: the payloads that the wire scan left out, and external data. */
typedef struct restorer {
  arena *a;
  const onnx_source *source;
  uint64_t left; /* the number of bytes that may still be copied */
} restorer;

static status restore(void *data, Onnx__TensorProto *t) {
  restorer *r = data;
  literal l;
  bool is_external = t->has_data_location && t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
  if (t->has_span_field || is_external) {
    TRY(onnx_tensor_shape(t, &l.shape));
    uint64_t bytes = (uint64_t)shape_bytes(&l.shape);
    CHECK_THAT(bytes <= r->left, STATUS_UNSUPPORTED, "it takes more than 64 MiB");
    r->left -= bytes;
    TRY(onnx_tensor_literal(r->a, r->source, t, &l));
    TRY(onnx_tensor_from_literal(r->a, t->name, &l, r->source->strings, t));
  }
  return NULL;
}

/* Restores all tensor data of p.  `size` is the size in bytes of the packed model without that data. */
static status restore_model(arena *a, const onnx_model *m, size_t size, const Onnx__ModelProto *p) {
  const uint64_t most = (uint64_t)64 << 20;
  restorer r = {a, &m->source, most - size};
  CHECK_THAT(size <= most, STATUS_UNSUPPORTED, "it takes more than 64 MiB");
  return onnx_walk_tensors(a, p, restore, &r);
}

static uint8_t *pack(arena *a, const Onnx__ModelProto *p, size_t *size) {
  *size = onnx__model_proto__get_packed_size(p);
  uint8_t *bytes = arena_alloc(a, *size);
  onnx__model_proto__pack(p, bytes);
  return bytes;
}

/* At first the new model shares nodes and tensors with the model m.  It is then packed and unpacked, which gives a copy
 * whose tensor data can be restored without changing m. */
status onnx_part_pack(arena *a, const onnx_model *m, const onnx_part *part, const onnx_part_value *inputs,
                      const onnx_part_value *results, uint8_t **bytes, size_t *size) {
  enum { OLDEST = 3, UNLISTED = 4 }; /* from IR version 4 on, an initializer need not be listed as an input */
  const Onnx__GraphProto *from = m->graph;
  Onnx__ModelProto p = ONNX__MODEL_PROTO__INIT;
  Onnx__GraphProto g = ONNX__GRAPH_PROTO__INIT;
  CHECK_THAT(m->ir_version >= OLDEST, STATUS_UNSUPPORTED, "the model is of IR version %" PRId64, m->ir_version);
  p.has_ir_version = 1;
  p.ir_version = m->ir_version < UNLISTED ? UNLISTED : m->ir_version;
  p.n_opset_import = m->proto->n_opset_import;
  p.opset_import = m->proto->opset_import;
  p.graph = &g;
  p.functions = ARENA_NEW_N(a, Onnx__FunctionProto *, m->proto->n_functions);
  g.name = arena_strdup(a, "part");
  g.node = copy_nodes(a, from, part->chosen, &g.n_node);
  g.initializer = ARENA_NEW_N(a, Onnx__TensorProto *, from->n_initializer + part->inputs.n);
  g.input = ARENA_NEW_N(a, Onnx__ValueInfoProto *, part->inputs.n);
  g.output = ARENA_NEW_N(a, Onnx__ValueInfoProto *, part->results.n);
  add_initializers(a, from, &g);
  TRY(add_inputs(a, part, inputs, &g));
  for (; g.n_output < part->results.n; g.n_output++) {
    g.output[g.n_output] = declare(a, &results[g.n_output]);
  }
  TRY(onnx_walk_nodes(a, g.node, g.n_node, add_callee, &(callees){a, m, &p}));
  const uint8_t *packed = pack(a, &p, size);
  Onnx__ModelProto *copy = (Onnx__ModelProto *)onnx_wire_unpack(a, &onnx__model_proto__descriptor, packed, *size);
  CHECK_THAT(copy, STATUS_INTERNAL, "a part of the model cannot be unpacked again");
  TRY(restore_model(a, m, *size, copy));
  *bytes = pack(a, copy, size);
  return NULL;
}
