/* attention.c - the plan of attention.h's kernels: where the operands lie in memory, and the sizes of tiles and
 * blocks. */
#include "emit/contraction/attention.h"

#include <string.h>

#include "base/arith.h"
#include "emit/product/gemm.h"
#include "emit/element/view.h"

enum {
  LEAST_ROWS = 8, /* the fewest rows of q: with fewer rows, reading k and v takes most of the time, and packing k means
                     reading it twice */
  TILE_ELEMENTS = 8192, /* a tile's scores take at most 32 KB of stack */
  WIDEST = 1024, /* a limit for the sizes of a head (the columns of q and k, and those of v), so that a step of the grid
                    is short: a run can be cancelled only between steps */
};

/* --- layout of the operands --- */

/* Sets c->out and c->out_row to the strides that the dimensions of the product pv have in the fusion's result. */
static bool find_result(const hlo_attention *a, emit_attention *c) {
  const shape *s = &a->pv->shapes[0], *v = hlo_shape(a->pv->operands[1]);
  int64_t root[SHAPE_MAX_RANK], strides[SHAPE_MAX_RANK];
  uint32_t n_batch = hlo_n_ints(a->pv, HLO_ATTR_RHS_BATCH);
  int n_columns = v->rank - (int)n_batch - (int)hlo_n_ints(a->pv, HLO_ATTR_RHS_CONTRACT);
  shape_strides(&a->root->shapes[0], root);
  for (int d = 0; d < s->rank; d++) {
    strides[a->root == a->pv ? d : hlo_ints(a->root, HLO_ATTR_PERMUTATION)[d]] = root[d];
  }
  int64_t n_rows = 0, n_wide = 0;
  emit_level rows[EMIT_PRODUCT_LEVELS], columns[EMIT_PRODUCT_LEVELS];
  for (int d = 0; d < s->rank; d++) {
    emit_level l = {s->dims[d], strides[d], 0};
    bool is_batch = d < (int)n_batch, is_column = d >= s->rank - n_columns;
    int64_t *n = is_batch ? &c->n_out : is_column ? &n_wide : &n_rows;
    if (!emit_add_level(NULL, n, is_batch ? c->out : is_column ? columns : rows, l, false)) {
      return false;
    }
  }
  c->out_row = n_rows ? rows[0].a : 0;
  return n_rows <= 1 && (n_wide == 0 || (n_wide == 1 && columns[0].a == 1));
}

static bool find_operands(const hlo_attention *a, emit_attention *c) {
  emit_view q, k, v;
  int64_t p[SHAPE_MAX_RANK];
  shape_strides(hlo_shape(a->pv->operands[0]), p);
  if (!emit_view_of(a->qk->operands[0], a->q, &q) || !emit_view_of(a->qk->operands[1], a->k, &k) ||
      !emit_view_of(a->pv->operands[1], a->v, &v) || !emit_product_of_dot(a->qk, q.strides, k.strides, &c->qk) ||
      !emit_product_of_dot(a->pv, p, v.strides, &c->pv)) {
    return false;
  }
  c->q_at = q.offset;
  c->k_at = k.offset;
  c->v_at = v.offset;
  return c->qk.n_rows <= 1 && c->qk.n_sums <= 1 && c->pv.n_sums == 1 && c->pv.b_column == 1;
}

bool emit_attention_is_f32(const hlo_attention *a) {
  const hlo_value all[] = {a->qk->operands[0],   a->qk->operands[1], a->pv->operands[1],
                           hlo_result(a->qk, 0), a->scores,          hlo_result(a->exp, 0),
                           hlo_result(a->pv, 0), a->shift,           a->total};
  for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
    if (hlo_type(all[k]) != DTYPE_F32) {
      return false;
    }
  }
  return true;
}

bool emit_attention_is_static(const hlo_attention *a) {
  bool all = true;
  for (uint32_t k = 0; k < a->n; k++) {
    const hlo_instr *i = a->members[k];
    all = all && shape_is_static(&i->shapes[0]);
    for (uint32_t j = 0; j < i->n_operands; j++) {
      all = all && shape_is_static(hlo_shape(i->operands[j])) && i->operands[j].def->op != HLO_SIZES;
    }
  }
  return all;
}

/* --- sizes of tiles and blocks --- */

/* Chooses tiles that are one or two register blocks high.  As few rows as possible should be computed twice (the last
 * tile overlaps the tile before it), and register blocks should be high, since a higher block loads less for each
 * multiplication. */
static void cut_rows(emit_attention *c) {
  int64_t most = min_i64(TILE_ELEMENTS / c->stride, c->rows);
  double least = 0;
  for (int64_t rows = min_i64(c->qk.tile_rows, most); rows >= 1; rows--) {
    for (int64_t blocks = 2; blocks >= 1; blocks--) {
      int64_t tile = blocks * rows;
      double cost = (double)(ceil_div(c->rows, tile) * tile) * (1 + 0.5 / (double)rows);
      if (tile <= most && (!c->tile_rows || cost < least)) {
        c->tile_rows = tile;
        c->qk_rows = rows;
        least = cost;
      }
    }
  }
}

static int largest_power(int64_t n, int most) {
  int power = 1;
  while (power * 2 <= n && power * 2 <= most) {
    power *= 2;
  }
  return power;
}

static bool choose(emit_attention *c, const emit_target *t) {
  emit_product_options options = {.threads = 1, .cache_bytes = 1 << 18};
  emit_product_choose(NULL, &c->qk, t, &options);
  int lanes = emit_gemm_lanes(t, DTYPE_F32);
  c->stride = ceil_div(c->keys, c->qk.lanes) * c->qk.lanes;
  c->lanes = largest_power(c->keys, lanes);
  c->pv_lanes = largest_power(c->width & -c->width, lanes);
  if (c->stride > TILE_ELEMENTS || c->pv_lanes < min_i64(lanes, 4)) {
    return false;
  }
  cut_rows(c);
  c->qk_vectors = c->qk.tile_vectors;
  int64_t vectors = c->width / c->pv_lanes;
  emit_gemm_tile tile = emit_gemm_fit(t, DTYPE_F32, c->tile_rows, vectors * lanes, EMIT_GEMM_VECTORS);
  c->pv_vectors = tile.vectors;
  for (c->pv_rows = min_i64(tile.rows, c->tile_rows); c->tile_rows % c->pv_rows;) {
    c->pv_rows--;
  }
  return true;
}

bool emit_attention_of(const hlo_attention *a, const emit_target *t, emit_attention *out) {
  memset(out, 0, sizeof *out);
  out->batches = a->batches;
  out->rows = a->rows;
  out->keys = a->keys;
  if (t->stack < EMIT_ATTENTION_STACK || a->total_sees_max || !emit_attention_is_f32(a) ||
      !emit_attention_is_static(a) || a->rows < LEAST_ROWS || !find_operands(a, out) || !find_result(a, out)) {
    return false;
  }
  out->width = out->pv.columns;
  return out->width <= WIDEST && emit_product_sums(NULL, &out->qk) <= WIDEST && out->qk.columns == a->keys &&
         choose(out, t);
}

static bool packs(const emit_attention *c) { return c->qk.packing == EMIT_B_SCRATCH; }

uint32_t emit_attention_phases(const emit_attention *c) { return 1 + packs(c); }

uint64_t emit_attention_scratch(const emit_attention *c) {
  return packs(c) ? (uint64_t)emit_product_packed(NULL, &c->qk) * sizeof(float) : 0;
}
