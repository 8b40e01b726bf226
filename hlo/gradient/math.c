/* math.c - the rules of differentiation for elementwise operations. */
#include <math.h>

#include "hlo/gradient/rules.h"
#include "hlo/analysis/queries.h"

static hlo_value add(hlo_builder *b, hlo_value x, hlo_value y) { return hlo_binary(b, HLO_ADD, x, y); }
static hlo_value sub(hlo_builder *b, hlo_value x, hlo_value y) { return hlo_binary(b, HLO_SUB, x, y); }
static hlo_value mul(hlo_builder *b, hlo_value x, hlo_value y) { return hlo_binary(b, HLO_MUL, x, y); }
static hlo_value divide(hlo_builder *b, hlo_value x, hlo_value y) { return hlo_binary(b, HLO_DIV, x, y); }
static hlo_value negate(hlo_builder *b, hlo_value x) { return hlo_unary(b, HLO_NEG, x); }
static hlo_value times(hlo_builder *b, hlo_value x, double factor) { return mul(b, x, hlo_like(b, x, factor)); }
static hlo_value one_plus(hlo_builder *b, hlo_value x) { return add(b, hlo_like(b, x, 1), x); }
static hlo_value one_minus(hlo_builder *b, hlo_value x) { return sub(b, hlo_like(b, x, 1), x); }

/* Returns v, but 0 where dy is 0: there the local derivative may be infinite and must not matter. */
static hlo_value unless_zero(hlo_builder *b, hlo_value dy, hlo_value v) {
  hlo_value zero = hlo_like(b, dy, 0);
  return hlo_select(b, hlo_compare(b, HLO_EQ, dy, zero), zero, v);
}

/* --- one operand: the derivatives by x; y is the result --- */

typedef hlo_value derivative(hlo_builder *b, hlo_value x, hlo_value y);

static hlo_value of_abs(hlo_builder *b, hlo_value x, hlo_value y) { return hlo_unary(b, HLO_SIGN, x); }
static hlo_value of_sqrt(hlo_builder *b, hlo_value x, hlo_value y) { return divide(b, hlo_like(b, y, 0.5), y); }
static hlo_value of_rsqrt(hlo_builder *b, hlo_value x, hlo_value y) { return times(b, divide(b, y, x), -0.5); }
static hlo_value of_exp(hlo_builder *b, hlo_value x, hlo_value y) { return y; }
static hlo_value of_expm1(hlo_builder *b, hlo_value x, hlo_value y) { return hlo_unary(b, HLO_EXP, x); }
static hlo_value of_log(hlo_builder *b, hlo_value x, hlo_value y) { return divide(b, hlo_like(b, x, 1), x); }
static hlo_value of_log1p(hlo_builder *b, hlo_value x, hlo_value y) { return of_log(b, one_plus(b, x), y); }
static hlo_value of_sin(hlo_builder *b, hlo_value x, hlo_value y) { return hlo_unary(b, HLO_COS, x); }
static hlo_value of_cos(hlo_builder *b, hlo_value x, hlo_value y) { return negate(b, hlo_unary(b, HLO_SIN, x)); }
static hlo_value of_tan(hlo_builder *b, hlo_value x, hlo_value y) { return one_plus(b, mul(b, y, y)); }
static hlo_value of_sinh(hlo_builder *b, hlo_value x, hlo_value y) { return hlo_unary(b, HLO_COSH, x); }
static hlo_value of_cosh(hlo_builder *b, hlo_value x, hlo_value y) { return hlo_unary(b, HLO_SINH, x); }
static hlo_value of_logistic(hlo_builder *b, hlo_value x, hlo_value y) { return mul(b, y, one_minus(b, y)); }

/* Returns 1 - x * x, without the rounding error of the square near 1. */
static hlo_value one_minus_square(hlo_builder *b, hlo_value x) { return mul(b, one_minus(b, x), one_plus(b, x)); }

static hlo_value of_tanh(hlo_builder *b, hlo_value x, hlo_value y) { return one_minus_square(b, y); }
static hlo_value of_asin(hlo_builder *b, hlo_value x, hlo_value y) {
  return hlo_unary(b, HLO_RSQRT, one_minus_square(b, x));
}
static hlo_value of_acos(hlo_builder *b, hlo_value x, hlo_value y) { return negate(b, of_asin(b, x, y)); }
static hlo_value of_atan(hlo_builder *b, hlo_value x, hlo_value y) { return of_log(b, one_plus(b, mul(b, x, x)), y); }
static hlo_value of_asinh(hlo_builder *b, hlo_value x, hlo_value y) {
  return hlo_unary(b, HLO_RSQRT, one_plus(b, mul(b, x, x)));
}
static hlo_value of_acosh(hlo_builder *b, hlo_value x, hlo_value y) {
  return hlo_unary(b, HLO_RSQRT, negate(b, one_minus_square(b, x)));
}
static hlo_value of_atanh(hlo_builder *b, hlo_value x, hlo_value y) { return of_log(b, one_minus_square(b, x), y); }

