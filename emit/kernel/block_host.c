/* block_host.c - threads of blocks that a CPU emulates (block.h): a call of the kernel is one thread.  Its last
 * parameter, an rt_block_thread (runtime/block_abi.h), says which thread of which block that is.
 *
 * A kernel in which threads wait for each other becomes a coroutine of LLVM (its "switched-resume" kind): a wait is a
 * suspend point, and compile.c has the passes that split the function there. */
#include <assert.h>
#include <string.h>

#include <llvm-c/Target.h>

#include "emit/kernel/block.h"
#include "emit/kernel/execution.h"
#include "emit/llvm/metadata.h"
#include "emit/llvm/number.h"

enum { THREAD = EMIT_STEPS + 1, N_PARAMETERS };

static LLVMTypeRef host_type(const emit_ir *ir) {
  LLVMTypeRef types[N_PARAMETERS] = {ir->ptr, ir->ptr, ir->i64, ir->ptr};
  return LLVMFunctionType(LLVMVoidTypeInContext(ir->context), types, N_PARAMETERS, false);
}

/* --- the members of the rt_block_thread --- */

enum { BLOCK, NUMBER, THREADS, SYNC, FRAME, SHARED, VALUES, LANES, ALLOCATE, ACCESS, COPY, COMMIT, AWAIT, N_MEMBERS };
enum { N_VALUES = 3 }; /* RT_BLOCK_VALUES */

static LLVMTypeRef member_type(const emit_ir *ir, unsigned k) {
  return k == BLOCK ? ir->i64 : k < FRAME ? ir->i32 : k == VALUES ? LLVMArrayType2(ir->i64, N_VALUES) : ir->ptr;
}

static LLVMValueRef member(const emit_ir *ir, unsigned k) {
  LLVMTypeRef types[N_MEMBERS];
  for (unsigned j = 0; j < N_MEMBERS; j++) {
    types[j] = member_type(ir, j);
  }
  LLVMTypeRef type = LLVMStructTypeInContext(ir->context, types, N_MEMBERS, false);
  return LLVMBuildStructGEP2(ir->builder, type, LLVMGetParam(ir->function, THREAD), k, "");
}

static LLVMValueRef get(const emit_ir *ir, unsigned k) {
  return LLVMBuildLoad2(ir->builder, member_type(ir, k), member(ir, k), "");
}

static void set(const emit_ir *ir, unsigned k, LLVMValueRef v) { LLVMBuildStore(ir->builder, v, member(ir, k)); }

static LLVMValueRef get_number(const emit_ir *ir, unsigned k) {
  return LLVMBuildZExt(ir->builder, get(ir, k), ir->i64, "");
}

static LLVMValueRef host_block(const emit_ir *ir) { return get(ir, BLOCK); }
static LLVMValueRef host_thread(const emit_ir *ir) { return get_number(ir, NUMBER); }
static LLVMValueRef host_threads(const emit_ir *ir) { return get_number(ir, THREADS); }
static LLVMValueRef host_shared(const emit_ir *ir) { return get(ir, SHARED); }

/* --- waits --- */

static LLVMValueRef call(const emit_ir *ir, const char *intrinsic, LLVMTypeRef overload, int n, LLVMValueRef *args) {
  unsigned id = LLVMLookupIntrinsicID(intrinsic, strlen(intrinsic));
  assert(id);
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(ir->module, id, &overload, overload ? 1 : 0);
  return LLVMBuildCall2(ir->builder, LLVMGlobalGetValueType(f), f, args, (unsigned)n, "");
}

static LLVMValueRef no_token(const emit_ir *ir) { return LLVMConstNull(LLVMTokenTypeInContext(ir->context)); }

/* A coroutine must end in one place.  Replaces all returns, those at waits and the last one, by branches to a new block
 * at the end. */
static void join_returns(const emit_ir *ir) {
  LLVMBasicBlockRef end = emit_block(ir, "end");
  for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(ir->function); b != end; b = LLVMGetNextBasicBlock(b)) {
    LLVMValueRef last = LLVMGetBasicBlockTerminator(b);
    if (LLVMGetInstructionOpcode(last) == LLVMRet) {
      LLVMInstructionEraseFromParent(last);
      LLVMPositionBuilderAtEnd(ir->builder, b);
      LLVMBuildBr(ir->builder, end);
    }
  }
  LLVMPositionBuilderAtEnd(ir->builder, end);
  (void)call(ir, "llvm.coro.end", NULL, 3,
             (LLVMValueRef[]){LLVMConstNull(ir->ptr), LLVMConstNull(ir->i1), no_token(ir)});
  LLVMBuildRetVoid(ir->builder);
}

