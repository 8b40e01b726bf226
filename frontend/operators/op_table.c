/* op_table.c - looks up operator versions in onnx_ops.def, and lists those that a model uses. */
#include "frontend/operators/op_table.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/model/functions.h"

#define DOMAIN(id, name) static const char id[] = name;
#include "frontend/model/onnx_domains.def"
#undef DOMAIN
#define MANY UINT32_MAX

#define ONNX(domain, name, since, min_in, max_in, min_out, max_out, sizes, symbols, work, host, importer) \
  extern onnx_sizes_fn onnx_sizes_##sizes;                                                                \
  extern onnx_import_fn onnx_import_##importer;
#include "frontend/operators/onnx_ops.def"
#undef ONNX
extern onnx_import_fn onnx_import_unsupported;

static const onnx_op_row rows[] = {
#define ONNX(domain, name, since, min_in, max_in, min_out, max_out, sizes, symbols, work, host, importer) \
  {domain,                                                                                                \
   name,                                                                                                  \
   since,                                                                                                 \
   min_in,                                                                                                \
   max_in,                                                                                                \
   min_out,                                                                                               \
   max_out,                                                                                               \
   onnx_sizes_##sizes,                                                                                    \
   onnx_symbols_##symbols,                                                                                \
   onnx_host_##host,                                                                                      \
   onnx_import_##importer},
#include "frontend/operators/onnx_ops.def"
};

enum { N_ROWS = sizeof rows / sizeof *rows };

const onnx_op_row *onnx_op_rows(uint32_t *n) {
  *n = N_ROWS;
  return rows;
}

bool onnx_op_is_supported(const onnx_op_row *row) { return row && row->importer != onnx_import_unsupported; }

static int compare_name(const onnx_op_row *row, const char *domain, const char *name) {
  int by_domain = strcmp(row->domain, domain);
  return by_domain ? by_domain : strcmp(row->name, name);
}

/* The rows are sorted by domain, name and version, so the name is found by binary search. */
const onnx_op_row *onnx_op_find(const char *domain, const char *name, int64_t opset) {
  const onnx_op_row *best = NULL;
  uint32_t low = 0, high = N_ROWS;
  while (low < high) { /* finds the first row whose name is not less than `name` */
    uint32_t middle = low + (high - low) / 2;
    if (compare_name(&rows[middle], domain, name) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  for (; low < N_ROWS && compare_name(&rows[low], domain, name) == 0 && rows[low].since <= opset; low++) {
    best = &rows[low];
  }
  return best;
}

/* --- the operators that a model uses --- */

typedef struct usage_list {
  arena *arena;
  const onnx_model *model;
  onnx_op_usage *items;
  uint32_t n, cap;
  str_map by_key; /* from "domain:name:opset" to the index in items[] plus 1 */
} usage_list;

static void count_op(usage_list *u, const onnx_opsets *opsets, const Onnx__NodeProto *node) {
  int64_t opset = onnx_opset_version(opsets, node->domain);
  const char *key = arena_printf(u->arena, "%s:%s:%lld", node->domain, node->op_type, (long long)opset);
  void **slot = str_map_put(&u->by_key, key);
  if (!*slot) {
    *ARENA_PUSH(u->arena, u->items, u->n, u->cap) =
        (onnx_op_usage){.domain = node->domain,
                        .name = node->op_type,
                        .opset = opset,
                        .row = onnx_op_find(node->domain, node->op_type, opset)};
    *slot = (void *)(uintptr_t)u->n;
  }
  u->items[(uintptr_t)*slot - 1].count++;
}

static void count_nodes(usage_list *u, const onnx_opsets *opsets, size_t n, Onnx__NodeProto *const *nodes) {
  for (size_t k = 0; k < n; k++) {
    if (!onnx_model_callee(u->model, nodes[k])) {
      count_op(u, opsets, nodes[k]);
    }
    for (size_t j = 0; j < nodes[k]->n_attribute;
         j++) { /* the recursion is bounded: the wire scan bounds the nesting */
      const Onnx__AttributeProto *attribute = nodes[k]->attribute[j];
      if (attribute->g) {
        count_nodes(u, opsets, attribute->g->n_node, attribute->g->node);
      }
      for (size_t i = 0; i < attribute->n_graphs; i++) {
        count_nodes(u, opsets, attribute->graphs[i]->n_node, attribute->graphs[i]->node);
      }
    }
  }
}

static int by_domain_and_name(const void *x, const void *y) {
  const onnx_op_usage *a = x, *b = y;
  int by_domain = strcmp(a->domain, b->domain), by_name = strcmp(a->name, b->name);
  return by_domain ? by_domain : by_name ? by_name : (a->opset > b->opset) - (a->opset < b->opset);
}

status onnx_list_ops(arena *a, const onnx_model *m, onnx_op_usage **out, uint32_t *n) {
  usage_list u = {.arena = a, .model = m};
  str_map_init(&u.by_key, a);
  count_nodes(&u, &m->opsets, m->graph->n_node, m->graph->node);
  for (size_t k = 0; k < m->proto->n_functions; k++) {
    const Onnx__FunctionProto *f = m->proto->functions[k];
    const onnx_function *function = onnx_model_function(m, onnx_domain(f->domain), f->name, f->overload);
    count_nodes(&u, &function->opsets, f->n_node, f->node);
  }
  if (u.n) {
    qsort(u.items, u.n, sizeof *u.items, by_domain_and_name);
  }
  *out = u.items;
  *n = u.n;
  return NULL;
}
