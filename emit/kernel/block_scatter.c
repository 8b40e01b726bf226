/* block_scatter.c - scatters by blocks of threads, whose results are bit for bit those of applying one update after the
 * other.
 *
 * Each element of the result has one thread, which copies it from the operand and then applies the updates to it in
 * their order.  So nothing depends on the order of threads, whatever the operation is, and none of them waits for
 * another block.  A block has some rows of the result.  It looks at all updates, as many at a time as it has threads,
 * lists those that hit its rows, and each thread applies those to its elements.
 *
 * The dimensions of the operand are of three kinds.  Along batch dimensions, each position has updates of its own.
 * Columns are the dimensions that a window covers completely, so that an update of a row has an element for each
 * column.  All other dimensions are rows. */
#include "emit/kernel/block.h"
#include "emit/kernel/update.h"

enum {
  MOST_THREADS = 256,
  COLUMNS = 1024,       /* the most columns of a block */
  LEAST_ELEMENTS = 256, /* a block has about this many elements or more if the columns are few and the rows are many */
  ENOUGH_BLOCKS = 128 /* enough to keep a GPU busy; rows are not divided further, as each block looks at all updates */
};

/* Several dimensions that are treated as one. */
typedef struct group {
  int n, operand[SHAPE_MAX_RANK], updates[SHAPE_MAX_RANK]; /* the numbers of these dimensions in the operand and in the
                                                              updates, or -1 if there is none */
  dim extents[SHAPE_MAX_RANK], total;
} group;

typedef struct scatter {
  emit_writer *w;
  const emit_ir *ir;
  const hlo_instr *i;
  emit_window_dims d;
  group batch, rows, columns;
  group listed;                /* the dimensions of the updates along which a block looks for updates of its rows */
  dim row_parts, column_parts; /* how many blocks share the rows and the columns */
  LLVMValueRef thread, place;  /* the thread's number in its block, and the block's position in the batch */
  LLVMValueRef first_row, n_rows, first_column, n_columns; /* the part of the result that the block computes */
  LLVMValueRef numbers, hits; /* the list: the numbers of updates, and the rows that they hit, counted from first_row */
} scatter;

/* --- which dimension is of which kind --- */

static void take(group *g, int operand, int updates, dim extent) {
  g->operand[g->n] = operand;
  g->updates[g->n] = updates;
  g->extents[g->n++] = extent;
}

/* Returns the batch dimension of the updates that corresponds to dimension k of the operand, or -1 if dimension k is
 * not a batch dimension. */
static int batch_dim(const scatter *s, int k) {
  int b = hlo_find_int(s->i, HLO_ATTR_OPERAND_BATCH, k);
  if (b < 0) {
    return -1;
  }
  int64_t of_indices = hlo_ints(s->i, HLO_ATTR_INDICES_BATCH)[b];
  return s->d.batch[of_indices - (of_indices > hlo_int(s->i, HLO_ATTR_INDEX_VECTOR_DIM))];
}

/* Divides the dimensions among the groups.  In s->listed, the dimensions that count windows come before those within a
 * window, so that updates of one row are listed in the order in which they are applied. */
static void divide(scatter *s) {
  const shape *x = hlo_shape(s->i->operands[0]), *u = hlo_shape(s->i->operands[2]);
  bool seen[SHAPE_MAX_RANK] = {false};
  for (int k = 0; k < x->rank; k++) {
    int batch = batch_dim(s, k), offset = s->d.offset_of[k];
    bool column = batch < 0 && offset >= 0 && u->dims[offset] == x->dims[k];
    take(batch >= 0 ? &s->batch : column ? &s->columns : &s->rows, k, batch >= 0 ? batch : offset, x->dims[k]);
    if (batch >= 0 || column) {
      seen[batch >= 0 ? batch : offset] = true;
    }
  }
  for (int window = 0; window < 2; window++) {
    for (int k = 0; k < u->rank; k++) {
      if (!seen[k] && hlo_has_int(s->i, HLO_ATTR_OFFSET_DIMS, k) == window) {
        take(&s->listed, -1, k, u->dims[k]);
      }
    }
  }
  group *all[] = {&s->batch, &s->rows, &s->columns, &s->listed};
  for (int k = 0; k < 4; k++) {
    all[k]->total = emit_dims_product(&s->w->e.x, all[k]->extents, 0, all[k]->n);
  }
}

