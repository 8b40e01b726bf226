/* compiler.c - the compiler half: from a model file to a program.  The whole way stands in compile_module and what it calls:
 * open (frontend) -> import (frontend) -> the backend's compile (passes, lowering, code). */
#include "plugin/compiler/compiler.h"

#include <inttypes.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "backend_ref/eval.h"
#include "base/file.h"
#include "frontend/model/external_data.h"
#include "frontend/model/attributes.h"
#include "frontend/import/import.h"
#include "frontend/model/model_internal.h"
#include "frontend/import/op_types.h"
#include "frontend/import/part.h"
#include "frontend/model/tensor.h"
#include "hlo/passes/pass.h"
#include "hlo/text/text.h"
#include "hlo/text/verify.h"
#include "plugin/compiler/backend.h"
#include "plugin/compiler/segments.h"
#include "plugin/compiler/support.h"
#include "plugin/compiler/text.h"
#include "plugin/compiler/verify.h"
#include "runtime/program/weight_pool.h"

/* What stands behind compiler_model.model. */
typedef struct loaded {
  const onnx_model *onnx; /* or: */
  uint32_t n_constants;   /* beside what its file holds */
  const compiler_constant *constants;
  arena *arena;           /* on which its files are mapped */
  const hlo_module *hlo;
} loaded;

/* --- opening --- */

/* Symbols become -1 and a name; those that the importer made up for nameless dimensions have none. */
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

/* Outputs may come without a type or of a kind that only running tells. */
static model_value describe_output(arena *a, dim_table *dims, const Onnx__ValueInfoProto *v) {
  const shape unknown = {.kind = SHAPE_UNRANKED};
  shape s = unknown;
  status failed = v->type ? onnx_value_shape(dims, v, &s) : NULL;
  s = failed ? unknown : s;
  status_free(failed);
  return describe(a, dims, v->name, &s);
}

/* --- files beside the model --- */

typedef struct files {
  arena *a;
  str_map seen;
  compiler_model *s;
  uint32_t cap;
} files;

static void add_file(files *f, const Onnx__TensorProto *t) {
  for (size_t k = 0; t && t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL && k < t->n_external_data; k++) {
    if (strcmp(t->external_data[k]->key, "location") == 0) {
      void **seen = str_map_put(&f->seen, t->external_data[k]->value);
      if (!*seen) {
        *ARENA_PUSH(f->a, f->s->files, f->s->n_files, f->cap) = t->external_data[k]->value;
      }
      *seen = f;
    }
  }
}

static void add_files_of_graph(files *f, const Onnx__GraphProto *g) {
  for (size_t k = 0; k < g->n_initializer; k++) {
    add_file(f, g->initializer[k]);
  }
  for (size_t k = 0; k < g->n_sparse_initializer; k++) {
    add_file(f, g->sparse_initializer[k]->values);
    add_file(f, g->sparse_initializer[k]->indices);
  }
}

static status add_files_of_node(void *data, Onnx__NodeProto *node) {
  files *f = data;
  for (size_t k = 0; k < node->n_attribute; k++) {
    const Onnx__AttributeProto *x = node->attribute[k];
    const Onnx__GraphProto *g;
    add_file(f, x->t);
    for (size_t t = 0; t < x->n_tensors; t++) {
      add_file(f, x->tensors[t]);
    }
    if (x->sparse_tensor) {
      add_file(f, x->sparse_tensor->values);
      add_file(f, x->sparse_tensor->indices);
    }
    for (size_t n = 0; (g = onnx_attribute_graph(x, n)); n++) {
      add_files_of_graph(f, g);
    }
  }
  return NULL;
}

static status describe_files(arena *a, const onnx_model *m, compiler_model *s) {
  files f = {.a = a, .s = s};
  str_map_init(&f.seen, a);
  add_files_of_graph(&f, m->graph);
  TRY(onnx_walk_nodes(a, m->graph->node, m->graph->n_node, add_files_of_node, &f));
  for (size_t k = 0; k < m->proto->n_functions; k++) {
    TRY(onnx_walk_nodes(a, m->proto->functions[k]->node, m->proto->functions[k]->n_node, add_files_of_node, &f));
  }
  return NULL;
}

