/* ir.c - LLVM types, constants, instructions and loops; see ir.h. */
#include "emit/llvm/ir.h"

#include <assert.h>
#include <string.h>

void emit_ir_init(emit_ir *w, arena *a, const emit_target *t, LLVMContextRef c, LLVMModuleRef m) {
  *w = (emit_ir){.arena = a, .target = t, .context = c, .module = m};
  w->builder = LLVMCreateBuilderInContext(c);
  w->i1 = LLVMInt1TypeInContext(c);
  w->i8 = LLVMInt8TypeInContext(c);
  w->i16 = LLVMInt16TypeInContext(c);
  w->i32 = LLVMInt32TypeInContext(c);
  w->i64 = LLVMInt64TypeInContext(c);
  w->f16 = LLVMHalfTypeInContext(c);
  w->f32 = LLVMFloatTypeInContext(c);
  w->f64 = LLVMDoubleTypeInContext(c);
  w->ptr = LLVMPointerTypeInContext(c, 0);
}

void emit_ir_finish(emit_ir *w) { LLVMDisposeBuilder(w->builder); }

/* --- types and constants --- */

static bool is_vector(LLVMTypeRef t) { return LLVMGetTypeKind(t) == LLVMVectorTypeKind; }

unsigned emit_lanes(LLVMValueRef v) {
  LLVMTypeRef t = LLVMTypeOf(v);
  return is_vector(t) ? LLVMGetVectorSize(t) : 0;
}

LLVMTypeRef emit_scalar_type(LLVMTypeRef t) { return is_vector(t) ? LLVMGetElementType(t) : t; }

LLVMTypeRef emit_vector_type(LLVMTypeRef element, int lanes) {
  return lanes > 1 ? LLVMVectorType(element, (unsigned)lanes) : element;
}

LLVMTypeRef emit_type_like(LLVMValueRef like, LLVMTypeRef element) {
  return emit_vector_type(element, (int)emit_lanes(like));
}

unsigned emit_bits(LLVMValueRef v) {
  LLVMTypeRef t = emit_scalar_type(LLVMTypeOf(v));
  switch (LLVMGetTypeKind(t)) {
    case LLVMHalfTypeKind: return 16;
    case LLVMFloatTypeKind: return 32;
    case LLVMDoubleTypeKind: return 64;
    default: return LLVMGetIntTypeWidth(t);
  }
}

LLVMValueRef emit_fill(LLVMTypeRef type, LLVMValueRef scalar_constant) {
  if (!is_vector(type)) {
    return scalar_constant;
  }
  LLVMValueRef lanes[EMIT_MOST_LANES];
  unsigned n = LLVMGetVectorSize(type);
  assert(n <= 256);
  for (unsigned k = 0; k < n; k++) {
    lanes[k] = scalar_constant;
  }
  return LLVMConstVector(lanes, n);
}

LLVMValueRef emit_f_of(LLVMTypeRef type, double value) {
  return emit_fill(type, LLVMConstReal(emit_scalar_type(type), value));
}
LLVMValueRef emit_i_of(LLVMTypeRef type, int64_t value) {
  return emit_fill(type, LLVMConstInt(emit_scalar_type(type), (unsigned long long)value, true));
}
LLVMValueRef emit_f(LLVMValueRef like, double value) { return emit_f_of(LLVMTypeOf(like), value); }
LLVMValueRef emit_i(LLVMValueRef like, int64_t value) { return emit_i_of(LLVMTypeOf(like), value); }
LLVMValueRef emit_i64(const emit_ir *w, int64_t value) { return LLVMConstInt(w->i64, (unsigned long long)value, true); }

LLVMValueRef emit_splat(const emit_ir *w, LLVMValueRef scalar, int lanes) {
  if (lanes <= 1) {
    return scalar;
  }
  LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(scalar), (unsigned)lanes);
  if (LLVMIsAConstantInt(scalar) || LLVMIsAConstantFP(scalar)) {
    return emit_fill(type, scalar);
  }
  LLVMValueRef poison = LLVMGetPoison(type);
  LLVMValueRef one = LLVMBuildInsertElement(w->builder, poison, scalar, LLVMConstInt(w->i32, 0, false), "");
  return LLVMBuildShuffleVector(w->builder, one, poison, LLVMConstNull(LLVMVectorType(w->i32, (unsigned)lanes)), "");
}

