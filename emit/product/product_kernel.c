/* product_kernel.c - the kernel of product.h that computes the product: the loops over the steps of the grid, and over
 * the register blocks of a step. */
#include "emit/llvm/arithmetic.h"
#include "emit/product/gemm.h"
#include "emit/product/product.h"
#include "emit/product/product_block.h"
#include "emit/kernel/module.h"
#include "hlo/analysis/quantized.h"

LLVMValueRef emit_level_offset(const emit_indexer *x, int64_t n, const emit_level *levels, bool in_b,
                               LLVMValueRef index) {
  LLVMValueRef sum = emit_i64(x->w, 0);
  for (int64_t l = n; l-- > 0;) {
    LLVMValueRef digit = l ? emit_modulo_size(x, index, levels[l].n) : index;
    sum = emit_add(x->w, sum, emit_times_size(x, digit, in_b ? levels[l].b : levels[l].a));
    index = l ? emit_over_size(x, index, levels[l].n) : index;
  }
  return sum;
}

/* A range of rows or columns that is divided into parts: first n_large parts of size `large`, then parts of size
 * `small`.  A size of 0 means that there are no such parts. */
typedef struct parts {
  int64_t large, small;
  LLVMValueRef n_large, n; /* n is the number of all parts */
} parts;

typedef struct kernel {
  emit_product_kernel k;
  emit_product_grid grid;
  parts rows; /* the blocks of one iteration of the loops around them */
  /* The numbers that product_internal.h lists as EMIT_PRODUCT_BLOCKS and so on.  column_blocks is NULL if the extents
   * of C are not all constants. */
  LLVMValueRef blocks, row_blocks, column_blocks, first;
  LLVMValueRef a, b; /* the addresses of the operands */
} kernel;

static parts parts_of(const emit_ir *w, const emit_gemm_parts *p) {
  int64_t large = p->n_large ? p->large : 0, small = p->n_small ? p->large - 1 : 0;
  return (parts){large, small, emit_i64(w, p->n_large), emit_i64(w, p->n_large + p->n_small)};
}

static parts column_parts(const kernel *x, int64_t vectors) {
  const emit_indexer *e = &x->k.w.e.x;
  const emit_product_columns c = emit_product_columns_of(x->k.dims, x->k.p, vectors);
  return (parts){c.large, c.small, emit_size(e, c.n_large), emit_size(e, c.n)};
}

typedef void part_body(kernel *x, void *data, LLVMValueRef start, int64_t size);

/* Writes the code for part number i of a range of rows or columns that is divided into parts.  `body` writes the code
 * for a part of a given size; if there are large and small parts, there are two branches, one for each size. */
static void each_size(kernel *x, const parts *p, LLVMValueRef i, part_body *body, void *data) {
  const emit_ir *w = x->k.w.e.w;
  if (!p->large || !p->small) {
    int64_t size = p->large + p->small;
    body(x, data, emit_times(w, i, size), size);
    return;
  }
  LLVMBasicBlockRef is[] = {emit_block(w, "large"), emit_block(w, "small")}, next = emit_block(w, "next");
  LLVMValueRef more = emit_times(w, emit_lesser(w, i, p->n_large), p->large - p->small);
  LLVMValueRef start = emit_add(w, emit_times(w, i, p->small), more);
  LLVMBuildCondBr(w->builder, emit_icmp(w, LLVMIntSLT, i, p->n_large), is[0], is[1]);
  for (int j = 0; j < 2; j++) {
    LLVMPositionBuilderAtEnd(w->builder, is[j]);
    body(x, data, start, j ? p->small : p->large);
    LLVMBuildBr(w->builder, next);
  }
  LLVMPositionBuilderAtEnd(w->builder, next);
}

typedef struct step {
  LLVMValueRef a, b, first_row, group;
  LLVMValueRef row_from, row_to; /* the step has the row blocks with numbers in [row_from, row_to) */
  LLVMValueRef column_step;      /* the step's number along the columns */
  emit_product_place block;
  LLVMValueRef outer;
} step;

/* --- the rows of a step --- */

static void row_body(kernel *x, void *data, LLVMValueRef unit, int64_t units) {
  const step *s = data;
  emit_product_write_block(&x->k, &s->block, s->outer, unit, units);
}

