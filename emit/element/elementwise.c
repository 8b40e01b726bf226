/* elementwise.c - emitters of operations on one element of each operand; see elementwise.h. */
#include "emit/element/elementwise.h"

#include <assert.h>
#include <math.h>

#include "emit/math/math.h"

typedef const emit_ir *W;
typedef LLVMValueRef V;

/* --- floats: f32 and f64 --- */

static V float_sign(W w, V x) {
  V one = emit_intrinsic2(w, "llvm.copysign", emit_f(x, 1), x);
  return emit_select(w, emit_fcmp(w, LLVMRealONE, x, emit_f(x, 0)), one, x); /* zeros and NaN stay as they are */
}

static V float_unary(W w, hlo_op op, V x) {
  switch (op) {
    case HLO_ABS: return emit_intrinsic1(w, "llvm.fabs", x);
    case HLO_NEG: return LLVMBuildFNeg(w->builder, x, "");
    case HLO_SIGN: return float_sign(w, x);
    case HLO_CEIL: return emit_ceil(w, x);
    case HLO_FLOOR: return emit_floor(w, x);
    case HLO_ROUND: return emit_round_even(w, x);
    case HLO_SQRT: return emit_intrinsic1(w, "llvm.sqrt", x);
    case HLO_RSQRT: return LLVMBuildFDiv(w->builder, emit_f(x, 1), emit_intrinsic1(w, "llvm.sqrt", x), "");
    default: return emit_math(w, op, x, NULL);
  }
}

/* Returns x / y.  If y is a suitable constant, x is multiplied by its inverse, which is faster; unless y is a power of
 * two, the product is then corrected (emit_divide). */
static V quotient(W w, V x, V y) {
  V one = LLVMIsConstant(y) && emit_lanes(y) ? LLVMGetAggregateElement(y, 0) : y;
  if (!one || !LLVMIsAConstantFP(one) || emit_bits(x) != 32 || !w->target->fma) {
    return LLVMBuildFDiv(w->builder, x, y, "");
  }
  LLVMBool inexact;
  double by = LLVMConstRealGetDouble(one, &inexact), size = fabs(by);
  if (!emit_is_f(y, by) || !(size >= EMIT_LEAST_DIVISOR && size <= EMIT_MOST_DIVISOR)) {
    return LLVMBuildFDiv(w->builder, x, y, "");
  }
  int exponent;
  V inverse = emit_f(y, (float)(1 / by));
  return frexp(size, &exponent) == 0.5 ? LLVMBuildFMul(w->builder, x, inverse, "") : emit_divide(w, x, y, inverse);
}

static V float_binary(W w, hlo_op op, V x, V y) {
  LLVMBuilderRef b = w->builder;
  switch (op) {
    case HLO_ADD: return LLVMBuildFAdd(b, x, y, "");
    case HLO_SUB: return LLVMBuildFSub(b, x, y, "");
    case HLO_MUL: return LLVMBuildFMul(b, x, y, "");
    case HLO_DIV: return quotient(w, x, y);
    case HLO_REM: return emit_remainder(w, x, y);
    case HLO_MAX: return emit_maximum(w, x, y);
    case HLO_MIN: return emit_minimum(w, x, y);
    default: return emit_math(w, op, x, y);
  }
}

/* --- integers and pred --- */

static V int_unary(W w, hlo_op op, dtype t, V x) {
  LLVMBuilderRef b = w->builder;
  switch (op) {
    case HLO_NOT: return LLVMBuildNot(b, x, "");
    case HLO_NEG: return LLVMBuildNeg(b, x, "");
    case HLO_ABS: return dtype_is_signed(t) ? emit_intrinsic2(w, "llvm.abs", x, LLVMConstInt(w->i1, 0, false)) : x;
    default: {
      assert(op == HLO_SIGN);
      V positive = LLVMBuildZExt(b, emit_icmp(w, LLVMIntNE, x, emit_i(x, 0)), LLVMTypeOf(x), "");
      V negative = emit_icmp(w, LLVMIntSLT, x, emit_i(x, 0));
      return dtype_is_signed(t) ? emit_select(w, negative, emit_i(x, -1), positive) : positive;
    }
  }
}

