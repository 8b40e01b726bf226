/* block_attention_results.c - the end of block_attention.h's kernel: the sums of groups of threads, and of blocks, that
 * share the keys of the same rows are joined, and the results are stored. */
#include <math.h>

#include "emit/blocks/block_attention_internal.h"
#include "emit/blocks/sum_parts.h"
#include "emit/llvm/arithmetic.h"
#include "emit/contraction/attention_internal.h"
#include "emit/kernel/block.h"

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

/* Returns `value`, a sum for a column of the result, times the inverse of its row's total.  Where 0 stands for weights
 * that are NaN (hlo_attention.zero_where_nan), returns the sum of the column of v times 0. */
static LLVMValueRef result_of(emit_attention_block *k, LLVMValueRef column, LLVMValueRef value, LLVMValueRef inverse) {
  const emit_ir *ir = k->ir;
  LLVMValueRef result = LLVMBuildFMul(ir->builder, value, inverse, ""), zero = LLVMConstNull(k->element), sum = zero;
  if (!k->a.zero_where_nan) {
    return result;
  }
  LLVMValueRef is_nan = emit_fcmp(ir, LLVMRealUNO, inverse, inverse), none = emit_i64(ir, 0);
  LLVMValueRef keys = emit_select(ir, is_nan, emit_size(&k->w.e.x, k->a.keys), none);
  emit_loop l;
  emit_loop_begin(ir, &l, none, keys, 1, false, 1, &sum);
  uint32_t mark = emit_table_mark(k->w.e.x.table);
  LLVMValueRef v = emit_attention_operand(k, k->a.pv, 1, emit_pos_at(column, 1), emit_pos_at(l.iv, 1));
  sum = emit_fma(ir, zero, v, l.carried[0]);
  emit_table_release(k->w.e.x.table, mark);
  emit_loop_end(ir, &l, &sum);
  return emit_select(ir, is_nan, l.carried[0], result);
}

/* Stores the thread's columns of row number `row`, each value times `inverse`. */
static void store_row(emit_attention_block *k, LLVMValueRef row, const LLVMValueRef *values, LLVMValueRef inverse) {
  const emit_ir *ir = k->ir;
  int64_t n = k->t.vector;
  for (int64_t j = 0; j < k->t.strips * n; j++) {
    LLVMValueRef column = emit_add(ir, emit_times(ir, k->lane, n), emit_i64(ir, j / n * k->t.strip + j % n));
    bool full = (j / n + 1) * k->t.strip <= k->t.width;
    LLVMValueRef inside = emit_icmp(ir, LLVMIntSLT, column, emit_i64(ir, k->t.width));
    LLVMBasicBlockRef after = full ? NULL : emit_if_begin(ir, inside);
    uint32_t mark = emit_table_mark(k->w.e.x.table);
    store(k, row, column, result_of(k, column, emit_lane(ir, values[j / n], (int)(j % n)), inverse));
    emit_table_release(k->w.e.x.table, mark);
    if (after) {
      emit_if_end(ir, after);
    }
  }
}

static LLVMBasicBlockRef begin_if_row(emit_attention_block *k, LLVMValueRef row) {
  return emit_if_begin(k->ir, emit_icmp(k->ir, LLVMIntSLT, row, emit_size(&k->w.e.x, k->a.rows)));
}

/* Stores the results of rows that no other group and no other block computes. */
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

/* --- what groups and blocks leave for others --- */

/* What several groups or blocks leave in memory, each for some of the keys: the sums of values, the largest scores, the
 * shifts and the totals, which are sums of exponentials.  The first is an array [row of the tile][n][strips][strip],
 * the others are arrays [row of the tile][n]. */
typedef struct left {
  LLVMValueRef values, most, shifts, totals;
  int64_t n; /* the number of groups or blocks that share the keys of the same rows */
} left;

static int64_t columns_of(const emit_attention_block *k) { return k->t.strips * k->t.strip; }

/* Returns the arrays that begin at `base`, an address of shared or scratch memory. */
static left left_at(const emit_attention_block *k, LLVMValueRef base, int64_t n) {
  int64_t numbers = k->t.rows * n, values = numbers * columns_of(k);
  return (left){.values = base,
                .most = emit_attention_at(k, base, emit_i64(k->ir, values)),
                .shifts = emit_attention_at(k, base, emit_i64(k->ir, values + numbers)),
                .totals = emit_attention_at(k, base, emit_i64(k->ir, values + 2 * numbers)),
                .n = n};
}

static left left_by_groups(const emit_attention_block *k) { return left_at(k, k->staged, k->t.c.parts); }

static left left_by_blocks(const emit_attention_block *k) {
  return left_at(k, emit_attention_at(k, emit_parts_memory(&k->w), emit_times(k->ir, k->tile, k->t.left)),
                 k->t.c.splits);
}

