/* save.c - writes a session's programs as a .oxla file. */
#include <string.h>

#include "plugin/session/internal.h"
#include "runtime/host/processor.h"
#include "runtime/host/stack.h"
#include "runtime/program/size_text.h"
#include "runtime/program/sizes.h"

typedef struct saving {
  session *s;
  const char *path; /* NULL if the image is written to `stream` */
  FILE *stream;
  arena *scratch;
} saving;

/* Gets the bytes of the model, which the .oxla file must contain if the model runs segment by segment, since segments
 * are compiled during runs. */
static status take_source(session *s, rt_span *out) {
  const compiler_api *compiler;
  TRY(session_open_compiler(&compiler));
  TRY(session_need_model(s));
  return status_prefix(compiler->bytes(s->source, out),
                       "sizes depend on what the model computes, so that it must be in the file");
}

/* Copies a program without the names of its constants.  The names depend on the secret of this machine's cache, but the
 * same model must give the same file on every machine. */
static rt_program *without_names(arena *a, const rt_program *p) {
  rt_program *plain = arena_memdup(a, p, sizeof *p);
  plain->names = plain->code_names = NULL;
  return plain;
}

/* Compiles a program again, for the inputs of `first`, so that its code contains all functions that it calls.  Each
 * program has the time of a compilation. */
static status compile_portable(saving *x, const rt_program *first, bool all_sizes, rt_program **out) {
  session *s = x->s;
  const compiler_api *compiler;
  rt_report unused = {0};
  session_inputs inputs = session_inputs_of(x->scratch, first);
  compile_request request = session_request(s, &inputs);
  request.all_sizes = all_sizes;
  request.options.tune = RT_TUNE_KNOWN;
  TRY(session_open_compiler(&compiler));
  TRY(session_need_model(s));
  s->compiling.deadline = deadline_after(s->options.max_seconds);
  status failed = compiler->compile(s->source, &request, x->scratch, out, &unused);
  s->compiling.deadline = 0;
  TRY(failed);
  CHECK_THAT(*out, STATUS_INTERNAL, "the model cannot be compiled again");
  return NULL;
}

/* Adds a program at the front of image->programs.  If its code calls functions of this library, the model is compiled
 * again without such calls, so that any library can run the file.  A program for all sizes that would have to be
 * compiled again but has never been bound is left out. */
static status add_program(saving *x, rt_image *image, const session_program *c) {
  const rt_program *first = rt_program_is_static(c->program) ? c->program : c->first;
  bool calls = rt_processor_has_functions(c->program->cpu);
  rt_program *again = NULL;
  if (calls && !first) {
    return NULL;
  }
  TRY(calls ? compile_portable(x, first, first != c->program, &again) : NULL);
  *--image->programs = without_names(x->scratch, again ? again : c->program);
  image->n_programs++;
  return NULL;
}

/* Sets what the image says of the model and of its maker: what the image said from which the session was opened, or
 * what the compiler says. */
static status describe(saving *x, rt_image *image) {
  session *s = x->s;
  const compiler_api *compiler;
  if (s->image) {
    image->producer = s->image->producer;
    image->model_hash = s->image->model_hash;
    return NULL;
  }
  TRY(session_open_compiler(&compiler));
  TRY(session_need_model(s));
  image->producer = arena_printf(x->scratch, "onnx-xla " PACKAGE_VERSION " (%s)", compiler->versions);
  image->model_hash = compiler->model_hash(s->source);
  return NULL;
}

static status save_guarded(void *data) {
  saving *x = data;
  session *s = x->s;
  x->scratch = arena_create(&s->compiling); /* programs may have to be compiled again */
  rt_image image = {.model = s->source->name, .target = s->target->name, .strings = s->source->strings};
  TRY(describe(x, &image));
  uint32_t most = s->n_generals;
  for (const session_program *c = s->compiled.first; c; c = c->next) {
    most += c->program != NULL;
    if (!c->program && !image.source.size) {
      TRY(take_source(s, &image.source));
    }
  }
  CHECK_THAT(s->compiled.n || s->n_generals, STATUS_INVALID_ARGUMENT, "nothing has been compiled yet");
  image.programs = ARENA_NEW_N(x->scratch, rt_program *, most) + most;
  /* The session's lists begin with the newest program, the file ends with it. */
  for (const session_program *c = s->compiled.first; c; c = c->next) {
    TRY(c->program ? add_program(x, &image, c) : NULL);
  }
  for (const session_program *c = s->generals; c; c = c->next) {
    TRY(add_program(x, &image, c));
  }
  return x->path ? rt_image_write(&image, x->path) : rt_image_write_stream(&image, x->stream);
}

