/* gradient.c - Gradient of ai.onnx.preview.training: the derivatives of a value y of the graph with respect to other
 * values of the graph, which the attribute `xs` names.
 *
 * The node's inputs replace the values that `xs` and `zs` name.  The nodes between those values and y are therefore
 * imported a second time, in a scope that defines the inputs under those names, and the resulting y is differentiated
 * (hlo/gradient/gradient.h).  Usually an input is the very value that the name denotes; then common subexpression
 * elimination merges both imports.  A copy instruction for each x marks where differentiation ends; without it, an x
 * that is a constant would be folded. */
#include <string.h>

#include "frontend/import/import_helpers.h"
#include "frontend/import/scope.h"
#include "frontend/import/sizes.h"
#include "frontend/import/symbolic.h"
#include "hlo/gradient/gradient.h"

#define INVALID STATUS_INVALID_MODEL

/* The highest order of derivatives.  A Gradient node may differentiate the result of another one; the import of each
 * order repeats the imports of all lower orders. */
enum { ORDER_MAX = 8 };

typedef struct gradient {
  onnx_node *n;
  const char *const *xs, *const *zs, *y;
  size_t n_xs, n_zs;
  str_map bound;     /* from a name in xs or zs to the hlo_value * that replaces it */
  onnx_scope *graph; /* the scope of the graph whose values the names denote */
  hlo_value *marks;  /* for each of xs the copy instruction that marks where differentiation ends */
} gradient;

static const char *name_of(const gradient *g, size_t k) { return k < g->n_xs ? g->xs[k] : g->zs[k - g->n_xs]; }

static status read_names(gradient *g) {
  onnx_node *n = g->n;
  TRY(onnx_attr_strings(n->arena, n->proto, "xs", &g->xs, &g->n_xs));
  TRY(onnx_attr_strings(n->arena, n->proto, "zs", &g->zs, &g->n_zs));
  TRY(onnx_attr_required(n->proto, "y"));
  TRY(onnx_attr_string(n->arena, n->proto, "y", "", &g->y));
  CHECK_THAT(g->n_xs > 0, INVALID, "xs names no value");
  CHECK_THAT(n->n_in == g->n_xs + g->n_zs, INVALID, "xs and zs name %zu values, but the node has %u inputs",
             g->n_xs + g->n_zs, (unsigned)n->n_in);
  CHECK_THAT(n->n_out <= g->n_xs, INVALID, "xs names %zu values, but the node has %u outputs", g->n_xs,
             (unsigned)n->n_out);
  str_map_init(&g->bound, n->arena);
  for (size_t k = 0; k < n->n_in; k++) {
    const char *name = name_of(g, k);
    CHECK_THAT(*name, INVALID, "xs and zs must not name \"\"");
    CHECK_THAT(onnx_has_in(n, (uint32_t)k), INVALID, "input %zu, the value of '%.200s', is missing", k, name);
    void **slot = str_map_put(&g->bound, name);
    CHECK_THAT(!*slot, INVALID, "xs and zs name '%.200s' twice", name);
    *slot = ARENA_NEW(n->arena, hlo_value);
  }
  return NULL;
}

/* Finds the scope of the graph that contains the node, skipping the scopes of enclosing Gradient imports. */
static status find_graph(gradient *g) {
  int order = 1;
  for (g->graph = g->n->scope; g->graph->gradient; g->graph = g->graph->outer) {
    order++;
  }
  CHECK_THAT(order <= ORDER_MAX, STATUS_RESOURCE, "derivatives of an order above %d are not supported", ORDER_MAX);
  return NULL;
}

/* --- the nodes between xs and y --- */

/* Lists the names that a node reads; for a Gradient node these include the value that it differentiates. */
static void reads_of(arena *a, const Onnx__NodeProto *node, onnx_names *out) {
  onnx_node_reads(a, node, out);
  const char *y;
  if (strcmp(node->op_type, "Gradient") == 0) {
    status failed = onnx_attr_string(a, node, "y", "", &y);
    if (!failed) {
      *ARENA_PUSH(a, out->items, out->n, out->cap) = y;
    }
    status_free(failed); /* a failure is reported when that node is imported */
  }
}

static bool gives_any(const Onnx__NodeProto *node, const str_map *names) {
  bool found = false;
  for (size_t k = 0; k < node->n_output; k++) {
    found |= *node->output[k] && str_map_get(names, node->output[k]);
  }
  return found;
}

/* Sets needed[k] for each node k on which y, the differentiated value, depends.  The search ends at the values that the
 * node's attributes xs and zs name.  It visits the nodes from the last to the first, since they are in dependency
 * order.  `names` receives the values that the needed nodes must define. */
