/* block_attention_kernel.c - the kernel of block_attention.h. */
#include <math.h>
#include <string.h>

#include "emit/blocks/block_attention_internal.h"
#include "emit/contraction/arithmetic.h"
#include "emit/contraction/attention_internal.h"
#include "emit/kernel/block.h"
#include "emit/kernel/module.h"

enum { LANES = EMIT_ATTENTION_LANES, GROUPS = EMIT_ATTENTION_GROUPS, THREADS = EMIT_ATTENTION_THREADS };

/* --- the results --- */

/* Stores a result, which is that of pv or a transpose of it. */
static void store(emit_attention_block *k, LLVMValueRef row, LLVMValueRef column, LLVMValueRef value) {
  emit_element *e = &k->w.e;
  emit_indexer *x = &e->x;
  const hlo_instr *root = k->a.root, *pv = k->a.pv;
  const shape *s = &pv->shapes[0], *to = &root->shapes[0];
  dim *dims = ARENA_NEW_N(k->ir->arena, dim, 3);
  dims[0] = k->a.batches;
  dims[1] = k->a.rows;
  dims[2] = k->t.width;
  emit_index *flat = emit_index_new(x, 3, dims);
  emit_axis_at(flat, 0, emit_pos_at(k->batch, 1));
  emit_axis_at(flat, 1, emit_pos_at(row, 1));
  emit_axis_at(flat, 2, emit_pos_at(column, 1));
  const emit_index *from = emit_index_reshape(x, flat, s->rank, s->dims);
  emit_index *at = emit_index_new(x, to->rank, to->dims);
  for (int d = 0; d < to->rank; d++) {
    emit_axis_from(at, d, from, root == pv ? d : (int)hlo_ints(root, HLO_ATTR_PERMUTATION)[d]);
  }
  dtype t = (dtype)s->type;
  emit_store(e, k->w.results[0], t, emit_index_linear(x, at), (emit_pair){emit_narrow(k->ir, t, value), NULL},
             k->w.shared[0]);
}

/* Stores the thread's columns of its rows, each times `inverse`. */
static void store_row(emit_attention_block *k, LLVMValueRef row, const LLVMValueRef *values, LLVMValueRef inverse) {
  const emit_ir *ir = k->ir;
  int64_t n = k->t.vector;
  for (int64_t j = 0; j < k->t.strips * n; j++) {
    LLVMValueRef column = emit_add(ir, emit_times(ir, k->lane, n), emit_i64(ir, j / n * k->t.strip + j % n));
    bool full = (j / n + 1) * k->t.strip <= k->t.width;
    LLVMValueRef inside = emit_icmp(ir, LLVMIntSLT, column, emit_i64(ir, k->t.width));
    LLVMBasicBlockRef after = full ? NULL : emit_if_begin(ir, inside);
    uint32_t mark = emit_table_mark(k->w.e.x.table);
    store(k, row, column, LLVMBuildFMul(ir->builder, emit_lane(ir, values[j / n], (int)(j % n)), inverse, ""));
    emit_table_release(k->w.e.x.table, mark);
    if (after) {
      emit_if_end(ir, after);
    }
  }
}

static LLVMBasicBlockRef begin_if_row(emit_attention_block *k, LLVMValueRef row) {
  return emit_if_begin(k->ir, emit_icmp(k->ir, LLVMIntSLT, row, emit_size(&k->w.e.x, k->a.rows)));
}

static void store_rows(emit_attention_block *k, const emit_attention_rows *rows) {
  for (int64_t r = 0; r < k->t.c.rows; r++) {
    LLVMValueRef total = emit_attention_join_lanes(k, rows->total[r], emit_sum), row = emit_attention_row(k, r);
    LLVMBasicBlockRef after = begin_if_row(k, row);
    uint32_t mark = emit_table_mark(k->w.e.x.table);
    LLVMValueRef inverse = emit_attention_inverse(k, row, rows->most[r], rows->shift[r], total);
    store_row(k, row, rows->values + r * k->t.strips, inverse);
    emit_table_release(k->w.e.x.table, mark);
    emit_if_end(k->ir, after);
  }
}

/* --- joining the parts --- */

/* What the groups leave in shared memory: for each group the largest score, the shift and the total, and the values. */
typedef struct left {
  LLVMValueRef most, shifts, totals, values;
  int64_t columns; /* of values */
} left;

