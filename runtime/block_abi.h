/* block_abi.h - how kernels for blocks of threads are called: as PTX by a GPU's driver, and as code for a CPU that
 * emulates the threads.
 *
 * The header is C99 and includes no other file of onnx-xla.  emit/kernel/block.h writes code for both.  Every change of
 * a declaration here must raise RT_BLOCK_ABI (tests/abi/test-kernel-abi).  Programs state that number for each of their
 * kernels, so that a kernel that was compiled for another version is refused.
 *
 * The grid of a kernel is [0, steps).  `steps` is stored with the kernel: as a number, or as an expression if sizes are
 * arguments.  A launch has blocks of equally many threads.  Each step is computed by `step_threads` neighbouring
 * threads, which are one thread, a warp of RT_BLOCK_WARP threads, or a whole block.  The thread whose number is
 *
 *   id = block * threads + thread
 *
 * takes part in step id / step_threads, and computes nothing if there is no such step.  There must be at least steps *
 * step_threads threads in all.  Blocks may run in any order and at the same time.
 *
 * A kernel may require a number of threads in a block, which PTX states as .reqntid if it is more than 256.  Otherwise
 * any number is right, but it must be a multiple of RT_BLOCK_WARP if a warp computes a step.  The launch gives each
 * block as many bytes of shared memory as the kernel needs (dynamic shared memory, in CUDA's terms), aligned to
 * RT_BLOCK_SHARED_ALIGN.
 *
 * For NVIDIA GPUs a kernel is an entry with three parameters, which lie in the memory of parameters:
 *
 *   .visible .entry k(.param .align 8 .b8 buffers[8 * n], .param .align 8 .b8 args[8 * m], .param .u64 steps)
 *
 * `buffers` has n addresses of global memory, each a multiple of RT_KERNEL_ALIGN (kernel_abi.h): one for each operand,
 * in order, then one for each result, then one for scratch memory if the kernel needs any, and one for counters if it
 * needs any.  `args` has the integer arguments of the call; a kernel without arguments still has room for one, which it
 * does not read.  Kernels do not ask whether the run was cancelled, so `buffers` has no entry for that. */
#ifndef RUNTIME_BLOCK_ABI_H
#define RUNTIME_BLOCK_ABI_H

#include <stdint.h>

enum { RT_BLOCK_ABI = 3 };

enum {
  RT_BLOCK_PARAMETER_BYTES = 4096,   /* the most bytes that the parameters of a kernel may have */
  RT_BLOCK_MOST_THREADS = 1024,      /* the most threads in a block */
  RT_BLOCK_WARP = 32,                /* how many threads form a warp and can exchange values in registers */
  RT_BLOCK_MOST_SHARED = 227 * 1024, /* the most bytes of shared memory that a block has on any GPU */
  RT_BLOCK_SHARED_ALIGN = 128,
  RT_BLOCK_VALUES = 3 /* how many values an emulated thread exchanges at a time, at most */
};

/* --- kernels whose threads a CPU emulates --- */

/* The state of an emulated thread.  The caller sets `block`, `thread` and `threads`, sets `sync` to 0, and then calls
 * the kernel.  The other members are for kernels whose threads work together.
 *
 * Such a kernel is a coroutine.  Where a thread has to wait for others, the call returns, and `sync` says for which:
 * k > 0 means that it waits at barrier k of the kernel until all threads of the block wait there, and -k that it waits
 * at exchange k until all threads of its warp do.  Then rt_block_resume continues each of them up to the next place
 * where it waits.  When `sync` is 0 after a call, the thread has ended. */
typedef struct rt_block_thread rt_block_thread;
struct rt_block_thread {
  int64_t block;   /* the number of the block in the launch */
  int32_t thread;  /* the number of the thread in the block */
  int32_t threads; /* how many threads each block has */
  int32_t sync;    /* set by the kernel: see above */
  void *frame;     /* set by the kernel: what the thread remembers while it waits */
  void *shared;    /* the block's shared memory */
  /* An exchange of values in a warp: each thread sets `values` before it waits; values that the exchange does not need
   * are undefined.  Then the caller sets lanes[j] to the values of thread j of the warp, and resumes the threads. */
  uint64_t values[RT_BLOCK_VALUES];
  const uint64_t (*lanes)[RT_BLOCK_VALUES];
  /* Returns memory for `frame`, aligned to 64 bytes, which the thread uses until it has ended.  Never returns NULL. */
  void *(*allocate)(rt_block_thread *t, int64_t bytes);
  /* A kernel that was compiled so that races can be found calls this before it accesses memory that another thread may
   * write.  It does not call this for its frame, for memory that the kernel only reads, and for atomic accesses.  Other
   * kernels never call it. */
  void (*access)(rt_block_thread *t, const void *at, int64_t bytes, int32_t writes);
  /* Asynchronous copies to shared memory: the thread goes on while they are under way.  `copy` begins a copy of `bytes`
   * bytes (4, 8 or 16) to `to`, a multiple of `bytes`: it copies the first `live` bytes of `from` and writes zeros
   * behind them.  `commit` makes one group of the copies that the thread has begun since its last `commit`.  `await`
   * returns when all groups of the thread have arrived except the `groups` latest ones.  Until the group of a copy has
   * arrived, the bytes at `to` are undefined.  A thread must wait for all its copies before it ends. */
  void (*copy)(rt_block_thread *t, void *to, const void *from, int32_t bytes, int32_t live);
  void (*commit)(rt_block_thread *t);
  void (*await)(rt_block_thread *t, int32_t groups);
};

/* An emulated kernel: one call computes what one thread does, up to the first place where it waits.  The first three
 * parameters are those of the GPU's kernel.  The emulated kernel keeps no state, and calls no function but those in
 * `thread`. */
typedef void rt_block_fn(const void *const *buffers, const int64_t *args, int64_t steps, rt_block_thread *thread);

/* Continues a thread that waits.  LLVM keeps the function that does so at the beginning of a coroutine's frame. */
static inline void rt_block_resume(rt_block_thread *t) {
  typedef void resume_fn(void *frame);
  (*(resume_fn *const *)t->frame)(t->frame);
}

#endif
