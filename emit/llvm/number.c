/* number.c - element types and their conversions as LLVM instructions; see number.h. */
#include "emit/llvm/number.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* --- types --- */

LLVMTypeRef emit_register_type(const emit_ir *w, dtype t) {
  switch (t) {
    case DTYPE_PRED: return w->i1;
    case DTYPE_F32:
    case DTYPE_C64: return w->f32;
    case DTYPE_F64:
    case DTYPE_C128: return w->f64;
    default: return LLVMIntTypeInContext(w->context, (unsigned)dtype_bytes(t) * 8);
  }
}

LLVMTypeRef emit_memory_type(const emit_ir *w, dtype t) { return t == DTYPE_PRED ? w->i8 : emit_register_type(w, t); }

LLVMValueRef emit_from_memory(const emit_ir *w, dtype t, LLVMValueRef v) {
  return t == DTYPE_PRED ? emit_icmp(w, LLVMIntNE, v, emit_i(v, 0)) : v;
}
LLVMValueRef emit_to_memory(const emit_ir *w, dtype t, LLVMValueRef v) {
  return t == DTYPE_PRED ? LLVMBuildZExt(w->builder, v, emit_type_like(v, w->i8), "") : v;
}

/* --- small floats, with the same results as base/tensor/dtype.c --- */

static double power_of_two(int e) {
  double r = 1;
  for (; e > 0; e--) {
    r *= 2;
  }
  for (; e < 0; e++) {
    r /= 2;
  }
  return r;
}

static LLVMValueRef shl(const emit_ir *w, LLVMValueRef x, int n) {
  return LLVMBuildShl(w->builder, x, emit_i(x, n), "");
}
static LLVMValueRef shr(const emit_ir *w, LLVMValueRef x, int n) {
  return LLVMBuildLShr(w->builder, x, emit_i(x, n), "");
}
static LLVMValueRef and (const emit_ir *w, LLVMValueRef x, int64_t mask) {
  return LLVMBuildAnd(w->builder, x, emit_i(x, mask), "");
}
static LLVMValueRef zext32(const emit_ir *w, LLVMValueRef x) {
  return LLVMBuildZExt(w->builder, x, emit_type_like(x, w->i32), "");
}

/* Converts a small float to f32.  A denormal is computed as an integer times the type's smallest value.  This involves
 * no denormals of f32, so it does not matter whether the processor flushes denormals of f32 to zero. */
static LLVMValueRef widen_small(const emit_ir *w, const dtype_format *f, LLVMValueRef raw) {
  LLVMBuilderRef b = w->builder;
  LLVMValueRef bits = zext32(w, raw), magnitude = and(w, bits, (1 << (f->width - 1)) - 1);
  LLVMValueRef sign = shl(w, and(w, bits, 1 << (f->width - 1)), 32 - f->width);
  LLVMTypeRef f32 = emit_type_like(raw, w->f32);
  LLVMValueRef normal =
      LLVMBuildAdd(b, shl(w, magnitude, 23 - f->fraction), emit_i(bits, (int64_t)(127 - f->bias) << 23), "");
  LLVMValueRef tiny = LLVMBuildFMul(b, LLVMBuildUIToFP(b, magnitude, f32, ""),
                                    emit_f_of(f32, power_of_two(1 - f->bias - f->fraction)), "");
  LLVMValueRef is_tiny = emit_icmp(w, LLVMIntULT, magnitude, emit_i(bits, 1 << f->fraction));
  LLVMValueRef r = emit_select(w, is_tiny, emit_bits_of(w, tiny), normal);
  if (f->negative_zero) {
    if (f->inf != f->max) {
      LLVMValueRef nan = LLVMBuildOr(b, shl(w, magnitude, 23 - f->fraction), emit_i(bits, 0x7fc00000), "");
      LLVMValueRef special = nan;
      if (f->inf != f->nan) {
        special =
            emit_select(w, emit_icmp(w, LLVMIntEQ, magnitude, emit_i(bits, f->inf)), emit_i(bits, 0x7f800000), nan);
      }
      r = emit_select(w, emit_icmp(w, LLVMIntUGT, magnitude, emit_i(bits, f->max)), special, r);
    }
    r = LLVMBuildOr(b, r, sign, "");
  } else {
    r = LLVMBuildOr(b, r, sign, "");
    r = emit_select(w, emit_icmp(w, LLVMIntEQ, bits, emit_i(bits, 0x80)), emit_i(bits, 0x7fc00000), r);
  }
  return emit_float_of(w, r);
}

