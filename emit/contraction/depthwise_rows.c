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

/* Returns n / by, rounded up, or 0 if n is negative; by > 0. */
static LLVMValueRef divide_up(const writing *g, LLVMValueRef n, LLVMValueRef by) {
  LLVMValueRef up = emit_add(g->w, emit_greater(g->w, n, emit_i64(g->w, 0)), emit_sub(g->w, by, emit_i64(g->w, 1)));
  return emit_div(g->w, up, by);
}

/* Returns how many of `taps` taps lie before element `distance`, where the first tap is element 0 and the taps are
 * `dilation` elements apart; 0 if `distance` is negative. */
static LLVMValueRef taps_before(const writing *g, LLVMValueRef distance, LLVMValueRef dilation, LLVMValueRef taps) {
  return emit_lesser(g->w, divide_up(g, distance, dilation), taps);
}

/* --- tiles --- */

/* Returns the column of the input that the first tap of a position reads; it may be padding. */
static LLVMValueRef column_of(const writing *g, LLVMValueRef place) {
  return emit_sub(g->w, emit_times(g->w, place, g->rows->code.stride), number_of(g, DEPTHWISE_LOW_COLUMNS));
}

/* Writes the sums of a tile that begins at `place`, and the call of the epilogue. */
static void write_tile(const writing *g, depthwise_tile *t, LLVMValueRef place, LLVMValueRef column) {
  const depthwise_code *c = &g->rows->code;
  const emit_ir *w = g->w;
  LLVMValueRef sums[EMIT_GEMM_SUMS], tile = pointer_of(g, EMIT_RECORD_ROOM);
  t->line = depthwise_address(w, c->input, g->line, emit_mul(w, column, t->channels));
  depthwise_add_rows(w, c, t, g->from, g->to, sums);
  for (int64_t k = 0; k < t->width * c->vectors; k++) {
    LLVMValueRef at = emit_i64(w, k);
    LLVMValueRef to = LLVMBuildInBoundsGEP2(w->builder, depthwise_sums_type(w, c), tile, &at, 1, "");
    LLVMSetAlignment(LLVMBuildStore(w->builder, sums[k], to), 64 < c->lanes * 4 ? 64 : (unsigned)c->lanes * 4);
  }
  LLVMValueRef arguments[DEPTHWISE_EPILOGUE_PARAMETERS] = {pointer_of(g, EMIT_RECORD_BUFFERS),
                                                           pointer_of(g, EMIT_RECORD_ARGS),
                                                           tile,
                                                           g->parameters[ROWS_IMAGE],
                                                           g->row,
                                                           place,
                                                           emit_i64(w, t->width),
                                                           g->parameters[ROWS_VECTOR],
                                                           emit_i64(w, c->vectors)};
  emit_call_typed(w, pointer_of(g, DEPTHWISE_EPILOGUE), DEPTHWISE_EPILOGUE_TYPES, arguments);
}

/* Writes a tile all of whose taps are inside of the input. */
static void write_inside(const writing *g, LLVMValueRef place) {
  depthwise_tile t = g->tile;
  t.width = g->rows->width;
  t.inside = true;
  write_tile(g, &t, place, column_of(g, place));
}

/* Writes one position that may read padding: only the taps along the row that are inside of the input are added up. */
static void write_position(const writing *g, LLVMValueRef place) {
  const depthwise_code *c = &g->rows->code;
  depthwise_tile t = g->tile;
  LLVMValueRef column = column_of(g, place), dilation = emit_i64(g->w, c->dilation), taps = emit_i64(g->w, c->taps);
  t.width = 1;
  t.from = taps_before(g, LLVMBuildNeg(g->w->builder, column, ""), dilation, taps);
  t.to = taps_before(g, emit_sub(g->w, number_of(g, DEPTHWISE_IN_COLUMNS), column), dilation, taps);
  write_tile(g, &t, place, column);
}

/* --- rows --- */

/* Writes a row: tiles of positions [first, last), all of whose taps are inside of the input, then the other positions
 * one by one.  The last tile may overlap the tile before it, unless a result overwrites an operand. */
