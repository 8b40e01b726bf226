/* lower.h - from a module that the pipeline has prepared to a program of the cpu's thunks. */
#ifndef BACKEND_CPU_LOWER_LOWER_H
#define BACKEND_CPU_LOWER_LOWER_H

#include "backend_cpu/algorithms/plans.h"

typedef struct cpu_lower_options {
  const emit_target *target;
  uint32_t threads;                 /* that runs will use */
  const cpu_plans *plans;           /* of the module's contractions and attentions */
  bool keep_text, out_of_place;     /* as in rt_compile_options */
  const struct rt_sharing *sharing; /* where packed weights go; NULL: they are the program's own */
  rt_origins *origins;              /* rt_compile_options.origins */
  cpu_jobs *jobs;                   /* gets what is to be packed and copied */
} cpu_lower_options;

/* Without its code: the kernels are collected in `kernels`, and cpu_attach_code comes last. */
STATUS_MUST_USE status cpu_lower(hlo_module *m, cpu_kernels *kernels, const cpu_lower_options *options, arena *a,
                                 rt_program **out, rt_report *report);
/* Gives the program its objects and tells its thunks where their kernels are. */
STATUS_MUST_USE status cpu_attach_code(rt_program *p, const cpu_kernels *kernels, const cpu_code *code);

#endif
