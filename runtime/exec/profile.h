/* profile.h - where the time of a run goes, thunk by thunk.
 *
 * A profiler is given to runs (rt_run_options.profiler), one at a time, and may see several executables in one run.
 * Runs without one look at it once a sequence, never once a thunk. */
#ifndef RUNTIME_EXEC_PROFILE_H
#define RUNTIME_EXEC_PROFILE_H

#include "runtime/program/program.h"

typedef struct rt_profiler rt_profiler;

/* A thunk that ran.  Texts are the profiler's own. */
typedef struct rt_profiled {
  const char *kind, *operation, *note; /* as rt_thunk has them; note: "" if none */
  const char *label;                   /* rt_thunk_label */
  uint32_t n_nodes;
  const rt_node *nodes;
  uint32_t contraction;
  int64_t operations, bytes; /* of one call; bytes are those of its buffers where the thunk does not tell */
  uint64_t calls;            /* in all runs */
  uint32_t depth;            /* bodies of control flow that it stands in */
  uint32_t cap;
  double *seconds; /* by run: all its calls, less what ran inside of it */
} rt_profiled;

typedef struct rt_profile_event {
  uint32_t thunk; /* index of profile.thunks */
  uint32_t depth;
  uint64_t begin, end; /* nanoseconds after the start of the run */
} rt_profile_event;

typedef struct rt_profile {
  uint32_t n_runs, cap_runs, n_thunks, cap_thunks;
  rt_profiled *thunks; /* in the order in which they first began */
  double *run_seconds; /* by run */
  uint32_t fastest;    /* number of a run */
  uint32_t n_events;
  const rt_profile_event *events; /* of the fastest run, in the order of their ends; at most RT_PROFILE_EVENTS */
  bool cut;                       /* it had more */
} rt_profile;

enum { RT_PROFILE_EVENTS = 1 << 18 };

/* Jumps when memory is out, as do the functions below. */
rt_profiler *rt_profiler_create(arena *a);

/* Around each run.  A run that fails is left without an end; the next begin forgets it. */
void rt_profiler_begin(rt_profiler *p);
void rt_profiler_end(rt_profiler *p);

/* What is known after the last end; valid until the next begin. */
const rt_profile *rt_profiler_result(const rt_profiler *p);

/* Around each thunk, by whoever runs sequences. */
typedef struct rt_profile_mark {
  uint32_t thunk;
  uint64_t begin, inside;
} rt_profile_mark;
rt_profile_mark rt_profile_enter(rt_profiler *p, const rt_program *program, const rt_thunk *t);
void rt_profile_leave(rt_profiler *p, const rt_profile_mark *mark);

#endif
