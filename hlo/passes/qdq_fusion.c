/* qdq_fusion.c - contractions of dequantised arrays are computed in integers, as is the data movement between
 * dequantisation and quantisation.
 *
 * Order: the first of all passes, while weights are integers and patterns are as the importer writes them.  Keeps:
 * results of integer contractions, bit for bit.  Arithmetic in f32 on dequantised numbers is replaced by exact integer
 * sums, which is closer to the real result; so a quantised result may differ by one step if the real number is within
 * f32's rounding error of the middle between two steps.  Breaks: nothing; leaves dead instructions for dce.
 *
 * A contraction becomes one of bytes with sums in s32 if the target supports it (takes_narrow_operands) and its weights
 * are constants: sum((q - z) * w) = sum(q * w) - z * sum(w), where the second term is one number for each output
 * channel (called an output below), and padding has the value z.  Otherwise it becomes one of s16 if the target
 * supports that: sum(x * w) where x = q - z.  What remains is a factor and a shift for each output, into which the
 * scale of a following quantisation is merged. */
#include <math.h>
#include <string.h>

#include "hlo/analysis/quantized.h"
#include "hlo/passes/pass.h"
#include "hlo/passes/qdq_weights.h"
#include "hlo/passes/rewrite.h"

/* --- lists of constants --- */

static hlo_value list_f32(hlo_builder *b, int64_t n, const double *values) {
  void *data;
  literal l = literal_new(hlo_arena(b), shape_make(DTYPE_F32, 1, &n), &data);
  for (int64_t k = 0; k < n; k++) {
    dtype_store_f64(DTYPE_F32, (float *)data + k, values[k], false, DTYPE_ROUND_NEAREST);
  }
  return hlo_constant(b, l);
}

/* Broadcasts `list`, whose elements are numbered along dimension `axis` of s, to shape s.  Folding is disabled, so that
 * a small list does not become a constant of that shape. */
static hlo_value stretch(hlo_builder *b, hlo_value list, dtype t, const shape *s, int64_t axis) {
  hlo_eval_fn *eval = b->eval;
  b->eval = NULL;
  hlo_value v = hlo_broadcast(b, list, shape_with_type(*s, t), &axis);
  b->eval = eval;
  return v;
}

static hlo_value stretch_number(hlo_builder *b, double number, const shape *s) {
  return stretch(b, hlo_scalar(b, DTYPE_F32, number), DTYPE_F32, s, 0);
}

/* --- contractions --- */

/* Returns the dimension of the result that runs over output channels. */
static int64_t channel_dim(const hlo_instr *i) {
  bool first = i->op == HLO_CONVOLUTION && hlo_int(i, HLO_ATTR_LAYOUT) == HLO_CHANNELS_FIRST;
  return first ? 1 : i->shapes[0].rank - 1;
}

static bool is_padded(const hlo_instr *i, bool *crops) {
  bool padded = false;
  *crops = false;
  for (uint32_t k = 0; i->op == HLO_CONVOLUTION && k < hlo_n_ints(i, HLO_ATTR_LOW); k++) {
    int64_t low = hlo_ints(i, HLO_ATTR_LOW)[k], high = hlo_ints(i, HLO_ATTR_HIGH)[k];
    padded = padded || low || high || hlo_ints(i, HLO_ATTR_LHS_DILATION)[k] > 1;
    *crops = *crops || low < 0 || high < 0 || hlo_ints(i, HLO_ATTR_LHS_DILATION)[k] > 1;
  }
  return padded;
}

/* Returns the zero point of x, which is one number, as a scalar of type t. */
static hlo_value zero_point(hlo_builder *b, const hlo_quantized *x, dtype t) {
  return hlo_along_is_const(&x->zero) ? hlo_scalar(b, t, hlo_along_at(&x->zero, 0))
                                      : hlo_convert(b, hlo_reshape(b, x->zero.v, 0, NULL), t);
}

