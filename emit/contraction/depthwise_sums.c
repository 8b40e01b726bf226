/* depthwise_sums.c - the sums of products of a tile of depthwise.h's convolutions. */
#include "emit/contraction/depthwise_internal.h"

#include <string.h>

#include "emit/llvm/number.h"
#include "emit/llvm/arithmetic.h"

typedef struct summing {
  const emit_ir *ir;
  const depthwise_code *code;
  const depthwise_tile *tile;
} summing;

/* The address may lie outside of the array, so the GEP is not inbounds. */
LLVMValueRef depthwise_address(const emit_ir *w, dtype t, LLVMValueRef base, LLVMValueRef at) {
  return LLVMBuildGEP2(w->builder, emit_memory_type(w, t), base, &at, 1, "");
}

LLVMValueRef depthwise_taps_before(const emit_ir *w, LLVMValueRef distance, int64_t dilation, LLVMValueRef taps) {
  LLVMValueRef n = emit_greater(w, distance, emit_i64(w, 0));
  if (dilation > 1) {
    n = emit_opaque(w, emit_div(w, emit_add(w, n, emit_i64(w, dilation - 1)), emit_i64(w, dilation)));
  }
  return emit_lesser(w, n, taps);
}

LLVMTypeRef depthwise_sums_type(const emit_ir *w, const depthwise_code *c) {
  return emit_vector_type(emit_register_type(w, emit_compute_type(c->type)), c->lanes);
}

LLVMValueRef depthwise_channel(const emit_ir *w, LLVMValueRef vector, int lanes, LLVMValueRef channels) {
  return emit_lesser(w, emit_times(w, vector, lanes), LLVMBuildNSWSub(w->builder, channels, emit_i64(w, lanes), ""));
}

/* Loads a vector of elements and converts them to the type of the sums. */
static LLVMValueRef load(const summing *s, dtype t, int lanes, LLVMValueRef from) {
  const emit_ir *w = s->ir;
  LLVMValueRef v = LLVMBuildLoad2(w->builder, emit_vector_type(emit_memory_type(w, t), lanes), from, "");
  LLVMSetAlignment(v, (unsigned)dtype_bytes(t));
  v = emit_from_memory(w, t, v);
  bool bytes = dtype_is_int(t);
  return bytes ? emit_convert(w, t, s->code->type, (emit_pair){v, NULL}, false, DTYPE_ROUND_NEAREST).v
               : emit_widen(w, t, v);
}

/* Returns n times the number of output channels. */
static LLVMValueRef times_channels(const summing *s, int64_t n) { return emit_times(s->ir, s->tile->channels, n); }

/* Loads the weights for vector v of the channels; that of the first channel is at `base`. */
static LLVMValueRef load_weights(const summing *s, LLVMValueRef base, int v) {
  const dtype t = s->code->type;
  return load(s, t, s->code->lanes, depthwise_address(s->ir, t, base, s->tile->channel[v]));
}

/* Returns true if position i of the tile reads, with its tap k, column `column` of the input's row, and that column is
 * not padding.  `column` is counted from the first column that the tile reads. */
static bool reads(const summing *s, int64_t i, int64_t k, int64_t column) {
  const depthwise_code *c = s->code;
  const depthwise_tile *t = s->tile;
  int64_t at = (t->first + i) * c->stride - t->low + k * c->dilation;
  return i * c->stride + k * c->dilation == column && (t->inside || t->columns || (at >= 0 && at < t->in));
}

/* Loads input channel j of each group for the lanes of vector v; the first input channel is at `base`. */
static LLVMValueRef load_input(const summing *s, LLVMValueRef base, int v, int64_t j) {
  const dtype t = s->code->input;
  int from[64], group = (int)s->code->group, multiplier = (int)s->code->multiplier, lanes = s->code->lanes;
  for (int lane = 0; lane < lanes; lane++) {
    from[lane] = lane / multiplier / group * group + (int)j;
  }
  LLVMValueRef first = emit_over(s->ir, s->tile->channel[v], multiplier);
  LLVMValueRef x = load(s, t, lanes / multiplier, depthwise_address(s->ir, t, base, first));
  return group * multiplier == 1 ? x
         : lanes == multiplier   ? emit_splat(s->ir, x, lanes)
                                 : emit_shuffle(s->ir, x, NULL, from, lanes);
}

/* Adds the products of one input column, which is at `from`, to the sums of all positions that read it, for channel j
 * of each group. */
static void add_column(const summing *s, LLVMValueRef from, int64_t column, int64_t j,
                       LLVMValueRef weights[][EMIT_GEMM_VECTORS], LLVMValueRef *sums) {
  const int vectors = s->code->vectors;
  LLVMValueRef x[EMIT_GEMM_VECTORS] = {NULL};
  for (int64_t k = 0; k < s->code->taps; k++) {
    for (int64_t i = 0; i < s->tile->width; i++) {
      for (int v = 0; reads(s, i, k, column) && v < vectors; v++) {
        LLVMValueRef *sum = &sums[i * vectors + v];
        if (!x[v]) {
          x[v] = load_input(s, from, v, j);
        }
        *sum = emit_fma(s->ir, x[v], weights[k][v], *sum);
      }
    }
  }
}

