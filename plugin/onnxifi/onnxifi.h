/* onnxifi.h - the binary interface of ONNXIFI 1.0, as libonnxifi-xla.so exports it: the names, numbers and layouts of
 * the standard.  Clients may use ONNX's own header of this name instead.
 *
 * A client opens a backend library with dlopen, gets its backend IDs, and initialises a backend, then graphs (models)
 * and events (for synchronisation) of the backend.  It sets the memory of a graph's inputs and outputs, and runs the
 * graph. */
#ifndef ONNXIFI_H
#define ONNXIFI_H 1

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The calling convention is the default of all platforms that are supported. */
#define ONNXIFI_ABI
#define ONNXIFI_PUBLIC __attribute__((visibility("default")))
#define ONNXIFI_CHECK_RESULT __attribute__((warn_unused_result))

typedef void *onnxBackendID;
typedef void *onnxBackend;
typedef void *onnxGraph;
typedef void *onnxEvent;
typedef int32_t onnxStatus;
typedef int32_t onnxEventState;
typedef int32_t onnxBackendInfo;
typedef uint64_t onnxEnum;
typedef uint64_t onnxBitfield;
typedef uint64_t onnxPointer; /* an address, or a handle of memory on another device */

/* --- statuses --- */

#define ONNXIFI_STATUS_SUCCESS 0x0000
#define ONNXIFI_STATUS_FALLBACK 0x0001 /* success, but slow; for queries: the buffer is too small */

/* An argument is wrong by itself. */
#define ONNXIFI_STATUS_INVALID_ID 0x0101
#define ONNXIFI_STATUS_INVALID_SIZE 0x0102
#define ONNXIFI_STATUS_INVALID_POINTER 0x0103
#define ONNXIFI_STATUS_INVALID_PROTOBUF 0x0104
#define ONNXIFI_STATUS_INVALID_MODEL 0x0105
#define ONNXIFI_STATUS_INVALID_BACKEND 0x0106
#define ONNXIFI_STATUS_INVALID_GRAPH 0x0107
#define ONNXIFI_STATUS_INVALID_EVENT 0x0108
#define ONNXIFI_STATUS_INVALID_STATE 0x0109
#define ONNXIFI_STATUS_INVALID_NAME 0x010A
#define ONNXIFI_STATUS_INVALID_SHAPE 0x010B
#define ONNXIFI_STATUS_INVALID_DATATYPE 0x010C
#define ONNXIFI_STATUS_INVALID_MEMORY_TYPE 0x010D
#define ONNXIFI_STATUS_INVALID_MEMORY_LOCATION 0x010E
#define ONNXIFI_STATUS_INVALID_FENCE_TYPE 0x010F
#define ONNXIFI_STATUS_INVALID_PROPERTY 0x0110

/* An argument is valid, but this backend does not support it. */
#define ONNXIFI_STATUS_UNSUPPORTED_TAG 0x0201
#define ONNXIFI_STATUS_UNSUPPORTED_VERSION 0x0202
#define ONNXIFI_STATUS_UNSUPPORTED_OPERATOR 0x0203
#define ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE 0x0204
#define ONNXIFI_STATUS_UNSUPPORTED_SHAPE 0x0205
#define ONNXIFI_STATUS_UNSUPPORTED_DATATYPE 0x0206
#define ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE 0x0207
#define ONNXIFI_STATUS_UNSUPPORTED_FENCE_TYPE 0x0208
#define ONNXIFI_STATUS_UNSUPPORTED_PROPERTY 0x0209

/* The arguments do not fit together. */
#define ONNXIFI_STATUS_UNIDENTIFIED_NAME 0x0301
#define ONNXIFI_STATUS_MISMATCHING_SHAPE 0x0302
#define ONNXIFI_STATUS_MISMATCHING_DATATYPE 0x0303

/* A resource of the machine is missing. */
#define ONNXIFI_STATUS_NO_SYSTEM_MEMORY 0x0401
#define ONNXIFI_STATUS_NO_DEVICE_MEMORY 0x0402
#define ONNXIFI_STATUS_NO_SYSTEM_RESOURCES 0x0403
#define ONNXIFI_STATUS_NO_DEVICE_RESOURCES 0x0404
#define ONNXIFI_STATUS_BACKEND_UNAVAILABLE 0x0405
#define ONNXIFI_STATUS_INTERNAL_ERROR 0x0406

/* --- events --- */

#define ONNXIFI_EVENT_STATE_INVALID 0
#define ONNXIFI_EVENT_STATE_NONSIGNALLED 0x16BD
#define ONNXIFI_EVENT_STATE_SIGNALLED 0x3395

