/* cuda_module.c - modules of CUDA's devices.  The driver compiles PTX, which may take seconds for a program.  So the
 * resulting cubin is kept in the caller's cache, if there is one, and the next process loads it from there. */
#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "backend_gpu/runtime/cuda_device.h"

/* --- what the driver's compiler writes --- */

typedef struct jit_log {
  char text[2000];
  CUjit_option options[2];
  void *values[2];
} jit_log;

enum { N_JIT_OPTIONS = 2 };

static void start_log(jit_log *log) {
  log->text[0] = '\0';
  log->options[0] = CU_JIT_ERROR_LOG_BUFFER;
  log->values[0] = log->text;
  log->options[1] = CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
  log->values[1] = (void *)(uintptr_t)(sizeof log->text - 1);
}

/* Does what cuda_check does, and adds the log to a failure, as one line. */
static status check_compiled(cuda_device *d, CUresult r, jit_log *log, const char *what) {
  int version = 0;
  if (r == CUDA_SUCCESS) {
    return NULL;
  }
  (void)d->cu->cuDriverGetVersion(&version); /* it only completes a message */
  status failed = cuda_check(d, r, "%s for sm_%u by the driver of CUDA %d.%d", what, d->capability, version / 1000,
                             version % 1000 / 10);
  if (!*log->text) {
    return failed;
  }
  for (char *end = log->text; (end = strchr(end, '\n')) != NULL;) {
    *end = ' ';
  }
  status with_log = status_error(status_get_code(failed), "%s: %s", status_message(failed), log->text);
  status_free(failed);
  return with_log;
}

static status load_image(cuda_device *d, const void *image, CUmodule *out) {
  jit_log log;
  start_log(&log);
  return check_compiled(d, d->cu->cuModuleLoadDataEx(out, image, N_JIT_OPTIONS, log.options, log.values), &log,
                        "loading code");
}

/* --- modules by the cache --- */

/* PTX, and the cache that keeps the cubin to which it is compiled. */
typedef struct kept_code {
  const rt_code_cache *cache;
  rt_span ptx;
  char compiler[PATH_MAX + 100];
} kept_code;

/* Sets k->compiler to a text that identifies the compiler and the GPU for which it compiles.  The compiler's options
 * are no part of it, since they concern only its log. */
static status describe_compiler(cuda_device *d, kept_code *k) {
  int version = 0;
  TRY(cuda_check(d, d->cu->cuDriverGetVersion(&version), "asking for the driver's version"));
  snprintf(k->compiler, sizeof k->compiler, "CUDA %d sm_%u %s", version, d->capability, cuda_driver_file());
  return NULL;
}

static bool is_cubin(rt_span code) {
  const Elf64_Ehdr *h = (const Elf64_Ehdr *)code.data;
  return code.size >= sizeof *h && memcmp(code.data, ELFMAG, SELFMAG) == 0 && h->e_machine == EM_CUDA;
}

/* Loads the code that the cache has kept.  Leaves *out NULL if there is none, or if the driver refuses it. */
static status load_kept(cuda_device *d, const kept_code *k, CUmodule *out) {
  arena *a = arena_create(NULL);
  *out = NULL;
  rt_span code = k->cache->find(k->cache->data, a, k->compiler, k->ptx);
  status failed = is_cubin(code) ? load_image(d, code.data, out) : NULL;
  arena_destroy(a);
  if (failed && status_get_code(failed) == STATUS_INVALID_FILE) {
    status_free(failed);
    *out = NULL;
    return NULL;
  }
  return failed;
}

/* Compiles the PTX, loads the cubin and hands it to the cache.  The cubin belongs to the linker. */
static status link_ptx(cuda_device *d, const kept_code *k, CUlinkState linker, jit_log *log, CUmodule *out) {
  void *cubin = NULL;
  size_t bytes = 0;
  TRY(check_compiled(
      d, d->cu->cuLinkAddData_v2(linker, CU_JIT_INPUT_PTX, (void *)k->ptx.data, k->ptx.size, "kernels", 0, NULL, NULL),
      log, "compiling code"));
  TRY(check_compiled(d, d->cu->cuLinkComplete(linker, &cubin, &bytes), log, "compiling code"));
  TRY(load_image(d, cubin, out));
  k->cache->keep(k->cache->data, k->compiler, k->ptx, (rt_span){cubin, bytes});
  return NULL;
}

static status compile(cuda_device *d, const kept_code *k, CUmodule *out) {
  jit_log log; /* the driver writes to it until the linker is destroyed */
  CUlinkState linker;
  start_log(&log);
  TRY(check_compiled(d, d->cu->cuLinkCreate_v2(N_JIT_OPTIONS, log.options, log.values, &linker), &log,
                     "starting to compile code"));
  status failed = link_ptx(d, k, linker, &log, out);
  cuda_lose_if(d, cuda_check(d, d->cu->cuLinkDestroy(linker), "ending to compile code"));
  return failed;
}

status cuda_load_module(cuda_device *d, rt_span code, const rt_code_cache *cache, CUmodule *out) {
  kept_code k = {.cache = cache, .ptx = code};
  if (!cache || is_cubin(code)) {
    return load_image(d, code.data, out);
  }
  TRY(describe_compiler(d, &k));
  TRY(load_kept(d, &k, out));
  return *out ? NULL : compile(d, &k, out);
}
