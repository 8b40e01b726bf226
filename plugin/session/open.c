/* open.c - opens a session from a model, HLO text, a compiled file, or the cache's description of a model. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/dim/dim.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/machine/machine.h"
#include "backend_cpu/runtime/target.h"
#include "backend_gpu/runtime/target.h"
#include "plugin/session/cache.h"
#include "plugin/session/compile_cache.h"
#include "plugin/session/options.h"
#include "plugin/session/specialise.h"
#include "runtime/host/stack.h"
#include "runtime/program/sizes.h"
#include "runtime/program/told.h"

/* Returns true if n is 0, the default, or a number of lanes that emit/llvm/target.h allows. */
static bool is_lanes(uint32_t n) { return n == 0 || n == 1 || n == 4 || n == 8 || n == 16; }

static status check_dim_values(const compiler_dim *dims, uint32_t n) {
  CHECK_THAT(dims || n == 0, STATUS_INVALID_ARGUMENT, "there are %u values of dimensions, but the list is NULL", n);
  for (uint32_t k = 0; k < n; k++) {
    CHECK_THAT(dims[k].name && *dims[k].name, STATUS_INVALID_ARGUMENT, "value %u of a dimension: it has no name", k);
    CHECK_THAT(dims[k].value >= 0 && dims[k].value <= DIM_MAX, STATUS_INVALID_ARGUMENT,
               "dimension '%s' is %" PRId64 "; a size must be from 0 to 2^56", dims[k].name, dims[k].value);
    for (uint32_t i = 0; i < k; i++) {
      CHECK_THAT(strcmp(dims[i].name, dims[k].name) != 0 || dims[i].value == dims[k].value, STATUS_INVALID_ARGUMENT,
                 "dimension '%s' is both %" PRId64 " and %" PRId64, dims[k].name, dims[i].value, dims[k].value);
    }
  }
  return NULL;
}

static status check_ranges(const session_options *o) {
  CHECK_THAT(o->ranges || o->n_ranges == 0, STATUS_INVALID_ARGUMENT,
             "there are %u ranges of dimensions, but the list is NULL", o->n_ranges);
  for (uint32_t k = 0; k < o->n_ranges; k++) {
    const dim_range *r = &o->ranges[k];
    bool twice = false;
    CHECK_THAT(r->name && *r->name, STATUS_INVALID_ARGUMENT, "range %u of a dimension: it has no name", k);
    CHECK_THAT(r->least >= 0 && r->least <= r->most && r->most <= DIM_MAX, STATUS_INVALID_ARGUMENT,
               "the range of dimension '%s' is %" PRId64 " to %" PRId64 "; it must lie in 0 to 2^56", r->name, r->least,
               r->most);
    for (uint32_t i = 0; i < k; i++) {
      twice = twice || strcmp(o->ranges[i].name, r->name) == 0;
    }
    for (uint32_t i = 0; i < o->n_dims; i++) {
      twice = twice || strcmp(o->dims[i].name, r->name) == 0;
    }
    CHECK_THAT(!twice, STATUS_INVALID_ARGUMENT, "dimension '%s' has a range and another size or range", r->name);
  }
  return NULL;
}

static status check_options(const session_options *o) {
  CHECK_THAT(o->compile.threads <= RT_MAX_THREADS, STATUS_INVALID_ARGUMENT, "%u threads are asked for; the most is %d",
             o->compile.threads, RT_MAX_THREADS);
  CHECK_THAT(is_lanes(o->compile.lanes), STATUS_INVALID_ARGUMENT, "%u lanes are asked for; it must be 1, 4, 8 or 16",
             o->compile.lanes);
  CHECK_THAT(o->max_seconds >= 0, STATUS_INVALID_ARGUMENT, "the time limit is %g seconds; it must not be negative",
             o->max_seconds);
  TRY(check_dim_values(o->dims, o->n_dims));
  return check_ranges(o);
}

/* Replaces 0 by the number of cores, and limits the number of threads. */
static uint32_t resolve_threads(uint32_t asked) {
  return (uint32_t)min_i64(asked ? asked : machine_cores(), RT_MAX_THREADS);
}

