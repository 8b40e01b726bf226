/* profile.h - where a model's time goes: by thunk, by kind of thunk, by ONNX operator and node. */
#ifndef PLUGIN_SESSION_PROFILE_H
#define PLUGIN_SESSION_PROFILE_H

#include <stdio.h>

#include "plugin/session/session.h"
#include "runtime/exec/profile.h"
#include "runtime/host/roofline.h"

typedef struct run_profile_options {
  uint32_t warm_up; /* runs that are not looked at */
  uint32_t runs;    /* at least; 0 means one */
  double seconds;   /* at least */
} run_profile_options;

typedef struct run_profile_row {
  const rt_profiled *thunk;
  double min, median, share; /* seconds a run, all calls; share: median of those of each run */
  double calls;              /* a run */
} run_profile_row;

/* Of thunks that have something in common.  A thunk's time is its node's; of several nodes, a contraction's is that
 * of the one which contracts, and the others' is divided evenly. */
typedef struct run_profile_group {
  const char *name;
  const char *operator_name; /* of a node; "" of other groups */
  uint32_t count;            /* of thunks, or nodes */
  double seconds, share;
} run_profile_group;

typedef struct run_profile_groups {
  uint32_t n, cap;
  run_profile_group *items; /* the longest first */
} run_profile_groups;

typedef struct run_profile {
  const char *model, *backend;
  uint32_t threads;
  const rt_profile *raw;
  double min, median; /* seconds of a run */
  double gaps; /* median time that no thunk took: between them, before and behind them, and the profiler itself */
  run_profile_row *rows;                      /* raw->n_thunks, the longest first */
  run_profile_groups kinds, operators, nodes; /* nodes by "name: Operator" */
  rt_roofline roofline;
} run_profile;

/* Runs and sums up; what it gives lives on `a`. */
STATUS_MUST_USE status session_profile(session *s, const session_program *c, const uint64_t *seed,
                                       const session_inputs *inputs, session_output *outputs,
                                       const run_profile_options *options, arena *a, run_profile *out);

/* One JSON object. */
void run_profile_write_json(const run_profile *p, FILE *f);
/* The fastest run as Chrome's tracing pages read it (about:tracing, Perfetto). */
void run_profile_write_trace(const run_profile *p, FILE *f);

#endif