static void write_row(const writing *g) {
  const emit_ir *w = g->w;
  const depthwise_code *c = &g->rows->code;
  LLVMValueRef n = number_of(g, DEPTHWISE_OUT_COLUMNS), low = number_of(g, DEPTHWISE_LOW_COLUMNS),
               zero = emit_i64(w, 0);
  LLVMValueRef stride = emit_i64(w, c->stride), width = emit_i64(w, g->rows->width);
  LLVMValueRef first = emit_lesser(w, divide_up(g, low, stride), n);
  LLVMValueRef room = emit_add(w, number_of(g, DEPTHWISE_IN_COLUMNS), low);
  room = emit_add(w, room, emit_i64(w, -(c->taps - 1) * c->dilation));
  LLVMValueRef last = emit_greater(w, first, emit_lesser(w, divide_up(g, room, stride), n));
  LLVMValueRef tiles = emit_div(w, emit_sub(w, last, first), width), whole = emit_mul(w, tiles, width);
  /* With overlapping tiles, there is one more if positions are left and there is a whole tile before them. */
  LLVMValueRef more = emit_icmp(w, LLVMIntSGT, emit_mul(w, number_of(g, DEPTHWISE_OVERLAPS), tiles), zero);
  LLVMValueRef end = emit_select(w, more, last, emit_add(w, first, whole));
  emit_loop l;
  emit_loop_begin(w, &l, first, end, g->rows->width, false, 0, NULL);
  write_inside(g, emit_lesser(w, l.iv, emit_sub(w, end, width)));
  emit_loop_end(w, &l, NULL);
  LLVMValueRef gap = emit_sub(w, end, first);
  emit_loop_begin(w, &l, zero, emit_sub(w, n, gap), 1, false, 0, NULL);
  LLVMValueRef before = emit_icmp(w, LLVMIntSLT, l.iv, first);
  write_position(g, emit_opaque(w, emit_add(w, l.iv, emit_select(w, before, zero, gap))));
  emit_loop_end(w, &l, NULL);
}

/* Finds the rows of taps that lie in the input, and the input row of the first tap. */
static void find_taps(writing *g) {
  const emit_ir *w = g->w;
  LLVMValueRef rows = number_of(g, DEPTHWISE_IN_ROWS), taps = number_of(g, DEPTHWISE_TAP_ROWS);
  LLVMValueRef dilation = number_of(g, DEPTHWISE_ROW_DILATION);
  LLVMValueRef first =
      emit_sub(w, emit_mul(w, g->row, number_of(g, DEPTHWISE_ROW_STRIDE)), number_of(g, DEPTHWISE_LOW_ROWS));
  g->from = taps_before(g, LLVMBuildNeg(w->builder, first, ""), dilation, taps);
  g->to = taps_before(g, emit_sub(w, rows, first), dilation, taps);
  LLVMValueRef line = emit_mul(w, number_of(g, DEPTHWISE_IN_COLUMNS), g->tile.channels);
  first = emit_add(w, emit_mul(w, g->parameters[ROWS_IMAGE], rows), first);
  g->line = depthwise_address(w, g->rows->code.input, pointer_of(g, DEPTHWISE_X), emit_mul(w, first, line));
  g->tile.line_distance = emit_mul(w, dilation, line);
}

static void write_body(emit_ir *w, const void *data) {
  writing g = {.w = w, .rows = data};
  const depthwise_code *c = &g.rows->code;
  LLVMGetParams(w->function, g.parameters);
  emit_divide_plainly(w);
  w->watch = pointer_of(&g, EMIT_RECORD_WATCH);
  g.tile.taps = pointer_of(&g, DEPTHWISE_WEIGHTS);
  g.tile.channels = number_of(&g, DEPTHWISE_CHANNELS);
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
  const char *name = arena_printf(w->arena, "depthwise_%dx%dx%d_%s_%s_g%d_k%d_s%d_d%d", (int)rows->width, c->vectors,
                                  c->lanes, dtype_name(c->type), dtype_name(c->input), (int)c->group, (int)c->taps,
                                  (int)c->stride, (int)c->dilation);
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
