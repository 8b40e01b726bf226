/* fold_sizes.c - implements fold_sizes.h. */
#include "hlo/ir/fold_sizes.h"

#include <math.h>
#include <string.h>

#include "base/dim/guard.h"
#include "hlo/ir/element.h"

static dim_table *table_of(hlo_value v) { return v.def->parent->module->dims; }

static int constant_elements(dim_table *t, const literal *l, dim *elements) {
  int64_t n = shape_elements(&l->shape);
  if (l->shape.rank > 1 || n > HLO_MAX_SIZES || (!dtype_is_int((dtype)l->shape.type) && l->shape.type != DTYPE_PRED)) {
    return -1;
  }
  for (int64_t k = 0; k < n; k++) {
    elements[k] = dim_signed_const(t, literal_i64(l, k));
  }
  return (int)n;
}

int hlo_sizes_of(hlo_value v, dim elements[HLO_MAX_SIZES]) {
  const literal *l = hlo_literal(v);
  if (l) {
    return constant_elements(table_of(v), l, elements);
  }
  if (!v.def || v.def->op != HLO_SIZES || hlo_n_ints(v.def, HLO_ATTR_ELEMENTS) > HLO_MAX_SIZES) {
    return -1;
  }
  uint32_t n = hlo_n_ints(v.def, HLO_ATTR_ELEMENTS);
  memcpy(elements, hlo_ints(v.def, HLO_ATTR_ELEMENTS), n * sizeof *elements);
  return (int)n;
}

/* --- arithmetic --- */

static dim choose(dim_table *t, dim a, dim b, bool larger) { return dim_happens_greater(t, a, b) == larger ? a : b; }

/* HLO's division truncates towards zero, and that of dim.h rounds towards minus infinity; they agree if a is not
 * negative and b is positive.  If b is not positive, or not known to be, the result is DIM_OVERFLOW. */
static dim divide(dim_table *t, dim a, dim b, bool rest) {
  if (!dim_at_most(t, 1, b)) {
    return DIM_OVERFLOW;
  }
  if (!dim_at_most(t, 0, a)) {
    return dim_signed_sub(t, 0, divide(t, dim_signed_sub(t, 0, a), b, rest));
  }
  return rest ? dim_mod(t, a, b) : dim_floordiv(t, a, b);
}

static bool compare(dim_table *t, hlo_comparison c, dim a, dim b) {
  switch (c) {
    case HLO_EQ: return dim_equal(t, a, b);
    case HLO_NE: return !dim_equal(t, a, b);
    case HLO_LT: return !dim_at_most(t, b, a);
    case HLO_LE: return dim_at_most(t, a, b);
    case HLO_GT: return !dim_at_most(t, a, b);
    case HLO_GE: return dim_at_most(t, b, a);
  }
  return false;
}

/* Applies operation `op` to the sizes a and b, or to a alone if `op` has one operand.  Returns DIM_OVERFLOW if it
 * cannot be applied to symbolic sizes. */
static dim operate(const hlo_instr *i, dim_table *t, hlo_op op, dim a, dim b) {
  switch (op) {
    case HLO_ADD: return dim_signed_add(t, a, b);
    case HLO_SUB: return dim_signed_sub(t, a, b);
    case HLO_MUL: return dim_signed_mul(t, a, b);
    case HLO_DIV: return divide(t, a, b, false);
    case HLO_REM: return divide(t, a, b, true);
    case HLO_MAX: return choose(t, a, b, true);
    case HLO_MIN: return choose(t, a, b, false);
    case HLO_NEG: return dim_signed_sub(t, 0, a);
    case HLO_ABS: return dim_happens_greater(t, 0, a) ? dim_signed_sub(t, 0, a) : a;
    case HLO_COPY: return a;
    case HLO_COMPARE: return compare(t, (hlo_comparison)hlo_int(i, HLO_ATTR_COMPARISON), a, b);
    default: return DIM_OVERFLOW;
  }
}

/* Converts a size to the type `to`.  Returns DIM_OVERFLOW if it is not known, from the algebra of dims or from hints
 * (which adds a guard), that the type can hold the number. */
