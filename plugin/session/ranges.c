/* ranges.c - compiles programs ahead of time for the ranges of sizes of the options (session_options.ranges). */
#include <inttypes.h>
#include <string.h>

#include "plugin/session/internal.h"
#include "runtime/host/stack.h"
#include "runtime/program/size_text.h"

/* Returns the size that range k gives.  Bit k of `corner` says which one it is, if it is one of the first
 * SESSION_MOST_RANGES: the least if the bit is set, otherwise the largest. */
static int64_t size_at(const session *s, int64_t k, uint32_t corner) {
  const dim_range *r = &s->options.ranges[k];
  return k < SESSION_MOST_RANGES && (corner >> k & 1) ? r->least : r->most;
}

/* Sets the sizes of the dimensions that have ranges. */
static void move_to_corner(const session *s, const model_value *v, uint32_t corner, shape *x) {
  for (int d = 0; d < x->rank; d++) {
    const dim_range *r = session_range_of(s, v, d);
    if (r) {
      x->dims[d] = size_at(s, r - s->options.ranges, corner);
    }
  }
}

/* Adds to the error of a model that is invalid at a corner which sizes these are. */
static status name_corner(const session *s, uint32_t corner, status failed, arena *a) {
  const char *text = "";
  for (uint32_t k = 0; k < s->options.n_ranges; k++) {
    text = arena_printf(a, "%s%s%s = %" PRId64, text, k ? ", " : "", s->options.ranges[k].name, size_at(s, k, corner));
  }
  return status_suffix(failed, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE, "the ranges have the sizes %s", text);
}

/* Returns the definition by which the program is only for one size of a dimension; NULL if there is none. */
static const rt_definition *pin_of(const rt_program *p, const char *name) {
  const rt_definition *found = NULL;
  for (uint32_t k = 0; k < p->n_definitions && !found; k++) {
    const rt_definition *d = &p->definitions[k];
    found = size_is_pin(d) && strcmp(d->symbol, name) == 0 ? d : NULL;
  }
  return found;
}

status session_check_pins(const session *s, const char *what, uint32_t n, const rt_program *const *programs) {
  for (uint32_t k = 0; k < s->options.n_ranges; k++) {
    const dim_range *r = &s->options.ranges[k];
    const rt_definition *pin = NULL;
    bool all = n && r->least < r->most;
    for (uint32_t i = 0; i < n && all; i++) {
      const rt_definition *d = pin_of(programs[i], r->name);
      all = d != NULL;
      pin = pin ? pin : d;
    }
    CHECK_THAT(!all, STATUS_UNSUPPORTED, "no %s serves the whole range of %s: %s = %s (%s)", what, r->name, pin->symbol,
               pin->equals, pin->source);
  }
  return NULL;
}

/* Fails if all programs for all sizes that the session has are only for one size of a dimension that has a range. */
static status check_generals(session *s, arena *a) {
  const rt_program **programs = ARENA_NEW_N(a, const rt_program *, s->n_generals);
  uint32_t n = s->n_generals;
  const session_program *g = session_generals(s);
  for (uint32_t k = n; k-- > 0; g = g->next) { /* the list begins with the newest program */
    programs[k] = g->program;
  }
  return session_check_pins(s, "program", n, programs);
}

/* --- assumed sizes --- */

bool session_has_open_sizes(const session *s, const session_inputs *told) {
  bool open = false;
  for (uint32_t k = 0; k < s->source->n_inputs; k++) {
    bool known = told->shapes && told->shapes[k];
    open = open || (s->source->inputs[k].shape.kind == SHAPE_UNRANKED && !known);
    for (int d = 0; d < s->source->inputs[k].shape.rank; d++) {
      open = open || session_guesses(s, told, k, d);
    }
  }
  return open;
}

uint32_t session_small_sizes(const session *s, const session_inputs *inputs) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < s->source->n_inputs; k++) {
    shape x = session_input_shape(s, inputs, k);
    for (int d = 0; d < x.rank; d++) {
      n += x.dims[d] == 0 || x.dims[d] == 1;
    }
  }
  return n;
}

typedef struct assuming {
  session *s;
  const session_inputs *inputs;
  uint32_t n_dims;
  const compiler_dim *dims; /* the sizes of named dimensions; NULL: those of the options, and their ranges */
  arena *keep;              /* where `shapes` are */
  bool beyond;              /* whether sizes beyond an upper bound are wanted, and then whether they are found */
  shape *shapes;
  arena *arena;
} assuming;

static status assume_guarded(void *data) {
  assuming *x = data;
  session *s = x->s;
  const compiler_api *compiler;
  compile_request request = session_request(s, x->inputs);
  request.assumed = NULL;
  if (x->dims) {
    request.dims = x->dims;
    request.n_dims = x->n_dims;
    request.n_ranges = 0;
  }
  TRY(session_open_compiler(&compiler));
  TRY(session_need_model(s));
  x->arena = arena_create(&s->compiling);
  shape *shapes = ARENA_NEW_N(x->keep, shape, s->source->n_inputs);
  TRY(compiler->assume_sizes(s->source, &request, x->arena, shapes, x->beyond ? &x->beyond : NULL));
  x->shapes = shapes;
  return NULL;
}

/* Sets x->shapes to sizes at which the model can be imported; leaves it NULL if none are found. */
static status find_sizes(assuming *x) {
  session *s = x->s;
  TRY(session_take_turn(s));
  s->compiling.deadline = deadline_after(s->options.max_seconds);
  status failed = run_with_stack(SESSION_COMPILE_STACK, assume_guarded, x);
  s->compiling.deadline = 0;
  session_end_turn(s);
  arena_destroy(x->arena);
  if (!failed || status_get_code(failed) == STATUS_RESOURCE) {
    return failed;
  }
  status_free(failed);
  return NULL;
}

