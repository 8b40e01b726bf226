/* product.c - the geometry of contractions, and how their products are divided into blocks; see product.h. */
#include "emit/contraction/product.h"

#include <string.h>

#include "base/arith.h"
#include "emit/contraction/gemm.h"
#include "emit/llvm/number.h"
#include "emit/contraction/product_internal.h"
#include "emit/kernel/writer.h"

_Static_assert((int)EMIT_PRODUCT_ROWS == EMIT_GEMM_ROWS && (int)EMIT_PRODUCT_VECTORS == EMIT_GEMM_VECTORS,
               "blocks of other sizes");

/* --- nests of loops (emit_level) --- */

bool emit_add_level(int64_t *n, emit_level *levels, emit_level l, bool merge_b) {
  emit_level *last = *n ? &levels[*n - 1] : NULL;
  if (l.n == 1) {
    return true;
  }
  if (last && last->a == l.n * l.a && (!merge_b || last->b == l.n * l.b)) {
    *last = (emit_level){last->n * l.n, l.a, l.b};
    return true;
  }
  if (*n == EMIT_PRODUCT_LEVELS) {
    return false;
  }
  levels[(*n)++] = l;
  return true;
}

static int64_t count(int64_t n, const emit_level *levels) {
  int64_t product = 1;
  for (int64_t k = 0; k < n; k++) {
    product *= levels[k].n;
  }
  return product;
}

int64_t emit_product_sums(const emit_product *p) { return count(p->n_sums, p->sums); }

int64_t emit_product_sum_offset(const emit_product *p, int64_t s) {
  int64_t offset = 0;
  for (int64_t k = p->n_sums; k-- > 0;) {
    offset += s % p->sums[k].n * p->sums[k].b;
    s /= p->sums[k].n;
  }
  return offset;
}

