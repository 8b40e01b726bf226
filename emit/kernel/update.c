/* update.c - kernels of dynamic-update-slice in place, scatter, and cumulative operations. */
#include "emit/kernel/update.h"

#include "emit/element/elementwise.h"
#include "emit/element/loop_plan.h"

static const hlo_instr *root_of(const emit_writer *w) { return w->n_results == 1 ? w->roots[0].def : NULL; }

bool emit_updates_in_place(const emit_writer *w) {
  const hlo_instr *i = root_of(w);
  return w->alias[0] >= 0 && hlo_value_equal(w->e.inputs[w->alias[0]].value, i->operands[0]);
}

static bool is_input(const emit_writer *w, const hlo_instr *i) {
  for (uint32_t k = 0; k < w->e.n_inputs; k++) {
    if (w->e.inputs[k].value.def == i) {
      return true;
    }
  }
  return false;
}

bool emit_is_update(const emit_writer *w) {
  const hlo_instr *i = root_of(w);
  if (!i || is_input(w, i)) {
    return false;
  }
  return i->op == HLO_SCATTER || i->op == HLO_CUMULATIVE ||
         (i->op == HLO_DYNAMIC_UPDATE_SLICE && emit_updates_in_place(w));
}

/* --- dynamic-update-slice: only the update is written --- */

static void update_body(emit_writer *w, const void *data, const emit_index *at) {
  const hlo_instr *i = data;
  emit_element *e = &w->e;
  const shape *u = hlo_shape(i->operands[1]);
  const emit_index *from = emit_index_reshape(&e->x, at, u->rank, u->dims);
  emit_index *to = emit_operand_index(e, i, 0);
  for (int k = 0; k < to->rank; k++) {
    emit_index *s = emit_operand_index(e, i, 2);
    emit_axis_at(s, 0, emit_pos_const(&e->x, k));
    emit_pos start = emit_start(e, i->operands[2], s, emit_dims_difference(&e->x, to->dims[k], u->dims[k]));
    emit_axis_at(to, k, emit_pos_add(&e->x, start, emit_index_dim(&e->x, from, k)));
  }
  emit_pair v = emit_value(e, i->operands[1], from);
  emit_store(e, w->results[0], hlo_type(i->operands[1]), emit_index_linear(&e->x, to), v, true);
}

static void write_slice(emit_writer *w) {
  const hlo_instr *i = root_of(w);
  const shape *u = hlo_shape(i->operands[1]), *x = hlo_shape(i->operands[0]);
  emit_dim_boundaries boundaries = {0};
  emit_dim_boundaries_of(&w->e, i->operands[1], &boundaries);
  for (int k = 0; k < u->rank && boundaries.n + 2 < EMIT_MAX_DIM_BOUNDARIES; k++) {
    if (u->dims[k] != x->dims[k]) {
      boundaries.at[boundaries.n++] = emit_dims_product(&w->e.x, u->dims, k, u->rank);
      boundaries.at[boundaries.n++] = emit_dims_product(&w->e.x, u->dims, k + 1, u->rank);
    }
  }
  dim *extents = ARENA_NEW_N(w->e.w->arena, dim, SHAPE_MAX_RANK),
      total = emit_dims_product(&w->e.x, u->dims, 0, u->rank);
  if (total == 0) {
    return;
  }
  int rank = emit_loop_extents(&w->e.x, &boundaries, total, extents);
  emit_nest(w, rank, extents, emit_choose_lanes(extents[rank - 1], w->e.wide), false, update_body, i);
}

/* --- scatter in ranges: copies the operand, then writes one update after the other --- */

static void copy_body(emit_writer *w, const void *data, const emit_index *at) {
  const hlo_instr *i = data;
  emit_element *e = &w->e;
  const shape *x = hlo_shape(i->operands[0]);
  emit_pair v = emit_value(e, i->operands[0], emit_index_reshape(&e->x, at, x->rank, x->dims));
  emit_store(e, w->results[0], hlo_type(i->operands[0]), emit_index_linear(&e->x, at), v, false);
}

