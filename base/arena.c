/* arena.c - arenas as lists of chunks of memory, nested budgets, and guard_run by setjmp and longjmp. */
#include "base/arena.h"

#include <assert.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/locale.h"
#include "base/poison.h"

typedef struct chunk {
  struct chunk *next;
  size_t size, used; /* the bytes after this header, and how many are in use */
} chunk;

typedef struct cleanup {
  struct cleanup *next;
  void (*fn)(void *);
  void *data;
} cleanup;

struct arena {
  mem_budget *budget;
  chunk *chunks; /* memory is taken from the first one only */
  cleanup *cleanups;
  size_t total;
  _Atomic(void *) files;
};

enum { CHUNK_MIN = 16 * 1024, CHUNK_MAX = 1024 * 1024, ALIGN = 16, CHUNK_ALIGN = _Alignof(max_align_t) };

/* --- guards --- */

typedef struct guard {
  struct guard *outer;
  jmp_buf jump;
  const char *what;
} guard;

static _Thread_local guard *innermost;

static status run_here(status (*fn)(void *), void *data) {
  guard g = {.outer = innermost};
  status s;
  if (setjmp(g.jump) == 0) {
    innermost = &g;
    s = fn(data);
  } else {
    s = status_error(STATUS_RESOURCE, "%s", innermost->what);
  }
  innermost = g.outer;
  return s;
}

static void fail_here(const char *what) {
  if (!innermost) {
    fprintf(stderr, "onnx-xla: %s outside of a guard\n", what);
    abort(); /* a bug of this library: every public function must allocate inside guard_run */
  }
  innermost->what = what;
  longjmp(innermost->jump, 1);
}

static const guard_owner own = {run_here, fail_here};
static const guard_owner *_Atomic owner = &own;

const guard_owner *guard_here(void) { return atomic_load(&owner); }

void guard_adopt(const guard_owner *other) { atomic_store(&owner, other); }

status guard_run(status (*fn)(void *), void *data) { return guard_here()->run(fn, data); }

void guard_fail(const char *what) {
  guard_here()->fail(what);
  abort();
}

/* --- budgets --- */

static bool is_set(const _Atomic int *flag) {
  return flag && atomic_load_explicit((_Atomic int *)flag, memory_order_relaxed);
}

static bool is_cancelled(const mem_budget *b) {
  for (; b; b = b->outer) {
    if (is_set(&b->cancel) || is_set(b->stopped)) {
      return true;
    }
  }
  return false;
}

static bool is_late(const mem_budget *b) { return b && b->deadline && clock_nanoseconds() > b->deadline; }

bool budget_expired(const mem_budget *b) { return is_cancelled(b) || is_late(b); }

status budget_check(const mem_budget *b) {
  CHECK_THAT(!is_cancelled(b), STATUS_RESOURCE, "cancelled");
  CHECK_THAT(!is_late(b), STATUS_RESOURCE, "the time limit has passed");
  return NULL;
}

static void budget_give(mem_budget *b, size_t size) {
  for (; b; b = b->outer) {
    atomic_fetch_sub(&b->used, size);
  }
}

/* Counts the memory in this budget and in all outer ones.  Returns false, and counts nothing, if a limit would be
 * exceeded. */
static bool budget_take(mem_budget *all, size_t size) {
  for (mem_budget *b = all; b; b = b->outer) {
    uint64_t used = atomic_fetch_add(&b->used, size) + size;
    if (b->limit && used > b->limit) {
      mem_budget *end = b->outer;
      for (b = all; b != end; b = b->outer) {
        atomic_fetch_sub(&b->used, size);
      }
      return false;
    }
  }
  return true;
}

static size_t rounded(size_t bytes, size_t align) {
  return bytes > SIZE_MAX / 2 ? 0 : (bytes + (bytes == 0) + align - 1) & ~(align - 1);
}

static const mem_allocator *allocator_of(const mem_budget *b) {
  while (b && !b->allocator) {
    b = b->outer;
  }
  return b ? b->allocator : NULL;
}

/* Asks the system for huge pages if the memory has LARGE bytes or more, and returns `memory`, which may be NULL.  Most
 * large memory holds weights and arrays, which are written as a whole.  Huge pages save page faults before the first
 * result, and TLB misses in each run. */
