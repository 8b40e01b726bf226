/* attention_softmax.c - what kernels of attention share; see attention_internal.h. */
#include "emit/contraction/attention_internal.h"

#include "emit/math/math.h"

LLVMValueRef emit_f32_at(const emit_ir *w, LLVMValueRef base, LLVMValueRef offset) {
  return LLVMBuildInBoundsGEP2(w->builder, w->f32, base, &offset, 1, "");
}
LLVMValueRef emit_f32_load(const emit_ir *w, LLVMValueRef p, int lanes) {
  LLVMValueRef v = LLVMBuildLoad2(w->builder, emit_vector_type(w->f32, lanes), p, "");
  LLVMSetAlignment(v, sizeof(float));
  return v;
}
void emit_f32_store(const emit_ir *w, LLVMValueRef v, LLVMValueRef p) {
  LLVMSetAlignment(LLVMBuildStore(w->builder, v, p), sizeof(float));
}

LLVMValueRef emit_sum(const emit_ir *w, LLVMValueRef x, LLVMValueRef y) { return LLVMBuildFAdd(w->builder, x, y, ""); }

LLVMValueRef emit_score_exponential(const emit_ir *w, bool by_maximum, LLVMValueRef score, LLVMValueRef shift) {
  LLVMValueRef x = LLVMBuildFSub(w->builder, score, shift, "");
  return by_maximum ? emit_exp_at_most_1(w, x) : emit_math(w, HLO_EXP, x, NULL);
}

LLVMValueRef emit_join_lanes(const emit_ir *w, LLVMValueRef x, int lanes, emit_join *join) {
  for (int half = lanes / 2; half >= 1; half /= 2) {
    int low[256], high[256];
    for (int j = 0; j < half; j++) {
      low[j] = j;
      high[j] = half + j;
    }
    x = half > 1 ? join(w, emit_shuffle(w, x, x, low, half), emit_shuffle(w, x, x, high, half))
                 : join(w, emit_lane(w, x, 0), emit_lane(w, x, 1));
  }
  return x;
}

const emit_index *emit_score_place(emit_element *e, dim rows, dim keys, LLVMValueRef row, LLVMValueRef column,
                                   int64_t multiple) {
  dim *dims = ARENA_NEW_N(e->w->arena, dim, 2);
  dims[0] = rows;
  dims[1] = keys;
  emit_index *place = emit_index_new(&e->x, column ? 2 : 1, dims);
  emit_axis_at(place, 0, emit_pos_at(row, 1));
  if (column) {
    emit_axis_at(place, 1, emit_pos_lanes(column, e->x.lanes > 1, multiple));
  }
  return place;
}

static const emit_index *index_of(emit_element *e, hlo_value v, const emit_index *place) {
  return emit_index_reshape(&e->x, place, hlo_rank(v), hlo_shape(v)->dims);
}

LLVMValueRef emit_value_from(emit_element *e, hlo_value made, hlo_value from, const emit_index *place, LLVMValueRef x) {
  emit_element_set(e, from, index_of(e, from, place), (emit_pair){x, NULL});
  return emit_value(e, made, index_of(e, made, place)).v;
}