/* Converts an f32 to a small float.  Normal results are rounded by integer arithmetic.  Denormal ones are rounded by
 * adding a number whose unit in the last place is the type's smallest value. */
static LLVMValueRef narrow_small(const emit_ir *w, const dtype_format *f, LLVMValueRef v, bool saturate) {
  LLVMBuilderRef b = w->builder;
  LLVMValueRef bits = emit_bits_of(w, v), magnitude = and(w, bits, 0x7fffffff);
  int drop = 23 - f->fraction;
  LLVMValueRef rebiased = LLVMBuildSub(b, magnitude, emit_i(bits, (int64_t)(127 - f->bias) << 23), "");
  LLVMValueRef odd = and(w, shr(w, rebiased, drop), 1);
  LLVMValueRef normal = LLVMBuildAdd(b, LLVMBuildAdd(b, rebiased, emit_i(bits, (1 << (drop - 1)) - 1), ""), odd, "");
  normal = shr(w, normal, drop);
  LLVMValueRef magic = emit_f(v, power_of_two(23 + 1 - f->bias - f->fraction));
  LLVMValueRef sum = LLVMBuildFAdd(b, emit_float_of(w, magnitude), magic, "");
  LLVMValueRef tiny = LLVMBuildSub(b, emit_bits_of(w, sum), emit_bits_of(w, magic), "");
  LLVMValueRef is_tiny = emit_icmp(w, LLVMIntULT, magnitude, emit_i(bits, (int64_t)(128 - f->bias) << 23));
  LLVMValueRef r = emit_select(w, is_tiny, tiny, normal);
  unsigned over = saturate && f->width <= 8 ? f->max : f->inf;
  LLVMValueRef large = emit_icmp(w, LLVMIntUGT, r, emit_i(bits, f->max));
  /* Adding to the bits of infinity may have overflowed. */
  LLVMValueRef huge = emit_icmp(w, LLVMIntUGE, magnitude, emit_i(bits, 0x7f800000));
  r = emit_select(w, LLVMBuildOr(b, large, huge, ""), emit_i(bits, over), r);
  LLVMValueRef nan = emit_icmp(w, LLVMIntUGT, magnitude, emit_i(bits, 0x7f800000));
  LLVMValueRef sign = and(w, shr(w, bits, 32 - f->width), 1 << (f->width - 1));
  if (f->negative_zero) {
    r = LLVMBuildXor(b, emit_select(w, nan, emit_i(bits, f->nan), r), sign, "");
  } else { /* a type without -0 has one zero and one NaN, which have no sign */
    r = emit_select(w, nan, emit_i(bits, f->nan), r);
    LLVMValueRef bare = emit_icmp(w, LLVMIntEQ, and(w, r, 0x7f), emit_i(bits, 0));
    r = LLVMBuildOr(b, r, emit_select(w, bare, emit_i(bits, 0), sign), "");
  }
  return LLVMBuildTrunc(b, r, emit_type_like(v, f->width == 16 ? w->i16 : w->i8), "");
}

static LLVMValueRef narrow_bf16(const emit_ir *w, LLVMValueRef v) {
  LLVMBuilderRef b = w->builder;
  LLVMValueRef bits = emit_bits_of(w, v);
  LLVMValueRef odd = and(w, shr(w, bits, 16), 1);
  LLVMValueRef r = shr(w, LLVMBuildAdd(b, LLVMBuildAdd(b, bits, emit_i(bits, 0x7fff), ""), odd, ""), 16);
  LLVMValueRef quiet = LLVMBuildOr(b, shr(w, bits, 16), emit_i(bits, 0x40), "");
  r = emit_select(w, emit_fcmp(w, LLVMRealUNO, v, v), quiet, r);
  return LLVMBuildTrunc(b, r, emit_type_like(v, w->i16), "");
}

