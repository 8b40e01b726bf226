/* attention_kernel.c - the kernels of attention.h.  One packs k as panels.  The other computes, tile by tile, the
 * scores, their softmax and its product with v. */
#include <math.h>

#include "base/arith.h"
#include "emit/contraction/attention.h"
#include "emit/llvm/arithmetic.h"
#include "emit/contraction/attention_internal.h"
#include "emit/product/gemm.h"
#include "emit/kernel/module.h"
#include "emit/product/product_internal.h"

typedef struct kernel {
  emit_writer w;
  const emit_attention *c;
  hlo_attention a;
  LLVMValueRef tile, inverses; /* `tile` holds the scores of some rows, and later their exponentials; `inverses`
                                  holds for each row the number that is subtracted from its scores before the
                                  exponential (hlo_attention's shift), and later 1 / the sum of its exponentials */
  LLVMValueRef q, k, v, out;   /* addresses for this step: of the tile's first row in q and in the result, and of the
                                  first element of the batch in k and v */
  LLVMValueRef row;            /* the number of the tile's first row, counted over all batches */
} kernel;

/* --- products of a tile --- */

/* A product C = A B for the rows of a tile, which is computed in blocks of `rows` rows by at most `vectors` vectors of
 * columns. */
typedef struct product {
  int64_t rows, vectors, lanes, n_vectors, sums;
  LLVMValueRef a, b;
  int64_t a_row, a_k, b_k, b_vector;
  /* Called with the sums of each register block when they are complete; the block's first element is C[row][column]. */
  void (*take)(const kernel *k, const emit_gemm *g, LLVMValueRef row, LLVMValueRef column, const LLVMValueRef *sums);
} product;

static void write_block(const kernel *k, const product *p, int64_t vectors, LLVMValueRef row, LLVMValueRef vector) {
  const emit_ir *w = k->w.e.w;
  LLVMValueRef sums[EMIT_GEMM_SUMS];
  emit_gemm g = {.tile = {(int)p->rows, (int)vectors, (int)p->lanes},
                 .type = DTYPE_F32,
                 .a_row = p->a_row,
                 .a_k = p->a_k,
                 .b_k = p->b_k,
                 .b_vector = p->b_vector,
                 .k = emit_i64(w, p->sums)};
  g.a = emit_f32_at(w, p->a, emit_times(w, row, p->a_row));
  g.b = emit_f32_at(w, p->b, emit_times(w, vector, p->b_vector));
  emit_gemm_zero(w, &g, sums);
  emit_gemm_block(w, &g, sums);
  p->take(k, &g, row, emit_times(w, vector, p->lanes), sums);
}

/* Writes a loop over n column blocks of `vectors` vectors each, beginning with block number `first`.  Inside of it is a
 * loop over all rows of the tile. */
static void write_columns(const kernel *k, const product *p, int64_t n, int64_t vectors, int64_t first) {
  const emit_ir *w = k->w.e.w;
  emit_loop columns, rows;
  if (!n) {
    return;
  }
  emit_loop_begin(w, &columns, emit_i64(w, first), emit_i64(w, first + n * vectors), vectors, true, 0, NULL);
  emit_loop_begin(w, &rows, emit_i64(w, 0), emit_i64(w, k->c->tile_rows), p->rows, true, 0, NULL);
  write_block(k, p, vectors, rows.iv, columns.iv);
  emit_loop_end(w, &rows, NULL);
  emit_loop_end(w, &columns, NULL);
}

static void write_product(const kernel *k, const product *p) {
  emit_gemm_parts parts = emit_gemm_cut(p->n_vectors, (int)p->vectors);
  write_columns(k, p, parts.n_large, parts.large, 0);
  write_columns(k, p, parts.n_small, parts.large - 1, parts.n_large * parts.large);
}

/* --- scores --- */

static LLVMValueRef tile_at(const kernel *k, LLVMValueRef row, LLVMValueRef column) {
  const emit_ir *w = k->w.e.w;
  return emit_f32_at(w, k->tile, emit_add(w, emit_times(w, row, k->c->stride), column));
}

static void keep_scores(const kernel *k, const emit_gemm *g, LLVMValueRef row, LLVMValueRef column,
                        const LLVMValueRef *sums) {
  const emit_ir *w = k->w.e.w;
  LLVMValueRef first = tile_at(k, row, column);
  for (int r = 0; r < g->tile.rows; r++) {
    for (int v = 0; v < g->tile.vectors; v++) {
      emit_f32_store(w, sums[r * g->tile.vectors + v],
                     emit_f32_at(w, first, emit_i64(w, r * k->c->stride + v * g->tile.lanes)));
    }
  }
}

