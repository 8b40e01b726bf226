/* block_nvptx.c - threads and kernels of NVIDIA GPUs (block.h). */
#include <assert.h>
#include <string.h>

#include "emit/kernel/block.h"
#include "emit/kernel/execution.h"

static LLVMTypeRef nvptx_type(const emit_ir *ir) {
  LLVMTypeRef types[] = {ir->ptr, ir->ptr, ir->i64};
  return LLVMFunctionType(LLVMVoidTypeInContext(ir->context), types, sizeof types / sizeof *types, false);
}

/* Returns the value of a special register, which has 32 bits and is not negative. */
static LLVMValueRef special_register(const emit_ir *ir, const char *intrinsic) {
  unsigned id = LLVMLookupIntrinsicID(intrinsic, strlen(intrinsic));
  assert(id);
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(ir->module, id, NULL, 0);
  LLVMValueRef v = LLVMBuildCall2(ir->builder, LLVMGlobalGetValueType(f), f, NULL, 0, "");
  return LLVMBuildZExt(ir->builder, v, ir->i64, "");
}

static LLVMValueRef nvptx_thread(const emit_ir *ir) { return special_register(ir, "llvm.nvvm.read.ptx.sreg.tid.x"); }
static LLVMValueRef nvptx_block(const emit_ir *ir) { return special_register(ir, "llvm.nvvm.read.ptx.sreg.ctaid.x"); }
static LLVMValueRef nvptx_threads(const emit_ir *ir) { return special_register(ir, "llvm.nvvm.read.ptx.sreg.ntid.x"); }

/* Makes pointer parameter k an array of `n` elements that lies in the memory of parameters. */
static void pass_array(const emit_ir *ir, unsigned k, LLVMTypeRef element, uint32_t n) {
  static const char by_value[] = "byval", align[] = "align";
  unsigned kinds[] = {LLVMGetEnumAttributeKindForName(by_value, sizeof by_value - 1),
                      LLVMGetEnumAttributeKindForName(align, sizeof align - 1)};
  LLVMTypeRef array = LLVMArrayType2(element, n);
  LLVMAddAttributeAtIndex(ir->function, k + 1, LLVMCreateTypeAttribute(ir->context, kinds[0], array));
  LLVMAddAttributeAtIndex(ir->function, k + 1, LLVMCreateEnumAttribute(ir->context, kinds[1], 8));
}

static void nvptx_end(const emit_ir *ir, uint32_t n_buffers, uint32_t n_args) {
  enum { PTX_KERNEL = 71 }; /* LLVM's calling convention of functions that the driver launches */
  LLVMSetFunctionCallConv(ir->function, PTX_KERNEL);
  pass_array(ir, EMIT_BUFFERS, ir->ptr, n_buffers);
  pass_array(ir, EMIT_ARGS, ir->i64, n_args ? n_args : 1); /* PTX has no parameters without bytes */
}

const emit_block_ops emit_block_nvptx = {
    .type = nvptx_type, .thread = nvptx_thread, .block = nvptx_block, .threads = nvptx_threads, .end = nvptx_end};
