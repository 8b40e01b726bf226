/* tiled_product.c - see tiled_product.h. */
#include "emit/blocks/tiled_product.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "emit/blocks/sum_parts.h"
#include "emit/blocks/tile_geometry.h"
#include "emit/llvm/arithmetic.h"
#include "emit/element/elementwise.h"
#include "emit/kernel/block.h"
#include "emit/kernel/module.h"
#include "emit/kernel/writer.h"

enum { SIDE = EMIT_TILE_SIDE, THREADS = SIDE * SIDE, MOST = EMIT_TILE_MOST, MOST_SUMS = 16 };
enum { ALIGNMENT = 16 /* of shared memory, in bytes: the most that an instruction of a thread loads */ };
enum { COPIED = EMIT_TILE_COPY / 4, STAGES = 3 }; /* COPIED: the factors of 4 bytes that are copied at once */

/* --- choosing --- */

bool emit_takes_tiles(const hlo_instr *i) {
  if (!emit_has_tile_geometry(i)) {
    return false;
  }
  dtype t = (dtype)emit_contraction_of(i)->shapes[0].type;
  return dtype_is_float(t) || (dtype_is_int(t) && dtype_bytes(t) >= 4);
}

emit_tile emit_tile_of(int64_t rows, int64_t columns) {
  return (emit_tile){rows, columns, rows * columns > 16 ? 8 : MOST_SUMS, 1};
}

/* The likely sizes of a contraction.  `sums` is the number of products in a sum, or 0 if sums may not be divided. */
typedef struct size_of_all {
  double rows, columns, batch, sums;
} size_of_all;

/* Returns how many blocks compute the result if a thread has row_side rows and column_side columns, and sums are
 * whole. */
static double blocks_of(const size_of_all *s, int64_t row_side, int64_t column_side) {
  return ceil(s->rows / (double)(SIDE * row_side)) * ceil(s->columns / (double)(SIDE * column_side)) * s->batch;
}

/* Returns into how many parts the sums should be divided if a thread has row_side rows and column_side columns. */
static int64_t parts_of(const size_of_all *s, int64_t row_side, int64_t column_side) {
  return emit_choose_parts(blocks_of(s, row_side, column_side), s->sums);
}

bool emit_choose_tile(const hlo_instr *i, bool divides, emit_tile *out) {
  enum { FEW_SUMS = 8, FEW_ELEMENTS = 8 };
  const hlo_instr *c = emit_contraction_of(i);
  emit_tile_geometry g = emit_tile_geometry_of(c);
  const dim_table *t = c->parent->module->dims;
  double rows = emit_likely_size(t, g.rows.total), columns = emit_likely_size(t, g.columns.total);
  double sums = emit_likely_size(t, g.sums.total);
  const size_of_all size = {rows, columns, emit_likely_size(t, g.batch.total), divides ? sums : 0};
  if (sums < FEW_SUMS || rows < FEW_ELEMENTS || columns < FEW_ELEMENTS) {
    return false;
  }
  int64_t side = emit_is_light(i) ? MOST : MOST / 2; /* the epilogue is repeated for each element of a thread */
  while (side > 1 && blocks_of(&size, side, side) * (double)parts_of(&size, side, side) < EMIT_ENOUGH_BLOCKS) {
    side /= 2;
  }
  int64_t row_side = side, column_side = side;
  while (row_side > 1 && rows <= (double)(SIDE * row_side / 2)) {
    row_side /= 2;
  }
  while (column_side > 1 && columns <= (double)(SIDE * column_side / 2)) {
    column_side /= 2;
  }
  *out = emit_tile_of(row_side, column_side);
  out->parts = parts_of(&size, row_side, column_side);
  return true;
}

dim emit_count_tiles_of(const hlo_instr *i, const emit_tile *tile) {
  emit_tile_geometry g = emit_tile_geometry_of(emit_contraction_of(i));
  return emit_count_tiles(i->parent->module->dims, &g, SIDE * tile->rows, SIDE * tile->columns);
}

