/* loops.c - rules of reductions, windows and cumulative operations. */
#include <string.h>

#include "hlo/gradient/rules.h"

static hlo_value times(hlo_builder *b, hlo_value x, hlo_value y) { return hlo_binary(b, HLO_MUL, x, y); }

/* --- rules of reductions --- */

/* Broadcasts v, which has the shape of the reduction's result, to the shape of its operand. */
static hlo_value spread(hlo_builder *b, const hlo_instr *i, hlo_value v) {
  const shape *x = hlo_shape(i->operands[0]);
  int64_t to[SHAPE_MAX_RANK];
  uint32_t n = 0, reduced = 0;
  for (int k = 0; k < x->rank; k++) {
    if (reduced < hlo_n_ints(i, HLO_ATTR_DIMENSIONS) && hlo_ints(i, HLO_ATTR_DIMENSIONS)[reduced] == k) {
      reduced++;
    } else {
      to[n++] = k;
    }
  }
  return hlo_broadcast(b, v, *x, to);
}

/* The rule of a maximum or minimum: all elements that equal the result share its gradient equally. */
static hlo_value of_extreme(hlo_builder *b, const hlo_instr *i, hlo_value dy) {
  hlo_value x = i->operands[0];
  hlo_value equal = hlo_compare(b, HLO_EQ, x, spread(b, i, hlo_result((hlo_instr *)i, 0)));
  hlo_value count = hlo_reduce(b, hlo_convert(b, equal, hlo_type(x)), HLO_REDUCE_ADD,
                               hlo_n_ints(i, HLO_ATTR_DIMENSIONS), hlo_ints(i, HLO_ATTR_DIMENSIONS));
  return hlo_select_or_zero(b, equal, spread(b, i, hlo_binary(b, HLO_DIV, dy, count)));
}

/* The rule of a product: the gradient of each element is dy times the product of all other elements.  That product is
 * computed without a division, since elements may be zero: as the product of the elements before it times the product
 * of those after it. */
static hlo_value of_product(hlo_builder *b, const hlo_instr *i, hlo_value dy) {
  const shape *x = hlo_shape(i->operands[0]);
  const int64_t *dims = hlo_ints(i, HLO_ATTR_DIMENSIONS);
  uint32_t n = hlo_n_ints(i, HLO_ATTR_DIMENSIONS), reduced = 0;
  int64_t order[SHAPE_MAX_RANK], back[SHAPE_MAX_RANK], kept = 0, line = 1;
  shape rows = *x, moved = *x;
  for (int k = 0; k < x->rank; k++) {
    bool taken = reduced < n && dims[reduced] == k;
    reduced += taken;
    line *= taken ? x->dims[k] : 1;
    back[k] = taken ? x->rank - (int64_t)n + reduced - 1 : kept++;
    order[back[k]] = k;
  }
  for (int k = 0; k < x->rank; k++) {
    moved.dims[k] = x->dims[order[k]];
    rows.dims[k] = moved.dims[k];
  }
  rows.rank = (uint8_t)(kept + 1);
  rows.dims[kept] = line;
  hlo_value r = hlo_reshape(b, hlo_transpose(b, i->operands[0], order), rows.rank, rows.dims);
  hlo_value others = times(b, hlo_cumulative(b, r, HLO_REDUCE_MUL, kept, true, false),
                           hlo_cumulative(b, r, HLO_REDUCE_MUL, kept, true, true));
  others = hlo_transpose(b, hlo_reshape(b, others, moved.rank, moved.dims), back);
  return times(b, spread(b, i, dy), others);
}

void hlo_gradient_reduce(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  int64_t r = hlo_int(i, HLO_ATTR_REDUCER);
  hlo_tape_add(t, i, 0,
               r == HLO_REDUCE_ADD   ? spread(t->b, i, dy)
               : r == HLO_REDUCE_MUL ? of_product(t->b, i, dy)
                                     : of_extreme(t->b, i, dy));
}

/* --- rules of windows --- */

static hlo_window window_of(const hlo_instr *i) {
  return (hlo_window){hlo_ints(i, HLO_ATTR_WINDOW), hlo_ints(i, HLO_ATTR_STRIDES), hlo_ints(i, HLO_ATTR_LOW),
                      hlo_ints(i, HLO_ATTR_HIGH), hlo_ints(i, HLO_ATTR_RHS_DILATION)};
}

/* The rule of window sums: the gradient of an element is the sum of dy over all windows that contain it.  To compute
 * it, dy is dilated by the strides, and a window sum of the same extent runs over it. */
static hlo_value of_window_sum(hlo_builder *b, const hlo_instr *i, hlo_value dy) {
  const shape *x = hlo_shape(i->operands[0]), *y = &i->shapes[0];
  hlo_window w = window_of(i);
  int64_t low[SHAPE_MAX_RANK], high[SHAPE_MAX_RANK], interior[SHAPE_MAX_RANK];
  for (int k = 0; k < x->rank; k++) {
    int64_t reach = (w.window[k] - 1) * w.dilation[k], places = (y->dims[k] - 1) * w.strides[k] + 1;
    interior[k] = y->dims[k] > 1 ? w.strides[k] - 1 : 0;
    low[k] = reach - w.low[k];
    high[k] = x->dims[k] + reach - places - low[k];
  }
  hlo_value wide = hlo_pad(b, dy, hlo_scalar(b, hlo_type(dy), 0), low, high, interior);
  hlo_window back = {.window = w.window, .dilation = w.dilation};
  return hlo_reduce_window(b, wide, HLO_REDUCE_ADD, &back);
}

