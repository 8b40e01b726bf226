/* product.c - the geometry of contractions, and how their products are divided into blocks; see product.h. */
#include "emit/product/product.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/arith.h"
#include "emit/product/gemm.h"
#include "emit/llvm/likely.h"
#include "emit/llvm/number.h"
#include "emit/product/product_internal.h"
#include "emit/kernel/writer.h"

_Static_assert((int)EMIT_PRODUCT_ROWS == EMIT_GEMM_ROWS && (int)EMIT_PRODUCT_VECTORS == EMIT_GEMM_VECTORS,
               "blocks of other sizes");

/* --- arithmetic of sizes --- */

dim emit_dim_ceil_over(dim_table *t, dim a, dim b) {
  return dim_is_const(a) && dim_is_const(b) ? ceil_div(a, b) : dim_ceildiv(t, a, b);
}

/* --- nests of loops (emit_level) --- */

bool emit_add_level(dim_table *t, int64_t *n, emit_level *levels, emit_level l, bool merge_b) {
  emit_level *last = *n ? &levels[*n - 1] : NULL;
  if (l.n == 1) {
    return true;
  }
  if (last && last->a == dim_mul(t, l.n, l.a) && (!merge_b || last->b == dim_mul(t, l.n, l.b))) {
    *last = (emit_level){dim_mul(t, last->n, l.n), l.a, l.b};
    return true;
  }
  if (*n == EMIT_PRODUCT_LEVELS) {
    return false;
  }
  levels[(*n)++] = l;
  return true;
}

static dim count(dim_table *t, int64_t n, const emit_level *levels) {
  dim product = 1;
  for (int64_t k = 0; k < n; k++) {
    product = dim_mul(t, product, levels[k].n);
  }
  return product;
}

dim emit_product_sums(dim_table *t, const emit_product *p) { return count(t, p->n_sums, p->sums); }

int64_t emit_product_sum_offset(const emit_product *p, int64_t s) {
  int64_t offset = 0;
  for (int64_t k = p->n_sums; k-- > 0;) {
    offset += s % p->sums[k].n * p->sums[k].b;
    s /= p->sums[k].n;
  }
  return offset;
}

static double likely_count(dim_table *t, int64_t n, const emit_level *levels) {
  double product = 1;
  for (int64_t k = 0; k < n; k++) {
    product *= emit_likely_size(t, levels[k].n);
  }
  return product;
}

/* --- dots --- */

static bool is_among(int d, uint32_t n, const int64_t *dims) {
  for (uint32_t k = 0; k < n; k++) {
    if (dims[k] == d) {
      return true;
    }
  }
  return false;
}

/* Sets the number of columns and their distance in B.  Returns false if the columns are not evenly spaced. */
static bool dot_columns(const hlo_instr *dot, const dim *strides, emit_product *p) {
  const shape *y = hlo_shape(dot->operands[1]);
  emit_level columns[EMIT_PRODUCT_LEVELS];
  int64_t n = 0;
  for (int d = 0; d < y->rank; d++) {
    if (!is_among(d, hlo_n_ints(dot, HLO_ATTR_RHS_BATCH), hlo_ints(dot, HLO_ATTR_RHS_BATCH)) &&
        !is_among(d, hlo_n_ints(dot, HLO_ATTR_RHS_CONTRACT), hlo_ints(dot, HLO_ATTR_RHS_CONTRACT)) &&
        !emit_add_level(dot->parent->module->dims, &n, columns, (emit_level){y->dims[d], strides[d], 0}, false)) {
      return false;
    }
  }
  p->columns = n ? columns[0].n : 1;
  p->b_column = n ? columns[0].a : 1;
  return n <= 1;
}

