/* profile.c - the command onnx-xla profile. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/cli/cli.h"
#include "plugin/session/profile.h"
#include "runtime/program/size_text.h"

/* --- tables --- */

static uint32_t rows_of(const cli_args *args, uint32_t n) { return args->top && args->top < n ? args->top : n; }

static void print_rest(uint32_t n, uint32_t shown) {
  if (shown < n) {
    printf("  ... and %" PRIu32 " more (--top 0 shows all)\n", n - shown);
  }
}

static double giga(double amount, double seconds) { return seconds > 0 ? 1e-9 * amount / seconds : 0; }

/* Prints the first node (only its end if the name is long), the number of further nodes, and the operation. */
static void print_label(const rt_profiled *t) {
  enum { WIDTH = 56 };
  if (t->n_nodes == 0) {
    printf("%s", t->operation);
    return;
  }
  const char *text = t->nodes[0].text;
  size_t n = strlen(text);
  printf("%s%s", n > WIDTH ? "..." : "", n > WIDTH ? text + n - WIDTH : text);
  if (t->n_nodes > 1) {
    printf(" + %" PRIu32, t->n_nodes - 1);
  }
  printf(" (%s)", t->operation);
}

static void print_thunks(const cli_args *args, const run_profile *p) {
  uint32_t n = rows_of(args, p->raw->n_thunks);
  printf("\n%9s %9s %6s %8s %5s %7s %5s  %s\n", "median ms", "min ms", "share", "GFLOP/s", "peak", "GB/s", "mem",
         "thunk");
  for (uint32_t k = 0; k < n; k++) {
    const run_profile_row *row = &p->rows[k];
    const rt_profiled *t = row->thunk;
    double flops = giga(row->calls * (double)t->operations, row->median),
           bytes = giga(row->calls * (double)t->bytes, row->median);
    printf("%9.4f %9.4f %5.1f%% %8.1f %4.0f%% %7.1f %4.0f%%  %*s#%td %s ", 1e3 * row->median, 1e3 * row->min,
           100 * row->share, flops, 1e11 * flops / p->roofline.flops_all, bytes, 1e11 * bytes / p->roofline.read_all,
           2 * (int)t->depth, "", t - p->raw->thunks, t->kind);
    print_label(t);
    if (row->calls != 1) {
      printf(" x %g", row->calls);
    }
    printf("%s%s%s\n", *t->note ? " [" : "", t->note, *t->note ? "]" : "");
  }
  print_rest(p->raw->n_thunks, n);
}

static void print_groups(const cli_args *args, const char *what, const char *of, const run_profile_groups *g) {
  uint32_t n = rows_of(args, g->n);
  printf("\n%9s %6s %6s  %s\n", "median ms", "share", of, what);
  for (uint32_t k = 0; k < n; k++) {
    const run_profile_group *x = &g->items[k];
    printf("%9.4f %5.1f%% %6" PRIu32 "  %s\n", 1e3 * x->seconds, 100 * x->share, x->count, x->name);
  }
  print_rest(g->n, n);
}

/* Prints which sizes the programs for all sizes serve, and how long it takes to bind one. */
static void print_generals(const run_profile *p) {
  for (const session_program *g = p->generals; g; g = g->next) {
    size_write_heading(stdout, 17, "program", g->program);
    size_write_lines(stdout, 0, 17, g->program);
  }
  if (p->exact_reason) {
    printf("%-18sno program is for all sizes: %s\n", "sizes", p->exact_reason);
  }
  if (p->bindings) {
    printf("%-18s%.1f us, the least of %" PRIu32 "\n", "binding", 1e6 * p->binding, p->bindings);
  }
}

static void print_all(const cli_args *args, const run_profile *p) {
  const rt_roofline *r = &p->roofline;
  printf("run: median %.4f ms, min %.4f ms (%" PRIu32 " runs, %" PRIu32 " threads, %s); %" PRIu32
         " thunks, outside of thunks %.4f ms (%.1f%%)\n",
         1e3 * p->median, 1e3 * p->min, p->raw->n_runs, p->threads, p->backend, p->raw->n_thunks, 1e3 * p->gaps,
         100 * p->gaps / p->median);
  if (r->is_device) {
    printf("device: at most %.1f GFLOP/s of f32, %.1f GB/s\n", 1e-9 * r->flops_all, 1e-9 * r->read_all);
  } else {
    printf("machine: %.1f GFLOP/s on 1 thread, %.1f on %" PRIu32 "; reads %.1f GB/s on 1, %.1f on %" PRIu32 "\n",
           1e-9 * r->flops_one, 1e-9 * r->flops_all, r->threads, 1e-9 * r->read_one, 1e-9 * r->read_all, r->threads);
  }
  print_generals(p);
  print_thunks(args, p);
  print_groups(args, "kind of thunk", "thunks", &p->kinds);
  print_groups(args, "ONNX operator", "nodes", &p->operators);
  print_groups(args, "ONNX node", "thunks", &p->nodes);
}

/* --- the command --- */

static status write_trace(const run_profile *p, const char *path) {
  FILE *f = fopen(path, "w");
  CHECK_THAT(f, STATUS_IO, "%s: cannot be written: %s", path, strerror(errno));
  run_profile_write_trace(p, f);
  bool failed = ferror(f);
  failed = fclose(f) != 0 || failed;
  CHECK_THAT(!failed, STATUS_IO, "%s: cannot be written: %s", path, strerror(errno));
  return NULL;
}

status cli_profile(const cli_args *args, arena *a, int *code) {
  (void)code;
  const char *path = args->files.items[0];
  session_options options;
  session *s;
  const session_program *c;
  literal *inputs;
  run_profile p;
  TRY(cli_session_options(args, a, &options));
  TRY(cli_open(args, &options, path, a, &s));
  TRY(cli_prepare(args, s, a, &inputs, &c));
  TRY(cli_await_tuned(args, s, inputs, a, &c));
  session_output *outputs = cli_make_outputs(s, a);
  run_profile_options how = {args->warm_up, args->runs, args->seconds};
  session_inputs all = cli_inputs(s, inputs, a);
  all.strings = session_strings(s);
  uint64_t seed = (uint64_t)args->seed;
  cli_progress_start(args->quiet, "measuring", 0);
  TRY(status_name_file(session_profile(s, c, args->seed < 0 ? NULL : &seed, &all, outputs, &how, a, &p), path));
  cli_progress_end();
  if (args->trace) {
    TRY(write_trace(&p, args->trace));
  }
  if (args->json) {
    run_profile_write_json(&p, stdout);
  } else {
    print_all(args, &p);
  }
  return NULL;
}
