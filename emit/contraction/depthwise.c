/* depthwise.c - the kernel of depthwise.h. */
#include "emit/contraction/depthwise.h"

#include <math.h>

#include "emit/product/arithmetic.h"
#include "emit/product/gemm.h"
#include "emit/kernel/module.h"
#include "emit/llvm/number.h"
#include "emit/kernel/writer.h"

typedef struct depthwise {
  emit_writer w;
  emit_depthwise p;
  const emit_ir *ir;
  hlo_value convolution; /* the value from which the epilogue starts */
  dtype type, input;
  LLVMValueRef x, weights;
  LLVMValueRef tile; /* memory on the stack for a tile's sums if the epilogue is a loop; NULL if it is not */
  int lanes;
  bool overlaps; /* whether elements of results may be computed twice; this is so if no result overwrites an operand */
} depthwise;

/* A tile while it is written: `vectors` vectors of channels by `width` positions of a row of the result. */
typedef struct tile {
  LLVMValueRef image, row, place;          /* the position in the result at which the tile begins */
  LLVMValueRef channel[EMIT_GEMM_VECTORS]; /* the first channel of each vector */
  LLVMValueRef line, taps; /* the addresses of the first input element that the tile reads, and of the weights */
  int64_t first;           /* the tile's first position in the row; only used if `inside` is false */
  int64_t width;
  int vectors;
  bool inside;
  LLVMValueRef from, to; /* if `from` is not NULL, the tile is one position, of which taps [from, to) are inside */
} tile;

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

static dim_table *table(const depthwise *g) { return g->w.e.x.sizes->table; }

static LLVMValueRef quotient(const depthwise *g, LLVMValueRef x, int64_t n) {
  return n == 1 ? x : emit_opaque(g->ir, LLVMBuildUDiv(g->ir->builder, x, number(g, n), ""));
}

static LLVMValueRef remainder_of(const depthwise *g, LLVMValueRef x, int64_t n) {
  return n == 1 ? number(g, 0) : emit_opaque(g->ir, LLVMBuildURem(g->ir->builder, x, number(g, n), ""));
}

/* Returns n / by, rounded up, or 0 if n is negative; by > 0. */
static LLVMValueRef divide_up(const depthwise *g, LLVMValueRef n, int64_t by) {
  LLVMValueRef positive = emit_intrinsic2(g->ir, "llvm.smax", n, number(g, 0));
  return by == 1 ? positive : quotient(g, add(g, positive, number(g, by - 1)), by);
}

static LLVMValueRef at_most(const depthwise *g, LLVMValueRef x, int64_t n) {
  return emit_intrinsic2(g->ir, "llvm.smin", x, number(g, n));
}

/* Returns the address of element `at` after `base`.  It may lie outside of the array if nothing is read there, so the
 * GEP is not inbounds. */
static LLVMValueRef address(const depthwise *g, dtype t, LLVMValueRef base, LLVMValueRef at) {
  return LLVMBuildGEP2(g->ir->builder, emit_memory_type(g->ir, t), base, &at, 1, "");
}

static LLVMTypeRef sums_type(const depthwise *g) {
  return emit_vector_type(emit_register_type(g->ir, emit_compute_type(g->type)), g->lanes);
}

/* Loads a vector of elements and converts them to the type of the sums. */
static LLVMValueRef load(const depthwise *g, dtype t, LLVMValueRef from) {
  LLVMValueRef v = LLVMBuildLoad2(g->ir->builder, emit_vector_type(emit_memory_type(g->ir, t), g->lanes), from, "");
  LLVMSetAlignment(v, (unsigned)dtype_bytes(t));
  v = emit_from_memory(g->ir, t, v);
  bool bytes = dtype_is_int(t);
  return bytes ? emit_convert(g->ir, t, g->type, (emit_pair){v, NULL}, false, DTYPE_ROUND_NEAREST).v
               : emit_widen(g->ir, t, v);
}

/* --- sums of products --- */

/* Returns true if position i of the tile reads, with its tap k, column `column` of the input's row, and that column is
 * not padding.  `column` is counted from the first column that the tile reads. */
static bool reads(const depthwise *g, const tile *t, int64_t i, int64_t k, int64_t column) {
  const emit_depthwise *p = &g->p;
  int64_t at = (t->first + i) * p->strides[1] - p->low[1] + k * p->dilation[1];
  return i * p->strides[1] + k * p->dilation[1] == column && (t->inside || (at >= 0 && at < p->in[1]));
}