bool emit_product_of_dot(const hlo_instr *dot, const dim *xs, const dim *ys, emit_product *p) {
  dim_table *t = dot->parent->module->dims;
  const shape *x = hlo_shape(dot->operands[0]);
  const int64_t *xb = hlo_ints(dot, HLO_ATTR_LHS_BATCH), *yb = hlo_ints(dot, HLO_ATTR_RHS_BATCH);
  const int64_t *xk = hlo_ints(dot, HLO_ATTR_LHS_CONTRACT), *yk = hlo_ints(dot, HLO_ATTR_RHS_CONTRACT);
  uint32_t n_batch = hlo_n_ints(dot, HLO_ATTR_LHS_BATCH), n_sums = hlo_n_ints(dot, HLO_ATTR_LHS_CONTRACT);
  memset(p, 0, sizeof *p);
  p->type = x->type;
  p->group.n = 1;
  bool fits = dot_columns(dot, ys, p);
  for (uint32_t k = 0; k < n_batch; k++) {
    fits = fits && emit_add_level(t, &p->n_batch, p->batch, (emit_level){x->dims[xb[k]], xs[xb[k]], ys[yb[k]]}, true);
  }
  for (uint32_t k = 0; k < n_sums; k++) {
    fits = fits && emit_add_level(t, &p->n_sums, p->sums, (emit_level){x->dims[xk[k]], xs[xk[k]], ys[yk[k]]}, true);
  }
  for (int d = 0; d < x->rank; d++) {
    if (!is_among(d, n_batch, xb) && !is_among(d, n_sums, xk)) {
      fits = fits && emit_add_level(t, &p->n_rows, p->rows, (emit_level){x->dims[d], xs[d], 0}, false);
    }
  }
  return fits;
}

static bool dot_geometry(const hlo_instr *dot, emit_product *p) {
  dim_table *t = dot->parent->module->dims;
  dim xs[SHAPE_MAX_RANK], ys[SHAPE_MAX_RANK];
  shape_dim_strides(t, hlo_shape(dot->operands[0]), xs);
  shape_dim_strides(t, hlo_shape(dot->operands[1]), ys);
  return emit_product_of_dot(dot, xs, ys, p);
}

/* --- convolutions --- */

static bool convolution_fits(const hlo_instr *i) {
  uint32_t n = hlo_n_ints(i, HLO_ATTR_STRIDES);
  const shape *x = hlo_shape(i->operands[0]);
  bool fits = hlo_int(i, HLO_ATTR_LAYOUT) == HLO_CHANNELS_LAST && n <= EMIT_PRODUCT_SPATIAL &&
              dim_is_const(x->dims[x->rank - 1]) && shape_is_static(hlo_shape(i->operands[1]));
  for (uint32_t k = 0; k < n && fits; k++) {
    fits = hlo_ints(i, HLO_ATTR_LHS_DILATION)[k] == 1 && hlo_ints(i, HLO_ATTR_LOW)[k] >= 0;
  }
  return fits;
}

/* Returns how far the windows reach along spatial dimension d, counted from the beginning of the padding.  If the
 * result's size is not a constant, it may be 0, for which the formula may give a negative number, so the reach is made
 * at least 0. */
static dim reach_of(const hlo_instr *i, int d) {
  dim_table *t = i->parent->module->dims;
  dim y = i->shapes[0].dims[1 + d];
  int64_t stride = hlo_ints(i, HLO_ATTR_STRIDES)[d], window = hlo_shape(i->operands[1])->dims[2 + d];
  int64_t span = (window - 1) * hlo_ints(i, HLO_ATTR_RHS_DILATION)[d] + 1;
  return dim_is_const(y) ? (y - 1) * stride + span
                         : dim_max(t, dim_add_const(t, dim_mul(t, y, stride), span - stride), 0);
}

/* Returns true if the windows may reach outside of the input along spatial dimension d. */
static bool reaches_outside(const hlo_instr *i, int d, dim reach) {
  dim n = hlo_shape(i->operands[0])->dims[1 + d];
  bool after = dim_is_const(n) && dim_is_const(reach) ? reach > n : hlo_ints(i, HLO_ATTR_HIGH)[d] > 0;
  return hlo_ints(i, HLO_ATTR_LOW)[d] > 0 || after;
}

/* Sets the extents of the input that the windows reach, and whether a copy of the input with zeros around it is
 * needed. Returns false if that copy would be too large. */
