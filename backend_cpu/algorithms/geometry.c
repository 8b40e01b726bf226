/* geometry.c - see geometry.h. */
#include "backend_cpu/algorithms/geometry.h"

#include "emit/kernel/kernel.h"

/* The most taps of a convolution: the product of the spatial sizes of its weights.  With more, oneDNN takes minutes to
 * choose an implementation. */
enum { MOST_TAPS = 1 << 14 };

/* --- dots as matrix products --- */

typedef struct extent {
  int64_t n, stride; /* the number of elements and their distance */
  bool ok;
} extent;

/* Merges several dimensions into one; `ok` is false if their elements are not evenly spaced. */
static extent collapse(const shape *s, uint32_t n, const int64_t *dims) {
  int64_t strides[SHAPE_MAX_RANK];
  shape_strides(s, strides);
  extent e = {1, 1, true};
  for (uint32_t k = n; k-- > 0;) {
    int64_t size = s->dims[dims[k]];
    if (size != 1) {
      e.ok = e.ok && (e.n == 1 || strides[dims[k]] == e.n * e.stride);
      e.stride = e.n == 1 ? strides[dims[k]] : e.stride;
      e.n *= size;
    }
  }
  return e;
}

static uint32_t free_dims(const shape *s, const hlo_attr *batch, const hlo_attr *contract, int64_t *out) {
  uint32_t n = 0, taken = 0;
  for (uint32_t k = 0; k < batch->n; k++) {
    taken |= 1u << batch->ints[k];
  }
  for (uint32_t k = 0; k < contract->n; k++) {
    taken |= 1u << contract->ints[k];
  }
  for (int d = 0; d < s->rank; d++) {
    if (!(taken >> d & 1)) {
      out[n++] = d;
    }
  }
  return n;
}

/* A dimension of one element may have any stride; here it gets the stride of a dense matrix. */
static void tidy_strides(int64_t rows, int64_t columns, int64_t *row, int64_t *column) {
  if (columns == 1) {
    *column = rows == 1 || *row == 1 ? rows : 1;
  }
  if (rows == 1) {
    *row = *column == 1 ? columns : 1;
  }
}

static bool dot_geometry(const hlo_instr *i, cpu_geometry *g) {
  const hlo_attr *lb = hlo_attr_of(i, HLO_ATTR_LHS_BATCH), *rb = hlo_attr_of(i, HLO_ATTR_RHS_BATCH);
  const hlo_attr *lc = hlo_attr_of(i, HLO_ATTR_LHS_CONTRACT), *rc = hlo_attr_of(i, HLO_ATTR_RHS_CONTRACT);
  const shape *x = hlo_shape(i->operands[0]), *y = hlo_shape(i->operands[1]);
  int64_t lhs_free[SHAPE_MAX_RANK], rhs_free[SHAPE_MAX_RANK];
  uint32_t n_lhs = free_dims(x, lb, lc, lhs_free), n_rhs = free_dims(y, rb, rc, rhs_free);
  extent b = collapse(x, lb->n, lb->ints), m = collapse(x, n_lhs, lhs_free), k = collapse(x, lc->n, lc->ints);
  extent b2 = collapse(y, rb->n, rb->ints), n = collapse(y, n_rhs, rhs_free), k2 = collapse(y, rc->n, rc->ints);
  if (!b.ok || !m.ok || !k.ok || !b2.ok || !n.ok || !k2.ok || b.n == 0 || m.n == 0 || n.n == 0 || k.n == 0) {
    return false;
  }
  *g = (cpu_geometry){.op = CPU_MATMUL,
                      .batch = b.n,
                      .m = m.n,
                      .k = k.n,
                      .n = n.n,
                      .lhs_m = m.stride,
                      .lhs_k = k.stride,
                      .rhs_k = k2.stride,
                      .rhs_n = n.stride,
                      .lhs_batch_stride = b.stride,
                      .rhs_batch_stride = b2.stride};
  tidy_strides(m.n, k.n, &g->lhs_m, &g->lhs_k);
  tidy_strides(k.n, n.n, &g->rhs_k, &g->rhs_n);
  if (b.n == 1) {
    g->lhs_batch_stride = m.n * k.n;
    g->rhs_batch_stride = k.n * n.n;
  }
  return (g->lhs_m == 1 || g->lhs_k == 1) && (g->rhs_k == 1 || g->rhs_n == 1);
}