/* Returns a vector in which all lanes of a group have element j of that group of x. */
static LLVMValueRef spread(const depthwise *g, LLVMValueRef x, int64_t j) {
  int from[64], group = (int)g->p.group;
  for (int lane = 0; lane < g->lanes; lane++) {
    from[lane] = lane / group * group + (int)j;
  }
  return group == 1 ? x : emit_shuffle(g->ir, x, NULL, from, g->lanes);
}

/* Adds the products of one input column, channel j of each group, to the sums of all positions that read it. */
static void add_column(const depthwise *g, const tile *t, LLVMValueRef line, int64_t column, int64_t j,
                       LLVMValueRef weights[][EMIT_GEMM_VECTORS], LLVMValueRef *sums) {
  LLVMValueRef x[EMIT_GEMM_VECTORS] = {NULL};
  for (int64_t k = 0; k < g->p.taps[1]; k++) {
    for (int64_t i = 0; i < t->width; i++) {
      for (int v = 0; reads(g, t, i, k, column) && v < t->vectors; v++) {
        LLVMValueRef *sum = &sums[i * t->vectors + v];
        if (!x[v]) {
          LLVMValueRef at =
              address(g, g->input, address(g, g->input, line, t->channel[v]), number(g, column * g->p.channels));
          x[v] = spread(g, load(g, g->input, at), j);
        }
        *sum = emit_fma(g->ir, x[v], weights[k][v], *sum);
      }
    }
  }
}

/* Adds the products of one position with taps [t->from, t->to), for channel j of each group, to the sums. */
static void add_taps(const depthwise *g, const tile *t, LLVMValueRef weights, LLVMValueRef line, int64_t j,
                     LLVMValueRef *sums) {
  const emit_depthwise *p = &g->p;
  emit_loop l;
  emit_loop_begin(g->ir, &l, t->from, t->to, 1, false, t->vectors, sums);
  LLVMValueRef at = add(g, scaled(g, l.iv, p->group * p->channels), number(g, j * p->channels));
  LLVMValueRef column = scaled(g, l.iv, p->dilation[1] * p->channels);
  for (int v = 0; v < t->vectors; v++) {
    LLVMValueRef w = load(g, g->type, address(g, g->type, address(g, g->type, weights, t->channel[v]), at));
    LLVMValueRef x = load(g, g->input, address(g, g->input, address(g, g->input, line, t->channel[v]), column));
    sums[v] = emit_fma(g->ir, spread(g, x, j), w, l.carried[v]);
  }
  emit_loop_end(g->ir, &l, sums);
  for (int v = 0; v < t->vectors; v++) {
    sums[v] = l.carried[v];
  }
}

/* Adds the products with all taps in row `tap` of the kernel to the tile's sums. */
static void add_row(const depthwise *g, const tile *t, LLVMValueRef tap, LLVMValueRef *sums) {
  const emit_depthwise *p = &g->p;
  LLVMValueRef weights[16][EMIT_GEMM_VECTORS];
  LLVMValueRef from = address(g, g->type, t->taps, scaled(g, tap, p->taps[1] * p->group * p->channels));
  dim distance = dim_mul(table(g), p->dilation[0] * p->channels, p->in[1]);
  LLVMValueRef line = address(g, g->input, t->line, times(g, tap, distance));
  int64_t last = (t->width - 1) * p->strides[1] + (p->taps[1] - 1) * p->dilation[1];
  for (int64_t j = 0; t->from && j < p->group; j++) {
    add_taps(g, t, from, line, j, sums);
  }
  for (int64_t j = 0; !t->from && j < p->group; j++) {
    for (int64_t k = 0; k < p->taps[1]; k++) {
      for (int v = 0; v < t->vectors; v++) {
        LLVMValueRef place = number(g, (k * p->group + j) * p->channels);
        weights[k][v] = load(g, g->type, address(g, g->type, address(g, g->type, from, t->channel[v]), place));
      }
    }
    for (int64_t column = 0; column <= last; column++) {
      add_column(g, t, line, column, j, weights, sums);
    }
  }
}

/* Sets `sums` to the tile's sums of products over rows [from, to) of the taps. */
static void add_rows(const depthwise *g, const tile *t, LLVMValueRef from, LLVMValueRef to, LLVMValueRef *sums) {
  int n = (int)t->width * t->vectors;
  emit_loop l;
  for (int k = 0; k < n; k++) {
    sums[k] = LLVMConstNull(sums_type(g));
  }
  emit_loop_begin(g->ir, &l, from, to, 1, false, n, sums);
  for (int k = 0; k < n; k++) {
    sums[k] = l.carried[k];
  }
  add_row(g, t, l.iv, sums);
  emit_loop_end(g->ir, &l, sums);
  for (int k = 0; k < n; k++) {
    sums[k] = l.carried[k];
  }
}

