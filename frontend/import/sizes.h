/* sizes.h - open dimensions: those whose size only running tells, though a bound is known (the rows of a NonZero, the
 * boxes of a NonMaxSuppression).
 *
 * In HLO all dimensions are constants.  An open one has its bound there, elements beyond the size hold anything, and
 * the size is a value like others.  Operators that have a rule here (sizes.c) pass open dimensions on; all others need
 * arrays of constant dimensions: the node waits until the array has left the piece, cut to its size.  What leaves a
 * piece takes its sizes along as hidden results (hlo_module.size_of). */
#ifndef FRONTEND_IMPORT_SIZES_H
#define FRONTEND_IMPORT_SIZES_H

#include "frontend/import/scope.h"

/* v, of the bound's extent, has `size` (s64[]) elements along the axis. */
void onnx_dynamic_dim_set(onnx_importer *im, hlo_value v, int axis, hlo_value size);
/* The size along the axis; no value where the dimension is constant. */
hlo_value onnx_dynamic_dim_get(const onnx_importer *im, hlo_value v, int axis);
bool onnx_has_dynamic_dims(const onnx_importer *im, hlo_value v);

/* Notes that v must have constant dimensions, if it has open ones; then true. */
bool onnx_require_sizes(onnx_importer *im, hlo_value v);

/* Which dimensions of a node's first output are open; found before its importer runs, set after it. */
struct onnx_sizes {
  hlo_value size[SHAPE_MAX_RANK]; /* no value: the dimension is constant */
};
/* *out NULL: no input is open.  Fails, with the sizes wanted, where some is and the row's rule does not take the node.
 */
STATUS_MUST_USE status onnx_sizes_before(onnx_node *n, const onnx_op_row *row, onnx_sizes **out);
void onnx_sizes_after(onnx_node *n, const onnx_sizes *s); /* NULL is allowed */

/* The rules, as onnx_ops.def names them; false: not for this node.  What computes more from a row than a rule costs
 * does better with the rows that there are, and has none. */
onnx_sizes_fn onnx_sizes_none, onnx_sizes_unary, onnx_sizes_broadcast, onnx_sizes_transpose, onnx_sizes_gather,
    onnx_sizes_gather_nd, onnx_sizes_squeeze, onnx_sizes_unsqueeze, onnx_sizes_concat, onnx_sizes_slice,
    onnx_sizes_reshape, onnx_sizes_quantize, onnx_sizes_dropout, onnx_sizes_by_importer;

/* The entry's roots with the sizes of open ones behind them. */
void onnx_set_roots(onnx_importer *im, uint32_t n, const hlo_value *values);

#endif
