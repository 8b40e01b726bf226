/* sizes.h - dynamic dimensions: their size is known only at run time, but they have a bound (the rows of a NonZero, the
 * boxes of a NonMaxSuppression).
 *
 * In HLO all dimensions are constants.  A dynamic one has its bound there, elements beyond the size are undefined, and
 * the size is another value.  Operators that have a rule here (sizes.c) pass dynamic dimensions on.  All others need
 * arrays of constant dimensions: the node is deferred until the array has left the segment, cut to its size.  Arrays
 * that leave a segment are accompanied by their sizes, as size roots (hlo_module.size_of). */
#ifndef FRONTEND_IMPORT_SIZES_H
#define FRONTEND_IMPORT_SIZES_H

#include "frontend/import/scope.h"

/* Declares that v, whose extent along the axis is a bound, has `size` elements (s64[]) there. */
void onnx_dynamic_dim_set(onnx_importer *im, hlo_value v, int axis, hlo_value size);
/* Returns the size along the axis, or no value if the dimension is constant. */
hlo_value onnx_dynamic_dim_get(const onnx_importer *im, hlo_value v, int axis);
bool onnx_has_dynamic_dims(const onnx_importer *im, hlo_value v);

/* Returns true if v has dynamic dimensions, and notes that they must be constant. */
bool onnx_require_sizes(onnx_importer *im, hlo_value v);

/* Which dimensions of a node's first output are dynamic.  It is computed before the node's importer runs, and set after
 * it. */
struct onnx_sizes {
  hlo_value size[SHAPE_MAX_RANK]; /* no value if the dimension is constant */
};
/* *out is NULL if no input has a dynamic dimension.  Fails, and notes which sizes are needed, if one has and the row's
 * rule does not accept the node. */
STATUS_MUST_USE status onnx_sizes_before(onnx_node *n, const onnx_op_row *row, onnx_sizes **out);
void onnx_sizes_after(onnx_node *n, const onnx_sizes *s); /* NULL is allowed */

/* The rules that onnx_ops.def names.  A rule returns false if it is not for this node.  Operators whose rows are
 * expensive to compute have no rule: it is better to compute the existing rows only. */
onnx_sizes_fn onnx_sizes_none, onnx_sizes_unary, onnx_sizes_broadcast, onnx_sizes_transpose, onnx_sizes_gather,
    onnx_sizes_gather_nd, onnx_sizes_squeeze, onnx_sizes_unsqueeze, onnx_sizes_concat, onnx_sizes_slice,
    onnx_sizes_reshape, onnx_sizes_quantize, onnx_sizes_dropout, onnx_sizes_by_importer;

/* Sets the entry's roots, followed by the sizes of dynamic ones. */
void onnx_set_roots(onnx_importer *im, uint32_t n, const hlo_value *values);

#endif
