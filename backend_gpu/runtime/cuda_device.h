/* cuda_device.h - what the files of the CUDA platform know of a device; cuda.h is for all others.
 *
 * Any thread may call the functions of a device, but the driver works on the context that is current in the calling
 * thread.  So each of these functions calls cuda_enter before it calls the driver, and passes what the driver returns
 * to cuda_check. */
#ifndef BACKEND_GPU_RUNTIME_CUDA_DEVICE_H
#define BACKEND_GPU_RUNTIME_CUDA_DEVICE_H

#include "backend_gpu/runtime/cuda_driver.h"
#include "backend_gpu/runtime/device.h"

typedef struct cuda_device {
  gpu_device gpu; /* the first member */
  struct cuda_device *next;
  uint32_t ordinal;
  _Atomic bool open;     /* whether the members from `cu` to `shared_bytes` are set; after that they do not change */
  const cuda_driver *cu; /* NULL until the device is looked for */
  CUdevice handle;
  CUcontext context;     /* the primary context, which is retained until the process ends */
  uint32_t capability;   /* ten times the compute capability */
  uint32_t shared_bytes; /* the most shared memory that a block can have */
  _Atomic int state;     /* a cuda_device_state */
  char reason[300];      /* the error by which the device was lost */
} cuda_device;

/* A device that is lost remains so. */
enum cuda_device_state { CUDA_WORKS, CUDA_BREAKS /* a thread is writing `reason` */, CUDA_LOST };

enum { CUDA_MOST_DOWNLOADS = 64 };

/* A part of a download.  The stream copies it to page-locked memory, at `from`, and the host copies it from there to
 * `to` when the stream has done so. */
typedef struct cuda_download {
  void *to;
  const void *from;
  size_t bytes;
} cuda_download;

/* Page-locked memory, which copies fill from its beginning. */
typedef struct cuda_buffer {
  uint8_t *memory; /* NULL until the first copy */
  size_t used;     /* the bytes that copies have taken; 0 if no copy is left to do */
  CUevent event;   /* recorded after the buffer's last copy, when the stream turns to the other buffer */
  uint32_t n_downloads;
  cuda_download downloads[CUDA_MOST_DOWNLOADS];
} cuda_buffer;

/* The host fills or empties one buffer while the device copies the other one. */
typedef struct cuda_staging {
  cuda_buffer buffers[2];
  int turn; /* the number of the buffer that the next copy uses */
} cuda_staging;

struct rt_stream {
  cuda_device *device;
  CUstream handle;
  bool records; /* whether it is being captured */
  cuda_staging staging;
};

static inline cuda_device *cuda_device_of(const rt_device *d) { return (cuda_device *)d; }

/* Opens the device if it is not open, and makes its context current in the calling thread, also that of a device which
 * is lost.  Fails if the device cannot be opened or is lost. */
STATUS_MUST_USE status cuda_enter(cuda_device *d);

/* Returns NULL if `r` is no error, otherwise a failure that says what was done ("allocating memory"), on which device,
 * and the driver's name of the error.  If the driver gives up its contexts after such an error, and the device is open,
 * the device becomes lost. */
STATUS_MUST_USE status cuda_check(cuda_device *d, CUresult r, const char *what, ...) STATUS_PRINTF(3, 4);

/* For functions that cannot return a failure.  If `failed` is not NULL, it is freed and makes the device lost, so that
 * later functions report it. */
void cuda_lose_if(cuda_device *d, status failed);

/* Sets *out to a module of the code, which is PTX or a cubin.  The cache, which may be NULL, keeps the cubins to which
 * PTX is compiled. */
STATUS_MUST_USE status cuda_load_module(cuda_device *d, rt_span code, const rt_code_cache *cache, CUmodule *out);

STATUS_MUST_USE status cuda_read_attribute(cuda_device *d, CUdevice_attribute attribute, uint32_t *out);

/* Put copies into the stream's queue.  The host's memory has been read when cuda_upload returns; the bytes of
 * cuda_download_later are in the host's memory after cuda_staging_deliver.  Both wait if the page-locked memory has no
 * room.  cuda_upload also waits if an earlier download to the bytes that it reads is not delivered yet. */
STATUS_MUST_USE status cuda_upload(rt_stream *s, CUdeviceptr to, const void *from, size_t bytes);
STATUS_MUST_USE status cuda_download_later(rt_stream *s, void *to, CUdeviceptr from, size_t bytes);
/* Writes what was downloaded to the host's memory.  All work of the stream must be done. */
void cuda_staging_deliver(rt_stream *s);
/* Drops the downloads that cuda_staging_deliver has not yet copied to the host's memory; they are never copied. */
void cuda_staging_forget(rt_stream *s);
/* Frees the page-locked memory.  No work of the stream may be left to do. */
void cuda_staging_free(rt_stream *s);

/* Sets *operations and *bytes as in gpu_cuda_info, from the clocks of the device, which need not be open. */
STATUS_MUST_USE status cuda_read_peak(cuda_device *d, uint32_t capability, double *operations, double *bytes);

/* The members of rt_device and gpu_device that other files than cuda.c implement. */
status cuda_create_stream(const rt_device *d, rt_stream **out);
void cuda_destroy_stream(rt_stream *s);
status cuda_copy(rt_stream *s, rt_copy direction, void *to, const void *from, size_t bytes);
status cuda_await(rt_stream *s, const mem_budget *budget);
status cuda_record_begin(rt_stream *s);
status cuda_record_end(rt_stream *s, rt_recording **out);
status cuda_replay(const rt_run *r, rt_recording *recording);
void cuda_release_recording(rt_recording *r);
status cuda_create_event(const rt_device *d, rt_event **out);
void cuda_destroy_event(rt_event *e);
status cuda_record_event(rt_event *e, rt_stream *s);
status cuda_elapsed(const rt_event *from, const rt_event *to, double *seconds);
status cuda_peak(const rt_device *d, double *operations, double *bytes);
status cuda_check_cpu(const gpu_device *d, const char *cpu);
status cuda_load(const gpu_device *d, arena *a, rt_span code, const rt_code_cache *cache, rt_code **out);
gpu_function *cuda_find(const gpu_device *d, arena *a, rt_code *code, const char *symbol);
status cuda_launch(rt_stream *s, const gpu_function *f, const gpu_launch *l);

#endif
