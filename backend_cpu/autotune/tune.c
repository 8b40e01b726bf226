#include "backend_cpu/autotune/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "backend_cpu/autotune/measure.h"
#include "backend_cpu/autotune/tune_log.h"
#include "backend_cpu/runtime/target.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/machine.h"
#include "hlo/analysis/queries.h"
#include "hlo/text/text.h"
#include "runtime/host/thread_pool.h"

static const double fast_seconds = 2.5; /* that RT_TUNE_FAST may take for a module */
/* Ways whose guess is so far from the best are not timed; nor, fast, is what is a small part of all. */
static const double most_interruptions = 50; /* a second; an idle machine has a handful */
enum { fast_configs = 3 };
static const double far_estimate = 4, farther_estimate = 50, small_share = 0.002;

/* What is equal is decided once. */
typedef struct decision {
  rt_span all;         /* that decides, as bytes: the same, the same decision */
  uint64_t key, near;  /* in the log: of `all`; of problems that are alike but for rows (0: of none) */
  cpu_problem problem; /* of the first of them */
  uint32_t count, n_configs;
  cpu_config *configs;
  const char *what;
  uint32_t winner; /* of the offers */
  const char *times, *how;
} decision;

typedef struct use {
  hlo_instr *instr;
  uint32_t decision;
} use;

struct cpu_tuner {
  arena *arena;
  const rt_compile_options *options;
  const cpu_problem_options *problems;
  uint64_t constants; /* bytes of the module's */
  uint64_t machine;   /* hash of all that times depend on and that is the same for the whole module */
  uint32_t n, cap, n_uses, cap_uses;
  decision *decisions;
  use *uses;
  cpu_tune_log *log;
  double start;
};

/* --- this machine --- */

/* A virtual machine tells the last cache of a whole computer, of which it has a part: no more than is common for so
 * many cores. */
static uint64_t last_cache_bytes(uint64_t told) {
  static const uint64_t a_core = 8 << 20;
  uint64_t most = machine_all_cores() * a_core;
  return told < most ? told : most;
}

/* Where weights come from when the module runs, as bytes that measuring must go through to find them there. */
static uint64_t weights_span(const cpu_tuner *t) {
  uint64_t near = machine_cache_bytes(2, 1 << 20), far = last_cache_bytes(machine_cache_bytes(3, 8 << 20));
  return t->constants <= near ? 0 : t->constants <= far / 2 ? 2 * near : 4 * far;
}

static uint64_t hash_values(const char *text, uint64_t seed) { return hash_bytes(text, strlen(text), seed); }

static uint64_t machine_hash(const cpu_tuner *t) {
  arena *a = t->arena;
  const char *library = cpu_library_name();
  uint64_t h = hash_values(PACKAGE_VERSION, 1);
  h = hash_values(machine_processor_name().text, h);
  h = hash_values(emit_target_text(a, t->problems->target), h);
  h = hash_values(library ? library : "", h);
  h = hash_mix(h, t->problems->threads);
  h = hash_mix(h, t->options->numerics.exact);
  return hash_mix(h, weights_span(t));
}

/* --- problems of a module --- */

static uint64_t constant_bytes(const hlo_module *m) {
  uint64_t n = 0;
  for (uint32_t k = 0; k < m->n_computations; k++) {
    for (const hlo_instr *i = m->computations[k]->first; i; i = i->next) {
      n += i->op == HLO_CONSTANT ? (uint64_t)shape_bytes(&i->shapes[0]) : 0;
    }
  }
  return n;
}

/* "convolution f32[1,56,56,64] f32[64,64,3,3] add maximum, constant weights", the first shape being given. */
static const char *describe(arena *a, const cpu_problem *p, const char *rows) {
  const hlo_instr *c = p->contraction;
  const char *text = arena_printf(a, "%s %s %s", hlo_info(c)->name, rows, SHAPE_STR(NULL, hlo_shape(c->operands[1])));
  for (const hlo_instr *i = p->instr == c ? NULL : c->next; i; i = i->next) {
    text = arena_printf(a, "%s %s", text, hlo_info(i)->name);
  }
  return arena_printf(a, "%s%s; %u threads", text, p->constant_weights ? ", constant weights" : "", p->options.threads);
}

