/* assign_kernels.c - see assign_kernels.h. */
#include "backend_cpu/compile/assign_kernels.h"

#include "backend_cpu/autotune/contractions.h"
#include "hlo/analysis/queries.h"

/* Implements rt_compile_options.algorithm: each contraction without a config gets config number `number`, counted from
 * 1 in the order of estimates.  A contraction that has fewer configs gets none here.  *most_configs becomes the largest
 * number of configs of such a contraction. */
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

/* Reports how each config was decided, and records the reason in the plans. */
static void report_tuning(arena *a, const autotune_result *tuned, const cpu_plans *plans, rt_report *r) {
  r->warning = tuned->warning ? tuned->warning : r->warning;
  r->n_timed = tuned->n_timed;
  r->n_untimed = tuned->n_untimed;
  r->n_tuned = tuned->n;
  r->tuned = ARENA_NEW_N(a, rt_tuned, tuned->n);
  for (uint32_t k = 0; k < tuned->n; k++) {
    const autotune_decision *d = &tuned->decisions[k];
    const char *source = *d->instr->source ? d->instr->source : cpu_find_contraction(d->instr)->source;
    cpu_plan *plan = cpu_plan_of(plans, d->instr);
    if (plan && *d->times) {
      plan->why = arena_printf(a, "measured, in us: %s", d->times);
    }
    r->tuned[k] = (rt_tuned){arena_printf(a, "%s%s%s", source, *source ? ": " : "", d->what),
                             plan ? d->instr->config : "none", d->times, d->how};
  }
}

static status tune(arena *a, hlo_module *m, const rt_compile_options *options, const cpu_problem_options *problems,
                   cpu_plans *plans, rt_report *report) {
  autotune_backend backend;
  autotune_result tuned;
  cpu_tunables *tunables = cpu_tunables_create(a, problems, &backend);
  backend.background = options->background;
  backend.provisional = options->provisional;
  rt_tune how = options->numerics.deterministic ? RT_TUNE_OFF : options->tune;
  status failed = autotune(a, m, &backend, how, options->tune_log, &tuned);
  cpu_tunables_destroy(tunables);
  TRY(failed);
  TRY(cpu_plans_build_rest(plans, m, options->threads));
  report_tuning(a, &tuned, plans, report);
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
  return cpu_plans_build_rest(*out, m, options->threads);
}
