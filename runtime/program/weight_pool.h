/* weight_pool.h - arrays that the programs of one session share: constants, above all packed weights, which are large
 * and the same for all shapes; and code, for kernels that do not depend on them.
 *
 * An array is known by a name of bytes that say what is in it, the same in every process that has the same model:
 * programs in files remember them.  Arrays that no program holds go at the next sweep.  Programs are compiled one at a
 * time. */
#ifndef RUNTIME_PROGRAM_WEIGHT_POOL_H
#define RUNTIME_PROGRAM_WEIGHT_POOL_H

#include "base/hash.h"
#include "runtime/program/program.h"

typedef struct rt_weight_pool rt_weight_pool;

/* For those who compile. */
typedef struct rt_sharing {
  rt_weight_pool *weight_pool;
  /* Returns true if what lies there stays there unchanged for as long as the shared arrays; `place` (NULL if it is not
   * asked) then gets where in the model that is, which says what it is.  NULL if there is nothing lasts. */
  bool (*is_persistent)(const void *owner, const void *data, rt_writer *place);
  /* What lies there has been copied, and its pages need not stay in memory if they can come from a file again.  May be
   * NULL. */
  void (*drop)(const void *owner, const void *data, uint64_t bytes);
  const void *owner;
} rt_sharing;

/* secret: for identities, copied; that of the folder where programs with names are kept.  NULL means no other process
 * knows the names. */
STATUS_MUST_USE status rt_weight_pool_create(mem_budget *budget, const hash_secret *secret, rt_weight_pool **out);
/* NULL is allowed. */
void rt_weight_pool_destroy(rt_weight_pool *s);

/* For names: what stands for these bytes. */
hash128 rt_weight_pool_identity(const rt_weight_pool *s, const void *data, size_t bytes);
/* A name for plain bytes: their place if they last, else their identity. */
void rt_weight_pool_put_name(rt_writer *w, const rt_sharing *s, const void *data, uint64_t bytes);
/* The array of that name, aligned to 64; *fresh: it is new, and to be filled by the caller.  NULL means out of memory.
 */
void *rt_weight_pool_get(rt_weight_pool *s, rt_span name, uint64_t bytes, bool *fresh);

/* The array of that name; NULL if there is none.  The name of an array (borrowed); no bytes: it is none of them. */
const void *rt_weight_pool_find(const rt_weight_pool *s, rt_span name, uint64_t bytes);
rt_span rt_weight_pool_name(const rt_weight_pool *s, const void *data);

/* The first array whose name `matches` takes, which stays until the next sweep; no data: there is none. */
typedef bool rt_weight_pool_match(void *data, rt_span name);
rt_span rt_weight_pool_search(const rt_weight_pool *s, rt_weight_pool_match *matches, void *data);

/* Constants and code of a program in a mapped file become shared arrays where there are none of their names.  Returns
 * true if there are such, and the arena, on which the file is mapped, goes with the last of them. */
bool rt_weight_pool_register(rt_weight_pool *s, const rt_program *p, arena *mapped);

/* The program's constants and code among the shared arrays stay until it gives them back. */
void rt_weight_pool_retain(rt_weight_pool *s, const rt_program *p);
void rt_weight_pool_release(rt_weight_pool *s, const rt_program *p);
void rt_weight_pool_collect(rt_weight_pool *s);

/* A copy of the program on the arena that borrows nothing but shared arrays, found by their names or places, and what
 * lasts. */
rt_program *rt_program_keep(arena *a, const rt_program *p, const rt_sharing *s);

#endif