bool cpu_dot_dims(const hlo_instr *dot, uint32_t dims, uint32_t *out) {
  const shape *r = &dot->shapes[0];
  uint32_t batch = hlo_n_ints(dot, HLO_ATTR_LHS_BATCH);
  /* The result's dimensions are those of the batch, then those that make up m, then those that make up n.  `lhs` is
   * where those of m end. */
  uint32_t lhs = (uint32_t)hlo_rank(dot->operands[0]) - hlo_n_ints(dot, HLO_ATTR_LHS_CONTRACT);
  uint32_t ends[] = {batch, lhs, r->rank};
  *out = 0;
  for (uint32_t group = 0, d = 0; group < 3; group++) {
    bool all = true, any = false;
    for (; d < ends[group]; d++) {
      bool here = dims >> d & 1;
      all = all && (here || r->dims[d] == 1);
      any = any || (here && r->dims[d] != 1);
    }
    if (any && !all) {
      return false;
    }
    *out |= any ? 1u << group : 0;
  }
  return true;
}

/* --- convolutions --- */

static bool all_in(uint32_t n, const int64_t *v, int64_t low, int64_t high) {
  for (uint32_t k = 0; k < n; k++) {
    if (v[k] < low || v[k] > high) {
      return false;
    }
  }
  return true;
}

static bool convolution_geometry(const hlo_instr *i, cpu_geometry *g) {
  const shape *x = hlo_shape(i->operands[0]), *w = hlo_shape(i->operands[1]), *y = &i->shapes[0];
  uint32_t n = hlo_n_ints(i, HLO_ATTR_STRIDES);
  const int64_t *low = hlo_ints(i, HLO_ATTR_LOW), *high = hlo_ints(i, HLO_ATTR_HIGH);
  bool last = hlo_int(i, HLO_ATTR_LAYOUT) == HLO_CHANNELS_LAST;
  if (n < 1 || n > CPU_MAX_SPATIAL || shape_elements(x) == 0 || shape_elements(w) == 0 || shape_elements(y) == 0 ||
      !all_in(n, hlo_ints(i, HLO_ATTR_LHS_DILATION), 1, 1) || !all_in(n, low, 0, INT32_MAX) ||
      !all_in(n, high, 0, INT32_MAX)) {
    return false;
  }
  *g = (cpu_geometry){.op = CPU_CONVOLUTION,
                      .spatial = n,
                      .channels_last = last,
                      .batch = x->dims[0],
                      .in_channels = x->dims[last ? n + 1 : 1],
                      .out_channels = w->dims[0],
                      .groups = hlo_int(i, HLO_ATTR_GROUPS)};
  if (shape_product(w, 2, w->rank) > MOST_TAPS) {
    return false;
  }
  for (uint32_t d = 0; d < n; d++) {
    g->in[d] = x->dims[d + (last ? 1 : 2)];
    g->out[d] = y->dims[d + (last ? 1 : 2)];
    g->kernel[d] = w->dims[d + 2];
    g->strides[d] = hlo_ints(i, HLO_ATTR_STRIDES)[d];
    g->low[d] = low[d];
    g->high[d] = high[d];
    g->dilation[d] = hlo_ints(i, HLO_ATTR_RHS_DILATION)[d];
  }
  return true;
}

/* Returns true if the library multiplies these types: f32, or bytes where the weights are signed. */
static bool has_library_types(const hlo_instr *i) {
  bool bytes = i->shapes[0].type == DTYPE_S32 && hlo_sums_bytes(i) && hlo_type(i->operands[1]) == DTYPE_S8;
  return cpu_library_may_open() && (bytes ? cpu_library_has_bytes() : i->shapes[0].type == DTYPE_F32);
}

bool cpu_geometry_sizes(const hlo_instr *contraction, cpu_geometry *g) {
  if (emit_takes_sizes(contraction)) {
    return false;
  }
  return contraction->op == HLO_DOT ? dot_geometry(contraction, g)
                                    : contraction->op == HLO_CONVOLUTION && convolution_geometry(contraction, g);
}

bool cpu_geometry_of(const hlo_instr *contraction, cpu_geometry *g) {
  if (!cpu_geometry_sizes(contraction, g) || !has_library_types(contraction)) {
    return false;
  }
  g->lhs_type = hlo_type(contraction->operands[0]);
  g->weights_type = hlo_type(contraction->operands[1]);
  g->result_type = (int64_t)contraction->shapes[0].type;
  return true;
}

double cpu_geometry_multiplications(const cpu_geometry *g) {
  if (g->op == CPU_MATMUL) {
    return (double)g->batch * (double)g->m * (double)g->k * (double)g->n;
  }
  double n = (double)g->batch * (double)g->out_channels * (double)(g->in_channels / g->groups);
  for (int d = 0; d < g->spatial; d++) {
    n *= (double)g->out[d] * (double)g->kernel[d];
  }
  return n;
}
