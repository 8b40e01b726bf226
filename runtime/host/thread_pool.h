/* thread_pool.h - threads for one run's parallel loops.  Workers spin briefly after a loop, then park: an idle pool
 * uses no CPU. */
#ifndef RUNTIME_HOST_THREAD_POOL_H
#define RUNTIME_HOST_THREAD_POOL_H

#include "runtime/program/target.h"

enum { RT_MAX_THREADS = 256 };

/* `threads` is from 1 to RT_MAX_THREADS and counts the caller, so that 1 makes no thread at all.  Workers start with
 * the first loop that wants them. */
STATUS_MUST_USE status rt_thread_pool_create(uint32_t threads, rt_thread_pool **out);
/* NULL is allowed.  No loop may be running. */
void rt_thread_pool_destroy(rt_thread_pool *p);
/* 1 for NULL. */
uint32_t rt_thread_pool_threads(const rt_thread_pool *p);

/* Calls fn(data, begin, end) on ranges that cover [0, n), from several threads, and returns when all are done.  `grain`
 * is the least size of a range: work below 2*grain stays on the caller.  So does that of a caller who finds the pool at
 * work for another, or for a loop that it is called from: throughput is the same, and nobody waits. */
void rt_parallel_for(rt_thread_pool *p, int64_t n, int64_t grain, void (*fn)(void *data, int64_t begin, int64_t end),
                     void *data);

/* The same within a run's budget: ranges take some milliseconds each, and none begins when the budget is used up, which
 * is then the result. */
STATUS_MUST_USE status rt_parallel_run(const rt_run *r, int64_t n, int64_t grain,
                                       void (*fn)(void *data, int64_t begin, int64_t end), void *data);

#endif
