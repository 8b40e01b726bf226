/* foxi.h - the binary interface of foxi, the ONNXIFI that PyTorch's Caffe2 and Glow speak, as libfoxi-xla.so exports
 * it.  It has the tags, names and statuses of ONNXIFI 1.0, but longer descriptors and two more arguments of
 * onnxInitGraph, which no program can find out at run time: a client of the one must never open a library of the other.
 *
 * Extension functions are asked for with onnxGetExtensionFunctionAddress, by the names of their types below. */
#ifndef FOXI_H
#define FOXI_H 1

#include "onnxifi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ONNXIFI_STATUS_FATAL_ERROR 0x0407
#define ONNXIFI_OPTIMIZATION_AOT 4

/* Of onnxInitGraph's list, which has keys without values. */
#define ONNXIFI_GRAPH_PROPERTY_AUTO_INSTRUMENT_NODES 1
#define ONNXIFI_GRAPH_PROPERTY_AOT ONNXIFI_OPTIMIZATION_AOT

/* onnxTensorDescriptorV1 of foxi. */
typedef struct foxiTensorDescriptorV1 {
  int32_t tag; /* ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1 */
  const char *name;
  onnxEnum dataType;
  onnxEnum memoryType;
  uint32_t dimensions;
  const uint64_t *shape;
  uint32_t quantizationAxis;
  uint64_t quantizationParams; /* how many scales and biases; 0: not quantized */
  const float *scales;
  const int32_t *biases;
  uint8_t isOffline; /* the array comes later, from deferredWeightReader */
  onnxPointer buffer;
} foxiTensorDescriptorV1;

#define ONNXIFI_TRACE_EVENT_NAME_SIZE 32

typedef struct onnxTraceEvent {
  char eventName[ONNXIFI_TRACE_EVENT_NAME_SIZE + 1];
  char eventType;     /* 'B' begin, 'E' end, 'I' an instant, 'X' one with a duration */
  uint64_t timestamp; /* microseconds since the epoch */
  uint32_t tid;
  uint64_t duration; /* microseconds, of 'X' */
} onnxTraceEvent;

typedef struct onnxTraceEventList {
  uint64_t numEvents;
  onnxTraceEvent **traceEvents;
} onnxTraceEventList;

typedef onnxStatus(ONNXIFI_ABI *onnxExtensionFunctionPointer)(void);

/* --- exported: the functions of onnxifi.h, with other arguments here --- */

ONNXIFI_FUNCTION(onnxInitGraph, onnxBackend backend, const uint64_t *auxPropertiesList, size_t onnxModelSize,
                 const void *onnxModel, uint32_t weightsCount, const foxiTensorDescriptorV1 *weightDescriptors,
                 onnxGraph *graph, uint32_t maxSeqLength, void *deferredWeightReader);
ONNXIFI_FUNCTION(onnxSetGraphIO, onnxGraph graph, uint32_t inputsCount, const foxiTensorDescriptorV1 *inputDescriptors,
                 uint32_t outputsCount, const foxiTensorDescriptorV1 *outputDescriptors);
ONNXIFI_FUNCTION(onnxGetExtensionFunctionAddress, onnxBackendID backendID, const char *name,
                 onnxExtensionFunctionPointer *function);

/* --- extension functions --- */

/* onnxSetGraphIO and onnxRunGraph in one, with inputs that are there; the graph's own IO stays.  Threads may do this to
 * one graph side by side.  traceEvents (or NULL) is filled before the output event is signalled. */
typedef onnxStatus(ONNXIFI_ABI *onnxSetIOAndRunGraphFunction)(
    onnxGraph graph, uint32_t inputsCount, const foxiTensorDescriptorV1 *inputDescriptors, uint32_t outputsCount,
    const foxiTensorDescriptorV1 *outputDescriptors, onnxMemoryFenceV1 *outputFence, onnxTraceEventList *traceEvents);
typedef onnxStatus(ONNXIFI_ABI *onnxReleaseTraceEventsFunction)(onnxTraceEventList *traceEvents);
/* timeoutMs 0: for ever.  After a timeout the state is NONSIGNALLED and the call has succeeded.  messageLength: room,
 * then the message's length without its NUL. */
typedef onnxStatus(ONNXIFI_ABI *onnxWaitEventForFunction)(onnxEvent event, uint32_t timeoutMs,
                                                          onnxEventState *eventState, onnxStatus *eventStatus,
                                                          char *message, size_t *messageLength);
/* The first dimension of the first input of this thread's last onnxSetIOAndRunGraph; 0: there was none. */
typedef onnxStatus(ONNXIFI_ABI *onnxGetCurrentBatchSizeFunction)(int64_t *currentBatchSize);
/* Options of backends that are made from now on: "threads" (0: all cores), "log_level" (1 debug to 4 error). */
typedef onnxStatus(ONNXIFI_ABI *onnxSetOptionFunction)(const char *optionName, const char *optionValue);
typedef onnxStatus(ONNXIFI_ABI *onnxGetOptionFunction)(const char *optionName, char *optionValue,
                                                       size_t *optionValueLength);

#ifdef __cplusplus
}
#endif

#endif
