/* product_kernel.c - the kernel of product.h that computes the product and its epilogue. */
#include "emit/contraction/arithmetic.h"
#include "emit/contraction/gemm.h"
#include "emit/contraction/product.h"
#include "emit/contraction/product_internal.h"
#include "emit/kernel/module.h"
#include "emit/kernel/writer.h"
#include "emit/llvm/number.h"
#include "hlo/analysis/quantized.h"

typedef struct kernel {
  emit_writer w;
  const emit_product *p;
  const hlo_instr *contraction;
  dtype type;
  LLVMValueRef a, b, copy, packed; /* the operands, and their copies in scratch memory */
  emit_row_cut rows;
  LLVMValueRef blocks, large, row_blocks, column_blocks,
      first; /* the numbers that product_internal.h lists as EMIT_PRODUCT_BLOCKS and so on: arguments of the kernel
                if p->dynamic_m, otherwise constants */
  emit_gemm_parts columns; /* the columns of a group, counted in vectors */
  int64_t n_sums;          /* the number of loops over s (the products of a sum); the innermost is last in `sums` */
  emit_level sums[EMIT_PRODUCT_LEVELS];
  int64_t b_vector; /* the distance in B from one vector of columns to the next, in elements of b_type */
  LLVMTypeRef b_type;
  hlo_quantized_weights small;
  LLVMValueRef tile; /* memory for a block's sums, or NULL if none is needed */
  bool direct;       /* true if the epilogue is written for each vector of a block, with the sums in registers */
} kernel;

static LLVMValueRef at(const kernel *k, LLVMValueRef base, LLVMValueRef offset) {
  const emit_ir *w = k->w.e.w;
  return LLVMBuildInBoundsGEP2(w->builder, emit_memory_type(w, k->type), base, &offset, 1, "");
}

static LLVMValueRef b_at(const kernel *k, LLVMValueRef base, LLVMValueRef offset) {
  return LLVMBuildInBoundsGEP2(k->w.e.w->builder, k->b_type, base, &offset, 1, "");
}

LLVMValueRef emit_level_offset(const emit_ir *w, int64_t n, const emit_level *levels, bool in_b, LLVMValueRef index) {
  LLVMValueRef sum = emit_i64(w, 0);
  for (int64_t l = n; l-- > 0;) {
    LLVMValueRef digit = l ? emit_modulo(w, index, levels[l].n) : index;
    sum = emit_add(w, sum, emit_times(w, digit, in_b ? levels[l].b : levels[l].a));
    index = l ? emit_over(w, index, levels[l].n) : index;
  }
  return sum;
}

static LLVMValueRef load_vector(const kernel *k, LLVMValueRef base, LLVMValueRef offset, int lanes) {
  const emit_ir *w = k->w.e.w;
  LLVMValueRef v =
      LLVMBuildLoad2(w->builder, emit_vector_type(emit_memory_type(w, k->type), lanes), at(k, base, offset), "");
  LLVMSetAlignment(v, (unsigned)dtype_bytes(k->type));
  return v;
}

/* --- the epilogue --- */

/* Writes the epilogue at (row, column), where the contraction's value in `lanes` lanes is `sums`, and stores the
 * results. */
static void finish_place(kernel *k, LLVMValueRef row, LLVMValueRef column, int64_t multiple, int lanes,
                         LLVMValueRef sums) {
  emit_element *e = &k->w.e;
  const emit_product *p = k->p;
  int before = e->x.lanes;
  e->x.lanes = lanes;
  int64_t *dims = ARENA_NEW_N(e->w->arena, int64_t, 2);
  dims[1] = p->columns * p->group.n;
  dims[0] = shape_elements(&k->contraction->shapes[0]) / dims[1];
  emit_index *place = emit_index_new(&e->x, 2, dims);
  emit_axis_at(place, 0, emit_pos_at(row, 1));
  emit_axis_at(place, 1, emit_pos_lanes(column, lanes > 1, multiple));
  const shape *s = &k->contraction->shapes[0];
  emit_element_set(e, hlo_result((hlo_instr *)k->contraction, 0), emit_index_reshape(&e->x, place, s->rank, s->dims),
                   (emit_pair){emit_narrow(e->w, k->type, sums), NULL});
  emit_store_roots(&k->w, place);
  e->x.lanes = before;
}

