/* cli_bench.c - onnx-xla bench */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "plugin/cli.h"

typedef struct timings {
  uint32_t n, cap;
  double *seconds;
} timings;

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Of sorted numbers, between neighbours in proportion. */
static double quantile(const timings *t, double q) {
  double at = q * (t->n - 1);
  uint32_t k = (uint32_t)at, next = k + 1 < t->n ? k + 1 : k;
  return t->seconds[k] + (at - k) * (t->seconds[next] - t->seconds[k]);
}

/* The kernel's own count where there is one: getrusage has the peak of whoever started this process, if that
 * was larger. */
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
  plug_session *s;
  const plug_compiled *c;
  const literal *inputs;
  plug_output *outputs;
  arena *a;
  double first;
  timings t;
} bench;

static status run_once(bench *b, double *seconds) {
  double start = plug_now();
  TRY(cli_execute(b->s, b->c, b->args->seed, b->inputs, b->outputs, b->a));
  *seconds = plug_now() - start;
  return NULL;
}

/* Until there are enough runs and they took long enough. */
static status measure(bench *b) {
  double one, total = 0;
  TRY(run_once(b, &b->first));
  for (int64_t k = 0; k < b->args->warm_up; k++) {
    TRY(run_once(b, &one));
  }
  double start = plug_now();
  do {
    TRY(run_once(b, &one));
    *ARENA_PUSH(b->a, b->t.seconds, b->t.n, b->t.cap) = one;
    total = plug_now() - start;
    cli_progress_step(0, NULL);
  } while (b->t.n < b->args->runs || total < b->args->seconds);
  qsort(b->t.seconds, b->t.n, sizeof *b->t.seconds, by_value);
  return NULL;
}

static void print_text(const bench *b, double load) {
  const timings *t = &b->t;
  printf("min %.4f ms, median %.4f ms, 95 %% below %.4f ms (%" PRIu32 " runs, %" PRIu32 " threads, %s)\n",
         1e3 * t->seconds[0], 1e3 * quantile(t, 0.5), 1e3 * quantile(t, 0.95), t->n,
         plug_session_threads(b->s), plug_session_backend(b->s));
  printf("load %.3f s, compile %.3f s, first run %.4f ms, at most %.1f MB of memory\n", load,
         b->c->compile_seconds, 1e3 * b->first, peak_megabytes());
}

static void print_json(const bench *b, double load) {
  const timings *t = &b->t;
  printf("{\"min_ms\": %.6f, \"median_ms\": %.6f, \"p95_ms\": %.6f, \"runs\": %" PRIu32 ", ",
         1e3 * t->seconds[0], 1e3 * quantile(t, 0.5), 1e3 * quantile(t, 0.95), t->n);
  printf(
      "\"compile_s\": %.6f, \"load_s\": %.6f, \"first_ms\": %.6f, \"peak_rss_mb\": %.1f, \"threads\": "
      "%" PRIu32 ", \"backend\": \"%s\"}\n",
      b->c->compile_seconds, load, 1e3 * b->first, peak_megabytes(), plug_session_threads(b->s),
      plug_session_backend(b->s));
}

status cli_bench(const cli_args *args, arena *a, int *code) {
  (void)code;
  const char *path = args->files.items[0];
  bench b = {.args = args, .a = a};
  plug_session_options options;
  literal *inputs;
  TRY(cli_session_options(args, a, &options));
  options.keep_programs = args->warm;
  TRY(cli_open(args, &options, path, a, &b.s));
  TRY(cli_prepare(args, b.s, a, &inputs, &b.c));
  b.inputs = inputs;
  b.outputs = cli_make_outputs(b.s, a);
  cli_progress_start(args->quiet, "measuring", 0);
  TRY(plug_name_file(measure(&b), path));
  cli_progress_end();
  double load = plug_session_load_seconds(b.s) + b.c->load_seconds;
  args->json ? print_json(&b, load) : print_text(&b, load);
  return NULL;
}
