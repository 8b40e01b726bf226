/* import.c - imports a compiler_model as an HLO module for the shapes and values of a request. */
#include "plugin/compiler/internal.h"

#include <inttypes.h>

#include "backend_ref/eval.h"
#include "frontend/import/assume.h"
#include "frontend/import/part.h"
#include "frontend/import/symbolic.h"
#include "hlo/ir/bind.h"

/* Returns true if each element can be the value of a symbol. */
static bool can_be_symbols(const literal *l) {
  bool can = onnx_holds_sizes(&l->shape) && shape_elements(&l->shape);
  for (int64_t k = 0; can && k < shape_elements(&l->shape); k++) {
    can = literal_i64(l, k) >= 0 && literal_i64(l, k) <= DIM_MAX;
  }
  return can;
}

/* Makes the import use the contents of an input: as symbols if the module is for all sizes and that is
 * possible, otherwise as a constant. */
static void use_content(arena *a, bool all_sizes, onnx_input_shape *input) {
  literal *own = ARENA_NEW(a, literal);
  const literal *l = input->value;
  *own = literal_make(l->shape, arena_memdup(a, l->data, (size_t)shape_bytes(&l->shape)));
  input->value = own;
  input->use = all_sizes && can_be_symbols(l) ? ONNX_CONTENT_SYMBOLS : ONNX_CONTENT_CONSTANT;
}

/* After an import has failed: makes the next one use the contents of inputs that were needed (o->wanted), as far as the
 * request has them, and sets *unknown if it lacks some.  Returns false if there are none to use. */
static bool use_wanted(arena *a, bool all_sizes, const onnx_import_options *o, onnx_input_shape *inputs,
                       bool *unknown) {
  bool more = false;
  for (uint32_t k = 0; k < o->n_inputs; k++) {
    if (o->wanted[k] && inputs[k].value && !inputs[k].use) {
      use_content(a, all_sizes, &inputs[k]);
      more = true;
    }
    *unknown |= o->wanted[k] && !inputs[k].value;
  }
  return more;
}

/* Imports a model whose sizes may depend on the contents of inputs.  If the import fails because it needs the contents
 * of some inputs and the request has them, they are used and the model is imported again.  Each round uses at least one
 * more input, so the loop ends. */
static status import_with_values(const compiler_model *s, const compile_request *r, arena *a, onnx_import_options *o,
                                 onnx_input_shape *inputs, onnx_definitions *definitions, hlo_module **out,
                                 bool *complete) {
  const opened_model *l = s->model;
  o->wanted = ARENA_NEW_N(a, bool, o->n_inputs);
  for (;;) {
    bool unknown = false;
    status failed = r->all_sizes ? onnx_import_symbolic(a, l->onnx, o, definitions, out, complete)
                                 : onnx_import(a, l->onnx, o, out, complete);
    if (!failed || !use_wanted(a, r->all_sizes, o, inputs, &unknown)) {
      return unknown ? status_about(failed, STATUS_ABOUT_VALUE) : failed;
    }
    status_free(failed);
  }
}

/* Returns the shape that the request gives for input k or else assumes; NULL if there is none, or if the model declares
 * a sequence or an optional. */
static const shape *shape_of(const compiler_model *s, const compile_request *r, uint32_t k) {
  const shape *given = r->inputs ? r->inputs[k] : NULL;
  given = given || !r->assumed ? given : &r->assumed[k];
  return shape_is_array(&s->inputs[k].shape) ? given : NULL;
}

/* Returns the input with its content, if the request has it. */
static onnx_input_shape input_of(arena *a, const compiler_model *m, const compile_request *r, uint32_t k) {
  const shape *s = shape_of(m, r, k);
  const void *value = r->values ? r->values[k] : NULL;
  literal *content = NULL;
  value = value || shape_elements(s) ? value : ""; /* an empty array has no unknown contents */
  if (value) {
    content = ARENA_NEW(a, literal);
    *content = literal_make(*s, value);
  }
  return (onnx_input_shape){.name = m->inputs[k].name, .shape = *s, .value = content};
}

