/* block_attention.c - which attention can be computed by blocks, and with tiles of which sizes; see block_attention.h.
 */
#include "emit/blocks/block_attention.h"

#include <math.h>

#include "base/arith.h"
#include "emit/blocks/block_attention_internal.h"
#include "emit/blocks/sum_parts.h"
#include "emit/kernel/block.h"
#include "hlo/analysis/queries.h"

enum {
  SHARED_BYTES = 48 << 10, /* the shared memory that every GPU has for a block */
  WIDEST = 1024,           /* the largest head */
  MOST_PARTS = EMIT_ATTENTION_GROUPS
};

static dim_table *dims_of(const hlo_attention *a) { return a->pv->parent->module->dims; }

dim emit_attention_sums(const hlo_instr *dot) {
  const shape *s = hlo_shape(dot->operands[0]);
  dim n = 1;
  for (uint32_t k = 0; k < hlo_n_ints(dot, HLO_ATTR_LHS_CONTRACT); k++) {
    n = dim_mul(dot->parent->module->dims, n, s->dims[hlo_ints(dot, HLO_ATTR_LHS_CONTRACT)[k]]);
  }
  return n;
}

/* Returns the number of columns of v: the product of the dimensions of pv that are neither batches nor rows. */
static dim width_of(const hlo_attention *a) {
  const shape *v = hlo_shape(a->pv->operands[1]);
  int n = v->rank - (int)hlo_n_ints(a->pv, HLO_ATTR_RHS_BATCH) - (int)hlo_n_ints(a->pv, HLO_ATTR_RHS_CONTRACT);
  const shape *s = &a->pv->shapes[0];
  return shape_dim_product(dims_of(a), s, s->rank - n, s->rank);
}

/* Returns true if all values are floats that are computed in the same type, and sets *out to that type. */
static bool has_type(const hlo_attention *a, dtype *out) {
  const dtype types[] = {hlo_type(hlo_result(a->qk, 0)),
                         hlo_type(a->scores),
                         hlo_type(hlo_result(a->max, 0)),
                         hlo_type(a->shift),
                         hlo_type(hlo_result(a->exp, 0)),
                         hlo_type(hlo_result(a->sum, 0)),
                         hlo_type(a->total),
                         hlo_type(hlo_result(a->pv, 0))};
  *out = emit_compute_type(types[0]);
  bool same = *out == DTYPE_F32 || *out == DTYPE_F64;
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    same = same && emit_compute_type(types[k]) == *out;
  }
  return same;
}

/* Returns how many columns of v a thread has as a vector.  Wider vectors need fewer loads.  But they may pad the width
 * of v by at most a quarter, and the columns that are in shared memory at a time may take at most MOST_STAGED bytes. */
static int64_t choose_vector(const emit_attention_tile *t) {
  enum { WIDEST_VECTOR = 4, MOST_STAGED = 32 << 10 };
  int64_t v = WIDEST_VECTOR, lanes = EMIT_ATTENTION_LANES;
  while (v > 1 && (round_up(t->width, lanes * v) * 4 > t->width * 5 ||
                   t->keys * lanes * v * (int64_t)dtype_bytes(t->type) > MOST_STAGED)) {
    v /= 2;
  }
  return v;
}

int64_t emit_attention_left_elements(const emit_attention_tile *t, int64_t n) {
  enum { NUMBERS = 3 };
  /* Where values are stored as vectors, t->rows * n is a multiple of 16, so the next tile's are aligned, too. */
  return t->rows * n * (t->strips * t->strip + NUMBERS);
}

/* Returns the elements of shared memory for a part of k or v, or for the sums that are joined in the end.  A row of k
 * has a chunk and one vector more, so that neighbouring rows begin in different banks. */
static int64_t staged_elements(const emit_attention_tile *t) {
  int64_t k = t->keys * (t->chunk + EMIT_ATTENTION_SUMS), v = t->keys * t->strip;
  int64_t joined = t->c.parts > 1 ? emit_attention_left_elements(t, t->c.parts) : 0;
  return max_i64(max_i64(k, v), joined);
}

/* Sets the sizes of a tile that groups of threads compute; t has the config, the type and the sizes of a head.  Returns
 * false if a thread would need too many registers, or a block too much shared memory. */
