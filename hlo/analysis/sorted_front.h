/* sorted_front.h - a sort of which only the first few are read, as TopK makes them, need not order the rest.
 */
#ifndef HLO_ANALYSIS_SORTED_FRONT_H
#define HLO_ANALYSIS_SORTED_FRONT_H

#include "hlo/ir/ir.h"

/* How many elements from the front of each sorted line anybody reads; INT64_MAX: all of them. */
int64_t hlo_sorted_front(const hlo_instr *sort);

#endif
