/* model.c - opens the model of a command and makes its inputs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "plugin/cli/cli.h"

/* --- sessions --- */

/* Reads a number from 0 to 2^56 at *at, and moves *at behind it.  Returns false if there is none. */
static bool read_size(const char **at, int64_t *out) {
  char *end;
  bool digit = **at >= '0' && **at <= '9';
  *out = digit ? strtoll(*at, &end, 10) : -1;
  *at = digit ? end : *at;
  return *out >= 0 && *out <= DIM_MAX;
}

/* Reads NAME=N as a size, and NAME=A..B as a range. */
static status read_dim(const char *text, arena *a, compiler_dim *dims, uint32_t *n_dims, dim_range *ranges,
                       uint32_t *n_ranges) {
  const char *equals = strrchr(text, '='), *at = equals + 1, *name = arena_strndup(a, text, (size_t)(equals - text));
  int64_t least, most;
  bool right = read_size(&at, &least);
  most = least;
  bool range = right && strncmp(at, "..", 2) == 0;
  if (range) {
    at += 2;
    right = read_size(&at, &most) && least <= most;
  }
  CHECK_THAT(right && *at == '\0', STATUS_INVALID_ARGUMENT,
             "--dim %s: the size is not a number from 0 to 2^56, nor a range such as 1..512", text);
  if (range) {
    ranges[(*n_ranges)++] = (dim_range){name, least, most};
  } else {
    dims[(*n_dims)++] = (compiler_dim){name, least};
  }
  return NULL;
}

static status read_dims(const cli_args *args, arena *a, session_options *out) {
  compiler_dim *dims = ARENA_NEW_N(a, compiler_dim, args->dims.n);
  dim_range *ranges = ARENA_NEW_N(a, dim_range, args->dims.n);
  out->dims = dims;
  out->ranges = ranges;
  for (uint32_t k = 0; k < args->dims.n; k++) {
    TRY(read_dim(args->dims.items[k], a, dims, &out->n_dims, ranges, &out->n_ranges));
  }
  return NULL;
}

/* Prints a line of the session's log.  Any thread of the session may call it. */
static void print_log(void *data, session_log_level level, const char *line) {
  (void)data;
  cli_progress_message(level == SESSION_LOG_WARNING ? "warning: " : "", line);
}

status cli_session_options(const cli_args *args, arena *a, session_options *out) {
  *out = args->session;
  out->backend = args->backend;
  out->fallback = args->fallback;
  out->compile.dump = cli_progress_pass;
  out->cache = args->no_cache ? "" : args->cache;
  out->cache_bytes = (uint64_t)args->cache_size;
  out->open_dim = 1;
  out->max_memory = (uint64_t)args->max_memory;
  out->outer = arena_budget(a);
  out->max_seconds = args->max_seconds;
  out->check_memory = args->check_memory;
  out->log = print_log;
  out->log_level = args->verbose ? 0 : SESSION_LOG_WARNING;
  return read_dims(args, a, out);
}

typedef struct opened {
  session *s;
  bool quiet;
} opened;

/* Closing a session may take long, since the cache then writes the programs that are not stored yet. */
static void close_session(void *data) {
  opened *o = data;
  cli_progress_start(o->quiet, "closing the session and writing the cache", 0);
  session_close(o->s);
  cli_progress_end();
}

/* If --input gives arrays for inputs that have initializers, opens the session again, with these arrays in their
 * place. */
static status replace_defaults(const cli_args *args, const session_options *options, const char *path, arena *a,
                               session **s) {
  session_options more = *options;
  compiler_constant *constants;
  TRY(cli_read_constants(args, session_source(*s), a, &constants, &more.n_constants));
  if (more.n_constants == 0) {
    return NULL;
  }
  for (uint32_t k = 0; k < more.n_constants; k++) { /* the names are the session's */
    constants[k].name = arena_strdup(a, constants[k].name);
  }
  more.constants = constants;
  session_close(*s);
  *s = NULL;
  return session_open(path, NULL, 0, &more, s);
}

status cli_open(const cli_args *args, const session_options *options, const char *path, arena *a, session **out) {
  opened *kept = ARENA_NEW(a, opened);
  kept->quiet = args->quiet;
  arena_cleanup(a, close_session, kept);
  cli_progress_start(args->quiet, "loading", 0);
  TRY(session_open(path, NULL, 0, options, &kept->s));
  TRY(replace_defaults(args, options, path, a, &kept->s));
  cli_progress_end();
  *out = kept->s;
  return NULL;
}

