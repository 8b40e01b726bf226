/* cuda.c - CUDA's devices: opening and describing them, their memory and their errors. */
#include "backend_gpu/runtime/cuda.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend_gpu/runtime/cuda_device.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list, and devices until they are open */
static cuda_device *devices;

/* --- errors --- */

/* Returns true if the driver gives the context up after this error: NVIDIA's cuda.h says of most of these errors that
 * all further work returns the same error until the process ends. */
static bool loses_device(CUresult r) {
  switch (r) {
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_UNKNOWN: return true;
    default: return false;
  }
}

static status_code code_of(CUresult r) {
  switch (r) {
    case CUDA_ERROR_OUT_OF_MEMORY: return STATUS_RESOURCE;
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION: return STATUS_INVALID_FILE;
    default: return STATUS_INTERNAL;
  }
}

/* Makes an open device lost.  Only the first reason is kept.  A device that is not open is not lost by a failure, since
 * opening it can be tried again. */
static void lose(cuda_device *d, const char *why) {
  int working = CUDA_WORKS;
  if (d->open && atomic_compare_exchange_strong(&d->state, &working, CUDA_BREAKS)) {
    snprintf(d->reason, sizeof d->reason, "%s", why);
    d->state = CUDA_LOST;
  }
}

status cuda_check(cuda_device *d, CUresult r, const char *what, ...) {
  if (r == CUDA_SUCCESS) {
    return NULL;
  }
  char done[200];
  va_list arguments;
  va_start(arguments, what);
  vsnprintf(done, sizeof done, what, arguments);
  va_end(arguments);
  status failed =
      status_error(code_of(r), "CUDA device %u: %s: %s", d->ordinal, done, cuda_driver_explain(d->cu, r).text);
  if (loses_device(r)) {
    lose(d, status_message(failed));
  }
  return failed;
}

void cuda_lose_if(cuda_device *d, status failed) {
  if (failed) {
    lose(d, status_message(failed));
  }
  status_free(failed);
}

/* --- opening --- */

/* Looks for the device, without opening it.  The caller holds the lock if the device is in the list. */
static status locate(cuda_device *d) {
  int n = 0;
  TRY(cuda_driver_start(&d->cu));
  TRY(cuda_check(d, d->cu->cuDeviceGetCount(&n), "counting devices"));
  CHECK_THAT(d->ordinal < (uint32_t)n, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_BACKEND,
             "there is no CUDA device %u: the driver sees %d, which are counted from 0", d->ordinal, n);
  return cuda_check(d, d->cu->cuDeviceGet(&d->handle, (int)d->ordinal), "finding the device");
}

status cuda_read_attribute(cuda_device *d, CUdevice_attribute attribute, uint32_t *out) {
  int value = 0;
  TRY(cuda_check(d, d->cu->cuDeviceGetAttribute(&value, attribute, d->handle), "reading attribute %d", attribute));
  *out = (uint32_t)value;
  return NULL;
}

static status read_capability(cuda_device *d, uint32_t *out) {
  uint32_t major, minor;
  TRY(cuda_read_attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major));
  TRY(cuda_read_attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor));
  *out = major * 10 + minor;
  return NULL;
}

/* The compute capabilities of the architectures that we compile for. */
static const uint32_t capabilities[] = {75, 80, 86, 87, 89, 90};

status gpu_cuda_check_capability(uint32_t ordinal, uint32_t capability) {
  CHECK_THAT(capability >= capabilities[0], STATUS_UNSUPPORTED | STATUS_ABOUT_BACKEND,
             "CUDA device %u has compute capability %u.%u; at least %u.%u is needed", ordinal, capability / 10,
             capability % 10, capabilities[0] / 10, capabilities[0] % 10);
  return NULL;
}

/* The context is retained last, so that nothing must be released if something fails before. */
static status open_device(cuda_device *d) {
  TRY(locate(d));
  TRY(read_capability(d, &d->capability));
  TRY(gpu_cuda_check_capability(d->ordinal, d->capability));
  TRY(cuda_read_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &d->shared_bytes));
  TRY(cuda_check(d, d->cu->cuDevicePrimaryCtxRetain(&d->context, d->handle), "opening its primary context"));
  d->open = true;
  return NULL;
}

static status open_once(cuda_device *d) {
  pthread_mutex_lock(&lock);
  status failed = d->open ? NULL : open_device(d);
  pthread_mutex_unlock(&lock);
  return failed;
}

status cuda_enter(cuda_device *d) {
  TRY(cuda_driver_check_process());
  TRY(d->open ? NULL : open_once(d));
  status failed = cuda_check(d, d->cu->cuCtxSetCurrent(d->context), "making its context current");
  if (d->state == CUDA_LOST) {
    status_free(failed);
    return status_error(STATUS_INTERNAL, "%s; since then the device is lost to this process", d->reason);
  }
  return failed;
}

/* --- memory --- */

static status no_memory(cuda_device *d, size_t bytes) {
  size_t free = 0, total = 0;
  status unknown = cuda_check(d, d->cu->cuMemGetInfo_v2(&free, &total), "asking for its free memory");
  cuda_error_text error = cuda_driver_explain(d->cu, CUDA_ERROR_OUT_OF_MEMORY);
  status failed = status_error(STATUS_RESOURCE, "CUDA device %u: no %zu bytes of memory, of %zu bytes %zu are free: %s",
                               d->ordinal, bytes, total, free, error.text);
  if (unknown) {
    status_free(failed);
    failed = status_prefix(unknown, "CUDA device %u: no %zu bytes of memory: %s", d->ordinal, bytes, error.text);
  }
  return failed;
}

