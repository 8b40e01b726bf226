/* algorithm.c - lists the configs of a contraction, sorted by their estimated times, and builds the plan of a chosen
 * one.  It also defines the algorithm "kernel": the plain loops of emit/. */
#include "backend_cpu/algorithms/algorithm.h"

#include <string.h>

#include "hlo/analysis/quantized.h"

static const cpu_algorithm *const algorithms[] = {
#define ALGORITHM(name) &cpu_##name##_algorithm,
#include "backend_cpu/algorithms/algorithms.def"
};
enum { N_ALGORITHMS = sizeof algorithms / sizeof *algorithms };

/* --- problems --- */

/* Returns the number of the operand of `i` that the contraction reads as its operand k, perhaps through reshapes.
 * Returns -1 if the fusion computes operand k of the contraction itself, or if k is 1 and something else in `i` reads
 * that operand, too, so that it cannot be packed. */
static int32_t operand_of(const hlo_instr *i, const hlo_instr *contraction, uint32_t k) {
  hlo_value v = contraction->operands[k];
  hlo_quantized_weights small;
  if (i == contraction) {
    return hlo_value_equal(v, i->operands[1 - k]) ? -1 : (int32_t)k;
  }
  v = k == 1 && hlo_quantized_weights_of(contraction, &small) ? small.q : v;
  while (v.def->op == HLO_RESHAPE && (k == 0 || v.def->n_uses == 1)) {
    v = v.def->operands[0];
  }
  return v.def->op == HLO_PARAMETER && (k == 0 || v.def->n_uses == 1) ? (int32_t)hlo_int(v.def, HLO_ATTR_INDEX) : -1;
}

bool cpu_problem_of(const hlo_instr *i, const cpu_problem_options *options, cpu_problem *out) {
  const hlo_instr *c = cpu_find_contraction(i);
  if (!c) {
    return false;
  }
  *out = (cpu_problem){.instr = i,
                       .contraction = c,
                       .lhs = operand_of(i, c, 0),
                       .weights = operand_of(i, c, 1),
                       .takes_sizes = emit_takes_sizes(i),
                       .multiplications = cpu_multiplications(c),
                       .options = *options};
  out->constant_weights = out->weights >= 0 && hlo_literal(i->operands[out->weights]);
  return true;
}

double cpu_multiply_add_nanoseconds(const emit_target *t, int64_t lanes) {
  const double instruction_nanoseconds = 0.16; /* two a cycle, at about 3 GHz */
  int64_t widest = t->vector_bits / 32;        /* a vector with more lanes takes several instructions */
  return instruction_nanoseconds / (double)(widest && lanes > widest ? widest : lanes);
}

double cpu_time_on_threads(double nanoseconds, uint32_t threads) {
  double worth = nanoseconds / 6000, most = worth < threads ? worth : threads;
  return most > 1 ? nanoseconds / most : nanoseconds;
}

/* --- configs --- */

static int by_estimate(const void *a, const void *b) {
  double x = ((const cpu_config *)a)->estimate, y = ((const cpu_config *)b)->estimate;
  return x < y ? -1 : x > y;
}

/* Sorts by insertion, since there are few configs and those with equal estimates must keep their order. */
static void sort_configs(uint32_t n, cpu_config *configs) {
  for (uint32_t k = 1; k < n; k++) {
    cpu_config moved = configs[k];
    uint32_t to = k;
    for (; to > 0 && by_estimate(&configs[to - 1], &moved) > 0; to--) {
      configs[to] = configs[to - 1];
    }
    configs[to] = moved;
  }
}

static bool is_for(const cpu_algorithm *x, const cpu_problem *p) { return x->takes_sizes || !p->takes_sizes; }

uint32_t cpu_list_configs(arena *a, const cpu_problem *p, cpu_config **out) {
  cpu_config of_one[CPU_MAX_CONFIGS_OF_ONE], *configs = NULL;
  uint32_t n = 0, cap = 0;
  for (uint32_t c = 0; c < N_ALGORITHMS; c++) {
    memset(of_one, 0, sizeof of_one);
    bool fits = is_for(algorithms[c], p);
    uint32_t found = fits ? algorithms[c]->list_configs(a, p, CPU_MAX_CONFIGS_OF_ONE, of_one) : 0;
    for (uint32_t k = 0; k < found; k++) {
      of_one[k].algorithm = algorithms[c];
      *ARENA_PUSH(a, configs, n, cap) = of_one[k];
    }
  }
  sort_configs(n, configs);
  *out = configs;
  return n;
}

