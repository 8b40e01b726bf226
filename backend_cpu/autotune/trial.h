/* trial.h - a trial: a contraction that is compiled alone by one config, as a program of its own, and run in this
 * process with the real shapes, weights and number of threads. */
#ifndef BACKEND_CPU_AUTOTUNE_TRIAL_H
#define BACKEND_CPU_AUTOTUNE_TRIAL_H

#include "autotune/autotune.h"
#include "backend_cpu/algorithms/algorithm.h"

/* Several copies of the same weights, which the runs of all trials of a problem read in turn. */
typedef struct cpu_copies cpu_copies;
cpu_copies *cpu_copies_create(arena *a);

/* Compiles the trial; the caller destroys it.  Successive runs read the weights from different copies, which take about
 * `weights_span` bytes in total.  So the weights come from the same level of the memory hierarchy as when the whole
 * program runs.  All runs read the same weights if weights_span is 0, or if the weights take less than 64 KiB or more
 * than weights_span. */
STATUS_MUST_USE status cpu_trial_create(const cpu_problem *p, const char *config, rt_thread_pool *pool,
                                        cpu_copies *copies, uint64_t weights_span, mem_budget *budget,
                                        autotune_trial **out);
status cpu_trial_run(autotune_trial *t);
void cpu_trial_destroy(autotune_trial *t);

#endif
