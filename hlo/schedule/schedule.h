/* schedule.h - the order instructions run in. */
#ifndef HLO_SCHEDULE_SCHEDULE_H
#define HLO_SCHEDULE_SCHEDULE_H

#include "hlo/ir/ir.h"

/* Reorders every computation's list so that values die early: the better, by peak memory, of the given order and
 * of a list schedule that prefers what frees most.  Keeps topological order. */
STATUS_MUST_USE status hlo_schedule(hlo_module *m);

#endif
