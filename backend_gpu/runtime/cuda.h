/* cuda.h - NVIDIA's GPUs as devices, by CUDA's driver.  The driver is opened at run time: neither building nor starting
 * needs anything of CUDA. */
#ifndef BACKEND_GPU_RUNTIME_CUDA_H
#define BACKEND_GPU_RUNTIME_CUDA_H

#include "backend_gpu/runtime/device.h"

/* Sets *out to the device with this number, as the driver counts devices (CUDA_VISIBLE_DEVICES).  The device lives as
 * long as the process.  The driver is not called yet: the first function that needs the device opens it, and fails if
 * there is no driver, or no such device.
 *
 * The device is that of the process: it uses the primary context, which other libraries of the process share, and
 * leaves it current in threads that call the device's functions.  An error by which the driver gives a context up, such
 * as an illegal address in a kernel, makes the device lost: from then on all functions fail and name that error. */
STATUS_MUST_USE status gpu_cuda_device(uint32_t ordinal, const gpu_device **out);

/* Sets *out to the number of devices.  Fails if there is no driver, or if the driver sees no device. */
STATUS_MUST_USE status gpu_cuda_count(uint32_t *out);

typedef struct gpu_cuda_info {
  char name[100];        /* such as "NVIDIA H100 PCIe" */
  uint64_t memory_bytes; /* the size of the device's memory */
  uint32_t capability;   /* ten times the compute capability: 90 for 9.0, whose code is sm_90 */
  uint32_t processors;   /* how many streaming multiprocessors there are */
  uint32_t shared_bytes; /* the most shared memory that a block can have */
  uint32_t cuda_version; /* the CUDA version of the driver: 12040 is CUDA 12.4 */
  /* The newest architecture that we compile for and whose code the device runs, such as "sm_90"; "" if the device is
   * too old for all of them. */
  char architecture[8];
  double operations; /* the most f32 operations in a second, of which a multiply-add is two; 0 if the driver does not
                        say */
  double bytes;      /* the most bytes that the memory reads or writes in a second; 0 if the driver does not say */
} gpu_cuda_info;

/* Describes a device without opening it, for a list of devices. */
STATUS_MUST_USE status gpu_cuda_describe(uint32_t ordinal, gpu_cuda_info *out);

/* Fails if a device of this capability is too old for all code that we compile; `ordinal` is for the message. */
STATUS_MUST_USE status gpu_cuda_check_capability(uint32_t ordinal, uint32_t capability);

#endif
