/* internal.h - what the files of libonnxifi-xla.so and libfoxi-xla.so share: live handles, backends, events and
 * translated errors.  One core (the other .c files of this folder) implements two binary interfaces, ONNXIFI 1.0
 * (onnxifi.c) and foxi (foxi*.c); each library has one of them.  Both are clients of onnx-xla.h. */
#ifndef PLUGIN_ONNXIFI_INTERNAL_H
#define PLUGIN_ONNXIFI_INTERNAL_H

#include <stdbool.h>

#include "plugin/api/onnx-xla.h"
#include "plugin/onnxifi/onnxifi.h"

/* --- the binary interface --- */

typedef struct ifi_gpu {
  int number; /* the number of the GPU in CUDA, counted from 0 */
  oxla_gpu described;
} ifi_gpu;

typedef struct ifi_id {
  const char *backend, *name; /* the value of oxla_options.backend, and the name that clients see */
  bool is_reference;          /* whether it is the reference evaluator, which is slow */
  const ifi_gpu *gpu;         /* NULL: the backend computes on the CPU */
} ifi_id;

/* What differs between the two interfaces. */
typedef struct ifi_abi {
  const char *library;    /* the library's name in messages */
  const char *extensions; /* the text of ONNXIFI_BACKEND_EXTENSIONS */
  const ifi_id *ids;      /* the backends that there are on every machine */
  size_t n_ids;
  uint64_t max_optimization; /* the largest number of an optimization goal */
  size_t descriptor_bytes;   /* the size of a descriptor, whose first field is the tag */
  /* Converts a descriptor to that of the core.  Fails if it uses a field that the core does not have. */
  onnxStatus (*read_descriptor)(const void *descriptor, onnxTensorDescriptorV1 *out);
  /* Writes the type from a weight's descriptor into the model.  NULL if the model has the right types. */
  void (*set_input_type)(void *model, size_t size, const char *name, onnxEnum type);
  /* whether an input may have a smaller first dimension than declared; the other rows are then zeros */
  bool fills_batches;
} ifi_abi;

extern const ifi_abi ifi_the_abi;

/* --- objects behind handles --- */

typedef enum ifi_kind { IFI_BACKEND = 1, IFI_EVENT, IFI_GRAPH } ifi_kind;

/* The first member of every object.  A live handle holds one reference, and each function that uses the object holds
 * another meanwhile. */
typedef struct ifi_object {
  ifi_kind kind;
  _Atomic uint32_t references;
  void (*destroy)(struct ifi_object *o);
} ifi_object;

/* Initialises an object with one reference, which its handle will hold. */
void ifi_object_init(ifi_object *o, ifi_kind kind, void (*destroy)(ifi_object *));
void ifi_retain(ifi_object *o);
void ifi_release(ifi_object *o); /* o may be NULL */

/* Returns a new handle for the object; NULL if there is no memory.  Handles are numbers that are never reused, so a
 * handle that is NULL, released, invented, of another kind or of another library is recognised as invalid. */
void *ifi_handle_create(ifi_object *o);
/* Returns the object with a reference for the caller; NULL if the handle is not a live one of that kind. */
void *ifi_handle_get(void *handle, ifi_kind kind);
/* Like ifi_handle_get, but makes the handle invalid; the caller gets the reference that the handle had. */
void *ifi_handle_take(void *handle, ifi_kind kind);

/* --- backends --- */

typedef struct ifi_backend {
  ifi_object object;
  const ifi_id *id;
  const char *tune; /* for oxla_options.tune; follows from the optimization goal */
  int threads;
  uint64_t log_level;
} ifi_backend;

/* Returns the backend of an ID, which lives as long as the process; NULL if there is no such ID. */
const ifi_id *ifi_id_of(onnxBackendID id);
/* Returns the options with which models are loaded for a backend: which one it is, and the processor to compile for. */
oxla_options ifi_options_for(const ifi_id *id);

/* How much a backend can do in a second; 0 means that it is not known.  A CPU is measured with all its cores. */
typedef struct ifi_rates {
  uint64_t macs;  /* multiply-adds of f32 */
  uint64_t bytes; /* read from memory */
} ifi_rates;

onnxStatus ifi_measure_rates(ifi_rates *out);

/* The defaults of backends that are initialised later; the properties of onnxInitBackend override them. */
typedef struct ifi_defaults {
  _Atomic int threads; /* 0 means all cores */
  _Atomic uint64_t log_level;
} ifi_defaults;

extern ifi_defaults ifi_the_defaults;

/* Returns true if an input or output of the model is no tensor of numbers: ONNXIFI has no memory for strings, sequences
 * and optionals. */
bool ifi_has_other_values(const oxla_model *m);

/* --- errors and the log --- */

/* Returns the status that corresponds to the error, and frees the error.  NULL gives SUCCESS. */
onnxStatus ifi_status(oxla_error *error);
/* Like ifi_status, for errors that the client's descriptors cause: OXLA_INVALID_ARGUMENT and OXLA_INVALID_MODEL then
 * become one of the statuses MISMATCHING_*, or INVALID_NAME. */
onnxStatus ifi_descriptor_status(oxla_error *error);
/* Prints a line to standard error if the backend's log level includes `level`. */
void ifi_log(const ifi_backend *b, uint64_t level, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Logs the message of an error, if it is not NULL, and returns the error. */
oxla_error *ifi_log_error(const ifi_backend *b, const char *what, oxla_error *error);

/* --- tensor descriptors --- */

/* The client's list of descriptors, in the layout of the library's interface. */
typedef struct ifi_list {
  uint32_t n;
  const void *descriptors;
} ifi_list;

/* Converts the list to an array, which the caller frees; *out is NULL after a failure.  All tags are checked before any
 * other field. */
onnxStatus ifi_read_list(const ifi_list *list, onnxTensorDescriptorV1 **out);
/* Checks the fields of a descriptor, except the tag and the name, without comparing them with a model.  Weights must
 * not be empty. */
onnxStatus ifi_check_descriptor(const onnxTensorDescriptorV1 *d, bool is_weight);
/* Writes the shape of a checked descriptor to `dims`, which has room for OXLA_MAX_RANK numbers. */
void ifi_get_dims(const onnxTensorDescriptorV1 *d, int64_t *dims);
/* Returns the size in bytes of the array that a checked descriptor describes. */
size_t ifi_descriptor_bytes(const onnxTensorDescriptorV1 *d);

/* --- events --- */

typedef struct ifi_event ifi_event;

enum { IFI_MESSAGE = 512 }; /* bytes of the longest message that an event keeps */

/* Creates an event.  `promised` means that a run will signal it even if its handle is released.  Returns NULL if there
 * is no memory. */
ifi_event *ifi_event_create(bool promised);
ifi_object *ifi_event_object(ifi_event *e);
/* Signals the event with the status of the run and a message, which may be NULL.  Returns false if it was signalled
 * before. */
bool ifi_event_signal(ifi_event *e, onnxStatus outcome, const char *message);

typedef enum ifi_waited {
  IFI_SIGNALLED,
  IFI_ABANDONED, /* its handle was released before it was signalled, so that nobody can signal it */
  IFI_LATE       /* the time passed before it was signalled */
} ifi_waited;

/* Waits for the event; milliseconds 0 means without limit. */
ifi_waited ifi_event_wait(ifi_event *e, uint32_t milliseconds);
/* Returns the status of a signalled event and copies its message; `message` has room for IFI_MESSAGE bytes. */
onnxStatus ifi_event_outcome(ifi_event *e, char *message);

#endif
