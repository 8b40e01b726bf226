/* workers.h - runs numbered jobs in processes of their own, several at a time, so that a crash or a hang ends its own
 * job only. */
#ifndef PLUGIN_CLI_WORKERS_H
#define PLUGIN_CLI_WORKERS_H

#include "base/arena.h"

enum { CLI_REPORT_MAX = 2048 };

/* How a job ended.  If `ended` is true, `text` is the text that the job wrote, otherwise it says why the job did not
 * end as it should. */
typedef struct cli_outcome {
  /* Whether the job ran to its end: in time, with exit status 0 and a whole report.  Otherwise it crashed, exited early
   * or was killed. */
  bool ended;
  bool timed_out;
  uint32_t flags; /* what `work` returned */
  const char *text;
} cli_outcome;

typedef struct cli_workers {
  uint32_t n;       /* the number of jobs, which are numbered from 0 */
  uint32_t at_once; /* 0 means one for each core of this machine */
  double timeout;   /* seconds for a job; 0 means no limit */
  /* Runs job k in a process of its own: fills `text` and returns flags. */
  uint32_t (*work)(void *data, uint32_t k, char text[CLI_REPORT_MAX]);
  /* Called in this process for each job, in the order in which jobs end. */
  void (*done)(void *data, uint32_t k, const cli_outcome *outcome);
  void *data;
} cli_workers;

/* Returns when all jobs are done.  The process must have only one thread.  After SIGINT or SIGTERM all jobs are killed
 * and *signal is the number of the signal; otherwise *signal is 0. */
STATUS_MUST_USE status cli_run_workers(const cli_workers *w, arena *a, int *signal);

#endif
