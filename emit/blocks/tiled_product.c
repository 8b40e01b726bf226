/* tiled_product.c - see tiled_product.h. */
#include "emit/blocks/tiled_product.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "emit/blocks/sum_parts.h"
#include "emit/blocks/tile_geometry.h"
#include "emit/contraction/arithmetic.h"
#include "emit/element/elementwise.h"
#include "emit/kernel/block.h"
#include "emit/kernel/module.h"
#include "emit/kernel/writer.h"

enum { SIDE = EMIT_TILE_SIDE, THREADS = SIDE * SIDE, MOST = EMIT_TILE_MOST, MOST_SUMS = 16 };
enum { ALIGNMENT = 16 /* of shared memory, in bytes: the most that an instruction of a thread loads */ };

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

/* The likely size of a contraction; `sums` is 0 if sums may not be divided. */
typedef struct size_of_all {
  double rows, columns, batch, sums;
} size_of_all;

/* Returns how many blocks compute the result in tiles of so many rows and columns of a thread, if sums are whole; and
 * into how many parts they should be divided. */
static double blocks_of(const size_of_all *s, int64_t row_side, int64_t column_side) {
  return ceil(s->rows / (double)(SIDE * row_side)) * ceil(s->columns / (double)(SIDE * column_side)) * s->batch;
}

static int64_t parts_of(const size_of_all *s, int64_t row_side, int64_t column_side) {
  return emit_choose_parts(blocks_of(s, row_side, column_side), s->sums);
}

bool emit_choose_tile(const hlo_instr *i, bool divides, emit_tile *out) {
  enum { FEW_SUMS = 8, FEW_ELEMENTS = 8, ENOUGH_BLOCKS = 64 };
  const hlo_instr *c = emit_contraction_of(i);
  emit_tile_geometry g = emit_tile_geometry_of(c);
  const dim_table *t = c->parent->module->dims;
  double rows = emit_likely_size(t, g.rows.total), columns = emit_likely_size(t, g.columns.total);
  double sums = emit_likely_size(t, g.sums.total);
  const size_of_all size = {rows, columns, emit_likely_size(t, g.batch.total), divides ? sums : 0};
  if (sums < FEW_SUMS || rows < FEW_ELEMENTS || columns < FEW_ELEMENTS) {
    return false;
  }
  int64_t side = emit_is_light(i) ? MOST : MOST / 2; /* each element has a copy of the code behind the product */
  while (side > 1 && blocks_of(&size, side, side) * (double)parts_of(&size, side, side) < ENOUGH_BLOCKS) {
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

/* One side of the tile: the rows, or the columns. */
typedef struct side {
  uint32_t operand;
  const emit_tile_group *dims;
  int64_t extent, each; /* of the tile of a block, and of a thread */
  int64_t run;          /* how many neighbouring ones a thread has, which it loads from shared memory as a vector */
  int64_t pitch;        /* elements between two sums in shared memory */
  LLVMValueRef first;   /* the first row or column of the block's tile */
  LLVMValueRef shared;  /* [sums][pitch] */
  LLVMValueRef lane;    /* of the thread among the SIDE ones along this side */
  bool sums_first;      /* whether neighbouring threads load neighbouring sums, not neighbouring rows or columns */
} side;

typedef struct kernel {
  emit_writer w;
  const emit_ir *ir;
  emit_tile_geometry g;
  emit_tile tile;
  dtype type;          /* of the sums */
  LLVMTypeRef element; /* of a factor */
  LLVMValueRef thread;
  emit_tile_step step;
  emit_sum_part own; /* the sums that the block adds up */
  side rows, columns;
} kernel;

/* Returns the address of the element of shared memory at [sum][position]. */
static LLVMValueRef shared_at(const kernel *k, const side *s, LLVMValueRef sum, LLVMValueRef position) {
  LLVMValueRef at = emit_add(k->ir, emit_times(k->ir, sum, s->pitch), position);
  return LLVMBuildInBoundsGEP2(k->ir->builder, k->element, s->shared, &at, 1, "");
}

/* Where in shared memory is factor number `number` of those that a thread brings there for a side. */
typedef struct place {
  LLVMValueRef sum, position;
} place;

static place place_of(const kernel *k, const side *s, int64_t number) {
  const emit_ir *ir = k->ir;
  LLVMValueRef flat = emit_add(ir, k->thread, emit_i64(ir, number * THREADS));
  int64_t inner = s->sums_first ? k->tile.sums : s->extent;
  LLVMValueRef fast = emit_modulo(ir, flat, inner), slow = emit_over(ir, flat, inner);
  return s->sums_first ? (place){fast, slow} : (place){slow, fast};
}

/* Positions beyond the end are replaced by the last one, so that nothing outside of an array is read; their sums are
 * not stored.  Sums beyond the end become products of zeros. */
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
    LLVMBuildStore(k->ir->builder, v[j], shared_at(k, s, p.sum, p.position));
  }
}

/* Load the factors of both sides from first_sum on, and store them in shared memory: those of rows come first. */
static void load_sides(kernel *k, LLVMValueRef first_sum, LLVMValueRef *out) {
  load_side(k, &k->rows, first_sum, out);
  load_side(k, &k->columns, first_sum, out + brought(k, &k->rows));
}

static void store_sides(const kernel *k, const LLVMValueRef *v) {
  store_side(k, &k->rows, v);
  store_side(k, &k->columns, v + brought(k, &k->rows));
}

