/* specialise.c - see specialise.h.
 *
 * Two threads share the work.  The outer one has the usual priority, since it takes the session's turn
 * (session_take_turn, a lock), for which other threads may wait.  The inner one compiles with low priority.  It needs
 * the turn only until the model is imported, since it does not touch the session's weight pool: it has a pool of its
 * own, which contains the weights and kernels of the first program, and whose new arrays the session's pool takes over
 * in the end.
 *
 * Measuring competes with all that runs on the machine, so only one session of a process at a time does it. */
#include "plugin/session/specialise.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "plugin/session/compile_cache.h"
#include "runtime/host/stack.h"

enum { PAUSE = 1000000, LONG_PAUSE = 16000000, SETTLED = 20000000 /* nanoseconds */ };

struct specialisation {
  session *s;
  session_program *first; /* the program that is to be replaced; the specialisation is one of its users */
  session_inputs inputs;  /* those of `first` */
  pid_t process;          /* the process that started the thread */
  pthread_t thread;
  bool has_turn;
  bool is_over;         /* guarded by the session's lock */
  atomic_bool ends;     /* set when the session is closed */
  rt_tune tune;         /* how the program is compiled */
  double waited;        /* the seconds for which measurements have waited so far for runs to end */
  rt_program *program;  /* the tuned one, on the arena `compiled` */
  rt_weight_pool *pool; /* the weights of `program`; freed when `pooled` is destroyed */
  arena *compiled, *pooled;
  arena *kept; /* the arena of the copy of `program` that the session gets */
  rt_report report;
  double seconds, processor_seconds; /* times of the inner thread, which compiles */
  status failed;
};

status specialise_read(const char *word, specialise *out) {
  static const char *const words[] = {[SPECIALISE_AUTO] = "auto", [SPECIALISE_OFF] = "off", [SPECIALISE_FULL] = "full"};
  uint32_t k = 0, n = sizeof words / sizeof *words;
  while (word && k < n && strcmp(words[k], word) != 0) {
    k++;
  }
  CHECK_THAT(k < n, STATUS_INVALID_ARGUMENT, "specialise '%s' is not one of off, auto and full", word);
  *out = (specialise)k;
  return NULL;
}

/* --- the end of the process ---
 *
 * The destructors of LLVM and of the kernel libraries must not run while another thread uses these.  Handlers of atexit
 * run in the reverse order of their registration, and the libraries register destructors of objects that they make when
 * they first need them, so no handler can be sure to be the first.  What glibc runs before all handlers are destructors
 * of thread-local objects of the thread that calls exit, which nearly always is the main thread. */

static atomic_int exiting;    /* set when the process ends */
static atomic_uint n_alive;   /* the number of specialisations whose threads have not ended, in the process `home` */
static atomic_int home, slot; /* slot: the process whose session measures now (take_slot); 0 if none does */

static void sleep_for(int64_t nanoseconds) { (void)nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL); }

static void end_all(void) {
  enum { MOST_PAUSES = 5000 };
  atomic_store(&exiting, 1);
  for (int k = 0; k < MOST_PAUSES && atomic_load(&n_alive) && atomic_load(&home) == getpid(); k++) {
    sleep_for(PAUSE);
  }
}

#ifdef __GLIBC__
extern int __cxa_thread_atexit_impl(void (*fn)(void *), void *data, void *library);
extern void *__dso_handle __attribute__((visibility("hidden")));

static void end_all_first(void *data) {
  (void)data;
  end_all();
}

void specialise_end_at_exit(void) {
  static atomic_int registered; /* the process whose main thread has the destructor */
  if (gettid() == getpid() && atomic_exchange(&registered, getpid()) != getpid()) {
    (void)__cxa_thread_atexit_impl(end_all_first, NULL, &__dso_handle);
  }
}
#else
void specialise_end_at_exit(void) {}
#endif

/* Registers end_all for the case that a thread other than the main one ends the process. */
static void register_end(void) { (void)atexit(end_all); }

static void count_alive(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (atomic_exchange(&home, getpid()) != getpid()) { /* a forked child has none of its parent's threads */
    atomic_store(&n_alive, 0);
  }
  atomic_fetch_add(&n_alive, 1);
  pthread_once(&once, register_end);
}

/* --- waiting --- */

static bool is_cancelled(const specialisation *x) { return budget_expired(&x->s->specialising); }

/* Waits until no run or compilation has been in progress for a short time, but for no more than a second. */
static void let_runs_begin(const specialisation *x) {
  enum { MOST = 1000000000 };
  for (int64_t idle = 0, all = 0; idle < SETTLED && all < MOST && !is_cancelled(x); all += PAUSE) {
    sleep_for(PAUSE);
    idle = atomic_load(&x->s->busy) ? 0 : idle + PAUSE;
  }
}

