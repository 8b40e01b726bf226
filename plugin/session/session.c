/* session.c - compiles programs for inputs when they are requested, and finds them again. */
#include "plugin/session/compile_cache.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "plugin/session/specialise.h"
#include "runtime/host/stack.h"
#include "runtime/program/sizes.h"
#include "runtime/program/told.h"

/* --- closing --- */

void session_close(session *s) {
  if (!s) {
    return;
  }
  specialise_end(s);      /* comes first, since a specialisation adds programs in the background */
  compile_cache_close(s); /* before the programs are freed, since the cache's thread may still write them to files */
  session_free_programs(s);
  if (s->segments) {
    const compiler_api *compiler;
    status_free(session_open_compiler(&compiler)); /* this cannot fail, since the library is open if there are
                                                      segments */
    compiler->segments_destroy(s->segments);
  }
  rt_weight_pool_destroy(s->segment_pool);
  rt_weight_pool_destroy(s->weight_pool);
  if (s->loading.code_cache) {
    content_store_close(&s->code_store);
  }
  rt_thread_pool_destroy(s->pool);
  arena_destroy(s->string_memory);
  arena_destroy(s->arena);
  pthread_cond_destroy(&s->turn_ends);
  pthread_mutex_destroy(&s->lock);
  free(s);
}

/* --- properties --- */

const compiler_model *session_source(const session *s) { return s->source; }
double session_load_seconds(const session *s) { return s->load_seconds; }
bool session_is_image(const session *s) { return s->image; }
const char *session_backend(const session *s) { return s->target->name; }
const char *session_chosen_backend(const session *s) { return s->options.backend; }
uint32_t session_threads(const session *s) { return s->options.compile.threads; }

const compiler_carry *session_carried(const session *s, uint32_t *n) {
  *n = s->n_carried;
  return s->carried;
}

/* --- compiling --- */

/* Returns the functions of this library that compiled code may call.  Returns NULL if there are none, or if the code
 * must be portable to other processes. */
static const function_set *functions_of(const session *s) {
  return s->target->functions && !s->options.compile.portable ? s->target->functions() : NULL;
}

compile_request session_request(const session *s, const session_inputs *inputs) {
  return (compile_request){.backend = s->options.backend,
                           .options = s->options.compile,
                           .dims = s->options.dims,
                           .n_dims = s->options.n_dims,
                           .ranges = s->options.ranges,
                           .n_ranges = s->options.n_ranges,
                           .inputs = inputs->shapes,
                           .values = inputs->values,
                           .open_dim = s->options.open_dim,
                           .alone = s->options.keep_open || s->options.n_ranges,
                           .assumed = s->assumed,
                           .carried = s->carried,
                           .n_carried = s->n_carried};
}

session_inputs session_inputs_of(arena *a, const rt_program *p) {
  const shape **shapes = ARENA_NEW_N(a, const shape *, p->n_params);
  const void **values = ARENA_NEW_N(a, const void *, p->n_params);
  for (uint32_t k = 0; k < p->n_params; k++) {
    shapes[k] = &p->params[k].shape;
    const void *told = rt_told_content(a, p, k);
    values[k] = told ? told : p->params[k].value;
  }
  return (session_inputs){.shapes = shapes, .values = values};
}

/* Returns the size that the options or the shapes of the inputs give to a named dimension; -1 if they give none. */
static int64_t size_of_name(const session *s, const session_inputs *inputs, const char *name) {
  for (uint32_t n = 0; n < s->options.n_dims; n++) {
    if (strcmp(name, s->options.dims[n].name) == 0) {
      return s->options.dims[n].value;
    }
  }
  for (uint32_t k = 0; inputs->shapes && k < s->source->n_inputs; k++) {
    const model_value *v = &s->source->inputs[k];
    for (int d = 0; inputs->shapes[k] && d < v->shape.rank && d < inputs->shapes[k]->rank; d++) {
      if (v->dim_names[d] && strcmp(v->dim_names[d], name) == 0) {
        return inputs->shapes[k]->dims[d];
      }
    }
  }
  return -1;
}

/* Returns the size of dimension d of input k as the given shapes, the model or options.dims tell it; -1 if none of them
 * does. */