static void copy_operand(emit_writer *w, const hlo_instr *i) {
  emit_dim_boundaries boundaries = {0};
  emit_dim_boundaries_of(&w->e, i->operands[0], &boundaries);
  const shape *s = &i->shapes[0];
  dim *extents = ARENA_NEW_N(w->e.w->arena, dim, SHAPE_MAX_RANK);
  int rank = emit_loop_extents(&w->e.x, &boundaries, emit_dims_product(&w->e.x, s->dims, 0, s->rank), extents);
  emit_nest(w, rank, extents, emit_choose_lanes(extents[rank - 1], w->e.wide), true, copy_body, i);
}

typedef struct scatter {
  emit_writer *w;
  const hlo_instr *i;
  emit_window_dims d;
  emit_pos starts[SHAPE_MAX_RANK];
  emit_index *at;                       /* the index in the updates */
  int n_window, window[SHAPE_MAX_RANK]; /* the dimensions of the updates that run over a window */
} scatter;

void emit_scatter_element(emit_writer *w, const hlo_instr *i, const emit_index *to, const emit_index *from) {
  emit_element *e = &w->e;
  dtype t = hlo_type(i->operands[0]);
  emit_pos linear = emit_index_linear(&e->x, to);
  emit_pair v = emit_value(e, i->operands[2], from);
  hlo_reducer r = (hlo_reducer)hlo_int(i, HLO_ATTR_REDUCER);
  if (r != HLO_REDUCE_REPLACE) {
    emit_pair old = emit_load(e, w->results[0], t, linear, true, false);
    old = (emit_pair){emit_widen(e->w, t, old.v), old.im};
    v = emit_reduce_combine(e->w, r, t, old, (emit_pair){emit_widen(e->w, t, v.v), v.im});
    v.v = emit_narrow(e->w, t, v.v);
  }
  emit_store(e, w->results[0], t, linear, v, true);
}

/* Writes the update of the elements at s->at, in e->x.lanes lanes. */
static void scatter_element(const scatter *s) {
  emit_element *e = &s->w->e;
  emit_index *to = emit_operand_index(e, s->i, 0);
  for (int k = 0; k < to->rank; k++) {
    emit_pos p = s->starts[k];
    if (s->d.offset_of[k] >= 0) {
      p = emit_pos_add(&e->x, p, emit_index_dim(&e->x, s->at, s->d.offset_of[k]));
    }
    emit_axis_at(to, k, p);
  }
  emit_scatter_element(s->w, s->i, to, s->at);
}

static void window_loop(scatter *s, int level);

/* Writes the loop over the positions [from, to) of the window's dimension number `level`, in steps of `lanes` lanes;
 * its body is the loops over the further dimensions.  `runs` promises that there is at least one iteration. */
static void window_steps(scatter *s, int level, LLVMValueRef from, LLVMValueRef to, int lanes, bool runs) {
  emit_element *e = &s->w->e;
  emit_loop l;
  int d = s->window[level];
  emit_loop_begin(e->w, &l, from, to, lanes, runs, 0, NULL);
  uint32_t mark = emit_table_mark(e->x.table);
  e->x.lanes = lanes;
  emit_axis_at(s->at, d, emit_pos_lanes(l.iv, lanes > 1, lanes));
  window_loop(s, level + 1);
  e->x.lanes = 1;
  emit_table_release(e->x.table, mark);
  emit_loop_end(e->w, &l, NULL);
}

static void window_loop(scatter *s, int level) {
  if (level == s->n_window) {
    scatter_element(s);
    return;
  }
  const emit_ir *ir = s->w->e.w;
  dim n = s->at->dims[s->window[level]];
  int lanes = level == s->n_window - 1 ? emit_choose_lanes(n, s->w->e.wide) : 1;
  LLVMValueRef size = emit_size(&s->w->e.x, n),
               whole = LLVMBuildAnd(ir->builder, size, emit_i64(ir, -(int64_t)lanes), "");
  bool known = dim_is_const(n);
  if (!known || n >= lanes) {
    window_steps(s, level, emit_i64(ir, 0), whole, lanes, known);
  }
  if (lanes > 1 && (!known || n % lanes)) {
    window_steps(s, level, whole, size, 1, known);
  }
}

/* Returns max(room + 1, 0), the number of positions that a window can have if it is `room` elements shorter than the
 * operand.  `room` is negative if the window does not fit. */
