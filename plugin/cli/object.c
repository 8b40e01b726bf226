/* object.c - onnx-xla compile -o FILE.o: writes an object file and its header. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "plugin/cli/cli.h"
#include "runtime/program/size_text.h"

/* Returns the file's name without its folder and its ending. */
static const char *stem_of(arena *a, const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
  return arena_strndup(a, name, dot ? (size_t)(dot - name) : strlen(name));
}

/* Returns the path with another ending, which begins with a dot. */
static const char *with_ending(arena *a, const char *path, const char *ending) {
  const char *dot = strrchr(path, '.');
  return arena_printf(a, "%.*s%s", (int)(dot - path), path, ending);
}

/* Returns a C identifier with which the names of the object begin. */
static const char *prefix_of(arena *a, const cli_args *args) {
  char *name = arena_strdup(a, args->prefix ? args->prefix : stem_of(a, args->output));
  for (char *c = name; *c; c++) {
    bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';
    *c = letter || (c > name && *c >= '0' && *c <= '9') ? *c : '_';
  }
  return *name ? name : "net";
}

static status check_prefix(const cli_args *args, const char *prefix) {
  CHECK_THAT(!args->prefix || strcmp(args->prefix, prefix) == 0, STATUS_INVALID_ARGUMENT,
             "--prefix %s: it must be a C identifier", args->prefix);
  return NULL;
}

static status write_file(const char *path, const void *data, size_t size) {
  return status_name_file(file_write(path, data, size), path);
}

/* Writes the files of the example to the folder of the object.  What is there already is an error, since it may be
 * somebody's work. */
static status write_example(const cli_args *args, const compiler_object *o, arena *a) {
  const char *slash = strrchr(args->output, '/');
  int folder = slash ? (int)(slash + 1 - args->output) : 0;
  for (uint32_t k = 0; k < o->n_example; k++) {
    const char *path = arena_printf(a, "%.*s%s", folder, args->output, o->example[k].name);
    CHECK_THAT(access(path, F_OK) != 0, STATUS_INVALID_ARGUMENT, "%s exists already", path);
    TRY(write_file(path, o->example[k].text, strlen(o->example[k].text)));
  }
  return NULL;
}

static status write_files(const cli_args *args, const compiler_object *o, arena *a) {
  const char *header = with_ending(a, args->output, ".h");
  TRY(write_file(args->output, o->object.data, o->object.size));
  TRY(write_file(header, o->header, strlen(o->header)));
  TRY(args->emit_example ? write_example(args, o, a) : NULL);
  return args->weights ? write_file(args->weights, o->weights.data, o->weights.size) : NULL;
}

static void print_report(const cli_args *args, const compiler_object *o, const rt_report *r, const char *reason) {
  const rt_program *p = o->program;
  if (p->n_sizes) {
    printf("%-18sone object for all sizes\n", "sizes");
    size_write_lines(stdout, 0, 17, p);
  }
  if (reason) {
    printf("%-18sdimensions without a size are taken as 1 (--dim and --shape set them): %s\n", "sizes", reason);
  }
  printf("kernels           %" PRIu32 " of %" PRIu32 " uses\n", r->kernels_unique, r->kernels);
  printf("thunks            %" PRIu32 "\n", r->thunks);
  printf("weights           %" PRIu64 " bytes\n", r->constant_bytes);
  printf("object            %" PRIu64 " bytes, %s\n", o->object.size, args->output);
}

/* Compiles the model for all sizes that are open; if that is impossible, for one set of sizes, and says why. */
static status compile_object(const cli_args *args, const session_options *options, const compiler_object_options *how,
                             arena *a, compiler_object *out, rt_report *report, const char **reason) {
  session_options open = *options, closed = *options;
  session *s;
  session_inputs inputs;
  open.keep_open = true;
  open.open_dim = COMPILER_LIKELY_SIZE;
  TRY(cli_open(args, &open, args->files.items[0], a, &s));
  CHECK_THAT(!session_is_image(s), STATUS_INVALID_ARGUMENT, "the file is compiled already");
  TRY(cli_told_inputs(args, s, a, &inputs));
  cli_progress_start(args->quiet, "compiling", 0);
  status failed = session_write_object(s, &inputs, how, a, out, report);
  if (!failed || open.n_ranges || status_get_code(failed) == STATUS_RESOURCE) {
    return failed;
  }
  *reason = arena_strdup(a, status_message(failed));
  status_free(failed);
  TRY(cli_open(args, &closed, args->files.items[0], a, &s));
  TRY(cli_told_inputs(args, s, a, &inputs));
  return session_write_object(s, &inputs, how, a, out, report);
}

status cli_write_object(const cli_args *args, session_options *options, arena *a) {
  compiler_object_options how = {
      .prefix = prefix_of(a, args), .file = stem_of(a, args->output), .weights_apart = args->weights};
  compiler_object object;
  rt_report report = {0};
  const char *reason = NULL;
  TRY(check_prefix(args, how.prefix));
  CHECK_THAT(!args->weights || !args->emit_example, STATUS_INVALID_ARGUMENT,
             "--emit-example does not go with --weights: the example has the weights in the object");
  options->compile.own_kernels = true;
  options->compile.threads = options->compile.threads ? options->compile.threads : 1;
  options->tune = options->tune ? options->tune : "off"; /* the same file on every machine */
  status failed = compile_object(args, options, &how, a, &object, &report, &reason);
  cli_progress_end();
  TRY(status_name_file(failed, args->files.items[0]));
  TRY(write_files(args, &object, a));
  if (!args->quiet) {
    print_report(args, &object, &report, reason);
  }
  return NULL;
}