/* Converts e8m0, which is 2^(bits - 127), to f32: the bits are the exponent of the f32, except for 2^-127, which is
 * denormal there. */
static LLVMValueRef widen_e8m0(const emit_ir *w, LLVMValueRef raw) {
  LLVMValueRef bits = zext32(w, raw), r = shl(w, bits, 23);
  r = emit_select(w, emit_icmp(w, LLVMIntEQ, bits, emit_i(bits, 0)), emit_i(bits, 0x400000), r);
  r = emit_select(w, emit_icmp(w, LLVMIntEQ, bits, emit_i(bits, 255)), emit_i(bits, 0x7fc00000), r);
  return emit_float_of(w, r);
}

/* Converts an f32 to e8m0 like e8m0_encode of base/tensor/dtype.c.  Both types have the same exponents, so only
 * denormal f32 are special: denormals with bit 22 set, which are at least 2^-127, are in the range of e8m0, and their
 * bits below bit 22 are the fraction. */
static LLVMValueRef narrow_e8m0(const emit_ir *w, LLVMValueRef v, bool saturate, int round) {
  LLVMBuilderRef b = w->builder;
  LLVMValueRef bits = and(w, emit_bits_of(w, v), 0x7fffffff), field = shr(w, bits, 23),
               fraction = and(w, bits, 0x7fffff);
  LLVMValueRef tiny = emit_icmp(w, LLVMIntEQ, field, emit_i(bits, 0));
  /* `low` is true for denormals that are less than 2^-127.  2^-127 itself has only bit 22 set. */
  LLVMValueRef low = emit_icmp(w, LLVMIntULT, bits, emit_i(bits, 0x400000));
  LLVMValueRef rest = emit_select(w, tiny, shl(w, and(w, bits, 0x3fffff), 1), fraction);
  LLVMValueRef up = emit_i_of(emit_type_like(v, w->i1), 0);
  if (round == DTYPE_ROUND_UP) {
    up = emit_icmp(w, LLVMIntNE, rest, emit_i(bits, 0));
  } else if (round == DTYPE_ROUND_NEAREST) {
    up = emit_icmp(w, LLVMIntUGE, rest, emit_i(bits, 0x400000));
  }
  LLVMValueRef r = LLVMBuildAdd(b, field, LLVMBuildZExt(b, up, LLVMTypeOf(bits), ""), "");
  LLVMValueRef under = emit_i(bits, saturate ? 0 : 255), over = emit_i(bits, saturate ? 254 : 255);
  LLVMValueRef zero = emit_icmp(w, LLVMIntEQ, bits, emit_i(bits, 0));
  /* The result below 2^-127: rounding up gives 2^-127, and rounding to nearest does so from 1.5 * 2^-128 on; else it
   * is out of range. */
  LLVMValueRef tiniest = under;
  if (round == DTYPE_ROUND_UP) {
    tiniest = emit_select(w, zero, under, emit_i(bits, 0));
  } else if (round == DTYPE_ROUND_NEAREST) {
    tiniest = emit_select(w, emit_icmp(w, LLVMIntUGE, bits, emit_i(bits, 0x300000)), emit_i(bits, 0), under);
  }
  r = emit_select(w, low, tiniest, r);
  r = emit_select(w, emit_icmp(w, LLVMIntUGT, r, emit_i(bits, 254)), over, r);
  r = emit_select(w, emit_icmp(w, LLVMIntUGT, bits, emit_i(bits, 0x7f800000)), emit_i(bits, 255), r);
  return LLVMBuildTrunc(b, r, emit_type_like(v, w->i8), "");
}

