/* api.c - implements onnx-xla.h with sessions: errors, options, models. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend_cpu/runtime/target.h"
#include "plugin/api/internal.h"
#include "runtime/host/stack.h"

static status to_status(const oxla_error *e) { return (status)e; }

oxla_code oxla_error_code(const oxla_error *error) { return (oxla_code)status_get_code(to_status(error)); }
oxla_subject oxla_error_subject(const oxla_error *error) {
  return (oxla_subject)(status_get_subject(to_status(error)) / STATUS_ABOUT_VERSION);
}
const char *oxla_error_node(const oxla_error *error) { return status_get_node(to_status(error)); }
const char *oxla_error_message(const oxla_error *error) { return status_message(to_status(error)); }
void oxla_error_free(oxla_error *error) { status_free(to_status(error)); }

/* --- loading --- */

/* Copies the options.  The caller's version of the struct may be older: fields that it lacks at its end get
 * their default, 0.  It may also be newer: fields that this version does not know must then be 0. */
static status read_options(const oxla_options *given, oxla_options *out) {
  enum { LEAST = offsetof(oxla_options, cpu), MOST = 4096 };
  *out = (oxla_options){.size = sizeof *out};
  if (!given) {
    return NULL;
  }
  CHECK_THAT(given->size >= LEAST && given->size <= MOST && given->size % _Alignof(oxla_options) == 0,
             STATUS_INVALID_ARGUMENT, "the size of the options is %zu; sizeof(oxla_options) is %zu", given->size,
             sizeof *out);
  for (size_t k = sizeof *out; k < given->size; k++) {
    CHECK_THAT(((const char *)given)[k] == 0, STATUS_UNSUPPORTED,
               "the options have a field at byte %zu that this version of the library does not know", k);
  }
  memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
  return NULL;
}

enum { MAX_LIST = 1 << 24 }; /* the most entries of a list; a larger number is refused as a mistake of the caller */

status api_shape(const char *name, oxla_type type, int rank, const int64_t *dims, shape *out) {
  dtype element = dtype_from_onnx((int32_t)type);
  CHECK_THAT(element != DTYPE_INVALID, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_TYPE, "'%s': %d is not an element type",
             name, (int)type);
  CHECK_THAT(rank >= 0 && rank <= SHAPE_MAX_RANK, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE,
             "'%s': rank %d is outside of [0, %d]", name, rank, SHAPE_MAX_RANK);
  CHECK_THAT(rank == 0 || dims, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE, "'%s': rank %d, but no dimensions", name,
             rank);
  for (int d = 0; d < rank; d++) {
    CHECK_THAT(dims[d] >= 0, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE, "'%s': dimension %d is negative", name, d);
  }
  *out = shape_make(element, rank, dims);
  return status_about(shape_check(out, name), STATUS_ABOUT_SHAPE);
}

static status take_constants(const oxla_options *o, compiler_constant *out) {
  CHECK_THAT(o->constants || o->n_constants == 0, STATUS_INVALID_ARGUMENT,
             "there are %zu constants, but the list is NULL", o->n_constants);
  for (size_t k = 0; k < o->n_constants; k++) {
    const oxla_constant *c = &o->constants[k];
    CHECK_THAT(c->name, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_NAME, "constant %zu has no name", k);
    out[k].name = c->name;
    TRY(api_shape(c->name, c->type, c->rank, c->dims, &out[k].value.shape));
    CHECK_THAT(c->data || shape_elements(&out[k].value.shape) == 0, STATUS_INVALID_ARGUMENT,
               "constant '%s' has no data", c->name);
    out[k].value.data = c->data;
  }
  return NULL;
}

static status open_session(const char *path, const void *bytes, size_t size, const oxla_options *o,
                           session_options *options, session **out) {
  compiler_constant *constants = calloc(o->n_constants + 1, sizeof *constants);
  CHECK_THAT(constants, STATUS_RESOURCE, "out of memory");
  options->constants = constants;
  options->n_constants = (uint32_t)o->n_constants;
  status failed = take_constants(o, constants);
  if (!failed) {
    failed = session_open(path, bytes, size, options, out);
  }
  free(constants);
  return failed;
}