/* Pads x like the convolution does, but with x's zero point, which stands for 0. */
static hlo_value padded_operand(hlo_builder *b, const hlo_instr *i, const hlo_quantized *x) {
  int first = hlo_int(i, HLO_ATTR_LAYOUT) == HLO_CHANNELS_FIRST ? 2 : 1;
  int64_t low[SHAPE_MAX_RANK] = {0}, high[SHAPE_MAX_RANK] = {0};
  for (uint32_t k = 0; k < hlo_n_ints(i, HLO_ATTR_LOW); k++) {
    low[first + (int)k] = hlo_ints(i, HLO_ATTR_LOW)[k];
    high[first + (int)k] = hlo_ints(i, HLO_ATTR_HIGH)[k];
  }
  return hlo_pad(b, x->q, zero_point(b, x, hlo_type(x->q)), low, high, NULL);
}

/* The processor's instructions for bytes add four products at once.  So a convolution of three channels (an image) gets
 * a fourth channel of zeros, which the kernel that quantises the image writes. */
enum { TOGETHER = 4 };

static bool has_few_channels(const hlo_instr *i) {
  return i->op == HLO_CONVOLUTION && hlo_shape(i->operands[1])->dims[1] == TOGETHER - 1 &&
         hlo_int(i, HLO_ATTR_GROUPS) == 1;
}

static hlo_value more_channels(hlo_builder *b, const hlo_instr *i, hlo_value x) {
  int64_t low[SHAPE_MAX_RANK] = {0}, high[SHAPE_MAX_RANK] = {0};
  high[hlo_int(i, HLO_ATTR_LAYOUT) == HLO_CHANNELS_FIRST ? 1 : hlo_rank(x) - 1] = 1;
  return hlo_pad(b, x, hlo_scalar(b, hlo_type(x), 0), low, high, NULL);
}

static literal more_weights(arena *a, const literal *w) {
  shape s = w->shape;
  int64_t taps = shape_product(&s, 2, s.rank), few = s.dims[1] * taps, many = TOGETHER * taps;
  void *data;
  s.dims[1] = TOGETHER;
  literal l = literal_new(a, s, &data);
  memset(data, 0, (size_t)shape_bytes(&s));
  for (int64_t o = 0; o < s.dims[0]; o++) {
    memcpy((int8_t *)data + o * many, (const int8_t *)w->data + o * few, (size_t)few);
  }
  return l;
}

static hlo_value integer_contraction(hlo_builder *b, const hlo_instr *i, hlo_value x, hlo_value w, bool unpadded) {
  if (i->op == HLO_DOT) {
    hlo_dot_dims d = {.n_batch = hlo_n_ints(i, HLO_ATTR_LHS_BATCH),
                      .n_contract = hlo_n_ints(i, HLO_ATTR_LHS_CONTRACT),
                      .lhs_batch = hlo_ints(i, HLO_ATTR_LHS_BATCH),
                      .rhs_batch = hlo_ints(i, HLO_ATTR_RHS_BATCH),
                      .lhs_contract = hlo_ints(i, HLO_ATTR_LHS_CONTRACT),
                      .rhs_contract = hlo_ints(i, HLO_ATTR_RHS_CONTRACT)};
    return hlo_dot(b, x, w, &d);
  }
  hlo_conv_dims d = {.strides = hlo_ints(i, HLO_ATTR_STRIDES),
                     .low = unpadded ? NULL : hlo_ints(i, HLO_ATTR_LOW),
                     .high = unpadded ? NULL : hlo_ints(i, HLO_ATTR_HIGH),
                     .lhs_dilation = hlo_ints(i, HLO_ATTR_LHS_DILATION),
                     .rhs_dilation = hlo_ints(i, HLO_ATTR_RHS_DILATION),
                     .groups = hlo_int(i, HLO_ATTR_GROUPS),
                     .layout = (hlo_layout)hlo_int(i, HLO_ATTR_LAYOUT)};
  return hlo_convolution(b, x, w, &d);
}

