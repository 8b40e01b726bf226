/* winograd_functions.c - the functions that the kernels of all Winograd convolutions share: the transforms of many
 * tiles, the fused schedule, and the steps of the grid. */
#include "emit/contraction/winograd_internal.h"

/* A function that is being written, and its record. */
typedef struct writing {
  const emit_ir *w;
  LLVMValueRef record;
} writing;

static LLVMValueRef number_of(const writing *g, int entry) { return emit_record_number(g->w, g->record, entry); }
static LLVMValueRef pointer_of(const writing *g, int entry) { return emit_record_pointer(g->w, g->record, entry); }

static LLVMValueRef ceil_over(const writing *g, LLVMValueRef x, LLVMValueRef y) {
  return emit_div(g->w, emit_add(g->w, x, emit_sub(g->w, y, emit_i64(g->w, 1))), y);
}

/* Returns the address that is `elements` elements after `base`.  The address of a position in the padding, which is not
 * read, may lie outside of the array. */
static LLVMValueRef after(const writing *g, LLVMValueRef base, LLVMValueRef elements) {
  return LLVMBuildGEP2(g->w->builder, g->w->f32, base, &elements, 1, "");
}

static void begin_body(writing *g, emit_ir *w, LLVMValueRef *parameters) {
  LLVMGetParams(w->function, parameters);
  *g = (writing){w, parameters[0]};
  emit_divide_plainly(w);
}

/* Begins a loop over the vectors of [from, to), a part of [0, n), and returns the index of the vector's first element.
 * A vector that would reach beyond n is moved back so that it ends with element n - 1. */
static LLVMValueRef begin_vectors(const writing *g, emit_loop *l, LLVMValueRef from, LLVMValueRef to, LLVMValueRef n,
                                  LLVMValueRef lanes) {
  emit_loop_begin(g->w, l, emit_i64(g->w, 0), ceil_over(g, emit_sub(g->w, to, from), lanes), 1, true, 0, NULL);
  return emit_lesser(g->w, emit_add(g->w, from, emit_mul(g->w, l->iv, lanes)), emit_sub(g->w, n, lanes));
}

/* --- positions of tiles --- */

typedef struct place {
  LLVMValueRef image, at[2]; /* the image, and the position in the result at which a tile begins */
} place;

static place place_of(const writing *g, LLVMValueRef tile) {
  LLVMValueRef rows = number_of(g, WINOGRAD_TILES), columns = number_of(g, WINOGRAD_TILES + 1);
  LLVMValueRef line = emit_div(g->w, tile, columns);
  return (place){.image = emit_div(g->w, line, rows),
                 .at = {emit_mul(g->w, emit_rem(g->w, line, rows), number_of(g, WINOGRAD_M)),
                        emit_mul(g->w, emit_rem(g->w, tile, columns), number_of(g, WINOGRAD_M + 1))}};
}

/* --- the transform of the input --- */

/* The function
 *
 *     void transform(record, first, n, v)
 *
 * transforms the input tiles [first, first + n) to rows [0, n) of V. */
enum { TRANSFORM_RECORD, TRANSFORM_FIRST, TRANSFORM_N, TRANSFORM_V, TRANSFORM_PARAMETERS };

/* Returns an i64 with bit k set if row k (d is 0), or column k, of a patch that begins at position `at` lies in the
 * input.  A patch is the part of the input from which one tile is transformed. */
static LLVMValueRef bits_inside(const writing *g, int d, LLVMValueRef at) {
  const emit_ir *w = g->w;
  LLVMValueRef n = number_of(g, WINOGRAD_SIZE + d), zero = emit_i64(w, 0), one = emit_i64(w, 1);
  LLVMValueRef from = emit_lesser(w, emit_greater(w, emit_sub(w, zero, at), zero), n);
  LLVMValueRef left = emit_sub(w, number_of(g, WINOGRAD_IN + d), at);
  LLVMValueRef to = emit_greater(w, emit_lesser(w, left, n), from);
  return LLVMBuildSub(w->builder, LLVMBuildShl(w->builder, one, to, ""), LLVMBuildShl(w->builder, one, from, ""), "");
}

