/* clock.h - reads the monotonic clock and computes points in time for timed waits.
 *
 * The monotonic clock never goes back.  Its zero is an arbitrary point in the past, so only differences between two
 * readings mean something. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

enum { CLOCK_SECOND = 1000000000 }; /* nanoseconds */

uint64_t clock_nanoseconds(void);
double clock_seconds(void);
/* Returns the seconds since *start and sets *start to now, so that the next call returns the time of the next step. */
double clock_lap(double *start);
/* Returns the processor time that the calling thread has used. */
double clock_thread_seconds(void);

/* Returns the time that `clock` (CLOCK_MONOTONIC or CLOCK_REALTIME) will show after `nanoseconds` from now, for
 * functions of pthread that wait until a point in time. */
struct timespec clock_after(clockid_t clock, uint64_t nanoseconds);

/* Returns the time that is `seconds` seconds from now, in nanoseconds of clock_nanoseconds.  A number that is not
 * positive means no limit: 0 is returned.  For 10^9 seconds or more (about 31 years), UINT64_MAX is returned. */
uint64_t deadline_after(double seconds);

#endif