/* Returns what definition k says its symbol is.  If all symbols in it are pinned, that is a number: a reader knows the
 * dimension `sequence`, but not the symbol sequence.m of its definition 512*sequence.m+64. */
static const char *definition_text(arena *a, const onnx_definitions *from, uint32_t k) {
  dim_table *t = dim_table_create(a);
  dim value = DIM_OVERFLOW;
  status failed = onnx_resolve_dim(t, from, dim_symbol(t, from->items[k].symbol), &value);
  bool is_number = !failed && dim_is_const(value);
  status_free(failed);
  return is_number ? dim_print(a, t, value) : from->items[k].equals;
}

static rt_definition *copy_definitions(arena *a, const onnx_definitions *from) {
  rt_definition *out = ARENA_NEW_N(a, rt_definition, from->n);
  for (uint32_t k = 0; k < from->n; k++) {
    out[k] = (rt_definition){from->items[k].symbol, definition_text(a, from, k), from->items[k].source};
  }
  return out;
}

/* Gives the dimensions that the request names (compile_request.dims) constant sizes. */
static void fix_dims(arena *a, const compile_request *r, onnx_definitions *out) {
  dim_table *t = dim_table_create(a);
  for (uint32_t k = 0; k < r->n_dims; k++) {
    const char *symbol = dim_name(t, dim_symbol(t, r->dims[k].name));
    *ARENA_PUSH(a, out->items, out->n, out->cap) =
        (onnx_definition){symbol, arena_printf(a, "%" PRId64, r->dims[k].value), "option", NULL};
  }
}

onnx_import_options compiler_import_options(arena *a, const compile_request *r) {
  onnx_dim_binding *dims = ARENA_NEW_N(a, onnx_dim_binding, r->n_dims);
  for (uint32_t k = 0; k < r->n_dims; k++) {
    dims[k] = (onnx_dim_binding){r->dims[k].name, r->dims[k].value};
  }
  return (onnx_import_options){.dims = dims,
                               .n_dims = r->n_dims,
                               .ranges = r->ranges,
                               .n_ranges = r->n_ranges,
                               .open_dim = r->open_dim,
                               .alone = r->alone,
                               .unchecked = r->options.unchecked,
                               .eval = ref_fold};
}

/* Copies a module that was read as text.  Its symbols are replaced by the sizes of the request's inputs, unless the
 * request is for all sizes or does not have the shapes of all inputs. */
static status copy_hlo(const hlo_module *m, const compile_request *r, arena *a, hlo_module **out) {
  uint32_t n = m->entry->n_params, told = 0;
  shape *inputs = ARENA_NEW_N(a, shape, n);
  while (r->inputs && told < n && r->inputs[told]) {
    inputs[told] = *r->inputs[told];
    told++;
  }
  if (!r->all_sizes && r->inputs && told == n && !hlo_is_static(m)) {
    return hlo_bind(a, m, inputs, out);
  }
  *out = hlo_module_clone(a, m);
  return NULL;
}

