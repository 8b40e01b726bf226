/* affine.c - recognises affine arrays; see affine.h.  Each rule computes the affine form of a region of an
 * instruction's result from the forms of regions of its operands.  If a number does not fit in int64_t or in the
 * element type, no form is found; so a form never describes numbers that wrap around. */
#include "hlo/analysis/affine.h"

/* The limit of the work, since a value with many uses may be visited once for each use.  The work is the
 * number of elements of constants that are compared, plus WORK_OF_INSTRUCTION for each visited
 * instruction. */
enum { MOST_WORK = 1 << 26, WORK_OF_INSTRUCTION = MOST_WORK / 256 };

static bool find(hlo_value v, const hlo_region *r, int64_t *work, hlo_affine *out);

/* --- checked arithmetic --- */

static bool fits_type(dtype t, int64_t low, int64_t high) {
  int bits = (int)dtype_get_info(t)->bits - dtype_is_signed(t);
  return low >= (dtype_is_signed(t) ? -1 - (INT64_MAX >> (63 - bits)) : 0) && (bits > 62 || high >> bits == 0);
}

/* Sets the steps of dimensions with one element to 0, and computes low and high.  Returns false if they overflow or do
 * not fit the type. */
static bool finish(dtype t, int rank, const hlo_region *r, hlo_affine *a) {
  a->low = a->high = a->start;
  for (int d = 0; d < rank; d++) {
    int64_t span, *end = a->step[d] < 0 ? &a->low : &a->high;
    a->step[d] = r->count[d] == 1 ? 0 : a->step[d];
    if (__builtin_mul_overflow(a->step[d], r->count[d] - 1, &span) || __builtin_add_overflow(*end, span, end)) {
      return false;
    }
  }
  return fits_type(t, a->low, a->high);
}

/* Computes x + factor * y.  Returns false if it overflows. */
static bool add_multiple(const hlo_affine *x, int64_t factor, const hlo_affine *y, hlo_affine *out) {
  int64_t product;
  bool wraps =
      __builtin_mul_overflow(factor, y->start, &product) || __builtin_add_overflow(x->start, product, &out->start);
  for (int d = 0; d < SHAPE_MAX_RANK && !wraps; d++) {
    wraps = __builtin_mul_overflow(factor, y->step[d], &product) ||
            __builtin_add_overflow(x->step[d], product, &out->step[d]);
  }
  return !wraps;
}

/* --- constants and iota --- */

/* Moves on to the next element: i is its index in the region, *at its position in the literal.  Returns false after
 * the last one. */
static bool advance(const hlo_region *r, int rank, const int64_t *strides, int64_t *i, int64_t *at) {
  for (int d = rank; d-- > 0;) {
    *at += r->stride[d] * strides[d];
    if (++i[d] < r->count[d]) {
      return true;
    }
    *at -= r->stride[d] * strides[d] * i[d];
    i[d] = 0;
  }
  return false;
}

/* Computes the only affine form that fits the first element of the region and its neighbours.  Returns false if it
 * overflows. */
static bool form_at_start(const literal *l, const hlo_region *r, const int64_t *strides, int64_t at, hlo_affine *out) {
  out->start = literal_i64(l, at);
  for (int d = 0; d < l->shape.rank; d++) {
    if (r->count[d] > 1 &&
        __builtin_sub_overflow(literal_i64(l, at + r->stride[d] * strides[d]), out->start, &out->step[d])) {
      return false;
    }
  }
  return true;
}

/* Computes the value of the affine form `a` for element i of the region.  Returns false if it overflows. */
static bool value_of(const hlo_affine *a, int rank, const int64_t *i, int64_t *value) {
  *value = a->start;
  for (int d = 0; d < rank; d++) {
    int64_t span;
    if (__builtin_mul_overflow(a->step[d], i[d], &span) || __builtin_add_overflow(*value, span, value)) {
      return false;
    }
  }
  return true;
}

static bool find_in_literal(const literal *l, const hlo_region *r, int64_t *work, hlo_affine *out) {
  int64_t strides[SHAPE_MAX_RANK], i[SHAPE_MAX_RANK] = {0}, at = 0, elements = 1, value;
  int rank = l->shape.rank;
  shape_strides(&l->shape, strides);
  for (int d = 0; d < rank; d++) {
    at += r->first[d] * strides[d];
    elements *= r->count[d];
  }
  *work -= elements;
  if (*work < 0 || !form_at_start(l, r, strides, at, out)) {
    return false;
  }
  do {
    if (!value_of(out, rank, i, &value) || literal_i64(l, at) != value) {
      return false;
    }
  } while (advance(r, rank, strides, i, &at));
  return true;
}

