/* flash_attention_kernel.c - the kernel of flash_attention.h. */
#include <math.h>

#include "base/arith.h"
#include "emit/llvm/arithmetic.h"
#include "emit/contraction/attention_internal.h"
#include "emit/contraction/flash_attention_internal.h"
#include "emit/product/gemm.h"
#include "emit/kernel/module.h"
#include "emit/math/math.h"

/* The largest number of rows of a tile for which k is read in place.  For so few rows a copy of k would take longer
 * than the products. */
enum { FEW_ROWS = 4 };

static dim_table *table(const emit_flash *f) { return f->w.e.x.sizes->table; }
static LLVMValueRef size(const emit_flash *f, dim d) { return emit_size(&f->w.e.x, d); }

static LLVMValueRef score_at(const emit_flash *f, LLVMValueRef row, LLVMValueRef key) {
  const emit_ir *w = f->w.e.w;
  return emit_f32_at(w, f->scores, emit_add(w, emit_times(w, row, f->c.tile_keys), key));
}

static LLVMValueRef row_at(const emit_flash *f, LLVMValueRef row, LLVMValueRef column) {
  const emit_ir *w = f->w.e.w;
  return emit_f32_at(w, f->rows, emit_add(w, emit_times(w, row, f->c.sums), column));
}

static LLVMValueRef value_at(const emit_flash *f, LLVMValueRef row, LLVMValueRef column) {
  const emit_ir *w = f->w.e.w;
  return emit_f32_at(w, f->values, emit_add(w, emit_times(w, row, f->c.width), column));
}

void emit_flash_branch(const emit_flash *f, emit_flash_part *many, emit_flash_part *few) {
  const emit_ir *w = f->w.e.w;
  if (!f->c.k_lanes) {
    many(f);
    return;
  }
  LLVMBasicBlockRef if_few = emit_block(w, "few"), if_many = emit_block(w, "many"), join = emit_block(w, "join");
  LLVMBuildCondBr(w->builder, f->few, if_few, if_many);
  LLVMPositionBuilderAtEnd(w->builder, if_few);
  few(f);
  LLVMBuildBr(w->builder, join);
  LLVMPositionBuilderAtEnd(w->builder, if_many);
  many(f);
  LLVMBuildBr(w->builder, join);
  LLVMPositionBuilderAtEnd(w->builder, join);
}

/* --- softmax --- */

static const emit_index *place_of(emit_flash *f, LLVMValueRef row, LLVMValueRef column, int64_t multiple) {
  emit_element *e = &f->w.e;
  dim rows = dim_mul(table(f), f->c.batches, f->c.queries);
  LLVMValueRef key = column ? emit_add(e->w, f->key, column) : NULL;
  return emit_score_place(e, rows, f->c.keys, emit_add(e->w, f->row, row), key, multiple);
}

/* Replaces the dots of a row and keys [from, to), in vectors of `lanes`, by the operands of the softmax.  Returns, lane
 * by lane, the largest of these operands and of `most`. */
static LLVMValueRef finish_keys(emit_flash *f, LLVMValueRef row, LLVMValueRef from, LLVMValueRef to, int lanes,
                                LLVMValueRef most) {
  emit_element *e = &f->w.e;
  const emit_ir *w = e->w;
  emit_loop l;
  emit_loop_begin(w, &l, from, to, lanes, false, 1, &most);
  uint32_t mark = emit_table_mark(e->x.table);
  e->x.lanes = lanes;
  LLVMValueRef at = score_at(f, row, l.iv), dot = emit_f32_load(w, at, lanes);
  LLVMValueRef x = emit_value_from(e, f->a.scores, hlo_result(f->a.qk, 0), place_of(f, row, l.iv, lanes), dot);
  e->x.lanes = 1;
  emit_f32_store(w, x, at);
  most = emit_larger(w, l.carried[0], x);
  emit_table_release(e->x.table, mark);
  emit_loop_end(w, &l, &most);
  return l.carried[0];
}

/* Writes -infinity, whose exponential is 0, for the keys that the last vector of a row lacks. */
static void fill_up(const emit_flash *f, LLVMValueRef row, LLVMValueRef end) {
  const emit_ir *w = f->w.e.w;
  emit_loop l;
  emit_loop_begin(w, &l, f->n_keys, end, 1, false, 0, NULL);
  emit_f32_store(w, emit_f_of(w->f32, -INFINITY), score_at(f, row, l.iv));
  emit_loop_end(w, &l, NULL);
}

