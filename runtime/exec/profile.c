/* profile.c - see profile.h. */
#include "runtime/exec/profile.h"

#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "runtime/exec/memory.h"

/* A slot of a hash table whose keys are addresses of thunks.  The thunk in a slot may belong to a destroyed executable,
 * and another thunk may have its address now. */
typedef struct slot {
  const rt_thunk *thunk; /* NULL if the slot is free */
  uint32_t number;
} slot;

struct rt_profiler {
  arena *arena;
  rt_profile result;
  slot *slots; /* an array whose size is a power of two; at most half of it is in use */
  uint32_t n_slots, used;
  rt_profile_event *events, *best; /* the events of the current run, and of the fastest run */
  uint32_t n_events, cap_events, cap_best;
  bool cut;
  uint64_t start;  /* the start of the current run */
  uint64_t inside; /* the nanoseconds of the thunks that have ended in the innermost sequence that is running */
  uint32_t depth;
};

enum { FIRST_SLOTS = 256 };

rt_profiler *rt_profiler_create(arena *a) {
  rt_profiler *p = ARENA_NEW(a, rt_profiler);
  p->arena = a;
  p->n_slots = FIRST_SLOTS;
  p->slots = ARENA_NEW_N(a, slot, p->n_slots);
  return p;
}

/* --- thunks --- */

static int64_t bytes_of(const rt_thunk *t) {
  int64_t sum = 0;
  for (uint32_t b = 0; b < t->n_buffers && t->bytes == 0 && t->n_bodies == 0; b++) {
    sum += rt_buffer_elements(&t->buffers[b]) * (int64_t)dtype_bytes((dtype)t->buffers[b].type);
  }
  return t->bytes ? t->bytes : sum;
}

static const rt_node *copy_nodes(arena *a, const rt_program *program, const rt_thunk *t) {
  rt_node *nodes = ARENA_NEW_N(a, rt_node, t->n_nodes);
  for (uint32_t k = 0; k < t->n_nodes; k++) {
    const rt_node *from = &program->nodes[t->nodes[k]];
    nodes[k] = (rt_node){arena_strdup(a, from->text), arena_strdup(a, from->operator_name)};
  }
  return nodes;
}

static uint32_t add(rt_profiler *p, const rt_program *program, const rt_thunk *t) {
  arena *a = p->arena;
  rt_profiled *new = ARENA_PUSH(a, p->result.thunks, p->result.n_thunks, p->result.cap_thunks);
  *new = (rt_profiled){.kind = arena_strdup(a, t->kind),
                       .operation = arena_strdup(a, t->operation),
                       .label = rt_thunk_label(a, program, t),
                       .n_nodes = t->n_nodes,
                       .nodes = copy_nodes(a, program, t),
                       .contraction = t->contraction,
                       .note = arena_strdup(a, t->note ? t->note : ""),
                       .operations = t->operations,
                       .bytes = bytes_of(t),
                       .depth = p->depth};
  return p->result.n_thunks - 1;
}

static slot *find(slot *slots, uint32_t n, const rt_thunk *t) {
  uint32_t k = (uint32_t)hash_mix(0, (uintptr_t)t) & (n - 1);
  while (slots[k].thunk && slots[k].thunk != t) {
    k = (k + 1) & (n - 1);
  }
  return &slots[k];
}

static void grow(rt_profiler *p) {
  uint32_t n = 2 * p->n_slots;
  slot *slots = ARENA_NEW_N(p->arena, slot, n);
  for (uint32_t k = 0; k < p->n_slots; k++) {
    if (p->slots[k].thunk) {
      *find(slots, n, p->slots[k].thunk) = p->slots[k];
    }
  }
  p->slots = slots;
  p->n_slots = n;
}

/* Returns true if x describes this thunk, and not an earlier thunk that had the same address. */
static bool is_same(const rt_profiled *x, const rt_program *program, const rt_thunk *t) {
  bool same = x->n_nodes == t->n_nodes && strcmp(x->kind, t->kind) == 0 && strcmp(x->operation, t->operation) == 0;
  for (uint32_t k = 0; same && k < t->n_nodes; k++) {
    same = strcmp(x->nodes[k].text, program->nodes[t->nodes[k]].text) == 0;
  }
  return same;
}

static uint32_t number_of(rt_profiler *p, const rt_program *program, const rt_thunk *t) {
  slot *s = find(p->slots, p->n_slots, t);
  if (s->thunk && is_same(&p->result.thunks[s->number], program, t)) {
    return s->number;
  }
  p->used += !s->thunk;
  *s = (slot){t, add(p, program, t)};
  uint32_t number = s->number;
  if (2 * p->used > p->n_slots) {
    grow(p);
  }
  return number;
}