/* Returns -zero * w->sums as s32[outputs], which is the second term of the formula at the top of this file. */
static hlo_value zero_share(hlo_builder *b, const hlo_along *zero, const qdq_weights *w) {
  void *data;
  literal l = literal_new(hlo_arena(b), shape_make(DTYPE_S32, 1, &w->n), &data);
  bool known = hlo_along_is_const(zero);
  for (int64_t k = 0; k < w->n; k++) {
    ((int32_t *)data)[k] = (int32_t)(-w->sums[k] * (known ? (int64_t)hlo_along_at(zero, 0) : 1));
  }
  hlo_value sums = hlo_constant(b, l);
  if (known || !sums.def) {
    return sums;
  }
  hlo_value number = hlo_convert(b, hlo_reshape(b, zero->v, 0, NULL), DTYPE_S32);
  return hlo_binary(b, HLO_MUL, hlo_broadcast(b, number, *hlo_shape(sums), NULL), sums);
}

static bool takes(const hlo_builder *b, const hlo_instr *i, dtype lhs) {
  const hlo_target *target = b->pass->target;
  return target->takes_narrow_operands && target->takes_narrow_operands(target->data, i, lhs);
}

/* Returns sum((x - zero) * w) in s32, or no value if padding, weights or target do not allow that in bytes. */
static hlo_value sum_of_bytes(hlo_builder *b, const hlo_instr *i, const hlo_quantized *x, const hlo_quantized *y,
                              qdq_weights *w) {
  bool crops, padded = is_padded(i, &crops), unpadded = x->has_zero && padded;
  if ((x->has_zero && crops) || !takes(b, i, hlo_type(x->q)) || !qdq_read_weights(b, i, y, DTYPE_S8, w)) {
    return (hlo_value){0};
  }
  bool few = has_few_channels(i);
  hlo_value q = unpadded ? padded_operand(b, i, x) : x->q;
  q = few ? more_channels(b, i, q) : q;
  literal bytes = few ? more_weights(hlo_arena(b), &w->numbers) : w->numbers;
  hlo_value sum = integer_contraction(b, i, q, hlo_constant(b, bytes), unpadded);
  if (x->has_zero) {
    sum = hlo_binary(b, HLO_ADD, sum, stretch(b, zero_share(b, &x->zero, w), DTYPE_S32, &i->shapes[0], channel_dim(i)));
  }
  return sum;
}

/* The same in s16. */
static hlo_value sum_of_s16(hlo_builder *b, const hlo_instr *i, const hlo_quantized *x, const hlo_quantized *y,
                            qdq_weights *w) {
  if (!takes(b, i, DTYPE_S16) || !qdq_read_weights(b, i, y, DTYPE_S16, w)) {
    return (hlo_value){0};
  }
  hlo_value q = hlo_convert(b, x->q, DTYPE_S32);
  if (x->has_zero) {
    q = hlo_binary(b, HLO_SUB, q, stretch(b, zero_point(b, x, DTYPE_S32), DTYPE_S32, hlo_shape(q), 0));
  }
  return integer_contraction(b, i, hlo_convert(b, q, DTYPE_S16), hlo_constant(b, w->numbers), false);
}

static hlo_value integer_sum(hlo_builder *b, const hlo_instr *i, const hlo_quantized *x, const hlo_quantized *y,
                             qdq_weights *w) {
  if (!hlo_has_own_zero(x)) {
    return (hlo_value){0};
  }
  hlo_value sum = sum_of_bytes(b, i, x, y, w);
  return sum.def ? sum : sum_of_s16(b, i, x, y, w);
}