/* Replaces the dots of a row by the operands of the softmax, and returns the largest operand. */
static LLVMValueRef finish_scores(emit_flash *f, LLVMValueRef row, LLVMValueRef end) {
  const emit_ir *w = f->w.e.w;
  int lanes = (int)f->c.lanes;
  LLVMValueRef whole = LLVMBuildAnd(w->builder, f->n_keys, emit_i64(w, -(int64_t)lanes), "");
  LLVMValueRef most = emit_f_of(emit_vector_type(w->f32, lanes), -INFINITY);
  most = emit_join_lanes(w, finish_keys(f, row, emit_i64(w, 0), whole, lanes, most), lanes, emit_larger);
  if (lanes > 1) {
    most = finish_keys(f, row, whole, f->n_keys, 1, most);
    fill_up(f, row, end);
  }
  return most;
}

/* Sets the maximum, the shift and the factor of a row for a further block of keys.  The factor converts exponentials
 * with the former shift into those with the new one.  It is 1 if all scores of the blocks before were masked: the sums
 * so far are then 0, and the former shift (which need not be the maximum) is not meaningful. */
static void move_shift(emit_flash *f, LLVMValueRef row, LLVMValueRef end) {
  emit_element *e = &f->w.e;
  const emit_ir *w = e->w;
  LLVMValueRef maximum = emit_f32_at(w, f->maxima, row), at = emit_f32_at(w, f->shifts, row);
  LLVMValueRef before = emit_f32_load(w, at, 1), former = emit_f32_load(w, maximum, 1);
  LLVMValueRef none = emit_fcmp(w, LLVMRealOEQ, former, emit_f(former, -INFINITY));
  LLVMValueRef most = emit_larger(w, finish_scores(f, row, end), former);
  LLVMValueRef shift = emit_value_from(e, f->a.shift, hlo_result(f->a.max, 0), place_of(f, row, NULL, 1), most);
  LLVMValueRef change = LLVMBuildFSub(w->builder, emit_flash_usable(w, before), emit_flash_usable(w, shift), "");
  change = emit_select(w, none, emit_f(change, 0), change);
  emit_f32_store(w, most, maximum);
  emit_f32_store(w, shift, at);
  emit_f32_store(w, emit_math(w, HLO_EXP, change, NULL), emit_f32_at(w, f->factors, row));
}

/* Replaces the scores of a block by their exponentials.  There are two loops over the rows, as in attention_kernel.c,
 * so that the processor overlaps the work of several rows. */
static void write_softmax(emit_flash *f) {
  emit_element *e = &f->w.e;
  const emit_ir *w = e->w;
  LLVMValueRef end = emit_add(w, f->n_keys, emit_i64(w, f->c.lanes - 1));
  end = emit_opaque(w, LLVMBuildAnd(w->builder, end, emit_i64(w, -f->c.lanes), ""));
  uint32_t mark = emit_table_mark(e->x.table);
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), f->n_rows, 1, true, 0, NULL);
  move_shift(f, l.iv, end);
  emit_table_release(e->x.table, mark);
  emit_loop_end(w, &l, NULL);
  const emit_flash_raise variant = {(int)f->c.lanes, hlo_shifts_by_maximum(&f->a)};
  const emit_shared function = emit_flash_exponentials(w, &variant);
  LLVMValueRef arguments[] = {f->scores, f->shifts, f->factors, f->totals, f->n_rows, end, emit_i64(w, f->c.tile_keys)};
  emit_call_shared(w, &function, arguments);
}

/* --- the product with v --- */

/* Writes the product with n column blocks of `vectors` vectors each, from column `from` on, by `n_rows` rows. */
static void write_values_columns(const emit_flash *f, int64_t n_rows, int64_t n, int64_t vectors, int64_t from) {
  const emit_ir *w = f->w.e.w;
  const emit_flash_attention *c = &f->c;
  if (!n) {
    return;
  }
  const emit_gemm_tile tile = {(int)n_rows, (int)vectors, (int)c->v_lanes};
  const emit_shared function = emit_flash_values(w, &tile);
  LLVMValueRef column = emit_i64(w, from), step = size(f, c->v.row_step);
  LLVMValueRef v = emit_f32_at(w, f->v, emit_add(w, LLVMBuildNSWMul(w->builder, f->key, step, ""), column));
  LLVMValueRef arguments[] = {emit_f32_at(w, f->values, column),
                              f->scores,
                              f->factors,
                              v,
                              step,
                              f->n_rows,
                              f->n_keys,
                              emit_i64(w, n * vectors * c->v_lanes),
                              emit_i64(w, c->width),
                              emit_i64(w, c->tile_keys)};
  emit_call_shared(w, &function, arguments);
}

