/* segments_internal.h - a segment and the model that it is part of, for segments.c, segment.c and segment_compile.c. */
#ifndef PLUGIN_COMPILER_SEGMENTS_INTERNAL_H
#define PLUGIN_COMPILER_SEGMENTS_INTERNAL_H

#include <pthread.h>

#include "frontend/import/frame.h"
#include "runtime/exec/binding.h"
#include "runtime/program/weight_pool.h"
#include "plugin/compiler/interpreter.h"
#include "plugin/compiler/segments.h"

/* An array that a segment reads, with the shape and contents that the array must have again if the segment is to run
 * again. */
typedef struct used_array {
  const char *name;
  literal value; /* if data is NULL, the array must have this shape; otherwise also these contents */
  uint32_t n;    /* the number of elements of a sequence; 0 for an array */
  /* As in onnx_array_use, a mask of the elements that parameters tell.  In a segment for all sizes, these elements may
   * differ from those of `value`. */
  uint64_t elements;
} used_array;

/* The program of a segment for all sizes, bound to the sizes of some arrays. */
typedef struct segment_binding {
  struct segment_binding *next;
  shape *shapes; /* of the parameters */
  rt_binding *binding;
  uint32_t runs; /* runs in progress */
  uint64_t last_used;
} segment_binding;

/* A result of a segment, but for those that are sizes of others (hlo_module.size_of). */
typedef struct segment_result {
  const char *name;
  bool known;         /* whether later segments use it as a constant */
  uint32_t open_dims; /* its onnx_array.open_dims and open_elements */
  uint64_t open_elements;
  literal value; /* its value, if the segment has no program */
} segment_result;

typedef struct segment {
  struct segment *next;
  mem_budget budget; /* the budget of the arenas; while the segment is compiled, it has the run's deadline */
  arena *arena;
  arena *compiling; /* has the module and what compiling it needed; NULL if that is not used any more: if the program is
                       on `arena`, and `imported` is NULL */
  uint8_t *before, *after; /* the states of the frame's nodes (onnx_node_state) for which the segment was imported, and
                              those after it has run */
  const char *reason;      /* onnx_segment.reason */
  uint32_t n_uses, n_results, n_leaving;
  used_array *uses; /* first the parameters of the program, in order */
  segment_result *results;
  onnx_leaving *leaving;
  hlo_module *imported; /* a copy from before compiling, for segments_run_options.watch; NULL if `watch` is NULL or has
                           been called for this segment */
  rt_program *program;  /* NULL if there is nothing to compute */
  rt_weight_pool *pool; /* has constants and code of the program; NULL if nothing is shared */
  rt_executable *executable;
  bool general;              /* whether the program is for all sizes: then parameters may have other shapes than
                                those in `uses` */
  segment_binding *bindings; /* of a general program */
  uint32_t runs;             /* in progress */
  uint64_t last_used;
} segment;

struct segmented_model {
  const compiler_model *source;
  const onnx_model *model;
  compile_request request;
  rt_weight_pool *pool; /* of the caller, for what segments share; may be NULL */
  const rt_backend *backend;
  mem_budget *budget;
  pthread_mutex_t lock; /* guards the tree of interpreter_site, the segments in it, and `pool`; held while a segment is
                           imported and compiled */
  arena *arena;         /* the arena of the tree of interpreter_site below `main` */
  interpreter_site main;
  uint64_t clock;
  double seconds_tuning;  /* the time that tuning took, in all segments together */
  uint64_t new_constants; /* bytes of constants in the segments compiled since memory was given back to the system */
};

/* Does guard_run(fn, data) while holding the model's lock. */
STATUS_MUST_USE status segmented_model_locked(segmented_model *p, status (*fn)(void *), void *data);

/* A segment, and what a run of it executes. */
typedef struct segment_use {
  segment *segment;
  const rt_binding *binding; /* NULL if there is nothing to compute */
  segment_binding *bound;    /* NULL if the program is for one set of sizes */
} segment_use;

/* Finds the segment that runs next in frame f, given the states of its nodes and its arrays, among those of `site`, or
 * imports and compiles it.  What *out has is not destroyed before segment_release. */
STATUS_MUST_USE status segment_get(interpreter_run *run, interpreter_site *site, onnx_frame *f, segment_use *out);
void segment_release(segmented_model *p, const segment_use *u);

/* --- functions that segment.c and segment_compile.c share; the caller holds the model's lock --- */

/* Imports and compiles the segment that runs next in the frame.  All members of `x` are 0 before the call.
 * *bound is set if its program is for all sizes. */
STATUS_MUST_USE status segment_compile(interpreter_run *run, const interpreter_site *site, const onnx_frame *f,
                                       segment *x, segment_binding **bound);
/* Returns the frame's array of this name, or NULL. */
onnx_array *segment_array(const onnx_frame *f, arena *scratch, const char *name);
/* Returns the shape that parameter k of the segment's module gets from the frame's arrays. */
shape segment_param_shape(const segment *x, uint32_t k, const onnx_frame *f, arena *scratch);
/* Finds or makes the binding of a general program to the frame's arrays.  *out is NULL if they do not fit. */
STATUS_MUST_USE status segment_bind(segmented_model *p, segment *x, const onnx_frame *f, arena *scratch,
                                    segment_binding **out);

/* segment_clear frees what a segment has, and sets all its members to 0; segment_destroy frees the segment as
 * well. */
void segment_clear(segment *x);
void segment_destroy(segment *x);

#endif