/* The same for all numbers of rows, of images or places: a new shape then has the packed weights of others.  One row is
 * another matter, and fewer digits are to be measured for each shape. */
static uint64_t near_key(const cpu_tuner *t, const cpu_problem *p) {
  const shape *x = hlo_shape(p->contraction->operands[0]);
  int64_t longest = 1;
  for (int d = 0; d < x->rank; d++) {
    longest = x->dims[d] > longest ? x->dims[d] : longest;
  }
  const char *count = shape_elements(x) == longest ? "one" : "any";
  const char *rows = arena_printf(t->arena, "%s %d %s", dtype_name((dtype)x->type), x->rank, count);
  const hlo_instr *c = p->contraction;
  for (uint32_t k = 0; c->op == HLO_CONVOLUTION && k < hlo_n_ints(c, HLO_ATTR_STRIDES); k++) {
    rows = arena_printf(t->arena, "%s/%d", rows, (int)hlo_ints(c, HLO_ATTR_STRIDES)[k]);
  }
  return p->constant_weights && !p->options.numerics.reduced_precision
             ? hash_values(describe(t->arena, p, rows), t->machine)
             : 0;
}

static status set_key(const cpu_tuner *t, decision *d) {
  const hlo_print_options options = {.no_sources = true};
  const cpu_problem *p = &d->problem;
  const hlo_instr *alone = cpu_outline(t->arena, p->instr, CPU_OUTLINE_KERNEL, p->weights);
  const char *text;
  rt_writer w = {.arena = t->arena};
  TRY(hlo_print(t->arena, alone->parent->module, &options, &text, NULL));
  rt_put_text(&w, text);
  for (uint32_t k = 0; k < p->instr->n_operands; k++) {
    rt_put_i64(&w, hlo_literal(p->instr->operands[k]) != NULL);
  }
  for (uint32_t k = 0; k < d->n_configs; k++) { /* new configs, or others, are to be timed */
    rt_put_text(&w, cpu_config_name(t->arena, &d->configs[k]));
  }
  d->all = rt_written(&w);
  d->key = hash_bytes(d->all.data, d->all.size, t->machine);
  return NULL;
}

static bool same_decision(const decision *a, const decision *b) {
  return a->key == b->key && a->all.size == b->all.size && memcmp(a->all.data, b->all.data, a->all.size) == 0;
}

static status add_use(cpu_tuner *t, hlo_instr *i) {
  decision d = {.count = 1, .times = "", .how = "guess"};
  if (*i->config || !cpu_problem_of(i, t->problems, &d.problem)) {
    return NULL;
  }
  d.n_configs = cpu_list_configs(t->arena, &d.problem, &d.configs);
  if (d.n_configs == 0) {
    return NULL;
  }
  TRY(set_key(t, &d));
  uint32_t k = 0;
  while (k < t->n && !same_decision(&t->decisions[k], &d)) {
    k++;
  }
  if (k < t->n) {
    t->decisions[k].count++;
  } else {
    d.what = describe(t->arena, &d.problem, SHAPE_STR(NULL, hlo_shape(d.problem.contraction->operands[0])));
    d.near = near_key(t, &d.problem);
    *ARENA_PUSH(t->arena, t->decisions, t->n, t->cap) = d;
  }
  *ARENA_PUSH(t->arena, t->uses, t->n_uses, t->cap_uses) = (use){i, k};
  return NULL;
}

static status find_uses(cpu_tuner *t, const hlo_module *m) {
  uint32_t n;
  hlo_computation **walked = hlo_walked(m, t->arena, false, &n);
  for (uint32_t k = 0; k < n; k++) {
    for (hlo_instr *i = walked[k]->first; i; i = i->next) {
      TRY(budget_check(arena_budget(t->arena)));
      TRY(add_use(t, i));
    }
  }
  return NULL;
}