static int64_t told_size(const session *s, const session_inputs *inputs, uint32_t k, int d) {
  const model_value *v = &s->source->inputs[k];
  if (inputs->shapes && inputs->shapes[k]) {
    return inputs->shapes[k]->dims[d];
  }
  return v->shape.dims[d] >= 0 || !v->dim_names[d] ? v->shape.dims[d] : size_of_name(s, inputs, v->dim_names[d]);
}

bool session_guesses(const session *s, const session_inputs *inputs, uint32_t k, int d) {
  return told_size(s, inputs, k, d) < 0;
}

const dim_range *session_range_of(const session *s, const model_value *v, int d) {
  for (uint32_t k = 0; k < s->options.n_ranges && d < v->shape.rank && v->dim_names[d]; k++) {
    if (strcmp(s->options.ranges[k].name, v->dim_names[d]) == 0) {
      return &s->options.ranges[k];
    }
  }
  return NULL;
}

/* Returns the size that is assumed for a dimension whose size is not known; -1 if a size that is not known is an
 * error. */
static int64_t likely_size(const session *s, const model_value *v, int d) {
  const dim_range *r = session_range_of(s, v, d);
  if (s->assumed) {
    return s->assumed[v - s->source->inputs].dims[d];
  }
  return r ? r->most : s->options.open_dim ? s->options.open_dim : -1;
}

shape session_input_shape(const session *s, const session_inputs *inputs, uint32_t k) {
  const model_value *v = &s->source->inputs[k];
  if (inputs->shapes && inputs->shapes[k]) {
    return *inputs->shapes[k];
  }
  shape wanted = v->shape;
  for (int d = 0; d < wanted.rank; d++) {
    int64_t size = told_size(s, inputs, k, d);
    wanted.dims[d] = size >= 0 ? size : likely_size(s, v, d);
  }
  return wanted;
}

bool session_program_serves(const session *s, const rt_program *p, const session_inputs *inputs) {
  for (uint32_t k = 0; k < p->n_params; k++) {
    const rt_io *io = &p->params[k];
    shape wanted = session_param_shape(s, inputs, p, k);
    if (!shape_equal(&wanted, &io->shape)) {
      return false;
    }
  }
  return rt_program_has_contents(p, inputs->values);
}

string_table *session_strings(const session *s) { return s->strings; }

arena *session_create_arena(session *s) { return arena_create(&s->budget); }

status session_need_model(session *s) {
  compiler_model *opened;
  if (s->source->model) {
    return NULL;
  }
  TRY(session_open_model(s, &opened));
  compile_cache_check_model(s);
  const char *path = s->file->path;
  CHECK_THAT(!path || s->cache, STATUS_INVALID_FILE, "%s: the file has changed since it was opened", path);
  opened_file_close(s->file);
  s->source->model = opened->model;
  return NULL;
}

typedef struct compilation {
  session *s;
  const session_inputs *inputs;
  rt_tune tune;
  arena *arena;   /* the arena of the program, until the program owns it */
  status refused; /* why there is no program for all sizes; NULL if none was wanted or one was compiled */
  bool segmented; /* whether that is because sizes depend on what the model computes */
  session_program *out;
} compilation;

static void keep_kernels(void *data, const rt_program *p, uint32_t n_new) { compile_cache_put_kernels(data, p, n_new); }

/* Creates s->segments.  Segments have a weight pool of their own, since runs compile them without the turn
 * (session_take_turn), which s->weight_pool needs. */
static status create_segments(session *s, const compiler_api *compiler, rt_tune tune) {
  TRY(rt_weight_pool_create(&s->budget, &s->secret, &s->segment_pool));
  compile_cache_map_kernels(s, s->segment_pool);
  compile_request request = session_request(s, &(session_inputs){0});
  request.all_sizes = session_allows_general(s);
  request.options.tune = tune;
  request.options.functions = functions_of(s);
  request.options.sharing = &(rt_sharing){.weight_pool = s->segment_pool};
  request.compiled = keep_kernels;
  request.compiled_data = s;
  request.code_cache = s->loading.code_cache;
  return compiler->segments_create(s->source, &request, &s->budget, &s->segments);
}

/* Makes a session_program without a program, for a model that runs segment by segment because its sizes depend on
 * computed data.  Takes over the arena. */