/* --- the kernel --- */

/* How the factors of a side get to shared memory.  If the factors of both sides can be copied, both are copied, and no
 * thread keeps factors in registers meanwhile.  Otherwise both are loaded. */
typedef enum transport {
  LOADED,      /* threads load factors, while those of the stage before are multiplied, and then store them */
  COPY_ACROSS, /* factors of neighbouring rows or columns are copied at once, as they are */
  COPY_ALONG   /* the same for factors of one row or column at neighbouring positions in the sum */
} transport;

/* Where a factor belongs: its position in the sum, counted from the stage's first one, and its row or column in the
 * tile. */
typedef struct place {
  LLVMValueRef sum, position;
} place;

/* One side of the tile: the rows, or the columns. */
typedef struct side {
  uint32_t operand;
  const emit_tile_group *dims;
  transport transport;
  int64_t extent, each; /* the number of rows or columns of the block's tile, and of a thread */
  int64_t run;          /* how many neighbouring rows or columns a thread loads from shared memory as a vector */
  int64_t sums;  /* for how many positions in the sum it loads one row or column as a vector; 1 unless COPY_ALONG */
  int64_t pitch; /* elements between two positions in the sum in shared memory; for COPY_ALONG between two rows or
                    columns */
  int64_t stage; /* elements between two stages */
  LLVMValueRef first;  /* the first row or column of the block's tile */
  LLVMValueRef shared; /* [stages][sums][pitch], for COPY_ALONG [stages][extent][pitch] */
  LLVMValueRef lane;   /* the number of the thread among the SIDE threads along this side */
  place copied;        /* the place of the first factor that the thread copies; not set if factors are LOADED */
  bool sums_first; /* whether neighbouring threads load neighbouring positions in the sum, and not rows or columns */
} side;

typedef struct kernel {
  emit_writer w;
  const emit_ir *ir;
  emit_tile_geometry g;
  emit_tile tile;
  dtype type;          /* the type of the sums */
  LLVMTypeRef element; /* the type of a factor */
  LLVMValueRef thread;
  emit_tile_step step;
  emit_sum_part own; /* the positions in the sum that the block adds up */
  side rows, columns;
  int64_t stages; /* the stages for which shared memory has room: STAGES if factors are copied, otherwise 1 */
} kernel;

/* Returns the address in shared memory of the factor of row or column `position` of the tile at position `sum` in the
 * sum, which is counted from the first one of stage number `stage`. */
static LLVMValueRef shared_at(const kernel *k, const side *s, LLVMValueRef stage, LLVMValueRef sum,
                              LLVMValueRef position) {
  bool along = s->transport == COPY_ALONG;
  LLVMValueRef line = along ? position : sum, in_line = along ? sum : position;
  LLVMValueRef at = emit_add(k->ir, emit_times(k->ir, line, s->pitch), in_line);
  at = emit_add(k->ir, emit_times(k->ir, stage, s->stage), at);
  return LLVMBuildInBoundsGEP2(k->ir->builder, k->element, s->shared, &at, 1, "");
}

/* Returns the place of factor number `number` of those that a thread loads for a side. */
static place place_of(const kernel *k, const side *s, int64_t number) {
  const emit_ir *ir = k->ir;
  LLVMValueRef flat = emit_add(ir, k->thread, emit_i64(ir, number * THREADS));
  int64_t inner = s->sums_first ? k->tile.sums : s->extent;
  LLVMValueRef fast = emit_modulo(ir, flat, inner), slow = emit_over(ir, flat, inner);
  return s->sums_first ? (place){fast, slow} : (place){slow, fast};
}

/* Loads factor number `number` of those that the thread brings for a side, for a stage that begins at position
 * first_sum in the sum.  A row or column beyond the end is replaced by the last one, so that nothing outside of an
 * array is read; its sums are not stored.  Beyond the end of the sum, factors are zeros. */
