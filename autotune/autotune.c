/* autotune.c - collects the different problems of a module, and decides each of them; see autotune.h. */
#include "autotune/autotune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/log.h"
#include "autotune/race.h"
#include "base/clock.h"
#include "base/hash.h"
#include "hlo/analysis/queries.h"

/* The processor time that RT_TUNE_FAST may use on the compiling thread: fast_seconds at most, and not more than tuning
 * may save.  It is assumed that a module runs `runs` times and becomes faster by `gain`, and that timing one config of
 * a problem takes config_seconds, most of which goes into building it. */
static const double fast_seconds = 2.5, runs = 1000, gain = 0.25, config_seconds = 0.02;
/* The largest ratios of a config's estimate to the best estimate with which a config is still timed: farther_estimate
 * with RT_TUNE_FULL, otherwise far_estimate.  RT_TUNE_FAST does not time problems whose share of the module's estimated
 * time is at most small_share. */
static const double far_estimate = 4, farther_estimate = 50, small_share = 0.002;
enum { FAST_CONFIGS = 3 }; /* how many configs of one algorithm RT_TUNE_FAST times at most; 1 if that takes too long */

/* The decision about a problem, which is used for all instructions with an equal problem. */
typedef struct decision {
  autotune_problem problem;
  /* `key`: the problem's key in the log.  `near`: the key in the log that all similar problems share
   * (autotune_problem.similar), or 0 if no problem is similar. */
  uint64_t key, near;
  uint32_t count;  /* the number of instructions that have this problem */
  uint32_t winner; /* the index of the config that was chosen */
  uint32_t each;   /* how many configs of each algorithm are timed at most; set by cost_of_timing */
  const char *times, *how;
} decision;

/* An instruction and the index of its decision. */
typedef struct use {
  hlo_instr *instr;
  uint32_t decision;
} use;

typedef struct tuner {
  arena *arena;
  const autotune_backend *backend;
  rt_tune tune;
  uint32_t n, cap, n_uses, cap_uses;
  decision *decisions;
  use *uses;
  autotune_log *log;
  double estimated; /* the estimated seconds of a run of all problems */
  /* `start` is the thread's processor time at the start.  Where nothing is timed, `booked` is the number of seconds
   * that timing the problems so far would have taken. */
  double start, booked;
  autotune_result *result;
} tuner;

/* --- the problems of a module --- */

static bool same_problem(const decision *a, const decision *b) {
  const rt_span *x = &a->problem.identity, *y = &b->problem.identity;
  return a->key == b->key && x->size == y->size && memcmp(x->data, y->data, x->size) == 0;
}

static status add_use(tuner *t, hlo_instr *i) {
  const autotune_backend *b = t->backend;
  decision d = {.count = 1, .times = "", .how = "estimate"};
  if (*i->config) {
    return NULL;
  }
  TRY(b->list_configs(b->data, t->arena, i, &d.problem));
  const autotune_problem *p = &d.problem;
  if (p->n_configs == 0) {
    return NULL;
  }
  d.key = hash_bytes(p->identity.data, p->identity.size, b->machine);
  d.near = p->similar ? hash_bytes(p->similar, strlen(p->similar), b->machine) : 0;
  uint32_t k = 0;
  while (k < t->n && !same_problem(&t->decisions[k], &d)) {
    k++;
  }
  if (k < t->n) {
    t->decisions[k].count++;
  } else {
    *ARENA_PUSH(t->arena, t->decisions, t->n, t->cap) = d;
  }
  *ARENA_PUSH(t->arena, t->uses, t->n_uses, t->cap_uses) = (use){i, k};
  return NULL;
}

