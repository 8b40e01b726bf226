/* importer.c - functions that importers of operators call: for constants, axes and subgraphs. */
#include "frontend/import/importer.h"

#include <inttypes.h>
#include <string.h>

#include "frontend/import/sequence.h"
#include "frontend/import/sizes.h"
#include "frontend/import/symbolic.h"
#include "frontend/model/tensor.h"

bool onnx_has_out(const onnx_node *n, uint32_t k) { return k < n->n_out && *n->proto->output[k]; }

/* --- constants --- */

/* If v is a broadcast of a constant of one element and its shape is static, returns the elements of v, otherwise NULL.
 * Constant folding does not turn a large array of equal elements into a constant, but leaves it a broadcast; some
 * importers need the elements. */
static const literal *splat_literal(const onnx_node *n, hlo_value v) {
  const hlo_instr *i = v.def;
  const literal *scalar = i->op == HLO_BROADCAST ? hlo_literal(i->operands[0]) : NULL;
  if (!scalar || shape_elements(&scalar->shape) != 1 || !shape_is_static(hlo_shape(v))) {
    return NULL;
  }
  void *data;
  literal *l = ARENA_NEW(n->arena, literal);
  *l = literal_new(n->arena, *hlo_shape(v), &data);
  size_t size = dtype_bytes(hlo_type(v));
  for (int64_t k = 0, count = shape_elements(&l->shape); k < count; k++) {
    memcpy((char *)data + (size_t)k * size, scalar->data, size);
  }
  return l;
}

/* Returns s, or the innermost scope around s, that has a computation of its own.  If there is none, returns the
 * outermost scope that is visible from s: that of the frame or of a function's body. */
static const onnx_scope *body_of(const onnx_scope *s) {
  while (!s->captures && s->outer) {
    s = s->outer;
  }
  return s;
}

/* The arrays of the frame (inputs of the caller and results of earlier segments, frame.h) from which some values are
 * computed, as find_sources finds them.  If such a value depends on a capture of a body, the search continues at the
 * captured value, outside of the body. */
typedef struct sources {
  onnx_array_uses arrays; /* arrays of the frame */
  bool more;              /* whether the values also depend on inputs of a body, such as the states of a loop */
} sources;

static void find_sources(const onnx_scope *s, uint32_t n, const hlo_value *values, sources *out) {
  const onnx_importer *im = s->importer;
  hlo_computation *c = s->b->computation;
  hlo_number(c);
  bool *depends = ARENA_NEW_N(im->arena, bool, c->n_ids);
  for (uint32_t k = 0; k < n; k++) {
    depends[values[k].def->id] = true;
  }
  for (const hlo_instr *i = c->last; i; i = i->prev) { /* operands come before their users in the list */
    for (uint32_t k = 0; depends[i->id] && k < i->n_operands; k++) {
      depends[i->operands[k].def->id] = true;
    }
  }
  const onnx_scope *body = body_of(s);
  hlo_value *outer = ARENA_NEW_N(im->arena, hlo_value, c->n_params);
  uint32_t n_outer = 0;
  for (uint32_t k = 0; k < c->n_params; k++) {
    bool dependent = depends[c->params[k]->id];
    if (dependent && c == im->module->entry) {
      *ARENA_PUSH(im->arena, out->arrays.items, out->arrays.n, out->arrays.cap) = im->params.items[k];
    } else if (dependent && body->captures && k >= body->n_inputs && k - body->n_inputs < body->captures->n) {
      outer[n_outer++] = body->captures->outer[k - body->n_inputs];
    } else {
      out->more |= dependent;
    }
  }
  if (n_outer) {
    find_sources(body->outer, n_outer, outer, out);
  }
}

/* If a required constant is computed from at most this many elements of inputs (such as a shape or a count), or is an
 * input itself, the import computes it; the module is then valid only for these contents of the inputs.  If it is
 * computed from more elements, a segment computes it at run time: the contents of a large input differ from run to run,
 * while the constant that is computed from them is often the same, so a module for each content would rarely be used
 * again. */
enum { FEW = 16 };

/* `symbolic`: whether the module is for all sizes.  An array whose length is open is then none of few elements, however
 * short it is now: it has no fixed number of elements that could be symbols. */
