/* compare.h - whether values that a target computed are those that the reference evaluator computes from the
 * same operands.
 *
 * What is compared is one instruction (which may be a fusion), so errors do not add up over a model.  An
 * array that only exact operations make (hlo/ir/ops.def) must be equal.  Any other element may differ by
 *
 *   u * (16 + 2 n) * |reference|                 for n operations, and in addition
 *   s * (128 + 4 sqrt(k)) * largest |reference|  behind sums of k terms, in any order (Winograd's algorithm
 * may lose 7 bits, 128 s),
 *
 * u being half a unit in the last place of the coarsest floating type that a result in the instruction has,
 * and s that of the sums: f32, or f64 if all is.  Where products are of narrower numbers, as the user
 * allowed, 4 units of these take the place of the second term.  What is still apart is compared with how the
 * reference moves when each element of the operands, and of each result within a fusion, is moved by 4 u of
 * itself, at random, several times (as Monte Carlo arithmetic does, Parker 1997): an element may differ by 16
 * times its largest movement, and an integer may be another where a movement makes it another, of which
 * two more go all up and all down. */
#ifndef VERIFY_COMPARE_H
#define VERIFY_COMPARE_H

#include "base/tensor/literal.h"
#include "hlo/ir/ir.h"

typedef struct verify_difference {
  uint32_t result;                    /* of the instruction; the first with a difference */
  int64_t n_wrong, n_elements;        /* of that result */
  int64_t element;                    /* the worst, in row-major order */
  double got, want, allowed, largest; /* of that element; the largest finite magnitude of the result */
} verify_difference;

/* Evaluates the results again, on `a`, with numbers moved by 4 units of themselves, up or down as the seed
 * says: at random, or (VERIFY_ALL_UP) all up, which a negative unit makes all down. */
enum { VERIFY_ALL_UP = 0 };
typedef status verify_move_fn(void *data, double unit, uint64_t seed, arena *a, literal *results);

/* The array with each element of a floating type so moved; others as they are. */
literal verify_moved(arena *a, const literal *from, double unit, uint64_t seed);
/* The seed of part k of what a seed is for. */
uint64_t verify_seed(uint64_t seed, uint64_t k);

/* For verify_move_fn: an instruction and its operands. */
typedef struct verify_evaluation {
  const hlo_instr *i;
  const literal *operands;
} verify_evaluation;
verify_move_fn verify_move_instr; /* data: a verify_evaluation */

/* How strict a comparison is, derived from what is computed. */
typedef struct verify_tolerance {
  double unit;       /* u; 0 means must be equal */
  double of_element; /* what an element may differ by, relative to itself */
  double of_largest; /* and relative to the largest of its array */
} verify_tolerance;

/* For the results of one instruction.  narrow: a type that operands of products may be rounded to, or
 * DTYPE_INVALID. */
verify_tolerance verify_tolerance_of(const hlo_instr *i, dtype narrow);

/* Compares got[n] with want[n]; *differ tells whether anything is wrong, and what is written to *out.
 * `checked`, if not NULL, says for result r and element k whether it means anything. */
STATUS_MUST_USE status verify_compare(arena *a, const verify_tolerance *t, uint32_t n, const literal *want,
                                      const literal *got,
                                      bool (*checked)(const void *data, uint32_t result, int64_t element),
                                      const void *checked_data, verify_move_fn *move, void *move_data, bool *differ,
                                      verify_difference *out);

#endif
