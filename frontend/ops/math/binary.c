/* binary.c - arithmetic, comparisons, logical and bitwise operators of two operands; Where; the variadic operators Sum,
 * Mean, Max and Min. */
#include <string.h>

#include "frontend/import/import_common.h"
#include "frontend/import/symbolic.h"
#include "hlo/ir/fold_sizes.h"

/* --- operators that are one HLO operation --- */

static const struct binary {
  const char *name;
  hlo_op op;
} binary_ops[] = {
    {"Add", HLO_ADD}, {"Sub", HLO_SUB}, {"Mul", HLO_MUL},        {"Div", HLO_DIV},      {"And", HLO_AND},
    {"Or", HLO_OR},   {"Xor", HLO_XOR}, {"BitwiseAnd", HLO_AND}, {"BitwiseOr", HLO_OR}, {"BitwiseXor", HLO_XOR},
};

/* Adds a check that an integer divisor is not 0. */
static status check_divisor(const onnx_node *n) {
  return dtype_is_int(hlo_type(n->in[1])) ? onnx_check(n, n->in[1], "B", 0, NULL, false) : NULL;
}

status onnx_import_binary(onnx_node *n) {
  hlo_value x = n->in[0], y = n->in[1];
  TRY(onnx_broadcast_inputs(n, &x, &y));
  for (size_t k = 0; k < sizeof binary_ops / sizeof *binary_ops; k++) {
    if (strcmp(binary_ops[k].name, n->proto->op_type) == 0) {
      TRY(binary_ops[k].op == HLO_DIV ? check_divisor(n) : NULL);
      n->out[0] = hlo_binary(n->b, binary_ops[k].op, x, y);
      return NULL;
    }
  }
  return status_error(STATUS_INTERNAL, "%s has no row in binary_ops", n->proto->op_type);
}

static const struct comparison {
  const char *name;
  hlo_comparison comparison;
} comparisons[] = {
    {"Equal", HLO_EQ}, {"Greater", HLO_GT}, {"GreaterOrEqual", HLO_GE}, {"Less", HLO_LT}, {"LessOrEqual", HLO_LE},
};

/* Returns a size that is larger than all elements of x, if x has the positions 0, 1, 2, ... along a dimension or is a
 * short list of constants, otherwise DIM_OVERFLOW. */
static dim bound_of(dim_table *t, hlo_value x) {
  dim elements[HLO_MAX_SIZES], bound = 0;
  x = x.def->op == HLO_BROADCAST ? x.def->operands[0] : x;
  if (x.def->op == HLO_IOTA && hlo_rank(x) == 1) {
    return hlo_shape(x)->dims[0];
  }
  int n = hlo_literal(x) ? hlo_sizes_of(x, elements) : -1;
  for (int k = 0; k < n; k++) {
    bound = dim_known_at_most(t, bound, elements[k]) ? dim_signed_add(t, elements[k], 1) : bound;
  }
  return n < 0 ? DIM_OVERFLOW : bound;
}

/* Returns true if all elements of x are known to be less than those of y, which are all the same size.  PyTorch's
 * exporter writes so which repetitions of an element are taken (repeat_interleave). */
static bool are_all_less(const onnx_node *n, hlo_value x, hlo_value y) {
  if (n->b->error || hlo_type(x) != DTYPE_S64) {
    return false;
  }
  dim least = hlo_uniform_size(y), bound = least == DIM_OVERFLOW ? DIM_OVERFLOW : bound_of(onnx_dims(n), x);
  return bound != DIM_OVERFLOW && dim_known_at_most(onnx_dims(n), bound, least);
}

status onnx_import_compare(onnx_node *n) {
  hlo_value x = n->in[0], y = n->in[1];
  TRY(onnx_broadcast_inputs(n, &x, &y));
  for (size_t k = 0; k < sizeof comparisons / sizeof *comparisons; k++) {
    if (strcmp(comparisons[k].name, n->proto->op_type) == 0) {
      bool all_less = comparisons[k].comparison == HLO_LT && are_all_less(n, x, y);
      hlo_value compared = hlo_compare(n->b, comparisons[k].comparison, x, y);
      n->out[0] = all_less ? hlo_like(n->b, compared, 1) : compared;
      return NULL;
    }
  }
  return status_error(STATUS_INTERNAL, "%s has no row in comparisons", n->proto->op_type);
}

