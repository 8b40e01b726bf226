/* race.h - how long the configs of one problem take: each is built and run in turn, and those far behind drop out. */
#ifndef AUTOTUNE_RACE_H
#define AUTOTUNE_RACE_H

#include "autotune/autotune.h"

/* nanoseconds[n]: the least time of each config, n <= AUTOTUNE_MAX_CONFIGS; negative for one that could not be built or
 * run.  `thorough`: more repetitions, and losers stay longer.  *disturbed: other processes took cores meanwhile, so
 * that times are worth less.  Fails only when the budget's time is used up. */
STATUS_MUST_USE status autotune_race(const autotune_backend *backend, mem_budget *budget, const autotune_problem *p,
                                     uint32_t n, const autotune_config *configs, bool thorough, double *nanoseconds,
                                     bool *disturbed);

#endif