/* --- deciding --- */

/* Returns the index of the config of that name, which is added if it was not listed; n_configs if there is none. */
static uint32_t config_of_name(const cpu_tuner *t, decision *d, const char *name) {
  cpu_config more;
  uint32_t k = 0;
  while (k < d->n_configs && strcmp(cpu_config_name(t->arena, &d->configs[k]), name) != 0) {
    k++;
  }
  if (k == d->n_configs && cpu_find_config(t->arena, &d->problem, name, &more)) {
    cpu_config *configs = ARENA_NEW_N(t->arena, cpu_config, k + 1);
    memcpy(configs, d->configs, k * sizeof *configs);
    configs[k] = more;
    d->configs = configs;
    d->n_configs++;
  }
  return k;
}

/* False: the log has nothing for it, or not what was asked for. */
static bool decide_by_log(cpu_tuner *t, decision *d) {
  const cpu_log_entry *e = cpu_tune_log_find(t->log, d->key);
  if (!e || (t->options->tune == RT_TUNE_FULL && e->how != CPU_LOG_FULL)) {
    return false;
  }
  uint32_t k = config_of_name(t, d, e->winner);
  if (k == d->n_configs) {
    return false;
  }
  d->winner = k;
  d->times = e->times;
  d->how = "log";
  return true;
}

static bool is_of_algorithm(const char *winner, const cpu_config *o) {
  size_t n = strlen(o->algorithm->name);
  return strncmp(winner, o->algorithm->name, n) == 0 && (winner[n] == ':' || winner[n] == '\0');
}

/* What was guessed for another number of rows is as good a guess for these, and its code may be there already. */
static void estimate_by_near(const cpu_tuner *t, decision *d, const cpu_log_entry *e) {
  const double as_good = 1.05;
  uint32_t same = is_of_algorithm(e->winner, &d->configs[0]) ? config_of_name(t, d, e->winner) : d->n_configs;
  if (same < d->n_configs && d->configs[same].estimate <= as_good * d->configs[0].estimate) {
    d->winner = same;
    d->how = "near";
  }
}

/* What was fastest with another number of rows, if no estimate speaks against it: the same config or its algorithm's
 * best. */
static void decide_by_near(const cpu_tuner *t, decision *d) {
  const double same_config = 1.25;
  const cpu_log_entry *e = d->near ? cpu_tune_log_find(t->log, d->near) : NULL;
  uint32_t best = 0;
  if (e && e->how == CPU_LOG_ESTIMATE) {
    estimate_by_near(t, d, e);
    return;
  }
  while (e && best < d->n_configs && !is_of_algorithm(e->winner, &d->configs[best])) {
    best++;
  }
  if (!e || best == d->n_configs || d->configs[best].estimate > far_estimate * d->configs[0].estimate) {
    return;
  }
  d->winner = best;
  d->how = "near";
  uint32_t same = config_of_name(t, d, e->winner);
  if (same < d->n_configs && d->configs[same].estimate <= same_config * d->configs[best].estimate) {
    d->winner = same;
  }
}

static void note(cpu_tuner *t, const decision *d, cpu_log_how how) {
  const char *winner = cpu_config_name(t->arena, &d->configs[d->winner]);
  cpu_tune_log_add(t->log, &(cpu_log_entry){d->key, how, winner, d->times, d->what});
  const cpu_log_entry *near = d->near ? cpu_tune_log_find(t->log, d->near) : NULL;
  if (d->near && (!near || near->how < how)) {
    const char *what = arena_printf(t->arena, "other rows: %s", d->what);
    cpu_tune_log_add(t->log, &(cpu_log_entry){d->near, how, winner, d->times, what});
  }
}

/* How many of the algorithm's configs stand before config k, which are those with better estimates. */
static uint32_t better_configs(const decision *d, uint32_t k) {
  uint32_t n = 0;
  for (uint32_t j = 0; j < k; j++) {
    n += d->configs[j].algorithm == d->configs[k].algorithm;
  }
  return n;
}

