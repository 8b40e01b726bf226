/* object.c - onnx-xla compile -o FILE.o: writes an object file and its header. */
#include <errno.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "plugin/cli/cli.h"
#include "runtime/program/object_info.h"
#include "runtime/program/size_text.h"

static bool has_ending(const char *path, const char *ending) {
  const char *dot = strrchr(path, '.');
  return dot && strcmp(dot, ending) == 0;
}

bool cli_is_object(const char *path) {
  return has_ending(path, ".o") || has_ending(path, ".a") || has_ending(path, ".so");
}

/* Returns the file's name without its folder. */
static const char *name_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* Returns the file's name without its ending and, for a library, without "lib" at its beginning. */
static const char *stem_of(arena *a, const char *path) {
  const char *name = name_of(path), *dot = strrchr(name, '.');
  name += !has_ending(path, ".o") && strncmp(name, "lib", 3) == 0 && dot > name + 3 ? 3 : 0;
  return arena_strndup(a, name, (size_t)(dot - name));
}

static const char *header_of(arena *a, const cli_args *args) {
  return arena_printf(a, "%s.h", stem_of(a, args->output));
}

/* Returns the path of a file of this name in the folder of the object. */
static const char *in_output_folder(arena *a, const cli_args *args, const char *name) {
  const char *slash = strrchr(args->output, '/');
  return arena_printf(a, "%.*s%s", slash ? (int)(slash + 1 - args->output) : 0, args->output, name);
}

/* Returns true if no type in the header can have this name: it is a keyword of C or C++, a macro that GCC
 * defines, or a name that the header uses. */
static bool is_reserved(arena *a, const char *name) {
  static const char words[] =
      " _Alignas _Alignof _Atomic _Bool _Complex _Generic _Imaginary _Noreturn _Static_assert _Thread_local "
      "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t "
      "char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr "
      "constinit continue decltype default delete do double dynamic_cast else enum explicit export extern "
      "false float for friend goto if inline int int8_t int16_t int32_t int64_t linux long main mutable "
      "namespace new noexcept not not_eq nullptr onnx_xla_parallel onnx_xla_pool onnx_xla_value operator or "
      "or_eq private protected public register reinterpret_cast requires restrict return short signed "
      "size_t sizeof static static_assert static_cast struct switch template this thread_local throw true "
      "try typedef typeid typename typeof union unix unsigned uint8_t uint16_t uint32_t uint64_t using "
      "virtual void volatile wchar_t while xor xor_eq NULL ";
  return strstr(words, arena_printf(a, " %s ", name));
}

/* Returns a C identifier with which the names of the object begin. */
static const char *prefix_of(arena *a, const cli_args *args) {
  char *name = arena_strdup(a, args->prefix ? args->prefix : stem_of(a, args->output));
  for (char *c = name; *c; c++) {
    bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';
    *c = letter || (c > name && *c >= '0' && *c <= '9') ? *c : '_';
  }
  return !*name ? "net" : is_reserved(a, name) ? arena_printf(a, "%s_", name) : name;
}

static status check_prefix(const cli_args *args, const char *prefix) {
  CHECK_THAT(!args->prefix || strcmp(args->prefix, prefix) == 0, STATUS_INVALID_ARGUMENT,
             "--prefix %s: it must be a C identifier and no keyword", args->prefix);
  return NULL;
}

/* --- what must not be overwritten --- */

static const char *folder_of(arena *a, const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? arena_strndup(a, path, (size_t)(slash + 1 - path)) : ".";
}

