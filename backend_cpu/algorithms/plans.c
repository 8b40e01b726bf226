/* plans.c - see plans.h. */
#include "backend_cpu/algorithms/plans.h"

#include <stdlib.h>
#include <string.h>

#include "backend_cpu/algorithms/attention.h"
#include "hlo/analysis/queries.h"
#include "lower/kernels/jobs.h"

typedef struct entry {
  const hlo_instr *instr;
  cpu_plan *plan; /* NULL if no algorithm can compute the instruction */
} entry;

struct cpu_plans {
  arena *arena;
  cpu_problem_options options;
  uint32_t n, cap;
  entry *entries; /* sorted by the addresses of the instructions */
};

cpu_plans *cpu_plans_create(arena *a, const cpu_problem_options *options) {
  cpu_plans *plans = ARENA_NEW(a, cpu_plans);
  plans->arena = a;
  plans->options = *options;
  return plans;
}

/* --- looking up plans --- */

static int by_instr(const void *a, const void *b) {
  uintptr_t x = (uintptr_t)((const entry *)a)->instr, y = (uintptr_t)((const entry *)b)->instr;
  return x < y ? -1 : x > y;
}

static entry *find(const cpu_plans *plans, const hlo_instr *i) {
  return plans->n ? bsearch(&(entry){i, NULL}, plans->entries, plans->n, sizeof(entry), by_instr) : NULL;
}

cpu_plan *cpu_plan_of(const cpu_plans *plans, const hlo_instr *i) {
  const entry *e = find(plans, i);
  return e ? e->plan : NULL;
}

static void sort(cpu_plans *plans) {
  if (plans->n) {
    qsort(plans->entries, plans->n, sizeof(entry), by_instr);
  }
}

/* --- building the plan of one instruction --- */

/* Returns the names of the configs that the problem can have, such as "library:p4, gemm:8x48". */
static const char *list_names(arena *a, const cpu_problem *p) {
  cpu_config *configs;
  uint32_t n = cpu_list_configs(a, p, &configs);
  const char *text = "";
  for (uint32_t k = 0; k < n; k++) {
    text = arena_printf(a, "%s%s%s", text, *text ? ", " : "", cpu_config_name(a, &configs[k]));
  }
  return text;
}

static status build_named(arena *a, const cpu_problem *p, cpu_plan **out) {
  cpu_config config;
  CHECK_THAT(cpu_find_config(a, p, p->instr->config, &config), STATUS_UNSUPPORTED,
             "%s has no config '%s' on this target; it has %s", hlo_info(p->contraction)->name, p->instr->config,
             list_names(a, p));
  status s = cpu_plan_build(a, p, &config, out);
  s = s ? s : cpu_plan_check(a, p, *out);
  return status_prefix(s, "config '%s'", p->instr->config);
}

static status build_given(cpu_plans *plans, hlo_instr *i, cpu_plan **out) {
  cpu_problem problem;
  CHECK_THAT(cpu_problem_of(i, &plans->options, &problem), STATUS_INVALID_MODEL,
             "%s has a config '%s', but only contractions can have one", hlo_info(i)->name, i->config);
  return build_named(plans->arena, &problem, out);
}

static status build_rest(cpu_plans *plans, hlo_instr *i, const cpu_problem *p, cpu_plan **out) {
  status s = *i->config ? build_named(plans->arena, p, out) : NULL;
  if (s && status_get_code(s) != STATUS_UNSUPPORTED) {
    return s;
  }
  if (s || !*i->config) {
    status_free(s);
    TRY(cpu_best_estimate(plans->arena, p, out));
  }
  i->config = *out ? cpu_config_name(i->parent->module->arena, &(*out)->config) : "";
  return NULL;
}

/* --- building the plans of a module --- */

/* Fails if an instruction in the body of a fusion has a config, since a fusion is computed as a whole. */
static status check_body(const hlo_instr *i) {
  for (const hlo_instr *j = i->op == HLO_FUSION ? hlo_callee(i, 0)->first : NULL; j; j = j->next) {
    CHECK_THAT(!*j->config, STATUS_INVALID_MODEL, "%s of a fusion has a config '%s', but only the fusion can have one",
               hlo_info(j)->name, j->config);
  }
  return NULL;
}

static status add_given(cpu_plans *plans, hlo_instr *i) {
  const char *where = *i->source ? i->source : hlo_info(i)->name;
  cpu_plan *plan;
  TRY(status_prefix(check_body(i), "%s", where));
  if (!*i->config) {
    return NULL;
  }
  TRY(status_prefix(build_given(plans, i, &plan), "%s", where));
  *ARENA_PUSH(plans->arena, plans->entries, plans->n, plans->cap) = (entry){i, plan};
  return NULL;
}

static status add_rest(cpu_plans *plans, hlo_instr *i) {
  cpu_problem problem;
  cpu_plan *plan = NULL;
  bool attention = i->op == HLO_FUSION && hlo_int(i, HLO_ATTR_FUSION) == HLO_FUSION_ATTENTION;
  if (attention) {
    (void)cpu_attention_plan(plans->arena, i, plans->options.target, &plan);
  } else if (cpu_problem_of(i, &plans->options, &problem)) {
    TRY(build_rest(plans, i, &problem, &plan));
  }
  if (plan) {
    *ARENA_PUSH(plans->arena, plans->entries, plans->n, plans->cap) = (entry){i, plan};
  }
  return NULL;
}