static void suspend(const emit_ir *ir, int64_t sync) {
  LLVMBuilderRef b = ir->builder;
  set(ir, SYNC, LLVMConstInt(ir->i32, (unsigned long long)sync, true));
  LLVMValueRef how = call(ir, "llvm.coro.suspend", NULL, 2, (LLVMValueRef[]){no_token(ir), LLVMConstNull(ir->i1)});
  LLVMBasicBlockRef leave = emit_block(ir, "leave"), resumed = emit_block(ir, "resumed");
  LLVMValueRef to = LLVMBuildSwitch(b, how, leave, 1);
  LLVMAddCase(to, LLVMConstNull(ir->i8), resumed);
  LLVMPositionBuilderAtEnd(b, leave);
  LLVMBuildRetVoid(b);
  LLVMPositionBuilderAtEnd(b, resumed);
}

static void host_barrier(const emit_ir *ir, uint32_t number) { suspend(ir, number); }

static void host_fence(const emit_ir *ir) {
  (void)LLVMBuildFence(ir->builder, LLVMAtomicOrderingAcquireRelease, /* singleThread */ false, "");
}

/* Returns the number of the lane whose value this thread gets. */
static LLVMValueRef source_lane(const emit_ir *ir, emit_lane_rule rule, unsigned n) {
  LLVMBuilderRef b = ir->builder;
  LLVMValueRef own = LLVMBuildAnd(b, host_thread(ir), emit_i64(ir, EMIT_WARP - 1), ""), by = emit_i64(ir, n);
  if (rule == EMIT_LANE_XOR) {
    return LLVMBuildXor(b, own, by, "");
  }
  LLVMValueRef other = rule == EMIT_LANE_UP ? LLVMBuildSub(b, own, by, "") : LLVMBuildAdd(b, own, by, "");
  return emit_select(ir, emit_icmp(ir, LLVMIntULT, other, emit_i64(ir, EMIT_WARP)), other, own);
}

static LLVMValueRef host_exchange(const emit_ir *ir, emit_lane_rule rule, LLVMValueRef x, unsigned n, uint32_t number) {
  LLVMBuilderRef b = ir->builder;
  set(ir, VALUES, LLVMBuildZExt(b, x, ir->i64, "")); /* the first of the N_VALUES values */
  suspend(ir, -(int64_t)number);
  LLVMValueRef lane = source_lane(ir, rule, n);
  LLVMValueRef at = LLVMBuildInBoundsGEP2(b, member_type(ir, VALUES), get(ir, LANES), &lane, 1, "");
  return LLVMBuildTrunc(b, LLVMBuildLoad2(b, ir->i64, at, ""), LLVMTypeOf(x), "");
}

/* --- products of matrices: the lanes exchange their factors, and a function adds up the products for one lane --- */

enum { N_SUMS = 4, N_ROW_WORDS = 4, N_COLUMN_WORDS = 2, N_WORDS = N_ROW_WORDS + N_COLUMN_WORDS };
_Static_assert(N_WORDS * 32 == N_VALUES * 64, "an exchange has room for the words of a lane");

/* Loads word k of those that a lane gave to the exchange: first the words of its rows, then the words of its columns.
 */
static LLVMValueRef word_of_lane(const emit_ir *ir, LLVMValueRef lanes, LLVMValueRef lane, unsigned k) {
  LLVMValueRef at = LLVMBuildAdd(ir->builder, LLVMBuildMul(ir->builder, lane, emit_i64(ir, N_WORDS), ""),
                                 emit_i64(ir, (int64_t)k), "");
  return LLVMBuildLoad2(ir->builder, ir->i32, LLVMBuildInBoundsGEP2(ir->builder, ir->i32, lanes, &at, 1, ""), "");
}