/* Handles dequantised operands in f32: returns the exact sum times a factor for each output channel, or no value. */
static hlo_value of_dequantized(hlo_builder *b, const hlo_instr *i) {
  hlo_quantized x, y;
  qdq_weights w;
  if (!hlo_dequantized_of(i->operands[0], &x) || hlo_literal(x.q) || !hlo_dequantized_of(i->operands[1], &y) ||
      x.scale.n != 1 || !hlo_along_is_const(&x.scale) || !hlo_along_is_const(&y.scale) ||
      (y.scale.n > 1 && y.scale.axis != hlo_output_dim(i))) {
    return (hlo_value){0};
  }
  hlo_value sum = integer_sum(b, i, &x, &y, &w);
  if (!sum.def) {
    return sum;
  }
  double *factors = ARENA_NEW_N(b->pass->scratch, double, (size_t)w.n + 1);
  for (int64_t k = 0; k < w.n; k++) {
    factors[k] = hlo_along_at(&x.scale, 0) * hlo_along_at(&y.scale, k);
  }
  return hlo_binary(b, HLO_MUL, hlo_convert(b, sum, DTYPE_F32),
                    stretch(b, list_f32(b, w.n, factors), DTYPE_F32, &i->shapes[0], channel_dim(i)));
}

/* Returns the exact sum if the operands are bytes converted to s32, with or without a zero point, otherwise nothing. */
static hlo_value of_centered(hlo_builder *b, const hlo_instr *i) {
  hlo_quantized x, y = {.q = i->operands[1]};
  qdq_weights w;
  /* y.q is a literal if the subtraction was folded. */
  bool known = hlo_literal(y.q) || hlo_centered_of(i->operands[1], &y);
  if (!known || !hlo_centered_of(i->operands[0], &x) || hlo_literal(x.q)) {
    return (hlo_value){0};
  }
  return integer_sum(b, i, &x, &y, &w);
}

static hlo_value contraction(hlo_builder *b, const hlo_instr *i) {
  dtype t = (dtype)i->shapes[0].type;
  return t == DTYPE_F32                          ? of_dequantized(b, i)
         : t == DTYPE_S32 && !hlo_widens_sums(i) ? of_centered(b, i)
                                                 : (hlo_value){0};
}

/* --- merging the scale of a quantisation into the factors before it --- */

/* The value sum * factors + shifts, limited by bounds (such as ReLU's 0), of which the outermost is the first in the
 * list.  Shifts and bounds may be missing. */
typedef struct affine {
  hlo_value sum; /* the sum, converted to f32 */
  hlo_along factors, shifts;
  bool has_shifts;
  uint32_t n_bounds;
  struct {
    hlo_op op; /* HLO_MAX or HLO_MIN */
    double at;
  } bounds[4];
} affine;

static void add_bound(affine *f, hlo_op op, double at) {
  f->bounds[f->n_bounds].op = op;
  f->bounds[f->n_bounds++].at = at;
}

/* Returns true if *v is bounded by a maximum, minimum or clamp.  Adds the bounds to f; *v becomes what is bounded. */
static bool take_bounds(affine *f, hlo_value *v) {
  hlo_along low, high;
  const hlo_instr *i = v->def;
  if (f->n_bounds + 2 > sizeof f->bounds / sizeof *f->bounds) {
    return false;
  }
  if (i->op == HLO_CLAMP && hlo_along_of(i->operands[0], &low) && hlo_along_of(i->operands[2], &high) && low.n == 1 &&
      high.n == 1 && hlo_along_is_const(&low) && hlo_along_is_const(&high)) {
    add_bound(f, HLO_MIN, hlo_along_at(&high, 0)); /* the outermost bound comes first */
    add_bound(f, HLO_MAX, hlo_along_at(&low, 0));
    *v = i->operands[1];
    return true;
  }
  for (uint32_t k = 0; (i->op == HLO_MAX || i->op == HLO_MIN) && k < 2; k++) {
    if (hlo_along_of(i->operands[k], &low) && low.n == 1 && hlo_along_is_const(&low)) {
      add_bound(f, i->op, hlo_along_at(&low, 0));
      *v = i->operands[1 - k];
      return true;
    }
  }
  return false;
}

