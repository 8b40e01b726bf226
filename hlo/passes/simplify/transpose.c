/* transpose.c - rules of transpose. */
#include "base/dim/guard.h"
#include "hlo/passes/simplify/simplify.h"

static hlo_instr *operand(const hlo_instr *i, uint32_t k) { return i->operands[k].def; }
static const shape *from_shape(const hlo_instr *i) { return hlo_shape(i->operands[0]); }

static bool transpose_twice(hlo_builder *b, hlo_instr *i) {
  hlo_instr *x = operand(i, 0);
  if (x->op != HLO_TRANSPOSE) {
    return false;
  }
  int64_t p[SHAPE_MAX_RANK] = {0};
  for (int k = 0; k < i->shapes[0].rank; k++) {
    p[k] = hlo_ints(x, HLO_ATTR_PERMUTATION)[hlo_ints(i, HLO_ATTR_PERMUTATION)[k]];
  }
  return hlo_becomes(i, hlo_transpose(b, x->operands[0], p));
}

/* A transpose that only moves dimensions of 1 is a reshape; so is an identity. */
static bool transpose_ones(hlo_builder *b, hlo_instr *i) {
  const shape *x = from_shape(i);
  int64_t last = -1;
  for (int k = 0; k < x->rank; k++) {
    int64_t d = hlo_ints(i, HLO_ATTR_PERMUTATION)[k];
    if (x->dims[d] != 1) {
      if (d < last) {
        return false;
      }
      last = d;
    }
  }
  return hlo_becomes(i, hlo_reshape_to(b, i->operands[0], &i->shapes[0]));
}

/* A transposed broadcast is a broadcast if the operand's dimensions stay in order. */
static bool transpose_broadcast(hlo_builder *b, hlo_instr *i) {
  hlo_instr *x = operand(i, 0);
  if (x->op != HLO_BROADCAST) {
    return false;
  }
  int64_t place[SHAPE_MAX_RANK] = {0}, dims[SHAPE_MAX_RANK];
  for (int k = 0; k < i->shapes[0].rank; k++) {
    place[hlo_ints(i, HLO_ATTR_PERMUTATION)[k]] = k;
  }
  for (int k = 0; k < from_shape(x)->rank; k++) {
    dims[k] = place[hlo_ints(x, HLO_ATTR_DIMENSIONS)[k]];
    if (k && dims[k] <= dims[k - 1]) {
      return false;
    }
  }
  return hlo_becomes(i, hlo_broadcast(b, x->operands[0], i->shapes[0], dims));
}

/* --- a transpose of a reshaped transpose --- */

/* What two shapes with the same elements in the same order have in common: extents whose products are the dimensions of
 * either.  [6,4] and [2,12] are both [2,3,4]. */
typedef struct factors {
  int n;
  dim extents[SHAPE_MAX_RANK];
  int before[SHAPE_MAX_RANK], after[SHAPE_MAX_RANK]; /* the dimension of each shape to which the extent belongs */
} factors;

/* Sets *quotient to y / x, and returns true, if that is exact for all sizes. */
static bool divides(dim_table *t, dim x, dim y, dim *quotient) {
  *quotient = dim_floordiv(t, y, x);
  return dim_known_equal(t, dim_mul(t, *quotient, x), y);
}

/* Removes an extent from the front of both *x and *y, if there is one that both have, and sets *out to it. */
static bool take_factor(dim_table *t, dim *x, dim *y, dim *out) {
  dim rest;
  if (!*x || !*y || !dim_is_exact(t, *x) || !dim_is_exact(t, *y)) {
    return false;
  }
  if (divides(t, *x, *y, &rest)) {
    *out = *x;
    *x = 1;
    *y = rest;
    return true;
  }
  if (divides(t, *y, *x, &rest)) {
    *out = *y;
    *x = rest;
    *y = 1;
    return true;
  }
  return false;
}

