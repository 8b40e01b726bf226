/* product_block.c - see product_block.h. */
#include "emit/product/product_block.h"

#include <math.h>

#include "emit/llvm/arithmetic.h"
#include "emit/product/gemm.h"
#include "emit/product/macro_kernel.h"
#include "emit/llvm/number.h"

LLVMValueRef emit_product_at(const emit_product_kernel *k, LLVMValueRef base, LLVMValueRef offset) {
  const emit_ir *w = k->w.e.w;
  return LLVMBuildInBoundsGEP2(w->builder, emit_memory_type(w, k->type), base, &offset, 1, "");
}

LLVMValueRef emit_product_b_at(const emit_product_kernel *k, LLVMValueRef base, LLVMValueRef offset) {
  return LLVMBuildInBoundsGEP2(k->w.e.w->builder, k->b_type, base, &offset, 1, "");
}

static LLVMValueRef load_vector(const emit_product_kernel *k, LLVMValueRef base, LLVMValueRef offset, int lanes) {
  const emit_ir *w = k->w.e.w;
  LLVMValueRef v = LLVMBuildLoad2(w->builder, emit_vector_type(emit_memory_type(w, k->type), lanes),
                                  emit_product_at(k, base, offset), "");
  LLVMSetAlignment(v, (unsigned)dtype_bytes(k->type));
  return v;
}

/* --- the epilogue --- */

/* Writes the epilogue at (row, column), where `column` is a multiple of `multiple` and `sums` is the contraction's
 * value in `lanes` lanes, and stores the results. */
static void finish_place(emit_product_kernel *k, LLVMValueRef row, LLVMValueRef column, int64_t multiple, int lanes,
                         LLVMValueRef sums) {
  emit_element *e = &k->w.e;
  const emit_product *p = k->p;
  int before = e->x.lanes;
  e->x.lanes = lanes;
  dim *dims = ARENA_NEW_N(e->w->arena, dim, 2);
  const shape *s = &k->contraction->shapes[0];
  dims[1] = dim_mul(k->dims, p->columns, p->group.n);
  dims[0] = emit_quotient(&e->x, emit_dims_product(&e->x, s->dims, 0, s->rank), dims[1]);
  emit_index *place = emit_index_new(&e->x, 2, dims);
  emit_axis_at(place, 0, emit_pos_at(row, 1));
  emit_axis_at(place, 1, emit_pos_lanes(column, lanes > 1, multiple));
  emit_element_set(e, hlo_result((hlo_instr *)k->contraction, 0), emit_index_reshape(&e->x, place, s->rank, s->dims),
                   (emit_pair){emit_narrow(e->w, k->type, sums), NULL});
  emit_store_roots(&k->w, place);
  e->x.lanes = before;
}

static LLVMTypeRef sum_element(const emit_product_kernel *k) {
  return emit_register_type(k->w.e.w, emit_compute_type(k->type));
}

static unsigned sum_bytes(const emit_product_kernel *k) { return (unsigned)dtype_bytes(emit_compute_type(k->type)); }

static int64_t tile_sums(const emit_product_kernel *k) {
  return k->p->tile_rows * EMIT_GEMM_TILE_VECTORS * k->p->lanes;
}

int64_t emit_product_tile_bytes(const emit_product_kernel *k) { return tile_sums(k) * sum_bytes(k); }

static LLVMValueRef tile_at(const emit_product_kernel *k, LLVMValueRef row, LLVMValueRef column) {
  const emit_ir *w = k->w.e.w;
  LLVMValueRef offset = emit_add(w, emit_times(w, row, EMIT_GEMM_TILE_VECTORS * k->p->lanes), column);
  return LLVMBuildInBoundsGEP2(w->builder, sum_element(k), k->tile, &offset, 1, "");
}

/* Writes the epilogue for columns [from, to) of row `tile_row` of the sums that were stored in k->tile, `lanes` at a
 * time.  That row is row `row` of C, and its first column is column `column` of C. */
