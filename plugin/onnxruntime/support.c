/* support.c - finds which nodes of a graph can be taken, by importing them. */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/onnxruntime/internal.h"

/* --- types of values --- */

/* Returns true if arrays of the type have the same layout in onnx-xla and in ONNX Runtime. */
static bool type_crosses(int type) { return type >= OXLA_FLOAT && type <= OXLA_FLOAT8E5M2FNUZ && type != OXLA_STRING; }

static OrtStatus *types_cross(const ort_provider *p, size_t n, const OrtValueInfo *const *values, bool *ok) {
  for (size_t k = 0; k < n && *ok; k++) {
    int type;
    bool constant = false;
    if (values[k]) {
      ORT_TRY(ort_value_type(p, values[k], &type));
      ORT_TRY(p->api->ValueInfo_IsConstantInitializer(values[k], &constant));
      *ok = type_crosses(type) || (constant && type != OXLA_STRING && type != 0);
    }
  }
  return NULL;
}

static OrtStatus *all_possible(const ort_provider *p, const ort_graph *g, bool *chosen, bool *taken, bool *ok) {
  size_t n_found;
  for (size_t k = 0; k < g->n_nodes && *ok; k++) {
    chosen[k] = true;
    ORT_TRY(ort_node_crosses(p, &g->nodes[k], ok));
    taken[k] = *ok;
  }
  ORT_TRY(*ok ? ort_support(p, g, chosen, taken, &n_found) : NULL);
  *ok = *ok && n_found == 0;
  return NULL;
}

/* Checks that the nodes of a body can be imported.  This is needed because importing the node
 * that has the body skips a body that may never run. */
static OrtStatus *body_possible(const ort_provider *p, const OrtGraph *body, bool *ok) {
  ort_graph g = {0};
  OrtStatus *failed = ort_graph_read(p, body, &g);
  bool *chosen = calloc(g.n_nodes + 1, sizeof *chosen), *taken = calloc(g.n_nodes + 1, sizeof *taken);
  failed = failed || (chosen && taken) ? failed : ort_no_memory(p);
  failed = failed ? failed : all_possible(p, &g, chosen, taken, ok);
  free(chosen);
  free(taken);
  ort_graph_free(&g);
  return failed;
}

static OrtStatus *bodies_possible(const ort_provider *p, const OrtNode *node, bool *ok) {
  size_t n;
  ORT_TRY(p->api->Node_GetNumSubgraphs(node, &n));
  const OrtGraph **bodies = calloc(n + 1, sizeof *bodies);
  OrtStatus *failed = !bodies ? ort_no_memory(p) : n ? p->api->Node_GetSubgraphs(node, bodies, n, NULL) : NULL;
  for (size_t k = 0; !failed && k < n && *ok; k++) {
    failed = body_possible(p, bodies[k], ok);
  }
  free(bodies);
  return failed;
}

OrtStatus *ort_node_crosses(const ort_provider *p, const ort_node *n, bool *ok) {
  *ok = (!p->early || n->n_implicit == 0) && strcmp(n->domain, "com.microsoft") != 0;
  ORT_TRY(types_cross(p, n->n_in, n->in, ok));
  ORT_TRY(types_cross(p, n->n_implicit, n->implicit, ok));
  ORT_TRY(types_cross(p, n->n_out, n->out, ok));
  ORT_TRY(*ok ? bodies_possible(p, n->node, ok) : NULL);
  if (*ok) {
    pb_writer scratch = {0};
    OrtStatus *failed = ort_node_write(p, n, &scratch);
    pb_free(&scratch);
    if (failed) {
      ort_log(p, ORT_LOGGING_LEVEL_INFO, "onnx-xla leaves node '%s' (%s): %s", n->name, n->op,
              p->api->GetErrorMessage(failed));
      p->api->ReleaseStatus(failed);
      *ok = false;
    }
  }
  return NULL;
}

/* --- the chosen nodes as a model --- */

static int by_text(const void *a, const void *b) { return strcmp(a, b); }
static void keep(void *node) { (void)node; }

static OrtStatus *add_made(ort_partition_values *b, const ort_node *n) {
  for (size_t k = 0; k < n->n_out; k++) {
    const char *name;
    ORT_TRY(ort_value_name(b->p, n->out[k], &name));
    if (*name && !tsearch(name, &b->made, by_text)) {
      return ort_no_memory(b->p);
    }
  }
  return NULL;
}

static OrtStatus *push(const ort_provider *p, ort_values *v, const OrtValueInfo *info) {
  if (v->n == v->capacity) {
    size_t capacity = 2 * v->capacity + 16;
    const OrtValueInfo **more = realloc(v->items, capacity * sizeof *more);
    if (!more) {
      return ort_no_memory(p);
    }
    v->items = more;
    v->capacity = capacity;
  }
  v->items[v->n++] = info;
  return NULL;
}

static OrtStatus *add_input(ort_partition_values *b, const OrtValueInfo *info) {
  const char *name;
  bool constant = false;
  const OrtValue *value = NULL;
  ORT_TRY(ort_value_name(b->p, info, &name));
  if (!*name || tfind(name, &b->made, by_text) || tfind(name, &b->seen, by_text)) {
    return NULL;
  }
  if (!tsearch(name, &b->seen, by_text)) {
    return ort_no_memory(b->p);
  }
  ORT_TRY(b->p->api->ValueInfo_IsConstantInitializer(info, &constant));
  if (constant) {
    ORT_TRY(b->p->api->ValueInfo_GetInitializerValue(info, &value));
  }
  return push(b->p, value ? &b->constants : &b->inputs, info);
}