static status find_needed(const gradient *g, bool *needed, str_map *names) {
  arena *a = g->n->arena;
  const onnx_scope *s = g->graph;
  if (!str_map_get(&g->bound, g->y)) {
    *str_map_put(names, g->y) = a;
  }
  for (size_t k = s->n_nodes; k-- > 0;) {
    const Onnx__NodeProto *node = s->nodes[k];
    needed[k] = gives_any(node, names);
    if (!needed[k]) {
      continue;
    }
    onnx_names reads = {0};
    reads_of(a, node, &reads);
    for (uint32_t r = 0; r < reads.n; r++) {
      if (!str_map_get(&g->bound, reads.items[r])) {
        *str_map_put(names, reads.items[r]) = a;
      }
    }
  }
  CHECK_THAT(!gives_any(g->n->proto, names), INVALID, "y ('%.200s') is computed from what this node gives", g->y);
  return NULL;
}

/* Returns true if a needed value of the node is not imported yet, because the node comes after the Gradient node. */
static bool is_missing(const gradient *g, const Onnx__NodeProto *node, const str_map *names) {
  bool missing = false;
  for (size_t k = 0; k < node->n_output && !missing; k++) {
    hlo_value v;
    missing =
        *node->output[k] && str_map_get(names, node->output[k]) && !onnx_scope_lookup(g->n->scope, node->output[k], &v);
  }
  return missing;
}

static bool reads_any(arena *a, const Onnx__NodeProto *node, const str_map *names) {
  onnx_names reads = {0};
  bool found = false;
  reads_of(a, node, &reads);
  for (uint32_t k = 0; k < reads.n; k++) {
    found |= str_map_get(names, reads.items[k]) != NULL;
  }
  return found;
}

/* Lists the needed nodes that must be imported again: those that depend on a value named by xs or zs, and those that
 * have not been imported yet. */
static status find_between(const gradient *g, Onnx__NodeProto ***out, size_t *n_out) {
  arena *a = g->n->arena;
  const onnx_scope *s = g->graph;
  bool *needed = ARENA_NEW_N(a, bool, s->n_nodes + 1);
  str_map names, fresh;
  str_map_init(&names, a);
  str_map_init(&fresh, a);
  TRY(find_needed(g, needed, &names));
  for (size_t k = 0; k < g->n->n_in; k++) {
    *str_map_put(&fresh, name_of(g, k)) = a;
  }
  *out = ARENA_NEW_N(a, Onnx__NodeProto *, s->n_nodes + 1);
  for (size_t k = 0; k < s->n_nodes; k++) {
    Onnx__NodeProto *node = s->nodes[k];
    if (needed[k] && (reads_any(a, node, &fresh) || is_missing(g, node, &names))) {
      (*out)[(*n_out)++] = node;
      for (size_t o = 0; o < node->n_output; o++) {
        *str_map_put(&fresh, node->output[o]) = a;
      }
    }
  }
  return NULL;
}

/* --- the values --- */

/* Returns an error if no value of the graph has the name; the import itself would not notice that. */
static status check_named(const gradient *g, const char *attribute, const char *name) {
  hlo_value v;
  bool given = onnx_scope_lookup(g->n->scope, name, &v);
  for (size_t k = 0; k < g->graph->n_nodes && !given; k++) {
    for (size_t o = 0; o < g->graph->nodes[k]->n_output && !given; o++) {
      given = strcmp(g->graph->nodes[k]->output[o], name) == 0;
    }
  }
  CHECK_THAT(given, INVALID, "%s names '%.200s', which is no value of the graph", attribute, name);
  return NULL;
}

/* Defines the node's inputs in s under the names of xs and zs.  Inputs that xs names are replaced by copies (g->marks),
 * which mark where differentiation ends. */
static status bind_inputs(gradient *g, onnx_scope *s) {
  onnx_node *n = g->n;
  g->marks = ARENA_NEW_N(n->arena, hlo_value, g->n_xs);
  for (size_t k = 0; k < n->n_in; k++) {
    hlo_value v = n->in[k];
    TRY(check_named(g, k < g->n_xs ? "xs" : "zs", name_of(g, k)));
    if (k < g->n_xs) {
      CHECK_THAT(dtype_is_float(hlo_type(v)), INVALID,
                 "'%.200s' of xs is %s; derivatives exist with respect to floats only", name_of(g, k),
                 SHAPE_STR(onnx_dims(n), hlo_shape(v)));
      hlo_instr *mark = hlo_instr_create(n->b->computation, n->b->before, HLO_COPY, 1, &v, 1);
      mark->source = n->b->source;
      TRY(hlo_infer(mark));
      g->marks[k] = v = hlo_result(mark, 0);
    }
    *(hlo_value *)str_map_get(&g->bound, name_of(g, k)) = v;
    onnx_scope_define(s, name_of(g, k), v);
  }
  return NULL;
}

/* Imports the nodes.  If a node defines a name that stands for an input of the Gradient node, the name is bound to that
 * input again afterwards. */