/* --- other operators of two operands, and Where --- */

/* Computes a remainder with the sign of the divisor, even if the remainder is a floating-point 0.  HLO's remainder has
 * the sign of the dividend. */
static hlo_value floor_mod(hlo_builder *b, hlo_value x, hlo_value y) {
  hlo_value r = hlo_binary(b, HLO_REM, x, y);
  if (dtype_is_unsigned(hlo_type(x))) {
    return r;
  }
  hlo_value below = onnx_compare_scalar(b, HLO_LT, y, 0);
  hlo_value signs = hlo_compare(b, HLO_NE, onnx_compare_scalar(b, HLO_LT, r, 0), below);
  hlo_value move = hlo_binary(b, HLO_AND, signs, onnx_compare_scalar(b, HLO_NE, r, 0));
  r = hlo_select(b, move, hlo_binary(b, HLO_ADD, r, y), r);
  if (dtype_is_float(hlo_type(x))) {
    hlo_value zero = hlo_select(b, below, hlo_like(b, r, -0.0), hlo_like(b, r, 0));
    r = hlo_select(b, onnx_compare_scalar(b, HLO_EQ, r, 0), zero, r);
  }
  return r;
}

/* Returns the remainder of a by b, which is positive.  Rolling by -2 starts at -2 % n, which is n-2 unless there are
 * fewer than 2 elements. */
static dim remainder_of(dim_table *t, dim a, dim b) {
  int64_t back;
  if (!dim_is_const(b) && dim_signed_value(t, a, &back) && back < 0) {
    if (dim_at_most(t, -back, b)) {
      return dim_signed_add(t, b, a);
    }
    a = dim_signed_add(t, dim_signed_mul(t, -back, b), a); /* not negative */
  }
  return dim_mod(t, a, b);
}

/* Sets *out to the remainders of sizes, or numbers computed from sizes, by positive ones, as expressions: a remainder
 * of dim.h has the sign of the divisor already, so no sign becomes a question about sizes. */
static bool mod_of_sizes(const onnx_node *n, hlo_value x, hlo_value y, hlo_value *out) {
  dim a[HLO_MAX_SIZES], b[HLO_MAX_SIZES];
  dim_table *t = onnx_dims(n);
  int count = hlo_sizes_of(x, a);
  if (hlo_type(x) != DTYPE_S64 || count < 0 || hlo_sizes_of(y, b) != count || (hlo_literal(x) && hlo_literal(y))) {
    return false;
  }
  for (int k = 0; k < count; k++) {
    if (!dim_at_most(t, 1, b[k])) {
      return false;
    }
    a[k] = remainder_of(t, a[k], b[k]);
  }
  *out = hlo_sizes(n->b, DTYPE_S64, hlo_rank(x) ? count : -1, a);
  return true;
}

status onnx_import_mod(onnx_node *n) {
  bool fmod;
  TRY(onnx_attr_bool(n->proto, "fmod", false, &fmod));
  hlo_builder *b = n->b;
  hlo_value x = n->in[0], y = n->in[1];
  CHECK_THAT(fmod || n->since >= 28 || !dtype_is_float(hlo_type(x)), STATUS_INVALID_MODEL,
             "A is %s; fmod must be 1 for floats before version 28", SHAPE_STR(onnx_dims(n), hlo_shape(x)));
  TRY(check_divisor(n));
  hlo_broadcast_both(b, &x, &y);
  if (!fmod && mod_of_sizes(n, x, y, &n->out[0])) {
    return NULL;
  }
  n->out[0] = fmod ? hlo_binary(b, HLO_REM, x, y) : floor_mod(b, x, y);
  return NULL;
}

/* Returns the type in which Pow computes if the types of base and exponent differ.  For integers a wider type is right,
 * since the low bits of the result do not depend on the width. */