static void write_values_by(const emit_flash *f, int64_t n_rows, int most_vectors) {
  emit_gemm_parts parts = emit_gemm_cut(f->c.width / f->c.v_lanes, most_vectors);
  write_values_columns(f, n_rows, parts.n_large, parts.large, 0);
  write_values_columns(f, n_rows, parts.n_small, parts.large - 1, parts.n_large * parts.large * f->c.v_lanes);
}

static void values_of_many(const emit_flash *f) { write_values_by(f, f->c.block_rows, (int)f->c.v_vectors); }
static void values_of_few(const emit_flash *f) { write_values_by(f, 1, EMIT_GEMM_VECTORS); }

/* --- tiles --- */

/* Writes a loop that copies the tile's rows of q to f->rows.  The rows from n_rows to `padded`, which completes the
 * last register block, become copies of the tile's last row. */
static void copy_rows(const emit_flash *f, LLVMValueRef padded) {
  const emit_ir *w = f->w.e.w;
  int lanes = (int)min_i64(f->c.lanes, f->c.sums & -f->c.sums);
  LLVMValueRef last = emit_add(w, f->n_rows, emit_i64(w, -1));
  emit_loop l, columns;
  emit_loop_begin(w, &l, emit_i64(w, 0), padded, 1, true, 0, NULL);
  LLVMValueRef row = LLVMBuildNSWMul(w->builder, emit_lesser(w, l.iv, last), size(f, f->c.q.row_step), "");
  emit_loop_begin(w, &columns, emit_i64(w, 0), emit_i64(w, f->c.sums), lanes, true, 0, NULL);
  LLVMValueRef x = emit_f32_load(w, emit_f32_at(w, f->q, emit_add(w, row, columns.iv)), lanes);
  emit_f32_store(w, x, row_at(f, l.iv, columns.iv));
  emit_loop_end(w, &columns, NULL);
  emit_loop_end(w, &l, NULL);
}

/* Sets the maxima, shifts and sums of the rows to their values before the first block of keys. */
static void clear_sums(const emit_flash *f, LLVMValueRef padded) {
  const emit_ir *w = f->w.e.w;
  LLVMValueRef zero = emit_f_of(w->f32, 0), none = emit_f_of(w->f32, -INFINITY);
  emit_loop l, columns;
  emit_loop_begin(w, &l, emit_i64(w, 0), padded, 1, true, 0, NULL);
  emit_f32_store(w, none, emit_f32_at(w, f->maxima, l.iv));
  emit_f32_store(w, none, emit_f32_at(w, f->shifts, l.iv));
  emit_f32_store(w, zero, emit_f32_at(w, f->totals, l.iv));
  emit_f32_store(w, zero, emit_f32_at(w, f->factors, l.iv));
  emit_loop_begin(w, &columns, emit_i64(w, 0), emit_i64(w, f->c.width), f->c.v_lanes, true, 0, NULL);
  emit_f32_store(w, emit_splat(w, zero, (int)f->c.v_lanes), value_at(f, l.iv, columns.iv));
  emit_loop_end(w, &columns, NULL);
  emit_loop_end(w, &l, NULL);
}

static void write_keys(emit_flash *f) {
  const emit_ir *w = f->w.e.w;
  LLVMValueRef keys = size(f, f->c.keys);
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), keys, f->c.tile_keys, false, 0, NULL);
  emit_poll(w, l.iv, f->c.tile_keys, INT32_MAX, f->c.tile_rows);
  f->key = l.iv;
  f->n_keys = emit_lesser(w, LLVMBuildNSWSub(w->builder, keys, l.iv, ""), emit_i64(w, f->c.tile_keys));
  emit_flash_scores(f);
  write_softmax(f);
  emit_flash_branch(f, values_of_many, values_of_few);
  emit_loop_end(w, &l, NULL);
}

/* Replaces the values of a row by the sum of the rows of v times 0 if its total is NaN.  Returns the number by which
 * the values are multiplied at the end, which is 1 for such a row, and otherwise `inverse`. */
static LLVMValueRef clear_if_nan(const emit_flash *f, LLVMValueRef row, LLVMValueRef total, LLVMValueRef inverse) {
  const emit_ir *w = f->w.e.w;
  int lanes = (int)f->c.v_lanes;
  LLVMValueRef is_nan = emit_fcmp(w, LLVMRealUNO, total, total), zero = LLVMConstNull(emit_vector_type(w->f32, lanes));
  LLVMValueRef sum = zero, end = emit_select(w, is_nan, emit_i64(w, f->c.width), emit_i64(w, 0));
  emit_loop columns, keys;
  emit_loop_begin(w, &columns, emit_i64(w, 0), end, lanes, false, 0, NULL);
  emit_loop_begin(w, &keys, emit_i64(w, 0), size(f, f->c.keys), 1, false, 1, &sum);
  LLVMValueRef at = emit_add(w, LLVMBuildNSWMul(w->builder, keys.iv, size(f, f->c.v.row_step), ""), columns.iv);
  sum = emit_fma(w, zero, emit_f32_load(w, emit_f32_at(w, f->v, at), lanes), keys.carried[0]);
  emit_loop_end(w, &keys, &sum);
  emit_f32_store(w, keys.carried[0], value_at(f, row, columns.iv));
  emit_loop_end(w, &columns, NULL);
  return emit_select(w, is_nan, emit_f(inverse, 1), inverse);
}

