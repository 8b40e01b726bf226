/* quantized.c - see quantized.h. */
#include "hlo/analysis/quantized.h"

#include <math.h>

#include "base/arith.h"
#include "hlo/analysis/pattern.h"

/* --- arrays that are broadcast from one number or a list (hlo_along) --- */

/* Returns the only dimension along which a constant varies, -1 if there is none, or -2 if there are several or the
 * constant is large. */
static int varies_along(const literal *l) {
  enum { MAX_BYTES = 1 << 16 };
  int64_t strides[SHAPE_MAX_RANK];
  if (shape_bytes(&l->shape) > MAX_BYTES) {
    return -2;
  }
  if (literal_is_splat(l)) {
    return -1;
  }
  shape_strides(&l->shape, strides);
  int axis = -1;
  for (int64_t k = 0, n = shape_elements(&l->shape); k < n; k++) {
    double x = literal_f64(l, k);
    for (int d = 0; d < l->shape.rank; d++) {
      bool moved = k / strides[d] % l->shape.dims[d] > 0;
      if (d != axis && moved && literal_f64(l, k - strides[d]) != x) {
        if (axis >= 0) {
          return -2;
        }
        axis = d;
      }
    }
  }
  return axis;
}

static bool along_constant(hlo_value v, const literal *l, hlo_along *out) {
  int64_t strides[SHAPE_MAX_RANK];
  int axis = varies_along(l);
  if (axis == -2) {
    return false;
  }
  shape_strides(&l->shape, strides);
  *out = (hlo_along){v, axis, axis < 0 ? 1 : l->shape.dims[axis], axis < 0 ? 1 : strides[axis]};
  return true;
}

bool hlo_along_of(hlo_value v, hlo_along *out) {
  const literal *l = hlo_literal(v);
  if (dtype_is_complex(hlo_type(v)) || shape_is_empty(hlo_shape(v))) {
    return false;
  }
  if (l) {
    return along_constant(v, l, out);
  }
  if (hlo_rank(v) == 0) {
    *out = (hlo_along){v, -1, 1, 1};
    return true;
  }
  if (v.def->op != HLO_BROADCAST) {
    return false;
  }
  hlo_value x = v.def->operands[0];
  const int64_t *to = hlo_ints(v.def, HLO_ATTR_DIMENSIONS);
  if (!shape_is_static(hlo_shape(x))) {
    return false;
  }
  *out = (hlo_along){x, -1, 1, 1};
  for (int d = 0; d < hlo_rank(x); d++) {
    if (hlo_shape(x)->dims[d] != 1) {
      if (out->axis >= 0) {
        return false;
      }
      out->axis = (int)to[d];
      out->n = hlo_shape(x)->dims[d];
    }
  }
  return true;
}

bool hlo_along_is_const(const hlo_along *a) { return hlo_literal(a->v) != NULL; }

double hlo_along_at(const hlo_along *a, int64_t k) {
  return literal_f64(hlo_literal(a->v), a->n == 1 ? 0 : k * a->step);
}

bool hlo_along_equal(const hlo_along *a, const hlo_along *b) {
  if (!hlo_along_is_const(a) || !hlo_along_is_const(b) || a->n != b->n || (a->n > 1 && a->axis != b->axis)) {
    return false;
  }
  for (int64_t k = 0; k < a->n; k++) {
    if (hlo_along_at(a, k) != hlo_along_at(b, k)) {
      return false;
    }
  }
  return true;
}

/* --- quantised arrays --- */

static bool is_byte(hlo_value v) { return hlo_type(v) == DTYPE_S8 || hlo_type(v) == DTYPE_U8; }
static bool is_small_int(hlo_value v) { return dtype_is_int(hlo_type(v)) && dtype_get_info(hlo_type(v))->bits <= 8; }

/* Conditions for P_IF, which tests values in patterns. */
static bool is_quantized(hlo_value v, void *data) {
  (void)data;
  return is_byte(v) || (hlo_literal(v) && is_small_int(v));
}
static bool is_constant_s32(hlo_value v, void *data) {
  (void)data;
  return hlo_literal(v) && hlo_type(v) == DTYPE_S32;
}
static bool is_weight(hlo_value v, void *data) {
  (void)data;
  return is_small_int(v);
}
static bool read_along(hlo_value v, void *along) { return hlo_along_of(v, along); }