/* Sets the axes of `at` along the dimensions `of` of a group, so that the linear position over these dimensions is
 * p. */
static void set_axes(const scatter *s, const group *g, const int *of, LLVMValueRef p, emit_index *at) {
  const emit_indexer *x = &s->w->e.x;
  if (g->n == 0) {
    return;
  }
  emit_index *flat = emit_index_new(x, 1, &g->total);
  emit_axis_at(flat, 0, emit_pos_at(p, 1));
  const emit_index *apart = emit_index_reshape(x, flat, g->n, g->extents);
  for (int k = 0; k < g->n; k++) {
    emit_axis_from(at, of[k], apart, k);
  }
}

/* --- what a block and a thread compute --- */

static LLVMValueRef size(const scatter *s, dim d) { return emit_size(&s->w->e.x, d); }

static LLVMValueRef add(const scatter *s, LLVMValueRef x, LLVMValueRef y) {
  return LLVMBuildNSWAdd(s->ir->builder, x, y, "");
}

static uint32_t threads_for(const scatter *s) {
  const dim_table *t = s->w->e.x.sizes->table;
  double elements = emit_likely_size(t, s->rows.total) * emit_likely_size(t, s->columns.total);
  double updates = emit_likely_size(t, s->listed.total);
  uint32_t n = EMIT_WARP;
  while (n < MOST_THREADS && (n < elements || n < updates)) {
    n *= 2;
  }
  return n;
}

/* Returns among how many blocks the rows of one position in the batch are divided. */
static dim row_parts(const scatter *s) {
  dim_table *t = s->w->e.x.sizes->table;
  int64_t others =
      (dim_is_const(s->batch.total) ? s->batch.total : 1) * (dim_is_const(s->column_parts) ? s->column_parts : 1);
  int64_t columns = dim_is_const(s->columns.total) ? s->columns.total : LEAST_ELEMENTS;
  int64_t rows = columns < LEAST_ELEMENTS ? LEAST_ELEMENTS / columns : 1;
  int64_t most = others < ENOUGH_BLOCKS ? ENOUGH_BLOCKS / others : 1;
  return dim_min(t, dim_ceildiv(t, s->rows.total, rows), most);
}

/* Sets what the block computes from the number of its step: the position in the batch, its rows and its columns. */
static void begin_block(scatter *s) {
  LLVMBuilderRef b = s->ir->builder;
  LLVMValueRef columns = size(s, s->column_parts), rows = size(s, s->row_parts);
  LLVMValueRef column = LLVMBuildURem(b, s->w->begin, columns, ""), step = LLVMBuildUDiv(b, s->w->begin, columns, "");
  LLVMValueRef row = LLVMBuildURem(b, step, rows, "");
  s->place = emit_opaque(s->ir, LLVMBuildUDiv(b, step, rows, ""));
  s->first_row = emit_first_of_part(s->w, row, s->row_parts, s->rows.total);
  LLVMValueRef end = emit_first_of_part(s->w, add(s, row, emit_i64(s->ir, 1)), s->row_parts, s->rows.total);
  s->n_rows = LLVMBuildNSWSub(b, end, s->first_row, "");
  s->first_column = LLVMBuildNSWMul(b, column, emit_i64(s->ir, COLUMNS), "");
  LLVMValueRef left = LLVMBuildNSWSub(b, size(s, s->columns.total), s->first_column, "");
  bool few = dim_is_const(s->columns.total) && s->columns.total <= COLUMNS;
  s->n_columns = few ? size(s, s->columns.total) : emit_intrinsic2(s->ir, "llvm.smin", left, emit_i64(s->ir, COLUMNS));
  s->thread = emit_thread_number(s->w);
}

/* Returns the index of the result at a row and a column, both counted from the first one of the block. */
static emit_index *result_index(const scatter *s, LLVMValueRef row, LLVMValueRef column) {
  emit_index *at = emit_operand_index(&s->w->e, s->i, 0);
  set_axes(s, &s->batch, s->batch.operand, s->place, at);
  set_axes(s, &s->rows, s->rows.operand, add(s, s->first_row, row), at);
  set_axes(s, &s->columns, s->columns.operand, add(s, s->first_column, column), at);
  return at;
}

