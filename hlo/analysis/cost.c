/* cost.c - estimates of operations and bytes; see cost.h. */
#include "base/arith.h"
#include "hlo/analysis/cost.h"

static bool is_known(const shape *s) { return s->kind == SHAPE_ARRAY && shape_is_static(s); }

static int64_t elements_of(const shape *s) { return is_known(s) ? shape_elements(s) : 0; }

static int64_t bytes_of(const shape *s) { return is_known(s) ? shape_bytes(s) : 0; }

/* --- arithmetic operations --- */

static int64_t product_of(const int64_t *list, uint32_t n) {
  int64_t product = 1;
  for (uint32_t k = 0; k < n; k++) {
    product = mul_saturated(product, list[k]);
  }
  return product;
}

/* Returns the number of multiply-adds for one element of the result. */
static int64_t depth_of(const hlo_instr *i) {
  const shape *x = hlo_shape(i->operands[0]), *w = hlo_shape(i->operands[1]);
  if (i->op == HLO_CONVOLUTION) { /* the kernel is [O, I/groups, spatial...] */
    return is_known(w) ? shape_product(w, 1, w->rank) : 0;
  }
  int64_t depth = is_known(x);
  for (uint32_t k = 0; k < hlo_n_ints(i, HLO_ATTR_LHS_CONTRACT); k++) {
    depth = mul_saturated(depth, x->dims[hlo_ints(i, HLO_ATTR_LHS_CONTRACT)[k]]);
  }
  return depth;
}

static int64_t operations_of(const hlo_instr *i) {
  if (!i->n_results) {
    return 0;
  }
  int64_t out = elements_of(&i->shapes[0]);
  switch (hlo_info(i)->kind) {
    case HLO_ELEMENTWISE: return out;
    case HLO_CONTRACTION: return mul_saturated(2, mul_saturated(out, depth_of(i)));
    case HLO_REDUCTION:
    case HLO_SCAN: return elements_of(hlo_shape(i->operands[0]));
    case HLO_WINDOW:
      return mul_saturated(out, product_of(hlo_ints(i, HLO_ATTR_WINDOW), hlo_n_ints(i, HLO_ATTR_WINDOW)));
    default: return 0;
  }
}

/* --- bytes --- */

/* Returns the bytes of operand k that `i` reads.  Slices and gathers read no more of the array than the size of their
 * result; dynamic-update-slice does not read the array that it updates. */
static int64_t read_bytes(const hlo_instr *i, uint32_t k) {
  int64_t all = bytes_of(hlo_shape(i->operands[k]));
  switch (i->op) {
    case HLO_SLICE:
    case HLO_DYNAMIC_SLICE:
    case HLO_GATHER: return k == 0 ? min_i64(all, bytes_of(&i->shapes[0])) : all;
    case HLO_DYNAMIC_UPDATE_SLICE: return k == 0 ? 0 : all;
    default: return all;
  }
}

/* Returns how many bytes of the value `v` are read inside of a fusion: all of them, unless each user reads
 * only a part. */
static int64_t read_of(hlo_value v) {
  int64_t all = bytes_of(hlo_shape(v)), read = 0;
  if (v.def->n_uses == 0) {
    return all;
  }
  for (uint32_t k = 0; k < v.def->n_uses; k++) {
    const hlo_use *use = &v.def->uses[k];
    bool is_view = use->user->op == HLO_RESHAPE;
    read = add_saturated(read, is_view ? read_of(hlo_result(use->user, 0)) : read_bytes(use->user, use->operand));
  }
  return min_i64(all, read);
}

static int64_t written_bytes(const hlo_instr *i) {
  if (i->op == HLO_DYNAMIC_UPDATE_SLICE) {
    return bytes_of(hlo_shape(i->operands[1]));
  }
  int64_t sum = 0;
  for (uint32_t k = 0; k < i->n_results; k++) {
    sum = add_saturated(sum, bytes_of(&i->shapes[k]));
  }
  return sum;
}

static bool is_repeated(const hlo_instr *i, uint32_t k) {
  for (uint32_t j = 0; j < k; j++) {
    if (hlo_value_equal(i->operands[j], i->operands[k])) {
      return true;
    }
  }
  return false;
}

hlo_cost hlo_cost_of(const hlo_instr *i) {
  hlo_cost c = {0};
  bool nothing = i->op == HLO_PARAMETER || i->op == HLO_CONSTANT || i->op == HLO_EMPTY || i->op == HLO_RESHAPE;
  if (nothing || hlo_is_control(i)) {
    return c;
  }
  c.bytes = written_bytes(i);
  if (i->op != HLO_FUSION) {
    c.operations = operations_of(i);
    for (uint32_t k = 0; k < i->n_operands; k++) {
      c.bytes = add_saturated(c.bytes, is_repeated(i, k) ? 0 : read_bytes(i, k));
    }
    return c;
  }
  const hlo_computation *body = hlo_callee(i, 0);
  for (const hlo_instr *j = body->first; j; j = j->next) {
    c.operations = add_saturated(c.operations, j->op == HLO_PARAMETER ? 0 : operations_of(j));
  }
  for (uint32_t k = 0; k < body->n_params; k++) {
    c.bytes = add_saturated(c.bytes, read_of(hlo_result(body->params[k], 0)));
  }
  return c;
}
