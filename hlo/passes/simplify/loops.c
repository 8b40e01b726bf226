/* loops.c - rules of reductions, windows, cumulative operations and sorting. */
#include "hlo/passes/simplify/simplify.h"

static const shape *from_shape(const hlo_instr *i) { return hlo_shape(i->operands[0]); }

static uint32_t dims_set(const hlo_instr *i) {
  uint32_t set = 0;
  for (uint32_t k = 0; k < hlo_n_ints(i, HLO_ATTR_DIMENSIONS); k++) {
    set |= (uint32_t)1 << hlo_ints(i, HLO_ATTR_DIMENSIONS)[k];
  }
  return set;
}

/* Dimensions of 1 need not be reduced.  If there are no others, the reduction is a reshape. */
static bool reduce_ones(hlo_builder *b, hlo_instr *i) {
  const shape *x = from_shape(i);
  uint32_t set = dims_set(i), n = 0;
  int64_t dims[SHAPE_MAX_RANK], at = 0;
  shape without = *x;
  without.rank = 0;
  for (int k = 0; k < x->rank; k++) {
    bool reduced = set >> k & 1;
    if (reduced && x->dims[k] == 1) {
      continue;
    }
    if (reduced) {
      dims[n++] = at;
    }
    without.dims[without.rank++] = x->dims[k];
    at++;
  }
  if (without.rank == x->rank) {
    return hlo_n_ints(i, HLO_ATTR_DIMENSIONS) == 0 && hlo_becomes(i, i->operands[0]);
  }
  hlo_value y = hlo_reshape(b, i->operands[0], without.rank, without.dims);
  return hlo_becomes(i, hlo_reduce(b, y, (hlo_reducer)hlo_int(i, HLO_ATTR_REDUCER), n, dims));
}

/* Merges two successive reductions into one.  Sums and products of floats below 32 bits are not merged, since
 * the result would then be rounded once and not twice. */
static bool reduce_twice(hlo_builder *b, hlo_instr *i) {
  hlo_instr *x = i->operands[0].def;
  dtype t = (dtype)i->shapes[0].type;
  int64_t r = hlo_int(i, HLO_ATTR_REDUCER);
  bool any_order = r >= HLO_REDUCE_MAX || dtype_is_int(t) || t == DTYPE_F32 || t == DTYPE_F64;
  if (x->op != HLO_REDUCE || hlo_int(x, HLO_ATTR_REDUCER) != r || !any_order || !hlo_used_once(i->operands[0])) {
    return false;
  }
  uint32_t inner = dims_set(x), outer = dims_set(i), n = 0;
  int64_t dims[SHAPE_MAX_RANK], at = 0;
  for (int k = 0; k < from_shape(x)->rank; k++) {
    bool taken = inner >> k & 1;
    if (taken || outer >> at & 1) {
      dims[n++] = k;
    }
    at += !taken;
  }
  return hlo_becomes(i, hlo_reduce(b, x->operands[0], (hlo_reducer)r, n, dims));
}

/* The maximum, minimum, conjunction or disjunction of equal elements is one of them. */
static bool reduce_broadcast(hlo_builder *b, hlo_instr *i) {
  hlo_instr *x = i->operands[0].def;
  int64_t r = hlo_int(i, HLO_ATTR_REDUCER), place = 0, kept[SHAPE_MAX_RANK], dims[SHAPE_MAX_RANK];
  if (x->op != HLO_BROADCAST || r < HLO_REDUCE_MAX || r > HLO_REDUCE_OR || !shape_is_static(from_shape(i))) {
    return false;
  }
  uint32_t set = dims_set(i);
  for (int k = 0; k < from_shape(i)->rank; k++) {
    bool taken = set >> k & 1;
    if (taken && from_shape(i)->dims[k] == 0) {
      return false; /* no element is reduced, so the result is the reducer's identity */
    }
    kept[k] = taken ? -1 : place++;
  }
  for (uint32_t k = 0; k < hlo_n_ints(x, HLO_ATTR_DIMENSIONS); k++) {
    dims[k] = kept[hlo_ints(x, HLO_ATTR_DIMENSIONS)[k]];
    if (dims[k] < 0) {
      return false;
    }
  }
  return hlo_becomes(i, i->shapes[0].rank || from_shape(x)->rank ? hlo_broadcast(b, x->operands[0], i->shapes[0], dims)
                                                                 : x->operands[0]);
}

/* A window over whole dimensions is a reduction; a window of one element changes nothing. */
static bool window_of_everything(hlo_builder *b, hlo_instr *i) {
  const shape *x = from_shape(i);
  int64_t dims[SHAPE_MAX_RANK];
  uint32_t n = 0;
  for (int k = 0; k < x->rank; k++) {
    int64_t size = hlo_ints(i, HLO_ATTR_WINDOW)[k];
    if (hlo_ints(i, HLO_ATTR_LOW)[k] || hlo_ints(i, HLO_ATTR_HIGH)[k]) {
      return false;
    }
    if (size != 1 && size == x->dims[k] && hlo_ints(i, HLO_ATTR_RHS_DILATION)[k] == 1) {
      dims[n++] = k;
    } else if (size != 1 || hlo_ints(i, HLO_ATTR_STRIDES)[k] != 1) {
      return false;
    }
  }
  hlo_value y = hlo_reduce(b, i->operands[0], (hlo_reducer)hlo_int(i, HLO_ATTR_REDUCER), n, dims);
  return hlo_becomes(i, hlo_reshape(b, y, i->shapes[0].rank, i->shapes[0].dims));
}

static bool arg_of_one(hlo_builder *b, hlo_instr *i) {
  return from_shape(i)->dims[hlo_int(i, HLO_ATTR_DIMENSION)] == 1 && hlo_becomes(i, hlo_splat(b, i->shapes[0], 0));
}

static bool sort_one(hlo_builder *b, hlo_instr *i) {
  if (from_shape(i)->dims[hlo_int(i, HLO_ATTR_DIMENSION)] > 1 ||
      !dim_is_const(from_shape(i)->dims[hlo_int(i, HLO_ATTR_DIMENSION)])) {
    return false;
  }
  for (uint32_t k = 0; k < i->n_results; k++) {
    hlo_replace(hlo_result(i, k), i->operands[k]);
  }
  return true;
}

static bool scan_one(hlo_builder *b, hlo_instr *i) {
  return !hlo_int(i, HLO_ATTR_EXCLUSIVE) && from_shape(i)->dims[hlo_int(i, HLO_ATTR_DIMENSION)] == 1 &&
         hlo_becomes(i, i->operands[0]);
}

const hlo_rule_row hlo_loop_rules[] = {{HLO_REDUCE, reduce_ones},      {HLO_REDUCE, reduce_twice},
                                       {HLO_REDUCE, reduce_broadcast}, {HLO_REDUCE_WINDOW, window_of_everything},
                                       {HLO_ARG_REDUCE, arg_of_one},   {HLO_SORT, sort_one},
                                       {HLO_CUMULATIVE, scan_one},     {HLO_OP_COUNT, NULL}};