static LLVMValueRef load_factor(kernel *k, const side *s, LLVMValueRef first_sum, int64_t number) {
  emit_element *e = &k->w.e;
  const emit_ir *ir = k->ir;
  place p = place_of(k, s, number);
  LLVMValueRef sum = emit_add(ir, first_sum, p.sum);
  LLVMValueRef position = emit_within(&e->x, emit_add(ir, s->first, p.position), s->dims->total, s->extent);
  LLVMValueRef safe = emit_within(&e->x, sum, k->g.sums.total, k->tile.sums);
  LLVMValueRef v =
      emit_tile_factor(e, &k->g, s->operand, k->step.batch, emit_pos_at(position, 1), emit_pos_at(safe, 1));
  if (safe == sum) {
    return v;
  }
  LLVMValueRef inside = emit_icmp(ir, LLVMIntSLT, sum, emit_size(&e->x, k->g.sums.total));
  return emit_select(ir, inside, v, LLVMConstNull(k->element));
}

/* Returns how many factors of a side each thread brings. */
static int brought(const kernel *k, const side *s) {
  int n = (int)(s->extent * k->tile.sums / THREADS);
  assert(n > 0 && s->extent * k->tile.sums % THREADS == 0);
  return n;
}

static void load_side(kernel *k, const side *s, LLVMValueRef first_sum, LLVMValueRef *out) {
  for (int j = 0; j < brought(k, s); j++) {
    out[j] = load_factor(k, s, first_sum, j);
  }
}

static void store_side(const kernel *k, const side *s, const LLVMValueRef *v) {
  for (int j = 0; j < brought(k, s); j++) {
    place p = place_of(k, s, j);
    LLVMBuildStore(k->ir->builder, v[j], shared_at(k, s, emit_i64(k->ir, 0), p.sum, p.position));
  }
}

/* The first loads the thread's factors of both sides for positions in the sum from first_sum on; the second stores them
 * in shared memory.  In the array, those of the rows come first. */
static void load_sides(kernel *k, LLVMValueRef first_sum, LLVMValueRef *out) {
  load_side(k, &k->rows, first_sum, out);
  load_side(k, &k->columns, first_sum, out + brought(k, &k->rows));
}

static void store_sides(const kernel *k, const LLVMValueRef *v) {
  store_side(k, &k->rows, v);
  store_side(k, &k->columns, v + brought(k, &k->rows));
}

/* Returns how many copies fill a line of a side in shared memory.  Their factors follow each other in the operand,
 * too. */
static int64_t copies_of_line(const kernel *k, const side *s) {
  return (s->transport == COPY_ACROSS ? s->extent : k->tile.sums) / COPIED;
}

/* Returns the place of the first factor that the thread copies for a side.  Neighbouring threads copy factors that are
 * next to each other in the operand. */
static place copied_place(const kernel *k, const side *s) {
  int64_t inner = copies_of_line(k, s);
  LLVMValueRef fast = emit_times(k->ir, emit_modulo(k->ir, k->thread, inner), COPIED);
  LLVMValueRef slow = emit_over(k->ir, k->thread, inner);
  return s->transport == COPY_ACROSS ? (place){slow, fast} : (place){fast, slow};
}

