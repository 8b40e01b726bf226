/* block_attention_kernel.c - the kernel of block_attention.h: its tiles of rows, and the loop over their keys. */
#include <math.h>

#include "emit/blocks/block_attention_internal.h"
#include "emit/blocks/sum_parts.h"
#include "emit/llvm/arithmetic.h"
#include "emit/kernel/block.h"
#include "emit/kernel/module.h"

enum { LANES = EMIT_ATTENTION_LANES, GROUPS = EMIT_ATTENTION_GROUPS };

/* --- tiles --- */

/* Lists the numbers that are carried from tile to tile; returns how many. */
static int list(const emit_attention_block *k, emit_attention_rows *rows, LLVMValueRef **out) {
  int n = 0;
  for (int64_t r = 0; r < k->t.c.rows; r++) {
    out[n++] = &rows->most[r];
    out[n++] = &rows->shift[r];
    out[n++] = &rows->total[r];
  }
  for (int64_t j = 0; j < k->t.c.rows * k->t.strips; j++) {
    out[n++] = &rows->values[j];
  }
  return n;
}

static emit_attention_rows no_keys(const emit_attention_block *k) {
  emit_attention_rows rows;
  LLVMValueRef none = emit_f_of(k->element, -INFINITY);
  for (int64_t r = 0; r < k->t.c.rows; r++) {
    rows.most[r] = rows.shift[r] = none;
    rows.total[r] = LLVMConstNull(k->element);
  }
  for (int64_t j = 0; j < k->t.c.rows * k->t.strips; j++) {
    rows.values[j] = LLVMConstNull(emit_vector_type(k->element, (int)k->t.vector));
  }
  return rows;
}

static emit_attention_rows add_keys(emit_attention_block *k) {
  const emit_ir *ir = k->ir;
  emit_attention_rows rows = no_keys(k);
  LLVMValueRef *each[EMIT_MAX_CARRIED], values[EMIT_MAX_CARRIED], scores[EMIT_ATTENTION_SCORES];
  int n = list(k, &rows, each);
  for (int j = 0; j < n; j++) {
    values[j] = *each[j];
  }
  emit_sum_part own = emit_part_of(&k->w.e.x, k->a.keys, k->split, k->t.c.splits, k->t.keys);
  emit_loop l;
  emit_loop_begin(ir, &l, own.from, own.past, k->t.keys, false, n, values);
  uint32_t mark = emit_table_mark(k->w.e.x.table);
  for (int j = 0; j < n; j++) {
    *each[j] = l.carried[j];
  }
  k->first_key = l.iv;
  if (k->t.c.mma) {
    emit_attention_mma_add_keys(k, &rows);
  } else {
    emit_attention_scores(k, scores);
    emit_attention_softmax(k, scores, &rows);
    emit_attention_values(k, scores, rows.values);
  }
  for (int j = 0; j < n; j++) {
    values[j] = *each[j];
  }
  emit_table_release(k->w.e.x.table, mark);
  emit_loop_end(ir, &l, values);
  for (int j = 0; j < n; j++) {
    *each[j] = l.carried[j];
  }
  return rows;
}

/* Sets which rows and keys the thread has, and allocates shared memory. */
static void begin_groups(emit_attention_block *k) {
  const emit_ir *ir = k->ir;
  int64_t weights = GROUPS * k->t.c.rows * LANES * k->t.c.keys;
  k->lane = emit_modulo(ir, k->thread, LANES);
  k->group = emit_over(ir, k->thread, LANES);
  k->row_group = emit_over(ir, k->group, k->t.c.parts);
  k->part = emit_modulo(ir, k->group, k->t.c.parts);
  k->own_key = emit_add(ir, emit_times(ir, k->part, LANES * k->t.c.keys), k->lane);
  k->q = emit_shared_memory(&k->w, k->element, k->t.rows * k->t.padded, 64);
  k->weights = emit_shared_memory(&k->w, k->element, weights, 64);
  k->staged = emit_shared_memory(&k->w, k->element, k->t.staged, 64);
}

/* Divides the step's number into batch, tile and split, and sets the grid. */
static void begin_tile(emit_attention_block *k) {
  const emit_ir *ir = k->ir;
  emit_indexer *x = &k->w.e.x;
  dim tiles = dim_ceildiv(x->sizes->table, k->a.rows, k->t.rows);
  k->split = emit_modulo(ir, k->w.begin, k->t.c.splits);
  k->tile = emit_over(ir, k->w.begin, k->t.c.splits);
  k->batch = emit_over_size(x, k->tile, tiles);
  k->first_row = emit_times(ir, emit_modulo_size(x, k->tile, tiles), k->t.rows);
  k->w.info->grid = dim_mul(x->sizes->table, dim_mul(x->sizes->table, k->a.batches, tiles), k->t.c.splits);
}

static void write_tile(emit_attention_block *k) {
  begin_tile(k);
  if (k->t.c.mma) {
    emit_attention_mma_begin(k);
    emit_attention_mma_load_rows(k);
  } else {
    begin_groups(k);
    emit_attention_load_rows(k);
  }
  emit_attention_rows rows = add_keys(k);
  emit_attention_finish(k, &rows);
}

status emit_block_attention_kernel(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                                   const void *config, uint32_t phase, emit_kernel_info *info) {
  (void)phase;
  emit_attention_block *k = ARENA_NEW(emit_module_ir_of(m)->arena, emit_attention_block);
  CHECK_THAT(hlo_attention_of_fusion(i, &k->a) && emit_attention_tile_of(&k->a, config, &k->t), STATUS_INTERNAL,
             "no attention by blocks");
  TRY(emit_writer_begin(&k->w, m, name, i, options, k->t.c.splits > 1 ? EMIT_PARTS_BUFFERS : 0, info));
  k->ir = k->w.e.w;
  k->element = emit_register_type(k->ir, k->t.type);
  emit_block_team(&k->w, (uint32_t)k->t.threads, (uint32_t)k->t.threads);
  k->thread = emit_thread_number(&k->w);
  /* a block without a step has nothing to do; it must not divide by sizes, which may then be 0 */
  LLVMBasicBlockRef after = emit_if_begin(k->ir, emit_icmp(k->ir, LLVMIntSLT, k->w.begin, k->w.end));
  write_tile(k);
  emit_if_end(k->ir, after);
  emit_writer_end(&k->w);
  return emit_writer_check(&k->w);
}
