/* claim.c - chooses the nodes that the provider takes, in partitions that are each compiled as one.
 *
 * A partition must be convex: no path leaves it and comes back.  Nodes are divided into partitions by their levels.
 * Each path to a node has a number of edges that lead from a node that is not taken to one that is taken; the level of
 * the node is the largest such number.  A path that leaves the taken nodes of a level comes back to taken nodes only at
 * a higher level, so the taken nodes of one level are convex: they are a partition.
 *
 * Whether nodes can be taken is found by importing them, not by a list of operators.  Each partition is imported as a
 * model.  The nodes that cannot be imported are not taken, which changes the partitions, so they are imported again,
 * until no further node is given up, at most MOST_ROUNDS times. */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/onnxruntime/internal.h"

enum { MOST_ROUNDS = 8 };
/* Entering a partition takes some microseconds.  ENOUGH_NODES nodes are worth that in any case, since each costs ONNX
 * Runtime about a microsecond.  Fewer nodes are worth it only if they are the whole graph, or if their work is at least
 * ENOUGH_WORK steps of some tenths of a nanosecond.  For the estimate of the work (add_work), an unknown dimension
 * counts as OPEN_SIZE, and each element of a contraction as PRODUCTS_EACH steps. */
enum { ENOUGH_NODES = 4, ENOUGH_WORK = 1 << 17, OPEN_SIZE = 256, PRODUCTS_EACH = 64 };

/* A value and where it comes from. */
typedef struct value {
  const char *name;
  size_t producer; /* the index of the node that computes it; SIZE_MAX if no node of this graph does */
} value;

typedef struct claim {
  ort_provider *p;
  ort_graph g;
  bool *taken;
  size_t *level, n_levels;
  void *values; /* a tree of `value`, by tsearch */
} claim;

static int by_name(const void *a, const void *b) { return strcmp(((const value *)a)->name, ((const value *)b)->name); }

/* Finds or adds the entry for a value.  *out is NULL if the value has no name, and after a failure. */
static OrtStatus *find_value(claim *c, const OrtValueInfo *info, value **out) {
  value key = {.producer = SIZE_MAX};
  *out = NULL;
  ORT_TRY(ort_value_name(c->p, info, &key.name));
  if (!*key.name) {
    return NULL;
  }
  value **found = (value **)tfind(&key, &c->values, by_name);
  if (!found) {
    value *new = malloc(sizeof *new);
    if (!new) {
      return ort_no_memory(c->p);
    }
    *new = key;
    found = (value **)tsearch(new, &c->values, by_name);
    if (!found) {
      free(new);
      return ort_no_memory(c->p);
    }
  }
  *out = *found;
  return NULL;
}

static OrtStatus *link_values(claim *c) {
  value *v;
  for (size_t k = 0; k < c->g.n_nodes; k++) {
    for (size_t i = 0; i < c->g.nodes[k].n_out; i++) {
      ORT_TRY(find_value(c, c->g.nodes[k].out[i], &v));
      if (v) {
        v->producer = k;
      }
    }
  }
  return NULL;
}

/* --- levels --- */

typedef struct visit {
  claim *c;
  size_t level;
  bool taken;
} visit;

static OrtStatus *look_back(visit *v, size_t n, const OrtValueInfo *const *values) {
  for (size_t k = 0; k < n; k++) {
    value *from = NULL;
    if (values[k]) {
      ORT_TRY(find_value(v->c, values[k], &from));
    }
    if (from && from->producer != SIZE_MAX) {
      size_t level = v->c->level[from->producer] + (v->taken && !v->c->taken[from->producer]);
      v->level = level > v->level ? level : v->level;
    }
  }
  return NULL;
}

static OrtStatus *set_levels(claim *c) {
  c->n_levels = 0;
  for (size_t k = 0; k < c->g.n_nodes; k++) {
    const ort_node *n = &c->g.nodes[k];
    visit v = {.c = c, .taken = c->taken[k]};
    ORT_TRY(look_back(&v, n->n_in, n->in));
    ORT_TRY(look_back(&v, n->n_implicit, n->implicit));
    c->level[k] = v.level;
    c->n_levels = v.level + 1 > c->n_levels ? v.level + 1 : c->n_levels;
  }
  return NULL;
}

/* --- what can be imported --- */

static OrtStatus *check_partitions(claim *c, bool *chosen, size_t *n_found) {
  *n_found = 0;
  for (size_t level = 0; level < c->n_levels; level++) {
    size_t more = 0, n = 0;
    for (size_t k = 0; k < c->g.n_nodes; k++) {
      chosen[k] = c->taken[k] && c->level[k] == level;
      n += chosen[k];
    }
    if (n) {
      ORT_TRY(ort_support(c->p, &c->g, chosen, c->taken, &more));
    }
    *n_found += more;
  }
  return NULL;
}