status compiler_import(const compiler_model *s, const compile_request *r, arena *a, hlo_module **out,
                       compiler_validity *validity, bool *complete) {
  const opened_model *l = s->model;
  compiler_validity unused, *v = validity ? validity : &unused;
  onnx_definitions definitions = {0};
  *v = (compiler_validity){.values = ARENA_NEW_N(a, const void *, s->n_inputs),
                           .told = ARENA_NEW_N(a, uint32_t, s->n_inputs)};
  if (r->all_sizes && r->fixed_dims) {
    fix_dims(a, r, &definitions);
  }
  *complete = true;
  if (l->hlo) {
    return copy_hlo(l->hlo, r, a, out);
  }
  onnx_import_options o = compiler_import_options(a, r);
  o.deferred = &v->deferred;
  onnx_input_shape *inputs = ARENA_NEW_N(a, onnx_input_shape, s->n_inputs);
  uint32_t *number = ARENA_NEW_N(a, uint32_t, s->n_inputs);
  for (uint32_t k = 0; k < s->n_inputs; k++) {
    if (shape_of(s, r, k)) {
      number[o.n_inputs] = k;
      inputs[o.n_inputs] = input_of(a, s, r, k);
      if (r->all_sizes && l->needs_contents[k] && inputs[o.n_inputs].value) {
        use_content(a, true, &inputs[o.n_inputs]);
      }
      o.n_inputs++;
    }
  }
  o.inputs = inputs;
  status failed = import_with_values(s, r, a, &o, inputs, &definitions, out, complete);
  v->definitions = copy_definitions(a, &definitions);
  v->n_definitions = definitions.n;
  for (uint32_t k = 0; k < o.n_inputs; k++) {
    if (r->all_sizes && !failed && inputs[k].use) {
      l->needs_contents[number[k]] = true;
    }
    v->values[number[k]] = inputs[k].use == ONNX_CONTENT_CONSTANT ? inputs[k].value->data : NULL;
    v->told[number[k]] = inputs[k].use == ONNX_CONTENT_SYMBOLS ? (uint32_t)shape_elements(&inputs[k].shape) : 0;
  }
  return failed;
}

/* --- assumed sizes --- */

typedef struct assume_call {
  const compiler_model *s;
  const compile_request *request;
  arena *a;
  shape *out;
  bool *beyond;
} assume_call;

static status assume_sizes(void *data) {
  const assume_call *c = data;
  const onnx_model *m = compiler_onnx_model(c->s);
  CHECK_THAT(m, STATUS_UNSUPPORTED, "the sizes of HLO text cannot be assumed");
  onnx_import_options o = compiler_import_options(c->a, c->request);
  onnx_input_shape *inputs = ARENA_NEW_N(c->a, onnx_input_shape, c->s->n_inputs);
  shape *shapes = ARENA_NEW_N(c->a, shape, m->graph->n_input);
  for (uint32_t k = 0; k < c->s->n_inputs; k++) {
    if (shape_of(c->s, c->request, k)) {
      inputs[o.n_inputs++] = input_of(c->a, c->s, c->request, k);
    }
  }
  o.inputs = inputs;
  o.wanted = ARENA_NEW_N(c->a, bool, o.n_inputs);
  for (bool unknown = false;;) {
    status failed =
        c->beyond ? onnx_assume_beyond(c->a, m, &o, shapes, c->beyond) : onnx_assume_sizes(c->a, m, &o, shapes);
    if (!failed || !use_wanted(c->a, true, &o, inputs, &unknown)) {
      TRY(failed);
      break;
    }
    status_free(failed);
  }
  uint32_t n = 0;
  for (size_t k = 0; k < m->graph->n_input; k++) {
    if (!onnx_model_has_initializer(m, m->graph->input[k]->name)) {
      c->out[n++] = shapes[k];
    }
  }
  return NULL;
}

status compiler_assume_sizes(const compiler_model *s, const compile_request *request, arena *a, shape *out,
                             bool *beyond) {
  return guard_run(assume_sizes, &(assume_call){s, request, a, out, beyond});
}

const onnx_model *compiler_onnx_model(const compiler_model *s) { return ((const opened_model *)s->model)->onnx; }

compiler_model *compiler_with_outputs(const compiler_model *s, arena *a, uint32_t n, const char *const *names) {
  compiler_model *copy = arena_memdup(a, s, sizeof *s);
  opened_model *l = arena_memdup(a, s->model, sizeof *l);
  l->onnx = onnx_model_with_outputs(a, l->onnx, n, names);
  copy->model = l;
  return copy;
}