static hlo_value flat(hlo_builder *b, hlo_value v) {
  dim n = shape_elements(hlo_shape(v));
  return hlo_reshape(b, v, 1, &n);
}

/* The rule of window maxima (or minima): the gradient of a window goes to its first element that equals its maximum.  A
 * window that covers only padding has the position -1, which scatter ignores. */
static hlo_value of_window_extreme(hlo_builder *b, const hlo_instr *i, hlo_value dy) {
  hlo_value x = i->operands[0];
  const shape *s = hlo_shape(x);
  hlo_window w = window_of(i);
  bool largest = hlo_int(i, HLO_ATTR_REDUCER) == HLO_REDUCE_MAX;
  hlo_value where = hlo_arg_reduce_window(b, largest ? x : hlo_unary(b, HLO_NEG, x), &w);
  int64_t zero = 0;
  hlo_gather_dims d = {.n_collapsed = 1, .collapsed = &zero, .n_map = 1, .map = &zero, .index_vector_dim = 1};
  hlo_value sums = hlo_scatter(b, hlo_like(b, flat(b, x), 0), flat(b, where), flat(b, dy), &d, HLO_REDUCE_ADD);
  return hlo_reshape(b, sums, s->rank, s->dims);
}

void hlo_gradient_reduce_window(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  int64_t r = hlo_int(i, HLO_ATTR_REDUCER);
  hlo_value x = i->operands[0];
  if (shape_elements(hlo_shape(x)) == 0 || shape_elements(&i->shapes[0]) == 0) {
    return;
  }
  if (r == HLO_REDUCE_MUL) {
    hlo_tape_refuse(t, i, "products of windows");
    return;
  }
  hlo_tape_add(t, i, 0, r == HLO_REDUCE_ADD ? of_window_sum(t->b, i, dy) : of_window_extreme(t->b, i, dy));
}

/* --- rules of cumulative sums and products --- */

/* The rule of cumulative products: the gradient of an element is the sum, over all products that contain it, of the
 * product's gradient times the product of the other factors.  Each pair of an element and a product has an entry in an
 * n x n array if the dimension has n elements. */
static void of_running_product(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  enum { SQUARE_MAX = 1 << 26 };
  hlo_builder *b = t->b;
  const shape *x = hlo_shape(i->operands[0]);
  int64_t d = hlo_int(i, HLO_ATTR_DIMENSION), n = x->dims[d], across[SHAPE_MAX_RANK];
  bool backward = hlo_int(i, HLO_ATTR_BACKWARD), exclusive = hlo_int(i, HLO_ATTR_EXCLUSIVE);
  if (shape_elements(x) > SQUARE_MAX / (n + 1) || x->rank == SHAPE_MAX_RANK) {
    hlo_tape_refuse(t, i, "cumulative products along a dimension of that size");
    return;
  }
  shape square = *x; /* one more dimension after d: [.., element, product, ..] */
  memmove(square.dims + d + 1, square.dims + d, (size_t)(x->rank - d) * sizeof *square.dims);
  square.rank++;
  for (int k = 0; k < x->rank; k++) {
    across[k] = k < d ? k : k + 1;
  }
  shape numbers = shape_with_type(square, DTYPE_S64);
  hlo_value source = hlo_iota(b, numbers, d), product = hlo_iota(b, numbers, d + 1);
  hlo_value itself = hlo_compare(b, HLO_EQ, source, product);
  hlo_value factors = hlo_broadcast(b, i->operands[0], square, across);
  factors = hlo_select(b, itself, hlo_like(b, factors, 1), factors);
  hlo_value others = hlo_cumulative(b, factors, HLO_REDUCE_MUL, d + 1, exclusive, backward);
  hlo_comparison reaches = backward ? exclusive ? HLO_GT : HLO_GE : exclusive ? HLO_LT : HLO_LE;
  hlo_value parts = times(b, others, hlo_broadcast(b, dy, square, across));
  parts = hlo_select_or_zero(b, hlo_compare(b, reaches, source, product), parts);
  int64_t over = d + 1;
  hlo_tape_add(t, i, 0, hlo_reduce(b, parts, HLO_REDUCE_ADD, 1, &over));
}

void hlo_gradient_cumulative(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  switch ((hlo_reducer)hlo_int(i, HLO_ATTR_REDUCER)) {
    case HLO_REDUCE_ADD:
      hlo_tape_add(t, i, 0,
                   hlo_cumulative(t->b, dy, HLO_REDUCE_ADD, hlo_int(i, HLO_ATTR_DIMENSION),
                                  hlo_int(i, HLO_ATTR_EXCLUSIVE), !hlo_int(i, HLO_ATTR_BACKWARD)));
      break;
    case HLO_REDUCE_MUL: of_running_product(t, i, dy); break;
    default: hlo_tape_refuse(t, i, "a running maximum or minimum");
  }
}
