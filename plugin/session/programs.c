/* programs.c - the programs of a session: how they are found, their users, the memory that they may take, programs for
 * all sizes, and the turn (session_take_turn). */
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "plugin/session/internal.h"
#include "runtime/exec/binding.h"
#include "runtime/program/sizes.h"
#include "runtime/program/told.h"

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

static void list_add(program_list *l, session_program *c) {
  c->next = l->first;
  c->previous = NULL;
  *(l->first ? &l->first->previous : &l->last) = c;
  l->first = c;
  l->n++;
  l->bytes += c->bytes;
}

static void list_remove(program_list *l, session_program *c) {
  *(c->previous ? &c->previous->next : &l->first) = c->next;
  *(c->next ? &c->next->previous : &l->last) = c->previous;
  l->n--;
  l->bytes -= c->bytes;
}

static program_list *list_of(session *s, const session_program *c) { return c->general ? &s->bindings : &s->compiled; }

/* --- finding programs --- */

static uint64_t hash_shape(uint64_t seed, const shape *s) {
  uint64_t hash = hash_mix(seed, (uint64_t)s->rank);
  for (int d = 0; d < s->rank; d++) {
    hash = hash_mix(hash, (uint64_t)s->dims[d]);
  }
  return hash;
}

static uint64_t hash_program(const session *s, const session_program *c) {
  uint64_t hash = 0;
  for (uint32_t k = 0; k < s->source->n_inputs; k++) {
    bool known = !c->program || k < c->program->n_params;
    hash = known ? hash_shape(hash, c->program ? &c->program->params[k].shape : &c->shapes[k]) : hash;
  }
  return hash;
}

static session_program **chain_of(session *s, uint64_t hash) {
  return s->n_table ? &s->table[hash & (s->n_table - 1)] : &s->unhashed;
}

/* Doubles the number of lists in the hash table.  If there is no memory for that, nothing changes. */
static void grow_table(session *s) {
  enum { FEWEST = 16 };
  uint32_t n = s->n_table ? 2 * s->n_table : FEWEST;
  session_program *all = s->unhashed, **table = s->table, **grown = calloc(n, sizeof(session_program *));
  session_program **old = table ? table : &all;
  uint32_t n_old = table ? s->n_table : 1;
  if (!grown) {
    return;
  }
  s->table = grown;
  s->n_table = n;
  s->unhashed = NULL;
  for (uint32_t k = 0; k < n_old; k++) {
    for (session_program *c = old[k], *next; c; c = next) {
      next = c->chain;
      c->chain = *chain_of(s, c->hash);
      *chain_of(s, c->hash) = c;
    }
  }
  free(table);
}

static void remove_program(session *s, session_program *c) {
  session_program **at = chain_of(s, c->hash);
  while (*at != c) {
    at = &(*at)->chain;
  }
  *at = c->chain;
  list_remove(list_of(s, c), c);
}

void session_add_program(session *s, session_program *c) {
  if (s->compiled.n + s->bindings.n >= s->n_table) {
    grow_table(s);
  }
  c->hash = hash_program(s, c);
  c->chain = *chain_of(s, c->hash);
  *chain_of(s, c->hash) = c;
  c->last_used = ++s->clock;
  list_add(list_of(s, c), c);
}

static bool serves(const session *s, const session_program *c, const session_inputs *inputs) {
  if (c->program) {
    return session_program_serves(s, c->program, inputs);
  }
  for (uint32_t k = 0; k < s->source->n_inputs; k++) {
    shape wanted = session_input_shape(s, inputs, k);
    if (!shape_equal(&wanted, &c->shapes[k])) {
      return false;
    }
  }
  return true;
}

session_program *session_find_program(session *s, const session_inputs *inputs) {
  uint64_t hash = 0;
  for (uint32_t k = 0; k < s->source->n_inputs; k++) {
    shape wanted = session_input_shape(s, inputs, k);
    hash = hash_shape(hash, &wanted);
  }
  session_program *c = *chain_of(s, hash);
  while (c && !(c->hash == hash && serves(s, c, inputs))) {
    c = c->chain;
  }
  if (c) {
    c->last_used = ++s->clock;
  }
  if (c && c->general) {
    list_remove(&s->bindings, c);
    list_add(&s->bindings, c);
  }
  return c;
}

