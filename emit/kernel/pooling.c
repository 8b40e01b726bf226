/* pooling.c - kernels of windows that slide along the innermost dimension: pooling of arrays with channels first.
 *
 * A step of the grid is one or several rows of the result, or a block of each of these rows if rows are long.  First
 * the columns of its windows are reduced, once for each position of the operand's innermost dimension, in contiguous
 * vectors whatever the stride is.  The reduced columns are stored in a row on the stack, with padding at its ends. Then
 * each window is reduced along that row without checks at its ends.  So a window of K x K takes 2 K operations for each
 * element instead of K * K, and no operation is masked.
 *
 * The length of a row of results may be an argument.  A row is then divided into blocks of a likely length.  If it is
 * shorter than that, its only block is shorter, too. */
#include <math.h>
#include <string.h>

#include "emit/element/accumulate.h"
#include "emit/element/reduction_loop.h"
#include "emit/element/loop_plan.h"
#include "emit/element/window.h"
#include "emit/kernel/writer.h"
#include "hlo/analysis/row_space.h"

enum { LEAST = 4, MAX_POOLS = 4, STACK_BYTES = 16384 };

typedef struct pool {
  const hlo_instr *i;
  int64_t window, stride, hole, low; /* along the innermost dimension: size, stride, dilation and low padding of the
                                        window */
  dim n;                             /* the extent of the operand along that dimension */
  int64_t span; /* the number of positions of that dimension that the windows of one block of results read
                   (pools.block) */
  LLVMValueRef row;
} pool;

typedef struct pools {
  emit_writer *w;
  int n, rank;
  pool of[MAX_POOLS];
  dim dims[SHAPE_MAX_RANK]; /* the extents of the results */
  int64_t block; /* a row of results is computed in `blocks` blocks of `block` results; the last block is moved back so
                    that it ends with the row */
  dim blocks;
  dim rows;      /* the number of rows of the results */
  int64_t group; /* the number of rows in a step of the grid */
  bool shared;   /* whether a result overwrites an operand; no element may then be computed twice */
} pools;

/* --- finding windows that slide --- */

/* Returns true if i is a reduction of windows along the innermost dimension, of real numbers and without negative
 * padding at the beginning, and if neither operand nor result is known to be empty.  Their extents along this dimension
 * must be both constants or both arguments. */
static bool slides(const hlo_instr *i) {
  const shape *x = i->n_operands ? hlo_shape(i->operands[0]) : NULL;
  return i->op == HLO_REDUCE_WINDOW && x->rank && !shape_is_empty(x) && !shape_is_empty(&i->shapes[0]) &&
         dim_is_const(x->dims[x->rank - 1]) == dim_is_const(i->shapes[0].dims[x->rank - 1]) &&
         !dtype_is_complex((dtype)x->type) && hlo_ints(i, HLO_ATTR_WINDOW)[x->rank - 1] > 1 &&
         hlo_ints(i, HLO_ATTR_LOW)[x->rank - 1] >= 0;
}

static void add(pools *p, const hlo_instr *i) {
  const shape *x = hlo_shape(i->operands[0]), *y = &i->shapes[0];
  int last = x->rank - 1;
  for (int k = 0; k < p->n; k++) {
    if (p->of[k].i == i || !shape_same_dims(&p->of[0].i->shapes[0], y)) {
      return;
    }
  }
  p->rank = y->rank;
  for (int k = 0; k < y->rank; k++) {
    p->dims[k] = y->dims[k];
  }
  p->of[p->n++] = (pool){.i = i,
                         .window = hlo_ints(i, HLO_ATTR_WINDOW)[last],
                         .stride = hlo_ints(i, HLO_ATTR_STRIDES)[last],
                         .hole = hlo_ints(i, HLO_ATTR_RHS_DILATION)[last],
                         .low = hlo_ints(i, HLO_ATTR_LOW)[last],
                         .n = x->dims[last]};
}

static dim elements(const pools *p, const shape *s) { return emit_dims_product(&p->w->e.x, s->dims, 0, s->rank); }

/* Adds to p the window reductions from which v is computed by operations that keep the positions of elements
 * (hlo_is_position_wise). */