static emit_index *update_index(const scatter *s, LLVMValueRef number, LLVMValueRef column) {
  emit_index *at = emit_operand_index(&s->w->e, s->i, 2);
  set_axes(s, &s->batch, s->batch.updates, s->place, at);
  set_axes(s, &s->listed, s->listed.updates, number, at);
  set_axes(s, &s->columns, s->columns.updates, add(s, s->first_column, column), at);
  return at;
}

/* Begins a loop over n elements of the block from number `first` on, of which it visits those that belong to this
 * thread.  Element k of the block belongs to thread number k mod threads.  l->iv is counted from `first`. */
static void begin_own(const scatter *s, emit_loop *l, LLVMValueRef first, LLVMValueRef n) {
  uint32_t threads = s->w->info->threads;
  LLVMValueRef from = LLVMBuildSub(s->ir->builder, s->thread, first, "");
  from = LLVMBuildAnd(s->ir->builder, from, emit_i64(s->ir, threads - 1), "");
  emit_loop_begin(s->ir, l, from, n, threads, false, 0, NULL);
}

static void copy_operand(const scatter *s) {
  emit_element *e = &s->w->e;
  LLVMBuilderRef b = s->ir->builder;
  hlo_value x = s->i->operands[0];
  emit_loop l;
  begin_own(s, &l, emit_i64(s->ir, 0), LLVMBuildNSWMul(b, s->n_rows, s->n_columns, ""));
  uint32_t mark = emit_table_mark(e->x.table);
  LLVMValueRef row = emit_opaque(s->ir, LLVMBuildUDiv(b, l.iv, s->n_columns, ""));
  LLVMValueRef column = emit_opaque(s->ir, LLVMBuildURem(b, l.iv, s->n_columns, ""));
  const emit_index *at = result_index(s, row, column);
  emit_store(e, s->w->results[0], hlo_type(x), emit_index_linear(&e->x, at), emit_value(e, x, at), false);
  emit_table_release(e->x.table, mark);
  emit_loop_end(s->ir, &l, NULL);
}

/* Returns the row that update number `number` hits, counted from first_row.  Sets *is_own to an i1 that is true if the
 * update is applied (its window lies in the operand) and the row is one of the block's. */
static LLVMValueRef hit_row(const scatter *s, LLVMValueRef number, LLVMValueRef *is_own) {
  emit_element *e = &s->w->e;
  LLVMBuilderRef b = s->ir->builder;
  emit_pos starts[SHAPE_MAX_RANK];
  emit_index *from = update_index(s, number, emit_i64(s->ir, 0));
  emit_window_starts(e, s->i, &s->d, from, NULL, false, starts);
  LLVMValueRef row = emit_i64(s->ir, 0);
  for (int k = 0; k < s->rows.n; k++) {
    LLVMValueRef p = starts[s->rows.operand[k]].base;
    if (s->rows.updates[k] >= 0) {
      p = LLVMBuildAdd(b, p, emit_index_dim(&e->x, from, s->rows.updates[k]).base, "");
    }
    row = LLVMBuildAdd(b, LLVMBuildMul(b, row, size(s, s->rows.extents[k]), ""), p, "");
  }
  row = LLVMBuildSub(b, row, s->first_row, "");
  LLVMValueRef inside = emit_icmp(s->ir, LLVMIntULT, row, s->n_rows);
  *is_own = LLVMBuildAnd(b, inside, emit_scatter_fits(s->w, s->i, &s->d, starts), "");
  return row;
}

static LLVMValueRef entry(const scatter *s, LLVMValueRef list, LLVMValueRef k) {
  return LLVMBuildInBoundsGEP2(s->ir->builder, s->ir->i64, list, &k, 1, "");
}

/* Thread number t of the block looks at update number first + t.  The updates that hit rows of the block are listed.
 * Returns the length of the list, which all threads can read after the barrier at the end. */