LLVMValueRef emit_widen(const emit_ir *w, dtype t, LLVMValueRef v) {
  if (!emit_is_small_float(t)) {
    return v;
  }
  if (t == DTYPE_BF16) {
    return emit_float_of(w, shl(w, zext32(w, v), 16));
  }
  if (t == DTYPE_F8E8M0FNU) {
    return widen_e8m0(w, v);
  }
  if (t == DTYPE_F16 && w->target->f16) {
    return LLVMBuildFPExt(w->builder, emit_float_of(w, v), emit_type_like(v, w->f32), "");
  }
  return widen_small(w, dtype_get_format(t), v);
}

static LLVMValueRef narrow_as(const emit_ir *w, dtype t, LLVMValueRef v, bool saturate, int round) {
  if (t == DTYPE_BF16) {
    return narrow_bf16(w, v);
  }
  if (t == DTYPE_F8E8M0FNU) {
    return narrow_e8m0(w, v, saturate, round);
  }
  if (t == DTYPE_F16 && w->target->f16) {
    return emit_bits_of(w, LLVMBuildFPTrunc(w->builder, v, emit_type_like(v, w->f16), ""));
  }
  return narrow_small(w, dtype_get_format(t), v, saturate);
}

LLVMValueRef emit_narrow(const emit_ir *w, dtype t, LLVMValueRef v) {
  return emit_is_small_float(t) ? narrow_as(w, t, v, false, DTYPE_ROUND_NEAREST) : v;
}

/* --- integers --- */

LLVMValueRef emit_wrap(const emit_ir *w, dtype t, LLVMValueRef v) {
  int bits = dtype_get_info(t)->bits;
  if (!dtype_is_int(t) || bits >= 8) {
    return v;
  }
  if (dtype_is_unsigned(t)) {
    return and(w, v, (1 << bits) - 1);
  }
  return LLVMBuildAShr(w->builder, shl(w, v, 8 - bits), emit_i(v, 8 - bits), "");
}

/* --- conversions --- */

/* Converts f64 to f32, rounding to odd: the last bit is set if the result is inexact.  Rounding the result once more to
 * a smaller type gives the same as rounding the f64 once. */
static LLVMValueRef f64_to_odd_f32(const emit_ir *w, LLVMValueRef v) {
  LLVMBuilderRef b = w->builder;
  LLVMValueRef r = LLVMBuildFPTrunc(b, v, emit_type_like(v, w->f32), ""), bits = emit_bits_of(w, r);
  LLVMValueRef back = LLVMBuildFPExt(b, r, LLVMTypeOf(v), "");
  LLVMValueRef a = emit_intrinsic1(w, "llvm.fabs", v), c = emit_intrinsic1(w, "llvm.fabs", back);
  LLVMValueRef inexact = emit_fcmp(w, LLVMRealONE, a, c);
  LLVMValueRef down = LLVMBuildSub(b, bits, emit_i(bits, 1), "");
  LLVMValueRef cut = emit_select(w, emit_fcmp(w, LLVMRealOGT, c, a), down, bits);
  return emit_float_of(w, emit_select(w, inexact, LLVMBuildOr(b, cut, emit_i(bits, 1), ""), bits));
}

/* Converts an integer to f64, rounding to odd, so that a second rounding to a smaller type is right. */
static LLVMValueRef int_to_odd_f64(const emit_ir *w, dtype from, LLVMValueRef v) {
  LLVMBuilderRef b = w->builder;
  if (emit_bits(v) == 64) {
    bool is_signed = dtype_is_signed(from);
    LLVMValueRef magnitude = is_signed ? emit_intrinsic2(w, "llvm.abs", v, LLVMConstInt(w->i1, 0, false)) : v;
    LLVMValueRef lost = emit_icmp(w, LLVMIntNE, and(w, magnitude, 0x7ff), emit_i(v, 0));
    LLVMValueRef sticky = shl(w, LLVMBuildZExt(b, lost, LLVMTypeOf(v), ""), 11);
    LLVMValueRef cut = LLVMBuildOr(b, and(w, magnitude, ~(int64_t)0x7ff), sticky, "");
    if (is_signed) {
      cut = emit_select(w, emit_icmp(w, LLVMIntSLT, v, emit_i(v, 0)), LLVMBuildNeg(b, cut, ""), cut);
    }
    v = emit_select(w, emit_icmp(w, LLVMIntUGE, magnitude, emit_i(v, (int64_t)1 << 53)), cut, v);
  }
  LLVMTypeRef f64 = emit_type_like(v, w->f64);
  return dtype_is_signed(from) ? LLVMBuildSIToFP(b, v, f64, "") : LLVMBuildUIToFP(b, v, f64, "");
}

