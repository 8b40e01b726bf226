/* integer_sums.c - sums of products of small integers are computed in f32 where that is exact.
 *
 * Order: after qdq_fusion, which takes what the target's instructions for bytes can do, and before weights are folded.
 * Requires: a target that sets sums_in_f32, since it has fast kernels for products of f32 and none for s32.  Keeps:
 * results, bit for bit.  Breaks: nothing; leaves dead instructions for dce.
 *
 * f32 has all integers up to 2^24.  So a contraction in s32 of small integers, such as bytes less a zero point, is the
 * same in f32 if no sum of absolute values of its products exceeds 2^24: then all partial sums are exact, in any order.
 * An algorithm that multiplies other numbers than the operands' elements, such as Winograd's, would round.  It must not
 * be used for the new contraction, which it can tell from the constant weights: they are whole numbers.
 *
 * What stands around such a contraction becomes f32, too, where that changes nothing, so that it may become the
 * contraction's epilogue: the addition of a bias, and the conversions to bytes and back of requantised numbers.  The
 * latter also skip the bytes before contractions of s16 (qdq_fusion). */
#include <math.h>

#include "hlo/analysis/quantized.h"
#include "hlo/analysis/value_range.h"
#include "hlo/passes/pass.h"
#include "hlo/passes/rewrite.h"

static const double largest_exact = 0x1p24;
/* bf16 has all integers up to this one, so that operands stay exact if the user allows a lower precision. */
static const double largest_factor = 0x1p8;

typedef struct walk {
  pass_context *context;
  hlo_value_ranges ranges; /* of the values when the walk began */
} walk;

/* Returns true if all elements of v are integers that f32 has. */
static bool has_f32(const walk *w, hlo_value v) {
  return hlo_value_range_of(&w->ranges, v).whole && hlo_largest_magnitude(&w->ranges, v) <= largest_exact;
}

/* --- bytes between contractions --- */

/* Returns true if i multiplies integers, or narrows them for that (qdq_fusion). */
static bool multiplies(const hlo_instr *i) {
  return hlo_info(i)->kind == HLO_CONTRACTION || (i->op == HLO_CONVERT && i->shapes[0].type == DTYPE_S16);
}

/* Returns the zero point that the first user of the bytes q subtracts. */
static double first_zero(hlo_value q) {
  hlo_instr *converted = q.def->n_uses ? q.def->uses[0].user : q.def;
  hlo_quantized x;
  bool centered = converted->n_uses && hlo_centered_of(hlo_result(converted->uses[0].user, 0), &x) && x.has_zero;
  return centered && hlo_along_is_const(&x.zero) && x.zero.n == 1 ? hlo_along_at(&x.zero, 0) : 0;
}

/* Adds up in *contractions how many contractions use v.  Returns false unless v is convert(q) - zero in s32, or is
 * convert(q) and only used in such differences.  A zero of 0 need not be subtracted. */
static bool is_centered(hlo_value v, double zero, uint32_t *contractions) {
  hlo_quantized x;
  if (!hlo_centered_of(v, &x) || hlo_is_root(v)) {
    return false;
  }
  bool same = x.has_zero ? hlo_along_is_const(&x.zero) && x.zero.n == 1 && hlo_along_at(&x.zero, 0) == zero : zero == 0;
  for (uint32_t k = 0; k < v.def->n_uses; k++) {
    hlo_instr *user = v.def->uses[k].user;
    bool is_difference = user->op == HLO_SUB && is_centered(hlo_result(user, 0), zero, contractions);
    if (!same && !is_difference) {
      return false;
    }
    *contractions += same && multiplies(user);
  }
  return true;
}

/* Returns true if the bytes q are only used less this zero point, and in a contraction at least once. */
static bool feeds_contraction(hlo_value q, double zero) {
  uint32_t contractions = 0;
  for (uint32_t k = 0; k < q.def->n_uses; k++) {
    if (!is_centered(hlo_result(q.def->uses[k].user, 0), zero, &contractions)) {
      return false;
    }
  }
  return contractions > 0 && !hlo_is_root(q);
}

/* Replaces convert(q) - zero by v wherever feeds_contraction found it; the differences from a zero of 0 remain. */
static void replace_centered(hlo_value q, double zero, hlo_value v) {
  for (uint32_t k = 0; k < q.def->n_uses; k++) {
    hlo_instr *converted = q.def->uses[k].user;
    if (zero == 0) {
      hlo_becomes(converted, v);
      continue;
    }
    for (uint32_t d = 0; d < converted->n_uses; d++) {
      hlo_becomes(converted->uses[d].user, v);
    }
  }
}

/* convert(q) - z = clamp(low - z, round(v) + (zero - z), high - z) where q = convert(clamp(low, round(v) + zero,
 * high)): the additions are exact, but where both are cut off. */
