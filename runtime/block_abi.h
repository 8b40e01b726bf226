/* block_abi.h - how kernels for blocks of threads are called: as PTX by a GPU's driver, and as code for a CPU that
 * emulates the threads.
 *
 * The header is C99 and includes no other file of onnx-xla.  emit/kernel/block.h writes code for both.
 *
 * The grid of a kernel is [0, steps), with a number of steps that is stored with the kernel (its expression, if sizes
 * are arguments).  A launch has blocks of equally many threads; the thread whose number is
 *
 *   id = block * threads + thread
 *
 * computes step `id`, and nothing if there is no such step.  Any number of threads in a block is right, as is any order
 * in which blocks and threads run, at the same time or not.  There must be at least `steps` threads in all.
 *
 * For NVIDIA GPUs a kernel is an entry with three parameters, which lie in the memory of parameters:
 *
 *   .visible .entry k(.param .align 8 .b8 buffers[8 * n], .param .align 8 .b8 args[8 * m], .param .u64 steps)
 *
 * `buffers` has n addresses of global memory, each a multiple of RT_KERNEL_ALIGN (kernel_abi.h): one for each operand,
 * in order, then one for each result, then one for scratch memory if the kernel needs any.  `args` has the integer
 * arguments of the call; a kernel without arguments still has room for one, which it does not read.  Kernels do not ask
 * whether the run was cancelled, so `buffers` has no entry for that. */
#ifndef RUNTIME_BLOCK_ABI_H
#define RUNTIME_BLOCK_ABI_H

#include <stdint.h>

enum {
  RT_BLOCK_PARAMETER_BYTES = 4096, /* the most bytes that the parameters of a kernel may have */
  RT_BLOCK_MOST_THREADS = 1024     /* the most threads in a block */
};

/* Tells an emulated kernel which thread it is.  Kernels whose threads work together will need more than that: the
 * address of the block's shared memory, and a function that the kernel calls at a barrier, which returns when all
 * threads of the block have called it.  They become members behind these, so that kernels which do not know them stay
 * as they are.  Who calls such a kernel gives each thread of a block a stack of its own, and changes to the next one at
 * a barrier. */
typedef struct rt_block_thread {
  int64_t block;   /* the number of the block in the launch */
  int32_t thread;  /* the number of the thread in the block */
  int32_t threads; /* how many threads each block has */
} rt_block_thread;

/* An emulated kernel: one call computes what one thread does.  The first three parameters are those of the GPU's
 * kernel.  It allocates nothing, keeps no state and calls no function. */
typedef void rt_block_fn(const void *const *buffers, const int64_t *args, int64_t steps, const rt_block_thread *thread);

#endif