static status make_segments(const compilation *c, const compiler_api *compiler, arena *a, session_program **out) {
  session *s = c->s;
  status failed = s->segments ? NULL : create_segments(s, compiler, c->tune);
  if (failed) {
    arena_destroy(a);
    return failed;
  }
  shape *shapes = ARENA_NEW_N(a, shape, s->source->n_inputs);
  for (uint32_t k = 0; k < s->source->n_inputs; k++) {
    shapes[k] = session_input_shape(s, c->inputs, k);
  }
  TRY(session_make_program(s, NULL, a, out));
  (*out)->shapes = shapes;
  return NULL;
}

/* Returns the tuning with which the next program is compiled.  With RT_TUNE_FAST only the first program of a session is
 * tuned by measuring, so that new shapes do not take seconds.  Even for the first one, session_compile measures only
 * with SPECIALISE_FULL, since otherwise specialise.c measures in the background.  The caller holds the lock. */
static rt_tune tune_of_next(const session *s) {
  rt_tune wanted = s->options.compile.tune;
  return wanted == RT_TUNE_FAST && (s->compiled.n || s->n_generals || s->specialise != SPECIALISE_FULL) ? RT_TUNE_KNOWN
                                                                                                        : wanted;
}

static status find_in_cache(compilation *c) {
  session *s = c->s;
  double start = clock_seconds();
  arena *a = c->arena = arena_create(&s->compiling);
  rt_tune tuned;
  const rt_program *p = compile_cache_find(s, c->inputs, c->tune, a, &tuned);
  if (!p) {
    return NULL;
  }
  c->arena = NULL;
  status failed = session_make_program(s, p, a, &c->out);
  /* If the stored program cannot be used, it is removed, and the model is compiled again. */
  if (failed && status_get_code(failed) != STATUS_RESOURCE) {
    compile_cache_forget(s);
    status_free(failed);
    return NULL;
  }
  if (!failed) {
    c->out->from_cache = true;
    c->out->untuned = tuned < s->options.compile.tune;
    c->out->load_seconds = clock_seconds() - start;
  }
  return failed;
}

/* If `data` is the first binding of a program for all sizes, notes its sizes in session_program.first, for saving the
 * program (save.c).  Nothing is noted for programs of a .oxla file, which have no arena of their own: they call no
 * functions of this library, so they are saved as they are. */
static status note_sizes(void *data) {
  const session_program *bound = data;
  session_program *general = bound ? bound->general : NULL;
  if (general && general->arena && bound->binding && !general->first) {
    const rt_program *p = bound->program;
    rt_program *copy = arena_memdup(general->arena, p, sizeof *p);
    copy->params = arena_memdup(general->arena, p->params, p->n_params * sizeof *p->params);
    general->first = copy;
  }
  return NULL;
}

static status bind(compilation *c) {
  TRY(session_bind(c->s, c->inputs, &c->out, NULL));
  return note_sizes(c->out);
}

/* Loads the cache's programs for all sizes, one after the other, and adds each to the session, until one can be bound
 * to the inputs, the cache has no further one, or one of them cannot be used. */
static status find_generals(compilation *c) {
  session *s = c->s;
  session_program *general;
  while (!c->out && session_wants_general(s, c->inputs)) {
    arena *a = c->arena = c->arena ? c->arena : arena_create(&s->compiling);
    const rt_program *p = compile_cache_find_general(s, s->n_generals, a);
    if (!p) {
      return NULL;
    }
    c->arena = NULL;
    status failed = session_make_program(s, p, a, &general);
    if (failed && status_get_code(failed) != STATUS_RESOURCE) { /* it cannot be used, and is compiled again */
      compile_cache_forget(s);
      status_free(failed);
      return NULL;
    }
    TRY(failed);
    general->from_cache = true;
    session_add_general(s, general);
    session_log(s, SESSION_LOG_INFO, "found in the cache for all sizes");
    TRY(bind(c));
  }
  return NULL;
}

/* Returns true if the program is only for certain contents of an input. */
static bool has_values(const rt_program *p) {
  bool has = false;
  for (uint32_t k = 0; k < p->n_params; k++) {
    has |= p->params[k].value != NULL;
  }
  return has;
}

