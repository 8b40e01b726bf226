/* emulated_block.h - runs blocks of threads of an emulated kernel (runtime/block_abi.h) on the calling thread.
 *
 * One warp after the other runs up to the next barrier, then all run up to the one after it.  In a warp, one thread
 * after the other runs up to the next barrier or exchange of values.  A right kernel computes the same bits in any
 * order of the warps and their threads.  Before each block, its shared memory is filled with 0xFF bytes, which are NaN
 * in all types of floats, and so is memory to which a copy is under way (block_copies.h).  If the kernel tells its
 * accesses (rt_block_thread.access), data races and accesses to such memory are found. */
#ifndef BACKEND_GPU_RUNTIME_EMULATED_BLOCK_H
#define BACKEND_GPU_RUNTIME_EMULATED_BLOCK_H

#include "base/status.h"
#include "runtime/block_abi.h"

typedef enum gpu_order { GPU_FORWARD, GPU_REVERSE, GPU_SHUFFLED, GPU_ORDERS } gpu_order;

typedef struct gpu_blocks {
  rt_block_fn *fn;
  const char *name; /* the name of the kernel, for messages */
  const void *const *buffers;
  const int64_t *args;
  int64_t steps;
  uint32_t threads, shared_bytes; /* the threads and the shared memory of each block */
  gpu_order order;                /* the order in which the warps run, and the threads of a warp */
} gpu_blocks;

/* Runs blocks [begin, end).  An INTERNAL error says in which block threads wait at different barriers, or wait for
 * others that have ended, which threads have a data race (race_check.h), or what is wrong with a thread's copies. */
STATUS_MUST_USE status gpu_run_blocks(const gpu_blocks *b, int64_t begin, int64_t end);

#endif
