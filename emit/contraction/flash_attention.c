/* flash_attention.c - where the operands of flash_attention.h's kernel lie in memory, and the sizes of its tiles. */
#include "emit/contraction/flash_attention.h"

#include <string.h>

#include "base/arith.h"
#include "emit/contraction/attention.h"
#include "emit/contraction/flash_attention_internal.h"
#include "emit/product/gemm.h"
#include "emit/element/view.h"

enum {
  TILE_ROWS = 48,        /* the largest number of rows of a tile, which share a copy of a block of keys */
  TILE_ELEMENTS = 8192,  /* the rows of q, and those of the result, take at most 32 KB of stack each */
  BLOCK_ROWS = 12,       /* the most rows of a register block */
  PANEL_ELEMENTS = 8192, /* the copy of a block of k takes about 32 KB of stack, up to 64 KB for wide heads */
  WIDEST = 512,          /* a limit for the sizes of a head, so that all memory fits on a small stack */
};

static dim_table *dims_of(const hlo_attention *a) { return a->pv->parent->module->dims; }

/* --- layout --- */

/* Extends a matrix by an inner dimension of n elements that are `step` apart: each of its *count rows (or columns),
 * which are *distance apart, becomes n rows (or columns).  Returns false if the rows (or columns) would then not be
 * evenly spaced. */
static bool add_dim(dim_table *t, dim n, dim step, dim *count, dim *distance) {
  bool merges = *distance == dim_mul(t, n, step);
  if (n == 1) {
    return true;
  }
  if (*count != 1 && !merges) {
    return false;
  }
  *distance = step;
  *count = dim_mul(t, *count, n);
  return true;
}

static bool is_listed(const hlo_attr *list, int d) {
  for (uint32_t k = 0; k < list->n; k++) {
    if (list->ints[k] == d) {
      return true;
    }
  }
  return false;
}

/* Sets the matrices of an array with these strides.  Its dimensions in `batch` count the matrices.  If by_rows, its
 * dimensions in `contracted` are the rows and all others the columns; otherwise the dimensions in `contracted` are the
 * columns.  Returns false if rows or columns are not evenly spaced. */
static bool set_matrices(dim_table *t, const shape *s, const dim *strides, const hlo_attr *batch,
                         const hlo_attr *contracted, bool by_rows, emit_flash_matrix *m) {
  m->rows = m->columns = m->row_step = m->column_step = 1;
  m->n_batch = (int)batch->n;
  for (int k = 0; k < m->n_batch; k++) {
    m->batch[k] = s->dims[batch->ints[k]];
    m->batch_step[k] = strides[batch->ints[k]];
  }
  bool fits = true;
  for (int d = 0; d < s->rank; d++) {
    if (!is_listed(batch, d)) {
      bool row = is_listed(contracted, d) == by_rows;
      fits = fits &&
             add_dim(t, s->dims[d], strides[d], row ? &m->rows : &m->columns, row ? &m->row_step : &m->column_step);
    }
  }
  return fits;
}

/* Returns true if v is a reshape whose operand has the same dimensions as v after the first n of v, so that it only
 * merges or divides those n.  The operand of the reshape can then be read in place of v. */
static bool merges_first(hlo_value v, int n) {
  if (v.def->op != HLO_RESHAPE) {
    return false;
  }
  const shape *to = hlo_shape(v), *from = hlo_shape(v.def->operands[0]);
  int rest = to->rank - n;
  bool same = from->rank >= rest;
  for (int d = 1; same && d <= rest; d++) {
    same = from->dims[from->rank - d] == to->dims[to->rank - d];
  }
  return same;
}

/* Sets the matrices of the dot's operand v, which is a view of `base`.  If a reshape has merged the batches of v from
 * dimensions that have no common stride, as those of grouped heads, the matrices are counted over these dimensions. */
static bool find_operand(hlo_value v, hlo_value base, const hlo_attr *batch, const hlo_attr *contracted, bool by_rows,
                         emit_flash_matrix *m) {
  emit_view view;
  int64_t numbers[SHAPE_MAX_RANK], moved[SHAPE_MAX_RANK];
  hlo_attr all = *batch, sums = *contracted;
  bool first = true;
  for (uint32_t k = 0; k < batch->n; k++) {
    first = first && batch->ints[k] == k;
  }
  while (!emit_view_of(v, base, &view)) {
    if (!first || hlo_value_equal(v, base) || !merges_first(v, (int)all.n)) {
      return false;
    }
    int more = hlo_rank(v.def->operands[0]) - hlo_rank(v);
    for (uint32_t k = 0; k < sums.n; k++) {
      moved[k] = sums.ints[k] + more;
    }
    sums.ints = moved;
    all = (hlo_attr){.n = (uint32_t)((int)all.n + more), .ints = numbers};
    for (uint32_t k = 0; k < all.n; k++) {
      numbers[k] = k;
    }
    v = v.def->operands[0];
  }
  m->offset = view.offset;
  return set_matrices(v.def->parent->module->dims, hlo_shape(v), view.strides, &all, &sums, by_rows, m);
}

