/* mma_product.c - see mma_product.h. */
#include "emit/blocks/mma_product.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "emit/blocks/tile_geometry.h"
#include "emit/contraction/arithmetic.h"
#include "emit/element/elementwise.h"
#include "emit/kernel/block.h"
#include "emit/kernel/module.h"

/* A chunk is what a thread brings into shared memory at once: 16 bytes of a row or column.  The pad lets the eight
 * chunks that a load or store of a warp accesses at a time lie in different banks. */
enum { CHUNK = 4, WORDS = 16, PAD = 4, PITCH = WORDS + PAD, CHUNKS = WORDS / CHUNK };
enum { SIDE = 16 /* a fragment's rows or columns */, MOST = 4, MOST_THREADS = 256, STAGES = 2 };
enum { MOST_SIDE = 128 /* rows or columns of a block */, LEAST_THREADS = 64 };

/* --- choosing --- */

bool emit_takes_mma(const emit_target *t, const hlo_instr *i) {
  if (!emit_has_tile_geometry(i)) {
    return false;
  }
  const hlo_instr *c = emit_contraction_of(i);
  dtype x = hlo_type(c->operands[0]), y = hlo_type(c->operands[1]), sum = emit_compute_type((dtype)c->shapes[0].type);
  return x != DTYPE_F32 && emit_has_mma(t, x, y) && sum == (dtype_is_int(x) ? DTYPE_S32 : DTYPE_F32);
}

const emit_mma_tile emit_mma_tiles[EMIT_MMA_TILES] = {
    {4, 2, 2, 4}, {2, 2, 2, 2}, {2, 2, 1, 2}, {1, 2, 2, 1}, {1, 2, 1, 2}};

bool emit_choose_mma_tile(const hlo_instr *i, emit_mma_tile *out) {
  enum { FEW_SUMS = 16, FEW_ELEMENTS = 8, ENOUGH_BLOCKS = 64 };
  const hlo_instr *c = emit_contraction_of(i);
  emit_tile_geometry g = emit_tile_geometry_of(c);
  const dim_table *t = c->parent->module->dims;
  double rows = emit_likely_size(t, g.rows.total), columns = emit_likely_size(t, g.columns.total);
  double batch = emit_likely_size(t, g.batch.total), least = INFINITY;
  if (emit_likely_size(t, g.sums.total) < FEW_SUMS || rows < FEW_ELEMENTS || columns < FEW_ELEMENTS) {
    return false;
  }
  for (int k = 0; k < EMIT_MMA_TILES; k++) {
    double high = (double)(SIDE * emit_mma_tiles[k].warp_rows * emit_mma_tiles[k].down);
    double wide = (double)(SIDE * emit_mma_tiles[k].warp_columns * emit_mma_tiles[k].across);
    double blocks = ceil(rows / high) * ceil(columns / wide) * batch;
    /* What a processor loads into shared memory for each sum, if every one has as many blocks as the others. */
    double cost = fmax(blocks, ENOUGH_BLOCKS) * (high + wide);
    if (cost < least) {
      least = cost;
      *out = emit_mma_tiles[k];
    }
  }
  return true;
}

/* --- the kernel --- */

/* One side of the tile: the rows, or the columns. */
typedef struct side {
  uint32_t operand;
  const emit_tile_group *dims;
  dtype type;           /* of the operand */
  int64_t extent;       /* of the tile of a block */
  int64_t offset;       /* in words, of the side's factors in a stage */
  LLVMValueRef first;   /* the first row or column of the block's tile */
  LLVMValueRef of_warp; /* the first one of the warp, in the block's tile */
  bool sums_first;      /* whether neighbouring threads load neighbouring chunks of one row or column */
} side;

typedef struct kernel {
  emit_writer w;
  const emit_ir *ir;
  emit_tile_geometry g;
  emit_mma_tile tile;
  int64_t threads, sums; /* of the block, and how many a stage has of each row and column */
  LLVMTypeRef sum;       /* the type of the sums */
  LLVMValueRef thread, batch, memory;
  side rows, columns;
} kernel;

