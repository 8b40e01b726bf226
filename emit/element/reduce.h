/* reduce.h - reductions that share a loop: what emit_reduce (reduce.c) and kernels of rows (emit/kernel/row_fusion.c)
 * have in common. */
#ifndef EMIT_ELEMENT_REDUCE_H
#define EMIT_ELEMENT_REDUCE_H

#include "emit/element/reduction_loop.h"

typedef struct emit_reductions emit_reductions;
struct emit_reductions {
  int n;
  const hlo_instr *of[EMIT_REDUCTION_LOOP_VALUES / 2];
  /* The index of the reduced array at r, a place in the fold's space. */
  const emit_index *(*place)(emit_element *e, const emit_reductions *g, const emit_index *r);
  const void *data; /* for `place` */
};

/* How many values reduction i accumulates. */
int emit_reduction_parts(const hlo_instr *i);
/* All of g into one fold; its space (rank, dims, rows) is the caller's to set. */
emit_reduction_loop emit_reductions_loop(emit_element *e, const emit_reductions *g);
/* Its step: takes the elements at r. */
void emit_reductions_step(const emit_reduction_loop *f, const emit_index *r, LLVMValueRef *acc);
/* The value of reduction k from what the fold left. */
emit_pair emit_reductions_value(const emit_element *e, const emit_reductions *g, int k, const LLVMValueRef *out);

#endif
