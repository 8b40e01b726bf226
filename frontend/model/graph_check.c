/* graph_check.c - checks the names, domains and node order of graphs and functions (model_internal.h).
 *
 * A graph or function with all the subgraphs inside it becomes a list of scopes, outer ones first.  Each scope has a
 * table of the names that it defines; every use of a name is looked up from the innermost scope outwards.  The time is
 * at most the size of the model times the depth of nesting; the wire scan bounds that depth. */
#include <string.h>

#include "frontend/model/attributes.h"
#include "frontend/model/model_internal.h"

/* How a name is defined, as stored in scope.defs.  A value from DEF_NODE on means an output of node
 * (value - DEF_NODE).  DEF_BOTH means an input that has an initializer. */
enum { DEF_NONE = 0, DEF_INPUT, DEF_INITIALIZER, DEF_BOTH, DEF_NODE };

typedef struct edge {
  uint32_t from, to; /* node `to` reads an output of node `from` */
  const char *value; /* the name of that output */
} edge;

typedef struct scope {
  struct scope *parent;
  /* The index of the parent's node that has this subgraph as an attribute.  For the default of a function's attribute
   * it is the number of nodes: such a graph sees what the whole body of the function defines. */
  uint32_t at;
  const char *attribute; /* the name of that attribute */
  Onnx__NodeProto **nodes;
  uint32_t n_nodes;
  Onnx__GraphProto *graph; /* NULL if the scope is a function's body */
  str_map defs;            /* from a name to its DEF_... value */
  bool unsorted;           /* whether a node reads an output of a later node */
  edge *edges;             /* the dependencies between the nodes; recorded only if the scope is unsorted */
  uint32_t n_edges, edges_cap;
} scope;

typedef struct check {
  const onnx_model *m;
  const onnx_function *function; /* NULL if the main graph is checked */
  const onnx_opsets *opsets;
  str_map declared; /* the names of the attributes that the function declares */
  arena *scratch;
  scope **scopes; /* outer ones before inner ones */
  uint32_t n_scopes, scopes_cap;
} check;

/* --- messages --- */

/* Prefixes the message with the labels of the nodes around the scope, and with the name of the function. */
static status in_scope(const check *c, const scope *s, status failed) {
  for (; failed && s->parent; s = s->parent) {
    if (s->at == s->parent->n_nodes) {
      failed = status_prefix(failed, "the default of %.100s", s->attribute);
      continue;
    }
    const char *label = onnx_node_label(c->scratch, s->parent->nodes[s->at]);
    failed = status_about_node(failed, label, strlen(label));
    failed = status_prefix(failed, "%s: %.100s", label, s->attribute);
  }
  if (failed && c->function) {
    const Onnx__FunctionProto *f = c->function->proto;
    failed = status_prefix(failed, "function %.200s%s%.200s", f->domain, *f->domain ? "." : "", f->name);
  }
  return failed;
}

static status at_node(const check *c, const Onnx__NodeProto *node, status failed) {
  return failed ? status_at_node(failed, onnx_node_label(c->scratch, node)) : NULL;
}

/* --- definitions --- */

static uintptr_t get_def(const scope *s, const char *name) { return (uintptr_t)str_map_get(&s->defs, name); }

static status define_input(scope *s, const char *name) {
  CHECK_THAT(*name, STATUS_INVALID_MODEL, "an input has no name");
  void **slot = str_map_put(&s->defs, name);
  CHECK_THAT(!*slot, STATUS_INVALID_MODEL, "input \"%.200s\" is defined twice", name);
  *slot = (void *)(uintptr_t)DEF_INPUT;
  return NULL;
}

/* IR versions before 4 require that every initializer is also listed as an input.  Some files in use do not do that;
 * their initializer is accepted as a constant. */
static status define_initializer(scope *s, const char *name) {
  CHECK_THAT(*name, STATUS_INVALID_MODEL, "an initializer has no name");
  void **slot = str_map_put(&s->defs, name);
  uintptr_t def = (uintptr_t)*slot;
  CHECK_THAT(def == DEF_NONE || def == DEF_INPUT, STATUS_INVALID_MODEL, "initializer \"%.200s\" is defined twice",
             name);
  *slot = (void *)(uintptr_t)(def == DEF_INPUT ? DEF_BOTH : DEF_INITIALIZER);
  return NULL;
}

