/* options.h - the options of all commands: one table, from which parsing, --help and the test of the man
 * page come. */
#ifndef PLUGIN_CLI_OPTIONS_H
#define PLUGIN_CLI_OPTIONS_H

#include <stdio.h>

#include "base/arena.h"

/* Commands as bits, to say which options each takes. */
enum {
  CLI_RUN = 1 << 0,
  CLI_COMPILE = 1 << 1,
  CLI_TEST = 1 << 2,
  CLI_CHECK = 1 << 3,
  CLI_OPT = 1 << 4,
  CLI_BENCH = 1 << 5,
  CLI_PROFILE = 1 << 6,
  CLI_CACHE = 1 << 7,
  CLI_VERIFY = 1 << 8,
  CLI_INFO = 1 << 9,
  CLI_ALL = (1 << 10) - 1
};

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 }; /* exit status */

typedef struct cli_list {
  uint32_t n, cap;
  const char **items;
} cli_list;

/* What the command line said.  Texts are NULL and numbers 0 where nothing else is the default; -1 marks what
 * must be told from 0. */
typedef struct cli_args {
  bool help, unchecked, quiet, verbose, json, list, strict_list, exact, deterministic, no_cache, no_constants, warm,
      clear, verify;
  bool check_memory;
  const char *backend, *cpu, *skip_passes, *tune, *precision, *cache;
  int64_t threads, lanes, max_memory, cache_size;
  double max_seconds;
  cli_list dims;   /* NAME=N */
  cli_list inputs; /* NAME=FILE */
  cli_list shapes; /* NAME=AxBxC */
  cli_list sets;   /* NAME=N,NAME=N,... */
  bool all_algorithms;
  const char *output_dir, *format, *output, *emit, *after, *explain, *passes, *trace, *remove;
  const char *expect_fail, *write_expect_fail;
  double rtol, atol; /* -1: the case's */
  double timeout;    /* seconds a case may take */
  int64_t jobs, parallel, runs, warm_up, slowest, top;
  int64_t seed; /* -1: 0 for inputs, a fresh one for every run */
  double seconds;
  cli_list files; /* what is no option */
} cli_args;

typedef struct cli_command {
  unsigned bit;
  const char *name;
  const char *operands; /* in the usage line */
  const char *summary;  /* one line */
  const char *more;     /* below the options; NULL: nothing */
  uint32_t min_files, max_files;
  /* Runs inside a guard; the arena ends with the command.  *code is the exit status unless it fails. */
  status (*run)(const cli_args *args, arena *a, int *code);
} cli_command;

/* The defaults, then what the command line says.  Returns CLI_OK, or CLI_USAGE after a message on standard
 * error. */
int cli_parse(const cli_command *c, int argc, char **argv, arena *a, cli_args *out);

/* The help page of a command. */
void cli_print_help(FILE *f, const cli_command *c);

/* The known word nearest to a mistyped one, NULL when none is near. */
const char *cli_nearest(const char *word, const char *const *words, uint32_t n);

#endif
