/* depthwise.c - the kernel of depthwise.h. */
#include "emit/contraction/depthwise.h"

#include <math.h>

#include "emit/contraction/depthwise_internal.h"
#include "emit/llvm/arithmetic.h"
#include "emit/kernel/module.h"
#include "emit/llvm/number.h"
#include "emit/kernel/writer.h"

typedef struct depthwise {
  emit_writer w;
  emit_depthwise p;
  const emit_ir *ir;
  hlo_value convolution; /* the value from which the epilogue starts */
  depthwise_code code;   /* its `vectors` are those of the tile that is being written */
  LLVMValueRef x, weights;
  LLVMValueRef tile; /* memory for a tile's sums if the epilogue that is written is a loop; otherwise NULL */
  bool overlaps; /* whether elements of results may be computed twice; this is so if no result overwrites an operand */
} depthwise;

/* --- arithmetic and addresses --- */

static LLVMValueRef number(const depthwise *g, int64_t n) { return emit_i64(g->ir, n); }

static LLVMValueRef add(const depthwise *g, LLVMValueRef x, LLVMValueRef y) {
  return LLVMBuildNSWAdd(g->ir->builder, x, y, "");
}

static LLVMValueRef scaled(const depthwise *g, LLVMValueRef x, int64_t n) {
  return n == 1 ? x : LLVMBuildNSWMul(g->ir->builder, x, number(g, n), "");
}

static LLVMValueRef size(const depthwise *g, dim d) { return emit_size(&g->w.e.x, d); }

/* Returns x times a size. */
static LLVMValueRef times(const depthwise *g, LLVMValueRef x, dim d) {
  return dim_is_const(d) ? scaled(g, x, d) : LLVMBuildNSWMul(g->ir->builder, x, size(g, d), "");
}

static int64_t in_channels(const emit_depthwise *p) { return p->channels / p->multiplier; }

static dim_table *table(const depthwise *g) { return g->w.e.x.sizes->table; }

static LLVMValueRef quotient(const depthwise *g, LLVMValueRef x, int64_t n) {
  return n == 1 ? x : emit_opaque(g->ir, LLVMBuildUDiv(g->ir->builder, x, number(g, n), ""));
}

static LLVMValueRef remainder_of(const depthwise *g, LLVMValueRef x, int64_t n) {
  return n == 1 ? number(g, 0) : emit_opaque(g->ir, LLVMBuildURem(g->ir->builder, x, number(g, n), ""));
}

static LLVMValueRef at_most(const depthwise *g, LLVMValueRef x, int64_t n) {
  return emit_intrinsic2(g->ir, "llvm.smin", x, number(g, n));
}

/* --- the epilogue --- */

/* Declares the sum to be the value of the convolution at `index`.  If the operands are bytes, the sum is converted to
 * s32.  Where the epilogue converts the convolution to f32, the f32 sum itself is used as the result of that
 * conversion. */
static void set_sum(depthwise *g, const emit_index *index, LLVMValueRef sum) {
  emit_element *e = &g->w.e;
  if (g->code.input == g->code.type) {
    emit_element_set(e, g->convolution, index, (emit_pair){emit_narrow(g->ir, g->code.type, sum), NULL});
    return;
  }
  emit_pair real = {sum, NULL};
  emit_element_set(e, g->convolution, index,
                   emit_convert(g->ir, g->code.type, hlo_type(g->convolution), real, false, DTYPE_ROUND_NEAREST));
  for (uint32_t k = 0; k < g->convolution.def->n_uses; k++) {
    hlo_value v = hlo_result(g->convolution.def->uses[k].user, 0);
    if (v.def->op == HLO_CONVERT && hlo_type(v) == g->code.type) {
      emit_element_set(e, v, index, real);
    }
  }
}

/* The position in the result that an epilogue writes. */
typedef struct position {
  LLVMValueRef image, row, place;
} position;