static void collect(pools *p, hlo_value v, int depth) {
  enum { DEEP = 24 };
  if (depth == DEEP || emit_is_input(&p->w->e, v) || hlo_literal(v)) {
    return;
  }
  if (slides(v.def) && p->n < MAX_POOLS) {
    add(p, v.def);
  } else if (hlo_is_position_wise(v.def)) {
    for (uint32_t k = 0; k < v.def->n_operands; k++) {
      if (elements(p, hlo_shape(v.def->operands[k])) == elements(p, &v.def->shapes[0])) {
        collect(p, v.def->operands[k], depth + 1);
      }
    }
  }
}

/* The most rows of the result in a step of the grid.  In a step of several rows, the columns of all windows are reduced
 * and stored first, so that no row is read from memory right after it was stored; and code before the loop over rows
 * runs once for all rows of the step. */
enum { GROUP = 8 };

static int64_t span_of(const pool *g, int64_t block) { return (block - 1) * g->stride + (g->window - 1) * g->hole + 1; }

/* Returns a lower bound for the number of columns of each block that are not padding.  The length of a row must be a
 * constant. */
static int64_t least_columns(const pools *p, const pool *g) {
  int64_t high = span_of(g, p->dims[p->rank - 1]) - g->low - g->n;
  return g->span - g->low - (high > 0 ? high : 0);
}

static dim width_of(const pools *p) { return p->dims[p->rank - 1]; }

/* Returns how many bytes the reduced columns may take on the stack. */
static int64_t stack_of(const pools *p) {
  int64_t room = p->w->e.w->target->stack;
  return room < STACK_BYTES ? room : STACK_BYTES;
}

/* Returns the length of a block that is as long as a row, or about as long if the length of a row is not a constant. */
static int64_t whole_block(const pools *p) {
  const double longest = STACK_BYTES;
  dim width = width_of(p);
  if (dim_is_const(width)) {
    return width;
  }
  double likely = fmin(emit_likely_size(p->w->e.x.sizes->table, width), longest);
  return ((int64_t)likely / p->w->e.wide + 1) * p->w->e.wide;
}

/* Chooses the length of a block and the number of rows in a step, so that the reduced columns fit in the memory on the
 * stack.  Returns false if blocks would be too short to be of use, or would have too few positions that are not
 * padding. */
static bool cut(pools *p) {
  int64_t room = stack_of(p) / p->n / (int64_t)sizeof(double);
  dim width = width_of(p);
  p->block = whole_block(p);
  p->rows = emit_dims_product(&p->w->e.x, p->dims, 0, p->rank - 1);
  p->group = dim_is_const(p->rows) && p->rows < GROUP ? p->rows : GROUP;
  for (int k = 0; k < p->n; k++) {
    const pool *g = &p->of[k];
    int64_t most = (room - (g->window - 1) * g->hole - 1) / g->stride + 1;
    p->block = p->block < most ? p->block : most;
  }
  if (p->block < LEAST) {
    return false;
  }
  p->blocks = dim_ceildiv(p->w->e.x.sizes->table, width, p->block);
  if (p->shared && p->blocks != 1) {
    return false;
  }
  for (int k = 0; k < p->n; k++) {
    pool *g = &p->of[k];
    g->span = span_of(g, p->block);
    if (dim_is_const(width) && least_columns(p, g) < LEAST) {
      return false;
    }
    int64_t fit = room / g->span;
    p->group = fit < p->group ? fit : p->group;
  }
  return true;
}

static bool find(emit_writer *w, pools *p) {
  *p = (pools){.w = w};
  for (uint32_t k = 0; k < w->n_results; k++) {
    if (emit_prefers_row_loop(&w->e, w->roots[k])) {
      return false;
    }
    p->shared |= w->shared[k];
    collect(p, w->roots[k], 0);
  }
  return p->n && w->e.wide >= LEAST && cut(p);
}

bool emit_is_pooling(emit_writer *w) {
  pools p;
  return find(w, &p);
}

/* --- writing rows --- */

typedef void sweep_fn(const pools *p, void *data, LLVMValueRef at);

