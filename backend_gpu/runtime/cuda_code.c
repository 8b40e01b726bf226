/* cuda_code.c - code for CUDA's devices: which code a device runs, finding kernels, launching them. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend_gpu/runtime/cuda_device.h"
#include "runtime/host/processor.h"
#include "runtime/program/code_bundle.h"

/* --- which code a device runs --- */

/* A GPU for which code was compiled. */
typedef struct gpu_architecture {
  uint32_t capability; /* ten times the compute capability */
  bool exact;          /* whether the code uses what only this GPU has, as that for sm_90a does */
  bool ptx; /* whether the code is PTX, which the driver can also compile for later GPUs; otherwise a cubin */
} gpu_architecture;

#define NVPTX "nvptx64-nvidia-cuda "

/* Reads "nvptx64-nvidia-cuda sm_90a +ptx80 ...".  The code is PTX if its features have a version of PTX. */
static status read_architecture(const char *cpu, gpu_architecture *out) {
  const char *name = cpu + sizeof NVPTX - 1;
  size_t length = strcspn(name, " "), digits = strncmp(name, "sm_", 3) == 0 ? strspn(name + 3, "0123456789") : 0;
  bool exact = length == digits + 4 && name[length - 1] == 'a';
  CHECK_THAT(digits >= 2 && digits <= 4 && (exact || length == digits + 3), STATUS_INVALID_FILE,
             "compiled for '%.*s', which is no GPU that this onnx-xla knows", (int)length, name);
  *out = (gpu_architecture){.capability = (uint32_t)strtoul(name + 3, NULL, 10),
                            .exact = exact,
                            .ptx = strstr(name + length, " +ptx") != NULL};
  return NULL;
}

static bool runs_on(const gpu_architecture *code, uint32_t capability) {
  bool same_major = code->capability / 10 == capability / 10;
  return code->exact ? code->capability == capability : code->capability <= capability && (code->ptx || same_major);
}

/* Returns true if `a` is better than `b` on a device that runs both: code for a newer GPU or for exactly this one may
 * use more instructions, and a cubin need not be compiled. */
static bool is_better(const gpu_architecture *a, const gpu_architecture *b) {
  return a->capability != b->capability ? a->capability > b->capability
         : a->exact != b->exact         ? a->exact
                                        : b->ptx && !a->ptx;
}

/* Sets *out to the index of the code that suits the device best.  Fails if the device runs none of them. */
static status choose_code(const cuda_device *d, uint32_t n, const char *const *cpus, uint32_t *out) {
  gpu_architecture best = {.capability = 0};
  char there[200] = "";
  *out = n;
  for (uint32_t k = 0; k < n; k++) {
    gpu_architecture code;
    TRY(read_architecture(cpus[k], &code));
    size_t length = strlen(there);
    snprintf(there + length, sizeof there - length, "%s%s for sm_%u%s", k ? ", " : "", code.ptx ? "PTX" : "a cubin",
             code.capability, code.exact ? "a" : "");
    if (runs_on(&code, d->capability) && (*out == n || is_better(&code, &best))) {
      best = code;
      *out = k;
    }
  }
  CHECK_THAT(*out < n, STATUS_INVALID_FILE, "its code is %s, but CUDA device %u is sm_%u", there, d->ordinal,
             d->capability);
  return NULL;
}

static bool is_for_gpu(const char *cpu) { return strncmp(cpu, NVPTX, sizeof NVPTX - 1) == 0; }

enum { MOST_CODES = 64 };

/* Splits a list of CPUs (RT_CPU_SEPARATOR) in place.  Fails if one of them is not a GPU. */
static status split(char *text, const char *cpus[MOST_CODES], uint32_t *n) {
  for (*n = 0; text; ++*n) {
    char *end = strstr(text, RT_CPU_SEPARATOR);
    CHECK_THAT(*n < MOST_CODES && is_for_gpu(text), STATUS_INVALID_FILE, "compiled for '%s', which are no GPUs", text);
    cpus[*n] = text;
    text = end ? end + sizeof RT_CPU_SEPARATOR - 1 : NULL;
    if (end) {
      *end = '\0';
    }
  }
  return NULL;
}

