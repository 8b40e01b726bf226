/* jobs.h - the last step of a compilation, after all choices are made: jobs that compile kernels, pack weights and copy
 * constants.  They do not depend on each other, so all threads run them, the longest first. */
#ifndef LOWER_KERNELS_JOBS_H
#define LOWER_KERNELS_JOBS_H

#include "base/arena.h"

typedef struct lower_jobs lower_jobs;

lower_jobs *lower_jobs_create(arena *a);

/* Adds a job that takes about `nanoseconds`.  It is run(data), which is called once, on any thread, and must not use
 * the arena of the compilation. */
void lower_jobs_add(lower_jobs *jobs, double nanoseconds, status (*run)(void *data), void *data);

/* Runs the jobs that were added and have not run.  Returns the first failure; no job begins after it. */
STATUS_MUST_USE status lower_jobs_run(lower_jobs *jobs, uint32_t threads);

#endif