static LLVMTypeRef sum_element(const kernel *k) { return emit_register_type(k->w.e.w, emit_compute_type(k->type)); }

static unsigned sum_bytes(const kernel *k) { return (unsigned)dtype_bytes(emit_compute_type(k->type)); }

static LLVMValueRef tile_at(const kernel *k, LLVMValueRef row, LLVMValueRef column) {
  const emit_ir *w = k->w.e.w;
  LLVMValueRef offset = emit_add(w, emit_times(w, row, k->p->tile_vectors * k->p->lanes), column);
  return LLVMBuildInBoundsGEP2(w->builder, sum_element(k), k->tile, &offset, 1, "");
}

/* Writes the epilogue for columns [from, to) of one row of the sums that were stored in k->tile, `lanes` at a time. */
static void finish_run(kernel *k, LLVMValueRef row, LLVMValueRef tile_row, LLVMValueRef column, LLVMValueRef from,
                       LLVMValueRef to, int lanes, bool runs) {
  emit_element *e = &k->w.e;
  emit_loop l;
  emit_loop_begin(e->w, &l, from, to, lanes, runs, 0, NULL);
  uint32_t mark = emit_table_mark(e->x.table);
  LLVMValueRef v =
      LLVMBuildLoad2(e->w->builder, emit_vector_type(sum_element(k), lanes), tile_at(k, tile_row, l.iv), "");
  LLVMSetAlignment(v, sum_bytes(k));
  finish_place(k, row, emit_add(e->w, column, l.iv), 1, lanes, v);
  emit_table_release(e->x.table, mark);
  emit_loop_end(e->w, &l, NULL);
}

/* Writes the epilogue for a block whose sums were stored in k->tile and whose first column is `column`; `width` of its
 * columns exist. */
static void finish_tile(kernel *k, LLVMValueRef row, LLVMValueRef rows, LLVMValueRef column, LLVMValueRef width) {
  const emit_ir *w = k->w.e.w;
  int lanes = (int)k->p->lanes;
  int64_t rest = k->p->columns % lanes;
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), rows, 1, true, 0, NULL);
  LLVMValueRef here = emit_add(w, row, l.iv), done = emit_i64(w, 0);
  for (int step = lanes; step >= 1; step = step > 4 ? step / 2 : step > 1 ? 1 : 0) {
    if (step == lanes || rest & (step > 1 ? step : 3)) {
      LLVMValueRef end = step == 1 ? width : LLVMBuildAnd(w->builder, width, emit_i64(w, -step), "");
      finish_run(k, here, l.iv, column, done, end, step, false);
      done = end;
    }
  }
  emit_loop_end(w, &l, NULL);
}

static void keep_in_tile(const kernel *k, const emit_gemm *g, const LLVMValueRef *sums) {
  const emit_ir *w = k->w.e.w;
  for (int r = 0; r < g->tile.rows; r++) {
    for (int v = 0; v < g->tile.vectors; v++) {
      LLVMValueRef to = tile_at(k, emit_i64(w, r), emit_i64(w, (int64_t)v * g->tile.lanes));
      LLVMSetAlignment(LLVMBuildStore(w->builder, sums[r * g->tile.vectors + v], to), sum_bytes(k));
    }
  }
}

