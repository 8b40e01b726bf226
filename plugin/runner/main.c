/* main.c - the program onnx-xla-run: runs a .oxla file.  Its options are --repeat, --verify and those of onnx-xla run
 * that need no compiler and no session. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/machine/machine.h"
#include "plugin/cli/inputs.h"
#include "plugin/cli/tensor.h"
#include "plugin/runner/runner.h"
#include "runtime/host/thread_pool.h"

#define NAME "onnx-xla-run"

static status run_file(const cli_args *args, arena *a, int *code);

static const cli_command command = {
    .bit = CLI_RUNNER,
    .name = NAME,
    .called = NAME,
    .operands = "FILE.oxla",
    .summary =
        "Runs a compiled model that calls no library (onnx-xla compile --own-kernels), and summarises its outputs.",
    .more = "Inputs without --input are random. A dimension without a size is 1.\n",
    .min_files = 1,
    .max_files = 1,
    .run = run_file,
};

/* --- arrays in ONNX's format, for which there is no protobuf here --- */

status cli_read_pb(arena *a, const char *path, const shape *declared, string_table *strings, literal *out) {
  (void)a, (void)path, (void)declared, (void)strings, (void)out;
  return status_error(STATUS_UNSUPPORTED, "this is no .npy file, and " NAME " reads no others");
}

status cli_format_pb(arena *a, const model_value *v, const literal *l, string_table *strings, uint8_t **bytes,
                     size_t *size) {
  (void)a, (void)v, (void)l, (void)strings, (void)bytes, (void)size;
  return status_error(STATUS_UNSUPPORTED, NAME " writes .npy files only");
}

/* --- running a file --- */

static void destroy_pool(void *data) { rt_thread_pool_destroy(data); }

static status create_pool(const cli_args *args, arena *a, rt_thread_pool **out) {
  uint32_t asked = args->session.compile.threads, cores = machine_cores();
  CHECK_THAT(asked <= RT_MAX_THREADS, STATUS_INVALID_ARGUMENT, "%u threads are asked for; the most is %d", asked,
             RT_MAX_THREADS);
  TRY(rt_thread_pool_create(asked ? asked : cores < RT_MAX_THREADS ? cores : RT_MAX_THREADS, out));
  arena_cleanup(a, destroy_pool, *out);
  return NULL;
}

/* Returns the seed of random operators in run k: that of --seed, or another one in each run. */
static uint64_t seed_of_run(const cli_args *args, uint32_t k) {
  return args->seed < 0 ? hash_mix(hash_seed(), k) : (uint64_t)args->seed;
}

/* Runs as often as --repeat says, and sets the time of the fastest run and the outputs of the last one. */
static status repeat(const cli_args *args, arena *a, const runner_file *f, const rt_binding *b, const literal *inputs,
                     literal *outputs, double *fastest) {
  rt_run_options options = {.check_memory = args->check_memory};
  arena *last = a;
  TRY(create_pool(args, a, &options.pool));
  for (uint32_t k = 0; k < args->repeat || k == 0; k++) {
    mem_budget budget = {.deadline = deadline_after(args->max_seconds), .outer = arena_budget(a)};
    options.budget = &budget;
    options.seed = seed_of_run(args, k);
    bool is_last = k + 1 >= args->repeat;
    last = is_last ? a : arena_create(arena_budget(a));
    double start = clock_seconds();
    status failed = runner_execute(last, f, b, inputs, &options, outputs);
    double seconds = clock_seconds() - start;
    *fastest = k == 0 || seconds < *fastest ? seconds : *fastest;
    if (!is_last) {
      arena_destroy(last);
    }
    TRY(failed);
  }
  return NULL;
}

static void print_arrays(const char *prefix, const model_value *values, uint32_t n, const literal *arrays,
                         const string_table *strings) {
  for (uint32_t k = 0; k < n; k++) {
    fputs(prefix, stdout);
    cli_print_value(stdout, values[k].name, &arrays[k], strings);
  }
}

static status write_outputs(const cli_args *args, arena *a, const compiler_model *source, const literal *outputs,
                            string_table *strings) {
  for (uint32_t k = 0; args->output_dir && k < source->n_outputs; k++) {
    TRY(cli_write_value(a, args->output_dir, "npy", &source->outputs[k], k, &outputs[k], strings));
  }
  return NULL;
}

static status run_file(const cli_args *args, arena *a, int *code) {
  (void)code;
  const char *path = args->files.items[0];
  runner_file f;
  literal *inputs;
  const rt_binding *b;
  double start = clock_seconds(), opened, loaded, seconds = 0;
  TRY(status_name_file(runner_open(a, path, args->verify, &f), path));
  opened = clock_seconds() - start;
  const compiler_model *source = f.source;
  string_table *strings = string_table_create(a, source->strings);
  TRY(cli_tell_inputs(args, source, strings, a, &inputs));
  TRY(status_name_file(runner_shape_inputs(&f, inputs), path));
  TRY(cli_fill_inputs(args, source, INT64_MAX, a, inputs));
  start = clock_seconds();
  TRY(status_name_file(runner_load(a, &f, inputs, &b), path));
  loaded = clock_seconds() - start;
  literal *outputs = ARENA_NEW_N(a, literal, source->n_outputs);
  TRY(status_name_file(repeat(args, a, &f, b, inputs, outputs, &seconds), path));
  TRY(file_check(a)); /* the outputs may be wrong if the file was changed while it was read */
  if (args->verbose) {
    print_arrays("in  ", source->inputs, source->n_inputs, inputs, strings);
  }
  print_arrays(args->verbose ? "out " : "", source->outputs, source->n_outputs, outputs, strings);
  if (!args->quiet) {
    printf("load %.3f s, run %.6f s\n", opened + loaded, seconds);
  }
  return write_outputs(args, a, source, outputs, strings);
}

/* --- the program --- */

typedef struct call {
  int argc;
  char **argv;
  arena *arena;
  mem_budget budget; /* counts all memory of the program; --max-memory is its limit */
  int code;
} call;

static status run_guarded(void *data) {
  call *c = data;
  cli_args args;
  c->arena = arena_create(&c->budget);
  c->code = cli_parse(&command, c->argc, c->argv, c->arena, &args);
  if (c->code) {
    return NULL;
  }
  if (args.help) {
    cli_print_help(stdout, &command);
    printf("\nExit status: 0, 1 (failed), 2 (usage).\n");
    return NULL;
  }
  c->budget.limit = (uint64_t)args.max_memory;
  return command.run(&args, c->arena, &c->code);
}

int main(int argc, char **argv) {
  call c = {.argc = argc - 1, .argv = argv + 1};
  if (argc == 2 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)) {
    printf(NAME " %s (%s)\n", PACKAGE_VERSION, machine_architecture());
  } else {
    status failed = guard_run(run_guarded, &c);
    if (failed) {
      fprintf(stderr, NAME ": %s (%s)\n", status_message(failed), status_code_name(status_get_code(failed)));
      status_free(failed);
      c.code = CLI_FAILED;
    }
    arena_destroy(c.arena);
  }
  /* If not everything could be written, for example to a full disk, the program fails. */
  if (fflush(stdout) || ferror(stdout)) {
    fprintf(stderr, NAME ": standard output cannot be written: %s (io)\n", strerror(errno));
    return c.code ? c.code : CLI_FAILED;
  }
  return c.code;
}