/* Returns true if *v is `op` of a value, which *v becomes, and one constant or a list of them along a dimension. */
static bool take_constants(hlo_value *v, hlo_op op, hlo_along *constants) {
  for (uint32_t k = 0; v->def->op == op && k < 2; k++) {
    if (hlo_along_of(v->def->operands[k], constants) && hlo_along_is_const(constants)) {
      *v = v->def->operands[1 - k];
      return true;
    }
  }
  return false;
}

static bool is_integer_sum(hlo_value v) {
  hlo_along constants;
  while (take_constants(&v, HLO_ADD, &constants)) {
  }
  return hlo_info(v.def)->kind == HLO_CONTRACTION && hlo_widens_sums(v.def);
}

/* Reads v as a value of the form that `affine` describes.  Every intermediate value must have only one user. */
static bool affine_of(hlo_value v, affine *f) {
  *f = (affine){.n_bounds = 0};
  while (hlo_used_once(v) && take_bounds(f, &v)) {
  }
  f->has_shifts = hlo_used_once(v) && take_constants(&v, HLO_ADD, &f->shifts);
  if (!hlo_used_once(v) || !take_constants(&v, HLO_MUL, &f->factors) || v.def->op != HLO_CONVERT) {
    return false;
  }
  f->sum = v;
  return hlo_type(v) == DTYPE_F32 && hlo_type(v.def->operands[0]) == DTYPE_S32 && is_integer_sum(v.def->operands[0]);
}

/* `sum` is the conversion of an integer sum to which constants may have been added.  Sets *converted to the integer sum
 * without these constants, and returns the constants; their n is 0 if there are none. */
static hlo_along added_before(const hlo_value sum, hlo_value *converted) {
  hlo_along constants = {.n = 0};
  hlo_value v = sum.def->operands[0];
  *converted = v;
  if (hlo_used_once(v) && take_constants(&v, HLO_ADD, &constants)) {
    *converted = v;
    return constants;
  }
  return (hlo_along){.n = 0};
}

/* Returns sum * factors / scale + shift, where shift has all shifts of f and the zero that the quantisation merges. */
static hlo_value scaled_sum(hlo_builder *b, const affine *f, double scale, double zero, const hlo_instr *i) {
  hlo_value sum;
  hlo_along before = added_before(f->sum, &sum);
  const hlo_along *lists[] = {&f->factors, &f->shifts, &before}, *longest = &f->factors;
  for (int k = 1; k < 3; k++) {
    longest = lists[k]->n > longest->n ? lists[k] : longest;
  }
  int64_t n = longest->n;
  double *factors = ARENA_NEW_N(b->pass->scratch, double, (size_t)n + 1);
  double *shifts = ARENA_NEW_N(b->pass->scratch, double, (size_t)n + 1);
  bool shifted = false;
  for (int64_t k = 0; k < n; k++) {
    factors[k] = hlo_along_at(&f->factors, k) / scale;
    shifts[k] = (f->has_shifts ? hlo_along_at(&f->shifts, k) / scale : 0) + zero;
    shifts[k] += before.n ? hlo_along_at(&before, k) * factors[k] : 0;
    shifted = shifted || shifts[k] != 0;
  }
  const shape *s = &i->shapes[0];
  int64_t axis = longest->axis;
  hlo_value v =
      hlo_binary(b, HLO_MUL, hlo_convert(b, sum, DTYPE_F32),
                 n == 1 ? stretch_number(b, factors[0], s) : stretch(b, list_f32(b, n, factors), DTYPE_F32, s, axis));
  if (shifted) {
    v = hlo_binary(b, HLO_ADD, v,
                   n == 1 ? stretch_number(b, shifts[0], s) : stretch(b, list_f32(b, n, shifts), DTYPE_F32, s, axis));
  }
  return v;
}

static bool same_axis(const affine *f) {
  hlo_value sum;
  hlo_along before = added_before(f->sum, &sum);
  const hlo_along *lists[] = {&f->factors, &f->shifts, &before};
  int axis = -1;
  for (int k = 0; k < 3; k++) {
    if (lists[k]->n > 1) {
      if (axis >= 0 && lists[k]->axis != axis) {
        return false;
      }
      axis = lists[k]->axis;
    }
  }
  return true;
}

