/* depthwise_plan.c - geometry, tiles and packed weights of depthwise.h's convolutions. */
#include <math.h>
#include <string.h>

#include "base/arith.h"
#include "emit/contraction/depthwise_internal.h"
#include "emit/product/gemm.h"
#include "emit/llvm/number.h"
#include "emit/kernel/writer.h"

/* --- geometry --- */

/* Returns true if input, result and taps have the extent 1 in spatial dimension k of the convolution, so that this
 * dimension can be left out. */
static bool is_flat(const hlo_instr *c, int k) {
  return hlo_shape(c->operands[0])->dims[1 + k] == 1 && c->shapes[0].dims[1 + k] == 1 &&
         hlo_shape(c->operands[1])->dims[2 + k] == 1 && hlo_ints(c, HLO_ATTR_LOW)[k] == 0;
}

static bool in_range(int64_t v) { return v >= -INT32_MAX && v <= INT32_MAX; }

static bool is_extent(dim d) { return d != DIM_OVERFLOW && (!dim_is_const(d) || in_range(d)); }

/* Reads spatial dimension k of the convolution into member d of p's arrays: 0 for rows, 1 for positions in a row.
 * Returns false if it is not supported. */
static bool read_dimension(const hlo_instr *c, int k, int d, emit_depthwise *p) {
  p->axis[d] = 1 + k;
  p->in[d] = hlo_shape(c->operands[0])->dims[1 + k];
  p->out[d] = c->shapes[0].dims[1 + k];
  p->taps[d] = hlo_shape(c->operands[1])->dims[2 + k];
  p->strides[d] = hlo_ints(c, HLO_ATTR_STRIDES)[k];
  p->dilation[d] = hlo_ints(c, HLO_ATTR_RHS_DILATION)[k];
  p->low[d] = hlo_ints(c, HLO_ATTR_LOW)[k];
  return hlo_ints(c, HLO_ATTR_LHS_DILATION)[k] == 1 && p->taps[d] <= DEPTHWISE_MOST_TAPS && is_extent(p->in[d]) &&
         is_extent(p->out[d]) && in_range(p->strides[d]) && in_range(p->dilation[d]) && in_range(p->low[d]);
}

static bool convolution_geometry(const hlo_instr *c, emit_depthwise *p) {
  const shape *x = hlo_shape(c->operands[0]), *w = hlo_shape(c->operands[1]), *y = &c->shapes[0];
  int d = 2;
  if (!shape_is_static(w) || !dim_is_const(x->dims[x->rank - 1])) {
    return false;
  }
  int64_t in_channels = x->dims[x->rank - 1], channels = w->dims[0], group = w->dims[1];
  *p = (emit_depthwise){.type = y->type,
                        .input = x->type,
                        .group = group,
                        .multiplier = channels / in_channels,
                        .images = x->dims[0],
                        .channels = channels,
                        .in = {1, 1},
                        .out = {1, 1},
                        .taps = {1, 1},
                        .strides = {1, 1},
                        .dilation = {1, 1}};
  if (hlo_int(c, HLO_ATTR_LAYOUT) != HLO_CHANNELS_LAST || hlo_int(c, HLO_ATTR_GROUPS) * group != in_channels ||
      channels % in_channels || (p->multiplier > 1 && group > 1) || hlo_int(c, HLO_ATTR_GROUPS) == 1) {
    return false;
  }
  for (int k = x->rank - 2; k-- > 0;) { /* the innermost dimension that is not flat becomes the positions in a row */
    if (!is_flat(c, k) && (d == 0 || !read_dimension(c, k, --d, p))) {
      return false;
    }
  }
  return d < 2;
}

