/* product_ladder.c - the kernel of product.h for products whose rows are divided like a ladder: a record for the steps
 * of macro_kernel.h. */
#include "emit/product/macro_kernel.h"
#include "emit/product/product_block.h"

_Static_assert((int)EMIT_MOST_RUNGS == 1 + (int)EMIT_PRODUCT_LOWER &&
                   (int)EMIT_MOST_OUTSIDE >= (int)EMIT_PRODUCT_LEVELS - 1 &&
                   (int)EMIT_MICRO_MOST_LOOPS >= (int)EMIT_PRODUCT_LEVELS,
               "the record has room for all rungs and loops");

/* The kernel that is being written. */
typedef struct ladder {
  emit_shared_kernel record;
  emit_product_kernel *k;
  const emit_product *p;
} ladder;

static dim times(const ladder *x, dim a, dim b) { return dim_mul(x->k->dims, a, b); }

/* Converts a distance in elements of A or B to one in bytes. */
static dim bytes_of(const ladder *x, dim elements) { return times(x, elements, (int64_t)dtype_bytes(x->k->type)); }

/* --- the blocks --- */

/* Puts rung number h into the record: the rows that blocks of this size, or narrower ones, compute. */
static void put_rung(ladder *x, int h, emit_product_block block) {
  const emit_product_columns columns = emit_product_columns_of(x->k->dims, x->p, block.vectors);
  const int64_t widths[] = {columns.large, columns.small};
  int at = EMIT_LADDER_RUNGS + h * EMIT_RUNG_ENTRIES;
  emit_put_number(&x->record, at + EMIT_RUNG_ROWS, block.rows);
  emit_put_size(&x->record, at + EMIT_RUNG_N_WIDE, columns.n_large);
  emit_put_size(&x->record, at + EMIT_RUNG_N, columns.n);
  for (int j = 0; j < 2; j++) {
    emit_put_number(&x->record, at + EMIT_RUNG_WIDTHS + j, widths[j]);
    if (widths[j]) {
      emit_put(&x->record, at + EMIT_RUNG_MICRO + j, emit_product_micro_kernel(x->k, block.rows, widths[j]));
    }
  }
}

/* Puts the rungs into the record, the highest one first. */
static void put_rungs(ladder *x) {
  const emit_product *p = x->p;
  int64_t last = p->tile_rows;
  int n = 0;
  put_rung(x, n++, (emit_product_block){p->tile_rows, p->tile_vectors});
  for (int h = 0; h < EMIT_PRODUCT_LOWER; h++) {
    if (p->lower[h].rows && p->lower[h].rows < last) {
      last = p->lower[h].rows;
      put_rung(x, n++, p->lower[h]);
    }
  }
  emit_put_number(&x->record, EMIT_LADDER_N_RUNGS, n);
}

/* Puts the loops over the products of a sum, and the loops around the blocks, into the record. */
static void put_loops(ladder *x) {
  const emit_product_kernel *k = x->k;
  const emit_row_cut *r = &k->rows;
  emit_put_size(&x->record, EMIT_LADDER_LOOPS + EMIT_MICRO_ROW, r->row_step);
  for (int64_t j = 0; j < k->n_sums; j++) {
    int at = EMIT_LADDER_LOOPS + EMIT_MICRO_FIRST_LOOP + (int)j * EMIT_MICRO_LOOP_ENTRIES;
    emit_put_size(&x->record, at, k->sums[j].n);
    emit_put_size(&x->record, at + 1, k->sums[j].a);
    emit_put_size(&x->record, at + 2, k->sums[j].b);
  }
  emit_put_number(&x->record, EMIT_LADDER_N_OUTSIDE, r->n_outside);
  for (int64_t j = 0; j < r->n_outside; j++) {
    const emit_level *level = &k->p->rows[r->n_outside - 1 - j];
    emit_put_size(&x->record, EMIT_LADDER_OUTSIDE + 2 * (int)j, level->n);
    emit_put_size(&x->record, EMIT_LADDER_OUTSIDE + 2 * (int)j + 1, bytes_of(x, level->a));
  }
}