/* --- the epilogue --- */

/* Declares the sum to be the value of the convolution at `index`.  If the operands are bytes, the sum is converted to
 * s32.  Where the epilogue converts the convolution to f32, the f32 sum itself is used as the result of that
 * conversion. */
static void set_sum(depthwise *g, const emit_index *index, LLVMValueRef sum) {
  emit_element *e = &g->w.e;
  if (g->input == g->type) {
    emit_element_set(e, g->convolution, index, (emit_pair){emit_narrow(g->ir, g->type, sum), NULL});
    return;
  }
  emit_pair real = {sum, NULL};
  emit_element_set(e, g->convolution, index,
                   emit_convert(g->ir, g->type, hlo_type(g->convolution), real, false, DTYPE_ROUND_NEAREST));
  for (uint32_t k = 0; k < g->convolution.def->n_uses; k++) {
    hlo_value v = hlo_result(g->convolution.def->uses[k].user, 0);
    if (v.def->op == HLO_CONVERT && hlo_type(v) == g->type) {
      emit_element_set(e, v, index, real);
    }
  }
}

static void finish_vector(depthwise *g, const tile *t, LLVMValueRef place, LLVMValueRef channel, LLVMValueRef sum) {
  emit_element *e = &g->w.e;
  const emit_depthwise *p = &g->p;
  const shape *s = hlo_shape(g->convolution);
  LLVMValueRef at[] = {t->row, place};
  int before = e->x.lanes;
  e->x.lanes = g->lanes;
  emit_index *index = emit_index_new(&e->x, s->rank, s->dims);
  for (int d = 1; d < s->rank - 1; d++) {
    emit_axis_at(index, d, emit_pos_const(&e->x, 0));
  }
  emit_axis_at(index, 0, emit_pos_at(t->image, 1));
  for (int d = 0; d < 2; d++) {
    if (p->axis[d]) {
      emit_axis_at(index, (int)p->axis[d], emit_pos_at(at[d], 1));
    }
  }
  emit_axis_at(index, s->rank - 1, emit_pos_lanes(channel, g->lanes > 1, p->channels % g->lanes ? 1 : g->lanes));
  set_sum(g, index, sum);
  emit_store_roots(&g->w, index);
  e->x.lanes = before;
}

static LLVMValueRef tile_at(const depthwise *g, LLVMValueRef at) {
  return LLVMBuildInBoundsGEP2(g->ir->builder, sums_type(g), g->tile, &at, 1, "");
}

/* Stores the sums to memory and runs the epilogue in a loop over the tile's positions, so that its code is written once
 * for each vector of channels and not once for each position. */
static void finish_loop(depthwise *g, const tile *t, const LLVMValueRef *sums) {
  emit_loop l;
  for (int64_t k = 0; k < t->width * t->vectors; k++) {
    LLVMBuildStore(g->ir->builder, sums[k], tile_at(g, number(g, k)));
  }
  emit_loop_begin(g->ir, &l, number(g, 0), number(g, t->width), 1, true, 0, NULL);
  for (int v = 0; v < t->vectors; v++) {
    LLVMValueRef at = add(g, scaled(g, l.iv, t->vectors), number(g, v));
    LLVMValueRef sum = LLVMBuildLoad2(g->ir->builder, sums_type(g), tile_at(g, at), "");
    finish_vector(g, t, add(g, t->place, l.iv), t->channel[v], sum);
  }
  emit_loop_end(g->ir, &l, NULL);
}

static void finish(depthwise *g, const tile *t, const LLVMValueRef *sums) {
  uint32_t mark = emit_table_mark(g->w.e.x.table);
  if (g->tile) {
    finish_loop(g, t, sums);
  } else {
    for (int64_t k = 0; k < t->width * t->vectors; k++) {
      finish_vector(g, t, add(g, t->place, number(g, k / t->vectors)), t->channel[k % t->vectors], sums[k]);
    }
  }
  emit_table_release(g->w.e.x.table, mark);
}

/* --- rows of the result --- */

/* The row of the result that is being written, for some vectors of channels. */
typedef struct row {
  tile tile;
  LLVMValueRef line; /* the address of the input row that row 0 of the taps reads; it may lie outside of the input */
  LLVMValueRef from, to; /* the rows of taps that lie in the input */
} row;

