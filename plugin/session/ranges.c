/* ranges.c - compiles programs ahead of time for the ranges of sizes of the options (session_options.ranges). */
#include "plugin/session/internal.h"

/* A corner has the least or the largest size of each of the first MOST_RANGES ranges, and the largest size of each
 * further range.  Programs are compiled until all corners are served. */
enum { MOST_RANGES = 4 };

/* Sets the sizes of the dimensions that have ranges.  Bit k of `corner` says which size range k gives, if it is one of
 * the first MOST_RANGES: the least if the bit is set, otherwise the largest. */
static void move_to_corner(const session *s, const model_value *v, uint32_t corner, shape *x) {
  for (int d = 0; d < x->rank; d++) {
    const dim_range *r = session_range_of(s, v, d);
    if (r) {
      int64_t k = r - s->options.ranges;
      x->dims[d] = k < MOST_RANGES && (corner >> k & 1) ? r->least : r->most;
    }
  }
}

/* Compiles a program for all sizes that serves a corner of the ranges, if there is none yet.  The contents of an input
 * in `told` are used only if the input has the same shape at this corner as in `told`. */
static status compile_corner(session *s, const session_inputs *told, uint32_t corner, arena *a) {
  session_inputs inputs = *told;
  uint32_t n = s->source->n_inputs;
  shape *shapes = ARENA_NEW_N(a, shape, n);
  const shape **list = ARENA_NEW_N(a, const shape *, n);
  const void **values = ARENA_NEW_N(a, const void *, n);
  const session_program *c;
  for (uint32_t k = 0; k < n; k++) {
    const shape likely = shapes[k] = session_input_shape(s, told, k);
    move_to_corner(s, &s->source->inputs[k], corner, &shapes[k]);
    list[k] = &shapes[k];
    values[k] = told->values && shape_equal(&likely, &shapes[k]) ? told->values[k] : NULL;
  }
  inputs.shapes = list;
  inputs.values = values;
  TRY(session_compile(s, &inputs, &c));
  bool serves = c->general;
  session_release(s, c);
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
  uint32_t n = x->s->options.n_ranges < MOST_RANGES ? x->s->options.n_ranges : MOST_RANGES;
  x->arena = arena_create(&x->s->budget);
  for (uint32_t corner = 0; x->s->options.n_ranges && corner < 1u << n; corner++) {
    TRY(compile_corner(x->s, x->inputs, corner, x->arena));
  }
  return NULL;
}

status session_compile_ranges(session *s, const session_inputs *inputs, const session_program **out) {
  corners x = {.s = s, .inputs = inputs};
  TRY(session_compile(s, inputs, out));
  status failed = guard_run(compile_corners, &x);
  arena_destroy(x.arena);
  if (failed) {
    session_release(s, *out);
    *out = NULL;
  }
  return failed;
}
