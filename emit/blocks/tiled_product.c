/* tiled_product.c - see tiled_product.h. */
#include "emit/blocks/tiled_product.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "emit/contraction/arithmetic.h"
#include "emit/element/elementwise.h"
#include "emit/kernel/block.h"
#include "emit/kernel/module.h"
#include "emit/kernel/writer.h"

enum { SIDE = EMIT_TILE_SIDE, THREADS = SIDE * SIDE, MOST = 8 /* rows and columns of a thread */, MOST_SUMS = 16 };

/* --- which dimensions are rows, columns and batch --- */

/* Some dimensions of the contraction's result, as one. */
typedef struct group {
  int n, of[SHAPE_MAX_RANK];
  dim extents[SHAPE_MAX_RANK];
  dim total;
} group;

typedef struct geometry {
  const hlo_instr *c;   /* the contraction */
  uint32_t row_operand; /* the operand that has the rows; the other one has the columns */
  group rows, columns, batch;
  /* A convolution of several groups has no dimension for them: they are the batch, and `channel`, the only dimension of
   * rows or of columns, counts the channels of one group.  -1: there is one group. */
  int channel;
  group sums; /* the space over which is summed (emit_contracted_extents); `of` is not used */
} geometry;

static void take(dim_table *t, group *g, int d, dim extent) {
  g->of[g->n] = d;
  g->extents[g->n++] = extent;
  g->total = dim_mul(t, g->total, extent);
}

static void take_range(dim_table *t, group *g, const shape *s, int from, int to) {
  for (int d = from; d < to; d++) {
    take(t, g, d, s->dims[d]);
  }
}

static void set_dot(geometry *g, dim_table *t, const shape *s) {
  int n_batch = (int)hlo_n_ints(g->c, HLO_ATTR_LHS_BATCH);
  int n_free = hlo_rank(g->c->operands[0]) - n_batch - g->sums.n, middle = n_batch + n_free;
  take_range(t, &g->batch, s, 0, n_batch);
  g->row_operand = s->rank == middle; /* the second operand has no dimension of its own */
  take_range(t, g->row_operand ? &g->columns : &g->rows, s, n_batch, middle);
  take_range(t, g->row_operand ? &g->rows : &g->columns, s, middle, s->rank);
}

static bool has_channels_first(const hlo_instr *c) { return hlo_int(c, HLO_ATTR_LAYOUT) == HLO_CHANNELS_FIRST; }

/* Returns the dimension of a convolution's result that counts channels. */
static int channel_of(const hlo_instr *c) { return has_channels_first(c) ? 1 : c->shapes[0].rank - 1; }

static void set_convolution(geometry *g, dim_table *t, const shape *s) {
  bool first = has_channels_first(g->c);
  int64_t groups = hlo_int(g->c, HLO_ATTR_GROUPS);
  int channel = channel_of(g->c);
  group *pixels = first ? &g->columns : &g->rows, *channels = first ? &g->rows : &g->columns;
  g->row_operand = first;
  take(t, pixels, 0, s->dims[0]);
  take_range(t, pixels, s, first ? 2 : 1, first ? s->rank : s->rank - 1);
  take(t, channels, channel, s->dims[channel] / groups);
  if (groups > 1) {
    take(t, &g->batch, channel, groups);
    g->channel = channel;
  }
}

static geometry geometry_of(const hlo_instr *c) {
  const group none = {.total = 1};
  geometry g = {.c = c, .channel = -1, .rows = none, .columns = none, .batch = none, .sums = none};
  dim_table *t = c->parent->module->dims;
  dim sums[SHAPE_MAX_RANK];
  int n = emit_contracted_extents(c, sums);
  for (int k = 0; k < n; k++) {
    take(t, &g.sums, k, sums[k]);
  }
  if (c->op == HLO_DOT) {
    set_dot(&g, t, &c->shapes[0]);
  } else {
    set_convolution(&g, t, &c->shapes[0]);
  }
  return g;
}

/* --- choosing --- */

bool emit_takes_tiles(const hlo_instr *i) {
  const hlo_instr *c = emit_contraction_of(i);
  hlo_in_place_update place;
  if (!c || emit_has_quantized_weights(i) || hlo_in_place_update_of(i, &place)) {
    return false;
  }
  dtype t = (dtype)c->shapes[0].type;
  bool number = dtype_is_float(t) || (dtype_is_int(t) && dtype_bytes(t) >= 4);
  return number && (c->op == HLO_DOT || dim_is_const(c->shapes[0].dims[channel_of(c)]));
}

