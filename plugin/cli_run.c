/* cli_run.c - onnx-xla run */
#include <inttypes.h>

#include "plugin/cli.h"

static status write_outputs(const cli_args *args, const rt_program *p, const literal *outputs, arena *a) {
  for (uint32_t k = 0; args->output_dir && k < p->n_results; k++) {
    TRY(cli_write_tensor(a, args->output_dir, args->format ? args->format : "pb", p->results[k].name, k,
                         &outputs[k]));
  }
  return NULL;
}

status cli_run(const cli_args *args, arena *a, int *code) {
  (void)code;
  plug_session_options options;
  plug_session *s;
  literal *inputs;
  const plug_compiled *c;
  TRY(cli_session_options(args, a, &options));
  TRY(cli_open(args, &options, args->files.items[0], a, &s));
  TRY(cli_make_inputs(args, s, a, &inputs, NULL));
  cli_progress_start(args->quiet, "compiling", 0);
  TRY(plug_name_file(cli_compile_for(s, inputs, a, &c), args->files.items[0]));
  cli_progress_end();
  literal *outputs = cli_make_outputs(c->program, a);
  double start = plug_now();
  TRY(plug_name_file(cli_execute(s, c, args->seed, inputs, outputs, a), args->files.items[0]));
  double seconds = plug_now() - start;
  for (uint32_t k = 0; args->verbose && k < c->program->n_params; k++) {
    fputs("in  ", stdout);
    cli_print_tensor(stdout, c->program->params[k].name, &inputs[k]);
  }
  for (uint32_t k = 0; k < c->program->n_results; k++) {
    fputs(args->verbose ? "out " : "", stdout);
    cli_print_tensor(stdout, c->program->results[k].name, &outputs[k]);
  }
  if (!args->quiet) {
    printf("load %.3f s, compile %.3f s, run %.6f s\n", plug_session_load_seconds(s) + c->load_seconds,
           c->compile_seconds, seconds);
  }
  return write_outputs(args, c->program, outputs, a);
}
