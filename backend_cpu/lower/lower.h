/* lower.h - lowers a module to a program of the cpu target's thunks, after the pipeline of passes has prepared it. */
#ifndef BACKEND_CPU_LOWER_LOWER_H
#define BACKEND_CPU_LOWER_LOWER_H

#include "backend_cpu/algorithms/plans.h"
#include "lower/sizes.h"

typedef struct cpu_lower_options {
  const emit_target *target;
  uint32_t threads;                 /* the number of threads for which work is divided (lower_shares_of) */
  const cpu_plans *plans;           /* the plans of the module's contractions and attentions */
  bool keep_text, out_of_place;     /* as in rt_compile_options */
  bool own_kernels;                 /* as in rt_compile_options */
  const struct rt_sharing *sharing; /* where packed weights are shared; NULL if the program keeps its own */
  rt_origins *origins;              /* rt_compile_options.origins */
  lower_jobs *jobs;                 /* receives jobs that pack weights and copy constants */
} cpu_lower_options;

/* Makes a program without its code.  The options must live until the jobs have run.  The kernels are collected in
 * `kernels`; when they are compiled, lower_kernels_attach_program adds them.  *sizes becomes the table of the program's
 * sizes. */
STATUS_MUST_USE status cpu_lower(hlo_module *m, lower_kernels *kernels, const cpu_lower_options *options, arena *a,
                                 size_table *sizes, rt_program **out, rt_report *report);

#endif
