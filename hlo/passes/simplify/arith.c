/* arith.c - rules of elementwise operations: identities, normal forms, exact conversions. */
#include <math.h>
#include <string.h>

#include "hlo/analysis/pattern.h"
#include "base/dim/guard.h"
#include "hlo/passes/simplify/simplify.h"

static hlo_value x_of(const hlo_instr *i) { return i->operands[0]; }
static hlo_value y_of(const hlo_instr *i) { return i->operands[1]; }
static bool is_op(hlo_value v, hlo_op op) { return v.def->op == op; }
static bool is_int(hlo_value v) { return dtype_is_int(hlo_type(v)); }
static bool is_pred(hlo_value v) { return hlo_type(v) == DTYPE_PRED; }
static bool is_float(hlo_value v) { return dtype_is_float(hlo_type(v)); }

static bool is_splat(hlo_value v) {
  literal l;
  return hlo_splat_of(v, &l);
}

static bool is_known(hlo_value v) { return hlo_literal(v) || is_splat(v); }

/* Returns true if v is an integer, or pred, with all bits set. */
static bool is_all_ones(hlo_value v) {
  literal l;
  if (!(is_int(v) || is_pred(v)) || !hlo_splat_of(v, &l)) {
    return false;
  }
  int64_t ones = 0;
  dtype_store_i64(hlo_type(v), &ones, -1); /* the other bytes of a narrower type stay 0 */
  return memcmp(&ones, l.data, dtype_bytes(hlo_type(v))) == 0;
}

/* --- sums and products --- */

static bool constant_second(hlo_builder *b, hlo_instr *i) {
  hlo_value x = x_of(i), y = y_of(i);
  if (!is_known(x) || is_known(y)) {
    return false;
  }
  hlo_set_operand(i, 0, y);
  hlo_set_operand(i, 1, x);
  return true;
}

/* Returns true if no element is -0.  A contraction's sums start with 0, so they are not -0.  There is one exception,
 * which is ignored: if all products are so small that fused multiply-adds round the sum to zero, and the first product
 * is negative, the sum is -0.  Such a zero may lose its sign. */
static bool never_negative_zero(hlo_value v) {
  return hlo_info(v.def)->kind == HLO_CONTRACTION || hlo_is_nonnegative(v);
}

/* x + 0 = x.  For floats -0 is neutral, and 0 only if x cannot be -0. */
static bool add_zero(hlo_builder *b, hlo_instr *i) {
  bool neutral = hlo_is_splat(y_of(i), -0.0) || (is_int(x_of(i)) && hlo_is_splat(y_of(i), 0)) ||
                 (is_float(x_of(i)) && hlo_is_splat(y_of(i), 0) && never_negative_zero(x_of(i)));
  return neutral && hlo_becomes(i, x_of(i));
}

static bool subtract_zero(hlo_builder *b, hlo_instr *i) { return hlo_is_splat(y_of(i), 0) && hlo_becomes(i, x_of(i)); }

static bool subtract_self(hlo_builder *b, hlo_instr *i) {
  return hlo_value_equal(x_of(i), y_of(i)) && is_int(x_of(i)) && hlo_becomes(i, hlo_like(b, x_of(i), 0));
}

static bool zero_minus(hlo_builder *b, hlo_instr *i) {
  return is_int(x_of(i)) && hlo_is_splat(x_of(i), 0) && hlo_becomes(i, hlo_unary(b, HLO_NEG, y_of(i)));
}

/* x + -y = x - y, which is exact. */
static bool add_negated(hlo_builder *b, hlo_instr *i) {
  hlo_value x, y;
  return hlo_match(hlo_result(i, 0), P_COMMUTE(HLO_ADD, P_OP(HLO_NEG, P_ANY(&y)), P_ANY(&x))) &&
         hlo_becomes(i, hlo_binary(b, HLO_SUB, x, y));
}

static bool subtract_negated(hlo_builder *b, hlo_instr *i) {
  return is_op(y_of(i), HLO_NEG) && hlo_becomes(i, hlo_binary(b, HLO_ADD, x_of(i), x_of(y_of(i).def)));
}

static bool multiply_one(hlo_builder *b, hlo_instr *i) { return hlo_is_splat(y_of(i), 1) && hlo_becomes(i, x_of(i)); }

