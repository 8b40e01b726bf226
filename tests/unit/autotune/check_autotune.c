/* check_autotune.c - the autotuner with a fake backend: which configs are timed, which one wins, what the log keeps,
 * and how the log is used for other sizes. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "autotune/autotune.h"
#include "base/clock.h"
#include "hlo/text/text.h"
#include "tests/suite.h"

/* A config of the fake backend; a run of it takes `microseconds`. */
typedef struct way {
  const char *name;
  double estimate, microseconds;
  bool fails, hidden; /* whether it cannot be built; whether it is not listed, and found by its name only */
  double build;
} way;

typedef struct fake {
  uint32_t n;
  const way *ways;
  const char *cannot_run; /* why this machine cannot run what is built; NULL if it can */
  const rt_background *background;
  bool provisional;
  const char *failing; /* the config whose runs fail after the first good_runs ones; NULL: none */
  uint32_t good_runs;
  uint32_t built, alive, runs;
  uint32_t runs_of[8]; /* for each of ways[] */
} fake;

struct autotune_trial {
  fake *backend;
  const way *way;
};

/* Makes each HLO_ABS a problem: abs of equal shapes are one problem, those of other sizes but equal rank are
 * similar. */
static status list_configs(void *data, arena *a, const hlo_instr *i, autotune_problem *out) {
  const fake *f = data;
  *out = (autotune_problem){0};
  if (i->op != HLO_ABS) {
    return NULL;
  }
  out->what = hlo_info(i)->name;
  out->identity = (rt_span){arena_memdup(a, i->shapes[0].dims, 8 * i->shapes[0].rank), 8 * i->shapes[0].rank};
  out->similar = i->shapes[0].rank > 1 ? "any size" : NULL;
  out->configs = ARENA_NEW_N(a, autotune_config, f->n);
  for (uint32_t k = 0; k < f->n; k++) {
    if (!f->ways[k].hidden) {
      const way *w = &f->ways[k];
      out->configs[out->n_configs++] = (autotune_config){.name = w->name, .estimate = w->estimate, .build = w->build};
    }
  }
  return NULL;
}

static bool find_config(void *data, arena *a, const autotune_problem *p, const char *name, autotune_config *out) {
  const fake *f = data;
  (void)a, (void)p;
  for (uint32_t k = 0; k < f->n; k++) {
    if (strcmp(f->ways[k].name, name) == 0) {
      *out = (autotune_config){.name = f->ways[k].name, .estimate = f->ways[k].estimate};
      return true;
    }
  }
  return false;
}

static status can_run(void *data) {
  const fake *f = data;
  CHECK_THAT(!f->cannot_run, STATUS_UNSUPPORTED, "%s", f->cannot_run);
  return NULL;
}

static status build(void *data, arena *shared, const autotune_problem *p, const char *config, autotune_trial **out) {
  fake *f = data;
  const way *w = f->ways;
  (void)p;
  while (strcmp(w->name, config) != 0) {
    w++;
  }
  f->built++;
  CHECK_THAT(!w->fails, STATUS_UNSUPPORTED, "it cannot be built");
  f->alive++;
  *out = ARENA_NEW(shared, autotune_trial);
  **out = (autotune_trial){f, w};
  return NULL;
}

static status run(autotune_trial *t) {
  uint64_t end = clock_nanoseconds() + (uint64_t)(t->way->microseconds * 1e3);
  fake *f = t->backend;
  f->runs++;
  uint32_t runs = f->runs_of[t->way - f->ways]++;
  CHECK_THAT(!f->failing || strcmp(f->failing, t->way->name) != 0 || runs < f->good_runs, STATUS_RESOURCE, "it fails");
  while (clock_nanoseconds() < end) {
  }
  return NULL;
}

static void destroy(autotune_trial *t) { t->backend->alive--; }

/* --- one compilation --- */

static arena *memory;
static char folder[32], log_path[64];

