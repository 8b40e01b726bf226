/* graph.h - a graph: a model, where its inputs and outputs lie, and the threads that run it. */
#ifndef PLUGIN_ONNXIFI_GRAPH_H
#define PLUGIN_ONNXIFI_GRAPH_H

#include <pthread.h>

#include "plugin/onnxifi/internal.h"

typedef struct ifi_graph ifi_graph;

/* --- inputs and outputs --- */

/* An input of fewer rows than the model declares: a copy has zeros for the rest. */
typedef struct ifi_fill {
  const void *from;
  void *to;
  size_t bytes; /* of the client's */
} ifi_fill;

/* An output whose size is known after the run: what the descriptor says is the most that it may be. */
typedef struct ifi_cut {
  const char *name; /* the model's */
  onnxPointer buffer;
  int rank;
  int64_t dims[OXLA_MAX_RANK];
} ifi_cut;

/* Inputs and outputs of one onnxSetGraphIO.  Runs that are under way keep theirs when it is called again. */
typedef struct ifi_io {
  _Atomic uint32_t references;
  pthread_mutex_t lock; /* one run at a time */
  oxla_run *run;
  ifi_fill *fills; /* room for all inputs */
  ifi_cut *cuts;   /* room for all outputs */
  uint32_t n_fills, n_cuts;
} ifi_io;

onnxStatus ifi_io_create(const ifi_graph *g, const ifi_list *inputs, const ifi_list *outputs, ifi_io **out);
/* The message has room for IFI_MESSAGE bytes. */
onnxStatus ifi_io_execute(const ifi_graph *g, ifi_io *io, char *message);
/* Drops a reference; NULL is allowed. */
void ifi_io_release(ifi_io *io);

/* --- runs --- */

/* For those who want to know when a run was: called before the output event is signalled. */
typedef struct ifi_completion_callback {
  void (*ran)(void *data, uint64_t start, uint64_t end); /* microseconds since the epoch */
  void *data;
} ifi_completion_callback;

/* A run that waits for its turn. */
typedef struct ifi_job {
  struct ifi_job *next;
  ifi_io *io;
  ifi_event *before, *after; /* before: NULL where the inputs are there */
  ifi_completion_callback callback;
} ifi_job;

struct ifi_graph {
  ifi_object object;
  ifi_backend *backend;
  void *bytes;            /* the model, copied */
  oxla_constant *weights; /* copied, with names, dims and data */
  uint32_t n_weights;
  oxla_model *model;
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t changed;
  ifi_io *io; /* NULL if they are not set, or set wrongly */
  ifi_job *jobs;
  uint32_t n_jobs, n_idle, n_running; /* waiting for a thread; threads without a job; runs that are not done */
  bool closing;
  pthread_t *threads;
  uint32_t n_threads, threads_capacity;
};

/* Ends and joins the threads; no run may be under way. */
void ifi_graph_stop(ifi_graph *g);
/* Runs with inputs and outputs of its own, whose reference it takes over, as soon as a thread is there.  *after is the
 * output event, NULL after a failure. */
onnxStatus ifi_graph_run_with(ifi_graph *g, ifi_io *io, ifi_completion_callback callback, onnxEvent *after);

onnxStatus ifi_check_fence_type(onnxEnum type);

/* --- what the interfaces wrap: the functions of these names without descriptors of a certain layout --- */

/* The properties have been checked. */
onnxStatus ifi_init_graph(onnxBackend backend, onnxStatus properties, size_t size, const void *model,
                          const ifi_list *weights, onnxGraph *graph);
onnxStatus ifi_set_graph_io(onnxGraph graph, const ifi_list *inputs, const ifi_list *outputs);

#endif