static void finish_registers(kernel *k, const emit_gemm *g, LLVMValueRef row, LLVMValueRef column,
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

/* Returns part `number` of n equal parts of the memory that is to be prefetched. */
static emit_fetch part_of_fetch(const emit_ir *w, const emit_fetch *f, LLVMValueRef number, LLVMValueRef n) {
  LLVMValueRef bytes = LLVMBuildUDiv(w->builder, f->bytes, n, ""),
               offset = LLVMBuildNSWMul(w->builder, number, bytes, "");
  return (emit_fetch){LLVMBuildGEP2(w->builder, w->i8, f->from, &offset, 1, ""), bytes, f->lines};
}

/* Writes the loops over s (the products of a sum) from the loop number `level` inwards. */
static void sum_level(const kernel *k, emit_gemm *g, int64_t level, LLVMValueRef *sums) {
  const emit_ir *w = k->w.e.w;
  const emit_level *s = &k->sums[level];
  if (level + 1 == k->n_sums) {
    g->a_k = s->a;
    g->b_k = s->b;
    g->k = emit_i64(w, s->n);
    emit_gemm_block(w, g, sums);
    return;
  }
  LLVMValueRef a = g->a, b = g->b;
  emit_fetch fetch = g->fetch;
  int n = g->tile.rows * g->tile.vectors;
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), emit_i64(w, s->n), 1, true, n, sums);
  g->a = at(k, a, emit_times(w, l.iv, s->a));
  g->b = at(k, b, emit_times(w, l.iv, s->b));
  if (fetch.from) {
    g->fetch = part_of_fetch(w, &fetch, l.iv, emit_i64(w, s->n));
  }
  for (int j = 0; j < n; j++) {
    sums[j] = l.carried[j];
  }
  sum_level(k, g, level + 1, sums);
  emit_loop_end(w, &l, sums);
  for (int j = 0; j < n; j++) {
    sums[j] = l.carried[j];
  }
}

/* Returns the scales (or the zero points) v of the quantised weights in f32: those for the vector of columns that
 * begins at `column`, and for block number `number` of weights that share a scale. */
static LLVMValueRef block_vector(kernel *k, hlo_value v, LLVMValueRef number, LLVMValueRef column) {
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

/* Sets zeros[v] to the vector that is subtracted from the weights of column vector v after their conversion to f32
 * (emit_small.zero): the zero points of the weights, the offset that packing added, and EMIT_SMALL_BASE. */
static void find_zeros(kernel *k, int vectors, LLVMValueRef number, LLVMValueRef column, LLVMValueRef *zeros) {
  const emit_ir *w = k->w.e.w;
  double base = EMIT_SMALL_BASE + emit_product_quantized_offset(k->p);
  LLVMValueRef added = emit_splat(w, LLVMConstReal(w->f32, base), (int)k->p->lanes);
  for (int v = 0; v < vectors; v++) {
    zeros[v] = added;
    if (k->small.zero.def) {
      LLVMValueRef x = block_vector(k, k->small.zero, number, emit_add(w, column, emit_i64(w, v * k->p->lanes)));
      zeros[v] = LLVMBuildFAdd(w->builder, x, added, "");
    }
  }
}

/* Writes the sums over all blocks of quantised weights, each multiplied by its scale; `column` is the first column
 * of the register block. */
static void sum_quantized(kernel *k, emit_gemm *g, LLVMValueRef column, LLVMValueRef *sums) {
  const emit_ir *w = k->w.e.w;
  const emit_product *p = k->p;
  int n = g->tile.rows * g->tile.vectors, bits = emit_product_quantized_bits(p);
  LLVMValueRef a = g->a, b = g->b, inner[EMIT_GEMM_SUMS], zeros[EMIT_GEMM_SUMS];
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), emit_i64(w, p->sums[0].n), 1, true, n, sums);
  uint32_t mark = emit_table_mark(k->w.e.x.table);
  find_zeros(k, g->tile.vectors, l.iv, column, zeros);
  g->small = (emit_small){bits, zeros};
  g->a = at(k, a, emit_times(w, l.iv, p->sums[0].a));
  g->b = b_at(k, b, emit_times(w, l.iv, p->block * bits * p->lanes / 8));
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

typedef struct block {
  LLVMValueRef a, b;         /* the addresses of A for the batch and group, and of the register block's first column
                                of B */
  LLVMValueRef first_row;    /* the row of C at which the batch begins */
  LLVMValueRef first_column; /* the register block's first column of C */
  LLVMValueRef vector; /* the number of the first column vector among those of the convolution group (0 for a dot) */
  int vectors;
  emit_fetch fetch;
} block;

/* Initialises the sums to zero or, where panels begin with initial values for their sums (emit_product_head), to
 * these. */
