/* workers.h - runs numbered pieces of work in processes of their own, several at a time, so that a crash
 * or a hang ends its own piece only. */
#ifndef PLUGIN_CLI_WORKERS_H
#define PLUGIN_CLI_WORKERS_H

#include "base/arena.h"

enum { CLI_REPORT_MAX = 2048 };

/* How a piece ended.  `text` is what the work wrote, or why there is none. */
typedef struct cli_outcome {
  bool ended; /* it came to its own end; otherwise it crashed */
  bool timed_out;
  uint32_t flags; /* the work's */
  const char *text;
} cli_outcome;

typedef struct cli_workers {
  uint32_t n;       /* pieces, from 0 */
  uint32_t at_once; /* 0 means the cores of this machine */
  double timeout;   /* seconds for a piece; 0 means none */
  /* In a process of its own: fills text, gives flags. */
  uint32_t (*work)(void *data, uint32_t k, char text[CLI_REPORT_MAX]);
  /* Back in this one, in the order in which pieces end. */
  void (*done)(void *data, uint32_t k, const cli_outcome *outcome);
  void *data;
} cli_workers;

/* Returns when all pieces are done.  The process must have no threads.  After an interrupt (SIGINT, SIGTERM)
 * what runs is killed and *signal is its number, otherwise 0. */
STATUS_MUST_USE status cli_run_workers(const cli_workers *w, arena *a, int *signal);

#endif