/* Returns factor k of a word, in the type of the sums. */
static LLVMValueRef factor_of_word(const emit_ir *ir, dtype t, LLVMValueRef word, unsigned k) {
  LLVMBuilderRef b = ir->builder;
  LLVMTypeRef type = LLVMIntTypeInContext(ir->context, 8 * (unsigned)dtype_bytes(t));
  LLVMValueRef shift = LLVMConstInt(ir->i32, 8 * dtype_bytes(t) * k, false);
  LLVMValueRef bits = LLVMBuildTrunc(b, LLVMBuildLShr(b, word, shift, ""), type, "");
  return t == DTYPE_F32    ? LLVMBuildBitCast(b, bits, ir->f32, "")
         : dtype_is_int(t) ? LLVMBuildIntCast2(b, bits, ir->i32, dtype_is_signed(t), "")
                           : emit_widen(ir, t, bits);
}

static LLVMValueRef add_product(const emit_ir *ir, LLVMValueRef x, LLVMValueRef y, LLVMValueRef sum) {
  return LLVMTypeOf(sum) == ir->f32 ? emit_fma(ir, x, y, sum)
                                    : LLVMBuildAdd(ir->builder, LLVMBuildMul(ir->builder, x, y, ""), sum, "");
}

/* Adds to the lane's sums the products of word number `word` of its two rows with the same word of its two columns. */
static void add_word(const emit_ir *ir, dtype a, dtype b, LLVMValueRef lanes, LLVMValueRef lane, unsigned word,
                     LLVMValueRef *sums) {
  enum { QUAD = EMIT_MMA_WORDS / 2 };
  LLVMBuilderRef o = ir->builder;
  LLVMValueRef t = LLVMBuildAnd(o, lane, emit_i64(ir, QUAD - 1), ""), within = emit_i64(ir, word % QUAD);
  LLVMValueRef row_lane = LLVMBuildAdd(o, LLVMBuildSub(o, lane, t, ""), within, "");
  LLVMValueRef column_lane = LLVMBuildAdd(o, LLVMBuildMul(o, t, emit_i64(ir, 2 * QUAD), ""), within, "");
  LLVMValueRef next = LLVMBuildAdd(o, column_lane, emit_i64(ir, QUAD), "");
  LLVMValueRef rows[2], columns[2];
  for (unsigned k = 0; k < 2; k++) {
    rows[k] = word_of_lane(ir, lanes, row_lane, word / QUAD * 2 + k);
    columns[k] = word_of_lane(ir, lanes, k ? next : column_lane, N_ROW_WORDS + word / QUAD);
  }
  for (unsigned f = 0; f < sizeof(int32_t) / dtype_bytes(a); f++) {
    for (unsigned k = 0; k < N_SUMS; k++) {
      sums[k] =
          add_product(ir, factor_of_word(ir, a, rows[k / 2], f), factor_of_word(ir, b, columns[k % 2], f), sums[k]);
    }
  }
}

/* Returns the function of this module that computes the lane's sums: from the address of the exchanged words, the
 * number of the lane, and the sums so far. */
static LLVMValueRef mma_function(const emit_ir *ir, dtype a, dtype b, LLVMTypeRef sum) {
  const char *name = arena_printf(ir->arena, "mma_%s_%s", dtype_name(a), dtype_name(b));
  LLVMValueRef f = LLVMGetNamedFunction(ir->module, name);
  if (f) {
    return f;
  }
  LLVMTypeRef types[] = {ir->ptr, ir->i64, sum, sum, sum, sum};
  LLVMTypeRef result = LLVMArrayType2(sum, N_SUMS);
  f = LLVMAddFunction(ir->module, name, LLVMFunctionType(result, types, 2 + N_SUMS, false));
  LLVMSetLinkage(f, LLVMInternalLinkage);
  LLVMBasicBlockRef here = emit_here(ir);
  LLVMPositionBuilderAtEnd(ir->builder, LLVMAppendBasicBlockInContext(ir->context, f, ""));
  LLVMValueRef sums[N_SUMS], all = LLVMGetPoison(result);
  for (unsigned k = 0; k < N_SUMS; k++) {
    sums[k] = LLVMGetParam(f, 2 + k);
  }
  for (unsigned word = 0; word < EMIT_MMA_WORDS; word++) {
    add_word(ir, a, b, LLVMGetParam(f, 0), LLVMGetParam(f, 1), word, sums);
  }
  for (unsigned k = 0; k < N_SUMS; k++) {
    all = LLVMBuildInsertValue(ir->builder, all, sums[k], k, "");
  }
  LLVMBuildRet(ir->builder, all);
  LLVMPositionBuilderAtEnd(ir->builder, here);
  return f;
}

