/* open.c - opens a model file or HLO text as a compiler_model: lists what it declares and its files of external data.
 */
#include "plugin/compiler/internal.h"

#include <inttypes.h>
#include <string.h>

#include "frontend/import/import.h"
#include "frontend/model/model_internal.h"
#include "frontend/model/tensor.h"
#include "hlo/text/text.h"

/* Describes an input or output.  A symbolic dimension becomes -1 with its name, or without one if the importer made the
 * name up (such names begin with '_'). */
static model_value describe(arena *a, const dim_table *dims, const char *name, const shape *s) {
  model_value v = {.name = arena_strdup(a, name), .shape = *s};
  for (int k = 0; k < s->rank; k++) {
    if (!dim_is_const(s->dims[k])) {
      const char *symbol = dim_name(dims, s->dims[k]);
      v.dim_names[k] = symbol && *symbol != '_' ? arena_strdup(a, symbol) : NULL;
      v.shape.dims[k] = -1;
    }
  }
  return v;
}

static void describe_elements(const Onnx__ValueInfoProto *v, model_value *out) {
  if (v->type) {
    out->element = onnx_element_kind(v->type);
    out->key = onnx_key_type(v->type);
  }
}

/* Describes an output.  It is unranked if the model declares no type, or no supported type, for it. */
static model_value describe_output(arena *a, dim_table *dims, const Onnx__ValueInfoProto *v) {
  const shape unknown = {.kind = SHAPE_UNRANKED};
  shape s = unknown;
  status failed = v->type ? onnx_value_shape(dims, v, &s) : NULL;
  s = failed ? unknown : s;
  status_free(failed);
  model_value out = describe(a, dims, v->name, &s);
  describe_elements(v, &out);
  return out;
}

/* --- files beside the model --- */

typedef struct files {
  arena *a;
  str_map seen;
  compiler_model *s;
  uint32_t cap;
} files;

static status add_file(void *data, Onnx__TensorProto *t) {
  files *f = data;
  for (size_t k = 0; t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL && k < t->n_external_data; k++) {
    if (strcmp(t->external_data[k]->key, "location") == 0) {
      void **seen = str_map_put(&f->seen, t->external_data[k]->value);
      if (!*seen) {
        *ARENA_PUSH(f->a, f->s->files, f->s->n_files, f->cap) = t->external_data[k]->value;
      }
      *seen = f;
    }
  }
  return NULL;
}

static status describe_files(arena *a, const onnx_model *m, compiler_model *s) {
  files f = {.a = a, .s = s};
  str_map_init(&f.seen, a);
  return onnx_walk_tensors(a, m->proto, add_file, &f);
}

/* Adds an input to the list of those that must be given, or of those that have a default.  A default of a type that is
 * not supported is left out, since the model may be right without it. */
static status describe_input(arena *a, dim_table *dims, const Onnx__ValueInfoProto *v, bool has_default,
                             compiler_model *s) {
  shape declared;
  status failed = onnx_value_shape(dims, v, &declared);
  if (failed && has_default) {
    status_free(failed);
    return NULL;
  }
  TRY(failed);
  model_value *out = has_default ? &s->defaults[s->n_defaults++] : &s->inputs[s->n_inputs++];
  *out = describe(a, dims, v->name, &declared);
  describe_elements(v, out);
  return NULL;
}

