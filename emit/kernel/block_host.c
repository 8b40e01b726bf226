/* block_host.c - threads of blocks that a CPU emulates (block.h): a call of the kernel is one thread, and its last
 * parameter is an rt_block_thread (runtime/block_abi.h), which says which one. */
#include "emit/kernel/block.h"
#include "emit/kernel/execution.h"

enum { THREAD = EMIT_OWN_PARAMETERS + 1 /* behind the number of steps */, N_PARAMETERS };

static LLVMTypeRef host_type(const emit_ir *ir) {
  LLVMTypeRef types[N_PARAMETERS] = {ir->ptr, ir->ptr, ir->i64, ir->ptr};
  return LLVMFunctionType(LLVMVoidTypeInContext(ir->context), types, N_PARAMETERS, false);
}

/* Loads member number k of the rt_block_thread. */
static LLVMValueRef member(const emit_ir *ir, unsigned k) {
  LLVMTypeRef members[] = {ir->i64, ir->i32, ir->i32};
  LLVMTypeRef type = LLVMStructTypeInContext(ir->context, members, sizeof members / sizeof *members, false);
  LLVMValueRef at = LLVMBuildStructGEP2(ir->builder, type, LLVMGetParam(ir->function, THREAD), k, "");
  return LLVMBuildZExt(ir->builder, LLVMBuildLoad2(ir->builder, members[k], at, ""), ir->i64, "");
}

static LLVMValueRef host_block(const emit_ir *ir) { return member(ir, 0); }
static LLVMValueRef host_thread(const emit_ir *ir) { return member(ir, 1); }
static LLVMValueRef host_threads(const emit_ir *ir) { return member(ir, 2); }

const emit_block_ops emit_block_host = {
    .type = host_type, .thread = host_thread, .block = host_block, .threads = host_threads};
