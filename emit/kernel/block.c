/* block.c - what the threads of a block do together (block.h), as far as it is the same for all targets. */
#include "emit/kernel/block.h"

#include <assert.h>

#include <llvm-c/Target.h>

#include "emit/kernel/execution.h"

const emit_block_ops *emit_block_ops_of(const emit_ir *ir) {
  return ir->target->emulated ? &emit_block_host : &emit_block_nvptx;
}

_Static_assert((int)EMIT_STEPS == (int)EMIT_OWN_PARAMETERS, "the first parameter that blocks add");

static const emit_block_ops *ops_of(const emit_writer *w) {
  assert(w->e.w->target->execution == EMIT_BLOCKS);
  return emit_block_ops_of(w->e.w);
}

/* --- threads --- */

/* Returns the number of the step of the grid in which the thread takes part. */
static LLVMValueRef step_of_thread(const emit_writer *w, uint32_t threads, uint32_t step_threads) {
  const emit_ir *ir = w->e.w;
  const emit_block_ops *ops = ops_of(w);
  LLVMBuilderRef b = ir->builder;
  LLVMValueRef block = ops->block(ir);
  if (step_threads == threads) {
    return block;
  }
  LLVMValueRef before = LLVMBuildNSWMul(b, block, threads ? emit_i64(ir, threads) : ops->threads(ir), "");
  LLVMValueRef id = LLVMBuildNSWAdd(b, before, ops->thread(ir), "");
  return step_threads > 1 ? LLVMBuildUDiv(b, id, emit_i64(ir, step_threads), "") : id;
}

void emit_block_team(emit_writer *w, uint32_t threads, uint32_t step_threads) {
  const emit_ir *ir = w->e.w;
  assert(threads % EMIT_WARP == 0 && threads <= EMIT_MOST_THREADS && w->info->shared_bytes == 0);
  assert(step_threads == 1 || step_threads == EMIT_WARP || step_threads == threads);
  w->info->threads = threads;
  w->info->step_threads = step_threads;
  w->begin = step_of_thread(w, threads, step_threads);
  LLVMValueRef next = LLVMBuildNSWAdd(ir->builder, w->begin, emit_i64(ir, 1), "");
  w->end = emit_intrinsic2(ir, "llvm.smin", next, LLVMGetParam(ir->function, EMIT_STEPS));
}

LLVMValueRef emit_thread_number(const emit_writer *w) { return ops_of(w)->thread(w->e.w); }

LLVMValueRef emit_lane_number(const emit_writer *w) {
  return LLVMBuildAnd(w->e.w->builder, emit_thread_number(w), emit_i64(w->e.w, EMIT_WARP - 1), "");
}

LLVMValueRef emit_warp_number(const emit_writer *w) {
  return LLVMBuildUDiv(w->e.w->builder, emit_thread_number(w), emit_i64(w->e.w, EMIT_WARP), "");
}

/* --- what the threads of a block do together --- */

void emit_barrier(emit_writer *w) {
  assert(w->uniform == EMIT_UNIFORM_BLOCK);
  ops_of(w)->barrier(w->e.w, ++w->n_syncs);
}

LLVMValueRef emit_shared_memory(emit_writer *w, LLVMTypeRef element, int64_t n, uint32_t align) {
  const emit_ir *ir = w->e.w;
  assert(align && align <= EMIT_SHARED_ALIGN && (align & (align - 1)) == 0);
  uint32_t at = (w->info->shared_bytes + align - 1) & -align;
  uint64_t bytes = (uint64_t)n * LLVMABISizeOfType(LLVMGetModuleDataLayout(ir->module), element);
  assert(bytes <= EMIT_MOST_SHARED - at);
  w->info->shared_bytes = at + (uint32_t)bytes;
  LLVMValueRef offset = emit_i64(ir, at);
  return LLVMBuildInBoundsGEP2(ir->builder, ir->i8, ops_of(w)->shared(ir), &offset, 1, "");
}

/* Adds 1 to the counter.  If it has now been counted up `blocks` times, sets it to 0 again.  Stores at `is_last`, in
 * shared memory, whether this was so. */
static void count_block(emit_writer *w, LLVMValueRef counter, LLVMValueRef blocks, LLVMValueRef is_last) {
  const emit_ir *ir = w->e.w;
  LLVMBuilderRef b = ir->builder;
  LLVMValueRef one = LLVMConstInt(ir->i32, 1, false), zero = LLVMConstNull(ir->i32);
  LLVMValueRef before =
      LLVMBuildAtomicRMW(b, LLVMAtomicRMWBinOpAdd, counter, one, LLVMAtomicOrderingMonotonic, /* singleThread */ false);
  LLVMValueRef n = LLVMBuildAdd(b, LLVMBuildZExt(b, before, ir->i64, ""), emit_i64(ir, 1), "");
  LLVMValueRef last = emit_icmp(ir, LLVMIntEQ, n, blocks);
  LLVMBuildStore(b, LLVMBuildZExt(b, last, ir->i32, ""), is_last);
  LLVMBasicBlockRef after = emit_if_begin(ir, last);
  LLVMBuildStore(b, zero, counter);
  emit_if_end(ir, after);
}

/* As in "CUDA C++ Programming Guide", "Memory Fence Functions": every thread's stores come before its fence, and all
 * fences of a block come before the block is counted; the last block's loads come after a fence that follows the
 * counting. */