/* --- programs that were replaced --- */

/* Removes a program without users from s->replaced, and returns it or NULL.  The caller holds the lock. */
static session_program *take_replaced(session *s) {
  session_program *c = s->replaced.first;
  while (c && c->users) {
    c = c->next;
  }
  if (c) {
    list_remove(&s->replaced, c);
    s->n_replaced--;
  }
  return c;
}

/* Returns true if running the program reads a mapped file: if constants of the program are in one, or if the session
 * was opened from a .oxla file.  Also true if `p` is NULL: segments are compiled from the model's file during a run. */
static bool reads_file(const session *s, const rt_program *p) {
  bool reads = !p || s->image;
  for (uint32_t k = 0; !reads && k < p->n_constants; k++) {
    reads = file_is_mapped(s->arena, p->constants[k].data);
  }
  return reads;
}

static uint64_t bytes_of_spans(const rt_span *spans, uint32_t n) {
  uint64_t bytes = 0;
  for (uint32_t k = 0; k < n; k++) {
    bytes += spans[k].size;
  }
  return bytes;
}

status session_make_program(session *s, const rt_program *p, arena *a, session_program **out) {
  session_program *c = calloc(1, sizeof *c);
  double start = clock_seconds();
  status failed = c ? NULL : status_error(STATUS_RESOURCE, "out of memory");
  if (!failed && p) {
    c->elsewhere = s->target->check_cpu ? s->target->check_cpu(s->target->device, p->cpu) : NULL;
    failed = c->elsewhere ? NULL : rt_executable_create(p, s->target, &s->loading, &c->executable);
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
    uint64_t weights = bytes_of_spans(p->constants, p->n_constants);
    s->weights = weights > s->weights ? weights : s->weights;
    rt_weight_pool_retain(s->weight_pool, p);
  }
  *out = c;
  return NULL;
}

/* --- memory ---
 *
 * A session keeps programs for further runs as long as there is room for them, and frees those that were not used for
 * the longest time.  Bindings are made again in microseconds, so they get only a small part of the memory.  Programs
 * of a .oxla file stay, since they cannot be compiled again, and so do programs for all sizes. */

static uint64_t most_bytes(const session *s) {
  const uint64_t megabyte = 1 << 20, least = 256 * megabyte;
  uint64_t usual = 2 * s->weights > least ? 2 * s->weights : least;
  return s->options.program_memory ? s->options.program_memory * megabyte : usual;
}

static uint64_t most_bytes_of_bindings(const session *s) {
  enum { PART = 128 };
  return most_bytes(s) / PART;
}

/* Measures again how much memory the programs for one set of sizes take, since runs may have added arenas.  The bytes
 * of a weight that n programs share count with an n-th part for each of them.  The caller holds the lock. */
static void measure_compiled(session *s) {
  s->compiled.bytes = 0;
  for (session_program *c = s->compiled.first; c; c = c->next) {
    c->bytes = (c->arena ? arena_used(c->arena) : 0) + (c->executable ? rt_executable_bytes(c->executable) : 0) +
               (c->program ? rt_weight_pool_share(s->weight_pool, c->program) : 0);
    s->compiled.bytes += c->bytes;
  }
}

/* If the programs for one set of sizes take too much memory, and are more than one, removes and returns the one without
 * users that was not used for the longest time; otherwise returns NULL.  The caller holds the lock. */
static session_program *take_compiled(session *s) {
  session_program *oldest = NULL;
  if (s->image) {
    return NULL;
  }
  measure_compiled(s);
  bool fits = s->compiled.n <= 1 || s->compiled.bytes <= most_bytes(s) - most_bytes_of_bindings(s);
  for (session_program *c = s->compiled.first; c && !fits; c = c->next) {
    oldest = !c->users && (!oldest || c->last_used < oldest->last_used) ? c : oldest;
  }
  if (oldest) {
    remove_program(s, oldest);
  }
  return oldest;
}