status session_assume_sizes(session *s, const session_inputs *inputs) {
  assuming x = {.s = s, .inputs = inputs, .keep = s->arena};
  if (!s->options.open_dim || s->image || s->assumed || !session_has_open_sizes(s, inputs)) {
    return NULL;
  }
  TRY(find_sizes(&x));
  s->assumed = x.shapes;
  return NULL;
}

/* Sets *out to the shapes of the inputs at a corner, or to NULL.  A size without a range may depend on those that have
 * one, as the length of a mask is past+seq, so the sizes that were assumed at another corner may be none of this one.
 */
static status assume_at(session *s, const session_inputs *told, uint32_t corner, arena *a, const shape **out) {
  const session_options *o = &s->options;
  compiler_dim *dims = ARENA_NEW_N(a, compiler_dim, o->n_dims + o->n_ranges);
  assuming x = {.s = s, .inputs = told, .dims = dims, .keep = a};
  while (x.n_dims < o->n_dims) {
    dims[x.n_dims] = (compiler_dim){o->dims[x.n_dims].name, o->dims[x.n_dims].value};
    x.n_dims++;
  }
  for (uint32_t k = 0; k < o->n_ranges; k++) {
    dims[x.n_dims++] = (compiler_dim){o->ranges[k].name, size_at(s, k, corner)};
  }
  TRY(s->assumed ? find_sizes(&x) : NULL);
  *out = x.shapes;
  return NULL;
}

/* --- corners --- */

/* Compiles a program for all sizes that serves a corner of the ranges, if there is none yet.  The contents of an input
 * in `told` are used only if the input has the same shape at this corner as in `told`. */
static status compile_corner(session *s, const session_inputs *told, uint32_t corner, arena *a) {
  session_inputs inputs = *told;
  uint32_t n = s->source->n_inputs;
  shape *shapes = ARENA_NEW_N(a, shape, n);
  const shape **list = ARENA_NEW_N(a, const shape *, n);
  const void **values = ARENA_NEW_N(a, const void *, n);
  const session_program *c;
  const shape *assumed;
  TRY(assume_at(s, told, corner, a, &assumed));
  for (uint32_t k = 0; k < n; k++) {
    const shape likely = shapes[k] = session_input_shape(s, told, k);
    bool given = told->shapes && told->shapes[k];
    shapes[k] = assumed && !given ? assumed[k] : likely;
    move_to_corner(s, &s->source->inputs[k], corner, &shapes[k]);
    list[k] = &shapes[k];
    values[k] = told->values && shape_equal(&likely, &shapes[k]) ? told->values[k] : NULL;
  }
  inputs.shapes = list;
  inputs.values = values;
  status failed = session_compile(s, &inputs, &c);
  if (failed && status_get_code(failed) == STATUS_INVALID_MODEL) { /* perhaps since the model pins a size */
    return status_first(check_generals(s, a), name_corner(s, corner, failed, a));
  }
  TRY(failed);
  bool serves = c->general;
  session_release(s, c);
  TRY(serves ? NULL : check_generals(s, a));
  const char *reason = session_exact_reason(s);
  CHECK_THAT(serves, STATUS_UNSUPPORTED, "no program serves the whole ranges: %s",
             reason ? reason : "their sizes need too many programs");
  return NULL;
}

typedef struct corners {
  session *s;
  const session_inputs *inputs;
  arena *arena;
} corners;

static status compile_corners(void *data) {
  corners *x = data;
  uint32_t n = x->s->options.n_ranges < SESSION_MOST_RANGES ? x->s->options.n_ranges : SESSION_MOST_RANGES;
  x->arena = arena_create(&x->s->budget);
  for (uint32_t corner = 0; x->s->options.n_ranges && corner < 1u << n; corner++) {
    TRY(compile_corner(x->s, x->inputs, corner, x->arena));
  }
  return check_generals(x->s, x->arena);
}

/* --- sizes beyond an upper bound --- */

/* The program for the assumed sizes may serve no larger ones, as sounds of at most 256 samples.  Compiles another for
 * larger sizes if the model has some; that there is none is no error. */
static status compile_beyond(session *s, const session_inputs *inputs) {
  const session_program *c;
  const shape *likely = s->assumed;
  assuming x = {.s = s, .inputs = inputs, .keep = s->arena, .beyond = true};
  if (!likely || !s->options.keep_open || s->options.n_ranges) {
    return NULL; /* ranges say which sizes are meant */
  }
  TRY(find_sizes(&x));
  if (!x.shapes || !x.beyond) {
    return NULL;
  }
  s->assumed = x.shapes;
  status failed = session_compile(s, inputs, &c);
  s->assumed = likely;
  if (!failed) {
    session_release(s, c);
  } else if (status_get_code(failed) != STATUS_RESOURCE) {
    session_log(s, SESSION_LOG_INFO, "no program is for larger sizes: %s", status_message(failed));
    status_free(failed);
    failed = NULL;
  }
  return failed;
}

status session_compile_ranges(session *s, const session_inputs *inputs, const session_program **out) {
  corners x = {.s = s, .inputs = inputs};
  TRY(s->options.keep_open ? session_assume_sizes(s, inputs) : NULL);
  TRY(session_compile(s, inputs, out));
  status failed = guard_run(compile_corners, &x);
  failed = failed ? failed : compile_beyond(s, inputs);
  arena_destroy(x.arena);
  if (failed) {
    session_release(s, *out);
    *out = NULL;
  }
  return failed;
}