static left leave(emit_attention_block *k, const emit_attention_rows *rows) {
  const emit_ir *ir = k->ir;
  left l = {.columns = k->t.strips * k->t.strip, .most = k->staged};
  l.shifts = emit_attention_at(k, k->staged, emit_i64(ir, GROUPS));
  l.totals = emit_attention_at(k, k->staged, emit_i64(ir, 2 * GROUPS));
  l.values = emit_attention_at(k, k->staged, emit_i64(ir, 3 * GROUPS));
  LLVMValueRef total = emit_attention_join_lanes(k, rows->total[0], emit_sum);
  emit_barrier(&k->w); /* all threads have read what is overwritten now */
  LLVMBasicBlockRef after = emit_if_begin(ir, emit_icmp(ir, LLVMIntEQ, k->lane, emit_i64(ir, 0)));
  LLVMBuildStore(ir->builder, rows->most[0], emit_attention_at(k, l.most, k->group));
  LLVMBuildStore(ir->builder, rows->shift[0], emit_attention_at(k, l.shifts, k->group));
  LLVMBuildStore(ir->builder, total, emit_attention_at(k, l.totals, k->group));
  emit_if_end(ir, after);
  LLVMValueRef first = emit_add(ir, emit_times(ir, k->group, l.columns), emit_times(ir, k->lane, k->t.vector));
  for (int64_t j = 0; j < k->t.strips * k->t.vector; j++) {
    LLVMValueRef at = emit_add(ir, first, emit_i64(ir, j / k->t.vector * k->t.strip + j % k->t.vector));
    LLVMValueRef v = emit_lane(ir, rows->values[j / k->t.vector], (int)(j % k->t.vector));
    LLVMBuildStore(ir->builder, v, emit_attention_at(k, l.values, at));
  }
  emit_barrier(&k->w);
  return l;
}

static LLVMValueRef load(const emit_attention_block *k, LLVMValueRef base, LLVMValueRef at) {
  return LLVMBuildLoad2(k->ir->builder, k->element, emit_attention_at(k, base, at), "");
}

/* Stores one element of the result.  `first` is the first of the groups that have parts of its row. */
static void store_joined(emit_attention_block *k, const left *l, LLVMValueRef first, LLVMValueRef row,
                         LLVMValueRef column) {
  const emit_ir *ir = k->ir;
  LLVMValueRef most = emit_f_of(k->element, -INFINITY), end = emit_add(ir, first, emit_i64(ir, k->t.c.parts));
  emit_loop parts;
  emit_loop_begin(ir, &parts, first, end, 1, true, 1, &most);
  most = emit_larger(ir, load(k, l->most, parts.iv), parts.carried[0]);
  emit_loop_end(ir, &parts, &most);
  most = parts.carried[0];
  LLVMValueRef shift = emit_attention_shift(k, row, most);
  LLVMValueRef sums[2] = {LLVMConstNull(k->element), LLVMConstNull(k->element)};
  emit_loop_begin(ir, &parts, first, end, 1, true, 2, sums);
  LLVMValueRef factor = emit_attention_factor(k, load(k, l->most, parts.iv), load(k, l->shifts, parts.iv), shift);
  LLVMValueRef at = emit_add(ir, emit_times(ir, parts.iv, l->columns), column);
  sums[0] = emit_fma(ir, load(k, l->totals, parts.iv), factor, parts.carried[0]);
  sums[1] = emit_fma(ir, load(k, l->values, at), factor, parts.carried[1]);
  emit_loop_end(ir, &parts, sums);
  LLVMValueRef inverse = emit_attention_inverse(k, row, most, shift, parts.carried[0]);
  store(k, row, column, LLVMBuildFMul(ir->builder, parts.carried[1], inverse, ""));
}

/* Joins the parts in their order. */
static void join_parts(emit_attention_block *k, const emit_attention_rows *rows) {
  const emit_ir *ir = k->ir;
  left l = leave(k, rows);
  emit_loop each;
  emit_loop_begin(ir, &each, k->thread, emit_i64(ir, k->t.rows * k->t.width), THREADS, false, 0, NULL);
  LLVMValueRef in_tile = emit_over(ir, each.iv, k->t.width), row = emit_add(ir, k->first_row, in_tile);
  LLVMBasicBlockRef after = begin_if_row(k, row);
  uint32_t mark = emit_table_mark(k->w.e.x.table);
  store_joined(k, &l, emit_times(ir, in_tile, k->t.c.parts), row, emit_modulo(ir, each.iv, k->t.width));
  emit_table_release(k->w.e.x.table, mark);
  emit_if_end(ir, after);
  emit_loop_end(ir, &each, NULL);
}

/* --- tiles --- */

/* Lists the numbers that are carried from tile to tile; returns how many. */
static int list(const emit_attention_block *k, emit_attention_rows *rows, LLVMValueRef **out) {
  int n = 0;
  for (int64_t r = 0; r < k->t.c.rows; r++) {
    out[n++] = &rows->most[r];
    out[n++] = &rows->shift[r];
    out[n++] = &rows->total[r];
  }
  for (int64_t j = 0; j < k->t.c.rows * k->t.strips; j++) {
    out[n++] = &rows->values[j];
  }
  return n;
}