static bool computed_from_few(hlo_value v, const sources *s, bool symbolic) {
  int64_t elements = 0;
  for (uint32_t k = 0; k < s->arrays.n; k++) {
    const onnx_array *array = s->arrays.items[k].array;
    bool fixed = shape_is_static(&array->value.shape) && !(symbolic && array->open_dims);
    elements += fixed ? shape_elements(&array->value.shape) : FEW + 1;
  }
  bool itself = v.def->op == HLO_PARAMETER;
  return s->arrays.n && !s->more && (itself || elements <= FEW);
}

/* Returns true if input k of the node is not a constant, but is an array of the frame or is computed from few
 * elements of such arrays (FEW). */
static bool find_few(const onnx_node *n, uint32_t k, sources *s) {
  if (!onnx_has_in(n, k) || hlo_literal(n->in[k])) {
    return false;
  }
  find_sources(n->scope, 1, &n->in[k], s);
  return computed_from_few(n->in[k], s, n->scope->importer->frame->dims != NULL);
}

static void ask(onnx_importer *im, const sources *s) {
  for (uint32_t i = 0; i < s->arrays.n; i++) {
    *ARENA_PUSH(im->arena, im->requirements.asked.items, im->requirements.asked.n, im->requirements.asked.cap) =
        s->arrays.items[i];
  }
}

bool onnx_require_inputs(const onnx_node *n, uint32_t k) {
  sources s = {0};
  bool few = find_few(n, k, &s);
  if (few) {
    ask(n->scope->importer, &s);
  }
  return few;
}

bool onnx_require_told_inputs(const onnx_node *n, uint32_t k) {
  sources s = {0};
  onnx_importer *im = n->scope->importer;
  bool all = im->tells_inputs && find_few(n, k, &s);
  for (uint32_t i = 0; all && i < s.arrays.n; i++) {
    const literal *l = &s.arrays.items[i].array->value;
    all = l->data && onnx_holds_sizes(&l->shape);
  }
  if (all) {
    ask(im, &s);
  }
  return all;
}

void onnx_require_interpreter(const onnx_node *n) { n->scope->importer->requirements.host_interpreted = true; }

status onnx_leave_to_interpreter(const onnx_node *n, const char *why) {
  onnx_require_interpreter(n);
  return status_error(STATUS_UNSUPPORTED, "%s", why);
}

/* Returns the name of input k.  An importer may import a node as another operator, with inputs at other places than
 * those of the node's proto, so the name of the same value is looked for.  Returns NULL if no input has the value. */
static const char *input_name(const onnx_node *n, uint32_t k) {
  size_t count = n->proto->n_input;
  for (size_t j = 0; j < count; j++) {
    const char *name = n->proto->input[(k + j) % count];
    hlo_value v;
    if (*name && onnx_scope_lookup(n->scope, name, &v) && hlo_value_equal(v, n->in[k])) {
      return name;
    }
  }
  return k < count ? n->proto->input[k] : NULL;
}

void onnx_require_constant(const onnx_node *n, uint32_t k) {
  onnx_importer *im = n->scope->importer;
  if (!onnx_has_in(n, k) || hlo_literal(n->in[k]) || onnx_pin_value(n, n->in[k]) || onnx_require_inputs(n, k)) {
    return;
  }
  const char *name = n->scope->frame ? input_name(n, k) : NULL;
  if (name) {
    im->requirements.deferred = true;
    *ARENA_PUSH(im->arena, im->requirements.contents.items, im->requirements.contents.n,
                im->requirements.contents.cap) = name;
  } else {
    im->requirements.host_interpreted = true;
  }
}

status onnx_const_literal(const onnx_node *n, uint32_t k, const char *what, const literal **out) {
  CHECK_THAT(onnx_has_in(n, k), STATUS_INVALID_MODEL, "input %s is missing", what);
  *out = hlo_literal(n->in[k]);
  if (!*out) {
    *out = splat_literal(n, n->in[k]);
  }
  if (!*out) {
    onnx_require_constant(n, k);
  }
  const char *name = *out ? NULL : input_name(n, k);
  CHECK_THAT(*out, STATUS_UNSUPPORTED | STATUS_ABOUT_VALUE,
             "input %s ('%s') is not a constant, and its content decides sizes", what, name ? name : "");
  return NULL;
}

