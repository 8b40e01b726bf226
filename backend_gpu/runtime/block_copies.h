/* block_copies.h - copies of an emulated block's threads to shared memory that arrive only when they are waited for
 * (rt_block_thread.copy).
 *
 * On a GPU a copy arrives at any time between its begin and the wait for it.  Here its destination is filled with 0xFF
 * bytes when it begins, and its source is read and its destination written as late as possible, so that a kernel that
 * waits too little computes wrong numbers.  Some mistakes would change no result, so these functions find them: an
 * access to, or a second copy into, memory to which a copy is under way, and a thread that ends before its copies have
 * arrived. */
#ifndef BACKEND_GPU_RUNTIME_BLOCK_COPIES_H
#define BACKEND_GPU_RUNTIME_BLOCK_COPIES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct gpu_copies gpu_copies;

/* Returns NULL if there is no memory.  `shared` is the block's shared memory, which is borrowed. */
gpu_copies *gpu_copies_create(void *shared, uint32_t shared_bytes, uint32_t threads);
void gpu_copies_destroy(gpu_copies *c); /* NULL is allowed */

typedef enum gpu_copy_result {
  GPU_COPY_BEGUN,
  GPU_COPY_OUTSIDE, /* wrong arguments: the size must be 4, 8 or 16 bytes, `live` at most the size, both addresses
                       multiples of the size, and the destination in shared memory */
  GPU_COPY_TWICE,   /* another copy to the same place is under way */
  GPU_COPY_NO_MEMORY
} gpu_copy_result;
/* Begins a copy of `bytes` bytes by a thread: the first `live` bytes of `from`, then zeros. */
gpu_copy_result gpu_copies_begin(gpu_copies *c, uint32_t thread, void *to, const void *from, int32_t bytes,
                                 int32_t live);
/* Makes a group of the copies that the thread has begun since its last group. */
void gpu_copies_commit(gpu_copies *c, uint32_t thread);
/* Does one copy of those that end when the thread waits until only its last `groups` groups are under way (PTX's
 * cp.async.wait_group): the oldest one.  Sets *to and *bytes to its destination and returns true; returns false if all
 * of them are done. */
bool gpu_copies_arrive(gpu_copies *c, uint32_t thread, int32_t groups, void **to, int32_t *bytes);

/* If a copy to one of the bytes [at, at + bytes) is under way, sets *thread to the thread that began the copy and
 * returns true. */
bool gpu_copies_pending(const gpu_copies *c, const void *at, int64_t bytes, uint32_t *thread);
/* If copies have not arrived, sets *thread to the first thread that began one of them and returns true. */
bool gpu_copies_left(const gpu_copies *c, uint32_t *thread);

#endif
