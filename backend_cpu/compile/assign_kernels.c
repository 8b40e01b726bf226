/* assign_kernels.c - see assign_kernels.h. */
#include "backend_cpu/compile/assign_kernels.h"

#include "backend_cpu/autotune/tune.h"
#include "hlo/analysis/queries.h"

/* rt_compile_options.algorithm: each contraction gets the config of that number, from 1 on, in the order of estimates.
 */
static void assign_nth(arena *a, hlo_module *m, uint32_t number, const cpu_problem_options *problems,
                       uint32_t *most_configs) {
  uint32_t n;
  hlo_computation **walked = hlo_walked(m, a, false, &n);
  for (uint32_t c = 0; c < n; c++) {
    for (hlo_instr *i = walked[c]->first; i; i = i->next) {
      cpu_problem problem;
      cpu_config *configs;
      if (!*i->config && cpu_problem_of(i, problems, &problem)) {
        uint32_t n_configs = cpu_list_configs(a, &problem, &configs);
        *most_configs = n_configs > *most_configs ? n_configs : *most_configs;
        i->config = number <= n_configs ? cpu_config_name(m->arena, &configs[number - 1]) : "";
      }
    }
  }
}

static status tune(arena *a, hlo_module *m, const rt_compile_options *options, const cpu_problem_options *problems,
                   cpu_plans *plans, rt_report *report) {
  cpu_tuner *tuner;
  TRY(cpu_tune(a, m, options, problems, &tuner, report));
  TRY(cpu_plans_build_rest(plans, m));
  cpu_tune_report(tuner, plans, report);
  return NULL;
}

status cpu_assign_kernels(arena *a, hlo_module *m, const rt_compile_options *options,
                          const cpu_problem_options *problems, cpu_plans **out, rt_report *report) {
  *out = cpu_plans_create(a, problems);
  TRY(cpu_plans_build_given(*out, m));
  if (!options->algorithm) {
    return tune(a, m, options, problems, *out, report);
  }
  assign_nth(a, m, options->algorithm, problems, &report->n_algorithms);
  return cpu_plans_build_rest(*out, m);
}
