/* select.h - the values of an array without repetitions. */
#ifndef FRONTEND_OPS_MATH_SELECT_H
#define FRONTEND_OPS_MATH_SELECT_H

#include "frontend/import/importer.h"

typedef struct onnx_unique_options {
  bool sorted;   /* whether the results are in ascending order; otherwise in the order of their first occurrences */
  bool nan_once; /* whether NaN counts as equal to NaN */
} onnx_unique_options;

/* Sets out[] to the results of the standard's Unique for the slices of x along the axis: the different slices, where
 * each of them first occurs, for each slice of x which of the results it equals, and how often each result occurs. */
STATUS_MUST_USE status onnx_unique(onnx_node *n, hlo_value x, int64_t axis, onnx_unique_options o, hlo_value out[4]);

#endif
