/* segments_internal.h - a segment and the model that it is part of, for segments.c and segment.c. */
#ifndef PLUGIN_COMPILER_SEGMENTS_INTERNAL_H
#define PLUGIN_COMPILER_SEGMENTS_INTERNAL_H

#include <pthread.h>

#include "frontend/import/frame.h"
#include "plugin/compiler/interpreter.h"
#include "plugin/compiler/segments.h"

/* An array for which a segment was made. */
typedef struct used_array {
  const char *name;
  literal value; /* data NULL: any content of that shape */
  uint32_t n;    /* elements of a sequence */
} used_array;

typedef struct segment {
  struct segment *next;
  mem_budget budget; /* while it is made, with the run's deadline */
  arena *arena;
  uint8_t *before; /* states of the frame's nodes that it was made for */
  onnx_segment info;
  uint32_t n_uses;
  used_array *uses;
  literal *literals;    /* by result: its value if that is a constant, data NULL otherwise */
  hlo_module *imported; /* as it was before it was compiled, for segments_run_options.watch; NULL: nobody looks, or has
                           looked already */
  rt_program *program;  /* NULL if there is nothing to compute */
  rt_executable *executable;
  uint32_t n_results, runs; /* visible results; runs of it right now */
  uint64_t last_used;
} segment;

struct segmented_model {
  const compiler_model *source;
  const onnx_model *model;
  compile_request request;
  const rt_backend *backend;
  mem_budget *budget;
  pthread_mutex_t lock; /* guards sites, segments, and importing and compiling */
  arena *arena;         /* of the sites */
  interpreter_site main;
  uint64_t clock;
  double seconds_tuning; /* of all segments together */
};

/* Runs fn with the model's lock, as guard_run does. */
STATUS_MUST_USE status segmented_model_locked(segmented_model *p, status (*fn)(void *), void *data);

/* Finds the segment of the site that continues frame f, whose nodes are in the states that they are in, or imports and
 * compiles it.  *out is not destroyed before segment_release. */
STATUS_MUST_USE status segment_get(interpreter_run *run, interpreter_site *site, const onnx_frame *f, segment **out);
void segment_release(segmented_model *p, segment *x);

void segment_destroy(segment *x);

#endif