static emit_attention_rows no_keys(const emit_attention_block *k) {
  emit_attention_rows rows;
  LLVMValueRef none = emit_f_of(k->element, -INFINITY);
  for (int64_t r = 0; r < k->t.c.rows; r++) {
    rows.most[r] = rows.shift[r] = none;
    rows.total[r] = LLVMConstNull(k->element);
  }
  for (int64_t j = 0; j < k->t.c.rows * k->t.strips; j++) {
    rows.values[j] = LLVMConstNull(emit_vector_type(k->element, (int)k->t.vector));
  }
  return rows;
}

static emit_attention_rows add_keys(emit_attention_block *k) {
  const emit_ir *ir = k->ir;
  emit_attention_rows rows = no_keys(k);
  LLVMValueRef *each[EMIT_MAX_CARRIED], values[EMIT_MAX_CARRIED], scores[EMIT_ATTENTION_ROWS * EMIT_ATTENTION_KEYS];
  int n = list(k, &rows, each);
  for (int j = 0; j < n; j++) {
    values[j] = *each[j];
  }
  emit_loop l;
  emit_loop_begin(ir, &l, emit_i64(ir, 0), emit_size(&k->w.e.x, k->a.keys), k->t.keys, false, n, values);
  uint32_t mark = emit_table_mark(k->w.e.x.table);
  for (int j = 0; j < n; j++) {
    *each[j] = l.carried[j];
  }
  k->first_key = l.iv;
  emit_attention_scores(k, scores);
  emit_attention_softmax(k, scores, &rows);
  emit_attention_values(k, rows.values);
  for (int j = 0; j < n; j++) {
    values[j] = *each[j];
  }
  emit_table_release(k->w.e.x.table, mark);
  emit_loop_end(ir, &l, values);
  for (int j = 0; j < n; j++) {
    *each[j] = l.carried[j];
  }
  return rows;
}

/* Divides the step's number into batch and tile, and sets the grid. */
static void begin_tile(emit_attention_block *k) {
  const emit_ir *ir = k->ir;
  emit_indexer *x = &k->w.e.x;
  int64_t weights = GROUPS * k->t.c.rows * LANES * k->t.c.keys;
  dim tiles = dim_ceildiv(x->sizes->table, k->a.rows, k->t.rows);
  k->batch = emit_over_size(x, k->w.begin, tiles);
  k->first_row = emit_times(ir, emit_modulo_size(x, k->w.begin, tiles), k->t.rows);
  k->lane = emit_modulo(ir, k->thread, LANES);
  k->group = emit_over(ir, k->thread, LANES);
  k->row_group = emit_over(ir, k->group, k->t.c.parts);
  k->part = emit_modulo(ir, k->group, k->t.c.parts);
  k->q = emit_shared_memory(&k->w, k->element, k->t.rows * k->t.padded, 64);
  k->weights = emit_shared_memory(&k->w, k->element, weights, 64);
  k->staged = emit_shared_memory(&k->w, k->element, k->t.staged, 64);
  k->w.info->grid = dim_mul(x->sizes->table, k->a.batches, tiles);
}

static void write_tile(emit_attention_block *k) {
  begin_tile(k);
  emit_attention_load_rows(k);
  emit_attention_rows rows = add_keys(k);
  if (k->t.c.parts > 1) {
    join_parts(k, &rows);
  } else {
    store_rows(k, &rows);
  }
}

status emit_block_attention_kernel(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                                   const void *config, uint32_t phase, emit_kernel_info *info) {
  (void)phase;
  emit_attention_block *k = ARENA_NEW(emit_module_ir_of(m)->arena, emit_attention_block);
  CHECK_THAT(hlo_attention_of_fusion(i, &k->a) && emit_attention_tile_of(&k->a, config, &k->t), STATUS_INTERNAL,
             "no attention by blocks");
  TRY(emit_writer_begin(&k->w, m, name, i, options, 0, info));
  k->ir = k->w.e.w;
  k->element = emit_register_type(k->ir, k->t.type);
  emit_block_team(&k->w, THREADS, THREADS);
  k->thread = emit_thread_number(&k->w);
  /* a block without a step has nothing to do, and may have sizes of 0, by which nothing can be divided */
  LLVMBasicBlockRef after = emit_if_begin(k->ir, emit_icmp(k->ir, LLVMIntSLT, k->w.begin, k->w.end));
  write_tile(k);
  emit_if_end(k->ir, after);
  emit_writer_end(&k->w);
  return emit_writer_check(&k->w);
}
