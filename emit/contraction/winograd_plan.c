/* winograd_plan.c - the plan of winograd.h's kernels: sizes, blocks, and packed weights. */
#include <math.h>
#include <string.h>

#include "base/arith.h"
#include "emit/contraction/winograd_internal.h"
#include "emit/llvm/likely.h"

static const int64_t f32_bytes = sizeof(float);

/* --- sizes --- */

/* Returns a distance of at least `elements` that is an odd number of cache lines, so that consecutive rows do not
 * fall into the same sets of a cache. */
static dim odd_lines(dim_table *t, dim elements) {
  const int64_t line = 64 / f32_bytes;
  dim pairs = dim_floordiv(t, dim_ceildiv(t, elements, line), 2);
  return dim_mul(t, dim_add_const(t, dim_mul(t, pairs, 2), 1), line);
}

int64_t emit_winograd_products(const emit_winograd *p) { return emit_winograd_size(p, 0) * emit_winograd_size(p, 1); }

dim emit_winograd_all_tiles(dim_table *t, const emit_winograd *p) {
  return dim_mul(t, p->batch, dim_mul(t, p->tiles[0], p->tiles[1]));
}

static double likely_tiles(dim_table *t, const emit_winograd *p) {
  return emit_likely_size(t, emit_winograd_all_tiles(t, p));
}

dim emit_winograd_count_parts(dim_table *t, const emit_winograd *p) {
  const emit_winograd_parts *n = &p->parts;
  dim tiles = emit_winograd_all_tiles(t, p);
  if (p->phased || dim_is_const(tiles)) {
    return n->most;
  }
  dim some = dim_max(t, n->few, dim_min(t, n->most, dim_floordiv(t, tiles, EMIT_WINOGRAD_PART)));
  some = dim_min(t, some, dim_floordiv(t, tiles, n->least));
  some = dim_max(t, some, dim_min(t, EMIT_WINOGRAD_PARTS, dim_floordiv(t, tiles, n->large)));
  return dim_max(t, some, 1);
}

int64_t emit_winograd_panel(const emit_winograd *p) { return p->vectors * p->lanes; }

int64_t emit_winograd_panels(const emit_winograd *p) { return ceil_div(p->outputs, emit_winograd_panel(p)); }

dim emit_winograd_shares(dim_table *t, const emit_winograd *p) {
  return dim_ceildiv(t, emit_winograd_all_tiles(t, p), p->share);
}

int64_t emit_winograd_on_the_fly_elements(const emit_winograd *p) { return emit_winograd_products(p) * p->u_plane; }

uint64_t emit_winograd_packed_bytes(const emit_winograd *p) {
  int64_t numbers = p->on_the_fly ? p->r[0] * p->r[1] : emit_winograd_products(p);
  return (uint64_t)(numbers * emit_winograd_panels(p) * emit_winograd_panel(p) * p->channels * f32_bytes);
}

dim emit_winograd_scratch_bytes(dim_table *t, const emit_winograd *p) {
  int64_t on_the_fly = p->on_the_fly ? p->workers * emit_winograd_on_the_fly_elements(p) : 0;
  dim planes = dim_mul(t, emit_winograd_products(p), dim_add(t, p->v_plane, p->m_plane));
  dim parts = dim_mul(t, emit_winograd_count_parts(t, p), planes);
  return dim_mul(t, dim_add(t, parts, on_the_fly), f32_bytes);
}

uint32_t emit_winograd_kernels(const emit_winograd *p) { return p->phased ? EMIT_WINOGRAD_PHASES : 1; }

/* Returns the work for one tile, counted in multiplications.  Transforming one element counts as ten. */
static double multiplications_of_tile(const emit_winograd *p) {
  double numbers = (double)emit_winograd_products(p);
  return numbers * ((double)(p->channels * p->outputs) + 10 * (double)(p->channels + p->outputs));
}

double emit_winograd_multiplications(dim_table *t, const emit_winograd *p) {
  return likely_tiles(t, p) * multiplications_of_tile(p);
}

/* --- plans --- */

static bool in_range(int64_t v, int64_t low, int64_t high) { return v >= low && v <= high; }