static dim convert(dim_table *t, dim a, dtype to) {
  if (to == DTYPE_PRED) {
    return !dim_equal(t, a, 0);
  }
  int64_t exact = to == DTYPE_F64   ? (int64_t)1 << 53
                  : to == DTYPE_F32 ? 1 << 24
                                    : 0; /* `to` holds integers up to this exactly */
  bool fits = to == DTYPE_S64 ||
              (exact && dim_at_most(t, a, exact) && dim_at_most(t, dim_signed_const(t, -exact), a)) ||
              (to == DTYPE_S32 && dim_at_most(t, a, INT32_MAX) && dim_at_most(t, dim_signed_const(t, INT32_MIN), a));
  return fits ? a : DIM_OVERFLOW;
}

/* --- instructions --- */

/* A sum or product of 32-bit integers wraps around, but expressions of symbols do not.  So it is folded only if the
 * result fits in 32 bits; if only the hints tell this, a guard is added. */
static dim operate_within(const hlo_instr *i, dim_table *t, hlo_op op, dim a, dim b) {
  dim d = operate(i, t, op, a, b);
  return i->shapes[0].type == DTYPE_S32 && d != DIM_OVERFLOW ? convert(t, d, DTYPE_S32) : d;
}

typedef struct known {
  int n;
  dim elements[HLO_MAX_SIZES];
} known;

static int fold_elementwise(const hlo_instr *i, dim_table *t, const known *x, dim *out) {
  dtype type = (dtype)i->shapes[0].type;
  bool rounds = i->op == HLO_FLOOR || i->op == HLO_CEIL ||
                i->op == HLO_ROUND; /* the elements are integers, which rounding does not change */
  bool is_float = type == DTYPE_F32 || type == DTYPE_F64;
  if (!(type == DTYPE_S64 || type == DTYPE_S32 || type == DTYPE_PRED) &&
      !(is_float && (rounds || i->op == HLO_CONVERT))) {
    return -1;
  }
  for (int k = 0; k < x[0].n; k++) {
    dim a = x[0].elements[k], b = i->n_operands > 1 ? x[1].elements[k] : 0;
    out[k] = i->op == HLO_CONVERT  ? convert(t, a, type)
             : rounds              ? a
             : i->op == HLO_SELECT ? (a ? b : x[2].elements[k])
                                   : operate_within(i, t, i->op, a, b);
    if (out[k] == DIM_OVERFLOW) {
      return -1;
    }
  }
  return x[0].n;
}

static int fold_concatenate(const hlo_instr *i, const known *x, dim *out) {
  int n = 0;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    for (int j = 0; j < x[k].n; j++) {
      if (n == HLO_MAX_SIZES) {
        return -1;
      }
      out[n++] = x[k].elements[j];
    }
  }
  return n;
}

static int fold_slice(const hlo_instr *i, const known *x, dim *out) {
  int n = 0;
  dim start = hlo_ints(i, HLO_ATTR_STARTS)[0], limit = hlo_ints(i, HLO_ATTR_LIMITS)[0];
  if (!dim_is_const(start) || !dim_is_const(limit)) {
    return -1;
  }
  for (int64_t k = start; k < limit; k += hlo_ints(i, HLO_ATTR_STRIDES)[0]) {
    out[n++] = x->elements[k];
  }
  return n;
}

static int fold_broadcast(const hlo_instr *i, const known *x, dim *out) {
  int64_t n = shape_elements(&i->shapes[0]);
  for (int64_t k = 0; k < n; k++) {
    out[k] = x->elements[x->n == 1 ? 0 : k];
  }
  return (int)n;
}

/* Folds a gather of single elements of the list x[0].  The indices, x[1], must be constants. */
static int fold_gather(const hlo_instr *i, const known *x, dim *out) {
  if (hlo_n_ints(i, HLO_ATTR_COLLAPSED_DIMS) != 1 || !hlo_literal(i->operands[1])) {
    return -1;
  }
  for (int k = 0; k < x[1].n; k++) {
    int64_t at = x[1].elements[k] < 0 ? 0 : x[1].elements[k];
    out[k] = x[0].elements[at < x[0].n ? at : x[0].n - 1];
  }
  return x[0].n ? x[1].n : -1;
}

