/* index.h - indices: which element of an array each lane of a vector accesses.
 *
 * An index of an array is lazy: its dimensions refer to dimensions of other indices (for transposes and broadcasts), or
 * it refers to the linear position in another shape (for reshapes).  So the linear position over neighbouring
 * dimensions is not divided into positions along each of them as long as no operation needs such a position. */
#ifndef EMIT_LLVM_INDEX_H
#define EMIT_LLVM_INDEX_H

#include "emit/llvm/position.h"

typedef struct emit_index emit_index;

typedef struct emit_axis {
  /* If `from` is not NULL, the position of the axis is that along dimension `dim` of the index `from`; otherwise it is
   * `pos`. */
  const emit_index *from;
  int dim;
  emit_pos pos;
} emit_axis;

struct emit_index {
  int rank;
  const dim *dims; /* the extents of the array */
  /* If not NULL: an index into an array of another shape with as many elements.  The index that this struct describes
   * has the same linear position; `axes` are then not used. */
  const emit_index *reshaped;
  emit_axis axes[];
};

/* Returns an index whose axes the caller sets; dims are borrowed. */
emit_index *emit_index_new(const emit_indexer *x, int rank, const dim *dims);
/* Returns the index that has the same linear position as i in an array with the extents dims, which are borrowed.  Both
 * arrays have equally many elements. */
const emit_index *emit_index_reshape(const emit_indexer *x, const emit_index *i, int rank, const dim *dims);
/* Set the position along axis k of i: to that along dimension d of `from`, or to p. */
static inline void emit_axis_from(emit_index *i, int k, const emit_index *from, int d) {
  i->axes[k] = (emit_axis){.from = from, .dim = d};
}
static inline void emit_axis_at(emit_index *i, int k, emit_pos p) { i->axes[k] = (emit_axis){.pos = p}; }
/* Returns the linear position over dimensions [first, last).  It is 0 if these have only one element, or if the array
 * is empty. */
emit_pos emit_index_range(const emit_indexer *x, const emit_index *i, int first, int last);
static inline emit_pos emit_index_dim(const emit_indexer *x, const emit_index *i, int k) {
  return emit_index_range(x, i, k, k + 1);
}
static inline emit_pos emit_index_linear(const emit_indexer *x, const emit_index *i) {
  return emit_index_range(x, i, 0, i->rank);
}

#endif
