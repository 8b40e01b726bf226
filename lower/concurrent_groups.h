/* concurrent_groups.h - finds groups of instructions that do not depend on each other and runs them at the same time,
 * each on one thread.  It does so if that is faster than running them one after the other with all threads: for small
 * kernels, and for loops with small steps. */
#ifndef LOWER_CONCURRENT_GROUPS_H
#define LOWER_CONCURRENT_GROUPS_H

#include "lower/lower.h"

/* Makes the members of each concurrent group adjacent in the schedule and sets hlo_instr.concurrent of all but the
 * first, in each computation that runs.  It needs a scheduled module and keeps the schedule valid. */
void lower_concurrent_groups(hlo_module *m, const lower_backend *b);

#endif
