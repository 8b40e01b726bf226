/* blocks.c - kernels that are launched as blocks of threads, for GPUs (runtime/block_abi.h).
 *
 * A thread computes one step of the grid: its number in the launch is the step's.  Loops over results have all
 * dimensions in the grid, so that a step is one element, and the threads of a warp access neighbouring elements.
 * Whatever else a kernel computes step by step has the same code as on CPUs. */
#include "emit/kernel/block.h"
#include "emit/kernel/execution.h"

enum {
  STEPS = EMIT_OWN_PARAMETERS, /* the parameter with the number of steps */
  POINTER = 8,                 /* bytes */
  PARAMETER_BYTES = 4096       /* RT_BLOCK_PARAMETER_BYTES of runtime/block_abi.h */
};

static const emit_block_ops *ops_of(const emit_ir *ir) {
  return ir->target->emulated ? &emit_block_host : &emit_block_nvptx;
}

static LLVMTypeRef blocks_type(const emit_ir *ir) { return ops_of(ir)->type(ir); }

static void blocks_bind(emit_writer *w) {
  emit_ir *ir = w->e.w;
  const emit_block_ops *ops = ops_of(ir);
  LLVMBuilderRef b = ir->builder;
  LLVMValueRef before = LLVMBuildNSWMul(b, ops->block(ir), ops->threads(ir), "");
  w->begin = LLVMBuildNSWAdd(b, before, ops->thread(ir), "");
  LLVMValueRef next = LLVMBuildNSWAdd(b, w->begin, emit_i64(ir, 1), "");
  w->end = emit_intrinsic2(ir, "llvm.smin", next, LLVMGetParam(ir->function, STEPS));
  ir->watch = NULL;
}

/* Writes the body at position i of a loop over all elements. */
static void place(emit_writer *w, int rank, const dim *extents, const dim *total, LLVMValueRef i, emit_body_fn *body,
                  const void *data) {
  emit_indexer *x = &w->e.x;
  uint32_t mark = emit_table_mark(x->table);
  emit_index *flat = emit_index_new(x, 1, total);
  emit_axis_at(flat, 0, emit_pos_at(i, 1));
  body(w, data, rank ? emit_index_reshape(x, flat, rank, extents) : emit_index_new(x, 0, extents));
  emit_table_release(x->table, mark);
}

static void blocks_nest(emit_writer *w, int rank, const dim *extents, int lanes, bool serial, emit_body_fn *body,
                        const void *data) {
  (void)lanes; /* 1, as the target has no vectors */
  const emit_ir *ir = w->e.w;
  dim *total = ARENA_NEW_N(ir->arena, dim, 1);
  *total = emit_dims_product(&w->e.x, extents, 0, rank);
  if (*total == 0) {
    return;
  }
  w->e.x.lanes = 1;
  if (serial) {
    emit_loop l;
    emit_loop_begin(ir, &l, emit_i64(ir, 0), emit_size(&w->e.x, *total), 1, dim_is_const(*total), 0, NULL);
    place(w, rank, extents, total, l.iv, body, data);
    emit_loop_end(ir, &l, NULL);
    w->info->grid = 1;
    return;
  }
  LLVMValueRef steps = LLVMGetParam(ir->function, STEPS);
  LLVMBasicBlockRef after = emit_if_begin(ir, emit_icmp(ir, LLVMIntSLT, w->begin, steps));
  place(w, rank, extents, total, w->begin, body, data);
  emit_if_end(ir, after);
  w->info->grid = *total;
}

static void blocks_end(const emit_writer *w) {
  const emit_block_ops *ops = ops_of(w->e.w);
  if (ops->end) {
    ops->end(w->e.w, w->info->n_buffers, w->info->n_args);
  }
}

static status blocks_check(const emit_writer *w) {
  int64_t words = (int64_t)w->info->n_buffers + (w->info->n_args ? w->info->n_args : 1) + 1;
  CHECK_THAT(words * POINTER <= PARAMETER_BYTES, STATUS_UNSUPPORTED,
             "%s: a kernel of %u buffers and %u sizes has more than %d bytes of parameters", hlo_info(w->i)->name,
             w->info->n_buffers, w->info->n_args, PARAMETER_BYTES);
  return NULL;
}

const emit_execution_ops emit_blocks = {
    .type = blocks_type, .bind = blocks_bind, .nest = blocks_nest, .end = blocks_end, .check = blocks_check};
