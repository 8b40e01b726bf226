/* profile.h - measures where the time of a model goes: by thunk, by kind of thunk, by ONNX operator and by node. */
#ifndef PLUGIN_SESSION_PROFILE_H
#define PLUGIN_SESSION_PROFILE_H

#include <stdio.h>

#include "plugin/session/session.h"
#include "runtime/exec/profile.h"
#include "runtime/host/roofline.h"

typedef struct run_profile_options {
  uint32_t warm_up; /* the number of runs that are not measured */
  uint32_t runs;    /* the least number of measured runs; 0 means one; there are never more than 10000 */
  double seconds;   /* the least time to measure, in seconds */
} run_profile_options;

typedef struct run_profile_row {
  const rt_profiled *thunk;
  /* `min` and `median`, over the runs: the seconds that all calls of the thunk in a run take together.  `share`: the
   * median, over the runs, of the thunk's share of the run's time, from 0 to 1. */
  double min, median, share;
  double calls; /* calls in a run */
} run_profile_row;

/* The thunks of one kind, ONNX operator or node.  The time of a thunk is added to its node.  If a thunk has several
 * nodes, its time is added to the node that is the contraction, or divided evenly among the nodes if none is. */
typedef struct run_profile_group {
  const char *name;
  const char *operator_name; /* the operator of a node; "" for other groups */
  uint32_t count;            /* the number of thunks; in a group for an operator, that of nodes */
  double seconds, share;
} run_profile_group;

typedef struct run_profile_groups {
  uint32_t n, cap;
  run_profile_group *items; /* sorted by their time, the longest first */
} run_profile_groups;

typedef struct run_profile {
  const char *model, *backend;
  uint32_t threads;
  const rt_profile *raw;
  double min, median; /* the least and the median time of a run, in seconds */
  double gaps; /* the median time of a run outside of its thunks, in seconds: between, before and after them, and in the
                  profiler itself */
  run_profile_row *rows;                      /* raw->n_thunks rows, the longest first */
  run_profile_groups kinds, operators, nodes; /* nodes are named "name: Operator" */
  rt_roofline roofline;
  const session_program *generals; /* the programs for all sizes, the newest first */
  const char *exact_reason;        /* what session_exact_reason returns */
  uint32_t bindings; /* the number of measured bindings; 0 if no program for all sizes serves the inputs */
  double binding;    /* the least time of a binding, in seconds */
} run_profile;

/* Runs the program repeatedly and summarises the measured times.  The result is on `a`. */
STATUS_MUST_USE status session_profile(session *s, const session_program *c, const uint64_t *seed,
                                       const session_inputs *inputs, session_output *outputs,
                                       const run_profile_options *options, arena *a, run_profile *out);

/* Writes one JSON object. */
void run_profile_write_json(const run_profile *p, FILE *f);
/* Writes the fastest run in the format of Chrome's tracing pages (about:tracing, Perfetto). */
void run_profile_write_trace(const run_profile *p, FILE *f);

#endif