/* If v is converted from an integer type of at most 16 bits, returns the operand of the conversion, otherwise v. */
static hlo_value before_widening(hlo_value v) {
  hlo_value narrow = v.def->op == HLO_CONVERT ? v.def->operands[0] : v;
  return dtype_is_int(hlo_type(narrow)) && dtype_bytes(hlo_type(narrow)) <= 2 ? narrow : v;
}

/* Reads a zero point, which may be converted before or after it is broadcast, as an hlo_along. */
static bool read_zero(hlo_value v, void *along) {
  hlo_along *zero = along;
  bool found = hlo_along_of(before_widening(v), zero);
  zero->v = found ? before_widening(zero->v) : zero->v;
  return found;
}

/* Sets *number to the value of all elements of v.  Returns false unless v is a constant with equal elements. */
static bool read_number(hlo_value v, void *number) {
  hlo_along a;
  if (!hlo_along_of(before_widening(v), &a) || a.n != 1 || !hlo_along_is_const(&a)) {
    return false;
  }
  *(double *)number = hlo_along_at(&a, 0);
  return true;
}

/* Patterns for q of an hlo_quantized, for a constant convert(q) that was folded, and for the s32 numbers convert(q) or
 * convert(q) - zero. */
#define P_CONSTANT_INTEGERS(quantized) P_AS(&(quantized)->q, P_IF(is_constant_s32, NULL))
#define P_QUANTIZED(quantized) P_AS(&(quantized)->q, P_IF(is_quantized, NULL))
#define P_CENTERED(quantized, zero_value)                                                                            \
  P_TYPE(DTYPE_S32,                                                                                                  \
         P_EITHER(P_OP(HLO_SUB, P_EITHER(P_OP(HLO_CONVERT, P_QUANTIZED(quantized)), P_CONSTANT_INTEGERS(quantized)), \
                       P_AS(zero_value, P_IF(read_zero, &(quantized)->zero))),                                       \
                  P_OP(HLO_CONVERT, P_QUANTIZED(quantized))))

/* Returns true if the pattern matched a zero point, `zero_value` (read as `zero`), that is not the constant 0. */
static bool is_not_zero(hlo_value zero_value, const hlo_along *zero) {
  return zero_value.def && !(hlo_along_is_const(zero) && zero->n == 1 && hlo_along_at(zero, 0) == 0);
}

bool hlo_centered_of(hlo_value v, hlo_quantized *out) {
  hlo_value zero = {0};
  *out = (hlo_quantized){0};
  bool found = hlo_match(v, P_CENTERED(out, &zero));
  out->has_zero = found && is_not_zero(zero, &out->zero);
  return found;
}

bool hlo_dequantized_of(hlo_value v, hlo_quantized *out) {
  hlo_value zero = {0};
  *out = (hlo_quantized){0};
  const hlo_pattern *integers = P_EITHER(P_QUANTIZED(out), P_CENTERED(out, &zero));
  const hlo_pattern *scaled = P_COMMUTE(HLO_MUL, P_OP(HLO_CONVERT, integers), P_IF(read_along, &out->scale));
  bool found = hlo_match(v, P_TYPE(DTYPE_F32, scaled));
  out->has_zero = found && is_not_zero(zero, &out->zero);
  return found;
}

/* Returns true if x is an integer that the type has. */
static bool has_number(dtype t, double x) { return x >= dtype_lowest_f64(t) && x <= dtype_max_f64(t) && x == rint(x); }

bool hlo_has_own_zero(const hlo_quantized *x) {
  dtype t = hlo_type(x->q);
  if (!x->has_zero || x->zero.n != 1 || !hlo_along_is_const(&x->zero)) {
    return !x->has_zero || (x->zero.n == 1 && hlo_type(x->zero.v) == t);
  }
  return has_number(t, hlo_along_at(&x->zero, 0));
}

