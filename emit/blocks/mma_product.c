/* mma_product.c - see mma_product.h. */
#include "emit/blocks/mma_product.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "emit/blocks/mma_product_internal.h"
#include "emit/llvm/arithmetic.h"
#include "emit/kernel/block.h"
#include "emit/kernel/module.h"

enum { CHUNK = EMIT_MMA_CHUNK, SIDE = EMIT_MMA_SIDE, MOST = 4 /* the most fragments of a warp's rows or columns */ };

/* --- choosing --- */

bool emit_takes_mma(const emit_target *t, const hlo_instr *i, dtype rounded) {
  if (!emit_has_tile_geometry(i)) {
    return false;
  }
  const hlo_instr *c = emit_contraction_of(i);
  dtype x = hlo_type(c->operands[0]), y = hlo_type(c->operands[1]), sum = emit_compute_type((dtype)c->shapes[0].type);
  bool is_f32 = x == DTYPE_F32 && y == DTYPE_F32;
  if (is_f32 != (rounded != DTYPE_INVALID)) {
    return false;
  }
  dtype wanted = dtype_is_int(x) ? DTYPE_S32 : x == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
  return emit_has_mma(t, is_f32 ? rounded : x, is_f32 ? rounded : y) && sum == wanted;
}

const emit_mma_tile emit_mma_tiles[EMIT_MMA_TILES] = {
    {4, 2, 2, 4, 0, 1, 0}, {2, 2, 2, 2, 0, 1, 0}, {2, 2, 1, 2, 0, 1, 0}, {1, 2, 2, 1, 0, 1, 0}, {1, 2, 1, 2, 0, 1, 0}};

bool emit_choose_mma_tile(const hlo_instr *i, bool divides, emit_mma_tile *out) {
  enum { FEW_SUMS = 16, FEW_ELEMENTS = 8 };
  const hlo_instr *c = emit_contraction_of(i);
  emit_tile_geometry g = emit_tile_geometry_of(c);
  const dim_table *t = c->parent->module->dims;
  double rows = emit_likely_size(t, g.rows.total), columns = emit_likely_size(t, g.columns.total);
  double batch = emit_likely_size(t, g.batch.total), least = INFINITY;
  double sums = emit_likely_size(t, g.sums.total);
  if (sums < FEW_SUMS || rows < FEW_ELEMENTS || columns < FEW_ELEMENTS) {
    return false;
  }
  for (int k = 0; k < EMIT_MMA_TILES; k++) {
    double high = (double)(SIDE * emit_mma_tiles[k].warp_rows * emit_mma_tiles[k].down);
    double wide = (double)(SIDE * emit_mma_tiles[k].warp_columns * emit_mma_tiles[k].across);
    double blocks = ceil(rows / high) * ceil(columns / wide) * batch;
    int64_t parts = divides ? emit_choose_parts(blocks, sums) : 1;
    /* the cost is in proportion to the factors that each processor loads, if all get equally many blocks */
    double cost = fmax(blocks, EMIT_ENOUGH_BLOCKS / (double)parts) * (high + wide);
    if (cost < least) {
      least = cost;
      *out = emit_mma_tiles[k];
      out->parts = parts;
    }
  }
  return true;
}

dim emit_count_mma_tiles(const hlo_instr *i, const emit_mma_tile *tile) {
  emit_tile_geometry g = emit_tile_geometry_of(emit_contraction_of(i));
  return emit_count_tiles(i->parent->module->dims, &g, SIDE * tile->warp_rows * tile->down,
                          SIDE * tile->warp_columns * tile->across);
}

/* --- the sums --- */

static int64_t stage_words(const emit_mma_kernel *k) {
  return emit_mma_side_words(k, &k->rows) + emit_mma_side_words(k, &k->columns);
}

static LLVMValueRef is_finite(const emit_mma_kernel *k, LLVMValueRef x) {
  LLVMValueRef size = emit_intrinsic1(k->ir, "llvm.fabs", x);
  return emit_fcmp(k->ir, LLVMRealOLT, size, LLVMConstReal(k->ir->f32, (double)INFINITY));
}