/* Finds the quantisation that begins with the division i; each operation is the only user of the one before. */
static bool quantization_after(hlo_instr *i, hlo_requantized *q) {
  hlo_value v = hlo_result(i, 0);
  for (int steps = 0; steps < 4; steps++) {
    hlo_instr *user = hlo_only_user(v);
    if (!user || user->n_results != 1) {
      return false;
    }
    v = hlo_result(user, 0);
    if (user->op == HLO_CONVERT) {
      return hlo_requantized_of(v, q) && q->v.def == i;
    }
  }
  return false;
}

/* Returns true if the bound has no effect, because the quantisation clamps at it or more tightly. */
static bool is_beyond(hlo_op op, double bound, const hlo_requantized *q) {
  double at = rint(bound) + q->zero;
  return op == HLO_MAX ? at <= q->low : at >= q->high;
}

/* Rewrites round(f(x) / scale) + zero: merges scale and zero into f, and drops bounds that the quantisation implies. An
 * odd zero stays behind the rounding, since a number in the middle between two integers is rounded to the even one. */
static hlo_value division(hlo_builder *b, hlo_instr *i) {
  hlo_along scale;
  affine f;
  hlo_requantized q;
  if (i->shapes[0].type != DTYPE_F32 || !hlo_along_of(i->operands[1], &scale) || scale.n != 1 ||
      !hlo_along_is_const(&scale) || !affine_of(i->operands[0], &f) || !same_axis(&f) || !quantization_after(i, &q)) {
    return (hlo_value){0};
  }
  const double s = hlo_along_at(&scale, 0), zero = fmod(q.zero, 2) == 0 ? q.zero : 0;
  if (!(s > 1e-30 && s < 1e30)) {
    return (hlo_value){0};
  }
  hlo_value v = scaled_sum(b, &f, s, zero, i);
  for (uint32_t k = f.n_bounds; k-- > 0;) {
    if (!is_beyond(f.bounds[k].op, f.bounds[k].at / s, &q)) {
      v = hlo_binary(b, f.bounds[k].op, v, stretch_number(b, f.bounds[k].at / s + zero, &i->shapes[0]));
    }
  }
  if (q.addition && zero == q.zero) {
    hlo_replace(hlo_result(q.addition, 0), hlo_result(q.round, 0));
  }
  return v;
}

/* --- additions of several constants --- */

static hlo_value sum_of_lists(hlo_builder *b, const hlo_along *x, const hlo_along *y, const shape *s) {
  const hlo_along *of = x->n > 1 ? x : y;
  void *data;
  literal l = literal_new(hlo_arena(b), shape_make(DTYPE_S32, 1, &of->n), &data);
  for (int64_t k = 0; k < of->n; k++) { /* wraps, like additions of s32 */
    ((uint32_t *)data)[k] = (uint32_t)(int64_t)hlo_along_at(x, k) + (uint32_t)(int64_t)hlo_along_at(y, k);
  }
  return stretch(b, hlo_constant(b, l), DTYPE_S32, s, of->axis);
}

/* Rewrites (sum + constants) + other constants as one addition. */
static hlo_value addition(hlo_builder *b, hlo_instr *i) {
  hlo_along outer, inner;
  hlo_value v = hlo_result(i, 0);
  if (i->shapes[0].type != DTYPE_S32 || !take_constants(&v, HLO_ADD, &outer) || !hlo_used_once(v) ||
      !take_constants(&v, HLO_ADD, &inner) || !is_integer_sum(v) ||
      (outer.n > 1 && inner.n > 1 && outer.axis != inner.axis) || (outer.n == 1 && inner.n == 1)) {
    return (hlo_value){0};
  }
  return hlo_binary(b, HLO_ADD, v, sum_of_lists(b, &outer, &inner, &i->shapes[0]));
}