/* Divides integers in a float type that has more digits than the integers.  The rounded quotient, truncated, is exact:
 * a quotient that is not a whole number is at least 1/y away from the nearest whole number, which is more than the
 * rounding error. */
static V quotient_of_ints(W w, dtype t, V x, V y) {
  LLVMBuilderRef b = w->builder;
  bool is_signed = dtype_is_signed(t);
  LLVMTypeRef wide = emit_type_like(x, dtype_get_info(t)->bits > 16 ? w->f64 : w->f32);
  V p = is_signed ? LLVMBuildSIToFP(b, x, wide, "") : LLVMBuildUIToFP(b, x, wide, "");
  V q = is_signed ? LLVMBuildSIToFP(b, y, wide, "") : LLVMBuildUIToFP(b, y, wide, "");
  V r = LLVMBuildFDiv(b, p, q, "");
  return is_signed ? LLVMBuildFPToSI(b, r, LLVMTypeOf(x), "") : LLVMBuildFPToUI(b, r, LLVMTypeOf(x), "");
}

static V quotient_or_rest(W w, hlo_op op, dtype t, V x, V y) {
  LLVMBuilderRef b = w->builder;
  bool is_signed = dtype_is_signed(t), known = LLVMIsConstant(y);
  if (emit_lanes(x) && !known && dtype_get_info(t)->bits <= 32) {
    V q = quotient_of_ints(w, t, x, y);
    return op == HLO_DIV ? q : LLVMBuildSub(b, x, LLVMBuildMul(b, q, y, ""), "");
  }
  if (op == HLO_DIV) {
    return is_signed ? LLVMBuildSDiv(b, x, y, "") : LLVMBuildUDiv(b, x, y, "");
  }
  return is_signed ? LLVMBuildSRem(b, x, y, "") : LLVMBuildURem(b, x, y, "");
}

/* Returns the quotient or the remainder of integers.  For y = 0 they are -1 and x, and INT_MIN / -1 is INT_MIN.  Since
 * processors trap on these divisions, lanes with y = 0 or y = -1 divide by 1 and get their result by a select. */
static V int_divide(W w, hlo_op op, dtype t, V x, V y) {
  LLVMBuilderRef b = w->builder;
  V zero = emit_icmp(w, LLVMIntEQ, y, emit_i(y, 0)), bad = zero, minus = NULL;
  if (dtype_is_signed(t)) {
    minus = emit_icmp(w, LLVMIntEQ, y, emit_i(y, -1));
    bad = LLVMBuildOr(b, zero, minus, "");
  }
  V safe = emit_select(w, bad, emit_i(y, 1), y), r = quotient_or_rest(w, op, t, x, safe);
  if (op == HLO_DIV) {
    r = minus ? emit_select(w, minus, LLVMBuildNeg(b, x, ""), r) : r;
    return emit_select(w, zero, emit_i(x, -1), r);
  }
  return emit_select(w, zero, x, r); /* x rem 1 is 0, which is also x rem -1 */
}