/* Returns the place in the block's tile of the thread's row or column number j. */
static LLVMValueRef own_position(const kernel *k, const side *s, int64_t j) {
  return emit_add(k->ir, emit_times(k->ir, s->lane, s->run), emit_i64(k->ir, j / s->run * s->run * SIDE + j % s->run));
}

/* Loads the thread's factors of a side for one sum. */
static void thread_factors(const kernel *k, const side *s, int64_t sum, LLVMValueRef *out) {
  LLVMTypeRef t = emit_vector_type(k->element, (int)s->run);
  size_t bytes = (size_t)s->run * dtype_bytes(k->type);
  for (int64_t j = 0; j < s->each; j += s->run) {
    LLVMValueRef at = shared_at(k, s, emit_i64(k->ir, sum), own_position(k, s, j));
    LLVMValueRef v = LLVMBuildLoad2(k->ir->builder, t, at, "");
    LLVMSetAlignment(v, (unsigned)(bytes < ALIGNMENT ? bytes : ALIGNMENT));
    for (int lane = 0; lane < s->run; lane++) {
      out[j + lane] = emit_lane(k->ir, v, lane);
    }
  }
}

static void multiply(const kernel *k, LLVMValueRef *acc) {
  LLVMValueRef a[MOST], b[MOST];
  for (int64_t sum = 0; sum < k->tile.sums; sum++) {
    thread_factors(k, &k->rows, sum, a);
    thread_factors(k, &k->columns, sum, b);
    for (int64_t i = 0; i < k->rows.each; i++) {
      for (int64_t j = 0; j < k->columns.each; j++) {
        LLVMValueRef *s = &acc[i * k->columns.each + j];
        *s = emit_multiply_add(k->ir, k->type, (emit_pair){a[i], NULL}, (emit_pair){b[j], NULL}, (emit_pair){*s, NULL})
                 .v;
      }
    }
  }
}

/* Loads the first factors into v[], which has n zeros, if there are sums at all. */
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

/* Returns the sum from which on factors are loaded while those from `sum` on are multiplied.  Where none follow, they
 * are loaded for nothing, from the last place from which as many can be read without a look at the end. */
static LLVMValueRef following(const kernel *k, LLVMValueRef sum) {
  dim total = k->g.sums.total;
  LLVMValueRef next = emit_add(k->ir, sum, emit_i64(k->ir, k->tile.sums));
  bool whole = dim_is_const(total) && total % k->tile.sums == 0;
  return whole ? emit_lesser(k->ir, next, emit_i64(k->ir, total - k->tile.sums)) : next;
}

/* Writes the loop over the block's sums; acc[] are the thread's sums.  A step multiplies the factors that the step
 * before has loaded, so that the time of loads is that of products. */
static void sum_up(kernel *k, LLVMValueRef *acc) {
  const emit_ir *ir = k->ir;
  int n = (int)(k->rows.each * k->columns.each), n_loaded = brought(k, &k->rows) + brought(k, &k->columns);
  LLVMValueRef v[EMIT_MAX_CARRIED], *loaded = v + n; /* 72 for the largest tile */
  for (int j = 0; j < n + n_loaded; j++) {
    v[j] = j < n ? emit_reduce_identity(ir, HLO_REDUCE_ADD, k->type).v : LLVMConstNull(k->element);
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
  multiply(k, v);
  emit_table_release(k->w.e.x.table, mark);
  emit_loop_end(ir, &l, v);
  memcpy(acc, l.carried, (size_t)n * sizeof *acc);
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

/* The threads of a warp share two rows, whose factors are broadcast in vectors of any length.  They have different
 * columns, of which two each make up all banks of shared memory; with more, what they store would be further apart. */
static side make_side(kernel *k, uint32_t operand, const emit_tile_group *dims, int64_t each, LLVMValueRef tile,
                      LLVMValueRef lane) {
  enum { PAD = 4 }; /* so that the threads of a warp that store eight sums of four lines use different banks */
  int64_t most = dims == &k->g.rows ? 4 : 2;
  side s = {.operand = operand, .dims = dims, .extent = SIDE * each, .each = each, .lane = lane};
  s.run = each < most ? each : most;
  s.pitch = s.extent + PAD;
  s.first = emit_times(k->ir, tile, s.extent);
  s.shared = emit_shared_memory(&k->w, k->element, k->tile.sums * s.pitch, ALIGNMENT);
  s.sums_first = emit_has_sums_innermost(k->g.c, operand);
  return s;
}

static void begin_tile(kernel *k) {
  const emit_ir *ir = k->ir;
  const emit_tile_step *step = &k->step;
  LLVMValueRef lane = emit_modulo(ir, k->thread, SIDE), line = emit_over(ir, k->thread, SIDE);
  uint32_t r = k->g.row_operand;
  k->step = emit_tile_step_of(&k->w, &k->g, SIDE * k->tile.rows, SIDE * k->tile.columns, k->tile.parts);
  k->own = emit_sums_of_part(&k->w, &k->g, step->part, k->tile.parts, k->tile.sums);
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
    /* a block without a step has nothing to do, and may have sizes of 0, by which nothing can be divided */
    LLVMBasicBlockRef after = emit_if_begin(k.ir, emit_icmp(k.ir, LLVMIntSLT, k.w.begin, k.w.end));
    begin_tile(&k);
    sum_up(&k, acc);
    store_tile(&k, acc);
    emit_if_end(k.ir, after);
  }
  emit_writer_end(&k.w);
  return emit_writer_check(&k.w);
}