static void sweep_by(const pools *p, LLVMValueRef from, LLVMValueRef to, int lanes, sweep_fn *f, void *data) {
  emit_element *e = &p->w->e;
  emit_loop l;
  emit_loop_begin(e->w, &l, from, to, lanes, false, 0, NULL);
  uint32_t mark = emit_table_mark(e->x.table);
  e->x.lanes = lanes;
  f(p, data, l.iv);
  e->x.lanes = 1;
  emit_table_release(e->x.table, mark);
  emit_loop_end(e->w, &l, NULL);
}

/* Calls f for the positions in [from, to), vector by vector.  Vectors have at most `least` lanes.  The positions after
 * the last whole vector are computed by a vector that overlaps the one before if `twice`, otherwise one by one.  If
 * `twice`, there must be at least `least` positions. */
static void sweep(const pools *p, LLVMValueRef from, LLVMValueRef to, int64_t least, bool twice, sweep_fn *f,
                  void *data) {
  emit_element *e = &p->w->e;
  LLVMBuilderRef b = e->w->builder;
  int lanes = e->wide;
  while (lanes > least) {
    lanes /= 2;
  }
  LLVMValueRef n = LLVMBuildSub(b, to, from, ""), rest = LLVMBuildURem(b, n, emit_i64(e->w, lanes), "");
  LLVMValueRef whole = LLVMBuildSub(b, to, rest, "");
  sweep_by(p, from, whole, lanes, f, data);
  if (LLVMIsAConstantInt(rest) && LLVMConstIntGetZExtValue(rest) == 0) {
    return;
  }
  if (twice) {
    LLVMValueRef last = LLVMBuildSub(b, to, emit_i64(e->w, lanes), "");
    sweep_by(p, last, LLVMBuildAdd(b, last, rest, ""), lanes, f, data);
  } else {
    sweep_by(p, whole, to, 1, f, data);
  }
}

typedef struct step {
  const emit_index *at; /* the index of the row, without its innermost dimension */
  LLVMValueRef number;  /* the number of the row in the step */
  LLVMValueRef start;   /* the number of the block's first result in the row */
  LLVMValueRef count;   /* the number of results of the block */
  const pool *g;
  LLVMValueRef first; /* the position in the operand of the first column that the row in stack memory holds; it may be
                         outside of the operand */
} step;

static dtype held_type(const pool *g) {
  return emit_acc_type((hlo_reducer)hlo_int(g->i, HLO_ATTR_REDUCER), hlo_type(g->i->operands[0]));
}

static emit_index *row_index(const pools *p, const step *s, const dim *dims, LLVMValueRef column) {
  emit_element *e = &p->w->e;
  emit_index *x = emit_index_new(&e->x, p->rank, dims);
  for (int k = 0; k < p->rank - 1; k++) {
    emit_axis_from(x, k, s->at, k);
  }
  emit_axis_at(x, p->rank - 1, emit_pos_lanes(column, e->x.lanes > 1, 1));
  return x;
}

/* Returns the position of column `at` of the step's current row in the stack memory that holds the reduced columns of
 * all rows of the step. */
static emit_pos row_pos(emit_element *e, const step *s, LLVMValueRef at) {
  emit_pos begin = emit_pos_scale(&e->x, emit_pos_at(s->number, 1), s->g->span);
  return emit_pos_add(&e->x, begin, emit_pos_lanes(at, e->x.lanes > 1, 1));
}

/* Reduces a vector of columns of the windows, from column `at` on, and stores the results in the row in stack
 * memory. */
static void fill_column(const pools *p, void *data, LLVMValueRef at) {
  const step *s = data;
  emit_element *e = &p->w->e;
  dim *dims = ARENA_NEW_N(e->w->arena, dim, SHAPE_MAX_RANK);
  memcpy(dims, p->dims, sizeof p->dims);
  dims[p->rank - 1] = s->g->n;
  LLVMValueRef column = LLVMBuildNSWAdd(e->w->builder, at, s->first, "");
  emit_pair v = emit_reduce_window_columns(e, s->g->i, row_index(p, s, dims, column));
  emit_store(e, s->g->row, held_type(s->g), row_pos(e, s, at), v, true);
}

static void fill_padding(const pools *p, void *data, LLVMValueRef at) {
  const step *s = data;
  emit_element *e = &p->w->e;
  const hlo_instr *i = s->g->i;
  emit_pair v = emit_acc_identity(e->w, (hlo_reducer)hlo_int(i, HLO_ATTR_REDUCER), hlo_type(i->operands[0]));
  emit_store(e, s->g->row, held_type(s->g), row_pos(e, s, at), v, true);
}