/* --- the plans of the first choices, built on all threads ---
 *
 * A library writes the code of a call while its plan is built; for an instruction that has a config, a job does that.
 * A check of a plan computes with the weights, so a job does it.  All other plans are built while the jobs are
 * collected. */

typedef struct building {
  hlo_instr *instr;
  cpu_problem problem;
  arena *arena;
  cpu_plan *plan; /* NULL if it cannot be used */
} building;

/* Ends a job.  Returns an error only if memory or time runs out.  After any other error b->plan is NULL; add_rest then
 * builds the plan once more, and if that is unsupported it takes the config with the best estimate, otherwise it
 * returns the error. */
static status end_job(building *b, status s) {
  b->plan = s ? NULL : b->plan;
  if (s && status_get_code(s) == STATUS_RESOURCE) {
    return s;
  }
  status_free(s);
  return NULL;
}

static status build_call(void *data) {
  building *b = data;
  return end_job(b, build_named(b->arena, &b->problem, &b->plan));
}

static status check_plan(void *data) {
  building *b = data;
  return end_job(b, cpu_plan_check(b->arena, &b->problem, b->plan));
}

static void destroy(void *data) { arena_destroy(((building *)data)->arena); }

/* The plans that are being built. */
typedef struct buildings {
  uint32_t n, cap;
  building **items;
  lower_jobs *jobs;
} buildings;

/* Adds a copy of `about`, which has an instruction and perhaps its plan.  If `job` is not NULL, also adds the job,
 * which builds or checks the plan. */
static void add_building(const cpu_plans *plans, const building *about, status (*job)(void *data), buildings *c) {
  building *b = arena_memdup(plans->arena, about, sizeof *about);
  *ARENA_PUSH(plans->arena, c->items, c->n, c->cap) = b;
  if (job) {
    arena_cleanup(plans->arena, destroy, b); /* before there is an arena, so that nothing leaks if memory runs out */
    b->arena = arena_create(arena_budget(plans->arena));
    lower_jobs_add(c->jobs, b->problem.multiplications, job, b);
  }
}

/* Finds the config that the instruction has or, if it has none, the one with the best estimate. */
static bool find_config(const cpu_plans *plans, const hlo_instr *i, const cpu_problem *problem, cpu_config *out) {
  cpu_config *configs;
  if (*i->config) {
    return cpu_find_config(plans->arena, problem, i->config, out);
  }
  uint32_t n = cpu_list_configs(plans->arena, problem, &configs);
  if (n) {
    *out = configs[0];
  }
  return n;
}

/* Builds the plan of an instruction that has none, or lets a job do it.  If the plan cannot be built, add_rest tries
 * again. */
static void begin_plan(const cpu_plans *plans, hlo_instr *i, buildings *c) {
  building b = {.instr = i};
  cpu_config config;
  if (find(plans, i) || !cpu_problem_of(i, &plans->options, &b.problem) ||
      !find_config(plans, i, &b.problem, &config)) {
    return;
  }
  if (*i->config && config.algorithm->library_nanoseconds) {
    add_building(plans, &b, build_call, c);
    return;
  }
  status s = cpu_plan_build(plans->arena, &b.problem, &config, &b.plan);
  if (!s) {
    add_building(plans, &b, config.algorithm->check ? check_plan : NULL, c);
  }
  status_free(s);
}

static status build_on_threads(cpu_plans *plans, const hlo_module *m, uint32_t threads) {
  uint32_t n;
  buildings c = {.jobs = lower_jobs_create(plans->arena)};
  hlo_computation **walked = hlo_walked(m, plans->arena, false, &n);
  for (uint32_t k = 0; k < n; k++) {
    for (hlo_instr *i = walked[k]->first; i; i = i->next) {
      begin_plan(plans, i, &c);
    }
  }
  TRY(lower_jobs_run(c.jobs, threads));
  for (uint32_t k = 0; k < c.n; k++) {
    const building *b = c.items[k];
    if (b->plan) {
      b->instr->config = cpu_config_name(b->instr->parent->module->arena, &b->plan->config);
      *ARENA_PUSH(plans->arena, plans->entries, plans->n, plans->cap) = (entry){b->instr, b->plan};
    }
  }
  sort(plans);
  return NULL;
}

/* Calls `add` for each instruction that has no plan. */
static status add_all(cpu_plans *plans, const hlo_module *m, status (*add)(cpu_plans *plans, hlo_instr *i)) {
  uint32_t n;
  hlo_computation **walked = hlo_walked(m, plans->arena, false, &n);
  cpu_plans before = *plans;
  before.entries = arena_memdup(plans->arena, plans->entries, plans->n * sizeof(entry)); /* `add` may move entries */
  for (uint32_t k = 0; k < n; k++) {
    for (hlo_instr *i = walked[k]->first; i; i = i->next) {
      TRY(budget_check(arena_budget(plans->arena)));
      if (!find(&before, i)) {
        TRY(add(plans, i));
      }
    }
  }
  sort(plans);
  return NULL;
}

status cpu_plans_build_given(cpu_plans *plans, const hlo_module *m) { return add_all(plans, m, add_given); }

status cpu_plans_build_rest(cpu_plans *plans, hlo_module *m, uint32_t threads) {
  TRY(build_on_threads(plans, m, threads));
  return add_all(plans, m, add_rest);
}
