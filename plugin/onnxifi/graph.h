/* graph.h - a graph: a model, the memory of its inputs and outputs, and the threads that run it. */
#ifndef PLUGIN_ONNXIFI_GRAPH_H
#define PLUGIN_ONNXIFI_GRAPH_H

#include <pthread.h>

#include "plugin/onnxifi/internal.h"

typedef struct ifi_graph ifi_graph;

/* --- inputs and outputs --- */

/* An input whose first dimension is smaller than the model declares (only foxi allows this).  Before each run it is
 * copied to the beginning of an array of the declared size, in which the rest is zeros. */
typedef struct ifi_fill {
  const void *from;
  void *to;
  size_t bytes; /* the bytes of the client's array */
} ifi_fill;

/* An output whose size is known only after a run.  The shape in its descriptor is the upper bound of its shape. */
typedef struct ifi_cut {
  const char *name; /* the output's name in the model */
  onnxPointer buffer;
  oxla_type type;
  int rank;
  int64_t dims[OXLA_MAX_RANK];
} ifi_cut;

/* The inputs and outputs that were set by one call of onnxSetGraphIO or, in foxi, of onnxSetIOAndRunGraph.  They are
 * reference-counted: if onnxSetGraphIO is called again while a run is in progress, that run still uses the previous
 * ones. */
typedef struct ifi_io {
  _Atomic uint32_t references;
  pthread_mutex_t lock; /* held during a run: one run at a time */
  oxla_run *run;
  ifi_fill *fills; /* n_fills entries, with room for one for each input */
  ifi_cut *cuts;   /* n_cuts entries, with room for one for each output */
  uint32_t n_fills, n_cuts;
} ifi_io;

onnxStatus ifi_io_create(const ifi_graph *g, const ifi_list *inputs, const ifi_list *outputs, ifi_io **out);
/* Runs the graph.  `message` has room for IFI_MESSAGE bytes; after a failure it says what failed, or is "". */
onnxStatus ifi_io_execute(const ifi_graph *g, ifi_io *io, char *message);
/* Drops a reference; NULL is allowed. */
void ifi_io_release(ifi_io *io);

/* --- runs --- */

/* What is called after a run, before its output event is signalled.  It is not called if the input event was abandoned,
 * since nothing is run then. */
typedef struct ifi_completion_callback {
  void (*ran)(void *data, uint64_t start, uint64_t end); /* may be NULL; times in microseconds since the epoch */
  void *data;
} ifi_completion_callback;

/* A run that waits for a thread. */
typedef struct ifi_job {
  struct ifi_job *next;
  ifi_io *io;
  ifi_event *before, *after; /* the input and the output event; `before` is NULL if the inputs are ready */
  ifi_completion_callback callback;
} ifi_job;

struct ifi_graph {
  ifi_object object;
  ifi_backend *backend;
  void *bytes;            /* a copy of the model */
  oxla_constant *weights; /* copies, with names, dims and data */
  uint32_t n_weights;
  oxla_model *model;
  pthread_mutex_t lock; /* guards the members below */
  pthread_cond_t changed;
  ifi_io *io; /* the inputs and outputs; NULL if onnxSetGraphIO was not called, or failed */
  ifi_job *jobs;
  /* The number of jobs that wait for a thread, of threads without a job, and of runs that are not done. */
  uint32_t n_jobs, n_idle, n_running;
  bool closing;
  pthread_t *threads;
  uint32_t n_threads, threads_capacity;
};

/* Ends and joins the graph's threads.  No run may be in progress. */
void ifi_graph_stop(ifi_graph *g);
/* Starts a run with the inputs and outputs `io` in place of those of the graph, and takes over the reference to `io`,
 * also after a failure.  *after is set to the output event, or to NULL after a failure. */
onnxStatus ifi_graph_run_with(ifi_graph *g, ifi_io *io, ifi_completion_callback callback, onnxEvent *after);

onnxStatus ifi_check_fence_type(onnxEnum type);

/* --- onnxInitGraph and onnxSetGraphIO for both interfaces, whose descriptors have different layouts --- */

/* `properties` is the status of the caller's check of the property list; ifi_init_graph fails with it if it is an
 * error. */
onnxStatus ifi_init_graph(onnxBackend backend, onnxStatus properties, size_t size, const void *model,
                          const ifi_list *weights, onnxGraph *graph);
onnxStatus ifi_set_graph_io(onnxGraph graph, const ifi_list *inputs, const ifi_list *outputs);

#endif
