/* evaluate.h - all values of a computation, by the reference evaluator. */
#ifndef VERIFY_EVALUATE_H
#define VERIFY_EVALUATE_H

#include "hlo/ir/ir.h"

/* What is done to the results of each instruction, once they are computed, before others read them. */
typedef struct verify_change {
  void (*apply)(void *data, const hlo_instr *i, arena *a, literal *results);
  void *data;
} verify_change;

/* Evaluates the computation and keeps all values on `a`: (*out)[id][result], by the ids that hlo_number gives, which it
 * calls. change NULL: nothing is done to them. */
STATUS_MUST_USE status verify_values(arena *a, const hlo_computation *c, const literal *args,
                                     const verify_change *change, literal ***out);

/* Seconds of CLOCK_MONOTONIC. */

#endif
