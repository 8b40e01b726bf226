/* schedule.h - the order in which instructions run. */
#ifndef HLO_SCHEDULE_SCHEDULE_H
#define HLO_SCHEDULE_SCHEDULE_H

#include "hlo/ir/ir.h"

/* Reorders the list of every computation so that values die early.  Of the given order and a list schedule, which runs
 * next the instruction that frees most memory, it takes the one with the lower peak memory.  The order stays
 * topological. */
STATUS_MUST_USE status hlo_schedule(hlo_module *m);

#endif