/* Like take_compiled, for bindings.  Their list begins with the one that was used last. */
static session_program *take_binding(session *s) {
  session_program *c = s->bindings.bytes > most_bytes_of_bindings(s) ? s->bindings.last : NULL;
  while (c && c->users) {
    c = c->previous;
  }
  if (c) {
    remove_program(s, c);
  }
  return c;
}

/* Frees programs while they take too much memory.  The caller has the turn (session_take_turn). */
static void bound_programs(session *s, session_program *(*take)(session *s)) {
  session_program *oldest;
  do {
    pthread_mutex_lock(&s->lock);
    oldest = take(s);
    pthread_mutex_unlock(&s->lock);
    if (oldest) {
      session_free_program(s, oldest);
    }
  } while (oldest);
}

void session_keep_program(session *s, session_program *c) {
  pthread_mutex_lock(&s->lock);
  c->users++;
  session_add_program(s, c);
  pthread_mutex_unlock(&s->lock);
  bound_programs(s, c->general ? take_binding : take_compiled);
}

void session_replace_program(session *s, session_program *old, session_program *with) {
  pthread_mutex_lock(&s->lock);
  remove_program(s, old);
  session_add_program(s, with);
  with->last_used = old->last_used;
  list_add(&s->replaced, old);
  s->n_replaced++;
  old->replaced = true;
  pthread_mutex_unlock(&s->lock);
  bound_programs(s, take_compiled);
}

static void free_list(session *s, program_list *l) {
  while (l->first) {
    session_program *c = l->first;
    list_remove(l, c);
    session_free_program(s, c);
  }
}

void session_free_programs(session *s) {
  free_list(s, &s->compiled);
  free_list(s, &s->bindings);
  free_list(s, &s->replaced);
  while (s->generals) { /* comes last, since programs above are bindings of these */
    session_program *c = s->generals;
    s->generals = c->next;
    session_free_program(s, c);
  }
  free(s->table);
}

/* --- carried outputs (oxla_options.carried) ---
 *
 * A program may write carried outputs in place: those that do not grow to the memory of their input.  A program for all
 * sizes has a further parameter for each that grows: its memory, which has room for more elements than it has. */

/* Returns the pair whose output is carried in parameter k of the program, or NULL. */
static const compiler_carry *pair_of(const session *s, const rt_program *p, uint32_t k) {
  for (uint32_t j = 0; j < s->n_carried; j++) {
    if (p->results[s->carried[j].output].carried == k + 1) {
      return &s->carried[j];
    }
  }
  return NULL;
}

enum { LEAST_ROOM = 64 };

shape session_param_shape(const session *s, const session_inputs *inputs, const rt_program *p, uint32_t k) {
  uint32_t told = p->params[k].told;
  if (k < s->source->n_inputs) {
    return session_input_shape(s, inputs, k);
  }
  if (told) {
    const void *content = inputs->values ? inputs->values[told - 1] : NULL;
    return rt_told_shape(&p->params[k], &(literal){session_input_shape(s, inputs, told - 1), content});
  }
  const compiler_carry *pair = pair_of(s, p, k);
  shape room = pair ? session_input_shape(s, inputs, pair->input) : p->params[k].shape;
  if (pair) {
    room.dims[pair->axis] = inputs->room ? *inputs->room : -1;
  }
  return room;
}

const void *session_param_data(const session *s, const session_inputs *inputs, const rt_program *p, uint32_t k) {
  const compiler_carry *pair = k < s->source->n_inputs ? NULL : pair_of(s, p, k);
  return p->params[k].told ? "" : inputs->values[pair ? pair->input : k];
}

status session_raise_room(const session *s, const session_inputs *inputs, const rt_program *p) {
  if (!inputs->room || p->n_params == s->source->n_inputs) {
    return NULL;
  }
  int64_t *values = malloc((p->n_sizes + (size_t)1) * sizeof *values);
  shape *shapes = malloc((p->n_params + (size_t)1) * sizeof *shapes);
  for (uint32_t k = 0; shapes && k < p->n_params; k++) {
    shapes[k] = session_param_shape(s, inputs, p, k);
  }
  int64_t needed = values && shapes ? rt_sizes_room(p, shapes, values) : -1;
  free(values);
  free(shapes);
  CHECK_THAT(needed >= 0, STATUS_RESOURCE, "out of memory");
  int64_t room = *inputs->room > LEAST_ROOM ? *inputs->room : LEAST_ROOM;
  while (room < needed) {
    room *= 2; /* so that copying into larger memory costs little for each element in the long run */
  }
  *inputs->room = room;
  return NULL;
}