/* Writes the epilogue for one vector of sums. */
static void finish_vector(depthwise *g, const position *at, LLVMValueRef channel, LLVMValueRef sum) {
  emit_element *e = &g->w.e;
  const emit_depthwise *p = &g->p;
  const shape *s = hlo_shape(g->convolution);
  LLVMValueRef places[] = {at->row, at->place};
  int before = e->x.lanes;
  e->x.lanes = g->code.lanes;
  emit_index *index = emit_index_new(&e->x, s->rank, s->dims);
  for (int d = 1; d < s->rank - 1; d++) {
    emit_axis_at(index, d, emit_pos_const(&e->x, 0));
  }
  emit_axis_at(index, 0, emit_pos_at(at->image, 1));
  for (int d = 0; d < 2; d++) {
    if (p->axis[d]) {
      emit_axis_at(index, (int)p->axis[d], emit_pos_at(places[d], 1));
    }
  }
  emit_axis_at(index, s->rank - 1,
               emit_pos_lanes(channel, g->code.lanes > 1, p->channels % g->code.lanes ? 1 : g->code.lanes));
  set_sum(g, index, sum);
  emit_store_roots(&g->w, index);
  e->x.lanes = before;
}

/* Returns the address of vector number `at` of the sums in memory. */
static LLVMValueRef sums_at(const depthwise *g, LLVMValueRef at) {
  return LLVMBuildInBoundsGEP2(g->ir->builder, depthwise_sums_type(g->ir, &g->code), g->tile, &at, 1, "");
}

static LLVMValueRef load_sum(const depthwise *g, LLVMValueRef at) {
  return LLVMBuildLoad2(g->ir->builder, depthwise_sums_type(g->ir, &g->code), sums_at(g, at), "");
}

/* --- rows of constant length --- */

/* The row of the result that is being written, for some vectors of channels. */
typedef struct row {
  depthwise_tile tile;
  LLVMValueRef image, row;
  LLVMValueRef line; /* the address of the input row that row 0 of the taps reads; it may lie outside of the input */
  LLVMValueRef from, to; /* the rows of taps that lie in the input */
} row;

/* Stores the sums to memory and runs the epilogue in a loop over the tile's positions, so that its code is written once
 * for each vector of channels and not once for each position. */
static void finish_loop(depthwise *g, const row *r, const depthwise_tile *t, LLVMValueRef place,
                        const LLVMValueRef *sums) {
  const int vectors = g->code.vectors;
  emit_loop l;
  for (int64_t k = 0; k < t->width * vectors; k++) {
    LLVMBuildStore(g->ir->builder, sums[k], sums_at(g, number(g, k)));
  }
  emit_loop_begin(g->ir, &l, number(g, 0), number(g, t->width), 1, true, 0, NULL);
  const position at = {r->image, r->row, add(g, place, l.iv)};
  for (int v = 0; v < vectors; v++) {
    finish_vector(g, &at, t->channel[v], load_sum(g, add(g, scaled(g, l.iv, vectors), number(g, v))));
  }
  emit_loop_end(g->ir, &l, NULL);
}

static void finish(depthwise *g, const row *r, const depthwise_tile *t, LLVMValueRef place, const LLVMValueRef *sums) {
  const int vectors = g->code.vectors;
  uint32_t mark = emit_table_mark(g->w.e.x.table);
  if (g->tile) {
    finish_loop(g, r, t, place, sums);
  } else {
    for (int64_t k = 0; k < t->width * vectors; k++) {
      const position at = {r->image, r->row, add(g, place, number(g, k / vectors))};
      finish_vector(g, &at, t->channel[k % vectors], sums[k]);
    }
  }
  emit_table_release(g->w.e.x.table, mark);
}

static void write_tile(depthwise *g, const row *r, const emit_depthwise_run *run, LLVMValueRef place) {
  const emit_depthwise *p = &g->p;
  LLVMValueRef sums[EMIT_GEMM_SUMS];
  depthwise_tile t = r->tile;
  t.first = run->first;
  t.width = run->width;
  t.inside = run->inside;
  t.low = p->low[1];
  t.in = p->in[1];
  LLVMValueRef column = LLVMBuildSub(g->ir->builder, scaled(g, place, p->strides[1]), number(g, p->low[1]), "");
  t.line = depthwise_address(g->ir, g->code.input, r->line, scaled(g, column, in_channels(p)));
  depthwise_add_rows(g->ir, &g->code, &t, r->from, r->to, sums);
  finish(g, r, &t, place, sums);
}