LLVMValueRef emit_lane(const emit_ir *w, LLVMValueRef vector, int lane) {
  if (!emit_lanes(vector)) {
    return vector;
  }
  return LLVMBuildExtractElement(w->builder, vector, LLVMConstInt(w->i32, (unsigned)lane, false), "");
}

LLVMValueRef emit_set_lane(const emit_ir *w, LLVMValueRef vector, LLVMValueRef scalar, int lane) {
  return LLVMBuildInsertElement(w->builder, vector, scalar, LLVMConstInt(w->i32, (unsigned)lane, false), "");
}

LLVMValueRef emit_shuffle(const emit_ir *w, LLVMValueRef x, LLVMValueRef y, const int *lanes, int n) {
  LLVMValueRef mask[EMIT_MOST_LANES];
  assert(n <= 256);
  for (int k = 0; k < n; k++) {
    mask[k] = LLVMConstInt(w->i32, (unsigned)lanes[k], false);
  }
  return LLVMBuildShuffleVector(w->builder, x, y ? y : LLVMGetPoison(LLVMTypeOf(x)), LLVMConstVector(mask, (unsigned)n),
                                "");
}

LLVMValueRef emit_append(const emit_ir *w, LLVMValueRef low, LLVMValueRef high) {
  int all[EMIT_MOST_LANES], n = 2 * (int)emit_lanes(low);
  assert(n <= 256);
  for (int k = 0; k < n; k++) {
    all[k] = k;
  }
  return emit_shuffle(w, low, high, all, n);
}

void emit_transpose_square(const emit_ir *w, int side, LLVMValueRef *v) {
  int low[EMIT_SQUARE_MOST], high[EMIT_SQUARE_MOST];
  for (int half = 1; half < side; half *= 2) {
    for (int k = 0; k < side; k++) {
      low[k] = k & half ? side + k - half : k;
      high[k] = k & half ? side + k : k + half;
    }
    for (int k = 0; k < side; k++) {
      if (!(k & half)) {
        LLVMValueRef a = v[k], b = v[k + half];
        v[k] = emit_shuffle(w, a, b, low, side);
        v[k + half] = emit_shuffle(w, a, b, high, side);
      }
    }
  }
}

bool emit_is_f(LLVMValueRef v, double value) {
  return LLVMIsConstant(v) && emit_f(v, value) == v; /* constants are unique in their context */
}

/* --- operations --- */

LLVMValueRef emit_intrinsic(const emit_ir *w, const char *name, int n, const LLVMValueRef *args) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  assert(id);
  LLVMTypeRef type = LLVMTypeOf(args[0]);
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(w->module, id, &type, 1);
  return LLVMBuildCall2(w->builder, LLVMGlobalGetValueType(f), f, (LLVMValueRef *)args, (unsigned)n, "");
}
LLVMValueRef emit_intrinsic1(const emit_ir *w, const char *name, LLVMValueRef x) {
  return emit_intrinsic(w, name, 1, &x);
}
LLVMValueRef emit_intrinsic2(const emit_ir *w, const char *name, LLVMValueRef x, LLVMValueRef y) {
  return emit_intrinsic(w, name, 2, (LLVMValueRef[]){x, y});
}

bool emit_has_fma(const emit_ir *w, LLVMValueRef x) { return w->target->fma && (w->target->f64 || emit_bits(x) < 64); }
bool emit_has_rounding(const emit_ir *w, LLVMValueRef x) {
  return w->target->rounding && (w->target->f64 || emit_bits(x) < 64);
}

LLVMValueRef emit_fma(const emit_ir *w, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z) {
  if (emit_has_fma(w, x)) {
    return emit_intrinsic(w, "llvm.fma", 3, (LLVMValueRef[]){x, y, z});
  }
  return LLVMBuildFAdd(w->builder, LLVMBuildFMul(w->builder, x, y, ""), z, "");
}

/* Returns x if the comparison `first` of x and y is true, otherwise y; NaN if one of them is NaN.  If they are equal,
 * returns the float whose bits are `equal`, since they may be zeros with different signs. */