static bool group_tile_of(emit_attention_tile *t) {
  enum { CHUNK = 32 };
  const emit_block_attention *c = &t->c;
  t->threads = EMIT_ATTENTION_THREADS;
  t->lanes = EMIT_ATTENTION_LANES;
  t->row_step = EMIT_ATTENTION_GROUPS / c->parts; /* the number of groups that have different rows */
  t->rows = t->row_step * c->rows;
  t->keys = c->parts * EMIT_ATTENTION_LANES * c->keys;
  t->chunk = t->sums % CHUNK == 0 || t->sums % CHUNK > CHUNK / 2 ? CHUNK : CHUNK / 2;
  t->padded = round_up(t->sums, t->chunk);
  t->vector = choose_vector(t);
  t->strip = EMIT_ATTENTION_LANES * t->vector;
  t->strips = round_up(t->width, t->strip) / t->strip;
  t->staged = staged_elements(t);
  int64_t weights = EMIT_ATTENTION_GROUPS * c->rows * EMIT_ATTENTION_LANES * c->keys;
  int64_t bytes = (t->rows * t->padded + weights + t->staged) * (int64_t)dtype_bytes(t->type);
  bytes += c->splits > 1 ? (int64_t)sizeof(int32_t) : 0; /* for emit_is_last_block */
  return c->rows * t->strips * t->vector <= EMIT_ATTENTION_VALUES && bytes <= SHARED_BYTES;
}

/* Returns the most keys of a lane, or 0 if heads are too wide: the more registers the rows of q and the sums take, the
 * fewer are left for scores. */
static int64_t most_mma_keys(const emit_attention_tile *t) {
  int64_t widest = max_i64(t->sums, t->width);
  return widest <= 64 ? EMIT_ATTENTION_MMA_KEYS : widest <= 128 ? EMIT_ATTENTION_MMA_KEYS / 2 : 0;
}

/* Sets the sizes of a tile that warps compute, each of them 16 rows.  Heads are padded so that all threads bring
 * equally many chunks of 8 factors of the tile's keys.  Returns false if that takes too many registers, or sums are not
 * f32. */
static bool mma_tile_of(const hlo_attention *a, emit_attention_tile *t) {
  enum { WARPS = 4, LANES = EMIT_ATTENTION_MMA_LANES, PAIR = 2, CHUNK = 8 };
  t->threads = WARPS * EMIT_WARP;
  t->lanes = LANES;
  t->row_step = EMIT_MMA_ROWS / 2;
  t->rows = WARPS * EMIT_MMA_ROWS;
  t->keys = LANES * t->c.keys;
  /* the number of columns of a head of which each thread brings one chunk */
  int64_t factors = t->threads * CHUNK / t->keys;
  t->chunk = t->padded = round_up(t->sums, factors);
  t->vector = PAIR;
  t->strip = EMIT_MMA_COLUMNS;
  t->strips = round_up(t->width, factors) / t->strip;
  t->factors = hlo_type(a->qk->operands[1]);
  return t->type == DTYPE_F32 && t->c.keys <= most_mma_keys(t);
}

bool emit_attention_tile_of(const hlo_attention *a, const emit_block_attention *c, emit_attention_tile *t) {
  dim sums = emit_attention_sums(a->qk), width = width_of(a);
  *t = (emit_attention_tile){.c = *c, .sums = sums, .width = width};
  if (!has_type(a, &t->type) || !dim_is_const(sums) || !dim_is_const(width) || sums < 1 || width < 1 || sums > WIDEST ||
      width > WIDEST || !(c->mma ? mma_tile_of(a, t) : group_tile_of(t))) {
    return false;
  }
  t->left = c->splits > 1 ? emit_attention_left_elements(t, c->splits) : 0;
  return true;
}

bool emit_block_attention_fits(const hlo_attention *a, const emit_block_attention *c) {
  emit_attention_tile t;
  return emit_attention_tile_of(a, c, &t);
}

static dim tiles_of(const hlo_attention *a, const emit_attention_tile *t) {
  return dim_mul(dims_of(a), a->batches, dim_ceildiv(dims_of(a), a->rows, t->rows));
}

dim emit_block_attention_scratch(const hlo_attention *a, const emit_block_attention *c) {
  emit_attention_tile t;
  bool divides = emit_attention_tile_of(a, c, &t) && c->splits > 1;
  return divides ? dim_mul(dims_of(a), tiles_of(a, &t), t.left * (int64_t)dtype_bytes(t.type)) : 0;
}

dim emit_block_attention_counters(const hlo_attention *a, const emit_block_attention *c) {
  emit_attention_tile t;
  return emit_attention_tile_of(a, c, &t) && c->splits > 1 ? tiles_of(a, &t) : 0;
}

