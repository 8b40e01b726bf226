/* sum_parts.c - see sum_parts.h. */
#include "emit/blocks/sum_parts.h"

#include <math.h>

#include "emit/llvm/arithmetic.h"
#include "emit/element/elementwise.h"
#include "emit/kernel/block.h"

/* A stage has the factors for 8 to 64 products of each sum, and a block mostly waits for stages.  A part should take
 * longer than storing and adding the parts, which takes some microseconds; that a part of 256 products does so is an
 * estimate, which was not measured. */
int64_t emit_choose_parts(double blocks, double sums) {
  enum { FEW_SUMS = 256 };
  int64_t parts = 1;
  while (2 * parts <= EMIT_MOST_PARTS && blocks * (double)parts < EMIT_ENOUGH_BLOCKS &&
         sums >= (double)(2 * parts * FEW_SUMS)) {
    parts *= 2;
  }
  return parts;
}

static dtype sum_type(const hlo_instr *c) { return emit_compute_type((dtype)c->shapes[0].type); }

static dim elements_of(dim_table *t, const hlo_instr *c) {
  return shape_dim_product(t, &c->shapes[0], 0, c->shapes[0].rank);
}

dim emit_parts_scratch(const hlo_instr *i, int64_t parts) {
  const hlo_instr *c = emit_contraction_of(i);
  dim_table *t = c->parent->module->dims;
  return dim_mul(t, elements_of(t, c), parts * (int64_t)dtype_bytes(sum_type(c)));
}

emit_sum_part emit_part_of(const emit_indexer *x, dim total, LLVMValueRef part, int64_t parts, int64_t step) {
  LLVMValueRef end = emit_size(x, total);
  if (parts == 1) {
    return (emit_sum_part){emit_i64(x->w, 0), end};
  }
  dim_table *t = x->sizes->table;
  dim each = dim_mul(t, dim_ceildiv(t, total, parts * step), step);
  LLVMValueRef from = emit_times_size(x, part, each);
  return (emit_sum_part){from, emit_lesser(x->w, emit_add(x->w, from, emit_size(x, each)), end)};
}

LLVMValueRef emit_parts_memory(const emit_writer *w) { return emit_writer_buffer(w, w->i->n_operands + w->n_results); }

LLVMValueRef emit_parts_counter(const emit_writer *w, LLVMValueRef tile) {
  LLVMValueRef counters = emit_writer_buffer(w, w->i->n_operands + w->n_results + 1);
  return LLVMBuildInBoundsGEP2(w->e.w->builder, w->e.w->i32, counters, &tile, 1, "");
}

/* Returns the position in scratch memory of a part of the element at index `at` of the contraction's result. */
static emit_pos place_of(const emit_writer *w, const hlo_instr *c, LLVMValueRef part, const emit_index *at) {
  const emit_indexer *x = &w->e.x;
  emit_pos before = emit_pos_scale_by_size(x, emit_pos_at(part, 1), elements_of(x->sizes->table, c));
  return emit_pos_add(x, before, emit_index_linear(x, at));
}

/* Returns the address in scratch memory of a part of the element at index `at` of the contraction's result. */
static LLVMValueRef address_of(const emit_writer *w, const hlo_instr *c, LLVMValueRef part, const emit_index *at) {
  const emit_ir *ir = w->e.w;
  emit_pos p = place_of(w, c, part, at);
  return LLVMBuildInBoundsGEP2(ir->builder, emit_register_type(ir, sum_type(c)), emit_parts_memory(w), &p.base, 1, "");
}

void emit_store_part(emit_writer *w, const emit_tile_geometry *g, const emit_tile_step *step, LLVMValueRef row,
                     LLVMValueRef column, LLVMValueRef sum) {
  emit_element *e = &w->e;
  LLVMBasicBlockRef after = emit_if_begin(e->w, emit_is_in_result(&e->x, g, row, column));
  uint32_t mark = emit_table_mark(e->x.table);
  const emit_index *at = emit_tile_index(&e->x, g, step->batch, row, column);
  LLVMBuildStore(e->w->builder, sum, address_of(w, g->c, step->part, at));
  emit_table_release(e->x.table, mark);
  emit_if_end(e->w, after);
}

/* Returns the sum of the parts of the element at index `at`.  All parts are loaded before the first addition, so that a
 * thread waits only once. */
static LLVMValueRef sum_of_parts(const emit_writer *w, const hlo_instr *c, int64_t parts, const emit_index *at) {
  const emit_ir *ir = w->e.w;
  LLVMTypeRef t = emit_register_type(ir, sum_type(c));
  LLVMValueRef part[EMIT_MOST_PARTS] = {NULL};
  for (int64_t k = 0; k < parts; k++) {
    part[k] = LLVMBuildLoad2(ir->builder, t, address_of(w, c, emit_i64(ir, k), at), "");
  }
  emit_pair sum = {part[0], NULL};
  for (int64_t k = 1; k < parts; k++) {
    sum = emit_reduce_combine(ir, HLO_REDUCE_ADD, sum_type(c), sum, (emit_pair){part[k], NULL});
  }
  return sum.v;
}

void emit_join_parts(emit_writer *w, const emit_tile_geometry *g, const emit_tile_step *step, int64_t rows,
                     int64_t columns, int64_t parts) {
  emit_element *e = &w->e;
  const emit_ir *ir = e->w;
  LLVMValueRef last = emit_is_last_block(w, emit_parts_counter(w, step->tile), emit_i64(ir, parts));
  LLVMBasicBlockRef unless_last = emit_if_begin(ir, last);
  emit_loop l;
  emit_loop_begin(ir, &l, emit_thread_number(w), emit_i64(ir, rows * columns), w->info->threads, true, 0, NULL);
  LLVMValueRef row = emit_add(ir, emit_times(ir, step->row, rows), emit_over(ir, l.iv, columns));
  LLVMValueRef column = emit_add(ir, emit_times(ir, step->column, columns), emit_modulo(ir, l.iv, columns));
  LLVMBasicBlockRef after = emit_if_begin(ir, emit_is_in_result(&e->x, g, row, column));
  uint32_t mark = emit_table_mark(e->x.table);
  LLVMValueRef sum = sum_of_parts(w, g->c, parts, emit_tile_index(&e->x, g, step->batch, row, column));
  emit_store_tile_element(w, g, step->batch, row, column, sum);
  emit_table_release(e->x.table, mark);
  emit_if_end(ir, after);
  emit_loop_end(ir, &l, NULL);
  emit_if_end(ir, unless_last);
}