/* A fragment of rows or columns.  If its factors are split, `words` are their first terms b, and `rest` are their
 * second terms s (mma_product.h). */
typedef struct fragment {
  LLVMValueRef words[CHUNK], rest[CHUNK];
} fragment;

/* Splits the factor *word: *word becomes b, and *rest becomes s (mma_product.h).  A factor that is so large that
 * rounding would make b infinite is truncated instead. */
static void split_word(const emit_mma_kernel *k, LLVMValueRef *word, LLVMValueRef *rest) {
  enum { CUT = (1 << 13) - 1 }; /* the bits that tf32 does not have */
  const emit_ir *ir = k->ir;
  LLVMValueRef x = emit_float_of(ir, *word), rounded = emit_tf32(ir, x);
  LLVMValueRef cut = LLVMBuildAnd(ir->builder, *word, emit_i(*word, ~(int64_t)CUT), "");
  LLVMValueRef b = emit_select(ir, is_finite(k, rounded), emit_bits_of(ir, rounded), cut);
  LLVMValueRef left = LLVMBuildFSub(ir->builder, x, emit_float_of(ir, b), "");
  *rest = emit_bits_of(ir, emit_tf32(ir, left));
  *word = b;
}

static void load_fragment(emit_mma_kernel *k, const emit_mma_side *s, int64_t j, LLVMValueRef stage, int64_t word,
                          fragment *out) {
  emit_mma_load_fragment(k, s, j, stage, word, out->words);
  for (int n = 0; k->tile.split && n < CHUNK; n++) {
    split_word(k, &out->words[n], &out->rest[n]);
  }
}

/* Adds the products s b' and b s' of split factors to the sums.  They are added before the products b b', since they
 * are small.  If a factor is infinite, these products may add up to NaN although the whole sum is infinite, so they are
 * left out where their sum is not finite. */
static void multiply_rests(emit_mma_kernel *k, const fragment *row, const fragment *columns, int64_t half,
                           LLVMValueRef *acc) {
  enum { SUMS = 4 };
  const emit_ir *ir = k->ir;
  LLVMValueRef zero = LLVMConstNull(k->sum), sums[SUMS] = {zero, zero, zero, zero};
  LLVMValueRef column[] = {columns->words[half], columns->words[half + 2]};
  LLVMValueRef rest[] = {columns->rest[half], columns->rest[half + 2]};
  emit_mma(&k->w, DTYPE_F32, DTYPE_F32, row->rest, column, sums);
  emit_mma(&k->w, DTYPE_F32, DTYPE_F32, row->words, rest, sums);
  for (int n = 0; n < SUMS; n++) {
    LLVMValueRef more = emit_select(ir, is_finite(k, sums[n]), sums[n], zero);
    acc[n] = LLVMBuildFAdd(ir->builder, acc[n], more, "");
  }
}

/* Multiplies 16 rows by half of the 16 columns. */
static void multiply_fragments(emit_mma_kernel *k, const fragment *row, const fragment *columns, int64_t half,
                               LLVMValueRef *acc) {
  if (k->rows.type == DTYPE_F64) {
    emit_mma_f64(&k->w, row->words, columns->words[half], acc);
    return;
  }
  if (k->tile.split) {
    multiply_rests(k, row, columns, half, acc);
  }
  LLVMValueRef column[] = {columns->words[half], columns->words[half + 2]};
  emit_mma(&k->w, k->rows.type, k->columns.type, row->words, column, acc);
}

/* Adds the products of a stage, which begins at word number `stage`, to the warp's sums.  The four sums of row fragment
 * i and of the 8 columns number j are those from acc[4 * (i * across + j)] on. */