/* --- data movement of bytes in place of numbers --- */

/* Builds (q - zero) * scale as the importer writes it. */
static hlo_value dequantize(hlo_builder *b, hlo_value q, const hlo_quantized *x, int64_t axis) {
  if (!q.def) {
    return q;
  }
  const shape *s = hlo_shape(q);
  hlo_value v = q;
  if (x->has_zero) {
    hlo_value zero = hlo_convert(b, x->zero.n == 1 ? hlo_reshape(b, x->zero.v, 0, NULL) : x->zero.v, DTYPE_S32);
    v = hlo_binary(b, HLO_SUB, hlo_convert(b, q, DTYPE_S32), stretch(b, zero, DTYPE_S32, s, axis));
  }
  hlo_value scale = x->scale.n == 1 ? hlo_reshape(b, x->scale.v, 0, NULL) : x->scale.v;
  return hlo_binary(b, HLO_MUL, hlo_convert(b, v, DTYPE_F32), stretch(b, scale, DTYPE_F32, s, axis));
}

/* Returns true if scale and zero point are both one number, or both a list along the same dimension, and no larger. */
static bool is_tidy(const hlo_quantized *x) {
  const hlo_along *both[] = {&x->scale, &x->zero};
  for (int k = 0; k < 1 + x->has_zero; k++) {
    if (shape_elements(hlo_shape(both[k]->v)) != both[k]->n || (both[k]->n > 1 && hlo_rank(both[k]->v) != 1)) {
      return false;
    }
  }
  return !x->has_zero || x->zero.axis == x->scale.axis;
}

static bool has_one_scale(const hlo_quantized *x) { return x->scale.n == 1 && (!x->has_zero || x->zero.n == 1); }

/* Builds the operation of i on operands that are bytes. */
static hlo_value again(hlo_builder *b, const hlo_instr *i, const hlo_value *operands) {
  shape declared = shape_with_type(i->shapes[0], hlo_type(operands[0]));
  hlo_instr *made = hlo_build(b, i->op, i->n_operands, operands, 1, &declared, i->attrs);
  return made ? hlo_result(made, 0) : (hlo_value){0};
}

/* Returns true if i computes the maximum of windows, and the largest of the bytes q stands for the largest number: the
 * scale is a positive constant, no window consists of padding only, and none is dilated. */
static bool is_max_pool(const hlo_instr *i, const hlo_quantized *x) {
  if ((hlo_reducer)hlo_int(i, HLO_ATTR_REDUCER) != HLO_REDUCE_MAX || !hlo_along_is_const(&x->scale) ||
      !(hlo_along_at(&x->scale, 0) > 0)) {
    return false;
  }
  for (int d = 0; d < i->shapes[0].rank; d++) {
    int64_t reach = (hlo_ints(i, HLO_ATTR_WINDOW)[d] - 1) * hlo_ints(i, HLO_ATTR_RHS_DILATION)[d] + 1;
    if (hlo_ints(i, HLO_ATTR_RHS_DILATION)[d] != 1 || hlo_ints(i, HLO_ATTR_LOW)[d] >= reach ||
        hlo_ints(i, HLO_ATTR_HIGH)[d] >= reach) {
      return false;
    }
  }
  return true;
}

static hlo_value movement(hlo_builder *b, const hlo_instr *i) {
  hlo_quantized x;
  bool pool = i->op == HLO_REDUCE_WINDOW, turn = i->op == HLO_TRANSPOSE;
  if (!hlo_dequantized_of(i->operands[0], &x) || (pool && !is_max_pool(i, &x)) || !is_tidy(&x) ||
      !(has_one_scale(&x) || turn)) {
    return (hlo_value){0};
  }
  int64_t axis = x.scale.axis;
  for (int d = 0; turn && x.scale.n > 1 && d < i->shapes[0].rank; d++) {
    if (hlo_ints(i, HLO_ATTR_PERMUTATION)[d] == x.scale.axis) {
      axis = d;
      break;
    }
  }
  hlo_value operands[2] = {x.q, i->n_operands > 1 ? i->operands[1] : x.q};
  return dequantize(b, again(b, i, operands), &x, axis);
}

