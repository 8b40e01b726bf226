/* exec_openmp.c - GNU OpenMP's team of threads, which oneDNN brings into the process, as the threads of our loops.
 *
 * Called through the functions that compilers call for `#pragma omp parallel`, so that no compiler flag is needed. */
#include "backend_cpu/exec_contraction.h"
#include "runtime/pool.h"

#ifdef HAVE_OPENMP

void GOMP_parallel(void (*fn)(void *), void *data, unsigned threads, unsigned flags);
int omp_get_thread_num(void);
int omp_get_num_threads(void);

typedef struct team_work {
  uint32_t parts;
  void (*part)(void *data, uint32_t k);
  void *data;
} team_work;

/* The team may be smaller than what was asked for. */
static void team_member(void *data) {
  const team_work *w = data;
  for (uint32_t k = (uint32_t)omp_get_thread_num(); k < w->parts; k += (uint32_t)omp_get_num_threads()) {
    w->part(w->data, k);
  }
}

static void run_openmp(uint32_t parts, void (*part)(void *data, uint32_t k), void *data) {
  GOMP_parallel(team_member, &(team_work){parts, part, data}, parts, 0);
}

static const rt_team openmp_team = {"OpenMP", run_openmp};
const rt_team *const cpu_library_team = &openmp_team;

#else

const rt_team *const cpu_library_team = NULL;

#endif