static bool pad_input(const hlo_instr *i, emit_product *p) {
  const shape *x = hlo_shape(i->operands[0]);
  dim_table *t = i->parent->module->dims;
  bool pads = false;
  p->spatial = hlo_n_ints(i, HLO_ATTR_STRIDES);
  p->images = x->dims[0];
  p->channels = x->dims[x->rank - 1];
  p->padded_elements = dim_mul(t, p->images, p->channels);
  for (int d = 0; d < p->spatial; d++) {
    dim reach = reach_of(i, d);
    bool outside = reaches_outside(i, d, reach);
    p->in[d] = x->dims[1 + d];
    p->low[d] = hlo_ints(i, HLO_ATTR_LOW)[d];
    p->padded[d] = outside ? reach : p->in[d];
    pads = pads || outside;
    p->padded_elements = dim_mul(t, p->padded_elements, p->padded[d]);
  }
  bool too_large = p->padded_elements == DIM_OVERFLOW || p->padded_elements > INT32_MAX;
  p->padded_elements = pads ? p->padded_elements : 0;
  return !pads || !too_large;
}

static bool convolution_geometry(const hlo_instr *i, emit_product *p) {
  const shape *w = hlo_shape(i->operands[1]), *y = &i->shapes[0];
  memset(p, 0, sizeof *p);
  p->type = y->type;
  if (!convolution_fits(i) || !pad_input(i, p)) {
    return false;
  }
  int64_t groups = hlo_int(i, HLO_ATTR_GROUPS), inner = w->dims[1], taps = shape_product(w, 2, w->rank);
  dim_table *t = i->parent->module->dims;
  dim step[EMIT_PRODUCT_SPATIAL + 1], image = p->channels;
  int64_t tap[EMIT_PRODUCT_SPATIAL];
  for (int64_t d = p->spatial, n = 1; d-- > 0;) {
    step[d] = image;
    image = dim_mul(t, image, p->padded[d]);
    tap[d] = n;
    n *= w->dims[2 + d];
  }
  p->columns = w->dims[0] / groups;
  p->b_column = inner * taps;
  p->group = (emit_level){groups, inner, p->columns * p->b_column};
  bool fits = emit_add_level(t, &p->n_rows, p->rows, (emit_level){p->images, image, 0}, false);
  for (int d = 0; d < p->spatial; d++) {
    emit_level row = {y->dims[1 + d], dim_mul(t, step[d], hlo_ints(i, HLO_ATTR_STRIDES)[d]), 0};
    emit_level sum = {w->dims[2 + d], dim_mul(t, step[d], hlo_ints(i, HLO_ATTR_RHS_DILATION)[d]), tap[d]};
    fits =
        fits && emit_add_level(t, &p->n_rows, p->rows, row, false) && emit_add_level(t, &p->n_sums, p->sums, sum, true);
  }
  return fits && emit_add_level(t, &p->n_sums, p->sums, (emit_level){inner, 1, taps}, true);
}

/* --- fusions, quantised weights and dot groups --- */

/* Sets the geometry of a dot whose right operand is quantised weights (hlo/analysis/quantized.h).  B is the small
 * integers.  The blocks of weights that share a scale are a level (emit_level) of their own in p->sums. */
static bool quantized_geometry(const hlo_instr *dot, emit_product *p) {
  hlo_quantized_weights w;
  if (!hlo_quantized_weights_of(dot, &w) || !dot_geometry(dot, p) || p->n_batch || p->n_sums > 1) {
    return false;
  }
  int64_t step = p->n_sums ? p->sums[0].a : 0;
  if (!dim_is_const(step) || !dim_is_const(p->columns)) {
    return false;
  }
  p->quantized_type = hlo_type(w.q);
  p->block = w.block;
  p->b_column = w.column_step;
  p->n_sums = 2;
  p->sums[0] = (emit_level){w.sums / w.block, step * w.block, w.sum_step * w.block};
  p->sums[1] = (emit_level){w.block, step, w.sum_step};
  return emit_product_reads_quantized(&w) && hlo_has_whole_vectors(&w);
}

/* Divides a distance or a number of integers by n.  Returns false if it is not known to be a multiple of n. */
static bool divide(dim_table *t, dim *d, int64_t n) {
  if (dim_is_const(*d) ? *d % n != 0 : dim_mod(t, *d, n) != 0) {
    return false;
  }
  *d = dim_is_const(*d) ? *d / n : dim_floordiv(t, *d, n);
  return true;
}

/* Changes strides and sizes from integers to dot groups.  Returns false if some group is not contiguous in A, or if a
 * distance in A is not known to be that of whole groups. */
