/* object_start.c - start WEIGHTS RUNS: starts itself RUNS times with an object (net.h, net.o), and prints the least and
 * the median milliseconds from the start of a process until the object is ready (after init and bind) and until its
 * first run has ended.  Then it starts one more process while an object is in use in this process, too, and prints the
 * kilobytes that only that process uses and that it has written (Private_Dirty), and the kilobytes of the object's
 * arena.  WEIGHTS is the file of weights, or "" if they are in the object. */
#define _GNU_SOURCE
#include "net.h"

#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench_sizes.h"
#include "object_memory.h"

enum { MOST = 1000, READY = 0, FIRST = 1, POINTS = 2 };

extern char **environ;
static net object;
static const int64_t past;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int make_ready(const char *weights) {
  (void)past;
  int error = net_init(&object, *weights ? map_weights(weights) : NULL);
  return error ? error : BIND(&object, arena_of(MOST_BYTES));
}

static long private_kilobytes(void) {
  char line[256];
  long kilobytes = 0;
  FILE *f = fopen("/proc/self/smaps_rollup", "r");
  while (f && fgets(line, sizeof line, f)) {
    sscanf(line, "Private_Dirty: %ld kB", &kilobytes);
  }
  return kilobytes;
}

/* The main function of a process that `start` starts.  It writes a letter to standard output when the object is ready
 * and when it has run, and at last the kilobytes of its memory. */
static int child(const char *weights) {
  int error = make_ready(weights);
  long kilobytes;
  if (error || write(STDOUT_FILENO, "r", 1) != 1) {
    return 1;
  }
  error = net_run(&object);
  if (error || write(STDOUT_FILENO, "f", 1) != 1) {
    return 1;
  }
  kilobytes = private_kilobytes();
  return write(STDOUT_FILENO, &kilobytes, sizeof kilobytes) != sizeof kilobytes;
}

/* Starts a process that runs `child`.  Sets ms[READY] and ms[FIRST] to the milliseconds until the object was ready and
 * until its first run had ended, and *kilobytes to the memory that the process has written.  Returns 0, or another
 * number if the process fails. */
static int start(char *program, char *weights, double *ms, long *kilobytes) {
  char word[] = "child", *const command[] = {program, word, weights, NULL};
  int ends[2], result = 1;
  char mark;
  pid_t pid;
  posix_spawn_file_actions_t actions;
  if (pipe2(ends, O_CLOEXEC) != 0 || posix_spawn_file_actions_init(&actions) != 0) {
    return 1;
  }
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  double begin = now_ms();
  if (posix_spawn(&pid, program, &actions, NULL, command, environ) != 0) {
    return 1;
  }
  close(ends[1]);
  for (int k = 0; k < POINTS && read(ends[0], &mark, 1) == 1; k++) {
    ms[k] = now_ms() - begin;
  }
  ssize_t got = read(ends[0], kilobytes, sizeof *kilobytes);
  close(ends[0]);
  waitpid(pid, &result, 0);
  posix_spawn_file_actions_destroy(&actions);
  return result != 0 || got != sizeof *kilobytes;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  static double ms[POINTS][MOST];
  long kilobytes = 0;
  if (argc == 3 && strcmp(argv[1], "child") == 0) {
    return child(argv[2]);
  }
  int runs = argc == 3 ? atoi(argv[2]) : 0;
  if (runs < 1 || runs > MOST || make_ready(argv[1]) != 0 || net_run(&object) != 0) {
    fprintf(stderr, "usage: start WEIGHTS RUNS\n");
    return 1;
  }
  for (int k = 0; k < runs; k++) {
    double at[POINTS] = {0};
    if (start(argv[0], argv[1], at, &kilobytes) != 0) {
      fprintf(stderr, "a process of the object failed\n");
      return 1;
    }
    ms[READY][k] = at[READY];
    ms[FIRST][k] = at[FIRST];
  }
  for (int k = 0; k < POINTS; k++) {
    qsort(ms[k], (size_t)runs, sizeof ms[k][0], by_value);
    printf("%.4f %.4f ", ms[k][0], ms[k][runs / 2]);
  }
  printf("%ld %.1f\n", kilobytes, (double)MOST_BYTES / 1024);
  return 0;
}