static bool find_in_iota(const hlo_instr *i, const hlo_region *r, hlo_affine *out) {
  int64_t d = hlo_int(i, HLO_ATTR_DIMENSION);
  out->start = r->first[d];
  out->step[d] = r->stride[d];
  return true;
}

/* --- movement: translates the region and its dimensions to the operand --- */

/* Computes the affine form of the result from region q of operand k.  Dimension d of the operand is dimension to[d] of
 * the result.  If the result has no such dimension, to[d] is -1, and the region has one element along d. */
static bool find_moved(const hlo_instr *i, uint32_t k, const hlo_region *q, const int *to, int64_t *work,
                       hlo_affine *out) {
  hlo_affine x;
  if (!find(i->operands[k], q, work, &x)) {
    return false;
  }
  out->start = x.start;
  for (int d = 0; d < hlo_rank(i->operands[k]); d++) {
    if (to[d] >= 0) {
      out->step[to[d]] = x.step[d];
    }
  }
  return true;
}

static void set_one(hlo_region *q, int d) {
  q->first[d] = q->stride[d] = 0;
  q->count[d] = 1;
}

static void copy_dim(hlo_region *q, int d, const hlo_region *r, int from) {
  q->first[d] = r->first[from];
  q->stride[d] = r->stride[from];
  q->count[d] = r->count[from];
}

static bool find_in_broadcast(const hlo_instr *i, const hlo_region *r, int64_t *work, hlo_affine *out) {
  const shape *x = hlo_shape(i->operands[0]);
  hlo_region q;
  int to[SHAPE_MAX_RANK];
  for (int d = 0; d < x->rank; d++) {
    to[d] = x->dims[d] == 1 ? -1 : (int)hlo_ints(i, HLO_ATTR_DIMENSIONS)[d];
    if (to[d] < 0) {
      set_one(&q, d);
    } else {
      copy_dim(&q, d, r, to[d]);
    }
  }
  return find_moved(i, 0, &q, to, work, out);
}

/* Handles reshapes that only add or remove dimensions of 1. */
static bool find_in_reshape(const hlo_instr *i, const hlo_region *r, int64_t *work, hlo_affine *out) {
  const shape *x = hlo_shape(i->operands[0]), *y = &i->shapes[0];
  hlo_region q;
  int to[SHAPE_MAX_RANK], at = 0;
  for (int d = 0; d < x->rank; d++) {
    to[d] = -1;
    if (x->dims[d] == 1) {
      set_one(&q, d);
      continue;
    }
    while (at < y->rank && y->dims[at] == 1) {
      at++;
    }
    if (at == y->rank || y->dims[at] != x->dims[d]) {
      return false;
    }
    to[d] = at;
    copy_dim(&q, d, r, at++);
  }
  return find_moved(i, 0, &q, to, work, out);
}

static bool find_in_transpose(const hlo_instr *i, const hlo_region *r, int64_t *work, hlo_affine *out) {
  hlo_region q;
  int to[SHAPE_MAX_RANK];
  for (int d = 0; d < i->shapes[0].rank; d++) {
    int64_t from = hlo_ints(i, HLO_ATTR_PERMUTATION)[d];
    to[from] = d;
    copy_dim(&q, (int)from, r, d);
  }
  return find_moved(i, 0, &q, to, work, out);
}

static bool find_in_reverse(const hlo_instr *i, const hlo_region *r, int64_t *work, hlo_affine *out) {
  hlo_region q = *r;
  for (uint32_t k = 0; k < hlo_n_ints(i, HLO_ATTR_DIMENSIONS); k++) {
    int64_t d = hlo_ints(i, HLO_ATTR_DIMENSIONS)[k];
    q.first[d] = i->shapes[0].dims[d] - 1 - r->first[d];
    q.stride[d] = -r->stride[d];
  }
  return find(i->operands[0], &q, work, out);
}

static bool find_in_slice(const hlo_instr *i, const hlo_region *r, int64_t *work, hlo_affine *out) {
  hlo_region q = *r;
  for (int d = 0; d < i->shapes[0].rank; d++) {
    int64_t stride = hlo_ints(i, HLO_ATTR_STRIDES)[d];
    if (!dim_is_const(hlo_ints(i, HLO_ATTR_STARTS)[d])) {
      return false;
    }
    q.first[d] = hlo_ints(i, HLO_ATTR_STARTS)[d] + r->first[d] * stride;
    q.stride[d] = r->count[d] == 1 ? 0 : r->stride[d] * stride;
  }
  return find(i->operands[0], &q, work, out);
}