static int fold_reverse(const known *x, dim *out) {
  for (int k = 0; k < x->n; k++) {
    out[k] = x->elements[x->n - 1 - k];
  }
  return x->n;
}

static int fold_reduce(const hlo_instr *i, dim_table *t, const known *x, dim *out) {
  hlo_reducer r = (hlo_reducer)hlo_int(i, HLO_ATTR_REDUCER);
  if (!x->n || r > HLO_REDUCE_MIN || i->shapes[0].type == DTYPE_PRED) {
    return -1;
  }
  out[0] = x->elements[0];
  for (int k = 1; k < x->n && out[0] != DIM_OVERFLOW; k++) {
    out[0] = operate_within(i, t, hlo_reducer_op(r), out[0], x->elements[k]);
  }
  return out[0] == DIM_OVERFLOW ? -1 : 1;
}

static int fold(const hlo_instr *i, dim_table *t, const known *x, dim *out) {
  switch (i->op) {
    case HLO_CONCAT: return fold_concatenate(i, x, out);
    case HLO_SLICE: return fold_slice(i, x, out);
    case HLO_BROADCAST: return fold_broadcast(i, x, out);
    case HLO_GATHER: return fold_gather(i, x, out);
    case HLO_REVERSE: return fold_reverse(x, out);
    case HLO_REDUCE: return fold_reduce(i, t, x, out);
    case HLO_RESHAPE:
    case HLO_TRANSPOSE: memcpy(out, x->elements, (size_t)x->n * sizeof *out); return x->n;
    default: return hlo_info(i)->kind == HLO_ELEMENTWISE || i->op == HLO_COPY ? fold_elementwise(i, t, x, out) : -1;
  }
}

/* --- numbers computed from sizes in floating point --- */

/* The number over / under.  The value that the model computes is this number; or, if `rounded` is set, the float
 * nearest to it, which has the same floor and ceiling (is_exact). */
typedef struct fraction {
  dim over;
  int64_t under;
  bool rounded;
} fraction;

/* Returns true if |over| is so small that a float of the type holds over / 2^k exactly.  Then a quotient over / c, with
 * an integer c, is 1/c or more away from any integer that it is not equal to, which is more than rounding changes it.
 * Adds a guard only if it returns true. */
static bool is_exact(dim_table *t, dim over, dtype type) {
  int64_t limit = type == DTYPE_F64 ? (int64_t)1 << 53 : 1 << 24, hint;
  return dim_hint(t, over, &hint) && hint < limit && -hint < limit && dim_at_most(t, over, limit - 1) &&
         dim_at_most(t, dim_signed_const(t, 1 - limit), over);
}

static bool constant_fraction(dim_table *t, double x, fraction *out) {
  enum { MOST_BITS = 24 };
  for (int k = 0; k < MOST_BITS && x != trunc(x); k++) {
    x *= 2;
    out->under *= 2;
  }
  out->over = fabs(x) < 0x1p53 && x == trunc(x) ? dim_signed_const(t, (int64_t)x) : DIM_OVERFLOW;
  return out->over != DIM_OVERFLOW;
}

static bool combine(hlo_op op, dtype type, dim_table *t, const fraction *a, const fraction *b, fraction *out) {
  dim left = dim_signed_mul(t, a->over, b->under), right = dim_signed_mul(t, b->over, a->under);
  int64_t divisor;
  *out = (fraction){DIM_OVERFLOW, a->under * b->under, false};
  switch (op) {
    case HLO_ADD: out->over = dim_signed_add(t, left, right); break;
    case HLO_SUB: out->over = dim_signed_sub(t, left, right); break;
    case HLO_MUL: out->over = dim_signed_mul(t, a->over, b->over); break;
    case HLO_MAX: *out = choose(t, left, right, true) == left ? *a : *b; return true; /* nothing is rounded */
    case HLO_MIN: *out = choose(t, left, right, false) == left ? *a : *b; return true;
    case HLO_DIV:
      if (dim_signed_value(t, b->over, &divisor) && divisor > 0 && divisor < INT32_MAX && b->under == 1) {
        *out = (fraction){a->over, a->under * divisor, (divisor & (divisor - 1)) != 0};
      }
      break;
    default: break;
  }
  return is_exact(t, out->over, type);
}

