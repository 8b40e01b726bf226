/* jobs.h - the last jobs of a compilation, when everything is decided: compiling kernels, packing weights, copying
 * constants.  They do not depend on each other, so all threads take them, the longest first. */
#ifndef BACKEND_CPU_KERNELS_JOBS_H
#define BACKEND_CPU_KERNELS_JOBS_H

#include "base/arena.h"

typedef struct cpu_jobs cpu_jobs;

cpu_jobs *cpu_jobs_create(arena *a);

/* Adds a job that takes about so many nanoseconds. run(data) is called once, on any thread, and must not use the arena
 * of the compilation. */
void cpu_jobs_add(cpu_jobs *jobs, double nanoseconds, status (*run)(void *data), void *data);

/* Runs the jobs that were added and have not run.  Returns the first failure; no job begins after it. */
STATUS_MUST_USE status cpu_jobs_run(cpu_jobs *jobs, uint32_t threads);

#endif
