/* flash_attention_scores.c - the scores of a tile for a block of keys: the copy of the block as panels, and the product
 * by register blocks; for tiles of few rows, the product with k in place. */
#include "base/arith.h"
#include "emit/contraction/attention_internal.h"
#include "emit/contraction/flash_attention_internal.h"
#include "emit/llvm/arithmetic.h"

static LLVMValueRef size(const emit_flash *f, dim d) { return emit_size(&f->w.e.x, d); }

/* Returns the address of the first key of the block in k. */
static LLVMValueRef first_key(const emit_flash *f) {
  const emit_ir *w = f->w.e.w;
  return emit_f32_at(w, f->k, LLVMBuildNSWMul(w->builder, f->key, size(f, f->c.k.row_step), ""));
}

/* --- many rows --- */

/* Copies keys [0, whole), which fill whole panels, if the columns of a key are contiguous in k. */
static void copy_squares(const emit_flash *f, LLVMValueRef whole) {
  const emit_ir *w = f->w.e.w;
  int n = (int)min_i64(f->c.lanes, f->c.sums & -f->c.sums);
  const emit_gemm_tile square = {n, 1, (int)f->c.lanes};
  const emit_shared function = emit_flash_squares(w, &square);
  LLVMValueRef arguments[] = {f->panels, first_key(f), size(f, f->c.k.row_step), whole, emit_i64(w, f->c.sums)};
  emit_call_shared(w, &function, arguments);
}

/* Copies keys [from, to) in vectors of `lanes` keys.  If `lanes` is more than 1, neighbouring keys must be contiguous
 * in k. */
static void copy_columns(const emit_flash *f, LLVMValueRef from, LLVMValueRef to, int lanes) {
  const emit_ir *w = f->w.e.w;
  const emit_gemm_tile keys = {lanes, 1, (int)f->c.lanes};
  const emit_shared function = emit_flash_columns(w, &keys);
  LLVMValueRef arguments[] = {f->panels, first_key(f), size(f, f->c.k.row_step), size(f, f->c.k.column_step),
                              from,      to,           emit_i64(w, f->c.sums)};
  emit_call_shared(w, &function, arguments);
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
    copy_squares(f, whole);
  } else {
    whole = emit_i64(w, 0);
  }
  copy_columns(f, whole, f->n_keys, 1);
}

static void scores_of_many(const emit_flash *f) {
  const emit_ir *w = f->w.e.w;
  const emit_flash_attention *c = &f->c;
  copy_block(f);
  LLVMValueRef vectors = emit_over(w, emit_add(w, f->n_keys, emit_i64(w, c->lanes - 1)), c->lanes);
  const emit_gemm_tile tile = {(int)c->block_rows, (int)c->block_vectors, (int)c->lanes};
  const emit_shared function = emit_flash_scores_of_many(w, &tile);
  LLVMValueRef arguments[] = {
      f->scores, f->rows, f->panels, f->n_rows, vectors, emit_i64(w, c->sums), emit_i64(w, c->tile_keys)};
  emit_call_shared(w, &function, arguments);
}

/* --- few rows --- */

static void scores_of_few(const emit_flash *f) {
  const emit_ir *w = f->w.e.w;
  const emit_flash_attention *c = &f->c;
  const emit_gemm_tile tile = {1, 1, (int)c->k_lanes};
  const emit_shared function = emit_flash_scores_of_few(w, &tile);
  LLVMValueRef arguments[] = {f->scores, f->rows,   first_key(f),         size(f, c->k.row_step),
                              f->n_rows, f->n_keys, emit_i64(w, c->sums), emit_i64(w, c->tile_keys)};
  emit_call_shared(w, &function, arguments);
}

void emit_flash_scores(const emit_flash *f) { emit_flash_branch(f, scores_of_many, scores_of_few); }