/* Computes x^y by repeated squaring, in a loop that runs until no lane has bits of its exponent left. */
static V int_power(W w, dtype t, V x, V y) {
  LLVMBuilderRef b = w->builder;
  V result = emit_i(x, 1);
  LLVMBasicBlockRef before = emit_here(w), body = emit_block(w, "power"), done = emit_block(w, "powered");
  LLVMBuildBr(b, body);
  LLVMPositionBuilderAtEnd(b, body);
  V r = LLVMBuildPhi(b, LLVMTypeOf(x), ""), base = LLVMBuildPhi(b, LLVMTypeOf(x), ""),
    e = LLVMBuildPhi(b, LLVMTypeOf(x), "");
  V odd = emit_icmp(w, LLVMIntNE, LLVMBuildAnd(b, e, emit_i(e, 1), ""), emit_i(e, 0));
  V next_r = emit_select(w, odd, LLVMBuildMul(b, r, base, ""), r), next_base = LLVMBuildMul(b, base, base, "");
  V next_e = LLVMBuildLShr(b, e, emit_i(e, 1), "");
  LLVMBasicBlockRef from[2] = {before, body};
  LLVMAddIncoming(r, (V[]){result, next_r}, from, 2);
  LLVMAddIncoming(base, (V[]){x, next_base}, from, 2);
  LLVMAddIncoming(e, (V[]){y, next_e}, from, 2);
  LLVMBuildCondBr(b, emit_any(w, emit_icmp(w, LLVMIntNE, next_e, emit_i(e, 0))), body, done);
  LLVMPositionBuilderAtEnd(b, done);
  if (!dtype_is_signed(t)) {
    return next_r;
  }
  V one = emit_icmp(w, LLVMIntEQ, x, emit_i(x, 1)), minus = emit_icmp(w, LLVMIntEQ, x, emit_i(x, -1));
  V y_odd = emit_icmp(w, LLVMIntNE, LLVMBuildAnd(b, y, emit_i(y, 1), ""), emit_i(y, 0));
  V inverse = emit_select(w, minus, emit_select(w, y_odd, emit_i(x, -1), emit_i(x, 1)), emit_i(x, 0));
  inverse = emit_select(w, one, emit_i(x, 1), inverse);
  return emit_select(w, emit_icmp(w, LLVMIntSLT, y, emit_i(y, 0)), inverse, next_r);
}

static V int_shift(W w, hlo_op op, dtype t, V x, V y) {
  LLVMBuilderRef b = w->builder;
  int bits = dtype_get_info(t)->bits;
  V in_range = emit_icmp(w, LLVMIntULT, y, emit_i(y, bits)), by = emit_select(w, in_range, y, emit_i(y, 0));
  if (op == HLO_SHL) {
    return emit_select(w, in_range, LLVMBuildShl(b, x, by, ""), emit_i(x, 0));
  }
  if (dtype_is_signed(t)) {
    return LLVMBuildAShr(b, x, emit_select(w, in_range, y, emit_i(y, bits - 1)), "");
  }
  return emit_select(w, in_range, LLVMBuildLShr(b, x, by, ""), emit_i(x, 0));
}

static V int_binary(W w, hlo_op op, dtype t, V x, V y) {
  LLVMBuilderRef b = w->builder;
  bool is_signed = dtype_is_signed(t);
  switch (op) {
    case HLO_ADD: return LLVMBuildAdd(b, x, y, "");
    case HLO_SUB: return LLVMBuildSub(b, x, y, "");
    case HLO_MUL: return LLVMBuildMul(b, x, y, "");
    case HLO_DIV:
    case HLO_REM: return int_divide(w, op, t, x, y);
    case HLO_POW: return int_power(w, t, x, y);
    case HLO_AND: return LLVMBuildAnd(b, x, y, "");
    case HLO_OR: return LLVMBuildOr(b, x, y, "");
    case HLO_XOR: return LLVMBuildXor(b, x, y, "");
    case HLO_MAX:
      return t == DTYPE_PRED ? LLVMBuildOr(b, x, y, "")
                             : emit_intrinsic2(w, is_signed ? "llvm.smax" : "llvm.umax", x, y);
    case HLO_MIN:
      return t == DTYPE_PRED ? LLVMBuildAnd(b, x, y, "")
                             : emit_intrinsic2(w, is_signed ? "llvm.smin" : "llvm.umin", x, y);
    default: assert(op == HLO_SHL || op == HLO_SHR); return int_shift(w, op, t, x, y);
  }
}

/* --- complex numbers; products, quotients and absolute values of f32 pairs are computed in f64 and then rounded --- */

static V part_in_f64(W w, V x) {
  return emit_bits(x) == 64 ? x : LLVMBuildFPExt(w->builder, x, emit_type_like(x, w->f64), "");
}
static emit_pair complex_in_f64(W w, emit_pair x) { return (emit_pair){part_in_f64(w, x.v), part_in_f64(w, x.im)}; }
static V part_back(W w, V x, V like) {
  return emit_bits(like) == 64 ? x : LLVMBuildFPTrunc(w->builder, x, LLVMTypeOf(like), "");
}