/* Returns the memory to prefetch, which is the panels after those of block b.  After the last panel of B there may be
 * other memory or none; prefetching it does no harm. */
static emit_fetch next_panels(const kernel *x, const emit_product_place *b) {
  const emit_product_kernel *k = &x->k;
  const emit_ir *w = k->w.e.w;
  if (!k->p->fetch_lines) {
    return (emit_fetch){0};
  }
  int64_t elements = b->vectors * k->b_vector;
  LLVMValueRef offset = emit_i64(w, elements), from = LLVMBuildGEP2(w->builder, k->b_type, b->b, &offset, 1, "");
  return (emit_fetch){from, emit_i64(w, elements * (int64_t)dtype_bytes(k->type)), (int)k->p->fetch_lines};
}

static void write_rows(kernel *x, step *s) {
  const emit_ir *w = x->k.w.e.w;
  bool one = x->k.rows.outer == 1;
  int64_t inside = x->k.rows.n_large + x->k.rows.n_small;
  const emit_fetch fetch = next_panels(x, &s->block);
  emit_loop l;
  emit_loop_begin(w, &l, s->row_from, s->row_to, 1, true, 0, NULL);
  if (fetch.from) {
    LLVMValueRef number = LLVMBuildNSWSub(w->builder, l.iv, s->row_from, "");
    LLVMValueRef n = LLVMBuildNSWSub(w->builder, s->row_to, s->row_from, "");
    s->block.fetch = emit_fetch_part(w, &fetch, number, n);
  }
  s->outer = one ? emit_i64(w, 0) : emit_over(w, l.iv, inside);
  each_size(x, &x->rows, one ? l.iv : emit_modulo(w, l.iv, inside), row_body, s);
  emit_loop_end(w, &l, NULL);
}

/* --- the columns of a step --- */

static void column_body(kernel *x, void *data, LLVMValueRef vector, int64_t vectors) {
  emit_product_kernel *k = &x->k;
  const emit_ir *w = k->w.e.w;
  step *s = data;
  LLVMValueRef column = emit_times(w, vector, k->p->lanes);
  s->block =
      (emit_product_place){.a = s->a,
                           .b = emit_product_b_at(k, s->b, emit_times_size(&k->w.e.x, vector, k->b_vector)),
                           .first_row = s->first_row,
                           .first_column = emit_add(w, emit_times_size(&k->w.e.x, s->group, k->p->columns), column),
                           .vector = vector,
                           .vectors = (int)vectors};
  write_rows(x, s);
}

/* Checks the run's budget (emit_poll) in the loop over the column blocks.  The loops over rows inside of it do not
 * check it. */
static void poll(const kernel *x, LLVMValueRef iv) {
  const emit_product *p = x->k.p;
  const int64_t much = 4 * EMIT_POLL;
  dim sums = emit_product_sums(x->k.dims, p);
  bool known = !p->dynamic_m && p->row_blocks && dim_is_const(sums);
  double work = known ? (double)sums * (double)(p->tile_rows * p->row_blocks * p->tile_vectors) : (double)much;
  emit_poll(x->k.w.e.w, iv, 1, known ? p->column_blocks : INT32_MAX, work > (double)much ? much : (int64_t)work);
}

static void write_columns(kernel *x, step *s) {
  const emit_ir *w = x->k.w.e.w;
  const parts columns = column_parts(x, x->k.p->tile_vectors);
  LLVMValueRef each = x->column_blocks;
  if (!each) {
    dim steps = x->grid.column_steps;
    LLVMValueRef less = LLVMBuildNSWSub(w->builder, emit_size(&x->k.w.e.x, steps), emit_i64(w, 1), "");
    each = emit_over_size(&x->k.w.e.x, emit_add(w, columns.n, less), steps);
  }
  LLVMValueRef from = LLVMBuildNSWMul(w->builder, s->column_step, each, "");
  LLVMValueRef to = emit_lesser(w, emit_add(w, from, each), columns.n);
  emit_loop l;
  emit_loop_begin(w, &l, from, to, 1, x->column_blocks != NULL, 0, NULL);
  poll(x, l.iv);
  each_size(x, &columns, l.iv, column_body, s);
  emit_loop_end(w, &l, NULL);
}