/* Sets [*from, *to) to those columns of the row in stack memory that lie in the operand; the others are padding. */
static void bounds(const pools *p, const step *s, LLVMValueRef *from, LLVMValueRef *to) {
  const emit_ir *w = p->w->e.w;
  const pool *g = s->g;
  LLVMValueRef before = LLVMBuildNeg(w->builder, s->first, ""),
               end = LLVMBuildAdd(w->builder, before, emit_size(&p->w->e.x, g->n), "");
  if (p->blocks == 1) {
    *from = before;
    *to = emit_i64(w, g->n + g->low < g->span ? g->n + g->low : g->span);
    return;
  }
  *from = emit_intrinsic2(w, "llvm.smax", before, emit_i64(w, 0));
  *to = emit_intrinsic2(w, "llvm.smin", end, emit_i64(w, g->span));
  if (!dim_is_const(width_of(p))) { /* there may be nothing but padding */
    *from = emit_intrinsic2(w, "llvm.smin", *from, emit_i64(w, g->span));
    *to = emit_intrinsic2(w, "llvm.smax", *to, *from);
  }
}

static void fill_row(const pools *p, step *s) {
  emit_element *e = &p->w->e;
  const emit_ir *w = e->w;
  LLVMBuilderRef b = w->builder;
  const pool *g = s->g;
  s->first = LLVMBuildNSWMul(b, s->start, emit_i64(w, g->stride), "");
  s->first = LLVMBuildNSWSub(b, s->first, emit_i64(w, g->low), "");
  LLVMValueRef from, to;
  bounds(p, s, &from, &to);
  sweep_by(p, emit_i64(w, 0), from, 1, fill_padding, s);
  sweep_by(p, to, emit_i64(w, g->span), 1, fill_padding, s);
  if (dim_is_const(width_of(p))) {
    sweep(p, from, to, least_columns(p, g), true, fill_column, s);
  } else {
    sweep(p, from, to, e->wide, false, fill_column, s);
  }
}

/* --- windows along the row --- */

typedef struct along {
  const pool *g;
  emit_pos at; /* the position of the window's first column in the stack memory of all rows */
} along;

static void along_step(const emit_reduction_loop *f, const emit_index *r, LLVMValueRef *acc) {
  const along *a = f->data;
  emit_element *e = f->e;
  const hlo_instr *i = a->g->i;
  emit_pos p = emit_pos_add(&e->x, a->at, emit_pos_scale(&e->x, emit_index_dim(&e->x, r, 0), a->g->hole));
  emit_pair v = emit_load(e, a->g->row, held_type(a->g), p, true, false);
  acc[0] = emit_acc_combine(e->w, (hlo_reducer)hlo_int(i, HLO_ATTR_REDUCER), hlo_type(i->operands[0]),
                            (emit_pair){acc[0], NULL}, v)
               .v;
}

static void along_combine(const emit_reduction_loop *f, LLVMValueRef *acc, const LLVMValueRef *other) {
  const hlo_instr *i = ((const along *)f->data)->g->i;
  acc[0] = emit_acc_combine(f->e->w, (hlo_reducer)hlo_int(i, HLO_ATTR_REDUCER), hlo_type(i->operands[0]),
                            (emit_pair){acc[0], NULL}, (emit_pair){other[0], NULL})
               .v;
}

static emit_pair window_at(emit_element *e, const step *s, const pool *g, LLVMValueRef at) {
  hlo_reducer r = (hlo_reducer)hlo_int(g->i, HLO_ATTR_REDUCER);
  dtype t = hlo_type(g->i->operands[0]);
  emit_pos begin = emit_pos_scale(&e->x, emit_pos_at(s->number, 1), g->span);
  emit_pos along_row = emit_pos_scale(&e->x, emit_pos_lanes(at, e->x.lanes > 1, 1), g->stride);
  along a = {g, emit_pos_add(&e->x, begin, along_row)};
  emit_reduction_loop f = {
      .e = e, .data = &a, .n = 1, .step = along_step, .combine = along_combine, .unroll = true, .rank = 1};
  f.dims[0] = g->window;
  f.init[0] = emit_acc_identity(e->w, r, t).v;
  LLVMValueRef out;
  emit_reduction_loop_run(&f, &out);
  return emit_acc_value(e->w, r, t, (emit_pair){out, NULL});
}

