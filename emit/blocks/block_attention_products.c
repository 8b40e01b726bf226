/* block_attention_products.c - the two products of block_attention.h's kernel, and how their factors come into shared
 * memory. */
#include <assert.h>

#include "emit/blocks/block_attention_internal.h"
#include "emit/llvm/arithmetic.h"
#include "emit/element/view.h"
#include "emit/kernel/block.h"

enum { LANES = EMIT_ATTENTION_LANES, THREADS = EMIT_ATTENTION_THREADS, VECTOR = EMIT_ATTENTION_SUMS };

LLVMValueRef emit_attention_at(const emit_attention_block *k, LLVMValueRef base, LLVMValueRef at) {
  return LLVMBuildInBoundsGEP2(k->ir->builder, k->element, base, &at, 1, "");
}

LLVMValueRef emit_attention_row_in_tile(const emit_attention_block *k, int64_t r) {
  return emit_add(k->ir, k->row_group, emit_i64(k->ir, r * k->t.row_step));
}

LLVMValueRef emit_attention_row(const emit_attention_block *k, int64_t r) {
  return emit_add(k->ir, k->first_row, emit_attention_row_in_tile(k, r));
}

/* Loads n neighbouring elements of shared memory from a multiple of n on. */
static LLVMValueRef load_vector(const emit_attention_block *k, LLVMValueRef base, LLVMValueRef at, int64_t n) {
  LLVMTypeRef type = emit_vector_type(k->element, (int)n);
  LLVMValueRef v = LLVMBuildLoad2(k->ir->builder, type, emit_attention_at(k, base, at), "");
  LLVMSetAlignment(v, (unsigned)((size_t)n * dtype_bytes(k->t.type)));
  return v;
}

/* --- factors --- */

/* Returns the index of an element of a dot's result. */
static const emit_index *result_index(emit_attention_block *k, const hlo_instr *dot, emit_pos row, emit_pos column) {
  emit_indexer *x = &k->w.e.x;
  dim *dims = ARENA_NEW_N(k->ir->arena, dim, 3);
  dims[0] = k->a.batches;
  dims[1] = k->a.rows;
  dims[2] = dot == k->a.qk ? k->a.keys : k->t.width;
  emit_index *at = emit_index_new(x, 3, dims);
  emit_axis_at(at, 0, emit_pos_at(k->batch, 1));
  emit_axis_at(at, 1, row);
  emit_axis_at(at, 2, column);
  return emit_index_reshape(x, at, dot->shapes[0].rank, dot->shapes[0].dims);
}

LLVMValueRef emit_attention_operand(emit_attention_block *k, const hlo_instr *dot, uint32_t operand, emit_pos position,
                                    emit_pos sum) {
  emit_indexer *x = &k->w.e.x;
  emit_pos zero = emit_pos_const(x, 0);
  const emit_index *at = result_index(k, dot, operand ? zero : position, operand ? position : zero);
  dim *extents = ARENA_NEW_N(k->ir->arena, dim, SHAPE_MAX_RANK + 1);
  extents[SHAPE_MAX_RANK] = emit_attention_sums(dot);
  int n = emit_contracted_extents(dot, extents);
  emit_index *flat = emit_index_new(x, 1, extents + SHAPE_MAX_RANK);
  emit_axis_at(flat, 0, sum);
  return emit_factor(&k->w.e, dot, operand, at, emit_index_reshape(x, flat, n, extents)).v;
}

/* Returns the element of q or k at a row or key and at column `sum` of the head.  Columns beyond the end are 0. */
static LLVMValueRef head_element(emit_attention_block *k, uint32_t operand, LLVMValueRef position, LLVMValueRef sum) {
  const emit_ir *ir = k->ir;
  bool full = k->t.padded == k->t.sums;
  LLVMValueRef safe = full ? sum : emit_lesser(ir, sum, emit_i64(ir, k->t.sums - 1));
  LLVMValueRef v = emit_attention_operand(k, k->a.qk, operand, emit_pos_at(position, 1), emit_pos_at(safe, 1));
  LLVMValueRef inside = emit_icmp(ir, LLVMIntSLT, sum, emit_i64(ir, k->t.sums));
  return full ? v : emit_select(ir, inside, v, LLVMConstNull(k->element));
}

bool emit_attention_has_sums_innermost(const hlo_instr *dot, uint32_t operand) {
  const hlo_attr *c = hlo_attr_of(dot, operand ? HLO_ATTR_RHS_CONTRACT : HLO_ATTR_LHS_CONTRACT);
  return c->n > 0 && emit_is_innermost(dot->operands[operand], (int)c->ints[c->n - 1]);
}

/* --- shared memory --- */