static bool same_scale(const hlo_quantized *x, const hlo_quantized *y) {
  return hlo_type(x->q) == hlo_type(y->q) && x->has_zero == y->has_zero && hlo_along_equal(&x->scale, &y->scale) &&
         (!x->has_zero || hlo_along_equal(&x->zero, &y->zero));
}

static hlo_value concatenation(hlo_builder *b, const hlo_instr *i) {
  hlo_quantized first, x;
  hlo_value *bytes = ARENA_NEW_N(b->pass->scratch, hlo_value, i->n_operands);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    if (!hlo_dequantized_of(i->operands[k], &x) || !is_tidy(&x) || !has_one_scale(&x) ||
        (k && !same_scale(&first, &x))) {
      return (hlo_value){0};
    }
    first = x;
    bytes[k] = x.q;
  }
  return dequantize(b, again(b, i, bytes), &first, -1);
}

/* Removes the quantisation of dequantised bytes with the same parameters: round((q - zero) * scale / scale) is q -
 * zero, since two roundings change a number below 2^8 by less than one half. */
static hlo_value round_trip(const hlo_instr *i) {
  hlo_requantized r;
  hlo_quantized x;
  hlo_along scale;
  if (!hlo_requantized_of(hlo_result((hlo_instr *)i, 0), &r) || r.v.def->op != HLO_DIV ||
      !hlo_dequantized_of(r.v.def->operands[0], &x) || !has_one_scale(&x) ||
      !hlo_along_of(r.v.def->operands[1], &scale) || !hlo_along_equal(&scale, &x.scale) ||
      hlo_type(x.q) != (dtype)i->shapes[0].type || (x.has_zero && !hlo_along_is_const(&x.zero))) {
    return (hlo_value){0};
  }
  double s = hlo_along_at(&scale, 0), zero = x.has_zero ? hlo_along_at(&x.zero, 0) : 0;
  bool whole = r.low == dtype_lowest_f64(hlo_type(x.q)) && r.high == dtype_max_f64(hlo_type(x.q));
  return whole && s > 1e-30 && s < 1e30 && zero == r.zero ? x.q : (hlo_value){0};
}

/* --- the rules --- */

static const char other[] = "other rewrites";

static bool in_bytes(hlo_builder *b, hlo_instr *i) {
  return hlo_becomes_noted(b, i, contraction(b, i), "contractions");
}
static bool rescaled(hlo_builder *b, hlo_instr *i) { return hlo_becomes_noted(b, i, division(b, i), other); }
static bool added_once(hlo_builder *b, hlo_instr *i) { return hlo_becomes_noted(b, i, addition(b, i), other); }
static bool undone(hlo_builder *b, hlo_instr *i) { return hlo_becomes_noted(b, i, round_trip(i), other); }
static bool moved(hlo_builder *b, hlo_instr *i) { return hlo_becomes_noted(b, i, movement(b, i), other); }
static bool joined(hlo_builder *b, hlo_instr *i) { return hlo_becomes_noted(b, i, concatenation(b, i), other); }

status pass_qdq_fusion(hlo_module *m, pass_context *c, bool *changed) {
  static const hlo_rule_row rules[] = {
      {HLO_DOT, in_bytes},   {HLO_CONVOLUTION, in_bytes}, {HLO_DIV, rescaled},  {HLO_ADD, added_once},
      {HLO_CONVERT, undone}, {HLO_TRANSPOSE, moved},      {HLO_RESHAPE, moved}, {HLO_SLICE, moved},
      {HLO_GATHER, moved},   {HLO_REDUCE_WINDOW, moved},  {HLO_CONCAT, joined}, {HLO_OP_COUNT, NULL},
  };
  return hlo_sweep_module(m, c, rules, changed);
}
