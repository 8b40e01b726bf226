/* import.c - walks an ONNX graph and calls one importer per node.  The model's whole way into HLO is onnx_import,
 * import_graph and import_node; what importers call back stands in importer.c. */
#include "frontend/import.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/functions.h"
#include "frontend/scope.h"
#include "frontend/tensor.h"

/* Function calls and subgraphs nest at most so deep: the walk recurses on the C stack. */
enum { SCOPE_DEPTH_MAX = 200 };

/* What the reference evaluator folds while importing: shape arithmetic and small tables, not weights. */
enum { FOLD_BYTES = 64 * 1024 };

/* --- scopes --- */

/* Outputs have different names; a node without any is told by its own. */
uint64_t onnx_node_hash(const Onnx__NodeProto *node) {
  for (size_t k = 0; k < node->n_output; k++) {
    if (*node->output[k]) {
      return hash_text(node->output[k]);
    }
  }
  return hash_text(node->name);
}

onnx_scope onnx_scope_make(onnx_scope *around, const Onnx__NodeProto *node, const char *name, hlo_builder *b,
                           onnx_captures *captures) {
  onnx_scope s = {.outer = around, .around = around, .importer = around->importer, .b = b, .captures = captures,
                  .function = around->function, .call = around->call, .opsets = around->opsets,
                  .depth = around->depth + 1};
  s.place = hash_mix(hash_mix(around->place, onnx_node_hash(node)), hash_text(name));
  str_map_init(&s.values, around->importer->arena);
  return s;
}

void onnx_scope_define(onnx_scope *s, const char *name, hlo_value v) {
  if (*name) {
    hlo_value *slot = ARENA_NEW(s->importer->arena, hlo_value);
    *slot = v;
    *str_map_put(&s->values, name) = slot;
  }
}

/* A constant, or a splat of one, is copied into the computation that wants it, so that its value stays known there. */
static bool copy_constant(onnx_scope *s, hlo_value outer, hlo_value *out) {
  hlo_computation *c = s->b->computation;
  hlo_instr *def = outer.def;
  if (def->op == HLO_CONSTANT) {
    *out = hlo_result(hlo_instr_clone(c, NULL, def, NULL), 0);
    return true;
  }
  if (def->op == HLO_BROADCAST && def->operands[0].def->op == HLO_CONSTANT) {
    hlo_value scalar = hlo_result(hlo_instr_clone(c, NULL, def->operands[0].def, NULL), 0);
    *out = hlo_result(hlo_instr_clone(c, NULL, def, &scalar), 0);
    return true;
  }
  return false;
}

hlo_value onnx_scope_capture(onnx_scope *s, hlo_value outer) {
  hlo_value inner;
  if (!s->captures) {
    return outer;
  }
  if (copy_constant(s, outer, &inner)) {
    return inner;
  }
  onnx_captures *caps = s->captures;
  uint32_t k = 0;
  while (k < caps->n && !hlo_value_equal(caps->outer[k], outer)) {
    k++;
  }
  if (k == caps->n) {
    *ARENA_PUSH(s->importer->arena, caps->outer, caps->n, caps->cap) = outer;
  }
  onnx_add_capture_params(caps, k + 1, s->n_inputs, s->b->computation);
  return hlo_result(s->b->computation->params[s->n_inputs + k], 0);
}

bool onnx_scope_lookup(onnx_scope *s, const char *name, hlo_value *out) {
  hlo_value *found = str_map_get(&s->values, name);
  if (found) {
    *out = *found;
    return true;
  }
  if (!s->outer || !onnx_scope_lookup(s->outer, name, out)) {
    return false;
  }
  if (s->captures && out->def) {
    *out = onnx_scope_capture(s, *out);
    onnx_scope_define(s, name, *out);
  }
  return true;
}

/* --- nodes --- */

