/* block_attention_softmax.c - the softmax of block_attention.h's kernel: elementwise operations on scores, and the
 * numbers of each row that change from tile to tile. */
#include <math.h>

#include "emit/blocks/block_attention_internal.h"
#include "emit/llvm/arithmetic.h"
#include "emit/contraction/attention_internal.h"
#include "emit/kernel/block.h"
#include "emit/math/math.h"

LLVMValueRef emit_attention_within(emit_attention_block *k, LLVMValueRef p, dim n) {
  LLVMValueRef last = LLVMBuildNSWSub(k->ir->builder, emit_size(&k->w.e.x, n), emit_i64(k->ir, 1), "");
  return emit_lesser(k->ir, p, last);
}

LLVMValueRef emit_attention_join_lanes(emit_attention_block *k, LLVMValueRef x, emit_attention_join *join) {
  for (unsigned half = (unsigned)k->t.lanes / 2; half >= 1; half /= 2) {
    x = join(k->ir, x, emit_lane_xor(&k->w, x, half));
  }
  return x;
}

/* --- elementwise operations --- */

/* Returns the place of the score of a row and a key; if `key` is NULL, that of a value that the row has only once. */
static const emit_index *place_of(emit_attention_block *k, LLVMValueRef row, LLVMValueRef key) {
  emit_indexer *x = &k->w.e.x;
  dim *dims = ARENA_NEW_N(k->ir->arena, dim, 3);
  dims[0] = k->a.batches;
  dims[1] = k->a.rows;
  dims[2] = k->a.keys;
  emit_index *place = emit_index_new(x, key ? 3 : 2, dims);
  emit_axis_at(place, 0, emit_pos_at(k->batch, 1));
  emit_axis_at(place, 1, emit_pos_at(row, 1));
  if (key) {
    emit_axis_at(place, 2, emit_pos_at(key, 1));
  }
  return place;
}

/* Returns the value that `made` has at an index at which the value of `from` is x.  Both are in the type in which the
 * kernel computes. */
static LLVMValueRef value_from(emit_attention_block *k, hlo_value made, hlo_value from, const emit_index *place,
                               LLVMValueRef x) {
  x = emit_narrow(k->ir, hlo_type(from), x);
  return emit_widen(k->ir, hlo_type(made), emit_value_from(&k->w.e, made, from, place, x));
}

LLVMValueRef emit_attention_usable(const emit_attention_block *k, LLVMValueRef shift) {
  return emit_select(k->ir, emit_fcmp(k->ir, LLVMRealOEQ, shift, emit_f(shift, -INFINITY)), emit_f(shift, 0), shift);
}

LLVMValueRef emit_attention_factor(const emit_attention_block *k, LLVMValueRef most, LLVMValueRef before,
                                   LLVMValueRef now) {
  const emit_ir *ir = k->ir;
  LLVMValueRef change = LLVMBuildFSub(ir->builder, emit_attention_usable(k, before), emit_attention_usable(k, now), "");
  LLVMValueRef none = emit_fcmp(ir, LLVMRealOEQ, most, emit_f(most, -INFINITY));
  return emit_math(ir, HLO_EXP, emit_select(ir, none, emit_f(change, 0), change), NULL);
}

LLVMValueRef emit_attention_shift(emit_attention_block *k, LLVMValueRef row, LLVMValueRef most) {
  return value_from(k, k->a.shift, hlo_result(k->a.max, 0), place_of(k, row, NULL), most);
}

/* The result is NaN if the shift is infinite, since the exponentials of the scores minus the shift are NaN, too.  It is
 * 0 if there are no keys, so that the values become 0. */
