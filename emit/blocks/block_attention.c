/* block_attention.c - which attention can be computed by blocks, and with tiles of which sizes; see block_attention.h.
 */
#include "emit/blocks/block_attention.h"

#include <math.h>

#include "base/arith.h"
#include "emit/blocks/block_attention_internal.h"
#include "emit/blocks/sum_parts.h"

enum {
  SHARED_BYTES = 48 << 10, /* what every GPU has for a block */
  WIDEST = 1024,           /* the largest head */
  MOST_PARTS = EMIT_ATTENTION_GROUPS,
  ENOUGH_BLOCKS = 64 /* for a GPU */
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

/* Returns true if all values are floats that are computed in the same type, and sets it. */
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

/* Wider vectors need fewer loads, but a width that they do not divide is padded. */
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
  enum { NUMBERS = 3, ALIGNED = 16 }; /* vectors of values are stored as a whole */
  return round_up(t->rows * n * (t->strips * t->strip + NUMBERS), ALIGNED);
}

/* k has a chunk and one vector more a row, so that neighbouring rows begin in different banks. */
static int64_t staged_elements(const emit_attention_tile *t) {
  int64_t k = t->keys * (t->chunk + EMIT_ATTENTION_SUMS), v = t->keys * t->strip;
  int64_t joined = t->c.parts > 1 ? emit_attention_left_elements(t, t->c.parts) : 0;
  return max_i64(max_i64(k, v), joined);
}

bool emit_attention_tile_of(const hlo_attention *a, const emit_block_attention *c, emit_attention_tile *t) {
  enum { CHUNK = 32 };
  dim sums = emit_attention_sums(a->qk), width = width_of(a);
  *t = (emit_attention_tile){.c = *c, .sums = sums, .width = width};
  if (!has_type(a, &t->type) || !dim_is_const(sums) || !dim_is_const(width) || sums < 1 || width < 1 || sums > WIDEST ||
      width > WIDEST) {
    return false;
  }
  t->rows = EMIT_ATTENTION_GROUPS / c->parts * c->rows;
  t->keys = c->parts * EMIT_ATTENTION_LANES * c->keys;
  t->chunk = sums % CHUNK == 0 || sums % CHUNK > CHUNK / 2 ? CHUNK : CHUNK / 2;
  t->padded = round_up(sums, t->chunk);
  t->vector = choose_vector(t);
  t->strip = EMIT_ATTENTION_LANES * t->vector;
  t->strips = round_up(width, t->strip) / t->strip;
  t->staged = staged_elements(t);
  t->left = c->splits > 1 ? emit_attention_left_elements(t, c->splits) : 0;
  int64_t weights = EMIT_ATTENTION_GROUPS * c->rows * EMIT_ATTENTION_LANES * c->keys;
  int64_t bytes = (t->rows * t->padded + weights + t->staged) * (int64_t)dtype_bytes(t->type);
  bytes += c->splits > 1 ? (int64_t)sizeof(int32_t) : 0; /* emit_is_last_block */
  return c->rows * t->strips * t->vector <= EMIT_ATTENTION_VALUES && bytes <= SHARED_BYTES;
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

/* Few rows leave groups for parts of the keys, if there are so many. */
static int64_t choose_parts(double rows, double keys) {
  int64_t parts = 1;
  while (parts < MOST_PARTS && rows * (double)(parts * 2) <= EMIT_ATTENTION_GROUPS &&
         keys >= (double)(parts * EMIT_ATTENTION_LANES)) {
    parts *= 2;
  }
  return parts;
}

/* Each block gets at least one tile of keys.  Storing and joining sums takes about as long as a few tiles, which is an
 * estimate that was not measured: these are not shared. */
static int64_t choose_splits(const hlo_attention *a, const emit_block_attention *c) {
  enum { FEW_TILES = 4 };
  emit_attention_tile t;
  int64_t splits = 1;
  if (!emit_attention_tile_of(a, c, &t)) {
    return splits;
  }
  double blocks = emit_likely_size(dims_of(a), tiles_of(a, &t));
  double tiles = emit_likely_size(dims_of(a), a->keys) / (double)t.keys;
  while (tiles >= FEW_TILES && 2 * splits <= EMIT_MOST_PARTS && blocks * (double)splits < ENOUGH_BLOCKS &&
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
  emit_block_attention c = {.rows = 1, .parts = choose_parts(rows, keys), .splits = 1};
  for (int64_t r = EMIT_ATTENTION_ROWS; c.parts == 1 && c.rows == 1 && r > 1; r /= 2) {
    emit_block_attention more = {r, 1, 1, 1};
    bool enough = batches * ceil(rows / (double)(EMIT_ATTENTION_GROUPS * r)) >= ENOUGH_BLOCKS;
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
