/* emulated_block.c - see emulated_block.h. */
#include "backend_gpu/runtime/emulated_block.h"

#include <stdlib.h>
#include <string.h>

#include "backend_gpu/runtime/block_copies.h"
#include "backend_gpu/runtime/race_check.h"
#include "base/arena.h"

enum { WARP = RT_BLOCK_WARP, FRAME_ALIGN = 64 };

typedef struct emulated_block emulated_block;

typedef struct emulated_thread {
  rt_block_thread state; /* the first member: the functions that kernels call get its address */
  emulated_block *block;
  void *frame; /* memory of `frame_bytes` bytes, which the thread of the next block uses again */
  int64_t frame_bytes;
} emulated_thread;

/* What is wrong with a kernel's copies. */
typedef struct copy_fault {
  const char *what;       /* the words before the number of `other`; NULL if nothing is wrong */
  uint32_t thread, other; /* the thread that is at fault, and the one that began the copy */
  const void *at;
} copy_fault;

/* The block that runs: its memory, and what was found to be wrong with it. */
struct emulated_block {
  const gpu_blocks *launch;
  int64_t number;
  emulated_thread *threads;
  void *shared;
  uint64_t lanes[RT_BLOCK_MOST_THREADS][RT_BLOCK_VALUES]; /* the values of each thread's last exchange */
  gpu_race_check *races;                                  /* NULL until the kernel says what it accesses */
  bool raced;                                             /* whether `race` was found */
  gpu_race race;
  gpu_copies *copies; /* NULL until a thread begins one */
  copy_fault fault;   /* the first fault */
};

static _Noreturn void out_of_memory(void) { guard_fail("out of memory for the threads of an emulated block"); }

/* --- copies --- */

static void set_fault(emulated_block *b, copy_fault f) {
  if (!b->fault.what) {
    b->fault = f;
  }
}

/* Sets the block's fault if a thread accesses memory to which a copy is under way. */
static void check_copies(emulated_block *b, uint32_t thread, const void *at, int64_t bytes) {
  uint32_t other;
  if (b->copies && gpu_copies_pending(b->copies, at, bytes, &other)) {
    set_fault(b, (copy_fault){"accesses memory to which a copy is under way of", thread, other, at});
  }
}

/* Implements rt_block_thread.copy. */
static void begin_copy(rt_block_thread *thread, void *to, const void *from, int32_t bytes, int32_t live) {
  emulated_block *b = ((emulated_thread *)thread)->block;
  uint32_t self = (uint32_t)thread->thread;
  if (!b->copies) {
    b->copies = gpu_copies_create(b->shared, b->launch->shared_bytes, b->launch->threads);
  }
  switch (b->copies ? gpu_copies_begin(b->copies, self, to, from, bytes, live) : GPU_COPY_NO_MEMORY) {
    case GPU_COPY_BEGUN: break;
    case GPU_COPY_OUTSIDE:
      set_fault(b, (copy_fault){"copies from or to where it may not; the copy is that of", self, self, to});
      break;
    case GPU_COPY_TWICE: check_copies(b, self, to, bytes); break;
    case GPU_COPY_NO_MEMORY: out_of_memory();
  }
}

/* Implements rt_block_thread.commit. */
static void commit_copies(rt_block_thread *thread) {
  emulated_block *b = ((emulated_thread *)thread)->block;
  if (b->copies) { /* groups before the first copy are empty */
    gpu_copies_commit(b->copies, (uint32_t)thread->thread);
  }
}

static status check_fault(const emulated_block *b) {
  const copy_fault *f = &b->fault;
  return f->what ? status_error(STATUS_INTERNAL,
                                "kernel %s, block %lld: thread %u %s thread %u, at byte %lld of shared memory",
                                b->launch->name, (long long)b->number, f->thread, f->what, f->other,
                                (long long)((intptr_t)f->at - (intptr_t)b->shared))
                 : NULL;
}

/* Fails if threads have ended before their copies have arrived, which may then overwrite what comes later. */
static status check_arrived(const emulated_block *b) {
  uint32_t thread;
  CHECK_THAT(!b->copies || !gpu_copies_left(b->copies, &thread), STATUS_INTERNAL,
             "kernel %s, block %lld: thread %u ends and has not waited for its copies", b->launch->name,
             (long long)b->number, thread);
  return NULL;
}

