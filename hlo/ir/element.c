/* element.c - see element.h. */
#include "hlo/ir/element.h"

#include <math.h>
#include <string.h>

#include "base/dim/guard.h"
#include "hlo/ir/fold_sizes.h"

/* --- movement --- */

/* Sets position[] to the place in the operand of i, a transpose, slice or reverse, of the element at position[] of the
 * result. */
static void move_back(const hlo_instr *i, int64_t *position) {
  const shape *from = hlo_shape(i->operands[0]);
  int64_t at[SHAPE_MAX_RANK];
  memcpy(at, position, sizeof at);
  for (int d = 0; d < from->rank; d++) {
    if (i->op == HLO_TRANSPOSE) {
      position[hlo_ints(i, HLO_ATTR_PERMUTATION)[d]] = at[d];
    } else if (i->op == HLO_SLICE) {
      position[d] = hlo_ints(i, HLO_ATTR_STARTS)[d] + at[d] * hlo_ints(i, HLO_ATTR_STRIDES)[d];
    }
  }
  for (uint32_t k = 0; i->op == HLO_REVERSE && k < hlo_n_ints(i, HLO_ATTR_DIMENSIONS); k++) {
    int64_t d = hlo_ints(i, HLO_ATTR_DIMENSIONS)[k];
    position[d] = from->dims[d] - 1 - at[d];
  }
}

/* Sets position[] to the place of an element of the concatenation i in one of its operands, and returns that. */
static hlo_value part_with(const hlo_instr *i, int64_t *position) {
  int64_t axis = hlo_int(i, HLO_ATTR_DIMENSION);
  uint32_t k = 0;
  while (position[axis] >= hlo_shape(i->operands[k])->dims[axis]) {
    position[axis] -= hlo_shape(i->operands[k++])->dims[axis];
  }
  return i->operands[k];
}

/* Sets position[] to the place of an element of the array i, which is padded, in the array that is inside, and returns
 * that array, or the padding, a scalar. */
static hlo_value inside_of(const hlo_instr *i, int64_t *position) {
  for (int d = 0; d < i->shapes[0].rank; d++) {
    int64_t distance = hlo_ints(i, HLO_ATTR_INTERIOR)[d] + 1, from_first = position[d] - hlo_ints(i, HLO_ATTR_LOW)[d];
    position[d] = from_first / distance;
    if (from_first < 0 || from_first % distance || position[d] >= hlo_shape(i->operands[0])->dims[d]) {
      memset(position, 0, SHAPE_MAX_RANK * sizeof *position);
      return i->operands[1];
    }
  }
  return i->operands[0];
}

/* Returns true if the shapes of i, and the positions at which it cuts, are constants. */
static bool is_static(const hlo_instr *i) {
  bool all = shape_is_static(&i->shapes[0]);
  for (int d = 0; i->op == HLO_SLICE && d < i->shapes[0].rank; d++) {
    all = all && dim_is_const(hlo_ints(i, HLO_ATTR_STARTS)[d]);
  }
  for (uint32_t k = 0; all && k < i->n_operands; k++) {
    all = shape_is_static(hlo_shape(i->operands[k]));
  }
  return all;
}

static bool moves(hlo_op op) {
  return op == HLO_TRANSPOSE || op == HLO_SLICE || op == HLO_REVERSE || op == HLO_CONCAT || op == HLO_PAD;
}

hlo_value hlo_element_source(const hlo_instr *i, int64_t *k) {
  int64_t position[SHAPE_MAX_RANK] = {0}, strides[SHAPE_MAX_RANK];
  bool keeps = i->op == HLO_RESHAPE || i->op == HLO_CONVERT;
  if ((!keeps && !moves(i->op)) || !is_static(i)) {
    return (hlo_value){0};
  }
  hlo_value from = i->operands[0];
  if (keeps) {
    return from;
  }
  shape_strides(&i->shapes[0], strides);
  for (int64_t d = 0, rest = *k; d < i->shapes[0].rank; rest %= strides[d], d++) {
    position[d] = rest / strides[d];
  }
  if (i->op == HLO_CONCAT) {
    from = part_with(i, position);
  } else if (i->op == HLO_PAD) {
    from = inside_of(i, position);
  } else {
    move_back(i, position);
  }
  shape_strides(hlo_shape(from), strides);
  *k = 0;
  for (int d = 0; d < hlo_rank(from); d++) {
    *k += position[d] * strides[d];
  }
  return from;
}

/* --- values --- */

static const hlo_element UNKNOWN = {DIM_OVERFLOW, INT64_MIN};

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static hlo_element of_literal(dim_table *t, const literal *l, int64_t k) {
  double x = literal_f64(l, k);
  if (dtype_is_float((dtype)l->shape.type)) {
    bool whole = fabs(x) < 0x1p53 && x == trunc(x);
    return whole ? (hlo_element){dim_signed_const(t, (int64_t)x), (int64_t)x} : UNKNOWN;
  }
  int64_t n = literal_i64(l, k);
  return (hlo_element){n > DIM_MAX || n < -DIM_MAX ? DIM_OVERFLOW : dim_signed_const(t, n), n};
}

