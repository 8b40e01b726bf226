/* test.c - the command onnx-xla test: runs many cases, each in a process of its own. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "plugin/cli/case.h"
#include "plugin/cli/workers.h"

typedef enum verdict { NOT_RUN, PASSED, FAILED, EXPECTED, CRASHED } verdict;

enum { FLAG_FAILED = 1, FLAG_HOST = 2, FLAG_DIFFERS = 4 };

/* The format of the first line that a worker writes: the times and the number of kernels of cli_case_report. */
#define TIMES_OUT "%.6f %.6f %.6f %.6f %" PRIu32
#define TIMES_IN "%lf %lf %lf %lf %" SCNu32

typedef struct result {
  verdict verdict;
  const char *reason;
  const cli_expected *expected;
  cli_case_report report;
} result;

typedef struct suite {
  const cli_args *args;
  arena *a;
  const char *folder; /* the temporary folder for .oxla files */
  cli_cases cases;
  cli_expect_list expected;
  result *results;
  uint32_t done, shown, host;
  uint32_t count[CRASHED + 1];
} suite;

static const char *image_path(arena *a, const char *folder, uint32_t k) {
  return arena_printf(a, "%s/%" PRIu32 ".oxla", folder, k);
}

/* --- in a worker --- */

typedef struct one {
  suite *s;
  uint32_t number;
  cli_case_report report;
} one;

static status run_one(void *data) {
  one *o = data;
  suite *s = o->s;
  const cli_case *c = &s->cases.items[o->number];
  arena *a = arena_create(NULL);
  status failed = cli_run_case(c, s->args, image_path(s->a, s->folder, o->number), a, &o->report);
  arena_destroy(a);
  return failed;
}

/* Removes all occurrences of `what` from a text. */
static void remove_text(char *text, const char *what) {
  size_t n = strlen(what);
  for (char *at = text; n && (at = strstr(at, what));) {
    memmove(at, at + n, strlen(at + n) + 1);
  }
}

/* Removes paths from a failure's text, since lists of failures must not depend on where the cases are. */
static void remove_paths(const suite *s, const one *o, char *text) {
  const cli_case *c = &s->cases.items[o->number];
  remove_text(text, arena_printf(s->a, "%s: ", c->model));
  remove_text(text, arena_printf(s->a, "%s: ", image_path(s->a, s->folder, o->number)));
  remove_text(text, arena_printf(s->a, "%s/", c->path));
}

static uint32_t work(void *data, uint32_t k, char text[CLI_REPORT_MAX]) {
  suite *s = data;
  one o = {.s = s, .number = k};
  status failed = guard_run(run_one, &o);
  const cli_case_report *r = &o.report;
  int n = snprintf(text, CLI_REPORT_MAX, TIMES_OUT "\n", r->compile, r->passes, r->codegen, r->run, r->kernels);
  if (failed) {
    snprintf(text + n, CLI_REPORT_MAX - (size_t)n, "%s (%s)", status_message(failed),
             status_code_name(status_get_code(failed)));
    remove_paths(s, &o, text);
    status_free(failed);
  }
  return (failed ? FLAG_FAILED : 0) | (r->host_thunks ? FLAG_HOST : 0) | (r->differs ? FLAG_DIFFERS : 0);
}

/* --- in the parent --- */

/* Prints the lines of cases in the order of the cases, not in the order in which they end. */
static void show(suite *s) {
  for (; s->shown < s->cases.n && s->results[s->shown].verdict != NOT_RUN; s->shown++) {
    const result *r = &s->results[s->shown];
    const char *name = s->cases.items[s->shown].name;
    if (r->verdict == FAILED || r->verdict == CRASHED) {
      printf("FAIL %s: %s\n", name, r->reason);
    } else if (s->args->verbose) {
      printf(r->reason ? "%s %s: %s\n" : "%s %s\n", r->verdict == PASSED ? "pass" : "skip", name, r->reason);
    }
  }
}

