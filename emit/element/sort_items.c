/* sort_items.c - see sort_items.h. */
#include "emit/element/sort_items.h"

void emit_sort_dims(const hlo_instr *sort, dim dims[3]) {
  dim_table *t = sort->parent->module->dims;
  const shape *s = &sort->shapes[0];
  int d = (int)hlo_int(sort, HLO_ATTR_DIMENSION);
  dims[0] = shape_dim_product(t, s, 0, d);
  dims[1] = s->dims[d];
  dims[2] = shape_dim_product(t, s, d + 1, s->rank);
}

int64_t emit_sort_item_bytes(const hlo_instr *sort) {
  dim n = sort->shapes[0].dims[hlo_int(sort, HLO_ATTR_DIMENSION)];
  bool narrow = dtype_bytes(hlo_type(sort->operands[0])) <= 4 && dim_is_const(n) && n < UINT32_MAX;
  return narrow ? 8 : 16;
}

/* --- keys --- */

/* Returns an unsigned integer that compares as the float with these bits does: NaN is above all numbers, and -0 equals
 * 0. */
static LLVMValueRef float_key(const emit_ir *ir, LLVMValueRef bits, int64_t infinity) {
  uint64_t sign = (uint64_t)1 << (emit_bits(bits) - 1);
  LLVMValueRef magnitude = LLVMBuildAnd(ir->builder, bits, emit_i(bits, (int64_t)(sign - 1)), "");
  LLVMValueRef below = LLVMBuildSub(ir->builder, emit_i(bits, (int64_t)sign), magnitude, "");
  LLVMValueRef above = LLVMBuildAdd(ir->builder, emit_i(bits, (int64_t)sign), magnitude, "");
  LLVMValueRef key = emit_select(ir, emit_icmp(ir, LLVMIntSLT, bits, emit_i(bits, 0)), below, above);
  LLVMValueRef nan = emit_icmp(ir, LLVMIntUGT, magnitude, emit_i(bits, infinity));
  return emit_select(ir, nan, emit_i(bits, -1), key);
}

/* Returns an unsigned integer that compares as v does.  It has as many bits as v, or 32 for floats of at most 8 bits.
 * It has no more, since each byte may be a pass of the radix sort. */
static LLVMValueRef key_of(const emit_ir *ir, dtype t, LLVMValueRef v) {
  switch (t) {
    case DTYPE_F64: return float_key(ir, emit_bits_of(ir, v), 0x7ff0000000000000);
    case DTYPE_F16: return float_key(ir, v, 0x7c00);
    case DTYPE_BF16: return float_key(ir, v, 0x7f80);
    case DTYPE_PRED: return LLVMBuildZExt(ir->builder, v, emit_type_like(v, ir->i8), "");
    default: break;
  }
  if (dtype_is_float(t)) {
    return float_key(ir, emit_bits_of(ir, emit_widen(ir, t, v)), 0x7f800000);
  }
  int64_t sign = (int64_t)((uint64_t)1 << (emit_bits(v) - 1));
  return dtype_is_signed(t) ? LLVMBuildXor(ir->builder, v, emit_i(v, sign), "") : v;
}

int64_t emit_sort_key_bits(dtype t) {
  bool wide = dtype_is_float(t) && dtype_bytes(t) == 1; /* widened to f32 */
  return wide ? 32 : 8 * (int64_t)dtype_bytes(t);
}

/* --- lines --- */

emit_sort_line emit_sort_line_of(emit_element *e, const hlo_instr *sort) {
  dim *dims = ARENA_NEW_N(e->w->arena, dim, 3);
  emit_sort_line s = {.e = e, .i = sort, .dims = dims};
  emit_sort_dims(sort, dims);
  unsigned bits = (unsigned)(8 * emit_sort_item_bytes(sort));
  s.word = LLVMIntTypeInContext(e->w->context, bits / 2);
  s.item = LLVMIntTypeInContext(e->w->context, bits);
  return s;
}

