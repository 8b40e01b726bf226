/* view.h - an array as a view of another one through slices, transposes, reshapes and broadcasts. */
#ifndef EMIT_ELEMENT_VIEW_H
#define EMIT_ELEMENT_VIEW_H

#include "hlo/ir/ir.h"

/* Element i of v is element offset + sum of i[d] * strides[d] of the array from which it comes.  A stride is 0 if
 * elements are repeated. */
typedef struct emit_view {
  int64_t offset, strides[SHAPE_MAX_RANK];
} emit_view;

/* Sets *out to v as a view of `base`, from which it must come by these operations only.  Returns false if a reshape
 * merges dimensions that are not contiguous. */
bool emit_view_of(hlo_value v, hlo_value base, emit_view *out);

#endif