/* Judges a result.  A crash is never an expected failure. */
static verdict judge(const result *r, const cli_outcome *o) {
  if (!o->ended && !o->timed_out) {
    return CRASHED;
  }
  bool failed = !o->ended || (o->flags & FLAG_FAILED);
  return failed ? (r->expected ? EXPECTED : FAILED) : r->expected ? FAILED : PASSED;
}

static void done(void *data, uint32_t k, const cli_outcome *o) {
  suite *s = data;
  result *r = &s->results[k];
  r->verdict = judge(r, o);
  const char *text = o->text;
  if (o->ended) {
    cli_case_report *t = &r->report;
    (void)sscanf(text, TIMES_IN, &t->compile, &t->passes, &t->codegen, &t->run, &t->kernels);
    t->differs = o->flags & FLAG_DIFFERS;
    text = strchr(text, '\n') ? strchr(text, '\n') + 1 : text;
  }
  if (o->ended && !(o->flags & FLAG_FAILED)) {
    r->reason = r->expected ? arena_printf(s->a, "passes, but is listed as a failure: %s", r->expected->reason) : NULL;
  } else {
    r->reason = arena_strdup(s->a, text);
  }
  s->count[r->verdict]++;
  s->host += o->ended && (o->flags & FLAG_HOST);
  unlink(image_path(s->a, s->folder, k));
  cli_progress_step(++s->done, s->cases.items[k].name);
  if (!isatty(STDERR_FILENO)) {
    show(s);
  }
}

static status make_folder(arena *a, const char **out) {
  const char *base = getenv("TMPDIR");
  char *path = (char *)(uintptr_t)arena_printf(a, "%s/onnx-xla-XXXXXX", base && *base ? base : "/tmp");
  CHECK_THAT(mkdtemp(path), STATUS_IO, "%s: the folder cannot be made: %s", path, strerror(errno));
  *out = path;
  return NULL;
}

static status run_cases(suite *s) {
  int number = 0;
  const compiler_api *compiler;
  cli_workers w = {
      .n = s->cases.n, .at_once = s->args->jobs, .timeout = s->args->timeout, .work = work, .done = done, .data = s};
  /* The library is opened once here, so that all workers inherit it.  If this fails, the workers report it. */
  status_free(session_open_compiler(&compiler));
  TRY(make_folder(s->a, &s->folder));
  cli_progress_start(s->args->quiet, "testing", s->cases.n);
  status failed = cli_run_workers(&w, s->a, &number);
  cli_progress_end();
  for (uint32_t k = 0; (failed || number) && k < s->cases.n; k++) {
    unlink(image_path(s->a, s->folder, k));
  }
  rmdir(s->folder);
  show(s);
  if (number) {
    fflush(stdout);
    raise(number); /* ends this process by the signal that interrupted the tests */
  }
  return failed;
}

/* --- lists --- */

static status read_lists(suite *s) {
  TRY(cli_read_expected(s->a, s->args->expect_fail, &s->expected));
  s->results = ARENA_NEW_N(s->a, result, s->cases.n);
  for (uint32_t k = 0; k < s->cases.n; k++) {
    cli_expected *e = cli_find_expected(&s->expected, &s->cases.items[k]);
    s->results[k].expected = e;
    if (e) {
      e->met = true;
    }
  }
  return NULL;
}

static uint32_t show_strangers(const suite *s) {
  uint32_t n = 0;
  for (uint32_t k = 0; s->args->strict_list && k < s->expected.n; k++) {
    if (!s->expected.items[k].met) {
      printf("FAIL %s: listed in %s, but there is no such case\n", s->expected.items[k].name, s->args->expect_fail);
      n++;
    }
  }
  return n;
}

/* Writes the list of expected failures.  Crashes are left out, since they must be fixed.  Cases whose elements differ
 * are left out, too, unless the old list has them; then their old reason is kept. */
