/* cuda_measure.c - measures the time of a CUDA device's work by events, and computes what the device can do at most. */
#include <stdlib.h>

#include "backend_gpu/runtime/cuda_device.h"

struct rt_event {
  cuda_device *device;
  CUevent handle;
};

status cuda_create_event(const rt_device *rt, rt_event **out) {
  cuda_device *d = cuda_device_of(rt);
  TRY(cuda_enter(d));
  rt_event *e = calloc(1, sizeof *e);
  CHECK_THAT(e, STATUS_RESOURCE, "out of memory");
  e->device = d;
  status failed = cuda_check(d, d->cu->cuEventCreate(&e->handle, CU_EVENT_DEFAULT), "creating an event");
  if (failed) {
    free(e);
    return failed;
  }
  *out = e;
  return NULL;
}

static status destroy(const rt_event *e) {
  TRY(cuda_enter(e->device));
  return cuda_check(e->device, e->device->cu->cuEventDestroy_v2(e->handle), "destroying an event");
}

void cuda_destroy_event(rt_event *e) {
  cuda_lose_if(e->device, destroy(e));
  free(e);
}

status cuda_record_event(rt_event *e, rt_stream *s) {
  TRY(cuda_enter(e->device));
  return cuda_check(e->device, e->device->cu->cuEventRecord(e->handle, s->handle), "recording an event");
}

status cuda_elapsed(const rt_event *from, const rt_event *to, double *seconds) {
  float milliseconds = 0;
  TRY(cuda_enter(from->device));
  TRY(cuda_check(from->device, from->device->cu->cuEventElapsedTime(&milliseconds, from->handle, to->handle),
                 "asking for the time between events"));
  *seconds = 1e-3 * (double)milliseconds;
  return NULL;
}

/* Returns how many f32 multiply-adds a multiprocessor begins in a cycle (CUDA C++ Programming Guide, "Throughput of
 * Native Arithmetic Instructions"). */
static uint32_t lanes_of(uint32_t capability) {
  return capability == 60 || capability == 70 || capability == 72 || capability == 75 || capability == 80 ? 64 : 128;
}

/* Computes the bytes from the clock of the memory, which transfers data twice in a cycle. */
status cuda_read_peak(cuda_device *d, uint32_t capability, double *operations, double *bytes) {
  uint32_t processors, kilohertz, memory_kilohertz, bits;
  TRY(cuda_read_attribute(d, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &processors));
  TRY(cuda_read_attribute(d, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &kilohertz));
  TRY(cuda_read_attribute(d, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &memory_kilohertz));
  TRY(cuda_read_attribute(d, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &bits));
  *operations = 2.0 * lanes_of(capability) * processors * 1e3 * kilohertz;
  *bytes = 2.0 * 1e3 * memory_kilohertz * bits / 8;
  return NULL;
}

status cuda_peak(const rt_device *rt, double *operations, double *bytes) {
  cuda_device *d = cuda_device_of(rt);
  TRY(cuda_enter(d));
  return cuda_read_peak(d, d->capability, operations, bytes);
}
