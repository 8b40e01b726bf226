/* transpose_sinking.c - moves transposes, reshapes and padding to where they cost nothing: into the dimension numbers
 * of dots and reductions and the padding of windows, or past elementwise operations until they meet and cancel.
 *
 * Requires: nothing; simplify should run before and after.  Keeps: results (sums of a reduction may be in another
 * order).  Breaks: nothing.  Transposes move towards the results: f(transpose(x)) becomes transpose(f(x)) if nothing
 * else uses the transpose, and f of two operands that are transposed alike becomes a transpose of f of the untransposed
 * ones.  Reshapes move in the same way.  A reshape between a contraction and operations that can run in its epilogue is
 * moved after these operations.  Pass layout handles the transposes of convolutions. */
#include <string.h>

#include "hlo/passes/rewrite.h"

static hlo_instr *operand(const hlo_instr *i, uint32_t k) { return i->operands[k].def; }

/* --- movement into contractions and windows --- */

static void permuted(const hlo_instr *i, hlo_attr_id list, const int64_t *permutation, hlo_attr *out, arena *a) {
  uint32_t n = hlo_n_ints(i, list);
  int64_t *dims = ARENA_NEW_N(a, int64_t, n + 1);
  for (uint32_t k = 0; k < n; k++) {
    dims[k] = permutation[hlo_ints(i, list)[k]];
  }
  *out = hlo_attr_list(n, dims);
}

/* Returns true if the permutation keeps the order of the free dimensions, which are those that neither the list `batch`
 * nor the list `contract` of i contains. */
static bool free_dims_in_order(const hlo_instr *i, hlo_attr_id batch, hlo_attr_id contract, const int64_t *permutation,
                               int rank) {
  bool listed[SHAPE_MAX_RANK] = {false};
  for (uint32_t k = 0; k < hlo_n_ints(i, batch); k++) {
    listed[hlo_ints(i, batch)[k]] = true;
  }
  for (uint32_t k = 0; k < hlo_n_ints(i, contract); k++) {
    listed[hlo_ints(i, contract)[k]] = true;
  }
  int64_t last = -1;
  for (int d = 0; d < rank; d++) {
    if (!listed[d]) {
      if (permutation[d] < last) {
        return false;
      }
      last = permutation[d];
    }
  }
  return true;
}

/* dot(transpose(x), y): the dot's dimension numbers take over the permutation. */
static bool transpose_into_dot(hlo_builder *b, hlo_instr *i) {
  static const hlo_attr_id lists[2][2] = {{HLO_ATTR_LHS_BATCH, HLO_ATTR_LHS_CONTRACT},
                                          {HLO_ATTR_RHS_BATCH, HLO_ATTR_RHS_CONTRACT}};
  for (uint32_t k = 0; k < 2; k++) {
    hlo_instr *x = operand(i, k);
    if (x->op != HLO_TRANSPOSE) {
      continue;
    }
    const int64_t *p = hlo_ints(x, HLO_ATTR_PERMUTATION);
    if (!free_dims_in_order(i, lists[k][0], lists[k][1], p, hlo_rank(i->operands[k]))) {
      continue;
    }
    hlo_value operands[] = {i->operands[0], i->operands[1]};
    hlo_attr attrs[4]; /* in the order in which hlo/ir/ops.def lists them */
    memcpy(attrs, i->attrs, sizeof attrs);
    operands[k] = x->operands[0];
    permuted(i, lists[k][0], p, hlo_attr_of(i, lists[k][0]) - i->attrs + attrs, hlo_arena(b));
    permuted(i, lists[k][1], p, hlo_attr_of(i, lists[k][1]) - i->attrs + attrs, hlo_arena(b));
    hlo_instr *dot = hlo_build(b, HLO_DOT, 2, operands, 1, NULL, attrs);
    return dot && hlo_becomes(i, hlo_result(dot, 0));
  }
  return false;
}

static bool is_zero(hlo_value v) { return hlo_is_splat(v, 0); }

