/* thread_pool.h - threads for the parallel loops of a run.  After a loop, workers spin briefly and then sleep, so an
 * idle pool uses no processor time. */
#ifndef RUNTIME_HOST_THREAD_POOL_H
#define RUNTIME_HOST_THREAD_POOL_H

#include "runtime/program/target.h"

enum { RT_MAX_THREADS = 256 };

/* Makes a pool.  `threads` is from 1 to RT_MAX_THREADS and includes the caller, so no thread is created if it is 1.
 * Worker threads are started by the first loop that needs them. */
STATUS_MUST_USE status rt_thread_pool_create(uint32_t threads, rt_thread_pool **out);
/* Ends the threads and frees the pool.  NULL is allowed.  No loop may be running. */
void rt_thread_pool_destroy(rt_thread_pool *p);
/* Returns 1 for NULL. */
uint32_t rt_thread_pool_threads(const rt_thread_pool *p);

/* Calls fn(data, begin, end) for ranges that cover [0, n), on several threads, and returns when all are done.  Ranges
 * have at least `grain` elements, except the last one of a thread's share.  The caller does all work alone if n is less
 * than 2*grain, if the pool is busy with another caller's loop or with a loop from which this function is called, or if
 * the process was forked after the pool was made.  So no caller waits for another's loop, and no core is idle because
 * of such a wait. */
void rt_parallel_for(rt_thread_pool *p, int64_t n, int64_t grain, void (*fn)(void *data, int64_t begin, int64_t end),
                     void *data);

/* Like rt_parallel_for, with the pool of the run.  If the run has a budget, ranges are divided further into parts of
 * some milliseconds, and no part begins after the budget has expired.  Then the failure of budget_check is returned. */
STATUS_MUST_USE status rt_parallel_run(const rt_run *r, int64_t n, int64_t grain,
                                       void (*fn)(void *data, int64_t begin, int64_t end), void *data);

#endif
