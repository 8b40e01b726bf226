/* blocks.c - kernels that are launched as blocks of threads, for GPUs (runtime/block_abi.h).
 *
 * Unless a kernel asks for more (emit_block_team), a thread computes one step of the grid: its number in the launch is
 * the step's.  Loops over results have all dimensions in the grid, so that a step is one element, and the threads of a
 * warp access neighbouring elements.  Whatever else a kernel computes step by step has the same code as on CPUs. */
#include "emit/kernel/block.h"
#include "emit/kernel/execution.h"

enum { POINTER = 8 }; /* bytes */

static LLVMTypeRef blocks_type(const emit_ir *ir) { return emit_block_ops_of(ir)->type(ir); }

static void blocks_bind(emit_writer *w) {
  w->e.w->watch = NULL;
  w->uniform = EMIT_UNIFORM_BLOCK;
  emit_block_team(w, 0, 1);
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

/* Returns which threads are sure to have a step if one of them has. */
static emit_uniformity uniform_in_step(const emit_writer *w) {
  const emit_kernel_info *info = w->info;
  return info->step_threads == 1               ? EMIT_DIVERGENT
         : info->step_threads == info->threads ? EMIT_UNIFORM_BLOCK
                                               : EMIT_UNIFORM_WARP;
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
  LLVMBasicBlockRef after = emit_if_begin(ir, emit_icmp(ir, LLVMIntSLT, w->begin, w->end));
  emit_uniformity outside = w->uniform;
  w->uniform = uniform_in_step(w);
  place(w, rank, extents, total, w->begin, body, data);
  w->uniform = outside;
  emit_if_end(ir, after);
  w->info->grid = *total;
}

static void blocks_end(const emit_writer *w) { emit_block_ops_of(w->e.w)->end(w->e.w, w->info, w->n_syncs); }

static status blocks_check(const emit_writer *w) {
  int64_t words = (int64_t)w->info->n_buffers + (w->info->n_args ? w->info->n_args : 1) + 1;
  CHECK_THAT(words * POINTER <= EMIT_PARAMETER_BYTES, STATUS_UNSUPPORTED,
             "%s: a kernel of %u buffers and %u sizes has more than %d bytes of parameters", hlo_info(w->i)->name,
             w->info->n_buffers, w->info->n_args, EMIT_PARAMETER_BYTES);
  return NULL;
}

const emit_execution_ops emit_blocks = {
    .type = blocks_type, .bind = blocks_bind, .nest = blocks_nest, .end = blocks_end, .check = blocks_check};
