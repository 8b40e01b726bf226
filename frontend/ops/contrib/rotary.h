/* rotary.h - rotary embeddings at positions that are known or computed. */
#ifndef FRONTEND_OPS_CONTRIB_ROTARY_H
#define FRONTEND_OPS_CONTRIB_ROTARY_H

#include "frontend/ops/contrib/contrib.h"

/* The cosines and sines of each step, [B or 1, S, 1, width / 2] in f32. */
typedef struct contrib_angles {
  hlo_value cosine, sine;
  int64_t width; /* how many elements of a head are rotated */
  bool interleaved;
} contrib_angles;

/* Takes the rows at `positions`, s64[B or 1, S], of inputs k and k + 1, cos_cache and sin_cache, for heads of `head`
 * elements.  The run fails if a position is beyond the rows of the caches.  The caller sets out->interleaved. */
STATUS_MUST_USE status contrib_read_angles(const onnx_node *n, uint32_t k, hlo_value positions, int64_t head,
                                           contrib_angles *out);
/* Returns x [B, S, heads, head], rotated, in its own type (see onnx_rotate_heads). */
hlo_value contrib_rotate(hlo_builder *b, const contrib_angles *angles, hlo_value x);

#endif
