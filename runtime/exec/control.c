/* control.c - the common thunk kinds copy, while, conditional and concurrent; bounds.c and random.c have the other
 * ones.  All targets that work in host memory share them; a target with a device has only kinds of its own. */
#include <string.h>

#include "runtime/exec/bounds.h"
#include "runtime/exec/check_memory.h"
#include "runtime/exec/executable.h"
#include "runtime/host/thread_pool.h"
#include "runtime/exec/random.h"

/* --- copy: one input, one output of the same type and extents, any strides --- */

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

/* Copies dimensions k and higher of the array `in` to `out`; calls itself for each index of dimension k. */
static void copy_strided(uint8_t *to, const rt_buffer *out, const uint8_t *from, const rt_buffer *in, int k) {
  size_t size = dtype_bytes(in->type);
  if (k == in->rank) {
    memcpy(to, from, size);
    return;
  }
  if (k == in->rank - 1 && in->strides[k] == 1 && out->strides[k] == 1) {
    memcpy(to, from, size * (size_t)in->extents[k]);
    return;
  }
  for (int64_t i = 0; i < in->extents[k]; i++) {
    copy_strided(to + (size_t)(i * out->strides[k]) * size, out, from + (size_t)(i * in->strides[k]) * size, in, k + 1);
  }
}

static status run_copy(const rt_thunk *t, rt_run *r) {
  const rt_buffer *in = &t->buffers[0], *out = &t->buffers[1];
  const void *from = rt_address(r, in);
  void *to = rt_address(r, out);
  if (from == to || rt_buffer_elements(in) == 0) {
    return NULL;
  }
  if (rt_buffer_is_dense(in) && rt_buffer_is_dense(out)) {
    memmove(to, from, (size_t)rt_buffer_bytes(in));
  } else {
    copy_strided(to, out, from, in, 0);
  }
  return NULL;
}

/* --- while: the bodies are [condition, body].  The only buffer is a pred[], which the condition writes.  Copies
 * between initial values, carried values and roots are thunks of their own, before the loop and at the end of the body.
 * --- */

static status load_while(rt_thunk *t, rt_loader *l) {
  (void)l;
  CHECK_THAT(t->n_bodies == 2 && t->n_buffers == 1 && t->buffers[0].type == DTYPE_PRED &&
                 rt_buffer_elements(&t->buffers[0]) == 1,
             STATUS_INVALID_FILE, "a damaged loop");
  return NULL;
}

static status run_while(const rt_thunk *t, rt_run *r) {
  for (;;) {
    TRY(budget_check(r->budget));
    TRY(rt_run_sequence(&t->bodies[0], r));
    TRY(r->checker ? rt_checker_decide(r->checker, t) : NULL);
    if (!*(const uint8_t *)rt_address(r, &t->buffers[0])) {
      return NULL;
    }
    TRY(rt_run_sequence(&t->bodies[1], r));
  }
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
  TRY(r->checker ? rt_checker_decide(r->checker, t) : NULL);
  const void *index = rt_address(r, &t->buffers[0]);
  return rt_run_sequence(&t->bodies[rt_branch_of((dtype)t->buffers[0].type, index, t->n_bodies)], r);
}

/* --- concurrent: bodies that do not depend on each other, each on one thread.  With a profiler, which has one clock,
 * or a checker they run one after the other. --- */

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
    members[k].failed = guard_run(run_member, &members[k]); /* threads of the pool are in no other guard_run */
  }
}

static status run_concurrent(const rt_thunk *t, rt_run *r) {
  member members[MAX_MEMBERS];
  TRY(r->checker ? rt_checker_concurrent(r->checker, t) : NULL);
  for (uint32_t k = 0; k < t->n_bodies; k++) {
    members[k] = (member){&t->bodies[k], r, NULL};
  }
  rt_parallel_for(r->profiler || r->checker ? NULL : r->pool, t->n_bodies, 1, run_members, members);
  status failed = NULL;
  for (uint32_t k = 0; k < t->n_bodies; k++) {
    status_free(failed ? members[k].failed : NULL);
    failed = failed ? failed : members[k].failed;
  }
  return failed;
}

const rt_thunk_kind rt_common_kinds[] = {
    {"copy", NULL, run_copy, RT_READS_WHILE_WRITING, bind_copy},
    {"while", load_while, run_while, RT_READS_WHILE_WRITING, NULL},
    {"conditional", load_conditional, run_conditional, RT_READS_WHILE_WRITING, NULL},
    {"concurrent", load_concurrent, run_concurrent, RT_READS_WHILE_WRITING, NULL},
    {"check", rt_load_check, rt_run_check, RT_READS_WHILE_WRITING, rt_bind_check},
    {"run-seed", rt_load_run_seed, rt_run_run_seed, RT_READS_WHILE_WRITING, NULL},
    {"mt19937", NULL, rt_run_mt19937, RT_READS_WHILE_WRITING, rt_bind_mt19937},
};
const uint32_t rt_n_common_kinds = sizeof rt_common_kinds / sizeof *rt_common_kinds;