/* The messages of opset holes name the version, since a newer model may use an operator's newer meaning. */
static status find_row(const onnx_scope *s, const Onnx__NodeProto *node, const onnx_op_row **row) {
  int64_t opset = onnx_opset_version(s->opsets, node->domain);
  const char *domain = *node->domain ? node->domain : "ai.onnx";
  *row = onnx_op_find(node->domain, node->op_type, opset);
  CHECK_THAT(*row, STATUS_UNSUPPORTED | STATUS_ABOUT_OPERATOR,
             "%s.%s is no operator of opset %" PRId64 " that onnx-xla knows", domain, node->op_type, opset);
  CHECK_THAT(onnx_op_is_supported(*row), STATUS_UNSUPPORTED | STATUS_ABOUT_OPERATOR,
             "%s.%s (version %d) is not supported yet", domain, node->op_type, (*row)->since);
  return NULL;
}

static status check_arity(const Onnx__NodeProto *node, const onnx_op_row *row) {
  CHECK_THAT(node->n_input >= row->min_inputs && node->n_input <= row->max_inputs, STATUS_INVALID_MODEL,
             "has %zu inputs; version %d takes %" PRIu32 " to %" PRIu32, node->n_input, row->since, row->min_inputs,
             row->max_inputs);
  CHECK_THAT(node->n_output >= row->min_outputs && node->n_output <= row->max_outputs, STATUS_INVALID_MODEL,
             "has %zu outputs; version %d gives %" PRIu32 " to %" PRIu32, node->n_output, row->since, row->min_outputs,
             row->max_outputs);
  for (uint32_t k = 0; k < row->min_inputs; k++) {
    CHECK_THAT(*node->input[k] || row->max_inputs == UINT32_MAX, STATUS_INVALID_MODEL, "input %" PRIu32 " is missing", k);
  }
  return NULL;
}

/* Room for at least `limit` entries, so that importers may look at optional ones without counting. */
static hlo_value *value_list(arena *a, size_t n, uint32_t limit) {
  return ARENA_NEW_N(a, hlo_value, limit == UINT32_MAX || n > limit ? n + 1 : (size_t)limit + 1);
}

static status find_inputs(onnx_scope *s, const Onnx__NodeProto *node, hlo_value *in) {
  for (size_t k = 0; k < node->n_input; k++) {
    if (*node->input[k]) {
      CHECK_THAT(onnx_scope_lookup(s, node->input[k], &in[k]), STATUS_INVALID_MODEL, "input '%s' is not defined",
                 node->input[k]);
      CHECK_THAT(in[k].def || k >= 1, STATUS_INVALID_MODEL, "input '%s' has no value", node->input[k]);
    }
  }
  return NULL;
}

static status import_operator(onnx_scope *s, const Onnx__NodeProto *node) {
  arena *a = s->importer->arena;
  const onnx_op_row *row;
  TRY(find_row(s, node, &row));
  TRY(check_arity(node, row));
  hlo_value *in = value_list(a, node->n_input, row->max_inputs);
  hlo_value *out = value_list(a, node->n_output, row->max_outputs);
  TRY(find_inputs(s, node, in));
  onnx_node n = {.proto = node, .since = row->since, .b = s->b, .arena = a, .scope = s,
                 .n_in = (uint32_t)node->n_input, .n_out = (uint32_t)node->n_output, .in = in, .out = out};
  s->b->source = *node->name ? node->name : node->n_output ? node->output[0] : node->op_type;
  status failed = row->importer(&n);
  status in_builder = hlo_builder_take_error(s->b);
  if (failed) {
    status_free(in_builder); /* what failed first in the builder is what made the importer stop, or worse than it */
    return failed;
  }
  TRY(in_builder);
  for (size_t k = 0; k < node->n_output; k++) {
    if (*node->output[k]) {
      CHECK_THAT(out[k].def, STATUS_UNSUPPORTED, "output %zu ('%s') is not supported", k, node->output[k]);
      onnx_scope_define(s, node->output[k], out[k]);
    }
  }
  return NULL;
}

static status import_nodes(onnx_scope *s, size_t n, Onnx__NodeProto *const *nodes);

