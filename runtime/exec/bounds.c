/* bounds.c - the thunk kind "check": fails a run if elements of its input are out of bounds. */
#include "runtime/exec/bounds.h"

#include <stdatomic.h>

#include "base/tensor/bounds.h"
#include "runtime/host/thread_pool.h"

rt_span rt_bounds_config(arena *a, const char *what, bool from_end) {
  rt_writer w = {.arena = a};
  rt_put_text(&w, what);
  rt_put_i64(&w, from_end);
  return rt_written(&w);
}

status rt_load_check(rt_thunk *t, rt_loader *l) {
  rt_reader r = rt_reader_make(t->config);
  bounds *b = t->state = ARENA_NEW(l->arena, bounds);
  b->what = rt_get_text(&r);
  b->from_end = rt_get_in(&r, 0, 1);
  TRY(rt_reader_end(&r, t->kind));
  CHECK_THAT(t->n_buffers == 1 && t->n_inputs == 1 && dtype_is_int(t->buffers[0].type), STATUS_INVALID_FILE, "damaged");
  return NULL;
}

status rt_bind_check(rt_thunk *t, arena *a) {
  bounds *b = t->state = arena_memdup(a, t->state, sizeof *b);
  b->n = t->n_sizes;
  b->limits = t->sizes;
  bool fine = rt_buffer_is_dense(&t->buffers[0]);
  for (uint32_t k = 0; k < b->n; k++) {
    fine &= b->limits[k] >= 0;
  }
  CHECK_THAT(fine, STATUS_INVALID_FILE, "damaged");
  return NULL;
}

typedef struct checking {
  const bounds *b;
  dtype type;
  const void *data;
  int64_t count;
  atomic_bool bad;
} checking;

/* The array is checked in parts by several threads.  With n limits (bounds.n), a part has n * PART elements (PART if n
 * is 0), and checking it takes some microseconds. */
enum { PART = 1 << 15 };

static void check_parts(void *data, int64_t begin, int64_t end) {
  checking *c = data;
  int64_t part = PART * (int64_t)(c->b->n ? c->b->n : 1), last = end * part;
  if (!bounds_hold(c->b, c->type, c->data, begin * part, last < c->count ? last : c->count)) {
    atomic_store(&c->bad, true);
  }
}

status rt_run_check(const rt_thunk *t, rt_run *r) {
  const rt_buffer *in = &t->buffers[0];
  checking c = {.b = t->state, .type = in->type, .data = rt_address(r, in), .count = rt_buffer_elements(in)};
  int64_t part = PART * (int64_t)(c.b->n ? c.b->n : 1);
  rt_parallel_for(c.count > part ? r->pool : NULL, (c.count + part - 1) / part, 1, check_parts, &c);
  return atomic_load(&c.bad) ? bounds_check(c.b, c.type, c.data, c.count) : NULL;
}
