/* foxi_extensions.c - foxi's extension functions, and the function that finds them by name. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/onnxifi/foxi_internal.h"

/* --- traces --- */

/* Fills the list with one trace event for the whole run.  The list stays empty if there is no memory. */
static void trace(void *data, uint64_t start, uint64_t end) {
  onnxTraceEventList *list = data;
  onnxTraceEvent **events = calloc(1, sizeof *events), *event = calloc(1, sizeof *event);
  if (!events || !event) {
    free(events);
    free(event);
    return;
  }
  *event = (onnxTraceEvent){.eventName = "onnx-xla run",
                            .eventType = 'X',
                            .timestamp = start,
                            .tid = (uint32_t)gettid(),
                            .duration = end - start};
  *events = event;
  *list = (onnxTraceEventList){.numEvents = 1, .traceEvents = events};
}

static onnxStatus release_trace_events(onnxTraceEventList *list) {
  if (!list) {
    return ONNXIFI_STATUS_INVALID_POINTER;
  }
  for (uint64_t k = 0; k < list->numEvents; k++) {
    free(list->traceEvents[k]);
  }
  free(list->numEvents ? list->traceEvents : NULL); /* in Caffe2, an empty list's pointer is not initialised */
  *list = (onnxTraceEventList){0};
  return ONNXIFI_STATUS_SUCCESS;
}

/* --- runs --- */

static _Thread_local int64_t batch;

static void remember_batch(uint32_t n, const foxiTensorDescriptorV1 *inputs) {
  batch = n && inputs->dimensions && inputs->shape ? (int64_t)inputs->shape[0] : 0;
}

static onnxStatus check_fence(const onnxMemoryFenceV1 *fence) {
  return !fence                                      ? ONNXIFI_STATUS_INVALID_POINTER
         : fence->tag != ONNXIFI_TAG_MEMORY_FENCE_V1 ? ONNXIFI_STATUS_UNSUPPORTED_TAG
                                                     : ifi_check_fence_type(fence->type);
}

static onnxStatus set_io_and_run(onnxGraph graph, uint32_t n_inputs, const foxiTensorDescriptorV1 *inputs,
                                 uint32_t n_outputs, const foxiTensorDescriptorV1 *outputs, onnxMemoryFenceV1 *fence,
                                 onnxTraceEventList *traces) {
  ifi_graph *g = ifi_handle_get(graph, IFI_GRAPH);
  if (!g) {
    return ONNXIFI_STATUS_INVALID_GRAPH;
  }
  if (traces) {
    *traces = (onnxTraceEventList){0};
  }
  ifi_io *io = NULL;
  onnxStatus s = check_fence(fence);
  s = s ? s : ifi_io_create(g, &(ifi_list){n_inputs, inputs}, &(ifi_list){n_outputs, outputs}, &io);
  if (!s) {
    remember_batch(n_inputs, inputs);
    s = ifi_graph_run_with(g, io, (ifi_completion_callback){traces ? trace : NULL, traces}, &fence->event);
  }
  ifi_release(&g->object);
  return s;
}

static onnxStatus wait_event_for(onnxEvent event, uint32_t milliseconds, onnxEventState *state, onnxStatus *status,
                                 char *message, size_t *length) {
  if (!state || !status || (message && !length)) {
    return ONNXIFI_STATUS_INVALID_POINTER;
  }
  *state = ONNXIFI_EVENT_STATE_INVALID;
  ifi_event *e = ifi_handle_get(event, IFI_EVENT);
  if (!e) {
    return ONNXIFI_STATUS_INVALID_EVENT;
  }
  char text[IFI_MESSAGE] = "";
  ifi_waited waited = ifi_event_wait(e, milliseconds);
  *state = waited == IFI_SIGNALLED ? ONNXIFI_EVENT_STATE_SIGNALLED : ONNXIFI_EVENT_STATE_NONSIGNALLED;
  *status = waited == IFI_SIGNALLED ? ifi_event_outcome(e, text) : ONNXIFI_STATUS_SUCCESS;
  ifi_release(ifi_event_object(e));
  if (length) {
    size_t room = message ? *length : 0;
    *length = strlen(text);
    snprintf(message, room, "%s", text);
    *length = message && *length >= room ? (room ? room - 1 : 0) : *length;
  }
  return waited == IFI_ABANDONED ? ONNXIFI_STATUS_INVALID_EVENT : ONNXIFI_STATUS_SUCCESS;
}

