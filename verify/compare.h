/* compare.h - decides whether values that a target computed agree with those that the reference evaluator computes from
 * the same operands.
 *
 * The results of one instruction (which may be a fusion) are compared, so errors do not add up over a model.  If all
 * operations of the instruction are exact (hlo/ir/ops.def), the results must be equal.  So must integers, but for the
 * second test below.  Otherwise an element may differ by
 *
 *   u * (16 + 2 n) * |reference|                  for n operations, plus
 *   s * (128 + 4 sqrt(k)) * largest |reference|   if there are sums of k terms, added in any order (Winograd's
 *                                                 algorithm may lose 7 bits, which is 128 s),
 *
 * where u is half a unit in the last place of the coarsest floating type among the results of the instruction and of
 * the instructions in its computations, and s is half a unit in the last place of the type of the sums: f32, or f64 if
 * all types are f64.  If the user allowed products in reduced precision, the second term is at least 4 r * largest
 * |reference|, where r is half a unit in the last place of the reduced type.
 *
 * An element that differs by more than this gets a second test.  The reference is evaluated several times with each
 * element of the operands, and of each rounded result within a fusion, changed by 4 u of itself with a random sign
 * (Monte Carlo arithmetic, Parker 1997).  Rounding changes a denormal number by as much as the least normal one, so it
 * is changed by 4 u of that: a kernel that computes x * logistic(y) at once does not round logistic(y), which the
 * reference rounds to few bits where it is denormal.  Zeros and infinities are exact, and are not changed.  A float may
 * then differ by another 16 times its largest change or, if there are sums, the largest change of any element.  An
 * integer may differ if it changes in any evaluation; for integers there are two more evaluations, with all signs
 * positive and all negative. */
#ifndef VERIFY_COMPARE_H
#define VERIFY_COMPARE_H

#include "base/tensor/literal.h"
#include "hlo/ir/ir.h"

typedef struct verify_difference {
  uint32_t result;             /* the first result of the instruction with a difference */
  int64_t n_wrong, n_elements; /* n_wrong: how many elements of that result differ; n_elements: how many it has */
  int64_t element; /* the element, by its number in row-major order, that exceeds its allowed difference most */
  /* got, want and allowed are values of that element; largest is the largest finite magnitude in the reference's result
   */
  double got, want, allowed, largest;
} verify_difference;

/* A function that evaluates the reference's results again, on `a`, after changing each number by 4 * unit * itself, or
 * by 4 * unit * the least normal number if that is more.  0 and infinities stay, and so do the signs of numbers.
 * Whether a magnitude grows is random and depends on the seed.  With the seed VERIFY_ALL_UP all grow, or all shrink if
 * `unit` is negative. */
enum { VERIFY_ALL_UP = 0 };
typedef status verify_move_fn(void *data, double unit, uint64_t seed, arena *a, literal *results);

/* Returns the array with each element changed as verify_move_fn states if its type is floating, otherwise the array
 * itself. */
literal verify_moved(arena *a, const literal *from, double unit, uint64_t seed);
/* Derives another seed from a seed, for the k-th of several arrays, so that they are changed differently.
 * VERIFY_ALL_UP stays as it is. */
uint64_t verify_seed(uint64_t seed, uint64_t k);

/* The data of verify_move_instr: an instruction and its operands. */
typedef struct verify_evaluation {
  const hlo_instr *i;
  const literal *operands;
} verify_evaluation;
verify_move_fn verify_move_instr; /* its data is a verify_evaluation */

/* How much the results of an instruction may differ.  It depends on what the instruction computes. */
typedef struct verify_tolerance {
  double unit;       /* u in the formula at the top of this file; 0 means that elements must be equal */
  double of_element; /* the allowed difference of an element relative to itself */
  double of_largest; /* the allowed difference relative to the largest element of the array */
} verify_tolerance;

/* Returns the tolerance for the results of one instruction.  `narrow` is the type to which operands of products may be
 * rounded (rt_numerics.reduced_precision), or DTYPE_INVALID. */
verify_tolerance verify_tolerance_of(const hlo_instr *i, dtype narrow);

/* Compares got[n] with want[n].  Sets *differ to whether any element is wrong; if so, fills *out.  If `checked` is not
 * NULL, it returns whether an element of a result is defined; elements that are not defined are not compared.  `move`
 * evaluates the reference again for the second test. */
STATUS_MUST_USE status verify_compare(arena *a, const verify_tolerance *t, uint32_t n, const literal *want,
                                      const literal *got,
                                      bool (*checked)(const void *data, uint32_t result, int64_t element),
                                      const void *checked_data, verify_move_fn *move, void *move_data, bool *differ,
                                      verify_difference *out);

#endif
