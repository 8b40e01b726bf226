/* ort_claim.c - which nodes the provider takes, in groups that are each compiled as one.
 *
 * A group must be convex: no path leaves it and comes back.  A node's level is the largest number of changes from taken to left
 * nodes and back on a path to it, so taken nodes of one level are convex, and there are as many groups as the longest such path
 * needs.  What can be taken is found by importing, not by a list of operators: the graph as a whole first, then each group, until
 * nothing is found any more. */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/ort_parts.h"

enum { MOST_ROUNDS = 8, ENOUGH_NODES = 4 };

/* A value: which node makes it (its number), and where it is used. */
typedef struct value {
  const char *name;
  const OrtValueInfo *info;
  size_t maker; /* SIZE_MAX: no node of this graph */
  bool is_output;
} value;

typedef struct claim {
  ort_provider *p;
  ort_graph g;
  bool *taken;
  size_t *level, n_levels;
  void *values; /* tsearch's, of value */
} claim;

static int by_name(const void *a, const void *b) { return strcmp(((const value *)a)->name, ((const value *)b)->name); }

/* *out NULL: there is no memory, or no name. */
static OrtStatus *find_value(claim *c, const OrtValueInfo *info, value **out) {
  value key = {.maker = SIZE_MAX, .info = info};
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
        v->maker = k;
      }
    }
  }
  for (size_t k = 0; k < c->g.n_outputs; k++) {
    ORT_TRY(find_value(c, c->g.outputs[k], &v));
    if (v) {
      v->is_output = true;
    }
  }
  return NULL;
}

/* --- types --- */

/* Those that arrays of ours and of ONNX Runtime have alike. */
static bool type_crosses(int type) {
  return type >= OXLA_FLOAT && type <= OXLA_FLOAT8E5M2FNUZ && type != OXLA_STRING;
}

static OrtStatus *types_cross(const claim *c, size_t n, const OrtValueInfo *const *values, bool *ok) {
  for (size_t k = 0; k < n && *ok; k++) {
    int type;
    bool constant = false;
    if (values[k]) {
      ORT_TRY(ort_value_type(c->p, values[k], &type));
      ORT_TRY(c->p->api->ValueInfo_IsConstantInitializer(values[k], &constant));
      *ok = type_crosses(type) || (constant && type != OXLA_STRING && type != 0);
    }
  }
  return NULL;
}

