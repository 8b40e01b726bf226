/* contract.c - dot and convolution of every type and shape, for cases in which no library and no other kernel applies.
 * Vectors run along the result's innermost dimension, or along the contracted one if that is innermost in both
 * operands. */
#include <assert.h>

#include "emit/element/elementwise.h"
#include "emit/element/reduction_loop.h"
#include "emit/element/loop_plan.h"

static const shape *operand(const hlo_instr *i, uint32_t k) { return hlo_shape(i->operands[k]); }

typedef struct contraction {
  const hlo_instr *i;
  const emit_index *at;
  int n; /* the number of contracted dimensions, before neighbouring ones are merged */
  dim dims[SHAPE_MAX_RANK];
  bool inside; /* convolution: whether the whole window is known to lie in the operand */
} contraction;

/* Returns v, an element of operand k, in the type of the sum; small floats become f32. */
static emit_pair factor(const emit_element *e, const hlo_instr *i, uint32_t k, emit_pair v) {
  dtype from = hlo_type(i->operands[k]), to = (dtype)i->shapes[0].type;
  return from == to ? emit_widen_pair(e, from, v) : emit_convert(e->w, from, to, v, false, DTYPE_ROUND_NEAREST);
}

/* Adds the product of x and y, which are elements of the operands, to the sum in `acc`. */
static void multiply_add(const emit_reduction_loop *f, const hlo_instr *i, emit_pair x, emit_pair y,
                         LLVMValueRef *acc) {
  const emit_element *e = f->e;
  emit_pair s = {acc[0], f->n == 2 ? acc[1] : NULL};
  s = emit_multiply_add(e->w, emit_compute_type((dtype)i->shapes[0].type), factor(e, i, 0, x), factor(e, i, 1, y), s);
  acc[0] = s.v;
  if (f->n == 2) {
    acc[1] = s.im;
  }
}

static void add_up(const emit_reduction_loop *f, LLVMValueRef *acc, const LLVMValueRef *other) {
  const contraction *g = f->data;
  emit_pair x = {acc[0], f->n == 2 ? acc[1] : NULL}, y = {other[0], f->n == 2 ? other[1] : NULL};
  x = emit_reduce_combine(f->e->w, HLO_REDUCE_ADD, (dtype)g->i->shapes[0].type, x, y);
  acc[0] = x.v;
  if (f->n == 2) {
    acc[1] = x.im;
  }
}

/* Writes the loop f, which adds up products, and returns the sum.  If `inside` is not NULL, the loop is written twice.
 * One copy has `clear` as its data and runs if the i1 `inside` is true; the other one has f's own data and runs if
 * `inside` is false. */
static emit_pair fold_products(emit_reduction_loop *f, dtype t, LLVMValueRef inside, const contraction *clear) {
  emit_pair zero = emit_reduce_identity(f->e->w, HLO_REDUCE_ADD, t);
  LLVMValueRef out[2];
  f->combine = add_up;
  f->n = zero.im ? 2 : 1;
  f->init[0] = zero.v;
  f->init[1] = zero.im;
  if (inside) {
    emit_reduction_loop fast = *f;
    fast.data = clear;
    f->compact = true;
    emit_reduction_loop_either(inside, &fast, f, out);
  } else {
    emit_reduction_loop_run(f, out);
  }
  return (emit_pair){emit_narrow(f->e->w, t, out[0]), zero.im ? out[1] : NULL};
}

int emit_contracted_extents(const hlo_instr *i, dim *extents) {
  bool dot = i->op == HLO_DOT;
  int n = dot ? (int)hlo_n_ints(i, HLO_ATTR_LHS_CONTRACT) : operand(i, 1)->rank - 1;
  for (int k = 0; k < n; k++) {
    extents[k] = dot ? operand(i, 0)->dims[hlo_ints(i, HLO_ATTR_LHS_CONTRACT)[k]] : operand(i, 1)->dims[1 + k];
  }
  return n;
}

/* --- dot --- */

/* Returns the index of an element of one operand: batch and free dimensions come from the index of the result's
 * element, contracted ones from r, the index in the loop. free_dim is the first of the result's dimensions that are
 * free dimensions of this operand. */