/* Returns the number by which the values of a row are multiplied at the end.  It is NaN if the shift is infinite, as
 * the difference of a score and the shift is in the module's own operations.  It is 0 if there are no keys, so that the
 * result is 0. */
static LLVMValueRef inverse_of(emit_flash *f, LLVMValueRef row) {
  emit_element *e = &f->w.e;
  const emit_ir *w = e->w;
  LLVMValueRef shift = emit_f32_load(w, emit_f32_at(w, f->shifts, row), 1);
  LLVMValueRef invalid = LLVMBuildFSub(w->builder, shift, shift, "");
  LLVMValueRef all = emit_sum(w, emit_f32_load(w, emit_f32_at(w, f->totals, row), 1), invalid);
  LLVMValueRef total = emit_value_from(e, f->a.total, hlo_result(f->a.sum, 0), place_of(f, row, NULL, 1), all);
  LLVMValueRef inverse = emit_sum(w, LLVMBuildFDiv(w->builder, emit_f(total, 1), total, ""), invalid);
  inverse = f->a.zero_where_nan ? clear_if_nan(f, row, total, inverse) : inverse;
  LLVMValueRef any = emit_icmp(w, LLVMIntNE, size(f, f->c.keys), emit_i64(w, 0));
  return emit_select(w, any, inverse, emit_f(inverse, 0));
}

static void store_result(emit_flash *f) {
  emit_element *e = &f->w.e;
  const emit_ir *w = e->w;
  int lanes = (int)f->c.v_lanes;
  uint32_t mark = emit_table_mark(e->x.table);
  emit_loop l, columns;
  emit_loop_begin(w, &l, emit_i64(w, 0), f->n_rows, 1, true, 0, NULL);
  LLVMValueRef inverse = emit_splat(w, inverse_of(f, l.iv), lanes);
  LLVMValueRef to = LLVMBuildNSWMul(w->builder, l.iv, size(f, f->c.out.row_step), "");
  emit_loop_begin(w, &columns, emit_i64(w, 0), emit_i64(w, f->c.width), lanes, true, 0, NULL);
  LLVMValueRef x = emit_f32_load(w, value_at(f, l.iv, columns.iv), lanes);
  emit_f32_store(w, LLVMBuildFMul(w->builder, x, inverse, ""), emit_f32_at(w, f->out, emit_add(w, to, columns.iv)));
  emit_loop_end(w, &columns, NULL);
  emit_table_release(e->x.table, mark);
  emit_loop_end(w, &l, NULL);
}

/* Returns the address of the matrix of batch number `batch`. */
static LLVMValueRef matrix(const emit_flash *f, LLVMValueRef base, const emit_flash_matrix *m, LLVMValueRef batch) {
  const emit_ir *w = f->w.e.w;
  LLVMValueRef offset = size(f, m->offset);
  for (int k = m->n_batch; k-- > 0;) {
    LLVMValueRef extent = size(f, m->batch[k]);
    bool outermost = k == 0;
    LLVMValueRef at = outermost ? batch : emit_opaque(w, LLVMBuildURem(w->builder, batch, extent, ""));
    offset = emit_add(w, offset, LLVMBuildNSWMul(w->builder, at, size(f, m->batch_step[k]), ""));
    batch = outermost ? batch : emit_opaque(w, LLVMBuildUDiv(w->builder, batch, extent, ""));
  }
  return emit_f32_at(w, base, offset);
}

/* Returns the address of q, k or v, which are parameters of the fusion's body (hlo_attention_of_fusion). */
static LLVMValueRef operand(const emit_flash *f, hlo_value parameter) {
  return f->w.e.inputs[hlo_int(parameter.def, HLO_ATTR_INDEX)].base;
}

static dim tiles_of(const emit_flash *f) { return dim_ceildiv(table(f), f->c.queries, f->c.tile_rows); }

/* Sets what step number `item` of the grid computes.  All tiles of a batch have about the same number of rows, at least
 * one. */
