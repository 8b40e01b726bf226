/* executable.c - loads programs and runs them. */
#include "runtime/exec/executable.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/binding.h"
#include "runtime/exec/check_buffers.h"
#include "runtime/exec/check_memory.h"
#include "runtime/exec/memory.h"
#include "runtime/exec/profile.h"
#include "runtime/exec/recorder.h"
#include "runtime/exec/run_memory.h"
#include "runtime/exec/staging.h"
#include "runtime/program/sizes.h"

enum { BODY_DEPTH_MAX = 100 }; /* the deepest nesting of control flow; functions that walk it recurse on the C stack */

struct rt_executable {
  arena *arena;
  const rt_program *program;
  const rt_target *target;
  void **constants;     /* the constants on the device; NULL if there is no device */
  uint32_t n_constants; /* how many of them have been taken so far (rt_device_constant_take) */
  rt_binding loaded;    /* the loaded thunks; if all sizes are numbers, this is the program's only binding */
  pthread_mutex_t lock; /* guards `spare` */
  rt_run_memory *spare;
};

/* --- constants --- */

static status take_constants(rt_executable *e, rt_stream *stream) {
  const rt_program *p = e->program;
  for (uint32_t k = 0; k < p->n_constants; k++) {
    TRY(rt_device_constant_take(e->target->device, stream, p->constants[k].data, (size_t)p->constants[k].size,
                                &e->constants[k]));
    e->n_constants++;
  }
  return NULL;
}

static status upload_constants(rt_executable *e) {
  rt_stream *stream;
  e->constants = ARENA_NEW_N(e->arena, void *, e->program->n_constants);
  TRY(e->target->device->create_stream(e->target->device, &stream));
  status failed = take_constants(e, stream);
  e->target->device->destroy_stream(stream);
  return failed;
}

/* --- loading --- */

static const rt_thunk_kind *find_in(const rt_thunk_kind *kinds, uint32_t n, const char *name) {
  for (uint32_t k = 0; k < n; k++) {
    if (strcmp(kinds[k].name, name) == 0) {
      return &kinds[k];
    }
  }
  return NULL;
}

/* Finds a thunk kind by its name.  If the target and the common kinds both have one, that of the target is taken. */
static const rt_thunk_kind *find_kind(const rt_target *target, const char *name) {
  const rt_thunk_kind *own = find_in(target->kinds, target->n_kinds, name);
  return own ? own : find_in(rt_common_kinds, rt_n_common_kinds, name);
}

status rt_at_thunk(status failed, const rt_program *p, const rt_thunk *t) {
  char label[RT_LABEL_BYTES];
  if (!failed) {
    return NULL;
  }
  size_t nodes = rt_thunk_write_label(p, t, label);
  failed = nodes ? status_about_node(failed, label, nodes) : failed;
  return status_prefix(failed, "%s", label);
}

uint64_t rt_counter_bytes(const rt_sequence *s) {
  uint64_t most = 0;
  for (uint32_t k = 0; k < s->n; k++) {
    const rt_thunk *t = &s->thunks[k];
    for (uint32_t b = 0; b < t->n_buffers; b++) {
      bool counts = t->buffers[b].space == RT_COUNTERS;
      uint64_t end = counts ? (uint64_t)t->buffers[b].offset + rt_buffer_bytes(&t->buffers[b]) : 0;
      most = end > most ? end : most;
    }
    for (uint32_t b = 0; b < t->n_bodies; b++) {
      uint64_t inner = rt_counter_bytes(&t->bodies[b]);
      most = inner > most ? inner : most;
    }
  }
  return most;
}

/* Finds the kind of the thunk, and checks what all kinds require. */
static status check_thunk(const rt_program *p, const rt_target *target, rt_thunk *t) {
  t->ops = find_kind(target, t->kind);
  CHECK_THAT(t->ops, STATUS_INVALID_FILE, "target %s has no thunk kind '%s'", target->name, t->kind);
  CHECK_THAT(t->n_inputs <= t->n_buffers, STATUS_INVALID_FILE, "damaged");
  for (uint32_t k = 0; k < t->n_buffers; k++) {
    CHECK_THAT(t->buffers[k].space != RT_COUNTERS || target->device, STATUS_INVALID_FILE, "target %s has no counters",
               target->name);
  }
  TRY(rt_check_thunk_sizes(p, t));
  return rt_program_is_static(p) ? rt_check_buffers(p, t) : NULL;
}

static status load_sequence(rt_loader *l, const rt_target *target, const rt_sequence *from, int depth, rt_sequence *to);

