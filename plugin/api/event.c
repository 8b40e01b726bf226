/* event.c - implements onnx-xla.h: executions in the background.
 *
 * A run has one thread, which is started by the first oxla_start and ends with the run.  An event is shared by the
 * caller of oxla_start and this thread; the last of them frees it. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "plugin/api/internal.h"
#include "runtime/host/stack.h"

/* --- events --- */

struct oxla_event {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int users;
  bool over;
  status result; /* valid when the execution is over */
  oxla_done_fn *done;
  void *data;
  pid_t process; /* the process that started the execution; a forked child cannot wait for it */
};

static status event_create(oxla_done_fn *done, void *data, oxla_event **out) {
  oxla_event *e = *out = calloc(1, sizeof *e);
  CHECK_THAT(e, STATUS_RESOURCE, "out of memory");
  *e = (oxla_event){.users = 2, .done = done, .data = data, .process = getpid()};
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&e->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  pthread_mutex_init(&e->lock, NULL);
  return NULL;
}

static void event_free(oxla_event *e) {
  status_free(e->result);
  pthread_cond_destroy(&e->changed);
  pthread_mutex_destroy(&e->lock);
  free(e);
}

static void event_drop(oxla_event *e) {
  pthread_mutex_lock(&e->lock);
  bool last = --e->users == 0;
  pthread_mutex_unlock(&e->lock);
  if (last) {
    event_free(e);
  }
}

/* Marks the event as over and calls `done`, while holding the lock: a thread that `done` wakes finds the event over,
 * and waiting threads continue after `done`. */
static void event_finish(oxla_event *e, status result) {
  pthread_mutex_lock(&e->lock);
  e->result = result;
  e->over = true;
  if (e->done) {
    e->done(e->data);
  }
  pthread_cond_broadcast(&e->changed);
  pthread_mutex_unlock(&e->lock);
  event_drop(e);
}

/* Computes the time at which a wait of `seconds` seconds ends.  Returns false if the wait has no end, because `seconds`
 * is negative or too large for a clock. */
static bool find_end(double seconds, struct timespec *end) {
  enum { YEARS = 1000000000 };
  if (!(seconds >= 0 && seconds < YEARS)) {
    return false;
  }
  *end = clock_after(CLOCK_MONOTONIC, (uint64_t)(seconds * CLOCK_SECOND));
  return true;
}

static status event_wait(oxla_event *e, double seconds, int *over) {
  struct timespec end;
  bool ends = find_end(seconds, &end);
  int late = seconds == 0 ? ETIMEDOUT : 0;
  pthread_mutex_lock(&e->lock);
  while (!e->over && late != ETIMEDOUT) {
    late = ends ? pthread_cond_timedwait(&e->changed, &e->lock, &end) : pthread_cond_wait(&e->changed, &e->lock);
  }
  *over = e->over;
  status result = status_copy(e->result);
  pthread_mutex_unlock(&e->lock);
  return result;
}

oxla_error *oxla_event_wait(oxla_event *event, double seconds, int *over) {
  int is_over;
  over = over ? over : &is_over;
  *over = 0;
  if (!event) {
    return api_error(status_error(STATUS_INVALID_ARGUMENT, "no event"));
  }
  if (isnan(seconds)) {
    return api_error(status_error(STATUS_INVALID_ARGUMENT, "the number of seconds to wait is not a number"));
  }
  if (event->process != getpid()) {
    return api_error(status_error(STATUS_RESOURCE, "the execution continued in the parent process only"));
  }
  return api_error(event_wait(event, seconds, over));
}

void oxla_event_destroy(oxla_event *event) {
  if (event && event->process == getpid()) {
    event_drop(event);
  }
}

/* --- the thread of a run --- */

struct api_worker {
  oxla_run *run;
  pthread_t thread;
  pthread_mutex_t lock; /* guards job and stop */
  pthread_cond_t wake;
  oxla_event *job; /* NULL if there is none */
  bool stop;
  _Atomic bool busy; /* true from oxla_start until the execution is over */
  pid_t process;     /* the process that has the thread; a forked child does not have it */
};

static oxla_event *next_job(api_worker *w) {
  pthread_mutex_lock(&w->lock);
  while (!w->job && !w->stop) {
    pthread_cond_wait(&w->wake, &w->lock);
  }
  oxla_event *job = w->job;
  w->job = NULL;
  pthread_mutex_unlock(&w->lock);
  return job;
}

static void *worker_main(void *data) {
  api_worker *w = data;
  oxla_event *job;
  while ((job = next_job(w)) != NULL) {
    status result = api_execute(w->run);
    atomic_store(&w->busy, false);
    event_finish(job, result);
  }
  return NULL;
}

static status worker_create(oxla_run *run, api_worker **out) {
  api_worker *w = calloc(1, sizeof *w);
  pthread_attr_t attributes;
  CHECK_THAT(w, STATUS_RESOURCE, "out of memory");
  w->run = run;
  w->process = getpid();
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->wake, NULL);
  pthread_attr_init(&attributes);
  bool started = pthread_attr_setstacksize(&attributes, 2 * SESSION_COMPILE_STACK) == 0 &&
                 pthread_create(&w->thread, &attributes, worker_main, w) == 0;
  pthread_attr_destroy(&attributes);
  if (!started) {
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return status_error(STATUS_RESOURCE, "no thread for the run");
  }
  *out = w;
  return NULL;
}

static void give(api_worker *w, oxla_event *job) {
  pthread_mutex_lock(&w->lock);
  w->stop = !job;
  w->job = job ? job : w->job;
  pthread_cond_signal(&w->wake);
  pthread_mutex_unlock(&w->lock);
}

static bool is_of_parent(const api_worker *w) { return w->process != getpid(); }

/* In a forked child the worker of the parent is not freed, since its locks may be held by threads that do not exist in
 * the child. */
void api_worker_destroy(api_worker *w) {
  if (w && !is_of_parent(w)) {
    give(w, NULL);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w);
  }
}

status api_check_idle(const oxla_run *run) {
  CHECK_THAT(run, STATUS_INVALID_ARGUMENT, "no run");
  bool busy = run->worker && atomic_load(&run->worker->busy) && !is_of_parent(run->worker);
  CHECK_THAT(!busy, STATUS_INVALID_ARGUMENT, "the run is executing");
  return NULL;
}

static status start(oxla_run *run, oxla_done_fn *done, void *data, oxla_event **out) {
  CHECK_THAT(out, STATUS_INVALID_ARGUMENT, "argument out is NULL");
  *out = NULL;
  TRY(api_begin(run));
  if (!run->worker || is_of_parent(run->worker)) {
    TRY(worker_create(run, &run->worker));
  }
  TRY(event_create(done, data, out));
  atomic_store(&run->worker->busy, true);
  give(run->worker, *out);
  return NULL;
}

oxla_error *oxla_start(oxla_run *run, oxla_done_fn *done, void *data, oxla_event **event) {
  return api_error(start(run, done, data, event));
}
