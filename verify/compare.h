/* compare.h - whether values that a target computed are those that the reference evaluator computes from the same operands.
 *
 * What is compared is one instruction (which may be a fusion), so errors do not add up over a model.  An array that only exact
 * operations make (hlo/ops.def) must be equal.  Any other element may differ by
 *
 *   u * (16 + 2 n) * |reference|                 for n operations, and in addition
 *   s * (128 + 4 sqrt(k)) * largest |reference|  behind sums of k terms, in any order (Winograd's algorithm may lose 7 bits, 128 s),
 *
 * u being half a unit in the last place of the coarsest floating type that a result in the instruction has, and s that of the sums:
 * f32, or f64 if all is.  Where products are of narrower numbers, as the user allowed, 4 units of these take the place of the
 * second term.  What is still apart is
 * compared with how the reference moves when each element of the operands is moved by 4 u of itself, at random, several times: an
 * element may differ by 16 times its largest movement, and an integer may be another where a movement makes it another. */
#ifndef VERIFY_COMPARE_H
#define VERIFY_COMPARE_H

#include "base/literal.h"
#include "hlo/ir.h"

typedef struct verify_difference {
  uint32_t result;                   /* of the instruction; the first with a difference */
  int64_t n_wrong, n_elements;       /* of that result */
  int64_t element;                   /* the worst, in row-major order */
  double got, want, allowed, largest; /* of that element; the largest finite magnitude of the result */
} verify_difference;

/* Evaluates values on `a` again for operands that were moved a little; n_moved tells how many results there are. */
typedef status verify_evaluate_fn(void *data, const literal *operands, arena *a, literal *results);

/* How strict a comparison is, derived from what is computed. */
typedef struct verify_tolerance {
  double unit;       /* u; 0: must be equal */
  double of_element; /* what an element may differ by, relative to itself */
  double of_largest; /* and relative to the largest of its array */
} verify_tolerance;

/* For the results of one instruction.  narrow: a type that operands of products may be rounded to, or DTYPE_INVALID. */
verify_tolerance verify_tolerance_of(const hlo_instr *i, dtype narrow);

/* Compares got[n] with want[n]; *differ tells whether anything is wrong, and what is written to *out.  `checked`, if not NULL, says
 * for result r and element k whether it means anything.  evaluate recomputes `want` from n_operands operands. */
STATUS_MUST_USE status verify_compare(arena *a, const verify_tolerance *t, uint32_t n, const literal *want, const literal *got,
                                      bool (*checked)(const void *data, uint32_t result, int64_t element), const void *checked_data,
                                      uint32_t n_operands, const literal *operands, verify_evaluate_fn *evaluate, void *data,
                                      bool *differ, verify_difference *out);

#endif
