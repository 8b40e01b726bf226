/* bench.c - the command onnx-xla bench. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "plugin/cli/cli.h"
#include "base/clock.h"

typedef struct timings {
  uint32_t n, cap;
  double *seconds;
} timings;

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Returns a quantile of the sorted times, interpolated linearly. */
static double quantile(const timings *t, double q) {
  double at = q * (t->n - 1);
  uint32_t k = (uint32_t)at, next = k + 1 < t->n ? k + 1 : k;
  return t->seconds[k] + (at - k) * (t->seconds[next] - t->seconds[k]);
}

/* Returns the peak resident memory in megabytes.  VmHWM of /proc is preferred, since getrusage returns the
 * peak of the process that started this one if that was larger. */
static double peak_megabytes(void) {
  char line[256];
  unsigned long kilobytes = 0;
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f) && sscanf(line, "VmHWM: %lu kB", &kilobytes) != 1) {
  }
  if (f) {
    fclose(f);
  }
  struct rusage u;
  if (kilobytes) {
    return (double)kilobytes / 1024;
  }
  return getrusage(RUSAGE_SELF, &u) == 0 ? (double)u.ru_maxrss / 1024 : 0;
}

typedef struct bench {
  const cli_args *args;
  session *s;
  const session_program *c;
  const literal *inputs;
  double compile, load;  /* the seconds of compiling and of loading the program of the first run */
  double first, elapsed; /* seconds of the first run, and of all measured runs */
  timings t;
} bench;

/* One of the threads that run the model repeatedly. */
typedef struct runner {
  bench *b;
  arena *a;
  string_table *strings;
  session_output *outputs;
  timings t;
  double start;
  status failed;
  pthread_t thread;
} runner;

static status run_once(runner *r, double *seconds) {
  const bench *b = r->b;
  double start = clock_seconds();
  TRY(cli_execute(b->s, b->c, b->args->seed, b->inputs, r->strings, r->outputs, r->a));
  *seconds = clock_seconds() - start;
  return NULL;
}

/* Runs until there are enough runs and enough time has passed. */
static status run_many(void *data) {
  runner *r = data;
  const cli_args *args = r->b->args;
  uint32_t share = (args->runs + args->parallel - 1) / args->parallel;
  double one;
  do {
    TRY(run_once(r, &one));
    *ARENA_PUSH(r->a, r->t.seconds, r->t.n, r->t.cap) = one;
  } while (r->t.n < share || clock_seconds() - r->start < args->seconds);
  return NULL;
}

static void *run_thread(void *data) {
  runner *r = data;
  r->failed = guard_run(run_many, r);
  return NULL;
}

/* Makes the first run, waits for the tuned program, and makes the warm-up runs with that. */
static status warm_up(runner *r, arena *a) {
  bench *b = r->b;
  double one;
  TRY(run_once(r, &b->first));
  TRY(cli_await_tuned(b->args, b->s, b->inputs, a, &b->c));
  for (uint32_t k = 0; k < b->args->warm_up; k++) {
    TRY(run_once(r, &one));
  }
  return NULL;
}

static void destroy_arena(void *data) { arena_destroy(*(arena **)data); }

/* Makes n runners, each with an arena of its own. */
static runner *make_runners(bench *b, uint32_t n, arena *a) {
  runner *all = ARENA_NEW_N(a, runner, n);
  for (uint32_t k = 0; k < n; k++) {
    arena_cleanup(a, destroy_arena, &all[k].a);
    all[k] = (runner){.b = b, .a = arena_create(arena_budget(a))};
    all[k].strings = string_table_create(all[k].a, NULL);
    string_table_add_all(all[k].strings, session_strings(b->s));
    all[k].outputs = cli_make_outputs(b->s, all[k].a);
  }
  return all;
}

