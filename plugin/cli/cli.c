/* cli.c - the main function of onnx-xla: finds the command and runs it. */
#include "plugin/cli/cli.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/machine/machine.h"

static const cli_command commands[] = {
#define CLI_COMMAND(bit, name, operands, min, max, summary, more) \
  {CLI_##bit, #name, "onnx-xla " #name, operands, summary, more, min, max, cli_##name},
#include "plugin/cli/commands.def"
};

void cli_report(status s) {
  fprintf(stderr, "onnx-xla: %s (%s)\n", status_message(s), status_code_name(status_get_code(s)));
}

/* --- onnx-xla --help, --version --- */

static void print_usage(FILE *f) {
  fprintf(f, "usage: onnx-xla COMMAND [OPTION]... [FILE]...\n\nonnx-xla compiles ONNX models and runs them.\n\n");
  for (uint32_t k = 0; k < CLI_N_COMMANDS; k++) {
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
  for (uint32_t k = 0; k < CLI_N_COMMANDS; k++) {
    if (strcmp(commands[k].name, name) == 0) {
      return &commands[k];
    }
  }
  return NULL;
}

static int unknown_command(const char *name) {
  const char *names[CLI_N_COMMANDS];
  for (uint32_t k = 0; k < CLI_N_COMMANDS; k++) {
    names[k] = commands[k].name;
  }
  const char *near = cli_nearest(name, names, CLI_N_COMMANDS);
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
  arena *a; /* what is opened in it, such as sessions that log, may read args until it is destroyed */
  cli_args args;
  int code;
} call;

/* The budget of the memory that the command itself allocates: inputs, outputs, texts. --max-memory bounds it too. */
static mem_budget own_budget;

static status run_guarded(void *data) {
  call *c = data;
  c->code = cli_parse(c->command, c->argc, c->argv, c->a, &c->args);
  if (c->code) {
    return NULL;
  }
  if (c->args.help) {
    cli_print_help(stdout, c->command);
    return NULL;
  }
  own_budget.limit = (uint64_t)c->args.max_memory;
  return c->command->run(&c->args, c->a, &c->code);
}

static status create_arena(void *data) {
  ((call *)data)->a = arena_create(&own_budget);
  return NULL;
}

static int run_command(const cli_command *command, int argc, char **argv) {
  call c = {.command = command, .argc = argc, .argv = argv, .code = CLI_OK};
  status s = guard_run(create_arena, &c);
  if (!s) {
    s = guard_run(run_guarded, &c);
  }
  cli_progress_end();
  fflush(stdout); /* shows the results before sessions are closed, which may take a while */
  if (s) {
    cli_report(s);
    status_free(s);
    c.code = CLI_FAILED;
  }
  arena_destroy(c.a);
  return c.code;
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