static void host_mma(const emit_ir *ir, dtype a, dtype b, const LLVMValueRef *rows, const LLVMValueRef *columns,
                     LLVMValueRef *sums, uint32_t number) {
  LLVMBuilderRef o = ir->builder;
  for (unsigned k = 0; k < N_WORDS; k++) {
    LLVMValueRef at = emit_i64(ir, (int64_t)k);
    LLVMValueRef to = LLVMBuildInBoundsGEP2(o, ir->i32, member(ir, VALUES), &at, 1, "");
    LLVMBuildStore(o, k < N_ROW_WORDS ? rows[k] : columns[k - N_ROW_WORDS], to);
  }
  suspend(ir, -(int64_t)number);
  LLVMValueRef lane = LLVMBuildAnd(o, host_thread(ir), emit_i64(ir, EMIT_WARP - 1), "");
  LLVMValueRef args[2 + N_SUMS] = {get(ir, LANES), lane, sums[0], sums[1], sums[2], sums[3]};
  LLVMValueRef f = mma_function(ir, a, b, LLVMTypeOf(sums[0]));
  LLVMValueRef all = LLVMBuildCall2(o, LLVMGlobalGetValueType(f), f, args, 2 + N_SUMS, "");
  for (unsigned k = 0; k < N_SUMS; k++) {
    sums[k] = LLVMBuildExtractValue(o, all, k, "");
  }
}

enum { F64_ROWS = 2, F64_VALUES = F64_ROWS + 1, F64_FACTORS = 4 };
_Static_assert((int)F64_VALUES <= (int)N_VALUES, "an exchange has room for the factors of a lane");

/* Loads, as an f64, value k of those that lane number `lane` stored in rt_block_thread.values before the warp's
 * exchange. */
static LLVMValueRef f64_of_lane(const emit_ir *ir, LLVMValueRef lane, int64_t k) {
  LLVMBuilderRef b = ir->builder;
  LLVMValueRef at = LLVMBuildAdd(b, LLVMBuildMul(b, lane, emit_i64(ir, N_VALUES), ""), emit_i64(ir, k), "");
  return LLVMBuildLoad2(b, ir->f64, LLVMBuildInBoundsGEP2(b, ir->i64, get(ir, LANES), &at, 1, ""), "");
}

static void host_mma_f64(const emit_ir *ir, const LLVMValueRef *rows, LLVMValueRef column, LLVMValueRef *sums,
                         uint32_t number) {
  LLVMBuilderRef b = ir->builder;
  for (int64_t k = 0; k < F64_VALUES; k++) {
    LLVMValueRef at = emit_i64(ir, k), to = LLVMBuildInBoundsGEP2(b, ir->i64, member(ir, VALUES), &at, 1, "");
    LLVMBuildStore(b, k < F64_ROWS ? rows[k] : column, to);
  }
  suspend(ir, -(int64_t)number);
  LLVMValueRef lane = LLVMBuildAnd(b, host_thread(ir), emit_i64(ir, EMIT_WARP - 1), "");
  LLVMValueRef t = LLVMBuildAnd(b, lane, emit_i64(ir, F64_FACTORS - 1), ""), row = LLVMBuildSub(b, lane, t, "");
  for (int64_t f = 0; f < F64_FACTORS; f++) {
    LLVMValueRef row_lane = LLVMBuildAdd(b, row, emit_i64(ir, f), "");
    for (int64_t k = 0; k < N_SUMS; k++) { /* columns 2t and 2t + 1 */
      LLVMValueRef column_lane = LLVMBuildMul(b, t, emit_i64(ir, 2 * F64_FACTORS), "");
      column_lane = LLVMBuildAdd(b, column_lane, emit_i64(ir, k % 2 * F64_FACTORS + f), "");
      sums[k] = emit_fma(ir, f64_of_lane(ir, row_lane, k / 2), f64_of_lane(ir, column_lane, F64_ROWS), sums[k]);
    }
  }
}

