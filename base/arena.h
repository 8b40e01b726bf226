/* arena.h - memory that lives and dies together (a module, a pass, an executable).
 *
 * Allocation never returns NULL: when memory or the budget is used up, it jumps to the innermost
 * guard_run of this thread, which returns a STATUS_RESOURCE.  Everything that must be undone on the
 * way (file handles, library objects) is a cleanup of some arena whose owner stands outside the guard.
 * An arena is used by one thread at a time. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct arena arena;

/* Where memory comes from, in place of the system's.  allocate gives `bytes` at a multiple of `align`, a power of two,
 * or NULL; what it gave comes back with the same numbers.  Both are called from many threads at once. */
typedef struct mem_allocator {
  void *(*allocate)(void *data, size_t bytes, size_t align);
  void (*release)(void *data, void *memory, size_t bytes, size_t align);
  void *data;
} mem_allocator;

/* A budget shared by several arenas, safe to use from many threads.  limit 0 means no limit.
 * deadline is in nanoseconds of CLOCK_MONOTONIC, 0 means none; cancel may be set by anybody. */
typedef struct mem_budget {
  _Atomic uint64_t used;
  uint64_t limit;
  uint64_t deadline;
  _Atomic int cancel;
  struct mem_budget *outer;       /* memory counts there too and its limit holds; its deadline does not.  NULL: none */
  const _Atomic int *stopped;     /* a flag of somebody else's that counts like cancel.  NULL: none */
  const mem_allocator *allocator; /* of it and those inside it.  NULL: the outer one's, at last the system's */
} mem_budget;

/* STATUS_RESOURCE once the deadline has passed or cancel is set; call it in long loops.  NULL budget: OK. */
STATUS_MUST_USE status budget_check(const mem_budget *b);
/* Whether budget_check would fail, for code that cannot return a status. */
bool budget_expired(const mem_budget *b);
/* Memory beside arenas that the budget (NULL: none) counts; bytes are rounded up to `align`, a power of two.  NULL when
 * it or the system has no more. */
void *budget_alloc(mem_budget *b, size_t bytes, size_t align);
/* bytes and align as they were; NULL is fine. */
void budget_free(mem_budget *b, void *memory, size_t bytes, size_t align);

/* budget may be NULL.  Jumps like arena_alloc when memory is out. */
arena *arena_create(mem_budget *budget);
/* Runs the cleanups, newest first, then frees all.  NULL is fine. */
void arena_destroy(arena *a);
mem_budget *arena_budget(const arena *a);
/* Where base/file.h keeps the list of files that are mapped for its life. */
_Atomic(void *) *arena_files(arena *a);
/* Whether the address lies in its memory. */
bool arena_holds(const arena *a, const void *data);
/* Bytes taken from the system so far. */
size_t arena_used(const arena *a);

/* Zeroed memory, aligned to 16 bytes (arena_alloc_aligned: to `align`, a power of two up to 4096). */
void *arena_alloc(arena *a, size_t size) __attribute__((malloc, returns_nonnull, alloc_size(2)));
void *arena_alloc_aligned(arena *a, size_t size, size_t align) __attribute__((malloc, returns_nonnull));
/* count * size with an overflow check. */
void *arena_calloc(arena *a, size_t count, size_t size) __attribute__((malloc, returns_nonnull));
#define ARENA_NEW(a, type) ((type *)arena_calloc((a), 1, sizeof(type)))
#define ARENA_NEW_N(a, type, n) ((type *)arena_calloc((a), (n), sizeof(type)))

/* A grown copy of an array that was allocated here (old may be NULL). */
void *arena_grow(arena *a, const void *old, size_t old_size, size_t new_size);
void *arena_memdup(arena *a, const void *data, size_t size);
char *arena_strdup(arena *a, const char *text);
char *arena_strndup(arena *a, const char *text, size_t n); /* stops at a 0 */
char *arena_printf(arena *a, const char *format, ...) STATUS_PRINTF(2, 3);

/* Calls fn(data) when the arena is destroyed; at once when there is no memory to remember it (then it jumps). */
void arena_cleanup(arena *a, void (*fn)(void *), void *data);

/* Appends to a growing array kept as (pointer, uint32 count, uint32 capacity); gives a pointer to the new, zeroed
 * slot:   *ARENA_PUSH(a, list->items, list->n, list->cap) = item;
 * The array may move: pointers into it from before are of no use, and AddressSanitizer reports them. */
#define ARENA_PUSH(a, items, n, cap) \
  ((n) == (cap) ? (void)((items) = arena_push_grow((a), (items), &(cap), sizeof *(items))) : (void)0, &(items)[(n)++])
void *arena_push_grow(arena *a, void *items, uint32_t *cap, size_t item_size);

/* Runs fn(data) so that running out of memory inside it becomes the returned status. */
STATUS_MUST_USE status guard_run(status (*fn)(void *), void *data);
/* What allocation does when it fails; for other allocators that join the scheme. */
_Noreturn void guard_fail(const char *what);

/* A process may have several copies of this library, in shared objects that call each other.  Who opens another hands
 * its guards over, before anything runs there: then a guard holds whatever copy memory runs out in. */
typedef struct guard_owner {
  status (*run)(status (*fn)(void *), void *data);
  void (*fail)(const char *what); /* does not return */
} guard_owner;
const guard_owner *guard_here(void);
void guard_adopt(const guard_owner *other);

#endif