static void write_row(depthwise *g, const row *r) {
  emit_depthwise_run runs[EMIT_DEPTHWISE_RUNS];
  int n = emit_depthwise_runs(&g->p, runs);
  for (int k = 0; k < n; k++) {
    if (runs[k].n == 1) {
      write_tile(g, r, &runs[k], number(g, runs[k].first));
      continue;
    }
    emit_loop l;
    emit_loop_begin(g->ir, &l, number(g, runs[k].first), number(g, runs[k].first + runs[k].n * runs[k].width),
                    runs[k].width, true, 0, NULL);
    write_tile(g, r, &runs[k], l.iv);
    emit_loop_end(g->ir, &l, NULL);
  }
}

/* Sets r->from and r->to to the range of rows of taps that lie in the input. */
static void find_taps(const depthwise *g, row *r) {
  const emit_depthwise *p = &g->p;
  LLVMValueRef first = LLVMBuildSub(g->ir->builder, scaled(g, r->row, p->strides[0]), number(g, p->low[0]), "");
  bool constant = dim_is_const(p->out[0]) && dim_is_const(p->in[0]);
  int64_t last = constant ? (p->out[0] - 1) * p->strides[0] - p->low[0] + (p->taps[0] - 1) * p->dilation[0] : 0;
  r->from = number(g, 0);
  r->to = number(g, p->taps[0]);
  if (p->low[0] > 0) {
    LLVMValueRef before = LLVMBuildNeg(g->ir->builder, first, "");
    r->from = depthwise_taps_before(g->ir, before, p->dilation[0], number(g, p->taps[0]));
  }
  if (!constant || last >= p->in[0]) {
    LLVMValueRef left = LLVMBuildSub(g->ir->builder, size(g, p->in[0]), first, "");
    r->to = depthwise_taps_before(g->ir, left, p->dilation[0], number(g, p->taps[0]));
  }
  LLVMValueRef line = add(g, times(g, r->image, p->in[0]), first);
  line = times(g, line, dim_mul(table(g), p->in[1], in_channels(p)));
  r->line = depthwise_address(g->ir, g->code.input, g->x, line);
}

typedef struct item {
  LLVMValueRef image, from, to; /* the range of rows of the result */
} item;

static void write_rows(depthwise *g, const item *i, LLVMValueRef vector) {
  const emit_depthwise *p = &g->p;
  row r = {.image = i->image};
  r.tile.taps = g->weights;
  r.tile.channels = number(g, p->channels);
  r.tile.in_channels = number(g, in_channels(p));
  r.tile.line_distance = size(g, dim_mul(table(g), p->dilation[0] * in_channels(p), p->in[1]));
  for (int v = 0; v < g->code.vectors; v++) {
    LLVMValueRef number_of = add(g, vector, number(g, v));
    r.tile.channel[v] = p->channels % g->code.lanes
                            ? depthwise_channel(g->ir, number_of, g->code.lanes, r.tile.channels)
                            : scaled(g, number_of, g->code.lanes);
  }
  emit_loop l;
  emit_loop_begin(g->ir, &l, i->from, i->to, 1, false, 0, NULL);
  r.row = l.iv;
  int64_t work = p->out[1] * p->taps[0] * p->taps[1] * p->group * g->code.vectors;
  emit_poll(g->ir, l.iv, 1, dim_is_const(p->out[0]) ? p->out[0] : INT32_MAX, work);
  find_taps(g, &r);
  write_row(g, &r);
  emit_loop_end(g->ir, &l, NULL);
}

/* --- rows of any length --- */

/* Writes the epilogue that the shared function calls for each tile (depthwise_internal.h). */
static LLVMValueRef write_epilogue(depthwise *g) {
  LLVMValueRef p[DEPTHWISE_EPILOGUE_PARAMETERS], tile = g->tile, zero = number(g, 0);
  emit_outer_function outer;
  emit_loop positions, vectors;
  emit_writer_enter(&g->w, "epilogue", DEPTHWISE_EPILOGUE_TYPES, &outer);
  LLVMGetParams(g->ir->function, p);
  g->tile = p[DEPTHWISE_EPILOGUE_TILE];
  emit_loop_begin(g->ir, &vectors, zero, p[DEPTHWISE_EPILOGUE_VECTORS], 1, true, 0, NULL);
  LLVMValueRef vector = add(g, p[DEPTHWISE_EPILOGUE_VECTOR], vectors.iv);
  LLVMValueRef channel = depthwise_channel(g->ir, vector, g->code.lanes, number(g, g->p.channels));
  LLVMValueRef first = scaled(g, vectors.iv, depthwise_room_positions(g->p.width));
  emit_loop_begin(g->ir, &positions, zero, p[DEPTHWISE_EPILOGUE_POSITIONS], 1, true, 0, NULL);
  const position at = {p[DEPTHWISE_EPILOGUE_IMAGE], p[DEPTHWISE_EPILOGUE_ROW],
                       add(g, p[DEPTHWISE_EPILOGUE_PLACE], positions.iv)};
  finish_vector(g, &at, channel, load_sum(g, add(g, first, positions.iv)));
  emit_loop_end(g->ir, &positions, NULL);
  emit_loop_end(g->ir, &vectors, NULL);
  g->tile = tile;
  return emit_writer_leave(&g->w, &outer);
}

