/* reduction_loop.h - a loop inside of one element (or one vector of elements) that accumulates: reductions, windows,
 * contractions.
 *
 * With lanes along a kept dimension, every lane has its own sum (columns).  For a single element whose loop
 * runs along the innermost dimension of the operand (rows), the loop itself takes vectors, and lanes are
 * added up at the end. */
#ifndef EMIT_ELEMENT_REDUCTION_LOOP_H
#define EMIT_ELEMENT_REDUCTION_LOOP_H

#include "emit/element/element.h"

enum { EMIT_REDUCTION_LOOP_VALUES = 12 };

typedef struct emit_reduction_loop emit_reduction_loop;
struct emit_reduction_loop {
  emit_element *e;
  const void *data;
  int n;                                         /* values that are accumulated; 0 means step does something else */
  LLVMValueRef init[EMIT_REDUCTION_LOOP_VALUES]; /* scalars; combining with them changes nothing */
  /* Takes the element at r, a place in the loop's space, into acc, in e's lanes. */
  void (*step)(const emit_reduction_loop *f, const emit_index *r, LLVMValueRef *acc);
  void (*combine)(const emit_reduction_loop *f, LLVMValueRef *acc, const LLVMValueRef *other);
  /* The loop's space; rows: vectors along its last dimension are wanted. */
  int rank;
  int64_t dims[SHAPE_MAX_RANK];
  bool rows;
  LLVMValueRef from[SHAPE_MAX_RANK],
      to[SHAPE_MAX_RANK]; /* of a dim, only this part of it; NULL means all. Not for rows */
  bool compact;           /* do not unroll: code that seldom runs */
  bool unroll;            /* a step is little: write out short loops */
  /* rows: `step` leaves out the lanes that `mask` (NULL: all count) does not name, so that what is left of a row after
   * the last whole vector is the last vector of the row once more. */
  bool masks;
  LLVMValueRef mask;
  /* Chosen by emit_reduction_loop_run: how many copies of the accumulators, each of how many lanes. */
  int copies, lanes;
};

/* Folds over the whole space into out[n], in e's lanes. */
void emit_reduction_loop_run(emit_reduction_loop *f, LLVMValueRef *out);

/* Runs `fast` where `inside` holds, else `slow`: two ways to the same values. */
void emit_reduction_loop_either(LLVMValueRef inside, emit_reduction_loop *fast, emit_reduction_loop *slow,
                                LLVMValueRef *out);
/* *inside (NULL if there is nothing yet) and: [p, p + span] lies in [0, n) for all lanes.  Returns false if that cannot
 * be told. */
bool emit_reduction_loop_inside(const emit_element *e, emit_pos p, int64_t span, int64_t n, LLVMValueRef *inside);

/* --- what the operations share --- */

static inline emit_pair emit_widen_pair(const emit_element *e, dtype t, emit_pair v) {
  return (emit_pair){emit_widen(e->w, t, v.v), v.im};
}
/* The best value so far and its position (reduce.c): acc {value, position}, -1 for none. */
void emit_arg_init(emit_reduction_loop *f, dtype t);
void emit_arg_take(const emit_reduction_loop *f, dtype t, bool largest, bool last, LLVMValueRef *acc, LLVMValueRef x,
                   LLVMValueRef at);
LLVMValueRef emit_arg_position(const emit_element *e, emit_pos p);
emit_pair emit_arg_result(const emit_reduction_loop *f, LLVMValueRef position);

#endif
