/* functions.c - collects a model's functions, refuses recursion, and replaces references to attributes in the nodes of
 * functions (functions.h). */
#include "frontend/model/functions.h"

#include <inttypes.h>
#include <string.h>

#include "frontend/model/model_internal.h"

/* --- the table --- */

enum { KEY_MAX = 1000 };

/* Writes the key of a function: its domain, name and overload, each with its terminating NUL.  Returns the key's
 * length, or 0 if it is longer than KEY_MAX; functions with such names are refused. */
static size_t make_key(char *key, const char *domain, const char *name, const char *overload) {
  const char *parts[] = {onnx_domain(domain), name, overload};
  size_t n = 0;
  for (int i = 0; i < 3; i++) {
    size_t length = strlen(parts[i]) + 1;
    if (length > KEY_MAX - n) {
      return 0;
    }
    memcpy(key + n, parts[i], length);
    n += length;
  }
  return n;
}

const onnx_function *onnx_model_function(const onnx_model *m, const char *domain, const char *name,
                                         const char *overload) {
  char key[KEY_MAX];
  size_t n = m->functions.n ? make_key(key, domain, name, overload) : 0;
  return n ? str_map_get_n(&m->functions, key, n) : NULL;
}

const onnx_function *onnx_model_callee(const onnx_model *m, const Onnx__NodeProto *node) {
  return onnx_model_function(m, node->domain, node->op_type, node->overload);
}

/* A node of the call graph: a function or the main graph, which has no `f.proto`. */
typedef struct call_info {
  onnx_function f;   /* must be the first member, since m->functions points to it and `collect` casts it back */
  uint32_t *callees; /* the indices of the called functions, one entry for each call */
  uint32_t n_callees, callees_cap;
  uint64_t own_nodes;
  enum { NEW, OPEN, DONE } state;
  uint32_t next; /* while `state` is OPEN: the position in callees[] of the next callee to visit */
  uint32_t index;
} call_info;

#define FUNCTION_FORMAT "function %.200s%s%.200s"
#define FUNCTION_ARGS(p) (p)->domain, *(p)->domain ? "." : "", (p)->name

static status add_function(onnx_model *m, call_info *c, Onnx__FunctionProto *proto) {
  proto->domain = (char *)onnx_domain(proto->domain);
  c->f.proto = proto;
  CHECK_THAT(*proto->name, STATUS_INVALID_MODEL, "a function has no name");
  char key[KEY_MAX];
  size_t n = make_key(key, proto->domain, proto->name, proto->overload);
  CHECK_THAT(n, STATUS_UNSUPPORTED, "a function's name is longer than %d bytes", KEY_MAX);
  void **slot = str_map_put_n(&m->functions, arena_memdup(m->arena, key, n), n);
  CHECK_THAT(!*slot, STATUS_INVALID_MODEL, FUNCTION_FORMAT " is defined twice", FUNCTION_ARGS(proto));
  *slot = c;
  c->f.opsets = m->opsets;
  if (proto->n_opset_import) {
    TRY(status_prefix(onnx_opsets_load(m->arena, proto->opset_import, proto->n_opset_import, &c->f.opsets),
                      FUNCTION_FORMAT, FUNCTION_ARGS(proto)));
  }
  return NULL;
}

/* --- the call graph --- */

typedef struct collect_call {
  const onnx_model *m;
  arena *scratch;
  call_info *info;
} collect_call;

static status collect(void *data, Onnx__NodeProto *node) {
  collect_call *c = data;
  const onnx_function *callee = onnx_model_callee(c->m, node);
  c->info->own_nodes++;
  if (callee) {
    call_info *info = c->info;
    *ARENA_PUSH(c->scratch, info->callees, info->n_callees, info->callees_cap) = ((const call_info *)callee)->index;
  }
  return NULL;
}

