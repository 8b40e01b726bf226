/* import.c - imports the nodes of an ONNX graph, by calling one importer for each node, and resolves names in scopes.
 * segment.c starts the import of a frame's nodes; importer.c has the functions that importers call. */
#include "frontend/import/import.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/model/functions.h"
#include "frontend/operators/op_types.h"
#include "frontend/import/sequence.h"
#include "frontend/import/sizes.h"
#include "frontend/import/symbolic.h"
#include "frontend/model/tensor.h"

/* The importer in the rows of operators that are not supported.  It is never called, since find_row checks
 * onnx_op_is_supported. */
status onnx_import_unsupported(onnx_node *n) {
  return status_error(STATUS_UNSUPPORTED, "%s is not supported yet", n->proto->op_type);
}

/* --- scopes --- */

/* The outputs of a graph's nodes have distinct names, so the first output identifies a node; a node without outputs is
 * identified by its own name. */
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
  onnx_scope s = {.outer = around,
                  .around = around,
                  .importer = around->importer,
                  .b = b,
                  .captures = captures,
                  .function = around->function,
                  .call = around->call,
                  .opsets = around->opsets,
                  .depth = around->depth + 1};
  s.place = hash_mix(hash_mix(around->place, onnx_node_hash(node)), hash_text(name));
  str_map_init(&s.values, around->importer->arena);
  return s;
}

status onnx_scope_check_depth(const onnx_scope *s) {
  enum { DEPTH_MAX = 200 };
  CHECK_THAT(s->depth <= DEPTH_MAX, STATUS_RESOURCE, "functions and subgraphs nest deeper than %d", DEPTH_MAX);
  return NULL;
}

void onnx_scope_define(onnx_scope *s, const char *name, hlo_value v) {
  if (*name) {
    hlo_value *slot = ARENA_NEW(s->importer->arena, hlo_value);
    *slot = v;
    *str_map_put(&s->values, name) = slot;
  }
}

/* Copies an outer constant, a list of sizes, or the broadcast of a constant, into the scope's computation, so
 * that its value is known there too.  Returns false if the value is none of these. */