/* Begins the thread's copies for a side.  If there are fewer copies than threads, the last threads have none. */
static void copy_side(kernel *k, const side *s, LLVMValueRef first_sum, LLVMValueRef stage) {
  const emit_ir *ir = k->ir;
  bool across = s->transport == COPY_ACROSS;
  int64_t n = s->extent * k->tile.sums / COPIED; /* the number of copies of all threads */
  LLVMBasicBlockRef after =
      n < THREADS ? emit_if_begin(ir, emit_icmp(ir, LLVMIntSLT, k->thread, emit_i64(ir, n))) : NULL;
  uint32_t mark = emit_table_mark(k->w.e.x.table);
  for (int64_t j = 0; j < n; j += THREADS) {
    place p = s->copied;
    LLVMValueRef *line = across ? &p.sum : &p.position;
    *line = emit_add(ir, *line, emit_i64(ir, j / copies_of_line(k, s)));
    emit_tile_copy_begin(&k->w, &k->g, s->operand, across, k->step.batch, emit_add(ir, s->first, p.position),
                         emit_add(ir, first_sum, p.sum), shared_at(k, s, stage, p.sum, p.position));
  }
  emit_table_release(k->w.e.x.table, mark);
  if (after) {
    emit_if_end(ir, after);
  }
}

/* Returns the place in the block's tile of the thread's row or column number j. */
static LLVMValueRef own_position(const kernel *k, const side *s, int64_t j) {
  return emit_add(k->ir, emit_times(k->ir, s->lane, s->run), emit_i64(k->ir, j / s->run * s->run * SIDE + j % s->run));
}

/* Loads `n` elements of shared memory as a vector. */
static LLVMValueRef load_vector(const kernel *k, LLVMValueRef at, int64_t n) {
  size_t bytes = (size_t)n * dtype_bytes(k->type);
  LLVMValueRef v = LLVMBuildLoad2(k->ir->builder, emit_vector_type(k->element, (int)n), at, "");
  LLVMSetAlignment(v, (unsigned)(bytes < ALIGNMENT ? bytes : ALIGNMENT));
  return v;
}

/* The thread's factors of a side for a few positions in the sum: of[position in the sum][row or column]. */
typedef struct factors {
  LLVMValueRef of[COPIED][MOST];
} factors;

/* Loads the thread's factors of a side for s->sums positions in the sum, from number `sum` of the stage on. */
static void load_own(const kernel *k, const side *s, LLVMValueRef stage, int64_t sum, factors *out) {
  bool along = s->sums > 1;
  for (int64_t j = 0; j < s->each; j += s->run) {
    int64_t n = along ? s->sums : s->run;
    LLVMValueRef v = load_vector(k, shared_at(k, s, stage, emit_i64(k->ir, sum), own_position(k, s, j)), n);
    for (int lane = 0; lane < n; lane++) {
      out->of[along ? lane : 0][along ? j : j + lane] = emit_lane(k->ir, v, lane);
    }
  }
}

/* Multiplies the factors of a stage, and adds the products to the thread's sums acc[], in order. */
static void multiply(const kernel *k, LLVMValueRef stage, LLVMValueRef *acc) {
  const side *rows = &k->rows, *columns = &k->columns;
  factors a, b;
  for (int64_t sum = 0; sum < k->tile.sums; sum++) {
    if (sum % rows->sums == 0) {
      load_own(k, rows, stage, sum, &a);
    }
    if (sum % columns->sums == 0) {
      load_own(k, columns, stage, sum, &b);
    }
    for (int64_t i = 0; i < rows->each; i++) {
      for (int64_t j = 0; j < columns->each; j++) {
        LLVMValueRef *s = &acc[i * columns->each + j], x = a.of[sum % rows->sums][i], y = b.of[sum % columns->sums][j];
        *s = emit_multiply_add(k->ir, k->type, (emit_pair){x, NULL}, (emit_pair){y, NULL}, (emit_pair){*s, NULL}).v;
      }
    }
  }
}

/* Loads the first factors into v[] if the block adds up any products; otherwise the n zeros in v[] stay. */
static void load_first(kernel *k, int n, LLVMValueRef *v) {
  enum { ONCE = INT32_MAX };
  dim total = k->g.sums.total;
  bool are_some = dim_is_const(total) && total > 0 && k->tile.parts == 1;
  emit_loop l;
  LLVMValueRef some = emit_lesser(k->ir, k->own.past, emit_add(k->ir, k->own.from, emit_i64(k->ir, 1)));
  emit_loop_begin(k->ir, &l, k->own.from, some, ONCE, are_some, n, v);
  uint32_t mark = emit_table_mark(k->w.e.x.table);
  load_sides(k, l.iv, v);
  emit_table_release(k->w.e.x.table, mark);
  emit_loop_end(k->ir, &l, v);
  memcpy(v, l.carried, (size_t)n * sizeof *v);
}