static bool read_geometry(const hlo_instr *i, emit_winograd *p) {
  const shape *x = hlo_shape(i->operands[0]), *w = hlo_shape(i->operands[1]), *y = &i->shapes[0];
  int n = x->rank - 2;
  if (i->op != HLO_CONVOLUTION || y->type != DTYPE_F32 || n < 1 || n > 2 || hlo_int(i, HLO_ATTR_GROUPS) != 1 ||
      hlo_int(i, HLO_ATTR_LAYOUT) != HLO_CHANNELS_LAST || shape_is_empty(y) || shape_is_empty(x) ||
      !shape_is_static(w) || !dim_is_const(x->dims[n + 1])) {
    return false;
  }
  *p = (emit_winograd){.spatial = n, .channels = x->dims[n + 1], .outputs = y->dims[n + 1]};
  for (int d = 0; d < 2; d++) {
    int k = d - (2 - n); /* the spatial dimension of the arrays, or negative if there is none */
    p->r[d] = 1;
    if (k < 0) {
      continue;
    }
    p->r[d] = w->dims[2 + k];
    p->low[d] = hlo_ints(i, HLO_ATTR_LOW)[k];
    if (hlo_ints(i, HLO_ATTR_STRIDES)[k] != 1 || hlo_ints(i, HLO_ATTR_LHS_DILATION)[k] != 1 ||
        (p->r[d] > 1 && hlo_ints(i, HLO_ATTR_RHS_DILATION)[k] != 1) || !in_range(p->low[d], -INT32_MAX, INT32_MAX)) {
      return false;
    }
  }
  return true;
}

/* Sets the sizes of images, and the number of their tiles. */
static void set_images(const hlo_instr *i, emit_winograd *p) {
  const shape *x = hlo_shape(i->operands[0]), *y = &i->shapes[0];
  p->batch = x->dims[0];
  for (int d = 0; d < 2; d++) {
    int k = d - (2 - (int)p->spatial);
    p->in[d] = k < 0 ? 1 : x->dims[1 + k];
    p->out[d] = k < 0 ? 1 : y->dims[1 + k];
    p->tiles[d] = dim_ceildiv(i->parent->module->dims, p->out[d], p->m[d]);
  }
}

static void set_planes(dim_table *t, emit_winograd *p) {
  dim held = p->phased ? emit_winograd_all_tiles(t, p) : p->block;
  held = dim_mul(t, dim_ceildiv(t, held, p->rows), p->rows);
  p->v_plane = odd_lines(t, dim_mul(t, held, p->v_row));
  p->m_plane = odd_lines(t, dim_mul(t, held, p->m_row));
}

void emit_winograd_set_sizes(const hlo_instr *i, emit_winograd *p) {
  set_images(i, p);
  set_planes(i->parent->module->dims, p);
}

void emit_winograd_choose_like(emit_winograd *chosen, const emit_winograd *p) {
  *chosen = *p;
  chosen->batch = chosen->v_plane = chosen->m_plane = 0;
  for (int d = 0; d < 2; d++) {
    chosen->in[d] = chosen->out[d] = chosen->tiles[d] = 0;
  }
}

bool emit_winograd_choose_tiles(emit_winograd *p, int64_t tile) {
  int64_t most = p->r[0] > 1 && p->r[1] > 1 ? 6 : EMIT_WINOGRAD_MOST;
  for (int d = 0; d < 2; d++) {
    p->m[d] = p->r[d] == 1 ? 1 : tile;
    if (p->r[d] % 2 == 0 || p->r[d] > EMIT_WINOGRAD_MOST_TAPS) {
      return false;
    }
    if (p->r[d] > 1 &&
        (emit_winograd_size(p, d) < 4 || emit_winograd_size(p, d) > most || emit_winograd_size(p, d) % 2)) {
      return false;
    }
  }
  return p->r[0] > 1 || p->r[1] > 1;
}

/* Chooses the register block for products of `rows` rows, so that the last blocks compute few rows and outputs that do
 * not exist. */
static void choose_registers(emit_winograd *p, const emit_target *t, int64_t rows) {
  /* Estimated times, in units of the time of a multiply-add: the load of an element of V from the first-level cache,
   * and the load of a vector of weights from the second-level cache.  Loads count little since multiplications hide
   * most of them. */
  const double of_v = 0.1, of_weights = 0.5;
  double best = INFINITY;
  p->lanes = t->lanes;
  p->rows = p->vectors = 1;
  for (int64_t v = 1; v <= EMIT_GEMM_VECTORS; v++) {
    for (int64_t r = 1; r <= rows && emit_gemm_fits(t, DTYPE_F32, (int)p->lanes, r, v); r++) {
      double each = fmax((double)(r * v), EMIT_GEMM_LATENCY) + of_v * (double)r + of_weights * (double)v;
      double cost = each * (double)(ceil_div(rows, r) * ceil_div(p->outputs, v * p->lanes));
      if (cost < best) {
        best = cost;
        p->rows = r;
        p->vectors = v;
      }
    }
  }
}