static bool in_dot_groups(dim_table *t, emit_product *p) {
  const int64_t group = emit_product_dot_group(p);
  emit_level *inner = p->n_sums ? &p->sums[p->n_sums - 1] : NULL;
  if (!inner || inner->a != 1 || !dim_is_const(inner->n) || inner->n % group || p->group.a % group ||
      p->channels % group) {
    return false;
  }
  p->dot_step = inner->b;
  *inner = (emit_level){inner->n / group, group, inner->b * group};
  emit_level *lists[] = {p->batch, p->rows, p->sums};
  const int64_t counts[] = {p->n_batch, p->n_rows, p->n_sums};
  for (int l = 0; l < 3; l++) {
    for (int64_t k = 0; k < counts[l]; k++) {
      if (!divide(t, &lists[l][k].a, group)) {
        return false;
      }
    }
  }
  p->group.a /= group;
  p->channels /= group;
  return divide(t, &p->padded_elements, group);
}

/* Returns true for contractions of integers that dot groups may multiply. */
static bool sums_integers(const hlo_instr *c) { return hlo_widens_sums(c) && hlo_type(c->operands[1]) != DTYPE_U8; }

bool emit_product_of(const hlo_instr *i, emit_product *p) {
  const hlo_instr *c = emit_contraction_of(i);
  if (!c || !emit_supports(i, NULL)) {
    return false;
  }
  dtype t = (dtype)c->shapes[0].type;
  bool empty = shape_is_empty(&i->shapes[0]) || shape_is_empty(hlo_shape(c->operands[0])) ||
               shape_is_empty(hlo_shape(c->operands[1]));
  bool dots = sums_integers(c);
  if (empty || (!dots && (!emit_gemm_takes(t) || hlo_type(c->operands[0]) != t || hlo_type(c->operands[1]) != t))) {
    return false;
  }
  if (emit_has_quantized_weights(i)) {
    return quantized_geometry(c, p);
  }
  bool fits = c->op == HLO_DOT ? dot_geometry(c, p) : c->op == HLO_CONVOLUTION && convolution_geometry(c, p);
  p->type = t;
  p->dot = dots ? (int64_t)hlo_type(c->operands[0]) : DTYPE_INVALID;
  return fits && (!dots || in_dot_groups(i->parent->module->dims, p));
}

/* --- blocks of rows --- */

/* Sets how rows are divided into blocks: the rows of the innermost loop.  If these are few, and both distances and the
 * size of the loop around it are constants, the rows of the two innermost loops are divided together. */
static void cut_inner(const emit_product *p, const emit_level **cut, emit_row_cut *r) {
  const emit_level *last = *cut;
  bool apart = p->n_rows > 1 && dim_is_const(last[-1].n) && dim_is_const(last[-1].a) && dim_is_const(last->a);
  if (apart && last->n * 2 <= p->tile_rows) {
    r->unit_rows = last->n;
    (*cut)--;
  }
  emit_gemm_parts parts = emit_gemm_cut((*cut)->n, (int)(p->tile_rows / r->unit_rows));
  r->n_large = parts.n_large;
  r->n_small = parts.n_small;
  r->large = parts.large;
}

emit_row_cut emit_product_rows(dim_table *t, const emit_product *p) {
  static const emit_level one = {1, 0, 0};
  const emit_level *cut = p->n_rows ? &p->rows[p->n_rows - 1] : &one;
  emit_row_cut r = {.unit_rows = 1, .row_step = cut->a, .ladder = p->ladder};
  if (!r.ladder) {
    cut_inner(p, &cut, &r);
  }
  r.unit_step = cut->a;
  r.n_outside = p->n_rows ? cut - p->rows : 0;
  r.outer = count(t, r.n_outside, p->rows);
  r.inner = dim_mul(t, cut->n, r.unit_rows);
  dim inside = r.ladder ? emit_dim_ceil_over(t, cut->n, p->tile_rows) : r.n_large + r.n_small;
  r.blocks = dim_mul(t, r.outer, inside);
  return r;
}

/* --- the choice of blocks and steps, by likely sizes --- */

static int64_t likely(const dim_table *t, dim d) {
  return dim_is_const(d) ? d : (int64_t)fmin(fmax(emit_likely_size(t, d), 1), 1e15);
}

