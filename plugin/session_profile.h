/* session_profile.h - where a model's time goes: by thunk, by kind of thunk, by ONNX operator and node. */
#ifndef PLUGIN_SESSION_PROFILE_H
#define PLUGIN_SESSION_PROFILE_H

#include <stdio.h>

#include "plugin/session.h"
#include "runtime/profile.h"
#include "runtime/roofline.h"

typedef struct plug_profile_options {
  uint32_t warm_up; /* runs that are not looked at */
  uint32_t runs;    /* at least; 0: one */
  double seconds;   /* at least */
} plug_profile_options;

typedef struct plug_profile_row {
  const rt_profiled *thunk;
  double min, median, share; /* seconds a run, all calls; share: median of those of each run */
  double calls;              /* a run */
} plug_profile_row;

/* Of thunks that have something in common.  A thunk's time is its node's; of several nodes, a contraction's is the first one's,
 * which contracts, and the others' is divided evenly. */
typedef struct plug_profile_group {
  const char *name;
  uint32_t count; /* of thunks, or nodes */
  double seconds, share;
} plug_profile_group;

typedef struct plug_profile_groups {
  uint32_t n, cap;
  plug_profile_group *items; /* the longest first */
} plug_profile_groups;

typedef struct plug_profile {
  const char *model, *backend;
  uint32_t threads;
  const rt_profile *raw;
  double min, median;    /* seconds of a run */
  double gaps;           /* median time that no thunk took: between them, before and behind them, and the profiler itself */
  plug_profile_row *rows; /* raw->n_thunks, the longest first */
  plug_profile_groups kinds, operators, nodes; /* nodes by "name: Operator" */
  rt_roofline roofline;
} plug_profile;

/* Runs and sums up; what it gives lives on `a`. */
STATUS_MUST_USE status plug_session_profile(plug_session *s, const plug_compiled *c, const uint64_t *seed,
                                            const plug_inputs *inputs, plug_output *outputs,
                                            const plug_profile_options *options, arena *a, plug_profile *out);

/* One JSON object. */
void plug_profile_write_json(const plug_profile *p, FILE *f);
/* The fastest run as Chrome's tracing pages read it (about:tracing, Perfetto). */
void plug_profile_write_trace(const plug_profile *p, FILE *f);

#endif