static LLVMValueRef places(const emit_element *e, dim room) {
  int64_t known;
  if (dim_signed_value(e->x.sizes->table, room, &known)) {
    return emit_i64(e->w, known < 0 ? 0 : known + 1);
  }
  LLVMValueRef n = LLVMBuildNSWAdd(e->w->builder, emit_size(&e->x, room), emit_i64(e->w, 1), "");
  return emit_intrinsic2(e->w, "llvm.smax", n, emit_i64(e->w, 0));
}

LLVMValueRef emit_scatter_fits(const emit_writer *w, const hlo_instr *i, const emit_window_dims *d,
                               const emit_pos *starts) {
  const emit_element *e = &w->e;
  const shape *x = hlo_shape(i->operands[0]), *u = hlo_shape(i->operands[2]);
  LLVMValueRef fits = NULL;
  for (int k = 0; k < x->rank; k++) {
    dim size = d->offset_of[k] < 0 ? 1 : u->dims[d->offset_of[k]];
    dim room = emit_dims_difference(&e->x, x->dims[k], size);
    LLVMValueRef one = emit_icmp(e->w, LLVMIntULT, starts[k].base, places(e, room));
    fits = fits ? LLVMBuildAnd(e->w->builder, fits, one, "") : one;
  }
  return fits ? fits : LLVMConstInt(e->w->i1, 1, false);
}

static void write_scatter(emit_writer *w) {
  const hlo_instr *i = root_of(w);
  emit_element *e = &w->e;
  const emit_ir *ir = e->w;
  const shape *u = hlo_shape(i->operands[2]);
  /* The grid has only one step, but a call may have an empty range. */
  LLVMBasicBlockRef work = emit_block(ir, "work"), out = emit_block(ir, "out");
  LLVMBuildCondBr(ir->builder, emit_icmp(ir, LLVMIntSLT, w->begin, w->end), work, out);
  LLVMPositionBuilderAtEnd(ir->builder, work);
  if (!emit_updates_in_place(w)) {
    copy_operand(w, i);
  }
  w->info->grid = 1;
  if (!shape_is_empty(u)) {
    scatter s = {.w = w, .i = i, .d = emit_window_dims_of(i, u), .at = emit_operand_index(e, i, 2)};
    dim *batch_dims = ARENA_NEW_N(ir->arena, dim, SHAPE_MAX_RANK), *flat_dims = ARENA_NEW_N(ir->arena, dim, 1);
    for (int k = 0; k < s.d.n_batch; k++) {
      batch_dims[k] = u->dims[s.d.batch[k]];
    }
    *flat_dims = emit_dims_product(&e->x, batch_dims, 0, s.d.n_batch);
    dim all = emit_dims_product(&e->x, u->dims, 0, u->rank);
    emit_loop l;
    e->x.lanes = 1;
    emit_loop_begin(ir, &l, emit_i64(ir, 0), emit_size(&e->x, *flat_dims), 1, dim_is_const(*flat_dims), 0, NULL);
    emit_poll_in(&e->x, l.iv, 1, *flat_dims, emit_quotient(&e->x, all, *flat_dims));
    uint32_t mark = emit_table_mark(e->x.table);
    emit_index *flat = emit_index_new(&e->x, 1, flat_dims);
    emit_axis_at(flat, 0, emit_pos_at(l.iv, 1));
    const emit_index *batch = emit_index_reshape(&e->x, flat, s.d.n_batch, batch_dims);
    for (int k = 0, b = 0; k < u->rank; k++) {
      if (b < s.d.n_batch && s.d.batch[b] == k) {
        emit_axis_from(s.at, k, batch, b++);
      } else {
        emit_axis_at(s.at, k, emit_pos_const(&e->x, 0));
        s.window[s.n_window++] = k;
      }
    }
    emit_window_starts(e, i, &s.d, s.at, NULL, false, s.starts);
    LLVMBasicBlockRef apply = emit_block(ir, "apply"), next = emit_block(ir, "next");
    LLVMBuildCondBr(ir->builder, emit_scatter_fits(w, i, &s.d, s.starts), apply, next);
    LLVMPositionBuilderAtEnd(ir->builder, apply);
    window_loop(&s, 0);
    LLVMBuildBr(ir->builder, next);
    LLVMPositionBuilderAtEnd(ir->builder, next);
    emit_table_release(e->x.table, mark);
    emit_loop_end(ir, &l, NULL);
  }
  LLVMBuildBr(ir->builder, out);
  LLVMPositionBuilderAtEnd(ir->builder, out);
}

