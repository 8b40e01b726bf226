/* race_check.c - see race_check.h.
 *
 * Time is counted in waits: the time of an access is that of the last wait before it.  Two accesses are ordered if a
 * barrier came between them, or if both threads are of one warp and one of its exchanges came between.  For each byte,
 * the last write and up to three reads are remembered, which are enough to find a race of a write with any read since
 * the last barrier. */
#include "backend_gpu/runtime/race_check.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/block_abi.h"

enum { WORD = 8, FEW = 256, MANY = 1 << 14, THREAD_BITS = 10 };

_Static_assert(1 << THREAD_BITS == RT_BLOCK_MOST_THREADS, "a thread's number has room in an event");

/* The time of an access and the thread that did it, or 0 if there was no access. */
typedef uint64_t event;

/* The accesses to a byte. */
typedef struct trace {
  event write, read; /* the last write, and the last read */
  event near;        /* the last read by another thread of the warp that has done `read` */
  event far;         /* a read by another warp, since the barrier that came before `read` */
} trace;

/* The traces of the bytes of an aligned word, whose number is its address divided by WORD.  Number 0 marks an empty
 * entry. */
typedef struct entry {
  uintptr_t number;
  trace bytes[WORD];
} entry;

struct gpu_race_check {
  uint64_t now, barrier, exchange; /* now: the number of waits so far; barrier, exchange: `now` after the last wait at a
                                      barrier, and after the last wait of either kind */
  entry *entries;                  /* a hash table with room for `cap` words, a power of two, at most half full */
  size_t n, cap;
};

/* --- the table --- */

gpu_race_check *gpu_race_check_create(void) {
  gpu_race_check *c = malloc(sizeof *c);
  if (c) {
    *c = (gpu_race_check){.now = 1, .barrier = 1, .exchange = 1, .cap = FEW, .entries = calloc(FEW, sizeof(entry))};
  }
  if (c && !c->entries) {
    free(c);
    return NULL;
  }
  return c;
}

void gpu_race_check_destroy(gpu_race_check *c) {
  if (c) {
    free(c->entries);
    free(c);
  }
}

/* Returns the word's place, or the empty one where it belongs. */
static entry *find(const gpu_race_check *c, uintptr_t number) {
  const uint64_t spread = 0x9e3779b97f4a7c15u; /* 2^64 divided by the golden ratio (Knuth) */
  size_t at = (size_t)((number * spread) >> 32) & (c->cap - 1);
  while (c->entries[at].number && c->entries[at].number != number) {
    at = (at + 1) & (c->cap - 1);
  }
  return &c->entries[at];
}

static bool grow(gpu_race_check *c) {
  gpu_race_check larger = *c;
  larger.cap = 2 * c->cap;
  larger.entries = calloc(larger.cap, sizeof *larger.entries);
  if (!larger.entries) {
    return false;
  }
  for (size_t k = 0; k < c->cap; k++) {
    if (c->entries[k].number) {
      *find(&larger, c->entries[k].number) = c->entries[k];
    }
  }
  free(c->entries);
  *c = larger;
  return true;
}

/* Returns NULL if there is no memory. */
static entry *entry_of(gpu_race_check *c, uintptr_t number) {
  entry *e = find(c, number);
  if (!e->number) {
    if (2 * c->n >= c->cap) {
      if (!grow(c)) {
        return NULL;
      }
      e = find(c, number);
    }
    e->number = number;
    c->n++;
  }
  return e;
}

/* --- accesses --- */

static uint64_t time_of(event e) { return e >> THREAD_BITS; }
static uint32_t thread_of(event e) { return (uint32_t)(e & (RT_BLOCK_MOST_THREADS - 1)); }
static bool same_warp(event a, event b) { return thread_of(a) / RT_BLOCK_WARP == thread_of(b) / RT_BLOCK_WARP; }

/* Returns true if nothing orders `before` and the access `after`, which is done now. */
static bool unordered(const gpu_race_check *c, event before, event after) {
  bool waited = time_of(before) < (same_warp(before, after) ? c->exchange : c->barrier);
  return before && !waited && thread_of(before) != thread_of(after);
}

/* Returns the access, or 0 if it was before the last barrier. */
static event recent(const gpu_race_check *c, event e) { return time_of(e) >= c->barrier ? e : 0; }

static void add_read(const gpu_race_check *c, trace *t, event now) {
  event last = recent(c, t->read), far = recent(c, t->far);
  if (last && !same_warp(last, now)) {
    t->near = far && same_warp(far, now) ? far : 0;
    far = last;
  } else if (last && thread_of(last) != thread_of(now)) {
    t->near = last;
  }
  t->far = far;
  t->read = now;
}

/* Returns true if an earlier access to the byte and the access `now` are a race, and sets *with to the earlier one. */
static bool races(const gpu_race_check *c, const trace *t, event now, bool writes, event *with) {
  const event earlier[] = {t->write, t->read, t->near, t->far};
  for (int k = 0; k < (writes ? 4 : 1); k++) {
    if (unordered(c, earlier[k], now)) {
      *with = earlier[k];
      return true;
    }
  }
  return false;
}

static bool access_byte(const gpu_race_check *c, trace *t, event now, bool writes, const void *at, gpu_race *found) {
  event with;
  if (races(c, t, now, writes, &with)) {
    uint32_t self = thread_of(now), other = thread_of(with);
    *found = writes ? (gpu_race){at, self, other, with == t->write} : (gpu_race){at, other, self, false};
    return true;
  }
  if (writes) {
    t->write = now;
  } else {
    add_read(c, t, now);
  }
  return false;
}

bool gpu_race_check_access(gpu_race_check *c, uint32_t thread, const void *at, int64_t bytes, bool writes,
                           gpu_race *found, bool *no_memory) {
  const event now = c->now << THREAD_BITS | thread;
  uintptr_t first = (uintptr_t)at, past = first + (uintptr_t)bytes;
  *no_memory = false;
  for (uintptr_t k = first, end; k < past; k = end) {
    entry *e = entry_of(c, k / WORD);
    end = (k / WORD + 1) * WORD < past ? (k / WORD + 1) * WORD : past;
    if (!e) {
      *no_memory = true;
      return false;
    }
    for (uintptr_t j = k; j < end; j++) {
      if (access_byte(c, &e->bytes[j % WORD], now, writes, (const char *)at + (j - first), found)) {
        return true;
      }
    }
  }
  return false;
}

/* --- waits --- */

void gpu_race_check_exchange(gpu_race_check *c) { c->exchange = ++c->now; }

/* Every access before a barrier is ordered with all accesses after it, so the table may be emptied if it is large. */
void gpu_race_check_barrier(gpu_race_check *c) {
  c->barrier = c->exchange = ++c->now;
  if (c->n > MANY) {
    memset(c->entries, 0, c->cap * sizeof *c->entries);
    c->n = 0;
  }
}