/* The derivative of erf is 2 / sqrt(pi) * exp(-x^2). */
static hlo_value of_erf(hlo_builder *b, hlo_value x, hlo_value y) {
  return times(b, hlo_unary(b, HLO_EXP, negate(b, mul(b, x, x))), 1.12837916709551257390);
}

typedef struct unary_row {
  derivative *derivative;
  bool unbounded; /* whether the derivative may be infinite for a finite x */
} unary_row;

static const unary_row unary_rows[HLO_OP_COUNT] = {
    [HLO_ABS] = {of_abs, false},    [HLO_SQRT] = {of_sqrt, true},    [HLO_RSQRT] = {of_rsqrt, true},
    [HLO_EXP] = {of_exp, true},     [HLO_EXPM1] = {of_expm1, true},  [HLO_LOG] = {of_log, true},
    [HLO_LOG1P] = {of_log1p, true}, [HLO_SIN] = {of_sin, false},     [HLO_COS] = {of_cos, false},
    [HLO_TAN] = {of_tan, true},     [HLO_ASIN] = {of_asin, true},    [HLO_ACOS] = {of_acos, true},
    [HLO_ATAN] = {of_atan, false},  [HLO_SINH] = {of_sinh, true},    [HLO_COSH] = {of_cosh, true},
    [HLO_TANH] = {of_tanh, false},  [HLO_ASINH] = {of_asinh, false}, [HLO_ACOSH] = {of_acosh, true},
    [HLO_ATANH] = {of_atanh, true}, [HLO_ERF] = {of_erf, false},     [HLO_LOGISTIC] = {of_logistic, false},
};

bool hlo_has_derivative(hlo_op op) { return unary_rows[op].derivative != NULL; }

void hlo_gradient_unary(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  const unary_row *row = &unary_rows[i->op];
  hlo_value dx = mul(t->b, dy, row->derivative(t->b, i->operands[0], hlo_result(i, 0)));
  hlo_tape_add(t, i, 0, row->unbounded ? unless_zero(t->b, dy, dx) : dx);
}

void hlo_gradient_negate(hlo_tape *t, hlo_instr *i, hlo_value dy) { hlo_tape_add(t, i, 0, negate(t->b, dy)); }

void hlo_gradient_nothing(hlo_tape *t, hlo_instr *i, hlo_value dy) {}

void hlo_gradient_convert(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  if (dtype_is_float((dtype)i->shapes[0].type)) {
    hlo_tape_add(t, i, 0, hlo_convert(t->b, dy, hlo_type(i->operands[0])));
  }
}

/* --- two operands --- */

void hlo_gradient_add(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  hlo_tape_add(t, i, 0, dy);
  hlo_tape_add(t, i, 1, dy);
}

void hlo_gradient_subtract(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  hlo_tape_add(t, i, 0, dy);
  if (hlo_tape_needs(t, i, 1)) {
    hlo_tape_add(t, i, 1, negate(t->b, dy));
  }
}

void hlo_gradient_multiply(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  for (uint32_t k = 0; k < 2; k++) {
    if (hlo_tape_needs(t, i, k)) {
      hlo_tape_add(t, i, k, mul(t->b, dy, i->operands[1 - k]));
    }
  }
}

/* For x / y the gradients are dy / y and -(dy / y) * (x / y). */
void hlo_gradient_divide(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  hlo_builder *b = t->b;
  literal divisor;
  hlo_value y = i->operands[1], dx = divide(b, dy, y);
  bool never_zero = hlo_splat_of(y, &divisor) && literal_f64(&divisor, 0) != 0;
  hlo_tape_add(t, i, 0, never_zero ? dx : unless_zero(b, dy, dx));
  if (hlo_tape_needs(t, i, 1)) {
    hlo_tape_add(t, i, 1, unless_zero(b, dy, negate(b, mul(b, dx, hlo_result(i, 0)))));
  }
}

/* The remainder is x - trunc(x / y) * y.  trunc(x / y) is computed as (x - remainder) / y and rounded, since it is an
 * integer except for rounding errors. */
void hlo_gradient_remainder(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  hlo_builder *b = t->b;
  hlo_tape_add(t, i, 0, dy);
  if (hlo_tape_needs(t, i, 1)) {
    hlo_value whole = divide(b, sub(b, i->operands[0], hlo_result(i, 0)), i->operands[1]);
    hlo_tape_add(t, i, 1, unless_zero(b, dy, negate(b, mul(b, dy, hlo_unary(b, HLO_ROUND, whole)))));
  }
}

