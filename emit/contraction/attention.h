/* attention.h - attention (hlo/analysis/attention.h) in one kernel, which computes it tile by tile, so that the scores
 * of a tile stay in the first-level cache.
 *
 * A step of the grid computes a tile: some rows of q of one batch.  It computes the scores q k' by register blocks
 * (gemm.h), the exponentials of each row for the softmax, and the product of the exponentials with v, and divides each
 * row of that product by the sum of the row's exponentials.  q and v are read in place, and so is k if the keys are
 * contiguous in it and fill whole vectors; otherwise another kernel first packs k as panels (product.h).  The result's
 * bits depend neither on the number of threads nor on the tiles.  If the last tile would have fewer rows than the
 * others, it begins earlier, so some rows are computed twice, with the same result. */
#ifndef EMIT_CONTRACTION_ATTENTION_H
#define EMIT_CONTRACTION_ATTENTION_H

#include "emit/product/product.h"
#include "hlo/analysis/attention.h"

/* All members of this struct, and of the structs emit_product and emit_level in it, are int64_t without padding, so
 * that structs with equal bytes describe equal kernels. */
typedef struct emit_attention {
  emit_product qk, pv;      /* qk is the product q k', pv is the product of the exponentials with v */
  int64_t q_at, k_at, v_at; /* where q, k and v begin in the operands, in elements */
  int64_t n_out; /* the number of entries of `out`, one for each batch dimension of the result (or for several that can
                    be one loop), outermost first; member `a` of an entry is the dimension's stride in the result */
  emit_level out[EMIT_PRODUCT_LEVELS];
  int64_t out_row; /* the distance between rows of the result; the elements of a row are contiguous */
  int64_t batches, rows, keys, width;
  int64_t tile_rows, stride; /* the rows of a tile; the distance in elements between rows of its scores */
  /* The sizes of the register blocks of the products qk and pv. pv_lanes is the vector width of pv, `lanes` that of the
   * softmax. */
  int64_t qk_rows, qk_vectors, pv_rows, pv_vectors, pv_lanes, lanes;
} emit_attention;

/* The first returns true if all values of the attention are f32, the second if all sizes are constants. */
bool emit_attention_is_f32(const hlo_attention *a);
bool emit_attention_is_static(const hlo_attention *a);

/* The largest number of bytes of stack that a kernel of this file or of flash_attention.h takes. */
enum { EMIT_ATTENTION_STACK = 192 << 10 };

/* Sets *out to the description of the kernel for an attention.  Returns false if there is none: it needs static shapes,
 * f32, a target whose stack is large enough, at least eight rows of q, few enough keys that the scores of some rows fit
 * in a tile, heads of at most 1024 columns, and contiguous columns of v. */
bool emit_attention_of(const hlo_attention *a, const emit_target *t, emit_attention *out);

/* The first returns the number of kernels, which run one after the other.  The second returns the number of bytes of
 * scratch memory that they need. */
uint32_t emit_attention_phases(const emit_attention *c);
uint64_t emit_attention_scratch(const emit_attention *c);
/* Writes kernel number `phase`.  It is an emit_write_fn (emit/kernel/compile.h) whose config is an emit_attention. */
STATUS_MUST_USE status emit_attention_write(emit_module *m, const char *name, const hlo_instr *i,
                                            const emit_options *options, const void *config, uint32_t phase,
                                            emit_kernel_info *info);

#endif