/* An rt_background.await_idle function.  Cancels the specialisation if its measurements have waited too long for runs
 * to end (session.patience). */
static uint64_t await_idle(void *data) {
  specialisation *x = data;
  session *s = x->s;
  double start = clock_seconds();
  for (int64_t pause = PAUSE / 10; atomic_load(&s->busy) && !is_cancelled(x);) {
    sleep_for(pause);
    pause = pause < LONG_PAUSE ? 2 * pause : pause;
    if (x->waited + clock_seconds() - start > s->patience) {
      atomic_store(&s->specialising.cancel, 1);
    }
  }
  x->waited += clock_seconds() - start;
  return atomic_load(&s->begun);
}

/* Waits until no other session of this process measures, and takes `slot`.  In a forked child, `slot` may have the
 * number of the parent, whose threads the child does not have; then it is taken at once.  Returns false if the
 * specialisation was cancelled. */
static bool take_slot(const specialisation *x) {
  for (;;) {
    int none = 0, other = atomic_load(&slot);
    if (atomic_compare_exchange_strong(&slot, &none, getpid()) ||
        (other != 0 && other != getpid() && atomic_compare_exchange_strong(&slot, &other, getpid()))) {
      return true;
    }
    if (is_cancelled(x)) {
      return false;
    }
    sleep_for(LONG_PAUSE);
  }
}

/* --- compiling --- */

static void end_turn(specialisation *x) {
  if (x->has_turn) {
    x->has_turn = false;
    session_end_turn(x->s);
  }
}

static void lower_priority(void) {
  (void)sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0}); /* for this thread and those that it starts */
}

/* A compile_request.imported function.  Gives up the turn (session_take_turn), except for a model with files of
 * external data: the compilation still searches the list of these files that are mapped, and another import could
 * extend this list meanwhile. */
static void is_imported(void *data) {
  specialisation *x = data;
  if (x->s->source->n_files == 0) {
    end_turn(x);
  }
  if (!atomic_load(&x->ends)) { /* otherwise a thread waits for the end of this specialisation */
    lower_priority();
  }
}

static void destroy_pool(void *pool) { rt_weight_pool_destroy(pool); }

/* Makes x->pool and registers the constants and code of the first program in it as shared arrays, which still belong to
 * that program. */
static status create_pool(specialisation *x) {
  session *s = x->s;
  x->pooled = arena_create(&s->specialising);
  TRY(rt_weight_pool_create(&s->specialising, &s->secret, &x->pool));
  arena_cleanup(x->pooled, destroy_pool, x->pool);
  (void)rt_weight_pool_register(x->pool, x->first->program, NULL);
  return NULL;
}

static status compile_tuned(void *data) {
  specialisation *x = data;
  session *s = x->s;
  const compiler_api *compiler;
  rt_background background = {.await_idle = await_idle, .data = x};
  TRY(session_open_compiler(&compiler));
  TRY(session_need_model(s));
  TRY(file_check(s->arena));
  TRY(create_pool(x));
  rt_sharing sharing = {.weight_pool = x->pool};
  compile_request request = session_request(s, &x->inputs);
  request.options.tune = x->tune;
  request.options.sharing = &sharing;
  request.options.background = &background;
  request.options.dump = NULL;
  request.imported = is_imported;
  request.imported_data = x;
  x->compiled = arena_create(&s->specialising);
  TRY(compiler->compile(s->source, &request, x->compiled, &x->program, &x->report));
  TRY(file_check(s->arena));
  rt_weight_pool_retain(x->pool, x->program);
  rt_weight_pool_collect(x->pool);
  return budget_check(&s->specialising);
}

/* The function of the inner thread, which compiles. */
static void *compile_main(void *data) {
  specialisation *x = data;
  double start = clock_seconds(), processor = clock_thread_seconds();
  x->failed = guard_run(compile_tuned, x);
  x->seconds = clock_seconds() - start;
  x->processor_seconds = clock_thread_seconds() - processor;
  return NULL;
}

static void compile_as(specialisation *x, rt_tune tune) {
  pthread_t thread;
  x->tune = tune;
  x->failed = session_take_turn(x->s);
  if (x->failed) {
    return;
  }
  x->has_turn = true;
  if (start_with_stack(compile_main, x, &thread)) {
    pthread_join(thread, NULL);
  } else {
    x->failed = status_error(STATUS_RESOURCE, "a thread cannot be started");
  }
  end_turn(x);
}

/* Returns true if the program could not be tuned, but should be replaced by an untuned one, since it is
 * provisional.  It could not be tuned if runs left no time for measurements, or if the session is being
 * closed; then the program that replaces it goes to the cache, for the next process. */
static bool needs_untuned(const specialisation *x) {
  bool why = x->waited > x->s->patience || (atomic_load(&x->ends) && x->s->cache);
  return x->failed && x->first->provisional && why && !atomic_load(&exiting);
}