static uint64_t saturating_add(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

static void finish(call_info *all, call_info *c) {
  c->f.expanded_nodes = c->own_nodes;
  for (uint32_t i = 0; i < c->n_callees; i++) {
    c->f.expanded_nodes = saturating_add(c->f.expanded_nodes, all[c->callees[i]].f.expanded_nodes);
  }
  c->state = DONE;
}

static status recursion(const call_info *first, const call_info *last) {
  const Onnx__FunctionProto *a = first->f.proto, *b = last->f.proto;
  if (a == b) {
    return status_error(STATUS_INVALID_MODEL, FUNCTION_FORMAT " calls itself", FUNCTION_ARGS(a));
  }
  return status_error(STATUS_INVALID_MODEL, FUNCTION_FORMAT " calls itself by way of " FUNCTION_FORMAT,
                      FUNCTION_ARGS(a), FUNCTION_ARGS(b));
}

/* Visits the call graph depth first from one function, with an explicit stack, so that deep call chains do not exhaust
 * the C stack. */
static status explore(call_info *all, uint32_t *stack, uint32_t from) {
  uint32_t depth = 0;
  stack[depth++] = from;
  all[from].state = OPEN;
  while (depth) {
    call_info *c = &all[stack[depth - 1]];
    if (c->next == c->n_callees) {
      finish(all, c);
      depth--;
      continue;
    }
    call_info *callee = &all[c->callees[c->next++]];
    if (callee->state == OPEN) {
      return recursion(callee, c);
    }
    if (callee->state == NEW) {
      callee->state = OPEN;
      stack[depth++] = callee->index;
    }
  }
  return NULL;
}

status onnx_functions_load(onnx_model *m, uint64_t max_nodes) {
  Onnx__ModelProto *p = m->proto;
  uint32_t n = (uint32_t)p->n_functions;
  call_info *all = ARENA_NEW_N(m->arena, call_info, (size_t)n + 1);
  str_map_init(&m->functions, m->arena);
  for (uint32_t i = 0; i < n; i++) {
    all[i].index = i;
    TRY(add_function(m, &all[i], p->functions[i]));
  }
  /* all[n], after the entries of the n functions, is the entry of the main graph. */
  for (uint32_t i = 0; i <= n; i++) {
    collect_call c = {m, m->arena, &all[i]};
    all[i].index = i;
    TRY(i < n ? onnx_walk_function(m->arena, p->functions[i], collect, &c)
              : onnx_walk_nodes(m->arena, m->graph->node, m->graph->n_node, collect, &c));
  }
  uint32_t *stack = ARENA_NEW_N(m->arena, uint32_t, (size_t)n + 1);
  for (uint32_t i = 0; i <= n; i++) {
    if (all[i].state == NEW) {
      TRY(explore(all, stack, i));
    }
  }
  m->expanded_nodes = all[n].f.expanded_nodes;
  CHECK_THAT(m->expanded_nodes <= max_nodes, STATUS_RESOURCE,
             "with its functions inlined, the model has %" PRIu64 " nodes, more than the limit of %" PRIu64,
             m->expanded_nodes, max_nodes);
  return NULL;
}

/* --- calls --- */

static const Onnx__AttributeProto *find_attribute(Onnx__AttributeProto *const *list, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++) {
    if (!strcmp(list[i]->name, name)) {
      return list[i];
    }
  }
  return NULL;
}

static bool has_reference(const Onnx__NodeProto *node) {
  for (size_t i = 0; i < node->n_attribute; i++) {
    if (*node->attribute[i]->ref_attr_name) {
      return true;
    }
  }
  return false;
}

/* Sets *out to a copy of the attribute to which `reference` refers, renamed to reference->name.  Sets *out to NULL if
 * neither the call nor the function's defaults have that attribute. */
static status bind_reference(arena *a, const onnx_function *f, const Onnx__NodeProto *call,
                             const Onnx__AttributeProto *reference, Onnx__AttributeProto **out) {
  const char *name = reference->ref_attr_name;
  const Onnx__AttributeProto *value = find_attribute(call->attribute, call->n_attribute, name);
  if (!value) {
    value = find_attribute(f->proto->attribute_proto, f->proto->n_attribute_proto, name);
  }
  *out = NULL;
  if (!value) {
    return NULL;
  }
  CHECK_THAT(!*value->ref_attr_name, STATUS_INVALID_MODEL, "attribute %s refers to %s, which is a reference again",
             reference->name, name);
  CHECK_THAT(!reference->type || !value->type || reference->type == value->type, STATUS_INVALID_MODEL,
             "attribute %s refers to %s, which has another type", reference->name, name);
  *out = arena_memdup(a, value, sizeof *value);
  (*out)->name = reference->name;
  return NULL;
}

status onnx_node_bind(arena *a, const onnx_function *f, const Onnx__NodeProto *call, const Onnx__NodeProto *node,
                      const Onnx__NodeProto **out) {
  *out = node;
  if (!has_reference(node)) {
    return NULL;
  }
  Onnx__NodeProto *bound = arena_memdup(a, node, sizeof *node);
  bound->attribute = ARENA_NEW_N(a, Onnx__AttributeProto *, node->n_attribute);
  bound->n_attribute = 0;
  for (size_t i = 0; i < node->n_attribute; i++) {
    Onnx__AttributeProto *attribute = node->attribute[i];
    if (*attribute->ref_attr_name) {
      TRY(bind_reference(a, f, call, attribute, &attribute));
    }
    if (attribute) {
      bound->attribute[bound->n_attribute++] = attribute;
    }
  }
  *out = bound;
  return NULL;
}
