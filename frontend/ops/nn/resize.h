/* resize.h - what Resize does along each axis.  resize.c handles axes of constant extent, and resize_symbolic.c the
 * others. */
#ifndef FRONTEND_OPS_NN_RESIZE_H
#define FRONTEND_OPS_NN_RESIZE_H

#include "frontend/import/import_helpers.h"

typedef enum mode { NEAREST, LINEAR, CUBIC } mode;
typedef enum coordinates {
  HALF_PIXEL,
  HALF_PIXEL_SYMMETRIC,
  PYTORCH_HALF_PIXEL,
  ALIGN_CORNERS,
  ASYMMETRIC,
  TF_HALF_PIXEL_FOR_NN,
  TF_CROP_AND_RESIZE
} coordinates;
typedef enum nearest { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL, BY_SCALE } nearest;
typedef enum policy { STRETCH, NOT_LARGER, NOT_SMALLER } policy;

typedef struct axis_plan {
  dim in, out;
  bool by_sizes;            /* whether the node gives sizes, so that the scale is out / in; if these are symbolic,
                               `scale` is not set */
  double scale, start, end; /* start and end of the region of interest, as fractions of the input's extent */
  hlo_value region[2]; /* the same as f64[], if they are computed when the model runs; otherwise the defs are NULL */
} axis_plan;

typedef struct resize {
  int64_t mode, coordinates, nearest, policy; /* values of the enumerations of the same names */
  bool antialias, exclude_outside;
  float cubic_a, extrapolation;
  int n_axes;
  int64_t axes[SHAPE_MAX_RANK];
  axis_plan plan[SHAPE_MAX_RANK]; /* one for each dimension of X */
} resize;

/* The most taps whose products are added one after the other; if there are more, they are gathered at once. */
enum { ONNX_RESIZE_FEW_TAPS = 16 };
/* Returns the factor by which antialiasing widens the filter of an axis that shrinks: 1 / shrink.  It is 1 for all
 * other axes. */
double onnx_resize_shrink(const resize *r, const axis_plan *p);
/* Returns of how many elements of the input each element of the output is computed, a whole number. */
double onnx_resize_taps(const resize *r, const axis_plan *p);

/* Resizes an axis of *x whose extents, or whose region of interest, are not constants: computes the taps when the model
 * runs, by the formulas of resize.c.  Modes for which that is not possible pin the extents of the axis and return an
 * error. */
STATUS_MUST_USE status onnx_resize_symbolic(const onnx_node *n, const resize *r, int64_t axis, hlo_value *x);
/* Sets the plan's `out` to floor(in * scale) for a symbolic `in`, or pins `in` and returns an error. */
STATUS_MUST_USE status onnx_resize_extent(const onnx_node *n, axis_plan *p);
/* Pins the symbols in the extents of an axis, which must be constants, and returns an error if there are any. */
STATUS_MUST_USE status onnx_resize_constant(const onnx_node *n, const axis_plan *p);

#endif