static emit_index *side_index(emit_element *e, const contraction *g, uint32_t side, const emit_index *r, int free_dim) {
  hlo_attr_id batch = side ? HLO_ATTR_RHS_BATCH : HLO_ATTR_LHS_BATCH;
  hlo_attr_id contract = side ? HLO_ATTR_RHS_CONTRACT : HLO_ATTR_LHS_CONTRACT;
  emit_index *x = emit_operand_index(e, g->i, side);
  for (int k = 0; k < x->rank; k++) {
    int b = hlo_find_int(g->i, batch, k), c = hlo_find_int(g->i, contract, k);
    if (b >= 0) {
      emit_axis_from(x, k, g->at, b);
    } else if (c >= 0) {
      emit_axis_from(x, k, r, c);
    } else {
      emit_axis_from(x, k, g->at, free_dim++);
    }
  }
  return x;
}

/* Returns the index of an element of an operand; r has one dimension for each contracted one. */
static emit_index *dot_index(emit_element *e, const contraction *g, uint32_t side, const emit_index *r) {
  int n_batch = (int)hlo_n_ints(g->i, HLO_ATTR_LHS_BATCH);
  int n_free = operand(g->i, 0)->rank - n_batch - g->n;
  return side_index(e, g, side, r, side ? n_batch + n_free : n_batch);
}

static emit_pair dot_operand(emit_element *e, const contraction *g, uint32_t side, const emit_index *r) {
  return emit_value(e, g->i->operands[side], dot_index(e, g, side, r));
}

static void dot_step(const emit_reduction_loop *f, const emit_index *r, LLVMValueRef *acc) {
  const contraction *g = f->data;
  const emit_index *apart = emit_index_reshape(&f->e->x, r, g->n, g->dims);
  emit_pair x = dot_operand(f->e, g, 0, apart), y = dot_operand(f->e, g, 1, apart);
  multiply_add(f, g->i, x, y, acc);
}

/* Merges contracted dimensions that are neighbours in both operands, if no operation that computes the operands needs
 * them separately. */
static void merge_contracted(emit_reduction_loop *f, const contraction *g) {
  const shape *x = operand(g->i, 0), *y = operand(g->i, 1);
  const int64_t *p = hlo_ints(g->i, HLO_ATTR_LHS_CONTRACT), *q = hlo_ints(g->i, HLO_ATTR_RHS_CONTRACT);
  dim_table *t = f->e->x.sizes->table;
  emit_dim_boundaries x_boundaries = {0}, y_boundaries = {0};
  emit_dim_boundaries_of(f->e, g->i->operands[0], &x_boundaries);
  emit_dim_boundaries_of(f->e, g->i->operands[1], &y_boundaries);
  for (int k = 0; k < g->n; k++) {
    bool join = k > 0 && p[k] == p[k - 1] + 1 && q[k] == q[k - 1] + 1 &&
                !emit_is_dim_boundary(&x_boundaries, shape_dim_product(t, x, (int)p[k], x->rank)) &&
                !emit_is_dim_boundary(&y_boundaries, shape_dim_product(t, y, (int)q[k], y->rank));
    if (join) {
      f->dims[f->rank - 1] = dim_mul(t, f->dims[f->rank - 1], g->dims[k]);
    } else {
      f->dims[f->rank++] = g->dims[k];
    }
  }
}

emit_pair emit_dot(emit_element *e, const hlo_instr *i, const emit_index *at) {
  contraction g = {.i = i, .at = at};
  g.n = emit_contracted_extents(i, g.dims);
  emit_reduction_loop f = {.e = e, .data = &g, .step = dot_step, .rows = emit_reduces_rows(i), .cooperative = true};
  merge_contracted(&f, &g);
  return fold_products(&f, (dtype)i->shapes[0].type, NULL, NULL);
}

/* --- convolution: the loop's space r is [input channel of the group, taps along each spatial dimension...] --- */

/* Returns true if the windows can reach outside of the operand along spatial dimension k, and also if this is not known
 * because an extent is not a constant. */
