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
  bool on, drawn;
  const char *what;
  uint64_t total;
  double started, last;
  /* The members below are only used while a thread draws the line (`ticking`). */
  bool ticking, ended;
  char note[64];
  pthread_t thread;
  pthread_mutex_t lock; /* guards ended and note */
  pthread_cond_t end;
} bar = {.lock = PTHREAD_MUTEX_INITIALIZER, .end = PTHREAD_COND_INITIALIZER};

static void draw(uint64_t done, const char *note, double seconds) {
  char track[WIDTH + 1];
  uint64_t filled = bar.total ? done * WIDTH / bar.total : 0;
  memset(track, ' ', WIDTH);
  memset(track, '=', filled < WIDTH ? filled : WIDTH);
  track[WIDTH] = '\0';
  if (bar.total) {
    fprintf(stderr, "\r%s [%s] %llu/%llu %.0f s %.30s\033[K", bar.what, track, (unsigned long long)done,
            (unsigned long long)bar.total, seconds, note);
  } else {
    fprintf(stderr, "\r%s %.0f s %.30s\033[K", bar.what, seconds, note);
  }
  fflush(stderr);
}

/* The function of the thread that draws the line: it shows the latest note until cli_progress_end. */
static void *tick(void *data) {
  (void)data;
  enum { TENTH = CLOCK_SECOND / 10 };
  pthread_mutex_lock(&bar.lock);
  while (!bar.ended) {
    struct timespec until = clock_after(CLOCK_REALTIME, TENTH);
    (void)pthread_cond_timedwait(&bar.end, &bar.lock, &until);
    double took = clock_seconds() - bar.started;
    if (!bar.ended && took >= PATIENCE) {
      bar.drawn = true;
      draw(0, bar.note, took);
    }
  }
  pthread_mutex_unlock(&bar.lock);
  return NULL;
}

void cli_progress_start(bool quiet, const char *what, uint64_t total) {
  cli_progress_end();
  bar.on = !quiet && isatty(STDERR_FILENO);
  bar.what = what;
  bar.total = total;
  bar.started = bar.last = bar.on ? clock_seconds() : 0;
  bar.ended = false;
  bar.note[0] = '\0';
  bar.ticking = bar.on && !total && pthread_create(&bar.thread, NULL, tick, NULL) == 0;
}

void cli_progress_step(uint64_t done, const char *note) {
  if (!bar.on) {
    return;
  }
  if (bar.ticking) {
    pthread_mutex_lock(&bar.lock);
    snprintf(bar.note, sizeof bar.note, "%s", note ? note : "");
    pthread_mutex_unlock(&bar.lock);
    return;
  }
  double now = clock_seconds();
  if (now - bar.started < PATIENCE || now - bar.last < REDRAW) {
    return;
  }
  bar.last = now;
  bar.drawn = true;
  draw(done, note ? note : "", now - bar.started);
}

static void stop_ticking(void) {
  pthread_mutex_lock(&bar.lock);
  bar.ended = true;
  pthread_cond_signal(&bar.end);
  pthread_mutex_unlock(&bar.lock);
  pthread_join(bar.thread, NULL);
  bar.ticking = false;
}

void cli_progress_end(void) {
  if (bar.ticking) {
    stop_ticking();
  }
  if (bar.drawn) {
    fprintf(stderr, "\r\033[K");
    fflush(stderr);
  }
  bar.on = bar.drawn = false;
}

status cli_progress_pass(void *data, const char *pass, const struct hlo_module *m) {
  (void)data, (void)m;
  cli_progress_step(0, pass);
  return NULL;
}