static status check_gpus(const cuda_device *d, const char *cpu) {
  const char *cpus[MOST_CODES];
  uint32_t n, best;
  char *text = strdup(cpu);
  CHECK_THAT(text, STATUS_RESOURCE, "out of memory");
  status failed = split(text, cpus, &n);
  failed = failed ? failed : choose_code(d, n, cpus, &best);
  free(text);
  return failed;
}

status cuda_check_cpu(const gpu_device *g, const char *cpu) {
  cuda_device *d = cuda_device_of(&g->device);
  if (*cpu == '\0') { /* a program without kernels runs on any device */
    return NULL;
  }
  TRY(cuda_enter(d));
  /* only a driver that emulates a GPU loads code of this machine */
  return is_for_gpu(cpu) ? check_gpus(d, cpu) : rt_processor_check(cpu);
}

/* --- loading --- */

struct rt_code {
  cuda_device *device;
  CUmodule module;
};

static status unload_module(const rt_code *c) {
  TRY(cuda_enter(c->device));
  return cuda_check(c->device, c->device->cu->cuModuleUnload(c->module), "unloading code");
}

static void unload(void *data) {
  const rt_code *c = data;
  cuda_lose_if(c->device, unload_module(c));
}

/* Returns true if the driver can find the end of the code, whose length it is not told: PTX must end with a NUL; a
 * cubin, which is an ELF file, has its length in its own headers. */
static bool is_image(rt_span code) {
  const char *bytes = (const char *)code.data;
  return code.size > 4 && (memcmp(bytes, "\177ELF", 4) == 0 || bytes[code.size - 1] == '\0');
}

/* Sets *out to a copy of that code of a bundle which suits the device best.  It is a copy because code in a bundle is
 * not aligned as ELF headers must be. */
static status unbundle(const cuda_device *d, arena *a, rt_span bundle, rt_span *out) {
  uint32_t n, best;
  const rt_bundled_code *codes;
  TRY(rt_code_bundle_read(a, bundle, &n, &codes));
  const char **cpus = ARENA_NEW_N(a, const char *, n);
  for (uint32_t k = 0; k < n; k++) {
    CHECK_THAT(is_for_gpu(codes[k].cpu), STATUS_INVALID_FILE, "code for '%s', which is no GPU", codes[k].cpu);
    cpus[k] = codes[k].cpu;
  }
  TRY(choose_code(d, n, cpus, &best));
  void *copy = arena_alloc_aligned(a, codes[best].code.size + 1, 64);
  memcpy(copy, codes[best].code.data, codes[best].code.size);
  *out = (rt_span){copy, codes[best].code.size};
  return NULL;
}

status cuda_load(const gpu_device *g, arena *a, rt_span code, const rt_code_cache *cache, rt_code **out) {
  cuda_device *d = cuda_device_of(&g->device);
  TRY(cuda_enter(d));
  TRY(rt_code_is_bundle(code) ? unbundle(d, a, code, &code) : NULL);
  CHECK_THAT(is_image(code), STATUS_INVALID_FILE, "its code is neither PTX nor a cubin");
  rt_code *c = ARENA_NEW(a, rt_code);
  c->device = d;
  TRY(cuda_load_module(d, code, cache, &c->module));
  arena_cleanup(a, unload, c);
  *out = c;
  return NULL;
}

/* --- kernels --- */

struct gpu_function {
  CUfunction handle;
  const char *symbol;
  const char *failure;                      /* why it cannot be launched; NULL if it can */
  uint32_t most_threads, most_shared_bytes; /* the limits of a block */
};