static bool multiply_zero(hlo_builder *b, hlo_instr *i) {
  return is_int(x_of(i)) && hlo_is_splat(y_of(i), 0) && hlo_becomes(i, y_of(i));
}

/* (x op c) op d = x op (c op d), which is exact for integers, and for maximum, minimum and bits of all types. */
static bool gather_constants(hlo_builder *b, hlo_instr *i) {
  hlo_value inner = x_of(i);
  bool sums = i->op == HLO_ADD || i->op == HLO_MUL;
  if (inner.def->op != i->op || !is_known(y_of(i)) || !is_known(y_of(inner.def)) || (sums && !is_int(inner))) {
    return false;
  }
  return hlo_becomes(i, hlo_binary(b, i->op, x_of(inner.def), hlo_binary(b, i->op, y_of(inner.def), y_of(i))));
}

static bool divide_one(hlo_builder *b, hlo_instr *i) { return hlo_is_splat(y_of(i), 1) && hlo_becomes(i, x_of(i)); }

/* x / 2^k = x * 2^-k, which is exact if both powers are normal numbers of the type. */
static bool divide_power_of_two(hlo_builder *b, hlo_instr *i) {
  literal l, inverse;
  int exponent;
  if (!is_float(x_of(i)) || !hlo_splat_of(y_of(i), &l)) {
    return false;
  }
  double y = literal_f64(&l, 0);
  if (!isfinite(y) || y == 0 || fabs(frexp(y, &exponent)) != 0.5) {
    return false;
  }
  dtype t = hlo_type(x_of(i));
  int limit = t == DTYPE_F64 ? 1000 : t == DTYPE_F32 || t == DTYPE_BF16 ? 120 : t == DTYPE_F16 ? 13 : 0;
  if (exponent > limit || exponent < -limit) {
    return false;
  }
  inverse = literal_scalar_f64(hlo_arena(b), t, 1 / y);
  return hlo_becomes(i, hlo_binary(b, HLO_MUL, x_of(i), hlo_splat_literal(b, i->shapes[0], inverse)));
}

static bool remainder_one(hlo_builder *b, hlo_instr *i) {
  return is_int(x_of(i)) && hlo_is_splat(y_of(i), 1) && hlo_becomes(i, hlo_like(b, x_of(i), 0));
}

/* --- powers --- */

static bool nonnegative_operands(const hlo_instr *i, int depth);

static bool nonnegative(hlo_value v, int depth) {
  literal l;
  hlo_instr *i = v.def;
  if (hlo_splat_of(v, &l)) {
    return is_float(v) && !signbit(literal_f64(&l, 0));
  }
  return depth > 0 && is_float(v) && nonnegative_operands(i, depth - 1);
}

static bool nonnegative_operands(const hlo_instr *i, int depth) {
  switch (i->op) {
    case HLO_ABS:
    case HLO_EXP:
    case HLO_LOGISTIC: return true;
    case HLO_MUL:
      return hlo_value_equal(x_of(i), y_of(i)) || (nonnegative(x_of(i), depth) && nonnegative(y_of(i), depth));
    case HLO_ADD:
    case HLO_DIV: return nonnegative(x_of(i), depth) && nonnegative(y_of(i), depth);
    case HLO_REDUCE: /* the maximum of no elements is -inf */
      return hlo_int(i, HLO_ATTR_REDUCER) != HLO_REDUCE_MAX && nonnegative(x_of(i), depth);
    case HLO_SQRT:
    case HLO_BROADCAST:
    case HLO_RESHAPE:
    case HLO_TRANSPOSE:
    case HLO_SLICE: return nonnegative(x_of(i), depth);
    default: return false;
  }
}

bool hlo_is_nonnegative(hlo_value v) { return nonnegative(v, 6); }

static bool power_of_constant(hlo_builder *b, hlo_instr *i) {
  hlo_value x = x_of(i), y = y_of(i);
  dtype t = hlo_type(x);
  bool wide = t == DTYPE_F32 || t == DTYPE_F64 || is_int(x);
  if (hlo_is_splat(y, 1)) {
    return hlo_becomes(i, x);
  }
  if (hlo_is_splat(y, 2)) {
    return hlo_becomes(i, hlo_binary(b, HLO_MUL, x, x));
  }
  if (hlo_is_splat(y, 3) && wide) { /* smaller types would round, or overflow, between the products */
    return hlo_becomes(i, hlo_binary(b, HLO_MUL, hlo_binary(b, HLO_MUL, x, x), x));
  }
  if (is_float(x) && hlo_is_splat(y, 0.5) && hlo_is_nonnegative(x)) {
    return hlo_becomes(i, hlo_unary(b, HLO_SQRT, x));
  }
  if (is_float(x) && hlo_is_splat(y, -1)) {
    return hlo_becomes(i, hlo_binary(b, HLO_DIV, hlo_like(b, x, 1), x));
  }
  return false;
}