/* A function sees its inputs only; its body is imported in place. */
static status import_call(onnx_scope *s, const Onnx__NodeProto *node, const onnx_function *f) {
  onnx_scope body = onnx_scope_make(s, node, "", s->b, NULL);
  body.outer = NULL;
  body.function = f;
  body.call = node;
  body.opsets = &f->opsets;
  const Onnx__FunctionProto *proto = f->proto;
  CHECK_THAT(node->n_input <= proto->n_input && node->n_output <= proto->n_output, STATUS_INVALID_MODEL,
             "gives %zu inputs and wants %zu outputs; the function has %zu and %zu", node->n_input, node->n_output,
             proto->n_input, proto->n_output);
  for (size_t k = 0; k < proto->n_input; k++) {
    hlo_value v = {0};
    if (k < node->n_input && *node->input[k]) {
      CHECK_THAT(onnx_scope_lookup(s, node->input[k], &v), STATUS_INVALID_MODEL, "input '%s' is not defined",
                 node->input[k]);
    }
    onnx_scope_define(&body, proto->input[k], v);
  }
  TRY(import_nodes(&body, proto->n_node, proto->node));
  for (size_t k = 0; k < node->n_output; k++) {
    hlo_value v;
    if (*node->output[k]) {
      CHECK_THAT(onnx_scope_lookup(&body, proto->output[k], &v) && v.def, STATUS_INVALID_MODEL,
                 "the function does not define its output '%s'", proto->output[k]);
      onnx_scope_define(s, node->output[k], v);
    }
  }
  return NULL;
}

static status import_node(onnx_scope *s, const Onnx__NodeProto *node) {
  if (s->function) {
    TRY(onnx_node_bind(s->importer->arena, s->function, s->call, node, &node));
  }
  const onnx_function *f = onnx_model_callee(s->importer->model, node);
  return f ? import_call(s, node, f) : import_operator(s, node);
}

static status import_nodes(onnx_scope *s, size_t n, Onnx__NodeProto *const *nodes) {
  CHECK_THAT(s->depth <= SCOPE_DEPTH_MAX, STATUS_RESOURCE, "functions and subgraphs nest deeper than %d",
             SCOPE_DEPTH_MAX);
  for (size_t k = 0; k < n; k++) {
    TRY(budget_check(arena_budget(s->importer->arena)));
    status failed = import_node(s, nodes[k]);
    if (failed) {
      return status_prefix(failed, "%s", onnx_node_label(s->importer->arena, nodes[k]));
    }
  }
  return NULL;
}

/* --- graphs --- */

static status import_initializers(onnx_scope *s, const Onnx__GraphProto *g) {
  arena *a = s->importer->arena;
  const onnx_source *source = &s->importer->model->source;
  for (size_t k = 0; k < g->n_initializer; k++) {
    literal l;
    TRY(onnx_tensor_literal(a, source, g->initializer[k], &l));
    onnx_scope_define(s, g->initializer[k]->name, hlo_constant(s->b, l));
  }
  for (size_t k = 0; k < g->n_sparse_initializer; k++) {
    literal l;
    TRY(onnx_sparse_tensor_literal(a, source, g->sparse_initializer[k], &l));
    onnx_scope_define(s, g->sparse_initializer[k]->values->name, hlo_constant(s->b, l));
  }
  return hlo_builder_take_error(s->b);
}

status onnx_import_graph(onnx_scope *s, const Onnx__GraphProto *g, hlo_value *roots) {
  TRY(import_initializers(s, g));
  TRY(import_nodes(s, g->n_node, g->node));
  for (size_t k = 0; k < g->n_output; k++) {
    const char *name = g->output[k]->name;
    CHECK_THAT(onnx_scope_lookup(s, name, &roots[k]) && roots[k].def, STATUS_INVALID_MODEL,
               "graph output '%s' is not defined", name);
  }
  return NULL;
}

/* --- shapes of inputs --- */

