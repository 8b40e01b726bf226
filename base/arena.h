/* arena.h - memory that is allocated piece by piece and freed as a whole (for a module, a pass, an executable).
 *
 * Allocation on an arena never returns NULL.  When memory or the budget is used up, it jumps (by longjmp) to the
 * innermost guard_run of the thread, which then returns a STATUS_RESOURCE.  Comments call this a jump to the guard.
 * Whatever must be undone after such a jump (file handles, library objects) is registered as a cleanup of an arena that
 * was created outside of that guard_run.  Only one thread at a time may use an arena. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct arena arena;

/* An allocator that is used in place of the system's.  `allocate` returns `bytes` bytes at a multiple of `align`, which
 * is a power of two, or NULL.  `release` gets the same numbers as the call of `allocate` that returned the memory.
 * Both functions are called from many threads at once. */
typedef struct mem_allocator {
  void *(*allocate)(void *data, size_t bytes, size_t align);
  void (*release)(void *data, void *memory, size_t bytes, size_t align);
  void *data;
} mem_allocator;

/* A limit of memory and time that several arenas share.  It may be used from many threads.  `used` and `limit` are in
 * bytes; a `limit` of 0 means that memory is not limited.  `deadline` is in nanoseconds of CLOCK_MONOTONIC; 0 means
 * that there is no deadline.  Any thread may cancel the work by setting `cancel` to 1. */
typedef struct mem_budget {
  _Atomic uint64_t used;
  uint64_t limit;
  uint64_t deadline;
  _Atomic int cancel;
  /* An outer budget, which also counts the memory of this one.  Its limit of memory and its cancellation apply to this
   * budget, too, but its deadline does not.  NULL if there is none. */
  struct mem_budget *outer;
  /* A flag outside of the budget that has the same effect as `cancel`; NULL if there is none. */
  const _Atomic int *stopped;
  /* The allocator of this budget and of those inside it.  NULL means the allocator of the outer budget, or the system's
   * if there is no outer budget. */
  const mem_allocator *allocator;
} mem_budget;

/* Returns STATUS_RESOURCE if the deadline has passed or the budget was cancelled.  Long loops call it.  With a NULL
 * budget it returns OK. */
STATUS_MUST_USE status budget_check(const mem_budget *b);
/* Returns true if budget_check would fail; for code that cannot return a status. */
bool budget_expired(const mem_budget *b);
/* Allocates memory that belongs to no arena and is not cleared.  The budget counts it, unless `b` is NULL.  `bytes` is
 * rounded up to a multiple of `align`, a power of two.  Returns NULL if the budget or the system has no more. */
void *budget_alloc(mem_budget *b, size_t bytes, size_t align);
/* Frees memory that budget_alloc returned; bytes and align must be those with which it was called.  NULL is allowed. */
void budget_free(mem_budget *b, void *memory, size_t bytes, size_t align);

/* The budget may be NULL.  If there is no memory, this jumps to the innermost guard_run. */
arena *arena_create(mem_budget *budget);
/* Runs the cleanups, the newest first, then frees all memory.  NULL is allowed. */
void arena_destroy(arena *a);
mem_budget *arena_budget(const arena *a);
/* Returns the place where base/file.c keeps the list of the files that are mapped until the arena is destroyed. */
_Atomic(void *) *arena_files(arena *a);
/* Returns true if the address lies in memory of the arena. */
bool arena_holds(const arena *a, const void *data);
/* Returns the number of bytes that the arena has taken from the system so far. */
size_t arena_used(const arena *a);

/* Return zeroed memory, aligned to 16 bytes, or to `align`, which is a power of two up to 4096. */
void *arena_alloc(arena *a, size_t size) __attribute__((malloc, returns_nonnull, alloc_size(2)));
void *arena_alloc_aligned(arena *a, size_t size, size_t align) __attribute__((malloc, returns_nonnull));
/* Returns zeroed memory for count * size bytes; an overflow of the product counts as running out of memory. */
void *arena_calloc(arena *a, size_t count, size_t size) __attribute__((malloc, returns_nonnull));
#define ARENA_NEW(a, type) ((type *)arena_calloc((a), 1, sizeof(type)))
#define ARENA_NEW_N(a, type, n) ((type *)arena_calloc((a), (n), sizeof(type)))

/* Returns new_size bytes that begin with the first old_size bytes of `old`; further bytes are zero.  `old` may be NULL
 * if old_size is 0.  The memory of `old` is not freed. */
void *arena_grow(arena *a, const void *old, size_t old_size, size_t new_size);
void *arena_memdup(arena *a, const void *data, size_t size);
char *arena_strdup(arena *a, const char *text);
char *arena_strndup(arena *a, const char *text, size_t n); /* Copies at most n bytes; stops at a 0. */
char *arena_printf(arena *a, const char *format, ...) STATUS_PRINTF(2, 3);

/* A text on an arena to which parts are appended. */
typedef struct text_builder {
  arena *arena;
  char *chars;
  uint32_t n, cap;
} text_builder;
void text_builder_put(text_builder *t, const char *s);
void text_builder_put_number(text_builder *t, int64_t number);
/* Ends the text, and returns it. */
const char *text_builder_end(text_builder *t);

/* Registers a cleanup: fn(data) is called when the arena is destroyed.  If there is no memory for registering it,
 * fn(data) is called at once, before the jump to the innermost guard_run. */
void arena_cleanup(arena *a, void (*fn)(void *), void *data);

/* Appends to a growing array that is kept as a pointer, a uint32 count and a uint32 capacity, and returns a pointer to
 * the new, zeroed element:
 *   *ARENA_PUSH(a, list->items, list->n, list->cap) = item;
 * The array may move.  Then pointers to its elements must not be used any more; AddressSanitizer reports it if they
 * are. */
#define ARENA_PUSH(a, items, n, cap) \
  ((n) == (cap) ? (void)((items) = arena_push_grow((a), (items), &(cap), sizeof *(items))) : (void)0, &(items)[(n)++])
void *arena_push_grow(arena *a, void *items, uint32_t *cap, size_t item_size);

/* Runs fn(data) and returns its status.  If memory runs out in fn or in what it calls, fn is left by a jump, and a
 * STATUS_RESOURCE is returned. */
STATUS_MUST_USE status guard_run(status (*fn)(void *), void *data);
/* Jumps to the innermost guard_run of the thread, as a failing allocation does.  `what` becomes the message.
 * Allocators that do not belong to an arena call this. */
_Noreturn void guard_fail(const char *what);

/* A process may contain several copies of this library, in shared objects that call each other.  A copy that opens
 * another copy gives its guard functions to the other copy (guard_adopt) before anything else runs in the other copy.
 * Then a jump goes to the innermost guard_run of the thread, whichever copy runs out of memory. */
typedef struct guard_owner {
  status (*run)(status (*fn)(void *), void *data);
  void (*fail)(const char *what); /* does not return */
} guard_owner;
const guard_owner *guard_here(void);
void guard_adopt(const guard_owner *other);

#endif