static void start_sums(const kernel *k, emit_gemm *g, LLVMValueRef *sums) {
  const emit_ir *w = k->w.e.w;
  emit_gemm_zero(w, g, sums);
  if (emit_product_head(k->p)) {
    for (int v = 0; v < g->tile.vectors; v++) {
      LLVMValueRef start = load_vector(k, g->b, emit_i64(w, v * g->b_vector), g->tile.lanes);
      for (int r = 0; r < g->tile.rows; r++) {
        sums[r * g->tile.vectors + v] = start;
      }
    }
    g->b = at(k, g->b, emit_i64(w, emit_product_head(k->p)));
  }
}

static void write_block(kernel *k, const block *b, LLVMValueRef outer, LLVMValueRef unit, int64_t units) {
  const emit_ir *w = k->w.e.w;
  const emit_product *p = k->p;
  const emit_row_cut *r = &k->rows;
  int64_t places[EMIT_GEMM_ROWS];
  emit_gemm g = {.tile = {(int)(units * r->unit_rows), b->vectors, (int)p->lanes},
                 .type = k->type,
                 .a_at = places,
                 .b = b->b,
                 .b_vector = k->b_vector,
                 .dot4 = (dtype)p->dot4,
                 .fetch = b->fetch};
  for (int j = 0; j < g.tile.rows; j++) {
    places[j] = j / r->unit_rows * r->unit_step + j % r->unit_rows * r->row_step;
  }
  g.a = at(k, b->a,
           emit_add(w, emit_level_offset(w, r->n_outside, p->rows, false, outer), emit_times(w, unit, r->unit_step)));
  LLVMValueRef sums[EMIT_GEMM_SUMS];
  LLVMValueRef row =
      emit_add(w, b->first_row, emit_add(w, emit_times(w, outer, r->inner), emit_times(w, unit, r->unit_rows)));
  start_sums(k, &g, sums);
  if (p->quantized_type) {
    sum_quantized(k, &g, b->first_column, sums);
  } else {
    sum_level(k, &g, 0, sums);
  }
  int64_t rest = p->columns % p->lanes;
  if (k->direct && !rest) {
    finish_registers(k, &g, row, b->first_column, sums);
    return;
  }
  LLVMValueRef end = emit_add(w, b->vector, emit_i64(w, b->vectors)), width = emit_i64(w, b->vectors * p->lanes);
  LLVMValueRef is_last = emit_icmp(w, LLVMIntEQ, end, emit_i64(w, emit_product_panels_of(p)));
  if (rest) {
    width = emit_select(w, is_last, emit_i64(w, (b->vectors - 1) * p->lanes + rest), width);
  }
  LLVMBasicBlockRef whole = NULL, part = NULL, done = NULL;
  if (k->direct) {
    whole = emit_block(w, "whole");
    part = emit_block(w, "part");
    done = emit_block(w, "next");
    LLVMBuildCondBr(w->builder, is_last, part, whole);
    LLVMPositionBuilderAtEnd(w->builder, whole);
    finish_registers(k, &g, row, b->first_column, sums);
    LLVMBuildBr(w->builder, done);
    LLVMPositionBuilderAtEnd(w->builder, part);
  }
  keep_in_tile(k, &g, sums);
  emit_forget_vectors(w);
  finish_tile(k, row, emit_i64(w, g.tile.rows), b->first_column, width);
  if (k->direct) {
    LLVMBuildBr(w->builder, done);
    LLVMPositionBuilderAtEnd(w->builder, done);
  }
}

/* Writes the code for part number i (a block of rows or of columns) of a range that is divided into `parts`.  It has
 * two branches: one with the code that `body` writes for a large part, and one for a small part.  At run time the first
 * n_large parts take the first branch. */
