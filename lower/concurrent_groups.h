/* concurrent_groups.h - finds groups of instructions that do not depend on each other and runs them at the same time,
 * each on one thread, where that is faster than one after the other with all threads: small kernels, and loops with
 * small steps. */
#ifndef LOWER_CONCURRENT_GROUPS_H
#define LOWER_CONCURRENT_GROUPS_H

#include "lower/lower.h"

/* Makes the members of each concurrent group adjacent in the schedule and sets hlo_instr.concurrent of all but the
 * first, in each computation that runs.  Requires and keeps a schedule. */
void lower_concurrent_groups(hlo_module *m, const lower_backend *b);

#endif
