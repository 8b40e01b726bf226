/* bits.h - weights of few bits in blocks, which stay integers in the module (weight-only quantisation). */
#ifndef FRONTEND_OPS_CONTRIB_BITS_H
#define FRONTEND_OPS_CONTRIB_BITS_H

#include "frontend/ops/contrib/contrib.h"

/* A matrix [columns, sums] of unsigned numbers of 2, 4 or 8 bits, whose rows have n_blocks blocks of `block` numbers.
 */
typedef struct contrib_bits {
  int64_t columns, sums, bits, block, n_blocks;
} contrib_bits;

/* Returns `packed`, unsigned numbers of `bits` bits, as `rows` lists of `count` numbers of type u2, u4 or u8.  In the
 * literal, each list begins at a byte, and the first number in a byte has the lowest bits.  `what` is its name. */
STATUS_MUST_USE status contrib_unpack(const onnx_node *n, int64_t bits, const literal *packed, const char *what,
                                      int64_t rows, int64_t count, hlo_value *out);
/* Returns the zero point of weights that have none of their own, s32[]. */
hlo_value contrib_middle(hlo_builder *b, int64_t bits);
/* Returns the weights (q - zero) * scale, f32[columns, n_blocks * block].  `scale` is floats [columns, n_blocks];
 * `zero` is s32 or f32, of these dimensions or a scalar. */
STATUS_MUST_USE status contrib_dequantize(const onnx_node *n, const contrib_bits *w, const literal *packed,
                                          hlo_value scale, hlo_value zero, hlo_value *out);

#endif
