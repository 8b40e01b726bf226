/* run.c - onnxRunGraph.  Runs wait for their input event on threads of their graph, so that the call returns at once
 * and runs do not block each other. */
#include <stdlib.h>
#include <time.h>

#include "plugin/onnxifi/graph.h"

/* --- threads --- */

/* Returns the microseconds since the epoch. */
static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void destroy_job(ifi_job *job) {
  ifi_release(ifi_event_object(job->before));
  ifi_release(ifi_event_object(job->after));
  ifi_io_release(job->io);
  free(job);
}

/* Waits for the input event, runs, and signals the output event, also if the run fails: ONNXIFI 1.0 has no way to
 * report that failure; in foxi the event has a status. */
static void run_job(const ifi_graph *g, ifi_job *job) {
  char message[IFI_MESSAGE] = "the input event was released before it was signalled";
  onnxStatus s = ONNXIFI_STATUS_INVALID_EVENT;
  if (!job->before || ifi_event_wait(job->before, 0) == IFI_SIGNALLED) {
    uint64_t start = now();
    s = ifi_io_execute(g, job->io, message);
    uint64_t end = now();
    ifi_log(g->backend, ONNXIFI_LOG_LEVEL_DEBUG, "run: %llu microseconds", (unsigned long long)(end - start));
    if (job->callback.ran) {
      job->callback.ran(job->callback.data, start, end);
    }
  }
  ifi_event_signal(job->after, s, message);
  destroy_job(job);
}

static void *work(void *data) {
  ifi_graph *g = data;
  pthread_mutex_lock(&g->lock);
  for (;;) {
    g->n_idle++;
    while (!g->jobs && !g->closing) {
      pthread_cond_wait(&g->changed, &g->lock);
    }
    g->n_idle--;
    ifi_job *job = g->jobs;
    if (!job) {
      break;
    }
    g->jobs = job->next;
    g->n_jobs--;
    pthread_mutex_unlock(&g->lock);
    run_job(g, job);
    pthread_mutex_lock(&g->lock);
    g->n_running--;
    pthread_cond_broadcast(&g->changed);
  }
  pthread_mutex_unlock(&g->lock);
  return NULL;
}

/* Starts a thread, which counts itself as idle as soon as it gets the lock.  Returns false on failure.  The caller
 * holds the lock. */
static bool start_thread(ifi_graph *g) {
  if (g->n_threads == g->threads_capacity) {
    uint32_t capacity = g->threads_capacity ? 2 * g->threads_capacity : 4;
    pthread_t *threads = realloc(g->threads, capacity * sizeof *threads);
    if (!threads) {
      return false;
    }
    g->threads = threads;
    g->threads_capacity = capacity;
  }
  bool started = pthread_create(&g->threads[g->n_threads], NULL, work, g) == 0;
  g->n_threads += started;
  return started;
}

void ifi_graph_stop(ifi_graph *g) {
  pthread_mutex_lock(&g->lock);
  g->closing = true;
  pthread_cond_broadcast(&g->changed);
  pthread_mutex_unlock(&g->lock);
  for (uint32_t k = 0; k < g->n_threads; k++) {
    pthread_join(g->threads[k], NULL);
  }
}

/* --- the interface --- */

/* Appends a job.  Jobs may wait for events in any order, so each needs a thread of its own: a thread is started if
 * there are not more idle threads than jobs that wait for one.  Returns false if that fails.  The caller holds the
 * lock. */
static bool add_job(ifi_graph *g, ifi_job *job) {
  if (g->n_jobs >= g->n_idle && !start_thread(g)) {
    return false;
  }
  ifi_job **end = &g->jobs;
  while (*end) {
    end = &(*end)->next;
  }
  *end = job;
  g->n_jobs++;
  g->n_running++;
  pthread_cond_broadcast(&g->changed);
  return true;
}