static void transform_tile(const writing *g, LLVMValueRef tile, LLVMValueRef to) {
  place from = place_of(g, tile);
  LLVMValueRef inside[2], channels = number_of(g, WINOGRAD_CHANNELS), width = number_of(g, WINOGRAD_IN + 1);
  for (int d = 0; d < 2; d++) {
    from.at[d] = emit_sub(g->w, from.at[d], number_of(g, WINOGRAD_LOW + d));
    inside[d] = bits_inside(g, d, from.at[d]);
  }
  LLVMValueRef line = emit_add(g->w, emit_mul(g->w, from.image, number_of(g, WINOGRAD_IN)), from.at[0]);
  LLVMValueRef start = emit_mul(g->w, emit_add(g->w, emit_mul(g->w, line, width), from.at[1]), channels);
  emit_loop l;
  LLVMValueRef c = begin_vectors(g, &l, emit_i64(g->w, 0), channels, channels, number_of(g, WINOGRAD_FORWARD_LANES));
  LLVMValueRef arguments[] = {after(g, pointer_of(g, WINOGRAD_X), emit_add(g->w, start, c)),
                              emit_mul(g->w, width, channels),
                              channels,
                              inside[0],
                              inside[1],
                              after(g, to, c),
                              number_of(g, WINOGRAD_V_PLANE)};
  emit_call_typed(g->w, pointer_of(g, WINOGRAD_FORWARD), WINOGRAD_FORWARD_TYPES, arguments);
  emit_loop_end(g->w, &l, NULL);
}

static void write_transform(emit_ir *w, const void *data) {
  writing g;
  LLVMValueRef p[TRANSFORM_PARAMETERS];
  emit_loop l;
  (void)data;
  begin_body(&g, w, p);
  emit_loop_begin(w, &l, emit_i64(w, 0), p[TRANSFORM_N], 1, false, 0, NULL);
  LLVMValueRef row = after(&g, p[TRANSFORM_V], emit_mul(w, l.iv, number_of(&g, WINOGRAD_V_ROW)));
  transform_tile(&g, emit_add(w, p[TRANSFORM_FIRST], l.iv), row);
  emit_loop_end(w, &l, NULL);
  LLVMBuildRetVoid(w->builder);
}

static const emit_shared transform = {"winograd_transform", "piip", write_transform, NULL};

static void write_transform_steps(emit_ir *w, const void *data) {
  writing g;
  LLVMValueRef p[EMIT_STEPS_PARAMETERS];
  (void)data;
  begin_body(&g, w, p);
  LLVMValueRef v =
      after(&g, pointer_of(&g, WINOGRAD_SCRATCH), emit_mul(w, p[EMIT_STEPS_BEGIN], number_of(&g, WINOGRAD_V_ROW)));
  LLVMValueRef n = emit_sub(w, p[EMIT_STEPS_END], p[EMIT_STEPS_BEGIN]);
  emit_call_shared(w, &transform, (LLVMValueRef[TRANSFORM_PARAMETERS]){g.record, p[EMIT_STEPS_BEGIN], n, v});
  LLVMBuildRetVoid(w->builder);
}

const emit_shared winograd_transform_steps = {"winograd_transform_steps", EMIT_STEPS_TYPES, write_transform_steps,
                                              NULL};

/* --- the transform of results, and the epilogue --- */

/* The function
 *
 *     void finish(record, first, n, from, to, m)
 *
 * transforms rows [0, n) of M back to the output tiles [first, first + n), and applies the epilogue; the columns of M
 * are the outputs [from, to). */
enum { FINISH_RECORD, FINISH_FIRST, FINISH_N, FINISH_FROM, FINISH_TO, FINISH_M, FINISH_PARAMETERS };

/* Returns how many positions of a tile lie in the result along dimension d. */
static LLVMValueRef extent_of(const writing *g, const place *at, int d) {
  LLVMValueRef left = emit_sub(g->w, number_of(g, WINOGRAD_OUT + d), at->at[d]);
  return emit_lesser(g->w, left, number_of(g, WINOGRAD_M + d));
}