/* Returns the position in the sum from which on factors are loaded while those from `sum` on are multiplied.  The last
 * factors that are loaded are not used.  If the total is a multiple of tile.sums, load_factor does not check for the
 * end, so the position stays at least tile.sums before it. */
static LLVMValueRef following(const kernel *k, LLVMValueRef sum) {
  dim total = k->g.sums.total;
  LLVMValueRef next = emit_add(k->ir, sum, emit_i64(k->ir, k->tile.sums));
  bool whole = dim_is_const(total) && total % k->tile.sums == 0;
  return whole ? emit_lesser(k->ir, next, emit_i64(k->ir, total - k->tile.sums)) : next;
}

/* Writes the loop over the positions in the sum that the block adds up; acc[] are the thread's n sums, which begin at
 * 0.  An iteration multiplies the factors that the iteration before has loaded, so that loads and products overlap. */
static void sum_up_loaded(kernel *k, int n, LLVMValueRef *acc) {
  const emit_ir *ir = k->ir;
  int n_loaded = brought(k, &k->rows) + brought(k, &k->columns);
  LLVMValueRef v[EMIT_MAX_CARRIED], *loaded = v + n; /* 72 of v[] are used for the largest tile */
  memcpy(v, acc, (size_t)n * sizeof *v);
  for (int j = 0; j < n_loaded; j++) {
    loaded[j] = LLVMConstNull(k->element);
  }
  load_first(k, n_loaded, loaded);
  emit_loop l;
  emit_loop_begin(ir, &l, k->own.from, k->own.past, k->tile.sums, false, n + n_loaded, v);
  uint32_t mark = emit_table_mark(k->w.e.x.table);
  emit_barrier(&k->w); /* all threads have read what is overwritten now */
  store_sides(k, l.carried + n);
  emit_barrier(&k->w);
  memcpy(v, l.carried, (size_t)n * sizeof *v);
  load_sides(k, following(k, l.iv), loaded);
  multiply(k, emit_i64(ir, 0), v);
  emit_table_release(k->w.e.x.table, mark);
  emit_loop_end(ir, &l, v);
  memcpy(acc, l.carried, (size_t)n * sizeof *acc);
}

/* Begins copies of the factors from position `sum` in the sum on to a stage, and makes them one group.  If the block
 * adds up nothing from there on, the group is empty. */
static void begin_stage(kernel *k, LLVMValueRef sum, LLVMValueRef stage) {
  const emit_ir *ir = k->ir;
  LLVMBasicBlockRef after = emit_if_begin(ir, emit_icmp(ir, LLVMIntSLT, sum, k->own.past));
  uint32_t mark = emit_table_mark(k->w.e.x.table);
  copy_side(k, &k->rows, sum, stage);
  copy_side(k, &k->columns, sum, stage);
  emit_table_release(k->w.e.x.table, mark);
  emit_if_end(ir, after);
  emit_copy_commit(&k->w);
}

/* Returns `otherwise`, or `instead` if the stage has number n. */
static LLVMValueRef unless(const emit_ir *ir, LLVMValueRef stage, int64_t n, int64_t instead, LLVMValueRef otherwise) {
  return emit_select(ir, emit_icmp(ir, LLVMIntEQ, stage, emit_i64(ir, n)), emit_i64(ir, instead), otherwise);
}