static status describe_model(arena *a, const onnx_model *m, compiler_model *s) {
  const Onnx__GraphProto *g = m->graph;
  dim_table *dims = dim_table_create(a);
  s->name = g->name && *g->name ? g->name : "model";
  s->n_nodes = (uint32_t)m->expanded_nodes;
  s->inputs = ARENA_NEW_N(a, model_value, g->n_input);
  for (size_t k = 0; k < g->n_input; k++) {
    if (!onnx_model_has_initializer(m, g->input[k]->name)) {
      shape declared;
      TRY(onnx_value_shape(dims, g->input[k], &declared));
      s->inputs[s->n_inputs++] = describe(a, dims, g->input[k]->name, &declared);
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

/* A constant must fit the declared input. */
static status check_constant(arena *a, const onnx_model *m, const compiler_constant *c) {
  const Onnx__GraphProto *g = m->graph;
  const Onnx__ValueInfoProto *input = NULL;
  for (size_t k = 0; !input && k < g->n_input; k++) {
    input = strcmp(g->input[k]->name, c->name) == 0 ? g->input[k] : NULL;
  }
  CHECK_THAT(input && !onnx_model_has_initializer(m, c->name), STATUS_INVALID_ARGUMENT | STATUS_ABOUT_NAME,
             "constant '%s' is no open input of the model", c->name);
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

/* The importer then meets it as an initializer. */
static status add_constant(arena *a, onnx_model *m, const compiler_constant *c) {
  Onnx__GraphProto *g = m->graph;
  Onnx__TensorProto *t = ARENA_NEW(a, Onnx__TensorProto);
  TRY(onnx_tensor_from_literal(a, c->name, &c->value, t));
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
  TRY(c->path ? onnx_model_open(c->a, c->path, NULL, &m)
              : onnx_model_from_memory(c->a, c->bytes, c->size, NULL, NULL, &m));
  for (uint32_t k = 0; k < c->n_constants; k++) {
    TRY(check_constant(c->a, m, &c->constants[k]));
    TRY(add_constant(c->a, m, &c->constants[k]));
  }
  loaded *l = ARENA_NEW(c->a, loaded);
  l->onnx = m;
  l->n_constants = c->n_constants;
  l->constants = c->constants;
  l->arena = c->a;
  *c->out = ARENA_NEW(c->a, compiler_model);
  (*c->out)->model = l;
  return describe_model(c->a, m, *c->out);
}

static status compiler_open(arena *a, const char *path, const void *bytes, size_t size, uint32_t n_constants,
                        const compiler_constant *constants, compiler_model **out) {
  return guard_run(open_onnx, &(open_call){.a = a, .path = path, .bytes = bytes, .size = size,
                                           .n_constants = n_constants, .constants = constants, .out = out});
}

static const char *name_or_number(arena *a, const char *name, const char *prefix, uint32_t k) {
  return name ? name : arena_printf(a, "%s%" PRIu32, prefix, k);
}

/* Sizes of other results are results too, behind all others (hlo_module.size_of): they are no outputs, they say how large
 * these turn out. */
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
  loaded *l = ARENA_NEW(a, loaded);
  l->hlo = m;
  l->arena = a;
  compiler_model *s = *c->out = ARENA_NEW(a, compiler_model);
  s->model = l;
  s->name = m->name;
  s->n_inputs = m->entry->n_params;
  s->inputs = ARENA_NEW_N(a, model_value, s->n_inputs);
  for (uint32_t k = 0; k < s->n_inputs; k++) {
    const char *name = name_or_number(a, m->param_names ? m->param_names[k] : NULL, "input_", k);
    s->inputs[k] = describe(a, m->dims, name, &m->entry->params[k]->shapes[0]);
  }
  describe_results(a, m, s);
  return NULL;
}

static status compiler_open_hlo(arena *a, const char *name, const char *text, size_t size, compiler_model **out) {
  status s = guard_run(open_text, &(open_call){.a = a, .bytes = text, .size = size, .out = out});
  return s ? status_prefix(s, "%s", name) : NULL;
}

/* --- importing --- */

/* Sizes that depend on inputs' values: the import says which it wants, and gets them if they are known.  Each round
 * gives at least one more, so there are at most as many as inputs. */
static status import_with_values(const compiler_model *s, const compile_request *r, arena *a, onnx_import_options *o,
                                 onnx_input_shape *inputs, const uint32_t *number, hlo_module **out, bool *complete) {
  const loaded *l = s->model;
  bool *wanted = ARENA_NEW_N(a, bool, o->n_inputs);
  for (;;) {
    bool more = false, unknown = false;
    o->wanted = wanted;
    status failed = onnx_import(a, l->onnx, o, out, complete);
    for (uint32_t k = 0; failed && k < o->n_inputs; k++) {
      const void *value = r->values ? r->values[number[k]] : NULL;
      value = value || shape_elements(&inputs[k].shape) ? value : ""; /* what is empty is known by its shape */
      if (wanted[k] && value && !inputs[k].value) {
        literal *known = ARENA_NEW(a, literal);
        *known = literal_make(inputs[k].shape, arena_memdup(a, value, (size_t)shape_bytes(&inputs[k].shape)));
        inputs[k].value = known;
        more = true;
      }
      unknown |= wanted[k] && !value;
    }
    if (!failed || !more) {
      return unknown ? status_about(failed, STATUS_ABOUT_VALUE) : failed;
    }
    status_free(failed);
  }
}

/* values[n_inputs] (may be NULL) gets what the module takes for granted of its inputs. */
status compiler_import(const compiler_model *s, const compile_request *r, arena *a, hlo_module **out, const void **values,
                   bool *complete) {
  const loaded *l = s->model;
  *complete = true;
  if (l->hlo) {
    *out = hlo_module_clone(a, l->hlo);
    return NULL;
  }
  onnx_import_options o = {.n_dims = r->n_dims, .open_dim = r->open_dim, .unchecked = r->options.unchecked, .eval = ref_fold};
  onnx_dim_binding *dims = ARENA_NEW_N(a, onnx_dim_binding, r->n_dims);
  for (uint32_t k = 0; k < r->n_dims; k++) {
    dims[k] = (onnx_dim_binding){r->dims[k].name, r->dims[k].value};
  }
  onnx_input_shape *inputs = ARENA_NEW_N(a, onnx_input_shape, s->n_inputs);
  uint32_t *number = ARENA_NEW_N(a, uint32_t, s->n_inputs);
  for (uint32_t k = 0; r->inputs && k < s->n_inputs; k++) {
    if (r->inputs[k]) {
      number[o.n_inputs] = k;
      inputs[o.n_inputs++] = (onnx_input_shape){.name = s->inputs[k].name, .shape = *r->inputs[k]};
    }
  }
  o.dims = dims;
  o.inputs = inputs;
  TRY(import_with_values(s, r, a, &o, inputs, number, out, complete));
  for (uint32_t k = 0; values && k < o.n_inputs; k++) {
    values[number[k]] = inputs[k].value ? inputs[k].value->data : NULL;
  }
  return NULL;
}

const onnx_model *compiler_onnx_model(const compiler_model *s) { return ((const loaded *)s->model)->onnx; }

compiler_model *compiler_with_outputs(const compiler_model *s, arena *a, uint32_t n, const char *const *names) {
  compiler_model *copy = arena_memdup(a, s, sizeof *s);
  loaded *l = arena_memdup(a, s->model, sizeof *l);
  l->onnx = onnx_model_with_outputs(a, l->onnx, n, names);
  copy->model = l;
  return copy;
}

/* --- compiling --- */

typedef struct compile_call {
  const compiler_model *s;
  const compile_request *request;
  arena *a;
  rt_program **out;
  rt_report *report;
  arena *scratch;
} compile_call;

/* Here, so that a name that is no pass's is noticed whatever the backend. */
static status check_skipped(arena *a, const char *names) {
  const hlo_pass *steps;
  uint32_t n;
  return names ? hlo_pass_parse_list(a, names, &steps, &n) : NULL;
}

static bool holds(const void *bytes, uint64_t size, const void *data) {
  return (const uint8_t *)data >= (const uint8_t *)bytes && (const uint8_t *)data < (const uint8_t *)bytes + size;
}

static void put_place(rt_writer *w, const char *where, int64_t offset) {
  if (w) {
    rt_put_text(w, where);
    rt_put_i64(w, offset);
  }
}

/* In the model's file or one beside it. */
static bool file_lasts(const loaded *l, const void *data, rt_writer *place) {
  const onnx_model *m = l->onnx;
  if (m && holds(m->source.bytes, m->source.size, data)) {
    put_place(place, "model", (const uint8_t *)data - (const uint8_t *)m->source.bytes);
    return true;
  }
  int64_t offset;
  const char *file = m && m->source.folder ? onnx_folder_find(m->source.folder, data, &offset) : NULL;
  if (file) {
    put_place(place, "file", offset);
    put_place(place, file, 0);
  }
  return file != NULL;
}

/* The model and the constants beside it stay for the life of their session; what an import makes does not. */
static bool model_lasts(const void *owner, const void *data, rt_writer *place) {
  const loaded *l = owner;
  bool is_persistent = file_lasts(l, data, place);
  for (uint32_t k = 0; k < l->n_constants && !is_persistent; k++) {
    const literal *x = &l->constants[k].value;
    is_persistent = holds(x->data, (uint64_t)shape_bytes(&x->shape), data);
    if (is_persistent) {
      put_place(place, "constant", (const uint8_t *)data - (const uint8_t *)x->data);
      put_place(place, l->constants[k].name, k);
    }
  }
  return is_persistent;
}

/* Of a mapped file; whole pages, since others may be in use on the first and the last. */
static void drop_pages(const void *owner, const void *data, uint64_t bytes) {
  enum { PAGE = 4096 };
  uintptr_t start = ((uintptr_t)data + PAGE - 1) & ~(uintptr_t)(PAGE - 1), end = ((uintptr_t)data + bytes) & ~(uintptr_t)(PAGE - 1);
  if (owner && end > start && file_is_mapped(((const loaded *)owner)->arena, data)) {
    (void)madvise((void *)start, end - start, MADV_DONTNEED);
  }
}

/* What the report has beside numbers. */
static void keep_report(arena *a, rt_report *r) {
  r->tuned = arena_memdup(a, r->tuned, r->n_tuned * sizeof *r->tuned);
  for (uint32_t k = 0; k < r->n_tuned; k++) {
    rt_tuned *t = &r->tuned[k];
    *t = (rt_tuned){arena_strdup(a, t->what), arena_strdup(a, t->winner), arena_strdup(a, t->times), arena_strdup(a, t->how)};
  }
  r->warning = r->warning ? arena_strdup(a, r->warning) : NULL;
}

static status compile_module(void *data);

/* All that making a program takes goes when it is there. */
static status compile_and_keep(void *data) {
  compile_call *c = data;
  rt_sharing sharing = *c->request->options.sharing;
  compile_request request = *c->request;
  sharing.is_persistent = model_lasts;
  sharing.drop = drop_pages;
  sharing.owner = c->s->model;
  request.options.sharing = &sharing;
  compile_call inner = *c;
  inner.request = &request;
  inner.a = c->scratch = arena_create(arena_budget(c->a));
  TRY(compile_module(&inner));
  if (*c->out) {
    *c->out = rt_program_keep(c->a, *c->out, &sharing);
    keep_report(c->a, c->report);
  }
  return NULL;
}

static status compile_module(void *data) {
  compile_call *c = data;
  const rt_backend *backend;
  hlo_module *m;
  bool complete;
  TRY(compiler_backend(c->request->backend, &backend));
  TRY(check_skipped(c->a, c->request->options.skip_passes));
  CHECK_THAT(backend->compiler, STATUS_UNSUPPORTED | STATUS_ABOUT_BACKEND,
             "backend %s runs programs but compiles none", c->request->backend);
  const void **values = ARENA_NEW_N(c->a, const void *, c->s->n_inputs);
  TRY(compiler_import(c->s, c->request, c->a, &m, values, &complete));
  *c->out = NULL;
  if (!complete) {
    return NULL;
  }
  TRY(hlo_check_static(m));
  rt_compile_options options = c->request->options;
  options.eval = ref_fold;
  TRY(backend->compiler->compile((struct hlo_module *)m, &options, c->a, c->out, c->report));
  for (uint32_t k = 0; k < c->s->n_inputs; k++) {
    (*c->out)->params[k].value = values[k];
  }
  return NULL;
}

static status segmented_model_of(const compiler_model *s, const compile_request *request, mem_budget *budget, segmented_model **out) {
  const loaded *l = s->model;
  return segmented_model_create(s, l->onnx, request, budget, out);
}

static status refuse_external(void *data, Onnx__NodeProto *node) {
  (void)data;
  for (size_t k = 0; k < node->n_attribute; k++) {
    const Onnx__TensorProto *t = node->attribute[k]->t;
    CHECK_THAT(!t || t->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL, STATUS_UNSUPPORTED,
               "the model has data in other files");
  }
  return NULL;
}

/* Constants of the options, and data in files beside the model, are not in its bytes. */
static status model_bytes(const compiler_model *s, rt_span *out) {
  const onnx_model *m = ((const loaded *)s->model)->onnx;
  CHECK_THAT(m && ((const loaded *)s->model)->n_constants == 0, STATUS_UNSUPPORTED, "the source is no model file alone");
  for (size_t k = 0; k < m->graph->n_initializer; k++) {
    CHECK_THAT(m->graph->initializer[k]->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL, STATUS_UNSUPPORTED,
               "the model has data in other files");
  }
  *out = (rt_span){m->source.bytes, m->source.size};
  arena *scratch = arena_create(NULL);
  status failed = onnx_walk_nodes(scratch, m->graph->node, m->graph->n_node, refuse_external, NULL);
  arena_destroy(scratch);
  return failed;
}

/* Of hundreds of megabytes that compiling had for a while, the allocator would keep most; and pages of the model that passes looked
 * at count as this process's. */
static void give_memory_back(const loaded *l) {
  if (l->onnx) {
    drop_pages(l, l->onnx->source.bytes, l->onnx->source.size);
  }
#ifdef __GLIBC__
  (void)malloc_trim(0);
#endif
}

static status compiler_compile(const compiler_model *s, const compile_request *request, arena *a, rt_program **out,
                           rt_report *report) {
  compile_request own = *request;
  compile_call c = {.s = s, .request = &own, .a = a, .out = out, .report = report};
  if (own.options.keep_text) { /* the texts are where everything else is */
    own.options.sharing = NULL;
  }
  status failed = guard_run(own.options.sharing ? compile_and_keep : compile_module, &c);
  arena_destroy(c.scratch);
  if (c.scratch) {
    give_memory_back(s->model);
  }
  return failed;
}

/* --- operators --- */

typedef struct ops_call {
  const compiler_model *s;
  arena *a;
  operator_use **out;
  uint32_t *n;
} ops_call;

static status list_ops(void *data) {
  ops_call *c = data;
  const loaded *l = c->s->model;
  *c->n = 0;
  if (!l->onnx) {
    return NULL;
  }
  onnx_op_usage *used;
  TRY(onnx_list_ops(c->a, l->onnx, &used, c->n));
  *c->out = operator_uses(c->a, used, *c->n);
  return NULL;
}

static status compiler_list_ops(const compiler_model *s, arena *a, operator_use **out, uint32_t *n) {
  return guard_run(list_ops, &(ops_call){s, a, out, n});
}

/* --- finding a node --- */

typedef struct node_search {
  arena *a;
  const char *wanted, *label;
} node_search;

/* By its name, its label or an output. */
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

/* Declared outputs that no run could give, also where which branch is taken, and so what comes out, is known later. */
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

/* Whether what the model computes decides the extent of root k along the axis; its shape has the bound then. */
static bool is_computed(const hlo_module *m, uint32_t k, int axis) {
  for (uint32_t i = 0; m->size_of && i < m->entry->n_roots; i++) {
    if (m->size_of[i].axis == axis && m->size_of[i].result == k) {
      return true;
    }
  }
  return false;
}

/* Declared dimensions that are open, or 0 (which exporters write for "any"), fit everything. */
static status check_output(const model_value *declared, const hlo_module *m, uint32_t root) {
  const shape *want = &declared->shape, *given = hlo_shape(m->entry->roots[root]);
  if (want->type == DTYPE_INVALID) {
    return NULL;
  }
  CHECK_THAT(want->type == given->type, STATUS_INVALID_MODEL | STATUS_ABOUT_TYPE,
             "output '%s' is declared as %s but is %s", declared->name, SHAPE_STR(NULL, want), SHAPE_STR(NULL, given));
  bool fits = want->kind == SHAPE_UNRANKED || want->rank == given->rank;
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

static status compiler_check(const compiler_model *s, const compile_request *request, mem_budget *budget) {
  check_call c = {.s = s, .request = request, .budget = budget};
  status failed = guard_run(check_module, &c);
  arena_destroy(c.a);
  return failed;
}

/* --- tensors --- */

typedef struct pb_call {
  arena *a;
  const char *path, **name;
  literal *l;
  uint8_t **bytes;
  size_t *size;
} pb_call;

static status read_pb(void *data) {
  pb_call *c = data;
  return onnx_tensor_read_pb(c->a, c->path, c->name, c->l);
}

static status compiler_read_pb(arena *a, const char *path, const char **name, literal *out) {
  return guard_run(read_pb, &(pb_call){.a = a, .path = path, .name = name, .l = out});
}

static status write_pb(void *data) {
  pb_call *c = data;
  return onnx_tensor_to_pb(c->a, *c->name, c->l, c->bytes, c->size);
}

static status compiler_tensor_to_pb(arena *a, const char *name, const literal *l, uint8_t **bytes, size_t *size) {
  return guard_run(write_pb, &(pb_call){.a = a, .name = &name, .l = (literal *)l, .bytes = bytes, .size = size});
}

const compiler_api *onnx_xla_compiler_get(uint32_t abi) {
  static compiler_api compiler = {
      .abi = COMPILER_ABI,
      .adopt_guard = guard_adopt,
      .ir_version = ONNX_IR_VERSION_MAX,
      .opset_version = ONNX_OPSET_MAX,
      .open = compiler_open,
      .open_hlo = compiler_open_hlo,
      .compile = compiler_compile,
      .segments_create = segmented_model_of,
      .segments_destroy = segmented_model_destroy,
      .segments_run = segmented_model_run,
      .bytes = model_bytes,
      .check = compiler_check,
      .print = compiler_print,
      .explain = compiler_explain,
      .verify = compiler_verify,
      .print_ptx = compiler_print_ptx,
      .list_ops = compiler_list_ops,
      .check_support = compiler_check_support,
      .opt = compiler_opt,
      .pass_list = compiler_pass_list,
      .op_page = onnx_op_page,
      .backend = compiler_backend,
      .read_pb = compiler_read_pb,
      .tensor_to_pb = compiler_tensor_to_pb,
  };
  if (!compiler.versions) {
    compiler.versions = compiler_versions();
  }
  return abi == COMPILER_ABI ? &compiler : NULL;
}
