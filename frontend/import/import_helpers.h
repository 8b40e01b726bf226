/* import_helpers.h - what the importers of neural-network operators share: checks, small compositions of HLO and
 * the attributes of sliding windows.  Values follow the builder's rule: after an error everything is "no
 * value". */
#ifndef FRONTEND_IMPORT_IMPORT_HELPERS_H
#define FRONTEND_IMPORT_IMPORT_HELPERS_H

#include "frontend/import/import_common.h"

/* Larger kernels, strides, dilations and pads are refused, so that sums of their products stay within 64
 * bits. */
enum { ONNX_WINDOW_MAX = 1 << 30 };

/* --- checks --- */

static inline const shape *onnx_in_shape(const onnx_node *n, uint32_t k) { return hlo_shape(n->in[k]); }
/* Input k is an array of a rank in [low, high]; `what` is the standard's name. */
STATUS_MUST_USE status onnx_need_rank(const onnx_node *n, uint32_t k, const char *what, int low, int high);
/* Input k, where it is there, is an array of exactly these dims. */
STATUS_MUST_USE status onnx_need_dims(const onnx_node *n, uint32_t k, const char *what, int rank, const dim *dims);

/* --- values --- */

hlo_value onnx_times(hlo_builder *b, hlo_value x, double factor);
hlo_value onnx_plus(hlo_builder *b, hlo_value x, double term);
/* x op y with y stretched to x's dims, numpy's way. */
hlo_value onnx_op_stretched(hlo_builder *b, hlo_op op, hlo_value x, hlo_value y);
/* A rank-1 value along one dimension of `to`, or a scalar (or one element) everywhere; the type of v is kept.
 */
hlo_value onnx_along(hlo_builder *b, hlo_value v, const shape *to, int64_t dimension);
/* Over one dimension, computed in x's own type. */
hlo_value onnx_softmax(hlo_builder *b, hlo_value x, int64_t axis);
hlo_value onnx_log_softmax(hlo_builder *b, hlo_value x, int64_t axis);
/* One element of `dimension`, which vanishes. */
hlo_value onnx_pick(hlo_builder *b, hlo_value x, int64_t dimension, int64_t index);
/* A new dimension of extent 1 before `dimension`. */
hlo_value onnx_insert_dim(hlo_builder *b, hlo_value x, int64_t dimension);
/* An s64 array of values counted by the caller, as literal data on the arena. */
hlo_value onnx_s64_array(const onnx_node *n, const int64_t *values, int rank, const dim *dims);
hlo_value onnx_f32_array(const onnx_node *n, const float *values, int rank, const dim *dims);
/* Rounds to nearest even, adds the zero point, clamps to the range of `to` and converts.  x is a float;
 * zero_point may be no value, or has x's dims and any integer type. */
hlo_value onnx_saturate(hlo_builder *b, hlo_value x, hlo_value zero_point, dtype to);

/* --- windows: convolutions and pools --- */

typedef enum onnx_auto_pad { ONNX_PAD_NOTSET, ONNX_PAD_VALID, ONNX_PAD_SAME_UPPER, ONNX_PAD_SAME_LOWER } onnx_auto_pad;

typedef struct onnx_window { /* arrays of one entry a spatial dimension */
  int n;
  onnx_auto_pad auto_pad;
  int64_t kernel[SHAPE_MAX_RANK], strides[SHAPE_MAX_RANK], dilations[SHAPE_MAX_RANK];
  int64_t low[SHAPE_MAX_RANK], high[SHAPE_MAX_RANK];
} onnx_window;

/* Reads kernel_shape, strides, dilations, pads and auto_pad for `spatial` dimensions.  kernel: the extents that the
 * weight has, which kernel_shape must agree with; NULL means kernel_shape is required. */
STATUS_MUST_USE status onnx_read_window(const onnx_node *n, int spatial, const dim *kernel, onnx_window *w);
/* Extent that the dilated kernel covers. */
static inline int64_t onnx_window_extent(const onnx_window *w, int k) {
  return (w->kernel[k] - 1) * w->dilations[k] + 1;
}
/* Turns auto_pad into pads for an input of these spatial extents, so that a window slides over ceil(in /
 * stride) positions (SAME) or only where it fits (VALID). */
void onnx_window_same_pads(onnx_window *w, const dim *in);
/* Refuses a kernel that is larger than the padded input. */
STATUS_MUST_USE status onnx_window_fits(const onnx_window *w, const dim *in);

#endif
