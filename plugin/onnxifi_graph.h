/* onnxifi_graph.h - a graph: a model, where its inputs and outputs lie, and the threads that run it. */
#ifndef PLUGIN_ONNXIFI_GRAPH_H
#define PLUGIN_ONNXIFI_GRAPH_H

#include <pthread.h>

#include "plugin/onnxifi_parts.h"

/* Inputs and outputs of one onnxSetGraphIO.  Runs that are under way keep theirs when it is called again. */
typedef struct ifi_io {
  _Atomic uint32_t references;
  pthread_mutex_t lock; /* one run at a time */
  oxla_run *run;
} ifi_io;

/* Gives back a reference; NULL is fine. */
void ifi_io_release(ifi_io *io);

/* A run that waits for its turn. */
typedef struct ifi_job {
  struct ifi_job *next;
  ifi_io *io;
  ifi_event *before, *after;
} ifi_job;

typedef struct ifi_graph {
  ifi_object object;
  ifi_backend *backend;
  void *bytes;            /* the model, copied */
  oxla_constant *weights; /* copied, with names, dims and data */
  uint32_t n_weights;
  oxla_model *model;
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t changed;
  ifi_io *io; /* NULL: not set, or set wrongly */
  ifi_job *jobs;
  uint32_t n_jobs, n_idle, n_running; /* waiting for a thread; threads without a job; runs that are not done */
  bool closing;
  pthread_t *threads;
  uint32_t n_threads, threads_capacity;
} ifi_graph;

/* Ends and joins the threads; no run may be under way. */
void ifi_graph_stop(ifi_graph *g);

#endif
