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
#include "runtime/exec/profile.h"
#include "runtime/program/sizes.h"

enum {
  BUFFER_ALIGN = 64,   /* the alignment of every space (rt_space), which kernels rely on */
  BODY_DEPTH_MAX = 100 /* the deepest nesting of control flow; functions that walk it recurse on the C stack */
};

/* The memory of a run's arena while it is kept for later runs, in a list.  The link of the list is at the beginning of
 * that memory.  If the memory is a device's, which the host cannot write, the link is in a device_arena. */
typedef struct spare_arena {
  struct spare_arena *next;
  size_t bytes; /* of the memory */
} spare_arena;

typedef struct device_arena {
  spare_arena link;
  void *memory;
} device_arena;

struct rt_executable {
  arena *arena;
  const rt_program *program;
  const rt_target *target;
  void **constants;     /* copies of the constants on the device; NULL if there is no device */
  rt_binding loaded;    /* the program with thunks that have `ops` and `state`; its binding, if all sizes are numbers */
  pthread_mutex_t lock; /* guards `spare` */
  spare_arena *spare;
};

/* --- memory --- */

/* Allocates memory of the target's device if it has one, otherwise memory of the host, which the budget counts.
 * Returns NULL if memory runs out. */
static void *take_memory(const rt_target *target, mem_budget *budget, size_t bytes) {
  const rt_device *d = target->device;
  return d ? d->allocate(bytes ? bytes : 1) : budget_alloc(budget, bytes, BUFFER_ALIGN);
}

static void give_memory(const rt_target *target, mem_budget *budget, void *memory, size_t bytes) {
  if (!target->device) {
    budget_free(budget, memory, bytes, BUFFER_ALIGN);
  } else if (memory) {
    target->device->release(memory, bytes ? bytes : 1);
  }
}

