/* reduction_loop.h - a loop inside of one element (or one vector of elements) that accumulates: reductions, windows,
 * contractions.
 *
 * If lanes run along a dimension that is kept, each lane has its own sum (columns).  If a single element is computed
 * and its loop runs along the innermost dimension of the operand (rows), the loop uses vectors, and their lanes are
 * added up at the end. */
#ifndef EMIT_ELEMENT_REDUCTION_LOOP_H
#define EMIT_ELEMENT_REDUCTION_LOOP_H

#include "emit/element/element.h"

enum { EMIT_REDUCTION_LOOP_VALUES = 12 };

typedef struct emit_reduction_loop emit_reduction_loop;
struct emit_reduction_loop {
  emit_element *e;
  const void *data;
  int n; /* the number of accumulated values; if it is 0, step does something else */
  LLVMValueRef init[EMIT_REDUCTION_LOOP_VALUES]; /* scalars that are neutral for `combine` */
  /* Combines the element at r, a position in the loop's space, into acc, in e's lanes. */
  void (*step)(const emit_reduction_loop *f, const emit_index *r, LLVMValueRef *acc);
  void (*combine)(const emit_reduction_loop *f, LLVMValueRef *acc, const LLVMValueRef *other);
  /* The space of the loop; rows asks for vectors along its last dimension. */
  int rank;
  int64_t dims[SHAPE_MAX_RANK];
  bool rows;
  LLVMValueRef from[SHAPE_MAX_RANK],
      to[SHAPE_MAX_RANK]; /* a limited range of a dimension; NULL means all of it; not with rows */
  bool compact;           /* whether not to unroll, for code that seldom runs */
  bool unroll;            /* whether to unroll short loops, because a step is small */
  /* With rows: `step` ignores the lanes that `mask` excludes (NULL means none).  Then the rest of a row after the last
   * whole vector is handled by the last vector of the row once more. */
  bool masks;
  LLVMValueRef mask;
  /* Set by emit_reduction_loop_run: the number of copies of the accumulators, and the lanes of each. */
  int copies, lanes;
};

/* Accumulates over the whole space into out[n], in e's lanes. */
void emit_reduction_loop_run(emit_reduction_loop *f, LLVMValueRef *out);

/* Runs `fast` if `inside` holds, otherwise `slow`.  Both compute the same values. */
void emit_reduction_loop_either(LLVMValueRef inside, emit_reduction_loop *fast, emit_reduction_loop *slow,
                                LLVMValueRef *out);
/* Narrows *inside (NULL means always) to the case that [p, p + span] is in [0, n) for all lanes.  Returns false if that
 * cannot be told. */
bool emit_reduction_loop_inside(const emit_element *e, emit_pos p, int64_t span, int64_t n, LLVMValueRef *inside);

/* --- shared by the operations --- */

static inline emit_pair emit_widen_pair(const emit_element *e, dtype t, emit_pair v) {
  return (emit_pair){emit_widen(e->w, t, v.v), v.im};
}
/* Accumulates the best value so far and its position (reduce.c): acc is {value, position}, with -1 if there is none. */
void emit_arg_init(emit_reduction_loop *f, dtype t);
void emit_arg_take(const emit_reduction_loop *f, dtype t, bool largest, bool last, LLVMValueRef *acc, LLVMValueRef x,
                   LLVMValueRef at);
LLVMValueRef emit_arg_position(const emit_element *e, emit_pos p);
emit_pair emit_arg_result(const emit_reduction_loop *f, LLVMValueRef position);

#endif