/* Returns the number of tiles that are computed at once.  The V of these tiles and a slab of their M should fill most
 * of the cache, but the tiles must not be so few that reading weights takes most of the time. */
static int64_t choose_block(dim_table *t, const emit_winograd *p, int64_t slab, int64_t cache) {
  enum { LEAST = 16 };
  int64_t fit = cache * 7 / 10 / (emit_winograd_products(p) * (p->channels + slab) * f32_bytes);
  fit = fit < LEAST ? LEAST : fit;
  dim tiles = dim_ceildiv(t, emit_winograd_all_tiles(t, p), p->parts.most);
  return dim_is_const(tiles) ? ceil_div(tiles, ceil_div(tiles, fit)) : fit;
}

/* Sets p->parts for a number of tiles that is not a constant. */
static void choose_any_parts(emit_winograd *p, uint32_t threads, double worth, double long_time) {
  double each = multiplications_of_tile(p);
  p->parts = (emit_winograd_parts){.most = threads > 1 ? 2 * (int64_t)threads : 1,
                                   .few = threads,
                                   .least = (int64_t)ceil(worth / each),
                                   .large = (int64_t)ceil(long_time / each)};
}

static void choose_parts(dim_table *t, emit_winograd *p, uint32_t threads) {
  const double worth = 1000000, long_time = 1e10;
  dim tiles = emit_winograd_all_tiles(t, p);
  if (!dim_is_const(tiles)) {
    choose_any_parts(p, threads, worth, long_time);
    return;
  }
  double work = emit_winograd_multiplications(t, p);
  int64_t parts = threads > 1 ? 2 * (int64_t)threads : 1;
  if (tiles / parts < EMIT_WINOGRAD_PART && threads > 1) {
    parts = threads;
  }
  parts = work / worth < (double)parts ? (int64_t)(work / worth) : parts;
  parts = work / long_time > (double)parts ? (int64_t)fmin(work / long_time, EMIT_WINOGRAD_PARTS) : parts;
  p->parts.most = parts < 1 ? 1 : parts < tiles ? parts : tiles;
}

/* Returns the number of channels in a chunk, at most `fit`.  It divides `channels`, so that all chunks are equal,
 * unless equal chunks would be less than half as large as possible. */
static int64_t choose_chunk(int64_t channels, int64_t fit) {
  int64_t chunk = ceil_div(channels, ceil_div(channels, fit));
  for (int64_t k = chunk; k > 0 && 2 * k > chunk; k--) {
    if (channels % k == 0) {
      return k;
    }
  }
  return chunk;
}

/* Chooses chunks and shares for the on-the-fly transform.  The transformed weights of a chunk of channels and the sums
 * of a share of tiles should fit in a worker's cache.  A share should have many tiles, since weights are transformed
 * again for each share, and a chunk many channels, since the sums are read and written again for each chunk. */
static void choose_on_the_fly(dim_table *dims, emit_winograd *p, int64_t tiles, const emit_winograd_options *o) {
  enum { LEAST_CHANNELS = 8, LEAST_TILES = 24 };
  int64_t panels = emit_winograd_panels(p), wanted = o->threads > 1 ? 4 * (int64_t)o->threads : 1;
  /* The largest sum of the channels of a chunk and the tiles of a share for which the cache has room. */
  int64_t fit = o->cache_bytes * 9 / 10 / (emit_winograd_products(p) * emit_winograd_panel(p) * f32_bytes);
  p->chunk = choose_chunk(p->channels, fit / 2 < LEAST_CHANNELS ? LEAST_CHANNELS : fit / 2);
  p->u_plane = odd_lines(dims, p->chunk * emit_winograd_panel(p));
  int64_t most = fit - p->chunk < LEAST_TILES ? LEAST_TILES : fit - p->chunk, shares = ceil_div(wanted, panels);
  shares = shares * most < tiles ? ceil_div(tiles, most) : shares;
  int64_t share = ceil_div(tiles, shares);
  p->share = round_up(share < LEAST_TILES ? LEAST_TILES : share, p->rows);
  int64_t pieces = panels * ceil_div(tiles, p->share);
  p->workers = pieces < wanted ? pieces : wanted;
}