static status write_list(const suite *s) {
  char *text;
  size_t size;
  FILE *f = open_memstream(&text, &size);
  CHECK_THAT(f, STATUS_RESOURCE, "out of memory");
  fprintf(f, "# Cases that onnx-xla test --backend %s is expected to fail, and the reasons.\n",
          s->args->backend ? s->args->backend : session_default_backend());
  for (uint32_t k = 0; k < s->cases.n; k++) {
    const result *r = &s->results[k];
    /* a case that passes although it is listed is left out */
    if (r->verdict == EXPECTED || (r->verdict == FAILED && !r->expected)) {
      const char *reason = !r->report.differs ? r->reason : r->expected ? r->expected->reason : NULL;
      if (reason) {
        fprintf(f, "%s %s\n", s->cases.items[k].name, reason);
      }
    }
  }
  bool written = fclose(f) == 0;
  status failed =
      written ? file_write(s->args->write_expect_fail, text, size) : status_error(STATUS_RESOURCE, "out of memory");
  free(text);
  return status_name_file(failed, s->args->write_expect_fail);
}

/* --- times --- */

static int by_compile_time(const void *a, const void *b, void *data) {
  const suite *s = data;
  double x = s->results[*(const uint32_t *)a].report.compile, y = s->results[*(const uint32_t *)b].report.compile;
  return (x < y) - (x > y);
}

static void show_slowest(suite *s) {
  uint32_t *order = ARENA_NEW_N(s->a, uint32_t, s->cases.n);
  double compile = 0, run = 0;
  for (uint32_t k = 0; k < s->cases.n; k++) {
    order[k] = k;
    compile += s->results[k].report.compile;
    run += s->results[k].report.run;
  }
  qsort_r(order, s->cases.n, sizeof *order, by_compile_time, s);
  printf("compiling took %.1f s in all, running %.1f s; slowest to compile:\n", compile, run);
  for (uint32_t k = 0; k < s->cases.n && k < s->args->slowest; k++) {
    const cli_case_report *t = &s->results[order[k]].report;
    printf("  %.3f s (passes %.3f, code of %" PRIu32 " kernels %.3f), run %.3f s: %s\n", t->compile, t->passes,
           t->kernels, t->codegen, t->run, s->cases.items[order[k]].name);
  }
}

/* --- the command --- */

status cli_test(const cli_args *args, arena *a, int *code) {
  suite s = {.args = args, .a = a};
  double start = clock_seconds();
  for (uint32_t k = 0; k < args->files.n; k++) {
    TRY(cli_find_cases(a, args->files.items[k], &s.cases));
  }
  CHECK_THAT(s.cases.n, STATUS_INVALID_ARGUMENT, "%s: there is no test case in it", args->files.items[0]);
  for (uint32_t k = 0; k < s.cases.n; k++) {
    s.cases.items[k].rtol = args->rtol >= 0 ? args->rtol : s.cases.items[k].rtol;
    s.cases.items[k].atol = args->atol >= 0 ? args->atol : s.cases.items[k].atol;
  }
  TRY(read_lists(&s));
  TRY(run_cases(&s));
  uint32_t failed = s.count[FAILED] + s.count[CRASHED] + show_strangers(&s);
  if (args->write_expect_fail) {
    TRY(write_list(&s));
  }
  if (args->slowest) {
    show_slowest(&s);
  }
  printf("%" PRIu32 " cases in %.1f s; %" PRIu32 " with a host thunk, %" PRIu32 " expected failures, %" PRIu32
         " crashes\n",
         s.cases.n, clock_seconds() - start, s.host, s.count[EXPECTED], s.count[CRASHED]);
  printf("%" PRIu32 " passed, %" PRIu32 " failed, %" PRIu32 " skipped\n", s.count[PASSED], failed, s.count[EXPECTED]);
  *code = failed ? CLI_FAILED : CLI_OK;
  return NULL;
}
