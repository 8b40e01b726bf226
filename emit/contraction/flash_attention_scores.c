/* flash_attention_scores.c - the scores of a tile for a block of keys: the copy of the block as panels, and the product
 * by register blocks; for tiles of few rows, the product with k in place. */
#include "base/arith.h"
#include "emit/llvm/arithmetic.h"
#include "emit/contraction/attention_internal.h"
#include "emit/contraction/flash_attention_internal.h"
#include "emit/product/gemm.h"

static LLVMValueRef size(const emit_flash *f, dim d) { return emit_size(&f->w.e.x, d); }

static LLVMValueRef times_size(const emit_flash *f, LLVMValueRef x, dim d) {
  return dim_is_const(d) ? emit_times(f->w.e.w, x, d) : LLVMBuildNSWMul(f->w.e.w->builder, x, size(f, d), "");
}

/* Returns the address of the element of k at a key of the block and a column. */
static LLVMValueRef key_at(const emit_flash *f, LLVMValueRef key, LLVMValueRef column) {
  const emit_ir *w = f->w.e.w;
  LLVMValueRef row = times_size(f, emit_add(w, f->key, key), f->c.k.row_step);
  return emit_f32_at(w, f->k, emit_add(w, row, times_size(f, column, f->c.k.column_step)));
}

/* --- the copy of a block of k as panels --- */

/* Returns the address in the panels of the element of k at a key and a column.  A panel has as many keys as a vector
 * has lanes; for each column, their elements lie side by side. */
static LLVMValueRef panel_at(const emit_flash *f, LLVMValueRef key, LLVMValueRef column) {
  const emit_ir *w = f->w.e.w;
  LLVMValueRef in = emit_modulo(w, key, f->c.lanes), first = LLVMBuildNSWSub(w->builder, key, in, "");
  LLVMValueRef row = emit_add(w, emit_times(w, first, f->c.sums), emit_times(w, column, f->c.lanes));
  return emit_f32_at(w, f->panels, emit_add(w, row, in));
}

/* Copies the square of n keys and n columns of k that begins at `key` and `column` to the panels. */
static void copy_square(const emit_flash *f, int n, LLVMValueRef key, LLVMValueRef column) {
  const emit_ir *w = f->w.e.w;
  LLVMValueRef rows[256];
  for (int r = 0; r < n; r++) {
    rows[r] = emit_f32_load(w, key_at(f, emit_add(w, key, emit_i64(w, r)), column), n);
  }
  emit_transpose_square(w, n, rows);
  for (int r = 0; r < n; r++) {
    emit_f32_store(w, rows[r], panel_at(f, key, emit_add(w, column, emit_i64(w, r))));
  }
}

/* Copies keys [0, whole), which fill whole panels, if the columns of a key are contiguous in k. */
static void copy_rows(const emit_flash *f, LLVMValueRef whole) {
  const emit_ir *w = f->w.e.w;
  int n = (int)min_i64(f->c.lanes, f->c.sums & -f->c.sums);
  emit_loop keys, columns;
  emit_loop_begin(w, &keys, emit_i64(w, 0), whole, n, false, 0, NULL);
  emit_loop_begin(w, &columns, emit_i64(w, 0), emit_i64(w, f->c.sums), n, true, 0, NULL);
  copy_square(f, n, keys.iv, columns.iv);
  emit_loop_end(w, &columns, NULL);
  emit_loop_end(w, &keys, NULL);
}

/* Copies keys [from, to) in vectors of `lanes` keys.  If `lanes` is more than 1, neighbouring keys must be contiguous
 * in k. */
static void copy_columns(const emit_flash *f, LLVMValueRef from, LLVMValueRef to, int lanes) {
  const emit_ir *w = f->w.e.w;
  emit_loop keys, columns;
  emit_loop_begin(w, &keys, from, to, lanes, false, 0, NULL);
  emit_loop_begin(w, &columns, emit_i64(w, 0), emit_i64(w, f->c.sums), 1, true, 0, NULL);
  emit_f32_store(w, emit_f32_load(w, key_at(f, keys.iv, columns.iv), lanes), panel_at(f, keys.iv, columns.iv));
  emit_loop_end(w, &columns, NULL);
  emit_loop_end(w, &keys, NULL);
}

/* Writes the copy of the block of k.  The last panel may have fewer keys than lanes; its other lanes hold undefined
 * values. */
static void copy_block(const emit_flash *f) {
  const emit_ir *w = f->w.e.w;
  int lanes = (int)f->c.lanes;
  LLVMValueRef whole = LLVMBuildAnd(w->builder, f->n_keys, emit_i64(w, -(int64_t)lanes), "");
  if (f->c.k.row_step == 1) {
    copy_columns(f, emit_i64(w, 0), whole, lanes);
  } else if (f->c.k.column_step == 1) {
    copy_rows(f, whole);
  } else {
    whole = emit_i64(w, 0);
  }
  copy_columns(f, whole, f->n_keys, 1);
}

/* --- many rows --- */