void emit_attention_load_rows(emit_attention_block *k) {
  const emit_ir *ir = k->ir;
  emit_loop l;
  emit_loop_begin(ir, &l, k->thread, emit_i64(ir, k->t.rows * k->t.padded), THREADS, false, 0, NULL);
  uint32_t mark = emit_table_mark(k->w.e.x.table);
  LLVMValueRef row = emit_add(ir, k->first_row, emit_over(ir, l.iv, k->t.padded));
  row = emit_attention_within(k, row, k->a.rows);
  LLVMValueRef v = head_element(k, 0, row, emit_modulo(ir, l.iv, k->t.padded));
  LLVMBuildStore(ir->builder, v, emit_attention_at(k, k->q, l.iv));
  emit_table_release(k->w.e.x.table, mark);
  emit_loop_end(ir, &l, NULL);
}

/* A part of k or v, as an array [keys][columns] of shared memory with rows of `pitch` elements. */
typedef struct part {
  const hlo_instr *dot;
  int64_t columns, pitch;
  bool columns_first; /* whether neighbouring threads load neighbouring columns, not keys */
  LLVMValueRef first; /* the column at which the part begins */
} part;

/* Returns the element at a key of the tile and a column of the part.  Keys and columns beyond the end are replaced by
 * the last ones, so that nothing outside of an array is read. */
static LLVMValueRef part_element(emit_attention_block *k, const part *p, LLVMValueRef key, LLVMValueRef column) {
  const emit_ir *ir = k->ir;
  key = emit_attention_within(k, emit_add(ir, k->first_key, key), k->a.keys);
  column = emit_add(ir, p->first, column);
  if (p->dot == k->a.qk) {
    return head_element(k, 1, key, column);
  }
  bool full = k->t.strips * k->t.strip == k->t.width;
  column = full ? column : emit_lesser(ir, column, emit_i64(ir, k->t.width - 1));
  return emit_attention_operand(k, p->dot, 1, emit_pos_at(column, 1), emit_pos_at(key, 1));
}

/* If the tile is not whole, makes the values of keys beyond the end 0 in shared memory.  Their weights are 0, but times
 * an infinite value that would be NaN. */
static void clear_end(emit_attention_block *k, const part *p) {
  const emit_ir *ir = k->ir;
  if (p->dot == k->a.qk || (dim_is_const(k->a.keys) && k->a.keys % k->t.keys == 0)) {
    return;
  }
  LLVMValueRef left = LLVMBuildNSWSub(ir->builder, emit_size(&k->w.e.x, k->a.keys), k->first_key, "");
  LLVMBasicBlockRef after = emit_if_begin(ir, emit_icmp(ir, LLVMIntSLT, left, emit_i64(ir, k->t.keys)));
  emit_barrier(&k->w); /* all threads have stored their elements */
  emit_loop l;
  LLVMValueRef from = emit_add(ir, emit_times(ir, left, p->pitch), k->thread);
  emit_loop_begin(ir, &l, from, emit_i64(ir, k->t.keys * p->pitch), THREADS, false, 0, NULL);
  LLVMBuildStore(ir->builder, LLVMConstNull(k->element), emit_attention_at(k, k->staged, l.iv));
  emit_loop_end(ir, &l, NULL);
  emit_if_end(ir, after);
}

/* Brings the part into shared memory; then all threads may read it. */
static void load_part(emit_attention_block *k, const part *p) {
  enum { MOST = 64 };
  const emit_ir *ir = k->ir;
  LLVMValueRef values[MOST], places[MOST];
  int n = (int)(k->t.keys * p->columns / THREADS);
  assert(n > 0 && n <= MOST && k->t.keys * p->columns % THREADS == 0);
  int64_t inner = p->columns_first ? p->columns : k->t.keys;
  assert(THREADS % inner == 0);
  LLVMValueRef fast = emit_modulo(ir, k->thread, inner), first = emit_over(ir, k->thread, inner);
  uint32_t mark = emit_table_mark(k->w.e.x.table);
  for (int j = 0; j < n; j++) {
    LLVMValueRef slow = emit_add(ir, first, emit_i64(ir, j * (THREADS / inner)));
    LLVMValueRef key = p->columns_first ? slow : fast, column = p->columns_first ? fast : slow;
    values[j] = part_element(k, p, key, column);
    places[j] = emit_attention_at(k, k->staged, emit_add(ir, emit_times(ir, key, p->pitch), column));
  }
  emit_table_release(k->w.e.x.table, mark);
  emit_barrier(&k->w); /* all threads have read what is overwritten now */
  for (int j = 0; j < n; j++) {
    LLVMBuildStore(ir->builder, values[j], places[j]);
  }
  clear_end(k, p);
  emit_barrier(&k->w);
}

/* --- the product of q and k --- */

/* Adds the products of a chunk of the columns of a head to the scores.  That of k is in k->staged, that of q begins at
 * column `first` of k->q. */
