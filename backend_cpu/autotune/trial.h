/* trial.h - a contraction that is compiled alone by one config, as a program of its own, and run on the real shapes,
 * weights and number of threads in this process. */
#ifndef BACKEND_CPU_AUTOTUNE_TRIAL_H
#define BACKEND_CPU_AUTOTUNE_TRIAL_H

#include "autotune/autotune.h"
#include "backend_cpu/algorithms/algorithm.h"

/* Equal weights in several places, from which the runs of all trials of one problem read in turn. */
typedef struct cpu_copies cpu_copies;
cpu_copies *cpu_copies_create(arena *a);

/* `weights_span`: weights are read from so many bytes in turn, so that they come from the memory or cache that they
 * come from in the whole program; 0: always from the same ones. */
STATUS_MUST_USE status cpu_trial_create(const cpu_problem *p, const char *config, rt_thread_pool *pool,
                                        cpu_copies *copies, uint64_t weights_span, mem_budget *budget,
                                        autotune_trial **out);
status cpu_trial_run(autotune_trial *t);
void cpu_trial_destroy(autotune_trial *t);

#endif
