/* contract.c - rules of contractions.  Their gradients are contractions, so that the same kernels compute them. */
#include "hlo/gradient/rules.h"

/* --- dot --- */

/* Writes those of the dimensions 0 to rank - 1 that are neither batch nor contracted dimensions to `out`, and returns
 * their number. */
static uint32_t free_dims(int rank, uint32_t n_batch, const int64_t *batch, uint32_t n_contract,
                          const int64_t *contract, int64_t *out) {
  uint32_t set = 0, n = 0;
  for (uint32_t k = 0; k < n_batch; k++) {
    set |= (uint32_t)1 << batch[k];
  }
  for (uint32_t k = 0; k < n_contract; k++) {
    set |= (uint32_t)1 << contract[k];
  }
  for (int k = 0; k < rank; k++) {
    if (!(set >> k & 1)) {
      out[n++] = k;
    }
  }
  return n;
}

/* The dimensions of one operand of a dot, by their role. */
typedef struct side {
  const int64_t *batch, *contract;
  int64_t free[SHAPE_MAX_RANK];
  uint32_t n_batch, n_contract, n_free;
} side;

static side side_of(const hlo_instr *i, uint32_t k) {
  hlo_attr_id batch = k ? HLO_ATTR_RHS_BATCH : HLO_ATTR_LHS_BATCH,
              contract = k ? HLO_ATTR_RHS_CONTRACT : HLO_ATTR_LHS_CONTRACT;
  side s = {.batch = hlo_ints(i, batch),
            .contract = hlo_ints(i, contract),
            .n_batch = hlo_n_ints(i, batch),
            .n_contract = hlo_n_ints(i, contract)};
  s.n_free = free_dims(hlo_rank(i->operands[k]), s.n_batch, s.batch, s.n_contract, s.contract, s.free);
  return s;
}

/* Computes where the contracted dimensions of an operand (`mine`) are in the dot that gives its gradient.  That dot
 * multiplies dy by the other operand (`other`).  Its result has these dimensions from number `first` on, in the order
 * in which they are in `other`.  Sets at[d], for each contracted dimension d of `mine`, to the number of the dimension
 * in that result. */
static void place_contracted(const side *mine, const side *other, int64_t first, int64_t *at) {
  for (uint32_t k = 0; k < other->n_contract; k++) {
    int64_t rank = 0;
    for (uint32_t j = 0; j < other->n_contract; j++) {
      rank += other->contract[j] < other->contract[k];
    }
    at[mine->contract[k]] = first + rank;
  }
}

/* The gradient of operand k is the dot of dy and the other operand, contracted over the other operand's free
 * dimensions.  The other operand stays on its side (left or right), so that the gradients of ordinary matrix products
 * need no transposes. */
static void dot_operand(hlo_tape *t, hlo_instr *i, uint32_t k, hlo_value dy) {
  side mine = side_of(i, k), other = side_of(i, 1 - k);
  int64_t batch[SHAPE_MAX_RANK], over[SHAPE_MAX_RANK], at[SHAPE_MAX_RANK] = {0};
  uint32_t n = mine.n_batch, first_over = k ? n : n + mine.n_free;
  for (uint32_t j = 0; j < n; j++) {
    batch[j] = j;
    at[mine.batch[j]] = j;
  }
  for (uint32_t j = 0; j < other.n_free; j++) {
    over[j] = first_over + j;
  }
  for (uint32_t j = 0; j < mine.n_free; j++) {
    at[mine.free[j]] = n + (k ? mine.n_contract : 0) + j;
  }
  place_contracted(&mine, &other, n + (k ? 0 : mine.n_free), at);
  hlo_dot_dims d = {.n_batch = n,
                    .lhs_batch = k ? other.batch : batch,
                    .rhs_batch = k ? batch : other.batch,
                    .n_contract = other.n_free,
                    .lhs_contract = k ? other.free : over,
                    .rhs_contract = k ? over : other.free};
  hlo_value product = k ? hlo_dot(t->b, i->operands[0], dy, &d) : hlo_dot(t->b, dy, i->operands[1], &d);
  hlo_tape_add(t, i, k, hlo_transpose(t->b, product, at));
}

