/* qdq_weights.h - the weights of contractions of quantised arrays, as numbers that can be multiplied as integers. */
#ifndef HLO_PASSES_QDQ_WEIGHTS_H
#define HLO_PASSES_QDQ_WEIGHTS_H

#include "hlo/analysis/quantized.h"
#include "hlo/ir/builder.h"

typedef struct qdq_weights {
  int64_t n;       /* the number of output channels */
  literal numbers; /* s8 or s16, after subtracting the zero point */
  int64_t *sums;   /* the sum of the weights of each output channel */
} qdq_weights;

/* Reads x, the weights of i, as numbers of type t.  Their zero point must be one number, or one for each output.
 * Returns false if t lacks one of them, or if a sum of products might not fit in s32, since sums of f32 do not wrap: a
 * byte minus its zero point is within 255. */
bool qdq_read_weights(hlo_builder *b, const hlo_instr *i, const hlo_quantized *x, dtype t, qdq_weights *w);

#endif