static void compile_untuned(specialisation *x) {
  atomic_store(&x->s->specialising.cancel, 0);
  status_free(x->failed);
  x->failed = NULL;
  arena_destroy(x->compiled);
  arena_destroy(x->pooled);
  x->compiled = x->pooled = NULL;
  compile_as(x, RT_TUNE_KNOWN);
}

/* --- replacing the first program --- */

/* An rt_sharing.is_persistent function: returns true for data of the model itself, that is, data that was neither
 * allocated while the tuned program was compiled nor is in its weight pool. */
static bool is_of_model(const void *owner, const void *data, rt_writer *place) {
  const specialisation *x = owner;
  (void)place;
  return !arena_holds(x->compiled, data) && rt_weight_pool_name(x->pool, data).size == 0;
}

/* Moves the tuned program to the session: its weights to the session's pool, and the rest to an arena of its own. */
static status change_over(void *data) {
  specialisation *x = data;
  session *s = x->s;
  session_program *c;
  x->kept = arena_create(&s->compiling);
  if (rt_weight_pool_register(s->weight_pool, x->program, x->pooled)) {
    x->pooled = NULL; /* the pool owns it now */
  }
  rt_sharing sharing = {.weight_pool = s->weight_pool, .is_persistent = is_of_model, .owner = x};
  const rt_program *p = rt_program_keep(x->kept, x->program, &sharing);
  arena *a = x->kept;
  x->kept = NULL; /* session_make_program takes it over */
  TRY(session_make_program(s, p, a, &c));
  c->compile_seconds = x->seconds;
  c->report.new_code = x->report.new_code;
  session_replace_program(s, x->first, c);
  compile_cache_put(s, &x->inputs, x->tune, c);
  return NULL;
}

static void finish(specialisation *x) {
  session *s = x->s;
  status_free(session_take_turn(s)); /* does not fail, since this thread began in this process */
  x->failed = x->failed ? x->failed : guard_run(change_over, x);
  if (x->failed && !x->first->general) {
    compile_cache_put(s, &x->inputs, RT_TUNE_KNOWN, x->first);
  }
  arena_destroy(x->compiled);
  arena_destroy(x->pooled);
  arena_destroy(x->kept);
  rt_weight_pool_collect(s->weight_pool);
  session_end_turn(s);
  session_release(s, x->first);
  if (!x->failed) {
    session_log(s, SESSION_LOG_INFO,
                "changed over to the tuned program: %" PRIu32 " of %" PRIu32
                " contractions measured, %.3f seconds, at most %.3f seconds of processor time",
                x->report.n_timed, x->report.n_tuned, x->seconds, x->processor_seconds * s->options.compile.threads);
  } else {
    session_log(
        s, SESSION_LOG_INFO, "the first program stays: %s",
        x->waited > s->patience ? "the session was never idle long enough to measure" : status_message(x->failed));
  }
  status_free(x->failed);
  x->failed = NULL;
}

static void *specialise_main(void *data) {
  specialisation *x = data;
  session *s = x->s;
  let_runs_begin(x);
  if (take_slot(x)) {
    compile_as(x, s->options.compile.tune);
    atomic_store(&slot, 0);
  } else {
    x->failed = budget_check(&s->specialising);
  }
  if (needs_untuned(x)) {
    compile_untuned(x);
  }
  finish(x);
  pthread_mutex_lock(&s->lock);
  x->is_over = true;
  pthread_cond_broadcast(&s->turn_ends);
  pthread_mutex_unlock(&s->lock);
  atomic_fetch_sub(&n_alive, 1);
  return NULL;
}

/* --- the interface --- */

/* Returns true if an output grows from run to run.  Such a model is not tuned: its sizes seldom come again, and a
 * program for one set of sizes would copy the whole output. */
static bool grows(const session *s) {
  bool any = false;
  for (uint32_t k = 0; k < s->n_carried; k++) {
    any |= s->carried[k].axis >= 0;
  }
  return any;
}

static bool tunes(const session *s) {
  return !grows(s) && s->specialise == SPECIALISE_AUTO && !s->image && s->options.compile.tune == RT_TUNE_FAST &&
         !s->options.compile.keep_text;
}

static bool may_tune(const session *s, const session_program *c) {
  return tunes(s) && c->untuned && c->program && !c->elsewhere;
}

/* Returns true if no tuning of the session has begun yet.  But for a binding of a program for all sizes from the cache,
 * the function always returns false: if the sizes of this binding had come often in an earlier process, the cache would
 * have a tuned program for them, too. */
static bool is_first(const session *s, const session_program *c) {
  return !s->specialisation && !(c->general && c->from_cache);
}

bool specialise_would(const session *s) { return tunes(s) && !s->specialisation; }

