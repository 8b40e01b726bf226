/* attention.h - attention as one kernel (hlo/analysis/attention.h): by tiles of rows, whose scores stay in the
 * first-level caches.
 *
 * A step of the grid is a tile of rows of one batch: its scores by register blocks (gemm.h), softmax of each row, the
 * sum of the values, which is divided by the row's total at the end.  q, k and v are read where they lie, whatever
 * their strides; k is packed as panels first (product.h) where its keys are not side by side.  Bits depend on neither
 * threads nor tiles: a tile at the end begins earlier, so some rows are computed twice, alike. */
#ifndef EMIT_CONTRACTION_ATTENTION_H
#define EMIT_CONTRACTION_ATTENTION_H

#include "emit/contraction/product.h"
#include "hlo/analysis/attention.h"

/* Plain numbers: equal bytes, equal kernel. */
typedef struct emit_attention {
  emit_product qk, pv;      /* pv: batch and sums are those of v; its rows are the scores' */
  int64_t q_at, k_at, v_at; /* where they begin in their operands */
  int64_t n_out;            /* the result's batches, outermost first: steps in `a` */
  emit_level out[EMIT_PRODUCT_LEVELS];
  int64_t out_row; /* from one row of the result to the next; a row's elements lie side by side */
  int64_t batches, rows, keys, width;
  int64_t tile_rows, stride;                                         /* of a step, and of a row of its scores */
  int64_t qk_rows, qk_vectors, pv_rows, pv_vectors, pv_lanes, lanes; /* register blocks; lanes: of the softmax */
} emit_attention;

/* Returns false if it is not for this kernel (f32 alone, eight rows at least, rows that fit a small tile, columns of v
 * side by side). */
bool emit_attention_of(const hlo_attention *a, const emit_target *t, emit_attention *out);
/* Of a fusion of kind attention. */
bool emit_attention_of_fusion(const hlo_instr *fusion, const emit_target *t, emit_attention *out);

uint32_t emit_attention_phases(const emit_attention *c);
uint64_t emit_attention_scratch(const emit_attention *c);
/* An emit_write_fn; config is an emit_attention. */
STATUS_MUST_USE status emit_attention_write(emit_module *m, const char *name, const hlo_instr *i,
                                            const emit_options *options, const void *config, uint32_t phase,
                                            emit_kernel_info *info);

#endif
