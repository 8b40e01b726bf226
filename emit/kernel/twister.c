/* twister.c - kernels that generate words of the Mersenne twister MT19937, the same as base/random.c. */
#include "base/random.h"
#include "emit/kernel/special.h"
#include "emit/kernel/writer.h"

enum { STATE = MT19937_STATE, FAR = 397 };

/* --- the state, which is in scratch memory --- */

static LLVMValueRef word_at(const emit_ir *ir, LLVMValueRef words, LLVMValueRef k) {
  return LLVMBuildInBoundsGEP2(ir->builder, ir->i32, words, &k, 1, "");
}

static LLVMValueRef load(const emit_ir *ir, LLVMValueRef words, LLVMValueRef k) {
  LLVMValueRef v = LLVMBuildLoad2(ir->builder, ir->i32, word_at(ir, words, k), "");
  LLVMSetAlignment(v, 4);
  return v;
}

static void store(const emit_ir *ir, LLVMValueRef words, LLVMValueRef k, LLVMValueRef v) {
  LLVMSetAlignment(LLVMBuildStore(ir->builder, v, word_at(ir, words, k)), 4);
}

static LLVMValueRef bits(const emit_ir *ir, LLVMValueRef x, uint32_t mask) {
  return LLVMBuildAnd(ir->builder, x, emit_i(x, (int32_t)mask), "");
}

/* The first returns x ^ (x >> by), the second x ^ (x << by & mask). */
static LLVMValueRef mix_right(const emit_ir *ir, LLVMValueRef x, int by) {
  return LLVMBuildXor(ir->builder, x, LLVMBuildLShr(ir->builder, x, emit_i(x, by), ""), "");
}
static LLVMValueRef mix_left(const emit_ir *ir, LLVMValueRef x, int by, uint32_t mask) {
  LLVMValueRef moved = LLVMBuildShl(ir->builder, x, emit_i(x, by), "");
  return LLVMBuildXor(ir->builder, x, bits(ir, moved, mask), "");
}

static void seed(const emit_ir *ir, LLVMValueRef state, LLVMValueRef first) {
  const uint32_t factor = 1812433253;
  store(ir, state, emit_i64(ir, 0), first);
  emit_loop l;
  emit_loop_begin(ir, &l, emit_i64(ir, 1), emit_i64(ir, STATE), 1, true, 1, &first);
  LLVMValueRef mixed = mix_right(ir, l.carried[0], 30);
  LLVMValueRef product = LLVMBuildMul(ir->builder, mixed, emit_i(mixed, (int32_t)factor), "");
  LLVMValueRef next = LLVMBuildAdd(ir->builder, product, LLVMBuildTrunc(ir->builder, l.iv, ir->i32, ""), "");
  store(ir, state, l.iv, next);
  emit_loop_end(ir, &l, &next);
}

/* Returns (k + by) % STATE, for k < STATE and by <= STATE. */
static LLVMValueRef around(const emit_ir *ir, LLVMValueRef k, int64_t by) {
  LLVMValueRef wraps = emit_icmp(ir, LLVMIntSGE, k, emit_i64(ir, STATE - by));
  return LLVMBuildNSWAdd(ir->builder, k, emit_select(ir, wraps, emit_i64(ir, by - STATE), emit_i64(ir, by)), "");
}

static void renew(const emit_ir *ir, LLVMValueRef state) {
  LLVMBuilderRef b = ir->builder;
  emit_loop l;
  emit_loop_begin(ir, &l, emit_i64(ir, 0), emit_i64(ir, STATE), 1, true, 0, NULL);
  LLVMValueRef one = load(ir, state, l.iv), next = load(ir, state, around(ir, l.iv, 1));
  LLVMValueRef y = LLVMBuildOr(b, bits(ir, one, 0x80000000u), bits(ir, next, 0x7fffffffu), "");
  LLVMValueRef odd = LLVMBuildSub(b, emit_i(y, 0), bits(ir, y, 1), ""); /* all ones if y is odd */
  LLVMValueRef half = LLVMBuildLShr(b, y, emit_i(y, 1), "");
  LLVMValueRef mixed = LLVMBuildXor(b, half, bits(ir, odd, 0x9908b0dfu), "");
  store(ir, state, l.iv, LLVMBuildXor(b, load(ir, state, around(ir, l.iv, FAR)), mixed, ""));
  emit_loop_end(ir, &l, NULL);
}

/* --- the words --- */

/* Writes the generator's outputs for the words of the state to out[at], out[at + 1] and so on, but not beyond out[n -
 * 1]. */
static void write_words(const emit_ir *ir, LLVMValueRef state, LLVMValueRef out, LLVMValueRef at, LLVMValueRef n) {
  LLVMValueRef left = LLVMBuildNSWSub(ir->builder, n, at, "");
  emit_loop l;
  emit_loop_begin(ir, &l, emit_i64(ir, 0), emit_intrinsic2(ir, "llvm.smin", left, emit_i64(ir, STATE)), 1, false, 0,
                  NULL);
  LLVMValueRef y = mix_right(ir, load(ir, state, l.iv), 11);
  y = mix_left(ir, mix_left(ir, y, 7, 0x9d2c5680u), 15, 0xefc60000u);
  store(ir, out, LLVMBuildNSWAdd(ir->builder, at, l.iv, ""), mix_right(ir, y, 18));
  emit_loop_end(ir, &l, NULL);
}

/* Returns the seed: the low half of the operand's only element. */
static LLVMValueRef seed_of(emit_writer *w) {
  const emit_indexer *x = &w->e.x;
  hlo_value v = w->i->operands[0];
  emit_index *at = emit_index_new(x, hlo_rank(v), hlo_shape(v)->dims);
  for (int k = 0; k < at->rank; k++) {
    emit_axis_at(at, k, emit_pos_const(x, 0));
  }
  return LLVMBuildTrunc(w->e.w->builder, emit_value(&w->e, v, at).v, w->e.w->i32, "");
}

/* Returns the number of words to generate.  A u64 consists of two words, the low one first, as targets are
 * little-endian. */
static dim words_of(const hlo_instr *i) {
  dim_table *t = i->parent->module->dims;
  const shape *s = &i->shapes[0];
  return dim_mul(t, shape_dim_product(t, s, 0, s->rank), (dim)(dtype_bytes((dtype)s->type) / sizeof(uint32_t)));
}

int64_t emit_twister_scratch(void) { return STATE * (int64_t)sizeof(uint32_t); }

status emit_twister_kernel(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                           const void *config, uint32_t phase, emit_kernel_info *info) {
  (void)config;
  (void)phase;
  emit_writer w;
  TRY(emit_writer_begin(&w, m, name, i, options, 1, info));
  const emit_ir *ir = w.e.w;
  dim n = words_of(i);
  LLVMValueRef state = emit_writer_buffer(&w, i->n_operands + i->n_results), end = emit_size(&w.e.x, n);
  /* Each word depends on the words before it, so the grid has only one step.  But a call may have an empty range. */
  LLVMBasicBlockRef after = emit_if_begin(ir, emit_icmp(ir, LLVMIntSLT, w.begin, w.end));
  seed(ir, state, seed_of(&w));
  emit_loop l;
  emit_loop_begin(ir, &l, emit_i64(ir, 0), end, STATE, false, 0, NULL);
  emit_poll_in(&w.e.x, l.iv, STATE, n, 1);
  renew(ir, state);
  write_words(ir, state, w.results[0], l.iv, end);
  emit_loop_end(ir, &l, NULL);
  emit_if_end(ir, after);
  info->grid = 1;
  emit_writer_end(&w);
  return emit_writer_check(&w);
}