bool specialise_wants(const session *s, const session_program *c) {
  return may_tune(s, c) && is_first(s, c) && !c->general;
}

/* Bounds what the specialisation may use: the time of one compilation, and half of the memory that is left, so that
 * runs find the rest. */
static void bound(session *s) {
  uint64_t used = s->budget.used;
  s->specialising.deadline = deadline_after(s->options.max_seconds);
  s->specialising.stopped = &exiting;
  atomic_store(&s->specialising.cancel, 0);
  s->specialising.limit = s->budget.limit > used ? (s->budget.limit - used) / 2 : s->budget.limit;
}

typedef struct beginning {
  session *s;
  session_program *first;
} beginning;

static status begin(void *data) {
  const beginning *b = data;
  session *s = b->s;
  specialisation *x = ARENA_NEW(s->arena, specialisation);
  *x = (specialisation){.s = s, .first = b->first, .process = getpid()};
  x->inputs = session_inputs_of(s->arena, x->first->program);
  bound(s);
  count_alive();
  x->first->users++;
  bool started = start_with_stack(specialise_main, x, &x->thread);
  if (!started) {
    atomic_fetch_sub(&n_alive, 1);
    x->first->users--;
    return status_error(STATUS_RESOURCE, "a thread cannot be started");
  }
  pthread_mutex_lock(&s->lock);
  s->specialisation = x;
  s->n_specialised++;
  pthread_mutex_unlock(&s->lock);
  return NULL;
}

void specialise_begin(session *s, session_program *c) {
  status failed = guard_run(begin, &(beginning){s, c});
  if (failed) {
    session_log(s, SESSION_LOG_INFO, "the first program stays: %s", status_message(failed));
    status_free(failed);
  }
}

/* Returns true if this process has the threads of the specialisation: a forked child does not have them. */
static bool has_threads(const specialisation *x) { return x && x->process == getpid(); }

/* Takes the session's turn if nobody has it and no program is being tuned. */
static bool take_free_turn(session *s) {
  pthread_mutex_lock(&s->lock);
  bool is_free = !s->taken_by && (!s->specialisation || s->specialisation->is_over);
  s->taken_by = is_free ? getpid() : s->taken_by;
  pthread_mutex_unlock(&s->lock);
  return is_free;
}

/* Inputs whose size changes in each run, such as those of a decoder, need no program for one size, and compiling it
 * would slow down their runs.  So the first sizes must have come a few times. */
void specialise_after_run(session *s, session_program *c) {
  enum { FEW = 3, OFTEN = 16, MOST_PROGRAMS = 32 };
  uint32_t runs = atomic_fetch_add(&c->runs, 1) + 1;
  bool comes_often = runs % OFTEN == 0, may_be_first = runs == FEW;
  if ((!comes_often && !may_be_first) || !may_tune(s, c) || !take_free_turn(s)) {
    return;
  }
  bool wanted = comes_often || is_first(s, c); /* asked only while this thread has the turn, since another
                                                  thread could begin a tuning otherwise */
  if (wanted && !c->replaced && s->n_specialised < MOST_PROGRAMS) {
    if (has_threads(s->specialisation)) {
      pthread_join(s->specialisation->thread, NULL);
    }
    pthread_mutex_lock(&s->lock);
    s->specialisation = NULL;
    pthread_mutex_unlock(&s->lock);
    specialise_begin(s, c);
  }
  session_end_turn(s);
}

void specialise_end(session *s) {
  if (has_threads(s->specialisation)) {
    atomic_store(&s->specialisation->ends, 1);
    atomic_store(&s->specialising.cancel, 1);
    pthread_join(s->specialisation->thread, NULL);
  }
}

/* Begins to tune the binding that was used last, unless a tuning was begun already, or the turn cannot be
 * taken (session_take_turn). */
static void begin_first(session *s) {
  pthread_mutex_lock(&s->lock);
  bool begun = s->specialisation;
  pthread_mutex_unlock(&s->lock);
  if (begun) {
    return;
  }
  status failed = session_take_turn(s); /* only the thread that has the turn may free bindings, so `last`
                                           stays valid */
  if (failed) {
    status_free(failed);
    return;
  }
  pthread_mutex_lock(&s->lock);
  session_program *last = s->bindings.first;
  pthread_mutex_unlock(&s->lock);
  if (last && may_tune(s, last) && is_first(s, last)) {
    specialise_begin(s, last);
  }
  session_end_turn(s);
}

void session_await_tuned(session *s) {
  begin_first(s);
  pthread_mutex_lock(&s->lock);
  while (has_threads(s->specialisation) && !s->specialisation->is_over) {
    pthread_cond_wait(&s->turn_ends, &s->lock);
  }
  pthread_mutex_unlock(&s->lock);
}