static dim elements_of(dim_table *t, const shape *s) { return shape_dim_product(t, s, 0, s->rank); }

/* x / sqrt(y) = x * rsqrt(y), if each root divides many elements, so that the inverse is computed once for them.
 * There is one more rounding; 0, infinity and NaN give the same results. */
static bool divide_by_root(hlo_builder *b, hlo_instr *i) {
  enum { DEEPEST = 4, MANY = 4 };
  const hlo_instr *way[DEEPEST];
  dim_table *t = i->parent->module->dims;
  int n = 0;
  hlo_value root = y_of(i);
  for (; (is_op(root, HLO_BROADCAST) || is_op(root, HLO_RESHAPE)) && n < DEEPEST && hlo_used_once(root);
       root = x_of(root.def)) {
    way[n++] = root.def;
  }
  bool wide = hlo_type(root) == DTYPE_F32 || hlo_type(root) == DTYPE_F64;
  if (!wide || !is_op(root, HLO_SQRT) || !hlo_used_once(root) ||
      !dim_known_at_most(t, dim_mul(t, MANY, elements_of(t, hlo_shape(root))), elements_of(t, &i->shapes[0]))) {
    return false;
  }
  hlo_value y = hlo_unary(b, HLO_RSQRT, x_of(root.def));
  while (n-- > 0) {
    const shape *s = &way[n]->shapes[0];
    y = way[n]->op == HLO_RESHAPE ? hlo_reshape(b, y, s->rank, s->dims)
                                  : hlo_broadcast(b, y, *s, hlo_ints(way[n], HLO_ATTR_DIMENSIONS));
  }
  return hlo_becomes(i, hlo_binary(b, HLO_MUL, x_of(i), y));
}

/* erf(x / y) for a constant y, as in GELU, becomes erf(x * (1/y)), which has one more rounding. */
static bool multiply_inside(hlo_builder *b, hlo_instr *i) {
  hlo_value x;
  literal l;
  dtype t = hlo_type(x_of(i));
  if ((t != DTYPE_F32 && t != DTYPE_F64) || !hlo_match(x_of(i), P_ONCE(P_OP(HLO_DIV, P_ANY(&x), P_SPLAT(&l))))) {
    return false;
  }
  double y = fabs(literal_f64(&l, 0));
  if (!(y >= 0x1p-60 && y <= 0x1p60)) {
    return false;
  }
  literal inverse = literal_scalar_f64(hlo_arena(b), t, 1 / literal_f64(&l, 0));
  hlo_value inside = hlo_binary(b, HLO_MUL, x, hlo_splat_literal(b, i->shapes[0], inverse));
  return hlo_becomes(i, hlo_unary(b, HLO_ERF, inside));
}

/* --- signs, bits and choices --- */

/* f(f(x)) = x for an f that is its own inverse. */
static bool undo_twice(hlo_builder *b, hlo_instr *i) {
  return is_op(x_of(i), i->op) && hlo_becomes(i, x_of(x_of(i).def));
}

static bool abs_of_sign(hlo_builder *b, hlo_instr *i) {
  hlo_value x = x_of(i);
  if (is_op(x, HLO_NEG) && is_float(x)) {
    return hlo_becomes(i, hlo_unary(b, HLO_ABS, x_of(x.def)));
  }
  return is_op(x, HLO_ABS) && hlo_becomes(i, x);
}

static hlo_comparison inverse_of(hlo_comparison c) {
  static const hlo_comparison inverse[] = {HLO_NE, HLO_EQ, HLO_GE, HLO_GT, HLO_LE, HLO_LT};
  return inverse[c];
}

