/* block.h - what code for blocks of threads does beyond the code of one thread: the threads that compute a step of the
 * grid together, barriers, shared memory, and exchanges of values in a warp.
 *
 * A GPU and a CPU that emulates its threads get the same instructions but for emit_block_ops, so that they compute the
 * same bits.  runtime/block_abi.h describes the functions.  Only the files that implement emit_block_ops know which of
 * both is written for.
 *
 * A kernel whose threads work together calls emit_block_team first.  It then writes code that each thread runs.  Where
 * a thread takes a path that others do not take, it may not wait for them: w->uniform (writer.h) says which threads are
 * sure to take the same path.  Whoever writes a branch sets it and restores it behind the branch. */
#ifndef EMIT_KERNEL_BLOCK_H
#define EMIT_KERNEL_BLOCK_H

#include "emit/kernel/writer.h"

enum { EMIT_STEPS = 2 }; /* the parameter with the number of steps */

/* Lets `step_threads` neighbouring threads compute each step of the grid: 1, EMIT_WARP, or all `threads` of the block.
 * `threads` is what the kernel requires, a multiple of EMIT_WARP; 0 means that any number of threads is right, and is
 * not allowed if the block computes a step.  Sets w->begin and w->end for it, and `threads` and `step_threads` of
 * w->info.  Must be called before shared memory is allocated. */
void emit_block_team(emit_writer *w, uint32_t threads, uint32_t step_threads);

/* These return an i64: the number of the thread in its block, of the thread in its warp, and of the warp in its block.
 */
LLVMValueRef emit_thread_number(const emit_writer *w);
LLVMValueRef emit_lane_number(const emit_writer *w);
LLVMValueRef emit_warp_number(const emit_writer *w);

/* Waits until all threads of the block are here; they then see what each of them has stored in shared memory and in
 * buffers.  Control flow must be uniform for the block. */
void emit_barrier(emit_writer *w);

/* Returns the address of n elements of shared memory, with undefined contents; a block has at most EMIT_MOST_SHARED
 * bytes, of which every GPU has 48 KB.  The pointer may be in an address space of its own.  `align` is a power of two,
 * at most EMIT_SHARED_ALIGN. */
LLVMValueRef emit_shared_memory(emit_writer *w, LLVMTypeRef element, int64_t n, uint32_t align);

/* Return the value that x has in another lane of the warp: in lane number l ^ mask, l - n and l + n for lane l.  A lane
 * without such a lane gets its own value.  x is an integer or a float of at most 64 bits, and 0 < mask, n < EMIT_WARP.
 * Control flow must be uniform for the warp, and the number of threads in the block a multiple of EMIT_WARP. */
LLVMValueRef emit_lane_xor(emit_writer *w, LLVMValueRef x, unsigned mask);
LLVMValueRef emit_lane_up(emit_writer *w, LLVMValueRef x, unsigned n);
LLVMValueRef emit_lane_down(emit_writer *w, LLVMValueRef x, unsigned n);

/* --- what differs between a GPU and a CPU that emulates it --- */

/* Which lane a value comes from. */
typedef enum emit_lane_rule { EMIT_LANE_XOR, EMIT_LANE_UP, EMIT_LANE_DOWN } emit_lane_rule;

typedef struct emit_block_ops {
  /* Returns the type of a kernel's function.  Its first parameters are those of every kernel (execution.h), the third
   * one is the number of steps (EMIT_STEPS). */
  LLVMTypeRef (*type)(const emit_ir *ir);
  /* These return an i64, in the function that is being written: the number of the thread in its block, the number of
   * the block in the launch, and how many threads each block has. */
  LLVMValueRef (*thread)(const emit_ir *ir);
  LLVMValueRef (*block)(const emit_ir *ir);
  LLVMValueRef (*threads)(const emit_ir *ir);
  /* Implements emit_barrier.  `number` is 1 for the first barrier or exchange of the function, and so on. */
  void (*barrier)(const emit_ir *ir, uint32_t number);
  /* Returns the address of the block's shared memory. */
  LLVMValueRef (*shared)(const emit_ir *ir);
  /* Implements emit_lane_xor and the like for x, an i32 or i64. */
  LLVMValueRef (*exchange)(const emit_ir *ir, emit_lane_rule rule, LLVMValueRef x, unsigned n, uint32_t number);
  /* Makes the function, whose instructions are all written, one that can be launched as `info` says.  `syncs` is the
   * number of its barriers and exchanges. */
  void (*end)(const emit_ir *ir, const emit_kernel_info *info, uint32_t syncs);
} emit_block_ops;

extern const emit_block_ops emit_block_nvptx, emit_block_host;

const emit_block_ops *emit_block_ops_of(const emit_ir *ir);

#endif
