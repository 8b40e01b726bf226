/* programs.c - the lists of a session's programs, their users, and the turn (session_take_turn). */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "plugin/session/internal.h"
#include "runtime/exec/binding.h"
#include "runtime/program/sizes.h"

/* --- the list of programs --- */

void session_free_program(session *s, session_program *c) {
  if (c->general) {
    rt_binding_destroy((rt_binding *)(uintptr_t)c->binding);
    free(c);
    return;
  }
  rt_executable_destroy(c->executable);
  status_free(c->elsewhere);
  if (c->program) {
    rt_weight_pool_release(s->weight_pool, c->program);
    rt_weight_pool_collect(s->weight_pool);
  }
  arena_destroy(c->arena);
  free(c);
}

/* Removes the program from the session's list of programs.  The caller holds the lock. */
static void unlink_program(session *s, session_program *c) {
  session_program **at = &s->compiled;
  while (*at != c) {
    at = &(*at)->next;
  }
  *at = c->next;
  s->n_compiled--;
}

/* If there are too many programs, removes the one that has not been used for the longest time from the list and
 * returns it, otherwise NULL.  Programs of a .oxla file stay, since they cannot be compiled again.  The caller holds
 * the lock. */
static session_program *take_oldest(session *s) {
  session_program *oldest = NULL;
  for (session_program *c = s->compiled; c && !s->image && s->n_compiled > SESSION_MAX_PROGRAMS; c = c->next) {
    oldest = !c->users && (!oldest || c->last_used < oldest->last_used) ? c : oldest;
  }
  if (oldest) {
    unlink_program(s, oldest);
  }
  return oldest;
}

void session_add_program(session *s, session_program *c) {
  c->next = s->compiled;
  s->compiled = c;
  s->n_compiled++;
}

/* Removes a program from the list of those that were replaced, if one has no users any more, and returns it; otherwise
 * NULL.  The caller holds the lock. */
static session_program *take_replaced(session *s) {
  session_program **at = &s->replaced;
  while (*at && (*at)->users) {
    at = &(*at)->next;
  }
  session_program *c = *at;
  if (c) {
    *at = c->next;
    s->n_replaced--;
  }
  return c;
}

void session_replace_program(session *s, session_program *old, session_program *with) {
  pthread_mutex_lock(&s->lock);
  unlink_program(s, old);
  with->last_used = old->last_used;
  session_add_program(s, with);
  old->next = s->replaced;
  s->replaced = old;
  s->n_replaced++;
  old->replaced = true;
  pthread_mutex_unlock(&s->lock);
}

/* Returns true if running the program reads a mapped file: if its constants are in one, if it is from a .oxla file, or
 * if segments are compiled from the model. */
static bool reads_file(const session *s, const rt_program *p) {
  bool reads = !p || s->image;
  for (uint32_t k = 0; !reads && k < p->n_constants; k++) {
    reads = file_is_mapped(s->arena, p->constants[k].data);
  }
  return reads;
}

status session_make_program(session *s, const rt_program *p, arena *a, session_program **out) {
  session_program *c = calloc(1, sizeof *c);
  double start = clock_seconds();
  status failed = c ? NULL : status_error(STATUS_RESOURCE, "out of memory");
  if (!failed && p) {
    c->elsewhere = s->target->check_cpu ? s->target->check_cpu(p->cpu) : NULL;
    failed = c->elsewhere ? NULL : rt_executable_create(p, s->target, &s->budget, &c->executable);
  }
  if (failed) {
    free(c);
    arena_destroy(a);
    return failed;
  }
  c->load_seconds = clock_seconds() - start;
  c->arena = a;
  c->program = p;
  c->binding = c->executable ? rt_executable_binding(c->executable) : NULL;
  c->reads_file = reads_file(s, p);
  if (p) {
    rt_weight_pool_retain(s->weight_pool, p);
  }
  *out = c;
  return NULL;
}

static void add(session *s, session_program *c) {
  pthread_mutex_lock(&s->lock);
  c->users++;
  c->last_used = ++s->clock;
  session_add_program(s, c);
  pthread_mutex_unlock(&s->lock);
}

/* Frees the programs that were not used for the longest time while there are too many.  The caller has the turn
 * (session_take_turn). */