/* If zeros pad the convolution's first operand, makes them padding of the convolution itself. */
static bool pad_into_convolution(hlo_builder *b, hlo_instr *i) {
  hlo_instr *x = operand(i, 0);
  int rank = hlo_rank(i->operands[0]);
  bool last = hlo_int(i, HLO_ATTR_LAYOUT) == HLO_CHANNELS_LAST;
  if (x->op != HLO_PAD || !is_zero(x->operands[1])) {
    return false;
  }
  int64_t low[SHAPE_MAX_RANK], high[SHAPE_MAX_RANK];
  for (int d = 0; d < rank; d++) {
    int64_t l = hlo_ints(x, HLO_ATTR_LOW)[d], h = hlo_ints(x, HLO_ATTR_HIGH)[d];
    bool spatial = d > 0 && d != (last ? rank - 1 : 1);
    if (hlo_ints(x, HLO_ATTR_INTERIOR)[d] || l < 0 || h < 0 || (!spatial && (l || h))) {
      return false;
    }
    if (spatial) {
      int s = d - (last ? 1 : 2);
      low[s] = l + hlo_ints(i, HLO_ATTR_LOW)[s];
      high[s] = h + hlo_ints(i, HLO_ATTR_HIGH)[s];
      if (hlo_ints(i, HLO_ATTR_LHS_DILATION)[s] != 1 || hlo_ints(i, HLO_ATTR_LOW)[s] < 0 ||
          hlo_ints(i, HLO_ATTR_HIGH)[s] < 0) {
        return false;
      }
    }
  }
  hlo_conv_dims d = {.strides = hlo_ints(i, HLO_ATTR_STRIDES),
                     .low = low,
                     .high = high,
                     .lhs_dilation = hlo_ints(i, HLO_ATTR_LHS_DILATION),
                     .rhs_dilation = hlo_ints(i, HLO_ATTR_RHS_DILATION),
                     .groups = hlo_int(i, HLO_ATTR_GROUPS),
                     .layout = (hlo_layout)hlo_int(i, HLO_ATTR_LAYOUT)};
  return hlo_becomes(i, hlo_convolution(b, x->operands[0], i->operands[1], &d));
}

/* Returns true if v is the value with which the reducer's windows are padded; of integers, only the values for sums and
 * products are recognised. */
static bool is_identity_of(hlo_reducer r, hlo_value v) {
  dtype t = hlo_type(v);
  switch (r) {
    case HLO_REDUCE_ADD: return hlo_is_splat(v, 0);
    case HLO_REDUCE_MUL: return hlo_is_splat(v, 1);
    case HLO_REDUCE_MAX: return dtype_is_float(t) && hlo_is_splat(v, -__builtin_inf());
    case HLO_REDUCE_MIN: return dtype_is_float(t) && hlo_is_splat(v, __builtin_inf());
    default: return false;
  }
}

static bool pad_into_window(hlo_builder *b, hlo_instr *i) {
  hlo_instr *x = operand(i, 0);
  hlo_reducer r = (hlo_reducer)hlo_int(i, HLO_ATTR_REDUCER);
  int64_t low[SHAPE_MAX_RANK], high[SHAPE_MAX_RANK];
  if (x->op != HLO_PAD || !is_identity_of(r, x->operands[1])) {
    return false;
  }
  for (int d = 0; d < hlo_rank(i->operands[0]); d++) {
    int64_t l = hlo_ints(x, HLO_ATTR_LOW)[d], h = hlo_ints(x, HLO_ATTR_HIGH)[d];
    low[d] = l + hlo_ints(i, HLO_ATTR_LOW)[d];
    high[d] = h + hlo_ints(i, HLO_ATTR_HIGH)[d];
    if (l < 0 || h < 0 || hlo_ints(x, HLO_ATTR_INTERIOR)[d] || low[d] < l || high[d] < h) {
      return false;
    }
  }
  hlo_window w = {.window = hlo_ints(i, HLO_ATTR_WINDOW),
                  .strides = hlo_ints(i, HLO_ATTR_STRIDES),
                  .low = low,
                  .high = high,
                  .dilation = hlo_ints(i, HLO_ATTR_RHS_DILATION)};
  return hlo_becomes(i, hlo_reduce_window(b, x->operands[0], r, &w));
}

/* --- transposes into reductions --- */

/* reduce(transpose(x)): reduces dimensions of x, with a smaller transpose afterwards if the kept dimensions change
 * their order. */