/* Compiles the model for all sizes, with the sizes of the inputs as hints, and binds the program to these sizes.  Fails
 * if the model cannot be compiled for all sizes.  c->out remains NULL if the program cannot be bound. */
static status compile_general(compilation *c, const compiler_api *compiler) {
  session *s = c->s;
  double start = clock_seconds();
  rt_program *program;
  rt_report report = {0};
  rt_sharing sharing = {.weight_pool = s->weight_pool};
  session_program *general;
  compile_request request = session_request(s, c->inputs);
  request.all_sizes = request.not_static = true;
  request.options.tune = RT_TUNE_KNOWN;
  request.options.sharing = &sharing;
  request.options.functions = functions_of(s);
  arena *a = c->arena = c->arena ? c->arena : arena_create(&s->compiling);
  TRY(compiler->compile(s->source, &request, a, &program, &report));
  c->segmented = !program;
  CHECK_THAT(program, STATUS_UNSUPPORTED, "the model runs segment by segment");
  c->arena = NULL; /* the program takes the arena over */
  TRY(session_make_program(s, program, a, &general));
  general->report = report;
  general->compile_seconds = clock_seconds() - start;
  if (!has_values(program)) {
    compile_cache_put_general(s, s->n_generals, general);
  }
  session_add_general(s, general);
  session_log(
      s, SESSION_LOG_INFO,
      "compiled for all sizes: %.3f seconds, %" PRIu32 " kernels written, %" PRIu32 " found, %" PRIu32 " guards",
      general->compile_seconds, report.kernels_unique - report.kernels_found, report.kernels_found, program->n_guards);
  return bind(c);
}

/* Calls compile_general if a program for all sizes is wanted.  If the model cannot be compiled for all sizes, this is
 * an error only if options.keep_open requires such a program, or if memory or time ran out; otherwise c->refused is
 * set. */
static status try_general(compilation *c, const compiler_api *compiler) {
  session *s = c->s;
  status failed = session_wants_general(s, c->inputs) ? compile_general(c, compiler) : NULL;
  bool must = s->options.keep_open && session_has_open_sizes(s, c->inputs);
  if (!failed || must || status_get_code(failed) == STATUS_RESOURCE) {
    return failed;
  }
  c->refused = failed;
  arena_destroy(c->arena);
  c->arena = NULL;
  return NULL;
}

/* Notes that the inputs got a program, but none for all sizes.  This is not done if they get no program at all: then
 * the model cannot have these sizes, which says nothing about others. */
static void note_refused(const compilation *c) {
  session *s = c->s;
  if (!c->refused) {
    return;
  }
  const char *reason = arena_strdup(s->arena, status_message(c->refused));
  pthread_mutex_lock(&s->lock); /* threads that do not have the turn read it, too */
  s->exact_reason = reason;
  pthread_mutex_unlock(&s->lock);
  s->n_refused++;
  s->most_small = c->segmented ? session_small_sizes(s, c->inputs) : s->most_small;
  session_log(s, SESSION_LOG_INFO, "no program is for all sizes: %s", reason);
}

/* Returns true if the model is to run segment by segment although a program of its own may be possible for these
 * inputs, whose contents then decide the sizes: segments serve all contents, that program no others. */
static bool prefers_segments(const compilation *c) {
  return c->segmented || (c->s->segments && session_allows_general(c->s));
}

