/* little_room.h - limits the memory that this process can map to little more than it has mapped (as ulimit -v does),
 * and removes the limit. */
#ifndef TESTS_API_LITTLE_ROOM_H
#define TESTS_API_LITTLE_ROOM_H

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool room_can_be_taken = false; /* sanitizers map terabytes, and end the process if they get no more */
#else
static const bool room_can_be_taken = true;
#endif

static inline void set_room(rlim_t bytes) {
  struct rlimit r;
  ck_assert_int_eq(getrlimit(RLIMIT_AS, &r), 0);
  r.rlim_cur = bytes < r.rlim_max ? bytes : r.rlim_max;
  ck_assert_int_eq(setrlimit(RLIMIT_AS, &r), 0);
}

/* Lets the process map this many bytes more than it has mapped now. */
static inline void leave_room(size_t bytes) {
  unsigned long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  ck_assert(f && fscanf(f, "%lu", &pages) == 1);
  fclose(f);
  set_room((rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + bytes);
}

static inline void leave_all_room(void) { set_room(RLIM_INFINITY); }

#endif