static void write_finish(emit_ir *w, const void *data) {
  writing g;
  LLVMValueRef p[FINISH_PARAMETERS];
  emit_loop tiles, vectors;
  (void)data;
  begin_body(&g, w, p);
  emit_loop_begin(w, &tiles, emit_i64(w, 0), p[FINISH_N], 1, false, 0, NULL);
  place at = place_of(&g, emit_add(w, p[FINISH_FIRST], tiles.iv));
  LLVMValueRef row = after(&g, p[FINISH_M], emit_mul(w, tiles.iv, number_of(&g, WINOGRAD_M_ROW)));
  LLVMValueRef rows = extent_of(&g, &at, 0), columns = extent_of(&g, &at, 1), line = pointer_of(&g, EMIT_RECORD_ROOM);
  LLVMValueRef k = begin_vectors(&g, &vectors, p[FINISH_FROM], p[FINISH_TO], number_of(&g, WINOGRAD_OUTPUTS),
                                 number_of(&g, WINOGRAD_BACKWARD_LANES));
  LLVMValueRef back[] = {after(&g, row, emit_sub(w, k, p[FINISH_FROM])), number_of(&g, WINOGRAD_M_PLANE), line};
  emit_call_typed(w, pointer_of(&g, WINOGRAD_BACKWARD), WINOGRAD_BACKWARD_TYPES, back);
  LLVMValueRef epilogue[WINOGRAD_EPILOGUE_PARAMETERS] = {pointer_of(&g, EMIT_RECORD_BUFFERS),
                                                         pointer_of(&g, EMIT_RECORD_ARGS),
                                                         line,
                                                         at.image,
                                                         at.at[0],
                                                         at.at[1],
                                                         rows,
                                                         columns,
                                                         k};
  emit_call_typed(w, pointer_of(&g, WINOGRAD_EPILOGUE), WINOGRAD_EPILOGUE_TYPES, epilogue);
  emit_loop_end(w, &vectors, NULL);
  emit_loop_end(w, &tiles, NULL);
  LLVMBuildRetVoid(w->builder);
}

static const emit_shared finish = {"winograd_finish", "piiiip", write_finish, NULL};

static void write_finish_steps(emit_ir *w, const void *data) {
  writing g;
  LLVMValueRef p[EMIT_STEPS_PARAMETERS];
  (void)data;
  begin_body(&g, w, p);
  LLVMValueRef at = emit_mul(w, p[EMIT_STEPS_BEGIN], number_of(&g, WINOGRAD_M_ROW));
  LLVMValueRef m = after(&g, pointer_of(&g, WINOGRAD_SCRATCH), emit_add(w, at, number_of(&g, WINOGRAD_M_START)));
  LLVMValueRef arguments[FINISH_PARAMETERS] = {g.record,
                                               p[EMIT_STEPS_BEGIN],
                                               emit_sub(w, p[EMIT_STEPS_END], p[EMIT_STEPS_BEGIN]),
                                               emit_i64(w, 0),
                                               number_of(&g, WINOGRAD_OUTPUTS),
                                               m};
  emit_call_shared(w, &finish, arguments);
  LLVMBuildRetVoid(w->builder);
}

const emit_shared winograd_finish_steps = {"winograd_finish_steps", EMIT_STEPS_TYPES, write_finish_steps, NULL};

/* --- the fused schedule --- */

/* Multiplies n tiles of V by the panels [from, to) of weights; the products are written to the first panels of M. */
static void multiply(const writing *g, LLVMValueRef n, LLVMValueRef from, LLVMValueRef to, LLVMValueRef v,
                     LLVMValueRef m) {
  const emit_ir *w = g->w;
  LLVMValueRef columns = number_of(g, WINOGRAD_PANEL_COLUMNS), channels = number_of(g, WINOGRAD_CHANNELS);
  emit_loop products, panels;
  emit_loop_begin(w, &products, emit_i64(w, 0), number_of(g, WINOGRAD_PRODUCTS), 1, true, 0, NULL);
  LLVMValueRef v_plane = after(g, v, emit_mul(w, products.iv, number_of(g, WINOGRAD_V_PLANE)));
  LLVMValueRef m_plane = after(g, m, emit_mul(w, products.iv, number_of(g, WINOGRAD_M_PLANE)));
  LLVMValueRef first = emit_mul(w, products.iv, number_of(g, WINOGRAD_PANELS));
  emit_loop_begin(w, &panels, from, to, 1, false, 0, NULL);
  LLVMValueRef u = emit_mul(w, emit_add(w, first, panels.iv), emit_mul(w, channels, columns));
  LLVMValueRef arguments[] = {v_plane,
                              after(g, pointer_of(g, WINOGRAD_U), u),
                              after(g, m_plane, emit_mul(w, emit_sub(w, panels.iv, from), columns)),
                              n,
                              channels,
                              number_of(g, WINOGRAD_V_ROW),
                              number_of(g, WINOGRAD_M_ROW),
                              number_of(g, WINOGRAD_PERIOD)};
  emit_call_typed(w, pointer_of(g, WINOGRAD_PANEL), WINOGRAD_PANEL_TYPES, arguments);
  emit_loop_end(w, &panels, NULL);
  emit_loop_end(w, &products, NULL);
}

