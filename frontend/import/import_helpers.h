/* import_helpers.h - functions that importers of neural-network operators share: checks, small compositions of HLO, and
 * the attributes of sliding windows.  The functions that compute with an operand accept one without a value (def is
 * NULL), which the builder returns after a failure (hlo/ir/builder.h), and then return no value either. */
#ifndef FRONTEND_IMPORT_IMPORT_HELPERS_H
#define FRONTEND_IMPORT_IMPORT_HELPERS_H

#include "frontend/import/import_common.h"

/* The largest kernel extent, stride, dilation or pad that is accepted.  With this limit, a sum of a few products of two
 * such numbers fits into 64 bits. */
enum { ONNX_WINDOW_MAX = 1 << 30 };

/* --- checks --- */

static inline const shape *onnx_in_shape(const onnx_node *n, uint32_t k) { return hlo_shape(n->in[k]); }
/* Returns an error unless input k is an array of a rank in [low, high].  `what` is the standard's name of the input. */
STATUS_MUST_USE status onnx_need_rank(const onnx_node *n, uint32_t k, const char *what, int low, int high);
/* Returns an error if input k is given and is not an array of exactly these dimensions. */
STATUS_MUST_USE status onnx_need_dims(const onnx_node *n, uint32_t k, const char *what, int rank, const dim *dims);
/* Returns an error unless input k has exactly one element; its rank is arbitrary. */
STATUS_MUST_USE status onnx_need_one_element(const onnx_node *n, uint32_t k, const char *what);

/* Sets *out to the index in texts[] of the attribute's value, or of `def` if it is absent.  Other values are errors. */
STATUS_MUST_USE status onnx_choose(const onnx_node *n, const char *name, const char *def, const char *const *texts,
                                   int count, int *out);

/* --- values --- */

hlo_value onnx_times(hlo_builder *b, hlo_value x, double factor);
hlo_value onnx_plus(hlo_builder *b, hlo_value x, double term);
/* Returns for each element of x the position, s64, of the last of the sorted keys that is at most the element, or 0: a
 * search by halves.  There are a power of two of keys, of x's type. */
hlo_value onnx_search(hlo_builder *b, hlo_value keys, hlo_value x);
/* Returns x op y, where y is broadcast to x's dimensions by numpy's rule. */
hlo_value onnx_op_stretched(hlo_builder *b, hlo_op op, hlo_value x, hlo_value y);
/* Broadcasts v to the dimensions of `to`; v keeps its type.  If v has rank 1, its dimension becomes `dimension` of the
 * result; a scalar or a v of one element is repeated everywhere. */
hlo_value onnx_along(hlo_builder *b, hlo_value v, const shape *to, int64_t dimension);
/* Return the softmax of x, or its logarithm, over one dimension, computed in x's own type. */
hlo_value onnx_softmax(hlo_builder *b, hlo_value x, int64_t axis);
hlo_value onnx_log_softmax(hlo_builder *b, hlo_value x, int64_t axis);
/* Returns the part of x at one index of `dimension`; the result does not have that dimension. */
hlo_value onnx_pick(hlo_builder *b, hlo_value x, int64_t dimension, int64_t index);
/* Inserts a dimension of extent 1 before `dimension`. */
hlo_value onnx_insert_dim(hlo_builder *b, hlo_value x, int64_t dimension);
/* Return a constant array with the given values, which are copied to the arena. */
hlo_value onnx_s64_array(const onnx_node *n, const int64_t *values, int rank, const dim *dims);
hlo_value onnx_f32_array(const onnx_node *n, const float *values, int rank, const dim *dims);
/* Rounds x, a float array, to the nearest integers (halves to even), adds the zero point, clamps to the range of `to`
 * and converts to that type.  The zero point has x's dimensions and any integer type; its def may be NULL, which means
 * 0. */
hlo_value onnx_saturate(hlo_builder *b, hlo_value x, hlo_value zero_point, dtype to);

/* --- windows: convolutions and pools --- */

typedef enum onnx_auto_pad { ONNX_PAD_NOTSET, ONNX_PAD_VALID, ONNX_PAD_SAME_UPPER, ONNX_PAD_SAME_LOWER } onnx_auto_pad;

/* The attributes of a sliding window; each array has one entry for each of the n spatial dimensions. */
typedef struct onnx_window {
  int n;
  onnx_auto_pad auto_pad;
  int64_t kernel[SHAPE_MAX_RANK], strides[SHAPE_MAX_RANK], dilations[SHAPE_MAX_RANK];
  /* The padding before and after the input.  For SAME_UPPER and SAME_LOWER, onnx_pad_same computes it. */
  int64_t low[SHAPE_MAX_RANK], high[SHAPE_MAX_RANK];
} onnx_window;

/* Reads kernel_shape, strides, dilations, pads and auto_pad for `spatial` dimensions.  `kernel` has the spatial extents
 * of the weights, which kernel_shape must match if it is given.  If `kernel` is NULL, kernel_shape is required. */
STATUS_MUST_USE status onnx_read_window(const onnx_node *n, int spatial, const dim *kernel, onnx_window *w);
/* Returns the extent that the dilated kernel covers. */
static inline int64_t onnx_window_extent(const onnx_window *w, int k) {
  return (w->kernel[k] - 1) * w->dilations[k] + 1;
}
/* Returns true if auto_pad is SAME_UPPER or SAME_LOWER. */
static inline bool onnx_window_is_same(const onnx_window *w) {
  return w->auto_pad == ONNX_PAD_SAME_UPPER || w->auto_pad == ONNX_PAD_SAME_LOWER;
}
/* Computes the pads of auto_pad SAME_UPPER and SAME_LOWER for x [N, C, spatial...], such that the window has
 * ceil(extent / stride) positions, and returns x.  For other values of auto_pad it does nothing.
 *
 * Where an extent is open, the padding before it may depend on its remainder by the stride.  Then the result is x with
 * the padding around it, elements that are the scalar `fill`, and the pads are 0; if fill.def is NULL, the remainder
 * becomes a guard. */
hlo_value onnx_pad_same(const onnx_node *n, onnx_window *w, hlo_value x, hlo_value fill);
/* Returns x padded along `axis` as onnx_pad_same pads an open dimension k of that extent, or x itself if it does not.
 */
hlo_value onnx_pad_open_same(const onnx_node *n, const onnx_window *w, int k, hlo_value x, int64_t axis,
                             hlo_value fill);
/* Returns an error if the kernel is larger than the padded input. */
STATUS_MUST_USE status onnx_window_fits(const onnx_node *n, const onnx_window *w, const dim *in);

#endif