static emit_pair complex_multiply(W w, emit_pair x, emit_pair y) {
  LLVMBuilderRef b = w->builder;
  V re = LLVMBuildFSub(b, LLVMBuildFMul(b, x.v, y.v, ""), LLVMBuildFMul(b, x.im, y.im, ""), "");
  V im = LLVMBuildFAdd(b, LLVMBuildFMul(b, x.v, y.im, ""), LLVMBuildFMul(b, x.im, y.v, ""), "");
  return (emit_pair){re, im};
}

static emit_pair complex_divide(W w, emit_pair x, emit_pair y) {
  LLVMBuilderRef b = w->builder;
  emit_pair conjugate = {y.v, LLVMBuildFNeg(b, y.im, "")}, r = complex_multiply(w, x, conjugate);
  V norm = LLVMBuildFAdd(b, LLVMBuildFMul(b, y.v, y.v, ""), LLVMBuildFMul(b, y.im, y.im, ""), "");
  return (emit_pair){LLVMBuildFDiv(b, r.v, norm, ""), LLVMBuildFDiv(b, r.im, norm, "")};
}

static emit_pair complex_binary(W w, hlo_op op, emit_pair x, emit_pair y) {
  LLVMBuilderRef b = w->builder;
  switch (op) {
    case HLO_ADD: return (emit_pair){LLVMBuildFAdd(b, x.v, y.v, ""), LLVMBuildFAdd(b, x.im, y.im, "")};
    case HLO_SUB: return (emit_pair){LLVMBuildFSub(b, x.v, y.v, ""), LLVMBuildFSub(b, x.im, y.im, "")};
    default: {
      emit_pair p = complex_in_f64(w, x), q = complex_in_f64(w, y);
      emit_pair r = op == HLO_MUL ? complex_multiply(w, p, q) : complex_divide(w, p, q);
      return (emit_pair){part_back(w, r.v, x.v), part_back(w, r.im, x.v)};
    }
  }
}

static emit_pair complex_unary(W w, hlo_op op, emit_pair x) {
  LLVMBuilderRef b = w->builder;
  if (op == HLO_NEG) {
    return (emit_pair){LLVMBuildFNeg(b, x.v, ""), LLVMBuildFNeg(b, x.im, "")};
  }
  emit_pair p = complex_in_f64(w, x); /* the only operation that is left is HLO_ABS */
  V norm = LLVMBuildFAdd(b, LLVMBuildFMul(b, p.v, p.v, ""), LLVMBuildFMul(b, p.im, p.im, ""), "");
  return (emit_pair){part_back(w, emit_intrinsic1(w, "llvm.sqrt", norm), x.v), NULL};
}

/* --- any type --- */

static V unary(W w, hlo_op op, dtype t, V x) {
  if (dtype_is_float(t)) {
    return emit_narrow(w, t, float_unary(w, op, emit_widen(w, t, x)));
  }
  return emit_wrap(w, t, int_unary(w, op, t, x));
}

static V binary(W w, hlo_op op, dtype t, V x, V y) {
  if (dtype_is_float(t)) {
    return emit_narrow(w, t, float_binary(w, op, emit_widen(w, t, x), emit_widen(w, t, y)));
  }
  return emit_wrap(w, t, int_binary(w, op, t, x, y));
}

