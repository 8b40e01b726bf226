/* race.c - builds the configs of a problem, and runs them in turn until the slow ones have dropped out; see race.h. */
#include "autotune/race.h"

#include <sys/resource.h>

#include "base/clock.h"

/* Each config runs for about fast_nanoseconds in total (thorough_nanoseconds with race.thorough) unless it drops out.
 * The configs take turns; in one turn a config runs for about round_nanoseconds.  If even the fastest config takes a
 * third of the total or more for a run, there are at most 3 turns. */
static const double fast_nanoseconds = 8e6, thorough_nanoseconds = 60e6, round_nanoseconds = 1e6;
/* The number of involuntary context switches per second above which the times count as disturbed.  An idle machine has
 * a handful. */
static const double most_interruptions = 50;

typedef struct runner {
  autotune_trial *trial; /* NULL if the config has dropped out */
  /* In nanoseconds: `best` is the least time of a run, negative if no run succeeded; `spent` is the total time of all
   * runs. */
  double best, spent;
} runner;

typedef struct race {
  const autotune_backend *backend;
  mem_budget *budget;
  bool thorough;
  uint32_t n;
  runner runners[AUTOTUNE_MAX_CONFIGS];
} race;

/* --- one config --- */

/* If the caller's programs may run meanwhile (autotune_backend.background), waits as rt_background.await_idle does and
 * returns how many of their runs have begun so far; otherwise returns 0 at once. */
static uint64_t await_idle(const race *r) {
  const rt_background *b = r->backend->background;
  return b ? b->await_idle(b->data) : 0;
}

/* Runs the config once and measures its time, and repeats that if a program of the caller ran meanwhile. */
static status run_alone(const race *r, const runner *x, double *took) {
  uint64_t before, after = await_idle(r);
  do {
    TRY(budget_check(r->budget));
    before = after;
    double start = (double)clock_nanoseconds();
    TRY(r->backend->run(x->trial));
    *took = (double)clock_nanoseconds() - start;
    after = await_idle(r);
  } while (before != after);
  return NULL;
}

/* Runs the config `runs` times and updates its least time. */
static status run(const race *r, runner *x, uint32_t runs) {
  for (uint32_t k = 0; k < runs; k++) {
    double took;
    TRY(run_alone(r, x, &took));
    x->best = x->best < 0 || took < x->best ? took : x->best;
    x->spent += took;
  }
  return NULL;
}

static void leave(const race *r, runner *x) {
  if (x->trial) {
    r->backend->destroy(x->trial);
    x->trial = NULL;
  }
}

/* Runs the config once without counting its time.  Then runs it FEWEST times or, with several threads, until the runs
 * have taken waking_nanoseconds, but at most MOST times.  Threads that were asleep while the config was built take that
 * long to wake.  Until then runs are slower, since these threads join them late or not at all; that does no harm, since
 * the later runs are measured too, and only the least time counts. */
static status warm_up(const race *r, runner *x) {
  enum { FEWEST = 2, MOST = 100 };
  const double waking_nanoseconds = 4e5;
  TRY(run(r, x, 1));
  x->best = -1;
  x->spent = 0;
  for (int k = 0; k < FEWEST || (k < MOST && r->backend->threads > 1 && x->spent < waking_nanoseconds); k++) {
    TRY(run(r, x, 1));
  }
  return NULL;
}

/* Frees `failed`.  If it is an error, the config drops out.  Fails only if the budget is cancelled or its deadline has
 * passed. */
static status drop_failed(const race *r, runner *x, status failed) {
  if (failed) {
    x->best = -1;
    leave(r, x);
    status_free(failed);
  }
  return budget_check(r->budget);
}

/* Builds a config and warms it up.  A config that cannot be built or run drops out; the function fails only if the
 * budget is cancelled or its deadline has passed. */
static status enter(const race *r, runner *x, arena *shared, const autotune_problem *p, const char *config) {
  x->best = -1;
  status s = r->backend->build(r->backend->data, shared, p, config, &x->trial);
  return drop_failed(r, x, s ? s : warm_up(r, x));
}

/* --- all configs --- */

static double best_of(const race *r) {
  double best = -1;
  for (uint32_t k = 0; k < r->n; k++) {
    double t = r->runners[k].best;
    best = t >= 0 && (best < 0 || t < best) ? t : best;
  }
  return best;
}

/* Drops the configs whose least time is more than `factor` times the least time of all configs. */
static void drop_losers(race *r, double factor) {
  double best = best_of(r);
  for (uint32_t k = 0; k < r->n; k++) {
    if (r->runners[k].best > best * factor) {
      leave(r, &r->runners[k]);
    }
  }
}

/* Runs the configs in turn, so that a disturbance of the machine affects all of them alike. */
static status run_rounds(race *r) {
  double enough = r->thorough ? thorough_nanoseconds : fast_nanoseconds;
  bool more = true;
  for (uint32_t round = 0; more && (round < 3 || best_of(r) < enough / 3); round++) {
    more = false;
    for (uint32_t k = 0; k < r->n; k++) {
      runner *x = &r->runners[k];
      if (x->trial && x->spent < enough) {
        double runs = round_nanoseconds / (x->best + 1);
        TRY(drop_failed(r, x, run(r, x, runs < 1 ? 1 : runs > 200 ? 200 : (uint32_t)runs)));
        more = true;
      }
    }
    drop_losers(r, r->thorough ? 1.5 : 1.25);
  }
  return NULL;
}

/* Returns how often other processes have taken a core from this process (involuntary context switches). */
static int64_t interruptions(void) {
  struct rusage u;
  return getrusage(RUSAGE_SELF, &u) == 0 ? u.ru_nivcsw : 0;
}

status autotune_race(const autotune_backend *backend, mem_budget *budget, const autotune_problem *p, uint32_t n,
                     const autotune_config *configs, bool thorough, double *nanoseconds, bool *disturbed) {
  race r = {.backend = backend, .budget = budget, .thorough = thorough};
  arena *shared = arena_create(budget);
  int64_t before = interruptions();
  double start = clock_seconds();
  status s = NULL;
  for (uint32_t k = 0; k < n && !s; k++) {
    r.n = k + 1;
    s = enter(&r, &r.runners[k], shared, p, configs[k].name);
    drop_losers(&r, thorough ? 4 : 2);
  }
  s = s ? s : run_rounds(&r);
  for (uint32_t k = 0; k < n; k++) {
    nanoseconds[k] = r.runners[k].best;
    leave(&r, &r.runners[k]);
  }
  arena_destroy(shared);
  *disturbed = (double)(interruptions() - before) > 2 + most_interruptions * (clock_seconds() - start);
  return s;
}
