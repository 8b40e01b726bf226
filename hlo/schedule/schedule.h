/* schedule.h - the order in which instructions run. */
#ifndef HLO_SCHEDULE_SCHEDULE_H
#define HLO_SCHEDULE_SCHEDULE_H

#include "hlo/ir/ir.h"

/* Reorders the list of every computation so that values die early.  It computes a list schedule, which always
 * runs next the ready instruction that frees most memory, and takes it if its peak memory is lower than that
 * of the given order.  The order stays topological. */
STATUS_MUST_USE status hlo_schedule(hlo_module *m);

#endif
