/* assign_kernels.h - the cpu's part of pass assign_kernels: by which algorithm each contraction is computed. */
#ifndef BACKEND_CPU_COMPILE_ASSIGN_KERNELS_H
#define BACKEND_CPU_COMPILE_ASSIGN_KERNELS_H

#include "backend_cpu/algorithms/plans.h"

/* Builds the plans of the module's contractions and attentions, and writes the config of each contraction that has
 * none.  A config that is there already is kept, or refused.  options->algorithm decides if it is set, else the
 * autotuner.  The report gets what was tuned.  `problems` is borrowed for the life of the plans. */
STATUS_MUST_USE status cpu_assign_kernels(arena *a, hlo_module *m, const rt_compile_options *options,
                                          const cpu_problem_options *problems, cpu_plans **out, rt_report *report);

#endif