static void copy_options(session *s, const session_options *o) {
  arena *a = s->arena;
  s->options = *o;
  s->options.compile.threads = resolve_threads(o->compile.threads);
  s->options.backend = o->backend ? arena_strdup(a, o->backend) : NULL;
  s->options.fallback = o->fallback ? arena_strdup(a, o->fallback) : NULL;
  s->options.cache = o->cache ? arena_strdup(a, o->cache) : NULL;
  session_copy_options(a, &s->options);
  compiler_dim *dims = arena_memdup(a, o->dims, o->n_dims * sizeof *dims);
  for (uint32_t k = 0; k < o->n_dims; k++) {
    dims[k].name = arena_strdup(a, dims[k].name);
  }
  s->options.dims = dims;
  dim_range *ranges = arena_memdup(a, o->ranges, o->n_ranges * sizeof *ranges);
  for (uint32_t k = 0; k < o->n_ranges; k++) {
    ranges[k].name = arena_strdup(a, ranges[k].name);
  }
  s->options.ranges = ranges;
  compiler_constant *constants = arena_memdup(a, o->constants, o->n_constants * sizeof *constants);
  for (uint32_t k = 0; k < o->n_constants; k++) {
    constants[k].name = arena_strdup(a, constants[k].name);
  }
  s->options.constants = constants;
  session_carry *carried = o->carried ? arena_memdup(a, o->carried, o->n_carried * sizeof *carried) : NULL;
  for (uint32_t k = 0; carried && k < o->n_carried; k++) {
    carried[k].output = carried[k].output ? arena_strdup(a, carried[k].output) : NULL;
    carried[k].input = carried[k].input ? arena_strdup(a, carried[k].input) : NULL;
  }
  s->options.carried = carried;
}

/* Describes the model of a .oxla file.  All its programs are of one model, so the first one has the names and types. */
static void describe_image(session *s) {
  const rt_program *p = s->image->programs[0];
  compiler_model *source = ARENA_NEW(s->arena, compiler_model);
  source->name = s->image->model;
  source->strings = s->image->strings;
  source->n_inputs = rt_program_inputs(p);
  source->inputs = ARENA_NEW_N(s->arena, model_value, source->n_inputs);
  for (uint32_t k = 0; k < source->n_inputs; k++) {
    source->inputs[k].name = p->params[k].name;
    source->inputs[k].shape = rt_any_sizes(p->params[k].shape);
  }
  source->n_outputs = rt_program_outputs(p);
  source->outputs = ARENA_NEW_N(s->arena, model_value, source->n_outputs);
  for (uint32_t k = 0; k < source->n_outputs; k++) {
    source->outputs[k].name = p->results[k].name;
    source->outputs[k].shape = rt_any_sizes(p->results[k].shape);
  }
  for (uint32_t k = source->n_outputs; k < p->n_results; k++) {
    source->outputs[p->results[k].sized].shape.dims[p->results[k].axis] = -1;
  }
  s->source = source;
}

/* --- named dimensions --- */

status session_check_dims(arena *a, session_options *o, const char *const *names, uint32_t n) {
  const char *list = n ? names[0] : "none";
  for (uint32_t k = 1; k < n; k++) {
    list = arena_printf(a, "%s, %s", list, names[k]);
  }
  compiler_dim *dims = arena_memdup(a, o->dims, o->n_dims * sizeof *dims);
  dim_range *ranges = arena_memdup(a, o->ranges, o->n_ranges * sizeof *ranges);
  for (uint32_t k = 0; k < o->n_dims + o->n_ranges; k++) {
    const char **name = k < o->n_dims ? &dims[k].name : &ranges[k - o->n_dims].name;
    const char *found = dim_find_name(a, *name, names, n);
    CHECK_THAT(found, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_NAME,
               "no input has a dimension '%s'; the model's named dimensions are: %s", *name, list);
    *name = found;
  }
  o->dims = dims;
  o->ranges = ranges;
  return NULL;
}

/* Fails for names that no input has, since a misspelt name would otherwise be ignored. */
static status check_dims(session *s) {
  session_options *o = &s->options;
  const char **names = NULL;
  uint32_t n = 0, cap = 0;
  uint32_t given = o->n_dims + o->n_ranges;
  CHECK_THAT(!s->image || given == 0, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_NAME,
             "dimension '%s' is given a size, but a compiled file has the sizes that it was compiled for",
             o->n_dims ? o->dims[0].name : o->ranges[0].name);
  for (uint32_t k = 0; k < s->source->n_inputs && given; k++) {
    const model_value *v = &s->source->inputs[k];
    for (int d = 0; d < v->shape.rank; d++) {
      if (v->dim_names[d] && !dim_is_listed(v->dim_names[d], names, n)) {
        *ARENA_PUSH(s->arena, names, n, cap) = v->dim_names[d];
      }
    }
  }
  return session_check_dims(s->arena, o, names, n);
}