static bool transpose_into_reduce(hlo_builder *b, hlo_instr *i) {
  hlo_instr *x = operand(i, 0);
  if (x->op != HLO_TRANSPOSE) {
    return false;
  }
  const int64_t *p = hlo_ints(x, HLO_ATTR_PERMUTATION);
  bool reduced[SHAPE_MAX_RANK] = {false};
  int64_t dims[SHAPE_MAX_RANK], place[SHAPE_MAX_RANK], order[SHAPE_MAX_RANK];
  uint32_t n = 0;
  int rank = hlo_rank(i->operands[0]), kept = 0, out = 0;
  for (uint32_t k = 0; k < hlo_n_ints(i, HLO_ATTR_DIMENSIONS); k++) {
    reduced[p[hlo_ints(i, HLO_ATTR_DIMENSIONS)[k]]] = true;
  }
  for (int d = 0; d < rank; d++) {
    place[d] = kept;
    if (reduced[d]) {
      dims[n++] = d;
    } else {
      kept++;
    }
  }
  for (int d = 0; d < rank; d++) {
    if (!reduced[p[d]]) {
      order[out++] = place[p[d]];
    }
  }
  hlo_value y = hlo_reduce(b, x->operands[0], (hlo_reducer)hlo_int(i, HLO_ATTR_REDUCER), n, dims);
  return hlo_becomes(i, hlo_transpose(b, y, order));
}

/* --- movement past elementwise operations --- */

static bool is_moved(hlo_value v) { return v.def->op == HLO_TRANSPOSE || v.def->op == HLO_RESHAPE; }

/* Returns true if v is the result of the same movement as `by` and is used only once. */
static bool moved_alike(hlo_value v, const hlo_instr *by) {
  const shape *from = hlo_shape(by->operands[0]);
  return v.def->op == by->op && hlo_used_once(v) && shape_same_dims(hlo_shape(v.def->operands[0]), from) &&
         (by->op == HLO_RESHAPE || memcmp(hlo_ints(v.def, HLO_ATTR_PERMUTATION), hlo_ints(by, HLO_ATTR_PERMUTATION),
                                          from->rank * sizeof(int64_t)) == 0);
}

/* Returns v with the dimensions that the operand of `by`, a transpose or reshape, has: v's operand if v is moved in the
 * same way, or a splat with these dimensions.  A scalar operand of an operation on arrays (a bound of clamp) stays a
 * scalar. */
static hlo_value unmoved(hlo_builder *b, hlo_value v, const hlo_instr *by) {
  literal l;
  if (moved_alike(v, by)) {
    return v.def->operands[0];
  }
  bool is_lone_scalar = hlo_rank(v) == 0 && by->shapes[0].rank > 0;
  return !is_lone_scalar && hlo_splat_of(v, &l)
             ? hlo_splat_literal(b, shape_with_type(*hlo_shape(by->operands[0]), hlo_type(v)), l)
             : v;
}

static hlo_value move_again(hlo_builder *b, hlo_value v, const hlo_instr *by) {
  return by->op == HLO_RESHAPE ? hlo_reshape(b, v, by->shapes[0].rank, by->shapes[0].dims)
                               : hlo_transpose(b, v, hlo_ints(by, HLO_ATTR_PERMUTATION));
}

/* Moves transposes or reshapes from the operands to the result, where one replaces them all.  A reshape costs nothing,
 * so it is moved only if the operation's only user is a reshape or a transpose, with which it can be merged. */
static bool sink(hlo_builder *b, hlo_instr *i) {
  const hlo_instr *by = NULL;
  hlo_value operands[3];
  literal l;
  for (uint32_t k = 0; k < i->n_operands && !by; k++) {
    hlo_value v = i->operands[k];
    by = is_moved(v) && hlo_used_once(v) && !hlo_splat_of(v, &l) ? v.def : NULL;
  }
  hlo_instr *user = hlo_only_user(hlo_result(i, 0));
  if (!by || (by->op == HLO_RESHAPE && !(user && is_moved(hlo_result(user, 0))))) {
    return false;
  }
  for (uint32_t k = 0; k < i->n_operands; k++) { /* nothing is built before it is clear that all operands fit */
    if (!hlo_splat_of(i->operands[k], &l) && !moved_alike(i->operands[k], by)) {
      return false;
    }
  }
  for (uint32_t k = 0; k < i->n_operands; k++) {
    operands[k] = unmoved(b, i->operands[k], by);
  }
  hlo_instr *copy = hlo_instr_clone(i->parent, i, i, operands);
  copy->shapes[0] = shape_with_type(*hlo_shape(by->operands[0]), (dtype)i->shapes[0].type);
  return hlo_becomes(i, move_again(b, hlo_result(copy, 0), by));
}

/* --- reshapes past the operations that follow a contraction --- */

enum { FAR = 8 };

/* Returns the number of elementwise operations between v and the nearest contraction before it.  Returns FAR if it
 * finds none within fewer than `most` operations. */