/* Converts towards zero, clamped to the range of the type; NaN becomes 0.  LLVM's saturating conversions are not used,
 * since they handle most vectors lane by lane. */
static LLVMValueRef float_to_int(const emit_ir *w, dtype to, LLVMValueRef v) {
  LLVMBuilderRef b = w->builder;
  bool is_signed = dtype_is_signed(to);
  int bits = (int)dtype_get_info(to)->bits, digits = bits - is_signed, exact = emit_bits(v) == 64 ? 53 : 24;
  double limit = ldexp(1, digits), high = digits <= exact ? limit - 1 : limit - ldexp(1, digits - exact);
  LLVMValueRef x = emit_select(w, emit_fcmp(w, LLVMRealORD, v, v), v, emit_f(v, 0));
  x = emit_select(w, emit_fcmp(w, LLVMRealOLT, x, emit_f(v, high)), x, emit_f(v, high));
  x = emit_select(w, emit_fcmp(w, LLVMRealOGT, x, emit_f(v, is_signed ? -limit : 0)), x,
                  emit_f(v, is_signed ? -limit : 0));
  LLVMTypeRef via = emit_type_like(v, LLVMIntTypeInContext(w->context, bits < 32 ? 32 : (unsigned)bits));
  LLVMValueRef r = is_signed || bits < 32 ? LLVMBuildFPToSI(b, x, via, "") : LLVMBuildFPToUI(b, x, via, "");
  if (digits > exact) {
    uint64_t most = is_signed ? UINT64_MAX >> (65 - bits) : UINT64_MAX >> (64 - bits);
    r = emit_select(w, emit_fcmp(w, LLVMRealOGE, v, emit_f(v, limit)), emit_i(r, (int64_t)most), r);
  }
  LLVMTypeRef narrow = emit_type_like(v, LLVMIntTypeInContext(w->context, (unsigned)bits));
  r = bits < 32 ? LLVMBuildTrunc(b, r, narrow, "") : r;
  return LLVMBuildIntCast2(b, r, emit_type_like(v, emit_register_type(w, to)), is_signed, "");
}

static LLVMValueRef int_to_float(const emit_ir *w, dtype from, dtype to, LLVMValueRef v, bool saturate, int round) {
  LLVMBuilderRef b = w->builder;
  if (emit_is_small_float(to)) {
    LLVMValueRef wide = dtype_get_info(from)->bits > 16 ? f64_to_odd_f32(w, int_to_odd_f64(w, from, v))
                                                        : int_to_float(w, from, DTYPE_F32, v, false, 0);
    return narrow_as(w, to, wide, saturate, round);
  }
  LLVMTypeRef t = emit_type_like(v, emit_register_type(w, to));
  return dtype_is_signed(from) ? LLVMBuildSIToFP(b, v, t, "") : LLVMBuildUIToFP(b, v, t, "");
}

static LLVMValueRef float_to_float(const emit_ir *w, dtype from, dtype to, LLVMValueRef v, bool saturate, int round) {
  LLVMBuilderRef b = w->builder;
  if (from == to) {
    return v;
  }
  if (from != DTYPE_F64) {
    v = emit_widen(w, from, v);
    if (to == DTYPE_F64) {
      return LLVMBuildFPExt(b, v, emit_type_like(v, w->f64), "");
    }
  } else if (to == DTYPE_F32) {
    return LLVMBuildFPTrunc(b, v, emit_type_like(v, w->f32), "");
  } else {
    LLVMValueRef huge = emit_fcmp(w, LLVMRealOGE, emit_intrinsic1(w, "llvm.fabs", v), emit_f(v, 0x1p128));
    v = f64_to_odd_f32(w, v);
    if (to == DTYPE_F8E8M0FNU) { /* the largest f32 is in the range of e8m0, but larger numbers are not */
      v = emit_select(w, huge, emit_f(v, (double)INFINITY), v);
    }
  }
  return to == DTYPE_F32 ? v : narrow_as(w, to, v, saturate, round);
}