static OrtStatus *types_fit(const claim *c, const ort_node *n, bool *ok) {
  *ok = true;
  ORT_TRY(types_cross(c, n->n_in, n->in, ok));
  ORT_TRY(types_cross(c, n->n_implicit, n->implicit, ok));
  return types_cross(c, n->n_out, n->out, ok);
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
    if (from && from->maker != SIZE_MAX) {
      size_t level = v->c->level[from->maker] + (v->taken && !v->c->taken[from->maker]);
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

typedef struct finding {
  claim *c;
  const size_t *numbers; /* of the model's nodes in the graph */
  size_t n_found;
} finding;

static void found(void *data, size_t node, oxla_code code, const char *message) {
  finding *f = data;
  size_t k = f->numbers[node];
  if (code == OXLA_UNSUPPORTED || strstr(message, "there is no")) {
    ort_log(f->c->p, ORT_LOGGING_LEVEL_INFO, "onnx-xla leaves a node: %s", message);
    f->n_found += f->c->taken[k];
    f->c->taken[k] = false;
  }
}

/* What the chosen nodes read that none of them makes, once each: inputs of their model. */
typedef struct borders {
  const OrtValueInfo **inputs;
  size_t n, capacity;
  void *seen;
} borders;

static int by_text(const void *a, const void *b) { return strcmp(a, b); }
static void keep(void *node) { (void)node; }

static OrtStatus *add_inputs(claim *c, borders *b, const bool *chosen, size_t n, const OrtValueInfo *const *values) {
  for (size_t k = 0; k < n; k++) {
    value *v = NULL;
    bool constant = false;
    if (values[k]) {
      ORT_TRY(find_value(c, values[k], &v));
      ORT_TRY(c->p->api->ValueInfo_IsConstantInitializer(values[k], &constant));
    }
    if (!v || constant || (v->maker != SIZE_MAX && chosen[v->maker]) || tfind(v->name, &b->seen, by_text)) {
      continue;
    }
    if (b->n == b->capacity) {
      b->capacity = 2 * b->capacity + 16;
      const OrtValueInfo **more = realloc(b->inputs, b->capacity * sizeof *more);
      if (!more) {
        return ort_no_memory(c->p);
      }
      b->inputs = more;
    }
    if (!tsearch(v->name, &b->seen, by_text)) {
      return ort_no_memory(c->p);
    }
    b->inputs[b->n++] = values[k];
  }
  return NULL;
}

/* Looks at the chosen nodes as one model; those that cannot be imported are taken no more. */
static OrtStatus *survey(claim *c, const bool *chosen, size_t *n_found) {
  borders b = {0};
  ort_wire model = {0};
  size_t *numbers = calloc(c->g.n_nodes + 1, sizeof *numbers), n = 0, last = 0;
  OrtStatus *failed = numbers ? NULL : ort_no_memory(c->p);
  for (size_t k = 0; k < c->g.n_nodes && !failed; k++) {
    if (chosen[k]) {
      const ort_node *node = &c->g.nodes[k];
      numbers[n++] = last = k;
      failed = add_inputs(c, &b, chosen, node->n_in, node->in);
      failed = failed ? failed : add_inputs(c, &b, chosen, node->n_implicit, node->implicit);
    }
  }
  finding f = {.c = c, .numbers = numbers};
  if (!failed && n) {
    ort_model_parts parts = {.chosen = chosen, .n_inputs = b.n, .inputs = b.inputs, .n_outputs = c->g.nodes[last].n_out,
                             .outputs = c->g.nodes[last].out};
    failed = ort_model_write(c->p, &c->g, &parts, &model);
    oxla_options options = {.size = sizeof options, .backend = *c->p->options.backend ? c->p->options.backend : NULL};
    oxla_error *error = failed ? NULL : oxla_survey(model.bytes, model.n, &options, found, &f);
    if (error) { /* not even the model can be read: nobody knows which node it is */
      ort_log(c->p, ORT_LOGGING_LEVEL_WARNING, "onnx-xla takes nothing of a group: %s", oxla_error_message(error));
      oxla_error_free(error);
      for (size_t k = 0; k < c->g.n_nodes; k++) {
        c->taken[k] = c->taken[k] && !chosen[k];
      }
    }
  }
  *n_found = f.n_found;
  tdestroy(b.seen, keep);
  free(b.inputs);
  free(numbers);
  ort_wire_free(&model);
  return failed;
}

static OrtStatus *survey_groups(claim *c, bool *chosen, size_t *n_found) {
  *n_found = 0;
  for (size_t level = 0; level < c->n_levels; level++) {
    size_t more = 0, n = 0;
    for (size_t k = 0; k < c->g.n_nodes; k++) {
      chosen[k] = c->taken[k] && c->level[k] == level;
      n += chosen[k];
    }
    if (n) {
      ORT_TRY(survey(c, chosen, &more));
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
    failed = failed ? failed : survey_groups(c, chosen, &n_found);
  }
  free(chosen);
  return failed;
}

/* --- what is worth its while --- */

static bool is_heavy(const char *op) {
  static const char *const heavy[] = {"Attention", "Conv", "ConvInteger", "ConvTranspose", "DeformConv", "Einsum", "Gemm", "GRU",
                                      "If", "LSTM", "Loop", "MatMul", "MatMulInteger", "QLinearConv", "QLinearMatMul", "RNN",
                                      "Scan"};
  for (size_t k = 0; k < sizeof heavy / sizeof *heavy; k++) {
    if (strcmp(op, heavy[k]) == 0) {
      return true;
    }
  }
  return false;
}

static OrtStatus *add_group(claim *c, OrtEpGraphSupportInfo *support, size_t level, size_t *n_added) {
  const OrtNode **nodes = calloc(c->g.n_nodes + 1, sizeof *nodes);
  size_t n = 0;
  bool worth = c->p->options.claim_all;
  *n_added = 0;
  if (!nodes) {
    return ort_no_memory(c->p);
  }
  for (size_t k = 0; k < c->g.n_nodes; k++) {
    if (c->taken[k] && c->level[k] == level) {
      nodes[n++] = c->g.nodes[k].node;
      worth = worth || is_heavy(c->g.nodes[k].op);
    }
  }
  OrtStatus *failed = NULL;
  if (n && (worth || n >= ENOUGH_NODES || n == c->g.n_nodes)) {
    OrtNodeFusionOptions options = {.ort_version_supported = ORT_API_VERSION, .drop_constant_initializers = true};
    failed = c->p->api->GetEpApi()->EpGraphSupportInfo_AddNodesToFuse(support, nodes, n, &options);
    *n_added = n;
  }
  free(nodes);
  return failed;
}

/* --- graphs --- */

/* Nodes that hold compiled models are taken one by one; *any: there are some. */
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
    ORT_TRY(types_fit(c, &c->g.nodes[k], &c->taken[k]));
  }
  ORT_TRY(settle(c));
  ORT_TRY(set_levels(c));
  for (size_t level = 0; level < c->n_levels; level++) {
    ORT_TRY(add_group(c, support, level, &n));
    n_groups += n > 0;
    n_nodes += n;
  }
  ort_log(c->p, ORT_LOGGING_LEVEL_INFO, "onnx-xla takes %zu of %zu nodes in %zu groups", n_nodes, c->g.n_nodes, n_groups);
  return NULL;
}

/* ONNX Runtime asks for bodies before it asks for the graphs around them; what is taken inside can no more be taken with the
 * node around it, which is better: so bodies are left alone. */
static OrtStatus *claim_graph(claim *c, const OrtGraph *graph, OrtEpGraphSupportInfo *support) {
  const OrtNode *around = NULL;
  bool contexts = false;
  ORT_TRY(c->p->api->Graph_GetParentNode(graph, &around));
  if (around) {
    return NULL;
  }
  ORT_TRY(ort_graph_read(c->p, graph, &c->g));
  ORT_TRY(claim_contexts(c, support, &contexts));
  return contexts ? NULL : claim_nodes(c, support);
}

OrtStatus *ort_claim(ort_provider *p, const OrtGraph *graph, OrtEpGraphSupportInfo *support) {
  claim c = {.p = p};
  OrtStatus *failed = claim_graph(&c, graph, support);
  tdestroy(c.values, free);
  free(c.taken);
  free(c.level);
  ort_graph_free(&c.g);
  return failed;
}
