/* flash_attention_functions.c - the functions that kernels of flash_attention.h call, and that are the same for all
 * heads: the copy of keys, the products, and the exponentials.  Sizes of heads and tiles are parameters, so that few
 * functions serve all models (precompiled.h). */
#include <math.h>

#include "emit/contraction/attention_internal.h"
#include "emit/contraction/flash_attention_internal.h"
#include "emit/llvm/arithmetic.h"
#include "emit/product/gemm.h"

static LLVMValueRef mul(const emit_ir *w, LLVMValueRef x, LLVMValueRef y) {
  return LLVMBuildNSWMul(w->builder, x, y, "");
}
static LLVMValueRef i64(const emit_ir *w, int64_t x) { return emit_i64(w, x); }

/* Returns a function whose variant is the block `tile`. */
static emit_shared block_function(const emit_ir *w, const char *name, const char *parameters,
                                  void (*body)(emit_ir *w, const void *data), const emit_gemm_tile *tile) {
  name = arena_printf(w->arena, "flash_%s_%dx%dx%d", name, tile->rows, tile->vectors, tile->lanes);
  return (emit_shared){name, parameters, body, tile};
}

/* Writes the code of a block that begins at `row` and `column`; p[] are the function's parameters. */
typedef void write_block_fn(const emit_ir *w, const emit_gemm_tile *t, const LLVMValueRef *p, LLVMValueRef row,
                            LLVMValueRef column);

/* Writes the body of a function that goes by blocks of `tile` over columns, in steps of column_step, and rows; their
 * numbers are parameters, and at least 1. */
static void write_blocks(const emit_ir *w, const emit_gemm_tile *tile, const LLVMValueRef *p, int rows, int columns,
                         int64_t column_step, write_block_fn *write_block) {
  emit_loop column, row;
  emit_loop_begin(w, &column, i64(w, 0), p[columns], column_step, true, 0, NULL);
  emit_loop_begin(w, &row, i64(w, 0), p[rows], tile->rows, true, 0, NULL);
  write_block(w, tile, p, row.iv, column.iv);
  emit_loop_end(w, &row, NULL);
  emit_loop_end(w, &column, NULL);
  LLVMBuildRetVoid(w->builder);
}

/* --- the copy of a block of keys as panels --- */

/* Returns the address in the panels of the element of k at a key and a column.  A panel has as many keys as a vector
 * has lanes; for each column, their elements lie side by side. */
static LLVMValueRef panel_at(const emit_ir *w, LLVMValueRef panels, int lanes, LLVMValueRef sums, LLVMValueRef key,
                             LLVMValueRef column) {
  LLVMValueRef in = emit_modulo(w, key, lanes), first = LLVMBuildNSWSub(w->builder, key, in, "");
  LLVMValueRef row = emit_add(w, mul(w, first, sums), emit_times(w, column, lanes));
  return emit_f32_at(w, panels, emit_add(w, row, in));
}

enum { SQUARES_PANELS, SQUARES_K, SQUARES_ROW_STEP, SQUARES_KEYS, SQUARES_SUMS, SQUARES_PARAMETERS };

static void write_squares(emit_ir *w, const void *data) {
  const emit_gemm_tile *t = data;
  LLVMValueRef p[SQUARES_PARAMETERS], rows[256];
  emit_loop keys, columns;
  LLVMGetParams(w->function, p);
  emit_loop_begin(w, &keys, i64(w, 0), p[SQUARES_KEYS], t->rows, false, 0, NULL);
  emit_loop_begin(w, &columns, i64(w, 0), p[SQUARES_SUMS], t->rows, true, 0, NULL);
  for (int r = 0; r < t->rows; r++) {
    LLVMValueRef row = mul(w, emit_add(w, keys.iv, i64(w, r)), p[SQUARES_ROW_STEP]);
    rows[r] = emit_f32_load(w, emit_f32_at(w, p[SQUARES_K], emit_add(w, row, columns.iv)), t->rows);
  }
  emit_transpose_square(w, t->rows, rows);
  for (int r = 0; r < t->rows; r++) {
    LLVMValueRef column = emit_add(w, columns.iv, i64(w, r));
    emit_f32_store(w, rows[r], panel_at(w, p[SQUARES_PANELS], t->lanes, p[SQUARES_SUMS], keys.iv, column));
  }
  emit_loop_end(w, &columns, NULL);
  emit_loop_end(w, &keys, NULL);
  LLVMBuildRetVoid(w->builder);
}

emit_shared emit_flash_squares(const emit_ir *w, const emit_gemm_tile *square) {
  return block_function(w, "squares", "ppiii", write_squares, square);
}