static void host_load_fragment(const emit_ir *ir, LLVMValueRef base, int64_t pitch, LLVMValueRef *words) {
  LLVMBuilderRef b = ir->builder;
  LLVMValueRef lane = LLVMBuildAnd(b, host_thread(ir), emit_i64(ir, EMIT_WARP - 1), "");
  LLVMValueRef row = LLVMBuildUDiv(b, lane, emit_i64(ir, 4), ""), word = LLVMBuildAnd(b, lane, emit_i64(ir, 3), "");
  LLVMValueRef first = LLVMBuildAdd(b, LLVMBuildMul(b, row, emit_i64(ir, pitch), ""), word, "");
  for (int k = 0; k < N_ROW_WORDS; k++) {
    LLVMValueRef at = LLVMBuildAdd(b, first, emit_i64(ir, (k % 2 ? 8 * pitch : 0) + k / 2 * 4), "");
    words[k] = LLVMBuildLoad2(b, ir->i32, LLVMBuildInBoundsGEP2(b, ir->i32, base, &at, 1, ""), "");
  }
}

static void host_load_fragment_across(const emit_ir *ir, LLVMValueRef base, int64_t pitch, LLVMValueRef *words) {
  LLVMBuilderRef b = ir->builder;
  LLVMValueRef lane = LLVMBuildAnd(b, host_thread(ir), emit_i64(ir, EMIT_WARP - 1), "");
  LLVMValueRef row = LLVMBuildUDiv(b, lane, emit_i64(ir, 4), ""), word = LLVMBuildAnd(b, lane, emit_i64(ir, 3), "");
  for (int k = 0; k < N_ROW_WORDS; k++) {
    LLVMValueRef factors[2];
    for (int f = 0; f < 2; f++) {
      LLVMValueRef line = LLVMBuildAdd(b, LLVMBuildMul(b, word, emit_i64(ir, 2), ""), emit_i64(ir, k / 2 * 8 + f), "");
      LLVMValueRef at = LLVMBuildAdd(b, LLVMBuildMul(b, line, emit_i64(ir, 2 * pitch), ""), row, "");
      at = LLVMBuildAdd(b, at, emit_i64(ir, k % 2 * 8), "");
      factors[f] = LLVMBuildLoad2(b, ir->i16, LLVMBuildInBoundsGEP2(b, ir->i16, base, &at, 1, ""), "");
      factors[f] = LLVMBuildZExt(b, factors[f], ir->i32, "");
    }
    words[k] = LLVMBuildOr(b, factors[0], LLVMBuildShl(b, factors[1], LLVMConstInt(ir->i32, 16, false), ""), "");
  }
}

/* --- copies --- */

/* Writes a call of the function to which member number `function` of the rt_block_thread points.  Sets args[0] to the
 * rt_block_thread. */
static void call_thread(const emit_ir *ir, unsigned function, unsigned n, LLVMValueRef *args) {
  enum { MOST = 5 };
  LLVMTypeRef types[MOST];
  assert(n <= MOST);
  args[0] = LLVMGetParam(ir->function, THREAD);
  for (unsigned k = 0; k < n; k++) {
    types[k] = LLVMTypeOf(args[k]);
  }
  LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(ir->context), types, n, false);
  (void)LLVMBuildCall2(ir->builder, type, get(ir, function), args, n, "");
}

static void host_copy(const emit_ir *ir, LLVMValueRef to, LLVMValueRef from, unsigned bytes, LLVMValueRef live) {
  if (ir->target->tells_accesses) {
    LLVMValueRef told[] = {NULL, to, emit_i64(ir, bytes), LLVMConstInt(ir->i32, 1, false)};
    call_thread(ir, ACCESS, 4, told);
  }
  LLVMValueRef args[] = {NULL, to, from, LLVMConstInt(ir->i32, bytes, false), live};
  call_thread(ir, COPY, 5, args);
}

static void host_commit(const emit_ir *ir) { call_thread(ir, COMMIT, 1, (LLVMValueRef[1]){NULL}); }

static void host_await(const emit_ir *ir, unsigned groups) {
  call_thread(ir, AWAIT, 2, (LLVMValueRef[]){NULL, LLVMConstInt(ir->i32, groups, false)});
}