/* Sets the matrices of the result: the dimensions of pv are the batches, the queries, and the columns of v. */
static bool find_result(const hlo_attention *a, emit_flash_matrix *m) {
  const shape *s = &a->pv->shapes[0], *v = hlo_shape(a->pv->operands[1]);
  dim root[SHAPE_MAX_RANK], strides[SHAPE_MAX_RANK];
  int64_t numbers[SHAPE_MAX_RANK];
  uint32_t n_batch = hlo_n_ints(a->pv, HLO_ATTR_RHS_BATCH);
  int n_columns = v->rank - (int)n_batch - (int)hlo_n_ints(a->pv, HLO_ATTR_RHS_CONTRACT);
  shape_dim_strides(dims_of(a), &a->root->shapes[0], root);
  for (int d = 0; d < s->rank; d++) {
    strides[a->root == a->pv ? d : hlo_ints(a->root, HLO_ATTR_PERMUTATION)[d]] = root[d];
    numbers[d] = d;
  }
  hlo_attr batch = {.n = n_batch, .ints = numbers};
  hlo_attr columns = {.n = (uint32_t)n_columns, .ints = numbers + s->rank - n_columns};
  return set_matrices(dims_of(a), s, strides, &batch, &columns, false, m);
}

static bool find_layout(const hlo_attention *a, emit_flash_attention *c) {
  const hlo_instr *qk = a->qk, *pv = a->pv;
  return find_operand(qk->operands[0], a->q, hlo_attr_of(qk, HLO_ATTR_LHS_BATCH),
                      hlo_attr_of(qk, HLO_ATTR_LHS_CONTRACT), false, &c->q) &&
         find_operand(qk->operands[1], a->k, hlo_attr_of(qk, HLO_ATTR_RHS_BATCH),
                      hlo_attr_of(qk, HLO_ATTR_RHS_CONTRACT), false, &c->k) &&
         find_operand(pv->operands[1], a->v, hlo_attr_of(pv, HLO_ATTR_RHS_BATCH),
                      hlo_attr_of(pv, HLO_ATTR_RHS_CONTRACT), true, &c->v) &&
         find_result(a, &c->out);
}

/* Returns true if the matrices have the sizes of the attention, and heads of constant size whose elements are
 * contiguous where the kernel needs that. */
static bool fits(const emit_flash_attention *c) {
  bool sizes = c->q.rows == c->queries && c->k.rows == c->keys && c->v.rows == c->keys && c->out.rows == c->queries &&
               c->q.columns == c->k.columns && c->v.columns == c->out.columns;
  return sizes && dim_is_const(c->q.columns) && dim_is_const(c->v.columns) && c->q.columns <= WIDEST &&
         c->v.columns <= WIDEST && c->q.columns > 0 && c->v.columns > 0 && c->q.column_step == 1 &&
         c->v.column_step == 1 && c->out.column_step == 1;
}

/* --- sizes of tiles and blocks --- */

static int64_t largest_power(int64_t n, int64_t most) {
  int64_t power = 1;
  while (power * 2 <= n && power * 2 <= most) {
    power *= 2;
  }
  return power;
}

/* Returns the width of the widest vectors, of at most `most` lanes, that divide rows of n elements. */
static int64_t dividing_lanes(int64_t n, int64_t most) { return largest_power(n & -n, most); }

int64_t emit_flash_rows(const emit_target *t) {
  return max_i64(min_i64((t->registers - EMIT_FLASH_VECTORS - 1) / EMIT_FLASH_VECTORS, BLOCK_ROWS), 1);
}

static bool choose(emit_flash_attention *c, const emit_target *t) {
  c->lanes = emit_gemm_lanes(t, DTYPE_F32);
  c->v_lanes = dividing_lanes(c->width, c->lanes);
  c->k_lanes = c->k.column_step == 1 ? dividing_lanes(c->sums, c->lanes) : 0;
  int64_t wide = min_i64(c->lanes, 4);
  c->k_lanes = c->k_lanes < wide ? 0 : c->k_lanes;
  c->block_vectors = EMIT_FLASH_VECTORS;
  c->block_rows = emit_flash_rows(t);
  c->v_vectors = min_i64(c->width / c->v_lanes, EMIT_FLASH_VECTORS);
  int64_t rows = min_i64(TILE_ROWS, TILE_ELEMENTS / max_i64(c->sums, c->width));
  c->tile_rows = max_i64(rows / c->block_rows, 1) * c->block_rows;
  int64_t least = c->lanes * EMIT_FLASH_VECTORS;
  c->tile_keys = max_i64(largest_power(PANEL_ELEMENTS / c->sums, 256) / least, 1) * least;
  return c->v_lanes >= wide;
}

bool emit_flash_attention_of(const hlo_attention *a, const emit_target *t, emit_flash_attention *out) {
  memset(out, 0, sizeof *out);
  out->batches = a->batches;
  out->queries = a->rows;
  out->keys = a->keys;
  if (t->stack < EMIT_ATTENTION_STACK || emit_attention_is_static(a) || a->total_sees_max ||
      !emit_attention_is_f32(a) || !find_layout(a, out) || !fits(out)) {
    return false;
  }
  out->sums = out->q.columns;
  out->width = out->v.columns;
  return choose(out, t);
}