/* Writes the loop over slabs (emit_winograd.slab outputs each).  A slab is multiplied and then transformed back while
 * it is in the cache. */
static void write_slabs(const writing *g, LLVMValueRef first, LLVMValueRef n, LLVMValueRef v, LLVMValueRef m) {
  LLVMValueRef panels = number_of(g, WINOGRAD_PANELS), step = number_of(g, WINOGRAD_SLAB);
  LLVMValueRef columns = number_of(g, WINOGRAD_PANEL_COLUMNS);
  emit_loop l;
  emit_loop_begin(g->w, &l, emit_i64(g->w, 0), ceil_over(g, panels, step), 1, true, 0, NULL);
  LLVMValueRef from = emit_mul(g->w, l.iv, step), to = emit_lesser(g->w, emit_add(g->w, from, step), panels);
  multiply(g, n, from, to, v, m);
  LLVMValueRef end = emit_lesser(g->w, emit_mul(g->w, to, columns), number_of(g, WINOGRAD_OUTPUTS));
  emit_call_shared(g->w, &finish,
                   (LLVMValueRef[FINISH_PARAMETERS]){g->record, first, n, emit_mul(g->w, from, columns), end, m});
  emit_loop_end(g->w, &l, NULL);
}

/* Writes a loop over blocks of about equal size of the tiles [begin, end); V begins at `v`. */
static void write_blocks(const writing *g, LLVMValueRef begin, LLVMValueRef end, LLVMValueRef v) {
  const emit_ir *w = g->w;
  LLVMValueRef tiles = emit_sub(w, end, begin), blocks = ceil_over(g, tiles, number_of(g, WINOGRAD_BLOCK));
  LLVMValueRef m = after(g, v, emit_mul(w, number_of(g, WINOGRAD_PRODUCTS), number_of(g, WINOGRAD_V_PLANE)));
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), blocks, 1, false, 0, NULL);
  LLVMValueRef from = emit_div(w, emit_mul(w, l.iv, tiles), blocks);
  LLVMValueRef n = emit_sub(w, emit_div(w, emit_mul(w, emit_add(w, l.iv, emit_i64(w, 1)), tiles), blocks), from);
  LLVMValueRef first = emit_add(w, begin, from);
  emit_call_shared(w, &transform, (LLVMValueRef[TRANSFORM_PARAMETERS]){g->record, first, n, v});
  write_slabs(g, first, n, v, m);
  emit_loop_end(w, &l, NULL);
}

/* Returns the first tile of part number `part`. */
static LLVMValueRef first_tile_of(const writing *g, LLVMValueRef part) {
  LLVMValueRef tiles = emit_mul(g->w, part, number_of(g, WINOGRAD_ALL_TILES));
  return emit_div(g->w, tiles, number_of(g, WINOGRAD_PARTS));
}

static void write_fused_steps(emit_ir *w, const void *data) {
  writing g;
  LLVMValueRef p[EMIT_STEPS_PARAMETERS];
  emit_loop l;
  (void)data;
  begin_body(&g, w, p);
  emit_loop_begin(w, &l, p[EMIT_STEPS_BEGIN], p[EMIT_STEPS_END], 1, false, 0, NULL);
  LLVMValueRef elements = emit_mul(w, l.iv, number_of(&g, WINOGRAD_PART_ELEMENTS));
  write_blocks(&g, first_tile_of(&g, l.iv), first_tile_of(&g, emit_add(w, l.iv, emit_i64(w, 1))),
               after(&g, pointer_of(&g, WINOGRAD_SCRATCH), elements));
  emit_loop_end(w, &l, NULL);
  LLVMBuildRetVoid(w->builder);
}

const emit_shared winograd_fused_steps = {"winograd_fused_steps", EMIT_STEPS_TYPES, write_fused_steps, NULL};
