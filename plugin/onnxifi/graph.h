/* graph.h - a graph: a model, the memory of its inputs and outputs, and the threads that run it. */
#ifndef PLUGIN_ONNXIFI_GRAPH_H
#define PLUGIN_ONNXIFI_GRAPH_H

#include <pthread.h>

#include "plugin/onnxifi/internal.h"

typedef struct ifi_graph ifi_graph;

/* --- inputs and outputs --- */

/* An input with fewer rows than the model declares.  Before each run it is copied to memory in which the other rows are
 * zeros. */
typedef struct ifi_fill {
  const void *from;
  void *to;
  size_t bytes; /* the bytes of the client's array */
} ifi_fill;

/* An output whose size is known only after a run.  Its descriptor has the largest shape that it may have. */
typedef struct ifi_cut {
  const char *name; /* the output's name in the model */
  onnxPointer buffer;
  int rank;
  int64_t dims[OXLA_MAX_RANK];
} ifi_cut;

/* The inputs and outputs that one onnxSetGraphIO set.  Runs that are in progress keep theirs when it is called
 * again. */
typedef struct ifi_io {
  _Atomic uint32_t references;
  pthread_mutex_t lock; /* held during a run: one run at a time */
  oxla_run *run;
  ifi_fill *fills; /* room for all inputs */
  ifi_cut *cuts;   /* room for all outputs */
  uint32_t n_fills, n_cuts;
} ifi_io;

onnxStatus ifi_io_create(const ifi_graph *g, const ifi_list *inputs, const ifi_list *outputs, ifi_io **out);
/* Runs the graph.  `message` has room for IFI_MESSAGE bytes and is set after a failure. */
onnxStatus ifi_io_execute(const ifi_graph *g, ifi_io *io, char *message);
/* Drops a reference; NULL is allowed. */
void ifi_io_release(ifi_io *io);

/* --- runs --- */

/* Called after a run, before its output event is signalled. */
typedef struct ifi_completion_callback {
  void (*ran)(void *data, uint64_t start, uint64_t end); /* microseconds since the epoch */
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
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t changed;
  ifi_io *io; /* NULL if they are not set, or if setting them failed */
  ifi_job *jobs;
  uint32_t n_jobs, n_idle, n_running; /* jobs that wait for a thread; threads without a job; runs that are not done */
  bool closing;
  pthread_t *threads;
  uint32_t n_threads, threads_capacity;
};

/* Ends and joins the threads.  No run may be in progress. */
void ifi_graph_stop(ifi_graph *g);
/* Starts a run with its own inputs and outputs, and takes over the reference to them, also after a failure.  *after is
 * set to the output event, or to NULL after a failure. */
onnxStatus ifi_graph_run_with(ifi_graph *g, ifi_io *io, ifi_completion_callback callback, onnxEvent *after);

onnxStatus ifi_check_fence_type(onnxEnum type);

/* --- the core of the functions onnxInitGraph and onnxSetGraphIO, without the layout of descriptors --- */

/* `properties` is the result of checking the graph's properties. */
onnxStatus ifi_init_graph(onnxBackend backend, onnxStatus properties, size_t size, const void *model,
                          const ifi_list *weights, onnxGraph *graph);
onnxStatus ifi_set_graph_io(onnxGraph graph, const ifi_list *inputs, const ifi_list *outputs);

#endif