/* Returns true if the rows of B lie in memory as contiguous whole vectors, so that B need not be packed. */
static bool lies_in_vectors(const emit_product *p) {
  return p->b_column == 1 && dim_is_const(p->columns) && p->columns % p->lanes == 0 &&
         (!p->n_sums || dim_is_const(p->sums[p->n_sums - 1].b));
}

/* Returns the bytes of a row of A, or of a column of B, for a likely number of products in a sum; at most 2^50, so that
 * estimates can compute with it. */
static int64_t sum_bytes_of(dim_table *t, const emit_product *p) {
  const int64_t most = (int64_t)1 << 50, bytes = (int64_t)dtype_bytes((dtype)p->type);
  return max_i64(min_i64(likely(t, emit_product_sums(t, p)), most / bytes) * bytes, 1);
}

/* Returns the number of row blocks in a step of the grid.  Usually the rows of A that a step reads fit in the cache,
 * where they stay while all columns are computed, so that A is read from memory once.  If less is read from memory in
 * all when each panel of B, and not A, is read only once, a step has all row blocks. */
static int64_t rows_of_step(dim_table *t, const emit_product *p, int64_t blocks, int64_t panels, int64_t cache_bytes) {
  int64_t sum_bytes = sum_bytes_of(t, p);
  int64_t most = max_i64(min_i64(blocks, cache_bytes / 2 / (p->tile_rows * sum_bytes)), 1),
          steps = ceil_div(blocks, most);
  double a = (double)(blocks * p->tile_rows) * (double)sum_bytes, b = (double)p->columns * (double)sum_bytes;
  bool b_fits = b <= (double)cache_bytes / 2;
  if (!b_fits && a * (double)panels + b < a + b * (double)steps) {
    return blocks;
  }
  return ceil_div(blocks, steps); /* so that all steps have about the same size */
}

/* Chooses what blocks prefetch (fetch_lines and fetch_ahead).  B usually comes from memory, and a product with few rows
 * would wait for it.  Hardware prefetchers lose the streams of a wide block at the end of each page: with fetch_ahead,
 * eight streams bring as many bytes a second from memory as one.  From the last-level cache they bring a quarter less
 * with it. */
static void choose_fetch(dim_table *t, emit_product *p, int64_t rows, const emit_product_options *options) {
  /* Memory brings an element of B in the time of about 100 multiplications, so with more rows than FEW_ROWS, B comes in
   * less than a tenth of the time of the product.  AHEAD and LINE are in bytes; half and twice of AHEAD were no faster,
   * and vectors of half a line gained nothing. */
  enum { FEW_ROWS = 1024, AHEAD = 1024, LINE = 64 };
  p->fetch_lines = p->fetch_ahead = 0;
  if (!dim_is_const(emit_product_sums(t, p)) || p->packing == EMIT_B_PLAIN || p->quantized_type || rows > FEW_ROWS) {
    return;
  }
  int64_t bytes = (int64_t)dtype_bytes((dtype)p->type), b = p->columns * emit_product_sums(t, p) * bytes;
  emit_gemm_tile tile = {(int)p->tile_rows, (int)p->tile_vectors, (int)p->lanes};
  if (b <= options->cache_bytes / 4) {
    return;
  }
  p->fetch_ahead = options->from_memory && rows == 1 && p->lanes * bytes >= LINE ? AHEAD : 0;
  p->fetch_lines =
      p->row_blocks > 1 ? emit_gemm_lines(&tile, (dtype)p->type, (int)min_i64(p->row_blocks, INT32_MAX)) : 0;
}

/* Returns true if the extents of C are constants; the number of products in a sum need not be one. */
static bool has_constant_extents(dim_table *t, const emit_product *p) {
  return dim_is_const(emit_product_outside(t, p)) && dim_is_const(count(t, p->n_rows, p->rows)) &&
         dim_is_const(p->columns);
}

static int64_t column_blocks_of(const emit_product *p) { return emit_product_columns_of(NULL, p, p->tile_vectors).n; }

/* The least number of multiplications in a step.  A multiplication takes about a hundredth of a nanosecond. */
static const double least_work = 20000;

static int64_t wanted_steps(const emit_product_options *o) { return o->threads > 1 ? 4 * (int64_t)o->threads : 1; }

/* Divides a product of constant extents into steps of the grid.  A step first has all columns, and the rows of
 * rows_of_step; then its blocks of rows or of columns are halved until there are enough steps for the threads.  If B is
 * larger than A, columns are halved first, and consecutive steps go along the rows, so that each panel of B is read
 * once. */
