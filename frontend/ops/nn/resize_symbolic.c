/* resize_symbolic.c - Resize along an axis of symbolic extent.
 *
 * The indices and weights of the taps are computed by the module, in f64, by the formulas with which resize.c computes
 * them during the import, so that the results have the same bits.  The indices of a stretch by an integer are quotients
 * of integers, which passes recognise. */
#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/nn/resize.h"
#include "hlo/ir/fold_sizes.h"

/* --- extents --- */

/* For scales that are multiples of 1/64, floor(in * scale) is an expression of dims.  The standard rounds the product
 * to single precision, whose 24 bits hold multiples of 1/64 exactly up to 2^18, and integers up to 2^24.  For other
 * scales, and for products that may be larger, the extent is pinned. */
status onnx_resize_extent(const onnx_node *n, axis_plan *p) {
  enum { PARTS = 64, LARGEST = 1 << 16, EXACT = 1 << 18 };
  dim_table *t = onnx_dims(n);
  double parts = p->scale * PARTS;
  bool exact = p->scale < LARGEST && parts == (double)(int64_t)parts;
  dim all = exact ? dim_mul(t, p->in, (int64_t)parts) : 0;
  dim limit = exact && (int64_t)parts % PARTS == 0 ? (dim)EXACT * PARTS : EXACT;
  if (!exact || !dim_at_most(t, dim_add_const(t, dim_floordiv(t, all, PARTS), 1), limit)) {
    return onnx_const_dim(n, p->in, "the dimensions of X", &p->out);
  }
  p->out = dim_floordiv(t, all, PARTS);
  return NULL;
}

status onnx_resize_constant(const onnx_node *n, const axis_plan *p) {
  int64_t extent;
  TRY(onnx_const_dim(n, p->in, "the dimensions of X", &extent));
  return onnx_const_dim(n, p->out, "sizes", &extent);
}

/* --- arithmetic on vectors of f64, with one element for each output element --- */

typedef struct taps {
  const onnx_node *n;
  hlo_builder *b;
  const resize *r;
  const axis_plan *p;
  hlo_value out_index, in, out, scale; /* vectors */
} taps;

static hlo_value number(const taps *t, double v) { return hlo_like(t->b, t->out_index, v); }

static hlo_value op(const taps *t, hlo_op o, hlo_value x, hlo_value y) { return hlo_binary(t->b, o, x, y); }

/* Rounds to single precision, as `single` of resize.c. */
static hlo_value single(const taps *t, hlo_value x) {
  return hlo_convert(t->b, hlo_convert(t->b, x, DTYPE_F32), DTYPE_F64);
}

static hlo_value size_vector(const taps *t, dim d) {
  hlo_value v = hlo_convert(t->b, hlo_sizes(t->b, DTYPE_S64, -1, &d), DTYPE_F64);
  return hlo_broadcast_to(t->b, v, hlo_shape(t->out_index));
}

static taps make_taps(const onnx_node *n, const resize *r, const axis_plan *p) {
  taps t = {.n = n, .b = n->b, .r = r, .p = p};
  t.out_index = hlo_iota(n->b, shape_make(DTYPE_F64, 1, &p->out), 0);
  t.in = size_vector(&t, p->in);
  t.out = size_vector(&t, p->out);
  t.scale = p->by_sizes ? single(&t, op(&t, HLO_DIV, t.out, t.in)) : number(&t, p->scale);
  return t;
}

/* Returns (i + 0.5) / scale for each output element i. */
static hlo_value centre(const taps *t) {
  return op(t, HLO_DIV, op(t, HLO_ADD, t->out_index, number(t, 0.5)), t->scale);
}

/* Returns the start or the end of the region of interest. */
static hlo_value region(const taps *t, int side) {
  hlo_value v = t->p->region[side];
  return v.def ? hlo_broadcast_to(t->b, v, hlo_shape(t->out_index)) : number(t, side ? t->p->end : t->p->start);
}

/* Returns the positions of the output elements in a region of the input (`source_in_region` of resize.c). */
static hlo_value positions_in_region(const taps *t) {
  hlo_value one = number(t, 1), start = region(t, 0), end = region(t, 1), last = op(t, HLO_SUB, t->in, one);
  if (dim_at_most(onnx_dims(t->n), t->p->out, 1)) {
    hlo_value middle = op(t, HLO_MUL, number(t, 0.5), single(t, op(t, HLO_ADD, start, end)));
    return single(t, op(t, HLO_MUL, middle, last));
  }
  hlo_value part = single(t, op(t, HLO_MUL, t->out_index, single(t, op(t, HLO_SUB, end, start))));
  part = single(t, op(t, HLO_DIV, single(t, op(t, HLO_MUL, part, last)), op(t, HLO_SUB, t->out, one)));
  return single(t, op(t, HLO_ADD, single(t, op(t, HLO_MUL, start, last)), part));
}

