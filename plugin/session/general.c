/* general.c - see general.h. */
#include "plugin/session/general.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "runtime/exec/binding.h"
#include "runtime/program/sizes.h"

enum { MOST_PROGRAMS = 3 };

bool general_wants(const session *s) {
  const rt_compile_options *o = &s->options.compile;
  return s->compiled && s->n_generals < MOST_PROGRAMS && !s->needs_exact && s->specialise != SPECIALISE_FULL &&
         !o->numerics.deterministic && !o->keep_text && !o->algorithm;
}

void general_add(session *s, session_program *c) {
  c->next = s->generals;
  s->generals = c;
  s->n_generals++;
}

/* Sets shapes[] to the shapes of the program's parameters.  Returns false if one is not known. */
static bool shapes_of(const session *s, const session_inputs *inputs, const rt_program *p, shape *shapes) {
  bool known = true;
  for (uint32_t k = 0; k < p->n_params; k++) {
    shapes[k] = session_input_shape(s, inputs, k);
    for (int d = 0; d < shapes[k].rank; d++) {
      known = known && shapes[k].dims[d] >= 0;
    }
  }
  return known;
}

static status make_bound(session_program *general, rt_binding *b, session_program **out) {
  session_program *c = *out = calloc(1, sizeof *c);
  CHECK_THAT(c, STATUS_RESOURCE, "out of memory");
  c->general = general;
  c->binding = b;
  c->program = b->program;
  c->reads_file = general->reads_file;
  return NULL;
}

static status bind_one(session *s, session_program *general, const shape *shapes, session_program **out) {
  rt_binding *b;
  double start = s->options.log ? clock_seconds() : 0;
  status failed = rt_bind(general->executable, shapes, &b);
  if (failed && status_get_subject(failed) == STATUS_ABOUT_SHAPE) {
    session_log(s, SESSION_LOG_DEBUG, "another program is needed: %s", status_message(failed));
    status_free(failed);
    return NULL;
  }
  TRY(failed);
  failed = make_bound(general, b, out);
  if (failed) {
    rt_binding_destroy(b);
    return failed;
  }
  if (s->options.log) {
    session_log(s, SESSION_LOG_DEBUG, "bound to other sizes in %.0f microseconds", 1e6 * (clock_seconds() - start));
  }
  return NULL;
}

status general_bind(session *s, const session_inputs *inputs, session_program **out) {
  *out = NULL;
  for (session_program *g = s->generals; g && !*out; g = g->next) {
    shape shapes[g->program->n_params + 1];
    if (shapes_of(s, inputs, g->program, shapes) && session_program_has_contents(g->program, inputs)) {
      TRY(bind_one(s, g, shapes, out));
    }
  }
  return NULL;
}