bool emit_depthwise_of(const hlo_instr *i, emit_depthwise *d) {
  const hlo_instr *c = emit_contraction_of(i);
  if (!c || c->op != HLO_CONVOLUTION || !emit_supports(i, NULL) || shape_is_empty(&c->shapes[0]) ||
      shape_is_empty(hlo_shape(c->operands[0])) || shape_is_empty(hlo_shape(c->operands[1]))) {
    return false;
  }
  dtype t = (dtype)c->shapes[0].type;
  bool bytes = hlo_sums_bytes(c) && hlo_type(c->operands[1]) == DTYPE_S8;
  bool fits = bytes || (emit_gemm_takes(t) && hlo_type(c->operands[0]) == t && hlo_type(c->operands[1]) == t);
  fits = fits && convolution_geometry(c, d);
  d->type = bytes ? DTYPE_F32 : t;
  const int64_t exact = 512; /* a number of products of two bytes whose sum f32 always holds exactly */
  return fits && (!bytes || d->taps[0] * d->taps[1] * d->group <= exact);
}

/* --- tiles --- */

/* Returns true if all taps of positions [first, first + n) of the result's row are inside of the input's row. */
static bool is_inside(const emit_depthwise *d, int64_t first, int64_t n) {
  int64_t last = (first + n - 1) * d->strides[1] - d->low[1] + (d->taps[1] - 1) * d->dilation[1];
  return first * d->strides[1] >= d->low[1] && last < d->in[1];
}

int emit_depthwise_runs(const emit_depthwise *d, emit_depthwise_run *runs) {
  emit_gemm_parts p = emit_gemm_cut(d->out[1], (int)d->width);
  int n = 0;
  for (int64_t k = 0, first = 0; k < p.n_large + p.n_small; k++) {
    int64_t width = k < p.n_large ? p.large : p.large - 1;
    bool inside = is_inside(d, first, width);
    if (n && inside && runs[n - 1].inside && runs[n - 1].width == width) {
      runs[n - 1].n++;
    } else if (n == EMIT_DEPTHWISE_RUNS) {
      return 0;
    } else {
      runs[n++] = (emit_depthwise_run){first, width, 1, inside};
    }
    first += width;
  }
  return n;
}

/* Returns the width of tiles for n positions, at most `most`.  It is a divisor of n that is larger than most / 2, if
 * there is one, since tiles of equal width need fewer loop bodies. */
static int64_t even_width(int64_t n, int64_t most) {
  for (int64_t w = most; w > 1 && w > most / 2; w--) {
    if (n % w == 0) {
      return w;
    }
  }
  return emit_gemm_cut(n, (int)most).large;
}

/* Returns the number of parts into which the likely rows are divided: for the threads, and such that the input rows
 * that a part reads, which it reads for each block of channels, stay in a core's cache.  Parts should not be small,
 * since each part reads again the input rows that it shares with the part above it.  If the number of rows is an
 * argument, parts may be empty. */
static int64_t choose_parts(const dim_table *dims, const emit_depthwise *d, const emit_target *t, uint32_t threads) {
  const double fewest_rows = 4, rows = emit_likely_size(dims, d->out[0]);
  double bytes = emit_likely_size(dims, d->in[0]) * emit_likely_size(dims, d->in[1]) *
                 (double)(d->channels / d->multiplier * (int64_t)dtype_bytes((dtype)d->input));
  double wanted = fmax(threads > 1 ? 4 * threads : 1, ceil(bytes / (double)(t->l2_bytes / 2)));
  return (int64_t)fmax(fmin(rows, fmax(fmin(wanted, floor(rows / fewest_rows)), threads)), 1);
}

int64_t depthwise_most_positions(const emit_target *t, int64_t taps, int64_t vectors) {
  /* The registers for input vectors, and the most registers for the weights of one vector of channels. */
  enum { INPUTS = 3, WEIGHTS = 5 };
  return min_i64((t->registers - INPUTS - min_i64(taps, WEIGHTS) * vectors) / vectors, EMIT_GEMM_SUMS / vectors);
}

/* Returns the width of tiles for rows whose length is an argument and likely to be n: a power of two, so that few
 * functions serve all convolutions.  One tile for a whole row is best, even if positions of it are not needed. */
static int64_t usual_width(double n, int64_t most) {
  int64_t width = 1;
  while (2 * width <= most && (double)width < n) {
    width *= 2;
  }
  return width;
}