static void finish_run(emit_product_kernel *k, LLVMValueRef row, LLVMValueRef tile_row, LLVMValueRef column,
                       LLVMValueRef from, LLVMValueRef to, int lanes, bool runs) {
  emit_element *e = &k->w.e;
  emit_loop l;
  emit_loop_begin(e->w, &l, from, to, lanes, runs, 0, NULL);
  uint32_t mark = emit_table_mark(e->x.table);
  LLVMValueRef v =
      LLVMBuildLoad2(e->w->builder, emit_vector_type(sum_element(k), lanes), tile_at(k, tile_row, l.iv), "");
  LLVMSetAlignment(v, sum_bytes(k));
  int64_t multiple = k->p->group.n == 1 && lanes == k->p->lanes ? lanes : 1;
  finish_place(k, row, emit_add(e->w, column, l.iv), multiple, lanes, v);
  emit_table_release(e->x.table, mark);
  emit_loop_end(e->w, &l, NULL);
}

/* Returns true if finish_tile needs a loop over runs of `step` columns: always for whole vectors, otherwise if the
 * columns after the last whole vector contain such runs. */
static bool has_run(const emit_product *p, int step) {
  /* If the number of columns is not a constant, runs of four and of one are needed. */
  int64_t rest = dim_is_const(p->columns) ? p->columns % p->lanes : 4 + 3;
  return step == p->lanes || (rest & (step > 1 ? step : 3));
}

/* Writes the epilogue for a block whose sums were stored in k->tile and whose first column is `column`; `width` of its
 * columns exist. */
static void finish_tile(emit_product_kernel *k, LLVMValueRef row, LLVMValueRef rows, LLVMValueRef column,
                        LLVMValueRef width) {
  const emit_ir *w = k->w.e.w;
  int lanes = (int)k->p->lanes;
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), rows, 1, true, 0, NULL);
  LLVMValueRef here = emit_add(w, row, l.iv), done = emit_i64(w, 0);
  for (int step = lanes; step >= 1; step = step > 4 ? step / 2 : step > 1 ? 1 : 0) {
    if (has_run(k->p, step)) {
      LLVMValueRef end = step == 1 ? width : LLVMBuildAnd(w->builder, width, emit_i64(w, -step), "");
      finish_run(k, here, l.iv, column, done, end, step, false);
      done = end;
    }
  }
  emit_loop_end(w, &l, NULL);
}

static void finish_registers(emit_product_kernel *k, const emit_gemm *g, LLVMValueRef row, LLVMValueRef column,
                             const LLVMValueRef *sums) {
  emit_element *e = &k->w.e;
  uint32_t mark = emit_table_mark(e->x.table);
  int lanes = g->tile.lanes;
  int64_t multiple = k->p->group.n == 1 ? lanes : 1;
  LLVMValueRef columns[EMIT_GEMM_SUMS];
  for (int v = 0; v < g->tile.vectors; v++) {
    columns[v] = v ? emit_add(e->w, column, emit_i64(e->w, (int64_t)v * lanes)) : column;
  }
  for (int r = 0; r < g->tile.rows; r++) {
    LLVMValueRef here = r ? emit_add(e->w, row, emit_i64(e->w, r)) : row;
    for (int v = 0; v < g->tile.vectors; v++) {
      finish_place(k, here, columns[v], multiple, lanes, sums[r * g->tile.vectors + v]);
    }
  }
  emit_table_release(e->x.table, mark);
}

/* --- register blocks --- */

/* Returns d as an i64 of the kernel, or NULL if d is a constant. */
static LLVMValueRef size_of(const emit_product_kernel *k, dim d) {
  return dim_is_const(d) ? NULL : emit_size(&k->w.e.x, d);
}

/* Sets loops[] to the loops over s (the products of a sum), as numbers of the kernel. */
static void sum_loops(const emit_product_kernel *k, emit_gemm_loop *loops) {
  const emit_indexer *x = &k->w.e.x;
  for (int64_t j = 0; j < k->n_sums; j++) {
    const emit_level *s = &k->sums[j];
    loops[j] = (emit_gemm_loop){emit_size(x, s->n), emit_size(x, s->a), emit_size(x, s->b)};
  }
}