/* Loads the thunk.  If all sizes of the program are numbers, the thunk is bound, too. */
static status load_thunk(rt_loader *l, const rt_target *target, int depth, rt_thunk *t) {
  const rt_sequence *bodies = t->bodies;
  TRY(rt_at_thunk(check_thunk(l->program, target, t), l->program, t));
  t->bodies = arena_memdup(l->arena, bodies, t->n_bodies * sizeof *bodies);
  for (uint32_t b = 0; b < t->n_bodies; b++) {
    TRY(load_sequence(l, target, &bodies[b], depth + 1, &t->bodies[b]));
  }
  TRY(t->ops->load ? rt_at_thunk(t->ops->load(t, l), l->program, t) : NULL);
  bool bind = t->ops->bind && rt_program_is_static(l->program);
  return bind ? rt_at_thunk(t->ops->bind(t, l->arena), l->program, t) : NULL;
}

static status load_sequence(rt_loader *l, const rt_target *target, const rt_sequence *from, int depth,
                            rt_sequence *to) {
  CHECK_THAT(depth < BODY_DEPTH_MAX, STATUS_RESOURCE, "control flow nests deeper than %d", BODY_DEPTH_MAX);
  to->n = to->cap = from->n;
  to->thunks = arena_memdup(l->arena, from->thunks, from->n * sizeof *from->thunks);
  for (uint32_t k = 0; k < to->n; k++) {
    TRY(load_thunk(l, target, depth, &to->thunks[k]));
  }
  return NULL;
}

typedef struct creation {
  rt_executable *executable;
  const rt_code_cache *code_cache;
} creation;

static status create(void *data) {
  const creation *c = data;
  rt_executable *e = c->executable;
  const rt_program *p = e->program;
  rt_loader l = {.arena = e->arena, .program = p, .device = e->target->device};
  TRY(rt_sizes_check(p));
  if (e->target->check_cpu) {
    TRY(e->target->check_cpu(e->target->device, p->cpu));
  }
  l.code = ARENA_NEW_N(e->arena, rt_code *, p->n_code);
  for (uint32_t k = 0; k < p->n_code; k++) {
    CHECK_THAT(e->target->load_code, STATUS_INVALID_FILE, "target %s takes no code", e->target->name);
    TRY(e->target->load_code(e->target->device, e->arena, p->code[k], c->code_cache, &l.code[k]));
  }
  TRY(load_sequence(&l, e->target, &p->body, 0, &e->loaded.body));
  e->loaded.counter_bytes = rt_program_is_static(p) ? rt_counter_bytes(&e->loaded.body) : 0;
  return e->target->device ? upload_constants(e) : NULL;
}

status rt_executable_create(const rt_program *p, const rt_target *target, const rt_load_options *options,
                            rt_executable **out) {
  *out = NULL;
  CHECK_THAT(strcmp(p->target, target->name) == 0, STATUS_INVALID_ARGUMENT, "a program for target %s, not %s",
             p->target, target->name);
  rt_executable *e = calloc(1, sizeof *e);
  CHECK_THAT(e, STATUS_RESOURCE, "out of memory");
  pthread_mutex_init(&e->lock, NULL);
  e->program = p;
  e->loaded = (rt_binding){.executable = e, .program = p, .number = rt_binding_next_number()};
  e->target = target;
  e->arena = arena_create(options ? options->budget : NULL);
  status s = guard_run(create, &(creation){e, options ? options->code_cache : NULL});
  if (s) {
    rt_executable_destroy(e);
    return s;
  }
  *out = e;
  return NULL;
}

void rt_executable_destroy(rt_executable *e) {
  if (!e) {
    return;
  }
  while (e->spare) {
    rt_run_memory *next = e->spare->next;
    rt_run_memory_destroy(e->spare);
    e->spare = next;
  }
  for (uint32_t k = 0; k < e->n_constants; k++) {
    const rt_span *c = &e->program->constants[k];
    rt_device_constant_give(e->target->device, c->data, (size_t)c->size);
  }
  arena_destroy(e->arena);
  pthread_mutex_destroy(&e->lock);
  free(e);
}

uint64_t rt_executable_bytes(rt_executable *e) {
  uint64_t bytes = arena_used(e->arena), kept = 0;
  for (uint32_t k = 0; k < e->program->n_code; k++) {
    bytes += e->program->code[k].size;
  }
  pthread_mutex_lock(&e->lock);
  for (const rt_run_memory *m = e->spare; m; m = m->next) {
    kept += rt_run_memory_bytes(m);
  }
  pthread_mutex_unlock(&e->lock);
  return bytes + (kept ? kept : e->program->arena_bytes);
}

const rt_program *rt_executable_program(const rt_executable *e) { return e->program; }

uint64_t rt_binding_next_number(void) {
  static _Atomic uint64_t last;
  return ++last;
}

const rt_binding *rt_executable_loaded(const rt_executable *e) { return &e->loaded; }