static void multiply(emit_mma_kernel *k, LLVMValueRef stage, LLVMValueRef *acc) {
  fragment rows[MOST], columns[MOST];
  int64_t across = 2 * k->tile.warp_columns;
  for (int64_t word = 0; word < EMIT_MMA_STAGE_WORDS; word += EMIT_MMA_WORDS) {
    for (int64_t j = 0; j < k->tile.warp_rows; j++) {
      load_fragment(k, &k->rows, j, stage, word, &rows[j]);
    }
    for (int64_t j = 0; j < k->tile.warp_columns; j++) {
      load_fragment(k, &k->columns, j, stage, word, &columns[j]);
    }
    for (int64_t i = 0; i < k->tile.warp_rows; i++) {
      for (int64_t j = 0; j < across; j++) {
        multiply_fragments(k, &rows[i], &columns[j / 2], j % 2, &acc[4 * (i * across + j)]);
      }
    }
  }
}

/* Returns the number of the first word of the stage that has the factors for positions in the sum from `sum` on, which
 * is a multiple of k->sums. */
static LLVMValueRef stage_of(const emit_mma_kernel *k, LLVMValueRef sum) {
  LLVMBuilderRef b = k->ir->builder;
  LLVMValueRef number = LLVMBuildUDiv(b, sum, emit_i64(k->ir, k->sums), "");
  return emit_times(k->ir, LLVMBuildURem(b, number, emit_i64(k->ir, k->stages), ""), stage_words(k));
}

/* Writes the loop over the positions in the sum that the block adds up (k->own), one stage in each iteration; acc[n]
 * are the thread's sums.  While a stage is multiplied, the k->stages - 1 stages after it are on their way.  After the
 * barrier of an iteration, all threads have brought the stage that is multiplied next, and have multiplied the stage
 * before it, whose memory is then used for the last stage on its way.  After the loop no copy is on its way. */
static void sum_up(emit_mma_kernel *k, int n, LLVMValueRef *acc) {
  const emit_ir *ir = k->ir;
  int64_t ahead = k->stages - 1;
  emit_mma_brought b;
  emit_mma_place_chunks(k, &b);
  for (int64_t j = 0; j < ahead; j++) {
    LLVMValueRef sum = emit_add(ir, k->own.from, emit_i64(ir, j * k->sums));
    emit_mma_begin_stage(k, sum, stage_of(k, sum), &b);
    emit_mma_end_stage(k, stage_of(k, sum), &b);
  }
  for (int j = 0; j < n; j++) {
    acc[j] = LLVMConstNull(k->sum);
  }
  emit_loop l;
  emit_loop_begin(ir, &l, k->own.from, k->own.past, k->sums, false, n, acc);
  memcpy(acc, l.carried, (size_t)n * sizeof *acc);
  emit_mma_await_stage(k, ahead - 1);
  emit_barrier(&k->w);
  LLVMValueRef next = emit_add(ir, l.iv, emit_i64(ir, ahead * k->sums)), to = stage_of(k, next);
  emit_mma_begin_stage(k, next, to, &b);
  multiply(k, stage_of(k, l.iv), acc);
  emit_mma_end_stage(k, to, &b);
  emit_loop_end(ir, &l, acc);
  memcpy(acc, l.carried, (size_t)n * sizeof *acc);
  emit_mma_await_stage(k, 0);
  emit_barrier(&k->w);
}

/* --- storing the tile --- */

/* Returns how many fragments of rows a warp stores at a time: as many as its share of the stages' memory can hold. */
static int64_t rows_at_once(const emit_mma_kernel *k, int64_t pitch) {
  int64_t n = k->tile.warp_rows, warps = k->tile.down * k->tile.across;
  int64_t words = k->rows.type == DTYPE_F64 ? 2 : 1; /* the words of a sum */
  while (n * SIDE * pitch * warps * words > k->stages * stage_words(k)) {
    n /= 2;
  }
  assert(n > 0);
  return n;
}

/* Returns the address of sum number `at` in the block's shared memory. */
static LLVMValueRef sum_place(const emit_mma_kernel *k, LLVMValueRef at) {
  return LLVMBuildInBoundsGEP2(k->ir->builder, k->sum, k->memory, &at, 1, "");
}