static hlo_element of_size(const dim_table *t, dim d) {
  int64_t value;
  return (hlo_element){d, dim_signed_value(t, d, &value) ? value : INT64_MIN};
}

/* Returns what is known of x after the conversion.  Integers of fewer bits wrap, so a bound is not one of them.  Floats
 * round, but not beyond a bound that they hold exactly. */
static hlo_element converted(dim_table *t, const hlo_element *x, dtype from, dtype to) {
  int64_t value, exact = to == DTYPE_F32 ? 1 << 24 : to == DTYPE_F64 ? (int64_t)1 << 53 : INT64_MAX;
  bool known = dim_signed_value(t, x->value, &value), wraps = dtype_is_int(from) && to != DTYPE_S64 && dtype_is_int(to);
  if (known) {
    bool fits = to == DTYPE_S32 ? value == (int32_t)value : to == DTYPE_S64 || (value <= exact && value >= -exact);
    return fits ? *x : UNKNOWN;
  }
  bool holds = to == DTYPE_F32 ? (double)(float)x->least == (double)x->least : dtype_is_int(to) || to == DTYPE_F64;
  bool in_range = to != DTYPE_S32 || x->least <= INT32_MAX;
  return (hlo_element){DIM_OVERFLOW, wraps || !holds || !in_range ? INT64_MIN : x->least};
}

static bool is_number(dtype t) {
  return t == DTYPE_S64 || t == DTYPE_S32 || t == DTYPE_F32 || t == DTYPE_F64 || t == DTYPE_PRED;
}

static bool is_constant(const dim_table *t, const hlo_element *x, int64_t want) {
  int64_t value;
  return x->value != DIM_OVERFLOW && dim_signed_value(t, x->value, &value) && value == want;
}

/* Returns what is known of the larger or the smaller of two numbers.  A NaN would be the result of both, but no model
 * makes an integer of it. */
static hlo_element limited(const dim_table *t, bool max, const hlo_element *a, const hlo_element *b) {
  int64_t x, y;
  bool first = max == (a->least > b->least);
  if (dim_signed_value(t, a->value, &x) && dim_signed_value(t, b->value, &y)) {
    return first ? *a : *b;
  }
  return (hlo_element){DIM_OVERFLOW, first ? a->least : b->least};
}

static hlo_element element_of(hlo_value v, int64_t k, int depth);

/* Returns what is known of an element of an elementwise instruction. */
static hlo_element of_operation(const hlo_instr *i, int64_t k, int depth) {
  const dim_table *t = i->parent->module->dims;
  bool limits = i->op == HLO_MAX || i->op == HLO_MIN, selects = i->op == HLO_SELECT;
  if (!limits && !selects && i->op != HLO_AND && i->op != HLO_OR) {
    return UNKNOWN;
  }
  hlo_element a = element_of(i->operands[0], k, depth), b = element_of(i->operands[1], k, depth);
  if (selects) {
    hlo_element c = element_of(i->operands[2], k, depth);
    return is_constant(t, &a, 1)   ? b
           : is_constant(t, &a, 0) ? c
                                   : (hlo_element){DIM_OVERFLOW, smaller(b.least, c.least)};
  }
  if (limits) {
    return limited(t, i->op == HLO_MAX, &a, &b);
  }
  int64_t decides = i->op == HLO_OR;
  bool decided = hlo_type(i->operands[0]) == DTYPE_PRED && (is_constant(t, &a, decides) || is_constant(t, &b, decides));
  return decided ? (hlo_element){decides, decides} : UNKNOWN;
}

static hlo_element element_of(hlo_value v, int64_t k, int depth) {
  dim elements[HLO_MAX_SIZES];
  const hlo_instr *i = v.def;
  dim_table *t = i->parent->module->dims;
  dtype type = hlo_type(v);
  if (!is_number(type) || i->n_results != 1) {
    return UNKNOWN;
  }
  if (hlo_literal(v)) {
    return of_literal(t, hlo_literal(v), k);
  }
  int n = hlo_sizes_of(v, elements);
  if (n >= 0) {
    return k < n ? of_size(t, elements[k]) : UNKNOWN;
  }
  if (depth == 0) {
    return UNKNOWN;
  }
  if (i->op == HLO_BROADCAST) {
    const shape *s = hlo_shape(i->operands[0]);
    bool one = shape_is_static(s) && shape_elements(s) == 1;
    return one ? element_of(i->operands[0], 0, depth - 1) : UNKNOWN;
  }
  hlo_value from = hlo_element_source(i, &k);
  if (!from.def) {
    return hlo_info(i)->kind == HLO_ELEMENTWISE ? of_operation(i, k, depth - 1) : UNKNOWN;
  }
  hlo_element x = element_of(from, k, depth - 1);
  return i->op == HLO_CONVERT ? converted(t, &x, hlo_type(from), type) : x;
}

hlo_element hlo_element_of(hlo_value v, int64_t k) {
  enum { DEPTH = 12 };
  return element_of(v, k, DEPTH);
}
