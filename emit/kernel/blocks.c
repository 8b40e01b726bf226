/* blocks.c - kernels that are launched as blocks of threads, for GPUs (runtime/block_abi.h).
 *
 * Unless a kernel lets several threads compute a step (emit_block_team), each thread computes the step whose number is
 * the thread's number in the launch.  Loops over results have all dimensions in the grid, so that a step is one
 * element, or as many neighbouring ones as one instruction loads (emit_block_lanes), and the threads of a warp access
 * neighbouring elements.  Whatever else a kernel computes step by step has the same code as on CPUs. */
#include "emit/kernel/block.h"
#include "emit/kernel/execution.h"
#include "emit/math/math.h"

enum { POINTER = 8 }; /* bytes */

static LLVMTypeRef blocks_type(const emit_ir *ir) { return emit_block_ops_of(ir)->type(ir); }

static void blocks_bind(emit_writer *w) {
  w->e.w->watch = NULL;
  w->uniform = EMIT_UNIFORM_BLOCK;
  emit_block_team(w, 0, 1);
}

/* --- how many elements a step has --- */

/* Returns true if a vector of neighbouring elements of i's result is computed from vectors of neighbouring elements of
 * its operands, or from one element.  Returns false for the mathematical functions that are not listed: they look up
 * tables or call code for single numbers, so that vectors would have to be stored in the thread's local memory, and
 * arithmetic takes most of their time, not loads and stores. */
static bool keeps_vectors(const hlo_instr *i) {
  switch (i->op) {
    case HLO_PARAMETER:
    case HLO_CONSTANT:
    case HLO_COPY:
    case HLO_RESHAPE:
    case HLO_BROADCAST:
    case HLO_SLICE:
    case HLO_EXP:
    case HLO_LOG:
    case HLO_TANH:
    case HLO_ERF:
    case HLO_LOGISTIC: return true;
    case HLO_REM: return false;
    case HLO_TRANSPOSE: {
      int last = i->shapes[0].rank - 1;
      return last < 0 || hlo_ints(i, HLO_ATTR_PERMUTATION)[last] == last;
    }
    default: return hlo_info(i)->kind == HLO_ELEMENTWISE && !emit_is_math(i->op);
  }
}

static size_t larger(size_t bytes, const shape *s) {
  size_t own = dtype_bytes((dtype)s->type);
  return own > bytes ? own : bytes;
}

int emit_block_lanes(const emit_writer *w, int rank, const dim *extents) {
  enum { ACCESS = 16 /* the most bytes that an instruction of a thread loads or stores */ };
  size_t bytes = 1;
  bool keeps = !w->place && !w->rows && rank > 0 && (w->e.body || keeps_vectors(w->i));
  for (const hlo_instr *i = w->e.body ? w->e.body->first : NULL; i; i = i->next) {
    keeps = keeps && keeps_vectors(i);
    bytes = larger(bytes, &i->shapes[0]);
  }
  for (uint32_t k = 0; k < w->n_results; k++) {
    bytes = larger(bytes, hlo_shape(w->roots[k]));
    keeps = keeps && !dtype_is_complex(hlo_type(w->roots[k]));
  }
  for (uint32_t k = 0; k < w->e.n_inputs; k++) {
    bytes = larger(bytes, hlo_shape(w->e.inputs[k].value));
    keeps = keeps && !dtype_is_complex(hlo_type(w->e.inputs[k].value)) && !w->e.inputs[k].sizes;
  }
  int lanes = keeps && bytes < ACCESS ? (int)(ACCESS / bytes) : 1;
  return rank == 1 || (rank > 1 && emit_divides(&w->e.x, lanes, extents[rank - 1])) ? lanes : 1;
}

/* --- the loops --- */

/* Writes the body at `flat`, an index of an array that has as many elements as the results. */
static void body_at(emit_writer *w, int rank, const dim *extents, const emit_index *flat, int lanes, emit_body_fn *body,
                    const void *data) {
  emit_indexer *x = &w->e.x;
  x->lanes = lanes;
  body(w, data, rank ? emit_index_reshape(x, flat, rank, extents) : emit_index_new(x, 0, extents));
  x->lanes = 1;
}

