/* check.c - checks whether a model can be compiled without compiling it, lists its operators, and finds a node by name.
 */
#include "plugin/compiler/internal.h"

#include <inttypes.h>
#include <string.h>

#include "frontend/import/import.h"
#include "frontend/model/attributes.h"
#include "frontend/model/model_internal.h"
#include "plugin/compiler/support.h"

/* --- operators --- */

typedef struct ops_call {
  const compiler_model *s;
  arena *a;
  operator_use **out;
  uint32_t *n;
} ops_call;

static status list_ops(void *data) {
  ops_call *c = data;
  const opened_model *l = c->s->model;
  *c->n = 0;
  if (!l->onnx) {
    return NULL;
  }
  onnx_op_usage *used;
  TRY(onnx_list_ops(c->a, l->onnx, &used, c->n));
  *c->out = operator_uses(c->a, used, *c->n);
  return NULL;
}

status compiler_list_ops(const compiler_model *s, arena *a, operator_use **out, uint32_t *n) {
  return guard_run(list_ops, &(ops_call){s, a, out, n});
}

/* --- finding a node --- */

typedef struct node_search {
  arena *a;
  const char *wanted, *label;
} node_search;

/* Sets the label if the node's name, its label or the name of one of its outputs is the wanted one. */
static status match_node(void *data, Onnx__NodeProto *node) {
  node_search *s = data;
  const char *label = s->label ? NULL : onnx_node_source(s->a, node);
  bool same = label && (strcmp(node->name, s->wanted) == 0 || strcmp(label, s->wanted) == 0);
  for (size_t k = 0; label && k < node->n_output; k++) {
    same |= strcmp(node->output[k], s->wanted) == 0;
  }
  s->label = same ? label : s->label;
  return NULL;
}

status compiler_find_node(const compiler_model *s, const char *node, arena *a, const char **label) {
  const onnx_model *m = compiler_onnx_model(s);
  node_search search = {.a = a, .wanted = node};
  CHECK_THAT(m, STATUS_INVALID_ARGUMENT, "HLO text has no nodes of a model");
  TRY(onnx_walk_nodes(a, m->graph->node, m->graph->n_node, match_node, &search));
  CHECK_THAT(search.label && *node, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_NAME,
             "the model has no node and no node's output '%s'", node);
  *label = search.label;
  return NULL;
}

/* --- checking --- */

typedef struct check_call {
  const compiler_model *s;
  const compile_request *request;
  mem_budget *budget;
  arena *a;
} check_call;

static status check_operators(check_call *c) {
  operator_use *ops;
  uint32_t n;
  const char *missing = NULL;
  TRY(list_ops(&(ops_call){c->s, c->a, &ops, &n}));
  for (uint32_t k = 0; k < n; k++) {
    if (!ops[k].supported) {
      missing = arena_printf(c->a, "%s%s%s.%s (opset %" PRId64 ")", missing ? missing : "", missing ? ", " : "",
                             ops[k].domain, ops[k].name, ops[k].opset);
    }
  }
  CHECK_THAT(!missing, STATUS_UNSUPPORTED | STATUS_ABOUT_OPERATOR, "operators that are not supported yet: %s", missing);
  return NULL;
}

/* Fails if an output is declared with a type that is not supported.  Importing does not always find this, since an
 * output may come from a branch of an If that only a run chooses. */
static status check_declared(const check_call *c) {
  const onnx_model *m = compiler_onnx_model(c->s);
  dim_table *dims = dim_table_create(c->a);
  for (size_t k = 0; m && k < m->graph->n_output; k++) {
    const Onnx__ValueInfoProto *v = m->graph->output[k];
    shape s;
    status failed = v->type ? onnx_value_shape(dims, v, &s) : NULL;
    if (failed && status_get_code(failed) == STATUS_UNSUPPORTED) {
      return failed;
    }
    status_free(failed);
  }
  return NULL;
}

/* Returns true if the size of root k along the axis depends on what the model computes; the root's shape then has the
 * upper bound of the size. */
static bool is_computed(const hlo_module *m, uint32_t k, int axis) {
  for (uint32_t i = 0; m->size_of && i < m->entry->n_roots; i++) {
    if (m->size_of[i].axis == axis && m->size_of[i].result == k) {
      return true;
    }
  }
  return false;
}

/* Compares an output with its declaration.  A declared dimension that is symbolic, or 0 (some exporters write 0 for
 * "any"), matches any size.  If the model computes the size, a declared one below the upper bound matches. */
static status check_output(const model_value *declared, const hlo_module *m, uint32_t root) {
  const shape *want = &declared->shape, *given = hlo_shape(m->entry->roots[root]);
  if (want->type == DTYPE_INVALID) {
    return NULL;
  }
  CHECK_THAT(want->type == given->type, STATUS_INVALID_MODEL | STATUS_ABOUT_TYPE,
             "output '%s' is declared as %s but is %s", declared->name, SHAPE_STR(NULL, want), SHAPE_STR(NULL, given));
  bool optional = want->kind == SHAPE_OPTIONAL && declared->element == SHAPE_ARRAY;
  bool fits = optional || want->kind == SHAPE_UNRANKED || (want->kind == SHAPE_ARRAY && want->rank == given->rank);
  for (int k = 0; fits && k < want->rank; k++) {
    fits = want->dims[k] <= 0 || want->dims[k] == given->dims[k] ||
           (want->dims[k] < given->dims[k] && is_computed(m, root, k));
  }
  CHECK_THAT(fits, STATUS_INVALID_MODEL | STATUS_ABOUT_SHAPE, "output '%s' is declared as %s but is %s", declared->name,
             SHAPE_STR(NULL, want), SHAPE_STR(NULL, given));
  return NULL;
}

static status check_module(void *data) {
  check_call *c = data;
  hlo_module *m;
  bool complete;
  c->a = arena_create(c->budget);
  TRY(check_operators(c));
  TRY(check_declared(c));
  TRY(compiler_import(c->s, c->request, c->a, &m, NULL, &complete));
  for (uint32_t k = 0; complete && k < c->s->n_outputs; k++) {
    TRY(check_output(&c->s->outputs[k], m, k));
  }
  return NULL;
}

status compiler_check(const compiler_model *s, const compile_request *request, mem_budget *budget) {
  check_call c = {.s = s, .request = request, .budget = budget};
  status failed = guard_run(check_module, &c);
  arena_destroy(c.a);
  return failed;
}