static void *use_large_pages(void *memory, size_t size) {
  enum { PAGE = 4096, LARGE = 1 << 18 };
  uintptr_t start = ((uintptr_t)memory + PAGE - 1) & ~(uintptr_t)(PAGE - 1),
            end = ((uintptr_t)memory + size) & ~(uintptr_t)(PAGE - 1);
  if (memory && size >= LARGE) {
    (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
  }
  return memory;
}

/* Allocates memory that is not cleared. */
static void *system_alloc(const mem_budget *b, size_t size, size_t align) {
  const mem_allocator *from = allocator_of(b);
  return from ? from->allocate(from->data, size, align) : use_large_pages(aligned_alloc(align, size), size);
}

static void system_free(const mem_budget *b, void *memory, size_t size, size_t align) {
  const mem_allocator *from = allocator_of(b);
  from ? from->release(from->data, memory, size, align) : free(memory);
}

void *budget_alloc(mem_budget *b, size_t bytes, size_t align) {
  size_t size = rounded(bytes, align);
  if (!size || !budget_take(b, size)) {
    return NULL;
  }
  void *memory = system_alloc(b, size, align);
  if (!memory) {
    budget_give(b, size);
  }
  return memory;
}

void budget_free(mem_budget *b, void *memory, size_t bytes, size_t align) {
  if (memory) {
    system_free(b, memory, rounded(bytes, align), align);
    budget_give(b, rounded(bytes, align));
  }
}

/* --- arenas --- */

arena *arena_create(mem_budget *budget) {
  arena *a = calloc(1, sizeof *a);
  if (!a) {
    guard_fail("out of memory");
  }
  a->budget = budget;
  return a;
}

void arena_destroy(arena *a) {
  if (!a) {
    return;
  }
  while (a->cleanups) {
    cleanup *c = a->cleanups;
    a->cleanups = c->next;
    c->fn(c->data);
  }
  while (a->chunks) {
    chunk *next = a->chunks->next;
    UNPOISON(a->chunks + 1, a->chunks->size);
    system_free(a->budget, a->chunks, sizeof(chunk) + a->chunks->size, CHUNK_ALIGN);
    a->chunks = next;
  }
  budget_give(a->budget, a->total);
  free(a);
}

mem_budget *arena_budget(const arena *a) { return a->budget; }

_Atomic(void *) *arena_files(arena *a) { return &a->files; }

bool arena_holds(const arena *a, const void *data) {
  const chunk *c = a->chunks;
  while (c && ((const char *)data < (const char *)(c + 1) || (const char *)data >= (const char *)(c + 1) + c->size)) {
    c = c->next;
  }
  return c != NULL;
}

size_t arena_used(const arena *a) { return a->total; }

/* Allocates zeroed memory.  The system's calloc is used unless the budget has an allocator, since fresh pages are zero
 * already and cost nothing until they are written. */
static void *zeroed_alloc(const mem_budget *b, size_t size) {
  if (!allocator_of(b)) {
    return use_large_pages(calloc(1, size), size);
  }
  void *memory = system_alloc(b, size, CHUNK_ALIGN);
  return memory ? memset(memory, 0, size) : NULL;
}

static const char out_of_memory[] = "out of memory";

/* Adds a chunk with room for `size` bytes at any alignment up to `align`.  Returns NULL and sets *why if there is no
 * memory.  The size of chunks grows with the arena, so that a large arena has few chunks and a small one wastes little.
 * A chunk for a single large array is inserted behind the first chunk of the list, so that the room that is left in the
 * first one is still used. */
static chunk *add_chunk(arena *a, size_t size, size_t align, const char **why) {
  size_t want = a->total < CHUNK_MIN ? CHUNK_MIN : a->total > CHUNK_MAX ? CHUNK_MAX : a->total;
  *why = out_of_memory;
  if (size > SIZE_MAX / 2) {
    return NULL;
  }
  bool large = want < size + align;
  want = large ? size + align : want;
  if (!budget_take(a->budget, want)) {
    *why = "the memory limit is used up";
    return NULL;
  }
  chunk *c = zeroed_alloc(a->budget, sizeof *c + want);
  if (!c) {
    budget_give(a->budget, want);
    return NULL;
  }
  c->size = want;
  POISON(c + 1, want);
  chunk **place = large && a->chunks ? &a->chunks->next : &a->chunks;
  c->next = *place;
  *place = c;
  a->total += want;
  return c;
}

static size_t padding(const chunk *c, size_t align) {
  uintptr_t at = (uintptr_t)(c + 1) + c->used;
  return (size_t)(-at & (align - 1));
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Returns zeroed memory, since chunks are zeroed and no part of them is used twice.  Returns NULL and sets *why if
 * there is no memory. */
static void *try_alloc(arena *a, size_t size, size_t align, const char **why) {
  chunk *c = a->chunks;
  if (!c || padding(c, align) > c->size - c->used || size > c->size - c->used - padding(c, align)) {
    c = add_chunk(a, size, align, why);
    if (!c) {
      return NULL;
    }
  }
  size_t start = c->used + padding(c, align);
  c->used = least(start + size + POISON_GAP, c->size);
  UNPOISON((char *)(c + 1) + start, size);
  return (char *)(c + 1) + start;
}

void *arena_alloc_aligned(arena *a, size_t size, size_t align) {
  assert(align && !(align & (align - 1)) && align <= 4096);
  const char *why;
  void *memory = try_alloc(a, size, align, &why);
  if (!memory) {
    guard_fail(why);
  }
  return memory;
}

void *arena_alloc(arena *a, size_t size) { return arena_alloc_aligned(a, size, ALIGN); }

void *arena_calloc(arena *a, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    guard_fail("out of memory");
  }
  return arena_alloc(a, bytes);
}

void *arena_grow(arena *a, const void *old, size_t old_size, size_t new_size) {
  void *grown = arena_alloc(a, new_size);
  if (old_size) {
    memcpy(grown, old, old_size < new_size ? old_size : new_size);
  }
  return grown;
}

void *arena_push_grow(arena *a, void *items, uint32_t *cap, size_t item_size) {
  uint32_t grown = *cap ? *cap * 2 : 8;
  if (grown < *cap || (size_t)grown > SIZE_MAX / item_size) {
    guard_fail("out of memory");
  }
  void *copy = arena_grow(a, items, *cap * item_size, grown * item_size);
  /* pointers to the old array must not be used any more, since later elements are in the copy only */
  POISON(items, *cap * item_size);
  *cap = grown;
  return copy;
}

void *arena_memdup(arena *a, const void *data, size_t size) {
  void *copy = arena_alloc(a, size);
  if (size) {
    memcpy(copy, data, size);
  }
  return copy;
}

char *arena_strndup(arena *a, const char *text, size_t n) {
  n = n ? strnlen(text, n) : 0;
  char *copy = arena_alloc(a, n + 1);
  if (n) {
    memcpy(copy, text, n);
  }
  return copy;
}

char *arena_strdup(arena *a, const char *text) { return arena_strndup(a, text, strlen(text)); }

/* Formats into an array of fixed size first: most texts fit into it, and only longer ones are formatted twice. */
char *arena_printf(arena *a, const char *format, ...) {
  char start[128];
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int n = c_vsnprintf(start, sizeof start, format, args);
  va_end(args);
  size_t length = n < 0 ? 0 : (size_t)n;
  char *text = arena_alloc(a, length + 1);
  if (length < sizeof start) {
    memcpy(text, start, length);
  } else {
    c_vsnprintf(text, length + 1, format, again);
  }
  va_end(again);
  return text;
}

void text_builder_put(text_builder *t, const char *s) {
  for (; *s; s++) {
    *ARENA_PUSH(t->arena, t->chars, t->n, t->cap) = *s;
  }
}

void text_builder_put_number(text_builder *t, int64_t number) {
  char digits[24];
  size_t at = sizeof digits - 1;
  digits[at] = 0;
  uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
  do {
    digits[--at] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest);
  if (number < 0) {
    digits[--at] = '-';
  }
  text_builder_put(t, digits + at);
}

const char *text_builder_end(text_builder *t) {
  *ARENA_PUSH(t->arena, t->chars, t->n, t->cap) = 0;
  return t->chars;
}

void arena_cleanup(arena *a, void (*fn)(void *), void *data) {
  const char *why;
  cleanup *c = try_alloc(a, sizeof *c, ALIGN, &why);
  if (!c) {
    fn(data);
    guard_fail(why);
  }
  *c = (cleanup){a->cleanups, fn, data};
  a->cleanups = c;
}
