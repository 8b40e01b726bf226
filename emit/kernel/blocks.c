/* blocks.c - kernels that are launched as blocks of threads, for NVIDIA GPUs: void f(buffer 0, ..., buffer n-1).
 *
 * The elements that one thread computes are as far apart in the grid as there are threads in the launch, so that the
 * threads of a warp access neighbouring elements (a grid-stride loop). */
#include "emit/kernel/execution.h"
#include "emit/llvm/metadata.h"

static LLVMTypeRef blocks_type(const emit_ir *ir, uint32_t n) {
  LLVMTypeRef *types = ARENA_NEW_N(ir->arena, LLVMTypeRef, n);
  for (uint32_t k = 0; k < n; k++) {
    types[k] = ir->ptr;
  }
  return LLVMFunctionType(LLVMVoidTypeInContext(ir->context), types, n, false);
}

static void blocks_attributes(const emit_ir *ir, uint32_t n) {
  for (unsigned k = 1; k <= n; k++) {
    emit_add_attribute(ir, k, "nocapture");
  }
}

static void blocks_bind(emit_writer *w, emit_input *inputs) {
  LLVMValueRef function = w->e.w->function;
  for (uint32_t k = 0; k < w->e.n_inputs; k++) {
    inputs[k].base = LLVMGetParam(function, k);
  }
  for (uint32_t k = 0; k < w->n_results; k++) {
    w->results[k] = LLVMGetParam(function, w->e.n_inputs + k);
  }
  w->e.w->watch = NULL;
}

/* Returns the value of one of the special registers that identify a thread, such as "ctaid.x", as an i64. */
static LLVMValueRef special_register(const emit_ir *ir, const char *name) {
  LLVMTypeRef type = LLVMFunctionType(ir->i32, NULL, 0, false);
  LLVMValueRef f = LLVMGetNamedFunction(ir->module, name);
  f = f ? f : LLVMAddFunction(ir->module, name, type);
  return LLVMBuildZExt(ir->builder, LLVMBuildCall2(ir->builder, type, f, NULL, 0, ""), ir->i64, "");
}

/* Writes a grid-stride loop over all elements of the results; the extents are constants. */
static void blocks_nest(emit_writer *w, int rank, const dim *extents, int lanes, bool serial, emit_body_fn *body,
                        const void *data) {
  (void)lanes, (void)serial;
  emit_element *e = &w->e;
  const emit_ir *ir = e->w;
  dim total = emit_dims_product(&e->x, extents, 0, rank);
  LLVMBuilderRef b = ir->builder;
  LLVMValueRef block = special_register(ir, "llvm.nvvm.read.ptx.sreg.ctaid.x"),
               size = special_register(ir, "llvm.nvvm.read.ptx.sreg.ntid.x");
  LLVMValueRef thread = special_register(ir, "llvm.nvvm.read.ptx.sreg.tid.x"),
               blocks = special_register(ir, "llvm.nvvm.read.ptx.sreg.nctaid.x");
  LLVMValueRef first = LLVMBuildAdd(b, LLVMBuildMul(b, block, size, ""), thread, ""),
               stride = LLVMBuildMul(b, size, blocks, "");
  LLVMBasicBlockRef before = emit_here(ir), loop = emit_block(ir, "loop"), done = emit_block(ir, "done");
  LLVMBuildCondBr(b, emit_icmp(ir, LLVMIntSLT, first, emit_i64(ir, total)), loop, done);
  LLVMPositionBuilderAtEnd(b, loop);
  LLVMValueRef i = LLVMBuildPhi(b, ir->i64, "");
  LLVMAddIncoming(i, &first, &before, 1);
  int64_t *dims = ARENA_NEW_N(ir->arena, int64_t, 1);
  *dims = total;
  emit_index *at = emit_index_new(&e->x, 1, dims);
  emit_axis_at(at, 0, emit_pos_at(i, 1));
  e->x.lanes = 1;
  body(w, data, at);
  LLVMBasicBlockRef latch = emit_here(ir);
  LLVMValueRef next = LLVMBuildAdd(b, i, stride, "");
  LLVMAddIncoming(i, &next, &latch, 1);
  LLVMBuildCondBr(b, emit_icmp(ir, LLVMIntSLT, next, emit_i64(ir, total)), loop, done);
  LLVMPositionBuilderAtEnd(b, done);
  w->info->grid = total;
}

/* Marks the function as one that the host launches. */
static void blocks_end(const emit_ir *ir) {
  enum { PTX_KERNEL = 71 };
  LLVMSetFunctionCallConv(ir->function, PTX_KERNEL);
  LLVMMetadataRef operands[] = {LLVMValueAsMetadata(ir->function), LLVMMDStringInContext2(ir->context, "kernel", 6),
                                LLVMValueAsMetadata(LLVMConstInt(ir->i32, 1, false))};
  LLVMAddNamedMetadataOperand(ir->module, "nvvm.annotations", emit_metadata_node(ir, operands, 3));
}

const emit_execution_ops emit_blocks = {.type = blocks_type,
                                        .add_attributes = blocks_attributes,
                                        .bind = blocks_bind,
                                        .nest = blocks_nest,
                                        .end = blocks_end};