/* --- cumulative operations: lines along one dimension, with vectors across lines --- */

/* Returns n - 1 - p. */
static emit_pos from_end(const emit_indexer *x, emit_pos p, dim n) {
  return emit_pos_add_size(x, emit_pos_scale(x, p, -1), emit_dims_difference(x, n, 1));
}

emit_line_element emit_line_at(emit_writer *w, const emit_lines *g, const emit_index *line, emit_pos p) {
  emit_element *e = &w->e;
  emit_index *at = emit_index_new(&e->x, 3, g->dims);
  emit_axis_from(at, 0, line, 0);
  emit_axis_at(at, 1, hlo_int(g->i, HLO_ATTR_BACKWARD) ? from_end(&e->x, p, g->dims[1]) : p);
  emit_axis_from(at, 2, line, 1);
  dtype t = hlo_type(g->i->operands[0]);
  const shape *s = hlo_shape(g->i->operands[0]);
  emit_pair v = emit_value(e, g->i->operands[0], emit_index_reshape(&e->x, at, s->rank, s->dims));
  return (emit_line_element){{emit_widen(e->w, t, v.v), v.im}, emit_index_linear(&e->x, at)};
}

void emit_line_store(emit_writer *w, const emit_lines *g, const emit_line_element *at, emit_pair sum) {
  dtype t = hlo_type(g->i->operands[0]);
  sum.v = emit_narrow(w->e.w, t, sum.v);
  emit_store(&w->e, w->results[0], t, at->place, sum, w->shared[0]);
}

static void line_body(emit_writer *w, const void *data, const emit_index *at) {
  const emit_lines *g = data;
  emit_element *e = &w->e;
  const emit_ir *ir = e->w;
  dtype t = hlo_type(g->i->operands[0]);
  hlo_reducer r = (hlo_reducer)hlo_int(g->i, HLO_ATTR_REDUCER);
  emit_pair start = emit_splat_pair(e, emit_reduce_identity(ir, r, t));
  emit_loop l;
  emit_loop_begin(ir, &l, emit_i64(ir, 0), emit_size(&e->x, g->dims[1]), 1, dim_is_const(g->dims[1]), start.im ? 2 : 1,
                  (LLVMValueRef[]){start.v, start.im});
  emit_poll_in(&e->x, l.iv, 1, g->dims[1], 1);
  uint32_t mark = emit_table_mark(e->x.table);
  emit_line_element x = emit_line_at(w, g, at, emit_pos_at(l.iv, 1));
  emit_pair sum = {l.carried[0], start.im ? l.carried[1] : NULL}, next = emit_reduce_combine(ir, r, t, sum, x.v);
  emit_line_store(w, g, &x, hlo_int(g->i, HLO_ATTR_EXCLUSIVE) ? sum : next);
  emit_table_release(e->x.table, mark);
  emit_loop_end(ir, &l, (LLVMValueRef[]){next.v, next.im});
}

static void write_lines(emit_writer *w) {
  const hlo_instr *i = root_of(w);
  const shape *s = &i->shapes[0];
  int d = (int)hlo_int(i, HLO_ATTR_DIMENSION);
  emit_lines *g = ARENA_NEW(w->e.w->arena, emit_lines);
  const emit_indexer *x = &w->e.x;
  *g =
      (emit_lines){i, {emit_dims_product(x, s->dims, 0, d), s->dims[d], emit_dims_product(x, s->dims, d + 1, s->rank)}};
  dim *extents = ARENA_NEW_N(w->e.w->arena, dim, 2);
  extents[0] = g->dims[0];
  extents[1] = g->dims[2];
  if (emit_takes_block_lines(w, g)) {
    emit_write_block_lines(w, g, extents);
    return;
  }
  int lanes = emit_lanes_of_vectors(&w->e, extents[0], extents[1], EMIT_COLUMN_VECTORS);
  emit_nest(w, 2, extents, lanes, false, line_body, g);
}

void emit_write_update(emit_writer *w) {
  switch (root_of(w)->op) {
    case HLO_SCATTER:
      if (w->e.w->target->execution == EMIT_BLOCKS) {
        emit_write_block_scatter(w, root_of(w));
      } else {
        write_scatter(w);
      }
      break;
    case HLO_CUMULATIVE: write_lines(w); break;
    default: write_slice(w); break;
  }
}