/* Writes the body for `lanes` elements from element i on, which is a multiple of `lanes`. */
static void place(emit_writer *w, int rank, const dim *extents, const dim *total, LLVMValueRef i, int lanes,
                  emit_body_fn *body, const void *data) {
  const emit_indexer *x = &w->e.x;
  uint32_t mark = emit_table_mark(x->table);
  emit_index *flat = emit_index_new(x, 1, total);
  emit_axis_at(flat, 0, emit_pos_below(emit_pos_lanes(i, lanes > 1, lanes), *total));
  body_at(w, rank, extents, flat, lanes, body, data);
  emit_table_release(x->table, mark);
}

/* Writes the body for the `lanes` elements of step number w->begin.  They are in one row, since the length of a row is
 * a multiple of `lanes`.  The length may be known only when the kernel runs.  The lanes are a dimension of their own in
 * the index, so that LLVM still sees that dividing their positions by the length gives the same row. */
static void place_rows(emit_writer *w, int rank, const dim *extents, dim total, int lanes, emit_body_fn *body,
                       const void *data) {
  const emit_indexer *x = &w->e.x;
  uint32_t mark = emit_table_mark(x->table);
  dim *dims = ARENA_NEW_N(w->e.w->arena, dim, 2);
  dims[0] = emit_quotient(x, total, lanes);
  dims[1] = lanes;
  emit_index *flat = emit_index_new(x, 2, dims);
  emit_axis_at(flat, 0, emit_pos_below(emit_pos_at(w->begin, 1), dims[0]));
  emit_axis_at(flat, 1, emit_pos_along(emit_pos_const(x, 0), lanes));
  body_at(w, rank, extents, flat, lanes, body, data);
  emit_table_release(x->table, mark);
}

/* Writes a step of `lanes` elements of a grid of one dimension; the last step may have fewer elements. */
static void place_line(emit_writer *w, const dim *total, int lanes, emit_body_fn *body, const void *data) {
  const emit_ir *ir = w->e.w;
  LLVMBuilderRef b = ir->builder;
  LLVMValueRef first = LLVMBuildNSWMul(b, w->begin, emit_i64(ir, lanes), "");
  if (emit_divides(&w->e.x, lanes, *total)) {
    place(w, 1, total, total, first, lanes, body, data);
    return;
  }
  LLVMValueRef n = emit_size(&w->e.x, *total), past = LLVMBuildNSWAdd(b, first, emit_i64(ir, lanes), "");
  LLVMValueRef whole = emit_icmp(ir, LLVMIntSLE, past, n);
  LLVMBasicBlockRef after = emit_if_begin(ir, whole);
  place(w, 1, total, total, first, lanes, body, data);
  emit_if_end(ir, after);
  emit_loop l;
  emit_loop_begin(ir, &l, emit_select(ir, whole, n, first), n, 1, false, 0, NULL);
  place(w, 1, total, total, l.iv, 1, body, data);
  emit_loop_end(ir, &l, NULL);
}

/* Returns the uniformity of the code of a step: among which threads either all have a step or none has one. */
static emit_uniformity uniform_in_step(const emit_writer *w) {
  const emit_kernel_info *info = w->info;
  return info->step_threads == 1               ? EMIT_DIVERGENT
         : info->step_threads == info->threads ? EMIT_UNIFORM_BLOCK
                                               : EMIT_UNIFORM_WARP;
}

static void blocks_nest(emit_writer *w, int rank, const dim *extents, int lanes, bool serial, emit_body_fn *body,
                        const void *data) {
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
    place(w, rank, extents, total, l.iv, 1, body, data);
    emit_loop_end(ir, &l, NULL);
    w->info->grid = 1;
    return;
  }
  LLVMBasicBlockRef after = emit_if_begin(ir, emit_icmp(ir, LLVMIntSLT, w->begin, w->end));
  emit_uniformity outside = w->uniform;
  w->uniform = uniform_in_step(w);
  if (lanes == 1) {
    place(w, rank, extents, total, w->begin, 1, body, data);
  } else if (rank == 1) {
    place_line(w, total, lanes, body, data);
  } else {
    place_rows(w, rank, extents, *total, lanes, body, data);
  }
  w->uniform = outside;
  emit_if_end(ir, after);
  w->info->grid = dim_ceildiv(w->e.x.sizes->table, *total, lanes);
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