static void write_scores(const kernel *k) {
  const emit_product *qk = &k->c->qk;
  bool panels = qk->packing == EMIT_B_SCRATCH;
  int64_t sums = emit_product_sums(NULL, qk);
  emit_level one = {1, 0, 0}, level = qk->n_sums ? qk->sums[0] : one;
  product p = {.rows = k->c->qk_rows,
               .vectors = k->c->qk_vectors,
               .lanes = qk->lanes,
               .sums = sums,
               .a = k->q,
               .b = k->k,
               .a_row = qk->n_rows ? qk->rows[0].a : 0,
               .a_k = level.a,
               .b_k = panels ? qk->lanes : level.b,
               .b_vector = panels ? sums * qk->lanes : qk->lanes,
               .take = keep_scores};
  p.n_vectors = ceil_div(qk->columns, qk->lanes);
  write_product(k, &p);
}

/* --- softmax --- */

static const emit_index *place_of(kernel *k, LLVMValueRef row, LLVMValueRef column, int64_t multiple) {
  emit_element *e = &k->w.e;
  return emit_score_place(e, k->c->batches * k->c->rows, k->c->keys, emit_add(e->w, k->row, row), column, multiple);
}

/* Computes a vector of the softmax's operand from the dots in the tile: the elements of the row from `column` on. */
static LLVMValueRef score_at(kernel *k, LLVMValueRef row, LLVMValueRef column, int64_t multiple) {
  emit_element *e = &k->w.e;
  e->x.lanes = (int)k->c->lanes;
  LLVMValueRef raw = emit_f32_load(e->w, tile_at(k, row, column), e->x.lanes);
  LLVMValueRef x =
      emit_value_from(&k->w.e, k->a.scores, hlo_result(k->a.qk, 0), place_of(k, row, column, multiple), raw);
  e->x.lanes = 1;
  return x;
}

/* Returns the last `rest` lanes of x, filled up with -infinity.  x is the last vector of a row and overlaps the
 * vector before it in its other lanes. */
static LLVMValueRef new_lanes(const emit_ir *w, LLVMValueRef x, int lanes, int rest) {
  int from[256];
  for (int j = 0; j < lanes; j++) {
    from[j] = j < rest ? lanes - rest + j : lanes;
  }
  return emit_shuffle(w, x, emit_f(x, -INFINITY), from, lanes);
}

/* Replaces the dots of a row by the operands of the softmax, filled up with -infinity to whole vectors, and returns the
 * largest operand. */
static LLVMValueRef finish_scores(kernel *k, LLVMValueRef row) {
  emit_element *e = &k->w.e;
  const emit_ir *w = e->w;
  int lanes = (int)k->c->lanes, rest = (int)(k->c->keys % lanes);
  int64_t n = k->c->keys, whole = n - rest;
  LLVMValueRef last = NULL, most = emit_f_of(emit_vector_type(w->f32, lanes), -INFINITY);
  uint32_t mark = emit_table_mark(e->x.table);
  if (rest) { /* computed before the loop, since it reads elements that the loop overwrites */
    last = score_at(k, row, emit_i64(w, n - lanes), 1);
    last = lanes > 1 ? new_lanes(w, last, lanes, rest) : last;
    most = last;
    emit_table_release(e->x.table, mark);
  }
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), emit_i64(w, whole), lanes, true, 1, &most);
  LLVMValueRef x = score_at(k, row, l.iv, lanes);
  emit_f32_store(w, x, tile_at(k, row, l.iv));
  most = emit_larger(w, l.carried[0], x);
  emit_table_release(e->x.table, mark);
  emit_loop_end(w, &l, &most);
  if (last) {
    emit_f32_store(w, last, tile_at(k, row, emit_i64(w, whole)));
  }
  return emit_join_lanes(w, l.carried[0], lanes, emit_larger);
}

/* Replaces each element x of the row by e^(x - shift), and returns the sum of these exponentials. */
static LLVMValueRef raise(kernel *k, LLVMValueRef row, LLVMValueRef shift) {
  const emit_ir *w = k->w.e.w;
  int lanes = (int)k->c->lanes;
  LLVMValueRef all = LLVMConstNull(emit_vector_type(w->f32, lanes));
  shift = emit_splat(w, shift, lanes);
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), emit_i64(w, k->c->keys), lanes, true, 1, &all);
  LLVMValueRef to = tile_at(k, row, l.iv);
  LLVMValueRef x = emit_score_exponential(w, hlo_shifts_by_maximum(&k->a), emit_f32_load(w, to, lanes), shift);
  emit_f32_store(w, x, to);
  all = emit_sum(w, l.carried[0], x);
  emit_loop_end(w, &l, &all);
  return emit_join_lanes(w, l.carried[0], lanes, emit_sum);
}

