/* quantize.c - numbers rounded to small integers: convert(add(round(v), zero)), clamped to the range of the type.
 *
 * The zero point is an integer, so v can be clamped first, to the type's limits minus the zero point.  Then adding a
 * constant rounds it and leaves the integer in the lowest bits of the sum.  If v is x divided by a constant, x is
 * clamped before the division.  The clamped x is finite, so multiplying it by the inverse needs no special case. */
#include <math.h>

#include "emit/element/element.h"

typedef struct quantization {
  hlo_value v, zero; /* v is the number that is rounded; `zero` is the zero point, the same for all elements; zero.def
                        is NULL if there is none */
  bool is_known;     /* whether zero is the constant `number` */
  double number, low, high;
} quantization;

static hlo_value unspread(hlo_value v) {
  while (v.def->op == HLO_BROADCAST) {
    v = v.def->operands[0];
  }
  return v;
}

static bool is_one_number(hlo_value v, double *number) {
  const literal *l = hlo_literal(unspread(v));
  if (!l || !literal_is_splat(l) || !dtype_is_float((dtype)l->shape.type)) {
    return false;
  }
  *number = dtype_load_f64((dtype)l->shape.type, l->data);
  return true;
}

/* Returns true if v can be the zero point, and sets q->zero, q->is_known and q->number.  v must be the same for all
 * elements: a constant integer of at most 2^16 in absolute value, or a scalar integer of at most 16 bits, converted and
 * broadcast. */
static bool is_zero_point(quantization *q, hlo_value v) {
  enum { LARGEST = 1 << 16 };
  hlo_value x = unspread(v);
  q->zero = v;
  q->is_known = is_one_number(v, &q->number);
  if (q->is_known) {
    return fabs(q->number) <= LARGEST && floor(q->number) == q->number;
  }
  hlo_value from = x.def->op == HLO_CONVERT ? x.def->operands[0] : x;
  return dtype_is_int(hlo_type(from)) && dtype_get_info(hlo_type(from))->bits <= 16 && hlo_rank(unspread(from)) == 0;
}

static bool is_quantization(const emit_element *e, dtype to, hlo_value v, quantization *q) {
  *q = (quantization){0};
  if (!dtype_is_int(to) || dtype_get_info(to)->bits > 16 || dtype_get_info(to)->bits < 8 || hlo_type(v) != DTYPE_F32 ||
      emit_is_input(e, v)) {
    return false;
  }
  if (v.def->op == HLO_ADD) {
    int other = v.def->operands[0].def->op == HLO_ROUND;
    if (!is_zero_point(q, v.def->operands[other])) {
      return false;
    }
    v = v.def->operands[!other];
  }
  if (v.def->op != HLO_ROUND || emit_is_input(e, v)) {
    return false;
  }
  q->v = v.def->operands[0];
  q->low = dtype_lowest_f64(to);
  q->high = dtype_max_f64(to);
  return true;
}

/* Returns x clamped to [low, high].  The selects become one instruction each, and NaN becomes `low`. */
static LLVMValueRef limited(const emit_ir *w, LLVMValueRef x, LLVMValueRef low, LLVMValueRef high) {
  x = emit_select(w, emit_fcmp(w, LLVMRealOLT, high, x), high, x);
  return emit_select(w, emit_fcmp(w, LLVMRealOGT, x, low), x, low);
}

/* Returns the least or the largest value of the type, `limit`, less the zero point. */
static LLVMValueRef less_zero(const emit_ir *w, LLVMValueRef like, double limit, LLVMValueRef zero) {
  LLVMValueRef v = emit_f(like, limit);
  return zero ? LLVMBuildFSub(w->builder, v, zero, "") : v;
}

/* A number, before it is rounded, within the limits of its type less the zero point. */
typedef struct clamped {
  LLVMValueRef v, from; /* `from` is what was clamped: v is of no use if it is NaN */
} clamped;

/* Returns x / by, where by is the constant `number`, for an x whose quotient is far from the limits of f32. */
static LLVMValueRef quotient_of(const emit_ir *w, LLVMValueRef x, LLVMValueRef by, LLVMValueRef inverse) {
  LLVMValueRef first = LLVMBuildFMul(w->builder, x, inverse, "");
  LLVMValueRef rest = emit_fma(w, LLVMBuildFNeg(w->builder, first, ""), by, x);
  return emit_fma(w, rest, inverse, first);
}