static LLVMValueRef convert_real(const emit_ir *w, dtype from, dtype to, LLVMValueRef v, bool saturate, int round) {
  bool from_float = dtype_is_float(from), to_float = dtype_is_float(to);
  if (to == DTYPE_PRED) {
    if (from == DTYPE_PRED) {
      return v;
    }
    LLVMValueRef x = emit_widen(w, from, v);
    return from_float ? emit_fcmp(w, LLVMRealUNE, x, emit_f(x, 0)) : emit_icmp(w, LLVMIntNE, x, emit_i(x, 0));
  }
  if (from_float) {
    return to_float ? float_to_float(w, from, to, v, saturate, round) : float_to_int(w, to, emit_widen(w, from, v));
  }
  if (to_float) {
    return int_to_float(w, from, to, v, saturate, round);
  }
  LLVMTypeRef t = emit_type_like(v, emit_register_type(w, to));
  return emit_wrap(w, to, LLVMBuildIntCast2(w->builder, v, t, dtype_is_signed(from), ""));
}

static dtype part_of(dtype t) { return t == DTYPE_C64 ? DTYPE_F32 : t == DTYPE_C128 ? DTYPE_F64 : t; }

emit_pair emit_convert(const emit_ir *w, dtype from, dtype to, emit_pair v, bool saturate, int round) {
  emit_pair r = {convert_real(w, part_of(from), part_of(to), v.v, saturate, round), NULL};
  if (dtype_is_complex(to)) {
    r.im = v.im ? convert_real(w, part_of(from), part_of(to), v.im, saturate, round) : emit_f(r.v, 0);
  }
  return r;
}

/* --- constants --- */

emit_pair emit_number_at(const emit_ir *w, dtype t, const void *element) {
  const char *bytes = element;
  LLVMTypeRef type = emit_register_type(w, t);
  if (t == DTYPE_PRED) {
    return (emit_pair){LLVMConstInt(type, *bytes != 0, false), NULL};
  }
  dtype part = part_of(t);
  if (part == DTYPE_F32 || part == DTYPE_F64) { /* made from bits, so that a NaN keeps its payload */
    uint64_t bits[2] = {0};
    size_t size = dtype_bytes(part);
    memcpy(&bits[0], bytes, size);
    memcpy(&bits[1], bytes + (part == t ? 0 : size), size);
    LLVMTypeRef as_int = LLVMIntTypeInContext(w->context, (unsigned)size * 8);
    emit_pair r = {LLVMConstBitCast(LLVMConstInt(as_int, bits[0], false), type), NULL};
    r.im = part == t ? NULL : LLVMConstBitCast(LLVMConstInt(as_int, bits[1], false), type);
    return r;
  }
  uint64_t bits = 0;
  memcpy(&bits, bytes, dtype_bytes(t));
  return (emit_pair){LLVMConstInt(type, bits, false), NULL};
}

LLVMValueRef emit_number_f(const emit_ir *w, dtype t, double value) {
  unsigned char element[16] = {0};
  dtype_store_f64(t, element, value, false, DTYPE_ROUND_NEAREST);
  return emit_number_at(w, t, element).v;
}

LLVMValueRef emit_number_i(const emit_ir *w, dtype t, int64_t value) {
  if (!dtype_is_int(t) && t != DTYPE_PRED) {
    return emit_number_f(w, t, (double)value);
  }
  unsigned char element[16] = {0};
  dtype_store_i64(t, element, value);
  return emit_number_at(w, t, element).v;
}
