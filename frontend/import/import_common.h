/* import_common.h - functions that several importers in frontend/ops/ share: element types in which to compute, scalar
 * inputs, reductions, broadcasting and indices. */
#ifndef FRONTEND_IMPORT_IMPORT_COMMON_H
#define FRONTEND_IMPORT_IMPORT_COMMON_H

#include "frontend/import/importer.h"

/* Converts x to the type in which a formula of several operations is computed, so that only its result is rounded to
 * x's type: f32 for smaller floats, bool and integers below 32 bits, f64 for other integers.  Convert the result back
 * with hlo_convert(b, y, hlo_type(x)). */
hlo_value onnx_widen(hlo_builder *b, hlo_value x);

/* Returns input k, which must have one element, as a scalar.  If it has another number of elements, the builder gets an
 * error (hlo_fail), and the result has no def. */
hlo_value onnx_scalar_input(onnx_node *n, uint32_t k, const char *what);
/* Return the number that input k holds, which must be a constant of exactly one element. */
STATUS_MUST_USE status onnx_const_int(const onnx_node *n, uint32_t k, const char *what, int64_t *out);
STATUS_MUST_USE status onnx_const_float(const onnx_node *n, uint32_t k, const char *what, double *out);

/* Returns the attribute `axis` as a value in [0, rank).  `def` is the default and may be negative, like the attribute.
 */
STATUS_MUST_USE status onnx_axis_attr(const onnx_node *n, int64_t def, int64_t rank, int64_t *out);
/* Returns the element type that the attribute `name` states as a TensorProto.DataType number, or `def` if it is absent.
 */
STATUS_MUST_USE status onnx_dtype_attr(const onnx_node *n, const char *name, dtype def, dtype *out);

/* Reduces x over the axes, which stay in the result with extent 1. */
hlo_value onnx_reduce_keep(hlo_builder *b, hlo_value x, hlo_reducer r, uint32_t n, const int64_t *axes);
/* Returns the reducer to use for the type: for pred, "or" in place of maximum and sum, and "and" in place of minimum
 * and product. */
hlo_reducer onnx_reducer_for(dtype t, hlo_reducer r);

/* Apply the operation, or the comparison, to each element of x and the number, which is converted to x's type. */
hlo_value onnx_binary_scalar(hlo_builder *b, hlo_op op, hlo_value x, double scalar);
hlo_value onnx_compare_scalar(hlo_builder *b, hlo_comparison c, hlo_value x, double scalar);

/* Returns factor * d + term as a scalar of the type; it is computed in f64 and then converted.  Numbers beyond 2^53 may
 * be inexact. */
hlo_value onnx_of_dim(hlo_builder *b, dtype type, dim d, double factor, double term);
/* Returns an array like x, each element of which is d. */
hlo_value onnx_dim_like(hlo_builder *b, hlo_value x, dim d);
/* Applies the operation to each element of x and d. */
hlo_value onnx_binary_dim(hlo_builder *b, hlo_op op, hlo_value x, dim d);

/* Broadcasts the operands of an arithmetic operator to one shape.  Since version 7 this follows numpy's rule.  Before,
 * only y is broadcast, only if the attribute `broadcast` is 1, and y's first dimension corresponds to x's dimension
 * `axis`. */
STATUS_MUST_USE status onnx_broadcast_inputs(onnx_node *n, hlo_value *x, hlo_value *y);

/* Returns input k, an array of indices into a dimension of extent `size`, as indices in [0, size): negative indices,
 * which count from the end, are converted.  Indices outside of [-size, size) are errors, as with onnx_check. */
STATUS_MUST_USE status onnx_indices(onnx_node *n, uint32_t k, const char *what, dim size, hlo_value *out);
/* Like onnx_indices, but the last dimension of input k holds tuples of `count` indices; index j of a tuple is one into
 * a dimension of extent sizes[j]. */
STATUS_MUST_USE status onnx_index_tuples(onnx_node *n, uint32_t k, const char *what, uint32_t count, const dim *sizes,
                                         hlo_value *out);
/* Adds to the module a check of the integers in x; the run fails if one of them is out of bounds.  Element k must be
 * less than limits[k % count].  It must be at least 0 or, with from_end, at least -limits[k % count].  If count is 0,
 * no element may be 0.  If x is a constant, it is checked during the import instead, with the error INVALID_MODEL; if
 * limits are symbolic, a guard then states that they are large enough.  If onnx_frame.unchecked is set, only constants
 * are checked.  `what` is the standard's name of x. */
STATUS_MUST_USE status onnx_check(const onnx_node *n, hlo_value x, const char *what, uint32_t count, const dim *limits,
                                  bool from_end);
/* Like onnx_check, for indices x that must be in [0, size). */
STATUS_MUST_USE status onnx_check_below(const onnx_node *n, hlo_value x, const char *what, dim size);
/* Gathers the elements of x at the given indices along the axis.  The indices are known during the import and become a
 * constant of the module. */
hlo_value onnx_take_known(hlo_builder *b, hlo_value x, int64_t axis, const int64_t *indices, int64_t count);

/* Returns the mean of x, a float array, over the axes, which stay in the result with extent 1. */
hlo_value onnx_mean_keep(hlo_builder *b, hlo_value x, uint32_t n, const int64_t *axes);

#endif