static OrtStatus *settle(claim *c) {
  bool *chosen = calloc(c->g.n_nodes + 1, sizeof *chosen);
  OrtStatus *failed = chosen ? NULL : ort_no_memory(c->p);
  size_t n_found = 1;
  for (int round = 0; !failed && n_found && round < MOST_ROUNDS; round++) {
    failed = set_levels(c);
    failed = failed ? failed : check_partitions(c, chosen, &n_found);
  }
  free(chosen);
  return failed;
}

/* --- which partitions save time --- */

/* The work of an operator, from the column `work` of onnx_ops.def: a step for each element of its largest array,
 * several products for each element, or the work of its bodies. */
typedef enum node_work { work_elements, work_products, work_bodies } node_work;

static node_work work_of(const char *op) {
  static const struct {
    const char *name;
    node_work work;
  } all[] = {
#define row_elements(name)
#define row_products(name) {name, work_products},
#define row_bodies(name) {name, work_bodies},
#define ONNX(domain, name, since, min_in, max_in, min_out, max_out, sizes, symbols, work, host, importer) \
  row_##work(name)
#include "frontend/operators/onnx_ops.def"
  };
  for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
    if (strcmp(op, all[k].name) == 0) {
      return all[k].work;
    }
  }
  return work_elements;
}

static OrtStatus *largest_array(const claim *c, size_t n, const OrtValueInfo *const *values, double *largest) {
  for (size_t k = 0; k < n; k++) {
    ort_array x = {0};
    bool known = false;
    double elements = 1;
    ORT_TRY(values[k] ? ort_value_shape(c->p, values[k], &x, &known) : NULL);
    for (size_t d = 0; d < x.rank; d++) {
      elements *= x.dims[d] >= 0 ? (double)x.dims[d] : OPEN_SIZE;
    }
    *largest = elements > *largest ? elements : *largest;
  }
  return NULL;
}

/* Adds an estimate of the number of steps that a node takes to *work. */
static OrtStatus *add_work(const claim *c, const ort_node *n, double *work) {
  double largest = 0;
  ORT_TRY(largest_array(c, n->n_in, n->in, &largest));
  ORT_TRY(largest_array(c, n->n_out, n->out, &largest));
  switch (work_of(n->op)) {
    case work_elements: *work += largest; break;
    case work_products: *work += largest * PRODUCTS_EACH; break;
    case work_bodies: *work += ENOUGH_WORK; break;
  }
  return NULL;
}

static OrtStatus *add_group(claim *c, OrtEpGraphSupportInfo *support, size_t level, size_t *n_added) {
  const OrtNode **nodes = calloc(c->g.n_nodes + 1, sizeof *nodes);
  size_t n = 0;
  double work = 0;
  *n_added = 0;
  if (!nodes) {
    return ort_no_memory(c->p);
  }
  OrtStatus *failed = NULL;
  for (size_t k = 0; k < c->g.n_nodes && !failed; k++) {
    if (c->taken[k] && c->level[k] == level) {
      nodes[n++] = c->g.nodes[k].node;
      failed = add_work(c, &c->g.nodes[k], &work);
    }
  }
  bool worth = n >= ENOUGH_NODES || n == c->g.n_nodes || work >= ENOUGH_WORK || strcmp(c->p->options.claim, "all") == 0;
  if (!failed && n && worth) {
    OrtNodeFusionOptions options = {.ort_version_supported = ORT_API_VERSION, .drop_constant_initializers = true};
    failed = c->p->api->GetEpApi()->EpGraphSupportInfo_AddNodesToFuse(support, nodes, n, &options);
    *n_added = n;
  }
  free(nodes);
  return failed;
}

/* --- graphs --- */

/* Takes each node that holds a compiled model as a partition of its own.  Sets *any to true if there is such a node;
 * otherwise *any keeps its value. */
static OrtStatus *claim_contexts(claim *c, OrtEpGraphSupportInfo *support, bool *any) {
  for (size_t k = 0; k < c->g.n_nodes; k++) {
    if (ort_is_context(c->p, &c->g.nodes[k])) {
      OrtNodeFusionOptions options = {.ort_version_supported = ORT_API_VERSION};
      *any = true;
      ORT_TRY(c->p->api->GetEpApi()->EpGraphSupportInfo_AddNodesToFuse(support, &c->g.nodes[k].node, 1, &options));
    }
  }
  return NULL;
}

