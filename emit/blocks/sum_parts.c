/* sum_parts.c - see sum_parts.h. */
#include "emit/blocks/sum_parts.h"

#include <math.h>

#include "emit/contraction/arithmetic.h"
#include "emit/element/elementwise.h"
#include "emit/kernel/module.h"

/* A stage is 16 or 32 sums, for which a block mostly waits.  A part should take longer than the launch of the second
 * kernel does, some microseconds; 256 sums are an estimate of that, which was not measured. */
int64_t emit_choose_parts(double blocks, double sums) {
  enum { ENOUGH_BLOCKS = 64, FEW_SUMS = 256 };
  int64_t parts = 1;
  while (2 * parts <= EMIT_MOST_PARTS && blocks * (double)parts < ENOUGH_BLOCKS &&
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

emit_sum_part emit_sums_of_part(const emit_writer *w, const emit_tile_geometry *g, LLVMValueRef part, int64_t parts,
                                int64_t step) {
  const emit_ir *ir = w->e.w;
  const emit_indexer *x = &w->e.x;
  LLVMValueRef total = emit_size(x, g->sums.total);
  if (parts == 1) {
    return (emit_sum_part){emit_i64(ir, 0), total};
  }
  dim_table *t = x->sizes->table;
  dim each = dim_mul(t, dim_ceildiv(t, g->sums.total, parts * step), step);
  LLVMValueRef from = emit_lesser(ir, emit_times_size(x, part, each), total);
  return (emit_sum_part){from, emit_lesser(ir, emit_add(ir, from, emit_size(x, each)), total)};
}

/* Returns the position in scratch memory of a part of the element at index `at` of the contraction's result. */
static emit_pos place_of(const emit_writer *w, const hlo_instr *c, LLVMValueRef part, const emit_index *at) {
  const emit_indexer *x = &w->e.x;
  emit_pos before = emit_pos_scale_by_size(x, emit_pos_at(part, 1), elements_of(x->sizes->table, c));
  return emit_pos_add(x, before, emit_index_linear(x, at));
}

static LLVMValueRef scratch_of(const emit_writer *w) { return emit_writer_buffer(w, w->i->n_operands + w->n_results); }

void emit_store_part(emit_writer *w, const emit_tile_geometry *g, LLVMValueRef batch, LLVMValueRef part,
                     LLVMValueRef row, LLVMValueRef column, LLVMValueRef sum) {
  emit_element *e = &w->e;
  LLVMBasicBlockRef after = emit_if_begin(e->w, emit_is_in_result(&e->x, g, row, column));
  uint32_t mark = emit_table_mark(e->x.table);
  emit_pos at = place_of(w, g->c, part, emit_tile_index(&e->x, g, batch, row, column));
  LLVMValueRef to = LLVMBuildInBoundsGEP2(e->w->builder, LLVMTypeOf(sum), scratch_of(w), &at.base, 1, "");
  LLVMBuildStore(e->w->builder, sum, to);
  emit_table_release(e->x.table, mark);
  emit_if_end(e->w, after);
}

/* --- the second kernel --- */

typedef struct joiner {
  const hlo_instr *c;
  int64_t parts;
} joiner;

static LLVMValueRef load_part(const emit_writer *w, const joiner *j, int64_t part, const emit_index *at) {
  const emit_ir *ir = w->e.w;
  LLVMTypeRef t = emit_register_type(ir, sum_type(j->c));
  emit_pos p = place_of(w, j->c, emit_i64(ir, part), at);
  return LLVMBuildLoad2(ir->builder, t, LLVMBuildInBoundsGEP2(ir->builder, t, scratch_of(w), &p.base, 1, ""), "");
}

/* All parts are loaded before the first sum, so that a thread waits only once. */
static void join_body(emit_writer *w, const void *data, const emit_index *at) {
  const joiner *j = data;
  const emit_ir *ir = w->e.w;
  LLVMValueRef part[EMIT_MOST_PARTS] = {NULL};
  for (int64_t k = 0; k < j->parts; k++) {
    part[k] = load_part(w, j, k, at);
  }
  emit_pair sum = {part[0], NULL};
  for (int64_t k = 1; k < j->parts; k++) {
    sum = emit_reduce_combine(ir, HLO_REDUCE_ADD, sum_type(j->c), sum, (emit_pair){part[k], NULL});
  }
  dtype result = (dtype)j->c->shapes[0].type;
  emit_element_set(&w->e, hlo_result((hlo_instr *)j->c, 0), at, (emit_pair){emit_narrow(ir, result, sum.v), NULL});
  emit_store_roots(w, at);
}

status emit_join_parts(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options, int64_t parts,
                       emit_kernel_info *info) {
  emit_writer w;
  joiner j = {emit_contraction_of(i), parts};
  TRY(emit_writer_begin(&w, m, name, i, options, 1, info));
  emit_nest(&w, j.c->shapes[0].rank, j.c->shapes[0].dims, 1, false, join_body, &j);
  emit_writer_end(&w);
  return emit_writer_check(&w);
}