static status const_list(const onnx_node *n, uint32_t k, const char *what, const literal **out, int64_t *count) {
  TRY(onnx_const_literal(n, k, what, out));
  CHECK_THAT((*out)->shape.rank <= 1, STATUS_INVALID_MODEL, "input %s is %s; a list is required", what,
             SHAPE_STR(onnx_dims(n), &(*out)->shape));
  *count = shape_elements(&(*out)->shape);
  return NULL;
}

status onnx_const_ints(const onnx_node *n, uint32_t k, const char *what, const int64_t **values, int64_t *count) {
  const literal *l;
  TRY(const_list(n, k, what, &l, count));
  CHECK_THAT(dtype_is_int(l->shape.type), STATUS_INVALID_MODEL, "input %s is %s; integers are required", what,
             SHAPE_STR(onnx_dims(n), &l->shape));
  int64_t *list = ARENA_NEW_N(n->arena, int64_t, (size_t)*count);
  for (int64_t i = 0; i < *count; i++) {
    list[i] = literal_i64(l, i);
  }
  *values = list;
  return NULL;
}

status onnx_const_floats(const onnx_node *n, uint32_t k, const char *what, const double **values, int64_t *count) {
  const literal *l;
  TRY(const_list(n, k, what, &l, count));
  double *list = ARENA_NEW_N(n->arena, double, (size_t)*count);
  for (int64_t i = 0; i < *count; i++) {
    list[i] = literal_f64(l, i);
  }
  *values = list;
  return NULL;
}

status onnx_ints_attr_or_input(const onnx_node *n, const char *name, uint32_t k, const int64_t **values,
                               int64_t *count) {
  size_t size = 0;
  *values = NULL;
  *count = 0;
  if (onnx_has_in(n, k)) {
    return onnx_const_ints(n, k, name, values, count);
  }
  TRY(onnx_attr_ints(n->proto, name, values, &size));
  *count = (int64_t)size;
  return NULL;
}

status onnx_node_tensor(const onnx_node *n, const Onnx__TensorProto *t, literal *out) {
  return onnx_tensor_weights(n->arena, &n->scope->importer->frame->model->source, t, out);
}

status onnx_node_sparse_tensor(const onnx_node *n, const Onnx__SparseTensorProto *t, literal *out) {
  return onnx_sparse_tensor_literal(n->arena, &n->scope->importer->frame->model->source, t, out);
}

/* --- strings --- */

/* All strings of the model are in the table already (onnx_model_collect_strings), so it does not change. */
static int64_t string_number(const onnx_node *n, const void *bytes, size_t size) {
  return (int64_t)string_table_add(n->scope->importer->frame->model->source.strings, bytes, size);
}

status onnx_node_strings(const onnx_node *n, const char *name, const int64_t **numbers, size_t *count) {
  const ProtobufCBinaryData *strings;
  TRY(onnx_attr_byte_strings(n->proto, name, &strings, count));
  int64_t *all = ARENA_NEW_N(n->arena, int64_t, *count);
  for (size_t k = 0; k < *count; k++) {
    all[k] = string_number(n, strings[k].data, strings[k].len);
  }
  *numbers = all;
  return NULL;
}

status onnx_node_string(const onnx_node *n, const char *name, const char *def, int64_t *number) {
  const char *text;
  TRY(onnx_attr_string(n->arena, n->proto, name, def, &text));
  *number = string_number(n, text, strlen(text));
  return NULL;
}

/* --- axes --- */

status onnx_axis(int64_t axis, int64_t rank, int64_t *out) {
  CHECK_THAT(axis >= -rank && axis < rank, STATUS_INVALID_MODEL,
             "axis %" PRId64 " is outside of [-%" PRId64 ", %" PRId64 ")", axis, rank, rank);
  *out = axis < 0 ? axis + rank : axis;
  return NULL;
}