/* The numbers from which an element of the result is computed: the largest score, the shift and the total of its row,
 * and the sum of its values. */
typedef struct element_sums {
  LLVMValueRef most, shift, total, value;
} element_sums;

static void leave_numbers(emit_attention_block *k, const left *l, LLVMValueRef place, element_sums s) {
  LLVMBuildStore(k->ir->builder, s.most, emit_attention_at(k, l->most, place));
  LLVMBuildStore(k->ir->builder, s.shift, emit_attention_at(k, l->shifts, place));
  LLVMBuildStore(k->ir->builder, s.total, emit_attention_at(k, l->totals, place));
}

/* Stores what the thread has of row number r of its group.  `place` is the index in the arrays [row of the tile][n];
 * `total` is the sum of the totals of all lanes. */
static void leave_row(emit_attention_block *k, const left *l, const emit_attention_rows *rows, int64_t r,
                      LLVMValueRef place, LLVMValueRef total) {
  const emit_ir *ir = k->ir;
  int64_t n = k->t.vector;
  LLVMBasicBlockRef after = emit_if_begin(ir, emit_icmp(ir, LLVMIntEQ, k->lane, emit_i64(ir, 0)));
  leave_numbers(k, l, place, (element_sums){rows->most[r], rows->shift[r], total, NULL});
  emit_if_end(ir, after);
  LLVMValueRef first = emit_add(ir, emit_times(ir, place, columns_of(k)), emit_times(ir, k->lane, n));
  for (int64_t j = 0; j < k->t.strips; j++) {
    LLVMValueRef to = emit_attention_at(k, l->values, emit_add(ir, first, emit_i64(ir, j * k->t.strip)));
    LLVMValueRef stored = LLVMBuildStore(ir->builder, rows->values[r * k->t.strips + j], to);
    LLVMSetAlignment(stored, (unsigned)((size_t)n * dtype_bytes(k->t.type)));
  }
}

/* Leaves the sums of all groups in shared memory.  Each group has a part of the keys of one row. */
static void leave_groups(emit_attention_block *k, const emit_attention_rows *rows) {
  left l = left_by_groups(k);
  LLVMValueRef total = emit_attention_join_lanes(k, rows->total[0], emit_sum);
  emit_barrier(&k->w); /* all threads have read what is overwritten now */
  leave_row(k, &l, rows, 0, k->group, total);
  emit_barrier(&k->w);
}

/* Returns the place at which the block leaves its part of a row of the tile. */
static LLVMValueRef place_of_split(const emit_attention_block *k, LLVMValueRef in_tile) {
  return emit_add(k->ir, emit_times(k->ir, in_tile, k->t.c.splits), k->split);
}

/* Leaves the block's sums in scratch memory.  Each group has rows of its own. */
static void leave_rows(emit_attention_block *k, const emit_attention_rows *rows) {
  left l = left_by_blocks(k);
  for (int64_t r = 0; r < k->t.c.rows; r++) {
    LLVMValueRef total = emit_attention_join_lanes(k, rows->total[r], emit_sum);
    LLVMBasicBlockRef after = begin_if_row(k, emit_attention_row(k, r));
    leave_row(k, &l, rows, r, place_of_split(k, emit_attention_row_in_tile(k, r)), total);
    emit_if_end(k->ir, after);
  }
}

/* --- joining --- */

static LLVMValueRef load(const emit_attention_block *k, LLVMValueRef base, LLVMValueRef at) {
  return LLVMBuildLoad2(k->ir->builder, k->element, emit_attention_at(k, base, at), "");
}

/* How many parts are loaded before one is used, so that a thread waits for memory less often. */
enum { AT_ONCE = 4 };

/* Returns the largest score of a row; `first` is the place of its first part. */
static LLVMValueRef join_most(emit_attention_block *k, const left *l, LLVMValueRef first) {
  const emit_ir *ir = k->ir;
  int64_t n = l->n < AT_ONCE ? l->n : AT_ONCE;
  LLVMValueRef most = emit_f_of(k->element, -INFINITY), loaded[AT_ONCE];
  emit_loop parts;
  emit_loop_begin(ir, &parts, first, emit_add(ir, first, emit_i64(ir, l->n)), n, true, 1, &most);
  for (int64_t j = 0; j < n; j++) {
    loaded[j] = load(k, l->most, emit_add(ir, parts.iv, emit_i64(ir, j)));
  }
  most = parts.carried[0];
  for (int64_t j = 0; j < n; j++) {
    most = emit_larger(ir, loaded[j], most);
  }
  emit_loop_end(ir, &parts, &most);
  return parts.carried[0];
}