static V compare(W w, hlo_comparison c, dtype t, emit_pair x, emit_pair y) {
  static const LLVMRealPredicate real[] = {[HLO_EQ] = LLVMRealOEQ, [HLO_NE] = LLVMRealUNE, [HLO_LT] = LLVMRealOLT,
                                           [HLO_LE] = LLVMRealOLE, [HLO_GT] = LLVMRealOGT, [HLO_GE] = LLVMRealOGE};
  static const LLVMIntPredicate with_sign[] = {[HLO_EQ] = LLVMIntEQ,  [HLO_NE] = LLVMIntNE,  [HLO_LT] = LLVMIntSLT,
                                               [HLO_LE] = LLVMIntSLE, [HLO_GT] = LLVMIntSGT, [HLO_GE] = LLVMIntSGE};
  static const LLVMIntPredicate without[] = {[HLO_EQ] = LLVMIntEQ,  [HLO_NE] = LLVMIntNE,  [HLO_LT] = LLVMIntULT,
                                             [HLO_LE] = LLVMIntULE, [HLO_GT] = LLVMIntUGT, [HLO_GE] = LLVMIntUGE};
  if (dtype_is_complex(t)) {
    V re = emit_fcmp(w, real[c], x.v, y.v), im = emit_fcmp(w, real[c], x.im, y.im);
    return c == HLO_EQ ? LLVMBuildAnd(w->builder, re, im, "") : LLVMBuildOr(w->builder, re, im, "");
  }
  if (dtype_is_float(t)) {
    return emit_fcmp(w, real[c], emit_widen(w, t, x.v), emit_widen(w, t, y.v));
  }
  return emit_icmp(w, dtype_is_signed(t) ? with_sign[c] : without[c], x.v, y.v);
}

static emit_pair bitcast(W w, dtype from, dtype to, emit_pair x) {
  if (from == to) {
    return x;
  }
  if (from == DTYPE_PRED || to == DTYPE_PRED) {
    return (emit_pair){emit_from_memory(w, to, emit_to_memory(w, from, x.v)), NULL};
  }
  V v = LLVMBuildBitCast(w->builder, x.v, emit_type_like(x.v, emit_register_type(w, to)), "");
  if (!dtype_is_int(to)) { /* the register of a signed 4-bit integer has copies of the sign in its upper bits, but other
                              4-bit types have zeros there */
    int bits = dtype_get_info(to)->bits;
    v = bits < 8 ? LLVMBuildAnd(w->builder, v, emit_i(v, (1 << bits) - 1), "") : v;
  }
  return (emit_pair){emit_wrap(w, to, v), NULL};
}

emit_pair emit_elementwise(W w, const hlo_instr *i, const emit_pair *args) {
  dtype t = hlo_type(i->operands[0]), to = (dtype)i->shapes[0].type;
  bool is_complex = dtype_is_complex(t);
  switch (i->op) {
    case HLO_CONVERT:
      return emit_convert(w, t, to, args[0], hlo_int(i, HLO_ATTR_SATURATE), (int)hlo_int(i, HLO_ATTR_ROUNDING));
    case HLO_BITCAST: return bitcast(w, t, to, args[0]);
    case HLO_COMPARE:
      return (emit_pair){compare(w, (hlo_comparison)hlo_int(i, HLO_ATTR_COMPARISON), t, args[0], args[1]), NULL};
    case HLO_SELECT: {
      emit_pair x = args[1], y = args[2];
      return (emit_pair){emit_select(w, args[0].v, x.v, y.v), x.im ? emit_select(w, args[0].v, x.im, y.im) : NULL};
    }
    case HLO_CLAMP: {
      V low = binary(w, HLO_MAX, to, args[1].v, args[0].v);
      return (emit_pair){binary(w, HLO_MIN, to, low, args[2].v), NULL};
    }
    case HLO_IS_FINITE: {
      V a = emit_intrinsic1(w, "llvm.fabs", emit_widen(w, t, args[0].v));
      return (emit_pair){emit_fcmp(w, LLVMRealOLT, a, emit_f(a, (double)INFINITY)), NULL};
    }
    case HLO_REAL: return (emit_pair){args[0].v, NULL};
    case HLO_IMAG: return (emit_pair){is_complex ? args[0].im : LLVMConstNull(LLVMTypeOf(args[0].v)), NULL};
    case HLO_COMPLEX: return (emit_pair){args[0].v, args[1].v};
    default: break;
  }
  if (i->n_operands == 1) {
    return is_complex ? complex_unary(w, i->op, args[0]) : (emit_pair){unary(w, i->op, t, args[0].v), NULL};
  }
  return is_complex ? complex_binary(w, i->op, args[0], args[1])
                    : (emit_pair){binary(w, i->op, t, args[0].v, args[1].v), NULL};
}