/* Returns how the vectors of channels are divided into blocks. */
static emit_gemm_parts blocks_of(const depthwise *g) {
  return emit_gemm_cut((g->p.channels + g->code.lanes - 1) / g->code.lanes, (int)g->p.vectors);
}

/* Puts the function for blocks of `vectors` vectors into the record. */
static void put_rows(const depthwise *g, emit_shared_kernel *record, int entry, int vectors) {
  depthwise_rows rows = {g->code, g->p.width};
  rows.code.vectors = vectors;
  const emit_shared function = depthwise_rows_function(g->ir, &rows);
  emit_put(record, entry, emit_shared_function(g->ir, &function));
}

static void put_grid(const depthwise *g, emit_shared_kernel *record) {
  const emit_gemm_parts blocks = blocks_of(g);
  emit_put_number(record, DEPTHWISE_BLOCKS, blocks.n_large + blocks.n_small);
  emit_put_number(record, DEPTHWISE_N_LARGE, blocks.n_large);
  emit_put_number(record, DEPTHWISE_LARGE, blocks.large);
  emit_put_number(record, DEPTHWISE_PARTS, g->p.parts);
  emit_put_size(record, DEPTHWISE_OUT_ROWS, g->p.out[0]);
  if (blocks.n_large) {
    put_rows(g, record, DEPTHWISE_ROWS, blocks.large);
  }
  if (blocks.n_small) {
    put_rows(g, record, DEPTHWISE_ROWS + 1, blocks.large - 1);
  }
}

static void write_any_length(depthwise *g, uint32_t x) {
  const emit_depthwise *p = &g->p;
  emit_shared_kernel record;
  emit_shared_kernel_begin(&record, &g->w, DEPTHWISE_ENTRIES);
  emit_put(&record, DEPTHWISE_EPILOGUE, write_epilogue(g));
  emit_put_buffer(&record, DEPTHWISE_X, x);
  emit_put_buffer(&record, DEPTHWISE_WEIGHTS, (uint32_t)p->weights);
  emit_put_number(&record, DEPTHWISE_CHANNELS, p->channels);
  emit_put_size(&record, DEPTHWISE_IN_ROWS, p->in[0]);
  emit_put_size(&record, DEPTHWISE_IN_COLUMNS, p->in[1]);
  emit_put_size(&record, DEPTHWISE_OUT_COLUMNS, p->out[1]);
  emit_put_number(&record, DEPTHWISE_TAP_ROWS, p->taps[0]);
  emit_put_number(&record, DEPTHWISE_ROW_STRIDE, p->strides[0]);
  emit_put_number(&record, DEPTHWISE_LOW_ROWS, p->low[0]);
  emit_put_number(&record, DEPTHWISE_LOW_COLUMNS, p->low[1]);
  put_grid(g, &record);
  int64_t bytes = g->code.lanes * (int64_t)dtype_bytes(emit_compute_type(g->code.type));
  emit_shared_kernel_write(&record, &depthwise_steps, depthwise_room_positions(p->width) * p->vectors * bytes);
}

/* --- the kernel --- */

