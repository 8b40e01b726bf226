/* internal.h - what the files of the C API share. */
#ifndef PLUGIN_API_INTERNAL_H
#define PLUGIN_API_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "plugin/api/onnx-xla.h"
#include "plugin/session/session.h"

/* An output that its taker has not freed yet. */
typedef struct api_taken {
  struct api_taken *next;
  void *data;
  size_t bytes;
} api_taken;

struct oxla_model {
  session *session;
  oxla_log_fn *log;
  void *log_data;
  pthread_mutex_t lock; /* guards taken */
  api_taken *taken;
};

/* What oxla_start gives work to: a thread of the run's. */
typedef struct api_worker api_worker;

/* A request stays for the execution that it met, even if it is taken back before anyone has seen it: parts of an
 * execution ask at different times, and all must get the same answer. */
typedef enum api_cancel {
  API_CANCEL_ON = 1,  /* as oxla_cancel left it */
  API_CANCEL_MET = 2, /* it was on at some time since api_begin */
} api_cancel;

struct oxla_run {
  oxla_model *model;
  shape *shapes;     /* of the inputs that are set */
  const shape **set; /* by input: its shape, or NULL */
  const void **data;
  session_output *kept; /* memory for inputs of its own */
  session_output *outputs;
  bool executed; /* outputs are of the inputs as they are */
  bool has_seed;
  uint64_t seed;
  double max_seconds;              /* 0 means the session's */
  const session_program *compiled; /* for the inputs as they are; NULL means to be found */
  _Atomic int cancelled;           /* bits of api_cancel; 0 means the run goes on */
  api_worker *worker;              /* NULL: never started */
};

/* A status that is not NULL is an oxla_error under another name. */
static inline oxla_error *api_error(status s) { return (oxla_error *)s; }

/* A shape as a caller gives it. */
STATUS_MUST_USE status api_shape(const char *name, oxla_type type, int rank, const int64_t *dims, shape *out);
/* A shape as callers get it. */
oxla_tensor api_tensor(const shape *s);

/* What oxla_execute does, after api_begin. */
STATUS_MUST_USE status api_execute(oxla_run *run);
/* Checks that every input is there and makes the program for them, so that the session can run it; after api_begin. */
STATUS_MUST_USE status api_prepare(oxla_run *run, session_inputs *inputs);
/* Begins an execution or compilation: nothing may go on in the background, and of former requests to cancel only one
 * that is still on counts. */
STATUS_MUST_USE status api_begin(oxla_run *run);
/* That nothing goes on in the background. */
STATUS_MUST_USE status api_check_idle(const oxla_run *run);
/* Ends its thread, when what it does is over.  NULL is allowed. */
void api_worker_destroy(api_worker *w);
/* Frees what nobody has freed. */
void api_free_taken(oxla_model *model);

#endif
