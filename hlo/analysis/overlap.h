/* overlap.h - which operands of an instruction a result may overwrite, derived from the meaning of the operations.
 *
 * Buffer assignment asks the backend for permission to compute in place.  The answers are checked against this file,
 * which knows nothing of backends, kernels or configs; it knows only how an element of a result depends on the elements
 * of an operand. */
#ifndef HLO_ANALYSIS_OVERLAP_H
#define HLO_ANALYSIS_OVERLAP_H

#include "hlo/ir/ir.h"

/* The order in which the implementation of an instruction reads and writes.  Each order permits all that the ones
 * before it permit. */
typedef enum hlo_access {
  /* The implementation reads in an unknown order, or some elements more than once.  No operand may overlap a result. */
  HLO_READS_WHILE_WRITING,
  /* The implementation reads everything on which an element (in row-wise fusions, a row) of a result depends before it
   * writes that element, and does not read it again.  A result may overwrite an operand if each element (row) of the
   * result depends only on the same element (row) of the operand. */
  HLO_READS_ROW_FIRST,
  /* The implementation reads everything before it writes anything.  A result may overwrite any operand. */
  HLO_READS_ALL_FIRST
} hlo_access;

/* How the results of an instruction depend on one operand. */
typedef enum hlo_dependence {
  HLO_INDEPENDENT,
  HLO_ON_SAME_ELEMENT, /* element k in row-major order depends on element k of the operand alone */
  HLO_ON_SAME_ROW,     /* an element depends on its own row of the operand (hlo/analysis/row_space.h) */
  HLO_ON_ANY_ELEMENT
} hlo_dependence;

/* Returns the strongest dependence (the last in the enum) of any result of `i` on operand number `operand`.  Uses `a`
 * for temporary memory. */
hlo_dependence hlo_dependence_on(arena *a, const hlo_instr *i, uint32_t operand);

/* Returns true if `i`, implemented with this access, may write result `result` over operand `operand`, where both begin
 * at the same byte. */
bool hlo_may_overlap(arena *a, const hlo_instr *i, uint32_t operand, uint32_t result, hlo_access access);

#endif
