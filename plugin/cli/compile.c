/* compile.c - the command onnx-xla compile. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "backend_cpu/runtime/target.h"
#include "backend_gpu/runtime/target.h"
#include "base/file.h"
#include "plugin/cli/cli.h"
#include "runtime/program/size_text.h"

/* A model, opened for compiling. */
typedef struct opened_model {
  session *s;
  session_inputs inputs; /* what the command line says of the model's inputs */
  const char *reason;    /* why the program is not for all sizes; NULL if it is, or if no size is open */
} opened_model;

/* --- the report --- */

static const char *size_text(arena *a, uint64_t bytes) {
  return bytes < 10000      ? arena_printf(a, "%" PRIu64 " B", bytes)
         : bytes < 10000000 ? arena_printf(a, "%.1f kB", (double)bytes / 1e3)
                            : arena_printf(a, "%.1f MB", (double)bytes / 1e6);
}

/* Prints how the contractions were tuned; with `verbose` each of them, with its config and all times. */
static void print_tuning(FILE *f, const rt_report *r, const char *precision, bool verbose) {
  uint32_t from_log = 0, timed = 0, reduced = 0;
  for (uint32_t k = 0; k < r->n_tuned; k++) {
    from_log += strcmp(r->tuned[k].how, "log") == 0;
    timed += strcmp(r->tuned[k].how, "timed") == 0;
    reduced += strncmp(r->tuned[k].winner, "reduced-precision", strlen("reduced-precision")) == 0;
  }
  if (r->n_tuned) {
    fprintf(f,
            "tuning            %" PRIu32 " contractions: %" PRIu32 " timed in this run (%" PRIu32
            " different), %" PRIu32 " by the log, %" PRIu32 " by estimates\n",
            r->n_tuned, timed, r->n_timed, from_log, r->n_tuned - timed - from_log);
  }
  if (precision) {
    fprintf(f, "precision         %" PRIu32 " contractions in %s, where it is faster; %" PRIu32 " in fp32\n", reduced,
            precision, r->n_tuned - reduced);
  }
  for (uint32_t k = 0; k < r->n_tuned && verbose; k++) {
    const rt_tuned *t = &r->tuned[k];
    fprintf(f, "  %s\n    %s (%s)%s%s\n", t->what, t->winner, t->how, *t->times ? ": us " : "", t->times);
  }
}

/* Prints which sizes the programs of the session serve. */
static void print_sizes(FILE *f, const opened_model *m, arena *a) {
  const session_program *general = session_generals(m->s);
  const char *assumed = general ? "" : cli_assumed_sizes(m->s, &m->inputs, a);
  for (; general; general = general->next) {
    size_write_heading(f, 17, "program", general->program);
    size_write_lines(f, 0, 17, general->program);
  }
  if (m->reason) {
    fprintf(f, "%-18sno program is for all sizes: %s\n", "sizes", m->reason);
  }
  if (*assumed) {
    fprintf(f, "assumed sizes     %s (--dim NAME=SIZE and --shape change that)\n", assumed);
  }
}

/* Returns the program that has the report: the one for all sizes if c is a binding of it. */
static const session_program *reported_of(const session_program *c) { return c->general ? c->general : c; }

static void print_report(FILE *f, const session *s, const session_program *c, const cli_args *args, arena *a) {
  const session_program *reported = reported_of(c);
  const rt_report *r = &reported->report;
  fprintf(f, "operators         %" PRIu32 "\n", session_source(s)->n_nodes);
  fprintf(f, "HLO operations    %" PRIu32 " imported, %" PRIu32 " after the passes\n", r->hlo_before, r->hlo_after);
  fprintf(f, "fusions           %" PRIu32 "\n", r->fusions);
  fprintf(f, "convolutions      %" PRIu32 " fused, %" PRIu32 " not\n", r->fused_convolutions,
          r->convolutions - r->fused_convolutions);
  fprintf(f, "dots              %" PRIu32 " fused, %" PRIu32 " not\n", r->fused_dots, r->dots - r->fused_dots);
  fprintf(f, "elementwise       %" PRIu32 " not fused\n", r->lone_elementwise);
  fprintf(f, "bytes moved       %s before fusion, %s after\n", size_text(a, r->bytes_moved_before),
          size_text(a, r->bytes_moved_after));
  fprintf(f, "arena             %s (lower bound %s)\n", size_text(a, r->arena_bytes),
          size_text(a, r->arena_lower_bound));
  fprintf(f, "constants         %s\n", size_text(a, r->constant_bytes));
  fprintf(f, "code              %s, %" PRIu32 " kernels of %" PRIu32 " uses\n", size_text(a, r->code_bytes),
          r->kernels_unique, r->kernels);
  fprintf(f, "kernels           %" PRIu32 " written by LLVM, %" PRIu32 " found in the cache\n",
          r->kernels_unique - r->kernels_found, r->kernels_found);
  fprintf(f, "thunks            %" PRIu32 "\n", r->thunks);
  print_tuning(f, r, args->session.precision, args->verbose);
  double known = r->seconds_passes + r->seconds_tuning + r->seconds_lower + r->seconds_codegen,
         import = reported->compile_seconds - known;
  fprintf(f,
          "seconds           open %.3f, import %.3f, passes %.3f, tuning %.3f, lowering %.3f, code %.3f, ready to run "
          "%.3f\n",
          session_load_seconds(s), import > 0 ? import : 0, r->seconds_passes, r->seconds_tuning, r->seconds_lower,
          r->seconds_codegen, reported->load_seconds);
}