bool emit_choose_tile(const hlo_instr *i, emit_tile *out) {
  enum { FEW_SUMS = 8, FEW_ELEMENTS = 8, ENOUGH_BLOCKS = 64 };
  const hlo_instr *c = emit_contraction_of(i);
  geometry g = geometry_of(c);
  const dim_table *t = c->parent->module->dims;
  double rows = emit_likely_size(t, g.rows.total), columns = emit_likely_size(t, g.columns.total);
  double batch = emit_likely_size(t, g.batch.total);
  if (emit_likely_size(t, g.sums.total) < FEW_SUMS || rows < FEW_ELEMENTS || columns < FEW_ELEMENTS) {
    return false;
  }
  int64_t side = emit_is_light(i) ? MOST : MOST / 2; /* each element has a copy of the code behind the product */
  while (side > 1 &&
         (ceil(rows / (double)(SIDE * side)) * ceil(columns / (double)(SIDE * side)) * batch < ENOUGH_BLOCKS)) {
    side /= 2;
  }
  int64_t row_side = side, column_side = side;
  while (row_side > 1 && rows <= (double)(SIDE * row_side / 2)) {
    row_side /= 2;
  }
  while (column_side > 1 && columns <= (double)(SIDE * column_side / 2)) {
    column_side /= 2;
  }
  *out = (emit_tile){row_side, column_side, row_side * column_side > 16 ? 8 : MOST_SUMS};
  return true;
}

/* --- the kernel --- */

/* One side of the tile: the rows, or the columns. */
typedef struct side {
  uint32_t operand;
  const group *dims;
  int64_t extent, each; /* of the tile of a block, and of a thread */
  int64_t pitch;        /* elements between two sums in shared memory */
  LLVMValueRef first;   /* the first row or column of the block's tile */
  LLVMValueRef shared;  /* [sums][pitch] */
  LLVMValueRef lane;    /* of the thread among the SIDE ones along this side */
  bool sums_first;      /* whether neighbouring threads load neighbouring sums, not neighbouring rows or columns */
} side;

typedef struct kernel {
  emit_writer w;
  const emit_ir *ir;
  geometry g;
  emit_tile tile;
  dtype type;          /* of the sums */
  LLVMTypeRef element; /* of a factor */
  LLVMValueRef thread, batch;
  side rows, columns;
} kernel;

/* Sets the axes of `at` along the dimensions of a group, whose position as one is p. */
static void set_axes(kernel *k, const group *g, LLVMValueRef p, emit_index *at) {
  emit_indexer *x = &k->w.e.x;
  if (g->n == 0) {
    return;
  }
  dim *total = ARENA_NEW_N(k->ir->arena, dim, 1);
  *total = g->total;
  emit_index *flat = emit_index_new(x, 1, total);
  emit_axis_at(flat, 0, emit_pos_at(p, 1));
  const emit_index *apart = emit_index_reshape(x, flat, g->n, g->extents);
  for (int d = 0; d < g->n; d++) {
    emit_axis_from(at, g->of[d], apart, d);
  }
}

/* Returns the index of the contraction's result at a row and a column of the block's batch. */
static emit_index *index_at(kernel *k, LLVMValueRef row, LLVMValueRef column) {
  emit_indexer *x = &k->w.e.x;
  const shape *s = &k->g.c->shapes[0];
  emit_index *at = emit_index_new(x, s->rank, s->dims);
  set_axes(k, &k->g.rows, row, at);
  set_axes(k, &k->g.columns, column, at);
  if (k->g.channel < 0) {
    set_axes(k, &k->g.batch, k->batch, at);
    return at;
  }
  bool is_row = k->g.rows.of[0] == k->g.channel;
  const group *channels = is_row ? &k->g.rows : &k->g.columns;
  LLVMValueRef before = emit_times_size(x, k->batch, channels->total);
  emit_axis_at(at, k->g.channel, emit_pos_at(emit_add(k->ir, before, is_row ? row : column), 1));
  return at;
}

/* Returns p, or the last position before n if p is not less. */
static LLVMValueRef within(kernel *k, LLVMValueRef p, dim n, int64_t step) {
  if (dim_is_const(n) && n % step == 0) {
    return p;
  }
  LLVMValueRef last = LLVMBuildNSWSub(k->ir->builder, emit_size(&k->w.e.x, n), emit_i64(k->ir, 1), "");
  return emit_lesser(k->ir, p, last);
}

/* Returns the address of the element of shared memory at [sum][position]. */
static LLVMValueRef shared_at(const kernel *k, const side *s, LLVMValueRef sum, LLVMValueRef position) {
  LLVMValueRef at = emit_add(k->ir, emit_times(k->ir, sum, s->pitch), position);
  return LLVMBuildInBoundsGEP2(k->ir->builder, k->element, s->shared, &at, 1, "");
}

