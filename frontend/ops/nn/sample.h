/* sample.h - reading arrays at positions that are data: what GridSample, RoiAlign and DeformConv
 * share. */
#ifndef FRONTEND_OPS_NN_SAMPLE_H
#define FRONTEND_OPS_NN_SAMPLE_H

#include "frontend/import/import_helpers.h"

/* More spatial dimensions than anybody samples; each doubles the number of neighbours. */
enum { ONNX_MAX_TAPS = 4, ONNX_MAX_SPATIAL = 8 };

/* Along one spatial dimension: where each sample reads (s64), and with what weight (0 outside). */
typedef struct onnx_taps {
  int n;
  hlo_value index[ONNX_MAX_TAPS], weight[ONNX_MAX_TAPS];
} onnx_taps;

/* The number of the attribute's text in a list, or an error. */
STATUS_MUST_USE status onnx_choose(const onnx_node *n, const char *name, const char *def, const char *const *texts,
                                   int count, int *out);
/* x within [0, extent), as s64. */
hlo_value onnx_clamped_index(hlo_builder *b, hlo_value x, dim extent);
/* low <= x <= high. */
hlo_value onnx_in_range(hlo_builder *b, hlo_value x, double low, double high);
/* The two neighbours of each position (0: the first element); there is nothing but zeros outside of [0,
 * extent). */
void onnx_linear_taps(hlo_builder *b, hlo_value position, dim extent, onnx_taps *t);
/* Index values stacked along a new last dimension: [..., n]. */
hlo_value onnx_stacked(hlo_builder *b, uint32_t n, const hlo_value *index);
/* Are there enough channels in x [N, C, spatial...] that they are better read side by side, and computed with so, than
 * one by one? */
bool onnx_channels_go_last(const shape *x);
/* [N, C, ...] to [N, ..., C], and back. */
hlo_value onnx_channels_last(hlo_builder *b, hlo_value x);
hlo_value onnx_channels_first(hlo_builder *b, hlo_value x);
/* x [N, C, spatial...] at index [N, out..., spatial]: [N, C, out...], where out has at most one dimension more than
 * spatial.  last: C is the last dimension of both instead. */
hlo_value onnx_read_pixels(hlo_builder *b, hlo_value x, hlo_value index, int spatial, bool last);
/* Samples' weights [N, out...] along the channels of y [N, C, out...], or [N, out..., C]. */
hlo_value onnx_over_channels(hlo_builder *b, hlo_value weight, hlo_value y, bool last);

#endif
