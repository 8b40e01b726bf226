/* internal.h - declarations that the files of the C API share. */
#ifndef PLUGIN_API_INTERNAL_H
#define PLUGIN_API_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/memory_span.h"
#include "plugin/api/onnx-xla.h"
#include "plugin/session/session.h"

/* Memory that oxla_free_output frees: an output that was taken from a run, or memory of oxla_device_allocate. */
typedef struct api_taken {
  struct api_taken *next;
  void *data;
  size_t bytes;
  bool on_device;
} api_taken;

struct oxla_model {
  session *session;
  oxla_log_fn *log;
  void *log_data;
  pthread_mutex_t lock; /* guards the list `taken` */
  api_taken *taken;
  _Atomic uint32_t users; /* the caller, until oxla_model_destroy, and outputs that were taken as DLPack's tensors */
};

/* The thread of a run, on which executions that oxla_start begins take place. */
typedef struct api_worker api_worker;

/* The bits of oxla_run.cancelled.  If cancelling is switched on during an execution, it stays on for this execution
 * even if it is switched off before the execution notices it.  The reason is that the parts of an execution read the
 * bits at different times, and all parts must find the same. */
typedef enum api_cancel {
  API_CANCEL_ON = 1,  /* the last oxla_cancel switched it on */
  API_CANCEL_MET = 2, /* it was on at some time since api_begin */
} api_cancel;

/* A carried output and its input between two executions of a run. */
typedef struct api_carried {
  /* The memory of the input's value; the shape of the input says which part of it is defined.  memory.own is NULL
   * before the first execution, and from the time when the caller sets the input until the next execution copies its
   * value. */
  session_output memory;
  int64_t room; /* the extent of the memory along the dimension along which the output grows; 1 if it does not grow */
} api_carried;

struct oxla_run {
  oxla_model *model;
  shape *shapes;                    /* the shapes of the inputs that are set */
  const shape **set;                /* for each input its shape, or NULL if it is not set */
  const void **data;                /* for each input its data in host memory; NULL if it is on the device */
  const void **device_data;         /* for each input its address in device memory; NULL if it is on the host */
  literal_list *lists;              /* for each input that is set to a sequence its elements */
  struct DLManagedTensor **tensors; /* for each input the tensor that oxla_set_input_dlpack was given, which
                                       owns its data, or NULL */
  session_output *kept;             /* for each input the run's memory for a copy of its data (oxla_keep_inputs) */
  session_output *outputs;
  api_carried *carried; /* one for each carried output (session_carried) */
  int64_t room;         /* the room of carried outputs that grow, which the session raises (session_inputs.room) */
  bool resized;         /* whether shapes of carried inputs have changed since `compiled` was looked up */
  memory_span *spans;   /* scratch memory of check_memory in run.c: a span for each input and output */
  bool executed; /* whether `outputs` has the results of the last execution; false again when an input gets another
                    shape, and when the run is compiled or another execution begins */
  bool has_seed;
  uint64_t seed;
  double max_seconds;              /* 0 means the limit of the session */
  const session_program *compiled; /* the program for the present inputs; NULL if it was not looked up yet */
  _Atomic int cancelled;           /* bits of api_cancel; 0 means that the run continues */
  api_worker *worker;              /* NULL if oxla_start was never called */
  /* The numbers of strings that oxla_string_number and executions have added to the model's, and their memory; NULL as
   * long as there are none. */
  struct string_table *strings;
  arena *string_memory;
};

/* Converts a status to an oxla_error, which is the same object under another name. */
static inline oxla_error *api_error(status s) { return (oxla_error *)s; }

/* Makes and checks the shape that a caller describes.  `name` is for messages. */
STATUS_MUST_USE status api_shape(const char *name, oxla_type type, int rank, const int64_t *dims, shape *out);
/* Returns a shape in the form that callers get. */
oxla_tensor api_tensor(const shape *s);
/* Returns the kind of a value in the form that callers get; `element` is the kind of a sequence's elements. */
oxla_kind api_kind(shape_kind kind, shape_kind element);
/* Sets input k to a value of that shape, which is checked against the declaration.  If it is a sequence, `data` is the
 * address of a literal_list. */