bool session_keeps_output(const session *s, const rt_program *p, uint32_t k) {
  uint32_t carried = p->results[k].carried;
  for (uint32_t j = 0; carried && j < s->n_carried; j++) {
    const compiler_carry *pair = &s->carried[j];
    if (pair->output == k && (carried > s->source->n_inputs || carried == pair->input + 1)) {
      return true;
    }
  }
  return false;
}

uint32_t session_carried_in_place(const session *s, const rt_program *p) {
  uint32_t n = 0;
  for (uint32_t j = 0; p && j < s->n_carried; j++) {
    uint32_t k = s->carried[j].output;
    n += p->results[k].in_place && session_keeps_output(s, p, k);
  }
  return n;
}

/* --- programs for all sizes ---
 *
 * A model with open sizes is compiled once for all sizes, and that program is bound to the sizes of each run
 * (runtime/exec/binding.h), which takes microseconds.  If a guard does not hold for some sizes, such as a batch of 1,
 * the model is compiled once more; a session keeps few such programs, but one for each corner of its ranges.  If the
 * model cannot be compiled for all sizes with the first ones as hints, that may be due to them, such as a loop without
 * iterations, so it is tried a few times. */
enum { MOST_GENERALS = 3, MOST_REFUSED = 3, MOST_CORNERS = 1 << SESSION_MOST_RANGES };

bool session_allows_general(const session *s) {
  const rt_compile_options *o = &s->options.compile;
  return (s->specialise != SPECIALISE_FULL || s->options.keep_open) && o->tune != RT_TUNE_FULL &&
         !o->numerics.deterministic && !o->algorithm;
}

bool session_wants_general(const session *s, const session_inputs *inputs) {
  const session_inputs *told = s->options.keep_open ? inputs : &(session_inputs){0};
  bool open = s->meets_contents || s->options.n_ranges || session_has_open_sizes(s, told);
  return open && s->n_generals < (s->options.n_ranges ? MOST_CORNERS : MOST_GENERALS) && s->n_refused < MOST_REFUSED &&
         session_small_sizes(s, inputs) < s->most_small && session_allows_general(s);
}

void session_add_general(session *s, session_program *c) {
  pthread_mutex_lock(&s->lock); /* threads that do not have the turn read the list, too */
  c->next = s->generals;
  s->generals = c;
  s->n_generals++;
  s->exact_reason = NULL;
  pthread_mutex_unlock(&s->lock);
}

const session_program *session_generals(session *s) {
  pthread_mutex_lock(&s->lock);
  const session_program *first = s->generals;
  pthread_mutex_unlock(&s->lock);
  return first;
}

const char *session_exact_reason(session *s) {
  pthread_mutex_lock(&s->lock);
  const char *reason = s->exact_reason;
  pthread_mutex_unlock(&s->lock);
  return reason;
}

/* Sets shapes[] to the shapes of the program's parameters.  Returns false if a dimension is not known. */
static bool shapes_of(const session *s, const session_inputs *inputs, const rt_program *p, shape *shapes) {
  bool known = true;
  for (uint32_t k = 0; k < p->n_params; k++) {
    shapes[k] = session_param_shape(s, inputs, p, k);
    for (int d = 0; d < shapes[k].rank; d++) {
      known = known && shapes[k].dims[d] >= 0;
    }
  }
  return known;
}

/* Checks that the program serves these sizes.  The program need not be loaded, so this also works for a program that
 * only another machine can load. */
static status check_sizes(const rt_program *p, const shape *shapes) {
  int64_t *values = malloc((p->n_sizes + (size_t)1) * sizeof *values);
  status failed = values ? rt_sizes_evaluate(p, shapes, values) : status_error(STATUS_RESOURCE, "out of memory");
  free(values);
  return failed;
}

