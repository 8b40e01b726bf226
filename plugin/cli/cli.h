/* cli.h - functions that the commands share: opening models, inputs, progress and messages. */
#ifndef PLUGIN_CLI_CLI_H
#define PLUGIN_CLI_CLI_H

#include "plugin/cli/inputs.h"
#include "plugin/cli/options.h"
#include "plugin/cli/tensor.h"
#include "plugin/session/session.h"

/* The commands, each in plugin/cli/<name>.c.  They are called as cli_command.run. */
#define CLI_COMMAND(bit, name, ...) status cli_##name(const cli_args *args, arena *a, int *code);
#include "plugin/cli/commands.def"

/* --- models: model.c --- */

/* Makes session options from the command line; the session prints warnings to standard error.  Fails if an argument of
 * --dim is neither NAME=N nor NAME=A..B. */
STATUS_MUST_USE status cli_session_options(const cli_args *args, arena *a, session_options *out);

/* Opens a session that is closed when the arena is destroyed. */
STATUS_MUST_USE status cli_open(const cli_args *args, const session_options *options, const char *path, arena *a,
                                session **out);

/* Reads what --shape and --input say about the model's inputs: shapes, and the values of inputs that are in files. */
STATUS_MUST_USE status cli_told_inputs(const cli_args *args, const session *s, arena *a, session_inputs *out);
/* If a model could not be compiled for all sizes, for a reason, and then not for one set of sizes either, adds that
 * reason to the second failure.  Takes ownership of `failed`, which may be NULL. */
STATUS_MUST_USE status cli_explain_closed(status failed, const char *reason);

/* Makes an array for each of the model's inputs: from the files of --input, otherwise random ones from --seed.
 * Dimensions without a size from the command line get the sizes of the session's options. */
STATUS_MUST_USE status cli_make_inputs(const cli_args *args, const session *s, arena *a, literal **out);

/* Returns the arrays in the form that a session takes. */
session_inputs cli_inputs(const session *s, const literal *inputs, arena *a);

/* Finds or compiles the program for these inputs. */
STATUS_MUST_USE status cli_compile_for(session *s, const literal *inputs, arena *a, const session_program **out);
/* Waits until the session tunes no program any more (--specialise), and replaces *program by the program that the
 * session then has for these inputs. */
STATUS_MUST_USE status cli_await_tuned(const cli_args *args, session *s, const literal *inputs, arena *a,
                                       const session_program **program);
/* Does what cli_make_inputs does, and compiles the program for the inputs.  Large inputs are made after compiling, so
 * that an error in the model is reported without waiting for them.  If the model cannot be compiled for assumed sizes,
 * others are looked for (cli_finds_sizes). */
STATUS_MUST_USE status cli_prepare(const cli_args *args, session *s, arena *a, literal **inputs,
                                   const session_program **out);

/* Returns the sizes of dimensions that are assumed, since neither the model nor these inputs give them: "n = 1,
 * x[1] = 1", or "" if there are none. */
const char *cli_assumed_sizes(const session *s, const session_inputs *told, arena *a);
/* If `failed` is about assumed sizes, and the model can be imported with others (session_assume_sizes), makes the
 * session assume these, tells the user of them, frees the error and returns true: the caller may try again.  An error
 * of the search replaces `failed`. */
bool cli_finds_sizes(const cli_args *args, session *s, arena *a, status *failed);
/* Makes the message of an error begin with the model's path.  If the model may be valid at other sizes than those that
 * are assumed, the message then ends with these.  The session may be NULL.  Takes ownership of the error and returns
 * the new one; NULL stays NULL. */
STATUS_MUST_USE status cli_name_model(const cli_args *args, const session *s, status failed, arena *a);

/* Makes a session_output for each output of the model.  Their contents are freed with the arena, which must be
 * destroyed before the session is closed. */
session_output *cli_make_outputs(session *s, arena *a);

/* Runs the program.  `seed` is that of random operators; -1 means a fresh one.  `strings` has those of the inputs, and
 * gets those that the run makes, so threads that run at the same time need tables of their own. */
STATUS_MUST_USE status cli_execute(session *s, const session_program *c, int64_t seed, const literal *inputs,
                                   string_table *strings, session_output *outputs, arena *a);

/* --- progress: progress.c --- */

/* Shows a progress line on standard error if that is a terminal and the work takes more than half a second.  If `total`
 * is 0, the amount of work is unknown, and a thread shows the seconds that have passed.  There can be only one progress
 * line at a time, and only one thread may start and end it. */
void cli_progress_start(bool quiet, const char *what, uint64_t total);
void cli_progress_step(uint64_t done, const char *note);
void cli_progress_end(void);
/* Prints "onnx-xla: ", `kind` and `line` as a line on standard error.  If a progress line is shown, it is cleared
 * before and shown again later.  Any thread may call this function. */
void cli_progress_message(const char *kind, const char *line);
/* An rt_compile_options.dump that shows the pass that has ended, or the phase that begins. */
status cli_progress_pass(void *data, const char *pass, const struct hlo_module *m);

/* --- messages: cli.c --- */

/* Prints "onnx-xla: MESSAGE (code-name)" to standard error. */
void cli_report(status s);

/* Returns true if a file of this name is an object, a static library or a shared library: .o, .a, .so. */
bool cli_is_object(const char *path);
/* Compiles the model to the object file args->output and a header beside it.  In object.c. */
STATUS_MUST_USE status cli_write_object(const cli_args *args, session_options *options, arena *a);

#endif
