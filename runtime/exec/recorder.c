/* recorder.c - see recorder.h. */
#include "runtime/exec/recorder.h"

#include <stdlib.h>
#include <string.h>

enum {
  MOST_RECORDERS = 4, /* the most sets of addresses with recordings; a new set replaces the least recently used one */
  LEAST_TO_RECORD = 2 /* the fewest thunks of a recording; fewer are as fast without one */
};

/* Thunks that follow each other in a sequence, either all recordable or all not recordable. */
typedef struct segment {
  const rt_thunk *first;
  uint32_t n;
  bool recordable;         /* also false if there are fewer than LEAST_TO_RECORD */
  rt_recording *recording; /* NULL: not recorded yet */
} segment;

/* The recordings for one set of addresses. */
struct rt_recorder {
  const rt_device *device;
  uint64_t binding;       /* the number of the binding; 0 if this recorder is unused */
  const void **addresses; /* of the arena, the inputs and the results */
  uint32_t n_addresses;
  uint64_t last; /* the number of the last run that had these addresses */
  segment *segments;
  uint32_t n, cap, next; /* next: the segment that most probably comes next */
};

struct rt_recordings {
  uint64_t runs;
  struct rt_recorder recorders[MOST_RECORDERS];
};

status rt_recordings_create(const rt_device *d, rt_recordings **out) {
  *out = calloc(1, sizeof **out);
  CHECK_THAT(*out, STATUS_RESOURCE, "out of memory");
  for (int k = 0; k < MOST_RECORDERS; k++) {
    (*out)->recorders[k].device = d;
  }
  return NULL;
}

static void clear(struct rt_recorder *c) {
  for (uint32_t k = 0; k < c->n; k++) {
    if (c->segments[k].recording) {
      c->device->release_recording(c->segments[k].recording);
    }
  }
  free(c->segments);
  free(c->addresses);
  *c = (struct rt_recorder){.device = c->device};
}

void rt_recordings_destroy(rt_recordings *all) {
  for (int k = 0; all && k < MOST_RECORDERS; k++) {
    clear(&all->recorders[k]);
  }
  free(all);
}

/* --- finding recordings by what they depend on --- */

static bool is_for(const struct rt_recorder *c, const rt_binding *b, const rt_run *r) {
  const rt_program *p = b->program;
  return c->binding == b->number && c->addresses[0] == r->arena &&
         memcmp(c->addresses + 1, r->params, p->n_params * sizeof *r->params) == 0 &&
         memcmp(c->addresses + 1 + p->n_params, r->results, p->n_results * sizeof *r->results) == 0;
}

static status begin(struct rt_recorder *c, const rt_binding *b, const rt_run *r) {
  const rt_program *p = b->program;
  clear(c);
  c->addresses = malloc((1 + (size_t)p->n_params + p->n_results) * sizeof *c->addresses);
  CHECK_THAT(c->addresses, STATUS_RESOURCE, "out of memory");
  c->addresses[0] = r->arena;
  memcpy(c->addresses + 1, r->params, p->n_params * sizeof *r->params);
  memcpy(c->addresses + 1 + p->n_params, r->results, p->n_results * sizeof *r->results);
  c->binding = b->number;
  return NULL;
}

status rt_recordings_find(rt_recordings *all, const rt_binding *b, rt_run *r) {
  struct rt_recorder *oldest = all->recorders;
  all->runs++;
  for (struct rt_recorder *c = all->recorders; c < all->recorders + MOST_RECORDERS; c++) {
    if (is_for(c, b, r)) {
      c->last = all->runs;
      c->next = 0;
      r->recorder = c;
      return NULL;
    }
    oldest = c->last < oldest->last ? c : oldest;
  }
  oldest->last = all->runs;
  return begin(oldest, b, r);
}

/* --- segments --- */

static bool is_recordable(const rt_thunk *t, const rt_run *r) {
  return t->ops->is_recordable && t->ops->is_recordable(t, r);
}

bool rt_is_recordable(const rt_sequence *s, const rt_run *r) {
  bool all = true;
  for (uint32_t k = 0; k < s->n; k++) {
    all = all && is_recordable(&s->thunks[k], r);
  }
  return all;
}

static segment segment_at(const rt_sequence *s, uint32_t first, const rt_run *r) {
  segment g = {.first = &s->thunks[first], .recordable = is_recordable(&s->thunks[first], r)};
  while (first + g.n < s->n && is_recordable(&g.first[g.n], r) == g.recordable) {
    g.n++;
  }
  g.recordable = g.recordable && g.n >= LEAST_TO_RECORD;
  return g;
}

static status add_segment(struct rt_recorder *c, segment new) {
  if (c->n == c->cap) {
    uint32_t cap = c->cap ? 2 * c->cap : 8;
    segment *grown = realloc(c->segments, cap * sizeof *grown);
    CHECK_THAT(grown, STATUS_RESOURCE, "out of memory");
    c->segments = grown;
    c->cap = cap;
  }
  c->segments[c->n++] = new;
  return NULL;
}

/* Sets *out to the index of the segment that begins with this thunk, a new one if there is none yet. */
static status find_segment(const rt_sequence *s, uint32_t first, const rt_run *r, uint32_t *out) {
  struct rt_recorder *c = r->recorder;
  for (uint32_t k = 0; k < c->n; k++) {
    uint32_t at = (c->next + k) % c->n;
    if (c->segments[at].first == &s->thunks[first]) {
      c->next = at + 1;
      *out = at;
      return NULL;
    }
  }
  *out = c->n;
  c->next = c->n + 1;
  return add_segment(c, segment_at(s, first, r));
}

static status run_plainly(const segment *g, rt_run *r) {
  for (uint32_t k = 0; k < g->n; k++) {
    TRY(rt_run_thunk(&g->first[k], r));
  }
  return NULL;
}

/* Records the work of the segment without doing it. */
static status record(const segment *g, rt_run *r, rt_recording **out) {
  struct rt_recorder *recorder = r->recorder;
  TRY(r->device->record_begin(r->stream));
  r->recorder = NULL; /* so that the work of bodies becomes a part of this recording */
  status failed = run_plainly(g, r), broken = r->device->record_end(r->stream, out);
  r->recorder = recorder;
  if (failed && !broken) {
    r->device->release_recording(*out);
    *out = NULL;
  }
  return status_first(failed, broken);
}

/* Runs segment `at` of r->recorder.  It works on a copy of the segment, since bodies of control flow add segments when
 * they run, which may move the array of segments. */
static status run_segment(uint32_t at, rt_run *r) {
  segment g = r->recorder->segments[at];
  if (!g.recordable) {
    return run_plainly(&g, r);
  }
  if (!g.recording) {
    TRY(record(&g, r, &g.recording));
    r->recorder->segments[at].recording = g.recording;
  }
  return r->device->replay(r, g.recording);
}

status rt_run_recorded(const rt_sequence *s, rt_run *r) {
  for (uint32_t k = 0, at; k < s->n; k += r->recorder->segments[at].n) {
    TRY(find_segment(s, k, r, &at));
    TRY(run_segment(at, r));
    TRY(budget_check(r->budget));
  }
  return NULL;
}