static void begin_tile(emit_flash *f, LLVMValueRef item) {
  const emit_ir *w = f->w.e.w;
  const emit_flash_attention *c = &f->c;
  LLVMValueRef tiles = size(f, tiles_of(f)), queries = size(f, c->queries), one = emit_i64(w, 1);
  LLVMValueRef batch = emit_opaque(w, LLVMBuildUDiv(w->builder, item, tiles, ""));
  LLVMValueRef tile = emit_opaque(w, LLVMBuildURem(w->builder, item, tiles, ""));
  LLVMValueRef most = LLVMBuildNSWSub(w->builder, emit_add(w, queries, tiles), one, "");
  most = emit_opaque(w, LLVMBuildUDiv(w->builder, most, tiles, ""));
  LLVMValueRef first = LLVMBuildNSWMul(w->builder, tile, most, "");
  f->n_rows = emit_lesser(w, LLVMBuildNSWSub(w->builder, queries, first, ""), most);
  f->row = emit_add(w, LLVMBuildNSWMul(w->builder, batch, queries, ""), first);
  f->few = emit_icmp(w, LLVMIntSLE, f->n_rows, emit_i64(w, FEW_ROWS));
  f->q = matrix(f, operand(f, f->a.q), &c->q, batch);
  f->q = emit_f32_at(w, f->q, LLVMBuildNSWMul(w->builder, first, size(f, c->q.row_step), ""));
  f->k = matrix(f, operand(f, f->a.k), &c->k, batch);
  f->v = matrix(f, operand(f, f->a.v), &c->v, batch);
  f->out = matrix(f, f->w.results[0], &c->out, batch);
  f->out = emit_f32_at(w, f->out, LLVMBuildNSWMul(w->builder, first, size(f, c->out.row_step), ""));
}

static void write_tile(emit_flash *f, LLVMValueRef item) {
  const emit_ir *w = f->w.e.w;
  begin_tile(f, item);
  LLVMValueRef blocks = emit_over(w, emit_add(w, f->n_rows, emit_i64(w, f->c.block_rows - 1)), f->c.block_rows);
  LLVMValueRef padded = emit_times(w, blocks, f->c.block_rows);
  copy_rows(f, padded);
  clear_sums(f, padded);
  write_keys(f);
  store_result(f);
}

static void reserve_memory(emit_flash *f) {
  const emit_ir *w = f->w.e.w;
  const emit_flash_attention *c = &f->c;
  f->rows = emit_row_memory(w, DTYPE_F32, c->tile_rows * c->sums);
  f->scores = emit_row_memory(w, DTYPE_F32, c->tile_rows * c->tile_keys);
  f->panels = emit_row_memory(w, DTYPE_F32, c->tile_keys * c->sums);
  f->values = emit_row_memory(w, DTYPE_F32, c->tile_rows * c->width);
  LLVMValueRef *const each[] = {&f->maxima, &f->shifts, &f->totals, &f->factors};
  for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
    *each[k] = emit_row_memory(w, DTYPE_F32, c->tile_rows);
  }
}

/* Returns the likely time of the whole kernel in nanoseconds. */
static double cost(const emit_flash *f) {
  const double each = 1; /* the time of the softmax for one score, in nanoseconds */
  const emit_flash_attention *c = &f->c;
  double places = emit_likely_size(table(f), c->batches) * emit_likely_size(table(f), c->queries) *
                  emit_likely_size(table(f), c->keys);
  return places * (each + (double)(c->sums + c->width) * 0.25 / (double)c->lanes);
}

status emit_flash_attention_write(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                                  const void *config, uint32_t phase, emit_kernel_info *info) {
  (void)config, (void)phase;
  emit_ir *ir = emit_module_ir_of(m);
  emit_flash *f = ARENA_NEW(ir->arena, emit_flash);
  CHECK_THAT(hlo_attention_of_fusion(i, &f->a) && emit_flash_attention_of(&f->a, ir->target, &f->c), STATUS_INTERNAL,
             "no attention of any size");
  TRY(emit_writer_begin(&f->w, m, name, i, options, 0, info));
  reserve_memory(f);
  emit_loop l;
  emit_loop_begin(f->w.e.w, &l, f->w.begin, f->w.end, 1, false, 0, NULL);
  uint32_t mark = emit_table_mark(f->w.e.x.table);
  write_tile(f, l.iv);
  emit_table_release(f->w.e.x.table, mark);
  emit_loop_end(f->w.e.w, &l, NULL);
  info->grid = dim_mul(table(f), f->c.batches, tiles_of(f));
  f->w.cost = cost(f);
  emit_writer_end(&f->w);
  return NULL;
}
