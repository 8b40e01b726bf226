/* tune.h - which way every contraction of a module is computed: what the log knows, what is timed now, and guesses for
 * the rest. */
#ifndef BACKEND_CPU_AUTOTUNE_TUNE_H
#define BACKEND_CPU_AUTOTUNE_TUNE_H

#include "backend_cpu/algorithms/plans.h"

typedef struct cpu_tuner cpu_tuner;

/* Writes the config of each contraction of the module that has none (hlo_instr.config).  Equal contractions are timed
 * once.  `options` and `problems` are borrowed.  The report gets the warning and n_timed. */
STATUS_MUST_USE status cpu_tune(arena *a, hlo_module *m, const rt_compile_options *options,
                                const cpu_problem_options *problems, cpu_tuner **out, rt_report *report);

/* Reports how each config was chosen, and tells the plans so (cpu_plan.why). */
void cpu_tune_report(const cpu_tuner *t, const cpu_plans *plans, rt_report *report);

#endif