/* --- the steps of the grid --- */

/* The steps of the grid are numbered with its first dimension varying fastest.  Returns the position of step `item`
 * along that dimension if `place` is true, otherwise the step's number in the other dimensions. */
static LLVMValueRef of_first(const kernel *x, LLVMValueRef item, bool place) {
  const emit_ir *w = x->k.w.e.w;
  if (LLVMIsAConstantInt(x->first)) {
    int64_t n = LLVMConstIntGetSExtValue(x->first);
    return place ? emit_modulo(w, item, n) : emit_over(w, item, n);
  }
  return emit_opaque(
      w, place ? LLVMBuildURem(w->builder, item, x->first, "") : LLVMBuildUDiv(w->builder, item, x->first, ""));
}

/* Returns the address of B, or of its panels, for group number `group` of batch number `batch`; `outside` is the
 * group's number counted over all batches. */
static LLVMValueRef b_of(const kernel *x, LLVMValueRef outside, LLVMValueRef batch, LLVMValueRef group) {
  const emit_product_kernel *k = &x->k;
  const emit_indexer *e = &k->w.e.x;
  const emit_product *p = k->p;
  if (p->packing != EMIT_B_PLAIN) {
    dim panels = dim_mul(k->dims, emit_product_panels_of(k->dims, p), emit_product_panel(k->dims, p));
    return emit_product_at(k, x->b, emit_times_size(e, outside, panels));
  }
  LLVMValueRef offset = emit_level_offset(e, p->n_batch, p->batch, true, batch);
  return emit_product_at(k, x->b, emit_add(e->w, offset, emit_times(e->w, group, p->group.b)));
}

/* Writes step number `item` of the grid. */
static void write_step(kernel *x, LLVMValueRef item) {
  const emit_product_kernel *k = &x->k;
  const emit_indexer *e = &k->w.e.x;
  const emit_ir *w = e->w;
  const emit_product *p = k->p;
  /* Without batches and groups there is no third dimension, so that the position along the second needs no division. */
  bool flat = emit_product_outside(k->dims, p) == 1;
  dim second = p->rows_first ? x->grid.column_steps : x->grid.row_steps;
  LLVMValueRef i = of_first(x, item, true), rest = of_first(x, item, false);
  LLVMValueRef j = flat ? rest : emit_modulo_size(e, rest, second);
  LLVMValueRef outside = flat ? emit_i64(w, 0) : emit_over_size(e, rest, second);
  LLVMValueRef batch = emit_over(w, outside, p->group.n), group = emit_modulo(w, outside, p->group.n);
  LLVMValueRef rows = LLVMBuildNSWMul(w->builder, p->rows_first ? i : j, x->row_blocks, "");
  dim batch_rows = dim_mul(k->dims, k->rows.outer, k->rows.inner);
  step s = {.group = group, .row_from = rows, .first_row = emit_times_size(e, batch, batch_rows)};
  s.row_to = emit_lesser(w, emit_add(w, rows, x->row_blocks), x->blocks);
  s.column_step = p->rows_first ? j : i;
  LLVMValueRef a = emit_level_offset(e, p->n_batch, p->batch, false, batch);
  s.a = emit_product_at(k, x->a, emit_add(w, a, emit_times(w, group, p->group.a)));
  s.b = b_of(x, outside, batch, group);
  write_columns(x, &s);
}

static void find_numbers(kernel *x) {
  const emit_product_kernel *k = &x->k;
  const emit_ir *w = k->w.e.w;
  const emit_product *p = k->p;
  const emit_gemm_parts cut = {k->rows.n_large, k->rows.n_small, (int)k->rows.large};
  x->rows = parts_of(w, &cut);
  if (p->dynamic_m) {
    x->rows.n_large = emit_writer_arg(&k->w, EMIT_PRODUCT_LARGE);
    x->blocks = emit_writer_arg(&k->w, EMIT_PRODUCT_BLOCKS);
    x->row_blocks = emit_writer_arg(&k->w, EMIT_PRODUCT_ROW_BLOCKS);
    x->column_blocks = emit_writer_arg(&k->w, EMIT_PRODUCT_COLUMN_BLOCKS);
    x->first = emit_writer_arg(&k->w, EMIT_PRODUCT_FIRST);
    return;
  }
  const emit_indexer *e = &k->w.e.x;
  x->blocks = emit_size(e, k->rows.blocks);
  x->row_blocks = emit_size(e, x->grid.row_blocks);
  x->column_blocks = p->column_blocks ? emit_i64(w, p->column_blocks) : NULL;
  x->first = emit_size(e, p->rows_first ? x->grid.row_steps : x->grid.column_steps);
}