static LLVMValueRef choose(const emit_ir *w, LLVMValueRef x, LLVMValueRef y, LLVMRealPredicate first,
                           LLVMValueRef equal) {
  LLVMValueRef r = emit_select(w, emit_fcmp(w, first, x, y), x, y);
  r = emit_select(w, emit_fcmp(w, LLVMRealOEQ, x, y), emit_float_of(w, equal), r);
  return emit_select(w, emit_fcmp(w, LLVMRealUNO, x, y), LLVMBuildFAdd(w->builder, x, y, ""), r);
}

/* Returns max(x, 0) by a comparison, which keeps NaN and -0; the addition makes a 0 of -0. */
static LLVMValueRef positive_part(const emit_ir *w, LLVMValueRef x) {
  LLVMValueRef zero = emit_f(x, 0);
  return LLVMBuildFAdd(w->builder, emit_select(w, emit_fcmp(w, LLVMRealOLT, x, zero), zero, x), zero, "");
}

LLVMValueRef emit_maximum(const emit_ir *w, LLVMValueRef x, LLVMValueRef y) {
  if (w->target->compares_maximum && (emit_is_f(x, 0) || emit_is_f(y, 0))) {
    return positive_part(w, emit_is_f(y, 0) ? x : y);
  }
  return (int)emit_bits(x) <= w->target->maximum_bits
             ? emit_intrinsic2(w, "llvm.maximum", x, y)
             : choose(w, x, y, LLVMRealOGT, LLVMBuildAnd(w->builder, emit_bits_of(w, x), emit_bits_of(w, y), ""));
}

LLVMValueRef emit_larger(const emit_ir *w, LLVMValueRef x, LLVMValueRef y) {
  return emit_select(w, emit_fcmp(w, LLVMRealOGT, x, y), x, y);
}

LLVMValueRef emit_minimum(const emit_ir *w, LLVMValueRef x, LLVMValueRef y) {
  return (int)emit_bits(x) <= w->target->maximum_bits
             ? emit_intrinsic2(w, "llvm.minimum", x, y)
             : choose(w, x, y, LLVMRealOLT, LLVMBuildOr(w->builder, emit_bits_of(w, x), emit_bits_of(w, y), ""));
}

LLVMValueRef emit_lanes_of(const emit_ir *w, LLVMValueRef x, int from, int n) {
  int mask[EMIT_MOST_LANES], have = (int)emit_lanes(x);
  for (int k = 0; k < n; k++) {
    mask[k] = from + k < have ? from + k : from;
  }
  return emit_shuffle(w, x, NULL, mask, n);
}

/* Writes AVX-512's scalef for vectors of 128, 256 or 512 bits. */
static LLVMValueRef scale_vector(const emit_ir *w, LLVMValueRef x, LLVMValueRef n) {
  static const char *const names[2][3] = {{"llvm.x86.avx512.mask.scalef.ps.128", "llvm.x86.avx512.mask.scalef.ps.256",
                                           "llvm.x86.avx512.mask.scalef.ps.512"},
                                          {"llvm.x86.avx512.mask.scalef.pd.128", "llvm.x86.avx512.mask.scalef.pd.256",
                                           "llvm.x86.avx512.mask.scalef.pd.512"}};
  enum { CURRENT_ROUNDING = 4 };
  int lanes = (int)emit_lanes(x), bits = lanes * (int)emit_bits(x);
  const char *name = names[emit_bits(x) == 64][bits == 128 ? 0 : bits == 256 ? 1 : 2];
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  assert(id);
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(w->module, id, NULL, 0);
  LLVMValueRef all = LLVMConstAllOnes(lanes == 16 ? w->i16 : w->i8);
  LLVMValueRef args[] = {x, n, LLVMConstNull(LLVMTypeOf(x)), all, LLVMConstInt(w->i32, CURRENT_ROUNDING, false)};
  return LLVMBuildCall2(w->builder, LLVMGlobalGetValueType(f), f, args, bits == 512 ? 5 : 4, "");
}