/* The configs that are worth timing, by number: not those with bad estimates, nor, fast, more than some of one
 * algorithm. */
static uint32_t worth_timing(const cpu_tuner *t, const decision *d, uint32_t *out) {
  bool full = t->options->tune == RT_TUNE_FULL;
  double most = (full ? farther_estimate : far_estimate) * d->configs[0].estimate;
  uint32_t n = 0;
  for (uint32_t k = 0; k < d->n_configs && n < CPU_MAX_CONFIGS; k++) {
    const cpu_config *v = &d->configs[k];
    if (v->estimate <= most && (full || better_configs(d, k) < fast_configs)) {
      out[n++] = k;
    }
  }
  return n;
}

/* What a way must be faster by to be worth so much more memory, or may be slower by to save it: pages that a start must
 * map, caches that others could use. */
static double worth_of_memory(const cpu_config *other, const cpu_config *best) {
  const double much = 4 << 20, very_much = 12 << 20, more = other->bytes - best->bytes;
  double worth = fabs(more) > very_much ? 0.75 : fabs(more) > much ? 0.93 : 1;
  return more > 0 ? worth : 1 / worth;
}

/* The fastest; who stands behind another must be faster by more than what differs from one time to the next, by much
 * where others disturbed us: a log is made once.  -1: none ran. */
static int64_t fastest(uint32_t n, const cpu_config *configs, const double *times, bool disturbed) {
  int64_t best = -1;
  for (uint32_t k = 0; k < n; k++) {
    double clearly = disturbed ? 0.7 : configs[k].idle ? 0.85 : 0.96;
    if (times[k] >= 0 &&
        (best < 0 || times[k] < clearly * worth_of_memory(&configs[k], &configs[best]) * times[best])) {
      best = k;
    }
  }
  return best;
}

/* How often other processes have taken a core from this one. */
static int64_t interruptions(void) {
  struct rusage u;
  return getrusage(RUSAGE_SELF, &u) == 0 ? u.ru_nivcsw : 0;
}

static status measure(cpu_tuner *t, rt_thread_pool *pool, decision *d) {
  bool full = t->options->tune == RT_TUNE_FULL;
  cpu_measuring m = {pool, arena_budget(t->arena), weights_span(t), full};
  double times[CPU_MAX_CONFIGS];
  uint32_t numbers[CPU_MAX_CONFIGS], n = worth_timing(t, d, numbers);
  cpu_config configs[CPU_MAX_CONFIGS];
  for (uint32_t k = 0; k < n; k++) {
    configs[k] = d->configs[numbers[k]];
  }
  int64_t before = interruptions();
  double start = clock_seconds();
  TRY(cpu_measure(&m, &d->problem, n, configs, times));
  bool disturbed = (double)(interruptions() - before) > 2 + most_interruptions * (clock_seconds() - start);
  const char *text = disturbed ? "disturbed" : "";
  int64_t best = fastest(n, configs, times, disturbed);
  for (uint32_t k = 0; k < n; k++) {
    if (times[k] >= 0) {
      text = arena_printf(t->arena, "%s%s%s=%.2f", text, *text ? "," : "", cpu_config_name(t->arena, &configs[k]),
                          times[k] * 1e-3);
    }
  }
  if (best >= 0) {
    d->winner = numbers[best];
    d->times = text;
    d->how = "timed";
    note(t, d, full ? CPU_LOG_FULL : CPU_LOG_FAST);
  }
  return NULL;
}

static double weight_of(const decision *d) { return d->configs[0].estimate * d->count; }

static int by_weight(const void *a, const void *b) {
  double x = weight_of(*(decision *const *)a), y = weight_of(*(decision *const *)b);
  return x > y ? -1 : x < y;
}

