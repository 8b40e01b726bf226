/* contractions.h - contractions as problems of the autotuner (autotune/autotune.h): their identity, their configs, and
 * the trials that are timed. */
#ifndef BACKEND_CPU_AUTOTUNE_CONTRACTIONS_H
#define BACKEND_CPU_AUTOTUNE_CONTRACTIONS_H

#include "autotune/autotune.h"
#include "backend_cpu/algorithms/algorithm.h"

typedef struct cpu_tunables cpu_tunables;

/* Makes *out, the backend that autotune() needs for a module's contractions.  `options` and the target in it are
 * borrowed.  Must be destroyed when tuning is done. */
cpu_tunables *cpu_tunables_create(arena *a, const cpu_problem_options *options, autotune_backend *out);
void cpu_tunables_destroy(cpu_tunables *t);

#endif
