/* race.h - measures how long the configs of one problem take.  The configs take turns, and those that are clearly
 * slower than the fastest drop out. */
#ifndef AUTOTUNE_RACE_H
#define AUTOTUNE_RACE_H

#include "autotune/autotune.h"

/* Writes the least time of each config to nanoseconds[n], where n <= AUTOTUNE_MAX_CONFIGS.  The time of a config that
 * cannot be built or run is negative.  With `thorough` there are more repetitions, and slow configs drop out
 * later.  *disturbed is set to whether other processes used the cores meanwhile, so that the times are less reliable.
 * Fails if the budget is cancelled or its deadline has passed. */
STATUS_MUST_USE status autotune_race(const autotune_backend *backend, mem_budget *budget, const autotune_problem *p,
                                     uint32_t n, const autotune_config *configs, bool thorough, double *nanoseconds,
                                     bool *disturbed);

#endif
