/* concurrent_groups.h - finds groups of instructions that do not depend on each other, to run them at the same time,
 * each on one thread.  This is done where it is faster than running them one after the other, each on all threads: for
 * small kernels, and for loops whose bodies are small. */
#ifndef LOWER_CONCURRENT_GROUPS_H
#define LOWER_CONCURRENT_GROUPS_H

#include "lower/lower.h"

/* Makes the members of each concurrent group adjacent in the schedule, and sets hlo_instr.concurrent of all members
 * except the first.  All computations that run are searched.  The module must be scheduled, and its schedule remains
 * valid.  Nothing happens if b->time is NULL or b->threads is 1. */
void lower_concurrent_groups(hlo_module *m, const lower_backend *b);

#endif