void hlo_gradient_dot(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  for (uint32_t k = 0; k < 2; k++) {
    if (hlo_tape_needs(t, i, k)) {
      dot_operand(t, i, k, dy);
    }
  }
}

/* --- convolution: result[o] = sum over k of dilated(x)[o stride + k dilation - low] kernel[k] --- */

/* Moves the channels of v, whose layout is that of convolution i, before the spatial dimensions.  If `back`, moves them
 * from there back to where that layout has them. */
static hlo_value channels_first(hlo_builder *b, const hlo_instr *i, hlo_value v, bool back) {
  int rank = hlo_rank(v);
  int64_t from[SHAPE_MAX_RANK] = {0, back ? 2 : rank - 1};
  if (hlo_int(i, HLO_ATTR_LAYOUT) == HLO_CHANNELS_FIRST) {
    return v;
  }
  for (int k = 2; k < rank; k++) {
    from[k] = back ? k + 1 : k - 1;
  }
  if (back) { /* permutes [N, C, spatial...] to [N, spatial..., C] */
    for (int k = 1; k < rank - 1; k++) {
      from[k] = k + 1;
    }
    from[rank - 1] = 1;
  }
  return hlo_transpose(b, v, from);
}

/* Splits dimension d of v into two dimensions: the first of extent n, the second of the extent of d divided by n. */
static hlo_value split(hlo_builder *b, hlo_value v, int d, dim n) {
  const shape *s = hlo_shape(v);
  dim dims[SHAPE_MAX_RANK + 1];
  for (int k = 0, at = 0; k < s->rank; k++) {
    if (k == d) {
      dims[at++] = n;
      dims[at++] = s->dims[k] / n;
    } else {
      dims[at++] = s->dims[k];
    }
  }
  return hlo_reshape(b, v, s->rank + 1, dims);
}

/* Merges the dimensions d and d + 1 of v. */
static hlo_value merge(hlo_builder *b, hlo_value v, int d) {
  const shape *s = hlo_shape(v);
  dim dims[SHAPE_MAX_RANK];
  for (int k = 0; k < s->rank - 1; k++) {
    dims[k] = k == d ? s->dims[k] * s->dims[k + 1] : s->dims[k < d ? k : k + 1];
  }
  return hlo_reshape(b, v, s->rank - 1, dims);
}

/* Moves dimension `from` to position `to`; the others keep their order. */
static hlo_value move(hlo_builder *b, hlo_value v, int from, int to) {
  int64_t order[SHAPE_MAX_RANK];
  int rank = hlo_rank(v), next = 0;
  for (int k = 0; k < rank; k++) {
    next += next == from;
    order[k] = k == to ? from : next++;
  }
  return hlo_transpose(b, v, order);
}

typedef struct conv {
  const int64_t *strides, *low, *holes, *dilation; /* holes is lhs_dilation */
  int64_t groups;
  int spatial;
  const dim *x, *kernel, *y; /* the spatial extents of operand, kernel and result */
} conv;

static conv conv_of(const hlo_instr *i) {
  int first = hlo_int(i, HLO_ATTR_LAYOUT) == HLO_CHANNELS_FIRST ? 2 : 1;
  return (conv){
      hlo_ints(i, HLO_ATTR_STRIDES),           hlo_ints(i, HLO_ATTR_LOW),           hlo_ints(i, HLO_ATTR_LHS_DILATION),
      hlo_ints(i, HLO_ATTR_RHS_DILATION),      hlo_int(i, HLO_ATTR_GROUPS),         hlo_rank(i->operands[0]) - 2,
      hlo_shape(i->operands[0])->dims + first, hlo_shape(i->operands[1])->dims + 2, i->shapes[0].dims + first};
}