LLVMValueRef emit_scale(const emit_ir *w, LLVMValueRef x, LLVMValueRef n) {
  int lanes = (int)emit_lanes(x), least = 128 / (int)emit_bits(x), most = 4 * least;
  assert(w->target->scalef && emit_bits(x) >= 32);
  if (lanes == 0) {
    return emit_lane(w, emit_scale(w, emit_splat(w, x, least), emit_splat(w, n, least)), 0);
  }
  if (lanes == least || lanes == 2 * least || lanes == most) {
    return scale_vector(w, x, n);
  }
  int part = lanes > most ? most : least;
  LLVMValueRef r = LLVMGetPoison(LLVMTypeOf(x));
  for (int from = 0; from < lanes; from += part) {
    LLVMValueRef y = scale_vector(w, emit_lanes_of(w, x, from, part), emit_lanes_of(w, n, from, part));
    for (int k = 0; k < part && from + k < lanes; k++) {
      r = emit_set_lane(w, r, emit_lane(w, y, k), from + k);
    }
  }
  return r;
}

/* Returns a quotient q and sets *rest to x - q * by. */
static LLVMValueRef quotient(const emit_ir *w, LLVMValueRef x, LLVMValueRef by, LLVMValueRef inverse,
                             LLVMValueRef *rest) {
  LLVMValueRef q = LLVMBuildFMul(w->builder, x, inverse, "");
  *rest = emit_fma(w, LLVMBuildFNeg(w->builder, q, ""), by, x);
  return q;
}

/* The quotient is corrected only if |rest| < |x|.  Otherwise x is 0, or q is infinite or NaN, and q is the result
 * already. */
LLVMValueRef emit_divide(const emit_ir *w, LLVMValueRef x, LLVMValueRef by, LLVMValueRef inverse) {
  LLVMValueRef rest, q = quotient(w, x, by, inverse, &rest);
  LLVMValueRef smaller =
      emit_fcmp(w, LLVMRealOLT, emit_intrinsic1(w, "llvm.fabs", rest), emit_intrinsic1(w, "llvm.fabs", x));
  return emit_select(w, smaller, emit_fma(w, rest, inverse, q), q);
}

LLVMValueRef emit_divide_small(const emit_ir *w, LLVMValueRef x, LLVMValueRef by, LLVMValueRef inverse) {
  LLVMValueRef rest, q = quotient(w, x, by, inverse, &rest);
  return emit_fma(w, rest, inverse, q);
}

LLVMValueRef emit_opaque(const emit_ir *w, LLVMValueRef x) {
  return LLVMIsConstant(x) ? x : LLVMBuildFreeze(w->builder, x, "");
}

void emit_forget_vectors(const emit_ir *w) {
  const char *triple = w->target->triple, *name = strncmp(triple, "x86_64", 6) == 0    ? "xmm"
                                                  : strncmp(triple, "aarch64", 7) == 0 ? "v"
                                                                                       : NULL;
  const char *list = "";
  for (int k = 0; name && k < w->target->registers; k++) {
    list = arena_printf(w->arena, "%s%s~{%s%d}", list, k ? "," : "", name, k);
  }
  LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(w->context), NULL, 0, false);
  if (*list) {
    LLVMValueRef f = LLVMGetInlineAsm(type, "", 0, list, strlen(list), true, false, LLVMInlineAsmDialectATT, false);
    LLVMBuildCall2(w->builder, type, f, NULL, 0, "");
  }
}

LLVMValueRef emit_select(const emit_ir *w, LLVMValueRef c, LLVMValueRef x, LLVMValueRef y) {
  return x == y ? x : LLVMBuildSelect(w->builder, c, x, y, "");
}
LLVMValueRef emit_fcmp(const emit_ir *w, LLVMRealPredicate p, LLVMValueRef x, LLVMValueRef y) {
  return LLVMBuildFCmp(w->builder, p, x, y, "");
}
LLVMValueRef emit_icmp(const emit_ir *w, LLVMIntPredicate p, LLVMValueRef x, LLVMValueRef y) {
  return LLVMBuildICmp(w->builder, p, x, y, "");
}

LLVMValueRef emit_bits_of(const emit_ir *w, LLVMValueRef x) {
  LLVMTypeRef t = LLVMIntTypeInContext(w->context, emit_bits(x));
  return LLVMBuildBitCast(w->builder, x, emit_type_like(x, t), "");
}
LLVMValueRef emit_float_of(const emit_ir *w, LLVMValueRef bits) {
  unsigned n = emit_bits(bits);
  LLVMTypeRef t = n == 64 ? w->f64 : n == 32 ? w->f32 : w->f16;
  return LLVMBuildBitCast(w->builder, bits, emit_type_like(bits, t), "");
}

