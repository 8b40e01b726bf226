/* nest.c - the loops of a kernel over its grid: outer dimensions in parallel, the innermost one in vectors. */
#include <math.h>
#include <string.h>

#include "emit/element/loop_plan.h"
#include "emit/kernel/module.h"
#include "emit/kernel/writer.h"

int emit_writer_lanes(const emit_writer *w) {
  int lanes = w->e.w->target->lanes;
  size_t largest = 1;
  for (uint32_t k = 0; k < w->e.n_inputs; k++) {
    size_t bytes = dtype_bytes(hlo_type(w->e.inputs[k].value));
    largest = bytes > largest ? bytes : largest;
  }
  for (uint32_t k = 0; k < w->n_results; k++) {
    size_t bytes = dtype_bytes(hlo_type(w->roots[k]));
    largest = bytes > largest ? bytes : largest;
  }
  if (lanes == 1 || largest == 4) {
    return lanes;
  }
  return largest >= 8 ? (lanes > 4 ? lanes / 2 : lanes) : lanes * 2;
}

typedef struct nest {
  emit_writer *w;
  int rank, lanes;
  const int64_t *extents;
  int64_t inner, block, blocks; /* the last dimension, in `blocks` pieces of `block` */
  emit_body_fn *body;
  const void *data;
  const emit_index *rows; /* the outer dimensions */
} nest;

/* The body at i, one of every `lanes` places from `from` to `to` in the last dimension. */
static void place(const nest *n, LLVMValueRef i, int lanes, int64_t from, int64_t to) {
  emit_element *e = &n->w->e;
  uint32_t mark = emit_table_mark(e->x.table);
  int before = e->x.lanes;
  e->x.lanes = lanes;
  emit_index *at = emit_index_new(&e->x, n->rank, n->extents);
  for (int k = 0; k < n->rank - 1; k++) {
    emit_axis_from(at, k, n->rows, k);
  }
  if (n->rank) {
    int64_t multiple = lanes;
    while (from % multiple) {
      multiple /= 2;
    }
    emit_axis_at(at, n->rank - 1, (emit_pos){i, lanes > 1, multiple, from, to});
  }
  n->body(n->w, n->data, at);
  e->x.lanes = before;
  emit_table_release(e->x.table, mark);
}

/* [from, to) of the last dimension, which begins at a multiple of `lanes`, in steps of as many. */
static void steps(const nest *n, LLVMValueRef from, LLVMValueRef to, int lanes) {
  emit_loop l;
  emit_loop_begin(n->w->e.w, &l, from, to, lanes, false, 0, NULL);
  place(n, l.iv, lanes, 0, n->inner);
  emit_loop_end(n->w->e.w, &l, NULL);
}

/* The same for what is known now, at least one step. */
static void known_steps(const nest *n, int64_t from, int64_t to, int lanes) {
  const emit_ir *ir = n->w->e.w;
  if (to - from == lanes) {
    place(n, emit_i64(ir, from), lanes, from, to);
    return;
  }
  emit_loop l;
  emit_loop_begin(ir, &l, emit_i64(ir, from), emit_i64(ir, to), lanes, true, 0, NULL);
  place(n, l.iv, lanes, from, to);
  emit_loop_end(ir, &l, NULL);
}

static void whole_part(const nest *n, int64_t from, int64_t to, int lanes) {
  int64_t whole = from + (to - from) / lanes * lanes;
  if (whole > from) {
    known_steps(n, from, whole, lanes);
  }
  if (to > whole) {
    known_steps(n, whole, to, 1);
  }
}

static bool writes_in_place(const emit_writer *w) {
  for (uint32_t k = 0; k < w->n_results; k++) {
    if (w->shared[k]) {
      return true;
    }
  }
  return false;
}

/* A piece, in vectors that may be narrower than the others.  The last one may lie over the one before, which writes the
 * same again (where nothing that it reads has changed meanwhile). */
static void piece(const nest *n, int64_t from, int64_t to) {
  int lanes = n->lanes;
  while (lanes > to - from) {
    lanes /= 2;
  }
  int64_t whole = from + (to - from) / lanes * lanes;
  if (writes_in_place(n->w)) {
    whole_part(n, from, to, emit_choose_lanes(to - from, n->lanes));
    return;
  }
  known_steps(n, from, whole, lanes);
  if (to > whole) {
    place(n, emit_i64(n->w->e.w, to - lanes), lanes, to - lanes, to);
  }
}

static void inner_part(const nest *n, LLVMValueRef block) {
  const emit_ir *ir = n->w->e.w;
  int64_t whole = n->inner / n->lanes * n->lanes;
  if (n->blocks == 1 && n->w->n_split_points) {
    for (int k = 0; k <= n->w->n_split_points; k++) {
      piece(n, k ? n->w->split_points[k - 1] : 0, k < n->w->n_split_points ? n->w->split_points[k] : n->inner);
    }
    return;
  }
  if (n->blocks == 1) {
    whole_part(n, 0, n->inner, n->lanes);
    return;
  }
  LLVMValueRef from = LLVMBuildNSWMul(ir->builder, block, emit_i64(ir, n->block), "");
  LLVMValueRef to = LLVMBuildNSWAdd(ir->builder, from, emit_i64(ir, n->block), "");
  LLVMValueRef vectors = emit_intrinsic2(ir, "llvm.smin", to, emit_i64(ir, whole));
  steps(n, from, vectors, n->lanes);
  if (n->inner > whole) {
    LLVMValueRef last = emit_icmp(ir, LLVMIntSGE, to, emit_i64(ir, n->inner));
    LLVMValueRef stop = emit_select(ir, last, emit_i64(ir, n->inner), emit_i64(ir, whole));
    LLVMValueRef start = emit_select(ir, last, emit_i64(ir, whole), stop);
    steps(n, start, stop, 1);
  }
}