/* A window spans reach + 1 elements and moves by `step`.  Returns how much padding must follow a dimension of `extent`
 * elements, with `low` elements of padding before it, so that the window has `count` positions. */
static int64_t high_for(dim count, int64_t step, int64_t reach, int64_t extent, int64_t low) {
  return (count - 1) * step + reach + 1 - extent - low;
}

/* Returns the gradient of the convolution's input: a convolution of dy with dilation and strides exchanged.  Its kernel
 * is the convolution's kernel, reversed and with input and output channels exchanged. */
static hlo_value conv_operand(hlo_builder *b, const hlo_instr *i, hlo_value dy) {
  conv c = conv_of(i);
  int64_t low[SHAPE_MAX_RANK], high[SHAPE_MAX_RANK], spatial[SHAPE_MAX_RANK];
  for (int k = 0; k < c.spatial; k++) {
    int64_t reach = (c.kernel[k] - 1) * c.dilation[k];
    low[k] = reach - c.low[k];
    high[k] = high_for(c.x[k], c.holes[k], reach, (c.y[k] - 1) * c.strides[k] + 1, low[k]);
    spatial[k] = 2 + k;
  }
  hlo_value kernel = hlo_reverse(b, i->operands[1], (uint32_t)c.spatial, spatial);
  kernel = merge(b, move(b, split(b, kernel, 0, c.groups), 2, 1), 0); /* [g O/g, C/g, ..] becomes [g C/g, O/g, ..] */
  hlo_conv_dims d = {.strides = c.holes,
                     .low = low,
                     .high = high,
                     .lhs_dilation = c.strides,
                     .rhs_dilation = c.dilation,
                     .groups = c.groups,
                     .layout = (hlo_layout)hlo_int(i, HLO_ATTR_LAYOUT)};
  return hlo_convolution(b, dy, kernel, &d);
}

/* Returns the gradient of the kernel: a convolution of the input with dy as the kernel.  The batch takes the role of
 * the channels, and the channels that of the batch. */
static hlo_value conv_kernel(hlo_builder *b, const hlo_instr *i, hlo_value dy) {
  conv c = conv_of(i);
  int64_t high[SHAPE_MAX_RANK];
  for (int k = 0; k < c.spatial; k++) {
    int64_t reach = (c.y[k] - 1) * c.strides[k], extent = c.x[k] ? (c.x[k] - 1) * c.holes[k] + 1 : 0;
    high[k] = high_for(c.kernel[k], c.dilation[k], reach, extent, c.low[k]);
  }
  hlo_value x = split(b, channels_first(b, i, i->operands[0], false), 1, c.groups); /* has the shape [N, g, C/g, ..] */
  x = merge(b, move(b, move(b, x, 2, 0), 2, 1), 1);                                 /* has the shape [C/g, g N, ..] */
  hlo_value over = move(b, channels_first(b, i, dy, false), 1, 0);                  /* has the shape [O, N, ..] */
  hlo_conv_dims d = {.strides = c.dilation,
                     .low = c.low,
                     .high = high,
                     .lhs_dilation = c.holes,
                     .rhs_dilation = c.strides,
                     .groups = c.groups,
                     .layout = HLO_CHANNELS_FIRST};
  return move(b, hlo_convolution(b, x, over, &d), 1, 0);
}

void hlo_gradient_convolution(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  if (shape_elements(hlo_shape(i->operands[0])) == 0 || shape_elements(&i->shapes[0]) == 0) {
    return; /* all gradients are zero */
  }
  if (hlo_tape_needs(t, i, 0)) {
    hlo_tape_add(t, i, 0, conv_operand(t->b, i, dy));
  }
  if (hlo_tape_needs(t, i, 1)) {
    hlo_tape_add(t, i, 1, conv_kernel(t->b, i, dy));
  }
}