/* Returns dy * y * x^(y - 1), which is 0 for y = 0, also if x is 0. */
static hlo_value power_by_base(hlo_builder *b, hlo_value dy, hlo_value x, hlo_value y) {
  hlo_value zero = hlo_like(b, y, 0), one = hlo_like(b, y, 1), exponent = sub(b, y, one);
  literal known;
  if (hlo_splat_of(y, &known)) {
    double number = literal_f64(&known, 0);
    exponent = hlo_like(b, y, number - 1);
    hlo_value power = number == 1 ? one : number == 2 ? x : hlo_binary(b, HLO_POW, x, exponent);
    hlo_value d = mul(b, dy, times(b, power, number));
    return number == 0 ? zero : number >= 1 && number == floor(number) ? d : unless_zero(b, dy, d);
  }
  hlo_value is_zero = hlo_compare(b, HLO_EQ, y, zero);
  hlo_value rest = hlo_binary(b, HLO_POW, x, hlo_select(b, is_zero, one, exponent));
  return unless_zero(b, dy, mul(b, dy, mul(b, y, rest)));
}

/* The derivative by y is x^y log(x).  At x = 0 it counts as 0, which is its limit for y > 0. */
void hlo_gradient_power(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  hlo_builder *b = t->b;
  hlo_value x = i->operands[0], y = i->operands[1];
  if (hlo_tape_needs(t, i, 0)) {
    hlo_tape_add(t, i, 0, power_by_base(b, dy, x, y));
  }
  if (hlo_tape_needs(t, i, 1)) {
    hlo_value zero = hlo_like(b, x, 0);
    hlo_value base = hlo_select(b, hlo_compare(b, HLO_EQ, x, zero), hlo_like(b, x, 1), x);
    hlo_value d = mul(b, hlo_result(i, 0), hlo_unary(b, HLO_LOG, base));
    hlo_tape_add(t, i, 1, unless_zero(b, dy, mul(b, dy, d)));
  }
}

void hlo_gradient_atan2(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  hlo_builder *b = t->b;
  hlo_value y = i->operands[0], x = i->operands[1];
  hlo_value part = divide(b, dy, add(b, mul(b, x, x), mul(b, y, y)));
  hlo_tape_add(t, i, 0, unless_zero(b, dy, mul(b, part, x)));
  hlo_tape_add(t, i, 1, unless_zero(b, dy, negate(b, mul(b, part, y))));
}

/* The rule of maximum and minimum: the larger (or smaller) operand gets the gradient.  The comment of gradient.h says
 * what equal operands get. */
void hlo_gradient_extreme(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  hlo_builder *b = t->b;
  bool both = hlo_tape_needs(t, i, 0) && hlo_tape_needs(t, i, 1);
  hlo_value at_tie = both ? times(b, dy, 0.5) : hlo_like(b, dy, 0);
  for (uint32_t k = 0; k < 2; k++) {
    if (hlo_tape_needs(t, i, k)) {
      hlo_value mine = i->operands[k], other = i->operands[1 - k];
      hlo_value wins = hlo_compare(b, i->op == HLO_MAX ? HLO_GT : HLO_LT, mine, other);
      hlo_value lost = both ? hlo_select_or_zero(b, hlo_compare(b, HLO_EQ, mine, other), at_tie) : at_tie;
      hlo_tape_add(t, i, k, hlo_select(b, wins, dy, lost));
    }
  }
}

/* --- three operands --- */

void hlo_gradient_select(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  hlo_value zero = hlo_like(t->b, dy, 0);
  if (hlo_tape_needs(t, i, 1)) {
    hlo_tape_add(t, i, 1, hlo_select(t->b, i->operands[0], dy, zero));
  }
  if (hlo_tape_needs(t, i, 2)) {
    hlo_tape_add(t, i, 2, hlo_select(t->b, i->operands[0], zero, dy));
  }
}

/* The result is min(max(x, low), high).  Strictly between the bounds x gets the gradient; elsewhere the bound that the
 * result equals gets it. */
void hlo_gradient_clamp(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  hlo_builder *b = t->b;
  const shape *s = &i->shapes[0];
  hlo_value x = i->operands[1], low = hlo_broadcast_to(b, i->operands[0], s),
            high = hlo_broadcast_to(b, i->operands[2], s);
  hlo_value below = hlo_compare(b, HLO_LE, x, low);
  hlo_value above = hlo_compare(b, HLO_GE, hlo_binary(b, HLO_MAX, x, low), high);
  hlo_value within = hlo_binary(b, HLO_AND, hlo_unary(b, HLO_NOT, below), hlo_unary(b, HLO_NOT, above));
  hlo_value at_low = hlo_binary(b, HLO_AND, below, hlo_unary(b, HLO_NOT, above));
  hlo_value parts[] = {at_low, within, above};
  for (uint32_t k = 0; k < 3; k++) {
    if (hlo_tape_needs(t, i, k)) {
      hlo_value part = hlo_select_or_zero(b, parts[k], dy);
      hlo_tape_add(t, i, k, hlo_rank(i->operands[k]) ? part : hlo_sum_all(b, part));
    }
  }
}