static LLVMValueRef word_at(const kernel *k, LLVMValueRef at) {
  return LLVMBuildInBoundsGEP2(k->ir->builder, k->ir->i32, k->memory, &at, 1, "");
}

/* Returns the bits of a factor, which is given in the type of the sums, as an i32. */
static LLVMValueRef bits_of(const kernel *k, dtype t, LLVMValueRef v) {
  const emit_ir *ir = k->ir;
  LLVMValueRef bits = dtype_is_int(t) ? LLVMBuildTrunc(ir->builder, v, ir->i8, "") : emit_narrow(ir, t, v);
  return LLVMBuildZExt(ir->builder, bits, ir->i32, "");
}

/* A chunk on its way to shared memory. */
typedef struct chunk {
  LLVMValueRef at; /* the number of its first word, in a stage */
  LLVMValueRef words[CHUNK];
} chunk;

enum { MOST_CHUNKS = MOST_SIDE * CHUNKS / LEAST_THREADS };

static int chunks_of(const kernel *k, const side *s) {
  int64_t n = s->extent * CHUNKS / k->threads;
  assert(n > 0 && n <= MOST_CHUNKS && s->extent * CHUNKS % k->threads == 0);
  return (int)n;
}

/* Loads chunk number `number` of the thread's.  Positions beyond the end are replaced by the last one, so that nothing
 * outside of an array is read; their sums are not stored.  Sums beyond the end become products of zeros. */
static void load_chunk(kernel *k, const side *s, LLVMValueRef first_sum, int64_t number, chunk *out) {
  emit_element *e = &k->w.e;
  const emit_ir *ir = k->ir;
  LLVMValueRef flat = emit_add(ir, k->thread, emit_i64(ir, number * k->threads));
  int64_t inner = s->sums_first ? CHUNKS : s->extent;
  LLVMValueRef fast = emit_modulo(ir, flat, inner), slow = emit_over(ir, flat, inner);
  LLVMValueRef which = s->sums_first ? fast : slow, line = s->sums_first ? slow : fast;
  LLVMValueRef position = emit_within(&e->x, emit_add(ir, s->first, line), s->dims->total, s->extent);
  int64_t each = (int64_t)(sizeof(int32_t) / dtype_bytes(s->type));
  LLVMValueRef sum = emit_add(ir, first_sum, emit_times(ir, which, CHUNK * each));
  for (int64_t j = 0; j < CHUNK * each; j++) {
    LLVMValueRef own = emit_add(ir, sum, emit_i64(ir, j)), safe = emit_within(&e->x, own, k->g.sums.total, k->sums);
    LLVMValueRef bits = bits_of(k, s->type, emit_tile_factor(e, &k->g, s->operand, k->batch, position, safe));
    if (safe != own) {
      LLVMValueRef inside = emit_icmp(ir, LLVMIntSLT, own, emit_size(&e->x, k->g.sums.total));
      bits = emit_select(ir, inside, bits, LLVMConstNull(ir->i32));
    }
    LLVMValueRef shift = LLVMConstInt(ir->i32, (unsigned long long)(j % each) * 8 * dtype_bytes(s->type), false);
    LLVMValueRef part = LLVMBuildShl(ir->builder, bits, shift, "");
    LLVMValueRef *word = &out->words[j / each];
    *word = j % each ? LLVMBuildOr(ir->builder, *word, part, "") : part;
  }
  out->at =
      emit_add(ir, emit_times(ir, line, PITCH), emit_add(ir, emit_times(ir, which, CHUNK), emit_i64(ir, s->offset)));
}

/* The chunks of both sides that a thread brings. */
typedef struct brought {
  int n;
  chunk chunks[2 * MOST_CHUNKS];
} brought;

