/* in_place_update.h - recognises instructions, and fusions with one root, that write one array into a larger one at a
 * fixed position (dynamic-update-slice with constant starts).  If the result has the larger array's buffer, they write
 * nothing but this part. */
#ifndef HLO_ANALYSIS_IN_PLACE_UPDATE_H
#define HLO_ANALYSIS_IN_PLACE_UPDATE_H

#include "hlo/ir/ir.h"

typedef struct hlo_in_place_update {
  uint32_t base;   /* the number of the operand into which the part is written; outside of the part, the result
                      equals this operand */
  hlo_value value; /* the part that is written; for a fusion a value of its body */
  /* The positions of the part's elements in the base, counted in elements in row-major order: `rows` runs of `run`
   * contiguous elements, whose starts are `pitch` apart.  The first run starts at element `first`.  Only `rows` may be
   * symbolic. */
  dim rows;
  int64_t run, pitch, first;
} hlo_in_place_update;

/* Describes the instruction `i`, which writes one array, the part, into another one, the base.  Returns false if i does
 * anything else; if it reads the base for something else; if the position is not constant, or the part would reach
 * beyond the base there; if the part has no elements, or is smaller than the base along several dimensions; or if part
 * or base have an extent that is not a constant along the dimension where the part is smaller, or along a later
 * dimension.  If the part is as large as the base, all extents must be constants. */
bool hlo_in_place_update_of(const hlo_instr *i, hlo_in_place_update *out);

#endif
