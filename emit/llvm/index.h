/* index.h - which element of an array, in all lanes at once.
 *
 * A position along one dimension is affine in the lane where possible: lane k stands at base + k * step.  So
 * loads know whether they are one scalar, a contiguous vector, or a strided or scattered one.  An index of an
 * array is lazy: its dimensions refer to dimensions of other indices (transpose, broadcast) or to the linear
 * position in another shape (reshape), and adjacent dimensions that travel together are never taken apart. */
#ifndef EMIT_LLVM_INDEX_H
#define EMIT_LLVM_INDEX_H

#include "base/tensor/shape.h"
#include "emit/llvm/ir.h"

enum { EMIT_SCATTERED = INT32_MIN };

typedef struct emit_pos {
  LLVMValueRef base;   /* i64: of lane 0.  SCATTERED: a vector of i64 or i32, one a lane */
  int64_t step;        /* 0 means all lanes stand at base; or EMIT_SCATTERED */
  int64_t multiple;    /* base is a multiple of it; 0 means base is 0 */
  int64_t least, past; /* least < past: all lanes are known to stand in [least, past) */
} emit_pos;

typedef struct emit_index emit_index;

typedef struct emit_axis {
  const emit_index *from; /* the position along dimension `dim` of that index; NULL means `pos` */
  int dim;
  emit_pos pos;
} emit_axis;

struct emit_index {
  int rank;
  const int64_t *dims;        /* extents of the array */
  const emit_index *reshaped; /* same linear position in an array of another shape; NULL means axes */
  emit_axis axes[];
};

/* Arithmetic that was already written is found again instead of written twice; scopes forget what was written
 * in a block that does not dominate what follows. */
typedef struct emit_table emit_table;
typedef struct emit_pair {
  LLVMValueRef v, im; /* im: the imaginary part of complex numbers */
} emit_pair;
emit_table *emit_table_create(arena *a);
const emit_pair *emit_table_find(const emit_table *t, const uintptr_t key[5]);
void emit_table_put(emit_table *t, const uintptr_t key[5], emit_pair value);
uint32_t emit_table_mark(const emit_table *t);
void emit_table_release(emit_table *t, uint32_t mark);

typedef struct emit_indexer {
  emit_ir *w;
  emit_table *table;
  int lanes;   /* of the values that are being written; 1 means scalars */
  bool narrow; /* every position fits 31 bits: scattered ones are i32 */
} emit_indexer;

/* --- positions --- */
static inline emit_pos emit_pos_lanes(LLVMValueRef base, int64_t step, int64_t multiple) {
  return (emit_pos){base, step, multiple, 0, 0};
}
/* That many lanes side by side, the first of them at a place that is the same in all lanes. */
static inline emit_pos emit_pos_along(emit_pos first, int lanes) {
  emit_pos r = emit_pos_lanes(first.base, lanes > 1, first.multiple);
  if (first.least < first.past) {
    r.least = first.least;
    r.past = first.past + lanes - 1;
  }
  return r;
}
emit_pos emit_pos_const(const emit_indexer *x, int64_t c);
emit_pos emit_pos_at(LLVMValueRef base, int64_t multiple); /* the same in all lanes */
/* One value a lane (any integer vector; a scalar when lanes is 1 gives a plain position). */
emit_pos emit_pos_scattered(const emit_indexer *x, LLVMValueRef v);
emit_pos emit_pos_add(const emit_indexer *x, emit_pos a, emit_pos b);
emit_pos emit_pos_add_const(const emit_indexer *x, emit_pos a, int64_t c);
emit_pos emit_pos_scale(const emit_indexer *x, emit_pos a, int64_t c);
/* Of positions that are not negative; c >= 1. */
emit_pos emit_pos_div(const emit_indexer *x, emit_pos a, int64_t c);
emit_pos emit_pos_mod(const emit_indexer *x, emit_pos a, int64_t c);
/* Clamped to [0, n - 1]. */
emit_pos emit_pos_clamp(const emit_indexer *x, emit_pos a, int64_t n);
static inline bool emit_pos_uniform(emit_pos a) { return a.step == 0; }
/* Is it known that all lanes stand in [from, to); that none does? */
static inline bool emit_pos_inside(emit_pos a, int64_t from, int64_t to) {
  return a.least < a.past && a.least >= from && a.past <= to;
}
static inline bool emit_pos_outside(emit_pos a, int64_t from, int64_t to) {
  return a.least < a.past && (a.past <= from || a.least >= to);
}
/* A vector of all lanes (i32 if narrow), or the scalar when lanes is 1. */
LLVMValueRef emit_pos_vector(const emit_indexer *x, emit_pos a);
/* i64 of the last lane of an affine position. */
LLVMValueRef emit_pos_last(const emit_indexer *x, emit_pos a);

/* --- indices --- */
/* Axes are to be filled in; dims are borrowed. */
emit_index *emit_index_new(const emit_indexer *x, int rank, const int64_t *dims);
const emit_index *emit_index_reshape(const emit_indexer *x, const emit_index *i, int rank, const int64_t *dims);
static inline void emit_axis_from(emit_index *i, int k, const emit_index *from, int d) {
  i->axes[k] = (emit_axis){.from = from, .dim = d};
}
static inline void emit_axis_at(emit_index *i, int k, emit_pos p) { i->axes[k] = (emit_axis){.pos = p}; }
/* Linear position over dimensions [first, last). */
emit_pos emit_index_range(const emit_indexer *x, const emit_index *i, int first, int last);
static inline emit_pos emit_index_dim(const emit_indexer *x, const emit_index *i, int k) {
  return emit_index_range(x, i, k, k + 1);
}
static inline emit_pos emit_index_linear(const emit_indexer *x, const emit_index *i) {
  return emit_index_range(x, i, 0, i->rank);
}

#endif