/* Returns the scales (or the zero points) v of the quantised weights in f32: those for the vector of columns that
 * begins at `column`, and for block number `number` of weights that share a scale. */
static LLVMValueRef block_vector(emit_product_kernel *k, hlo_value v, LLVMValueRef number, LLVMValueRef column) {
  emit_element *e = &k->w.e;
  const hlo_quantized_weights *s = &k->small;
  int before = e->x.lanes, lanes = (int)k->p->lanes;
  emit_index *at = emit_index_new(&e->x, s->scaled->shapes[0].rank, s->scaled->shapes[0].dims);
  e->x.lanes = lanes;
  emit_axis_at(at, s->sum_dim, s->block_dim < 0 ? emit_pos_const(&e->x, 0) : emit_pos_at(number, 1));
  if (s->block_dim >= 0) {
    emit_axis_at(at, s->block_dim, emit_pos_const(&e->x, 0));
  }
  emit_axis_at(at, s->column_dim, emit_pos_lanes(column, lanes > 1, lanes));
  emit_pair x = emit_value(e, v, at);
  x = hlo_type(v) == DTYPE_F32 ? x : emit_convert(e->w, hlo_type(v), DTYPE_F32, x, false, DTYPE_ROUND_NEAREST);
  e->x.lanes = before;
  return x.v;
}

/* Sets *out for one block of quantised weights.  zeros[] has room for the zero points of all column vectors; a zero
 * point that all weights have becomes a part of the offset instead. */
static void set_small(emit_product_kernel *k, int vectors, LLVMValueRef number, LLVMValueRef column,
                      LLVMValueRef *zeros, emit_small *out) {
  const emit_ir *w = k->w.e.w;
  hlo_value zero = k->small.zero;
  hlo_along along;
  const double most = 0x1p16; /* f32 has the sums of this and what else is added and subtracted */
  *out = (emit_small){emit_product_quantized_bits(k->p), emit_product_quantized_offset(k->p), NULL};
  if (zero.def && hlo_along_of(zero, &along) && along.axis < 0 && hlo_along_is_const(&along) &&
      fabs(hlo_along_at(&along, 0)) <= most) {
    out->offset += (int)hlo_along_at(&along, 0);
  } else if (zero.def) {
    out->zero = zeros;
    for (int v = 0; v < vectors; v++) {
      zeros[v] = block_vector(k, zero, number, emit_add(w, column, emit_i64(w, v * k->p->lanes)));
    }
  }
}

/* Writes the sums over all blocks of quantised weights, each multiplied by its scale; `column` is the first column
 * of the register block. */
static void sum_quantized(emit_product_kernel *k, emit_gemm *g, LLVMValueRef column, LLVMValueRef *sums) {
  const emit_ir *w = k->w.e.w;
  const emit_product *p = k->p;
  int n = g->tile.rows * g->tile.vectors, bits = emit_product_quantized_bits(p);
  LLVMValueRef a = g->a, b = g->b, inner[EMIT_GEMM_SUMS], zeros[EMIT_GEMM_SUMS];
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), emit_i64(w, p->sums[0].n), 1, true, n, sums);
  uint32_t mark = emit_table_mark(k->w.e.x.table);
  set_small(k, g->tile.vectors, l.iv, column, zeros, &g->small);
  g->a = emit_product_at(k, a, emit_times(w, l.iv, p->sums[0].a));
  g->b = emit_product_b_at(k, b, emit_times(w, l.iv, p->block * bits * p->lanes / 8));
  g->a_k = p->sums[1].a;
  g->k = emit_i64(w, p->block);
  emit_gemm_zero(w, g, inner);
  emit_gemm_block(w, g, inner);
  for (int v = 0; v < g->tile.vectors; v++) {
    LLVMValueRef scale = block_vector(k, k->small.scale, l.iv, emit_add(w, column, emit_i64(w, v * p->lanes)));
    for (int r = 0; r < g->tile.rows; r++) {
      int j = r * g->tile.vectors + v;
      sums[j] = emit_fma(w, inner[j], scale, l.carried[j]);
    }
  }
  emit_table_release(k->w.e.x.table, mark);
  emit_loop_end(w, &l, sums);
  for (int j = 0; j < n; j++) {
    sums[j] = l.carried[j];
  }
}