/* Joins the parts of an element in their order. */
static element_sums join(emit_attention_block *k, const left *l, LLVMValueRef in_tile, LLVMValueRef column) {
  const emit_ir *ir = k->ir;
  int64_t n = l->n < AT_ONCE ? l->n : AT_ONCE;
  LLVMValueRef first = emit_times(ir, in_tile, l->n), row = emit_add(ir, k->first_row, in_tile);
  element_sums loaded[AT_ONCE], all = {.most = join_most(k, l, first)};
  all.shift = emit_attention_shift(k, row, all.most);
  LLVMValueRef sums[2] = {LLVMConstNull(k->element), LLVMConstNull(k->element)};
  emit_loop parts;
  emit_loop_begin(ir, &parts, first, emit_add(ir, first, emit_i64(ir, l->n)), n, true, 2, sums);
  for (int64_t j = 0; j < n; j++) {
    LLVMValueRef part = emit_add(ir, parts.iv, emit_i64(ir, j));
    LLVMValueRef value = emit_add(ir, emit_times(ir, part, columns_of(k)), column);
    loaded[j] = (element_sums){load(k, l->most, part), load(k, l->shifts, part), load(k, l->totals, part),
                               load(k, l->values, value)};
  }
  sums[0] = parts.carried[0];
  sums[1] = parts.carried[1];
  for (int64_t j = 0; j < n; j++) {
    LLVMValueRef factor = emit_attention_factor(k, loaded[j].most, loaded[j].shift, all.shift);
    sums[0] = emit_fma(ir, loaded[j].total, factor, sums[0]);
    sums[1] = emit_fma(ir, loaded[j].value, factor, sums[1]);
  }
  emit_loop_end(ir, &parts, sums);
  all.total = parts.carried[0];
  all.value = parts.carried[1];
  return all;
}

/* A function that is called for each element of the tile after the element's partial sums have been joined: it stores
 * the result, or leaves the sums for other blocks. */
typedef void use_fn(emit_attention_block *k, LLVMValueRef in_tile, LLVMValueRef column, element_sums s);

static void store_element(emit_attention_block *k, LLVMValueRef in_tile, LLVMValueRef column, element_sums s) {
  LLVMValueRef row = emit_add(k->ir, k->first_row, in_tile);
  LLVMValueRef inverse = emit_attention_inverse(k, row, s.most, s.shift, s.total);
  store(k, row, column, result_of(k, column, s.value, inverse));
}

static void leave_element(emit_attention_block *k, LLVMValueRef in_tile, LLVMValueRef column, element_sums s) {
  const emit_ir *ir = k->ir;
  left l = left_by_blocks(k);
  LLVMValueRef place = place_of_split(k, in_tile), value = emit_add(ir, emit_times(ir, place, columns_of(k)), column);
  LLVMBuildStore(ir->builder, s.value, emit_attention_at(k, l.values, value));
  LLVMBasicBlockRef after = emit_if_begin(ir, emit_icmp(ir, LLVMIntEQ, column, emit_i64(ir, 0)));
  leave_numbers(k, &l, place, s);
  emit_if_end(ir, after);
}

/* Joins what groups or blocks have left in `l` for each element of the tile's results, and passes it to `use`. */
static void join_tile(emit_attention_block *k, left l, use_fn *use) {
  const emit_ir *ir = k->ir;
  emit_loop each;
  emit_loop_begin(ir, &each, k->thread, emit_i64(ir, k->t.rows * k->t.width), k->t.threads, false, 0, NULL);
  LLVMValueRef in_tile = emit_over(ir, each.iv, k->t.width), column = emit_modulo(ir, each.iv, k->t.width);
  LLVMBasicBlockRef after = begin_if_row(k, emit_add(ir, k->first_row, in_tile));
  uint32_t mark = emit_table_mark(k->w.e.x.table);
  use(k, in_tile, column, join(k, &l, in_tile, column));
  emit_table_release(k->w.e.x.table, mark);
  emit_if_end(ir, after);
  emit_loop_end(ir, &each, NULL);
}

static void finish_split(emit_attention_block *k, const emit_attention_rows *rows) {
  if (k->t.c.parts > 1) {
    join_tile(k, left_by_groups(k), leave_element);
  } else {
    leave_rows(k, rows);
  }
  LLVMValueRef last = emit_is_last_block(&k->w, emit_parts_counter(&k->w, k->tile), emit_i64(k->ir, k->t.c.splits));
  LLVMBasicBlockRef unless_last = emit_if_begin(k->ir, last);
  join_tile(k, left_by_blocks(k), store_element);
  emit_if_end(k->ir, unless_last);
}

void emit_attention_finish(emit_attention_block *k, const emit_attention_rows *rows) {
  if (k->t.c.parts > 1) {
    leave_groups(k, rows);
  }
  if (k->t.c.splits > 1) {
    finish_split(k, rows);
  } else if (k->t.c.parts > 1) {
    join_tile(k, left_by_groups(k), store_element);
  } else {
    store_rows(k, rows);
  }
}
