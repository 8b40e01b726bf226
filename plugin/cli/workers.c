/* workers.c - runs jobs in processes of their own, several at a time, with a time limit. */
#include "plugin/cli/workers.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/clock.h"
#include "base/machine/machine.h"
#include "plugin/cli/cli.h"

typedef struct job {
  pid_t pid; /* 0 if the slot is free */
  int fd;
  uint32_t number;
  double deadline;
  bool timed_out;
  size_t n;
  struct {
    uint32_t flags;
    char text[CLI_REPORT_MAX];
  } report;
} job;

static volatile sig_atomic_t interrupt;

static void note_interrupt(int number) { interrupt = number; }

/* --- the child --- */

_Noreturn static void be_child(const cli_workers *w, job *j, int fd) {
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  memset(&j->report, 0, sizeof j->report);
  j->report.flags = w->work(w->data, j->number, j->report.text);
  const char *at = (const char *)&j->report;
  size_t left = sizeof j->report.flags + strlen(j->report.text) + 1;
  while (left) {
    ssize_t n = write(fd, at, left);
    if (n <= 0 && errno != EINTR) {
      break;
    }
    at += n > 0 ? n : 0;
    left -= n > 0 ? (size_t)n : 0;
  }
  _exit(0); /* exit() would flush the parent's buffers and run its cleanup a second time */
}

static status start(const cli_workers *w, job *j, uint32_t number) {
  int ends[2];
  CHECK_THAT(pipe(ends) == 0, STATUS_IO, "a pipe cannot be made: %s", strerror(errno));
  *j = (job){.fd = ends[0], .number = number, .deadline = w->timeout > 0 ? clock_seconds() + w->timeout : 0};
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    be_child(w, j, ends[1]);
  }
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return status_error(STATUS_IO, "a process cannot be started: %s", strerror(errno));
  }
  j->pid = pid;
  return NULL;
}

/* --- the parent --- */

static int wait_for(pid_t pid) {
  int how = 0;
  while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
  }
  return how;
}

static void finish(const cli_workers *w, job *j) {
  char text[CLI_REPORT_MAX];
  close(j->fd);
  int how = wait_for(j->pid);
  bool whole = j->n > sizeof j->report.flags && j->report.text[j->n - sizeof j->report.flags - 1] == '\0';
  cli_outcome outcome = {.ended = whole && WIFEXITED(how) && WEXITSTATUS(how) == 0 && !j->timed_out,
                         .timed_out = j->timed_out,
                         .flags = j->report.flags,
                         .text = text};
  if (outcome.ended) {
    outcome.text = j->report.text;
  } else if (j->timed_out) {
    snprintf(text, sizeof text, "took more than %g seconds", w->timeout);
  } else if (WIFSIGNALED(how)) {
    snprintf(text, sizeof text, "crashed: %s", strsignal(WTERMSIG(how)));
  } else {
    snprintf(text, sizeof text, "crashed: exit status %d", WEXITSTATUS(how));
  }
  j->pid = 0;
  w->done(w->data, j->number, &outcome);
}

/* Reads from the job's pipe.  Returns true if the job has ended. */
static bool receive(job *j) {
  size_t room = sizeof j->report - j->n;
  ssize_t n = room ? read(j->fd, (char *)&j->report + j->n, room) : 0;
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
    return false;
  }
  j->n += n > 0 ? (size_t)n : 0;
  return n <= 0;
}

/* Waits a short time for any of the jobs, and handles those that have ended. */
static void attend(const cli_workers *w, job *jobs, struct pollfd *fds, uint32_t n) {
  enum { MILLISECONDS = 100 };
  for (uint32_t k = 0; k < n; k++) {
    fds[k] = (struct pollfd){.fd = jobs[k].pid ? jobs[k].fd : -1, .events = POLLIN};
  }
  if (poll(fds, n, MILLISECONDS) < 0) {
    return;
  }
  double now = clock_seconds();
  for (uint32_t k = 0; k < n; k++) {
    job *j = &jobs[k];
    if (!j->pid) {
      continue;
    }
    if (j->deadline > 0 && now > j->deadline && !j->timed_out) {
      j->timed_out = true;
      kill(j->pid, SIGKILL);
    }
    if (fds[k].revents && receive(j)) {
      finish(w, j);
    }
  }
}

static void kill_all(job *jobs, uint32_t n) {
  for (uint32_t k = 0; k < n; k++) {
    if (jobs[k].pid) {
      kill(jobs[k].pid, SIGKILL);
      (void)wait_for(jobs[k].pid);
      close(jobs[k].fd);
    }
  }
}

static status run_all(const cli_workers *w, job *jobs, struct pollfd *fds, uint32_t n) {
  uint32_t next = 0, busy;
  do {
    busy = 0;
    for (uint32_t k = 0; k < n; k++) {
      if (!jobs[k].pid && next < w->n) {
        TRY(start(w, &jobs[k], next++));
      }
      busy += jobs[k].pid != 0;
    }
    attend(w, jobs, fds, n);
  } while (busy && !interrupt);
  return NULL;
}

status cli_run_workers(const cli_workers *w, arena *a, int *signal_number) {
  uint32_t n = w->at_once ? w->at_once : machine_cores();
  job *jobs = ARENA_NEW_N(a, job, n);
  struct pollfd *fds = ARENA_NEW_N(a, struct pollfd, n);
  struct sigaction act = {.sa_handler = note_interrupt}, old[2];
  interrupt = 0;
  sigaction(SIGINT, &act, &old[0]);
  sigaction(SIGTERM, &act, &old[1]);
  status failed = run_all(w, jobs, fds, n);
  kill_all(jobs, n);
  sigaction(SIGINT, &old[0], NULL);
  sigaction(SIGTERM, &old[1], NULL);
  *signal_number = interrupt;
  return failed;
}
