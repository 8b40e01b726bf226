/* schedule.h - the order in which instructions run. */
#ifndef HLO_SCHEDULE_SCHEDULE_H
#define HLO_SCHEDULE_SCHEDULE_H

#include "hlo/ir/ir.h"

/* Reorders the list of every computation so that values die early.  It takes the better, by peak memory, of the given
 * order and of a list schedule that prefers the instruction which frees most.  The order stays topological. */
STATUS_MUST_USE status hlo_schedule(hlo_module *m);

#endif
