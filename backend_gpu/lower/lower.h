/* lower.h - lowers a module that the pipeline has prepared to a program of the GPU targets' thunks. */
#ifndef BACKEND_GPU_LOWER_LOWER_H
#define BACKEND_GPU_LOWER_LOWER_H

#include "backend_gpu/algorithms/config.h"
#include "lower/kernels/kernels.h"

typedef struct gpu_lower_options {
  const char *target;               /* the name of the rt_target */
  gpu_config_options configs;       /* with the target for which kernels are written */
  bool keep_text, out_of_place;     /* as in rt_compile_options */
  const struct rt_sharing *sharing; /* as in rt_compile_options */
  rt_origins *origins;              /* as in rt_compile_options */
  lower_jobs *jobs;                 /* receives jobs that copy constants */
} gpu_lower_options;

/* Makes a program without its code.  The options must live until the jobs have run.  The kernels are collected in
 * `kernels`; when they are compiled, lower_kernels_attach_program adds them.  *sizes becomes the table of the program's
 * sizes. */
STATUS_MUST_USE status gpu_lower(hlo_module *m, lower_kernels *kernels, const gpu_lower_options *options, arena *a,
                                 size_table *sizes, rt_program **out, rt_report *report);

#endif