static status compile_guarded(void *data) {
  compilation *c = data;
  session *s = c->s;
  const compiler_api *compiler;
  rt_program *program = NULL;
  rt_report report = {0};
  if (s->cache) {
    TRY(find_in_cache(c));
    TRY(c->out ? NULL : find_generals(c));
    if (c->out) {
      return NULL;
    }
  }
  TRY(session_open_compiler(&compiler));
  TRY(session_need_model(s));
  TRY(file_check(s->arena));
  compile_cache_map_kernels(s, s->weight_pool);
  TRY(try_general(c, compiler));
  if (c->out) {
    return NULL;
  }
  CHECK_THAT(!s->options.keep_open || !session_has_open_sizes(s, c->inputs), STATUS_UNSUPPORTED,
             "the options ask for a program for each set of sizes");
  double start = clock_seconds();
  compile_request request = session_request(s, c->inputs);
  request.options.tune = c->tune;
  request.options.provisional = specialise_would(s); /* then c->tune is RT_TUNE_KNOWN */
  request.options.functions = request.options.provisional ? functions_of(s) : NULL;
  rt_sharing sharing = {.weight_pool = s->weight_pool};
  request.options.sharing = &sharing;
  arena *a = c->arena = c->arena ? c->arena : arena_create(&s->compiling);
  TRY(prefers_segments(c) ? NULL : compiler->compile(s->source, &request, a, &program, &report));
  TRY(file_check(s->arena));
  double seconds = clock_seconds() - start;
  c->arena = NULL; /* the program takes the arena over */
  TRY(program ? session_make_program(s, program, a, &c->out) : make_segments(c, compiler, a, &c->out));
  note_refused(c);
  c->out->report = report;
  c->out->compile_seconds = seconds;
  c->out->untuned = report.n_untimed > 0;
  c->out->provisional = request.options.provisional;
  s->meets_contents |= session_program_needs_contents(c->out);
  if (program &&
      !specialise_wants(
          s, c->out)) { /* if it returns true, specialise.c stores the tuned program, or this one if tuning fails */
    bool as_tuned = c->tune == RT_TUNE_KNOWN && !c->out->untuned;
    compile_cache_put(s, c->inputs, as_tuned ? s->options.compile.tune : c->tune, c->out);
  }
  return NULL;
}

/* Returns true if the shape is the declared one, in which -1 stands for any size. */
static bool is_declared(const shape *given, const shape *declared) {
  bool same = given->type == declared->type && given->rank == declared->rank;
  for (int d = 0; same && d < given->rank; d++) {
    same = declared->dims[d] < 0 || given->dims[d] == declared->dims[d];
  }
  return same;
}

static status no_such_program(const session *s, const session_inputs *inputs) {
  for (uint32_t k = 0; k < s->source->n_inputs; k++) {
    shape wanted = session_input_shape(s, inputs, k);
    if (!is_declared(&wanted, &s->source->inputs[k].shape)) {
      return status_error(
          STATUS_INVALID_ARGUMENT, "input '%s' is %s, for which this file holds no program (its first takes %s)",
          s->source->inputs[k].name, SHAPE_STR(NULL, &wanted), SHAPE_STR(NULL, &s->source->inputs[k].shape));
    }
  }
  return status_error(STATUS_INVALID_ARGUMENT, "this file holds no program for these inputs' shapes and contents");
}

/* Checks an input against the model's declaration.  For a .oxla file only types and ranks are checked, since the file
 * has no declaration: s->source has the dims of one of its programs. */
static status check_input(const session *s, uint32_t k, const shape *given) {
  const model_value *v = &s->source->inputs[k];
  bool any_rank = v->shape.kind != SHAPE_ARRAY;
  bool fits = given->type == v->shape.type && model_value_takes(v, given) && (any_rank || given->rank == v->shape.rank);
  unsigned about = given->type == v->shape.type ? STATUS_ABOUT_SHAPE : STATUS_ABOUT_TYPE;
  for (int d = 0; fits && !any_rank && !s->image && d < given->rank; d++) {
    fits = v->shape.dims[d] < 0 || v->shape.dims[d] == given->dims[d];
  }
  CHECK_THAT(fits, STATUS_INVALID_ARGUMENT | about, "input '%s' is %s, but the model needs %s", v->name,
             SHAPE_STR(NULL, given), SHAPE_STR(NULL, &v->shape));
  for (int d = 0; d < given->rank; d++) {
    const dim_range *r = session_range_of(s, v, d);
    CHECK_THAT(!r || (given->dims[d] >= r->least && given->dims[d] <= r->most),
               STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE,
               "input '%s' is %s; its dimension %d, '%s', is outside of the range %" PRId64 " to %" PRId64, v->name,
               SHAPE_STR(NULL, given), d, r->name, r->least, r->most);
  }
  return NULL;
}