LLVMValueRef emit_is_last_block(emit_writer *w, LLVMValueRef counter, LLVMValueRef blocks) {
  const emit_ir *ir = w->e.w;
  LLVMValueRef is_last = emit_shared_memory(w, ir->i32, 1, sizeof(int32_t));
  ops_of(w)->fence(ir);
  emit_barrier(w);
  LLVMBasicBlockRef after = emit_if_begin(ir, emit_icmp(ir, LLVMIntEQ, emit_thread_number(w), emit_i64(ir, 0)));
  count_block(w, counter, blocks, is_last);
  emit_if_end(ir, after);
  emit_barrier(w);
  ops_of(w)->fence(ir);
  return emit_icmp(ir, LLVMIntNE, LLVMBuildLoad2(ir->builder, ir->i32, is_last, ""), LLVMConstNull(ir->i32));
}

/* Returns the value that x has in another lane.  It is exchanged as an integer of 32 or 64 bits. */
static LLVMValueRef exchange(emit_writer *w, emit_lane_rule rule, LLVMValueRef x, unsigned n) {
  const emit_ir *ir = w->e.w;
  assert(w->uniform != EMIT_DIVERGENT && emit_lanes(x) == 0 && n > 0 && n < EMIT_WARP);
  LLVMValueRef bits = emit_bits_of(ir, x);
  unsigned width = emit_bits(bits);
  assert(width <= 64);
  LLVMValueRef wide = LLVMBuildZExt(ir->builder, bits, width > 32 ? ir->i64 : ir->i32, "");
  LLVMValueRef got = ops_of(w)->exchange(ir, rule, wide, n, ++w->n_syncs);
  got = LLVMBuildTrunc(ir->builder, got, LLVMTypeOf(bits), "");
  return LLVMBuildBitCast(ir->builder, got, LLVMTypeOf(x), "");
}

LLVMValueRef emit_lane_xor(emit_writer *w, LLVMValueRef x, unsigned mask) {
  return exchange(w, EMIT_LANE_XOR, x, mask);
}
LLVMValueRef emit_lane_up(emit_writer *w, LLVMValueRef x, unsigned n) { return exchange(w, EMIT_LANE_UP, x, n); }
LLVMValueRef emit_lane_down(emit_writer *w, LLVMValueRef x, unsigned n) { return exchange(w, EMIT_LANE_DOWN, x, n); }

/* --- copies --- */

bool emit_has_copies(const emit_target *t) { return t->mma; }

void emit_copy_begin(emit_writer *w, LLVMValueRef to, LLVMValueRef from, unsigned bytes, LLVMValueRef live) {
  assert(emit_has_copies(w->e.w->target) && (bytes == 4 || bytes == 8 || bytes == 16));
  ops_of(w)->copy(w->e.w, to, from, bytes, live);
}

void emit_copy_commit(emit_writer *w) {
  assert(emit_has_copies(w->e.w->target));
  ops_of(w)->commit(w->e.w);
}

void emit_copy_wait(emit_writer *w, unsigned groups) {
  assert(emit_has_copies(w->e.w->target));
  ops_of(w)->await(w->e.w, groups);
}

/* --- products of matrices --- */

static bool is_byte(dtype t) { return t == DTYPE_U8 || t == DTYPE_S8; }

bool emit_has_mma(const emit_target *t, dtype rows, dtype columns) {
  bool has = rows == DTYPE_F16 || rows == DTYPE_BF16 || rows == DTYPE_F32 || rows == DTYPE_F64;
  return t->mma && ((has && rows == columns) || (is_byte(rows) && is_byte(columns)));
}

void emit_mma(emit_writer *w, dtype rows_type, dtype columns_type, const LLVMValueRef *rows,
              const LLVMValueRef *columns, LLVMValueRef *sums) {
  assert(w->uniform != EMIT_DIVERGENT && emit_has_mma(w->e.w->target, rows_type, columns_type));
  assert(rows_type != DTYPE_F64);
  ops_of(w)->mma(w->e.w, rows_type, columns_type, rows, columns, sums, ++w->n_syncs);
}

void emit_mma_f64(emit_writer *w, const LLVMValueRef *rows, LLVMValueRef column, LLVMValueRef *sums) {
  assert(w->uniform != EMIT_DIVERGENT && emit_has_mma(w->e.w->target, DTYPE_F64, DTYPE_F64));
  ops_of(w)->mma_f64(w->e.w, rows, column, sums, ++w->n_syncs);
}

void emit_load_fragment(emit_writer *w, LLVMValueRef base, int64_t pitch, LLVMValueRef *words) {
  assert(w->uniform != EMIT_DIVERGENT && pitch % 4 == 0);
  ops_of(w)->load_fragment(w->e.w, base, pitch, words);
}

void emit_load_fragment_across(emit_writer *w, LLVMValueRef base, int64_t pitch, LLVMValueRef *words) {
  assert(w->uniform != EMIT_DIVERGENT && pitch % 4 == 0);
  ops_of(w)->load_fragment_across(w->e.w, base, pitch, words);
}

LLVMValueRef emit_tf32(const emit_ir *ir, LLVMValueRef x) {
  enum { HALF = 1 << 12, REST = (1 << 13) - 1 }; /* f32 has 13 more bits of mantissa */
  LLVMValueRef bits = emit_bits_of(ir, x), is_number = emit_fcmp(ir, LLVMRealORD, x, x);
  LLVMValueRef up = LLVMBuildAdd(ir->builder, bits, emit_i(bits, HALF), "");
  up = emit_select(ir, is_number, up, bits); /* a NaN with all bits set would become 0 */
  return emit_float_of(ir, LLVMBuildAnd(ir->builder, up, emit_i(bits, ~(int64_t)REST), ""));
}