/* Returns the position of each output element in the coordinates of the input (`source` of resize.c). */
static hlo_value positions(const taps *t) {
  hlo_value half = number(t, 0.5), one = number(t, 1), scaled = single(t, op(t, HLO_MUL, t->scale, t->in));
  switch ((coordinates)t->r->coordinates) {
    case PYTORCH_HALF_PIXEL:
      if (dim_at_most(onnx_dims(t->n), t->p->out, 1)) {
        return number(t, 0);
      }
      return single(t, op(t, HLO_SUB, single(t, centre(t)), half));
    case HALF_PIXEL: return single(t, op(t, HLO_SUB, single(t, centre(t)), half));
    case HALF_PIXEL_SYMMETRIC: {
      hlo_value rest = single(t, op(t, HLO_SUB, one, single(t, op(t, HLO_DIV, t->out, scaled))));
      rest = single(t, op(t, HLO_MUL, op(t, HLO_DIV, t->in, number(t, 2)), rest));
      return single(t, op(t, HLO_SUB, single(t, op(t, HLO_ADD, rest, single(t, centre(t)))), half));
    }
    case ALIGN_CORNERS: {
      hlo_value x = op(t, HLO_MUL, t->out_index, op(t, HLO_SUB, t->in, one));
      x = single(t, op(t, HLO_DIV, x, op(t, HLO_SUB, scaled, one)));
      return hlo_select(t->b, hlo_compare(t->b, HLO_EQ, scaled, one), number(t, 0), x);
    }
    case ASYMMETRIC: return single(t, op(t, HLO_DIV, t->out_index, t->scale));
    case TF_HALF_PIXEL_FOR_NN: return single(t, centre(t));
    case TF_CROP_AND_RESIZE: return positions_in_region(t);
  }
  return (hlo_value){0};
}

static hlo_value nearest_index(const taps *t, hlo_value x) {
  hlo_value low = hlo_unary(t->b, HLO_FLOOR, x), part = op(t, HLO_SUB, x, low), half = number(t, 0.5);
  hlo_value next = op(t, HLO_ADD, low, number(t, 1));
  switch ((nearest)t->r->nearest) {
    case PREFER_FLOOR: return hlo_select(t->b, hlo_compare(t->b, HLO_LE, part, half), low, next);
    case PREFER_CEIL: return hlo_select(t->b, hlo_compare(t->b, HLO_LT, part, half), low, next);
    case FLOOR: return low;
    case CEIL: return hlo_unary(t->b, HLO_CEIL, x);
    case BY_SCALE: return t->p->scale < 1 ? hlo_unary(t->b, HLO_CEIL, x) : low;
  }
  return low;
}

/* If output element i is input element i / k for an integer k from 2 to 8, as when pictures are enlarged k times,
 * returns k, otherwise 0.  The position of an output element is then either exactly a position at which the rounding
 * changes, or at least 1 / (2 * k) away from all such positions, which is more than the errors of single precision up
 * to 2^18. */
static int64_t stretch(const onnx_node *n, const resize *r, const axis_plan *p) {
  enum { MOST = 8 };
  dim_table *t = onnx_dims(n);
  int64_t k = 2;
  while (k <= MOST && !dim_happens_equal(t, p->out, dim_mul(t, p->in, k))) {
    k++;
  }
  if (k > MOST || (!p->by_sizes && p->scale != (double)k)) {
    return 0;
  }
  bool rounds = r->nearest == PREFER_FLOOR || r->nearest == PREFER_CEIL;
  switch ((coordinates)r->coordinates) {
    case HALF_PIXEL:
    case PYTORCH_HALF_PIXEL: return rounds ? k : 0;
    case ASYMMETRIC: return r->nearest == FLOOR || r->nearest == BY_SCALE ? k : 0;
    case TF_HALF_PIXEL_FOR_NN: return r->nearest == FLOOR ? k : 0;
    default: return 0;
  }
}

/* Takes each input element k times in succession (hlo/passes/gather_to_broadcast.c). */
static hlo_value repeat(const onnx_node *n, hlo_value x, int64_t axis, dim out, int64_t k) {
  hlo_value at = hlo_iota(n->b, shape_make(DTYPE_S64, 1, &out), 0);
  return hlo_take(n->b, x, hlo_binary(n->b, HLO_DIV, at, hlo_like(n->b, at, (double)k)), axis);
}

/* Gathers the input elements at the positions, which are integers and are clamped to the input. */
static hlo_value take(const taps *t, hlo_value x, int64_t axis, hlo_value at) {
  hlo_value last = op(t, HLO_SUB, t->in, number(t, 1));
  at = op(t, HLO_MAX, op(t, HLO_MIN, at, last), number(t, 0));
  return hlo_take(t->b, x, hlo_convert(t->b, at, DTYPE_S64), axis);
}

/* Returns `then` where x is as the comparison with a number says, elsewhere `otherwise`. */
static hlo_value where(const taps *t, hlo_value x, hlo_comparison is, double limit, hlo_value then,
                       hlo_value otherwise) {
  return hlo_select(t->b, hlo_compare(t->b, is, x, number(t, limit)), then, otherwise);
}

/* Returns the polynomial c[0] x^n + ... + c[n], by Horner's rule, without terms of 0. */
static hlo_value polynomial(const taps *t, hlo_value x, int n, const double *c) {
  hlo_value sum = number(t, c[0]);
  for (int k = 1; k <= n; k++) {
    sum = op(t, HLO_MUL, sum, x);
    sum = c[k] == 0 ? sum : op(t, HLO_ADD, sum, number(t, c[k]));
  }
  return sum;
}

