/* dot_canonicalization.c - changes the operands of dots into the layout of a BLAS call: the batch, the free and the
 * contracted dimensions each have one stride, and either the free or the contracted ones are contiguous.
 *
 * Requires: a target that sets canonical_dots; runs after transpose_sinking, which moves all transposes into dots, also
 * those that then violate this layout.  Keeps: results.  Breaks: nothing.  An operand without this layout is transposed
 * to [batch, free, contracted] or [batch, contracted, free] if that costs little in comparison with the dot.  The new
 * transpose is merged with those before it, also across a reshape that merges dimensions, and usually becomes part of
 * the kernel that computes the operand. */
#include <string.h>

#include "hlo/passes/rewrite.h"

/* The dimensions of an operand by their role in the dot. */
typedef struct roles {
  uint32_t n_batch, n_free, n_contract;
  int64_t batch[SHAPE_MAX_RANK], free[SHAPE_MAX_RANK], contract[SHAPE_MAX_RANK];
} roles;

static roles roles_of(const hlo_instr *dot, uint32_t k) {
  const hlo_attr *batch = hlo_attr_of(dot, k ? HLO_ATTR_RHS_BATCH : HLO_ATTR_LHS_BATCH);
  const hlo_attr *contract = hlo_attr_of(dot, k ? HLO_ATTR_RHS_CONTRACT : HLO_ATTR_LHS_CONTRACT);
  bool taken[SHAPE_MAX_RANK] = {false};
  roles r = {.n_batch = batch->n, .n_contract = contract->n};
  for (uint32_t j = 0; j < batch->n; j++) {
    r.batch[j] = batch->ints[j];
    taken[batch->ints[j]] = true;
  }
  for (uint32_t j = 0; j < contract->n; j++) {
    r.contract[j] = contract->ints[j];
    taken[contract->ints[j]] = true;
  }
  for (int d = 0; d < hlo_rank(dot->operands[k]); d++) {
    if (!taken[d]) {
      r.free[r.n_free++] = d;
    }
  }
  return r;
}

/* Returns true if the dimensions dims[n] of an array of shape s can be merged in this order to one dimension with one
 * stride.  *close is set to whether the elements along that one dimension are contiguous. */
static bool is_line(const shape *s, uint32_t n, const int64_t *dims, bool *close) {
  int64_t strides[SHAPE_MAX_RANK], stride = 0, count = 1;
  shape_strides(s, strides);
  for (uint32_t k = n; k-- > 0;) {
    int64_t size = s->dims[dims[k]];
    if (size != 1 && stride && strides[dims[k]] != count * stride) {
      return false;
    }
    stride = size != 1 && !stride ? strides[dims[k]] : stride;
    count *= size;
  }
  *close = stride <= 1;
  return true;
}

static bool is_matrix(const shape *s, const roles *r) {
  bool batch, rows, columns;
  return is_line(s, r->n_batch, r->batch, &batch) && is_line(s, r->n_free, r->free, &rows) &&
         is_line(s, r->n_contract, r->contract, &columns) && (rows || columns);
}

/* --- transposes --- */

static bool is_identity(int rank, const int64_t *permutation) {
  for (int d = 0; d < rank; d++) {
    if (permutation[d] != d) {
      return false;
    }
  }
  return true;
}

/* Returns true if reshape `i` only merges neighbouring dimensions.  first[d] is then the operand's first dimension that
 * is merged into dimension d of the result.  At the end of the list, after the entries for the result's dimensions, is
 * the operand's rank. */
static bool joins(const hlo_instr *i, int *first) {
  const shape *from = hlo_shape(i->operands[0]), *to = &i->shapes[0];
  int at = 0;
  for (int d = 0; d < to->rank; d++) {
    int64_t size = 1;
    first[d] = at;
    while (at < from->rank && (size < to->dims[d] || at == first[d])) {
      size *= from->dims[at++];
    }
    if (size != to->dims[d]) {
      return false;
    }
  }
  for (; at < from->rank && to->rank > 0 && from->dims[at] == 1; at++) {
  }
  first[to->rank] = at;
  return at == from->rank;
}

/* A value, and a permutation that a transpose is to apply to it. */
typedef struct moved {
  hlo_value v;
  int64_t permutation[SHAPE_MAX_RANK];
} moved;

/* If x->v is a transpose or a reshape that only merges dimensions, replaces x->v by its operand, and changes
 * x->permutation so that x->v transposed by x->permutation still has the same elements in the same order.  Otherwise
 * returns false. */
static bool look_behind(moved *x) {
  int first[SHAPE_MAX_RANK + 1], n = 0, rank = hlo_rank(x->v);
  const hlo_instr *i = x->v.def;
  int64_t p[SHAPE_MAX_RANK];
  if (i->op == HLO_TRANSPOSE) {
    for (; n < rank; n++) {
      p[n] = hlo_ints(i, HLO_ATTR_PERMUTATION)[x->permutation[n]];
    }
  } else if (i->op == HLO_RESHAPE && shape_elements(hlo_shape(x->v)) > 0 && joins(i, first)) {
    for (int d = 0; d < rank; d++) {
      for (int64_t k = first[x->permutation[d]]; k < first[x->permutation[d] + 1]; k++) {
        p[n++] = k;
      }
    }
  } else {
    return false;
  }
  memcpy(x->permutation, p, (size_t)n * sizeof *p);
  x->v = i->operands[0];
  return true;
}

