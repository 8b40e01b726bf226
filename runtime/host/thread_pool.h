/* thread_pool.h - threads for the parallel loops of a run.  After a loop, workers spin briefly and then sleep, so an
 * idle pool uses no processor time. */
#ifndef RUNTIME_HOST_THREAD_POOL_H
#define RUNTIME_HOST_THREAD_POOL_H

#include "runtime/program/target.h"

enum { RT_MAX_THREADS = 256 };

/* `threads` is from 1 to RT_MAX_THREADS and includes the caller, so that with 1 no thread is created.  Workers start
 * with the first loop that needs them. */
STATUS_MUST_USE status rt_thread_pool_create(uint32_t threads, rt_thread_pool **out);
/* Ends the threads and frees the pool.  NULL is allowed.  No loop may be running. */
void rt_thread_pool_destroy(rt_thread_pool *p);
/* Returns 1 for NULL. */
uint32_t rt_thread_pool_threads(const rt_thread_pool *p);

/* Calls fn(data, begin, end) for ranges that cover [0, n), on several threads, and returns when all are done.  `grain`
 * is the smallest size of a range; work below 2*grain is done by the caller alone.  So is work if the pool is busy with
 * another caller's loop, or with a loop from which it is called: the throughput is the same, and nobody waits. */
void rt_parallel_for(rt_thread_pool *p, int64_t n, int64_t grain, void (*fn)(void *data, int64_t begin, int64_t end),
                     void *data);

/* Does the same within a run's budget: each range takes some milliseconds, and none begins after the budget is used up,
 * which is then the result. */
STATUS_MUST_USE status rt_parallel_run(const rt_run *r, int64_t n, int64_t grain,
                                       void (*fn)(void *data, int64_t begin, int64_t end), void *data);

#endif