/* --- carried outputs --- */

static bool find(const model_value *values, uint32_t n, const char *name, uint32_t *out) {
  for (*out = 0; *out < n && !(name && strcmp(values[*out].name, name) == 0);) {
    ++*out;
  }
  return *out < n;
}

static status read_pair(const session *s, const session_carry *given, compiler_carry *out) {
  const compiler_model *m = s->source;
  CHECK_THAT(find(m->outputs, m->n_outputs, given->output, &out->output), STATUS_INVALID_ARGUMENT | STATUS_ABOUT_NAME,
             "the model has no output '%s' to carry", given->output ? given->output : "");
  CHECK_THAT(find(m->inputs, m->n_inputs, given->input, &out->input), STATUS_INVALID_ARGUMENT | STATUS_ABOUT_NAME,
             "the model has no input '%s' to carry", given->input ? given->input : "");
  const shape *from = &m->outputs[out->output].shape, *to = &m->inputs[out->input].shape;
  CHECK_THAT(!from->type || from->type == to->type, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_TYPE,
             "output '%s' is %s; input '%s', in which it is carried, is %s", given->output,
             dtype_name((dtype)from->type), given->input, dtype_name((dtype)to->type));
  CHECK_THAT(given->axis >= -1 && given->axis < (to->kind == SHAPE_ARRAY ? to->rank : SHAPE_MAX_RANK),
             STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE, "input '%s' has no dimension %d along which it grows",
             given->input, given->axis);
  out->axis = given->axis;
  return NULL;
}

static status set_carried(session *s, const session_options *o) {
  CHECK_THAT(o->carried || o->n_carried == 0, STATUS_INVALID_ARGUMENT, "%u outputs are carried, but the list is NULL",
             o->n_carried);
  compiler_carry *pairs = ARENA_NEW_N(s->arena, compiler_carry, o->n_carried);
  for (uint32_t k = 0; k < o->n_carried; k++) {
    TRY(read_pair(s, &o->carried[k], &pairs[k]));
    for (uint32_t j = 0; j < k; j++) {
      CHECK_THAT(pairs[j].output != pairs[k].output && pairs[j].input != pairs[k].input, STATUS_INVALID_ARGUMENT,
                 "output '%s' or input '%s' is carried twice", o->carried[k].output, o->carried[k].input);
    }
  }
  s->carried = pairs;
  s->n_carried = o->n_carried;
  return NULL;
}

/* --- models and images --- */

static status set_tuning(session *s) {
  const session_options *o = &s->options;
  TRY(session_set_tuning(s->arena, o->tune, o->cache, &s->options.compile, &s->warning));
  TRY(session_set_precision(o->precision, &s->options.compile));
  return specialise_read(o->specialise, &s->specialise);
}

status session_open_model(const session *s, compiler_model **out) {
  const compiler_api *compiler;
  const session_options *o = &s->options;
  opened_file *f = s->file;
  TRY(session_open_compiler(&compiler));
  TRY(opened_file_map(f, s->arena));
  if (f->kind == OPENED_HLO) {
    CHECK_THAT(o->n_constants == 0, STATUS_INVALID_ARGUMENT, "HLO text takes no constants");
    return compiler->open_hlo(s->arena, f->path ? f->path : "text", (const char *)f->bytes, f->size, out);
  }
  return compiler->open(s->arena, f->path, f->bytes, f->size, o->n_constants, o->constants, out);
}

/* --- targets --- */

const char *session_default_backend(void) { return cpu_target.name; }

/* The targets of the processor and of GPUs are in this library, since programs can run without the compiler library.
 * The compiler library has the other ones. */
