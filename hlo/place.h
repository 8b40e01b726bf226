/* place.h - results that are a part of a larger array: an instruction, or a fusion by its only root, that writes one array at a
 * fixed place of another one (dynamic-update-slice with constant starts).  In place it writes nothing else. */
#ifndef HLO_PLACE_H
#define HLO_PLACE_H

#include "hlo/ir.h"

typedef struct hlo_place {
  uint32_t base;   /* the operand that the result is, but for the part */
  hlo_value value; /* the part: in the body, if there is one */
  /* Where the part's elements stand, in row-major order: `rows` runs of `run` elements, `pitch` apart, from element `first` on. */
  int64_t rows, run, pitch, first;
} hlo_place;

/* False: it is none, or the base is read for something else, or the part is smaller along several dimensions. */
bool hlo_place_of(const hlo_instr *i, hlo_place *out);

#endif
