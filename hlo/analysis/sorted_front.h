/* sorted_front.h - finds sorts of which only the first elements are read, as TopK makes them.  Such a sort need not
 * order the other elements. */
#ifndef HLO_ANALYSIS_SORTED_FRONT_H
#define HLO_ANALYSIS_SORTED_FRONT_H

#include "hlo/ir/ir.h"

/* Returns how many elements from the front of each sorted line are read, or INT64_MAX if all of them may be. */
int64_t hlo_sorted_front(const hlo_instr *sort);

#endif