/* Finds the affine form of a region that lies within one operand of the concatenation. */
static bool find_in_concat(const hlo_instr *i, const hlo_region *r, int64_t *work, hlo_affine *out) {
  int64_t d = hlo_int(i, HLO_ATTR_DIMENSION), begin = 0;
  int64_t one = r->first[d], other = one + r->stride[d] * (r->count[d] - 1);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    int64_t end = begin + hlo_shape(i->operands[k])->dims[d];
    if (one >= begin && one < end && other >= begin && other < end) {
      hlo_region q = *r;
      q.first[d] -= begin;
      return find(i->operands[k], &q, work, out);
    }
    begin = end;
  }
  return false;
}

/* --- arithmetic --- */

static bool is_number(const hlo_affine *x) {
  for (int d = 0; d < SHAPE_MAX_RANK; d++) {
    if (x->step[d]) {
      return false;
    }
  }
  return true;
}

static bool find_in_arithmetic(const hlo_instr *i, const hlo_region *r, int64_t *work, hlo_affine *out) {
  static const hlo_affine zero;
  hlo_affine x, y;
  if (!find(i->operands[0], r, work, &x) || !find(i->operands[1], r, work, &y)) {
    return false;
  }
  if (i->op != HLO_MUL) {
    return add_multiple(&x, i->op == HLO_ADD ? 1 : -1, &y, out);
  }
  return is_number(&y) ? add_multiple(&zero, y.start, &x, out) : is_number(&x) && add_multiple(&zero, x.start, &y, out);
}

/* Returns true if the comparison has the same result in the whole region, and sets *result to it. */
static bool decide(const hlo_instr *i, const hlo_region *r, int64_t *work, bool *result) {
  hlo_affine x, y;
  if (!find(i->operands[0], r, work, &x) || !find(i->operands[1], r, work, &y)) {
    return false;
  }
  bool below = x.high < y.low, not_above = x.high <= y.low;
  bool above = y.high < x.low, not_below = y.high <= x.low;
  switch ((hlo_comparison)hlo_int(i, HLO_ATTR_COMPARISON)) {
    case HLO_EQ: *result = not_above && not_below; return *result || below || above;
    case HLO_NE: *result = below || above; return *result || (not_above && not_below);
    case HLO_LT: *result = below; return below || not_below;
    case HLO_LE: *result = not_above; return not_above || above;
    case HLO_GT: *result = above; return above || not_above;
    case HLO_GE: *result = not_below; return not_below || below;
  }
  return false;
}

/* Handles selections that take the same operand in the whole region, such as index < 0 ? index + size : index. */
static bool find_in_select(const hlo_instr *i, const hlo_region *r, int64_t *work, hlo_affine *out) {
  const hlo_instr *pred = i->operands[0].def;
  bool first;
  return pred->op == HLO_COMPARE && shape_same_dims(hlo_shape(i->operands[0]), &i->shapes[0]) &&
         decide(pred, r, work, &first) && find(i->operands[first ? 1 : 2], r, work, out);
}

/* --- all operations --- */

static bool find_in(const hlo_instr *i, const hlo_region *r, int64_t *work, hlo_affine *out) {
  switch (i->op) {
    case HLO_CONSTANT: return find_in_literal(hlo_literal(hlo_result((hlo_instr *)i, 0)), r, work, out);
    case HLO_IOTA: return find_in_iota(i, r, out);
    case HLO_BROADCAST: return find_in_broadcast(i, r, work, out);
    case HLO_RESHAPE: return find_in_reshape(i, r, work, out);
    case HLO_TRANSPOSE: return find_in_transpose(i, r, work, out);
    case HLO_REVERSE: return find_in_reverse(i, r, work, out);
    case HLO_SLICE: return find_in_slice(i, r, work, out);
    case HLO_CONCAT: return find_in_concat(i, r, work, out);
    case HLO_COPY:
    case HLO_CONVERT: return find(i->operands[0], r, work, out);
    case HLO_ADD:
    case HLO_SUB:
    case HLO_MUL: return find_in_arithmetic(i, r, work, out);
    case HLO_SELECT: return find_in_select(i, r, work, out);
    default: return false;
  }
}

static bool find(hlo_value v, const hlo_region *r, int64_t *work, hlo_affine *out) {
  const shape *s = hlo_shape(v);
  *out = (hlo_affine){0};
  *work -= WORK_OF_INSTRUCTION;
  return *work >= 0 && s->kind == SHAPE_ARRAY && shape_is_static(s) && dtype_is_int((dtype)s->type) &&
         find_in(v.def, r, work, out) && finish((dtype)s->type, s->rank, r, out);
}

bool hlo_affine_of(hlo_value v, const hlo_region *region, hlo_affine *out) {
  int64_t work = MOST_WORK;
  return find(v, region, &work, out);
}

hlo_region hlo_whole_region(const shape *s) {
  hlo_region r = {.count = {0}};
  for (int d = 0; d < s->rank; d++) {
    r.stride[d] = 1;
    r.count[d] = s->dims[d];
  }
  return r;
}