status session_find_target(const char *backend, const rt_target **out) {
  const compiler_api *c;
  const rt_backend *b;
  if (strcmp(backend, cpu_target.name) == 0) {
    *out = &cpu_target;
    return NULL;
  }
  TRY(gpu_find_target(backend, out));
  if (*out) {
    return NULL;
  }
  TRY(session_open_compiler(&c));
  TRY(c->backend(backend, &b));
  *out = b->target;
  return NULL;
}

static status find_target(session *s, const char *otherwise) {
  s->options.backend = s->options.backend ? s->options.backend : otherwise;
  TRY(session_find_target(s->options.backend, &s->target));
  return session_check_taken(&s->options, s->options.backend);
}

/* Checks that the target's device can be used, by allocating a byte of its memory. */
static status try_device(const rt_device *d) {
  void *memory;
  TRY(d->allocate(d, 1, &memory));
  d->release(d, memory, 1);
  return NULL;
}

/* Changes to the backend options.fallback if the device of options.backend cannot be used.  An unknown name in
 * options.fallback is always an error.  If the two are of different kinds, the name of a GPU means nothing to the other
 * one, which then takes its default. */
static status fall_back(session *s) {
  const rt_device *d = s->target->device;
  const rt_target *other;
  if (!s->options.fallback) {
    return NULL;
  }
  TRY(session_find_target(s->options.fallback, &other));
  status failed = d ? try_device(d) : NULL;
  if (failed) {
    session_log(s, SESSION_LOG_WARNING, "the backend is %s, not %s: %s", s->options.fallback, s->options.backend,
                status_message(failed));
    status_free(failed);
    if (strcmp(s->target->name, other->name) != 0) {
      s->options.compile.cpu = NULL;
    }
    s->options.backend = s->options.fallback;
    s->target = other;
    TRY(session_check_taken(&s->options, s->options.backend));
  }
  return NULL;
}

/* Compiles for the device of the target if the options name no other one, and not for any GPU of this machine: the
 * cache's key has the name, too, so that a program for a GPU that was here before is not found.  The device must then
 * be usable.  If the options name a GPU, the programs may be for another machine (oxla_save), so that only a run shows
 * whether they are needed here. */
static status choose_architecture(session *s) {
  const rt_device *d = s->target->device;
  if (s->options.compile.cpu || !d) {
    return NULL;
  }
  TRY(status_prefix(
      try_device(d), "the device of backend %s cannot be used%s", s->options.backend,
      gpu_target_has_ptx(s->target) ? " (--cpu=sm_80, for instance, compiles for a GPU that is not here)" : ""));
  s->options.compile.cpu = gpu_target_architecture(s->target, s->arena);
  return NULL;
}

/* Opens the store in which a device's code is kept; no model is needed for that.  Without the store, code is
 * compiled again. */
static void open_code_cache(session *s) {
  const char *why;
  if (!s->options.keep_programs || !s->target->device) {
    return;
  }
  if (session_cache_open_store(s->arena, &s->options, &s->code_store, &why)) {
    s->code_cache = content_store_code(&s->code_store);
    s->loading.code_cache = &s->code_cache;
  }
  s->warning = s->warning ? s->warning : why;
}

typedef struct opening {
  session *s;
  const char *path;
  const void *bytes;
  size_t size;
  const session_options *options;
} opening;

static status open_image(session *s) {
  rt_image *image;
  const opened_file *f = s->file;
  const char *name = f->path ? f->path : "compiled model";
  TRY(opened_file_map(s->file, s->arena));
  TRY(rt_image_open_bytes(s->arena, f->bytes, f->size, name, s->options.verify, &image));
  CHECK_THAT(image->n_programs > 0 || image->source.size, STATUS_INVALID_FILE, "%s holds no program", name);
  CHECK_THAT(s->options.n_constants == 0, STATUS_INVALID_ARGUMENT, "a compiled file takes no constants");
  TRY(find_target(s, image->target));
  open_code_cache(s);
  if (image->source.size) {
    TRY(choose_architecture(s));
    TRY(set_tuning(s));
    TRY(opened_file_open(s->arena, NULL, image->source.data, image->source.size, &s->file));
    TRY(session_open_model(s, &s->source));
  } else {
    s->image = image;
    describe_image(s);
  }
  for (uint32_t k = 0; k < image->n_programs; k++) {
    session_program *c;
    CHECK_THAT(!s->image || rt_program_takes_inputs(image->programs[k], s->source->n_inputs), STATUS_INVALID_FILE,
               "program %u has other inputs", k);
    TRY(session_make_program(s, image->programs[k], NULL, &c));
    if (rt_program_is_static(c->program)) {
      session_add_program(s, c);
    } else {
      session_add_general(s, c);
    }
    TRY(status_copy(c->elsewhere));
  }
  return NULL;
}

