/* tile_geometry.c - see tile_geometry.h. */
#include "emit/blocks/tile_geometry.h"

#include "emit/llvm/arithmetic.h"
#include "emit/kernel/block.h"
#include "emit/kernel/module.h"

/* --- which dimensions are rows, columns and batch --- */

static void take(dim_table *t, emit_tile_group *g, int d, dim extent) {
  g->of[g->n] = d;
  g->extents[g->n++] = extent;
  g->total = dim_mul(t, g->total, extent);
}

static void take_range(dim_table *t, emit_tile_group *g, const shape *s, int from, int to) {
  for (int d = from; d < to; d++) {
    take(t, g, d, s->dims[d]);
  }
}

static void set_dot(emit_tile_geometry *g, dim_table *t, const shape *s) {
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

static void set_convolution(emit_tile_geometry *g, dim_table *t, const shape *s) {
  bool first = has_channels_first(g->c);
  int64_t groups = hlo_int(g->c, HLO_ATTR_GROUPS);
  int channel = channel_of(g->c);
  emit_tile_group *pixels = first ? &g->columns : &g->rows, *channels = first ? &g->rows : &g->columns;
  g->row_operand = first;
  take(t, pixels, 0, s->dims[0]);
  take_range(t, pixels, s, first ? 2 : 1, first ? s->rank : s->rank - 1);
  take(t, channels, channel, s->dims[channel] / groups);
  if (groups > 1) {
    take(t, &g->batch, channel, groups);
    g->channel = channel;
  }
}

emit_tile_geometry emit_tile_geometry_of(const hlo_instr *c) {
  const emit_tile_group none = {.total = 1};
  emit_tile_geometry g = {.c = c, .channel = -1, .rows = none, .columns = none, .batch = none, .sums = none};
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

bool emit_has_tile_geometry(const hlo_instr *i) {
  const hlo_instr *c = emit_contraction_of(i);
  hlo_in_place_update place;
  return c && !emit_has_quantized_weights(i) && !hlo_in_place_update_of(i, &place) &&
         (c->op == HLO_DOT || dim_is_const(c->shapes[0].dims[channel_of(c)]));
}

bool emit_has_sums_innermost(const hlo_instr *c, uint32_t operand) {
  hlo_attr_id contract = operand ? HLO_ATTR_RHS_CONTRACT : HLO_ATTR_LHS_CONTRACT;
  int last = hlo_rank(c->operands[operand]) - 1;
  return c->op == HLO_DOT ? hlo_find_int(c, contract, last) >= 0 : operand == 1;
}

/* Returns the size of the operand's innermost dimension, or 1 if it is not a constant. */
static int64_t innermost(const emit_tile_geometry *g, uint32_t operand) {
  const shape *s = hlo_shape(g->c->operands[operand]);
  dim inner = s->rank ? s->dims[s->rank - 1] : 1;
  return dim_is_const(inner) && inner > 0 ? inner : 1;
}

int64_t emit_neighbouring_sums(const emit_tile_geometry *g, uint32_t operand) {
  if (g->c->op != HLO_DOT) { /* the weights of an output channel are contiguous, in the order of the sum */
    return operand == 1 && dim_is_const(g->sums.total) && g->sums.total > 0 ? g->sums.total : 1;
  }
  hlo_attr_id contract = operand ? HLO_ATTR_RHS_CONTRACT : HLO_ATTR_LHS_CONTRACT;
  int last = (int)hlo_n_ints(g->c, contract) - 1;
  bool is_last = last >= 0 && hlo_ints(g->c, contract)[last] == hlo_rank(g->c->operands[operand]) - 1;
  return is_last ? innermost(g, operand) : 1;
}

int64_t emit_neighbouring_positions(const emit_tile_geometry *g, uint32_t operand) {
  hlo_attr_id contract = operand ? HLO_ATTR_RHS_CONTRACT : HLO_ATTR_LHS_CONTRACT;
  hlo_attr_id batch = operand ? HLO_ATTR_RHS_BATCH : HLO_ATTR_LHS_BATCH;
  int last = hlo_rank(g->c->operands[operand]) - 1;
  bool is_free = g->c->op == HLO_DOT && hlo_find_int(g->c, contract, last) < 0 && hlo_find_int(g->c, batch, last) < 0;
  return is_free ? innermost(g, operand) : 1;
}

/* --- positions --- */

/* Returns an index, at position p, of an array of one dimension with `total` elements; p is in [0, total) in all lanes.
 */
static emit_index *flat_index(emit_indexer *x, dim total, emit_pos p) {
  dim *extent = ARENA_NEW_N(x->w->arena, dim, 1);
  *extent = total;
  emit_index *flat = emit_index_new(x, 1, extent);
  emit_axis_at(flat, 0, emit_pos_below(p, total));
  return flat;
}

/* Sets the axes of `at` along the dimensions of a group to the position that is number p in the group. */
static void set_axes(emit_indexer *x, const emit_tile_group *g, emit_pos p, emit_index *at) {
  if (g->n == 0) {
    return;
  }
  const emit_index *apart = emit_index_reshape(x, flat_index(x, g->total, p), g->n, g->extents);
  for (int d = 0; d < g->n; d++) {
    emit_axis_from(at, g->of[d], apart, d);
  }
}

static emit_index *index_at(emit_indexer *x, const emit_tile_geometry *g, LLVMValueRef batch, emit_pos row,
                            emit_pos column) {
  const shape *s = &g->c->shapes[0];
  emit_index *at = emit_index_new(x, s->rank, s->dims);
  set_axes(x, &g->rows, row, at);
  set_axes(x, &g->columns, column, at);
  emit_pos member = emit_pos_at(batch, 1);
  if (g->channel < 0) {
    set_axes(x, &g->batch, member, at);
    return at;
  }
  bool is_row = g->rows.of[0] == g->channel;
  const emit_tile_group *channels = is_row ? &g->rows : &g->columns;
  emit_pos before = emit_pos_scale_by_size(x, member, channels->total);
  emit_axis_at(at, g->channel, emit_pos_add(x, before, is_row ? row : column));
  return at;
}

emit_index *emit_tile_index(emit_indexer *x, const emit_tile_geometry *g, LLVMValueRef batch, LLVMValueRef row,
                            LLVMValueRef column) {
  return index_at(x, g, batch, emit_pos_at(row, 1), emit_pos_at(column, 1));
}

LLVMValueRef emit_within(const emit_indexer *x, LLVMValueRef p, dim n, int64_t step) {
  if (dim_is_const(n) && n % step == 0) {
    return p;
  }
  return emit_lesser(x->w, p, LLVMBuildNSWSub(x->w->builder, emit_size(x, n), emit_i64(x->w, 1), ""));
}

LLVMValueRef emit_tile_factor(emit_element *e, const emit_tile_geometry *g, uint32_t operand, LLVMValueRef batch,
                              emit_pos position, emit_pos sum) {
  emit_pos zero = emit_pos_const(&e->x, 0);
  bool is_row = operand == g->row_operand;
  emit_index *at = index_at(&e->x, g, batch, is_row ? position : zero, is_row ? zero : position);
  emit_index *flat = flat_index(&e->x, g->sums.total, sum);
  return emit_factor(e, g->c, operand, at, emit_index_reshape(&e->x, flat, g->sums.n, g->sums.extents)).v;
}

LLVMValueRef emit_tile_factor_address(emit_element *e, const emit_tile_geometry *g, uint32_t operand,
                                      LLVMValueRef batch, LLVMValueRef position, LLVMValueRef sum) {
  emit_pos zero = emit_pos_const(&e->x, 0), own = emit_pos_at(position, 1);
  bool is_row = operand == g->row_operand;
  emit_index *at = index_at(&e->x, g, batch, is_row ? own : zero, is_row ? zero : own);
  emit_index *flat = flat_index(&e->x, g->sums.total, emit_pos_at(sum, 1));
  return emit_factor_address(e, g->c, operand, at, emit_index_reshape(&e->x, flat, g->sums.n, g->sums.extents));
}

/* --- copies --- */

bool emit_has_tile_copies(const emit_element *e, const emit_tile_geometry *g, uint32_t operand, dtype type,
                          bool *across) {
  hlo_value v = g->c->operands[operand];
  const emit_input *in = emit_find_input(e, v);
  if (!in || in->sizes || in->shared || hlo_type(v) != type || !emit_has_copies(e->w->target)) {
    return false;
  }
  int64_t n = EMIT_TILE_COPY / (int64_t)dtype_bytes(type);
  *across = emit_neighbouring_positions(g, operand) % n == 0;
  return *across || emit_neighbouring_sums(g, operand) % n == 0;
}

/* Returns total - n, the last position from which on n positions are left. */
static LLVMValueRef last_of(const emit_indexer *x, dim total, int64_t n) {
  return LLVMBuildNSWSub(x->w->builder, emit_size(x, total), emit_i64(x->w, n), "");
}

void emit_tile_copy_begin(emit_writer *w, const emit_tile_geometry *g, uint32_t operand, bool across,
                          LLVMValueRef batch, LLVMValueRef position, LLVMValueRef sum, LLVMValueRef to) {
  const emit_indexer *x = &w->e.x;
  const emit_ir *ir = x->w;
  const emit_tile_group *positions = operand == g->row_operand ? &g->rows : &g->columns;
  int64_t n = EMIT_TILE_COPY / (int64_t)dtype_bytes(hlo_type(g->c->operands[operand]));
  LLVMValueRef last = last_of(x, positions->total, across ? n : 1);
  LLVMValueRef last_sum = last_of(x, g->sums.total, across ? 1 : n);
  LLVMValueRef from = emit_tile_factor_address(&w->e, g, operand, batch, emit_lesser(ir, position, last),
                                               emit_lesser(ir, sum, last_sum));
  LLVMValueRef inside = emit_icmp(ir, LLVMIntSLT, sum, emit_size(x, g->sums.total));
  LLVMValueRef live = emit_select(ir, inside, LLVMConstInt(ir->i32, EMIT_TILE_COPY, false), LLVMConstNull(ir->i32));
  emit_copy_begin(w, to, from, EMIT_TILE_COPY, live);
}

/* --- results --- */

LLVMValueRef emit_is_in_result(const emit_indexer *x, const emit_tile_geometry *g, LLVMValueRef row,
                               LLVMValueRef column) {
  return LLVMBuildAnd(x->w->builder, emit_icmp(x->w, LLVMIntSLT, row, emit_size(x, g->rows.total)),
                      emit_icmp(x->w, LLVMIntSLT, column, emit_size(x, g->columns.total)), "");
}

void emit_store_tile_element(emit_writer *w, const emit_tile_geometry *g, LLVMValueRef batch, LLVMValueRef row,
                             LLVMValueRef column, LLVMValueRef sum) {
  emit_element *e = &w->e;
  LLVMBasicBlockRef after = emit_if_begin(e->w, emit_is_in_result(&e->x, g, row, column));
  uint32_t mark = emit_table_mark(e->x.table);
  emit_uniformity around = w->uniform;
  w->uniform = EMIT_DIVERGENT;
  const emit_index *at = emit_tile_index(&e->x, g, batch, row, column);
  emit_element_set(e, hlo_result((hlo_instr *)g->c, 0), at,
                   (emit_pair){emit_narrow(e->w, (dtype)g->c->shapes[0].type, sum), NULL});
  emit_store_roots(w, at);
  w->uniform = around;
  emit_table_release(e->x.table, mark);
  emit_if_end(e->w, after);
}

dim emit_count_tiles(dim_table *t, const emit_tile_geometry *g, int64_t rows, int64_t columns) {
  dim plane = dim_mul(t, dim_ceildiv(t, g->rows.total, rows), dim_ceildiv(t, g->columns.total, columns));
  return dim_mul(t, g->batch.total, plane);
}

emit_tile_step emit_tile_step_of(emit_writer *w, const emit_tile_geometry *g, int64_t rows, int64_t columns,
                                 int64_t parts) {
  emit_indexer *x = &w->e.x;
  dim_table *t = x->sizes->table;
  dim down = dim_ceildiv(t, g->rows.total, rows), across = dim_ceildiv(t, g->columns.total, columns);
  emit_tile_step s = {.column = emit_modulo_size(x, w->begin, across)};
  LLVMValueRef line = emit_over_size(x, w->begin, across);
  s.row = emit_modulo_size(x, line, down);
  LLVMValueRef plane = emit_over_size(x, line, down);
  s.part = emit_modulo(x->w, plane, parts);
  s.batch = emit_over(x->w, plane, parts);
  LLVMValueRef row_of_tiles = emit_add(x->w, emit_times_size(x, s.batch, down), s.row);
  s.tile = emit_add(x->w, emit_times_size(x, row_of_tiles, across), s.column);
  dim grid[] = {g->batch.total, parts, down, across};
  w->info->grid = emit_dims_product(x, grid, 0, 4);
  return s;
}
