/* profile.c - see profile.h. */
#include "plugin/session/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "plugin/session/internal.h"

/* --- numbers --- */

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Returns the median of `list`, which it sorts. */
static double median_of(double *list, uint32_t n) {
  qsort(list, n, sizeof *list, by_value);
  return n % 2 ? list[n / 2] : (list[n / 2 - 1] + list[n / 2]) / 2;
}

static int by_median(const void *a, const void *b) {
  const run_profile_row *x = a, *y = b;
  if (x->median != y->median) {
    return x->median < y->median ? 1 : -1;
  }
  return (x->thunk > y->thunk) - (x->thunk < y->thunk); /* equal times: in the order of the program */
}

static int by_seconds(const void *a, const void *b) {
  const run_profile_group *x = a, *y = b;
  return x->seconds != y->seconds ? (x->seconds < y->seconds ? 1 : -1) : strcmp(x->name, y->name);
}

/* --- groups --- */

typedef struct grouping {
  arena *a;
  str_map seen; /* name -> index in `groups` + 1 */
  run_profile_groups *groups;
} grouping;

static grouping grouping_make(arena *a, run_profile_groups *groups) {
  grouping g = {.a = a, .groups = groups};
  str_map_init(&g.seen, a);
  return g;
}

static void add(grouping *g, const char *name, const char *operator_name, uint32_t count, double seconds,
                double share) {
  void **place = str_map_put(&g->seen, name);
  if (!*place) {
    run_profile_group *fresh = ARENA_PUSH(g->a, g->groups->items, g->groups->n, g->groups->cap);
    fresh->name = name;
    fresh->operator_name = operator_name;
    *place = (void *)(uintptr_t)g->groups->n;
  }
  run_profile_group *group = &g->groups->items[(uintptr_t)*place - 1];
  group->count += count;
  group->seconds += seconds;
  group->share += share;
}

static void sort(run_profile_groups *g) {
  if (g->n) {
    qsort(g->items, g->n, sizeof *g->items, by_seconds);
  }
}

static void group_row(const run_profile_row *row, grouping *nodes) {
  const rt_profiled *t = row->thunk;
  if (t->n_nodes == 0) {
    add(nodes, "(no node)", "(no node)", 1, row->median, row->share);
  }
  for (uint32_t k = 0; k < t->n_nodes; k++) {
    double part = t->contraction < t->n_nodes ? k == t->contraction : 1.0 / t->n_nodes;
    add(nodes, t->nodes[k].text, t->nodes[k].operator_name, 1, part * row->median, part * row->share);
  }
}

/* Groups thunks by kind, node and operator.  A node counts once for its operator, however many thunks it has. */
static void group_all(run_profile *p, arena *a) {
  grouping kinds = grouping_make(a, &p->kinds), nodes = grouping_make(a, &p->nodes),
           operators = grouping_make(a, &p->operators);
  for (uint32_t k = 0; k < p->raw->n_thunks; k++) {
    const rt_profiled *t = p->rows[k].thunk;
    const char *kind = arena_printf(a, "%s %s", t->kind, t->operation); /* such as "cpu.dot output fusion" */
    add(&kinds, kind, "", 1, p->rows[k].median, p->rows[k].share);
    group_row(&p->rows[k], &nodes);
  }
  for (uint32_t k = 0; k < p->nodes.n; k++) {
    const run_profile_group *node = &p->nodes.items[k];
    add(&operators, node->operator_name, "", 1, node->seconds, node->share);
  }
  sort(&p->kinds);
  sort(&p->nodes);
  sort(&p->operators);
}

/* --- the whole profile --- */

/* Returns the median, over the runs, of the part of a run's time that is outside of all thunks. */
static double gaps_of(const rt_profile *raw, arena *a) {
  double *left = arena_memdup(a, raw->run_seconds, raw->n_runs * sizeof *left);
  for (uint32_t k = 0; k < raw->n_thunks; k++) {
    for (uint32_t r = 0; r < raw->n_runs; r++) {
      left[r] -= raw->thunks[k].seconds[r];
    }
  }
  return median_of(left, raw->n_runs);
}

/* Returns the median of the thunk's share of each run.  A disturbance that slows a whole run down does not change
 * it. */
