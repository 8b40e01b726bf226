/* foxi.h - the binary interface of foxi, the variant of ONNXIFI that PyTorch's Caffe2 and Glow use, as libfoxi-xla.so
 * exports it.  It has the tags, names and statuses of ONNXIFI 1.0, but its descriptors are longer and its onnxInitGraph
 * has two more arguments.  A program cannot find that out at run time, so a client of one interface must never open a
 * library of the other.
 *
 * Extension functions are found with onnxGetExtensionFunctionAddress, by the names of their types below. */
#ifndef FOXI_H
#define FOXI_H 1

#include "onnxifi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ONNXIFI_STATUS_FATAL_ERROR 0x0407
#define ONNXIFI_OPTIMIZATION_AOT 4

/* The keys of onnxInitGraph's property list, which have no values. */
#define ONNXIFI_GRAPH_PROPERTY_AUTO_INSTRUMENT_NODES 1
#define ONNXIFI_GRAPH_PROPERTY_AOT ONNXIFI_OPTIMIZATION_AOT

/* foxi's onnxTensorDescriptorV1. */
typedef struct foxiTensorDescriptorV1 {
  int32_t tag; /* ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1 */
  const char *name;
  onnxEnum dataType;
  onnxEnum memoryType;
  uint32_t dimensions;   /* the number of dimensions */
  const uint64_t *shape; /* `dimensions` sizes in elements */
  uint32_t quantizationAxis;
  uint64_t quantizationParams; /* the number of scales and biases; 0 if the array is not quantised */
  const float *scales;
  const int32_t *biases;
  uint8_t isOffline;  /* whether the array is read later, by deferredWeightReader */
  onnxPointer buffer; /* as in onnxifi.h */
} foxiTensorDescriptorV1;

#define ONNXIFI_TRACE_EVENT_NAME_SIZE 32

typedef struct onnxTraceEvent {
  char eventName[ONNXIFI_TRACE_EVENT_NAME_SIZE + 1];
  char eventType;     /* 'B' for a begin, 'E' for an end, 'I' for an instant, 'X' for an event with a duration */
  uint64_t timestamp; /* microseconds since the epoch */
  uint32_t tid;
  uint64_t duration; /* microseconds, for 'X' */
} onnxTraceEvent;

typedef struct onnxTraceEventList {
  uint64_t numEvents;
  onnxTraceEvent **traceEvents;
} onnxTraceEventList;

typedef onnxStatus(ONNXIFI_ABI *onnxExtensionFunctionPointer)(void);

/* --- exported: the functions of onnxifi.h whose arguments differ here --- */

/* Like onnxInitGraph of ONNXIFI 1.0.  The property AOT changes nothing, and AUTO_INSTRUMENT_NODES is refused. Quantised
 * and offline weights are refused, too; maxSeqLength and deferredWeightReader are not used. */
ONNXIFI_FUNCTION(onnxInitGraph, onnxBackend backend, const uint64_t *auxPropertiesList, size_t onnxModelSize,
                 const void *onnxModel, uint32_t weightsCount, const foxiTensorDescriptorV1 *weightDescriptors,
                 onnxGraph *graph, uint32_t maxSeqLength, void *deferredWeightReader);
/* Like onnxSetGraphIO of ONNXIFI 1.0.  In addition, the first dimension of an input may be smaller than the model
 * declares: the rows that are missing are then zeros. */
ONNXIFI_FUNCTION(onnxSetGraphIO, onnxGraph graph, uint32_t inputsCount, const foxiTensorDescriptorV1 *inputDescriptors,
                 uint32_t outputsCount, const foxiTensorDescriptorV1 *outputDescriptors);
/* Sets *function to the extension function `name`, such as "onnxSetIOAndRunGraphFunction".  If there is none of this
 * name, *function is NULL and the status is UNIDENTIFIED_NAME. */
ONNXIFI_FUNCTION(onnxGetExtensionFunctionAddress, onnxBackendID backendID, const char *name,
                 onnxExtensionFunctionPointer *function);

/* --- extension functions --- */

/* Does onnxSetGraphIO and onnxRunGraph in one call, for inputs that are ready.  The inputs and outputs that
 * onnxSetGraphIO has set for the graph do not change.  Several threads may call this for one graph at the same time.
 * traceEvents, which may be NULL, is filled in before the output event is signalled, and must remain valid until then.
 * The caller frees its events with onnxReleaseTraceEvents, and the output event with onnxReleaseEvent. */
typedef onnxStatus(ONNXIFI_ABI *onnxSetIOAndRunGraphFunction)(
    onnxGraph graph, uint32_t inputsCount, const foxiTensorDescriptorV1 *inputDescriptors, uint32_t outputsCount,
    const foxiTensorDescriptorV1 *outputDescriptors, onnxMemoryFenceV1 *outputFence, onnxTraceEventList *traceEvents);
/* Frees the events of a list and makes the list empty.  The list itself belongs to the caller. */
typedef onnxStatus(ONNXIFI_ABI *onnxReleaseTraceEventsFunction)(onnxTraceEventList *traceEvents);
/* Waits for an event, at most timeoutMs milliseconds; 0 means without limit.  If the event is signalled, *eventStatus
 * is the status of its run and `message` gets the run's error message.  After a timeout the call succeeds and the state
 * is NONSIGNALLED.  *messageLength is the room for the message in bytes on entry, and the length of what was written,
 * without the terminating NUL, on return.  `message` may be NULL; *messageLength is then the length of the whole
 * message. */
typedef onnxStatus(ONNXIFI_ABI *onnxWaitEventForFunction)(onnxEvent event, uint32_t timeoutMs,
                                                          onnxEventState *eventState, onnxStatus *eventStatus,
                                                          char *message, size_t *messageLength);
/* Gets the first dimension of the first input of this thread's last onnxSetIOAndRunGraph; 0 if there was none. */
typedef onnxStatus(ONNXIFI_ABI *onnxGetCurrentBatchSizeFunction)(int64_t *currentBatchSize);
/* Sets an option of backends that are initialised later: "threads" (0: all cores) or "log_level" (1 debug to 4
 * error). */
typedef onnxStatus(ONNXIFI_ABI *onnxSetOptionFunction)(const char *optionName, const char *optionValue);
/* Writes the value of an option as text to optionValue.  *optionValueLength is the room in bytes on entry, and the
 * bytes that the text needs, with its NUL, on return.  Returns FALLBACK if there is not enough room. */
typedef onnxStatus(ONNXIFI_ABI *onnxGetOptionFunction)(const char *optionName, char *optionValue,
                                                       size_t *optionValueLength);

#ifdef __cplusplus
}
#endif

#endif