static int distance(hlo_value v, int most) {
  const hlo_instr *i = v.def;
  int least = FAR;
  if (hlo_info(i)->kind == HLO_CONTRACTION) {
    return 0;
  }
  if (i->op == HLO_RESHAPE) {
    return distance(i->operands[0], most);
  }
  for (uint32_t k = 0; k < i->n_operands && most > 1 && hlo_info(i)->kind == HLO_ELEMENTWISE; k++) {
    int d = 1 + distance(i->operands[k], most - 1);
    least = d < least ? d : least;
  }
  return least;
}

/* Returns true if operand k of i should get the dimensions that the operand of the reshape `by` has, so that i can run
 * before the reshape.  True for a splat, and for a value reshaped from the same dimensions: both need no further
 * instruction.  Also true for the residual of an addition, which gets a reshape of its own.  The residual is an
 * operand, other than a broadcast, that is further from a contraction than by's operand. */
static bool can_follow(const hlo_instr *i, uint32_t k, const hlo_instr *by) {
  literal l;
  hlo_value v = i->operands[k];
  const shape *from = hlo_shape(by->operands[0]);
  if (hlo_splat_of(v, &l) || (v.def->op == HLO_RESHAPE && shape_same_dims(hlo_shape(v.def->operands[0]), from))) {
    return true;
  }
  return i->op == HLO_ADD && v.def->op != HLO_BROADCAST && distance(v, FAR) > distance(by->operands[0], FAR);
}

static hlo_value followed(hlo_builder *b, hlo_value v, const hlo_instr *by) {
  literal l;
  const shape *from = hlo_shape(by->operands[0]);
  if (v.def->op == HLO_RESHAPE && shape_same_dims(hlo_shape(v.def->operands[0]), from)) {
    return v.def->operands[0];
  }
  return hlo_splat_of(v, &l) ? hlo_splat_literal(b, shape_with_type(*from, hlo_type(v)), l)
                             : hlo_reshape(b, v, from->rank, from->dims);
}

/* f(reshape(contraction + bias)) becomes reshape(f(contraction + bias)), so f can run in the contraction's kernel. */
static bool follow_contraction(hlo_builder *b, hlo_instr *i) {
  const hlo_instr *by = NULL;
  hlo_value operands[3];
  for (uint32_t k = 0; k < i->n_operands && !by; k++) {
    const hlo_instr *v = operand(i, k);
    bool fits = v->op == HLO_RESHAPE && shape_is_static(&v->shapes[0]) &&
                shape_same_dims(&v->shapes[0], &i->shapes[0]) && distance(v->operands[0], FAR) < FAR;
    for (uint32_t j = 0; j < i->n_operands && fits; j++) {
      fits = j == k || can_follow(i, j, v);
    }
    by = fits ? v : NULL;
  }
  if (!by || i->n_results != 1 || i->n_operands > 3) {
    return false;
  }
  for (uint32_t k = 0; k < i->n_operands; k++) {
    operands[k] = followed(b, i->operands[k], by);
  }
  hlo_instr *copy = hlo_instr_clone(i->parent, i, i, operands);
  copy->shapes[0] = shape_with_type(*hlo_shape(by->operands[0]), (dtype)i->shapes[0].type);
  return hlo_becomes(i, hlo_reshape(b, hlo_result(copy, 0), i->shapes[0].rank, i->shapes[0].dims));
}

static const hlo_rule_row special_rules[] = {
    {HLO_DOT, transpose_into_dot},
    {HLO_CONVOLUTION, pad_into_convolution},
    {HLO_REDUCE_WINDOW, pad_into_window},
    {HLO_REDUCE, transpose_into_reduce},
};

status pass_transpose_sinking(hlo_module *m, pass_context *c, bool *changed) {
  enum { N_SPECIAL = sizeof special_rules / sizeof *special_rules };
  hlo_rule_row rules[N_SPECIAL + 2 * HLO_OP_COUNT + 1];
  uint32_t n = N_SPECIAL;
  memcpy(rules, special_rules, sizeof special_rules);
  for (int op = 0; op < HLO_OP_COUNT; op++) {
    if (hlo_op_get_info((hlo_op)op)->kind == HLO_ELEMENTWISE) {
      rules[n++] = (hlo_rule_row){op, sink};
      rules[n++] = (hlo_rule_row){op, follow_contraction};
    }
  }
  rules[n] = (hlo_rule_row){HLO_OP_COUNT, NULL};
  return hlo_sweep_module(m, c, rules, changed);
}
