/* import_common.h - what several importers in frontend/ops/ share: types to compute in, scalars, reduced axes. */
#ifndef FRONTEND_IMPORT_IMPORT_COMMON_H
#define FRONTEND_IMPORT_IMPORT_COMMON_H

#include "frontend/import/importer.h"

/* x in the type that functions of several steps compute in: f32 for the smaller floats, a float for integers and bool,
 * so that the result is rounded once.  Give it back with hlo_convert(b, y, hlo_type(x)). */
hlo_value onnx_widen(hlo_builder *b, hlo_value x);

/* Input k as a scalar: it must have one element. */
hlo_value onnx_scalar_input(onnx_node *n, uint32_t k, const char *what);
/* The one number that the constant input k holds. */
STATUS_MUST_USE status onnx_const_int(const onnx_node *n, uint32_t k, const char *what, int64_t *out);
STATUS_MUST_USE status onnx_const_float(const onnx_node *n, uint32_t k, const char *what, double *out);

/* The axis attribute, counted from the front. */
STATUS_MUST_USE status onnx_axis_attr(const onnx_node *n, int64_t def, int64_t rank, int64_t *out);
/* The element type that the integer attribute `name` states. */
STATUS_MUST_USE status onnx_dtype_attr(const onnx_node *n, const char *name, dtype def, dtype *out);

/* hlo_reduce that keeps the axes with extent 1. */
hlo_value onnx_reduce_keep(hlo_builder *b, hlo_value x, hlo_reducer r, uint32_t n, const int64_t *axes);
/* The reducer that means the same for this type: the largest and the sum of pred are "or". */
hlo_reducer onnx_reducer_for(dtype t, hlo_reducer r);

/* What hlo_binary_broadcast does with a scalar of x's type. */
hlo_value onnx_binary_scalar(hlo_builder *b, hlo_op op, hlo_value x, double scalar);
hlo_value onnx_compare_scalar(hlo_builder *b, hlo_comparison c, hlo_value x, double scalar);

/* Arithmetic operators before version 7 broadcast only where the attribute `broadcast` says so, aligning y's
 * dims with x's from `axis` on; since then as numpy does. */
STATUS_MUST_USE status onnx_broadcast_inputs(onnx_node *n, hlo_value *x, hlo_value *y);

/* Indices that count from the end where they are negative, made to count from the front of `size`.  Constants
 * are checked: INVALID_MODEL when one is outside of [-size, size). */
STATUS_MUST_USE status onnx_indices(onnx_node *n, uint32_t k, const char *what, int64_t size, hlo_value *out);
/* The same where the last dimension lists the index of every dimension in sizes. */
STATUS_MUST_USE status onnx_index_tuples(onnx_node *n, uint32_t k, const char *what, uint32_t count, const dim *sizes,
                                         hlo_value *out);
/* Runs fail where an integer of x lies outside: element k must be at least low[k % count] and less than high[k %
 * count]; count 0: not 0.  INVALID_MODEL where a constant does.  `what` is the standard's name of x. */
STATUS_MUST_USE status onnx_check(const onnx_node *n, hlo_value x, const char *what, uint32_t count, const int64_t *low,
                                  const int64_t *high);
/* The same of indices that must lie in [0, size). */
STATUS_MUST_USE status onnx_check_below(const onnx_node *n, hlo_value x, const char *what, int64_t size);
/* Indices along one axis that the importer knows. */
hlo_value onnx_take_known(hlo_builder *b, hlo_value x, int64_t axis, const int64_t *indices, int64_t count);

/* The mean over axes, which are kept with extent 1; x is a float. */
hlo_value onnx_mean_keep(hlo_builder *b, hlo_value x, uint32_t n, const int64_t *axes);

#endif