/* Queues a job.  If job->io is NULL, it is set to the graph's inputs and outputs. */
static onnxStatus enqueue(ifi_graph *g, ifi_job *job) {
  pthread_mutex_lock(&g->lock);
  onnxStatus s = g->closing           ? ONNXIFI_STATUS_INVALID_GRAPH
                 : !job->io && !g->io ? ONNXIFI_STATUS_UNIDENTIFIED_NAME
                                      : ONNXIFI_STATUS_SUCCESS;
  if (!s && !job->io) {
    job->io = g->io;
    job->io->references++;
  }
  if (!s) {
    s = add_job(g, job) ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_NO_SYSTEM_RESOURCES;
  }
  pthread_mutex_unlock(&g->lock);
  return s;
}

static bool has_io(ifi_graph *g) {
  pthread_mutex_lock(&g->lock);
  bool there = g->io;
  pthread_mutex_unlock(&g->lock);
  return there;
}

/* Creates the output event and queues a copy of `wanted`.  Takes over the references in `wanted`, also after a failure.
 */
static onnxStatus start(ifi_graph *g, ifi_job wanted, onnxEvent *out) {
  ifi_job *job = calloc(1, sizeof *job);
  wanted.after = ifi_event_create(true);
  *out = job && wanted.after ? ifi_handle_create(ifi_event_object(wanted.after)) : NULL;
  if (!*out) {
    ifi_release(ifi_event_object(wanted.before));
    ifi_release(ifi_event_object(wanted.after));
    ifi_io_release(wanted.io);
    free(job);
    return ONNXIFI_STATUS_NO_SYSTEM_MEMORY;
  }
  ifi_retain(ifi_event_object(wanted.after)); /* the job's reference; the handle has another */
  *job = wanted;
  onnxStatus s = enqueue(g, job);
  if (s) {
    ifi_release(ifi_handle_take(*out, IFI_EVENT));
    *out = NULL;
    destroy_job(job);
  }
  return s;
}

onnxStatus ifi_graph_run_with(ifi_graph *g, ifi_io *io, ifi_completion_callback callback, onnxEvent *after) {
  return start(g, (ifi_job){.io = io, .callback = callback}, after);
}

onnxStatus ifi_check_fence_type(onnxEnum type) {
  return type == ONNXIFI_SYNCHRONIZATION_EVENT      ? ONNXIFI_STATUS_SUCCESS
         : type == ONNXIFI_SYNCHRONIZATION_IMPLICIT ? ONNXIFI_STATUS_UNSUPPORTED_FENCE_TYPE
                                                    : ONNXIFI_STATUS_INVALID_FENCE_TYPE;
}

static onnxStatus check_and_run(ifi_graph *g, const onnxMemoryFenceV1 *inputFence, onnxMemoryFenceV1 *outputFence) {
  onnxStatus s = ifi_check_fence_type(inputFence->type);
  s = s ? s : ifi_check_fence_type(outputFence->type);
  if (s) {
    return s;
  }
  ifi_event *before = ifi_handle_get(inputFence->event, IFI_EVENT);
  if (!before) {
    return ONNXIFI_STATUS_INVALID_EVENT;
  }
  if (!has_io(g)) {
    ifi_release(ifi_event_object(before));
    return ONNXIFI_STATUS_UNIDENTIFIED_NAME;
  }
  return start(g, (ifi_job){.before = before}, &outputFence->event);
}

onnxStatus onnxRunGraph(onnxGraph graph, const onnxMemoryFenceV1 *inputFence, onnxMemoryFenceV1 *outputFence) {
  if (!graph) {
    return ONNXIFI_STATUS_INVALID_GRAPH;
  }
  if (!inputFence || !outputFence) {
    return ONNXIFI_STATUS_INVALID_POINTER;
  }
  if (inputFence->tag != ONNXIFI_TAG_MEMORY_FENCE_V1 || outputFence->tag != ONNXIFI_TAG_MEMORY_FENCE_V1) {
    return ONNXIFI_STATUS_UNSUPPORTED_TAG;
  }
  ifi_graph *g = ifi_handle_get(graph, IFI_GRAPH);
  if (!g) {
    return ONNXIFI_STATUS_INVALID_GRAPH;
  }
  onnxStatus s = check_and_run(g, inputFence, outputFence);
  if (s && outputFence->type == ONNXIFI_SYNCHRONIZATION_EVENT) {
    outputFence->event = NULL;
  }
  ifi_release(&g->object);
  return s;
}
