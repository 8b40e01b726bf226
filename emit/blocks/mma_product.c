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
  return emit_has_mma(t, is_f32 ? rounded : x, is_f32 ? rounded : y) &&
         sum == (dtype_is_int(x) ? DTYPE_S32 : DTYPE_F32);
}

const emit_mma_tile emit_mma_tiles[EMIT_MMA_TILES] = {
    {4, 2, 2, 4, 0}, {2, 2, 2, 2, 0}, {2, 2, 1, 2, 0}, {1, 2, 2, 1, 0}, {1, 2, 1, 2, 0}};

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

/* How a thread loads factors: one by one; all of a chunk at once; or those of neighbouring rows or columns at once. */
typedef enum vectors { SINGLE, ALONG_SUMS, ACROSS } vectors;

/* One side of the tile: the rows, or the columns. */
typedef struct side {
  uint32_t operand;
  const emit_tile_group *dims;
  dtype type;           /* of the factors */
  int64_t extent;       /* of the tile of a block */
  int64_t offset;       /* in words, of the side's factors in a stage */
  LLVMValueRef first;   /* the first row or column of the block's tile */
  LLVMValueRef of_warp; /* the first one of the warp, in the block's tile */
  bool sums_first;      /* whether neighbouring threads load neighbouring chunks of one row or column */
  vectors vectors;
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

/* Returns the bits of factors, which are given in the type of the sums. */
static LLVMValueRef bits_of(const kernel *k, dtype t, LLVMValueRef v) {
  return dtype_is_int(t)  ? LLVMBuildTrunc(k->ir->builder, v, emit_type_like(v, k->ir->i8), "")
         : t == DTYPE_F32 ? emit_bits_of(k->ir, emit_tf32(k->ir, v))
                          : emit_narrow(k->ir, t, v);
}

/* A chunk on its way to shared memory. */
typedef struct chunk {
  LLVMValueRef at; /* the number of its first word, in a stage */
  LLVMValueRef words[CHUNK];
} chunk;

enum { MOST_CHUNKS = MOST_SIDE * CHUNKS / LEAST_THREADS };

/* Returns how many chunks of a side each thread brings. */
static int chunks_of(const kernel *k, const side *s) {
  int64_t n = s->extent * CHUNKS / k->threads;
  assert(n > 0 && n <= MOST_CHUNKS && s->extent * CHUNKS % k->threads == 0);
  return (int)n;
}

static int factors_of_word(const side *s) { return (int)(sizeof(int32_t) / dtype_bytes(s->type)); }

/* Puts factor number j into its word. */
static void put_factor(const kernel *k, const side *s, chunk *c, int j, LLVMValueRef bits) {
  int each = factors_of_word(s), shift = j % each * 8 * (int)dtype_bytes(s->type);
  LLVMValueRef *word = &c->words[j / each];
  LLVMValueRef part = LLVMBuildZExt(k->ir->builder, bits, k->ir->i32, "");
  part = LLVMBuildShl(k->ir->builder, part, LLVMConstInt(k->ir->i32, (unsigned)shift, false), "");
  *word = j % each ? LLVMBuildOr(k->ir->builder, *word, part, "") : part;
}

/* Returns `bits` if the sum is one of those that there are, otherwise 0. */
static LLVMValueRef zero_beyond(const kernel *k, LLVMValueRef sum, LLVMValueRef bits) {
  if (dim_is_const(k->g.sums.total) && k->g.sums.total % k->sums == 0) {
    return bits;
  }
  LLVMValueRef inside = emit_icmp(k->ir, LLVMIntSLT, sum, emit_size(&k->w.e.x, k->g.sums.total));
  return emit_select(k->ir, inside, bits, LLVMConstNull(LLVMTypeOf(bits)));
}

/* Loads neighbouring factors of a row or column one by one. */
static void load_single(kernel *k, const side *s, LLVMValueRef position, LLVMValueRef sum, chunk *out) {
  for (int j = 0; j < CHUNK * factors_of_word(s); j++) {
    LLVMValueRef own = emit_add(k->ir, sum, emit_i64(k->ir, j));
    LLVMValueRef safe = emit_within(&k->w.e.x, own, k->g.sums.total, k->sums);
    LLVMValueRef v =
        emit_tile_factor(&k->w.e, &k->g, s->operand, k->batch, emit_pos_at(position, 1), emit_pos_at(safe, 1));
    put_factor(k, s, out, j, zero_beyond(k, own, bits_of(k, s->type, v)));
  }
}

/* Loads all factors of a chunk as a vector.  There are all of them, or none. */
static void load_along_sums(kernel *k, const side *s, LLVMValueRef position, LLVMValueRef sum, chunk *out) {
  emit_indexer *x = &k->w.e.x;
  int n = CHUNK * factors_of_word(s);
  LLVMValueRef safe = emit_lesser(k->ir, sum, emit_i64(k->ir, k->g.sums.total - n));
  x->lanes = n;
  LLVMValueRef v = emit_tile_factor(&k->w.e, &k->g, s->operand, k->batch, emit_pos_at(position, 1),
                                    emit_pos_along(emit_pos_at(safe, n), n));
  x->lanes = 1;
  LLVMValueRef words = LLVMBuildBitCast(k->ir->builder, bits_of(k, s->type, v), LLVMVectorType(k->ir->i32, CHUNK), "");
  for (int j = 0; j < CHUNK; j++) {
    out->words[j] = zero_beyond(k, sum, emit_lane(k->ir, words, j));
  }
}

/* Loads the factors of n neighbouring rows or columns, from `position` on, as vectors along them. */
static void load_across(kernel *k, const side *s, int n, LLVMValueRef position, LLVMValueRef sum, chunk *out) {
  emit_indexer *x = &k->w.e.x;
  LLVMValueRef safe_position = emit_lesser(k->ir, position, emit_i64(k->ir, s->dims->total - n));
  for (int j = 0; j < CHUNK * factors_of_word(s); j++) {
    LLVMValueRef own = emit_add(k->ir, sum, emit_i64(k->ir, j)), safe = emit_within(x, own, k->g.sums.total, k->sums);
    x->lanes = n;
    LLVMValueRef v = emit_tile_factor(&k->w.e, &k->g, s->operand, k->batch,
                                      emit_pos_along(emit_pos_at(safe_position, n), n), emit_pos_at(safe, 1));
    x->lanes = 1;
    LLVMValueRef bits = bits_of(k, s->type, v);
    for (int c = 0; c < n; c++) {
      put_factor(k, s, &out[c], j, zero_beyond(k, own, emit_lane(k->ir, bits, c)));
    }
  }
}

/* Where one of a thread's chunks is: neighbouring threads have neighbouring chunks of one row or column, or
 * neighbouring rows or columns, as the operand lies. */
typedef struct chunk_place {
  LLVMValueRef line, which; /* the row or column of the tile, and the number of the chunk in it */
} chunk_place;

/* Returns how many chunks, of neighbouring rows or columns, are loaded together. */
static int chunks_at_once(const kernel *k, const side *s) { return s->vectors == ACROSS ? chunks_of(k, s) : 1; }

static chunk_place place_of(const kernel *k, const side *s, int number) {
  const emit_ir *ir = k->ir;
  int wide = chunks_at_once(k, s);
  LLVMValueRef flat = emit_add(ir, k->thread, emit_i64(ir, number / wide * k->threads));
  int64_t inner = s->sums_first ? CHUNKS : s->extent / wide;
  LLVMValueRef fast = emit_modulo(ir, flat, inner), slow = emit_over(ir, flat, inner);
  LLVMValueRef line = emit_times(ir, s->sums_first ? slow : fast, wide);
  return (chunk_place){emit_add(ir, line, emit_i64(ir, number % wide)), s->sums_first ? fast : slow};
}

/* Loads the thread's chunks of a side, for the sums from first_sum on.  Positions beyond the end are replaced by the
 * last one, so that nothing outside of an array is read; their sums are not stored.  Sums beyond the end become
 * products of zeros. */
static void load_side(kernel *k, const side *s, LLVMValueRef first_sum, chunk *out) {
  const emit_ir *ir = k->ir;
  int n = chunks_of(k, s), wide = chunks_at_once(k, s);
  for (int j = 0; j < n; j += wide) {
    chunk_place p = place_of(k, s, j);
    LLVMValueRef sum = emit_add(ir, first_sum, emit_times(ir, p.which, CHUNK * factors_of_word(s)));
    LLVMValueRef own = emit_add(ir, s->first, p.line);
    LLVMValueRef position = emit_within(&k->w.e.x, own, s->dims->total, s->extent);
    if (s->vectors == ACROSS) {
      load_across(k, s, n, own, sum, out);
    } else if (s->vectors == ALONG_SUMS) {
      load_along_sums(k, s, position, sum, &out[j]);
    } else {
      load_single(k, s, position, sum, &out[j]);
    }
  }
}

/* The chunks of both sides that a thread brings. */
typedef struct brought {
  int n;
  chunk chunks[2 * MOST_CHUNKS];
} brought;

/* Sets where in a stage the thread's chunks belong. */
static void place_chunks(const kernel *k, brought *b) {
  const side *sides[] = {&k->rows, &k->columns};
  b->n = 0;
  for (int s = 0; s < 2; s++) {
    for (int j = 0; j < chunks_of(k, sides[s]); j++) {
      chunk_place p = place_of(k, sides[s], j);
      LLVMValueRef word = emit_add(k->ir, emit_times(k->ir, p.which, CHUNK), emit_i64(k->ir, sides[s]->offset));
      b->chunks[b->n++].at = emit_add(k->ir, emit_times(k->ir, p.line, PITCH), word);
    }
  }
}

static void load_chunks(kernel *k, LLVMValueRef first_sum, brought *out) {
  load_side(k, &k->rows, first_sum, out->chunks);
  load_side(k, &k->columns, first_sum, out->chunks + chunks_of(k, &k->rows));
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

/* Loads the next chunks if there are any; otherwise they are zeros. */
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
    for (int c = 0; c < CHUNK; c++) {
      LLVMValueRef *v = &b->chunks[j].words[c];
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
  place_chunks(k, &b);
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
  emit_store_tile_element(&k->w, &k->g, k->batch, emit_add(ir, row_of_warp, row), emit_add(ir, column_of_warp, column),
                          sum);
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

/* Vectors need an operand whose innermost dimension is as long as a multiple of them, and as many rows or columns: the
 * innermost dimension may be one of the batch. */
static vectors choose_vectors(const kernel *k, const side *s) {
  const hlo_instr *c = k->g.c;
  hlo_value v = c->operands[s->operand];
  dim inner = hlo_shape(v)->dims[hlo_rank(v) - 1], sums = k->g.sums.total;
  if (!emit_is_input(&k->w.e, v)) {
    return SINGLE;
  }
  if (s->sums_first) {
    dim run = c->op == HLO_DOT ? inner : sums; /* a convolution's weights have all sums of a channel in their order */
    return dim_is_const(run) && dim_is_const(sums) && run % (CHUNK * factors_of_word(s)) == 0 ? ALONG_SUMS : SINGLE;
  }
  int n = chunks_of(k, s);
  bool across = c->op == HLO_DOT && n > 1 && (n & (n - 1)) == 0 && s->dims->n > 0;
  bool whole = dim_is_const(inner) && dim_is_const(s->dims->total) && inner % n == 0 && s->dims->total % n == 0;
  return across && whole ? ACROSS : SINGLE;
}

/* Returns the type of an operand's factors. */
static dtype factor_type(const kernel *k, uint32_t operand) {
  return k->tile.rounded ? (dtype)k->tile.rounded : hlo_type(k->g.c->operands[operand]);
}

static side make_side(const kernel *k, uint32_t operand, const emit_tile_group *dims, int64_t extent,
                      LLVMValueRef tile) {
  side s = {.operand = operand,
            .dims = dims,
            .type = factor_type(k, operand),
            .extent = extent,
            .first = emit_times(k->ir, tile, extent),
            .sums_first = emit_has_sums_innermost(k->g.c, operand)};
  s.vectors = choose_vectors(k, &s);
  return s;
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
  dtype x = factor_type(&k, 0);
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