static void load_chunks(kernel *k, LLVMValueRef first_sum, brought *out) {
  const side *sides[] = {&k->rows, &k->columns};
  out->n = 0;
  for (int s = 0; s < 2; s++) {
    int n = chunks_of(k, sides[s]);
    for (int j = 0; j < n; j++) {
      load_chunk(k, sides[s], first_sum, j, &out->chunks[out->n++]);
    }
  }
}

/* Stores chunks in the stage whose first word is number `stage`. */
static void store_chunks(const kernel *k, LLVMValueRef stage, const brought *b) {
  for (int j = 0; j < b->n; j++) {
    LLVMValueRef all = LLVMGetPoison(LLVMVectorType(k->ir->i32, CHUNK));
    for (int c = 0; c < CHUNK; c++) {
      all = emit_set_lane(k->ir, all, b->chunks[j].words[c], c);
    }
    LLVMValueRef store = LLVMBuildStore(k->ir->builder, all, word_at(k, emit_add(k->ir, stage, b->chunks[j].at)));
    LLVMSetAlignment(store, CHUNK * sizeof(int32_t));
  }
}

/* Loads the next chunks if there are any; words are undefined otherwise. */
static void load_next(kernel *k, LLVMValueRef first_sum, brought *b) {
  const emit_ir *ir = k->ir;
  LLVMValueRef more = emit_icmp(ir, LLVMIntSLT, first_sum, emit_size(&k->w.e.x, k->g.sums.total));
  LLVMBasicBlockRef before = emit_here(ir), after = emit_if_begin(ir, more);
  uint32_t mark = emit_table_mark(k->w.e.x.table);
  load_chunks(k, first_sum, b);
  emit_table_release(k->w.e.x.table, mark);
  LLVMBasicBlockRef loaded = emit_here(ir);
  emit_if_end(ir, after);
  for (int j = 0; j < b->n; j++) {
    for (int c = 0; c <= CHUNK; c++) {
      LLVMValueRef *v = c < CHUNK ? &b->chunks[j].words[c] : &b->chunks[j].at;
      LLVMValueRef phi = LLVMBuildPhi(ir->builder, LLVMTypeOf(*v), "");
      LLVMAddIncoming(phi, (LLVMValueRef[]){*v, LLVMConstNull(LLVMTypeOf(*v))}, (LLVMBasicBlockRef[]){loaded, before},
                      2);
      *v = phi;
    }
  }
}

/* Loads the fragments of a warp's side for the words from number `word` on. */
static void load_fragments(kernel *k, const side *s, int64_t n, LLVMValueRef stage, int64_t word,
                           LLVMValueRef (*out)[CHUNK]) {
  const emit_ir *ir = k->ir;
  LLVMValueRef first = emit_add(ir, stage, emit_times(ir, s->of_warp, PITCH));
  for (int64_t j = 0; j < n; j++) {
    LLVMValueRef at = emit_add(ir, first, emit_i64(ir, s->offset + j * SIDE * PITCH + word));
    emit_load_fragment(&k->w, word_at(k, at), PITCH, out[j]);
  }
}

/* The sums of the warp's mma number [row][column] are the four from acc[4 * (row * columns + column)] on. */
static void multiply(kernel *k, LLVMValueRef stage, LLVMValueRef *acc) {
  LLVMValueRef rows[MOST][CHUNK], columns[MOST][CHUNK];
  int64_t across = 2 * k->tile.warp_columns;
  for (int64_t word = 0; word < WORDS; word += EMIT_MMA_WORDS) {
    load_fragments(k, &k->rows, k->tile.warp_rows, stage, word, rows);
    load_fragments(k, &k->columns, k->tile.warp_columns, stage, word, columns);
    for (int64_t i = 0; i < k->tile.warp_rows; i++) {
      for (int64_t j = 0; j < across; j++) {
        LLVMValueRef column[] = {columns[j / 2][j % 2], columns[j / 2][j % 2 + 2]};
        emit_mma(&k->w, k->rows.type, k->columns.type, rows[i], column, &acc[4 * (i * across + j)]);
      }
    }
  }
}