/* Returns into how many parts groups divide the keys.  With few rows, several groups can share the keys of a row, if
 * there are enough keys. */
static int64_t choose_parts(double rows, double keys) {
  int64_t parts = 1;
  while (parts < MOST_PARTS && rows * (double)(parts * 2) <= EMIT_ATTENTION_GROUPS &&
         keys >= (double)(parts * EMIT_ATTENTION_LANES)) {
    parts *= 2;
  }
  return parts;
}

/* Returns how many blocks share the keys of the same rows.  Each gets at least one tile of keys.  Fewer than FEW_TILES
 * tiles are not shared, since storing and joining the sums takes about as long (an estimate, which was not
 * measured). */
static int64_t choose_splits(const hlo_attention *a, const emit_block_attention *c) {
  enum { FEW_TILES = 4 };
  emit_attention_tile t;
  int64_t splits = 1;
  if (!emit_attention_tile_of(a, c, &t)) {
    return splits;
  }
  double blocks = emit_likely_size(dims_of(a), tiles_of(a, &t));
  double tiles = emit_likely_size(dims_of(a), a->keys) / (double)t.keys;
  while (tiles >= FEW_TILES && 2 * splits <= EMIT_MOST_PARTS && blocks * (double)splits < EMIT_ENOUGH_BLOCKS &&
         tiles >= (double)(2 * splits)) {
    splits *= 2;
  }
  return splits;
}

bool emit_choose_block_attention(const hlo_attention *a, bool divides, emit_block_attention *out) {
  enum { MANY_PARTS = 8 };
  const dim_table *t = dims_of(a);
  double rows = emit_likely_size(t, a->rows), keys = emit_likely_size(t, a->keys);
  double batches = emit_likely_size(t, a->batches);
  emit_block_attention c = {.rows = 1, .parts = choose_parts(rows, keys), .splits = 1, .mma = 0};
  for (int64_t r = EMIT_ATTENTION_ROWS; c.parts == 1 && c.rows == 1 && r > 1; r /= 2) {
    emit_block_attention more = {r, 1, 1, 1, 0};
    bool enough = batches * ceil(rows / (double)(EMIT_ATTENTION_GROUPS * r)) >= EMIT_ENOUGH_BLOCKS;
    c.rows = enough && emit_block_attention_fits(a, &more) ? r : 1;
  }
  c.keys = c.parts >= MANY_PARTS ? 1 : c.parts > 1 || c.rows == EMIT_ATTENTION_ROWS ? 2 : EMIT_ATTENTION_KEYS;
  while (c.keys > 1 && !emit_block_attention_fits(a, &c)) {
    c.keys /= 2;
  }
  while (c.parts > 1 && !emit_block_attention_fits(a, &c)) {
    c.parts /= 2;
  }
  c.splits = divides ? choose_splits(a, &c) : 1;
  c.splits = emit_block_attention_fits(a, &c) ? c.splits : 1;
  *out = c;
  return emit_block_attention_fits(a, &c);
}

bool emit_takes_mma_attention(const emit_target *t, const hlo_attention *a) {
  dtype q = hlo_type(a->qk->operands[0]), k = hlo_type(a->qk->operands[1]);
  dtype p = hlo_type(a->pv->operands[0]), v = hlo_type(a->pv->operands[1]);
  /* exponentials are rounded before they are divided by their sum, and in f16 only those up to 65504 are finite */
  bool fits = q == DTYPE_BF16 || (q == DTYPE_F16 && hlo_shifts_by_maximum(a));
  return fits && q == k && q == p && q == v && emit_has_mma(t, q, k);
}

bool emit_choose_mma_attention(const emit_target *t, const hlo_attention *a, bool divides, emit_block_attention *out) {
  enum { FEW_ROWS = EMIT_MMA_ROWS };
  *out = (emit_block_attention){EMIT_ATTENTION_MMA_ROWS, EMIT_ATTENTION_MMA_KEYS, .parts = 1, .splits = 1, .mma = 1};
  out->keys /= emit_block_attention_fits(a, out) ? 1 : 2;
  if (!emit_takes_mma_attention(t, a) || !emit_block_attention_fits(a, out) ||
      emit_likely_size(dims_of(a), a->rows) < FEW_ROWS) {
    return false;
  }
  out->splits = divides ? choose_splits(a, out) : 1;
  return true;
}