static bool skip_bytes(const walk *w, hlo_builder *b, hlo_instr *i) {
  hlo_requantized r;
  hlo_value q = hlo_result(i, 0);
  if (i->op != HLO_CONVERT || !hlo_requantized_of(q, &r) ||
      !hlo_value_range_of(&w->ranges, hlo_result(r.round, 0)).known || !feeds_contraction(q, first_zero(q))) {
    return false;
  }
  const double z = first_zero(q);
  hlo_value x = hlo_result(r.round, 0);
  x = r.zero == z ? x : hlo_binary(b, HLO_ADD, x, hlo_splat(b, *hlo_shape(x), r.zero - z));
  hlo_value low = hlo_scalar(b, DTYPE_F32, r.low - z), high = hlo_scalar(b, DTYPE_F32, r.high - z);
  replace_centered(q, z, hlo_convert(b, hlo_clamp(b, low, x, high), DTYPE_S32));
  hlo_pass_note(w->context, "requantisations", 1);
  return true;
}

/* --- contractions --- */

/* Returns the largest sum of the absolute values of the weights y of an output, or infinity if they are not known or
 * one is larger than largest_factor. */
static double largest_sum(const hlo_instr *i, const hlo_quantized *y, arena *scratch) {
  const literal *l = hlo_literal(y->q);
  const int outputs = hlo_output_dim(i);
  if (!l || outputs < 0 || !hlo_has_output_zeros(y, outputs)) {
    return INFINITY;
  }
  int64_t strides[SHAPE_MAX_RANK], rows = l->shape.dims[outputs];
  double *sums = ARENA_NEW_N(scratch, double, (size_t)rows + 1), largest = 0;
  shape_strides(&l->shape, strides);
  for (int64_t k = 0, n = shape_elements(&l->shape); k < n; k++) {
    int64_t output = k / strides[outputs] % rows;
    double weight = fabs((double)hlo_weight_at(y, k, output));
    sums[output] += weight <= largest_factor ? weight : INFINITY;
    largest = fmax(largest, sums[output]);
  }
  return largest;
}

/* Returns true if f32 has all sums of the contraction, whose result is s32. */
static bool is_exact(const walk *w, const hlo_instr *i) {
  double x = hlo_largest_magnitude(&w->ranges, i->operands[0]), y = hlo_largest_magnitude(&w->ranges, i->operands[1]);
  if (x > largest_factor) {
    return false;
  }
  hlo_quantized weights = {.q = i->operands[1]};
  /* weights.q is a literal if the subtraction was folded. */
  if (hlo_literal(weights.q) || (hlo_centered_of(i->operands[1], &weights) && hlo_literal(weights.q))) {
    return x * largest_sum(i, &weights, w->context->scratch) <= largest_exact;
  }
  return y <= largest_factor && has_f32(w, hlo_result((hlo_instr *)i, 0));
}

/* Returns true for contractions of s32, which are not computed by instructions for small integers. */
static bool sums_integers(const hlo_instr *i) {
  return hlo_info(i)->kind == HLO_CONTRACTION && i->shapes[0].type == DTYPE_S32 && !hlo_widens_sums(i);
}

/* Returns v, an array of integers that f32 has, in f32. */
static hlo_value in_f32(const walk *w, hlo_builder *b, hlo_value v) {
  hlo_instr *i = v.def;
  hlo_value x = i->n_operands ? i->operands[0] : v;
  if (i->op == HLO_CONVERT && has_f32(w, x)) {
    return hlo_type(x) == DTYPE_F32 ? x : hlo_convert(b, x, DTYPE_F32);
  }
  if (i->op == HLO_BROADCAST) {
    return hlo_broadcast(b, in_f32(w, b, x), i->shapes[0], hlo_ints(i, HLO_ATTR_DIMENSIONS));
  }
  if ((i->op == HLO_ADD || i->op == HLO_SUB) && has_f32(w, x) && has_f32(w, i->operands[1])) {
    return hlo_binary(b, i->op, in_f32(w, b, x), in_f32(w, b, i->operands[1]));
  }
  return hlo_convert(b, v, DTYPE_F32);
}

/* Replaces convert(v) to f32 by f wherever v is used in this way. */
static void replace_conversions(hlo_value v, hlo_value f) {
  for (uint32_t k = 0; k < v.def->n_uses; k++) {
    hlo_instr *user = v.def->uses[k].user;
    if (user->op == HLO_CONVERT && user->shapes[0].type == DTYPE_F32) {
      hlo_becomes(user, f);
    }
  }
}

/* Replaces convert(sums + bias) to f32 by f + bias, where f has the same sums: an addition in f32 rounds the exact sum
 * as the conversion does.  `at` is the operand of the addition that has the sums. */