static int64_t stage_words(const kernel *k) { return (k->rows.extent + k->columns.extent) * PITCH; }

/* Returns the first word of the stage for the sums from `sum` on, which are a multiple of the stage's. */
static LLVMValueRef stage_of(const kernel *k, LLVMValueRef sum) {
  LLVMValueRef parity = LLVMBuildAnd(k->ir->builder, LLVMBuildUDiv(k->ir->builder, sum, emit_i64(k->ir, k->sums), ""),
                                     emit_i64(k->ir, STAGES - 1), "");
  return emit_times(k->ir, parity, stage_words(k));
}

/* Writes the loop over all sums; acc[] are the thread's.  While one stage is multiplied, the next is loaded. */
static void sum_up(kernel *k, int n, LLVMValueRef *acc) {
  const emit_ir *ir = k->ir;
  LLVMValueRef zero = emit_i64(ir, 0), end = emit_size(&k->w.e.x, k->g.sums.total);
  brought b;
  load_next(k, zero, &b);
  store_chunks(k, zero, &b);
  emit_barrier(&k->w);
  for (int j = 0; j < n; j++) {
    acc[j] = LLVMConstNull(k->sum);
  }
  emit_loop l;
  emit_loop_begin(ir, &l, zero, end, k->sums, false, n, acc);
  memcpy(acc, l.carried, (size_t)n * sizeof *acc);
  LLVMValueRef next = emit_add(ir, l.iv, emit_i64(ir, k->sums));
  load_next(k, next, &b);
  multiply(k, stage_of(k, l.iv), acc);
  store_chunks(k, stage_of(k, next), &b);
  emit_barrier(&k->w);
  emit_loop_end(ir, &l, acc);
  memcpy(acc, l.carried, (size_t)n * sizeof *acc);
}

/* --- storing the tile --- */

/* How many fragments of rows a warp stores at a time: as many as its share of the stages' memory has room for. */
static int64_t rows_at_once(const kernel *k, int64_t pitch) {
  int64_t n = k->tile.warp_rows, warps = k->tile.down * k->tile.across;
  while (n * SIDE * pitch * warps > STAGES * stage_words(k)) {
    n /= 2;
  }
  assert(n > 0);
  return n;
}

/* Stores the sums of fragment `row` of the warp in its memory, as row number `to`. */
static void spread_sums(const kernel *k, LLVMValueRef memory, int64_t pitch, int64_t to, const LLVMValueRef *acc) {
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
      LLVMBuildStore(ir->builder, both, word_at(k, emit_add(ir, first, emit_i64(ir, at))));
    }
  }
}

/* Stores the results of one element, unless it is beyond the end. */
static void store_element(kernel *k, LLVMValueRef row, LLVMValueRef column, LLVMValueRef sum) {
  LLVMBasicBlockRef after = emit_if_begin(k->ir, emit_is_in_tile(&k->w.e.x, &k->g, row, column));
  emit_store_tile_element(&k->w, &k->g, k->batch, row, column, sum);
  emit_if_end(k->ir, after);
}

