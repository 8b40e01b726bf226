/* cuda_stream.c - CUDA's streams, and copies on them. */
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "backend_gpu/runtime/cuda_device.h"
#include "base/clock.h"

status cuda_create_stream(const rt_device *rt, rt_stream **out) {
  cuda_device *d = cuda_device_of(rt);
  TRY(cuda_enter(d));
  rt_stream *s = calloc(1, sizeof *s);
  CHECK_THAT(s, STATUS_RESOURCE, "out of memory");
  s->device = d;
  /* NON_BLOCKING: stream 0, which other libraries of the process may use, and this stream do not wait for each other */
  status failed = cuda_check(d, d->cu->cuStreamCreate(&s->handle, CU_STREAM_NON_BLOCKING), "creating a stream");
  if (failed) {
    free(s);
    return failed;
  }
  *out = s;
  return NULL;
}

static status synchronize(const rt_stream *s) {
  return cuda_check(s->device, s->device->cu->cuStreamSynchronize(s->handle), "waiting for the work of a stream");
}

static status destroy(rt_stream *s) {
  cuda_device *d = s->device;
  TRY(cuda_enter(d));
  cuda_lose_if(d, synchronize(s)); /* the stream is destroyed even if this fails */
  cuda_staging_free(s);
  return cuda_check(d, d->cu->cuStreamDestroy_v2(s->handle), "destroying a stream");
}

void cuda_destroy_stream(rt_stream *s) {
  cuda_lose_if(s->device, destroy(s));
  free(s);
}

/* --- waiting --- */

/* Pauses between two queries of a stream, for which the thread has waited for `waited` nanoseconds so far.  At first
 * the thread only lets others run.  Later it sleeps for a quarter of `waited`, but at most a millisecond.  So a short
 * run is not prolonged, and a long one does not keep a core busy. */
static void pause_after(uint64_t waited) {
  enum { SHORT = 100000, LONGEST = 1000000 }; /* nanoseconds */
  if (waited < SHORT) {
    sched_yield();
  } else {
    nanosleep(&(struct timespec){.tv_nsec = waited / 4 < LONGEST ? (long)(waited / 4) : LONGEST}, NULL);
  }
}

/* Waits until the work is done.  If the budget fails before that, returns its failure at once. */
static status poll_stream(const rt_stream *s, const mem_budget *budget) {
  const uint64_t begin = clock_nanoseconds();
  for (;;) {
    CUresult r = s->device->cu->cuStreamQuery(s->handle);
    if (r != CUDA_ERROR_NOT_READY) {
      return cuda_check(s->device, r, "waiting for the work of a stream");
    }
    TRY(budget_check(budget));
    pause_after(clock_nanoseconds() - begin);
  }
}

/* When it returns, no copy touches the caller's memory any more, so that the caller may free it.  If the budget ended
 * the wait, or if something failed, downloads are given up. */
status cuda_await(rt_stream *s, const mem_budget *budget) {
  TRY(cuda_driver_check_process());
  status failed = cuda_enter(s->device), late = !failed && budget ? poll_stream(s, budget) : NULL;
  if (failed || !budget) {
    failed = status_first(failed, synchronize(s));
  }
  failed = status_first(failed, late);
  if (failed) {
    cuda_staging_forget(s);
  } else {
    cuda_staging_deliver(s);
  }
  return failed;
}

/* --- copies --- */

static CUdeviceptr address(const void *memory) { return (CUdeviceptr)(uintptr_t)memory; }

static status copy_on_device(rt_stream *s, void *to, const void *from, size_t bytes) {
  cuda_device *d = s->device;
  return cuda_check(d, d->cu->cuMemcpyDtoDAsync_v2(address(to), address(from), bytes, s->handle),
                    "copying %zu bytes on the device", bytes);
}

static status copy_twice(rt_stream *s, void *to, const void *from, void *between, size_t bytes) {
  TRY(copy_on_device(s, between, from, bytes));
  return copy_on_device(s, to, between, bytes);
}

/* Source and destination of the driver's copies must not overlap, so the bytes are copied through other memory, which
 * is released after the copies are done.  This is rare: only a program that moves an array by less than the array's own
 * length needs it. */
static status copy_overlapping(rt_stream *s, void *to, const void *from, size_t bytes) {
  const rt_device *d = &s->device->gpu.device;
  void *between;
  TRY(d->allocate(d, bytes, &between));
  status failed = copy_twice(s, to, from, between, bytes);
  failed = status_first(failed, synchronize(s));
  d->release(d, between, bytes);
  return failed;
}

static bool overlap(const void *to, const void *from, size_t bytes) {
  uintptr_t a = (uintptr_t)to, b = (uintptr_t)from;
  return a < b ? b - a < bytes : a - b < bytes;
}

status cuda_copy(rt_stream *s, rt_copy direction, void *to, const void *from, size_t bytes) {
  cuda_device *d = s->device;
  if (bytes == 0) {
    return NULL;
  }
  TRY(cuda_enter(d));
  /* CUDA would record the host's address, which may belong to other data when the recording is replayed */
  CHECK_THAT(direction == RT_ON_DEVICE || !s->records, STATUS_INTERNAL,
             "CUDA device %u: a copy of the host's memory in a recording", d->ordinal);
  switch (direction) {
    case RT_UPLOAD: return cuda_upload(s, address(to), from, bytes);
    case RT_DOWNLOAD: return cuda_download_later(s, to, address(from), bytes);
    default:
      return overlap(to, from, bytes) ? copy_overlapping(s, to, from, bytes) : copy_on_device(s, to, from, bytes);
  }
}
