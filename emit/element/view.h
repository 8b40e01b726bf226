/* view.h - an array seen through slices, transposes, reshapes and broadcasts, where it lies in another one. */
#ifndef EMIT_ELEMENT_VIEW_H
#define EMIT_ELEMENT_VIEW_H

#include "hlo/ir/ir.h"

/* Element i of v is element offset + sum of i[d] * strides[d] of the array that it was made of; a stride is 0 where
 * elements are repeated. */
typedef struct emit_view {
  int64_t offset, strides[SHAPE_MAX_RANK];
} emit_view;

/* v as a view of `base`, which it comes from by these operations alone.  Returns false if a reshape joins what does not
 * lie together. */
bool emit_view_of(hlo_value v, hlo_value base, emit_view *out);

#endif
