/* clock.c - reads the system's clocks. */
#include "base/clock.h"

uint64_t clock_nanoseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * CLOCK_SECOND + (uint64_t)t.tv_nsec;
}

double clock_seconds(void) { return 1e-9 * (double)clock_nanoseconds(); }

double clock_lap(double *start) {
  double before = *start;
  *start = clock_seconds();
  return *start - before;
}

double clock_thread_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct timespec clock_after(clockid_t clock, uint64_t nanoseconds) {
  struct timespec t;
  clock_gettime(clock, &t);
  uint64_t parts = (uint64_t)t.tv_nsec + nanoseconds % CLOCK_SECOND;
  t.tv_sec += (time_t)(nanoseconds / CLOCK_SECOND + parts / CLOCK_SECOND);
  t.tv_nsec = (long)(parts % CLOCK_SECOND);
  return t;
}

uint64_t deadline_after(double seconds) {
  enum { YEARS = 1000000000 };
  if (!(seconds > 0)) {
    return 0;
  }
  return seconds < YEARS ? (uint64_t)((clock_seconds() + seconds) * CLOCK_SECOND) : UINT64_MAX;
}