enum {
  COLUMNS_PANELS,
  COLUMNS_K,
  COLUMNS_ROW_STEP,
  COLUMNS_STEP,
  COLUMNS_FROM,
  COLUMNS_TO,
  COLUMNS_SUMS,
  COLUMNS_PARAMETERS
};

static void write_columns(emit_ir *w, const void *data) {
  const emit_gemm_tile *t = data;
  LLVMValueRef p[COLUMNS_PARAMETERS];
  emit_loop keys, columns;
  LLVMGetParams(w->function, p);
  emit_loop_begin(w, &keys, p[COLUMNS_FROM], p[COLUMNS_TO], t->rows, false, 0, NULL);
  emit_loop_begin(w, &columns, i64(w, 0), p[COLUMNS_SUMS], 1, true, 0, NULL);
  LLVMValueRef from = emit_add(w, mul(w, keys.iv, p[COLUMNS_ROW_STEP]), mul(w, columns.iv, p[COLUMNS_STEP]));
  LLVMValueRef x = emit_f32_load(w, emit_f32_at(w, p[COLUMNS_K], from), t->rows);
  emit_f32_store(w, x, panel_at(w, p[COLUMNS_PANELS], t->lanes, p[COLUMNS_SUMS], keys.iv, columns.iv));
  emit_loop_end(w, &columns, NULL);
  emit_loop_end(w, &keys, NULL);
  LLVMBuildRetVoid(w->builder);
}

emit_shared emit_flash_columns(const emit_ir *w, const emit_gemm_tile *keys) {
  return block_function(w, "columns", "ppiiiii", write_columns, keys);
}

/* --- scores of many rows --- */

enum { SCORES, SCORES_ROWS, SCORES_PANELS, SCORES_N, SCORES_VECTORS, SCORES_SUMS, SCORES_STEP, SCORES_PARAMETERS };

/* Writes a register block, whose last vectors may reach beyond the last key. */
static void write_scores_block(const emit_ir *w, const emit_gemm_tile *t, const LLVMValueRef *p, LLVMValueRef row,
                               LLVMValueRef vector) {
  LLVMValueRef panel = emit_times(w, p[SCORES_SUMS], t->lanes), sums[EMIT_GEMM_SUMS];
  emit_gemm g = {.tile = *t,
                 .type = DTYPE_F32,
                 .a = emit_f32_at(w, p[SCORES_ROWS], mul(w, row, p[SCORES_SUMS])),
                 .b = emit_f32_at(w, p[SCORES_PANELS], mul(w, vector, panel)),
                 .a_row_size = p[SCORES_SUMS],
                 .a_k = 1,
                 .b_k = t->lanes,
                 .b_vector_size = panel,
                 .k = p[SCORES_SUMS]};
  emit_gemm_zero(w, &g, sums);
  emit_gemm_block(w, &g, sums);
  for (int r = 0; r < t->rows; r++) {
    LLVMValueRef at = mul(w, emit_add(w, row, i64(w, r)), p[SCORES_STEP]);
    LLVMValueRef first = emit_f32_at(w, p[SCORES], emit_add(w, at, emit_times(w, vector, t->lanes)));
    for (int v = 0; v < t->vectors; v++) {
      emit_f32_store(w, sums[r * t->vectors + v], emit_f32_at(w, first, i64(w, v * t->lanes)));
    }
  }
}

static void write_scores(emit_ir *w, const void *data) {
  const emit_gemm_tile *t = data;
  LLVMValueRef p[SCORES_PARAMETERS];
  LLVMGetParams(w->function, p);
  write_blocks(w, t, p, SCORES_N, SCORES_VECTORS, t->vectors, write_scores_block);
}

emit_shared emit_flash_scores_of_many(const emit_ir *w, const emit_gemm_tile *tile) {
  return block_function(w, "scores", "pppiiii", write_scores, tile);
}

/* --- scores of few rows --- */

enum { DOTS, DOTS_ROWS, DOTS_K, DOTS_ROW_STEP, DOTS_N, DOTS_KEYS, DOTS_SUMS, DOTS_STEP, DOTS_PARAMETERS };

/* Returns a vector with the sums of neighbouring lanes of x, then those of y. */
static LLVMValueRef add_neighbours(const emit_ir *w, int lanes, LLVMValueRef x, LLVMValueRef y) {
  int even[256], odd[256];
  for (int j = 0; j < lanes; j++) {
    even[j] = 2 * j;
    odd[j] = 2 * j + 1;
  }
  return emit_sum(w, emit_shuffle(w, x, y, even, lanes), emit_shuffle(w, x, y, odd, lanes));
}