/* --- information of onnxGetBackendInfo; the comments give the types of the values --- */

#define ONNXIFI_BACKEND_ONNXIFI_VERSION 0             /* uint64_t: major version << 32 | minor */
#define ONNXIFI_BACKEND_NAME 1                        /* UTF-8 */
#define ONNXIFI_BACKEND_VENDOR 2                      /* UTF-8 */
#define ONNXIFI_BACKEND_VERSION 3                     /* ASCII */
#define ONNXIFI_BACKEND_EXTENSIONS 4                  /* ASCII, separated by spaces */
#define ONNXIFI_BACKEND_DEVICE 5                      /* UTF-8 */
#define ONNXIFI_BACKEND_DEVICE_TYPE 6                 /* onnxEnum */
#define ONNXIFI_BACKEND_ONNX_IR_VERSION 7             /* ASCII, separated by spaces */
#define ONNXIFI_BACKEND_OPSET_VERSION 8               /* ASCII: domain:version, separated by spaces */
#define ONNXIFI_BACKEND_CAPABILITIES 10               /* onnxBitfield */
#define ONNXIFI_BACKEND_INIT_PROPERTIES 11            /* onnxBitfield */
#define ONNXIFI_BACKEND_MEMORY_TYPES 12               /* onnxBitfield */
#define ONNXIFI_BACKEND_GRAPH_INIT_PROPERTIES 13      /* onnxBitfield */
#define ONNXIFI_BACKEND_SYNCHRONIZATION_TYPES 14      /* onnxBitfield */
#define ONNXIFI_BACKEND_MEMORY_SIZE 20                /* uint64_t, bytes */
#define ONNXIFI_BACKEND_MAX_GRAPH_SIZE 21             /* uint64_t, bytes */
#define ONNXIFI_BACKEND_MAX_GRAPH_COUNT 22            /* uint64_t */
#define ONNXIFI_BACKEND_MACS_FP32 30                  /* uint64_t, multiply-adds per second */
#define ONNXIFI_BACKEND_MACS_FP16 31                  /* uint64_t, multiply-adds per second */
#define ONNXIFI_BACKEND_MEMORY_BANDWIDTH 35           /* uint64_t, bytes per second */
#define ONNXIFI_BACKEND_CPU_MEMORY_READ_BANDWIDTH 36  /* uint64_t, bytes per second */
#define ONNXIFI_BACKEND_CPU_MEMORY_WRITE_BANDWIDTH 37 /* uint64_t, bytes per second */
#define ONNXIFI_BACKEND_PCI_BUS_ID 40                 /* uint64_t */
#define ONNXIFI_BACKEND_PCI_DEVICE_ID 41              /* uint64_t */
#define ONNXIFI_BACKEND_PCI_DOMAIN_ID 42              /* uint64_t */
#define ONNXIFI_BACKEND_DIRECTX_ID 43                 /* LUID */
#define ONNXIFI_BACKEND_CUDA_INDEX 44                 /* uint64_t */
#define ONNXIFI_BACKEND_OPENCL_PLATFORM_ID 45         /* cl_platform_id */
#define ONNXIFI_BACKEND_OPENCL_DEVICE_ID 46           /* cl_device_id */

#define ONNXIFI_DEVICE_TYPE_NPU 0x01
#define ONNXIFI_DEVICE_TYPE_DSP 0x02
#define ONNXIFI_DEVICE_TYPE_GPU 0x04
#define ONNXIFI_DEVICE_TYPE_CPU 0x08
#define ONNXIFI_DEVICE_TYPE_FPGA 0x10
#define ONNXIFI_DEVICE_TYPE_HETEROGENEOUS 0x20

#define ONNXIFI_CAPABILITY_THREAD_SAFE 0x01
#define ONNXIFI_CAPABILITY_SYMBOLIC_BATCH_SIZE 0x02
#define ONNXIFI_CAPABILITY_SYMBOLIC_SIZE_TENSORS 0x04
#define ONNXIFI_CAPABILITY_VARIABLE_BATCH_SIZE 0x08
#define ONNXIFI_CAPABILITY_VARIABLE_SIZE_OUTPUTS 0x10
#define ONNXIFI_CAPABILITY_HOT_PLUGGABLE 0x20

/* --- element types: TensorProto's numbers --- */