/* --- inputs --- */

status cli_told_inputs(const cli_args *args, const session *s, arena *a, session_inputs *out) {
  literal *told;
  const compiler_model *source = session_source(s);
  TRY(cli_tell_inputs(args, source, session_strings(s), a, &told));
  const shape **shapes = ARENA_NEW_N(a, const shape *, source->n_inputs);
  const void **values = ARENA_NEW_N(a, const void *, source->n_inputs);
  for (uint32_t k = 0; k < source->n_inputs; k++) {
    shapes[k] = told[k].shape.type ? &told[k].shape : NULL;
    values[k] = told[k].data;
  }
  *out = (session_inputs){.shapes = shapes, .values = values};
  return NULL;
}

status cli_explain_closed(status failed, const char *reason) {
  bool explain = failed && status_get_code(failed) != STATUS_RESOURCE && strcmp(status_message(failed), reason) != 0;
  return explain ? status_prefix(failed, "no program serves all sizes: %s; for one set of sizes", reason) : failed;
}

/* Computes the shape that input k has in a run. */
static status shape_input(const session *s, const session_inputs *told, uint32_t k, literal *out) {
  const model_value *v = &session_source(s)->inputs[k];
  shape_kind kind = (shape_kind)v->shape.kind;
  CHECK_THAT(kind != SHAPE_UNRANKED || told->shapes[k], STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE,
             "the model does not give the rank of input '%s': give it with --input or --shape", v->name);
  CHECK_THAT((kind != SHAPE_SEQUENCE && kind != SHAPE_MAP) || told->shapes[k], STATUS_INVALID_ARGUMENT,
             "input '%s' is a %s: give it with --input", v->name, kind == SHAPE_MAP ? "map" : "sequence");
  *out = literal_make(told->values[k] ? *told->shapes[k] : session_input_shape(s, told, k), told->values[k]);
  return shape_check(&out->shape, v->name);
}

static status shape_inputs(const cli_args *args, const session *s, arena *a, literal **out) {
  uint32_t n = session_source(s)->n_inputs;
  session_inputs told;
  *out = ARENA_NEW_N(a, literal, n);
  TRY(cli_told_inputs(args, s, a, &told));
  for (uint32_t k = 0; k < n; k++) {
    TRY(shape_input(s, &told, k, &(*out)[k]));
  }
  return NULL;
}

status cli_make_inputs(const cli_args *args, const session *s, arena *a, literal **out) {
  TRY(shape_inputs(args, s, a, out));
  return cli_fill_inputs(args, session_source(s), INT64_MAX, a, *out);
}

/* --- assumed sizes --- */

#define CHANGE_SIZES "(--dim NAME=SIZE and --shape change that)"

const char *cli_assumed_sizes(const session *s, const session_inputs *told, arena *a) {
  const compiler_model *source = session_source(s);
  str_map seen;
  const char *text = "";
  str_map_init(&seen, a);
  for (uint32_t k = 0; k < source->n_inputs; k++) {
    const model_value *v = &source->inputs[k];
    for (int d = 0; d < v->shape.rank; d++) {
      const char *name = v->dim_names[d] ? v->dim_names[d] : arena_printf(a, "%s[%d]", v->name, d);
      if (session_guesses(s, told, k, d) && !str_map_get(&seen, name)) {
        *str_map_put(&seen, name) = &seen;
        int64_t size = session_input_shape(s, told, k).dims[d];
        text = arena_printf(a, "%s%s%s = %" PRId64, text, *text ? ", " : "", name, size);
      }
    }
  }
  return text;
}

/* Returns true if the model may be valid at other sizes. */
static bool is_of_sizes(const session *s, status failed) {
  status_code about = status_get_subject(failed);
  return s && status_get_code(failed) == STATUS_INVALID_MODEL && (!about || about == STATUS_ABOUT_SHAPE);
}

bool cli_finds_sizes(const cli_args *args, session *s, arena *a, status *failed) {
  session_inputs told;
  if (!is_of_sizes(s, *failed)) {
    return false;
  }
  status stopped = cli_told_inputs(args, s, a, &told);
  const char *before = stopped ? "" : cli_assumed_sizes(s, &told, a), *after = before;
  if (*before) {
    stopped = session_assume_sizes(s, &told);
    after = cli_assumed_sizes(s, &told, a);
  }
  bool found = !stopped && strcmp(before, after) != 0;
  if (found && !args->quiet) {
    cli_progress_message("assumed sizes: ", arena_printf(a, "%s " CHANGE_SIZES, after));
  }
  if (found || stopped) {
    status_free(*failed);
    *failed = stopped;
  }
  return found;
}