static onnxStatus get_current_batch_size(int64_t *size) {
  if (!size) {
    return ONNXIFI_STATUS_INVALID_POINTER;
  }
  *size = batch;
  return ONNXIFI_STATUS_SUCCESS;
}

/* --- options --- */

static onnxStatus set_option(const char *name, const char *value) {
  if (!name || !value) {
    return ONNXIFI_STATUS_INVALID_POINTER;
  }
  bool threads = strcmp(name, "threads") == 0;
  if (!threads && strcmp(name, "log_level") != 0) {
    return ONNXIFI_STATUS_INVALID_NAME;
  }
  char *end;
  long number = strtol(value, &end, 10);
  if (end == value || *end || number < (threads ? 0 : ONNXIFI_LOG_LEVEL_DEBUG) ||
      number > (threads ? 1024 : ONNXIFI_LOG_LEVEL_ERROR)) {
    return ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE;
  }
  if (threads) {
    ifi_the_defaults.threads = (int)number;
  } else {
    ifi_the_defaults.log_level = (uint64_t)number;
  }
  return ONNXIFI_STATUS_SUCCESS;
}

/* Returns FALLBACK if the value does not fit into *length bytes.  Sets *length to the bytes that the value needs,
 * including its NUL, whether it fits or not. */
static onnxStatus get_option(const char *name, char *value, size_t *length) {
  if (!name || !value || !length) {
    return ONNXIFI_STATUS_INVALID_POINTER;
  }
  bool threads = strcmp(name, "threads") == 0;
  if (!threads && strcmp(name, "log_level") != 0) {
    return ONNXIFI_STATUS_INVALID_NAME;
  }
  size_t room = *length;
  int number = threads ? ifi_the_defaults.threads : (int)ifi_the_defaults.log_level;
  *length = (size_t)snprintf(value, room, "%d", number) + 1;
  return *length > room ? ONNXIFI_STATUS_FALLBACK : ONNXIFI_STATUS_SUCCESS;
}

/* --- finding an extension function --- */

onnxStatus onnxGetExtensionFunctionAddress(onnxBackendID backendID, const char *name,
                                           onnxExtensionFunctionPointer *function) {
  static const struct {
    const char *name;
    onnxExtensionFunctionPointer function;
  } functions[] = {
/* _Generic checks that a function has the type to which clients cast the pointer. */
#define EXTENSION(name, function) \
  {#name "Function", (onnxExtensionFunctionPointer)(void (*)(void)) _Generic(&function, name##Function : &function)}
      EXTENSION(onnxSetIOAndRunGraph, set_io_and_run),
      EXTENSION(onnxReleaseTraceEvents, release_trace_events),
      EXTENSION(onnxWaitEventFor, wait_event_for),
      EXTENSION(onnxGetCurrentBatchSize, get_current_batch_size),
      EXTENSION(onnxSetOption, set_option),
      EXTENSION(onnxGetOption, get_option),
      EXTENSION(onnxGetExtensionFunctionAddress, onnxGetExtensionFunctionAddress),
#undef EXTENSION
  };
  if (!name || !function) {
    return ONNXIFI_STATUS_INVALID_POINTER;
  }
  *function = NULL;
  if (!ifi_id_of(backendID)) {
    return ONNXIFI_STATUS_INVALID_ID;
  }
  for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
    if (strcmp(name, functions[k].name) == 0) {
      *function = functions[k].function;
      return ONNXIFI_STATUS_SUCCESS;
    }
  }
  return ONNXIFI_STATUS_UNIDENTIFIED_NAME;
}
