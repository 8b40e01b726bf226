/* reduction_loop.h - the loop that computes one element, or one vector of elements, of a reduction, a window reduction
 * or a contraction.
 *
 * If the lanes are neighbours along a dimension that is not reduced, each lane has its own accumulator (columns).  If a
 * single element is computed and the innermost dimension of the operand is reduced (rows), the loop uses vectors, and
 * their lanes are combined at the end.
 *
 * If the threads of a team (emit_element.team) compute the element together, they share a loop that is `cooperative`:
 * each takes part of the elements, and then they join what they have accumulated. */
#ifndef EMIT_ELEMENT_REDUCTION_LOOP_H
#define EMIT_ELEMENT_REDUCTION_LOOP_H

#include "emit/element/element.h"

enum { EMIT_REDUCTION_LOOP_VALUES = 12 };

typedef struct emit_reduction_loop emit_reduction_loop;
struct emit_reduction_loop {
  emit_element *e;
  const void *data;
  int n; /* the number of accumulated values; 0 if `step` accumulates nothing and, for example, stores results */
  LLVMValueRef init[EMIT_REDUCTION_LOOP_VALUES]; /* the initial values: scalars, the identity of `combine` */
  /* Accumulates the element at r, an index in the loop's space, into acc, in e->x.lanes lanes. */
  void (*step)(const emit_reduction_loop *f, const emit_index *r, LLVMValueRef *acc);
  /* Combines the accumulated values `other` with those in acc, and leaves the result in acc. */
  void (*combine)(const emit_reduction_loop *f, LLVMValueRef *acc, const LLVMValueRef *other);
  /* The space of the loop: `rank` dimensions with the extents `dims`.  If `rows`, the loop uses vectors along the last
   * one. */
  int rank;
  dim dims[SHAPE_MAX_RANK];
  bool rows;
  LLVMValueRef from[SHAPE_MAX_RANK], to[SHAPE_MAX_RANK]; /* if not NULL, only the range [from, to) of a dimension is
                                                            visited; not allowed with `rows` */
  bool cooperative; /* whether the threads of e->team, if it is not NULL, share the loop; `from`, `to` and `mask` are
                       then NULL */
  bool compact;     /* whether not to unroll, for code that seldom runs */
  bool unroll;      /* whether to unroll short loops, because a step is small */
  bool heavy; /* whether a step takes tens of instructions, so that few copies of the accumulators are enough to hide
                 latencies */
  /* With `rows`: whether `step` ignores the lanes in which `mask` is false (NULL means that all are true), or
   * accumulates the same if it visits an element twice.  If so, and if a row has at least one whole vector, the
   * elements after the last whole vector of a row are accumulated by a vector that ends with the row, in which the
   * lanes that were accumulated before are masked. */
  bool masks;
  LLVMValueRef mask;
  /* Set by emit_reduction_loop_run: the number of copies of the accumulators, and the lanes of each. */
  int copies, lanes;
};

struct emit_team {
  void *data;
  int64_t threads;     /* how many threads have a part of the elements */
  LLVMValueRef number; /* the number of this thread's part, an i64 in [0, threads) */
  /* Combines the values of all parts, and leaves the result in acc of every thread.  The order in which they are
   * combined depends on `threads` only. */
  void (*join)(emit_team *t, const emit_reduction_loop *f, LLVMValueRef *acc);
};

/* Writes a cooperative loop for the team of f->e.  If the loop accumulates nothing, emit_team.join is not called at its
 * end.  Element k of the space, in its linear order, is visited by thread k mod threads, in every loop over a space of
 * that size.  So a thread may read in a later loop what it has stored for an element.  The order of summation depends
 * only on f->n, on the size of the team, on the size of the space, and on whether this size is a constant. */
void emit_team_loop_run(emit_reduction_loop *f, LLVMValueRef *out);

/* Writes the loop over the whole space and sets out[n] to the accumulated values, in e->x.lanes lanes. */
void emit_reduction_loop_run(emit_reduction_loop *f, LLVMValueRef *out);

/* Writes two loops that compute the same values: `fast`, which runs if the i1 `inside` is true, and `slow` otherwise.
 */
void emit_reduction_loop_either(LLVMValueRef inside, emit_reduction_loop *fast, emit_reduction_loop *slow,
                                LLVMValueRef *out);
/* Adds to the condition *inside (an i1; NULL means true) that [p, p + span] lies in [0, n) for all lanes.  Returns
 * false, without a condition, if the lanes are scattered or decrease, or if n is a constant of at most `span`. */
bool emit_reduction_loop_inside(const emit_element *e, emit_pos p, int64_t span, dim n, LLVMValueRef *inside);

/* --- functions for reductions, windows and contractions --- */

static inline emit_pair emit_widen_pair(const emit_element *e, dtype t, emit_pair v) {
  return (emit_pair){emit_widen(e->w, t, v.v), v.im};
}
/* These functions are for loops that accumulate the largest or smallest value so far and its position (reduce.c): acc
 * is {value, position}, and the position is -1 before the first value.  The first sets the loop's n and init.  The
 * second replaces the lanes of acc by x and its position `at` where x is to be preferred: if `last`, the last of equal
 * values is taken, otherwise the first.  A NaN is preferred to all numbers, and the first NaN to the others.  Lanes in
 * which `at` is negative are ignored.  The third returns the position p in the type that acc has, the fourth the
 * accumulated position as the result's s64. */
void emit_arg_init(emit_reduction_loop *f, dtype t);
void emit_arg_take(const emit_reduction_loop *f, dtype t, bool largest, bool last, LLVMValueRef *acc, LLVMValueRef x,
                   LLVMValueRef at);
LLVMValueRef emit_arg_position(const emit_element *e, emit_pos p);
emit_pair emit_arg_result(const emit_reduction_loop *f, LLVMValueRef position);

#endif