/* Copies the options that are public rows of compile_options.def. */
static status take_compile_options(const oxla_options *o, session_options *out) {
#define take_flag(member, name) out->member = o->name != 0;
#define take_count(member, name)                                                                        \
  CHECK_THAT(o->name >= 0, STATUS_INVALID_ARGUMENT, "option " #name " is %d: it is negative", o->name); \
  out->member = (uint32_t)o->name;
#define take_text(member, name) out->member = o->name;
#define take_choice(member, name) out->member = o->name;
#define PUBLIC_OPTION(member, type, name, argument) take_##type(member, name)
#include "runtime/program/compile_options.def"
  return NULL;
}

static void log_line(void *model, session_log_level level, const char *line) {
  const oxla_model *m = model;
  m->log(m->log_data, (oxla_log_level)level, line);
}

static status load(const char *path, const void *bytes, size_t size, const oxla_options *given, oxla_model **out) {
  CHECK_THAT(out, STATUS_INVALID_ARGUMENT, "argument out is NULL");
  *out = NULL;
  CHECK_THAT(path || bytes, STATUS_INVALID_ARGUMENT, "neither a path nor bytes");
  oxla_options o;
  TRY(read_options(given, &o));
  CHECK_THAT(o.n_dims <= MAX_LIST && o.n_ranges <= MAX_LIST && o.n_constants <= MAX_LIST && o.n_carried <= MAX_LIST,
             STATUS_INVALID_ARGUMENT,
             "%zu values and %zu ranges of dimensions, %zu constants and %zu carried outputs: more than %d", o.n_dims,
             o.n_ranges, o.n_constants, o.n_carried, MAX_LIST);
  session_options options = {
      .backend = o.backend,
      .fallback = o.fallback,
      .cache = o.cache,
      .keep_programs = o.cache && *o.cache,
      .cache_bytes = o.cache_bytes,
      .dims = (const compiler_dim *)o.dims,
      .n_dims = (uint32_t)o.n_dims,
      .carried = (const session_carry *)o.carried,
      .n_carried = (uint32_t)o.n_carried,
      .ranges = (const dim_range *)o.ranges,
      .n_ranges = (uint32_t)o.n_ranges,
      .open_dim = !o.closed_dims,
      .max_memory = o.max_memory,
      .max_seconds = o.max_seconds,
      .verify = o.verify != 0,
      .check_memory = o.check_memory != 0,
  };
  TRY(take_compile_options(&o, &options));
  if (o.allocator) {
    CHECK_THAT(o.allocator->allocate && o.allocator->release, STATUS_INVALID_ARGUMENT,
               "an allocator without functions");
    options.allocator = (mem_allocator){o.allocator->allocate, o.allocator->release, o.allocator->data};
  }
  oxla_model *m = calloc(1, sizeof *m);
  CHECK_THAT(m, STATUS_RESOURCE, "out of memory");
  m->log = o.log;
  m->log_data = o.log_data;
  options.log = o.log ? log_line : NULL;
  options.log_data = m;
  pthread_mutex_init(&m->lock, NULL);
  atomic_init(&m->users, 1);
  status failed = open_session(path, bytes, size, &o, &options, &m->session);
  if (failed) {
    oxla_model_destroy(m);
    return failed;
  }
  *out = m;
  return NULL;
}

_Static_assert(sizeof(oxla_dim) == sizeof(compiler_dim), "one is used as the other");
_Static_assert(sizeof(oxla_carried) == sizeof(session_carry), "one is used as the other");
_Static_assert(sizeof(oxla_range) == sizeof(dim_range), "one is used as the other");

oxla_error *oxla_load(const char *path, const oxla_options *options, oxla_model **out) {
  return api_error(load(path, NULL, 0, options, out));
}

oxla_error *oxla_load_memory(const void *bytes, size_t size, const oxla_options *options, oxla_model **out) {
  return api_error(load(NULL, bytes, size, options, out));
}

void oxla_model_destroy(oxla_model *model) {
  if (model) {
    api_release_model(model);
  }
}

void api_release_model(oxla_model *model) {
  if (atomic_fetch_sub(&model->users, 1) == 1) {
    api_free_taken(model);
    session_close(model->session);
    pthread_mutex_destroy(&model->lock);
    free(model);
  }
}

/* --- what a model declares --- */

const char *oxla_model_backend(const oxla_model *model) { return model ? session_chosen_backend(model->session) : ""; }

/* Returns what the model declares; for NULL, declarations without inputs and outputs. */
static const compiler_model *source_of(const oxla_model *model) {
  static const compiler_model nothing;
  return model ? session_source(model->session) : &nothing;
}

static const model_value *value_at(const model_value *values, uint32_t n, size_t index) {
  return index < n ? &values[index] : NULL;
}
static const model_value *input_at(const oxla_model *model, size_t index) {
  return value_at(source_of(model)->inputs, source_of(model)->n_inputs, index);
}
static const model_value *output_at(const oxla_model *model, size_t index) {
  return value_at(source_of(model)->outputs, source_of(model)->n_outputs, index);
}

size_t oxla_input_count(const oxla_model *model) { return source_of(model)->n_inputs; }
size_t oxla_output_count(const oxla_model *model) { return source_of(model)->n_outputs; }
size_t oxla_initializer_count(const oxla_model *model) { return source_of(model)->n_initializers; }

const char *oxla_input_name(const oxla_model *model, size_t index) {
  const model_value *v = input_at(model, index);
  return v ? v->name : NULL;
}

const char *oxla_output_name(const oxla_model *model, size_t index) {
  const model_value *v = output_at(model, index);
  return v ? v->name : NULL;
}

const char *oxla_input_dim_name(const oxla_model *model, size_t index, int number) {
  const model_value *v = input_at(model, index);
  return v && number >= 0 && number < v->shape.rank ? v->dim_names[number] : NULL;
}

oxla_tensor api_tensor(const shape *s) {
  oxla_tensor t = {.type = (oxla_type)dtype_get_info((dtype)s->type)->onnx,
                   .rank = s->kind == SHAPE_ARRAY ? s->rank : -1};
  for (int k = 0; k < s->rank; k++) {
    t.dims[k] = s->dims[k] < 0 ? -1 : s->dims[k];
  }
  return t;
}

static status describe(const model_value *v, const char *what, size_t index, oxla_tensor *out) {
  CHECK_THAT(v, STATUS_INVALID_ARGUMENT, "there is no %s %zu", what, index);
  CHECK_THAT(out, STATUS_INVALID_ARGUMENT, "argument out is NULL, for the type of %s %zu", what, index);
  *out = api_tensor(&v->shape);
  return NULL;
}

oxla_error *oxla_input_type(const oxla_model *model, size_t index, oxla_tensor *out) {
  return api_error(describe(input_at(model, index), "input", index, out));
}

oxla_error *oxla_output_type(const oxla_model *model, size_t index, oxla_tensor *out) {
  return api_error(describe(output_at(model, index), "output", index, out));
}

oxla_kind api_kind(shape_kind kind, shape_kind element) {
  switch (kind) {
    case SHAPE_SEQUENCE: return element == SHAPE_MAP ? OXLA_MAPS : OXLA_SEQUENCE;
    case SHAPE_OPTIONAL: return OXLA_OPTIONAL;
    case SHAPE_MAP: return OXLA_MAP;
    default: return OXLA_TENSOR;
  }
}

static oxla_kind kind_of(const model_value *v) {
  return v ? api_kind((shape_kind)v->shape.kind, v->element) : OXLA_TENSOR;
}

oxla_kind oxla_input_kind(const oxla_model *model, size_t index) { return kind_of(input_at(model, index)); }
oxla_kind oxla_output_kind(const oxla_model *model, size_t index) { return kind_of(output_at(model, index)); }

const char *oxla_metadata(const oxla_model *model, const char *key) {
  const compiler_model *s = source_of(model);
  for (uint32_t k = 0; key && k < s->n_properties; k++) {
    if (strcmp(s->properties[k].key, key) == 0) {
      return s->properties[k].value;
    }
  }
  return NULL;
}

static status save(oxla_model *model, const char *path) {
  CHECK_THAT(model && path, STATUS_INVALID_ARGUMENT, "no %s", model ? "path" : "model");
  return session_save(model->session, path);
}

oxla_error *oxla_save(oxla_model *model, const char *path) { return api_error(save(model, path)); }

static status save_memory(oxla_model *model, void **bytes, size_t *size) {
  CHECK_THAT(model && bytes && size, STATUS_INVALID_ARGUMENT, "no %s", model ? "place for the bytes" : "model");
  char *text;
  *bytes = NULL;
  *size = 0;
  FILE *f = open_memstream(&text, size);
  CHECK_THAT(f, STATUS_RESOURCE, "out of memory");
  status failed = session_save_stream(model->session, f);
  if (fclose(f) != 0 && !failed) {
    failed = status_error(STATUS_RESOURCE, "out of memory");
  }
  if (failed) {
    free(text);
    *size = 0;
    return failed;
  }
  *bytes = text;
  return NULL;
}

oxla_error *oxla_save_memory(oxla_model *model, void **bytes, size_t *size) {
  return api_error(save_memory(model, bytes, size));
}

void oxla_free(void *memory) { free(memory); }

/* --- checking --- */

static status check(oxla_model *model) {
  CHECK_THAT(model, STATUS_INVALID_ARGUMENT, "no model");
  return session_check(model->session, &(session_inputs){0});
}

oxla_error *oxla_check(oxla_model *model) { return api_error(check(model)); }

typedef struct support_call {
  rt_span bytes;
  const char *backend;
  oxla_finding_fn *found;
  void *data;
} support_call;

static status run_support_call(void *data) {
  const support_call *s = data;
  const compiler_api *compiler;
  const rt_target *target;
  support_report out;
  compile_request request = {.backend = s->backend ? s->backend : session_default_backend(), .open_dim = 1};
  TRY(session_find_target(request.backend, &target));
  TRY(session_open_compiler(&compiler));
  arena *a = arena_create(NULL);
  status failed = compiler->check_support(a, NULL, s->bytes, &request, &out);
  for (uint32_t k = 0; !failed && k < out.n_findings; k++) {
    s->found(s->data, out.findings[k].node, (oxla_code)out.findings[k].code, out.findings[k].text);
  }
  arena_destroy(a);
  return failed;
}

oxla_error *oxla_survey(const void *bytes, size_t size, const oxla_options *options, oxla_finding_fn *found,
                        void *data) {
  if (!bytes || !found) {
    return api_error(status_error(STATUS_INVALID_ARGUMENT, "no %s", bytes ? "function" : "model"));
  }
  oxla_options o;
  status failed = read_options(options, &o);
  support_call s = {{bytes, size}, o.backend, found, data};
  return api_error(failed ? failed : run_with_stack(SESSION_COMPILE_STACK, run_support_call, &s));
}

/* --- versions --- */

static status versions(int *ir_version, int *opset_version) {
  const compiler_api *compiler;
  CHECK_THAT(ir_version && opset_version, STATUS_INVALID_ARGUMENT, "argument ir_version or opset_version is NULL");
  *ir_version = *opset_version = 0;
  TRY(session_open_compiler(&compiler));
  *ir_version = compiler->ir_version;
  *opset_version = compiler->opset_version;
  return NULL;
}

oxla_error *oxla_onnx_versions(int *ir_version, int *opset_version) {
  return api_error(versions(ir_version, opset_version));
}

const char *oxla_version(void) { return session_version(); }
