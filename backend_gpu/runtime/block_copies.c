/* block_copies.c - see block_copies.h. */
#include "backend_gpu/runtime/block_copies.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = 4, UNDEFINED = 0xff };

typedef struct copy {
  char *to;
  const char *from;
  int32_t bytes, live;
  uint32_t group; /* the number of the thread's group that the copy is in, from 0 on */
} copy;

/* The copies of a thread, in the order in which they began: items [first, n) have not arrived. */
typedef struct queue {
  copy *items;
  uint32_t first, n, cap;
  uint32_t groups; /* how many groups the thread has made */
} queue;

struct gpu_copies {
  char *shared;
  uint32_t shared_bytes, threads;
  queue *queues;   /* one for each thread */
  uint16_t *owner; /* for each word of shared memory: 1 + the thread whose copy to it is under way, or 0 */
};

gpu_copies *gpu_copies_create(void *shared, uint32_t shared_bytes, uint32_t threads) {
  gpu_copies *c = calloc(1, sizeof *c);
  if (c) {
    *c = (gpu_copies){.shared = shared,
                      .shared_bytes = shared_bytes,
                      .threads = threads,
                      .queues = calloc(threads, sizeof *c->queues),
                      .owner = calloc(shared_bytes / WORD + 1, sizeof *c->owner)};
  }
  if (c && (!c->queues || !c->owner)) {
    gpu_copies_destroy(c);
    return NULL;
  }
  return c;
}

void gpu_copies_destroy(gpu_copies *c) {
  for (uint32_t k = 0; c && c->queues && k < c->threads; k++) {
    free(c->queues[k].items);
  }
  if (c) {
    free(c->queues);
    free(c->owner);
  }
  free(c);
}

/* --- which memory copies are under way to --- */

static bool is_shared(const gpu_copies *c, const char *at) {
  return at >= c->shared && at < c->shared + c->shared_bytes;
}

static void set_owner(gpu_copies *c, const copy *k, uint32_t owner) {
  for (int32_t byte = 0; byte < k->bytes; byte += WORD) {
    c->owner[(k->to + byte - c->shared) / WORD] = (uint16_t)owner;
  }
}

bool gpu_copies_pending(const gpu_copies *c, const void *at, int64_t bytes, uint32_t *thread) {
  const char *first = at;
  if (!is_shared(c, first)) {
    return false;
  }
  for (int64_t byte = 0; byte < bytes && is_shared(c, first + byte); byte++) {
    uint16_t owner = c->owner[(first + byte - c->shared) / WORD];
    if (owner) {
      *thread = owner - 1u;
      return true;
    }
  }
  return false;
}

bool gpu_copies_left(const gpu_copies *c, uint32_t *thread) {
  for (uint32_t k = 0; k < c->threads; k++) {
    if (c->queues[k].first < c->queues[k].n) {
      *thread = k;
      return true;
    }
  }
  return false;
}

/* --- copies --- */

static bool is_copy(const gpu_copies *c, const char *to, const void *from, int32_t bytes, int32_t live) {
  bool sized = (bytes == 4 || bytes == 8 || bytes == 16) && live >= 0 && live <= bytes;
  return sized && (uintptr_t)from % (uintptr_t)bytes == 0 && is_shared(c, to) && is_shared(c, to + bytes - 1) &&
         (to - c->shared) % bytes == 0;
}

static bool make_room(queue *q) {
  if (q->first == q->n) {
    q->first = q->n = 0;
  }
  if (q->n == q->cap) {
    uint32_t cap = q->cap ? 2 * q->cap : 16;
    copy *items = realloc(q->items, cap * sizeof *items);
    if (!items) {
      return false;
    }
    q->items = items;
    q->cap = cap;
  }
  return true;
}

gpu_copy_result gpu_copies_begin(gpu_copies *c, uint32_t thread, void *to, const void *from, int32_t bytes,
                                 int32_t live) {
  queue *q = &c->queues[thread];
  uint32_t other;
  if (!is_copy(c, to, from, bytes, live)) {
    return GPU_COPY_OUTSIDE;
  }
  if (gpu_copies_pending(c, to, bytes, &other)) {
    return GPU_COPY_TWICE;
  }
  if (!make_room(q)) {
    return GPU_COPY_NO_MEMORY;
  }
  copy *k = &q->items[q->n++];
  *k = (copy){to, from, bytes, live, q->groups};
  set_owner(c, k, thread + 1);
  memset(to, UNDEFINED, (size_t)bytes);
  return GPU_COPY_BEGUN;
}

void gpu_copies_commit(gpu_copies *c, uint32_t thread) { c->queues[thread].groups++; }

bool gpu_copies_arrive(gpu_copies *c, uint32_t thread, int32_t groups, void **to, int32_t *bytes) {
  queue *q = &c->queues[thread];
  if (q->first == q->n || (int64_t)q->items[q->first].group + groups >= (int64_t)q->groups) {
    return false;
  }
  const copy *k = &q->items[q->first++];
  memcpy(k->to, k->from, (size_t)k->live);
  memset(k->to + k->live, 0, (size_t)(k->bytes - k->live));
  set_owner(c, k, 0);
  *to = k->to;
  *bytes = k->bytes;
  return true;
}