/* --- races --- */

static void check_access(emulated_block *b, uint32_t thread, const void *at, int64_t bytes, bool writes) {
  bool no_memory = false;
  if (!b->raced) {
    b->raced = gpu_race_check_access(b->races, thread, at, bytes, writes, &b->race, &no_memory);
  }
  if (no_memory) {
    guard_fail("out of memory for the accesses of an emulated block");
  }
}

/* Implements rt_block_thread.access. */
static void note_access(rt_block_thread *thread, const void *at, int64_t bytes, int32_t writes) {
  emulated_block *b = ((emulated_thread *)thread)->block;
  uint32_t self = (uint32_t)thread->thread;
  b->races = b->races ? b->races : gpu_race_check_create();
  if (!b->races) {
    out_of_memory();
  }
  check_copies(b, self, at, bytes);
  check_access(b, self, at, bytes, writes != 0);
}

/* Implements rt_block_thread.await.  For the search for races, a copy writes its destination when it arrives. */
static void await_copies(rt_block_thread *thread, int32_t groups) {
  emulated_block *b = ((emulated_thread *)thread)->block;
  uint32_t self = (uint32_t)thread->thread;
  void *to;
  int32_t bytes;
  while (b->copies && gpu_copies_arrive(b->copies, self, groups, &to, &bytes)) {
    if (b->races) {
      check_access(b, self, to, bytes, true);
    }
  }
}

static status check_races(const emulated_block *b) {
  const gpu_race *r = &b->race;
  const char *at = r->at, *shared = b->shared;
  if (!b->raced) {
    return NULL;
  }
  bool is_shared = at >= shared && at < shared + b->launch->shared_bytes;
  const char *where = is_shared ? "shared memory" : "a buffer";
  return status_error(STATUS_INTERNAL,
                      "data race in kernel %s, block %lld: thread %u writes byte %lld of %s, and thread %u %s it, with "
                      "no barrier between",
                      b->launch->name, (long long)b->number, r->writer,
                      (long long)(is_shared ? at - shared : (intptr_t)at), where, r->other,
                      r->both_write ? "writes" : "reads");
}

static void note_exchange(const emulated_block *b) {
  if (b->races) {
    gpu_race_check_exchange(b->races);
  }
}

static void note_barrier(const emulated_block *b) {
  if (b->races) {
    gpu_race_check_barrier(b->races);
  }
}

/* --- orders of threads --- */

/* Returns the number of the lane or warp that runs as the k-th of n.  For the shuffled order, STEP has no divisor in
 * common with n, which is at most the size of a warp, and STEP - 1 is no multiple of any n above 2, which would give
 * the forward order. */
static uint32_t ordered(const emulated_block *b, uint32_t k, uint32_t n) {
  enum { STEP = 83 };
  switch (b->launch->order) {
    case GPU_REVERSE: return n - 1 - k;
    case GPU_SHUFFLED: return k * STEP % n;
    default: return k;
  }
}

/* --- warps --- */

/* Fails unless these threads all wait at the same place or have all ended. */
static status check_together(const emulated_block *b, uint32_t first, uint32_t n) {
  for (uint32_t k = 1; k < n; k++) {
    CHECK_THAT(b->threads[first + k].state.sync == b->threads[first].state.sync, STATUS_INTERNAL,
               "divergent barrier in kernel %s, block %lld", b->launch->name, (long long)b->number);
  }
  return NULL;
}

static void call_lanes(emulated_block *b, uint32_t first, uint32_t n) {
  const gpu_blocks *l = b->launch;
  for (uint32_t k = 0; k < n; k++) {
    rt_block_thread *t = &b->threads[first + ordered(b, k, n)].state;
    t->block = b->number;
    t->sync = 0;
    l->fn(l->buffers, l->args, l->steps, t);
  }
}

static void resume_lanes(emulated_block *b, uint32_t first, uint32_t n) {
  for (uint32_t k = 0; k < n; k++) {
    rt_block_resume(&b->threads[first + ordered(b, k, n)].state);
  }
}

