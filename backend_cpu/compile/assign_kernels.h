/* assign_kernels.h - the cpu target's part of pass assign_kernels: decides by which config each contraction is
 * computed. */
#ifndef BACKEND_CPU_COMPILE_ASSIGN_KERNELS_H
#define BACKEND_CPU_COMPILE_ASSIGN_KERNELS_H

#include "backend_cpu/algorithms/plans.h"

/* Builds the plans of the module's contractions and attentions.  A contraction that already has a config keeps it; this
 * function fails if that config is not possible.  For the others, options->algorithm chooses the config if it is not 0;
 * otherwise the autotuner does.  The chosen config is written into the instruction.  The report says what was tuned.
 * The plans borrow problems->target. */
STATUS_MUST_USE status cpu_assign_kernels(arena *a, hlo_module *m, const rt_compile_options *options,
                                          const cpu_problem_options *problems, cpu_plans **out, rt_report *report);

#endif