static void choose_blocks(dim_table *dims, emit_winograd *p, const emit_target *t, const emit_winograd_options *o) {
  enum { SLAB = 128 };
  int64_t tiles = (int64_t)fmax(likely_tiles(dims, p), 1), slab = p->outputs < SLAB ? p->outputs : SLAB;
  p->phased = o->phased;
  if (o->phased) {
    p->parts.most = 1;
    p->block = tiles;
  } else {
    choose_parts(dims, p, o->threads ? o->threads : 1);
    p->block = choose_block(dims, p, slab, o->cache_bytes);
  }
  choose_registers(p, t, p->block);
  int64_t panel = emit_winograd_panel(p);
  /* If `outputs` is not a multiple of the lanes, there is only one slab, since the last vector of a slab could reach
   * into the next one. */
  bool whole = o->phased || p->outputs <= SLAB || p->outputs % p->lanes;
  p->slab = whole ? round_up(p->outputs, panel) : round_up(SLAB, panel);
  p->v_row = odd_lines(dims, p->channels);
  p->m_row = odd_lines(dims, p->slab);
  set_planes(dims, p);
  p->on_the_fly = o->on_the_fly;
  if (o->on_the_fly) {
    choose_on_the_fly(dims, p, tiles, o);
  }
}

bool emit_winograd_plan(const hlo_instr *convolution, const emit_target *t, const emit_winograd_options *o,
                        emit_winograd *p) {
  const double most = 0x1p36; /* the largest size of scratch memory or packed weights in bytes */
  dim_table *dims = convolution->parent->module->dims;
  if (!read_geometry(convolution, p) || !emit_winograd_choose_tiles(p, o->tile)) {
    return false;
  }
  set_images(convolution, p);
  double numbers = (double)emit_winograd_products(p), tiles = likely_tiles(dims, p);
  double room = 64, c = (double)p->channels + room, k = (double)p->outputs + room;
  if (numbers * c * k * 4 > most || (tiles + room) * numbers * (c + k) * 4 > most) {
    return false;
  }
  choose_blocks(dims, p, t, o);
  return emit_winograd_scratch_bytes(dims, p) != DIM_OVERFLOW;
}

/* --- packing the weights --- */

enum { MOST_PANEL = EMIT_WINOGRAD_MOST_PANEL, STRIP = 8 /* the number of outputs that are computed together */ };

void emit_winograd_weights_init(emit_winograd_weights *t, const emit_winograd *p) {
  memset(t, 0, sizeof *t);
  t->p = p;
  for (int d = 0; d < 2; d++) {
    emit_winograd_weight_matrix(emit_winograd_size(p, d), p->r[d], t->g[d]);
  }
}

/* The numbers of a strip, in one vector register or several. */
typedef double strip __attribute__((vector_size(STRIP * sizeof(double))));
typedef float narrow_strip __attribute__((vector_size(STRIP * sizeof(float))));

/* So that each of the functions below is compiled for its own processor. */
#define INLINE static inline __attribute__((always_inline))

/* Returns the sum of row[k] * x[k * step][j] over all k < r, for STRIP numbers from j = `at` on. */
INLINE void combine_strip(int64_t r, const double *row, int64_t step, double (*x)[MOST_PANEL], int64_t at, strip *sum) {
  strip one;
  memcpy(&one, x[0] + at, sizeof one);
  *sum = row[0] * one;
  for (int64_t k = 1; k < r; k++) {
    memcpy(&one, x[k * step] + at, sizeof one);
    *sum += row[k] * one;
  }
}

/* Does what combine_strip does.  If the number of taps is a constant, compilers unroll the inner loop; most
 * convolutions have 3 taps. */
INLINE void combine(int64_t r, const double *row, int64_t step, double (*x)[MOST_PANEL], int64_t at, strip *sum) {
  if (r == 3) {
    combine_strip(3, row, step, x, at, sum);
  } else {
    combine_strip(r, row, step, x, at, sum);
  }
}

/* Weights in a model file may have any alignment. */
static float weight(const void *w, int64_t k) {
  float x;
  memcpy(&x, (const char *)w + (size_t)k * sizeof x, sizeof x);
  return x;
}