/* Reads element k of v, an array of floats whose shape is static and that are computed from sizes, within `depth`
 * operations. */
static bool read_fraction(dim_table *t, hlo_value v, int64_t k, int depth, fraction *out) {
  const hlo_instr *i = v.def;
  dtype type = hlo_type(v);
  fraction x[2];
  *out = (fraction){0, 1, false};
  if (hlo_literal(v)) {
    return constant_fraction(t, literal_f64(hlo_literal(v), k), out);
  }
  if (i->op == HLO_SIZES) {
    out->over = hlo_ints(i, HLO_ATTR_ELEMENTS)[k];
    return true;
  }
  if (i->op == HLO_BROADCAST || i->op == HLO_RESHAPE) { /* of one element, or of as many, which keep their order */
    const shape *from = hlo_shape(i->operands[0]);
    int64_t n = shape_is_static(from) ? shape_elements(from) : -1;
    bool in_order = depth > 0 && (n == 1 || n == shape_elements(hlo_shape(v)));
    return in_order && read_fraction(t, i->operands[0], n == 1 ? 0 : k, depth - 1, out);
  }
  if (depth == 0 || hlo_info(i)->kind != HLO_ELEMENTWISE) {
    return false;
  }
  if (i->op == HLO_ABS || i->op == HLO_SIGN) {
    bool positive = read_fraction(t, i->operands[0], k, depth - 1, out) && dim_at_most(t, 1, out->over);
    *out = i->op == HLO_SIGN ? (fraction){1, 1, false} : *out;
    return positive;
  }
  if (i->n_operands != 2) {
    return false;
  }
  for (int j = 0; j < 2; j++) {
    if (!read_fraction(t, i->operands[j], k, depth - 1, &x[j]) || x[j].rounded || x[j].under > 1 << 24) {
      return false;
    }
  }
  return combine(i->op, type, t, &x[0], &x[1], out);
}

/* Folds the floor, the ceiling or the conversion to integers of floats that are computed from sizes. */
static int fold_fractions(const hlo_instr *i, dim_table *t, dim *out) {
  enum { DEPTH = 8 };
  dtype from = hlo_type(i->operands[0]), to = (dtype)i->shapes[0].type;
  const shape *s = i->shapes;
  bool converts = i->op == HLO_CONVERT && (to == DTYPE_S64 || to == DTYPE_S32);
  if (hlo_literal(i->operands[0]) || !(i->op == HLO_FLOOR || i->op == HLO_CEIL || converts) ||
      !(from == DTYPE_F32 || from == DTYPE_F64) || s->rank > 1 || !shape_is_static(s) ||
      shape_elements(s) > HLO_MAX_SIZES) {
    return -1;
  }
  int n = (int)shape_elements(s);
  for (int k = 0; k < n; k++) {
    fraction x;
    if (!read_fraction(t, i->operands[0], k, DEPTH, &x) || (x.under > 1 && !dim_at_most(t, 0, x.over))) {
      return -1;
    }
    dim d = x.under == 1        ? x.over
            : i->op == HLO_CEIL ? dim_ceildiv(t, x.over, x.under)
                                : dim_floordiv(t, x.over, x.under);
    out[k] = converts ? convert(t, d, to) : d;
    if (out[k] == DIM_OVERFLOW) {
      return -1;
    }
  }
  return n;
}

/* --- tables of sizes --- */

/* Returns element k, in row-major order, of a table of sizes, which was made from lists and constants and reshaped,
 * transposed, reversed, cut or converted within `depth` operations, or DIM_OVERFLOW. */