/* --- runs --- */

/* Returns where the thunk's time in the current run is stored.  Its array grows if necessary; new elements are 0. */
static double *place(rt_profiler *p, rt_profiled *t) {
  uint32_t n = p->result.n_runs + 1;
  if (t->cap < n) {
    uint32_t cap = 2 * n;
    t->seconds = arena_grow(p->arena, t->seconds, t->cap * sizeof *t->seconds, cap * sizeof *t->seconds);
    memset(t->seconds + t->cap, 0, (cap - t->cap) * sizeof *t->seconds);
    t->cap = cap;
  }
  return &t->seconds[p->result.n_runs];
}

void rt_profiler_begin(rt_profiler *p) {
  for (uint32_t k = 0; k < p->result.n_thunks; k++) {
    *place(p, &p->result.thunks[k]) = 0;
    p->result.thunks[k].calls_now = 0;
  }
  p->n_events = p->depth = 0;
  p->inside = 0;
  p->cut = false;
  p->start = clock_nanoseconds();
}

void rt_profiler_end(rt_profiler *p) {
  rt_profile *r = &p->result;
  double seconds = 1e-9 * (double)(clock_nanoseconds() - p->start);
  uint32_t run = r->n_runs;
  for (uint32_t k = 0; k < r->n_thunks; k++) {
    r->thunks[k].calls += r->thunks[k].calls_now;
  }
  *ARENA_PUSH(p->arena, r->run_seconds, r->n_runs, r->cap_runs) = seconds;
  if (run == 0 || seconds < r->run_seconds[r->fastest]) {
    rt_profile_event *old = p->best;
    uint32_t cap_old = p->cap_best;
    p->best = p->events;
    p->cap_best = p->cap_events;
    p->events = old;
    p->cap_events = cap_old;
    r->fastest = run;
    r->events = p->best;
    r->n_events = p->n_events;
    r->cut = p->cut;
  }
}

const rt_profile *rt_profiler_result(const rt_profiler *p) { return &p->result; }

rt_profile_mark rt_profile_enter(rt_profiler *p, const rt_program *program, const rt_thunk *t) {
  rt_profile_mark mark = {.thunk = number_of(p, program, t), .inside = p->inside};
  (void)place(p, &p->result.thunks[mark.thunk]);
  p->inside = 0;
  p->depth++;
  mark.begin = clock_nanoseconds();
  return mark;
}

void rt_profile_leave(rt_profiler *p, const rt_profile_mark *mark, double device_seconds) {
  uint64_t end = clock_nanoseconds(), took = end - mark->begin;
  rt_profiled *t = &p->result.thunks[mark->thunk];
  *place(p, t) += device_seconds >= 0 ? device_seconds : 1e-9 * (double)(took - p->inside);
  t->calls_now++;
  p->inside = mark->inside + took;
  p->depth--;
  if (p->n_events < RT_PROFILE_EVENTS) {
    *ARENA_PUSH(p->arena, p->events, p->n_events, p->cap_events) =
        (rt_profile_event){mark->thunk, p->depth, mark->begin - p->start, end - p->start};
  } else {
    p->cut = true;
  }
}

/* --- devices --- */

static status run_between(const rt_thunk *t, rt_run *r, status (*run)(const rt_thunk *t, rt_run *r), rt_event *begin,
                          rt_event *end) {
  TRY(r->device->record_event(begin, r->stream));
  TRY(run(t, r));
  return r->device->record_event(end, r->stream);
}

static status time_events(const rt_thunk *t, rt_run *r, status (*run)(const rt_thunk *t, rt_run *r), rt_event *begin,
                          double *seconds) {
  const rt_device *d = r->device;
  rt_event *end;
  TRY(d->create_event(d, &end));
  status failed = rt_memory_await(d, r->stream, r->budget, run_between(t, r, run, begin, end));
  failed = failed ? failed : d->elapsed(begin, end, seconds);
  d->destroy_event(end);
  return failed;
}

status rt_profile_device(const rt_thunk *t, rt_run *r, status (*run)(const rt_thunk *t, rt_run *r), double *seconds) {
  const rt_device *d = r->device;
  rt_event *begin;
  *seconds = -1;
  if (!d->create_event) {
    return rt_memory_await(d, r->stream, r->budget, run(t, r));
  }
  TRY(d->create_event(d, &begin));
  status failed = time_events(t, r, run, begin, seconds);
  d->destroy_event(begin);
  return failed;
}