/* Initialises the sums to zero or, where panels begin with initial values for their sums (emit_product_head), to
 * these. */
static void start_sums(const emit_product_kernel *k, emit_gemm *g, LLVMValueRef *sums) {
  const emit_ir *w = k->w.e.w;
  emit_gemm_zero(w, g, sums);
  if (emit_product_head(k->p)) {
    for (int v = 0; v < g->tile.vectors; v++) {
      LLVMValueRef start = load_vector(k, g->b, emit_i64(w, v * g->b_vector), g->tile.lanes);
      for (int r = 0; r < g->tile.rows; r++) {
        sums[r * g->tile.vectors + v] = start;
      }
    }
    g->b = emit_product_at(k, g->b, emit_i64(w, emit_product_head(k->p)));
  }
}

/* Returns true if every vector of columns is known to be full. */
static bool has_whole_vectors(const emit_product *p) { return dim_is_const(p->columns) && p->columns % p->lanes == 0; }

/* Returns how many of the columns of a block that is `vectors` wide exist. */
static LLVMValueRef width_of(const emit_product_kernel *k, const emit_product_place *b, LLVMValueRef vectors) {
  const emit_ir *w = k->w.e.w;
  const emit_product *p = k->p;
  LLVMValueRef all = emit_times(w, vectors, p->lanes);
  if (has_whole_vectors(p)) {
    return all;
  }
  LLVMValueRef before = emit_times(w, b->vector, p->lanes);
  return emit_lesser(w, LLVMBuildNSWSub(w->builder, emit_size(&k->w.e.x, p->columns), before, ""), all);
}

/* Sets the distances in A between the block's rows; `places` must have room for one number per row. */
static void place_rows(const emit_product_kernel *k, emit_gemm *g, int64_t *places) {
  const emit_row_cut *r = &k->rows;
  g->a_row_size = size_of(k, r->row_step);
  g->a_at = g->a_row_size ? NULL : places;
  for (int j = 0; j < g->tile.rows && !g->a_row_size; j++) {
    places[j] = j / r->unit_rows * r->unit_step + j % r->unit_rows * r->row_step;
  }
}

/* Returns a block of this size at *b whose first row is unit number `unit` in iteration `outer`. */
static emit_gemm block_at(const emit_product_kernel *k, const emit_product_place *b, LLVMValueRef outer,
                          LLVMValueRef unit, emit_gemm_tile tile) {
  const emit_indexer *x = &k->w.e.x;
  const emit_product *p = k->p;
  const emit_row_cut *r = &k->rows;
  LLVMValueRef outside = emit_level_offset(x, r->n_outside, p->rows, false, outer);
  return (emit_gemm){
      .tile = tile,
      .type = k->type,
      .a = emit_product_at(k, b->a, emit_add(x->w, outside, emit_times_size(x, unit, r->unit_step))),
      .b = b->b,
      .b_vector = k->b_vector,
      .b_vector_size = size_of(k, k->b_vector),
      .dot = (dtype)p->dot,
      .dot_flips = p->dot_offset != 0,
      .fetch = b->fetch,
      .ahead = p->fetch_ahead ? emit_i64(k->w.e.w, p->fetch_ahead / (int64_t)dtype_bytes(k->type)) : NULL,
      .n_ahead = b->vectors,
  };
}

