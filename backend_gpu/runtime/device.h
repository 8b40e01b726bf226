/* device.h - what the thunk kinds of the GPU backend need of a device: modules of code, and launches of kernels.  There
 * are two kinds of devices: NVIDIA's GPUs (cuda.h), and the host, which runs the same kernels (emulator.h). */
#ifndef BACKEND_GPU_RUNTIME_DEVICE_H
#define BACKEND_GPU_RUNTIME_DEVICE_H

#include "runtime/program/target.h"

typedef struct gpu_function gpu_function; /* a kernel of loaded code */

/* A launch of `blocks` blocks of `threads` threads each (runtime/block_abi.h).  The arrays are copied before the launch
 * returns. */
typedef struct gpu_launch {
  const rt_thunk *thunk; /* the thunk whose work the launch is */
  const rt_run *run;     /* lives until the stream has been awaited */
  int64_t blocks;
  uint32_t threads;
  uint32_t shared_bytes; /* the size of the memory that the threads of a block share (CUDA's dynamic shared memory) */
  uint32_t n_buffers, n_args;
  const void *const *buffers; /* addresses in the device's memory */
  const int64_t *args;
  int64_t steps; /* the kernel's grid, whose steps the threads divide among themselves */
} gpu_launch;

typedef struct gpu_device {
  rt_device device; /* the first member: thunks get a pointer to it and convert that to a pointer to the gpu_device */
  /* Implements rt_target.check_cpu.  `cpu` names the GPU for which code was compiled, as emit_target_text
   * returns it. */
  status (*check_cpu)(const struct gpu_device *d, const char *cpu);
  /* Implements rt_target.load_code.  On a GPU, `code` is NUL-terminated PTX, a cubin, or a code bundle of these; on the
   * emulator it is an object file. */
  status (*load)(const struct gpu_device *d, arena *a, rt_span code, const rt_code_cache *cache, rt_code **out);
  /* Returns a kernel by its name; NULL if there is none.  The result is on the arena. */
  gpu_function *(*find)(const struct gpu_device *d, arena *a, rt_code *code, const char *symbol);
  /* Puts a launch into the stream's queue. */
  status (*launch)(rt_stream *s, const gpu_function *f, const gpu_launch *l);
} gpu_device;

#endif
