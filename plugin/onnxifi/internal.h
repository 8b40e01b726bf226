/* internal.h - what the files of libonnxifi-xla.so and libfoxi-xla.so share: live handles, backends, events, translated
 * errors.  One core (the other .c files of this folder) stands behind two binary interfaces, ONNXIFI 1.0 (onnxifi.c)
 * and foxi (foxi*.c); each library has one of them.  Both are clients of onnx-xla.h. */
#ifndef PLUGIN_ONNXIFI_INTERNAL_H
#define PLUGIN_ONNXIFI_INTERNAL_H

#include <stdbool.h>

#include "plugin/api/onnx-xla.h"
#include "plugin/onnxifi/onnxifi.h"

/* --- the binary interface --- */

typedef struct ifi_id {
  const char *backend, *name; /* as oxla_options.backend; for people */
  bool is_reference;          /* it is not meant to be fast */
} ifi_id;

/* What differs between the two. */
typedef struct ifi_abi {
  const char *library;    /* for messages */
  const char *extensions; /* as ONNXIFI_BACKEND_EXTENSIONS tells */
  const ifi_id *ids;
  size_t n_ids;
  uint64_t max_optimization; /* the last goal that it has a number for */
  size_t descriptor_bytes;   /* the tag is the first field of every descriptor */
  /* A descriptor as the core has it.  What it has no field for is refused. */
  onnxStatus (*read_descriptor)(const void *descriptor, onnxTensorDescriptorV1 *out);
  /* Writes into the model what a weight's descriptor tells of its type; NULL where the model is right. */
  void (*set_input_type)(void *model, size_t size, const char *name, onnxEnum type);
  bool fills_batches; /* inputs may come with a smaller first dimension than declared: the rest is zeros */
} ifi_abi;

extern const ifi_abi ifi_the_abi;

/* --- objects behind handles --- */

typedef enum ifi_kind { IFI_BACKEND = 1, IFI_EVENT, IFI_GRAPH } ifi_kind;

/* The head of every object.  A live handle holds one reference, whoever works with the object another. */
typedef struct ifi_object {
  ifi_kind kind;
  _Atomic uint32_t references;
  void (*destroy)(struct ifi_object *o);
} ifi_object;

/* A new object has the one reference that its handle will hold. */
void ifi_object_init(ifi_object *o, ifi_kind kind, void (*destroy)(ifi_object *));
void ifi_retain(ifi_object *o);
void ifi_release(ifi_object *o); /* NULL is allowed */

/* Handles are numbers that never come back: one that is NULL, released, made up, of another kind or of another library
 * is known as such.  NULL when there is no memory for one more. */
void *ifi_handle_create(ifi_object *o);
/* The object with a reference for the caller; NULL if the handle is no live one of that kind. */
void *ifi_handle_get(void *handle, ifi_kind kind);
/* The same, and the handle is dead from now on: the caller has its reference. */
void *ifi_handle_take(void *handle, ifi_kind kind);

/* --- backends --- */

typedef struct ifi_backend {
  ifi_object object;
  const char *name; /* as oxla_options.backend */
  const char *tune; /* the same for the optimization goal */
  int threads;
  uint64_t log_level;
} ifi_backend;

/* Returns NULL if there is no such ID. */
const ifi_id *ifi_id_of(onnxBackendID id);

/* What all cores do in a second; 0 means unknown. */
typedef struct ifi_rates {
  uint64_t macs;  /* multiply-adds of f32 */
  uint64_t bytes; /* read from memory */
} ifi_rates;

onnxStatus ifi_measure_rates(ifi_rates *out);

/* What backends that are made from now on begin with; the properties of onnxInitBackend come after. */
typedef struct ifi_defaults {
  _Atomic int threads; /* 0 means all cores */
  _Atomic uint64_t log_level;
} ifi_defaults;

extern ifi_defaults ifi_the_defaults;

/* --- errors and the log --- */

/* What the error means to an ONNXIFI client; frees it.  SUCCESS for NULL. */
onnxStatus ifi_status(oxla_error *error);
/* The same for errors that the client's descriptors cause: INVALID_ARGUMENT is a mismatch then. */
onnxStatus ifi_descriptor_status(oxla_error *error);
/* A line on standard error, where the backend's log level wants such. */
void ifi_log(const ifi_backend *b, uint64_t level, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same for a failure, with its message; gives the error back. */
oxla_error *ifi_log_error(const ifi_backend *b, const char *what, oxla_error *error);

/* --- tensor descriptors --- */

/* The client's list, in the ABI's layout. */
typedef struct ifi_list {
  uint32_t n;
  const void *descriptors;
} ifi_list;

/* As an array, which the caller frees; NULL after a failure.  All tags are checked before any other field. */
onnxStatus ifi_read_list(const ifi_list *list, onnxTensorDescriptorV1 **out);
/* All that a descriptor's own fields can be wrong about, but its tag and its name.  Weights must not be empty. */
onnxStatus ifi_check_descriptor(const onnxTensorDescriptorV1 *d, bool is_weight);
/* As onnx-xla wants it, after the check; dims has room for OXLA_MAX_RANK. */
void ifi_get_dims(const onnxTensorDescriptorV1 *d, int64_t *dims);
/* Bytes of the descriptor's array, after the check. */
size_t ifi_descriptor_bytes(const onnxTensorDescriptorV1 *d);

/* --- events --- */

typedef struct ifi_event ifi_event;

enum { IFI_MESSAGE = 512 }; /* bytes of the longest message that an event keeps */

/* promised: a run will signal it, whatever becomes of the handle.  Returns NULL if there is no memory. */
ifi_event *ifi_event_create(bool promised);
ifi_object *ifi_event_object(ifi_event *e);
/* With what came of the run, NULL where there is nothing to say.  false: it was signalled before. */
bool ifi_event_signal(ifi_event *e, onnxStatus outcome, const char *message);

typedef enum ifi_waited {
  IFI_SIGNALLED,
  IFI_ABANDONED, /* released before it was signalled, so that nobody can any more */
  IFI_LATE
} ifi_waited;

/* milliseconds 0: as long as it takes. */
ifi_waited ifi_event_wait(ifi_event *e, uint32_t milliseconds);
/* Of a signalled event; message has room for IFI_MESSAGE bytes. */
onnxStatus ifi_event_outcome(ifi_event *e, char *message);

#endif
