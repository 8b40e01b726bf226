/* block.h - what code for blocks of threads does beyond the code of one thread: the threads that compute a step of the
 * grid together, barriers, shared memory, and exchanges of values in a warp.
 *
 * A GPU and a CPU that emulates its threads get the same instructions, apart from those that emit_block_ops writes.  So
 * both compute the same bits, apart from the signs and payloads of NaNs and from sums of floats by emit_mma.
 * runtime/block_abi.h describes the functions.  Only the files that implement emit_block_ops know for which of the two
 * code is written.
 *
 * A kernel whose threads work together calls emit_block_team first.  It then writes code that each thread runs.  A
 * thread that takes a path which others do not take must not wait for them: w->uniform (writer.h) says which threads
 * are sure to take the same path.  Code that writes a branch sets w->uniform in the branch and restores it after the
 * branch. */
#ifndef EMIT_KERNEL_BLOCK_H
#define EMIT_KERNEL_BLOCK_H

#include "emit/kernel/writer.h"

enum { EMIT_STEPS = 2 }; /* the parameter with the number of steps */

/* Lets `step_threads` neighbouring threads compute each step of the grid: 1, EMIT_WARP, or all `threads` of the block.
 * `threads` is the number of threads that a block must have, a multiple of EMIT_WARP; 0 means that any number is right,
 * or any multiple of EMIT_WARP if a warp computes a step; it is not allowed if the whole block computes a step.  Sets
 * w->begin and w->end to the thread's step, and `threads` and `step_threads` of w->info.  Must be called before shared
 * memory is allocated. */
void emit_block_team(emit_writer *w, uint32_t threads, uint32_t step_threads);

/* These return an i64: the number of the thread in its block, of the thread in its warp, and of the warp in its block.
 */
LLVMValueRef emit_thread_number(const emit_writer *w);
LLVMValueRef emit_lane_number(const emit_writer *w);
LLVMValueRef emit_warp_number(const emit_writer *w);

/* Waits until all threads of the block have reached this barrier; they then see what each of them has stored in shared
 * memory and in buffers.  Control flow must be uniform for the block. */
void emit_barrier(emit_writer *w);

/* Returns an i1, the same for all threads of the block: whether this block is the last one of the `blocks` blocks (an
 * i64) that call this with the same counter.  The last block sees what all of these blocks have stored in buffers
 * before their calls.  `counter` is the address of an i32 in a buffer (RT_COUNTERS), which must be 0 before the first
 * block begins and is 0 again when the last block has returned from this.  Control flow must be uniform for the block.
 * The code has two barriers and takes shared memory. */
LLVMValueRef emit_is_last_block(emit_writer *w, LLVMValueRef counter, LLVMValueRef blocks);

/* Returns the address of n elements of shared memory, with undefined contents.  A block may take at most
 * EMIT_MOST_SHARED bytes; every GPU has at least 48 KB.  The pointer may be in an address space of its own.  `align` is
 * a power of two, at most EMIT_SHARED_ALIGN. */
LLVMValueRef emit_shared_memory(emit_writer *w, LLVMTypeRef element, int64_t n, uint32_t align);

/* Return the value that x has in another lane of the warp: in lane number l ^ mask, l - n and l + n for lane l.  A lane
 * for which there is no such lane gets its own value.  x is an integer or a float of at most 64 bits, and 0 < mask, n <
 * EMIT_WARP.  Control flow must be uniform for the warp, and the number of threads in the block a multiple of
 * EMIT_WARP. */
LLVMValueRef emit_lane_xor(emit_writer *w, LLVMValueRef x, unsigned mask);
LLVMValueRef emit_lane_up(emit_writer *w, LLVMValueRef x, unsigned n);
LLVMValueRef emit_lane_down(emit_writer *w, LLVMValueRef x, unsigned n);