/* Transforms t->taps along both dimensions. */
INLINE void transform(emit_winograd_weights *t, int64_t n, int64_t to_plane, float *to) {
  int64_t rows = t->p->r[0], columns = t->p->r[1];
  for (int64_t i = 0; i < emit_winograd_size(t->p, 0); i++) {
    double(*half)[MOST_PANEL] = t->half + i * columns;
    for (int64_t x = 0; x < columns; x++) {
      for (int64_t at = 0; at < n; at += STRIP) {
        strip sum;
        combine(rows, t->g[0][i], columns, t->taps + x, at, &sum);
        memcpy(half[x] + at, &sum, sizeof sum);
      }
    }
    for (int64_t j = 0; j < emit_winograd_size(t->p, 1); j++, to += to_plane) {
      for (int64_t at = 0; at < n; at += STRIP) {
        strip sum;
        combine(columns, t->g[1][j], 1, half, at, &sum);
        narrow_strip rounded = __builtin_convertvector(sum, narrow_strip);
        if (at + STRIP <= n) {
          memcpy(to + at, &rounded, sizeof rounded);
        } else {
          memcpy(to + at, &rounded, (size_t)(n - at) * sizeof *to);
        }
      }
    }
  }
}

/* Wider registers take fewer instructions.  The numbers are the same on each processor, since the compiler contracts no
 * product and sum (-ffp-contract=off). */
#ifdef __x86_64__
__attribute__((target("avx512f"))) static void transform_avx512(emit_winograd_weights *t, int64_t n, int64_t to_plane,
                                                                float *to) {
  transform(t, n, to_plane, to);
}
__attribute__((target("avx"))) static void transform_avx(emit_winograd_weights *t, int64_t n, int64_t to_plane,
                                                         float *to) {
  transform(t, n, to_plane, to);
}
#endif

static void transform_any(emit_winograd_weights *t, int64_t n, int64_t to_plane, float *to) {
  transform(t, n, to_plane, to);
}

typedef void transform_fn(emit_winograd_weights *t, int64_t n, int64_t to_plane, float *to);

static transform_fn *best_transform(void) {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx512f") ? transform_avx512
         : __builtin_cpu_supports("avx")   ? transform_avx
                                           : transform_any;
#else
  return transform_any;
#endif
}

void emit_winograd_transform_weights(emit_winograd_weights *t, int64_t n, const void *w, int64_t stride,
                                     int64_t to_plane, float *to) {
  for (int64_t k = 0; k < t->p->r[0] * t->p->r[1]; k++) {
    for (int64_t j = 0; j < n; j++) {
      t->taps[k][j] = (double)weight(w, j * stride + k);
    }
  }
  best_transform()(t, n, to_plane, to);
}

/* Packs the weights as W[panels][channels][taps][panel], with zeros after the last output. */
static void pack_on_the_fly(const emit_winograd *p, const void *w, float *packed) {
  int64_t taps = p->r[0] * p->r[1], panel = emit_winograd_panel(p);
  for (int64_t first = 0; first < p->outputs; first += panel) {
    int64_t n = p->outputs - first < panel ? p->outputs - first : panel;
    for (int64_t ct = 0; ct < p->channels * taps; ct++, packed += panel) {
      for (int64_t j = 0; j < panel; j++) {
        packed[j] = j < n ? weight(w, (first + j) * p->channels * taps + ct) : 0;
      }
    }
  }
}

void emit_winograd_pack(const emit_winograd *p, const void *w, float *packed) {
  if (p->on_the_fly) {
    pack_on_the_fly(p, w, packed);
    return;
  }
  int64_t taps = p->r[0] * p->r[1], panel = emit_winograd_panel(p),
          plane = emit_winograd_panels(p) * panel * p->channels;
  emit_winograd_weights t;
  emit_winograd_weights_init(&t, p);
  if (p->outputs % panel) {
    memset(packed, 0, emit_winograd_packed_bytes(p));
  }
  for (int64_t k = 0; k < p->outputs; k += panel) {
    int64_t n = p->outputs - k < panel ? p->outputs - k : panel;
    for (int64_t c = 0; c < p->channels; c++) {
      emit_winograd_transform_weights(&t, n, (const char *)w + (size_t)((k * p->channels + c) * taps) * sizeof(float),
                                      p->channels * taps, plane, packed + (k * p->channels + c * panel));
    }
  }
}