static status read_attribute(cuda_device *d, const gpu_function *f, CUfunction_attribute attribute, uint32_t *out) {
  int value = 0;
  TRY(cuda_check(d, d->cu->cuFuncGetAttribute(&value, attribute, f->handle), "reading attribute %d of kernel %s",
                 attribute, f->symbol));
  *out = (uint32_t)value;
  return NULL;
}

/* Reads what limits launches, and allows the kernel as much shared memory as the device has.  Without that, the driver
 * allows 48 KB. */
static status read_limits(cuda_device *d, gpu_function *f) {
  uint32_t declared;
  TRY(read_attribute(d, f, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &f->most_threads));
  TRY(read_attribute(d, f, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &declared));
  f->most_shared_bytes = declared < d->shared_bytes ? d->shared_bytes - declared : 0;
  return cuda_check(
      d,
      d->cu->cuFuncSetAttribute(f->handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)f->most_shared_bytes),
      "allowing kernel %s %u bytes of shared memory", f->symbol, f->most_shared_bytes);
}

/* Leaves f->handle NULL if there is no such kernel. */
static status find_function(const rt_code *c, gpu_function *f) {
  cuda_device *d = c->device;
  TRY(cuda_enter(d));
  CUresult r = d->cu->cuModuleGetFunction(&f->handle, c->module, f->symbol);
  if (r == CUDA_ERROR_NOT_FOUND) {
    f->handle = NULL;
    return NULL;
  }
  TRY(cuda_check(d, r, "finding kernel %s", f->symbol));
  return read_limits(d, f);
}

/* Returns NULL if there is no such kernel.  Any other failure is kept, and each launch returns it. */
gpu_function *cuda_find(const gpu_device *g, arena *a, rt_code *code, const char *symbol) {
  (void)g;
  gpu_function *f = ARENA_NEW(a, gpu_function);
  f->symbol = arena_strdup(a, symbol);
  status failed = find_function(code, f);
  f->failure = failed ? arena_strdup(a, status_message(failed)) : NULL;
  status_free(failed);
  return f->handle || f->failure ? f : NULL;
}

static status check_launch(const cuda_device *d, const gpu_function *f, const gpu_launch *l) {
  CHECK_THAT(!f->failure, STATUS_INTERNAL, "%s", f->failure);
  CHECK_THAT(l->blocks <= INT_MAX, STATUS_UNSUPPORTED, "CUDA device %u: kernel %s has %lld blocks; %d are possible",
             d->ordinal, f->symbol, (long long)l->blocks, INT_MAX);
  CHECK_THAT(l->threads >= 1 && l->threads <= f->most_threads, STATUS_UNSUPPORTED,
             "CUDA device %u: kernel %s has blocks of %u threads; 1 to %u are possible", d->ordinal, f->symbol,
             l->threads, f->most_threads);
  CHECK_THAT(l->shared_bytes <= f->most_shared_bytes, STATUS_UNSUPPORTED,
             "CUDA device %u: kernel %s has %u bytes of shared memory; up to %u are possible", d->ordinal, f->symbol,
             l->shared_bytes, f->most_shared_bytes);
  return NULL;
}

/* The parameters of a kernel are those of runtime/block_abi.h. */
status cuda_launch(rt_stream *s, const gpu_function *f, const gpu_launch *l) {
  static const int64_t no_arguments[1] = {0};
  cuda_device *d = s->device;
  int64_t steps = l->steps;
  void *parameters[] = {(void *)l->buffers, (void *)(l->n_args ? l->args : no_arguments), &steps};
  TRY(check_launch(d, f, l));
  if (l->blocks <= 0) { /* CUDA has no launches without blocks */
    return NULL;
  }
  TRY(cuda_enter(d));
  return cuda_check(d,
                    d->cu->cuLaunchKernel(f->handle, (unsigned)l->blocks, 1, 1, l->threads, 1, 1, l->shared_bytes,
                                          s->handle, parameters, NULL),
                    "launching kernel %s", f->symbol);
}
