/* evaluate.h - computes all values of a computation with the reference evaluator. */
#ifndef VERIFY_EVALUATE_H
#define VERIFY_EVALUATE_H

#include "hlo/ir/ir.h"

/* A function that is applied to the results of each instruction, except parameters, before other instructions read
 * them. */
typedef struct verify_change {
  void (*apply)(void *data, const hlo_instr *i, arena *a, literal *results);
  void *data;
} verify_change;

/* Evaluates the computation and stores all values, on `a`, as (*out)[id][result].  The ids are those of hlo_number,
 * which this function calls.  `change` may be NULL. */
STATUS_MUST_USE status verify_values(arena *a, const hlo_computation *c, const literal *args,
                                     const verify_change *change, literal ***out);

#endif