/* Replaces the exponentials of a row by zeros if its total is NaN.  Returns the number by which the sums of the row are
 * multiplied at the end, which is 1 for such a row, and otherwise `inverse`. */
static LLVMValueRef clear_if_nan(kernel *k, LLVMValueRef row, LLVMValueRef total, LLVMValueRef inverse) {
  const emit_ir *w = k->w.e.w;
  int lanes = (int)k->c->lanes;
  LLVMValueRef is_nan = emit_fcmp(w, LLVMRealUNO, total, total);
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), emit_select(w, is_nan, emit_i64(w, k->c->keys), emit_i64(w, 0)), lanes, false,
                  0, NULL);
  emit_f32_store(w, LLVMConstNull(emit_vector_type(w->f32, lanes)), tile_at(k, row, l.iv));
  emit_loop_end(w, &l, NULL);
  return emit_select(w, is_nan, emit_f(inverse, 1), inverse);
}

/* Writes the softmax as two loops over the rows, so that the processor overlaps the work of several rows.  If there
 * were only one loop, each row would wait first for its maximum and then for its sum. */
static void write_softmax(kernel *k) {
  emit_element *e = &k->w.e;
  const emit_ir *w = e->w;
  uint32_t mark = emit_table_mark(e->x.table);
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), emit_i64(w, k->c->tile_rows), 1, true, 0, NULL);
  LLVMValueRef most = finish_scores(k, l.iv);
  LLVMValueRef shift = emit_value_from(&k->w.e, k->a.shift, hlo_result(k->a.max, 0), place_of(k, l.iv, NULL, 1), most);
  emit_f32_store(w, shift, emit_f32_at(w, k->inverses, l.iv));
  emit_table_release(e->x.table, mark);
  emit_loop_end(w, &l, NULL);
  emit_loop_begin(w, &l, emit_i64(w, 0), emit_i64(w, k->c->tile_rows), 1, true, 0, NULL);
  LLVMValueRef number = emit_f32_at(w, k->inverses, l.iv), all = raise(k, l.iv, emit_f32_load(w, number, 1));
  LLVMValueRef total = emit_value_from(&k->w.e, k->a.total, hlo_result(k->a.sum, 0), place_of(k, l.iv, NULL, 1), all);
  LLVMValueRef inverse = LLVMBuildFDiv(w->builder, emit_f(total, 1), total, "");
  emit_f32_store(w, k->a.zero_where_nan ? clear_if_nan(k, l.iv, total, inverse) : inverse, number);
  emit_table_release(e->x.table, mark);
  emit_loop_end(w, &l, NULL);
}

/* --- the product of the softmax with v --- */

static void store_result(const kernel *k, const emit_gemm *g, LLVMValueRef row, LLVMValueRef column,
                         const LLVMValueRef *sums) {
  const emit_ir *w = k->w.e.w;
  LLVMValueRef first = emit_f32_at(w, k->out, emit_add(w, emit_times(w, row, k->c->out_row), column)),
               inverses = emit_f32_at(w, k->inverses, row);
  for (int r = 0; r < g->tile.rows; r++) {
    LLVMValueRef inverse = emit_splat(w, emit_f32_load(w, emit_f32_at(w, inverses, emit_i64(w, r)), 1), g->tile.lanes);
    for (int v = 0; v < g->tile.vectors; v++) {
      LLVMValueRef x = LLVMBuildFMul(w->builder, sums[r * g->tile.vectors + v], inverse, "");
      emit_f32_store(w, x, emit_f32_at(w, first, emit_i64(w, r * k->c->out_row + v * g->tile.lanes)));
    }
  }
}

static void write_values(const kernel *k) {
  const emit_attention *c = k->c;
  product p = {.rows = c->pv_rows,
               .vectors = c->pv_vectors,
               .lanes = c->pv_lanes,
               .n_vectors = c->width / c->pv_lanes,
               .sums = c->keys,
               .a = k->tile,
               .b = k->v,
               .a_row = c->stride,
               .a_k = 1,
               .b_k = c->pv.sums[0].b,
               .b_vector = c->pv_lanes,
               .take = store_result};
  write_product(k, &p);
}

/* --- steps of the grid --- */

/* Returns the address of q, k or v, which are parameters of the fusion's body (hlo_attention_of_fusion). */
static LLVMValueRef operand(const kernel *k, hlo_value parameter) {
  return k->w.e.inputs[hlo_int(parameter.def, HLO_ATTR_INDEX)].base;
}