int64_t emit_depthwise_code(const emit_depthwise *d) {
  emit_depthwise_run runs[EMIT_DEPTHWISE_RUNS];
  int n = emit_depthwise_has_runs(d) ? emit_depthwise_runs(d, runs) : 2;
  return n * d->width * d->vectors * d->taps[1] * d->group;
}

bool emit_depthwise_choose(const dim_table *dims, emit_depthwise *d, const emit_target *t, int64_t vectors,
                           uint32_t threads) {
  /* The most multiplications of vectors in the code for a row of taps, which has no loop in a tile: LLVM takes some
   * 0.06 ms for each.  The code for rows of any length is waited for. */
  enum { LONGEST = 4096, LONGEST_OF_ANY = 768 };
  d->lanes = emit_gemm_lanes(t, (dtype)d->type);
  while (d->lanes > d->channels) {
    d->lanes /= 2;
  }
  int64_t most = depthwise_most_positions(t, d->taps[1], vectors);
  d->vectors = vectors;
  if (vectors > (d->channels + d->lanes - 1) / d->lanes || most < 1 || d->lanes % d->group ||
      d->lanes % d->multiplier) {
    return false;
  }
  d->parts = choose_parts(dims, d, t, threads);
  bool fits = false, has_runs = emit_depthwise_has_runs(d);
  for (; most && !fits; most /= 2) {
    d->width = has_runs ? even_width(d->out[1], min_i64(most, d->out[1]))
                        : usual_width(emit_likely_size(dims, d->out[1]), most);
    int64_t code = emit_depthwise_code(d);
    fits = code > 0 && code <= (has_runs ? LONGEST : LONGEST_OF_ANY);
  }
  return fits;
}

void emit_depthwise_choose_like(emit_depthwise *chosen, const emit_depthwise *d) {
  memset(chosen, 0, sizeof *chosen);
  chosen->weights = d->weights;
  chosen->lanes = d->lanes;
  chosen->vectors = d->vectors;
  chosen->width = d->width;
  chosen->parts = d->parts;
}

double emit_depthwise_size(const dim_table *dims, const emit_depthwise *d) {
  double positions =
      emit_likely_size(dims, d->images) * emit_likely_size(dims, d->out[0]) * emit_likely_size(dims, d->out[1]);
  return positions * (double)d->channels * (double)(d->taps[0] * d->taps[1] * d->group);
}

double emit_depthwise_effort(const emit_depthwise *d) {
  int64_t all = d->width * d->taps[1], reach = (d->width - 1) * d->strides[1] + (d->taps[1] - 1) * d->dilation[1] + 1;
  /* If lanes share an input channel, each vector is also spread. */
  int64_t loads = min_i64(reach, all) * (d->group * d->multiplier > 1 ? 2 : 1);
  return 1 + (double)(loads + d->taps[1]) / (double)all;
}

/* --- packing the weights --- */

uint64_t emit_depthwise_packed_bytes(const emit_depthwise *d) {
  return (uint64_t)(d->channels * d->taps[0] * d->taps[1] * d->group) * dtype_bytes((dtype)d->type);
}

/* Returns the offset in the weights of the element that is packed at offset k. */
static int64_t place_of(const emit_depthwise *d, int64_t k) {
  int64_t taps = d->taps[0] * d->taps[1], c = k % d->channels, j = k / d->channels % d->group,
          tap = k / d->channels / d->group;
  return (c * d->group + j) * taps + tap;
}

static void pack_bytes(const emit_depthwise *d, const int8_t *weights, float *packed) {
  for (int64_t k = 0, n = d->channels * d->taps[0] * d->taps[1] * d->group; k < n; k++) {
    packed[k] = weights[place_of(d, k)];
  }
}

void emit_depthwise_pack(const emit_depthwise *d, const void *weights, void *packed) {
  if (d->input != d->type) {
    pack_bytes(d, weights, packed);
    return;
  }
  size_t bytes = dtype_bytes((dtype)d->type);
  for (int64_t k = 0, n = d->channels * d->taps[0] * d->taps[1] * d->group; k < n; k++) {
    memcpy((char *)packed + (size_t)k * bytes, (const char *)weights + (size_t)place_of(d, k) * bytes, bytes);
  }
}
