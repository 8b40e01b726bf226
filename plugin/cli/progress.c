/* progress.c - the progress line on a terminal. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plugin/cli/cli.h"
#include "base/clock.h"

enum { WIDTH = 30 };
static const double PATIENCE = 0.5, REDRAW = 0.1; /* seconds */

static struct {
  pthread_mutex_t lock; /* guards the members up to `last` */
  pthread_cond_t end;
  bool on, drawn;
  const char *what;
  char note[64];
  uint64_t total;
  double started, last;
  /* The thread that draws the line if the amount of work is unknown.  Only the thread that starts and ends the line
   * uses these members. */
  bool ticking;
  pthread_t thread;
} bar = {.lock = PTHREAD_MUTEX_INITIALIZER, .end = PTHREAD_COND_INITIALIZER};

/* For this function and the next one the caller holds the lock. */
static void draw(uint64_t done, double seconds) {
  char track[WIDTH + 1];
  uint64_t filled = bar.total ? done * WIDTH / bar.total : 0;
  memset(track, ' ', WIDTH);
  memset(track, '=', filled < WIDTH ? filled : WIDTH);
  track[WIDTH] = '\0';
  if (bar.total) {
    fprintf(stderr, "\r%s [%s] %llu/%llu %.0f s %.30s\033[K", bar.what, track, (unsigned long long)done,
            (unsigned long long)bar.total, seconds, bar.note);
  } else {
    fprintf(stderr, "\r%s %.0f s %.30s\033[K", bar.what, seconds, bar.note);
  }
  fflush(stderr);
  bar.drawn = true;
}

static void erase(void) {
  if (bar.drawn) {
    fprintf(stderr, "\r\033[K");
    fflush(stderr);
  }
  bar.drawn = false;
}

/* The function of the thread that draws the line: it shows the latest note until cli_progress_end. */
static void *tick(void *data) {
  (void)data;
  enum { TENTH = CLOCK_SECOND / 10 };
  pthread_mutex_lock(&bar.lock);
  while (bar.on) {
    struct timespec until = clock_after(CLOCK_REALTIME, TENTH);
    (void)pthread_cond_timedwait(&bar.end, &bar.lock, &until);
    double took = clock_seconds() - bar.started;
    if (bar.on && took >= PATIENCE) {
      draw(0, took);
    }
  }
  pthread_mutex_unlock(&bar.lock);
  return NULL;
}

void cli_progress_start(bool quiet, const char *what, uint64_t total) {
  cli_progress_end();
  pthread_mutex_lock(&bar.lock);
  bool on = bar.on = !quiet && isatty(STDERR_FILENO);
  bar.what = what;
  bar.total = total;
  bar.started = bar.last = on ? clock_seconds() : 0;
  bar.note[0] = '\0';
  pthread_mutex_unlock(&bar.lock);
  bar.ticking = on && !total && pthread_create(&bar.thread, NULL, tick, NULL) == 0;
}

void cli_progress_step(uint64_t done, const char *note) {
  pthread_mutex_lock(&bar.lock);
  if (bar.on) {
    double now = clock_seconds();
    snprintf(bar.note, sizeof bar.note, "%s", note ? note : "");
    if (bar.total && now - bar.started >= PATIENCE && now - bar.last >= REDRAW) {
      bar.last = now;
      draw(done, now - bar.started);
    }
  }
  pthread_mutex_unlock(&bar.lock);
}

void cli_progress_message(const char *kind, const char *line) {
  pthread_mutex_lock(&bar.lock);
  erase();
  fprintf(stderr, "onnx-xla: %s%s\n", kind, line);
  pthread_mutex_unlock(&bar.lock);
}

void cli_progress_end(void) {
  pthread_mutex_lock(&bar.lock);
  bar.on = false;
  pthread_cond_signal(&bar.end);
  pthread_mutex_unlock(&bar.lock);
  if (bar.ticking) {
    pthread_join(bar.thread, NULL);
    bar.ticking = false;
  }
  pthread_mutex_lock(&bar.lock);
  erase();
  pthread_mutex_unlock(&bar.lock);
}

status cli_progress_pass(void *data, const char *pass, const struct hlo_module *m) {
  (void)data, (void)m;
  cli_progress_step(0, pass);
  return NULL;
}
