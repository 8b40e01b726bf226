/* import_common.h - functions that several importers in frontend/ops/ share: types for computing, scalars, reduced
 * axes. */
#ifndef FRONTEND_IMPORT_IMPORT_COMMON_H
#define FRONTEND_IMPORT_IMPORT_COMMON_H

#include "frontend/import/importer.h"

/* Returns x in the type in which functions of several steps are computed: f32 for the smaller floats, a float for
 * integers and bool, so that the result is rounded once.  Convert the result back with hlo_convert(b, y, hlo_type(x)).
 */
hlo_value onnx_widen(hlo_builder *b, hlo_value x);

/* Returns input k, which must have one element, as a scalar. */
hlo_value onnx_scalar_input(onnx_node *n, uint32_t k, const char *what);
/* Returns the one number of the constant input k. */
STATUS_MUST_USE status onnx_const_int(const onnx_node *n, uint32_t k, const char *what, int64_t *out);
STATUS_MUST_USE status onnx_const_float(const onnx_node *n, uint32_t k, const char *what, double *out);

/* Returns the attribute axis, counted from the front. */
STATUS_MUST_USE status onnx_axis_attr(const onnx_node *n, int64_t def, int64_t rank, int64_t *out);
/* Returns the element type whose number the attribute `name` has. */
STATUS_MUST_USE status onnx_dtype_attr(const onnx_node *n, const char *name, dtype def, dtype *out);

/* Does hlo_reduce and keeps the axes with extent 1. */
hlo_value onnx_reduce_keep(hlo_builder *b, hlo_value x, hlo_reducer r, uint32_t n, const int64_t *axes);
/* Returns the reducer that means the same for this type: the maximum and the sum of pred are "or". */
hlo_reducer onnx_reducer_for(dtype t, hlo_reducer r);

/* Does hlo_binary_broadcast with a scalar of x's type. */
hlo_value onnx_binary_scalar(hlo_builder *b, hlo_op op, hlo_value x, double scalar);
hlo_value onnx_compare_scalar(hlo_builder *b, hlo_comparison c, hlo_value x, double scalar);

/* Before version 7, arithmetic operators broadcast only if the attribute `broadcast` says so, and align y's dimensions
 * with x's from `axis` on.  Since version 7 they broadcast as numpy does. */
STATUS_MUST_USE status onnx_broadcast_inputs(onnx_node *n, hlo_value *x, hlo_value *y);

/* Returns indices that count from the front of `size`; negative ones in input k count from the end.  Constants outside
 * of [-size, size) are INVALID_MODEL. */
STATUS_MUST_USE status onnx_indices(onnx_node *n, uint32_t k, const char *what, int64_t size, hlo_value *out);
/* Does the same if the last dimension of the input lists an index for each dimension in sizes. */
STATUS_MUST_USE status onnx_index_tuples(onnx_node *n, uint32_t k, const char *what, uint32_t count, const dim *sizes,
                                         hlo_value *out);
/* Lets runs fail if an integer of x is out of bounds: element k must be at least low[k % count] and less than high[k %
 * count]; if count is 0, no element may be 0.  A constant out of bounds is INVALID_MODEL.  `what` is the standard's
 * name of x. */
STATUS_MUST_USE status onnx_check(const onnx_node *n, hlo_value x, const char *what, uint32_t count, const int64_t *low,
                                  const int64_t *high);
/* Does the same for indices that must be in [0, size). */
STATUS_MUST_USE status onnx_check_below(const onnx_node *n, hlo_value x, const char *what, int64_t size);
/* Takes indices along one axis that are known during the import. */
hlo_value onnx_take_known(hlo_builder *b, hlo_value x, int64_t axis, const int64_t *indices, int64_t count);

/* Returns the mean over axes, which are kept with extent 1. x is a float. */
hlo_value onnx_mean_keep(hlo_builder *b, hlo_value x, uint32_t n, const int64_t *axes);

#endif