const rt_binding *rt_executable_binding(const rt_executable *e) {
  return rt_program_is_static(e->program) ? &e->loaded : NULL;
}

mem_budget *rt_executable_budget(const rt_executable *e) { return arena_budget(e->arena); }

const rt_target *rt_executable_target(const rt_executable *e) { return e->target; }

/* --- running --- */

static inline void *constant_address(const rt_run *r, uint32_t k) {
  return r->constants ? r->constants[k] : (void *)r->program->constants[k].data;
}

void *rt_address(const rt_run *r, const rt_buffer *b) {
  uint8_t *base = NULL;
  switch (b->space) {
    case RT_ARENA: base = r->arena; break;
    case RT_COUNTERS: base = r->counters; break;
    case RT_CONSTANT: base = constant_address(r, b->index); break;
    case RT_PARAM: base = (uint8_t *)r->params[b->index]; break;
    case RT_RESULT: base = r->results[b->index]; break;
    case RT_STAGED: base = r->staged[b->index]; break;
    default: break;
  }
  return base + b->offset;
}

static inline status finish_thunk(const rt_thunk *t, const rt_run *r, status failed) {
  failed = failed ? failed : budget_check(r->budget);
  return failed ? rt_at_thunk(failed, r->program, t) : NULL;
}

/* Runs a thunk, with checks if they are switched on.  A thunk of control flow runs without checks, since each thunk of
 * its bodies is checked. */
static status run_checked(const rt_thunk *t, rt_run *r) {
  if (r->device && t->ops->on_host) {
    return rt_run_on_host(t, r);
  }
  return r->checker && t->n_bodies == 0 ? rt_checker_run(r->checker, t, r) : t->ops->run(t, r);
}

static status run_profiled(const rt_thunk *t, rt_run *r) {
  rt_profile_mark mark = rt_profile_enter(r->profiler, r->program, t);
  double seconds = -1;
  bool is_devices = r->device && !t->ops->on_host && t->n_bodies == 0;
  status failed = is_devices ? rt_profile_device(t, r, run_checked, &seconds) : run_checked(t, r);
  rt_profile_leave(r->profiler, &mark, seconds);
  return failed;
}

status rt_run_thunk(const rt_thunk *t, rt_run *r) {
  return finish_thunk(t, r, r->profiler ? run_profiled(t, r) : run_checked(t, r));
}

static status run_watched(const rt_sequence *s, rt_run *r) {
  for (uint32_t k = 0; k < s->n; k++) {
    TRY(rt_run_thunk(&s->thunks[k], r));
  }
  return NULL;
}

status rt_run_sequence(const rt_sequence *s, rt_run *r) {
  if (r->profiler || r->checker || r->device) {
    return r->recorder ? rt_run_recorded(s, r) : run_watched(s, r);
  }
  for (uint32_t k = 0; k < s->n; k++) {
    TRY(finish_thunk(&s->thunks[k], r, s->thunks[k].ops->run(&s->thunks[k], r)));
  }
  return NULL;
}

/* Sets *out to memory for a run of the binding.  If the spare memory is too small, since an earlier run had other
 * sizes, it is freed and new memory is made. */
static status take_run_memory(rt_executable *e, const rt_binding *b, rt_run_memory **out) {
  size_t bytes = (size_t)b->program->arena_bytes, counter_bytes = (size_t)b->counter_bytes;
  pthread_mutex_lock(&e->lock);
  rt_run_memory *m = e->spare;
  if (m) {
    e->spare = m->next;
  }
  pthread_mutex_unlock(&e->lock);
  if (m && m->bytes >= bytes && m->counter_bytes >= counter_bytes) {
    status failed = m->counted ? rt_run_memory_clear_counters(m) : NULL;
    *out = m;
    if (failed) {
      rt_run_memory_destroy(m);
    }
    return failed;
  }
  rt_run_memory_destroy(m);
  return rt_run_memory_create(e->target->device, arena_budget(e->arena), e->program, bytes, counter_bytes, out);
}

/* Keeps the memory for later runs. */
static void give_run_memory(rt_executable *e, rt_run_memory *m, bool failed) {
  m->counted = m->counted || (failed && m->counters);
  pthread_mutex_lock(&e->lock);
  m->next = e->spare;
  e->spare = m;
  pthread_mutex_unlock(&e->lock);
}

/* --- one run --- */

typedef struct execution {
  const rt_sequence *body;
  const rt_run_options *options;
  rt_run *run;
  arena *arena; /* the arena of the checker; NULL if the run is not checked */
} execution;