static status describe_model(arena *a, const onnx_model *m, compiler_model *s) {
  const Onnx__GraphProto *g = m->graph;
  dim_table *dims = dim_table_create(a);
  s->name = g->name && *g->name ? g->name : "model";
  s->n_nodes = (uint32_t)m->expanded_nodes;
  s->strings = m->source.strings;
  s->inputs = ARENA_NEW_N(a, model_value, g->n_input);
  s->defaults = ARENA_NEW_N(a, model_value, g->n_input);
  for (size_t k = 0; k < g->n_input; k++) {
    bool has_default = onnx_model_has_initializer(m, g->input[k]->name);
    if (!has_default || onnx_model_input_is_overridable(m, g->input[k])) {
      TRY(describe_input(a, dims, g->input[k], has_default, s));
    }
  }
  s->n_initializers = (uint32_t)(g->n_initializer + g->n_sparse_initializer);
  s->n_outputs = (uint32_t)g->n_output;
  s->outputs = ARENA_NEW_N(a, model_value, g->n_output);
  for (size_t k = 0; k < g->n_output; k++) {
    s->outputs[k] = describe_output(a, dims, g->output[k]);
  }
  s->n_properties = (uint32_t)m->proto->n_metadata_props;
  s->properties = ARENA_NEW_N(a, model_property, s->n_properties);
  for (uint32_t k = 0; k < s->n_properties; k++) {
    s->properties[k] = (model_property){m->proto->metadata_props[k]->key, m->proto->metadata_props[k]->value};
  }
  return describe_files(a, m, s);
}

/* Checks that a constant with which the model is opened has the name of an input that callers may give, and the type
 * and shape that are declared for that input. */
static status check_constant(arena *a, const onnx_model *m, const compiler_constant *c) {
  const Onnx__GraphProto *g = m->graph;
  const Onnx__ValueInfoProto *input = NULL;
  for (size_t k = 0; !input && k < g->n_input; k++) {
    input = strcmp(g->input[k]->name, c->name) == 0 ? g->input[k] : NULL;
  }
  CHECK_THAT(input && (onnx_model_input_is_required(m, input) || onnx_model_input_is_overridable(m, input)),
             STATUS_INVALID_ARGUMENT | STATUS_ABOUT_NAME, "constant '%s' is no input of the model that may be given",
             c->name);
  const shape *given = &c->value.shape;
  shape want;
  dim_table *dims = dim_table_create(a);
  TRY(onnx_value_shape(dims, input, &want));
  CHECK_THAT(given->type == want.type, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_TYPE,
             "constant '%s' is %s; the model wants %s", c->name, SHAPE_STR(NULL, given), SHAPE_STR(dims, &want));
  bool fits = want.kind == SHAPE_UNRANKED || given->rank == want.rank;
  for (int k = 0; fits && k < want.rank; k++) {
    fits = !dim_is_const(want.dims[k]) || want.dims[k] == given->dims[k];
  }
  CHECK_THAT(fits, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE, "constant '%s' is %s; the model wants %s", c->name,
             SHAPE_STR(NULL, given), SHAPE_STR(dims, &want));
  CHECK_THAT(dtype_get_info((dtype)given->type)->bits >= 8 || given->type == DTYPE_PRED,
             STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE, "constant '%s' is %s", c->name, SHAPE_STR(NULL, given));
  return NULL;
}

/* Removes the initializer of that name from the graph, if there is one. */
static void remove_initializer(Onnx__GraphProto *g, const char *name) {
  size_t dense = 0, sparse = 0;
  for (size_t k = 0; k < g->n_initializer; k++) {
    g->initializer[dense] = g->initializer[k];
    dense += strcmp(g->initializer[k]->name, name) != 0;
  }
  for (size_t k = 0; k < g->n_sparse_initializer; k++) {
    g->sparse_initializer[sparse] = g->sparse_initializer[k];
    sparse += strcmp(g->sparse_initializer[k]->values->name, name) != 0;
  }
  g->n_initializer = dense;
  g->n_sparse_initializer = sparse;
}

/* Adds the constant to the graph as an initializer, in place of the one that is the input's default. */
static status add_constant(arena *a, onnx_model *m, const compiler_constant *c) {
  Onnx__GraphProto *g = m->graph;
  Onnx__TensorProto *t = ARENA_NEW(a, Onnx__TensorProto);
  remove_initializer(g, c->name);
  TRY(onnx_tensor_from_literal(a, c->name, &c->value, NULL, t));
  g->initializer = arena_grow(a, g->initializer, g->n_initializer * sizeof t, (g->n_initializer + 1) * sizeof t);
  g->initializer[g->n_initializer++] = t;
  *str_map_put(&m->initializers, t->name) = t;
  return NULL;
}

