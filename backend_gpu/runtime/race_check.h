/* race_check.h - finds data races among the threads of an emulated block: two threads access the same bytes, one of
 * them writes, and neither a barrier nor, within their warp, an exchange of values comes between.
 *
 * On a GPU such accesses happen in any order or at the same time.  The emulator has one order, in which most races do
 * no harm, so that comparing results misses them.  The caller says which threads access which bytes, in whatever order
 * it runs them, and when they have waited for each other.  It must run all threads of a warp up to their next wait
 * before another warp's, and all warps up to the next barrier before it goes on.  Races among blocks are not found. */
#ifndef BACKEND_GPU_RUNTIME_RACE_CHECK_H
#define BACKEND_GPU_RUNTIME_RACE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct gpu_race_check gpu_race_check;

/* What was found: `writer` writes the byte, and `other` reads or writes it. */
typedef struct gpu_race {
  const void *at;
  uint32_t writer, other;
  bool both_write;
} gpu_race;

/* Returns NULL if there is no memory.  One check can serve several blocks, one after the other. */
gpu_race_check *gpu_race_check_create(void);
void gpu_race_check_destroy(gpu_race_check *c); /* NULL is allowed */

/* Must be called when all threads of the block have waited for each other, and when another block begins. */
void gpu_race_check_barrier(gpu_race_check *c);
/* Must be called when the threads of the running warp have waited for each other, and when another warp goes on. */
void gpu_race_check_exchange(gpu_race_check *c);

/* Must be called for each access of a thread, to the bytes [at, at + bytes).  Sets *found and returns true if the
 * access and an earlier one are a race.  Sets *no_memory to whether there is no memory to remember the access. */
bool gpu_race_check_access(gpu_race_check *c, uint32_t thread, const void *at, int64_t bytes, bool writes,
                           gpu_race *found, bool *no_memory);

#endif