double emit_product_size(const emit_product *p) {
  return (double)count(p->n_batch, p->batch) * (double)p->group.n * (double)count(p->n_rows, p->rows) *
         (double)p->columns * (double)emit_product_sums(p);
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
static bool dot_columns(const hlo_instr *dot, const int64_t *strides, emit_product *p) {
  const shape *y = hlo_shape(dot->operands[1]);
  emit_level columns[EMIT_PRODUCT_LEVELS];
  int64_t n = 0;
  for (int d = 0; d < y->rank; d++) {
    if (!is_among(d, hlo_n_ints(dot, HLO_ATTR_RHS_BATCH), hlo_ints(dot, HLO_ATTR_RHS_BATCH)) &&
        !is_among(d, hlo_n_ints(dot, HLO_ATTR_RHS_CONTRACT), hlo_ints(dot, HLO_ATTR_RHS_CONTRACT)) &&
        !emit_add_level(&n, columns, (emit_level){y->dims[d], strides[d], 0}, false)) {
      return false;
    }
  }
  p->columns = n ? columns[0].n : 1;
  p->b_column = n ? columns[0].a : 1;
  return n <= 1;
}

bool emit_product_of_dot(const hlo_instr *dot, const int64_t *xs, const int64_t *ys, emit_product *p) {
  const shape *x = hlo_shape(dot->operands[0]);
  const int64_t *xb = hlo_ints(dot, HLO_ATTR_LHS_BATCH), *yb = hlo_ints(dot, HLO_ATTR_RHS_BATCH);
  const int64_t *xk = hlo_ints(dot, HLO_ATTR_LHS_CONTRACT), *yk = hlo_ints(dot, HLO_ATTR_RHS_CONTRACT);
  uint32_t n_batch = hlo_n_ints(dot, HLO_ATTR_LHS_BATCH), n_sums = hlo_n_ints(dot, HLO_ATTR_LHS_CONTRACT);
  memset(p, 0, sizeof *p);
  p->type = x->type;
  p->group.n = 1;
  bool fits = dot_columns(dot, ys, p);
  for (uint32_t k = 0; k < n_batch; k++) {
    fits = fits && emit_add_level(&p->n_batch, p->batch, (emit_level){x->dims[xb[k]], xs[xb[k]], ys[yb[k]]}, true);
  }
  for (uint32_t k = 0; k < n_sums; k++) {
    fits = fits && emit_add_level(&p->n_sums, p->sums, (emit_level){x->dims[xk[k]], xs[xk[k]], ys[yk[k]]}, true);
  }
  for (int d = 0; d < x->rank; d++) {
    if (!is_among(d, n_batch, xb) && !is_among(d, n_sums, xk)) {
      fits = fits && emit_add_level(&p->n_rows, p->rows, (emit_level){x->dims[d], xs[d], 0}, false);
    }
  }
  return fits;
}

static bool dot_geometry(const hlo_instr *dot, emit_product *p) {
  int64_t xs[SHAPE_MAX_RANK], ys[SHAPE_MAX_RANK];
  shape_strides(hlo_shape(dot->operands[0]), xs);
  shape_strides(hlo_shape(dot->operands[1]), ys);
  return emit_product_of_dot(dot, xs, ys, p);
}

/* --- convolutions --- */

static bool convolution_fits(const hlo_instr *i) {
  uint32_t n = hlo_n_ints(i, HLO_ATTR_STRIDES);
  bool fits = hlo_int(i, HLO_ATTR_LAYOUT) == HLO_CHANNELS_LAST && n <= EMIT_PRODUCT_SPATIAL;
  for (uint32_t k = 0; k < n && fits; k++) {
    fits = hlo_ints(i, HLO_ATTR_LHS_DILATION)[k] == 1 && hlo_ints(i, HLO_ATTR_LOW)[k] >= 0;
  }
  return fits;
}

/* Sets the extents of the input that the windows reach, and whether a copy of the input with zeros around it is
 * needed. Returns false if that copy would be too large. */
static bool pad_input(const hlo_instr *i, emit_product *p) {
  const shape *x = hlo_shape(i->operands[0]), *y = &i->shapes[0], *w = hlo_shape(i->operands[1]);
  bool pads = false;
  p->spatial = hlo_n_ints(i, HLO_ATTR_STRIDES);
  p->images = x->dims[0];
  p->channels = x->dims[x->rank - 1];
  p->padded_elements = p->images * p->channels;
  for (int d = 0; d < p->spatial; d++) {
    int64_t low = hlo_ints(i, HLO_ATTR_LOW)[d], n = x->dims[1 + d];
    int64_t reach = (y->dims[1 + d] - 1) * hlo_ints(i, HLO_ATTR_STRIDES)[d] +
                    (w->dims[2 + d] - 1) * hlo_ints(i, HLO_ATTR_RHS_DILATION)[d] + 1;
    p->in[d] = n;
    p->low[d] = low;
    p->padded[d] = low > 0 || reach > n ? reach : n;
    pads = pads || low > 0 || reach > n;
    p->padded_elements *= p->padded[d];
  }
  p->padded_elements = pads ? p->padded_elements : 0;
  return p->padded_elements <= INT32_MAX;
}

static bool convolution_geometry(const hlo_instr *i, emit_product *p) {
  const shape *w = hlo_shape(i->operands[1]), *y = &i->shapes[0];
  memset(p, 0, sizeof *p);
  p->type = y->type;
  if (!convolution_fits(i) || !pad_input(i, p)) {
    return false;
  }
  int64_t groups = hlo_int(i, HLO_ATTR_GROUPS), inner = w->dims[1], taps = shape_product(w, 2, w->rank);
  int64_t step[EMIT_PRODUCT_SPATIAL + 1], image = p->channels, tap[EMIT_PRODUCT_SPATIAL];
  for (int64_t d = p->spatial, t = 1; d-- > 0;) {
    step[d] = image;
    image *= p->padded[d];
    tap[d] = t;
    t *= w->dims[2 + d];
  }
  p->columns = w->dims[0] / groups;
  p->b_column = inner * taps;
  p->group = (emit_level){groups, inner, p->columns * p->b_column};
  bool fits = emit_add_level(&p->n_rows, p->rows, (emit_level){p->images, image, 0}, false);
  for (int d = 0; d < p->spatial; d++) {
    emit_level row = {y->dims[1 + d], step[d] * hlo_ints(i, HLO_ATTR_STRIDES)[d], 0};
    emit_level sum = {w->dims[2 + d], step[d] * hlo_ints(i, HLO_ATTR_RHS_DILATION)[d], tap[d]};
    fits = fits && emit_add_level(&p->n_rows, p->rows, row, false) && emit_add_level(&p->n_sums, p->sums, sum, true);
  }
  return fits && emit_add_level(&p->n_sums, p->sums, (emit_level){inner, 1, taps}, true);
}

/* --- fusions, quantised weights and dot4 groups --- */

/* Sets the geometry of a dot whose right operand is quantised weights (hlo/analysis/quantized.h).  B is the small
 * integers.  In p->sums the blocks of weights that share a scale have a level (emit_level) of their own. */
static bool quantized_geometry(const hlo_instr *dot, emit_product *p) {
  hlo_quantized_weights w;
  if (!hlo_quantized_weights_of(dot, &w) || !dot_geometry(dot, p) || p->n_batch || p->n_sums > 1) {
    return false;
  }
  int64_t step = p->n_sums ? p->sums[0].a : 0;
  p->quantized_type = hlo_type(w.q);
  p->block = w.block;
  p->b_column = w.column_step;
  p->n_sums = 2;
  p->sums[0] = (emit_level){w.sums / w.block, step * w.block, w.sum_step * w.block};
  p->sums[1] = (emit_level){w.block, step, w.sum_step};
  return emit_product_reads_quantized(&w);
}

/* Changes strides and sizes from bytes to dot4 groups.  Returns false if some group of four bytes is not contiguous
 * in A. */
static bool in_dot4_groups(emit_product *p) {
  enum { DOT4 = 4 };
  emit_level *inner = p->n_sums ? &p->sums[p->n_sums - 1] : NULL;
  if (!inner || inner->a != 1 || inner->n % DOT4 || p->group.a % DOT4 || p->channels % DOT4) {
    return false;
  }
  p->dot4_step = inner->b;
  *inner = (emit_level){inner->n / DOT4, DOT4, inner->b * DOT4};
  emit_level *lists[] = {p->batch, p->rows, p->sums};
  const int64_t counts[] = {p->n_batch, p->n_rows, p->n_sums};
  for (int l = 0; l < 3; l++) {
    for (int64_t k = 0; k < counts[l]; k++) {
      if (lists[l][k].a % DOT4) {
        return false;
      }
      lists[l][k].a /= DOT4;
    }
  }
  p->group.a /= DOT4;
  p->channels /= DOT4;
  p->padded_elements /= DOT4;
  return true;
}

bool emit_product_of(const hlo_instr *i, emit_product *p) {
  const hlo_instr *c = emit_contraction_of(i);
  if (!c || !emit_supports(i, NULL)) {
    return false;
  }
  dtype t = (dtype)c->shapes[0].type;
  bool empty = shape_elements(&i->shapes[0]) == 0 || shape_elements(hlo_shape(c->operands[0])) == 0 ||
               shape_elements(hlo_shape(c->operands[1])) == 0;
  bool bytes = hlo_sums_bytes(c) && hlo_type(c->operands[1]) == DTYPE_S8;
  if (empty || (!bytes && (!emit_gemm_takes(t) || hlo_type(c->operands[0]) != t || hlo_type(c->operands[1]) != t))) {
    return false;
  }
  if (emit_has_quantized_weights(i)) {
    return quantized_geometry(c, p);
  }
  bool fits = c->op == HLO_DOT ? dot_geometry(c, p) : c->op == HLO_CONVOLUTION && convolution_geometry(c, p);
  p->type = t;
  p->dot4 = bytes ? (int64_t)hlo_type(c->operands[0]) : DTYPE_INVALID;
  return fits && (!bytes || in_dot4_groups(p));
}

/* --- sizes of blocks and steps --- */

int64_t emit_product_packed(const emit_product *p) {
  return count(p->n_batch, p->batch) * p->group.n * ceil_div(p->columns, p->lanes) * emit_product_panel(p);
}

int64_t emit_product_head(const emit_product *p) { return p->dot4 == DTYPE_S8 ? p->lanes : 0; }

int64_t emit_product_panel(const emit_product *p) { return emit_product_head(p) + p->lanes * emit_product_sums(p); }

static int quantized_bits(dtype t) { return dtype_get_info(t)->bits > 4 ? 8 : 4; }

int emit_product_quantized_bits(const emit_product *p) { return quantized_bits((dtype)p->quantized_type); }

bool emit_product_reads_quantized(const hlo_quantized_weights *w) {
  return w->sums == w->block || w->block % 2 == 0 || quantized_bits(hlo_type(w->q)) == 8;
}

int emit_product_quantized_offset(const emit_product *p) {
  return dtype_is_signed((dtype)p->quantized_type) ? 1 << (emit_product_quantized_bits(p) - 1) : 0;
}

uint64_t emit_product_packed_bytes(const emit_product *p) {
  int64_t n = emit_product_packed(p), rows = n / p->lanes, panels = rows / emit_product_sums(p);
  if (!p->quantized_type) {
    return (uint64_t)n * dtype_bytes((dtype)p->type);
  }
  return (uint64_t)(panels * p->lanes * ceil_div(emit_product_sums(p) * emit_product_quantized_bits(p), 8));
}

static bool pads(const emit_product *p) { return p->padded_elements > 0; }

uint32_t emit_product_phases(const emit_product *p) { return 1 + pads(p) + (p->packing == EMIT_B_SCRATCH); }

uint64_t emit_product_scratch(const emit_product *p) {
  uint64_t bytes = (uint64_t)dtype_bytes((dtype)p->type),
           packed = p->packing == EMIT_B_SCRATCH ? (uint64_t)emit_product_packed(p) : 0;
  return ((uint64_t)p->padded_elements * bytes + 63) / 64 * 64 + packed * bytes;
}

emit_row_cut emit_product_rows(const emit_product *p) {
  static const emit_level one = {1, 0, 0};
  const emit_level *last = p->n_rows ? &p->rows[p->n_rows - 1] : &one, *cut = last;
  emit_row_cut r = {.unit_rows = 1, .row_step = last->a};
  if (p->n_rows > 1 && last->n * 2 <= p->tile_rows) {
    r.unit_rows = last->n;
    cut = last - 1;
  }
  emit_gemm_parts parts = emit_gemm_cut(cut->n, (int)(p->tile_rows / r.unit_rows));
  r.unit_step = cut->a;
  r.n_large = parts.n_large;
  r.n_small = parts.n_small;
  r.large = parts.large;
  r.n_outside = p->n_rows ? cut - p->rows : 0;
  r.outer = count(r.n_outside, p->rows);
  r.inner = cut->n * r.unit_rows;
  r.blocks = r.outer * (r.n_large + r.n_small);
  return r;
}

/* Returns true if the rows of B lie in memory as contiguous whole vectors, so that B need not be packed. */
static bool lies_in_vectors(const emit_product *p) { return p->b_column == 1 && p->columns % p->lanes == 0; }

/* Returns the number of row blocks in a step of the grid.  Usually their part of A fits in the cache, where it stays
 * while all columns are computed, so that A is read from memory once.  If less memory is read when B is read only once,
 * a step has all row blocks. */
static int64_t rows_of_step(const emit_product *p, int64_t blocks, int64_t panels, int64_t cache_bytes) {
  int64_t sum_bytes = max_i64(emit_product_sums(p) * (int64_t)dtype_bytes((dtype)p->type), 1);
  int64_t most = max_i64(min_i64(blocks, cache_bytes / 2 / (p->tile_rows * sum_bytes)), 1),
          steps = ceil_div(blocks, most);
  double a = (double)(blocks * p->tile_rows) * (double)sum_bytes, b = (double)p->columns * (double)sum_bytes;
  bool b_fits = b <= (double)cache_bytes / 2;
  if (!b_fits && a * (double)panels + b < a + b * (double)steps) {
    return blocks;
  }
  return ceil_div(blocks, steps); /* so that all steps have about the same size */
}

/* Returns how many cache lines of the next panels to prefetch at a time, or 0.  B usually comes from memory, and a
 * product with few rows would wait for it. */
static int64_t choose_fetch(const emit_product *p, int64_t rows, int64_t cache_bytes) {
  /* With more rows than this, waiting for B takes less than 1 % of the time: memory brings an element in the time of
   * about 100 multiplications. */
  enum { FEW_ROWS = 1024 };
  int64_t b = p->columns * emit_product_sums(p) * (int64_t)dtype_bytes((dtype)p->type);
  emit_gemm_tile tile = {(int)p->tile_rows, (int)p->tile_vectors, (int)p->lanes};
  bool pays =
      p->packing != EMIT_B_PLAIN && !p->quantized_type && rows <= FEW_ROWS && p->row_blocks > 1 && b > cache_bytes / 4;
  return pays ? emit_gemm_lines(&tile, (dtype)p->type, (int)min_i64(p->row_blocks, INT32_MAX)) : 0;
}

/* Divides the product into steps of the grid: by rows, and by columns as well until there are enough steps for the
 * threads. If B is larger than A, steps go along the rows first, so that each panel of B is read once. */
static void cut_grid(emit_product *p, const emit_product_options *options) {
  int64_t sums = emit_product_sums(p), rows = count(p->n_rows, p->rows),
          outside = count(p->n_batch, p->batch) * p->group.n;
  emit_row_cut r = emit_product_rows(p);
  emit_gemm_parts c = emit_gemm_cut(ceil_div(p->columns, p->lanes), (int)p->tile_vectors);
  int64_t panels = c.n_large + c.n_small;
  p->row_blocks = rows_of_step(p, r.blocks, panels, options->cache_bytes);
  p->column_blocks = panels;
  int64_t wanted = options->threads > 1 ? 4 * (int64_t)options->threads : 1;
  /* The least number of multiplications in a step; one takes about a hundredth of a nanosecond. */
  const double least = 20000;
  double work = (double)p->tile_rows * (double)p->tile_vectors * (double)p->lanes * (double)sums;
  bool weights_larger = p->columns > rows;
  for (;;) {
    int64_t steps = outside * ceil_div(r.blocks, p->row_blocks) * ceil_div(panels, p->column_blocks);
    int64_t *cut = weights_larger ? &p->column_blocks : &p->row_blocks;
    cut = *cut > 1 ? cut : weights_larger ? &p->row_blocks : &p->column_blocks;
    if (steps >= wanted || *cut <= 1 || (double)p->row_blocks * (double)p->column_blocks * work < 2 * least) {
      break;
    }
    *cut = ceil_div(*cut, 2);
  }
  p->rows_first = weights_larger;
  p->fetch_lines = choose_fetch(p, rows, options->cache_bytes);
}

/* Returns the largest number of rows in a block.  Rows whose distance is a multiple of 4096 bytes fall into the same
 * few lines of the first-level cache: 14 such rows were measured to run at a third of the speed of 6. */
static int most_rows(const emit_product *p) {
  enum { SAME_LINES = 4096, WAYS = 6 };
  int64_t step = p->n_rows ? p->rows[p->n_rows - 1].a * (int64_t)dtype_bytes((dtype)p->type) : 0;
  return step && step % SAME_LINES == 0 ? WAYS : EMIT_GEMM_ROWS;
}

/* --- costs, grid and dynamic M --- */

double emit_product_cost(const emit_product *p) { return emit_product_size(p) / (double)p->lanes * 0.25; }

int64_t emit_product_outside(const emit_product *p) { return count(p->n_batch, p->batch) * p->group.n; }

static int64_t column_blocks_of(const emit_product *p) {
  emit_gemm_parts c = emit_gemm_cut(ceil_div(p->columns, p->lanes), (int)p->tile_vectors);
  return c.n_large + c.n_small;
}

int64_t emit_product_row_steps(const emit_product *p) { return ceil_div(emit_product_rows(p).blocks, p->row_blocks); }
int64_t emit_product_column_steps(const emit_product *p) { return ceil_div(column_blocks_of(p), p->column_blocks); }

bool emit_product_dynamic_m(const emit_product *p, emit_product *code, int64_t *placeholder_m, emit_kernel_info *info,
                            int64_t args[EMIT_PRODUCT_ARGS]) {
  enum {
    MANY_BLOCKS = 64
  }; /* the number of row blocks in a step that emit_poll assumes, since the real number is an argument */
  emit_row_cut r = emit_product_rows(p);
  if (p->n_batch || p->group.n != 1 || p->n_rows != 1 || p->padded_elements || p->quantized_type ||
      r.n_large + r.n_small < 2) {
    return false;
  }
  int64_t row_steps = emit_product_row_steps(p), column_steps = emit_product_column_steps(p);
  *info = (emit_kernel_info){.grid = row_steps * column_steps};
  info->item_cost = emit_product_cost(p) / (double)info->grid;
  args[EMIT_PRODUCT_BLOCKS] = r.blocks;
  args[EMIT_PRODUCT_LARGE] = r.n_large;
  args[EMIT_PRODUCT_ROW_BLOCKS] = p->row_blocks;
  args[EMIT_PRODUCT_COLUMN_BLOCKS] = p->column_blocks;
  args[EMIT_PRODUCT_FIRST] = p->rows_first ? row_steps : column_steps;
  *code = *p;
  code->dynamic_m = true;
  code->tile_rows = r.large;
  code->rows[0].n = *placeholder_m = 2 * (int64_t)r.large - 1; /* so that there is a block of each of the two sizes */
  code->row_blocks = MANY_BLOCKS;
  code->column_blocks = column_blocks_of(p);
  return true;
}

void emit_product_choose(emit_product *p, const emit_target *t, const emit_product_options *options) {
  int64_t rows = count(p->n_rows, p->rows);
  emit_target narrow = *t;
  if (options->lanes) {
    narrow.lanes = narrow.lanes * options->lanes / emit_gemm_lanes(t, (dtype)p->type);
    t = &narrow;
  }
  emit_gemm_tile tile = emit_gemm_fit(t, (dtype)p->type, rows, p->columns);
  if (tile.rows > most_rows(p)) {
    tile = emit_gemm_fit(t, (dtype)p->type, most_rows(p), p->columns);
  }
  p->lanes = tile.lanes;
  p->tile_rows = min_i64(options->rows ? options->rows : tile.rows, rows);
  p->tile_vectors = min_i64(options->vectors ? options->vectors : tile.vectors, ceil_div(p->columns, p->lanes));
  p->packing = options->constant_weights ? EMIT_B_PACKED : lies_in_vectors(p) ? EMIT_B_PLAIN : EMIT_B_SCRATCH;
  cut_grid(p, options);
}
