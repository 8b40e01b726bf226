/* control.c - the common thunk kinds copy, while, conditional and concurrent; bounds.c and random.c have the other
 * ones.  All targets share them.  On a device, copies are work of the run's stream, and the value that decides a loop
 * or a conditional is read after waiting for the stream. */
#include <string.h>

#include "runtime/exec/bounds.h"
#include "runtime/exec/check_memory.h"
#include "runtime/exec/executable.h"
#include "runtime/exec/memory.h"
#include "runtime/exec/random.h"
#include "runtime/exec/recorder.h"
#include "runtime/host/thread_pool.h"

/* --- copy: one input, one output of the same type; equal extents, or both dense with equally many elements --- */

static status bind_copy(rt_thunk *t, arena *a) {
  (void)a;
  CHECK_THAT(t->n_buffers == 2 && t->n_inputs == 1 && t->buffers[0].type == t->buffers[1].type &&
                 rt_buffer_elements(&t->buffers[0]) == rt_buffer_elements(&t->buffers[1]),
             STATUS_INVALID_FILE, "a copy between unequal buffers");
  bool dense = rt_buffer_is_dense(&t->buffers[0]) && rt_buffer_is_dense(&t->buffers[1]);
  CHECK_THAT(dense || (t->buffers[0].rank == t->buffers[1].rank &&
                       memcmp(t->buffers[0].extents, t->buffers[1].extents,
                              t->buffers[0].rank * sizeof *t->buffers[0].extents) == 0),
             STATUS_INVALID_FILE, "a copy between unequal buffers");
  return NULL;
}

static status move(const rt_run *r, void *to, const void *from, size_t bytes) {
  return rt_memory_copy(r->device, r->stream, RT_ON_DEVICE, to, from, bytes);
}

/* Copies dimensions k and higher of the array `in` to `out`; calls itself for each index of dimension k. */
static status copy_strided(const rt_run *r, uint8_t *to, const rt_buffer *out, const uint8_t *from, const rt_buffer *in,
                           int k) {
  size_t size = dtype_bytes(in->type);
  if (k == in->rank) {
    return move(r, to, from, size);
  }
  if (k == in->rank - 1 && in->strides[k] == 1 && out->strides[k] == 1) {
    return move(r, to, from, size * (size_t)in->extents[k]);
  }
  for (int64_t i = 0; i < in->extents[k]; i++) {
    TRY(copy_strided(r, to + (size_t)(i * out->strides[k]) * size, out, from + (size_t)(i * in->strides[k]) * size, in,
                     k + 1));
  }
  return NULL;
}

static status run_copy(const rt_thunk *t, rt_run *r) {
  const rt_buffer *in = &t->buffers[0], *out = &t->buffers[1];
  const void *from = rt_address(r, in);
  void *to = rt_address(r, out);
  if (from == to || rt_buffer_elements(in) == 0) {
    return NULL;
  }
  bool dense = rt_buffer_is_dense(in) && rt_buffer_is_dense(out);
  return dense ? move(r, to, from, (size_t)rt_buffer_bytes(in)) : copy_strided(r, to, out, from, in, 0);
}

/* Returns true if the buffers do not overlap, or are the same memory.  A device may have to do an overlapping copy in
 * parts, with waits between them, which cannot be recorded. */
static bool is_copy_recordable(const rt_thunk *t, const rt_run *r) {
  const rt_buffer *in = &t->buffers[0], *out = &t->buffers[1];
  uintptr_t from = (uintptr_t)rt_address(r, in), to = (uintptr_t)rt_address(r, out);
  return from == to || from + (uintptr_t)rt_buffer_bytes(in) <= to || to + (uintptr_t)rt_buffer_bytes(out) <= from;
}

/* --- while: the bodies are [condition, body].  The only buffer is a pred[], which the condition writes.  If the thunk
 * has a size, the body runs that many times, so the condition need not be computed.  Copies between initial
 * values, carried values and roots are thunks of their own, before the loop and at the end of the body. --- */

static status load_while(rt_thunk *t, rt_loader *l) {
  (void)l;
  CHECK_THAT(t->n_bodies == 2 && t->n_buffers == 1 && t->n_sizes <= 1, STATUS_INVALID_FILE, "a damaged loop");
  return NULL;
}

static status bind_while(rt_thunk *t, arena *a) {
  (void)a;
  CHECK_THAT(t->buffers[0].type == DTYPE_PRED && rt_buffer_elements(&t->buffers[0]) == 1 &&
                 (t->n_sizes == 0 || t->sizes[0] >= 0),
             STATUS_INVALID_FILE, "a damaged loop");
  return NULL;
}

static status run_counted(const rt_thunk *t, rt_run *r) {
  for (int64_t k = 0; k < t->sizes[0]; k++) {
    TRY(budget_check(r->budget));
    TRY(rt_run_sequence(&t->bodies[1], r));
  }
  return NULL;
}

/* Returns true if the whole loop can be one recording: the number of iterations is known, and not large.  Otherwise the
 * body has a recording, which each iteration replays. */