/* not(x < y) = x >= y, and so on.  Because of NaN, this holds for floats only if the comparison is == or !=. */
static bool not_compare(hlo_builder *b, hlo_instr *i) {
  hlo_instr *x = x_of(i).def;
  if (x->op != HLO_COMPARE) {
    return false;
  }
  hlo_comparison c = (hlo_comparison)hlo_int(x, HLO_ATTR_COMPARISON);
  if (c != HLO_EQ && c != HLO_NE && is_float(x_of(x))) {
    return false;
  }
  return hlo_becomes(i, hlo_compare(b, inverse_of(c), x_of(x), y_of(x)));
}

static bool same_operands(hlo_builder *b, hlo_instr *i) {
  return hlo_value_equal(x_of(i), y_of(i)) && hlo_becomes(i, x_of(i));
}

static bool xor_self(hlo_builder *b, hlo_instr *i) {
  return hlo_value_equal(x_of(i), y_of(i)) && hlo_becomes(i, hlo_like(b, x_of(i), 0));
}

static bool and_constant(hlo_builder *b, hlo_instr *i) {
  return (is_all_ones(y_of(i)) && hlo_becomes(i, x_of(i))) || (hlo_is_splat(y_of(i), 0) && hlo_becomes(i, y_of(i)));
}

static bool or_constant(hlo_builder *b, hlo_instr *i) {
  return (hlo_is_splat(y_of(i), 0) && hlo_becomes(i, x_of(i))) || (is_all_ones(y_of(i)) && hlo_becomes(i, y_of(i)));
}

static bool neutral_zero(hlo_builder *b, hlo_instr *i) { return hlo_is_splat(y_of(i), 0) && hlo_becomes(i, x_of(i)); }

static bool compare_self(hlo_builder *b, hlo_instr *i) {
  hlo_value x = x_of(i);
  if (!hlo_value_equal(x, y_of(i)) || !(is_int(x) || is_pred(x))) {
    return false;
  }
  hlo_comparison c = (hlo_comparison)hlo_int(i, HLO_ATTR_COMPARISON);
  bool value = c == HLO_EQ || c == HLO_LE || c == HLO_GE;
  return hlo_becomes(i, hlo_splat(b, i->shapes[0], value));
}

static bool compare_pred(hlo_builder *b, hlo_instr *i) {
  hlo_value x = x_of(i), y = y_of(i);
  hlo_comparison c = (hlo_comparison)hlo_int(i, HLO_ATTR_COMPARISON);
  if (!is_pred(x) || (c != HLO_EQ && c != HLO_NE)) {
    return false;
  }
  bool is_true = is_all_ones(y) || hlo_is_splat(y, 1), is_false = hlo_is_splat(y, 0);
  if (!is_true && !is_false) {
    return false;
  }
  return hlo_becomes(i, is_true == (c == HLO_EQ) ? x : hlo_unary(b, HLO_NOT, x));
}

static bool select_known(hlo_builder *b, hlo_instr *i) {
  literal l;
  if (hlo_value_equal(y_of(i), i->operands[2])) {
    return hlo_becomes(i, y_of(i));
  }
  return hlo_splat_of(x_of(i), &l) && hlo_becomes(i, literal_i64(&l, 0) ? y_of(i) : i->operands[2]);
}

static bool select_not(hlo_builder *b, hlo_instr *i) {
  return is_op(x_of(i), HLO_NOT) && hlo_becomes(i, hlo_select(b, x_of(x_of(i).def), i->operands[2], y_of(i)));
}

static bool select_pred(hlo_builder *b, hlo_instr *i) {
  return is_pred(y_of(i)) && hlo_is_splat(y_of(i), 1) && hlo_is_splat(i->operands[2], 0) && hlo_becomes(i, x_of(i));
}

static bool part_of_complex(hlo_builder *b, hlo_instr *i) {
  hlo_instr *x = x_of(i).def;
  return x->op == HLO_COMPLEX && hlo_becomes(i, x->operands[i->op == HLO_IMAG]);
}

/* --- minimum, maximum, clamp --- */

/* min(max(x, low), high) = clamp(low, x, high) by definition.  The bounds must be splats, so that they are scalars of
 * clamp. */
static bool make_clamp(hlo_builder *b, hlo_instr *i) {
  literal low, high;
  hlo_value x;
  const hlo_pattern *limited = P_ONCE(P_OP(HLO_MAX, P_ANY(&x), P_SPLAT(&low)));
  return hlo_match(hlo_result(i, 0), P_OP(HLO_MIN, limited, P_SPLAT(&high))) &&
         hlo_becomes(i, hlo_clamp(b, hlo_constant(b, low), x, hlo_constant(b, high)));
}

