/* sizes.h - dynamic dimensions: dimensions whose size is known only at run time, but which have a bound (the columns of
 * NonZero's result, the boxes that NonMaxSuppression selects).
 *
 * HLO has no dynamic dimensions.  In HLO the dimension has its bound as its extent, which may be symbolic;
 * elements beyond its size are undefined, and the size is a separate value.  An operator that has a rule here
 * passes dynamic dimensions on to its result.  All other operators need arrays of constant dimensions: the
 * node is deferred to the next segment, which gets the array cut to its size.  A segment returns the sizes of
 * its results as additional roots (hlo_module.size_of). */
#ifndef FRONTEND_IMPORT_SIZES_H
#define FRONTEND_IMPORT_SIZES_H

#include "frontend/import/scope.h"

/* Declares a dimension of v dynamic: its extent is a bound, and its size is the value `size`, s64[].  Does nothing if
 * either value has no def. */
void onnx_dynamic_dim_set(onnx_importer *im, hlo_value v, int axis, hlo_value size);
/* Returns the size of v along the axis, s64[]; its def is NULL if the dimension is constant. */
hlo_value onnx_dynamic_dim_get(const onnx_importer *im, hlo_value v, int axis);
bool onnx_has_dynamic_dims(const onnx_importer *im, hlo_value v);

/* If v has dynamic dimensions, returns true and notes that the node which is being imported needs them to be constant,
 * so that it is deferred or host-interpreted. */
bool onnx_require_sizes(onnx_importer *im, hlo_value v);

/* The sizes of the dynamic dimensions of a node's first output. */
struct onnx_sizes {
  hlo_value size[SHAPE_MAX_RANK]; /* def is NULL for a dimension that is constant */
};
/* Applies the rule that onnx_ops.def has for the operator, before the node's importer runs. *out is NULL if no input
 * has a dynamic dimension.  If an input has one and the rule does not accept the node, it returns an error and notes
 * that the node needs constant dimensions (onnx_require_sizes). */
STATUS_MUST_USE status onnx_sizes_before(onnx_node *n, const onnx_op_row *row, onnx_sizes **out);
/* Declares the dynamic dimensions of the node's first output after its importer has run.  `s` may be NULL. */
void onnx_sizes_after(onnx_node *n, const onnx_sizes *s);

/* The rules that onnx_ops.def names.  A rule returns false if it cannot handle the node.  Operators that do much work
 * for each element along the dimension (a MatMul) have no rule, since computing up to the bound would cost more than
 * deferring the node and computing the actual size. */
onnx_sizes_fn onnx_sizes_none, onnx_sizes_unary, onnx_sizes_broadcast, onnx_sizes_transpose, onnx_sizes_gather,
    onnx_sizes_gather_nd, onnx_sizes_squeeze, onnx_sizes_unsqueeze, onnx_sizes_concat, onnx_sizes_slice,
    onnx_sizes_reshape, onnx_sizes_quantize, onnx_sizes_dropout, onnx_sizes_by_importer;

/* Sets the roots of the entry computation to the values, followed by the sizes of their dynamic dimensions. */
void onnx_set_roots(onnx_importer *im, uint32_t n, const hlo_value *values);

#endif
