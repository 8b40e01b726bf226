/* measure.h - how long the ways to compute a contraction take: each is compiled alone, as a program of its own, and run
 * on the real shapes, weights and number of threads in this process. */
#ifndef BACKEND_CPU_AUTOTUNE_MEASURE_H
#define BACKEND_CPU_AUTOTUNE_MEASURE_H

#include "backend_cpu/algorithms/algorithm.h"

typedef struct cpu_measuring {
  rt_thread_pool *pool;
  mem_budget *budget;
  /* Weights are read from so many bytes in turn, so that they come from the memory or cache that they come from in the
   * whole program; 0: always the same ones. */
  uint64_t weights_span;
  bool thorough; /* more repetitions, and losers stay longer */
} cpu_measuring;

/* nanoseconds[n]: the least time of each offer, negative for one that could not be built or run.  Fails only when the
 * budget's time is used up. */
STATUS_MUST_USE status cpu_measure(const cpu_measuring *m, const cpu_problem *p, uint32_t n, const cpu_config *configs,
                                   double *nanoseconds);

#endif