/* Writes, before all other instructions, the code by which the coroutine gets memory for its frame. */
static void begin_coroutine(const emit_ir *ir) {
  enum { FRAME_ALIGN = 64 };
  LLVMValueRef null = LLVMConstNull(ir->ptr), align = LLVMConstInt(ir->i32, FRAME_ALIGN, false);
  LLVMPositionBuilderBefore(ir->builder, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(ir->function)));
  LLVMValueRef id = call(ir, "llvm.coro.id", NULL, 4, (LLVMValueRef[]){align, null, null, null});
  LLVMValueRef size = call(ir, "llvm.coro.size", ir->i64, 0, NULL);
  LLVMTypeRef type = LLVMFunctionType(ir->ptr, (LLVMTypeRef[]){ir->ptr, ir->i64}, 2, false);
  LLVMValueRef args[] = {LLVMGetParam(ir->function, THREAD), size};
  LLVMValueRef memory = LLVMBuildCall2(ir->builder, type, get(ir, ALLOCATE), args, 2, "");
  set(ir, FRAME, call(ir, "llvm.coro.begin", NULL, 2, (LLVMValueRef[]){id, memory}));
}

/* --- reporting loads and stores, so that races can be found (rt_block_thread.access) --- */

/* Returns true if it is visible in the code that no other thread writes to `address`: it lies in the memory of the
 * parameters, on the thread's stack or in a constant. */
static bool is_private(LLVMValueRef address) {
  while (LLVMIsAGetElementPtrInst(address)) {
    address = LLVMGetOperand(address, 0);
  }
  return LLVMIsAArgument(address) || LLVMIsAAllocaInst(address) || LLVMIsAGlobalVariable(address) ||
         LLVMIsAConstantExpr(address);
}

/* Writes a call of rt_block_thread.access before a load or store, unless no other thread writes to that address. */
static void tell_access(const emit_ir *ir, LLVMValueRef instruction) {
  static const char invariant[] = "invariant.load";
  bool load = LLVMIsALoadInst(instruction);
  unsigned kind = LLVMGetMDKindIDInContext(ir->context, invariant, sizeof invariant - 1);
  LLVMValueRef at = load || LLVMIsAStoreInst(instruction) ? LLVMGetOperand(instruction, load ? 0 : 1) : NULL;
  if (!at || is_private(at) || LLVMGetMetadata(instruction, kind)) {
    return;
  }
  LLVMTypeRef type = LLVMTypeOf(load ? instruction : LLVMGetOperand(instruction, 0));
  uint64_t bytes = LLVMStoreSizeOfType(LLVMGetModuleDataLayout(ir->module), type);
  LLVMPositionBuilderBefore(ir->builder, instruction);
  LLVMValueRef args[] = {NULL, at, emit_i64(ir, (int64_t)bytes), LLVMConstInt(ir->i32, !load, false)};
  call_thread(ir, ACCESS, 4, args);
}

static void tell_accesses(const emit_ir *ir) {
  LLVMBasicBlockRef here = emit_here(ir);
  for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(ir->function); b; b = LLVMGetNextBasicBlock(b)) {
    for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) {
      tell_access(ir, i);
    }
  }
  LLVMPositionBuilderAtEnd(ir->builder, here);
}

static void host_end(const emit_ir *ir, const emit_kernel_info *info, uint32_t syncs) {
  (void)info;
  if (ir->target->tells_accesses) {
    tell_accesses(ir);
  }
  if (syncs == 0) {
    return;
  }
  LLVMPositionBuilderBefore(ir->builder, LLVMGetBasicBlockTerminator(emit_here(ir)));
  set(ir, SYNC, LLVMConstNull(ir->i32));
  join_returns(ir);
  begin_coroutine(ir);
  emit_add_attribute(ir, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "presplitcoroutine");
}

const emit_block_ops emit_block_host = {.type = host_type,
                                        .thread = host_thread,
                                        .block = host_block,
                                        .threads = host_threads,
                                        .barrier = host_barrier,
                                        .shared = host_shared,
                                        .fence = host_fence,
                                        .exchange = host_exchange,
                                        .mma = host_mma,
                                        .mma_f64 = host_mma_f64,
                                        .load_fragment = host_load_fragment,
                                        .load_fragment_across = host_load_fragment_across,
                                        .copy = host_copy,
                                        .commit = host_commit,
                                        .await = host_await,
                                        .end = host_end};
