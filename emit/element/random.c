/* random.c - rng-bit-generator by Philox.  Each element is a function of its position, so random bits need no memory
 * and are computed within the fusion that uses them. */
#include "base/random.h"
#include "emit/element/element.h"

/* Returns word number `index` of the generator's state, which is the same in all lanes, as a scalar. */
static LLVMValueRef state_word(emit_element *e, const hlo_instr *i, int index) {
  int lanes = e->x.lanes;
  e->x.lanes = 1;
  emit_index *at = emit_operand_index(e, i, 0);
  emit_axis_at(at, 0, emit_pos_const(&e->x, index));
  LLVMValueRef v = emit_value(e, i->operands[0], at).v;
  e->x.lanes = lanes;
  return v;
}

/* These return the lower and the upper 32 bits of each 64-bit lane, as 64-bit lanes.  All 32-bit words of Philox are
 * kept in such lanes, with zeros in the upper half, so that the processor multiplies them without shuffles. */
static LLVMValueRef low_half(const emit_ir *w, LLVMValueRef v) {
  return LLVMBuildAnd(w->builder, v, emit_i(v, 0xffffffff), "");
}

static LLVMValueRef high_half(const emit_ir *w, LLVMValueRef v) {
  return LLVMBuildLShr(w->builder, v, emit_i(v, 32), "");
}

static LLVMValueRef in_lanes(const emit_ir *w, LLVMValueRef scalar, int lanes) {
  return lanes > 1 ? emit_splat(w, scalar, lanes) : scalar;
}

/* Computes philox_block (base/random.c) in all lanes; x has the words of the counter, which are replaced by those of
 * the result. */
static void rounds(const emit_ir *w, LLVMValueRef key, int lanes, LLVMValueRef x[PHILOX_WORDS]) {
  LLVMBuilderRef b = w->builder;
  LLVMValueRef k[2] = {low_half(w, key), high_half(w, key)};
  for (int round = 0; round < PHILOX_ROUNDS; round++) {
    LLVMValueRef product[2];
    for (int j = 0; j < 2; j++) {
      product[j] = LLVMBuildMul(b, x[2 * j], emit_i(x[2 * j], philox_multipliers[j]), "");
    }
    for (int j = 0; j < 2; j++) {
      LLVMValueRef mixed = LLVMBuildXor(b, high_half(w, product[1 - j]), x[2 * j + 1], "");
      x[2 * j] = LLVMBuildXor(b, mixed, in_lanes(w, k[j], lanes), "");
      k[j] = low_half(w, LLVMBuildAdd(b, k[j], emit_i(k[j], philox_weyl[j]), ""));
    }
    x[1] = low_half(w, product[1]);
    x[3] = low_half(w, product[0]);
  }
}

/* Interleaves n vectors (or scalars) of m lanes, which become one vector of n * m lanes; n is 2 or 4. */
static LLVMValueRef interleave(const emit_ir *w, const LLVMValueRef *parts, int n, int m) {
  int mask[EMIT_MOST_LANES];
  if (m == 1) {
    LLVMValueRef r = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(parts[0]), (unsigned)n));
    for (int k = 0; k < n; k++) {
      r = emit_set_lane(w, r, parts[k], k);
    }
    return r;
  }
  LLVMValueRef x = parts[0], y = parts[1];
  if (n == PHILOX_WORDS) {
    x = emit_append(w, parts[0], parts[1]);
    y = emit_append(w, parts[2], parts[3]);
  }
  for (int k = 0; k < n * m; k++) {
    mask[k] = k % n * m + k / n;
  }
  return emit_shuffle(w, x, y, mask, n * m);
}

static LLVMValueRef has_bit(const emit_ir *w, LLVMValueRef number, int64_t bit) {
  return emit_icmp(w, LLVMIntNE, LLVMBuildAnd(w->builder, number, emit_i(number, bit), ""), emit_i(number, 0));
}

/* Returns, lane by lane, parts[number % n]; n is 2 or 4. */
static LLVMValueRef choose(const emit_ir *w, const LLVMValueRef *parts, int n, LLVMValueRef number) {
  LLVMValueRef odd = has_bit(w, number, 1), r = emit_select(w, odd, parts[1], parts[0]);
  if (n == 2) {
    return r;
  }
  return emit_select(w, has_bit(w, number, 2), emit_select(w, odd, parts[3], parts[2]), r);
}

/* Converts the words of blocks to elements: 4 of u32, or 2 of u64 with the first word as the low half. */
static void to_elements(const emit_ir *w, LLVMValueRef x[PHILOX_WORDS], int per_block) {
  for (int k = 0; k < per_block; k++) {
    if (per_block == PHILOX_WORDS) {
      x[k] = LLVMBuildTrunc(w->builder, x[k], emit_type_like(x[k], w->i32), "");
    } else {
      LLVMValueRef high = LLVMBuildShl(w->builder, x[2 * k + 1], emit_i(x[2 * k + 1], 32), "");
      x[k] = LLVMBuildOr(w->builder, high, x[2 * k], "");
    }
  }
}

/* Returns the numbers of the Philox blocks that n_blocks lanes compute.  `number` is the number of the first element if
 * the elements share blocks (`shared`), otherwise a vector with the number of each element. */
static LLVMValueRef block_numbers(const emit_ir *w, LLVMValueRef number, int per_block, int n_blocks, bool shared) {
  LLVMValueRef block = LLVMBuildLShr(w->builder, number, emit_i(number, per_block == 2 ? 1 : 2), "");
  if (shared && n_blocks > 1) {
    LLVMValueRef offsets[EMIT_MOST_LANES];
    for (int k = 0; k < n_blocks; k++) {
      offsets[k] = emit_i64(w, k);
    }
    LLVMValueRef steps = LLVMConstVector(offsets, (unsigned)n_blocks);
    block = LLVMBuildAdd(w->builder, emit_splat(w, block, n_blocks), steps, "");
  }
  return block;
}

/* If the elements of the lanes are contiguous and begin at the start of a block, several lanes share a block.
 * Otherwise each lane computes the block of its element. */
emit_pair emit_rng(emit_element *e, const hlo_instr *i, const emit_index *at) {
  const emit_ir *w = e->w;
  int per_block = i->shapes[0].type == DTYPE_U64 ? 2 : PHILOX_WORDS, lanes = e->x.lanes;
  emit_pos p = emit_index_linear(&e->x, at);
  bool shared = lanes % per_block == 0 && p.step == 1 && p.multiple % per_block == 0;
  int n_blocks = shared ? lanes / per_block : lanes;
  LLVMValueRef key = state_word(e, i, 0), low = state_word(e, i, 1), high = state_word(e, i, 2);
  LLVMValueRef number = lanes > 1 && !shared ? emit_pos_vector(&e->x, p) : p.base;
  number = LLVMBuildIntCast2(w->builder, number, emit_type_like(number, w->i64), false, "");
  LLVMValueRef block = block_numbers(w, number, per_block, n_blocks, shared);
  block = LLVMBuildAdd(w->builder, block, in_lanes(w, low, n_blocks), "");
  high = in_lanes(w, high, n_blocks);
  LLVMValueRef x[PHILOX_WORDS] = {low_half(w, block), high_half(w, block), low_half(w, high), high_half(w, high)};
  rounds(w, key, n_blocks, x);
  to_elements(w, x, per_block);
  return (emit_pair){shared ? interleave(w, x, per_block, n_blocks) : choose(w, x, per_block, number), NULL};
}
