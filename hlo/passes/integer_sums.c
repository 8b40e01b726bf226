/* integer_sums.c - sums of products of small integers are computed in f32 where that is exact.
 *
 * Order: after qdq_fusion, which takes what the target's instructions for bytes can do, and before weights are folded.
 * Requires: a target that sets sums_in_f32, since it has fast kernels for products of f32 and none for s32.  Keeps:
 * results, bit for bit.  Breaks: nothing; leaves dead instructions for dce.
 *
 * f32 has all integers up to 2^24.  So a contraction in s32 of bytes that were converted, less a zero point, is the
 * same in f32 if no sum of absolute values of its products exceeds 2^24: then all partial sums are exact, in any order.
 * Whoever computes the new contraction by other products than those of its operands must leave it alone; its constant
 * weights are whole numbers. */
#include <math.h>

#include "hlo/analysis/quantized.h"
#include "hlo/passes/pass.h"
#include "hlo/passes/rewrite.h"

static const double largest_exact = 0x1p24;
/* bf16 has all integers up to this one, so that operands stay exact if the user allows a lower precision. */
static const double largest_factor = 0x1p8;

/* Returns the largest absolute value that the numbers x (hlo_centered_of) can have. */
static double largest_of(const hlo_quantized *x) {
  double low = dtype_lowest_f64(hlo_type(x->q)), high = dtype_max_f64(hlo_type(x->q)), least_zero = 0, most_zero = 0;
  if (x->has_zero) {
    bool known = hlo_along_is_const(&x->zero);
    least_zero = known ? hlo_along_at(&x->zero, 0) : dtype_lowest_f64(hlo_type(x->zero.v));
    most_zero = known ? least_zero : dtype_max_f64(hlo_type(x->zero.v));
    for (int64_t k = 1; known && k < x->zero.n; k++) {
      least_zero = fmin(least_zero, hlo_along_at(&x->zero, k));
      most_zero = fmax(most_zero, hlo_along_at(&x->zero, k));
    }
  }
  return fmax(fabs(low - most_zero), fabs(high - least_zero));
}

/* Returns the number of products in a sum of the contraction, or infinity if it is not a constant. */
static double products_of(const hlo_instr *i) {
  const shape *w = hlo_shape(i->operands[1]);
  double n = 1;
  for (int k = 0; k < w->rank; k++) {
    bool summed = i->op == HLO_CONVOLUTION ? k > 0 : hlo_has_int(i, HLO_ATTR_RHS_CONTRACT, k);
    n *= !summed ? 1 : dim_is_const(w->dims[k]) ? (double)w->dims[k] : INFINITY;
  }
  return n;
}

/* Returns the largest sum of the absolute values of the weights y of an output, or infinity if they are not known or
 * one is larger than largest_factor. */
static double largest_sum(hlo_builder *b, const hlo_instr *i, const hlo_quantized *y) {
  const literal *l = hlo_literal(y->q);
  const int outputs = hlo_output_dim(i);
  if (!l || outputs < 0 || !hlo_has_output_zeros(y, outputs)) {
    return INFINITY;
  }
  int64_t strides[SHAPE_MAX_RANK], rows = l->shape.dims[outputs];
  double *sums = ARENA_NEW_N(b->pass->scratch, double, (size_t)rows + 1), largest = 0;
  shape_strides(&l->shape, strides);
  for (int64_t k = 0, n = shape_elements(&l->shape); k < n; k++) {
    int64_t output = k / strides[outputs] % rows;
    double weight = fabs((double)hlo_weight_at(y, k, output));
    sums[output] += weight <= largest_factor ? weight : INFINITY;
    largest = fmax(largest, sums[output]);
  }
  return largest;
}

/* Returns true if f32 has all sums of the contraction, whose operands are s32. */
static bool is_exact(hlo_builder *b, const hlo_instr *i) {
  hlo_quantized x, y = {.q = i->operands[1]};
  /* y.q is a literal if the subtraction was folded. */
  if (!hlo_centered_of(i->operands[0], &x) || !(hlo_literal(y.q) || hlo_centered_of(i->operands[1], &y))) {
    return false;
  }
  bool known = hlo_literal(y.q);
  double sum = known ? largest_sum(b, i, &y) : products_of(i) * largest_of(&y);
  return largest_of(&x) <= largest_factor && (known || largest_of(&y) <= largest_factor) &&
         largest_of(&x) * sum <= largest_exact;
}

static bool in_f32(hlo_builder *b, hlo_instr *i) {
  if (i->shapes[0].type != DTYPE_S32 || hlo_sums_bytes(i) || !is_exact(b, i)) {
    return false;
  }
  hlo_value operands[] = {hlo_convert(b, i->operands[0], DTYPE_F32), hlo_convert(b, i->operands[1], DTYPE_F32)};
  shape declared = shape_with_type(i->shapes[0], DTYPE_F32);
  const hlo_instr *made = hlo_build(b, i->op, 2, operands, 1, &declared, i->attrs);
  return made && hlo_becomes_noted(b, i, hlo_convert(b, hlo_result((hlo_instr *)made, 0), DTYPE_S32), "contractions");
}

status pass_integer_sums(hlo_module *m, pass_context *c, bool *changed) {
  static const hlo_rule_row rules[] = {{HLO_DOT, in_f32}, {HLO_CONVOLUTION, in_f32}, {HLO_OP_COUNT, NULL}};
  return c->target && c->target->sums_in_f32 ? hlo_sweep_module(m, c, rules, changed) : NULL;
}