/* Returns the column of the input that the first tap of a position reads; it may be padding. */
static LLVMValueRef column_of(const depthwise *g, LLVMValueRef place) {
  const emit_depthwise *p = &g->p;
  return LLVMBuildSub(g->ir->builder, scaled(g, place, p->strides[1]), number(g, p->low[1]), "");
}

static void write_tile(depthwise *g, const row *r, const emit_depthwise_run *run, LLVMValueRef place) {
  const emit_depthwise *p = &g->p;
  LLVMValueRef sums[EMIT_GEMM_SUMS];
  tile t = r->tile;
  t.place = place;
  t.first = run->first;
  t.width = run->width;
  t.inside = run->inside;
  t.line = address(g, g->input, r->line, scaled(g, column_of(g, place), p->channels));
  add_rows(g, &t, r->from, r->to, sums);
  finish(g, &t, sums);
}

/* Writes the sums and the epilogue of one position that may read padding: only the taps along the row that are inside
 * of the input, [t.from, t.to), are added up. */
static void write_position(depthwise *g, const row *r, LLVMValueRef place) {
  const emit_depthwise *p = &g->p;
  LLVMValueRef sums[EMIT_GEMM_SUMS];
  tile t = r->tile;
  t.place = place;
  t.width = 1;
  LLVMValueRef column = column_of(g, place), left = LLVMBuildSub(g->ir->builder, size(g, p->in[1]), column, "");
  LLVMValueRef missing = LLVMBuildNeg(g->ir->builder, column, "");
  t.from = at_most(g, divide_up(g, missing, p->dilation[1]), p->taps[1]);
  t.to = at_most(g, divide_up(g, left, p->dilation[1]), p->taps[1]);
  t.line = address(g, g->input, r->line, scaled(g, column, p->channels));
  add_rows(g, &t, r->from, r->to, sums);
  finish(g, &t, sums);
}

/* Writes a row whose length is an argument: tiles of positions [first, last), all of whose taps are inside of the
 * input, then the other positions one by one.  The last tile may overlap the tile before it, unless a result overwrites
 * an operand. */
static void write_row_of_size(depthwise *g, const row *r) {
  const emit_depthwise *p = &g->p;
  LLVMValueRef n = size(g, p->out[1]), zero = number(g, 0);
  LLVMValueRef first =
      emit_lesser(g->ir, number(g, p->low[1] > 0 ? (p->low[1] + p->strides[1] - 1) / p->strides[1] : 0), n);
  LLVMValueRef room = add(g, size(g, p->in[1]), number(g, p->low[1] - (p->taps[1] - 1) * p->dilation[1]));
  LLVMValueRef last = emit_lesser(g->ir, divide_up(g, room, p->strides[1]), n);
  last = emit_intrinsic2(g->ir, "llvm.smax", first, last);
  LLVMValueRef end = LLVMBuildNSWSub(g->ir->builder, last, number(g, p->width - 1), "");
  emit_depthwise_run run = {.width = p->width, .inside = true};
  emit_loop l;
  if (g->overlaps) {
    /* The loop ends at `last` if there is room for a whole tile; otherwise it has no iteration. */
    LLVMValueRef any = emit_icmp(g->ir, LLVMIntSLT, first, end), from = emit_select(g->ir, any, last, first);
    emit_loop_begin(g->ir, &l, first, from, p->width, false, 0, NULL);
    write_tile(g, r, &run, emit_lesser(g->ir, l.iv, add(g, end, number(g, -1))));
    emit_loop_end(g->ir, &l, NULL);
    last = from;
  } else {
    LLVMValueRef carried = first;
    emit_loop_begin(g->ir, &l, first, end, p->width, false, 1, &carried);
    write_tile(g, r, &run, l.iv);
    carried = add(g, l.iv, number(g, p->width));
    emit_loop_end(g->ir, &l, &carried);
    last = l.carried[0];
  }
  LLVMValueRef gap = LLVMBuildNSWSub(g->ir->builder, last, first, "");
  emit_loop_begin(g->ir, &l, zero, LLVMBuildNSWSub(g->ir->builder, n, gap, ""), 1, false, 0, NULL);
  LLVMValueRef before = emit_icmp(g->ir, LLVMIntSLT, l.iv, first);
  write_position(g, r, emit_opaque(g->ir, add(g, l.iv, emit_select(g->ir, before, zero, gap))));
  emit_loop_end(g->ir, &l, NULL);
}