static status find_uses(tuner *t, const hlo_module *m) {
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

/* --- deciding problems by the log --- */

/* Returns the index of the config with this name, which is added to the problem if it was not listed.  Returns
 * n_configs if the problem has no such config. */
static uint32_t config_of_name(const tuner *t, autotune_problem *p, const char *name) {
  autotune_config more;
  uint32_t k = 0;
  while (k < p->n_configs && strcmp(p->configs[k].name, name) != 0) {
    k++;
  }
  if (k == p->n_configs && t->backend->find_config(t->backend->data, t->arena, p, name, &more)) {
    autotune_config *configs = ARENA_NEW_N(t->arena, autotune_config, k + 1);
    memcpy(configs, p->configs, k * sizeof *configs);
    configs[k] = more;
    p->configs = configs;
    p->n_configs++;
  }
  return k;
}

/* Decides by the problem's entry in the log.  Returns false if there is none, if RT_TUNE_FULL is asked for and the
 * entry is less thorough, or if the problem has no config with the name in the entry. */
static bool decide_by_log(tuner *t, decision *d) {
  const autotune_log_entry *e = autotune_log_find(t->log, d->key);
  if (!e || (t->tune == RT_TUNE_FULL && e->how != AUTOTUNE_LOG_FULL)) {
    return false;
  }
  uint32_t k = config_of_name(t, &d->problem, e->winner);
  if (k == d->problem.n_configs) {
    return false;
  }
  d->winner = k;
  d->times = e->times;
  d->how = "log";
  return true;
}

/* Returns true if both configs are of the same algorithm, which is the part of a name before the colon. */
static bool same_algorithm(const char *a, const char *b) {
  size_t n = strcspn(a, ":");
  return n == strcspn(b, ":") && strncmp(a, b, n) == 0;
}

/* Takes the config that the log entry e has for a similar problem with another number of rows.  The entry was decided
 * by estimates only, but code for its config may exist already.  So the config is taken if it is of the same algorithm
 * as the config with the best estimate, and its own estimate for this problem is nearly as good. */
static void estimate_by_near(const tuner *t, decision *d, const autotune_log_entry *e) {
  const double as_good = 1.05;
  autotune_problem *p = &d->problem;
  if (!same_algorithm(e->winner, p->configs[0].name)) {
    return;
  }
  uint32_t same = config_of_name(t, p, e->winner);
  if (same < p->n_configs && p->configs[same].estimate <= as_good * p->configs[0].estimate) {
    d->winner = same;
    d->how = "near";
  }
}

/* Decides by the log entry of a similar problem with another number of rows.  If the entry was decided by estimates
 * only, calls estimate_by_near.  Otherwise takes a config of the algorithm that was fastest there: the very config that
 * was fastest if its estimate for this problem is nearly the algorithm's best, else the config with the algorithm's
 * best estimate.  If that is much worse than the best estimate of all, the decision stays as it is. */
static void decide_by_near(const tuner *t, decision *d) {
  const double same_config = 1.25;
  const autotune_log_entry *e = d->near ? autotune_log_find(t->log, d->near) : NULL;
  autotune_problem *p = &d->problem;
  uint32_t best = 0;
  if (e && e->how == AUTOTUNE_LOG_ESTIMATE) {
    estimate_by_near(t, d, e);
    return;
  }
  while (e && best < p->n_configs && !same_algorithm(e->winner, p->configs[best].name)) {
    best++;
  }
  if (!e || best == p->n_configs || p->configs[best].estimate > far_estimate * p->configs[0].estimate) {
    return;
  }
  d->winner = best;
  d->how = "near";
  uint32_t same = config_of_name(t, p, e->winner);
  if (same < p->n_configs && p->configs[same].estimate <= same_config * p->configs[best].estimate) {
    d->winner = same;
  }
}

static void add_to_log(tuner *t, const decision *d, autotune_log_how how) {
  const char *winner = d->problem.configs[d->winner].name, *what = d->problem.what;
  autotune_log_add(t->log, &(autotune_log_entry){d->key, how, winner, d->times, what});
  const autotune_log_entry *near = d->near ? autotune_log_find(t->log, d->near) : NULL;
  if (d->near && (!near || near->how < how)) {
    what = arena_printf(t->arena, "other rows: %s", what);
    autotune_log_add(t->log, &(autotune_log_entry){d->near, how, winner, d->times, what});
  }
}

/* Decides a problem that is not timed: by a similar one, or by estimates. */
static void decide_untimed(tuner *t, decision *d) {
  decide_by_near(t, d);
  add_to_log(t, d, AUTOTUNE_LOG_ESTIMATE);
}

/* --- deciding problems by timing --- */

/* Returns how many configs of the same algorithm precede config k in the order of estimates. */
static uint32_t better_configs(const autotune_problem *p, uint32_t k) {
  uint32_t n = 0;
  for (uint32_t j = 0; j < k; j++) {
    n += same_algorithm(p->configs[j].name, p->configs[k].name);
  }
  return n;
}

/* Writes the indices of the configs that are worth timing to `out` and returns their number.  Left out are configs with
 * bad estimates, and all but the best d->each of each algorithm. */
static uint32_t worth_timing(const tuner *t, const decision *d, uint32_t *out) {
  const autotune_problem *p = &d->problem;
  bool full = t->tune == RT_TUNE_FULL;
  double most = (full ? farther_estimate : far_estimate) * p->configs[0].estimate;
  uint32_t n = 0;
  for (uint32_t k = 0; k < p->n_configs && n < AUTOTUNE_MAX_CONFIGS; k++) {
    if (p->configs[k].estimate <= most && better_configs(p, k) < d->each) {
      out[n++] = k;
    }
  }
  return n;
}

/* Returns the factor that accounts for memory: `other` wins if its time is less than this factor times the time of
 * `best`.  It is below 1 if `other` needs much more memory and above 1 if it needs much less.  Memory costs page faults
 * when a model is loaded, and room in caches. */
static double worth_of_memory(const autotune_config *other, const autotune_config *best) {
  const double much = 4 << 20, very_much = 12 << 20, more = other->bytes - best->bytes;
  double worth = fabs(more) > very_much ? 0.75 : fabs(more) > much ? 0.93 : 1;
  return more > 0 ? worth : 1 / worth;
}

/* Returns the index of the fastest config; -1 if none ran.  A config with a worse estimate wins only if it is faster by
 * more than times vary.  If other processes disturbed the measurement it must be much faster, since the log keeps the
 * decision. */
static int64_t fastest(uint32_t n, const autotune_config *configs, const double *times, bool disturbed) {
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

/* A problem none of whose configs can be built and run is decided as if it were not to be timed. */
static status decide_by_timing(tuner *t, decision *d) {
  bool full = t->tune == RT_TUNE_FULL, disturbed;
  double times[AUTOTUNE_MAX_CONFIGS];
  autotune_config configs[AUTOTUNE_MAX_CONFIGS];
  uint32_t numbers[AUTOTUNE_MAX_CONFIGS], n = worth_timing(t, d, numbers);
  for (uint32_t k = 0; k < n; k++) {
    configs[k] = d->problem.configs[numbers[k]];
  }
  TRY(autotune_race(t->backend, arena_budget(t->arena), &d->problem, n, configs, full, times, &disturbed));
  const char *text = disturbed ? "disturbed" : "";
  int64_t best = fastest(n, configs, times, disturbed);
  for (uint32_t k = 0; k < n; k++) {
    if (times[k] >= 0) {
      text = arena_printf(t->arena, "%s%s%s=%.2f", text, *text ? "," : "", configs[k].name, times[k] * 1e-3);
    }
  }
  if (best < 0) {
    decide_untimed(t, d);
    return NULL;
  }
  t->result->n_timed++;
  d->winner = numbers[best];
  d->times = text;
  d->how = "timed";
  add_to_log(t, d, full ? AUTOTUNE_LOG_FULL : AUTOTUNE_LOG_FAST);
  return NULL;
}

static double weight_of(const decision *d) { return d->problem.configs[0].estimate * d->count; }

static int by_weight(const void *a, const void *b) {
  double x = weight_of(*(decision *const *)a), y = weight_of(*(decision *const *)b);
  return x > y ? -1 : x < y;
}

/* Returns the seconds that timing d->each configs of each algorithm is expected to take.  A problem with only one
 * config worth timing is never timed. */
static double cost_of_each(const tuner *t, const decision *d) {
  uint32_t numbers[AUTOTUNE_MAX_CONFIGS], n = worth_timing(t, d, numbers);
  return n > 1 ? n * config_seconds : 0;
}

/* Returns the seconds that timing the problem is expected to take if it should be timed, otherwise 0.  With
 * RT_TUNE_FULL all problems should be timed; otherwise those whose share of the module's estimated time is more than
 * small_share, as long as there is time, which may suffice for the best config of each algorithm only. */
static double cost_of_timing(const tuner *t, decision *d) {
  bool full = t->tune == RT_TUNE_FULL;
  double used = t->booked + clock_thread_seconds() - t->start, most = fmin(fast_seconds, runs * gain * t->estimated);
  d->each = full ? AUTOTUNE_MAX_CONFIGS : FAST_CONFIGS;
  double cost = cost_of_each(t, d);
  if (!full && used + cost > most) {
    d->each = 1;
    cost = cost_of_each(t, d);
  }
  bool matters = weight_of(d) * 1e-9 > small_share * t->estimated;
  return full || (used + cost <= most && matters) ? cost : 0;
}

/* Times the problems, those with the most estimated time in the module first, as long as that pays.  Decides the other
 * ones by similar problems. */
static status time_all(tuner *t, uint32_t n, decision **open) {
  for (uint32_t k = 0; k < n; k++) {
    if (cost_of_timing(t, open[k]) > 0) {
      TRY(decide_by_timing(t, open[k]));
    } else {
      decide_untimed(t, open[k]);
    }
  }
  return NULL;
}

/* The number of runs for which a provisional program is made.  It may run more often before it is replaced, but the
 * user waits for its first result. */
static const double provisional_runs = 3;

/* Chooses the config with the least expected time for building it and for the first runs. */
static void decide_by_building(decision *d) {
  double least = INFINITY;
  for (uint32_t k = 0; k < d->problem.n_configs; k++) {
    const autotune_config *c = &d->problem.configs[k];
    double time = c->build + provisional_runs * d->count * c->estimate;
    d->winner = time < least ? k : d->winner;
    least = fmin(least, time);
  }
  d->how = d->winner ? "quick" : d->how;
}

/* Decides the n open problems without timing them, and counts those that RT_TUNE_FAST would time or decide
 * differently. */
static void estimate_all(tuner *t, uint32_t n, decision **open) {
  for (uint32_t k = 0; k < n; k++) {
    double cost = cost_of_timing(t, open[k]);
    t->booked += cost;
    bool provisional = t->backend->provisional;
    if (provisional) {
      decide_by_building(open[k]);
    } else {
      decide_by_near(t, open[k]);
    }
    t->result->n_untimed += cost > 0 || (provisional && open[k]->winner);
  }
}

/* --- deciding all problems of a module --- */

/* Returns true if code for the target can run on this machine.  If not, the result's warning says why nothing is
 * timed. */
static bool can_run(const tuner *t) {
  status s = t->backend->can_run(t->backend->data);
  if (s) {
    t->result->warning = arena_printf(t->arena, "nothing is timed, estimates decide: %s", status_message(s));
    status_free(s);
    return false;
  }
  return true;
}

static status decide_all(tuner *t) {
  decision **open = ARENA_NEW_N(t->arena, decision *, t->n);
  uint32_t n = 0;
  for (uint32_t k = 0; k < t->n; k++) {
    t->estimated += 1e-9 * weight_of(&t->decisions[k]);
    if (!decide_by_log(t, &t->decisions[k])) {
      open[n++] = &t->decisions[k];
    }
  }
  qsort(open, n, sizeof *open, by_weight);
  if (n && t->tune >= RT_TUNE_FAST && can_run(t)) {
    return time_all(t, n, open);
  }
  estimate_all(t, n, open);
  return NULL;
}

status autotune(arena *a, hlo_module *m, const autotune_backend *backend, rt_tune tune, const char *log_path,
                autotune_result *out) {
  *out = (autotune_result){0};
  if (tune == RT_TUNE_OFF) {
    return NULL;
  }
  tuner t = {.arena = a, .backend = backend, .tune = tune, .start = clock_thread_seconds(), .result = out};
  TRY(find_uses(&t, m));
  if (t.n == 0) {
    return NULL;
  }
  t.log = autotune_log_open(a, log_path, &out->warning);
  TRY(decide_all(&t));
  out->n = t.n_uses;
  out->decisions = ARENA_NEW_N(a, autotune_decision, t.n_uses);
  for (uint32_t k = 0; k < t.n_uses; k++) {
    const decision *d = &t.decisions[t.uses[k].decision];
    hlo_instr *i = t.uses[k].instr;
    i->config = arena_strdup(m->arena, d->problem.configs[d->winner].name);
    out->decisions[k] = (autotune_decision){i, d->problem.what, d->how, d->times};
  }
  return NULL;
}