/* Stores the results of n rows of the warp, from number `first` on, whose sums lie in its memory. */
static void store_rows(kernel *k, LLVMValueRef memory, int64_t pitch, int64_t first, int64_t n) {
  const emit_ir *ir = k->ir;
  int64_t columns = SIDE * k->tile.warp_columns;
  LLVMValueRef row_of_warp = emit_add(ir, emit_add(ir, k->rows.first, k->rows.of_warp), emit_i64(ir, first));
  LLVMValueRef column_of_warp = emit_add(ir, k->columns.first, k->columns.of_warp);
  emit_loop l;
  emit_loop_begin(ir, &l, emit_lane_number(&k->w), emit_i64(ir, n * columns), EMIT_WARP, true, 0, NULL);
  LLVMValueRef row = emit_over(ir, l.iv, columns), column = emit_modulo(ir, l.iv, columns);
  LLVMValueRef at = emit_add(ir, memory, emit_add(ir, emit_times(ir, row, pitch), column));
  LLVMValueRef sum = LLVMBuildLoad2(ir->builder, k->sum, word_at(k, at), "");
  store_element(k, emit_add(ir, row_of_warp, row), emit_add(ir, column_of_warp, column), sum);
  emit_loop_end(ir, &l, NULL);
}

/* Each warp has memory of its own, so that the barriers matter only within it. */
static void store_tile(kernel *k, const LLVMValueRef *acc) {
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
}

/* --- the whole --- */

static side make_side(const kernel *k, uint32_t operand, const emit_tile_group *dims, int64_t extent,
                      LLVMValueRef tile) {
  return (side){.operand = operand,
                .dims = dims,
                .type = hlo_type(k->g.c->operands[operand]),
                .extent = extent,
                .first = emit_times(k->ir, tile, extent),
                .sums_first = emit_has_sums_innermost(k->g.c, operand)};
}

static void begin_tile(kernel *k) {
  const emit_ir *ir = k->ir;
  int64_t high = SIDE * k->tile.warp_rows, wide = SIDE * k->tile.warp_columns;
  emit_tile_step step = emit_tile_step_of(&k->w, &k->g, high * k->tile.down, wide * k->tile.across);
  uint32_t r = k->g.row_operand;
  k->batch = step.batch;
  k->rows = make_side(k, r, &k->g.rows, high * k->tile.down, step.row);
  k->columns = make_side(k, !r, &k->g.columns, wide * k->tile.across, step.column);
  k->columns.offset = k->rows.extent * PITCH;
  LLVMValueRef warp = emit_warp_number(&k->w);
  k->rows.of_warp = emit_times(ir, emit_over(ir, warp, k->tile.across), high);
  k->columns.of_warp = emit_times(ir, emit_modulo(ir, warp, k->tile.across), wide);
  k->memory = emit_shared_memory(&k->w, ir->i32, STAGES * stage_words(k), CHUNK * sizeof(int32_t));
}

status emit_mma_product_kernel(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                               const void *config, uint32_t phase, emit_kernel_info *info) {
  (void)phase;
  kernel k = {.tile = *(const emit_mma_tile *)config};
  LLVMValueRef acc[EMIT_MAX_CARRIED];
  TRY(emit_writer_begin(&k.w, m, name, i, options, 0, info));
  k.ir = k.w.e.w;
  k.g = emit_tile_geometry_of(emit_contraction_of(i));
  dtype x = hlo_type(k.g.c->operands[0]);
  k.sum = dtype_is_int(x) ? k.ir->i32 : k.ir->f32;
  k.sums = (int64_t)(WORDS * sizeof(int32_t) / dtype_bytes(x));
  k.threads = EMIT_WARP * k.tile.down * k.tile.across;
  if (!shape_is_empty(&k.g.c->shapes[0])) {
    emit_block_team(&k.w, (uint32_t)k.threads, (uint32_t)k.threads);
    k.thread = emit_thread_number(&k.w);
    /* a block without a step has nothing to do, and may have sizes of 0, by which nothing can be divided */
    LLVMBasicBlockRef after = emit_if_begin(k.ir, emit_icmp(k.ir, LLVMIntSLT, k.w.begin, k.w.end));
    begin_tile(&k);
    sum_up(&k, (int)(8 * k.tile.warp_rows * k.tile.warp_columns), acc);
    store_tile(&k, acc);
    emit_if_end(k.ir, after);
  }
  emit_writer_end(&k.w);
  return emit_writer_check(&k.w);
}
