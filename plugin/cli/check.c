/* check.c - the command onnx-xla check. */
#include <inttypes.h>
#include <string.h>

#include "plugin/cli/cli.h"
#include "plugin/session/opened_file.h"

static void destroy_arena(void *data) { arena_destroy(*(arena **)data); }

/* Returns an arena for the model that is destroyed with `a`.  Its budget has the limits of --max-memory and
 * --max-time. */
static arena *bounded_arena(const cli_args *args, arena *a) {
  mem_budget *budget = ARENA_NEW(a, mem_budget);
  arena **kept = ARENA_NEW(a, arena *);
  budget->limit = (uint64_t)args->max_memory;
  budget->outer = arena_budget(a);
  budget->deadline = deadline_after(args->max_seconds);
  arena_cleanup(a, destroy_arena, kept);
  return *kept = arena_create(budget);
}

static void print_ops(const support_report *c) {
  printf("%-40s %7s %7s %7s\n", "operator", "opset", "version", "nodes");
  for (uint32_t k = 0; k < c->n_ops; k++) {
    const operator_use *u = &c->ops[k];
    char name[128], version[16] = "-";
    snprintf(name, sizeof name, "%s.%s", u->domain, u->name);
    if (u->since) {
      snprintf(version, sizeof version, "%d", u->since);
    }
    printf("%-40s %7" PRId64 " %7s %7" PRIu64 "%s\n", name, u->opset, version, u->count,
           u->supported ? ""
           : u->since   ? "  not supported"
                        : "  unknown");
  }
}

/* Compiles the model for a third party's backend, which is given as a path.  The support check says only what can be
 * imported.  The backends of onnx-xla itself have all operations that an import makes, but another one may lack some.
 * Prints what the backend refuses or, in a note, why that is not known.  Sets *refused to whether the backend refuses
 * the model; if only the contents of an input are missing, *refused is false. */
static status check_backend(const cli_args *args, const session_options *options, arena *a, bool *refused) {
  session *s;
  session_inputs inputs;
  const session_program *c;
  TRY(cli_open(args, options, args->files.items[0], a, &s));
  TRY(cli_told_inputs(args, s, a, &inputs));
  cli_progress_start(args->quiet, "compiling", 0);
  status failed = session_compile(s, &inputs, &c);
  cli_progress_end();
  *refused =
      failed && status_get_code(failed) == STATUS_UNSUPPORTED && status_get_subject(failed) != STATUS_ABOUT_VALUE;
  if (*refused) {
    printf("not supported: %s\n", status_message(failed));
  } else if (failed || !c->program) {
    printf("note: whether backend %s has all operations is not known: %s\n", options->backend,
           failed ? status_message(failed) : "the model runs segment by segment, and segments are compiled in a run");
  } else {
    printf("backend %s compiles the model\n", options->backend);
  }
  status_free(failed);
  return NULL;
}

status cli_check(const cli_args *args, arena *a, int *code) {
  const compiler_api *compiler;
  session_options options;
  support_report found;
  opened_file *file;
  TRY(cli_session_options(args, a, &options));
  TRY(session_open_compiler(&compiler));
  if (args->list) {
    fputs(compiler->op_page(a), stdout);
    return NULL;
  }
  const char *path = args->files.items[0];
  TRY(status_name_file(opened_file_open(a, path, NULL, 0, &file), path));
  CHECK_THAT(file->kind != OPENED_IMAGE, STATUS_INVALID_ARGUMENT,
             "%s: a compiled file was checked when it was compiled; check takes ONNX files only", path);
  compile_request request = {.backend = args->backend ? args->backend : session_default_backend(),
                             .dims = options.dims,
                             .n_dims = options.n_dims,
                             .ranges = options.ranges,
                             .n_ranges = options.n_ranges,
                             .open_dim = options.open_dim};
  arena *model = bounded_arena(args, a);
  cli_progress_start(args->quiet, "checking", 0);
  TRY(status_name_file(opened_file_map(file, a), path));
  TRY(status_name_file(compiler->check_support(model, path, (rt_span){file->bytes, file->size}, &request, &found),
                       path));
  cli_progress_end();
  TRY(status_name_file(session_check_dims(a, &options, found.dim_names, found.n_dim_names), path));
  if (!args->quiet) {
    print_ops(&found);
  }
  for (uint32_t k = 0; !args->quiet && k < found.n_values; k++) {
    printf("%s\n", found.values[k]);
  }
  for (uint32_t k = 0; k < found.n_notes; k++) {
    printf("note: %s\n", found.notes[k]);
  }
  for (uint32_t k = 0; k < found.n_problems; k++) {
    printf("not supported: %s\n", found.problems[k]);
  }
  bool refused = found.n_problems > 0;
  if (!refused && strchr(request.backend, '/')) {
    options.backend = request.backend;
    options.cache = "";
    TRY(check_backend(args, &options, a, &refused));
  }
  if (!refused) {
    printf("no unsupported operator or type was found\n");
  }
  *code = refused ? CLI_FAILED : CLI_OK;
  return NULL;
}