static void multiply_scores(const emit_attention_block *k, LLVMValueRef first, LLVMValueRef *scores) {
  const emit_ir *ir = k->ir;
  int64_t rows = k->t.c.rows, keys = k->t.c.keys, pitch = k->t.chunk + VECTOR;
  LLVMValueRef q[EMIT_ATTENTION_ROWS], other[EMIT_ATTENTION_KEYS];
  for (int64_t s = 0; s < k->t.chunk; s += VECTOR) {
    for (int64_t r = 0; r < rows; r++) {
      LLVMValueRef row = emit_attention_row_in_tile(k, r);
      LLVMValueRef at = emit_add(ir, emit_times(ir, row, k->t.padded), emit_add(ir, first, emit_i64(ir, s)));
      q[r] = load_vector(k, k->q, at, VECTOR);
    }
    for (int64_t j = 0; j < keys; j++) {
      LLVMValueRef at = emit_times(ir, emit_add(ir, k->own_key, emit_i64(ir, j * LANES)), pitch);
      other[j] = load_vector(k, k->staged, emit_add(ir, at, emit_i64(ir, s)), VECTOR);
    }
    for (int64_t n = 0; n < rows * keys * VECTOR; n++) {
      int64_t at = n / VECTOR;
      int lane = (int)(n % VECTOR);
      scores[at] = emit_fma(ir, emit_lane(ir, q[at / keys], lane), emit_lane(ir, other[at % keys], lane), scores[at]);
    }
  }
}

void emit_attention_scores(emit_attention_block *k, LLVMValueRef *scores) {
  const emit_ir *ir = k->ir;
  int n = (int)(k->t.c.rows * k->t.c.keys);
  for (int j = 0; j < n; j++) {
    scores[j] = LLVMConstNull(k->element);
  }
  emit_loop l;
  emit_loop_begin(ir, &l, emit_i64(ir, 0), emit_i64(ir, k->t.padded), k->t.chunk, true, n, scores);
  const part p = {k->a.qk, k->t.chunk, k->t.chunk + VECTOR, emit_attention_has_sums_innermost(k->a.qk, 1), l.iv};
  load_part(k, &p);
  for (int j = 0; j < n; j++) {
    scores[j] = l.carried[j];
  }
  multiply_scores(k, l.iv, scores);
  emit_loop_end(ir, &l, scores);
  for (int j = 0; j < n; j++) {
    scores[j] = l.carried[j];
  }
}

/* --- the product of the weights and v --- */

/* Adds to sums[] the products of the weights of the thread's group (emit_attention_block.group) and the columns of v
 * that are in shared memory.  sums[] has a vector for each row of the group, `step` entries apart. */
static void multiply_values(const emit_attention_block *k, LLVMValueRef *sums, int64_t step) {
  const emit_ir *ir = k->ir;
  int64_t rows = k->t.c.rows, keys = LANES * k->t.c.keys, n = k->t.vector;
  LLVMValueRef own[EMIT_ATTENTION_ROWS], weights[EMIT_ATTENTION_ROWS];
  for (int64_t r = 0; r < rows; r++) {
    own[r] = sums[r * step];
  }
  emit_loop l;
  emit_loop_begin(ir, &l, emit_i64(ir, 0), emit_i64(ir, keys), VECTOR, true, (int)rows, own);
  for (int64_t r = 0; r < rows; r++) {
    LLVMValueRef row = emit_add(ir, emit_times(ir, k->group, rows), emit_i64(ir, r));
    weights[r] = load_vector(k, k->weights, emit_add(ir, emit_times(ir, row, keys), l.iv), VECTOR);
    own[r] = l.carried[r];
  }
  for (int j = 0; j < VECTOR; j++) {
    LLVMValueRef key = emit_add(ir, emit_add(ir, emit_times(ir, k->part, keys), l.iv), emit_i64(ir, j));
    LLVMValueRef at = emit_add(ir, emit_times(ir, key, k->t.strip), emit_times(ir, k->lane, n));
    LLVMValueRef v = load_vector(k, k->staged, at, n);
    for (int64_t r = 0; r < rows; r++) {
      own[r] = emit_fma(ir, emit_splat(ir, emit_lane(ir, weights[r], j), (int)n), v, own[r]);
    }
  }
  emit_loop_end(ir, &l, own);
  for (int64_t r = 0; r < rows; r++) {
    sums[r * step] = l.carried[r];
  }
}

/* Stores the thread's weights to shared memory. */
static void store_weights(const emit_attention_block *k, const LLVMValueRef *weights) {
  const emit_ir *ir = k->ir;
  int64_t rows = k->t.c.rows, keys = k->t.c.keys;
  for (int64_t j = 0; j < rows * keys; j++) {
    LLVMValueRef row = emit_add(ir, emit_times(ir, k->group, rows), emit_i64(ir, j / keys));
    LLVMValueRef first = emit_add(ir, emit_times(ir, row, LANES * keys), k->lane);
    LLVMBuildStore(ir->builder, weights[j],
                   emit_attention_at(k, k->weights, emit_add(ir, first, emit_i64(ir, j % keys * LANES))));
  }
}

void emit_attention_values(emit_attention_block *k, const LLVMValueRef *weights, LLVMValueRef *values) {
  store_weights(k, weights); /* other threads read them after the first barrier */
  for (int64_t j = 0; j < k->t.strips; j++) {
    const part p = {k->a.pv, k->t.strip, k->t.strip, !emit_attention_has_sums_innermost(k->a.pv, 1),
                    emit_i64(k->ir, j * k->t.strip)};
    load_part(k, &p);
    multiply_values(k, values + j, k->t.strips);
  }
}