static status open_guarded(void *data) {
  opening *o = data;
  session *s = o->s;
  s->arena = arena_create(&s->budget);
  copy_options(s, o->options);
  TRY(rt_thread_pool_create(s->options.compile.threads, &s->pool));
  TRY(opened_file_open(s->arena, o->path, o->bytes, o->size, &s->file));
  if (s->file->kind == OPENED_IMAGE) {
    TRY(rt_weight_pool_create(&s->budget, NULL, &s->weight_pool));
    TRY(open_image(s));
    opened_file_close(s->file);
    return NULL;
  }
  TRY(find_target(s, session_default_backend()));
  TRY(fall_back(s));
  TRY(choose_architecture(s));
  TRY(set_tuning(s));
  open_code_cache(s);
  compile_cache_open(s);
  const hash_secret *secret = compile_cache_secret(s);
  if (secret) {
    s->secret = *secret;
  } else {
    (void)hash_secret_init(&s->secret);
  }
  TRY(rt_weight_pool_create(&s->budget, &s->secret, &s->weight_pool));
  if (s->source) {
    return NULL;
  }
  TRY(session_open_model(s, &s->source));
  compile_cache_check_model(s);
  opened_file_close(s->file);
  return NULL;
}

static status open_and_check(void *data) {
  session *s = ((const opening *)data)->s;
  TRY(open_guarded(data));
  s->string_memory = arena_create(&s->budget);
  s->strings = string_table_create(s->string_memory, s->source->strings);
  TRY(set_carried(s, &s->options));
  return check_dims(s);
}

status session_open(const char *path, const void *bytes, size_t size, const session_options *options, session **out) {
  *out = NULL;
  TRY(check_options(options));
  session *s = calloc(1, sizeof *s);
  CHECK_THAT(s, STATUS_RESOURCE, "out of memory");
  specialise_end_at_exit();
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->turn_ends, NULL);
  s->options.allocator = options->allocator;
  s->budget.allocator = options->allocator.allocate ? &s->options.allocator : NULL;
  s->budget.limit = options->max_memory;
  s->budget.outer = options->outer;
  s->loading.budget = &s->budget;
  s->patience = 30;
  s->most_small = UINT32_MAX;
  s->compiling.outer = s->specialising.outer = &s->budget;
  s->budget.deadline = s->compiling.deadline = deadline_after(options->max_seconds);
  double start = clock_seconds();
  if (getrandom(&s->entropy, sizeof s->entropy, GRND_NONBLOCK) != sizeof s->entropy) {
    /* random numbers are not available soon after the system's start */
    s->entropy = hash_mix((uint64_t)(start * 1e9), (uintptr_t)s);
  }
  status failed = run_with_stack(SESSION_COMPILE_STACK, open_and_check, &(opening){s, path, bytes, size, options});
  s->load_seconds = clock_seconds() - start;
  s->budget.deadline = s->compiling.deadline = 0;
  if (failed) {
    session_close(s);
    return path ? status_name_file(failed, path) : failed;
  }
  session_log_opened(s);
  *out = s;
  return NULL;
}

/* --- checking a model without compiling it --- */

typedef struct checking {
  session *s;
  const compiler_api *compiler;
  const compile_request *request;
} checking;

static status check_guarded(void *data) {
  const checking *c = data;
  TRY(session_need_model(c->s));
  return c->compiler->check(c->s->source, c->request, &c->s->compiling);
}

status session_check(session *s, const session_inputs *inputs) {
  if (s->image) {
    return NULL;
  }
  const compiler_api *compiler;
  compile_request request = session_request(s, inputs);
  TRY(session_open_compiler(&compiler));
  TRY(session_take_turn(s));
  s->compiling.deadline = deadline_after(s->options.max_seconds);
  status failed = run_with_stack(SESSION_COMPILE_STACK, check_guarded, &(checking){s, compiler, &request});
  s->compiling.deadline = 0;
  session_end_turn(s);
  return failed;
}
