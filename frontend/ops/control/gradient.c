/* gradient.c - Gradient of ai.onnx.preview.training: derivatives of a value y of the graph by values xs of it.
 *
 * The node's inputs take the place of the values that xs and zs name.  So the nodes between them and y are imported
 * once more, in a scope that has the inputs under those names, and y as it comes out there is differentiated
 * (hlo/gradient/gradient.h).  Usually the inputs are what the names mean anyway, and both imports become one again when
 * equal instructions are joined.  A copy of each x marks where differentiation ends; otherwise an x that is a constant
 * would be folded into what is computed from it. */
#include <string.h>

#include "frontend/import/import_helpers.h"
#include "frontend/import/scope.h"
#include "frontend/import/sizes.h"
#include "hlo/gradient/gradient.h"

#define INVALID STATUS_INVALID_MODEL

/* Derivatives of derivatives: each imports those before it. */
enum { ORDER_MAX = 8 };

typedef struct gradient {
  onnx_node *n;
  const char *const *xs, *const *zs, *y;
  size_t n_xs, n_zs;
  str_map bound;     /* names of xs and zs -> hlo_value *: what stands for them */
  onnx_scope *graph; /* whose values the names are */
  hlo_value *marks;  /* of xs */
} gradient;

static const char *name_of(const gradient *g, size_t k) { return k < g->n_xs ? g->xs[k] : g->zs[k - g->n_xs]; }

static status read_names(gradient *g) {
  onnx_node *n = g->n;
  TRY(onnx_attr_strings(n->arena, n->proto, "xs", &g->xs, &g->n_xs));
  TRY(onnx_attr_strings(n->arena, n->proto, "zs", &g->zs, &g->n_zs));
  TRY(onnx_attr_required(n->proto, "y"));
  TRY(onnx_attr_string(n->arena, n->proto, "y", "", &g->y));
  CHECK_THAT(g->n_xs > 0, INVALID, "xs names nothing");
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

/* The scope of the graph that the node stands in, through those of Gradients around it. */
static status find_graph(gradient *g) {
  int order = 1;
  for (g->graph = g->n->scope; g->graph->gradient; g->graph = g->graph->outer) {
    order++;
  }
  CHECK_THAT(order <= ORDER_MAX, STATUS_RESOURCE, "derivatives of an order above %d", ORDER_MAX);
  return NULL;
}

/* --- which nodes lie between --- */

/* What a node reads; a Gradient also reads what it differentiates. */
static void reads_of(arena *a, const Onnx__NodeProto *node, onnx_names *out) {
  onnx_node_reads(a, node, out);
  const char *y;
  if (strcmp(node->op_type, "Gradient") == 0) {
    status failed = onnx_attr_string(a, node, "y", "", &y);
    if (!failed) {
      *ARENA_PUSH(a, out->items, out->n, out->cap) = y;
    }
    status_free(failed); /* that node's own import says so */
  }
}

static bool gives_any(const Onnx__NodeProto *node, const str_map *names) {
  bool found = false;
  for (size_t k = 0; k < node->n_output; k++) {
    found |= *node->output[k] && str_map_get(names, node->output[k]);
  }
  return found;
}

/* Marks the nodes that y is computed by, up to xs and zs, last first: nodes stand in the order of their dependencies.
 */
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

/* A value that is needed of this node is not there yet: the node stands behind the Gradient. */
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

/* The needed nodes whose values are others here than in the graph. */
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

/* A name that nothing defines is a mistake, though nobody would miss it. */
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

/* Inputs under the names that they stand for; those of xs marked. */
static status bind_inputs(gradient *g, onnx_scope *s) {
  onnx_node *n = g->n;
  g->marks = ARENA_NEW_N(n->arena, hlo_value, g->n_xs);
  for (size_t k = 0; k < n->n_in; k++) {
    hlo_value v = n->in[k];
    TRY(check_named(g, k < g->n_xs ? "xs" : "zs", name_of(g, k)));
    if (k < g->n_xs) {
      CHECK_THAT(dtype_is_float(hlo_type(v)), INVALID, "'%.200s' of xs is %s; there are derivatives by floats only",
                 name_of(g, k), SHAPE_STR(NULL, hlo_shape(v)));
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

/* A node may give a value that is needed and one that an input stands for. */
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

/* y with the inputs in their places.  It may be one of them. */
static status import_y(gradient *g, hlo_value *y) {
  onnx_node *n = g->n;
  Onnx__NodeProto **nodes;
  size_t n_nodes = 0;
  const char *source = n->b->source;
  onnx_scope s = onnx_scope_make(n->scope, n->proto, "", n->b, NULL);
  s.gradient = n->proto;
  s.place = g->graph->place; /* the same draws of random numbers */
  TRY(find_between(g, &nodes, &n_nodes));
  TRY(bind_inputs(g, &s));
  bool host_interpreted = n->scope->importer->requirements.host_interpreted;
  status failed = import_between(g, &s, n_nodes, nodes);
  n->scope->importer->requirements.host_interpreted = host_interpreted; /* no piece could be run by itself here */
  TRY(failed);
  n->b->source = source;
  CHECK_THAT(onnx_scope_lookup(&s, g->y, y) && y->def, INVALID, "y names '%.200s', which is no value of the graph",
             g->y);
  CHECK_THAT(hlo_shape(*y)->kind == SHAPE_ARRAY && dtype_is_float(hlo_type(*y)), INVALID,
             "y ('%.200s') is %s; only tensors of floats have derivatives", g->y, SHAPE_STR(NULL, hlo_shape(*y)));
  CHECK_THAT(!onnx_has_dynamic_dims(n->scope->importer, *y), STATUS_UNSUPPORTED,
             "the size of y ('%.200s') depends on data", g->y);
  return NULL;
}

/* The marks become what they are copies of. */
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
      n->out[k] = d.def ? d : hlo_like(n->b, n->in[k], 0); /* y does not depend on it */
    }
  }
  if (!n->b->error) {
    remove_marks(&g);
  }
  return NULL;
}