status onnx_axes(const int64_t *axes, size_t n, int64_t rank, int64_t *out) {
  bool seen[SHAPE_MAX_RANK] = {false};
  size_t count = 0;
  for (size_t k = 0; k < n; k++) {
    int64_t axis;
    TRY(onnx_axis(axes[k], rank, &axis));
    CHECK_THAT(axis < SHAPE_MAX_RANK && !seen[axis], STATUS_INVALID_MODEL, "axis %" PRId64 " is given twice", axes[k]);
    seen[axis] = true;
  }
  for (int64_t axis = 0; axis < rank && axis < SHAPE_MAX_RANK; axis++) {
    if (seen[axis]) {
      out[count++] = axis;
    }
  }
  return NULL;
}

/* --- subgraphs --- */

void onnx_add_capture_params(const onnx_captures *captures, uint32_t n, uint32_t n_inputs, hlo_computation *c) {
  for (uint32_t k = c->n_params - n_inputs; k < n; k++) {
    hlo_parameter(c, *hlo_shape(captures->outer[k]));
  }
}

void onnx_finish_body(const onnx_captures *captures, uint32_t n_inputs, hlo_computation *body) {
  onnx_add_capture_params(captures, captures->n, n_inputs, body);
}

static status check_inputs(const Onnx__GraphProto *g, const char *attribute, uint32_t n_inputs) {
  CHECK_THAT(g->n_input == n_inputs, STATUS_INVALID_MODEL, "subgraph %s has %zu inputs; %" PRIu32 " are given",
             attribute, g->n_input, n_inputs);
  return NULL;
}

status onnx_import_body(onnx_node *n, const char *attribute, uint32_t n_inputs, const shape *shapes,
                        const literal *const *known, int64_t step, onnx_captures *captures, hlo_computation **out) {
  const Onnx__GraphProto *g;
  TRY(onnx_attr_graph(n->proto, attribute, &g));
  uint32_t n_own = step == (int64_t)g->n_input ? n_inputs - 1 : n_inputs;
  TRY(check_inputs(g, attribute, n_own));
  hlo_computation *c = hlo_computation_create(n->scope->importer->module, attribute);
  hlo_builder b = hlo_builder_make(c);
  b.eval = n->b->eval;
  b.fold_bytes = n->b->fold_bytes;
  onnx_scope scope = onnx_scope_make(n->scope, n->proto, attribute, &b, captures);
  scope.n_inputs = n_inputs;
  for (uint32_t k = 0; k < n_inputs; k++) {
    hlo_parameter(c, shapes[k]);
  }
  scope.step = step >= 0 ? hlo_result(c->params[step], 0) : scope.step;
  for (uint32_t k = 0; k < n_own; k++) {
    hlo_value v = known && known[k] ? hlo_constant(&b, *known[k]) : hlo_result(c->params[k], 0);
    onnx_scope_define(&scope, g->input[k]->name, v);
  }
  hlo_value *roots = ARENA_NEW_N(n->arena, hlo_value, g->n_output);
  TRY(onnx_import_graph(&scope, g, roots));
  for (size_t k = 0; k < g->n_output; k++) {
    CHECK_THAT(onnx_is_array(roots[k]), STATUS_UNSUPPORTED, "output '%s' is %s, whose length depends on data",
               g->output[k]->name, SHAPE_STR(NULL, hlo_shape(roots[k])));
    CHECK_THAT(!onnx_require_sizes(n->scope->importer, roots[k]), STATUS_UNSUPPORTED,
               "the size of output '%s' depends on data", g->output[k]->name);
  }
  hlo_set_roots(c, (uint32_t)g->n_output, roots);
  *out = c;
  return NULL;
}

status onnx_import_inline(onnx_node *n, const char *attribute, uint32_t n_inputs, const hlo_value *inputs,
                          hlo_value step, uint32_t n_outputs, hlo_value *out) {
  const Onnx__GraphProto *g;
  TRY(onnx_attr_graph(n->proto, attribute, &g));
  TRY(check_inputs(g, attribute, n_inputs));
  CHECK_THAT(g->n_output == n_outputs, STATUS_INVALID_MODEL, "subgraph %s has %zu outputs; %" PRIu32 " are required",
             attribute, g->n_output, n_outputs);
  onnx_scope scope = onnx_scope_make(n->scope, n->proto, attribute, n->b, NULL);
  scope.step = step;
  for (uint32_t k = 0; k < n_inputs; k++) {
    onnx_scope_define(&scope, g->input[k]->name, inputs[k]);
  }
  return onnx_import_graph(&scope, g, out);
}