/* Lets the threads of a warp, which have been called or resumed, exchange values until none waits for its warp. */
static status run_exchanges(emulated_block *b, uint32_t first, uint32_t n) {
  while (b->threads[first].state.sync < 0) {
    TRY(check_together(b, first, n));
    CHECK_THAT(n == WARP, STATUS_INTERNAL, "kernel %s exchanges values in a part of a warp", b->launch->name);
    for (uint32_t k = first; k < first + n; k++) {
      memcpy(b->lanes[k], b->threads[k].state.values, sizeof b->lanes[k]);
    }
    note_exchange(b);
    resume_lanes(b, first, n);
  }
  return NULL;
}

/* Lets all threads run up to the next barrier or to their end, warp after warp.  `go` calls or resumes the threads of a
 * warp. */
static status run_warps(emulated_block *b, void (*go)(emulated_block *b, uint32_t first, uint32_t n)) {
  uint32_t threads = b->launch->threads, warps = (threads + WARP - 1) / WARP;
  note_barrier(b);
  for (uint32_t k = 0; k < warps; k++) {
    uint32_t first = ordered(b, k, warps) * WARP, n = threads - first < WARP ? threads - first : WARP;
    note_exchange(b);
    go(b, first, n);
    TRY(run_exchanges(b, first, n));
    TRY(check_races(b));
    TRY(check_fault(b));
  }
  return check_together(b, 0, threads);
}

/* --- blocks --- */

static status run_block(void *data) {
  emulated_block *b = data;
  memset(b->shared, 0xff, b->launch->shared_bytes);
  TRY(run_warps(b, call_lanes));
  while (b->threads->state.sync) {
    TRY(run_warps(b, resume_lanes));
  }
  return check_arrived(b);
}

/* Implements rt_block_thread.allocate.  If there is no memory, leaves the kernel by guard_fail: run_block is called
 * under a guard. */
static void *allocate(rt_block_thread *thread, int64_t bytes) {
  emulated_thread *t = (emulated_thread *)thread;
  if (bytes > t->frame_bytes) {
    free(t->frame);
    size_t whole = ((size_t)bytes + FRAME_ALIGN - 1) / FRAME_ALIGN * FRAME_ALIGN;
    t->frame = aligned_alloc(FRAME_ALIGN, whole);
    t->frame_bytes = t->frame ? (int64_t)whole : 0;
  }
  if (!t->frame) {
    out_of_memory();
  }
  return t->frame;
}

static void destroy(emulated_block *b) {
  for (uint32_t k = 0; b && b->threads && k < b->launch->threads; k++) {
    free(b->threads[k].frame);
  }
  if (b) {
    free(b->threads);
    free(b->shared);
    gpu_race_check_destroy(b->races);
    gpu_copies_destroy(b->copies);
  }
  free(b);
}

static emulated_block *create(const gpu_blocks *l) {
  emulated_block *b = calloc(1, sizeof *b);
  size_t shared = (l->shared_bytes / RT_BLOCK_SHARED_ALIGN + 1) * (size_t)RT_BLOCK_SHARED_ALIGN;
  if (b) {
    b->launch = l;
    b->threads = calloc(l->threads, sizeof *b->threads);
    b->shared = aligned_alloc(RT_BLOCK_SHARED_ALIGN, shared);
  }
  if (!b || !b->threads || !b->shared) {
    destroy(b);
    return NULL;
  }
  for (uint32_t k = 0; k < l->threads; k++) {
    b->threads[k].block = b;
    b->threads[k].state = (rt_block_thread){.thread = (int32_t)k,
                                            .threads = (int32_t)l->threads,
                                            .shared = b->shared,
                                            .lanes = b->lanes + k / WARP * WARP,
                                            .allocate = allocate,
                                            .access = note_access,
                                            .copy = begin_copy,
                                            .commit = commit_copies,
                                            .await = await_copies};
  }
  return b;
}

status gpu_run_blocks(const gpu_blocks *l, int64_t begin, int64_t end) {
  emulated_block *b = create(l);
  CHECK_THAT(b, STATUS_RESOURCE, "out of memory for the threads of an emulated block");
  status failed = NULL;
  for (b->number = begin; b->number < end && !failed; b->number++) {
    failed = guard_run(run_block, b);
  }
  destroy(b);
  return failed;
}
