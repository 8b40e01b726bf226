/* profile.h - measures the time of each thunk of a run.
 *
 * A profiler is passed to runs (rt_run_options.profiler), one run at a time.  A run of a model may consist of runs of
 * several executables.  A run without a profiler tests only once per sequence, not once per thunk, whether there is
 * one. */
#ifndef RUNTIME_EXEC_PROFILE_H
#define RUNTIME_EXEC_PROFILE_H

#include "runtime/program/target.h"

typedef struct rt_profiler rt_profiler;

/* A thunk that ran.  The profiler owns the texts. */
typedef struct rt_profiled {
  const char *kind, *operation, *note; /* as in rt_thunk; note is "" where rt_thunk has none */
  const char *label;                   /* as rt_thunk_label returns it */
  uint32_t n_nodes;
  const rt_node *nodes;
  uint32_t contraction;
  int64_t operations, bytes; /* of one call; if the thunk does not state `bytes`, the sum of the sizes of its buffers (0
                                for control flow) */
  uint64_t calls;            /* the number of calls in all runs together */
  uint64_t calls_now;        /* the number of calls in the current run, which may fail */
  uint32_t depth;            /* the number of bodies of control flow around the thunk */
  uint32_t cap;
  double *seconds; /* for each run, the seconds of all calls of the thunk, without the time of thunks in its bodies */
} rt_profiled;

typedef struct rt_profile_event {
  uint32_t thunk; /* an index of rt_profile.thunks */
  uint32_t depth;
  uint64_t begin, end; /* in nanoseconds after the start of the run */
} rt_profile_event;

typedef struct rt_profile {
  uint32_t n_runs, cap_runs, n_thunks, cap_thunks;
  rt_profiled *thunks; /* in the order in which they first ran */
  double *run_seconds; /* the seconds of each run */
  uint32_t fastest;    /* the index of the fastest run */
  uint32_t n_events;
  /* the events of the fastest run, ordered by their ends; at most RT_PROFILE_EVENTS */
  const rt_profile_event *events;
  bool cut; /* whether the fastest run had more than RT_PROFILE_EVENTS events */
} rt_profile;

enum { RT_PROFILE_EVENTS = 1 << 18 };

/* If memory runs out, this and the functions below jump to the innermost guard_run. */
rt_profiler *rt_profiler_create(arena *a);

/* rt_profiler_begin must be called before each run, and rt_profiler_end after it.  If a run fails, rt_profiler_end is
 * not called, and the next rt_profiler_begin discards the run. */
void rt_profiler_begin(rt_profiler *p);
void rt_profiler_end(rt_profiler *p);

/* Returns what was measured until the last rt_profiler_end.  It is valid until the next rt_profiler_begin. */
const rt_profile *rt_profiler_result(const rt_profiler *p);

/* rt_profile_enter must be called before each thunk of a profiled run.  After the thunk, rt_profile_leave must be
 * called with the mark that rt_profile_enter returned. */
typedef struct rt_profile_mark {
  uint32_t thunk;
  uint64_t begin, inside;
} rt_profile_mark;
rt_profile_mark rt_profile_enter(rt_profiler *p, const rt_program *program, const rt_thunk *t);
/* `device_seconds` is what the thunk itself took on a device; if it is negative, the time of the host counts. */
void rt_profile_leave(rt_profiler *p, const rt_profile_mark *mark, double device_seconds);

/* Calls run(t, r), which puts the work of a thunk into the queue of a device, and waits until the work is done.  Sets
 * *seconds to how long the device took for it, or to -1 if the device has no events. */
STATUS_MUST_USE status rt_profile_device(const rt_thunk *t, rt_run *r, status (*run)(const rt_thunk *t, rt_run *r),
                                         double *seconds);

#endif