static status define_graph_values(scope *s) {
  const Onnx__GraphProto *g = s->graph;
  for (size_t i = 0; i < g->n_input; i++) {
    TRY(define_input(s, g->input[i]->name));
  }
  for (size_t i = 0; i < g->n_initializer; i++) {
    TRY(define_initializer(s, g->initializer[i]->name));
  }
  for (size_t i = 0; i < g->n_sparse_initializer; i++) {
    const Onnx__TensorProto *values = g->sparse_initializer[i]->values;
    TRY(define_initializer(s, values ? values->name : ""));
  }
  return NULL;
}

static status define_outputs(scope *s, uint32_t at) {
  const Onnx__NodeProto *node = s->nodes[at];
  for (size_t i = 0; i < node->n_output; i++) {
    const char *name = node->output[i];
    if (!*name) {
      continue;
    }
    void **slot = str_map_put(&s->defs, name);
    CHECK_THAT(!*slot, STATUS_INVALID_MODEL, "output \"%.200s\" is already the name of %s", name,
               (uintptr_t)*slot == DEF_INPUT         ? "an input"
               : (uintptr_t)*slot == DEF_INITIALIZER ? "an initializer"
               : (uintptr_t)*slot == DEF_BOTH        ? "an input"
                                                     : "another output");
    *slot = (void *)((uintptr_t)at + DEF_NODE);
  }
  return NULL;
}

/* --- checks of a single node --- */

static status check_attributes(const check *c, const Onnx__NodeProto *node) {
  str_map names;
  str_map_init(&names, c->scratch);
  for (size_t i = 0; i < node->n_attribute; i++) {
    const Onnx__AttributeProto *attribute = node->attribute[i];
    const char *reference = attribute->ref_attr_name;
    CHECK_THAT(*attribute->name, STATUS_INVALID_MODEL, "an attribute has no name");
    for (size_t k = 0; k < i && i < 16; k++) {
      CHECK_THAT(strcmp(node->attribute[k]->name, attribute->name) != 0, STATUS_INVALID_MODEL,
                 "attribute \"%.200s\" is given twice", attribute->name);
    }
    if (node->n_attribute > 16) {
      void **slot = str_map_put(&names, attribute->name);
      CHECK_THAT(!*slot, STATUS_INVALID_MODEL, "attribute \"%.200s\" is given twice", attribute->name);
      *slot = node->attribute[i];
    }
    if (*reference) {
      CHECK_THAT(c->function, STATUS_INVALID_MODEL,
                 "attribute \"%.200s\" refers to an attribute \"%.200s\", but is not in a function", attribute->name,
                 reference);
      CHECK_THAT(str_map_get(&c->declared, reference), STATUS_INVALID_MODEL,
                 "attribute \"%.200s\" refers to \"%.200s\", which the function does not have", attribute->name,
                 reference);
    }
  }
  return NULL;
}

static status check_node(const check *c, Onnx__NodeProto *node) {
  node->domain = (char *)onnx_domain(node->domain);
  CHECK_THAT(*node->op_type, STATUS_INVALID_MODEL, "a node has no operator type");
  bool known = onnx_opset_version(c->opsets, node->domain) || onnx_model_callee(c->m, node);
  CHECK_THAT(known, STATUS_INVALID_MODEL, "opset_import does not have its domain \"%.200s\"",
             *node->domain ? node->domain : "ai.onnx");
  return check_attributes(c, node);
}

/* --- scopes --- */

static scope *add_scope(check *c, Onnx__GraphProto *g) {
  scope *s = ARENA_NEW(c->scratch, scope);
  str_map_init(&s->defs, c->scratch);
  s->graph = g;
  if (g) {
    s->nodes = g->node;
    s->n_nodes = (uint32_t)g->n_node;
  }
  *ARENA_PUSH(c->scratch, c->scopes, c->n_scopes, c->scopes_cap) = s;
  return s;
}

/* Adds the scopes of the graphs in the attributes of node `at`. */
static void add_subgraphs(check *c, scope *s, uint32_t at, Onnx__AttributeProto *const *attributes, size_t n) {
  for (size_t i = 0; i < n; i++) {
    Onnx__GraphProto *g;
    for (size_t k = 0; (g = onnx_attribute_graph(attributes[i], k)); k++) {
      scope *inner = add_scope(c, g);
      inner->parent = s;
      inner->at = at;
      inner->attribute = attributes[i]->name;
    }
  }
}