static OrtStatus *add_inputs(ort_partition_values *b, size_t n, const OrtValueInfo *const *values) {
  for (size_t k = 0; k < n; k++) {
    ORT_TRY(add_input(b, values[k]));
  }
  return NULL;
}

OrtStatus *ort_partition_values_find(ort_partition_values *b, const ort_graph *g, const bool *chosen) {
  for (size_t k = 0; k < g->n_nodes; k++) {
    ORT_TRY(!chosen || chosen[k] ? add_made(b, &g->nodes[k]) : NULL);
  }
  for (size_t k = 0; k < g->n_nodes; k++) {
    if (!chosen || chosen[k]) {
      ORT_TRY(add_inputs(b, g->nodes[k].n_in, g->nodes[k].in));
      ORT_TRY(add_inputs(b, g->nodes[k].n_implicit, g->nodes[k].implicit));
    }
  }
  return NULL;
}

void ort_partition_values_free(ort_partition_values *b) {
  tdestroy(b->made, keep);
  tdestroy(b->seen, keep);
  free(b->inputs.items);
  free(b->constants.items);
  *b = (ort_partition_values){0};
}

/* Sets *out to whether the sizes of all inputs of the chosen nodes are known. */
static OrtStatus *all_known(const ort_partition_values *b, bool *out) {
  *out = true;
  for (size_t k = 0; k < b->inputs.n && *out; k++) {
    ort_array x;
    ORT_TRY(ort_value_shape(b->p, b->inputs.items[k], &x, out));
    *out = *out && x.ranked;
    for (size_t d = 0; *out && d < x.rank; d++) {
      *out = x.dims[d] >= 0;
    }
  }
  return NULL;
}

/* --- importing the chosen nodes --- */

typedef struct finding {
  const ort_provider *p;
  const size_t *numbers; /* for each node of the model that is imported, its index in the graph of ONNX Runtime */
  bool guessed; /* whether a size was guessed, so that a node that seems invalid may be valid for other sizes */
  bool *taken;
  size_t n_found;
} finding;

static void found(void *data, size_t node, oxla_code code, const char *message) {
  finding *f = data;
  size_t k = f->numbers[node];
  if (!f->guessed || code == OXLA_UNSUPPORTED) {
    ort_log(f->p, ORT_LOGGING_LEVEL_INFO, "onnx-xla leaves a node: %s", message);
    f->n_found += f->taken[k];
    f->taken[k] = false;
  }
}

static void take_none(finding *f, size_t n) {
  for (size_t k = 0; k < n; k++) {
    f->n_found += f->taken[f->numbers[k]];
    f->taken[f->numbers[k]] = false;
  }
}

static OrtStatus *import(finding *f, const ort_graph *g, const bool *chosen, const ort_partition_values *b, size_t n) {
  const ort_provider *p = f->p;
  const ort_node *last = &g->nodes[f->numbers[n - 1]];
  pb_writer model = {0};
  ort_model_parts parts = {.chosen = chosen,
                           .n_inputs = b->inputs.n,
                           .inputs = b->inputs.items,
                           .n_outputs = last->n_out,
                           .outputs = last->out,
                           .n_constants = b->constants.n,
                           .constants = b->constants.items,
                           .large_constants_are_inputs = true};
  OrtStatus *failed = ort_model_write(p, g, &parts, &model);
  if (!failed) {
    oxla_options options = {.size = sizeof options, .backend = *p->options.backend ? p->options.backend : NULL};
    oxla_error *error = oxla_survey(model.bytes, model.n, &options, found, f);
    if (error && oxla_error_code(error) == OXLA_INVALID_ARGUMENT) {
      oxla_error_free(
          /* An option is wrong.  Compiling reports that and fails, while a failure here would make ONNX Runtime
           * continue without this provider. */
          error);
    } else if (error) { /* the model cannot be read, and it is not known which node is the cause */
      ort_log(p, ORT_LOGGING_LEVEL_WARNING, "onnx-xla takes no node of a partition: %s", oxla_error_message(error));
      oxla_error_free(error);
      take_none(f, n);
    }
  }
  pb_free(&model);
  return failed;
}

OrtStatus *ort_support(const ort_provider *p, const ort_graph *g, const bool *chosen, bool *taken, size_t *n_found) {
  ort_partition_values b = {.p = p};
  size_t *numbers = calloc(g->n_nodes + 1, sizeof *numbers), n = 0;
  OrtStatus *failed = numbers ? NULL : ort_no_memory(p);
  for (size_t k = 0; !failed && k < g->n_nodes; k++) {
    numbers[n] = k;
    n += chosen[k];
  }
  finding f = {.p = p, .numbers = numbers, .taken = taken};
  if (!failed && n) {
    failed = ort_partition_values_find(&b, g, chosen);
    failed = failed ? failed : all_known(&b, &f.guessed);
    f.guessed = !f.guessed;
    failed = failed ? failed : import(&f, g, chosen, &b, n);
  }
  *n_found = f.n_found;
  ort_partition_values_free(&b);
  free(numbers);
  return failed;
}
