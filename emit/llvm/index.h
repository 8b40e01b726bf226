/* index.h - positions and indices: which element of an array each lane of a vector accesses.
 *
 * A position along one dimension is affine in the lane if possible: lane k is at base + k * step.  So it is known for a
 * load whether it is a scalar, a contiguous vector, or strided or scattered (EMIT_SCATTERED).  An index of an array is
 * lazy: its dimensions refer to dimensions of other indices (for transposes and broadcasts), or it refers to the linear
 * position in another shape (for reshapes).  So the linear position over neighbouring dimensions is not divided into
 * positions along each of them as long as no operation needs such a position. */
#ifndef EMIT_LLVM_INDEX_H
#define EMIT_LLVM_INDEX_H

#include "base/tensor/shape.h"
#include "emit/llvm/ir.h"
#include "emit/llvm/likely.h"

/* --- sizes --- */

/* The sizes of a kernel that are not constants.  Extents, strides and offsets are dims: constants, or expressions of a
 * dim_table.  Each expression that the code needs is an argument of the kernel, which is loaded at the beginning. */
typedef struct emit_sizes {
  dim_table *table;
  LLVMValueRef args; /* the kernel's table of arguments */
  uint32_t n_dims, cap_dims, n_values, cap_values;
  dim *dims; /* argument k is dims[k], and values[k] is its value as an i64 */
  LLVMValueRef *values;
  bool overflow; /* whether the code would need a size that is DIM_OVERFLOW, so that the code must not be used */
} emit_sizes;

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

/* Remembers the results of instructions that were written, so that the same computation is not written twice.
 * emit_table_release forgets what was added since emit_table_mark; it is called after a block that does not dominate
 * the code after it. */
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
  int lanes;   /* the number of lanes of the values that are computed; 1 means scalars */
  bool narrow; /* whether every position fits in 31 bits, so that scattered ones are i32 */
  emit_sizes *sizes;
} emit_indexer;

/* Returns d, which may be signed, as an i64. */
LLVMValueRef emit_size(const emit_indexer *x, dim d);
/* Loads the sizes from number `first` on again, at the beginning of the function that is being written, since another
 * function has loaded them.  The sizes before `first` were loaded in this function. */
void emit_reload_sizes(const emit_indexer *x, uint32_t first);
/* Returns d in as many lanes as v has, and of v's type. */
LLVMValueRef emit_size_like(const emit_indexer *x, LLVMValueRef v, dim d);
/* Returns a - b, which may be negative. */
dim emit_dims_difference(const emit_indexer *x, dim a, dim b);
/* Writes emit_poll (ir.h) for a loop `for (iv = 0; iv < n; iv += step)`, where n and `inner` need not be constants. */
void emit_poll_in(const emit_indexer *x, LLVMValueRef iv, int64_t step, dim n, dim inner);
/* Returns the product of dims[first], ..., dims[last - 1]. */
dim emit_dims_product(const emit_indexer *x, const dim *dims, int first, int last);
/* Returns true if b is known to be a multiple of a, which is not 0. */
bool emit_divides(const emit_indexer *x, dim a, dim b);
/* Returns b / a, where a divides b. */
dim emit_quotient(const emit_indexer *x, dim b, dim a);

/* --- positions --- */
static inline emit_pos emit_pos_lanes(LLVMValueRef base, int64_t step, int64_t multiple) {
  return (emit_pos){base, step, multiple, 0, 0};
}
/* Returns a position that is first.base + k in lane k of `lanes` lanes; `first` is the same in all lanes. */
static inline emit_pos emit_pos_along(emit_pos first, int lanes) {
  emit_pos r = emit_pos_lanes(first.base, lanes > 1, first.multiple);
  if (first.least < first.past) {
    r.least = first.least;
    r.past = first.past + lanes - 1;
  }
  return r;
}
/* Returns p with the range [0, n), in which the caller knows all its lanes to be; without a range if n is not a
 * constant. */
static inline emit_pos emit_pos_below(emit_pos p, dim n) {
  p.past = dim_is_const(n) ? n : 0;
  p.least = 0;
  return p;
}
emit_pos emit_pos_const(const emit_indexer *x, int64_t c);
emit_pos emit_pos_at(LLVMValueRef base, int64_t multiple); /* a position that is the same for all lanes */
/* Returns a scattered position, whose value in each lane is that of the integer vector v.  If there is only 1 lane, v
 * is a scalar and the position is an ordinary one. */
emit_pos emit_pos_scattered(const emit_indexer *x, LLVMValueRef v);
emit_pos emit_pos_add(const emit_indexer *x, emit_pos a, emit_pos b);
emit_pos emit_pos_add_const(const emit_indexer *x, emit_pos a, int64_t c);
emit_pos emit_pos_scale(const emit_indexer *x, emit_pos a, int64_t c);
/* Return a + d, a - d and a * d for a size d that need not be a constant. */
emit_pos emit_pos_add_size(const emit_indexer *x, emit_pos a, dim d);
emit_pos emit_pos_subtract_size(const emit_indexer *x, emit_pos a, dim d);
emit_pos emit_pos_scale_by_size(const emit_indexer *x, emit_pos a, dim d);
/* Return the quotient and the remainder of `a` by c, which is at least 1; `a` must not be negative. */
emit_pos emit_pos_div(const emit_indexer *x, emit_pos a, dim c);
emit_pos emit_pos_mod(const emit_indexer *x, emit_pos a, dim c);
/* Returns `a` with all lanes clamped to [0, n - 1]. */
emit_pos emit_pos_clamp(const emit_indexer *x, emit_pos a, dim n);
static inline bool emit_pos_uniform(emit_pos a) { return a.step == 0; }
/* The first returns true if all lanes are known to be in [from, to), the second if all lanes are known to be outside of
 * that range. */
static inline bool emit_pos_inside(emit_pos a, int64_t from, int64_t to) {
  return a.least < a.past && a.least >= from && a.past <= to;
}
static inline bool emit_pos_outside(emit_pos a, int64_t from, int64_t to) {
  return a.least < a.past && (a.past <= from || a.least >= to);
}
/* Returns the positions of all lanes as a vector (of i32 if x->narrow), or as a scalar if x->lanes is 1. */
LLVMValueRef emit_pos_vector(const emit_indexer *x, emit_pos a);
/* Returns the position of the last lane as an i64; a must be affine in the lane. */
LLVMValueRef emit_pos_last(const emit_indexer *x, emit_pos a);

/* --- indices --- */
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
