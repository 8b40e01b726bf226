/* jobs.h - what a compilation has left to do when everything is decided: kernels to be made into code, weights to be
 * packed, constants to be copied.  None depends on another, so all threads take them, the longest first. */
#ifndef BACKEND_CPU_KERNELS_JOBS_H
#define BACKEND_CPU_KERNELS_JOBS_H

#include "base/arena.h"

typedef struct cpu_jobs cpu_jobs;

cpu_jobs *cpu_jobs_create(arena *a);

/* `run` gets data, once, on any thread; it must not use the arena of the compilation.  About so many nanoseconds. */
void cpu_jobs_add(cpu_jobs *jobs, double nanoseconds, status (*run)(void *data), void *data);

/* Runs those that were added and have not run; the first failure, after which none begins. */
STATUS_MUST_USE status cpu_jobs_run(cpu_jobs *jobs, uint32_t threads);

#endif