/* The dearest first, as long as there is time. */
static status measure_all(cpu_tuner *t, uint32_t n, decision **open, rt_report *report) {
  rt_thread_pool *pool;
  double all = 0;
  status s = NULL;
  for (uint32_t k = 0; k < t->n; k++) {
    all += weight_of(&t->decisions[k]);
  }
  qsort(open, n, sizeof *open, by_weight);
  TRY(rt_thread_pool_create(t->problems->threads, &pool));
  for (uint32_t k = 0; k < n && !s; k++) {
    bool full = t->options->tune == RT_TUNE_FULL, late = clock_seconds() - t->start > fast_seconds;
    uint32_t numbers[CPU_MAX_CONFIGS];
    if (worth_timing(t, open[k], numbers) > 1 && (full || (!late && weight_of(open[k]) > small_share * all))) {
      s = measure(t, pool, open[k]);
      report->n_timed++;
    } else {
      decide_by_near(t, open[k]);
      note(t, open[k], CPU_LOG_ESTIMATE);
    }
  }
  rt_thread_pool_destroy(pool);
  return s;
}

/* Whether what was built can run here, where it would be timed; if not, the report says why guesses decide. */
static bool runs_here(const cpu_tuner *t, rt_report *report) {
  status s = cpu_target.check_cpu(emit_target_text(t->arena, t->problems->target));
  if (s) {
    report->warning = arena_printf(t->arena, "nothing is timed, guesses decide: %s", status_message(s));
    status_free(s);
    return false;
  }
  return true;
}

static status decide(cpu_tuner *t, rt_report *report) {
  decision **open = ARENA_NEW_N(t->arena, decision *, t->n);
  uint32_t n = 0;
  for (uint32_t k = 0; k < t->n; k++) {
    if (!decide_by_log(t, &t->decisions[k])) {
      open[n++] = &t->decisions[k];
    }
  }
  if (n && t->options->tune >= RT_TUNE_FAST && runs_here(t, report)) {
    return measure_all(t, n, open, report);
  }
  for (uint32_t k = 0; k < n; k++) {
    decide_by_near(t, open[k]);
  }
  return NULL;
}

status cpu_tune(arena *a, hlo_module *m, const rt_compile_options *options, const cpu_problem_options *problems,
                cpu_tuner **out, rt_report *report) {
  cpu_tuner *t = *out = ARENA_NEW(a, cpu_tuner);
  *t = (cpu_tuner){.arena = a, .options = options, .problems = problems, .start = clock_seconds()};
  if (options->tune == RT_TUNE_OFF || options->numerics.deterministic) {
    return NULL;
  }
  t->constants = constant_bytes(m);
  t->machine = machine_hash(t);
  TRY(find_uses(t, m));
  if (t->n == 0) {
    return NULL;
  }
  t->log = cpu_tune_log_open(a, options->tune_log, &report->warning);
  TRY(decide(t, report));
  for (uint32_t k = 0; k < t->n_uses; k++) {
    const decision *d = &t->decisions[t->uses[k].decision];
    t->uses[k].instr->config = cpu_config_name(m->arena, &d->configs[d->winner]);
  }
  return NULL;
}

void cpu_tune_report(const cpu_tuner *t, const cpu_plans *plans, rt_report *r) {
  arena *a = t->arena;
  r->n_tuned = t->n_uses;
  r->tuned = ARENA_NEW_N(a, rt_tuned, t->n_uses);
  for (uint32_t k = 0; k < t->n_uses; k++) {
    const hlo_instr *i = t->uses[k].instr;
    const decision *d = &t->decisions[t->uses[k].decision];
    const char *source = *i->source ? i->source : d->problem.contraction->source;
    cpu_plan *plan = cpu_plan_of(plans, i);
    if (plan && *d->times) {
      plan->why = arena_printf(a, "measured, in us: %s", d->times);
    }
    r->tuned[k] = (rt_tuned){arena_printf(a, "%s%s%s", source, *source ? ": " : "", d->what), plan ? i->config : "none",
                             d->times, d->how};
  }
}
