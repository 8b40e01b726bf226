/* view.h - an array as a view of another one through slices, transposes, reshapes and broadcasts. */
#ifndef EMIT_ELEMENT_VIEW_H
#define EMIT_ELEMENT_VIEW_H

#include "hlo/ir/ir.h"

/* A view is an array whose elements are elements of another array, the base.  The element at index i of the view is
 * element number offset + sum of i[d] * strides[d] of the base.  A stride is 0 if elements are repeated. */
typedef struct emit_view {
  dim offset, strides[SHAPE_MAX_RANK]; /* constants, or expressions of the module's table of dims */
} emit_view;

/* Describes v as a view of `base` and returns true.  Returns false if v is computed from `base` by other operations
 * than slices, transposes, reshapes and broadcasts, or by more than 16 of them.  Also returns false if a reshape merges
 * dimensions that are not contiguous, since then there are no strides, or if it is not known which dimensions it
 * merges. */
bool emit_view_of(hlo_value v, hlo_value base, emit_view *out);

/* v is computed from an array in memory by elementwise operations, slices, transposes, reshapes and broadcasts. Returns
 * true if dimension d of v comes from the innermost dimension of that array, as far as that can be told: of the
 * operands of an elementwise operation, only one is followed. */
bool emit_is_innermost(hlo_value v, int d);

#endif