void emit_sort_set_line(emit_sort_line *s, LLVMValueRef line) {
  const emit_indexer *x = &s->e->x;
  dim *flat_dims = ARENA_NEW_N(x->w->arena, dim, 1), *dims = ARENA_NEW_N(x->w->arena, dim, 2);
  dims[0] = s->dims[0];
  dims[1] = s->dims[2];
  *flat_dims = emit_dims_product(x, dims, 0, 2);
  emit_index *flat = emit_index_new(x, 1, flat_dims);
  emit_axis_at(flat, 0, emit_pos_at(emit_opaque(x->w, line), 1));
  s->at = emit_index_reshape(x, flat, 2, dims);
  for (int k = 0; k < 2; k++) { /* divides before the loops, which then find the positions in x->table */
    (void)emit_index_dim(x, s->at, k);
  }
}

const emit_index *emit_sort_index(const emit_sort_line *s, emit_pos place, const shape *of) {
  const emit_indexer *x = &s->e->x;
  emit_index *at = emit_index_new(x, 3, s->dims);
  emit_axis_from(at, 0, s->at, 0);
  emit_axis_at(at, 1, place);
  emit_axis_from(at, 2, s->at, 1);
  return emit_index_reshape(x, at, of->rank, of->dims);
}

emit_pair emit_sort_value(const emit_sort_line *s, uint32_t operand, emit_pos place) {
  hlo_value v = s->i->operands[operand];
  return emit_value(s->e, v, emit_sort_index(s, place, hlo_shape(v)));
}

/* --- items --- */

LLVMValueRef emit_sort_key(const emit_sort_line *s, emit_pos place) {
  LLVMValueRef key = key_of(s->e->w, hlo_type(s->i->operands[0]), emit_sort_value(s, 0, place).v);
  return hlo_int(s->i, HLO_ATTR_DESCENDING) ? LLVMBuildNot(s->e->w->builder, key, "") : key;
}

LLVMValueRef emit_sort_item(const emit_sort_line *s, LLVMValueRef place) {
  LLVMBuilderRef b = s->e->w->builder;
  LLVMValueRef key = LLVMBuildZExt(b, emit_sort_key(s, emit_pos_at(place, 1)), s->item, "");
  key = LLVMBuildShl(b, key, emit_i(key, emit_bits(key) / 2), "");
  LLVMValueRef low = LLVMBuildIntCast2(b, place, s->word, false, "");
  return LLVMBuildOr(b, key, LLVMBuildZExt(b, low, s->item, ""), "");
}

LLVMValueRef emit_sort_key_word(const emit_sort_line *s, LLVMValueRef item) {
  LLVMBuilderRef b = s->e->w->builder;
  return LLVMBuildTrunc(b, LLVMBuildLShr(b, item, emit_i(item, emit_bits(item) / 2), ""), s->word, "");
}

LLVMValueRef emit_sort_place(const emit_sort_line *s, LLVMValueRef item) {
  LLVMValueRef low = LLVMBuildTrunc(s->e->w->builder, item, s->word, "");
  return LLVMBuildIntCast2(s->e->w->builder, low, s->e->w->i64, false, "");
}

LLVMValueRef emit_sort_address(const emit_sort_line *s, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef k) {
  return LLVMBuildInBoundsGEP2(s->e->w->builder, type, base, &k, 1, "");
}

LLVMValueRef emit_sort_load(const emit_sort_line *s, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef k) {
  LLVMValueRef v = LLVMBuildLoad2(s->e->w->builder, type, emit_sort_address(s, type, base, k), "");
  LLVMSetAlignment(v, 8);
  return v;
}

void emit_sort_store(const emit_sort_line *s, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef k, LLVMValueRef v) {
  LLVMSetAlignment(LLVMBuildStore(s->e->w->builder, v, emit_sort_address(s, type, base, k)), 8);
}