LLVMValueRef emit_any(const emit_ir *w, LLVMValueRef mask) {
  unsigned n = emit_lanes(mask);
  if (!n) {
    return mask;
  }
  LLVMTypeRef t = LLVMIntTypeInContext(w->context, n);
  LLVMValueRef bits = LLVMBuildBitCast(w->builder, mask, t, "");
  return emit_icmp(w, LLVMIntNE, bits, LLVMConstNull(t));
}

/* Adding and subtracting 2^23 (2^52 for f64) rounds to an integer; larger numbers are integers already. */
LLVMValueRef emit_round_even(const emit_ir *w, LLVMValueRef x) {
  if (emit_has_rounding(w, x)) {
    return emit_intrinsic1(w, "llvm.roundeven", x);
  }
  LLVMBuilderRef b = w->builder;
  LLVMValueRef big = emit_f(x, emit_bits(x) == 64 ? 0x1p52 : 0x1p23), a = emit_intrinsic1(w, "llvm.fabs", x);
  LLVMValueRef r = LLVMBuildFSub(b, LLVMBuildFAdd(b, a, big, ""), big, "");
  r = emit_intrinsic2(w, "llvm.copysign", r, x);
  return emit_select(w, emit_fcmp(w, LLVMRealOLT, a, big), r, x);
}

LLVMValueRef emit_floor(const emit_ir *w, LLVMValueRef x) {
  if (emit_has_rounding(w, x)) {
    return emit_intrinsic1(w, "llvm.floor", x);
  }
  LLVMValueRef r = emit_round_even(w, x);
  LLVMValueRef less = LLVMBuildFSub(w->builder, r, emit_f(x, 1), "");
  r = emit_select(w, emit_fcmp(w, LLVMRealOGT, r, x), less, r);
  return emit_intrinsic2(w, "llvm.copysign", r, x);
}

LLVMValueRef emit_ceil(const emit_ir *w, LLVMValueRef x) {
  if (emit_has_rounding(w, x)) {
    return emit_intrinsic1(w, "llvm.ceil", x);
  }
  return LLVMBuildFNeg(w->builder, emit_floor(w, LLVMBuildFNeg(w->builder, x, "")), "");
}

LLVMValueRef emit_call_lanes(const emit_ir *w, const char *name, int n, const LLVMValueRef *args) {
  LLVMTypeRef t = emit_scalar_type(LLVMTypeOf(args[0])), params[3] = {t, t, t};
  LLVMTypeRef type = LLVMFunctionType(t, params, (unsigned)n, false);
  LLVMValueRef f = LLVMGetNamedFunction(w->module, name);
  if (!f) {
    f = LLVMAddFunction(w->module, name, type);
    static const char *const traits[] = {"nounwind", "willreturn", "nocallback", "nosync"};
    for (unsigned k = 0; k < sizeof traits / sizeof *traits; k++) {
      unsigned kind = LLVMGetEnumAttributeKindForName(traits[k], strlen(traits[k]));
      LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                              LLVMCreateEnumAttribute(w->context, kind, 0));
    }
  }
  int lanes = (int)emit_lanes(args[0]);
  LLVMValueRef r = lanes ? LLVMGetPoison(LLVMTypeOf(args[0])) : NULL;
  for (int k = 0; k < (lanes ? lanes : 1); k++) {
    LLVMValueRef one[3];
    for (int j = 0; j < n; j++) {
      one[j] = emit_lane(w, args[j], k);
    }
    LLVMValueRef v = LLVMBuildCall2(w->builder, type, f, one, (unsigned)n, "");
    r = lanes ? emit_set_lane(w, r, v, k) : v;
  }
  return r;
}

LLVMValueRef emit_call_hard_lanes(const emit_ir *w, LLVMValueRef hard, LLVMValueRef easy, const char *name, int n,
                                  const LLVMValueRef *args) {
  LLVMBuilderRef b = w->builder;
  LLVMBasicBlockRef call = emit_block(w, name), join = emit_block(w, "join"), from[2] = {emit_here(w)};
  LLVMBuildCondBr(b, emit_any(w, hard), call, join);
  LLVMPositionBuilderAtEnd(b, call);
  LLVMValueRef all = emit_select(w, hard, emit_call_lanes(w, name, n, args), easy);
  from[1] = emit_here(w);
  LLVMBuildBr(b, join);
  LLVMPositionBuilderAtEnd(b, join);
  LLVMValueRef either = LLVMBuildPhi(b, LLVMTypeOf(easy), "");
  LLVMAddIncoming(either, (LLVMValueRef[]){easy, all}, from, 2);
  return either;
}

