/* sample.h - reads arrays at computed positions; shared by GridSample, RoiAlign, CropAndResize and DeformConv. */
#ifndef FRONTEND_OPS_NN_SAMPLE_H
#define FRONTEND_OPS_NN_SAMPLE_H

#include "frontend/import/import_helpers.h"

/* A sample is computed from a few neighbouring elements of the array in each dimension, the taps.  The constants are
 * the largest number of taps in one dimension and the largest number of spatial dimensions.  With t taps in each of d
 * dimensions, a sample reads t^d elements. */
enum { ONNX_MAX_TAPS = 4, ONNX_MAX_SPATIAL = 8 };

/* The taps of samples in one spatial dimension: the n indices that each sample reads, s64, their weights, and whether
 * they are outside of the array and count as 0 (pred; def is NULL if none is).  An index is inside in any case. */
typedef struct onnx_taps {
  int n;
  hlo_value index[ONNX_MAX_TAPS], weight[ONNX_MAX_TAPS], outside[ONNX_MAX_TAPS];
} onnx_taps;

/* Clamps x, a float, to [0, extent - 1] and converts it to s64. */
hlo_value onnx_clamped_index(hlo_builder *b, hlo_value x, dim extent);
/* Returns a pred array that is true where low <= x <= high, which are scalars. */
hlo_value onnx_in_range(hlo_builder *b, hlo_value x, hlo_value low, hlo_value high);
/* Computes the two neighbours of each position, where 0 is the first element, and their weights for linear
 * interpolation.  Elements outside of [0, extent) count as 0. */
void onnx_linear_taps(hlo_builder *b, hlo_value position, dim extent, onnx_taps *t);
/* Stacks n index arrays of shape [...] along a new last dimension, to [..., n]. */
hlo_value onnx_stacked(hlo_builder *b, uint32_t n, const hlo_value *index);
/* Returns true if x [N, C, spatial...] has so many channels that it is faster to read and compute them with C as the
 * last dimension.  The hint of a symbolic dimension decides. */
bool onnx_channels_go_last(const onnx_node *n, const shape *x);
/* Convert [N, C, ...] to [N, ..., C], and back. */
hlo_value onnx_channels_last(hlo_builder *b, hlo_value x);
hlo_value onnx_channels_first(hlo_builder *b, hlo_value x);
/* Returns the samples [N, C, out...] of x [N, C, spatial...].  t has the taps in each spatial dimension, [N, out...];
 * `out` has at most one dimension more than `spatial`.  A sample is the sum of the elements at all combinations of
 * taps, times the products of their weights. */
hlo_value onnx_interpolate(const onnx_node *n, hlo_value x, int spatial, const onnx_taps *t);
/* Reads the image [N, C, H, W] at rows y [R, Y] and columns x [R, X] of the batch elements `batch` [R], and returns [R,
 * C, Y, X].  With `last`, C is the last dimension of both. */
hlo_value onnx_read_pixels(hlo_builder *b, bool last, hlo_value image, hlo_value batch, hlo_value y, hlo_value x);
/* Broadcasts weights of samples, [N, out...], along the channels of y, which is [N, C, out...] or, with `last`, [N,
 * out..., C]. */
hlo_value onnx_over_channels(hlo_builder *b, hlo_value weight, hlo_value y, bool last);

#endif