static void write_row(depthwise *g, const row *r) {
  emit_depthwise_run runs[EMIT_DEPTHWISE_RUNS];
  if (!emit_depthwise_has_runs(&g->p)) {
    write_row_of_size(g, r);
    return;
  }
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
  LLVMValueRef first = LLVMBuildSub(g->ir->builder, scaled(g, r->tile.row, p->strides[0]), number(g, p->low[0]), "");
  bool constant = dim_is_const(p->out[0]) && dim_is_const(p->in[0]);
  int64_t last = constant ? (p->out[0] - 1) * p->strides[0] - p->low[0] + (p->taps[0] - 1) * p->dilation[0] : 0;
  r->from = number(g, 0);
  r->to = number(g, p->taps[0]);
  if (p->low[0] > 0) {
    r->from = at_most(g, divide_up(g, LLVMBuildNeg(g->ir->builder, first, ""), p->dilation[0]), p->taps[0]);
  }
  if (!constant || last >= p->in[0]) {
    LLVMValueRef left = LLVMBuildSub(g->ir->builder, size(g, p->in[0]), first, "");
    r->to = at_most(g, divide_up(g, left, p->dilation[0]), p->taps[0]);
  }
  LLVMValueRef line = add(g, times(g, r->tile.image, p->in[0]), first);
  r->line = address(g, g->input, g->x, times(g, line, dim_mul(table(g), p->in[1], p->channels)));
}

typedef struct item {
  LLVMValueRef image, from, to; /* the range of rows of the result */
} item;

static void write_rows(depthwise *g, const item *i, LLVMValueRef vector, int vectors) {
  const emit_depthwise *p = &g->p;
  row r = {.tile = {.image = i->image, .taps = g->weights, .vectors = vectors}};
  for (int v = 0; v < vectors; v++) {
    LLVMValueRef channel = scaled(g, add(g, vector, number(g, v)), g->lanes);
    r.tile.channel[v] = p->channels % g->lanes ? at_most(g, channel, p->channels - g->lanes) : channel;
  }
  emit_loop l;
  emit_loop_begin(g->ir, &l, i->from, i->to, 1, false, 0, NULL);
  r.tile.row = l.iv;
  double length = fmax(emit_likely_size(table(g), p->out[1]), 1);
  int64_t work = (int64_t)length * p->taps[0] * p->taps[1] * p->group * vectors;
  emit_poll(g->ir, l.iv, 1, dim_is_const(p->out[0]) ? p->out[0] : INT32_MAX, work);
  find_taps(g, &r);
  write_row(g, &r);
  emit_loop_end(g->ir, &l, NULL);
}

/* --- the kernel --- */

/* Writes the loop over the grid: images, parts of the rows, and blocks of vectors of channels (innermost). */
static void write_items(depthwise *g) {
  const emit_depthwise *p = &g->p;
  emit_gemm_parts cut = emit_gemm_cut((p->channels + g->lanes - 1) / g->lanes, (int)p->vectors);
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
      write_rows(g, &i, first, cut.large - k);
    }
    LLVMBuildBr(g->ir->builder, next);
  }
  LLVMPositionBuilderAtEnd(g->ir->builder, next);
  emit_loop_end(g->ir, &l, NULL);
  g->w.info->grid = dim_mul(table(g), p->images, p->parts * tiles);
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
  g->type = (dtype)g->p.type;
  g->input = (dtype)g->p.input;
  TRY(emit_writer_begin(&g->w, m, name, i, options, 0, info));
  g->ir = g->w.e.w;
  g->overlaps = true;
  for (uint32_t k = 0; k < g->w.n_results; k++) {
    g->overlaps = g->overlaps && !g->w.shared[k];
  }
  g->lanes = lanes_of(g);
  const hlo_instr *c = emit_contraction_of(i);
  g->convolution = hlo_result((hlo_instr *)c, 0);
  g->x = emit_writer_operand(&g->w, c->operands[0]);
  g->weights = emit_writer_buffer(&g->w, (uint32_t)g->p.weights);
  if (!emit_is_light(i)) {
    g->tile = LLVMBuildArrayAlloca(g->ir->builder, sums_type(g), number(g, g->p.width * g->p.vectors), "");
    LLVMSetAlignment(g->tile, 64);
  }
  write_items(g);
  g->w.cost = emit_depthwise_size(table(g), &g->p) / (double)g->lanes * 0.4;
  emit_writer_end(&g->w);
  return NULL;
}