typedef struct open_call {
  arena *a;
  const char *path;
  const void *bytes;
  size_t size;
  uint32_t n_constants;
  const compiler_constant *constants;
  compiler_model **out;
} open_call;

static status open_onnx(void *data) {
  open_call *c = data;
  onnx_model *m;
  TRY(onnx_model_from_memory(c->a, c->bytes, c->size, c->path, NULL, &m));
  str_map given;
  str_map_init(&given, c->a);
  for (uint32_t k = 0; k < c->n_constants; k++) {
    const char *name = c->constants[k].name;
    CHECK_THAT(!str_map_get(&given, name), STATUS_INVALID_ARGUMENT | STATUS_ABOUT_NAME, "constant '%s' is given twice",
               name);
    *str_map_put(&given, name) = (void *)&c->constants[k];
    TRY(check_constant(c->a, m, &c->constants[k]));
    TRY(add_constant(c->a, m, &c->constants[k]));
  }
  opened_model *l = ARENA_NEW(c->a, opened_model);
  l->onnx = m;
  l->n_constants = c->n_constants;
  l->constants = c->constants;
  l->arena = c->a;
  *c->out = ARENA_NEW(c->a, compiler_model);
  (*c->out)->model = l;
  TRY(describe_model(c->a, m, *c->out));
  l->needs_contents = arena_alloc(c->a, (*c->out)->n_inputs * sizeof *l->needs_contents);
  return NULL;
}

status compiler_open(arena *a, const char *path, const void *bytes, size_t size, uint32_t n_constants,
                     const compiler_constant *constants, compiler_model **out) {
  return guard_run(open_onnx, &(open_call){.a = a,
                                           .path = path,
                                           .bytes = bytes,
                                           .size = size,
                                           .n_constants = n_constants,
                                           .constants = constants,
                                           .out = out});
}

static const char *name_or_number(arena *a, const char *name, const char *prefix, uint32_t k) {
  return name ? name : arena_printf(a, "%s%" PRIu32, prefix, k);
}

/* Describes the module's results as outputs.  The last results may be sizes of others (hlo_module.size_of).  These are
 * not outputs; the dimension of which they are the size is described as -1. */
static void describe_results(arena *a, const hlo_module *m, compiler_model *s) {
  s->outputs = ARENA_NEW_N(a, model_value, m->entry->n_roots);
  for (uint32_t k = 0; k < m->entry->n_roots; k++) {
    if (m->size_of && m->size_of[k].axis >= 0) {
      s->outputs[m->size_of[k].result].shape.dims[m->size_of[k].axis] = -1;
    } else {
      const char *name = name_or_number(a, m->result_names ? m->result_names[k] : NULL, "output_", k);
      s->outputs[s->n_outputs++] = describe(a, m->dims, name, hlo_shape(m->entry->roots[k]));
    }
  }
}

static status open_text(void *data) {
  open_call *c = data;
  arena *a = c->a;
  hlo_module *m;
  TRY(hlo_parse(a, c->bytes, c->size, NULL, &m));
  opened_model *l = ARENA_NEW(a, opened_model);
  l->hlo = m;
  l->arena = a;
  compiler_model *s = *c->out = ARENA_NEW(a, compiler_model);
  s->model = l;
  s->name = m->name;
  s->strings = string_table_create(a, NULL);
  s->n_inputs = m->entry->n_params;
  s->inputs = ARENA_NEW_N(a, model_value, s->n_inputs);
  for (uint32_t k = 0; k < s->n_inputs; k++) {
    const char *name = name_or_number(a, m->param_names ? m->param_names[k] : NULL, "input_", k);
    s->inputs[k] = describe(a, m->dims, name, &m->entry->params[k]->shapes[0]);
  }
  describe_results(a, m, s);
  return NULL;
}

status compiler_open_hlo(arena *a, const char *name, const char *text, size_t size, compiler_model **out) {
  status s = guard_run(open_text, &(open_call){.a = a, .bytes = text, .size = size, .out = out});
  return s ? status_prefix(s, "%s", name) : NULL;
}