/* Returns the row of C at which unit number `unit` of iteration `outer` begins. */
static LLVMValueRef row_of(const emit_product_kernel *k, const emit_product_place *b, LLVMValueRef outer,
                           LLVMValueRef unit) {
  const emit_ir *w = k->w.e.w;
  LLVMValueRef before = emit_times_size(&k->w.e.x, outer, k->rows.inner);
  return emit_add(w, b->first_row, emit_add(w, before, emit_times(w, unit, k->rows.unit_rows)));
}

static void sum_block(emit_product_kernel *k, emit_gemm *g, const emit_product_place *b, LLVMValueRef *sums) {
  emit_gemm_loop loops[EMIT_PRODUCT_LEVELS];
  start_sums(k, g, sums);
  if (k->p->quantized_type) {
    sum_quantized(k, g, b->first_column, sums);
  } else {
    sum_loops(k, loops);
    emit_gemm_nest(k->w.e.w, g, (int)k->n_sums, loops, sums);
  }
}

void emit_product_write_block(emit_product_kernel *k, const emit_product_place *b, LLVMValueRef outer,
                              LLVMValueRef unit, int64_t units) {
  const emit_ir *w = k->w.e.w;
  const emit_product *p = k->p;
  int64_t places[EMIT_GEMM_ROWS];
  int rows = (int)(units * k->rows.unit_rows);
  emit_gemm g = block_at(k, b, outer, unit, (emit_gemm_tile){rows, b->vectors, (int)p->lanes});
  place_rows(k, &g, places);
  LLVMValueRef sums[EMIT_GEMM_SUMS], row = row_of(k, b, outer, unit);
  sum_block(k, &g, b, sums);
  if (k->direct && has_whole_vectors(p)) {
    finish_registers(k, &g, row, b->first_column, sums);
    return;
  }
  LLVMValueRef vectors = emit_i64(w, b->vectors), width = width_of(k, b, vectors);
  LLVMBasicBlockRef whole = NULL, part = NULL, done = NULL;
  if (k->direct) {
    whole = emit_block(w, "whole");
    part = emit_block(w, "part");
    done = emit_block(w, "next");
    LLVMValueRef is_part = emit_icmp(w, LLVMIntSLT, width, emit_times(w, vectors, p->lanes));
    LLVMBuildCondBr(w->builder, is_part, part, whole);
    LLVMPositionBuilderAtEnd(w->builder, whole);
    finish_registers(k, &g, row, b->first_column, sums);
    LLVMBuildBr(w->builder, done);
    LLVMPositionBuilderAtEnd(w->builder, part);
  }
  emit_gemm_store(w, &g, sums, k->tile);
  emit_forget_vectors(w);
  finish_tile(k, row, emit_i64(w, rows), b->first_column, width);
  if (k->direct) {
    LLVMBuildBr(w->builder, done);
    LLVMPositionBuilderAtEnd(w->builder, done);
  }
}

/* --- the functions of a ladder's blocks --- */

LLVMValueRef emit_product_write_epilogue(emit_product_kernel *k) {
  const emit_ir *w = k->w.e.w;
  LLVMValueRef p[EMIT_EPILOGUE_PARAMETERS], tile = k->tile, epilogue;
  emit_outer_function outer;
  emit_writer_enter(&k->w, "epilogue", EMIT_EPILOGUE_TYPES, &outer);
  LLVMGetParams(w->function, p);
  k->tile = p[EMIT_EPILOGUE_TILE];
  finish_tile(k, p[EMIT_EPILOGUE_ROW], p[EMIT_EPILOGUE_ROWS], p[EMIT_EPILOGUE_COLUMN], p[EMIT_EPILOGUE_WIDTH]);
  epilogue = emit_writer_leave(&k->w, &outer);
  k->tile = tile;
  return epilogue;
}