static void join_timings(bench *b, const runner *all, uint32_t n, arena *a) {
  for (uint32_t k = 0; k < n; k++) {
    for (uint32_t r = 0; r < all[k].t.n; r++) {
      *ARENA_PUSH(a, b->t.seconds, b->t.n, b->t.cap) = all[k].t.seconds[r];
    }
  }
  qsort(b->t.seconds, b->t.n, sizeof *b->t.seconds, by_value);
}

static status measure(bench *b, arena *a) {
  uint32_t n = b->args->parallel, begun = 0;
  runner *all = make_runners(b, n, a);
  TRY(warm_up(&all[0], a));
  double start = clock_seconds();
  status failed = NULL;
  for (; begun < n && !failed; begun++) {
    all[begun].start = start;
    int error = n == 1 ? (run_thread(&all[0]), 0) : pthread_create(&all[begun].thread, NULL, run_thread, &all[begun]);
    failed = error ? status_error(STATUS_RESOURCE, "thread %" PRIu32 " cannot be created: %s", begun, strerror(error))
                   : NULL;
  }
  for (uint32_t k = 0; k < begun - (failed != NULL); k++) {
    if (n > 1) {
      pthread_join(all[k].thread, NULL);
    }
    failed = status_first(failed, all[k].failed);
  }
  b->elapsed = clock_seconds() - start;
  TRY(failed);
  join_timings(b, all, n, a);
  return NULL;
}

static const struct {
  const char *name;
  double quantile;
} columns[] = {{"min", 0}, {"median", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"max", 1}};
enum { N_COLUMNS = sizeof columns / sizeof *columns };

static void print_text(const bench *b) {
  for (int k = 0; k < N_COLUMNS; k++) {
    printf("%s%s %.4f ms", k ? ", " : "", columns[k].name, 1e3 * quantile(&b->t, columns[k].quantile));
  }
  printf(" (%" PRIu32 " runs, %" PRIu32 " at a time, %" PRIu32 " threads, %s)\n", b->t.n, b->args->parallel,
         session_threads(b->s), session_backend(b->s));
  printf("%.1f runs a second, load %.3f s, compile %.3f s, first run %.4f ms, at most %.1f MB of memory\n",
         b->t.n / b->elapsed, b->load, b->compile, 1e3 * b->first, peak_megabytes());
}

static void print_json(const bench *b) {
  printf("{");
  for (int k = 0; k < N_COLUMNS; k++) {
    printf("\"%s_ms\": %.6f, ", columns[k].name, 1e3 * quantile(&b->t, columns[k].quantile));
  }
  printf("\"runs\": %" PRIu32 ", \"runs_per_s\": %.3f, \"parallel\": %" PRIu32 ", ", b->t.n, b->t.n / b->elapsed,
         b->args->parallel);
  printf(
      "\"compile_s\": %.6f, \"load_s\": %.6f, \"first_ms\": %.6f, \"peak_rss_mb\": %.1f, \"threads\": "
      "%" PRIu32 ", \"backend\": \"%s\"}\n",
      b->compile, b->load, 1e3 * b->first, peak_megabytes(), session_threads(b->s), session_backend(b->s));
}

status cli_bench(const cli_args *args, arena *a, int *code) {
  (void)code;
  const char *path = args->files.items[0];
  bench b = {.args = args};
  session_options options;
  literal *inputs;
  CHECK_THAT(args->parallel >= 1 && args->parallel <= 1024, STATUS_INVALID_ARGUMENT,
             "--parallel must be from 1 to 1024");
  TRY(cli_session_options(args, a, &options));
  options.keep_programs = args->warm;
  TRY(cli_open(args, &options, path, a, &b.s));
  TRY(cli_prepare(args, b.s, a, &inputs, &b.c));
  b.inputs = inputs;
  b.compile = b.c->compile_seconds;
  b.load = session_load_seconds(b.s) + b.c->load_seconds;
  cli_progress_start(args->quiet, "measuring", 0);
  TRY(status_name_file(measure(&b, a), path));
  cli_progress_end();
  args->json ? print_json(&b) : print_text(&b);
  return NULL;
}
