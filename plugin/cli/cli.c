/* cli.c - the main function of onnx-xla: finds the command and runs it. */
#include "plugin/cli/cli.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/machine.h"

static const cli_command commands[] = {
    {CLI_RUN, "run", "MODEL",
     "Runs a model (.onnx), a compiled model (.oxla) or HLO text (.hlo), and summarises its outputs.",
     "Inputs without --input are random. A dimension without a size is 1.\n", 1, 1, cli_run},
    {CLI_COMPILE, "compile", "MODEL", "Compiles a model to a .oxla file, and reports what the compiler did.",
     "The file holds the program for the shapes that --dim, --shape and --input give. --input is needed for inputs "
     "whose\n"
     "values decide sizes.\n",
     1, 1, cli_compile},
    {CLI_CHECK, "check", "MODEL", "Lists the model's operators and everything in it that is not supported.", NULL, 1, 1,
     cli_check},
    {CLI_TEST, "test", "DIR...", "Runs ONNX test cases: folders with model.onnx and test_data_set_*, or data.json.",
     "Cases are searched for in the folders. Each case runs in a process of its own, with an executable that was "
     "saved to a\n"
     "file and loaded. The last line is 'N passed, N failed, N skipped'. Expected failures count as skipped; "
     "unexpected passes\n"
     "and all crashes count as failed.\n",
     1, UINT32_MAX, cli_test},
    {CLI_BENCH, "bench", "MODEL", "Measures how long loading, compiling and running take.", NULL, 1, 1, cli_bench},
    {CLI_PROFILE, "profile", "MODEL", "Shows where the time of a run goes: by thunk, kind, ONNX operator and node.",
     "A share is the median of the shares in all runs. The columns peak and mem are percentages of what this machine "
     "reaches in\n"
     "loops of multiply-adds and of reads from memory, which are measured now. Data in caches is read faster than "
     "from memory.\n",
     1, 1, cli_profile},
    {CLI_VERIFY, "verify", "MODEL",
     "Compares each instruction of a model with the reference evaluator, and finds the cause of a difference.",
     "The results of each instruction are compared with what the reference evaluator computes from the same operands; "
     "then the\n"
     "results of the model are compared with those of the model as it was imported. An instruction that differs is "
     "compiled alone,\n"
     "with other algorithms and with other buffers; if a pass causes the difference, it is found. The smallest module "
     "that shows\n"
     "a difference is written to the output folder, with the command to run it again. The exit status is 1 if anything "
     "differs.\n"
     "Inputs without --input are random. A dimension without a size is 1.\n",
     1, 1, cli_verify},
    {CLI_INFO, "info", "FILE.oxla", "Describes a compiled file, and finds out whether it is damaged.",
     "Opening a compiled file checks everything except its constants, which are read only when they are used.\n", 1, 1,
     cli_info},
    {CLI_CACHE, "cache", "", "Lists the compiled models in the cache folder, and removes them.",
     "When a model is started again, the program in the cache folder is mapped and nothing is compiled.\n", 0, 0,
     cli_cache},
    {CLI_OPT, "opt", "FILE.hlo", "Runs passes on HLO text (- is standard input) and prints the result.", NULL, 1, 1,
     cli_opt},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

void cli_report(status s) {
  fprintf(stderr, "onnx-xla: %s (%s)\n", status_message(s), status_code_name(status_get_code(s)));
}

/* --- onnx-xla --help, --version --- */

static void print_usage(FILE *f) {
  fprintf(f, "usage: onnx-xla COMMAND [OPTION]... [FILE]...\n\nonnx-xla compiles ONNX models and runs them.\n\n");
  for (uint32_t k = 0; k < N_COMMANDS; k++) {
    fprintf(f, "  %-9s %s\n", commands[k].name, commands[k].summary);
  }
  fprintf(f,
          "\n  onnx-xla COMMAND --help   the command's options\n  onnx-xla --version        versions, and "
          "the processor\n"
          "\nExit status: 0, 1 (failed), 2 (usage).\n");
}

static void print_processor(void) {
  machine_name name = machine_processor_name();
  printf("processor  %s", *name.text ? name.text : "unknown");
#if defined(__x86_64__)
  bool v2 = machine_has_feature("sse4.2") && machine_has_feature("popcnt");
  bool v3 = v2 && machine_has_feature("avx2") && machine_has_feature("fma") && machine_has_feature("bmi2");
  bool v4 = v3 && machine_has_feature("avx512vl") && machine_has_feature("avx512bw");
  printf(" (%s)", v4 ? "x86-64-v4" : v3 ? "x86-64-v3" : v2 ? "x86-64-v2" : "x86-64");
#endif
  printf("\n");
}

static int print_version(void) {
  const compiler_api *compiler;
  printf("onnx-xla %s\n", PACKAGE_VERSION);
  status s = session_open_compiler(&compiler);
  printf("libraries  %s%s%s\n", s ? status_message(s) : compiler->versions, *session_libraries() ? ", " : "",
         session_libraries());
  status_free(s);
  print_processor();
  return CLI_OK;
}

/* --- commands --- */

static const cli_command *find_command(const char *name) {
  for (uint32_t k = 0; k < N_COMMANDS; k++) {
    if (strcmp(commands[k].name, name) == 0) {
      return &commands[k];
    }
  }
  return NULL;
}

static int unknown_command(const char *name) {
  const char *names[N_COMMANDS];
  for (uint32_t k = 0; k < N_COMMANDS; k++) {
    names[k] = commands[k].name;
  }
  const char *near = cli_nearest(name, names, N_COMMANDS);
  if (near) {
    fprintf(stderr, "onnx-xla: unknown command '%s'; did you mean %s?\n", name, near);
  } else {
    fprintf(stderr, "onnx-xla: unknown command '%s' (see onnx-xla --help)\n", name);
  }
  return CLI_USAGE;
}

typedef struct call {
  const cli_command *command;
  int argc;
  char **argv;
  arena *a;
  int *code;
} call;

/* The budget of the memory that the command itself allocates: inputs, outputs, texts. --max-memory bounds it too. */
static mem_budget own_budget;

static status run_guarded(void *data) {
  call *c = data;
  cli_args args;
  *c->code = cli_parse(c->command, c->argc, c->argv, c->a, &args);
  if (*c->code) {
    return NULL;
  }
  if (args.help) {
    cli_print_help(stdout, c->command);
    return NULL;
  }
  own_budget.limit = (uint64_t)args.max_memory;
  return c->command->run(&args, c->a, c->code);
}

static status create_arena(void *data) {
  *(arena **)data = arena_create(&own_budget);
  return NULL;
}

static int run_command(const cli_command *command, int argc, char **argv) {
  int code = CLI_OK;
  arena *a = NULL;
  status s = guard_run(create_arena, &a);
  if (!s) {
    s = guard_run(run_guarded, &(call){command, argc, argv, a, &code});
  }
  cli_progress_end();
  if (s) {
    cli_report(s);
    status_free(s);
    code = CLI_FAILED;
  }
  arena_destroy(a);
  return code;
}

static int dispatch(int argc, char **argv) {
  const char *first = argc > 1 ? argv[1] : "";
  if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || (strcmp(first, "help") == 0 && argc == 2)) {
    print_usage(stdout);
    return CLI_OK;
  }
  if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0) {
    return print_version();
  }
  if (argc < 2) {
    print_usage(stderr);
    return CLI_USAGE;
  }
  bool help = strcmp(first, "help") == 0;
  const cli_command *c = find_command(argv[1 + help]);
  if (!c) {
    return unknown_command(argv[1 + help]);
  }
  if (help) {
    cli_print_help(stdout, c);
    return CLI_OK;
  }
  return run_command(c, argc - 2, argv + 2);
}

static void end_without_memory(void) {
  static const char text[] = "onnx-xla: a library is out of memory (resource)\n";
  (void)!write(STDERR_FILENO, text, sizeof text - 1);
  _exit(CLI_FAILED);
}

/* Makes the process end with a message if LLVM or oneDNN run out of memory.  They are C++ and throw an exception, which
 * C code cannot catch.  This calls std::set_new_handler if a library has loaded the C++ runtime. */
static void expect_lack_of_memory(void) {
  typedef void handler(void);
  handler *(*set_new_handler)(handler *);
  *(void **)&set_new_handler = dlsym(RTLD_DEFAULT, "_ZSt15set_new_handlerPFvvE");
  if (set_new_handler) {
    set_new_handler(end_without_memory);
  }
}

int main(int argc, char **argv) {
  expect_lack_of_memory();
  int code = dispatch(argc, argv);
  /* If not everything could be written, for example to a full disk, the command fails. */
  if (fflush(stdout) || ferror(stdout)) {
    fprintf(stderr, "onnx-xla: standard output cannot be written: %s (io)\n", strerror(errno));
    return code ? code : CLI_FAILED;
  }
  return code;
}