static status import_between(const gradient *g, onnx_scope *s, size_t n, Onnx__NodeProto *const *nodes) {
  for (size_t k = 0; k < n; k++) {
    TRY(onnx_import_nodes(s, 1, &nodes[k]));
    for (size_t o = 0; o < nodes[k]->n_output; o++) {
      const hlo_value *bound = str_map_get(&g->bound, nodes[k]->output[o]);
      if (bound) {
        onnx_scope_define(s, nodes[k]->output[o], *bound);
      }
    }
  }
  return NULL;
}

/* Pins the symbols in the shapes of the instructions between the first mark and y, and of their operands, since the
 * rules of differentiation compute with constant dimensions.  The driver has pinned those of the node's inputs only;
 * the instructions also read other values of the graph.  Returns an error if there were symbols. */
static status pin_between(const gradient *g) {
  const onnx_node *n = g->n;
  bool pinned = false;
  for (const hlo_instr *i = g->marks[0].def; i && i != n->b->before; i = i->next) {
    for (uint32_t k = 0; k < i->n_operands; k++) {
      pinned |= onnx_pin_shape(n, hlo_shape(i->operands[k]));
    }
    for (uint32_t k = 0; k < i->n_results; k++) {
      pinned |= onnx_pin_shape(n, &i->shapes[k]);
    }
  }
  CHECK_THAT(!pinned, STATUS_UNSUPPORTED, "Gradient is imported for constant sizes only");
  return NULL;
}

/* Imports y as a function of the node's inputs; y may be one of them. */
static status import_y(gradient *g, hlo_value *y) {
  onnx_node *n = g->n;
  Onnx__NodeProto **nodes;
  size_t n_nodes = 0;
  const char *source = n->b->source;
  onnx_scope s = onnx_scope_make(n->scope, n->proto, "", n->b, NULL);
  s.gradient = n->proto;
  s.place = g->graph->place; /* so that random operators draw the same numbers as in the first import of these nodes */
  TRY(find_between(g, &nodes, &n_nodes));
  TRY(bind_inputs(g, &s));
  bool host_interpreted = n->scope->importer->requirements.host_interpreted;
  status failed = import_between(g, &s, n_nodes, nodes);
  /* If one of the imported nodes must be host-interpreted, that requirement is dropped, since the host cannot run it
   * separately. */
  n->scope->importer->requirements.host_interpreted = host_interpreted;
  TRY(failed);
  n->b->source = source;
  CHECK_THAT(onnx_scope_lookup(&s, g->y, y) && y->def, INVALID, "y names '%.200s', which is no value of the graph",
             g->y);
  CHECK_THAT(hlo_shape(*y)->kind == SHAPE_ARRAY && dtype_is_float(hlo_type(*y)), INVALID,
             "y ('%.200s') is %s; only tensors of floats have derivatives", g->y,
             SHAPE_STR(onnx_dims(n), hlo_shape(*y)));
  CHECK_THAT(!onnx_has_dynamic_dims(n->scope->importer, *y), STATUS_UNSUPPORTED,
             "the size of y ('%.200s') depends on data", g->y);
  return pin_between(g);
}

/* Replaces the copies in g->marks by their operands. */
static void remove_marks(const gradient *g) {
  for (size_t k = 0; k < g->n_xs; k++) {
    hlo_instr *mark = g->marks[k].def;
    hlo_value x = mark->operands[0];
    for (uint32_t o = 0; o < g->n->n_out; o++) {
      g->n->out[o] = hlo_value_equal(g->n->out[o], g->marks[k]) ? x : g->n->out[o];
    }
    hlo_replace(g->marks[k], x);
    hlo_remove(mark);
  }
}

status onnx_import_gradient(onnx_node *n) {
  gradient g = {.n = n};
  hlo_value y, seed;
  TRY(read_names(&g));
  TRY(find_graph(&g));
  TRY(import_y(&g, &y));
  seed = hlo_like(n->b, y, 1);
  hlo_value *dxs = ARENA_NEW_N(n->arena, hlo_value, g.n_xs), *xs = ARENA_NEW_N(n->arena, hlo_value, g.n_xs);
  uint32_t wanted = 0;
  for (uint32_t k = 0; k < g.n_xs; k++) {
    if (onnx_has_out(n, k)) {
      xs[wanted++] = g.marks[k];
    }
  }
  hlo_gradients(n->b, 1, &y, &seed, wanted, xs, dxs);
  for (uint32_t k = 0, at = 0; k < n->n_out; k++) {
    if (onnx_has_out(n, k)) {
      hlo_value d = dxs[at++];
      n->out[k] = d.def ? d : hlo_like(n->b, n->in[k], 0); /* no def means that y does not depend on this input */
    }
  }
  if (!n->b->error) {
    remove_marks(&g);
  }
  return NULL;
}