static status make_bound(session_program *general, rt_binding *b, session_program **out) {
  session_program *c = *out = calloc(1, sizeof *c);
  CHECK_THAT(c, STATUS_RESOURCE, "out of memory");
  c->general = general;
  c->binding = b;
  c->program = b ? b->program : general->program;
  c->elsewhere = general->elsewhere; /* `general` owns it */
  c->reads_file = general->reads_file;
  c->untuned = true;
  c->from_cache = general->from_cache;
  c->bytes = sizeof *c + (b ? sizeof *b + arena_used(b->arena) : 0);
  return NULL;
}

/* Binds a program for all sizes to these shapes.  If it does not serve them, sets only *refused, to the reason. */
static status bind_one(session *s, session_program *general, const shape *shapes, session_program **out,
                       status *refused) {
  rt_binding *b = NULL;
  double start = clock_seconds();
  status failed = general->elsewhere ? check_sizes(general->program, shapes) : rt_bind(general->executable, shapes, &b);
  if (failed && status_get_subject(failed) == STATUS_ABOUT_SHAPE) {
    status_free(*refused);
    *refused = failed;
    return NULL;
  }
  TRY(failed);
  failed = make_bound(general, b, out);
  if (failed) {
    rt_binding_destroy(b);
    return failed;
  }
  session_log(s, SESSION_LOG_DEBUG, "bound to other sizes in %.0f microseconds", 1e6 * (clock_seconds() - start));
  return NULL;
}

status session_bind(session *s, const session_inputs *inputs, session_program **out, status *refused) {
  status why = NULL, failed = NULL;
  *out = NULL;
  for (session_program *g = s->generals; g && !*out && !failed; g = g->next) {
    shape shapes[g->program->n_params + 1];
    TRY(session_raise_room(s, inputs, g->program));
    if (shapes_of(s, inputs, g->program, shapes) && rt_program_has_contents(g->program, inputs->values)) {
      failed = bind_one(s, g, shapes, out, &why);
    }
  }
  if (why && !*out && !failed) {
    session_log(s, SESSION_LOG_DEBUG, "another program is needed: %s", status_message(why));
  }
  if (refused && !*out && !failed) {
    *refused = why;
  } else {
    status_free(why);
  }
  return failed;
}

/* --- turns --- */

status session_await_turn(session *s, int64_t nanoseconds) {
  CHECK_THAT(s->taken_by == getpid(), STATUS_RESOURCE,
             "this process was forked while a thread compiled, so that nobody ends that compilation");
  if (nanoseconds) {
    struct timespec until = clock_after(CLOCK_REALTIME, nanoseconds);
    (void)pthread_cond_timedwait(&s->turn_ends, &s->lock, &until);
  } else {
    pthread_cond_wait(&s->turn_ends, &s->lock);
  }
  return NULL;
}

status session_take_turn(session *s) {
  status failed = NULL;
  pthread_mutex_lock(&s->lock);
  while (s->taken_by && !failed) {
    failed = session_await_turn(s, 0);
  }
  s->taken_by = failed ? s->taken_by : getpid();
  pthread_mutex_unlock(&s->lock);
  return failed;
}

void session_end_turn(session *s) {
  session_program *c;
  pthread_mutex_lock(&s->lock);
  while ((c = take_replaced(s))) {
    pthread_mutex_unlock(&s->lock);
    session_free_program(s, c);
    pthread_mutex_lock(&s->lock);
  }
  s->taken_by = 0;
  pthread_cond_broadcast(&s->turn_ends);
  pthread_mutex_unlock(&s->lock);
}

/* Frees programs that were replaced and have no users.  If another thread has the turn (session_take_turn), that thread
 * frees them when its turn ends. */
static void free_replaced(session *s) {
  pthread_mutex_lock(&s->lock);
  bool taken = s->taken_by;
  s->taken_by = taken ? s->taken_by : getpid();
  pthread_mutex_unlock(&s->lock);
  if (!taken) {
    session_end_turn(s);
  }
}

void session_begin_work(session *s) {
  /* `begun` is incremented before `busy`, so that a thread that reads `busy` as 0 after this work has ended then reads
   * a `begun` that counts this work. */
  atomic_fetch_add(&s->begun, 1);
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
