/* attention.h - attention (hlo/analysis/attention.h) as one kernel: it computes tiles of rows, whose scores stay in the
 * first-level caches.
 *
 * A step of the grid is a tile of rows of one batch: first its scores by register blocks (gemm.h), then the softmax of
 * each row, then the sum of the values, which is divided by the row's total at the end. q, k and v are read in place,
 * whatever their strides; k is packed as panels first (product.h) if its keys are not contiguous.  The result's bits
 * depend neither on threads nor on tiles.  The last tile begins earlier if it would be too short, so some rows are
 * computed twice, with the same result. */
#ifndef EMIT_CONTRACTION_ATTENTION_H
#define EMIT_CONTRACTION_ATTENTION_H

#include "emit/contraction/product.h"
#include "hlo/analysis/attention.h"

/* This struct has only int64_t members (also in emit_product and emit_level), so that equal bytes mean equal kernels.
 */
typedef struct emit_attention {
  emit_product qk, pv;      /* batch and sums of pv are those of v; its rows are those of the scores */
  int64_t q_at, k_at, v_at; /* the offsets of q, k and v in their operands, in elements */
  int64_t n_out; /* the number of the result's batch dimensions, outermost first; member `a` of a level is its stride in
                    the result */
  emit_level out[EMIT_PRODUCT_LEVELS];
  int64_t out_row; /* the distance between rows of the result; the elements of a row are contiguous */
  int64_t batches, rows, keys, width;
  int64_t tile_rows, stride; /* the rows of a tile; the distance in elements between rows of its scores */
  /* The sizes of register blocks; lanes are those of the softmax. */
  int64_t qk_rows, qk_vectors, pv_rows, pv_vectors, pv_lanes, lanes;
} emit_attention;

/* Returns false if this kernel does not apply.  It needs f32, at least eight rows, rows that fit in a small tile, and
 * contiguous columns of v. */
bool emit_attention_of(const hlo_attention *a, const emit_target *t, emit_attention *out);
/* Does the same for a fusion of kind attention. */
bool emit_attention_of_fusion(const hlo_instr *fusion, const emit_target *t, emit_attention *out);

uint32_t emit_attention_phases(const emit_attention *c);
uint64_t emit_attention_scratch(const emit_attention *c);
/* Writes kernel number `phase`; it is an emit_write_fn (emit/kernel/compile.h) whose config is an emit_attention. */
STATUS_MUST_USE status emit_attention_write(emit_module *m, const char *name, const hlo_instr *i,
                                            const emit_options *options, const void *config, uint32_t phase,
                                            emit_kernel_info *info);

#endif