static void cut_grid(dim_table *t, emit_product *p, const emit_product_options *options) {
  int64_t rows = count(NULL, p->n_rows, p->rows), outside = emit_product_outside(NULL, p);
  emit_row_cut r = emit_product_rows(NULL, p);
  int64_t panels = column_blocks_of(p), wanted = wanted_steps(options);
  p->row_blocks = rows_of_step(t, p, r.blocks, panels, options->cache_bytes);
  p->column_blocks = panels;
  double sums = (double)likely(t, emit_product_sums(t, p));
  double work = (double)p->tile_rows * (double)p->tile_vectors * (double)p->lanes * sums;
  bool weights_larger = p->columns > rows;
  for (;;) {
    int64_t steps = outside * ceil_div(r.blocks, p->row_blocks) * ceil_div(panels, p->column_blocks);
    int64_t *cut = weights_larger ? &p->column_blocks : &p->row_blocks;
    cut = *cut > 1 ? cut : weights_larger ? &p->row_blocks : &p->column_blocks;
    if (steps >= wanted || *cut <= 1 || (double)p->row_blocks * (double)p->column_blocks * work < 2 * least_work) {
      break;
    }
    *cut = ceil_div(*cut, 2);
  }
  p->rows_first = weights_larger;
  choose_fetch(t, p, rows, options);
}

/* Returns the estimated nanoseconds in which `rows` rows are multiplied by n elements of B: those of the
 * multiplications, and those in which B is loaded from a cache, which matter if there are few rows. */
static double cost_of(const emit_product *p, double rows, double n) {
  const double multiplication = 0.25, load = 0.4; /* of a vector */
  return n / (double)p->lanes * (rows * multiplication + load);
}

/* Sets p->steps, the bounds of the grid's steps, for a product whose extents are not all constants.  The part of A that
 * a step reads fits in the second-level cache.  If B does not fit there, it is read again for each step along the rows,
 * so steps then have more rows; their part of A stays in the last-level cache. */
static void bound_steps(dim_table *t, emit_product *p, const emit_product_options *options) {
  int64_t sum_bytes = sum_bytes_of(t, p), columns = likely(t, p->columns);
  double row = (double)columns * (double)likely(t, emit_product_sums(t, p)); /* the multiplications of a row */
  bool b_fits = (double)columns * (double)sum_bytes <= (double)options->cache_bytes / 2;
  int64_t a_bytes = b_fits ? options->cache_bytes / 2 : options->cache_bytes * 2;
  int64_t most_columns = ceil_div(columns, p->lanes * p->tile_vectors);
  const double least_nanoseconds = 500;
  double rows = fmin(likely_count(t, p->n_rows, p->rows), (double)p->tile_rows);
  p->steps.wanted = wanted_steps(options);
  p->steps.most_column_steps = (int64_t)fmax(fmin(cost_of(p, rows, row) / least_nanoseconds, (double)most_columns), 1);
  p->steps.most_row_blocks = max_i64(a_bytes / (p->tile_rows * sum_bytes), 1);
  int64_t least = (int64_t)(2 * least_work / fmax(row * (double)p->tile_rows, 1)) + 1;
  p->steps.least_row_blocks = min_i64(least, p->steps.most_row_blocks);
  p->rows_first = columns > likely(t, count(t, p->n_rows, p->rows));
}

/* Returns the largest number of rows in a block.  Rows whose distance is a multiple of 4096 bytes fall into the same
 * set of the first-level cache, so a block of more such rows than the set has ways would be much slower.  If the
 * distance is not a constant, pointers to the rows take registers, too (gemm.c). */
static int most_rows(const emit_product *p) {
  enum { SAME_LINES = 4096, WAYS = 6, POINTERS = 8 };
  dim step = p->n_rows ? p->rows[p->n_rows - 1].a : 0;
  if (!dim_is_const(step)) {
    return POINTERS;
  }
  step *= (int64_t)dtype_bytes((dtype)p->type);
  return step && step % SAME_LINES == 0 ? WAYS : EMIT_GEMM_ROWS;
}

/* Returns the number of rows of the innermost loop over rows. */
static dim inner_rows(const emit_product *p) { return p->n_rows ? p->rows[p->n_rows - 1].n : 1; }