static LLVMValueRef scratch(const kernel *k) { return emit_writer_buffer(&k->w, k->w.e.n_inputs + k->w.n_results); }

static LLVMValueRef keys_of(const kernel *k, LLVMValueRef batch) {
  const emit_ir *w = k->w.e.w;
  const emit_product *qk = &k->c->qk;
  if (qk->packing == EMIT_B_SCRATCH) {
    return emit_f32_at(w, scratch(k), emit_times(w, batch, emit_product_packed(NULL, qk) / k->c->batches));
  }
  return emit_f32_at(
      w, operand(k, k->a.k),
      emit_add(w, emit_level_offset(&k->w.e.x, qk->n_batch, qk->batch, true, batch), emit_i64(w, k->c->k_at)));
}

/* Sets the addresses in k for step number `item` of the grid.  The last tile of a batch is moved back so that it ends
 * with the last row. */
static void begin_step(kernel *k, LLVMValueRef item) {
  const emit_ir *w = k->w.e.w;
  const emit_attention *c = k->c;
  LLVMValueRef tiles = emit_i64(w, ceil_div(c->rows, c->tile_rows));
  LLVMValueRef batch = LLVMBuildUDiv(w->builder, item, tiles, ""), tile = LLVMBuildURem(w->builder, item, tiles, "");
  LLVMValueRef row =
      emit_intrinsic2(w, "llvm.smin", emit_times(w, tile, c->tile_rows), emit_i64(w, c->rows - c->tile_rows));
  LLVMValueRef q = emit_level_offset(&k->w.e.x, c->qk.n_batch, c->qk.batch, false, batch);
  LLVMValueRef v = emit_level_offset(&k->w.e.x, c->pv.n_batch, c->pv.batch, true, batch);
  LLVMValueRef out = emit_level_offset(&k->w.e.x, c->n_out, c->out, false, batch);
  int64_t q_row = c->qk.n_rows ? c->qk.rows[0].a : 0;
  k->row = emit_add(w, emit_times(w, batch, c->rows), row);
  k->q =
      emit_f32_at(w, operand(k, k->a.q), emit_add(w, emit_add(w, q, emit_times(w, row, q_row)), emit_i64(w, c->q_at)));
  k->k = keys_of(k, batch);
  k->v = emit_f32_at(w, operand(k, k->a.v), emit_add(w, v, emit_i64(w, c->v_at)));
  k->out = emit_f32_at(w, k->w.results[0], emit_add(w, out, emit_times(w, row, c->out_row)));
}

static void write_tiles(kernel *k) {
  emit_ir *w = k->w.e.w;
  const emit_attention *c = k->c;
  k->tile = emit_row_memory(w, DTYPE_F32, c->tile_rows * c->stride);
  k->inverses = emit_row_memory(w, DTYPE_F32, c->tile_rows);
  emit_loop l;
  emit_loop_begin(w, &l, k->w.begin, k->w.end, 1, false, 0, NULL);
  uint32_t mark = emit_table_mark(k->w.e.x.table);
  begin_step(k, l.iv);
  write_scores(k);
  write_softmax(k);
  write_values(k);
  emit_table_release(k->w.e.x.table, mark);
  emit_loop_end(w, &l, NULL);
  const double each = 1; /* the time of the softmax for one score, in nanoseconds */
  double places = (double)c->batches * (double)c->rows * (double)c->keys;
  double products = (double)emit_product_sums(NULL, &c->qk) + (double)c->width;
  k->w.info->grid = c->batches * ceil_div(c->rows, c->tile_rows);
  k->w.cost = places * (each + products * 0.25 / (double)c->qk.lanes);
}

status emit_attention_write(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                            const void *config, uint32_t phase, emit_kernel_info *info) {
  kernel *k = ARENA_NEW(emit_module_ir_of(m)->arena, kernel);
  k->c = config;
  CHECK_THAT(hlo_attention_of_fusion(i, &k->a), STATUS_INTERNAL, "no attention");
  TRY(emit_writer_begin(&k->w, m, name, i, options, emit_attention_scratch(k->c) > 0, info));
  if (phase + 1 < emit_attention_phases(k->c)) {
    LLVMValueRef offset = emit_i64(k->w.e.w, k->c->k_at);
    emit_product_panels(&k->w, &k->c->qk, emit_f32_at(k->w.e.w, operand(k, k->a.k), offset), scratch(k));
  } else {
    write_tiles(k);
  }
  emit_writer_end(&k->w);
  return NULL;
}