static dtype pow_type(dtype x, dtype y) {
  if (x == y) {
    return x;
  }
  if (dtype_is_int(x) && dtype_is_int(y)) {
    return x == DTYPE_U64 ? DTYPE_U64 : DTYPE_S64;
  }
  bool wide = dtype_bytes(x) == 8 || dtype_bytes(y) == 8 || (dtype_is_int(x) && dtype_bytes(x) == 4);
  return wide && x != DTYPE_F32 ? DTYPE_F64 : DTYPE_F32;
}

status onnx_import_pow(onnx_node *n) {
  hlo_builder *b = n->b;
  hlo_value x = n->in[0], y = n->in[1];
  TRY(onnx_broadcast_inputs(n, &x, &y));
  dtype t = pow_type(hlo_type(x), hlo_type(y));
  hlo_value r = hlo_binary(b, HLO_POW, hlo_convert(b, x, t), hlo_convert(b, y, t));
  n->out[0] = hlo_convert(b, r, hlo_type(n->in[0]));
  return NULL;
}

status onnx_import_bit_shift(onnx_node *n) {
  const char *direction;
  TRY(onnx_attr_string(n->arena, n->proto, "direction", "", &direction));
  bool left = strcmp(direction, "LEFT") == 0;
  CHECK_THAT(left || strcmp(direction, "RIGHT") == 0, STATUS_INVALID_MODEL, "direction is '%s', not LEFT or RIGHT",
             direction);
  n->out[0] = hlo_binary_broadcast(n->b, left ? HLO_SHL : HLO_SHR, n->in[0], n->in[1]);
  return NULL;
}

status onnx_import_where(onnx_node *n) {
  hlo_builder *b = n->b;
  hlo_value condition = n->in[0], x = n->in[1], y = n->in[2];
  hlo_broadcast_both(b, &x, &y);
  hlo_broadcast_both(b, &condition, &x);
  y = hlo_broadcast_to(b, y, hlo_shape(x));
  n->out[0] = hlo_select(b, condition, x, y);
  return NULL;
}

/* --- variadic operators --- */

/* Combines all inputs, converted to type t, with the operation.  The inputs broadcast since version 8. */
static hlo_value combine_all(onnx_node *n, hlo_op op, dtype t) {
  hlo_value r = hlo_convert(n->b, n->in[0], t);
  for (uint32_t k = 1; k < n->n_in; k++) {
    const shape *first = hlo_shape(n->in[0]);
    if (n->since < 8 && !onnx_has_dims(n, hlo_shape(n->in[k]), first->rank, first->dims)) {
      hlo_fail(n->b,
               status_error(STATUS_INVALID_MODEL, "input %u is %s but input 0 is %s; version %d does not broadcast", k,
                            SHAPE_STR(onnx_dims(n), hlo_shape(n->in[k])), SHAPE_STR(onnx_dims(n), hlo_shape(n->in[0])),
                            n->since));
    }
    r = hlo_binary_broadcast(n->b, op, r, hlo_convert(n->b, n->in[k], t));
  }
  return r;
}

status onnx_import_variadic(onnx_node *n) {
  const char *name = n->proto->op_type;
  for (uint32_t k = 0; k < n->n_in; k++) {
    CHECK_THAT(n->in[k].def, STATUS_INVALID_MODEL, "input %u is missing", k);
  }
  bool extreme = strcmp(name, "Max") == 0 || strcmp(name, "Min") == 0;
  dtype type = hlo_type(n->in[0]), t = extreme ? type : dtype_compute_type(type);
  hlo_op op = !extreme ? HLO_ADD : strcmp(name, "Max") == 0 ? HLO_MAX : HLO_MIN;
  hlo_value r = combine_all(n, op, t);
  if (strcmp(name, "Mean") == 0 && n->n_in > 1) {
    r = onnx_binary_scalar(n->b, HLO_DIV, r, n->n_in);
  }
  n->out[0] = hlo_convert(n->b, r, type);
  return NULL;
}