static bool is_padded(const contraction *g, int spatial, int k) {
  const hlo_instr *i = g->i;
  int64_t low = hlo_ints(i, HLO_ATTR_LOW)[k], stride = hlo_ints(i, HLO_ATTR_STRIDES)[k];
  int64_t span = (operand(i, 1)->dims[2 + k] - 1) * hlo_ints(i, HLO_ATTR_RHS_DILATION)[k];
  dim windows = g->at->dims[spatial + k], n = operand(i, 0)->dims[spatial + k];
  if (low > 0 || !dim_is_const(n) || !dim_is_const(windows)) {
    return true;
  }
  return (windows - 1) * stride + span - low >= n;
}

/* Returns an i1 that says whether the windows of all lanes lie in the operand without its padding.  Returns NULL if
 * there is no padding, in seldom-taken branches (emit_element.slow), or if no such condition can be written. */
static LLVMValueRef clear_of_padding(emit_element *e, const contraction *g) {
  const hlo_instr *i = g->i;
  LLVMValueRef inside = NULL;
  int spatial = hlo_int(i, HLO_ATTR_LAYOUT) == HLO_CHANNELS_FIRST ? 2 : 1;
  for (int k = 0; k < g->at->rank - 2; k++) {
    dim n = operand(i, 0)->dims[spatial + k];
    if (e->slow || hlo_ints(i, HLO_ATTR_LHS_DILATION)[k] > 1) {
      return NULL;
    }
    if (is_padded(g, spatial, k)) {
      int64_t span = (operand(i, 1)->dims[2 + k] - 1) * hlo_ints(i, HLO_ATTR_RHS_DILATION)[k];
      emit_pos p = emit_pos_scale(&e->x, emit_index_dim(&e->x, g->at, spatial + k), hlo_ints(i, HLO_ATTR_STRIDES)[k]);
      p = emit_pos_add_const(&e->x, p, -hlo_ints(i, HLO_ATTR_LOW)[k]);
      if (!emit_reduction_loop_inside(e, p, span, n, &inside)) {
        return NULL;
      }
    }
  }
  return inside;
}

/* Sets the axis of operand 0 along its channels, for input channel r[0] of the group of the result's element. */
static void set_channel(emit_element *e, const contraction *g, const emit_index *r, int channel, emit_index *x) {
  int64_t groups = hlo_int(g->i, HLO_ATTR_GROUPS);
  const shape *kernel = operand(g->i, 1);
  emit_axis_from(x, channel, r, 0);
  if (groups > 1) {
    emit_pos group = emit_pos_div(&e->x, emit_index_dim(&e->x, g->at, channel), kernel->dims[0] / groups);
    emit_axis_at(x, channel,
                 emit_pos_add(&e->x, emit_pos_scale(&e->x, group, kernel->dims[1]), emit_index_dim(&e->x, r, 0)));
  }
}

/* Returns the element of operand 0, the image, that belongs to the result's element and to index r of the sum, or 0 if
 * its position is in the padding. */
static emit_pair conv_image(emit_element *e, const contraction *g, const emit_index *r) {
  const hlo_instr *i = g->i;
  dtype t = hlo_type(i->operands[0]);
  bool first = hlo_int(i, HLO_ATTR_LAYOUT) == HLO_CHANNELS_FIRST;
  emit_index *x = emit_operand_index(e, i, 0);
  int spatial = first ? 2 : 1;
  LLVMValueRef mask = NULL;
  uint32_t checked = 0;
  emit_axis_from(x, 0, g->at, 0);
  set_channel(e, g, r, first ? 1 : x->rank - 1, x);
  for (int k = 0; k < x->rank - 2; k++) {
    int64_t stride = hlo_ints(i, HLO_ATTR_STRIDES)[k], low = hlo_ints(i, HLO_ATTR_LOW)[k];
    int64_t gap = hlo_ints(i, HLO_ATTR_LHS_DILATION)[k], hole = hlo_ints(i, HLO_ATTR_RHS_DILATION)[k];
    emit_pos p = emit_pos_scale(&e->x, emit_index_dim(&e->x, g->at, spatial + k), stride);
    p = emit_pos_add(&e->x, p, emit_pos_scale(&e->x, emit_index_dim(&e->x, r, 1 + k), hole));
    p = emit_pos_add_const(&e->x, p, -low);
    if (gap > 1) {
      p = emit_without_gaps(e, p, x->dims[spatial + k], gap, &mask);
      /* if the extent is an argument, it may be 0, and then even a clamped position is outside of the array */
      checked |= dim_is_const(x->dims[spatial + k]) ? 0 : (uint32_t)1 << (spatial + k);
    } else if (!g->inside && is_padded(g, spatial, k)) {
      checked |= (uint32_t)1 << (spatial + k);
    }
    emit_axis_at(x, spatial + k, p);
  }
  LLVMTypeRef type = emit_register_type(e->w, t);
  emit_pair zero = {LLVMConstNull(type), dtype_is_complex(t) ? LLVMConstNull(type) : NULL};
  return checked || mask ? emit_guarded(e, i->operands[0], x, checked, mask, emit_splat_pair(e, zero))
                         : emit_value(e, i->operands[0], x);
}