static status run_body(void *data) {
  execution *x = data;
  const rt_run_options *o = x->options;
  bool check_memory = o && o->check_memory;
  if (check_memory) {
    x->arena = arena_create(x->run->budget);
    x->run->checker = rt_checker_create(x->arena, x->run);
  }
  TRY(o && o->drive ? o->drive(o->drive_data, x->body, x->run) : rt_run_sequence(x->body, x->run));
  return check_memory ? rt_checker_finish(x->run->checker) : NULL;
}

static status run_guarded(const rt_sequence *body, rt_run *r, const rt_run_options *options) {
  execution x = {.body = body, .options = options, .run = r};
  status s = guard_run(run_body, &x);
  arena_destroy(x.arena);
  return s;
}

/* Fails if the program was compiled for certain contents of an input and the input has other contents, or contents that
 * the host cannot see. */
static status check_values(const rt_program *p, const void *const *params, const bool *on_device) {
  for (uint32_t k = 0; k < p->n_params; k++) {
    const rt_io *io = &p->params[k];
    size_t bytes = (size_t)shape_bytes(&io->shape); /* the address of an empty input may be NULL */
    CHECK_THAT(!io->value || bytes == 0 || !on_device || !on_device[k], STATUS_INVALID_ARGUMENT | STATUS_ABOUT_VALUE,
               "input '%s' decides sizes, so it must be in host memory", io->name);
    CHECK_THAT(!io->value || bytes == 0 || memcmp(io->value, params[k], bytes) == 0,
               STATUS_INVALID_ARGUMENT | STATUS_ABOUT_VALUE,
               "input '%s' decides sizes and holds other values than the program is for", io->name);
  }
  return NULL;
}

/* The arrays of a run. */
typedef struct run_arrays {
  rt_staging in, out;
  void *const *params, *const *results; /* the caller's arrays */
} run_arrays;

/* Copies inputs into staging memory, runs the program, and copies results out of staging memory.  All memory has been
 * allocated. */
static status run_staged(const rt_binding *b, const rt_run_options *options, rt_run *run, const run_arrays *x) {
  TRY(rt_staging_copy(&x->in, run->stream, x->params, RT_UPLOAD));
  TRY(rt_staging_fill_carried(&x->out, &x->in, run->stream, (const void *const *)x->params));
  TRY(run_guarded(&b->body, run, options));
  return rt_staging_copy(&x->out, run->stream, x->results, RT_DOWNLOAD);
}

/* Runs the program in this memory. */
static status run_in(rt_run_memory *m, const rt_binding *b, const rt_run_options *options, run_arrays *x) {
  const rt_executable *e = b->executable;
  const rt_program *p = b->program;
  mem_budget *budget = options ? options->budget : NULL;
  const bool *ins = options ? options->params_on_device : NULL, *outs = options ? options->results_on_device : NULL;
  const void *const *params = (const void *const *)x->params;
  TRY(rt_staging_take(&x->in, e->target->device, m->in, budget, p->n_params, p->params, x->params, ins, NULL));
  TRY(check_values(p, params, ins));
  TRY(rt_staging_take(&x->out, e->target->device, m->out, budget, p->n_results, p->results, x->results, outs, params));
  rt_run run = {.program = p,
                .device = e->target->device,
                .stream = m->stream,
                .arena = m->arena,
                .counters = m->counters,
                .constants = e->constants,
                .params = (const void *const *)x->in.used,
                .results = x->out.used,
                .pool = options ? options->pool : NULL,
                .budget = budget,
                .profiler = options ? options->profiler : NULL,
                .seed = options ? options->seed : 0};
  TRY(m->recordings && !run.profiler ? rt_recordings_find(m->recordings, b, &run) : NULL);
  return rt_memory_await(run.device, m->stream, budget, run_staged(b, options, &run, x));
}

/* Fails if the options ask for checks of memory accesses and the target has a device: the checks protect pages, which
 * is possible only in host memory. */
static status check_options(const rt_executable *e, const rt_run_options *o) {
  CHECK_THAT(!e->target->device || !o || !o->check_memory, STATUS_UNSUPPORTED | STATUS_ABOUT_BACKEND,
             "target %s has memory of its own, to which accesses cannot be checked", e->target->name);
  return NULL;
}

status rt_execute(const rt_binding *b, const rt_run_options *options, const void *const *params, void *const *results) {
  rt_executable *e = (rt_executable *)b->executable;
  run_arrays x = {.params = (void *const *)params, .results = results};
  mem_budget *budget = options ? options->budget : NULL;
  rt_run_memory *m;
  TRY(check_options(e, options));
  TRY(take_run_memory(e, b, &m));
  status failed = run_in(m, b, options, &x);
  give_run_memory(e, m, failed != NULL);
  rt_staging_give(&x.in, budget);
  rt_staging_give(&x.out, budget);
  return failed;
}
