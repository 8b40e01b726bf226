/* target.c - see target.h. */
#include "backend_gpu/runtime/target.h"

#include <pthread.h>
#include <string.h>

#include "backend_gpu/runtime/emulator.h"
#include "backend_gpu/runtime/kinds.h"

static const gpu_device *gpu_of(const rt_device *d) { return (const gpu_device *)d; }

static status check_cpu(const rt_device *d, const char *cpu) { return gpu_of(d)->check_cpu(gpu_of(d), cpu); }

static status load_code(const rt_device *d, arena *a, rt_span code, rt_code **out) {
  return gpu_of(d)->load(gpu_of(d), a, code, out);
}

static const rt_thunk_kind kinds[] = {{.name = "gpu.kernel",
                                       .load = gpu_kernel_load,
                                       .run = gpu_kernel_run,
                                       .access = RT_READS_ELEMENT_FIRST,
                                       .bind = gpu_kernel_bind}};

static rt_target make_target(const char *name, const gpu_device *d) {
  return (rt_target){.abi = RT_ABI,
                     .name = name,
                     .kinds = kinds,
                     .n_kinds = sizeof kinds / sizeof *kinds,
                     .keeps_programs = true,
                     .check_cpu = check_cpu,
                     .load_code = load_code,
                     .device = &d->device};
}

static rt_target host_target;

static void make_host_target(void) { host_target = make_target(GPU_HOST_TARGET_NAME, gpu_emulator()); }

status gpu_find_target(const char *name, const rt_target **out) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  *out = NULL;
  if (strcmp(name, GPU_HOST_TARGET_NAME) == 0) {
    pthread_once(&once, make_host_target);
    *out = &host_target;
  }
  return NULL;
}