static void put_blocks(ladder *x) {
  enum { ONE_ITERATION = 62 }; /* 2^62 row blocks are more than any product has */
  emit_product_kernel *k = x->k;
  const emit_row_cut *r = &k->rows;
  const int64_t one = (int64_t)1 << ONE_ITERATION;
  int64_t b_bytes = x->p->quantized_type ? 1 : (int64_t)dtype_bytes(k->type);
  emit_put(&x->record, EMIT_LADDER_EPILOGUE, emit_product_write_epilogue(k));
  emit_put_size(&x->record, EMIT_LADDER_INNER, r->inner);
  emit_put_size(&x->record, EMIT_LADDER_INSIDE,
                r->outer == 1 ? one : emit_dim_ceil_over(k->dims, r->inner, x->p->tile_rows));
  emit_put_size(&x->record, EMIT_LADDER_ROW_BYTES, bytes_of(x, r->row_step));
  emit_put_size(&x->record, EMIT_LADDER_COLUMNS, x->p->columns);
  emit_put_number(&x->record, EMIT_LADDER_LANES, x->p->lanes);
  emit_put_size(&x->record, EMIT_LADDER_VECTOR_BYTES, times(x, k->b_vector, b_bytes));
  put_rungs(x);
  put_loops(x);
}

/* --- the grid --- */

static void put_outside(ladder *x) {
  const emit_product *p = x->p;
  bool plain = p->packing == EMIT_B_PLAIN;
  dim panels = times(x, emit_product_panels_of(x->k->dims, p), emit_product_panel(x->k->dims, p));
  emit_put_size(&x->record, EMIT_LADDER_GROUPS, p->group.n);
  emit_put_size(&x->record, EMIT_LADDER_GROUP_A, bytes_of(x, p->group.a));
  emit_put_size(&x->record, EMIT_LADDER_GROUP_B, plain ? bytes_of(x, p->group.b) : 0);
  emit_put_size(&x->record, EMIT_LADDER_PANELS, plain ? 0 : bytes_of(x, panels));
  emit_put_size(&x->record, EMIT_LADDER_BATCH_ROWS, times(x, x->k->rows.outer, x->k->rows.inner));
  emit_put_number(&x->record, EMIT_LADDER_N_BATCH, p->n_batch);
  for (int64_t j = 0; j < p->n_batch; j++) {
    const emit_level *level = &p->batch[p->n_batch - 1 - j];
    int at = EMIT_LADDER_BATCH + 3 * (int)j;
    emit_put_size(&x->record, at, level->n);
    emit_put_size(&x->record, at + 1, bytes_of(x, level->a));
    emit_put_size(&x->record, at + 2, plain ? bytes_of(x, level->b) : 0);
  }
}

static void put_grid(ladder *x) {
  const emit_product *p = x->p;
  const emit_product_grid grid = emit_product_grid_of(x->k->dims, p);
  emit_put_buffer(&x->record, EMIT_LADDER_A, x->k->a.buffer);
  emit_put_buffer(&x->record, EMIT_LADDER_B, x->k->b.buffer);
  emit_put_size(&x->record, EMIT_LADDER_B_START, bytes_of(x, x->k->b.start));
  emit_put_size(&x->record, EMIT_LADDER_FIRST, p->rows_first ? grid.row_steps : grid.column_steps);
  emit_put_size(&x->record, EMIT_LADDER_SECOND, p->rows_first ? grid.column_steps : grid.row_steps);
  emit_put_number(&x->record, EMIT_LADDER_ROWS_FIRST, p->rows_first != 0);
  emit_put_size(&x->record, EMIT_LADDER_ROW_BLOCKS, grid.row_blocks);
  emit_put_size(&x->record, EMIT_LADDER_BLOCKS, x->k->rows.blocks);
  emit_put_size(&x->record, EMIT_LADDER_COLUMN_STEPS, grid.column_steps);
  put_outside(x);
}

void emit_product_write_ladder(emit_product_kernel *k) {
  ladder *x = ARENA_NEW(k->w.e.w->arena, ladder);
  x->k = k;
  x->p = k->p;
  emit_shared_kernel_begin(&x->record, &k->w, EMIT_LADDER_ENTRIES);
  put_blocks(x);
  put_grid(x);
  emit_shared_kernel_write(&x->record, &emit_macro_steps, emit_product_tile_bytes(k));
}