/* Writes the loop over the grid: images, parts of the rows, and blocks of vectors of channels (innermost). */
static void write_items(depthwise *g, bool direct) {
  const emit_depthwise *p = &g->p;
  if (!direct) {
    g->tile = LLVMBuildArrayAlloca(g->ir->builder, depthwise_sums_type(g->ir, &g->code),
                                   number(g, p->width * p->vectors), "");
    LLVMSetAlignment(g->tile, 64);
  }
  emit_gemm_parts cut = blocks_of(g);
  int64_t tiles = cut.n_large + cut.n_small;
  emit_loop l;
  emit_loop_begin(g->ir, &l, g->w.begin, g->w.end, 1, false, 0, NULL);
  LLVMValueRef number_of = remainder_of(g, l.iv, tiles), rest = quotient(g, l.iv, tiles),
               part = remainder_of(g, rest, p->parts);
  item i = {.image = quotient(g, rest, p->parts), .from = quotient(g, times(g, part, p->out[0]), p->parts)};
  i.to = quotient(g, times(g, add(g, part, number(g, 1)), p->out[0]), p->parts);
  LLVMBasicBlockRef sizes[] = {emit_block(g->ir, "large"), emit_block(g->ir, "small")},
                    next = emit_block(g->ir, "next");
  LLVMValueRef is_large = emit_icmp(g->ir, LLVMIntSLT, number_of, number(g, cut.n_large));
  LLVMValueRef first = add(g, scaled(g, number_of, cut.large - 1), at_most(g, number_of, cut.n_large));
  LLVMBuildCondBr(g->ir->builder, is_large, sizes[0], sizes[1]);
  for (int k = 0; k < 2; k++) {
    LLVMPositionBuilderAtEnd(g->ir->builder, sizes[k]);
    if (k ? cut.n_small : cut.n_large) {
      g->code.vectors = cut.large - k;
      write_rows(g, &i, first);
    }
    LLVMBuildBr(g->ir->builder, next);
  }
  LLVMPositionBuilderAtEnd(g->ir->builder, next);
  emit_loop_end(g->ir, &l, NULL);
}

/* Returns the number of lanes for vectors of channels.  The last vector may overlap the vector before it and compute
 * some of its channels again.  That is not allowed if a result overwrites an operand; vectors must then divide the
 * channels. */
static int lanes_of(const depthwise *g) {
  int lanes = (int)g->p.lanes;
  while (!g->overlaps && g->p.channels % lanes) {
    lanes /= 2;
  }
  return lanes;
}

status emit_depthwise_write(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                            const void *config, uint32_t phase, emit_kernel_info *info) {
  depthwise *g = ARENA_NEW(emit_module_ir_of(m)->arena, depthwise);
  const emit_depthwise *chosen = config;
  (void)phase;
  CHECK_THAT(emit_depthwise_of(i, &g->p), STATUS_INTERNAL, "no depthwise convolution");
  g->p.weights = chosen->weights;
  g->p.lanes = chosen->lanes;
  g->p.vectors = chosen->vectors;
  g->p.width = chosen->width;
  g->p.parts = chosen->parts;
  g->code = (depthwise_code){.type = (dtype)g->p.type,
                             .input = (dtype)g->p.input,
                             .group = g->p.group,
                             .multiplier = g->p.multiplier,
                             .taps = g->p.taps[1],
                             .stride = g->p.strides[1],
                             .dilation = g->p.dilation[1],
                             .row_dilation = g->p.dilation[0]};
  TRY(emit_writer_begin(&g->w, m, name, i, options, 0, info));
  g->ir = g->w.e.w;
  g->overlaps = true;
  for (uint32_t k = 0; k < g->w.n_results; k++) {
    g->overlaps = g->overlaps && !g->w.shared[k];
  }
  g->code.lanes = lanes_of(g);
  const hlo_instr *c = emit_contraction_of(i);
  g->convolution = hlo_result((hlo_instr *)c, 0);
  uint32_t x = emit_writer_operand_number(&g->w, c->operands[0]);
  if (emit_depthwise_has_runs(&g->p)) {
    g->x = g->w.e.inputs[x].base;
    g->weights = emit_writer_buffer(&g->w, (uint32_t)g->p.weights);
    write_items(g, emit_is_light(i));
  } else {
    write_any_length(g, x);
  }
  const emit_gemm_parts blocks = blocks_of(g);
  g->w.info->grid = dim_mul(table(g), g->p.images, g->p.parts * (blocks.n_large + blocks.n_small));
  g->w.cost = emit_depthwise_size(table(g), &g->p) / (double)g->code.lanes * 0.4;
  emit_writer_end(&g->w);
  return emit_writer_check(&g->w);
}