static status define_scope(check *c, scope *s) {
  if (s->graph) {
    TRY(define_graph_values(s));
  }
  for (uint32_t i = 0; i < s->n_nodes; i++) {
    TRY(at_node(c, s->nodes[i], check_node(c, s->nodes[i])));
    TRY(at_node(c, s->nodes[i], define_outputs(s, i)));
    add_subgraphs(c, s, i, s->nodes[i]->attribute, s->nodes[i]->n_attribute);
  }
  return NULL;
}

/* --- uses --- */

/* Finds the definition of a name that node `at` of scope s reads; returns false if there is none.  `at` is s->n_nodes
 * for a name that is an output of s.  *where is the scope that defines it, and *from the index of the defining node, or
 * -1 for an input or initializer.  *to is the index, in *where, of the node that reads the name or contains the
 * subgraph that reads it. */
static bool resolve(scope *s, uint32_t at, const char *name, scope **where, int64_t *from, uint32_t *to) {
  for (; s; at = s->at, s = s->parent) {
    uintptr_t def = get_def(s, name);
    if (def) {
      *where = s;
      *from = def >= DEF_NODE ? (int64_t)(def - DEF_NODE) : -1;
      *to = at;
      return true;
    }
  }
  return false;
}

/* Handles one use of a name; returns false if the name is not defined.  The first pass over all uses finds out which
 * scopes are unsorted.  The second pass, with note_edges, records the edges of those scopes. */
static bool use(check *c, scope *s, uint32_t at, const char *name, bool note_edges) {
  scope *where;
  int64_t from;
  uint32_t to;
  if (!resolve(s, at, name, &where, &from, &to)) {
    return false;
  }
  if (from < 0 || to >= where->n_nodes) {
    return true;
  }
  if (!note_edges) {
    where->unsorted |= from >= to;
  } else if (where->unsorted) {
    *ARENA_PUSH(c->scratch, where->edges, where->n_edges, where->edges_cap) = (edge){(uint32_t)from, to, name};
  }
  return true;
}

static status use_all(check *c, scope *s, bool note_edges) {
  for (uint32_t i = 0; i < s->n_nodes; i++) {
    const Onnx__NodeProto *node = s->nodes[i];
    for (size_t k = 0; k < node->n_input; k++) {
      if (*node->input[k] && !use(c, s, i, node->input[k], note_edges)) {
        return at_node(c, node, status_error(STATUS_INVALID_MODEL, "input \"%.200s\" is not defined", node->input[k]));
      }
    }
  }
  size_t n = s->graph ? s->graph->n_output : c->function->proto->n_output;
  for (size_t i = 0; i < n; i++) {
    const char *name = s->graph ? s->graph->output[i]->name : c->function->proto->output[i];
    CHECK_THAT(*name, STATUS_INVALID_MODEL, "an output has no name");
    CHECK_THAT(use(c, s, s->n_nodes, name, note_edges), STATUS_INVALID_MODEL,
               "the %s's output \"%.200s\" is not defined", s->graph ? "graph" : "function", name);
  }
  return NULL;
}

/* --- sorting nodes into dependency order --- */

/* The state of sorting one scope.  The edges that lead to node i are by_node[first[i]] to by_node[first[i + 1] - 1]. */
typedef struct sorter {
  const check *c;
  scope *s;
  uint32_t *first;
  const edge **by_node;
  uint8_t *state; /* for each node: 0 if it is not visited yet, 1 if it is on the stack, 2 if it is in order[] */
  uint32_t *next; /* for each node: the position in by_node[] of its next edge to follow */
  uint32_t *stack, depth;
  Onnx__NodeProto **order;
  uint32_t n_order;
} sorter;

static void index_edges(sorter *w) {
  const scope *s = w->s;
  for (uint32_t i = 0; i < s->n_edges; i++) {
    w->first[s->edges[i].to + 1]++;
  }
  for (uint32_t i = 0; i < s->n_nodes; i++) {
    w->first[i + 1] += w->first[i];
    w->next[i] = w->first[i];
  }
  for (uint32_t i = 0; i < s->n_edges; i++) {
    w->by_node[w->next[s->edges[i].to]++] = &s->edges[i];
  }
  memcpy(w->next, w->first, s->n_nodes * sizeof *w->next);
}

/* Returns the error for a cycle: the edge e leads back to a node on the stack, so the nodes from there to the top of
 * the stack depend on each other. */
