/* verify.c - the command onnx-xla verify. */
#include <inttypes.h>
#include <string.h>

#include "plugin/cli/cli.h"

/* --- progress --- */

enum { STEPS = 1000 };

typedef struct bar {
  bool quiet;
  const char *what;
} bar;

static void show_progress(void *data, const char *what, double share) {
  bar *b = data;
  if (!b->what || strcmp(b->what, what) != 0) {
    if (b->what) {
      cli_progress_end();
    }
    b->what = what;
    cli_progress_start(b->quiet, what, STEPS);
  }
  cli_progress_step((uint64_t)(share * STEPS), NULL);
}

/* --- the report --- */

static void print_line(const char *title, const char *text) {
  if (text && *text) {
    printf("  %-12s %s\n", title, text);
  }
}

/* Prints a text quoted as one word for a shell. */
static void print_word(const char *text) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:+,=@%-";
  bool quoted = text[strspn(text, plain)];
  printf("%s", quoted ? "'" : "");
  for (; *text; text++) {
    printf("%.*s", *text == '\'' ? 4 : 1, *text == '\'' ? "'\\''" : text);
  }
  printf("%s", quoted ? "'" : "");
}

/* Prints the name of a file that shows the difference, and the command that verifies this file. */
static void print_example(const char *title, const verify_example *x) {
  if (!x->file) {
    return;
  }
  print_line(title, x->file);
  printf("  %-12s onnx-xla verify ", "again");
  print_word(x->file);
  for (uint32_t k = 0; k < x->n_inputs; k++) {
    printf(" --input ");
    print_word(x->names[k]);
    printf("=");
    print_word(x->inputs[k]);
  }
  printf("\n");
}

static void print_finding(const verify_finding *f, uint32_t number) {
  printf("%" PRIu32 ". %s\n", number, *f->node ? f->node : f->instruction);
  print_line("instruction", f->instruction);
  print_line("thunk", f->thunk);
  print_line("computed as", f->algorithm);
  print_line("difference", f->difference);
  print_line("cause", f->why);
  print_example("module", &f->module);
  print_example("model", &f->model);
  print_line(f->model.file ? "" : "model", f->model_note);
}

static void print_report(const cli_args *args, const verify_report *r) {
  for (uint32_t k = 0; k < r->n_findings; k++) {
    print_finding(&r->findings[k], k + 1);
  }
  if (r->n_findings < r->n_different) {
    printf("and %" PRIu32 " more that differ\n", r->n_different - r->n_findings);
  }
  printf("%" PRIu32 " instructions compared, %" PRIu32 " wrong", r->n_instructions, r->n_different);
  if (r->n_algorithms) {
    printf(", %" PRIu32 " algorithms tried", r->n_algorithms);
  }
  printf(args->quiet ? "\n" : " (reference %.2f s, target %.3f s)\n", r->seconds_reference, r->seconds_target);
}

/* --- one set of sizes --- */

static status verify_likely(const cli_args *args, session *s, compiler_verify_options *o, arena *a,
                            verify_report *out) {
  const compiler_api *compiler;
  literal *inputs;
  TRY(session_open_compiler(&compiler));
  TRY(cli_make_inputs(args, s, a, &inputs));
  session_inputs all = cli_inputs(s, inputs, a);
  compile_request request = session_request(s, &all);
  o->inputs = inputs;
  return compiler->verify(session_source(s), &request, o, a, out);
}

static status verify_once(const cli_args *args, const cli_list *dims, arena *a, bool *wrong) {
  cli_args own = *args;
  session_options options;
  session *s;
  verify_report report;
  bar progress = {.quiet = args->quiet};
  own.dims = *dims;
  TRY(cli_session_options(&own, a, &options));
  TRY(cli_open(&own, &options, args->files.items[0], a, &s));
  CHECK_THAT(
      !session_is_image(s), STATUS_INVALID_ARGUMENT,
      "a compiled file holds no HLO to compare it with: verify the model from which it was compiled, with the same "
      "options; onnx-xla info --verify FILE finds out whether the file is damaged");
  compiler_verify_options o = {.strings = session_strings(s),
                               .all_algorithms = args->all_algorithms,
                               .folder = args->output_dir ? args->output_dir : ".",
                               .seed = args->seed < 0 ? 0 : (uint64_t)args->seed,
                               .progress = show_progress,
                               .progress_data = &progress};
  status failed = verify_likely(&own, s, &o, a, &report);
  if (cli_finds_sizes(&own, s, a, &failed)) {
    failed = verify_likely(&own, s, &o, a, &report);
  }
  if (progress.what) {
    cli_progress_end();
  }
  TRY(cli_name_model(&own, s, failed, a));
  print_report(args, &report);
  *wrong |= report.n_different > 0;
  return NULL;
}

/* Returns the arguments of --dim, followed by those in a list such as "batch=1,length=8". */
static cli_list dims_of(const cli_args *args, const char *set, arena *a) {
  cli_list dims = {.items = arena_memdup(a, args->dims.items, args->dims.n * sizeof *args->dims.items)};
  dims.n = dims.cap = args->dims.n;
  for (const char *at = set; *at;) {
    size_t n = strcspn(at, ",");
    *ARENA_PUSH(a, dims.items, dims.n, dims.cap) = arena_strndup(a, at, n);
    at += n + (at[n] == ',');
  }
  return dims;
}

status cli_verify(const cli_args *args, arena *a, int *code) {
  bool wrong = false;
  if (args->sets.n == 0) {
    TRY(status_name_file(verify_once(args, &args->dims, a, &wrong), args->files.items[0]));
  }
  for (uint32_t k = 0; k < args->sets.n; k++) {
    cli_list dims = dims_of(args, args->sets.items[k], a);
    printf("sizes %s\n", args->sets.items[k]);
    TRY(status_name_file(verify_once(args, &dims, a, &wrong), args->files.items[0]));
  }
  *code = wrong ? CLI_FAILED : CLI_OK;
  return NULL;
}