status cli_name_model(const cli_args *args, const session *s, status failed, arena *a) {
  session_inputs told;
  status_code about = status_get_subject(failed);
  if (is_of_sizes(s, failed)) {
    status unread = cli_told_inputs(args, s, a, &told);
    const char *assumed = unread ? "" : cli_assumed_sizes(s, &told, a);
    status_free(unread);
    if (*assumed) {
      failed = status_suffix(failed, STATUS_INVALID_MODEL | about, "assumed sizes: %s " CHANGE_SIZES, assumed);
    }
  }
  if (status_get_code(failed) == STATUS_UNSUPPORTED && about == STATUS_ABOUT_VALUE) {
    failed = status_suffix(failed, STATUS_UNSUPPORTED | about, "--input NAME=FILE tells the compiler a content");
  }
  return status_name_file(failed, args->files.items[0]);
}

/* --- running --- */

session_inputs cli_inputs(const session *s, const literal *inputs, arena *a) {
  uint32_t n = session_source(s)->n_inputs;
  const shape **shapes = ARENA_NEW_N(a, const shape *, n);
  const void **values = ARENA_NEW_N(a, const void *, n);
  for (uint32_t k = 0; k < n; k++) {
    shapes[k] = &inputs[k].shape;
    values[k] = inputs[k].data;
  }
  return (session_inputs){.shapes = shapes, .values = values};
}

status cli_compile_for(session *s, const literal *inputs, arena *a, const session_program **out) {
  session_inputs all = cli_inputs(s, inputs, a);
  return session_compile(s, &all, out);
}

/* Makes the small inputs, or all of them if that is not enough, and compiles the program for them. */
static status compile_likely(const cli_args *args, session *s, arena *a, literal *inputs,
                             const session_program **program) {
  enum { SMALL = 1 << 20 }; /* bytes; an input on whose values sizes depend is rarely larger */
  TRY(cli_fill_inputs(args, session_source(s), SMALL, a, inputs));
  cli_progress_start(args->quiet, "compiling", 0);
  status failed = cli_compile_for(s, inputs, a, program);
  if (status_get_subject(failed) == STATUS_ABOUT_VALUE) {
    status_free(failed);
    TRY(cli_fill_inputs(args, session_source(s), INT64_MAX, a, inputs));
    failed = cli_compile_for(s, inputs, a, program);
  }
  return failed;
}

status cli_prepare(const cli_args *args, session *s, arena *a, literal **out, const session_program **program) {
  TRY(shape_inputs(args, s, a, out));
  status failed = compile_likely(args, s, a, *out, program);
  if (cli_finds_sizes(args, s, a, &failed)) {
    TRY(shape_inputs(args, s, a, out));
    failed = compile_likely(args, s, a, *out, program);
  }
  TRY(cli_name_model(args, s, failed, a));
  cli_progress_start(args->quiet, "making inputs", 0);
  TRY(cli_fill_inputs(args, session_source(s), INT64_MAX, a, *out));
  cli_progress_end();
  return NULL;
}

status cli_await_tuned(const cli_args *args, session *s, const literal *inputs, arena *a,
                       const session_program **program) {
  cli_progress_start(args->quiet, "tuning", 0);
  session_await_tuned(s);
  cli_progress_end();
  session_release(s, *program);
  return cli_compile_for(s, inputs, a, program);
}

typedef struct output_list {
  session *s;
  uint32_t n;
  session_output *items;
} output_list;

static void finish_outputs(void *data) {
  output_list *o = data;
  for (uint32_t k = 0; k < o->n; k++) {
    session_output_finish(o->s, &o->items[k]);
  }
}

session_output *cli_make_outputs(session *s, arena *a) {
  output_list *o = ARENA_NEW(a, output_list);
  *o = (output_list){s, session_source(s)->n_outputs, ARENA_NEW_N(a, session_output, session_source(s)->n_outputs)};
  arena_cleanup(a, finish_outputs, o);
  return o->items;
}

status cli_execute(session *s, const session_program *c, int64_t seed, const literal *inputs, string_table *strings,
                   session_output *outputs, arena *a) {
  session_inputs all = cli_inputs(s, inputs, a);
  all.strings = strings;
  return session_run(s, c, seed < 0 ? NULL : &(uint64_t){(uint64_t)seed}, &all, outputs);
}