/* Returns the number of rows for which the largest block is chosen.  If the number is not a constant, a small likely
 * number does not make the block low: there may be many rows, and few rows are computed by the smaller blocks of the
 * ladder. */
static int64_t rows_to_fit(dim_table *t, const emit_product *p) {
  enum { FEW = 8, MANY = 1024 };
  int64_t rows = likely(t, count(t, p->n_rows, p->rows));
  dim inner = inner_rows(p);
  return !p->ladder ? rows : dim_is_const(inner) ? inner : likely(t, inner) < FEW ? MANY : likely(t, inner);
}

/* Chooses the smaller blocks of a ladder.  The lowest block has one row, for which B is read once.  If B is so large
 * that it comes from memory, it is read faster in two streams than in eight, so that block is at most two vectors wide.
 * Where more rows are likely, so that this block computes only what is left of them, it is at most four vectors wide:
 * few widths mean little code. */
static void choose_lower(dim_table *dims, emit_product *p, const emit_target *t, int64_t columns, int64_t cache_bytes) {
  enum { LOW = 4, STREAMS = 2, NARROW = 4 };
  int64_t last = likely(dims, inner_rows(p));
  bool from_memory = (double)columns * (double)sum_bytes_of(dims, p) > 4 * (double)cache_bytes;
  emit_gemm_tile low = emit_gemm_fit(t, (dtype)p->type, LOW, columns, EMIT_GEMM_VECTORS),
                 one = emit_gemm_fit(t, (dtype)p->type, 1, columns, EMIT_GEMM_VECTORS);
  p->lower[0] = low.rows > 1 && low.rows < p->tile_rows ? (emit_product_block){low.rows, low.vectors}
                                                        : (emit_product_block){0, 0};
  int64_t most = from_memory ? STREAMS : last > LOW ? NARROW : one.vectors;
  p->lower[1] = (emit_product_block){1, min_i64(one.vectors, most)};
}

/* Chooses the blocks.  If the number of columns is not a constant, they are chosen for many columns, since there may be
 * more columns than is likely. */
static void choose_blocks(dim_table *dims, emit_product *p, const emit_target *t, const emit_product_options *options) {
  enum { MANY_COLUMNS = 1024 };
  int64_t columns = dim_is_const(p->columns) ? p->columns : MANY_COLUMNS;
  bool b_fits = (double)columns * (double)sum_bytes_of(dims, p) <= (double)options->cache_bytes;
  p->ladder = !dim_is_const(inner_rows(p)) || (options->ladder && b_fits);
  int64_t rows = rows_to_fit(dims, p);
  int64_t held = options->cache_bytes / 8 * 7 / sum_bytes_of(dims, p) / emit_gemm_lanes(t, (dtype)p->type);
  emit_gemm_tile tile = emit_gemm_fit(t, (dtype)p->type, rows, columns, held);
  if (tile.rows > most_rows(p)) {
    tile = emit_gemm_fit(t, (dtype)p->type, most_rows(p), columns, held);
  }
  p->lanes = tile.lanes;
  p->tile_rows = min_i64(options->rows ? options->rows : tile.rows, rows);
  p->tile_vectors = min_i64(options->vectors ? options->vectors : tile.vectors, ceil_div(columns, p->lanes));
  if (p->ladder) {
    choose_lower(dims, p, t, columns, options->cache_bytes);
  }
}

void emit_product_choose(dim_table *dims, emit_product *p, const emit_target *t, const emit_product_options *options) {
  emit_target used = *t; /* with the lanes and registers that blocks use */
  if (options->lanes) {
    used.lanes = used.lanes * options->lanes / emit_gemm_lanes(t, (dtype)p->type);
  }
  used.registers = emit_gemm_registers(t, (dtype)p->dot, p->quantized_type != 0);
  p->dot_offset = p->dot ? emit_gemm_dot_offset(t, (dtype)p->dot) : 0;
  choose_blocks(dims, p, &used, options);
  p->packing = options->constant_weights ? EMIT_B_PACKED : lies_in_vectors(p) ? EMIT_B_PLAIN : EMIT_B_SCRATCH;
  if (has_constant_extents(dims, p)) {
    cut_grid(dims, p, options);
  } else {
    bound_steps(dims, p, options);
  }
}