/* Pieces of some microseconds, at most 256 of them unless each would take long. */
static void choose_blocks(nest *n, int64_t outer, bool serial) {
  const double longest = 5e7;
  double each = n->w->cost / (double)(outer * n->inner), wanted = each * (double)n->inner / longest;
  int64_t least = (int64_t)(4000 / (each > 0.01 ? each : 0.01)), pieces = 256 / outer;
  pieces = wanted > (double)pieces ? (int64_t)fmin(wanted, (double)n->inner) : pieces;
  n->block = n->inner;
  if (!serial && pieces > 1) {
    int64_t b = n->inner / pieces;
    b = b < least ? least : b;
    b = b < 1 ? 1 : b; /* elements that take long each, fewer than pieces */
    b = (b + n->lanes * 4 - 1) / (n->lanes * 4) * (n->lanes * 4);
    n->block = b < n->inner ? b : n->inner;
  }
  n->blocks = (n->inner + n->block - 1) / n->block;
}

static void row(nest *n, LLVMValueRef item, int64_t outer) {
  emit_element *e = &n->w->e;
  const emit_ir *ir = e->w;
  LLVMValueRef block = NULL, number = item;
  if (n->blocks > 1) {
    block = emit_opaque(ir, LLVMBuildURem(ir->builder, item, emit_i64(ir, n->blocks), ""));
    number = emit_opaque(ir, LLVMBuildUDiv(ir->builder, item, emit_i64(ir, n->blocks), ""));
  } else if (e->rows || n->inner > n->lanes) { /* a loop follows */
    number = emit_opaque(ir, item);
  }
  int64_t *flat_dims = ARENA_NEW_N(ir->arena, int64_t, 1);
  *flat_dims = outer;
  emit_index *flat = emit_index_new(&e->x, 1, flat_dims);
  emit_axis_at(flat, 0, emit_pos_at(number, 1));
  n->rows = emit_index_reshape(&e->x, flat, n->rank > 1 ? n->rank - 1 : 1, n->rank > 1 ? n->extents : flat_dims);
  for (int k = 0; k < n->rank - 1; k++) { /* before the inner loop, which finds them again */
    (void)emit_index_dim(&e->x, n->rows, k);
  }
  inner_part(n, block);
}

static void gpu_nest(emit_writer *w, int64_t total, emit_body_fn *body, const void *data);

void emit_nest(emit_writer *w, int rank, const int64_t *extents, int lanes, bool serial, emit_body_fn *body,
               const void *data) {
  emit_element *e = &w->e;
  const emit_ir *ir = e->w;
  nest n = {.w = w,
            .rank = rank,
            .lanes = lanes,
            .extents = extents,
            .inner = rank ? extents[rank - 1] : 1,
            .body = body,
            .data = data};
  int64_t outer = 1;
  for (int k = 0; k < rank - 1; k++) {
    outer *= extents[k];
  }
  if (outer * n.inner == 0) {
    return;
  }
  if (ir->target->gpu) {
    gpu_nest(w, outer * n.inner, body, data);
    return;
  }
  choose_blocks(&n, outer, serial);
  int64_t grid = outer * n.blocks;
  e->x.lanes = 1;
  emit_loop l;
  emit_loop_begin(ir, &l, serial ? emit_i64(ir, 0) : w->begin, serial ? emit_i64(ir, grid) : w->end, 1, serial, 0,
                  NULL);
  uint32_t mark = emit_table_mark(e->x.table);
  row(&n, l.iv, outer);
  emit_table_release(e->x.table, mark);
  emit_loop_end(ir, &l, NULL);
  w->info->grid = serial ? 1 : grid;
}

static LLVMValueRef gpu_register(const emit_ir *ir, const char *name) {
  LLVMTypeRef type = LLVMFunctionType(ir->i32, NULL, 0, false);
  LLVMValueRef f = LLVMGetNamedFunction(ir->module, name);
  f = f ? f : LLVMAddFunction(ir->module, name, type);
  return LLVMBuildZExt(ir->builder, LLVMBuildCall2(ir->builder, type, f, NULL, 0, ""), ir->i64, "");
}

/* Every thread takes elements that are as far apart as there are threads. */
static void gpu_nest(emit_writer *w, int64_t total, emit_body_fn *body, const void *data) {
  emit_element *e = &w->e;
  const emit_ir *ir = e->w;
  LLVMBuilderRef b = ir->builder;
  LLVMValueRef block = gpu_register(ir, "llvm.nvvm.read.ptx.sreg.ctaid.x"),
               size = gpu_register(ir, "llvm.nvvm.read.ptx.sreg.ntid.x");
  LLVMValueRef thread = gpu_register(ir, "llvm.nvvm.read.ptx.sreg.tid.x"),
               blocks = gpu_register(ir, "llvm.nvvm.read.ptx.sreg.nctaid.x");
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