/* --- writing --- */

static status write_text(const char *path, const char *text) {
  if (!path || strcmp(path, "-") == 0) {
    fputs(text, stdout);
    return NULL;
  }
  return status_name_file(file_write(path, text, strlen(text)), path);
}

static status save(session *s, const char *path) {
  if (strcmp(path, "-") == 0) {
    return status_prefix(session_save_stream(s, stdout), "standard output");
  }
  return status_name_file(session_save(s, path), path);
}

/* --- the command --- */

/* Makes a text that does not come from a compiled program: HLO, or the explanation of a node (--explain). */
static status make_text(const cli_args *args, const session *s, const session_inputs *inputs, arena *a,
                        const char **text) {
  const compiler_api *compiler;
  compile_request request = session_request(s, inputs);
  const compiler_model *source = session_source(s);
  request.all_sizes = request.n_ranges > 0;
  TRY(session_open_compiler(&compiler));
  return args->explain ? compiler->explain(source, &request, args->explain, a, text)
                       : compiler->print(source, &request, args->after, args->no_constants, a, text);
}

static status emit_source(const cli_args *args, session *s, const session_inputs *inputs, arena *a) {
  const char *text;
  status failed = make_text(args, s, inputs, a, &text);
  if (cli_finds_sizes(args, s, a, &failed)) {
    failed = make_text(args, s, inputs, a, &text);
  }
  cli_progress_end();
  TRY(cli_name_model(args, s, failed, a));
  return write_text(args->output, text);
}

static status open_model(const cli_args *args, const session_options *options, arena *a, opened_model *out) {
  const char *path = args->files.items[0];
  TRY(cli_open(args, options, path, a, &out->s));
  CHECK_THAT(!session_is_image(out->s), STATUS_INVALID_ARGUMENT, "%s: the file is compiled already", path);
  return cli_told_inputs(args, out->s, a, &out->inputs);
}

/* Compiles the model for one set of sizes, or for the ranges that the options give. */
static status compile_closed(const cli_args *args, arena *a, opened_model *m, const session_program **out) {
  status failed = session_compile_ranges(m->s, &m->inputs, out);
  return cli_finds_sizes(args, m->s, a, &failed) ? session_compile_ranges(m->s, &m->inputs, out) : failed;
}

/* Compiles the model for all sizes if the options leave sizes open (session_options.keep_open) and that is
 * possible, otherwise for one set of sizes. */
static status compile_program(const cli_args *args, const session_options *options, arena *a, opened_model *m,
                              const session_program **out) {
  session_options open = *options, closed = *options;
  open.open_dim = open.keep_open ? COMPILER_LIKELY_SIZE : open.open_dim;
  closed.keep_open = false;
  TRY(open_model(args, &open, a, m));
  cli_progress_start(args->quiet, "compiling", 0);
  if (!open.keep_open) {
    return compile_closed(args, a, m, out);
  }
  status failed = session_compile_ranges(m->s, &m->inputs, out);
  if (!failed || open.n_ranges || !*cli_assumed_sizes(m->s, &m->inputs, a) ||
      status_get_code(failed) == STATUS_RESOURCE) {
    return failed;
  }
  m->reason = arena_strdup(a, status_message(failed));
  status_free(failed);
  TRY(open_model(args, &closed, a, m));
  cli_progress_start(args->quiet, "compiling", 0);
  return cli_explain_closed(compile_closed(args, a, m, out), m->reason);
}

