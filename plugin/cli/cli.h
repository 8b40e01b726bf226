/* cli.h - what the commands share: opening models, inputs, progress. */
#ifndef PLUGIN_CLI_CLI_H
#define PLUGIN_CLI_CLI_H

#include "plugin/cli/options.h"
#include "plugin/session/session.h"

/* The commands, each in plugin/cli/<name>.c.  As cli_command.run. */
status cli_run(const cli_args *args, arena *a, int *code);
status cli_compile(const cli_args *args, arena *a, int *code);
status cli_test(const cli_args *args, arena *a, int *code);
status cli_check(const cli_args *args, arena *a, int *code);
status cli_opt(const cli_args *args, arena *a, int *code);
status cli_bench(const cli_args *args, arena *a, int *code);
status cli_info(const cli_args *args, arena *a, int *code);
status cli_cache(const cli_args *args, arena *a, int *code);
status cli_verify(const cli_args *args, arena *a, int *code);
status cli_profile(const cli_args *args, arena *a, int *code);

/* --- models: model.c --- */

/* Session options as the command line has them, with warnings on standard error; dims that are no NAME=N are refused.
 */
STATUS_MUST_USE status cli_session_options(const cli_args *args, arena *a, session_options *out);

/* A session that ends with the arena. */
STATUS_MUST_USE status cli_open(const cli_args *args, const session_options *options, const char *path, arena *a,
                                session **out);

/* What --shape and --input tell of the model's inputs: shapes, and values of those that are in files. */
STATUS_MUST_USE status cli_told_inputs(const cli_args *args, const session *s, arena *a, session_inputs *out);

/* One array for each of the model's inputs: those that --input names, and seeded random ones.  Shapes that
 * nothing tells are as the session's options say. */
STATUS_MUST_USE status cli_make_inputs(const cli_args *args, const session *s, arena *a, literal **out);

/* The arrays as a session takes them. */
session_inputs cli_inputs(const session *s, const literal *inputs, arena *a);

/* The program for these inputs. */
STATUS_MUST_USE status cli_compile_for(session *s, const literal *inputs, arena *a, const session_program **out);
/* What cli_make_inputs does, and the program for them.  What is wrong with the model is found before large inputs are
 * made. */
STATUS_MUST_USE status cli_prepare(const cli_args *args, session *s, arena *a, literal **inputs,
                                   const session_program **out);

/* One for each output of the model; what they hold is freed with the arena, before which the session must not be
 * closed. */
session_output *cli_make_outputs(session *s, arena *a);

/* seed: of random operators; -1 means a fresh one. */
STATUS_MUST_USE status cli_execute(session *s, const session_program *c, int64_t seed, const literal *inputs,
                                   session_output *outputs, arena *a);

/* --- arrays: tensor.c --- */

/* A .npy or ONNX .pb file, told by its content.  raw: as npy_parse has it. */
STATUS_MUST_USE status cli_read_tensor(arena *a, const char *path, dtype raw, literal *out);
/* DIR/output_K.pb or .npy. */
STATUS_MUST_USE status cli_write_tensor(arena *a, const char *dir, const char *format, const char *name, uint32_t k,
                                        const literal *l);
/* Floats in [0, 1), integers that are small enough for most tables, the same for the same seed.  As long as there is
 * time. */
STATUS_MUST_USE status cli_random_tensor(arena *a, const shape *s, uint64_t seed, const mem_budget *time, literal *out);
/* "y: f32[2,3] min 0 max 5 mean 2.5 [0 1 2 3 4 5]" */
void cli_print_tensor(FILE *f, const char *name, const literal *l);

/* --- progress: progress.c --- */

/* A line on standard error, if that is a terminal and the work takes more than half a second.  total 0: not
 * known; a thread then shows how long it has taken, also while nothing is heard of it.  One at a time; not from several
 * threads. */
void cli_progress_start(bool quiet, const char *what, uint64_t total);
void cli_progress_step(uint64_t done, const char *note);
void cli_progress_end(void);
/* rt_compile_options.dump: notes the pass that has ended, or the phase that begins. */
status cli_progress_pass(void *data, const char *pass, const struct hlo_module *m);

/* --- messages: cli.c --- */

/* "onnx-xla: MESSAGE (code-name)" on standard error. */
void cli_report(status s);

#endif