/* Writes a micro-kernel for blocks of quantised weights. */
static LLVMValueRef write_quantized(emit_product_kernel *k, emit_gemm_tile tile) {
  const emit_ir *w = k->w.e.w;
  LLVMValueRef p[EMIT_MICRO_PARAMETERS], sums[EMIT_GEMM_SUMS];
  emit_outer_function outer;
  emit_writer_enter(&k->w, "gemm_quantized", EMIT_MICRO_TYPES, &outer);
  LLVMGetParams(w->function, p);
  emit_gemm g = {.tile = tile,
                 .type = k->type,
                 .a = p[EMIT_MICRO_A],
                 .b = p[EMIT_MICRO_B],
                 .a_row_size = emit_size(&k->w.e.x, k->rows.row_step),
                 .b_vector = k->b_vector};
  emit_gemm_zero(w, &g, sums);
  sum_quantized(k, &g, p[EMIT_MICRO_COLUMN], sums);
  emit_gemm_store(w, &g, sums, p[EMIT_MICRO_TILE]);
  return emit_writer_leave(&k->w, &outer);
}

LLVMValueRef emit_product_micro_kernel(emit_product_kernel *k, int64_t rows, int64_t vectors) {
  const emit_product *p = k->p;
  emit_gemm_tile tile = {(int)rows, (int)vectors, (int)p->lanes};
  if (p->quantized_type) {
    return write_quantized(k, tile);
  }
  emit_micro_kernel m = {.tile = tile,
                         .type = k->type,
                         .dot = (dtype)p->dot,
                         .dot_flips = p->dot_offset != 0,
                         .panels = p->packing != EMIT_B_PLAIN,
                         .head = emit_product_head(p) != 0,
                         .contiguous = k->sums[k->n_sums - 1].a == 1,
                         .n_loops = (int)k->n_sums};
  return emit_micro_kernel_of(k->w.e.w, &m);
}

/* --- what blocks need --- */

/* Sets k->b_type, k->b_vector and k->sums: the loops over s (the products of a sum), with the strides of B as it lies
 * in memory or, if it is packed, of its panels.  For quantised weights k->sums is not set, since they have loops of
 * their own (sum_quantized). */
static void set_sums(emit_product_kernel *k) {
  const emit_product *p = k->p;
  bool panels = p->packing != EMIT_B_PLAIN;
  k->b_type = p->quantized_type ? k->w.e.w->i8 : emit_memory_type(k->w.e.w, k->type);
  if (p->quantized_type) {
    k->b_vector = (int64_t)emit_product_packed_bytes(p) / emit_product_panels_of(k->dims, p);
    return;
  }
  k->b_vector = panels ? emit_product_panel(k->dims, p) : p->lanes;
  dim inner = p->lanes;
  for (int64_t j = p->n_sums; j-- > 0;) { /* built from the innermost outwards, then reversed */
    emit_level s = p->sums[j];
    s.b = panels ? inner : s.b;
    inner = dim_mul(k->dims, inner, s.n);
    emit_level *last = k->n_sums ? &k->sums[k->n_sums - 1] : NULL;
    if (last && s.a == dim_mul(k->dims, last->n, last->a) && s.b == dim_mul(k->dims, last->n, last->b)) {
      last->n = dim_mul(k->dims, last->n, s.n);
    } else {
      k->sums[k->n_sums++] = s;
    }
  }
  for (int64_t j = 0; j < k->n_sums / 2; j++) {
    emit_level s = k->sums[j];
    k->sums[j] = k->sums[k->n_sums - 1 - j];
    k->sums[k->n_sums - 1 - j] = s;
  }
  if (!k->n_sums) {
    k->sums[k->n_sums++] = (emit_level){1, 0, 0};
  }
}

void emit_product_blocks_begin(emit_product_kernel *k) {
  const emit_ir *w = k->w.e.w;
  const emit_product *p = k->p;
  k->direct = !k->rows.ladder && emit_is_light(k->w.i);
  set_sums(k);
  if (!k->rows.ladder && (!k->direct || !has_whole_vectors(p))) {
    k->tile = LLVMBuildArrayAlloca(w->builder, sum_element(k), emit_i64(w, tile_sums(k)), "");
    LLVMSetAlignment(k->tile, 64);
  }
}
