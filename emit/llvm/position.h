/* position.h - positions along one dimension: which element each lane of a vector accesses.
 *
 * A position is affine in the lane if possible: lane k is at base + k * step.  So it is known for a load whether it is
 * a scalar, a contiguous vector, or strided or scattered (EMIT_SCATTERED). */
#ifndef EMIT_LLVM_POSITION_H
#define EMIT_LLVM_POSITION_H

#include "emit/llvm/sizes.h"

enum { EMIT_SCATTERED = INT32_MIN };

/* Positions whose distances from another one are constants, though not even: lane k is at first + offsets[k]. Quotients
 * and remainders of affine positions are such, for example 0 0 1 1 2 2 3 3. */
typedef struct emit_spread {
  LLVMValueRef first; /* an i64 */
  int64_t multiple;   /* a divisor of first; 0 means that first is 0 */
  int64_t offsets[];  /* one for each lane */
} emit_spread;

typedef struct emit_pos {
  /* An i64, the position of lane 0; if scattered, a vector of i64 or i32 with a position for each lane. */
  LLVMValueRef base;
  int64_t step;              /* 0 means that all lanes are at base; may be EMIT_SCATTERED */
  int64_t multiple;          /* a divisor of base; 0 means that base is 0 */
  int64_t least, past;       /* if least < past, all lanes are known to be in [least, past) */
  const emit_spread *spread; /* for scattered positions: the same as distances if these are known, otherwise NULL */
} emit_pos;

static inline emit_pos emit_pos_lanes(LLVMValueRef base, int64_t step, int64_t multiple) {
  return (emit_pos){.base = base, .step = step, .multiple = multiple};
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
/* Returns true if the remainder needs arithmetic on vectors, whose distances are then not known. */
bool emit_pos_mod_scatters(const emit_indexer *x, emit_pos a, dim c);
/* Returns `a` with all lanes clamped to [0, n - 1]. */
emit_pos emit_pos_clamp(const emit_indexer *x, emit_pos a, dim n);
/* Returns the distances of a's lanes, also if they are even, or NULL if they are not known constants. */
const emit_spread *emit_pos_spread(const emit_indexer *x, emit_pos a);
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

#endif
