/* onnxifi_parts.h - what the files of libonnxifi-xla.so share: live handles, backends, events, translated errors.  The
 * library is a client of onnx-xla.h. */
#ifndef PLUGIN_ONNXIFI_PARTS_H
#define PLUGIN_ONNXIFI_PARTS_H

#include <stdbool.h>

#include "plugin/onnx-xla.h"
#include "plugin/onnxifi.h"

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
void ifi_release(ifi_object *o); /* NULL is fine */

/* Handles are numbers that never come back: one that is NULL, released, made up or of another kind is always known as such.
 * NULL when there is no memory for one more. */
void *ifi_handle_create(ifi_object *o);
/* The object with a reference for the caller; NULL if the handle is no live one of that kind. */
void *ifi_handle_get(void *handle, ifi_kind kind);
/* The same, and the handle is dead from now on: the caller has its reference. */
void *ifi_handle_take(void *handle, ifi_kind kind);

/* --- backends --- */

typedef struct ifi_backend {
  ifi_object object;
  const char *name; /* as oxla_options.backend */
} ifi_backend;

/* What the error means to an ONNXIFI client; frees it.  SUCCESS for NULL. */
onnxStatus ifi_status(oxla_error *error);
/* The same for errors that the client's descriptors cause: INVALID_ARGUMENT is a mismatch then. */
onnxStatus ifi_descriptor_status(oxla_error *error);
/* Writes the message to standard error (every log level of the standard wants errors) and gives the error back. */
oxla_error *ifi_log(const ifi_backend *b, const char *what, oxla_error *error);

/* --- tensor descriptors --- */

/* All that a descriptor's own fields can be wrong about, but its name.  Weights must not be empty. */
onnxStatus ifi_check_descriptor(const onnxTensorDescriptorV1 *d, bool is_weight);
/* As onnx-xla wants it, after the check; dims has room for OXLA_MAX_RANK. */
void ifi_get_dims(const onnxTensorDescriptorV1 *d, int64_t *dims);
/* Bytes of the descriptor's array, after the check. */
size_t ifi_descriptor_bytes(const onnxTensorDescriptorV1 *d);

/* --- events --- */

typedef struct ifi_event ifi_event;

/* promised: a run will signal it, whatever becomes of the handle.  NULL: no memory. */
ifi_event *ifi_event_create(bool promised);
ifi_object *ifi_event_object(ifi_event *e);
/* false: it was signalled before. */
bool ifi_event_signal(ifi_event *e);
/* false: the event was released before it was signalled, so that nobody can any more. */
bool ifi_event_wait(ifi_event *e);

#endif
