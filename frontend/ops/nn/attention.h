/* attention.h - the parts of attention that importers of other operators build in the same way. */
#ifndef FRONTEND_OPS_NN_ATTENTION_H
#define FRONTEND_OPS_NN_ATTENTION_H

#include "frontend/import/importer.h"

/* Converts x [B, S, heads * .] to [B, heads, S, .]. */
hlo_value onnx_split_heads(hlo_builder *b, hlo_value x, int64_t heads);
/* Multiplies x [B, heads, S, .] by y [B, kv_heads, ...], contracting x's last dimension with y's dimension
 * `y_contract`, 2 or 3; the other one of y's dimensions 2 and 3 is the last of the result.  For each head of y there is
 * one matrix product, whose left operand has the rows of all heads of x that use this head.  kv_heads divides heads. */
hlo_value onnx_head_product(hlo_builder *b, hlo_value x, hlo_value y, int64_t y_contract, int64_t heads,
                            int64_t kv_heads);
/* Rotates the first `width` elements of each head of x [B, S, heads, head] in pairs, by the angles whose cosines and
 * sines are given, [B or 1, S, 1, width / 2].  Or x is [B, heads, S, head], and they are [B or 1, 1, S, width / 2]. x,
 * `cosine`, `sine` and the result have the same type.  A pair is two neighbours if `interleaved`, otherwise elements k
 * and width / 2 + k. */
hlo_value onnx_rotate_heads(hlo_builder *b, hlo_value x, hlo_value cosine, hlo_value sine, int64_t width,
                            bool interleaved);

#endif