static bool is_infinity(hlo_value v, int sign) { return is_float(v) && hlo_is_splat(v, sign * (double)INFINITY); }

/* Returns `limit`, a bound of a clamp, with shape s: a scalar is broadcast, since only clamp takes scalars beside
 * arrays. */
static hlo_value as_operand(hlo_builder *b, hlo_value limit, const shape *s) {
  return hlo_rank(limit) == s->rank ? limit : hlo_broadcast(b, limit, *s, NULL);
}

static bool clamp_infinite(hlo_builder *b, hlo_instr *i) {
  hlo_value x = y_of(i), low = x_of(i), high = i->operands[2];
  if (is_infinity(low, -1)) {
    return hlo_becomes(i, is_infinity(high, 1) ? x : hlo_binary(b, HLO_MIN, x, as_operand(b, high, hlo_shape(x))));
  }
  return is_infinity(high, 1) && hlo_becomes(i, hlo_binary(b, HLO_MAX, x, as_operand(b, low, hlo_shape(x))));
}

static bool limit_infinite(hlo_builder *b, hlo_instr *i) {
  return is_infinity(y_of(i), i->op == HLO_MAX ? -1 : 1) && hlo_becomes(i, x_of(i));
}

/* Makes the bounds of clamp scalars if they are splats, so that there is one form and nothing to load. */
static bool clamp_scalars(hlo_builder *b, hlo_instr *i) {
  bool changed = false;
  for (uint32_t k = 0; k < 3; k += 2) {
    literal l;
    if (hlo_rank(i->operands[k]) && hlo_splat_of(i->operands[k], &l)) {
      hlo_set_operand(i, k, hlo_constant(b, l));
      changed = true;
    }
  }
  return changed;
}

/* --- conversions --- */

/* Returns the number of bits of an integer that a float type represents exactly, or 0 for types that these rules do
 * not handle. */
static int mantissa(dtype t) {
  return t == DTYPE_F64 ? 53 : t == DTYPE_F32 ? 24 : t == DTYPE_F16 ? 11 : t == DTYPE_BF16 ? 8 : 0;
}

/* Returns true if every value of `from` is one of `to`. */
static bool is_exact(dtype from, dtype to) {
  int bits = dtype_get_info(from)->bits - dtype_is_signed(from),
      to_bits = dtype_get_info(to)->bits - dtype_is_signed(to);
  if (from == DTYPE_PRED) {
    return dtype_is_int(to) || mantissa(to);
  }
  if (dtype_is_int(from)) {
    bool to_int = dtype_is_int(to) && bits <= to_bits && (!dtype_is_signed(from) || dtype_is_signed(to));
    return to_int || (mantissa(to) && bits <= mantissa(to));
  }
  bool halves = (from == DTYPE_F16 || from == DTYPE_BF16) && (to == DTYPE_F32 || to == DTYPE_F64);
  return halves || (from == DTYPE_F32 && to == DTYPE_F64);
}

/* Shortens a conversion A -> B -> C to A -> C if A -> B is exact and the conversion to C gives the same result from A
 * as from B.  That is so if C is A, pred, or a float type of 16 bits or more; if A is a float type; or if A, B and C
 * are integer types. */
static bool convert_chain(hlo_builder *b, hlo_instr *i) {
  hlo_instr *inner = x_of(i).def;
  if (inner->op != HLO_CONVERT) {
    return false;
  }
  dtype from = hlo_type(x_of(inner)), middle = hlo_type(x_of(i)), to = (dtype)i->shapes[0].type;
  bool both_int = dtype_is_int(from) && dtype_is_int(middle) && dtype_is_int(to);
  bool both_float = dtype_is_float(from) && (dtype_is_int(to) || dtype_is_float(to));
  if (!is_exact(from, middle) || !(to == from || to == DTYPE_PRED || mantissa(to) || both_int || both_float)) {
    return false;
  }
  bool saturate = hlo_int(i, HLO_ATTR_SATURATE) != 0;
  return hlo_becomes(i, hlo_convert_as(b, x_of(inner), to, saturate, (dtype_round)hlo_int(i, HLO_ATTR_ROUNDING)));
}

