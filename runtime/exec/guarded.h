/* guarded.h - memory between pages that must not be accessed, for checked runs (check_memory.h).  The first access to
 * these pages, or write to memory that guarded_protect made read-only, is recorded, and the program continues. */
#ifndef RUNTIME_EXEC_GUARDED_H
#define RUNTIME_EXEC_GUARDED_H

#include "base/arena.h"

/* Memory between inaccessible pages.  It ends at the end of a page, or as near to it as its alignment permits. */
typedef struct guarded {
  uint8_t *data, *pages; /* pages is where the readable pages begin */
  /* bytes: the size of data; page_bytes: the size of the readable pages (data lies at their end) */
  size_t bytes, page_bytes;
  uint8_t *map;     /* the whole mapping, with the inaccessible pages */
  size_t map_bytes; /* the size of map */
  bool is_protected;
  struct guarded *next; /* the next one in a list of guarded_pool.spare */
} guarded;

/* A pool of guarded memory for short use.  Small pieces are kept for the next use, since mapping them takes longer than
 * most uses. */
typedef struct guarded_pool {
  arena *arena;
  guarded *spare[17]; /* lists of unused memory, one for each number of pages */
} guarded_pool;

/* Like guarded_create on the arena `user`, but when `user` is destroyed, a small piece of memory returns to the pool
 * and is not unmapped.  That must happen before the pool's arena is destroyed. */
guarded *guarded_take(guarded_pool *p, arena *user, size_t bytes, size_t align);
/* Returns memory aligned to `align` bytes that can be read and written until the arena is destroyed.  If memory runs
 * out, this jumps to the innermost guard_run. */
guarded *guarded_create(arena *a, size_t bytes, size_t align);
/* Returns address space of which no byte may be accessed. */
guarded *guarded_forbidden(arena *a, size_t bytes);
/* Makes the memory read-only from now on. */
STATUS_MUST_USE status guarded_protect(guarded *g);
/* Returns true if the address is in this memory or in the inaccessible pages around it. */
bool guarded_holds(const guarded *g, uintptr_t address);

typedef enum guarded_access { GUARDED_NONE, GUARDED_TOUCHED, GUARDED_READ, GUARDED_WRITTEN } guarded_access;

/* The first access that is not allowed during a call of guarded_run. */
typedef struct guarded_fault {
  guarded_access access; /* GUARDED_TOUCHED if the machine does not tell whether it was a read or a write */
  uintptr_t address;
} guarded_fault;

/* Calls fn(data) inside guard_run, and watches what all threads do to the n pieces of memory until it returns.  Only
 * one such call runs at a time in a process.  A fault at any other address ends the process as usual, after a line on
 * stderr that names `what`. */
STATUS_MUST_USE status guarded_run(uint32_t n, guarded *const *list, const char *what, status (*fn)(void *), void *data,
                                   guarded_fault *fault);

#endif