/* --- copies to shared memory that are under way while a thread goes on ---
 *
 * A thread begins copies and makes groups of them.  It waits for groups in their order, and then sees what it has
 * copied itself; the other threads see that after a further barrier.  Until then the contents of the memory are
 * undefined, and no thread may access it.  A thread must have waited for all of its copies when it ends. */
/* Returns true if the target has such copies. */
bool emit_has_copies(const emit_target *t);
/* Begins a copy of `bytes` bytes, 4, 8 or 16, from a buffer that the kernel only reads to shared memory.  Both
 * addresses are multiples of `bytes`.  Only the first `live` bytes (an i32) are read; the others become 0 in shared
 * memory. */
void emit_copy_begin(emit_writer *w, LLVMValueRef to, LLVMValueRef from, unsigned bytes, LLVMValueRef live);
/* Makes a group of the copies that the thread has begun since it made the previous group.  The group may be empty. */
void emit_copy_commit(emit_writer *w);
/* Waits until the copies of all of the thread's groups except the last `groups` ones have arrived. */
void emit_copy_wait(emit_writer *w, unsigned groups);

/* --- products of matrices by a warp ---
 *
 * A warp multiplies 16 rows by 8 columns.  Each row and each column is 8 words of 32 bits long: a word has two
 * neighbouring factors f16 or bf16, four u8 or s8, or one f32.  Sums are s32 if the factors are integers, otherwise
 * f32. The lanes hold the words and the sums as PTX's mma instructions require ("PTX ISA", "Matrix Fragments for
 * mma.m16n8k16" and the like). With g = lane / 4 and t = lane % 4, lane has
 *
 *   of the rows      word t of row g and of row g + 8, then word t + 4 of both
 *   of the columns   words t and t + 4 of column g
 *   of the sums      those of row g in columns 2t and 2t + 1, then those of row g + 8
 *
 * f32 factors must be rounded to tf32 (emit_tf32).  The order in which products of floats are added, and the
 * intermediate roundings, depend on the device: sums of floats may differ in their last bits from one device to
 * another, and from the emulator. */
enum { EMIT_MMA_ROWS = 16, EMIT_MMA_COLUMNS = 8, EMIT_MMA_WORDS = 8 };
/* Returns true if warps multiply matrices of these types: both f16, both bf16, both f32, both f64, or u8 and s8 in any
 * combination. */
bool emit_has_mma(const emit_target *t, dtype rows, dtype columns);
/* Adds the products to sums[4]; rows[4] and columns[2] are i32.  Control flow must be uniform for the warp, and the
 * number of threads in the block a multiple of EMIT_WARP. */
void emit_mma(emit_writer *w, dtype rows_type, dtype columns_type, const LLVMValueRef *rows,
              const LLVMValueRef *columns, LLVMValueRef *sums);
/* Does the same for f64, where a row or column has four factors: `lane` has factor t of rows g and g + 8, factor t of
 * column g, and the same sums as above, all as f64. */
void emit_mma_f64(emit_writer *w, const LLVMValueRef *rows, LLVMValueRef column, LLVMValueRef *sums);
/* Loads 16 rows and sets words[4], of type i32, to those words that the lane must have for emit_mma.  `base` is an
 * address of shared memory, a multiple of 16 bytes, and `pitch` the distance between rows in words, a multiple of 4. If
 * 16 columns are loaded in place of rows, words 0 and 2 are for the first 8 columns, words 1 and 3 for the others.
 * Control flow must be uniform for the warp. */
void emit_load_fragment(emit_writer *w, LLVMValueRef base, int64_t pitch, LLVMValueRef *words);
/* Loads the same words, for factors of 16 bits that are transposed in memory: factors of neighbouring rows are next to
 * each other, and neighbouring factors of a row are `pitch` words apart. */
void emit_load_fragment_across(emit_writer *w, LLVMValueRef base, int64_t pitch, LLVMValueRef *words);
/* Rounds f32 numbers to the nearest ones of tf32, which has 10 bits of mantissa, ties away from zero. */
LLVMValueRef emit_tf32(const emit_ir *ir, LLVMValueRef x);