static void setup(void) {
  memory = arena_create(NULL);
  strcpy(folder, "/tmp/check-tune-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(log_path, sizeof log_path, "%s/tuning.log", folder);
}

static void teardown(void) {
  arena_destroy(memory);
  unlink(log_path);
  rmdir(folder);
}

/* Returns a module with two equal problems, abs of f32[2,size], and a third one, abs of f32[3]. */
static hlo_module *module_of(int size) {
  const char *text = arena_printf(memory,
                                  "onnx-xla hlo 1\nmodule \"m\" { entry main(%%x: f32[2,%d], %%y: f32[3]) {\n"
                                  "%%a = abs(%%x) : f32[2,%d]\n%%b = abs(%%a) : f32[2,%d]\n%%c = abs(%%y) : f32[3]\n"
                                  "%%d = negate(%%c) : f32[3]\nreturn %%b, %%d } }",
                                  size, size, size);
  hlo_module *m;
  status s = hlo_parse(memory, text, strlen(text), NULL, &m);
  ck_assert_msg(!s, "%s", status_message(s));
  return m;
}

static autotune_result tune(fake *f, hlo_module *m, rt_tune how) {
  autotune_backend b = {.data = f,
                        .machine = 1,
                        .threads = 1,
                        .background = f->background,
                        .provisional = f->provisional,
                        .list_configs = list_configs,
                        .find_config = find_config,
                        .can_run = can_run,
                        .build = build,
                        .run = run,
                        .destroy = destroy};
  autotune_result r;
  status s = autotune(memory, m, &b, how, log_path, &r);
  ck_assert_msg(!s, "%s", status_message(s));
  ck_assert_uint_eq(f->alive, 0);
  return r;
}

/* --- the tests --- */

/* "a:1" has the best estimate and is slow; "b:2" cannot be built; "c:1" is so far behind that it is never tried. */
static const way ways[] = {{"a:1", 1e6, 300, false, false, 0},
                           {"b:1", 1.1e6, 100, false, false, 0},
                           {"b:2", 1.2e6, 10, true, false, 0},
                           {"a:2", 1.3e6, 200, false, false, 0},
                           {"c:1", 9e7, 1, false, false, 0}};
enum { N_WAYS = sizeof ways / sizeof *ways };

START_TEST(the_fastest_wins) {
  fake f = {.n = N_WAYS, .ways = ways};
  hlo_module *m = module_of(8);
  autotune_result r = tune(&f, m, RT_TUNE_FULL);
  ck_assert_uint_eq(r.n, 3);
  ck_assert_uint_eq(r.n_timed, 2); /* two of three problems are equal */
  ck_assert_uint_eq(f.built, 2 * 4);
  for (uint32_t k = 0; k < r.n; k++) {
    const autotune_decision *d = &r.decisions[k];
    ck_assert_str_eq(d->instr->config, "b:1");
    ck_assert_str_eq(d->how, "timed");
    ck_assert_ptr_nonnull(strstr(d->times, "a:1="));
    ck_assert_ptr_nonnull(strstr(d->times, "b:1="));
    ck_assert_ptr_null(strstr(d->times, "b:2="));
  }
  ck_assert_str_eq(m->entry->last->config, ""); /* the negate is not tuned */
}
END_TEST

START_TEST(the_log_is_asked_first) {
  fake f = {.n = N_WAYS, .ways = ways};
  autotune_result timed = tune(&f, module_of(8), RT_TUNE_FAST);
  ck_assert_uint_eq(timed.n_timed, 2);
  uint32_t built = f.built;
  hlo_module *m = module_of(8);
  autotune_result r = tune(&f, m, RT_TUNE_FAST);
  ck_assert_uint_eq(r.n_timed, 0);
  ck_assert_uint_eq(f.built, built);
  ck_assert_str_eq(r.decisions[0].how, "log");
  /* Fast timing may choose a config that is not the fastest on a busy machine; the log has the one that it
   * chose. */
  ck_assert_str_eq(r.decisions[0].instr->config, timed.decisions[0].instr->config);
  /* Problems that were timed fast are timed again, once, when RT_TUNE_FULL is asked for. */
  ck_assert_uint_eq(tune(&f, module_of(8), RT_TUNE_FULL).n_timed, 2);
  ck_assert_uint_eq(tune(&f, module_of(8), RT_TUNE_FULL).n_timed, 0);
  ck_assert_uint_eq(tune(&f, module_of(8), RT_TUNE_FAST).n_timed, 0);
}
END_TEST

START_TEST(other_sizes_take_what_won) {
  fake f = {.n = N_WAYS, .ways = ways};
  ck_assert_uint_eq(tune(&f, module_of(8), RT_TUNE_FULL).n_timed, 2);
  autotune_result r = tune(&f, module_of(9), RT_TUNE_KNOWN);
  ck_assert_uint_eq(r.n_timed, 0);
  ck_assert_str_eq(r.decisions[0].how, "near");
  ck_assert_str_eq(r.decisions[0].instr->config, "b:1");
  ck_assert_str_eq(r.decisions[2].how, "log"); /* this problem has the same size as before */
  /* A winner for other sizes is not taken if its estimate is far from the best. */
  static const way others[] = {{"a:1", 1e6, 1, false, false, 0}, {"b:1", 5e6, 1, false, false, 0}};
  r = tune(&(fake){.n = 2, .ways = others}, module_of(9), RT_TUNE_KNOWN);
  ck_assert_str_eq(r.decisions[0].how, "estimate");
  ck_assert_str_eq(r.decisions[0].instr->config, "a:1");
}
END_TEST

/* A config that won for other sizes is found by its name if the backend does not list it for these, and it is
 * taken if its estimate is not much worse than the best. */
START_TEST(other_sizes_find_what_won_by_its_name) {
  static const double estimates[] = {1.2e6, 1.5e6};
  fake f = {.n = N_WAYS, .ways = ways};
  ck_assert_uint_eq(tune(&f, module_of(8), RT_TUNE_FULL).n_timed, 2);
  const way others[] = {{"b:3", 1e6, 1, false, false, 0}, {"b:1", estimates[_i], 1, false, true, 0}};
  autotune_result r = tune(&(fake){.n = 2, .ways = others}, module_of(9), RT_TUNE_KNOWN);
  ck_assert_str_eq(r.decisions[0].how, "near");
  ck_assert_str_eq(r.decisions[0].instr->config, _i ? "b:3" : "b:1");
}
END_TEST

START_TEST(nothing_is_timed_that_cannot_run) {
  fake f = {.n = N_WAYS, .ways = ways, .cannot_run = "another processor"};
  autotune_result r = tune(&f, module_of(8), RT_TUNE_FULL);
  ck_assert_uint_eq(r.n_timed, 0);
  ck_assert_uint_eq(f.built, 0);
  ck_assert_ptr_nonnull(strstr(r.warning, "another processor"));
  ck_assert_str_eq(r.decisions[0].how, "estimate");
  ck_assert_str_eq(r.decisions[0].instr->config, "a:1");
}
END_TEST

START_TEST(where_nothing_can_be_built_the_estimate_stands) {
  static const way broken[] = {{"a:1", 1e5, 1, true, false, 0}, {"b:1", 1.1e5, 1, true, false, 0}};
  fake f = {.n = 2, .ways = broken};
  autotune_result r = tune(&f, module_of(8), RT_TUNE_FULL);
  ck_assert_uint_eq(f.built, 4);
  ck_assert_uint_eq(r.n_timed, 0);
  ck_assert_str_eq(r.decisions[0].how, "estimate");
  ck_assert_str_eq(r.decisions[0].instr->config, "a:1");
  /* The log has the decision, so that the next compilation does not try in vain again. */
  r = tune(&f, module_of(8), RT_TUNE_FAST);
  ck_assert_uint_eq(f.built, 4);
  ck_assert_str_eq(r.decisions[0].how, "log");
  ck_assert_str_eq(r.decisions[0].instr->config, "a:1");
}
END_TEST

/* A config that fails while it is timed, after it was built and warmed up, drops out, however fast it was. */
START_TEST(a_config_fails_while_it_is_timed) {
  fake f = {.n = N_WAYS, .ways = ways, .failing = "b:1", .good_runs = 5};
  autotune_result r = tune(&f, module_of(8), RT_TUNE_FULL);
  ck_assert_uint_eq(r.n_timed, 2);
  ck_assert_str_eq(r.decisions[0].instr->config, "a:2");
  ck_assert_str_eq(r.decisions[0].how, "timed");
  ck_assert_ptr_null(strstr(r.decisions[0].times, "b:1="));
}
END_TEST

/* Configs that are about equally fast take turns until each has run for long. */
START_TEST(equal_configs_are_timed_equally) {
  static const way equal[] = {
      {"a:1", 1e6, 100, false, false, 0}, {"b:1", 1e6, 101, false, false, 0}, {"c:1", 1e6, 102, false, false, 0}};
  enum { WARM_UP = 3, ENOUGH = 100 };
  fake f = {.n = 3, .ways = equal};
  (void)tune(&f, module_of(8), RT_TUNE_FULL);
  for (int k = 0; k < 3; k++) {
    ck_assert_msg(f.runs_of[k] > 2 * (WARM_UP + ENOUGH), "%s ran %u times", equal[k].name, f.runs_of[k]);
  }
}
END_TEST

START_TEST(what_is_decided_stays) {
  fake f = {.n = N_WAYS, .ways = ways};
  hlo_module *m = module_of(8);
  hlo_instr *first = m->entry->params[1]->next;
  first->config = "a:2";
  autotune_result r = tune(&f, m, RT_TUNE_KNOWN);
  ck_assert_uint_eq(r.n, 2);
  ck_assert_str_eq(first->config, "a:2");
  m = module_of(8);
  r = tune(&f, m, RT_TUNE_OFF);
  ck_assert_uint_eq(r.n, 0);
  ck_assert_str_eq(m->entry->params[1]->next->config, "");
  ck_assert_uint_eq(f.built, 0);
}
END_TEST

/* Fast tuning times at most three configs of an algorithm. */
START_TEST(few_of_one_algorithm) {
  static const way many[] = {{"a:1", 1e6, 50, false, false, 0},
                             {"a:2", 1.01e6, 50, false, false, 0},
                             {"a:3", 1.02e6, 50, false, false, 0},
                             {"a:4", 1.03e6, 1, false, false, 0},
                             {"b", 1.04e6, 60, false, false, 0}};
  fake f = {.n = 5, .ways = many};
  autotune_result r = tune(&f, module_of(8), _i ? RT_TUNE_FULL : RT_TUNE_FAST);
  ck_assert_uint_eq(f.built, 2 * (_i ? 5 : 4));
  ck_assert_int_eq(strcmp(r.decisions[0].instr->config, "a:4") == 0, _i);
}
END_TEST

/* Nothing is timed for a module that takes little time, or for a problem that takes a small part of its
 * module's time, since timing could not pay. */
START_TEST(only_what_pays_is_timed) {
  static const struct {
    double estimate; /* nanoseconds of each of the module's three problems */
    uint32_t timed;
  } cases[] = {{1e2, 0}, {1e4, 0}, {5e4, 0}, {1e6, 2}, {1e9, 2}};
  const way two[] = {{"a:1", cases[_i].estimate, 20, false, false, 0},
                     {"b:1", 1.1 * cases[_i].estimate, 10, false, false, 0}};
  ck_assert_uint_eq(tune(&(fake){.n = 2, .ways = two}, module_of(8), RT_TUNE_KNOWN).n_untimed, cases[_i].timed);
  ck_assert_uint_eq(tune(&(fake){.n = 2, .ways = two}, module_of(8), RT_TUNE_FAST).n_timed, cases[_i].timed);
  ck_assert_uint_eq(tune(&(fake){.n = 2, .ways = two}, module_of(8), RT_TUNE_KNOWN).n_untimed, 0);
}
END_TEST

/* A provisional program gets the config that is built soonest, unless its runs would then take much longer.
 * Problems that did not get the best config are counted in n_untimed, even if timing them would not pay. */
START_TEST(provisional) {
  static const struct {
    double estimate;
    const char *winner;
    uint32_t untimed;
  } cases[] = {{1e2, "b:1", 2}, {1e6, "b:1", 2}, {1e7, "a:1", 2}};
  const way two[] = {{"a:1", cases[_i].estimate, 20, false, false, 8e6},
                     {"b:1", 2 * cases[_i].estimate, 10, false, false, 1e6}};
  hlo_module *m = module_of(8);
  autotune_result r = tune(&(fake){.n = 2, .ways = two, .provisional = true}, m, RT_TUNE_KNOWN);
  ck_assert_str_eq(r.decisions[2].instr->config, cases[_i].winner);
  ck_assert_uint_eq(r.n_untimed, cases[_i].untimed);
  ck_assert_uint_eq(r.n_timed, 0);
  (void)tune(&(fake){.n = 2, .ways = two}, module_of(8), RT_TUNE_FULL);
  r = tune(&(fake){.n = 2, .ways = two, .provisional = true}, module_of(8), RT_TUNE_KNOWN);
  ck_assert_str_eq(r.decisions[0].instr->config, "b:1"); /* the log has the config that was timed to be the
                                                            fastest */
  ck_assert_uint_eq(r.n_untimed, 0);
}
END_TEST

/* A caller whose runs disturb measurements: await_idle says `disturbed` times that another run has begun. */
typedef struct caller {
  uint32_t asked, disturbed; /* how often await_idle was called, and how many calls say that a run has
                                begun */
  uint64_t begun;
} caller;

static uint64_t await_idle(void *data) {
  caller *c = data;
  return c->begun += c->asked++ < c->disturbed;
}

/* A measurement during which something else ran is done again. */
START_TEST(disturbed_measurements_are_repeated) {
  static const way two[] = {{"a:1", 1e6, 20, false, false, 0}, {"b:1", 1.1e6, 10, false, false, 0}};
  enum { DISTURBED = 5000 };
  for (uint32_t disturbed = 0; disturbed <= DISTURBED; disturbed += DISTURBED) {
    caller c = {.disturbed = disturbed};
    fake f = {.n = 2, .ways = two, .background = &(rt_background){await_idle, &c}};
    autotune_result r = tune(&f, module_of(disturbed ? 8 : 9), RT_TUNE_FULL);
    ck_assert_str_eq(r.decisions[0].instr->config, "b:1");
    ck_assert_uint_ge(f.runs, disturbed);
    ck_assert_uint_ge(c.asked, f.runs); /* await_idle is called before a series of runs, and after each of them */
  }
}
END_TEST

int main(void) {
  TCase *c = tcase_create("autotune");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_set_timeout(c, 120);
  tcase_add_test(c, the_fastest_wins);
  tcase_add_test(c, the_log_is_asked_first);
  tcase_add_test(c, other_sizes_take_what_won);
  tcase_add_loop_test(c, other_sizes_find_what_won_by_its_name, 0, 2);
  tcase_add_test(c, nothing_is_timed_that_cannot_run);
  tcase_add_test(c, where_nothing_can_be_built_the_estimate_stands);
  tcase_add_test(c, a_config_fails_while_it_is_timed);
  tcase_add_test(c, equal_configs_are_timed_equally);
  tcase_add_test(c, what_is_decided_stays);
  tcase_add_loop_test(c, few_of_one_algorithm, 0, 2);
  tcase_add_loop_test(c, only_what_pays_is_timed, 0, 5);
  tcase_add_loop_test(c, provisional, 0, 3);
  tcase_add_test(c, disturbed_measurements_are_repeated);
  return run_suite("autotune", c);
}