/* Writes the products of the row of q at `q` with n keys from `key` on, and returns for each a vector of partial sums.
 */
static void write_products(const emit_ir *w, int lanes, const LLVMValueRef *p, LLVMValueRef q, LLVMValueRef key, int n,
                           LLVMValueRef *sums) {
  for (int j = 0; j < n; j++) {
    sums[j] = LLVMConstNull(emit_vector_type(w->f32, lanes));
  }
  emit_loop l;
  emit_loop_begin(w, &l, i64(w, 0), p[DOTS_SUMS], lanes, true, n, sums);
  LLVMValueRef x = emit_f32_load(w, emit_f32_at(w, q, l.iv), lanes);
  for (int j = 0; j < n; j++) {
    LLVMValueRef row = mul(w, emit_add(w, key, i64(w, j)), p[DOTS_ROW_STEP]);
    LLVMValueRef k = emit_f32_load(w, emit_f32_at(w, p[DOTS_K], emit_add(w, row, l.iv)), lanes);
    sums[j] = emit_fma(w, x, k, l.carried[j]);
  }
  emit_loop_end(w, &l, sums);
  for (int j = 0; j < n; j++) {
    sums[j] = l.carried[j];
  }
}

/* Writes the scores of one row: those of whole vectors of keys, then those of single keys. */
static void write_row(const emit_ir *w, int lanes, const LLVMValueRef *p, LLVMValueRef row) {
  LLVMValueRef sums[256], whole = LLVMBuildAnd(w->builder, p[DOTS_KEYS], i64(w, -(int64_t)lanes), "");
  LLVMValueRef q = emit_f32_at(w, p[DOTS_ROWS], mul(w, row, p[DOTS_SUMS]));
  LLVMValueRef to = emit_f32_at(w, p[DOTS], mul(w, row, p[DOTS_STEP]));
  emit_loop l;
  emit_loop_begin(w, &l, i64(w, 0), whole, lanes, false, 0, NULL);
  write_products(w, lanes, p, q, l.iv, lanes, sums);
  for (int n = lanes; n > 1; n /= 2) {
    for (int j = 0; j < n / 2; j++) {
      sums[j] = add_neighbours(w, lanes, sums[2 * j], sums[2 * j + 1]);
    }
  }
  emit_f32_store(w, sums[0], emit_f32_at(w, to, l.iv));
  emit_loop_end(w, &l, NULL);
  emit_loop_begin(w, &l, whole, p[DOTS_KEYS], 1, false, 0, NULL);
  write_products(w, lanes, p, q, l.iv, 1, sums);
  emit_f32_store(w, emit_join_lanes(w, sums[0], lanes, emit_sum), emit_f32_at(w, to, l.iv));
  emit_loop_end(w, &l, NULL);
}

static void write_rows(emit_ir *w, const void *data) {
  const emit_gemm_tile *t = data;
  LLVMValueRef p[DOTS_PARAMETERS];
  emit_loop l;
  LLVMGetParams(w->function, p);
  emit_loop_begin(w, &l, i64(w, 0), p[DOTS_N], 1, true, 0, NULL);
  write_row(w, t->lanes, p, l.iv);
  emit_loop_end(w, &l, NULL);
  LLVMBuildRetVoid(w->builder);
}

emit_shared emit_flash_scores_of_few(const emit_ir *w, const emit_gemm_tile *tile) {
  return block_function(w, "dots", "pppiiiii", write_rows, tile);
}

/* --- exponentials --- */

enum { RAISE_SCORES, RAISE_SHIFTS, RAISE_FACTORS, RAISE_TOTALS, RAISE_N, RAISE_KEYS, RAISE_STEP, RAISE_PARAMETERS };

LLVMValueRef emit_flash_usable(const emit_ir *w, LLVMValueRef shift) {
  return emit_select(w, emit_fcmp(w, LLVMRealOEQ, shift, emit_f(shift, -INFINITY)), emit_f(shift, 0), shift);
}

/* Replaces each element x of the row at `scores` by e^(x - shift), and returns the sum of these exponentials. */
static LLVMValueRef raise(const emit_ir *w, const emit_flash_raise *r, LLVMValueRef scores, LLVMValueRef n,
                          LLVMValueRef shift) {
  LLVMValueRef all = LLVMConstNull(emit_vector_type(w->f32, r->lanes));
  shift = emit_splat(w, shift, r->lanes);
  emit_loop l;
  emit_loop_begin(w, &l, i64(w, 0), n, r->lanes, true, 1, &all);
  LLVMValueRef to = emit_f32_at(w, scores, l.iv);
  LLVMValueRef x = emit_score_exponential(w, r->by_maximum, emit_f32_load(w, to, r->lanes), shift);
  emit_f32_store(w, x, to);
  all = emit_sum(w, l.carried[0], x);
  emit_loop_end(w, &l, &all);
  return emit_join_lanes(w, l.carried[0], r->lanes, emit_sum);
}