static bool find_factors(dim_table *t, const shape *before, const shape *after, factors *f) {
  dim x = 1, y = 1; /* what is left of the present dimensions */
  int k = -1, m = -1;
  for (f->n = 0;; f->n++) {
    while (x == 1 && ++k < before->rank) {
      x = before->dims[k];
    }
    while (y == 1 && ++m < after->rank) {
      y = after->dims[m];
    }
    if (k == before->rank || m == after->rank) {
      return x == 1 && y == 1;
    }
    if (f->n == SHAPE_MAX_RANK || !take_factor(t, &x, &y, &f->extents[f->n])) {
      return false;
    }
    f->before[f->n] = k;
    f->after[f->n] = m;
  }
}

/* Lists the factors, which belong to the dimensions dim_of[], in the order in which the dimensions are listed. */
static void order_factors(const factors *f, const int *dim_of, int rank, const int64_t *dims, int *out) {
  int n = 0;
  for (int d = 0; d < rank; d++) {
    for (int k = 0; k < f->n; k++) {
      if (dim_of[k] == dims[d]) {
        out[n++] = k;
      }
    }
  }
}

/* A transpose of dimensions with these extents. */
typedef struct movement {
  int rank;
  dim extents[SHAPE_MAX_RANK];
  int64_t permutation[SHAPE_MAX_RANK];
} movement;

/* Makes the transpose that brings the factors from the order from[] into the order to[].  Factors that stay side by
 * side are one dimension. */
static void join_factors(dim_table *t, const factors *f, const int *from, const int *to, movement *out) {
  int place[SHAPE_MAX_RANK];        /* of a factor in from[] */
  dim joined[SHAPE_MAX_RANK] = {0}; /* at the place of its first factor, the extent of a dimension, otherwise 0 */
  int64_t number[SHAPE_MAX_RANK];   /* of the dimension that begins at a place */
  for (int k = 0; k < f->n; k++) {
    place[from[k]] = k;
  }
  for (int k = 0, first = 0; k < f->n; k++) {
    int at = place[to[k]];
    first = k && at == place[to[k - 1]] + 1 ? first : at;
    joined[first] = first == at ? f->extents[to[k]] : dim_mul(t, joined[first], f->extents[to[k]]);
  }
  out->rank = 0;
  for (int k = 0; k < f->n; k++) {
    if (joined[k]) {
      number[k] = out->rank;
      out->extents[out->rank++] = joined[k];
    }
  }
  for (int k = 0, d = 0; k < f->n; k++) {
    if (joined[place[to[k]]]) {
      out->permutation[d++] = number[place[to[k]]];
    }
  }
}

/* transpose(reshape(transpose(x))) is reshape(transpose(reshape(x))) if the reshape only splits and joins dimensions:
 * its factors are moved at once. */
static bool transpose_reshaped(hlo_builder *b, hlo_instr *i) {
  dim_table *t = b->computation->module->dims;
  hlo_instr *r = operand(i, 0), *x = r->op == HLO_RESHAPE ? operand(r, 0) : NULL;
  factors f;
  if (!x || x->op != HLO_TRANSPOSE || !find_factors(t, from_shape(r), from_shape(i), &f)) {
    return false;
  }
  int64_t place[SHAPE_MAX_RANK]; /* of a dimension of x's operand in x */
  int from[SHAPE_MAX_RANK], to[SHAPE_MAX_RANK], rank = from_shape(x)->rank;
  movement m;
  for (int k = 0; k < rank; k++) {
    place[hlo_ints(x, HLO_ATTR_PERMUTATION)[k]] = k;
  }
  order_factors(&f, f.before, rank, place, from);
  order_factors(&f, f.after, i->shapes[0].rank, hlo_ints(i, HLO_ATTR_PERMUTATION), to);
  join_factors(t, &f, from, to, &m);
  hlo_value v = hlo_transpose(b, hlo_reshape(b, x->operands[0], m.rank, m.extents), m.permutation);
  return hlo_becomes(i, hlo_reshape_to(b, v, &i->shapes[0]));
}

const hlo_rule_row hlo_transpose_rules[] = {{HLO_TRANSPOSE, transpose_ones},
                                            {HLO_TRANSPOSE, transpose_twice},
                                            {HLO_TRANSPOSE, transpose_broadcast},
                                            {HLO_TRANSPOSE, transpose_reshaped},
                                            {HLO_OP_COUNT, NULL}};