bool hlo_requantized_of(hlo_value v, hlo_requantized *out) {
  hlo_value rounded, sum = {0};
  *out = (hlo_requantized){0};
  const hlo_pattern *round = P_AS(&rounded, P_OP(HLO_ROUND, P_ANY(&out->v)));
  const hlo_pattern *shifted = P_AS(&sum, P_COMMUTE(HLO_ADD, round, P_IF(read_number, &out->zero)));
  const hlo_pattern *clamp =
      P_OP(HLO_CLAMP, P_IF(read_number, &out->low), P_EITHER(shifted, round), P_IF(read_number, &out->high));
  if (!is_byte(v) || !hlo_match(v, P_OP(HLO_CONVERT, P_TYPE(DTYPE_F32, clamp)))) {
    return false;
  }
  out->round = rounded.def;
  out->addition = sum.def;
  return has_number(hlo_type(v), out->zero) && has_number(hlo_type(v), out->low) && has_number(hlo_type(v), out->high);
}

/* --- weights of contractions --- */

int hlo_output_dim(const hlo_instr *contraction) {
  uint32_t dims = 1; /* as bits; those of a convolution */
  if (contraction->op == HLO_DOT) {
    dims = (1u << hlo_rank(contraction->operands[1])) - 1;
    for (uint32_t k = 0; k < hlo_n_ints(contraction, HLO_ATTR_RHS_CONTRACT); k++) {
      dims &= ~(1u << hlo_ints(contraction, HLO_ATTR_RHS_CONTRACT)[k]);
    }
  }
  bool has_batch = contraction->op == HLO_DOT && hlo_n_ints(contraction, HLO_ATTR_RHS_BATCH);
  return dims == 0 || (dims & (dims - 1)) || has_batch ? -1 : __builtin_ctz(dims);
}

bool hlo_has_output_zeros(const hlo_quantized *x, int outputs) {
  return !x->has_zero || (hlo_along_is_const(&x->zero) && (x->zero.n == 1 || x->zero.axis == outputs));
}

int64_t hlo_weight_at(const hlo_quantized *x, int64_t k, int64_t output) {
  return literal_i64(hlo_literal(x->q), k) - (x->has_zero ? (int64_t)hlo_along_at(&x->zero, output) : 0);
}

/* --- weights of small integers --- */

/* Returns true if v is a broadcast whose elements do not change along dimension d. */
static bool is_even_along(hlo_value v, int d) {
  if (v.def->op != HLO_BROADCAST) {
    return false;
  }
  for (int k = 0; k < hlo_rank(v.def->operands[0]); k++) {
    if (hlo_ints(v.def, HLO_ATTR_DIMENSIONS)[k] == d && hlo_shape(v.def->operands[0])->dims[k] != 1) {
      return false;
    }
  }
  return true;
}

/* Matches v with the form that hlo_quantized_weights describes, and sets out->members, q, scale and zero.  *matrix
 * becomes the value before the transpose, if there is one, and *scaled the product before the reshape. */
static bool match_weights(hlo_value v, hlo_value *matrix, hlo_value *scaled, hlo_quantized_weights *out) {
  hlo_matched found;
  const hlo_pattern *q = P_OP(HLO_CONVERT, P_AS(&out->q, P_IF(is_weight, NULL)));
  const hlo_pattern *centered = P_TYPE(DTYPE_S32, P_OP(HLO_SUB, q, P_ANY(&out->zero)));
  const hlo_pattern *product = P_COMMUTE(HLO_MUL, P_EITHER(P_OP(HLO_CONVERT, centered), q), P_ANY(&out->scale));
  const hlo_pattern *joined = P_AS(matrix, P_BEHIND(HLO_RESHAPE, 1, P_AS(scaled, product)));
  if (!hlo_match_listed(v, P_BEHIND(HLO_TRANSPOSE, 1, joined), &found)) {
    return false;
  }
  for (out->n = 0; out->n < found.n; out->n++) {
    out->members[out->n] = found.list[found.n - 1 - out->n];
  }
  return true;
}

/* Returns true if each of w->members has one use, which is by the next one or by the dot. */
static bool is_chain(const hlo_quantized_weights *w) {
  bool once = true;
  for (uint32_t k = 0; k < w->n; k++) {
    once = once && hlo_used_once(hlo_result(w->members[k], 0));
  }
  return once;
}