/* Returns the address of an array. */
static LLVMValueRef address_of(const emit_product_kernel *k, emit_array x) {
  LLVMValueRef base = x.buffer < k->w.e.n_inputs ? k->w.e.inputs[x.buffer].base : emit_writer_buffer(&k->w, x.buffer);
  return emit_product_at(k, base, emit_size(&k->w.e.x, x.start));
}

static void write_steps(kernel *x) {
  emit_product_kernel *k = &x->k;
  emit_loop l;
  find_numbers(x);
  x->a = address_of(k, k->a);
  x->b = address_of(k, k->b);
  emit_loop_begin(k->w.e.w, &l, k->w.begin, k->w.end, 1, false, 0, NULL);
  uint32_t mark = emit_table_mark(k->w.e.x.table);
  write_step(x, l.iv);
  emit_table_release(k->w.e.x.table, mark);
  emit_loop_end(k->w.e.w, &l, NULL);
}

static void write_product(kernel *x) {
  emit_product_kernel *k = &x->k;
  const emit_product *p = k->p;
  x->grid = emit_product_grid_of(k->dims, p);
  k->rows = emit_product_rows(k->dims, p);
  emit_product_blocks_begin(k);
  if (k->rows.ladder) {
    emit_product_write_ladder(k);
  } else {
    write_steps(x);
  }
  dim steps = dim_mul(k->dims, x->grid.row_steps, x->grid.column_steps);
  k->w.info->grid = dim_mul(k->dims, emit_product_outside(k->dims, p), steps);
  k->w.cost = emit_product_cost(k->dims, p);
}

/* --- the kernels of the phases --- */

/* Sets the operands of the product, and where the kernels of the phases copy them to. */
static void bind(emit_product_kernel *k) {
  const emit_product *p = k->p;
  k->contraction = emit_contraction_of(k->w.i);
  hlo_value weights = p->quantized_type && hlo_quantized_weights_of(k->contraction, &k->small)
                          ? k->small.q
                          : k->contraction->operands[1];
  uint32_t scratch = k->w.e.n_inputs + k->w.n_results;
  k->a = (emit_array){emit_writer_operand_number(&k->w, k->contraction->operands[0]), 0};
  k->b = (emit_array){emit_writer_operand_number(&k->w, weights), 0};
  k->copy = (emit_array){scratch, 0};
  k->packed = (emit_array){scratch, emit_product_scratch(k->dims, p) ? emit_product_copied(k->dims, p) : 0};
}

status emit_product_write(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                          const void *config, uint32_t phase, emit_kernel_info *info) {
  arena *a = emit_module_ir_of(m)->arena;
  emit_product *p = ARENA_NEW(a, emit_product);
  CHECK_THAT(emit_product_of(i, p), STATUS_INTERNAL, "%s is no product of matrices", hlo_info(i)->name);
  emit_product_choose_like(p, config);
  kernel *x = ARENA_NEW(a, kernel);
  emit_product_kernel *k = &x->k;
  k->p = p;
  k->dims = i->parent->module->dims;
  k->type = (dtype)p->type;
  TRY(emit_writer_begin(&k->w, m, name, i, options, emit_product_scratch(k->dims, p) != 0, info));
  bind(k);
  bool pads = p->padded_elements != 0;
  if (phase == 0 && pads) {
    emit_product_padding(&k->w, p, address_of(k, k->a), address_of(k, k->copy));
  } else if (phase == pads && p->packing == EMIT_B_SCRATCH) {
    emit_product_panels(&k->w, p, address_of(k, k->b), address_of(k, k->packed));
  } else {
    k->a = pads ? k->copy : k->a;
    k->b = p->packing == EMIT_B_SCRATCH ? k->packed : k->b;
    write_product(x);
  }
  emit_writer_end(&k->w);
  return emit_writer_check(&k->w);
}