status onnx_value_shape(dim_table *dims, const Onnx__ValueInfoProto *v, shape *out) {
  const Onnx__TypeProto *type = v->type;
  CHECK_THAT(type, STATUS_INVALID_MODEL, "'%s' has no type", v->name);
  CHECK_THAT(type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE, STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE,
             "'%s' is not a tensor; sequences, optionals, maps and sparse tensors are not supported yet", v->name);
  const Onnx__TypeProto__Tensor *t = type->tensor_type;
  dtype element = dtype_from_onnx(t->elem_type);
  CHECK_THAT(element != DTYPE_INVALID, STATUS_INVALID_MODEL, "'%s' has element type %d, which is none", v->name,
             (int)t->elem_type);
  CHECK_THAT(element != DTYPE_STR, STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE,
             "'%s' holds strings, which are not supported yet", v->name);
  CHECK_THAT(t->shape, STATUS_UNSUPPORTED | STATUS_ABOUT_SHAPE, "'%s' has no rank", v->name);
  CHECK_THAT(t->shape->n_dim <= SHAPE_MAX_RANK, STATUS_UNSUPPORTED | STATUS_ABOUT_SHAPE, "'%s' has rank %zu, above %d",
             v->name, t->shape->n_dim, SHAPE_MAX_RANK);
  *out = shape_scalar(element);
  out->rank = (uint8_t)t->shape->n_dim;
  for (int k = 0; k < out->rank; k++) {
    const Onnx__TensorShapeProto__Dimension *d = t->shape->dim[k];
    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && d->dim_value >= 0) {
      out->dims[k] = d->dim_value;
    } else if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && *d->dim_param &&
               strcmp(d->dim_param, "?") != 0) {
      out->dims[k] = dim_symbol(dims, d->dim_param);
    } else { /* nothing, or a negative number, which exporters write for "any" */
      char name[32];
      snprintf(name, sizeof name, "_%.16s_%d", v->name, k);
      out->dims[k] = dim_symbol(dims, name);
    }
  }
  return shape_check(out, v->name);
}

/* Values for the model's symbols while the entry's parameters are made: the caller's, then those that given input
 * shapes tell. */
typedef struct binding {
  dim symbol;
  int64_t value;
} binding;

typedef struct bindings {
  const onnx_import_options *options;
  dim_table *dims;
  binding *items;
  uint32_t n, cap;
} bindings;

static bool find_binding(const bindings *b, dim symbol, int64_t *value) {
  for (uint32_t k = 0; k < b->n; k++) {
    if (b->items[k].symbol == symbol) {
      *value = b->items[k].value;
      return true;
    }
  }
  return false;
}

/* Compares a given shape with the declared one, and learns symbols from it.  Exporters write 0 for "any" too, so a
 * declared 0 accepts everything. */
static status bind_given(arena *a, bindings *b, const char *name, const shape *declared, const shape *given) {
  CHECK_THAT(given->type == declared->type && given->rank == declared->rank,
             STATUS_INVALID_ARGUMENT | (given->type == declared->type ? STATUS_ABOUT_SHAPE : STATUS_ABOUT_TYPE),
             "input '%s' is %s; the model wants %s", name, SHAPE_STR(NULL, given), SHAPE_STR(b->dims, declared));
  for (int k = 0; k < given->rank; k++) {
    dim want = declared->dims[k];
    int64_t value = given->dims[k], bound = value;
    if (dim_is_const(want)) {
      bound = want == 0 ? value : want;
    } else if (!find_binding(b, want, &bound)) {
      *ARENA_PUSH(a, b->items, b->n, b->cap) = (binding){want, value};
    }
    CHECK_THAT(value == bound, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE,
               "input '%s' is %s; dimension %d of %s must be %" PRId64, name, SHAPE_STR(NULL, given), k,
               SHAPE_STR(b->dims, declared), bound);
  }
  return NULL;
}

static const onnx_input_shape *given_input(const onnx_import_options *o, const char *name) {
  for (uint32_t k = 0; k < o->n_inputs; k++) {
    if (strcmp(o->inputs[k].name, name) == 0) {
      return &o->inputs[k];
    }
  }
  return NULL;
}