static LLVMValueRef list_updates(scatter *s, LLVMValueRef first) {
  const emit_ir *ir = s->ir;
  LLVMBuilderRef b = ir->builder;
  LLVMValueRef n = size(s, s->listed.total), number = add(s, first, s->thread), is_own, total;
  LLVMValueRef exists = emit_icmp(ir, LLVMIntSLT, number, n);
  number = emit_intrinsic2(ir, "llvm.smin", number, LLVMBuildNSWSub(b, n, emit_i64(ir, 1), ""));
  LLVMValueRef row = hit_row(s, number, &is_own);
  is_own = LLVMBuildAnd(b, is_own, exists, "");
  LLVMValueRef at = emit_count_before(s->w, is_own, &total);
  LLVMBasicBlockRef after = emit_if_begin(ir, is_own);
  LLVMBuildStore(b, number, entry(s, s->numbers, at));
  LLVMBuildStore(b, row, entry(s, s->hits, at));
  emit_if_end(ir, after);
  emit_barrier(s->w);
  return total;
}

/* Applies update number k of the list to the elements of the hit row that belong to this thread. */
static void apply(const scatter *s, LLVMValueRef k) {
  const emit_ir *ir = s->ir;
  emit_table *table = s->w->e.x.table;
  LLVMValueRef number = LLVMBuildLoad2(ir->builder, ir->i64, entry(s, s->numbers, k), "");
  LLVMValueRef row = LLVMBuildLoad2(ir->builder, ir->i64, entry(s, s->hits, k), "");
  emit_loop l;
  begin_own(s, &l, LLVMBuildNSWMul(ir->builder, row, s->n_columns, ""), s->n_columns);
  uint32_t mark = emit_table_mark(table);
  emit_scatter_element(s->w, s->i, result_index(s, row, l.iv), update_index(s, number, l.iv));
  emit_table_release(table, mark);
  emit_loop_end(ir, &l, NULL);
}

/* Applies all updates that hit rows of the block, in rounds: a round looks at one update for each thread, lists those
 * that hit rows, and applies the list.  The threads do not wait for each other at the end of a round: the list is
 * overwritten only after the first barrier in the next list_updates, which each thread reaches only after it has
 * applied the list. */
static void apply_all(scatter *s) {
  const emit_ir *ir = s->ir;
  emit_table *table = s->w->e.x.table;
  emit_loop lists, list;
  emit_loop_begin(ir, &lists, emit_i64(ir, 0), size(s, s->listed.total), s->w->info->threads, false, 0, NULL);
  uint32_t mark = emit_table_mark(table);
  LLVMValueRef n = list_updates(s, lists.iv);
  emit_loop_begin(ir, &list, emit_i64(ir, 0), n, 1, false, 0, NULL);
  uint32_t inner = emit_table_mark(table);
  emit_uniformity outside = s->w->uniform;
  s->w->uniform = EMIT_DIVERGENT;
  apply(s, list.iv);
  s->w->uniform = outside;
  emit_table_release(table, inner);
  emit_loop_end(ir, &list, NULL);
  emit_table_release(table, mark);
  emit_loop_end(ir, &lists, NULL);
}

void emit_write_block_scatter(emit_writer *w, const hlo_instr *i) {
  const emit_ir *ir = w->e.w;
  emit_indexer *x = &w->e.x;
  scatter *s = ARENA_NEW(ir->arena, scatter); /* on the arena, since indices point to its extents */
  *s = (scatter){.w = w, .ir = ir, .i = i, .d = emit_window_dims_of(i, hlo_shape(i->operands[2]))};
  divide(s);
  s->column_parts = dim_ceildiv(x->sizes->table, s->columns.total, COLUMNS);
  s->row_parts = row_parts(s);
  uint32_t threads = threads_for(s);
  emit_block_team(w, threads, threads);
  x->lanes = 1;
  LLVMBasicBlockRef after = emit_if_begin(ir, emit_icmp(ir, LLVMIntSLT, w->begin, w->end));
  begin_block(s);
  if (!emit_updates_in_place(w)) {
    copy_operand(s);
  }
  if (s->listed.total != 0) {
    s->numbers = emit_shared_memory(w, ir->i64, threads, 8);
    s->hits = emit_shared_memory(w, ir->i64, threads, 8);
    apply_all(s);
  }
  emit_if_end(ir, after);
  dim grid[] = {s->batch.total, s->row_parts, s->column_parts};
  w->info->grid = emit_dims_product(x, grid, 0, 3);
}