static void write_raise(emit_ir *w, const void *data) {
  LLVMValueRef p[RAISE_PARAMETERS];
  emit_loop l;
  LLVMGetParams(w->function, p);
  emit_loop_begin(w, &l, i64(w, 0), p[RAISE_N], 1, true, 0, NULL);
  LLVMValueRef shift = emit_flash_usable(w, emit_f32_load(w, emit_f32_at(w, p[RAISE_SHIFTS], l.iv), 1));
  LLVMValueRef total = emit_f32_at(w, p[RAISE_TOTALS], l.iv);
  LLVMValueRef factor = emit_f32_load(w, emit_f32_at(w, p[RAISE_FACTORS], l.iv), 1);
  LLVMValueRef row = emit_f32_at(w, p[RAISE_SCORES], mul(w, l.iv, p[RAISE_STEP]));
  LLVMValueRef all = raise(w, data, row, p[RAISE_KEYS], shift);
  emit_f32_store(w, emit_fma(w, emit_f32_load(w, total, 1), factor, all), total);
  emit_loop_end(w, &l, NULL);
  LLVMBuildRetVoid(w->builder);
}

emit_shared emit_flash_exponentials(const emit_ir *w, const emit_flash_raise *raise) {
  const char *name = arena_printf(w->arena, "flash_raise_%d%s", raise->lanes, raise->by_maximum ? "m" : "");
  return (emit_shared){name, "ppppiii", write_raise, raise};
}

/* --- the product with v --- */

enum {
  VALUES,
  VALUES_SCORES,
  VALUES_FACTORS,
  VALUES_V,
  VALUES_V_STEP,
  VALUES_N,
  VALUES_KEYS,
  VALUES_COLUMNS,
  VALUES_WIDTH,
  VALUES_STEP,
  VALUES_PARAMETERS
};

/* Writes a register block of the product with v, and adds it to the sums so far. */
static void write_values_block(const emit_ir *w, const emit_gemm_tile *t, const LLVMValueRef *p, LLVMValueRef row,
                               LLVMValueRef column) {
  LLVMValueRef sums[EMIT_GEMM_SUMS], to[EMIT_GEMM_ROWS];
  emit_gemm g = {.tile = *t,
                 .type = DTYPE_F32,
                 .a = emit_f32_at(w, p[VALUES_SCORES], mul(w, row, p[VALUES_STEP])),
                 .b = emit_f32_at(w, p[VALUES_V], column),
                 .a_row_size = p[VALUES_STEP],
                 .a_k = 1,
                 .b_k_size = p[VALUES_V_STEP],
                 .b_vector = t->lanes,
                 .k = p[VALUES_KEYS]};
  for (int r = 0; r < t->rows; r++) {
    LLVMValueRef at = emit_add(w, row, i64(w, r));
    LLVMValueRef factor = emit_splat(w, emit_f32_load(w, emit_f32_at(w, p[VALUES_FACTORS], at), 1), t->lanes);
    to[r] = emit_f32_at(w, p[VALUES], emit_add(w, mul(w, at, p[VALUES_WIDTH]), column));
    for (int v = 0; v < t->vectors; v++) {
      LLVMValueRef before = emit_f32_load(w, emit_f32_at(w, to[r], i64(w, v * t->lanes)), t->lanes);
      sums[r * t->vectors + v] = LLVMBuildFMul(w->builder, before, factor, "");
    }
  }
  emit_gemm_block(w, &g, sums);
  for (int r = 0; r < t->rows; r++) {
    for (int v = 0; v < t->vectors; v++) {
      emit_f32_store(w, sums[r * t->vectors + v], emit_f32_at(w, to[r], i64(w, v * t->lanes)));
    }
  }
}

static void write_values(emit_ir *w, const void *data) {
  const emit_gemm_tile *t = data;
  LLVMValueRef p[VALUES_PARAMETERS];
  LLVMGetParams(w->function, p);
  write_blocks(w, t, p, VALUES_N, VALUES_COLUMNS, (int64_t)t->vectors * t->lanes, write_values_block);
}

emit_shared emit_flash_values(const emit_ir *w, const emit_gemm_tile *tile) {
  return block_function(w, "values", "ppppiiiiii", write_values, tile);
}