#define ONNXIFI_DATATYPE_UNDEFINED 0
#define ONNXIFI_DATATYPE_FLOAT32 1
#define ONNXIFI_DATATYPE_UINT8 2
#define ONNXIFI_DATATYPE_INT8 3
#define ONNXIFI_DATATYPE_UINT16 4
#define ONNXIFI_DATATYPE_INT16 5
#define ONNXIFI_DATATYPE_INT32 6
#define ONNXIFI_DATATYPE_INT64 7
#define ONNXIFI_DATATYPE_FLOAT16 10
#define ONNXIFI_DATATYPE_FLOAT64 11
#define ONNXIFI_DATATYPE_UINT32 12
#define ONNXIFI_DATATYPE_UINT64 13
#define ONNXIFI_DATATYPE_COMPLEX64 14
#define ONNXIFI_DATATYPE_COMPLEX128 15
#define ONNXIFI_DATATYPE_BFLOAT16 16

/* --- properties: lists of pairs of key and value, ended by key 0 --- */

#define ONNXIFI_BACKEND_PROPERTY_NONE 0
#define ONNXIFI_BACKEND_PROPERTY_OPTIMIZATION 1
#define ONNXIFI_BACKEND_PROPERTY_LOG_LEVEL 2
#define ONNXIFI_BACKEND_CUDA_STREAM 4
#define ONNXIFI_BACKEND_OPENCL_CONTEXT 8
#define ONNXIFI_GRAPH_PROPERTY_NONE 0

#define ONNXIFI_OPTIMIZATION_HIGH_THROUGHPUT 0
#define ONNXIFI_OPTIMIZATION_LOW_LATENCY 1
#define ONNXIFI_OPTIMIZATION_LOW_POWER 2
#define ONNXIFI_OPTIMIZATION_LOW_DELAY 3

#define ONNXIFI_LOG_LEVEL_DEBUG 1
#define ONNXIFI_LOG_LEVEL_INFO 2
#define ONNXIFI_LOG_LEVEL_WARNING 3
#define ONNXIFI_LOG_LEVEL_ERROR 4

/* --- tensors and fences --- */

#define ONNXIFI_MEMORY_TYPE_CPU 0
#define ONNXIFI_MEMORY_TYPE_CUDA_BUFFER 1
#define ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER 2
#define ONNXIFI_MEMORY_TYPE_OPENGLES_TEXTURE_2D 4
#define ONNXIFI_MEMORY_TYPE_D3D_RESOURCE 8

#define ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1 0x43DFBF69

typedef struct onnxTensorDescriptorV1 {
  int32_t tag; /* ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1 */
  const char *name;
  onnxEnum dataType;     /* ONNXIFI_DATATYPE_... */
  onnxEnum memoryType;   /* only ONNXIFI_MEMORY_TYPE_CPU is supported */
  uint32_t dimensions;   /* the number of dimensions */
  const uint64_t *shape; /* `dimensions` sizes in elements */
  onnxPointer buffer;    /* the address of the array, which is row-major and contiguous; 0 is allowed if it is empty */
} onnxTensorDescriptorV1;

#define ONNXIFI_SYNCHRONIZATION_EVENT 0
#define ONNXIFI_SYNCHRONIZATION_IMPLICIT 2

#define ONNXIFI_TAG_MEMORY_FENCE_V1 0x23E08AAB

typedef struct onnxMemoryFenceV1 {
  int32_t tag;   /* ONNXIFI_TAG_MEMORY_FENCE_V1 */
  onnxEnum type; /* only ONNXIFI_SYNCHRONIZATION_EVENT is supported */
  union {
    onnxEvent event; /* for an output fence: created by onnxRunGraph; the caller releases it with onnxReleaseEvent */
  };
} onnxMemoryFenceV1;

/* --- functions; the type NAMEFunction is that of function NAME --- */

/* All functions return a status.  It is INVALID_POINTER if a pointer is NULL where a value is needed, and INVALID_ID,
 * INVALID_BACKEND, INVALID_GRAPH or INVALID_EVENT if a handle is not a live one of that kind.  Handles may be used from
 * any thread. */
