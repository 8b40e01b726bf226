/* reduce.h - several reductions in one loop, for emit_reduce (reduce.c) and row-wise fusions
 * (emit/kernel/row_fusion.c). */
#ifndef EMIT_ELEMENT_REDUCE_H
#define EMIT_ELEMENT_REDUCE_H

#include "emit/element/reduction_loop.h"

typedef struct emit_reductions emit_reductions;
struct emit_reductions {
  int n;
  const hlo_instr *of[EMIT_REDUCTION_LOOP_VALUES / 2];
  /* whether of[k] is a maximum of which neither the sign of a zero matters nor whether it is NaN if an element is */
  bool compares[EMIT_REDUCTION_LOOP_VALUES / 2];
  /* Returns the index of the element of the reductions' operands that the loop visits at index r of its space. */
  const emit_index *(*place)(emit_element *e, const emit_reductions *g, const emit_index *r);
  const void *data; /* an argument for the function `place` */
};

/* Returns how many values reduction i accumulates: 2 for complex numbers, otherwise 1. */
int emit_reduction_parts(const hlo_instr *i);
/* Returns one loop for all reductions of g.  The caller sets its space (rank, dims, rows). */
emit_reduction_loop emit_reductions_loop(emit_element *e, const emit_reductions *g);
/* Writes one step of the loop of emit_reductions_loop, which accumulates the elements at index r. */
void emit_reductions_step(const emit_reduction_loop *f, const emit_index *r, LLVMValueRef *acc);
/* Returns the value of reduction k from the results of the loop. */
emit_pair emit_reductions_value(const emit_element *e, const emit_reductions *g, int k, const LLVMValueRef *out);

#endif
