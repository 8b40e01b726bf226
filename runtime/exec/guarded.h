/* guarded.h - memory between pages that must not be accessed, for checked runs (check_memory.h).  A wrong access is
 * recorded, and the program continues. */
#ifndef RUNTIME_EXEC_GUARDED_H
#define RUNTIME_EXEC_GUARDED_H

#include "base/arena.h"

/* Memory that ends where a page ends, as nearly as an alignment of 64 permits, with forbidden pages before and behind
 * it. */
typedef struct guarded {
  uint8_t *data, *pages;    /* data is aligned to 64 bytes; pages is the first byte that may be read */
  size_t bytes, page_bytes; /* the bytes of data; and all bytes that may be read, at whose end data is */
  uint8_t *map;
  size_t map_bytes; /* including the forbidden pages */
  bool is_protected;
  struct guarded *next; /* the next one in a pool */
} guarded;

/* Memory for short use.  Small pieces are kept for the next use, since mapping them takes longer than most uses. */
typedef struct guarded_pool {
  arena *arena;
  guarded *spare[17]; /* lists of free memory, by the number of pages */
} guarded_pool;

/* Like guarded_create, but the memory returns to the pool when the arena `user` is destroyed, which must be before the
 * pool's arena is. */
guarded *guarded_take(guarded_pool *p, arena *user, size_t bytes);
/* Returns memory that can be read and written until the arena is destroyed.  Jumps to the guard if memory runs out. */
guarded *guarded_create(arena *a, size_t bytes);
/* Returns bytes that must not be accessed at all. */
guarded *guarded_forbidden(arena *a, size_t bytes);
/* Makes the memory read-only from now on. */
STATUS_MUST_USE status guarded_protect(guarded *g);
/* Returns true if the address is in its pages, including the forbidden ones. */
bool guarded_holds(const guarded *g, uintptr_t address);

typedef enum guarded_access { GUARDED_NONE, GUARDED_TOUCHED, GUARDED_READ, GUARDED_WRITTEN } guarded_access;

/* The first wrong access during a call. */
typedef struct guarded_fault {
  guarded_access access; /* GUARDED_TOUCHED if the machine does not tell more */
  uintptr_t address;
} guarded_fault;

/* Calls fn(data) in a guard of its own, and watches what it and other threads do to the n pieces of memory meanwhile.
 * Only one such call runs at a time in a process.  Other faults end the process as usual, after a line on stderr that
 * names `what`. */
STATUS_MUST_USE status guarded_run(uint32_t n, guarded *const *list, const char *what, status (*fn)(void *), void *data,
                                   guarded_fault *fault);

#endif
