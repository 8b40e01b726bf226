/* index.h - which element of an array each lane accesses.
 *
 * A position along one dimension is affine in the lane if possible: lane k is at base + k * step.  So a load knows
 * whether it is one scalar, a contiguous vector, or strided or scattered.  An index of an array is lazy: its dimensions
 * refer to dimensions of other indices (transpose, broadcast) or to the linear position in another shape (reshape).
 * Adjacent dimensions that stay together are never separated. */
#ifndef EMIT_LLVM_INDEX_H
#define EMIT_LLVM_INDEX_H

#include "base/tensor/shape.h"
#include "emit/llvm/ir.h"

enum { EMIT_SCATTERED = INT32_MIN };

typedef struct emit_pos {
  /* An i64, the position of lane 0; if scattered, a vector of i64 or i32 with a position for each lane. */
  LLVMValueRef base;
  int64_t step;        /* 0 means that all lanes are at base; may be EMIT_SCATTERED */
  int64_t multiple;    /* a divisor of base; 0 means that base is 0 */
  int64_t least, past; /* if least < past, all lanes are known to be in [least, past) */
} emit_pos;

typedef struct emit_index emit_index;

typedef struct emit_axis {
  /* If not NULL, the position is that along dimension `dim` of this index; otherwise it is `pos`. */
  const emit_index *from;
  int dim;
  emit_pos pos;
} emit_axis;

struct emit_index {
  int rank;
  const int64_t *dims; /* the extents of the array */
  /* If not NULL, the same linear position in an array of another shape; otherwise axes are used. */
  const emit_index *reshaped;
  emit_axis axes[];
};

/* Remembers arithmetic that was written, so that it is not written twice.  Scopes forget what was written in a block
 * that does not dominate the following code. */
typedef struct emit_table emit_table;
typedef struct emit_pair {
  LLVMValueRef v, im; /* im is the imaginary part of complex numbers, otherwise NULL */
} emit_pair;
emit_table *emit_table_create(arena *a);
const emit_pair *emit_table_find(const emit_table *t, const uintptr_t key[5]);
void emit_table_put(emit_table *t, const uintptr_t key[5], emit_pair value);
uint32_t emit_table_mark(const emit_table *t);
void emit_table_release(emit_table *t, uint32_t mark);

typedef struct emit_indexer {
  emit_ir *w;
  emit_table *table;
  int lanes;   /* the lanes of the values that are being written; 1 means scalars */
  bool narrow; /* whether every position fits in 31 bits, so that scattered ones are i32 */
} emit_indexer;

/* --- positions --- */
static inline emit_pos emit_pos_lanes(LLVMValueRef base, int64_t step, int64_t multiple) {
  return (emit_pos){base, step, multiple, 0, 0};
}
/* Returns the position of so many consecutive elements, the first of which is the same for all lanes. */
static inline emit_pos emit_pos_along(emit_pos first, int lanes) {
  emit_pos r = emit_pos_lanes(first.base, lanes > 1, first.multiple);
  if (first.least < first.past) {
    r.least = first.least;
    r.past = first.past + lanes - 1;
  }
  return r;
}
emit_pos emit_pos_const(const emit_indexer *x, int64_t c);
emit_pos emit_pos_at(LLVMValueRef base, int64_t multiple); /* a position that is the same for all lanes */
/* Returns a position with a value for each lane, from any integer vector; with a scalar and 1 lane it is an ordinary
 * position. */
emit_pos emit_pos_scattered(const emit_indexer *x, LLVMValueRef v);
emit_pos emit_pos_add(const emit_indexer *x, emit_pos a, emit_pos b);
emit_pos emit_pos_add_const(const emit_indexer *x, emit_pos a, int64_t c);
emit_pos emit_pos_scale(const emit_indexer *x, emit_pos a, int64_t c);
/* The position must not be negative; c is at least 1. */
emit_pos emit_pos_div(const emit_indexer *x, emit_pos a, int64_t c);
emit_pos emit_pos_mod(const emit_indexer *x, emit_pos a, int64_t c);
/* Clamps to [0, n - 1]. */
emit_pos emit_pos_clamp(const emit_indexer *x, emit_pos a, int64_t n);
static inline bool emit_pos_uniform(emit_pos a) { return a.step == 0; }
/* Return true if all lanes are known to be in [from, to), and if all are known to be outside, respectively. */
static inline bool emit_pos_inside(emit_pos a, int64_t from, int64_t to) {
  return a.least < a.past && a.least >= from && a.past <= to;
}
static inline bool emit_pos_outside(emit_pos a, int64_t from, int64_t to) {
  return a.least < a.past && (a.past <= from || a.least >= to);
}
/* Returns a vector of all lanes (i32 if narrow), or the scalar if lanes is 1. */
LLVMValueRef emit_pos_vector(const emit_indexer *x, emit_pos a);
/* Returns the position of the last lane as an i64; a must be affine in the lane. */
LLVMValueRef emit_pos_last(const emit_indexer *x, emit_pos a);

/* --- indices --- */
/* The caller fills in the axes; dims are borrowed. */
emit_index *emit_index_new(const emit_indexer *x, int rank, const int64_t *dims);
const emit_index *emit_index_reshape(const emit_indexer *x, const emit_index *i, int rank, const int64_t *dims);
static inline void emit_axis_from(emit_index *i, int k, const emit_index *from, int d) {
  i->axes[k] = (emit_axis){.from = from, .dim = d};
}
static inline void emit_axis_at(emit_index *i, int k, emit_pos p) { i->axes[k] = (emit_axis){.pos = p}; }
/* Returns the linear position over dimensions [first, last). */
emit_pos emit_index_range(const emit_indexer *x, const emit_index *i, int first, int last);
static inline emit_pos emit_index_dim(const emit_indexer *x, const emit_index *i, int k) {
  return emit_index_range(x, i, k, k + 1);
}
static inline emit_pos emit_index_linear(const emit_indexer *x, const emit_index *i) {
  return emit_index_range(x, i, 0, i->rank);
}

#endif
