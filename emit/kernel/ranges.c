/* ranges.c - kernels whose calls compute ranges of the grid, for CPUs: void f(buffers, args, begin, end).
 *
 * The parameters are those of runtime/kernel_abi.h.  The grid is the outer dimensions of the results and, if these are
 * few, blocks of the innermost one.  The innermost dimension is a loop over vectors. */
#include <math.h>

#include "emit/element/loop_plan.h"
#include "emit/kernel/execution.h"

/* --- the function --- */

enum { BEGIN = EMIT_OWN_PARAMETERS, END, N_PARAMETERS };

static LLVMTypeRef ranges_type(const emit_ir *ir) {
  LLVMTypeRef types[N_PARAMETERS] = {ir->ptr, ir->ptr, ir->i64, ir->i64};
  return LLVMFunctionType(LLVMVoidTypeInContext(ir->context), types, N_PARAMETERS, false);
}

static void ranges_bind(emit_writer *w) {
  emit_ir *ir = w->e.w;
  LLVMValueRef at = emit_i64(ir, w->info->n_buffers), table = LLVMGetParam(ir->function, EMIT_BUFFERS);
  ir->watch = LLVMBuildLoad2(ir->builder, ir->ptr, LLVMBuildInBoundsGEP2(ir->builder, ir->ptr, table, &at, 1, ""), "");
  w->begin = LLVMGetParam(ir->function, BEGIN);
  w->end = LLVMGetParam(ir->function, END);
}

/* --- the loops over a range of the grid --- */

typedef struct nest {
  emit_writer *w;
  int rank, lanes;
  const dim *extents;
  dim inner, block, blocks; /* the last dimension, divided into `blocks` blocks of `block` elements; `block` is a
                               constant or equal to `inner` */
  emit_body_fn *body;
  const void *data;
  const emit_index *rows; /* the index of the outer dimensions */
} nest;

/* Writes the body at position i of the last dimension, which is `from` plus a multiple of `lanes` and less than `to`.
 * `to` is 0 if no limit is known; `from` is then 0 as well. */
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
    emit_axis_at(at, n->rank - 1,
                 (emit_pos){.base = i, .step = lanes > 1, .multiple = multiple, .least = from, .past = to});
  }
  n->body(n->w, n->data, at);
  e->x.lanes = before;
  emit_table_release(e->x.table, mark);
}

/* Writes the loop over [from, to) of the last dimension in steps of `lanes`; `from` is a multiple of `lanes`. */
static void steps(const nest *n, LLVMValueRef from, LLVMValueRef to, int lanes) {
  emit_loop l;
  emit_loop_begin(n->w->e.w, &l, from, to, lanes, false, 0, NULL);
  place(n, l.iv, lanes, 0, dim_is_const(n->inner) ? n->inner : 0);
  emit_loop_end(n->w->e.w, &l, NULL);
}

/* Writes the same loop as `steps`, for constant `from` and `to` and at least one iteration. */
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

/* Writes the elements [from, to) of the last dimension, between two of the split points (emit_writer), in vectors that
 * may be narrower than n->lanes.  The last vector may overlap the one before and compute the same again, unless a
 * result overwrites an operand. */
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

/* Writes the loops over a block of the last dimension, whose extent is an argument: vectors of n->lanes elements, then,
 * if these are wider than emit_element.wide, vectors of that width, then the single elements after the last whole
 * vector. */
static void inner_part_of_size(const nest *n, LLVMValueRef block) {
  const emit_ir *ir = n->w->e.w;
  LLVMValueRef inner = emit_size(&n->w->e.x, n->inner), from = emit_i64(ir, 0), to = inner;
  if (block) {
    from = LLVMBuildNSWMul(ir->builder, block, emit_i64(ir, n->block), "");
    to = LLVMBuildNSWAdd(ir->builder, from, emit_i64(ir, n->block), "");
    to = emit_intrinsic2(ir, "llvm.smin", to, inner);
  }
  for (int lanes = n->lanes, next; lanes; lanes = next) {
    LLVMValueRef whole = lanes > 1 ? LLVMBuildAnd(ir->builder, to, emit_i64(ir, -(int64_t)lanes), "") : to;
    steps(n, from, whole, lanes);
    from = whole;
    next = lanes == 1 ? 0 : lanes > n->w->e.wide ? n->w->e.wide : 1;
  }
}

