/* cost.h - estimates what an instruction computes and moves, for profiles and for choices between algorithms. */
#ifndef HLO_ANALYSIS_COST_H
#define HLO_ANALYSIS_COST_H

#include "hlo/ir/ir.h"

typedef struct hlo_cost {
  /* Arithmetic operations on elements: a multiply-add counts as two, a transcendental function as one, movement as
   * none. */
  int64_t operations;
  /* The bytes of results, and those of operands that are read.  Values inside of a fusion are not counted. */
  int64_t bytes;
} hlo_cost;

/* Returns the cost of one run of `i`; for a fusion, that of its body.  Control flow, parameters, constants and reshapes
 * cost nothing themselves.  Shapes that are not static count as nothing, and sums saturate at the largest int64_t. */
hlo_cost hlo_cost_of(const hlo_instr *i);

#endif