LLVMValueRef emit_attention_inverse(emit_attention_block *k, LLVMValueRef row, LLVMValueRef most, LLVMValueRef shift,
                                    LLVMValueRef total) {
  const emit_ir *ir = k->ir;
  const emit_index *place = place_of(k, row, NULL);
  hlo_value max = hlo_result(k->a.max, 0);
  const emit_index *at = emit_index_reshape(&k->w.e.x, place, hlo_rank(max), hlo_shape(max)->dims);
  emit_element_set(&k->w.e, max, at, (emit_pair){emit_narrow(ir, hlo_type(max), most), NULL});
  LLVMValueRef invalid = LLVMBuildFSub(ir->builder, shift, shift, "");
  LLVMValueRef all = emit_sum(ir, total, invalid);
  all = value_from(k, k->a.total, hlo_result(k->a.sum, 0), place, all);
  LLVMValueRef inverse = emit_sum(ir, LLVMBuildFDiv(ir->builder, emit_f(all, 1), all, ""), invalid);
  LLVMValueRef any = emit_icmp(ir, LLVMIntNE, emit_size(&k->w.e.x, k->a.keys), emit_i64(ir, 0));
  return emit_select(ir, any, inverse, emit_f(inverse, 0));
}

/* --- a tile of keys --- */

/* Returns the number in the batch of key number j of the thread. */
static LLVMValueRef key_of(const emit_attention_block *k, int64_t j) {
  int64_t at = k->t.c.mma ? j / 2 * EMIT_MMA_COLUMNS + j % 2 : j * k->t.lanes;
  return emit_add(k->ir, k->first_key, emit_add(k->ir, k->own_key, emit_i64(k->ir, at)));
}

/* Replaces the dots of a row by the operands of the softmax, which are -infinity for keys that do not exist.  Returns
 * the largest operand of all lanes that have the row. */
static LLVMValueRef finish_scores(emit_attention_block *k, LLVMValueRef row, LLVMValueRef *scores) {
  const emit_ir *ir = k->ir;
  int64_t keys = k->t.c.keys;
  LLVMValueRef most = NULL;
  for (int64_t j = 0; j < keys; j++) {
    LLVMValueRef key = key_of(k, j);
    LLVMValueRef inside = emit_icmp(ir, LLVMIntSLT, key, emit_size(&k->w.e.x, k->a.keys));
    const emit_index *place = place_of(k, row, emit_attention_within(k, key, k->a.keys));
    LLVMValueRef x = value_from(k, k->a.scores, hlo_result(k->a.qk, 0), place, scores[j]);
    scores[j] = emit_select(ir, inside, x, emit_f(x, -INFINITY));
    most = most ? emit_larger(ir, most, scores[j]) : scores[j];
  }
  return emit_attention_join_lanes(k, most, emit_larger);
}

/* Replaces the operands of the softmax of a row by their exponentials, and returns the sum of those of the thread. */
static LLVMValueRef raise(emit_attention_block *k, LLVMValueRef *scores, LLVMValueRef shift) {
  const emit_ir *ir = k->ir;
  LLVMValueRef all = NULL;
  for (int64_t j = 0; j < k->t.c.keys; j++) {
    scores[j] = emit_score_exponential(ir, hlo_shifts_by_maximum(&k->a), scores[j], shift);
    all = all ? emit_sum(ir, all, scores[j]) : scores[j];
  }
  return all;
}

void emit_attention_softmax(emit_attention_block *k, LLVMValueRef *scores, emit_attention_rows *rows) {
  const emit_ir *ir = k->ir;
  for (int64_t r = 0; r < k->t.c.rows; r++) {
    uint32_t mark = emit_table_mark(k->w.e.x.table);
    LLVMValueRef row = emit_attention_within(k, emit_attention_row(k, r), k->a.rows), *own = scores + r * k->t.c.keys;
    LLVMValueRef most = emit_larger(ir, finish_scores(k, row, own), rows->most[r]);
    LLVMValueRef shift = emit_attention_shift(k, row, most);
    LLVMValueRef factor = emit_attention_factor(k, rows->most[r], rows->shift[r], shift);
    LLVMValueRef all = raise(k, own, emit_attention_usable(k, shift));
    rows->most[r] = most;
    rows->shift[r] = shift;
    rows->total[r] = emit_fma(ir, rows->total[r], factor, all);
    for (int64_t j = 0; j < k->t.strips; j++) {
      LLVMValueRef *v = &rows->values[r * k->t.strips + j];
      *v = LLVMBuildFMul(ir->builder, *v, emit_splat(ir, factor, (int)k->t.vector), "");
    }
    emit_table_release(k->w.e.x.table, mark);
  }
}