static status cycle(const sorter *w, const edge *e) {
  uint32_t start = w->depth - 1;
  while (w->stack[start] != e->from) {
    start--;
  }
  const scope *s = w->s;
  arena *a = w->c->scratch;
  return at_node(w->c, s->nodes[e->to],
                 status_error(STATUS_INVALID_MODEL,
                              "input \"%.200s\" depends on this node's own output: a cycle of %u node%s, "
                              "one of which is %s",
                              e->value, w->depth - start, w->depth - start == 1 ? "" : "s",
                              onnx_node_label(a, s->nodes[e->from])));
}

/* Appends a node to order[], after all nodes that it depends on (a depth-first search with an explicit stack). */
static status place(sorter *w, uint32_t node) {
  w->stack[w->depth++] = node;
  w->state[node] = 1;
  while (w->depth) {
    uint32_t i = w->stack[w->depth - 1];
    if (w->next[i] == w->first[i + 1]) {
      w->state[i] = 2;
      w->order[w->n_order++] = w->s->nodes[i];
      w->depth--;
      continue;
    }
    const edge *e = w->by_node[w->next[i]++];
    if (w->state[e->from] == 1) {
      return cycle(w, e);
    }
    if (w->state[e->from] == 0) {
      w->state[e->from] = 1;
      w->stack[w->depth++] = e->from;
    }
  }
  return NULL;
}

static status sort_scope(const check *c, scope *s) {
  sorter w = {.c = c, .s = s};
  size_t n = s->n_nodes;
  w.first = ARENA_NEW_N(c->scratch, uint32_t, n + 1);
  w.next = ARENA_NEW_N(c->scratch, uint32_t, n + 1);
  w.by_node = ARENA_NEW_N(c->scratch, const edge *, s->n_edges);
  w.state = ARENA_NEW_N(c->scratch, uint8_t, n);
  w.stack = ARENA_NEW_N(c->scratch, uint32_t, n);
  w.order = ARENA_NEW_N(c->scratch, Onnx__NodeProto *, n);
  index_edges(&w);
  for (uint32_t i = 0; i < n; i++) {
    if (w.state[i] == 0) {
      TRY(place(&w, i));
    }
  }
  memcpy(s->nodes, w.order, n * sizeof *w.order);
  return NULL;
}

/* --- the main graph and functions --- */

static status check_body(check *c) {
  for (uint32_t i = 0; i < c->n_scopes; i++) {
    TRY(in_scope(c, c->scopes[i], define_scope(c, c->scopes[i])));
  }
  bool sorted = true;
  for (uint32_t i = 0; i < c->n_scopes; i++) {
    TRY(in_scope(c, c->scopes[i], use_all(c, c->scopes[i], false)));
  }
  for (uint32_t i = 0; i < c->n_scopes; i++) {
    sorted &= !c->scopes[i]->unsorted;
  }
  for (uint32_t i = 0; i < c->n_scopes && !sorted; i++) {
    TRY(use_all(c, c->scopes[i], true));
  }
  /* Inner scopes are sorted first, because scope.at, which messages use, is an index into the unsorted outer list. */
  for (uint32_t i = c->n_scopes; i-- > 0;) {
    if (c->scopes[i]->unsorted) {
      TRY(in_scope(c, c->scopes[i], sort_scope(c, c->scopes[i])));
    }
  }
  return NULL;
}

status onnx_graph_check(const onnx_model *m, arena *scratch) {
  check c = {.m = m, .opsets = &m->opsets, .scratch = scratch};
  add_scope(&c, m->graph);
  return check_body(&c);
}

static status declare_function(check *c, scope *s) {
  const Onnx__FunctionProto *f = c->function->proto;
  str_map_init(&c->declared, c->scratch);
  for (size_t i = 0; i < f->n_attribute; i++) {
    *str_map_put(&c->declared, f->attribute[i]) = f->attribute[i];
  }
  for (size_t i = 0; i < f->n_attribute_proto; i++) {
    *str_map_put(&c->declared, f->attribute_proto[i]->name) = f->attribute_proto[i];
  }
  for (size_t i = 0; i < f->n_input; i++) {
    TRY(define_input(s, f->input[i]));
  }
  return NULL;
}

status onnx_function_check(const onnx_model *m, const onnx_function *f, arena *scratch) {
  check c = {.m = m, .function = f, .opsets = &f->opsets, .scratch = scratch};
  scope *s = add_scope(&c, NULL);
  s->nodes = f->proto->node;
  s->n_nodes = (uint32_t)f->proto->n_node;
  TRY(in_scope(&c, s, declare_function(&c, s)));
  add_subgraphs(&c, s, s->n_nodes, f->proto->attribute_proto, f->proto->n_attribute_proto);
  return check_body(&c);
}
