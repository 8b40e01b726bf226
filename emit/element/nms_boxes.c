/* nms_boxes.c - see nms_boxes.h. */
#include "emit/element/nms_boxes.h"

LLVMValueRef emit_nms_operand(emit_element *e, const hlo_instr *i, uint32_t operand, const LLVMValueRef *positions) {
  hlo_value v = i->operands[operand];
  const shape *of = hlo_shape(v);
  emit_index *at = emit_index_new(&e->x, of->rank, of->dims);
  for (int k = 0; k < of->rank; k++) {
    emit_axis_at(at, k, emit_pos_at(positions[k], 1));
  }
  return emit_value(e, v, at).v;
}

/* --- candidates --- */

LLVMValueRef emit_nms_key(const emit_ir *ir, LLVMValueRef score, LLVMValueRef number) {
  LLVMBuilderRef b = ir->builder;
  score = LLVMBuildFAdd(b, score, emit_f(score, 0), ""); /* turns -0 into 0 */
  LLVMValueRef bits = emit_bits_of(ir, score);
  LLVMValueRef above = LLVMBuildOr(b, bits, emit_i(bits, INT32_MIN), "");
  LLVMValueRef order =
      emit_select(ir, emit_icmp(ir, LLVMIntSLT, bits, emit_i(bits, 0)), LLVMBuildNot(b, bits, ""), above);
  order = emit_select(ir, emit_fcmp(ir, LLVMRealORD, score, score), order, emit_i(order, 0));
  LLVMValueRef low = LLVMBuildNot(b, LLVMBuildTrunc(b, number, ir->i32, ""), "");
  LLVMValueRef high = LLVMBuildShl(b, LLVMBuildZExt(b, order, ir->i64, ""), emit_i64(ir, 32), "");
  return LLVMBuildOr(b, high, LLVMBuildZExt(b, low, ir->i64, ""), "");
}

LLVMValueRef emit_nms_box_of_key(const emit_ir *ir, LLVMValueRef key) {
  LLVMValueRef low = LLVMBuildNot(ir->builder, LLVMBuildTrunc(ir->builder, key, ir->i32, ""), "");
  return LLVMBuildZExt(ir->builder, low, ir->i64, "");
}

/* --- boxes --- */

emit_nms_box emit_nms_load_box(emit_element *e, const hlo_instr *i, LLVMValueRef batch, LLVMValueRef number) {
  LLVMBuilderRef b = e->w->builder;
  emit_nms_box r;
  for (int k = 0; k < EMIT_NMS_AREA; k++) {
    r.v[k] = emit_nms_operand(e, i, EMIT_NMS_CORNERS, (LLVMValueRef[]){batch, number, emit_i64(e->w, k)});
  }
  LLVMValueRef height = LLVMBuildFSub(b, r.v[2], r.v[0], ""), width = LLVMBuildFSub(b, r.v[3], r.v[1], "");
  r.v[EMIT_NMS_AREA] = LLVMBuildFMul(b, height, width, "");
  return r;
}

/* Returns the length along an axis of the boxes' intersection, which is negative if they are apart.  y may be a vector
 * of boxes. */
static LLVMValueRef common(const emit_ir *ir, const emit_nms_box *x, const emit_nms_box *y, int axis) {
  LLVMValueRef high =
      emit_select(ir, emit_fcmp(ir, LLVMRealOLT, y->v[2 + axis], x->v[2 + axis]), y->v[2 + axis], x->v[2 + axis]);
  LLVMValueRef low = emit_select(ir, emit_fcmp(ir, LLVMRealOGT, y->v[axis], x->v[axis]), y->v[axis], x->v[axis]);
  return LLVMBuildFSub(ir->builder, high, low, "");
}

LLVMValueRef emit_nms_suppresses(const emit_ir *ir, const emit_nms_box *x, const emit_nms_box *y,
                                 LLVMValueRef overlap) {
  LLVMBuilderRef b = ir->builder;
  LLVMValueRef height = common(ir, x, y, 0), width = common(ir, x, y, 1), both = LLVMBuildFMul(b, height, width, "");
  LLVMValueRef either = LLVMBuildFSub(b, LLVMBuildFAdd(b, y->v[EMIT_NMS_AREA], x->v[EMIT_NMS_AREA], ""), both, "");
  LLVMValueRef exceeds = emit_fcmp(ir, LLVMRealOGT, LLVMBuildFDiv(b, both, either, ""), overlap);
  LLVMValueRef meet = LLVMBuildAnd(b, emit_fcmp(ir, LLVMRealOGT, height, emit_f(height, 0)),
                                   emit_fcmp(ir, LLVMRealOGT, both, emit_f(both, 0)), "");
  return emit_any(ir, LLVMBuildAnd(b, meet, exceeds, ""));
}
