/* block_host.c - threads of blocks that a CPU emulates (block.h): a call of the kernel is one thread, and its last
 * parameter is an rt_block_thread (runtime/block_abi.h), which says which one.
 *
 * A kernel in which threads wait for each other becomes a coroutine of LLVM (its "switched-resume" kind): a wait is a
 * suspend point, and compile.c has the passes that split the function there. */
#include <assert.h>
#include <string.h>

#include <llvm-c/Target.h>

#include "emit/kernel/block.h"
#include "emit/kernel/execution.h"
#include "emit/llvm/metadata.h"

enum { THREAD = EMIT_STEPS + 1, N_PARAMETERS };

static LLVMTypeRef host_type(const emit_ir *ir) {
  LLVMTypeRef types[N_PARAMETERS] = {ir->ptr, ir->ptr, ir->i64, ir->ptr};
  return LLVMFunctionType(LLVMVoidTypeInContext(ir->context), types, N_PARAMETERS, false);
}

/* --- the members of the rt_block_thread --- */

enum { BLOCK, NUMBER, THREADS, SYNC, FRAME, SHARED, VALUE, LANES, ALLOCATE, ACCESS, N_MEMBERS };

static LLVMTypeRef member_type(const emit_ir *ir, unsigned k) {
  return k == BLOCK || k == VALUE ? ir->i64 : k < FRAME ? ir->i32 : ir->ptr;
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

/* A coroutine ends in one place: lets all returns, from waits and from the end, go there. */
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

/* Returns the lane from which the value comes. */
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
  set(ir, VALUE, LLVMBuildZExt(b, x, ir->i64, ""));
  suspend(ir, -(int64_t)number);
  LLVMValueRef lane = source_lane(ir, rule, n), at = LLVMBuildInBoundsGEP2(b, ir->i64, get(ir, LANES), &lane, 1, "");
  return LLVMBuildTrunc(b, LLVMBuildLoad2(b, ir->i64, at, ""), LLVMTypeOf(x), "");
}

/* Writes, before all other instructions, how the coroutine gets memory for its frame. */
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

/* --- telling accesses --- */

/* Returns true if no other thread writes the memory at that address, as far as the code shows: it is the parameters',
 * the thread's stack, or a constant. */
static bool is_private(LLVMValueRef address) {
  while (LLVMIsAGetElementPtrInst(address)) {
    address = LLVMGetOperand(address, 0);
  }
  return LLVMIsAArgument(address) || LLVMIsAAllocaInst(address) || LLVMIsAGlobalVariable(address) ||
         LLVMIsAConstantExpr(address);
}

/* Writes a call of the thread's `access` before a load or store, unless no other thread writes there. */
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
  LLVMTypeRef parameters[] = {ir->ptr, ir->ptr, ir->i64, ir->i32};
  LLVMTypeRef function = LLVMFunctionType(LLVMVoidTypeInContext(ir->context), parameters, 4, false);
  LLVMValueRef args[] = {LLVMGetParam(ir->function, THREAD), at, emit_i64(ir, (int64_t)bytes),
                         LLVMConstInt(ir->i32, !load, false)};
  (void)LLVMBuildCall2(ir->builder, function, get(ir, ACCESS), args, 4, "");
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
                                        .exchange = host_exchange,
                                        .end = host_end};