/* Returns the value of the filter at the distance `far` from its centre (`filter` of resize.c). */
static hlo_value filter(const taps *t, hlo_value far) {
  double a = t->r->cubic_a;
  hlo_value away = hlo_unary(t->b, HLO_ABS, far), zero = number(t, 0);
  if (t->r->mode == LINEAR) {
    return where(t, away, HLO_LT, 1, op(t, HLO_SUB, number(t, 1), away), zero);
  }
  hlo_value near = polynomial(t, away, 3, (double[]){a + 2, -(a + 3), 0, 1});
  hlo_value outer = polynomial(t, away, 3, (double[]){a, -5 * a, 8 * a, -4 * a});
  return where(t, away, HLO_LE, 1, near, where(t, away, HLO_LT, 2, outer, zero));
}

/* Sets the position in the input of each tap, and its weight.  Weights have the sum 1 if they are normalised. */
static void weigh(const taps *t, hlo_value at, int n, hlo_value *tap, hlo_value *weight) {
  double shrink = onnx_resize_shrink(t->r, t->p);
  hlo_value first = op(t, HLO_SUB, hlo_unary(t->b, HLO_FLOOR, at), number(t, n / 2 - 1)), sum = {0},
            zero = number(t, 0);
  for (int k = 0; k < n; k++) {
    tap[k] = k ? op(t, HLO_ADD, first, number(t, k)) : first;
    hlo_value far = op(t, HLO_SUB, tap[k], at);
    weight[k] = filter(t, shrink == 1 ? far : op(t, HLO_MUL, far, number(t, shrink)));
    if (t->r->exclude_outside) {
      weight[k] = where(t, tap[k], HLO_LT, 0, zero, weight[k]);
      weight[k] = hlo_select(t->b, hlo_compare(t->b, HLO_LT, tap[k], t->in), weight[k], zero);
    }
    sum = k ? op(t, HLO_ADD, sum, weight[k]) : weight[k];
  }
  if (!t->r->exclude_outside && shrink == 1) {
    return;
  }
  hlo_value none = hlo_compare(t->b, HLO_EQ, sum, zero);
  for (int k = 0; k < n; k++) {
    weight[k] = hlo_select(t->b, none, weight[k], op(t, HLO_DIV, weight[k], sum));
  }
}

/* Returns true if the taps of the axis can be computed by the module: their number does not depend on a symbolic scale,
 * and is small. */
static bool computes_taps(const resize *r, const axis_plan *p) {
  bool known = !r->antialias || !p->by_sizes;
  return known && onnx_resize_taps(r, p) <= ONNX_RESIZE_FEW_TAPS;
}

/* Replaces elements of y whose position is outside of the input by the extrapolation value. */
static hlo_value extrapolate(const taps *t, hlo_value at, int64_t axis, hlo_value y) {
  if (t->r->coordinates != TF_CROP_AND_RESIZE || t->b->error) {
    return y;
  }
  hlo_value before = hlo_compare(t->b, HLO_LT, at, number(t, 0));
  hlo_value behind = hlo_compare(t->b, HLO_GT, at, op(t, HLO_SUB, t->in, number(t, 1)));
  hlo_value outside = hlo_broadcast(t->b, op(t, HLO_OR, before, behind), *hlo_shape(y), &axis);
  return hlo_select(t->b, outside, hlo_like(t->b, y, t->r->extrapolation), y);
}

status onnx_resize_symbolic(const onnx_node *n, const resize *r, int64_t axis, hlo_value *x) {
  hlo_builder *b = n->b;
  const axis_plan *p = &r->plan[axis];
  if (!computes_taps(r, p)) {
    return onnx_resize_constant(n, p);
  }
  int64_t times = r->mode == NEAREST && r->coordinates != TF_CROP_AND_RESIZE ? stretch(n, r, p) : 0;
  if (times) {
    *x = repeat(n, *x, axis, p->out, times);
    return NULL;
  }
  taps t = make_taps(n, r, p);
  hlo_value at = positions(&t);
  if (r->mode == NEAREST) {
    *x = extrapolate(&t, at, axis, take(&t, *x, axis, nearest_index(&t, at)));
    return NULL;
  }
  hlo_value tap[ONNX_RESIZE_FEW_TAPS], weight[ONNX_RESIZE_FEW_TAPS], sum = {0};
  int n_taps = (int)onnx_resize_taps(r, p);
  weigh(&t, at, n_taps, tap, weight);
  for (int k = 0; k < n_taps; k++) {
    hlo_value y = take(&t, *x, axis, tap[k]), w = hlo_convert(b, weight[k], hlo_type(y));
    y = y.def ? hlo_binary(b, HLO_MUL, y, hlo_broadcast(b, w, *hlo_shape(y), &axis)) : y;
    sum = k ? hlo_binary(b, HLO_ADD, sum, y) : y;
  }
  *x = extrapolate(&t, at, axis, sum);
  return NULL;
}
