/* depthwise_rows.c - the function that computes rows whose length is an argument; see depthwise_internal.h. */
#include "emit/contraction/depthwise_internal.h"

#include "emit/llvm/arithmetic.h"

enum { ROWS_RECORD, ROWS_IMAGE, ROWS_FROM, ROWS_TO, ROWS_VECTOR, ROWS_PARAMETERS };
#define ROWS_TYPES "piiii" /* emit_shared.parameters */

typedef struct writing {
  const emit_ir *w;
  const depthwise_rows *rows;
  LLVMValueRef parameters[ROWS_PARAMETERS];
  LLVMValueRef row, line; /* the row of the result; the address of the input row that row 0 of the taps reads */
  LLVMValueRef from, to;  /* the rows of taps that lie in the input */
  depthwise_tile tile;    /* what all tiles have in common */
} writing;

static LLVMValueRef number_of(const writing *g, int entry) {
  return emit_record_number(g->w, g->parameters[ROWS_RECORD], entry);
}
static LLVMValueRef pointer_of(const writing *g, int entry) {
  return emit_record_pointer(g->w, g->parameters[ROWS_RECORD], entry);
}

/* --- tiles --- */

/* Writes the sums of a tile that reads the input from `column` on to `memory`.  All its taps are `inside` of the input,
 * or else the code tests each column. */
static void write_sums(const writing *g, LLVMValueRef column, LLVMValueRef memory, bool inside) {
  const depthwise_code *c = &g->rows->code;
  const emit_ir *w = g->w;
  LLVMValueRef sums[EMIT_GEMM_SUMS];
  depthwise_tile t = g->tile;
  t.width = g->rows->width;
  t.inside = inside;
  t.column = column;
  t.columns = inside ? NULL : number_of(g, DEPTHWISE_IN_COLUMNS);
  t.line = depthwise_address(w, c->input, g->line, emit_mul(w, column, t.in_channels));
  depthwise_add_rows(w, c, &t, g->from, g->to, sums);
  for (int64_t k = 0; k < t.width * c->vectors; k++) {
    LLVMValueRef at = emit_i64(w, k % c->vectors * depthwise_room_positions(t.width) + k / c->vectors);
    LLVMValueRef to = LLVMBuildInBoundsGEP2(w->builder, depthwise_sums_type(w, c), memory, &at, 1, "");
    LLVMSetAlignment(LLVMBuildStore(w->builder, sums[k], to), 64 < c->lanes * 4 ? 64 : (unsigned)c->lanes * 4);
  }
}

/* Writes the sums of the tile that begins at `place` to `memory`. */
static void write_tile(const writing *g, LLVMValueRef place, LLVMValueRef memory) {
  const emit_ir *w = g->w;
  const depthwise_code *c = &g->rows->code;
  const int64_t reach = (g->rows->width - 1) * c->stride + (c->taps - 1) * c->dilation;
  LLVMValueRef column = emit_sub(w, emit_times(w, place, c->stride), number_of(g, DEPTHWISE_LOW_COLUMNS));
  LLVMValueRef last = emit_add(w, column, emit_i64(w, reach)), columns = number_of(g, DEPTHWISE_IN_COLUMNS);
  LLVMValueRef is_inside = LLVMBuildAnd(w->builder, emit_icmp(w, LLVMIntSGE, column, emit_i64(w, 0)),
                                        emit_icmp(w, LLVMIntSLT, last, columns), "");
  LLVMBasicBlockRef kinds[] = {emit_block(w, "edge"), emit_block(w, "inside")}, end = emit_block(w, "end");
  LLVMBuildCondBr(w->builder, is_inside, kinds[1], kinds[0]);
  for (int inside = 0; inside < 2; inside++) {
    LLVMPositionBuilderAtEnd(w->builder, kinds[inside]);
    write_sums(g, column, memory, inside);
    LLVMBuildBr(w->builder, end);
  }
  LLVMPositionBuilderAtEnd(w->builder, end);
}

/* --- rows --- */

/* Writes the call of the epilogue for `positions` positions from `place` on. */
static void write_epilogue_call(const writing *g, LLVMValueRef place, LLVMValueRef positions) {
  LLVMValueRef arguments[DEPTHWISE_EPILOGUE_PARAMETERS] = {pointer_of(g, EMIT_RECORD_BUFFERS),
                                                           pointer_of(g, EMIT_RECORD_ARGS),
                                                           pointer_of(g, EMIT_RECORD_ROOM),
                                                           g->parameters[ROWS_IMAGE],
                                                           g->row,
                                                           place,
                                                           positions,
                                                           g->parameters[ROWS_VECTOR],
                                                           emit_i64(g->w, g->rows->code.vectors)};
  emit_call_typed(g->w, pointer_of(g, DEPTHWISE_EPILOGUE), DEPTHWISE_EPILOGUE_TYPES, arguments);
}

/* Writes a row as tiles, and the call of the epilogue for as many of them as there is room for. */
static void write_row(const writing *g) {
  const emit_ir *w = g->w;
  const int64_t width = g->rows->width, most = depthwise_room_positions(width);
  LLVMValueRef n = number_of(g, DEPTHWISE_OUT_COLUMNS);
  emit_loop l, tiles;
  emit_loop_begin(w, &l, emit_i64(w, 0), n, most, false, 0, NULL);
  LLVMValueRef positions = emit_lesser(w, emit_i64(w, most), emit_sub(w, n, l.iv));
  emit_loop_begin(w, &tiles, emit_i64(w, 0), positions, width, true, 0, NULL);
  write_tile(g, emit_add(w, l.iv, tiles.iv),
             LLVMBuildInBoundsGEP2(w->builder, depthwise_sums_type(w, &g->rows->code), pointer_of(g, EMIT_RECORD_ROOM),
                                   &tiles.iv, 1, ""));
  emit_loop_end(w, &tiles, NULL);
  write_epilogue_call(g, l.iv, positions);
  emit_loop_end(w, &l, NULL);
}