/* Sets the sizes, distances and dimensions in *out.  The matrix `joined` is `scaled` itself, or `scaled`
 * after a reshape that merges the dimension of blocks with the dimension in a block.  The dot contracts
 * dimension `contract` of it.  Returns false if the blocks do not divide that dimension. */
static bool measure(hlo_value joined, hlo_value scaled, int contract, hlo_quantized_weights *out) {
  const shape *matrix = hlo_shape(joined), *s = hlo_shape(scaled);
  bool blocks = joined.def != scaled.def;
  if (s->rank != 2 + blocks || (blocks && s->dims[contract] * s->dims[contract + 1] != matrix->dims[contract])) {
    return false;
  }
  out->block_dim = blocks ? contract + 1 : -1;
  out->sum_dim = contract;
  out->column_dim = contract == 1 ? 0 : 1 + blocks;
  out->sums = matrix->dims[contract];
  out->columns = matrix->dims[1 - contract];
  out->block = blocks ? s->dims[out->block_dim] : out->sums;
  out->sum_step = contract == 0 ? out->columns : 1;
  out->column_step = contract == 0 ? 1 : out->sums;
  return out->sums > 0 && out->columns > 0;
}

/* Returns how many columns the array has in memory from which the broadcast v, a scale or zero point, is made;
 * INT64_MAX if all columns have the same number. */
static int64_t stored_columns(const hlo_quantized_weights *w, hlo_value v) {
  hlo_value x = v.def->operands[0];
  int d = hlo_find_int(v.def, HLO_ATTR_DIMENSIONS, w->column_dim);
  if (d < 0 || hlo_shape(x)->dims[d] != w->columns) {
    return INT64_MAX;
  }
  if (x.def->op == HLO_TRANSPOSE) {
    d = (int)hlo_ints(x.def, HLO_ATTR_PERMUTATION)[d];
    x = x.def->operands[0];
  }
  bool begins =
      x.def->op == HLO_SLICE && hlo_ints(x.def, HLO_ATTR_STARTS)[d] == 0 && hlo_ints(x.def, HLO_ATTR_STRIDES)[d] == 1;
  return hlo_shape(begins ? x.def->operands[0] : x)->dims[d];
}

bool hlo_has_whole_vectors(const hlo_quantized_weights *w) {
  int64_t n = round_up(w->columns, HLO_MOST_COLUMNS);
  return n == w->columns || (stored_columns(w, w->scale) >= n && (!w->zero.def || stored_columns(w, w->zero) >= n));
}

const literal *hlo_stored_numbers(hlo_value v) {
  const literal *l = hlo_literal(v.def->operands[0]);
  return l && l->shape.rank <= 2 ? l : NULL;
}

bool hlo_quantized_weights_of(const hlo_instr *dot, hlo_quantized_weights *out) {
  *out = (hlo_quantized_weights){.block_dim = -1};
  hlo_value v = dot->operands[1], matrix, scaled;
  if (dot->op != HLO_DOT || hlo_n_ints(dot, HLO_ATTR_RHS_BATCH) || hlo_n_ints(dot, HLO_ATTR_RHS_CONTRACT) != 1 ||
      hlo_rank(v) != 2 || hlo_type(v) != DTYPE_F32 || hlo_value_equal(v, dot->operands[0]) ||
      !match_weights(v, &matrix, &scaled, out)) {
    return false;
  }
  int contract = (int)hlo_ints(dot, HLO_ATTR_RHS_CONTRACT)[0];
  if (v.def != matrix.def) { /* a transpose exchanges the matrix's two dimensions */
    contract = (int)hlo_ints(v.def, HLO_ATTR_PERMUTATION)[contract];
  }
  if (!measure(matrix, scaled, contract, out)) {
    return false;
  }
  out->scaled = scaled.def;
  int even = out->block_dim < 0 ? contract : out->block_dim;
  return is_even_along(out->scale, even) && (!out->zero.def || is_even_along(out->zero, even)) && is_chain(out);
}