static status upload_constants(rt_executable *e) {
  const rt_program *p = e->program;
  e->constants = ARENA_NEW_N(e->arena, void *, p->n_constants);
  for (uint32_t k = 0; k < p->n_constants; k++) {
    size_t bytes = (size_t)p->constants[k].size;
    e->constants[k] = take_memory(e->target, NULL, bytes);
    CHECK_THAT(e->constants[k], STATUS_RESOURCE, "no %zu bytes of the device's memory for a constant", bytes);
    TRY(bytes ? e->target->device->upload(e->constants[k], p->constants[k].data, bytes) : NULL);
  }
  return NULL;
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

/* Finds a thunk kind.  The target's own kinds come before the common ones, which work in host memory only. */
static const rt_thunk_kind *find_kind(const rt_target *target, const char *name) {
  const rt_thunk_kind *own = find_in(target->kinds, target->n_kinds, name);
  return own || target->device ? own : find_in(rt_common_kinds, rt_n_common_kinds, name);
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

/* Finds the kind of the thunk, and checks what all kinds require. */
static status check_thunk(const rt_program *p, const rt_target *target, rt_thunk *t) {
  t->ops = find_kind(target, t->kind);
  CHECK_THAT(t->ops, STATUS_INVALID_FILE, "target %s has no thunk kind '%s'", target->name, t->kind);
  CHECK_THAT(t->n_inputs <= t->n_buffers, STATUS_INVALID_FILE, "damaged");
  TRY(rt_check_thunk_sizes(p, t));
  return rt_program_is_static(p) ? rt_check_buffers(p, t) : NULL;
}

static status load_sequence(rt_loader *l, const rt_target *target, const rt_sequence *from, int depth, rt_sequence *to);

/* Loads the thunk.  What a kind does with sizes that are numbers is done too if all of them are. */
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

static status create(void *data) {
  rt_executable *e = data;
  const rt_program *p = e->program;
  rt_loader l = {.arena = e->arena, .program = p};
  TRY(rt_sizes_check(p));
  if (e->target->check_cpu) {
    TRY(e->target->check_cpu(p->cpu));
  }
  l.code = ARENA_NEW_N(e->arena, rt_code *, p->n_code);
  for (uint32_t k = 0; k < p->n_code; k++) {
    CHECK_THAT(e->target->load_code, STATUS_INVALID_FILE, "target %s takes no code", e->target->name);
    TRY(e->target->load_code(e->arena, p->code[k], &l.code[k]));
  }
  TRY(load_sequence(&l, e->target, &p->body, 0, &e->loaded.body));
  return e->target->device ? upload_constants(e) : NULL;
}

status rt_executable_create(const rt_program *p, const rt_target *target, mem_budget *budget, rt_executable **out) {
  *out = NULL;
  CHECK_THAT(strcmp(p->target, target->name) == 0, STATUS_INVALID_ARGUMENT, "a program for target %s, not %s",
             p->target, target->name);
  rt_executable *e = calloc(1, sizeof *e);
  CHECK_THAT(e, STATUS_RESOURCE, "out of memory");
  pthread_mutex_init(&e->lock, NULL);
  e->program = p;
  e->loaded = (rt_binding){.executable = e, .program = p};
  e->target = target;
  e->arena = arena_create(budget);
  status s = guard_run(create, e);
  if (s) {
    rt_executable_destroy(e);
    return s;
  }
  *out = e;
  return NULL;
}

/* Returns the size of a run's arena, which is at least that of the link (spare_arena) that it holds while it is kept
 * for later runs. */
static size_t arena_size(const rt_program *p) {
  return (size_t)p->arena_bytes > sizeof(spare_arena) ? (size_t)p->arena_bytes : sizeof(spare_arena);
}

/* Returns memory for the arena of a run; NULL if memory runs out. */
static spare_arena *new_arena(const rt_executable *e, size_t bytes) {
  mem_budget *budget = arena_budget(e->arena);
  if (!e->target->device) {
    return take_memory(e->target, budget, bytes);
  }
  device_arena *a = budget_alloc(budget, sizeof *a, _Alignof(device_arena));
  void *memory = a ? take_memory(e->target, budget, bytes) : NULL;
  if (!memory) {
    budget_free(budget, a, sizeof *a, _Alignof(device_arena));
    return NULL;
  }
  *a = (device_arena){.memory = memory};
  return &a->link;
}

static void free_arena(const rt_executable *e, spare_arena *s, size_t bytes) {
  mem_budget *budget = arena_budget(e->arena);
  if (!e->target->device) {
    give_memory(e->target, budget, s, bytes);
    return;
  }
  device_arena *a = (device_arena *)s;
  give_memory(e->target, budget, a->memory, bytes);
  budget_free(budget, a, sizeof *a, _Alignof(device_arena));
}

void rt_executable_destroy(rt_executable *e) {
  if (!e) {
    return;
  }
  while (e->spare) {
    spare_arena *next = e->spare->next;
    free_arena(e, e->spare, e->spare->bytes);
    e->spare = next;
  }
  for (uint32_t k = 0; e->constants && k < e->program->n_constants; k++) {
    give_memory(e->target, NULL, e->constants[k], (size_t)e->program->constants[k].size);
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
  for (const spare_arena *s = e->spare; s; s = s->next) {
    kept += s->bytes;
  }
  pthread_mutex_unlock(&e->lock);
  return bytes + (kept ? kept : e->program->arena_bytes);
}

const rt_program *rt_executable_program(const rt_executable *e) { return e->program; }

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
    case RT_CONSTANT: base = constant_address(r, b->index); break;
    case RT_PARAM: base = (uint8_t *)r->params[b->index]; break;
    case RT_RESULT: base = r->results[b->index]; break;
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
  return r->checker && t->n_bodies == 0 ? rt_checker_run(r->checker, t, r) : t->ops->run(t, r);
}

static status run_profiled(const rt_thunk *t, rt_run *r) {
  rt_profile_mark mark = rt_profile_enter(r->profiler, r->program, t);
  status failed = run_checked(t, r);
  rt_profile_leave(r->profiler, &mark);
  return failed;
}

static status run_watched(const rt_sequence *s, rt_run *r) {
  for (uint32_t k = 0; k < s->n; k++) {
    const rt_thunk *t = &s->thunks[k];
    TRY(finish_thunk(t, r, r->profiler ? run_profiled(t, r) : run_checked(t, r)));
  }
  return NULL;
}

status rt_run_sequence(const rt_sequence *s, rt_run *r) {
  if (r->profiler || r->checker) {
    return run_watched(s, r);
  }
  for (uint32_t k = 0; k < s->n; k++) {
    TRY(finish_thunk(&s->thunks[k], r, s->thunks[k].ops->run(&s->thunks[k], r)));
  }
  return NULL;
}

/* Returns memory of at least *bytes bytes for the arena of a run, and sets *bytes to its size; NULL if memory runs out.
 * Kept memory that is smaller, of a run of other sizes, is replaced. */
static spare_arena *take_arena(rt_executable *e, size_t *bytes) {
  pthread_mutex_lock(&e->lock);
  spare_arena *s = e->spare;
  if (s) {
    e->spare = s->next;
  }
  pthread_mutex_unlock(&e->lock);
  if (s && s->bytes >= *bytes) {
    *bytes = s->bytes;
    return s;
  }
  if (s) {
    free_arena(e, s, s->bytes);
  }
  return new_arena(e, *bytes);
}

static void give_arena(rt_executable *e, spare_arena *s, size_t bytes) {
  pthread_mutex_lock(&e->lock);
  s->next = e->spare;
  s->bytes = bytes;
  e->spare = s;
  pthread_mutex_unlock(&e->lock);
}

/* The buffers of the caller.  A buffer that is not aligned as kernels require is copied to or from aligned memory.  If
 * the target has a device, all buffers are copied to or from its memory. */
typedef struct staging {
  const rt_target *target;
  uint32_t n;
  const rt_io *io;
  void **owned, **used; /* owned[k]: the aligned or device memory; NULL: used[k] is the caller's own buffer */
} staging;

static size_t bytes_of(const rt_io *io) { return (size_t)shape_bytes(&io->shape); }

static bool is_aligned(const void *p) { return ((uintptr_t)p & (BUFFER_ALIGN - 1)) == 0; }

/* Returns true if the result is given the memory of the parameter in which it is carried, but is not computed in place,
 * so that the program still reads the parameter while it writes the result. */
static bool needs_own_memory(const rt_io *io, const void *const *params, const void *given) {
  return io->carried && !io->in_place && params && params[io->carried - 1] == given;
}

/* `params` has the addresses of the inputs if the buffers are outputs, and is NULL otherwise. */
static status stage(staging *s, const rt_target *target, mem_budget *budget, uint32_t n, const rt_io *io,
                    void *const *given, const void *const *params, const char *what) {
  s->target = target;
  s->n = n;
  s->io = io;
  s->owned = calloc(2 * (size_t)n + 1, sizeof *s->owned);
  CHECK_THAT(s->owned, STATUS_RESOURCE, "out of memory");
  s->used = s->owned + n;
  for (uint32_t k = 0; k < n; k++) {
    size_t bytes = bytes_of(&io[k]);
    CHECK_THAT(given[k] || bytes == 0, STATUS_INVALID_ARGUMENT, "%s '%s' has no buffer", what, io[k].name);
    s->used[k] = given[k];
    if (target->device || !is_aligned(given[k]) || !given[k] || needs_own_memory(&io[k], params, given[k])) {
      s->owned[k] = take_memory(target, budget, bytes);
      CHECK_THAT(s->owned[k], STATUS_RESOURCE, "no %zu bytes of memory for %s '%s'", bytes, what, io[k].name);
      s->used[k] = s->owned[k];
    }
  }
  return NULL;
}

/* Fails if the program was compiled for certain contents of an input and the input has other contents. */
static status check_values(const rt_program *p, const void *const *params) {
  for (uint32_t k = 0; k < p->n_params; k++) {
    const rt_io *io = &p->params[k];
    size_t bytes = bytes_of(io); /* the address of an empty input may be NULL */
    CHECK_THAT(!io->value || bytes == 0 || memcmp(io->value, params[k], bytes) == 0, STATUS_INVALID_ARGUMENT,
               "input '%s' decides sizes and holds other values than the program is for", io->name);
  }
  return NULL;
}

static status copy(const rt_device *d, void *to, const void *from, size_t bytes, bool in) {
  if (!d) {
    memcpy(to, from, bytes);
    return NULL;
  }
  return in ? d->upload(to, from, bytes) : d->download(to, from, bytes);
}

static status copy_staged(const staging *s, void *const *given, bool in) {
  for (uint32_t k = 0; k < s->n; k++) {
    size_t bytes = bytes_of(&s->io[k]);
    void *to = in ? s->owned[k] : given[k], *from = in ? given[k] : s->owned[k];
    TRY(s->owned[k] && bytes ? copy(s->target->device, to, from, bytes, in) : NULL);
  }
  return NULL;
}

/* Fills the memory of results that are computed in place with the contents of their parameters, unless it is the same
 * memory. */
static status fill_carried(const staging *out, const void *const *params) {
  for (uint32_t k = 0; k < out->n; k++) {
    const rt_io *io = &out->io[k];
    const void *from = io->in_place ? params[io->carried - 1] : out->used[k];
    size_t bytes = bytes_of(io);
    TRY(from != out->used[k] && bytes ? copy(out->target->device, out->used[k], from, bytes, true) : NULL);
  }
  return NULL;
}

static void unstage(staging *s, mem_budget *budget) {
  for (uint32_t k = 0; k < s->n && s->owned; k++) {
    give_memory(s->target, budget, s->owned[k], bytes_of(&s->io[k]));
  }
  free(s->owned);
}

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

/* Copies inputs into staging memory, runs the program, and copies results out of staging memory.  All memory has been
 * allocated. */
static status run_staged(const rt_binding *b, const rt_run_options *options, rt_run *run, const staging *in,
                         void *const *params, const staging *out, void *const *results) {
  TRY(copy_staged(in, params, true));
  TRY(fill_carried(out, (const void *const *)params));
  TRY(run_guarded(&b->body, run, options));
  return copy_staged(out, results, false);
}

/* Fails if an option requires that the host can look into the memory of a run, and that memory is a device's. */
static status check_options(const rt_executable *e, const rt_run_options *o) {
  CHECK_THAT(!e->target->device || !o || !(o->check_memory || o->drive), STATUS_UNSUPPORTED | STATUS_ABOUT_BACKEND,
             "target %s has memory of its own, into which a checked run cannot look", e->target->name);
  return NULL;
}

status rt_execute(const rt_binding *b, const rt_run_options *options, const void *const *params, void *const *results) {
  const rt_executable *e = b->executable;
  const rt_program *p = b->program;
  size_t bytes = arena_size(p);
  mem_budget *budget = options ? options->budget : NULL;
  staging in = {0}, out = {0};
  TRY(check_options(e, options));
  status s = stage(&in, e->target, budget, p->n_params, p->params, (void *const *)params, NULL, "input");
  if (!s) {
    s = check_values(p, params);
  }
  if (!s) {
    s = stage(&out, e->target, budget, p->n_results, p->results, results, params, "output");
  }
  spare_arena *memory = s ? NULL : take_arena((rt_executable *)e, &bytes);
  if (!s && !memory) {
    s = status_error(STATUS_RESOURCE, "no %zu bytes of memory for a run", bytes);
  }
  if (!s) {
    rt_run run = {.program = p,
                  .arena = e->target->device ? ((device_arena *)memory)->memory : (uint8_t *)memory,
                  .constants = e->constants,
                  .params = (const void *const *)in.used,
                  .results = out.used,
                  .pool = options ? options->pool : NULL,
                  .budget = budget,
                  .profiler = options ? options->profiler : NULL,
                  .seed = options ? options->seed : 0};
    s = run_staged(b, options, &run, &in, (void *const *)params, &out, results);
  }
  if (memory) {
    give_arena((rt_executable *)e, memory, bytes);
  }
  unstage(&in, budget);
  unstage(&out, budget);
  return s;
}