/* Stores the sums `acc` of a fragment of rows, as fragment number `to`, in the warp's memory, which begins at sum
 * number `memory` of the block's shared memory and has rows of `pitch` sums. */
static void spread_sums(const emit_mma_kernel *k, LLVMValueRef memory, int64_t pitch, int64_t to,
                        const LLVMValueRef *acc) {
  const emit_ir *ir = k->ir;
  LLVMValueRef lane = emit_lane_number(&k->w), quad = emit_over(ir, lane, 4),
               pair = emit_times(ir, emit_modulo(ir, lane, 4), 2);
  LLVMValueRef first = emit_add(ir, memory, emit_add(ir, emit_times(ir, quad, pitch), pair));
  for (int64_t j = 0; j < 2 * k->tile.warp_columns; j++) {
    for (int64_t half = 0; half < 2; half++) {
      int64_t at = (to * SIDE + half * SIDE / 2) * pitch + j * EMIT_MMA_COLUMNS;
      LLVMValueRef both = LLVMGetPoison(LLVMVectorType(k->sum, 2));
      both = emit_set_lane(ir, both, acc[4 * j + 2 * half], 0);
      both = emit_set_lane(ir, both, acc[4 * j + 2 * half + 1], 1);
      LLVMBuildStore(ir->builder, both, sum_place(k, emit_add(ir, first, emit_i64(ir, at))));
    }
  }
}

/* Stores the results of n rows of the warp, from row number `first` on; their sums lie in the warp's memory. */
static void store_rows(emit_mma_kernel *k, LLVMValueRef memory, int64_t pitch, int64_t first, int64_t n) {
  const emit_ir *ir = k->ir;
  int64_t columns = SIDE * k->tile.warp_columns;
  LLVMValueRef row_of_warp = emit_add(ir, emit_add(ir, k->rows.first, k->rows.of_warp), emit_i64(ir, first));
  LLVMValueRef column_of_warp = emit_add(ir, k->columns.first, k->columns.of_warp);
  emit_loop l;
  emit_loop_begin(ir, &l, emit_lane_number(&k->w), emit_i64(ir, n * columns), EMIT_WARP, true, 0, NULL);
  LLVMValueRef row = emit_over(ir, l.iv, columns), column = emit_modulo(ir, l.iv, columns);
  LLVMValueRef at = emit_add(ir, memory, emit_add(ir, emit_times(ir, row, pitch), column));
  LLVMValueRef sum = LLVMBuildLoad2(ir->builder, k->sum, sum_place(k, at), "");
  row = emit_add(ir, row_of_warp, row);
  column = emit_add(ir, column_of_warp, column);
  if (k->tile.parts > 1) {
    emit_store_part(&k->w, &k->g, &k->step, row, column, sum);
  } else {
    emit_store_tile_element(&k->w, &k->g, k->step.batch, row, column, sum);
  }
  emit_loop_end(ir, &l, NULL);
}

/* Stores the results of the tile, or its sums if they are parts of sums.  Each warp first leaves the sums of some rows
 * in shared memory, from which its lanes then store whole rows.  Each warp has memory of its own, so the barriers are
 * needed only for the threads of the same warp. */
static void store_tile(emit_mma_kernel *k, const LLVMValueRef *acc) {
  enum { ROW_PAD = 8 }; /* lets half a warp store pairs of sums in different banks */
  int64_t pitch = SIDE * k->tile.warp_columns + ROW_PAD, at_once = rows_at_once(k, pitch);
  LLVMValueRef memory = emit_times(k->ir, emit_warp_number(&k->w), at_once * SIDE * pitch);
  for (int64_t i = 0; i < k->tile.warp_rows; i += at_once) {
    if (i > 0) {
      emit_barrier(&k->w);
    }
    for (int64_t j = 0; j < at_once; j++) {
      spread_sums(k, memory, pitch, j, acc + 8 * k->tile.warp_columns * (i + j));
    }
    emit_barrier(&k->w);
    store_rows(k, memory, pitch, i * SIDE, at_once * SIDE);
  }
  if (k->tile.parts > 1) {
    emit_join_parts(&k->w, &k->g, &k->step, k->rows.extent, k->columns.extent, k->tile.parts);
  }
}