static double share_of(const rt_profile *raw, const rt_profiled *t, double *list) {
  for (uint32_t r = 0; r < raw->n_runs; r++) {
    list[r] = t->seconds[r] / raw->run_seconds[r];
  }
  return median_of(list, raw->n_runs);
}

static void sum_up(run_profile *p, const rt_profile *raw, arena *a) {
  double *list = ARENA_NEW_N(a, double, raw->n_runs);
  p->raw = raw;
  memcpy(list, raw->run_seconds, raw->n_runs * sizeof *list);
  p->median = median_of(list, raw->n_runs);
  p->min = list[0];
  p->gaps = gaps_of(raw, a);
  p->rows = ARENA_NEW_N(a, run_profile_row, raw->n_thunks);
  for (uint32_t k = 0; k < raw->n_thunks; k++) {
    const rt_profiled *t = &raw->thunks[k];
    run_profile_row *row = &p->rows[k];
    memcpy(list, t->seconds, raw->n_runs * sizeof *list);
    row->thunk = t;
    row->median = median_of(list, raw->n_runs);
    row->min = list[0];
    row->share = share_of(raw, t, list);
    row->calls = (double)t->calls / raw->n_runs;
  }
  if (raw->n_thunks) {
    qsort(p->rows, raw->n_thunks, sizeof *p->rows, by_median);
  }
  group_all(p, a);
}

static status run_all(session *s, const session_program *c, const uint64_t *seed, const session_inputs *inputs,
                      session_output *outputs, const run_profile_options *o, rt_profiler *profiler) {
  enum { MOST_RUNS = 10000 };
  for (uint32_t k = 0; k < o->warm_up; k++) {
    TRY(session_run(s, c, seed, inputs, outputs));
  }
  double start = clock_seconds();
  for (uint32_t k = 0; k < MOST_RUNS && (k < o->runs || k == 0 || clock_seconds() - start < o->seconds); k++) {
    rt_profiler_begin(profiler);
    TRY(session_run_watched(s, c, seed, inputs, outputs, profiler));
    rt_profiler_end(profiler);
  }
  return NULL;
}

/* Binds a program for all sizes to the inputs repeatedly, as session_compile does for new sizes, and measures that. */
static status time_bindings(session *s, const session_inputs *inputs, run_profile *out) {
  enum { MOST = 2000 };
  const double most_seconds = 0.2;
  double start = clock_seconds(), now = start;
  session_program *c = NULL;
  while (out->bindings < MOST && now - start < most_seconds) {
    double begin = clock_seconds();
    TRY(session_bind(s, inputs, &c, NULL));
    now = clock_seconds();
    if (!c) {
      break;
    }
    session_free_program(s, c);
    out->binding = out->bindings && out->binding < now - begin ? out->binding : now - begin;
    out->bindings++;
  }
  return NULL;
}

/* Adds what is known of the programs for all sizes. */
static status add_generals(session *s, const session_inputs *inputs, run_profile *out) {
  TRY(session_take_turn(s));
  out->generals = s->generals;
  out->exact_reason = s->exact_reason;
  status failed = time_bindings(s, inputs, out);
  session_end_turn(s);
  return failed;
}

/* Sets *out to the peak rates of the target's device if it has one that tells them (rt_device.peak),
 * otherwise to those of the machine. */
static status find_roofline(const session *s, rt_roofline *out) {
  const rt_device *d = s->target->device;
  if (d && d->peak) {
    *out = (rt_roofline){.threads = 1, .is_device = true};
    TRY(d->peak(d, &out->flops_all, &out->read_all));
    out->flops_one = out->flops_all;
    out->read_one = out->read_all;
    return NULL;
  }
  return rt_roofline_measure(s->pool, out);
}

status session_profile(session *s, const session_program *c, const uint64_t *seed, const session_inputs *inputs,
                       session_output *outputs, const run_profile_options *options, arena *a, run_profile *out) {
  rt_profiler *profiler = rt_profiler_create(a);
  *out = (run_profile){.model = s->source->name, .backend = s->target->name, .threads = session_threads(s)};
  TRY(run_all(s, c, seed, inputs, outputs, options, profiler));
  TRY(add_generals(s, inputs, out));
  TRY(find_roofline(s, &out->roofline));
  sum_up(out, rt_profiler_result(profiler), a);
  return NULL;
}