const char *emit_own_function(const emit_ir *w, const char *name, int n, LLVMValueRef x, emit_function_fn *body) {
  if (LLVMGetNamedFunction(w->module, name)) {
    return name;
  }
  LLVMTypeRef t = emit_scalar_type(LLVMTypeOf(x)), params[3] = {t, t, t};
  LLVMBasicBlockRef caller = emit_here(w);
  emit_ir own = *w;
  own.watch = NULL;
  own.function = LLVMAddFunction(w->module, name, LLVMFunctionType(t, params, (unsigned)n, false));
  LLVMSetLinkage(own.function, LLVMInternalLinkage);
  LLVMPositionBuilderAtEnd(w->builder, emit_block(&own, "entry"));
  LLVMValueRef args[3];
  LLVMGetParams(own.function, args);
  LLVMBuildRet(w->builder, body(&own, args));
  LLVMPositionBuilderAtEnd(w->builder, caller);
  return name;
}

/* --- control flow --- */

LLVMBasicBlockRef emit_block(const emit_ir *w, const char *name) {
  return LLVMAppendBasicBlockInContext(w->context, w->function, name);
}
LLVMBasicBlockRef emit_here(const emit_ir *w) { return LLVMGetInsertBlock(w->builder); }

LLVMValueRef emit_phi2(const emit_ir *w, LLVMValueRef x, LLVMBasicBlockRef from_x, LLVMValueRef y,
                       LLVMBasicBlockRef from_y) {
  LLVMValueRef phi = LLVMBuildPhi(w->builder, LLVMTypeOf(x), "");
  LLVMAddIncoming(phi, &x, &from_x, 1);
  LLVMAddIncoming(phi, &y, &from_y, 1);
  return phi;
}

static LLVMValueRef phi_of(const emit_ir *w, LLVMTypeRef t, LLVMValueRef first, LLVMBasicBlockRef from) {
  LLVMValueRef phi = LLVMBuildPhi(w->builder, t, "");
  LLVMAddIncoming(phi, &first, &from, 1);
  return phi;
}

/* The condition is at the bottom of the loop, so that LLVM can hoist invariant code out of it. */
void emit_loop_begin(const emit_ir *w, emit_loop *l, LLVMValueRef from, LLVMValueRef to, int64_t step, bool runs, int n,
                     const LLVMValueRef *init) {
  assert(n <= EMIT_MAX_CARRIED);
  l->to = to;
  l->step = step;
  l->n = n;
  l->body = emit_block(w, "loop");
  l->exit = emit_block(w, "done");
  LLVMBasicBlockRef before = emit_here(w);
  l->guard = runs ? NULL : before;
  if (runs) {
    LLVMBuildBr(w->builder, l->body);
  } else {
    LLVMBuildCondBr(w->builder, emit_icmp(w, LLVMIntSLT, from, to), l->body, l->exit);
  }
  LLVMPositionBuilderAtEnd(w->builder, l->body);
  l->iv = phi_of(w, w->i64, from, before);
  for (int k = 0; k < n; k++) {
    l->guard_values[k] = init[k];
    l->carried[k] = phi_of(w, LLVMTypeOf(init[k]), init[k], before);
  }
}

void emit_loop_end(const emit_ir *w, emit_loop *l, const LLVMValueRef *next) {
  LLVMBasicBlockRef latch = emit_here(w);
  LLVMValueRef iv = LLVMBuildNSWAdd(w->builder, l->iv, emit_i64(w, l->step), "");
  LLVMAddIncoming(l->iv, &iv, &latch, 1);
  for (int k = 0; k < l->n; k++) {
    LLVMAddIncoming(l->carried[k], (LLVMValueRef *)&next[k], &latch, 1);
  }
  LLVMBuildCondBr(w->builder, emit_icmp(w, LLVMIntSLT, iv, l->to), l->body, l->exit);
  LLVMPositionBuilderAtEnd(w->builder, l->exit);
  for (int k = 0; k < l->n; k++) {
    LLVMValueRef phi = phi_of(w, LLVMTypeOf(next[k]), next[k], latch);
    if (l->guard) {
      LLVMAddIncoming(phi, &l->guard_values[k], &l->guard, 1);
    }
    l->carried[k] = phi;
  }
}