static dim moved_element(hlo_value v, int64_t k, int depth) {
  dim elements[HLO_MAX_SIZES];
  const hlo_instr *i = v.def;
  dim_table *t = table_of(v);
  int n = hlo_sizes_of(v, elements);
  if (n >= 0) {
    return k < n ? elements[k] : DIM_OVERFLOW;
  }
  if (!dtype_is_int(hlo_type(v))) {
    return DIM_OVERFLOW;
  }
  if (hlo_literal(v)) {
    return dim_signed_const(t, literal_i64(hlo_literal(v), k));
  }
  hlo_value from = depth > 0 ? hlo_element_source(i, &k) : (hlo_value){0};
  dim d = from.def ? moved_element(from, k, depth - 1) : DIM_OVERFLOW;
  return d != DIM_OVERFLOW && i->op == HLO_CONVERT ? convert(t, d, hlo_type(v)) : d;
}

/* Folds the reshape of a table of sizes to a list.  Exporters write the amounts of Pad so: PyTorch's in pairs, which
 * they reverse and transpose; TensorFlow's as rows of two, which are joined, converted and transposed. */
static int fold_table(const hlo_instr *i, dim *out) {
  enum { DEPTH = 8 };
  const shape *s = i->shapes;
  if (i->op != HLO_RESHAPE || s->rank > 1 || hlo_rank(i->operands[0]) < 2 || !dtype_is_int((dtype)s->type) ||
      !shape_is_static(s) || shape_elements(s) > HLO_MAX_SIZES) {
    return -1;
  }
  int n = (int)shape_elements(s);
  for (int k = 0; k < n; k++) {
    out[k] = moved_element(i->operands[0], k, DEPTH);
    if (out[k] == DIM_OVERFLOW) {
      return -1;
    }
  }
  return n;
}

/* Returns the integer that all elements are, DIM_OVERFLOW if they differ, or if they are many, which are not compared.
 */
static dim equal_elements(dim_table *t, const literal *l) {
  enum { MOST = 1 << 12 };
  int64_t n = shape_elements(&l->shape);
  bool same = n > 0 && n <= MOST;
  for (int64_t k = 1; k < n && same; k++) {
    same = literal_i64(l, k) == literal_i64(l, 0);
  }
  return same ? dim_signed_const(t, literal_i64(l, 0)) : DIM_OVERFLOW;
}

/* Returns the size that all elements of v are, if v is computed within `depth` operations from single sizes, or
 * DIM_OVERFLOW. */
static dim uniform_element(hlo_value v, int depth) {
  dim elements[HLO_MAX_SIZES];
  const hlo_instr *i = v.def;
  if (hlo_literal(v)) {
    return equal_elements(table_of(v), hlo_literal(v));
  }
  int n = hlo_sizes_of(v, elements);
  if (n >= 0 || depth == 0) {
    return n == 1 ? elements[0] : DIM_OVERFLOW;
  }
  if (i->op == HLO_BROADCAST || i->op == HLO_RESHAPE) {
    return uniform_element(i->operands[0], depth - 1);
  }
  if (i->op != HLO_ADD && i->op != HLO_MUL) {
    return DIM_OVERFLOW;
  }
  dim a = uniform_element(i->operands[0], depth - 1), b = uniform_element(i->operands[1], depth - 1);
  bool both = a != DIM_OVERFLOW && b != DIM_OVERFLOW;
  return both ? operate_within(i, table_of(v), i->op, a, b) : DIM_OVERFLOW;
}

dim hlo_uniform_size(hlo_value v) {
  enum { DEPTH = 6 };
  bool integers = hlo_type(v) == DTYPE_S64 || hlo_type(v) == DTYPE_S32;
  return integers ? uniform_element(v, DEPTH) : DIM_OVERFLOW;
}

/* Folds the largest or smallest element of an array whose elements are all the same size.  PyTorch's exporter writes so
 * how often repeat_interleave repeats. */
static int fold_extreme_of_uniform(const hlo_instr *i, dim_table *t, dim *out) {
  if (i->op != HLO_REDUCE || i->shapes[0].rank != 0 ||
      (hlo_int(i, HLO_ATTR_REDUCER) != HLO_REDUCE_MAX && hlo_int(i, HLO_ATTR_REDUCER) != HLO_REDUCE_MIN)) {
    return -1;
  }
  const shape *s = hlo_shape(i->operands[0]);
  out[0] = hlo_uniform_size(i->operands[0]);
  return out[0] != DIM_OVERFLOW && dim_at_most(t, 1, shape_dim_product(t, s, 0, s->rank)) ? 1 : -1;
}