/* Adds the products of one input column as add_column does, if the column is inside of the input's row, whose length is
 * an argument. */
static void add_column_inside(const summing *s, LLVMValueRef from, int64_t column, int64_t j,
                              LLVMValueRef weights[][EMIT_GEMM_VECTORS], LLVMValueRef *sums) {
  const emit_ir *w = s->ir;
  LLVMValueRef before[EMIT_GEMM_SUMS], at = emit_add(w, s->tile->column, emit_i64(w, column));
  const int n = (int)s->tile->width * s->code->vectors;
  LLVMBasicBlockRef blocks[2] = {LLVMGetInsertBlock(w->builder), emit_block(w, "column")}, next = emit_block(w, "next");
  LLVMBuildCondBr(w->builder, emit_icmp(w, LLVMIntULT, at, s->tile->columns), blocks[1], next);
  LLVMPositionBuilderAtEnd(w->builder, blocks[1]);
  memcpy(before, sums, (size_t)n * sizeof *sums);
  add_column(s, from, column, j, weights, sums);
  LLVMBuildBr(w->builder, next);
  LLVMPositionBuilderAtEnd(w->builder, next);
  for (int k = 0; k < n; k++) {
    LLVMValueRef values[2] = {before[k], sums[k]};
    if (values[0] != values[1]) {
      sums[k] = LLVMBuildPhi(w->builder, LLVMTypeOf(values[0]), "");
      LLVMAddIncoming(sums[k], values, blocks, 2);
    }
  }
}

/* Adds the products of the whole tile with the row of taps at `taps`, for channel j of each group, to the sums.  Each
 * address is computed from the one before, since LLVM would otherwise compute all offsets before the loop and lack
 * registers for them. */
static void add_columns(const summing *s, LLVMValueRef taps, LLVMValueRef line, int64_t j, LLVMValueRef *sums) {
  const depthwise_code *c = s->code;
  LLVMValueRef weights[DEPTHWISE_MOST_TAPS][EMIT_GEMM_VECTORS];
  int64_t last = (s->tile->width - 1) * c->stride + (c->taps - 1) * c->dilation;
  LLVMValueRef from = depthwise_address(s->ir, c->type, taps, times_channels(s, j));
  for (int64_t k = 0; k < c->taps; k++) {
    for (int v = 0; v < c->vectors; v++) {
      weights[k][v] = load_weights(s, from, v);
    }
    from = depthwise_address(s->ir, c->type, from, times_channels(s, c->group));
  }
  from = line;
  void (*add)(const summing *, LLVMValueRef, int64_t, int64_t, LLVMValueRef[][EMIT_GEMM_VECTORS], LLVMValueRef *) =
      s->tile->columns ? add_column_inside : add_column;
  for (int64_t column = 0; column <= last; column++) {
    add(s, from, column, j, weights, sums);
    from = depthwise_address(s->ir, c->input, from, s->tile->in_channels);
  }
}

/* Adds the products with all taps in row `tap` of the kernel to the tile's sums. */
static void add_row(const summing *s, LLVMValueRef tap, LLVMValueRef *sums) {
  const emit_ir *w = s->ir;
  const depthwise_code *c = s->code;
  const depthwise_tile *t = s->tile;
  LLVMValueRef offset = LLVMBuildNSWMul(w->builder, tap, times_channels(s, c->taps * c->group), "");
  LLVMValueRef taps = depthwise_address(w, c->type, t->taps, offset);
  LLVMValueRef line = depthwise_address(w, c->input, t->line, LLVMBuildNSWMul(w->builder, tap, t->line_distance, ""));
  for (int64_t j = 0; j < c->group; j++) {
    add_columns(s, taps, line, j, sums);
  }
}

void depthwise_add_rows(const emit_ir *w, const depthwise_code *c, const depthwise_tile *t, LLVMValueRef from,
                        LLVMValueRef to, LLVMValueRef *sums) {
  const summing s = {w, c, t};
  int n = (int)t->width * c->vectors;
  emit_loop l;
  for (int k = 0; k < n; k++) {
    sums[k] = LLVMConstNull(depthwise_sums_type(w, c));
  }
  emit_loop_begin(w, &l, from, to, 1, false, n, sums);
  for (int k = 0; k < n; k++) {
    sums[k] = l.carried[k];
  }
  add_row(&s, l.iv, sums);
  emit_loop_end(w, &l, sums);
  for (int k = 0; k < n; k++) {
    sums[k] = l.carried[k];
  }
}