/* Writes a register block, whose last vectors may reach beyond the last key. */
static void write_block(const emit_flash *f, LLVMValueRef row, LLVMValueRef vector) {
  const emit_ir *w = f->w.e.w;
  const emit_flash_attention *c = &f->c;
  LLVMValueRef sums[EMIT_GEMM_SUMS], zero = emit_i64(w, 0);
  emit_gemm g = {.tile = {(int)c->block_rows, (int)c->block_vectors, (int)c->lanes},
                 .type = DTYPE_F32,
                 .a = emit_flash_row_at(f, row, zero),
                 .b = emit_f32_at(w, f->panels, emit_times(w, vector, c->sums * c->lanes)),
                 .a_row = c->sums,
                 .a_k = 1,
                 .b_k = c->lanes,
                 .b_vector = c->sums * c->lanes,
                 .k = emit_i64(w, c->sums)};
  emit_gemm_zero(w, &g, sums);
  emit_gemm_block(w, &g, sums);
  LLVMValueRef first = emit_flash_score_at(f, row, emit_times(w, vector, c->lanes));
  for (int r = 0; r < g.tile.rows; r++) {
    for (int v = 0; v < g.tile.vectors; v++) {
      LLVMValueRef to = emit_i64(w, r * c->tile_keys + v * c->lanes);
      emit_f32_store(w, sums[r * g.tile.vectors + v], emit_f32_at(w, first, to));
    }
  }
}

static void write_blocks(const emit_flash *f) {
  const emit_ir *w = f->w.e.w;
  copy_block(f);
  LLVMValueRef vectors = emit_over(w, emit_add(w, f->n_keys, emit_i64(w, f->c.lanes - 1)), f->c.lanes);
  emit_loop columns, rows;
  emit_loop_begin(w, &columns, emit_i64(w, 0), vectors, f->c.block_vectors, true, 0, NULL);
  emit_loop_begin(w, &rows, emit_i64(w, 0), f->n_rows, f->c.block_rows, true, 0, NULL);
  write_block(f, rows.iv, columns.iv);
  emit_loop_end(w, &rows, NULL);
  emit_loop_end(w, &columns, NULL);
}

/* --- few rows --- */

/* Returns a vector with the sums of neighbouring lanes of x, then those of y. */
static LLVMValueRef add_neighbours(const emit_ir *w, int lanes, LLVMValueRef x, LLVMValueRef y) {
  int even[256], odd[256];
  for (int j = 0; j < lanes; j++) {
    even[j] = 2 * j;
    odd[j] = 2 * j + 1;
  }
  return emit_sum(w, emit_shuffle(w, x, y, even, lanes), emit_shuffle(w, x, y, odd, lanes));
}

/* Writes the products of a row of q with n keys from `key` on, and returns for each a vector of partial sums. */
static void write_dots(const emit_flash *f, LLVMValueRef row, LLVMValueRef key, int n, LLVMValueRef *sums) {
  const emit_ir *w = f->w.e.w;
  int lanes = (int)f->c.k_lanes;
  for (int j = 0; j < n; j++) {
    sums[j] = LLVMConstNull(emit_vector_type(w->f32, lanes));
  }
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), emit_i64(w, f->c.sums), lanes, true, n, sums);
  LLVMValueRef q = emit_f32_load(w, emit_flash_row_at(f, row, l.iv), lanes);
  for (int j = 0; j < n; j++) {
    LLVMValueRef k = emit_f32_load(w, key_at(f, emit_add(w, key, emit_i64(w, j)), l.iv), lanes);
    sums[j] = emit_fma(w, q, k, l.carried[j]);
  }
  emit_loop_end(w, &l, sums);
  for (int j = 0; j < n; j++) {
    sums[j] = l.carried[j];
  }
}

/* Writes the scores of one row: those of whole vectors of keys, then those of single keys. */
static void write_row(const emit_flash *f, LLVMValueRef row) {
  const emit_ir *w = f->w.e.w;
  int lanes = (int)f->c.k_lanes;
  LLVMValueRef sums[256], whole = LLVMBuildAnd(w->builder, f->n_keys, emit_i64(w, -(int64_t)lanes), "");
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), whole, lanes, false, 0, NULL);
  write_dots(f, row, l.iv, lanes, sums);
  for (int n = lanes; n > 1; n /= 2) {
    for (int j = 0; j < n / 2; j++) {
      sums[j] = add_neighbours(w, lanes, sums[2 * j], sums[2 * j + 1]);
    }
  }
  emit_f32_store(w, sums[0], emit_flash_score_at(f, row, l.iv));
  emit_loop_end(w, &l, NULL);
  emit_loop_begin(w, &l, whole, f->n_keys, 1, false, 0, NULL);
  write_dots(f, row, l.iv, 1, sums);
  emit_f32_store(w, emit_join_lanes(w, sums[0], lanes, emit_sum), emit_flash_score_at(f, row, l.iv));
  emit_loop_end(w, &l, NULL);
}

static void write_rows(const emit_flash *f) {
  const emit_ir *w = f->w.e.w;
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), f->n_rows, 1, true, 0, NULL);
  write_row(f, l.iv);
  emit_loop_end(w, &l, NULL);
}

void emit_flash_scores(const emit_flash *f) { emit_flash_branch(f, write_blocks, write_rows); }
