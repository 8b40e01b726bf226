/* weight_pool.h - arrays that the programs of one session share.  They are constants (above all packed weights, which
 * are large and the same for all input shapes) and object code (in which a program finds kernels that earlier programs
 * compiled).
 *
 * An array has a name: bytes that identify its contents.  Names are the same in every process with the same model and
 * secret, and programs in files contain them.  Arrays that no program retains are freed at the next collection.  The
 * functions take no lock: only one thread at a time may use a pool. */
#ifndef RUNTIME_PROGRAM_WEIGHT_POOL_H
#define RUNTIME_PROGRAM_WEIGHT_POOL_H

#include "base/hash.h"
#include "runtime/program/program.h"

typedef struct rt_weight_pool rt_weight_pool;

/* What a compiler needs to share constants with other programs. */
typedef struct rt_sharing {
  rt_weight_pool *weight_pool;
  /* Returns true if the memory at `data` is persistent: it stays unchanged as long as the weight pool exists.  Its
   * position in the model, which identifies its contents, is then written to `place` (may be NULL).  If the function is
   * NULL, no memory is persistent. */
  bool (*is_persistent)(const void *owner, const void *data, rt_writer *place);
  /* Called when the memory at `data` has been copied.  Its pages need not stay in memory if they can be read from a
   * file again.  May be NULL. */
  void (*drop)(const void *owner, const void *data, uint64_t bytes);
  const void *owner;
} rt_sharing;

/* `secret` is the key of the hashes that identify contents (hash_keyed) and is copied.  It belongs to the folder of the
 * compile cache, whose programs contain names that are made with it.  With NULL a random secret is used; then the names
 * have no meaning in other processes. */
STATUS_MUST_USE status rt_weight_pool_create(mem_budget *budget, const hash_secret *secret, rt_weight_pool **out);
/* Frees the pool and its arrays.  NULL is allowed. */
void rt_weight_pool_destroy(rt_weight_pool *s);

/* Returns a keyed hash of the bytes, which identifies their contents in names. */
hash128 rt_weight_pool_identity(const rt_weight_pool *s, const void *data, size_t bytes);
/* Writes a name for an array: its size, and its position in the model if it is persistent, otherwise its identity. */
void rt_weight_pool_put_name(rt_writer *w, const rt_sharing *s, const void *data, uint64_t bytes);
/* Returns the array of that name, aligned to 64.  If *fresh is set, the array is new and the caller must fill it.
 * Returns NULL if memory runs out. */
void *rt_weight_pool_get(rt_weight_pool *s, rt_span name, uint64_t bytes, bool *fresh);

/* rt_weight_pool_find returns the array with this name, or NULL if there is none.  rt_weight_pool_name returns the name
 * of an array (borrowed), which is empty if the array is not in the pool. */
const void *rt_weight_pool_find(const rt_weight_pool *s, rt_span name, uint64_t bytes);
rt_span rt_weight_pool_name(const rt_weight_pool *s, const void *data);

/* Returns the first array for whose name `matches` returns true.  The array remains until the next collection.  If
 * there is no such array, the data of the result is NULL. */
typedef bool rt_weight_pool_match(void *data, rt_span name);
rt_span rt_weight_pool_search(const rt_weight_pool *s, rt_weight_pool_match *matches, void *data);

/* Registers the constants and code of a program that have names as shared arrays, unless the pool has arrays of these
 * names already.  The memory is not copied.  It belongs to the arena `mapped`, such as the one on which the program's
 * file is mapped, or to the caller if `mapped` is NULL.  Returns true if any array was registered.  Then the pool owns
 * the arena, and destroys it when the last of these arrays is freed. */
bool rt_weight_pool_register(rt_weight_pool *s, const rt_program *p, arena *mapped);

/* rt_weight_pool_retain increments the reference counts of the shared arrays among the program's constants and code,
 * rt_weight_pool_release decrements them, and rt_weight_pool_collect frees the arrays that have no references. */
void rt_weight_pool_retain(rt_weight_pool *s, const rt_program *p);
void rt_weight_pool_release(rt_weight_pool *s, const rt_program *p);
void rt_weight_pool_collect(rt_weight_pool *s);
/* Frees the arrays without references that rt_weight_pool_get has made, but no registered ones.  Must be called after a
 * compilation that failed and before the next one, which would find arrays that the first one has not filled. */
void rt_weight_pool_abandon(rt_weight_pool *s);
/* Returns the bytes of the arrays among the program's constants and code; an array that n programs retain counts with
 * an n-th part.  Registered arrays do not count. */
uint64_t rt_weight_pool_share(const rt_weight_pool *s, const rt_program *p);

/* Returns a copy of the program on the arena.  It borrows shared arrays, which are found by their names or addresses,
 * and persistent memory (rt_sharing.is_persistent).  Everything else is copied. */
rt_program *rt_program_keep(arena *a, const rt_program *p, const rt_sharing *s);

#endif