static status close_shape(const bindings *b, const char *name, shape *s) {
  for (int k = 0; k < s->rank; k++) {
    dim d = s->dims[k];
    if (dim_is_const(d) || find_binding(b, d, &s->dims[k])) {
      continue;
    }
    CHECK_THAT(b->options->open_dim > 0, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE,
               "dimension %d (%s) of input '%s' has no value", k, dim_name(b->dims, d), name);
    s->dims[k] = b->options->open_dim;
  }
  return shape_check(s, name);
}

/* Parameters of the entry: the graph's inputs but those that initializers fill. */
static status import_parameters(onnx_scope *s, hlo_module *m, const onnx_import_options *options) {
  const onnx_model *model = s->importer->model;
  const Onnx__GraphProto *g = model->graph;
  bindings b = {.options = options, .dims = m->dims};
  for (uint32_t k = 0; k < options->n_dims; k++) {
    dim symbol = dim_symbol(m->dims, options->dims[k].name);
    *ARENA_PUSH(m->arena, b.items, b.n, b.cap) = (binding){symbol, options->dims[k].value};
  }
  shape *shapes = ARENA_NEW_N(m->arena, shape, g->n_input);
  m->param_names = ARENA_NEW_N(m->arena, const char *, g->n_input);
  for (size_t k = 0; k < g->n_input; k++) {
    if (!onnx_model_has_initializer(model, g->input[k]->name)) {
      TRY(onnx_value_shape(m->dims, g->input[k], &shapes[k]));
      const onnx_input_shape *given = given_input(options, g->input[k]->name);
      if (given) {
        TRY(bind_given(m->arena, &b, g->input[k]->name, &shapes[k], &given->shape));
        shapes[k] = given->shape;
      }
    }
  }
  for (size_t k = 0; k < g->n_input; k++) {
    const char *name = g->input[k]->name;
    if (!onnx_model_has_initializer(model, name)) {
      TRY(close_shape(&b, name, &shapes[k]));
      m->param_names[m->entry->n_params] = arena_strdup(m->arena, name);
      hlo_parameter(m->entry, shapes[k]);
    }
  }
  for (uint32_t k = 0; k < m->entry->n_params; k++) { /* parameters stand first: constants come after them */
    const onnx_input_shape *given = given_input(options, m->param_names[k]);
    bool known = given && given->value;
    CHECK_THAT(!known || shape_equal(&given->value->shape, &given->shape), STATUS_INVALID_ARGUMENT,
               "the value of input '%s' is %s instead of %s", m->param_names[k],
               SHAPE_STR(NULL, &given->value->shape), SHAPE_STR(NULL, &given->shape));
    onnx_scope_define(s, m->param_names[k],
                      known ? hlo_constant(s->b, *given->value) : hlo_result(m->entry->params[k], 0));
  }
  return NULL;
}

status onnx_import(arena *a, const onnx_model *model, const onnx_import_options *options, hlo_module **out) {
  const Onnx__GraphProto *g = model->graph;
  hlo_module *m = hlo_module_create(a, g->name && *g->name ? g->name : "model");
  m->entry = hlo_computation_create(m, "main");
  hlo_builder b = hlo_builder_make(m->entry);
  b.eval = options->eval;
  b.fold_bytes = FOLD_BYTES;
  onnx_importer importer = {.arena = a, .model = model, .module = m, .options = options};
  onnx_scope scope = {.importer = &importer, .b = &b, .opsets = &model->opsets};
  str_map_init(&scope.values, a);
  TRY(import_parameters(&scope, m, options));
  hlo_value *roots = ARENA_NEW_N(a, hlo_value, g->n_output);
  TRY(onnx_import_graph(&scope, g, roots));
  hlo_set_roots(m->entry, (uint32_t)g->n_output, roots);
  m->result_names = ARENA_NEW_N(a, const char *, g->n_output);
  for (size_t k = 0; k < g->n_output; k++) {
    m->result_names[k] = arena_strdup(a, g->output[k]->name);
  }
  hlo_module_clean(m);
  *out = m;
  return NULL;
}