static bool is_one_inode(const char *x, const char *y) {
  struct stat a, b;
  return stat(x, &a) == 0 && stat(y, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Returns true if both paths are those of one regular file, which need not exist yet. */
static bool is_one_file(arena *a, const char *x, const char *y) {
  struct stat st;
  bool named = strcmp(name_of(x), name_of(y)) == 0 && is_one_inode(folder_of(a, x), folder_of(a, y));
  return stat(x, &st) == 0 ? S_ISREG(st.st_mode) && is_one_inode(x, y) : named;
}

/* Fails if two of the files that the command reads and writes are the same file. */
static status check_files(const cli_args *args, arena *a) {
  const char *const files[] = {args->files.items[0], args->output, in_output_folder(a, args, header_of(a, args)),
                               args->weights};
  const int n = args->weights ? 4 : 3;
  for (int k = 0; k < n; k++) {
    for (int j = 0; j < k; j++) {
      CHECK_THAT(!is_one_file(a, files[j], files[k]), STATUS_INVALID_ARGUMENT,
                 "%s would be overwritten: %s is that file", files[j], files[k]);
    }
  }
  return NULL;
}

/* Fails if the file to which the weights are to be written exists already and is not a file of weights: it may be
 * external data of the model. */
static status check_weights(const char *path, arena *a) {
  const uint8_t *bytes;
  size_t size, mark = strlen(RT_WEIGHTS_MARK);
  struct stat st;
  if (!path || stat(path, &st) || !S_ISREG(st.st_mode) || st.st_size == 0) {
    return NULL;
  }
  TRY(file_map(a, path, &bytes, &size));
  CHECK_THAT(size >= mark && memcmp(bytes, RT_WEIGHTS_MARK, mark) == 0, STATUS_INVALID_ARGUMENT,
             "%s exists already, and is no file of weights", path);
  return NULL;
}

/* Fails if the object's name has characters that the example's Makefile and CMakeLists.txt cannot have in
 * names of files. */
static status check_example_name(const char *name) {
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-";
  CHECK_THAT(name[strspn(name, plain)] == '\0', STATUS_INVALID_ARGUMENT,
             "--emit-example goes with a name of letters, digits and '.', '_', '+', '-', not with '%s'", name);
  return NULL;
}

/* Fails if a file of the example exists already, since it may be somebody's work. */
static status check_example(const cli_args *args, const compiler_object *o, arena *a) {
  for (uint32_t k = 0; k < o->n_example; k++) {
    const char *path = in_output_folder(a, args, o->example[k].name);
    CHECK_THAT(access(path, F_OK) != 0, STATUS_INVALID_ARGUMENT, "%s exists already", path);
  }
  return NULL;
}

/* --- writing --- */

static status write_file(const char *path, const void *data, size_t size) {
  return status_name_file(file_write(path, data, size), path);
}

/* Writes the files of the example to the folder of the object. */
static status write_example(const cli_args *args, const compiler_object *o, arena *a) {
  for (uint32_t k = 0; k < o->n_example; k++) {
    const char *path = in_output_folder(a, args, o->example[k].name);
    TRY(write_file(path, o->example[k].text, strlen(o->example[k].text)));
  }
  return NULL;
}

/* Makes a shared library of the object by the system's C compiler, which calls the linker. */
static status link_shared(const char *object, const char *library, arena *a) {
  const char *given = getenv("CC"), *cc = given && *given ? given : "cc";
  char *const command[] = {(char *)(uintptr_t)cc,     "-shared", "-o", (char *)(uintptr_t)library,
                           (char *)(uintptr_t)object, "-lm",     NULL};
  pid_t child;
  int result = 1;
  bool started = posix_spawnp(&child, cc, NULL, NULL, command, environ) == 0;
  while (started && waitpid(child, &result, 0) < 0 && errno == EINTR) {
  }
  const char *text = arena_printf(a, "%s -shared -o %s %s -lm", cc, library, object);
  CHECK_THAT(started && result == 0, STATUS_IO, "%s failed; the object is %s", text, object);
  (void)unlink(object);
  return NULL;
}

static status write_library(const cli_args *args, const compiler_object *o, arena *a) {
  if (!has_ending(args->output, ".so")) {
    return write_file(args->output, o->object.data, o->object.size);
  }
  const char *object = arena_printf(a, "%s.o", args->output);
  TRY(write_file(object, o->object.data, o->object.size));
  return link_shared(object, args->output, a);
}

static status write_files(const cli_args *args, const compiler_object *o, arena *a) {
  const char *header = in_output_folder(a, args, header_of(a, args));
  TRY(args->emit_example ? check_example(args, o, a) : NULL);
  TRY(write_library(args, o, a));
  TRY(write_file(header, o->header, strlen(o->header)));
  TRY(args->emit_example ? write_example(args, o, a) : NULL);
  return args->weights ? write_file(args->weights, o->weights.data, o->weights.size) : NULL;
}

static void print_report(const cli_args *args, const compiler_object *o, const rt_report *r, const char *reason,
                         arena *a) {
  const rt_program *p = o->program;
  if (p->n_sizes) {
    size_write_heading(stdout, 17, "object", p);
    size_write_lines(stdout, 0, 17, p);
  } else if (p->n_definitions) {
    printf("%-18s%s\n", "sizes", size_why_static(a, p));
  }
  if (reason) {
    printf("%-18sdimensions without a size are taken as 1 (--dim and --shape set them): %s\n", "sizes", reason);
  }
  printf("kernels           %" PRIu32 " of %" PRIu32 " uses\n", r->kernels_unique, r->kernels);
  printf("thunks            %" PRIu32 "\n", r->thunks);
  printf("weights           %" PRIu64 " bytes\n", r->constant_bytes);
  printf("object            %" PRIu64 " bytes, %s\n", o->object.size, args->output);
}

/* Compiles the model for all sizes that are open.  If that is impossible, sets *reason to why, and compiles it for one
 * set of sizes.  But if a range of sizes was given (--dim), or memory or time ran out, it fails.  Sets *s to the
 * session that was opened last. */
static status compile_object(const cli_args *args, const session_options *options, const compiler_object_options *how,
                             arena *a, compiler_object *out, rt_report *report, const char **reason, session **s) {
  session_options open = *options, closed = *options;
  session_inputs inputs;
  open.keep_open = true;
  open.open_dim = COMPILER_LIKELY_SIZE;
  closed.keep_open = false;
  TRY(cli_open(args, &open, args->files.items[0], a, s));
  CHECK_THAT(!session_is_image(*s), STATUS_INVALID_ARGUMENT, "the file is compiled already");
  TRY(cli_told_inputs(args, *s, a, &inputs));
  cli_progress_start(args->quiet, "compiling", 0);
  status failed = session_write_object(*s, &inputs, how, a, out, report);
  if (!failed || open.n_ranges || status_get_code(failed) == STATUS_RESOURCE) {
    return failed;
  }
  *reason = arena_strdup(a, status_message(failed));
  status_free(failed);
  TRY(cli_open(args, &closed, args->files.items[0], a, s));
  TRY(cli_told_inputs(args, *s, a, &inputs));
  failed = session_write_object(*s, &inputs, how, a, out, report);
  return cli_explain_closed(failed, *reason);
}

/* Reads OUTPUT=INPUT or OUTPUT=INPUT,AXIS. */
static session_carry read_carry(const char *text, arena *a) {
  const char *equals = strchr(text, '='), *comma = strrchr(equals, ',');
  size_t digits = comma ? strspn(comma + 1, "0123456789") : 0;
  bool grows = digits > 0 && digits <= 2 && comma[1 + digits] == '\0';
  size_t length = grows ? (size_t)(comma - equals - 1) : strlen(equals + 1);
  return (session_carry){arena_strndup(a, text, (size_t)(equals - text)), arena_strndup(a, equals + 1, length),
                         grows ? atoi(comma + 1) : -1};
}

static void set_carried(const cli_args *args, arena *a, session_options *options) {
  session_carry *carried = ARENA_NEW_N(a, session_carry, args->carry.n);
  for (uint32_t k = 0; k < args->carry.n; k++) {
    carried[k] = read_carry(args->carry.items[k], a);
  }
  options->carried = carried;
  options->n_carried = args->carry.n;
}

status cli_write_object(const cli_args *args, session_options *options, arena *a) {
  compiler_object_options how = {.prefix = prefix_of(a, args),
                                 .file = name_of(args->output),
                                 .header = header_of(a, args),
                                 .archive = has_ending(args->output, ".a"),
                                 .separate_weights = args->weights,
                                 .most_arena = (uint64_t)args->max_arena};
  compiler_object object;
  rt_report report = {0};
  const char *reason = NULL;
  TRY(check_prefix(args, how.prefix));
  CHECK_THAT(!args->weights || !args->emit_example, STATUS_INVALID_ARGUMENT,
             "--emit-example does not go with --weights: the example has the weights in the object");
  TRY(args->emit_example ? check_example_name(name_of(args->output)) : NULL);
  TRY(check_files(args, a));
  TRY(check_weights(args->weights, a));
  set_carried(args, a, options);
  options->compile.own_kernels = true;
  options->compile.threads = options->compile.threads ? options->compile.threads : 1;
  options->tune = options->tune ? options->tune : "off"; /* so that every machine writes the same file */
  session *s = NULL;
  status failed = compile_object(args, options, &how, a, &object, &report, &reason, &s);
  cli_progress_end();
  TRY(cli_name_model(args, s, failed, a));
  TRY(write_files(args, &object, a));
  if (!args->quiet) {
    print_report(args, &object, &report, reason, a);
  }
  return NULL;
}