/* --- the whole --- */

/* Returns the number of stages.  It is three if factors are copied, since copies take long, and if most GPUs'
 * processors then still have room for the shared memory of two blocks; otherwise it is two. */
static int64_t choose_stages(const emit_mma_kernel *k) {
  enum { MOST_BYTES = 64 * 1024 };
  bool copies = emit_mma_copies(&k->rows) || emit_mma_copies(&k->columns);
  return copies && 3 * stage_words(k) * (int64_t)sizeof(int32_t) <= MOST_BYTES ? 3 : 2;
}

static void begin_tile(emit_mma_kernel *k) {
  const emit_ir *ir = k->ir;
  int64_t high = SIDE * k->tile.warp_rows, wide = SIDE * k->tile.warp_columns;
  const emit_tile_step *step = &k->step;
  uint32_t r = k->g.row_operand;
  k->step = emit_tile_step_of(&k->w, &k->g, high * k->tile.down, wide * k->tile.across, k->tile.parts);
  k->own = emit_part_of(&k->w.e.x, k->g.sums.total, step->part, k->tile.parts, k->sums);
  k->rows = emit_mma_make_side(k, r, &k->g.rows, high * k->tile.down, step->row, 0);
  k->columns =
      emit_mma_make_side(k, !r, &k->g.columns, wide * k->tile.across, step->column, emit_mma_side_words(k, &k->rows));
  LLVMValueRef warp = emit_warp_number(&k->w);
  k->rows.of_warp = emit_times(ir, emit_over(ir, warp, k->tile.across), high);
  k->columns.of_warp = emit_times(ir, emit_modulo(ir, warp, k->tile.across), wide);
  k->stages = choose_stages(k);
  k->memory = emit_shared_memory(&k->w, ir->i32, k->stages * stage_words(k), CHUNK * sizeof(int32_t));
}

status emit_mma_product_kernel(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                               const void *config, uint32_t phase, emit_kernel_info *info) {
  (void)phase;
  emit_mma_kernel k = {.tile = *(const emit_mma_tile *)config};
  LLVMValueRef acc[EMIT_MAX_CARRIED];
  TRY(emit_writer_begin(&k.w, m, name, i, options, k.tile.parts > 1 ? EMIT_PARTS_BUFFERS : 0, info));
  k.ir = k.w.e.w;
  k.g = emit_tile_geometry_of(emit_contraction_of(i));
  dtype x = k.tile.rounded ? (dtype)k.tile.rounded : hlo_type(k.g.c->operands[0]);
  k.sum = dtype_is_int(x) ? k.ir->i32 : x == DTYPE_F64 ? k.ir->f64 : k.ir->f32;
  k.sums = (int64_t)(EMIT_MMA_STAGE_WORDS * sizeof(int32_t) / dtype_bytes(x));
  k.threads = EMIT_WARP * k.tile.down * k.tile.across;
  if (!shape_is_empty(&k.g.c->shapes[0])) {
    emit_block_team(&k.w, (uint32_t)k.threads, (uint32_t)k.threads);
    k.thread = emit_thread_number(&k.w);
    /* a block without a step has nothing to do; it must not divide by sizes, which may then be 0 */
    LLVMBasicBlockRef after = emit_if_begin(k.ir, emit_icmp(k.ir, LLVMIntSLT, k.w.begin, k.w.end));
    begin_tile(&k);
    sum_up(&k, (int)(8 * k.tile.warp_rows * k.tile.warp_columns), acc);
    store_tile(&k, acc);
    emit_if_end(k.ir, after);
  }
  emit_writer_end(&k.w);
  return emit_writer_check(&k.w);
}