/* Sets elements[] to those of a constant list of integral floats that a comparison reads beside sizes, and returns
 * their number, or -1. */
static int integral_floats(const hlo_instr *i, hlo_value v, dim *elements) {
  const literal *l = hlo_literal(v);
  int64_t n = l && i->op == HLO_COMPARE && dtype_is_float(hlo_type(v)) ? shape_elements(&l->shape) : -1;
  for (int64_t k = 0; k < n; k++) {
    double x = literal_f64(l, k);
    if (fabs(x) >= 0x1p53 || x != trunc(x)) { /* or NaN */
      return -1;
    }
    elements[k] = dim_signed_const(table_of(v), (int64_t)x);
  }
  return (int)n;
}

/* Returns true if i has one result, which is a short list, and an operand that is an instruction `sizes` (a list of
 * expressions of symbols). */
static bool may_fold(const hlo_instr *i) {
  enum { MAX_OPERANDS = 16 };
  bool sizes = false;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    sizes |= i->operands[k].def->op == HLO_SIZES;
  }
  const shape *s = i->shapes;
  return sizes && i->n_results == 1 && i->n_operands <= MAX_OPERANDS && s->kind == SHAPE_ARRAY && s->rank <= 1 &&
         shape_is_static(s) && shape_elements(s) <= HLO_MAX_SIZES;
}

int hlo_fold_sizes(const hlo_instr *i, dim elements[HLO_MAX_SIZES]) {
  dim_table *t = i->parent->module->dims;
  if (!may_fold(i)) {
    int n = i->n_operands == 1 ? fold_fractions(i, t, elements) : -1;
    n = n < 0 && i->n_operands == 1 ? fold_table(i, elements) : n;
    return n < 0 && i->n_operands == 1 ? fold_extreme_of_uniform(i, t, elements) : n;
  }
  known *operands = ARENA_NEW_N(i->parent->module->arena, known, i->n_operands);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    operands[k].n = hlo_sizes_of(i->operands[k], operands[k].elements);
    operands[k].n = operands[k].n < 0 ? integral_floats(i, i->operands[k], operands[k].elements) : operands[k].n;
    if (operands[k].n < 0) {
      return -1;
    }
  }
  return fold(i, t, operands, elements);
}

bool hlo_constant_sizes(const dim_table *t, int n, const dim *elements, int64_t *values) {
  for (int k = 0; k < n; k++) {
    if (!dim_signed_value(t, elements[k], &values[k])) {
      return false;
    }
  }
  return true;
}

literal hlo_sizes_literal(arena *a, shape s, const int64_t *values) {
  void *data;
  literal l = literal_new(a, s, &data);
  size_t size = dtype_bytes((dtype)s.type);
  for (int64_t k = 0, n = shape_elements(&s); k < n; k++) {
    void *at = (char *)data + (size_t)k * size;
    if (dtype_is_float((dtype)s.type)) {
      dtype_store_f64((dtype)s.type, at, (double)values[k], true, DTYPE_ROUND_NEAREST);
    } else {
      dtype_store_i64((dtype)s.type, at, values[k]);
    }
  }
  return l;
}

hlo_value hlo_sizes(hlo_builder *b, dtype type, int n, const dim *elements) {
  int64_t values[HLO_MAX_SIZES];
  uint32_t count = n < 0 ? 1 : (uint32_t)n;
  shape s = shape_make(type, n < 0 ? 0 : 1, (dim[]){n});
  if (count <= HLO_MAX_SIZES && hlo_constant_sizes(b->computation->module->dims, (int)count, elements, values)) {
    return hlo_constant(b, hlo_sizes_literal(hlo_arena(b), s, values));
  }
  hlo_attr attr = {.n = count, .ints = elements};
  hlo_instr *i = hlo_build(b, HLO_SIZES, 0, NULL, 1, &s, &attr);
  return (hlo_value){i, 0};
}