const cpu_algorithm *cpu_algorithm_of(const char *name) {
  size_t n = strcspn(name, ":");
  for (uint32_t k = 0; k < N_ALGORITHMS; k++) {
    if (strncmp(name, algorithms[k]->name, n) == 0 && !algorithms[k]->name[n]) {
      return algorithms[k];
    }
  }
  return NULL;
}

bool cpu_find_config(arena *a, const cpu_problem *p, const char *name, cpu_config *out) {
  size_t n = strcspn(name, ":");
  const char *config = name[n] ? name + n + 1 : "";
  const cpu_algorithm *x = cpu_algorithm_of(name);
  x = x && is_for(x, p) ? x : NULL;
  cpu_config configs[CPU_MAX_CONFIGS_OF_ONE] = {0};
  uint32_t listed = x ? x->list_configs(a, p, CPU_MAX_CONFIGS_OF_ONE, configs) : 0, k = 0;
  while (k < listed && strcmp(configs[k].name, config) != 0) {
    k++;
  }
  if (k < listed) {
    *out = configs[k];
  } else if (!x || !x->find_config || !x->find_config(p, config, out)) {
    return false;
  }
  out->algorithm = x;
  return true;
}

const char *cpu_config_name(arena *a, const cpu_config *c) {
  return *c->name ? arena_printf(a, "%s:%s", c->algorithm->name, c->name) : c->algorithm->name;
}

status cpu_plan_build(arena *a, const cpu_problem *p, const cpu_config *config, cpu_plan **out) {
  cpu_plan *plan = ARENA_NEW(a, cpu_plan);
  plan->config = *config;
  plan->weights = p->weights;
  plan->why = arena_printf(a, "estimated %.2f us", config->estimate * 1e-3);
  *out = plan;
  return config->algorithm->build(a, p, config, plan);
}

status cpu_plan_check(arena *a, const cpu_problem *p, const cpu_plan *plan) {
  const cpu_algorithm *x = plan->config.algorithm;
  return x->check ? x->check(a, p, plan) : NULL;
}

status cpu_best_estimate(arena *a, const cpu_problem *p, cpu_plan **out) {
  cpu_config *configs;
  uint32_t n = cpu_list_configs(a, p, &configs);
  *out = NULL;
  for (uint32_t k = 0; k < n; k++) {
    status s = cpu_plan_build(a, p, &configs[k], out);
    s = s ? s : cpu_plan_check(a, p, *out);
    if (!s) {
      return NULL;
    }
    *out = NULL;
    if (status_get_code(s) != STATUS_UNSUPPORTED) {
      return s;
    }
    status_free(s);
  }
  return NULL;
}

/* --- the plain loops of emit/, for any type and shape --- */

/* The time of one multiplication on one thread: about 15 GFLOP/s. */
static const double kernel_nanoseconds = 0.15;

/* For computed weights the estimate leaves out the time of the call, so that plain loops are preferred for small
 * contractions.  For constant weights it counts the call, as the estimates of other algorithms do, which pack such
 * weights.  Plain loops read weights as they are, and constant ones mostly lie transposed: then the elements for the
 * lanes of a vector are loaded one by one, which is slow and much code. */
static uint32_t list_kernel(arena *a, const cpu_problem *p, uint32_t room, cpu_config *out) {
  (void)a, (void)room;
  double call = p->constant_weights ? CPU_CALL_NANOSECONDS : 0;
  out->estimate = call + cpu_time_on_threads(p->multiplications * kernel_nanoseconds, p->options.threads);
  return emit_supports(p->instr, NULL);
}

static status write_kernel(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                           const void *config, uint32_t phase, emit_kernel_info *info) {
  (void)config, (void)phase;
  return emit_kernel(m, name, i, options, info);
}

static status build_kernel(arena *a, const cpu_problem *p, const cpu_config *v, cpu_plan *out) {
  (void)p, (void)v;
  out->kernel = ARENA_NEW(a, cpu_kernel_plan);
  *out->kernel = (cpu_kernel_plan){.n_phases = 1, .write = write_kernel};
  return NULL;
}

const cpu_algorithm cpu_kernel_algorithm = {.name = "kernel",
                                            .takes_sizes = true,
                                            .compile_nanoseconds = 2e6,
                                            .sized_nanoseconds = 5e6,
                                            .list_configs = list_kernel,
                                            .build = build_kernel};