static void store_windows(const pools *p, void *data, LLVMValueRef at) {
  const step *s = data;
  emit_element *e = &p->w->e;
  const emit_index *x = row_index(p, s, p->dims, LLVMBuildNSWAdd(e->w->builder, s->start, at, ""));
  for (int k = 0; k < p->n; k++) {
    emit_element_set(e, hlo_result((hlo_instr *)p->of[k].i, 0), x, window_at(e, s, &p->of[k], at));
  }
  emit_store_roots(p->w, x);
}

typedef void row_fn(const pools *p, step *s);

static void store_row(const pools *p, step *s) {
  const emit_ir *w = p->w->e.w;
  bool known = dim_is_const(width_of(p));
  sweep(p, emit_i64(w, 0), s->count, p->block, known && !p->shared, store_windows, s);
}

/* Calls f for each of the n rows of the group that begins with row `first`. */
static void each_row(const pools *p, step *s, LLVMValueRef first, LLVMValueRef n, row_fn *f) {
  emit_element *e = &p->w->e;
  const emit_ir *w = e->w;
  dim *rows = ARENA_NEW(w->arena, dim);
  *rows = p->rows;
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), n, 1, true, 0, NULL);
  uint32_t mark = emit_table_mark(e->x.table);
  s->number = l.iv;
  emit_index *flat = emit_index_new(&e->x, 1, rows);
  emit_axis_at(flat, 0, emit_pos_at(LLVMBuildNSWAdd(w->builder, first, l.iv, ""), 1));
  s->at = p->rank > 1 ? emit_index_reshape(&e->x, flat, p->rank - 1, p->dims) : flat;
  for (int k = 0; k < p->rank - 1; k++) { /* computes the positions before the inner loops, which then find them in
                                             e->x.table */
    (void)emit_index_dim(&e->x, s->at, k);
  }
  f(p, s);
  emit_table_release(e->x.table, mark);
  emit_loop_end(w, &l, NULL);
}

static void group_body(emit_writer *w, const void *data, const emit_index *at) {
  const pools *p = data;
  emit_element *e = &w->e;
  const emit_ir *ir = e->w;
  step s = {.start = emit_i64(ir, 0), .count = emit_i64(ir, p->block)};
  dim width = width_of(p);
  if (p->blocks != 1) {
    s.start = emit_pos_scale(&e->x, emit_index_dim(&e->x, at, 1), p->block).base;
    LLVMValueRef last = emit_size(&e->x, emit_dims_difference(&e->x, width, p->block));
    s.start = emit_intrinsic2(ir, "llvm.smin", s.start, last);
  }
  if (!dim_is_const(width)) {
    s.start = emit_intrinsic2(ir, "llvm.smax", s.start, emit_i64(ir, 0));
    s.count = emit_intrinsic2(ir, "llvm.smin", s.count, emit_size(&e->x, width));
  }
  LLVMValueRef first = emit_pos_scale(&e->x, emit_index_dim(&e->x, at, 0), p->group).base;
  LLVMValueRef left = LLVMBuildSub(ir->builder, emit_size(&e->x, p->rows), first, "");
  LLVMValueRef n = emit_intrinsic2(ir, "llvm.smin", left, emit_i64(ir, p->group));
  for (int k = 0; k < p->n; k++) {
    s.g = &p->of[k];
    each_row(p, &s, first, n, fill_row);
  }
  each_row(p, &s, first, n, store_row);
}

void emit_write_pooling(emit_writer *w) {
  arena *a = w->e.w->arena;
  pools *p = ARENA_NEW(a, pools);
  (void)find(w, p);
  dim *extents = ARENA_NEW_N(a, dim, 2);
  extents[0] = dim_ceildiv(w->e.x.sizes->table, p->rows, p->group);
  extents[1] = p->blocks;
  for (int k = 0; k < p->n; k++) {
    pool *g = &p->of[k];
    g->row = emit_row_memory(w->e.w, held_type(g), p->group * g->span);
  }
  emit_nest(w, 2, extents, 1, false, group_body, p);
}