/* The factor that a thread brings into shared memory: number `number` of those of its side. */
typedef struct brought {
  LLVMValueRef sum, position, value;
} brought;

/* Positions beyond the end are replaced by the last one, so that nothing outside of an array is read; their sums are
 * not stored.  Sums beyond the end become products of zeros. */
static brought load_factor(kernel *k, const side *s, LLVMValueRef first_sum, int64_t number) {
  emit_element *e = &k->w.e;
  const emit_ir *ir = k->ir;
  LLVMValueRef flat = emit_add(ir, k->thread, emit_i64(ir, number * THREADS));
  int64_t inner = s->sums_first ? k->tile.sums : s->extent;
  LLVMValueRef fast = emit_modulo(ir, flat, inner), slow = emit_over(ir, flat, inner);
  brought b = {.sum = s->sums_first ? fast : slow, .position = s->sums_first ? slow : fast};
  LLVMValueRef sum = emit_add(ir, first_sum, b.sum), zero = emit_i64(ir, 0);
  LLVMValueRef position = within(k, emit_add(ir, s->first, b.position), s->dims->total, s->extent);
  LLVMValueRef safe = within(k, sum, k->g.sums.total, k->tile.sums);
  emit_index *at = s == &k->rows ? index_at(k, position, zero) : index_at(k, zero, position);
  dim *total = ARENA_NEW_N(ir->arena, dim, 1);
  *total = k->g.sums.total;
  emit_index *r = emit_index_new(&e->x, 1, total);
  emit_axis_at(r, 0, emit_pos_at(safe, 1));
  const emit_index *apart = emit_index_reshape(&e->x, r, k->g.sums.n, k->g.sums.extents);
  b.value = emit_factor(e, k->g.c, s->operand, at, apart).v;
  if (safe != sum) {
    LLVMValueRef inside = emit_icmp(ir, LLVMIntSLT, sum, emit_size(&e->x, k->g.sums.total));
    b.value = emit_select(ir, inside, b.value, LLVMConstNull(k->element));
  }
  return b;
}

enum { MOST_BROUGHT = SIDE * MOST * MOST_SUMS / THREADS };

/* Loads the factors of a side for the next sums. */
static int load_side(kernel *k, const side *s, LLVMValueRef first_sum, brought *out) {
  int n = (int)(s->extent * k->tile.sums / THREADS);
  assert(n > 0 && n <= MOST_BROUGHT && s->extent * k->tile.sums % THREADS == 0);
  for (int j = 0; j < n; j++) {
    out[j] = load_factor(k, s, first_sum, j);
  }
  return n;
}

static void store_side(const kernel *k, const side *s, int n, const brought *b) {
  for (int j = 0; j < n; j++) {
    LLVMBuildStore(k->ir->builder, b[j].value, shared_at(k, s, b[j].sum, b[j].position));
  }
}