/* Does what sum_up_loaded does, but loads the factors by asynchronous copies to shared memory (cp.async), which need no
 * registers.  While the factors of one stage are multiplied, the copies of the next two stages are under way.  At the
 * barrier of an iteration, the copies of all threads for the stage that is multiplied next have arrived, and all
 * threads have multiplied the stage before it, so that its memory is free for the copies that the iteration begins.
 * After the loop no copy is under way. */
static void sum_up_copied(kernel *k, int n, LLVMValueRef *acc) {
  enum { AHEAD = STAGES - 1 };
  const emit_ir *ir = k->ir;
  LLVMValueRef v[EMIT_MAX_CARRIED];
  for (int64_t j = 0; j < AHEAD; j++) {
    begin_stage(k, emit_add(ir, k->own.from, emit_i64(ir, j * k->tile.sums)), emit_i64(ir, j));
  }
  memcpy(v, acc, (size_t)n * sizeof *v);
  v[n] = emit_i64(ir, 0); /* the stage */
  emit_loop l;
  emit_loop_begin(ir, &l, k->own.from, k->own.past, k->tile.sums, false, n + 1, v);
  memcpy(v, l.carried, (size_t)n * sizeof *v);
  LLVMValueRef stage = l.carried[n], next = emit_add(ir, l.iv, emit_i64(ir, AHEAD * k->tile.sums));
  LLVMValueRef before = unless(ir, stage, 0, AHEAD, emit_add(ir, stage, emit_i64(ir, -1)));
  uint32_t mark = emit_table_mark(k->w.e.x.table);
  emit_copy_wait(&k->w, AHEAD - 1);
  emit_barrier(&k->w);
  begin_stage(k, next, before);
  multiply(k, stage, v);
  emit_table_release(k->w.e.x.table, mark);
  v[n] = unless(ir, stage, AHEAD, 0, emit_add(ir, stage, emit_i64(ir, 1)));
  emit_loop_end(ir, &l, v);
  memcpy(acc, l.carried, (size_t)n * sizeof *acc);
  emit_copy_wait(&k->w, 0);
}

static void sum_up(kernel *k, LLVMValueRef *acc) {
  int n = (int)(k->rows.each * k->columns.each);
  for (int j = 0; j < n; j++) {
    acc[j] = emit_reduce_identity(k->ir, HLO_REDUCE_ADD, k->type).v;
  }
  if (k->stages > 1) {
    sum_up_copied(k, n, acc);
  } else {
    sum_up_loaded(k, n, acc);
  }
}

static void store_tile(kernel *k, const LLVMValueRef *acc) {
  for (int64_t i = 0; i < k->rows.each; i++) {
    LLVMValueRef row = emit_add(k->ir, k->rows.first, own_position(k, &k->rows, i));
    for (int64_t j = 0; j < k->columns.each; j++) {
      LLVMValueRef column = emit_add(k->ir, k->columns.first, own_position(k, &k->columns, j));
      LLVMValueRef sum = acc[i * k->columns.each + j];
      if (k->tile.parts > 1) {
        emit_store_part(&k->w, &k->g, &k->step, row, column, sum);
      } else {
        emit_store_tile_element(&k->w, &k->g, k->step.batch, row, column, sum);
      }
    }
  }
  if (k->tile.parts > 1) {
    emit_join_parts(&k->w, &k->g, &k->step, k->rows.extent, k->columns.extent, k->tile.parts);
  }
}

/* Returns how the factors of an operand can be copied, or LOADED if they cannot. */
static transport copy_of(const kernel *k, uint32_t operand) {
  bool across, copies = dtype_bytes(k->type) == EMIT_TILE_COPY / COPIED &&
                        emit_has_tile_copies(&k->w.e, &k->g, operand, k->type, &across);
  return !copies ? LOADED : across ? COPY_ACROSS : COPY_ALONG;
}