void emit_while_begin(const emit_ir *w, emit_while *l, int n, const LLVMValueRef *init) {
  assert(n <= EMIT_MAX_CARRIED);
  LLVMBasicBlockRef before = emit_here(w);
  l->n = n;
  l->head = emit_block(w, "head");
  LLVMBuildBr(w->builder, l->head);
  LLVMPositionBuilderAtEnd(w->builder, l->head);
  for (int k = 0; k < n; k++) {
    l->carried[k] = phi_of(w, LLVMTypeOf(init[k]), init[k], before);
  }
}

void emit_while_test(const emit_ir *w, emit_while *l, LLVMValueRef condition) {
  LLVMBasicBlockRef body = emit_block(w, "body");
  l->exit = emit_block(w, "done");
  LLVMBuildCondBr(w->builder, condition, body, l->exit);
  LLVMPositionBuilderAtEnd(w->builder, body);
}

void emit_while_end(const emit_ir *w, emit_while *l, const LLVMValueRef *next) {
  LLVMBasicBlockRef latch = emit_here(w);
  for (int k = 0; k < l->n; k++) {
    LLVMAddIncoming(l->carried[k], (LLVMValueRef *)&next[k], &latch, 1);
  }
  LLVMBuildBr(w->builder, l->head);
  LLVMPositionBuilderAtEnd(w->builder, l->exit);
}

LLVMBasicBlockRef emit_if_begin(const emit_ir *w, LLVMValueRef condition) {
  LLVMBasicBlockRef then = emit_block(w, "then"), after = emit_block(w, "after");
  LLVMBuildCondBr(w->builder, condition, then, after);
  LLVMPositionBuilderAtEnd(w->builder, then);
  return after;
}

void emit_if_end(const emit_ir *w, LLVMBasicBlockRef after) {
  LLVMBuildBr(w->builder, after);
  LLVMPositionBuilderAtEnd(w->builder, after);
}

static LLVMValueRef call_expired(const emit_ir *w) {
  static const char name[] = "onnx_xla_expired";
  LLVMTypeRef type = LLVMFunctionType(w->i32, (LLVMTypeRef[]){w->ptr}, 1, false);
  LLVMValueRef f = LLVMGetNamedFunction(w->module, name);
  f = f ? f : LLVMAddFunction(w->module, name, type);
  LLVMValueRef watch = w->watch;
  return LLVMBuildCall2(w->builder, type, f, &watch, 1, "");
}

void emit_poll(const emit_ir *w, LLVMValueRef iv, int64_t step, int64_t n, int64_t inner) {
  const double soon = 4.0 * EMIT_POLL; /* longer loops inside of this one poll themselves */
  if (!w->watch || (double)n * (double)inner <= soon || (double)inner > soon) {
    return;
  }
  int64_t every = step;
  while (every * inner < EMIT_POLL) {
    every *= 2;
  }
  LLVMBasicBlockRef ask = emit_block(w, "ask"), leave = emit_block(w, "leave"), on = emit_block(w, "on");
  if (n == EMIT_ANY_NUMBER) { /* as if the loop began between two polls, so that a short one never polls */
    iv = LLVMBuildNSWAdd(w->builder, iv, emit_i64(w, every / 2), "");
  }
  LLVMValueRef since = LLVMBuildURem(w->builder, iv, emit_i64(w, every), "");
  LLVMBuildCondBr(w->builder, emit_icmp(w, LLVMIntULT, since, emit_i64(w, step)), ask, on);
  LLVMPositionBuilderAtEnd(w->builder, ask);
  LLVMValueRef answer = call_expired(w);
  LLVMBuildCondBr(w->builder, emit_icmp(w, LLVMIntNE, answer, LLVMConstNull(w->i32)), leave, on);
  LLVMPositionBuilderAtEnd(w->builder, leave);
  LLVMBuildRetVoid(w->builder);
  LLVMPositionBuilderAtEnd(w->builder, on);
}
