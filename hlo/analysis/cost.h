/* cost.h - what an instruction computes and moves, in numbers, before anybody runs it: for profiles and for choices. */
#ifndef HLO_ANALYSIS_COST_H
#define HLO_ANALYSIS_COST_H

#include "hlo/ir/ir.h"

typedef struct hlo_cost {
  /* arithmetic on elements; a multiply-add counts two, a transcendental function one, movement none */
  int64_t operations;
  /* of operands, as far as they are read, and of results; what stays inside of a fusion is not moved */
  int64_t bytes;
} hlo_cost;

/* Of one run of `i`; a fusion is all that it holds.  Control flow costs nothing itself, nor do parameters, constants
 * and reshapes.  Shapes that are not static count as nothing; sums that leave int64_t stay at its end. */
hlo_cost hlo_cost_of(const hlo_instr *i);

#endif