/* A saturating conversion to integers needs no clamp before it whose bounds are those of the type, or further apart.
 * NaN stays NaN through a clamp, and becomes 0 in either case. */
static bool convert_clamped(hlo_builder *b, hlo_instr *i) {
  enum { EXACT_BITS = 32 }; /* up to so many bits, the limits of integers are exact as f64 */
  dtype to = (dtype)i->shapes[0].type;
  literal low, high;
  hlo_value x;
  if (!dtype_is_int(to) || dtype_get_info(to)->bits > EXACT_BITS || !is_float(x_of(i)) ||
      !hlo_int(i, HLO_ATTR_SATURATE) ||
      !hlo_match(x_of(i), P_OP(HLO_CLAMP, P_SPLAT(&low), P_ANY(&x), P_SPLAT(&high))) ||
      !(literal_f64(&low, 0) <= dtype_lowest_f64(to)) || !(literal_f64(&high, 0) >= dtype_max_f64(to))) {
    return false;
  }
  return hlo_becomes(i, hlo_convert_as(b, x, to, true, (dtype_round)hlo_int(i, HLO_ATTR_ROUNDING)));
}

static bool identity_type(hlo_builder *b, hlo_instr *i) {
  return hlo_type(x_of(i)) == i->shapes[0].type && hlo_becomes(i, x_of(i));
}

static bool bitcast_chain(hlo_builder *b, hlo_instr *i) {
  hlo_value x = x_of(i);
  if (!is_op(x, HLO_BITCAST)) {
    return false;
  }
  hlo_value origin = x_of(x.def);
  return hlo_becomes(i,
                     hlo_type(origin) == i->shapes[0].type ? origin : hlo_bitcast(b, origin, (dtype)i->shapes[0].type));
}

const hlo_rule_row hlo_arithmetic_rules[] = {
    {HLO_ADD, constant_second},     {HLO_MUL, constant_second},   {HLO_MAX, constant_second},
    {HLO_MIN, constant_second},     {HLO_AND, constant_second},   {HLO_OR, constant_second},
    {HLO_XOR, constant_second},     {HLO_ADD, add_zero},          {HLO_ADD, add_negated},
    {HLO_ADD, gather_constants},    {HLO_SUB, subtract_zero},     {HLO_SUB, subtract_self},
    {HLO_SUB, zero_minus},          {HLO_SUB, subtract_negated},  {HLO_MUL, multiply_one},
    {HLO_MUL, multiply_zero},       {HLO_MUL, gather_constants},  {HLO_DIV, divide_one},
    {HLO_DIV, divide_power_of_two}, {HLO_REM, remainder_one},     {HLO_POW, power_of_constant},
    {HLO_NEG, undo_twice},          {HLO_NOT, undo_twice},        {HLO_NOT, not_compare},
    {HLO_ABS, abs_of_sign},         {HLO_MAX, same_operands},     {HLO_MIN, same_operands},
    {HLO_AND, same_operands},       {HLO_OR, same_operands},      {HLO_XOR, xor_self},
    {HLO_AND, and_constant},        {HLO_OR, or_constant},        {HLO_XOR, neutral_zero},
    {HLO_SHL, neutral_zero},        {HLO_SHR, neutral_zero},      {HLO_AND, gather_constants},
    {HLO_OR, gather_constants},     {HLO_XOR, gather_constants},  {HLO_MAX, gather_constants},
    {HLO_MIN, gather_constants},    {HLO_COMPARE, compare_self},  {HLO_COMPARE, compare_pred},
    {HLO_SELECT, select_known},     {HLO_SELECT, select_not},     {HLO_SELECT, select_pred},
    {HLO_REAL, part_of_complex},    {HLO_IMAG, part_of_complex},  {HLO_MIN, make_clamp},
    {HLO_MIN, limit_infinite},      {HLO_MAX, limit_infinite},    {HLO_CLAMP, clamp_infinite},
    {HLO_CLAMP, clamp_scalars},     {HLO_CONVERT, identity_type}, {HLO_CONVERT, convert_chain},
    {HLO_CONVERT, convert_clamped}, {HLO_BITCAST, identity_type}, {HLO_BITCAST, bitcast_chain},
    {HLO_DIV, divide_by_root},      {HLO_ERF, multiply_inside},   {HLO_OP_COUNT, NULL}};
