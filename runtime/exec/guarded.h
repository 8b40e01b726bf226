/* guarded.h - memory between pages that nobody may touch, for checked runs (check_memory.h): which access to
 * it was wrong is noted, and the program goes on. */
#ifndef RUNTIME_EXEC_GUARDED_H
#define RUNTIME_EXEC_GUARDED_H

#include "base/arena.h"

/* Bytes that end where a page ends, as nearly as an alignment of 64 allows; forbidden pages before and
 * behind. */
typedef struct guarded {
  uint8_t *data, *pages;    /* aligned to 64 bytes; the first byte that may be read */
  size_t bytes, page_bytes; /* data's; all that may be read, which data lies at the end of */
  uint8_t *map;
  size_t map_bytes; /* with the forbidden pages */
  bool is_protected;
  struct guarded *next; /* in a pool */
} guarded;

/* Pieces of memory for short use: small ones are kept for the next, since mapping them takes longer than most
 * uses. */
typedef struct guarded_pool {
  arena *arena;
  guarded *spare[17]; /* by number of pages */
} guarded_pool;

/* Like guarded_create; it is given back when the arena `user` is destroyed, which must be before the pool's
 * is. */
guarded *guarded_take(guarded_pool *p, arena *user, size_t bytes);
/* Readable and writable, until the arena is destroyed.  Jumps when memory is out. */
guarded *guarded_create(arena *a, size_t bytes);
/* As many forbidden bytes. */
guarded *guarded_forbidden(arena *a, size_t bytes);
/* From now on it may only be read. */
STATUS_MUST_USE status guarded_protect(guarded *g);
/* Returns true if the address is one of its pages', forbidden ones included. */
bool guarded_holds(const guarded *g, uintptr_t address);

typedef enum guarded_access { GUARDED_NONE, GUARDED_TOUCHED, GUARDED_READ, GUARDED_WRITTEN } guarded_access;

/* The first wrong access of a call. */
typedef struct guarded_fault {
  guarded_access access; /* GUARDED_TOUCHED where the machine does not tell more */
  uintptr_t address;
} guarded_fault;

/* Calls fn(data), in a guard of its own; what it and other threads do to the n pieces of memory meanwhile is
 * looked at.  One such call runs at a time in a process.  Other faults end the process as ever, after a line
 * on stderr that names `what`. */
STATUS_MUST_USE status guarded_run(uint32_t n, guarded *const *list, const char *what, status (*fn)(void *), void *data,
                                   guarded_fault *fault);

#endif
