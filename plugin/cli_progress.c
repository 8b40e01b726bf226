/* cli_progress.c - what a person sees while waiting. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugin/cli.h"

enum { WIDTH = 30 };
static const double PATIENCE = 0.5, REDRAW = 0.1; /* seconds */

static struct {
  bool on, drawn;
  const char *what;
  uint64_t total;
  double started, last;
} bar;

void cli_progress_start(bool quiet, const char *what, uint64_t total) {
  cli_progress_end();
  bar.on = !quiet && isatty(STDERR_FILENO);
  bar.what = what;
  bar.total = total;
  bar.started = bar.last = bar.on ? plug_now() : 0;
}

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

void cli_progress_step(uint64_t done, const char *note) {
  if (!bar.on) {
    return;
  }
  double now = plug_now();
  if (now - bar.started < PATIENCE || now - bar.last < REDRAW) {
    return;
  }
  bar.last = now;
  bar.drawn = true;
  draw(done, note ? note : "", now - bar.started);
}

void cli_progress_end(void) {
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