void emit_product_choose_like(emit_product *p, const emit_product *chosen) {
  size_t from = offsetof(emit_product, lanes);
  memcpy((char *)p + from, (const char *)chosen + from, sizeof *p - from);
}

/* --- costs, grid and dynamic M --- */

double emit_product_cost(dim_table *t, const emit_product *p) {
  double outside = likely_count(t, p->n_batch, p->batch) * (double)p->group.n;
  double b = emit_likely_size(t, p->columns) * likely_count(t, p->n_sums, p->sums);
  return outside * cost_of(p, likely_count(t, p->n_rows, p->rows), b);
}

dim emit_product_outside(dim_table *t, const emit_product *p) {
  return dim_mul(t, count(t, p->n_batch, p->batch), p->group.n);
}

/* Returns how many steps of the grid there should be for each group of each batch; n is the number of these groups. */
static dim wanted_of_each(dim_table *t, const emit_product *p, dim n) {
  return dim_is_const(n) ? ceil_div(p->steps.wanted, max_i64(n, 1)) : dim_ceildiv(t, p->steps.wanted, dim_max(t, n, 1));
}

/* Divides the rows and columns among steps of the grid, within the bounds that bound_steps has set. */
static emit_product_grid bounded_grid(dim_table *t, const emit_product *p, const emit_row_cut *r) {
  const emit_product_steps *s = &p->steps;
  if (s->wanted == 1) {
    return (emit_product_grid){emit_dim_ceil_over(t, r->blocks, s->most_row_blocks), 1, s->most_row_blocks};
  }
  dim wanted = wanted_of_each(t, p, emit_product_outside(t, p));
  dim blocks = dim_ceildiv(t, dim_mul(t, r->blocks, s->most_column_steps), wanted);
  emit_product_grid g = {.row_blocks = dim_min(t, dim_max(t, blocks, s->least_row_blocks), s->most_row_blocks)};
  g.row_steps = emit_dim_ceil_over(t, r->blocks, g.row_blocks);
  g.column_steps = s->most_column_steps == 1
                       ? 1
                       : dim_min(t, dim_ceildiv(t, wanted, dim_max(t, g.row_steps, 1)), s->most_column_steps);
  return g;
}

emit_product_grid emit_product_grid_of(dim_table *t, const emit_product *p) {
  emit_row_cut r = emit_product_rows(t, p);
  if (!has_constant_extents(t, p)) {
    return bounded_grid(t, p, &r);
  }
  return (emit_product_grid){ceil_div(r.blocks, p->row_blocks), ceil_div(column_blocks_of(p), p->column_blocks),
                             p->row_blocks};
}

bool emit_product_dynamic_m(dim_table *t, const emit_product *p, emit_product *code, int64_t *placeholder_m,
                            emit_kernel_info *info, int64_t args[EMIT_PRODUCT_ARGS]) {
  enum { MANY_BLOCKS = 64 }; /* any number above 0: the code takes the number of row blocks in a step as an argument */
  emit_row_cut r = emit_product_rows(t, p);
  if (!has_constant_extents(t, p) || p->n_batch || p->group.n != 1 || p->n_rows != 1 || p->padded_elements ||
      p->quantized_type || r.n_large + r.n_small < 2 || r.large < 2) {
    return false;
  }
  emit_product_grid g = emit_product_grid_of(t, p);
  *info = (emit_kernel_info){.grid = g.row_steps * g.column_steps};
  info->item_cost = emit_product_cost(t, p) / (double)info->grid;
  args[EMIT_PRODUCT_BLOCKS] = r.blocks;
  args[EMIT_PRODUCT_LARGE] = r.n_large;
  args[EMIT_PRODUCT_ROW_BLOCKS] = p->row_blocks;
  args[EMIT_PRODUCT_COLUMN_BLOCKS] = p->column_blocks;
  args[EMIT_PRODUCT_FIRST] = p->rows_first ? g.row_steps : g.column_steps;
  *code = *p;
  code->dynamic_m = true;
  code->tile_rows = r.large;
  code->rows[0].n = *placeholder_m = 2 * (int64_t)r.large - 1; /* so that there is a block of each of the two sizes */
  code->row_blocks = MANY_BLOCKS;
  code->column_blocks = column_blocks_of(p);
  return true;
}