STATUS_MUST_USE status api_put_input(oxla_run *run, size_t k, const shape *s, const void *data, bool on_device);
/* Frees the list of the elements of input k, if it is set to a sequence. */
void api_drop_list(oxla_run *run, size_t input);

/* Creates run->strings if the model has strings, or runs segment by segment, so that it may make some, and the run has
 * no table yet.  The run is compiled. */
STATUS_MUST_USE status api_need_strings(oxla_run *run);
/* Executes the run.  Must be called after api_begin. */
STATUS_MUST_USE status api_execute(oxla_run *run);
/* Prepares an execution: checks that every input is set and that the memory that callers gave for outputs may be
 * written, finds or compiles the program for the inputs, and places the carried inputs (api_place_carried).  Sets
 * *inputs to what the session needs for the execution.  Must be called after api_begin. */
STATUS_MUST_USE status api_prepare(oxla_run *run, session_inputs *inputs);
/* Must be called before an execution or compilation.  If cancelling is on (oxla_cancel), what follows is cancelled;
 * that it was switched on and off again earlier has no effect.  Fails if an execution is in progress in the
 * background. */
STATUS_MUST_USE status api_begin(oxla_run *run);
/* Fails if an execution is in progress in the background. */
STATUS_MUST_USE status api_check_idle(const oxla_run *run);
/* Waits until the worker's execution is over and ends its thread.  NULL is allowed. */
void api_worker_destroy(api_worker *w);
/* --- carried outputs (carry.c) --- */

/* Return the index in run->carried of the carried output that is the model's output `output`, or whose input is the
 * model's input `input`.  If there is none, they return the number of carried outputs. */
uint32_t api_carried_output(const oxla_run *run, size_t output);
uint32_t api_carried_input(const oxla_run *run, size_t input);
/* Returns true if the input is carried and its value is in memory of run->carried. */
bool api_is_carried(const oxla_run *run, size_t input);
/* Forgets the value of an input which the caller sets anew. */
void api_drop_carried(oxla_run *run, size_t input);
/* Puts the values of carried inputs into memory of the run.  The memory gets the room that the program run->compiled
 * expects.  Must be called before each execution. */
STATUS_MUST_USE status api_place_carried(oxla_run *run);
/* Makes carried outputs the values of their inputs.  Must be called after each execution. */
void api_advance_carried(oxla_run *run);
/* Sets run->outputs[k].data to a copy of the model's output k, which is carried and has the shape *s.  The copy has no
 * room to grow.  Does nothing if run->outputs[k].data is set already.  Fails if the caller has set the input anew,
 * since the output's value is then lost. */
STATUS_MUST_USE status api_pack_carried(oxla_run *run, uint32_t k, const shape *s);
void api_free_carried(oxla_run *run);

/* --- inputs and outputs, for other ways of passing them (run.c) --- */

/* Find an input or output by its name. */
STATUS_MUST_USE status api_find_input(const oxla_run *run, const char *name, uint32_t *out);
STATUS_MUST_USE status api_find_output(const oxla_run *run, const char *name, uint32_t *out);
/* Implements oxla_set_input_at, and if on_device is set, oxla_set_device_input_at. */
STATUS_MUST_USE status api_set_input(oxla_run *run, size_t k, oxla_type type, int rank, const int64_t *dims,
                                     const void *data, bool on_device);
/* Implement oxla_get_output_at and oxla_take_output. */
STATUS_MUST_USE status api_get_output(const oxla_run *run, size_t k, oxla_tensor *out);
STATUS_MUST_USE status api_take_output(oxla_run *run, const oxla_tensor *output);
/* Adds `t` to the model's list of taken outputs, in which oxla_free_output finds it. */
void api_remember_taken(oxla_model *model, api_taken *t);
/* Returns what oxla_model_device sets *out to. */
oxla_device api_device(const oxla_model *model);
/* Calls the deleter of the tensor to which oxla_set_input_dlpack set input k, if there is one. */
void api_drop_tensor(oxla_run *run, size_t k);

/* Removes a user of the model (oxla_model.users), and frees the model with its last user. */
void api_release_model(oxla_model *model);

/* Frees the memory in the list `taken` of the model. */
void api_free_taken(oxla_model *model);

#endif