static void each_size(kernel *k, const emit_gemm_parts *parts, LLVMValueRef n_large, LLVMValueRef i,
                      void (*body)(kernel *k, void *data, LLVMValueRef start, int64_t size), void *data) {
  const emit_ir *w = k->w.e.w;
  int64_t large = parts->large;
  if (!parts->n_small) {
    body(k, data, emit_times(w, i, large), large);
    return;
  }
  if (!parts->n_large) {
    body(k, data, emit_times(w, i, large - 1), large - 1);
    return;
  }
  LLVMBasicBlockRef is[] = {emit_block(w, "large"), emit_block(w, "small")}, next = emit_block(w, "next");
  LLVMValueRef start = emit_add(w, emit_times(w, i, large - 1), emit_lesser(w, i, n_large));
  LLVMBuildCondBr(w->builder, emit_icmp(w, LLVMIntSLT, i, n_large), is[0], is[1]);
  for (int j = 0; j < 2; j++) {
    LLVMPositionBuilderAtEnd(w->builder, is[j]);
    body(k, data, start, large - j);
    LLVMBuildBr(w->builder, next);
  }
  LLVMPositionBuilderAtEnd(w->builder, next);
}

typedef struct step {
  LLVMValueRef a, b, first_row, group;
  LLVMValueRef row_from, row_to, column_from, column_to; /* the block numbers at which the step's rows and columns
                                                            begin and end */
  block block;
  LLVMValueRef outer;
} step;

static void row_body(kernel *k, void *data, LLVMValueRef unit, int64_t units) {
  const step *s = data;
  write_block(k, &s->block, s->outer, unit, units);
}

/* Returns the memory to prefetch, which is the panels after those of block b.  After the last panel of B there may be
 * other memory or none; a prefetch of it does no harm. */
static emit_fetch next_panels(const kernel *k, const block *b) {
  const emit_ir *w = k->w.e.w;
  if (!k->p->fetch_lines) {
    return (emit_fetch){0};
  }
  int64_t elements = b->vectors * k->b_vector;
  LLVMValueRef offset = emit_i64(w, elements), from = LLVMBuildGEP2(w->builder, k->b_type, b->b, &offset, 1, "");
  return (emit_fetch){from, emit_i64(w, elements * (int64_t)dtype_bytes(k->type)), (int)k->p->fetch_lines};
}

static void column_body(kernel *k, void *data, LLVMValueRef vector, int64_t vectors) {
  const emit_ir *w = k->w.e.w;
  const emit_product *p = k->p;
  step *s = data;
  LLVMValueRef column = emit_times(w, vector, p->lanes);
  s->block = (block){.a = s->a,
                     .b = b_at(k, s->b, emit_times(w, vector, k->b_vector)),
                     .first_row = s->first_row,
                     .first_column = emit_add(w, emit_times(w, s->group, p->columns), column),
                     .vector = vector,
                     .vectors = (int)vectors};
  const emit_gemm_parts parts = {k->rows.n_large, k->rows.n_small, (int)k->rows.large};
  bool one = k->rows.outer == 1;
  const emit_fetch fetch = next_panels(k, &s->block);
  emit_loop l;
  emit_loop_begin(w, &l, s->row_from, s->row_to, 1, true, 0, NULL);
  if (fetch.from) {
    LLVMValueRef number = LLVMBuildNSWSub(w->builder, l.iv, s->row_from, "");
    s->block.fetch = part_of_fetch(w, &fetch, number, LLVMBuildNSWSub(w->builder, s->row_to, s->row_from, ""));
  }
  s->outer = one ? emit_i64(w, 0) : emit_over(w, l.iv, parts.n_large + parts.n_small);
  each_size(k, &parts, k->large, one ? l.iv : emit_modulo(w, l.iv, parts.n_large + parts.n_small), row_body, s);
  emit_loop_end(w, &l, NULL);
}

/* The steps of the grid are numbered with its first dimension varying fastest.  Returns the position of step `item`
 * along that dimension if `place` is true, otherwise the step's number in the other dimensions. */
static LLVMValueRef of_first(const kernel *k, LLVMValueRef item, bool place) {
  const emit_ir *w = k->w.e.w;
  if (LLVMIsAConstantInt(k->first)) {
    int64_t n = LLVMConstIntGetSExtValue(k->first);
    return place ? emit_modulo(w, item, n) : emit_over(w, item, n);
  }
  return emit_opaque(
      w, place ? LLVMBuildURem(w->builder, item, k->first, "") : LLVMBuildUDiv(w->builder, item, k->first, ""));
}