static status emit_oxla(const cli_args *args, const session_options *options, arena *a) {
  opened_model m = {0};
  const session_program *c;
  status failed = compile_program(args, options, a, &m, &c);
  TRY(cli_name_model(args, m.s, failed, a));
  cli_progress_end();
  TRY(save(m.s, args->output));
  if (!args->quiet) {
    FILE *f = strcmp(args->output, "-") == 0 ? stderr : stdout;
    print_sizes(f, &m, a);
    print_report(f, m.s, c, args, a);
  }
  return NULL;
}

/* Compiles the program that emit_oxla would save, and writes a text about it: its buffers, LLVM IR or assembly. */
static status emit_report(const cli_args *args, const session_options *options, arena *a, const char *emit) {
  opened_model m = {0};
  const session_program *c;
  status failed = compile_program(args, options, a, &m, &c);
  TRY(cli_name_model(args, m.s, failed, a));
  cli_progress_end();
  const rt_report *r = &reported_of(c)->report;
  const char *text = strcmp(emit, "llvm") == 0 ? r->llvm : strcmp(emit, "buffers") == 0 ? r->buffers : r->assembly;
  CHECK_THAT(text, STATUS_UNSUPPORTED | STATUS_ABOUT_BACKEND, "backend %s makes no such text for this model",
             args->backend ? args->backend : session_default_backend());
  return write_text(args->output, text);
}

static int complain(const char *message) {
  fprintf(stderr, "onnx-xla compile: %s (see onnx-xla compile --help)\n", message);
  return CLI_USAGE;
}

/* Returns the option that was given although it is for object files only; NULL if there is none. */
static const char *object_option(const cli_args *args) {
  return args->prefix         ? "--prefix"
         : args->weights      ? "--weights"
         : args->carry.n      ? "--carry"
         : args->emit_example ? "--emit-example"
         : args->max_arena    ? "--max-arena"
                              : NULL;
}

/* Sets *wrong to what is wrong about the backend that the options ask for, or leaves it alone: only GPUs of NVIDIA have
 * PTX, and object files have the code of the target cpu. */
static status check_backend(const cli_args *args, bool ptx, bool object, const char **wrong) {
  const rt_target *target;
  if (!ptx && !object) {
    return NULL;
  }
  TRY(session_find_target(args->backend ? args->backend : session_default_backend(), &target));
  if (ptx && !gpu_target_has_ptx(target)) {
    *wrong = "--emit=ptx goes with --backend gpu";
  } else if (object && target != &cpu_target) {
    *wrong = "an object file has the cpu target's code: -o FILE.o, .a and .so go with --backend cpu";
  }
  return NULL;
}

status cli_compile(const cli_args *args, arena *a, int *code) {
  const char *emit = args->emit ? args->emit : args->after || args->explain ? "hlo" : "oxla";
  bool program = strcmp(emit, "oxla") == 0, object = program && args->output && cli_is_object(args->output);
  const char *wrong = NULL;
  session_options options;
  if ((program && !args->output) || (args->after && strcmp(emit, "hlo") != 0)) {
    *code = complain(args->after ? "--after goes with --emit=hlo" : "-o FILE.oxla is missing");
    return NULL;
  }
  if (args->explain && (args->emit || args->after)) {
    *code = complain("--explain goes without --emit and --after");
    return NULL;
  }
  TRY(check_backend(args, strcmp(emit, "ptx") == 0, object, &wrong));
  if (wrong) {
    *code = complain(wrong);
    return NULL;
  }
  if (!object && object_option(args)) {
    *code = complain(arena_printf(a, "%s goes with -o FILE.o, .a or .so", object_option(args)));
    return NULL;
  }
  TRY(cli_session_options(args, a, &options));
  bool source = strcmp(emit, "hlo") == 0;
  options.compile.portable = true;
  options.keep_open = !source && (!options.specialise || strcmp(options.specialise, "full") != 0);
  if (!options.specialise || strcmp(options.specialise, "off") != 0) {
    options.specialise = "full"; /* this command runs nothing, so no run has to wait for the tuning */
  }
  if (object) {
    return cli_write_object(args, &options, a);
  }
  options.compile.keep_text = !program && !source;
  if (!source) {
    return program ? emit_oxla(args, &options, a) : emit_report(args, &options, a, emit);
  }
  opened_model m = {0};
  TRY(open_model(args, &options, a, &m));
  cli_progress_start(args->quiet, "compiling", 0);
  return emit_source(args, m.s, &m.inputs, a);
}