/* If q->v is x / c for a constant c in [EMIT_LEAST_DIVISOR, EMIT_MOST_DIVISOR], and there is no zero point or a
 * constant one, sets *out to that quotient and returns true.  x is first clamped such that the quantised value is
 * within the limits of its type. */
static bool divided_by_constant(emit_element *e, const quantization *q, const emit_index *at, clamped *out) {
  const emit_ir *w = e->w;
  double by, zero = q->zero.def ? q->number : 0;
  if ((q->zero.def && !q->is_known) || !is_one_number(q->v.def->operands[1], &by) ||
      !(by >= EMIT_LEAST_DIVISOR && by <= EMIT_MOST_DIVISOR)) {
    return false;
  }
  LLVMValueRef x = emit_value(e, q->v.def->operands[0], at).v, inverse = emit_f(x, (float)(1 / by));
  LLVMValueRef in = limited(w, x, emit_f(x, (q->low - zero) * by), emit_f(x, (q->high - zero) * by));
  int exponent;
  out->from = x;
  out->v = frexp(by, &exponent) == 0.5 ? LLVMBuildFMul(w->builder, in, inverse, "")
                                       : quotient_of(w, in, emit_f(x, by), inverse);
  return true;
}

/* The same for a divisor that a row-wise fusion has computed, with its inverse.  It may be negative. */
static bool divided_by_row(emit_element *e, const quantization *q, const emit_index *at, LLVMValueRef zero,
                           clamped *out) {
  const emit_ir *w = e->w;
  LLVMValueRef by, inverse;
  if (!e->rows || !emit_row_divisor(e->rows, q->v, &by, &inverse)) {
    return false;
  }
  LLVMValueRef x = emit_value(e, q->v.def->operands[0], at).v;
  LLVMValueRef a = LLVMBuildFMul(w->builder, less_zero(w, x, q->low, zero), by, ""),
               b = LLVMBuildFMul(w->builder, less_zero(w, x, q->high, zero), by, "");
  LLVMValueRef upwards = emit_fcmp(w, LLVMRealOLT, a, b);
  LLVMValueRef in = limited(w, x, emit_select(w, upwards, a, b), emit_select(w, upwards, b, a));
  *out = (clamped){quotient_of(w, in, by, inverse), x};
  return true;
}

static clamped clamp(emit_element *e, const quantization *q, const emit_index *at, LLVMValueRef zero) {
  const emit_ir *w = e->w;
  clamped c;
  bool divides = q->v.def->op == HLO_DIV && !emit_is_input(e, q->v) && w->target->fma;
  if (divides && (divided_by_constant(e, q, at, &c) || divided_by_row(e, q, at, zero, &c))) {
    return c;
  }
  LLVMValueRef v = emit_value(e, q->v, at).v;
  return (clamped){limited(w, v, less_zero(w, v, q->low, zero), less_zero(w, v, q->high, zero)), v};
}

bool emit_quantize(emit_element *e, dtype to, hlo_value x, const emit_index *at, emit_pair *out) {
  quantization q;
  if (!is_quantization(e, to, x, &q)) {
    return false;
  }
  const emit_ir *w = e->w;
  LLVMBuilderRef b = w->builder;
  LLVMValueRef zero = q.zero.def ? emit_value(e, q.zero, at).v : NULL;
  clamped c = clamp(e, &q, at, zero);
  /* Floats between 2^23 and 2^24 are 1 apart, so the sum is rounded to an integer, half to even.  The lowest 16 bits of
   * 1.5 * 2^23 are 0, so the lowest 16 bits of the sum are the integer. */
  LLVMValueRef n = emit_bits_of(w, LLVMBuildFAdd(b, c.v, emit_f(c.v, 0x1.8p23), ""));
  n = zero ? LLVMBuildAdd(b, n, LLVMBuildFPToSI(b, zero, LLVMTypeOf(n), ""), "") : n;
  n = emit_select(w, emit_fcmp(w, LLVMRealORD, c.from, c.from), n, emit_i(n, 0));
  *out = (emit_pair){LLVMBuildTrunc(b, n, emit_type_like(n, emit_register_type(w, to)), ""), NULL};
  return true;
}
