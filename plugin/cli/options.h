/* options.h - the options of all commands.  They are a table (options.def), from which parsing, --help and the test of
 * the man page come. */
#ifndef PLUGIN_CLI_OPTIONS_H
#define PLUGIN_CLI_OPTIONS_H

#include <stdio.h>

#include "base/arena.h"
#include "plugin/session/session.h"

/* The numbers of the commands, and the commands as bits; a row of options.def has the bits of the commands that take
 * the option. */
enum {
#define CLI_COMMAND(bit, ...) CLI_NUMBER_##bit,
#include "plugin/cli/commands.def"
  CLI_N_COMMANDS
};
enum {
#define CLI_COMMAND(bit, ...) CLI_##bit = 1 << CLI_NUMBER_##bit,
#include "plugin/cli/commands.def"
  CLI_RUNNER = 1 << CLI_N_COMMANDS, /* the program onnx-xla-run (plugin/runner), which has no commands */
  CLI_ALL = 2 * CLI_RUNNER - 1
};

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 }; /* exit status */

typedef struct cli_list {
  uint32_t n, cap;
  const char **items;
} cli_list;

/* The types of options (options.def). */
typedef bool cli_flag;
typedef const char *cli_text, *cli_choice;
typedef uint32_t cli_count;
typedef int64_t cli_integer, cli_bytes;
typedef double cli_number;
typedef cli_list cli_pairs;

/* The values of all options, and the files. */
typedef struct cli_args {
#define CLI_OPTION(type, member, ...) cli_##type member;
#include "plugin/cli/options.def"
  session_options session; /* the options of compile_options.def; cli_session_options adds the others */
  cli_list files;          /* the arguments that are not options */
} cli_args;

typedef struct cli_command {
  unsigned bit;
  const char *name;
  const char *called;   /* how the user calls it, such as "onnx-xla run" */
  const char *operands; /* the operands for the usage line */
  const char *summary;  /* one line */
  const char *more;     /* text that --help prints below the options; NULL if there is none */
  uint32_t min_files, max_files;
  /* Runs inside guard_run; the arena is destroyed when the command ends.  *code is the exit status if it succeeds. */
  status (*run)(const cli_args *args, arena *a, int *code);
} cli_command;

/* Sets all options to their defaults, then to the values on the command line.  Returns CLI_OK, or CLI_USAGE after
 * printing a message to standard error. */
int cli_parse(const cli_command *c, int argc, char **argv, arena *a, cli_args *out);

/* Prints the help page of a command. */
void cli_print_help(FILE *f, const cli_command *c);

/* Returns the word that a mistyped word probably meant; NULL if none is similar. */
const char *cli_nearest(const char *word, const char *const *words, uint32_t n);

#endif