/* Writes step number `item` of the grid. */
static void write_step(kernel *k, LLVMValueRef item) {
  const emit_ir *w = k->w.e.w;
  const emit_product *p = k->p;
  int64_t columns = k->columns.n_large + k->columns.n_small;
  /* Without batches and groups there is no third dimension, so that the position along the second needs no division. */
  int64_t second = emit_product_outside(p) == 1 ? INT64_MAX
                   : p->rows_first              ? emit_product_column_steps(p)
                                                : emit_product_row_steps(p);
  LLVMValueRef i = of_first(k, item, true), rest = of_first(k, item, false);
  LLVMValueRef j = second == INT64_MAX ? rest : emit_modulo(w, rest, second);
  LLVMValueRef outside = second == INT64_MAX ? emit_i64(w, 0) : emit_over(w, rest, second);
  LLVMValueRef batch = emit_over(w, outside, p->group.n), group = emit_modulo(w, outside, p->group.n);
  LLVMValueRef rows = LLVMBuildNSWMul(w->builder, p->rows_first ? i : j, k->row_blocks, "");
  step s = {.group = group, .row_from = rows, .first_row = emit_times(w, batch, k->rows.outer * k->rows.inner)};
  s.row_to = emit_lesser(w, emit_add(w, rows, k->row_blocks), k->blocks);
  s.column_from = LLVMBuildNSWMul(w->builder, p->rows_first ? j : i, k->column_blocks, "");
  s.column_to = emit_lesser(w, emit_add(w, s.column_from, k->column_blocks), emit_i64(w, columns));
  s.a = at(k, k->a,
           emit_add(w, emit_level_offset(w, p->n_batch, p->batch, false, batch), emit_times(w, group, p->group.a)));
  s.b = p->packing == EMIT_B_PLAIN
            ? at(k, k->b,
                 emit_add(w, emit_level_offset(w, p->n_batch, p->batch, true, batch), emit_times(w, group, p->group.b)))
            : at(k, k->b, emit_times(w, outside, emit_product_packed(p) / emit_product_outside(p)));
  emit_loop l;
  emit_loop_begin(w, &l, s.column_from, s.column_to, 1, true, 0, NULL);
  double block_work = (double)emit_product_sums(p) * (double)(p->tile_rows * p->row_blocks * p->tile_vectors);
  /* The loop over the column blocks checks the budget, also on behalf of the loops over rows inside of it. */
  const int64_t much = 4 * EMIT_POLL;
  emit_poll(w, l.iv, 1, p->dynamic_m ? INT32_MAX : p->column_blocks,
            p->dynamic_m || block_work > (double)much ? much : (int64_t)block_work);
  each_size(k, &k->columns, emit_i64(w, k->columns.n_large), l.iv, column_body, &s);
  emit_loop_end(w, &l, NULL);
}

/* Sets k->sums, the loops over s (the products of a sum), with the strides of B as it lies in memory or, if it is
 * packed, of its panels.  Quantised weights have loops of their own (sum_quantized). */