static status check_inputs(const session *s, const session_inputs *inputs) {
  for (uint32_t k = 0; inputs->shapes && k < s->source->n_inputs; k++) {
    if (inputs->shapes[k]) {
      const model_value *v = &s->source->inputs[k];
      literal l = literal_make(*inputs->shapes[k], inputs->values ? inputs->values[k] : NULL);
      TRY(check_input(s, k, &l.shape));
      bool list = literal_is_list(&l) && l.data;
      shape_kind element = v->shape.kind == SHAPE_SEQUENCE ? v->element : SHAPE_ARRAY;
      TRY(list ? status_prefix(literal_check_elements(&l, element, v->key), "input '%s'", v->name) : NULL);
    }
  }
  return NULL;
}

/* Compiles a program or finds it in the cache.  It is not added to the session's list of programs; session_keep_program
 * does that.  The caller has the turn (session_take_turn). */
static status compile(session *s, const session_inputs *inputs, rt_tune tune, session_program **out) {
  compilation c = {.s = s, .inputs = inputs, .tune = tune};
  s->compiling.deadline = inputs->deadline ? inputs->deadline : deadline_after(s->options.max_seconds);
  s->compiling.stopped = inputs->stopped;
  session_begin_work(s);
  status failed = run_with_stack(SESSION_COMPILE_STACK, compile_guarded, &c);
  session_end_work(s);
  s->compiling.stopped = NULL;
  s->compiling.deadline = 0;
  arena_destroy(c.arena);
  status_free(c.refused);
  if (failed && c.out) { /* memory ran out after the program was made */
    session_free_program(s, c.out);
    c.out = NULL;
  }
  rt_weight_pool_collect(s->weight_pool); /* frees weights that no program uses, such as those of failed compilations */
  *out = c.out;
  if (!failed && session_logs(s, SESSION_LOG_WARNING)) {
    session_log_compiled(s, inputs, c.out);
  }
  return failed;
}

bool session_program_needs_contents(const session_program *c) {
  bool has = false;
  for (uint32_t k = 0; c->program && k < c->program->n_params; k++) {
    has |= c->program->params[k].value || c->program->params[k].told;
  }
  return has;
}

/* --- finding and compiling --- */

/* Waits until the thread that has the turn (session_take_turn) gives it up, but only for a short time, so that the
 * caller can check its own deadline between waits.  The caller holds the lock. */
static status await_end(session *s, const session_inputs *inputs) {
  enum { PATIENCE = 20000000 }; /* nanoseconds between looks at the clock */
  mem_budget waiting = {.deadline = inputs->deadline, .stopped = inputs->stopped};
  TRY(budget_check(&waiting));
  return session_await_turn(s, PATIENCE);
}

/* Sets *out to a program for these inputs and adds a user to it.  If there is none, sets *out to NULL and takes the
 * turn (session_take_turn) for the caller, who then binds or compiles one.  Fails for a .oxla file without programs for
 * all sizes, since then nothing can be bound or compiled.  The caller holds the lock. */
static status find_ready(session *s, const session_inputs *inputs, session_program **out) {
  for (;;) {
    *out = session_find_program(s, inputs);
    if (*out || !s->taken_by || (s->image && !s->generals)) {
      break;
    }
    TRY(await_end(s, inputs));
  }
  if (*out) {
    (*out)->users++;
    return NULL;
  }
  TRY(s->image && !s->generals ? no_such_program(s, inputs) : NULL);
  s->taken_by = getpid();
  return NULL;
}

status session_compile(session *s, const session_inputs *inputs, const session_program **out) {
  session_program *c = NULL;
  *out = NULL;
  TRY(check_inputs(s, inputs));
  pthread_mutex_lock(&s->lock);
  status failed = find_ready(s, inputs, &c);
  rt_tune tune = tune_of_next(s);
  pthread_mutex_unlock(&s->lock);
  if (!failed && !c) {
    status refused = NULL;
    failed = session_bind(s, inputs, &c, &refused);
    failed = failed ? failed : guard_run(note_sizes, c);
    if (!failed && !c) {
      failed = !s->image ? compile(s, inputs, tune, &c) : refused ? refused : no_such_program(s, inputs);
    }
    if (failed != refused) {
      status_free(refused);
    }
    if (!failed) {
      session_keep_program(s, c);
      if (specialise_wants(s, c)) {
        specialise_begin(s, c);
      }
    }
    session_end_turn(s);
  }
  *out = failed ? NULL : c;
  return failed;
}