#define ONNXIFI_FUNCTION(name, ...)                        \
  ONNXIFI_PUBLIC onnxStatus ONNXIFI_ABI name(__VA_ARGS__); \
  typedef onnxStatus(ONNXIFI_ABI *name##Function)(__VA_ARGS__)

/* Writes the IDs of all backends to `backendIDs`.  *numBackends is the number of IDs for which there is room on entry,
 * and the number of backends on return.  Returns FALLBACK, and writes no IDs, if there is not enough room or
 * `backendIDs` is NULL. */
ONNXIFI_FUNCTION(onnxGetBackendIDs, onnxBackendID *backendIDs, size_t *numBackends);
/* Does nothing, since IDs are valid for the life of the process. */
ONNXIFI_FUNCTION(onnxReleaseBackendID, onnxBackendID backendID);
/* Writes information about a backend (ONNXIFI_BACKEND_...) to `infoValue`; a text gets a terminating NUL.
 * *infoValueSize is the room in bytes on entry, and the bytes of the value on return.  Returns FALLBACK, and writes no
 * value, if there is not enough room or `infoValue` is NULL.  Returns UNSUPPORTED_ATTRIBUTE if the information is not
 * known. */
ONNXIFI_FUNCTION(onnxGetBackendInfo, onnxBackendID backendID, onnxBackendInfo infoType, void *infoValue,
                 size_t *infoValueSize);
/* Returns SUCCESS if the backend can run the model, as far as that can be told without compiling it, otherwise a status
 * that says why not.  The model is `onnxModelSize` bytes of a ModelProto, and is not kept. */
ONNXIFI_FUNCTION(onnxGetBackendCompatibility, onnxBackendID backendID, size_t onnxModelSize, const void *onnxModel);
/* Initialises a backend.  `auxPropertiesList` may be NULL.  The caller releases *backend, which is NULL after a
 * failure, with onnxReleaseBackend. */
ONNXIFI_FUNCTION(onnxInitBackend, onnxBackendID backendID, const uint64_t *auxPropertiesList, onnxBackend *backend);
/* Releases a backend.  Its graphs and events stay valid. */
ONNXIFI_FUNCTION(onnxReleaseBackend, onnxBackend backend);
/* Creates an event that is not signalled.  The caller releases *event, which is NULL after a failure, with
 * onnxReleaseEvent. */
ONNXIFI_FUNCTION(onnxInitEvent, onnxBackend backend, onnxEvent *event);
/* Signals an event.  Returns INVALID_STATE if it was signalled before. */
ONNXIFI_FUNCTION(onnxSignalEvent, onnxEvent event);
/* Sets *state to ONNXIFI_EVENT_STATE_SIGNALLED or _NONSIGNALLED, or to _INVALID after a failure. */
ONNXIFI_FUNCTION(onnxGetEventState, onnxEvent event, onnxEventState *state);
/* Waits until the event is signalled.  Returns INVALID_EVENT if it is released before that and no run will signal
 * it. */
ONNXIFI_FUNCTION(onnxWaitEvent, onnxEvent event);
/* Releases an event.  A run that uses it goes on. */
ONNXIFI_FUNCTION(onnxReleaseEvent, onnxEvent event);
#ifndef FOXI_H /* foxi.h declares its own */
/* Makes a graph of a model, which is `onnxModelSize` bytes of a ModelProto.  If the model has no initializers, its
 * weights are the inputs that `weightDescriptors` name; otherwise the descriptors are not read.  The model and the
 * weights are copied.  There are no properties.  The caller releases *graph, which is NULL after a failure, with
 * onnxReleaseGraph. */
ONNXIFI_FUNCTION(onnxInitGraph, onnxBackend backend, const uint64_t *auxPropertiesList, size_t onnxModelSize,
                 const void *onnxModel, uint32_t weightsCount, const onnxTensorDescriptorV1 *weightDescriptors,
                 onnxGraph *graph);
/* Sets the memory of the inputs and outputs for later runs; each input and each output must be named once.  The
 * descriptors are copied, but the arrays are borrowed until the graph is released or has other memory, and until the
 * runs that use them have ended.  An output must not overlap other arrays, unless it has exactly the memory of one
 * input.  For an output whose size only a run determines, the descriptor has upper bounds of its sizes.  After a
 * failure the graph has no inputs and outputs. */
ONNXIFI_FUNCTION(onnxSetGraphIO, onnxGraph graph, uint32_t inputsCount, const onnxTensorDescriptorV1 *inputDescriptors,
                 uint32_t outputsCount, const onnxTensorDescriptorV1 *outputDescriptors);
#endif
/* Begins a run on a thread of the graph, and returns at once.  The run waits for inputFence->event, and signals
 * outputFence->event, which this function creates, when it has ended, also if it has failed.  Returns UNIDENTIFIED_NAME
 * if the graph has no inputs and outputs (onnxSetGraphIO).  If the run cannot be begun although `graph`, both pointers
 * and tags, and outputFence->type are valid, outputFence->event is set to NULL. */
ONNXIFI_FUNCTION(onnxRunGraph, onnxGraph graph, const onnxMemoryFenceV1 *inputFence, onnxMemoryFenceV1 *outputFence);
/* Waits for the graph's runs to end, and releases the graph. */
ONNXIFI_FUNCTION(onnxReleaseGraph, onnxGraph graph);

#ifdef __cplusplus
}
#endif

#endif