static void set_sums(kernel *k) {
  const emit_product *p = k->p;
  bool panels = p->packing != EMIT_B_PLAIN;
  k->b_type = p->quantized_type ? k->w.e.w->i8 : emit_memory_type(k->w.e.w, k->type);
  if (p->quantized_type) {
    k->b_vector = (int64_t)emit_product_packed_bytes(p) / emit_product_panels_of(p);
    return;
  }
  k->b_vector = panels ? emit_product_panel(p) : p->lanes;
  for (int64_t j = p->n_sums, inner = p->lanes; j-- > 0;) { /* built from the innermost outwards, then reversed */
    emit_level s = p->sums[j];
    s.b = panels ? inner : s.b;
    inner *= s.n;
    emit_level *last = k->n_sums ? &k->sums[k->n_sums - 1] : NULL;
    if (last && s.a == last->n * last->a && s.b == last->n * last->b) {
      last->n *= s.n;
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

static void find_numbers(kernel *k) {
  const emit_ir *w = k->w.e.w;
  const emit_product *p = k->p;
  int64_t first = p->rows_first ? emit_product_row_steps(p) : emit_product_column_steps(p);
  k->rows = emit_product_rows(p);
  k->blocks = p->dynamic_m ? emit_writer_arg(&k->w, EMIT_PRODUCT_BLOCKS) : emit_i64(w, k->rows.blocks);
  k->large = p->dynamic_m ? emit_writer_arg(&k->w, EMIT_PRODUCT_LARGE) : emit_i64(w, k->rows.n_large);
  k->row_blocks = p->dynamic_m ? emit_writer_arg(&k->w, EMIT_PRODUCT_ROW_BLOCKS) : emit_i64(w, p->row_blocks);
  k->column_blocks = p->dynamic_m ? emit_writer_arg(&k->w, EMIT_PRODUCT_COLUMN_BLOCKS) : emit_i64(w, p->column_blocks);
  k->first = p->dynamic_m ? emit_writer_arg(&k->w, EMIT_PRODUCT_FIRST) : emit_i64(w, first);
}

static void write_product(kernel *k) {
  emit_ir *w = k->w.e.w;
  const emit_product *p = k->p;
  find_numbers(k);
  k->columns = emit_gemm_cut(emit_product_panels_of(p), (int)p->tile_vectors);
  k->direct = emit_is_light(k->w.i);
  set_sums(k);
  if (!k->direct || p->columns % p->lanes) {
    k->tile =
        LLVMBuildArrayAlloca(w->builder, sum_element(k), emit_i64(w, p->tile_rows * p->tile_vectors * p->lanes), "");
    LLVMSetAlignment(k->tile, 64);
  }
  emit_loop l;
  emit_loop_begin(w, &l, k->w.begin, k->w.end, 1, false, 0, NULL);
  uint32_t mark = emit_table_mark(k->w.e.x.table);
  write_step(k, l.iv);
  emit_table_release(k->w.e.x.table, mark);
  emit_loop_end(w, &l, NULL);
  k->w.info->grid = emit_product_outside(p) * emit_product_row_steps(p) * emit_product_column_steps(p);
  k->w.cost = emit_product_cost(p);
}

/* --- the kernels of the phases --- */

static void bind(kernel *k) {
  const emit_ir *w = k->w.e.w;
  k->contraction = emit_contraction_of(k->w.i);
  hlo_value weights = k->p->quantized_type && hlo_quantized_weights_of(k->contraction, &k->small)
                          ? k->small.q
                          : k->contraction->operands[1];
  k->a = emit_writer_operand(&k->w, k->contraction->operands[0]);
  k->b = emit_writer_operand(&k->w, weights);
  if (emit_product_scratch(k->p)) {
    int64_t copied =
        (k->p->padded_elements * (int64_t)dtype_bytes(k->type) + 63) / 64 * 64 / (int64_t)dtype_bytes(k->type);
    k->copy = emit_writer_buffer(&k->w, k->w.e.n_inputs + k->w.n_results);
    k->packed = at(k, k->copy, emit_i64(w, copied));
  }
}

status emit_product_write(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                          const void *config, uint32_t phase, emit_kernel_info *info) {
  kernel *k = ARENA_NEW(emit_module_ir_of(m)->arena, kernel);
  k->p = config;
  k->type = (dtype)k->p->type;
  TRY(emit_writer_begin(&k->w, m, name, i, options, emit_product_scratch(k->p) > 0, info));
  bind(k);
  bool pads = k->p->padded_elements > 0;
  if (phase == 0 && pads) {
    emit_product_padding(&k->w, k->p, k->a, k->copy);
  } else if (phase == pads && k->p->packing == EMIT_B_SCRATCH) {
    emit_product_panels(&k->w, k->p, k->b, k->packed);
  } else {
    k->a = pads ? k->copy : k->a;
    k->b = k->p->packing == EMIT_B_SCRATCH ? k->packed : k->b;
    write_product(k);
  }
  emit_writer_end(&k->w);
  return NULL;
}