static OrtStatus *claim_nodes(claim *c, OrtEpGraphSupportInfo *support) {
  size_t n_groups = 0, n_nodes = 0, n;
  c->taken = calloc(c->g.n_nodes + 1, sizeof *c->taken);
  c->level = calloc(c->g.n_nodes + 1, sizeof *c->level);
  if (!c->taken || !c->level) {
    return ort_no_memory(c->p);
  }
  ORT_TRY(link_values(c));
  for (size_t k = 0; k < c->g.n_nodes; k++) {
    ORT_TRY(ort_node_crosses(c->p, &c->g.nodes[k], &c->taken[k]));
  }
  ORT_TRY(settle(c));
  ORT_TRY(set_levels(c));
  for (size_t level = 0; level < c->n_levels; level++) {
    ORT_TRY(add_group(c, support, level, &n));
    n_groups += n > 0;
    n_nodes += n;
  }
  ort_log(c->p, ORT_LOGGING_LEVEL_INFO, "onnx-xla takes %zu of %zu nodes in %zu groups", n_nodes, c->g.n_nodes,
          n_groups);
  return NULL;
}

static bool is_control_flow(const char *op) {
  return strcmp(op, "If") == 0 || strcmp(op, "Loop") == 0 || strcmp(op, "Scan") == 0;
}

/* Sets *out to whether nodes in the bodies of a node must be left alone.  This is so if the node itself can be taken,
 * or if it is not If, Loop or Scan: it is then a function that ONNX Runtime inlines later, and inlining fails if nodes
 * of its body were replaced.  `graph` has the versions of the operators. */
static OrtStatus *leaves_bodies(const ort_provider *p, const OrtGraph *graph, const OrtNode *node, bool *out) {
  ort_node n = {0};
  ort_graph g = {.graph = graph, .n_nodes = 1, .nodes = &n};
  const bool chosen = true;
  size_t n_found;
  OrtStatus *failed = ort_node_read(p, node, &n);
  failed = failed ? failed : ort_node_crosses(p, &n, out);
  failed = failed || !*out ? failed : ort_support(p, &g, &chosen, out, &n_found);
  *out = *out || !n.op || !is_control_flow(n.op);
  ort_node_free(&n);
  return failed;
}

/* Sets *left to true if the graph is the body of a node whose bodies must be left alone (leaves_bodies), so that none
 * of its nodes may be taken.  ONNX Runtime asks for a body before it asks for the graph around it, and a node can no
 * longer be taken as a whole once nodes of its body are taken. */
static OrtStatus *is_left(const ort_provider *p, const OrtGraph *graph, bool *left) {
  const OrtNode *around = NULL;
  ORT_TRY(p->api->Graph_GetParentNode(graph, &around));
  return around ? leaves_bodies(p, graph, around, left) : NULL;
}

static OrtStatus *has_type(const ort_provider *p, const OrtValueInfo *info, int type, bool *out) {
  int is;
  ORT_TRY(ort_value_type(p, info, &is));
  *out = *out && is == type;
  return NULL;
}

/* Guesses whether a graph is a body, which ONNX Runtime 1.23 and 1.24 do not say.  A body of an If has no inputs; one
 * of a Loop begins with an iteration count and a condition; others mostly read values from outside. */
static OrtStatus *looks_like_body(const ort_provider *p, const ort_graph *g, bool *out) {
  *out = g->n_inputs == 0;
  if (g->n_inputs >= 2 && g->n_outputs >= 1) {
    *out = true;
    ORT_TRY(has_type(p, g->inputs[0], OXLA_INT64, out));
    ORT_TRY(has_type(p, g->inputs[1], OXLA_BOOL, out));
    ORT_TRY(has_type(p, g->outputs[0], OXLA_BOOL, out));
  }
  for (size_t k = 0; k < g->n_nodes && !*out; k++) {
    const ort_node *n = &g->nodes[k];
    for (size_t i = 0; i < n->n_in && !*out; i++) {
      ORT_TRY(n->in[i] ? p->api->ValueInfo_IsFromOuterScope(n->in[i], out) : NULL);
    }
    for (size_t i = 0; i < n->n_implicit && !*out; i++) {
      ORT_TRY(p->api->ValueInfo_IsFromOuterScope(n->implicit[i], out));
    }
  }
  return NULL;
}

static OrtStatus *claim_graph(claim *c, const OrtGraph *graph, OrtEpGraphSupportInfo *support) {
  bool contexts = false, left = false;
  ORT_TRY(ort_graph_read(c->p, graph, &c->g));
  ORT_TRY(claim_contexts(c, support, &contexts));
  if (!contexts) {
    ORT_TRY(c->p->early ? looks_like_body(c->p, &c->g, &left) : is_left(c->p, graph, &left));
  }
  return contexts || left ? NULL : claim_nodes(c, support);
}

OrtStatus *ort_claim(ort_provider *p, const OrtGraph *graph, OrtEpGraphSupportInfo *support) {
  claim c = {.p = p};
  if (p->early && p->has_compiled) {
    return NULL;
  }
  OrtStatus *failed = claim_graph(&c, graph, support);
  tdestroy(c.values, free);
  free(c.taken);
  free(c.level);
  ort_graph_free(&c.g);
  return failed;
}