/* The driver aligns memory to 256 bytes at least (CUDA C++ Programming Guide, "Device Memory Accesses"). */
static status allocate(const rt_device *rt, size_t bytes, void **out) {
  cuda_device *d = cuda_device_of(rt);
  CUdeviceptr memory = 0;
  TRY(cuda_enter(d));
  CUresult r = d->cu->cuMemAlloc_v2(&memory, bytes);
  TRY(r == CUDA_ERROR_OUT_OF_MEMORY ? no_memory(d, bytes) : cuda_check(d, r, "allocating %zu bytes", bytes));
  *out = (void *)(uintptr_t)memory;
  return NULL;
}

static status free_memory(cuda_device *d, const void *memory) {
  TRY(cuda_enter(d));
  return cuda_check(d, d->cu->cuMemFree_v2((uintptr_t)memory), "freeing memory");
}

static void release(const rt_device *rt, void *memory, size_t bytes) {
  (void)bytes;
  cuda_lose_if(cuda_device_of(rt), free_memory(cuda_device_of(rt), memory));
}

/* --- devices --- */

enum { DLPACK_CUDA = 2 }; /* kDLCUDA */

static const gpu_device functions = {.device = {.type = DLPACK_CUDA,
                                                .allocate = allocate,
                                                .release = release,
                                                .create_stream = cuda_create_stream,
                                                .destroy_stream = cuda_destroy_stream,
                                                .copy = cuda_copy,
                                                .await = cuda_await,
                                                .record_begin = cuda_record_begin,
                                                .record_end = cuda_record_end,
                                                .replay = cuda_replay,
                                                .release_recording = cuda_release_recording,
                                                .create_event = cuda_create_event,
                                                .destroy_event = cuda_destroy_event,
                                                .record_event = cuda_record_event,
                                                .elapsed = cuda_elapsed,
                                                .peak = cuda_peak},
                                     .check_cpu = cuda_check_cpu,
                                     .load = cuda_load,
                                     .find = cuda_find,
                                     .launch = cuda_launch};

/* Returns the device of this number, a new one if there is none yet, or NULL if there is no memory.  The caller holds
 * the lock. */
static cuda_device *find_device(uint32_t ordinal) {
  cuda_device *d = devices;
  while (d && d->ordinal != ordinal) {
    d = d->next;
  }
  d = d ? d : calloc(1, sizeof *d);
  if (d && !d->gpu.load) {
    d->gpu = functions;
    d->gpu.device.id = (int32_t)ordinal;
    d->ordinal = ordinal;
    d->next = devices;
    devices = d;
  }
  return d;
}

status gpu_cuda_device(uint32_t ordinal, const gpu_device **out) {
  pthread_mutex_lock(&lock);
  cuda_device *d = find_device(ordinal);
  pthread_mutex_unlock(&lock);
  CHECK_THAT(d, STATUS_RESOURCE, "out of memory");
  *out = &d->gpu;
  return NULL;
}

status gpu_cuda_count(uint32_t *out) {
  int n = 0;
  const cuda_driver *cu;
  TRY(cuda_driver_start(&cu));
  CUresult r = cu->cuDeviceGetCount(&n);
  CHECK_THAT(r == CUDA_SUCCESS, STATUS_INTERNAL, "counting CUDA devices: %s", cuda_driver_explain(cu, r).text);
  *out = (uint32_t)n;
  return NULL;
}

/* Sets info->architecture to the newest one that we compile for and that is not newer than the device: code for an
 * architecture runs on later ones as well. */
static void name_architecture(gpu_cuda_info *info) {
  for (size_t k = 0; k < sizeof capabilities / sizeof *capabilities && capabilities[k] <= info->capability; k++) {
    snprintf(info->architecture, sizeof info->architecture, "sm_%u", capabilities[k]);
  }
}

/* Ignores a failure, since the peak is for information only: a driver that does not tell clocks can be used. */
static void describe_peak(cuda_device *d, gpu_cuda_info *out) {
  status untold = cuda_read_peak(d, out->capability, &out->operations, &out->bytes);
  status_free(untold);
}

static status describe(cuda_device *d, gpu_cuda_info *out) {
  int version = 0;
  size_t bytes = 0;
  TRY(locate(d));
  TRY(cuda_check(d, d->cu->cuDeviceGetName(out->name, sizeof out->name, d->handle), "asking for its name"));
  TRY(cuda_check(d, d->cu->cuDeviceTotalMem_v2(&bytes, d->handle), "asking for the size of its memory"));
  TRY(cuda_check(d, d->cu->cuDriverGetVersion(&version), "asking for the driver's version"));
  TRY(read_capability(d, &out->capability));
  TRY(cuda_read_attribute(d, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &out->processors));
  TRY(cuda_read_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &out->shared_bytes));
  out->memory_bytes = bytes;
  out->cuda_version = (uint32_t)version;
  name_architecture(out);
  describe_peak(d, out);
  return NULL;
}

/* Works on a cuda_device of its own, which has no context, so that a device which is in use is left alone. */
status gpu_cuda_describe(uint32_t ordinal, gpu_cuda_info *out) {
  cuda_device d = {.ordinal = ordinal};
  *out = (gpu_cuda_info){.capability = 0};
  return describe(&d, out);
}
