/* prog_run_pass.c - reads HLO text, runs passes on it, prints it, and evaluates the module before and after them.
 *   prog_run_pass [-p PASS,PASS,...] [-r] FILE
 * -r: the passes sum in another order, so floats may be rounded differently (same_values.h).
 * A failure is printed as `error: CODE: MESSAGE` on standard output, where run-hlo compares it too; the exit status
 * is 1.  If the passes changed what is computed, a message is printed on standard error, and the exit status is 3. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend_ref/eval.h"
#include "hlo/passes/pass.h"
#include "hlo/text/text.h"
#include "hlo/text/verify.h"
#include "tests/hlo/same_values.h"
#include "tests/hlo/test_target.h"

static char *read_file(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  if (!f || fseek(f, 0, SEEK_END) != 0) {
    perror(path);
    exit(2);
  }
  *n = (size_t)ftell(f);
  rewind(f);
  char *text = malloc(*n + 1);
  if (!text || fread(text, 1, *n, f) != *n) {
    perror(path);
    exit(2);
  }
  fclose(f);
  return text;
}

static status print_out(void *data, const char *text, size_t n) {
  fwrite(text, 1, n, data);
  return NULL;
}

typedef struct job {
  arena *arena;
  const char *passes, *text;
  size_t n;
  same_floats floats;
  hlo_module *before, *after; /* `before` is NULL if no pass ran */
} job;

static status run(void *data) {
  job *j = data;
  hlo_module *m = NULL;
  const hlo_pass *steps = NULL;
  uint32_t n_steps = 0;
  pass_context context = {.arena = j->arena,
                          .eval = ref_fold,
                          .target = &test_target,
                          .any_order = true,
                          .verify = true,
                          .check_changed = true};
  TRY(hlo_parse(j->arena, j->text, j->n, NULL, &m));
  TRY(hlo_pass_parse_list(j->arena, j->passes, &steps, &n_steps));
  hlo_module *before = n_steps ? hlo_module_clone(j->arena, m) : NULL;
  TRY(hlo_run_passes(m, steps, n_steps, &context));
  for (uint32_t k = 0; k < context.n_notes; k++) {
    printf("// %s: %s %lld\n", context.notes[k].pass, context.notes[k].what, (long long)context.notes[k].value);
  }
  j->before = before;
  j->after = m;
  return hlo_print_to(m, NULL, (hlo_sink){print_out, stdout});
}

/* The most seconds and bytes that evaluating may take.  The cases are small. */
enum { SECONDS = 60 };
static const uint64_t bytes = UINT64_C(1) << 31;

static status compare(void *data) {
  const job *j = data;
  return same_values(j->before, j->after, j->floats, j->arena);
}

/* Returns the exit status.  If the modules cannot be evaluated, this is no failure, but a message is printed. */
static int compare_values(job *j) {
  status s = guard_run(compare, j);
  bool differs = status_get_code(s) == STATUS_INTERNAL;
  if (s) {
    fprintf(stderr, "%s: %s\n", differs ? "the passes change what is computed" : "not evaluated", status_message(s));
  }
  status_free(s);
  return differs ? 3 : 0;
}

int main(int argc, char **argv) {
  job j = {.passes = ""};
  int at = 1;
  if (at + 1 < argc && strcmp(argv[at], "-p") == 0) {
    j.passes = argv[at + 1];
    at += 2;
  }
  if (at < argc && strcmp(argv[at], "-r") == 0) {
    j.floats = SAME_ROUNDED;
    at++;
  }
  if (argc != at + 1) {
    fprintf(stderr, "usage: %s [-p PASS,PASS,...] [-r] FILE\n", argv[0]);
    return 2;
  }
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  mem_budget budget = {.limit = bytes, .deadline = (uint64_t)(now.tv_sec + SECONDS) * 1000000000u};
  char *text = read_file(argv[at], &j.n);
  j.text = text;
  j.arena = arena_create(&budget);
  status s = guard_run(run, &j);
  if (s) {
    printf("error: %s: %s\n", status_code_name(status_get_code(s)), status_message(s));
  }
  int code = s ? 1 : j.before ? compare_values(&j) : 0;
  status_free(s);
  arena_destroy(j.arena);
  free(text);
  return code;
}
