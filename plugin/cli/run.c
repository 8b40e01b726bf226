/* run.c - the command onnx-xla run. */
#include <inttypes.h>

#include "plugin/cli/cli.h"
#include "base/clock.h"

static status write_outputs(const cli_args *args, const compiler_model *s, const session_output *outputs,
                            string_table *strings, arena *a) {
  for (uint32_t k = 0; args->output_dir && k < s->n_outputs; k++) {
    literal l = literal_make(outputs[k].shape, outputs[k].data);
    TRY(cli_write_value(a, args->output_dir, args->format ? args->format : "pb", &s->outputs[k], k, &l, strings));
  }
  return NULL;
}

status cli_run(const cli_args *args, arena *a, int *code) {
  (void)code;
  session_options options;
  session *s;
  literal *inputs;
  const session_program *c;
  TRY(cli_session_options(args, a, &options));
  options.keep_programs = true;
  TRY(cli_open(args, &options, args->files.items[0], a, &s));
  TRY(cli_prepare(args, s, a, &inputs, &c));
  const compiler_model *source = session_source(s);
  session_output *outputs = cli_make_outputs(s, a);
  double start = clock_seconds();
  TRY(cli_name_model(args, s, cli_execute(s, c, args->seed, inputs, session_strings(s), outputs, a), a));
  double seconds = clock_seconds() - start;
  for (uint32_t k = 0; args->verbose && k < source->n_inputs; k++) {
    fputs("in  ", stdout);
    cli_print_value(stdout, source->inputs[k].name, &inputs[k], session_strings(s));
  }
  for (uint32_t k = 0; k < source->n_outputs; k++) {
    fputs(args->verbose ? "out " : "", stdout);
    literal l = literal_make(outputs[k].shape, outputs[k].data);
    cli_print_value(stdout, source->outputs[k].name, &l, session_strings(s));
  }
  if (!args->quiet) {
    printf("load %.3f s, compile %.3f s, run %.6f s\n", session_load_seconds(s) + c->load_seconds, c->compile_seconds,
           seconds);
  }
  return write_outputs(args, source, outputs, session_strings(s), a);
}