static status save(session *s, const char *path, FILE *stream) {
  CHECK_THAT(!s->n_carried, STATUS_UNSUPPORTED,
             "a model that was opened with carried outputs cannot be saved; open it without them");
  session_await_tuned(s);
  TRY(session_take_turn(s));
  saving x = {.s = s, .path = path, .stream = stream};
  status failed = run_with_stack(SESSION_COMPILE_STACK, save_guarded, &x); /* it may compile */
  arena_destroy(x.scratch);
  session_end_turn(s);
  return failed;
}

status session_save(session *s, const char *path) { return save(s, path, NULL); }
status session_save_stream(session *s, FILE *f) { return save(s, NULL, f); }

/* --- object files --- */

typedef struct object_call {
  session *s;
  const compiler_api *compiler;
  const compile_request *request;
  const compiler_object_options *options;
  arena *a;
  compiler_object *out;
  rt_report *report;
} object_call;

/* Fails if an object that was to be for ranges of sizes is for one set of sizes, or for one size of a dimension that
 * has a range. */
static status check_ranges(const session *s, const rt_program *p, arena *a) {
  CHECK_THAT(!s->options.n_ranges || !rt_program_is_static(p), STATUS_UNSUPPORTED, "%s", size_why_static(a, p));
  return session_check_pins(s, "object", 1, &p);
}

/* Fails if one of the values holds strings, since objects do not have the table that gives them numbers, or if it is no
 * array. */
static status check_values(const char *what, uint32_t n, const model_value *values) {
  for (uint32_t k = 0; k < n; k++) {
    CHECK_THAT(shape_is_array(&values[k].shape), STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE,
               "%s '%s' is %s, which object files do not have: compile a .oxla file", what, values[k].name,
               SHAPE_STR(NULL, &values[k].shape));
    CHECK_THAT(values[k].shape.type != DTYPE_STR, STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE,
               "%s '%s' holds strings, which object files do not have: compile a .oxla file", what, values[k].name);
  }
  return NULL;
}

static status write_guarded(void *data) {
  const object_call *c = data;
  const compiler_model *source = c->s->source;
  TRY(check_values("input", source->n_inputs, source->inputs));
  TRY(check_values("output", source->n_outputs, source->outputs));
  TRY(session_need_model(c->s));
  TRY(c->compiler->write_object(c->s->source, c->request, c->options, c->a, c->out, c->report));
  return check_ranges(c->s, c->out->program, c->a);
}

static void destroy_arena(void *a) { arena_destroy(a); }

/* Returns an arena that lives as long as `a` and has a budget of its own, which can get a deadline. */
static arena *arena_with_budget(arena *a, mem_budget **budget) {
  *budget = ARENA_NEW(a, mem_budget);
  (*budget)->outer = arena_budget(a);
  arena *inner = arena_create(*budget);
  arena_cleanup(a, destroy_arena, inner);
  return inner;
}

status session_write_object(session *s, const session_inputs *inputs, const compiler_object_options *o, arena *a,
                            compiler_object *out, rt_report *report) {
  const compiler_api *compiler;
  mem_budget *time;
  TRY(session_assume_sizes(s, inputs));
  compile_request request = session_request(s, inputs);
  arena *inner = arena_with_budget(a, &time);
  request.fixed_dims = true;
  request.all_sizes = s->options.keep_open || request.n_ranges;
  TRY(session_open_compiler(&compiler));
  TRY(session_take_turn(s));
  time->deadline = s->compiling.deadline = deadline_after(s->options.max_seconds);
  object_call c = {s, compiler, &request, o, inner, out, report};
  status failed = run_with_stack(SESSION_COMPILE_STACK, write_guarded, &c);
  time->deadline = s->compiling.deadline = 0;
  session_end_turn(s);
  return failed;
}