/* Makes a side.  `most` is the largest number of rows or columns that a thread loads as a vector.  At a time, the
 * threads of a warp read two vectors of rows, which are broadcast and may be long, and 16 vectors of columns.  With two
 * columns each, these use all banks of shared memory; with more, the results that neighbouring threads store would be
 * further apart.
 *
 * For COPY_ALONG, a vector has factors of one row or column at neighbouring positions in the sum.  With the pad, eight
 * threads that read four factors of a column each use all banks.  The vectors of rows are shorter, since they take
 * fewer registers: with more than 128 for a thread, a GPU's processor would have room for one block only. */
static side make_side(kernel *k, uint32_t operand, const emit_tile_group *dims, int64_t each, LLVMValueRef tile,
                      LLVMValueRef lane) {
  enum { PAD = 4 }; /* lets a warp store factors at 8 positions in the sum of 4 rows or columns in different banks */
  int64_t most = dims == &k->g.rows ? 4 : 2;
  side s = {.operand = operand, .dims = dims, .extent = SIDE * each, .each = each, .lane = lane};
  s.transport = k->stages > 1 ? copy_of(k, operand) : LOADED;
  bool along = s.transport == COPY_ALONG;
  s.run = along ? 1 : each < most ? each : most;
  s.sums = !along ? 1 : dims == &k->g.rows ? COPIED / 2 : COPIED;
  s.pitch = (along ? k->tile.sums : s.extent) + PAD;
  s.stage = (along ? s.extent : k->tile.sums) * s.pitch;
  s.first = emit_times(k->ir, tile, s.extent);
  s.shared = emit_shared_memory(&k->w, k->element, k->stages * s.stage, ALIGNMENT);
  s.sums_first = emit_has_sums_innermost(k->g.c, operand);
  if (s.transport != LOADED) {
    s.copied = copied_place(k, &s);
  }
  return s;
}

static void begin_tile(kernel *k) {
  const emit_ir *ir = k->ir;
  const emit_tile_step *step = &k->step;
  LLVMValueRef lane = emit_modulo(ir, k->thread, SIDE), line = emit_over(ir, k->thread, SIDE);
  uint32_t r = k->g.row_operand;
  k->step = emit_tile_step_of(&k->w, &k->g, SIDE * k->tile.rows, SIDE * k->tile.columns, k->tile.parts);
  k->own = emit_part_of(&k->w.e.x, k->g.sums.total, step->part, k->tile.parts, k->tile.sums);
  k->stages = copy_of(k, 0) != LOADED && copy_of(k, 1) != LOADED ? STAGES : 1;
  k->rows = make_side(k, r, &k->g.rows, k->tile.rows, step->row, line);
  k->columns = make_side(k, !r, &k->g.columns, k->tile.columns, step->column, lane);
}

status emit_tiled_product_kernel(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                                 const void *config, uint32_t phase, emit_kernel_info *info) {
  (void)phase;
  kernel k = {.tile = *(const emit_tile *)config};
  LLVMValueRef acc[MOST * MOST];
  TRY(emit_writer_begin(&k.w, m, name, i, options, k.tile.parts > 1 ? EMIT_PARTS_BUFFERS : 0, info));
  k.ir = k.w.e.w;
  k.g = emit_tile_geometry_of(emit_contraction_of(i));
  k.type = emit_compute_type((dtype)k.g.c->shapes[0].type);
  k.element = emit_register_type(k.ir, k.type);
  if (!shape_is_empty(&k.g.c->shapes[0])) {
    emit_block_team(&k.w, THREADS, THREADS);
    k.thread = emit_thread_number(&k.w);
    /* a block without a step has nothing to do; it must not divide by sizes, which may then be 0 */
    LLVMBasicBlockRef after = emit_if_begin(k.ir, emit_icmp(k.ir, LLVMIntSLT, k.w.begin, k.w.end));
    begin_tile(&k);
    sum_up(&k, acc);
    store_tile(&k, acc);
    emit_if_end(k.ir, after);
  }
  emit_writer_end(&k.w);
  return emit_writer_check(&k.w);
}
