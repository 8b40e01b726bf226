/* tune.h - which way every contraction of a module is computed: what the log knows, what is timed now, and guesses for
 * the rest. */
#ifndef BACKEND_CPU_AUTOTUNE_TUNE_H
#define BACKEND_CPU_AUTOTUNE_TUNE_H

#include "backend_cpu/algorithms/algorithm.h"

typedef struct cpu_tuner cpu_tuner;

/* Decides for all contractions of the module; options and target are borrowed.  Equal ones are timed once.  The report
 * gets the warning and n_timed.  threads: that runs will use. */
STATUS_MUST_USE status cpu_tune(arena *a, const hlo_module *m, const rt_compile_options *options,
                                const emit_target *target, uint32_t threads, cpu_tuner **out, rt_report *report);

/* For a cpu_plan_selector: the way that was decided on, or the best guess where that cannot be built. */
STATUS_MUST_USE status cpu_tuned_plan(void *tuner, arena *a, const cpu_problem *p, cpu_plan **out);

/* Once all is chosen: how. */
void cpu_tune_report(const cpu_tuner *t, rt_report *report);

#endif
