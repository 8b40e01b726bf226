/* in_place_update.h - results that are a part of a larger array: an instruction, or a fusion by its only root, that
 * writes one array at a fixed place of another one (dynamic-update-slice with constant starts).  In place it writes
 * nothing else. */
#ifndef HLO_ANALYSIS_IN_PLACE_UPDATE_H
#define HLO_ANALYSIS_IN_PLACE_UPDATE_H

#include "hlo/ir/ir.h"

typedef struct hlo_in_place_update {
  uint32_t base;   /* the operand that the result is, but for the part */
  hlo_value value; /* the part: in the body, if there is one */
  /* Where the part's elements stand, in row-major order: `rows` runs of `run` elements, `pitch` apart, from element
   * `first` on. */
  int64_t rows, run, pitch, first;
} hlo_in_place_update;

/* Returns false if it is none, or the base is read for something else, or the part is smaller along several dimensions.
 */
bool hlo_in_place_update_of(const hlo_instr *i, hlo_in_place_update *out);

#endif