/* Finds the rows of taps that lie in the input, and the input row of the first tap. */
static void find_taps(writing *g) {
  const emit_ir *w = g->w;
  LLVMValueRef rows = number_of(g, DEPTHWISE_IN_ROWS), taps = number_of(g, DEPTHWISE_TAP_ROWS);
  const int64_t dilation = g->rows->code.row_dilation;
  LLVMValueRef first =
      emit_sub(w, emit_mul(w, g->row, number_of(g, DEPTHWISE_ROW_STRIDE)), number_of(g, DEPTHWISE_LOW_ROWS));
  g->from = depthwise_taps_before(w, LLVMBuildNeg(w->builder, first, ""), dilation, taps);
  g->to = depthwise_taps_before(w, emit_sub(w, rows, first), dilation, taps);
  LLVMValueRef line = emit_mul(w, number_of(g, DEPTHWISE_IN_COLUMNS), g->tile.in_channels);
  first = emit_add(w, emit_mul(w, g->parameters[ROWS_IMAGE], rows), first);
  g->line = depthwise_address(w, g->rows->code.input, pointer_of(g, DEPTHWISE_X), emit_mul(w, first, line));
  g->tile.line_distance = emit_times(w, line, dilation);
}

static void write_body(emit_ir *w, const void *data) {
  writing g = {.w = w, .rows = data};
  const depthwise_code *c = &g.rows->code;
  LLVMGetParams(w->function, g.parameters);
  emit_divide_plainly(w);
  w->watch = pointer_of(&g, EMIT_RECORD_WATCH);
  g.tile.taps = pointer_of(&g, DEPTHWISE_WEIGHTS);
  g.tile.channels = number_of(&g, DEPTHWISE_CHANNELS);
  g.tile.in_channels = emit_over(w, g.tile.channels, c->multiplier);
  for (int v = 0; v < c->vectors; v++) {
    LLVMValueRef vector = emit_add(w, g.parameters[ROWS_VECTOR], emit_i64(w, v));
    g.tile.channel[v] = depthwise_channel(w, vector, c->lanes, g.tile.channels);
  }
  const int64_t row_work = EMIT_POLL / 64; /* an estimate */
  emit_loop l;
  emit_loop_begin(w, &l, g.parameters[ROWS_FROM], g.parameters[ROWS_TO], 1, false, 0, NULL);
  emit_poll(w, l.iv, 1, EMIT_ANY_NUMBER, row_work);
  g.row = l.iv;
  find_taps(&g);
  write_row(&g);
  emit_loop_end(w, &l, NULL);
  LLVMBuildRetVoid(w->builder);
}

emit_shared depthwise_rows_function(const emit_ir *w, const depthwise_rows *rows) {
  const depthwise_code *c = &rows->code;
  const char *name =
      arena_printf(w->arena, "depthwise_%dx%dx%d_%s_%s_g%dx%d_k%d_s%d_d%dx%d", (int)rows->width, c->vectors, c->lanes,
                   dtype_name(c->type), dtype_name(c->input), (int)c->group, (int)c->multiplier, (int)c->taps,
                   (int)c->stride, (int)c->row_dilation, (int)c->dilation);
  return (emit_shared){name, ROWS_TYPES, write_body, rows};
}

/* --- the steps of the grid: void f(record, begin, end) --- */

/* Returns the first row of part number `part`. */
static LLVMValueRef first_row_of(const emit_ir *w, LLVMValueRef record, LLVMValueRef part) {
  LLVMValueRef rows = emit_record_number(w, record, DEPTHWISE_OUT_ROWS);
  return emit_div(w, emit_mul(w, part, rows), emit_record_number(w, record, DEPTHWISE_PARTS));
}

/* Writes step number `step`. */
static void write_step(const emit_ir *w, LLVMValueRef record, LLVMValueRef step) {
  LLVMValueRef blocks = emit_record_number(w, record, DEPTHWISE_BLOCKS), block = emit_rem(w, step, blocks);
  LLVMValueRef rest = emit_div(w, step, blocks), parts = emit_record_number(w, record, DEPTHWISE_PARTS);
  LLVMValueRef part = emit_rem(w, rest, parts), n_large = emit_record_number(w, record, DEPTHWISE_N_LARGE);
  LLVMValueRef less = emit_sub(w, emit_record_number(w, record, DEPTHWISE_LARGE), emit_i64(w, 1));
  LLVMValueRef is_small = LLVMBuildZExt(w->builder, emit_icmp(w, LLVMIntSGE, block, n_large), w->i64, "");
  LLVMValueRef function = emit_record_at(w, record, emit_add(w, is_small, emit_i64(w, DEPTHWISE_ROWS)));
  LLVMValueRef arguments[ROWS_PARAMETERS] = {
      [ROWS_RECORD] = record,
      [ROWS_IMAGE] = emit_div(w, rest, parts),
      [ROWS_FROM] = first_row_of(w, record, part),
      [ROWS_TO] = first_row_of(w, record, emit_add(w, part, emit_i64(w, 1))),
      [ROWS_VECTOR] = emit_add(w, emit_mul(w, block, less), emit_lesser(w, block, n_large))};
  emit_call_typed(w, emit_record_pointer(w, function, 0), ROWS_TYPES, arguments);
}

static void write_steps(emit_ir *w, const void *data) {
  (void)data;
  emit_write_steps(w, write_step);
}

const emit_shared depthwise_steps = {"depthwise_steps", EMIT_STEPS_TYPES, write_steps, NULL};