static void inner_part(const nest *n, LLVMValueRef block) {
  const emit_ir *ir = n->w->e.w;
  if (!dim_is_const(n->inner)) {
    inner_part_of_size(n, block);
    return;
  }
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

static int64_t likely(const dim_table *t, dim d) {
  return dim_is_const(d) ? d : (int64_t)fmin(fmax(emit_likely_size(t, d), 1), 1e12);
}

/* Chooses blocks that take some microseconds each, at most 256 of them unless a block would then take too long.  If the
 * extent of the last dimension is an argument, the blocks are chosen for its likely size. */
static void choose_blocks(nest *n, dim outer_size, bool serial) {
  const double longest = 5e7;
  dim_table *t = n->w->e.x.sizes->table;
  bool constant = dim_is_const(n->inner);
  int64_t outer = likely(t, outer_size), inner = likely(t, n->inner);
  double each = n->w->cost / (double)(outer * inner), wanted = each * (double)inner / longest;
  int64_t least = (int64_t)(4000 / (each > 0.01 ? each : 0.01)), pieces = 256 / outer;
  pieces = wanted > (double)pieces ? (int64_t)fmin(wanted, (double)inner) : pieces;
  n->block = n->inner;
  n->blocks = 1;
  if (!serial && (pieces > 1 || !constant)) {
    int64_t b = inner / (pieces > 1 ? pieces : 1);
    b = b < least ? least : b;
    b = b < 1 ? 1 : b; /* `least` may be 0 if single elements take long */
    b = (b + n->lanes * 4 - 1) / (n->lanes * 4) * (n->lanes * 4);
    n->block = !constant || b < inner ? b : inner;
    n->blocks = constant ? (inner + n->block - 1) / n->block : dim_ceildiv(t, n->inner, n->block);
  }
}

static void row(nest *n, LLVMValueRef item, dim outer) {
  emit_element *e = &n->w->e;
  const emit_ir *ir = e->w;
  LLVMValueRef block = NULL, number = item;
  if (n->blocks != 1) {
    LLVMValueRef blocks = emit_size(&e->x, n->blocks);
    block = emit_opaque(ir, LLVMBuildURem(ir->builder, item, blocks, ""));
    number = emit_opaque(ir, LLVMBuildUDiv(ir->builder, item, blocks, ""));
  } else if (e->rows || !dim_is_const(n->inner) ||
             n->inner > n->lanes) { /* inner_part writes a loop whose addresses depend on `number` */
    number = emit_opaque(ir, item);
  }
  dim *flat_dims = ARENA_NEW_N(ir->arena, dim, 1);
  *flat_dims = outer;
  emit_index *flat = emit_index_new(&e->x, 1, flat_dims);
  emit_axis_at(flat, 0, emit_pos_at(number, 1));
  n->rows = emit_index_reshape(&e->x, flat, n->rank > 1 ? n->rank - 1 : 1, n->rank > 1 ? n->extents : flat_dims);
  for (int k = 0; k < n->rank - 1; k++) { /* computes the positions before the inner loop, which then finds them in
                                             e->x.table */
    (void)emit_index_dim(&e->x, n->rows, k);
  }
  inner_part(n, block);
}

static void ranges_nest(emit_writer *w, int rank, const dim *extents, int lanes, bool serial, emit_body_fn *body,
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
  dim outer = emit_dims_product(&e->x, extents, 0, rank - 1);
  if (outer == 0 || n.inner == 0) {
    return;
  }
  choose_blocks(&n, outer, serial);
  dim blocks[] = {outer, n.blocks}, grid = emit_dims_product(&e->x, blocks, 0, 2);
  e->x.lanes = 1;
  emit_loop l;
  emit_loop_begin(ir, &l, serial ? emit_i64(ir, 0) : w->begin, serial ? emit_size(&e->x, grid) : w->end, 1,
                  serial && dim_is_const(grid), 0, NULL);
  uint32_t mark = emit_table_mark(e->x.table);
  row(&n, l.iv, outer);
  emit_table_release(e->x.table, mark);
  emit_loop_end(ir, &l, NULL);
  w->info->grid = serial ? 1 : grid;
}

const emit_execution_ops emit_ranges = {.type = ranges_type, .bind = ranges_bind, .nest = ranges_nest};