/* --- prefixes over all threads of a block (scan.c) --- */

/* An associative operation on values of n parts, each an integer or a float of at most 64 bits. */
enum { EMIT_SCAN_PARTS = 2 };
typedef struct emit_scan {
  int n;
  LLVMValueRef identity[EMIT_SCAN_PARTS];
  /* Sets acc to the combination of acc, which comes first, and x. */
  void (*combine)(const emit_writer *w, const void *data, LLVMValueRef *acc, const LLVMValueRef *x);
  const void *data;
} emit_scan;
/* Each thread passes a value x of s->n parts.  Sets `before` to the combination of the values of all threads with lower
 * numbers (the identity in thread 0), and `total` to that of all threads.  The order in which values are combined
 * depends on the number of threads only.  The whole block must compute each step (emit_block_team), control flow must
 * be uniform for the block, and its number of warps must be a power of two.  The code has two barriers. */
void emit_block_scan(emit_writer *w, const emit_scan *s, const LLVMValueRef *x, LLVMValueRef *before,
                     LLVMValueRef *total);
/* Returns, as an i64, in how many threads of the block with lower numbers the i1 `is` is true, and sets *total to the
 * number of threads of the whole block in which it is true.  The requirements are those of emit_block_scan. */
LLVMValueRef emit_count_before(emit_writer *w, LLVMValueRef is, LLVMValueRef *total);

/* --- what differs between a GPU and a CPU that emulates it --- */

/* The lane from which a value comes: emit_lane_xor, emit_lane_up or emit_lane_down. */
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
  /* Implements emit_barrier. `number` is 1 for the first barrier or exchange of the function, 2 for the next one, and
   * so on. */
  void (*barrier)(const emit_ir *ir, uint32_t number);
  /* Returns the address of the block's shared memory. */
  LLVMValueRef (*shared)(const emit_ir *ir);
  /* Orders this thread's accesses of buffers as the threads of all blocks see them: those before the fence come first.
   */
  void (*fence)(const emit_ir *ir);
  /* Implements emit_lane_xor and the like for x, an i32 or i64. */
  LLVMValueRef (*exchange)(const emit_ir *ir, emit_lane_rule rule, LLVMValueRef x, unsigned n, uint32_t number);
  /* Implement emit_mma, emit_mma_f64, emit_load_fragment and emit_load_fragment_across. */
  void (*mma)(const emit_ir *ir, dtype rows_type, dtype columns_type, const LLVMValueRef *rows,
              const LLVMValueRef *columns, LLVMValueRef *sums, uint32_t number);
  void (*mma_f64)(const emit_ir *ir, const LLVMValueRef *rows, LLVMValueRef column, LLVMValueRef *sums,
                  uint32_t number);
  void (*load_fragment)(const emit_ir *ir, LLVMValueRef base, int64_t pitch, LLVMValueRef *words);
  void (*load_fragment_across)(const emit_ir *ir, LLVMValueRef base, int64_t pitch, LLVMValueRef *words);
  /* Implement emit_copy_begin, emit_copy_commit and emit_copy_wait. */
  void (*copy)(const emit_ir *ir, LLVMValueRef to, LLVMValueRef from, unsigned bytes, LLVMValueRef live);
  void (*commit)(const emit_ir *ir);
  void (*await)(const emit_ir *ir, unsigned groups);
  /* Completes the function, whose instructions are all written, so that it can be launched as `info` says.  `syncs` is
   * the number of its barriers and exchanges. */
  void (*end)(const emit_ir *ir, const emit_kernel_info *info, uint32_t syncs);
} emit_block_ops;

extern const emit_block_ops emit_block_nvptx, emit_block_host;

const emit_block_ops *emit_block_ops_of(const emit_ir *ir);

#endif