/* Loads the thread's factors of a side for one sum. */
static void thread_factors(const kernel *k, const side *s, int64_t sum, LLVMValueRef *out) {
  for (int64_t j = 0; j < s->each; j++) {
    LLVMValueRef position = emit_add(k->ir, s->lane, emit_i64(k->ir, j * SIDE));
    out[j] = LLVMBuildLoad2(k->ir->builder, k->element, shared_at(k, s, emit_i64(k->ir, sum), position), "");
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

/* Writes the loop over all sums; acc[] are the thread's sums. */
static void sum_up(kernel *k, LLVMValueRef *acc) {
  const emit_ir *ir = k->ir;
  int n = (int)(k->rows.each * k->columns.each);
  emit_pair zero = emit_reduce_identity(ir, HLO_REDUCE_ADD, k->type);
  for (int j = 0; j < n; j++) {
    acc[j] = zero.v;
  }
  emit_loop l;
  emit_loop_begin(ir, &l, emit_i64(ir, 0), emit_size(&k->w.e.x, k->g.sums.total), k->tile.sums, false, n, acc);
  uint32_t mark = emit_table_mark(k->w.e.x.table);
  brought rows[MOST_BROUGHT], columns[MOST_BROUGHT];
  int n_rows = load_side(k, &k->rows, l.iv, rows), n_columns = load_side(k, &k->columns, l.iv, columns);
  emit_barrier(&k->w); /* all threads have read what is overwritten now */
  store_side(k, &k->rows, n_rows, rows);
  store_side(k, &k->columns, n_columns, columns);
  emit_barrier(&k->w);
  memcpy(acc, l.carried, (size_t)n * sizeof *acc);
  multiply(k, acc);
  emit_table_release(k->w.e.x.table, mark);
  emit_loop_end(ir, &l, acc);
  memcpy(acc, l.carried, (size_t)n * sizeof *acc);
}

/* Stores the results of one element, unless it is beyond the end. */
static void store_element(kernel *k, LLVMValueRef row, LLVMValueRef column, LLVMValueRef sum) {
  emit_element *e = &k->w.e;
  const emit_ir *ir = k->ir;
  LLVMValueRef inside = LLVMBuildAnd(ir->builder, emit_icmp(ir, LLVMIntSLT, row, emit_size(&e->x, k->g.rows.total)),
                                     emit_icmp(ir, LLVMIntSLT, column, emit_size(&e->x, k->g.columns.total)), "");
  LLVMBasicBlockRef after = emit_if_begin(ir, inside);
  uint32_t mark = emit_table_mark(e->x.table);
  const emit_index *at = index_at(k, row, column);
  emit_element_set(e, hlo_result((hlo_instr *)k->g.c, 0), at,
                   (emit_pair){emit_narrow(ir, (dtype)k->g.c->shapes[0].type, sum), NULL});
  emit_store_roots(&k->w, at);
  emit_table_release(e->x.table, mark);
  emit_if_end(ir, after);
}

static void store_tile(kernel *k, const LLVMValueRef *acc) {
  for (int64_t i = 0; i < k->rows.each; i++) {
    LLVMValueRef row = emit_add(k->ir, k->rows.first, emit_add(k->ir, k->rows.lane, emit_i64(k->ir, i * SIDE)));
    for (int64_t j = 0; j < k->columns.each; j++) {
      LLVMValueRef column = emit_add(k->ir, k->columns.lane, emit_i64(k->ir, j * SIDE));
      store_element(k, row, emit_add(k->ir, k->columns.first, column), acc[i * k->columns.each + j]);
    }
  }
}

/* Returns true if the innermost dimension of the operand is one of those over which is summed. */
static bool has_sums_innermost(const hlo_instr *c, uint32_t operand) {
  hlo_attr_id contract = operand ? HLO_ATTR_RHS_CONTRACT : HLO_ATTR_LHS_CONTRACT;
  int last = hlo_rank(c->operands[operand]) - 1;
  return c->op == HLO_DOT ? hlo_find_int(c, contract, last) >= 0 : operand == 1;
}

static side make_side(kernel *k, uint32_t operand, const group *dims, int64_t each, LLVMValueRef tile,
                      LLVMValueRef lane) {
  enum { PAD = 1 }; /* so that the threads of a warp that store one sum after the other use different banks */
  side s = {.operand = operand, .dims = dims, .extent = SIDE * each, .each = each, .lane = lane};
  s.pitch = s.extent + PAD;
  s.first = emit_times(k->ir, tile, s.extent);
  s.shared = emit_shared_memory(&k->w, k->element, k->tile.sums * s.pitch, 16);
  s.sums_first = has_sums_innermost(k->g.c, operand);
  return s;
}

/* Divides the step's number into batch and tiles, and sets the grid. */
static void begin_tile(kernel *k) {
  const emit_ir *ir = k->ir;
  emit_indexer *x = &k->w.e.x;
  dim_table *t = x->sizes->table;
  dim down = dim_ceildiv(t, k->g.rows.total, SIDE * k->tile.rows);
  dim across = dim_ceildiv(t, k->g.columns.total, SIDE * k->tile.columns);
  LLVMValueRef step = k->w.begin, column_tile = emit_modulo_size(x, step, across);
  step = emit_over_size(x, step, across);
  LLVMValueRef row_tile = emit_modulo_size(x, step, down);
  k->batch = emit_over_size(x, step, down);
  LLVMValueRef lane = emit_modulo(ir, k->thread, SIDE), line = emit_over(ir, k->thread, SIDE);
  uint32_t r = k->g.row_operand;
  k->rows = make_side(k, r, &k->g.rows, k->tile.rows, row_tile, line);
  k->columns = make_side(k, !r, &k->g.columns, k->tile.columns, column_tile, lane);
  dim grid[] = {k->g.batch.total, down, across};
  k->w.info->grid = emit_dims_product(x, grid, 0, 3);
}

status emit_tiled_product_kernel(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                                 const void *config, uint32_t phase, emit_kernel_info *info) {
  (void)phase;
  kernel k = {.tile = *(const emit_tile *)config};
  LLVMValueRef acc[MOST * MOST];
  TRY(emit_writer_begin(&k.w, m, name, i, options, 0, info));
  k.ir = k.w.e.w;
  k.g = geometry_of(emit_contraction_of(i));
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
