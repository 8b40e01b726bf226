/* jobs.c - a list of jobs that all threads take from, the longest first. */
#include "lower/kernels/jobs.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/host/thread_pool.h"

typedef struct job {
  double cost;
  status (*run)(void *data);
  void *data;
} job;

struct lower_jobs {
  arena *arena;
  uint32_t n, cap;
  job *items;
};

lower_jobs *lower_jobs_create(arena *a) {
  lower_jobs *jobs = ARENA_NEW(a, lower_jobs);
  jobs->arena = a;
  return jobs;
}

void lower_jobs_add(lower_jobs *jobs, double nanoseconds, status (*run)(void *data), void *data) {
  *ARENA_PUSH(jobs->arena, jobs->items, jobs->n, jobs->cap) = (job){nanoseconds, run, data};
}

/* --- running the jobs --- */

typedef struct run {
  const lower_jobs *jobs;
  atomic_uint next;
  _Atomic(status) failed;
} run;

/* Runs jobs until none is left.  A parallel loop with one iteration for each thread calls this function, which does not
 * use the iteration's number. */
static void take_jobs(void *data, int64_t begin, int64_t end) {
  run *r = data;
  (void)begin, (void)end;
  for (uint32_t k; !atomic_load(&r->failed) && (k = atomic_fetch_add(&r->next, 1)) < r->jobs->n;) {
    const job *j = &r->jobs->items[k];
    status s = budget_check(arena_budget(r->jobs->arena)), none = NULL;
    s = s ? s : guard_run(j->run, j->data);
    if (s && !atomic_compare_exchange_strong(&r->failed, &none, s)) {
      status_free(s);
    }
  }
}

static int by_cost(const void *a, const void *b) {
  double x = ((const job *)a)->cost, y = ((const job *)b)->cost;
  return x > y ? -1 : x < y;
}

status lower_jobs_run(lower_jobs *jobs, uint32_t threads) {
  run r = {.jobs = jobs};
  rt_thread_pool *pool;
  if (jobs->n == 0) {
    return NULL;
  }
  qsort(jobs->items, jobs->n, sizeof *jobs->items, by_cost);
  TRY(rt_thread_pool_create(threads < jobs->n ? threads : jobs->n, &pool));
  rt_parallel_for(pool, rt_thread_pool_threads(pool), 1, take_jobs, &r);
  rt_thread_pool_destroy(pool);
  jobs->n = 0;
  return atomic_load(&r.failed);
}