bool emit_elementwise_supported(hlo_op op, dtype t, dtype to) {
  if (t == DTYPE_STR || to == DTYPE_STR) {
    return op == HLO_COMPARE || op == HLO_SELECT || op == HLO_BITCAST;
  }
  if (!dtype_is_complex(t)) {
    return op != HLO_BITCAST || !dtype_is_complex(to);
  }
  switch (op) {
    case HLO_CONVERT:
    case HLO_COMPARE:
    case HLO_SELECT:
    case HLO_REAL:
    case HLO_IMAG:
    case HLO_ADD:
    case HLO_SUB:
    case HLO_MUL:
    case HLO_DIV:
    case HLO_NEG:
    case HLO_ABS: return true;
    default: return op == HLO_BITCAST && t == to;
  }
}

/* --- reductions --- */

/* Returns the lowest or highest value of type t, which is an infinity if the type has one. */
static V extreme(W w, dtype t, bool lowest) {
  if (dtype_is_float(t)) {
    bool infinite = t == DTYPE_F32 || t == DTYPE_F64 || t == DTYPE_F16 || t == DTYPE_BF16 || t == DTYPE_F8E5M2;
    double value = infinite ? (lowest ? -(double)INFINITY : (double)INFINITY)
                   : lowest ? dtype_lowest_f64(t)
                            : dtype_max_f64(t);
    return LLVMConstReal(t == DTYPE_F64 ? w->f64 : w->f32, value);
  }
  if (t == DTYPE_PRED) {
    return LLVMConstInt(w->i1, !lowest, false);
  }
  int bits = dtype_get_info(t)->bits;
  if (dtype_is_unsigned(t)) {
    return emit_number_i(w, t, lowest ? 0 : (int64_t)(UINT64_MAX >> (64 - bits)));
  }
  int64_t least = INT64_MIN >> (64 - bits);
  return emit_number_i(w, t, lowest ? least : -(least + 1));
}

emit_pair emit_reduce_identity(W w, hlo_reducer r, dtype t) {
  dtype c = emit_compute_type(t);
  LLVMTypeRef type = emit_register_type(w, c);
  V zero = LLVMConstNull(type), v = zero;
  switch (r) {
    case HLO_REDUCE_MUL:
      v = dtype_is_float(t) || dtype_is_complex(t) ? LLVMConstReal(type, 1) : LLVMConstInt(type, 1, false);
      break;
    case HLO_REDUCE_MAX: v = extreme(w, t, true); break;
    case HLO_REDUCE_MIN: v = extreme(w, t, false); break;
    case HLO_REDUCE_AND: v = t == DTYPE_PRED ? LLVMConstInt(type, 1, false) : emit_number_i(w, t, -1); break;
    default: break;
  }
  return (emit_pair){v, dtype_is_complex(t) ? zero : NULL};
}

emit_pair emit_reduce_combine(W w, hlo_reducer r, dtype t, emit_pair x, emit_pair y) {
  hlo_op op = hlo_reducer_op(r);
  if (dtype_is_complex(t)) {
    return complex_binary(w, op, x, y);
  }
  return (emit_pair){binary(w, op, emit_compute_type(t), x.v, y.v), NULL};
}

bool emit_reduce_supported(hlo_reducer r, dtype t) {
  if (t == DTYPE_STR) {
    return r == HLO_REDUCE_REPLACE;
  }
  return !dtype_is_complex(t) || r == HLO_REDUCE_ADD || r == HLO_REDUCE_MUL || r == HLO_REDUCE_REPLACE;
}

emit_pair emit_multiply_add(W w, dtype t, emit_pair x, emit_pair y, emit_pair z) {
  if (dtype_is_complex(t)) {
    return complex_binary(w, HLO_ADD, complex_binary(w, HLO_MUL, x, y), z);
  }
  if (dtype_is_float(t)) {
    return (emit_pair){emit_fma(w, x.v, y.v, z.v), NULL};
  }
  return (emit_pair){binary(w, HLO_ADD, t, binary(w, HLO_MUL, t, x.v, y.v), z.v), NULL};
}

V emit_less(W w, dtype t, V x, V y) {
  return compare(w, HLO_LT, emit_compute_type(t), (emit_pair){x, NULL}, (emit_pair){y, NULL});
}