static void bound_programs(session *s) {
  session_program *oldest;
  do {
    pthread_mutex_lock(&s->lock);
    oldest = take_oldest(s);
    pthread_mutex_unlock(&s->lock);
    if (oldest) {
      session_free_program(s, oldest);
    }
  } while (oldest);
}

void session_keep_program(session *s, session_program *c) {
  add(s, c);
  bound_programs(s);
}

void session_free_programs(session *s) {
  while (s->compiled) {
    session_program *c = s->compiled;
    unlink_program(s, c);
    session_free_program(s, c);
  }
  while (s->replaced) {
    session_program *c = s->replaced;
    s->replaced = c->next;
    session_free_program(s, c);
  }
  while (s->generals) { /* comes last, since programs above are bindings of these */
    session_program *c = s->generals;
    s->generals = c->next;
    session_free_program(s, c);
  }
}

/* --- programs for all sizes ---
 *
 * A model with open sizes is compiled once for all sizes, and that program is bound to the sizes of each run
 * (runtime/exec/binding.h), which takes microseconds.  If a guard does not hold for some sizes, such as a batch of 1,
 * the model is compiled once more; a session keeps few such programs. */

enum { MOST_GENERALS = 3 };

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

bool session_wants_general(const session *s, const session_inputs *inputs) {
  const session_inputs none = {0};
  const rt_compile_options *o = &s->options.compile;
  bool exact = s->exact_reason || (s->specialise == SPECIALISE_FULL && !s->options.keep_open);
  return session_has_open_sizes(s, s->options.keep_open ? inputs : &none) && s->n_generals < MOST_GENERALS && !exact &&
         o->tune != RT_TUNE_FULL && !o->numerics.deterministic && !o->keep_text && !o->algorithm;
}

void session_add_general(session *s, session_program *c) {
  c->next = s->generals;
  s->generals = c;
  s->n_generals++;
}

const session_program *session_generals(session *s) {
  session_take_turn(s);
  const session_program *first = s->generals;
  session_end_turn(s);
  return first;
}

const char *session_exact_reason(session *s) {
  session_take_turn(s);
  const char *reason = s->exact_reason;
  session_end_turn(s);
  return reason;
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
  c->untuned = true;
  c->from_cache = general->from_cache;
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

status session_bind(session *s, const session_inputs *inputs, session_program **out) {
  *out = NULL;
  for (session_program *g = s->generals; g && !*out; g = g->next) {
    shape shapes[g->program->n_params + 1];
    if (shapes_of(s, inputs, g->program, shapes) && session_program_has_contents(g->program, inputs)) {
      TRY(bind_one(s, g, shapes, out));
    }
  }
  return NULL;
}

/* --- turns --- */

void session_take_turn(session *s) {
  pthread_mutex_lock(&s->lock);
  while (s->is_taken) {
    pthread_cond_wait(&s->turn_ends, &s->lock);
  }
  s->is_taken = true;
  pthread_mutex_unlock(&s->lock);
}

void session_end_turn(session *s) {
  session_program *c;
  pthread_mutex_lock(&s->lock);
  while ((c = take_replaced(s))) {
    pthread_mutex_unlock(&s->lock);
    session_free_program(s, c);
    pthread_mutex_lock(&s->lock);
  }
  s->is_taken = false;
  pthread_cond_broadcast(&s->turn_ends);
  pthread_mutex_unlock(&s->lock);
}

/* Frees programs that were replaced and have no users.  If another thread has the turn (session_take_turn), that thread
 * frees them when its turn ends. */
static void free_replaced(session *s) {
  pthread_mutex_lock(&s->lock);
  bool taken = s->is_taken;
  s->is_taken = true;
  pthread_mutex_unlock(&s->lock);
  if (!taken) {
    session_end_turn(s);
  }
}

void session_begin_work(session *s) {
  atomic_fetch_add(&s->begun, 1); /* comes first, so that whoever reads 0 from `busy` after this work reads a `begun`
                                     that counts it */
  atomic_fetch_add(&s->busy, 1);
}

void session_end_work(session *s) { atomic_fetch_sub(&s->busy, 1); }

void session_release(session *s, const session_program *c) {
  if (c) {
    ((session_program *)(uintptr_t)c)->users--;
    if (s->n_replaced) { /* `c` may have been freed by now */
      free_replaced(s);
    }
  }
}

bool session_program_is_replaced(const session_program *c) { return c->replaced; }