static emit_index *weight_index(emit_element *e, const contraction *g, const emit_index *r) {
  emit_index *kernel = emit_operand_index(e, g->i, 1);
  bool first = hlo_int(g->i, HLO_ATTR_LAYOUT) == HLO_CHANNELS_FIRST;
  emit_axis_from(kernel, 0, g->at, first ? 1 : kernel->rank - 1);
  for (int k = 1; k < kernel->rank; k++) {
    emit_axis_from(kernel, k, r, k - 1);
  }
  return kernel;
}

static emit_pair conv_weight(emit_element *e, const contraction *g, const emit_index *r) {
  return emit_value(e, g->i->operands[1], weight_index(e, g, r));
}

static void conv_step(const emit_reduction_loop *f, const emit_index *r, LLVMValueRef *acc) {
  emit_pair x = conv_image(f->e, f->data, r), y = conv_weight(f->e, f->data, r);
  multiply_add(f, ((const contraction *)f->data)->i, x, y, acc);
}

emit_pair emit_convolution(emit_element *e, const hlo_instr *i, const emit_index *at) {
  contraction g = {.i = i, .at = at};
  emit_reduction_loop f = {.e = e, .data = &g, .step = conv_step};
  f.rank = emit_contracted_extents(i, f.dims);
  bool empty = false;
  for (int k = 0; k < operand(i, 0)->rank; k++) {
    empty = empty || operand(i, 0)->dims[k] == 0;
  }
  if (empty) {
    f.dims[0] = 0;
  }
  contraction clear = g;
  clear.inside = true;
  return fold_products(&f, (dtype)i->shapes[0].type, empty ? NULL : clear_of_padding(e, &g), &clear);
}

/* --- for kernels that sum in another order of loops --- */

emit_pair emit_factor(emit_element *e, const hlo_instr *i, uint32_t operand, const emit_index *at,
                      const emit_index *r) {
  contraction g = {.i = i, .at = at};
  g.n = emit_contracted_extents(i, g.dims);
  emit_pair v = i->op == HLO_DOT ? dot_operand(e, &g, operand, r)
                : operand        ? conv_weight(e, &g, r)
                                 : conv_image(e, &g, r);
  return factor(e, i, operand, v);
}

LLVMValueRef emit_factor_address(emit_element *e, const hlo_instr *i, uint32_t operand, const emit_index *at,
                                 const emit_index *r) {
  contraction g = {.i = i, .at = at};
  const emit_input *in = emit_find_input(e, i->operands[operand]);
  g.n = emit_contracted_extents(i, g.dims);
  assert(in && !in->sizes && (i->op == HLO_DOT || operand == 1));
  const emit_index *x = i->op == HLO_DOT ? dot_index(e, &g, operand, r) : weight_index(e, &g, r);
  LLVMTypeRef type = emit_memory_type(e->w, hlo_type(i->operands[operand]));
  LLVMValueRef position = emit_index_linear(&e->x, x).base;
  return LLVMBuildInBoundsGEP2(e->w->builder, type, in->base, &position, 1, "");
}