static void replace_biased(const walk *w, hlo_builder *b, hlo_instr *add, uint32_t at, hlo_value f) {
  hlo_instr *before = b->before;
  hlo_value bias = add->operands[1 - at];
  if (has_f32(w, bias)) {
    b->before = add;
    replace_conversions(hlo_result(add, 0), hlo_binary(b, HLO_ADD, f, in_f32(w, b, bias)));
    b->before = before;
  }
}

static bool sum_in_f32(const walk *w, hlo_builder *b, hlo_instr *i) {
  if (!sums_integers(i) || hlo_is_unused(i) || !is_exact(w, i)) {
    return false;
  }
  hlo_value operands[] = {in_f32(w, b, i->operands[0]), in_f32(w, b, i->operands[1])};
  shape declared = shape_with_type(i->shapes[0], DTYPE_F32);
  hlo_value sums = hlo_result(i, 0), f = hlo_result(hlo_build(b, i->op, 2, operands, 1, &declared, i->attrs), 0);
  replace_conversions(sums, f);
  for (uint32_t k = 0; k < i->n_uses; k++) {
    if (i->uses[k].user->op == HLO_ADD) {
      replace_biased(w, b, i->uses[k].user, i->uses[k].operand, f);
    }
  }
  return hlo_becomes_noted(b, i, hlo_convert(b, f, DTYPE_S32), "contractions");
}

/* convert(convert(x) to s32) to f32 = x + 0 where x has integers only; the addition makes a 0 of -0. */
static bool stay_in_f32(const walk *w, hlo_builder *b, hlo_instr *i) {
  hlo_value s = i->operands[0];
  if (s.def->op != HLO_CONVERT || hlo_type(s) != DTYPE_S32 || i->shapes[0].type != DTYPE_F32 || hlo_is_unused(i)) {
    return false;
  }
  hlo_value x = s.def->operands[0];
  if (hlo_type(x) != DTYPE_F32 || !has_f32(w, x)) {
    return false;
  }
  return hlo_becomes(i, hlo_binary(b, HLO_ADD, x, hlo_splat(b, *hlo_shape(x), 0)));
}

/* convert(convert(x) to s32) to s16 = convert(x) to s16 where x has integers of s16 only. */
static bool narrow_at_once(const walk *w, hlo_builder *b, hlo_instr *i) {
  hlo_value s = i->operands[0];
  if (s.def->op != HLO_CONVERT || hlo_type(s) != DTYPE_S32 || i->shapes[0].type != DTYPE_S16 || hlo_is_unused(i)) {
    return false;
  }
  hlo_value x = s.def->operands[0];
  return hlo_type(x) == DTYPE_F32 && has_f32(w, x) && hlo_largest_magnitude(&w->ranges, x) <= INT16_MAX &&
         hlo_becomes(i, hlo_convert(b, x, DTYPE_S16));
}

static bool change_type(const walk *w, hlo_builder *b, hlo_instr *i) {
  return i->op == HLO_CONVERT ? stay_in_f32(w, b, i) || narrow_at_once(w, b, i) : sum_in_f32(w, b, i);
}

/* --- the pass --- */

typedef bool rewrite(const walk *w, hlo_builder *b, hlo_instr *i);

/* Tries the rewrite at each instruction that the computation has now. */
static status sweep(hlo_computation *computation, pass_context *c, rewrite *attempt, bool *changed) {
  walk w = {c, hlo_value_ranges_make(computation, c->scratch)};
  for (hlo_instr *i = computation->first, *next; i; i = next) {
    hlo_builder b = hlo_pass_builder(c, computation, i);
    b.eval = NULL; /* otherwise a small broadcast would become an array, and not be recognised as a bias */
    next = i->next;
    bool made = attempt(&w, &b, i);
    TRY(hlo_builder_take_error(&b));
    if (made) {
      *changed = true;
      TRY(budget_check(arena_budget(c->scratch)));
    }
  }
  return NULL;
}

/* Returns true if the computation has contractions of s32, or of s16. */
static bool has_sums(const hlo_computation *computation) {
  const hlo_instr *i = computation->first;
  while (i && !(hlo_info(i)->kind == HLO_CONTRACTION && i->shapes[0].type == DTYPE_S32 && !hlo_sums_bytes(i))) {
    i = i->next;
  }
  return i != NULL;
}

status pass_integer_sums(hlo_module *m, pass_context *c, bool *changed) {
  uint32_t n;
  hlo_computation **walked = hlo_walked(m, c->scratch, false, &n);
  for (uint32_t k = 0; k < n && c->target && c->target->sums_in_f32; k++) {
    if (has_sums(walked[k])) {
      TRY(sweep(walked[k], c, skip_bytes, changed));
      TRY(sweep(walked[k], c, change_type, changed));
    }
  }
  return NULL;
}