/* Builds a transpose of v that is merged with the transposes and reshapes which compute v. */
static hlo_value transposed(hlo_builder *b, hlo_value v, const int64_t *permutation) {
  const shape *s = hlo_shape(v);
  dim dims[SHAPE_MAX_RANK];
  moved x = {.v = v};
  memcpy(x.permutation, permutation, s->rank * sizeof *permutation);
  for (int d = 0; d < s->rank; d++) {
    dims[d] = s->dims[permutation[d]];
  }
  while (look_behind(&x)) {
  }
  hlo_value y = is_identity(hlo_rank(x.v), x.permutation) ? x.v : hlo_transpose(b, x.v, x.permutation);
  return hlo_reshape(b, y, s->rank, dims);
}

/* Returns true if the innermost dimension of the array that `transposed` would transpose stays the innermost one. */
static bool keeps_rows(hlo_value v, const int64_t *permutation) {
  moved x = {.v = v};
  memcpy(x.permutation, permutation, (size_t)hlo_rank(v) * sizeof *permutation);
  while (look_behind(&x)) {
  }
  int last = hlo_rank(x.v) - 1;
  return last < 0 || x.permutation[last] == last;
}

/* --- dots --- */

static int64_t product(const shape *s, uint32_t n, const int64_t *dims) {
  int64_t size = 1;
  for (uint32_t k = 0; k < n; k++) {
    size *= s->dims[dims[k]]; /* no overflow, since it is at most the number of the array's elements */
  }
  return size;
}

static void append(int64_t *list, uint32_t *n, uint32_t more, const int64_t *dims) {
  for (uint32_t k = 0; k < more; k++) {
    list[(*n)++] = dims[k];
  }
}

static void order_of(const roles *r, bool contract_last, int64_t *order) {
  uint32_t n = 0;
  append(order, &n, r->n_batch, r->batch);
  append(order, &n, contract_last ? r->n_free : r->n_contract, contract_last ? r->free : r->contract);
  append(order, &n, contract_last ? r->n_contract : r->n_free, contract_last ? r->contract : r->free);
}

/* Transposes v, operand k of a dot.  The usual layout has the contracted dimensions last for the first operand, and
 * before the free ones for the second.  If only the other order keeps the innermost dimension in place, that one is
 * used.  *r becomes the roles of the new dimensions. */
static hlo_value arrange(hlo_builder *b, hlo_value v, uint32_t k, roles *r) {
  int64_t usual[SHAPE_MAX_RANK], other[SHAPE_MAX_RANK];
  bool contract_last = k == 0;
  order_of(r, contract_last, usual);
  order_of(r, !contract_last, other);
  bool turn = !keeps_rows(v, usual) && keeps_rows(v, other);
  contract_last = contract_last != turn;
  for (uint32_t d = 0; d < r->n_batch; d++) {
    r->batch[d] = d;
  }
  for (uint32_t d = 0; d < r->n_contract; d++) {
    r->contract[d] = r->n_batch + (contract_last ? r->n_free : 0) + d;
  }
  return transposed(b, v, turn ? other : usual);
}

static bool has_library(dtype t) { return t == DTYPE_F32 || t == DTYPE_S8 || t == DTYPE_U8; }

/* Returns true if each element of an operand is used in so many products that transposing the operand costs little in
 * comparison.  `other` is the number of the dot's other operand, and *r has the roles of its dimensions. */
static bool is_worth_it(const hlo_instr *dot, uint32_t other, const roles *r) {
  enum { PRODUCTS = 16 };
  const shape *s = hlo_shape(dot->operands[other]);
  return shape_elements(&dot->shapes[0]) > 0 && product(s, r->n_free, r->free) >= PRODUCTS;
}

static bool arrange_dot(hlo_builder *b, hlo_instr *i) {
  hlo_value operands[2];
  roles r[2] = {roles_of(i, 0), roles_of(i, 1)};
  bool changed = false;
  for (uint32_t k = 0; k < 2; k++) {
    const shape *s = hlo_shape(i->operands[k]);
    operands[k] = i->operands[k];
    if (!shape_is_static(s) || !has_library((dtype)s->type) || !shape_is_static(&i->shapes[0])) {
      return false;
    }
    if (!is_matrix(s, &r[k])) {
      if (!is_worth_it(i, 1 - k, &r[1 - k])) {
        return false;
      }
      changed = true;
    }
  }
  if (!changed) {
    return false;
  }
  for (uint32_t k = 0; k < 2; k++) {
    if (!is_matrix(hlo_shape(i->operands[k]), &r[k])) {
      operands[k] = arrange(b, i->operands[k], k, &r[k]);
    }
  }
  hlo_dot_dims d = {.n_batch = r[0].n_batch,
                    .lhs_batch = r[0].batch,
                    .rhs_batch = r[1].batch,
                    .n_contract = r[0].n_contract,
                    .lhs_contract = r[0].contract,
                    .rhs_contract = r[1].contract};
  return hlo_becomes(i, hlo_dot(b, operands[0], operands[1], &d));
}

status pass_dot_canonicalization(hlo_module *m, pass_context *c, bool *changed) {
  static const hlo_rule_row rules[] = {{HLO_DOT, arrange_dot}, {HLO_OP_COUNT, NULL}};
  return c->target && c->target->canonical_dots ? hlo_sweep_module(m, c, rules, changed) : NULL;
}