static bool is_while_recordable(const rt_thunk *t, const rt_run *r) {
  enum { MOST_THUNKS = 1000 };
  return t->n_sizes && t->sizes[0] <= MOST_THUNKS / ((int64_t)t->bodies[1].n + 1) && rt_is_recordable(&t->bodies[1], r);
}

static status run_while(const rt_thunk *t, rt_run *r) {
  while (t->n_sizes == 0 || r->checker) {
    uint8_t again;
    TRY(budget_check(r->budget));
    TRY(rt_run_sequence(&t->bodies[0], r));
    TRY(r->checker ? rt_checker_decide(r->checker, t) : NULL);
    TRY(rt_memory_read(r, &again, rt_address(r, &t->buffers[0]), sizeof again));
    if (!again) {
      return NULL;
    }
    TRY(rt_run_sequence(&t->bodies[1], r));
  }
  return run_counted(t, r);
}

/* --- conditional: one body for each branch.  Buffer 0 is the index, a pred[] or s32[].  Branches end with copies to
 * the results. --- */

static status load_conditional(rt_thunk *t, rt_loader *l) {
  (void)l;
  CHECK_THAT(t->n_bodies >= 1 && t->n_buffers == 1 && rt_buffer_elements(&t->buffers[0]) == 1 &&
                 (t->buffers[0].type == DTYPE_S32 || (t->buffers[0].type == DTYPE_PRED && t->n_bodies == 2)),
             STATUS_INVALID_FILE, "a damaged conditional");
  return NULL;
}

int64_t rt_branch_of(dtype type, const void *index, uint32_t n) {
  int64_t branch = dtype_load_i64(type, index);
  if (type == DTYPE_PRED) {
    branch = !branch;
  }
  return branch < 0 || branch >= n ? n - 1 : branch;
}

static status run_conditional(const rt_thunk *t, rt_run *r) {
  dtype type = (dtype)t->buffers[0].type;
  int32_t index; /* if the type is DTYPE_PRED, the pred is in its first byte */
  TRY(r->checker ? rt_checker_decide(r->checker, t) : NULL);
  TRY(rt_memory_read(r, &index, rt_address(r, &t->buffers[0]), dtype_bytes(type)));
  return rt_run_sequence(&t->bodies[rt_branch_of(type, &index, t->n_bodies)], r);
}

/* --- concurrent: bodies that do not depend on each other, each on one thread.  They run one after the other if there
 * is a checker, a profiler (it has only one clock) or a device (only one thread at a time may use its stream). --- */

enum { MAX_MEMBERS = 256 };

static status load_concurrent(rt_thunk *t, rt_loader *l) {
  (void)l;
  CHECK_THAT(t->n_bodies >= 1 && t->n_bodies <= MAX_MEMBERS && t->n_buffers == 0, STATUS_INVALID_FILE, "damaged");
  return NULL;
}

typedef struct member {
  const rt_sequence *body;
  rt_run *run;
  status failed;
} member;

static status run_member(void *data) {
  const member *m = data;
  return rt_run_sequence(m->body, m->run);
}

static void run_members(void *data, int64_t begin, int64_t end) {
  member *members = data;
  for (int64_t k = begin; k < end; k++) {
    members[k].failed = guard_run(run_member, &members[k]); /* a guard_fail cannot leave its thread */
  }
}

static status run_concurrent(const rt_thunk *t, rt_run *r) {
  member members[MAX_MEMBERS];
  TRY(r->checker ? rt_checker_concurrent(r->checker, t) : NULL);
  for (uint32_t k = 0; k < t->n_bodies; k++) {
    members[k] = (member){&t->bodies[k], r, NULL};
  }
  bool apart = r->profiler || r->checker || r->device;
  rt_parallel_for(apart ? NULL : r->pool, t->n_bodies, 1, run_members, members);
  status failed = NULL;
  for (uint32_t k = 0; k < t->n_bodies; k++) {
    failed = status_first(failed, members[k].failed);
  }
  return failed;
}

static bool is_concurrent_recordable(const rt_thunk *t, const rt_run *r) {
  bool all = true;
  for (uint32_t k = 0; k < t->n_bodies; k++) {
    all = all && rt_is_recordable(&t->bodies[k], r);
  }
  return all;
}

const rt_thunk_kind rt_common_kinds[] = {
    {.name = "copy", .run = run_copy, .bind = bind_copy, .is_recordable = is_copy_recordable},
    {.name = "while", .load = load_while, .run = run_while, .bind = bind_while, .is_recordable = is_while_recordable},
    {.name = "conditional", .load = load_conditional, .run = run_conditional},
    {.name = "concurrent", .load = load_concurrent, .run = run_concurrent, .is_recordable = is_concurrent_recordable},
    {.name = "check", .load = rt_load_check, .run = rt_run_check, .bind = rt_bind_check, .on_host = true},
    {.name = "run-seed", .load = rt_load_run_seed, .run = rt_run_run_seed, .on_host = true},
    {.name = "mt19937", .run = rt_run_mt19937, .bind = rt_bind_mt19937, .on_host = true},
};
const uint32_t rt_n_common_kinds = sizeof rt_common_kinds / sizeof *rt_common_kinds;