static bool copy_constant(onnx_scope *s, hlo_value outer, hlo_value *out) {
  hlo_computation *c = s->b->computation;
  hlo_instr *def = outer.def;
  if (def->op == HLO_CONSTANT || def->op == HLO_SIZES) {
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

static hlo_value capture_sequence(onnx_scope *s, hlo_value outer) {
  uint32_t n = onnx_sequence_length(outer);
  hlo_value *elements = ARENA_NEW_N(s->importer->arena, hlo_value, n);
  for (uint32_t k = 0; k < n; k++) {
    elements[k] = onnx_scope_capture(s, onnx_sequence_elements(outer)[k]);
  }
  return onnx_sequence_make(s->importer->arena, hlo_type(outer), n, elements);
}

hlo_value onnx_scope_capture(onnx_scope *s, hlo_value outer) {
  hlo_value inner;
  if (!s->captures) {
    return outer;
  }
  if (!onnx_is_array(outer)) {
    return onnx_is_absent(outer) ? outer : capture_sequence(s, outer);
  }
  if (copy_constant(s, outer, &inner)) {
    return inner;
  }
  if (onnx_require_sizes(s->importer, outer)) { /* a body sees arrays of constant dimensions only */
    hlo_fail(s->b, status_error(STATUS_UNSUPPORTED, "the size of a value that a body reads depends on data"));
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

/* The def of poison values: the outputs of a node in a function's body that could not be imported.  Nodes that read
 * them count as deferred. */
static hlo_instr poison;

bool onnx_scope_lookup(onnx_scope *s, const char *name, hlo_value *out) {
  hlo_value *found = str_map_get(&s->values, name);
  if (found && found->def == &poison) {
    s->importer->requirements.deferred = true;
    return false;
  }
  if (found) {
    *out = *found;
    return true;
  }
  if (s->frame && onnx_frame_value(s, name, out)) {
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

/* Finds the operator's row.  Messages about unsupported operators name the version, since often only the newest version
 * of an operator is unsupported. */
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
    CHECK_THAT(*node->input[k] || row->max_inputs == UINT32_MAX, STATUS_INVALID_MODEL, "input %" PRIu32 " is missing",
               k);
  }
  return NULL;
}

/* Returns a zeroed list with room for n entries or, if `limit` is greater and not UINT32_MAX (no limit), for `limit`
 * entries.  So importers may read optional inputs and set optional outputs that the node does not list. */
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

/* If the node reads a sequence or a map that an earlier segment computed, notes that the node must be
 * host-interpreted, and returns an error, so that the node is not imported. */
static status leave_sequences(onnx_scope *s, const Onnx__NodeProto *node) {
  if (onnx_reads_sequences(s, node)) {
    s->importer->requirements.host_interpreted = true;
    return status_error(STATUS_UNSUPPORTED, "it reads a sequence that an earlier segment computed");
  }
  return NULL;
}

static status import_operator(onnx_scope *s, const Onnx__NodeProto *node) {
  arena *a = s->importer->arena;
  const onnx_op_row *row;
  TRY(find_row(s, node, &row));
  TRY(check_arity(node, row));
  if (row->host == onnx_host_for_sequences || row->host == onnx_host_asked) {
    TRY(leave_sequences(s, node));
  }
  hlo_value *in = value_list(a, node->n_input, row->max_inputs);
  hlo_value *out = value_list(a, node->n_output, row->max_outputs);
  TRY(find_inputs(s, node, in));
  onnx_node n = {.proto = node,
                 .since = row->since,
                 .b = s->b,
                 .arena = a,
                 .scope = s,
                 .n_in = (uint32_t)node->n_input,
                 .n_out = (uint32_t)node->n_output,
                 .in = in,
                 .out = out};
  TRY(onnx_check_types(a, row, n.n_in, in, onnx_dims(&n)));
  onnx_sizes *sizes;
  TRY(onnx_sizes_before(&n, row, &sizes));
  s->b->source = onnx_node_source(a, node);
  TRY(onnx_check_symbols(&n, row));
  status failed = row->importer(&n);
  status in_builder = hlo_builder_take_error(s->b);
  if (failed) {
    status_free(in_builder); /* the importer's own error is the more specific one */
    return failed;
  }
  TRY(in_builder);
  onnx_sizes_after(&n, sizes);
  for (size_t k = 0; k < node->n_output; k++) {
    if (*node->output[k]) {
      CHECK_THAT(out[k].def, STATUS_UNSUPPORTED, "output %zu ('%s') is not supported", k, node->output[k]);
      onnx_scope_define(s, node->output[k], out[k]);
    }
  }
  return NULL;
}

/* Imports a function call: the body is imported in place, in a scope in which only the function's inputs are visible.
 */
static status import_call(onnx_scope *s, const Onnx__NodeProto *node, const onnx_function *f) {
  onnx_scope body = onnx_scope_make(s, node, "", s->b, NULL);
  body.outer = NULL;
  body.function = f;
  body.call = node;
  body.opsets = &f->opsets;
  const Onnx__FunctionProto *proto = f->proto;
  CHECK_THAT(node->n_input <= proto->n_input && node->n_output <= proto->n_output, STATUS_INVALID_MODEL,
             "has %zu inputs and %zu outputs, but the function has %zu and %zu", node->n_input, node->n_output,
             proto->n_input, proto->n_output);
  TRY(leave_sequences(s, node));
  for (size_t k = 0; k < proto->n_input; k++) {
    hlo_value v = {0};
    if (k < node->n_input && *node->input[k]) {
      CHECK_THAT(onnx_scope_lookup(s, node->input[k], &v), STATUS_INVALID_MODEL, "input '%s' is not defined",
                 node->input[k]);
    }
    onnx_scope_define(&body, proto->input[k], v);
  }
  body.n_nodes = proto->n_node;
  body.nodes = proto->node;
  TRY(onnx_import_nodes(&body, proto->n_node, proto->node));
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

status onnx_import_node(onnx_scope *s, const Onnx__NodeProto *node) {
  if (s->function) {
    TRY(onnx_node_bind(s->importer->arena, s->function, s->call, node, &node));
  }
  const onnx_function *f = onnx_model_callee(s->importer->frame->model, node);
  return f ? import_call(s, node, f) : import_operator(s, node);
}

bool onnx_requires_contents(const onnx_requirements *w) { return w->host_interpreted || w->asked.n || w->contents.n; }

/* The message begins with the labels of the enclosing function calls, the outermost one first. */
const char *onnx_describe_failure(const onnx_scope *s, const Onnx__NodeProto *node, status failed) {
  arena *a = s->importer->arena;
  const char *text = arena_printf(a, "%s: %s", onnx_node_label(a, node), status_message(failed));
  for (; s->around; s = s->around) {
    text = arena_printf(a, "%s: %s", onnx_node_label(a, s->call), text);
  }
  return text;
}

bool onnx_list_finding(onnx_scope *s, const Onnx__NodeProto *node, status failed) {
  arena *a = s->importer->arena;
  onnx_findings *f = s->importer->frame->findings;
  status_code code = status_get_code(failed);
  if (!f || (code != STATUS_INVALID_MODEL && code != STATUS_UNSUPPORTED)) {
    return false;
  }
  *ARENA_PUSH(a, f->items, f->n, f->cap) =
      (onnx_finding){code, status_get_subject(failed), s->importer->node, onnx_describe_failure(s, node, failed)};
  return true;
}

/* If the import of a function's body can go on after this node of it failed, makes the node's outputs poison values and
 * returns true.  It can go on only if the frame lists findings, and if the node has requirements or its failure can be
 * listed.  Inside of a body of Loop, Scan or If it cannot: such a body may be imported in several ways until one
 * succeeds, so a failure in it is not final. */
static bool go_on_without(onnx_scope *s, const Onnx__NodeProto *node, status failed) {
  onnx_importer *im = s->importer;
  onnx_requirements *w = &im->requirements;
  for (const onnx_scope *up = s; up->around; up = up->around) {
    if (up->outer) {
      return false;
    }
  }
  bool contents = onnx_requires_contents(w);
  if (!im->frame->findings || (!contents && !w->deferred && !onnx_list_finding(s, node, failed))) {
    return false;
  }
  if (contents && !im->segment->reason) {
    im->segment->reason = onnx_describe_failure(s, node, failed);
  }
  w->deferred = false;
  for (size_t k = 0; k < node->n_output; k++) {
    onnx_scope_define(s, node->output[k], (hlo_value){.def = &poison});
  }
  return true;
}

static void add_requirements(onnx_importer *im, const onnx_requirements *more) {
  onnx_requirements *w = &im->requirements;
  w->deferred |= more->deferred;
  w->host_interpreted |= more->host_interpreted;
  for (uint32_t k = 0; k < more->asked.n; k++) {
    *ARENA_PUSH(im->arena, w->asked.items, w->asked.n, w->asked.cap) = more->asked.items[k];
  }
  for (uint32_t k = 0; k < more->contents.n; k++) {
    *ARENA_PUSH(im->arena, w->contents.items, w->contents.n, w->contents.cap) = more->contents.items[k];
  }
}

status onnx_import_nodes(onnx_scope *s, size_t n, Onnx__NodeProto *const *nodes) {
  TRY(onnx_scope_check_depth(s));
  for (size_t k = 0; k < n; k++) {
    TRY(budget_check(arena_budget(s->importer->arena)));
    onnx_requirements before = s->importer->requirements;
    s->importer->requirements = (onnx_requirements){0};
    status failed = onnx_import_node(s, nodes[k]);
    if (failed && go_on_without(s, nodes[k], failed)) {
      status_free(failed);
      failed = NULL;
    }
    add_requirements(s->importer, &before);
    if (failed) {
      return status_at_node(failed, onnx_node_label(s->importer->arena, nodes[k]));
    }
  }
  return NULL;
}

/* --- graphs --- */

status onnx_import_initializers(onnx_scope *s, const Onnx__GraphProto *g) {
  arena *a = s->importer->arena;
  const onnx_source *source = &s->importer->frame->model->source;
  for (size_t k = 0; k < g->n_initializer; k++) {
    literal l;
    TRY(onnx_tensor_weights(a, source, g->initializer[k], &l));
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
  TRY(onnx_import_initializers(s, g));
  s->n_nodes = g->n_node;
  s->nodes = g->node;
  TRY(onnx_import_nodes(s, g->n_node, g->node));
  for (size_t k = 0; k < g->n_output; k++) {
    const char *name = g->output[k]->name;
    CHECK_THAT(onnx_scope_lookup(s, name, &roots[k]) && roots[k].def, STATUS_INVALID_MODEL,
               "graph output '%s' is not defined", name);
  }
  return NULL;
}
