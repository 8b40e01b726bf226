/* target.c - see target.h. */
#include "backend_gpu/runtime/target.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backend_gpu/runtime/cuda.h"
#include "backend_gpu/runtime/emulator.h"
#include "backend_gpu/runtime/kinds.h"

static const gpu_device *gpu_of(const rt_device *d) { return (const gpu_device *)d; }

static status check_cpu(const rt_device *d, const char *cpu) { return gpu_of(d)->check_cpu(gpu_of(d), cpu); }

static status load_code(const rt_device *d, arena *a, rt_span code, const rt_code_cache *cache, rt_code **out) {
  return gpu_of(d)->load(gpu_of(d), a, code, cache, out);
}

static const rt_thunk_kind kinds[] = {{.name = "gpu.kernel",
                                       .load = gpu_kernel_load,
                                       .run = gpu_kernel_run,
                                       .access = RT_READS_ELEMENT_FIRST,
                                       .bind = gpu_kernel_bind,
                                       .is_recordable = gpu_kernel_is_recordable}};

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

/* The target of a CUDA device, which is made when it is first asked for. */
typedef struct cuda_target {
  struct cuda_target *next;
  uint32_t ordinal;
  rt_target target;
} cuda_target;

static pthread_mutex_t cuda_lock = PTHREAD_MUTEX_INITIALIZER;
static cuda_target *cuda_targets;

static status new_cuda_target(uint32_t ordinal, cuda_target **out) {
  const gpu_device *d;
  TRY(gpu_cuda_device(ordinal, &d));
  cuda_target *t = malloc(sizeof *t);
  CHECK_THAT(t, STATUS_RESOURCE, "out of memory");
  *t = (cuda_target){cuda_targets, ordinal, make_target(GPU_TARGET_NAME, d)};
  *out = cuda_targets = t;
  return NULL;
}

static status find_cuda_target(uint32_t ordinal, const rt_target **out) {
  status failed = NULL;
  pthread_mutex_lock(&cuda_lock);
  cuda_target *t = cuda_targets;
  while (t && t->ordinal != ordinal) {
    t = t->next;
  }
  if (!t) {
    failed = new_cuda_target(ordinal, &t);
  }
  *out = failed ? NULL : &t->target;
  pthread_mutex_unlock(&cuda_lock);
  return failed;
}

/* Reads "gpu" or "gpu:N".  Returns false if the name is another one. */
static bool read_ordinal(const char *name, uint32_t *out) {
  enum { DIGITS = 4 };
  size_t n = strlen(GPU_TARGET_NAME);
  const char *digits = name + n + 1;
  *out = 0;
  if (strncmp(name, GPU_TARGET_NAME, n) != 0 || name[n] != ':') {
    return strcmp(name, GPU_TARGET_NAME) == 0;
  }
  size_t length = strspn(digits, "0123456789");
  *out = (uint32_t)strtoul(digits, NULL, 10);
  return length > 0 && length <= DIGITS && digits[length] == '\0';
}

status gpu_find_target(const char *name, const rt_target **out) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  uint32_t ordinal;
  *out = NULL;
  if (strcmp(name, GPU_HOST_TARGET_NAME) == 0) {
    pthread_once(&once, make_host_target);
    *out = &host_target;
    return NULL;
  }
  return read_ordinal(name, &ordinal) ? find_cuda_target(ordinal, out) : NULL;
}

bool gpu_target_has_ptx(const rt_target *t) { return t->kinds == kinds && t != &host_target; }

const char *gpu_target_architecture(const rt_target *t, arena *a) {
  gpu_cuda_info info;
  if (!gpu_target_has_ptx(t)) {
    return NULL;
  }
  status failed = gpu_cuda_describe((uint32_t)t->device->id, &info);
  bool found = !failed && *info.architecture;
  status_free(failed);
  return found ? arena_strdup(a, info.architecture) : NULL;
}
